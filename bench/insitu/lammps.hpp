// SPDX-License-Identifier: Apache-2.0
//
// LAMMPS, through the C interface of its library, with the same fluid as md.hpp: its own benchmark "lj". It runs in the
// thread that calls it, and in no other: its team is not asked.
#ifndef THRUM_BENCH_INSITU_LAMMPS_HPP
#define THRUM_BENCH_INSITU_LAMMPS_HPP

#include <functional>
#include <string>
#include <vector>

#include "simulation.hpp"

namespace insitu {

class Lammps final : public Simulation {
  public:
    // `cells` of the lattice, along an edge. `exchange` is called in each step, from within LAMMPS.
    Lammps(unsigned cells, std::function<void()> exchange);
    ~Lammps() override;
    Lammps(const Lammps &) = delete;
    Lammps &operator=(const Lammps &) = delete;

    void advance(unsigned steps) override;
    void show(Snapshot *snapshot) override;
    double energy() override;

  private:
    void command(const std::string &line);

    void *handle_;
    std::function<void()> exchange_;
    std::vector<double> gathered_; // x, y and z of each atom, by their numbers
};

} // namespace insitu

#endif
