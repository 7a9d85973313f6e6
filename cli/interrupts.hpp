// SPDX-License-Identifier: Apache-2.0
//
// Waiting for a child while Ctrl-C may come. The signals are blocked and taken by sigtimedwait, so there is no
// handler and nothing is interrupted half-way. Used by measure.cpp, compare.cpp
// and those of stat/.
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
    // The last one came from the terminal, which tells all of its foreground processes.
    bool from_terminal() const { return from_terminal_; }
    // The mask from before, for children.
    const sigset_t &outer_mask() const { return outer_; }
    // From now on they end this process, as they would without it.
    void release();
    // In a child that was forked: signals as they were before. May be called between fork and exec.
    void restore_in_child() const;

  private:
    sigset_t watched_, outer_;
    struct sigaction outer_child_;
    int caught_ = 0;
    bool from_terminal_ = false;
};

} // namespace thrum
