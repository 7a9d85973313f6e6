// SPDX-License-Identifier: Apache-2.0
//
// The rule of threads that are stuck: a deadlock, or a lock whose owner ended.
#include "stat/rules/rule.hpp"

#include <algorithm>

#include "stat/facts.hpp"
#include "stat/names.hpp"
#include "stat/rules/findings.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

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

} // namespace

// Wrong if something outside wakes one of them: a wait with a timeout, another process, a signal handler that releases a lock.
// So waits with a timeout do not count, nor do locks that another process could hold, and none may have run meanwhile.
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

} // namespace thrum::stat
