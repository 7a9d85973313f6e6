// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: threads that wait by computing. At a busy-wait barrier with more members than workers, and for a
// spinlock whose holder is always preempted, on one worker, only preemption makes progress.
#include <algorithm>
#include <deque>

#include "preempt_stress.h"

namespace {

// --- barriers ---------------------------------------------------------------------------------------------

struct Barrier {
    std::atomic<unsigned> arrived{0}, generation{0};
    std::atomic<bool> stop{false};
    unsigned members = 0;
};

// A member's own.
struct alignas(64) Member {
    std::atomic<long> rounds{0};
    bool done = false;
};

class BusyBarriers : public Torture {
  public:
    const char *name() const override { return "barriers"; }
    bool alone() const override { return true; }

    // More than workers, at one barrier; not so many that a round is once around all of them and takes seconds.
    void begin(unsigned actors) override {
        const unsigned members = std::min(actors, 2 * workers() + 2);
        member_ = std::vector<Member>(actors);
        for (unsigned i = 0; i < (actors + members - 1) / members; i++) {
            barriers_.emplace_back();
            barriers_.back().members = std::min(members, actors - i * members);
        }
        members_ = members;
    }

    // The first member ends it all. The others learn that between the two waits, so that they all do in one round.
    void step(Actor &actor) override {
        Barrier &barrier = barriers_[actor.number / members_];
        Member &me = member_[actor.number];
        const unsigned first = actor.number / members_ * members_;
        if (me.done) {
            safepoint();
            return;
        }
        if (actor.number == first && over)
            barrier.stop = true;
        me.rounds++;
        wait(barrier);
        for (unsigned i = first; i < first + barrier.members; i++)
            CHECK_EQ(member_[i].rounds, me.rounds);
        const bool last = barrier.stop;
        wait(barrier);
        me.done = last;
    }

    void last_step(Actor &actor) override {
        while (!member_[actor.number].done)
            step(actor);
    }

    void end() override {
        for (std::size_t i = 0; i < member_.size(); i++)
            CHECK_EQ(member_[i].rounds, member_[i / members_ * members_].rounds);
        barriers_.clear();
    }

  private:
    static void wait(Barrier &barrier) {
        const unsigned generation = barrier.generation;
        if (++barrier.arrived == barrier.members) {
            barrier.arrived = 0;
            barrier.generation++;
        } else {
            while (barrier.generation == generation)
                safepoint();
        }
    }

    std::deque<Barrier> barriers_;
    std::vector<Member> member_;
    unsigned members_ = 1;
};

// --- a lock holder that is preempted ------------------------------------------------------------------------

class PreemptedHolder : public Torture {
  public:
    const char *name() const override { return "holder"; }
    bool alone() const override { return true; }
    unsigned workers() const override { return 1; }
    unsigned actors() const override { return std::min(options.threads, 8U); }
    bool fits() const override { return options.preempts() || options.mode == Mode::kPthread; }

    void begin(unsigned actors) override { got_.assign(actors, 0); }

    void step(Actor &actor) override {
        hold(actor, [] { return over.load(); });
    }

    // The first at least, should all have begun when the time was over already.
    void last_step(Actor &actor) override {
        if (actor.number == 0)
            hold(actor, [] { return false; });
    }

    void end() override {
        long all = 0;
        for (const long got : got_)
            all += got;
        CHECK(all > 0);
    }

  private:
    template <typename Gives>
    void hold(const Actor &actor, const Gives &gives_up) {
        while (lock_.exchange(true, std::memory_order_acquire))
            if (gives_up())
                return;
        CHECK(!held_);
        held_ = true;
        work_for(2 * options.slice_ns());
        CHECK(held_);
        held_ = false;
        got_[actor.number]++;
        lock_.store(false, std::memory_order_release);
    }

    std::atomic<bool> lock_{false};
    bool held_ = false;
    std::vector<long> got_;
};

} // namespace

void add_busy(Tortures &all) {
    all.push_back(std::make_unique<BusyBarriers>());
    all.push_back(std::make_unique<PreemptedHolder>());
}
