// SPDX-License-Identifier: Apache-2.0
//
// See graph.hpp.
#include "graph.hpp"

namespace cholesky {

namespace {

// Of other tiles, beside the step before of its own.
unsigned needed(Kind kind) {
    switch (kind) {
    case Kind::kPotrf: return 0;
    case Kind::kTrsm:
    case Kind::kSyrk: return 1;
    case Kind::kGemm: break;
    }
    return 2;
}

} // namespace

Graph::Graph(unsigned tiles) : tiles_(tiles), left_(std::size_t{tiles} * tiles * tiles) {
    for (unsigned i = 0; i < tiles; i++)
        for (unsigned j = 0; j <= i; j++)
            for (unsigned k = 0; k <= j; k++) {
                const Task task{i, j, k};
                left(task).store(needed(task.kind()) + (k > 0 ? 1 : 0), std::memory_order_relaxed);
            }
}

} // namespace cholesky
