// SPDX-License-Identifier: Apache-2.0
//
// Mutexes, condition variables, readers-writer locks, eventuals, futures and barriers.
#include <ctime>
#include <string>
#include <thread>

#include "streams.hpp"

using namespace abt_test;

class Sync : public Streams {};
INSTANTIATE_TEST_SUITE_P(On, Sync, testing::Values(1, 2, 4, 8));
class SyncAlone : public Alone {};

namespace {

template <class F>
void on_all(const Streams &test, std::size_t count, F &f) {
    std::vector<ABT_thread> threads;
    for (std::size_t i = 0; i < count; i++)
        threads.push_back(start(test.pool(i), f));
    for (ABT_thread &thread : threads)
        OK(ABT_thread_free(&thread));
}

timespec soon() {
    timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_nsec += 2000000;
    if (time.tv_nsec >= 1000000000) {
        time.tv_nsec -= 1000000000;
        time.tv_sec++;
    }
    return time;
}

} // namespace

TEST_P(Sync, AMutexIsHeldByOne) {
    ABT_mutex mutex;
    OK(ABT_mutex_create(&mutex));
    int counter = 0;
    auto body = [&] {
        for (int i = 0; i < 200; i++) {
            OK(ABT_mutex_lock(mutex));
            int seen = counter;
            ABT_thread_yield();
            counter = seen + 1;
            OK(ABT_mutex_unlock(mutex));
        }
    };
    on_all(*this, 8, body);
    EXPECT_EQ(counter, 1600);
    OK(ABT_mutex_free(&mutex));
    EXPECT_EQ(mutex, ABT_MUTEX_NULL);
}

TEST_P(Sync, TryingInALoopGetsAMutexThatOthersWaitFor) {
    ABT_mutex mutex;
    OK(ABT_mutex_create(&mutex));
    int counter = 0;
    std::atomic<int> inside{0};
    std::atomic<std::size_t> turn{0};
    auto body = [&] {
        bool tries = turn++ % 2 == 0;
        for (int i = 0; i < 300; i++) {
            if (tries)
                while (ABT_mutex_trylock(mutex) != ABT_SUCCESS) {
                }
            else
                OK(ABT_mutex_lock(mutex));
            EXPECT_EQ(inside++, 0);
            counter++;
            inside--;
            OK(i % 2 == 0 ? ABT_mutex_unlock_se(mutex) : ABT_mutex_unlock_de(mutex));
        }
    };
    on_all(*this, 8, body);
    EXPECT_EQ(counter, 2400);
    OK(ABT_mutex_free(&mutex));
}

// While the mutex is held, each try fails, with and without waiters, on any stream and on an external thread. Afterwards the
// tries and the waiters exclude each other, although each holder yields.
TEST_P(Sync, ATryFailsExactlyWhileTheMutexIsHeld) {
    constexpr std::size_t TRYING = 8, WAITING = 4;
    ABT_mutex mutex;
    OK(ABT_mutex_create(&mutex));
    std::atomic<int> inside{1}, tried{0};
    std::atomic<bool> is_released{false};
    int counter = 0;
    OK(ABT_mutex_lock(mutex));
    auto holds = [&] {
        EXPECT_EQ(inside++, 0);
        int seen = counter;
        ABT_thread_yield();
        counter = seen + 1;
        inside--;
        OK(ABT_mutex_unlock(mutex));
    };
    auto tries = [&] {
        for (int i = 0; i < 50; i++)
            EXPECT_EQ(ABT_mutex_trylock(mutex), ABT_ERR_MUTEX_LOCKED);
        tried++;
        while (!is_released)
            ABT_thread_yield();
        for (int i = 0; i < 20; i++) {
            while (ABT_mutex_trylock(mutex) != ABT_SUCCESS)
                ABT_thread_yield();
            holds();
        }
    };
    auto waits = [&] {
        for (int i = 0; i < 20; i++) {
            OK(ABT_mutex_lock(mutex));
            holds();
        }
    };
    std::vector<ABT_thread> threads;
    for (std::size_t i = 0; i < TRYING; i++)
        threads.push_back(start(pool(i), tries));
    while (tried < static_cast<int>(TRYING)) // without waiters
        ABT_thread_yield();
    for (std::size_t i = 0; i < WAITING; i++) {
        threads.push_back(start(pool(i), waits));
        wait_for_state(threads.back(), ABT_THREAD_STATE_BLOCKED);
    }
    EXPECT_EQ(ABT_mutex_trylock(mutex), ABT_ERR_MUTEX_LOCKED);
    int external = ABT_SUCCESS;
    std::thread([&] { external = ABT_mutex_trylock(mutex); }).join();
    EXPECT_EQ(external, ABT_ERR_MUTEX_LOCKED);
    inside = 0;
    OK(ABT_mutex_unlock(mutex));
    // The waiter that was woken has not run on this stream: the mutex is free for a try.
    if (GetParam() == 1) {
        OK(ABT_mutex_trylock(mutex));
        holds();
    }
    is_released = true;
    for (ABT_thread &thread : threads)
        OK(ABT_thread_free(&thread));
    EXPECT_EQ(counter, static_cast<int>(20 * (TRYING + WAITING)) + (GetParam() == 1 ? 1 : 0));
    OK(ABT_mutex_trylock(mutex));
    OK(ABT_mutex_unlock(mutex));
    OK(ABT_mutex_free(&mutex));
}

