// SPDX-License-Identifier: Apache-2.0
//
// How long one thread alone had something to do, by the rows of the timeline. For the facts (facts.hpp).
#pragma once

#include "stat/report.hpp"

namespace thrum::stat {

// Seconds in which one thread alone ran or wanted to, and none waited for a lock; the CPU time of these: all of it, and what
// is behind the last moment in which two did. And those in which none did anything.
struct Alone {
    double seconds = 0, cpu = 0, tail_cpu = 0;
    double by_one = 0;  // of `seconds`: by the thread that was alone for longest
    double working = 0; // in which any thread ran, or waited for what another one kept
};
Alone time_alone(const Report &report);

// The part of the time that one thread would run alone, had others left the program its CPUs: by CPU time. Otherwise
// the others decide when threads get CPUs, and so which thread is left over in the end; the distribution of the work
// does not.
double share_alone_by_cpu(const Report &report, double usable);

} // namespace thrum::stat
