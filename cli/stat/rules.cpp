// SPDX-License-Identifier: Apache-2.0
//
// The table of rules (rules.hpp). They are tried from top to bottom. A rule that explains what was lost ends the
// search for the weaker ones below it: a program that waits for a hidden lock also has threads without a CPU now and
// then, and reporting both helps no user.
#include "stat/rules.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "stat/facts.hpp"
#include "stat/nameless.hpp"
#include "stat/names.hpp"
#include "stat/origins.hpp"
#include "stat/verdict_text.hpp"
#include "text.hpp"

namespace thrum::stat {

namespace {

// --- thresholds ---------------------------------------------------------------------------------------

// Of the time in which threads were active, spent in waiting for locks: with a sweep that shows a loss, and without.
constexpr double kLockShare = 0.05, kLockShareAlone = 0.15;
constexpr double kExactRate = 2000;    // waits for a second of CPU time, where they were counted
constexpr double kHighLockShare = 0.3; // and so much of it that nothing else need be looked for
constexpr double kMostlyLocking = 0.6; // of CPU time, in a lock's calls
constexpr std::uint64_t kFewSamples = 20;
// Of waits for locks, that are seen or counted: of fewer, each may be chance.
constexpr std::uint64_t kFewWaits = 5;
constexpr double kFewCounted = 200;
constexpr double kCulprit = 0.25;    // of lock waits: worth a finding
constexpr double kMainCulprit = 0.6; // of lock waits: the one to blame
constexpr double kBurned = 0.15;     // of CPU time: a lock that is fought for without waiting
constexpr double kInflated = 1.3;    // CPU time of the most threads to that of the fewest
constexpr double kWithin = 0.75; // of one thread's CPU time under one lock: that lock is around everything
constexpr double kOneAtATime = 1.35; // CPUs used, up to which one thread at a time may have worked
constexpr double kQueued = 0.6;      // of the other threads, waiting for one lock on average
constexpr double kHandOvers =
    5000; // voluntary switches for a second of CPU time, from which on a queue is a convoy
constexpr double kHandOver =
    30e-6; // seconds of CPU time in the lock's calls for each of them: more, and few hand it over
constexpr double kHandOverSwitches = 30; // or so many times what a switch takes, where that takes longer
constexpr double kRarelyTaken =
    0.05; // of the CPU time of the fewest threads, in the lock's calls: less does not show
constexpr double kAsleep = 0.5; // of the looks at threads that wait for a lock: its holder sleeps
constexpr double kAsleepInCalm = 0.25,
                 kCalm = 0.1;       // likewise where few CPUs are used; CPUs that hardly count
constexpr double kChurnRate = 200;  // threads a second, as seen
constexpr double kChurnLife = 0.05; // seconds that most of them lived
constexpr std::size_t kChurnThreads = 20;
constexpr double kMaking = 20e-6;   // seconds of CPU time that making and ending one takes, about
constexpr double kDearChurn = 0.04; // of CPU time, by that: worth saving
constexpr double kSpins = 0.3,
                 kSpinsOne = 0.1;     // of CPU time, in a loop that hardly ran with the fewest threads
constexpr double kYields = 0.05;      // of CPU time, in sched_yield() and its like
constexpr double kYieldRate = 5000;   // involuntary ones, which time slices do not explain
constexpr double kDisturbedMore = 10; // and on a busy machine, to those with the fewest threads
constexpr double kShared = 1.4;       // CPU time of threads that have a core each, to that of the fewest
constexpr double kUserBound = 0.8;    // of CPU time outside the kernel
constexpr double kMissed = 2;         // cache misses for each instruction, to those with the fewest threads
constexpr double kCoherency = 0.01;   // of the Universal Scalability Law
constexpr double kAlone = 0.25;       // of the time: a single thread had something to do
constexpr double kInputOutput = 0.5;  // of active time
constexpr double kLittleCpu = 0.5;    // of the CPUs that the threads could have used
constexpr double kRunnable = 0.3;     // of the time that threads wanted a CPU, without one
constexpr double kManyThreads = 4;    // threads that want a CPU, to cores
constexpr double kWorse = 1.05;       // time with more threads than cores to the best time
constexpr double kAsBusy = 0.5;       // of the busiest process's CPU time: did as much of the work
constexpr double kMostWork = 0.5;     // of CPU time, in processes that the program started
constexpr double kIdle = 0.2;         // CPUs used by a program that has nothing to do

using Findings = std::vector<Finding>;

// --- what findings are made of ------------------------------------------------------------------------

std::string percent(double share) {
    return fixed(100 * share, share > 0 && share < 0.0095 ? 1 : 0) + " %";
}

Finding finding(const char *rule, const std::string &cause, const std::string &fix, Confidence confidence,
                const Place &place = {}) {
    return {rule, cause, fix, confidence, place.function, place.file, place.line, {}};
}

std::string at_place(const Place &place) {
    if (place.function.empty())
        return place.code.empty() ? "" : " at " + place.code;
    return " in " + place.function + "()";
}

// "libc.so.6" is libc to a reader.
std::string library_name(const std::string &module) {
    const std::string name = module.substr(0, module.find(".so"));
    return name.compare(0, 8, "ld-linux") == 0 ? "the dynamic linker" : name.empty() ? "a library" : name;
}

// " (prog.c:12)"; empty where that is not known.
std::string source_of(const Place &place) {
    return place.file.empty() ? "" : " (" + place.file + ":" + std::to_string(place.line) + ")";
}

// "they begin in task() (prog.c:12)"; nothing where that is not known.
void add_place_evidence(const std::string &what, const Place &place, Finding &found) {
    if (!place.function.empty())
        found.evidence.push_back(what + " in " + place.function + "()" + source_of(place));
    else if (!place.code.empty())
        found.evidence.push_back(what + " at " + place.code);
}

bool has_lost(const Facts &facts) {
    const Outcome outcome = facts.report.outcome;
    return outcome == Outcome::kSlower || outcome == Outcome::kNoFaster || facts.inflation >= kInflated;
}

bool waits_count(const Facts &facts) {
    const bool by_count = facts.exact_rate >= kExactRate && facts.exact_waits >= kFewCounted &&
                          // cheap ones, perhaps, that nothing is lost by
                          (has_lost(facts) || facts.exact_share >= kLockShareAlone);
    return by_count || (samples_of(facts.report.waits) >= kFewWaits &&
                        facts.lock_share >= (has_lost(facts) ? kLockShare : kLockShareAlone));
}

// Of one run, which has nothing to compare with: threads wait for it now and then, and take and give it back most of all. Where
// they do little else they wait little, since it is free again before they sleep.
bool is_fought_for(const Facts &facts, const Culprit &culprit) {
    const bool waits = culprit.burned >= kHighLockShare && facts.lock_share >= kLockShare;
    const bool takes =
        culprit.kind == Culprit::kOwn && culprit.burned >= kMostlyLocking && culprit.samples >= kFewSamples;
    return !facts.is_compared() && (waits || takes);
}

// Fought for without waiting: CPU time that was not spent there with the fewest threads.
bool burns_count(const Facts &facts, const Culprit &culprit) {
    const double grown = culprit.burned * std::max(1.0, facts.inflation) - culprit.burned_one;
    return facts.inflation >= kInflated && facts.has_profile(kFewSamples) && culprit.burned >= kBurned &&
           grown >= kBurned;
}

std::string cpu_evidence(const Facts &facts) {
    return "CPU time " + fixed(facts.inflation, 1) + "x that of " + counted(facts.few->threads, "thread") +
           (facts.kernel_share ? ", " + percent(*facts.kernel_share) + " of it in the kernel" : "");
}

void add_lock_evidence(const Facts &facts, const Culprit &culprit, Finding &found) {
    if (culprit.samples > 0)
        found.evidence.push_back(
            percent(culprit.wait_share) + " of " +
            counted(static_cast<double>(culprit.samples) / std::max(culprit.wait_share, 1e-9), "sample") +
            " of lock waits; waiting for locks was " + percent(facts.lock_share) +
            " of the threads' active time" +
            (facts.is_without_messages ? ", waits for messages left out" : ""));
    if (culprit.burned > 0)
        found.evidence.push_back(percent(culprit.burned) + " of CPU time" +
                                 (facts.report.burns_one.empty()
                                      ? ""
                                      : ", " + percent(culprit.burned_one) + " with the fewest threads"));
    if (facts.inflation > 0)
        found.evidence.push_back(cpu_evidence(facts));
    if (culprit.lock == nullptr)
        return;
    const LockUse &use = *culprit.lock;
    if (use.waits)
        found.evidence.push_back(counted(static_cast<double>(*use.waits), "wait") + " for it counted, " +
                                 duration(use.seconds) +
                                 (facts.report.exact_estimated ? " by estimate" : " in all"));
    if (!use.lock.text.empty())
        found.evidence.push_back("lock: " + use.lock.text +
                                 (use.waiters_most > 0 ? "; " + fixed(use.waiters_mean, 1) +
                                                             " threads waited for it on average, " +
                                                             std::to_string(use.waiters_most) + " at most"
                                                       : ""));
}

Confidence confidence_of(const Facts &facts, const Culprit &culprit) {
    const bool main = culprit.wait_share >= kMainCulprit && culprit.samples >= kFewSamples;
    const bool lost = facts.lock_share >= kHighLockShare || facts.inflation >= kInflated || has_lost(facts);
    if (main && lost)
        return Confidence::kHigh;
    return main || burns_count(facts, culprit) ? Confidence::kMedium : Confidence::kLow;
}

// --- threads that are stuck --------------------------------------------------------------------------

std::string thread_text(std::int32_t id) {
    return "thread " + std::to_string(id);
}

// Of several in one object each by where it is there: "accounts+0x30".
std::string exact_name(const Lock &lock) {
    if (lock.symbol.empty() || lock.offset == 0)
        return name_of_lock(lock);
    Frame at;
    at.module = lock.symbol;
    at.offset = lock.offset;
    return frame_name(at);
}

// "thread 12 waits for pot_lock in put() (prog.c:21), which thread 13 has".
std::string stuck_text(const Report &report, const Stuck &stuck) {
    if (stuck.is_join)
        return thread_text(stuck.thread) + " waits for " + thread_text(stuck.holder) + " to end";
    const Site *site = stuck.site < report.waits.size() ? &report.waits[stuck.site] : nullptr;
    const Place place = site != nullptr ? place_of(site->stack) : Place{};
    const bool has_lock = site != nullptr && site->lock < report.locks.size();
    std::string text = thread_text(stuck.thread) + " waits for " +
                       (has_lock ? exact_name(report.locks[site->lock].lock) : "a lock") + at_place(place) +
                       source_of(place);
    if (report.deadlock.kind == Deadlock::kOwnerEnded)
        return text + ", which " + thread_text(stuck.holder) + " held when it ended";
    if (stuck.holder > 0)
        text += ", which " +
                (stuck.holder == stuck.thread ? "it holds itself" : thread_text(stuck.holder) + " holds");
    return text;
}

struct DeadlockText {
    std::string cause;
    const char *fix;
};

DeadlockText deadlock_text(const Deadlock &deadlock) {
    constexpr const char *kInOrder =
        "Take locks in one order everywhere, or with std::scoped_lock; hold none "
        "while waiting for threads.";
    const std::size_t threads = deadlock.threads.size();
    switch (deadlock.kind) {
    case Deadlock::kOwnerEnded:
        return {"a thread ended while it held the lock",
                "Unlock it on every way out; a robust mutex reports this to the next thread."};
    case Deadlock::kAll:
        return {"all threads wait, and none is left to release a lock",
                "Release locks on every way out, and take them in one order everywhere."};
    default: break;
    }
    if (threads == 1)
        return {"the thread already holds the lock that it waits for",
                "Lock it once: split off the code that runs with the lock held, or make the lock recursive."};
    return {counted(static_cast<double>(threads), "thread") + " wait for each other", kInOrder};
}

Findings deadlock(const Facts &facts) {
    constexpr std::size_t kTold = 8;
    const Report &report = facts.report;
    const std::vector<Stuck> &threads = report.deadlock.threads;
    if (threads.empty())
        return {};
    const std::size_t site = threads.front().site;
    const Place place = site < report.waits.size() ? place_of(report.waits[site].stack) : Place{};
    const DeadlockText text = deadlock_text(report.deadlock);
    Finding found =
        finding("deadlock", "Deadlock" + at_place(place) + ": " + text.cause, text.fix,
                report.deadlock.kind == Deadlock::kAll ? Confidence::kMedium : Confidence::kHigh, place);
    for (std::size_t i = 0; i < std::min(kTold, threads.size()); i++)
        found.evidence.push_back(stuck_text(report, threads[i]));
    if (threads.size() > kTold)
        found.evidence.push_back("and " + std::to_string(threads.size() - kTold) + " more");
    found.evidence.push_back("none of them ran for " + duration(report.deadlock.seconds) + ", up to the end");
    return {found};
}

// --- processes ----------------------------------------------------------------------------------------

// One process may wait for another's input, and be in the way of no work.
bool accuses(const Finding &finding) {
    return finding.rule != "scales" && finding.rule != "inconclusive" && finding.rule != "io-bound";
}

std::string process_name(const Report &child) {
    return "process " + std::to_string(child.process) + " (" + child.command.front() + ")";
}

// The first that is found in the one that used the most CPU time, of those in which something is. `part`: of the CPU time of the
// busiest; what is found in one that used less says nothing about the work.
Findings of_a_child(const Facts &facts, double part, bool (*is_wanted)(const Finding &)) {
    for (const Report &child : facts.report.children)
        if (!child.findings.empty() && is_wanted(child.findings.front()) &&
            child.own_cpu >= part * facts.report.children.front().own_cpu) {
            Finding found = child.findings.front();
            found.cause = "In " + process_name(child) + ": " + found.cause;
            found.evidence.insert(found.evidence.begin(), "this is of " + process_name(child) +
                                                              " alone, sampled for " +
                                                              duration(child.sampled_wall));
            return {found};
        }
    return {};
}

std::string look_closer(const Report &report) {
    if (report.children.empty())
        return "Examine one of them: thrum stat -p PID, or run that program under thrum stat.";
    return "See what " + process_name(report.children.front()) +
           " did, below; to compare numbers of threads, run that program under thrum stat --sweep.";
}

// What its own threads wait for, most likely for the others, says nothing of the work.
Findings children(const Facts &facts) {
    constexpr std::size_t kTold = 4;
    const Report &report = facts.report;
    if (facts.children_share < kMostWork) // what is stuck does no work
        return of_a_child(facts, 0, [](const Finding &finding) { return finding.rule == "deadlock"; });
    const std::size_t seen = report.processes.empty() ? 0 : report.processes.size() - 1;
    Finding found =
        finding("children",
                "The work is in processes that the program started: " + percent(facts.children_share) +
                    " of CPU time",
                look_closer(report), Confidence::kHigh);
    found.evidence.push_back(duration(report.children_cpu) + " of CPU time in processes that it started, " +
                             duration(report.own_cpu) + " in its own");
    for (std::size_t i = 1; i <= std::min(kTold, seen); i++) {
        const Process &process = report.processes[i];
        found.evidence.push_back("process " + std::to_string(process.id) + " (" + process.name +
                                 "): " + duration(process.cpu) + " of CPU time, " +
                                 counted(process.threads, "thread"));
    }
    if (seen > kTold)
        found.evidence.push_back("and " + counted(static_cast<double>(seen - kTold), "process", "processes") +
                                 " more");
    Findings all = of_a_child(facts, kAsBusy, accuses);
    all.insert(all.begin(), found);
    return all;
}

// --- locks --------------------------------------------------------------------------------------------

// Those that enough of the waiting, or of the CPU time that was lost, goes to.
std::vector<const Culprit *> guilty(const Facts &facts, bool (*is_kind)(const Facts &, const Culprit &)) {
    std::vector<const Culprit *> list;
    for (const Culprit &culprit : facts.culprits) {
        const bool by_waits =
            (waits_count(facts) || is_fought_for(facts, culprit)) && culprit.wait_share >= kCulprit;
        if ((by_waits || burns_count(facts, culprit)) && is_kind(facts, culprit))
            list.push_back(&culprit);
    }
    return list;
}

Finding lock_finding(const Facts &facts, const Culprit &culprit, const char *rule, const std::string &cause,
                     const std::string &fix) {
    Finding found = finding(rule, cause, culprit.fix.empty() ? fix : culprit.fix,
                            confidence_of(facts, culprit), culprit.place);
    add_lock_evidence(facts, culprit, found);
    found.explains =
        std::max(culprit.wait_share * std::max(facts.lock_share, facts.exact_share), culprit.burned);
    if (!culprit.place.code.empty())
        found.evidence.push_back("at " + culprit.place.code +
                                 ": without debugging information its function and line are unknown");
    return found;
}

// By what is known of the function. If a thread was seen waiting for a lock in it, there is one after all.
bool without_lock(const Culprit &culprit) {
    return culprit.is_lockless && culprit.wait_share <= 0;
}

Findings hidden_locks(const Facts &facts) {
    Findings found;
    for (const Culprit *culprit :
         guilty(facts, [](const Facts &, const Culprit &one) { return one.kind == Culprit::kHidden; }))
        found.push_back(
            lock_finding(facts, *culprit, "hidden-lock",
                         (without_lock(*culprit) ? "State that all threads share, in " : "Hidden lock in ") +
                             library_name(culprit->module) + ": " + culprit->name,
                         culprit->fix));
    return found;
}

Findings allocator(const Facts &facts) {
    Findings found;
    for (const Culprit *culprit :
         guilty(facts, [](const Facts &, const Culprit &one) { return one.kind == Culprit::kAllocator; }))
        found.push_back(lock_finding(facts, *culprit, "allocator",
                                     "Threads contend for the memory allocator (" +
                                         library_name(culprit->module) + ")" + at_place(culprit->place),
                                     culprit->fix));
    return found;
}

bool is_queue(const Culprit &culprit, double threads) {
    return culprit.lock != nullptr && threads > 2 && culprit.lock->waiters_mean >= kQueued * (threads - 1);
}

// Waiters sleep for as long as the holder does, however little it does with the lock. Where hardly anything runs,
// what keeps the holder awake now and then is not what the others wait for.
bool is_seen_asleep(const Facts &facts, const Culprit &culprit) {
    const double share = facts.parallelism < kLittleCpu ? kAsleepInCalm : kAsleep;
    return culprit.lock != nullptr && culprit.lock->holder.looks >= kFewSamples &&
           culprit.lock->holder.asleep >= share;
}

// No holder computes under it: threads that do not run can neither fight for a lock nor hand it over.
bool is_held_in_calm(const Facts &facts, const Culprit &culprit) {
    return !facts.report.points.empty() && facts.parallelism < kCalm && facts.lock_share >= kHighLockShare &&
           culprit.samples >= kFewSamples;
}

bool is_held_asleep(const Facts &facts, const Culprit &culprit) {
    return culprit.kind == Culprit::kOwn &&
           (is_seen_asleep(facts, culprit) || is_held_in_calm(facts, culprit));
}

// All that one thread does is done under it, or one thread at a time does anything. On a busy machine that few CPUs were used
// shows neither.
bool is_around_everything(const Facts &facts, const Culprit &culprit) {
    if (culprit.kind == Culprit::kInterpreter)
        return true;
    if (culprit.kind != Culprit::kOwn || is_held_asleep(facts, culprit) ||
        culprit.wait_share < kMainCulprit || facts.parallelism > kOneAtATime ||
        facts.kernel_share.value_or(0) >= 1 - kUserBound)
        return false;
    const bool profiled = !facts.report.burns.empty() || !facts.report.burns_one.empty();
    if (!profiled)
        return !facts.is_busy && facts.voluntary_rate < kHandOvers;
    const Within work = facts.within(culprit.place.function);
    return work.samples >= kFewSamples && work.share >= kWithin;
}

// That threads queue up is not enough: they do so too while the holder of a lock has no CPU, for other programs' sake. Nor is
// it where a lock is taken so often that its calls show even with the fewest threads: what it protects is too short to queue for.
bool is_handed_over(const Facts &facts, const Culprit &culprit) {
    const double each = std::max(kHandOver, kHandOverSwitches * facts.report.switch_cost);
    return facts.voluntary_rate >= kHandOvers && culprit.burned <= each * facts.voluntary_rate &&
           culprit.burned_one <= kRarelyTaken;
}

bool is_convoy(const Facts &facts, const Culprit &culprit) {
    return culprit.kind == Culprit::kOwn && !is_held_asleep(facts, culprit) &&
           !is_around_everything(facts, culprit) && is_queue(culprit, facts.threads) &&
           is_handed_over(facts, culprit);
}

bool is_hot(const Facts &facts, const Culprit &culprit) {
    return culprit.kind == Culprit::kOwn && !is_held_asleep(facts, culprit) &&
           !is_around_everything(facts, culprit) && !is_convoy(facts, culprit);
}

std::string named(const Culprit &culprit) {
    return culprit.name.empty() ? "" : ": " + culprit.name;
}

const char *sleeping_text(Doing doing) {
    switch (doing) {
    case Doing::kInputOutput: return "waits for input or output";
    case Doing::kIdleWait: return "waits for something else";
    case Doing::kJoinWait: return "waits for a thread to end";
    default: return "sleeps";
    }
}

// The place to blame is where the holder sleeps.
Finding asleep_finding(const Facts &facts, const Culprit &culprit) {
    const Holder &holder = culprit.lock->holder;
    const Place place = place_of(holder.stack);
    Finding found = lock_finding(facts, culprit, "held-asleep",
                                 std::string("A lock is held while its holder ") +
                                     sleeping_text(holder.doing) + named(culprit) + at_place(place),
                                 "Release the lock before that, and take it again for the shared data.");
    add_place_evidence("threads wait for it", culprit.place, found);
    found.evidence.push_back("its holder itself slept in " + percent(holder.asleep) + " of " +
                             counted(static_cast<double>(holder.looks), "look") + " at its waiters");
    found.function = place.function;
    found.file = place.file;
    found.line = place.line;
    return found;
}

Finding calm_finding(const Facts &facts, const Culprit &culprit) {
    Finding found = lock_finding(
        facts, culprit, "held-asleep",
        "A lock is held while hardly anything runs" + named(culprit) + at_place(culprit.place),
        "Find out what holds it, and why: another process, or a thread that waits for something else.");
    found.confidence = std::min(found.confidence, Confidence::kMedium);
    found.evidence.push_back(fixed(facts.parallelism, 2) + " CPUs used");
    return found;
}

Findings held_asleep(const Facts &facts) {
    Findings found;
    for (const Culprit *culprit : guilty(facts, is_held_asleep))
        found.push_back(is_seen_asleep(facts, *culprit) ? asleep_finding(facts, *culprit)
                                                        : calm_finding(facts, *culprit));
    return found;
}

Findings one_lock(const Facts &facts) {
    Findings found;
    for (const Culprit *culprit : guilty(facts, is_around_everything)) {
        const bool python = culprit->kind == Culprit::kInterpreter;
        found.push_back(lock_finding(
            facts, *culprit, "one-lock",
            python ? culprit->name + ": one thread runs Python code at a time"
                   : "One lock around everything" + named(*culprit) + at_place(culprit->place),
            python
                ? "Use processes (multiprocessing), or do the work in code that releases the GIL."
                : "Hold it only where data is shared, or split the data and give each part its own lock."));
        found.back().evidence.push_back(fixed(facts.parallelism, 2) + " CPUs used by " +
                                        counted(facts.threads, "thread"));
    }
    return found;
}

Findings convoy(const Facts &facts) {
    Findings found;
    for (const Culprit *culprit : guilty(facts, is_convoy)) {
        found.push_back(lock_finding(facts, *culprit, "convoy",
                                     "Lock convoy" + named(*culprit) + at_place(culprit->place),
                                     "Take it less often, for more work at a time; without priority "
                                     "inheritance or fairness it is not handed to a sleeping thread."));
        found.back().evidence.push_back(
            fixed(facts.voluntary_rate, 0) +
            " voluntary context switches per second of CPU time: every hand-over of the lock costs a switch");
    }
    return found;
}

Findings hot_mutex(const Facts &facts) {
    Findings found;
    for (const Culprit *culprit : guilty(facts, is_hot))
        found.push_back(lock_finding(
            facts, *culprit, "hot-mutex",
            (culprit->is_openmp ? "Hot " + culprit->name : "Hot mutex" + named(*culprit)) +
                at_place(culprit->place),
            "Collect per thread and merge occasionally; or split the data, and the lock with it."));
    return found;
}

// --- threads ------------------------------------------------------------------------------------------

struct Churn {
    double life = 0;         // of half of them, at most
    bool is_average = false; // of all of them instead
    bool is_churn = false;
};

// On average, by how many there were at a time (Little's law); 0: not known. Most of those that live for less than a look
// are not seen, but where the kernel tells of each they are counted.
double mean_life(const Report &report) {
    const auto created = static_cast<double>(report.threads_created);
    if (report.rate <= 0 || report.samples == 0 || report.threads_created < kChurnThreads * 5)
        return 0;
    return static_cast<double>(report.samples) / report.rate / created;
}

// Those that are all there at one time, however late that is, are not made and ended all the time.
bool are_together(const Report &report) {
    return !report.points.empty() && report.threads_created < 2 * report.points.back().most_threads;
}

Churn churn_of(const Report &report) {
    if (are_together(report))
        return {};
    std::vector<double> lives;
    for (const Thread &thread : report.threads)
        lives.push_back(thread.end - thread.begin);
    const bool seen = lives.size() >= kChurnThreads;
    const double mean = mean_life(report);
    if (!seen && mean <= 0)
        return {};
    const auto created = static_cast<double>(report.threads_created);
    const double rate = report.sampled_wall > 0 ? created / report.sampled_wall : 0;
    const bool many = rate >= kChurnRate || lives.size() >= kChurnThreads * 5;
    // Threads that live long are seen more easily.
    const bool is_average = mean > 0 && (!seen || (report.creations_counted && mean < median(lives)));
    const double life = is_average ? mean : median(lives);
    return {life, is_average, life < kChurnLife && many};
}

// Of CPU time; nothing where that is not known.
std::optional<double> share_of_making(const Report &report) {
    const double cpu = report.points.empty() ? 0 : report.points.back().cpu();
    if (cpu <= 0)
        return std::nullopt;
    return static_cast<double>(report.threads_created) * kMaking / cpu;
}

Findings thread_churn(const Facts &facts) {
    const Report &report = facts.report;
    const Churn churn = churn_of(report);
    if (!churn.is_churn)
        return {};
    const auto created = static_cast<double>(report.threads_created);
    const Origins origins = origins_of(report);
    const Place &maker = origins.made;
    Finding found =
        finding("thread-churn",
                "Threads are created and end all the time" + (maker.is_known() ? at_place(maker) : ""),
                "Keep a pool of threads; `thrum compare` measures what reuse gains without a change.",
                report.creations_counted ? Confidence::kHigh : Confidence::kMedium, origins.best());
    found.explains = std::min(1.0, share_of_making(report).value_or(1));
    const double look = report.rate > 0 ? 1 / report.rate : 0;
    found.evidence.push_back(
        counted(created, "thread") + (report.creations_counted ? " created" : " seen") + " in " +
        duration(report.sampled_wall) +
        (churn.is_average ? "; they lived for " + duration(churn.life) + " on average"
                          : "; half of those seen lived less than " + duration(std::max(churn.life, look))));
    if (facts.kernel_share)
        found.evidence.push_back(percent(*facts.kernel_share) + " of CPU time in the kernel");
    add_place_evidence("they are created", maker, found);
    add_place_evidence("they are joined", origins.joined, found);
    add_place_evidence("they begin", origins.begun, found);
    return {found};
}

// What threads that are made all the time cost they cost one thread as well, so that a program may scale for all that.
bool is_dear_churn(const Facts &facts) {
    return share_of_making(facts.report).value_or(0) >= kDearChurn;
}

bool is_yield(const std::string &leaf) {
    return leaf == "sched_yield" || leaf == "pthread_yield" || leaf == "thrd_yield" ||
           leaf == "pthread_spin_lock";
}

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
                    yields ? Confidence::kHigh : Confidence::kMedium, burner.place);
        found.evidence.push_back(percent(burner.share) + " of CPU time there, " + percent(burner.share_one) +
                                 " with the fewest threads");
        found.explains = yields ? yielded(facts, burner) : burner.share;
        return found;
    }
    return std::nullopt;
}

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
Place place_of_yielding(const Facts &facts) {
    for (const Burner &burner : facts.burners)
        if (is_yield(burner.leaf) && burner.share > 0)
            return burner.place;
    return {};
}

