// SPDX-License-Identifier: Apache-2.0
//
// sync/mutex: exclusion, hand-off, deadlines, recursion, priorities.
#include "crew.hpp"

namespace {

class Mutex : public Ult {
  protected:
    thrum_mutex_t mutex_ = THRUM_MUTEX_INITIALIZER;
};

TEST_P(Mutex, Excludes) {
    int inside = 0, total = 0;
    const int rounds = divided(200);
    crew(16, 3, [&](int who) {
        for (int i = 0; i < rounds; i++) {
            thrum_mutex_lock(&mutex_);
            EXPECT_EQ(inside++, 0);
            total++;
            if ((i + who) % 8 == 0)
                thrum_yield();
            inside--;
            EXPECT_EQ(thrum_mutex_unlock(&mutex_), 0);
        }
    });
    EXPECT_EQ(total, 20 * rounds);
    EXPECT_EQ(thrum_mutex_destroy(&mutex_), 0);
}

TEST_P(Mutex, TryLockTakesAFreeOne) {
    EXPECT_EQ(thrum_mutex_try_lock(&mutex_), 0);
    in_ult([&] { EXPECT_EQ(thrum_mutex_try_lock(&mutex_), EBUSY); });
    Heavies(1, [&](int) { EXPECT_EQ(thrum_mutex_try_lock(&mutex_), EBUSY); });
    EXPECT_EQ(thrum_mutex_unlock(&mutex_), 0);
    in_ult([&] {
        EXPECT_EQ(thrum_mutex_try_lock(&mutex_), 0);
        EXPECT_EQ(thrum_mutex_unlock(&mutex_), 0);
    });
}

TEST_P(Mutex, TryLockTakesAFreeOneOfAnyKind) {
    for (const unsigned kind : {0U, 8U, 16U, 24U}) {
        thrum_mutex_t mutex;
        ASSERT_EQ(thrum_mutex_init(&mutex, kind), 0);
        for (int i = 0; i < 2; i++) {
            EXPECT_EQ(thrum_mutex_try_lock(&mutex), 0) << kind;
            in_ult([&] { EXPECT_EQ(thrum_mutex_try_lock(&mutex), EBUSY) << kind; });
            EXPECT_EQ(thrum_mutex_unlock(&mutex), 0) << kind;
        }
        Heavies(1, [&](int) {
            EXPECT_EQ(thrum_mutex_try_lock(&mutex), 0) << kind;
            EXPECT_EQ(thrum_mutex_unlock(&mutex), 0) << kind;
        });
        EXPECT_EQ(thrum_mutex_destroy(&mutex), 0);
    }
}

TEST_P(Mutex, IsHandedToTheLongestWaiter) {
    constexpr int kLights = 6, kHeavies = 2;
    std::vector<int> order;
    const auto wait = [&](int who) {
        thrum_mutex_lock(&mutex_);
        order.push_back(who);
        thrum_mutex_unlock(&mutex_);
    };
    thrum_mutex_lock(&mutex_);
    std::vector<Light> lights;
    std::vector<std::unique_ptr<Heavies>> heavies;
    for (int i = 0; i < kLights + kHeavies; i++) {
        if (i % 4 == 3)
            heavies.push_back(std::make_unique<Heavies>(1, wait, i));
        else
            lights.emplace_back([&wait, i] { wait(i); });
        ASSERT_TRUE(eventually_waiting(mutex_, i + 1));
    }
    thrum_mutex_unlock(&mutex_);
    if (workers() == 1) { // no other thread has run yet
        EXPECT_EQ(thrum_mutex_try_lock(&mutex_), EBUSY) << "it is not free in between, but another's";
    }
    lights.clear();
    heavies.clear();
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_P(Mutex, DeadlineComes) {
    thrum_mutex_lock(&mutex_);
    const auto give_up = [&](int) {
        const uint64_t moment = in_ms(3);
        EXPECT_EQ(thrum_mutex_lock_until(&mutex_, moment), ETIMEDOUT);
        EXPECT_GE(thrum_now(), moment);
        EXPECT_EQ(thrum_mutex_lock_until(&mutex_, 0), ETIMEDOUT);
        EXPECT_EQ(thrum_mutex_lock_until(&mutex_, thrum_now()), ETIMEDOUT);
    };
    in_ult([&] { give_up(0); });
    Heavies(1, give_up);
    EXPECT_EQ(waiting(mutex_), 0) << "nobody is left behind";
    thrum_mutex_unlock(&mutex_);
    EXPECT_EQ(thrum_mutex_lock_until(&mutex_, 0), 0)
        << "where there is nothing to wait for no moment is too late";
    thrum_mutex_unlock(&mutex_);
}

TEST_P(Mutex, IsHadBeforeTheDeadline) {
    thrum_mutex_lock(&mutex_);
    int had = 0;
    Light light([&] {
        EXPECT_EQ(thrum_mutex_lock_until(&mutex_, in_ms(60000)), 0);
        had++;
        thrum_mutex_unlock(&mutex_);
    });
    ASSERT_TRUE(eventually_waiting(mutex_, 1));
    Heavies heavy(1, [&](int) {
        EXPECT_EQ(thrum_mutex_lock_until(&mutex_, in_ms(60000)), 0);
        had++;
        thrum_mutex_unlock(&mutex_);
    });
    ASSERT_TRUE(eventually_waiting(mutex_, 2));
    thrum_mutex_unlock(&mutex_);
    light.join();
    heavy.join();
    EXPECT_EQ(had, 2);
}

// The first and the last of the list give up: it goes to the one between.
TEST_P(Mutex, IsHandedPastThoseThatGaveUp) {
    thrum_mutex_lock(&mutex_);
    std::atomic<int> gave_up{0};
    const auto give_up = [&] {
        EXPECT_EQ(thrum_mutex_lock_until(&mutex_, in_ms(30)), ETIMEDOUT);
        gave_up++;
    };
    Light first(give_up);
    Light second([&] {
        thrum_mutex_lock(&mutex_);
        thrum_mutex_unlock(&mutex_);
    });
    Light third(give_up);
    ASSERT_TRUE(eventually([&] { return gave_up == 2; }));
    EXPECT_EQ(waiting(mutex_), 1);
    thrum_mutex_unlock(&mutex_);
}

// Deadlines about as long as the mutex is held: each way that a waiter, its timer and an unlock may meet.
TEST_P(Mutex, DeadlinesAmongUnlocks) {
    int total = 0;
    std::atomic<int> had{0};
    const int rounds = divided(100);
    crew(12, 2, [&](int who) {
        for (int i = 0; i < rounds; i++) {
            if ((i + who) % 5 == 0)
                thrum_mutex_lock(&mutex_);
            else if (thrum_mutex_lock_until(&mutex_, in_us(static_cast<uint64_t>((i * 7 + who) % 60))) != 0)
                continue;
            total++;
            if (i % 4 == 0)
                spin_us(10);
            if (i % 16 == 0)
                thrum_yield();
            had++;
            thrum_mutex_unlock(&mutex_);
        }
    });
    EXPECT_EQ(total, had);
    EXPECT_EQ(thrum_mutex_try_lock(&mutex_), 0);
    thrum_mutex_unlock(&mutex_);
}

TEST_P(Mutex, RecursiveOneIsLockedAgain) {
    thrum_mutex_t mutex = THRUM_MUTEX_RECURSIVE_INITIALIZER;
    in_ult([&] {
        thrum_mutex_lock(&mutex);
        EXPECT_EQ(thrum_mutex_try_lock(&mutex), 0);
        EXPECT_EQ(thrum_mutex_lock_until(&mutex, 0), 0);
        for (int i = 0; i < 3; i++) {
            in_ult([&] { EXPECT_EQ(thrum_mutex_try_lock(&mutex), EBUSY); });
            Heavies(1, [&](int) { EXPECT_EQ(thrum_mutex_lock_until(&mutex, in_us(10)), ETIMEDOUT); });
            EXPECT_EQ(thrum_mutex_unlock(&mutex), 0);
        }
        in_ult([&] {
            EXPECT_EQ(thrum_mutex_try_lock(&mutex), 0);
            EXPECT_EQ(thrum_mutex_unlock(&mutex), 0);
        });
    });
}

TEST_P(Mutex, RecursiveOneExcludes) {
    thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
    ASSERT_EQ(thrum_mutex_init(&mutex, THRUM_MUTEX_RECURSIVE), 0);
    int inside = 0;
    crew(8, 2, [&](int) {
        for (int i = 0; i < divided(100); i++) {
            thrum_mutex_lock(&mutex);
            EXPECT_EQ(inside++, 0);
            thrum_mutex_lock(&mutex);
            if (i % 8 == 0)
                thrum_yield();
            thrum_mutex_unlock(&mutex);
            inside--;
            thrum_mutex_unlock(&mutex);
        }
    });
    EXPECT_EQ(thrum_mutex_destroy(&mutex), 0);
}

void expect_highest_first(thrum_mutex_t &mutex) {
    thrum_mutex_lock(&mutex);
    std::vector<unsigned> order;
    std::vector<Light> lights;
    for (const unsigned priority : {3U, 9U, 3U, 0U, 9U, 63U}) {
        thrum_attr_t attr;
        thrum_attr_init(&attr);
        ASSERT_EQ(thrum_attr_set_priority(&attr, priority), 0);
        const unsigned who = priority * 10 + static_cast<unsigned>(lights.size());
        lights.emplace_back(
            [&, who] {
                thrum_mutex_lock(&mutex);
                order.push_back(who);
                thrum_mutex_unlock(&mutex);
            },
            &attr);
        ASSERT_TRUE(eventually_waiting(mutex, static_cast<int>(lights.size())));
    }
    thrum_mutex_unlock(&mutex);
    lights.clear();
    EXPECT_EQ(order, (std::vector<unsigned>{635, 91, 94, 30, 32, 3}));
}

TEST_P(Mutex, PrioritisedGoesToTheHighest) {
    thrum_mutex_t mutex, initialised = THRUM_MUTEX_PRIORITY_INITIALIZER;
    ASSERT_EQ(thrum_mutex_init(&mutex, THRUM_MUTEX_PRIORITY), 0);
    expect_highest_first(mutex);
    expect_highest_first(initialised);
    EXPECT_EQ(thrum_mutex_init(&mutex, 1), EINVAL);
}

// The next owner of the mutex may free it, while the unlocking thread is still inside.
TEST_P(Mutex, IsGoneAsSoonAsItIsHad) {
    for (int i = 0; i < divided(300); i++) {
        OnPage<thrum_mutex_t> page;
        thrum_mutex_lock(page.get());
        Light other([&] {
            thrum_mutex_lock(page.get());
            thrum_mutex_unlock(page.get());
            page.drop();
        });
        if (i % 2 == 0)
            spin_us(i % 7);
        thrum_mutex_unlock(page.get());
    }
}

class MutexMisuse : public UltPlain {};

TEST_F(MutexMisuse, IsReported) {
    thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER, recursive = THRUM_MUTEX_RECURSIVE_INITIALIZER;
    expect_misuse(EPERM, "thrum_mutex_unlock: this mutex is not locked",
                  [&] { return thrum_mutex_unlock(&mutex); });
    std::thread([&] { thrum_mutex_lock(&recursive); }).join();
    expect_misuse(
        EPERM,
        "thrum_mutex_unlock: another thread owns this mutex (a coroutine must not hold it across co_await)",
        [&] { return thrum_mutex_unlock(&recursive); });
    thrum_mutex_lock(&mutex);
    expect_misuse(EBUSY, "thrum_mutex_destroy: this mutex is locked or has waiters",
                  [&] { return thrum_mutex_destroy(&mutex); });
    if (!library_is_checked())
        return;
    expect_misuse(0, "thrum_mutex_lock: the caller owns this mutex already, and it is not recursive", [&] {
        thrum_mutex_lock(&mutex);
        return 0;
    });
    std::thread([&] {
        expect_misuse(0,
                      "thrum_mutex_unlock: another thread owns this mutex (a coroutine must not hold it "
                      "across co_await)",
                      [&] { return thrum_mutex_unlock(&mutex); });
    }).join();
}

ULT_OVER_WORKERS(Mutex);

} // namespace
