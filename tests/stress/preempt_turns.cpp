// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: is a tick lost? Threads that compute are bound to workers, several to each, and note in a word of
// their worker's who runs: who finds another's name there knows that its turn begins, whatever the kernel did meanwhile.
// A round lasts until everybody on a worker has had two turns since all were there: if no tick comes any more it never
// ends, and the watchdog says so.
//
// A turn's length is the time in which the thread is seen to compute: its clock is read every fraction of a microsecond,
// and steps of more than a few do not count, as there the CPU had something else to do (the kernel, another process,
// the host). A turn of more than two slices by that measure is a lost tick: others could run, and the CPU was there. But
// who was sent on may have lost the CPU, to another worker's kernel thread or a stranger, before it has done anything
// that is seen here, and the turn before and that after look like one: by chance, hence seldom, and not twice in a row but where
// CPUs are wanted by more than there are, so that for the second time only what it computed since its CPU was last away for
// half a slice counts, by when another may have been sent on and off again.
// But for one excuse: who sends ticks needs a CPU, too. *Metronomes*, threads that sleep from slice to slice as that one
// does, note when they were late; a long turn while one was late tells nothing.
//
// The monitor is a thread as others are, and waits for a CPU as they do, which no metronome sees that runs on another CPU:
// its ticks may be as late as they like, and a turn's length tells nothing. But those that do come have to be heeded, the
// timers' as well, and there is no excuse. Who goes on after a tick, has computed for half a slice, goes on after another one,
// and has had its worker for itself meanwhile (as the switches say that this has counted), should have been sent off: that
// the first one did not do so may be right (thrum-preemption(7), Ends of slices). At first there may be no kernel thread yet
// that lends, so each has its turn before.
//
// So of single ticks of the timers two in a row have to be lost to be seen, and of the monitor's all that were to come.
//
// All have their turns one after another. In one a thread may be found by a tick, or by two, before it has done anything that is
// seen here, where the kernel takes the CPU away each time (of slices of 50 us the interrupts take most), and so a hundred
// turns of others may go by. So what counts is how many there are to each tick that found it.
#include <pthread.h>
#include <sched.h>
#include <thrum/worker.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <deque>
#include <thread>

#include "preempt_stress.h"

namespace {

constexpr std::uint64_t kStep = 4 * THRUM_US, kTolerance = 25 * THRUM_US;
constexpr std::size_t kNotes = 1 << 14;
constexpr unsigned kSeldom = 100;

struct Span {
    std::uint64_t from = 0, to = 0;
};

// Spans that any thread adds; read when no thread adds.
class Notes {
  public:
    void clear() { count_ = 0; }
    void add(std::uint64_t from, std::uint64_t to) {
        const std::size_t i = count_.fetch_add(1, std::memory_order_relaxed);
        if (i < kNotes)
            spans_[i] = {from, to};
    }
    std::size_t size() const { return std::min(count_.load(), kNotes); }
    const Span &operator[](std::size_t i) const { return spans_[i]; }
    bool full() const { return count_ >= kNotes; }

  private:
    std::atomic<std::size_t> count_{0};
    std::vector<Span> spans_ = std::vector<Span>(kNotes);
};

// --- metronomes -------------------------------------------------------------------------------------------

// Those of the kernel's timers, which interrupt whatever runs: one on each CPU that nothing but the host can hold up.
class Metronomes {
  public:
    void start() {
        late_.clear();
        ticking_ = true;
        cpu_set_t mine;
        CHECK_EQ(pthread_getaffinity_np(pthread_self(), sizeof mine, &mine), 0);
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, &mine))
                threads_.emplace_back([this, cpu] {
                    cpu_set_t only;
                    CPU_ZERO(&only);
                    CPU_SET(cpu, &only);
                    (void)pthread_setaffinity_np(pthread_self(), sizeof only, &only);
                    const sched_param highest = {.sched_priority = 1};
                    (void)pthread_setschedparam(pthread_self(), SCHED_FIFO, &highest); // if it may
                    tick();
                });
    }

    void stop() {
        ticking_ = false;
        for (std::thread &thread : threads_)
            thread.join();
        threads_.clear();
    }

    bool late_in(const Span &turn) const {
        if (late_.full())
            return true;
        for (std::size_t i = 0; i < late_.size(); i++)
            if (late_[i].from <= turn.to && turn.from <= late_[i].to)
                return true;
        return false;
    }
    std::size_t times_late() const { return late_.size(); }

  private:
    void tick() {
        const std::uint64_t period = options.slice_ns();
        for (std::uint64_t next = thrum_now() + period; ticking_;) {
            const timespec until = {static_cast<time_t>(next / THRUM_S), static_cast<long>(next % THRUM_S)};
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
            const std::uint64_t now = thrum_now();
            if (now > next + period / 2)
                late_.add(next, now);
            next = std::max(next + period, now);
        }
    }

    Notes late_;
    std::atomic<bool> ticking_{false};
    std::vector<std::thread> threads_;
};

