// SPDX-License-Identifier: Apache-2.0
//
// Threads with a kernel thread of their own (thrum_kthread_lock, THRUM_SPAWN_OWN_KTHREAD): that it stays the same, that others
// run meanwhile, and that they wait for each other.
#include <errno.h>
#include <thrum/pool.h>
#include <ucontext.h>

#include <array>
#include <atomic>
#include <set>
#include <vector>

#include "crew.hpp"
#include "own_kthread.hpp"
#include "pipe.hpp"

namespace {

class OwnKthread : public OverSettings {};

// Two contexts of libc, which switch to each other.
class Contexts {
  public:
    Contexts() {
        getcontext(&inner_);
        inner_.uc_stack.ss_sp = stack_.data();
        inner_.uc_stack.ss_size = stack_.size();
        inner_.uc_link = &outer_;
        makecontext(&inner_, back, 0);
    }
    void go() {
        here_ = this;
        swapcontext(&outer_, &inner_);
    }

  private:
    static void back() { swapcontext(&here_->inner_, &here_->outer_); }
    static inline Contexts *here_;
    std::array<char, 1 << 16> stack_{};
    ucontext_t outer_{}, inner_{};
};

// ULTs that run as long as it lives, and note on which kernel threads.
class Others {
  public:
    Others() {
        const thrum_attr_t attr = attr_queued();
        for (int i = 0; i < 3; i++)
            threads_.emplace_back([this] { run(); }, &attr);
    }
    // Whether one of them was on this kernel thread.
    bool have_used(pid_t thread) {
        over_ = true;
        for (Light &one : threads_)
            one.join();
        return seen_.count(thread) != 0;
    }
    void expect_progress() {
        const unsigned before = rounds_;
        EXPECT_TRUE(eventually([&] { return rounds_ > before + 3; }));
    }

