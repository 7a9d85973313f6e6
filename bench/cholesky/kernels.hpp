// SPDX-License-Identifier: Apache-2.0
//
// The library that is called in each task: BLAS and LAPACK kernels on tiles, each split over the members of a team,
// which meet at a barrier. It stands for a vendor's library, which creates its team and waits in it as it likes; the
// kernels under it are those of the system's BLAS, used by one thread each.
#ifndef THRUM_BENCH_CHOLESKY_KERNELS_HPP
#define THRUM_BENCH_CHOLESKY_KERNELS_HPP

#include "barrier.hpp"
#include "graph.hpp"

namespace cholesky {

// One call. Tiles are square, columns one after the other.
//
//   POTRF  the lower triangle of c becomes its Cholesky factor
//   TRSM   c becomes c * b^-T, where b is a lower triangle
//   SYRK   the lower triangle of c loses a * a^T
//   GEMM   c loses a * b^T
class Call {
  public:
    Call(Kind kind, int size, const double *a, const double *b, double *c, unsigned members, void (*patch)())
        : kind_(kind), size_(size), a_(a), b_(b), c_(c), members_(members), barrier_(members, patch) {}

    // What member 0 .. members - 1 of the team does, all at once.
    void execute(unsigned member);

  private:
    struct Range {
        int begin, end;
        int count() const { return end - begin; }
    };

    void potrf(unsigned member);
    // The rows are of tiles, or of what is below and to the right of a triangle within one; `depth` columns take part.
    void solve(Range rows, const double *triangle, double *tile, int depth) const;
    void subtract(Range rows, Range columns, const double *left, const double *right, int depth) const;
    void subtract_square(Range rows, int first_column, const double *from, int depth) const;
    Range part(unsigned member, int begin) const; // of the rows from `begin` on

    const Kind kind_;
    const int size_;
    const double *const a_, *const b_;
    double *const c_;
    const unsigned members_;
    Barrier barrier_;
};

// The whole lower triangle at once, by LAPACK: what results are compared with. Columns one after the other.
void factorise(double *matrix, int size);

} // namespace cholesky

#endif
