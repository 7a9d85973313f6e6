// SPDX-License-Identifier: Apache-2.0
//
// What goes between the benchmark and a server that it measures (serve.cpp, go/main.go), as 64-bit words in the byte order
// of the machine, by pipes. The server says one letter when it has begun; then it reads orders, from standard input to its
// end, and serves each as it comes; then it writes a summary and an answer to each order, by number.
#ifndef THRUM_BENCH_TAIL_WIRE_HPP
#define THRUM_BENCH_TAIL_WIRE_HPP

#include <cstdint>

namespace tail {

constexpr char kReady = 'r', kUnavailable = 'u'; // the latter: not on this machine, or not in this build

// How many turns the loop of a request that never ends takes: some centuries. Its answer is not waited for.
constexpr std::uint64_t kRunaway = UINT64_MAX;

struct Order {
    std::uint64_t number;     // 0 to COUNT - 1; of one that never ends COUNT
    std::uint64_t arrival_ns; // the moment for which it was planned, CLOCK_MONOTONIC
    std::uint64_t steps;      // of work: how often compute() goes round
    std::uint64_t is_short;
};

struct Summary {
    std::uint64_t cpu_ns; // of the server, from its letter until now
    std::uint64_t reused; // kernel threads, by libthrum-cache.so
};

struct Answer {
    std::uint64_t done_ns; // CLOCK_MONOTONIC
    std::uint64_t times;   // how often it was answered
};

} // namespace tail

#endif
