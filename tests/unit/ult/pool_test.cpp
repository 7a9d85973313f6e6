// SPDX-License-Identifier: Apache-2.0
//
// Pools, schedulers, tasklets. What policies do is in policy_test.cpp.
#include <errno.h>
#include <sched.h>
#include <thrum/pool.h>
#include <thrum/worker.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "pools.hpp"
#include "ult.hpp"
#include "user_pool.hpp"

namespace {

void *count(void *counter) {
    static_cast<std::atomic<long> *>(counter)->fetch_add(1);
    return counter;
}

// The slabs that pools and schedulers come from stay mapped for the life of the process: let them be there before any
// test looks for leaks.
class Slabs : public testing::Environment {
  public:
    void SetUp() override {
        for (const thrum_pool_kind kind : {THRUM_POOL_FIFO, THRUM_POOL_PRIORITY}) {
            const PoolOf pool(kind);
            EXPECT_EQ(thrum_sched_destroy(sched_of(THRUM_SCHED_FIRST, {pool.pool})), 0);
        }
    }
};
const testing::Environment *const slabs = testing::AddGlobalTestEnvironment(new Slabs);

// --- order ------------------------------------------------------------------------------------------------

class Pool : public Ult {};
class PoolInTurn : public UltInTurn {};

// Twenty threads with priority i / 4 and deadline 100 - i, in the order in which they run.
std::vector<unsigned> order_in(thrum_pool_t pool, unsigned worker) {
    constexpr unsigned kThreads = 20;
    Notes mine;
    notes = &mine;
    thrum_attr_t attr = attr_pool(pool);
    std::array<thrum_t, kThreads> threads{};
    for (unsigned i = 0; i < kThreads; i++) {
        EXPECT_EQ(thrum_attr_set_priority(&attr, i / 4), 0);
        thrum_attr_set_deadline(&attr, 100 - i);
        EXPECT_EQ(thrum_spawn(&threads[i], &attr, note, number(i)), 0);
    }
    EXPECT_EQ(thrum_pool_size(pool), kThreads);
    const SchedOn sched(worker, sched_of(THRUM_SCHED_FIRST, {pool}));
    for (const thrum_t thread : threads)
        EXPECT_EQ(thrum_join(thread, nullptr), 0);
    return {mine.order.begin(), mine.order.begin() + kThreads};
}

std::vector<unsigned> order_in(thrum_pool_kind kind, unsigned worker) {
    const PoolOf pool(kind);
    return order_in(pool.pool, worker);
}

std::vector<unsigned> expected(const std::function<bool(unsigned, unsigned)> &before) {
    std::vector<unsigned> order(20);
    for (unsigned i = 0; i < order.size(); i++)
        order[i] = i;
    std::stable_sort(order.begin(), order.end(), before);
    return order;
}

TEST_P(PoolInTurn, FifoIsOldestFirst) {
    EXPECT_EQ(order_in(THRUM_POOL_FIFO, workers() - 1), expected([](unsigned, unsigned) { return false; }));
}

TEST_P(PoolInTurn, LifoIsNewestFirst) {
    EXPECT_EQ(order_in(THRUM_POOL_LIFO, workers() - 1),
              expected([](unsigned a, unsigned b) { return a > b; }));
}

TEST_P(PoolInTurn, PriorityIsHighestFirstThenOldest) {
    EXPECT_EQ(order_in(THRUM_POOL_PRIORITY, workers() - 1),
              expected([](unsigned a, unsigned b) { return a / 4 > b / 4; }));
}

// The priority counts that a thread has when it comes to the pool.
TEST_P(PoolInTurn, PriorityMayBeChangedBefore) {
    const PoolOf fifo(THRUM_POOL_FIFO), pool(THRUM_POOL_PRIORITY);
    Notes mine;
    notes = &mine;
    const thrum_attr_t attr = fifo.attr();
    std::array<thrum_t, 6> threads{};
    for (unsigned i = 0; i < threads.size(); i++)
        ASSERT_EQ(thrum_spawn(&threads[i], &attr, note, number(i)), 0);
    for (unsigned i = 0; i < threads.size(); i++) {
        ASSERT_EQ(thrum_pool_pop(fifo.pool), threads[i]);
        EXPECT_EQ(thrum_set_priority(threads[i], i), 0);
        thrum_pool_push(pool.pool, threads[i]);
    }
    const SchedOn sched(workers() - 1, sched_of(THRUM_SCHED_FIRST, {pool.pool}));
    for (const thrum_t thread : threads)
        EXPECT_EQ(thrum_join(thread, nullptr), 0);
    for (unsigned i = 0; i < threads.size(); i++)
        EXPECT_EQ(mine.order[i], 5 - i);
}

TEST_P(PoolInTurn, DeadlineIsEarliestFirst) {
    EXPECT_EQ(order_in(THRUM_POOL_DEADLINE, workers() - 1),
              expected([](unsigned a, unsigned b) { return a > b; }));
}

TEST_P(PoolInTurn, DequeIsNewestFirst) {
    EXPECT_EQ(order_in(THRUM_POOL_DEQUE, workers() - 1),
              expected([](unsigned a, unsigned b) { return a > b; }));
}

TEST_P(PoolInTurn, DequeIsStolenFromOldestFirst) {
    const PoolOf pool(THRUM_POOL_DEQUE), fifo(THRUM_POOL_FIFO);
    std::array<thrum_t, 5> threads{};
    Notes mine;
    notes = &mine;
    const thrum_attr_t attr = pool.attr();
    for (unsigned i = 0; i < threads.size(); i++)
        ASSERT_EQ(thrum_spawn(&threads[i], &attr, note, number(i)), 0);
    // From both ends, and at last through another pool, where stealing is popping.
    EXPECT_EQ(thrum_pool_steal(pool.pool), threads[0]);
    EXPECT_EQ(thrum_pool_pop(pool.pool), threads[4]);
    EXPECT_EQ(thrum_pool_steal(pool.pool), threads[1]);
    EXPECT_EQ(thrum_pool_steal(pool.pool), threads[2]);
    EXPECT_EQ(thrum_pool_pop(pool.pool), threads[3]);
    EXPECT_EQ(thrum_pool_steal(pool.pool), nullptr);
    EXPECT_EQ(thrum_pool_pop(pool.pool), nullptr);
    for (const thrum_t thread : threads)
        thrum_pool_push(fifo.pool, thread);
    for (std::size_t i = 0; i < threads.size(); i++) {
        const thrum_t stolen = thrum_pool_steal(fifo.pool);
        ASSERT_EQ(stolen, threads[i]);
        thrum_pool_push(pool.pool, stolen);
    }
    const SchedOn sched(workers() - 1, sched_of(THRUM_SCHED_FIRST, {pool.pool}));
    for (const thrum_t thread : threads)
        EXPECT_EQ(thrum_join(thread, nullptr), 0);
}

// Else two that wait for each other with thrum_yield would have a deque to themselves.
TEST_P(PoolInTurn, AYieldedThreadIsTheOldestOfADeque) {
    const PoolOf pool(THRUM_POOL_DEQUE);
    const thrum_attr_t attr = pool.attr();
    std::atomic<int> ran{0};
    const auto wait_for_both = [&ran] {
        ran++;
        while (ran < 3)
            thrum_yield();
    };
    Light first(wait_for_both, &attr), second(wait_for_both, &attr), third(wait_for_both, &attr);
    const SchedOn sched(workers() - 1, sched_of(THRUM_SCHED_FIRST, {pool.pool}));
    for (Light *thread : {&first, &second, &third})
        thread->join();
    EXPECT_EQ(ran, 3);
}

TEST_P(PoolInTurn, OfTheUsersOwnIsInItsOrder) {
    UserFifo fifo;
    ASSERT_EQ(fifo.error(), 0);
    EXPECT_EQ(order_in(fifo.pool(), workers() - 1), expected([](unsigned, unsigned) { return false; }));
    EXPECT_EQ(fifo.pushed, 20);
    EXPECT_GE(fifo.popped, 20);
    EXPECT_EQ(fifo.destroyed, 0);
    EXPECT_EQ(thrum_pool_destroy(fifo.pool()), 0);
    EXPECT_EQ(fifo.destroyed, 1);
}

// Five, two, none: in the pool's order, and what was taken runs when it is pushed again.
void expect_many(thrum_pool_t pool, unsigned worker) {
    Notes mine;
    notes = &mine;
    const thrum_attr_t attr = attr_pool(pool);
    std::array<thrum_t, 7> threads{};
    std::array<thrum_t, 10> taken{}; // room for as many as are asked for
    for (unsigned i = 0; i < threads.size(); i++)
        ASSERT_EQ(thrum_spawn(&threads[i], &attr, note, number(i)), 0);
    ASSERT_EQ(thrum_pool_pop_many(pool, taken.data(), 5), 5U);
    EXPECT_EQ(thrum_pool_size(pool), 2U);
    ASSERT_EQ(thrum_pool_pop_many(pool, taken.data() + 5, 5), 2U);
    EXPECT_TRUE(std::equal(threads.begin(), threads.end(), taken.begin()));
    thrum_t none = nullptr;
    EXPECT_EQ(thrum_pool_pop_many(pool, &none, 1), 0U);
    for (std::size_t i = threads.size(); i-- > 0;)
        thrum_pool_push(pool, taken[i]);
    const SchedOn sched(worker, sched_of(THRUM_SCHED_FIRST, {pool}));
    for (const thrum_t thread : threads)
        EXPECT_EQ(thrum_join(thread, nullptr), 0);
    for (unsigned i = 0; i < threads.size(); i++)
        EXPECT_EQ(mine.order[i], 6 - i);
}

TEST_P(PoolInTurn, ManyAreTakenAtOnce) {
    const PoolOf pool(THRUM_POOL_FIFO);
    expect_many(pool.pool, workers() - 1);
    for (const bool has_pop_many : {true, false}) {
        UserFifo fifo(has_pop_many);
        ASSERT_EQ(fifo.error(), 0);
        expect_many(fifo.pool(), workers() - 1);
        EXPECT_EQ(fifo.popped_many, has_pop_many ? 3 : 0);
        EXPECT_EQ(thrum_pool_destroy(fifo.pool()), 0);
    }
}

TEST_P(Pool, RefusesWhatIsNone) {
    thrum_pool_t pool = nullptr;
    EXPECT_EQ(thrum_pool_create(&pool, static_cast<thrum_pool_kind>(17)), EINVAL);
    const thrum_pool_ops nothing{};
    EXPECT_EQ(thrum_pool_create_user(&pool, &nothing, nullptr), EINVAL);
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    EXPECT_EQ(thrum_attr_set_priority(&attr, THRUM_PRIORITY_MAX + 1), EINVAL);
}

TEST_P(Pool, IsNotDestroyedWithThreadsInIt) {
    const PoolOf pool(THRUM_POOL_FIFO);
    const thrum_attr_t attr = pool.attr();
    std::atomic<long> counter{0};
    thrum_t thread = nullptr;
    ASSERT_EQ(thrum_spawn(&thread, &attr, count, &counter), 0);
    EXPECT_EQ(thrum_pool_destroy(pool.pool), EBUSY);
    const thrum_t popped = thrum_pool_pop(pool.pool);
    EXPECT_EQ(popped, thread);
    EXPECT_EQ(thrum_pool_pop(pool.pool), nullptr);
    thrum_pool_push(pool.pool, popped);
    const SchedOn sched(0, sched_of(THRUM_SCHED_FIRST, {pool.pool}));
    EXPECT_EQ(thrum_join(thread, nullptr), 0);
    EXPECT_EQ(counter, 1);
}

TEST_P(Pool, IsNotDestroyedWhileASchedulerHasIt) {
    thrum_pool_t pool = nullptr, other = nullptr;
    thrum_sched_t first = nullptr, second = nullptr;
    ASSERT_EQ(thrum_pool_create(&pool, THRUM_POOL_FIFO), 0);
    ASSERT_EQ(thrum_pool_create(&other, THRUM_POOL_FIFO), 0);
    const thrum_pool_t both[] = {other, pool, pool};
    ASSERT_EQ(thrum_sched_create(&first, THRUM_SCHED_FIRST, &pool, 1), 0);
    ASSERT_EQ(thrum_sched_create_user(
                  &second, [](thrum_sched_t, void *) {}, nullptr, both, 3),
              0);
    EXPECT_EQ(thrum_pool_destroy(pool), EBUSY);
    EXPECT_EQ(thrum_sched_destroy(first), 0);
    EXPECT_EQ(thrum_pool_destroy(pool), EBUSY);
    EXPECT_EQ(thrum_pool_destroy(other), EBUSY);
    EXPECT_EQ(thrum_sched_destroy(second), 0);
    EXPECT_EQ(thrum_pool_destroy(pool), 0);
    EXPECT_EQ(thrum_pool_destroy(other), 0);
}

// No scheduler serves it: what waits there is not lost, and not taken by others.
TEST_P(Pool, WithoutASchedulerKeepsWhatItHas) {
    const PoolOf pool(THRUM_POOL_FIFO);
    const thrum_attr_t attr = pool.attr();
    std::atomic<long> counter{0};
    thrum_t thread = nullptr;
    ASSERT_EQ(thrum_spawn(&thread, &attr, count, &counter), 0);
    EXPECT_EQ(thrum_join_until(thread, nullptr, thrum_now() + 5 * THRUM_MS), ETIMEDOUT);
    EXPECT_EQ(thrum_pool_size(pool.pool), 1U);
    const SchedOn sched(workers() - 1, sched_of(THRUM_SCHED_FIRST, {pool.pool}));
    EXPECT_EQ(thrum_join(thread, nullptr), 0);
    EXPECT_EQ(counter, 1);
}

// By a worker that sleeps meanwhile. One that yields comes back through the pool.
TEST_P(Pool, IsLookedAtWhenItSaysSo) {
    constexpr uint64_t kDelay = 20 * THRUM_MS;
    KeepingPool pool = KeepingPool::for_a_time(kDelay);
    const SchedOn sched(workers() - 1, sched_of(THRUM_SCHED_FIRST, {pool.pool()}));
    const thrum_attr_t attr = attr_pool(pool.pool());
    const auto run_one = [&] {
        const uint64_t since = thrum_now();
        thrum_t thread = nullptr;
        ASSERT_EQ(thrum_spawn(
                      &thread, &attr,
                      [](void *) -> void * {
                          thrum_yield();
                          return nullptr;
                      },
                      nullptr),
                  0);
        ASSERT_EQ(thrum_join_until(thread, nullptr, since + 20 * THRUM_S), 0);
        EXPECT_GE(thrum_now() - since, 2 * kDelay);
    };
    EXPECT_TRUE(eventually([&] { // but for one that had no CPU meanwhile
        thrum_worker_counters before{}, after{};
        EXPECT_EQ(thrum_worker_get_counters(workers() - 1, &before), 0);
        run_one();
        EXPECT_EQ(thrum_worker_get_counters(workers() - 1, &after), 0);
        return after.parks >= before.parks + 2;
    }));
}

// It polls something now and then, and so never names the time at which there will be a thread.
TEST_P(Pool, IsLookedAtAgainAndAgain) {
    std::atomic<bool> open{false};
    std::atomic<int> asked{0};
    KeepingPool pool([&](uint64_t) { return open.load(); },
                     [&](uint64_t) {
                         asked++;
                         return thrum_now() + THRUM_MS;
                     });
    const SchedOn sched(workers() - 1, sched_of(THRUM_SCHED_FIRST, {pool.pool()}));
    const thrum_attr_t attr = attr_pool(pool.pool());
    std::atomic<long> counter{0};
    thrum_t thread = nullptr;
    ASSERT_EQ(thrum_spawn(&thread, &attr, count, &counter), 0);
    EXPECT_TRUE(eventually([&] {
        thrum_sleep(THRUM_MS); // only a worker with nothing to run asks
        return asked >= 3;
    }));
    EXPECT_EQ(counter, 0);
    open = true; // without telling any worker
    EXPECT_EQ(thrum_join_until(thread, nullptr, thrum_now() + 20 * THRUM_S), 0);
    EXPECT_EQ(counter, 1);
}

// --- schedulers -------------------------------------------------------------------------------------------

class Sched : public Ult {};

TEST_P(Sched, RefusesWhatIsNone) {
    const PoolOf pool(THRUM_POOL_FIFO);
    thrum_sched_t sched = nullptr;
    EXPECT_EQ(thrum_sched_create(&sched, static_cast<thrum_sched_kind>(9), &pool.pool, 1), EINVAL);
    EXPECT_EQ(thrum_sched_create(&sched, THRUM_SCHED_FIRST, &pool.pool, 0), EINVAL);
    EXPECT_EQ(thrum_sched_create(&sched, THRUM_SCHED_FIRST, &pool.pool, THRUM_SCHED_POOLS_MAX + 1), EINVAL);
    EXPECT_EQ(thrum_worker_set_sched(workers(), nullptr), EINVAL);
}

TEST_P(Sched, ServesOneWorkerOnly) {
    if (workers() < 2)
        GTEST_SKIP() << "needs two workers";
    const PoolOf pool(THRUM_POOL_FIFO);
    const thrum_sched_t sched = sched_of(THRUM_SCHED_FIRST, {pool.pool});
    const SchedOn on(1, sched);
    EXPECT_EQ(thrum_worker_set_sched(0, sched), EBUSY);
    EXPECT_EQ(thrum_sched_destroy(sched), EBUSY);
}

// As many as it may have, and as few: those come from different memory.
TEST_P(Sched, ServesAsManyPoolsAsItMay) {
    constexpr unsigned kPools = THRUM_SCHED_POOLS_MAX, kQueues = kPools / 4;
    const PoolOf filler(THRUM_POOL_FIFO);
    const std::array<PoolOf, 4> some{PoolOf(THRUM_POOL_FIFO), PoolOf(THRUM_POOL_FIFO),
                                     PoolOf(THRUM_POOL_FIFO), PoolOf(THRUM_POOL_FIFO)};
    std::vector<thrum_pool_t> pools(kPools, filler.pool);
    pools[0] = some[0].pool;
    pools[63] = some[1].pool;
    pools[64] = some[2].pool;
    pools[kPools - 1] = some[3].pool;
    for (const bool steals : {false, true}) {
        thrum_sched_t sched = nullptr;
        ASSERT_EQ(steals ? thrum_sched_create_stealing(&sched, pools.data(), kQueues, 4, kQueues - 1)
                         : thrum_sched_create(&sched, THRUM_SCHED_ROUND_ROBIN, pools.data(), kPools),
                  0);
        const thrum_sched_t few = sched_of(THRUM_SCHED_FIRST, {filler.pool}); // beside it
        const SchedOn on(workers() - 1, sched);
        std::atomic<unsigned> ran{0};
        std::vector<Light> threads;
        for (const PoolOf &pool : some) {
            const thrum_attr_t attr = pool.attr();
            threads.emplace_back([&ran] { ran++; }, &attr);
        }
        for (Light &thread : threads)
            thread.join();
        EXPECT_EQ(ran, 4U);
        EXPECT_EQ(thrum_sched_destroy(few), 0);
    }
}

// What has no pool runs even if every worker has a scheduler of its own.
TEST_P(Sched, OthersRunWhereAllWorkersHaveOne) {
    const PoolOf pool(THRUM_POOL_FIFO);
    std::vector<std::unique_ptr<SchedOn>> on;
    for (unsigned i = 0; i < workers(); i++)
        on.push_back(std::make_unique<SchedOn>(i, sched_of(THRUM_SCHED_FIRST, {pool.pool})));
    std::atomic<long> counter{0};
    std::vector<Light> threads;
    for (int i = 0; i < 200; i++)
        threads.emplace_back([&counter] {
            thrum_yield();
            counter++;
        });
    for (Light &thread : threads)
        thread.join();
    EXPECT_EQ(counter, 200);
}

TEST_P(Sched, CanBeChangedAtAnyTime) {
    const PoolOf pool(THRUM_POOL_FIFO);
    const thrum_attr_t attr = pool.attr();
    std::atomic<long> counter{0};
    for (int round = 0; round < 50 / kStressDivisor + 1; round++) {
        std::vector<Light> threads;
        for (int i = 0; i < 20; i++)
            threads.emplace_back([&counter] { counter++; }, &attr);
        const SchedOn one(static_cast<unsigned>(round) % workers(),
                          sched_of(static_cast<thrum_sched_kind>(round % 4), {pool.pool}));
        for (Light &thread : threads)
            thread.join();
        EXPECT_EQ(counter, 20L * (round + 1));
    }
}

// --- a user's own -----------------------------------------------------------------------------------------

// Draws from two pools; and its threads' parents wait in them.
struct Draws {
    std::atomic<long> runs{0};
};

void draw(thrum_sched_t sched, void *data) {
    auto *draws = static_cast<Draws *>(data);
    while (!thrum_sched_stopping(sched)) {
        thrum_t thread = thrum_pool_pop(thrum_sched_pool(sched, 1));
        if (thread == nullptr)
            thread = thrum_pool_pop(thrum_sched_pool(sched, 0));
        if (thread == nullptr) {
            thrum_sched_idle(sched);
            continue;
        }
        draws->runs++;
        thrum_run(thread);
    }
}

TEST_P(Sched, MayBeTheUsersOwn) {
    const PoolOf first(THRUM_POOL_FIFO), second(THRUM_POOL_LIFO);
    const std::array<thrum_pool_t, 2> pools = {first.pool, second.pool};
    Draws draws;
    thrum_sched_t sched = nullptr;
    ASSERT_EQ(thrum_sched_create_user(&sched, draw, &draws, pools.data(), 2), 0);
    EXPECT_EQ(thrum_sched_pool(sched, 1), second.pool);
    EXPECT_EQ(thrum_sched_pool(sched, 2), nullptr);
    const SchedOn on(workers() - 1, sched);
    const thrum_attr_t outer = first.attr(), inner = second.attr();
    std::atomic<long> counter{0};
    std::vector<Light> threads;
    for (int i = 0; i < 50; i++)
        threads.emplace_back(
            [&] {
                Light child([&] { counter++; }, &inner);
                child.join();
                thrum_yield();
                counter++;
            },
            &outer);
    for (Light &thread : threads)
        thread.join();
    EXPECT_EQ(counter, 100);
    EXPECT_GE(draws.runs, 100);
}

TEST_P(Sched, CanBeStacked) {
    const PoolOf pool(THRUM_POOL_FIFO);
    const thrum_sched_t inner = sched_of(THRUM_SCHED_FIRST, {pool.pool});
    thrum_t thread = nullptr;
    ASSERT_EQ(thrum_sched_spawn(&thread, nullptr, inner), 0);
    EXPECT_EQ(thrum_sched_spawn(nullptr, nullptr, inner), EBUSY);
    const thrum_attr_t attr = pool.attr();
    std::atomic<long> counter{0};
    std::vector<Light> threads;
    for (int i = 0; i < 100; i++)
        threads.emplace_back(
            [&counter] {
                thrum_yield();
                counter++;
            },
            &attr);
    for (Light &one : threads)
        one.join();
    EXPECT_EQ(counter, 100);
    thrum_sched_stop(inner);
    EXPECT_EQ(thrum_join(thread, nullptr), 0);
    EXPECT_EQ(thrum_sched_destroy(inner), 0);
}

// One in the pool of another, and that in the pool of a third, which a worker has.
TEST_P(Sched, CanBeStackedOnOneAnother) {
    const PoolOf lowest(THRUM_POOL_FIFO), middle(THRUM_POOL_FIFO), top(THRUM_POOL_LIFO);
    const SchedOn on(workers() - 1, sched_of(THRUM_SCHED_FIRST, {lowest.pool}));
    const thrum_sched_t second = sched_of(THRUM_SCHED_ROUND_ROBIN, {middle.pool}),
                        third = sched_of(THRUM_SCHED_EXHAUST, {top.pool});
    thrum_t second_thread = nullptr, third_thread = nullptr;
    const thrum_attr_t in_lowest = lowest.attr(), in_middle = middle.attr(), in_top = top.attr();
    ASSERT_EQ(thrum_sched_spawn(&second_thread, &in_lowest, second), 0);
    ASSERT_EQ(thrum_sched_spawn(&third_thread, &in_middle, third), 0);
    std::atomic<long> counter{0};
    std::vector<Light> threads;
    for (int i = 0; i < 60; i++)
        threads.emplace_back(
            [&counter] {
                thrum_yield();
                thrum_sleep(10 * THRUM_US);
                counter++;
            },
            i % 3 == 0   ? &in_lowest
            : i % 3 == 1 ? &in_middle
                         : &in_top);
    threads.clear();
    EXPECT_EQ(counter, 60);
    thrum_sched_stop(third);
    EXPECT_EQ(thrum_join(third_thread, nullptr), 0);
    thrum_sched_stop(second);
    EXPECT_EQ(thrum_join(second_thread, nullptr), 0);
    EXPECT_EQ(thrum_sched_destroy(third), 0);
    EXPECT_EQ(thrum_sched_destroy(second), 0);
}

// --- tasklets ---------------------------------------------------------------------------------------------

class Tasklet : public Ult {};

thrum_attr_t attr_tasklet() {
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    EXPECT_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_TASKLET), 0);
    return attr;
}

