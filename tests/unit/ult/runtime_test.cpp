// SPDX-License-Identifier: Apache-2.0
//
// The runtime's life: init and fini, what they refuse, what they do without memory or threads; and idle workers.
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cstdlib>

#include "blocks.h"
#include "core.hpp"
#include "depots.h"
#include "faults.hpp"
#include "inside.h"
#include "ult.hpp"

namespace {

int init(unsigned workers) {
    const thrum_config config{workers, 0, {}, {}};
    return thrum_init(&config);
}

void *nothing(void *arg) {
    return arg;
}

unsigned cpus() {
    cpu_set_t set;
    EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    return static_cast<unsigned>(CPU_COUNT(&set));
}

// --- init and fini ----------------------------------------------------------------------------------------

class Runtime : public UltPlain {
  protected:
    void TearDown() override {
        unsetenv("THRUM_WORKERS");
        UltPlain::TearDown();
    }
};

TEST_F(Runtime, HundredTimes) {
    for (const unsigned workers : {1U, 2U, 4U, 8U, 64U})
        for (int i = 0; i < 100 / (kStressDivisor > 1 ? 10 : 1); i++) {
            ASSERT_EQ(init(workers), 0);
            if (i % 2 == 0)
                in_ult([] { in_ult([] {}); });
            ASSERT_EQ(thrum_fini(), 0);
        }
}

TEST_F(Runtime, CountsItsWorkers) {
    EXPECT_EQ(thrum_workers(), 0U);
    const std::size_t before = threads_of_process();
    const thrum_config config{5, 0, {THRUM_PREEMPT_NONE, 0, 0, 0}, {}};
    ASSERT_EQ(thrum_init(&config), 0);
    EXPECT_EQ(thrum_workers(), 5U);
    EXPECT_EQ(threads_of_process(), before + 4);
    ASSERT_EQ(thrum_fini(), 0);
    EXPECT_EQ(thrum_workers(), 0U);
}

TEST_F(Runtime, HasAWorkerForEachCpuUnlessTold) {
    ASSERT_EQ(thrum_init(nullptr), 0);
    EXPECT_EQ(thrum_workers(), cpus());
    ASSERT_EQ(thrum_fini(), 0);
    ASSERT_EQ(init(0), 0);
    EXPECT_EQ(thrum_workers(), cpus());
    ASSERT_EQ(thrum_fini(), 0);
}

TEST_F(Runtime, CountsOnlyTheCpusThatItMayUse) {
    const int status = in_child([] {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(sched_getcpu(), &set);
        if (sched_setaffinity(0, sizeof set, &set) != 0 || thrum_init(nullptr) != 0)
            return 100;
        return static_cast<int>(thrum_workers());
    });
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 1);
}

TEST_F(Runtime, TakesTheNumberFromTheEnvironment) {
    for (const unsigned workers : {1U, 3U, 17U}) {
        setenv("THRUM_WORKERS", std::to_string(workers).c_str(), 1);
        ASSERT_EQ(thrum_init(nullptr), 0);
        EXPECT_EQ(thrum_workers(), workers);
        ASSERT_EQ(thrum_fini(), 0);
    }
    ASSERT_EQ(init(2), 0); // what the program says is stronger
    EXPECT_EQ(thrum_workers(), 2U);
    ASSERT_EQ(thrum_fini(), 0);
    setenv("THRUM_WORKERS", "", 1);
    ASSERT_EQ(thrum_init(nullptr), 0);
    EXPECT_EQ(thrum_workers(), cpus());
    ASSERT_EQ(thrum_fini(), 0);
}

TEST_F(Runtime, RefusesABadNumberInOneLine) {
    for (const char *bad :
         {"0", "-1", "x", "1x", "1025", "99999999999999999999", " 2", "2 ", "0x10", "1.5", "+3"}) {
        setenv("THRUM_WORKERS", bad, 1);
        const std::string text = stderr_of([] { EXPECT_EQ(thrum_init(nullptr), EINVAL); });
        EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
        EXPECT_NE(text.find(std::string("THRUM_WORKERS is '") + bad + "'"), std::string::npos) << text;
        EXPECT_NE(text.find("1 to 1024"), std::string::npos) << text;
        EXPECT_EQ(thrum_workers(), 0U);
    }
}

TEST_F(Runtime, RefusesTooManyInItsConfig) {
    EXPECT_EQ(init(1025), EINVAL);
    EXPECT_EQ(init(UINT_MAX), EINVAL);
    EXPECT_EQ(thrum_workers(), 0U);
}

