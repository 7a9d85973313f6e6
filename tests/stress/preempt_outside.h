// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: what happens to a process from outside while its threads are preempted: it is stopped and
// continued, memory becomes scarce, the clock is set.
#ifndef TESTS_STRESS_PREEMPT_OUTSIDE_H
#define TESTS_STRESS_PREEMPT_OUTSIDE_H

#include <sys/types.h>

#include <cstdint>
#include <thread>

#include "preempt_stress.h"

// What may happen; some of it does.
struct Disturbances {
    bool stops = false, clock = false, memory = false;
};

// As long as this is there.
class Outside {
  public:
    Outside(const Disturbances &may, std::uint64_t seed);
    ~Outside();
    Outside(const Outside &) = delete;

  private:
    // What the two children read and write.
    struct Shared {
        std::atomic<bool> stays{true};
        std::atomic<std::uint64_t> clock_steps{0}, stops{0};
    };

    static void stop_and_continue(pid_t parent, Shared &shared, Random random);
    static void set_clock(pid_t parent, Shared &shared, Random random);
    template <typename Does>
    pid_t have_child(const Does &does, Random random);
    void take_memory();

    Shared *shared_ = nullptr;
    pid_t stopper_ = 0, clock_ = 0; // children, of which one sends SIGSTOP and SIGCONT
    std::atomic<bool> ends_{false};
    std::thread memory_;
};

// Whether this process may set the clock. It does not.
bool clock_may_be_set();
// How often it was, there and back being two.
std::uint64_t clock_steps_so_far();
// How often this process was stopped.
std::uint64_t stops_so_far();

#endif