  private:
    void run() {
        while (!over_) {
            rounds_++;
            thrum_mutex_lock(&mutex_);
            seen_.insert(tid());
            thrum_mutex_unlock(&mutex_);
            thrum_yield();
        }
    }
    std::atomic<bool> over_{false};
    std::atomic<unsigned> rounds_{0};
    thrum_mutex_t mutex_ = THRUM_MUTEX_INITIALIZER;
    std::set<pid_t> seen_;
    std::vector<Light> threads_;
};

void use_it(const Identity &identity, Others &others) {
    thrum_sem_t sem = THRUM_SEM_INITIALIZER(0);
    for (int i = 0; i < 20; i++) {
        const Light poster([&] { thrum_sem_post(&sem); });
        thrum_sem_wait(&sem);
        identity.expect_same();
        thrum_yield();
        identity.expect_same();
    }
    thrum_sleep(THRUM_MS);
    identity.expect_same();
    others.expect_progress();
    identity.expect_same();
}

TEST_P(OwnKthread, IsTheSameUntilTheUnlock) {
    in_ult([] {
        Others others;
        EXPECT_EQ(thrum_kthread_lock(), 0);
        const Identity identity;
        use_it(identity, others);
        EXPECT_EQ(thrum_kthread_unlock(), 0);
        EXPECT_NE(tid(), identity.thread());
        EXPECT_GE(thrum_worker_self(), 0);
        EXPECT_FALSE(others.have_used(identity.thread()));
    });
}

TEST_P(OwnKthread, ContextsOfLibcSwitchThere) {
    const thrum_attr_t attr = attr_own();
    Light(
        [] {
            const Identity before;
            const auto contexts = std::make_unique<Contexts>();
            contexts->go();
            before.expect_same();
        },
        &attr)
        .join();
}

TEST_P(OwnKthread, IsThereFromTheBeginning) {
    const thrum_attr_t attr = attr_own();
    Others others;
    pid_t own = 0;
    Light(
        [&] {
            const Identity identity;
            own = identity.thread();
            EXPECT_NE(thrum_self(), nullptr);
            use_it(identity, others);
        },
        &attr);
    EXPECT_NE(own, tid());
    EXPECT_FALSE(others.have_used(own));
}

TEST_P(OwnKthread, CanBeLeftByAThreadThatBeganWithIt) {
    const thrum_attr_t attr = attr_own();
    Light(
        [] {
            const pid_t own = tid();
            EXPECT_EQ(thrum_kthread_unlock(), 0);
            EXPECT_NE(tid(), own);
            EXPECT_GE(thrum_worker_self(), 0);
            EXPECT_EQ(thrum_kthread_unlock(), EPERM);
            EXPECT_EQ(thrum_kthread_lock(), 0);
            EXPECT_EQ(thrum_worker_self(), -1);
        },
        &attr);
}

TEST_P(OwnKthread, CallsNest) {
    in_ult([] {
        EXPECT_EQ(thrum_kthread_unlock(), EPERM);
        EXPECT_EQ(thrum_kthread_lock(), 0);
        const Identity identity;
        EXPECT_EQ(thrum_kthread_lock(), 0);
        EXPECT_EQ(thrum_kthread_lock(), 0);
        identity.expect_same();
        EXPECT_EQ(thrum_kthread_unlock(), 0);
        EXPECT_EQ(thrum_kthread_unlock(), 0);
        identity.expect_same();
        EXPECT_EQ(thrum_kthread_unlock(), 0);
        EXPECT_NE(tid(), identity.thread());
        EXPECT_EQ(thrum_kthread_unlock(), EPERM);
    });
}

// The only other worker's thread writes what this one reads.
TEST_P(OwnKthread, MayBlockInTheKernel) {
    const Pipe pipe;
    const thrum_attr_t attr = attr_own();
    const Light reader([&] { EXPECT_EQ(pipe.get(), 'a'); }, &attr);
    std::vector<Light> threads;
    for (int i = 0; i < 10; i++)
        threads.emplace_back([] { thrum_yield(); });
    for (Light &thread : threads)
        thread.join();
    in_ult([&] { pipe.put('a'); });
}

// Without a preemption, too.
TEST_P(OwnKthread, MayComputeWithoutHoldingUpOthers) {
    std::atomic<bool> over{false};
    const thrum_attr_t attr = attr_own();
    Light computing([&] { wait_for(over); }, &attr);
    in_ult([&] {
        for (int i = 0; i < 10; i++)
            in_ult([] { thrum_yield(); });
        over = true;
    });
    computing.join();
}

// A thread that begins with it does not wait for a worker.
TEST_P(OwnKthread, BeginsWhileAllWorkersCompute) {
    if (workers() != 1)
        return;
    std::atomic<bool> begun{false};
    const thrum_attr_t attr = attr_own();
    const Light thread([&] { begun = true; }, &attr);
    wait_for(begun); // on the only worker
}

// What it starts runs where it can: it computes meanwhile itself.
TEST_P(OwnKthread, WhatItStartsRunsOnWorkers) {
    const thrum_attr_t attr = attr_own();
    Light(
        [] {
            const pid_t own = tid();
            std::atomic<int> there{0};
            Light child([&] {
                EXPECT_NE(tid(), own);
                EXPECT_GE(thrum_worker_self(), 0);
                there++;
            });
            thrum_t tasklet = nullptr;
            thrum_attr_t light;
            thrum_attr_init(&light);
            thrum_attr_set_flags(&light, THRUM_SPAWN_TASKLET);
            const auto count = [](void *counter) -> void * {
                ++*static_cast<std::atomic<int> *>(counter);
                return nullptr;
            };
            EXPECT_EQ(thrum_spawn(&tasklet, &light, count, &there), 0);
            thrum_call_t call;
            const auto fire = [](void *counter) { ++*static_cast<std::atomic<int> *>(counter); };
            EXPECT_EQ(thrum_call_at(&call, in_us(100), fire, &there), 0);
            thrum_event_t never = THRUM_EVENT_INITIALIZER;
            thrum_wait_t wait = {THRUM_WAIT_EVENT, 0, &never, nullptr, {}};
            thrum_when_t when = {&wait, 1, in_us(100), fire, &there, 0, 0, 0, {}};
            EXPECT_EQ(thrum_spawn_when(nullptr, &when), 0);
            while (there < 4) {
            }
            child.join();
            EXPECT_EQ(thrum_join(tasklet, nullptr), 0);
        },
        &attr);
}

TEST_P(OwnKthread, AThreadThatBeginsLaterHasItThen) {
    thrum_event_t event = THRUM_EVENT_INITIALIZER;
    struct Seen {
        std::atomic<int> worker{-2};
        thrum_event_t over = THRUM_EVENT_INITIALIZER;
    } seen;
    thrum_wait_t wait = {THRUM_WAIT_EVENT, 0, &event, nullptr, {}};
    const auto run = [](void *to) {
        static_cast<Seen *>(to)->worker = thrum_worker_self();
        thrum_event_set(&static_cast<Seen *>(to)->over);
    };
    thrum_when_t when = {&wait, 1, kNever, run, &seen, 0, 0, 0, {}};
    const thrum_attr_t attr = attr_own();
    ASSERT_EQ(thrum_spawn_when(&attr, &when), 0);
    thrum_event_set(&event);
    thrum_event_wait(&seen.over);
    EXPECT_EQ(seen.worker, -1);
}

// --- objects ----------------------------------------------------------------------------------------------

// Two that hand a turn to and fro by a mutex and a condition, each of any sort.
void take_turns(const std::function<void(const Light::Work &)> &one,
                const std::function<void(const Light::Work &)> &other) {
    constexpr int kTurns = 20;
    thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
    thrum_cond_t cond = THRUM_COND_INITIALIZER;
    int turn = 0;
    const auto take = [&](int parity) {
        thrum_mutex_lock(&mutex);
        while (turn < kTurns) {
            if (turn % 2 == parity) {
                turn++;
                thrum_cond_broadcast(&cond);
            } else {
                thrum_cond_wait(&cond, &mutex);
            }
        }
        thrum_mutex_unlock(&mutex);
    };
    const Light first([&] { one([&] { take(0); }); });
    other([&] { take(1); });
}

TEST_P(OwnKthread, TakesTurnsWithEachSortOfThread) {
    const auto on_own = [](const Light::Work &work) {
        const thrum_attr_t attr = attr_own();
        Light(work, &attr).join();
    };
    const auto external = [](const Light::Work &work) { External(work).join(); };
    take_turns(on_own, in_ult);
    take_turns(on_own, on_own);
    take_turns(on_own, external);
    take_turns(on_own, [](const Light::Work &work) { work(); }); // the bound one
}

TEST_P(OwnKthread, WaitsForAllObjects) {
    const thrum_attr_t attr = attr_own();
    thrum_channel_t channel = THRUM_CHANNEL_UNBOUNDED_INITIALIZER(sizeof(int));
    thrum_rwlock_t rwlock = THRUM_RWLOCK_INITIALIZER;
    thrum_event_t event = THRUM_EVENT_INITIALIZER;
    thrum_barrier_t barrier;
    ASSERT_EQ(thrum_barrier_init(&barrier, 2), 0);
    Light thread(
        [&] {
            int value = 0;
            EXPECT_EQ(thrum_channel_receive(&channel, &value), 0);
            EXPECT_EQ(value, 3);
            thrum_barrier_wait(&barrier);
            thrum_rwlock_read_lock(&rwlock);
            thrum_rwlock_unlock(&rwlock);
            thrum_sem_t none = THRUM_SEM_INITIALIZER(0);
            thrum_wait_t waits[] = {{THRUM_WAIT_EVENT, 0, &event, nullptr, {}},
                                    {THRUM_WAIT_SEM, 0, &none, nullptr, {}}};
            std::size_t which = 9;
            EXPECT_EQ(thrum_wait_any(waits, 2, in_ms(20000), &which), 0);
            EXPECT_EQ(which, 0U);
            in_ult([] { thrum_yield(); });
        },
        &attr);
    thrum_rwlock_write_lock(&rwlock);
    const int value = 3;
    EXPECT_EQ(thrum_channel_send(&channel, &value), 0);
    thrum_barrier_wait(&barrier);
    thrum_sleep(THRUM_MS);
    thrum_rwlock_unlock(&rwlock);
    thrum_sleep(THRUM_MS);
    thrum_event_set(&event);
    thread.join();
    thrum_barrier_destroy(&barrier);
    thrum_channel_destroy(&channel);
}

TEST_P(OwnKthread, WaitsUntilDeadlines) {
    const thrum_attr_t attr = attr_own();
    Light(
        [] {
            thrum_sem_t sem = THRUM_SEM_INITIALIZER(0);
            const uint64_t deadline = in_ms(2);
            EXPECT_EQ(thrum_sem_wait_until(&sem, deadline), ETIMEDOUT);
            EXPECT_GE(thrum_now(), deadline);
            EXPECT_EQ(thrum_suspend_until(in_ms(1)), ETIMEDOUT);
            thrum_event_t never = THRUM_EVENT_INITIALIZER;
            const Light waiting([&] { thrum_event_wait(&never); });
            EXPECT_EQ(thrum_join_until(waiting.handle(), nullptr, in_ms(1)), ETIMEDOUT);
            thrum_event_set(&never);
            const Light poster([&] { thrum_sem_post(&sem); });
            EXPECT_EQ(thrum_sem_wait_until(&sem, in_ms(20000)), 0); // the last deadline is forgotten
            EXPECT_EQ(thrum_sem_wait_until(&sem, in_ms(1)), ETIMEDOUT);
        },
        &attr);
}

TEST_P(OwnKthread, IsSuspendedAndResumed) {
    const thrum_attr_t attr = attr_own();
    std::atomic<int> resumed{0};
    Light thread(
        [&] {
            for (int i = 0; i < 3; i++) {
                const pid_t own = tid();
                EXPECT_EQ(thrum_suspend(), 0);
                EXPECT_EQ(tid(), own);
                resumed++;
            }
            Light other([&] {
                EXPECT_EQ(thrum_suspend(), 0);
                EXPECT_GE(thrum_worker_self(), 0);
            });
            EXPECT_EQ(thrum_switch_to(other.handle()), 0); // makes it runnable, on a worker
            EXPECT_EQ(thrum_worker_self(), -1);
        },
        &attr);
    EXPECT_EQ(thrum_resume(thread.handle()), 0);
    EXPECT_TRUE(eventually([&] { return resumed == 1; }));
    in_ult([&] { EXPECT_EQ(thrum_switch_to(thread.handle()), 0); });
    EXPECT_TRUE(eventually([&] { return resumed == 2; }));
    External([&] { EXPECT_EQ(thrum_resume(thread.handle()), 0); }).join();
    thread.join();
}

TEST_P(OwnKthread, MayMakeBlockingCalls) {
    const thrum_attr_t attr = attr_own();
    Light(
        [] {
            const Identity identity;
            pid_t there = 0;
            const auto note = [](void *to) -> void * {
                *static_cast<pid_t *>(to) = tid();
                return nullptr;
            };
            EXPECT_EQ(thrum_blocking(note, &there, nullptr), 0);
            EXPECT_NE(there, tid());
            identity.expect_same();
        },
        &attr);
}

// Each of several again and again, woken on it and elsewhere by the others.
TEST_P(OwnKthread, MayBeHadAgainAndAgain) {
    constexpr int kThreads = 4, kRounds = 12;
    thrum_channel_t ring[kThreads];
    for (thrum_channel_t &channel : ring)
        channel = THRUM_CHANNEL_UNBOUNDED_INITIALIZER(sizeof(int));
    std::vector<Light> threads;
    for (int i = 0; i < kThreads; i++)
        threads.emplace_back([&ring, i] {
            for (int round = 0; round < kRounds; round++) {
                const bool locks = (round + i) % 2 == 0;
                EXPECT_EQ(locks ? thrum_kthread_lock() : 0, 0);
                int value = 0;
                EXPECT_EQ(thrum_channel_receive(&ring[i], &value), 0);
                value++;
                EXPECT_EQ(thrum_channel_send(&ring[(i + 1) % kThreads], &value), 0);
                EXPECT_EQ(thrum_worker_self() == -1, locks);
                EXPECT_EQ(locks ? thrum_kthread_unlock() : 0, 0);
            }
        });
    int value = 0;
    EXPECT_EQ(thrum_channel_send(&ring[0], &value), 0);
    for (Light &thread : threads)
        thread.join();
    EXPECT_EQ(thrum_channel_receive(&ring[0], &value), 0);
    EXPECT_EQ(value, kThreads * kRounds);
    for (thrum_channel_t &channel : ring)
        thrum_channel_destroy(&channel);
}

OWN_KTHREAD_OVER_SETTINGS(OwnKthread);

} // namespace
