// SPDX-License-Identifier: Apache-2.0
//
// Stacks: every class, guarded, usable to its end, given back.
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>

#include "core.hpp"
#include "depots.h"
#include "faults.hpp"
#include "ult.hpp"

namespace {

constexpr std::size_t kPage = 4096, kGuard = 72 << 10;
constexpr unsigned kDefault = 0; // 64 KiB, unless a runtime was told

// Whether the kernel can read there; a guard page gives EFAULT.
class Reader {
  public:
    Reader() { EXPECT_EQ(pipe(ends_), 0); }
    ~Reader() {
        close(ends_[0]);
        close(ends_[1]);
    }
    Reader(const Reader &) = delete;
    bool can_read(const char *address) const {
        char byte;
        if (write(ends_[1], address, 1) != 1)
            return false;
        return read(ends_[0], &byte, 1) == 1;
    }

  private:
    int ends_[2];
};

// --- without a runtime ------------------------------------------------------------------------------------

class Stacks : public UltPlain {
  protected:
    void SetUp() override {
        UltPlain::SetUp();
        stacks_init();
    }
    void TearDown() override {
        faults_clear();
        stacks_destroy();
        UltPlain::TearDown();
    }
};

TEST_F(Stacks, ClassesArePowersOfTwo) {
    EXPECT_EQ(stacks_size(kDefault), 64U << 10);
    EXPECT_EQ(stacks_size(1), 16U << 10);
    EXPECT_EQ(stacks_size(stacks_classes() - 1), 1U << 30);
    EXPECT_EQ(stacks_class_of(0), 1U);
    for (unsigned i = 1; i < stacks_classes(); i++) {
        EXPECT_EQ(stacks_class_of(stacks_size(i)), i);
        EXPECT_EQ(stacks_class_of(stacks_size(i) - 1), i);
        EXPECT_EQ(stacks_class_of(stacks_size(i) + 1), i + 1);
    }
    EXPECT_EQ(stacks_class_of(SIZE_MAX), stacks_classes());
}

TEST_F(Stacks, EachHasItsSizeAndAGuardBelow) {
    const Reader reader;
    for (unsigned i = 0; i < stacks_classes(); i++) {
        char *top = stacks_get(i);
        ASSERT_NE(top, nullptr) << "class " << i;
        const char *low = stacks_low(top, i);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(top) % 16, 0U);
        EXPECT_GE(static_cast<std::size_t>(top - low), stacks_size(i)) << "class " << i;
        EXPECT_TRUE(reader.can_read(top - 1)) << "class " << i;
        EXPECT_TRUE(reader.can_read(low)) << "class " << i;
        EXPECT_FALSE(reader.can_read(low - 1)) << "class " << i;
        for (std::size_t below = kPage; below <= kGuard; below += kPage)
            EXPECT_FALSE(reader.can_read(low - below)) << below << " below class " << i;
        stacks_put(i, top);
    }
}

// More than a chunk of each class: no two share a byte.
TEST_F(Stacks, DoNotOverlap) {
    for (unsigned i = 0; i < stacks_classes(); i++) {
        std::vector<char *> tops;
        for (int k = 0; k < (i < 8 ? 300 : 5); k++) {
            tops.push_back(stacks_get(i));
            ASSERT_NE(tops.back(), nullptr) << "class " << i << ", stack " << k;
        }
        std::sort(tops.begin(), tops.end());
        for (std::size_t k = 1; k < tops.size(); k++)
            ASSERT_GE(stacks_low(tops[k], i) - kGuard, tops[k - 1]) << "class " << i;
        for (char *top : tops)
            stacks_put(i, top);
    }
}

// Tops that all lay at the same place of a page, or a power of two apart, would share few sets of the CPU's caches.
TEST_F(Stacks, TopsAreSpreadOverTheCachesSets) {
    const auto places = [](const std::vector<char *> &tops, std::uintptr_t period) {
        std::set<std::uintptr_t> different;
        for (const char *top : tops)
            different.insert(reinterpret_cast<std::uintptr_t>(top) % period);
        return different.size();
    };
    std::vector<char *> tops(64);
    for (char *&top : tops)
        top = stacks_get(kDefault);
    EXPECT_GE(places(tops, 4096), 4U);       // a first-level cache
    EXPECT_GE(places(tops, 128 << 10), 32U); // a second-level one
    for (char *top : tops)
        stacks_put(kDefault, top);
}

TEST_F(Stacks, OneThatWasGivenBackComesAgain) {
    char *top = stacks_get(kDefault);
    stacks_put(kDefault, top);
    EXPECT_EQ(stacks_get(kDefault), top);
    stacks_put(kDefault, top);
}

TEST_F(Stacks, TrimUnmapsWhatIsIdle) {
    std::vector<char *> tops(1000);
    for (char *&top : tops) {
        top = stacks_get(kDefault);
        ASSERT_NE(top, nullptr);
        std::memset(top - 3 * kPage, 1, 3 * kPage);
    }
    EXPECT_GE(stacks_chunks(kDefault), 5U);
    const std::size_t resident = resident_bytes();
    for (char *top : tops)
        stacks_put(kDefault, top);
    stacks_flush(kDefault);
    depots_trim_now();
    EXPECT_EQ(stacks_chunks(kDefault), 0U);
    EXPECT_LT(resident_bytes() + 1000 * 2 * kPage, resident);
}

