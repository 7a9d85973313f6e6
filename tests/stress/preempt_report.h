// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: what a run came to. A run that is one of several passes it on; their sum is judged.
#ifndef TESTS_STRESS_PREEMPT_REPORT_H
#define TESTS_STRESS_PREEMPT_REPORT_H

#include "preempt_pcs.h"

struct Report {
    std::uint64_t preemptions = 0, ticks = 0, steps = 0, interrupts = 0;
    HitCounts hits{};

    void add(const Report &other);
    void print(const char *what) const;
    // Whether the run counts: the places that are to be hit were hit often enough, and there were preemptions enough.
    bool has_hit_all() const;
    bool has_preempted() const;
    bool is_enough() const { return has_hit_all() && has_preempted(); }
    // What there was too little of is said in a line each. `mode`: its name, of a part that is judged by itself, or "".
    void say_misses(const char *mode) const;
    void say_if_few() const;
};

#endif
