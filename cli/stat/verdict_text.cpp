// SPDX-License-Identifier: Apache-2.0
#include "stat/verdict_text.hpp"

#include <algorithm>

#include "comparison.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

constexpr double kSlower = 0.95, kNoFaster = 1.15;           // speedups
constexpr double kScalesWell = 0.75;                         // of the ideal
constexpr double kSurelyAsFast = 0.8, kSurelyNoFaster = 1.3; // what an interval around 1 must stay within
constexpr double kNeverFaster = 1.05;                        // and one below 1, whose other end is slower
constexpr double kProven = 1.1;   // CPU time that no number of free cores makes up for
constexpr double kSameTime = 1.1; // times that a busy machine makes of one

// No machine would have made it faster, whatever the others did. Unless it takes the same time with any number of threads: then
// it may run for a fixed time, and use the CPU time that others leave to it.
bool is_slower_anyhow(const Facts &facts) {
    const bool is_same_time = facts.speedup > 1 / kSameTime && facts.speedup < kSameTime;
    return facts.inflation >= kProven * facts.ideal && !is_same_time;
}

std::string threads_text(const Point &point) {
    return counted(point.threads, "thread");
}

// "takes" or "take".
std::string takes(const Point &point) {
    return point.threads == 1 ? " takes " : " take ";
}

// " (1.9x to 2.1x)"; empty where both ends read like the middle.
std::string interval_text(double middle, double low, double high) {
    const bool is_wide = times(low) != times(middle) || times(high) != times(middle);
    return is_wide ? " (" + times(low) + " to " + times(high) + ")" : "";
}

std::string ratio_text(const Facts &facts) {
    return threads_text(*facts.most) + takes(*facts.most) + times(1 / facts.speedup) + " the time of " +
           std::to_string(facts.few->threads) +
           interval_text(1 / facts.speedup, 1 / facts.gain.high, 1 / facts.gain.low);
}

std::string best_text(const Facts &facts) {
    const auto &points = facts.report.points;
    const auto best = std::min_element(points.begin(), points.end(), [](const Point &a, const Point &b) {
        return a.wall.median < b.wall.median;
    });
    if (&*best == facts.most || &*best == facts.few)
        return "";
    return "; the best are " + std::to_string(best->threads) + " (" +
           times(facts.few->wall.median / best->wall.median) + " as fast)";
}

std::string gain_text(const Facts &facts) {
    return threads_text(*facts.most) + (facts.most->threads == 1 ? " is " : " are ") + times(facts.speedup) +
           " as fast as " + std::to_string(facts.few->threads) +
           interval_text(facts.speedup, facts.gain.low, facts.gain.high) + ", of " + times(facts.ideal) +
           " possible";
}

bool accuses(const Finding &finding) {
    return finding.rule != "scales" && finding.rule != "inconclusive" && finding.rule != "io-bound";
}

// What a sweep can tell: absent or unneeded threads do not disturb others.
std::string suspicion_text(const Finding &finding) {
    if (finding.rule == "sequential" || finding.rule == "unequal")
        return "one thread alone had work for a part of the time; whether more would be faster";
    if (finding.rule == "children")
        return "the processes that it started did the work; whether more would be faster";
    if (finding.rule == "affinity" || finding.rule == "quota")
        return "threads had no CPU for a part of the time; whether fewer would be as fast";
    if (finding.rule == "nested")
        return "more threads work at once than there are cores; whether fewer would be faster";
    if (finding.rule == "oversubscribed")
        return "there are more threads than cores; whether fewer would be faster";
    return "threads get in each other's way; whether fewer would be faster";
}

std::string one_run_text(const Facts &facts) {
    const Report &report = facts.report;
    const std::string used = fixed(facts.parallelism, 2) + " of " + counted(facts.cores, "CPU");
    if (report.points.empty())
        return "Nothing was measured.";
    if (report.interrupted && report.sampled_wall <= 0)
        return "Interrupted before threads were observed: one run used " + used + ".";
    const std::string hazy = facts.is_busy ? " (The machine was busy.)" : "";
    const bool guilty = !report.findings.empty() && accuses(report.findings.front());
    constexpr double kOneThread = 1.02; // CPUs, with what a time's rounding makes of one
    const bool is_alone = report.points.front().most_threads <= 1 && report.threads_created == 0 &&
                          report.processes.size() <= 1 && facts.parallelism <= kOneThread;
    if (is_alone && !guilty)
        return "One run, with a single thread: it used " + used + "." + hazy;
    if (guilty && report.findings.front().rule == "deadlock") // one of its own is another outcome
        return "One run: threads of a process that it started wait for something that will never happen." +
               hazy;
    if (guilty)
        return "One run: " + suspicion_text(report.findings.front()) + ", a --sweep can tell." + hazy;
    const std::string begin = std::string("One run: its ") +
                              (report.processes.size() > 1 ? "processes" : "threads") + " used " + used +
                              ", and ";
    if (!report.waits.empty())
        return begin + "waited for locks; a --sweep can tell whether that costs anything." + hazy;
    return begin + "one run shows nothing that hinders them." + hazy;
}

} // namespace

