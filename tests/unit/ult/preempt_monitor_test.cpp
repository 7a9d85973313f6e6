// SPDX-License-Identifier: Apache-2.0
//
// Ticks from the monitor, where there are no timers. That all else is as with timers say the tests of preemption, which
// ctest runs with THRUM_TICK=monitor once more (ult.by-monitor).
#include <sys/resource.h>
#include <sys/syscall.h>

#include <csignal>

#include "../../refuse_call.h"
#include "faults.hpp"
#include "preempt.hpp"

namespace {

class Monitor : public Interrupted {};

thrum_config config_of(unsigned workers, unsigned source) {
    return {workers, 0, {THRUM_PREEMPT_LEND, kShort, source, 0}, {}};
}

// On one worker.
bool takes_turns() {
    wait_for_each_other();
    return preemptions() > 0;
}

// 0: it took turns. 77: it cannot be tried here. In a child of fork.
int without_timers(unsigned mode, unsigned source) {
    if (!refuse_call(SYS_timer_create, EAGAIN))
        return 77;
    const thrum_config config{1, 0, {mode, kShort, source, 0}, {}};
    const int error = thrum_init(&config);
    if (error != 0)
        return error;
    const bool turns = takes_turns();
    return thrum_fini() == 0 && turns ? 0 : 1;
}

} // namespace

TEST_F(Monitor, IsThereForAsLongAsTheRuntime) {
    const LeakCheck leaks;
    for (int i = 0; i < 20; i++) {
        const thrum_config config = config_of(1, THRUM_TICK_MONITOR);
        ASSERT_EQ(thrum_init(&config), 0);
        EXPECT_TRUE(takes_turns());
        ASSERT_EQ(thrum_fini(), 0);
    }
    leaks.expect_nothing_left();
}

TEST_F(Monitor, WithoutAKernelThreadForItThereIsNoRuntime) {
    const LeakCheck leaks;
    int error = EAGAIN;
    for (int well = 0; error != 0; well++) {
        ASSERT_LT(well, 100);
        faults.create.after(well, 1, EAGAIN);
        const thrum_config config = config_of(1, THRUM_TICK_MONITOR);
        error = thrum_init(&config);
        EXPECT_TRUE(error == 0 || error == EAGAIN);
    }
    faults_clear();
    EXPECT_TRUE(takes_turns());
    EXPECT_EQ(thrum_fini(), 0);
    leaks.expect_nothing_left();
}

// No signal can be queued.
TEST_F(Monitor, WithoutSignalsThereIsNoRuntime) {
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_SIGPENDING, &before), 0);
    const rlimit none{0, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_SIGPENDING, &none), 0);
    const thrum_config config = config_of(1, THRUM_TICK_MONITOR);
    EXPECT_EQ(thrum_init(&config), EAGAIN);
    ASSERT_EQ(setrlimit(RLIMIT_SIGPENDING, &before), 0);
}

// The only tick that is due, at the end of a sleep, finds that no signal can be queued.
TEST_F(Monitor, TriesAgainWhereASignalCannotBeQueued) {
    const thrum_config config{1, 0, {THRUM_PREEMPT_LEND, 10000, THRUM_TICK_MONITOR, 0}, {}};
    ASSERT_EQ(thrum_init(&config), 0);
    {
        const uint64_t awake = in_ms(300);
        std::atomic<bool> asleep{false}, slept{false};
        Thread sleeps([&] {
            asleep = true;
            thrum_sleep_until(awake);
            slept = true;
        });
        Thread computes([&] {
            wait_for(asleep);
            while (thrum_now() < awake - 200 * THRUM_MS) { // by then it is known to be alone
            }
            rlimit before{};
            EXPECT_EQ(getrlimit(RLIMIT_SIGPENDING, &before), 0);
            const rlimit none{0, before.rlim_max};
            EXPECT_EQ(setrlimit(RLIMIT_SIGPENDING, &none), 0);
            const bool in_time = thrum_now() < awake;
            while (thrum_now() < awake + 50 * THRUM_MS) {
            }
            EXPECT_FALSE(in_time && slept);
            EXPECT_EQ(setrlimit(RLIMIT_SIGPENDING, &before), 0);
            for (const uint64_t end = in_ms(5000); thrum_now() < end && !slept;) {
            }
            EXPECT_TRUE(slept);
        });
    }
    EXPECT_EQ(thrum_fini(), 0);
}

TEST_F(Monitor, StepsInWhereTheSystemHasNoTimers) {
    for (const unsigned mode : {THRUM_PREEMPT_LEND, THRUM_PREEMPT_KLT}) {
        const int status = in_child([mode] { return without_timers(mode, THRUM_TICK_DEFAULT); }, 60);
        ASSERT_TRUE(WIFEXITED(status)) << status;
        if (WEXITSTATUS(status) == 77)
            GTEST_SKIP() << "no seccomp filters here";
        EXPECT_EQ(WEXITSTATUS(status), 0);
    }
}

TEST_F(Monitor, DoesNotWhereTimersAreAskedFor) {
    const int status = in_child([] { return without_timers(THRUM_PREEMPT_LEND, THRUM_TICK_TIMER); }, 60);
    ASSERT_TRUE(WIFEXITED(status)) << status;
    if (WEXITSTATUS(status) == 77)
        GTEST_SKIP() << "no seccomp filters here";
    EXPECT_EQ(WEXITSTATUS(status), EAGAIN);
}

// The signal is blocked for a thousand periods: one waits then, not a thousand.
TEST_F(Monitor, SignalsDoNotPileUp) {
    const thrum_config config = config_of(1, THRUM_TICK_MONITOR);
    ASSERT_EQ(thrum_init(&config), 0);
    std::atomic<bool> over{false};
    Thread computes([&] { wait_for(over); });
    Thread blocks([&] {
        sigset_t signal, before;
        sigemptyset(&signal);
        sigaddset(&signal, SIGRTMIN + 4);
        pthread_sigmask(SIG_BLOCK, &signal, &before);
        const uint64_t ticked = ticks(), end = in_ms(kShort);
        while (thrum_now() < end) {
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        const uint64_t came = ticks() - ticked;
        EXPECT_LE(came, 3U + (thrum_now() - end) / (kShort * THRUM_US)); // those since, if this was held up
        over = true;
    });
    blocks.join();
    computes.join();
    EXPECT_EQ(thrum_fini(), 0);
}
