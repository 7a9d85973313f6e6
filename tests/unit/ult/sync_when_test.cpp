// SPDX-License-Identifier: Apache-2.0
//
// thrum_spawn_when: a thread that begins, and gets a stack, when one of several objects is ready.
#include <errno.h>
#include <thrum/pool.h>
#include <thrum/sync.h>
#include <thrum/time.h>
#include <thrum/worker.h>

#include <deque>
#include <memory>
#include <vector>

#include "crew.hpp"

namespace {

// A wait for some objects, and what became of it.
struct Waiting {
    std::vector<thrum_wait_t> waits;
    std::function<void()> then; // on the thread that begins
    thrum_when_t when{};
    std::atomic<bool> is_over{false};

    explicit Waiting(
        std::vector<thrum_wait_t> objects, std::function<void()> work = [] {})
        : waits(std::move(objects)), then(std::move(work)) {}

    int spawn(uint64_t deadline = kNever, const thrum_attr_t *attr = nullptr) {
        is_over = false;
        when = {waits.data(), waits.size(), deadline, run, this, 77, -1, 0, {}};
        return thrum_spawn_when(attr, &when);
    }
    bool ends() {
        return eventually([this] { return is_over.load(); });
    }
    static void run(void *arg) {
        auto *self = static_cast<Waiting *>(arg);
        self->then();
        self->is_over = true;
    }
};

thrum_wait_t wait_for(unsigned what, void *object, void *value = nullptr) {
    return {what, 0, object, value, {}};
}

uint64_t in_an_hour() {
    return thrum_now() + 3600 * THRUM_S;
}

int init(unsigned workers) {
    const thrum_config config{workers, 0, {THRUM_PREEMPT_NONE, 0, 0, 0}, {}};
    return thrum_init(&config);
}

void yield_often() {
    for (int i = 0; i < 20; i++)
        thrum_yield();
}

// One of each kind, none of which is ready, and what makes each so.
struct Objects {
    thrum_event_t event = THRUM_EVENT_INITIALIZER;
    thrum_latch_t latch = THRUM_LATCH_INITIALIZER(1);
    void *values[1] = {nullptr};
    thrum_future_t future = THRUM_FUTURE_INITIALIZER(values, 1);
    thrum_eventual_t eventual = THRUM_EVENTUAL_INITIALIZER;
    thrum_sem_t sem = THRUM_SEM_INITIALIZER(0);
    thrum_channel_t full = THRUM_CHANNEL_UNBUFFERED_INITIALIZER(sizeof(int));
    thrum_channel_t empty = THRUM_CHANNEL_UNBUFFERED_INITIALIZER(sizeof(int));
    thrum_event_t may_end = THRUM_EVENT_INITIALIZER;
    thrum_t thread = nullptr;
    thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
    thrum_rwlock_t written = THRUM_RWLOCK_INITIALIZER, read = THRUM_RWLOCK_INITIALIZER;
    int sent = 5, received = 0, taken = 0;
    void *set = nullptr, *joined = nullptr;

    Objects() {
        const auto ends = [](void *arg) -> void * {
            thrum_event_wait(&static_cast<Objects *>(arg)->may_end);
            return arg;
        };
        EXPECT_EQ(thrum_spawn(&thread, nullptr, ends, this), 0);
        thrum_mutex_lock(&mutex);
        thrum_rwlock_write_lock(&written);
        thrum_rwlock_read_lock(&read);
    }

