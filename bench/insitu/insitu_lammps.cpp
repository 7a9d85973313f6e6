// SPDX-License-Identifier: Apache-2.0
//
// As insitu_md, with LAMMPS for the simulation.
#include "experiment.hpp"
#include "lammps.hpp"

int main(int argc, char **argv) {
    const insitu::Make make = [](const insitu::Plan &plan, insitu::Team *,
                                 const std::function<void()> &exchange) {
        return std::make_unique<insitu::Lammps>(plan.cells, exchange);
    };
    return insitu::main_of(
        argc, argv,
        {"insitu_lammps",
         "What it costs a simulation by LAMMPS to be analysed while it runs, by the interval of the "
         "snapshots and by the kind of threads.",
         "LAMMPS's benchmark \"lj\", with g(r) and S(k) beside it",
         make,
         {"LAMMPS runs in one thread, a ULT where the arm has such: what other CPUs do is the analysis's."}});
}
