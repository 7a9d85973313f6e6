// SPDX-License-Identifier: Apache-2.0
//
// A ULT that needs more stack than it has: the line, the end by SIGSEGV, and what becomes of the program's own handler
// (src/runtime/overflow.h). Each in a forked child.
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include "core.hpp"
#include "depots.h"
#include "ult.hpp"

namespace {

// --- helpers ----------------------------------------------------------------------------------------------

volatile int deepest = 1 << 30;

// Uses some 600 bytes a level, down to `deepest`.
__attribute__((noinline)) int descend(int depth) {
    volatile char frame[512];
    frame[0] = static_cast<char>(depth);
    if (depth >= deepest)
        return frame[0];
    return descend(depth + 1) + frame[0];
}

struct End {
    int status;
    std::string said;
};

// Inside a runtime of two workers, in a child.
End end_of(const std::function<void()> &work) {
    End end{};
    end.said = stderr_of([&] {
        end.status = in_child([&work] {
            const thrum_config config{2, 0, {}, {}};
            if (const int error = thrum_init(&config); error != 0)
                return error;
            work();
            return thrum_fini();
        });
    });
    return end;
}

// A sanitizer's handler is one that the program had before thrum_init: it is passed the signal, and exits.
bool is_killed(const End &end) {
    if (ULT_ASAN || ULT_TSAN)
        return end.status != 0;
    return WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGSEGV;
}

bool exited_with(const End &end, int status) {
    return WIFEXITED(end.status) && WEXITSTATUS(end.status) == status;
}

std::string line_of(const std::string &thread, const std::string &worker, const std::string &size,
                    bool has_default_size = true) {
    return "thrum: stack overflow in thread " + thread + " on worker " + worker + ": its stack of " + size +
           " is too small; enlarge it with thrum_attr_set_stack_size\\(\\)" +
           (has_default_size ? ", or all with THRUM_STACK_SIZE\n" : "\n");
}

bool says(const End &end, const std::string &line) {
    return testing::internal::RE::PartialMatch(end.said, testing::internal::RE(line));
}

bool says_nothing(const End &end) {
    return end.said.find("thrum: ") == std::string::npos;
}

// On worker 1, and on no other: this thread is preempted while it waits, and worker 0 would run a thread that may run there.
void on_the_other_worker(const Light::Work &work) {
    thrum_attr_t bound;
    thrum_attr_init(&bound);
    EXPECT_EQ(thrum_attr_set_worker(&bound, 1), 0);
    std::atomic<bool> over{false};
    Light thread(
        [&] {
            work();
            over = true;
        },
        &bound);
    while (!over) {
    }
}

void handle(void (*handler)(int, siginfo_t *, void *), int flags = 0) {
    struct sigaction action = {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    sigaction(SIGSEGV, &action, nullptr);
}

// Memory that a fault is about; 42 when it is written, after it was made writable.
volatile char *page;
std::atomic<int> faults_seen;

void exit_42(int, siginfo_t *info, void *) {
    _exit(info->si_addr != nullptr ? 42 : 43);
}

void return_from(int, siginfo_t *, void *) {
    if (++faults_seen > 3)
        _exit(44); // it is not ended from outside
}

void repair(int, siginfo_t *info, void *) {
    if (info->si_addr != page)
        _exit(45);
    faults_seen++;
    mprotect(info->si_addr, 1, PROT_READ | PROT_WRITE);
}

// --- the line ---------------------------------------------------------------------------------------------

class StackOverflow : public UltPlain {};

TEST_F(StackOverflow, NamesTheThreadItsWorkerAndItsSize) {
    const End end = end_of([] { on_the_other_worker([] { descend(0); }); });
    EXPECT_TRUE(is_killed(end)) << end.status;
    EXPECT_TRUE(says(end, line_of("0x[0-9a-f]+", "1", "64 KiB"))) << end.said;
}

TEST_F(StackOverflow, NamesTheHandle) {
    char handle[32] = "";
    auto *shared = static_cast<thrum_t *>(
        mmap(nullptr, sizeof(thrum_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(shared, MAP_FAILED);
    const End end = end_of([shared] {
        in_ult([shared] {
            *shared = thrum_self();
            descend(0);
        });
    });
    snprintf(handle, sizeof handle, "%p", static_cast<void *>(*shared));
    munmap(shared, sizeof(thrum_t));
    EXPECT_TRUE(says(end, line_of(handle, "[01]", "64 KiB"))) << end.said << handle;
}

TEST_F(StackOverflow, OfALargerStackThatSufficesIsNone) {
    deepest = 1000;
    const thrum_attr_t attr = attr_stack(8 << 20);
    const End end = end_of([&attr] { Light([] { descend(0); }, &attr); });
    deepest = 1 << 30;
    EXPECT_TRUE(exited_with(end, 0)) << end.status;
    EXPECT_EQ(end.said, "");
}

TEST_F(StackOverflow, OfALargerStackSaysHowLargeItWas) {
    const thrum_attr_t attr = attr_stack(2 << 20);
    const End end = end_of([&attr] { Light([] { descend(0); }, &attr); });
    EXPECT_TRUE(is_killed(end)) << end.status;
    EXPECT_TRUE(says(end, line_of("0x[0-9a-f]+", "[01]", "2 MiB", false))) << end.said;
}

TEST_F(StackOverflow, NamesTheNameThatItHas) {
    const End end = end_of([] {
        in_ult([] {
            EXPECT_EQ(thrum_set_name(thrum_self(), "fifteen letters"), 0);
            descend(0);
        });
    });
    EXPECT_TRUE(says(end, line_of("0x[0-9a-f]+ 'fifteen letters'", "[01]", "64 KiB"))) << end.said;
}

// Larger than a page, smaller than the guard: its only access is far below the last one.
__attribute__((noinline)) void step_down(int depth) {
    volatile char frame[6 * 1024];
    frame[0] = static_cast<char>(depth);
    if (depth < deepest)
        step_down(depth + 1);
    frame[1] = frame[0];
}

TEST_F(StackOverflow, ByLargeFramesHitsTheGuard) {
    const End end = end_of([] { in_ult([] { step_down(0); }); });
    EXPECT_TRUE(is_killed(end)) << end.status;
    EXPECT_TRUE(says(end, line_of("0x[0-9a-f]+", "[01]", "64 KiB"))) << end.said;
}

// As a library's function that was compiled without stack probes: its array is as large as a whole stack, and it writes the
// far end first.
__attribute__((noinline)) void write_far_end() {
    volatile char frame[64 * 1024];
    frame[0] = 1;
    frame[sizeof frame - 1] = frame[0];
}

__attribute__((noinline)) void write_far_end_from(size_t depth) {
    volatile auto *above = static_cast<volatile char *>(__builtin_alloca(depth));
    for (size_t i = 0; i < depth; i += 1024)
        above[depth - 1 - i] = 1;
    write_far_end();
    above[0] = 0;
}

TEST_F(StackOverflow, ByAnArrayOfAStacksSizeHitsTheGuardFromAnyDepth) {
    for (const size_t depth : {8, 16, 24, 32, 40, 48, 56, 60, 63}) {
        const End end = end_of([depth] { in_ult([depth] { write_far_end_from(depth * 1024); }); });
        EXPECT_TRUE(is_killed(end)) << depth << " KiB: " << end.status;
        EXPECT_TRUE(says(end, line_of("0x[0-9a-f]+", "[01]", "64 KiB"))) << depth << " KiB: " << end.said;
    }
}

// Each level is a call of the library, too, so that any of its instructions may be the one that faults.
__attribute__((noinline)) void yield_down(int depth) {
    volatile char frame[24];
    frame[0] = static_cast<char>(depth);
    thrum_yield();
    if (depth < deepest)
        yield_down(depth + 1);
    frame[1] = frame[0];
}

TEST_F(StackOverflow, InsideTheLibraryIsTheCallersToo) {
    if (ULT_ASAN)
        GTEST_SKIP() << "it may be one of ASan's that faults, called when the next thread is the current one";
    for (int more = 0; more < 16; more++) {
        const End end = end_of([more] {
            Light other([] {
                for (;;)
                    thrum_yield();
            });
            in_ult([more] {
                volatile auto *pad =
                    static_cast<volatile char *>(__builtin_alloca(16 * static_cast<size_t>(more) + 1));
                pad[0] = 0;
                yield_down(0);
            });
        });
        EXPECT_TRUE(is_killed(end)) << end.status;
        EXPECT_TRUE(says(end, line_of("0x[0-9a-f]+", "[01]", "64 KiB"))) << more << end.said;
    }
}

// The signal comes when there is too little left for its frame: the kernel raises a SIGSEGV without an address.
__attribute__((noinline)) void raise_down(int depth) {
    volatile char frame[64];
    frame[0] = static_cast<char>(depth);
    raise(SIGUSR1);
    if (depth < deepest)
        raise_down(depth + 1);
    frame[1] = frame[0];
}

TEST_F(StackOverflow, ByASignalsFrame) {
    if (ULT_TSAN)
        GTEST_SKIP() << "the handler is called later, on another stack";
    if (ULT_EMULATED)
        GTEST_SKIP() << "qemu-user ends the process by itself where a signal's frame finds no room";
    signal(SIGUSR1, [](int) {});
    const End end = end_of([] { in_ult([] { raise_down(0); }); });
    signal(SIGUSR1, SIG_DFL);
    EXPECT_TRUE(is_killed(end)) << end.status;
    EXPECT_TRUE(says(end, line_of("0x[0-9a-f]+", "[01]", "64 KiB"))) << end.said;
}

// --- what is none -----------------------------------------------------------------------------------------

TEST_F(StackOverflow, AnotherFaultIsTheProgramsOwn) {
    page = nullptr;
    const End end = end_of([] { on_the_other_worker([] { *page = 1; }); });
    EXPECT_TRUE(is_killed(end)) << end.status;
    EXPECT_TRUE(says_nothing(end)) << end.said;
}

TEST_F(StackOverflow, APointerThatGoesAstrayIntoTheGuardIsNone) {
    const End end = end_of([] {
        in_ult([] {
            const thrum_t self = thrum_self();
            static_cast<volatile char *>(stacks_low(self->stack_top, self->stack_class))[-8] = 1;
        });
    });
    EXPECT_TRUE(is_killed(end)) << end.status;
    EXPECT_TRUE(says_nothing(end)) << end.said;
}

TEST_F(StackOverflow, ASegvThatIsSentEndsTheProcessToo) {
    const End end = end_of([] {
        kill(getpid(), SIGSEGV);
        _exit(1);
    });
    EXPECT_TRUE(is_killed(end)) << end.status;
    EXPECT_TRUE(says_nothing(end)) << end.said;
}

TEST_F(StackOverflow, ASegvThatIsSentIsIgnoredIfTheProgramDoes) {
    if (ULT_ASAN || ULT_TSAN)
        GTEST_SKIP() << "they do not let go of it";
    signal(SIGSEGV, SIG_IGN);
    const End end = end_of([] { kill(getpid(), SIGSEGV); });
    signal(SIGSEGV, SIG_DFL);
    EXPECT_TRUE(exited_with(end, 0)) << end.status;
}

// --- the program's own handler ----------------------------------------------------------------------------

class StackOverflowHandler : public UltPlain {
  protected:
    void SetUp() override {
        UltPlain::SetUp();
        sigaction(SIGSEGV, nullptr, &before_);
        faults_seen = 0;
    }
    void TearDown() override {
        sigaction(SIGSEGV, &before_, nullptr);
        UltPlain::TearDown();
    }

  private:
    struct sigaction before_;
};

TEST_F(StackOverflowHandler, IsCalledAfterTheLine) {
    handle(exit_42);
    const End end = end_of([] { on_the_other_worker([] { descend(0); }); });
    EXPECT_TRUE(exited_with(end, 42)) << end.status;
    EXPECT_TRUE(says(end, line_of("0x[0-9a-f]+", "1", "64 KiB"))) << end.said;
}

TEST_F(StackOverflowHandler, WithoutInformationIsCalledToo) {
    signal(SIGSEGV, [](int) { _exit(42); });
    const End end = end_of([] { in_ult([] { descend(0); }); });
    EXPECT_TRUE(exited_with(end, 42)) << end.status;
    EXPECT_FALSE(says_nothing(end));
}

TEST_F(StackOverflowHandler, ThatReturnsDoesNotKeepItAlive) {
    handle(return_from);
    const End end = end_of([] { in_ult([] { descend(0); }); });
    EXPECT_TRUE(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGSEGV) << end.status;
}

TEST_F(StackOverflowHandler, MayRepairOtherFaultsOnAnyWorker) {
    handle(repair);
    page = static_cast<volatile char *>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    const End end = end_of([] {
        on_the_other_worker([] { *page = 42; });
        _exit(*page + faults_seen);
    });
    munmap(const_cast<char *>(page), 4096);
    EXPECT_TRUE(exited_with(end, 42 + 1)) << end.status;
    EXPECT_EQ(end.said, "");
}

TEST_F(StackOverflowHandler, InstalledForOnceIsCalledOnce) {
    handle(return_from, static_cast<int>(SA_RESETHAND));
    page = nullptr;
    const End end = end_of([] { in_ult([] { *page = 42; }); });
    EXPECT_TRUE(is_killed(end) && !exited_with(end, 44)) << end.status;
}

void *same_handler(const struct sigaction &action) {
    return reinterpret_cast<void *>(action.sa_sigaction);
}

TEST_F(StackOverflowHandler, IsThereAgainAtTheEnd) {
    handle(exit_42, SA_NODEFER);
    struct sigaction action;
    const thrum_config config{2, 0, {}, {}};
    ASSERT_EQ(thrum_init(&config), 0);
    sigaction(SIGSEGV, nullptr, &action);
    EXPECT_NE(same_handler(action), reinterpret_cast<void *>(exit_42));
    ASSERT_EQ(thrum_fini(), 0);
    sigaction(SIGSEGV, nullptr, &action);
    EXPECT_EQ(same_handler(action), reinterpret_cast<void *>(exit_42));
    EXPECT_EQ(action.sa_flags & (SA_NODEFER | SA_SIGINFO | SA_ONSTACK), SA_NODEFER | SA_SIGINFO);
}

struct sigaction passed_to;

void pass_on(int signal, siginfo_t *info, void *context) {
    faults_seen++;
    passed_to.sa_sigaction(signal, info, context);
}

// It passes signals on to ours, in the next runtime as well: which must not pass them back.
TEST_F(StackOverflowHandler, ThatReplacesOursAndPassesSignalsOnMakesNoCircle) {
    const End end = end_of([] {
        sigaction(SIGSEGV, nullptr, &passed_to);
        handle(pass_on, SA_ONSTACK);
        const thrum_config config{2, 0, {}, {}};
        if (thrum_fini() != 0 || thrum_init(&config) != 0)
            _exit(1);
        in_ult([] { descend(0); });
    });
    EXPECT_TRUE(is_killed(end)) << end.status;
    EXPECT_TRUE(says(end, line_of("0x[0-9a-f]+", "[01]", "64 KiB"))) << end.said;
    EXPECT_EQ(end.said.find("thrum: "), end.said.rfind("thrum: ")) << end.said;
}

// --- choosing ---------------------------------------------------------------------------------------------

class StackOverflowVariable : public UltPlain {
  protected:
    void TearDown() override {
        unsetenv("THRUM_OVERFLOW");
        UltPlain::TearDown();
    }
};

TEST_F(StackOverflowVariable, Off) {
    setenv("THRUM_OVERFLOW", "off", 1);
    const End end = end_of([] { in_ult([] { descend(0); }); });
    EXPECT_TRUE(is_killed(end)) << end.status;
    EXPECT_TRUE(says_nothing(end)) << end.said;
}

TEST_F(StackOverflowVariable, OffLeavesTheHandlerAlone) {
    setenv("THRUM_OVERFLOW", "off", 1);
    struct sigaction before, now;
    sigaction(SIGSEGV, nullptr, &before);
    const thrum_config config{2, 0, {}, {}};
    ASSERT_EQ(thrum_init(&config), 0);
    sigaction(SIGSEGV, nullptr, &now);
    ASSERT_EQ(thrum_fini(), 0);
    EXPECT_EQ(same_handler(before), same_handler(now));
}

TEST_F(StackOverflowVariable, OnIsWhatItIsAnyway) {
    setenv("THRUM_OVERFLOW", "on", 1);
    const End end = end_of([] { in_ult([] { descend(0); }); });
    EXPECT_FALSE(says_nothing(end));
}

TEST_F(StackOverflowVariable, AnythingElseIsRefusedInOneLine) {
    setenv("THRUM_OVERFLOW", "perhaps", 1);
    const thrum_config config{2, 0, {}, {}};
    int error = 0;
    const std::string said = stderr_of([&] { error = thrum_init(&config); });
    EXPECT_EQ(error, EINVAL);
    EXPECT_EQ(said, "thrum: THRUM_OVERFLOW is 'perhaps'; it takes on or off\n");
}

} // namespace
