// SPDX-License-Identifier: Apache-2.0
//
// Where a thread runs and what it stands on: workers that it is bound to, migration, stacks of the user's own; and what
// can be told of it: name, id, priority, use of its stack.
#include <thrum/pool.h>
#include <thrum/worker.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <vector>

#include "ult.hpp"

namespace {

thrum_attr_t on_worker(unsigned worker) {
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    EXPECT_EQ(thrum_attr_set_worker(&attr, worker), 0);
    return attr;
}

class Place : public Ult {};

// Each worker's threads run on one kernel thread, and all workers have another.
TEST_P(Place, BoundToAWorker) {
    std::vector<std::set<pid_t>> where(workers());
    std::vector<Light> lights;
    thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
    for (unsigned i = 0; i < 4 * workers(); i++) {
        const thrum_attr_t attr = on_worker(i % workers());
        std::set<pid_t> &here = where[i % workers()];
        lights.emplace_back(
            [&mutex, &here] {
                for (int round = 0; round < 5; round++) {
                    thrum_mutex_lock(&mutex);
                    here.insert(gettid());
                    thrum_mutex_unlock(&mutex);
                    if (round % 2 == 0)
                        thrum_yield();
                    else
                        thrum_sleep(10 * THRUM_US);
                }
            },
            &attr);
    }
    lights.clear();
    std::set<pid_t> all;
    for (const auto &here : where) {
        EXPECT_EQ(here.size(), 1U);
        all.insert(here.begin(), here.end());
    }
    EXPECT_EQ(all.size(), workers());
}

TEST_P(Place, BoundChildrenAndTheirParents) {
    const thrum_attr_t attr = on_worker(workers() - 1);
    Light(
        [&attr] {
            const auto here = gettid();
            for (int i = 0; i < 1000 / kStressDivisor; i++) {
                Light child([] { thrum_yield(); });
                Light bound([here] { EXPECT_EQ(gettid(), here); }, &attr);
                bound.join();
                child.join();
                ASSERT_EQ(gettid(), here);
            }
        },
        &attr)
        .join();
}

TEST_P(Place, WhereThereIsNoWorker) {
    thrum_attr_t attr = on_worker(workers());
    thrum_t thread = nullptr;
    const auto nothing = [](void *) -> void * { return nullptr; };
    EXPECT_EQ(thrum_spawn(&thread, &attr, nothing, nullptr), EINVAL);
    EXPECT_EQ(thrum_attr_set_worker(&attr, 1024), EINVAL);
    attr = on_worker(0);
    EXPECT_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_TASKLET), 0);
    EXPECT_EQ(thrum_spawn(&thread, &attr, nothing, nullptr), EINVAL);
    EXPECT_EQ(thrum_attr_set_flags(&attr, 0), 0);
    EXPECT_EQ(thrum_attr_set_worker(&attr, THRUM_ANY_WORKER), 0);
    ASSERT_EQ(thrum_spawn(&thread, &attr, nothing, nullptr), 0);
    EXPECT_EQ(thrum_join(thread, nullptr), 0);
}

TEST_P(Place, MovesItself) {
    in_ult([] {
        std::vector<pid_t> where;
        for (unsigned i = 0; i < workers(); i++) {
            ASSERT_EQ(thrum_migrate(thrum_self(), i), 0);
            where.push_back(gettid());
            thrum_yield();
            EXPECT_EQ(gettid(), where.back());
        }
        std::sort(where.begin(), where.end());
        EXPECT_EQ(std::unique(where.begin(), where.end()), where.end());
        EXPECT_EQ(thrum_migrate(thrum_self(), workers()), EINVAL);
        EXPECT_EQ(thrum_migrate(thrum_self(), THRUM_ANY_WORKER), 0);
        thrum_yield();
    });
    EXPECT_EQ(thrum_migrate(thrum_self(), 0), EPERM);
}

// A move that cannot be leaves it where it is.
TEST_P(Place, StaysWhereItIsIfItCannotMove) {
    const thrum_attr_t attr = on_worker(workers() - 1);
    Light(
        [] {
            const int here = thrum_worker_self();
            EXPECT_EQ(thrum_migrate(thrum_self(), workers()), EINVAL);
            for (int i = 0; i < 50; i++) {
                thrum_sleep(10 * THRUM_US);
                ASSERT_EQ(thrum_worker_self(), here);
            }
        },
        &attr)
        .join();
}

// Several move one thread at once: in the end it has one place, and no worker believes that it still has to stay for it.
TEST_P(Place, IsMovedBySeveralAtOnce) {
    const unsigned target = workers(); // one more
    unsigned added = 0;
    ASSERT_EQ(thrum_worker_add(&added), 0);
    ASSERT_EQ(added, target);
    for (int round = 0; round < 300 / kStressDivisor; round++) {
        std::atomic<bool> over{false};
        std::atomic<int> ready{0};
        Light moved([&] {
            while (!over)
                thrum_yield();
        });
        const auto move = [&](unsigned to) {
            ready++;
            while (ready < 2)
                thrum_yield();
            const int error = thrum_migrate(moved.handle(), to);
            EXPECT_TRUE(error == 0 || error == EBUSY) << error;
        };
        External bind([&] { move(target); });
        move(THRUM_ANY_WORKER);
        bind.join();
        over = true;
        moved.join();
    }
    EXPECT_EQ(thrum_worker_stop(target), 0) << "somebody is still counted as bound to it";
    for (int i = 0; i < 200; i++) { // with the descriptors of those
        const thrum_attr_t attr = on_worker(0);
        Light([] {}, &attr).join();
    }
}

