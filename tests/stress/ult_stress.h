// SPDX-License-Identifier: Apache-2.0
//
// What the parts of stress-ult share (ult_stress.cpp): counters, random numbers, and Program, what a thread does.
#ifndef TESTS_STRESS_ULT_STRESS_H
#define TESTS_STRESS_ULT_STRESS_H

#include <thrum/pool.h>
#include <thrum/thrum.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "random.h"

constexpr long kLiveLimit = 20000;

extern bool exceptions;
extern std::atomic<bool> round_over;
extern thrum_key_t key;

struct Count {
    std::atomic<long> spawned{0}, ran{0}, joined{0}, live{0}, unowned{0}, steps{0}, put{0}, taken{0},
        timeouts{0}, slept{0}, resumed{0}, cancelled{0}, moved{0}, pooled{0}, revived{0}, succeeded{0},
        blocked{0}, workers{0}, rounds{0};
};
extern Count count;

[[noreturn]] void fail(const char *what, const char *file, int line);

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            fail("not so: " #condition, __FILE__, __LINE__);                                                 \
    } while (0)

inline std::uint64_t result_of(std::uint64_t seed) {
    return mixed(seed ^ 0x7e57) | 1;
}

// A moment that is over, is now, or comes in a while.
inline std::uint64_t soon(Random &random) {
    return thrum_now() + random.below(random.one_in(4) ? 400 : 20) * THRUM_US;
}

// A thread and its work; made by its spawner. Its joiner deletes it; if it cannot be joined, it does so itself.
struct Task {
    std::uint64_t seed;
    int depth;
    bool unowned = false;  // its spawner does not read its result, or not through this
    bool suspends = false; // at its beginning, once
    bool exits = false;    // by thrum_exit, from within
    std::atomic<int> runs{0};
    thrum_t handle = nullptr;
    std::unique_ptr<char[]> stack{}; // that it runs on, or none of its own
};

class Program {
  public:
    Program(std::uint64_t seed, int depth);
    ~Program();
    Program(const Program &) = delete;

    void run(int steps) {
        for (int i = 0; i < steps; i++) {
            step();
            check();
            count.steps++;
        }
    }

  private:
    void step();
    void check() const;
    bool may_spawn() const { return depth_ > 0 && count.live <= kLiveLimit; }

    // ult_stress.cpp
    void throw_and_catch();
    void catch_and_wait();
    void compute() {
        for (unsigned i = random_.below(2000); i > 0; i--)
            __asm__ volatile("");
    }

    // ult_threads.cpp
    void attributes(thrum_attr_t *attr);
    Task *make(int depth);
    void start(Task *task, thrum_t *handle);
    Task *spawn(int depth);
    void spawn_and_join();
    void spawn_detached();
    void spawn_and_detach();
    void spawn_many();
    void spawn_tasklets();
    void join_or_let_go();
    void finish(Task *task);
    void finish_in_time(Task *task);
    void pass_on();
    void suspend_and_resume();
    void spawn_and_cancel();
    void live_twice();
    void leave_to_another();
    void change_workers();
    void block();
    void move();
    void nap();

    // ult_objects.cpp
    void exclude();
    void exchange();
    void wait_for_tick();
    void read_and_write();
    void take_permit();
    void meet();
    void be_told();
    void pass_through_channel();
    void settle();
    void wait_for_any();

    Random random_;
    std::uint64_t seed_;
    int depth_;
    int mode_;
    thrum_t self_;
    std::array<std::uint64_t, 16> locals_;
};

// What a spawned thread runs; `task` is a Task.
void *run_task(void *task);

// A round's: mailboxes, pools and schedulers on some of the workers and on threads; objects.
void threads_begin(std::uint64_t seed);
void threads_end();
void mailboxes_empty();
void objects_tick(); // a thread does so until objects_ticking is false
void objects_check();

#endif
