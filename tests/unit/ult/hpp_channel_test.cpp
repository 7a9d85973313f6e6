// SPDX-License-Identifier: Apache-2.0
//
// thrum::channel, when_any, pools, schedulers and executors.
#include <array>
#include <memory>
#include <numeric>
#include <ranges>
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

// Bytes, and a pointer to what cannot be assigned.
TEST_P(HppChannel, WhatIsNotSentIsStillTheSenders) {
    struct Constant {
        explicit Constant(int value) : held(std::make_unique<int>(value)) {}
        Constant(Constant &&) = default;
        std::unique_ptr<int> held;
        const int after = 5;
    };
    everywhere([] {
        thrum::channel<std::unique_ptr<int>> channel(1);
        auto first = std::make_unique<int>(1), second = std::make_unique<int>(2);
        EXPECT_TRUE(channel.try_send(std::move(first)));
        EXPECT_EQ(first, nullptr);
        const int *place = second.get();
        EXPECT_FALSE(channel.try_send(std::move(second)));
        EXPECT_EQ(second.get(), place);
        EXPECT_FALSE(channel.send_for(std::move(second), 1ms));
        EXPECT_EQ(second.get(), place);
        EXPECT_FALSE(channel.send_until(std::move(second), std::chrono::system_clock::now() + 1ms));
        EXPECT_EQ(second.get(), place);
        channel.close();
        EXPECT_FALSE(channel.send(std::move(second)));
        EXPECT_EQ(second.get(), place);
        thrum::channel<Constant> constants;
        Constant constant(6);
        EXPECT_FALSE(constants.try_send(std::move(constant)));
        EXPECT_EQ(*constant.held + constant.after, 11);
        thrum::channel<int> numbers;
        int number = 7;
        EXPECT_FALSE(numbers.try_send(std::move(number)));
        EXPECT_FALSE(numbers.try_send(number));
        EXPECT_EQ(number, 7);
    });
}

// Its thread ends while it waits.
TEST_P(HppChannel, WhatIsNotSentIsStillThereWhereItsThreadIsCancelled) {
    auto value = std::make_unique<int>(3);
    thrum::channel<std::unique_ptr<int>> nobody;
    std::atomic<bool> begun{false};
    thrum::thread sends(thrum::attributes().cancellable(), [&] {
        begun = true;
        nobody.send(std::move(value));
    });
    EXPECT_TRUE(eventually([&] { return begun.load(); }));
    thrum_cancel(sends.native_handle());
    sends.join();
    ASSERT_NE(value, nullptr);
    EXPECT_EQ(*value, 3);
}

