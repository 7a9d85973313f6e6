// SPDX-License-Identifier: Apache-2.0
//
// What spawn, stdasync and create_detach share: N creators, independent of each other, each making one thread
// after another until the time is up; threads per second, CPU time a thread and the kernel's share of it,
// without the library and with it. A benchmark brings the loop of one creator.
//
// After the Spawn benchmark of Dice and Kogan, "Intra-process Caching and Reuse of Threads" (their table 1 and
// figure 1), which takes 10 seconds a measurement and the median of 7, as --full does.
#ifndef THRUM_BENCH_CREATORS_HPP
#define THRUM_BENCH_CREATORS_HPP

#include <atomic>
#include <cstdint>
#include <vector>

namespace bench {

// What is asked of the rate, as a multiple of the default's.
struct CreatorTarget {
    unsigned busy, creators; // CPU-bound processes of others per CPU
    double least;
};

struct CreatorLoop {
    const char *name;
    const char *about; // for --help
    const char *title; // of the table
    const char *paper; // what the paper has measured, "" if nothing

    // Makes threads, by make_until(). Returns how many, when they have all ended.
    std::uint64_t (*create)(const std::atomic<bool> &stop);

    std::vector<CreatorTarget> targets = {};
};

// Calls `make_one` until `stop`, and at least `kFewest` times, so that some threads can be reused in any case.
template <typename MakeOne>
std::uint64_t make_until(const std::atomic<bool> &stop, const MakeOne &make_one) {
    constexpr std::uint64_t kFewest = 256;
    std::uint64_t threads = 0;
    do {
        make_one();
        threads++;
    } while (threads < kFewest || !stop.load(std::memory_order_relaxed));
    return threads;
}

int creators_main(int argc, char **argv, const CreatorLoop &loop);

} // namespace bench

#endif