TEST_P(Sync, StaticObjectsAtAnyMultipleOfFour) {
    struct Objects {
        int before;
        ABT_mutex_memory mutex = ABT_MUTEX_INITIALIZER;
        ABT_mutex_memory recursive = ABT_RECURSIVE_MUTEX_INITIALIZER;
        ABT_cond_memory cond = ABT_COND_INITIALIZER;
        ABT_eventual_memory eventual = ABT_EVENTUAL_INITIALIZER;
        int after = 12345;
    };
    for (int shift = 0; shift < 2; shift++) {
        alignas(8) char memory[sizeof(Objects) + 8];
        auto *objects = new (memory + 4 * shift) Objects;
        ABT_mutex mutex = ABT_MUTEX_MEMORY_GET_HANDLE(&objects->mutex);
        ABT_mutex recursive = ABT_MUTEX_MEMORY_GET_HANDLE(&objects->recursive);
        ABT_cond cond = ABT_COND_MEMORY_GET_HANDLE(&objects->cond);
        ABT_eventual eventual = ABT_EVENTUAL_MEMORY_GET_HANDLE(&objects->eventual);
        int counter = 0, ready = 0;
        auto body = [&] {
            for (int i = 0; i < 50; i++) {
                OK(ABT_mutex_lock(recursive));
                OK(ABT_mutex_lock(recursive));
                OK(ABT_mutex_trylock(recursive));
                ABT_thread_yield();
                counter++;
                for (int k = 0; k < 3; k++)
                    OK(ABT_mutex_unlock(recursive));
            }
            OK(ABT_mutex_lock(mutex));
            ready++;
            OK(ABT_cond_broadcast(cond));
            while (ready < 6)
                OK(ABT_cond_wait(cond, mutex));
            OK(ABT_mutex_unlock(mutex));
            OK(ABT_eventual_wait(eventual, nullptr));
        };
        auto sets = [&] { OK(ABT_eventual_set(eventual, nullptr, 0)); };
        ABT_thread setter = start(pool(1), sets);
        on_all(*this, 6, body);
        OK(ABT_thread_free(&setter));
        EXPECT_EQ(counter, 300);
        EXPECT_EQ(objects->after, 12345);
    }
}

TEST_P(Sync, ABoundedBufferWithConditions) {
    ABT_mutex mutex;
    ABT_cond not_full, not_empty;
    OK(ABT_mutex_create(&mutex));
    OK(ABT_cond_create(&not_full));
    OK(ABT_cond_create(&not_empty));
    std::vector<int> buffer;
    long sum = 0;
    std::atomic<std::size_t> turn{0};
    auto body = [&] {
        bool produces = turn++ % 2 == 0;
        for (int i = 1; i <= 200; i++) {
            OK(ABT_mutex_lock(mutex));
            while (produces ? buffer.size() == 3 : buffer.empty())
                OK(ABT_cond_wait(produces ? not_full : not_empty, mutex));
            if (produces) {
                buffer.push_back(i);
            } else {
                sum += buffer.back();
                buffer.pop_back();
            }
            OK(ABT_cond_signal(produces ? not_empty : not_full));
            OK(ABT_mutex_unlock(mutex));
        }
    };
    on_all(*this, 8, body);
    EXPECT_EQ(sum, 4 * 200 * 201 / 2);
    OK(ABT_cond_free(&not_full));
    OK(ABT_cond_free(&not_empty));
    OK(ABT_mutex_free(&mutex));
}