TEST_P(HppChannel, WaitsUntil) {
    everywhere([] {
        const auto soon = [] { return std::chrono::steady_clock::now() + 2ms; };
        thrum::channel<std::string> one(1);
        EXPECT_FALSE(one.receive_until(soon()));
        EXPECT_FALSE(one.receive_until(std::chrono::system_clock::now() + 2ms));
        EXPECT_TRUE(one.send_until("first", soon()));
        const std::string copied = "second";
        EXPECT_FALSE(one.send_until(copied, soon()));
        EXPECT_EQ(one.receive_until(soon()), "first");
        EXPECT_TRUE(one.send_for(copied, 1h));
        EXPECT_EQ(one.receive(), "second");
        EXPECT_EQ(copied, "second");
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

TEST_P(HppChannel, ClosingEndsSenders) {
    everywhere([] {
        thrum::channel<Counted> nobody;
        thrum::thread sends([&] { EXPECT_FALSE(nobody.send(Counted())); });
        thrum::this_thread::yield();
        nobody.close();
    });
}

#if !defined(__clang__) || __clang_major__ >= 16 // before, it cannot compile libstdc++'s views
// As many as are asked for, and not one more.
TEST_P(HppChannel, ARangeReceivesWhatItIsAskedFor) {
    static_assert(std::ranges::input_range<thrum::channel<std::unique_ptr<int>>>);
    struct Constant { // cannot be assigned
        const int value;
    };
    static_assert(std::ranges::input_range<thrum::channel<Constant>>);
    everywhere([] {
        thrum::channel<Counted> channel(8);
        for (int i = 0; i < 6; i++)
            channel.send(Counted(i));
        int next = 0;
        for (const Counted &one : channel | std::views::take(4))
            EXPECT_EQ(one.value(), next++);
        EXPECT_EQ(next, 4);
        EXPECT_EQ(channel.size(), 2U);
        auto at = channel.begin();
        EXPECT_EQ(channel.size(), 2U);
        ++at; // the first, which nothing looked at, is passed over
        EXPECT_EQ(channel.size(), 1U);
        EXPECT_EQ((*at).value(), 5);
        EXPECT_EQ((*at).value(), 5);
        ++at;
        EXPECT_EQ(Counted::alive, 0) << "what was passed is destroyed before the next is waited for";
        channel.close();
        EXPECT_TRUE(at == channel.end());
    });
}

// What it holds when the range begins is not the range's length.
TEST_P(HppChannel, ARangeWaitsForWhatIsNotThereYet) {
    static_assert(!std::ranges::sized_range<thrum::channel<int>> &&
                  !std::ranges::sized_range<thrum::channel<int> &>);
    everywhere([] {
        thrum::channel<int> channel;
        thrum::thread sender([&channel] {
            for (int i = 0; channel.send(i); i++)
                continue;
        });
        int next = 0;
        for (const int one : channel | std::views::take(4))
            EXPECT_EQ(one, next++);
        EXPECT_EQ(next, 4);
        channel.close();
        sender.join();
    });
}
#endif

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

TEST_P(HppWhenAny, Sends) {
    everywhere([] {
        thrum::channel<std::unique_ptr<int>> full(1);
        thrum::event event;
        std::optional<std::unique_ptr<int>> value = std::make_unique<int>(8), other;
        EXPECT_EQ(thrum::when_any(event, full.sending(value)), 1U);
        EXPECT_FALSE(value);
        value = std::make_unique<int>(9);
        const int *place = value->get();
        EXPECT_FALSE(thrum::when_any_for(1ms, event, full.sending(value)));
        ASSERT_TRUE(value);
        EXPECT_EQ(value->get(), place);
        event.set();
        EXPECT_EQ(thrum::when_any(event, full.sending(value)), 0U);
        EXPECT_EQ(value->get(), place);
        event.reset();
        thrum::thread receives([&] { EXPECT_EQ(**full.receive(), 8); });
        EXPECT_EQ(thrum::when_any(full.sending(value), event), 0U);
        EXPECT_FALSE(value);
        receives.join();
        value = std::make_unique<int>(10);
        full.close();
        EXPECT_EQ(thrum::when_any(full.sending(value), event), 0U);
        ASSERT_TRUE(value) << "it is closed";
        EXPECT_EQ(**value, 10);
        EXPECT_THROW(thrum::when_any(full.sending(other)), std::bad_optional_access);
    });
}

TEST_P(HppWhenAny, Joins) {
    everywhere([] {
        thrum::event never, go;
        thrum::thread first([&] { go.wait(); }), none;
        EXPECT_FALSE(thrum::when_any_for(1ms, never, first));
        EXPECT_TRUE(first.joinable());
        go.set();
        EXPECT_EQ(thrum::when_any(never, first), 1U);
        EXPECT_FALSE(first.joinable());
        EXPECT_THROW(thrum::when_any(never, none), std::system_error);
        std::vector<thrum::thread> threads;
        for (int i = 0; i < 10; i++)
            threads.emplace_back([] { thrum::this_thread::yield(); });
        while (!threads.empty()) {
            const auto which = thrum::when_any(std::span(threads));
            EXPECT_FALSE(threads[which].joinable());
            threads.erase(threads.begin() + static_cast<long>(which));
        }
    });
}

TEST_P(HppWhenAny, NoLongerThanUntil) {
    everywhere([] {
        thrum::event one;
        std::array<thrum::event, 3> more;
        const auto end = std::chrono::steady_clock::now() + 2ms;
        EXPECT_FALSE(thrum::when_any_until(end, one));
        EXPECT_GE(std::chrono::steady_clock::now(), end);
        EXPECT_FALSE(thrum::when_any_until(std::chrono::system_clock::now() + 2ms, one));
        EXPECT_FALSE(thrum::when_any_for(1ms, std::span(more)));
        EXPECT_FALSE(thrum::when_any_until(std::chrono::system_clock::now() + 1ms, std::span(more)));
        more[2].set();
        EXPECT_EQ(thrum::when_any_for(1h, std::span(more)), 2U);
        EXPECT_EQ(thrum::when_any_until(end, std::span(more)), 2U) << "it is ready";
        EXPECT_EQ(thrum::when_any_until(end, one, more[2]), 1U);
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

// --- what is offered to several ---------------------------------------------------------------------------

// Knows where it is, and whether it has been moved away.
class Located {
  public:
    explicit Located(int value = -1) : value_(value), self_(this) {}
    Located(Located &&other) noexcept : value_(other.value_), self_(this) { other.value_ = -1; }
    Located &operator=(Located &&other) noexcept {
        value_ = std::exchange(other.value_, -1);
        return *this;
    }
    int value() const { return self_ == this ? value_ : -2; }

  private:
    int value_;
    Located *self_;
    Counted counted_;
};

// The same, but cannot be assigned.
struct Unassignable {
    explicit Unassignable(int value) : located(value) {}
    Unassignable(Unassignable &&) = default;
    Located located;
    const int after = 5;
};
struct Ticket { // move-only, and bytes
    explicit Ticket(int value) : number(value) {}
    Ticket(const Ticket &) = delete;
    Ticket(Ticket &&) = default;
    Ticket &operator=(Ticket &&) = default;
    int number;
};
int value_of(const std::unique_ptr<int> &pointer) {
    return pointer == nullptr ? -1 : *pointer;
}
int value_of(const Located &one) {
    return one.value();
}
int value_of(const Unassignable &one) {
    return one.located.value() + one.after - 5;
}
int value_of(const Ticket &one) {
    return one.number;
}
int value_of(int one) {
    return one;
}

template <class T>
T make(int value) {
    if constexpr (std::is_same_v<T, std::unique_ptr<int>>)
        return std::make_unique<int>(value);
    else
        return T(value);
}

template <class Body>
void of_all_kinds(const Body &body) {
    everywhere([&body] {
        body.template operator()<int>();
        body.template operator()<std::unique_ptr<int>>();
        body.template operator()<Located>();
        body.template operator()<Unassignable>();
        body.template operator()<Ticket>();
    });
}

TEST_P(HppWhenAny, SendsToTheOneThatHasRoom) {
    of_all_kinds([]<class T>() {
        for (std::size_t room = 0; room < 3; room++) {
            std::array<thrum::channel<T>, 3> to{thrum::channel<T>(1), thrum::channel<T>(1),
                                                thrum::channel<T>(1)};
            for (std::size_t i = 0; i < 3; i++)
                if (i != room)
                    to[i].send(make<T>(1));
            std::optional<T> value(make<T>(7));
            EXPECT_EQ(thrum::when_any(to[0].sending(value), to[1].sending(value), to[2].sending(value)),
                      room);
            EXPECT_FALSE(value);
            for (std::size_t i = 0; i < 3; i++) {
                EXPECT_EQ(value_of(*to[i].try_receive()), i == room ? 7 : 1);
                EXPECT_FALSE(to[i].try_receive()) << "it was sent once";
            }
        }
    });
}

// The other end takes it while this one waits; the same channel may be named twice.
TEST_P(HppWhenAny, SendsToTheOneThatReceives) {
    of_all_kinds([]<class T>() {
        thrum::channel<T> nobody, receives;
        std::optional<T> value(make<T>(8));
        thrum::thread receiver([&] { EXPECT_EQ(value_of(*receives.receive()), 8); });
        EXPECT_GE(thrum::when_any(nobody.sending(value), receives.sending(value), receives.sending(value)),
                  1U);
        EXPECT_FALSE(value);
    });
}

TEST_P(HppWhenAny, WhatIsNotSentIsBackInTheSameExpression) {
    of_all_kinds([]<class T>() {
        thrum::channel<T> a, b(1);
        thrum::event ready;
        b.send(make<T>(1));
        std::optional<T> value(make<T>(9));
        const auto is_there = [&value] { return value && value_of(*value) == 9; };
        EXPECT_TRUE(!thrum::when_any_for(1us, a.sending(value), b.sending(value)) && is_there());
        EXPECT_TRUE(!thrum::when_any_until(std::chrono::system_clock::now(), b.sending(value)) && is_there());
        ready.set();
        EXPECT_TRUE(thrum::when_any(a.sending(value), b.sending(value), ready) == 2 && is_there());
        EXPECT_TRUE(thrum::when_any(ready, a.sending(value)) == 0 && is_there());
        thrum::future<int> none;
        EXPECT_THROW(thrum::when_any(a.sending(value), none), thrum::future_error);
        EXPECT_TRUE(is_there());
        a.close();
        EXPECT_TRUE(thrum::when_any(b.sending(value), a.sending(value)) == 1 && is_there());
        // What is received may come in the place of what was offered.
        EXPECT_EQ(thrum::when_any(b.sending(value), b.receiving(value)), 1U);
        EXPECT_EQ(value_of(value.value()), 1);
    });
}

TEST_P(HppWhenAny, SendsOneOfASpan) {
    of_all_kinds([]<class T>() {
        thrum::channel<T> a, b(1), c(1);
        std::optional<T> value(make<T>(3)), other(make<T>(4));
        std::vector<typename thrum::channel<T>::sending_t> each{a.sending(value), b.sending(value),
                                                                c.sending(other)};
        EXPECT_EQ(thrum::when_any(std::span(each)), 1U);
        EXPECT_FALSE(value);
        EXPECT_EQ(value_of(*other), 4);
        EXPECT_EQ(value_of(*b.receive()), 3);
        value.emplace(make<T>(5)); // they may be used again
        EXPECT_EQ(thrum::when_any(std::span(each)), 1U);
        EXPECT_EQ(thrum::when_any_for(1h, std::span(each).last(1)), 0U);
        EXPECT_FALSE(other);
        other.emplace(make<T>(6));
        value.emplace(make<T>(7));
        EXPECT_FALSE(thrum::when_any_for(1us, std::span(each)));
        EXPECT_EQ(value_of(*value) + value_of(*other), 13);
    });
}

TEST_P(HppWhenAny, WhatIsOfferedIsThereWhereItsThreadIsCancelled) {
    std::optional<Located> value(6);
    thrum::channel<Located> a, b;
    std::atomic<bool> begun{false};
    thrum::thread offers(thrum::attributes().cancellable(), [&] {
        begun = true;
        thrum::when_any(a.sending(value), b.sending(value));
    });
    EXPECT_TRUE(eventually([&] { return begun.load(); }));
    thrum_cancel(offers.native_handle());
    offers.join();
    ASSERT_TRUE(value);
    EXPECT_EQ(value->value(), 6);
}

// Many offer the same numbers to two; each arrives once.
TEST_P(HppWhenAny, EachOfferArrivesOnce) {
    const int each = 400 / kStressDivisor;
    thrum::channel<std::unique_ptr<int>> a, b(1);
    std::atomic<long> sum{0};
    std::vector<thrum::thread> receivers;
    for (auto *channel : {&a, &b})
        receivers.emplace_back([&sum, channel] {
            for (const std::unique_ptr<int> &one : *channel)
                sum += *one;
        });
    {
        std::vector<thrum::thread> senders;
        for (int i = 0; i < 3; i++)
            senders.emplace_back([&] {
                for (int k = 0; k < each; k++) {
                    std::optional<std::unique_ptr<int>> value(std::make_unique<int>(k));
                    thrum::when_any(a.sending(value), b.sending(value));
                    EXPECT_FALSE(value);
                }
            });
    }
    a.close(), b.close();
    receivers.clear();
    EXPECT_EQ(sum, 3L * each * (each - 1) / 2);
}

// --- values that throw where they are moved ---------------------------------------------------------------

class Fragile {
  public:
    explicit Fragile(int value) : value_(value) {}
    Fragile(Fragile &&other) : value_(other.value_), counted_(std::move(other.counted_)) { moved(); }
    Fragile &operator=(Fragile &&other) {
        moved();
        value_ = other.value_;
        return *this;
    }
    int value() const { return value_; }

    static inline int good_moves = -1; // before one throws; -1: none does. Of one thread at a time.

  private:
    static void moved() {
        if (good_moves >= 0 && good_moves-- == 0)
            throw Thrown();
    }

    int value_;
    Counted counted_;
};

// Throws in each of the moves that `action` makes, one after the other, until it makes no more.
template <class Action>
void throwing_at_each_move(const Action &action) {
    for (int good = 0;; good++) {
        Fragile::good_moves = good;
        bool has_thrown = false;
        try {
            action();
        } catch (const Thrown &) {
            has_thrown = true;
        }
        const bool is_over = Fragile::good_moves >= 0;
        Fragile::good_moves = -1;
        if (is_over)
            return;
        EXPECT_TRUE(has_thrown) << "at move " << good;
    }
}

TEST_P(HppWhenAny, ValuesThatThrowAreNotSentTwiceNorLeaked) {
    everywhere([] {
        for (const bool has_room : {true, false}) {
            throwing_at_each_move([has_room] {
                thrum::channel<Fragile> a, b(1);
                std::optional<Fragile> value(std::in_place, 4);
                if (!has_room)
                    b.send(Fragile(1));
                bool is_sent = false;
                try {
                    is_sent = thrum::when_any_for(1us, a.sending(value), b.sending(value)).has_value();
                } catch (const Thrown &) {
                    EXPECT_EQ(b.size(), has_room ? 0U : 1U) << "it throws before it is sent";
                    throw;
                }
                EXPECT_EQ(is_sent, has_room);
                EXPECT_EQ(value.has_value(), !has_room);
            });
        }
        throwing_at_each_move([] {
            thrum::channel<Fragile> channel(1);
            std::optional<Fragile> value(std::in_place, 4), received;
            try {
                thrum::when_any(channel.sending(value));
                thrum::when_any(channel.receiving(received));
                EXPECT_EQ(received->value(), 4);
            } catch (const Thrown &) {
                EXPECT_FALSE(received);
                EXPECT_EQ(channel.size(), 0U);
                throw;
            }
        });
    });
}

TEST_P(HppWhenAny, ChannelsSurviveValuesThatThrow) {
    everywhere([] {
        throwing_at_each_move([] {
            thrum::channel<Fragile> channel(1);
            channel.send(Fragile(1));
            Fragile more(2);
            EXPECT_FALSE(channel.try_send(std::move(more)));
            EXPECT_FALSE(channel.send_for(std::move(more), 1us));
            EXPECT_EQ(channel.receive()->value(), 1);
        });
        throwing_at_each_move([] {
            thrum::promise<Fragile> promise;
            thrum::future<Fragile> future = promise.get_future();
            promise.set_value(Fragile(1));
            EXPECT_EQ(thrum::when_any(future), 0U);
            EXPECT_EQ(future.get().value(), 1);
        });
        throwing_at_each_move([] {
            thrum::future<Fragile> future = thrum::async([] { return Fragile(2); });
            EXPECT_EQ(thrum::when_any(future), 0U);
            EXPECT_EQ(future.get().value(), 2);
        });
    });
}

ULT_OVER_WORKERS(HppWhenAny);

class HppExecutor : public Hpp {};
// Of detached threads one might be preempted in its last steps, and be lost with its pool.
class HppExecutorInTurn : public UltInTurn {};

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

TEST_P(HppExecutorInTurn, OverAPool) {
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
ULT_OVER_WORKERS(HppExecutorInTurn);

} // namespace
