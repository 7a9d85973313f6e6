// SPDX-License-Identifier: Apache-2.0
//
// Objects that are gone before waiters have returned whose deadlines came: the thread that ends what they waited for
// may destroy and free the object although they have yet to find out that they waited in vain.
#include <thrum/pool.h>

#include "crew.hpp"
#include "inside.h"

extern "C" void timers_look_everywhere(struct worker *worker); // sched/time/timer.h

namespace {

// What a node of a list of waiters says (src/sync/waiters.h, src/sched/wait.h). Looks without asking.
__attribute__((no_sanitize("thread"))) bool first_has_timed_out(const uint64_t *list) {
    constexpr uint32_t kTimedOut = 2;
    const uint64_t node = *const_cast<const volatile uint64_t *>(list);
    const uint64_t wait = reinterpret_cast<const volatile uint64_t *>(node)[2];
    return reinterpret_cast<const volatile uint32_t *>(wait)[2] == kTimedOut;
}

class Gone : public UltInTurn {
  protected:
    // `wait` is on a thread of its own, listed, and its deadline has come, but it has not run since: it runs on the
    // caller's worker only, and the caller does not let it. Then `end` does what makes it legal to free the object.
    template <typename Object>
    void freed_before_return(const std::function<void(Object *)> &init, std::size_t list,
                             const std::function<int(Object *, uint64_t)> &wait,
                             const std::function<void(Object *)> &end, int expected = ETIMEDOUT) {
        OnPage<Object> page;
        Object *const object = page.get();
        init(object);
        const uint64_t *const words = reinterpret_cast<const uint64_t *>(object) + list;
        thrum_attr_t here;
        thrum_attr_init(&here);
        ASSERT_EQ(thrum_attr_set_worker(&here, 0), 0);
        int result = -1;
        uint64_t moment = 0;
        std::unique_ptr<Light> waiter;
        for (uint64_t ms = 5; waiter == nullptr; ms *= 2) { // again if it was over before we saw it
            ASSERT_LT(ms, 10000U);
            moment = in_ms(ms);
            result = -1;
            waiter = std::make_unique<Light>([&] { result = wait(object, moment); }, &here);
            while (listed(words) == 0 && result == -1)
                thrum_yield();
            if (result != -1)
                waiter.reset();
        }
        while (!first_has_timed_out(words)) {
            timers_look_everywhere(inside_enter());
            inside_leave();
        }
        EXPECT_EQ(result, -1);
        end(object);
        EXPECT_EQ(result, -1);
        page.drop();
        waiter->join();
        EXPECT_EQ(result, expected);
    }

