// SPDX-License-Identifier: Apache-2.0
//
// The arms with pthreads. The simulation's are created once and meet at barriers, with the caller as one of them. The
// analysis's are created when there is something to analyse, and end when they have done so.
#ifndef THRUM_BENCH_INSITU_KERNEL_THREADS_HPP
#define THRUM_BENCH_INSITU_KERNEL_THREADS_HPP

#include <pthread.h>

#include <thread>
#include <vector>

#include "arms.hpp"

namespace insitu {

class KernelThreads final : public Threads {
  public:
    KernelThreads(unsigned size, Standing standing);
    ~KernelThreads() override;
    KernelThreads(const KernelThreads &) = delete;
    KernelThreads &operator=(const KernelThreads &) = delete;

    unsigned size() const override { return size_; }
    void run(const Part &part) override;
    void drive(const std::function<void()> &fn) override { fn(); }
    void look(void *(*fn)(void *), void *arg) override;

  private:
    void help(unsigned which);

    unsigned size_;
    Standing standing_;
    pthread_barrier_t begin_, end_;
    const Part *part_ = nullptr; // between the barriers; null: the helpers must end
    std::vector<std::thread> helpers_;
};

} // namespace insitu

#endif
