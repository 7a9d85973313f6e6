// SPDX-License-Identifier: Apache-2.0
//
// How a worker divides its time between threads that wait often, or sleep, and threads that compute (src/sched/fair.h). What
// they have had is read from the CPU clock of the only worker's kernel thread, so that it does not matter who else wants the CPU.
#include <algorithm>
#include <ctime>
#include <list>
#include <string>

#include "preempt.hpp"

namespace {

constexpr uint64_t kLost = 50 * THRUM_US; // a longer time between two looks at the clock was others'

uint64_t cpu_now() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<uint64_t>(now.tv_sec) * THRUM_S + static_cast<uint64_t>(now.tv_nsec);
}

// CPU time of a thread that computes, and of all others meanwhile.
struct Shares {
    uint64_t own = 0, others = 0;
};

class Fair : public testing::Test {
  protected:
    void SetUp() override {
        if (ULT_EMULATED || !default_preempts())
            GTEST_SKIP() << "needs preemption at the machine's speed";
        alarm(60);
    }
    void TearDown() override { alarm(0); }
};

// Of one worker. `until`: how much it computes at most, should the others get nothing.
Shares compute_beside(const std::atomic<bool> &over, uint64_t until) {
    Shares shares;
    for (uint64_t then = cpu_now(); !over && shares.own < until;) {
        const uint64_t now = cpu_now();
        (now - then < kLost ? shares.own : shares.others) += now - then;
        then = now;
    }
    return shares;
}

struct Handing {
    thrum_sem_t there = THRUM_SEM_INITIALIZER(0), back = THRUM_SEM_INITIALIZER(0);
};

void hand_over(Handing *handing, bool first) {
    thrum_sem_post(first ? &handing->there : &handing->back);
    thrum_sem_wait(first ? &handing->back : &handing->there);
}

// `act` is called by two threads at a time, until the thread that computes has had a second.
Shares pairs_beside_one_that_computes(unsigned pairs, void (*act)(Handing *, bool)) {
    const Preempting runtime(1, THRUM_PREEMPT_LEND, 10000);
    std::atomic<bool> over{false};
    std::list<Handing> between;
    std::vector<Thread> threads;
    for (unsigned i = 0; i < pairs; i++) {
        Handing &handing = between.emplace_back();
        for (const bool first : {true, false})
            threads.emplace_back([&, first] {
                while (!over)
                    act(&handing, first);
            });
    }
    Shares shares;
    Thread computes([&] { shares = compute_beside(over, 500 * THRUM_MS); });
    computes.join();
    over = true;
    for (Handing &handing : between) {
        thrum_sem_post(&handing.there);
        thrum_sem_post(&handing.back);
    }
    threads.clear();
    return shares;
}

void expect_a_third_each(const Shares &shares) {
    const double all = static_cast<double>(shares.own + shares.others);
    EXPECT_GT(static_cast<double>(shares.own) / all, 0.3);
    EXPECT_GT(static_cast<double>(shares.others) / all, 0.3);
}

TEST_F(Fair, APairThatHandsOverHasItsShare) {
    expect_a_third_each(pairs_beside_one_that_computes(1, hand_over));
}

TEST_F(Fair, ManyPairsHaveTheirShare) {
    expect_a_third_each(pairs_beside_one_that_computes(50, hand_over));
}

// They are in the queue of those that have yielded, as the one that computes is: the order prefers neither.
TEST_F(Fair, ThreadsThatYieldDoNotKeepOneThatComputesAway) {
    const Shares shares = pairs_beside_one_that_computes(1, [](Handing *, bool) { thrum_yield(); });
    EXPECT_GT(static_cast<double>(shares.own) / static_cast<double>(shares.own + shares.others), 0.3);
}

// In a slice, which is longer here than all that the test may take, sleepers would wait for its end.
TEST_F(Fair, ASleeperDoesNotWaitForTheEndOfASlice) {
    constexpr unsigned kSliceUs = 100000, kSleeps = 20;
    const Preempting runtime(1, THRUM_PREEMPT_LEND, kSliceUs);
    std::atomic<bool> over{false};
    Shares shares;
    Thread computes([&] { shares = compute_beside(over, 60 * THRUM_S); });
    Thread sleeps([&] {
        thrum_sleep(THRUM_MS); // up to the end of the first slice: no tick has found the other thread before
        for (unsigned i = 0; i < kSleeps; i++)
            thrum_sleep(THRUM_MS);
        over = true;
    });
    sleeps.join();
    computes.join();
    EXPECT_LT(shares.own, (2 + kSleeps / 4) * kSliceUs * THRUM_US);
}

// Where none of the others precedes them, a turn that is over is no reason for more ticks.
TEST_F(Fair, ThreadsThatComputeHaveOneTickASlice) {
    constexpr unsigned kSliceUs = 10000;
    const Preempting runtime(1, THRUM_PREEMPT_LEND, kSliceUs);
    std::atomic<bool> over{false};
    std::vector<Thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back([&] {
            while (!over) {
            }
        });
    const uint64_t since = thrum_now(), before = sum_of(&thrum_worker_counters::ticks);
    Thread last([&] {
        while (thrum_now() - since < 400 * THRUM_MS) {
        }
    });
    last.join();
    const uint64_t slices = (thrum_now() - since) / (kSliceUs * THRUM_US);
    EXPECT_LT(sum_of(&thrum_worker_counters::ticks) - before, 4 * slices + 10);
    over = true;
    threads.clear();
}

} // namespace
