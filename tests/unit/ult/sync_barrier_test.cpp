// SPDX-License-Identifier: Apache-2.0
//
// sync/barrier: no thread continues before all have arrived, one is the last, and it may be used again at once.
#include "crew.hpp"

namespace {

class Barrier : public Ult {};

TEST_P(Barrier, KeepsAllInStep) {
    constexpr int kParties = 13;
    thrum_barrier_t barrier = THRUM_BARRIER_INITIALIZER(kParties);
    const int rounds = divided(100);
    std::atomic<int> arrived{0}, last{0};
    crew(kParties - 3, 2, [&](int who) {
        for (int i = 1; i <= rounds; i++) {
            arrived++;
            if ((who + i) % 5 == 0)
                thrum_yield();
            if (who % 3 == 0) {
                bool is_last = false;
                EXPECT_EQ(thrum_barrier_wait_until(&barrier, in_ms(60000), &is_last), 0);
                last += is_last;
            } else {
                last += thrum_barrier_wait(&barrier);
            }
            EXPECT_GE(arrived, i * kParties);
            EXPECT_LE(arrived, (i + 1) * kParties - 1);
        }
    });
    EXPECT_EQ(last, rounds);
    EXPECT_EQ(thrum_barrier_destroy(&barrier), 0);
}

TEST_P(Barrier, OfOneIsOpen) {
    thrum_barrier_t barrier;
    EXPECT_EQ(thrum_barrier_init(&barrier, 0), EINVAL);
    ASSERT_EQ(thrum_barrier_init(&barrier, 1), 0);
    EXPECT_TRUE(thrum_barrier_wait(&barrier));
    EXPECT_EQ(thrum_barrier_wait_until(&barrier, 0, nullptr), 0);
}

TEST_P(Barrier, AWaiterThatGivesUpIsNotCounted) {
    thrum_barrier_t barrier = THRUM_BARRIER_INITIALIZER(3);
    const auto give_up = [&](int) {
        EXPECT_EQ(thrum_barrier_wait_until(&barrier, in_ms(3), nullptr), ETIMEDOUT);
        EXPECT_EQ(thrum_barrier_wait_until(&barrier, 0, nullptr), ETIMEDOUT);
    };
    in_ult([&] { give_up(0); });
    Heavies(1, give_up);
    std::atomic<int> through{0};
    const auto wait = [&] {
        thrum_barrier_wait(&barrier);
        through++;
    };
    Light first(wait), second(wait);
    ASSERT_TRUE(eventually_waiting(barrier, 2));
    EXPECT_EQ(through, 0);
    wait();
}

// Deadlines when the last one arrives: either all of a round have taken part, or the others are told so. Participants
// count for the round; there are as many of those as rounds times parties.
TEST_P(Barrier, DeadlinesAmongArrivals) {
    constexpr int kParties = 4;
    thrum_barrier_t barrier = THRUM_BARRIER_INITIALIZER(kParties);
    const int goal = divided(150) * kParties;
    std::atomic<int> through{0}, last{0};
    crew(9, 2, [&](int who) {
        for (int i = 0; through < goal; i++) {
            bool is_last = false;
            const uint64_t moment = in_us(static_cast<uint64_t>((i * 7 + who * 3) % 50));
            if (thrum_barrier_wait_until(&barrier, moment, &is_last) == 0)
                through++;
            last += is_last;
            if (i % 4 == 0)
                thrum_yield();
        }
    });
    EXPECT_EQ(through, last * kParties);
    EXPECT_EQ(waiting(barrier), 0);
}

TEST_P(Barrier, ManyMeet) {
    const int count = divided(5000);
    thrum_barrier_t barrier;
    ASSERT_EQ(thrum_barrier_init(&barrier, static_cast<unsigned>(count)), 0);
    const thrum_attr_t attr = attr_stack(16384);
    std::atomic<int> last{0};
    std::vector<Light> lights;
    lights.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; i++)
        lights.emplace_back(
            [&, i] {
                for (int round = 0; round < 2; round++) {
                    bool is_last = false;
                    EXPECT_EQ(
                        thrum_barrier_wait_until(&barrier, i % 2 != 0 ? in_ms(60000) : kNever, &is_last), 0);
                    last += is_last;
                }
            },
            &attr);
    lights.clear();
    EXPECT_EQ(last, 2);
}

TEST_P(Barrier, IsReportedWhileInUse) {
    thrum_barrier_t barrier = THRUM_BARRIER_INITIALIZER(2);
    Light light([&] { thrum_barrier_wait(&barrier); });
    ASSERT_TRUE(eventually_waiting(barrier, 1));
    expect_misuse(EBUSY, "thrum_barrier_destroy: a thread still waits at this barrier",
                  [&] { return thrum_barrier_destroy(&barrier); });
    EXPECT_TRUE(thrum_barrier_wait(&barrier));
}

ULT_OVER_WORKERS(Barrier);

} // namespace
