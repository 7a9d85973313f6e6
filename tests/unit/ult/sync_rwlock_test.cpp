// SPDX-License-Identifier: Apache-2.0
//
// sync/rwlock: exclusion, phases, writers and readers that give up.
#include <cstring>

#include "crew.hpp"

namespace {

class Rwlock : public Ult {
  protected:
    int waiting_readers() { return listed(lock_.opaque + 1); }
    int waiting_writers() { return listed(lock_.opaque + 4); }
    bool eventually_waiting(int readers, int writers) {
        return eventually([=] { return waiting_readers() == readers && waiting_writers() == writers; });
    }
    void read() {
        thrum_rwlock_read_lock(&lock_);
        thrum_rwlock_unlock(&lock_);
    }
    void write() {
        thrum_rwlock_write_lock(&lock_);
        thrum_rwlock_unlock(&lock_);
    }

    thrum_rwlock_t lock_ = THRUM_RWLOCK_INITIALIZER;
};

TEST_P(Rwlock, ExcludesWriters) {
    std::atomic<int> readers{0};
    int writers = 0, written = 0;
    const int rounds = divided(200);
    std::atomic<int> writes{0};
    crew(16, 3, [&](int who) {
        for (int i = 0; i < rounds; i++) {
            if ((who + i) % 4 == 0) {
                thrum_rwlock_write_lock(&lock_);
                EXPECT_EQ(writers++, 0);
                EXPECT_EQ(readers, 0);
                written++;
                writes++;
                if (i % 8 == 0)
                    thrum_yield();
                writers--;
            } else {
                thrum_rwlock_read_lock(&lock_);
                readers++;
                EXPECT_EQ(writers, 0);
                if (i % 8 == 0)
                    thrum_yield();
                EXPECT_EQ(writers, 0);
                readers--;
            }
            EXPECT_EQ(thrum_rwlock_unlock(&lock_), 0);
        }
    });
    EXPECT_EQ(written, writes);
    EXPECT_EQ(thrum_rwlock_destroy(&lock_), 0);
}

TEST_P(Rwlock, InitialisedOverAnything) {
    std::memset(&lock_, 0xa5, sizeof lock_);
    thrum_rwlock_init(&lock_);
    EXPECT_EQ(thrum_rwlock_try_read_lock(&lock_), 0);
    EXPECT_EQ(thrum_rwlock_try_read_lock(&lock_), 0);
    EXPECT_EQ(thrum_rwlock_try_write_lock(&lock_), EBUSY);
    Light writer([&] { write(); });
    ASSERT_TRUE(eventually_waiting(0, 1));
    Light reader([&] { read(); });
    ASSERT_TRUE(eventually_waiting(1, 1));
    EXPECT_EQ(thrum_rwlock_unlock(&lock_), 0);
    EXPECT_EQ(thrum_rwlock_unlock(&lock_), 0);
    writer.join();
    reader.join();
    EXPECT_EQ(thrum_rwlock_destroy(&lock_), 0);
}

TEST_P(Rwlock, ReadersShareIt) {
    std::atomic<int> inside{0};
    crew(6, 2, [&](int) {
        thrum_rwlock_read_lock(&lock_);
        inside++;
        EXPECT_TRUE(eventually([&] { return inside == 9; }));
        thrum_rwlock_unlock(&lock_);
    });
}

TEST_P(Rwlock, TriesAndDeadlines) {
    thrum_rwlock_read_lock(&lock_);
    in_ult([&] {
        EXPECT_EQ(thrum_rwlock_try_write_lock(&lock_), EBUSY);
        EXPECT_EQ(thrum_rwlock_write_lock_until(&lock_, in_ms(2)), ETIMEDOUT);
        EXPECT_EQ(thrum_rwlock_try_read_lock(&lock_), 0);
        EXPECT_EQ(thrum_rwlock_read_lock_until(&lock_, 0), 0);
        thrum_rwlock_unlock(&lock_);
        thrum_rwlock_unlock(&lock_);
    });
    thrum_rwlock_unlock(&lock_);
    EXPECT_EQ(thrum_rwlock_try_write_lock(&lock_), 0);
    const auto outside = [&](int) {
        EXPECT_EQ(thrum_rwlock_try_write_lock(&lock_), EBUSY);
        EXPECT_EQ(thrum_rwlock_try_read_lock(&lock_), EBUSY);
        EXPECT_EQ(thrum_rwlock_read_lock_until(&lock_, in_ms(2)), ETIMEDOUT);
        EXPECT_EQ(thrum_rwlock_write_lock_until(&lock_, in_ms(2)), ETIMEDOUT);
    };
    in_ult([&] { outside(0); });
    Heavies(1, outside);
    EXPECT_EQ(waiting_readers() + waiting_writers(), 0);
    thrum_rwlock_unlock(&lock_);
    EXPECT_EQ(thrum_rwlock_write_lock_until(&lock_, 0), 0);
    thrum_rwlock_unlock(&lock_);
}

// A writer that waits keeps new readers out; when it unlocks they come before the next writer.
TEST_P(Rwlock, ReadersAndWritersTakeTurns) {
    std::vector<std::string> order;
    thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
    const auto note = [&](const char *what) {
        thrum_mutex_lock(&mutex);
        order.emplace_back(what);
        thrum_mutex_unlock(&mutex);
    };
    thrum_rwlock_read_lock(&lock_);
    const auto writer = [&](const char *name) {
        thrum_rwlock_write_lock(&lock_);
        note(name);
        thrum_rwlock_unlock(&lock_);
    };
    const auto reader = [&](int) {
        thrum_rwlock_read_lock(&lock_);
        note("reader");
        thrum_rwlock_unlock(&lock_);
    };
    Light first([&] { writer("first"); });
    ASSERT_TRUE(eventually_waiting(0, 1));
    Light second([&] { writer("second"); });
    ASSERT_TRUE(eventually_waiting(0, 2));
    EXPECT_EQ(thrum_rwlock_try_read_lock(&lock_), EBUSY) << "behind the writers";
    Light light([&] { reader(0); });
    Heavies heavy(1, reader);
    ASSERT_TRUE(eventually_waiting(2, 2));
    thrum_rwlock_unlock(&lock_);
    first.join();
    second.join();
    light.join();
    heavy.join();
    EXPECT_EQ(order, (std::vector<std::string>{"first", "reader", "reader", "second"}));
}

// More than a batch of them, with and without deadlines.
TEST_P(Rwlock, WriterThatUnlocksLetsAllReadersIn) {
    for (const bool timed : {false, true}) {
        const int count = divided(150);
        std::atomic<int> inside{0};
        thrum_rwlock_write_lock(&lock_);
        std::vector<Light> readers;
        for (int i = 0; i < count; i++)
            readers.emplace_back([&] {
                if (timed)
                    EXPECT_EQ(thrum_rwlock_read_lock_until(&lock_, in_ms(60000)), 0);
                else
                    thrum_rwlock_read_lock(&lock_);
                inside++;
                EXPECT_TRUE(eventually([&] { return inside == count; })) << "all at once";
                thrum_rwlock_unlock(&lock_);
            });
        Light writer([&] { write(); });
        ASSERT_TRUE(eventually_waiting(count, 1));
        thrum_rwlock_unlock(&lock_);
    }
}

// The readers behind it wait for no thread then.
TEST_P(Rwlock, WriterThatGivesUpLetsReadersIn) {
    const int count = divided(150);
    thrum_rwlock_read_lock(&lock_);
    Light writer([&] { EXPECT_EQ(thrum_rwlock_write_lock_until(&lock_, in_ms(100)), ETIMEDOUT); });
    ASSERT_TRUE(eventually_waiting(0, 1));
    std::atomic<int> inside{0};
    const auto read_too = [&](int) {
        thrum_rwlock_read_lock(&lock_);
        inside++;
        thrum_rwlock_unlock(&lock_);
    };
    std::vector<Light> readers;
    for (int i = 0; i < count; i++)
        readers.emplace_back([&] { read_too(0); });
    Heavies heavy(1, read_too);
    EXPECT_TRUE(eventually([&] { return inside == count + 1; }));
    thrum_rwlock_unlock(&lock_);
}

TEST_P(Rwlock, DeadlinesAmongUnlocks) {
    std::atomic<int> readers{0};
    int writers = 0;
    const int rounds = divided(150);
    crew(12, 2, [&](int who) {
        for (int i = 0; i < rounds; i++) {
            const bool patient = (who + i) % 5 == 0, write = (who * 3 + i) % 3 == 0;
            const uint64_t moment = patient ? kNever : in_us(static_cast<uint64_t>((i * 7 + who) % 60));
            if (write ? thrum_rwlock_write_lock_until(&lock_, moment) != 0
                      : thrum_rwlock_read_lock_until(&lock_, moment) != 0) {
                EXPECT_FALSE(patient);
                continue;
            }
            if (write) {
                EXPECT_EQ(writers++, 0);
                EXPECT_EQ(readers, 0);
            } else {
                readers++;
                EXPECT_EQ(writers, 0);
            }
            if (i % 4 == 0)
                spin_us(10);
            if (i % 16 == 0)
                thrum_yield();
            if (write)
                writers--;
            else
                readers--;
            EXPECT_EQ(thrum_rwlock_unlock(&lock_), 0);
        }
    });
    EXPECT_EQ(waiting_readers() + waiting_writers(), 0);
    EXPECT_EQ(thrum_rwlock_destroy(&lock_), 0);
}

ULT_OVER_WORKERS(Rwlock);

// without a runtime: the caller in a fork's child is another thread then
class RwlockMisuse : public UltPlain {};

TEST_F(RwlockMisuse, IsReported) {
    thrum_rwlock_t lock = THRUM_RWLOCK_INITIALIZER;
    expect_misuse(EPERM, "thrum_rwlock_unlock: this lock is not locked",
                  [&] { return thrum_rwlock_unlock(&lock); });
    thrum_rwlock_read_lock(&lock);
    expect_misuse(EBUSY, "thrum_rwlock_destroy: this lock is locked or has waiters",
                  [&] { return thrum_rwlock_destroy(&lock); });
    EXPECT_EQ(thrum_rwlock_unlock(&lock), 0);
    if (!library_is_checked())
        return;
    thrum_rwlock_write_lock(&lock);
    expect_misuse(0, "thrum_rwlock_write_lock: the caller holds this lock for writing already", [&] {
        thrum_rwlock_write_lock(&lock);
        return 0;
    });
    std::thread([&] {
        expect_misuse(0, "thrum_rwlock_unlock: another thread holds this lock for writing",
                      [&] { return thrum_rwlock_unlock(&lock); });
    }).join();
    EXPECT_EQ(thrum_rwlock_unlock(&lock), 0);
}

} // namespace