// --- the default size of stacks ---------------------------------------------------------------------------

class StackSize : public UltPlain {
  protected:
    void TearDown() override {
        unsetenv("THRUM_STACK_SIZE");
        UltPlain::TearDown();
    }

    // Of a thread with no attributes, and with such as say nothing of it.
    static std::size_t size_now(std::size_t configured) {
        const thrum_config config{2, configured, {}, {}};
        EXPECT_EQ(thrum_init(&config), 0);
        std::size_t sizes[2] = {0, 0};
        const auto measure = [&sizes](int i) {
            std::size_t used = 0;
            EXPECT_EQ(thrum_stack_used(thrum_self(), &used, &sizes[i]), 0);
        };
        const thrum_attr_t queued = attr_queued();
        Light([&] { measure(0); }).join();
        Light([&] { measure(1); }, &queued).join();
        EXPECT_EQ(sizes[0] / 8192, sizes[1] / 8192) << "but for the colour";
        EXPECT_EQ(thrum_fini(), 0);
        return sizes[0];
    }
    static void expect_about(std::size_t expected, std::size_t configured) {
        const std::size_t size = size_now(configured);
        EXPECT_GE(size, expected);
        EXPECT_LT(size, expected + 3 * 4096);
    }
};

TEST_F(StackSize, IsWhatTheConfigurationOrTheEnvironmentSays) {
    expect_about(64U << 10, 0);
    expect_about(256U << 10, 200U << 10);
    setenv("THRUM_STACK_SIZE", "", 1);
    expect_about(64U << 10, 0);
    setenv("THRUM_STACK_SIZE", "131072", 1);
    expect_about(128U << 10, 0);
    expect_about(16U << 10, 1); // what the program says is stronger
    const std::pair<const char *, std::size_t> sizes[] = {{"1", 16U << 10},   {"100k", 128U << 10},
                                                          {"32K", 32U << 10}, {"1m", 1U << 20},
                                                          {"3M", 4U << 20},   {"1g", 1U << 30}};
    for (const auto &[text, size] : sizes) {
        setenv("THRUM_STACK_SIZE", text, 1);
        expect_about(size, 0);
    }
}

TEST_F(StackSize, OfOneThatSaysSoIsItsOwn) {
    const thrum_config config{1, 1U << 20, {}, {}};
    ASSERT_EQ(thrum_init(&config), 0);
    const thrum_attr_t attr = attr_stack(32U << 10);
    std::size_t used = 0, size = 0;
    Light([&] { EXPECT_EQ(thrum_stack_used(thrum_self(), &used, &size), 0); }, &attr).join();
    EXPECT_LT(size, 64U << 10);
    ASSERT_EQ(thrum_fini(), 0);
}

TEST_F(StackSize, IsRefusedInOneLine) {
    for (const char *bad :
         {"0", "x", "-1", "64kb", "2g", "1025m", "99999999999999999999", " 1m", "1.5m", "k"}) {
        setenv("THRUM_STACK_SIZE", bad, 1);
        const std::string text = stderr_of([] { EXPECT_EQ(thrum_init(nullptr), EINVAL); });
        EXPECT_EQ(text, std::string("thrum: THRUM_STACK_SIZE is '") + bad +
                            "'; it takes a number of bytes, or of k, m or g, up to 1g\n");
    }
    const thrum_config too_large{1, (1U << 30) + 1, {}, {}};
    EXPECT_EQ(thrum_init(&too_large), EINVAL);
}

TEST_F(StackSize, WhatALaterVersionKnowsIsRefused) {
    thrum_config config{1, 0, {}, {}};
    config.reserved[3] = 1;
    EXPECT_EQ(thrum_init(&config), EINVAL);
    EXPECT_EQ(sizeof config, 64U);
}

// --- once -------------------------------------------------------------------------------------------------

TEST_F(Runtime, IsThereOnce) {
    ASSERT_EQ(init(2), 0);
    EXPECT_EQ(init(2), EBUSY);
    External([] { EXPECT_EQ(init(2), EBUSY); }).join();
    in_ult([] { EXPECT_EQ(init(2), EBUSY); });
    EXPECT_EQ(thrum_workers(), 2U);
    ASSERT_EQ(thrum_fini(), 0);
}

