// SPDX-License-Identifier: Apache-2.0
//
// Workers that are added and stopped while the runtime runs.
#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include <thrum/pool.h>
#include <thrum/worker.h>

#include "crew.hpp"
#include "depots.h"
#include "faults.hpp"
#include "ult.hpp"

namespace {

unsigned add() {
    unsigned number = ~0U;
    EXPECT_EQ(thrum_worker_add(&number), 0);
    return number;
}

void expect_stops(unsigned number) {
    EXPECT_EQ(thrum_worker_stop(number), 0) << "worker " << number;
}

// The calling ULT moves to this worker; it is not bound there, and stays until it next waits.
bool get_to(unsigned number) {
    EXPECT_EQ(thrum_migrate(thrum_self(), number), 0);
    EXPECT_EQ(thrum_migrate(thrum_self(), THRUM_ANY_WORKER), 0);
    EXPECT_EQ(thrum_worker_self(), static_cast<int>(number));
    return thrum_worker_self() == static_cast<int>(number);
}

double process_cpu_seconds() {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void nap_ms(long milliseconds) {
    const timespec time{milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, nullptr);
}

// --- one at a time ----------------------------------------------------------------------------------------

class Worker : public Ult {};
class WorkerThreads : public UltInTurn {}; // a worker is one kernel thread

TEST_P(WorkerThreads, IsAddedAndStopped) {
    const std::size_t threads = threads_of_process();
    for (int round = 0; round < 3; round++) {
        const unsigned number = add();
        EXPECT_EQ(number, workers());
        EXPECT_EQ(thrum_workers(), workers() + 1);
        EXPECT_EQ(threads_of_process(), threads + 1);
        expect_stops(number);
        EXPECT_EQ(thrum_workers(), workers());
        EXPECT_TRUE(eventually([&] { return threads_of_process() == threads; }));
    }
}

TEST_P(Worker, IsAddedAndStoppedByAll) {
    in_ult([] { expect_stops(add()); });
    External([] { expect_stops(add()); }).join();
    unsigned number = 0;
    in_ult([&] { number = add(); });
    External([&] { expect_stops(number); }).join();
    EXPECT_EQ(thrum_workers(), workers());
}

TEST_P(Worker, RunsWhatThereIs) {
    const unsigned number = add();
    in_ult([number] { EXPECT_TRUE(get_to(number)); });
    expect_stops(number);
}

TEST_P(Worker, TheLowestNumberIsGivenAgain) {
    const std::array<unsigned, 4> numbers = {add(), add(), add(), add()};
    for (unsigned i = 0; i < numbers.size(); i++)
        EXPECT_EQ(numbers[i], workers() + i);
    expect_stops(numbers[2]);
    expect_stops(numbers[0]);
    EXPECT_EQ(add(), numbers[0]);
    EXPECT_EQ(add(), numbers[2]);
    EXPECT_EQ(add(), workers() + 4);
    EXPECT_EQ(thrum_workers(), workers() + 5);
} // and fini stops them

TEST_P(Worker, KnowsItsNumber) {
    EXPECT_EQ(thrum_worker_self(), 0);
    in_ult([] {
        const int number = thrum_worker_self();
        EXPECT_TRUE(number >= 0 && number < static_cast<int>(workers())) << number;
    });
    External([] { EXPECT_EQ(thrum_worker_self(), -1); }).join();
}

TEST_P(Worker, RefusesWhatItCannotStop) {
    EXPECT_EQ(thrum_worker_stop(0), EBUSY); // the one that called thrum_init
    EXPECT_EQ(thrum_worker_stop(workers()), EINVAL);
    EXPECT_EQ(thrum_worker_stop(~0U), EINVAL);
    for (unsigned i = 1; i < workers(); i++)
        expect_stops(i);
    EXPECT_EQ(thrum_workers(), 1U);
    EXPECT_EQ(thrum_worker_stop(0), EBUSY);
    EXPECT_EQ(thrum_worker_stop(1), EINVAL); // not any more
    in_ult([] {});
}

TEST_P(Worker, IsNotStoppedUnderThreadsThatAreBoundToIt) {
    const unsigned number = add();
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    ASSERT_EQ(thrum_attr_set_worker(&attr, number), 0);
    std::atomic<bool> over{false};
    Light bound(
        [&] {
            while (!over)
                thrum_sleep(THRUM_MS);
        },
        &attr);
    EXPECT_EQ(thrum_worker_stop(number), EBUSY);
    std::atomic<bool> alone{false};
    Light moves([&] {
        EXPECT_EQ(thrum_migrate(thrum_self(), number), 0);
        while (!alone)
            thrum_sleep(THRUM_MS);
        EXPECT_EQ(thrum_worker_stop(number), EBUSY);
        EXPECT_EQ(thrum_migrate(thrum_self(), THRUM_ANY_WORKER), 0);
        expect_stops(number);
    });
    thrum_sleep(3 * THRUM_MS);
    EXPECT_EQ(thrum_worker_stop(number), EBUSY);
    EXPECT_EQ(thrum_workers(), workers() + 1);
    over = true;
    bound.join();
    alone = true;
    moves.join();
    thrum_t thread = nullptr;
    EXPECT_EQ(thrum_spawn(
                  &thread, &attr, [](void *) -> void * { return nullptr; }, nullptr),
              EINVAL);
    in_ult([number] { EXPECT_EQ(thrum_migrate(thrum_self(), number), EINVAL); });
}

TEST_P(Worker, CannotBeWaitedForByTasklets) {
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    ASSERT_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_TASKLET), 0);
    Light(
        [] {
            EXPECT_EQ(thrum_worker_add(nullptr), EPERM);
            EXPECT_EQ(thrum_worker_stop(1), EPERM);
        },
        &attr);
    EXPECT_EQ(thrum_workers(), workers());
}

