// SPDX-License-Identifier: Apache-2.0
//
// No memory: pools, schedulers, values, tasklets, many at once and second lives report it, and work again when there
// is some; run queues do without. Each in a process of its own, where nothing is left over from others. (Init, spawn,
// join and fini are in runtime_test.cpp.)
#include <errno.h>
#include <limits.h>
#include <sys/wait.h>
#include <thrum/pool.h>

#include <atomic>
#include <memory>
#include <vector>

#include "faults.hpp"
#include "no_descriptors.hpp"
#include "ult.hpp"

namespace {

class Scarce : public UltPlain {
  protected:
    void TearDown() override {
        faults_clear();
        UltPlain::TearDown();
    }
};

constexpr int kMany = 100000; // more than what is kept at hand of anything
constexpr std::size_t kAtOnce = kStressDivisor > 1 ? 1000 : 4000;
constexpr int kTimesOver = kStressDivisor > 1 ? 100 / kStressDivisor : 500;

void no_memory() {
    faults.mmap.after(0, INT_MAX, ENOMEM);
}

// With one worker, the caller's, unless told.
void alone(const std::function<void()> &work, unsigned workers = 1) {
    const int status = in_child([&work, workers] {
        const thrum_config config{workers, 0, {THRUM_PREEMPT_NONE, 0, 0, 0}, {}}; // which makes nothing later
        EXPECT_EQ(thrum_init(&config), 0);
        work();
        faults_clear();
        EXPECT_EQ(thrum_fini(), 0);
        return testing::Test::HasFailure() ? 1 : 0;
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// Calls `make`, which has an error to return, until it fails, which it does with this one, and then also the next time.
void until(int error, const std::function<int()> &make) {
    int made = 0, got = 0;
    while (made < kMany && (got = make()) == 0)
        made++;
    EXPECT_EQ(got, error) << "after " << made;
    EXPECT_EQ(make(), error);
}

void *nothing(void *arg) {
    return arg;
}

TEST_F(Scarce, Pools) {
    for (const thrum_pool_kind kind :
         {THRUM_POOL_FIFO, THRUM_POOL_LIFO, THRUM_POOL_PRIORITY, THRUM_POOL_DEADLINE, THRUM_POOL_DEQUE})
        alone([kind] {
            std::vector<thrum_pool_t> pools;
            const auto make = [&] {
                thrum_pool_t pool = nullptr;
                const int error = thrum_pool_create(&pool, kind);
                if (error == 0)
                    pools.push_back(pool);
                return error;
            };
            no_memory();
            until(ENOMEM, make);
            faults_clear();
            EXPECT_EQ(make(), 0);
            for (const thrum_pool_t pool : pools)
                EXPECT_EQ(thrum_pool_destroy(pool), 0);
            no_memory();
            EXPECT_EQ(make(), 0); // what was given back is there
            EXPECT_EQ(thrum_pool_destroy(pools.back()), 0);
        });
}

TEST_F(Scarce, PoolsOfTheUsersOwn) {
    alone([] {
        const thrum_pool_ops ops{[](void *, thrum_t) {},
                                 [](void *) -> thrum_t { return nullptr; },
                                 [](void *) -> std::size_t { return 0; },
                                 nullptr,
                                 nullptr,
                                 nullptr};
        thrum_pool_t last = nullptr;
        no_memory();
        until(ENOMEM, [&] { return thrum_pool_create_user(&last, &ops, nullptr); });
        faults_clear();
        EXPECT_EQ(thrum_pool_create_user(&last, &ops, nullptr), 0);
    });
}

TEST_F(Scarce, Schedulers) {
    alone([] {
        thrum_pool_t pool = nullptr;
        ASSERT_EQ(thrum_pool_create(&pool, THRUM_POOL_FIFO), 0);
        std::vector<thrum_sched_t> scheds;
        const auto make = [&] {
            thrum_sched_t sched = nullptr;
            const int error = scheds.size() % 2 == 0 ? thrum_sched_create(&sched, THRUM_SCHED_FIRST, &pool, 1)
                                                     : thrum_sched_create_stealing(&sched, &pool, 1, 1, 0);
            if (error == 0)
                scheds.push_back(sched);
            return error;
        };
        no_memory();
        until(ENOMEM, make);
        faults_clear();
        EXPECT_EQ(make(), 0);
        for (const thrum_sched_t sched : scheds)
            EXPECT_EQ(thrum_sched_destroy(sched), 0);
        EXPECT_EQ(thrum_pool_destroy(pool), 0); // those that were not made do not count
    });
}

TEST_F(Scarce, Values) {
    alone([] {
        thrum_key_t key = 0;
        ASSERT_EQ(thrum_key_create(&key, nullptr), 0);
        no_memory();
        EXPECT_EQ(thrum_key_set(key, &key), ENOMEM);
        EXPECT_EQ(thrum_key_get(key), nullptr);
        faults_clear();
        EXPECT_EQ(thrum_key_set(key, &key), 0);
        EXPECT_EQ(thrum_key_get(key), &key);
        EXPECT_EQ(thrum_key_delete(key), 0);
    });
}

TEST_F(Scarce, Tasklets) {
    alone([] {
        thrum_attr_t attr;
        thrum_attr_init(&attr);
        ASSERT_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_TASKLET), 0);
        std::vector<thrum_t> tasklets;
        const auto make = [&] {
            thrum_t tasklet = nullptr;
            const int error = thrum_spawn(&tasklet, &attr, nothing, &tasklets);
            if (error == 0)
                tasklets.push_back(tasklet);
            return error;
        };
        EXPECT_EQ(make(), 0); // there is room for the threads that come back
        no_memory();
        until(EAGAIN, make);
        const auto join_all = [&] {
            for (const thrum_t tasklet : tasklets) {
                void *result = nullptr;
                EXPECT_EQ(thrum_join(tasklet, &result), 0);
                EXPECT_EQ(result, &tasklets);
            }
            tasklets.clear();
        };
        join_all();
        EXPECT_EQ(make(), 0); // of what the others had
        faults_clear();
        EXPECT_EQ(make(), 0);
        join_all();
    });
}

// All stacks of a size are in use: an ended thread stays ended, and its handle is as good as before.
TEST_F(Scarce, SecondLives) {
    alone([] {
        const thrum_attr_t attr = attr_stack(std::size_t{1} << 20);
        thrum_t thread = nullptr;
        void *result = nullptr;
        ASSERT_EQ(thrum_spawn(&thread, &attr, nothing, &thread), 0);
        ASSERT_EQ(thrum_join_keep(thread, &result), 0);
        thrum_event_t over = THRUM_EVENT_INITIALIZER;
        std::vector<thrum_t> others;
        no_memory();
        until(EAGAIN, [&] {
            thrum_t other = nullptr;
            const auto wait = [](void *event) -> void * {
                thrum_event_wait(static_cast<thrum_event_t *>(event));
                return nullptr;
            };
            const int error = thrum_spawn(&other, &attr, wait, &over);
            if (error == 0)
                others.push_back(other);
            thrum_yield(); // it has its stack when it begins
            return error;
        });
        EXPECT_EQ(thrum_revive(thread, nothing, &over), EAGAIN);
        faults_clear();
        EXPECT_EQ(thrum_revive(thread, nothing, &over), 0);
        EXPECT_EQ(thrum_join(thread, &result), 0);
        EXPECT_EQ(result, &over);
        thrum_event_set(&over);
        for (const thrum_t other : others)
            EXPECT_EQ(thrum_join(other, nullptr), 0);
    });
}

// Some of many have been made when there is no memory for the next: they have ended, and are joined, when that is said. Time
// and again: were one left over each time there would be no descriptor in the end.
TEST_F(Scarce, ManyAtOnce) {
    struct Counts {
        std::atomic<std::size_t> begun{0}, ended{0};
        static void *run(void *counts) {
            static_cast<Counts *>(counts)->begun++;
            thrum_yield();
            static_cast<Counts *>(counts)->ended++;
            return counts;
        }
    };
    const auto try_many = [](int well, const thrum_attr_t *attr) {
        std::vector<thrum_t> threads(kAtOnce);
        faults.mmap.after(well, INT_MAX, ENOMEM);
        for (int i = 0; i < kTimesOver; i++) {
            Counts counts;
            ASSERT_EQ(thrum_spawn_many(kAtOnce, threads.data(), attr, Counts::run, &counts, 0), EAGAIN);
            ASSERT_EQ(counts.ended, counts.begun);
            if (thrum_workers() == 1) { // others may have what is there at hand
                ASSERT_GT(counts.begun, 0U) << "time " << i;
            }
        }
        faults_clear();
        Counts counts;
        ASSERT_EQ(thrum_spawn_many(kAtOnce, threads.data(), attr, Counts::run, &counts, 0), 0);
        for (const thrum_t thread : threads) {
            void *result = nullptr;
            ASSERT_EQ(thrum_join(thread, &result), 0);
            ASSERT_EQ(result, &counts);
        }
        EXPECT_EQ(counts.ended, kAtOnce);
    };
    for (const unsigned workers : {1U, 2U, 4U})
        for (const bool queued : {false, true})
            for (const int well : {2, 4})
                alone(
                    [&] {
                        const thrum_attr_t attr = attr_queued();
                        try_many(well, queued ? &attr : nullptr);
                    },
                    workers);
}

// Thousands become ready at once, and no run queue can grow: none is lost, and all go on.
TEST_F(Scarce, RunQueues) {
    struct Gate {
        thrum_event_t open = THRUM_EVENT_INITIALIZER;
        std::atomic<std::size_t> waiting{0}, passed{0};
        static void *pass(void *arg) {
            auto *gate = static_cast<Gate *>(arg);
            gate->waiting++;
            thrum_event_wait(&gate->open);
            thrum_yield();
            gate->passed++;
            return gate;
        }
    };
    for (const unsigned workers : {1U, 2U, 4U})
        alone(
            [] {
                Gate gate;
                std::vector<thrum_t> threads(20000 / kStressDivisor);
                for (thrum_t &thread : threads)
                    ASSERT_EQ(thrum_spawn(&thread, nullptr, Gate::pass, &gate), 0);
                ASSERT_TRUE(eventually([&] { return gate.waiting == threads.size(); }));
                no_memory();
                thrum_event_set(&gate.open);
                for (const thrum_t thread : threads) {
                    void *result = nullptr;
                    ASSERT_EQ(thrum_join(thread, &result), 0);
                    ASSERT_EQ(result, &gate);
                }
                EXPECT_EQ(gate.passed, threads.size());
                if (kStressDivisor == 1) {
                    EXPECT_GT(faults.mmap.calls, 0) << "no queue wanted to grow";
                }
            },
            workers);
}

// A thread that another object than the condition has woken, and for whose mutex no other thread can wait, waits itself.
TEST_F(Scarce, ConditionsAmongOthers) {
    alone([] {
        struct Waiting {
            thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
            thrum_cond_t changed = THRUM_COND_INITIALIZER;
            thrum_event_t stop = THRUM_EVENT_INITIALIZER;
            std::atomic<bool> is_over{false};
            static void end(void *arg) {
                auto *self = static_cast<Waiting *>(arg);
                EXPECT_EQ(thrum_mutex_unlock(&self->mutex), 0);
                self->is_over = true;
            }
        } all;
        thrum_wait_t waits[] = {{THRUM_WAIT_COND, 0, &all.changed, &all.mutex, {}},
                                {THRUM_WAIT_EVENT, 0, &all.stop, nullptr, {}}};
        thrum_when_t when{waits, 2, kNever, Waiting::end, &all, 0, 0, 0, {}};
        thrum_mutex_lock(&all.mutex);
        ASSERT_EQ(thrum_spawn_when(nullptr, &when), 0);
        thrum_mutex_lock(&all.mutex);
        const NoDescriptors none;
        thrum_event_set(&all.stop);
        EXPECT_TRUE(eventually_waiting(all.mutex, 1));
        EXPECT_FALSE(all.is_over);
        EXPECT_EQ(thrum_mutex_unlock(&all.mutex), 0);
        EXPECT_TRUE(eventually([&all] { return all.is_over.load(); }));
        EXPECT_EQ(when.which, 1U);
        EXPECT_EQ(when.error, 0);
    });
}

uint64_t cpu_time_ms() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1000 + static_cast<uint64_t>(time.tv_nsec) / 1000000;
}

// A burst's stacks cannot be given back, as that takes a tasklet and there is no descriptor for one. Until there is,
// no worker retries without end.
TEST_F(Scarce, Trimming) {
    if (ULT_ASAN || ULT_TSAN || ULT_EMULATED)
        GTEST_SKIP() << "others' mappings come and go";
    alone([] {
        constexpr int kBurst = 400,
                      kOthers = 2000; // more than fit into the chunks of the former's descriptors
        constexpr std::size_t kStack = std::size_t{1} << 20;
        thrum_event_t burst = THRUM_EVENT_INITIALIZER, over = THRUM_EVENT_INITIALIZER;
        const auto wait = [](void *event) -> void * {
            thrum_event_wait(static_cast<thrum_event_t *>(event));
            return nullptr;
        };
        const thrum_attr_t large = attr_stack(kStack);
        std::vector<thrum_t> bursting(kBurst), others;
        for (thrum_t &thread : bursting)
            ASSERT_EQ(thrum_spawn(&thread, &large, wait, &burst), 0);
        // All descriptors are taken, by threads on memory of the test's own.
        const std::unique_ptr<char[]> memory(new char[std::size_t{kOthers} * THRUM_STACK_MIN]);
        thrum_attr_t own;
        thrum_attr_init(&own);
        no_memory();
        until(EAGAIN, [&] {
            thrum_t other = nullptr;
            if (others.size() == kOthers)
                return ENOSYS;
            EXPECT_EQ(thrum_attr_set_stack(&own, &memory[others.size() * THRUM_STACK_MIN], THRUM_STACK_MIN),
                      0);
            const int error = thrum_spawn(&other, &own, wait, &over);
            if (error == 0)
                others.push_back(other);
            return error;
        });
        const std::size_t mapped = mapped_bytes();
        thrum_event_set(&burst); // they end, and keep their descriptors until they are joined
        const uint64_t before = cpu_time_ms();
        thrum_sleep(1500 * THRUM_MS);
        EXPECT_LT(cpu_time_ms() - before, 700u) << "somebody tries all the time";
        EXPECT_EQ(mapped_bytes(), mapped);
        faults_clear();
        for (const thrum_t thread : bursting)
            EXPECT_EQ(thrum_join(thread, nullptr), 0);
        EXPECT_TRUE(eventually([mapped] { return mapped_bytes() < mapped - kBurst / 2 * kStack; }));
        thrum_event_set(&over);
        for (const thrum_t other : others)
            EXPECT_EQ(thrum_join(other, nullptr), 0);
    });
}

} // namespace
