// SPDX-License-Identifier: Apache-2.0
//
// See preempt_report.h.
#include "preempt_report.h"

#include <algorithm>
#include <cstdio>

namespace {

unsigned long long wide(std::uint64_t value) {
    return value;
}

} // namespace

void Report::add(const Report &other) {
    preemptions += other.preemptions;
    ticks += other.ticks;
    steps += other.steps;
    interrupts += other.interrupts;
    for (unsigned i = 0; i < kHits; i++)
        hits[i] += other.hits[i];
}

void Report::print(const char *what) const {
    std::printf("%s: %llu preemptions, %llu ticks, %llu steps; of %llu interrupts", what, wide(preemptions),
                wide(ticks), wide(steps), wide(interrupts));
    for (unsigned i = 0; i < kHits; i++)
        std::printf("%s %s %llu", i > 0 ? "," : "", name_of(static_cast<Hit>(i)), wide(hits[i]));
    std::printf("\n");
    std::fflush(stdout);
}

bool Report::is_enough() const {
    return std::all_of(hits.begin(), hits.end(),
                       [](std::uint64_t hit) { return hit >= options.least_hits; }) &&
           preemptions >= options.least_preemptions;
}

bool Report::counts() const {
    for (unsigned i = 0; i < kHits; i++)
        if (hits[i] < options.least_hits) {
            std::printf("does not count: %s was hit %llu times, not %lu\n", name_of(static_cast<Hit>(i)),
                        wide(hits[i]), options.least_hits);
        }
    if (preemptions < options.least_preemptions) {
        std::printf("does not count: %llu preemptions, not %lu\n", wide(preemptions),
                    options.least_preemptions);
    }
    return is_enough();
}
