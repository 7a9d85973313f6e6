// SPDX-License-Identifier: Apache-2.0
//
// See crew.hpp.
#include "crew.hpp"

#include <sched.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include <thrum/thrum.h>
#include <thrum/worker.h>

#include "common.hpp"

namespace casestudy {

std::uint64_t now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000000000 + static_cast<std::uint64_t>(now.tv_nsec);
}

void sleep_in_kernel_until(std::uint64_t moment) {
    const timespec end = {static_cast<time_t>(moment / 1000000000), static_cast<long>(moment % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr) == EINTR) {
    }
}

namespace {

void check(int error, const char *what) {
    if (error != 0)
        throw bench::Failure(std::string(what) + ": " + std::strerror(error));
}

// --- kernel threads ---------------------------------------------------------------------------------------

class KernelBell : public Bell {
  public:
    void wait() override {
        std::unique_lock<std::mutex> lock(mutex_);
        rung_.wait(lock, [this] { return over_; });
    }
    void ring() override {
        const std::lock_guard<std::mutex> lock(mutex_);
        over_ = true;
        rung_.notify_one();
    }

  private:
    std::mutex mutex_;
    std::condition_variable rung_;
    bool over_ = false;
};

// The calling thread is one of them, so that none is there that only waits for the others.
class KernelThreads : public Crew {
  public:
    explicit KernelThreads(unsigned size) : size_(size) {}
    void run(unsigned count, const std::function<void(unsigned)> &task) override {
        std::atomic<unsigned> next{0};
        const auto take = [&] {
            for (unsigned i; (i = next.fetch_add(1)) < count;)
                task(i);
        };
        std::vector<std::thread> others;
        for (unsigned i = 1; i < size_; i++)
            others.emplace_back(take);
        take();
        for (std::thread &other : others)
            other.join();
    }
    void sleep_until(std::uint64_t moment) override { sleep_in_kernel_until(moment); }
    void yield() override { sched_yield(); }
    std::unique_ptr<Bell> bell() override { return std::make_unique<KernelBell>(); }
    void block(const std::function<void()> &call) override { call(); }
    void block_few(const std::function<void()> &call) override { call(); }

  private:
    unsigned size_;
};

// --- user-level threads -----------------------------------------------------------------------------------

class UltBell : public Bell {
  public:
    void wait() override {
        thrum_mutex_lock(&mutex_);
        while (!over_)
            thrum_cond_wait(&rung_, &mutex_);
        thrum_mutex_unlock(&mutex_);
    }
    void ring() override {
        thrum_mutex_lock(&mutex_);
        over_ = true;
        thrum_cond_signal(&rung_);
        thrum_mutex_unlock(&mutex_);
    }

  private:
    thrum_mutex_t mutex_ = THRUM_MUTEX_INITIALIZER;
    thrum_cond_t rung_ = THRUM_COND_INITIALIZER;
    bool over_ = false;
};

class UserLevelThreads : public Crew {
  public:
    explicit UserLevelThreads(unsigned size) : size_(size) {}
    void run(unsigned count, const std::function<void(unsigned)> &task) override {
        struct Job {
            const std::function<void(unsigned)> *task;
            unsigned number;
        };
        const thrum_config config{size_, 0, {}, {}};
        std::vector<Job> jobs(count);
        std::vector<thrum_t> threads(count);
        check(thrum_init(&config), "thrum_init");
        for (unsigned i = 0; i < count; i++) {
            jobs[i] = {&task, i};
            const auto call = [](void *arg) -> void * {
                const auto *job = static_cast<const Job *>(arg);
                (*job->task)(job->number);
                return nullptr;
            };
            check(thrum_spawn(&threads[i], nullptr, call, &jobs[i]), "thrum_spawn");
        }
        for (const thrum_t thread : threads)
            check(thrum_join(thread, nullptr), "thrum_join");
        check(thrum_fini(), "thrum_fini");
    }
    void sleep_until(std::uint64_t moment) override { thrum_sleep_until(moment); }
    void yield() override { thrum_yield(); }
    std::unique_ptr<Bell> bell() override { return std::make_unique<UltBell>(); }
    void block(const std::function<void()> &call) override {
        const auto plain = [](void *arg) -> void * {
            (*static_cast<const std::function<void()> *>(arg))();
            return nullptr;
        };
        auto *argument = const_cast<std::function<void()> *>(&call);
        check(thrum_blocking(plain, argument, nullptr), "thrum_blocking");
    }
    void block_few(const std::function<void()> &call) override {
        thrum_sem_wait(&few_);
        block(call);
        thrum_sem_post(&few_);
    }

  private:
    unsigned size_;
    thrum_sem_t few_ = THRUM_SEM_INITIALIZER(kFew);
};

} // namespace

std::unique_ptr<Crew> make_crew(const std::string &name, unsigned size) {
    if (name == "threads")
        return std::make_unique<KernelThreads>(size);
    if (name == "ults")
        return std::make_unique<UserLevelThreads>(size);
    throw bench::Failure("a crew is threads or ults, not '" + name + "'", bench::Failure::kUsage);
}

} // namespace casestudy
