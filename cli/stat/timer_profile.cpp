// SPDX-License-Identifier: Apache-2.0
//
// Where threads burn CPU time, without perf events: libthrum-stat.so in the program gives each thread a timer that runs
// with its CPU time (stat/timer.c), and hands on what its signal interrupts.
#include "stat/timer_profile.hpp"

#include <unistd.h>

#include "base/atomic.h"
#include "native.hpp"
#include "stat/collect.hpp"
#include "stat/python_keeper.hpp"
#include "tools/clock.hpp"
#include "tools/failure.hpp"

namespace thrum::stat {

namespace {

class TimerProfile : public CpuProfile {
  public:
    TimerProfile(double rate, std::string why)
        : probe_(PROBE_TIMER, static_cast<std::uint64_t>(1e9 / rate)), why_(std::move(why)) {
        source = "CPU timer in the program";
    }

    std::vector<std::string> environment() const override { return probe_.environment(); }
    void forked(pid_t child) override {
        began_ = seconds_now();
        maps_.begin(child);
        python_.begin(child);
    }
    void poll(double now) override;
    void finish() override;

  private:
    void look(double now, bool is_last);
    void drain();

    ProbeFile probe_;
    std::string why_;  // a better profile was refused
    double began_ = 0; // on CLOCK_MONOTONIC
    ProbedMaps maps_{probe_, observed.maps};
    SampleKeeper keeper_{*this};
    PythonOfSamples python_{*this};
};

void TimerProfile::poll(double now) {
    look(now, false);
}

void TimerProfile::look(double now, bool is_last) {
    began_ = seconds_now() - now;
    keeper_.begin(now, is_last);
    if (maps_.is_another()) {
        keeper_.clear();
        python_.another_program();
    }
    const std::size_t before = samples.size();
    drain();
    if (keeper_.are_paid_for())
        python_.add(before);
    keeper_.end();
    maps_.poll(now);
}

void TimerProfile::drain() {
    for (unsigned i = 0; i < PROBE_SAMPLES; i++) {
        std::uint32_t &state = probe_->states[i];
        if (load_acquire(&state) != PROBE_FULL)
            continue;
        const struct probe_sample &from = probe_->in.samples[i];
        CpuSample sample;
        sample.at = static_cast<double>(from.at) * 1e-9 - began_;
        sample.thread = from.thread;
        sample.weight = static_cast<double>(probe_->period) * 1e-9 * from.ticks;
        if (keeper_.are_paid_for())
            keeper_.add(sample, raw_stack(from.stack));
        else
            keeper_.pass_over(sample.weight);
        store_release(&state, static_cast<std::uint32_t>(PROBE_EMPTY));
    }
}

void TimerProfile::finish() {
    look(seconds_now() - began_, true);
    maps_.finish();
    makers = makers_of(probe_.get());
    threads_created = probe_->created;
    how_known.push_back("CPU profile: " + why_ + ", so a timer in each thread of the program (" +
                        std::to_string(probe_->period / 1000000) +
                        " ms of its CPU time) takes the samples; threads that run for less than a tick of "
                        "the kernel's clock at a time (1 to 10 ms) are rarely seen." +
                        native::kTimerSideEffect);
    python_.finish();
    if (const std::string trouble = probe_.trouble(); !trouble.empty())
        warnings.push_back("the CPU profile is incomplete: " + trouble);
    if (probe_->untimed > 0)
        warnings.push_back("the CPU profile leaves out " + std::to_string(probe_->untimed) +
                           " threads that could not get a timer");
    if (probe_->lost > 0)
        warnings.push_back("the CPU profile lost " + std::to_string(probe_->lost) + " samples");
}

} // namespace

std::unique_ptr<CpuProfile> make_timer_profile(const std::string &program, double rate,
                                               std::string &why_not) {
    std::string refusal = preload_refusal(program);
    try {
        if (refusal.empty())
            return std::make_unique<TimerProfile>(rate, why_not);
    } catch (const Failure &failure) {
        refusal = failure.what();
    }
    why_not += ", and " + refusal;
    return nullptr;
}

} // namespace thrum::stat
