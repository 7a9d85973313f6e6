// SPDX-License-Identifier: Apache-2.0
//
// A deadlock shows in which thread waits for which. If the owner of each lock is known that is a chain from thread to
// thread: it ends at a thread that can run, or it comes back to where it was, or it leads to one that has ended with
// the lock. If no owner is known it takes more: all threads wait, for locks and for each other's ends, and none has
// run.
//
// Samples are of single instants, and of many threads each has few. So only certain facts count: that a thread waited
// for the same from one sample to another, not having run in between, and that all those waits have a part of the
// time in common.
#include "stat/holders.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace thrum::stat {

namespace {

// Seconds that waits must have in common: the owner of a lock that is about to be handed over may be another one by
// now. Longer if no owner is known.
constexpr double kStuck = 0.5, kAllStuck = 1;
// A process's threads end one after another, and run for that. What was seen so shortly before the last look may be its end.
constexpr double kEnd = 0.1;

// --- what holders do ------------------------------------------------------------------------------------------

// The look at a thread that is the last up to some moment.
const Look *look_until(const Life &life, double at) {
    const auto after = std::upper_bound(life.looks.begin(), life.looks.end(), at,
                                        [](double moment, const Look &look) { return moment < look.at; });
    return after == life.looks.begin() ? nullptr : &*(after - 1);
}

struct Seen {
    std::uint64_t looks = 0;
    std::vector<std::size_t> slept;   // sites, one for each look at it asleep
    double wanted = 0, ran = 0;       // seconds: it wanted a CPU, and had one
    std::set<double> outranked;       // when one of its waiters had much more priority
    const Look *outranking = nullptr; // the latest look at one of these
};

bool has_run(const Look &look) {
    return look.site == SIZE_MAX;
}

// How long it wanted a CPU around that look, and for how long of that it had one: from that look to the next, or from the one
// before. The kernel counts a thread's time at its ticks, so that only a sum of many such parts tells.
void add_wanted(const Life &life, const Look &look, Seen &seen) {
    const Look *const first = life.looks.data(), *const last = &life.looks.back();
    const Look *from = &look;
    if ((from == last || !has_run(from[1])) && from != first)
        from--;
    if (from == last || !has_run(from[0]) || !has_run(from[1]))
        return;
    const double took = from[1].at - from[0].at;
    const auto ran = static_cast<double>(from[1].run_ns - std::min(from[0].run_ns, from[1].run_ns)) * 1e-9;
    seen.wanted += took;
    seen.ran += std::min(ran, took);
}

// --- threads that are stuck -----------------------------------------------------------------------------------

struct Wait {
    const Life *life;
    const Look *last;
    double since; // it has not run from then to its last look, and waited for the same
    double until() const { return last->at; }
    bool is_for_lock() const { return last->doing == Doing::kLockWait; }
};

// The wait that a thread is in at that look; nothing where it does something else, or may continue by itself.
std::optional<Wait> last_wait(const Life &life, const Look &last) {
    if ((last.doing != Doing::kLockWait && last.doing != Doing::kJoinWait) || last.is_timed)
        return std::nullopt;
    const Look *first = &last;
    while (first != life.looks.data() && first[-1].run_ns == last.run_ns && first[-1].site == last.site &&
           first[-1].awaited == last.awaited)
        first--;
    return Wait{&life, &last, first->at};
}

using Waits = std::vector<const Wait *>;

// Seconds that all of them have in common.
double common(const Waits &waits) {
    double since = 0, until = waits.empty() ? 0 : waits.front()->until();
    for (const Wait *wait : waits) {
        since = std::max(since, wait->since);
        until = std::min(until, wait->until());
    }
    return until - since;
}

class Waiters {
  public:
    Waiters(const std::vector<Life> &lives, bool are_all);
    Deadlock find() const;

  private:
    Waits ring_through(const Wait &first, std::set<const Wait *> &known) const;
    bool is_held_by_ended(const Wait &wait) const;
    Waits all() const;
    static Deadlock told(const Waits &waits, Deadlock::Kind kind);

