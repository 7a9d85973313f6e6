// SPDX-License-Identifier: Apache-2.0
//
// The rule of threads that wait by spinning or by yielding.
#include "stat/rules/rule.hpp"

#include <algorithm>
#include <optional>

#include "stat/facts.hpp"
#include "stat/origins.hpp"
#include "stat/rules/findings.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

bool is_yield(const std::string &leaf) {
    return leaf == "sched_yield" || leaf == "pthread_yield" || leaf == "thrd_yield" ||
           leaf == "pthread_spin_lock";
}

constexpr double kSpins = 0.3,
                 kSpinsOne = 0.1; // of CPU time, in a loop that hardly ran with the fewest threads

// Threads of OpenMP's that spin until the last of them has come, or until there is work again.
std::optional<Finding> spinning_at_barrier(const Facts &facts) {
    const Burner *most = nullptr;
    double share = 0, share_one = 0;
    for (const Burner &burner : facts.burners) {
        if (burner.openmp == nullptr || burner.openmp->kind != OpenmpConstruct::kBarrier)
            continue;
        share += burner.share;
        share_one += burner.share_one;
        if (most == nullptr || (!most->place.is_known() && burner.place.is_known()))
            most = &burner;
    }
    // Threads that other programs kept from a CPU are waited for as well; that takes little more of it in total.
    if (!facts.is_compared() || !facts.has_profiles(kFewSamples) || share < kSpins || share_one > kSpinsOne ||
        facts.inflation < kInflated)
        return std::nullopt;
    const Place place = most->place.is_known() ? most->place : place_of_region(facts.report);
    Finding found =
        finding("busy-wait", std::string("Threads wait by spinning: ") + most->openmp->name + at_place(place),
                most->openmp->fix, Confidence::kMedium, place);
    found.evidence.push_back(percent(share) + " of CPU time there, " + percent(share_one) +
                             " with the fewest threads");
    found.explains = share;
    return found;
}

// Its share of CPU time with which threads wait for others: a single thread has no other to wait for, and yields for
// the work's sake.
double yielded(const Facts &facts, const Burner &burner) {
    return facts.is_compared() && facts.few->threads == 1 ? burner.share - burner.share_one : burner.share;
}

constexpr double kYields = 0.05; // of CPU time, in sched_yield() and its like

// A loop of the program's own, or a known spinner, that takes CPU time which it did not take with the fewest threads.
std::optional<Finding> spinning(const Facts &facts) {
    // What is burned besides the work adds to it; and in a few samples shares are a matter of chance.
    const bool has_grown = facts.inflation >= kInflated && facts.has_profiles(kFewSamples);
    if (!facts.has_profile(kFewSamples))
        return std::nullopt;
    for (const Burner &burner : facts.burners) {
        const bool yields = is_yield(burner.leaf) && yielded(facts, burner) >= kYields;
        const bool spins =
            has_grown && burner.is_own && burner.share >= kSpins && burner.share_one <= kSpinsOne;
        if (!yields && !spins)
            continue;
        Finding found =
            finding("busy-wait",
                    "Threads wait by spinning" + at_place(burner.place) +
                        (yields ? ", with " + burner.leaf + "()" : ""),
                    "Wait with a mutex and a condition variable (or a futex), or run no more threads than "
                    "cores.",
                    yields && facts.is_compared() ? Confidence::kHigh : Confidence::kMedium, burner.place);
        found.evidence.push_back(percent(burner.share) + " of CPU time there, " + percent(burner.share_one) +
                                 " with the fewest threads");
        found.explains = yields ? yielded(facts, burner) : burner.share;
        return found;
    }
    return std::nullopt;
}

constexpr double kYieldRate = 5000;   // involuntary ones, which time slices do not explain
constexpr double kDisturbedMore = 10; // and on a busy machine, to those with the fewest threads

// More involuntary switches than time slices explain, and than threads that are woken, each of which has slept. Where other
// programs keep this one from CPUs they take them from it as well: by the fewest threads one can tell how often, and what
// they take costs this one hardly anything, where a call of its own, in which it gives a CPU up, is time in the kernel.
bool gives_up(const Facts &facts) {
    const double more = facts.involuntary_rate - facts.voluntary_rate;
    if (!facts.is_busy)
        return more >= kYieldRate;
    if (facts.kernel_share.value_or(1) < kYields)
        return false;
    return facts.is_compared() && more >= std::max(kYieldRate, kDisturbedMore * facts.few_involuntary_rate);
}

// As far as it was seen: where most of the CPU time goes is another matter.
const Burner *yielding(const Facts &facts) {
    for (const Burner &burner : facts.burners)
        if (is_yield(burner.leaf) && burner.share > 0)
            return &burner;
    return nullptr;
}

constexpr std::uint64_t kWouldShow =
    60;                            // samples of CPU time, of which calls that take so much of it are some
constexpr double kOfRuntime = 0.1; // of CPU time, in the functions of a language's runtime

// The scheduler and the locks of a runtime, as Go's, give the CPU up as well: that is no waiting of the program's own.
bool may_be_of_runtime(const Facts &facts) {
    double share = 0;
    for (const Site &site : facts.report.burns)
        share += !site.stack.empty() && lock_table().is_runtime(site.stack.front()) ? site.share : 0;
    return yielding(facts) == nullptr && facts.has_profile(kWouldShow) && share >= kOfRuntime;
}

} // namespace

// A single thread waits for no other; and with next to no CPU time a few switches make any rate. Wrong if the loop is the work,
// which then takes its part of the CPU time with the fewest threads too.
Findings busy_wait(const Facts &facts) {
    if (facts.threads < 2 || facts.is_short)
        return {};
    std::optional<Finding> found = spinning(facts);
    if (!found)
        found = spinning_at_barrier(facts);
    // Each new thread takes a CPU from another, too.
    const bool switches = gives_up(facts) && !may_be_of_runtime(facts) && !is_churning(facts.report);
    if (!found && !switches)
        return {};
    const Burner *yields = yielding(facts);
    if (!found)
        found = finding("busy-wait", "Threads wait by yielding their CPU again and again (sched_yield)",
                        "Wait with a mutex and a condition variable, or run no more threads than cores.",
                        Confidence::kMedium, yields != nullptr ? yields->place : Place{});
    if (facts.inflation > 0)
        found->evidence.push_back(cpu_evidence(facts));
    found->evidence.push_back(fixed(facts.involuntary_rate, 0) +
                              " involuntary context switches per second of CPU time");
    found->evidence.push_back(counted(facts.threads, "thread") + " on " + counted(facts.cores, "core"));
    return {*found};
}

} // namespace thrum::stat
