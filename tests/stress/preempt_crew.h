// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: a round. Actors are made, as threads of libthrum in the mode that is asked for or as kernel threads,
// do some torture or several until the time is over, and end.
#ifndef TESTS_STRESS_PREEMPT_CREW_H
#define TESTS_STRESS_PREEMPT_CREW_H

#include <vector>

#include "preempt_stress.h"

struct CrewTotals {
    std::uint64_t preemptions = 0, ticks = 0, steps = 0;
};
extern CrewTotals crew_totals; // of all rounds

// All of the tortures in one round, of `seconds`.
void crew_run(const std::vector<Torture *> &tortures, double seconds, std::uint64_t seed);

#endif
