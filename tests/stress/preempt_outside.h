// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: what happens to a process from outside while its threads are preempted: it is stopped and continued,
// memory becomes scarce, somebody sets the clock.
#ifndef TESTS_STRESS_PREEMPT_OUTSIDE_H
#define TESTS_STRESS_PREEMPT_OUTSIDE_H

#include <sys/types.h>

#include <thread>

#include "preempt_stress.h"

// As long as this is there.
class Outside {
  public:
    Outside(bool happens, std::uint64_t seed);
    ~Outside();
    Outside(const Outside &) = delete;

  private:
    void take_memory();
    void set_clock();

    pid_t stopper_ = 0;                          // a child, that sends SIGSTOP and SIGCONT
    std::atomic<bool> *stopper_stays_ = nullptr; // which it reads
    std::atomic<bool> ends_{false};
    std::thread memory_, clock_;
};

#endif