    thrum_wait_t wait(unsigned what) {
        switch (what) {
        case THRUM_WAIT_EVENT: return wait_for(what, &event);
        case THRUM_WAIT_LATCH: return wait_for(what, &latch);
        case THRUM_WAIT_FUTURE: return wait_for(what, &future);
        case THRUM_WAIT_EVENTUAL: return wait_for(what, &eventual, &set);
        case THRUM_WAIT_SEM: return wait_for(what, &sem);
        case THRUM_WAIT_SEND: return wait_for(what, &full, &sent);
        case THRUM_WAIT_RECEIVE: return wait_for(what, &empty, &received);
        case THRUM_WAIT_JOIN: return wait_for(what, thread, &joined);
        case THRUM_WAIT_LOCK: return wait_for(what, &mutex);
        case THRUM_WAIT_READ_LOCK: return wait_for(what, &written);
        default: return wait_for(what, &read);
        }
    }
    void make_ready(unsigned what) {
        const int number = 6;
        switch (what) {
        case THRUM_WAIT_EVENT: thrum_event_set(&event); break;
        case THRUM_WAIT_LATCH: EXPECT_EQ(thrum_latch_count_down(&latch, 1), 0); break;
        case THRUM_WAIT_FUTURE: EXPECT_EQ(thrum_future_set(&future, this), 0); break;
        case THRUM_WAIT_EVENTUAL: EXPECT_EQ(thrum_eventual_set(&eventual, this), 0); break;
        case THRUM_WAIT_SEM: EXPECT_EQ(thrum_sem_post(&sem), 0); break;
        case THRUM_WAIT_SEND: EXPECT_EQ(thrum_channel_receive(&full, &taken), 0); break;
        case THRUM_WAIT_RECEIVE: EXPECT_EQ(thrum_channel_send(&empty, &number), 0); break;
        case THRUM_WAIT_JOIN: thrum_event_set(&may_end); break;
        case THRUM_WAIT_LOCK: EXPECT_EQ(thrum_mutex_unlock(&mutex), 0); break;
        case THRUM_WAIT_READ_LOCK: EXPECT_EQ(thrum_rwlock_unlock(&written), 0); break;
        default: EXPECT_EQ(thrum_rwlock_unlock(&read), 0);
        }
    }
    // By the thread that waited.
    void expect_done(unsigned what) {
        switch (what) {
        case THRUM_WAIT_EVENTUAL: EXPECT_EQ(set, this); break;
        case THRUM_WAIT_SEM: EXPECT_EQ(thrum_sem_count(&sem), 0U); break;
        case THRUM_WAIT_RECEIVE: EXPECT_EQ(received, 6); break;
        case THRUM_WAIT_JOIN: EXPECT_EQ(joined, this); break;
        case THRUM_WAIT_LOCK: EXPECT_EQ(thrum_mutex_unlock(&mutex), 0); break; // debug builds check the owner
        case THRUM_WAIT_READ_LOCK: EXPECT_EQ(thrum_rwlock_unlock(&written), 0); break;
        case THRUM_WAIT_WRITE_LOCK: EXPECT_EQ(thrum_rwlock_unlock(&read), 0); break;
        default: break;
        }
    }
    // `what` has been waited for.
    void end(unsigned what) {
        if (what == THRUM_WAIT_SEND) {
            EXPECT_EQ(taken, sent);
        }
        if (what != THRUM_WAIT_LOCK) {
            EXPECT_EQ(thrum_mutex_unlock(&mutex), 0);
        }
        if (what != THRUM_WAIT_READ_LOCK) {
            EXPECT_EQ(thrum_rwlock_unlock(&written), 0);
        }
        if (what != THRUM_WAIT_WRITE_LOCK) {
            EXPECT_EQ(thrum_rwlock_unlock(&read), 0);
        }
        if (what != THRUM_WAIT_JOIN) {
            thrum_event_set(&may_end);
            EXPECT_EQ(thrum_join(thread, nullptr), 0);
        }
        EXPECT_EQ(thrum_event_destroy(&event), 0);
        EXPECT_EQ(thrum_latch_destroy(&latch), 0);
        EXPECT_EQ(thrum_sem_destroy(&sem), 0);
        EXPECT_EQ(thrum_channel_destroy(&full), 0);
        EXPECT_EQ(thrum_channel_destroy(&empty), 0);
        EXPECT_EQ(thrum_mutex_destroy(&mutex), 0);
        EXPECT_EQ(thrum_rwlock_destroy(&written), 0);
        EXPECT_EQ(thrum_rwlock_destroy(&read), 0);
    }
};

class SpawnWhen : public Ult {};

// `begin` calls its argument where the wait is to begin.
void each_kind(const std::function<void(const std::function<void()> &)> &begin, bool with_others,
               uint64_t deadline) {
    for (unsigned what = THRUM_WAIT_EVENT; what < THRUM_WAIT_NONE; what++) {
        SCOPED_TRACE(what);
        Objects objects;
        thrum_event_t other = THRUM_EVENT_INITIALIZER;
        std::vector<thrum_wait_t> waits = {objects.wait(what)};
        if (with_others) {
            waits.push_back(wait_for(THRUM_WAIT_EVENT, &other));
            waits.push_back(wait_for(THRUM_WAIT_NONE, nullptr));
        }
        Waiting waiting(waits, [&] { objects.expect_done(what); });
        begin([&] { EXPECT_EQ(waiting.spawn(deadline), 0); });
        yield_often();
        EXPECT_FALSE(waiting.is_over);
        objects.make_ready(what);
        EXPECT_TRUE(waiting.ends());
        EXPECT_EQ(waiting.when.error, 0);
        EXPECT_EQ(waiting.when.which, 0U);
        EXPECT_EQ(waiting.waits[0].result, 0);
        EXPECT_EQ(thrum_event_destroy(&other), 0);
        objects.end(what);
    }
}

void on_this_thread(const std::function<void()> &work) {
    work();
}

TEST_P(SpawnWhen, BeginsWhenItsObjectIsReady) {
    each_kind(on_this_thread, false, kNever);
}

TEST_P(SpawnWhen, BeginsWhenTheFirstOfSeveralIsReady) {
    each_kind(on_this_thread, true, kNever);
}

TEST_P(SpawnWhen, BeginsBeforeItsDeadline) {
    each_kind([](const std::function<void()> &work) { in_ult(work); }, true, in_an_hour());
}

TEST_P(SpawnWhen, OfAnExternalThreadWithADeadline) {
    each_kind(
        [](const std::function<void()> &work) {
            External outside(work);
            outside.join();
        },
        true, in_an_hour());
}

TEST_P(SpawnWhen, WhatIsReadyIsTakenAtOnce) {
    thrum_sem_t sem = THRUM_SEM_INITIALIZER(2);
    thrum_event_t never = THRUM_EVENT_INITIALIZER;
    for (const auto &waits :
         {std::vector{wait_for(THRUM_WAIT_SEM, &sem)},
          std::vector{wait_for(THRUM_WAIT_EVENT, &never), wait_for(THRUM_WAIT_SEM, &sem)}}) {
        Waiting waiting(waits);
        ASSERT_EQ(waiting.spawn(), 0);
        EXPECT_TRUE(waiting.ends());
        EXPECT_EQ(waiting.when.error, 0);
        EXPECT_EQ(waiting.when.which, waits.size() - 1);
    }
    EXPECT_EQ(thrum_sem_count(&sem), 0U);
    EXPECT_EQ(thrum_event_destroy(&never), 0);
}

void ends_at_its_deadline() {
    thrum_sem_t sem = THRUM_SEM_INITIALIZER(0);
    int number = 0;
    thrum_channel_t channel = THRUM_CHANNEL_UNBUFFERED_INITIALIZER(sizeof(int));
    for (const uint64_t deadline : {in_ms(2), uint64_t{0}}) {
        bool is_early = true;
        Waiting waiting({wait_for(THRUM_WAIT_SEM, &sem), wait_for(THRUM_WAIT_RECEIVE, &channel, &number)},
                        [&] { is_early = thrum_now() < deadline; });
        ASSERT_EQ(waiting.spawn(deadline), 0);
        EXPECT_TRUE(waiting.ends());
        EXPECT_EQ(waiting.when.error, ETIMEDOUT);
        EXPECT_FALSE(is_early);
    }
    EXPECT_EQ(thrum_sem_destroy(&sem), 0);
    EXPECT_EQ(thrum_channel_destroy(&channel), 0);
}

TEST_P(SpawnWhen, EndsAtItsDeadline) {
    ends_at_its_deadline();
    in_ult(ends_at_its_deadline);
    External outside(ends_at_its_deadline);
    outside.join();
}

TEST_P(SpawnWhen, HearsThatAChannelWasClosed) {
    for (const bool alone : {true, false}) {
        int number = 0;
        thrum_event_t never = THRUM_EVENT_INITIALIZER;
        thrum_channel_t channel = THRUM_CHANNEL_UNBUFFERED_INITIALIZER(sizeof(int));
        std::vector<thrum_wait_t> waits = {wait_for(THRUM_WAIT_RECEIVE, &channel, &number)};
        if (!alone)
            waits.push_back(wait_for(THRUM_WAIT_EVENT, &never));
        std::deque<Waiting> all;
        for (int i = 0; i < 100; i++)
            ASSERT_EQ(all.emplace_back(waits).spawn(), 0);
        ASSERT_EQ(thrum_channel_close(&channel), 0);
        for (Waiting &waiting : all) {
            EXPECT_TRUE(waiting.ends());
            EXPECT_EQ(waiting.when.error, 0);
            EXPECT_EQ(waiting.waits[0].result, EPIPE);
        }
        EXPECT_EQ(thrum_event_destroy(&never), 0);
    }
}

TEST_P(SpawnWhen, ReportsWhatCannotBeWaitedFor) {
    thrum_event_t event = THRUM_EVENT_INITIALIZER;
    Waiting none({wait_for(THRUM_WAIT_NONE, nullptr)}), waiting({wait_for(THRUM_WAIT_EVENT, &event)});
    EXPECT_EQ(none.spawn(), EINVAL) << "nothing could end this";
    ASSERT_EQ(none.spawn(in_us(10)), 0);
    EXPECT_TRUE(none.ends());
    EXPECT_EQ(none.when.error, ETIMEDOUT);
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    ASSERT_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_TASKLET), 0);
    EXPECT_EQ(waiting.spawn(kNever, &attr), EINVAL);
    thrum_attr_init(&attr);
    ASSERT_EQ(thrum_attr_set_worker(&attr, 1000), 0);
    EXPECT_EQ(waiting.spawn(kNever, &attr), EINVAL);
    thrum_t detached = nullptr;
    const auto waits = [](void *arg) -> void * {
        thrum_event_wait(static_cast<thrum_event_t *>(arg));
        return nullptr;
    };
    ASSERT_EQ(thrum_spawn(&detached, nullptr, waits, &event), 0);
    ASSERT_EQ(thrum_detach(detached), 0);
    Waiting joins({wait_for(THRUM_WAIT_JOIN, detached)});
    ASSERT_EQ(joins.spawn(), 0);
    EXPECT_TRUE(joins.ends());
    EXPECT_EQ(joins.when.error, EINVAL);
    thrum_event_set(&event);
}