// --- what was on it ---------------------------------------------------------------------------------------

TEST_P(Worker, StopsTheOneThatItsCallerRunsOn) {
    for (int round = 0; round < 20 / (kStressDivisor > 1 ? 10 : 1); round++) {
        const unsigned number = add();
        in_ult([number] {
            if (!get_to(number))
                return;
            expect_stops(number);
            EXPECT_NE(thrum_worker_self(), static_cast<int>(number));
        });
    }
}

// Asked to stop while its thread keeps it busy.
struct BusyWorker {
    explicit BusyWorker(unsigned worker) : number(worker), thread([this] { compute(); }) {
        EXPECT_TRUE(eventually([this] { return begun.load(); }));
    }
    void compute() {
        EXPECT_TRUE(get_to(number));
        begun = true;
        while (!over)
            ;
    }
    unsigned number;
    std::atomic<bool> begun{false}, over{false};
    Light thread;
};

class WorkerInTurn : public UltInTurn {}; // which is busy as long as no thread is preempted

TEST_P(WorkerInTurn, IsWaitedForUntilADeadline) {
    const unsigned number = add();
    External waiter([number] {
        BusyWorker busy(number);
        EXPECT_EQ(thrum_worker_stop_until(number, 0), ETIMEDOUT);
        const uint64_t moment = thrum_now() + 2 * THRUM_MS;
        EXPECT_EQ(thrum_worker_stop_until(number, moment), ETIMEDOUT);
        EXPECT_GE(thrum_now(), moment);
        unsigned other = 0;
        EXPECT_EQ(thrum_worker_add(&other), 0); // it is not the one that is leaving
        EXPECT_NE(other, number);
        expect_stops(other);
        EXPECT_EQ(thrum_migrate(busy.thread.handle(), number), EINVAL);
        busy.over = true;
        busy.thread.join();
        expect_stops(number);
        EXPECT_EQ(thrum_worker_stop(number), EINVAL);
    });
    waiter.join();
    EXPECT_EQ(add(), number);
    expect_stops(number);
}

