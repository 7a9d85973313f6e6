// SPDX-License-Identifier: Apache-2.0
//
// thrum::mutex and its relatives under the standard's locks, condition variables with stop tokens, semaphores, latches,
// barriers, events, once.
#include <shared_mutex>

#include "hpp.hpp"

namespace {

class HppMutex : public Hpp {};

// So many threads add to an unguarded number under the mutex.
template <class Mutex, class Lock>
void add_under(Mutex &mutex, Lock lock) {
    long count = 0;
    const long each = 2000 / kStressDivisor;
    {
        std::vector<thrum::thread> threads;
        for (int i = 0; i < 4; i++)
            threads.emplace_back([&] {
                for (long k = 0; k < each; k++) {
                    const auto locked = lock(mutex);
                    count++;
                }
            });
        External outside([&] {
            for (long k = 0; k < each; k++) {
                const auto locked = lock(mutex);
                count++;
            }
        });
    }
    EXPECT_EQ(count, 5 * each);
}

TEST_P(HppMutex, ExcludesUnderAllLocks) {
    thrum::mutex mutex;
    thrum::recursive_mutex recursive;
    thrum::shared_mutex shared;
    add_under(mutex, [](auto &m) { return std::unique_lock(m); });
    add_under(recursive, [](auto &m) { return std::pair(std::unique_lock(m), std::unique_lock(m)); });
    add_under(shared, [](auto &m) { return std::unique_lock(m); });
    std::pair<thrum::mutex &, thrum::shared_mutex &> both(mutex, shared);
    struct Both {
        explicit Both(std::pair<thrum::mutex &, thrum::shared_mutex &> &two) : lock(two.first, two.second) {}
        std::scoped_lock<thrum::mutex, thrum::shared_mutex> lock;
    };
    add_under(both, [](auto &two) { return Both(two); });
}

TEST_P(HppMutex, TriesAndWaitsNoLongerThan) {
    everywhere([] {
        thrum::timed_mutex mutex;
        thrum::shared_timed_mutex shared;
        mutex.lock();
        shared.lock();
        thrum::thread([&] {
            EXPECT_FALSE(mutex.try_lock());
            EXPECT_FALSE(mutex.try_lock_for(1ms));
            EXPECT_FALSE(mutex.try_lock_until(std::chrono::steady_clock::now() + 1ms));
            EXPECT_FALSE(mutex.try_lock_until(std::chrono::system_clock::now() + 1ms));
            EXPECT_FALSE(std::shared_lock(shared, std::try_to_lock).owns_lock());
            EXPECT_FALSE(std::shared_lock(shared, 1ms).owns_lock());
            EXPECT_FALSE(std::unique_lock(shared, std::chrono::system_clock::now() + 1ms).owns_lock());
        }).join();
        shared.unlock();
        mutex.unlock();
        EXPECT_TRUE(std::unique_lock(mutex, 1h).owns_lock());
        EXPECT_TRUE(std::unique_lock(shared, std::chrono::hours::max()).owns_lock());
        EXPECT_TRUE(std::shared_lock(shared, std::chrono::system_clock::now() + 1h).owns_lock());
    });
}

TEST_P(HppMutex, ReadersShare) {
    thrum::shared_mutex mutex;
    thrum::latch both(2);
    const auto read = [&] {
        const std::shared_lock lock(mutex);
        both.arrive_and_wait();
    };
    const thrum::thread one(read), two(read);
}

TEST_P(HppMutex, OnceIsOnce) {
    thrum::once_flag flag;
    std::atomic<int> calls{0}, thrown{0};
    {
        std::vector<thrum::thread> threads;
        for (int i = 0; i < 8; i++)
            threads.emplace_back([&] {
                try {
                    thrum::call_once(
                        flag,
                        [&](int by) {
                            if (calls.fetch_add(by) == 0)
                                throw Thrown();
                        },
                        1);
                } catch (const Thrown &) {
                    thrown++;
                }
            });
    }
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(thrown, 1);
}

ULT_OVER_WORKERS(HppMutex);

class HppCondition : public Hpp {};

TEST_P(HppCondition, PingPong) {
    everywhere([] {
        thrum::mutex mutex;
        thrum::condition_variable turned;
        int turn = 0;
        const auto play = [&](int mine) {
            for (int i = 0; i < 500 / kStressDivisor; i++) {
                std::unique_lock lock(mutex);
                turned.wait(lock, [&] { return turn == mine; });
                turn = 1 - mine;
                turned.notify_one();
            }
        };
        thrum::thread other([&] { play(1); });
        play(0);
    });
}

TEST_P(HppCondition, WaitsNoLongerThan) {
    everywhere([] {
        thrum::recursive_mutex mutex;
        thrum::condition_variable never;
        std::unique_lock lock(mutex);
        EXPECT_EQ(never.wait_for(lock, 1ms), thrum::cv_status::timeout);
        EXPECT_EQ(never.wait_until(lock, std::chrono::steady_clock::now() + 1ms), thrum::cv_status::timeout);
        EXPECT_EQ(never.wait_until(lock, std::chrono::system_clock::now() + 1ms), thrum::cv_status::timeout);
        EXPECT_FALSE(never.wait_for(lock, 1ms, [] { return false; }));
        EXPECT_FALSE(never.wait_until(lock, std::chrono::system_clock::now() + 1ms, [] { return false; }));
        EXPECT_TRUE(never.wait_for(lock, -1s, [] { return true; }));
        EXPECT_TRUE(lock.owns_lock());
    });
}

TEST_P(HppCondition, IsWokenByAStopToken) {
    everywhere([] {
        for (int i = 0; i < 100 / kStressDivisor + 2; i++) {
            thrum::mutex mutex;
            thrum::condition_variable changed;
            std::atomic<bool> result{true}, waiting{false};
            thrum::thread waits([&](const std::stop_token &stop) {
                std::unique_lock lock(mutex);
                waiting = true;
                result = changed.wait(lock, stop, [] { return false; });
                EXPECT_TRUE(lock.owns_lock());
            });
            if (i % 3 != 0) { // else it may be stopped at any moment
                EXPECT_TRUE(eventually([&] { return waiting.load(); }));
            }
            if (i % 2 == 0) {
                const std::lock_guard lock(mutex); // the one who says so may have the mutex
                waits.request_stop();
            } else {
                waits.request_stop();
            }
            waits.join();
            EXPECT_FALSE(result);
        }
    });
}

TEST_P(HppCondition, WithAStopTokenTheConditionStillCounts) {
    everywhere([] {
        thrum::mutex mutex;
        thrum::condition_variable changed;
        bool ready = false;
        thrum::thread waits([&](const std::stop_token &stop) {
            std::unique_lock lock(mutex);
            EXPECT_TRUE(changed.wait(lock, stop, [&] { return ready; }));
            EXPECT_TRUE(changed.wait_for(lock, stop, 1h, [&] { return ready; }));
            EXPECT_FALSE(changed.wait_for(lock, stop, 1ms, [] { return false; }));
            EXPECT_FALSE(
                changed.wait_until(lock, stop, std::chrono::system_clock::now() + 1ms, [] { return false; }));
            EXPECT_FALSE(changed.wait_for(lock, std::stop_token(), 1ms, [] { return false; }));
        });
        thrum::this_thread::yield();
        {
            const std::lock_guard lock(mutex);
            ready = true;
        }
        changed.notify_all();
        waits.join();
        std::stop_source stopped;
        stopped.request_stop();
        std::unique_lock lock(mutex);
        EXPECT_FALSE(changed.wait(lock, stopped.get_token(), [] { return false; }));
        EXPECT_TRUE(changed.wait(lock, stopped.get_token(), [] { return true; }));
        int asked = 0; // once it is true it is not asked again
        EXPECT_TRUE(
            changed.wait_for(lock, std::stop_source().get_token(), 1ms, [&] { return ++asked == 2; }));
        EXPECT_EQ(asked, 2);
    });
}

ULT_OVER_WORKERS(HppCondition);

class HppGates : public Hpp {};

TEST_P(HppGates, SemaphoresLetSoManyIn) {
    everywhere([] {
        thrum::counting_semaphore places(2);
        std::atomic<int> inside{0}, most{0};
        {
            std::vector<thrum::thread> threads;
            for (int i = 0; i < 8; i++)
                threads.emplace_back([&] {
                    places.acquire();
                    const int now = ++inside;
                    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);)
                        ;
                    thrum::this_thread::yield();
                    inside--;
                    places.release();
                });
        }
        EXPECT_LE(most, 2);
        thrum::binary_semaphore none(0);
        EXPECT_FALSE(none.try_acquire());
        EXPECT_FALSE(none.try_acquire_for(1ms));
        EXPECT_FALSE(none.try_acquire_until(std::chrono::system_clock::now() + 1ms));
        none.release();
        EXPECT_TRUE(none.try_acquire_for(1ms));
        EXPECT_THROW(none.release((std::ptrdiff_t{1} << 32) + 1), std::system_error);
        static_assert(thrum::counting_semaphore<5>::max() == 5);
        static_assert(!std::is_copy_assignable_v<thrum::pool> && !std::is_copy_assignable_v<thrum::runtime>);
    });
}

