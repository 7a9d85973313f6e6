// SPDX-License-Identifier: Apache-2.0
//
// What threads that are preempted start: kernel threads, and, by exec, the program that takes the place of this one. The first have
// the signal mask of the kernel thread on which that happens, which on a worker blocks what is meant for the program; the
// program has what its thread has chosen (thrum-preemption(7), "pthread_create" and "Programs that are started").
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "preempt.hpp"

namespace {

class Starts : public Interrupted, public testing::WithParamInterface<unsigned> {};

INSTANTIATE_TEST_SUITE_P(Modes, Starts, kSafeModes, name_of_mode);

sigset_t mask_here() {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    return mask;
}

bool blocks(const sigset_t &mask, int signal) {
    return sigismember(&mask, signal) == 1;
}

bool are_equal(const sigset_t &one, const sigset_t &other) {
    for (int signal = 1; signal <= SIGRTMAX; signal++)
        if (blocks(one, signal) != blocks(other, signal))
            return false;
    return true;
}

bool is_empty(const sigset_t &mask) {
    sigset_t none;
    sigemptyset(&none);
    return are_equal(mask, none);
}

void wait_for_preemption() {
    for (const uint64_t next = preemptions() + 1; preemptions() < next;) {
    }
}

// On that worker, beside another one that computes there.
void on_worker(unsigned worker, const std::function<void()> &work) {
    std::atomic<bool> over{false};
    thrum_attr_t attr = attr_queued();
    EXPECT_EQ(thrum_attr_set_worker(&attr, worker), 0);
    Light computes([&] { wait_for(over); }, &attr);
    Light works(
        [&] {
            wait_for_preemption();
            work();
            over = true;
        },
        &attr);
    works.join();
}

// What a kernel thread finds that the caller makes.
struct Found {
    sigset_t mask;
    bool is_worker;
};

Found found_by_new(const pthread_attr_t *attr = nullptr) {
    Found found{};
    pthread_t thread{};
    const auto look = [](void *arg) -> void * {
        *static_cast<Found *>(arg) = {mask_here(), thrum_worker_self() >= 0};
        return arg;
    };
    void *result = nullptr;
    EXPECT_EQ(pthread_create(&thread, attr, look, &found), 0);
    EXPECT_EQ(pthread_join(thread, &result), 0);
    EXPECT_EQ(result, &found);
    return found;
}

} // namespace

// Signals that are sent to the process are not for it.
TEST_P(Starts, KernelThreadsThatBlockWhatTheWorkerDoes) {
    const Preempting runtime(2, GetParam());
    on_worker(1, [] {
        const sigset_t own = mask_here();
        const Found found = found_by_new();
        EXPECT_TRUE(are_equal(found.mask, own));
        EXPECT_FALSE(found.is_worker);
        for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGALRM, SIGCHLD, SIGRTMIN})
            EXPECT_TRUE(blocks(found.mask, signal)) << signal;
        for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGRTMIN + 4})
            EXPECT_FALSE(blocks(found.mask, signal)) << signal;
    });
}

// That which thrum_init was called on has the program's mask, and all that run there but in mode klt, where they are carried by
// kernel threads of the library's.
TEST_P(Starts, KernelThreadsOnTheProgramsOwnThatBlockNothing) {
    const Preempting runtime(2, GetParam());
    EXPECT_TRUE(is_empty(found_by_new().mask));
    on_worker(0, [&] { EXPECT_EQ(is_empty(found_by_new().mask), GetParam() != THRUM_PREEMPT_KLT); });
}

TEST_P(Starts, KernelThreadsWithAMaskOfTheirOwn) {
    const Preempting runtime(2, GetParam());
    pthread_attr_t attr;
    sigset_t none;
    sigemptyset(&none);
    ASSERT_EQ(pthread_attr_init(&attr), 0);
    ASSERT_EQ(pthread_attr_setsigmask_np(&attr, &none), 0);
    on_worker(1, [&] { EXPECT_TRUE(is_empty(found_by_new(&attr).mask)); });
    pthread_attr_destroy(&attr);
}

// Their creator is preempted meanwhile.
TEST_P(Starts, KernelThreadsTimeAndAgain) {
    constexpr int kThreads = 6, kTimes = 40;
    const Preempting runtime(2, GetParam(), kShort);
    std::atomic<int> workers{0};
    std::vector<Thread> threads;
    for (int i = 0; i < kThreads; i++)
        threads.emplace_back([&] {
            for (int k = 0; k < divided(kTimes); k++)
                workers += found_by_new().is_worker;
        });
    threads.clear();
    EXPECT_EQ(workers, 0);
}

// --- exec -------------------------------------------------------------------------------------------------

namespace {

enum { BLOCKS_NONE = 0, BLOCKS_SOME = 1 };

// The caller becomes a program that looks at its own mask, and ends with one of these.
[[noreturn]] void become_another() {
    execlp("grep", "grep", "-q", "^SigBlk:[[:space:]]*0*$", "/proc/self/status", nullptr);
    _exit(127);
}

// ... that is there for many slices.
[[noreturn]] void become_one_that_stays() {
    execlp("sleep", "sleep", "0.1", nullptr);
    _exit(127);
}

void block_nothing() {
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

void block_all() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

// Of a child of fork, in which `work` is done by a thread of the second worker's, or by the one that called thrum_init.
enum class Who { PRIMARY, ULT };

int end_of(unsigned mode, Who who, const std::function<void()> &work) {
    const int status = in_child([&] {
        const Preempting runtime(who == Who::ULT ? 2 : 1, mode);
        if (who == Who::ULT) {
            on_worker(1, work);
            return 1;
        }
        Thread computes([] {
            for (volatile bool for_ever = true; for_ever;) {
            }
        });
        wait_for_preemption();
        work();
        return 1;
    });
    return WIFEXITED(status) ? WEXITSTATUS(status) : -status;
}

} // namespace

// What a worker blocks is not its thread's choice.
TEST_P(Starts, AProgramThatBlocksWhatItsThreadHasChosen) {
    EXPECT_EQ(end_of(GetParam(), Who::PRIMARY, become_another), BLOCKS_NONE);
    EXPECT_EQ(end_of(GetParam(), Who::ULT, become_another), BLOCKS_NONE);
    EXPECT_EQ(end_of(GetParam(), Who::ULT, [] { block_all(), become_another(); }), BLOCKS_SOME);
    EXPECT_EQ(end_of(GetParam(), Who::ULT, [] { block_nothing(), become_another(); }), BLOCKS_NONE);
}

// No tick comes to it, which would end it.
TEST_P(Starts, AProgramThatIsLeftAlone) {
    for (const Who who : {Who::PRIMARY, Who::ULT})
        EXPECT_EQ(end_of(GetParam(), who, become_one_that_stays), 0);
}
