// SPDX-License-Identifier: Apache-2.0
//
// thrum_cancel: at each cancellation point, in races with wakers and deadlines, and where it must not act.
#include <cerrno>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "crew.hpp"
#include "ult.hpp"

namespace {

thrum_attr_t cancellable(unsigned flags = THRUM_SPAWN_CANCELLABLE) {
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    EXPECT_EQ(thrum_attr_set_flags(&attr, flags), 0);
    return attr;
}

// A thread that can be cancelled; its result says whether it was.
class Victim {
  public:
    explicit Victim(Light::Work work, unsigned flags = THRUM_SPAWN_CANCELLABLE) : work_(std::move(work)) {
        const thrum_attr_t attr = cancellable(flags);
        EXPECT_EQ(thrum_spawn(&thread_, &attr, run, &work_), 0);
    }
    Victim(const Victim &) = delete;
    ~Victim() {
        if (thread_ != nullptr)
            was_cancelled();
    }
    void cancel() const { EXPECT_EQ(thrum_cancel(thread_), 0); }
    void forget() { thread_ = nullptr; } // another has joined it
    bool was_cancelled() {
        void *result = nullptr;
        EXPECT_EQ(thrum_join(std::exchange(thread_, nullptr), &result), 0);
        return result == THRUM_CANCELED;
    }
    thrum_t handle() const { return thread_; }