TEST_P(SpawnWhen, RunsWhereItsAttributesSay) {
    thrum_sem_t sem = THRUM_SEM_INITIALIZER(0);
    const unsigned last = thrum_workers() - 1;
    unsigned seen = last + 1;
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    ASSERT_EQ(thrum_attr_set_worker(&attr, last), 0);
    Waiting waiting({wait_for(THRUM_WAIT_SEM, &sem)},
                    [&] { seen = static_cast<unsigned>(thrum_worker_self()); });
    for (int i = 0; i < 20; i++) {
        ASSERT_EQ(waiting.spawn(kNever, &attr), 0);
        EXPECT_EQ(thrum_sem_post(&sem), 0);
        EXPECT_TRUE(waiting.ends());
        EXPECT_EQ(seen, last);
    }
}

// Permits, elements and locks go to whichever has claimed them, once.
TEST_P(SpawnWhen, StressOfClaims) {
    constexpr int kEach = 2000 / kStressDivisor, kChains = 12;
    struct Shared {
        thrum_sem_t sem = THRUM_SEM_INITIALIZER(0);
        thrum_channel_t channel = THRUM_CHANNEL_UNBUFFERED_INITIALIZER(sizeof(int));
        thrum_event_t over = THRUM_EVENT_INITIALIZER;
        std::atomic<int> permits{0}, received{0}, timeouts{0}, errors{0}, left{kChains};
    } shared;
    struct Chain {
        Shared *shared = nullptr;
        int number = 0, turn = 0;
        thrum_wait_t waits[3]{};
        thrum_when_t when{};

        void begin() {
            waits[0] = wait_for(THRUM_WAIT_SEM, &shared->sem);
            waits[1] = wait_for(THRUM_WAIT_RECEIVE, &shared->channel, &number);
            waits[2] = wait_for(THRUM_WAIT_EVENT, &shared->over);
            when = {waits, 3,    ++turn % 3 == 0 ? in_us(static_cast<uint64_t>(turn % 7) * 10) : kNever,
                    run,   this, 0,
                    0,     0,    {}};
            if (thrum_spawn_when(nullptr, &when) != 0)
                shared->errors++;
        }
        static void run(void *arg) {
            auto *self = static_cast<Chain *>(arg);
            Shared *all = self->shared;
            if (self->when.error == ETIMEDOUT)
                all->timeouts++;
            else if (self->when.error != 0 || self->waits[self->when.which].result != 0)
                all->errors++;
            else if (self->when.which == 2)
                return static_cast<void>(all->left--);
            else
                (self->when.which == 0 ? all->permits : all->received)++;
            self->begin();
        }
    };
    std::vector<Chain> chains(kChains);
    for (Chain &chain : chains) {
        chain.shared = &shared;
        chain.begin();
    }
    Light posts([&] {
        for (int i = 0; i < kEach; i++) {
            thrum_sem_post(&shared.sem);
            if (i % 5 == 0)
                thrum_yield();
        }
    });
    const auto send = [&] {
        for (int i = 0; i < kEach; i++)
            EXPECT_EQ(thrum_channel_send(&shared.channel, &i), 0);
    };
    Light sends(send);
    External outside(send);
    posts.join(), sends.join(), outside.join();
    EXPECT_TRUE(eventually([&] { return shared.permits == kEach && shared.received == 2 * kEach; }));
    thrum_event_set(&shared.over);
    EXPECT_TRUE(eventually([&] { return shared.left == 0; }));
    EXPECT_EQ(shared.errors, 0);
    EXPECT_EQ(thrum_sem_destroy(&shared.sem), 0);
    EXPECT_EQ(thrum_channel_destroy(&shared.channel), 0);
}

