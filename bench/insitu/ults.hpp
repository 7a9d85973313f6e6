// SPDX-License-Identifier: Apache-2.0
//
// The arms with ULTs of libthrum: one for each worker and phase of a step, and one for each share of the analysis.
//
// Each worker has a queue of so many levels. It runs what is in its own first, the highest level first, and then helps the
// others, with their highest first. With two levels the simulation's threads are in the higher one and the analysis's in
// the lower; with one all are alike. The lower level gives the oldest thread first, also one that was interrupted: the
// analysis is done with one snapshot before it begins the next, and buffers come free one by one.
#ifndef THRUM_BENCH_INSITU_ULTS_HPP
#define THRUM_BENCH_INSITU_ULTS_HPP

#include <thrum/pool.h>
#include <thrum/thrum.h>

#include <vector>

#include "arms.hpp"

namespace insitu {

// Made by the thread that called thrum_init. Ends the runtime.
class Ults final : public Threads {
  public:
    Ults(unsigned workers, unsigned levels);
    ~Ults() override;
    Ults(const Ults &) = delete;
    Ults &operator=(const Ults &) = delete;

    unsigned size() const override { return workers_; }
    void run(const Part &part) override;
    void drive(const std::function<void()> &fn) override;
    void look(void *(*fn)(void *), void *arg) override;

  private:
    // Where the threads of the simulation, or those of the analysis, of this worker wait.
    thrum_attr_t simulation(unsigned worker) const { return queued(pools_[worker * levels_]); }
    thrum_attr_t analysis(unsigned worker) const { return queued(pools_[(worker + 1) * levels_ - 1]); }
    static thrum_attr_t queued(thrum_pool_t pool);

    unsigned workers_, levels_;
    std::vector<thrum_pool_t> pools_; // by workers, the highest level first
    std::vector<thrum_sched_t> schedulers_;
    unsigned next_ = 0; // whose the next thread of the analysis is
};

} // namespace insitu

#endif