  private:
    static void *run(void *work) {
        (*static_cast<Light::Work *>(work))();
        return nullptr;
    }
    Light::Work work_;
    thrum_t thread_ = nullptr;
};

class Cancel : public Ult {};

// Each with the waiter there already (mostly), and with the request there first.
void ends_in(const Light::Work &wait, unsigned flags = THRUM_SPAWN_CANCELLABLE) {
    for (const bool waits_first : {true, false}) {
        std::atomic<int> begun{0}, unwound{0};
        std::atomic<bool> go{waits_first};
        struct Unwinds {
            std::atomic<int> &unwound;
            ~Unwinds() { unwound++; }
        };
        Victim victim(
            [&] {
                const Unwinds unwinds{unwound};
                begun = 1;
                while (!go)
                    thrum_yield();
                wait();
                ADD_FAILURE() << "came back";
            },
            flags);
        EXPECT_TRUE(eventually([&] { return begun == 1; }));
        if (waits_first)
            thrum_sleep(THRUM_MS);
        victim.cancel();
        go = true;
        EXPECT_TRUE(victim.was_cancelled());
        EXPECT_EQ(unwound, 1);
    }
}

TEST_P(Cancel, InSleep) {
    ends_in([] { thrum_sleep(3600 * THRUM_S); });
}

TEST_P(Cancel, InJoin) {
    std::atomic<bool> over{false};
    const Light::Work until_over = [&] {
        while (!over)
            thrum_sleep(THRUM_MS);
    };
    std::vector<std::unique_ptr<Victim>> others;
    for (int i = 0; i < 4; i++)
        others.push_back(std::make_unique<Victim>(until_over));
    unsigned next = 0;
    ends_in([&] { thrum_join(others[next++]->handle(), nullptr); });
    ends_in([&] { thrum_join_until(others[next++]->handle(), nullptr, thrum_now() + 3600 * THRUM_S); });
    over = true; // they can be joined by another
}

TEST_P(Cancel, InSuspend) {
    ends_in([] { thrum_suspend(); });
}

TEST_P(Cancel, InEventsAndSemaphores) {
    thrum_event_t event = THRUM_EVENT_INITIALIZER;
    ends_in([&] { thrum_event_wait(&event); });
    ends_in([&] { thrum_event_wait_until(&event, thrum_now() + 3600 * THRUM_S); });
    EXPECT_EQ(thrum_event_destroy(&event), 0);
    thrum_sem_t sem;
    EXPECT_EQ(thrum_sem_init(&sem, 0), 0);
    ends_in([&] { thrum_sem_wait(&sem); });
    EXPECT_EQ(thrum_sem_destroy(&sem), 0);
}

TEST_P(Cancel, InChannelsAndWaitAny) {
    thrum_channel_t channel;
    ASSERT_EQ(thrum_channel_init(&channel, sizeof(int), 0, nullptr), 0);
    ends_in([&] {
        int element;
        thrum_channel_receive(&channel, &element);
    });
    ends_in([&] {
        const int element = 1;
        thrum_channel_send(&channel, &element);
    });
    thrum_event_t event = THRUM_EVENT_INITIALIZER;
    ends_in([&] {
        thrum_wait_t wait{};
        wait.what = THRUM_WAIT_EVENT;
        wait.object = &event;
        thrum_wait_any(&wait, 1, UINT64_MAX, nullptr);
    });
    EXPECT_EQ(thrum_event_destroy(&event), 0);
    EXPECT_EQ(thrum_channel_destroy(&channel), 0);
}

uint64_t in_an_hour() {
    return thrum_now() + 3600 * THRUM_S;
}

TEST_P(Cancel, InLatchesEventualsAndFutures) {
    thrum_latch_t latch = THRUM_LATCH_INITIALIZER(1);
    ends_in([&] { thrum_latch_wait(&latch); });
    ends_in([&] { thrum_latch_wait_until(&latch, in_an_hour()); });
    EXPECT_EQ(thrum_latch_destroy(&latch), 0);
    thrum_eventual_t eventual = THRUM_EVENTUAL_INITIALIZER;
    ends_in([&] { thrum_eventual_get(&eventual); });
    ends_in([&] { thrum_eventual_get_until(&eventual, nullptr, in_an_hour()); });
    EXPECT_EQ(thrum_eventual_destroy(&eventual), 0);
    void *values[1] = {nullptr};
    thrum_future_t future = THRUM_FUTURE_INITIALIZER(values, 1);
    ends_in([&] { thrum_future_wait(&future); });
    ends_in([&] { thrum_future_wait_until(&future, in_an_hour()); });
    EXPECT_EQ(thrum_future_destroy(&future), 0);
}

// As without one; the others are beside their kind.
TEST_P(Cancel, InWaitsWithADeadline) {
    ends_in([] { thrum_sleep_until(in_an_hour()); });
    ends_in([] { thrum_suspend_until(in_an_hour()); });
    thrum_sem_t sem = THRUM_SEM_INITIALIZER(0);
    ends_in([&] { thrum_sem_wait_until(&sem, in_an_hour()); });
    EXPECT_EQ(thrum_sem_destroy(&sem), 0);
    thrum_channel_t channel = THRUM_CHANNEL_UNBUFFERED_INITIALIZER(sizeof(int));
    int element = 1;
    ends_in([&] { thrum_channel_receive_until(&channel, &element, in_an_hour()); });
    ends_in([&] { thrum_channel_send_until(&channel, &element, in_an_hour()); });
    EXPECT_EQ(thrum_channel_try_receive(&channel, &element), EAGAIN) << "nobody offers what was given up";
    thrum_wait_t wait{};
    wait.what = THRUM_WAIT_RECEIVE;
    wait.object = &channel;
    ends_in([&] { thrum_wait_any(&wait, 1, in_an_hour(), nullptr); });
    EXPECT_EQ(thrum_channel_destroy(&channel), 0);
}

// With the mutex, which the cleanup lets go.
TEST_P(Cancel, InConditions) {
    struct Lock {
        thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
        thrum_cond_t cond = THRUM_COND_INITIALIZER;
    } lock;
    for (const bool timed : {false, true})
        ends_in([&] {
            thrum_mutex_lock(&lock.mutex);
            thrum_cleanup_push(
                [](void *mutex) { EXPECT_EQ(thrum_mutex_unlock(static_cast<thrum_mutex_t *>(mutex)), 0); },
                &lock.mutex);
            if (timed)
                thrum_cond_wait_until(&lock.cond, &lock.mutex, in_an_hour());
            else
                thrum_cond_wait(&lock.cond, &lock.mutex);
            thrum_cleanup_pop(0);
        });
    EXPECT_EQ(thrum_mutex_destroy(&lock.mutex), 0);
    EXPECT_EQ(thrum_cond_destroy(&lock.cond), 0);
}

TEST_P(Cancel, NotInMutexesNorWhereItIsSwitchedOff) {
    std::atomic<bool> asked{false};
    thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
    std::atomic<int> begun{0}, had_it{0};
    thrum_mutex_lock(&mutex);
    Victim locks([&] {
        begun++;
        thrum_mutex_lock(&mutex);
        had_it++;
        thrum_mutex_unlock(&mutex);
        thrum_testcancel();
        ADD_FAILURE() << "was not ended";
    });
    Victim timed([&] {
        begun++;
        EXPECT_EQ(thrum_mutex_lock_until(&mutex, thrum_now() + 3600 * THRUM_S), 0);
        had_it++;
        thrum_mutex_unlock(&mutex);
    });
    Victim off([&] {
        begun++;
        EXPECT_EQ(thrum_set_cancel(0), 1);
        EXPECT_TRUE(eventually([&] { return asked.load(); }));
        thrum_sleep(THRUM_MS);
        thrum_testcancel();
        EXPECT_EQ(thrum_set_cancel(1), 0);
        had_it++;
        thrum_testcancel();
        ADD_FAILURE() << "was not ended";
    });
    EXPECT_TRUE(eventually([&] { return begun == 3; }));
    locks.cancel();
    timed.cancel();
    off.cancel();
    asked = true;
    thrum_sleep(THRUM_MS);
    thrum_mutex_unlock(&mutex);
    EXPECT_TRUE(locks.was_cancelled());
    EXPECT_FALSE(timed.was_cancelled());
    EXPECT_TRUE(off.was_cancelled());
    EXPECT_EQ(had_it, 3);
}

// A stopper that is cancelled while it waits still stops the timer, whose memory may be the stopper's.
TEST_P(Cancel, NotWhereATimerIsStopped) {
    for (const bool has_deadline : {false, true}) {
        thrum_timer_t timer = THRUM_TIMER_INITIALIZER;
        thrum_event_t end = THRUM_EVENT_INITIALIZER;
        struct Call {
            thrum_event_t *end;
            std::atomic<bool> inside;
        } call = {&end, {false}};
        const auto wait = [](void *arg) {
            static_cast<Call *>(arg)->inside = true;
            thrum_event_wait(static_cast<Call *>(arg)->end);
        };
        ASSERT_EQ(thrum_timer_start(&timer, thrum_now(), 0, wait, &call), 0);
        EXPECT_TRUE(eventually([&] { return call.inside.load(); }));

        std::atomic<bool> stops{false}, has_stopped{false};
        Victim stopper([&] {
            stops = true;
            EXPECT_EQ(has_deadline ? thrum_timer_stop_until(&timer, in_an_hour()) : thrum_timer_stop(&timer),
                      0);
            has_stopped = true;
            thrum_testcancel();
            ADD_FAILURE() << "cancellation is enabled again";
        });
        EXPECT_TRUE(eventually([&] { return stops.load(); }));
        stopper.cancel();
        thrum_sleep(THRUM_MS);
        EXPECT_FALSE(has_stopped);
        thrum_event_set(&end);
        EXPECT_TRUE(stopper.was_cancelled());
        EXPECT_TRUE(has_stopped);
        EXPECT_EQ(thrum_timer_stop(&timer), has_stopped ? EINVAL : 0);
    }
}

// Nor in readers-writer locks, at barriers, and where another runs the function of a thrum_once.
TEST_P(Cancel, NotInLocksNorAtBarriers) {
    thrum_rwlock_t lock = THRUM_RWLOCK_INITIALIZER;
    thrum_barrier_t barrier = THRUM_BARRIER_INITIALIZER(3);
    thrum_once_t once = THRUM_ONCE_INITIALIZER;
    thrum_event_t go = THRUM_EVENT_INITIALIZER;
    const auto locked = [&lock](int error) {
        EXPECT_EQ(error, 0);
        EXPECT_EQ(thrum_rwlock_unlock(&lock), 0);
    };
    const Light::Work waits[] = {
        [&] { thrum_rwlock_read_lock(&lock), locked(0); },
        [&] { locked(thrum_rwlock_read_lock_until(&lock, in_an_hour())); },
        [&] { thrum_rwlock_write_lock(&lock), locked(0); },
        [&] { locked(thrum_rwlock_write_lock_until(&lock, in_an_hour())); },
        [&] { thrum_barrier_wait(&barrier); },
        [&] { EXPECT_EQ(thrum_barrier_wait_until(&barrier, in_an_hour(), nullptr), 0); },
        [&] {
            thrum_once_call(
                &once, [](void *) { ADD_FAILURE() << "another runs it"; }, nullptr);
        },
    };
    constexpr int kWaits = std::size(waits);
    struct First {
        thrum_event_t *go;
        std::atomic<bool> runs{false};
    } first{&go};
    const Light runner([&once, &first] {
        thrum_once_call(
            &once,
            [](void *arg) {
                auto *self = static_cast<First *>(arg);
                self->runs = true;
                thrum_event_wait(self->go);
            },
            &first);
    });
    EXPECT_TRUE(eventually([&] { return first.runs.load(); }));
    thrum_rwlock_write_lock(&lock);
    std::atomic<int> begun{0}, went_on{0};
    std::vector<std::unique_ptr<Victim>> victims;
    for (const Light::Work &wait : waits)
        victims.push_back(std::make_unique<Victim>([&] {
            begun++;
            wait();
            went_on++;
            thrum_testcancel();
            ADD_FAILURE() << "was not ended";
        }));
    EXPECT_TRUE(eventually([&] { return begun == kWaits; }));
    thrum_sleep(THRUM_MS);
    for (const auto &victim : victims)
        victim->cancel();
    thrum_sleep(THRUM_MS);
    EXPECT_EQ(went_on, 0);
    locked(0);
    thrum_barrier_wait(&barrier);
    thrum_event_set(&go);
    for (const auto &victim : victims)
        EXPECT_TRUE(victim->was_cancelled());
    EXPECT_EQ(went_on, kWaits);
    EXPECT_EQ(thrum_rwlock_destroy(&lock), 0);
    EXPECT_EQ(thrum_barrier_destroy(&barrier), 0);
}

// ... but in those of a thread that asks for it. The lock is as if the thread had not tried.
TEST_P(Cancel, InLocksWhereItIsAskedFor) {
    for (const unsigned kind : {0U, unsigned{THRUM_MUTEX_RECURSIVE}, unsigned{THRUM_MUTEX_PRIORITY}}) {
        thrum_mutex_t mutex;
        ASSERT_EQ(thrum_mutex_init(&mutex, kind), 0);
        thrum_mutex_lock(&mutex);
        ends_in([&] { thrum_mutex_lock(&mutex); }, THRUM_SPAWN_CANCEL_LOCKS);
        ends_in([&] { thrum_mutex_lock_until(&mutex, in_an_hour()); }, THRUM_SPAWN_CANCEL_LOCKS);
        EXPECT_EQ(thrum_mutex_unlock(&mutex), 0);
        in_ult([&] {
            EXPECT_EQ(thrum_mutex_try_lock(&mutex), 0);
            EXPECT_EQ(thrum_mutex_unlock(&mutex), 0);
        });
        EXPECT_EQ(thrum_mutex_destroy(&mutex), 0);
    }
    thrum_rwlock_t lock = THRUM_RWLOCK_INITIALIZER;
    thrum_rwlock_write_lock(&lock);
    ends_in([&] { thrum_rwlock_read_lock(&lock); }, THRUM_SPAWN_CANCEL_LOCKS);
    ends_in([&] { thrum_rwlock_read_lock_until(&lock, in_an_hour()); }, THRUM_SPAWN_CANCEL_LOCKS);
    ends_in([&] { thrum_rwlock_write_lock(&lock); }, THRUM_SPAWN_CANCEL_LOCKS);
    ends_in([&] { thrum_rwlock_write_lock_until(&lock, in_an_hour()); }, THRUM_SPAWN_CANCEL_LOCKS);
    EXPECT_EQ(thrum_rwlock_unlock(&lock), 0);
    EXPECT_EQ(thrum_rwlock_try_write_lock(&lock), 0);
    EXPECT_EQ(thrum_rwlock_unlock(&lock), 0);
    EXPECT_EQ(thrum_rwlock_destroy(&lock), 0);
    thrum_barrier_t barrier = THRUM_BARRIER_INITIALIZER(2);
    ends_in([&] { thrum_barrier_wait(&barrier); }, THRUM_SPAWN_CANCEL_LOCKS);
    ends_in([&] { thrum_barrier_wait_until(&barrier, in_an_hour(), nullptr); }, THRUM_SPAWN_CANCEL_LOCKS);
    EXPECT_EQ(thrum_barrier_wait_until(&barrier, 0, nullptr), ETIMEDOUT) << "one was still counted";
    EXPECT_EQ(thrum_barrier_destroy(&barrier), 0);
    thrum_once_t once = THRUM_ONCE_INITIALIZER;
    thrum_event_t over = THRUM_EVENT_INITIALIZER;
    static std::atomic<bool> runs;
    runs = false;
    Light runner([&] {
        thrum_once_call(
            &once,
            [](void *event) {
                runs = true;
                thrum_event_wait(static_cast<thrum_event_t *>(event));
            },
            &over);
    });
    EXPECT_TRUE(eventually([] { return runs.load(); }));
    ends_in(
        [&] {
            thrum_once_call(
                &once, [](void *) {}, nullptr);
        },
        THRUM_SPAWN_CANCEL_LOCKS);
    thrum_event_set(&over);
    runner.join();
    // The mutex that a wait for a condition takes back is none.
    ends_in(
        [] {
            thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
            thrum_cond_t cond = THRUM_COND_INITIALIZER;
            thrum_mutex_lock(&mutex);
            thrum_cleanup_push(
                [](void *its) { EXPECT_EQ(thrum_mutex_unlock(static_cast<thrum_mutex_t *>(its)), 0); },
                &mutex);
            thrum_cond_wait(&cond, &mutex);
            thrum_cleanup_pop(0);
        },
        THRUM_SPAWN_CANCEL_LOCKS);
}

// A lock that is free, or comes in time, is had: the request is for what comes after it. None is lost or had twice.
TEST_P(Cancel, InLocksBesideUnlockers) {
    constexpr int kRounds = 1000 / kStressDivisor;
    thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
    std::atomic<int> inside{0}, had{0}, ended{0};
    for (int i = 0; i < kRounds; i++) {
        thrum_mutex_lock(&mutex);
        Victim victim(
            [&] {
                thrum_mutex_lock(&mutex);
                EXPECT_EQ(inside.fetch_add(1), 0);
                had++;
                inside--;
                thrum_mutex_unlock(&mutex);
            },
            THRUM_SPAWN_CANCEL_LOCKS);
        External canceller([&] { victim.cancel(); });
        if (i % 2 == 0)
            thrum_yield();
        thrum_mutex_unlock(&mutex);
        canceller.join();
        ended += victim.was_cancelled();
    }
    EXPECT_EQ(had + ended, kRounds);
    EXPECT_EQ(thrum_mutex_destroy(&mutex), 0);
}

// A cancellation point whose deadline is past does not wait; what comes after it is none because of that.
TEST_P(Cancel, NotAfterAPointThatDidNotWait) {
    thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
    thrum_sem_t sem = THRUM_SEM_INITIALIZER(0);
    std::atomic<bool> tries{false};
    int error = -1;
    thrum_mutex_lock(&mutex);
    Victim victim([&] {
        EXPECT_EQ(thrum_sem_wait_until(&sem, 1), ETIMEDOUT);
        tries = true;
        error = thrum_mutex_lock_until(&mutex, thrum_now() + 600 * THRUM_S);
        if (error == 0)
            thrum_mutex_unlock(&mutex);
        thrum_testcancel();
    });
    EXPECT_TRUE(eventually([&] { return tries.load(); }));
    thrum_sleep(THRUM_MS);
    victim.cancel();
    thrum_sleep(THRUM_MS);
    thrum_mutex_unlock(&mutex);
    EXPECT_TRUE(victim.was_cancelled());
    EXPECT_EQ(error, 0);
}

// Creating many waits for the helpers, which write to the caller's stack.
TEST_P(Cancel, NotWhileManyAreMade) {
    constexpr std::size_t kMany = 2000;
    for (int round = 0; round < 20 / kStressDivisor + 1; round++) {
        std::vector<thrum_t> threads(kMany);
        std::atomic<bool> begun{false}, asked{false};
        Victim victim([&] {
            begun = true;
            EXPECT_EQ(thrum_spawn_many(
                          kMany, threads.data(), nullptr,
                          [](void *) -> void * {
                              thrum_yield();
                              return nullptr;
                          },
                          nullptr, 0),
                      0);
            while (!asked)
                thrum_yield();
            thrum_testcancel();
        });
        EXPECT_TRUE(eventually([&] { return begun.load(); }));
        victim.cancel();
        asked = true;
        EXPECT_TRUE(victim.was_cancelled());
        for (const thrum_t thread : threads) {
            ASSERT_NE(thread, nullptr);
            EXPECT_EQ(thrum_join(thread, nullptr), 0);
        }
    }
}

TEST_P(Cancel, OnlyThoseThatWereMadeForIt) {
    thrum_event_t event = THRUM_EVENT_INITIALIZER;
    Light light([&] { thrum_event_wait(&event); });
    EXPECT_EQ(thrum_cancel(light.handle()), ENOTSUP);
    thrum_event_set(&event);
    light.join();
    EXPECT_EQ(thrum_event_destroy(&event), 0);
}

TEST_P(Cancel, TwiceAndAfterTheEnd) {
    Victim sleeps([] { thrum_sleep(3600 * THRUM_S); });
    sleeps.cancel();
    sleeps.cancel();
    EXPECT_TRUE(sleeps.was_cancelled());
    Victim ends([] {});
    thrum_sleep(THRUM_MS);
    ends.cancel();
    EXPECT_FALSE(ends.was_cancelled());
}

TEST_P(Cancel, ByAnExternalThread) {
    std::vector<std::unique_ptr<Victim>> victims;
    for (int i = 0; i < 100; i++)
        victims.push_back(std::make_unique<Victim>(
            [i] { i % 2 != 0 ? (void)thrum_suspend() : thrum_sleep(3600 * THRUM_S); }));
    External([&] {
        for (const auto &victim : victims)
            victim->cancel();
    }).join();
    for (const auto &victim : victims)
        EXPECT_TRUE(victim->was_cancelled());
}

// A permit is either taken, or the thread was cancelled and it is still there; a wake-up is never lost between them.
TEST_P(Cancel, RacesWithWakersAndDeadlines) {
    thrum_sem_t sem;
    ASSERT_EQ(thrum_sem_init(&sem, 0), 0);
    const auto race = [&](unsigned seed) {
        std::mt19937 random{seed};
        for (int i = 0; i < 1000 / kStressDivisor; i++) {
            bool timed = random() % 2 != 0, answer = false;
            const uint64_t ns = random() % (40 * THRUM_US);
            const double post_us =
                static_cast<double>(random() % 10); // drawn here: the poster runs beside us
            Victim victim([&] {
                if (timed)
                    answer = thrum_sem_wait_until(&sem, thrum_now() + ns) == 0;
                else
                    thrum_sem_wait(&sem), answer = true;
            });
            Light poster([&] {
                spin_us(post_us);
                thrum_sem_post(&sem);
            });
            spin_us(static_cast<double>(random() % 10));
            victim.cancel();
            const bool cancelled = victim.was_cancelled();
            poster.join();
            if (cancelled || !answer) {
                thrum_sem_wait(&sem);
            }
        }
    };
    {
        std::vector<Light> lights;
        for (unsigned i = 0; i < 4; i++)
            lights.emplace_back([&race, i] { race(i); });
    }
    EXPECT_EQ(thrum_sem_try_wait(&sem), EBUSY);
    EXPECT_EQ(thrum_sem_destroy(&sem), 0);
}

TEST_P(Cancel, RacesWithResumeAndJoin) {
    const auto race = [&](unsigned seed) {
        std::mt19937 random{seed};
        for (int i = 0; i < 1000 / kStressDivisor; i++) {
            Victim raced([] { thrum_suspend(); });
            Light raced_resumer([&] { thrum_resume(raced.handle()); });
            raced.cancel();
            raced_resumer.join();
            raced.was_cancelled();

            Victim suspends([] { thrum_suspend(); });
            std::atomic<bool> joined{false};
            const thrum_t handle = suspends.handle();
            Victim joins([&] {
                thrum_join(handle, nullptr);
                joined = true;
            });
            Light resumer([&] { thrum_resume(handle); });
            spin_us(static_cast<double>(random() % 5));
            joins.cancel();
            resumer.join();
            joins.was_cancelled();
            if (joined)
                suspends.forget();
        }
    };
    std::vector<Light> lights;
    for (unsigned i = 0; i < 4; i++)
        lights.emplace_back([&race, i] { race(i); });
}

ULT_OVER_WORKERS(Cancel);

} // namespace