// A single thread waits for no other; and with next to no CPU time a few switches make any rate.
Findings busy_wait(const Facts &facts) {
    if (facts.threads < 2 || facts.is_short)
        return {};
    std::optional<Finding> found = spinning(facts);
    if (!found)
        found = spinning_at_barrier(facts);
    // Each new thread takes a CPU from another, too.
    const bool switches = gives_up(facts) && !churn_of(facts.report).is_churn;
    if (!found && !switches)
        return {};
    if (!found)
        found = finding("busy-wait", "Threads wait by yielding their CPU again and again (sched_yield)",
                        "Wait with a mutex and a condition variable, or run no more threads than cores.",
                        Confidence::kMedium, place_of_yielding(facts));
    if (facts.inflation > 0)
        found->evidence.push_back(cpu_evidence(facts));
    found->evidence.push_back(fixed(facts.involuntary_rate, 0) +
                              " involuntary context switches per second of CPU time");
    found->evidence.push_back(counted(facts.threads, "thread") + " on " + counted(facts.cores, "core"));
    return {*found};
}

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

// --- memory -------------------------------------------------------------------------------------------

const Burner *hottest_own(const Facts &facts) {
    const auto found = std::find_if(facts.burners.begin(), facts.burners.end(),
                                    [](const Burner &burner) { return !burner.place.function.empty(); });
    return found == facts.burners.end() ? nullptr : &*found;
}

