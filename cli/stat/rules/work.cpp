// SPDX-License-Identifier: Apache-2.0
//
// The rules of how the work is divided: a fixed time, one thread alone, more threads than cores, input and output.
#include "stat/rules/rule.hpp"

#include <algorithm>
#include <cmath>

#include "stat/facts.hpp"
#include "stat/origins.hpp"
#include "stat/rules/findings.hpp"
#include "stat/working.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

// As long with any number of threads, to the hundredth, a whole number of half seconds, and CPU time that grows with them.
bool has_fixed_time(const Facts &facts) {
    constexpr double kUnit = 0.5, kLate = 0.02; // seconds
    constexpr double kAlike = 1.02, kGrown = 1.5;
    if (!facts.is_compared() || facts.report.is_rated || facts.inflation < kGrown)
        return false;
    double shortest = facts.few->wall.median, longest = shortest;
    for (const Point &point : facts.report.points) {
        shortest = std::min(shortest, point.wall.median);
        longest = std::max(longest, point.wall.median);
    }
    const double whole = std::round(shortest / kUnit) * kUnit;
    return whole > 0 && longest <= kAlike * shortest && shortest >= whole - kLate / 4 &&
           longest <= kAlike * whole + kLate;
}

} // namespace

// Wrong if the work takes a whole number of half seconds by chance with each number of threads: medium confidence, at most.
Findings fixed_time(const Facts &facts) {
    if (!has_fixed_time(facts))
        return {};
    Finding found = finding(
        "fixed-time", "The program seems to run for a fixed time, however much its threads get done",
        "Give it a fixed amount of work instead, or let --rate REGEX read its speed.", Confidence::kMedium);
    found.evidence.push_back(
        duration(facts.few->wall.median) + " with " + counted(facts.few->threads, "thread") + " and " +
        duration(facts.most->wall.median) + " with " + std::to_string(facts.most->threads) + ", at " +
        fixed(facts.inflation, 1) + "x the CPU time");
    return {found};
}

namespace {

// The program's function that the first thread spends most of its CPU time in.
Place place_of_main(const Facts &facts) {
    for (const Site &site : facts.report.burns)
        if (std::any_of(site.stack.begin(), site.stack.end(),
                        [](const Frame &frame) { return frame.is_user && frame.function == "main"; }))
            return place_of(site.stack);
    return {};
}

constexpr double kAlone = 0.25; // of the time: a single thread had something to do
constexpr double kByOne =
    0.7; // of that: the same one. Where they alternate they keep each other from something
constexpr double kNothing =
    0.25; // of the time, in which none had: work comes at a rate, and one is enough for it

constexpr double kLargest = 1.5; // the largest share, to the mean

struct Shares {
    unsigned threads = 0;          // that share the work: those beside the first one
    double largest = 0;            // seconds of CPU time
    double all = 0;                // of all of them
    bool is_largest_alone = false; // it was at work for longer than all others
    double mean() const { return threads > 0 ? all / threads : 0; }
};

// Of the threads that the program made; what its first thread does is no share.
Shares shares_of(const Report &report) {
    Shares shares;
    double last = 0, last_of_others = 0; // when they last ran
    for (const Thread *thread : working_threads(report.threads)) {
        if (thread->id == report.process)
            continue;
        double ran_until = thread->begin;
        for (const Thread::Span &span : thread->spans)
            if (span.doing == Doing::kRunning || span.doing == Doing::kRunnable)
                ran_until = std::max(ran_until, span.end);
        shares.threads++;
        shares.all += thread->cpu;
        if (thread->cpu > shares.largest) {
            last_of_others = std::max(last_of_others, last);
            shares.largest = thread->cpu;
            last = ran_until;
        } else {
            last_of_others = std::max(last_of_others, ran_until);
        }
    }
    shares.is_largest_alone = last > last_of_others;
    return shares;
}

constexpr double kNearlyAll = 0.8; // of the CPU time: what the other threads do is to begin, and to wait

bool is_work_of_one(const std::vector<Thread> &threads) {
    double largest = 0, all = 0;
    for (const Thread &thread : threads) {
        largest = std::max(largest, thread.cpu);
        all += thread.cpu;
    }
    return largest >= kNearlyAll * all;
}

// Others that keep a thread from a CPU leave another alone with the work, and one run does not show which of the two it was. Nor do a
// few looks.
Confidence confidence_of_alone(const Facts &facts) {
    const double looks = facts.alone * facts.report.sampled_wall * facts.report.rate;
    if (!facts.is_compared() && facts.report.rate > 0 && looks < kFewSamples)
        return Confidence::kLow;
    if (facts.is_busy)
        return facts.is_compared() ? Confidence::kMedium : Confidence::kLow;
    return facts.is_compared() ? Confidence::kHigh : Confidence::kMedium;
}

} // namespace

// Wrong if the thread with the most CPU time does something else than the others, as one that prepares their work: then it is
// sequential, and the advice would not help. It has to be one of several that the program made, and the last at work.
Findings unequal(const Facts &facts) {
    if (facts.is_short || facts.is_busy || facts.alone < kAlone || facts.alone_by_one < kByOne ||
        facts.nothing > kNothing)
        return {};
    const Shares shares = shares_of(facts.report);
    if (shares.threads < 2 || shares.largest < kLargest * shares.mean() || !shares.is_largest_alone)
        return {};
    const double part = shares.largest / shares.all;
    Finding found =
        finding("unequal",
                "The work is divided unequally: one of " + std::to_string(shares.threads) + " threads does " +
                    percent(part) + " of it",
                "Divide it into smaller parts, and let each thread take the next one when it is done.",
                facts.is_compared() && has_lost(facts) ? Confidence::kHigh : Confidence::kMedium,
                origins_of(facts.report).begun);
    found.evidence.push_back("CPU time of the thread with the most " + duration(shares.largest) + ", " +
                             fixed(shares.largest / shares.mean(), 1) + "x the mean of the " +
                             std::to_string(shares.threads));
    found.evidence.push_back(percent(facts.alone) + " of the time only one thread had work");
    return {found};
}

