// SPDX-License-Identifier: Apache-2.0
//
// The benchmark around a simulation: all arms at all intervals, in turns, and tables of them. insitu_md.cpp and
// insitu_lammps.cpp each bring a simulation.
#ifndef THRUM_BENCH_INSITU_EXPERIMENT_HPP
#define THRUM_BENCH_INSITU_EXPERIMENT_HPP

#include "trial.hpp"

namespace insitu {

struct Experiment {
    const char *name, *about, *title;
    Make make;
    std::vector<std::string> notes; // about it
};

int main_of(int argc, char **argv, const Experiment &experiment);

} // namespace insitu

#endif
