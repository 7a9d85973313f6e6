// SPDX-License-Identifier: Apache-2.0
//
// kthread/idle: with descriptors that no thread stands behind.
#include <algorithm>

#include "layer.hpp"

namespace {

class Idle : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_EQ(thrum_cache_counters.idle, 0u);
        for (kthread &one : all_)
            one.kind = kKind;
        before_ = kthread_config;
    }
    void TearDown() override {
        fake_node = -1;
        kthread_config = before_;
        while (idle_pop_any() != nullptr) {
        }
        EXPECT_EQ(thrum_cache_counters.idle, 0u);
    }

    kthread all_[8] = {}, &a_ = all_[0], &b_ = all_[1], &c_ = all_[2];

  private:
    struct kthread_config before_;
};

TEST_F(Idle, LastInFirstOut) {
    EXPECT_EQ(idle_pop(&kKind, -1), nullptr);
    for (kthread *one : {&a_, &b_, &c_})
        EXPECT_TRUE(idle_push(one));
    EXPECT_EQ(thrum_cache_counters.idle, 3u);
    EXPECT_EQ(idle_pop(&kKind, -1), &c_);
    EXPECT_EQ(idle_pop(&kKind, -1), &b_);
    EXPECT_TRUE(idle_push(&c_));
    EXPECT_EQ(idle_pop_any(), &c_);
    EXPECT_EQ(idle_pop(&kKind, -1), &a_);
    EXPECT_EQ(idle_pop(&kKind, -1), nullptr);
    EXPECT_EQ(idle_pop_any(), nullptr);
    EXPECT_EQ(thrum_cache_counters.idle, 0u);
}

TEST_F(Idle, RatherOneThatDidNotRunOnTheCpuToBeAvoided) {
    const auto push_all = [this] {
        for (kthread &one : all_)
            idle_push(&one);
    };
    const auto take_all = [] {
        while (idle_pop_any() != nullptr) {
        }
    };
    for (kthread &one : all_)
        one.run.last_cpu = 3;
    all_[4].run.last_cpu = 5;
    push_all();
    EXPECT_EQ(idle_pop(&kKind, 3), &all_[4]);
    EXPECT_EQ(idle_pop(&kKind, 3), &all_[7]) << "all that are left ran there";
    EXPECT_EQ(idle_pop(&kKind, -1), &all_[6]);
    EXPECT_EQ(idle_pop(&kKind, 5), &all_[5]);
    take_all();
    all_[4].kind.stack_size++;
    all_[0].run.last_cpu = 5;
    push_all();
    EXPECT_EQ(idle_pop(&kKind, 3), &all_[7]) << "one is of another kind, the other was not among the latest";
    take_all();
}

TEST_F(Idle, EveryPartOfTheKindMustMatch) {
    idle_push(&a_);
    for (const kthread_kind &other : {kthread_kind{2 << 20, 4096, 0, {}}, kthread_kind{1 << 19, 4096, 0, {}},
                                      kthread_kind{1 << 20, 0, 0, {}}, kthread_kind{1 << 20, 8192, 0, {}},
                                      kthread_kind{1 << 20, 4096, 1, {}}})
        EXPECT_EQ(idle_pop(&other, -1), nullptr);
    EXPECT_EQ(idle_pop(&kKind, -1), &a_);
}

TEST_F(Idle, TheLatestOneThatMatches) {
    b_.kind.lineage = b_.lineage = 7;
    c_.kind.lineage = c_.lineage = 8;
    for (kthread &one : all_)
        idle_push(&one);
    const kthread_kind seven{1 << 20, 4096, 7, {}};
    EXPECT_EQ(idle_pop(&seven, -1), &b_);
    EXPECT_EQ(idle_pop(&seven, -1), nullptr);
    EXPECT_EQ(idle_pop(&kKind, -1), &all_[7]);
    EXPECT_EQ(thrum_cache_counters.idle, 6u);
    std::vector<kthread *> rest;
    while (kthread *one = idle_pop_any())
        rest.push_back(one);
    EXPECT_EQ(rest, (std::vector<kthread *>{&all_[6], &all_[5], &all_[4], &all_[3], &c_, &a_}));
}

TEST_F(Idle, OneWhoseLineageWasChangedFromOutsideIsNotTaken) {
    a_.lineage = 5;
    idle_push(&a_);
    const kthread_kind five{1 << 20, 4096, 5, {}};
    EXPECT_EQ(idle_pop(&kKind, -1), nullptr);
    EXPECT_EQ(idle_pop(&five, -1), nullptr);
    EXPECT_EQ(idle_pop_any(), &a_);
}

