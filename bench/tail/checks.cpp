// SPDX-License-Identifier: Apache-2.0
//
// The test bench.tail-parts: the arithmetic of the benchmark. Percentiles of values that are known; that an answer is
// missed, or one too many; that a schedule is the Poisson process that was asked for. Nothing here depends on time.
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "common.hpp"
#include "latency.hpp"
#include "schedule.hpp"

namespace {

using namespace tail;

int failures;

void expect(bool condition, const char *what) {
    if (!condition) {
        std::printf("not so: %s\n", what);
        failures++;
    }
}

bool refused(const std::vector<Answer> &answers) {
    try {
        answered(answers);
    } catch (const bench::Failure &) {
        return true;
    }
    return false;
}

void check_percentiles() {
    std::vector<double> thousand;
    for (int i = 1000; i >= 1; i--)
        thousand.push_back(i);
    expect(bench::quantile(&thousand, 0.5) == 500, "the median of 1 to 1000 is 500");
    expect(bench::quantile(&thousand, 0.99) == 990, "their 99th percentile is 990");
    expect(bench::quantile(&thousand, 0.999) == 999, "that of 99.9 % is 999");
    expect(bench::quantile(&thousand, 1) == 1000, "all are at most 1000");
    expect(bench::quantile(&thousand, 0) == 1, "none is below 1");
    std::vector<double> many(1000000); // 0.999 is no such number in binary
    for (std::size_t i = 0; i < many.size(); i++)
        many[i] = static_cast<double>(i + 1);
    expect(bench::quantile(&many, 0.999) == 999000, "999000 of a million values are at most 999000");
    std::vector<double> ten = {7, 3, 9, 1, 5, 10, 2, 8, 4, 6};
    expect(bench::quantile(&ten, 0.99) == 10, "of ten values the largest is the 99th percentile");
    expect(bench::quantile(&ten, 0.5) == 5 && bench::quantile(&ten, 0.501) == 6,
           "the median of 1 to 10 is 5, above it is 6");
    std::vector<double> one = {42};
    expect(bench::quantile(&one, 0.001) == 42 && bench::quantile(&one, 0.999) == 42,
           "of one value all are that");
    std::vector<double> never = {1, std::numeric_limits<double>::infinity(), 2, 3};
    expect(bench::quantile(&never, 0.75) == 3 && std::isinf(bench::quantile(&never, 0.751)),
           "no answer is longer than any");
    std::vector<double> none;
    bool thrown = false;
    try {
        bench::quantile(&none, 0.5);
    } catch (const bench::Failure &) {
        thrown = true;
    }
    expect(thrown, "there is no percentile of nothing");
}

void check_answers() {
    expect(answered({{5, 1}, {6, 1}}) == 2, "two answers are two");
    expect(answered({{5, 1}, {0, 0}}) == 1, "one that is missing is not counted");
    expect(refused({{5, 1}, {6, 2}}), "two answers to one request are refused");

    const std::vector<Order> orders = {
        {2, 0, kRunaway, 0}, {0, 1000, 1, 1}, {1, 2000, 1, 0}, {3, 2500, 1, 1}};
    const std::vector<Answer> answers = {{4000, 1}, {12000, 1}, {0, 0}, {0, 0}};
    const Latencies all = latencies(orders, answers, 0), later = latencies(orders, answers, 2000);
    expect(all.of_short.size() == 2 && all.of_short[0] == 3, "from 1000 to 4000 ns are 3 us");
    expect(std::isinf(all.of_short[1]), "a client without an answer waits for ever");
    expect(all.of_long.size() == 1 && all.of_long[0] == 10,
           "requests that never end are not among the long ones");
    expect(later.of_short.size() == 1 && later.of_long.size() == 1, "of the beginning none is taken");
}

// All within five standard deviations; since the seed is given this is so always, or never.
void check_schedule() {
    constexpr double kSeconds = 20, kSigmas = 5;
    const Mix mix = {10, 10000, 0.01};
    expect(std::fabs(mix.mean_us() - 109.9) < 1e-9, "10 us and 1 % of 10 ms are 109.9 us in the mean");
    const double rate = rate_per_second(mix, 0.5, 2);
    expect(std::fabs(rate * mix.mean_us() - 1e6) < 1e-3, "half of two CPUs is the work of one");

    const std::vector<Arrival> arrivals = schedule(mix, rate, kSeconds, 1);
    const auto count = static_cast<double>(arrivals.size());
    expect(std::fabs(count - rate * kSeconds) < kSigmas * std::sqrt(rate * kSeconds),
           "the mean rate is as asked");
    double longs = 0, last = 0, sum = 0, squares = 0;
    bool ordered = true;
    for (const Arrival &arrival : arrivals) {
        const double at = static_cast<double>(arrival.offset_ns) / 1e9, gap = at - last;
        ordered = ordered && gap >= 0;
        sum += gap;
        squares += gap * gap;
        longs += arrival.is_long ? 1 : 0;
        last = at;
    }
    expect(ordered && last < kSeconds, "they are in order, and within the time");
    expect(std::fabs(longs - count * mix.long_share) < kSigmas * std::sqrt(count * mix.long_share),
           "so many are long");
    const double mean =
        sum / count; // of the squares: 2 / rate^2, with a deviation of sqrt(20 / count) / rate^2
    expect(std::fabs(squares / count / (mean * mean) - 2) < kSigmas * std::sqrt(20 / count),
           "gaps are exponential: their squares are twice the square of the mean");
}

void check_seeds() {
    const Mix mix = {10, 10000, 0.5};
    const std::vector<Arrival> one = schedule(mix, 1000, 1, 7), same = schedule(mix, 1000, 1, 7),
                               other = schedule(mix, 1000, 1, 8);
    const auto equal = [](const std::vector<Arrival> &a, const std::vector<Arrival> &b) {
        bool result = a.size() == b.size();
        for (std::size_t i = 0; result && i < a.size(); i++)
            result = a[i].offset_ns == b[i].offset_ns && a[i].is_long == b[i].is_long;
        return result;
    };
    expect(equal(one, same), "the same seed gives the same schedule");
    expect(!equal(one, other), "another seed gives another");
}

} // namespace

int main() {
    check_percentiles();
    check_answers();
    check_schedule();
    check_seeds();
    std::printf(failures == 0 ? "all as expected\n" : "%d are not\n", failures);
    return failures == 0 ? 0 : 1;
}
