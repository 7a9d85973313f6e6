// SPDX-License-Identifier: Apache-2.0
//
// A burst's memory goes back to the system while the runtime runs.
#include <chrono>
#include <vector>

#include "ult.hpp"

namespace {

class Trim : public Ult {};

#if !ULT_ASAN && !ULT_TSAN && !ULT_EMULATED

// All at once have a stack, of which each has touched some pages.
void burst(int count, size_t touch) {
    thrum_event_t go = THRUM_EVENT_INITIALIZER;
    std::vector<Light> lights;
    std::atomic<int> waiting{0};
    for (int i = 0; i < count; i++)
        lights.emplace_back([&go, &waiting, touch] {
            auto *memory = static_cast<volatile char *>(__builtin_alloca(touch));
            for (size_t at = 0; at < touch; at += 4096)
                memory[at] = 1;
            waiting++;
            thrum_event_wait(&go);
        });
    EXPECT_TRUE(eventually([&] { return waiting == count; }));
    thrum_event_set(&go);
    lights.clear();
    EXPECT_EQ(thrum_event_destroy(&go), 0);
}

TEST_P(Trim, AfterABurst) {
    burst(200, 32768);
    const std::size_t before = resident_bytes();
    const std::size_t mapped = mapped_bytes();
    for (int round = 0; round < 2; round++) {
        burst(10000, 8192);
        EXPECT_GT(resident_bytes(), before + (40U << 20));
        // What each worker keeps: two magazines of 64 stacks.
        const std::size_t kept = std::size_t{workers()} * 2 * 64 * 36864;
        EXPECT_TRUE(eventually([&] { return resident_bytes() < before + (8U << 20) + kept; }))
            << (resident_bytes() - before) / 1024 << " KiB more";
        // 64 workers keep four fifths of the 10,000: too many for whole chunks to be free.
        if (workers() <= 8) {
            EXPECT_TRUE(eventually([&] { return mapped_bytes() < mapped + (700U << 20); }))
                << "10,000 stacks are more";
        }
    }
}

// While all workers are asleep, and while one runs all the time.
TEST_P(Trim, WhileOthersRunAndSleep) {
    const std::size_t before = resident_bytes();
    std::atomic<bool> over{false};
    Light busy([&over] {
        while (!over) {
            spin_us(5);
            thrum_yield();
        }
    });
    burst(3000, 8192);
    const std::size_t kept = std::size_t{workers()} * 2 * 64 * 12288;
    thrum_sleep(1200 * THRUM_MS);
    EXPECT_LT(resident_bytes(), before + (8U << 20) + kept);
    over = true;
}

// Given back by an external thread while all workers are parked, and stay so.
TEST_P(Trim, WhatOthersGiveBackWhileAllSleep) {
    constexpr std::size_t kThreads = 100000; // of which each has 192 bytes
    constexpr std::size_t kEnough = 12U << 20;
    std::vector<thrum_t> threads(kThreads);
    std::atomic<std::size_t> ran{0};
    const auto count = [](void *counter) {
        static_cast<std::atomic<std::size_t> *>(counter)->fetch_add(1);
        return counter;
    };
    for (thrum_t &thread : threads)
        ASSERT_EQ(thrum_spawn(&thread, nullptr, count, &ran), 0);
    ASSERT_TRUE(eventually([&] { return ran == kThreads; }));
    std::size_t before = 0, after = 0;
    External([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100)); // they park
        before = resident_bytes();
        for (const thrum_t thread : threads)
            EXPECT_EQ(thrum_join(thread, nullptr), 0);
        after = resident_bytes();
        for (int i = 0; i < 200 && after + kEnough > before; i++) {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            after = resident_bytes();
        }
    }).join();
    EXPECT_LE(after + kEnough, before);
}

#endif

ULT_OVER_WORKERS(Trim);

} // namespace