// A chunk that has one stack in use stays, with all its guards; the others' memory goes.
TEST_F(Stacks, TrimKeepsWhatIsUsedAndTheGuards) {
    std::vector<char *> tops(200);
    for (char *&top : tops) {
        top = stacks_get(kDefault);
        ASSERT_NE(top, nullptr);
        std::memset(stacks_low(top, kDefault), 1, 8 * kPage);
    }
    std::memset(tops[0] - 64, 77, 64);
    for (std::size_t i = 1; i < tops.size(); i++)
        stacks_put(kDefault, tops[i]);
    stacks_flush(kDefault);
    const std::size_t resident = resident_bytes();
    depots_trim_now();
    EXPECT_EQ(stacks_chunks(kDefault), 1U);
    EXPECT_LT(resident_bytes() + 100 * 8 * kPage, resident);
    EXPECT_EQ(tops[0][-1], 77);

    const Reader reader;
    std::vector<char *> again(40);
    for (char *&top : again) {
        top = stacks_get(kDefault);
        EXPECT_FALSE(reader.can_read(stacks_low(top, kDefault) - 1));
        EXPECT_EQ(*stacks_low(top, kDefault), 0) << "its memory was not given back";
    }
    for (char *top : again)
        stacks_put(kDefault, top);
    stacks_put(kDefault, tops[0]);
}

TEST_F(Stacks, TrimmedTwiceIsStillGood) {
    std::vector<char *> tops(500);
    for (int round = 0; round < 5; round++) {
        for (char *&top : tops) {
            top = stacks_get(kDefault);
            ASSERT_NE(top, nullptr);
            std::memset(top - 100, round, 100);
        }
        for (char *top : tops) {
            ASSERT_EQ(top[-1], round);
            stacks_put(kDefault, top);
        }
        if (round % 2 == 0)
            stacks_flush(kDefault);
        depots_trim_now();
        depots_trim_now();
    }
}

// An older kernel: the guards are made by mprotect.
TEST_F(Stacks, GuardedByMprotectToo) {
    const Reader reader;
    faults.guard.after(0, 1 << 30, EINVAL);
    char *top = stacks_get(kDefault);
    ASSERT_NE(top, nullptr);
    EXPECT_GE(faults.mprotect.calls, 1);
    EXPECT_FALSE(reader.can_read(stacks_low(top, kDefault) - 1));
    EXPECT_TRUE(reader.can_read(stacks_low(top, kDefault)));
    stacks_put(kDefault, top);
}

// vm.max_map_count: no stack rather than one without a guard, and nothing stays mapped.
TEST_F(Stacks, NoneWithoutAGuard) {
    const std::size_t before = mapped_bytes();
    faults.guard.after(0, 1 << 30, EINVAL);
    faults.mprotect.after(20, 1 << 30, ENOMEM);
    EXPECT_EQ(stacks_get(kDefault), nullptr);
    EXPECT_LE(mapped_bytes(), before);
    faults_clear();
    char *top = stacks_get(kDefault);
    EXPECT_NE(top, nullptr);
    stacks_put(kDefault, top);
}

TEST_F(Stacks, NoneWithoutMemory) {
    faults.mmap.after(0, 1 << 30, ENOMEM);
    EXPECT_EQ(stacks_get(3), nullptr);
    faults_clear();
    char *top = stacks_get(3);
    EXPECT_NE(top, nullptr);
    stacks_put(3, top);
}

// --- in ULTs ----------------------------------------------------------------------------------------------

class Stack : public Ult {};

// Writes each page from the lowest up to the caller's frame, and reads them all again.
__attribute__((noinline)) void use_it_all(std::size_t size) {
    char *here = static_cast<char *>(__builtin_frame_address(0));
    char *low = stacks_low(thrum_self()->stack_top, stacks_class_of(size));
    ASSERT_GE(static_cast<std::size_t>(here - low), size - 1024) << "of " << size;
    char *end = here - kPage; // what is called from here needs some itself
    const std::size_t step = size > (1U << 24) ? size / 16 : kPage;
    const auto mark = [](const char *at) {
        return static_cast<char>(reinterpret_cast<std::uintptr_t>(at) / kPage);
    };
    for (char *at = low; at < end; at += step)
        *at = mark(at);
    thrum_yield();
    for (char *at = low; at < end; at += step)
        ASSERT_EQ(*at, mark(at)) << "of " << size;
}

TEST_P(Stack, OfEverySizeIsUsable) {
    for (unsigned i = 0; i < stacks_classes(); i++) {
        const std::size_t size = stacks_size(i);
        const thrum_attr_t attr = attr_stack(size);
        Light one([size] { use_it_all(size); }, &attr), two([size] { use_it_all(size); }, &attr);
    }
    in_ult([] {
        for (unsigned i = 0; i < stacks_classes(); i++) {
            const std::size_t size = stacks_size(i);
            const thrum_attr_t attr = attr_stack(size);
            Light one([size] { use_it_all(size); }, &attr), two([size] { use_it_all(size); }, &attr);
        }
    });
}

