// SPDX-License-Identifier: Apache-2.0
//
// Which signals a worker blocks, and that its ticks tell a thread that blocks some from a handler that does: a handler is not
// preempted, however long it takes and however often one is found (thrum-preemption(7), "Handlers of the program's").
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csetjmp>
#include <csignal>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "inside.h"
#include "preempt.hpp"

namespace {

constexpr int kStays = 64;      // ticks that find a mask before it is a thread's (handler.c)
const int kLate = SIGRTMIN + 1; // a tick that looks for its handler has looked at libc's own signals before

class Masks : public Interrupted, public testing::WithParamInterface<unsigned> {
  protected:
    void SetUp() override {
        if (ULT_EMULATED)
            GTEST_SKIP() << "qemu-user has frames and stacks for signals of its own";
        Interrupted::SetUp();
        alarm(60);
    }
    void TearDown() override {
        alarm(0);
        std::signal(SIGUSR1, SIG_DFL);
        std::signal(kLate, SIG_DFL);
    }
};

INSTANTIATE_TEST_SUITE_P(Modes, Masks, kSafeModes, name_of_mode);

pid_t kernel_thread() {
    return static_cast<pid_t>(syscall(SYS_gettid));
}

void change_mask(int how, int signal) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, signal);
    pthread_sigmask(how, &signals, nullptr);
}

bool is_blocked(int signal) {
    sigset_t signals;
    pthread_sigmask(SIG_BLOCK, nullptr, &signals);
    return sigismember(&signals, signal) != 0;
}

void interrupt_here(int signal) {
    syscall(SYS_tgkill, getpid(), kernel_thread(), signal);
}

std::atomic<int> handled, preempted, moved;
std::atomic<uint64_t> handler_takes; // us

// Of the only worker: one that relieves it may preempt others meanwhile.
uint64_t preemptions_here() {
    thrum_worker_counters counters{};
    EXPECT_EQ(thrum_worker_get_counters(0, &counters), 0);
    return counters.preemptions;
}

// Ticks find it, and one in any case.
void compute(int) {
    const pid_t before = kernel_thread();
    const uint64_t preemptions_before = preemptions_here();
    for (const uint64_t end = in_us(handler_takes); thrum_now() < end;)
        ;
    interrupt_here(SIGRTMIN + 4);
    preempted += preemptions_here() != preemptions_before;
    moved += kernel_thread() != before;
    handled++;
}

void handle(void (*handler)(int), int flags = 0) {
    handled = preempted = moved = 0;
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART | flags;
    ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
}

// Handlers that take so long, one upon the other, in main and in a thread, while another one computes.
int run_handlers(unsigned mode, int times, uint64_t takes, int flags) {
    handler_takes = takes;
    handle(compute, flags);
    const Preempting runtime(1, mode, kShort);
    std::atomic<bool> stop{false};
    Thread computes([&] { wait_for(stop); });
    const auto interrupted = [&] {
        change_mask(SIG_UNBLOCK, SIGUSR1);
        for (int i = 0; i < times; i++)
            interrupt_here(SIGUSR1);
    };
    Thread thread(interrupted);
    interrupted();
    const bool stays_blocked = is_blocked(SIGUSR1);
    thread.join();
    stop = true;
    if (handled == 2 * times && preempted == 0 && moved == 0 && !stays_blocked)
        return 0;
    std::cerr << "handlers: " << handled << " of " << 2 * times << " ran, " << preempted
              << " were preempted, " << moved << " moved; the signal "
              << (stays_blocked ? "stays blocked\n" : "is not blocked\n");
    return 1;
}

void expect_no_preemption(int times, uint64_t takes, int flags = 0) {
    const int status = in_child([=] { return run_handlers(Masks::GetParam(), times, takes, flags); }, 60);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

} // namespace

