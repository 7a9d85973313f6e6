// SPDX-License-Identifier: Apache-2.0
//
// How many kernel threads preemption takes: it leaves some of what the system allows to the program, and gives back what is not
// needed any more (preempt/spares.h).
#include <algorithm>

#include "faults.hpp"
#include "preempt.hpp"

namespace {

// Threads that have a kernel thread for life are no matter of spares.
unsigned mode_of_hogs(unsigned mode) {
    return mode == THRUM_PREEMPT_KLT ? THRUM_PREEMPT_KLT : THRUM_PREEMPT_LEND;
}

class Donors : public Interrupted, public testing::WithParamInterface<unsigned> {
  protected:
    static constexpr std::size_t kMany = ULT_EMULATED ? 40 : 100, kSome = 2 * kMany / 5;
    void SetUp() override {
        Interrupted::SetUp();
        setenv("THRUM_BLOCKS", "donors", 1);
    }
    void TearDown() override {
        unsetenv("THRUM_BLOCKS");
        faults_clear();
    }

    // They never wait, until it is over.
    static std::vector<Thread> many_hogs(std::atomic<std::size_t> &begun, const std::atomic<bool> &over) {
        std::vector<Thread> hogs;
        for (std::size_t i = 0; i < kMany; i++)
            hogs.emplace_back(
                [&] {
                    begun++;
                    wait_for(over);
                },
                mode_of_hogs(GetParam()));
        return hogs;
    }
};

// Where a thread with thread-locals of its own has a kernel thread for life.
class PrivateDonors : public Interrupted {
  protected:
    void SetUp() override {
        Interrupted::SetUp();
        setenv("THRUM_BLOCKS", "donors", 1);
    }
    void TearDown() override { unsetenv("THRUM_BLOCKS"); }
};

INSTANTIATE_TEST_SUITE_P(Modes, Donors, kSafeModes, name_of_mode);

} // namespace

// Of a hundred threads that never wait each has a kernel thread to be preempted with. When they have ended all but a few are
// given back.
TEST_P(Donors, AreGivenBack) {
    const Preempting preempting(1, GetParam());
    const std::size_t before = threads_of_process();
    std::atomic<std::size_t> begun{0};
    std::atomic<bool> over{false};
    std::vector<Thread> hogs = many_hogs(begun, over);
    EXPECT_TRUE(eventually([&] { return begun == kMany; }));
    EXPECT_GT(threads_of_process(), before + kMany / 2);
    over = true;
    hogs.clear();
    EXPECT_TRUE(eventually([&] { return threads_of_process() <= before + 16; })) << threads_of_process();
}

// Where the limit is near no more than it leaves are preempted at one time: those run in turn, and when they end others begin.
TEST_P(Donors, LeaveTheProgramSome) {
    const Preempting preempting(1, GetParam());
    const std::size_t limit = threads_of_process() + kSome;
    faults_threads = static_cast<unsigned>(limit);
    std::atomic<std::size_t> begun{0};
    std::atomic<bool> over{false};
    std::vector<Thread> hogs = many_hogs(begun, over);
    EXPECT_TRUE(eventually([&] { return threads_of_process() >= limit - 2; }));
    for (const uint64_t before = preemptions(); preemptions() < before + 20 * kMany;)
        thrum_sleep(THRUM_MS);
    EXPECT_LE(threads_of_process(), limit + 2);
    EXPECT_LT(begun, kMany);
    over = true;
    hogs.clear();
    EXPECT_EQ(begun, kMany);
}

// The system refuses some: all end nevertheless, and the program's own threads can be created again.
TEST_P(Donors, AreFewerWhereTheSystemRefuses) {
    const Preempting preempting(1, GetParam());
    const std::size_t before = threads_of_process();
    faults.create.after(static_cast<int>(kSome), 1 << 30, EAGAIN);
    std::atomic<std::size_t> ended{0};
    std::vector<Thread> hogs;
    for (std::size_t i = 0; i < kMany; i++)
        hogs.emplace_back(
            [&] {
                spin_us(10 * kSlice);
                ended++;
            },
            mode_of_hogs(GetParam()));
    hogs.clear();
    EXPECT_EQ(ended, kMany);
    EXPECT_TRUE(eventually([&] { return threads_of_process() <= before + 16; })) << threads_of_process();
}

// --- threads with a kernel thread for life ------------------------------------------------------------------

// Two at a time, so fast that their kernel threads would be ended more slowly than others are made.
TEST_F(PrivateDonors, KernelThreadsOfEndedThreadsAreFew) {
    const Preempting preempting(2, THRUM_PREEMPT_OWN_TLS);
    const std::size_t before = threads_of_process();
    constexpr int kThreads = ULT_EMULATED ? 200 : 1500;
    std::atomic<std::size_t> most{0};
    const auto make = [&] {
        for (int i = 0; i < kThreads; i++) {
            thrum_t thread = nullptr;
            ASSERT_EQ(thrum_spawn(
                          &thread, nullptr, [](void *arg) { return arg; }, nullptr),
                      0);
            ASSERT_EQ(thrum_join(thread, nullptr), 0);
            if (i % 50 == 0)
                most = std::max(most.load(), threads_of_process());
        }
    };
    Thread one(make), other(make);
    one.join();
    other.join();
    EXPECT_LT(most, before + 100);
}

namespace {

pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

struct Locks {
    bool used = false;
    ~Locks() {
        if (used) {
            pthread_mutex_lock(&held);
            pthread_mutex_unlock(&held);
        }
    }
};

thread_local Locks locks;

} // namespace

// A destructor of a thread-local waits for a lock that the one that makes threads has: it is not waited for.
TEST_F(PrivateDonors, ADestructorMayWaitForTheMaker) {
    const Preempting preempting(2, THRUM_PREEMPT_OWN_TLS);
    pthread_mutex_lock(&held);
    for (int i = 0; i < 70; i++) {
        thrum_t thread = nullptr;
        ASSERT_EQ(thrum_spawn(
                      &thread, nullptr,
                      [](void *arg) {
                          locks.used = true;
                          return arg;
                      },
                      nullptr),
                  0);
        ASSERT_EQ(thrum_join(thread, nullptr), 0);
    }
    pthread_mutex_unlock(&held);
}
