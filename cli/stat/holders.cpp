// SPDX-License-Identifier: Apache-2.0
//
// A deadlock is told by who waits for whom. Where the owner of each lock is known that is a chain from thread to thread: it
// ends at one that can go on, or it comes back to where it was, or it leads to one that has ended with the lock. Where no
// owner is known it takes more: that all threads there are wait, for locks and for each other's ends, and none has run.
#include "stat/holders.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace thrum::stat {

namespace {

// Seconds that a wait has to last: the owner of one that is about to be woken may be another one by now, and timeouts end
// some. Longer where nobody's owner speaks for it.
constexpr double kStuck = 0.5, kAllStuck = 1;

// --- what holders do ------------------------------------------------------------------------------------------

// What a thread was at when somebody else was looked at, if that is certain: it was looked at in the same sweep, or has not
// run from the look before to the one after.
const Look *look_at(const Life &life, double at) {
    const auto after = std::upper_bound(life.looks.begin(), life.looks.end(), at,
                                        [](double moment, const Look &look) { return moment < look.at; });
    if (after == life.looks.begin())
        return nullptr;
    const Look &before = *(after - 1);
    const bool is_same = after != life.looks.end() && after->run_ns == before.run_ns &&
                         after->site == before.site && before.site != SIZE_MAX;
    return before.at == at || is_same ? &before : nullptr;
}

bool is_asleep(Doing doing) {
    return doing == Doing::kSleep || doing == Doing::kInputOutput || doing == Doing::kIdleWait ||
           doing == Doing::kJoinWait;
}

struct Seen {
    std::uint64_t looks = 0, asleep = 0;
    std::map<std::size_t, std::uint64_t> sites; // where it slept, how often
};

// --- who cannot go on -----------------------------------------------------------------------------------------

struct Wait {
    const Life *life = nullptr;
    double since = 0; // it has not run since then, and waited for the same all the time
    const Look &last() const { return life->looks.back(); }
};

bool is_wait(Doing doing) {
    return doing == Doing::kLockWait || doing == Doing::kJoinWait;
}

// The wait that a thread ends in; `life` is null where it ends in something else.
Wait last_wait(const Life &life) {
    if (life.is_gone || life.looks.empty() || !is_wait(life.looks.back().doing))
        return {};
    const Look &last = life.looks.back();
    const auto first = std::find_if(life.looks.rbegin(), life.looks.rend(), [&last](const Look &look) {
        return look.run_ns != last.run_ns || look.site != last.site || look.awaited != last.awaited;
    });
    return {&life, first.base()->at};
}

class Waiters {
  public:
    explicit Waiters(const std::vector<Life> &lives) {
        for (const Life &life : lives) {
            if (life.looks.empty())
                continue;
            now_ = std::max(now_, life.looks.back().at);
            known_.insert(life.id);
            if (!life.is_gone)
                living_.insert(life.id);
            if (const Wait wait = last_wait(life); wait.life != nullptr)
                waits_[life.id] = wait;
        }
    }

    Deadlock find() const;

  private:
    const Wait *wait_of(pid_t id) const {
        const auto found = waits_.find(id);
        return found != waits_.end() && now_ - found->second.since >= kStuck ? &found->second : nullptr;
    }
    bool has_ended(pid_t id) const { return known_.count(id) != 0 && living_.count(id) == 0; }
    std::vector<const Wait *> ring_from(const Wait &first) const;
    std::vector<const Wait *> all() const;
    Deadlock told(const std::vector<const Wait *> &waits) const;

    double now_ = 0;
    std::set<pid_t> known_, living_;
    std::map<pid_t, Wait> waits_;
};

// Those that wait in a circle, beginning with `first`; it alone, where the one who has its lock is no more; none otherwise.
std::vector<const Wait *> Waiters::ring_from(const Wait &first) const {
    std::vector<const Wait *> ring = {&first};
    if (first.last().doing == Doing::kLockWait && has_ended(first.last().awaited))
        return ring;
    for (std::size_t steps = 0; steps <= waits_.size(); steps++) {
        const Wait *next = wait_of(ring.back()->last().awaited);
        if (next == nullptr)
            return {};
        if (next == &first)
            return ring;
        ring.push_back(next);
    }
    return {}; // `first` leads to a ring that it is not in
}

// All that wait for locks, where nobody is there who does not wait.
std::vector<const Wait *> Waiters::all() const {
    std::vector<const Wait *> found;
    for (const auto &[id, wait] : waits_) {
        if (now_ - wait.since < kAllStuck || wait.last().awaited == kAnotherProcess)
            return {};
        if (wait.last().doing == Doing::kLockWait)
            found.push_back(&wait);
    }
    return waits_.size() == living_.size() ? found : std::vector<const Wait *>();
}

Deadlock Waiters::told(const std::vector<const Wait *> &waits) const {
    Deadlock deadlock;
    for (const Wait *wait : waits) {
        const Look &last = wait->last();
        const bool is_lock = last.doing == Doing::kLockWait;
        deadlock.threads.push_back({wait->life->id, is_lock ? last.site : SIZE_MAX, last.awaited,
                                    is_lock && has_ended(last.awaited)});
        const double seconds = now_ - wait->since;
        deadlock.seconds = deadlock.threads.size() == 1 ? seconds : std::min(deadlock.seconds, seconds);
    }
    return deadlock;
}

// Rings are told by the thread for a lock that was seen first; those that only wait for somebody in one are not in it.
Deadlock Waiters::find() const {
    for (const auto &[id, wait] : waits_)
        if (wait.last().doing == Doing::kLockWait && now_ - wait.since >= kStuck)
            if (const auto ring = ring_from(wait); !ring.empty())
                return told(ring);
    return told(all());
}

} // namespace

void add_holders(const std::vector<Life> &lives, const std::vector<Site> &sites,
                 std::vector<LockUse> &locks) {
    std::unordered_map<pid_t, const Life *> by_id;
    for (const Life &life : lives)
        by_id[life.id] = &life;       // of two with one number the later one: few live that long
    std::map<std::size_t, Seen> seen; // by lock
    for (const Life &life : lives)
        for (const Look &look : life.looks) {
            const auto holder = look.doing == Doing::kLockWait ? by_id.find(look.awaited) : by_id.end();
            if (holder == by_id.end() || holder->second == &life || sites[look.site].lock >= locks.size())
                continue;
            const Look *at = look_at(*holder->second, look.at);
            if (at == nullptr || at->doing == Doing::kLockWait)
                continue;
            Seen &its = seen[sites[look.site].lock];
            its.looks++;
            if (at->site == SIZE_MAX || !is_asleep(at->doing))
                continue;
            its.asleep++;
            its.sites[at->site]++;
        }
    for (const auto &[lock, its] : seen) {
        Holder &holder = locks[lock].holder;
        holder.looks = its.looks;
        holder.asleep = static_cast<double>(its.asleep) / static_cast<double>(its.looks);
        const auto most = std::max_element(its.sites.begin(), its.sites.end(),
                                           [](const auto &a, const auto &b) { return a.second < b.second; });
        if (most == its.sites.end())
            continue;
        holder.stack = sites[most->first].stack;
        holder.doing = sites[most->first].doing;
    }
}

Deadlock find_deadlock(const std::vector<Life> &lives) {
    return Waiters(lives).find();
}

} // namespace thrum::stat