TEST_F(Runtime, IsStoppedByItsStarter) {
    EXPECT_EQ(thrum_fini(), EPERM); // there is none
    for (const unsigned workers : {1U, 2U, 8U}) {
        ASSERT_EQ(init(workers), 0);
        External([] { EXPECT_EQ(thrum_fini(), EPERM); }).join();
        in_ult([] { EXPECT_EQ(thrum_fini(), EPERM); });
        EXPECT_EQ(thrum_workers(), workers);
        ASSERT_EQ(thrum_fini(), 0);
        EXPECT_EQ(thrum_fini(), EPERM);
    }
}

// Any thread may be the one that starts it, each time another.
TEST_F(Runtime, IsStartedByOtherThreadsToo) {
    for (int i = 0; i < 10; i++)
        std::thread([] {
            ASSERT_EQ(init(3), 0);
            in_ult([] {});
            ASSERT_EQ(thrum_fini(), 0);
        }).join();
}

TEST_F(Runtime, StopsWithThreadsThatWait) {
    for (const unsigned workers : {1U, 4U}) {
        ASSERT_EQ(init(workers), 0);
        static thrum_mutex_t mutex;
        mutex = THRUM_MUTEX_INITIALIZER;
        static std::atomic<int> reached;
        reached = 0;
        thrum_mutex_lock(&mutex);
        for (int i = 0; i < 100; i++)
            ASSERT_EQ(thrum_spawn(
                          nullptr, nullptr,
                          [](void *) -> void * {
                              reached++;
                              thrum_mutex_lock(&mutex);
                              ADD_FAILURE() << "it ran after the runtime's end";
                              return nullptr;
                          },
                          nullptr),
                      0);
        EXPECT_TRUE(eventually([] { return reached == 100; }));
        ASSERT_EQ(thrum_fini(), 0);
    }
}

// "Threads that have not ended never run again", not even those that never wait.
TEST_F(Runtime, StopsWithThreadsThatYieldForEver) {
    for (const unsigned workers : {1U, 2U, 4U}) {
        const int status = in_child(
            [workers] {
                if (init(workers) != 0)
                    return 1;
                for (int i = 0; i < 3; i++)
                    thrum_spawn(
                        nullptr, nullptr,
                        [](void *) -> void * {
                            for (;;)
                                thrum_yield();
                        },
                        nullptr);
                for (int i = 0; i < 100; i++)
                    thrum_yield();
                return thrum_fini();
            },
            5);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << workers << " workers: " << status;
    }
}

// ult.fenced runs this and others where the kernel has none.
TEST_F(Runtime, IsFencedWhereThereIsNoMembarrier) {
    ASSERT_EQ(init(2), 0);
    EXPECT_EQ(inside_is_fenced() != 0, !membarrier_register());
    if (std::getenv("ULT_FENCED") != nullptr) {
        EXPECT_TRUE(inside_is_fenced());
    }
    ASSERT_EQ(thrum_fini(), 0);
}