TEST_P(Sync, WaitsWithADeadline) {
    ABT_mutex mutex;
    ABT_cond cond;
    ABT_eventual eventual;
    OK(ABT_mutex_create(&mutex));
    OK(ABT_cond_create(&cond));
    OK(ABT_eventual_create(0, &eventual));
    auto body = [&] {
        OK(ABT_mutex_lock(mutex));
        timespec time = soon();
        EXPECT_EQ(ABT_cond_timedwait(cond, mutex, &time), ABT_ERR_COND_TIMEDOUT);
        OK(ABT_mutex_unlock(mutex));
        time = soon();
        EXPECT_EQ(ABT_eventual_timedwait(eventual, nullptr, &time), ABT_ERR_COND_TIMEDOUT);
        timespec past = {1, 0};
        OK(ABT_mutex_lock(mutex));
        EXPECT_EQ(ABT_cond_timedwait(cond, mutex, &past), ABT_ERR_COND_TIMEDOUT);
        OK(ABT_mutex_unlock(mutex));
    };
    on_all(*this, 20, body);
    for (ABT_pool each : pools) { // nothing is counted as waiting any more
        std::size_t size;
        OK(ABT_pool_get_total_size(each, &size));
        EXPECT_EQ(size, 0U);
    }
    OK(ABT_eventual_free(&eventual));
    OK(ABT_cond_free(&cond));
    OK(ABT_mutex_free(&mutex));
}

TEST_P(Sync, ReadersGoTogetherAndWritersAlone) {
    ABT_rwlock lock;
    OK(ABT_rwlock_create(&lock));
    std::atomic<int> readers{0}, writers{0};
    int value = 0;
    std::atomic<std::size_t> turn{0};
    auto body = [&] {
        bool writes = turn++ % 4 == 0;
        for (int i = 0; i < 50; i++) {
            if (writes) {
                OK(ABT_rwlock_wrlock(lock));
                EXPECT_EQ(writers++, 0);
                EXPECT_EQ(readers, 0);
                ABT_thread_yield();
                value++;
                writers--;
            } else {
                OK(ABT_rwlock_rdlock(lock));
                readers++;
                EXPECT_EQ(writers, 0);
                OK(ABT_rwlock_rdlock(lock)); // again, also while a writer waits
                ABT_thread_yield();
                OK(ABT_rwlock_unlock(lock));
                readers--;
            }
            OK(ABT_rwlock_unlock(lock));
        }
    };
    on_all(*this, 12, body);
    EXPECT_EQ(value, 150);
    OK(ABT_rwlock_free(&lock));
}

TEST_P(Sync, EventualsPassValues) {
    constexpr int kRounds = 200;
    ABT_eventual there, back;
    OK(ABT_eventual_create(sizeof(int), &there));
    OK(ABT_eventual_create(sizeof(int), &back));
    auto ping = [&] {
        for (int i = 0; i < kRounds; i++) {
            int *value;
            OK(ABT_eventual_set(there, &i, sizeof i));
            OK(ABT_eventual_wait(back, reinterpret_cast<void **>(&value)));
            EXPECT_EQ(*value, i + 1);
            OK(ABT_eventual_reset(back));
        }
    };
    auto pong = [&] {
        for (int i = 0; i < kRounds; i++) {
            int *value;
            OK(ABT_eventual_wait(there, reinterpret_cast<void **>(&value)));
            int next = *value + 1;
            OK(ABT_eventual_reset(there));
            OK(ABT_eventual_set(back, &next, sizeof next));
        }
    };
    ABT_thread threads[] = {start(pool(0), ping), start(pool(1), pong)};
    for (ABT_thread &thread : threads)
        OK(ABT_thread_free(&thread));
    OK(ABT_eventual_free(&there));
    OK(ABT_eventual_free(&back));
}

