// SPDX-License-Identifier: Apache-2.0
//
// thrum::condition_variable_any; and what coroutines can await besides futures.
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <system_error>
#include <vector>

#include "hpp.hpp"
#include "no_descriptors.hpp"

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

class HppAwaits : public Hpp {};

thrum::task<int> receive_all(thrum::channel<Counted> &channel, thrum::channel<int> &results) {
    std::optional<Counted> received;
    int sum = 0;
    while (co_await channel.receiving(received), received) {
        sum += received->value();
        std::optional<int> result = sum;
        co_await results.sending(result);
        EXPECT_FALSE(result);
    }
    co_return sum;
}

TEST_P(HppAwaits, Channels) {
    everywhere([] {
        thrum::channel<Counted> channel;
        thrum::channel<int> results;
        thrum::future<int> sum = thrum::async(receive_all(channel, results));
        for (int i = 1, expected = 0; i <= 20; i++) {
            EXPECT_TRUE(channel.send(Counted(i)));
            expected += i;
            EXPECT_EQ(results.receive(), expected);
        }
        channel.close();
        EXPECT_EQ(sum.get(), 210);
    });
}

thrum::task<int> wait_for_each(thrum::event &event, thrum::latch &latch, thrum::binary_semaphore &sem,
                               thrum::thread &thread) {
    co_await event;
    co_await latch;
    co_await sem;
    sem.release();
    try {
        co_await thread;
    } catch (const Thrown &) {
        co_return 1;
    }
    co_return 0;
}

TEST_P(HppAwaits, WhatWhenAnyWaitsFor) {
    for (const bool before : {true, false}) {
        thrum::event event;
        thrum::latch latch(1);
        thrum::binary_semaphore sem(0);
        thrum::thread thread([] { throw Thrown(); });
        const auto make_ready = [&] {
            event.set();
            latch.count_down();
            sem.release();
        };
        if (before)
            make_ready();
        thrum::future<int> result = thrum::async(wait_for_each(event, latch, sem, thread));
        if (!before) {
            EXPECT_EQ(result.wait_for(100us), thrum::future_status::timeout);
            make_ready();
        }
        EXPECT_EQ(result.get(), 1);
        EXPECT_TRUE(sem.try_acquire());
        EXPECT_FALSE(thread.joinable());
    }
}

thrum::task<> add_under(thrum::mutex &mutex, long &sum, int times) {
    for (int i = 0; i < times; i++) {
        const std::unique_lock lock = co_await thrum::locking(mutex);
        sum++;
        if (i % 8 == 0)
            thrum::this_thread::yield(); // it keeps its thread, which owns the mutex
    }
}

TEST_P(HppAwaits, Locks) {
    thrum::mutex mutex;
    long sum = 0;
    const int times = 200 / kStressDivisor;
    std::vector<thrum::future<void>> tasks;
    for (int i = 0; i < 8; i++)
        tasks.push_back(thrum::async(add_under(mutex, sum, times)));
    thrum::when_all(std::span(tasks));
    EXPECT_EQ(sum, 8 * times);
}

// --- conditions and barriers ------------------------------------------------------------------------------------

// What coroutines wait for, and what they have found.
template <class Mutex>
struct Ready {
    Mutex mutex;
    thrum::condition_variable changed, never;
    bool is_ready = false;
    std::atomic<int> woken{0}, left{0};

    void make_ready() {
        {
            const std::lock_guard lock(mutex);
            is_ready = true;
        }
        changed.notify_all();
    }
};

template <class Mutex>
thrum::task<> waits_plainly(Ready<Mutex> &all) {
    std::unique_lock lock = co_await thrum::locking(all.mutex);
    while (!all.is_ready)
        co_await all.changed.waiting(lock);
    all.woken++;
    all.left++; // it has the mutex
    thrum::this_thread::yield();
    EXPECT_EQ(all.left--, 1);
}

