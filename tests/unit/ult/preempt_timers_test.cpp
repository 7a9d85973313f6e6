// SPDX-License-Identifier: Apache-2.0
//
// Where ticks come from: each worker has a kernel timer, on a clock that cannot be set, which sends the signal to its
// kernel thread; and they expire one after another (thrum-preemption(7), "Ticks"; src/preempt/tick.c). By what the
// kernel says of them in /proc/self/timers.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <ctime>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "preempt.hpp"
#include "thrum/pool.h"

namespace {

constexpr unsigned kWorkers = 3;

struct KernelTimer {
    int id = -1, signal = 0, clock = -1;
    std::string notify; // the target, and how: "signal/tid.4711"
};

const char *const kFile = "/proc/self/timers";

// One line for each property of a timer.
std::vector<KernelTimer> timers() {
    std::vector<KernelTimer> timers;
    std::ifstream file(kFile);
    std::string word;
    while (file >> word) {
        if (word == "ID:")
            file >> timers.emplace_back().id;
        else if (word == "signal:")
            file >> timers.back().signal >> word; // and the program's value
        else if (word == "notify:")
            file >> timers.back().notify;
        else if (word == "ClockID:")
            file >> timers.back().clock;
    }
    return timers;
}

std::string to_this_kernel_thread() {
    return "signal/tid." + std::to_string(syscall(SYS_gettid));
}

long count_here() {
    const std::vector<KernelTimer> all = timers();
    return std::count_if(all.begin(), all.end(), [here = to_this_kernel_thread()](const KernelTimer &timer) {
        return timer.notify == here;
    });
}

class TickTimers : public Interrupted, public testing::WithParamInterface<unsigned> {
  protected:
    void SetUp() override {
        Interrupted::SetUp();
        if (ULT_EMULATED)
            GTEST_SKIP() << "there the timers are the emulator's";
        if (!std::ifstream(kFile))
            GTEST_SKIP() << "the kernel has no " << kFile << " (CONFIG_CHECKPOINT_RESTORE)";
        ASSERT_EQ(timers().size(), 0U);
    }
    void TearDown() override { EXPECT_EQ(timers().size(), 0U); }
    static int init(unsigned slice, int signal = 0) {
        const thrum_config config{kWorkers, 0, {GetParam(), slice, THRUM_TICK_TIMER, signal}, {}};
        return thrum_init(&config);
    }
    static bool is_klt() { return GetParam() == THRUM_PREEMPT_KLT; }
};

INSTANTIATE_TEST_SUITE_P(Modes, TickTimers, kSafeModes, name_of_mode);

thrum_attr_t on(unsigned worker) {
    thrum_attr_t attr = attr_queued();
    EXPECT_EQ(thrum_attr_set_worker(&attr, worker), 0);
    return attr;
}

} // namespace

TEST_P(TickTimers, OneForEachKernelThreadThatCarriesAWorker) {
    const int usual = SIGRTMIN + 4, other = SIGRTMIN + 6;
    for (const int signal : {0, other}) {
        ASSERT_EQ(init(kSlice, signal), 0);
        wait_for_each_other();
        EXPECT_EQ(count_here(), 1);
        for (unsigned i = 0; i < kWorkers; i++) {
            const thrum_attr_t attr = on(i);
            Light(
                [] {
                    thrum_nopreempt_begin(); // stays on that kernel thread
                    EXPECT_EQ(count_here(), 1);
                    thrum_nopreempt_end();
                },
                &attr);
        }
        const std::vector<KernelTimer> all = timers();
        std::set<std::string> whom;
        for (const KernelTimer &timer : all) {
            EXPECT_EQ(timer.clock, CLOCK_MONOTONIC);
            EXPECT_EQ(timer.signal, signal != 0 ? signal : usual);
            EXPECT_EQ(timer.notify.rfind("signal/tid.", 0), 0U) << timer.notify;
            whom.insert(timer.notify);
        }
        EXPECT_EQ(whom.size(), all.size());
        if (is_klt()) // those that wait for a turn have one each, too
            EXPECT_GT(all.size(), kWorkers);
        else
            EXPECT_EQ(all.size(), kWorkers + 1); // with the one that relieves others
        EXPECT_EQ(thrum_fini(), 0);
        EXPECT_EQ(timers().size(), 0U);
    }
}

