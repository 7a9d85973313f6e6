// SPDX-License-Identifier: Apache-2.0
//
// oneTBB: tasks without stacks. They cannot wait for anything but their own children, nor yield.
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/mutex.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include "grains.hpp"

namespace {

struct Tbb {
    static constexpr bool kYields = false, kDetaches = false, kWaits = false, kLocks = true, kLives = false;
    static constexpr long kFib = 30, kSkynet = 1000000, kMost = 1000000;

    static void run(unsigned workers, void (*body)()) {
        const tbb::global_control control(tbb::global_control::max_allowed_parallelism, workers);
        tbb::task_arena arena(static_cast<int>(workers));
        arena.execute([body] { body(); });
    }
    static void life(unsigned) {}
    static void yield() {}

    template <int N>
    class Group {
      public:
        void spawn(workloads::Function fn, void *arg) {
            group_.run([fn, arg] { fn(arg); });
        }
        void queue(workloads::Function fn, void *arg) { spawn(fn, arg); }
        void join() { group_.wait(); }

      private:
        tbb::task_group group_;
    };

    using Mutex = tbb::mutex;
};

} // namespace

int main(int argc, char **argv) {
    return workloads::main_of<Tbb>(argc, argv, grains::run_wanted<Tbb>);
}
