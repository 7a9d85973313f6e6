// SPDX-License-Identifier: Apache-2.0
//
// The same program with different numbers of threads, bare: how it is told the number, and the runs, one number after the
// other again and again, so that what changes on the machine meanwhile changes them all. Used by stat.cpp and
// examination.cpp.
#pragma once

#include <string>
#include <vector>

#include "stat/run.hpp"

namespace thrum::stat {

// How a program is told its number of threads.
struct Telling {
    std::string variable;     // of its environment, as OMP_NUM_THREADS; empty: none
    bool by_affinity = false; // it looks how many CPUs it may use
    bool braces = false;      // {} in its arguments
    bool any() const { return braces || by_affinity || !variable.empty(); }
};

// "1,2,4", "1-4,8": ascending, each once. Throws Failure (2).
std::vector<unsigned> parse_sweep(const std::string &text);
// Up to four CPUs each number, of more the powers of two, and all of them.
std::vector<unsigned> default_sweep(unsigned processors);

bool has_braces(const std::vector<std::string> &words);
// `launch` with so many threads.
Launch with_threads(const Launch &launch, const Telling &telling, unsigned threads);

// The runs of one number of threads.
struct Runs {
    Launch launch;
    std::vector<Measured> measured;
};
Point point_of(const Runs &runs);
// The points of those that were run, with their speedups over the first: a run of each number of threads belongs to one
// round, so that what the machine does meanwhile changes both sides of a ratio.
std::vector<Point> points_of(const std::vector<Runs> &sweep);

// Where the program had as many threads, and used as many CPUs, whatever number it was told: that it may not have heard.
// Empty where it has, or was not there for long enough to be looked at a few times.
std::string unheeded_text(const std::vector<Point> &points, const Telling &telling);

// Rounds for runs that take so long all together: as many as fit into some seconds.
unsigned rounds_for(double seconds);

} // namespace thrum::stat
