// SPDX-License-Identifier: Apache-2.0
//
// fresh/stack: what a job used deep down goes back to the kernel, and nothing is left to read when stacks are wiped.
#include <string.h>
#include <sys/uio.h>

#include <algorithm>

#include "layer.hpp"

namespace {

constexpr size_t kSize = 4 << 20, kDeep = 1 << 20;
constexpr char kMark = 0x5a;

struct Extent {
    char *low;
    size_t size;
};

Extent own_stack() {
    pthread_attr_t attributes;
    void *low = nullptr;
    size_t size = 0;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    return {static_cast<char *>(low), size};
}

size_t resident_pages(const char *low, size_t length) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> pages(length / page);
    char *from = const_cast<char *>(low);
    if (mincore(from, pages.size() * page, pages.data()) != 0)
        return SIZE_MAX;
    return static_cast<size_t>(
        std::count_if(pages.begin(), pages.end(), [](unsigned char p) { return p & 1; }));
}

// How many bytes of the memory below `top` carry the mark; read through a pipe, which no sanitizer minds.
size_t marked_below(const char *top, size_t length) {
    int ends[2];
    size_t count = 0;
    if (pipe(ends) != 0)
        return SIZE_MAX;
    for (const char *at = top - length; at < top; at += 4096) {
        char bytes[4096];
        const size_t piece = std::min<size_t>(sizeof bytes, static_cast<size_t>(top - at));
        if (syscall(SYS_write, ends[1], at, piece) != static_cast<long>(piece) ||
            syscall(SYS_read, ends[0], bytes, piece) != static_cast<long>(piece))
            return SIZE_MAX;
        count += static_cast<size_t>(std::count(bytes, bytes + piece, kMark));
    }
    close(ends[0]);
    close(ends[1]);
    return count;
}

__attribute__((noinline)) void use_deeply() {
    volatile char deep[kDeep];
    for (size_t i = 0; i < sizeof deep; i++)
        deep[i] = kMark;
}

char *page_of(char *address) {
    return reinterpret_cast<char *>(reinterpret_cast<uintptr_t>(address) & ~static_cast<uintptr_t>(0xffff));
}

class Stack : public testing::Test {
  protected:
    void SetUp() override { layer_init(); } // stack_init among it
};

TEST_F(Stack, MeasureFindsTheLowestByte) {
    Plain([] {
        fresh_state state{};
        stack_measure(&state);
        EXPECT_EQ(state.stack_low, own_stack().low);
    }).join();
}

// On a stack as large as was asked for: libc may have a larger one for a small one, but none so large in its cache.
TEST_F(Stack, EstimateIsInTheStackAndNearItsEnd) {
    constexpr size_t kLarge = 48 << 20;
    Plain(
        [] {
            fresh_state state{};
            stack_give_back(&state, kLarge);
            const Extent stack = own_stack();
            ASSERT_NE(state.stack_low, nullptr);
            EXPECT_GE(state.stack_low, stack.low);
            EXPECT_LT(state.stack_low, stack.low + 64 * 1024 + 2 * layer_init().static_tls);
        },
        kLarge)
        .join();
}

TEST_F(Stack, GivesBackWhatIsDeepAndKeepsTheTop) {
    Plain(
        [] {
            fresh_state state{};
            char near[8192];
            memset(near, 1, sizeof near);
            use_deeply();
            char *deep_end = page_of(near) - 256 * 1024;
            ASSERT_GT(resident_pages(deep_end - kDeep / 2, kDeep / 2), 0u);
            stack_give_back(&state, kSize);
            EXPECT_EQ(resident_pages(deep_end - kDeep / 2, kDeep / 2), 0u);
            EXPECT_GT(resident_pages(page_of(near) - 64 * 1024, 64 * 1024), 0u) << "used by nearly every job";
            EXPECT_EQ(std::count(near, near + sizeof near, 1), static_cast<long>(sizeof near));
        },
        kSize)
        .join();
}

TEST_F(Stack, SmallStacksAreLeftAlone) {
    Plain([] {
        fresh_state state{};
        stack_give_back(&state, 4096); // less than what libc itself has on a stack
        stack_wipe(&state, 4096);
        EXPECT_EQ(state.stack_low, nullptr);
    }).join();
}

TEST_F(Stack, WipeLeavesNothingBelowTheCaller) {
    Plain(
        [] {
            fresh_state state{};
            char here[64];
            char *top = reinterpret_cast<char *>(reinterpret_cast<uintptr_t>(here) - 16384);
            memset(here, 3, sizeof here);
            stack_measure(&state);
            use_deeply();
            ASSERT_GT(marked_below(top, kDeep / 2), kDeep / 4) << "otherwise there is nothing to wipe";
            use_deeply();
            stack_wipe(&state, kSize);
            EXPECT_EQ(marked_below(top, kDeep / 2), 0u);
            EXPECT_EQ(std::count(here, here + sizeof here, 3), static_cast<long>(sizeof here));
        },
        kSize)
        .join();
}

} // namespace
