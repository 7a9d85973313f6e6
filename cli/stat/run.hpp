// SPDX-License-Identifier: Apache-2.0
//
// One run of the program, with what it cost: bare, or with layers that look at it (layers.hpp). Or a process that runs
// already, for a while. Used by sweep.cpp and examination.cpp.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "interrupts.hpp"
#include "stat/layers.hpp"
#include "tools/machine.hpp"

namespace thrum::stat {

// What to start.
struct Launch {
    std::string path;
    std::vector<std::string> words;
    std::vector<std::string> environment; // NAME=VALUE, all of it
    unsigned threads = 0;                 // as asked for; 0: not told
    unsigned processors = 0;              // run on so many of the CPUs that are allowed; 0: on all
    double time_limit = 0;                // seconds, after which it is ended; 0: none
};

// Where its standard streams come from and go to.
struct Streams {
    enum Output { kOwn, kErrors, kNowhere }; // kErrors: what it prints on stdout goes to stderr
    Output output = kNowhere;
    bool own_input = false; // the command's stdin; otherwise `input`
    std::string input;      // a file, read from the start; empty: the command's stdin from `input_begin` on
                            // where that is a file, otherwise nothing
    off_t input_begin = -1; // -1: it has no offsets
    int capture =
        -1; // a file that what it prints goes to, on stdout and stderr, whatever `output` says; -1: none
    // In the command's process group, as the terminal has it: Ctrl-C and Ctrl-Z reach it by themselves. Otherwise in a
    // session of its own, so that all that it starts can be ended with it.
    bool in_foreground() const { return own_input; }
};

struct Measured {
    int status = 0;           // as from waitpid
    bool incomplete = false;  // an interrupt ended it, or the looking at it
    bool timed_out = false;   // ended by us, after the time limit
    bool stopped = false;     // by Ctrl-Z, for a while: its times are of no use
    bool left_behind = false; // processes of its session that outlived it
    double wall = 0, user = 0, system = 0;
    double own_cpu = 0,
           children_cpu = 0; // user and system, of the process and of those that it has waited for
    std::uint64_t voluntary = 0, involuntary = 0; // context switches
    std::uint64_t faults_major = 0;
    double run_delay = 0;      // of the threads that were seen
    unsigned most_threads = 0; // at once, as seen
    Load load;
};

// CPU time that is in `measured` and not the program's.
void leave_out_cpu(double seconds, Measured &measured);

// A process's threads as /proc shows them, looked at ten times a second at most and once more when it has ended, for a
// millisecond of CPU time: of more threads than that allows for, those that come first in /proc are looked at, and always one.
// What becomes of one after the last look is missed, so the sum is a lower bound.
class ThreadWatch {
  public:
    explicit ThreadWatch(pid_t pid, double budget = 1e-3) : pid_(pid), budget_(budget) {}
    void look();
    unsigned most() const { return most_; }
    double run_delay() const;  // seconds, since the first look, of all
    void leave_out_what_was(); // what they have waited so far is not to be counted

  private:
    void look_at(const std::string &folder, pid_t thread);

    pid_t pid_;
    double budget_; // seconds of CPU time, for one look
    unsigned most_ = 0;
    std::vector<pid_t> part_;
    std::map<pid_t, std::uint64_t> delay_ns_, before_ns_;
};

// Throws Failure: 126 or 127 where the program cannot be started, 1 where a stream cannot be opened; and, without a line,
// where a second interrupt says that nothing is wanted any more. `on_tick` is called about twice a second.
Measured run(const Launch &launch, const Streams &streams, const std::vector<Layer *> &layers,
             Interrupts &interrupts, const std::function<void()> &on_tick);

// A process that is not ours, for so many seconds or until it ends or an interrupt comes. Its status is not known.
Measured watch(pid_t pid, double seconds, const std::vector<Layer *> &layers, Interrupts &interrupts,
               const std::function<void()> &on_tick);

} // namespace thrum::stat
