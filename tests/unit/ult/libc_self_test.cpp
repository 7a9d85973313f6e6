// SPDX-License-Identifier: Apache-2.0
//
// What the C library says of a ULT to itself: errno, the bounds of its stack, its CPU clock.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <thrum/thrum.h>
#include <thrum/worker.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdint>

#include "inside.h"
#include "ult.hpp"

namespace {

// --- errno ------------------------------------------------------------------------------------------------

class Errno : public Ult {};

// A call that fails right after a wait, in a function that has named errno before it.
TEST_P(Errno, IsTheOneOfTheCallBefore) {
    constexpr int kThreads = 16;
    const int rounds = 2000 / kStressDivisor;
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC), 0);
    std::atomic<int> wrong{0};
    const auto read_nothing = [&] {
        for (int i = 0; i < rounds; i++) {
            char byte;
            errno = 0;
            thrum_yield();
            if (read(ends[0], &byte, 1) >= 0 || errno != EAGAIN)
                wrong++;
            thrum_yield();
        }
    };
    std::vector<Light> threads;
    for (int i = 0; i < kThreads; i++)
        threads.emplace_back(read_nothing);
    threads.clear();
    EXPECT_EQ(wrong, 0);
    close(ends[0]);
    close(ends[1]);
}

void *open_nothing(void *result) {
    *static_cast<int *>(result) = open("/nonexistent", O_RDONLY | O_CLOEXEC);
    return nullptr;
}

TEST_P(Errno, ComesAlongFromACallThatBlocks) {
    constexpr int kThreads = 10;
    const int rounds = 100 / (kStressDivisor > 1 ? 4 : 1);
    std::atomic<int> wrong{0};
    const auto open_often = [&] {
        for (int i = 0; i < rounds; i++) {
            int file = 0;
            errno = 0;
            if (thrum_blocking(open_nothing, &file, nullptr) != 0 || file != -1 || errno != ENOENT)
                wrong++;
        }
    };
    std::vector<Light> threads;
    for (int i = 0; i < kThreads; i++)
        threads.emplace_back(open_often);
    threads.clear();
    EXPECT_EQ(wrong, 0);
}

ULT_OVER_WORKERS(Errno);

// --- its stack --------------------------------------------------------------------------------------------

struct Bounds {
    char *low;
    std::size_t size, guard;
    bool holds(const void *address) const {
        return static_cast<const char *>(address) >= low && static_cast<const char *>(address) < low + size;
    }
};

Bounds bounds_of(pthread_t thread) {
    pthread_attr_t attr;
    Bounds bounds{};
    void *low = nullptr;
    EXPECT_EQ(pthread_getattr_np(thread, &attr), 0);
    EXPECT_EQ(pthread_attr_getstack(&attr, &low, &bounds.size), 0);
    EXPECT_EQ(pthread_attr_getguardsize(&attr, &bounds.guard), 0);
    EXPECT_EQ(pthread_attr_destroy(&attr), 0);
    bounds.low = static_cast<char *>(low);
    return bounds;
}

class OwnStack : public Ult {};

TEST_P(OwnStack, IsTheOneThatItStandsOn) {
    const auto look = [] {
        const int here = 0;
        std::size_t used, size;
        ASSERT_EQ(thrum_stack_used(thrum_self(), &used, &size), 0);
        const Bounds bounds = bounds_of(pthread_self());
        EXPECT_TRUE(bounds.holds(&here));
        EXPECT_EQ(bounds.size, size);
        EXPECT_GT(bounds.guard, 0U);
        *static_cast<volatile char *>(bounds.low) = 1; // it is all there
        bounds.low[bounds.size - 1] = bounds.low[bounds.size - 1];
    };
    std::vector<Light> threads;
    for (const std::size_t size : {16384U, 65536U, 1048576U}) {
        const thrum_attr_t attr = attr_stack(size);
        threads.emplace_back(
            [&look] {
                look();
                thrum_sleep(THRUM_MS);
                look();
            },
            &attr);
    }
    threads.clear();
    // The caller of thrum_init is on the stack that it had before.
    const int here = 0;
    EXPECT_TRUE(bounds_of(pthread_self()).holds(&here));
}

TEST_P(OwnStack, MayBeTheUsers) {
    constexpr std::size_t kSize = 65536;
    void *memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    ASSERT_EQ(thrum_attr_set_stack(&attr, memory, kSize), 0);
    Light(
        [&] {
            const int here = 0;
            const Bounds bounds = bounds_of(pthread_self());
            EXPECT_TRUE(bounds.holds(&here));
            EXPECT_EQ(bounds.low, memory);
            EXPECT_EQ(bounds.guard, 0U);
        },
        &attr)
        .join();
    munmap(memory, kSize);
}

// Another's handle names that one; a kernel thread that runs no ULT its own.
TEST_P(OwnStack, IsOfOneThreadOnly) {
    const pthread_t first = pthread_self();
    const int here = 0;
    in_ult([&] {
        if (pthread_equal(first, pthread_self()) == 0) { // it may have come to run on that one
            EXPECT_TRUE(bounds_of(first).holds(&here));
        }
    });
    External([] {
        const int there = 0;
        EXPECT_TRUE(bounds_of(pthread_self()).holds(&there));
    }).join();
    in_ult([] {
        bool inside = false;
        const auto look = [](void *is_inside) -> void * {
            const int there = 0;
            *static_cast<bool *>(is_inside) = bounds_of(pthread_self()).holds(&there);
            return nullptr;
        };
        EXPECT_EQ(thrum_blocking(look, &inside, nullptr), 0);
        EXPECT_TRUE(inside);
    });
}

