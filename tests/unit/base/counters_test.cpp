// SPDX-License-Identifier: Apache-2.0
//
// kthread/counters: the public object, its texts, and the limit on idle threads.
#include "layer.hpp"

namespace {

class Counters : public testing::Test {
  protected:
    void SetUp() override {
        before_ = thrum_cache_counters;
        counters_fork_child(0); // all zero
    }
    void TearDown() override { thrum_cache_counters = before_; }

  private:
    struct thrum_cache_counters before_;
};

TEST(CountersObject, SaysWhatItIs) {
    EXPECT_EQ(thrum_cache_counters.version, static_cast<uint32_t>(THRUM_CACHE_COUNTERS_VERSION));
    EXPECT_EQ(thrum_cache_counters.size, sizeof thrum_cache_counters);
}

TEST_F(Counters, EveryReasonHasItsTextAndItsPlace) {
#define CHECK_RETIRE(name, text)                                                                             \
    EXPECT_STREQ(thrum_cache_retire_reason(RETIRE_##name - 1), text);                                        \
    counters_retired(RETIRE_##name);                                                                         \
    EXPECT_EQ(thrum_cache_counters.retired_by[RETIRE_##name - 1], 1u) << text;                               \
    retired++;
#define CHECK_PASS(name, text)                                                                               \
    EXPECT_STREQ(thrum_cache_pass_reason(PASS_##name - 1), text);                                            \
    counters_passed(PASS_##name);                                                                            \
    EXPECT_EQ(thrum_cache_counters.passed_by[PASS_##name - 1], 1u) << text;                                  \
    passed++;
    unsigned retired = 0, passed = 0;
    THRUM_CACHE_RETIRE_REASONS(CHECK_RETIRE)
    THRUM_CACHE_PASS_REASONS(CHECK_PASS)
    EXPECT_EQ(thrum_cache_counters.retired, retired);
    EXPECT_EQ(thrum_cache_counters.passed, passed);
    EXPECT_EQ(thrum_cache_retire_reason(retired), nullptr);
    EXPECT_EQ(thrum_cache_pass_reason(passed), nullptr);
    EXPECT_EQ(thrum_cache_retire_reason(UINT32_MAX), nullptr);
}

TEST_F(Counters, IdleUpToTheLimit) {
    EXPECT_FALSE(counters_idle_add(0));
    EXPECT_TRUE(counters_idle_add(2));
    EXPECT_TRUE(counters_idle_add(2));
    EXPECT_FALSE(counters_idle_add(2));
    EXPECT_EQ(thrum_cache_counters.idle, 2u);
    counters_idle_remove();
    EXPECT_TRUE(counters_idle_add(2));
}

TEST_F(Counters, PeakIsTheMostThereEverWere) {
    for (int i = 0; i < 3; i++)
        counters_idle_add(UINT64_MAX);
    counters_idle_remove();
    counters_idle_remove();
    counters_idle_add(UINT64_MAX);
    EXPECT_EQ(thrum_cache_counters.idle, 2u);
    EXPECT_EQ(thrum_cache_counters.idle_peak, 3u);
}

TEST_F(Counters, ForksChildBeginsAnew) {
    counters_idle_add(5);
    counters_retired(RETIRE_LAST);
    counters_fork_child(1);
    EXPECT_EQ(thrum_cache_counters.idle, 0u);
    EXPECT_EQ(thrum_cache_counters.idle_peak, 0u);
    EXPECT_EQ(thrum_cache_counters.retired, 0u);
    EXPECT_EQ(thrum_cache_counters.live, 1u);
    EXPECT_EQ(thrum_cache_counters.version, static_cast<uint32_t>(THRUM_CACHE_COUNTERS_VERSION));
    EXPECT_EQ(thrum_cache_counters.size, sizeof thrum_cache_counters);
}

TEST_F(Counters, TheLimitHoldsAgainstManyThreads) {
    constexpr uint64_t kLimit = 3;
    std::atomic<uint64_t> held{0}, most{0};
    std::vector<std::unique_ptr<Plain>> all;
    for (int i = 0; i < 8; i++)
        all.push_back(std::make_unique<Plain>([&] {
            for (int round = 0; round < 20000 / kStressDivisor; round++) {
                if (!counters_idle_add(kLimit))
                    continue;
                uint64_t now = ++held, seen = most;
                while (now > seen && !most.compare_exchange_weak(seen, now)) {
                }
                if (round % 16 == 0)
                    sched_yield();
                held--;
                counters_idle_remove();
            }
        }));
    all.clear();
    EXPECT_LE(most, kLimit);
    EXPECT_EQ(thrum_cache_counters.idle, 0u);
    EXPECT_LE(thrum_cache_counters.idle_peak, kLimit);
    EXPECT_GE(thrum_cache_counters.idle_peak, 1u);
}

} // namespace
