// SPDX-License-Identifier: Apache-2.0
//
// What is not preempted waits in the kernel for a lock that a preempted thread has, on the only worker that would run that
// one: without relief (src/preempt/relief.c) each of these hangs.
#include <pthread.h>
#include <thrum/pool.h>
#include <thrum/preempt.h>
#include <unistd.h>

#include <array>
#include <optional>

#include "pools.hpp"
#include "preempt.hpp"
#include "user_pool.hpp"

namespace {

// A kernel threads' lock, as libc's are. Its holder is preempted before another thread comes to it: it waits for that
// one in a busy loop.
class Contended {
  public:
    Contended() = default;
    Contended(const Contended &) = delete;
    ~Contended() { EXPECT_EQ(passed_, 2); }

    // What is done while it is held: first, and when another thread comes to it.
    void hold(
        const std::function<void()> &then = [] {}, const std::function<void()> &more = [] {}) {
        pthread_mutex_lock(&mutex_);
        held_ = true;
        then();
        wait_for(wanted_);
        more();
        pass();
    }
    // It is held.
    void want() {
        EXPECT_TRUE(held_);
        wanted_ = true;
        pthread_mutex_lock(&mutex_);
        pass();
    }
    bool is_held() const { return held_; }
    const std::atomic<bool> &held() const { return held_; }
    void yield_until_held() const {
        while (!held_)
            thrum_yield();
    }
    void want_when_held() {
        yield_until_held();
        want();
    }

  private:
    void pass() {
        passed_++;
        pthread_mutex_unlock(&mutex_);
    }

    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
    std::atomic<bool> held_{false}, wanted_{false};
    int passed_ = 0; // under mutex_
};

class Relief : public Interrupted, public testing::WithParamInterface<unsigned> {
  protected:
    void SetUp() override {
        Interrupted::SetUp();
        alarm(60);
    }
    void TearDown() override { alarm(0); }
};

INSTANTIATE_TEST_SUITE_P(Modes, Relief, kSafeModes, name_of_mode);

thrum_attr_t queued(unsigned flags = 0) {
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    EXPECT_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_QUEUED | flags), 0);
    return attr;
}

} // namespace

TEST_P(Relief, OfATasklet) {
    const Preempting runtime(1, GetParam());
    Contended lock;
    Thread holder([&] { lock.hold(); });
    lock.yield_until_held();
    const thrum_attr_t attr = queued(THRUM_SPAWN_TASKLET);
    Light wants([&] { lock.want(); }, &attr);
}

TEST_P(Relief, OfARegion) {
    const Preempting runtime(1, GetParam());
    Contended lock;
    Thread holder([&] { lock.hold(); });
    Thread wants([&] {
        lock.yield_until_held();
        thrum_nopreempt_begin();
        lock.want();
        thrum_nopreempt_end();
    });
}

TEST_P(Relief, OfAThreadThatIsNotPreempted) {
    const Preempting runtime(1, GetParam());
    Contended lock;
    Thread holder([&] { lock.hold(); });
    Thread wants([&] { lock.want_when_held(); }, THRUM_PREEMPT_NONE);
}

TEST_P(Relief, WhereThePrimaryHasTheLock) {
    const Preempting runtime(1, GetParam());
    Contended lock;
    const thrum_attr_t attr = queued(THRUM_SPAWN_TASKLET);
    std::optional<Light> wants;
    lock.hold([&] { wants.emplace([&] { lock.want(); }, &attr); });
    while (thrum_worker_self() != 0) // it comes home
        thrum_yield();
}

TEST_P(Relief, WhereAThreadHasTheLockThatRunsThereOnly) {
    const Preempting runtime(2, GetParam());
    Contended lock;
    thrum_attr_t attr = queued();
    EXPECT_EQ(thrum_attr_set_worker(&attr, 1), 0);
    Light holder([&] { lock.hold(); }, &attr);
    EXPECT_EQ(thrum_attr_set_preempt(&attr, THRUM_PREEMPT_NONE), 0);
    Light wants([&] { lock.want_when_held(); }, &attr);
}

// In the library's pools, behind others that have never run, and each with a scheduler of its own.
class ReliefOfPools {
  public:
    explicit ReliefOfPools(unsigned mode) : runtime_(2, mode) {}
    ReliefOfPools(const ReliefOfPools &) = delete;

