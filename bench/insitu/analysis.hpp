// SPDX-License-Identifier: Apache-2.0
//
// What is asked of the snapshots, averaged over them:
//
//   g(r), the radial distribution function: how many atoms there are at a distance r from an atom, as a ratio to how many
//   there would be if they were anywhere; counted over all pairs.
//
//   S(k), the structure factor, |sum over atoms of exp(i k r)|^2 / atoms: what a beam that is scattered by so much would
//   show. For wave vectors along the edges, the diagonals of the faces and those of the cube, 13 directions, whose waves
//   are whole in the periodic cube.
//
// A snapshot is looked at in shares, each by a thread: a share has so many atoms, with their pairs, and so many waves.
#ifndef THRUM_BENCH_INSITU_ANALYSIS_HPP
#define THRUM_BENCH_INSITU_ANALYSIS_HPP

#include <cstdint>
#include <vector>

#include "simulation.hpp"

namespace insitu {

struct Point {
    double x, y;
};

class Analysis {
  public:
    // Distances up to half of the edge, wave numbers up to `longest`.
    Analysis(double edge, std::size_t atoms, double longest);

    // What a share of one snapshot gives.
    struct Found {
        std::vector<std::uint64_t> pairs; // by distance
        std::vector<double> scattered;    // by wave; of those of other shares 0
    };
    // Share number `share` of `shares`. By any number of threads at a time.
    Found look(const Snapshot &snapshot, unsigned share, unsigned shares) const;
    // By one thread at a time, and not while another one asks.
    void add(const Found &found);

    // After all shares of so many snapshots have been added.
    std::vector<Point> radial(unsigned snapshots) const; // the middle of a distance, g
    std::vector<Point>
    structure(unsigned snapshots) const; // a wave number, S averaged over waves of that number
    const std::vector<std::uint64_t> &pairs() const { return sum_.pairs; }

  private:
    struct Wave {
        int x, y, z; // of 2 pi / edge
        int square() const { return x * x + y * y + z * z; }
    };
    void count_pairs(const Snapshot &snapshot, unsigned share, unsigned shares, Found *found) const;
    double scattered(const Snapshot &snapshot, const Wave &wave) const;

    double edge_, atoms_;
    std::vector<Wave> waves_;
    Found sum_;
};

} // namespace insitu

#endif
