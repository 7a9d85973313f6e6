// SPDX-License-Identifier: Apache-2.0
//
// What looking at a program may cost while it runs: a share of one CPU. It is earned as time goes by, and spent as the CPU
// time of the thread that looks. Where none is left less is looked at, so that the rate falls where looking is dear, and not
// the program's speed. Used by sampler.cpp and thread_list.cpp, and by collect.cpp for CPU profiles.
#pragma once

namespace thrum::stat {

// Seconds, of the thread that calls.
double thread_cpu_time();

class Allowance {
  public:
    explicit Allowance(double share) : share_(share) {}

    // What is done from here to end() is paid for. `now`: seconds since the program began.
    void begin(double now);
    void end();

    double left() const { return left_; } // seconds, before what is being done; it may be owed
    double share() const { return share_; }

  private:
    // Seconds: in the beginning, and that may be saved up.
    static constexpr double kFirst = 0.005, kMost = 0.02;

    double share_, left_ = kFirst;
    double earned_until_ = 0, begun_ = 0; // on the program's clock, and on that of this thread's CPU time
};

} // namespace thrum::stat
