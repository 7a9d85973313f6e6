// SPDX-License-Identifier: Apache-2.0
//
// See cells.hpp.
#include "cells.hpp"

#include <algorithm>
#include <numeric>

namespace insitu {

Cells::Cells(double edge, double reach) : edge_(edge), per_edge_(static_cast<unsigned>(edge / reach)) {
    if (per_edge_ < 3)
        per_edge_ = 1;
    begin_.resize(static_cast<std::size_t>(per_edge_) * per_edge_ * per_edge_ + 1);
}

// What stands on the far side belongs to the last cell, also by a rounding error.
unsigned Cells::along(double coordinate) const {
    const auto at = static_cast<int>(coordinate / edge_ * per_edge_);
    return static_cast<unsigned>(std::clamp(at, 0, static_cast<int>(per_edge_) - 1));
}

// Sorting by counting. Each cell is filled from its end, by the last atom first, so that atoms keep their order.
void Cells::fill(const std::vector<Vector> &atoms) {
    std::fill(begin_.begin(), begin_.end(), 0);
    for (const Vector &atom : atoms)
        begin_[index(place_of(atom))]++;
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    atoms_.resize(atoms.size());
    for (auto atom = static_cast<std::uint32_t>(atoms.size()); atom-- > 0;)
        atoms_[--begin_[index(place_of(atoms[atom]))]] = atom;
}

} // namespace insitu
