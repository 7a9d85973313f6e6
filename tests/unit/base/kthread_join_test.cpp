// SPDX-License-Identifier: Apache-2.0
//
// The kthread layer: every answer of join and detach.
#include "layer.hpp"

namespace {

void *number(uintptr_t value) {
    return reinterpret_cast<void *>(value);
}

timespec in_ms(clockid_t clock, long ms) {
    timespec time{};
    clock_gettime(clock, &time);
    time.tv_nsec += ms % 1000 * 1000000;
    time.tv_sec += ms / 1000 + time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

int join_try(kthread *thread, void **result = nullptr) {
    return kthread_join(thread, result, KTHREAD_JOIN_TRY, CLOCK_REALTIME, nullptr);
}

int join_until(kthread *thread, clockid_t clock, const timespec &deadline, void **result = nullptr) {
    return kthread_join(thread, result, KTHREAD_JOIN_WAIT, clock, &deadline);
}

int join_wait(kthread *thread, void **result = nullptr) {
    return kthread_join(thread, result, KTHREAD_JOIN_WAIT, CLOCK_REALTIME, nullptr);
}

// Each test has one job that runs until it is let go.
class KthreadJoin : public Layer {
  protected:
    Started hold(bool detached = false) {
        return start(
            [this]() -> void * {
                eventually([this] { return go_.load(); });
                return number(7);
            },
            detached);
    }
    static void wait_until_ended(const Started &started) {
        EXPECT_TRUE(eventually([&] { return load_acquire(&started.thread->life) >= LIFE_ENDED; }));
    }
    static bool awaited(const Started &started) {
        return load_acquire(&started.thread->life) == LIFE_AWAITED;
    }
    std::atomic<bool> go_{false};
};

TEST_F(KthreadJoin, WaitsForTheEnd) {
    Started held = hold();
    std::atomic<bool> joined{false};
    Plain joiner([&] {
        EXPECT_EQ(join(held), number(7));
        joined = true;
    });
    EXPECT_TRUE(eventually([&] { return awaited(held); }));
    a_while();
    EXPECT_FALSE(joined);
    go_ = true;
    EXPECT_TRUE(eventually([&] { return joined.load(); }));
}

TEST_F(KthreadJoin, TriesWithoutWaiting) {
    Started held = hold();
    EXPECT_EQ(join_try(held.thread), EBUSY);
    EXPECT_EQ(load_relaxed(&held.thread->joiner), 0u) << "and has not become the joiner";
    go_ = true;
    wait_until_ended(held);
    void *result = nullptr;
    EXPECT_EQ(join_try(held.thread, &result), 0);
    EXPECT_EQ(result, number(7));
}

TEST_F(KthreadJoin, DeadlinesOnBothClocks) {
    Started held = hold();
    for (clockid_t clock : {CLOCK_REALTIME, CLOCK_MONOTONIC}) {
        const uint64_t before = clock_monotonic_ns();
        EXPECT_EQ(join_until(held.thread, clock, in_ms(clock, 50)), ETIMEDOUT);
        EXPECT_GE(clock_monotonic_ns() - before, 49000000u);
        EXPECT_EQ(load_relaxed(&held.thread->life), LIFE_RUNNING) << "nobody waits any more";
    }
    EXPECT_EQ(join_until(held.thread, CLOCK_MONOTONIC, {0, 0}), ETIMEDOUT) << "long past";
    EXPECT_EQ(join_until(held.thread, CLOCK_REALTIME, {-1, 0}), ETIMEDOUT) << "before all time";
    EXPECT_EQ(join_until(held.thread, CLOCK_REALTIME, {1, 1000000000}), EINVAL);
    EXPECT_EQ(join_until(held.thread, CLOCK_MONOTONIC, {1, -1}), EINVAL);
    go_ = true;
    void *result = nullptr;
    EXPECT_EQ(join_until(held.thread, CLOCK_MONOTONIC, in_ms(CLOCK_MONOTONIC, 20000), &result), 0);
    EXPECT_EQ(result, number(7)) << "joinable after all these failures";
}

TEST_F(KthreadJoin, DeadlineInThePastOfAThreadThatHasEnded) {
    for (const timespec &past : {timespec{0, 0}, timespec{-1, 0}}) {
        Started held = start([] { return number(1); });
        wait_until_ended(held);
        EXPECT_EQ(join_until(held.thread, CLOCK_MONOTONIC, past), 0);
    }
}

TEST_F(KthreadJoin, OneJoinerAtATime) {
    Started held = hold();
    Plain first([&] { EXPECT_EQ(join(held), number(7)); });
    EXPECT_TRUE(eventually([&] { return awaited(held); }));
    EXPECT_EQ(join_wait(held.thread), EINVAL);
    EXPECT_EQ(kthread_detach(held.thread), 0) << "changes nothing";
    EXPECT_TRUE(awaited(held));
    go_ = true;
    first.join();
    EXPECT_EQ(thrum_cache_counters.idle, 1u);
}

TEST_F(KthreadJoin, NotOneself) {
    join(start([]() -> void * {
        EXPECT_EQ(join_wait(kthread_self_sigsafe()), EDEADLK);
        EXPECT_EQ(join_try(kthread_self_sigsafe()), EBUSY);
        return nullptr;
    }));
}

TEST_F(KthreadJoin, NotEachOther) {
    std::atomic<kthread *> second{nullptr};
    std::atomic<int> answer{-1};
    Started a = start([&]() -> void * {
        eventually([&] { return second != nullptr; });
        return number(static_cast<uintptr_t>(join_wait(second)));
    });
    Started b = start([&]() -> void * {
        eventually([&] { return load_acquire(&kthread_self_sigsafe()->joiner) == a.handle; });
        answer = join_wait(a.thread);
        return nullptr;
    });
    second = b.thread;
    EXPECT_EQ(join(a), number(0)) << "the first may wait";
    EXPECT_EQ(answer, EDEADLK);
}

TEST_F(KthreadJoin, NotAThreadThatWaitsForUsInLibcsJoin) {
    Started held = hold();
    held.thread->joins = pthread_self();
    EXPECT_EQ(join_wait(held.thread), EDEADLK);
    store_relaxed(&held.thread->cancelled, 1); // then it will not wait for ever
    go_ = true;
    EXPECT_EQ(join(held), number(7));
}

TEST_F(KthreadJoin, NotDetachedOnes) {
    Started held = hold();
    EXPECT_EQ(kthread_detach(held.thread), 0);
    EXPECT_EQ(join_wait(held.thread), EINVAL);
    EXPECT_EQ(join_try(held.thread), EBUSY) << "libc looks at that first";
    EXPECT_EQ(kthread_detach(held.thread), EINVAL);
    go_ = true;
    EXPECT_TRUE(eventually([] { return load_relaxed(&thrum_cache_counters.idle) == 1; }));
}

TEST_F(KthreadJoin, NotIdleOnes) {
    Started held = start([] { return number(0); });
    join(held);
    EXPECT_EQ(join_wait(held.thread), ESRCH);
    EXPECT_EQ(join_try(held.thread), ESRCH);
    EXPECT_EQ(kthread_detach(held.thread), ESRCH);
    EXPECT_EQ(thrum_cache_counters.idle, 1u);
}

TEST_F(KthreadJoin, DetachOfOneThatHasEndedListsIt) {
    Started held = start([] { return number(0); });
    wait_until_ended(held);
    EXPECT_EQ(thrum_cache_counters.idle, 0u);
    EXPECT_EQ(kthread_detach(held.thread), 0);
    EXPECT_EQ(thrum_cache_counters.idle, 1u);
}

// The joiner is a thread of libc's or of ours.
TEST_F(KthreadJoin, ACancelledJoinerLeavesTheThreadJoinable) {
    Started held = hold();
    {
        Plain joiner([&] {
            join_wait(held.thread);
            ADD_FAILURE() << "came back";
        });
        EXPECT_TRUE(eventually([&] { return awaited(held); }));
        pthread_cancel(joiner.handle());
        EXPECT_TRUE(joiner.cancelled());
    }
    EXPECT_EQ(load_relaxed(&held.thread->life), LIFE_RUNNING);
    EXPECT_EQ(load_relaxed(&held.thread->joiner), 0u);
    Started joiner = start([&]() -> void * {
        join_wait(held.thread);
        ADD_FAILURE() << "came back";
        return nullptr;
    });
    EXPECT_TRUE(eventually([&] { return awaited(held); }));
    gate_visit visit;
    ASSERT_TRUE(kthread_visit(joiner.thread, &visit));
    store_relaxed(&joiner.thread->cancelled, 1);
    libc.pthread_cancel(joiner.handle);
    gate_visit_end(&visit);
    EXPECT_EQ(join(joiner), PTHREAD_CANCELED);
    EXPECT_EQ(load_relaxed(&held.thread->life), LIFE_RUNNING);
    go_ = true;
    EXPECT_EQ(join(held), number(7));
}

TEST_F(KthreadJoin, CancellationIsDeferredAgainAfterAJoin) {
    Plain([&] {
        int type = -1;
        Started held = start([]() -> void * {
            a_while();
            return nullptr;
        });
        join(held);
        pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
        EXPECT_EQ(type, PTHREAD_CANCEL_DEFERRED);
    }).join();
}

} // namespace
