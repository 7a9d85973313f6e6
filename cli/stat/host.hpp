// SPDX-License-Identifier: Apache-2.0
//
// What this machine gives a program and charges for it: CPUs that it may really use, cores behind them, the cost of a
// context switch, and whether it lets a program be looked at. Used by examination.cpp and sampler.cpp.
#pragma once

#include <optional>
#include <string>

namespace thrum::stat {

// CPUs' worth of time that the control group allows (cpu.max of cgroup v2, cpu.cfs_quota_us of v1), as in a container;
// nothing where it sets no limit. `root`: the folder that proc and sys are in.
std::optional<double> cpu_quota(const std::string &root = "");

// Seconds for which that limit has stopped threads so far, over all CPUs, in the group or one above it; 0 where that is not told.
double cpu_throttled(const std::string &root = "");

// Physical cores behind the CPUs that this process may use; 0 where the kernel does not tell.
unsigned physical_cores(const std::string &root = "");

// CPU time of one context switch between two threads on one CPU that wake each other: the futex calls for that
// included. Takes 20 ms of CPU time; 0 where it cannot be measured.
double measure_switch_cost();

// Why a program that was just started may not be looked at, as a warning says it (process::ptrace_scope).
std::string why_hidden(int ptrace_scope);

} // namespace thrum::stat
