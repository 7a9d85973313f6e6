// SPDX-License-Identifier: Apache-2.0
//
// Medians, and how far they can be trusted. Nothing is assumed about how the numbers are distributed: run times
// have long tails, and their means and standard deviations mislead. Used by `thrum compare`, `thrum stat` and the benchmarks.
#pragma once

#include <cstddef>
#include <vector>

namespace thrum {

// 0 <= part <= 1: 0.5 is the median, 0.25 and 0.75 hold the middle half. Between two numbers of the sample it is
// interpolated (Hyndman and Fan's type 7, the usual one). 0 for an empty sample.
double quantile(std::vector<double> sample, double part);
double median(std::vector<double> sample);

// The smallest number of the sample that at least this part of it does not exceed: one that was measured, for tails. 0 for an
// empty sample.
double nearest_rank(std::vector<double> sample, double part);

// Where the median of what was sampled lies.
struct Interval {
    double median = 0;
    double low = 0, high = 0;
    double confidence = 0; // that it lies from low to high
    std::size_t count = 0; // of numbers in the sample
};

// By order statistics (binomial with p = 1/2): the narrowest interval from one number of the sample to its mirror
// image with a confidence of 95 % or more. Below six numbers there is none, and it is the whole range, with the
// confidence that it has. Of several `cases`: an interval so wide that those of all cases hold with 95 %.
Interval median_interval(std::vector<double> sample, std::size_t cases = 1);

// Whether so many numbers have such an interval: six, or of many cases a dozen.
bool has_median_interval(std::size_t numbers, std::size_t cases = 1);

} // namespace thrum
