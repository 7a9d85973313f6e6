// SPDX-License-Identifier: Apache-2.0
//
// What the layers that sample or count have in common (profile.cpp, timer_profile.cpp, exact.cpp): the program's memory
// map as it was last seen, samples that stay few enough to be kept, and the memory that libthrum-stat.so writes to.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <string>

#include "base/atomic.h"
#include "measure.hpp"
#include "stat/allowance.hpp"
#include "stat/layers.hpp"
#include "stat/probe.h"

namespace thrum::stat {

// The latest map of a process, read anew from time to time or when told, but for the beginning never so often that it takes
// more than a fifth of a percent of one CPU: a map of many threads is long. An ended process leaves the last one.
class MapReader {
  public:
    // `is_told`: changed() is called when there is more code in it, so that polling is seldom useful.
    explicit MapReader(std::vector<Maps> &maps, bool is_told = false) : maps_(maps), is_told_(is_told) {}
    void begin(pid_t pid) { pid_ = pid; }
    void changed() { next_ = std::min(next_, paid_at_); } // there is more to see
    void another_program();                               // executed by the same process
    void poll(double now);
    void take(const std::string &text); // from elsewhere

  private:
    std::vector<Maps> &maps_;
    bool is_told_;
    pid_t pid_ = 0;
    double next_ = 0, paid_at_ = 0; // the next time, and that from which on it is not too dear
};

// Keeps samples with their stacks, as many as are paid for (allowance.hpp) and can be kept: past a limit every second one is
// dropped, and of those that come as many. Each then stands for more CPU time.
class SampleKeeper {
  public:
    static constexpr double kShare = 0.004; // of one CPU

    explicit SampleKeeper(CpuProfile &profile, double share = kShare)
        : profile_(profile), allowance_(share) {}

    // Brackets all work for samples that have come. `is_last`: the program has ended, and cannot be disturbed.
    void begin(double now, bool is_last);
    void end();

    // If not, the samples are passed over: what makes them dear, their stacks and names, need not be looked at.
    bool are_paid_for() const { return are_paid_for_; }
    void pass_over(double weight) { passed_ += weight; }
    void add(CpuSample sample, RawStack &&stack);
    void clear();

  private:
    void thin();
    void spread();

    CpuProfile &profile_;
    Allowance allowance_;
    bool are_paid_for_ = true;
    unsigned stride_ = 1, skipped_ = 0;
    double weight_ = 0;             // of those that were dropped since the last one
    double passed_ = 0;             // of those that were passed over since the last look that was paid for
    std::size_t first_of_look_ = 0; // samples: the present look's
};

// As the probe copied it.
RawStack raw_stack(const struct probe_stack &stack);

// The memory that the program's libthrum-stat.so shares with us.
class ProbeFile {
  public:
    // Throws Failure (125) where the library is missing.
    explicit ProbeFile(probe_mode mode, std::uint64_t period = 0);
    ~ProbeFile();
    ProbeFile(const ProbeFile &) = delete;
    ProbeFile &operator=(const ProbeFile &) = delete;

    struct probe *operator->() const {
        return at_;
    }
    struct probe &get() const {
        return *at_;
    }
    const std::vector<std::string> &environment() const { return environment_; }
    std::uint32_t loaded() const { return load_acquire(&at_->loaded); }
    std::string maps() const; // those that the program left at its end; empty where it did not get to that
    std::string
    trouble() const; // what kept the library from its work, as the end of a sentence; empty: nothing

  private:
    Descriptor file_;
    std::vector<std::string> environment_;
    struct probe *at_ = nullptr;
};

// The map of the program that libthrum-stat.so is in.
class ProbedMaps {
  public:
    ProbedMaps(ProbeFile &probe, std::vector<Maps> &maps) : probe_(probe), reader_(maps) {}
    void begin(pid_t child);
    bool
    is_another(); // executed by the same process since the last call: what was seen of the former is forgotten
    void poll(double now) { reader_.poll(now); }
    void finish(); // as the program left it

  private:
    ProbeFile &probe_;
    MapReader reader_;
    std::uint32_t loaded_ = 0;
};

// What it says of where threads are made.
std::vector<ThreadMaker> makers_of(const struct probe &probe);

// Why a preloaded library cannot be used in this program; empty: it can.
std::string preload_refusal(const std::string &program);

} // namespace thrum::stat
