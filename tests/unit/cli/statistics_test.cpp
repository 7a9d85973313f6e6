// SPDX-License-Identifier: Apache-2.0
//
// cli/tools/statistics.hpp: exact values, worked out by hand or found in tables of the sign test.
#include "tools/statistics.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

namespace {

using thrum::Interval;
using thrum::median_interval;

// 1, 2, ... count, in no order.
std::vector<double> numbers(std::size_t count) {
    std::vector<double> list(count);
    std::iota(list.begin(), list.end(), 1.0);
    for (std::size_t i = 0; i + 1 < count; i += 2)
        std::swap(list[i], list[count - 1 - i]);
    return list;
}

TEST(Statistics, Quantiles) {
    EXPECT_EQ(thrum::median({}), 0);
    EXPECT_EQ(thrum::median({7}), 7);
    EXPECT_EQ(thrum::median({3, 1, 2}), 2);
    EXPECT_EQ(thrum::median({4, 1, 3, 2}), 2.5);
    EXPECT_EQ(thrum::quantile({5, 1, 4, 2, 3}, 0.25), 2);
    EXPECT_EQ(thrum::quantile({5, 1, 4, 2, 3}, 0.75), 4);
    EXPECT_EQ(thrum::quantile({4, 3, 2, 1}, 0.25), 1.75);
    EXPECT_EQ(thrum::quantile({4, 3, 2, 1}, 0), 1);
    EXPECT_EQ(thrum::quantile({4, 3, 2, 1}, 1), 4);
}

// What never happened.
TEST(Statistics, QuantilesOfInfiniteNumbers) {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    EXPECT_EQ(thrum::median({kNever, kNever}), kNever);
    EXPECT_EQ(thrum::median({1, kNever}), kNever);
    EXPECT_EQ(thrum::quantile({1, 2, kNever}, 0.5), 2);
    EXPECT_EQ(thrum::median_interval({kNever, kNever, kNever, kNever}).median, kNever);
}

// One that was measured.
TEST(Statistics, NearestRank) {
    EXPECT_EQ(thrum::nearest_rank({}, 0.5), 0);
    EXPECT_EQ(thrum::nearest_rank({3, 1, 4, 2}, 0.5), 2);
    EXPECT_EQ(thrum::nearest_rank({3, 1, 4, 2}, 0.51), 3);
    EXPECT_EQ(thrum::nearest_rank(numbers(1000), 0.99), 990);
    EXPECT_EQ(thrum::nearest_rank(numbers(10), 0), 1);
    EXPECT_EQ(thrum::nearest_rank(numbers(10), 1), 10);
}

// Of many cases at once each interval has to be wider, and needs more numbers.
TEST(Statistics, IntervalsOfManyCases) {
    EXPECT_FALSE(thrum::has_median_interval(0));
    EXPECT_FALSE(thrum::has_median_interval(5));
    EXPECT_TRUE(thrum::has_median_interval(6));
    EXPECT_FALSE(thrum::has_median_interval(6, 2)); // 1/64 is more than 1.25 %
    EXPECT_TRUE(thrum::has_median_interval(7, 2));
    EXPECT_FALSE(thrum::has_median_interval(11, 100));
    EXPECT_TRUE(thrum::has_median_interval(12, 100));
    const Interval one = median_interval(numbers(25)), many = median_interval(numbers(25), 100);
    EXPECT_LT(many.low, one.low);
    EXPECT_GT(many.high, one.high);
    EXPECT_EQ(many.median, one.median);
}

TEST(Statistics, OneOutlierDoesNotMoveTheMedian) {
    EXPECT_EQ(thrum::median({1, 2, 3, 4, 1000000}), 3);
}

struct Known {
    std::size_t count;
    double low, high, confidence;
};

TEST(Statistics, IntervalsOfTheMedian) {
    const Known known[] = {{1, 1, 1, 0},           {2, 1, 2, 0.5},         {3, 1, 3, 0.75},
                           {5, 1, 5, 0.9375},      {6, 1, 6, 0.96875},     {7, 1, 7, 0.984375},
                           {8, 1, 8, 0.9921875},   {9, 2, 8, 0.9609375},   {10, 2, 9, 0.978515625},
                           {12, 3, 10, 0.9614258}, {20, 6, 15, 0.9586105}, {40, 14, 27, 0.9615227}};
    for (const Known &expected : known) {
        const Interval interval = median_interval(numbers(expected.count));
        EXPECT_EQ(interval.low, expected.low) << expected.count;
        EXPECT_EQ(interval.high, expected.high) << expected.count;
        EXPECT_NEAR(interval.confidence, expected.confidence, 1e-7) << expected.count;
        EXPECT_EQ(interval.count, expected.count);
        EXPECT_EQ(interval.median, (1.0 + static_cast<double>(expected.count)) / 2);
    }
}

TEST(Statistics, OfNothing) {
    EXPECT_EQ(median_interval({}).count, 0u);
}

TEST(Statistics, ManyNumbers) {
    const Interval interval = median_interval(numbers(10000));
    EXPECT_NEAR(interval.low, 4902, 1); // n/2 - 1.96 sqrt(n)/2
    EXPECT_EQ(interval.low - 1, 10000 - interval.high);
    EXPECT_GE(interval.confidence, 0.95);
    EXPECT_LE(interval.confidence, 0.953);
}

} // namespace