    void run(enum thrum_pool_kind kind, void (*function)(thrum_sched_t, void *), Contended &lock) {
        thrum_pool_t pool = nullptr;
        thrum_sched_t sched = nullptr;
        ASSERT_EQ(thrum_pool_create(&pool, kind), 0);
        ASSERT_EQ(thrum_sched_create_user(&sched, function, &lock, &pool, 1), 0);
        thrum_attr_t attr;
        thrum_attr_init(&attr);
        thrum_attr_set_pool(&attr, pool);
        Light holder([&] { lock.hold(); }, &attr);
        ASSERT_EQ(thrum_worker_set_sched(1, sched), 0);
        lock.yield_until_held();
        std::atomic<int> others{0};
        for (int i = 0; i < kOthers; i++)
            more_.emplace_back([&] { others++; }, &attr);
        holder.join();
        more_.clear();
        EXPECT_EQ(others, kOthers);
        EXPECT_EQ(thrum_worker_set_sched(1, nullptr), 0);
        while (thrum_sched_destroy(sched) == EBUSY)
            thrum_yield();
        EXPECT_EQ(thrum_pool_destroy(pool), 0);
    }

  private:
    static constexpr int kOthers = 100;
    Preempting runtime_;
    std::vector<Light> more_;
};

// Comes to the lock itself, when it has run the holder for a slice.
void schedule(thrum_sched_t sched, void *arg) {
    auto *lock = static_cast<Contended *>(arg);
    for (bool wants = true; !thrum_sched_stopping(sched);) {
        thrum_t thread = thrum_pool_pop(thrum_sched_pool(sched, 0));
        if (thread != nullptr)
            thrum_run(thread);
        else
            thrum_sched_idle(sched);
        if (wants && lock->is_held()) {
            wants = false;
            lock->want();
        }
    }
}

TEST_P(Relief, OfASchedulersFunction) {
    for (const enum thrum_pool_kind kind :
         {THRUM_POOL_FIFO, THRUM_POOL_LIFO, THRUM_POOL_PRIORITY, THRUM_POOL_DEADLINE}) {
        ReliefOfPools relief(GetParam());
        Contended lock;
        relief.run(kind, schedule, lock);
    }
}

// With longer slices than the distance of its ticks: they find no unit that could run there, as long as the holder
// runs on the relief worker, from where it comes back more than once.
TEST_P(Relief, OfASchedulersFunctionWhileTheHolderIsAway) {
    constexpr unsigned kLong = 10 * kSlice, kTurns = 6;
    const Preempting runtime(2, GetParam());
    Contended lock;
    const PoolOf fifo(THRUM_POOL_FIFO);
    thrum_attr_t attr = fifo.attr();
    EXPECT_EQ(thrum_attr_set_slice(&attr, kLong), 0);
    const auto compute = [] {
        for (const uint64_t until = thrum_now() + kTurns * kLong * THRUM_US; thrum_now() < until;) {
        }
    };
    thrum_sched_t sched = nullptr;
    ASSERT_EQ(thrum_sched_create_user(&sched, schedule, &lock, &fifo.pool, 1), 0);
    const SchedOn on(1, sched);
    Light holder([&] { lock.hold([] {}, compute); }, &attr);
}

// No tick comes again and again for a sleeper that only that function could run.
TEST_P(Relief, ASchedulersFunctionThatComputesWhenASleepIsOver) {
    constexpr uint64_t kPeriods = 200, kSleep = 20 * kSlice * THRUM_US;
    const Preempting runtime(2, GetParam());
    const PoolOf fifo(THRUM_POOL_FIFO);
    struct Seen {
        std::atomic<bool> sleeps{false}, over{false};
        uint64_t ticks = 0;
    } seen;
    const auto function = [](thrum_sched_t sched, void *arg) {
        auto *shared = static_cast<Seen *>(arg);
        const auto count = [] {
            thrum_worker_counters counters{};
            EXPECT_EQ(thrum_worker_get_counters(1, &counters), 0);
            return counters.ticks;
        };
        while (!thrum_sched_stopping(sched)) {
            thrum_t thread = thrum_pool_pop(thrum_sched_pool(sched, 0));
            if (thread != nullptr)
                thrum_run(thread);
            if (shared->sleeps.exchange(false)) {
                const uint64_t before = count();
                for (const uint64_t until = thrum_now() + kSleep + kPeriods * kSlice * THRUM_US;
                     thrum_now() < until;) {
                }
                shared->ticks = count() - before;
                shared->over = true;
            }
        }
    };
    thrum_sched_t sched = nullptr;
    ASSERT_EQ(thrum_sched_create_user(&sched, function, &seen, &fifo.pool, 1), 0);
    const SchedOn on(1, sched);
    const thrum_attr_t attr = fifo.attr();
    Light sleeper(
        [&] {
            seen.sleeps = true;
            thrum_sleep(kSleep);
        },
        &attr);
    wait_for(seen.over); // a busy worker does not fire others' timers
    EXPECT_LT(seen.ticks, 2 * kPeriods);
}

