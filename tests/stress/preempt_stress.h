// SPDX-License-Identifier: Apache-2.0
//
// What the parts of stress-preempt share (preempt_main.cpp says what it is): the options, an actor, which is one of the
// many threads that are tortured, and a torture, which is what actors do and what is checked of it.
#ifndef TESTS_STRESS_PREEMPT_STRESS_H
#define TESTS_STRESS_PREEMPT_STRESS_H

#include <thrum/preempt.h>
#include <thrum/thrum.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "random.h"

enum class Mode : unsigned {
    kPthread, // kernel threads that a signal interrupts to no effect: are the tortures right?
    kNone = THRUM_PREEMPT_NONE,
    kYield = THRUM_PREEMPT_YIELD,
    kLend = THRUM_PREEMPT_LEND,
    kOwnTls = THRUM_PREEMPT_OWN_TLS,
    kKlt = THRUM_PREEMPT_KLT,
};
const char *name_of(Mode mode);
const char *name_of(thrum_tick_source source);

// Of each `of` ticks the first `ticks` are kept from the library, to see that it is noticed.
struct Kept {
    unsigned ticks = 0, of = 1;
};

struct Options {
    Mode mode = Mode::kLend;
    unsigned workers = 2, threads = 32, slice = 100; // us
    thrum_tick_source source = THRUM_TICK_DEFAULT;
    double seconds = 2, round = 0; // in all, and those of a round; 0: some part of them
    std::uint64_t seed = 0;
    std::vector<std::string> only;
    unsigned long least_hits = 0, least_preemptions = 0;
    bool clock_steps = false; // sets the machine's clock, and puts it back
    bool disturbed = true;    // SIGSTOP, memory pressure, nested ticks
    double stall = 60;        // so many seconds without a step are a hang
    Kept lost, unheeded;      // before any code has seen them, as if they had not come; or after that

    bool preempts() const { return mode > Mode::kNone; }
    bool has_ults() const { return mode != Mode::kPthread; }
    // A thread that waits in the kernel for another of the tortured is waited for in turn.
    bool may_block() const { return mode != Mode::kNone; }
    bool monitored() const { return source == THRUM_TICK_MONITOR; }
    std::uint64_t slice_ns() const { return slice * THRUM_US; }
};
extern Options options;

extern std::atomic<bool> over; // the round's time is up

// From anywhere: needs no lock, and no more than a page of stack.
[[noreturn]] void fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            fail(__FILE__, __LINE__, "not so: %s", #condition);                                              \
    } while (0)

// As CHECK, with what was there instead.
#define CHECK_EQ(is, should)                                                                                 \
    do {                                                                                                     \
        const auto check_is = static_cast<long long>(is), check_should = static_cast<long long>(should);     \
        if (check_is != check_should)                                                                        \
            fail(__FILE__, __LINE__, "%s is %lld, not %lld (%s)", #is, check_is, check_should, #should);     \
    } while (0)

// What an actor is in: where a tick that comes now hits (preempt_pcs.h).
enum Phase : unsigned {
    kElsewhere,
    kMalloc,
    kFree,
    kStdio,
    kMutex, // a pthread mutex
    kLock,  // another lock of pthreads
    kCond,
    kThrow,
    kLoader,
    kProcess,
    kDeep,      // at the bottom of its stack
    kRegisters, // has values in all of the widest
    kPhases
};
const char *name_of(Phase phase);

struct alignas(64) Actor {
    unsigned number = 0;
    Random random{0};
    std::atomic<unsigned> phase{kElsewhere};
    std::atomic<const char *> torture{"nothing yet"}; // what it does, or did last
    std::atomic<std::uint64_t> steps{0};
    std::atomic<unsigned> ticks{0}; // that came while it ran (preempt_pcs.h)
    std::atomic<bool> ended{false};
};

class In {
  public:
    In(Actor &actor, Phase phase) : actor_(actor), outer_(actor.phase.load(std::memory_order_relaxed)) {
        actor.phase.store(phase, std::memory_order_relaxed);
    }
    ~In() { actor_.phase.store(outer_, std::memory_order_relaxed); }
    In(const In &) = delete;

  private:
    Actor &actor_;
    unsigned outer_;
};

// A place where an actor holds nothing that others may need.
inline void safepoint() {
    if (options.has_ults())
        thrum_safepoint();
}

inline void spin(unsigned turns) {
    for (; turns > 0; turns--)
        __asm__ volatile("");
}

// So many ns of work, by the clock: about a slice, and a tick hits in it.
inline void work_for(std::uint64_t ns) {
    for (const std::uint64_t end = thrum_now() + ns; thrum_now() < end;)
        spin(50);
}

// Mostly short, sometimes longer than a slice: so that a holder of something is preempted in the middle. Reading the
// clock is in libc, and none of what the actor is in.
inline void hold(Actor &actor) {
    const In none(actor, kElsewhere);
    if (actor.random.one_in(64))
        work_for(options.slice_ns() + options.slice_ns() / 2);
    else
        spin(actor.random.below(300));
}

class Torture {
  public:
    virtual ~Torture() = default;
    virtual const char *name() const = 0;
    // Whether it means anything in this mode.
    virtual bool fits() const { return true; }
    // Alone in its round; else actors do some of each.
    virtual bool alone() const { return false; }
    virtual unsigned actors() const { return options.threads; }
    virtual unsigned workers() const { return options.workers; }
    // What the next round does, before that is asked for.
    virtual void next_round() {}
    // Actor i runs on worker i % workers only.
    virtual bool bound() const { return false; }
    // Whether the process may be stopped and continued meanwhile. Those that are mixed stand all that comes from outside.
    virtual bool may_be_stopped() const { return !alone(); }

    virtual void begin(unsigned actors) { (void)actors; } // before the runtime is there
    virtual void started() {}                             // the runtime is there, no actor is
    virtual bool may_refuse() { return false; } // EAGAIN was the answer to an actor's spawn: has it a reason?
    virtual void spawned() {}                   // all actors are there; some have done steps
    virtual void step(Actor &actor) = 0;        // again and again, until `over`
    virtual void last_step(Actor &actor) { (void)actor; } // what it still has is given back
    virtual void end() {}                                 // all actors have ended; the runtime is gone
};

using Tortures = std::vector<std::unique_ptr<Torture>>;

// One function a file, which adds what it has.
void add_malloc(Tortures &all);   // preempt_malloc.cpp
void add_stdio(Tortures &all);    // preempt_stdio.cpp
void add_locals(Tortures &all);   // preempt_locals.cpp
void add_mutexes(Tortures &all);  // preempt_mutexes.cpp
void add_conds(Tortures &all);    // preempt_conds.cpp
void add_throw(Tortures &all);    // preempt_throw.cpp
void add_loader(Tortures &all);   // preempt_loader.cpp
void add_process(Tortures &all);  // preempt_process.cpp
void add_threads(Tortures &all);  // preempt_threads.cpp
void add_busy(Tortures &all);     // preempt_busy.cpp
void add_floats(Tortures &all);   // preempt_floats.cpp
void add_deep(Tortures &all);     // preempt_deep.cpp
void add_turns(Tortures &all);    // preempt_turns.cpp
void add_regions(Tortures &all);  // preempt_regions.cpp
void add_scarce(Tortures &all);   // preempt_scarce.cpp
void add_signals(Tortures &all);  // preempt_signals.cpp
void add_pressure(Tortures &all); // preempt_outside.cpp

std::unique_ptr<Torture> make_malloc();

// preempt_floats.cpp: how many bytes the widest vector registers have that it fills; 0: it does not fill them.
unsigned widest_registers();

#endif