// Another thread waits for a worker to stop, and no worker is added meanwhile.
TEST_P(WorkerInTurn, IsAddedUntilADeadline) {
    const unsigned number = add();
    External([number] {
        BusyWorker busy(number);
        std::atomic<int> stopped{-1};
        std::vector<unsigned> added; // before the other thread had told the worker to stop
        External stops([&] { stopped = thrum_worker_stop(number); });
        EXPECT_TRUE(eventually([&added] {
            unsigned other = ~0U;
            const int error = thrum_worker_add_until(&other, thrum_now() + 100 * THRUM_US);
            if (error == 0)
                added.push_back(other);
            return error == ETIMEDOUT;
        }));
        unsigned other = ~0U;
        const uint64_t moment = thrum_now() + THRUM_MS;
        EXPECT_EQ(thrum_worker_add_until(&other, moment), ETIMEDOUT);
        EXPECT_GE(thrum_now(), moment);
        EXPECT_EQ(other, ~0U);
        EXPECT_EQ(stopped, -1);
        busy.over = true;
        busy.thread.join();
        EXPECT_EQ(thrum_worker_add_until(&other, UINT64_MAX), 0);
        stops.join();
        EXPECT_EQ(stopped, 0);
        added.push_back(other);
        for (const unsigned one : added)
            expect_stops(one);
    }).join();
}

// No thread waits for it any more when it has stopped: the next user of the number joins it, or the runtime's end.
TEST_P(WorkerInTurn, AWorkerNotWaitedForIsJoinedByTheNext) {
    const unsigned number = add();
    External([number] {
        BusyWorker busy(number);
        EXPECT_EQ(thrum_worker_stop_until(number, thrum_now() + THRUM_MS), ETIMEDOUT);
        busy.over = true;
    }).join();
    EXPECT_TRUE(eventually([number] {
        const unsigned next = add();
        if (next != number)
            expect_stops(next);
        return next == number;
    }));
    External([number] {
        BusyWorker busy(number);
        EXPECT_EQ(thrum_worker_stop_until(number, thrum_now() + THRUM_MS), ETIMEDOUT);
        busy.over = true;
    }).join();
} // and fini waits for it

TEST_P(Worker, EndsMeetDeadlines) {
    for (int i = 0; i < 20; i++) {
        const unsigned number = add();
        const int error =
            thrum_worker_stop_until(number, thrum_now() + static_cast<uint64_t>(i) * 10 * THRUM_US);
        EXPECT_TRUE(error == 0 || error == ETIMEDOUT) << error;
        if (error == ETIMEDOUT)
            expect_stops(number);
    }
    EXPECT_EQ(thrum_workers(), workers());
}

// In its deque, and in its ring.
TEST_P(Worker, ItsQueuesGoToTheOthers) {
    constexpr int kMany = 3000; // more than a ring has room for
    const unsigned number = add();
    std::atomic<int> ran{0};
    std::vector<Light> lights;
    in_ult([&] {
        if (!get_to(number))
            return;
        const thrum_attr_t queued = attr_queued();
        for (int i = 0; i < kMany; i++)
            lights.emplace_back(
                [&] {
                    thrum_yield();
                    ran++;
                },
                &queued);
        expect_stops(number);
    });
    lights.clear();
    EXPECT_EQ(ran, kMany);
}

// No worker that is left searches or parks: they have to look after its timers while they are busy.
TEST_P(Worker, ItsSleepersAreWokenByBusyOthers) {
    const unsigned number = add();
    std::atomic<int> asleep{0}, awake{0};
    std::vector<Light> sleepers;
    in_ult([&] {
        if (!get_to(number))
            return;
        const thrum_attr_t queued = attr_queued();
        for (int i = 0; i < 20; i++)
            sleepers.emplace_back(
                [&] {
                    const uint64_t end = in_ms(50);
                    asleep++;
                    thrum_sleep_until(end);
                    EXPECT_GE(thrum_now(), end);
                    awake++;
                },
                &queued);
        EXPECT_TRUE(eventually([&] { return asleep == 20; }));
        expect_stops(number);
    });
    std::vector<Light> busy;
    for (unsigned i = 0; i < workers(); i++)
        busy.emplace_back([&] {
            const uint64_t end = in_ms(20000);
            while (awake < 20 && thrum_now() < end)
                thrum_yield();
        });
    busy.clear();
    EXPECT_EQ(awake, 20);
    sleepers.clear();
}

