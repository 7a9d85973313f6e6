// SPDX-License-Identifier: Apache-2.0
//
// THRUM_SIGNAL: ticks by another signal than the usual one, which is the program's then (thrum-preemption(7), "Environment").
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include "preempt.hpp"

namespace {

int usual() {
    return SIGRTMIN + 4;
}

int other() {
    return SIGRTMIN + 6;
}

class OtherSignal : public Interrupted, public testing::WithParamInterface<unsigned> {
  protected:
    void TearDown() override {
        unsetenv("THRUM_SIGNAL");
        std::signal(usual(), SIG_DFL);
    }
};

INSTANTIATE_TEST_SUITE_P(Modes, OtherSignal, kSafeModes, name_of_mode);

bool is_untouched(int signal) {
    struct sigaction now = {};
    return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_DFL;
}

void expect_turns_by_other() {
    wait_for_each_other();
    EXPECT_GE(preemptions(), 1U);
    EXPECT_FALSE(is_untouched(other()));
    EXPECT_TRUE(is_untouched(usual()));
}

std::atomic<int> came;

} // namespace

TEST_P(OtherSignal, ByTheEnvironment) {
    for (const std::string &said : {std::string("rtmin+6"), std::to_string(other())}) {
        setenv("THRUM_SIGNAL", said.c_str(), 1);
        {
            const Preempting runtime(1, GetParam());
            expect_turns_by_other();
        }
        EXPECT_TRUE(is_untouched(other())); // again
        EXPECT_TRUE(is_untouched(usual()));
    }
}

TEST_P(OtherSignal, ByTheProgram) {
    const thrum_config config{1, 0, {GetParam(), kSlice, 0, other()}, {}};
    ASSERT_EQ(thrum_init(&config), 0);
    expect_turns_by_other();
    EXPECT_EQ(thrum_fini(), 0);
    EXPECT_TRUE(is_untouched(other())); // again
    EXPECT_TRUE(is_untouched(usual()));
}

TEST_P(OtherSignal, ByTheMonitor) {
    const thrum_config config{1, 0, {GetParam(), kSlice, THRUM_TICK_MONITOR, other()}, {}};
    ASSERT_EQ(thrum_init(&config), 0);
    expect_turns_by_other();
    EXPECT_EQ(thrum_fini(), 0);
}

// A program that has a handler for the usual one is preempted, and its handler is called for what it sends, and for nothing else.
TEST_P(OtherSignal, TheUsualOneIsThePrograms) {
    came = 0;
    std::signal(usual(), [](int) { came++; });
    setenv("THRUM_SIGNAL", "rtmin+6", 1);
    const Preempting runtime(1, GetParam());
    wait_for_each_other();
    EXPECT_GE(preemptions(), 1U);
    EXPECT_EQ(came, 0);
    syscall(SYS_tgkill, getpid(), static_cast<pid_t>(syscall(SYS_gettid)), usual());
    EXPECT_EQ(came, 1);
}
