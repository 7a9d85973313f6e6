// SPDX-License-Identifier: Apache-2.0
//
// The work-stealing deque and the ring of those that have yielded, alone: no unit is lost or taken twice.
#include <errno.h>
#include <time.h>

#include <atomic>
#include <random>
#include <thread>

#include "core.hpp"
#include "faults.hpp"
#include "ult.hpp"

namespace {

// A queue holds pointers and does not look behind them: these are numbers.
struct thrum_unit *unit(std::size_t i) {
    return reinterpret_cast<struct thrum_unit *>(i + 1); // NOLINT(performance-no-int-to-ptr)
}

std::size_t number(const struct thrum_unit *of) {
    return reinterpret_cast<std::uintptr_t>(of) - 1;
}

// With and without membarrier.
class Deque : public testing::TestWithParam<bool> {
  protected:
    void SetUp() override {
        leaks_ = std::make_unique<LeakCheck>();
        if (!GetParam() && !membarrier_register())
            GTEST_SKIP() << "the kernel has no membarrier";
        ASSERT_EQ(deque_init(&deque, GetParam()), 0);
    }
    void TearDown() override {
        faults_clear();
        deque_destroy(&deque);
        leaks_->expect_nothing_left();
    }
    void push(std::size_t from, std::size_t to) {
        for (std::size_t i = from; i < to; i++)
            ASSERT_TRUE(deque_push(&deque, unit(i)));
    }

    struct deque deque = {};

