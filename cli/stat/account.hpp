// SPDX-License-Identifier: Apache-2.0
//
// What a process that is no child has used so far, from /proc. Used by run.cpp.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "stat/run.hpp"

namespace thrum::stat {

struct Account {
    double user = 0, system = 0;
    std::uint64_t voluntary = 0, involuntary = 0, faults_major = 0;
};

// CPU time of all threads of a process, of those as well that have ended, up to the kernel's last tick in each. Nothing
// where it is gone.
std::optional<double> process_cpu(pid_t pid);

// Nothing where the process is gone, or has ended and is not waited for yet. Without its context switches.
std::optional<Account> account_of(pid_t pid);

// A file for each thread, of which there may be many; of threads that have ended they are not kept. Where none is left, `account`
// stays as it is.
void take_switches(pid_t pid, Account &account);

// All but the context switches.
void take_times(const Account &from, Account &account);

void take_difference(const Account &before, const Account &after, Measured &measured);

// The kernel adds what a running thread has used to its process's clock at ticks, 1 to 10 ms apart, and when the thread stops. So the
// first of two looks may come up to a tick of each running thread early, and the last one right after a tick. What is more than
// `threads` can have used of the CPUs in `wall` is left out of the CPU time, if it is no more than that: else there were more threads.
void leave_out_late_ticks(unsigned threads, Measured &measured);

} // namespace thrum::stat
