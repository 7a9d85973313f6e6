// SPDX-License-Identifier: Apache-2.0
//
// Calls that are made where, when or with what they must not be: each gives an error, or one line and an abort. Without
// that they would hang, or use memory that is no more.
#include <errno.h>
#include <pthread.h>
#include <thrum/pool.h>
#include <thrum/scope.h>
#include <thrum/thrum.h>
#include <thrum/worker.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>

#include "aborts.hpp"
#include "checked.h"
#include "ult.hpp"

namespace {

void *nothing(void *arg) {
    return arg;
}

int no_error(void * /*unused*/) {
    return 0;
}

// In a child process, in a thread of a runtime of two workers.
void expect_abort_of_thread(void *(*fn)(void *), const std::string &words) {
    expect_abort(
        [fn] {
            const thrum_config config{2, 0, {THRUM_PREEMPT_NONE, 0, 0, 0}, {}};
            thrum_t thread;
            if (thrum_init(&config) == 0 && thrum_spawn(&thread, nullptr, fn, nullptr) == 0)
                thrum_join(thread, nullptr);
        },
        "thrum: misuse: " + words);
}

class MisusedCallInARuntime : public UltPlain {
  protected:
    void SetUp() override {
        UltPlain::SetUp();
        const thrum_config config{1, 0, {THRUM_PREEMPT_NONE, 0, 0, 0}, {}};
        ASSERT_EQ(thrum_init(&config), 0);
    }
    void TearDown() override {
        EXPECT_EQ(thrum_fini(), 0);
        UltPlain::TearDown();
    }
};

// --- regions ----------------------------------------------------------------------------------------------

TEST(MisusedCall, EndOfARegionThatWasNotBegun) {
    const std::string words = "thrum_nopreempt_end: no thrum_nopreempt_begin is open";
    expect_abort([] { thrum_nopreempt_end(); }, words);
    expect_abort_of_thread(
        [](void *arg) -> void * {
            thrum_nopreempt_begin();
            thrum_nopreempt_end();
            thrum_nopreempt_end();
            return arg;
        },
        words);
}

// --- functions that must return ---------------------------------------------------------------------------

TEST(MisusedCall, BlockingWhoseFunctionEndsItsKernelThread) {
    for (void *(*const fn)(void *) : {+[](void * /*unused*/) -> void * { pthread_exit(nullptr); },
                                      +[](void * /*unused*/) -> void * { thrum_exit(nullptr); }})
        expect_abort(
            [fn] {
                if (thrum_init(nullptr) == 0)
                    thrum_blocking(fn, nullptr, nullptr);
            },
            "thrum: misuse: thrum_blocking: the function must return");
}

TEST(MisusedCall, ExitOfASchedulersFunction) {
    expect_abort(
        [] {
            thrum_pool_t pool;
            thrum_sched_t sched;
            const thrum_config config{2, 0, {THRUM_PREEMPT_NONE, 0, 0, 0}, {}};
            if (thrum_init(&config) != 0 || thrum_pool_create(&pool, THRUM_POOL_FIFO) != 0 ||
                thrum_sched_create_user(
                    &sched, [](thrum_sched_t, void *) { thrum_exit(nullptr); }, nullptr, &pool, 1) != 0)
                return;
            thrum_worker_set_sched(1, sched);
            thrum_sleep(5 * THRUM_S);
        },
        "thrum: a scheduler's function must end by returning, not by thrum_exit()");
}

// --- schedulers and pools ---------------------------------------------------------------------------------

TEST(MisusedCall, RunOutsideAScheduler) {
    const std::string words = "thrum_run: the caller is no scheduler's function";
    expect_abort_of_thread(
        [](void *arg) -> void * {
            thrum_run(thrum_self());
            return arg;
        },
        words);
    expect_abort(
        [] {
            thrum_t thread;
            if (thrum_spawn(&thread, nullptr, nothing, nullptr) == 0)
                thrum_run(thread);
        },
        words);
}

TEST(MisusedCall, PushOfAThreadThatWasNotPopped) {
    if (!library_is_checked())
        GTEST_SKIP() << "the library is not checked";
    expect_abort_of_thread(
        [](void *arg) -> void * {
            thrum_pool_t pool;
            if (thrum_pool_create(&pool, THRUM_POOL_FIFO) == 0)
                thrum_pool_push(pool, thrum_self());
            return arg;
        },
        "thrum_pool_push: the thread is the caller");
    expect_abort_of_thread(
        [](void *arg) -> void * {
            thrum_pool_t pool;
            thrum_t thread;
            if (thrum_pool_create(&pool, THRUM_POOL_FIFO) != 0 || thrum_spawn(
                                                                      &thread, nullptr,
                                                                      [](void *own) {
                                                                          thrum_suspend();
                                                                          return own;
                                                                      },
                                                                      nullptr) != 0)
                return arg;
            thrum_sleep(10 * THRUM_MS);
            thrum_pool_push(pool, thread);
            return arg;
        },
        "thrum_pool_push: the thread waits, and was not popped from a pool");
}

// --- scopes -----------------------------------------------------------------------------------------------

TEST_F(MisusedCallInARuntime, AScopeThatHasNotBegunOrHasEndedHasNoMembers) {
    if (library_is_checked())
        GTEST_SKIP() << "a checked library aborts";
    thrum_scope_t scope = {};
    EXPECT_EQ(thrum_scope_spawn(&scope, nullptr, no_error, nullptr), EINVAL);
    ASSERT_EQ(thrum_scope_begin(&scope, UINT64_MAX), 0);
    EXPECT_EQ(thrum_scope_begin(&scope, UINT64_MAX), EINVAL) << "it has begun already";
    EXPECT_EQ(thrum_scope_spawn(&scope, nullptr, no_error, nullptr), 0);
    EXPECT_EQ(thrum_scope_end(&scope), 0);
    EXPECT_EQ(thrum_scope_spawn(&scope, nullptr, no_error, nullptr), EINVAL);
    ASSERT_EQ(thrum_scope_begin(&scope, UINT64_MAX), 0) << "again";
    EXPECT_EQ(thrum_scope_end(&scope), 0);
}

TEST(MisusedCall, ScopeThatIsNotOpen) {
    if (!library_is_checked())
        GTEST_SKIP() << "the library is not checked";
    expect_abort_of_thread(
        [](void *arg) -> void * {
            thrum_scope_t scope = {};
            thrum_scope_spawn(&scope, nullptr, no_error, nullptr);
            return arg;
        },
        "thrum_scope_spawn: this scope has not begun, or has ended");
    expect_abort_of_thread(
        [](void *arg) -> void * {
            thrum_scope_t scope;
            thrum_scope_begin(&scope, UINT64_MAX);
            thrum_scope_begin(&scope, UINT64_MAX);
            return arg;
        },
        "thrum_scope_begin: this scope has begun already");
}

TEST(MisusedCall, ReturnOutOfAScope) {
    if (!library_is_checked())
        GTEST_SKIP() << "the library is not checked";
    expect_abort_of_thread(
        [](void *arg) -> void * {
            static thrum_scope_t scope;
            thrum_scope_begin(&scope, UINT64_MAX);
            return arg;
        },
        "a thread returned between thrum_scope_begin and thrum_scope_end");
}

// --- the rest ---------------------------------------------------------------------------------------------

TEST(MisusedCall, OnceByItsFunction) {
    if (!library_is_checked())
        GTEST_SKIP() << "the library is not checked";
    for (const bool is_external : {false, true}) {
        void *(*const calls)(void *) = [](void *arg) -> void * {
            static thrum_once_t once = THRUM_ONCE_INITIALIZER;
            thrum_once_call(
                &once,
                [](void *) {
                    thrum_once_call(
                        &once, [](void *) {}, nullptr);
                },
                nullptr);
            return arg;
        };
        const std::string words = "thrum_once_call: the caller runs the function of this object already";
        if (is_external)
            expect_abort([calls] { calls(nullptr); }, words);
        else
            expect_abort_of_thread(calls, words);
    }
}

// Two threads on one stack would overwrite each other.
TEST_F(MisusedCallInARuntime, ManyThreadsDoNotShareAStackOfTheUsers) {
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    alignas(64) static std::array<char, THRUM_STACK_MIN> memory;
    ASSERT_EQ(thrum_attr_set_stack(&attr, memory.data(), memory.size()), 0);
    std::array<thrum_t, 2> threads{};
    EXPECT_EQ(thrum_spawn_many(threads.size(), threads.data(), &attr, nothing, nullptr, 0), EINVAL);
    ASSERT_EQ(thrum_attr_set_stack(&attr, nullptr, 0), 0);
    ASSERT_EQ(thrum_spawn_many(threads.size(), threads.data(), &attr, nothing, nullptr, 0), 0);
    for (const thrum_t thread : threads)
        EXPECT_EQ(thrum_join(thread, nullptr), 0);
}

TEST_F(MisusedCallInARuntime, BytesThatWereNeverAHandleAreNoCall) {
    const std::array<std::array<std::uint64_t, 2>, 5> bytes = {
        {{0, 0}, {8, 8}, {UINT64_MAX, UINT64_MAX}, {0xffffffff, 0xfffffff}, {8, 0x7f0000000040}}};
    for (const auto &[ticket, address] : bytes)
        EXPECT_EQ(thrum_call_cancel({{ticket, address}}), EINVAL) << ticket << ' ' << address;
    thrum_call_t call;
    ASSERT_EQ(thrum_call_at(
                  &call, UINT64_MAX, [](void *) {}, nullptr),
              0);
    thrum_call_t other = call;
    other.opaque[0] += 8;
    EXPECT_EQ(thrum_call_cancel(other), EINVAL);
    EXPECT_EQ(thrum_call_cancel(call), 0);
    EXPECT_EQ(thrum_call_cancel(call), ESRCH);
}

} // namespace
