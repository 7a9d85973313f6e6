// SPDX-License-Identifier: Apache-2.0
//
// The rule of threads that meet, or hand work over, more often than they work: barriers, queues of tiny tasks, two threads
// that take turns. Shown by CPU time in these calls, and by the work between two of them against what one costs.
#include "stat/rules/rule.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "stat/facts.hpp"
#include "stat/openmp.hpp"
#include "stat/rules/findings.hpp"
#include "stat/rules/grain.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

constexpr const char *kBarriers[] = {"pthread_barrier_wait", "std::barrier", "std::__tree_barrier",
                                     "std::sync::barrier::Barrier::wait", "std::sync::Barrier::wait"};
constexpr const char *kWaitsForWork[] = {
    "pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait",
    "cnd_wait",          "cnd_timedwait",          "sem_wait",
    "sem_timedwait",     "sem_clockwait",          "std::__detail::__platform_wait"};
constexpr const char *kWakes[] = {"pthread_cond_signal",
                                  "pthread_cond_broadcast",
                                  "cnd_signal",
                                  "cnd_broadcast",
                                  "sem_post",
                                  "std::__detail::__platform_notify"};
constexpr const char *kWakesAll[] = {"pthread_cond_broadcast", "cnd_broadcast"};
constexpr const char *kLocks[] = {"pthread_mutex_", "pthread_rwlock_", "lll_lock_", "mtx_"};

// Among the calls of libraries below the program's own function; of a wrapper of the language's as well.
template <typename List>
bool is_in(const std::vector<Frame> &stack, const List &names) {
    for (const Frame &frame : stack) {
        if (begins_with_any(plain_name(frame.function), names))
            return true;
        if (frame.is_user && frame.function.rfind("std::", 0) != 0)
            return false;
    }
    return false;
}

bool is_at_barrier(const Site &site) {
    return openmp_construct(site.stack) == nullptr && is_in(site.stack, kBarriers);
}

struct Part {
    double share = 0, share_one = 0; // of CPU time, with the most threads and with the fewest
    double waited = 0;               // thread-seconds asleep there
    Place place;                     // of most of it
};

template <typename Is>
Part part_of(const Report &report, const Is &is) {
    Part part;
    double most = 0;
    const auto note = [&](const Site &site, double much) {
        const Place place = place_of(site.stack);
        if (place.is_known() && much > most) {
            most = much;
            part.place = place;
        }
    };
    for (const Site &site : report.burns)
        if (is(site)) {
            part.share += site.share;
            note(site, site.share);
        }
    for (const Site &site : report.burns_one)
        part.share_one += is(site) ? site.share : 0;
    for (const Site &site : report.others)
        if (is(site)) {
            part.waited += site.seconds;
            note(site, site.share);
        }
    return part;
}

constexpr double kMeeting = 0.1;     // of CPU time, in a barrier's calls, more than with the fewest threads
constexpr double kHandingOver = 0.3; // of CPU time, in the calls of queues and conditions
constexpr double kWaiting = 0.05;    // of that, in waiting for work and in waking a waiter
// Likewise, in waking all waiters. Waking the one that can continue takes about as much as a wait: a tenth is a wait in ten.
constexpr double kWakingAll = 0.1;
constexpr double kAtWork = 0.5; // CPUs used, or wanted, at least: of less, nothing is lost by handing over
constexpr double kSleptOften = 1000; // voluntary switches for a second of CPU time

// "between two of them a thread works for 11 us, and one costs 9.0 us"; empty where threads hardly slept there.
std::string price_text(const Facts &facts, double share, const std::string &what) {
    if (facts.voluntary_rate < kSleptOften)
        return "";
    const double each = 1 / facts.voluntary_rate; // of CPU time, work and price together
    return "for each " + what + " that a thread slept at, it worked for " + duration(each * (1 - share)) +
           " and the " + what + " took " + duration(each * share) + " of CPU time" +
           (facts.report.switch_cost > 0
                ? "; a context switch takes " + duration(facts.report.switch_cost) + " here"
                : "");
}

void add_price(const Facts &facts, double share, const std::string &what, Finding &found) {
    if (const std::string text = price_text(facts, share, what); !text.empty())
        found.evidence.push_back(text);
}

// What is burned there is not the work's, and the fewest threads did not need it: that excludes other causes of that part.
Confidence sure_of(const Facts &facts, double share, double share_one) {
    const bool excludes = facts.is_compared() && has_lost(facts) && !facts.is_busy &&
                          facts.has_profiles(kFewSamples) && share >= kHighLockShare && share_one < kMeeting;
    return excludes ? Confidence::kHigh : Confidence::kMedium;
}

constexpr double kCheapAtCores = 1.1; // CPU time with a core for each thread, to that with the fewest threads

// Only with more threads than cores the meetings cost something: the threads are too many, not the meetings.
bool is_by_crowd(const Facts &facts) {
    return facts.threads > facts.cores && facts.core_inflation > 0 && facts.core_inflation < kCheapAtCores;
}

