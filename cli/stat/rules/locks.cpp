// SPDX-License-Identifier: Apache-2.0
//
// The rules of locks: hidden ones of libraries, the allocator's, and those of the program. Each culprit (facts.hpp) is of one
// kind at most: held asleep, held by a thread that others keep from the CPUs, around everything, handed over in a convoy, or hot.
#include "stat/rules/rule.hpp"

#include <algorithm>
#include <optional>

#include "stat/facts.hpp"
#include "stat/rules/findings.hpp"
#include "stat/rules/grain.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

constexpr double kExactRate = 2000; // waits for a second of CPU time, where they were counted
// Of waits for locks, that are seen or counted: of fewer, each may be chance.
constexpr std::uint64_t kFewWaits = 5;
constexpr double kFewCounted = 200;

bool waits_count(const Facts &facts) {
    const bool by_count = facts.exact_rate >= kExactRate && facts.exact_waits >= kFewCounted &&
                          // cheap ones, perhaps, that nothing is lost by
                          (has_lost(facts) || facts.exact_share >= kLockShareAlone);
    return by_count || (samples_of(facts.report.waits) >= kFewWaits &&
                        facts.lock_share >= (has_lost(facts) ? kLockShare : kLockShareAlone));
}

constexpr double kMostlyLocking = 0.6; // of CPU time, in a lock's calls

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

constexpr double kMainCulprit = 0.6; // of lock waits: the one to blame

constexpr double kAsleep = 0.5;  // of the looks at threads that wait for a lock: its holder sleeps
constexpr double kFreeCpu = 0.9; // of the CPUs that the threads can use, at most: one was free now and then

// One run has nothing to compare with: waiting may be all that there is to do, as for workers that share a queue. Work was
// kept waiting if the holder computed meanwhile, and a CPU was free for a waiter. Wrong where the free CPU was not so then: in
// a program that first computes with one thread, and later with all.
bool is_work_kept_waiting(const Facts &facts, const Culprit &culprit) {
    const double usable = std::min(facts.threads, facts.cores);
    return !facts.is_busy && culprit.lock != nullptr && culprit.lock->holder.looks >= kFewSamples &&
           culprit.lock->holder.asleep < kAsleep && facts.parallelism <= kFreeCpu * usable;
}

// Its waiters raise it, as no other thread ran when it was raised.
bool is_lock_by_looks(const Facts &facts, const Culprit &culprit) {
    return culprit.lock != nullptr && culprit.lock->lock.is_semaphore &&
           facts.report.posts.count(culprit.lock->lock.address) == 0;
}

constexpr double kOneAtATime = 1.35; // CPUs used, up to which one thread at a time may have worked

// As many threads as there are take as long as one, and use one CPU: for that a language's one lock need not be seen waited for
// often. More CPU time alone does not tell it.
bool is_one_at_a_time(const Facts &facts, const Culprit &culprit) {
    const bool is_no_faster =
        facts.report.outcome == Outcome::kSlower || facts.report.outcome == Outcome::kNoFaster;
    return culprit.kind == Culprit::kInterpreter && facts.is_compared() && is_no_faster && !facts.is_busy &&
           facts.parallelism <= kOneAtATime && culprit.wait_share >= kMainCulprit;
}

Confidence confidence_by_waits(const Facts &facts, const Culprit &culprit) {
    const bool main = culprit.wait_share >= kMainCulprit && culprit.samples >= kFewSamples;
    const bool lost = facts.lock_share >= kHighLockShare || facts.inflation >= kInflated || has_lost(facts);
    if (main && lost && (facts.is_compared() || is_work_kept_waiting(facts, culprit)))
        return Confidence::kHigh;
    const bool probable = main || burns_count(facts, culprit) || is_one_at_a_time(facts, culprit);
    return probable ? Confidence::kMedium : Confidence::kLow;
}

constexpr double kIdle = 0.2; // CPUs: threads that use no more together do not compute with a lock held

// Threads that do not run can neither fight for a lock nor hand it over. Those of an idle pool wait for it now and then, while
// its holder has no CPU for other programs' sake: then nothing is lost by the lock.
bool is_idle(const Facts &facts) {
    return !facts.report.points.empty() && facts.parallelism < kIdle;
}

// An interpreter's lock is taken by every thread that wakes up, however little it does then.
bool is_of_idle_interpreter(const Facts &facts, const Culprit &culprit) {
    return culprit.kind == Culprit::kInterpreter && !facts.is_compared() && is_idle(facts);
}

