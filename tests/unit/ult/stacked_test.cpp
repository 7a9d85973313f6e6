// SPDX-License-Identifier: Apache-2.0
//
// Schedulers that a thread runs, and that find nothing: they wait as threads do, and keep nobody from running. In what order they
// run whom: pool_test.cpp; how they come to their end: sched_test.cpp. The protocol: tests/model/stacked.pml.
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

TEST_P(Stacked, WhoFindsNothingKeepsNobodyFromTheWorkersOwn) {
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

// Two look at one pool: who is pushed while one runs somebody is for the other.
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

// Nobody pushes, when it is time.
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
