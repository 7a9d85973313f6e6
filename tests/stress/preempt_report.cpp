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

bool Report::has_hit_all() const {
    return std::all_of(hits.begin(), hits.end(), [](std::uint64_t hit) { return hit >= options.least_hits; });
}

bool Report::has_preempted() const {
    return preemptions >= options.least_preemptions;
}

void Report::say_misses(const char *mode) const {
    for (unsigned i = 0; i < kHits; i++)
        if (hits[i] < options.least_hits)
            std::printf("does not count: %s%s%s was hit %llu times, not %lu\n", mode,
                        *mode != '\0' ? ": " : "", name_of(static_cast<Hit>(i)), wide(hits[i]),
                        options.least_hits);
}

void Report::say_if_few() const {
    if (!has_preempted())
        std::printf("does not count: %llu preemptions, not %lu\n", wide(preemptions),
                    options.least_preemptions);
}
