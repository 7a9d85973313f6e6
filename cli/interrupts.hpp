// SPDX-License-Identifier: Apache-2.0
//
// Waiting for a child while Ctrl-C may come. The signals are blocked and taken by sigtimedwait, so there is no
// handler and nothing is interrupted half-way. Used by measure.cpp and compare.cpp.
#pragma once

#include <signal.h>

namespace thrum {

// As long as it lives, SIGINT, SIGTERM and SIGHUP (those not ignored from the start, as under nohup) end nothing but
// are remembered, SIGCHLD wakes, and Ctrl-Z waits: a program that is stopped cannot be measured.
class Interrupts {
  public:
    Interrupts();
    ~Interrupts();
    Interrupts(const Interrupts &) = delete;
    Interrupts &operator=(const Interrupts &) = delete;

    // Waits for a child to change, an interrupt, or so long. True: one more interrupt came.
    bool wait(double seconds);
    // The first that came; 0: none.
    int caught() const { return caught_; }
    // The mask from before, for children.
    const sigset_t &outer_mask() const { return outer_; }

  private:
    sigset_t watched_, outer_;
    struct sigaction outer_child_;
    int caught_ = 0;
};

} // namespace thrum