  private:
    std::unique_ptr<LeakCheck> leaks_;
};

TEST_P(Deque, EmptyGivesNothing) {
    EXPECT_TRUE(deque_is_empty(&deque));
    EXPECT_EQ(deque_pop(&deque), nullptr);
    EXPECT_EQ(deque_steal(&deque), nullptr);
    EXPECT_TRUE(deque_is_empty(&deque));
}

TEST_P(Deque, OwnerTakesTheNewestThievesTheOldest) {
    push(0, 100);
    EXPECT_FALSE(deque_is_empty(&deque));
    for (std::size_t i = 0; i < 50; i++) {
        ASSERT_EQ(deque_pop(&deque), unit(99 - i));
        ASSERT_EQ(deque_steal(&deque), unit(i));
    }
    EXPECT_EQ(deque_pop(&deque), nullptr);
    EXPECT_EQ(deque_steal(&deque), nullptr);
}

TEST_P(Deque, TheLastOne) {
    for (std::size_t i = 0; i < 1000; i++) {
        push(i, i + 1);
        ASSERT_EQ(i % 2 == 0 ? deque_pop(&deque) : deque_steal(&deque), unit(i));
        ASSERT_TRUE(deque_is_empty(&deque));
        ASSERT_EQ(deque_pop(&deque), nullptr);
    }
}

// After a burst: back to the ring at first, whose content is sound, and the larger ones are used again.
TEST_P(Deque, ShrinksAfterABurst) {
    const struct deque_ring *first = deque.ring;
    for (std::size_t round = 0; round < 3; round++) {
        push(0, 2 * DEQUE_SIZE_KEPT);
        const std::size_t with = resident_bytes();
        deque_shrink(&deque);
        EXPECT_NE(deque.ring, first) << "it is not empty";
        for (std::size_t i = 0; i < DEQUE_SIZE_KEPT; i++) {
            ASSERT_EQ(deque_steal(&deque), unit(i));
            ASSERT_EQ(deque_pop(&deque), unit(2 * DEQUE_SIZE_KEPT - 1 - i));
        }
        deque_shrink(&deque);
        EXPECT_EQ(deque.ring, first);
        EXPECT_LT(resident_bytes() + DEQUE_SIZE_KEPT * sizeof(void *), with);
        EXPECT_EQ(deque_pop(&deque), nullptr);
        push(0, 1000);
        for (std::size_t i = 0; i < 1000; i++)
            ASSERT_EQ(deque_steal(&deque), unit(i));
    }
}

// The indices pass the ring's size many times without growing it.
TEST_P(Deque, Wraps) {
    const struct deque_ring *first = deque.ring;
    constexpr std::size_t kHeld = DEQUE_SIZE_AT_FIRST - 1;
    push(0, kHeld);
    for (std::size_t i = kHeld; i < 20 * kHeld; i++) {
        ASSERT_EQ(deque_steal(&deque), unit(i - kHeld));
        push(i, i + 1);
    }
    EXPECT_EQ(deque.ring, first);
    for (std::size_t i = 20 * kHeld; i-- > 19 * kHeld;)
        ASSERT_EQ(deque_pop(&deque), unit(i));
}

// From a head in the middle of a ring, so that what is copied goes about its end.
TEST_P(Deque, Grows) {
    constexpr std::size_t kFirst = 100, kMany = 100000;
    push(0, kFirst);
    for (std::size_t i = 0; i < kFirst; i++)
        ASSERT_EQ(deque_steal(&deque), unit(i));
    push(kFirst, kMany);
    EXPECT_GE(deque.ring->mask + 1, static_cast<std::int64_t>(kMany - kFirst));
    for (std::size_t i = kFirst; i < kMany / 2; i++)
        ASSERT_EQ(deque_steal(&deque), unit(i));
    for (std::size_t i = kMany; i-- > kMany / 2;)
        ASSERT_EQ(deque_pop(&deque), unit(i));
    EXPECT_TRUE(deque_is_empty(&deque));
}

TEST_P(Deque, RefusesWithoutMemoryAndKeepsWhatItHas) {
    push(0, DEQUE_SIZE_AT_FIRST);
    faults.mmap.after(0, 2, ENOMEM);
    EXPECT_FALSE(deque_push(&deque, unit(1000)));
    EXPECT_FALSE(deque_push(&deque, unit(1000)));
    push(DEQUE_SIZE_AT_FIRST, DEQUE_SIZE_AT_FIRST + 1);
    EXPECT_EQ(deque_steal(&deque), unit(0));
    for (std::size_t i = DEQUE_SIZE_AT_FIRST + 1; i-- > 1;)
        ASSERT_EQ(deque_pop(&deque), unit(i));
}

// A theft makes it shared; so many pops without one make the owner's path free of fences again.
TEST_P(Deque, ModeFollowsTheThieves) {
    const bool fenced = GetParam();
    EXPECT_EQ(deque.shared, fenced ? 1U : 0U);
    for (int round = 0; round < 3; round++) {
        push(0, 10);
        ASSERT_NE(deque_steal(&deque), nullptr);
        EXPECT_EQ(deque.shared, 1U);
        int pops = 0;
        for (; deque.shared != 0 && pops < 10 * DEQUE_CALM; pops++) {
            push(0, 1);
            ASSERT_NE(deque_pop(&deque), nullptr);
        }
        EXPECT_EQ(deque.shared, fenced ? 1U : 0U);
        if (!fenced) {
            EXPECT_GE(pops, DEQUE_CALM - 1);
            EXPECT_LE(pops, DEQUE_CALM + 10);
        }
        while (deque_pop(&deque) != nullptr) {
        }
    }
}

TEST_P(Deque, TheftKeepsItShared) {
    push(0, 100);
    std::size_t next = 100;
    for (int i = 0; i < 3 * DEQUE_CALM; i++) {
        if (i % 100 == 0) {
            ASSERT_NE(deque_steal(&deque), nullptr);
        }
        push(next, next + 1);
        next++;
        ASSERT_NE(deque_pop(&deque), nullptr);
        ASSERT_EQ(deque.shared, 1U);
    }
}

// --- owner and thieves ------------------------------------------------------------------------------------

// How often each unit was taken; its taker sees that it is the first.
class Taken {
  public:
    explicit Taken(std::size_t count) : times_(count) {}
    void take(const struct thrum_unit *one) {
        if (one != nullptr && times_[number(one)].fetch_add(1) != 0)
            twice_++;
    }
    void expect_all_once(std::size_t count) const {
        EXPECT_EQ(twice_, 0);
        std::size_t lost = 0;
        for (std::size_t i = 0; i < count; i++)
            lost += times_[i] == 0;
        EXPECT_EQ(lost, 0U);
    }

