// SPDX-License-Identifier: Apache-2.0
//
// Looking at a program costs no more than it may (cli/stat/allowance.hpp).
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <map>

#include "child.hpp"
#include "stat/collect.hpp"
#include "stat/rules.hpp"
#include "stat/run.hpp"
#include "tools/clock.hpp"

namespace {

using thrum::stat::thread_cpu_time;

void burn(double seconds) {
    for (const double begin = thread_cpu_time(); thread_cpu_time() - begin < seconds;)
        continue;
}

class NoProfile : public thrum::stat::CpuProfile {
  public:
    void poll(double) override {}
    void finish() override {}
};

// What polls take of this thread's CPU time, and of how long they were made.
struct Polled {
    double cpu = 0, seconds = 0;
};

Polled polled(thrum::stat::Layer &layer, double begin, double seconds, unsigned pause_us) {
    const double from = thrum::seconds_now();
    Polled sum;
    while ((sum.seconds = thrum::seconds_now() - from) < seconds) {
        const double before = thread_cpu_time();
        layer.poll(thrum::seconds_now() - begin);
        sum.cpu += thread_cpu_time() - before;
        usleep(pause_us);
    }
    return sum;
}

// Notes each time that something dear was done between two polls.
class Onlooker : public thrum::stat::Layer {
  public:
    void poll(double) override {
        const double now = thread_cpu_time();
        dear_ += now - last_ > 4e-4 ? 1 : 0;
        last_ = now;
    }
    unsigned dear() const { return dear_; }

