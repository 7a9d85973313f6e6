// SPDX-License-Identifier: Apache-2.0
//
// ULTs under AddressSanitizer, LeakSanitizer and ThreadSanitizer (src/context/annotate.h): correct programs are silent,
// and what is wrong is found. In forked children, so that a report is this test's to judge.
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "ult.hpp"

extern "C" {
#include "os/memory.h"
#if ULT_ASAN
int __lsan_do_recoverable_leak_check(void);
void __asan_poison_memory_region(const volatile void *begin, size_t size);
void *__asan_region_is_poisoned(void *begin, size_t size);
#endif
}

namespace {

// What a child with such a runtime says on stderr.
std::string said_by(unsigned workers, const std::function<void()> &work, int *status = nullptr) {
    return stderr_of([&] {
        const int end = in_child([&] {
            const thrum_config config{workers, 0, {}, {}};
            if (thrum_init(&config) != 0)
                return 1;
            work();
            return thrum_fini();
        });
        if (status != nullptr)
            *status = end;
    });
}

bool contains(const std::string &text, const char *part) {
    return text.find(part) != std::string::npos;
}

// --- a correct program ------------------------------------------------------------------------------------
//
// All data below is plain, and handed over by what the library says hands over.

struct Node {
    int depth;
    long sum = 0;
};

void *grow(void *arg) {
    auto *node = static_cast<Node *>(arg);
    if (node->depth == 0) {
        node->sum = 1;
        return node;
    }
    std::array<Node, 2> below{Node{node->depth - 1}, Node{node->depth - 1}};
    std::array<thrum_t, 2> threads{};
    const thrum_attr_t queued = attr_queued();
    thrum_spawn(&threads[0], nullptr, grow, &below[0]);
    thrum_spawn(&threads[1], node->depth % 2 == 0 ? &queued : nullptr, grow, &below[1]);
    for (const thrum_t thread : threads) {
        void *result = nullptr;
        thrum_join(thread, &result);
        node->sum += static_cast<Node *>(result)->sum;
    }
    return node;
}

// Results in memory of the joiner, by spawn and join.
void tree() {
    Node root{6};
    in_ult([&] { grow(&root); });
    EXPECT_EQ(root.sum, 64);
}

struct Box {
    thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
    thrum_cond_t filled = THRUM_COND_INITIALIZER, emptied = THRUM_COND_INITIALIZER;
    bool full = false;
    long value = 0, count = 0;
};

void put(Box &box, long value) {
    thrum_mutex_lock(&box.mutex);
    while (box.full)
        thrum_cond_wait(&box.emptied, &box.mutex);
    box.value = value;
    box.full = true;
    thrum_mutex_unlock(&box.mutex);
    thrum_cond_signal(&box.filled);
}

long take(Box &box) {
    thrum_mutex_lock(&box.mutex);
    while (!box.full)
        thrum_cond_wait(&box.filled, &box.mutex);
    const long value = box.value;
    box.full = false;
    thrum_mutex_unlock(&box.mutex);
    thrum_cond_signal(&box.emptied);
    return value;
}

// Between ULTs and external kernel threads, by mutexes and condition variables.
void boxes() {
    Box box;
    long sum = 0;
    std::thread outside([&] {
        for (long i = 0; i < 50; i++)
            put(box, i);
    });
    in_ult([&] {
        for (long i = 0; i < 50; i++)
            sum += take(box);
    });
    outside.join();
    EXPECT_EQ(sum, 49 * 50 / 2);
}

// A counter under a mutex whose holder yields.
void counter() {
    Box box;
    {
        std::vector<Light> threads;
        for (int i = 0; i < 16; i++)
            threads.emplace_back([&box] {
                for (int j = 0; j < 20; j++) {
                    thrum_mutex_lock(&box.mutex);
                    box.count++;
                    if (j % 4 == 0)
                        thrum_yield();
                    thrum_mutex_unlock(&box.mutex);
                    thrum_yield();
                }
            });
    }
    EXPECT_EQ(box.count, 16 * 20);
}

// Of the kernel thread: two ULTs that run on one after another both write it.
__attribute__((noinline)) void touch_thread_locals(int value) {
    [[maybe_unused]] static thread_local volatile int mine;
    mine = value;
    errno = value;
}

// What lies on a stack that others have had before, and what is thrown there, across switches.
void stacks() {
    std::vector<Light> threads;
    for (int i = 0; i < 64; i++)
        threads.emplace_back([i] {
            std::array<volatile int, 200> mine{};
            for (auto &value : mine)
                value = i;
            touch_thread_locals(i);
            thrum_yield();
            touch_thread_locals(i);
            try {
                thrum_yield();
                throw std::runtime_error("thrown");
            } catch (const std::runtime_error &) {
                thrum_yield();
            }
            for (auto &value : mine)
                if (value != i)
                    abort();
        });
}

// From outside, and detached.
void strangers() {
    Box box;
    std::atomic<bool> over{false};
    std::thread outside([&box, &over] {
        for (int i = 0; i < 20; i++) {
            detached([&box, i] { put(box, i); });
            long sum = 0;
            Light([&sum, i] { sum += i; }).join();
            EXPECT_EQ(sum, i);
            take(box);
        }
        over = true;
    });
    eventually([&over] { return over.load(); }); // this thread is a worker, perhaps the only one
    outside.join();
}

void correct() {
    tree();
    boxes();
    counter();
    stacks();
    strangers();
}

class Sanitize : public testing::TestWithParam<unsigned> {};

TEST_P(Sanitize, ACorrectProgramIsSilent) {
    int status = 0;
    EXPECT_EQ(said_by(GetParam(), correct, &status), "");
    EXPECT_EQ(status, 0);
}

TEST_P(Sanitize, ManyRuntimesOneAfterAnotherAreSilent) {
    int status = 0;
    EXPECT_EQ(said_by(
                  GetParam(),
                  [] {
                      const thrum_config config{GetParam(), 0, {}, {}};
                      for (int i = 0; i < 5; i++)
                          if (thrum_fini() != 0 || thrum_init(&config) != 0)
                              _exit(1);
                          else
                              tree();
                  },
                  &status),
              "");
    EXPECT_EQ(status, 0);
}

INSTANTIATE_TEST_SUITE_P(Workers, Sanitize, testing::Values(1U, 2U, 4U), name_of_workers);

// --- ThreadSanitizer --------------------------------------------------------------------------------------

class SanitizeThread : public testing::Test {
  protected:
    void SetUp() override {
        if (!ULT_TSAN)
            GTEST_SKIP() << "not a build with ThreadSanitizer";
    }
};

// Both are there at the same time: so they are on two workers, and nothing orders them.
void meet(std::atomic<int> &here) {
    here.fetch_add(1, std::memory_order_relaxed);
    while (here.load(std::memory_order_relaxed) < 2) {
    }
}

TEST_F(SanitizeThread, ARaceIsReported) {
    const std::string said = said_by(2, [] {
        static long plain;
        static std::atomic<int> here;
        const auto race = [] {
            meet(here);
            for (int i = 0; i < 100; i++)
                plain++;
        };
        const thrum_attr_t queued = attr_queued();
        Light one(race, &queued), other(race, &queued);
    });
    EXPECT_TRUE(contains(said, "WARNING: ThreadSanitizer: data race")) << said;
}

TEST_F(SanitizeThread, ARaceWithItsCreatorIsReported) {
    const std::string said = said_by(2, [] {
        static long plain;
        static std::atomic<int> here;
        const thrum_attr_t queued = attr_queued();
        Light other(
            [] {
                meet(here);
                plain++;
            },
            &queued);
        meet(here);
        plain++;
    });
    EXPECT_TRUE(contains(said, "WARNING: ThreadSanitizer: data race")) << said;
}

// --- AddressSanitizer -------------------------------------------------------------------------------------

class SanitizeAddress : public testing::Test {
  protected:
    void SetUp() override {
        if (!ULT_ASAN)
            GTEST_SKIP() << "not a build with AddressSanitizer";
    }
};

__attribute__((noinline)) void write_at(volatile char *bytes, int at) {
    bytes[at] = 1;
}

TEST_F(SanitizeAddress, WritingPastAnArrayOnAStackIsReported) {
    const std::string said = said_by(2, [] {
        in_ult([] {
            thrum_yield();
            volatile char bytes[10] = "";
            write_at(bytes, 10 + static_cast<int>(bytes[0]));
        });
    });
    EXPECT_TRUE(contains(said, "stack-buffer-overflow")) << said;
    EXPECT_TRUE(contains(said, "'bytes'")) << said; // it knows the frame, hence the stack
}

TEST_F(SanitizeAddress, FakeStacksGoWithTheirThreads) {
    const int status = in_child([] {
        setenv("ASAN_OPTIONS", "detect_stack_use_after_return=1", 1);
        return execl("/proc/self/exe", "unit-ult", "--gtest_brief=1",
                     "--gtest_filter=Workers/Sanitize.ACorrectProgramIsSilent*", nullptr);
    });
    EXPECT_EQ(status, 0);
}

#if ULT_ASAN
// So that no register or dead frame of the caller's has it.
__attribute__((noinline)) void keep_until(std::atomic<bool> &kept, std::atomic<bool> &go) {
    auto *volatile memory = new std::array<char, 100>;
    kept = true;
    while (!go)
        thrum_yield();
    delete memory;
}

TEST_F(SanitizeAddress, WhatAWaitingThreadKeepsIsNoLeak) {
    int status = 0;
    const std::string said = said_by(
        2,
        [] {
            std::atomic<bool> kept{false}, go{false};
            Light keeper([&] { keep_until(kept, go); });
            eventually([&] { return kept.load(); });
            const int leaks = __lsan_do_recoverable_leak_check();
            go = true;
            keeper.join();
            if (leaks != 0)
                _exit(3);
        },
        &status);
    EXPECT_EQ(status, 0) << said;
}

__attribute__((noinline)) void lose() {
    auto *volatile memory = new std::array<char, 100>;
    EXPECT_NE(memory, nullptr);
    memory = nullptr;
}

TEST_F(SanitizeAddress, WhatAThreadLosesIsOne) {
    const std::string said = said_by(2, [] {
        for (int i = 0; i < 10; i++)
            in_ult(lose);
        __lsan_do_recoverable_leak_check();
    });
    EXPECT_TRUE(contains(said, "detected memory leaks")) << said;
}
#endif

#if ULT_ASAN
// A stack that was unmapped leaves the marks of its frames to what is mapped there next: a deque's ring was one.
TEST(SanitizePlain, AMappingHasNoFramesOfWhatWasThere) {
    const LeakCheck runtime_was_there;
    constexpr std::size_t kBytes = 1 << 20;
    void *before = memory_map(kBytes, 0);
    ASSERT_NE(before, nullptr);
    __asan_poison_memory_region(before, kBytes);
    ASSERT_EQ(munmap(before, kBytes), 0);
    std::vector<void *> mappings;
    do
        mappings.push_back(memory_map(kBytes, 0));
    while (mappings.back() != before && mappings.size() < 100);
    EXPECT_EQ(mappings.back(), before);
    for (void *mapping : mappings) {
        EXPECT_EQ(__asan_region_is_poisoned(mapping, kBytes), nullptr);
        munmap(mapping, kBytes);
    }
}
#endif

} // namespace