template <class Mutex>
thrum::task<> waits_until_ready(Ready<Mutex> &all, std::stop_token stop) {
    std::unique_lock lock = co_await thrum::locking(all.mutex);
    const auto is_ready = [&] { return all.is_ready; };
    const auto end = std::chrono::steady_clock::now() + 1h;
    EXPECT_EQ(co_await all.never.waiting_for(lock, 10us), std::cv_status::timeout);
    EXPECT_FALSE(co_await all.never.waiting_for(lock, 10us, [] { return false; }));
    EXPECT_EQ(co_await all.never.waiting_until(lock, std::chrono::steady_clock::time_point::min()),
              std::cv_status::timeout);
    co_await all.changed.waiting(lock, is_ready);
    EXPECT_TRUE(co_await all.changed.waiting(lock, stop, is_ready));
    EXPECT_TRUE(co_await all.changed.waiting_for(lock, 1h, is_ready));
    EXPECT_TRUE(co_await all.changed.waiting_until(lock, end, is_ready));
    EXPECT_TRUE(co_await all.changed.waiting_for(lock, stop, 1h, is_ready));
    EXPECT_TRUE(co_await all.changed.waiting_until(lock, stop, end, is_ready));
    EXPECT_TRUE(lock.owns_lock());
    all.woken++;
    all.left++;
    thrum::this_thread::yield();
    EXPECT_EQ(all.left--, 1);
}

template <class Mutex>
void await_conditions() {
    Ready<Mutex> all;
    std::vector<thrum::future<void>> tasks;
    constexpr int kEach = 20;
    for (int i = 0; i < kEach; i++) {
        tasks.push_back(thrum::async(waits_plainly(all)));
        tasks.push_back(thrum::async(waits_until_ready(all, {})));
    }
    thrum::this_thread::sleep_for(100us);
    EXPECT_EQ(all.woken, 0);
    all.changed.notify_all(); // it is not ready
    all.make_ready();
    for (thrum::future<void> &task : tasks)
        task.get();
    EXPECT_EQ(all.woken, 2 * kEach);
}

TEST_P(HppAwaits, Conditions) {
    everywhere([] {
        await_conditions<thrum::mutex>();
        await_conditions<thrum::recursive_mutex>();
    });
}

thrum::task<int> waits_for_a_stop(Ready<thrum::mutex> &all, std::stop_token stop) {
    std::unique_lock lock = co_await thrum::locking(all.mutex);
    const auto never = [] { return false; };
    int sum = 0;
    sum += co_await all.changed.waiting(lock, stop, never) ? 0 : 1;
    EXPECT_TRUE(stop.stop_requested());
    sum += co_await all.changed.waiting_for(lock, stop, 1h, never) ? 0 : 1; // it was before
    try {
        co_await all.changed.waiting(lock, []() -> bool { throw Thrown(); });
    } catch (const Thrown &) {
        sum++;
    }
    int calls = 0;
    try {
        co_await all.changed.waiting_for(lock, 10us, [&calls]() -> bool {
            if (calls++ > 0)
                throw Thrown();
            return false;
        });
    } catch (const Thrown &) {
        sum++;
    }
    EXPECT_TRUE(lock.owns_lock());
    lock.unlock();
    try {
        co_await all.changed.waiting(lock);
    } catch (const std::system_error &error) {
        sum += error.code().value() == EPERM;
    }
    co_return sum;
}

TEST_P(HppAwaits, ConditionsUntilAStop) {
    everywhere([] {
        Ready<thrum::mutex> all;
        std::stop_source source;
        std::vector<thrum::future<int>> tasks;
        for (int i = 0; i < 20; i++)
            tasks.push_back(thrum::async(waits_for_a_stop(all, source.get_token())));
        thrum::this_thread::sleep_for(100us);
        source.request_stop();
        for (thrum::future<int> &task : tasks)
            EXPECT_EQ(task.get(), 5);
    });
}