TEST_P(Tasklet, RunsAndIsJoined) {
    const thrum_attr_t attr = attr_tasklet();
    const auto body = [&attr] {
        std::atomic<long> counter{0};
        for (int round = 0; round < 20; round++) {
            std::array<thrum_t, 200> threads{};
            for (thrum_t &thread : threads)
                ASSERT_EQ(thrum_spawn(&thread, &attr, count, &counter), 0);
            for (const thrum_t thread : threads) {
                void *result = nullptr;
                ASSERT_EQ(thrum_join(thread, &result), 0);
                ASSERT_EQ(result, &counter);
            }
        }
        EXPECT_EQ(counter, 4000);
    };
    body();
    in_ult(body);
}

TEST_P(Tasklet, HasNeitherStackNorWorkerAndIsNotCancelled) {
    thrum_t thread = nullptr;
    std::vector<char> memory(THRUM_STACK_MIN);
    for (const unsigned flag : {THRUM_SPAWN_CANCELLABLE, THRUM_SPAWN_MEASURED}) {
        thrum_attr_t attr = attr_tasklet();
        ASSERT_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_TASKLET | flag), 0);
        EXPECT_EQ(thrum_spawn(&thread, &attr, count, nullptr), EINVAL);
    }
    thrum_attr_t attr = attr_tasklet();
    ASSERT_EQ(thrum_attr_set_worker(&attr, 0), 0);
    EXPECT_EQ(thrum_spawn(&thread, &attr, count, nullptr), EINVAL);
    attr = attr_tasklet();
    ASSERT_EQ(thrum_attr_set_stack(&attr, memory.data(), memory.size()), 0);
    EXPECT_EQ(thrum_spawn(&thread, &attr, count, nullptr), EINVAL);
}

