// SPDX-License-Identifier: Apache-2.0
//
// Sleeping, joining with a deadline, and the timers below. The machine may be busy with other things: no test says how
// soon something happens, but for CPU time.
#include <errno.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "core.hpp"
#include "crew.hpp"
#include "inside.h"
#include "ult.hpp"

#define _Alignas alignas
#define _Static_assert static_assert
extern "C" {
#include "sched/time/timer.h"
#include "sched/wait.h"
}
#undef _Alignas
#undef _Static_assert

namespace {

constexpr uint64_t kHour = 3600 * THRUM_S;
constexpr int kSleepers = 10000 / kStressDivisor;
constexpr int kRounds = 2000 / kStressDivisor;

// Until then it is certainly not over; `woken` is when it was.
#define EXPECT_NOT_EARLY(deadline) EXPECT_GE(thrum_now(), deadline)

uint64_t cpu_ns() {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<uint64_t>(time.tv_sec) * THRUM_S + static_cast<uint64_t>(time.tv_nsec);
}

// The kernel thread as a whole; its worker does nothing meanwhile.
void hold_kernel_thread(uint64_t ns) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
}

// --- sleeping ---------------------------------------------------------------------------------------------

class Sleep : public Ult {};

TEST_P(Sleep, NowIsTheMonotonicClock) {
    timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    const uint64_t now = thrum_now();
    clock_gettime(CLOCK_MONOTONIC, &after);
    EXPECT_LE(clock_ns(&before), now);
    EXPECT_GE(clock_ns(&after), now);
}

void sleep_for_many_times() {
    for (const uint64_t ns : {uint64_t{0}, uint64_t{1}, THRUM_US, 50 * THRUM_US, THRUM_MS, 7 * THRUM_MS}) {
        const uint64_t deadline = thrum_now() + ns;
        thrum_sleep(ns);
        EXPECT_NOT_EARLY(deadline);
        const uint64_t then = thrum_now() + ns;
        thrum_sleep_until(then);
        EXPECT_NOT_EARLY(then);
    }
}

TEST_P(Sleep, IsNeverEarly) {
    sleep_for_many_times(); // on the bound thread
    in_ult(sleep_for_many_times);
    std::vector<Light> lights;
    for (int i = 0; i < 20; i++)
        lights.emplace_back(sleep_for_many_times);
}

TEST_P(Sleep, OnExternalKernelThreads) {
    const Heavies external(4, [](int) { sleep_for_many_times(); });
    in_ult(sleep_for_many_times);
}

TEST_P(Sleep, APastDeadlineLetsOthersRun) {
    std::atomic<bool> stop{false}, ran{false};
    Light loop([&] {
        while (!stop)
            thrum_sleep_until(ran ? 0 : 1);
    });
    Light other([&] { ran = true; });
    EXPECT_TRUE(eventually([&] { return ran.load(); }));
    stop = true;
}

TEST_P(Sleep, ManyAtATime) {
    std::mt19937 random{1};
    std::vector<Light> lights;
    std::atomic<int> woken{0};
    for (int i = 0; i < kSleepers; i++) {
        const uint64_t ns = random() % (300 * THRUM_MS);
        lights.emplace_back([&woken, ns] {
            const uint64_t deadline = thrum_now() + ns;
            thrum_sleep(ns);
            if (thrum_now() >= deadline)
                woken++;
        });
    }
    lights.clear();
    EXPECT_EQ(woken, kSleepers);
}

TEST_P(Sleep, ManyForTheSameDeadline) {
    std::vector<Light> lights;
    std::atomic<int> woken{0};
    const uint64_t moment = thrum_now() + 100 * THRUM_MS;
    for (int i = 0; i < kSleepers; i++)
        lights.emplace_back([&woken, moment] {
            thrum_sleep_until(moment);
            if (thrum_now() >= moment)
                woken++;
        });
    lights.clear();
    EXPECT_EQ(woken, kSleepers);
}