// Whose thread is lost in a pool sleeps on, in mode klt, but does not tick.
TEST_P(TickTimers, NoTicksForALostThread) {
    ASSERT_EQ(init(kSlice), 0);
    thrum_pool_t pool = nullptr;
    ASSERT_EQ(thrum_pool_create(&pool, THRUM_POOL_FIFO), 0);
    thrum_sched_t sched = nullptr;
    ASSERT_EQ(thrum_sched_create(&sched, THRUM_SCHED_FIRST, &pool, 1), 0);
    ASSERT_EQ(thrum_worker_set_sched(1, sched), 0);
    thrum_attr_t attr = attr_queued();
    thrum_attr_set_pool(&attr, pool);
    static std::atomic<bool> has_begun;
    has_begun = false;
    auto compute_for_ever = [](void *) -> void * {
        has_begun = true;
        for (volatile bool for_ever = true; for_ever;) {
        }
        return nullptr;
    };
    ASSERT_EQ(thrum_spawn(nullptr, &attr, compute_for_ever, nullptr), 0);
    wait_for(has_begun);
    ASSERT_EQ(thrum_worker_set_sched(1, nullptr), 0);
    while (thrum_pool_size(pool) == 0) {
    }
    EXPECT_EQ(thrum_fini(), 0);
}

namespace {

constexpr uint64_t kSecond = 1000 * THRUM_MS;

// The moments within a period at which those go off that are set. Looked at so fast that they are known to some ms.
std::vector<uint64_t> phases(uint64_t period) {
    constexpr uint64_t kFast = 10 * THRUM_MS;
    std::vector<uint64_t> phases;
    for (const KernelTimer &timer : timers())
        for (;;) {
            itimerspec left{};
            const uint64_t before = thrum_now();
            if (syscall(SYS_timer_gettime, timer.id, &left) != 0)
                break; // it has gone meanwhile
            if (thrum_now() - before > kFast)
                continue;
            const auto after = static_cast<uint64_t>(left.it_value.tv_sec) * kSecond +
                               static_cast<uint64_t>(left.it_value.tv_nsec);
            const auto interval = static_cast<uint64_t>(left.it_interval.tv_sec) * kSecond +
                                  static_cast<uint64_t>(left.it_interval.tv_nsec);
            if (after == 0)
                break;
            EXPECT_EQ(interval, period);
            phases.push_back((before + after) % period);
            break;
        }
    return phases;
}

// From each to the next, around the period.
uint64_t smallest_distance(std::vector<uint64_t> phases, uint64_t period) {
    std::sort(phases.begin(), phases.end());
    uint64_t smallest = phases.front() + period - phases.back();
    for (std::size_t i = 1; i < phases.size(); i++)
        smallest = std::min(smallest, phases[i] - phases[i - 1]);
    return smallest;
}

} // namespace

// There are as many moments as workers, or one more, for the one that relieves others; slices of a second leave them far apart.
TEST_P(TickTimers, GoOffOneAfterAnother) {
    constexpr uint64_t kPeriod = THRUM_SLICE_MAX * THRUM_US;
    ASSERT_EQ(init(THRUM_SLICE_MAX), 0);
    {
        std::atomic<bool> over{false};
        std::vector<Light> threads;
        for (unsigned i = 0; i < kWorkers; i++) {
            const thrum_attr_t attr = on(i);
            for (int k = 0; k < 2; k++)
                threads.emplace_back([&] { wait_for(over); }, &attr);
        }
        std::vector<uint64_t> seen;
        for (const uint64_t end = in_ms(20'000); seen.size() != kWorkers && thrum_now() < end;)
            seen = phases(kPeriod);
        over = true;
        ASSERT_EQ(seen.size(), kWorkers);
        EXPECT_GT(smallest_distance(seen, kPeriod), kPeriod / (kWorkers + 1) / 2);
    }
    EXPECT_EQ(thrum_fini(), 0);
}
