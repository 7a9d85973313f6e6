// SPDX-License-Identifier: Apache-2.0
//
// Signal handlers of the program's in threads that are preempted. Without SA_ONSTACK they run on the stack that they interrupt, to
// their end, and one that needs more than is left there ends as any overflow does; with it on the alternate stack, which may be the
// program's. Ticks do not change whether their signal ends a call: that says SA_RESTART (thrum-preemption(7), "Handlers of the
// program's").
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string>
#include <tuple>

#include "core.hpp"
#include "depots.h"
#include "inside.h"
#include "preempt.hpp"
extern "C" {
#include "arch_fault.h"
}

namespace {

constexpr std::size_t kSmall = 32 << 10; // of a stack

// In which mode, and with which of sigaction's flags.
using Case = std::tuple<unsigned, int>;

std::string name_of_case(const testing::TestParamInfo<Case> &info) {
    const auto &[mode, flags] = info.param;
    return name_of_mode({mode, 0}) + (flags == SA_RESTART ? "Restart" : "");
}

class ProgramsHandlers : public Interrupted, public testing::WithParamInterface<Case> {
  protected:
    void SetUp() override {
        if (ULT_EMULATED)
            GTEST_SKIP() << "qemu-user has frames and stacks for signals of its own";
        Interrupted::SetUp();
    }
    void TearDown() override {
        alarm(0);
        std::signal(SIGUSR1, SIG_DFL);
    }
    static unsigned mode() { return std::get<0>(GetParam()); }
    static bool restarts() { return std::get<1>(GetParam()) == SA_RESTART; }
    static void handle(void (*handler)(int, siginfo_t *, void *), int flags = 0) {
        struct sigaction action = {};
        action.sa_sigaction = handler;
        action.sa_flags = SA_SIGINFO | std::get<1>(GetParam()) | flags;
        ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
    }
};

INSTANTIATE_TEST_SUITE_P(Modes, ProgramsHandlers,
                         testing::Combine(kSafeModes, testing::Values(0, SA_RESTART)), name_of_case);

pid_t kernel_thread() {
    return static_cast<pid_t>(syscall(SYS_gettid));
}

// In mode klt a thread may be on a kernel thread that blocks what is not the library's; main's does not. It takes some ticks
// until another mask than that is known to be no handler's: with all other CPU time taken, they may be long in coming.
void let_in() {
    sigset_t signals, before;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    pthread_sigmask(SIG_UNBLOCK, &signals, &before);
    if (sigismember(&before, SIGUSR1) != 0)
        while (inside_worker_blocks(SIGUSR1) != 0)
            spin_us(kSlice);
}

void interrupt_here() {
    syscall(SYS_tgkill, getpid(), kernel_thread(), SIGUSR1);
}

// --- where it runs ----------------------------------------------------------------------------------------

struct Stack {
    std::uintptr_t low = 0, top = 0;
    bool has(std::uintptr_t address) const { return address >= low && address < top; }
};

std::array<Stack, 6> stacks;
std::atomic<int> on_threads, elsewhere, moved;

void look_where(int, siginfo_t *, void *context) {
    char here = 0;
    const auto at = reinterpret_cast<std::uintptr_t>(&here),
               interrupted = arch_fault_sp(static_cast<const ucontext_t *>(context));
    const pid_t before = kernel_thread();
    const auto stack =
        std::find_if(stacks.begin(), stacks.end(), [&](const Stack &each) { return each.has(interrupted); });
    (stack != stacks.end() && stack->has(at) && at < interrupted ? on_threads : elsewhere)++;
    for (const uint64_t end = in_us(3 * kSlice); thrum_now() < end;) // ticks come meanwhile
        ;
    moved += kernel_thread() != before;
}

} // namespace

TEST_P(ProgramsHandlers, RunToTheirEndOnTheInterruptedStack) {
    constexpr int kTimes = 20;
    on_threads = elsewhere = moved = 0;
    handle(look_where);
    {
        const Preempting runtime(1, mode());
        const thrum_attr_t attr = attr_stack(kSmall);
        std::vector<Light> threads;
        for (Stack &stack : stacks)
            threads.emplace_back(
                [&stack] {
                    const thrum_t self = thrum_self();
                    stack = {reinterpret_cast<std::uintptr_t>(stacks_low(self->stack_top, self->stack_class)),
                             reinterpret_cast<std::uintptr_t>(self->stack_top)};
                    let_in();
                    for (int i = 0; i < kTimes; i++) {
                        interrupt_here();
                        spin_us(3 * kSlice);
                    }
                },
                &attr);
        threads.clear();
        EXPECT_GE(preemptions(), 10U);
    }
    EXPECT_EQ(on_threads, static_cast<int>(stacks.size()) * kTimes);
    EXPECT_EQ(elsewhere, 0);
    EXPECT_EQ(moved, 0);
}

// --- room -------------------------------------------------------------------------------------------------

namespace {

// Needs more than a small stack has.
void need_much(int, siginfo_t *, void *) {
    volatile char much[kSmall + 4096];
    for (std::size_t i = sizeof much; i > 0; i -= std::min<std::size_t>(i, 1024))
        much[i - 1] = 1;
}

void need_little(int, siginfo_t *, void *) {}

// Until less is left than a signal's frame takes.
__attribute__((noinline)) void go_down(std::uintptr_t low) {
    volatile char frame[64];
    frame[0] = 1;
    if (reinterpret_cast<std::uintptr_t>(&frame) - low > 512)
        go_down(low);
    else
        interrupt_here();
    frame[1] = frame[0];
}

struct End {
    int status;
    std::string said;
};

// Of a runtime in a child, with threads that have to be preempted to end, one of which does `work`.
End end_of(unsigned mode, const Light::Work &work) {
    End end{};
    end.said = stderr_of([&] {
        end.status = in_child([&] {
            const Preempting runtime(1, mode);
            const thrum_attr_t attr = attr_stack(kSmall);
            wait_for_each_other();
            const uint64_t before = preemptions();
            Light(
                [&] {
                    let_in();
                    work();
                },
                &attr)
                .join();
            return before > 0 ? 0 : 1;
        });
    });
    return end;
}

void expect_overflow(const End &end) {
    EXPECT_TRUE(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGSEGV) << end.status;
    EXPECT_TRUE(testing::internal::RE::PartialMatch(
        end.said,
        testing::internal::RE("thrum: stack overflow in thread 0x[0-9a-f]+ on worker 0: its stack of "
                              "32 KiB is too small; ")))
        << end.said;
}

} // namespace

