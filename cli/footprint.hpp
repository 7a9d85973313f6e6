// SPDX-License-Identifier: Apache-2.0
//
// How much memory and how many kernel threads a running program has: looked at now and then while `thrum compare` waits
// for it, seldom enough that the program does not notice.
#pragma once

#include <sys/types.h>

#include "measure.hpp"

namespace thrum {

class Footprint {
  public:
    explicit Footprint(pid_t pid) : pid_(pid) {}

    // Looks, if it is time to.
    void look();
    double seconds_to_next() const;
    // Into `run`, which has its resource usage; `largest` is that usage's maximum resident size in bytes.
    void store(Run &run, double largest) const;

  private:
    pid_t pid_;
    double last_ = 0, next_ = 0, interval_ = 0; // seconds
    double seconds_ = 0;                        // that the means are over
    double memory_ = 0, tasks_ = 0;             // each times seconds
    double now_memory_ = 0, now_tasks_ = 0, peak_memory_ = 0, peak_tasks_ = 0;
};

} // namespace thrum
