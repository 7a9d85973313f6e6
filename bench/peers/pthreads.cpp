// SPDX-License-Identifier: Apache-2.0
//
// The kernel's own threads. So many workers: the process may use so many CPUs.
#include <pthread.h>

#include "workloads.hpp"

namespace {

void check(int error) {
    if (error != 0) {
        std::fprintf(stderr, "pthreads: %s\n", std::strerror(error));
        std::exit(1);
    }
}

struct Pthreads {
    static constexpr bool kYields = true, kDetaches = true, kWaits = true, kLocks = true, kLives = false;
    static constexpr long kFib = 16, kSkynet = 1000, kMost = 5000;

    static void run(unsigned workers, void (*body)()) {
        cpu_set_t all, some;
        CPU_ZERO(&some);
        sched_getaffinity(0, sizeof all, &all);
        for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&some) < static_cast<int>(workers); cpu++)
            if (CPU_ISSET(cpu, &all))
                CPU_SET(cpu, &some);
        sched_setaffinity(0, sizeof some, &some);
        body();
    }
    static void life(unsigned) {}
    static void yield() { sched_yield(); }
    static void detach(workloads::Function fn, void *arg) {
        pthread_t thread;
        check(pthread_create(&thread, nullptr, fn, arg));
        check(pthread_detach(thread));
    }

    template <int N>
    class Group {
      public:
        void spawn(workloads::Function fn, void *arg) {
            check(pthread_create(&threads_[count_++], nullptr, fn, arg));
        }
        void queue(workloads::Function fn, void *arg) { spawn(fn, arg); }
        void join() {
            for (int i = 0; i < count_; i++)
                check(pthread_join(threads_[i], nullptr));
            count_ = 0;
        }

      private:
        int count_ = 0;
        pthread_t threads_[N];
    };

    struct Mutex {
        pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        void lock() { pthread_mutex_lock(&mutex); }
        void unlock() { pthread_mutex_unlock(&mutex); }
    };
    struct Condition {
        pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
        void wait(Mutex &mutex) { pthread_cond_wait(&cond, &mutex.mutex); }
        void signal() { pthread_cond_signal(&cond); }
        void broadcast() { pthread_cond_broadcast(&cond); }
    };
};

} // namespace

int main(int argc, char **argv) {
    return workloads::main_of<Pthreads>(argc, argv);
}
