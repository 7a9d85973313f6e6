// SPDX-License-Identifier: Apache-2.0
//
// Schedulers that a thread runs, and that find nothing: they wait like threads, and block no other. In what order
// they run threads: pool_test.cpp; how they end: sched_test.cpp. The protocol: tests/model/stacked.pml.
#include <thrum/sync.h>
#include <thrum/worker.h>
#include <unistd.h>

#include <memory>

#include "pools.hpp"

namespace {

class Stacked : public Ult {};

// A pool with a scheduler that is a thread.
class OfOnePool {
  public:
    explicit OfOnePool(thrum_pool_t pool, const thrum_attr_t *attr = nullptr)
        : sched_(sched_of(THRUM_SCHED_FIRST, {pool})), attr_(attr_pool(pool)) {
        EXPECT_EQ(thrum_sched_spawn(&thread_, attr, sched_), 0);
    }
    ~OfOnePool() {
        thrum_sched_stop(sched_);
        EXPECT_EQ(thrum_join(thread_, nullptr), 0);
        EXPECT_EQ(thrum_sched_destroy(sched_), 0);
    }
    OfOnePool(const OfOnePool &) = delete;
    Light spawn(Light::Work work) const { return Light(std::move(work), &attr_); }
    void run_one() const {
        spawn([] {}).join();
    }

  private:
    thrum_sched_t sched_;
    thrum_attr_t attr_;
    thrum_t thread_ = nullptr;
};

constexpr int kRounds = 100;

uint64_t switches_of(unsigned worker) {
    thrum_worker_counters counters{};
    EXPECT_EQ(thrum_worker_get_counters(worker, &counters), 0);
    return counters.switches;
}

} // namespace

TEST_P(Stacked, AnIdleOneLetsTheWorkersOwnThreadsRun) {
    const PoolOf below(THRUM_POOL_FIFO), above(THRUM_POOL_FIFO);
    const SchedOn on(workers() - 1, sched_of(THRUM_SCHED_FIRST, {below.pool}));
    const thrum_attr_t attr = below.attr();
    const OfOnePool stacked(above.pool, &attr);
    for (int i = 0; i < kRounds; i++) {
        stacked.run_one();
        Light([] { thrum_yield(); }, &attr).join();
    }
}

TEST_P(Stacked, SeveralThatFindNothingLetTheWorkerRest) {
    const PoolOf below(THRUM_POOL_FIFO), first(THRUM_POOL_FIFO), second(THRUM_POOL_LIFO);
    const unsigned worker = workers() - 1;
    const SchedOn on(worker, sched_of(THRUM_SCHED_FIRST, {below.pool}));
    const thrum_attr_t attr = below.attr(), within = first.attr();
    const OfOnePool one(first.pool, &attr), other(second.pool, &within);
    for (int i = 0; i < kRounds; i++) {
        one.run_one();
        other.run_one();
    }
    // It goes round no more: in one of a few tries nothing is done in 10 ms.
    EXPECT_TRUE(eventually([&] {
        const uint64_t before = switches_of(worker);
        External([] { usleep(10000); }).join();
        return switches_of(worker) <= before + 4; // of this function, where it runs there
    }));
}

// Each comes first in one order, and last in the other.
TEST_P(Stacked, SeveralInTheRunQueueHaveTheirTurns) {
    constexpr int kSeveral = 3;
    std::vector<std::unique_ptr<PoolOf>> pools;
    std::vector<std::unique_ptr<OfOnePool>> scheds;
    for (int i = 0; i < kSeveral; i++) {
        pools.push_back(std::make_unique<PoolOf>(THRUM_POOL_FIFO));
        scheds.push_back(std::make_unique<OfOnePool>(pools.back()->pool));
    }
    for (int round = 0; round < kRounds; round++) {
        for (int i = 0; i < kSeveral; i++)
            scheds.at(static_cast<size_t>(i))->run_one();
        for (int i = kSeveral; i-- > 0;)
            External([&] { scheds.at(static_cast<size_t>(i))->run_one(); }).join();
    }
    scheds.clear();
}

// Two serve one pool: a thread that is pushed while one of them runs another goes to the other one.
TEST_P(Stacked, AnotherRunsWhatComesMeanwhile) {
    const PoolOf pool(THRUM_POOL_FIFO);
    const OfOnePool one(pool.pool), other(pool.pool);
    for (int i = 0; i < kRounds; i++) {
        std::atomic<bool> has_run{false};
        Light waits = one.spawn([&] {
            while (!has_run)
                thrum_yield();
        });
        Light runs = other.spawn([&] { has_run = true; });
        waits.join();
        runs.join();
    }
}