// Where no thread can be created, the caller waits, as often as its predicate is false.
TEST_P(HppAwaits, ConditionsWithoutDescriptors) {
    Ready<thrum::mutex> all;
    std::atomic<int> looks{0};
    std::stop_source source;
    const auto waits = [](Ready<thrum::mutex> &on, std::atomic<int> &count,
                          std::stop_token stop) -> thrum::task<int> {
        std::unique_lock lock = co_await thrum::locking(on.mutex);
        const NoDescriptors none;
        co_await on.changed.waiting(lock, [&] { return ++count > 3; });
        const bool timed_out = !co_await on.changed.waiting_for(lock, 10us, [] { return false; });
        const bool stopped = !co_await on.changed.waiting(lock, stop, [&count] { return count++ < 0; });
        co_return timed_out + 2 * stopped + 4 * lock.owns_lock();
    };
    thrum::future<int> task = thrum::async(waits(all, looks, source.get_token()));
    EXPECT_TRUE(eventually([&] {
        all.changed.notify_all();
        return looks > 4; // it waits for the stop
    }));
    source.request_stop();
    EXPECT_EQ(task.get(), 7);
}

// Each step ends when all have arrived: threads, and tasks, some of which name a deadline, or are operands of others.
thrum::task<> takes_steps(thrum::barrier<> &step, std::atomic<int> &arrived, int steps, int all) {
    for (int i = 1; i <= steps; i++) {
        arrived++;
        if (i % 3 == 0)
            EXPECT_EQ(co_await thrum::awaiting_any_for(1h, thrum::stopping({}), step.arriving()), 1U);
        else
            co_await step.arriving();
        EXPECT_GE(arrived, i * all);
        co_await step.arriving();
    }
}

TEST_P(HppAwaits, Barriers) {
    everywhere([] {
        constexpr int kTasks = 12, kSteps = 10;
        thrum::barrier step(kTasks + 1);
        std::atomic<int> arrived{0};
        std::vector<thrum::future<void>> tasks;
        for (int i = 0; i < kTasks; i++)
            tasks.push_back(thrum::async(takes_steps(step, arrived, kSteps, kTasks + 1)));
        for (int i = 1; i <= kSteps; i++) {
            arrived++;
            if (i % 2 == 0)
                thrum::when_any(step.arriving());
            else
                step.arrive_and_wait();
            EXPECT_GE(arrived, i * (kTasks + 1));
            step.arrive_and_wait();
        }
        for (thrum::future<void> &task : tasks)
            task.get();
    });
}

// An arrival counts when the wait begins, even if that ends first; one that is switched off does not arrive.
TEST_P(HppAwaits, ArrivalsStay) {
    int phases = 0;
    auto step = std::make_unique<thrum::barrier<std::function<void()>>>(3, [&phases] { phases++; });
    EXPECT_FALSE(thrum::when_any_for(10us, thrum::only_if(false, step->arriving())));
    EXPECT_FALSE(thrum::when_any_for(10us, step->arriving()));
    const auto gives_up = [](thrum::barrier<std::function<void()>> &at,
                             std::stop_token stop) -> thrum::task<> {
        EXPECT_EQ(co_await thrum::awaiting_any(thrum::stopping(stop), at.arriving()), 0U);
    };
    std::stop_source source;
    thrum::future<void> task = thrum::async(gives_up(*step, source.get_token()));
    thrum::this_thread::sleep_for(100us);
    source.request_stop();
    task.get();
    EXPECT_EQ(phases, 0);
    thrum::when_any(step->arriving());
    EXPECT_EQ(phases, 1);
    step.reset();
}

// A thread that is cancelled before it could arrive has not arrived, and waits for no phase.
TEST_P(HppAwaits, ACancelledArrival) {
    thrum::event inside, go_on;
    std::atomic<int> phases{0};
    thrum::barrier step(1, [&] {
        if (phases++ == 0)
            inside.set(), go_on.wait();
    });
    thrum::thread first([&] { step.arrive_and_wait(); }); // its completion function has the barrier's mutex
    inside.wait();
    std::atomic<bool> passed{false};
    thrum::event begun;
    thrum::thread cancelled(thrum::attributes().cancellable_locks(), [&] {
        begun.set();
        thrum::when_any(step.arriving());
        passed = true;
    });
    begun.wait();
    cancelled.cancel();
    cancelled.join();
    EXPECT_FALSE(passed);
    go_on.set();
    first.join();
    EXPECT_EQ(phases, 1);
    step.arrive_and_wait();
    EXPECT_EQ(phases, 2);
}