TEST_P(Sync, FuturesHaveCompartments) {
    static int called;
    called = 0;
    ABT_future future;
    OK(ABT_future_create(
        4, [](void **values) { called += *static_cast<int *>(values[3]) > 0; }, &future));
    int one = 1;
    std::atomic<int> woken{0};
    auto waits = [&] {
        OK(ABT_future_wait(future));
        EXPECT_EQ(called, 1);
        woken++;
    };
    auto sets = [&] { OK(ABT_future_set(future, &one)); };
    ABT_thread waiter = start(pool(0), waits);
    on_all(*this, 4, sets);
    OK(ABT_thread_free(&waiter));
    EXPECT_EQ(woken, 1);
    EXPECT_EQ(ABT_future_set(future, &one), ABT_ERR_FUTURE);
    OK(ABT_future_reset(future));
    ABT_bool ready;
    OK(ABT_future_test(future, &ready));
    EXPECT_FALSE(ready);
    OK(ABT_future_free(&future));
    OK(ABT_future_create(0, nullptr, &future));
    OK(ABT_future_wait(future));
    EXPECT_EQ(ABT_future_set(future, &one), ABT_ERR_FUTURE);
    OK(ABT_future_free(&future));
}

TEST_P(Sync, BarriersAreUsedAgain) {
    constexpr int kThreads = 6, kRounds = 50;
    ABT_barrier barrier;
    OK(ABT_barrier_create(kThreads, &barrier));
    std::atomic<int> arrived{0};
    auto body = [&] {
        for (int round = 1; round <= kRounds; round++) {
            arrived++;
            OK(ABT_barrier_wait(barrier));
            EXPECT_GE(arrived, round * kThreads);
            OK(ABT_barrier_wait(barrier));
        }
    };
    on_all(*this, kThreads, body);
    uint32_t count;
    OK(ABT_barrier_get_num_waiters(barrier, &count));
    EXPECT_EQ(count, 6U);
    OK(ABT_barrier_reinit(barrier, 1));
    OK(ABT_barrier_wait(barrier));
    OK(ABT_barrier_free(&barrier));
}

TEST_P(Sync, StreamsMeetEvenInTasklets) {
    ABT_xstream_barrier barrier;
    OK(ABT_xstream_barrier_create(static_cast<uint32_t>(streams.size()), &barrier));
    std::atomic<std::size_t> arrived{0};
    auto body = [&] {
        arrived++;
        OK(ABT_xstream_barrier_wait(barrier));
        EXPECT_EQ(arrived, streams.size());
    };
    std::vector<ABT_task> tasks;
    for (ABT_pool each : pools)
        tasks.push_back(start_task(each, body));
    for (ABT_task &task : tasks)
        OK(ABT_task_free(&task));
    OK(ABT_xstream_barrier_free(&barrier));
}

TEST_P(Sync, ExternalKernelThreadsWaitToo) {
    ABT_mutex mutex;
    ABT_eventual eventual;
    ABT_barrier barrier;
    OK(ABT_mutex_create(&mutex));
    OK(ABT_eventual_create(0, &eventual));
    OK(ABT_barrier_create(3, &barrier));
    int counter = 0;
    std::atomic<int> over{0};
    auto body = [&] {
        for (int i = 0; i < 100; i++) {
            EXPECT_EQ(ABT_mutex_lock(mutex), ABT_SUCCESS);
            counter++;
            EXPECT_EQ(ABT_mutex_unlock(mutex), ABT_SUCCESS);
        }
        EXPECT_EQ(ABT_barrier_wait(barrier), ABT_SUCCESS);
        EXPECT_EQ(ABT_eventual_wait(eventual, nullptr), ABT_SUCCESS);
        over++;
    };
    std::thread one(body), other(body);
    ABT_thread third = start(pool(1), body);
    auto sets = [&] { OK(ABT_eventual_set(eventual, nullptr, 0)); };
    ABT_thread setter = start(pool(0), sets);
    OK(ABT_thread_free(&third));
    OK(ABT_thread_free(&setter));
    one.join();
    other.join();
    EXPECT_EQ(over, 3);
    EXPECT_EQ(counter, 300);
    OK(ABT_mutex_free(&mutex));
    OK(ABT_eventual_free(&eventual));
    OK(ABT_barrier_free(&barrier));
}