Confidence confidence_of(const Facts &facts, const Culprit &culprit) {
    const bool is_doubtful = (culprit.lock != nullptr && culprit.lock->lock.may_be_tasks) ||
                             is_of_idle_interpreter(facts, culprit);
    const bool is_known = !is_lock_by_looks(facts, culprit);
    const Confidence most = is_doubtful           ? Confidence::kLow
                            : is_known            ? Confidence::kHigh
                            : facts.is_compared() ? Confidence::kMedium
                                                  : Confidence::kLow;
    return std::min(most, confidence_by_waits(facts, culprit));
}

constexpr double kOutranked = 0.5;  // of the looks at its waiters: one had much more priority than the holder
constexpr double kKeptOff = 0.5;    // of the time that such a holder wanted a CPU: it had none
constexpr double kLongEnough = 0.1; // threads that wait for such a lock on average

// Its holder wants a CPU and gets none, since threads go first that the program itself gave more priority; and one that
// may go first waits for the lock.
bool is_inverted(const Facts &facts, const Culprit &culprit) {
    if (culprit.kind != Culprit::kOwn || culprit.lock == nullptr)
        return false;
    const Holder &holder = culprit.lock->holder;
    return holder.looks >= kFewSamples && holder.asleep < kAsleep && holder.outranked >= kOutranked &&
           holder.without_cpu >= kKeptOff && culprit.seconds >= kLongEnough * facts.report.sampled_wall;
}

constexpr double kCulprit = 0.25; // of lock waits: worth a finding

// Those that enough of the waiting, or of the CPU time that was lost, goes to. A queue's lock is fought for because of what is
// handed over, which is a cause of its own (grain.cpp).
std::vector<const Culprit *> guilty(const Facts &facts, bool (*is_kind)(const Facts &, const Culprit &)) {
    std::vector<const Culprit *> list;
    const std::optional<TinyTasks> tiny = tiny_tasks(facts);
    for (const Culprit &culprit : facts.culprits) {
        const bool by_waits =
            (waits_count(facts) || is_fought_for(facts, culprit) || is_inverted(facts, culprit)) &&
            culprit.wait_share >= kCulprit;
        const bool is_queues =
            tiny && culprit.kind == Culprit::kOwn && tiny->functions.count(culprit.place.function) != 0;
        if ((by_waits || burns_count(facts, culprit)) && !is_queues && is_kind(facts, culprit) &&
            !is_by_turns(facts, culprit))
            list.push_back(&culprit);
    }
    return list;
}

Finding lock_finding(const Facts &facts, const Culprit &culprit, const char *rule, const std::string &cause,
                     const std::string &fix) {
    Finding found = finding(rule, cause, culprit.fix.empty() ? fix : culprit.fix,
                            confidence_of(facts, culprit), culprit.place);
    add_lock_evidence(facts, culprit, found);
    if (is_lock_by_looks(facts, culprit))
        found.evidence.push_back("its own waiters raise it: its waits ended while no other thread ran");
    if (culprit.lock != nullptr && culprit.lock->lock.may_be_tasks)
        found.evidence.push_back("a queue of tasks, one at a time, that its waiters pass on looks the same");
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

} // namespace

// Wrong if the function waits for something else than its lock, as for a device: such a wait is no wait for a lock. Or if it is
// called as much by one thread, which has nothing to wait for: then CPU time has not grown.
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

// Wrong if the time is the kernel's, for memory that it gives and takes: that is no wait for a lock of the allocator's.
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

namespace {

constexpr double kQueued = 0.6; // of the other threads, waiting for one lock on average

bool is_queue(const Culprit &culprit, double threads) {
    return culprit.lock != nullptr && threads > 2 && culprit.lock->waiters_mean >= kQueued * (threads - 1);
}

constexpr double kAsleepInCalm = 0.25,
                 kCalm = 0.1; // likewise where few CPUs are used; CPUs that hardly count

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
    return culprit.kind == Culprit::kOwn && !is_inverted(facts, culprit) &&
           (is_seen_asleep(facts, culprit) || is_held_in_calm(facts, culprit));
}

constexpr double kWithin = 0.75; // of one thread's CPU time under one lock: that lock is around everything