// Beside other programs CPU time is dearer, too, and threads that have a core each are few and far between: then it has to be
// more than any machine makes up for.
bool has_dear_memory(const Facts &facts) {
    if (facts.is_busy && facts.report.outcome != Outcome::kSlower)
        return false;
    return facts.core_inflation >= kShared && facts.lock_share < kLockShareAlone &&
           facts.kernel_share.value_or(0) <= 1 - kUserBound;
}

void add_memory_evidence(const Facts &facts, Finding &found) {
    found.evidence.push_back("with a core for each thread, the same work takes " +
                             fixed(facts.core_inflation, 1) +
                             "x the CPU time, outside the kernel and without waiting");
    if (const Burner *burner = hottest_own(facts))
        found.evidence.push_back(percent(burner->share) + " of CPU time" + at_place(burner->place));
    if (facts.slowed > 0)
        found.evidence.push_back("by the processor's counters " + fixed(facts.slowed, 1) +
                                 "x the cycles per instruction, and " + fixed(facts.misses_grown, 1) +
                                 "x the cache misses");
}

Findings coherency(const Facts &facts) {
    const std::optional<Scaling> &scaling = facts.report.scaling;
    if (!scaling || scaling->coherency < kCoherency || facts.is_busy || facts.is_short ||
        facts.lock_share >= kLockShareAlone)
        return {};
    const Burner *burner = hottest_own(facts);
    Finding found =
        finding("coherency", "Threads write to the same memory all the time",
                "Write to shared variables less often: per-thread copies that are merged, or batches.",
                facts.core_inflation >= kShared ? Confidence::kMedium : Confidence::kLow,
                burner == nullptr ? Place{} : burner->place);
    found.evidence.push_back(facts.report.scaling_text);
    if (facts.core_inflation > 0)
        add_memory_evidence(facts, found);
    return {found};
}

