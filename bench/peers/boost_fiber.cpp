// SPDX-License-Identifier: Apache-2.0
//
// Boost.Fiber: work stealing among so many kernel threads, as its own examples set it up; a fiber that is spawned as by
// default is queued ("post"), which here is queue(); spawn() runs it at once ("dispatch"), as thrum does. Stacks of
// 64 KiB from malloc, without a guard page: with one each costs two system calls. malloc is told to keep them.
#include <malloc.h>

#include <boost/fiber/all.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "grains.hpp"

namespace {

namespace fibers = boost::fibers;

struct Fibers {
    static constexpr bool kYields = true, kDetaches = true, kWaits = true, kLocks = true, kLives = false;
    static constexpr long kFib = 24, kSkynet = 100000, kMost = 20000;

    static void run(unsigned workers, void (*body)()) {
        mallopt(M_MMAP_THRESHOLD, 1 << 30);
        mallopt(M_TRIM_THRESHOLD, 1 << 30);
        std::vector<std::thread> threads;
        for (unsigned i = 1; i < workers; i++)
            threads.emplace_back([workers] {
                fibers::use_scheduling_algorithm<fibers::algo::work_stealing>(workers);
                fibers::mutex mutex;
                std::unique_lock<fibers::mutex> lock(mutex);
                fibers::condition_variable().wait(lock); // for ever: the thread runs other fibers meanwhile
            });
        fibers::use_scheduling_algorithm<fibers::algo::work_stealing>(workers);
        // Not the main fiber, which is bound to its thread.
        fibers::fiber(fibers::launch::post, std::allocator_arg, stacks(), body).join();
        std::fflush(stdout);
        _exit(0); // the other threads wait for ever
    }
    static void life(unsigned) {}
    static fibers::fixedsize_stack stacks() { return fibers::fixedsize_stack(64 * 1024); }
    static fibers::fiber make(fibers::launch how, workloads::Function fn, void *arg) {
        return fibers::fiber(how, std::allocator_arg, stacks(), [fn, arg] { fn(arg); });
    }
    static void yield() { boost::this_fiber::yield(); }
    static void detach(workloads::Function fn, void *arg) {
        make(fibers::launch::dispatch, fn, arg).detach();
    }

    template <int N>
    class Group {
      public:
        void spawn(workloads::Function fn, void *arg) { add(make(fibers::launch::dispatch, fn, arg)); }
        void queue(workloads::Function fn, void *arg) { add(make(fibers::launch::post, fn, arg)); }
        void join() {
            for (int i = 0; i < count_; i++)
                fibers_[i].join();
            count_ = 0;
        }

      private:
        void add(fibers::fiber fiber) { fibers_[count_++] = std::move(fiber); }
        int count_ = 0;
        fibers::fiber fibers_[N];
    };

    using Mutex = fibers::mutex;
    struct Condition {
        fibers::condition_variable_any cond;
        void wait(Mutex &mutex) { cond.wait(mutex); }
        void signal() { cond.notify_one(); }
        void broadcast() { cond.notify_all(); }
    };
};

} // namespace

int main(int argc, char **argv) {
    return workloads::main_of<Fibers>(argc, argv, grains::run_wanted<Fibers>);
}
