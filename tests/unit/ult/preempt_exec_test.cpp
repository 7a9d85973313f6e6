// SPDX-License-Identifier: Apache-2.0
//
// A program that is preempted becomes another one (exec): a signal of the library's that was sent to its kernel thread, and
// has not come, must not come to that one, which has no handler for it.
#include <signal.h>
#include <unistd.h>

#include <tuple>

#include "pools.hpp"
#include "preempt.hpp"

namespace {

sigset_t all_signals() {
    sigset_t all;
    sigfillset(&all);
    return all;
}

// On a worker that has all signals blocked, when one has been sent there at once, and ticks, if they are the monitor's.
int becomes_another(unsigned mode, thrum_tick_source source) {
    enum { FEW = 50 }; // slices
    const thrum_config config{2, 0, {mode, kSlice, source, 0}, {}};
    if (thrum_init(&config) != 0)
        return 10;
    std::atomic<bool> is_deaf{false}, is_sent{false};
    const PoolOf pool(THRUM_POOL_PRIORITY);
    const SchedOn on(1, sched_of(THRUM_SCHED_FIRST, {pool.pool}));
    const auto spawn = [&](unsigned priority, std::function<void()> work) {
        thrum_attr_t attr = pool.attr();
        EXPECT_EQ(thrum_attr_set_priority(&attr, priority), 0);
        return Light(std::move(work), &attr);
    };
    Light low = spawn(1, [&] {
        const sigset_t all = all_signals();
        pthread_sigmask(SIG_SETMASK, &all, nullptr);
        is_deaf = true;
        wait_for(is_sent);
        execl("/proc/self/exe", "unit-ult", "--gtest_also_run_disabled_tests",
              "--gtest_filter=Modes/Exec.DISABLED_TakesWhatIsPending/0", nullptr);
        _exit(20);
    });
    wait_for(is_deaf);
    Light high = spawn(2, [] {});
    for (const uint64_t until = thrum_now() + FEW * kSlice * THRUM_US; thrum_now() < until;) {
    }
    is_sent = true;
    for (;;)
        pause();
}

class Exec : public Interrupted,
             public testing::WithParamInterface<std::tuple<unsigned, thrum_tick_source>> {};

INSTANTIATE_TEST_SUITE_P(Modes, Exec,
                         testing::Combine(kSafeModes, testing::Values(THRUM_TICK_TIMER, THRUM_TICK_MONITOR)));

} // namespace

TEST_P(Exec, WhatIsPendingDoesNotEndTheNextProgram) {
    if (ULT_EMULATED)
        GTEST_SKIP() << "there the program is the emulator";
    const unsigned mode = std::get<0>(GetParam());
    const thrum_tick_source source = std::get<1>(GetParam());
    EXPECT_EQ(in_child([=] { return becomes_another(mode, source); }), 0);
}

// That program.
TEST_P(Exec, DISABLED_TakesWhatIsPending) {
    sigset_t pending;
    sigpending(&pending);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        EXPECT_EQ(sigismember(&pending, number), 0) << number;
    const sigset_t all = all_signals();
    EXPECT_EQ(pthread_sigmask(SIG_UNBLOCK, &all, nullptr), 0);
}
