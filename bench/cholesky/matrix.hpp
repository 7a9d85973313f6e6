// SPDX-License-Identifier: Apache-2.0
//
// The matrix that is factorised: its lower triangle in tiles, and how far a result is from LAPACK's.
#ifndef THRUM_BENCH_CHOLESKY_MATRIX_HPP
#define THRUM_BENCH_CHOLESKY_MATRIX_HPP

#include <cstddef>
#include <vector>

namespace cholesky {

class Matrix {
  public:
    // Symmetric and positive definite; the same each time.
    Matrix(unsigned size, unsigned tile);

    unsigned size() const { return size_; }
    unsigned tile() const { return tile_; }
    unsigned tiles() const { return size_ / tile_; } // in a row
    double *at(unsigned i, unsigned j) {
        return values_.data() + (std::size_t{i} * tiles() + j) * tile_ * tile_;
    }

    // By LAPACK, the lower triangle, columns one after the other.
    std::vector<double> factor() const;
    // How far this, a result, is from that, in the Frobenius norm, to the norm of that. Infinity: something in it is no
    // number.
    double error(const std::vector<double> &expected) const;

  private:
    std::vector<double> by_columns() const;

    unsigned size_, tile_;
    std::vector<double>
        values_; // tile by tile, and each column by column; what is above the diagonal is not used
};

} // namespace cholesky

#endif
