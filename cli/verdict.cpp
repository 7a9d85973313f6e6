// SPDX-License-Identifier: Apache-2.0
//
// From medians to one plain sentence (comparison.hpp). The rules, on R = wall time without / with, pair by pair:
//
//   fewer than 5 pairs                             inconclusive, whatever they show
//   the interval of R's median within 1 +- 3 %     no difference: there is none worth speaking of
//   the interval above 1, or below                 faster, or slower
//   otherwise                                      inconclusive: R may be 1, and it may be far from it
//
// Memory and tasks have a line each, by the same rules but within 1 +- 10 %: of the peak, or of the mean where only that
// differs.
//
// Of two commands the sentences are about B, and R is the time of A to that of B.
//
// thrum-compare(1) tells the user the same.
#include <algorithm>
#include <cmath>

#include "comparison.hpp"
#include "tools/text.hpp"

namespace thrum {

namespace {

constexpr std::size_t kFewest = 5;     // pairs; all on one side of 1 by chance: 1 in 16
constexpr double kSame = 1.03;         // up to this ratio, two times are called the same
constexpr double kSameFootprint = 1.1; // likewise for memory and tasks
constexpr double kBusyShare = 0.1;     // of all CPUs, used by others: worth a mention
constexpr double kStolenShare = 0.02;  // likewise, taken by the hypervisor
constexpr double kPreempted =
    10; // involuntary switches a second, from which on others take CPUs from the program
constexpr double kHardlyRuns = 0.05;   // CPUs used, up to which it does not matter how many others use
constexpr double kFewThreads = 16;     // whose creation cannot be what costs time
constexpr double kLoadingCost = 0.005; // seconds; what costs more than this is not the loading of a library
constexpr double kMoreSwitches = 1.25;

std::string range(double low, double high) {
    return times(low) + " to " + times(high);
}

std::string ends_of(double low, double high) {
    return times(low) == times(high) ? times(low) : "between " + times(low) + " and " + times(high);
}

std::string as_fast(const Interval &ratio) {
    return ends_of(ratio.low, ratio.high) + " as fast";
}

// The subject of a sentence, and a verb; of one program without and with the cache the subject is understood.
std::string of_b(const Summary &summary, const char *verb) {
    return summary.is_of_two ? std::string("B ") + verb + " " : "";
}

// "it creates 4 threads, none of which was reused (user stack 4)"; empty where that is not known.
std::string threads_line(const Summary &summary) {
    if (!summary.threads)
        return "";
    if (*summary.threads < 0.5)
        return "it creates no threads";
    std::string line = "it creates " + counted(*summary.threads, "thread");
    if (summary.reused.value_or(0) >= 0.5)
        return line;
    line += ", and none could be reused";
    return summary.not_reused.empty() ? line : line + " (" + summary.not_reused + ")";
}

std::string with_reason(const std::string &line, const std::string &reason) {
    return reason.empty() ? line : line + ": " + reason;
}

// Others used the machine, and took CPUs from the program: one that sleeps, or has a CPU to itself, is not in their way. What
// the hypervisor takes is not seen as a switch.
bool is_busy(const Summary &summary, const Load &load, unsigned processors) {
    double switches = 0, used = 0; // a second; CPUs
    for (const Arm arm : {kWithout, kWith}) {
        const double wall = summary.wall.arms[arm].median;
        if (wall <= 0)
            continue;
        switches = std::max(switches, summary.involuntary.arms[arm].median / wall);
        used = std::max(used, summary.cpu.arms[arm].median / wall);
    }
    if (used < kHardlyRuns)
        return false;
    const bool is_stolen = load.stolen >= kStolenShare * processors;
    return is_stolen || (load.others.value_or(0) >= kBusyShare * processors && switches >= kPreempted);
}

std::string why_same(const Summary &summary) {
    const std::string threads = threads_line(summary);
    const bool many = summary.reused.value_or(0) >= kFewThreads;
    return many ? threads + " in " + duration(summary.wall.arms[kWithout].median) : threads;
}

// What is known, and no guesses.
std::string why_slower(const Summary &summary) {
    const double cost = summary.wall.arms[kWith].median - summary.wall.arms[kWithout].median;
    std::string why;
    if (summary.threads && summary.reused.value_or(0) < kFewThreads) {
        why = threads_line(summary);
        if (cost > 0 && cost < kLoadingCost)
            why += "; loading the cache costs " + duration(cost) + " a run";
    }
    const Row &switches = summary.switches;
    if (why.empty() && switches.arms[kWith].median > kMoreSwitches * switches.arms[kWithout].median)
        why = fixed(switches.arms[kWith].median, 0) + " context switches instead of " +
              fixed(switches.arms[kWithout].median, 0);
    return why.empty() ? "" : " (" + why + ")";
}

std::string why_inconclusive(const Summary &summary, const Load &load, unsigned processors) {
    const std::string between = of_b(summary, "is") + as_fast(summary.wall.ratio);
    if (is_busy(summary, load, processors))
        return "the machine was busy (" + load_line(load, processors) + "); " + between;
    return between + "; more runs (-n " + std::to_string(4 * summary.wall.ratio.count) + ") may tell";
}

// CPU time tells what a program leaves to others. It is worth a line where it says something else than wall time.
void note_cpu(const Summary &summary, Verdict &verdict) {
    const Interval &cpu = summary.cpu.ratio;
    if (cpu.count < kFewest || verdict.kind == Verdict::kNone)
        return;
    if (cpu.low > kSame)
        verdict.notes.push_back("CPU time: " + of_b(summary, "takes") + times(cpu.median) + " less (" +
                                range(cpu.low, cpu.high) + ")");
    else if (cpu.high < 1 / kSame)
        verdict.notes.push_back("CPU time: " + of_b(summary, "takes") + times(1 / cpu.median) + " as much (" +
                                times(1 / cpu.high) + " to " + times(1 / cpu.low) + ")");
}

enum class Change { kUnknown, kAlike, kMore, kLess };

Change change_of(const Interval &ratio) {
    if (ratio.count < kFewest)
        return Change::kUnknown;
    if (ratio.high < 1 && ratio.median < 1 / kSameFootprint)
        return Change::kMore;
    if (ratio.low > 1 && ratio.median > kSameFootprint)
        return Change::kLess;
    return ratio.low >= 1 / kSameFootprint && ratio.high <= kSameFootprint ? Change::kAlike
                                                                           : Change::kUnknown;
}

// What is measured in bytes, and what is counted.
struct Amount {
    const char *much, *less;
};

std::string changed_line(Change change, const Interval &ratio, const Amount &amount, const char *when) {
    if (change == Change::kLess)
        return times(ratio.median) + " " + amount.less + " " + when + " (" + range(ratio.low, ratio.high) +
               ")";
    return times(1 / ratio.median) + " as " + amount.much + " " + when + " (" +
           range(1 / ratio.high, 1 / ratio.low) + ")";
}

// `what`: "memory". Nothing where no run was looked at.
std::string judge_footprint(const Summary &summary, const char *what, const Amount &amount, const Row &peak,
                            const Row &mean) {
    if (peak.ratio.count == 0 && mean.ratio.count == 0)
        return "";
    const std::string begin = std::string(what) + ": ", has = begin + of_b(summary, "has");
    const Change at_peak = change_of(peak.ratio), in_mean = change_of(mean.ratio);
    if (at_peak == Change::kMore || at_peak == Change::kLess)
        return has + changed_line(at_peak, peak.ratio, amount, "at the peak");
    if (in_mean == Change::kMore || in_mean == Change::kLess)
        return has + changed_line(in_mean, mean.ratio, amount, "in the mean");
    if (at_peak == Change::kAlike && (in_mean == Change::kAlike || mean.ratio.count == 0))
        return begin + "no difference";
    const Interval &ratio = at_peak == Change::kUnknown && peak.ratio.count != 0 ? peak.ratio : mean.ratio;
    const std::string range =
        of_b(summary, "has") + ends_of(1 / ratio.high, 1 / ratio.low) + " as " + amount.much;
    if (ratio.count < kFewest) // of more pairs, in which a run was too short to be looked at
        return begin + "inconclusive: known of " + counted(static_cast<double>(ratio.count), "pair") +
               " of runs, and it takes " + std::to_string(kFewest) + " to tell (so far " + range + ")";
    return begin + "inconclusive; " + range;
}

Verdict judge_wall(const Summary &summary, const Load &load, unsigned processors) {
    const Interval &ratio = summary.wall.ratio;
    if (ratio.count == 0)
        return {Verdict::kNone, "nothing was compared", {}, {}, {}};
    if (ratio.count < kFewest)
        return {Verdict::kInconclusive,
                "inconclusive: " + counted(static_cast<double>(ratio.count), "pair") +
                    " of runs, and it takes " + std::to_string(kFewest) + " to tell (so far " +
                    of_b(summary, "is") + as_fast(ratio) + ")",
                {},
                {},
                {}};
    if (ratio.low >= 1 / kSame && ratio.high <= kSame)
        return {Verdict::kSame, with_reason("no difference", why_same(summary)), {}, {}, {}};
    if (ratio.low > 1)
        return {Verdict::kFaster, of_b(summary, "is") + times(ratio.median) + " faster", {}, {}, {}};
    if (ratio.high < 1)
        return {Verdict::kSlower,
                of_b(summary, "is") + "slower: " + times(1 / ratio.median) + why_slower(summary),
                {},
                {},
                {}};
    Verdict verdict{
        Verdict::kInconclusive, "inconclusive: " + why_inconclusive(summary, load, processors), {}, {}, {}};
    if (summary.threads && *summary.threads < kFewThreads)
        verdict.notes.push_back(threads_line(summary) + ", so little difference is to be expected");
    return verdict;
}

} // namespace

std::string times(double ratio) {
    return fixed(ratio, ratio < 1.995 ? 2 : ratio < 9.95 ? 1 : 0) + "x";
}

Verdict judge(const Summary &summary, const Load &load, unsigned processors) {
    Verdict verdict = judge_wall(summary, load, processors);
    if (verdict.kind != Verdict::kNone) {
        verdict.memory =
            judge_footprint(summary, "memory", {"much", "less"}, summary.peak_memory, summary.mean_memory);
        verdict.tasks =
            judge_footprint(summary, "tasks", {"many", "fewer"}, summary.peak_tasks, summary.mean_tasks);
    }
    note_cpu(summary, verdict);
    const bool said = verdict.line.find("the machine was busy") != std::string::npos;
    if (verdict.kind != Verdict::kNone && !said && is_busy(summary, load, processors))
        verdict.notes.push_back("the machine was busy: " + load_line(load, processors));
    return verdict;
}

} // namespace thrum