// Wrong if threads spin at it for one that has more to do than the others: then few of them sleep there, and the time between
// two waits is long. So it takes either many switches, or a barrier whose work is small in the profile. Wrong too if it is the
// many threads that make each meeting dear: then as many threads as cores take little more CPU time than one.
std::optional<Finding> barrier(const Facts &facts) {
    const Part there = part_of(facts.report, is_at_barrier);
    const bool is_dear = there.share - there.share_one >= kMeeting && facts.has_profile(kFewSamples);
    if (!is_dear || facts.voluntary_rate < kSleptOften || is_by_crowd(facts))
        return std::nullopt;
    Finding found =
        finding("grain", "Threads meet at a barrier too often" + at_place(there.place),
                "Do more work between two barriers: merge steps, or give each thread a larger part.",
                sure_of(facts, there.share, there.share_one), there.place);
    found.explains = there.share;
    found.evidence.push_back(
        percent(there.share) + " of CPU time in the barrier's calls" +
        (facts.report.burns_one.empty() ? "" : ", " + percent(there.share_one) + " with the fewest threads"));
    add_price(facts, there.share, "barrier", found);
    return found;
}

// Where the program waits for work, or wakes threads that do.
bool is_at_queue(const Site &site) {
    return is_in(site.stack, kWaitsForWork) || is_in(site.stack, kWakes);
}

std::set<std::string> queue_functions(const Report &report) {
    std::set<std::string> functions;
    for (const std::vector<Site> *sites : {&report.others, &report.waits, &report.burns})
        for (const Site &site : *sites)
            if (is_at_queue(site))
                functions.insert(place_of(site.stack).function);
    functions.erase("");
    return functions;
}

} // namespace

// Wrong if the lock of the queue guards other data too, that threads fight for: then the calls that wait and wake take little of
// this time. Or if there is next to no work at all: then few CPUs are used.
std::optional<TinyTasks> tiny_tasks(const Facts &facts) {
    if (facts.threads < 2 || facts.is_short || std::max(facts.parallelism, facts.wanting) < kAtWork ||
        !facts.has_profile(kFewSamples))
        return std::nullopt;
    constexpr double kMostly = 0.5;               // of waits for locks
    for (const LockUse &use : facts.report.locks) // a semaphore that is a lock hands no work over
        if (use.lock.is_semaphore && !use.lock.may_be_tasks && use.share >= kMostly)
            return std::nullopt;
    TinyTasks found;
    found.functions = queue_functions(facts.report);
    const Part handing = part_of(facts.report, [&found](const Site &site) {
        return found.functions.count(place_of(site.stack).function) != 0 &&
               (is_at_queue(site) || is_in(site.stack, kLocks));
    });
    const Part queue = part_of(facts.report, is_at_queue);
    if (handing.share < kHandingOver || queue.share < kWaiting * handing.share)
        return std::nullopt;
    const Part waits =
        part_of(facts.report, [](const Site &site) { return is_in(site.stack, kWaitsForWork); });
    found.share = handing.share;
    found.share_one = handing.share_one;
    found.place = waits.place.is_known() ? waits.place : handing.place;
    return found;
}

bool is_dear_handing(const Facts &facts) {
    const std::optional<TinyTasks> tiny = tiny_tasks(facts);
    return tiny && facts.has_profiles(kFewSamples) && tiny->share_one >= kHandingOver;
}

namespace {

// Of the queue's functions those that wake all waiters, and wait in another function. One that does both is a barrier made by
// hand: its last thread has to wake all others.
Part waking_all(const Facts &facts, const TinyTasks &tiny) {
    std::set<std::string> waiting;
    for (const std::vector<Site> *sites : {&facts.report.others, &facts.report.waits, &facts.report.burns})
        for (const Site &site : *sites)
            if (is_in(site.stack, kWaitsForWork))
                waiting.insert(place_of(site.stack).function);
    return part_of(facts.report, [&](const Site &site) {
        const std::string function = place_of(site.stack).function;
        return is_in(site.stack, kWakesAll) && tiny.functions.count(function) != 0 &&
               waiting.count(function) == 0;
    });
}

std::optional<Finding> tasks(const Facts &facts) {
    const std::optional<TinyTasks> tiny = tiny_tasks(facts);
    if (!tiny)
        return std::nullopt;
    Finding found =
        finding("grain", "Tasks are too small for what handing them over costs" + at_place(tiny->place),
                "Hand over more work at a time: batches of tasks, or larger parts of the data.",
                Confidence::kMedium, tiny->place);
    found.explains = tiny->share;
    const Part all = waking_all(facts, *tiny);
    const bool wakes_all = all.share >= kWakingAll * tiny->share;
    if (wakes_all)
        found.fix = "If only one of the waiters can continue, wake one (pthread_cond_signal, notify_one); or "
                    "hand over batches of tasks.";
    found.evidence.push_back(percent(tiny->share) + " of CPU time goes to handing tasks over, " +
                             percent(1 - tiny->share) +
                             " to all else: " + fixed(tiny->share / std::max(1 - tiny->share, 0.01), 1) +
                             " s for each second of work");
    add_price(facts, tiny->share, "hand-over", found);
    if (wakes_all)
        add_place_evidence("all that wait are woken", all.place, found);
    return found;
}

} // namespace

Findings grain(const Facts &facts) {
    if (facts.threads < 2 || facts.is_short)
        return {};
    std::optional<Finding> found = barrier(facts);
    if (!found)
        found = tasks(facts);
    return found ? Findings{*found} : Findings{};
}

} // namespace thrum::stat
