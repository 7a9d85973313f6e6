// SPDX-License-Identifier: Apache-2.0
//
// ULTs that stand on stacks of the program's own, as coroutines do, are preempted, and nothing is written to those stacks.
#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "preempt.hpp"

namespace {

constexpr std::size_t kSize = 64 << 10, kTiny = 4096;
constexpr char kPattern = 0x5a;

// Runs `work` on a stack of its own, of which so many bytes are used at most, and goes back and forth.
class Coroutine {
  public:
    explicit Coroutine(std::function<void()> work, std::size_t size = kSize)
        : work_(std::move(work)), size_(size), stack_(std::make_unique<char[]>(size)) {
        std::fill_n(stack_.get(), size, kPattern);
        getcontext(&inner_);
        inner_.uc_stack.ss_sp = stack_.get();
        inner_.uc_stack.ss_size = size;
        inner_.uc_link = &outer_;
        const auto self = reinterpret_cast<std::uintptr_t>(this);
        makecontext(&inner_, reinterpret_cast<void (*)()>(enter), 2, static_cast<unsigned>(self),
                    static_cast<unsigned>(self >> 32));
    }
    Coroutine(const Coroutine &) = delete;
    void resume() { swapcontext(&outer_, &inner_); }
    void suspend() { swapcontext(&inner_, &outer_); }
    // Bytes from its end on that were never written. By words: one byte of a return address may be that of the pattern.
    std::size_t untouched() const {
        std::size_t bytes = 0;
        std::uint64_t word = 0, pattern = 0;
        std::memset(&pattern, kPattern, sizeof pattern);
        for (; bytes + sizeof word <= size_; bytes += sizeof word) {
            std::memcpy(&word, stack_.get() + bytes, sizeof word);
            if (word != pattern)
                break;
        }
        return bytes;
    }

  private:
    static void enter(unsigned low, unsigned high) {
        const std::uintptr_t self = low | static_cast<std::uintptr_t>(high) << 32;
        reinterpret_cast<Coroutine *>(self)->work_(); // NOLINT(performance-no-int-to-ptr)
    }

    std::function<void()> work_;
    std::size_t size_;
    std::unique_ptr<char[]> stack_;
    ucontext_t outer_{}, inner_{};
};

// Computes until the flag says so: on one worker another has to run meanwhile.
void compute_until(const std::atomic<bool> &flag) {
    for (volatile unsigned turns = 0; !flag.load(std::memory_order_relaxed); turns = turns + 1) {
    }
}

class Nested : public testing::TestWithParam<unsigned> {
  protected:
    void SetUp() override {
        if (tool_forbids_preemption())
            GTEST_SKIP() << "no thread is preempted under this tool";
    }
};

INSTANTIATE_TEST_SUITE_P(Modes, Nested,
                         testing::Values(THRUM_PREEMPT_YIELD, THRUM_PREEMPT_LEND, THRUM_PREEMPT_OWN_TLS,
                                         THRUM_PREEMPT_KLT));

} // namespace

TEST_P(Nested, IsPreemptedInEachTurn) {
    constexpr int kTurns = 20;
    const Preempting preempting(1, GetParam());
    std::atomic<int> turn{0};
    std::atomic<bool> go_on[kTurns] = {};
    Thread nested([&] {
        Coroutine *self = nullptr;
        Coroutine coroutine([&] {
            for (const std::atomic<bool> &one : go_on) {
                turn++;
                compute_until(one);
                self->suspend();
            }
        });
        self = &coroutine;
        for (int i = 0; i < kTurns; i++)
            coroutine.resume();
    });
    Thread other([&] {
        for (int i = 0; i < kTurns; i++) {
            while (turn != i + 1) {
            }
            go_on[i] = true;
        }
    });
    nested.join();
    other.join();
    EXPECT_GE(preemptions(), static_cast<uint64_t>(kTurns));
}

// Nearly all signals find it in the switch itself, where it may not be moved (runtime/coroutines.c). The limit is five times what a
// slice has room for, where a switch and back takes half a microsecond.
TEST_P(Nested, ThatOnlySwitchesIsPreempted) {
    constexpr long kTurns = 50, kSwitches = 10L * kSlice;
    const Preempting preempting(1, GetParam(), kSlice);
    std::atomic<bool> over{false};
    long switches = 0;
    Thread other([&] {
        for (long i = 0; i < kTurns; i++)
            thrum_yield();
        over = true;
    });
    Thread switching([&] {
        Coroutine *self = nullptr;
        Coroutine coroutine([&] {
            while (!over)
                self->suspend();
        });
        self = &coroutine;
        for (; !over && switches < kTurns * kSwitches; switches++)
            coroutine.resume();
        coroutine.resume();
    });
    other.join();
    switching.join();
    EXPECT_LT(switches, kTurns * kSwitches);
}

// No frame of a signal is put there, which may be larger than the stack.
TEST_P(Nested, LeavesTheStackAlone) {
    const Preempting preempting(1, GetParam());
    std::atomic<bool> begun{false}, over{false};
    std::size_t untouched = 0, after = 0;
    Thread nested([&] {
        Coroutine *self = nullptr;
        Coroutine coroutine(
            [&] {
                begun = true;
                compute_until(begun);
                self->suspend();
                compute_until(over);
            },
            kSize);
        self = &coroutine;
        coroutine.resume();
        untouched = coroutine.untouched();
        coroutine.resume();
        after = coroutine.untouched();
    });
    Thread other([&] {
        wait_for(begun);
        for (const uint64_t before = preemptions(); preemptions() < before + 10;) {
        }
        over = true;
    });
    nested.join();
    other.join();
    EXPECT_GT(untouched, kSize - kTiny);
    EXPECT_EQ(after, untouched);
}