    std::map<pid_t, Wait> waits_;   // of those that live
    std::set<pid_t> living_;        // or ended with the process
    std::map<pid_t, double> ended_; // when, at the latest
    bool are_all_seen_;
};

Waiters::Waiters(const std::vector<Life> &lives, bool are_all) : are_all_seen_(are_all) {
    double end = 0;
    for (const Life &life : lives)
        end = std::max(end, life.looks.empty() ? 0 : life.looks.back().at);
    end -= kEnd;
    for (const Life &life : lives) {
        if (life.looks.empty() || life.looks.front().at > end) {
            are_all_seen_ = are_all_seen_ && (life.gone.value_or(end) < end || life.begin > end);
            continue;
        }
        if (life.gone && *life.gone < end) {
            ended_[life.id] = *life.gone;
            continue;
        }
        living_.insert(life.id);
        if (const std::optional<Wait> wait = last_wait(life, *look_until(life, end)))
            waits_.insert_or_assign(life.id, *wait);
    }
}

// It still waited when the owner of its lock had been missed for long.
bool Waiters::is_held_by_ended(const Wait &wait) const {
    const auto owner = ended_.find(wait.last->awaited);
    return wait.is_for_lock() && owner != ended_.end() && living_.count(owner->first) == 0 &&
           wait.until() - std::max(owner->second, wait.since) >= kStuck;
}

// The ring that one comes to from there, if there is one that was not known. Each thread waits for one other, so that no way
// need be gone twice.
Waits Waiters::ring_through(const Wait &first, std::set<const Wait *> &known) const {
    Waits way;
    for (const Wait *at = &first; known.insert(at).second;) {
        way.push_back(at);
        const auto next = waits_.find(at->last->awaited);
        if (next == waits_.end())
            return {};
        at = &next->second;
        const auto begin = std::find(way.begin(), way.end(), at);
        if (begin != way.end())
            return {begin, way.end()};
    }
    return {};
}

// All that wait for locks, if every thread waits, and has for long.
Waits Waiters::all() const {
    Waits everyone, found;
    for (const auto &[id, wait] : waits_) {
        if (wait.last->awaited == kHolderUnknown)
            return {};
        everyone.push_back(&wait);
        if (wait.is_for_lock())
            found.push_back(&wait);
    }
    double last_end = 0;
    for (const auto &[id, at] : ended_)
        last_end = std::max(last_end, at);
    const bool is_long = common(everyone) >= kAllStuck &&
                         std::all_of(everyone.begin(), everyone.end(), [last_end](const Wait *wait) {
                             return wait->until() - last_end >= kAllStuck;
                         });
    return are_all_seen_ && waits_.size() == living_.size() && is_long ? found : Waits();
}

Deadlock Waiters::told(const Waits &waits, Deadlock::Kind kind) {
    Deadlock deadlock;
    deadlock.kind = kind;
    deadlock.seconds = common(waits);
    for (const Wait *wait : waits) {
        const Look &last = *wait->last;
        deadlock.threads.push_back({wait->life->id, !wait->is_for_lock(),
                                    wait->is_for_lock() ? last.site : SIZE_MAX,
                                    std::max<pid_t>(last.awaited, 0)});
    }
    return deadlock;
}

// Rings begin with a thread that waits for a lock; threads that only wait for a member are not in it.
Deadlock Waiters::find() const {
    std::set<const Wait *> known;
    for (const auto &[id, wait] : waits_) {
        Waits ring = ring_through(wait, known);
        const auto lock =
            std::find_if(ring.begin(), ring.end(), [](const Wait *one) { return one->is_for_lock(); });
        if (lock == ring.end() || common(ring) < kStuck)
            continue;
        std::rotate(ring.begin(), lock, ring.end());
        return told(ring, Deadlock::kRing);
    }
    Waits orphans;
    for (const auto &[id, wait] : waits_)
        if (is_held_by_ended(wait) &&
            (orphans.empty() || orphans.front()->last->awaited == wait.last->awaited))
            orphans.push_back(&wait);
    if (!orphans.empty())
        return told(orphans, Deadlock::kOwnerEnded);
    return told(all(), Deadlock::kAll);
}

} // namespace

bool is_asleep(Doing doing) {
    return doing == Doing::kSleep || doing == Doing::kInputOutput || doing == Doing::kIdleWait ||
           doing == Doing::kJoinWait;
}

Holder sleeping_holder(const std::vector<Site> &sites, const std::vector<std::size_t> &slept,
                       std::uint64_t looks) {
    Holder holder;
    holder.looks = looks;
    holder.asleep = static_cast<double>(slept.size()) / static_cast<double>(looks);
    std::map<std::size_t, std::uint64_t> times;
    for (const std::size_t site : slept)
        times[site]++;
    const auto most = std::max_element(times.begin(), times.end(),
                                       [](const auto &a, const auto &b) { return a.second < b.second; });
    if (most == times.end())
        return holder;
    holder.stack = sites[most->first].stack;
    holder.is_message = sites[most->first].is_message;
    holder.doing = sites[most->first].doing;
    return holder;
}

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
            if (is_outranked(look.holders, look.scheduling)) {
                Seen &its = seen[sites[look.site].lock];
                its.outranked.insert(look.at);
                if (its.outranking == nullptr || its.outranking->at < look.at)
                    its.outranking = &look;
            }
            const Look *its_look = look_until(*holder->second, look.at);
            const bool is_at_lock = its_look != nullptr && its_look->doing == Doing::kLockWait;
            if (look.holding == ProcSample::Holding::kUnknown || its_look == nullptr || is_at_lock)
                continue;
            Seen &its = seen[sites[look.site].lock];
            its.looks++;
            if (look.holding == ProcSample::Holding::kAwake)
                add_wanted(*holder->second, *its_look, its);
            if (look.holding == ProcSample::Holding::kAwake || its_look->site == SIZE_MAX ||
                !is_asleep(its_look->doing))
                continue;
            its.slept.push_back(its_look->site);
        }
    for (const auto &[lock, its] : seen) {
        if (its.looks == 0)
            continue;
        Holder &holder = locks[lock].holder;
        holder = sleeping_holder(sites, its.slept, its.looks);
        holder.without_cpu = its.wanted > 0 ? 1 - its.ran / its.wanted : 0;
        holder.outranked =
            std::min(1.0, static_cast<double>(its.outranked.size()) / static_cast<double>(its.looks));
        if (its.outranking != nullptr) {
            holder.thread = its.outranking->awaited;
            holder.scheduling = its.outranking->holders;
            holder.waiters = its.outranking->scheduling;
        }
    }
}

Deadlock find_deadlock(const std::vector<Life> &lives, bool are_all) {
    return Waiters(lives, are_all).find();
}

} // namespace thrum::stat
