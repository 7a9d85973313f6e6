// SPDX-License-Identifier: Apache-2.0
//
// libthrum itself: what the others are compared with.
#include <thrum/thrum.h>

#include "workloads.hpp"

namespace {

void check(int error) {
    if (error != 0) {
        std::fprintf(stderr, "thrum: %s\n", std::strerror(error));
        std::exit(1);
    }
}

struct Thrum {
    static constexpr bool kYields = true, kDetaches = true, kWaits = true, kLocks = true, kLives = true;
    static constexpr long kFib = 30, kSkynet = 1000000, kMost = 1000000;

    static void *call(void *body) {
        reinterpret_cast<void (*)()>(body)();
        return nullptr;
    }
    static void run(unsigned workers, void (*body)()) {
        const thrum_config config{workers};
        check(thrum_init(&config));
        thrum_t thread;
        check(thrum_spawn(&thread, nullptr, call, reinterpret_cast<void *>(body)));
        check(thrum_join(thread, nullptr));
    }
    static void life(unsigned workers) {
        const thrum_config config{workers};
        check(thrum_init(&config));
        check(thrum_fini());
    }
    static void yield() { thrum_yield(); }
    static void detach(workloads::Function fn, void *arg) { check(thrum_spawn(nullptr, nullptr, fn, arg)); }

    template <int N>
    class Group {
      public:
        void spawn(workloads::Function fn, void *arg) {
            check(thrum_spawn(&threads_[count_++], nullptr, fn, arg));
        }
        void queue(workloads::Function fn, void *arg) {
            thrum_attr_t attr;
            thrum_attr_init(&attr);
            thrum_attr_set_flags(&attr, THRUM_SPAWN_QUEUED);
            check(thrum_spawn(&threads_[count_++], &attr, fn, arg));
        }
        void join() {
            for (int i = 0; i < count_; i++)
                check(thrum_join(threads_[i], nullptr));
            count_ = 0;
        }

      private:
        int count_ = 0;
        thrum_t threads_[N];
    };

    struct Mutex {
        thrum_mutex_t mutex = THRUM_MUTEX_INIT;
        void lock() { thrum_mutex_lock(&mutex); }
        void unlock() { thrum_mutex_unlock(&mutex); }
    };
    struct Condition {
        thrum_cond_t cond = THRUM_COND_INIT;
        void wait(Mutex &mutex) { thrum_cond_wait(&cond, &mutex.mutex); }
        void signal() { thrum_cond_signal(&cond); }
        void broadcast() { thrum_cond_broadcast(&cond); }
    };
};

} // namespace

int main(int argc, char **argv) {
    return workloads::main_of<Thrum>(argc, argv);
}