Findings false_sharing(const Facts &facts) {
    if (!has_dear_memory(facts))
        return {};
    const Burner *burner = hottest_own(facts);
    const bool is_counted = facts.misses_grown >= kMissed && facts.slowed >= kShared;
    Finding found = finding(
        "false-sharing",
        "Threads write to the same cache lines" + (burner == nullptr ? "" : at_place(burner->place)) +
            (is_counted ? "" : " (a hint)"),
        "Give each thread's data its own cache lines (alignas(64)), and each thread its own copy of shared "
        "counters.",
        is_counted ? Confidence::kMedium : Confidence::kLow, burner == nullptr ? Place{} : burner->place);
    add_memory_evidence(facts, found);
    found.evidence.push_back(
        std::string("not told apart") + (is_counted ? "" : " without hardware counters") +
        ": variables side by side in one cache line, a variable that all write, too little memory bandwidth, "
        "and CPUs that share a core without the virtual machine saying so");
    return {found};
}

// --- work ---------------------------------------------------------------------------------------------

// The program's function that the first thread spends most of its CPU time in.
Place place_of_main(const Facts &facts) {
    for (const Site &site : facts.report.burns)
        if (std::any_of(site.stack.begin(), site.stack.end(),
                        [](const Frame &frame) { return frame.is_user && frame.function == "main"; }))
            return place_of(site.stack);
    return {};
}