TEST_P(Sleep, AgainAndAgainBesideOthersThatYield) {
    std::atomic<bool> stop{false};
    std::vector<Light> busy;
    for (unsigned i = 0; i < 2 * std::min(workers(), 4U); i++)
        busy.emplace_back([&stop] {
            while (!stop)
                thrum_yield();
        });
    {
        std::vector<Light> lights;
        for (int i = 0; i < 10; i++)
            lights.emplace_back([i] {
                for (int round = 0; round < 50; round++) {
                    const uint64_t deadline = thrum_now() + static_cast<uint64_t>(i) * 50 * THRUM_US;
                    thrum_sleep_until(deadline);
                    EXPECT_NOT_EARLY(deadline);
                }
            });
    }
    stop = true;
}

// Each of all workers but one runs a thread that does not yield until the threads have woken that sleep on its
// worker.
TEST_P(Sleep, ALongThreadDelaysNoOtherWhileAnotherWorkerIsIdle) {
    if (workers() == 1)
        GTEST_SKIP() << "there is no other worker";
    for (int round = 0; round < 3; round++) {
        std::vector<Light> hogs;
        const thrum_attr_t queued = attr_queued();
        for (unsigned i = 0; i < workers() - 1; i++)
            hogs.emplace_back(
                [i] {
                    std::atomic<int> woken{0};
                    std::vector<Light> sleepers;
                    for (uint64_t j = 0; j < 5; j++)
                        sleepers.emplace_back([&woken, i, j] {
                            thrum_sleep((1 + j * i) * THRUM_MS);
                            woken++;
                        });
                    const uint64_t end = thrum_now() + 20 * THRUM_S;
                    while (woken < 5 && thrum_now() < end) {
                    }
                    EXPECT_EQ(woken, 5);
                },
                &queued);
    }
}

// All are asleep. The first to be woken, by the only worker that watches the time, runs until the next one has been.
TEST_P(Sleep, TheTimekeeperIsReplaced) {
    if (workers() == 1)
        GTEST_SKIP() << "there is no other worker";
    const unsigned count = std::min(workers(), 8U);
    // Queued: this thread is bound to its worker, which one that is late and spins would take from it.
    const thrum_attr_t queued = attr_queued();
    for (int round = 0; round < 5; round++) {
        std::atomic<unsigned> woken{0};
        std::vector<Light> lights;
        const uint64_t begin = thrum_now() + 5 * THRUM_MS, end = begin + 20 * THRUM_S;
        for (unsigned i = 0; i < count; i++)
            lights.emplace_back(
                [&, i] {
                    thrum_sleep_until(begin + i * THRUM_MS);
                    woken++;
                    while (woken < count && thrum_now() < end) {
                    }
                    EXPECT_EQ(woken, count);
                },
                &queued);
    }
}

// A sleeper that the runtime's end may overtake: it owns nothing.
void leave_behind(uint64_t ns) {
    EXPECT_EQ(thrum_spawn(
                  nullptr, nullptr,
                  [](void *span) -> void * {
                      thrum_sleep(reinterpret_cast<uintptr_t>(span));
                      return nullptr;
                  },
                  reinterpret_cast<void *>(ns)),
              0);
}

TEST_P(Sleep, TheRuntimeMayEndMeanwhile) {
    for (int i = 0; i < 10; i++)
        leave_behind(kHour);
    in_ult([] { thrum_sleep(THRUM_MS); });
}

ULT_OVER_WORKERS(Sleep);

class SleepPlain : public UltPlain {};

TEST_F(SleepPlain, WithoutARuntime) {
    sleep_for_many_times();
    EXPECT_EQ(thrum_workers(), 0U);
}

TEST_F(SleepPlain, ANewRuntimeKnowsNothingOfTheLastOnesSleepers) {
    for (int i = 0; i < 5; i++) {
        const thrum_config config{4, 0, {}, {}};
        ASSERT_EQ(thrum_init(&config), 0);
        for (uint64_t j = 0; j < 10; j++)
            leave_behind(j % 2 != 0 ? THRUM_MS : kHour);
        if (i % 2 == 0)
            in_ult([] { thrum_sleep(THRUM_MS); });
        ASSERT_EQ(thrum_fini(), 0);
    }
}

