// SPDX-License-Identifier: Apache-2.0
//
// A simulation of molecular dynamics that is analysed while it runs, by threads that should not slow it down: what
// they cost it, by the frequency of snapshots and by the kind of threads. docs/studies/insitu.md is the story.
//
// After the experiment with LAMMPS in S. Shiina, S. Iwasaki, K. Taura, P. Balaji, "Lightweight Preemptive User-Level
// Threads", PPoPP 2021. The simulation here is one of our own (md.hpp); insitu_lammps.cpp has LAMMPS.
#include "experiment.hpp"
#include "md.hpp"

int main(int argc, char **argv) {
    const insitu::Make make = [](const insitu::Plan &plan, insitu::Team *team,
                                 const std::function<void()> &exchange) {
        insitu::FluidSettings settings;
        settings.cells = plan.cells;
        return std::make_unique<insitu::Fluid>(settings, team, exchange);
    };
    return insitu::main_of(argc, argv,
                           {"insitu_md",
                            "What it costs a simulation of molecular dynamics to be analysed while it runs, "
                            "by the interval of the snapshots and by the kind of threads.",
                            "A Lennard-Jones fluid, with g(r) and S(k) beside it",
                            make,
                            {}});
}