Findings sequential(const Facts &facts) {
    const bool many =
        facts.is_compared() || facts.report.points.empty() || facts.report.points.back().most_threads > 1;
    const bool has_little_to_do = facts.voluntary_rate >= kHandOvers; // it keeps waiting for something
    if (!many || has_little_to_do || facts.is_short || facts.alone < kAlone || facts.threads < 2)
        return {};
    const Place place = place_of_main(facts);
    Finding found = finding("sequential", "One thread alone does a part of the work" + at_place(place),
                            "Parallelise that part, or overlap it with the other threads' work.",
                            facts.is_busy ? Confidence::kMedium : Confidence::kHigh, place);
    found.evidence.push_back(percent(facts.alone) + " of the time only one thread had work");
    if (facts.speedup > 0 && !facts.is_busy && facts.ideal > 1) {
        const double part = (facts.ideal / facts.speedup - 1) / (facts.ideal - 1);
        found.evidence.push_back("a speedup of " + fixed(facts.speedup, 2) +
                                 "x means, by Amdahl's law, that " + percent(std::clamp(part, 0.0, 1.0)) +
                                 " of the work is sequential");
    }
    return {found};
}

// What the runs of a point take where others leave the machine alone, at least: they may have kept it from all that they used
// of its CPUs, but hardly more of these than of those that the program may not use.
double free_time(const Report &report, const Point &point) {
    const double processors = std::max({1U, report.machine.processors, report.host_processors});
    const double others = point.load.others.value_or(0) + point.load.stolen;
    return point.wall.low * std::max(0.0, 1 - others / processors);
}

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
    const double want = facts.wanting / facts.cores;
    const auto of = [&report](Doing what) { return report.doing[static_cast<int>(what)]; };
    const double wanted = of(Doing::kRunning) + of(Doing::kRunnable);
    const double without = wanted > 0 ? of(Doing::kRunnable) / wanted : 0;
    const double most = facts.is_compared() ? free_time(report, *facts.most) : 0;
    // What is lost before there are more threads than cores has another cause, and so the rest of it may have.
    const bool worse = !facts.is_busy && best > 0 && most > kWorse * one_each &&
                       most - one_each >= one_each - best && without >= kRunnable;
    const bool crowded = !facts.is_compared() && !facts.is_busy && want >= kManyThreads;
    if (!worse && !crowded)
        return {};
    const std::string number = counted(facts.cores, "thread");
    Finding found =
        finding("oversubscribed",
                "More threads than cores: " + fixed(facts.wanting, 1) + " want to run, on " +
                    counted(facts.cores, "core"),
                "Run " + number + ", one per core.", worse ? Confidence::kMedium : Confidence::kLow);
    found.evidence.push_back(percent(without) + " of the time that threads were runnable they had no CPU");
    if (worse)
        found.evidence.push_back(counted(facts.threads, "thread") + " take " +
                                 fixed(facts.most->wall.median / best, 2) +
                                 "x the time of the best number up to " + counted(facts.cores, "core"));
    return {found};
}

