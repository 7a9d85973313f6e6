// SPDX-License-Identifier: Apache-2.0
//
// See schedule.hpp.
#include "schedule.hpp"

#include <cmath>
#include <random>

namespace tail {

namespace {

// From 0 to 1 without 1. By hand, since the standard says what its generators give, but not what its distributions do.
double uniform(std::mt19937_64 *random) {
    return static_cast<double>((*random)() >> 11) * 0x1p-53;
}

} // namespace

double rate_per_second(const Mix &mix, double load, unsigned cpus) {
    return load * cpus * 1e6 / mix.mean_us();
}

std::vector<Arrival> schedule(const Mix &mix, double rate, double seconds, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<Arrival> arrivals;
    for (double at = 0;;) {
        at -= std::log(1 - uniform(&random)) / rate; // exponential gaps
        if (at >= seconds)
            return arrivals;
        arrivals.push_back({static_cast<std::uint64_t>(at * 1e9), uniform(&random) < mix.long_share});
    }
}

} // namespace tail