// The last to wait is the first that a push finds, and its worker computes.
TEST_P(Stacked, OneWithoutATurnDoesNotKeepAnother) {
    if (workers() < 2)
        GTEST_SKIP() << "needs a worker that is free";
    const PoolOf pool(THRUM_POOL_FIFO);
    thrum_attr_t attr, within = pool.attr();
    thrum_attr_init(&attr);
    std::vector<std::unique_ptr<OfOnePool>> scheds;
    for (const unsigned worker : {1U, 0U}) {
        ASSERT_EQ(thrum_attr_set_worker(&attr, worker), 0);
        scheds.push_back(std::make_unique<OfOnePool>(pool.pool, &attr));
        thrum_sleep(5 * THRUM_MS); // it waits
    }
    ASSERT_EQ(thrum_attr_set_worker(&attr, 0), 0);
    Light(
        [&] {
            thrum_nopreempt_begin();
            std::atomic<bool> has_run{false};
            Light runs([&] { has_run = true; }, &within);
            for (int i = 0; i < 20000 && !has_run; i++)
                usleep(1000);
            EXPECT_TRUE(has_run);
            thrum_nopreempt_end();
            runs.join();
        },
        &attr)
        .join();
    scheds.clear();
}

// Its function runs two at a time, and is asked while there is one. No thread is preempted, since one of two that
// comes back after a preemption is left there alone.
TEST_P(Stacked, OneThatLeavesItsThreadsYields) {
    const PoolOf pool(THRUM_POOL_FIFO);
    const auto run = [](thrum_sched_t sched, void *) {
        const thrum_pool_t mine = thrum_sched_pool(sched, 0);
        while (!thrum_sched_stopping(sched))
            if (thrum_pool_size(mine) < 2)
                thrum_sched_idle(sched);
            else
                for (int i = 0; i < 2; i++)
                    thrum_run(thrum_pool_pop(mine));
    };
    thrum_sched_t sched = nullptr;
    thrum_t thread = nullptr;
    thrum_attr_t attr = pool.attr(), none;
    thrum_attr_init(&none);
    ASSERT_EQ(thrum_attr_set_preempt(&none, THRUM_PREEMPT_NONE), 0);
    ASSERT_EQ(thrum_attr_set_preempt(&attr, THRUM_PREEMPT_NONE), 0);
    ASSERT_EQ(thrum_sched_create_user(&sched, run, nullptr, &pool.pool, 1), 0);
    ASSERT_EQ(thrum_sched_spawn(&thread, &none, sched), 0);
    for (int i = 0; i < kRounds; i++) {
        Light first([] {}, &attr);
        for (unsigned turn = 0; turn < workers(); turn++)
            thrum_yield(); // and comes back
        Light second([] {}, &attr);
        first.join();
        second.join();
    }
    thrum_sched_stop(sched);
    EXPECT_EQ(thrum_join(thread, nullptr), 0);
    EXPECT_EQ(thrum_sched_destroy(sched), 0);
}

// Of a pool that a thread serves, a thread leaves for a kernel thread of its own, and returns.
TEST_P(Stacked, ItsThreadsMayLeaveForAKernelThreadOfTheirOwn) {
    const PoolOf below(THRUM_POOL_FIFO), above(THRUM_POOL_FIFO);
    const unsigned worker = workers() - 1;
    const SchedOn on(worker, sched_of(THRUM_SCHED_FIRST, {below.pool}));
    const thrum_attr_t attr = below.attr();
    const OfOnePool stacked(above.pool, &attr);
    std::atomic<int> others{0};
    const auto leave = [&] {
        for (int i = 0; i < 3; i++) {
            EXPECT_EQ(thrum_worker_self(), static_cast<int>(worker));
            EXPECT_EQ(thrum_kthread_lock(), 0);
            EXPECT_EQ(thrum_worker_self(), -1);
            const int before = others;
            EXPECT_TRUE(eventually([&] { return others != before; })); // the scheduler runs them meanwhile
            EXPECT_EQ(thrum_kthread_unlock(), 0);
        }
        EXPECT_EQ(thrum_worker_self(), static_cast<int>(worker));
    };
    std::atomic<bool> over{false};
    Light other = stacked.spawn([&] {
        while (!over) {
            others++;
            thrum_yield();
        }
    });
    stacked.spawn(leave).join();
    over = true;
    other.join();
}

TEST_P(Stacked, HasNoKernelThreadOfItsOwn) {
    const PoolOf pool(THRUM_POOL_FIFO);
    std::atomic<int> error{0};
    const auto run = [](thrum_sched_t, void *to) {
        *static_cast<std::atomic<int> *>(to) = thrum_kthread_lock();
    };
    thrum_sched_t sched = nullptr;
    thrum_t thread = nullptr;
    ASSERT_EQ(thrum_sched_create_user(&sched, run, &error, &pool.pool, 1), 0);
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    ASSERT_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_OWN_KTHREAD), 0);
    EXPECT_EQ(thrum_sched_spawn(&thread, &attr, sched), EINVAL);
    ASSERT_EQ(thrum_sched_spawn(&thread, nullptr, sched), 0);
    EXPECT_EQ(thrum_join(thread, nullptr), 0);
    EXPECT_EQ(error, EPERM);
    EXPECT_EQ(thrum_sched_destroy(sched), 0);
}

