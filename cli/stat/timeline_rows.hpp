// SPDX-License-Identifier: Apache-2.0
//
// Rows of the timeline: what each thread did, and when. They are thinned out where there would be more than can be drawn. Used
// by analyse.cpp.
#pragma once

#include <cstddef>
#include <vector>

#include "stat/layers.hpp"
#include "stat/report.hpp"

namespace thrum::stat {

constexpr std::size_t kRowsMost = 10000;

// One that is like the last continues that.
void append(std::vector<Thread::Span> &spans, const Thread::Span &span);

// As few as one of so many threads may have: one span for each part of the time, of what there is most of in it.
std::vector<Thread::Span> thinned(const std::vector<Thread::Span> &spans, std::size_t threads);

// Without spans. `first_name`: that of the first thread, which a thread has without one of its own.
Thread row_of(const ProcThread &thread, double begin, const std::string &first_name);

// A look at a thread: how long it has run so far, and whether it slept.
struct SleepLook {
    double at;
    std::uint64_t run_ns;
    bool is_asleep;
};
// Seconds that it was in sleeps of more than kNapMost: from look to look it did not run.
double long_sleeps(const std::vector<SleepLook> &looks);

} // namespace thrum::stat
