// SPDX-License-Identifier: Apache-2.0
//
// What rules of several families share: the parts that findings are made of, and thresholds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stat/facts.hpp"
#include "stat/rules/rule.hpp"

namespace thrum::stat {

// Of the time in which threads were active, spent in waiting for locks: with a sweep that shows a loss, and without.
inline constexpr double kLockShare = 0.05, kLockShareAlone = 0.15;
inline constexpr double kHighLockShare = 0.3; // and so much of it that nothing else need be looked for
inline constexpr std::uint64_t kFewSamples = 20;
inline constexpr double kBurned = 0.15;  // of CPU time: a lock that is fought for without waiting
inline constexpr double kInflated = 1.3; // CPU time of the most threads to that of the fewest
// Voluntary switches for a second of CPU time, from which on a queue is a convoy.
inline constexpr double kHandOvers = 5000;
inline constexpr double kUserBound = 0.8;   // of CPU time outside the kernel
inline constexpr double kInputOutput = 0.5; // of active time
inline constexpr double kLittleCpu = 0.5;   // of the CPUs that the threads could have used
inline constexpr double kWithoutCpu = 0.3;  // of the time that threads wanted a CPU: they had none

// "12 %"; below one percent with a digit more.
std::string percent(double share);

Finding finding(const char *rule, const std::string &cause, const std::string &fix, Confidence confidence,
                const Place &place = {});

// " in task()" or " at prog+0x1234"; empty where neither is known.
std::string at_place(const Place &place);

// "libc" for "libc.so.6", as readers call it.
std::string library_name(const std::string &module);

// " (prog.c:12)"; empty where that is not known.
std::string source_of(const Place &place);

// Do the threads that wait for a lock wait for work by turns (turns.cpp)?
bool is_by_turns(const Facts &facts, const Culprit &culprit);

// Is a function of the program's called as those are that take a lock? "clock" and "block" are none.
bool has_lock_in_its_name(const std::string &function);

// By CPU time alone, where it is not known what threads access.
Findings guess_false_sharing(const Facts &facts);

// Adds "they begin in task() (prog.c:12)"; nothing where that is not known.
void add_place_evidence(const std::string &what, const Place &place, Finding &found);

// Was the program slower with more threads, or no faster, or dearer?
bool has_lost(const Facts &facts);

// Of the time that threads wanted a CPU: without one. And the sentence that says so.
double share_without_cpu(const Report &report);
std::string without_cpu_evidence(const Report &report);

// "CPU time 2.3x that of 1 thread, 40 % of it in the kernel".
std::string cpu_evidence(const Facts &facts);

} // namespace thrum::stat