// Its timers go to the next worker with its number.
TEST_P(Worker, ItsSleepersAreWokenByItsSuccessor) {
    const unsigned number = add();
    std::unique_ptr<Light> sleeper;
    in_ult([&] {
        if (!get_to(number))
            return;
        std::atomic<bool> asleep{false};
        sleeper = std::make_unique<Light>([&] {
            asleep = true;
            thrum_sleep(30 * THRUM_MS);
        });
        EXPECT_TRUE(eventually([&] { return asleep.load(); }));
        expect_stops(number);
    });
    EXPECT_EQ(add(), number);
    sleeper.reset();
    expect_stops(number);
}

TEST_P(Worker, ParksNoMoreWhenItHasLeft) {
    std::vector<unsigned> numbers(4);
    for (unsigned &number : numbers)
        number = add();
    nap_ms(5); // they are parked, and one keeps the time
    const Light sleeper([] { thrum_sleep(20 * THRUM_MS); });
    for (const unsigned number : numbers)
        expect_stops(number);
    in_ult([] {});
    const double before = process_cpu_seconds();
    nap_ms(300);
    EXPECT_LT(process_cpu_seconds() - before, 0.01);
}

// What it kept for later use is there for others: it does not grow from one to the next. The most of several rounds counts, for
// memory that lies about is given back meanwhile.
TEST_P(Worker, ItsMagazinesGoToTheOthers) {
    const thrum_attr_t queued = attr_queued();
    // Each worker may have a chunk's worth of stacks, and of descriptors, while another takes new ones. A magazine that was lost
    // in each round would be more in the end.
    const int spread = 2 * (workers() + 1), rounds = 5 + 3 * (workers() + 1);
    int first = 0, later = 0;
    for (int round = 0; round < rounds; round++) {
        const unsigned number = add();
        in_ult([&] {
            if (!get_to(number))
                return;
            constexpr int kLights = 200;
            std::atomic<int> begun{0}; // all have a stack at one time, in each round
            std::vector<Light> lights;
            for (int i = 0; i < kLights; i++)
                lights.emplace_back(
                    [&begun] {
                        begun++;
                        while (begun < kLights)
                            thrum_yield();
                    },
                    &queued);
        });
        expect_stops(number);
        int &most = round < 5 ? first : later;
        most = std::max(most, static_cast<int>(stacks_chunks(0) + units_chunks()));
    }
    EXPECT_LE(later, first + spread);
}

// A thread that is not preempted there: another one continues elsewhere.
TEST_P(Worker, IsNotStoppedWhileItsThreadWaitsInTheKernel) {
    const unsigned number = add();
    thrum_attr_t unpreempted;
    thrum_attr_init(&unpreempted);
    EXPECT_EQ(thrum_attr_set_preempt(&unpreempted, THRUM_PREEMPT_NONE), 0);
    std::atomic<bool> there{false}, over{false};
    Light light(
        [&] {
            if (!get_to(number))
                return;
            there = true;
            nap_ms(50);
            over = true;
            thrum_yield();
        },
        &unpreempted);
    EXPECT_TRUE(eventually([&] { return there.load(); }));
    expect_stops(number);
    EXPECT_TRUE(over);
}

ULT_OVER_WORKERS(Worker);
ULT_OVER_WORKERS(WorkerThreads);
ULT_OVER_WORKERS(WorkerInTurn);

// --- schedulers -------------------------------------------------------------------------------------------

class WorkerSched : public Ult {
  protected:
    void SetUp() override {
        Ult::SetUp();
        ASSERT_EQ(thrum_pool_create(&pool_, THRUM_POOL_FIFO), 0);
        ASSERT_EQ(thrum_sched_create(&sched_, THRUM_SCHED_FIRST, &pool_, 1), 0);
        thrum_attr_init(&pooled_);
        thrum_attr_set_pool(&pooled_, pool_);
    }
    void TearDown() override {
        EXPECT_EQ(thrum_sched_destroy(sched_), 0); // it is unused
        EXPECT_EQ(thrum_pool_destroy(pool_), 0);
        Ult::TearDown();
    }
    thrum_pool_t pool_ = nullptr;
    thrum_sched_t sched_ = nullptr;
    thrum_attr_t pooled_{};
};

