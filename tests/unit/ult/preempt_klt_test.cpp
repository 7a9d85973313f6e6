// SPDX-License-Identifier: Apache-2.0
//
// Mode klt: what a preemption costs there, and what it leaves as it is of the kernel thread that is kept (thrum-preemption(7), "klt";
// src/preempt/carrier.c). Which CPUs it may use: numa_test.cpp.
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

#include <atomic>
#include <csignal>
#include <vector>

#include "preempt.hpp"

namespace {

class Klt : public Interrupted {};

// Of all kernel threads of the process: how often one went to sleep.
uint64_t waits() {
    rusage usage{};
    EXPECT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
    return static_cast<uint64_t>(usage.ru_nvcsw);
}

} // namespace

// The kernel thread of the one wakes that of the other, and goes to sleep, and so it is on the way back. If there
// were one more in between, as where the worker's loop looks for a unit to resume, two would go to sleep each time.
// Nothing else sleeps meanwhile.
TEST_F(Klt, APreemptionIsOneHandoff) {
    if (ULT_EMULATED)
        GTEST_SKIP() << "the emulator waits by itself";
    constexpr uint64_t kTimes = 300;
    const thrum_config config{1, 0, {THRUM_PREEMPT_KLT, kSlice, THRUM_TICK_TIMER, 0}, {}};
    ASSERT_EQ(thrum_init(&config), 0);
    {
        std::atomic<bool> over{false};
        Thread computes([&] { wait_for(over); });
        Thread counts([&] {
            for (const uint64_t begun = preemptions() + 10; preemptions() < begun;) {
            }
            const uint64_t first = preemptions(), waits_before = waits();
            while (preemptions() < first + kTimes) {
            }
            const auto preempted = static_cast<double>(preemptions() - first),
                       waited = static_cast<double>(waits() - waits_before);
            over = true;
            EXPECT_LT(waited, 1.5 * preempted);
            EXPECT_GT(waited, 0.1 * preempted); // else this does not count what it means to
        });
    }
    EXPECT_EQ(thrum_fini(), 0);
}

// Main keeps its kernel thread. A mask that it has there for good is the worker's after 64 ticks, which may come in as many of its
// turns as they like, since the ticks in between are those of other kernel threads.
TEST_F(Klt, TheMaskOfAThreadThatWaitsOftenIsLearnt) {
    const thrum_config config{1, 0, {THRUM_PREEMPT_KLT, kShort, 0, 0}, {}};
    ASSERT_EQ(thrum_init(&config), 0);
    sigset_t one, before;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &one, &before), 0);
    {
        std::atomic<uint64_t> turns{0};
        std::atomic<bool> over{false};
        Thread computes([&] {
            while (!over)
                turns++;
        });
        bool preempted = false;
        for (int i = 0; i < 200 && !preempted; i++) {
            thrum_sleep(THRUM_MS);
            const uint64_t turns_before = turns;
            for (const uint64_t end = thrum_now() + 10 * kShort * THRUM_US; thrum_now() < end;) {
            }
            preempted = turns != turns_before;
        }
        EXPECT_TRUE(preempted);
        over = true;
    }
    ASSERT_EQ(pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
    EXPECT_EQ(thrum_fini(), 0);
}

#ifdef RSEQ_SIG
namespace {

// Where the kernel writes it for the C library; less than 0 where it does not.
int cpu_by_rseq() {
    const auto *area = reinterpret_cast<const struct rseq *>(static_cast<char *>(__builtin_thread_pointer()) +
                                                             __rseq_offset);
    return static_cast<int>(__atomic_load_n(&area->cpu_id, __ATOMIC_RELAXED));
}

bool be_on(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(cpu), &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
}

} // namespace

// A thread has the block that belongs to its kernel thread all the time, so nothing has to be given up for it.
TEST_F(Klt, RestartableSequencesAreThereAllTheTime) {
    if (__rseq_size == 0)
        GTEST_SKIP() << "libc has not registered them";
    constexpr int kTimes = 20;
    cpu_set_t may;
    ASSERT_EQ(sched_getaffinity(0, sizeof may, &may), 0);
    std::vector<int> cpus;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(static_cast<size_t>(cpu), &may))
            cpus.push_back(cpu);
    const Preempting runtime(2, THRUM_PREEMPT_KLT);
    EXPECT_GE(cpu_by_rseq(), 0);
    std::atomic<int> wrong{0};
    std::vector<Thread> threads;
    for (int i = 0; i < 5; i++)
        threads.emplace_back([&] {
            for (int k = 0; k < kTimes; k++) {
                const int cpu = k % 2 == 0 ? cpus.front() : cpus.back();
                wrong += !be_on(cpu);
                for (const uint64_t end = in_us(3 * kSlice); thrum_now() < end;)
                    wrong += cpu_by_rseq() != cpu;
            }
            wrong += sched_setaffinity(0, sizeof may, &may) != 0;
        });
    threads.clear();
    EXPECT_EQ(wrong, 0);
    EXPECT_GE(preemptions(), 10U);
    EXPECT_GE(cpu_by_rseq(), 0);
}
#endif