class SleepFork : public UltForking {};

// A worker that will never be was the parent's timekeeper.
TEST_P(SleepFork, InAForksChild) {
    if (ULT_EMULATED && workers() > 1)
        GTEST_SKIP() << "the emulator's child of a fork among threads can start none";
    Light sleeper([] { thrum_sleep(THRUM_S); });
    hold_kernel_thread(5 * THRUM_MS);
    const int status = in_child([] {
        const uint64_t moment = thrum_now() + THRUM_MS;
        thrum_sleep_until(moment);
        const thrum_config config{2, 0, {}, {}};
        if (thrum_now() < moment || thrum_init(&config) != 0)
            return 1;
        for (int i = 0; i < 10; i++) {
            in_ult([] { thrum_sleep(THRUM_MS); });
            thrum_sleep(THRUM_MS);
        }
        return thrum_fini();
    });
    EXPECT_EQ(status, 0);
}

ULT_OVER_WORKERS(SleepFork);

// --- idle workers -----------------------------------------------------------------------------------------

class IdleWorkers : public Ult {
  protected:
    static uint64_t cpu_while(const std::function<void()> &idle) {
        hold_kernel_thread(30 * THRUM_MS); // they have found nothing, and park
        const uint64_t before = cpu_ns();
        idle();
        return cpu_ns() - before;
    }
};

constexpr uint64_t kIdleCpu = ULT_TSAN || ULT_EMULATED ? 50 * THRUM_MS : 5 * THRUM_MS;

TEST_P(IdleWorkers, UseNoCpu) {
    in_ult([] {});
    EXPECT_LT(cpu_while([] { hold_kernel_thread(300 * THRUM_MS); }), kIdleCpu);
}

TEST_P(IdleWorkers, UseNoCpuWhileThreadsSleep) {
    std::atomic<int> begun{0};
    std::vector<Light> lights;
    for (int i = 0; i < 100; i++)
        lights.emplace_back([i, &begun] {
            begun++;
            thrum_sleep((600 + static_cast<uint64_t>(i % 2)) * THRUM_MS);
        });
    EXPECT_TRUE(eventually([&] { return begun == 100; }));
    EXPECT_LT(cpu_while([] { hold_kernel_thread(300 * THRUM_MS); }), kIdleCpu);
}

TEST_P(IdleWorkers, UseNoCpuWhileAllSleep) {
    EXPECT_LT(cpu_while([] { thrum_sleep(300 * THRUM_MS); }), kIdleCpu);
}

ULT_OVER_WORKERS(IdleWorkers);

// --- joining with a deadline ------------------------------------------------------------------------------

class TimedJoin : public Ult {
  protected:
    // On the bound thread, on a ULT and on an external kernel thread.
    static void everywhere(const std::function<void()> &work) {
        work();
        in_ult(work);
        const Heavies external(1, [&work](int) { work(); });
    }
};

void *identity(void *arg) {
    return arg;
}

void *wait_for_flag(void *arg) {
    while (!static_cast<std::atomic<bool> *>(arg)->load())
        thrum_sleep(50 * THRUM_US);
    return arg;
}

void *sleep_ns(void *ns) {
    thrum_sleep(*static_cast<uint64_t *>(ns));
    return ns;
}

thrum_t spawn(void *(*fn)(void *), void *arg) {
    thrum_t thread = nullptr;
    EXPECT_EQ(thrum_spawn(&thread, nullptr, fn, arg), 0);
    return thread;
}