TEST_P(WorkerSched, IsFreeForAnother) {
    const unsigned first = add();
    ASSERT_EQ(thrum_worker_set_sched(first, sched_), 0);
    Light([first] { EXPECT_EQ(thrum_worker_self(), static_cast<int>(first)); }, &pooled_);
    expect_stops(first);
    EXPECT_EQ(thrum_worker_set_sched(first, sched_), EINVAL);
    const unsigned second = add();
    ASSERT_EQ(thrum_worker_set_sched(second, sched_), 0);
    Light([second] { EXPECT_EQ(thrum_worker_self(), static_cast<int>(second)); }, &pooled_);
    expect_stops(second);
}

TEST_P(WorkerSched, IsFreeBeforeItEverRan) {
    for (int i = 0; i < 20; i++) {
        const unsigned number = add();
        ASSERT_EQ(thrum_worker_set_sched(number, sched_), 0);
        expect_stops(number);
    }
}

// A scheduler that is a thread itself, and finds nothing, stands on the worker's way out.
TEST_P(WorkerSched, StackedResumesElsewhere) {
    const unsigned number = add();
    thrum_t thread = nullptr;
    in_ult([&] {
        if (!get_to(number))
            return;
        ASSERT_EQ(thrum_sched_spawn(&thread, nullptr, sched_), 0);
    });
    nap_ms(2);
    std::vector<unsigned> others;
    for (unsigned i = 1; i <= workers(); i++) // wherever it is
        expect_stops(i);
    External([this] { Light([] {}, &pooled_); }).join();
    thrum_sched_stop(sched_);
    EXPECT_EQ(thrum_join(thread, nullptr), 0);
}

// A worker that always has something to run goes over to it, and back.
TEST_P(WorkerSched, ComesToABusyWorkerToo) {
    const unsigned number = add();
    std::atomic<bool> over{false};
    std::vector<Light> busy;
    for (unsigned i = 0; i < 2 * workers() + 4; i++)
        busy.emplace_back([&] {
            while (!over)
                thrum_yield();
        });
    ASSERT_EQ(thrum_worker_set_sched(number, sched_), 0);
    Light([number] { EXPECT_EQ(thrum_worker_self(), static_cast<int>(number)); }, &pooled_);
    ASSERT_EQ(thrum_worker_set_sched(number, nullptr), 0);
    expect_stops(number);
    over = true;
}

ULT_OVER_WORKERS(WorkerSched);

// --- without a runtime, without memory or threads, at the end ---------------------------------------------

int init(unsigned workers) {
    const thrum_config config{workers, 0, {THRUM_PREEMPT_NONE, 0, 0, 0}, {}}; // which makes no threads later
    return thrum_init(&config);
}

class WorkerPlain : public UltPlain {
  protected:
    void TearDown() override {
        faults_clear();
        UltPlain::TearDown();
    }
};

TEST_F(WorkerPlain, NeedsARuntime) {
    EXPECT_EQ(thrum_worker_add(nullptr), ESRCH);
    EXPECT_EQ(thrum_worker_stop(0), ESRCH);
    EXPECT_EQ(thrum_worker_self(), -1);
    ASSERT_EQ(init(2), 0);
    expect_stops(add());
    ASSERT_EQ(thrum_fini(), 0);
    EXPECT_EQ(thrum_worker_add(nullptr), ESRCH);
    EXPECT_EQ(thrum_worker_stop(0), ESRCH);
}

TEST_F(WorkerPlain, ThereAreNotMoreThan1024) {
    if (kStressDivisor > 1)
        GTEST_SKIP() << "takes long";
    ASSERT_EQ(init(1023), 0);
    const unsigned last = add();
    EXPECT_EQ(last, 1023U);
    EXPECT_EQ(thrum_worker_add(nullptr), EAGAIN);
    EXPECT_EQ(thrum_workers(), 1024U);
    expect_stops(500);
    EXPECT_EQ(add(), 500U);
    ASSERT_EQ(thrum_fini(), 0);
}