TEST_F(Idle, ColdestIsTheFirstThatWasListed) {
    EXPECT_EQ(idle_pop_coldest(), nullptr);
    for (kthread *one : {&a_, &b_, &c_})
        idle_push(one);
    EXPECT_EQ(idle_pop_coldest(), &a_);
    EXPECT_EQ(idle_pop(&kKind, -1), &c_);
    EXPECT_EQ(idle_pop_coldest(), &b_);
    EXPECT_EQ(idle_pop_coldest(), nullptr);
    EXPECT_EQ(thrum_cache_counters.idle, 0u);
}

TEST_F(Idle, ColdestOfTheOwnNodeOrElseAny) {
    fake_node = 1;
    idle_push(&a_);
    fake_node = 0;
    idle_push(&b_);
    idle_push(&c_);
    EXPECT_EQ(idle_pop_coldest(), &b_);
    EXPECT_EQ(idle_pop_coldest(), &c_);
    EXPECT_EQ(idle_pop_coldest(), &a_);
}

TEST_F(Idle, RestsBeforeItIsTaken) {
    kthread_config.min_rest_ns = 1;
    a_.rest_until = 0;
    b_.rest_until = UINT64_MAX;
    idle_push(&a_);
    idle_push(&b_);
    EXPECT_EQ(idle_pop(&kKind, -1), &a_) << "past one that has not rested";
    EXPECT_EQ(idle_pop(&kKind, -1), nullptr);
    EXPECT_EQ(idle_pop_any(), &b_) << "to be ended, rested or not";
    c_.rest_until = clock_monotonic_ns() + 20000000;
    idle_push(&c_);
    kthread *got;
    EXPECT_TRUE(eventually([&] { return (got = idle_pop(&kKind, -1)) != nullptr; }));
    EXPECT_EQ(got, &c_);
    EXPECT_GE(clock_monotonic_ns(), c_.rest_until);
}

TEST_F(Idle, WithARestTheFirstInIsFirstOut) {
    idle_push(&a_); // listed before there was one
    kthread_config.min_rest_ns = 1;
    for (kthread *one : {&b_, &c_, &all_[3], &all_[4]})
        idle_push(one);
    EXPECT_EQ(idle_pop(&kKind, -1), &a_);
    EXPECT_TRUE(idle_remove(&all_[4])) << "the last";
    EXPECT_TRUE(idle_remove(&c_)) << "one in between";
    idle_push(&all_[5]);
    EXPECT_EQ(idle_pop_coldest(), &all_[5]) << "the last in the list";
    idle_push(&all_[6]);
    EXPECT_EQ(idle_pop(&kKind, -1), &b_);
    EXPECT_EQ(idle_pop(&kKind, -1), &all_[3]);
    EXPECT_EQ(idle_pop(&kKind, -1), &all_[6]);
    EXPECT_EQ(idle_pop(&kKind, -1), nullptr);
    idle_push(&a_); // into a list that has become empty
    idle_push(&b_);
    EXPECT_EQ(idle_pop(&kKind, -1), &a_);
    EXPECT_EQ(idle_pop(&kKind, -1), &b_);
}

// Thousands may rest; a creation must not look at each of them.
TEST_F(Idle, NotFoundBehindManyThatRest) {
    constexpr size_t kMany = 64;
    std::vector<kthread> resting(kMany);
    kthread_config.min_rest_ns = 1;
    for (kthread &one : resting) {
        one.kind = kKind;
        one.rest_until = UINT64_MAX;
    }
    for (size_t i = 0; i + 1 < kMany; i++)
        idle_push(&resting[i]);
    idle_push(&a_);
    EXPECT_EQ(idle_pop(&kKind, -1), &a_) << "behind fewer";
    idle_push(&resting[kMany - 1]);
    idle_push(&a_);
    EXPECT_EQ(idle_pop(&kKind, -1), nullptr);
    resting[0].rest_until = 0;
    EXPECT_EQ(idle_pop(&kKind, -1), &resting[0]);
    while (idle_pop_any() != nullptr) {
    }
}

TEST_F(Idle, NoMoreThanTheLimits) {
    kthread_config.max_idle = 2;
    EXPECT_TRUE(idle_push(&a_));
    EXPECT_TRUE(idle_push(&b_));
    EXPECT_FALSE(idle_push(&c_));
    EXPECT_EQ(thrum_cache_counters.idle, 2u);
    EXPECT_EQ(idle_pop(&kKind, -1), &b_);
    EXPECT_TRUE(idle_push(&c_));
    kthread_config.max_idle = UINT64_MAX;
    kthread_config.memory_limited = true;
    EXPECT_FALSE(idle_push(&b_));
    EXPECT_EQ(idle_pop(&kKind, -1), &c_);
    EXPECT_EQ(idle_pop(&kKind, -1), &a_);
}

