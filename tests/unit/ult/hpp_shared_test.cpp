// SPDX-License-Identifier: Apache-2.0
//
// thrum::shared_future, then(), packaged_task.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hpp.hpp"

namespace {

class HppShared : public Hpp {};

TEST_P(HppShared, ManyReadOneValue) {
    everywhere([] {
        thrum::promise<Counted> promise;
        const thrum::shared_future<Counted> shared = promise.get_future().share();
        EXPECT_FALSE(shared.is_ready());
        EXPECT_EQ(shared.wait_for(10us), thrum::future_status::timeout);
        std::atomic<int> sum{0};
        {
            std::vector<thrum::thread> readers;
            for (int i = 0; i < 10; i++)
                readers.emplace_back([shared, &sum] { sum += shared.get().value(); });
            promise.set_value(Counted(7));
        }
        EXPECT_EQ(sum, 70);
        EXPECT_EQ(shared.get().value(), 7);
        EXPECT_EQ(&shared.get(), &shared.get());
        EXPECT_EQ(thrum::when_any(shared), 0U);
    });
}

TEST_P(HppShared, OfReferencesNothingAndExceptions) {
    int number = 0;
    const thrum::shared_future<int &> reference = thrum::async([&]() -> int & { return number; });
    reference.get() = 3;
    EXPECT_EQ(number, 3);
    const thrum::shared_future<void> nothing = thrum::async([] {}).share();
    nothing.get();
    nothing.get();
    const thrum::shared_future<int> thrown = thrum::async([]() -> int { throw Thrown(); });
    EXPECT_THROW(thrown.get(), Thrown);
    EXPECT_THROW(thrown.get(), Thrown);
    const thrum::shared_future<int> none;
    EXPECT_FALSE(none.valid());
    EXPECT_THROW(none.get(), thrum::future_error);
    EXPECT_FALSE(thrum::shared_future<int>(thrum::future<int>()).valid());
}

// As the future from async() would: the thread uses this frame.
TEST_P(HppShared, TheLastCopyWaits) {
    std::atomic<bool> ended{false};
    {
        const thrum::shared_future<void> shared = thrum::async([&] {
            thrum::this_thread::sleep_for(1ms);
            ended = true;
        });
        const thrum::shared_future<void> copy(shared); // NOLINT(performance-unnecessary-copy-initialization)
    }
    EXPECT_TRUE(ended);
}

// More than one coroutine, and a thread, whichever comes first.
TEST_P(HppShared, CoroutinesAwaitIt) {
    everywhere([] {
        thrum::promise<std::string> promise;
        const thrum::shared_future<std::string> shared = promise.get_future();
        const auto size = [](thrum::shared_future<std::string> one) -> thrum::task<std::size_t> {
            const std::string &text = co_await one;
            co_return text.size();
        };
        std::vector<thrum::future<std::size_t>> sizes;
        std::atomic<int> read{0};
        for (int i = 0; i < 4; i++)
            sizes.push_back(thrum::async(size(shared)));
        thrum::thread reader([&] { read += static_cast<int>(shared.get().size()); });
        for (int i = 0; i < 4; i++)
            sizes.push_back(thrum::async(size(shared)));
        promise.set_value("four");
        for (auto &one : sizes)
            EXPECT_EQ(one.get(), 4U);
        reader.join();
        EXPECT_EQ(read, 4);
    });
}

class HppThen : public Hpp {};

TEST_P(HppThen, RunsWithWhatIsReady) {
    everywhere([] {
        for (const bool is_ready : {true, false}) {
            thrum::promise<int> promise;
            thrum::future<int> first = promise.get_future();
            if (is_ready)
                promise.set_value(20);
            thrum::future<std::string> last =
                first
                    .then([held = Counted(1)](thrum::future<int> number) {
                        return 2 * number.get() + held.value();
                    })
                    .then([](thrum::future<int> number) { return std::to_string(number.get() + 1); });
            EXPECT_FALSE(first.valid());
            if (!is_ready) {
                EXPECT_EQ(last.wait_for(10us), thrum::future_status::timeout);
                promise.set_value(20);
            }
            EXPECT_EQ(last.get(), "42");
        }
    });
}

TEST_P(HppThen, GetsTheExceptionAndMayThrow) {
    thrum::future<int> number =
        thrum::async([]() -> int { throw Thrown(); }).then([](thrum::future<int> one) {
            EXPECT_THROW(one.get(), Thrown);
            return 1;
        });
    EXPECT_EQ(number.get(), 1);
    thrum::future<void> thrown = thrum::async([] {}).then([](thrum::future<void> one) {
        one.get();
        throw Thrown();
    });
    EXPECT_THROW(thrown.get(), Thrown);
    thrum::future<void> broken;
    {
        thrum::promise<void> promise;
        broken = promise.get_future().then([](thrum::future<void> one) { one.get(); });
    }
    EXPECT_THROW(broken.get(), thrum::future_error);
    EXPECT_THROW(static_cast<void>(thrum::future<int>().then([](thrum::future<int>) {})),
                 thrum::future_error);
}

// A future of a future's value, whichever of the two is ready first.
TEST_P(HppThen, UnwrapsAFuture) {
    everywhere([] {
        for (const bool is_ready : {true, false}) {
            thrum::promise<Counted> inner;
            if (is_ready)
                inner.set_value(Counted(5));
            auto last = thrum::async([] { return 1; }).then([&inner](thrum::future<int> one) {
                EXPECT_EQ(one.get(), 1);
                return inner.get_future();
            });
            static_assert(std::is_same_v<decltype(last), thrum::future<Counted>>);
            if (!is_ready) {
                EXPECT_EQ(last.wait_for(10us), thrum::future_status::timeout);
                inner.set_value(Counted(5));
            }
            EXPECT_EQ(last.get().value(), 5);
        }
    });
    thrum::future<void> thrown = thrum::async([] {}).then(
        [](thrum::future<void>) { return thrum::async([]() -> void { throw Thrown(); }); });
    EXPECT_THROW(thrown.get(), Thrown);
    thrum::future<int> threw =
        thrum::async([] {}).then([](thrum::future<void>) -> thrum::future<int> { throw Thrown(); });
    EXPECT_THROW(threw.get(), Thrown);
    thrum::future<int> none =
        thrum::async([] {}).then([](thrum::future<void>) { return thrum::future<int>(); });
    EXPECT_THROW(none.get(), thrum::future_error);
    int place = 0;
    thrum::future<int &> reference = thrum::async([] {}).then(
        [&place](thrum::future<void>) { return thrum::async([&place]() -> int & { return place; }); });
    EXPECT_EQ(&reference.get(), &place);
    thrum::future<int> exited =
        thrum::async([] {}).then([](thrum::future<void>) -> thrum::future<int> { thrum_exit(nullptr); });
    EXPECT_THROW(exited.get(), thrum::future_error) << "as of a broken promise";
}

// Its thread uses this frame.
TEST_P(HppThen, WaitsForTheInnerFutureAtTheEnd) {
    std::atomic<int> ended{0};
    {
        const auto last = thrum::async([] {}).then([&ended](thrum::future<void>) {
            return thrum::async([&ended] {
                thrum::this_thread::sleep_for(1ms);
                ended++;
            });
        });
    }
    EXPECT_EQ(ended, 1);
}

// The thread of async() uses this frame.
TEST_P(HppThen, IsWaitedForWhereTheFutureIs) {
    std::atomic<int> ended{0};
    {
        const auto last = thrum::async([&] {
                              thrum::this_thread::sleep_for(1ms);
                              ended++;
                          }).then([&](thrum::future<void>) {
            thrum::this_thread::sleep_for(1ms);
            ended++;
        });
    }
    EXPECT_EQ(ended, 2);
    // A promise that is destroyed is broken: its continuation runs, on a thread that is not waited for here.
    auto used = std::make_shared<int>();
    const std::weak_ptr<int> until_it_has_run = used;
    {
        thrum::promise<void> never;
        const auto not_waited_for = never.get_future().then([used = std::move(used)](thrum::future<void>) {});
    }
    EXPECT_TRUE(eventually([&] { return until_it_has_run.expired(); }));
}

TEST_P(HppThen, OfASharedFutureManyTimes) {
    thrum::promise<int> promise;
    const thrum::shared_future<int> shared = promise.get_future();
    std::vector<thrum::future<int>> results;
    for (int i = 0; i < 10; i++)
        results.push_back(shared.then([i](thrum::shared_future<int> one) { return one.get() + i; }));
    promise.set_value(100);
    thrum::when_all(std::span(results));
    for (int i = 0; i < 10; i++)
        EXPECT_EQ(results[static_cast<std::size_t>(i)].get(), 100 + i);
}

class HppPackaged : public Hpp {};

int twice(int number) {
    return 2 * number;
}

TEST_P(HppPackaged, ResultsGoToTheFuture) {
    everywhere([] {
        thrum::packaged_task task(twice);
        thrum::future<int> result = task.get_future();
        EXPECT_THROW(static_cast<void>(task.get_future()), thrum::future_error);
        task(4);
        EXPECT_EQ(result.get(), 8);
        EXPECT_THROW(task(5), thrum::future_error);
        task.reset();
        result = task.get_future();
        thrum::thread runs(std::move(task), 6);
        EXPECT_EQ(result.get(), 12);
        EXPECT_FALSE(task.valid()); // NOLINT(bugprone-use-after-move)
        EXPECT_THROW(task(7), thrum::future_error);
    });
}

TEST_P(HppPackaged, TakesWhatCanOnlyBeMovedAndThrows) {
    thrum::packaged_task<int(std::unique_ptr<int>, int &)> task(
        [held = Counted(1)](const std::unique_ptr<int> &number, int &place) {
            place = *number;
            return *number + held.value();
        });
    int place = 0;
    thrum::future<int> result = task.get_future();
    task(std::make_unique<int>(5), place);
    EXPECT_EQ(result.get(), 6);
    EXPECT_EQ(place, 5);
    thrum::packaged_task<void()> throws([] { throw Thrown(); });
    thrum::future<void> thrown = throws.get_future();
    throws();
    EXPECT_THROW(thrown.get(), Thrown);
}

TEST_P(HppPackaged, BreaksItsPromise) {
    thrum::future<void> destroyed, assigned, reset;
    thrum::packaged_task<void()> task([] {});
    {
        thrum::packaged_task<void()> one([] {});
        destroyed = one.get_future();
    }
    assigned = task.get_future();
    task = thrum::packaged_task<void()>([] {});
    reset = task.get_future();
    task.reset();
    EXPECT_THROW(destroyed.get(), thrum::future_error);
    EXPECT_THROW(assigned.get(), thrum::future_error);
    EXPECT_THROW(reset.get(), thrum::future_error);
    thrum::future<void> ended = task.get_future();
    thrum::packaged_task<void()> exits([] { thrum_exit(nullptr); });
    thrum::future<void> exited = exits.get_future();
    thrum::thread(std::move(exits)).join();
    EXPECT_THROW(exited.get(), thrum::future_error);
    task();
    ended.get();
}

TEST_P(HppPackaged, IsDeducedFromALambda) {
    thrum::packaged_task task([](int number) { return 2 * number; });
    thrum::packaged_task counts([calls = 0]() mutable noexcept { return ++calls; });
    static_assert(std::is_same_v<decltype(task), thrum::packaged_task<int(int)>>);
    static_assert(std::is_same_v<decltype(counts), thrum::packaged_task<int()>>);
    thrum::future<int> result = task.get_future();
    task(4);
    EXPECT_EQ(result.get(), 8);
}

TEST_P(HppThen, MayReturnAReference) {
    int place = 0;
    thrum::promise<void> promise;
    thrum::future<int &> then = promise.get_future().then([&place](thrum::future<void> ready) -> int & {
        ready.get();
        return place;
    });
    promise.set_value();
    EXPECT_EQ(&then.get(), &place);
}

// The function runs in the runtime in which it was given.
TEST_P(HppThen, OfAFutureThatAnEarlierRuntimeMadeReady) {
    thrum::future<int> ready = thrum::async([] { return 1; });
    ready.wait();
    ASSERT_EQ(thrum_fini(), 0);
    thrum_config config{};
    config.workers = GetParam();
    ASSERT_EQ(thrum_init(&config), 0);
    std::atomic<bool> may_end{false};
    thrum::future<int> then = ready.then([&may_end](thrum::future<int> one) {
        while (!may_end)
            thrum::this_thread::yield();
        return one.get() + 1;
    });
    thrum::thread lets([&may_end] { may_end = true; });
    EXPECT_EQ(then.get(), 2);
    lets.join();
}

ULT_OVER_WORKERS(HppShared);
ULT_OVER_WORKERS(HppThen);
ULT_OVER_WORKERS(HppPackaged);

} // namespace
