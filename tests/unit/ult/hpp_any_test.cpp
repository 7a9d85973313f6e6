// SPDX-License-Identifier: Apache-2.0
//
// thrum::condition_variable_any.
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "hpp.hpp"

namespace {

class HppConditionAny : public Hpp {};

template <class Mutex, class Lock>
void there_and_back(Mutex &mutex) {
    thrum::condition_variable_any changed;
    int turn = 0;
    const int rounds = 200 / kStressDivisor;
    const auto play = [&](int mine) {
        for (int i = 0; i < rounds; i++) {
            Lock lock(mutex);
            changed.wait(lock, [&] { return turn % 2 == mine; });
            turn++;
            changed.notify_all();
        }
    };
    thrum::thread other(play, 1);
    play(0);
    other.join();
    EXPECT_EQ(turn, 2 * rounds);
}

TEST_P(HppConditionAny, WithAnyLock) {
    everywhere([] {
        thrum::shared_mutex shared;
        thrum::binary_semaphore semaphore(1);
        struct Semaphore {
            explicit Semaphore(thrum::binary_semaphore &one) : sem(one) { lock(); }
            Semaphore(const Semaphore &) = delete;
            ~Semaphore() { unlock(); }
            void lock() const { sem.acquire(); }
            void unlock() const { sem.release(); }
            thrum::binary_semaphore &sem;
        };
        there_and_back<thrum::shared_mutex, std::unique_lock<thrum::shared_mutex>>(shared);
        there_and_back<thrum::binary_semaphore, Semaphore>(semaphore);
    });
}

TEST_P(HppConditionAny, InTimeAndWithTokens) {
    thrum::shared_mutex mutex;
    thrum::condition_variable_any changed;
    std::atomic<int> ended{0};
    {
        std::shared_lock lock(mutex);
        EXPECT_EQ(changed.wait_for(lock, 10us), std::cv_status::timeout);
        EXPECT_EQ(changed.wait_until(lock, std::chrono::system_clock::now()), std::cv_status::timeout);
        EXPECT_FALSE(changed.wait_for(lock, 10us, [] { return false; }));
        EXPECT_FALSE(changed.wait_until(lock, std::chrono::system_clock::now(), [] { return false; }));
        EXPECT_TRUE(changed.wait_for(lock, 1h, [] { return true; }));
        EXPECT_TRUE(lock.owns_lock());
    }
    for (const bool in_time : {true, false}) {
        thrum::thread waits([&](const std::stop_token &stop) {
            std::shared_lock lock(mutex);
            EXPECT_FALSE(in_time ? changed.wait_for(lock, stop, 1h, [] { return false; })
                                 : changed.wait(lock, stop, [] { return false; }));
            EXPECT_FALSE(changed.wait_until(lock, stop, std::chrono::system_clock::time_point::max(),
                                            [] { return false; }));
            EXPECT_TRUE(stop.stop_requested());
            ended++;
        });
        thrum::this_thread::yield();
    }
    EXPECT_EQ(ended, 2);
}

// The object may go once all have been notified, before they have the lock again.
TEST_P(HppConditionAny, MayGoOnceAllAreNotified) {
    thrum::mutex mutex;
    auto changed = std::make_unique<thrum::condition_variable_any>();
    bool over = false;
    int waiting = 0;
    std::vector<thrum::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&] {
            std::unique_lock lock(mutex);
            waiting++;
            while (!over)
                changed->wait(lock);
        });
    EXPECT_TRUE(eventually([&] {
        const std::lock_guard lock(mutex);
        return waiting == 4;
    }));
    std::unique_lock lock(mutex);
    over = true;
    changed->notify_all();
    changed.reset();
}

// The lock is locked while a cancelled thread unwinds.
TEST_P(HppConditionAny, ACancelledWaitHasItsLock) {
    thrum::mutex mutex;
    thrum::condition_variable_any changed;
    std::atomic<bool> waits{false};
    bool had_lock = false;
    struct Look {
        std::unique_lock<thrum::mutex> &lock;
        bool &had;
        ~Look() { had = lock.owns_lock(); }
    };
    thrum::thread thread(thrum::attributes().cancellable(), [&] {
        std::unique_lock lock(mutex);
        const Look look{lock, had_lock};
        waits = true;
        for (;;)
            changed.wait(lock);
    });
    EXPECT_TRUE(eventually([&] { return waits.load() && mutex.try_lock(); }));
    mutex.unlock();
    EXPECT_EQ(thrum_cancel(thread.native_handle()), 0);
    thread.join();
    EXPECT_TRUE(had_lock);
    EXPECT_TRUE(mutex.try_lock());
    mutex.unlock();
}

ULT_OVER_WORKERS(HppConditionAny);

} // namespace
