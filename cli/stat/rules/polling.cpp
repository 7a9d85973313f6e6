// SPDX-License-Identifier: Apache-2.0
//
// The rule of threads that sleep for a while and look again whether there is work, or whether a lock is free.
#include "stat/rules/rule.hpp"

#include <algorithm>

#include "stat/facts.hpp"
#include "stat/rules/findings.hpp"
#include "stat/working.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

constexpr double kSleepsMuch = 0.2; // of its time
constexpr double kFreeCpus = 0.9;   // of those that the threads could have used, at most: one was free
constexpr double kFewGained = 0.7;  // of the speedup that the cores allow

// Threads asleep on average, at most: they sleep by turns. One at a time is; the rest is the time from the end of its sleep until
// it has a CPU, which the accounts do not tell from sleep.
constexpr double kOneAsleep = 1.2;
// Of two threads so few are asleep on average however they sleep. By turns, both are asleep for at most this part of the time for
// which they would be by chance.
constexpr double kBothAsleep = 0.5;
// Of the time that threads sleep by turns: for so long others wait for what the sleeper has. Of two threads one waits while the
// other sleeps, which is all of that time; half of it is left for what each does without the other.
constexpr double kOthersWait = 0.5;

struct Sleepers {
    unsigned threads = 0;           // that work, and nap between
    double seconds = 0, asleep = 0; // of these threads: how long they lived, and slept
    double waiting = 0;             // and waited for each other
    double switches = 0;            // of these, those that were naps
    double both = 0,
           by_chance =
               0; // of two: seconds in which both slept, as seen, and if neither had to do with the other
    double nap() const { return switches > 0 ? asleep / switches : 0; }
    // What the one that sleeps has, the others wait for: a lock, or the next task.
    bool are_by_turns() const {
        const bool is_one_asleep = threads * asleep <= kOneAsleep * seconds;
        return is_one_asleep && waiting >= kOthersWait * asleep &&
               (threads > 2 || both <= kBothAsleep * by_chance);
    }
};

// Of the time in which it neither ran nor wanted to, by the kernel's accounts; how that is divided the looks tell. Naps that are as
// short as the time for which a thread then waits for a CPU are seldom seen themselves.
struct Blocked {
    double asleep = 0, waiting = 0; // the first in naps
    // Of its voluntary switches, naps: they are not told from the other waits, so each is taken to last as long.
    double naps = 0;
};

Blocked blocked_of(const Thread &thread) {
    double asleep = 0, waiting = 0, all = 0; // by the looks
    for (const Thread::Span &span : thread.spans) {
        const double length = span.end - span.begin;
        if (span.doing == Doing::kRunning || span.doing == Doing::kRunnable)
            continue;
        all += length;
        asleep += span.doing == Doing::kSleep ? length : 0;
        waiting += span.doing == Doing::kLockWait || span.doing == Doing::kIdleWait ? length : 0;
    }
    const double life = thread.end - thread.begin;
    const double blocked = std::clamp(life - thread.cpu - thread.run_delay, 0.0, std::max(0.0, life));
    if (all <= 0)
        return {};
    const double napped = std::max(0.0, blocked * asleep / all - thread.slept_long);
    const double others = blocked * (all - asleep) / all, sum = napped + others;
    return {napped, blocked * waiting / all,
            sum > 0 ? static_cast<double>(thread.voluntary) * napped / sum : 0};
}

// Seconds in which both were asleep, as seen; and for how long they would be if neither had to do with the other.
void add_overlap(const Thread &one, const Thread &other, Sleepers &sleepers) {
    double asleep_one = 0, asleep_other = 0;
    for (const Thread::Span &span : other.spans)
        asleep_other += span.doing == Doing::kSleep ? span.end - span.begin : 0;
    for (const Thread::Span &span : one.spans) {
        if (span.doing != Doing::kSleep)
            continue;
        asleep_one += span.end - span.begin;
        for (const Thread::Span &beside : other.spans)
            if (beside.doing == Doing::kSleep)
                sleepers.both +=
                    std::max(0.0, std::min(span.end, beside.end) - std::max(span.begin, beside.begin));
    }
    const double time = std::max(one.end, other.end) - std::min(one.begin, other.begin);
    sleepers.by_chance = time > 0 ? asleep_one * asleep_other / time : 0;
}

Sleepers sleepers_of(const Report &report) {
    Sleepers sleepers;
    std::vector<const Thread *> found;
    for (const Thread *thread : working_threads(report.threads)) {
        const Blocked blocked = blocked_of(*thread);
        const double life = thread->end - thread->begin;
        if (blocked.asleep < kSleepsMuch * life)
            continue;
        sleepers.threads++;
        sleepers.seconds += life;
        sleepers.asleep += blocked.asleep;
        sleepers.waiting += blocked.waiting;
        sleepers.switches += blocked.naps;
        found.push_back(thread);
    }
    if (found.size() == 2)
        add_overlap(*found[0], *found[1], sleepers);
    return sleepers;
}

Place place_of_sleep(const Report &report) {
    for (const Site &site : report.others) // by seconds
        if (site.doing == Doing::kSleep && place_of(site.stack).is_known())
            return place_of(site.stack);
    return {};
}

std::uint64_t looks_at_sleep(const Report &report) {
    std::uint64_t looks = 0;
    for (const Site &site : report.others)
        looks += site.doing == Doing::kSleep ? site.samples : 0;
    return looks;
}

// Times that differ too much to tell whether threads help may still tell that they do not help as much as the cores allow.
bool may_be_without_loss(const Facts &facts) {
    return facts.report.outcome == Outcome::kNoDifference && facts.gain.high >= kFewGained * facts.ideal;
}

} // namespace

// Wrong if the sleep is the work's own: a pace that each thread keeps, or a device that is asked now and then. Then more threads
// get more done, and there is no loss; so only a sweep with a loss tells. A single thread that sleeps between is a producer with
// a pace. Wrong too if the sleeper has a lock that the others wait for: then one sleeps at a time.
Findings polling(const Facts &facts) {
    const double usable = std::min(facts.threads, facts.cores);
    if (!facts.is_compared() || facts.is_busy || may_be_without_loss(facts) ||
        facts.parallelism > kFreeCpus * usable)
        return {};
    const Sleepers sleepers = sleepers_of(facts.report);
    if (sleepers.threads < 2 || looks_at_sleep(facts.report) < kFewSamples || sleepers.are_by_turns() ||
        sleepers.nap() <= 0 || sleepers.nap() > kNapMost)
        return {};
    const Place place = place_of_sleep(facts.report);
    const bool is_lock =
        has_lock_in_its_name(place.function); // written by hand, with a sleep between two tries
    Finding found = finding(
        "polling",
        std::string("Threads sleep and ") + (is_lock ? "try again to take a lock" : "look again for work") +
            at_place(place) + ", while CPUs are free",
        is_lock
            ? "Use a mutex, whose waiters are woken when it is released; hold it for less, or split the data."
            : "Wait with a condition variable, a semaphore or a futex, and wake a waiter where "
              "work is queued.",
        Confidence::kMedium, place);
    found.explains = std::min(1.0, sleepers.asleep / std::max(sleepers.seconds, 1e-9));
    found.evidence.push_back(counted(sleepers.threads, "thread") + " that did the work slept for " +
                             percent(found.explains) + " of their time, " + duration(sleepers.nap()) +
                             " each time");
    found.evidence.push_back(fixed(facts.parallelism, 2) + " CPUs used, of " + fixed(usable, 0) +
                             " that they could have used");
    return {found};
}

} // namespace thrum::stat