// As many as would make a mask the thread's, if they were one.
TEST_P(Masks, OfManyShortHandlers) {
    for (int run = 0; run < 12; run++)
        expect_no_preemption(3 * kStays, kShort / 10);
}

// ... also where the kernel takes the CPU away for long, mostly at a tick, in whose handler the signal is blocked: no relief is
// asked for, on whose kernel thread these threads would run with other signals blocked.
TEST_P(Masks, OfManyShortHandlersBesideProcessesThatCompute) {
    std::vector<pid_t> hogs(2 * std::thread::hardware_concurrency());
    for (pid_t &hog : hogs)
        if ((hog = fork()) == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;)
                asm volatile("");
        }
    const int status = in_child(
        [] {
            setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + 5);
            return run_handlers(GetParam(), 6 * kStays, kShort, 0);
        },
        60);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    for (const pid_t hog : hogs) {
        kill(hog, SIGKILL);
        EXPECT_EQ(waitpid(hog, nullptr, 0), hog);
    }
}

TEST_P(Masks, OfOneLongHandler) {
    expect_no_preemption(1, 6 * kStays * kShort);
}

// ... or that has the thread's mask.
TEST_P(Masks, OfHandlersThatBlockNothing) {
    expect_no_preemption(10, 10 * kShort, SA_NODEFER);
}

// A tick that finds a handler there has looked at the actions of signals, libc's own among them: errno is still the handler's.
TEST_P(Masks, OfAHandlerThatReadsErrno) {
    static std::atomic<int> changed;
    handled = changed = 0;
    struct sigaction action = {};
    action.sa_handler = [](int) {
        errno = 0;
        for (int i = 0; i < 10; i++)
            interrupt_here(SIGRTMIN + 4);
        changed += errno;
        handled++;
    };
    ASSERT_EQ(sigaction(kLate, &action, nullptr), 0);
    const Preempting runtime(1, GetParam());
    Thread thread([] {
        change_mask(SIG_UNBLOCK, kLate);
        interrupt_here(kLate);
    });
    thread.join();
    EXPECT_EQ(handled, 1);
    EXPECT_EQ(changed, 0);
}

// The kernel puts a handler's frame where a tick looks for it, however deep the stack pointer stands.
TEST_P(Masks, AFrameIsFoundAtAnyDepth) {
    constexpr int kDepths = 200;
    static std::atomic<int> found;
    static const char *top;
    found = 0;
    handle([](int) { found += inside_finds_handler(top); }, SA_NODEFER);
    const Preempting runtime(1, GetParam());
    const char here = 0;
    top = &here;
    change_mask(SIG_UNBLOCK, SIGUSR1);
    for (size_t depth = 0; depth < kDepths; depth++) {
        volatile char *room = static_cast<volatile char *>(__builtin_alloca(depth * 8 % 200 + 1));
        room[0] = 0;
        interrupt_here(SIGUSR1);
    }
    EXPECT_EQ(found, kDepths);
}

// What it blocks itself it has for good, and it is preempted all the same.
TEST_P(Masks, OfAThread) {
    const Preempting runtime(1, GetParam());
    std::atomic<bool> over{false};
    Thread computes([&] { wait_for(over); });
    Thread blocks([&] {
        change_mask(SIG_BLOCK, SIGUSR2);
        for (const uint64_t next = preemptions() + 10; preemptions() < next;) {
        }
        EXPECT_TRUE(is_blocked(SIGUSR2));
        change_mask(SIG_UNBLOCK, SIGUSR2);
        for (const uint64_t next = preemptions() + 10; preemptions() < next;) {
        }
        over = true;
    });
}

