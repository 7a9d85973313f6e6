// SPDX-License-Identifier: Apache-2.0
//
// What is the core's beside a stream that is never idle: threads of <thrum/thrum.h>, calls at a time, memory to be given back.
#include <thrum/thrum.h>
#include <thrum/time.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "streams.hpp"

using namespace abt_test;

namespace {

class Core : public Alone {
  public:
    // The primary thread yields, and never waits. False: it is not so in a minute, by which a loaded machine has done it, too.
    template <class F>
    static bool polls_until(F is_so) {
        for (const double end = ABT_get_wtime() + 60; ABT_get_wtime() < end; ABT_thread_yield())
            if (is_so())
                return true;
        return false;
    }
};

} // namespace

TEST_F(Core, ThreadsRunBesideABusyStream) {
    std::atomic<int> ran{0};
    const auto count = [](void *counter) {
        for (int i = 0; i < 10; i++)
            thrum_yield();
        static_cast<std::atomic<int> *>(counter)->fetch_add(1);
        return counter;
    };
    std::vector<thrum_t> threads(10);
    for (thrum_t &thread : threads)
        ASSERT_EQ(thrum_spawn(&thread, nullptr, count, &ran), 0);
    EXPECT_TRUE(polls_until([&] { return ran == 10; }));
    for (const thrum_t thread : threads)
        EXPECT_EQ(thrum_join(thread, nullptr), 0);
}

TEST_F(Core, CallsAtATimeComeBesideABusyStream) {
    std::atomic<bool> called{false};
    ASSERT_EQ(thrum_call_at(
                  nullptr, 1, [](void *flag) { *static_cast<std::atomic<bool> *>(flag) = true; }, &called),
              0);
    EXPECT_TRUE(polls_until([&] { return called.load(); }));
}

// The primary thread is in its stream's pool wherever it waits: what ends, or switches to it, does not resume it in its own place.
class CoreAndPrimary : public Core {
  public:
    void SetUp() override {
        Core::SetUp();
        busy_ = start(pool, run_);
    }
    void TearDown() override {
        is_over_ = true;
        OK(ABT_thread_free(&busy_));
        Core::TearDown();
    }

    // It is not lost where each of two threads gives way to the other so often.
    static void yield_often() {
        for (int i = 0; i < 1000; i++)
            ABT_thread_yield();
    }

  private:
    std::atomic<bool> is_over_{false};
    std::function<void()> run_ = [this] {
        while (!is_over_)
            ABT_thread_yield();
    };
    ABT_thread busy_ = ABT_THREAD_NULL;
};

TEST_F(CoreAndPrimary, JoinsAThreadThatHasBegun) {
    const auto yields = [](void *arg) {
        for (int i = 0; i < 20; i++)
            thrum_yield();
        return arg;
    };
    thrum_t thread;
    ASSERT_EQ(thrum_spawn(&thread, nullptr, yields, nullptr), 0);
    ABT_thread_yield();
    EXPECT_EQ(thrum_join(thread, nullptr), 0);
    yield_often();
}

TEST_F(CoreAndPrimary, IsSwitchedTo) {
    const auto switches = [](void *to) {
        for (int i = 0; i < 20; i++)
            thrum_yield();
        EXPECT_EQ(thrum_switch_to(static_cast<thrum_t>(to)), 0);
        return to;
    };
    thrum_t thread;
    ASSERT_EQ(thrum_spawn(&thread, nullptr, switches, thrum_self()), 0);
    ABT_thread_yield();
    thrum_suspend();
    yield_often();
    EXPECT_EQ(thrum_join(thread, nullptr), 0);
}

TEST_F(CoreAndPrimary, YieldsAsAThreadOfTheCore) {
    thrum_yield();
    yield_often();
}

// ... by a worker whose scheduler sleeps.
TEST_F(Core, ThePrimaryJoinsOnAStreamThatIsIdle) {
    const auto yields = [](void *arg) {
        for (int i = 0; i < 2000; i++)
            thrum_yield();
        return arg;
    };
    thrum_t core;
    ASSERT_EQ(thrum_spawn(&core, nullptr, yields, nullptr), 0);
    ABT_thread_yield();
    EXPECT_EQ(thrum_join(core, nullptr), 0);
    bool has_run = false;
    auto run = [&] { has_run = true; };
    ABT_thread thread = start(pool, run);
    EXPECT_TRUE(polls_until([&] { return has_run; }));
    OK(ABT_thread_free(&thread));
}

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__

static std::size_t resident_bytes() {
    std::size_t all = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> all >> resident;
    return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// Each has a guard; what they took is given back while the stream has others to run.
TEST_F(Core, AHundredThousandThreadsLeaveNothing) {
    constexpr std::size_t kThreads = 100000;
    ABT_eventual open;
    OK(ABT_eventual_create(0, &open));
    std::size_t waiting = 0;
    auto wait = [&] {
        waiting++;
        ABT_eventual_wait(open, nullptr);
    };
    std::vector<ABT_thread> threads(kThreads);
    const std::size_t before = resident_bytes();
    for (ABT_thread &thread : threads)
        thread = start(pool, wait);
    EXPECT_TRUE(polls_until([&] { return waiting == kThreads; }));
    EXPECT_LT(resident_bytes(), before + kThreads * 5000);
    OK(ABT_eventual_set(open, nullptr, 0));
    for (ABT_thread &thread : threads)
        OK(ABT_thread_free(&thread));
    EXPECT_TRUE(polls_until([&] { return resident_bytes() < before + (4U << 20); }))
        << (resident_bytes() - before) / 1024 << " KiB more than before";
    OK(ABT_eventual_free(&open));
}

#endif
