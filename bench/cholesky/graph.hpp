// SPDX-License-Identifier: Apache-2.0
//
// The tasks of a tiled Cholesky factorisation, and which have to end before which may begin. Crews (crew.hpp) run them.
//
// Task (i, j, k), with i >= j >= k, is step k of tile (i, j) of the lower triangle; a tile's steps follow each other:
//
//   POTRF  i == j == k   factorises a tile of the diagonal                       after step k - 1 of the same tile
//   TRSM   i > j == k    solves a tile below it, with it                         and POTRF (k, k, k)
//   SYRK   i == j > k    subtracts from a tile of the diagonal what TRSM found    and TRSM (i, k, k)
//   GEMM   i > j > k     and from any other, to the left and above                and TRSM (i, k, k), (j, k, k)
#ifndef THRUM_BENCH_CHOLESKY_GRAPH_HPP
#define THRUM_BENCH_CHOLESKY_GRAPH_HPP

#include <atomic>
#include <cstddef>
#include <vector>

namespace cholesky {

enum class Kind { kPotrf, kTrsm, kSyrk, kGemm };

struct Task {
    unsigned i, j, k;

    Kind kind() const {
        if (j == k)
            return i == k ? Kind::kPotrf : Kind::kTrsm;
        return i == j ? Kind::kSyrk : Kind::kGemm;
    }
};

class Graph {
  public:
    explicit Graph(unsigned tiles); // in a row
    unsigned tiles() const { return tiles_; }
    unsigned tasks() const { return tiles_ * (tiles_ + 1) * (tiles_ + 2) / 6; }
    static Task first() { return {0, 0, 0}; }
    bool is_last(const Task &task) const { return task.k + 1 == tiles_; }

    // The task has ended: calls ready(next) for each that may begin now. From: any thread, once a task.
    template <class Ready>
    void finish(const Task &task, const Ready &ready) {
        const auto [i, j, k] = task;
        if (k < j)
            arrive({i, j, k + 1}, ready);
        else if (i == k)
            for (unsigned below = k + 1; below < tiles_; below++)
                arrive({below, k, k}, ready);
        else {
            for (unsigned left = k + 1; left <= i; left++)
                arrive({i, left, k}, ready);
            for (unsigned below = i + 1; below < tiles_; below++)
                arrive({below, i, k}, ready);
        }
    }

  private:
    // One of those that the task waits for has ended. The last one sees what the others have written (acquire, release).
    template <class Ready>
    void arrive(const Task &task, const Ready &ready) {
        if (left(task).fetch_sub(1, std::memory_order_acq_rel) == 1)
            ready(task);
    }
    std::atomic<unsigned> &left(const Task &task) {
        return left_[(std::size_t{task.i} * tiles_ + task.j) * tiles_ + task.k];
    }

    unsigned tiles_;
    std::vector<std::atomic<unsigned>> left_; // how many each still waits for
};

} // namespace cholesky

#endif
