// SPDX-License-Identifier: Apache-2.0
//
// A barrier as in closed libraries: an arrived thread polls a word until all have arrived, and does nothing else. It
// neither yields nor tells the processor that it waits, since it assumes a CPU for each thread. If threads share one
// without preemption, those that have not arrived never will.
#ifndef THRUM_BENCH_CHOLESKY_BARRIER_HPP
#define THRUM_BENCH_CHOLESKY_BARRIER_HPP

#include <atomic>

namespace cholesky {

class Barrier {
  public:
    // With `patch` it is called in each turn of the loop: what can be done to a library whose source is at hand.
    Barrier(unsigned parties, void (*patch)()) : parties_(parties), patch_(patch) {}

    void wait() {
        const unsigned round = round_.load(std::memory_order_acquire);
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == parties_) {
            arrived_.store(
                0, std::memory_order_relaxed); // before the round: no thread comes to the next one sooner
            round_.store(round + 1, std::memory_order_release);
        } else if (patch_ == nullptr) {
            while (round_.load(std::memory_order_acquire) == round) {
            }
        } else {
            while (round_.load(std::memory_order_acquire) == round)
                patch_();
        }
    }

  private:
    const unsigned parties_;
    void (*const patch_)();
    std::atomic<unsigned> arrived_{0}, round_{0};
};

} // namespace cholesky

#endif
