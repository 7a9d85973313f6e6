// SPDX-License-Identifier: Apache-2.0
//
// Tasks that await channels, locks and the like have no thread meanwhile; and what they await is theirs when they resume.
#include <array>
#include <deque>
#include <memory>
#include <shared_mutex>
#include <vector>

#include "hpp.hpp"

namespace {

class HppWaits : public Hpp {};

thrum::task<> add_up(thrum::channel<Counted> &numbers, thrum::mutex &mutex, long &sum) {
    std::optional<Counted> number;
    while (co_await numbers.receiving(number), number) {
        const std::unique_lock lock = co_await thrum::locking(mutex);
        sum += number->value();
    }
}

TEST_P(HppWaits, ManyReceiversOfOneChannel) {
    constexpr int kTasks = 200 / kStressDivisor, kSent = 4000 / kStressDivisor;
    everywhere([] {
        thrum::channel<Counted> numbers;
        thrum::mutex mutex;
        long sum = 0;
        std::deque<thrum::future<void>> tasks;
        for (int i = 0; i < kTasks; i++)
            tasks.push_back(thrum::async(add_up(numbers, mutex, sum)));
        for (int i = 0; i < kSent; i++)
            numbers.send(Counted(i));
        numbers.close();
        for (thrum::future<void> &task : tasks)
            task.get();
        EXPECT_EQ(sum, long{kSent} * (kSent - 1) / 2);
    });
}

// The value is taken when the operation wins, and else comes back.
thrum::task<std::size_t> sends(std::array<thrum::channel<std::unique_ptr<int>>, 2> &to,
                               std::optional<std::unique_ptr<int>> &value, std::stop_token stop) {
    co_return co_await thrum::awaiting_any(to[0].sending(value), thrum::stopping(stop), to[1].sending(value));
}

TEST_P(HppWaits, OneOfSeveralSendsTheValue) {
    everywhere([] {
        std::array<thrum::channel<std::unique_ptr<int>>, 2> to;
        for (const std::size_t receives : {0U, 1U, 2U}) {
            std::stop_source source;
            std::optional<std::unique_ptr<int>> value(std::make_unique<int>(7));
            thrum::future<std::size_t> which = thrum::async(sends(to, value, source.get_token()));
            EXPECT_EQ(which.wait_for(1ms), thrum::future_status::timeout);
            if (receives == 1)
                source.request_stop();
            else
                EXPECT_EQ(**to[receives / 2].receive(), 7);
            EXPECT_EQ(which.get(), receives);
            EXPECT_EQ(value.has_value(), receives == 1);
            if (value) {
                EXPECT_EQ(**value, 7);
            }
        }
    });
}

thrum::task<bool> is_set_in_time(thrum::event &event, std::chrono::nanoseconds span) {
    const auto which = co_await thrum::awaiting_any_for(span, event);
    const auto end = std::chrono::steady_clock::now() + span;
    const auto again = co_await thrum::awaiting_any_until(end, thrum::only_if(true, event));
    if (which != again)
        throw Thrown();
    co_return which.has_value();
}

TEST_P(HppWaits, ADeadlineEndsThem) {
    everywhere([] {
        thrum::event event;
        for (const std::chrono::nanoseconds span : {0ns, 2000000ns, std::chrono::nanoseconds::min()})
            EXPECT_FALSE(thrum::async(is_set_in_time(event, span)).get());
        thrum::future<bool> waits = thrum::async(is_set_in_time(event, 1h));
        thrum::this_thread::yield();
        event.set();
        EXPECT_TRUE(waits.get());
    });
}

// The lock belongs to the thread on which the task continues, which a debug build of the library checks.
template <class Mutex>
thrum::task<> locks(Mutex &mutex, thrum::channel<int> &numbers, int rounds, int &sum) {
    for (int i = 0; i < rounds; i++) {
        const std::optional<int> number = co_await [](auto &from) -> thrum::task<std::optional<int>> {
            std::optional<int> received;
            co_await from.receiving(received);
            co_return received;
        }(numbers);
        const std::unique_lock lock = co_await thrum::locking(mutex);
        sum += number.value_or(0);
        thrum::this_thread::yield();
    }
}

template <class Mutex>
void lock_by_tasks() {
    constexpr int kTasks = 8, kRounds = 20;
    Mutex mutex;
    thrum::channel<int> numbers(4);
    int sum = 0;
    std::deque<thrum::future<void>> tasks;
    {
        const std::lock_guard lock(mutex);
        for (int i = 0; i < kTasks; i++)
            tasks.push_back(thrum::async(locks(mutex, numbers, kRounds, sum)));
        for (int i = 0; i < kTasks; i++)
            numbers.send(1);
        thrum::this_thread::sleep_for(1ms);
        EXPECT_EQ(sum, 0);
    }
    for (int i = 0; i < kTasks * (kRounds - 1); i++)
        numbers.send(1);
    for (thrum::future<void> &task : tasks)
        task.get();
    EXPECT_EQ(sum, kTasks * kRounds);
    EXPECT_TRUE(mutex.try_lock());
    mutex.unlock();
}

TEST_P(HppWaits, LocksBelongToThem) {
    everywhere([] {
        lock_by_tasks<thrum::mutex>();
        lock_by_tasks<thrum::recursive_mutex>();
        lock_by_tasks<thrum::shared_mutex>();
    });
}

thrum::task<int> reads(thrum::shared_mutex &mutex, int &value) {
    const std::shared_lock lock = co_await thrum::locking_shared(mutex);
    co_return value;
}

TEST_P(HppWaits, ReadersLockTogether) {
    everywhere([] {
        thrum::shared_mutex mutex;
        int value = 0;
        std::deque<thrum::future<int>> readers;
        mutex.lock();
        for (int i = 0; i < 5; i++)
            readers.push_back(thrum::async(reads(mutex, value)));
        EXPECT_EQ(readers.front().wait_for(1ms), thrum::future_status::timeout);
        value = 3;
        mutex.unlock();
        const std::shared_lock lock(mutex);
        for (thrum::future<int> &reader : readers)
            EXPECT_EQ(reader.get(), 3);
    });
}

// What an operand throws is thrown where the task awaits it.
thrum::task<int> joins(thrum::thread &thread) {
    try {
        co_await thread;
    } catch (const Thrown &) {
        co_return 1;
    }
    co_return 0;
}

TEST_P(HppWaits, AThreadsExceptionIsRethrown) {
    everywhere([] {
        thrum::event go;
        thrum::thread throws([&go] {
            go.wait();
            throw Thrown();
        });
        thrum::future<int> joined = thrum::async(joins(throws));
        EXPECT_EQ(joined.wait_for(1ms), thrum::future_status::timeout);
        go.set();
        EXPECT_EQ(joined.get(), 1);
        EXPECT_FALSE(throws.joinable());
    });
}

// A coroutine of another library awaits them too.
Fire foreign(thrum::binary_semaphore &go, thrum::channel<int> &numbers, thrum::promise<int> result) {
    co_await go;
    std::optional<int> one, two;
    co_await numbers.receiving(one);
    const std::size_t which = co_await thrum::awaiting_any(go, numbers.receiving(two));
    result.set_value(*one + *two + static_cast<int>(which));
}

TEST_P(HppWaits, AForeignCoroutineAwaitsThem) {
    everywhere([] {
        thrum::binary_semaphore go(0);
        thrum::channel<int> numbers;
        thrum::promise<int> result;
        thrum::future<int> sum = result.get_future();
        foreign(go, numbers, std::move(result));
        EXPECT_FALSE(sum.is_ready());
        go.release();
        numbers.send(20);
        numbers.send(21);
        EXPECT_EQ(sum.get(), 42);
    });
}

ULT_OVER_WORKERS(HppWaits);

} // namespace
