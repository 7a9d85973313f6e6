// SPDX-License-Identifier: Apache-2.0
//
// thrum::channel, when_any, pools, schedulers and executors.
#include <numeric>
#include <string>

#include "hpp.hpp"

namespace {

class HppChannel : public Hpp {};

template <class T, class Make, class Value>
void through(std::size_t capacity, Make make, Value value) {
    constexpr int kSenders = 3;
    const int each = 300 / kStressDivisor;
    thrum::channel<T> channel(capacity);
    std::atomic<long> sum{0};
    std::vector<thrum::thread> receivers;
    for (int i = 0; i < 2; i++)
        receivers.emplace_back([&] {
            for (T &one : channel)
                sum += value(one);
        });
    {
        std::vector<thrum::thread> senders;
        for (int i = 0; i < kSenders; i++)
            senders.emplace_back([&] {
                for (int k = 0; k < each; k++)
                    EXPECT_TRUE(channel.send(make(k)));
            });
    }
    EXPECT_FALSE(channel.closed());
    EXPECT_TRUE(channel.close());
    receivers.clear();
    EXPECT_EQ(sum, kSenders * (each * (each - 1) / 2));
    EXPECT_FALSE(channel.send(make(0)));
    EXPECT_FALSE(channel.close());
    EXPECT_TRUE(channel.closed());
    EXPECT_FALSE(channel.receive());
}

TEST_P(HppChannel, CarriesAllKinds) {
    for (const std::size_t capacity : {std::size_t{0}, std::size_t{1}, std::size_t{16}, thrum::unbounded})
        everywhere([capacity] {
            through<int>(
                capacity, [](int i) { return i; }, [](int i) { return i; });
            through<Counted>(
                capacity, [](int i) { return Counted(i); }, [](Counted &one) { return one.value(); });
            through<std::string>(
                capacity, [](int i) { return std::string(30 + static_cast<std::size_t>(i), '0'); },
                [](std::string &text) { return static_cast<long>(text.size()) - 30; });
            struct Large {
                std::array<long, 20> numbers;
            };
            through<Large>(
                capacity, [](int i) { return Large{{i}}; },
                [](Large &one) { return std::accumulate(one.numbers.begin(), one.numbers.end(), 0L); });
        });
}

TEST_P(HppChannel, IsNotLargerThanMemory) {
    EXPECT_THROW(thrum::channel<long>(std::size_t{1} << 61), std::bad_array_new_length);
}

TEST_P(HppChannel, TriesAndWaitsNoLongerThan) {
    everywhere([] {
        thrum::channel<Counted> one(1);
        EXPECT_FALSE(one.try_receive());
        EXPECT_FALSE(one.receive_for(1ms));
        EXPECT_TRUE(one.try_send(Counted(1)));
        EXPECT_FALSE(one.try_send(Counted(2)));
        EXPECT_FALSE(one.send_for(Counted(3), 1ms));
        EXPECT_EQ(one.size(), 1U);
        EXPECT_EQ(one.receive_for(1h)->value(), 1);
        EXPECT_TRUE(one.send_for(Counted(4), 1h));
        EXPECT_EQ(one.try_receive()->value(), 4);
    });
}

TEST_P(HppChannel, WhatIsLeftIsDestroyed) {
    for (const std::size_t capacity : {std::size_t{4}, thrum::unbounded}) {
        thrum::channel<Counted> channel(capacity);
        for (int i = 0; i < 4; i++)
            channel.send(Counted(i));
        EXPECT_EQ(Counted::alive, 4);
    }
    EXPECT_EQ(Counted::alive, 0);
}

TEST_P(HppChannel, ClosingEndsWhoSends) {
    everywhere([] {
        thrum::channel<Counted> nobody;
        thrum::thread sends([&] { EXPECT_FALSE(nobody.send(Counted())); });
        thrum::this_thread::yield();
        nobody.close();
    });
}

ULT_OVER_WORKERS(HppChannel);

class HppWhenAny : public Hpp {};

TEST_P(HppWhenAny, OfFuturesAndChannels) {
    everywhere([] {
        thrum::promise<int> promise;
        thrum::future<int> future = promise.get_future();
        thrum::channel<Counted> channel(2);
        std::optional<Counted> received;
        EXPECT_FALSE(thrum::when_any_for(1ms, future, channel.receiving(received)));
        thrum::thread sends([&] { channel.send(Counted(6)); });
        EXPECT_EQ(thrum::when_any(future, channel.receiving(received)), 1U);
        ASSERT_TRUE(received);
        EXPECT_EQ(received->value(), 6);
        promise.set_value(4);
        EXPECT_EQ(thrum::when_any(channel.receiving(received), future), 1U);
        EXPECT_EQ(future.get(), 4);
        channel.close();
        EXPECT_EQ(thrum::when_any_for(1h, channel.receiving(received)), 0U);
        EXPECT_FALSE(received);
        EXPECT_THROW(thrum::when_any(future), thrum::future_error);
    });
}

TEST_P(HppWhenAny, OfTheOthers) {
    everywhere([] {
        thrum::event event;
        thrum::latch latch(1);
        thrum::counting_semaphore permits(0);
        thrum::thread releases([&] { permits.release(); });
        EXPECT_EQ(thrum::when_any(event, latch, permits), 2U);
        EXPECT_FALSE(permits.try_acquire()); // taken
        releases = thrum::thread([&] { latch.count_down(); });
        EXPECT_EQ(thrum::when_any(event, latch, permits), 1U);
        event.set();
        EXPECT_EQ(thrum::when_any(event, latch, permits), 0U);
    });
}

TEST_P(HppWhenAny, OfManyFutures) {
    everywhere([] {
        std::vector<thrum::promise<std::size_t>> promises(20);
        std::vector<thrum::future<std::size_t>> futures;
        for (auto &promise : promises)
            futures.push_back(promise.get_future());
        for (const std::size_t next : {7U, 0U, 19U}) {
            thrum::thread sets([&] { promises[next].set_value(next); });
            const std::size_t which = thrum::when_any(std::span(futures));
            EXPECT_EQ(futures[which].get(), next);
            thrum::promise<std::size_t> another; // it is used up
            futures[which] = another.get_future();
            sets.join();
            promises[which] = std::move(another);
        }
        EXPECT_THROW(thrum::when_any(std::span<thrum::future<int>>()), std::system_error);
    });
}

ULT_OVER_WORKERS(HppWhenAny);

class HppExecutor : public Hpp {};

TEST_P(HppExecutor, RunsEachOnAThread) {
    everywhere([] {
        const thrum::executor executor;
        thrum::latch done(20);
        for (int i = 0; i < 20; i++)
            executor.execute([&done, held = Counted(i)] {
                EXPECT_NE(thrum_self(), nullptr);
                done.count_down();
            });
        done.wait();
        EXPECT_EQ(executor, thrum::executor());
    });
}

TEST_P(HppExecutor, OverAPool) {
    thrum::pool urgent, later;
    std::vector<int> order; // one worker runs them
    thrum::latch done(20);
    const thrum::executor first(urgent), second(later);
    EXPECT_NE(first, second);
    for (int i = 0; i < 10; i++) {
        second.execute([&] { order.push_back(2), done.count_down(); });
        first.execute([&] { order.push_back(1), done.count_down(); });
    }
    EXPECT_EQ(urgent.size() + later.size(), 20U);
    thrum::scheduler scheduler(
        [&] {
            const thrum_t thread = urgent.pop();
            return thread != nullptr ? thread : later.pop();
        },
        urgent, later);
    scheduler.run_on(workers() - 1);
    EXPECT_THROW(scheduler.run_on(1000), std::system_error);
    done.wait();
    ASSERT_EQ(order.size(), 20U);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

ULT_OVER_WORKERS(HppExecutor);

} // namespace
