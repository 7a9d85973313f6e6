// SPDX-License-Identifier: Apache-2.0
//
// thrum::future, promise, async, and coroutines that await them.
#include <optional>
#include <string>

#include "hpp.hpp"

namespace {

std::error_code code_of(const std::function<void()> &action) {
    try {
        action();
    } catch (const thrum::future_error &error) {
        return error.code();
    }
    return {};
}

class HppFuture : public Hpp {};

TEST_P(HppFuture, AsyncReturnsAndThrows) {
    everywhere([] {
        EXPECT_EQ(thrum::async([] { return 42; }).get(), 42);
        EXPECT_EQ(thrum::async([](Counted held) { return held; }, Counted(3)).get().value(), 3);
        thrum::async([] {}).get();
        int place = 0;
        thrum::future<int &> reference = thrum::async([&place]() -> int & { return place; });
        EXPECT_EQ(&reference.get(), &place);
        EXPECT_FALSE(reference.valid());
        thrum::future<std::string> text = thrum::async([] { return std::string(100, 'x'); });
        EXPECT_EQ(text.get().size(), 100U);
        EXPECT_THROW(thrum::async([]() -> int { throw Thrown(); }).get(), Thrown);
        EXPECT_EQ(thrum::async(thrum::attributes().queued(), std::plus<int>(), 1, 2).get(), 3);
    });
}

// What was captured by reference is there until its thread has ended.
TEST_P(HppFuture, AsyncIsWaitedForAtItsEnd) {
    everywhere([] {
        for (int i = 0; i < 50; i++) {
            bool ended = false;
            {
                const thrum::future<void> forgotten = thrum::async([&ended] {
                    thrum::this_thread::yield();
                    ended = true;
                });
            }
            EXPECT_TRUE(ended);
            ended = false;
            thrum::future<void> replaced = thrum::async([&ended] {
                thrum::this_thread::yield();
                ended = true;
            });
            replaced = thrum::async([] {});
            EXPECT_TRUE(ended);
        }
    });
}

TEST_P(HppFuture, WaitsNoLongerThan) {
    everywhere([] {
        thrum::promise<int> promise;
        const thrum::future<int> future = promise.get_future();
        EXPECT_EQ(future.wait_for(1ms), thrum::future_status::timeout);
        EXPECT_EQ(future.wait_until(std::chrono::system_clock::now() + 1ms), thrum::future_status::timeout);
        EXPECT_FALSE(future.is_ready());
        thrum::thread sets([&] { promise.set_value(1); });
        EXPECT_EQ(future.wait_for(1h), thrum::future_status::ready);
        EXPECT_TRUE(future.is_ready());
    });
}

TEST_P(HppFuture, PromisesAreTheStandards) {
    everywhere([] {
        thrum::promise<Counted> promise;
        thrum::future<Counted> future = promise.get_future();
        EXPECT_EQ(code_of([&] { static_cast<void>(promise.get_future()); }),
                  std::future_errc::future_already_retrieved);
        promise.set_value(Counted(9));
        EXPECT_EQ(code_of([&] { promise.set_value(Counted(1)); }),
                  std::future_errc::promise_already_satisfied);
        EXPECT_EQ(future.get().value(), 9);
        EXPECT_EQ(code_of([&] { future.get(); }), std::future_errc::no_state);
        EXPECT_EQ(code_of([] { thrum::future<int>().wait(); }), std::future_errc::no_state);
        thrum::future<void> broken = thrum::promise<void>().get_future();
        EXPECT_EQ(code_of([&] { broken.get(); }), std::future_errc::broken_promise);
        thrum::promise<void> throws;
        thrum::future<void> thrown = throws.get_future();
        throws.set_exception(std::make_exception_ptr(Thrown()));
        EXPECT_THROW(thrown.get(), Thrown);
        thrum::future<int> ended_within = thrum::async([held = Counted()]() -> int { thrum_exit(nullptr); });
        EXPECT_EQ(code_of([&] { ended_within.get(); }), std::future_errc::broken_promise);
    });
}

// The future may go while the promise is still in set_value, and the other way round.
TEST_P(HppFuture, StatesAreFreedByTheLast) {
    everywhere([] {
        for (int i = 0; i < 500 / kStressDivisor; i++) {
            thrum::promise<Counted> promise;
            thrum::future<Counted> future = promise.get_future();
            thrum::thread sets(
                [promise = std::move(promise), i]() mutable { promise.set_value(Counted(i)); });
            if (i % 2 == 0) {
                EXPECT_EQ(future.get().value(), i);
            }
        }
    });
}

// The promise goes as soon as its value is seen, while a detached thread is still in set_value.
TEST_P(HppFuture, APromiseMayGoWhenItsValueIsSeen) {
    everywhere([] {
        for (int i = 0; i < 500 / kStressDivisor; i++) {
            thrum::promise<int> promise;
            thrum::executor().execute([&promise, i] { promise.set_value(i); });
            EXPECT_EQ(promise.get_future().get(), i);
        }
    });
}

ULT_OVER_WORKERS(HppFuture);

class HppFuturePlain : public UltPlain {};

// Its thread never runs again.
TEST_F(HppFuturePlain, OfAnEndedRuntimeIsAnError) {
    std::optional<thrum::future<int>> lost;
    {
        const thrum::runtime runtime(2);
        static std::atomic<const void *> held; // what a lost thread holds stays: LeakSanitizer must find it
        held = nullptr;
        lost.emplace(thrum::async([place = 0]() mutable {
            held = &place;
            return thrum_suspend();
        }));
        EXPECT_TRUE(eventually([] { return held != nullptr; }));
    }
    const auto error_of = [](const auto &wait) {
        try {
            wait();
        } catch (const std::system_error &error) {
            return error.code().value();
        }
        return 0;
    };
    EXPECT_EQ(error_of([&] { lost->get(); }), ESRCH);
    EXPECT_EQ(error_of([&] { lost->wait(); }), ESRCH);
    EXPECT_EQ(error_of([&] { static_cast<void>(lost->wait_for(1h)); }), ESRCH);
    EXPECT_EQ(error_of([&] { thrum::when_any(*lost); }), ESRCH);
    EXPECT_TRUE(lost->valid());
    {
        const thrum::runtime another(2); // does not bring it back
        EXPECT_EQ(error_of([&] { lost->get(); }), ESRCH);
        EXPECT_TRUE(lost->valid());
        lost.reset(); // does not wait
    }
    thrum::promise<int> promise; // one that needs no runtime is as it was
    thrum::future<int> future = promise.get_future();
    std::thread setter([&] { promise.set_value(4); });
    EXPECT_EQ(future.get(), 4);
    setter.join();
}

class HppTask : public Hpp {};

thrum::task<int> twice(int number) {
    co_return 2 * co_await thrum::async([number] { return number; });
}

thrum::task<int> sum(int count) {
    int result = 0;
    for (int i = 0; i < count; i++)
        result += co_await twice(i);
    co_return result;
}

thrum::task<> throws_after(thrum::future<void> first) {
    co_await first;
    throw Thrown();
}

thrum::task<Counted> catches() {
    thrum::promise<void> promise;
    thrum::future<void> future = promise.get_future();
    promise.set_value();
    int caught = 0;
    try {
        co_await throws_after(std::move(future));
    } catch (const Thrown &) {
        caught = 1;
    }
    co_return Counted(caught);
}

TEST_P(HppTask, AwaitFuturesAndEachOther) {
    everywhere([] {
        EXPECT_EQ(thrum::async(sum(20)).get(), 380);
        EXPECT_EQ(thrum::async(catches()).get().value(), 1);
        thrum::promise<void> promise;
        thrum::future<void> thrown = thrum::async(throws_after(promise.get_future()));
        EXPECT_EQ(thrown.wait_for(1ms), thrum::future_status::timeout);
        promise.set_value();
        EXPECT_THROW(thrown.get(), Thrown);
    });
}

// It resumes on a ULT, whichever thread sets the value, and may wait there.
thrum::task<bool> waits_after(thrum::future<int> first, thrum::mutex &mutex) {
    co_await first;
    const std::lock_guard lock(mutex);
    thrum::this_thread::sleep_for(100us);
    co_return thrum_self() != nullptr;
}

TEST_P(HppTask, ResumeOnAThreadOfTheirOwn) {
    thrum::mutex mutex;
    everywhere([&] {
        std::vector<thrum::promise<int>> promises(10);
        std::vector<thrum::future<bool>> results;
        for (auto &promise : promises)
            results.push_back(thrum::async(waits_after(promise.get_future(), mutex)));
        {
            const std::lock_guard lock(mutex); // set_value does not wait for what it sets going
            for (auto &promise : promises)
                promise.set_value(1);
        }
        for (auto &result : results)
            EXPECT_TRUE(result.get());
    });
}

// The value and the coroutine come at the same moment.
TEST_P(HppTask, AwaitWhatIsJustBeingSet) {
    everywhere([] {
        for (int i = 0; i < 500 / kStressDivisor; i++) {
            thrum::promise<int> promise;
            thrum::mutex mutex;
            thrum::future<bool> result = thrum::async(waits_after(promise.get_future(), mutex));
            thrum::thread sets([promise = std::move(promise)]() mutable { promise.set_value(1); });
            if (i % 100 == 0) {
                EXPECT_TRUE(result.get());
            }
        }
    });
}

TEST_P(HppTask, OneThatIsNotBegunIsDestroyed) {
    const auto never = [](Counted held) -> thrum::task<int> { co_return held.value(); };
    static_cast<void>(never(Counted(1)));
    thrum::task<int> first = never(Counted(2));
    first = never(Counted(3));
    EXPECT_EQ(thrum::async(std::move(first)).get(), 3);
}

TEST_P(HppTask, AreAwaitedOnce) {
    everywhere([] {
        const auto error_of = [](thrum::task<int> work) {
            return code_of([&] { static_cast<void>(thrum::async(std::move(work))); });
        };
        thrum::task<int> first = twice(1);
        const thrum::task<int> second = std::move(first);
        EXPECT_EQ(error_of(std::move(first)), std::future_errc::no_state);
        const auto awaits_it_twice = []() -> thrum::task<int> {
            thrum::task<int> once = twice(2);
            const int result = co_await std::move(once);
            co_return result + co_await std::move(once);
        };
        EXPECT_EQ(code_of([&] { thrum::async(awaits_it_twice()).get(); }),
                  std::future_errc::future_already_retrieved);
        const auto awaits_what_was_moved = []() -> thrum::task<int> {
            thrum::task<int> from = twice(2);
            const thrum::task<int> to = std::move(from);
            co_return co_await std::move(from);
        };
        EXPECT_EQ(code_of([&] { thrum::async(awaits_what_was_moved()).get(); }), std::future_errc::no_state);
    });
}

ULT_OVER_WORKERS(HppTask);

} // namespace