TEST_P(TimedJoin, HasEnded) {
    everywhere([] {
        int object;
        void *result = nullptr;
        thrum_t thread = spawn(identity, &object);
        EXPECT_EQ(thrum_join_until(thread, &result, thrum_now() + kHour), 0);
        EXPECT_EQ(result, &object);
        std::atomic<bool> ended{false};
        thread = spawn(
            [](void *flag) -> void * {
                *static_cast<std::atomic<bool> *>(flag) = true;
                return flag;
            },
            &ended);
        EXPECT_TRUE(eventually([&] { return ended.load(); }));
        int error;
        EXPECT_TRUE(eventually([&] { return (error = thrum_join_until(thread, &result, 0)) != ETIMEDOUT; }))
            << "a moment that has passed is no hindrance to taking what is there";
        EXPECT_EQ(error, 0);
        EXPECT_EQ(result, &ended);
    });
}

TEST_P(TimedJoin, TimesOutAndCanBeJoinedAgain) {
    everywhere([] {
        std::atomic<bool> end{false};
        void *result = nullptr;
        const thrum_t thread = spawn(wait_for_flag, &end);
        for (const uint64_t ns : {uint64_t{0}, THRUM_US, 3 * THRUM_MS}) {
            const uint64_t moment = thrum_now() + ns;
            EXPECT_EQ(thrum_join_until(thread, &result, moment), ETIMEDOUT);
            EXPECT_NOT_EARLY(moment);
            EXPECT_EQ(result, nullptr);
        }
        end = true;
        EXPECT_EQ(thrum_join(thread, &result), 0);
        EXPECT_EQ(result, &end);
    });
}

TEST_P(TimedJoin, EndsInTime) {
    everywhere([] {
        uint64_t ns = 2 * THRUM_MS;
        for (const uint64_t moment : {thrum_now() + kHour, UINT64_MAX}) {
            void *result = nullptr;
            const thrum_t thread = spawn(sleep_ns, &ns);
            EXPECT_EQ(thrum_join_until(thread, &result, moment), 0);
            EXPECT_EQ(result, &ns);
        }
    });
}

TEST_P(TimedJoin, CanBeDetachedAfterATimeout) {
    everywhere([] {
        std::atomic<int> state{0};
        thrum_t thread = spawn(
            [](void *arg) -> void * {
                auto *mine = static_cast<std::atomic<int> *>(arg);
                while (*mine == 0)
                    thrum_sleep(50 * THRUM_US);
                *mine = 2;
                return nullptr;
            },
            &state);
        EXPECT_EQ(thrum_join_until(thread, nullptr, thrum_now() + THRUM_MS), ETIMEDOUT);
        EXPECT_EQ(thrum_detach(thread), 0);
        state = 1;
        EXPECT_TRUE(eventually([&] { return state == 2; }));
    });
}

TEST_P(TimedJoin, NotByItself) {
    in_ult([] {
        EXPECT_EQ(thrum_join_until(thrum_self(), nullptr, thrum_now() + THRUM_MS), EDEADLK);
        EXPECT_EQ(thrum_try_join(thrum_self(), nullptr), EDEADLK);
    });
}

TEST_P(TimedJoin, TryJoin) {
    everywhere([] {
        std::atomic<bool> end{false};
        void *result = nullptr;
        const thrum_t thread = spawn(wait_for_flag, &end);
        EXPECT_EQ(thrum_try_join(thread, &result), EBUSY);
        EXPECT_EQ(result, nullptr);
        end = true;
        EXPECT_TRUE(eventually([&] { return thrum_try_join(thread, &result) == 0; }));
        EXPECT_EQ(result, &end);
    });
}

TEST_P(TimedJoin, TheHandleMayBeKept) {
    everywhere([] {
        std::atomic<bool> end{false};
        void *result = nullptr;
        const thrum_t thread = spawn(wait_for_flag, &end);
        EXPECT_EQ(thrum_try_join_keep(thread, &result), EBUSY);
        const uint64_t deadline = thrum_now() + THRUM_MS;
        EXPECT_EQ(thrum_join_keep_until(thread, &result, deadline), ETIMEDOUT);
        EXPECT_NOT_EARLY(deadline);
        EXPECT_EQ(result, nullptr);
        end = true;
        EXPECT_EQ(thrum_join_keep_until(thread, &result, thrum_now() + kHour), 0);
        EXPECT_EQ(result, &end);
        result = nullptr;
        EXPECT_EQ(thrum_try_join_keep(thread, &result), 0);
        EXPECT_EQ(result, &end);
        EXPECT_EQ(thrum_join_keep_until(thread, nullptr, UINT64_MAX), 0);
        EXPECT_EQ(thrum_revive(thread, wait_for_flag, &end), 0) << "the handle is valid still";
        EXPECT_EQ(thrum_join(thread, nullptr), 0);
    });
    in_ult([] {
        EXPECT_EQ(thrum_join_keep_until(thrum_self(), nullptr, thrum_now() + THRUM_MS), EDEADLK);
        EXPECT_EQ(thrum_try_join_keep(thrum_self(), nullptr), EDEADLK);
    });
}

