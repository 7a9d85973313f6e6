// SPDX-License-Identifier: Apache-2.0
//
// Conditions among several objects: THRUM_WAIT_COND in thrum_wait_any and thrum_spawn_when. The mutex is unlocked for the wait
// alone, is the caller's, or the new thread's, afterwards, and no signal is lost.
#include <errno.h>
#include <thrum/sync.h>
#include <thrum/time.h>
#include <thrum/worker.h>

#include <deque>
#include <vector>

#include "crew.hpp"
#include "faults.hpp"

namespace {

uint64_t in_an_hour() {
    return thrum_now() + 3600 * THRUM_S;
}

// A condition, its mutex, and an event that is waited for besides.
struct Objects {
    thrum_mutex_t mutex;
    thrum_cond_t cond = THRUM_COND_INITIALIZER;
    thrum_event_t other = THRUM_EVENT_INITIALIZER;

    explicit Objects(unsigned kind = 0) { EXPECT_EQ(thrum_mutex_init(&mutex, kind), 0); }
    ~Objects() {
        EXPECT_EQ(thrum_cond_destroy(&cond), 0);
        EXPECT_EQ(thrum_event_destroy(&other), 0);
        EXPECT_EQ(thrum_mutex_destroy(&mutex), 0);
    }
    thrum_wait_t condition() { return {THRUM_WAIT_COND, 0, &cond, &mutex, {}}; }
    thrum_wait_t event() { return {THRUM_WAIT_EVENT, 0, &other, nullptr, {}}; }
    void lock() { thrum_mutex_lock(&mutex); }
    void unlock() { EXPECT_EQ(thrum_mutex_unlock(&mutex), 0); }
    // By a thread that does not own it.
    bool is_locked() {
        bool locked = true;
        External([&] {
            locked = thrum_mutex_try_lock(&mutex) != 0;
            if (!locked)
                unlock();
        }).join();
        return locked;
    }
};

// --- thrum_wait_any -----------------------------------------------------------------------------------------

class WaitAnyCond : public Ult {};

TEST_P(WaitAnyCond, ChecksWhatItIsGiven) {
    Objects objects;
    objects.lock();
    thrum_wait_t two[] = {objects.condition(), objects.condition()};
    EXPECT_EQ(thrum_wait_any(two, 2, 0, nullptr), EINVAL);
    two[1].value = nullptr;
    EXPECT_EQ(thrum_wait_any(&two[1], 1, 0, nullptr), EINVAL);
    two[1] = {THRUM_WAIT_LOCK, 0, &objects.mutex, nullptr, {}}; // the wait would give it to itself
    EXPECT_EQ(thrum_wait_any(two, 2, 0, nullptr), EINVAL);
    EXPECT_TRUE(objects.is_locked());
    objects.unlock();
}

// An external kernel thread that has been woken before it unlocks, where the owner of the mutex is looked at.
TEST_P(WaitAnyCond, AWakeUpBeforeTheUnlockIsNotLost) {
    static Objects *waited_for;
    Objects objects(THRUM_MUTEX_RECURSIVE);
    waited_for = &objects;
    External([&] {
        objects.lock();
        thrum_wait_t waits[] = {objects.condition(), objects.event()};
        size_t which = 0;
        before_unlock_inside = [] { thrum_event_set(&waited_for->other); };
        EXPECT_EQ(thrum_wait_any(waits, 2, kNever, &which), 0);
        EXPECT_EQ(which, 1U);
        EXPECT_EQ(before_unlock_inside, nullptr);
        objects.unlock();
    }).join();
}

TEST_P(WaitAnyCond, WhatIsReadyLeavesTheMutex) {
    Objects objects;
    thrum_event_set(&objects.other);
    objects.lock();
    thrum_wait_t waits[] = {objects.condition(), objects.event()};
    size_t which = 0;
    EXPECT_EQ(thrum_wait_any(waits, 2, kNever, &which), 0);
    EXPECT_EQ(which, 1U);
    EXPECT_TRUE(objects.is_locked());
    objects.unlock();
}

// A recursive mutex is unlocked wholly, and locked again as often.
TEST_P(WaitAnyCond, EachThatMayBeReady) {
    for (const unsigned kind : {0U, unsigned{THRUM_MUTEX_RECURSIVE}, unsigned{THRUM_MUTEX_PRIORITY}})
        for (const size_t first : {size_t{0}, size_t{1}}) {
            Objects objects(kind);
            const int depth = kind == THRUM_MUTEX_RECURSIVE ? 3 : 1;
            std::atomic<bool> over{false};
            Light waits([&] {
                for (int i = 0; i < depth; i++)
                    objects.lock();
                thrum_wait_t all[] = {objects.event(), objects.condition()};
                size_t which = 2;
                EXPECT_EQ(thrum_wait_any(all, 2, first == 0 ? kNever : in_an_hour(), &which), 0);
                EXPECT_EQ(which, first);
                EXPECT_EQ(all[which].result, 0);
                over = true;
                for (int i = 0; i < depth; i++) {
                    EXPECT_TRUE(objects.is_locked());
                    objects.unlock();
                }
            });
            EXPECT_TRUE(eventually_waiting(objects.cond, 1));
            objects.lock();
            if (first == 0)
                thrum_event_set(&objects.other);
            else
                thrum_cond_signal(&objects.cond);
            EXPECT_FALSE(over) << "it waits for the mutex";
            objects.unlock();
            waits.join();
        }
}

TEST_P(WaitAnyCond, EndsAtItsDeadlineWithTheMutex) {
    Objects objects;
    for (const uint64_t deadline : {uint64_t{0}, in_us(100)}) {
        std::atomic<bool> had_it{false};
        objects.lock();
        Light other([&] {
            objects.lock();
            had_it = true;
            objects.unlock();
        });
        EXPECT_TRUE(eventually_waiting(objects.mutex, 1));
        thrum_wait_t waits[] = {objects.condition(), objects.event()};
        EXPECT_EQ(thrum_wait_any(waits, 2, deadline, nullptr), ETIMEDOUT);
        EXPECT_TRUE(had_it) << "a wait for a condition always waits";
        objects.unlock();
        other.join();
    }
}

TEST_P(WaitAnyCond, ACancelledThreadHasTheMutex) {
    Objects objects;
    std::atomic<bool> had_it{false};
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    ASSERT_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_CANCELLABLE), 0);
    struct Both {
        Objects *objects;
        std::atomic<bool> *had_it;
    } both{&objects, &had_it};
    const auto work = [](void *arg) -> void * {
        const auto *self = static_cast<Both *>(arg);
        struct Unlocks {
            const Both *both;
            ~Unlocks() { *both->had_it = thrum_mutex_unlock(&both->objects->mutex) == 0; }
        };
        self->objects->lock();
        const Unlocks last{self};
        thrum_wait_t waits[] = {self->objects->condition(), self->objects->event()};
        thrum_wait_any(waits, 2, kNever, nullptr);
        return nullptr;
    };
    thrum_t thread = nullptr;
    ASSERT_EQ(thrum_spawn(&thread, &attr, work, &both), 0);
    EXPECT_TRUE(eventually_waiting(objects.cond, 1));
    EXPECT_EQ(thrum_cancel(thread), 0);
    EXPECT_EQ(thrum_join(thread, nullptr), 0);
    EXPECT_TRUE(had_it);
}

