// SPDX-License-Identifier: Apache-2.0
//
// One trial: a simulation with an analysis beside it, by one arm, in a process of its own; and how the benchmark's process
// asks for it and gets the outcome.
#ifndef THRUM_BENCH_INSITU_TRIAL_HPP
#define THRUM_BENCH_INSITU_TRIAL_HPP

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "arms.hpp"
#include "simulation.hpp"

namespace insitu {

struct Plan {
    std::string arm;
    unsigned workers, cells, steps;
    unsigned before;   // steps that are not timed: the lattice melts
    unsigned interval; // steps from one snapshot to the next
    unsigned buffers, shares;
    bool leave_out;     // what becomes of a snapshot when no buffer is free; otherwise the simulation waits
    double exchange_us; // how long it waits for other machines at each step
};

struct Outcome {
    double simulated_ns, simulated_cpu_ns; // from its begin until the simulation is over
    double all_ns, all_cpu_ns;             // and until all snapshots have been looked at
    double offered, left_out;              // snapshots
    double looked_at_by_end, looked_at;    // when the simulation is over, and later
    double waits, waited_ns;               // of the simulation, for a buffer
    double late_ns;                        // that it comes out of an exchange, in the mean
    double trajectory, pairs;              // check sums of where the atoms are at the end, and of g(r)
    double drift;                          // of the total energy, as a share of it
    double radial_peak_at, radial_peak, structure_peak_at, structure_peak;
};

// `exchange` is what the simulation calls at the end of each step, if it can.
using Make = std::function<std::unique_ptr<Simulation>(const Plan &plan, Team *team,
                                                       const std::function<void()> &exchange)>;

// In the benchmark's process, and in the trial's: the words after "--work".
std::vector<std::string> words_of(const Plan &plan);
void run_trial(const std::vector<std::string> &words, const Make &make); // prints the outcome

// What was printed. None if the library does not have the arm's kind of preemption here.
std::unique_ptr<Outcome> measure(const Plan &plan, const std::string &library, double slice_us);

} // namespace insitu

#endif