// All that one thread does is done under it, or one thread at a time does anything. On a busy machine that few CPUs were used
// shows neither.
bool is_around_everything(const Facts &facts, const Culprit &culprit) {
    if (culprit.kind == Culprit::kInterpreter)
        return true;
    if (culprit.kind != Culprit::kOwn || is_idle(facts) || is_held_asleep(facts, culprit) ||
        is_inverted(facts, culprit) || culprit.wait_share < kMainCulprit || facts.parallelism > kOneAtATime ||
        facts.kernel_share.value_or(0) >= 1 - kUserBound)
        return false;
    const bool profiled = !facts.report.burns.empty() || !facts.report.burns_one.empty();
    if (!profiled)
        return !facts.is_busy && facts.voluntary_rate < kHandOvers;
    const Within work = facts.within(culprit.place.function);
    return work.samples >= kFewSamples && work.share >= kWithin;
}

constexpr double kHandOver =
    30e-6; // seconds of CPU time in the lock's calls for each of them: more, and few hand it over
constexpr double kHandOverSwitches = 30; // or so many times what a switch takes, where that takes longer
constexpr double kRarelyTaken =
    0.05; // of the CPU time of the fewest threads, in the lock's calls: less does not show

// That threads queue up is not enough: they do so too while the holder of a lock has no CPU, for other programs' sake. Nor is
// it where a lock is taken so often that its calls show even with the fewest threads: what it protects is too short to queue for.
bool is_handed_over(const Facts &facts, const Culprit &culprit) {
    const double each = std::max(kHandOver, kHandOverSwitches * facts.report.switch_cost);
    return facts.voluntary_rate >= kHandOvers && culprit.burned <= each * facts.voluntary_rate &&
           culprit.burned_one <= kRarelyTaken;
}

bool is_convoy(const Facts &facts, const Culprit &culprit) {
    return culprit.kind == Culprit::kOwn && !is_idle(facts) && !is_held_asleep(facts, culprit) &&
           !is_inverted(facts, culprit) && !is_around_everything(facts, culprit) &&
           is_queue(culprit, facts.threads) && is_handed_over(facts, culprit);
}

bool is_hot(const Facts &facts, const Culprit &culprit) {
    return culprit.kind == Culprit::kOwn && !is_idle(facts) && !is_held_asleep(facts, culprit) &&
           !is_inverted(facts, culprit) && !is_around_everything(facts, culprit) &&
           !is_convoy(facts, culprit);
}

// Memory without a name says less than what the runtime calls the lock; and so does memory of the runtime's, where that keeps
// its queues apart from the locks.
std::string named(const Culprit &culprit) {
    Frame owner;
    owner.function = culprit.lock != nullptr ? culprit.lock->lock.symbol : "";
    const bool has_symbol = !owner.function.empty() && !lock_table().is_runtime(owner);
    if (culprit.listed == nullptr || culprit.is_openmp)
        return culprit.name.empty() ? "" : ": " + culprit.name;
    return ": " + culprit.listed->name + (has_symbol ? ", " + culprit.name + "," : "");
}

std::string hot_text(const Culprit &culprit) {
    if (culprit.is_openmp)
        return "Hot " + culprit.name;
    const bool is_read = culprit.listed != nullptr && culprit.listed->kind == ListedLock::kReadLock;
    return std::string(is_read                     ? "Hot read-write lock, whose readers write one counter"
                       : culprit.listed != nullptr ? "Hot lock"
                                                   : "Hot mutex") +
           named(culprit);
}

const char *sleeping_text(Doing doing) {
    switch (doing) {
    case Doing::kInputOutput: return "waits for input or output";
    case Doing::kIdleWait: return "waits for something else";
    case Doing::kJoinWait: return "waits for a thread to end";
    default: return "sleeps";
    }
}

// A holder that waits for input or for work may wait in all others' place, as one of several servers that accept by turns:
// nothing is lost until there is more to do than one of them can. One run does not tell.
bool may_wait_by_turns(const Facts &facts, const Culprit &culprit) {
    const Doing doing = culprit.lock != nullptr ? culprit.lock->holder.doing : Doing::kRunning;
    return !facts.is_compared() && is_seen_asleep(facts, culprit) &&
           (doing == Doing::kInputOutput || doing == Doing::kIdleWait);
}

