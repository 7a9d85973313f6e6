// SPDX-License-Identifier: Apache-2.0
//
// Tasks that go on with each other without piling up on the stack, where the compiler makes no jumps of calls: this file
// is compiled with -O0. And tasks that await what is not the library's.
#include <atomic>
#include <deque>
#include <vector>

#include "hpp.hpp"

namespace {

class HppAwait : public Hpp {};

// Of this file alone, so that no other file's instantiation, which is optimised, is taken for it.
struct Number {
    long value;
};

thrum::task<Number> ready(long value) {
    co_return Number{value};
}

thrum::task<Number> sum_of_ready(long count) {
    Number sum{0};
    for (long i = 0; i < count; i++)
        sum.value += (co_await ready(i)).value;
    co_return sum;
}

TEST_P(HppAwait, AMillionThatAreReady) {
    const long count = 1000000 / kStressDivisor;
    EXPECT_EQ(thrum::async(sum_of_ready(count)).get().value, count * (count - 1) / 2);
}

thrum::task<Number> sum_of_ready_futures(long count) {
    Number sum{0};
    for (long i = 0; i < count; i++) {
        thrum::promise<Number> promise;
        promise.set_value(Number{i});
        sum.value += (co_await promise.get_future()).value;
    }
    co_return sum;
}

TEST_P(HppAwait, AMillionFuturesThatAreReady) {
    const long count = 1000000 / kStressDivisor;
    EXPECT_EQ(thrum::async(sum_of_ready_futures(count)).get().value, count * (count - 1) / 2);
}

thrum::task<Number> depth(long levels) {
    if (levels == 0)
        co_return Number{0};
    co_return Number{(co_await depth(levels - 1)).value + 1};
}

// The innermost waits, so that they all come back on another thread, in another loop.
thrum::task<Number> depth_that_waits(long levels, thrum::future<void> last) {
    if (levels == 0) {
        co_await last;
        co_return Number{0};
    }
    co_return Number{(co_await depth_that_waits(levels - 1, std::move(last))).value + 1};
}

TEST_P(HppAwait, OneInAnotherDeeply) {
    everywhere([] {
        EXPECT_EQ(thrum::async(depth(10000)).get().value, 10000);
        thrum::promise<void> promise;
        thrum::future<Number> result = thrum::async(depth_that_waits(10000, promise.get_future()));
        thrum::this_thread::yield();
        promise.set_value();
        EXPECT_EQ(result.get().value, 10000);
    });
}

// --- what is not the library's ----------------------------------------------------------------------------

// Resumes on a thread that knows nothing of loops.
struct Elsewhere {
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> coroutine) const {
        thrum::thread(thrum::attributes().queued(), [coroutine] { coroutine.resume(); }).detach();
    }
    long await_resume() const { return 1; }
};
struct ByMember {
    Elsewhere operator co_await() const { return {}; }
};
struct ByFunction {};
Elsewhere operator co_await(ByFunction) {
    return {};
}

thrum::task<Number> goes_elsewhere() {
    Elsewhere lvalue;
    Number sum{co_await Elsewhere() + co_await lvalue};
    sum.value += co_await ByMember() + co_await ByFunction();
    sum.value += (co_await ready(1)).value;
    co_return sum;
}

thrum::task<Number> awaits_those(int count) {
    Number sum{0};
    for (int i = 0; i < count; i++)
        sum.value += (co_await goes_elsewhere()).value + (co_await ready(1)).value;
    co_return sum;
}

TEST_P(HppAwait, CoroutinesThatResumeElsewhere) {
    everywhere([] { EXPECT_EQ(thrum::async(awaits_those(10)).get().value, 60); });
}

// Awaitables that do not suspend after all, in each way there is, or go on on another stack.
enum class Way {
    kRefuses,
    kReturnsItself,
    kResumes,
    kResumesAndSaysSo,
    kThrows,
    kElsewhere,
    kByAnother,
    kWays
};

