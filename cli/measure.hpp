// SPDX-License-Identifier: Apache-2.0
//
// One run of a program, with what it cost. compare.cpp calls it once for every run, with the cache or without; the
// only difference between the two is LD_PRELOAD.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "thrum/cache.h"
#include "tools/descriptor.hpp"

namespace thrum {

class Interrupts;

using Counters = struct thrum_cache_counters; // C++ takes the bare name for the object

// The counters of all processes of a run, which they add up in memory that is shared with them (THRUM_CACHE_TOTAL).
class Total {
  public:
    Total();
    ~Total();
    Total(const Total &) = delete;
    Total &operator=(const Total &) = delete;

    const std::string &path() const { return path_; } // for the variable
    void clear();
    // Nothing where the library was not loaded, or no process got to adding its counters.
    std::optional<Counters> read() const;

  private:
    Descriptor file_;
    std::string path_;
    struct thrum_cache_total *at_ = nullptr;
};

struct Program {
    std::string path;
    std::vector<std::string> words;
    std::string input = "/dev/null"; // opened for each run
    bool show_output = false;        // stdout and stderr go to stderr; otherwise nowhere
    double time_limit = 0;           // seconds; 0: none
};

struct Run {
    int status = 0;          // as from waitpid
    bool timed_out = false;  // ended by us, after the time limit
    bool incomplete = false; // ended by us, after an interrupt
    bool stopped = false;    // by Ctrl-Z, for a while: its times are of no use
    // Seconds. The CPU times are those of the process and of its children that it waited for.
    double wall = 0, user = 0, system = 0;
    std::uint64_t voluntary = 0, involuntary = 0; // context switches
    std::uint64_t faults = 0;                     // of memory pages
    // Memory in bytes, and kernel threads. 0: not known, the run was too short to be looked at. `peak_memory` is that of
    // its largest process; the others are of the process and what its main thread started, looked at now and then.
    double peak_memory = 0, mean_memory = 0, peak_tasks = 0, mean_tasks = 0;
    std::optional<Counters> counters; // with the cache only

    double cpu() const { return user + system; }
    std::uint64_t switches() const { return voluntary + involuntary; }
};

// Starts the program in a session of its own, so that all that it starts can be ended with it, and no terminal
// stops it. `errors`: a file for its stderr, or -1. `on_tick` is called about once a second meanwhile.
// Throws Failure: 126 or 127 where the program cannot be started, 1 where its input cannot be opened.
Run measure(const Program &program, const std::vector<std::string> &environment, Total &total, int errors,
            Interrupts &interrupts, const std::function<void()> &on_tick);

} // namespace thrum
