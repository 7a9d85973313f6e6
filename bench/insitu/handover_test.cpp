// SPDX-License-Identifier: Apache-2.0
//
// Snapshots on their way to the analysis: all that are taken are looked at, and where the analysis falls behind they are
// no more than there are buffers, by each of the two policies; with threads of the analysis that run when they are told.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <thread>
#include <utility>

#include "handover.hpp"

namespace {

using namespace insitu;

// Makes no threads: it keeps what they would do.
class Later final : public Threads {
  public:
    unsigned size() const override { return 2; }
    void run(const Part &part) override {
        for (unsigned i = 0; i < size(); i++)
            part(i);
    }
    void drive(const std::function<void()> &fn) override { fn(); }
    void look(void *(*fn)(void *), void *arg) override { calls_.emplace_back(fn, arg); }

    void let(std::size_t count) {
        for (; count > 0 && !calls_.empty(); count--) {
            const auto [fn, arg] = calls_.front();
            calls_.pop_front();
            fn(arg);
        }
    }
    std::size_t waiting() const { return calls_.size(); }

  private:
    std::deque<std::pair<void *(*)(void *), void *>> calls_;
};

// Two atoms that stay where they are, and how often they have been shown.
class Still final : public Simulation {
  public:
    void advance(unsigned) override {}
    void show(Snapshot *snapshot) override {
        shown++;
        *snapshot = {10, {{1, 1, 1}, {2, 1, 1}}};
    }
    double energy() override { return 0; }
    unsigned shown = 0;
};

class Handing : public testing::Test {
  protected:
    std::uint64_t pairs() const {
        std::uint64_t sum = 0;
        for (const std::uint64_t pairs : analysis.pairs())
            sum += pairs;
        return sum;
    }
    static constexpr Handover::Size kSize = {2, 3}; // buffers, shares
    Later threads;
    Still still;
    Analysis analysis{10, 2, 3};
};

TEST_F(Handing, WhatHasNoBufferIsLeftOut) {
    Handover handover(&threads, Looking::kBeside, &analysis, kSize, Behind::kLeaveOut);
    for (int i = 0; i < 5; i++)
        handover.offer(&still);
    EXPECT_EQ(handover.left_out(), 3U);
    EXPECT_EQ(still.shown, 2U); // what is left out is not copied
    EXPECT_EQ(threads.waiting(), 6U);
    threads.let(2); // not all shares of the first
    EXPECT_EQ(handover.looked_at(), 0U);
    handover.offer(&still);
    EXPECT_EQ(handover.left_out(), 4U);
    threads.let(1);
    EXPECT_EQ(handover.looked_at(), 1U);
    handover.offer(&still);
    EXPECT_EQ(handover.left_out(), 4U);
    threads.let(100);
    handover.finish();
    EXPECT_EQ(handover.offered(), 7U);
    EXPECT_EQ(handover.looked_at(), 3U);
    EXPECT_EQ(pairs(), 3U);
    EXPECT_EQ(handover.waits(), 0U);
}

// The simulation is a thread here that really waits, until this one lets the analysis continue.
TEST_F(Handing, WhatHasNoBufferIsWaitedFor) {
    Handover handover(&threads, Looking::kBeside, &analysis, kSize, Behind::kWait);
    handover.offer(&still);
    handover.offer(&still);
    std::atomic<bool> offered{false};
    std::thread simulation([&] {
        handover.offer(&still);
        offered = true;
    });
    while (handover.waits() == 0 && !offered) // it may come late to a CPU
        std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(offered);
    threads.let(3); // those of the first
    simulation.join();
    EXPECT_EQ(handover.waits(), 1U);
    EXPECT_GT(handover.waited_ns(), 0);
    threads.let(100);
    handover.finish();
    EXPECT_EQ(handover.looked_at(), 3U);
    EXPECT_EQ(handover.left_out(), 0U);
    EXPECT_EQ(pairs(), 3U);
}

TEST_F(Handing, WithinTheSimulationNothingWaits) {
    Handover handover(&threads, Looking::kWithin, &analysis, kSize, Behind::kWait);
    for (unsigned i = 1; i <= 5; i++) {
        handover.offer(&still);
        EXPECT_EQ(handover.looked_at(), i);
    }
    EXPECT_EQ(threads.waiting(), 0U);
    EXPECT_EQ(pairs(), 5U);
}

} // namespace