// The deadline and the end come at about the same time.
void join_about_when_it_ends(unsigned seed, std::atomic<int> &timed_out) {
    std::mt19937 random{seed};
    int ended = 0;
    for (int i = 0; i < kRounds / 4; i++) {
        uint64_t ns = random() % (20 * THRUM_US);
        const thrum_t thread = spawn(sleep_ns, &ns);
        void *result = nullptr;
        int error;
        while ((error = thrum_join_until(thread, &result, thrum_now() + random() % (60 * THRUM_US))) ==
               ETIMEDOUT)
            timed_out++;
        ended += error == 0 && result == &ns;
    }
    EXPECT_EQ(ended, kRounds / 4);
}

TEST_P(TimedJoin, RacesWithTheEnd) {
    std::atomic<int> timed_out{0};
    {
        const Heavies external(2,
                               [&](int i) { join_about_when_it_ends(static_cast<unsigned>(i), timed_out); });
        std::vector<Light> lights;
        for (unsigned i = 2; i < 8; i++)
            lights.emplace_back([i, &timed_out] { join_about_when_it_ends(i, timed_out); });
        join_about_when_it_ends(8, timed_out);
    }
    EXPECT_TRUE(timed_out > 0 || kStressDivisor > 1);
}

ULT_OVER_WORKERS(TimedJoin);

// --- timers -----------------------------------------------------------------------------------------------

class Timers : public Ult {};

// On a worker, inside.
template <class Work>
void inside(const Work &work) {
    struct worker *worker = inside_enter();
    work(worker);
    inside_leave();
}

struct Counted {
    struct timer timer = {};
    int fired = 0; // plain: a reader has synchronised by timer_stop, or it is a race

    explicit Counted(uint64_t deadline) {
        timer.deadline = deadline;
        timer.fire = [](struct worker *, struct timer *self) {
            spin_us(3);
            reinterpret_cast<Counted *>(self)->fired++;
        };
    }
};

// The heap is what timer.h says, and has so many.
size_t check_heap(const struct timer *timer, const struct timer *parent) {
    if (timer == nullptr)
        return 0;
    auto rank = [](const struct timer *child) { return child != nullptr ? child->rank : 0; };
    EXPECT_EQ(timer->parent, parent);
    EXPECT_TRUE(parent == nullptr || parent->deadline <= timer->deadline);
    EXPECT_GE(rank(timer->left), rank(timer->right));
    EXPECT_EQ(timer->rank, rank(timer->right) + 1);
    return 1 + check_heap(timer->left, timer) + check_heap(timer->right, timer);
}

void check_store(const struct timers &timers, size_t count) {
    EXPECT_EQ(check_heap(timers.root, nullptr), count);
    EXPECT_EQ(timers.next, timers.root != nullptr ? timers.root->deadline : TIMER_NEVER);
}