// ... also where handlers have run there, of whose frames the stack shows traces.
TEST_P(Masks, OfAThreadThatHandlersHaveInterrupted) {
    handler_takes = 0;
    handle(compute);
    const Preempting runtime(1, GetParam());
    std::atomic<bool> over{false};
    Thread computes([&] { wait_for(over); });
    Thread blocks([&] {
        change_mask(SIG_UNBLOCK, SIGUSR1);
        for (int i = 0; i < 10; i++)
            interrupt_here(SIGUSR1);
        change_mask(SIG_BLOCK, SIGUSR2);
        for (const uint64_t next = preemptions() + 10; preemptions() < next;) {
        }
        change_mask(SIG_UNBLOCK, SIGUSR2);
        over = true;
    });
    blocks.join();
    computes.join();
    EXPECT_EQ(handled, 10);
}

// A thread that moves between reading a mask and installing it, as a preempted one may: workers block what is for the program, and
// the kernel thread that called thrum_init does not.
namespace {

// First on the worker `from`, then on the other.
void on_both(unsigned mode, unsigned from, const std::function<void()> &first,
             const std::function<void()> &then) {
    const Preempting preempting(2, mode);
    thrum_attr_t attr = attr_queued();
    ASSERT_EQ(thrum_attr_set_worker(&attr, from), 0);
    Light thread(
        [&] {
            first();
            EXPECT_EQ(thrum_migrate(thrum_self(), 1 - from), 0);
            thrum_yield();
            then();
        },
        &attr);
    thread.join();
}

bool first_lets_in(unsigned mode) {
    return mode != THRUM_PREEMPT_KLT; // there it is another kernel thread
}

} // namespace

TEST_P(Masks, OfAWorkerAreNotInstalledInTheProgramsKernelThread) {
    using Install = int (*)(int, const sigset_t *, sigset_t *);
    for (const Install install : {static_cast<Install>(pthread_sigmask), static_cast<Install>(sigprocmask)}) {
        sigset_t before;
        on_both(
            GetParam(), 1,
            [&] {
                sigset_t signals;
                sigemptyset(&signals);
                sigaddset(&signals, SIGINT);
                EXPECT_EQ(install(SIG_BLOCK, &signals, &before), 0); // as it is anyway
                EXPECT_EQ(sigismember(&before, SIGTERM), 1);
            },
            [&] {
                EXPECT_EQ(install(SIG_SETMASK, &before, nullptr), 0);
                EXPECT_EQ(is_blocked(SIGTERM), !first_lets_in(GetParam()));
            });
        EXPECT_FALSE(is_blocked(SIGTERM));
    }
}