// --- turns ------------------------------------------------------------------------------------------------

constexpr unsigned kNever = ~0U;

struct alignas(64) Word {
    std::atomic<unsigned> runner{~0U};
    std::atomic<unsigned> present{0}, turns{0};
    std::atomic<unsigned> turns_before{kNever}; // all were there
};

struct alignas(64) Turn {
    std::uint64_t before = 0, began = 0, length = 0, longest = 0, computed = 0;
    std::uint64_t unbroken =
        0; // its length since the CPU was away for half a slice, as little as one that was sent on may be left for
    // The word's count when its last turn was; the most that others had in between, and that to each of the actor's ticks then.
    unsigned last = 0, waited = 0, waited_each = 0;
    unsigned found = 0; // the actor's count of ticks when it was last seen to compute
    unsigned times_long = 0;
    // The actor's count and its worker's at the last look, what it has computed since, and after how many ticks it
    // has resumed.
    unsigned ticks = 0;
    std::uint64_t switches = 0, since = 0;
    unsigned went_on = 0, unheeded = 0;
};

class Turns : public Torture {
  public:
    const char *name() const override { return "turns"; }
    bool alone() const override { return true; }
    bool bound() const override { return true; }
    bool may_be_stopped() const override { return true; }
    bool fits() const override { return options.has_ults(); }
    unsigned actors() const override {
        return std::clamp(options.threads / options.workers, 2U, 32U) * options.workers;
    }

    void begin(unsigned actors) override {
        words_ = std::vector<Word>(workers());
        turns_.assign(actors, {});
        each_ = actors / workers();
        long_.clear();
        very_long_.clear();
        if (!options.monitored())
            metronomes_.start();
    }

    void step(Actor &actor) override {
        be_there(actor);
        for (int i = 0; i < 1000; i++)
            look(actor);
    }

    void last_step(Actor &actor) override {
        be_there(actor);
        Word &word = word_of(actor);
        while (times_around(word) < 2)
            look(actor);
        word.present--;
    }

    void end() override {
        metronomes_.stop();
        Turn all;
        for (const Turn &turn : turns_) {
            all.longest = std::max(all.longest, turn.longest);
            all.computed += turn.computed;
            all.waited = std::max(all.waited, turn.waited);
            all.waited_each = std::max(all.waited_each, turn.waited_each);
            all.unheeded += turn.unheeded;
        }
        unsigned turns = 0;
        for (const Word &word : words_)
            turns += word.turns;
        std::printf("  turns: %u of %zu threads on %zu workers in %.3f s of CPU, %.1f us a turn, the longest "
                    "%.1f us; at most %u turns of others in between, %u to a tick%s\n",
                    turns, turns_.size(), words_.size(), static_cast<double>(all.computed) * 1e-9,
                    turns > 0 ? static_cast<double>(all.computed) * 1e-3 / turns : 0.0,
                    static_cast<double>(all.longest) * 1e-3, all.waited, all.waited_each,
                    options.monitored() ? "; ticks by the monitor" : "");
        if (all.unheeded > 0)
            fail(__FILE__, __LINE__, "ticks that came were not heeded: %u, in %u turns", all.unheeded, turns);
        if (!options.monitored())
            none_is_long(turns, all.computed);
        if (all.waited_each > 4 * each_)
            fail(__FILE__, __LINE__,
                 "somebody waited for %u turns of others, who are %u, to each tick that found it",
                 all.waited_each, each_ - 1);
    }

  private:
    void none_is_long(unsigned turns, std::uint64_t computed) const {
        const std::size_t lost = not_excused(long_), stayed = not_excused(very_long_);
        std::printf(
            "  turns: %zu of more than two slices, %zu of them with no excuse; metronomes late %zu times\n",
            long_.size(), lost, metronomes_.times_late());
        if (stayed > 0)
            fail(__FILE__, __LINE__,
                 "lost ticks: of %u turns %zu of more than four slices while others could run", turns,
                 stayed);
        if (lost > 1 + turns / kSeldom)
            fail(__FILE__, __LINE__,
                 "lost ticks: of %u turns %zu of more than two slices while others could run", turns, lost);
        // A turn is two slices at the most: so many there are at the least.
        if (computed > 100 * options.slice_ns() * turns_.size() && turns * 4 * options.slice_ns() < computed)
            fail(__FILE__, __LINE__, "lost ticks: %u turns in %.3f s of CPU", turns,
                 static_cast<double>(computed) * 1e-9);
    }