TEST_P(ProgramsHandlers, ThatNeedMoreThanThereIsEndWithTheLine) {
    handle(need_much);
    expect_overflow(end_of(mode(), interrupt_here));
}

TEST_P(ProgramsHandlers, WithoutRoomForTheirFrameEndWithTheLine) {
    handle(need_little);
    expect_overflow(end_of(mode(), [] {
        const thrum_t self = thrum_self();
        go_down(reinterpret_cast<std::uintptr_t>(stacks_low(self->stack_top, self->stack_class)));
    }));
}

TEST_P(ProgramsHandlers, OnTheAlternateStackNeedNoRoom) {
    handle(need_much, SA_ONSTACK);
    const End end = end_of(mode(), interrupt_here);
    EXPECT_TRUE(WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0) << end.status;
    EXPECT_EQ(end.said, "");
}

// --- an alternate stack of the program's ------------------------------------------------------------------

namespace {

// As large as those of the library's.
class AlternateStack {
  public:
    AlternateStack()
        : low_(mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
        stack_t ours = {};
        ours.ss_sp = low_;
        ours.ss_size = kSize;
        EXPECT_EQ(sigaltstack(&ours, &before_), 0);
    }
    AlternateStack(const AlternateStack &) = delete;
    ~AlternateStack() {
        EXPECT_EQ(sigaltstack(&before_, nullptr), 0);
        munmap(low_, kSize);
    }
    bool is_installed() const {
        stack_t now = {};
        return sigaltstack(nullptr, &now) == 0 && now.ss_sp == low_ && now.ss_size == kSize &&
               now.ss_flags == 0;
    }
    Stack place() const {
        const auto low = reinterpret_cast<std::uintptr_t>(low_);
        return {low, low + kSize};
    }

  private:
    static constexpr std::size_t kSize = 64 << 10;
    void *low_;
    stack_t before_ = {};
};

Stack alternate;

void look_whether_there(int, siginfo_t *, void *) {
    char here = 0;
    const pid_t before = kernel_thread();
    (alternate.has(reinterpret_cast<std::uintptr_t>(&here)) ? on_threads : elsewhere)++;
    for (const uint64_t end = in_us(3 * kSlice); thrum_now() < end;)
        ;
    moved += kernel_thread() != before;
}

} // namespace

// It is the kernel thread's, and there is one worker: ticks come there as well, and the thread is preempted all the same.
TEST_P(ProgramsHandlers, OnTheProgramsAlternateStack) {
    constexpr int kTimes = 20;
    on_threads = elsewhere = moved = 0;
    alarm(60);
    handle(look_whether_there, SA_ONSTACK);
    const Preempting runtime(1, mode());
    std::atomic<bool> over{false};
    int lost = 0;
    Thread computes([&] { wait_for(over); });
    Thread sets([&] {
        let_in();
        {
            const AlternateStack stack;
            alternate = stack.place();
            for (int i = 0; i < kTimes; i++) {
                for (const uint64_t next = preemptions() + 2; preemptions() < next;) {
                }
                lost += !stack.is_installed();
                interrupt_here();
                lost += !stack.is_installed();
            }
        }
        over = true;
    });
    sets.join();
    EXPECT_EQ(lost, 0);
    EXPECT_EQ(on_threads, kTimes);
    EXPECT_EQ(elsewhere, 0);
    EXPECT_EQ(moved, 0);
}

// --- the calls that they interrupt ------------------------------------------------------------------------

namespace {

std::atomic<int> handled;

void count(int, siginfo_t *, void *) {
    handled++;
}

} // namespace

// ... in a thread that ticks interrupt in the same call, too.
TEST_P(ProgramsHandlers, EndCallsUnlessTheySayRestart) {
    enum { HANDLED = 20, ENDED = 3, PREEMPTED = 3 };
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    handled = 0;
    alarm(60);
    handle(count);
    std::atomic<pid_t> where{0};
    std::atomic<int> ended{0};
    std::atomic<bool> over{false};
    {
        const Preempting runtime(1, mode());
        Thread computes([&] { wait_for(over); });
        Thread reads([&] {
            char byte = 0;
            ssize_t got = -1;
            let_in();
            where = kernel_thread();
            while ((got = read(ends[0], &byte, 1)) < 0 && errno == EINTR)
                ended++;
            EXPECT_EQ(got, 1);
            over = true;
        });
        std::thread interrupts([&] {
            const timespec nap{0, 100'000};
            while (where == 0)
                std::this_thread::yield();
            while ((restarts() ? handled < HANDLED : ended < ENDED) || preemptions() < PREEMPTED) {
                syscall(SYS_tgkill, getpid(), where.load(), SIGUSR1);
                nanosleep(&nap, nullptr);
            }
            EXPECT_EQ(write(ends[1], "x", 1), 1);
        });
        reads.join();
        interrupts.join();
    }
    EXPECT_EQ(ended > 0, !restarts());
    close(ends[0]);
    close(ends[1]);
}
