// SPDX-License-Identifier: Apache-2.0
#include "tools/statistics.hpp"

#include <algorithm>
#include <cmath>

namespace thrum {

namespace {

constexpr double kTail = 0.025; // 5 %, on two sides

// The probability that exactly `heads` of `count` coins show heads. By logarithms: 2^-count alone would be 0 for
// more than a thousand coins.
double coins(std::size_t count, std::size_t heads) {
    const auto n = static_cast<double>(count), k = static_cast<double>(heads);
    return std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) - n * std::log(2.0));
}

} // namespace

double quantile(std::vector<double> sample, double part) {
    if (sample.empty())
        return 0;
    std::sort(sample.begin(), sample.end());
    const double place = part * static_cast<double>(sample.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, sample.size() - 1);
    const double beyond = place - static_cast<double>(below);
    // Two infinite ones have no difference.
    if (beyond == 0 || sample[below] == sample[above])
        return sample[below];
    return sample[below] + beyond * (sample[above] - sample[below]);
}

// The rank is rounded up, but not where it is a whole number but for a rounding error.
double nearest_rank(std::vector<double> sample, double part) {
    constexpr double kRounding = 1e-9;
    if (sample.empty())
        return 0;
    std::sort(sample.begin(), sample.end());
    const double rank = std::ceil(part * static_cast<double>(sample.size()) - kRounding);
    return sample[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

double median(std::vector<double> sample) {
    return quantile(std::move(sample), 0.5);
}

// The median lies below the smallest but k of the sample if at most k of n coins show heads, and the same above.
Interval median_interval(std::vector<double> sample, std::size_t cases) {
    if (sample.empty())
        return {};
    std::sort(sample.begin(), sample.end());
    std::size_t left_out = 0;
    double tail = coins(sample.size(), 0);
    const double most = kTail / static_cast<double>(cases);
    for (double next; (next = tail + coins(sample.size(), left_out + 1)) <= most; tail = next)
        left_out++;
    return {median(sample), sample[left_out], sample[sample.size() - 1 - left_out],
            std::max(0.0, 1 - 2 * tail), sample.size()};
}

bool has_median_interval(std::size_t numbers, std::size_t cases) {
    return numbers > 0 && coins(numbers, 0) <= kTail / static_cast<double>(cases);
}

} // namespace thrum
