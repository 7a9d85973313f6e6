// SPDX-License-Identifier: Apache-2.0
//
// Workers with a scheduler, where threads have an order: a thread that becomes runnable and precedes the present one
// runs at once, at any time, and the interruption does not end the ticks. The protocols: tests/model/interrupt.pml
// and choose.pml. Others: preempt_test.cpp.
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "pools.hpp"
#include "preempt.hpp"

namespace {

class InOrder : public Interrupted, public testing::WithParamInterface<unsigned> {
  protected:
    void SetUp() override {
        Interrupted::SetUp();
        alarm(120);
    }
    void TearDown() override { alarm(0); }
};

INSTANTIATE_TEST_SUITE_P(Modes, InOrder, kSafeModes, name_of_mode);

// Of all workers but that of the primary, which runs outside of it.
class OnePool {
  public:
    OnePool(unsigned mode, unsigned workers, enum thrum_pool_kind kind, unsigned slice)
        : runtime_(workers + 1, mode, slice), workers_(workers), pool_(kind) {
        for (unsigned i = 1; i <= workers_; i++) {
            thrum_sched_t sched = nullptr;
            EXPECT_EQ(thrum_sched_create(&sched, THRUM_SCHED_FIRST, &pool_.pool, 1), 0);
            EXPECT_EQ(thrum_worker_set_sched(i, sched), 0);
            scheds_.push_back(sched);
        }
    }
    ~OnePool() {
        for (unsigned i = 1; i <= workers_; i++) {
            EXPECT_EQ(thrum_worker_set_sched(i, nullptr), 0);
            while (thrum_sched_destroy(scheds_.at(i - 1)) == EBUSY) // until its worker has let it go
                thrum_yield();
        }
    }
    OnePool(const OnePool &) = delete;
    thrum_attr_t attr() const { return pool_.attr(); }
    Light spawn(unsigned priority, Light::Work work) const {
        thrum_attr_t attr = pool_.attr();
        EXPECT_EQ(thrum_attr_set_priority(&attr, priority), 0);
        return Light(std::move(work), &attr);
    }

  private:
    Preempting runtime_;
    unsigned workers_;
    PoolOf pool_;
    std::vector<thrum_sched_t> scheds_;
};

uint64_t ticks_of(unsigned worker) {
    thrum_worker_counters counters{};
    EXPECT_EQ(thrum_worker_get_counters(worker, &counters), 0);
    return counters.ticks;
}

} // namespace

// It blocks all signals, and makes a thread that precedes it runnable by a call of the library. It is not preempted
// in that: it would resume elsewhere, and leave a worker behind that no tick reaches.
TEST_P(InOrder, AThreadThatBlocksSignalsStaysInCallsAsWell) {
    const OnePool pool(GetParam(), 2, THRUM_POOL_PRIORITY, kSlice);
    thrum_sem_t sem;
    ASSERT_EQ(thrum_sem_init(&sem, 0), 0);
    std::atomic<bool> computes{false}, high_runs{false}, low_is_over{false}, over{false};
    std::vector<Light> threads;
    threads.push_back(pool.spawn(10, [&] {
        thrum_sem_wait(&sem);
        high_runs = true;
        wait_for(low_is_over);
    }));
    threads.push_back(pool.spawn(5, [&] {
        computes = true;
        wait_for(high_runs);
    }));
    while (!computes)
        thrum_yield();
    int before = -1, after = -2;
    threads.push_back(pool.spawn(1, [&] {
        sigset_t all, mask;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &mask);
        before = thrum_worker_self();
        thrum_sem_post(&sem);
        after = thrum_worker_self();
        pthread_sigmask(SIG_SETMASK, &mask, nullptr);
        low_is_over = true;
    }));
    threads.clear();
    EXPECT_EQ(before, after);
    for (int i = 0; i < 3; i++)
        threads.push_back(pool.spawn(1, [&] { wait_for(over); }));
    for (const unsigned worker : {1U, 2U})
        for (const uint64_t enough = ticks_of(worker) + 5;
             ticks_of(worker) < enough;) // for ever, if it has none
            thrum_yield();
    over = true;
    threads.clear();
}

// The other one has been alone for so long that there are no ticks any more, and its slice is over: the tick at the deadline is all
// that it takes. The primary's worker is kept from looking at the deadlines of others, and sees when there are none.
TEST_P(InOrder, AWokenSleeperRunsAtTheFirstTick) {
    constexpr unsigned kLong = 50000, kTimes = 5;
    const OnePool pool(GetParam(), 1, THRUM_POOL_FIFO, kLong);
    std::atomic<uint64_t> deadline{0}, ran_at{0};
    std::atomic<bool> over{false};
    Light sleeps = pool.spawn(0, [&] {
        while (!over) {
            ran_at = 0;
            deadline = thrum_now() + 4 * kLong * uint64_t{1000};
            thrum_sleep_until(deadline);
            ran_at = ticks_of(1);
            while (ran_at != 0) // until that is seen
                thrum_yield();
        }
    });
    Light computes = pool.spawn(0, [&] { wait_for(over); });
    std::vector<uint64_t> ticks;
    for (uint64_t last = 0; ticks.size() < kTimes; last = deadline) {
        uint64_t before = 0;
        while (deadline == last || thrum_now() + 20 * THRUM_MS < deadline)
            usleep(1000);
        before = ticks_of(1);
        const bool in_time = thrum_now() < deadline;
        while (ran_at == 0)
            usleep(1000);
        if (in_time)
            ticks.push_back(ran_at - before);
        over = ticks.size() == kTimes;
        ran_at = 0;
    }
    sleeps.join();
    computes.join();
    std::sort(ticks.begin(), ticks.end());
    EXPECT_EQ(ticks.at(kTimes / 2), 1U);
}

// What a scheduler runs that is itself a thread has turns beside those of the pool which that one is in.
TEST_P(InOrder, WhatAStackedSchedulerRunsHasItsTurns) {
    const OnePool pool(GetParam(), 1, THRUM_POOL_FIFO, kSlice);
    const PoolOf inner(THRUM_POOL_FIFO);
    thrum_sched_t sched = nullptr;
    ASSERT_EQ(thrum_sched_create(&sched, THRUM_SCHED_FIRST, &inner.pool, 1), 0);
    std::atomic<bool> has_run{false};
    Light computes = pool.spawn(0, [&] { wait_for(has_run); });
    const thrum_attr_t attr = pool.attr(), within = inner.attr();
    Light runs([&] { has_run = true; }, &within);
    thrum_t thread = nullptr;
    ASSERT_EQ(thrum_sched_spawn(&thread, &attr, sched), 0);
    computes.join();
    runs.join();
    thrum_sched_stop(sched);
    EXPECT_EQ(thrum_join(thread, nullptr), 0);
    EXPECT_EQ(thrum_sched_destroy(sched), 0);
}

// The worker that has stopped tells its waiter, while the others and the runtime end.
TEST_P(InOrder, AWorkerStopsAndTheRuntimeRightAfterIt) {
    for (int round = 0; round < 30; round++) {
        const Preempting runtime(2, GetParam(), kSlice);
        std::atomic<bool> over{false};
        thrum_attr_t attr;
        thrum_attr_init(&attr);
        EXPECT_EQ(thrum_attr_set_worker(&attr, 0), 0);
        Light busy(
            [&] {
                while (!over)
                    thrum_yield();
            },
            &attr);
        EXPECT_EQ(thrum_worker_stop(1), 0);
        over = true;
        busy.join();
    }
}