TEST_P(Stack, OfOddSizesIsRoundedUp) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{16385}, std::size_t{100000}}) {
        const thrum_attr_t attr = attr_stack(size);
        Light([size] { use_it_all(stacks_size(stacks_class_of(size))); }, &attr).join();
    }
}

TEST_P(Stack, SizesMixed) {
    in_ult([] {
        std::vector<std::unique_ptr<Light>> threads;
        for (unsigned i = 0; i < 300; i++) {
            const std::size_t size = stacks_size(i * 7 % 6);
            thrum_attr_t attr = attr_stack(size);
            EXPECT_EQ(thrum_attr_set_flags(&attr, i % 3 == 0 ? THRUM_SPAWN_QUEUED : 0), 0);
            threads.push_back(std::make_unique<Light>([size] { use_it_all(size); }, &attr));
        }
    });
}

// Every function needs a frame of the same alignment, however a ULT begins.
TEST_P(Stack, IsAligned) {
    const thrum_attr_t queued = attr_queued();
    const auto check = [] {
        alignas(16) volatile char aligned[16] = {};
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) % 16, 0U);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&aligned) % 16, 0U);
    };
    const auto all = [&] {
        Light{check};
        Light{check, &queued};
        Light one(check, &queued), two(check, &queued);
    };
    all();
    in_ult(all);
}

struct Burst {
    thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
    thrum_cond_t go_on = THRUM_COND_INITIALIZER;
    bool go = false;
    std::atomic<long> waiting{0};
};

void *wait_in_burst(void *arg) {
    auto *burst = static_cast<Burst *>(arg);
    thrum_mutex_lock(&burst->mutex);
    burst->waiting++;
    while (!burst->go)
        thrum_cond_wait(&burst->go_on, &burst->mutex);
    thrum_mutex_unlock(&burst->mutex);
    return nullptr;
}

// *peak: the process's memory while all of them waited.
void have_a_burst(std::vector<thrum_t> &threads, std::size_t *peak) {
    Burst burst;
    for (thrum_t &thread : threads)
        ASSERT_EQ(thrum_spawn(&thread, nullptr, wait_in_burst, &burst), 0);
    ASSERT_TRUE(eventually([&] { return burst.waiting == static_cast<long>(threads.size()); }));
    *peak = resident_bytes();
    thrum_mutex_lock(&burst.mutex);
    burst.go = true;
    thrum_cond_broadcast(&burst.go_on);
    thrum_mutex_unlock(&burst.mutex);
    for (const thrum_t thread : threads)
        ASSERT_EQ(thrum_join(thread, nullptr), 0);
}

// What the workers keep in their own magazines may stay; an emulator has memory of its own for each thread.
TEST_P(Stack, MemoryGoesBackAfterABurst) {
    if (ULT_TSAN)
        GTEST_SKIP() << "what TSan keeps of threads and of memory is more";
    std::vector<thrum_t> threads(static_cast<std::size_t>(50000 / kStressDivisor));
    const std::size_t before = resident_bytes();
    std::size_t peak = 0;
    in_ult([&] { have_a_burst(threads, &peak); });
    EXPECT_GT(peak, before + threads.size() * kPage);
    depots_trim_now();
    EXPECT_LT(resident_bytes(), before + ((ULT_ASAN || ULT_EMULATED ? 48U : 16U) << 20)) << "was " << before;
    in_ult([&] { have_a_burst(threads, &peak); }); // what is left is still good
}

// Trimmed all the time while others take and give back.
TEST_P(Stack, TrimDisturbsNoThread) {
    std::atomic<bool> over{false};
    External trimmer([&] {
        while (!over)
            depots_trim_now();
    });
    in_ult([] {
        std::vector<thrum_t> threads(static_cast<std::size_t>(3000 / kStressDivisor));
        std::size_t peak = 0;
        for (int round = 0; round < 10; round++)
            have_a_burst(threads, &peak);
    });
    over = true;
}

__attribute__((noinline)) int overflow(int depth) {
    volatile char frame[512];
    frame[0] = static_cast<char>(depth);
    return depth < 0 ? 0 : overflow(depth + 1) + frame[0];
}

class Overflow : public UltPlain {};

// It dies in the guard page, whatever unit has the stack below.
TEST_F(Overflow, EndsTheProcess) {
    for (const unsigned workers : {1U, 2U})
        for (const std::size_t size : {std::size_t{16} << 10, std::size_t{64} << 10, std::size_t{1} << 20}) {
            const int status = in_child([&] {
                signal(SIGSEGV, SIG_DFL);
                const thrum_config config{workers, 0, {}, {}};
                if (thrum_init(&config) != 0)
                    return 1;
                const thrum_attr_t attr = attr_stack(size);
                Light([] { overflow(0); }, &attr).join();
                return 2;
            });
            EXPECT_TRUE(WIFSIGNALED(status)) << status;
            EXPECT_EQ(WTERMSIG(status), SIGSEGV);
        }
}

ULT_OVER_WORKERS(Stack);

} // namespace