// The place to blame is where the holder sleeps.
Finding asleep_finding(const Facts &facts, const Culprit &culprit) {
    const Holder &holder = culprit.lock->holder;
    const Place place = place_of(holder.stack);
    Finding found = lock_finding(facts, culprit, "held-asleep",
                                 std::string("A lock is held while its holder ") +
                                     sleeping_text(holder.doing) + named(culprit) + at_place(place),
                                 "");
    found.fix = "Release the lock before that, and take it again for the shared data.";
    add_place_evidence("threads wait for it", culprit.place, found);
    if (may_wait_by_turns(facts, culprit)) {
        found.confidence = Confidence::kLow;
        found.evidence.push_back(
            "nothing is lost if they take turns at waiting for work: one run does not tell");
    }
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

} // namespace

namespace {

std::string thread_name(const Report &report, std::int32_t id) {
    for (const Thread &thread : report.threads)
        if (thread.id == id && !thread.name.empty())
            return "thread " + std::to_string(id) + " (" + thread.name + ") ";
    return "";
}

} // namespace

// Wrong if the holder waits for work in all waiters' place, by turns: that is left out where its call tells, and of low
// confidence in one run where it may be. Or if the holder has no CPU: then it is awake, and another rule's.
Findings held_asleep(const Facts &facts) {
    Findings found;
    for (const Culprit *culprit : guilty(facts, is_held_asleep))
        found.push_back(is_seen_asleep(facts, *culprit) ? asleep_finding(facts, *culprit)
                                                        : calm_finding(facts, *culprit));
    return found;
}

// Wrong if the holder lacks a CPU for another reason than its priority, as on a busy machine: then those that wait for it have
// no more priority than it has. Or if nothing depends on the waiters, which a program says by their priority.
Findings priority(const Facts &facts) {
    Findings found;
    for (const Culprit *culprit : guilty(facts, is_inverted)) {
        const Holder &holder = culprit->lock->holder;
        found.push_back(lock_finding(
            facts, *culprit, "priority",
            "Priority inversion: a thread of low priority holds a lock and gets no CPU" + named(*culprit) +
                at_place(culprit->place),
            "Do not work with the lock held, or give its holder the priority of its waiters; for real-time "
            "threads a mutex with PTHREAD_PRIO_INHERIT does."));
        found.back().confidence = facts.is_busy                            ? Confidence::kLow
                                  : facts.is_compared() && has_lost(facts) ? Confidence::kHigh
                                                                           : Confidence::kMedium;
        found.back().evidence.push_back(
            "its holder, " + thread_name(facts.report, holder.thread) + "with " + name_of(holder.scheduling) +
            ", had no CPU in " + percent(holder.without_cpu) +
            " of the time that it wanted one; a waiter had " + name_of(holder.waiters));
    }
    return found;
}

// Wrong if one thread at a time works for another reason: then few wait for this lock, or the work is elsewhere in the profile.
Findings one_lock(const Facts &facts) {
    Findings found;
    for (const Culprit *culprit : guilty(facts, is_around_everything)) {
        const bool python = culprit->kind == Culprit::kInterpreter;
        const char *whose = culprit->listed == nullptr ? "Python" : "the language's";
        found.push_back(lock_finding(
            facts, *culprit, "one-lock",
            python ? culprit->name + ": one thread runs " + whose + " code at a time"
                   : "One lock around everything" + named(*culprit) + at_place(culprit->place),
            python
                ? "Use processes (multiprocessing), or do the work in code that releases the GIL."
                : "Hold it only where data is shared, or split the data and give each part its own lock."));
        found.back().evidence.push_back(fixed(facts.parallelism, 2) + " CPUs used by " +
                                        counted(facts.threads, "thread"));
    }
    return found;
}

// Wrong if threads wait for work rather than for the lock, or if the holder lacks a CPU: then the lock is not handed over as
// often as it takes here, or its calls show with the fewest threads as well.
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

// Wrong if nothing is lost by the waiting: more waiters than CPUs, in a program that uses all of these. A sweep tells; one run
// is sure only if the holder computed while a CPU was free.
Findings hot_mutex(const Facts &facts) {
    Findings found;
    for (const Culprit *culprit : guilty(facts, is_hot))
        found.push_back(lock_finding(
            facts, *culprit, "hot-mutex", hot_text(*culprit) + at_place(culprit->place),
            "Collect per thread and merge occasionally; or split the data, and the lock with it."));
    return found;
}

} // namespace thrum::stat