Place place_of_input(const Report &report) {
    for (const Site &site : report.others)
        if (is_input_output(site))
            return place_of(site.stack);
    return {};
}

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

// --- nothing is wrong, or nothing can be said ---------------------------------------------------------

Findings scales(const Facts &facts) {
    const Outcome outcome = facts.report.outcome;
    if (outcome == Outcome::kScales || outcome == Outcome::kScalesSome) {
        const bool well = outcome == Outcome::kScales;
        Finding found =
            finding("scales", well ? "Nothing: the threads scale" : "Nothing that stands out",
                    well ? "None needed." : "See where the CPU time goes: thrum stat --html FILE.",
                    well ? Confidence::kHigh : Confidence::kLow);
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

// Where speedup shows no loss.
Findings of_innocent(const Facts &facts) {
    Findings found = is_dear_churn(facts) ? thread_churn(facts) : Findings{};
    return found.empty() ? scales(facts) : found;
}

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
    if (!report.points.empty() && facts.parallelism < kIdle && facts.io_share < kInputOutput)
        return say("The threads have little to do: " + fixed(facts.parallelism, 2) + " CPUs used",
                   "Observe it while it has work.");
    if (facts.is_compared() && facts.is_short)
        return say("The runs are too short: " + duration(report.points.back().cpu()) + " of CPU time",
                   "Give it more work.");
    if (facts.is_compared())
        return say("Not found: no rule explains the loss",
                   "See where CPU time and waiting go: thrum stat --html FILE.");
    return {};
}

// --- the table ----------------------------------------------------------------------------------------

enum Weight { kEnds, kExplains, kHints, kRest }; // what is found ends the search for those behind

struct Rule {
    const char *name;
    Findings (*find)(const Facts &);
    Weight weight;
};

const Rule kRules[] = {
    {"deadlock", deadlock, kEnds},
    {"children", children, kEnds},
    {"hidden-lock", hidden_locks, kExplains},
    {"allocator", allocator, kExplains},
    {"held-asleep", held_asleep, kExplains},
    {"one-lock", one_lock, kExplains},
    {"convoy", convoy, kExplains},
    {"hot-mutex", hot_mutex, kExplains},
    {"thread-churn", thread_churn, kExplains},
    {"busy-wait", busy_wait, kExplains},
    {"fixed-time", fixed_time, kHints},
    {"io-bound", io_bound, kHints},
    {"sequential", sequential, kHints},
    {"coherency", coherency, kHints},
    {"false-sharing", false_sharing, kHints},
    {"oversubscribed", oversubscribed, kHints},
    {"scales", scales, kRest},
    {"inconclusive", inconclusive, kRest},
};

// Much, a part, or little of what is lost; finer differences are a matter of chance.
int rank_of(double explains) {
    return explains >= kHighLockShare ? 2 : explains >= kBurned ? 1 : 0;
}

// What explains more first, then the surest, and of equals the one that the table has first.
void order(Findings &findings) {
    const auto rank = [](const Finding &one) {
        return std::pair(rank_of(one.explains), static_cast<int>(one.confidence));
    };
    std::stable_sort(findings.begin(), findings.end(),
                     [rank](const Finding &a, const Finding &b) { return rank(a) > rank(b); });
}

Findings search(const Facts &facts) {
    Findings found;
    for (const Weight weight : {kEnds, kExplains, kHints, kRest}) {
        Findings here;
        for (const Rule &rule : kRules)
            if (rule.weight == weight && (weight != kRest || here.empty()))
                for (Finding &one : rule.find(facts))
                    here.push_back(std::move(one));
        order(here);
        std::move(here.begin(), here.end(), std::back_inserter(found));
        if (!found.empty())
            break;
    }
    return found;
}

} // namespace

