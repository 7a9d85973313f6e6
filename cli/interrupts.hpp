// SPDX-License-Identifier: Apache-2.0
//
// Waiting for a child while Ctrl-C may come. The signals are blocked and taken by sigtimedwait, so there is no
// handler and nothing is interrupted half-way; between children there may be one, which but remembers. Used by measure.cpp, compare.cpp
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
    int caught() const;
    // The last one came from the terminal, which tells all of its foreground processes.
    bool from_terminal() const { return from_terminal_; }
    // The mask from before, for children.
    const sigset_t &outer_mask() const { return outer_; }
    // From now on they end this process, as they would without it.
    void release();
    // The same from the second one on, for what takes a while and has no child that would be told: the first is remembered.
    // As often as one likes, and until watch() is called, which must be before the next child is made.
    void release_second();
    void watch();
    // In a child that was forked: signals as they were before. May be called between fork and exec.
    void restore_in_child() const;

  private:
    sigset_t watched_, outer_;
    struct sigaction outer_child_;
    bool has_handlers_ = false; // release_second() was called last
    int caught_ = 0;
    bool from_terminal_ = false;
};

} // namespace thrum
