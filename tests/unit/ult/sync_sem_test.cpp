// SPDX-License-Identifier: Apache-2.0
//
// sync/sem: permits are neither lost nor made, and go to the longest waiter.
#include "crew.hpp"

namespace {

class Sem : public Ult {
  protected:
    thrum_sem_t sem_ = THRUM_SEM_INITIALIZER(0);
};

TEST_P(Sem, Counts) {
    thrum_sem_t sem = THRUM_SEM_INITIALIZER(2);
    EXPECT_EQ(thrum_sem_count(&sem), 2U);
    thrum_sem_wait(&sem);
    EXPECT_EQ(thrum_sem_try_wait(&sem), 0);
    EXPECT_EQ(thrum_sem_try_wait(&sem), EBUSY);
    EXPECT_EQ(thrum_sem_wait_until(&sem, in_ms(2)), ETIMEDOUT);
    Heavies(1, [&](int) { EXPECT_EQ(thrum_sem_wait_until(&sem, in_ms(2)), ETIMEDOUT); });
    EXPECT_EQ(waiting(sem), 0);
    EXPECT_EQ(thrum_sem_post_many(&sem, 3), 0);
    EXPECT_EQ(thrum_sem_wait_until(&sem, 0), 0);
    EXPECT_EQ(thrum_sem_count(&sem), 2U);
    EXPECT_EQ(thrum_sem_destroy(&sem), 0);
}

TEST_P(Sem, HasAMost) {
    EXPECT_EQ(thrum_sem_init(&sem_, THRUM_SEM_MAX + 1), EINVAL);
    EXPECT_EQ(thrum_sem_init(&sem_, THRUM_SEM_MAX), 0);
    EXPECT_EQ(thrum_sem_post(&sem_), EOVERFLOW);
    EXPECT_EQ(thrum_sem_try_wait(&sem_), 0);
    EXPECT_EQ(thrum_sem_post_many(&sem_, 2), EOVERFLOW);
    EXPECT_EQ(thrum_sem_post(&sem_), 0);
    EXPECT_EQ(thrum_sem_count(&sem_), THRUM_SEM_MAX);
}

TEST_P(Sem, GoesToTheLongestWaiter) {
    std::vector<int> order;
    thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
    std::vector<Light> lights;
    for (int i = 0; i < 5; i++) {
        lights.emplace_back([&, i] {
            thrum_sem_wait(&sem_);
            thrum_mutex_lock(&mutex);
            order.push_back(i);
            thrum_mutex_unlock(&mutex);
        });
        ASSERT_TRUE(eventually_waiting(sem_, i + 1));
    }
    for (size_t i = 1; i <= 5; i++) {
        EXPECT_EQ(thrum_sem_post(&sem_), 0);
        EXPECT_EQ(thrum_sem_try_wait(&sem_), EBUSY) << "it is another's";
        ASSERT_TRUE(eventually([&] {
            thrum_mutex_lock(&mutex);
            const bool had = order.size() == i;
            thrum_mutex_unlock(&mutex);
            return had;
        }));
    }
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

// More than a batch, with what is left kept.
TEST_P(Sem, PostsMany) {
    for (const bool timed : {false, true}) {
        const int count = divided(300);
        std::atomic<int> had{0};
        const auto wait = [&](int) {
            if (timed)
                EXPECT_EQ(thrum_sem_wait_until(&sem_, in_ms(60000)), 0);
            else
                thrum_sem_wait(&sem_);
            had++;
        };
        std::vector<Light> lights;
        for (int i = 0; i < count; i++)
            lights.emplace_back([&] { wait(0); });
        Heavies heavies(2, wait);
        ASSERT_TRUE(eventually_waiting(sem_, count + 2));
        EXPECT_EQ(thrum_sem_post_many(&sem_, static_cast<unsigned>(count + 9)), 0);
        lights.clear();
        heavies.join();
        EXPECT_EQ(had, count + 2);
        EXPECT_EQ(thrum_sem_count(&sem_), 7U);
        EXPECT_EQ(thrum_sem_init(&sem_, 0), 0);
    }
}

// No more inside than there are permits, and none is lost, whatever the deadlines do.
TEST_P(Sem, PermitsAreConserved) {
    EXPECT_EQ(thrum_sem_init(&sem_, 3), 0);
    std::atomic<int> inside{0}, most{0};
    const int rounds = divided(200);
    crew(12, 3, [&](int who) {
        for (int i = 0; i < rounds; i++) {
            if ((i + who) % 3 == 0)
                thrum_sem_wait(&sem_);
            else if (thrum_sem_wait_until(&sem_, in_us(static_cast<uint64_t>((i * 7 + who) % 60))) != 0)
                continue;
            const int now = ++inside;
            EXPECT_LE(now, 3);
            if (now > most)
                most = now;
            if (i % 4 == 0)
                spin_us(5);
            if (i % 8 == 0)
                thrum_yield();
            inside--;
            EXPECT_EQ(thrum_sem_post(&sem_), 0);
        }
    });
    EXPECT_EQ(thrum_sem_count(&sem_), 3U);
    EXPECT_GT(most, 0);
}

TEST_P(Sem, IsGoneAsSoonAsItIsHad) {
    for (int i = 0; i < divided(300); i++) {
        OnPage<thrum_sem_t> page;
        Light other([&] {
            if (i % 3 == 0)
                EXPECT_EQ(thrum_sem_wait_until(page.get(), in_ms(60000)), 0);
            else
                thrum_sem_wait(page.get());
            page.drop();
        });
        if (i % 2 == 0)
            spin_us(i % 7);
        EXPECT_EQ(thrum_sem_post(page.get()), 0);
    }
}

TEST_P(Sem, IsReportedWhileInUse) {
    Light light([&] { thrum_sem_wait(&sem_); });
    ASSERT_TRUE(eventually_waiting(sem_, 1));
    expect_misuse(EBUSY, "thrum_sem_destroy: a thread still waits for this semaphore",
                  [&] { return thrum_sem_destroy(&sem_); });
    EXPECT_EQ(thrum_sem_post(&sem_), 0);
}

ULT_OVER_WORKERS(Sem);

} // namespace