TEST_F(Idle, RemovesThisVeryOne) {
    for (kthread *one : {&a_, &b_, &c_})
        idle_push(one);
    EXPECT_TRUE(idle_remove(&b_)) << "the middle";
    EXPECT_FALSE(idle_remove(&b_)) << "once";
    EXPECT_EQ(thrum_cache_counters.idle, 2u);
    EXPECT_TRUE(idle_remove(&c_)) << "the first";
    EXPECT_EQ(idle_pop(&kKind, -1), &a_);
    EXPECT_FALSE(idle_remove(&a_)) << "somebody else was quicker";
    EXPECT_EQ(thrum_cache_counters.idle, 0u);
}

TEST_F(Idle, OwnNodeFirst) {
    fake_node = 0;
    idle_push(&a_);
    fake_node = 1;
    idle_push(&b_);
    fake_node = 2;
    idle_push(&c_);
    EXPECT_EQ(a_.listed_in, 0u + 1);
    EXPECT_EQ(b_.listed_in, 1u + 1);
    EXPECT_EQ(c_.listed_in, 2u + 1);
    fake_node = 1;
    EXPECT_EQ(idle_pop(&kKind, -1), &b_);
    idle_push(&b_);
    fake_node = 0;
    EXPECT_EQ(idle_pop(&kKind, -1), &a_);
    EXPECT_EQ(idle_pop(&kKind, -1), &b_) << "then the others', in order";
    EXPECT_EQ(idle_pop(&kKind, -1), &c_);
    EXPECT_EQ(idle_pop(&kKind, -1), nullptr);
}

TEST_F(Idle, RemovesFromTheNodeThatItIsOn) {
    fake_node = 3;
    idle_push(&a_);
    fake_node = 0;
    EXPECT_TRUE(idle_remove(&a_));
    EXPECT_EQ(idle_pop(&kKind, -1), nullptr);
}

TEST_F(Idle, NodeWithoutEntriesAndMoreNodesThanLists) {
    fake_node = 1;
    idle_push(&a_);
    fake_node = 60; // above any that ever had an entry
    EXPECT_EQ(idle_pop(&kKind, -1), &a_);
    fake_node = TOPOLOGY_NODES_MAX + 5; // shares
    idle_push(&b_);
    EXPECT_EQ(b_.listed_in, 5u + 1);
    fake_node = 5;
    EXPECT_EQ(idle_pop(&kKind, -1), &b_);
    fake_node = TOPOLOGY_NODES_MAX - 1;
    idle_push(&c_);
    fake_node = 0;
    EXPECT_EQ(idle_pop_any(), &c_);
}

TEST_F(Idle, EmptyInAForksChild) {
    idle_push(&a_);
    fake_node = 4;
    idle_push(&b_);
    int child = in_child([&] {
        idle_fork_child();
        if (idle_pop_any() != nullptr)
            return 1;
        counters_fork_child(0);
        return idle_push(&c_) && idle_pop(&kKind, -1) == &c_ ? 0 : 2;
    });
    EXPECT_EQ(child, 0);
    EXPECT_EQ(idle_pop(&kKind, -1), &b_);
    EXPECT_EQ(idle_pop(&kKind, -1), &a_);
}

// Nothing is lost and nothing is taken twice, on several nodes, with removal mixed in.
TEST_F(Idle, ManyThreads) {
    for (int threads : {1, 2, 4, 8, 64}) {
        std::vector<kthread> descriptors(static_cast<size_t>(threads));
        std::vector<std::unique_ptr<Plain>> workers;
        std::atomic<int> doubled{0};
        for (kthread &mine : descriptors) {
            mine.kind = kKind;
            mine.listed_in = 0;
            mine.tid = 0;
        }
        for (int i = 0; i < threads; i++)
            workers.push_back(std::make_unique<Plain>([&, i] {
                fake_node = i % 3;
                kthread *held = &descriptors[static_cast<size_t>(i)];
                for (int round = 0; round < 20000 / kStressDivisor / threads + 10; round++) {
                    if (held != nullptr) {
                        held->tid--;
                        idle_push(held);
                        if (round % 3 != 0)
                            held = nullptr;
                        else if (!idle_remove(held))
                            held = nullptr; // another thread has it
                    }
                    if (held == nullptr)
                        held = round % 5 == 0 ? idle_pop_any() : idle_pop(&kKind, -1);
                    if (held != nullptr && held->tid++ != -1)
                        doubled++; // plain: two owners are a race, too
                }
                if (held != nullptr) {
                    held->tid--;
                    idle_push(held);
                }
            }));
        workers.clear();
        EXPECT_EQ(doubled, 0);
        std::vector<kthread *> found;
        while (kthread *one = idle_pop_any())
            found.push_back(one);
        std::sort(found.begin(), found.end());
        ASSERT_EQ(found.size(), static_cast<size_t>(threads));
        EXPECT_EQ(std::unique(found.begin(), found.end()), found.end());
        EXPECT_EQ(thrum_cache_counters.idle, 0u);
    }
}

} // namespace