TEST_F(WorkerPlain, AnyOneMmap) {
    ASSERT_EQ(init(2), 0);
    expect_stops(add()); // one slot has memory
    faults.mmap.after(0, 1, ENOMEM);
    expect_stops(add());
    faults_clear();
    const unsigned first = add();
    for (int call = 0; call < 2; call++) { // its own memory, its deque's
        faults.mmap.after(call, 1, ENOMEM);
        EXPECT_EQ(thrum_worker_add(nullptr), ENOMEM) << "call " << call;
        EXPECT_EQ(thrum_workers(), 3U);
    }
    faults_clear();
    expect_stops(add());
    expect_stops(first);
    ASSERT_EQ(thrum_fini(), 0);
}

TEST_F(WorkerPlain, NoThread) {
    ASSERT_EQ(init(2), 0);
    const unsigned first = add();
    for (int i = 0; i < 3; i++) { // a new slot, then twice the one that this has left
        faults.create.after(0, 1, EAGAIN);
        EXPECT_EQ(thrum_worker_add(nullptr), EAGAIN);
        EXPECT_EQ(thrum_workers(), 3U);
        EXPECT_EQ(thrum_worker_stop(first + 1), EINVAL);
        in_ult([] { in_ult([] {}); });
    }
    EXPECT_EQ(add(), first + 1);
    ASSERT_EQ(thrum_fini(), 0);
}