TEST_F(SyncAlone, TellsOfMistakes) {
    ABT_mutex mutex, other;
    ABT_cond cond;
    ABT_eventual eventual;
    EXPECT_EQ(ABT_mutex_lock(ABT_MUTEX_NULL), ABT_ERR_INV_MUTEX);
    EXPECT_EQ(ABT_mutex_lock(nullptr), ABT_ERR_INV_MUTEX);
    EXPECT_EQ(ABT_cond_signal(ABT_COND_NULL), ABT_ERR_INV_COND);
    EXPECT_EQ(ABT_rwlock_unlock(ABT_RWLOCK_NULL), ABT_ERR_INV_RWLOCK);
    EXPECT_EQ(ABT_future_wait(ABT_FUTURE_NULL), ABT_ERR_INV_FUTURE);
    EXPECT_EQ(ABT_barrier_wait(ABT_BARRIER_NULL), ABT_ERR_INV_BARRIER);
    EXPECT_EQ(ABT_xstream_barrier_wait(ABT_XSTREAM_BARRIER_NULL), ABT_ERR_INV_XSTREAM_BARRIER);
    ABT_barrier barrier;
    EXPECT_EQ(ABT_barrier_create(0, &barrier), ABT_ERR_INV_ARG);
    EXPECT_EQ(ABT_eventual_create(-1, &eventual), ABT_ERR_INV_ARG);
    OK(ABT_eventual_create(4, &eventual));
    int value[2] = {1, 2};
    EXPECT_EQ(ABT_eventual_set(eventual, value, 8), ABT_ERR_INV_EVENTUAL);
    ABT_bool ready;
    OK(ABT_eventual_test(eventual, nullptr, &ready));
    EXPECT_FALSE(ready);
    OK(ABT_eventual_set(eventual, value, 4));
    EXPECT_EQ(ABT_eventual_set(eventual, value, 4), ABT_ERR_EVENTUAL);
    OK(ABT_eventual_free(&eventual));

    OK(ABT_mutex_create(&mutex));
    OK(ABT_mutex_create(&other));
    OK(ABT_cond_create(&cond));
    OK(ABT_mutex_lock(mutex));
    EXPECT_EQ(ABT_mutex_trylock(mutex), ABT_ERR_MUTEX_LOCKED);
    OK(ABT_mutex_unlock(mutex));
    bool signalled = false;
    auto waits = [&] {
        OK(ABT_mutex_lock(mutex));
        while (!signalled)
            OK(ABT_cond_wait(cond, mutex));
        OK(ABT_mutex_unlock(mutex));
    };
    ABT_thread thread = start(pool, waits);
    wait_for_state(thread, ABT_THREAD_STATE_BLOCKED);
    OK(ABT_mutex_lock(other));
    EXPECT_EQ(ABT_cond_wait(cond, other), ABT_ERR_INV_MUTEX);
    OK(ABT_mutex_unlock(other));
    EXPECT_EQ(ABT_cond_free(&cond), ABT_ERR_COND);
    OK(ABT_mutex_lock(mutex));
    signalled = true;
    OK(ABT_cond_signal(cond));
    OK(ABT_mutex_unlock(mutex));
    OK(ABT_thread_free(&thread));
    OK(ABT_cond_free(&cond));

    ABT_mutex_attr attr;
    ABT_bool recursive;
    OK(ABT_mutex_free(&other));
    OK(ABT_mutex_attr_create(&attr));
    OK(ABT_mutex_attr_set_recursive(attr, ABT_TRUE));
    OK(ABT_mutex_create_with_attr(attr, &other));
    OK(ABT_mutex_attr_free(&attr));
    OK(ABT_mutex_get_attr(other, &attr));
    OK(ABT_mutex_attr_get_recursive(attr, &recursive));
    EXPECT_TRUE(recursive);
    ABT_bool same;
    OK(ABT_mutex_equal(mutex, other, &same));
    EXPECT_FALSE(same);
    OK(ABT_mutex_attr_free(&attr));
    OK(ABT_mutex_free(&other));
    OK(ABT_mutex_free(&mutex));
}