// What is kept in its pool must be asked for again at once, always.
TEST_P(Stacked, IsCancelledWhereItNeverWaits) {
    std::atomic<bool> open{false};
    KeepingPool pool([&](uint64_t) { return open.load(); }, [](uint64_t) { return thrum_now(); });
    const thrum_attr_t within = attr_pool(pool.pool());
    Light kept([] {}, &within);
    const thrum_sched_t sched = sched_of(THRUM_SCHED_FIRST, {pool.pool()});
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    EXPECT_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_CANCELLABLE), 0);
    thrum_t thread = nullptr;
    void *result = nullptr;
    ASSERT_EQ(thrum_sched_spawn(&thread, &attr, sched), 0);
    thrum_sleep(THRUM_MS); // it goes round
    EXPECT_EQ(thrum_cancel(thread), 0);
    EXPECT_EQ(thrum_join_until(thread, &result, thrum_now() + 20 * THRUM_S), 0);
    EXPECT_EQ(result, THRUM_CANCELED);
    EXPECT_EQ(thrum_sched_destroy(sched), 0);
    open = true;
    const OfOnePool serves(pool.pool());
    kept.join();
}

// ... nor is a wait of another kind ended by that: it begins afterwards.
TEST_P(Stacked, IsNotCancelledInALaterWait) {
    const PoolOf pool(THRUM_POOL_FIFO);
    struct Later {
        thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
        std::atomic<bool> waits{false};
        std::atomic<int> error{-1};
    } later;
    const auto run = [](thrum_sched_t sched, void *data) {
        auto *const own = static_cast<Later *>(data);
        thrum_sched_idle(sched); // there is something already
        own->waits = true;
        own->error = thrum_mutex_lock_until(&own->mutex, thrum_now() + 20 * THRUM_S);
        thrum_run(thrum_pool_pop(thrum_sched_pool(sched, 0)));
        thrum_mutex_unlock(&own->mutex);
    };
    thrum_attr_t attr, within = pool.attr();
    thrum_attr_init(&attr);
    EXPECT_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_CANCELLABLE), 0);
    thrum_sched_t sched = nullptr;
    thrum_t thread = nullptr;
    ASSERT_EQ(thrum_sched_create_user(&sched, run, &later, &pool.pool, 1), 0);
    Light there([] {}, &within);
    thrum_mutex_lock(&later.mutex);
    ASSERT_EQ(thrum_sched_spawn(&thread, &attr, sched), 0);
    EXPECT_TRUE(eventually([&] { return later.waits.load(); }));
    thrum_sleep(THRUM_MS);
    EXPECT_EQ(thrum_cancel(thread), 0);
    thrum_sleep(5 * THRUM_MS);
    EXPECT_EQ(later.error, -1);
    thrum_mutex_unlock(&later.mutex);
    EXPECT_EQ(thrum_join(thread, nullptr), 0);
    EXPECT_EQ(later.error, 0);
    there.join();
    EXPECT_EQ(thrum_sched_destroy(sched), 0);
}

// No push comes when it is time.
TEST_P(Stacked, LooksAgainWhenAPoolSaysSo) {
    const KeepingPool pool = KeepingPool::for_a_time(2 * THRUM_MS);
    const OfOnePool stacked(pool.pool());
    for (int i = 0; i < 3; i++)
        stacked.run_one();
}

TEST_P(Stacked, IsCancelledWhereItFindsNothing) {
    const PoolOf pool(THRUM_POOL_FIFO);
    const thrum_sched_t sched = sched_of(THRUM_SCHED_FIRST, {pool.pool});
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    EXPECT_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_CANCELLABLE), 0);
    const thrum_attr_t within = pool.attr();
    for (int i = 0; i < 10; i++) {
        thrum_t thread = nullptr;
        void *result = nullptr;
        ASSERT_EQ(thrum_sched_spawn(&thread, &attr, sched), 0);
        if (i % 2 == 0)
            Light([] {}, &within).join();
        EXPECT_EQ(thrum_cancel(thread), 0);
        EXPECT_EQ(thrum_join(thread, &result), 0);
        EXPECT_EQ(result, THRUM_CANCELED);
    }
    EXPECT_EQ(thrum_sched_destroy(sched), 0);
}

ULT_OVER_WORKERS(Stacked);