// It waits, is preempted, and is the next in the order of its pool, before the one that has the lock.
TEST_P(Relief, WhereOneOfHigherPriorityWaits) {
    const Preempting runtime(2, GetParam());
    Contended lock;
    thrum_pool_t pool = nullptr;
    thrum_sched_t sched = nullptr;
    ASSERT_EQ(thrum_pool_create(&pool, THRUM_POOL_PRIORITY), 0);
    ASSERT_EQ(thrum_sched_create(&sched, THRUM_SCHED_FIRST, &pool, 1), 0);
    ASSERT_EQ(thrum_worker_set_sched(1, sched), 0);
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    thrum_attr_set_pool(&attr, pool);
    {
        Light holder([&] { lock.hold(); }, &attr);
        lock.yield_until_held();
        EXPECT_EQ(thrum_attr_set_priority(&attr, THRUM_PRIORITY_MAX), 0);
        Light wants([&] { lock.want(); }, &attr);
    }
    EXPECT_EQ(thrum_worker_set_sched(1, nullptr), 0);
    while (thrum_sched_destroy(sched) == EBUSY)
        thrum_yield();
    EXPECT_EQ(thrum_pool_destroy(pool), 0);
}

// In a pool's thread, on a worker with a scheduler, while no thread runs on the other worker.
void in_a_pool(unsigned mode, const std::function<void()> &work) {
    const Preempting runtime(2, mode);
    std::atomic<bool> over{false};
    const PoolOf fifo(THRUM_POOL_FIFO);
    const SchedOn on(1, sched_of(THRUM_SCHED_FIRST, {fifo.pool}));
    const thrum_attr_t attr = fifo.attr();
    Light pooled([&] { work(), over = true; }, &attr);
    thrum_nopreempt_begin();
    wait_for(over);
    thrum_nopreempt_end();
}