bool is_churning(const Report &report) {
    return churn_of(report).is_churn;
}

std::vector<std::string> rule_names() {
    std::vector<std::string> names;
    for (const Rule &rule : kRules)
        names.emplace_back(rule.name);
    return names;
}

void conclude(Report &report, const std::string &failure) {
    const Facts facts(report);
    report.outcome = outcome_of(facts, failure);
    const bool innocent = report.outcome == Outcome::kScales;
    report.findings = innocent && report.deadlock.threads.empty() ? of_innocent(facts) : search(facts);
    const bool is_stuck = !report.findings.empty() && report.findings.front().rule == "deadlock";
    if (is_stuck && !report.deadlock.threads.empty()) // not one of its children
        report.outcome = Outcome::kStuck;
    const bool unsure = report.outcome == Outcome::kInconclusive;
    const bool said = !report.findings.empty() && report.findings.back().rule == "inconclusive";
    if (unsure && !said)
        for (Finding &one : inconclusive(facts))
            report.findings.push_back(std::move(one));
    for (Finding &one : report.findings)
        if (!failure.empty() && one.rule == "inconclusive")
            one = finding("inconclusive", "The program failed", "Find out why first: its times mean nothing.",
                          Confidence::kLow);
    report.verdict = verdict_text(facts, failure);
    for (std::string &sentence : nameless_libraries(report))
        report.warnings.push_back(std::move(sentence));
}

} // namespace thrum::stat
