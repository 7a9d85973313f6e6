// SPDX-License-Identifier: Apache-2.0
//
// How the sampler of `thrum stat` learns which threads there are where they are many: this process's own, which sleep. The
// clock that it is told is the test's; what its looks cost is CPU time.
#include <gtest/gtest.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "stat/layers.hpp"
#include "stat/task_files.hpp"

namespace {

using thrum::stat::ProcThread;
using thrum::stat::Sampler;

constexpr double kBudget = 0.0125;

// Threads that sleep until they are ended.
class Sleepers {
  public:
    explicit Sleepers(std::size_t count) : all_(count) {
        pthread_attr_t small;
        pthread_attr_init(&small);
        pthread_attr_setstacksize(&small, 64 << 10);
        for (Sleeper &sleeper : all_) {
            sem_init(&sleeper.may_end, 0, 0);
            if (pthread_create(&sleeper.thread, &small, sleep, &sleeper) != 0)
                throw std::runtime_error("no thread");
        }
        pthread_attr_destroy(&small);
        for (const Sleeper &sleeper : all_)
            while (!is_asleep(sleeper.id))
                usleep(1000);
    }
    ~Sleepers() { end(ended_, all_.size()); }
    Sleepers(const Sleepers &) = delete;
    Sleepers &operator=(const Sleepers &) = delete;

    // From the oldest on.
    void end(std::size_t from, std::size_t to) {
        for (std::size_t i = from; i < to; i++) {
            sem_post(&all_[i].may_end);
            pthread_join(all_[i].thread, nullptr);
        }
        ended_ = to;
    }
    pid_t id(std::size_t index) const { return all_[index].id; }
    std::size_t count() const { return all_.size(); }

  private:
    struct Sleeper {
        pthread_t thread{};
        sem_t may_end{};
        std::atomic<pid_t> id{0};
    };
    static bool is_asleep(pid_t id) {
        std::ifstream file("/proc/self/task/" + std::to_string(id) + "/stat");
        std::string text;
        return id != 0 && std::getline(file, text) && thrum::stat::parse_state(text.c_str()) == 'S';
    }
    static void *sleep(void *arg) {
        auto *const self = static_cast<Sleeper *>(arg);
        self->id = gettid();
        while (sem_wait(&self->may_end) != 0)
            continue;
        return nullptr;
    }
    std::vector<Sleeper> all_;
    std::size_t ended_ = 0;
};

// A clock of which each step pays for a portion of the list.
class Clock {
  public:
    explicit Clock(Sampler &sampler) : sampler_(sampler) {}
    void step(double seconds = 20) { sampler_.poll(now_ += seconds); }
    double now() const { return now_; }