TEST_P(Timers, TheHeapIsOneAfterAnyStartsAndStops) {
    in_ult([] {
        inside([](struct worker *worker) {
            const uint64_t later = thrum_now() + kHour;
            std::mt19937 random{2};
            std::vector<std::unique_ptr<Counted>> running;
            for (int i = 0; i < 3000; i++) {
                if (random() % 5 < (i < 2000 ? 3 : 1)) {
                    running.push_back(
                        std::make_unique<Counted>(random() % 50 == 0 ? TIMER_NEVER : later + random() % 500));
                    timer_start(worker, &running.back()->timer);
                } else if (!running.empty()) {
                    std::swap(running[random() % running.size()], running.back());
                    EXPECT_TRUE(timer_stop(worker, &running.back()->timer));
                    running.pop_back();
                }
                if (i % 10 == 0)
                    check_store(*inside_timers(worker), running.size());
            }
            for (auto &counted : running) {
                EXPECT_TRUE(timer_stop(worker, &counted->timer));
                EXPECT_EQ(counted->fired, 0);
            }
            check_store(*inside_timers(worker), 0);
        });
    });
}

// What expires is fired in batches, each earlier than the next, within one the latest first (the run queue is LIFO).
TEST_P(Timers, AreFiredInTheOrderOfTheirDeadlines) {
    if (workers() > 1)
        GTEST_SKIP() << "others would fire them, too";
    struct Recorded {
        struct timer timer = {};
        std::vector<uint64_t> *record;
    };
    in_ult([] {
        inside([](struct worker *worker) {
            std::mt19937 random{3};
            std::vector<uint64_t> record, expected;
            std::vector<Recorded> all(500);
            const uint64_t now = thrum_now();
            for (Recorded &one : all) {
                const bool expired = random() % 4 != 0;
                one.timer.deadline = expired ? now - random() % THRUM_S : now + kHour + random() % THRUM_S;
                one.timer.fire = [](struct worker *, struct timer *self) {
                    reinterpret_cast<Recorded *>(self)->record->push_back(self->deadline);
                };
                one.record = &record;
                if (expired)
                    expected.push_back(one.timer.deadline);
                timer_start(worker, &one.timer);
            }
            std::sort(expected.begin(), expected.end());
            for (size_t before = 0;; before = record.size()) {
                timers_look(worker);
                std::reverse(record.begin() + static_cast<ptrdiff_t>(before), record.end());
                if (record.size() == before)
                    break;
            }
            EXPECT_EQ(record, expected);
            for (Recorded &one : all)
                EXPECT_EQ(timer_stop(worker, &one.timer), one.timer.deadline > now);
            check_store(*inside_timers(worker), 0);
        });
    });
}

// Many are started, and stopped by another ULT at about their deadline, mostly on another worker. What timer_stop
// says is true, and no thread touches the timer from then on.
TEST_P(Timers, StopRacesWithFire) {
    std::atomic<int> fired{0}, stopped{0};
    auto race = [&](unsigned seed) {
        std::mt19937 random{seed};
        for (int i = 0; i < kRounds; i++) {
            auto counted = std::make_unique<Counted>(thrum_now() + random() % (30 * THRUM_US));
            const double wait = static_cast<double>(random() % 30);
            inside([&](struct worker *worker) { timer_start(worker, &counted->timer); });
            const thrum_attr_t queued = attr_queued();
            const Light stopper(
                [&] {
                    spin_us(wait);
                    inside([&](struct worker *worker) {
                        const bool was_stopped = timer_stop(worker, &counted->timer);
                        EXPECT_EQ(counted->fired, was_stopped ? 0 : 1);
                        (was_stopped ? stopped : fired)++;
                        memset(static_cast<void *>(&counted->timer), 0xdd, sizeof counted->timer);
                    });
                },
                random() % 2 != 0 ? &queued : nullptr);
        }
    };
    {
        std::vector<Light> lights;
        for (unsigned i = 0; i < 4; i++)
            lights.emplace_back([&race, i] { race(i); });
    }
    EXPECT_EQ(fired + stopped, 4 * kRounds);
    EXPECT_GT(stopped, 0);
}

