// SPDX-License-Identifier: Apache-2.0
//
// Tasks that go on with each other without piling up on the stack, where the compiler makes no jumps of calls: this file
// is compiled with -O0. And tasks that await what is not the library's.
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

// Goes on on a thread that knows nothing of loops.
struct Elsewhere {
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> coroutine) const {
        thrum::executor().execute([coroutine] { coroutine.resume(); });
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

TEST_P(HppAwait, WhatGoesOnElsewhere) {
    everywhere([] { EXPECT_EQ(thrum::async(awaits_those(10)).get().value, 60); });
}

// A coroutine of somebody else's that awaits tasks and futures.
struct Fire {
    struct promise_type {
        Fire get_return_object() const { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const {}
        void unhandled_exception() const { std::terminate(); }
    };
};

Fire somebody_elses(thrum::future<void> go, thrum::promise<long> result) {
    const long before = (co_await ready(20)).value;
    co_await go;
    result.set_value(before + (co_await depth(20)).value + (co_await goes_elsewhere()).value);
}

TEST_P(HppAwait, ByACoroutineOfSomebodyElses) {
    everywhere([] {
        thrum::promise<long> result;
        thrum::promise<void> go;
        thrum::future<long> sum = result.get_future();
        somebody_elses(go.get_future(), std::move(result));
        go.set_value();
        EXPECT_EQ(sum.get(), 45);
    });
}

ULT_OVER_WORKERS(HppAwait);

} // namespace
