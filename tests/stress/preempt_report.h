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
    // Whether the run counts: the places that are to be hit were hit often enough, and there was enough of it all.
    bool is_enough() const;
    bool counts() const; // the same, and says why not
};

#endif
