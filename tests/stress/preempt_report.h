// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: what a run came to. A run that is one of several passes it on; their sum is judged.
#ifndef TESTS_STRESS_PREEMPT_REPORT_H
#define TESTS_STRESS_PREEMPT_REPORT_H

#include "preempt_pcs.h"
#include "preempt_places.h"

struct Report {
    std::uint64_t preemptions = 0, ticks = 0, steps = 0, interrupts = 0;
    std::uint64_t monitored = 0; // interrupts of those runs in which the monitor sends the ticks
    HitCounts hits{};
    PlaceCounts places{}; // those of several runs cannot be summed here: the reader of the files adds them
    Nested nested;
    std::uint64_t clock_steps = 0, stops = 0;

    void add(const Report &other);
    void print(const char *what) const;
    // Whether the run counts: the required places were hit often enough, and there were preemptions enough.
    bool has_hit_all(Mode mode) const;
    bool has_preempted() const;
    bool is_enough(Mode mode) const { return has_hit_all(mode) && has_preempted(); }
    // What there was too little of is said in a line each, with the mode's name if it is a part that is judged by itself.
    void say_misses(Mode mode, bool named) const;
    void say_if_few() const;

  private:
    bool is_missed(Hit hit, Mode mode) const;
};

#endif