// --- thrum_spawn_when ---------------------------------------------------------------------------------------

// A wait that begins with the mutex locked.
struct Waiting {
    Objects *objects;
    std::vector<thrum_wait_t> waits;
    int depth;
    thrum_when_t when{};
    std::atomic<bool> begun{false}, is_over{false};
    int worker = 0; // that it begins on

    Waiting(Objects *all, std::vector<thrum_wait_t> which, int times = 1)
        : objects(all), waits(std::move(which)), depth(times) {}
    int spawn(uint64_t deadline = kNever, const thrum_attr_t *attr = nullptr) {
        when = {waits.data(), waits.size(), deadline, run, this, 77, -1, 0, {}};
        for (int i = 0; i < depth; i++)
            objects->lock();
        return thrum_spawn_when(attr, &when);
    }
    static void run(void *arg) {
        auto *self = static_cast<Waiting *>(arg);
        self->worker = thrum_worker_self();
        self->begun = true;
        for (int i = 0; i < self->depth; i++) // debug builds check the owner
            self->objects->unlock();
        self->is_over = true;
    }
    bool ends() {
        return eventually([this] { return is_over.load(); });
    }
};

class SpawnWhenCond : public Ult {};

void each_end(bool is_external) {
    for (const unsigned kind : {0U, unsigned{THRUM_MUTEX_RECURSIVE}})
        for (int way = 0; way < 5; way++) {
            SCOPED_TRACE(way);
            Objects objects(kind);
            Waiting one(&objects, {objects.condition()}, kind == 0 ? 1 : 3);
            if (way > 0)
                one.waits.push_back(objects.event());
            const uint64_t deadline = way == 3 ? in_us(200) : way == 4 ? in_an_hour() : kNever;
            const auto begin = [&] { EXPECT_EQ(one.spawn(deadline), 0); };
            if (is_external)
                External(begin).join();
            else
                in_ult(begin);
            if (way == 3) {
                EXPECT_TRUE(one.ends());
                EXPECT_EQ(one.when.error, ETIMEDOUT);
                continue;
            }
            if (is_external && deadline != kNever) {
                EXPECT_TRUE(eventually_waiting(objects.cond, 1)); // it has a thread with a stack
            } else {
                EXPECT_EQ(waiting(objects.cond), 1);
            }
            objects.lock();
            if (way == 2)
                thrum_event_set(&objects.other);
            else if (way == 4)
                thrum_cond_broadcast(&objects.cond);
            else
                thrum_cond_signal(&objects.cond);
            for (int i = 0; i < 10; i++)
                thrum_yield();
            EXPECT_FALSE(one.begun) << "without the mutex";
            objects.unlock();
            EXPECT_TRUE(one.ends());
            EXPECT_EQ(one.when.error, 0);
            EXPECT_EQ(one.when.which, way == 2 ? 1U : 0U);
        }
}