// The first that is gone to is a loop that never ran.
TEST_P(Tasklet, RunsWhileTheFirstThreadYields) {
    for (int round = 0; round < 10; round++) {
        ASSERT_EQ(thrum_fini(), 0);
        const thrum_config config{workers(), 0, {}, {}};
        ASSERT_EQ(thrum_init(&config), 0);
        const thrum_attr_t attr = attr_tasklet();
        std::atomic<long> counter{0};
        ASSERT_EQ(thrum_spawn(nullptr, &attr, count, &counter), 0);
        EXPECT_TRUE(eventually([&counter] { return counter == 1; }));
    }
}

TEST_P(Tasklet, RunsDetachedAndFromOutside) {
    const thrum_attr_t attr = attr_tasklet();
    std::atomic<long> counter{0};
    std::atomic<bool> over{false};
    std::thread external([&] {
        for (int i = 0; i < 500; i++)
            EXPECT_EQ(thrum_spawn(nullptr, &attr, count, &counter), 0);
        over = true;
    });
    EXPECT_TRUE(eventually([&] { return over && counter == 500; }));
    external.join();
}

// Among ULTs that yield, block and end: tasklets are picked in every place where a unit is.
TEST_P(Tasklet, MixesWithThreads) {
    const thrum_attr_t attr = attr_tasklet();
    std::atomic<long> counter{0};
    in_ult([&] {
        std::vector<Light> threads;
        for (int i = 0; i < 300 / kStressDivisor + 10; i++)
            threads.emplace_back([&] {
                thrum_t one = nullptr, two = nullptr;
                EXPECT_EQ(thrum_spawn(&one, &attr, count, &counter), 0);
                thrum_yield();
                EXPECT_EQ(thrum_spawn(&two, &attr, count, &counter), 0);
                EXPECT_EQ(thrum_join(one, nullptr), 0);
                thrum_yield();
                EXPECT_EQ(thrum_join(two, nullptr), 0);
            });
        const long made = static_cast<long>(threads.size());
        for (Light &thread : threads)
            thread.join();
        EXPECT_EQ(counter, 2 * made);
    });
}

