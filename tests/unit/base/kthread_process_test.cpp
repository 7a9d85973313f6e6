// SPDX-License-Identifier: Apache-2.0
//
// The kthread layer: what is for good in a process, each test in a forked child of its own: keeping stops, main
// leaves, the process forks.
#include <sys/wait.h>

#include "layer.hpp"

namespace {

void *number(uintptr_t value) {
    return reinterpret_cast<void *>(value);
}

// In a child: EXPECT_ failures count, too.
class KthreadProcess : public Layer {
  protected:
    static int child(const std::function<void()> &work) {
        return in_child([&] { return work_in_child(work); });
    }

  private:
    static int work_in_child(const std::function<void()> &work) {
        kthread_fork_child(true);
        work();
        return HasFailure() ? 1 : 0;
    }
};

TEST_F(KthreadProcess, StopEndsTheIdleOnesAndLetsTheOthersRetire) {
    EXPECT_EQ(child([this] {
                  std::atomic<bool> go{false};
                  auto hold = [&]() -> void * {
                      eventually([&] { return go.load(); });
                      return number(5);
                  };
                  EXPECT_STREQ(kthread_state(), "on");
                  EXPECT_TRUE(kthread_keeping());
                  Started running = start(hold), ended = start([] { return number(6); });
                  start(hold, true);
                  make_idle(2);
                  EXPECT_TRUE(eventually([&] { return load_acquire(&ended.thread->life) == LIFE_ENDED; }));
                  EXPECT_EQ(thrum_cache_counters.idle, 2u);

                  kthread_stop_keeping("a reason");
                  kthread_stop_keeping("another");
                  EXPECT_STREQ(kthread_state(), "a reason") << "the first one stands";
                  EXPECT_FALSE(kthread_keeping());
                  EXPECT_EQ(thrum_cache_counters.idle, 0u);
                  EXPECT_TRUE(eventually([&] { return load_acquire(&ended.thread->life) == LIFE_RETIRED; }));
                  EXPECT_EQ(join(ended), number(6)) << "its result is not lost";
                  go = true;
                  EXPECT_EQ(join(running), number(5));
                  EXPECT_TRUE(eventually([] { return known_descriptors() == 0; }));
                  EXPECT_TRUE(eventually([] { return threads_of_process() <= 1 + kForeignThreads; }));
                  EXPECT_EQ(counted(RETIRE_OFF), 3u);

                  EXPECT_EQ(start([] { return number(7); }).error, KTHREAD_NOT_KEPT) << "nor is a later one";
                  EXPECT_EQ(known_descriptors(), 0u);
                  EXPECT_EQ(counted(RETIRE_OFF), 3u);
              }),
              0);
}

// Against threads that are ending at this very moment: none may stay parked.
TEST_F(KthreadProcess, StopAgainstThreadsThatEnd) {
    for (int delay = 0; delay < 60 / (UNIT_TSAN || UNIT_EMULATED ? 5 : 1); delay++)
        ASSERT_EQ(child([&, this] {
                      std::vector<Started> joinable;
                      for (int i = 0; i < 4; i++) {
                          joinable.push_back(start([] { return number(4); }));
                          start([] { return number(0); }, true);
                      }
                      usleep(static_cast<useconds_t>(delay * 7));
                      kthread_stop_keeping("a reason");
                      EXPECT_TRUE(eventually([] { return threads_of_process() <= 1 + kForeignThreads; }))
                          << "one is parked";
                      EXPECT_EQ(load_relaxed(&thrum_cache_counters.idle), 0u);
                      registry_each(
                          [](kthread *one, void *) {
                              EXPECT_EQ(load_acquire(&one->life), static_cast<uint32_t>(LIFE_RETIRED))
                                  << "joinable and retired: waits for its joiner";
                          },
                          nullptr);
                      EXPECT_EQ(known_descriptors(), 4u);
                      for (const Started &one : joinable)
                          EXPECT_EQ(join(one), number(4));
                  }),
                  0)
            << delay;
}

TEST_F(KthreadProcess, MainsExitLetsTheLastThreadEndTheProcess) {
    EXPECT_EQ(child([this] {
                  std::atomic<bool> go{false};
                  make_idle(2);
                  start(
                      [&]() -> void * {
                          eventually([&] { return go.load(); });
                          return nullptr;
                      },
                      true);
                  kthread_main_exits();
                  EXPECT_STREQ(kthread_state(), "the main thread has exited");
                  EXPECT_EQ(thrum_cache_counters.idle, 0u);
                  go = true;
                  EXPECT_TRUE(eventually([] { return counted(RETIRE_LAST) == 1; }));
                  EXPECT_TRUE(eventually([] { return threads_of_process() <= 1 + kForeignThreads; }));
              }),
              0);
}

TEST_F(KthreadProcess, AForksChildBeginsWithNothingIdle) {
    make_idle(3);
    const uint64_t reused = thrum_cache_counters.reused;
    EXPECT_EQ(child([this] {
                  EXPECT_EQ(thrum_cache_counters.idle, 0u);
                  EXPECT_EQ(thrum_cache_counters.created, 0u);
                  EXPECT_EQ(thrum_cache_counters.live, 0u);
                  EXPECT_EQ(known_descriptors(), 0u);
                  EXPECT_EQ(kthread_cull(), 0u);
                  EXPECT_STREQ(kthread_state(), "on");
                  const pid_t tid = run();
                  EXPECT_EQ(run(), tid);
                  EXPECT_EQ(thrum_cache_counters.created, 1u);
              }),
              0);
    EXPECT_EQ(thrum_cache_counters.idle, 3u);
    run();
    EXPECT_EQ(thrum_cache_counters.reused, reused + 1) << "the parent's are as they were";
}

TEST_F(KthreadProcess, AThreadOfOursForks) {
    std::atomic<bool> go{false};
    int status = -1;
    Started other = start([&]() -> void * {
        eventually([&] { return go.load(); });
        return nullptr;
    });
    Started forker = start([&]() -> void * {
        kthread *self = kthread_self_sigsafe();
        eventually([&] { return load_acquire(&self->life) == LIFE_AWAITED; });
        status = in_child([&] {
            kthread_fork_child(false);
            EXPECT_EQ(kthread_self_sigsafe(), self);
            EXPECT_EQ(self->tid, own_tid()) << "it has another tid now";
            EXPECT_EQ(load_relaxed(&self->life), static_cast<uint32_t>(LIFE_RUNNING)) << "who joined is gone";
            EXPECT_EQ(load_relaxed(&self->joiner), 0u);
            EXPECT_EQ(known_descriptors(), 1u);
            EXPECT_EQ(thrum_cache_counters.live, 1u);
            EXPECT_FALSE(kthread_keeping());
            EXPECT_STREQ(kthread_state(), "the main thread is not in this process");
            EXPECT_EQ(start([] { return number(8); }).error, KTHREAD_NOT_KEPT);
            EXPECT_EQ(known_descriptors(), 1u);
            return HasFailure() ? 1 : 0;
        });
        return nullptr;
    });
    join(forker);
    EXPECT_EQ(status, 0);
    go = true;
    join(other);
}

// While others create and end: whatever they were in the middle of, the child can work.
TEST_F(KthreadProcess, ForksAmongBusyThreads) {
    std::atomic<bool> over{false};
    std::vector<std::unique_ptr<Plain>> creators;
    for (int i = 0; i < 3; i++)
        creators.push_back(std::make_unique<Plain>([&, i] {
            while (!over) {
                pthread_t handle;
                auto nothing = [](void *) -> void * { return nullptr; };
                if (kthread_start(&kKind, false, nothing, nullptr, &handle) == 0)
                    kthread_join(kthread_of_sigsafe(handle), nullptr, KTHREAD_JOIN_WAIT, CLOCK_REALTIME,
                                 nullptr);
                if (i == 0)
                    kthread_cull();
            }
        }));
    for (int i = 0; i < (UNIT_EMULATED ? 10 : 100) && !HasFailure(); i++)
        EXPECT_EQ(child([] {
                      pthread_t handle;
                      void *result = nullptr;
                      auto nine = [](void *) -> void * { return number(9); };
                      EXPECT_EQ(kthread_start(&kKind, false, nine, nullptr, &handle), 0);
                      kthread_join(kthread_of_sigsafe(handle), &result, KTHREAD_JOIN_WAIT, CLOCK_REALTIME,
                                   nullptr);
                      EXPECT_EQ(result, number(9));
                  }),
                  0)
            << i;
    over = true;
}

} // namespace
