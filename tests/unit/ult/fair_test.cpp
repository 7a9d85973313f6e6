// SPDX-License-Identifier: Apache-2.0
//
// How a worker divides its time between threads that wait often, or sleep, and threads that compute (src/sched/pool/fair.h). What
// they have had is read from the CPU clock of the only worker's kernel thread, so other processes do not matter.
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <list>
#include <string>

#include "core.hpp"
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
        if (ULT_EMULATED || !default_preempts() || tool_forbids_preemption())
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

// --- how long each source may be passed over ---------------------------------------------------------------------------

enum Source { DEQUE, YIELDED, BOUND, OUTSIDE, FLOODED };

class FairBound : public Fair, public testing::WithParamInterface<Source> {};

std::string name_of_source(const testing::TestParamInfo<Source> &source) {
    const char *const names[] = {"TheDeque", "TheYielded", "TheBound", "TheOutside", "AFlood"};
    return names[source.param];
}

INSTANTIATE_TEST_SUITE_P(Of, FairBound, testing::Values(DEQUE, YIELDED, BOUND, OUTSIDE, FLOODED),
                         name_of_source);

// CPU time of the kernel thread with this id, read from any thread.
uint64_t cpu_of(pid_t tid) {
    timespec now{};
    constexpr clockid_t kOfAThread = 6;
    EXPECT_EQ(clock_gettime(static_cast<clockid_t>(~static_cast<unsigned>(tid) << 3) | kOfAThread, &now), 0);
    return static_cast<uint64_t>(now.tv_sec) * THRUM_S + static_cast<uint64_t>(now.tv_nsec);
}

// Two threads hand over to each other all the time: whatever one of them wakes is newer than all that waits. Each source is
// due after 100 us of that, however many short units wait there. The limit has room for a turn of each.
TEST_P(FairBound, IsServedBesideAPair) {
    constexpr int kTimes = 50;
    constexpr uint64_t kLimit = 5 * THRUM_MS;
    const Preempting runtime(1, THRUM_PREEMPT_LEND, 10000);
    std::atomic<bool> over{false};
    Handing handing;
    std::vector<Thread> pair;
    pid_t worker = 0;
    Thread([&] { worker = gettid(); }).join();
    for (const bool first : {true, false})
        pair.emplace_back([&, first] {
            while (!over)
                hand_over(&handing, first);
        });

    std::vector<uint64_t> waits;
    const auto served = [&](uint64_t since) { waits.push_back(cpu_of(worker) - since); };
    const auto spawn_one = [&](const thrum_attr_t &attr) {
        const uint64_t since = cpu_of(worker);
        Light([&served, since] { served(since); }, &attr).join();
    };
    thrum_attr_t bound;
    thrum_attr_init(&bound);
    EXPECT_EQ(thrum_attr_set_worker(&bound, 0), 0);
    const thrum_attr_t queued = attr_queued();
    const auto times = [&](const std::function<void()> &act) {
        for (int i = 0; i < kTimes; i++)
            act();
    };
    switch (GetParam()) {
    case DEQUE: { // below what its creator and another hand over
        Handing own;
        Thread partner([&] {
            while (!over)
                hand_over(&own, false);
        });
        Thread([&] {
            times([&] {
                std::atomic<bool> begun{false};
                const uint64_t since = cpu_of(worker);
                const Light child([&] { served(since), begun = true; }, &queued);
                while (!begun && cpu_of(worker) - since < 2 * kLimit)
                    hand_over(&own, true);
            });
        }).join();
        over = true;
        thrum_sem_post(&own.there);
        break;
    }
    case YIELDED:
        Thread([&] {
            times([&] {
                const uint64_t since = cpu_of(worker);
                thrum_yield();
                served(since);
            });
        }).join();
        break;
    case BOUND: Thread([&] { times([&] { spawn_one(bound); }); }).join(); break;
    case OUTSIDE: External([&] { times([&] { spawn_one(queued); }); }).join(); break;
    case FLOODED: // one from outside, which waits in a queue with many that yield
        std::vector<Thread> yielding;
        for (int i = 0; i < 200 / kStressDivisor; i++)
            yielding.emplace_back([&] {
                while (!over)
                    thrum_yield();
            });
        External([&] { times([&] { spawn_one(queued); }); }).join();
        over = true;
        yielding.clear();
        break;
    }
    over = true;
    thrum_sem_post(&handing.there);
    thrum_sem_post(&handing.back);
    pair.clear();
    ASSERT_EQ(waits.size(), static_cast<size_t>(kTimes));
    EXPECT_LT(*std::max_element(waits.begin(), waits.end()), kLimit);
}