TEST_P(Place, IsMovedByOthers) {
    const unsigned target = workers() - 1;
    pid_t there = 0;
    const thrum_attr_t attr = on_worker(target);
    Light([&there] { there = gettid(); }, &attr).join();
    std::vector<Light> lights;
    std::atomic<bool> over{false};
    for (int i = 0; i < 20; i++)
        lights.emplace_back([&] {
            while (!over)
                thrum_yield();
            thrum_yield();
            EXPECT_EQ(gettid(), there);
        });
    for (const Light &light : lights)
        EXPECT_EQ(thrum_migrate(light.handle(), target), 0);
    for (const Light &light : lights)
        EXPECT_EQ(thrum_migrate(light.handle(), 0), EBUSY) << "only itself may leave";
    over = true;
}

TEST_P(Place, MovesToAPoolAndBack) {
    thrum_pool_t pool = nullptr;
    thrum_sched_t sched = nullptr;
    ASSERT_EQ(thrum_pool_create(&pool, THRUM_POOL_FIFO), 0);
    ASSERT_EQ(thrum_sched_create(&sched, THRUM_SCHED_FIRST, &pool, 1), 0);
    ASSERT_EQ(thrum_worker_set_sched(workers() - 1, sched), 0);
    {
        std::atomic<int> steps{0};
        Light light([&] {
            EXPECT_EQ(thrum_migrate_to_pool(thrum_self(), pool), 0);
            steps++;
            thrum_yield();
            steps++;
            EXPECT_EQ(thrum_migrate(thrum_self(), THRUM_ANY_WORKER), 0);
            thrum_yield();
            steps++;
        });
        light.join();
        EXPECT_EQ(steps, 3);
        EXPECT_EQ(thrum_migrate_to_pool(thrum_self(), pool), EPERM);
        EXPECT_EQ(thrum_migrate_to_pool(thrum_self(), nullptr), EINVAL);
    }
    ASSERT_EQ(thrum_worker_set_sched(workers() - 1, nullptr), 0);
    EXPECT_TRUE(eventually([&] { return thrum_sched_destroy(sched) == 0; }));
    EXPECT_EQ(thrum_pool_destroy(pool), 0);
}

ULT_OVER_WORKERS(Place);

class UserStack : public Ult {};

struct OnIt {
    char *low, *high;
    bool on_it;
};

void *look(void *arg) {
    auto *expected = static_cast<OnIt *>(arg);
    char here = 0;
    thrum_yield();
    expected->on_it = &here >= expected->low && &here < expected->high;
    return arg;
}

// The memory is the user's again as soon as the join returns: it is overwritten, and given to the next.
TEST_P(UserStack, IsUsedAndLeft) {
    constexpr std::size_t kSize = 65536 + 24; // of any size and alignment
    const auto use = [] {
        std::vector<char> memory(kSize);
        thrum_attr_t attr;
        thrum_attr_init(&attr);
        ASSERT_EQ(thrum_attr_set_stack(&attr, memory.data() + 3, kSize - 3), 0);
        for (int i = 0; i < 500 / kStressDivisor; i++) {
            OnIt expected{memory.data(), memory.data() + kSize, false};
            thrum_t thread = nullptr;
            void *result = nullptr;
            ASSERT_EQ(thrum_spawn(&thread, &attr, look, &expected), 0);
            ASSERT_EQ(thrum_join(thread, &result), 0);
            std::memset(memory.data(), 0xa5, kSize);
            ASSERT_EQ(result, &expected);
            ASSERT_TRUE(expected.on_it);
        }
    };
    std::vector<Light> lights;
    for (int i = 0; i < 4; i++)
        lights.emplace_back(use);
    External(use).join();
}

// Whatever ends first goes to a loop that never ran, where the end must be seen to.
TEST_P(UserStack, OfTheFirstThread) {
    for (int round = 0; round < 20; round++) {
        std::vector<char> memory(THRUM_STACK_MIN);
        ASSERT_EQ(thrum_fini(), 0);
        const thrum_config config{workers(), 0, {}, {}};
        ASSERT_EQ(thrum_init(&config), 0);
        thrum_attr_t attr;
        thrum_attr_init(&attr);
        ASSERT_EQ(thrum_attr_set_stack(&attr, memory.data(), memory.size()), 0);
        thrum_t thread = nullptr;
        ASSERT_EQ(thrum_spawn(
                      &thread, &attr, [](void *) -> void * { return nullptr; }, nullptr),
                  0);
        ASSERT_EQ(thrum_join(thread, nullptr), 0);
    }
}

