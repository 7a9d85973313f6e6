// SPDX-License-Identifier: Apache-2.0
//
// What the tests share: waiting, threads of libc's own, processes of their own, and the kthread layer set up as a
// library, with a fixture that finds whatever a test leaves behind.
#pragma once

#include <gtest/gtest.h>

#include <list>
#include <memory>
#include <mutex>

#include "core.hpp"
#include "faults.hpp"

#if defined(__has_feature)
#define UNIT_HAS_FEATURE(feature) __has_feature(feature)
#else
#define UNIT_HAS_FEATURE(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || UNIT_HAS_FEATURE(address_sanitizer)
#define UNIT_ASAN 1
#else
#define UNIT_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || UNIT_HAS_FEATURE(thread_sanitizer)
#define UNIT_TSAN 1
#else
#define UNIT_TSAN 0
#endif

#ifndef UNIT_EMULATED
#define UNIT_EMULATED 0
#endif

// A sanitizer or an emulator may have a thread of its own in the process.
constexpr size_t kForeignThreads = UNIT_TSAN + UNIT_EMULATED;
// Stress shrinks under sanitizers.
constexpr int kStressDivisor = UNIT_TSAN ? 20 : UNIT_ASAN || UNIT_EMULATED ? 5 : 1;
constexpr size_t kStackSize = 1 << 20;
constexpr size_t kGuardSize = 4096;
constexpr kthread_kind kKind{kStackSize, kGuardSize, 0, {}};

// Waits until it is true; false after 20 seconds.
bool eventually(const std::function<bool()> &condition);
// Long enough for a thread that is not held up to go on.
void a_while();

// A thread that the layer knows nothing of.
class Plain {
  public:
    explicit Plain(std::function<void()> work, size_t stack_size = kStackSize);
    ~Plain() { join(); }
    Plain(const Plain &) = delete;
    void join();
    // True if it ended by cancellation.
    bool cancelled();
    pthread_t handle() const { return handle_; }

  private:
    std::unique_ptr<std::function<void()>> work_;
    pthread_t handle_;
    bool joined_ = false, cancelled_ = false;
};

// Runs it in a forked child, with this thread as its only one; the number of what failed in it, or 1000 and the
// signal that ended it. `work` returns 0 for all's well.
int in_child(const std::function<int()> &work);

// --- the layer --------------------------------------------------------------------------------------------

// Fills the table, and tries kthread_init() with a libc that is not understood before the real one.
struct LayerInit {
    bool with_nothing, with_one_module, with_wrong_numbers, with_libc, once_more;
    size_t static_tls; // what libc has of it on each stack
};
const LayerInit &layer_init();

struct TlsVariables {
    int seven, zero;
    char room[2048];
};
extern "C" TlsVariables *linked_variables();

size_t known_descriptors();
size_t threads_of_process();
uint64_t counted(enum kthread_retire why);

class Layer : public testing::Test {
  protected:
    using Job = std::function<void *()>;
    struct Started {
        int error = 0;
        pthread_t handle = 0;
        struct kthread *thread = nullptr;
    };

    void SetUp() override;
    void TearDown() override;

    // Starts the job on a thread of the layer's. Any thread may call this. kthread_start's answer is in `error`.
    Started start(Job job, bool detached = false);
    Started start_of(const kthread_kind &kind, Job job, bool detached = false);
    // Joins, expecting no error; the result.
    void *join(const Started &started);
    // Starts and joins, and gives back the kernel thread's tid: an idle thread of this tid is left, if it is kept.
    pid_t run(Job job = nullptr);
    // Starts `count` jobs that run at the same time and joins them: as many idle threads are left.
    void make_idle(unsigned count, const kthread_kind &of = kKind);

  private:
    std::mutex jobs_lock_;
    std::list<Job> jobs_; // until the test's end: a detached one has no other owner
    size_t descriptors_before_ = 0, threads_before_ = 0;
};

pid_t own_tid();
