// SPDX-License-Identifier: Apache-2.0
//
// Where requests come from, as a load generator: starts a server, sends it each request at the moment for which it was
// planned, whatever has become of those before, and takes the answers when all is over.
#ifndef THRUM_BENCH_TAIL_SOURCE_HPP
#define THRUM_BENCH_TAIL_SOURCE_HPP

#include <string>
#include <vector>

#include "common.hpp"
#include "wire.hpp"

namespace tail {

struct Outcome {
    bool available;              // false: what follows is empty
    std::uint64_t begun_ns;      // CLOCK_MONOTONIC
    std::vector<Order> orders;   // as sent: their moments are absolute
    std::vector<double> late_us; // how late each was sent, which is a part of its latency
    double others;               // what other processes took meanwhile, of all CPUs
    Summary summary;
    std::vector<Answer> answers;
};

// The times of `orders` count from the beginning; `answers` come later.
Outcome drive(const std::vector<std::string> &command, const bench::Environment &environment,
              std::vector<Order> orders, std::size_t answers);

} // namespace tail

#endif