// The thread that called thrum_init has a stack of the process's, and its coroutines have others.
TEST_P(Nested, InThePrimaryToo) {
    const Preempting preempting(1, GetParam());
    std::atomic<bool> begun{false}, over{false};
    std::size_t untouched = 0, after = 0;
    Coroutine *self = nullptr;
    Coroutine coroutine([&] {
        begun = true;
        compute_until(begun);
        self->suspend();
        compute_until(over);
    });
    self = &coroutine;
    Thread other([&] {
        wait_for(begun);
        for (const uint64_t before = preemptions(); preemptions() < before + 10;) {
        }
        over = true;
    });
    coroutine.resume();
    untouched = coroutine.untouched();
    coroutine.resume();
    after = coroutine.untouched();
    other.join();
    EXPECT_GT(untouched, kSize - kTiny);
    EXPECT_EQ(after, untouched);
}

// Many at once, on several workers, that are resumed on others than where they were preempted.
TEST_P(Nested, ManyAtOnce) {
    constexpr int kThreads = 40, kTurns = 5;
    const Preempting preempting(3, GetParam());
    std::atomic<int> sum{0};
    std::vector<Thread> threads;
    for (int i = 0; i < kThreads; i++)
        threads.emplace_back([&sum] {
            Coroutine *self = nullptr;
            Coroutine coroutine([&] {
                for (int turn = 0; turn < kTurns; turn++) {
                    double value = turn;
                    for (volatile int k = 0; k < (ULT_EMULATED ? 10000 : 200000); k = k + 1)
                        value = value * 0.5 + turn;
                    if (value > turn * 1.99 && value <= turn * 2.0)
                        sum++;
                    thrum_yield();
                    self->suspend();
                }
            });
            self = &coroutine;
            for (int turn = 0; turn < kTurns; turn++)
                coroutine.resume();
        });
    threads.clear();
    EXPECT_EQ(sum, kThreads * kTurns - kThreads); // turn 0 is 0 twice, which is no larger
}

namespace {

// Some real-time signals are qemu-user's own, and it leaves them out of each mask.
bool masks_are_kept() {
    sigset_t all, before, got;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_sigmask(SIG_SETMASK, &before, &got);
    for (int signal = SIGRTMIN; signal <= SIGRTMAX; signal++)
        if (sigismember(&got, signal) == 0)
            return false;
    return true;
}

} // namespace

// A context that was saved on one worker does not bring its signal mask to another: workers block what is for the program, and the
// kernel thread that called thrum_init does not.
TEST_P(Nested, LeavesTheWorkersTheirMasks) {
    if (!masks_are_kept())
        GTEST_SKIP() << "a worker's mask is not known again: the kernel forgets signals of it";
    const Preempting preempting(2, GetParam());
    const auto blocks = [] {
        sigset_t mask;
        pthread_sigmask(SIG_BLOCK, nullptr, &mask);
        return sigismember(&mask, SIGTERM) != 0;
    };
    const auto is_home = [] { return thrum_worker_self() == 0; };
    thrum_attr_t attr = attr_queued();
    ASSERT_EQ(thrum_attr_set_worker(&attr, 0), 0);
    const bool first_blocks = GetParam() == THRUM_PREEMPT_KLT; // there it is another kernel thread
    Light thread(
        [&] {
            Coroutine *self = nullptr;
            Coroutine coroutine([&] {
                for (int i = 0; i < 6; i++) {
                    EXPECT_EQ(blocks(), first_blocks || !is_home()) << i;
                    EXPECT_EQ(thrum_migrate(thrum_self(), is_home() ? 1 : 0), 0);
                    thrum_yield();
                    EXPECT_EQ(blocks(), first_blocks || !is_home()) << i;
                    self->suspend();
                }
            });
            self = &coroutine;
            for (int i = 0; i < 6; i++) {
                coroutine.resume();
                EXPECT_EQ(blocks(), first_blocks || !is_home()) << i;
                EXPECT_EQ(thrum_migrate(thrum_self(), is_home() ? 1 : 0), 0);
                thrum_yield();
            }
            EXPECT_EQ(thrum_migrate(thrum_self(), 0), 0);
            thrum_yield();
        },
        &attr);
    thread.join();
    EXPECT_FALSE(blocks());
}

// On the unit's own stack, where that has no room for a signal's frame any more.
namespace {

__attribute__((noinline)) void compute_deep(const std::atomic<bool> &flag, const char *low) {
    volatile char frame[256];
    frame[0] = 0;
    if (reinterpret_cast<std::uintptr_t>(&frame[0]) > reinterpret_cast<std::uintptr_t>(low) + 1024)
        compute_deep(flag, low);
    else
        compute_until(flag);
    frame[1] = frame[0];
}

} // namespace

TEST_P(Nested, NearTheEndOfTheStackToo) {
    const Preempting preempting(1, GetParam());
    std::atomic<bool> begun{false}, over{false};
    std::vector<char> memory(64 << 10);
    thrum_attr_t attr = attr_queued();
    ASSERT_EQ(thrum_attr_set_stack(&attr, memory.data(), memory.size()), 0);
    Light deep(
        [&] {
            begun = true;
            compute_deep(over, memory.data());
        },
        &attr);
    Thread other([&] {
        wait_for(begun);
        over = true;
    });
    deep.join();
    other.join();
}
