// SPDX-License-Identifier: Apache-2.0
//
// See matrix.hpp.
#include "matrix.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels.hpp"

namespace cholesky {

namespace {

// From -0.5 to 0.5, the same above and below the diagonal.
double noise(unsigned row, unsigned column) {
    std::uint64_t mixed =
        (std::uint64_t{row} * row + std::uint64_t{column} * column + 1) * 0x9e3779b97f4a7c15U;
    mixed ^= mixed >> 29;
    mixed *= 0xbf58476d1ce4e5b9U;
    return static_cast<double>(mixed >> 11) * 0x1p-53 - 0.5;
}

} // namespace

Matrix::Matrix(unsigned size, unsigned tile) : size_(size), tile_(tile), values_(std::size_t{size} * size) {
    for (unsigned column = 0; column < size; column++)
        for (unsigned row = 0; row < size; row++) {
            double *place = at(row / tile, column / tile);
            place += row % tile + std::size_t{column % tile} * tile;
            *place =
                noise(row, column) + (row == column ? size : 0); // more than the rest of its row together
        }
}

std::vector<double> Matrix::by_columns() const {
    std::vector<double> columns(values_.size());
    for (unsigned column = 0; column < size_; column++)
        for (unsigned row = 0; row < size_; row++)
            columns[row + std::size_t{column} * size_] =
                values_[(std::size_t{row / tile_} * tiles() + column / tile_) * tile_ * tile_ + row % tile_ +
                        std::size_t{column % tile_} * tile_];
    return columns;
}

std::vector<double> Matrix::factor() const {
    std::vector<double> columns = by_columns();
    factorise(columns.data(), static_cast<int>(size_));
    return columns;
}

double Matrix::error(const std::vector<double> &expected) const {
    const std::vector<double> found = by_columns();
    double difference = 0, norm = 0;
    for (unsigned column = 0; column < size_; column++)
        for (unsigned row = column; row < size_; row++) {
            const std::size_t place = row + std::size_t{column} * size_;
            difference += std::pow(found[place] - expected[place], 2);
            norm += std::pow(expected[place], 2);
        }
    return difference >= 0 ? std::sqrt(difference / norm) : std::numeric_limits<double>::infinity();
}

} // namespace cholesky
