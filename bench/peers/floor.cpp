// SPDX-License-Identifier: Apache-2.0
//
// The floor (../floor.h) as a runtime: what libthrum's rows are compared with.
#include "../floor.h"

#include "workloads.hpp"

namespace {

struct Floor {
    static constexpr bool kYields = true, kDetaches = false, kWaits = true, kLocks = true, kLives = false;
    static constexpr long kFib = 30, kSkynet = 1000000, kMost = 50000;

    static void run(unsigned workers, void (*body)()) {
        floor_init(workers);
        body();
    }
    static void yield() { floor_yield(); }

    template <int N>
    class Group {
      public:
        void spawn(workloads::Function fn, void *arg) { threads_[count_++] = floor_spawn(fn, arg); }
        void queue(workloads::Function fn, void *arg) { spawn(fn, arg); }
        void join() {
            for (int i = 0; i < count_; i++)
                floor_join(threads_[i]);
            count_ = 0;
        }

      private:
        int count_ = 0;
        floor_thread *threads_[N];
    };

    struct Mutex {
        floor_mutex mutex = {};
        void lock() { floor_lock(&mutex); }
        void unlock() { floor_unlock(&mutex); }
    };
    struct Condition {
        floor_cond cond = {};
        floor_mutex *waited_with = nullptr;
        void wait(Mutex &mutex) {
            waited_with = &mutex.mutex;
            floor_wait(&cond, &mutex.mutex);
        }
        void signal() { floor_signal(&cond, waited_with); }
        void broadcast() { floor_broadcast(&cond, waited_with); }
    };
};

} // namespace

int main(int argc, char **argv) {
    return workloads::main_of<Floor>(argc, argv);
}
