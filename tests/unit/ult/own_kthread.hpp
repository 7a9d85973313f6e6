// SPDX-License-Identifier: Apache-2.0
//
// For the tests of threads with a kernel thread of their own: a runtime of each mode, and what belongs to a kernel thread.
#pragma once

#include <pthread.h>
#include <sys/syscall.h>
#include <thrum/worker.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "preempt.hpp"

inline pid_t tid() {
    return static_cast<pid_t>(syscall(SYS_gettid));
}

inline bool is_there(pid_t thread) {
    return access(("/proc/self/task/" + std::to_string(thread)).c_str(), F_OK) == 0;
}

inline thread_local int local;

// Out of line, so that each finds it anew.
__attribute__((noinline)) inline int *local_here() {
    return &local;
}

inline thrum_attr_t attr_own(unsigned flags = 0) {
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    EXPECT_EQ(thrum_attr_set_flags(&attr, flags | THRUM_SPAWN_OWN_KTHREAD), 0);
    return attr;
}

// The runtime's mode, and so many workers; the first is the test's own.
struct Setting {
    unsigned mode, workers;
};

inline std::string name_of_setting(const testing::TestParamInfo<Setting> &info) {
    static const char *const names[] = {"Default", "None", "Yield", "Lend", "OwnTls", "Klt"};
    return names[info.param.mode] + std::string("On") + std::to_string(info.param.workers);
}

class OverSettings : public testing::TestWithParam<Setting> {
  protected:
    void SetUp() override {
        if (GetParam().mode != THRUM_PREEMPT_NONE && tool_forbids_preemption())
            GTEST_SKIP() << "no thread is preempted under this tool";
        runtime_ = std::make_unique<Preempting>(GetParam().workers, GetParam().mode);
    }
    void TearDown() override { runtime_.reset(); }
    static unsigned workers() { return GetParam().workers; }
    static bool keeps_locals() { return GetParam().mode == THRUM_PREEMPT_OWN_TLS; }

  private:
    std::unique_ptr<Preempting> runtime_;
};

// What must not change as long as the caller has its kernel thread.
class Identity {
  public:
    Identity() : tid_(tid()), self_(pthread_self()), local_(local_here()) { *local_ = value(); }
    void expect_same() const {
        EXPECT_EQ(tid(), tid_);
        EXPECT_EQ(pthread_self(), self_);
        EXPECT_EQ(local_here(), local_);
        EXPECT_EQ(*local_here(), value());
        EXPECT_EQ(thrum_worker_self(), -1);
    }
    pid_t thread() const { return tid_; }

  private:
    int value() const { return static_cast<int>(tid_) + 1; }
    pid_t tid_;
    pthread_t self_;
    int *local_;
};

#define OWN_KTHREAD_OVER_SETTINGS(suite)                                                                     \
    INSTANTIATE_TEST_SUITE_P(Settings, suite,                                                                \
                             testing::Values(Setting{THRUM_PREEMPT_NONE, 1}, Setting{THRUM_PREEMPT_NONE, 2}, \
                                             Setting{THRUM_PREEMPT_YIELD, 2},                                \
                                             Setting{THRUM_PREEMPT_LEND, 1}, Setting{THRUM_PREEMPT_LEND, 2}, \
                                             Setting{THRUM_PREEMPT_OWN_TLS, 1},                              \
                                             Setting{THRUM_PREEMPT_OWN_TLS, 2},                              \
                                             Setting{THRUM_PREEMPT_KLT, 1}, Setting{THRUM_PREEMPT_KLT, 2}),  \
                             name_of_setting)