// Wrong if the others wait for what that thread happens to have, and nothing tells: then threads do so by turns. Or if there is
// no more work: then for some of the time no thread has any. One
// run does not tell whether a program whose other threads only wait, as helpers do, is made for one thread.
Findings sequential(const Facts &facts) {
    const bool many =
        facts.is_compared() || facts.report.points.empty() || facts.report.points.back().most_threads > 1;
    const bool has_little_to_do = facts.voluntary_rate >= kHandOvers; // it keeps waiting for something
    if (!many || has_little_to_do || facts.is_short || facts.alone < kAlone || facts.threads < 2 ||
        facts.alone_by_one < kByOne || facts.nothing > kNothing || !unequal(facts).empty())
        return {};
    const Place place = place_of_main(facts);
    const bool may_be_meant = !facts.is_compared() && is_work_of_one(facts.report.threads);
    Finding found = may_be_meant
                        ? finding("sequential", "One thread alone does the work" + at_place(place),
                                  "Share the work out to more threads, if it is not meant for one.",
                                  Confidence::kLow, place)
                        : finding("sequential", "One thread alone does a part of the work" + at_place(place),
                                  "Parallelise that part, or overlap it with the other threads' work.",
                                  confidence_of_alone(facts), place);
    found.evidence.push_back(percent(facts.alone) + " of the time only one thread had work");
    if (facts.speedup > 0 && !facts.is_busy && facts.ideal > 1) {
        const double part = (facts.ideal / facts.speedup - 1) / (facts.ideal - 1);
        found.evidence.push_back("a speedup of " + fixed(facts.speedup, 2) +
                                 "x means, by Amdahl's law, that " + percent(std::clamp(part, 0.0, 1.0)) +
                                 " of the work is sequential");
    }
    return {found};
}

namespace {

// What the runs of a point take where others leave the machine alone, at least: they may have kept it from all that they used
// of its CPUs, but hardly more of these than of those that the program may not use.
double free_time(const Report &report, const Point &point) {
    const double processors = std::max({1U, report.machine.processors, report.host_processors});
    return point.wall.low * std::max(0.0, 1 - point.load.taken() / processors);
}

constexpr double kCrowded = 1.1;   // threads that want a CPU, to cores: more than these
constexpr double kManyThreads = 4; // likewise, of one run
constexpr double kWorse = 1.05;    // time with more threads than cores to the best time

} // namespace

// Wrong if something else is dearer with more threads, such as memory: then it is so before there are more than cores. Or if
// few of them want a CPU at a time, however many there are.

Findings oversubscribed(const Facts &facts) {
    const Report &report = facts.report;
    if (facts.threads <= facts.cores || facts.is_short || facts.lock_share >= kLockShareAlone)
        return {};
    double best = 0, one_each = 0; // with any number of threads up to the cores, and with the most of these
    for (const Point &point : report.points)
        if (point.threads <= facts.cores) {
            best = best <= 0 ? point.wall.median : std::min(best, point.wall.median);
            one_each = point.wall.median;
        }
    if (facts.wanting < kCrowded * facts.cores)
        return {};
    const double want = facts.wanting / facts.cores;
    const double most = facts.is_compared() ? free_time(report, *facts.most) : 0;
    // What is lost before there are more threads than cores has another cause, and so the rest of it may have.
    const bool worse = !facts.is_busy && best > 0 && most > kWorse * one_each &&
                       most - one_each >= one_each - best && share_without_cpu(report) >= kWithoutCpu;
    const bool crowded = !facts.is_compared() && !facts.is_busy && want >= kManyThreads;
    if (!worse && !crowded)
        return {};
    const std::string number = counted(facts.cores, "thread");
    Finding found =
        finding("oversubscribed",
                "More threads than cores: " + fixed(facts.wanting, 1) + " want to run, on " +
                    counted(facts.cores, "core"),
                "Run " + number + ", one per core.", worse ? Confidence::kMedium : Confidence::kLow);
    found.evidence.push_back(without_cpu_evidence(report));
    if (worse)
        found.evidence.push_back(counted(facts.threads, "thread") + " take " +
                                 fixed(facts.most->wall.median / best, 2) +
                                 "x the time of the best number up to " + counted(facts.cores, "core"));
    return {found};
}

namespace {

Place place_of_input(const Report &report) {
    for (const Site &site : report.others)
        if (is_input_output(site))
            return place_of(site.stack);
    return {};
}

} // namespace

// Wrong if threads wait for input that others send only now and then: that is left out where threads wait for messages alone. It
// accuses nothing.
Findings io_bound(const Facts &facts) {
    const double usable = std::min(facts.threads, facts.cores);
    const bool is_idle = facts.is_without_messages; // rather than waiting for what it needs
    if (is_idle || facts.io_share < kInputOutput || facts.parallelism > kLittleCpu * usable)
        return {};
    const Place place = place_of_input(facts.report);
    Finding found =
        finding("io-bound", "Threads wait for input and output" + at_place(place),
                "More threads or CPUs do not help beyond the speed of the device or the other side.",
                facts.io_share >= 0.8 ? Confidence::kHigh : Confidence::kMedium, place);
    found.evidence.push_back(percent(facts.io_share) + " of the threads' active time; " +
                             fixed(facts.parallelism, 2) + " CPUs used");
    return {found};
}

} // namespace thrum::stat
