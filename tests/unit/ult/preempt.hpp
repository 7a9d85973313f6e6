// SPDX-License-Identifier: Apache-2.0
//
// For the tests of preemption: a runtime that does it, its counters, and threads that compute.
#pragma once

#include <sys/auxv.h>
#include <sys/types.h>
#include <thrum/worker.h>

#include <fstream>

#include "crew.hpp"

// Microseconds. Where each instruction takes ten times as long so do slices.
constexpr unsigned kSlice = ULT_EMULATED ? 5000 : 200, kShort = ULT_EMULATED ? 2000 : 50;

// A runtime that preempts, on so many workers.
class Preempting {
  public:
    explicit Preempting(unsigned workers, unsigned mode = THRUM_PREEMPT_LEND, unsigned slice = kSlice) {
        thrum_config config{workers, 0, {mode, slice, 0, 0}, {}};
        error_ = thrum_init(&config);
        EXPECT_EQ(error_, 0);
    }
    ~Preempting() {
        if (error_ == 0) {
            EXPECT_EQ(thrum_fini(), 0);
        }
    }
    Preempting(const Preempting &) = delete;

  private:
    int error_;
};

// Whether threads of the default mode are preempted: on x86-64, where a program may write FS base by an instruction.
inline bool default_preempts() {
#ifdef __x86_64__
    constexpr unsigned long kFsGsBase = 2;
    return (getauxval(AT_HWCAP2) & kFsGsBase) != 0;
#else
    return true;
#endif
}

// Under sanitizers and Valgrind no thread is preempted.
inline bool tool_forbids_preemption() {
    return ULT_ASAN || ULT_TSAN || getenv("ULT_VALGRIND") != nullptr;
}

// Of all workers.
template <typename Counter>
uint64_t sum_of(Counter thrum_worker_counters::*counter) {
    uint64_t sum = 0;
    thrum_worker_counters counters{};
    for (unsigned i = 0; thrum_worker_get_counters(i, &counters) == 0; i++)
        sum += counters.*counter;
    return sum;
}

// Those in which a thread keeps what the C library has of it.
inline const auto kSafeModes = testing::Values(THRUM_PREEMPT_LEND, THRUM_PREEMPT_OWN_TLS, THRUM_PREEMPT_KLT);

inline std::string name_of_mode(const testing::TestParamInfo<unsigned> &mode) {
    return mode.param == THRUM_PREEMPT_LEND ? "Lend" : mode.param == THRUM_PREEMPT_OWN_TLS ? "OwnTls" : "Klt";
}

inline uint64_t preemptions() {
    return sum_of(&thrum_worker_counters::preemptions);
}

inline uint64_t ticks() {
    return sum_of(&thrum_worker_counters::ticks);
}

// A ULT in the queue, of the given mode.
class Thread {
  public:
    explicit Thread(std::function<void()> work, unsigned mode = THRUM_PREEMPT_DEFAULT, unsigned slice = 0)
        : work_(std::make_unique<std::function<void()>>(std::move(work))) {
        thrum_attr_t attr;
        thrum_attr_init(&attr);
        thrum_attr_set_flags(&attr, THRUM_SPAWN_QUEUED);
        EXPECT_EQ(thrum_attr_set_preempt(&attr, mode), 0);
        EXPECT_EQ(thrum_attr_set_slice(&attr, slice), 0);
        auto run = [](void *function) -> void * {
            (*static_cast<std::function<void()> *>(function))();
            return nullptr;
        };
        EXPECT_EQ(thrum_spawn(&handle_, &attr, run, work_.get()), 0);
    }
    ~Thread() { join(); }
    Thread(Thread &&other) noexcept
        : work_(std::move(other.work_)), handle_(std::exchange(other.handle_, nullptr)) {}
    void join() {
        if (handle_ != nullptr) {
            EXPECT_EQ(thrum_join(handle_, nullptr), 0);
        }
        handle_ = nullptr;
    }

  private:
    std::unique_ptr<std::function<void()>> work_;
    thrum_t handle_ = nullptr;
};

inline void wait_for(const std::atomic<bool> &flag) {
    while (!flag.load(std::memory_order_relaxed)) {
    }
}

// Two that wait for each other in a busy loop: on one worker they need a preemption.
inline void wait_for_each_other() {
    std::atomic<bool> one{false}, other{false};
    Thread first([&] {
        one = true;
        wait_for(other);
    });
    Thread second([&] {
        other = true;
        wait_for(one);
    });
    first.join();
    second.join();
}

// Does this kernel thread of the process wait in the kernel?
inline bool is_asleep(pid_t thread) {
    std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
    for (std::string line; std::getline(status, line);)
        if (line.rfind("State:", 0) == 0)
            return line.find("sleeping") != std::string::npos;
    return false;
}

class Interrupted : public testing::Test {
  protected:
    void SetUp() override {
        if (tool_forbids_preemption())
            GTEST_SKIP() << "no thread is preempted under this tool";
    }
};
