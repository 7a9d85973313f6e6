// SPDX-License-Identifier: Apache-2.0
//
// Waiting for a child while Ctrl-C may come. The signals are blocked and taken by sigtimedwait, so there is no
// handler and nothing is interrupted half-way; between children there may be one, which but remembers. Used by measure.cpp, compare.cpp
// and those of stat/.
#pragma once

#include <signal.h>
#include <sys/types.h>

namespace thrum {

// Ends this process by the signal's default action, without a core file. Returns where the signal has not ended it.
void die_of(int signal);

// As long as it lives, SIGINT, SIGTERM, SIGHUP and SIGQUIT (those not ignored from the start, as under nohup) end nothing
// but are remembered: a program in a session of its own would be left behind. SIGCHLD wakes, and Ctrl-Z is handed to suspend().
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
    // The last that wait() has told of; 0: none.
    int latest() const { return latest_; }
    // The last one came from the terminal, which tells all of its foreground processes.
    bool from_terminal() const { return from_terminal_; }
    // Has Ctrl-Z (SIGTSTP) come since the last call? `by_terminal`: the terminal sent it, to all foreground processes.
    bool take_stop(bool *by_terminal = nullptr);
    // Where it has: stops `target` (as kill takes it; 0: none) and this process, and continues `target` when this process is
    // continued. Returns the seconds in between, 0 where there was no Ctrl-Z.
    double suspend(pid_t target);
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
    int caught_ = 0, latest_ = 0;
    bool from_terminal_ = false;
    bool stop_came_ = false, stop_by_terminal_ = false;
};

} // namespace thrum