// A coroutine that resumes another and is over.
struct Relay {
    struct promise_type {
        Relay get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const {}
        void unhandled_exception() const { std::terminate(); }
    };
    std::coroutine_handle<promise_type> coroutine;
};
Relay relay(std::coroutine_handle<> to) {
    to.resume();
    co_return;
}

template <Way kWay>
struct Outside {
    bool await_ready() const { return false; }
    auto await_suspend(std::coroutine_handle<> coroutine) const {
        if constexpr (kWay == Way::kRefuses) {
            return false;
        } else if constexpr (kWay == Way::kReturnsItself) {
            return coroutine;
        } else if constexpr (kWay == Way::kResumes) {
            coroutine.resume();
        } else if constexpr (kWay == Way::kResumesAndSaysSo) {
            coroutine.resume();
            return true;
        } else if constexpr (kWay == Way::kThrows) {
            throw Thrown();
        } else if constexpr (kWay ==
                             Way::kElsewhere) { // queued: else this one might not run again before the end
            thrum::thread(thrum::attributes().queued(), [coroutine] { coroutine.resume(); }).detach();
        } else {
            return relay(coroutine).coroutine;
        }
    }
    long await_resume() const { return 1; }
};

template <Way kWay>
thrum::task<Number> awaits_one() {
    long value = 0;
    try {
        value = co_await Outside<kWay>();
    } catch (const Thrown &) {
        value = 1;
    }
    co_return Number{value};
}

// In a task that is awaited, and in the one that awaits it, and then as many that are ready.
template <Way kWay>
thrum::task<Number> awaits_many(long count) {
    Number sum{0};
    for (long i = 0; i < count; i++) {
        const Number one = co_await awaits_one<kWay>();
        sum.value += one.value;
        if constexpr (kWay != Way::kThrows)
            sum.value += co_await Outside<kWay>();
        else
            sum.value++;
    }
    for (long i = 0; i < count; i++) {
        const Number one = co_await ready(1);
        sum.value += one.value;
    }
    co_return sum;
}

template <int... kWays>
void await_each_way(long count, std::integer_sequence<int, kWays...>) {
    const auto check = [count](int way, thrum::task<Number> work) {
        EXPECT_EQ(thrum::async(std::move(work)).get().value, 3 * count) << "way " << way;
    };
    (check(kWays, awaits_many<static_cast<Way>(kWays)>(count)), ...);
}

TEST_P(HppAwait, WhatDoesNotSuspendNeedsNoStack) {
    await_each_way(20000 / kStressDivisor, std::make_integer_sequence<int, static_cast<int>(Way::kWays)>());
}

// A task of another library's, as most have it: it begins when it is awaited, and its awaiter ends it.
struct Lazy {
    struct promise_type {
        struct End {
            bool await_ready() const noexcept { return false; }
            std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> ended) const noexcept {
                return ended.promise().awaits;
            }
            void await_resume() const noexcept {}
        };
        Lazy get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() const noexcept { return {}; }
        End final_suspend() const noexcept { return {}; }
        void return_value(long result) { value = result; }
        void unhandled_exception() const { std::terminate(); }
        std::coroutine_handle<> awaits;
        long value = 0;
    };
    std::coroutine_handle<promise_type> coroutine;
    bool await_ready() const { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaits) const {
        coroutine.promise().awaits = awaits;
        return coroutine;
    }
    long await_resume() const {
        const long value = coroutine.promise().value;
        coroutine.destroy();
        return value;
    }
};

Lazy lazy(bool goes_elsewhere) {
    if (goes_elsewhere)
        co_await Elsewhere();
    co_return 1;
}

thrum::task<Number> awaits_lazy_ones(long count) {
    Number sum{0};
    for (long i = 0; i < count; i++) {
        sum.value += co_await lazy(i % 100 == 99);
        const Number one = co_await ready(1);
        sum.value += one.value;
    }
    co_return sum;
}

TEST_P(HppAwait, TasksOfAnotherLibrary) {
    const long count = 20000 / kStressDivisor;
    EXPECT_EQ(thrum::async(awaits_lazy_ones(count)).get().value, 2 * count);
}

