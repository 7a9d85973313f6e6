// SPDX-License-Identifier: Apache-2.0
//
// A fluid of Lennard-Jones atoms, in reduced units: the usual small benchmark of molecular dynamics. Forces between those
// that are nearer than a cutoff; these are looked up in lists, which also have those that are a skin farther away
// and so are good until some atom has gone half of it; the lists are made with the help of cells. Velocity Verlet.
//
// A step is done by a team, each member with the atoms that are its part, in phases between which all wait for each other.
// Each atom's force is added up from all of its neighbours, by its own member in the order of its list: no member writes what
// is another's, and the result does not depend on how many members there are, to the last bit.
#ifndef THRUM_BENCH_INSITU_MD_HPP
#define THRUM_BENCH_INSITU_MD_HPP

#include <cstdint>
#include <functional>
#include <vector>

#include "cells.hpp"
#include "simulation.hpp"
#include "team.hpp"

namespace insitu {

// The defaults are those of the benchmark "lj" that comes with LAMMPS, but for the number of atoms.
struct FluidSettings {
    unsigned cells = 10; // of the lattice that it begins with, along an edge; four atoms each
    double density = 0.8442, temperature = 1.44;
    double cutoff = 2.5, skin = 0.3;
    double step = 0.005; // of time
    std::uint64_t seed = 87287;
};

// Where atoms of a face-centred cubic lattice are, with so many cells of that edge along each side.
std::vector<Vector> lattice(unsigned cells, double edge);

class Fluid final : public Simulation {
  public:
    // `exchange` is called at the end of each step, where a simulation on several machines would wait for what the others
    // send. Throws std::invalid_argument: the cube is so small that an atom would meet itself.
    Fluid(const FluidSettings &settings, Team *team, std::function<void()> exchange = nullptr);

    void advance(unsigned steps) override;
    void show(Snapshot *snapshot) override;
    double energy() override { return kinetic() + potential(); }

    double kinetic() const;
    double potential() const; // of each pair 0 at the cutoff
    Vector momentum() const;
    const std::vector<Vector> &positions() const { return position_; }
    const std::vector<Vector> &forces() const { return force_; }
    double edge() const { return edge_; }
    unsigned lists_made() const { return lists_made_; }

  private:
    struct alignas(64) Part {
        std::size_t begin, end;                      // its atoms
        std::vector<std::uint32_t> list_begin, list; // their neighbours, one after the other
        double potential = 0, farthest = 0;          // the latter squared: what one of them has gone since
    };
    void heat();
    void make_parts();
    void step();
    void make_lists();
    // Phases, for one part.
    void drift(Part *part);
    void list(Part *part);
    void push(Part *part);
    void add_forces(Part *part);
    void kick(std::size_t atom);

    FluidSettings settings_;
    Team *team_;
    std::function<void()> exchange_;
    double edge_, shift_; // the latter: the potential at the cutoff
    std::vector<Vector> position_, velocity_, force_;
    std::vector<Vector> listed_; // where atoms were when the lists were made
    Cells cells_;
    std::vector<Part> parts_;
    unsigned lists_made_ = 0;
};

} // namespace insitu

#endif
