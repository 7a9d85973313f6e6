// SPDX-License-Identifier: Apache-2.0
//
// sparselu [BLOCKS [SIZE]]: LU factorisation without pivoting of a sparse matrix of BLOCKS x BLOCKS blocks,
// of which those without an entry are left out until something fills in. In each of the BLOCKS steps the
// diagonal block is factorised, then a thread for every block of its row and column, then one for every block
// of the rest that changes.
#include <cmath>
#include <memory>

#include "async.hpp"

namespace {

class Matrix {
  public:
    Matrix(unsigned blocks, unsigned size) : blocks_(blocks), size_(size), data_(blocks * blocks) {
        for (unsigned i = 0; i < blocks; i++)
            for (unsigned j = 0; j < blocks; j++)
                if (present(i, j))
                    fill(i, j);
    }
    unsigned blocks() const { return blocks_; }
    unsigned size() const { return size_; }
    double *block(unsigned i, unsigned j) { return data_[i * blocks_ + j].get(); } // null: all zero
    double *block_or_zeros(unsigned i, unsigned j) {
        auto &block = data_[i * blocks_ + j];
        if (!block)
            block.reset(new double[size_ * size_]()); // NOLINT: its size is known at run time only
        return block.get();
    }

  private:
    // The diagonal, its neighbours, and about a third of the others.
    static bool present(unsigned i, unsigned j) {
        const unsigned distance = i > j ? i - j : j - i;
        return distance <= 1 || program::Random(i * 1000 + j + 7).below(3) == 0;
    }
    void fill(unsigned i, unsigned j) {
        program::Random random(i * blocks_ + j + 1);
        double *block = block_or_zeros(i, j);
        for (unsigned k = 0; k < size_ * size_; k++)
            block[k] = random.unit() - 0.5;
        for (unsigned k = 0; i == j && k < size_; k++)
            block[k * size_ + k] += blocks_ * size_; // dominant, so that no pivoting is needed
    }
    unsigned blocks_, size_;
    std::vector<std::unique_ptr<double[]>> data_;
};

// The diagonal block: a := its L (below, ones on the diagonal) and U.
void factorise(double *a, unsigned n) {
    for (unsigned k = 0; k < n; k++)
        for (unsigned i = k + 1; i < n; i++) {
            const double factor = a[i * n + k] /= a[k * n + k];
            for (unsigned j = k + 1; j < n; j++)
                a[i * n + j] -= factor * a[k * n + j];
        }
}

// A block right of the diagonal: b := L^-1 b.
void solve_row(const double *diagonal, double *b, unsigned n) {
    for (unsigned k = 0; k < n; k++)
        for (unsigned i = k + 1; i < n; i++)
            for (unsigned j = 0; j < n; j++)
                b[i * n + j] -= diagonal[i * n + k] * b[k * n + j];
}

// A block below it: b := b U^-1.
void solve_column(const double *diagonal, double *b, unsigned n) {
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < n; k++) {
            const double factor = b[i * n + k] /= diagonal[k * n + k];
            for (unsigned j = k + 1; j < n; j++)
                b[i * n + j] -= factor * diagonal[k * n + j];
        }
}

void subtract_product(const double *column, const double *row, double *c, unsigned n) {
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < n; k++)
            for (unsigned j = 0; j < n; j++)
                c[i * n + j] -= column[i * n + k] * row[k * n + j];
}

void solve_step(Matrix &matrix, unsigned k, std::vector<std::future<void>> &futures) {
    const unsigned n = matrix.size();
    const double *diagonal = matrix.block(k, k);
    for (unsigned i = k + 1; i < matrix.blocks(); i++) {
        if (double *block = matrix.block(k, i))
            futures.push_back(program::start([=] { solve_row(diagonal, block, n); }));
        if (double *block = matrix.block(i, k))
            futures.push_back(program::start([=] { solve_column(diagonal, block, n); }));
    }
    program::wait_for(futures);
}

void update_step(Matrix &matrix, unsigned k, std::vector<std::future<void>> &futures) {
    const unsigned n = matrix.size();
    for (unsigned i = k + 1; i < matrix.blocks(); i++)
        for (unsigned j = k + 1; j < matrix.blocks(); j++) {
            const double *column = matrix.block(i, k), *row = matrix.block(k, j);
            if (column == nullptr || row == nullptr)
                continue;
            double *target = matrix.block_or_zeros(i, j);
            futures.push_back(program::start([=] { subtract_product(column, row, target, n); }));
        }
    program::wait_for(futures);
}

std::uint64_t checksum_of(Matrix &matrix) {
    program::Checksum checksum;
    for (unsigned i = 0; i < matrix.blocks(); i++)
        for (unsigned j = 0; j < matrix.blocks(); j++)
            if (const double *block = matrix.block(i, j))
                checksum.add(block, matrix.size() * matrix.size() * sizeof *block);
    return checksum.value();
}

// Row 0 of L U, which is row 0 of U, has to be row 0 of the original; the last entry takes all of L and U.
void check(Matrix &factors, Matrix &original) {
    const unsigned n = factors.size(), last = factors.blocks() - 1;
    double sum = 0;
    for (unsigned k = 0; k <= last; k++) {
        const double *l = factors.block(last, k), *u = factors.block(k, last);
        for (unsigned m = 0; l != nullptr && u != nullptr && m < n; m++)
            sum += (k == last && m == n - 1 ? 1 : l[(n - 1) * n + m]) * u[m * n + n - 1];
    }
    program::require(factors.block(0, 0)[0] == original.block(0, 0)[0], "the first pivot changed");
    program::require(std::fabs(sum - original.block(last, last)[n * n - 1]) < 1e-6, "L U is not the matrix");
}

} // namespace

int main(int argc, char **argv) {
    argc = program::arguments_of(argc, argv);
    const auto blocks = static_cast<unsigned>(program::size_argument(argc, argv, 1, 40));
    const auto size = static_cast<unsigned>(program::size_argument(argc, argv, 2, 40));
    Matrix matrix(blocks, size), original(blocks, size);
    std::vector<std::future<void>> futures;

    program::Stopwatch stopwatch;
    for (unsigned k = 0; k < blocks; k++) {
        factorise(matrix.block(k, k), size);
        solve_step(matrix, k, futures);
        update_step(matrix, k, futures);
    }
    stopwatch.stop();
    stopwatch.report(checksum_of(matrix), program::threads, program::deferred);
    check(matrix, original);
    return 0;
}