// A scheduler of another library's: a coroutine that yields to it is queued, and the first of the queue is resumed.
class Ring {
  public:
    struct Yield {
        Ring *ring;
        bool await_ready() const { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<> coroutine) const {
            return ring->exchange(coroutine);
        }
        void await_resume() const {}
    };
    Yield yield() { return {this}; }
    std::coroutine_handle<> exchange(std::coroutine_handle<> last) {
        const std::lock_guard lock(mutex_);
        if (last)
            ring_.push_back(last);
        if (ring_.empty())
            return nullptr;
        const std::coroutine_handle<> first = ring_.front();
        ring_.pop_front();
        return first;
    }

  private:
    thrum::mutex mutex_;
    std::deque<std::coroutine_handle<>> ring_;
};

thrum::task<> yields(Ring *ring, int rounds, std::atomic<int> *left) {
    for (int i = 0; i < rounds; i++) {
        co_await ring->yield();
        co_await ready(1);
    }
    --*left;
}

TEST_P(HppAwait, ASchedulerOfAnotherLibrary) {
    constexpr int kTasks = 500;
    Ring ring;
    std::atomic<int> left{kTasks};
    std::vector<thrum::future<void>> tasks;
    for (int i = 0; i < kTasks; i++)
        tasks.push_back(thrum::async(yields(&ring, 20 / kStressDivisor + 2, &left)));
    in_ult([&] {
        while (left > 0)
            if (const std::coroutine_handle<> first = ring.exchange(nullptr))
                first.resume();
            else
                thrum::this_thread::yield();
    });
    for (thrum::future<void> &task : tasks)
        task.get();
}

// On this very thread, but later.
struct Parked {
    std::atomic<void *> *parked;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> coroutine) const { *parked = coroutine.address(); }
    long await_resume() const { return 1; }
};

thrum::task<Number> parks(std::atomic<void *> *parked, long count) {
    Number sum{co_await Parked{parked}};
    for (long i = 0; i < count; i++)
        sum.value += (co_await ready(1)).value;
    co_return sum;
}

TEST_P(HppAwait, WhatIsResumedLaterRunsThere) {
    everywhere([] {
        const long count = 20000 / kStressDivisor;
        std::atomic<void *> parked{nullptr};
        thrum::future<Number> result = thrum::async(parks(&parked, count));
        EXPECT_TRUE(eventually([&] { return parked != nullptr; }));
        thrum::this_thread::sleep_for(1ms); // it has been suspended
        EXPECT_FALSE(result.is_ready());
        std::coroutine_handle<>::from_address(parked).resume();
        EXPECT_EQ(result.get().value, count + 1);
    });
}

// A coroutine of another library's that awaits tasks and futures.
Fire coroutine_of_another_library(thrum::future<void> go, thrum::promise<long> result) {
    const long before = (co_await ready(20)).value;
    co_await go;
    result.set_value(before + (co_await depth(20)).value + (co_await goes_elsewhere()).value);
}

Fire awaits_a_million(long count, thrum::promise<long> result) {
    long sum = 0;
    for (long i = 0; i < count; i++)
        sum += (co_await ready(1)).value;
    result.set_value(sum);
}

TEST_P(HppAwait, AMillionByAForeignCoroutine) {
    const long count = 1000000 / kStressDivisor;
    in_ult([count] {
        thrum::promise<long> result;
        thrum::future<long> sum = result.get_future();
        awaits_a_million(count, std::move(result));
        EXPECT_EQ(sum.get(), count);
    });
}

TEST_P(HppAwait, ByAForeignCoroutine) {
    everywhere([] {
        thrum::promise<long> result;
        thrum::promise<void> go;
        thrum::future<long> sum = result.get_future();
        coroutine_of_another_library(go.get_future(), std::move(result));
        go.set_value();
        EXPECT_EQ(sum.get(), 45);
    });
}

ULT_OVER_WORKERS(HppAwait);

} // namespace