// A waker claims a waiter at about its deadline: either it wakes it, or the deadline has come and it does not. For at
// most two seconds: on a busy machine each meeting with an external thread costs a slice of the kernel's.
void wait_and_wake(unsigned seed, std::atomic<int> &woken, std::atomic<int> &timed_out) {
    struct Meeting {
        struct wait wait = {};
        std::atomic<int> stage{0}; // 1: the waiter is there; 2: the waker has tried
        bool claimed = false;
    };
    std::mt19937 random{seed};
    const uint64_t end = thrum_now() + 2 * THRUM_S;
    for (int i = 0; i < kRounds && thrum_now() < end; i++) {
        Meeting meeting;
        const double delay = static_cast<double>(random() % 30);
        Light waker([&meeting, delay] {
            while (meeting.stage != 1)
                thrum_yield();
            spin_us(delay);
            struct worker *worker = inside_enter();
            struct thrum_unit *unit = meeting.wait.unit;
            meeting.claimed = wait_claim(&meeting.wait);
            const bool claimed = meeting.claimed;
            meeting.stage = 2; // before the wake-up, which is the last that this may do with the meeting
            if (claimed)
                inside_wake(worker, unit);
            inside_leave();
        });
        struct worker *worker = inside_enter();
        meeting.wait.unit = inside_announce(worker);
        meeting.stage = 1;
        const uint64_t deadline = thrum_now() + random() % (40 * THRUM_US);
        const bool answer = unit_block_until(worker, &meeting.wait, deadline);
        inside_leave();
        if (!answer) {
            EXPECT_NOT_EARLY(deadline);
        }
        waker.join();
        EXPECT_EQ(meeting.claimed, answer);
        (answer ? woken : timed_out)++;
    }
}

TEST_P(Timers, ClaimRacesWithTheDeadline) {
    std::atomic<int> woken{0}, timed_out{0};
    {
        const Heavies external(1, [&](int) { wait_and_wake(0, woken, timed_out); });
        std::vector<Light> lights;
        for (unsigned i = 1; i < 4; i++)
            lights.emplace_back([&, i] { wait_and_wake(i, woken, timed_out); });
        wait_and_wake(4, woken, timed_out);
    }
    EXPECT_GT(woken, 0);
    EXPECT_GT(timed_out, 0);
}

TEST_P(Timers, ADeadlineThatHasPassedAndNever) {
    in_ult([] {
        struct wait wait = {};
        struct worker *worker = inside_enter();
        wait.unit = inside_announce(worker);
        EXPECT_FALSE(unit_block_until(worker, &wait, thrum_now()));
        EXPECT_FALSE(wait_claim(&wait));
        inside_leave();
        struct Patient {
            struct wait wait = {};
            std::atomic<bool> waits{false};
        } patient;
        Light waker([&patient] {
            while (!patient.waits)
                thrum_sleep(THRUM_MS);
            struct worker *here = inside_enter();
            struct thrum_unit *unit = patient.wait.unit;
            EXPECT_TRUE(wait_claim(&patient.wait));
            inside_wake(here, unit);
            inside_leave();
        });
        worker = inside_enter();
        patient.wait.unit = inside_announce(worker);
        patient.waits = true;
        EXPECT_TRUE(unit_block_until(worker, &patient.wait, TIMER_NEVER));
        inside_leave();
    });
}

// The keeper sleeps for long; a timer that is earlier wakes it, although the worker that has it never looks.
TEST_P(Timers, AnEarlierOneWakesTheKeeper) {
    if (workers() == 1)
        GTEST_SKIP() << "there is no other worker";
    in_ult([] {
        Counted late(thrum_now() + kHour);
        inside([&](struct worker *worker) { timer_start(worker, &late.timer); });
        for (int i = 0; i < 20; i++) {
            hold_kernel_thread(i % 4 * THRUM_MS); // the others park meanwhile, or are about to
            std::atomic<bool> woken{false};
            Light sleeper([&woken] {
                thrum_sleep(200 * THRUM_US);
                woken = true;
            });
            const uint64_t end = thrum_now() + 20 * THRUM_S;
            while (!woken && thrum_now() < end) {
            }
            EXPECT_TRUE(woken);
        }
        inside([&](struct worker *worker) { EXPECT_TRUE(timer_stop(worker, &late.timer)); });
        EXPECT_EQ(late.fired, 0);
    });
}

ULT_OVER_WORKERS(Timers);

} // namespace