// The last one gets what the completion function throws; the others pass.
TEST_P(HppAwaits, ABarrierThatThrows) {
    thrum::barrier step(2, [] { throw Thrown(); });
    const auto passes = [](auto &at) -> thrum::task<int> {
        try {
            co_await at.arriving();
        } catch (const Thrown &) {
            co_return 1;
        }
        co_return 0;
    };
    thrum::future<int> one = thrum::async(passes(step)), other = thrum::async(passes(step));
    EXPECT_EQ(one.get() + other.get(), 1);
}

thrum::task<int> sleep_twice() {
    const auto begin = std::chrono::steady_clock::now();
    co_await thrum::sleeping_for(1ms);
    co_await thrum::sleeping_until(std::chrono::steady_clock::now() + 1ms);
    co_await thrum::sleeping_for(-1s);
    co_await thrum::sleeping_until(std::chrono::steady_clock::time_point::min());
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 2ms);
    co_return 1;
}

using Other = std::chrono::system_clock;

thrum::task<int> until_by_another_clock(Ready<thrum::mutex> &all) {
    const auto never = [] { return false; };
    const auto end = Other::now() + 2ms;
    co_await thrum::sleeping_until(end);
    EXPECT_GE(Other::now() + 1ms, end) << "it may have been set back a little";
    co_await thrum::sleeping_until(Other::time_point::min());
    const thrum::event unset;
    EXPECT_FALSE(co_await thrum::awaiting_any_until(Other::now() + 1ms, unset));
    std::unique_lock lock = co_await thrum::locking(all.mutex);
    EXPECT_EQ(co_await all.never.waiting_until(lock, Other::now() + 1ms), std::cv_status::timeout);
    EXPECT_FALSE(co_await all.never.waiting_until(lock, Other::time_point::min(), never));
    EXPECT_FALSE(co_await all.never.waiting_until(lock, std::stop_token(), Other::now() + 1ms, never));
    co_return 1;
}

// Also what is not awaited.
TEST_P(HppAwaits, UntilByAnotherClock) {
    everywhere([] {
        Ready<thrum::mutex> all;
        EXPECT_EQ(thrum::async(until_by_another_clock(all)).get(), 1);
        thrum::scope endless(Other::time_point::max());
        endless.run([] {});
        endless.join();
        const auto end_in_time = [] {
            thrum::scope ended(Other::now() + 1ms);
            ended.run([] { thrum::this_thread::sleep_for(1h); });
            ended.join();
        };
        EXPECT_THROW(end_in_time(), std::system_error);
        thrum::event called;
        const thrum::scheduled_call call(Other::now() + 1ms, [&called] { called.set(); });
        called.wait();
        EXPECT_EQ(thrum::blocking_until(Other::now() + 1h, [] { return 7; }), 7);
    });
}

TEST_P(HppAwaits, Sleep) {
    everywhere([] {
        std::vector<thrum::future<int>> sleepers;
        for (int i = 0; i < 50; i++)
            sleepers.push_back(thrum::async(sleep_twice()));
        int sum = 0;
        for (auto &one : sleepers)
            sum += one.get();
        EXPECT_EQ(sum, 50);
    });
}

// A coroutine of another library, which knows no loop of tasks.
struct Foreign {
    struct promise_type {
        Foreign get_return_object() const noexcept { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() const { std::terminate(); }
    };
};

TEST_P(HppAwaits, ByAForeignCoroutine) {
    thrum::event event, over;
    const auto run = [](thrum::event &awaited, thrum::event &end) -> Foreign {
        co_await awaited;
        co_await thrum::sleeping_for(10us);
        end.set();
    };
    run(event, over);
    EXPECT_FALSE(over.is_set());
    event.set();
    over.wait();
}

ULT_OVER_WORKERS(HppConditionAny);
ULT_OVER_WORKERS(HppAwaits);

} // namespace