// A program that never calls thrum_init.
TEST_F(Runtime, ComesOfItsOwnAccord) {
    const int status = in_child(
        [] {
            thrum_t thread = nullptr;
            void *result = nullptr;
            int value = 0;
            if (thrum_spawn(&thread, nullptr, nothing, &value) != 0 || thrum_join(thread, &result) != 0)
                return 1;
            return result == &value && thrum_workers() == cpus() ? 0 : 2;
        },
        5);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// --- without memory, without threads ----------------------------------------------------------------------

class Faulty : public UltPlain {
  protected:
    void TearDown() override {
        faults_clear();
        UltPlain::TearDown();
    }
};

// Init, spawns of several kinds, joins, fini; what fails has to say so, and what was begun is finished.
struct Outcome {
    int init = 0, refused = 0, joined = 0;
};

void spawn_some(Outcome *outcome) {
    std::vector<thrum_t> threads;
    const thrum_attr_t queued = attr_queued();
    for (unsigned i = 0; i < 400; i++) {
        const thrum_attr_t attr = i % 2 == 0 ? queued : attr_stack(stacks_size(i % 5));
        thrum_t thread = nullptr;
        const int error = thrum_spawn(&thread, &attr, nothing, nullptr);
        EXPECT_TRUE(error == 0 || error == EAGAIN) << error;
        if (error == 0)
            threads.push_back(thread);
        outcome->refused += error != 0;
    }
    for (const thrum_t thread : threads)
        outcome->joined += thrum_join(thread, nullptr) == 0;
}

void *spawn_some_in_ult(void *outcome) {
    spawn_some(static_cast<Outcome *>(outcome));
    return nullptr;
}

Outcome whole_life(unsigned workers) {
    Outcome outcome;
    outcome.init = init(workers);
    if (outcome.init != 0)
        return outcome;
    spawn_some(&outcome);
    thrum_t thread = nullptr;
    const bool spawned = thrum_spawn(&thread, nullptr, spawn_some_in_ult, &outcome) == 0;
    EXPECT_TRUE(!spawned || thrum_join(thread, nullptr) == 0);
    outcome.refused += spawned ? 0 : 400;
    EXPECT_EQ(outcome.refused + outcome.joined, 800);
    EXPECT_EQ(thrum_fini(), 0);
    return outcome;
}

int calls_of(Failing *what, unsigned workers) {
    faults_clear();
    whole_life(workers);
    return what->calls;
}

void expect_runtime_works() {
    faults_clear();
    EXPECT_EQ(thrum_workers(), 0U);
    const Outcome after = whole_life(2);
    EXPECT_EQ(after.init, 0);
    EXPECT_EQ(after.refused, 0);
}

TEST_F(Faulty, AnyOneMmap) {
    for (const unsigned workers : {1U, 2U, 4U}) {
        const int calls = calls_of(&faults.mmap, workers);
        ASSERT_GT(calls, 5);
        for (int i = 0; i < calls; i++) {
            faults.mmap.after(i, 1, ENOMEM);
            const Outcome outcome = whole_life(workers);
            EXPECT_TRUE(outcome.init == 0 || outcome.init == ENOMEM || outcome.init == EAGAIN)
                << outcome.init << " at call " << i;
            // The first only looks how guard pages can be made, unless a sanitizer says. Of donors a slab then notes its
            // chunk, to give it back one day. The next are what a runtime needs.
            const int needed = (ULT_ASAN ? 0 : 1) + (ULT_TSAN || blocks_why_not() == nullptr ? 0 : 1);
            EXPECT_TRUE(i < needed || i >= needed + 3 || outcome.init != 0) << "at call " << i;
        }
        expect_runtime_works();
    }
}

// A whole series of them: memory is there again when the last has failed.
TEST_F(Faulty, SeveralMmapsInARow) {
    for (const unsigned workers : {1U, 2U}) {
        const int calls = calls_of(&faults.mmap, workers);
        for (int i = 0; i < calls; i++) {
            faults.mmap.after(i, 30, ENOMEM);
            whole_life(workers);
        }
        expect_runtime_works();
    }
}

// No memory ever again: spawn says so, and what was spawned ends.
TEST_F(Faulty, EveryMmapFromOneOn) {
    for (const unsigned workers : {1U, 2U}) {
        const int calls = calls_of(&faults.mmap, workers);
        for (int i = 0; i < calls; i++) {
            const int status = in_child(
                [&] {
                    faults.mmap.after(i, INT_MAX, ENOMEM);
                    whole_life(workers);
                    return HasFailure() ? 1 : 0;
                },
                3);
            ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
                << workers << " workers, from call " << i << " of " << calls << " on: status " << status
                << (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? " (it hangs)" : "");
        }
    }
}

TEST_F(Faulty, AnyOneThread) {
    for (const unsigned mode : {THRUM_PREEMPT_NONE, THRUM_PREEMPT_LEND})
        for (int i = 0; i < 7; i++) {
            const thrum_config config{8, 0, {mode, 0, 0, 0}, {}};
            faults.create.after(i, 1, EAGAIN);
            EXPECT_EQ(thrum_init(&config), EAGAIN) << "at thread " << i << ", mode " << mode;
            EXPECT_EQ(thrum_workers(), 0U);
            EXPECT_EQ(thrum_self(), nullptr);
        }
    expect_runtime_works();
}

// If it can be had, says `auto`.
TEST_F(Faulty, WithoutThreadsForPreemptionNoThreadIsPreempted) {
    setenv("THRUM_PREEMPT", "auto", 1);
    faults.create.after(0, INT_MAX, EAGAIN);
    EXPECT_EQ(init(1), 0);
    unsetenv("THRUM_PREEMPT");
    in_ult([] {});
    EXPECT_EQ(thrum_fini(), 0);
    expect_runtime_works();
}

// vm.max_map_count: no guard page by either way.
TEST_F(Faulty, NoGuards) {
    for (const int well : {0, 1, 63, 64, 200}) {
        faults.guard.after(0, INT_MAX, EINVAL);
        faults.mprotect.after(well, 100, ENOMEM);
        const Outcome outcome = whole_life(2);
        EXPECT_TRUE(outcome.init == 0 || outcome.init == ENOMEM || outcome.init == EAGAIN) << outcome.init;
        EXPECT_TRUE(well > 0 || outcome.init != 0);
    }
    expect_runtime_works();
}

// One line says why, however often it is so.
TEST_F(Faulty, NoGuardsIsSaidOnce) {
    int status = -1;
    const std::string said = stderr_of([&status] {
        status = in_child([] {
            for (int i = 0; i < 3; i++) {
                faults.guard.after(0, INT_MAX, EINVAL);
                faults.mprotect.after(1, 100, ENOMEM);
                whole_life(2);
            }
            return 0;
        });
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_EQ(said.rfind("thrum: cannot map a guard page below a stack", 0), 0U) << said;
    EXPECT_NE(said.find("vm.max_map_count"), std::string::npos) << said;
    EXPECT_EQ(said.find('\n'), said.size() - 1) << said;
}

// --- idle workers -----------------------------------------------------------------------------------------

double process_cpu_seconds() {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void sleep_ms(long milliseconds) {
    const timespec time{milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, nullptr);
}

class Idle : public Ult {};

TEST_P(Idle, UsesNoCpu) {
    in_ult([] {});
    sleep_ms(50);
    const double before = process_cpu_seconds();
    sleep_ms(500);
    EXPECT_LT(process_cpu_seconds() - before, 0.005);
}

// The bound thread waits too: its worker's loop is as idle as the others.
TEST_P(Idle, UsesNoCpuWhileAllWait) {
    static thrum_mutex_t mutex;
    static thrum_cond_t cond;
    static bool over;
    mutex = THRUM_MUTEX_INITIALIZER;
    cond = THRUM_COND_INITIALIZER;
    over = false;
    double used = 1;
    External waker([&] {
        sleep_ms(100);
        const double before = process_cpu_seconds();
        sleep_ms(400);
        used = process_cpu_seconds() - before;
        thrum_mutex_lock(&mutex);
        over = true;
        thrum_cond_signal(&cond);
        thrum_mutex_unlock(&mutex);
    });
    thrum_mutex_lock(&mutex);
    while (!over)
        thrum_cond_wait(&cond, &mutex);
    thrum_mutex_unlock(&mutex);
    waker.join();
    EXPECT_LT(used, 0.005);
}

// Two workers create one task each at the same time and compute until both tasks have begun. With two more workers
// available, both must: each push wakes one, or one that is searching already finds more than one.
TEST_P(Idle, EachPushFindsAWorker) {
    if (workers() < 4)
        GTEST_SKIP() << "needs four workers";
    for (int round = 0; round < 300 / kStressDivisor && !HasFailure(); round++) {
        static std::atomic<int> ready, begun;
        ready = begun = 0;
        std::atomic<bool> hung{false};
        std::array<std::unique_ptr<Light>, 2> makers;
        const thrum_attr_t queued = attr_queued();
        for (std::unique_ptr<Light> &maker : makers)
            maker = std::make_unique<Light>(
                [&] {
                    ready++;
                    while (ready < 2) // on a worker each
                        sched_yield();
                    const Light task([] { begun++; }, &queued);
                    timespec start, now;
                    clock_gettime(CLOCK_MONOTONIC, &start);
                    while (begun < 2 && !hung) {
                        sched_yield(); // the CPU, but not the worker
                        clock_gettime(CLOCK_MONOTONIC, &now);
                        if (now.tv_sec - start.tv_sec > 5)
                            hung = true;
                    }
                },
                &queued);
        makers = {};
        EXPECT_FALSE(hung) << "a worker slept beside a queued task, round " << round;
        if (round % 3 == 0)
            sleep_ms(1); // all workers park
    }
}

// From outside, one at a time, to workers that have just parked or are about to.
TEST_P(Idle, ExternalSpawnsWakeThem) {
    External([] {
        for (int i = 0; i < 500 / kStressDivisor; i++) {
            thrum_t thread = nullptr;
            ASSERT_EQ(thrum_spawn(&thread, nullptr, nothing, nullptr), 0);
            ASSERT_EQ(thrum_join(thread, nullptr), 0);
            spin_us(i % 150);
        }
    }).join();
}

ULT_OVER_WORKERS(Idle);

} // namespace