  private:
    Sampler &sampler_;
    double now_ = 0;
};

// This process's, with those that a sanitizer may have.
std::size_t count_threads() {
    const std::filesystem::directory_iterator all("/proc/self/task"), end;
    return static_cast<std::size_t>(std::distance(all, end));
}

bool is_everyone_known(Sampler &sampler, Clock &clock) {
    for (int patience = 1000; patience > 0 && !sampler.are_all_known; patience--)
        clock.step();
    return sampler.are_all_known;
}

// Of 1500 threads some hundreds are known at once, and looked at while the others are listed.
TEST(StatListing, ManyThreadsAreListedInPortions) {
    const Sleepers sleepers(1500);
    Sampler sampler(100, kBudget);
    Clock clock(sampler);
    sampler.attach(getpid());
    const std::size_t threads = count_threads();
    clock.step(0.01);
    const std::size_t known = sampler.threads.size();
    EXPECT_GT(known, 100U);
    EXPECT_LT(known, sleepers.count());
    EXPECT_FALSE(sampler.are_all_known);
    while (sampler.threads.size() == known && clock.now() < 100)
        clock.step(0.01);
    EXPECT_GT(sampler.samples.size(), 5U);
    while (!sampler.are_all_known && clock.now() < 1000)
        clock.step(0.01);
    ASSERT_TRUE(sampler.are_all_known);
    EXPECT_EQ(sampler.threads.size(), threads);
    EXPECT_EQ(sampler.most_threads, threads);
}

// A thread that ends while the list is read, where it was read already, moves those behind: some of them are passed
// over then.
TEST(StatListing, APresentThreadStaysWhileOthersEnd) {
    constexpr std::size_t kFirst = 10, kEnded = 1600;
    Sleepers sleepers(3500);
    Sampler sampler(100, kBudget);
    Clock clock(sampler);
    sampler.attach(getpid());
    ASSERT_TRUE(is_everyone_known(sampler, clock));
    sleepers.end(0, kFirst); // so that there is something to list
    clock.step();
    sleepers.end(kFirst, kEnded);
    clock.step();
    const auto are_missed = [&sampler] {
        return std::count_if(sampler.threads.begin(), sampler.threads.end(),
                             [](const ProcThread &thread) { return thread.gone.has_value(); });
    };
    for (int patience = 1000; patience > 0 && are_missed() < static_cast<std::ptrdiff_t>(kEnded); patience--)
        clock.step();
    for (int i = 0; i < 10; i++) // and one more list, were one due
        clock.step();
    std::map<pid_t, std::vector<const ProcThread *>> known;
    for (const ProcThread &thread : sampler.threads)
        known[thread.id].push_back(&thread);
    for (std::size_t i = 0; i < sleepers.count(); i++) {
        const auto &its = known[sleepers.id(i)];
        ASSERT_EQ(its.size(), 1U) << i;
        EXPECT_EQ(its.front()->gone.has_value(), i < kEnded) << i;
    }
    EXPECT_TRUE(sampler.are_all_known);
}

// What threads did before is not what they did while they were looked at, whenever they came to be known: some are passed over
// in the first list. And none of them is new.
TEST(StatListing, WhatWasDoneBeforeDoesNotCount) {
    constexpr std::size_t kEnded = 1600;
    Sleepers sleepers(3500);
    usleep(50000); // more than a tick of the clock
    Sampler sampler(100, kBudget);
    Clock clock(sampler);
    sampler.attach(getpid());
    clock.step();
    sleepers.end(0, kEnded);
    usleep(50000);
    const Sleepers newcomer(1);
    ASSERT_TRUE(is_everyone_known(sampler, clock));
    const auto seen = [&sampler] {
        std::map<pid_t, std::uint64_t> all;
        for (const auto &sample : sampler.samples)
            all[sample.thread] = std::max(all[sample.thread], sample.run_ns);
        return all;
    };
    const auto are_all_seen = [&](const std::map<pid_t, std::uint64_t> &all) {
        bool are = all.count(newcomer.id(0)) != 0;
        for (std::size_t i = kEnded; i < sleepers.count(); i++)
            are = are && all.count(sleepers.id(i)) != 0;
        return are;
    };
    for (int patience = 1000; patience > 0 && !are_all_seen(seen()); patience--)
        clock.step();
    auto all = seen();
    ASSERT_TRUE(are_all_seen(all));
    for (std::size_t i = kEnded; i < sleepers.count(); i++)
        EXPECT_EQ(all[sleepers.id(i)], 0U) << i;
    EXPECT_GT(all[newcomer.id(0)], 0U);
    for (const ProcThread &thread : sampler.threads)
        EXPECT_EQ(thread.was_there, thread.id != newcomer.id(0)) << thread.id;
}

// A thread that ended while the list was read may have hidden others, as many as are missed now.
TEST(StatListing, AListThatOthersEndedInIsNotAll) {
    Sleepers sleepers(3500);
    Sampler sampler(100, kBudget);
    Clock clock(sampler);
    sampler.attach(getpid());
    clock.step();
    sleepers.end(0, 1600);
    std::size_t alive = 0;
    ASSERT_TRUE(is_everyone_known(sampler, clock));
    for (const ProcThread &thread : sampler.threads)
        alive += thread.gone ? 0 : 1;
    EXPECT_EQ(alive, count_threads());
}

} // namespace
