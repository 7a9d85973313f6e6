// SPDX-License-Identifier: Apache-2.0
//
// What is the core's beside a stream that is never idle: threads of <thrum/thrum.h>, calls at a time, memory to be given back.
#include <thrum/thrum.h>
#include <thrum/time.h>
#include <unistd.h>

#include <fstream>

#include "streams.hpp"

using namespace abt_test;

namespace {

class Core : public Alone {
  public:
    // The primary thread yields, and never waits. False: it is not so in ten seconds.
    template <class F>
    static bool polls_until(F is_so) {
        for (const double end = ABT_get_wtime() + 10; ABT_get_wtime() < end; ABT_thread_yield())
            if (is_so())
                return true;
        return false;
    }
};

std::size_t resident_bytes() {
    std::size_t all = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> all >> resident;
    return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

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

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__

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