    thrum_mutex_t mutex_ = THRUM_MUTEX_INITIALIZER;
};

constexpr std::size_t kQueue = 1, kWriters = 4, kSenders = 11, kReceivers = 14;

TEST_P(Gone, Cond) {
    for (const bool all : {true, false})
        freed_before_return<thrum_cond_t>(
            thrum_cond_init, kQueue,
            [&](thrum_cond_t *cond, uint64_t moment) {
                thrum_mutex_lock(&mutex_);
                const int error = thrum_cond_wait_until(cond, &mutex_, moment);
                thrum_mutex_unlock(&mutex_);
                return error;
            },
            [&](thrum_cond_t *cond) {
                thrum_mutex_lock(&mutex_);
                all ? thrum_cond_broadcast(cond) : thrum_cond_signal(cond);
                thrum_mutex_unlock(&mutex_);
                EXPECT_EQ(thrum_cond_destroy(cond), 0);
            });
}

// It took part after all.
TEST_P(Gone, Barrier) {
    freed_before_return<thrum_barrier_t>(
        [](thrum_barrier_t *barrier) { EXPECT_EQ(thrum_barrier_init(barrier, 2), 0); }, kQueue,
        [](thrum_barrier_t *barrier, uint64_t moment) {
            return thrum_barrier_wait_until(barrier, moment, nullptr);
        },
        [](thrum_barrier_t *barrier) {
            EXPECT_TRUE(thrum_barrier_wait(barrier));
            EXPECT_EQ(thrum_barrier_destroy(barrier), 0);
        },
        0);
}

TEST_P(Gone, Event) {
    freed_before_return<thrum_event_t>(thrum_event_init, kQueue, thrum_event_wait_until,
                                       [](thrum_event_t *event) {
                                           thrum_event_set(event);
                                           EXPECT_EQ(thrum_event_destroy(event), 0);
                                       });
}

TEST_P(Gone, LatchEventualFuture) {
    freed_before_return<thrum_latch_t>([](thrum_latch_t *latch) { thrum_latch_init(latch, 1); }, kQueue,
                                       thrum_latch_wait_until,
                                       [](thrum_latch_t *latch) {
                                           EXPECT_EQ(thrum_latch_count_down(latch, 1), 0);
                                           EXPECT_EQ(thrum_latch_destroy(latch), 0);
                                       });
    freed_before_return<thrum_eventual_t>(
        thrum_eventual_init, kQueue,
        [](thrum_eventual_t *eventual, uint64_t moment) {
            return thrum_eventual_get_until(eventual, nullptr, moment);
        },
        [](thrum_eventual_t *eventual) {
            EXPECT_EQ(thrum_eventual_set(eventual, nullptr), 0);
            EXPECT_EQ(thrum_eventual_destroy(eventual), 0);
        });
    void *value;
    freed_before_return<thrum_future_t>([&](thrum_future_t *future) { thrum_future_init(future, &value, 1); },
                                        kQueue, thrum_future_wait_until,
                                        [](thrum_future_t *future) {
                                            EXPECT_EQ(thrum_future_set(future, nullptr), 0);
                                            EXPECT_EQ(thrum_future_destroy(future), 0);
                                        });
}

TEST_P(Gone, Sem) {
    freed_before_return<thrum_sem_t>([](thrum_sem_t *sem) { EXPECT_EQ(thrum_sem_init(sem, 0), 0); }, kQueue,
                                     thrum_sem_wait_until,
                                     [](thrum_sem_t *sem) {
                                         EXPECT_EQ(thrum_sem_post(sem), 0);
                                         EXPECT_EQ(thrum_sem_count(sem), 1U) << "it was not given away";
                                         EXPECT_EQ(thrum_sem_destroy(sem), 0);
                                     });
}

TEST_P(Gone, Mutex) {
    freed_before_return<thrum_mutex_t>(thrum_mutex_lock, kQueue, thrum_mutex_lock_until,
                                       [](thrum_mutex_t *mutex) {
                                           EXPECT_EQ(thrum_mutex_unlock(mutex), 0);
                                           EXPECT_EQ(thrum_mutex_destroy(mutex), 0);
                                       });
}

TEST_P(Gone, Rwlock) {
    const auto end = [](thrum_rwlock_t *lock) {
        EXPECT_EQ(thrum_rwlock_unlock(lock), 0);
        EXPECT_EQ(thrum_rwlock_destroy(lock), 0);
    };
    freed_before_return<thrum_rwlock_t>(thrum_rwlock_write_lock, kQueue, thrum_rwlock_read_lock_until, end);
    freed_before_return<thrum_rwlock_t>(thrum_rwlock_write_lock, kWriters, thrum_rwlock_write_lock_until,
                                        end);
    freed_before_return<thrum_rwlock_t>(thrum_rwlock_read_lock, kWriters, thrum_rwlock_write_lock_until, end);
}

TEST_P(Gone, Channel) {
    int number = 0;
    const auto init = [](thrum_channel_t *channel) {
        EXPECT_EQ(thrum_channel_init(channel, sizeof number, 0, nullptr), 0);
    };
    const auto end = [](thrum_channel_t *channel) {
        EXPECT_EQ(thrum_channel_close(channel), 0);
        EXPECT_EQ(thrum_channel_destroy(channel), 0);
    };
    freed_before_return<thrum_channel_t>(
        init, kSenders,
        [&](thrum_channel_t *channel, uint64_t moment) {
            return thrum_channel_send_until(channel, &number, moment);
        },
        end);
    freed_before_return<thrum_channel_t>(
        init, kReceivers,
        [&](thrum_channel_t *channel, uint64_t moment) {
            return thrum_channel_receive_until(channel, &number, moment);
        },
        end);
}

// Of two objects the one that it has not been woken by is gone, too.
TEST_P(Gone, WaitAny) {
    thrum_event_t other = THRUM_EVENT_INITIALIZER;
    const auto wait = [&](thrum_sem_t *sem, uint64_t moment) {
        thrum_wait_t waits[2] = {};
        waits[0] = {THRUM_WAIT_EVENT, 0, &other, nullptr, {}};
        waits[1] = {THRUM_WAIT_SEM, 0, sem, nullptr, {}};
        return thrum_wait_any(waits, 2, moment, nullptr);
    };
    const auto init = [](thrum_sem_t *sem) { EXPECT_EQ(thrum_sem_init(sem, 0), 0); };
    freed_before_return<thrum_sem_t>(init, kQueue, wait, [](thrum_sem_t *sem) {
        EXPECT_EQ(thrum_sem_post(sem), 0);
        EXPECT_EQ(thrum_sem_destroy(sem), 0);
    });
    EXPECT_EQ(waiting(other), 0);
    OnPage<thrum_sem_t> page;
    thrum_sem_t *const sem = page.get();
    thrum_attr_t here;
    thrum_attr_init(&here);
    ASSERT_EQ(thrum_attr_set_worker(&here, 0), 0);
    Light waiter([&] { EXPECT_EQ(wait(sem, kNever), 0); }, &here);
    ASSERT_TRUE(eventually([&] { return waiting(*sem) == 1 && waiting(other) == 1; }));
    thrum_event_set(&other);
    EXPECT_EQ(thrum_sem_post(sem), 0);
    EXPECT_EQ(thrum_sem_count(sem), 1U);
    EXPECT_EQ(thrum_sem_destroy(sem), 0);
    page.drop();
}

// Everywhere between: the waiters come back at about the time at which the object goes.
TEST_P(Gone, CondAtAnyTime) {
    for (int i = 0; i < divided(300); i++) {
        OnPage<thrum_cond_t> page;
        thrum_cond_t *const cond = page.get();
        bool done = false;
        std::atomic<int> there{0};
        const uint64_t moment = in_us(static_cast<uint64_t>(150 + i % 60));
        const auto wait = [&] {
            thrum_mutex_lock(&mutex_);
            there++;
            if (!done)
                thrum_cond_wait_until(cond, &mutex_, moment);
            thrum_mutex_unlock(&mutex_);
        };
        std::vector<Light> lights;
        for (int k = 0; k < 6; k++)
            lights.emplace_back(wait);
        while (there < 6)
            thrum_yield();
        while (thrum_now() < moment + static_cast<uint64_t>(i % 7) * THRUM_US)
            if (i % 3 == 0)
                thrum_yield();
        thrum_mutex_lock(&mutex_);
        done = true;
        if (i % 2 == 0)
            thrum_cond_broadcast(cond);
        thrum_mutex_unlock(&mutex_);
        if (i % 2 != 0)
            thrum_cond_broadcast(cond);
        EXPECT_EQ(thrum_cond_destroy(cond), 0);
        page.drop();
    }
}

TEST_P(Gone, BarrierAtAnyTime) {
    int opened = 0;
    for (int i = 0; i < divided(600); i++) {
        OnPage<thrum_barrier_t> page;
        thrum_barrier_t *const barrier = page.get();
        ASSERT_EQ(thrum_barrier_init(barrier, 2), 0);
        const uint64_t moment = in_us(static_cast<uint64_t>(30 + i % 60));
        std::atomic<bool> over{false};
        int result = -1;
        const auto wait = [&] {
            result = thrum_barrier_wait_until(barrier, moment, nullptr);
            over = true;
        };
        std::unique_ptr<Light> light;
        std::unique_ptr<Heavies> heavy;
        if (i % 8 == 0)
            heavy = std::make_unique<Heavies>(1, [&](int) { wait(); });
        else
            light = std::make_unique<Light>(wait);
        while (thrum_now() < moment - 2000 + static_cast<uint64_t>(i % 5) * THRUM_US)
            if (i % 3 == 0)
                thrum_yield();
        const int mine = thrum_barrier_wait_until(barrier, in_us(200), nullptr);
        if (mine == 0)
            page.drop(); // at once
        light.reset();
        heavy.reset();
        EXPECT_EQ(mine, result);
        if (mine != 0)
            page.drop();
        opened += mine == 0;
    }
    EXPECT_GT(opened, 0);
}

ULT_OVER_WORKERS(Gone);

// --- callers that must not wait -----------------------------------------------------------------------------

// In a process of its own, which is aborted.
class NoWaiter : public UltPlain, public testing::WithParamInterface<unsigned> {
  protected:
    static void expect_report(const std::string &function, const std::function<void()> &work) {
        int status = 0;
        const std::string said = stderr_of([&] {
            status = in_child([&] {
                thrum_config config = {};
                config.workers = GetParam();
                if (thrum_init(&config) == 0)
                    work();
                return 0;
            });
        });
        EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << status;
        EXPECT_EQ(said.substr(0, said.find('\n')),
                  "thrum: misuse: a tasklet or a scheduler must not wait, but would have to in " + function);
    }
};

struct Held {
    thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
    thrum_cond_t cond = THRUM_COND_INITIALIZER;
    thrum_sem_t sem = THRUM_SEM_INITIALIZER(0);
    thrum_event_t event = THRUM_EVENT_INITIALIZER;
    thrum_barrier_t barrier = THRUM_BARRIER_INITIALIZER(2);
    thrum_rwlock_t rwlock = THRUM_RWLOCK_INITIALIZER;
    thrum_channel_t channel = THRUM_CHANNEL_UNBUFFERED_INITIALIZER(sizeof(int));
    thrum_latch_t latch = THRUM_LATCH_INITIALIZER(1);
    thrum_eventual_t eventual = THRUM_EVENTUAL_INITIALIZER;
    void *values[1] = {nullptr};
    thrum_future_t future = THRUM_FUTURE_INITIALIZER(values, 1);

