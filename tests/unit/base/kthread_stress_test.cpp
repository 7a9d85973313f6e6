// SPDX-License-Identifier: Apache-2.0
//
// The kthread layer under 1 to 64 creators at once: every job runs once, every result arrives, nothing is left.
#include "layer.hpp"

namespace {

class KthreadStress : public Layer, public testing::WithParamInterface<int> {
  protected:
    static int rounds() { return 4000 / kStressDivisor / GetParam() + 5; }

    // Each creator calls this in turn until its rounds are over.
    void create(const std::function<void(int)> &once) {
        std::vector<std::unique_ptr<Plain>> creators;
        for (int i = 0; i < GetParam(); i++)
            creators.push_back(std::make_unique<Plain>([&] {
                for (int round = 0; round < rounds(); round++)
                    once(round);
            }));
    }
    uint64_t total() const { return static_cast<uint64_t>(rounds()) * static_cast<uint64_t>(GetParam()); }
};

pthread_t start_raw(const kthread_kind &kind, bool detached, void *(*fn)(void *), void *argument) {
    pthread_t handle = 0;
    EXPECT_EQ(kthread_start(&kind, detached, fn, argument, &handle), 0);
    return handle;
}

void *join_raw(pthread_t handle) {
    void *result = nullptr;
    EXPECT_EQ(kthread_join(kthread_of_sigsafe(handle), &result, KTHREAD_JOIN_WAIT, CLOCK_REALTIME, nullptr),
              0);
    return result;
}

TEST_P(KthreadStress, EveryResultArrives) {
    const struct thrum_cache_counters before = thrum_cache_counters;
    create([](int round) {
        long value = round;
        pthread_t handle = start_raw(
            kKind, false,
            [](void *argument) -> void * {
                return reinterpret_cast<void *>(++*static_cast<long *>(argument));
            },
            &value);
        EXPECT_EQ(join_raw(handle), reinterpret_cast<void *>(static_cast<long>(round) + 1));
        EXPECT_EQ(value, round + 1) << "what the thread wrote is seen by who joined it";
    });
    EXPECT_EQ(thrum_cache_counters.live, 0u);
    EXPECT_EQ(thrum_cache_counters.created + thrum_cache_counters.reused,
              before.created + before.reused + total());
    EXPECT_EQ(thrum_cache_counters.retired, before.retired);
    EXPECT_EQ(known_descriptors(), thrum_cache_counters.idle);
    EXPECT_LE(known_descriptors(), static_cast<size_t>(GetParam())) << "no more than ran at once";
}

// Each creator and each job end in every way there is, idle threads are given up meanwhile, in many nodes.
TEST_P(KthreadStress, EveryEndAtOnce) {
    static std::atomic<uint64_t> ran;
    ran = 0;
    const struct thrum_cache_counters before = thrum_cache_counters;
    std::atomic<bool> over{false};
    Plain culler([&] {
        while (!over) {
            kthread_cull();
            usleep(500);
        }
    });
    create([](int round) {
        fake_node = round % 3;
        const kthread_kind kind{kStackSize, kGuardSize, static_cast<uint64_t>(round % 2), {}};
        switch (round % 5) {
        case 0:
            join_raw(start_raw(
                kind, false,
                [](void *) -> void * {
                    ran++;
                    kthread_exit(nullptr);
                },
                nullptr));
            break;
        case 1:
            start_raw(
                kind, true,
                [](void *) -> void * {
                    ran++;
                    return nullptr;
                },
                nullptr);
            break;
        case 2: {
            pthread_t handle = start_raw(
                kind, false,
                [](void *) -> void * {
                    ran++;
                    return nullptr;
                },
                nullptr);
            EXPECT_EQ(kthread_detach(kthread_of_sigsafe(handle)), 0);
            break;
        }
        case 3:
            join_raw(start_raw(
                kind, false,
                [](void *) -> void * {
                    ran++;
                    kthread_tie_sigsafe(RETIRE_TIES);
                    return nullptr;
                },
                nullptr));
            break;
        default: {
            kthread *thread = kthread_of_sigsafe(start_raw(
                kind, false,
                [](void *) -> void * {
                    ran++;
                    return nullptr;
                },
                nullptr));
            gate_visit visit;
            timespec soon{};
            if (kthread_visit(thread, &visit))
                gate_visit_end(&visit);
            while (int error = kthread_join(thread, nullptr, KTHREAD_JOIN_WAIT, CLOCK_MONOTONIC, &soon))
                EXPECT_EQ(error, ETIMEDOUT);
        }
        }
    });
    over = true;
    culler.join();
    EXPECT_TRUE(eventually([] { return load_relaxed(&thrum_cache_counters.live) == 0; }));
    EXPECT_EQ(ran, total());
    EXPECT_EQ(thrum_cache_counters.created + thrum_cache_counters.reused,
              before.created + before.reused + total());
    const uint64_t tied =
        static_cast<uint64_t>(GetParam()) * static_cast<uint64_t>((rounds() - 4) / 5 + (rounds() > 3));
    const auto retired_by = [&](kthread_retire reason) {
        return thrum_cache_counters.retired_by[reason - 1] - before.retired_by[reason - 1];
    };
    EXPECT_TRUE(eventually([&] { return retired_by(RETIRE_TIES) == tied; }))
        << retired_by(RETIRE_TIES) << " of " << tied;
    // The culler also ends those that have ended and not been joined yet; there are no other reasons.
    EXPECT_TRUE(eventually(
        [&] { return thrum_cache_counters.retired - before.retired == tied + retired_by(RETIRE_UNJOINED); }));
}

INSTANTIATE_TEST_SUITE_P(Threads, KthreadStress, testing::Values(1, 2, 4, 8, 64),
                         testing::PrintToStringParamName());

} // namespace
