// SPDX-License-Identifier: Apache-2.0
//
// What the tests of libthrum share: a runtime of 1, 2, 4, 8 and 64 workers about each test, which fails on whatever
// the test leaves behind; ULTs from lambdas; external kernel threads.
//
//     class Mutex : public Ult {};
//
//     TEST_P(Mutex, IsHandedOn) {
//         in_ult([] { ... });                         // the body, on a ULT that may move
//     }
//
//     ULT_OVER_WORKERS(Mutex);
//
// A suite's name is found by CMakeLists.txt where TEST, TEST_F or TEST_P stands at the beginning of a line, and becomes
// the ctest test ult.<Suite>, a process of its own. Tests must not use thread-local variables across a switch.
#pragma once

#include <gtest/gtest.h>
#include <thrum/thrum.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#if defined(__has_feature)
#define ULT_HAS_FEATURE(feature) __has_feature(feature)
#else
#define ULT_HAS_FEATURE(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || ULT_HAS_FEATURE(address_sanitizer)
#define ULT_ASAN 1
#else
#define ULT_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || ULT_HAS_FEATURE(thread_sanitizer)
#define ULT_TSAN 1
#else
#define ULT_TSAN 0
#endif
#ifndef ULT_EMULATED
#define ULT_EMULATED 0
#endif

// What is done many times is done so many times less under sanitizers and emulators.
constexpr int kStressDivisor = ULT_TSAN ? 40 : ULT_ASAN || ULT_EMULATED ? 10 : 1;

// --- ULTs -------------------------------------------------------------------------------------------------

// A ULT that runs `work`, joined by join() or at the end. May be made by and joined from ULTs and external threads.
class Light {
  public:
    using Work = std::function<void()>;
    explicit Light(Work work, const thrum_attr_t *attr = nullptr);
    ~Light() { join(); }
    Light(Light &&other) noexcept
        : work_(std::move(other.work_)), handle_(std::exchange(other.handle_, nullptr)) {}
    Light &operator=(Light &&) = delete;
    void join();
    thrum_t handle() const { return handle_; }

  private:
    std::unique_ptr<Work> work_;
    thrum_t handle_ = nullptr;
};

// An external kernel thread. A waiter for its end waits as a ULT does: its worker runs others meanwhile.
class External {
  public:
    explicit External(Light::Work work);
    ~External() { join(); }
    External(const External &) = delete;
    void join();

  private:
    void run(const Light::Work &work);

    thrum_mutex_t mutex_ = THRUM_MUTEX_INITIALIZER;
    thrum_cond_t ended_ = THRUM_COND_INITIALIZER;
    bool over_ = false;
    std::thread thread_;
};

// Runs it on a ULT of its own and waits for its end.
void in_ult(const Light::Work &work);
// Starts it detached. It must report itself that it is over.
void detached(Light::Work work);

thrum_attr_t attr_queued();
thrum_attr_t attr_stack(std::size_t size);
thrum_attr_t attr_pool(thrum_pool_t pool);

// Waits, letting others run, until it is true; false after 20 seconds. From ULTs and external threads.
bool eventually(const std::function<bool()> &condition);

// Computes for so long without letting others run.
void spin_us(double microseconds);

// --- the process ------------------------------------------------------------------------------------------

std::size_t threads_of_process();
// By /proc/self/maps, the heap apart. Not in how many areas: those that lie side by side are one, and where they lie is
// the kernel's affair.
std::size_t mapped_bytes();

// Others' come and go: the cache's, the tools', the emulators'.
bool has_foreign_mappings();
std::size_t resident_bytes();

// Whether thrum_dump() can: emulators lack process_vm_readv.
bool can_dump();

// What `work` wrote to stderr.
std::string stderr_of(const std::function<void()> &work);

// Runs it in a forked child, with this thread as its only one; the child's wait status. `work` returns its exit
// status. A child that hangs is killed after so many seconds (SIGALRM).
int in_child(const std::function<int()> &work, unsigned seconds = 20);

// --- fixtures ---------------------------------------------------------------------------------------------

// Fails when there are more threads or mappings at its end than there were at its beginning.
class LeakCheck {
  public:
    LeakCheck();
    void expect_nothing_left() const;

  private:
    std::size_t mapped_;
    std::size_t threads_;
};

// A test that starts and stops the runtime itself.
class UltPlain : public testing::Test {
  protected:
    void SetUp() override { before_ = std::make_unique<LeakCheck>(); }
    void TearDown() override { before_->expect_nothing_left(); }

  private:
    std::unique_ptr<LeakCheck> before_;
};

// A test inside a runtime of workers() workers; the test's own thread is the first of them, bound.
class Ult : public testing::TestWithParam<unsigned> {
  protected:
    void SetUp() override;
    void TearDown() override;
    static unsigned workers() { return GetParam(); }
    virtual unsigned mode() const { return THRUM_PREEMPT_DEFAULT; }

  private:
    std::unique_ptr<LeakCheck> before_;
};

// ... in which no thread is preempted: for tests that define the order.
class UltInTurn : public Ult {
  protected:
    unsigned mode() const override { return THRUM_PREEMPT_NONE; }
};

// ... whose child of fork makes threads. The emulator's can make none where its parent has several, as preemption makes some.
class UltForking : public Ult {
  protected:
    unsigned mode() const override { return ULT_EMULATED ? THRUM_PREEMPT_NONE : THRUM_PREEMPT_DEFAULT; }
};

std::string name_of_workers(const testing::TestParamInfo<unsigned> &info); // "On4"

// Sanitizers make each so much slower that there are fewer of them; to TSan one worker can have no race.
#if ULT_TSAN
#define ULT_WORKERS testing::Values(2U, 4U)
#elif ULT_ASAN
#define ULT_WORKERS testing::Values(1U, 2U, 8U)
#else
#define ULT_WORKERS testing::Values(1U, 2U, 4U, 8U, 64U)
#endif

#define ULT_OVER_WORKERS(suite) INSTANTIATE_TEST_SUITE_P(Workers, suite, ULT_WORKERS, name_of_workers)
