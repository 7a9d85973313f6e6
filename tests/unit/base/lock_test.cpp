// SPDX-License-Identifier: Apache-2.0
//
// os/lock: one holder at a time, and no sleeper is forgotten.
#include "layer.hpp"

namespace {

TEST(Lock, CountsRightFromManyThreads) {
    lock guard{};
    long counter = 0, expected = 0; // under guard
    std::atomic<int> inside{0}, together{0};
    for (int threads : {1, 2, 4, 8, 64}) {
        const int rounds = 40000 / kStressDivisor / threads + 1;
        std::vector<std::unique_ptr<Plain>> all;
        for (int i = 0; i < threads; i++)
            all.push_back(std::make_unique<Plain>([&] {
                for (int round = 0; round < rounds; round++) {
                    lock_acquire(&guard);
                    together += inside.fetch_add(1) != 0;
                    counter++;
                    if (round % 64 == 0)
                        sched_yield(); // so that others find it held, and sleep
                    inside--;
                    lock_release(&guard);
                }
            }));
        all.clear();
        expected += static_cast<long>(threads) * rounds;
        EXPECT_EQ(counter, expected) << threads << " threads";
        EXPECT_EQ(together, 0);
        EXPECT_EQ(guard.word, 0u) << "free when all are gone";
    }
}

TEST(Lock, SleepersWaitAndAreAllWoken) {
    lock guard{};
    std::atomic<int> got{0};
    lock_acquire(&guard);
    EXPECT_EQ(guard.word, 1u);
    std::vector<std::unique_ptr<Plain>> all;
    for (int i = 0; i < 4; i++)
        all.push_back(std::make_unique<Plain>([&] {
            lock_acquire(&guard);
            got++;
            lock_release(&guard);
        }));
    EXPECT_TRUE(eventually([&] { return load_relaxed(&guard.word) == 2; })) << "a sleeper says so";
    a_while();
    EXPECT_EQ(got, 0);
    lock_release(&guard);
    EXPECT_TRUE(eventually([&] { return got == 4; }));
    all.clear();
    EXPECT_EQ(guard.word, 0u);
}

TEST(Lock, ResetFreesWhatAGoneHolderHeld) {
    lock guard{};
    lock_acquire(&guard);
    lock_reset(&guard);
    lock_acquire(&guard); // would sleep for ever
    EXPECT_EQ(guard.word, 1u);
    lock_release(&guard);
}

} // namespace