// --- many, suspended, with values of their own ------------------------------------------------------------

class Many : public Ult {};

TEST_P(Many, EachGetsItsArgument) {
    constexpr std::size_t kThreads = 1000;
    std::vector<int> numbers(kThreads, 1);
    std::vector<thrum_t> threads(kThreads);
    const auto twice = [](void *n) -> void * {
        *static_cast<int *>(n) += 1;
        return n;
    };
    const auto body = [&] {
        ASSERT_EQ(thrum_spawn_many(kThreads, threads.data(), nullptr, twice, numbers.data(), sizeof(int)), 0);
        for (std::size_t i = 0; i < kThreads; i++) {
            void *result = nullptr;
            ASSERT_EQ(thrum_join(threads[i], &result), 0);
            ASSERT_EQ(result, &numbers[i]);
        }
    };
    body();
    in_ult(body);
    EXPECT_EQ(std::set<int>(numbers.begin(), numbers.end()), std::set<int>{3});
}

// By halves: another worker begins with the second half while the first cannot go on. One maker would not come that far:
// of those that it makes each keeps a worker.
TEST_P(Many, AreMadeByHalves) {
    if (workers() == 1)
        GTEST_SKIP() << "nobody helps";
    struct Halves {
        std::size_t count;
        std::atomic<bool> second_begun{false}, late{false};
    };
    struct One {
        Halves *halves;
        std::size_t number;
    };
    const auto run = [](void *arg) -> void * {
        const One *one = static_cast<One *>(arg);
        Halves *halves = one->halves;
        if (one->number >= halves->count / 2)
            halves->second_begun = true;
        const uint64_t end = thrum_now() + 20 * THRUM_S;
        while (!halves->second_begun && !halves->late) {
            sched_yield(); // the CPU, but not the worker
            if (thrum_now() > end)
                halves->late = true;
        }
        return nullptr;
    };
    Halves halves{std::size_t{400} * workers()};
    std::vector<One> ones;
    for (std::size_t i = 0; i < halves.count; i++)
        ones.push_back({&halves, i});
    std::vector<thrum_t> threads(halves.count);
    in_ult([&] {
        EXPECT_EQ(thrum_spawn_many(halves.count, threads.data(), nullptr, run, ones.data(), sizeof(One)), 0);
    });
    for (const thrum_t thread : threads)
        EXPECT_EQ(thrum_join(thread, nullptr), 0);
    EXPECT_FALSE(halves.late);
}

