// SPDX-License-Identifier: Apache-2.0
//
// thrum_call_at and thrum_call_cancel.
#include <errno.h>
#include <limits.h>
#include <sys/wait.h>
#include <thrum/time.h>

#include <memory>
#include <vector>

#include "faults.hpp"
#include "ult.hpp"

namespace {

constexpr std::uint64_t kHour = 3600 * THRUM_S;

class CallAt : public Ult {};

// What calls count, and whether any was early.
struct Counted {
    std::atomic<int> calls{0}, early{0};
    std::uint64_t expiry = 0;

    static void call(void *arg) {
        auto *counted = static_cast<Counted *>(arg);
        counted->early += thrum_now() < counted->expiry;
        counted->calls++;
    }
    int at(std::uint64_t moment, thrum_call_t *call = nullptr) {
        expiry = moment;
        return thrum_call_at(call, moment, Counted::call, this);
    }
    bool reaches(int count) {
        return eventually([this, count] { return calls >= count; });
    }
};

void calls_once() {
    Counted counted;
    thrum_call_t call;
    ASSERT_EQ(counted.at(thrum_now() + 2 * THRUM_MS, &call), 0);
    EXPECT_TRUE(counted.reaches(1));
    EXPECT_EQ(thrum_call_cancel(call), ESRCH);
    thrum_sleep(2 * THRUM_MS);
    EXPECT_EQ(counted.calls, 1);
    EXPECT_EQ(counted.early, 0);
    for (const std::uint64_t past : {std::uint64_t{0}, thrum_now()}) { // at once, and without a handle
        ASSERT_EQ(counted.at(past), 0);
        EXPECT_TRUE(counted.reaches(2));
        counted.calls = 1;
    }
}

void is_cancelled() {
    Counted counted;
    for (const std::uint64_t expiry : {thrum_now() + kHour, UINT64_MAX}) {
        thrum_call_t call;
        ASSERT_EQ(counted.at(expiry, &call), 0);
        EXPECT_EQ(thrum_call_cancel(call), 0);
        EXPECT_EQ(thrum_call_cancel(call), ESRCH);
    }
    EXPECT_EQ(counted.calls, 0);
}

TEST_P(CallAt, CallsOnceWhereverItIsCalled) {
    calls_once();
    in_ult(calls_once);
    External external(calls_once);
    external.join();
}

TEST_P(CallAt, IsCancelledWhereverItIsCalled) {
    is_cancelled();
    in_ult(is_cancelled);
    External external(is_cancelled);
    external.join();
}

// A tasklet: it says so itself, may start the next call, and starts threads.
TEST_P(CallAt, MayCallAgainAndSpawn) {
    struct Chain {
        std::atomic<int> left{20}, spawned{0};
        static void call(void *arg) {
            auto *chain = static_cast<Chain *>(arg);
            thrum_spawn(
                nullptr, nullptr,
                [](void *self) -> void * {
                    thrum_sleep(THRUM_US);
                    static_cast<Chain *>(self)->spawned++;
                    return nullptr;
                },
                chain);
            if (--chain->left > 0) {
                EXPECT_EQ(thrum_call_at(nullptr, thrum_now() + 100 * THRUM_US, call, chain), 0);
            }
        }
    } chain;
    ASSERT_EQ(thrum_call_at(nullptr, 0, Chain::call, &chain), 0);
    EXPECT_TRUE(eventually([&] { return chain.spawned == 20; }));
}

TEST_P(CallAt, ManyAtATimeLeaveNothingBehind) {
    constexpr int kCalls = 4000 / kStressDivisor;
    std::atomic<int> called{0};
    const std::uint64_t now = thrum_now();
    std::vector<thrum_call_t> calls(kCalls);
    int cancelled = 0;
    for (int round = 0; round < 3; round++) {
        called = cancelled = 0;
        for (std::size_t i = 0; i < calls.size(); i++)
            ASSERT_EQ(thrum_call_at(
                          &calls[i], i % 2 == 0 ? now + kHour : thrum_now() + i % 1000 * THRUM_US,
                          [](void *count) { ++*static_cast<std::atomic<int> *>(count); }, &called),
                      0);
        for (std::size_t i = 0; i < calls.size(); i += 2)
            cancelled += thrum_call_cancel(calls[i]) == 0;
        EXPECT_EQ(cancelled, kCalls / 2);
        EXPECT_TRUE(eventually([&] { return called == kCalls / 2; }));
    }
    // A handle whose memory another call has now finds out.
    for (const thrum_call_t &call : calls)
        EXPECT_EQ(thrum_call_cancel(call), ESRCH);
}

// Cancelled at about its expiry, by ULTs and an external kernel thread at the same time: it is called, or exactly one of them
// has cancelled it.
TEST_P(CallAt, EitherIsCalledOrWasCancelled) {
    constexpr int kRounds = 3000 / kStressDivisor;
    struct Round {
        std::atomic<int> called{0}, cancelled{0}, tried{0};
    };
    std::vector<Round> rounds(kRounds);
    std::vector<thrum_call_t> calls(kRounds);
    std::atomic<int> started{0};
    const auto cancel_all = [&] {
        for (int i = 0; i < kRounds; i++) {
            EXPECT_TRUE(eventually([&] { return started > i; }));
            Round &round = rounds[static_cast<std::size_t>(i)];
            round.cancelled += thrum_call_cancel(calls[static_cast<std::size_t>(i)]) == 0;
            round.tried++;
        }
    };
    External external(cancel_all);
    Light ult(cancel_all);
    const auto start = [&](int i) {
        const auto at = static_cast<std::size_t>(i);
        ASSERT_EQ(thrum_call_at(
                      &calls[at], thrum_now() + static_cast<std::uint64_t>(i % 5) * 10 * THRUM_US,
                      [](void *called) { ++*static_cast<std::atomic<int> *>(called); }, &rounds[at].called),
                  0);
        started = i + 1;
        if (i % 10 == 0)
            thrum_yield();
    };
    External starter([&] { // half of them from outside
        for (int i = 0; i < kRounds / 2; i++)
            start(i);
    });
    starter.join();
    for (int i = kRounds / 2; i < kRounds; i++)
        start(i);
    external.join();
    ult.join();
    for (Round &round : rounds) {
        EXPECT_TRUE(eventually([&] { return round.called + round.cancelled == 1; }));
        EXPECT_EQ(round.tried, 2);
    }
}

// What has not begun when the runtime ends never does; its handle finds that out, in the next runtime, too.
TEST_P(CallAt, TheEndOfTheRuntimeDropsIt) {
    Counted counted;
    thrum_call_t call;
    ASSERT_EQ(counted.at(thrum_now() + kHour, &call), 0);
    ASSERT_EQ(thrum_fini(), 0);
    EXPECT_EQ(thrum_call_cancel(call), ESRCH);
    const thrum_config config{workers(), 0, {}, {}};
    ASSERT_EQ(thrum_init(&config), 0);
    thrum_call_t next;
    ASSERT_EQ(counted.at(thrum_now() + kHour, &next), 0);
    EXPECT_EQ(thrum_call_cancel(call), ESRCH);
    EXPECT_EQ(thrum_call_cancel(next), 0);
    EXPECT_EQ(counted.calls, 0);
}

TEST_P(CallAt, InAChildOfFork) {
    thrum_call_t before;
    Counted counted;
    ASSERT_EQ(counted.at(thrum_now() + kHour, &before), 0);
    const int status = in_child([&] {
        const thrum_config config{1, 0, {THRUM_PREEMPT_NONE, 0, 0, 0}, {}};
        return thrum_init(&config) == 0 && counted.at(0) == 0 && counted.reaches(1) && thrum_fini() == 0 ? 0
                                                                                                         : 1;
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_EQ(thrum_call_cancel(before), 0);
}

TEST_P(CallAt, RefusesWhatIsNoCall) {
    EXPECT_EQ(thrum_call_at(nullptr, 0, nullptr, nullptr), EINVAL);
    EXPECT_EQ(thrum_call_cancel(thrum_call_t{}), EINVAL);
}

ULT_OVER_WORKERS(CallAt);

class CallAtPlain : public UltPlain {};

// A program that never calls thrum_init: the first call starts a runtime, as thrum_spawn does.
TEST_F(CallAtPlain, StartsARuntime) {
    const int status = in_child([] {
        Counted counted;
        return counted.at(0) == 0 && counted.reaches(1) && thrum_workers() > 0 ? 0 : 1;
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// Without memory: EAGAIN, nothing is left of the call, and it works again when there is some. From a worker and from outside.
TEST_F(CallAtPlain, WithoutMemory) {
    const int status = in_child([] {
        const thrum_config config{1, 0, {THRUM_PREEMPT_NONE, 0, 0, 0}, {}};
        if (thrum_init(&config) != 0)
            return 1;
        // From outside a call takes a tasklet for its start as well, which the worker frees at any time: there the next call may
        // find memory again.
        const auto scarce = [](bool is_worker) {
            std::vector<thrum_call_t> calls;
            Counted counted;
            const std::uint64_t far = thrum_now() + kHour;
            calls.reserve(100000);
            faults.mmap.after(0, INT_MAX, ENOMEM);
            int error = 0;
            for (thrum_call_t call; calls.size() < calls.capacity() && (error = counted.at(far, &call)) == 0;)
                calls.push_back(call);
            EXPECT_EQ(error, EAGAIN);
            if (is_worker) {
                EXPECT_EQ(counted.at(far), EAGAIN);
            }
            for (const thrum_call_t &call : calls)
                EXPECT_EQ(thrum_call_cancel(call), 0);
            faults_clear();
            EXPECT_EQ(counted.at(0), 0);
            EXPECT_TRUE(counted.reaches(1));
        };
        scarce(true);
        External external([&] { scarce(false); });
        external.join();
        return thrum_fini() == 0 && !testing::Test::HasFailure() ? 0 : 1;
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

} // namespace