  private:
    std::vector<std::atomic<int>> times_;
    std::atomic<int> twice_{0};
};

// What the owner does: bursts of pushes and pops whose lengths are about `burst`; short ones are about the last unit,
// where owner and thief meet.
void own(struct deque *deque, Taken *taken, std::size_t count, unsigned burst, unsigned seed) {
    std::minstd_rand random(seed);
    for (std::size_t next = 0; next < count;) {
        for (std::size_t i = 0, n = 1 + random() % burst; i < n && next < count; i++)
            ASSERT_TRUE(deque_push(deque, unit(next++)));
        for (std::size_t i = 0, n = 1 + random() % burst; i < n; i++)
            taken->take(deque_pop(deque));
        if (random() % 1024 == 0)
            std::this_thread::yield();
    }
    while (!deque_is_empty(deque))
        taken->take(deque_pop(deque));
}

void contest(struct deque *deque, unsigned thieves, std::size_t count, unsigned burst) {
    Taken taken(count);
    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < thieves; t++)
        threads.emplace_back([&, t] {
            std::minstd_rand random(t + 1);
            while (!over) {
                taken.take(deque_steal(deque));
                if (random() % 8 == 0) // calm enough for the owner to change the mode back now and then
                    spin_us(static_cast<double>(random() % 20));
            }
        });
    own(deque, &taken, count, burst, thieves * 1000 + burst);
    over = true;
    for (std::thread &thread : threads)
        thread.join();
    taken.expect_all_once(count);
}

TEST_P(Deque, NothingIsLostOrTakenTwice) {
    for (const unsigned thieves : {1U, 2U, 3U})
        for (const unsigned burst : {1U, 2U, 10U, 1000U})
            contest(&deque, thieves, static_cast<std::size_t>(100000 / kStressDivisor), burst);
}

INSTANTIATE_TEST_SUITE_P(Workers, Deque, testing::Bool(), [](const testing::TestParamInfo<bool> &fenced) {
    return fenced.param ? "Fenced" : "WithMembarrier";
});

// --- the ring of those that have yielded ------------------------------------------------------------------

TEST(YieldRing, OldestFirstAndFullAtItsSize) {
    static struct yield_ring ring;
    ring = {};
    EXPECT_TRUE(yield_ring_is_empty(&ring));
    EXPECT_EQ(yield_ring_pop(&ring), nullptr);
    for (std::size_t round = 0; round < 3; round++) {
        for (std::size_t i = 0; i < YIELD_RING_SIZE; i++)
            ASSERT_TRUE(yield_ring_push(&ring, unit(i)));
        EXPECT_FALSE(yield_ring_push(&ring, unit(7)));
        for (std::size_t i = 0; i < YIELD_RING_SIZE; i++)
            ASSERT_EQ(yield_ring_pop(&ring), unit(i));
        EXPECT_TRUE(yield_ring_is_empty(&ring));
        EXPECT_TRUE(yield_ring_push(&ring, unit(round))); // the next round begins elsewhere in it
        EXPECT_EQ(yield_ring_pop(&ring), unit(round));
    }
}

TEST(YieldRing, NothingIsLostOrTakenTwice) {
    static struct yield_ring ring;
    ring = {};
    const auto count = static_cast<std::size_t>(200000 / kStressDivisor);
    Taken taken(count);
    std::atomic<bool> over{false};
    std::vector<std::thread> thieves;
    for (int t = 0; t < 2; t++)
        thieves.emplace_back([&] {
            while (!over)
                taken.take(yield_ring_pop(&ring));
        });
    for (std::size_t next = 0; next < count;) {
        next += yield_ring_push(&ring, unit(next)) ? 1 : 0;
        if (next % 3 == 0)
            taken.take(yield_ring_pop(&ring));
    }
    while (!yield_ring_is_empty(&ring))
        taken.take(yield_ring_pop(&ring));
    over = true;
    for (std::thread &thief : thieves)
        thief.join();
    taken.expect_all_once(count);
}

} // namespace