class Suspend : public Ult {};

TEST_P(Suspend, ResumeIsNotLostWhicheverComesFirst) {
    for (int round = 0; round < 300; round++) {
        std::atomic<int> step{0};
        Light thread([&] {
            EXPECT_EQ(thrum_suspend(), 0);
            step = 1;
        });
        if (round % 2 == 0)
            thrum_yield();
        thrum_resume(thread.handle());
        thread.join();
        EXPECT_EQ(step, 1);
    }
}

// What was written before a resume is seen after the suspend that it ended, or has kept from waiting, also if there were
// several before it. The writer's stores are delayed by others that miss its cache.
TEST_P(Suspend, SeesWhatWasWrittenBeforeTheResume) {
    std::vector<std::atomic<char>> cold(std::size_t{64} << 20);
    std::atomic<unsigned long> written{0}, seen{0};
    std::atomic<bool> stop{false};
    Light reader([&] {
        while (!stop) {
            unsigned long now = 0;
            while ((now = written.load(std::memory_order_acquire)) == seen && !stop)
                thrum_suspend();
            seen.store(now, std::memory_order_release);
        }
    });
    External writer([&] {
        std::minstd_rand random(1);
        const uint64_t end = thrum_now() + (ULT_EMULATED ? 50 : 300) * THRUM_MS;
        while (thrum_now() < end) {
            for (unsigned i = 0; i < 3 + random() % 6; i++) {
                for (unsigned miss = 0; miss < 2; miss++)
                    cold[(std::size_t{random()} * 2654435761U) % cold.size()].store(
                        1, std::memory_order_relaxed);
                written.store(written.load(std::memory_order_relaxed) + 1, std::memory_order_release);
                thrum_resume(reader.handle());
            }
            ASSERT_TRUE(eventually([&] { return seen == written; })) << "a resume was lost";
        }
    });
    writer.join();
    stop = true;
    thrum_resume(reader.handle());
}

