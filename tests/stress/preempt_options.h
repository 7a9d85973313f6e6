// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: the command line. Where it names several modes, numbers of workers or threads, or slices, it means
// all combinations of them (preempt_matrix.h).
#ifndef TESTS_STRESS_PREEMPT_OPTIONS_H
#define TESTS_STRESS_PREEMPT_OPTIONS_H

#include <string>
#include <vector>

#include "preempt_stress.h"

struct CommandLine {
    Options common; // mode, workers, threads and slice apart
    std::vector<Mode> modes{Mode::kLend};
    std::vector<unsigned> workers{2}, threads{32}, slices{100};
    unsigned monitor_each = 0; // of all combinations, each so many-th has its ticks from the monitor; 0: none
    std::string only;          // as it was given
    int report_to = -1;        // a file descriptor for a Report, from a matrix to its parts
    int places_to = -1;        // and one for places (preempt_places.h)
    std::string bites;         // which (preempt_bites.h)
    bool overflow = false;     // the same, from within
};

// Ends the program with a line where it makes no sense.
CommandLine command_line(int argc, char **argv);

#endif