TEST_P(UserStack, TooSmall) {
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    std::array<char, 1024> memory{};
    EXPECT_EQ(thrum_attr_set_stack(&attr, memory.data(), memory.size()), EINVAL);
    EXPECT_EQ(thrum_attr_set_stack(&attr, nullptr, 1 << 20), EINVAL);
    EXPECT_EQ(thrum_attr_set_stack(&attr, nullptr, 0), 0);
}

ULT_OVER_WORKERS(UserStack);

class About : public Ult {};

TEST_P(About, NamesAndIds) {
    std::set<uint64_t> ids;
    for (int i = 0; i < 100; i++) {
        std::atomic<bool> over{false};
        Light light([&] {
            while (!over)
                thrum_yield();
        });
        std::array<char, THRUM_NAME_SIZE> name{};
        thrum_get_name(light.handle(), name.data());
        EXPECT_STREQ(name.data(), "") << "nothing is left of whoever had the descriptor before";
        EXPECT_EQ(thrum_set_name(light.handle(), "fifteen letters"), 0);
        EXPECT_EQ(thrum_set_name(light.handle(), "sixteen  letters"), ERANGE);
        thrum_get_name(light.handle(), name.data());
        EXPECT_STREQ(name.data(), "fifteen letters");
        const uint64_t id = thrum_id(light.handle());
        EXPECT_NE(id, 0U);
        EXPECT_EQ(thrum_id(light.handle()), id);
        EXPECT_TRUE(ids.insert(id).second);
        over = true;
    }
}

TEST_P(About, Priorities) {
    in_ult([] {
        EXPECT_EQ(thrum_get_priority(thrum_self()), 0U);
        EXPECT_EQ(thrum_set_priority(thrum_self(), THRUM_PRIORITY_MAX + 1), EINVAL);
        EXPECT_EQ(thrum_set_priority(thrum_self(), 7), 0);
        EXPECT_EQ(thrum_get_priority(thrum_self()), 7U);
    });
    in_ult([] { EXPECT_EQ(thrum_get_priority(thrum_self()), 0U); });
}

TEST_P(About, TheStackOfOneThatHasEnded) {
    thrum_t thread = nullptr;
    std::size_t used = 0, size = 0;
    ASSERT_EQ(thrum_spawn(
                  &thread, nullptr, [](void *arg) { return arg; }, nullptr),
              0);
    ASSERT_EQ(thrum_join_keep(thread, nullptr), 0);
    EXPECT_EQ(thrum_stack_used(thread, &used, &size), ESRCH);
    EXPECT_EQ(thrum_join(thread, nullptr), 0);
}

#if !ULT_ASAN && !ULT_TSAN && !ULT_EMULATED
__attribute__((noinline)) void touch(std::size_t bytes) {
    auto *memory = static_cast<volatile char *>(__builtin_alloca(bytes));
    for (std::size_t i = 0; i < bytes; i += 1024)
        memory[i] = 1;
}

TEST_P(About, UseOfTheStack) {
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    ASSERT_EQ(thrum_attr_set_stack_size(&attr, 1 << 20), 0);
    ASSERT_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_MEASURED), 0);
    for (int round = 0; round < 3; round++)
        Light(
            [] {
                std::size_t before = 0, after = 0, size = 0;
                EXPECT_EQ(thrum_stack_used(thrum_self(), &before, &size), 0);
                EXPECT_GE(size, 1U << 20);
                EXPECT_LE(before, 16U << 10);
                touch(300 << 10);
                EXPECT_EQ(thrum_stack_used(thrum_self(), &after, &size), 0);
                EXPECT_GE(after, 300U << 10);
                EXPECT_LE(after, 330U << 10);
            },
            &attr)
            .join();
    // One after another in the queue, of which each has the stack of the one before it; the caller's own is told before
    // it has waited for the first time.
    ASSERT_EQ(thrum_attr_set_stack_size(&attr, 65536), 0);
    std::vector<Light> row;
    const auto use = [](std::size_t touched, std::size_t most) {
        return [touched, most] {
            std::size_t before = 0, size = 0;
            EXPECT_EQ(thrum_stack_used(thrum_self(), &before, &size), 0);
            EXPECT_GT(before, 0U);
            EXPECT_GT(size, 50000U);
            EXPECT_LE(before, most);
            touch(touched);
        };
    };
    const thrum_attr_t plain = attr_queued();
    for (int i = 0; i < 5; i++) {
        row.emplace_back(use(10, 16 << 10), &attr);
        row.emplace_back(use(40 << 10, 65536), &plain);
    }
    row.clear();
    const thrum_attr_t queued = attr_queued();
    std::size_t used = 1, size = 1;
    const Light unborn([] {}, &queued);
    if (workers() == 1) {
        EXPECT_EQ(thrum_stack_used(unborn.handle(), &used, &size), 0);
        EXPECT_EQ(used + size, 0U) << "it has none yet";
    }
}
#endif

ULT_OVER_WORKERS(About);

} // namespace