std::string busy_text(const Facts &facts) {
    const Report &report = facts.report;
    const Point &point = *facts.hindered;
    const std::string load = point.load.others ? load_line(point.load, report.machine.processors)
                                               : "other programs waited for CPUs too";
    return load + ", and " + (point.threads > 0 ? threads_text(point) : "the program") + " got " +
           fixed(point.parallelism(), 2) + " of the " + fixed(facts.hindered_wanted, 2) +
           (point.threads == 1  ? " that it wanted"
            : point.threads > 0 ? " that they wanted"
                                : " that it wanted");
}

Outcome outcome_of(const Facts &facts, const std::string &failure) {
    if (!failure.empty() || facts.report.points.empty())
        return Outcome::kInconclusive;
    if (!facts.is_compared())
        return Outcome::kOneRun;
    if (facts.speedup <= 0)
        return Outcome::kInconclusive;
    if (facts.is_too_short)
        return Outcome::kTooShort;
    if (facts.is_busy)
        return is_slower_anyhow(facts) ? Outcome::kSlower : Outcome::kInconclusive;
    const bool is_slower = facts.speedup < kSlower && facts.gain.high < 1;
    if (facts.ideal <= 1 && !is_slower)
        return Outcome::kInconclusive;
    if (is_slower)
        return Outcome::kSlower;
    const bool is_as_fast = facts.speedup >= kSlower && facts.speedup < kNoFaster &&
                            facts.gain.low >= kSurelyAsFast && facts.gain.high <= kSurelyNoFaster;
    if (is_as_fast || facts.gain.high < kNeverFaster)
        return Outcome::kNoFaster;
    if (facts.speedup < kNoFaster || facts.gain.low <= 1)
        return Outcome::kNoDifference;
    return facts.speedup >= kScalesWell * facts.ideal ? Outcome::kScales : Outcome::kScalesSome;
}

std::string verdict_text(const Facts &facts, const std::string &failure) {
    const Report &report = facts.report;
    switch (report.outcome) {
    case Outcome::kSlower:
        if (facts.is_busy)
            return "Threads make this program SLOWER: " + threads_text(*facts.most) + " need " +
                   times(facts.inflation) + " the CPU time of " + std::to_string(facts.few->threads) +
                   ". (The machine was busy: times are less reliable.)";
        return "Threads make this program SLOWER: " + ratio_text(facts) + best_text(facts) + ".";
    case Outcome::kNoFaster:
        return "Threads do not make this program faster: " + ratio_text(facts) + best_text(facts) + ".";
    case Outcome::kScalesSome:
        return "Threads help, with losses: " + gain_text(facts) + best_text(facts) + ".";
    case Outcome::kScales: return "Threads help: " + gain_text(facts) + best_text(facts) + ".";
    case Outcome::kOneRun: return one_run_text(facts);
    case Outcome::kTooShort:
        return "Too short to tell: the runs took " + duration(facts.few->wall.median) + " with " +
               threads_text(*facts.few) + " and " + duration(facts.most->wall.median) + " with " +
               std::to_string(facts.most->threads) + ".";
    case Outcome::kNoDifference:
        return "No difference that these runs can show: " + threads_text(*facts.most) +
               (facts.most->threads == 1 ? " is " : " are ") + times(facts.gain.low) + " to " +
               times(facts.gain.high) + " as fast as " + std::to_string(facts.few->threads) + ".";
    case Outcome::kStuck: {
        const std::size_t threads = report.deadlock.threads.size();
        return "The program is stuck: " + counted(static_cast<double>(threads), "thread") +
               (threads == 1 ? " waits" : " wait") + " for something that will never happen.";
    }
    default: break;
    }
    if (!failure.empty())
        return "Inconclusive: " + failure + ".";
    if (facts.is_busy)
        return "Inconclusive: the machine was busy (" + busy_text(facts) + ").";
    if (facts.is_compared() && facts.ideal <= 1)
        return "Inconclusive: there is only one core.";
    return "Inconclusive: there are too few runs.";
}

} // namespace thrum::stat
