// SPDX-License-Identifier: Apache-2.0
//
// Models of how a program's speed grows with its threads: Gunther's Universal Scalability Law,
//
//     speedup(N) = N / (1 + contention * (N - 1) + coherency * N * (N - 1)),
//
// which with coherency = 0 is Amdahl's law, contention being the sequential part. Used by examination.cpp
// facts.cpp and verdict_text.cpp.
#pragma once

#include <optional>
#include <vector>

#include "stat/report.hpp"

namespace thrum::stat {

// CPUs' worth of work that N threads can get done here at best: second hyper-threads of a core do not count.
double ideal_speedup(const Report &report, unsigned threads);

// Runs that all take less wall time than this are too short to compare: a time slice of another program's changes them by
// as much. Seconds.
constexpr double kShortestRuns = 0.02;
// All points of a sweep are too short. False without a sweep.
bool is_too_short(const Report &report);

// The speedup of `point` over `first`, and where it lies: by `ratios`, one for each round of the sweep; without them by the
// intervals of both times. The interval is widened by what chance does to a few runs, and to the start of a program.
Interval speedup_interval(const Point &first, const Point &point, const std::vector<double> &ratios);

struct Speedup {
    double threads = 0, speedup = 0;
};

// By least squares on N / speedup, coefficients from 0 on, contention up to 1. Nothing where no such law describes the
// points: fewer than four of them, or N = 1 is not the slowest.
std::optional<Scaling> fit_universal_law(const std::vector<Speedup> &points);

// Fills scaling and scaling_text from the points up to the usable cores.
void add_scaling(Report &report);

} // namespace thrum::stat
