// SPDX-License-Identifier: Apache-2.0
//
// Rows of bench/growth for runtimes in C++: how much of the machine tasks of a certain length get, by how they are made.
//
//     grain-oneNS      one thread makes all of them, then joins them
//     grain-splitNS    halves, each of which is halved again, down to one
//     grain-manyNS     only libthrum: thrum_spawn_many (thrum.cpp)
//
// A task is a loop of as many turns as take so many nanoseconds here and now. The same calls without any runtime are what
// is ideal (CPU time); both are measured in turns, so that a change of the CPU's clock changes both. Prints "grain SERIAL WALL CPU
// TASKS", the first three in ns for each task.
#ifndef THRUM_BENCH_PEERS_GRAINS_HPP
#define THRUM_BENCH_PEERS_GRAINS_HPP

#include <cstdint>

#include "workloads.hpp"

namespace grains {

constexpr int kMost = 16384; // tasks at a time

inline std::uint64_t turns; // of a task's loop
inline int tasks;

// Each step needs the one before it, and the last may be read: no compiler leaves the loop out.
inline void spin(std::uint64_t times) {
    std::uint64_t x = 1;
    for (std::uint64_t i = times; i > 0; i--)
        x = x * 6364136223846793005 + 1442695040888963407;
    __asm__ volatile("" : : "r"(x));
}

inline void *grain(void *) {
    spin(turns);
    return nullptr;
}

// The shortest of some: what takes longer was disturbed.
inline double ns_of_a_turn() {
    constexpr std::uint64_t kTimes = 100000;
    double least = 1e9;
    for (int i = 0; i < 30; i++) {
        const double before = workloads::clock_ns(CLOCK_MONOTONIC);
        spin(kTimes);
        least = std::min(least, workloads::clock_ns(CLOCK_MONOTONIC) - before);
    }
    return least / static_cast<double>(kTimes);
}

inline void serially() {
    for (int i = 0; i < tasks; i++) {
        grain(nullptr);
        __asm__ volatile("" : : : "memory");
    }
}

// Calls `all`, which runs all tasks, until so many ns have passed; ns for each task.
struct Times {
    double wall, cpu;
};

template <class All>
Times timed(All all, double least_ns) {
    const double wall = workloads::clock_ns(CLOCK_MONOTONIC),
                 cpu = workloads::clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    double done = 0, now = wall;
    for (; now - wall < least_ns; now = workloads::clock_ns(CLOCK_MONOTONIC), done += tasks)
        all();
    return {(now - wall) / done, (workloads::clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / done};
}

// In the parallel part's first run, which does not count, idle workers wake up.
template <class All>
void measure(All all, double ns) {
    constexpr double kRound = 10e6, kAtATime = 20e6;
    constexpr int kRounds = 5;
    turns = static_cast<std::uint64_t>(std::max(1.0, ns / ns_of_a_turn()));
    tasks = static_cast<int>(
        std::clamp(kAtATime * std::min(workloads::scale, 1.0) / ns, 64.0, static_cast<double>(kMost)));
    std::vector<double> serial, wall, cpu;
    for (int round = 0; round < kRounds; round++) {
        serial.push_back(timed(serially, kRound * workloads::scale / 2).cpu);
        all();
        const Times times = timed(all, kRound * workloads::scale);
        wall.push_back(times.wall);
        cpu.push_back(times.cpu);
    }
    std::printf("grain %.3f %.3f %.3f %d\n", workloads::median(serial), workloads::median(wall),
                workloads::median(cpu), tasks);
}

template <class R>
void one_creator() {
    static typename R::template Group<kMost> group;
    for (int i = 0; i < tasks; i++)
        group.spawn(grain, nullptr);
    group.join();
}

template <class R>
void *split(void *count) {
    const long all = reinterpret_cast<long>(count);
    if (all == 1)
        return grain(nullptr);
    typename R::template Group<1> group;
    group.spawn(split<R>, workloads::number(all / 2));
    split<R>(workloads::number(all - all / 2));
    group.join();
    return nullptr;
}

// In the place of workloads::run_wanted.
template <class R>
void run_wanted() {
    const char *row = workloads::wanted;
    if (std::strncmp(row, "grain-one", 9) == 0)
        measure(one_creator<R>, std::atof(row + 9));
    else if (std::strncmp(row, "grain-split", 11) == 0)
        measure([] { split<R>(workloads::number(tasks)); }, std::atof(row + 11));
    else
        workloads::run_wanted<R>();
}

} // namespace grains

#endif