    void wait_for(int which) {
        int number = 0;
        thrum_wait_t any = {THRUM_WAIT_EVENT, 0, &event, nullptr, {}};
        switch (which) {
        case 0: thrum_mutex_lock(&mutex); break;
        case 1:
            thrum_mutex_unlock(&mutex);
            thrum_mutex_lock(&mutex);
            thrum_cond_wait_until(&cond, &mutex, in_ms(1));
            break;
        case 2: thrum_sem_wait(&sem); break;
        case 3: thrum_event_wait_until(&event, in_ms(1)); break;
        case 4: thrum_barrier_wait(&barrier); break;
        case 5: thrum_rwlock_read_lock(&rwlock); break;
        case 6: thrum_channel_receive(&channel, &number); break;
        case 7: thrum_channel_send(&channel, &number); break;
        case 8: thrum_rwlock_write_lock(&rwlock); break;
        case 9: thrum_latch_wait(&latch); break;
        case 10: thrum_eventual_get(&eventual); break;
        case 11: thrum_future_wait(&future); break;
        default: thrum_wait_any(&any, 1, kNever, nullptr);
        }
    }
};

TEST_P(NoWaiter, Tasklet) {
    const char *const functions[] = {"thrum_mutex_lock",      "thrum_cond_wait",    "thrum_sem_wait",
                                     "thrum_event_wait",      "thrum_barrier_wait", "thrum_rwlock_read_lock",
                                     "thrum_channel_receive", "thrum_channel_send", "thrum_rwlock_write_lock",
                                     "thrum_latch_wait",      "thrum_eventual_get", "thrum_future_wait",
                                     "thrum_wait_any"};
    for (int which = 0; which < 13; which++) {
        if (which == 1) // its mutex is another's
            continue;
        expect_report(functions[which], [which] {
            static Held held;
            static int what;
            what = which;
            thrum_mutex_lock(&held.mutex);
            thrum_rwlock_write_lock(&held.rwlock);
            thrum_attr_t attr;
            thrum_attr_init(&attr);
            thrum_attr_set_flags(&attr, THRUM_SPAWN_TASKLET);
            thrum_t tasklet;
            const auto run = [](void *) -> void * {
                held.wait_for(what);
                return nullptr;
            };
            if (thrum_spawn(&tasklet, &attr, run, nullptr) == 0)
                thrum_join(tasklet, nullptr);
        });
    }
}

TEST_P(NoWaiter, Scheduler) {
    expect_report("thrum_mutex_lock", [] {
        static Held held;
        static thrum_pool_t pool;
        thrum_pool_create(&pool, THRUM_POOL_FIFO);
        thrum_mutex_lock(&held.mutex);
        thrum_sched_t sched;
        const auto run = [](thrum_sched_t self, void *) {
            held.wait_for(0);
            while (!thrum_sched_stopping(self))
                thrum_sched_idle(self);
        };
        thrum_sched_create_user(&sched, run, nullptr, &pool, 1);
        thrum_worker_set_sched(thrum_workers() - 1, sched);
        thrum_sleep(THRUM_S);
    });
}

INSTANTIATE_TEST_SUITE_P(Workers, NoWaiter, ULT_WORKERS, name_of_workers);

// What may not wait may do all the rest.
class FromATasklet : public Ult {};

TEST_P(FromATasklet, DismissesAWaiterThatGaveUp) {
    for (int i = 0; i < divided(100); i++) {
        thrum_cond_t cond = THRUM_COND_INITIALIZER;
        thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
        const uint64_t moment = in_us(static_cast<uint64_t>(20 + i % 50));
        std::vector<Light> lights;
        for (int k = 0; k < 4; k++)
            lights.emplace_back([&] {
                thrum_mutex_lock(&mutex);
                thrum_cond_wait_until(&cond, &mutex, moment);
                thrum_mutex_unlock(&mutex);
            });
        thrum_attr_t attr;
        thrum_attr_init(&attr);
        thrum_attr_set_flags(&attr, THRUM_SPAWN_TASKLET);
        while (thrum_now() < moment)
            if (i % 2 == 0)
                thrum_yield();
        Light tasklet([&] { thrum_cond_broadcast(&cond); }, &attr);
        tasklet.join();
        lights.clear();
        EXPECT_EQ(thrum_cond_destroy(&cond), 0);
    }
}

ULT_OVER_WORKERS(FromATasklet);

} // namespace
