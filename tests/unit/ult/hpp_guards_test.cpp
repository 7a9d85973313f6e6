// SPDX-License-Identifier: Apache-2.0
//
// <thrum/hpp/guards.hpp>; attributes and configurations that say how threads are preempted; thread::join_for.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include <sys/syscall.h>
#include <thrum/worker.h>
#include <unistd.h>

#include "hpp.hpp"

namespace {

long tid() {
    return syscall(SYS_gettid);
}

int error_of(const std::function<void()> &call) {
    try {
        call();
    } catch (const std::system_error &error) {
        return error.code().value();
    }
    return 0;
}

class HppGuards : public Ult {};

TEST_P(HppGuards, RegionsEndWithTheirBlocks) {
    everywhere([] {
        int inside = 0;
        {
            const thrum::no_preempt outer;
            const thrum::no_preempt inner;
            inside++;
        }
        thrum::this_thread::sleep_for(1us); // may wait again
        EXPECT_EQ(inside, 1);
    });
    std::atomic<bool> begun{false}, asked{false}, after{false};
    thrum::thread victim(thrum::attributes().cancellable(), [&] {
        {
            const thrum::no_cancel region;
            begun = true;
            EXPECT_TRUE(eventually([&] { return asked.load(); }));
            thrum::this_thread::sleep_for(1ms);
            after = true;
        }
        thrum::this_thread::sleep_for(1h);
        ADD_FAILURE() << "was not ended";
    });
    EXPECT_TRUE(eventually([&] { return begun.load(); }));
    EXPECT_EQ(thrum_cancel(victim.native_handle()), 0);
    asked = true;
    victim.join();
    EXPECT_TRUE(after);
}

TEST_P(HppGuards, AKernelThreadOfItsOwnEndsWithTheBlock) {
    EXPECT_EQ(error_of([] { const thrum::own_kthread here; }), EPERM); // the thread that called thrum_init
    in_ult([] {
        long own = 0;
        {
            const thrum::own_kthread here;
            own = tid();
            EXPECT_EQ(thrum_worker_self(), -1);
            {
                const thrum::own_kthread again;
                thrum::this_thread::sleep_for(1us);
                EXPECT_EQ(tid(), own);
            }
            thrum::this_thread::sleep_for(1us);
            EXPECT_EQ(tid(), own);
            EXPECT_EQ(thrum_worker_self(), -1);
        }
        EXPECT_NE(tid(), own);
        EXPECT_GE(thrum_worker_self(), 0);
        const thrum::no_preempt region;
        EXPECT_EQ(error_of([] { const thrum::own_kthread here; }), EPERM);
    });
    External([] {
        const long own = tid();
        const thrum::own_kthread here;
        EXPECT_EQ(tid(), own);
    }).join();
}

TEST_P(HppGuards, AKernelThreadOfItsOwnEndsByUnwinding) {
    in_ult([] {
        EXPECT_THROW(
            {
                const thrum::own_kthread here;
                throw std::runtime_error("within");
            },
            std::runtime_error);
        EXPECT_GE(thrum_worker_self(), 0);
    });
    std::atomic<bool> begun{false};
    std::atomic<int> after{-2};
    thrum::thread victim(thrum::attributes().cancellable(), [&] {
        struct Looks {
            std::atomic<int> &at;
            ~Looks() { at = thrum_worker_self(); }
        } const looks{after};
        const thrum::own_kthread here;
        begun = true;
        thrum::this_thread::sleep_for(1h);
        ADD_FAILURE() << "was not ended";
    });
    EXPECT_TRUE(eventually([&] { return begun.load(); }));
    EXPECT_EQ(thrum_cancel(victim.native_handle()), 0);
    victim.join();
    EXPECT_GE(after, 0);
}

TEST_P(HppGuards, AThreadMayBeginWithAKernelThreadOfItsOwn) {
    int worker = 0;
    thrum::thread(thrum::attributes().own_kthread(), [&] { worker = thrum_worker_self(); }).join();
    EXPECT_EQ(worker, -1);
}

TEST_P(HppGuards, BlockingReturnsAndThrows) {
    everywhere([] {
        EXPECT_EQ(*thrum::blocking([only = std::make_unique<int>(7)]() mutable { return std::move(only); }),
                  7);
        int number = 1;
        int &same = thrum::blocking([&number]() -> int & { return number; });
        EXPECT_EQ(&same, &number);
        thrum::blocking([&number] { number++; });
        EXPECT_EQ(number, 2);
        EXPECT_THROW(thrum::blocking([] { throw std::runtime_error("it"); }), std::runtime_error);
    });
}

// What it then returns or throws is dropped, with its copy of the function.
TEST_P(HppGuards, BlockingIsWaitedForUntilADeadline) {
    everywhere([] {
        EXPECT_EQ(thrum::blocking_for(1h, [] { return 7; }), 7);
        EXPECT_EQ(
            **thrum::blocking_until(std::chrono::steady_clock::now() + 1h,
                                    [only = std::make_unique<int>(8)]() mutable { return std::move(only); }),
            8);
        EXPECT_TRUE(thrum::blocking_for(1h, [] {}));
        EXPECT_THROW(thrum::blocking_for(1h, [] { throw std::runtime_error("it"); }), std::runtime_error);
        struct shared {
            std::atomic<bool> end{false}, over{false};
        };
        for (const bool throws : {false, true}) {
            const auto state = std::make_shared<shared>();
            const auto wait = [state, throws] {
                while (!state->end)
                    std::this_thread::sleep_for(100us);
                state->over = true;
                if (throws)
                    throw std::runtime_error("dropped");
                return 9;
            };
            EXPECT_EQ(thrum::blocking_for(1ms, wait), std::nullopt);
            EXPECT_FALSE(thrum::blocking_until(std::chrono::steady_clock::now() + 1ms, [wait] { wait(); }));
            EXPECT_FALSE(state->over);
            EXPECT_EQ(state.use_count(), 4) << "this, the function, and the copies of two calls";
            state->end = true;
            EXPECT_TRUE(eventually([&] { return state->over && state.use_count() == 2; }));
        }
    });
}

TEST_P(HppGuards, CallsAreMadeOrCancelledWithTheirBlock) {
    everywhere([] {
        std::atomic<int> calls{0};
        {
            const thrum::scheduled_call never(1h, [&calls] { calls++; });
            thrum::scheduled_call cancelled(std::chrono::steady_clock::now() + 1h, [&calls] { calls++; });
            EXPECT_TRUE(cancelled.cancel());
            EXPECT_TRUE(cancelled.cancel());
        }
        EXPECT_EQ(calls, 0);
        for (int i = 0; i < 100; i++) { // at about the end of the block
            const int before = calls;
            bool cancelled = false;
            {
                thrum::scheduled_call call(std::chrono::microseconds(i), [&calls] { calls++; });
                thrum::this_thread::sleep_for(std::chrono::microseconds(i));
                cancelled = call.cancel();
            }
            EXPECT_EQ(calls, before + (cancelled ? 0 : 1));
        }
    });
}

TEST_P(HppGuards, JoinsInTime) {
    in_ult([] {
        thrum::event go;
        thrum::thread waits([&go] {
            go.wait();
            throw std::runtime_error("the thread's");
        });
        EXPECT_FALSE(waits.join_for(1ms));
        EXPECT_FALSE(waits.join_until(std::chrono::system_clock::now() + 1ms));
        EXPECT_TRUE(waits.joinable());
        go.set();
        EXPECT_THROW(waits.join_for(1h), std::runtime_error);
        EXPECT_FALSE(waits.joinable());
        EXPECT_EQ(error_of([&] { waits.join_for(1ms); }), EINVAL);
        thrum::thread ends([] {});
        EXPECT_TRUE(ends.join_until(std::chrono::steady_clock::now() + 1h));
    });
}

TEST_P(HppGuards, AttributesSayHowAThreadIsPreempted) {
    std::vector<char> memory(1 << 16);
    char *where = nullptr;
    thrum::thread(thrum::attributes().stack(memory.data(), memory.size()).slice(5ms), [&where] {
        char here = 0;
        where = &here;
    }).join();
    if (!ULT_ASAN) {
        EXPECT_GE(where, memory.data());
        EXPECT_LT(where, memory.data() + memory.size());
    }
    std::size_t used = 0, size = 0;
    thrum::thread(thrum::attributes().measured(), [&] {
        EXPECT_EQ(thrum_stack_used(thrum_self(), &used, &size), 0);
    }).join();
    EXPECT_GT(size, used);
    thrum::thread(thrum::attributes().preempt(THRUM_PREEMPT_NONE), [] {}).join();
    EXPECT_EQ(error_of([] { thrum::attributes().slice(1us); }), EINVAL);
    EXPECT_EQ(error_of([] { thrum::attributes().slice(1h); }), EINVAL);
    EXPECT_EQ(error_of([&] { thrum::attributes().stack(memory.data(), 16); }), EINVAL);
}

ULT_OVER_WORKERS(HppGuards);

class HppGuardsPlain : public UltPlain {};

TEST_F(HppGuardsPlain, ARuntimeIsPreemptedAsItSays) {
    {
        const thrum::runtime runtime(thrum::runtime::preempted(THRUM_PREEMPT_NONE));
        EXPECT_EQ(error_of([] { thrum::thread(thrum::attributes().preempt(THRUM_PREEMPT_LEND), [] {}); }),
                  EINVAL);
    }
    thrum_config config = thrum::runtime::preempted(THRUM_PREEMPT_YIELD, 1ms);
    config.workers = 2;
    const thrum::runtime runtime(config);
    EXPECT_EQ(runtime.workers(), 2U);
    EXPECT_EQ(
        error_of([] { const thrum::runtime again(thrum::runtime::preempted(THRUM_PREEMPT_YIELD, 1us)); }),
        EINVAL);
}

} // namespace
