// SPDX-License-Identifier: Apache-2.0
//
// See trial.hpp.
#include "trial.hpp"

#include <thrum/time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "analysis.hpp"
#include "handover.hpp"
#include "preempt.hpp"

namespace insitu {

namespace {

// In the order in which they are printed.
constexpr double Outcome::*kOutcome[] = {&Outcome::simulated_ns,
                                         &Outcome::simulated_cpu_ns,
                                         &Outcome::all_ns,
                                         &Outcome::all_cpu_ns,
                                         &Outcome::offered,
                                         &Outcome::left_out,
                                         &Outcome::looked_at_by_end,
                                         &Outcome::looked_at,
                                         &Outcome::waits,
                                         &Outcome::waited_ns,
                                         &Outcome::late_ns,
                                         &Outcome::trajectory,
                                         &Outcome::pairs,
                                         &Outcome::drift,
                                         &Outcome::radial_peak_at,
                                         &Outcome::radial_peak,
                                         &Outcome::structure_peak_at,
                                         &Outcome::structure_peak};

constexpr double kLongestWave = 12; // S(k) has its first peak at 7

// FNV-1a, in so many bits that a double holds it.
template <typename T>
double check_sum(const std::vector<T> &values) {
    std::uint32_t sum = 2166136261U;
    for (const T &value : values) {
        unsigned char bytes[sizeof value];
        std::memcpy(bytes, &value, sizeof value);
        for (const unsigned char byte : bytes)
            sum = (sum ^ byte) * 16777619U;
    }
    return sum;
}

Point highest(const std::vector<Point> &curve) {
    return *std::max_element(curve.begin(), curve.end(),
                             [](const Point &a, const Point &b) { return a.y < b.y; });
}

class Clock {
  public:
    double wall_ns() const { return preempt::now_ns() - wall_; }
    double cpu_ns() const { return preempt::cpu_ns() - cpu_; }

  private:
    double wall_ = preempt::now_ns(), cpu_ = preempt::cpu_ns();
};

// Where a step waits for other machines: a sleep, out of which its thread comes when it has a CPU again.
class Exchange {
  public:
    explicit Exchange(double us) : ns_(us * 1e3) {}
    bool happens() const { return ns_ > 0; }

    // libthrum's sleep is one for kernel threads, too.
    void wait() {
        const double since = preempt::now_ns();
        thrum_sleep(static_cast<std::uint64_t>(ns_));
        late_ns_ += preempt::now_ns() - since - ns_;
        count_++;
    }
    void forget() { late_ns_ = count_ = 0; }
    double mean_late_ns() const { return count_ > 0 ? late_ns_ / count_ : 0; }

  private:
    double ns_, late_ns_ = 0, count_ = 0;
};

void count(const Handover &handover, Outcome *outcome) {
    outcome->offered = handover.offered();
    outcome->left_out = handover.left_out();
    outcome->looked_at = handover.looked_at();
    outcome->waits = handover.waits();
    outcome->waited_ns = handover.waited_ns();
}

// Simulates, offers, and waits for the analysis.
void go(const Plan &plan, const Arm &arm, Simulation *simulation, Handover *handover, Outcome *outcome) {
    const Clock clock;
    for (unsigned step = 0; step < plan.steps; step += plan.interval) {
        simulation->advance(std::min(plan.interval, plan.steps - step));
        if (arm.looking != Looking::kNever && step + plan.interval <= plan.steps)
            handover->offer(simulation);
    }
    outcome->simulated_ns = clock.wall_ns();
    outcome->simulated_cpu_ns = clock.cpu_ns();
    outcome->looked_at_by_end = handover->looked_at();
    handover->finish();
    outcome->all_ns = clock.wall_ns();
    outcome->all_cpu_ns = clock.cpu_ns();
}

Outcome run(const Plan &plan, const Arm &arm, Threads *threads, const Make &make) {
    Outcome outcome{};
    Exchange exchange(plan.exchange_us);
    const std::unique_ptr<Simulation> simulation =
        make(plan, threads, exchange.happens() ? [&] { exchange.wait(); } : std::function<void()>());
    simulation->advance(plan.before);
    exchange.forget();
    const double energy = simulation->energy();
    Snapshot snapshot;
    simulation->show(&snapshot);
    Analysis analysis(snapshot.edge, snapshot.atoms.size(), kLongestWave);
    {
        Handover handover(threads, arm.looking, &analysis, {plan.buffers, plan.shares},
                          plan.leave_out ? Behind::kLeaveOut : Behind::kWait);
        go(plan, arm, simulation.get(), &handover, &outcome);
        count(handover, &outcome);
    }
    outcome.late_ns = exchange.mean_late_ns();
    simulation->show(&snapshot);
    outcome.trajectory = check_sum(snapshot.atoms);
    outcome.pairs = check_sum(analysis.pairs());
    outcome.drift = std::fabs((simulation->energy() - energy) / energy);
    if (outcome.looked_at > 0) {
        const auto snapshots = static_cast<unsigned>(outcome.looked_at);
        const Point radial = highest(analysis.radial(snapshots)),
                    structure = highest(analysis.structure(snapshots));
        outcome.radial_peak_at = radial.x;
        outcome.radial_peak = radial.y;
        outcome.structure_peak_at = structure.x;
        outcome.structure_peak = structure.y;
    }
    return outcome;
}

Plan plan_of(const std::vector<std::string> &words) {
    const auto number = [&](std::size_t at) { return static_cast<unsigned>(std::stoul(words.at(at))); };
    Plan plan{};
    plan.arm = words.at(0);
    plan.workers = number(1);
    plan.cells = number(2);
    plan.steps = number(3);
    plan.before = number(4);
    plan.interval = number(5);
    plan.buffers = number(6);
    plan.shares = number(7);
    plan.leave_out = number(8) != 0;
    plan.exchange_us = std::stod(words.at(9));
    return plan;
}

} // namespace

std::vector<std::string> words_of(const Plan &plan) {
    std::vector<std::string> words = {plan.arm};
    for (const unsigned number : {plan.workers, plan.cells, plan.steps, plan.before, plan.interval,
                                  plan.buffers, plan.shares, static_cast<unsigned>(plan.leave_out)})
        words.push_back(std::to_string(number));
    words.push_back(std::to_string(plan.exchange_us));
    return words;
}

void run_trial(const std::vector<std::string> &words, const Make &make) {
    const Plan plan = plan_of(words);
    const Arm &arm = arm_of(plan.arm);
    const std::unique_ptr<Threads> threads = threads_of(arm, plan.workers);
    if (threads == nullptr) {
        preempt::say_unavailable();
        return;
    }
    Outcome outcome{};
    threads->drive([&] { outcome = run(plan, arm, threads.get(), make); });
    for (const auto member : kOutcome)
        std::printf("%.12g ", outcome.*member);
    std::printf("\n");
}

std::unique_ptr<Outcome> measure(const Plan &plan, const std::string &library, double slice_us) {
    const std::optional<bench::Numbers> values = preempt::measured(
        words_of(plan), preempt::armed(library, arm_of(plan.arm).preempt, slice_us), std::size(kOutcome));
    if (!values)
        return nullptr;
    auto outcome = std::make_unique<Outcome>();
    for (std::size_t i = 0; i < values->size(); i++)
        (*outcome).*kOutcome[i] = (*values)[i];
    return outcome;
}

} // namespace insitu
