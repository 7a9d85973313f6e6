// SPDX-License-Identifier: Apache-2.0
//
// For the tests of synchronisation: ULTs, external kernel threads and the bound main thread that do the same at once,
// and a look into an object's list of waiters.
#pragma once

#include <sys/mman.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <memory>
#include <thread>
#include <vector>

#include "checked.h"
#include "ult.hpp"

constexpr uint64_t kNever = UINT64_MAX;

inline uint64_t in_ms(uint64_t ms) {
    return thrum_now() + ms * THRUM_MS;
}
inline uint64_t in_us(uint64_t us) {
    return thrum_now() + us * THRUM_US;
}

// work(i) on an external kernel thread each. A ULT must not wait in the kernel for them: its worker would.
class Heavies {
  public:
    Heavies(int count, const std::function<void(int)> &work, int first = 0) : left_(count) {
        for (int i = 0; i < count; i++)
            threads_.emplace_back([this, work, i, first] {
                work(first + i);
                left_--;
            });
    }
    ~Heavies() { join(); }
    void join() {
        while (!eventually([this] { return left_ == 0; })) {
        }
        for (std::thread &thread : threads_)
            thread.join();
        threads_.clear();
    }

  private:
    std::atomic<int> left_;
    std::vector<std::thread> threads_;
};

// work(0 ... lights + heavies) on so many ULTs, so many external kernel threads, and, the last one, the caller.
inline void crew(int lights, int heavies, const std::function<void(int)> &work) {
    Heavies externals(heavies, work, lights);
    std::vector<Light> ults;
    ults.reserve(static_cast<size_t>(lights));
    for (int i = 0; i < lights; i++)
        ults.emplace_back([&work, i] { work(i); });
    work(lights + heavies);
    ults.clear();
}

inline int divided(int count) {
    return count / kStressDivisor > 0 ? count / kStressDivisor : 1;
}

// A list of waiters (src/sync/waiters.h) begins with a pointer to the first, and each node with one to the next. For
// lists that do not change meanwhile, but by what is put at their ends. Looks without asking, behind TSan's back.
__attribute__((no_sanitize("thread"))) inline int listed(const uint64_t *list) {
    int count = 0;
    for (uint64_t at = *const_cast<const volatile uint64_t *>(list); at != 0;
         at = *reinterpret_cast<const volatile uint64_t *>(at))
        count++;
    return count;
}
// Objects that are a queue (src/sync/queue.h): all but readers-writer locks and channels.
template <typename Object>
int waiting(const Object &object) {
    return listed(object.opaque + 1);
}
template <typename Object>
bool eventually_waiting(const Object &object, int count) {
    return eventually([&] { return waiting(object) == count; });
}

// An object on a page of its own that is unmapped by drop(): a later access kills the process.
template <typename Object>
class OnPage {
  public:
    OnPage() {
        void *page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        object_ = new (page) Object{};
    }
    void drop() { munmap(object_, 4096); }
    Object *get() const { return object_; }

  private:
    Object *object_;
};

// What a debug build says before it aborts. In other builds `work` must return the error.
inline void expect_misuse(int error, const char *line, const std::function<int()> &work) {
    if (!library_is_checked()) {
        EXPECT_EQ(work(), error);
        return;
    }
    int status = 0;
    const std::string said = stderr_of([&] { status = in_child(work); });
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << status;
    EXPECT_EQ(said, std::string("thrum: misuse: ") + line + "\n");
}