TEST_P(Suspend, APermitDoesNotOutliveItsThread) {
    for (int round = 0; round < 50; round++) {
        const thrum_attr_t queued = attr_queued();
        Light given([] {}, &queued);
        thrum_resume(given.handle()); // never used
        given.join();
        std::atomic<bool> went_on{false};
        Light next([&] {
            thrum_suspend();
            went_on = true;
        });
        for (int i = 0; i < 20; i++)
            thrum_yield();
        EXPECT_FALSE(went_on);
        thrum_resume(next.handle());
        next.join();
    }
}

TEST_P(Suspend, SwitchToRunsIt) {
    in_ult([] {
        std::atomic<int> turns{0};
        std::atomic<bool> stop{false};
        Light other([&] {
            while (!stop) {
                thrum_suspend();
                turns++;
            }
        });
        for (int i = 1; i <= 200; i++) {
            thrum_switch_to(other.handle());
            EXPECT_TRUE(eventually([&] { return turns >= i; }));
        }
        stop = true;
        thrum_resume(other.handle());
    });
}

TEST_P(Suspend, IsForUlts) {
    int error = 0;
    std::thread([&] { error = thrum_suspend(); }).join();
    EXPECT_EQ(error, EPERM);
}

class UltKeys : public Ult {};

std::atomic<int> destroyed;
void destroy(void *) {
    destroyed++;
}

