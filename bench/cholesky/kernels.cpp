// SPDX-License-Identifier: Apache-2.0
//
// See kernels.hpp.
#include "kernels.hpp"

#include <cblas.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "../must.hpp"

// LAPACK has no C header of its own. The last argument is the length of the first, as Fortran passes it.
extern "C" void dpotrf_(const char *triangle, const int *size, double *matrix, const int *stride, int *info,
                        std::size_t length);

namespace cholesky {

using bench::must;

namespace {

constexpr int kPanel = 32; // columns of a tile that POTRF does at a time

void lapack_potrf(double *matrix, int size, int stride) {
    int info = 0;
    dpotrf_("L", &size, matrix, &stride, &info, 1);
    must(info != 0 ? EDOM : 0, "dpotrf");
}

std::ptrdiff_t at(int row, int column, int stride) {
    return row + static_cast<std::ptrdiff_t>(column) * stride;
}

} // namespace

void factorise(double *matrix, int size) {
    lapack_potrf(matrix, size, size);
}

Call::Range Call::part(unsigned member, int begin) const {
    const auto edge = [&](unsigned number) {
        return begin + static_cast<int>(static_cast<unsigned>(size_ - begin) * number / members_);
    };
    return {edge(member), edge(member + 1)};
}

// Those rows of the tile become such that, times the transposed triangle, they are what they were.
void Call::solve(Range rows, const double *triangle, double *tile, int depth) const {
    if (rows.count() > 0)
        cblas_dtrsm(CblasColMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, rows.count(), depth, 1,
                    triangle, size_, tile + rows.begin, size_);
}

// c_ loses left * right^T in those rows and columns.
void Call::subtract(Range rows, Range columns, const double *left, const double *right, int depth) const {
    if (rows.count() > 0 && columns.count() > 0)
        cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, rows.count(), columns.count(), depth, -1,
                    left + rows.begin, size_, right + columns.begin, size_, 1,
                    c_ + at(rows.begin, columns.begin, size_), size_);
}

// c_ loses from * from^T in those rows, from that column to the diagonal.
void Call::subtract_square(Range rows, int first_column, const double *from, int depth) const {
    subtract(rows, {first_column, rows.begin}, from, from, depth);
    if (rows.count() > 0)
        cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, rows.count(), depth, -1, from + rows.begin,
                    size_, 1, c_ + at(rows.begin, rows.begin, size_), size_);
}

// Panel by panel: member 0 factorises what stands on the diagonal, then all solve what is below it, then all subtract
// that from what is to the right. Each needs all of the step before: three barriers a panel.
void Call::potrf(unsigned member) {
    if (members_ == 1)
        return lapack_potrf(c_, size_, size_);
    for (int begin = 0; begin < size_; begin += kPanel) {
        const int columns = std::min(kPanel, size_ - begin), next = begin + columns;
        double *panel = c_ + at(0, begin, size_);
        if (member == 0)
            lapack_potrf(panel + begin, columns, size_);
        barrier_.wait();
        const Range rows = part(member, next);
        solve(rows, panel + begin, panel, columns);
        barrier_.wait();
        subtract_square(rows, next, panel, columns);
        barrier_.wait();
    }
}

void Call::execute(unsigned member) {
    const Range rows = part(member, 0);
    switch (kind_) {
    case Kind::kPotrf: potrf(member); return;
    case Kind::kTrsm: solve(rows, b_, c_, size_); break;
    case Kind::kSyrk: subtract_square(rows, 0, a_, size_); break;
    case Kind::kGemm: subtract(rows, {0, size_}, a_, b_, size_); break;
    }
    barrier_.wait();
}

} // namespace cholesky
