// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: kernel threads and processes created by threads that may be preempted at any moment of it. A new
// kernel thread is no worker, though a worker's thread created it; a child has one thread and no ticks.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "preempt_stress.h"

namespace {

constexpr int kKernelThreads = 4, kChildren = 2, kStatus = 42;
constexpr std::uint64_t kBetweenChildren = 20 * THRUM_MS;

struct Visit {
    std::uint64_t value = 0, seen = 0;
    pthread_mutex_t *abandoned = nullptr;
};

thread_local std::uint64_t own = 7;

// On a kernel thread that an actor has made.
void *visit(void *arg) {
    auto *visit = static_cast<Visit *>(arg);
    CHECK(thrum_self() == nullptr);
    CHECK_EQ(own, 7);
    own = visit->value;
    void *block = std::malloc(100);
    std::memset(block, 1, 100);
    thrum_yield(); // nothing, here
    CHECK_EQ(own, visit->value);
    std::free(block);
    visit->seen = visit->value;
    if (visit->abandoned != nullptr)
        CHECK_EQ(pthread_mutex_lock(visit->abandoned), 0); // and it ends
    return arg;
}

// In the child, where the holders of locks at the fork are gone: libc looks after its own.
[[noreturn]] void be_the_child(std::uint64_t value) {
    void *blocks[16];
    for (void *&block : blocks) {
        block = std::malloc(1 + value % 3000);
        if (block == nullptr)
            _exit(1);
    }
    for (void *block : blocks)
        std::free(block);
    char text[64];
    std::snprintf(text, sizeof text, "%f", 1.5);
    if (std::strcmp(text, "1.500000") != 0)
        _exit(2);
    try {
        throw value;
    } catch (std::uint64_t thrown) {
        if (thrown != value)
            _exit(3);
    }
    for (unsigned i = 0; i < 200; i++) // a tick that came along would be seen here
        spin(1000);
    _exit(kStatus);
}

class Limit {
  public:
    Limit(std::atomic<int> &count, int most) : count_(count), mine_(count.fetch_add(1) < most) {}
    ~Limit() { count_--; }
    Limit(const Limit &) = delete;
    explicit operator bool() const { return mine_; }

  private:
    std::atomic<int> &count_;
    bool mine_;
};

class Process : public Torture {
  public:
    const char *name() const override { return "process"; }

    void step(Actor &actor) override {
        const In in(actor, kProcess);
        if (actor.random.one_in(4))
            have_a_child(actor);
        else
            have_a_kernel_thread(actor);
        safepoint();
    }

  private:
    void have_a_kernel_thread(Actor &actor) {
        const Limit limit(threads_, kKernelThreads);
        if (!limit)
            return;
        pthread_mutexattr_t attr;
        pthread_mutex_t mutex;
        CHECK_EQ(pthread_mutexattr_init(&attr), 0);
        CHECK_EQ(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST), 0);
        CHECK_EQ(pthread_mutex_init(&mutex, &attr), 0);
        Visit one{actor.random.next(), 0, actor.random.one_in(2) ? &mutex : nullptr};
        pthread_t thread;
        const int error = pthread_create(&thread, nullptr, visit, &one);
        if (error == 0) {
            void *result = nullptr;
            CHECK_EQ(pthread_join(thread, &result), 0);
            CHECK(result == &one && one.seen == one.value);
            if (one.abandoned != nullptr) { // its owner is dead, and that is not the maker
                CHECK_EQ(pthread_mutex_lock(&mutex), EOWNERDEAD);
                CHECK_EQ(pthread_mutex_consistent(&mutex), 0);
                CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
            }
        } else {
            CHECK_EQ(error, EAGAIN); // under pressure
        }
        CHECK_EQ(pthread_mutex_destroy(&mutex), 0);
    }

    void have_a_child(Actor &actor) {
        const Limit limit(children_, kChildren);
        std::uint64_t last = last_child_;
        if (!limit || thrum_now() < last + kBetweenChildren ||
            !last_child_.compare_exchange_strong(last, thrum_now()))
            return;
        const std::uint64_t value = actor.random.next();
        const pid_t child = fork();
        if (child == 0)
            be_the_child(value);
        if (child < 0) {
            CHECK(errno == EAGAIN || errno == ENOMEM);
            return;
        }
        int status = 0;
        pid_t ended = 0;
        while ((ended = waitpid(child, &status, 0)) < 0 && errno == EINTR)
            ;
        CHECK_EQ(ended, child);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != kStatus)
            fail(__FILE__, __LINE__, "a child has ended with status %#x", static_cast<unsigned>(status));
    }

    std::atomic<int> threads_{0}, children_{0};
    std::atomic<std::uint64_t> last_child_{0};
};

} // namespace

void add_process(Tortures &all) {
    all.push_back(std::make_unique<Process>());
}