TEST_P(UltKeys, AreEachThreadsOwnAndDestroyedAtItsEnd) {
    thrum_key_t key = 0, plain = 0;
    destroyed = 0;
    ASSERT_EQ(thrum_key_create(&key, destroy), 0);
    ASSERT_EQ(thrum_key_create(&plain, nullptr), 0);
    {
        std::vector<Light> threads;
        for (std::uintptr_t i = 1; i <= 100; i++)
            threads.emplace_back([=] {
                EXPECT_EQ(thrum_key_get(key), nullptr);
                EXPECT_EQ(thrum_key_set(key, number(i)), 0);
                EXPECT_EQ(thrum_key_set(plain, number(i)), 0);
                thrum_yield();
                EXPECT_EQ(thrum_key_get(key), number(i));
            });
    }
    EXPECT_EQ(destroyed, 100);
    EXPECT_EQ(thrum_key_delete(key), 0);
    EXPECT_EQ(thrum_key_delete(key), EINVAL);
    EXPECT_EQ(thrum_key_set(key, &key), EINVAL);
    EXPECT_EQ(thrum_key_delete(plain), 0);
}

// Tasklets too; and the next thread with its descriptor finds nothing of it.
TEST_P(UltKeys, OfTasklets) {
    thrum_key_t key = 0;
    destroyed = 0;
    ASSERT_EQ(thrum_key_create(&key, destroy), 0);
    const thrum_attr_t attr = attr_tasklet();
    for (int i = 0; i < 100; i++) {
        thrum_t tasklet = nullptr;
        const auto set = [](void *k) -> void * {
            const auto here = *static_cast<thrum_key_t *>(k);
            EXPECT_EQ(thrum_key_get(here), nullptr);
            EXPECT_EQ(thrum_key_set(here, k), 0);
            return nullptr;
        };
        ASSERT_EQ(thrum_spawn(&tasklet, &attr, set, &key), 0);
        EXPECT_EQ(thrum_join(tasklet, nullptr), 0);
        Light([key] { EXPECT_EQ(thrum_key_get(key), nullptr); }).join();
    }
    EXPECT_EQ(destroyed, 100);
    EXPECT_EQ(thrum_key_delete(key), 0);
}