  private:
    double last_ = thread_cpu_time();
    unsigned dear_ = 0;
};

// Ten seconds of samples that take a millisecond each to look at: there are fewer of them then, and each stands for more.
TEST(Sampler, DearSamplesBecomeFewer) {
    constexpr double kPeriod = 0.01, kDear = 1e-3;
    NoProfile profile;
    thrum::stat::SampleKeeper keeper(profile);
    const double begin = thread_cpu_time();
    for (int i = 1; i <= 1000; i++) {
        keeper.begin(i * kPeriod, i == 1000);
        if (keeper.are_paid_for()) {
            burn(kDear);
            keeper.add({i * kPeriod, 7, kPeriod}, {});
        } else {
            keeper.pass_over(kPeriod);
        }
        keeper.end();
    }
    // Four parts in a thousand, 5 ms to begin with, two samples more (the last one is for nothing), and what this loop takes itself.
    EXPECT_LT(thread_cpu_time() - begin, 0.004 * 10 + 0.005 + 2 * kDear + 0.03);
    EXPECT_GT(profile.samples.size(), 20U);
    EXPECT_LT(profile.samples.size(), 60U);
    double weight = 0;
    for (const thrum::stat::CpuSample &sample : profile.samples)
        weight += sample.weight;
    EXPECT_NEAR(weight, 10, 1e-6) << "nothing is lost by that";
}

// Of two threads that use as much, samples come in the same order always: neither gets what was passed over.
TEST(Sampler, WhatIsPassedOverIsEverybodys) {
    constexpr double kPeriod = 0.01;
    NoProfile profile;
    thrum::stat::SampleKeeper keeper(profile);
    for (int i = 1; i <= 1000; i++) {
        keeper.begin(i * kPeriod, i == 1000);
        if (keeper.are_paid_for())
            burn(1e-3);
        for (const int thread : {7, 8})
            if (keeper.are_paid_for())
                keeper.add({i * kPeriod, thread, kPeriod}, {});
            else
                keeper.pass_over(kPeriod);
        keeper.end();
    }
    std::map<int, double> weights;
    for (const thrum::stat::CpuSample &sample : profile.samples)
        weights[sample.thread] += sample.weight;
    EXPECT_LT(profile.samples.size(), 200U);
    EXPECT_NEAR(weights[7], 10, 1e-6);
    EXPECT_NEAR(weights[8], 10, 1e-6);
}

TEST(Sampler, CheapSamplesAreAllThere) {
    NoProfile profile;
    thrum::stat::SampleKeeper keeper(profile);
    for (int i = 1; i <= 100; i++) {
        keeper.begin(i * 0.1, false);
        if (keeper.are_paid_for())
            keeper.add({i * 0.1, 7, 0.01}, {});
        keeper.end();
    }
    EXPECT_EQ(profile.samples.size(), 100U);
}

// To look at all of them 200 times a second would take more than a CPU.
TEST(Sampler, ManyThreadsCostNoMoreThanTheBudget) {
    constexpr double kBudget = 0.02;
    thrum::stat::Sampler sampler(200, kBudget);
    Child child({CLI_SAMPLED_O2, "sleep", "1000"});
    sampler.forked(child.pid());
    child.go();
    const double begin = thrum::seconds_now();
    const Polled sum = polled(sampler, begin, 2, 5000);
    EXPECT_GT(sampler.samples.size(), 100U);
    // What is owed in the end, after the list of all of them say, is paid back later.
    EXPECT_LT(sum.cpu, kBudget * sum.seconds + 0.005 + 0.04);
}

// Of a process that has very many mappings, when something new is mapped all the time.
TEST(Sampler, LongMapsAreReadSeldom) {
    constexpr std::size_t kPage = 65536, kPages = 4000; // pages of any machine fit into that
    auto *const many = static_cast<char *>(
        mmap(nullptr, kPages * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    ASSERT_NE(many, MAP_FAILED);
    for (std::size_t i = 0; i < kPages; i += 2)
        ASSERT_EQ(mprotect(many + i * kPage, kPage, PROT_READ), 0);
    std::vector<thrum::stat::Maps> maps;
    thrum::stat::MapReader reader(maps, true);
    reader.begin(getpid());
    const double begin = thread_cpu_time();
    reader.poll(0.3);
    const double once = thread_cpu_time() - begin;
    EXPECT_GT(maps.back().text.size(), kPages * 20);
    for (int i = 1; i <= 1000; i++) {
        reader.changed();
        reader.poll(0.3 + i * 0.01);
    }
    EXPECT_LT(thread_cpu_time() - begin, 0.002 * 10 + 5 * once + 0.03);
    munmap(many, kPages * kPage);
}

// Of a thousand threads as many are asked how long they waited for a CPU as can be in a millisecond: ten times a second that
// would be a percent of one.
TEST(Sampler, ManyThreadsAreAskedSeldomBesideLayers) {
    Child child({CLI_SAMPLED_O2, "sleep", "1000"});
    child.go();
    const std::string tasks = "/proc/" + std::to_string(child.pid()) + "/task";
    const auto threads = [&tasks] {
        const std::filesystem::directory_iterator all(tasks), end;
        return std::distance(all, end);
    };
    for (int patience = 3000; threads() < 1000 && patience > 0; patience--)
        usleep(10000);
    ASSERT_GE(threads(), 1000);
    Onlooker onlooker;
    thrum::Interrupts interrupts;
    const auto measured = thrum::stat::watch(child.pid(), 3, {&onlooker}, interrupts, [] {});
    EXPECT_GE(measured.most_threads, 1000U);
    EXPECT_LT(onlooker.dear(), 25U) << "of 30, and what else is dear on a machine that is busy";
}

// A thread's 150 functions of Python are read for each sample of it.
TEST(Sampler, DeepStacksOfPythonCostNoMoreThanTheBudget) {
    constexpr const char *kDeep = "def down(n):\n"
                                  "    if n: return down(n - 1)\n"
                                  "    i = 0\n"
                                  "    while True: i = (i * 31 + 1) % 1000003\n"
                                  "down(150)\n";
    if (access("/usr/bin/python3", X_OK) != 0)
        GTEST_SKIP() << "there is no /usr/bin/python3";
    std::string why_not;
    const auto profile = thrum::stat::make_cpu_profile("/usr/bin/python3", 1000, why_not);
    if (profile == nullptr || profile->source != "perf event")
        GTEST_SKIP() << "no perf events: " << why_not;
    Child child({"/usr/bin/python3", "-I", "-c", kDeep});
    profile->forked(child.pid());
    child.go();
    const double begin = thrum::seconds_now();
    polled(*profile, begin, 1, 1000); // until it has come so far, and the interpreter has been found
    const Polled sum = polled(*profile, begin, 2, 1000);
    EXPECT_LT(sum.cpu, (0.004 + 0.002) * sum.seconds + 0.03);
}

} // namespace
