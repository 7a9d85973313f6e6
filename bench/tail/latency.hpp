// SPDX-License-Identifier: Apache-2.0
//
// What is made of a server's answers: that each request has one, and how long it took from the moment for which the
// request was planned. So a server, or a source, that is late cannot make its own lateness disappear ("coordinated
// omission").
#ifndef THRUM_BENCH_TAIL_LATENCY_HPP
#define THRUM_BENCH_TAIL_LATENCY_HPP

#include <cstddef>
#include <vector>

#include "wire.hpp"

namespace tail {

// How many requests were answered. More than once: that is no server, and a bench::Failure.
std::size_t answered(const std::vector<Answer> &answers);

// Those planned from `since` on, in us; infinity without an answer.
struct Latencies {
    std::vector<double> of_short, of_long;
};
Latencies latencies(const std::vector<Order> &orders, const std::vector<Answer> &answers,
                    std::uint64_t since);

} // namespace tail

#endif