TEST_P(UltKeys, ADeletedKeysValueIsNotTheNextOnes) {
    in_ult([] {
        thrum_key_t key = 0, again = 0;
        ASSERT_EQ(thrum_key_create(&key, nullptr), 0);
        EXPECT_EQ(thrum_key_set(key, &key), 0);
        EXPECT_EQ(thrum_key_delete(key), 0);
        ASSERT_EQ(thrum_key_create(&again, nullptr), 0);
        EXPECT_EQ(again, key);
        EXPECT_EQ(thrum_key_get(again), nullptr);
        EXPECT_EQ(thrum_key_delete(again), 0);
    });
}

// A destructor that sets its value again is called again, up to four times in all.
TEST_P(UltKeys, DestructorsMaySetThemAgain) {
    static thrum_key_t key;
    static std::atomic<int> again;
    destroyed = 0;
    const auto set_again = [](void *value) {
        destroyed++;
        if (again-- > 0) {
            EXPECT_EQ(thrum_key_set(key, value), 0);
        }
        thrum_yield();
    };
    ASSERT_EQ(thrum_key_create(&key, set_again), 0);
    for (const int times : {0, 1, 100}) {
        destroyed = 0;
        again = times;
        in_ult([] { EXPECT_EQ(thrum_key_set(key, &key), 0); });
        EXPECT_EQ(destroyed, std::min(times + 1, 4));
    }
    in_ult([] { EXPECT_EQ(thrum_key_get(key), nullptr) << "what is left is not another's"; });
    again = 0;
    destroyed = 0;
    in_ult([] {
        EXPECT_EQ(thrum_key_set(key, &key), 0);
        EXPECT_EQ(thrum_key_set(key, nullptr), 0);
    });
    EXPECT_EQ(destroyed, 0) << "NULL is no value";
    EXPECT_EQ(thrum_key_delete(key), 0);
}

// External kernel threads have none, but may make and delete keys; the thread that called thrum_init has some.
TEST_P(UltKeys, OfThreadsThatWereNotSpawned) {
    thrum_key_t key = 0;
    External([&key] {
        ASSERT_EQ(thrum_key_create(&key, nullptr), 0);
        EXPECT_EQ(thrum_key_set(key, &key), EPERM);
        EXPECT_EQ(thrum_key_get(key), nullptr);
    }).join();
    EXPECT_EQ(thrum_key_set(key, &key), 0);
    in_ult([key] { EXPECT_EQ(thrum_key_get(key), nullptr); });
    EXPECT_EQ(thrum_key_get(key), &key);
    EXPECT_EQ(thrum_key_set(THRUM_KEYS_MAX, &key), EINVAL);
    EXPECT_EQ(thrum_key_get(THRUM_KEYS_MAX), nullptr);
    External([key] { EXPECT_EQ(thrum_key_delete(key), 0); }).join();
    EXPECT_EQ(thrum_key_get(key), nullptr);
}

TEST_P(UltKeys, RunOut) {
    std::vector<thrum_key_t> keys;
    thrum_key_t key = 0;
    int error = 0;
    while ((error = thrum_key_create(&key, nullptr)) == 0)
        keys.push_back(key);
    EXPECT_EQ(error, EAGAIN);
    EXPECT_EQ(keys.size(), static_cast<std::size_t>(THRUM_KEYS_MAX));
    for (const thrum_key_t one : keys)
        EXPECT_EQ(thrum_key_delete(one), 0);
}

ULT_OVER_WORKERS(Pool);
ULT_OVER_WORKERS(PoolInTurn);
ULT_OVER_WORKERS(Sched);
ULT_OVER_WORKERS(Tasklet);
ULT_OVER_WORKERS(Many);
ULT_OVER_WORKERS(Suspend);
ULT_OVER_WORKERS(UltKeys);

} // namespace
