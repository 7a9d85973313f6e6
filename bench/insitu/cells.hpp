// SPDX-License-Identifier: Apache-2.0
//
// Atoms by place. The cube is cut into cells whose edges are no shorter than `reach`, so that all atoms that are no
// farther than that from a point are in its cell or in one of the 26 around it.
#ifndef THRUM_BENCH_INSITU_CELLS_HPP
#define THRUM_BENCH_INSITU_CELLS_HPP

#include <array>
#include <cstdint>
#include <vector>

#include "simulation.hpp"

namespace insitu {

class Cells {
  public:
    Cells(double edge, double reach);
    void fill(const std::vector<Vector> &atoms); // which are in the cube
    // visit(atom) for each in the cells around `at`, always in the same order.
    template <typename Visit>
    void around(const Vector &at, const Visit &visit) const;

  private:
    using Place = std::array<unsigned, 3>;
    unsigned along(double coordinate) const;
    Place place_of(const Vector &at) const { return {along(at.x), along(at.y), along(at.z)}; }
    std::size_t index(const Place &place) const {
        return (static_cast<std::size_t>(place[0]) * per_edge_ + place[1]) * per_edge_ + place[2];
    }
    std::array<unsigned, 3> beside(unsigned at) const;

    double edge_;
    unsigned per_edge_;                // 1: the cube is too small for three, which would be different ones
    std::vector<std::uint32_t> begin_; // in atoms_, of each cell, and the end of the last
    std::vector<std::uint32_t> atoms_; // by cells
};

// The one before, itself, the one after; all the same where there is one.
inline std::array<unsigned, 3> Cells::beside(unsigned at) const {
    return {(at + per_edge_ - 1) % per_edge_, at, (at + 1) % per_edge_};
}

template <typename Visit>
void Cells::around(const Vector &at, const Visit &visit) const {
    const Place place = place_of(at);
    const unsigned each = per_edge_ == 1 ? 1 : 3;
    const auto x = beside(place[0]), y = beside(place[1]), z = beside(place[2]);
    for (unsigned i = 0; i < each; i++)
        for (unsigned j = 0; j < each; j++)
            for (unsigned k = 0; k < each; k++) {
                const std::size_t cell = index({x[i], y[j], z[k]});
                for (std::uint32_t atom = begin_[cell]; atom < begin_[cell + 1]; atom++)
                    visit(atoms_[atom]);
            }
}

} // namespace insitu

#endif
