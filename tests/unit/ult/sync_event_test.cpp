// SPDX-License-Identifier: Apache-2.0
//
// sync/event, and what is made of it: latch, eventual, future, once.
#include <cstring>

#include "crew.hpp"

namespace {

// --- event ------------------------------------------------------------------------------------------------

class Event : public Ult {
  protected:
    thrum_event_t event_ = THRUM_EVENT_INITIALIZER;
};

TEST_P(Event, LetsAllGo) {
    for (const bool timed : {false, true}) {
        const int count = divided(300);
        std::atomic<int> gone{0};
        int before = 0;
        const auto wait = [&](int) {
            if (timed)
                EXPECT_EQ(thrum_event_wait_until(&event_, in_ms(60000)), 0);
            else
                thrum_event_wait(&event_);
            EXPECT_EQ(before, 1);
            gone++;
        };
        std::vector<Light> lights;
        for (int i = 0; i < count; i++)
            lights.emplace_back([&] { wait(0); });
        Heavies heavies(2, wait);
        ASSERT_TRUE(eventually_waiting(event_, count + 2));
        EXPECT_EQ(thrum_event_try_wait(&event_), EBUSY);
        before = 1;
        thrum_event_set(&event_);
        thrum_event_set(&event_);
        EXPECT_EQ(thrum_event_try_wait(&event_), 0);
        wait(0);
        lights.clear();
        heavies.join();
        EXPECT_EQ(gone, count + 3);
        thrum_event_reset(&event_);
        thrum_event_reset(&event_);
        EXPECT_EQ(thrum_event_try_wait(&event_), EBUSY);
    }
    EXPECT_EQ(thrum_event_destroy(&event_), 0);
}

TEST_P(Event, DeadlineComes) {
    const auto give_up = [&](int) {
        const uint64_t moment = in_ms(3);
        EXPECT_EQ(thrum_event_wait_until(&event_, moment), ETIMEDOUT);
        EXPECT_GE(thrum_now(), moment);
        EXPECT_EQ(thrum_event_wait_until(&event_, 0), ETIMEDOUT);
    };
    in_ult([&] { give_up(0); });
    Heavies(1, give_up);
    EXPECT_EQ(waiting(event_), 0);
    thrum_event_set(&event_);
    EXPECT_EQ(thrum_event_wait_until(&event_, 0), 0);
}

// Waiters with deadlines about as long as it takes; a set that comes after the wait began is never missed.
TEST_P(Event, DeadlinesAmongSets) {
    for (int i = 0; i < divided(100); i++) {
        std::atomic<bool> set{false};
        std::vector<Light> lights;
        for (int k = 0; k < 8; k++)
            lights.emplace_back([&, k] {
                const uint64_t moment =
                    k % 4 == 0 ? kNever : in_us(static_cast<uint64_t>((i * 7 + k * 5) % 60));
                const int error = thrum_event_wait_until(&event_, moment);
                EXPECT_TRUE(error == ETIMEDOUT ? moment != kNever : error == 0 && set);
            });
        if (i % 2 == 0)
            spin_us(i % 50);
        set = true;
        thrum_event_set(&event_);
        lights.clear();
        EXPECT_EQ(waiting(event_), 0);
        thrum_event_reset(&event_);
    }
}

// A repeated set, too, is seen by a thread that resets it from then on: work that was noted before a set is not
// overlooked.
TEST_P(Event, ASetThatFindsItSetIsSeen) {
    constexpr int kSetters = 6;
    const int each = divided(500);
    std::atomic<int> noted[kSetters] = {}; // relaxed: the event is what orders them
    crew(kSetters - 2, 2, [&](int who) {
        if (who < kSetters) {
            for (int i = 0; i < each; i++) {
                noted[who].fetch_add(1, std::memory_order_relaxed);
                thrum_event_set(&event_);
                if (i % 8 == 0)
                    thrum_yield();
            }
            return;
        }
        for (int seen = 0; seen < kSetters * each;) {
            EXPECT_EQ(thrum_event_wait_until(&event_, in_ms(60000)), 0);
            thrum_event_reset(&event_);
            seen = 0;
            for (const auto &count : noted)
                seen += count.load(std::memory_order_relaxed);
        }
    });
}

TEST_P(Event, InitialisedOverAnything) {
    std::memset(&event_, 0xa5, sizeof event_);
    thrum_event_init(&event_);
    EXPECT_EQ(thrum_event_try_wait(&event_), EBUSY);
    EXPECT_EQ(thrum_event_wait_until(&event_, in_ms(1)), ETIMEDOUT);
    Light light([&] { thrum_event_wait(&event_); });
    ASSERT_TRUE(eventually_waiting(event_, 1));
    thrum_event_set(&event_);
    light.join();
    EXPECT_EQ(thrum_event_destroy(&event_), 0);
}

TEST_P(Event, IsGoneAsSoonAsItIsSeen) {
    for (int i = 0; i < divided(300); i++) {
        OnPage<thrum_event_t> page;
        Light other([&] {
            if (i % 3 == 0)
                EXPECT_EQ(thrum_event_wait_until(page.get(), in_ms(60000)), 0);
            else
                thrum_event_wait(page.get());
            page.drop();
        });
        if (i % 2 == 0)
            spin_us(i % 7);
        thrum_event_set(page.get());
    }
}

TEST_P(Event, IsReportedWhileInUse) {
    Light light([&] { thrum_event_wait(&event_); });
    ASSERT_TRUE(eventually_waiting(event_, 1));
    expect_misuse(EBUSY, "thrum_event_destroy: a thread still waits for this event",
                  [&] { return thrum_event_destroy(&event_); });
    thrum_event_set(&event_);
}

ULT_OVER_WORKERS(Event);

// --- latch ------------------------------------------------------------------------------------------------

class Latch : public Ult {};

TEST_P(Latch, OpensAtZero) {
    const int rounds = divided(50);
    for (int i = 0; i < rounds; i++) {
        thrum_latch_t latch = THRUM_LATCH_INITIALIZER(13);
        std::atomic<int> counted{0};
        crew(10, 2, [&](int who) {
            counted++;
            EXPECT_EQ(thrum_latch_count_down(&latch, 1), 0);
            if (who % 2 == 0)
                thrum_latch_wait(&latch);
            else
                EXPECT_EQ(thrum_latch_wait_until(&latch, in_ms(60000)), 0);
            EXPECT_EQ(counted, 13);
        });
        EXPECT_EQ(thrum_latch_try_wait(&latch), 0);
        EXPECT_EQ(thrum_latch_destroy(&latch), 0);
    }
}

TEST_P(Latch, CountsNoFurther) {
    thrum_latch_t latch = THRUM_LATCH_INITIALIZER(5);
    EXPECT_EQ(thrum_latch_count_down(&latch, 6), EINVAL);
    EXPECT_EQ(thrum_latch_count_down(&latch, 4), 0);
    EXPECT_EQ(thrum_latch_count_down(&latch, 0), 0);
    EXPECT_EQ(thrum_latch_try_wait(&latch), EBUSY);
    EXPECT_EQ(thrum_latch_wait_until(&latch, in_ms(1)), ETIMEDOUT);
    EXPECT_EQ(thrum_latch_count_down(&latch, 1), 0);
    EXPECT_EQ(thrum_latch_count_down(&latch, 1), EINVAL);
    thrum_latch_wait(&latch);
    thrum_latch_t open = THRUM_LATCH_INITIALIZER(0);
    thrum_latch_wait(&open);
    thrum_latch_init(&latch, 1);
    EXPECT_EQ(thrum_latch_try_wait(&latch), EBUSY);
    thrum_latch_init(&latch, 0);
    EXPECT_EQ(thrum_latch_try_wait(&latch), 0);
}

TEST_P(Latch, IsGoneAsSoonAsItIsOpen) {
    for (int i = 0; i < divided(200); i++) {
        OnPage<thrum_latch_t> page;
        thrum_latch_init(page.get(), 2);
        Light other([&] { EXPECT_EQ(thrum_latch_count_down(page.get(), 1), 0); });
        Light waiter([&] {
            thrum_latch_wait(page.get());
            page.drop();
        });
        EXPECT_EQ(thrum_latch_count_down(page.get(), 1), 0);
    }
}

TEST_P(Latch, IsReportedWhileInUse) {
    thrum_latch_t latch = THRUM_LATCH_INITIALIZER(1);
    Light light([&] { thrum_latch_wait(&latch); });
    ASSERT_TRUE(eventually_waiting(latch, 1));
    expect_misuse(EBUSY, "thrum_latch_destroy: a thread still waits for this latch",
                  [&] { return thrum_latch_destroy(&latch); });
    EXPECT_EQ(thrum_latch_count_down(&latch, 1), 0);
}

ULT_OVER_WORKERS(Latch);

// --- eventual, future -------------------------------------------------------------------------------------

class Eventual : public Ult {};

TEST_P(Eventual, IsSetOnceAndReadByAll) {
    thrum_eventual_t eventual = THRUM_EVENTUAL_INITIALIZER;
    for (int i = 0; i < divided(30); i++) {
        int values[12];
        std::atomic<int> winner{-1}, read{0};
        crew(9, 2, [&](int who) {
            void *value = nullptr;
            if (who % 2 == 0 && thrum_eventual_set(&eventual, &values[who]) == 0) {
                EXPECT_EQ(winner.exchange(who), -1) << "one alone";
            }
            switch (who % 3) {
            case 0: value = thrum_eventual_get(&eventual); break;
            case 1: EXPECT_EQ(thrum_eventual_get_until(&eventual, &value, in_ms(60000)), 0); break;
            default: EXPECT_TRUE(eventually([&] { return thrum_eventual_try_get(&eventual, &value) == 0; }));
            }
            EXPECT_TRUE(eventually([&] { return winner != -1; }));
            EXPECT_EQ(value, &values[winner]);
            read++;
        });
        EXPECT_EQ(read, 12);
        EXPECT_EQ(thrum_eventual_set(&eventual, nullptr), EBUSY);
        EXPECT_EQ(thrum_eventual_reset(&eventual), 0);
    }
    void *value = this;
    EXPECT_EQ(thrum_eventual_try_get(&eventual, &value), EBUSY);
    EXPECT_EQ(thrum_eventual_get_until(&eventual, &value, in_ms(1)), ETIMEDOUT);
    EXPECT_EQ(value, this);
    EXPECT_EQ(thrum_eventual_destroy(&eventual), 0);
}

TEST_P(Eventual, InitialisedOverAnything) {
    thrum_eventual_t eventual;
    std::memset(&eventual, 0xa5, sizeof eventual);
    thrum_eventual_init(&eventual);
    void *value = nullptr;
    EXPECT_EQ(thrum_eventual_try_get(&eventual, &value), EBUSY);
    EXPECT_EQ(thrum_eventual_get_until(&eventual, &value, in_ms(1)), ETIMEDOUT);
    Light light([&] { EXPECT_EQ(thrum_eventual_get(&eventual), this); });
    EXPECT_EQ(thrum_eventual_set(&eventual, this), 0);
    light.join();
    EXPECT_EQ(thrum_eventual_set(&eventual, nullptr), EBUSY);
    EXPECT_EQ(thrum_eventual_destroy(&eventual), 0);
}

TEST_P(Eventual, IsReportedWhileInUse) {
    thrum_eventual_t eventual = THRUM_EVENTUAL_INITIALIZER;
    Light light([&] { EXPECT_EQ(thrum_eventual_get(&eventual), this); });
    ASSERT_TRUE(eventually_waiting(eventual, 1));
    for (int (*const end)(thrum_eventual_t *) : {thrum_eventual_destroy, thrum_eventual_reset})
        expect_misuse(EBUSY, "thrum_eventual_destroy: a thread still waits for this eventual",
                      [&] { return end(&eventual); });
    EXPECT_EQ(thrum_eventual_set(&eventual, this), 0);
}

ULT_OVER_WORKERS(Eventual);

class Future : public Ult {};

TEST_P(Future, HasAllValues) {
    constexpr int kValues = 40;
    void *values[kValues];
    thrum_future_t future = THRUM_FUTURE_INITIALIZER(values, kValues);
    for (int i = 0; i < divided(20); i++) {
        int numbers[kValues];
        std::atomic<int> next{0};
        crew(7, 2, [&](int who) {
            for (int at; (at = next++) < kValues;) {
                numbers[at] = at;
                EXPECT_EQ(thrum_future_set(&future, &numbers[at]), 0);
            }
            if (who % 2 == 0)
                thrum_future_wait(&future);
            else
                EXPECT_EQ(thrum_future_wait_until(&future, in_ms(60000)), 0);
            int sum = 0;
            for (const void *value : values)
                sum += *static_cast<const int *>(value);
            EXPECT_EQ(sum, kValues * (kValues - 1) / 2);
        });
        EXPECT_EQ(thrum_future_set(&future, nullptr), EBUSY);
        EXPECT_EQ(thrum_future_reset(&future), 0);
        EXPECT_EQ(thrum_future_try_wait(&future), EBUSY);
    }
    EXPECT_EQ(thrum_future_wait_until(&future, in_ms(1)), ETIMEDOUT);
    EXPECT_EQ(thrum_future_destroy(&future), 0);
    thrum_future_init(&future, nullptr, 0);
    EXPECT_EQ(thrum_future_try_wait(&future), 0) << "of nothing";
}

TEST_P(Future, IsReportedWhileInUse) {
    void *values[1] = {nullptr};
    thrum_future_t future = THRUM_FUTURE_INITIALIZER(values, 1);
    Light light([&] { thrum_future_wait(&future); });
    ASSERT_TRUE(eventually_waiting(future, 1));
    for (int (*const end)(thrum_future_t *) : {thrum_future_destroy, thrum_future_reset})
        expect_misuse(EBUSY, "thrum_future_destroy: a thread still waits for this future",
                      [&] { return end(&future); });
    EXPECT_EQ(thrum_future_set(&future, this), 0);
}

ULT_OVER_WORKERS(Future);

// --- once -------------------------------------------------------------------------------------------------

class Once : public Ult {};

TEST_P(Once, RunsOnceBeforeAnyCallerReturns) {
    for (int i = 0; i < divided(50); i++) {
        thrum_once_t once = THRUM_ONCE_INITIALIZER;
        int runs = 0;
        crew(9, 2, [&](int) {
            thrum_once_call(
                &once,
                [](void *arg) {
                    thrum_yield();
                    ++*static_cast<int *>(arg);
                    thrum_sleep(20 * THRUM_US);
                },
                &runs);
            EXPECT_EQ(runs, 1);
        });
    }
}

TEST_P(Once, IsTriedAgainAfterAnException) {
    thrum_once_t once = THRUM_ONCE_INITIALIZER;
    std::atomic<int> runs{0}, thrown{0};
    crew(6, 2, [&](int) {
        try {
            thrum_once_call(
                &once,
                [](void *arg) {
                    auto &count = *static_cast<std::atomic<int> *>(arg);
                    const int run = ++count;
                    thrum_yield();
                    if (run < 4)
                        throw run;
                },
                &runs);
        } catch (int) {
            thrown++;
        }
    });
    EXPECT_EQ(runs, 4);
    EXPECT_EQ(thrown, 3);
}

// A waiter for another's end gives up, the runner does not.
TEST_P(Once, IsWaitedForUntilADeadline) {
    struct Calls {
        thrum_once_t once = THRUM_ONCE_INITIALIZER;
        thrum_event_t begun = THRUM_EVENT_INITIALIZER, go_on = THRUM_EVENT_INITIALIZER;
        int runs = 0;
        static void fn(void *arg) {
            auto *calls = static_cast<Calls *>(arg);
            calls->runs++;
            thrum_event_set(&calls->begun);
            thrum_event_wait(&calls->go_on);
        }
    };
    Calls calls;
    Light runner([&] { EXPECT_EQ(thrum_once_call_until(&calls.once, Calls::fn, &calls, 0), 0); });
    thrum_event_wait(&calls.begun);
    const auto expect_in_vain = [&] {
        EXPECT_EQ(thrum_once_try_call(&calls.once, Calls::fn, &calls), EBUSY);
        const uint64_t moment = thrum_now() + THRUM_MS;
        EXPECT_EQ(thrum_once_call_until(&calls.once, Calls::fn, &calls, moment), ETIMEDOUT);
        EXPECT_GE(thrum_now(), moment);
    };
    expect_in_vain();
    in_ult(expect_in_vain);
    External(expect_in_vain).join();
    thrum_attr_t tasklet; // which may try, as it does not wait
    thrum_attr_init(&tasklet);
    ASSERT_EQ(thrum_attr_set_flags(&tasklet, THRUM_SPAWN_TASKLET), 0);
    Light([&] { EXPECT_EQ(thrum_once_try_call(&calls.once, Calls::fn, &calls), EBUSY); }, &tasklet).join();
    Light patient([&] {
        EXPECT_EQ(thrum_once_call_until(&calls.once, Calls::fn, &calls, thrum_now() + 20 * THRUM_S), 0);
    });
    thrum_event_set(&calls.go_on);
    patient.join();
    runner.join();
    EXPECT_EQ(thrum_once_try_call(&calls.once, Calls::fn, &calls), 0);
    EXPECT_EQ(calls.runs, 1);
    thrum_once_t other = THRUM_ONCE_INITIALIZER;
    EXPECT_EQ(thrum_once_try_call(&other, Calls::fn, &calls), 0); // go_on is set
    EXPECT_EQ(calls.runs, 2);
}

// By thrum_exit, as by pthread_exit of an external kernel thread.
TEST_P(Once, IsTriedAgainAfterItsThreadHasEnded) {
    struct Calls {
        thrum_once_t once = THRUM_ONCE_INITIALIZER;
        std::atomic<int> runs{0}, returned{0};
        static void *call(void *arg) {
            auto *calls = static_cast<Calls *>(arg);
            thrum_once_call(
                &calls->once,
                [](void *self) {
                    const int run = ++static_cast<Calls *>(self)->runs;
                    thrum_yield();
                    if (run < 4)
                        thrum_exit(nullptr);
                },
                calls);
            calls->returned++;
            return calls;
        }
    };
    for (int i = 0; i < divided(20); i++) {
        Calls calls;
        pthread_t externals[2];
        thrum_t threads[6];
        for (pthread_t &external : externals)
            ASSERT_EQ(pthread_create(&external, nullptr, Calls::call, &calls), 0);
        for (thrum_t &thread : threads)
            ASSERT_EQ(thrum_spawn(&thread, nullptr, Calls::call, &calls), 0);
        int ended = 0;
        for (const thrum_t thread : threads) {
            void *result = nullptr;
            ASSERT_EQ(thrum_join(thread, &result), 0);
            ended += result == nullptr;
        }
        EXPECT_TRUE(eventually([&] { return calls.runs == 4; }));
        for (const pthread_t external : externals) {
            void *result = nullptr;
            ASSERT_EQ(pthread_join(external, &result), 0);
            ended += result == nullptr;
        }
        EXPECT_EQ(calls.runs, 4);
        EXPECT_EQ(ended, 3);
        EXPECT_EQ(calls.returned, 5);
    }
}

ULT_OVER_WORKERS(Once);

} // namespace
