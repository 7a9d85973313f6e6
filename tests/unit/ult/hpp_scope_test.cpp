// SPDX-License-Identifier: Apache-2.0
//
// thrum::scope. What cancels a scope and its members is in scope_test.cpp.
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>

#include "checked.h"
#include "hpp.hpp"

namespace {

using namespace std::chrono_literals;

class HppScope : public Ult {};

struct Unwinds {
    std::atomic<int> &count;
    ~Unwinds() { count++; }
};

int error_of(const std::function<void()> &call) {
    try {
        call();
    } catch (const std::system_error &error) {
        return error.code().value();
    }
    return 0;
}

TEST_P(HppScope, WaitsForItsMembersAndTakesWhatCanOnlyBeMoved) {
    in_ult([] {
        std::atomic<int> sum{0};
        thrum::scope scope;
        for (int i = 1; i <= 10; i++)
            scope.run([&sum, &scope, number = std::make_unique<int>(i)] {
                thrum::this_thread::yield();
                scope.run([&sum, value = *number] { sum += value; });
            });
        scope.run(thrum::attributes().queued(), [&sum] { sum += 100; });
        scope.join();
        EXPECT_EQ(sum, 155);
        EXPECT_FALSE(scope.cancelled());
    });
}

TEST_P(HppScope, JoinThrowsTheFirstExceptionWhichCancelsTheOthers) {
    std::atomic<int> begun{0}, ended{0};
    thrum::scope scope(1h);
    for (int i = 0; i < 10; i++)
        scope.run([&] {
            const Unwinds unwinds{ended};
            begun++;
            thrum::this_thread::sleep_for(1h);
            ADD_FAILURE() << "came back";
        });
    scope.run([&] {
        EXPECT_TRUE(eventually([&] { return begun == 10; }));
        throw std::runtime_error("the first");
    });
    std::string what;
    try {
        scope.join();
    } catch (const std::runtime_error &error) {
        what = error.what();
    }
    EXPECT_EQ(what, "the first");
    EXPECT_EQ(ended, 10);
}

TEST_P(HppScope, TimesOutAndIsCancelled) {
    for (const bool by_time : {true, false}) {
        std::atomic<int> begun{0}, ended{0};
        const auto deadline = std::chrono::steady_clock::now() + (by_time ? 5ms : 3600s);
        thrum::scope scope(deadline);
        EXPECT_EQ(thrum::scope::deadline(), deadline);
        try {
            scope.run([&] {
                const Unwinds unwinds{ended};
                begun++;
                thrum::event never;
                never.wait();
            });
        } catch (const std::system_error &) { // the time was over
        }
        if (!by_time)
            scope.cancel();
        EXPECT_EQ(error_of([&] { scope.join(); }), by_time ? ETIMEDOUT : ECANCELED);
        EXPECT_EQ(begun, ended);
        EXPECT_TRUE(scope.cancelled());
    }
    EXPECT_EQ(thrum::scope::deadline(), std::chrono::steady_clock::time_point::max());
    thrum::scope over(0s);
    EXPECT_EQ(error_of([&] { over.run([] {}); }), ECANCELED);
    EXPECT_EQ(error_of([&] { over.join(); }), ETIMEDOUT);
}

// The destructor cancels, and waits: what the members use is still there.
TEST_P(HppScope, AnExceptionThatPassesCancelsIt) {
    in_ult([] {
        std::atomic<int> ended{0};
        try {
            thrum::scope outer;
            thrum::scope scope;
            for (int i = 0; i < 5; i++)
                scope.run([&ended] {
                    const Unwinds unwinds{ended};
                    thrum::this_thread::sleep_for(1h);
                });
            throw std::logic_error("passes");
        } catch (const std::logic_error &) {
        }
        EXPECT_EQ(ended, 5);
    });
}

// In join(), or before it: the members have ended when the owner has.
// After a join that could not be, the scope still waits for its members at its end.
TEST_P(HppScope, JoinThatCannotBeLeavesItOpen) {
    if (library_is_checked())
        GTEST_SKIP() << "a checked library aborts";
    std::atomic<int> ended{0};
    {
        thrum::scope outer;
        {
            const thrum::scope inner;
            outer.run([&] {
                const Unwinds unwinds{ended};
                thrum::this_thread::sleep_for(1h);
            });
            EXPECT_EQ(error_of([&] { outer.join(); }), EINVAL) << "the inner one has not ended";
        }
        outer.run([&] { EXPECT_EQ(error_of([&] { outer.join(); }), EINVAL) << "by a member"; });
        thrum::this_thread::yield();
    }
    EXPECT_EQ(ended, 1);
}

TEST_P(HppScope, IsJoinedOnce) {
    thrum::scope scope;
    scope.join();
    EXPECT_EQ(error_of([&] { scope.join(); }), EINVAL);
    EXPECT_EQ(error_of([&] { scope.run([] {}); }), EINVAL);
    scope.cancel();
}

TEST_P(HppScope, EndsWithItsOwner) {
    for (const bool joins : {true, false}) {
        std::atomic<int> begun{0}, ended{0}, ended_before{-1};
        thrum::thread owner(thrum::attributes().cancellable(), [&] {
            struct Further {
                std::atomic<int> &ended, &before;
                ~Further() { before = ended.load(); }
            } const further{ended, ended_before};
            thrum::scope scope;
            for (int i = 0; i < 5; i++)
                scope.run([&] {
                    const Unwinds unwinds{ended};
                    begun++;
                    thrum::this_thread::sleep_for(1h);
                });
            if (joins)
                scope.join();
            else
                thrum::this_thread::sleep_for(1h);
        });
        EXPECT_TRUE(eventually([&] { return begun == 5; }));
        EXPECT_EQ(thrum_cancel(owner.native_handle()), 0);
        owner.join();
        EXPECT_EQ(ended, 5);
        EXPECT_EQ(ended_before, 5);
    }
}

ULT_OVER_WORKERS(HppScope);

} // namespace
