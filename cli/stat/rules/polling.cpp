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
constexpr double kNap = 0.02;       // seconds: longer ones are no polling
constexpr double kFreeCpus = 0.9;   // of those that the threads could have used, at most: one was free
constexpr double kFewGained = 0.7;  // of the speedup that the cores allow

constexpr double kOneAsleep = 1.2; // threads asleep on average, at most: they sleep by turns
constexpr double kOthersWait =
    0.5; // of the time that threads sleep by turns: as long others wait for what the sleeper has

struct Sleepers {
    unsigned threads = 0;           // that work, and sleep between
    double seconds = 0, asleep = 0; // of these threads: how long they lived, and slept
    double waiting = 0;             // and waited for each other
    double switches = 0;            // of these: each nap is one
    double nap() const { return switches > 0 ? asleep / switches : 0; }
    // What the one that sleeps has, the others wait for: a lock, or the next task.
    bool are_by_turns() const {
        return threads * asleep <= kOneAsleep * seconds && waiting >= kOthersWait * asleep;
    }
};

// Of the time in which it neither ran nor wanted to, by the kernel's accounts; how that is divided the looks tell. Naps that are as short
// as the time for which a thread then waits for a CPU are seldom seen themselves.
struct Blocked {
    double asleep = 0, waiting = 0;
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
    return all > 0 ? Blocked{blocked * asleep / all, blocked * waiting / all} : Blocked{};
}

Sleepers sleepers_of(const Report &report) {
    Sleepers sleepers;
    for (const Thread *thread : working_threads(report.threads)) {
        const Blocked blocked = blocked_of(*thread);
        const double life = thread->end - thread->begin;
        if (blocked.asleep < kSleepsMuch * life)
            continue;
        sleepers.threads++;
        sleepers.seconds += life;
        sleepers.asleep += blocked.asleep;
        sleepers.waiting += blocked.waiting;
        sleepers.switches += static_cast<double>(thread->voluntary);
    }
    return sleepers;
}

Place place_of_sleep(const Report &report) {
    for (const Site &site : report.others) // by seconds
        if (site.doing == Doing::kSleep && place_of(site.stack).is_known())
            return place_of(site.stack);
    return {};
}

// Times that differ too much to tell whether threads help may still tell that they do not help as much as the cores allow.
bool may_be_without_loss(const Facts &facts) {
    return facts.report.outcome == Outcome::kNoDifference && facts.gain.high >= kFewGained * facts.ideal;
}

} // namespace

// Wrong if the sleep is the work's own: a pace that each thread keeps, or a device that is asked now and then. Then more threads get
// more done, and there is no loss; so only a sweep with a loss tells. A single thread that sleeps between is a producer with a pace.
// Wrong too if the sleeper has a lock that the others wait for: then one sleeps at a time.
Findings polling(const Facts &facts) {
    const double usable = std::min(facts.threads, facts.cores);
    if (!facts.is_compared() || facts.is_busy || may_be_without_loss(facts) ||
        facts.parallelism > kFreeCpus * usable)
        return {};
    const Sleepers sleepers = sleepers_of(facts.report);
    if (sleepers.threads < 2 || sleepers.are_by_turns() || sleepers.nap() <= 0 || sleepers.nap() > kNap)
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