// What the program chooses is installed, also if it is nearly a worker's.
TEST_P(Masks, OfTheProgramsChoiceAreInstalled) {
    on_both(
        GetParam(), 0,
        [] {
            sigset_t all, before;
            sigfillset(&all);
            for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
                sigdelset(&all, signal);
            EXPECT_EQ(pthread_sigmask(SIG_SETMASK, &all, &before), 0);
            EXPECT_TRUE(is_blocked(SIGTERM));
            EXPECT_EQ(pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
        },
        [] {
            sigset_t none, before;
            sigemptyset(&none);
            EXPECT_EQ(pthread_sigmask(SIG_SETMASK, &none, &before), 0);
            EXPECT_FALSE(is_blocked(SIGTERM));
            EXPECT_EQ(pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
        });
}

#ifdef __x86_64__
namespace {

class MasksPlain : public Interrupted {};

// Runs a function by single steps, and moves the thread to the other worker at up to two of its places, as a preemption would: when
// it returns there it has the mask and the alternate stack of the worker on which it is then. A thread with another mask than its
// worker's is not moved, nor is one that ticks spare. Places are where a region has been left, or a system call has been made: before
// the next of these nothing depends on the worker. Or all are.
struct Steps {
    static constexpr long kTrapFlag = 0x100;
    static inline std::atomic<int> places, first, second;
    static inline std::atomic<bool> was_inside, are_all;

    static void take(int, siginfo_t *, void *context) {
        auto *frame = static_cast<ucontext_t *>(context);
        if (inside_regions() != 0) {
            was_inside = true;
            return;
        }
        if (inside_is_spared(pc_of(frame)) || (!are_all && !was_inside && !is_after_call(frame)))
            return;
        was_inside = false;
        const int place = ++places;
        if (place != first && place != second)
            return;
        if (is_blocked(SIGTERM) != (inside_worker_blocks(SIGTERM) != 0))
            return;
        move_to(1 - static_cast<unsigned>(thrum_worker_self()));
        pthread_sigmask(SIG_BLOCK, nullptr, &frame->uc_sigmask);
        sigaltstack(nullptr, &frame->uc_stack);
        if (place >= second)
            frame->uc_mcontext.gregs[REG_EFL] &= ~kTrapFlag;
    }

    static std::uintptr_t pc_of(const ucontext_t *frame) {
        return static_cast<std::uintptr_t>(frame->uc_mcontext.gregs[REG_RIP]);
    }

    static bool is_after_call(const ucontext_t *frame) {
        const auto *next =
            reinterpret_cast<const unsigned char *>(pc_of(frame)); // NOLINT(performance-no-int-to-ptr)
        return next[-2] == 0x0f && next[-1] == 0x05;               // syscall
    }

    static void move_to(unsigned worker) {
        EXPECT_EQ(thrum_migrate(thrum_self(), worker), 0);
        thrum_yield();
        EXPECT_EQ(thrum_worker_self(), static_cast<int>(worker));
    }

    // Returns how many places there were.
    template <typename F>
    static int run(int move, int move_back, const F &call) {
        places = 0;
        was_inside = true;
        first = move;
        second = move_back;
        asm volatile(
            "lea -128(%%rsp), %%rsp; pushfq; orq %0, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::"i"(kTrapFlag)
            : "memory", "cc");
        call();
        asm volatile(
            "lea -128(%%rsp), %%rsp; pushfq; andq %0, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::"i"(~kTrapFlag)
            : "memory", "cc");
        return places;
    }
};

void in_stepped_thread(const std::function<void()> &work) {
    const Preempting preempting(2);
    struct sigaction action = {}, before = {};
    action.sa_sigaction = Steps::take;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    ASSERT_EQ(sigaction(SIGTRAP, &action, &before), 0);
    thrum_attr_t attr = attr_queued();
    ASSERT_EQ(thrum_attr_set_worker(&attr, 1), 0);
    Light thread(work, &attr);
    thread.join();
    EXPECT_EQ(sigaction(SIGTRAP, &before, nullptr), 0);
    EXPECT_FALSE(is_blocked(SIGTERM));
}

// A coroutine that returns to where it was called from.
class Coroutine {
  public:
    Coroutine() {
        getcontext(&inner_);
        inner_.uc_stack.ss_sp = stack_.data();
        inner_.uc_stack.ss_size = stack_.size();
        here_ = this;
        makecontext(
            &inner_,
            [] {
                for (;;)
                    here_->back();
            },
            0);
    }
    void go() { swapcontext(&outer_, &inner_); }
    void back() { swapcontext(&inner_, &outer_); }

  private:
    static inline Coroutine *here_;
    std::array<char, std::size_t{64} << 10> stack_{};
    ucontext_t outer_{}, inner_{};
};

} // namespace

namespace {

// A handler that computes for many slices, and then waits in the kernel, at the first places that ticks spare. From the first on
// another thread can run in its place. The thread is stepped no more when the last is left: it may be preempted.
struct WaitsInSwitch {
    static constexpr int kPlaces = 20;
    static inline std::atomic<int> places, moved, preempted;
    static inline std::atomic<bool> waits, other_waits;

    static void take(int, siginfo_t *, void *context) {
        auto *frame = static_cast<ucontext_t *>(context);
        if (!inside_is_spared(Steps::pc_of(frame)))
            return;
        constexpr timespec kNap{0, 100000};
        const pid_t before = kernel_thread();
        waits = true;
        while (!other_waits) {
        }
        const uint64_t preemptions_before = preemptions();
        for (const uint64_t end = in_us(10 * uint64_t{kShort}); thrum_now() < end;) {
        }
        preempted += preemptions() != preemptions_before;
        nanosleep(&kNap, nullptr);
        moved += kernel_thread() != before;
        if (++places == kPlaces)
            frame->uc_mcontext.gregs[REG_EFL] &= ~Steps::kTrapFlag;
    }
};

} // namespace

// It stays where it is: so the mask that the switch installs is still that of its worker.
TEST_F(MasksPlain, OfASwitchInWhichAHandlerWaits) {
    const Preempting preempting(2, THRUM_PREEMPT_LEND, kShort);
    WaitsInSwitch::places = WaitsInSwitch::moved = WaitsInSwitch::preempted = 0;
    WaitsInSwitch::waits = WaitsInSwitch::other_waits = false;
    struct sigaction action = {}, before = {};
    action.sa_sigaction = WaitsInSwitch::take;
    action.sa_flags = SA_SIGINFO;
    ASSERT_EQ(sigaction(SIGTRAP, &action, &before), 0);
    std::atomic<bool> over{false};
    thrum_attr_t attr = attr_queued();
    ASSERT_EQ(thrum_attr_set_worker(&attr, 1), 0);
    Light switches(
        [&] {
            const auto coroutine = std::make_unique<Coroutine>();
            coroutine->go();
            Steps::run(0, 0, [&] { coroutine->go(); });
            EXPECT_EQ(is_blocked(SIGTERM), thrum_worker_self() != 0);
            over = true;
        },
        &attr);
    wait_for(WaitsInSwitch::waits);
    Light computes([&] { wait_for(over); }, &attr);
    WaitsInSwitch::other_waits = true;
    switches.join();
    computes.join();
    EXPECT_EQ(sigaction(SIGTRAP, &before, nullptr), 0);
    EXPECT_EQ(WaitsInSwitch::places, WaitsInSwitch::kPlaces);
    EXPECT_EQ(WaitsInSwitch::preempted, 0);
    EXPECT_EQ(WaitsInSwitch::moved, 0);
    EXPECT_FALSE(is_blocked(SIGTERM));
}

// ... wherever in the call it is moved away and back: the mask is chosen for the worker on which it is installed.
TEST_F(MasksPlain, OfAThreadThatIsMovedAwayAndBackInTheCall) {
    in_stepped_thread([] {
        sigset_t masks[2];
        for (const unsigned worker : {0U, 1U}) {
            Steps::move_to(worker);
            pthread_sigmask(SIG_BLOCK, nullptr, &masks[worker]);
        }
        const auto install = [&] { pthread_sigmask(SIG_SETMASK, &masks[1], nullptr); };
        Steps::are_all = false;
        for (const unsigned begins : {0U, 1U}) {
            Steps::move_to(begins);
            const int places = Steps::run(0, INT_MAX, install);
            EXPECT_GE(places, 4);
            for (int away = 1; away <= places; away++)
                for (int back = away + 1; back <= places + 1; back++) {
                    Steps::move_to(begins);
                    Steps::run(away, back, install);
                    ASSERT_EQ(is_blocked(SIGTERM), thrum_worker_self() != 0)
                        << begins << ", " << away << ", " << back;
                }
        }
    });
}

// ... or in a switch to a coroutine and back, before one of its instructions.
TEST_F(MasksPlain, OfAThreadThatIsMovedWhileItSwitchesToACoroutine) {
    enum { STRIDE = 7 }; // what ticks spare is longer
    in_stepped_thread([] {
        const auto coroutine = std::make_unique<Coroutine>();
        const auto there_and_back = [&] { coroutine->go(); };
        there_and_back();
        Steps::are_all = true;
        for (const unsigned begins : {0U, 1U}) {
            Steps::move_to(begins);
            const int places = Steps::run(0, INT_MAX, there_and_back);
            EXPECT_GE(places, 50);
            for (int away = 1; away <= places; away += STRIDE) {
                Steps::move_to(begins);
                Steps::run(away, away, there_and_back);
                ASSERT_EQ(is_blocked(SIGTERM), thrum_worker_self() != 0) << begins << ", " << away;
            }
        }
    });
}

// ... as by ticks.
TEST_F(MasksPlain, OfCoroutinesWhoseThreadIsPreempted) {
    const Preempting preempting(2, THRUM_PREEMPT_LEND, kShort);
    std::atomic<bool> over{false};
    std::atomic<int> wrong{0}, rounds{0};
    std::array<Thread, 2> computes = {Thread([&] { wait_for(over); }), Thread([&] { wait_for(over); })};
    Thread thread([&] {
        const auto coroutine = std::make_unique<Coroutine>();
        for (const uint64_t end = in_us(400000); thrum_now() < end; rounds++) {
            coroutine->go();
            inside_enter();
            wrong += is_blocked(SIGTERM) != (inside_worker_blocks(SIGTERM) != 0);
            inside_leave();
        }
    });
    thread.join();
    over = true;
    EXPECT_EQ(wrong, 0) << "of " << rounds;
}
#endif

namespace {

__attribute__((noinline)) void use_stack() {
    std::array<volatile char, 4096> used;
    for (volatile char &byte : used)
        byte = 1;
}

} // namespace

// A context that was saved has nothing of the library's on the stack, which its caller has used since.
TEST(Contexts, AreResumedAgainAndAgain) {
    const Preempting preempting(1, THRUM_PREEMPT_NONE);
    Light thread([] {
        ucontext_t context, here;
        volatile int times = 0, saved = 0;
        getcontext(&here);
        if (saved++ == 0)
            swapcontext(&context, &here);
        use_stack();
        if (times++ < 3)
            setcontext(&context);
        EXPECT_EQ(times, 4);
    });
    thread.join();
}

TEST_P(Masks, OfJumpsAreThoseOfTheWorkerTheyAreMadeOn) {
    for (const unsigned from : {0U, 1U}) {
        volatile bool jumped = false;
        const Preempting preempting(2, GetParam());
        thrum_attr_t attr = attr_queued();
        ASSERT_EQ(thrum_attr_set_worker(&attr, from), 0);
        Light thread(
            [&] {
                sigjmp_buf here;
                if (sigsetjmp(here, 1) == 0) {
                    EXPECT_EQ(thrum_migrate(thrum_self(), 1 - from), 0);
                    thrum_yield();
                    siglongjmp(here, 1);
                }
                jumped = true;
                const bool lets_in = thrum_worker_self() == 0 && first_lets_in(GetParam());
                EXPECT_EQ(is_blocked(SIGTERM), !lets_in) << "from " << from;
            },
            &attr);
        thread.join();
        EXPECT_TRUE(jumped);
    }
    EXPECT_FALSE(is_blocked(SIGTERM));
}

// ... and a mask of the program's choice is brought back.
TEST_P(Masks, OfJumpsAreWhatSigsetjmpSaved) {
    const Preempting preempting(1, GetParam());
    Light thread([] {
        sigjmp_buf here;
        change_mask(SIG_UNBLOCK, SIGUSR2); // in mode klt all workers block it
        if (sigsetjmp(here, 1) == 0) {
            change_mask(SIG_BLOCK, SIGUSR2);
            siglongjmp(here, 1);
        }
        EXPECT_FALSE(is_blocked(SIGUSR2));
        volatile bool jumped = false;
        if (sigsetjmp(here, 0) == 0) {
            change_mask(SIG_BLOCK, SIGUSR2);
            siglongjmp(here, 1);
        }
        jumped = true;
        EXPECT_EQ(is_blocked(SIGUSR2), jumped);
        change_mask(SIG_UNBLOCK, SIGUSR2);
    });
    thread.join();
}