TEST_P(SpawnWhenCond, BeginsWithTheMutex) {
    each_end(false);
}

TEST_P(SpawnWhenCond, OfAnExternalThread) {
    each_end(true);
}

// Also where another object has ended its wait, and it must lock the mutex again.
TEST_P(SpawnWhenCond, AKernelThreadOfItsOwn) {
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    ASSERT_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_OWN_KTHREAD), 0);
    Objects objects;
    Waiting one(&objects, {objects.condition(), objects.event()});
    ASSERT_EQ(one.spawn(kNever, &attr), 0);
    objects.lock();
    thrum_event_set(&objects.other);
    EXPECT_TRUE(eventually_waiting(objects.mutex, 1));
    objects.unlock();
    EXPECT_TRUE(one.ends());
    EXPECT_EQ(one.when.which, 1U);
    EXPECT_EQ(one.worker, -1);
}

// The mutex becomes the new thread's: no signal comes before that waits.
TEST_P(SpawnWhenCond, WhatIsReadyLeavesTheMutexToTheThread) {
    Objects objects(THRUM_MUTEX_RECURSIVE);
    thrum_event_set(&objects.other);
    Waiting one(&objects, {objects.condition(), objects.event()}, 2);
    ASSERT_EQ(one.spawn(), 0);
    EXPECT_TRUE(one.ends());
    EXPECT_EQ(one.when.error, 0);
    EXPECT_EQ(one.when.which, 1U);
}