// --- what a source owes after its turn ---------------------------------------------------------------------------------

// A turn of 20 ms from the queue, which began when both sources were due.
fair settled(bool is_bounded) {
    while (ticks_per_us() == 0) { // it is measured
    }
    const uint64_t begun = 1000 * ticks_per_us();
    fair fair{};
    fair_begin(&fair, FAIR_OTHERS, 0, is_bounded, begun);
    fair_settle(&fair, begun + 20000 * ticks_per_us());
    fair.due[FAIR_OTHERS] -= begun + 20000 * ticks_per_us();
    fair.due[FAIR_DEQUE] -= begun;
    return fair;
}

// A tick would have ended the turn: the kernel ran other things meanwhile.
TEST(FairDebt, IsAtMostATurnWhereATickEndsIt) {
    const fair fair = settled(true);
    EXPECT_EQ(fair.due[FAIR_OTHERS], TURN_US * ticks_per_us());
    EXPECT_EQ(fair.due[FAIR_DEQUE], TURN_US * ticks_per_us());
}

TEST(FairDebt, IsAllThatRanWhereNoneDoes) {
    const fair fair = settled(false);
    EXPECT_EQ(fair.due[FAIR_OTHERS], 20000 * ticks_per_us());
    EXPECT_EQ(fair.due[FAIR_DEQUE], 20000 * ticks_per_us());
}

// Neither does one end a tasklet: the pair has as much time after each as that took.
TEST_F(Fair, TaskletsThatComputeLeaveAPairItsShare) {
    constexpr int kTasklets = 10;
    constexpr uint64_t kEach = 10 * THRUM_MS;
    const Preempting runtime(1, THRUM_PREEMPT_LEND, 100000);
    std::atomic<bool> over{false};
    std::atomic<int> begun{0};
    Handing handing;
    std::vector<Thread> pair;
    uint64_t first_at = 0, last_at = 0; // CPU time of the worker
    for (const bool first : {true, false})
        pair.emplace_back([&, first] {
            while (!over)
                hand_over(&handing, first);
        });
    External([&] { // one waits while another runs
        thrum_attr_t attr;
        thrum_attr_init(&attr);
        EXPECT_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_TASKLET), 0);
        std::list<Light> tasklets;
        const auto compute = [&] {
            const uint64_t since = cpu_now();
            if (begun++ == 0)
                first_at = since;
            while ((last_at = cpu_now()) - since < kEach) {
            }
        };
        for (int i = 0; i < kTasklets; i++) {
            tasklets.emplace_back(compute, &attr);
            while (begun <= i)
                usleep(100);
        }
    })
        .join();
    over = true;
    thrum_sem_post(&handing.there);
    thrum_sem_post(&handing.back);
    pair.clear();
    const double tasklets = kTasklets * static_cast<double>(kEach);
    EXPECT_GT(1 - tasklets / static_cast<double>(last_at - first_at), 0.15);
}

// No tick is sent for a wake-up by another kernel thread: it waits for the slice to end, and at most for the next one, if a
// tick came right after the worker had switched.
TEST_F(Fair, AThreadFromOutsideWaitsForASliceBesideOneThatComputes) {
    constexpr int kTimes = 30;
    constexpr unsigned kSliceUs = 2000;
    const Preempting runtime(1, THRUM_PREEMPT_LEND, kSliceUs);
    std::atomic<bool> over{false};
    std::atomic<pid_t> worker{0};
    Thread computes([&] {
        worker = gettid();
        while (!over) {
        }
    });
    std::vector<uint64_t> waits;
    External spawns([&] {
        while (worker == 0)
            std::this_thread::yield();
        for (int i = 0; i < kTimes; i++) {
            const uint64_t since = cpu_of(worker);
            Light([&waits, &worker, since] { waits.push_back(cpu_of(worker) - since); }).join();
        }
    });
    spawns.join();
    over = true;
    computes.join();
    ASSERT_EQ(waits.size(), static_cast<size_t>(kTimes));
    EXPECT_LT(*std::max_element(waits.begin(), waits.end()), 3 * kSliceUs * THRUM_US);
}

} // namespace
