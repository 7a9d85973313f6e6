// SPDX-License-Identifier: Apache-2.0
//
// See preempt_report.h.
#include "preempt_report.h"

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
    monitored += other.monitored;
    for (unsigned i = 0; i < kHits; i++)
        hits[i] += other.hits[i];
    nested.sent += other.nested.sent;
    nested.came += other.nested.came;
    clock_steps += other.clock_steps;
    stops += other.stops;
}

void Report::print(const char *what) const {
    std::printf("%s: %llu preemptions, %llu ticks, %llu steps; of %llu interrupts", what, wide(preemptions),
                wide(ticks), wide(steps), wide(interrupts));
    if (monitored > 0)
        std::printf(", %llu by the monitor", wide(monitored));
    const bool has_places = places[kPlacesInLibc] > 0;
    if (has_places)
        std::printf(" (at %llu places in libc)", wide(places[kPlacesInLibc]));
    for (unsigned i = 0; i < kHits; i++) {
        std::printf("%s %s %llu", i > 0 ? "," : "", name_of(static_cast<Hit>(i)), wide(hits[i]));
        if (has_places && i < kPlacesInLibc)
            std::printf(" (at %llu)", wide(places[i]));
    }
    std::printf(" (of %u bytes); of %llu nested ticks %llu came", widest_registers(), wide(nested.sent),
                wide(nested.came));
    if (stops > 0)
        std::printf("; it was stopped %llu times", wide(stops));
    if (options.clock_steps)
        std::printf("; the clock was set %llu times", wide(clock_steps));
    std::printf("\n");
    std::fflush(stdout);
}

bool Report::is_missed(Hit hit, Mode mode) const {
    return hits[hit] < options.least_hits && can_be_hit(hit, mode);
}

bool Report::has_hit_all(Mode mode) const {
    for (unsigned i = 0; i < kHits; i++)
        if (is_missed(static_cast<Hit>(i), mode))
            return false;
    return true;
}

bool Report::has_preempted() const {
    return preemptions >= options.least_preemptions;
}

void Report::say_misses(Mode mode, bool named) const {
    for (unsigned i = 0; i < kHits; i++)
        if (is_missed(static_cast<Hit>(i), mode))
            std::printf("does not count: %s%s%s was hit %llu times, not %lu\n", named ? name_of(mode) : "",
                        named ? ": " : "", name_of(static_cast<Hit>(i)), wide(hits[i]), options.least_hits);
}

void Report::say_if_few() const {
    if (!has_preempted())
        std::printf("does not count: %llu preemptions, not %lu\n", wide(preemptions),
                    options.least_preemptions);
}