// Waiters take turns by signals, some of which come while objects look ready or deadlines come: each signal that a waiter has been
// counted for ends a wait.
void stress_of_signals(bool timed) {
    constexpr int kChains = 8;
    struct Shared : Objects {
        bool timed = false;
        thrum_sem_t sem = THRUM_SEM_INITIALIZER(0);
        long items = 0, taken = 0, permits = 0, timeouts = 0; // under the mutex
        bool over = false;
        std::atomic<int> left{kChains};
    } shared;
    shared.timed = timed;
    struct Chain {
        Shared *shared = nullptr;
        int number = 0;
        unsigned turn = 0;
        thrum_wait_t waits[2]{};
        thrum_when_t when{};

        // The mutex is locked, and there is nothing to take.
        void wait() {
            waits[0] = shared->condition();
            waits[1] = {THRUM_WAIT_SEM, 0, &shared->sem, nullptr, {}};
            const bool is_alone = ++turn % 4 == 0 && number != 0;
            const uint64_t deadline = shared->timed && turn % 3 == 0 ? in_us(turn % 7 * 10) : kNever;
            when = {waits, is_alone ? 1U : 2U, deadline, run, this, 0, 0, 0, {}};
            EXPECT_EQ(thrum_spawn_when(nullptr, &when), 0);
        }
        static void run(void *arg) {
            auto *self = static_cast<Chain *>(arg);
            Shared *all = self->shared;
            if (self->when.error != 0)
                all->timeouts++;
            else if (self->when.which == 1)
                all->permits++;
            for (; all->items > 0; all->items--)
                all->taken++;
            if (!all->over)
                return self->wait();
            all->unlock();
            all->left--;
        }
    };
    std::vector<Chain> chains(kChains);
    for (Chain &chain : chains) {
        chain.shared = &shared;
        chain.number = static_cast<int>(&chain - chains.data());
        shared.lock();
        chain.wait();
    }
    const int rounds = divided(2000);
    const auto produce = [&](int which) {
        for (int i = 0; i < rounds; i++) {
            if (which == 2) {
                thrum_sem_post(&shared.sem);
            } else {
                shared.lock();
                shared.items++;
                if (which == 0)
                    thrum_cond_signal(&shared.cond);
                shared.unlock();
                if (which == 1)
                    thrum_cond_signal(&shared.cond);
            }
            if (i % 5 == 0)
                thrum_yield();
        }
    };
    crew(2, 1, [&](int which) { produce(which % 3); });
    EXPECT_TRUE(eventually([&] {
        shared.lock();
        const bool done = shared.items == 0 && thrum_sem_count(&shared.sem) == 0;
        shared.unlock();
        return done;
    }));
    shared.lock();
    shared.over = true;
    thrum_cond_broadcast(&shared.cond);
    shared.unlock();
    EXPECT_TRUE(eventually([&] { return shared.left == 0; }));
    EXPECT_EQ(shared.taken, 3L * rounds);
    EXPECT_EQ(shared.permits, rounds);
    EXPECT_EQ(thrum_sem_destroy(&shared.sem), 0);
}

TEST_P(SpawnWhenCond, StressOfSignals) {
    stress_of_signals(false);
    stress_of_signals(true);
}

ULT_OVER_WORKERS(WaitAnyCond);
ULT_OVER_WORKERS(SpawnWhenCond);

class SpawnWhenCondPlain : public UltPlain {};

// Neither while they wait for the condition, nor while they wait for the mutex, which another object's waker does not take for
// them. A stack of each would be 8 KiB.
TEST_F(SpawnWhenCondPlain, OnesThatWaitHaveNoStack) {
    const bool is_measured = !ULT_ASAN && !ULT_TSAN && getenv("ULT_VALGRIND") == nullptr;
    constexpr int kMany = 5000 / kStressDivisor;
    const thrum_config config{2, 0, {THRUM_PREEMPT_NONE, 0, 0, 0}, {}};
    ASSERT_EQ(thrum_init(&config), 0);
    {
        Objects objects;
        std::deque<Waiting> all;
        for (int i = 0; i < kMany; i++)
            all.emplace_back(&objects, std::vector{objects.condition(), objects.event()});
        const std::size_t before = resident_bytes();
        for (Waiting &one : all)
            ASSERT_EQ(one.spawn(), 0);
        if (is_measured) {
            EXPECT_LT(resident_bytes(), before + kMany * std::size_t{1024}) << "1 KiB each";
        }
        objects.lock();
        thrum_event_set(&objects.other);
        EXPECT_TRUE(eventually_waiting(objects.mutex, kMany));
        if (is_measured) {
            EXPECT_LT(resident_bytes(), before + kMany * std::size_t{2048})
                << "2 KiB each: those that end have others in their place";
        }
        objects.unlock();
        for (Waiting &one : all) {
            EXPECT_TRUE(one.ends());
            EXPECT_EQ(one.when.which, 1U);
        }
    }
    EXPECT_EQ(thrum_fini(), 0);
}

} // namespace
