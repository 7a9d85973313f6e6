// SPDX-License-Identifier: Apache-2.0
//
// sync/cond: signals reach one, broadcasts all, deadlines on both sides of a signal, nothing is lost.
#include <cstring>

#include "crew.hpp"

namespace {

class Cond : public Ult {
  protected:
    void lock() { thrum_mutex_lock(&mutex_); }
    void unlock() { thrum_mutex_unlock(&mutex_); }

    thrum_mutex_t mutex_ = THRUM_MUTEX_INITIALIZER;
    thrum_cond_t cond_ = THRUM_COND_INITIALIZER, other_ = THRUM_COND_INITIALIZER;
};

TEST_P(Cond, PingPong) {
    const int rounds = divided(300);
    for (const int heavies : {0, 1, 2}) {
        int turn = 0;
        const auto play = [&](int mine) {
            for (int i = 0; i < rounds; i++) {
                lock();
                while (turn != mine)
                    thrum_cond_wait(mine == 0 ? &cond_ : &other_, &mutex_);
                turn = 1 - mine;
                thrum_cond_signal(mine == 0 ? &other_ : &cond_);
                unlock();
            }
        };
        std::vector<Light> lights;
        Heavies outside(heavies, play);
        for (int i = heavies; i < 2; i++)
            lights.emplace_back([&play, i] { play(i); });
    }
    EXPECT_EQ(thrum_cond_destroy(&cond_), 0);
}

TEST_P(Cond, SignalWakesOneInOrder) {
    std::vector<int> order;
    const auto wait = [&](int who) {
        lock();
        thrum_cond_wait(&cond_, &mutex_);
        order.push_back(who);
        unlock();
    };
    std::vector<Light> lights;
    for (int i = 0; i < 3; i++) {
        lights.emplace_back([&wait, i] { wait(i); });
        ASSERT_TRUE(eventually_waiting(cond_, i + 1));
    }
    Heavies heavy(1, wait, 3);
    ASSERT_TRUE(eventually_waiting(cond_, 4));
    for (size_t i = 1; i <= 4; i++) {
        thrum_cond_signal(&cond_);
        ASSERT_TRUE(eventually([&] {
            lock();
            const bool woken = order.size() == i;
            unlock();
            return woken;
        }));
        EXPECT_EQ(waiting(cond_), 4 - static_cast<int>(i));
    }
    thrum_cond_signal(&cond_);
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

// Both with and without the mutex; waiters with and without a deadline; more than a batch.
TEST_P(Cond, BroadcastWakesAll) {
    for (const int rest : {0, 1, 3}) {
        const int count = divided(400);
        bool go = false;
        int woken = 0;
        const auto wait = [&](int who) {
            lock();
            while (!go) {
                if (rest != 0 && who % 3 < rest)
                    EXPECT_EQ(thrum_cond_wait_until(&cond_, &mutex_, in_ms(60000)), 0);
                else
                    thrum_cond_wait(&cond_, &mutex_);
            }
            woken++;
            unlock();
        };
        Heavies heavies(2, wait, count);
        std::vector<Light> lights;
        for (int i = 0; i < count; i++)
            lights.emplace_back([&wait, i] { wait(i); });
        ASSERT_TRUE(eventually_waiting(cond_, count + 2));
        lock();
        go = true;
        if (rest == 0)
            thrum_cond_broadcast(&cond_);
        unlock();
        if (rest != 0)
            thrum_cond_broadcast(&cond_);
        lights.clear();
        heavies.join();
        EXPECT_EQ(woken, count + 2);
        EXPECT_EQ(waiting(mutex_), 0);
    }
}

// The mutex is free: its next owner is chosen at once, as by an unlock.
TEST_P(Cond, BroadcastGivesAFreeMutexToTheHighestPriority) {
    for (const bool timed : {false, true}) {
        thrum_mutex_t mutex;
        ASSERT_EQ(thrum_mutex_init(&mutex, THRUM_MUTEX_PRIORITY), 0);
        std::vector<unsigned> order;
        std::vector<Light> lights;
        for (const unsigned priority : {3U, 9U, 0U, 9U, 63U}) {
            thrum_attr_t attr;
            thrum_attr_init(&attr);
            ASSERT_EQ(thrum_attr_set_priority(&attr, priority), 0);
            const unsigned who = priority * 10 + static_cast<unsigned>(lights.size());
            lights.emplace_back(
                [&, who] {
                    thrum_mutex_lock(&mutex);
                    EXPECT_EQ(thrum_cond_wait_until(&cond_, &mutex, timed ? in_ms(60000) : kNever), 0);
                    order.push_back(who);
                    thrum_mutex_unlock(&mutex);
                },
                &attr);
            ASSERT_TRUE(eventually_waiting(cond_, static_cast<int>(lights.size())));
        }
        thrum_mutex_lock(&mutex); // the last of them has let it go
        thrum_mutex_unlock(&mutex);
        thrum_cond_broadcast(&cond_);
        lights.clear();
        EXPECT_EQ(order, (std::vector<unsigned>{634, 91, 93, 30, 2}));
        EXPECT_EQ(thrum_mutex_destroy(&mutex), 0);
    }
}

TEST_P(Cond, InitialisedOverAnything) {
    std::memset(&cond_, 0xa5, sizeof cond_);
    thrum_cond_init(&cond_);
    thrum_cond_signal(&cond_);
    thrum_cond_broadcast(&cond_);
    bool go = false;
    std::atomic<bool> has_waited{false};
    Light light([&] {
        lock();
        EXPECT_EQ(thrum_cond_wait_until(&cond_, &mutex_, in_ms(1)), ETIMEDOUT);
        has_waited = true;
        while (!go)
            thrum_cond_wait(&cond_, &mutex_);
        unlock();
    });
    EXPECT_TRUE(eventually([&] { return has_waited.load(); }));
    lock();
    go = true;
    thrum_cond_signal(&cond_);
    unlock();
    light.join();
    EXPECT_EQ(thrum_cond_destroy(&cond_), 0);
}

TEST_P(Cond, BroadcastToManyIsNotLost) {
    const int count = divided(20000);
    const thrum_attr_t attr = attr_stack(16384);
    bool go = false;
    int woken = 0;
    std::vector<Light> lights;
    lights.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; i++)
        lights.emplace_back(
            [&] {
                lock();
                while (!go)
                    thrum_cond_wait(&cond_, &mutex_);
                woken++;
                unlock();
            },
            &attr);
    ASSERT_TRUE(eventually_waiting(cond_, count));
    lock();
    go = true;
    thrum_cond_broadcast(&cond_);
    unlock();
    lights.clear();
    EXPECT_EQ(woken, count);
}

TEST_P(Cond, DeadlineComes) {
    const auto wait = [&](int) {
        lock();
        const uint64_t moment = in_ms(3);
        EXPECT_EQ(thrum_cond_wait_until(&cond_, &mutex_, moment), ETIMEDOUT);
        EXPECT_GE(thrum_now(), moment);
        EXPECT_EQ(thrum_cond_wait_until(&cond_, &mutex_, 0), ETIMEDOUT);
        EXPECT_EQ(waiting(cond_), 0);
        unlock();
    };
    in_ult([&] { wait(0); });
    Heavies(1, wait);
    EXPECT_EQ(thrum_mutex_try_lock(&mutex_), 0) << "they had it again and let it go";
    unlock();
}

// Signalled in time, but the mutex becomes free only long after: that is not a timeout.
TEST_P(Cond, SignalBeforeTheDeadlineCounts) {
    lock();
    Light light([&] {
        lock();
        EXPECT_EQ(thrum_cond_wait_until(&cond_, &mutex_, in_ms(400)), 0);
        unlock();
    });
    unlock();
    ASSERT_TRUE(eventually_waiting(cond_, 1));
    lock();
    thrum_cond_signal(&cond_);
    EXPECT_EQ(waiting(cond_), 0);
    EXPECT_EQ(waiting(mutex_), 1);
    thrum_sleep(500 * THRUM_MS);
    EXPECT_EQ(waiting(mutex_), 1);
    unlock();
}

TEST_P(Cond, OneThatGaveUpTakesNoSignal) {
    std::atomic<bool> gave_up{false};
    Light first([&] {
        lock();
        EXPECT_EQ(thrum_cond_wait_until(&cond_, &mutex_, in_ms(20)), ETIMEDOUT);
        gave_up = true;
        unlock();
    });
    Light second([&] {
        lock();
        thrum_cond_wait(&cond_, &mutex_);
        unlock();
    });
    ASSERT_TRUE(eventually([&] { return gave_up && waiting(cond_) == 1; }));
    thrum_cond_signal(&cond_);
}

// A queue with impatient consumers: each token is taken once, whatever the deadlines do.
TEST_P(Cond, NoSignalIsLostAmongDeadlines) {
    const int producers = 4, consumers = 8, each = divided(150) * 2;
    int tokens = 0, left = producers * each;
    std::atomic<int> timeouts{0};
    crew(producers + consumers - 1, 2, [&](int who) {
        if (who < producers) {
            for (int i = 0; i < each; i++) {
                lock();
                tokens++;
                if (i % 2 == 0)
                    unlock();
                thrum_cond_signal(&cond_);
                if (i % 2 != 0)
                    unlock();
                if (i % 8 == 0)
                    thrum_yield();
            }
            return;
        }
        for (unsigned i = 0;; i++) {
            lock();
            while (tokens == 0 && left > 0) {
                if (who % 2 == 0)
                    thrum_cond_wait(&cond_, &mutex_);
                else
                    timeouts += thrum_cond_wait_until(&cond_, &mutex_, in_us(i % 40)) != 0;
            }
            const bool more = left > 0;
            if (more) {
                tokens--;
                if (--left == 0)
                    thrum_cond_broadcast(&cond_);
            }
            unlock();
            if (!more)
                return;
        }
    });
    EXPECT_EQ(tokens, 0);
    EXPECT_EQ(left, 0);
    EXPECT_EQ(thrum_cond_destroy(&cond_), 0);
}

TEST_P(Cond, LetsARecursiveMutexGoAsAWhole) {
    thrum_mutex_t mutex = THRUM_MUTEX_RECURSIVE_INITIALIZER;
    Light light([&] {
        thrum_mutex_lock(&mutex);
        thrum_mutex_lock(&mutex);
        thrum_cond_wait(&cond_, &mutex);
        EXPECT_EQ(thrum_cond_wait_until(&cond_, &mutex, in_ms(1)), ETIMEDOUT);
        EXPECT_EQ(thrum_mutex_unlock(&mutex), 0);
        in_ult([&] { EXPECT_EQ(thrum_mutex_try_lock(&mutex), EBUSY); });
        EXPECT_EQ(thrum_mutex_unlock(&mutex), 0);
    });
    ASSERT_TRUE(eventually_waiting(cond_, 1));
    thrum_mutex_lock(&mutex);
    thrum_cond_signal(&cond_);
    thrum_mutex_unlock(&mutex);
}

TEST_P(Cond, IsReportedWhileInUse) {
    Light light([&] {
        lock();
        thrum_cond_wait(&cond_, &mutex_);
        unlock();
    });
    ASSERT_TRUE(eventually_waiting(cond_, 1));
    expect_misuse(EBUSY, "thrum_cond_destroy: a thread still waits for this condition",
                  [&] { return thrum_cond_destroy(&cond_); });
    thrum_cond_signal(&cond_);
}

TEST_P(Cond, IsReportedWithoutTheMutex) {
    if (!library_is_checked())
        GTEST_SKIP() << "only a debug build looks";
    const char *line = "thrum_cond_wait: the caller does not own this mutex";
    expect_misuse(0, line, [&] { return thrum_cond_wait(&cond_, &mutex_), 0; });
    expect_misuse(0, line, [&] { return thrum_cond_wait_until(&cond_, &mutex_, in_ms(1)); });
    lock();
    in_ult([&] { expect_misuse(0, line, [&] { return thrum_cond_wait(&cond_, &mutex_), 0; }); });
    unlock();
}

ULT_OVER_WORKERS(Cond);

} // namespace
