// SPDX-License-Identifier: Apache-2.0
//
// Models of how a program's speed grows with its threads: Gunther's Universal Scalability Law,
//
//     speedup(N) = N / (1 + contention * (N - 1) + coherency * N * (N - 1)),
//
// which with coherency = 0 is Amdahl's law, contention being the sequential part. Used by examination.cpp
// and facts.cpp.
#pragma once

#include <optional>
#include <vector>

#include "stat/report.hpp"

namespace thrum::stat {

// CPUs' worth of work that N threads can get done here at best: second hyper-threads of a core do not count.
double ideal_speedup(const Report &report, unsigned threads);

struct Speedup {
    double threads = 0, speedup = 0;
};

// By least squares on N / speedup, coefficients from 0 on, contention up to 1. Nothing where no such law describes the
// points: fewer than four of them, or N = 1 is not the slowest.
std::optional<Scaling> fit_universal_law(const std::vector<Speedup> &points);

// Fills scaling and scaling_text from the points up to the usable cores.
void add_scaling(Report &report);

} // namespace thrum::stat
