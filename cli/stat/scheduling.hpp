// SPDX-License-Identifier: Apache-2.0
//
// Which threads the kernel prefers: the policy and priority of a thread, and whether one may be kept from a CPU by another for
// long. Asked of the kernel by the sampler; the rules of locks compare a holder's with its waiters'.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace thrum::stat {

// As sched(7) has them. A priority that a mutex lends (PTHREAD_PRIO_INHERIT) is not among them.
struct Scheduling {
    enum Policy : std::int8_t { kUnknown = -1, kOther = 0, kFifo, kRoundRobin, kBatch, kIdle = 5, kDeadline };
    std::int8_t policy = kUnknown; // a number of the kernel's, which may have more than are named here
    std::int8_t nice = 0;          // of kOther and kBatch
    std::uint8_t real_time = 0;    // priority, of kFifo and kRoundRobin
    bool is_known() const { return policy != kUnknown; }
};

// One system call; nothing is read from /proc. Unknown where there is no such thread.
Scheduling scheduling_of(pid_t thread);

// Does `other` run first where there is one CPU for both, always or for most of the time? False where one is unknown.
bool is_outranked(const Scheduling &one, const Scheduling &other);

std::string name_of(const Scheduling &scheduling); // "SCHED_IDLE", "SCHED_FIFO 10", "nice 5"; "" if unknown

// For --json: "other", "fifo", ...; empty: unknown.
std::string policy_of(const Scheduling &scheduling);

} // namespace thrum::stat