TEST_P(HppGates, LatchesAndEvents) {
    everywhere([] {
        thrum::latch ready(3);
        thrum::event go;
        std::atomic<int> gone{0};
        {
            std::vector<thrum::thread> threads;
            for (int i = 0; i < 3; i++)
                threads.emplace_back([&] {
                    ready.count_down();
                    go.wait();
                    gone++;
                });
            ready.wait();
            EXPECT_EQ(gone, 0);
            EXPECT_FALSE(go.wait_for(1ms));
            go.set();
        }
        EXPECT_EQ(gone, 3);
        EXPECT_TRUE(ready.try_wait());
        EXPECT_THROW(ready.count_down(), std::system_error);
        thrum::latch more(3);
        EXPECT_THROW(more.count_down(std::ptrdiff_t{1} << 32), std::system_error);
        EXPECT_FALSE(more.try_wait());
        more.count_down(3);
        EXPECT_TRUE(go.wait_until(std::chrono::system_clock::now()));
        go.reset();
        EXPECT_FALSE(go.is_set());
    });
}

TEST_P(HppGates, BarriersKeepStep) {
    constexpr int kThreads = 5;
    const int rounds = 50 / kStressDivisor + 2;
    int completed = 0;
    std::array<std::atomic<int>, kThreads> steps{};
    thrum::barrier barrier(kThreads, [&]() noexcept { completed++; });
    {
        std::vector<thrum::thread> threads;
        for (int i = 0; i < kThreads; i++)
            threads.emplace_back([&, i] {
                for (int round = 0; round < rounds; round++) {
                    steps[static_cast<std::size_t>(i)]++;
                    if (i % 2 == 0)
                        barrier.arrive_and_wait();
                    else
                        barrier.wait(barrier.arrive());
                    for (const auto &step : steps) {
                        EXPECT_GE(step, round + 1);
                        EXPECT_LE(step, round + 2);
                    }
                }
            });
    }
    EXPECT_EQ(completed, rounds);
    thrum::barrier few(2);
    few.arrive_and_drop();
    few.arrive_and_wait();
    few.arrive_and_wait(); // alone from here on
}

ULT_OVER_WORKERS(HppGates);

} // namespace
