// SPDX-License-Identifier: Apache-2.0
//
// What very many threads leave behind: nothing. In a process of its own, whose memory nothing else has used before.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <vector>

#include "blocks.h"
#include "ult.hpp"

namespace {

class Burst : public Ult {};

class BurstInTurn : public UltInTurn {};

#if !ULT_ASAN && !ULT_TSAN && !ULT_EMULATED

// All of them blocked at once, then woken and joined: a second later all but 16 bytes of each has gone back to the
// system, and what the workers keep for the next ones: two magazines of 64 descriptors and stacks of one page. Where they
// are preempted, thread control blocks have been made for that meanwhile, which are kept.
void block_and_join(std::size_t count, std::size_t workers) {
    struct Gate {
        thrum_event_t open = THRUM_EVENT_INITIALIZER;
        std::atomic<std::size_t> waiting{0};
    } gate;
    const auto wait = [](void *at) {
        static_cast<Gate *>(at)->waiting++;
        thrum_event_wait(&static_cast<Gate *>(at)->open);
        return at;
    };
    std::vector<thrum_t> threads(count);
    const std::size_t before = resident_bytes(), blocks = blocks_bytes();
    for (thrum_t &thread : threads)
        ASSERT_EQ(thrum_spawn(&thread, nullptr, wait, &gate), 0);
    EXPECT_TRUE(eventually([&] { return gate.waiting == count; }));
    thrum_event_set(&gate.open);
    for (const thrum_t thread : threads)
        ASSERT_EQ(thrum_join(thread, nullptr), 0);
    EXPECT_EQ(thrum_event_destroy(&gate.open), 0);
    const std::size_t enough =
        before + (blocks_bytes() - blocks) + count * 16 + workers * 2 * 64 * 8192 + (2U << 20);
    EXPECT_TRUE(eventually([&] { return resident_bytes() < enough; }))
        << (resident_bytes() - before) / 1024 << " KiB more than before, " << (blocks_bytes() - blocks) / 1024
        << " KiB of blocks";
}

TEST_P(Burst, LeavesNothing) {
    block_and_join(50000, workers());
    block_and_join(50000, workers());
}

INSTANTIATE_TEST_SUITE_P(Workers, Burst, testing::Values(2U, 8U), name_of_workers);

// They are joined long after they have ended, by a thread that waits in the kernel afterwards. The worker that has given their
// descriptors back is not idle then, and the other sleeps.
TEST_P(BurstInTurn, LeavesNothingWhileItsJoinerWaitsInTheKernel) {
    std::atomic<std::size_t> ended{0};
    const auto end = [](void *counter) {
        static_cast<std::atomic<std::size_t> *>(counter)->fetch_add(1);
        return counter;
    };
    std::vector<thrum_t> threads(50000);
    const std::size_t before = resident_bytes();
    for (thrum_t &thread : threads)
        ASSERT_EQ(thrum_spawn(&thread, nullptr, end, &ended), 0);
    ASSERT_TRUE(eventually([&] { return ended == threads.size(); }));
    thrum_sleep(1500000000);
    EXPECT_GT(resident_bytes(), before + (6U << 20)) << "their descriptors are there still";
    for (const thrum_t thread : threads)
        ASSERT_EQ(thrum_join(thread, nullptr), 0);
    const timespec pause = {0, 10000000};
    bool is_given_back = false;
    for (int i = 0; i < 1000 && !is_given_back; i++) {
        syscall(SYS_nanosleep, &pause, nullptr);
        is_given_back = resident_bytes() < before + (4U << 20);
    }
    EXPECT_TRUE(is_given_back) << (resident_bytes() - before) / 1024 << " KiB more than before";
}

INSTANTIATE_TEST_SUITE_P(Workers, BurstInTurn, testing::Values(2U), name_of_workers);

TEST(BurstHeavy, AMillionLeaveNothing) {
    ASSERT_EQ(thrum_init(nullptr), 0);
    block_and_join(1000000, thrum_workers());
    EXPECT_EQ(thrum_fini(), 0);
}

// Ten million one after the other.
enum class Kind { kUsual, kQueued, kDetached, kTasklet, kByAnExternalThread };

class TenMillionHeavy : public testing::TestWithParam<Kind> {
  protected:
    static constexpr std::size_t kThreads = 10000000;
    std::atomic<std::size_t> ran{0};
    std::size_t after_some = 0; // bytes

    void spawn_all(unsigned flags, bool detached) {
        thrum_attr_t attr;
        thrum_attr_init(&attr);
        ASSERT_EQ(thrum_attr_set_flags(&attr, flags), 0);
        const auto count = [](void *counter) {
            static_cast<std::atomic<std::size_t> *>(counter)->fetch_add(1, std::memory_order_relaxed);
            return counter;
        };
        for (std::size_t i = 0; i < kThreads; i++) {
            thrum_t thread;
            ASSERT_EQ(thrum_spawn(detached ? nullptr : &thread, &attr, count, &ran), 0);
            if (!detached) {
                ASSERT_EQ(thrum_join(thread, nullptr), 0);
            } else if (i % 1000 == 0) {
                ASSERT_TRUE(eventually([&] { return ran + 1000 > i; }));
            }
            if (i == kThreads / 10)
                after_some = resident_bytes();
        }
    }
};

TEST_P(TenMillionHeavy, LeaveNothing) {
    const LeakCheck leaks;
    ASSERT_EQ(thrum_init(nullptr), 0);
    switch (GetParam()) {
    case Kind::kUsual: in_ult([&] { spawn_all(0, false); }); break;
    case Kind::kQueued: in_ult([&] { spawn_all(THRUM_SPAWN_QUEUED, false); }); break;
    case Kind::kDetached: in_ult([&] { spawn_all(0, true); }); break;
    case Kind::kTasklet: in_ult([&] { spawn_all(THRUM_SPAWN_TASKLET, false); }); break;
    case Kind::kByAnExternalThread: External([&] { spawn_all(0, false); }); break;
    }
    EXPECT_TRUE(eventually([&] { return ran == kThreads; }));
    EXPECT_LT(resident_bytes(), after_some + (4U << 20));
    EXPECT_EQ(thrum_fini(), 0);
    leaks.expect_nothing_left();
}

INSTANTIATE_TEST_SUITE_P(Kinds, TenMillionHeavy,
                         testing::Values(Kind::kUsual, Kind::kQueued, Kind::kDetached, Kind::kTasklet,
                                         Kind::kByAnExternalThread));

#endif

} // namespace
