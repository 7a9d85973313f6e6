// SPDX-License-Identifier: Apache-2.0
//
// How long threads ran, waited for a CPU and slept. The kernel says the first two of each thread; the rest of its life it slept,
// and that is shared out to the sites where it was seen asleep. Used by analyse.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "stat/layers.hpp"
#include "stat/report.hpp"
#include "stat/sample_sites.hpp"

namespace thrum::stat {

// What a counter of the kernel's has grown by, in seconds. Those of a thread that is about to end may be lower than before.
double grown(std::uint64_t now, std::uint64_t before);

// What it had run and waited for a CPU when it was first seen it had done before that.
double begin_of(const ProcThread &thread, const ProcSample &first);

class ThreadTimes {
  public:
    ThreadTimes(Report &report, const Sampler &sampler, const SampleSites &sites);

    // A thread, by the indices of its samples, of which there is one at least.
    void add(const ProcThread &thread, const std::vector<std::size_t> &samples);

    // All have been added: what is left goes to where the others slept.
    void finish(std::vector<Site> &sites);

  private:
    void share_out(double asleep, const std::map<std::size_t, double> &seen_asleep);

    Report &report_;
    const Sampler &sampler_;
    const SampleSites &sites_;
    bool has_times_;
    std::map<std::size_t, double> asleep_; // by site: seconds
    double unseen_ = 0;                    // seconds that threads slept without being seen asleep
};

} // namespace thrum::stat
