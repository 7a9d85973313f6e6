// SPDX-License-Identifier: Apache-2.0
//
// Signal handlers of the program's without SA_ONSTACK, at random moments of threads that switch. The kernel writes a handler's frame
// wherever the stack pointer is: never on a stack that another worker may already run on (arch_context.h).
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "preempt.hpp"

namespace {

enum { RUNS = 12, THREADS = 8, SIGNALS = 1500 };

class HandlerStacks : public Interrupted, public testing::WithParamInterface<unsigned> {
  protected:
    void SetUp() override {
        if (ULT_EMULATED)
            GTEST_SKIP() << "qemu-user has frames and stacks for signals of its own";
        Interrupted::SetUp();
    }
};

std::string name_of(const testing::TestParamInfo<unsigned> &mode) {
    return mode.param == THRUM_PREEMPT_NONE ? "None" : name_of_mode(mode);
}

INSTANTIATE_TEST_SUITE_P(Modes, HandlerStacks,
                         testing::Values(THRUM_PREEMPT_NONE, THRUM_PREEMPT_LEND, THRUM_PREEMPT_OWN_TLS,
                                         THRUM_PREEMPT_KLT),
                         name_of);

std::atomic<int> handled;

// Long enough that whatever else runs on this stack meanwhile is hit, too short for a tick to find it often.
void scribble(int) {
    volatile unsigned char bytes[300];
    for (int round = 0; round < 40; round++)
        for (volatile unsigned char &byte : bytes)
            byte = 7;
    handled++;
}

// Fills a part of the stack, and looks whether it is still there.
__attribute__((noinline)) bool stack_keeps(unsigned number) {
    volatile unsigned char bytes[5000];
    unsigned char next = static_cast<unsigned char>(number);
    for (volatile unsigned char &byte : bytes)
        byte = next++;
    next = static_cast<unsigned char>(number);
    bool all = true;
    for (const volatile unsigned char &byte : bytes)
        all &= byte == next++;
    return all;
}

// Its exit status: 0, if no thread's stack has been written to by others.
int interrupt_switches(unsigned mode, unsigned run) {
    struct sigaction action = {};
    action.sa_handler = scribble;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, nullptr);
    const pthread_t self = pthread_self();
    const Preempting runtime(2, mode, kShort);
    std::atomic<bool> stop{false};
    std::atomic<int> lost{0};
    std::vector<Light> threads;
    std::thread sender([&] {
        std::minstd_rand random(run + 1);
        for (int i = 0; i < SIGNALS; i++) {
            pthread_kill(self, SIGUSR1);
            const timespec nap{0, static_cast<long>(10'000 + random() % 60'000)};
            nanosleep(&nap, nullptr);
        }
        stop = true;
    });
    for (unsigned i = 0; i < THREADS; i++)
        threads.emplace_back([&, i] {
            while (!stop) {
                for (int times = 0; times < 5; times++)
                    thrum_yield();
                lost += !stack_keeps(i);
            }
        });
    threads.clear();
    sender.join();
    return lost == 0 && handled > 0 ? 0 : 1;
}

} // namespace

TEST_P(HandlerStacks, AreTheirs) {
    for (unsigned run = 0; run < RUNS; run++) {
        const int status = in_child([run] { return interrupt_switches(GetParam(), run); }, 60);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "run " << run << ": " << status;
    }
}