ULT_OVER_WORKERS(SpawnWhen);

class SpawnWhenPlain : public UltPlain {};

// Descriptors alone, and what the caller has: a stack of each would be 8 KiB.
TEST_F(SpawnWhenPlain, OnesThatWaitHaveNoStack) {
    const bool is_measured = !ULT_ASAN && !ULT_TSAN && getenv("ULT_VALGRIND") == nullptr;
    constexpr int kMany = 10000 / kStressDivisor;
    ASSERT_EQ(init(2), 0);
    {
        thrum_event_t event = THRUM_EVENT_INITIALIZER;
        std::atomic<int> begun{0};
        std::vector<thrum_wait_t> waits(kMany, wait_for(THRUM_WAIT_EVENT, &event));
        const auto count = [](void *counter) { ++*static_cast<std::atomic<int> *>(counter); };
        std::vector<thrum_when_t> whens(kMany, {nullptr, 1, kNever, count, &begun, 0, 0, 0, {}});
        const std::size_t before = resident_bytes();
        for (int i = 0; i < kMany; i++) {
            whens[static_cast<std::size_t>(i)].waits = &waits[static_cast<std::size_t>(i)];
            ASSERT_EQ(thrum_spawn_when(nullptr, &whens[static_cast<std::size_t>(i)]), 0);
        }
        if (is_measured) {
            EXPECT_LT(resident_bytes(), before + kMany * std::size_t{1024}) << "1 KiB each";
        }
        EXPECT_EQ(begun, 0);
        thrum_event_set(&event);
        EXPECT_TRUE(eventually([&] { return begun == kMany; }));
    }
    EXPECT_EQ(thrum_fini(), 0);
}

// Those that wait when the runtime ends never begin, and the next runtime is as any.
TEST_F(SpawnWhenPlain, TheEndOfTheRuntimeDropsThem) {
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(init(2), 0);
        thrum_event_t never = THRUM_EVENT_INITIALIZER;
        std::deque<Waiting> all;
        for (int k = 0; k < 10; k++)
            ASSERT_EQ(all.emplace_back(std::vector{wait_for(THRUM_WAIT_EVENT, &never)})
                          .spawn(k % 2 != 0 ? kNever : in_an_hour()),
                      0);
        EXPECT_EQ(thrum_fini(), 0);
        for (const Waiting &waiting : all)
            EXPECT_FALSE(waiting.is_over);
    }
}

} // namespace
