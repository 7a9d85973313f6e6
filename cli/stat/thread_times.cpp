// SPDX-License-Identifier: Apache-2.0
#include "stat/thread_times.hpp"

#include <algorithm>

namespace thrum::stat {

double grown(std::uint64_t now, std::uint64_t before) {
    return now > before ? static_cast<double>(now - before) * 1e-9 : 0;
}

ThreadTimes::ThreadTimes(Report &report, const Sampler &sampler, const SampleSites &sites)
    : report_(report), sampler_(sampler), sites_(sites),
      has_times_(std::any_of(sampler.samples.begin(), sampler.samples.end(),
                             [](const ProcSample &sample) { return sample.run_ns != 0; })) {}

// Shares out how long a thread slept to where it was seen asleep, in proportion.
void ThreadTimes::share_out(double asleep, const std::map<std::size_t, double> &seen_asleep) {
    double all = 0;
    for (const auto &[site, seconds] : seen_asleep)
        all += seconds;
    if (all <= 0) {
        unseen_ += asleep;
        return;
    }
    for (const auto &[site, seconds] : seen_asleep)
        asleep_[site] += asleep * seconds / all;
}

double begin_of(const ProcThread &thread, const ProcSample &first) {
    return std::max(0.0, thread.begin - static_cast<double>(first.run_ns + first.delay_ns) * 1e-9);
}

void ThreadTimes::add(const ProcThread &thread, const std::vector<std::size_t> &samples) {
    const double begin = begin_of(thread, sampler_.samples[samples.front()]);
    double ran = 0, delayed = 0, before = begin;
    std::uint64_t run_ns = 0, delay_ns = 0;
    std::map<std::size_t, double> seen_asleep;
    std::size_t last_site = kNone;
    for (const std::size_t index : samples) {
        const ProcSample &now = sampler_.samples[index];
        const double took = now.at - before;
        double run = grown(now.run_ns, run_ns);
        const double delay = grown(now.delay_ns, delay_ns);
        const std::size_t site = sites_.seen(index).site;
        if (!has_times_)
            run = site == kNone ? took : 0;
        const double rest = std::max(0.0, took - run - delay);
        if (site != kNone || last_site != kNone)
            seen_asleep[site != kNone ? site : last_site] += rest;
        ran += run;
        delayed += delay;
        before = now.at;
        run_ns = std::max(run_ns, now.run_ns);
        delay_ns = std::max(delay_ns, now.delay_ns);
        last_site = site;
    }
    report_.doing[static_cast<int>(Doing::kRunning)] += ran;
    report_.doing[static_cast<int>(Doing::kRunnable)] += delayed;
    // The kernel brings run times up to date at ticks: what one that always ran lacks is no sleep.
    constexpr double kTick = 0.012;
    const double asleep = std::max(0.0, before - begin - ran - delayed);
    if (!seen_asleep.empty() || asleep > kTick + 0.02 * (before - begin))
        share_out(asleep, seen_asleep);
    else
        report_.doing[static_cast<int>(Doing::kRunning)] += asleep;
}

void ThreadTimes::finish(std::vector<Site> &sites) {
    const std::map<std::size_t, double> everywhere = asleep_;
    if (everywhere.empty())
        report_.doing[static_cast<int>(Doing::kKernel)] += unseen_;
    else
        share_out(unseen_, everywhere);
    for (const auto &[site, seconds] : asleep_) {
        sites[site].seconds = seconds;
        report_.doing[static_cast<int>(sites[site].doing)] += seconds;
    }
}

} // namespace thrum::stat
