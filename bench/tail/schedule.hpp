// SPDX-License-Identifier: Apache-2.0
//
// When requests arrive, and which: a Poisson process, drawn beforehand from a seed, so that each arm of the benchmark
// gets the same. No client waits for an answer before the next request is due: an open loop.
#ifndef THRUM_BENCH_TAIL_SCHEDULE_HPP
#define THRUM_BENCH_TAIL_SCHEDULE_HPP

#include <cstdint>
#include <vector>

namespace tail {

// Two kinds of requests, by the CPU time that they take.
struct Mix {
    double short_us, long_us;
    double long_share; // of all requests, 0 to 1

    double mean_us() const { return short_us * (1 - long_share) + long_us * long_share; }
};

struct Arrival {
    std::uint64_t offset_ns; // from the beginning
    bool is_long;
};

// How many requests a second are so much work for `cpus` CPUs; load 1 is all that they can do.
double rate_per_second(const Mix &mix, double load, unsigned cpus);

// Those of so many seconds, in order.
std::vector<Arrival> schedule(const Mix &mix, double rate, double seconds, std::uint64_t seed);

} // namespace tail

#endif