    std::size_t not_excused(const Notes &turns) const {
        std::size_t count = 0;
        for (std::size_t i = 0; i < turns.size(); i++)
            count += metronomes_.late_in(turns[i]) ? 0 : 1;
        return count;
    }

    Word &word_of(const Actor &actor) { return words_[actor.number % words_.size()]; }

    // How often all have had a turn, since all were there.
    unsigned times_around(const Word &word) const {
        const unsigned before = word.turns_before;
        return before != kNever ? (word.turns - before) / each_ : 0;
    }

    static std::uint64_t switches_here() {
        thrum_worker_counters counters = {};
        CHECK_EQ(thrum_worker_get_counters(static_cast<unsigned>(thrum_worker_self()), &counters), 0);
        return counters.switches;
    }

    // Also a thread that comes only when the time is over: the others wait for it.
    void be_there(Actor &actor) {
        Turn &turn = turns_[actor.number];
        if (turn.before != 0)
            return;
        turn.before = thrum_now();
        Word &word = word_of(actor);
        if (++word.present == each_)
            word.turns_before = word.turns.load();
    }

    void begin_turn(Actor &actor, Word &word, Turn &turn) {
        word.runner.store(actor.number, std::memory_order_relaxed);
        const unsigned count = word.turns.fetch_add(1, std::memory_order_relaxed);
        if (turn.last != 0 && word.present == each_) {
            turn.waited = std::max(turn.waited, count - turn.last);
            const unsigned found = actor.ticks.load(std::memory_order_relaxed) - turn.found;
            turn.waited_each = std::max(turn.waited_each, (count - turn.last) / std::max(found, 1U));
        }
        turn.last = count;
        turn.found = turn.ticks;
        turn.length = turn.unbroken = 0;
        turn.began = turn.before;
        turn.times_long = 0;
        turn.went_on = 0;
        turn.since = 0;
        turn.switches = switches_here();
        if (over) // then to look is no step, but this is
            actor.steps++;
    }

    // Others had a turn if the worker has switched, even if they have done nothing that is seen here.
    void resume_after_tick(Turn &turn) {
        const std::uint64_t switches = switches_here();
        if (switches != turn.switches)
            turn.went_on = 0;
        else if (turn.since >= options.slice_ns() / 2 && ++turn.went_on == 2)
            turn.unheeded++;
        turn.switches = switches;
        turn.since = 0;
    }

    void look(Actor &actor) {
        Word &word = word_of(actor);
        Turn &turn = turns_[actor.number];
        const unsigned ticks = actor.ticks.load(std::memory_order_relaxed); // before it may yield for them
        safepoint();
        const std::uint64_t now = thrum_now(), step = now - turn.before;
        const bool mine = word.runner.load(std::memory_order_relaxed) == actor.number;
        turn.before = now;
        if (!mine) {
            turn.ticks = ticks;
            begin_turn(actor, word, turn);
            return;
        }
        turn.found = ticks;
        if (step > kStep) {
            if (step >= options.slice_ns() / 2)
                turn.unbroken = 0;
            return;
        }
        turn.length += step;
        turn.unbroken += step;
        turn.since += step;
        turn.computed += step;
        if (word.present != each_) { // a thread has not begun, or may have ended
            turn.length = turn.unbroken = 0;
            return;
        }
        if (ticks != turn.ticks) {
            turn.ticks = ticks;
            if (times_around(word) > 0)
                resume_after_tick(turn);
        }
        turn.longest = std::max(turn.longest, turn.length);
        if (turn.times_long < 2 && (turn.times_long == 0 ? turn.length : turn.unbroken) >
                                       2 * (turn.times_long + 1) * options.slice_ns() + kTolerance) {
            (turn.times_long == 0 ? long_ : very_long_).add(turn.began, now);
            turn.times_long++;
        }
    }

    std::vector<Word> words_;
    std::vector<Turn> turns_;
    unsigned each_ = 1;
    Notes long_, very_long_;
    Metronomes metronomes_;
};

} // namespace

void add_turns(Tortures &all) {
    all.push_back(std::make_unique<Turns>());
}
