// SPDX-License-Identifier: Apache-2.0
//
// libgomp's tasks: no stacks of their own; a task waits for its children only, and taskyield does nothing. With more
// than 64 queued for each thread a new one runs at once.
#include <omp.h>

#include "grains.hpp"

namespace {

struct Gomp {
    static constexpr bool kYields = false, kDetaches = false, kWaits = false, kLocks = true, kLives = false;
    static constexpr long kFib = 30, kSkynet = 1000000, kMost = 1000000;

    static void run(unsigned workers, void (*body)()) {
        const int threads = static_cast<int>(workers);
#pragma omp parallel num_threads(threads)
#pragma omp single
        body();
    }
    static void life(unsigned) {}
    static void yield() {}

    template <int N>
    struct Group {
        void spawn(workloads::Function fn, void *arg) {
#pragma omp task firstprivate(fn, arg)
            fn(arg);
        }
        void queue(workloads::Function fn, void *arg) {
            spawn(fn, arg);
        }
        void join() {
#pragma omp taskwait
        }
    };

    class Mutex {
      public:
        Mutex() { omp_init_lock(&lock_); }
        void lock() { omp_set_lock(&lock_); }
        void unlock() { omp_unset_lock(&lock_); }

      private:
        omp_lock_t lock_;
    };
};

} // namespace

int main(int argc, char **argv) {
    return workloads::main_of<Gomp>(argc, argv, grains::run_wanted<Gomp>);
}
