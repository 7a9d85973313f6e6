// SPDX-License-Identifier: Apache-2.0
//
// What is said where no rule found a cause: the threads scale, or nothing can be told.
#include "stat/rules/rule.hpp"

#include <algorithm>

#include "stat/facts.hpp"
#include "stat/rules/findings.hpp"
#include "stat/verdict_text.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

// Wrong if the program does less work with more threads, or if its times vary so much that the speedup is chance: then the
// interval reaches far down. It accuses nothing.
Findings scales(const Facts &facts) {
    const auto sure_of = [&facts](bool well) {
        const bool is_narrow = facts.gain.low >= (1 + facts.ideal) / 2;
        return !well ? Confidence::kLow : is_narrow ? Confidence::kHigh : Confidence::kMedium;
    };
    const Outcome outcome = facts.report.outcome;
    if (outcome == Outcome::kScales || outcome == Outcome::kScalesSome) {
        const bool well = outcome == Outcome::kScales;
        Finding found = finding(
            "scales", well ? "Nothing: the threads scale" : "Nothing that stands out",
            well ? "None needed." : "See where the CPU time goes: thrum stat --html FILE.", sure_of(well));
        found.evidence.push_back(fixed(facts.speedup, 2) + "x as fast, of " + fixed(facts.ideal, 2) +
                                 "x that the cores allow");
        return {found};
    }
    const double usable = std::min(facts.threads, facts.cores);
    if (outcome != Outcome::kOneRun || facts.threads < 2 || facts.parallelism < 0.8 * usable)
        return {};
    Finding found = finding("scales", "Nothing that one run can show",
                            "To be sure: thrum stat --sweep 1,2,... -- PROG {}", Confidence::kLow);
    found.evidence.push_back(fixed(facts.parallelism, 2) + " CPUs used by " +
                             counted(facts.threads, "thread") +
                             "; one run cannot tell whether one thread would need less CPU time");
    return {found};
}

namespace {

constexpr double kIdle = 0.2;        // CPUs used by a program that has nothing to do
constexpr double kShortestRun = 0.1; // seconds: at most ten looks at each thread
constexpr double kNothing = 0.3;     // of the time, in which no thread has anything to do

} // namespace

// The last word, where no rule has one: it accuses nothing, and says what would let more be told.
Findings inconclusive(const Facts &facts) {
    const Report &report = facts.report;
    const auto say = [](const std::string &cause, const std::string &fix) {
        return Findings{finding("inconclusive", cause, fix, Confidence::kLow)};
    };
    if (facts.is_too_short)
        return say("The runs are too short: " + duration(report.points.back().wall.median) + " each",
                   "Give it more work: at least some tenths of a second.");
    const bool hazy = report.outcome == Outcome::kInconclusive || report.outcome == Outcome::kOneRun;
    if (hazy && facts.is_busy) {
        Findings found = say("The machine was busy", "Try again on a quiet machine; the times may be wrong.");
        found.front().evidence.push_back(busy_text(facts));
        return found;
    }
    if (report.outcome == Outcome::kInconclusive || report.outcome == Outcome::kNoDifference)
        return say("The runs are inconclusive", "Try again, with more --runs.");
    if (report.points.size() == 1 && report.points.back().wall.median < kShortestRun)
        return say("The run is too short: " + duration(report.points.back().wall.median),
                   "Give it more work, or observe it for longer: at least some tenths of a second.");
    if (!report.points.empty() && facts.parallelism < kIdle && facts.io_share < kInputOutput)
        return say("The threads have little to do: " + fixed(facts.parallelism, 2) + " CPUs used",
                   "Observe it while it has work.");
    if (!report.points.empty() && facts.nothing >= kNothing && facts.io_share < kInputOutput &&
        facts.lock_share < kLockShareAlone)
        return say("The threads wait for work: " + percent(facts.nothing) + " of the time none had any",
                   "Observe it while it has more work.");
    if (facts.is_compared() && facts.is_short)
        return say("The runs are too short: " + duration(report.points.back().cpu()) + " of CPU time",
                   "Give it more work.");
    if (facts.is_compared())
        return say("Not found: no rule explains the loss",
                   "See where CPU time and waiting go: thrum stat --html FILE.");
    return {};
}

} // namespace thrum::stat