// A runtime without a call of thrum_init has no primary worker: any may stop, but not all.
TEST_F(WorkerPlain, OfTheDefaultRuntime) {
    const int status = in_child([] {
        External([] { in_ult([] {}); }).join();
        const unsigned all = thrum_workers();
        unsigned added = 0;
        if (thrum_worker_add(&added) != 0 || added != all)
            return 1;
        for (unsigned i = 0; i < all; i++)
            if (thrum_worker_stop(i) != 0)
                return 2;
        if (thrum_worker_stop(added) != EBUSY || thrum_workers() != 1)
            return 3;
        in_ult([] {});
        return HasFailure() ? 4 : 0;
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(WorkerPlain, InAChildOfFork) {
    if (ULT_EMULATED)
        GTEST_SKIP() << "the emulator's child of a fork can start no threads";
    ASSERT_EQ(init(2), 0);
    const unsigned number = add();
    const int status = in_child([] {
        if (thrum_worker_add(nullptr) != ESRCH || init(1) != 0)
            return 1;
        expect_stops(add());
        return thrum_fini() == 0 && !HasFailure() ? 0 : 2;
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    expect_stops(number);
    ASSERT_EQ(thrum_fini(), 0);
}

// External threads that ask for workers before there is a runtime: until it is there they hear so, and from then on they
// get workers, each its own.
TEST_F(WorkerPlain, AreAskedForWhileTheRuntimeBegins) {
    for (int round = 0; round < 40 / kStressDivisor + 1; round++) {
        std::atomic<bool> go{false};
        std::array<unsigned, 2> numbers{};
        std::vector<std::thread> ask;
        for (unsigned &number : numbers)
            ask.emplace_back([&go, &number] {
                while (!go)
                    std::this_thread::yield();
                int error = 0;
                while ((error = thrum_worker_add(&number)) == ESRCH)
                    std::this_thread::yield();
                EXPECT_EQ(error, 0);
            });
        go = true;
        ASSERT_EQ(init(2), 0);
        for (std::thread &thread : ask)
            thread.join();
        EXPECT_NE(numbers[0], numbers[1]);
        EXPECT_EQ(thrum_workers(), 4U);
        ASSERT_EQ(thrum_fini(), 0);
    }
}

// A thread that spawns meanwhile waits for it, or starts one itself; it may not see an incomplete one.
TEST_F(WorkerPlain, AreBoundToWhileTheRuntimeBegins) {
    if (ULT_TSAN || ULT_ASAN || ULT_EMULATED)
        GTEST_SKIP() << "children of a fork that begin threads";
    for (int round = 0; round < 100 / kStressDivisor + 1; round++) {
        const int status = in_child([round] {
            setenv("THRUM_WORKERS", "2", 1);
            std::atomic<int> ready{0};
            int error = -1;
            std::thread spawns([&] {
                thrum_attr_t attr;
                thrum_attr_init(&attr);
                thrum_attr_set_worker(&attr, 1);
                ready++;
                while (ready < 2) {
                }
                spin_us(round % 50);
                thrum_t thread = nullptr;
                error = thrum_spawn(
                    &thread, &attr, [](void *arg) { return arg; }, nullptr);
                if (error == 0)
                    error = thrum_join(thread, nullptr);
                ready++;
            });
            ready++;
            while (ready < 2) {
            }
            const int began = init(2);
            while (ready < 3)
                thrum_yield();
            spawns.join();
            return (began == 0 || began == EBUSY) && error == 0 ? 0 : 1;
        });
        ASSERT_EQ(status, 0) << "round " << round;
    }
}

// Threads that add and stop workers all the time when the runtime ends.
TEST_F(WorkerPlain, TheRuntimeEndsMeanwhile) {
    for (int round = 0; round < 30 / (kStressDivisor > 1 ? 10 : 1); round++) {
        ASSERT_EQ(init(3), 0);
        for (int i = 0; i < 3; i++)
            ASSERT_EQ(thrum_spawn(
                          nullptr, nullptr,
                          [](void *) -> void * {
                              unsigned number = 0;
                              for (;;)
                                  if (thrum_worker_add(&number) == 0)
                                      thrum_worker_stop(number);
                          },
                          nullptr),
                      0);
        for (int i = 0; i < round; i++)
            thrum_yield();
        ASSERT_EQ(thrum_fini(), 0);
        EXPECT_EQ(thrum_workers(), 0U);
    }
}

// --- all at once ------------------------------------------------------------------------------------------

class WorkerStress : public Ult {};

// Threads that spawn, join, lock, sleep and yield; nothing gets lost, and nothing runs twice.
TEST_P(WorkerStress, ComeAndGoUnderWork) {
    const uint64_t end = in_ms(kStressDivisor > 1 ? 600 : 400);
    std::atomic<long> sum{0}, expected{0};
    thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
    long locked = 0;
    const thrum_attr_t queued = attr_queued();
    const auto work = [&](int i) {
        std::minstd_rand random(static_cast<unsigned>(i) + 1);
        while (thrum_now() < end) {
            const int count = static_cast<int>(random() % 20);
            std::vector<Light> lights;
            lights.reserve(static_cast<std::size_t>(count));
            for (int k = 0; k < count; k++)
                lights.emplace_back(
                    [&] {
                        thrum_yield();
                        sum++;
                    },
                    k % 2 != 0 ? &queued : nullptr);
            expected += count;
            if (random() % 4 == 0)
                thrum_sleep(random() % 300 * THRUM_US);
            lights.clear();
            thrum_mutex_lock(&mutex);
            locked++;
            thrum_mutex_unlock(&mutex);
        }
    };
    const auto change = [&](int i) {
        std::minstd_rand random(static_cast<unsigned>(i) + 100);
        std::vector<unsigned> mine;
        while (thrum_now() < end) {
            if (mine.empty() || (mine.size() < 4 && random() % 2 == 0)) {
                mine.push_back(add());
            } else {
                expect_stops(mine.back());
                mine.pop_back();
            }
            thrum_sleep(random() % 500 * THRUM_US);
        }
        for (const unsigned number : mine)
            expect_stops(number);
    };
    {
        const Heavies changers(1, change);
        const Light changer([&] { change(1); });
        crew(10, 2, work);
    }
    EXPECT_EQ(sum, expected);
    EXPECT_EQ(thrum_workers(), workers());
    EXPECT_GT(locked, 0);
}

// Down to one and up again.
TEST_P(WorkerStress, AllButOne) {
    for (int round = 0; round < 5; round++) {
        std::atomic<bool> over{false};
        std::vector<Light> lights;
        for (int i = 0; i < 20; i++)
            lights.emplace_back([&] {
                while (!over)
                    thrum_sleep(100 * THRUM_US);
            });
        for (unsigned i = 1; i < workers(); i++)
            expect_stops(i);
        in_ult([] { thrum_sleep(THRUM_MS); });
        for (unsigned i = 1; i < workers(); i++)
            EXPECT_EQ(add(), i);
        over = true;
    }
}

ULT_OVER_WORKERS(WorkerStress);

} // namespace
