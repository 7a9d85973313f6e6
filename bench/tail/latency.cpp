// SPDX-License-Identifier: Apache-2.0
//
// See latency.hpp.
#include "latency.hpp"

#include <limits>
#include <string>

#include "common.hpp"

namespace tail {

std::size_t answered(const std::vector<Answer> &answers) {
    std::size_t count = 0;
    for (const Answer &answer : answers) {
        if (answer.times > 1)
            throw bench::Failure("a request was answered " + std::to_string(answer.times) + " times");
        count += answer.times;
    }
    return count;
}

Latencies latencies(const std::vector<Order> &orders, const std::vector<Answer> &answers,
                    std::uint64_t since) {
    Latencies result;
    for (const Order &order : orders) {
        if (order.steps == kRunaway || order.arrival_ns < since)
            continue;
        const Answer &answer = answers.at(order.number);
        const double us =
            answer.times == 0
                ? std::numeric_limits<double>::infinity()
                : (static_cast<double>(answer.done_ns) - static_cast<double>(order.arrival_ns)) / 1e3;
        (order.is_short != 0 ? result.of_short : result.of_long).push_back(us);
    }
    return result;
}

} // namespace tail