// The pools are empty, and the holder is where such a worker looks then.
TEST_P(Relief, ThreadInAPoolWithHolderInNoPool) {
    Contended lock;
    in_a_pool(GetParam(), [&] {
        Thread holder([&] { lock.hold(); });
        while (!lock.is_held())
            thrum_sleep(10'000);
        lock.want();
        holder.join();
    });
}

// ... or where such a worker would steal it: behind a thread that does not yield.
TEST_P(Relief, ThreadInAPoolWithHolderOfAnotherWorker) {
    const Preempting runtime(2, GetParam());
    Contended lock;
    std::atomic<bool> runs{false}, go{false}, over{false};
    const PoolOf fifo(THRUM_POOL_FIFO);
    const SchedOn on(1, sched_of(THRUM_SCHED_FIRST, {fifo.pool}));
    const thrum_attr_t attr = fifo.attr();
    Light pooled(
        [&] {
            runs = true;
            wait_for(go); // so that its worker does not take the holder
            lock.want();
            over = true;
        },
        &attr);
    wait_for(runs);
    Thread holder([&] { lock.hold(); });
    wait_for(lock.held());
    thrum_nopreempt_begin();
    go = true;
    wait_for(over);
    thrum_nopreempt_end();
}

// ... and a thread that computes there, from no pool either, does not keep the others from running.
TEST_P(Relief, BehindEmptyPoolsAllHaveTheirTurn) {
    in_a_pool(GetParam(), wait_for_each_other);
}

// The scheduler takes from the first pool that has something, where the one that waits is: the worker runs the other, whose
// pool is of the program's kind, itself.
class ReliefOfUsersPool {
  public:
    explicit ReliefOfUsersPool(unsigned mode) : runtime_(2, mode) {}
    ReliefOfUsersPool(const ReliefOfUsersPool &) = delete;
    ~ReliefOfUsersPool() { EXPECT_EQ(thrum_pool_destroy(second_.pool()), 0); }

    thrum_sched_t sched() const { return sched_of(THRUM_SCHED_FIRST, {first_.pool, second_.pool()}); }
    void run() {
        Contended lock;
        const thrum_attr_t behind = attr_pool(second_.pool()), before = first_.attr();
        Light holder([&] { lock.hold(); }, &behind);
        lock.yield_until_held();
        Light wants([&] { lock.want(); }, &before);
        wants.join();
        holder.join();
    }

  private:
    Preempting runtime_;
    PoolOf first_{THRUM_POOL_FIFO};
    UserFifo second_;
};

TEST_P(Relief, WhereTheHolderIsInAPoolOfTheProgramsKind) {
    ReliefOfUsersPool relief(GetParam());
    const SchedOn on(1, relief.sched());
    relief.run();
}

TEST_P(Relief, WhereItIsTheStackedSchedulersPool) {
    ReliefOfUsersPool relief(GetParam());
    const thrum_sched_t stacked = relief.sched();
    thrum_t thread = nullptr;
    ASSERT_EQ(thrum_sched_spawn(&thread, nullptr, stacked), 0);
    relief.run();
    thrum_sched_stop(stacked);
    EXPECT_EQ(thrum_join(thread, nullptr), 0);
    EXPECT_EQ(thrum_sched_destroy(stacked), 0);
}

// Takes what there is, and runs the last first, with the others in hand.
void schedule_by_armfuls(thrum_sched_t sched, void *unused) {
    (void)unused;
    const thrum_pool_t pool = thrum_sched_pool(sched, 0);
    while (!thrum_sched_stopping(sched)) {
        std::array<thrum_t, 8> threads;
        std::size_t count = thrum_pool_pop_many(pool, threads.data(), threads.size());
        if (count == 0)
            thrum_sched_idle(sched);
        while (count > 0)
            thrum_run(threads.at(--count));
    }
}

TEST_P(Relief, WhereTheSchedulerHasTheHolderInHand) {
    const Preempting runtime(2, GetParam());
    Contended lock;
    const PoolOf fifo(THRUM_POOL_FIFO);
    thrum_sched_t sched = nullptr;
    ASSERT_EQ(thrum_sched_create_user(&sched, schedule_by_armfuls, nullptr, &fifo.pool, 1), 0);
    const SchedOn on(1, sched);
    const thrum_attr_t attr = fifo.attr();
    Light holder([&] { lock.hold(); }, &attr);
    lock.yield_until_held();
    Light wants([&] { lock.want(); }, &attr);
    wants.join();
    holder.join();
}

// One after another, and all at once.
TEST_P(Relief, TimeAndAgain) {
    const Preempting runtime(1, GetParam());
    for (int round = 0; round < 20; round++) {
        Contended locks[4];
        std::vector<Thread> holders;
        for (Contended &lock : locks)
            holders.emplace_back([&lock] { lock.hold(); });
        for (const Contended &lock : locks)
            lock.yield_until_held();
        const thrum_attr_t attr = queued(THRUM_SPAWN_TASKLET);
        std::vector<Light> want;
        for (Contended &lock : locks)
            want.emplace_back([&lock] { lock.want(); }, &attr);
        want.clear();
    }
}

// Its waker may be faster than it is in looking for another unit.
TEST_P(Relief, NotOfThePrimaryThatSleeps) {
    const Preempting runtime(1, GetParam());
    for (int i = 0; i < 300; i++)
        thrum_sleep(1000);
}

// Another takes all the slices that it can.
TEST_P(Relief, WhereOthersAreInTheWay) {
    const Preempting runtime(2, GetParam());
    Contended lock;
    std::atomic<bool> over{false};
    thrum_attr_t attr = queued();
    EXPECT_EQ(thrum_attr_set_worker(&attr, 1), 0);
    std::vector<Light> busy;
    for (int i = 0; i < 2; i++)
        busy.emplace_back([&] { wait_for(over); }, &attr);
    Light holder([&] { lock.hold(); }, &attr);
    EXPECT_EQ(thrum_attr_set_preempt(&attr, THRUM_PREEMPT_NONE), 0);
    Light wants(
        [&] {
            lock.want_when_held();
            over = true;
        },
        &attr);
}

// A region is where a thread is alone on its worker: it is relieved in a wait only.
TEST_P(Relief, NotForComputingThreads) {
    const Preempting runtime(1, GetParam());
    std::atomic<bool> stop{false};
    std::atomic<int> turns{0};
    Thread computes([&] {
        while (!stop)
            turns++;
    });
    while (turns == 0)
        thrum_yield();
    const thrum_attr_t attr = queued(THRUM_SPAWN_TASKLET);
    Light alone(
        [&] {
            const int before = turns;
            const uint64_t end = in_ms(20);
            while (thrum_now() < end) {
            }
            EXPECT_EQ(turns, before);
            stop = true;
        },
        &attr);
}
