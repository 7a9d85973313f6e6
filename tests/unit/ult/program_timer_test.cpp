// SPDX-License-Identifier: Apache-2.0
//
// thrum_timer_start and thrum_timer_stop; thrum_suspend_until.
#include <errno.h>
#include <thrum/time.h>

#include "ult.hpp"

namespace {

class ProgramTimer : public Ult {};

// What a timer's calls saw. Only they write here, one at a time, until the timer is stopped.
struct Calls {
    explicit Calls(std::uint64_t begins, std::uint64_t every = 0) : first(begins), period(every) {}

    std::uint64_t first, period;
    std::atomic<int> count{0};
    std::atomic<bool> inside{false};
    int early = 0, together = 0; // calls before their moment, or within another
    std::function<void()> work;

    static void call(void *arg) {
        auto *calls = static_cast<Calls *>(arg);
        const bool alone = !calls->inside.exchange(true);
        calls->together += !alone;
        calls->early += thrum_now() < calls->first + static_cast<unsigned>(calls->count) * calls->period;
        if (calls->work)
            calls->work();
        calls->inside = false;
        calls->count++;
    }
};

TEST_P(ProgramTimer, CallsOnce) {
    Calls calls(thrum_now() + 3 * THRUM_MS);
    thrum_timer_t timer = THRUM_TIMER_INITIALIZER;
    ASSERT_EQ(thrum_timer_start(&timer, calls.first, 0, Calls::call, &calls), 0);
    EXPECT_TRUE(eventually([&] { return calls.count == 1; }));
    thrum_sleep(2 * THRUM_MS);
    EXPECT_EQ(thrum_timer_stop(&timer), 0);
    EXPECT_EQ(calls.count, 1);
    EXPECT_EQ(calls.early, 0);
}

TEST_P(ProgramTimer, CallsAgainAndAgainUntilItIsStopped) {
    in_ult([] {
        Calls calls(thrum_now() + THRUM_MS, THRUM_MS);
        thrum_timer_t timer;
        thrum_timer_init(&timer);
        ASSERT_EQ(thrum_timer_start(&timer, calls.first, calls.period, Calls::call, &calls), 0);
        EXPECT_TRUE(eventually([&] { return calls.count >= 10; }));
        ASSERT_EQ(thrum_timer_stop(&timer), 0);
        const int count = calls.count;
        thrum_sleep(5 * THRUM_MS);
        EXPECT_EQ(calls.count, count);
        EXPECT_EQ(calls.early, 0);
        EXPECT_EQ(calls.together, 0);
    });
}

// A call that takes longer than the period leaves out what has passed: there are no more calls than moments.
TEST_P(ProgramTimer, LeavesOutWhatHasPassed) {
    Calls calls(thrum_now(), 100 * THRUM_US);
    calls.work = [] { thrum_sleep(THRUM_MS); };
    thrum_timer_t timer = THRUM_TIMER_INITIALIZER;
    ASSERT_EQ(thrum_timer_start(&timer, calls.first, calls.period, Calls::call, &calls), 0);
    EXPECT_TRUE(eventually([&] { return calls.count >= 5; }));
    ASSERT_EQ(thrum_timer_stop(&timer), 0);
    // Each call has slept over ten moments.
    const std::uint64_t moments = (thrum_now() - calls.first) / calls.period + 1;
    EXPECT_LE(static_cast<std::uint64_t>(calls.count) * 10, moments + 10);
    EXPECT_EQ(calls.together, 0);
}

// The one that is under way is waited for; what it writes after that would be seen.
TEST_P(ProgramTimer, StoppingWaitsForTheCall) {
    for (int round = 0; round < 20; round++) {
        Calls calls(thrum_now());
        std::atomic<bool> begun{false};
        calls.work = [&begun] {
            begun = true;
            for (int i = 0; i < 5; i++)
                thrum_yield();
            thrum_sleep(50 * THRUM_US);
        };
        thrum_timer_t timer = THRUM_TIMER_INITIALIZER;
        ASSERT_EQ(thrum_timer_start(&timer, calls.first, 0, Calls::call, &calls), 0);
        EXPECT_TRUE(eventually([&] { return begun.load(); }));
        ASSERT_EQ(thrum_timer_stop(&timer), 0);
        EXPECT_EQ(calls.count, 1);
    }
}

TEST_P(ProgramTimer, CanBeStoppedBeforeItsExpiryAndStartedAgain) {
    Calls never(thrum_now() + 3600 * THRUM_S);
    thrum_timer_t timer = THRUM_TIMER_INITIALIZER;
    for (int round = 0; round < 5; round++) {
        ASSERT_EQ(thrum_timer_start(&timer, never.first, THRUM_S, Calls::call, &never), 0);
        EXPECT_EQ(thrum_timer_start(&timer, never.first, 0, Calls::call, &never), EBUSY);
        ASSERT_EQ(thrum_timer_stop(&timer), 0);
        EXPECT_EQ(thrum_timer_stop(&timer), EINVAL);
    }
    EXPECT_EQ(never.count, 0);
    EXPECT_EQ(thrum_timer_start(&timer, 0, 0, nullptr, nullptr), EINVAL);
}

TEST_P(ProgramTimer, FromWithinItEndsTheCallsButIsNotStopped) {
    thrum_timer_t timer = THRUM_TIMER_INITIALIZER;
    Calls calls(thrum_now(), 10 * THRUM_US);
    int error = 0;
    calls.work = [&] { error = thrum_timer_stop(&timer); };
    ASSERT_EQ(thrum_timer_start(&timer, calls.first, calls.period, Calls::call, &calls), 0);
    EXPECT_TRUE(eventually([&] { return calls.count > 0; }));
    thrum_sleep(2 * THRUM_MS);
    EXPECT_EQ(thrum_timer_stop(&timer), 0);
    EXPECT_EQ(error, EDEADLK);
    EXPECT_EQ(calls.count, 1);
}

TEST_P(ProgramTimer, IsStoppedUntilADeadline) {
    thrum_timer_t timer = THRUM_TIMER_INITIALIZER;
    Calls calls(thrum_now(), THRUM_US);
    thrum_event_t end = THRUM_EVENT_INITIALIZER;
    calls.work = [&] { thrum_event_wait(&end); };
    EXPECT_EQ(thrum_timer_stop_until(&timer, UINT64_MAX), EINVAL);
    ASSERT_EQ(thrum_timer_start(&timer, calls.first, calls.period, Calls::call, &calls), 0);
    EXPECT_TRUE(eventually([&] { return calls.inside.load(); }));
    EXPECT_EQ(thrum_timer_stop_until(&timer, 0), ETIMEDOUT);
    const uint64_t deadline = thrum_now() + THRUM_MS;
    EXPECT_EQ(thrum_timer_stop_until(&timer, deadline), ETIMEDOUT);
    EXPECT_GE(thrum_now(), deadline);
    EXPECT_EQ(thrum_timer_start(&timer, 0, 0, Calls::call, &calls), EBUSY) << "it is not stopped";
    thrum_event_set(&end);
    EXPECT_EQ(thrum_timer_stop_until(&timer, thrum_now() + 3600 * THRUM_S), 0);
    EXPECT_EQ(calls.count, 1) << "no further call began";
    EXPECT_EQ(thrum_timer_stop(&timer), EINVAL);
}

TEST_P(ProgramTimer, OfExternalKernelThreads) {
    Calls calls(thrum_now(), 100 * THRUM_US);
    int started = -1, stopped = -1;
    External external([&] {
        thrum_timer_t timer = THRUM_TIMER_INITIALIZER;
        started = thrum_timer_start(&timer, calls.first, calls.period, Calls::call, &calls);
        EXPECT_TRUE(eventually([&] { return calls.count >= 3; }));
        stopped = thrum_timer_stop(&timer);
    });
    external.join();
    EXPECT_EQ(started, 0);
    EXPECT_EQ(stopped, 0);
    EXPECT_EQ(calls.early, 0);
}

ULT_OVER_WORKERS(ProgramTimer);

// On one worker without preemption, so that a call has either begun or not when the stopper looks.
class ProgramTimerInTurn : public UltInTurn {};

// Between the expiry and the call, too. The stopper is a call with about the same expiry: both have expired when the worker
// looks, and in some rounds the stopper runs before the timer's thread.
TEST_P(ProgramTimerInTurn, NoCallBeginsAfterAStopThatTimedOut) {
    struct Stop {
        thrum_timer_t *timer;
        const Calls *calls;
        int error = -1, begun = -1;
        static void call(void *arg) {
            auto *stop = static_cast<Stop *>(arg);
            stop->begun = stop->calls->count;
            stop->error = thrum_timer_stop_until(stop->timer, 0);
        }
    };
    for (int round = 0; round < 20; round++) {
        Calls calls(thrum_now() + 200 * THRUM_US);
        const std::uint64_t stops_at = round % 2 == 0 ? calls.first - 1 : calls.first + 1;
        thrum_timer_t timer = THRUM_TIMER_INITIALIZER;
        Stop stop{&timer, &calls};
        ASSERT_EQ(thrum_timer_start(&timer, calls.first, 0, Calls::call, &calls), 0);
        ASSERT_EQ(thrum_call_at(nullptr, stops_at, Stop::call, &stop), 0);
        thrum_yield();
        while (thrum_now() <= calls.first + 1) {
        }
        ASSERT_TRUE(eventually([&stop] { return stop.error != -1; }));
        EXPECT_TRUE(stop.error == 0 || stop.error == ETIMEDOUT) << stop.error;
        EXPECT_EQ(thrum_timer_stop(&timer), stop.error == 0 ? EINVAL : 0);
        EXPECT_EQ(calls.count, stop.begun) << "in round " << round;
    }
}

INSTANTIATE_TEST_SUITE_P(Workers, ProgramTimerInTurn, testing::Values(1U), name_of_workers);

// --- thrum_suspend_until ----------------------------------------------------------------------------------

class SuspendUntil : public Ult {};

TEST_P(SuspendUntil, EndsAtTheDeadlineAndNotBefore) {
    in_ult([] {
        const std::uint64_t until = thrum_now() + 2 * THRUM_MS;
        EXPECT_EQ(thrum_suspend_until(until), ETIMEDOUT);
        EXPECT_GE(thrum_now(), until);
        EXPECT_EQ(thrum_suspend_until(0), ETIMEDOUT);
    });
}

TEST_P(SuspendUntil, TakesAResumeThatCameBefore) {
    in_ult([] {
        thrum_resume(thrum_self());
        EXPECT_EQ(thrum_suspend_until(0), 0);
        EXPECT_EQ(thrum_suspend_until(0), ETIMEDOUT); // it counts once
        thrum_resume(thrum_self());
        EXPECT_EQ(thrum_suspend_until(UINT64_MAX), 0);
    });
}

TEST_P(SuspendUntil, IsResumed) {
    std::atomic<int> error{-1};
    Light waits([&error] { error = thrum_suspend_until(thrum_now() + 3600 * THRUM_S); });
    thrum_sleep(THRUM_MS);
    EXPECT_EQ(error, -1);
    thrum_resume(waits.handle());
    waits.join();
    EXPECT_EQ(error, 0);
}

// Deadline and resume at about the same moment: each wait ends once, and a resume that came too late is for the next.
TEST_P(SuspendUntil, ALateResumeIsForTheNextTime) {
    constexpr int kRounds = 2000 / kStressDivisor;
    std::atomic<int> resumed{0}, taken{0};
    std::atomic<bool> over{false};
    Light waits([&] {
        while (!over)
            taken += thrum_suspend_until(thrum_now() + 20 * THRUM_US) == 0;
    });
    External resumes([&] {
        for (int i = 0; i < kRounds; i++) {
            const int before = taken;
            thrum_resume(waits.handle());
            resumed++;
            EXPECT_TRUE(eventually([&] { return taken > before; }));
        }
        over = true;
    });
    resumes.join();
    waits.join();
    EXPECT_EQ(resumed, kRounds);
    EXPECT_EQ(taken, kRounds);
}

TEST_P(SuspendUntil, CanBeCancelled) {
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    ASSERT_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_CANCELLABLE), 0);
    thrum_t thread = nullptr;
    void *result = nullptr;
    ASSERT_EQ(thrum_spawn(
                  &thread, &attr,
                  [](void *arg) -> void * {
                      thrum_suspend_until(thrum_now() + 3600 * THRUM_S);
                      return arg;
                  },
                  nullptr),
              0);
    EXPECT_EQ(thrum_cancel(thread), 0);
    EXPECT_EQ(thrum_join(thread, &result), 0);
    EXPECT_EQ(result, THRUM_CANCELED);
}

TEST_P(SuspendUntil, IsForUlts) {
    int error = 0;
    External external([&error] { error = thrum_suspend_until(0); });
    external.join();
    EXPECT_EQ(error, EPERM);
}

ULT_OVER_WORKERS(SuspendUntil);

} // namespace