INSTANTIATE_TEST_SUITE_P(Workers, OwnStack, testing::Values(1U, 2U), name_of_workers);

// --- its clock --------------------------------------------------------------------------------------------

int64_t read_ns(clockid_t clock) {
    timespec time{};
    EXPECT_EQ(clock_gettime(clock, &time), 0);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

clockid_t clock_of_self() {
    clockid_t clock = 0;
    EXPECT_EQ(pthread_getcpuclockid(pthread_self(), &clock), 0);
    return clock;
}

class OwnClock : public Ult {
  protected:
    // On threads that wait, and are preempted by others: by an id that is taken once, and anew each time.
    static int backwards() {
        constexpr int kThreads = 8;
        const int rounds = 600 / (kStressDivisor > 1 ? 10 : 1);
        std::atomic<int> count{0};
        const auto look = [&] {
            const clockid_t kept = clock_of_self();
            int64_t last = 0;
            for (int i = 0; i < rounds; i++) {
                for (const clockid_t clock : {CLOCK_THREAD_CPUTIME_ID, kept, clock_of_self()}) {
                    const int64_t now = read_ns(clock);
                    count += now < last;
                    last = now;
                }
                i % 3 == 0 ? thrum_yield() : spin_us(5);
            }
        };
        std::vector<Light> threads;
        for (int i = 0; i < kThreads; i++)
            threads.emplace_back(look);
        threads.clear();
        return count;
    }
};

TEST_P(OwnClock, NeverRunsBackwards) {
    EXPECT_EQ(backwards(), 0);
}

// Where one computes alone it is the kernel thread's.
TEST_P(OwnClock, RunsWhileItComputes) {
    in_ult([] {
        const int64_t before = read_ns(clock_of_self());
        int64_t after = before;
        for (int i = 0; i < 10000000 && after <= before; i++)
            after = read_ns(clock_of_self());
        EXPECT_GT(after, before);
    });
}

// The kernel thread on which it read its clock has ended, and the one on which it runs now has the same id: its clock is behind.
TEST_P(OwnClock, ContinuesWhereAnIdIsReused) {
    in_ult([] {
        constexpr int64_t kSecond = 1000000000;
        const int64_t before = read_ns(CLOCK_THREAD_CPUTIME_ID);
        thrum_nopreempt_begin();
        inside_clock_was(before + 2 * kSecond);
        EXPECT_GE(read_ns(CLOCK_THREAD_CPUTIME_ID), before + 2 * kSecond);
        EXPECT_LT(read_ns(CLOCK_THREAD_CPUTIME_ID), before + 3 * kSecond);
        thrum_nopreempt_end();
    });
}

// A signal handler has read the clock between the kernel's answer and the comparison: its reading is later than the answer.
TEST_P(OwnClock, IsNotAdvancedByReadingsOfHandlers) {
    in_ult([] {
        constexpr int64_t kLater = 500000000;
        const int64_t before = read_ns(CLOCK_THREAD_CPUTIME_ID);
        thrum_nopreempt_begin();
        for (int i = 0; i < 2; i++) {
            inside_clock_was(before + kLater);
            EXPECT_EQ(read_ns(CLOCK_THREAD_CPUTIME_ID), before + kLater) << "it does not run backwards";
            inside_clock_was(before);
            EXPECT_LT(read_ns(CLOCK_THREAD_CPUTIME_ID), before + kLater) << "nothing is left of it";
        }
        thrum_nopreempt_end();
    });
}

// A thread that is made of the descriptor of another begins anew.
TEST_P(OwnClock, IsNotTheLastOnes) {
    for (int i = 0; i < 10; i++)
        in_ult([] {
            const int64_t process = read_ns(CLOCK_PROCESS_CPUTIME_ID);
            const int64_t own = read_ns(CLOCK_THREAD_CPUTIME_ID);
            EXPECT_LE(own, process + INT64_C(1000000000));
        });
}

TEST_P(OwnClock, OfAKernelThreadIsTheKernels) {
    External([] {
        EXPECT_NE(clock_of_self(), CLOCK_THREAD_CPUTIME_ID);
        const int64_t own = read_ns(CLOCK_THREAD_CPUTIME_ID);
        EXPECT_LE(own, read_ns(clock_of_self()));
    }).join();
    timespec time;
    EXPECT_EQ(clock_gettime(12345, &time), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_GT(read_ns(CLOCK_MONOTONIC), 0);
}

ULT_OVER_WORKERS(OwnClock);

// The same of threads that are preempted all the time.
class OwnClockOfThePreempted : public OwnClock {
  protected:
    void SetUp() override {
        setenv("THRUM_SLICE", "100", 1);
        OwnClock::SetUp();
        unsetenv("THRUM_SLICE");
    }
};

TEST_P(OwnClockOfThePreempted, NeverRunsBackwards) {
    EXPECT_EQ(backwards(), 0);
}

INSTANTIATE_TEST_SUITE_P(Workers, OwnClockOfThePreempted, testing::Values(2U, 4U), name_of_workers);

} // namespace
