// SPDX-License-Identifier: Apache-2.0
//
// See analysis.hpp.
#include "analysis.hpp"

#include <cmath>
#include <map>

namespace insitu {

namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr std::size_t kBins = 200;

// One of each two that are opposite: they scatter alike.
constexpr int kDirections[][3] = {{1, 0, 0},  {0, 1, 0},  {0, 0, 1},  {1, 1, 0},  {1, -1, 0},
                                  {1, 0, 1},  {1, 0, -1}, {0, 1, 1},  {0, 1, -1}, {1, 1, 1},
                                  {1, 1, -1}, {1, -1, 1}, {1, -1, -1}};

double volume_of_sphere(double radius) {
    return 4 * kPi / 3 * radius * radius * radius;
}

} // namespace

Analysis::Analysis(double edge, std::size_t atoms, double longest)
    : edge_(edge), atoms_(static_cast<double>(atoms)) {
    const double limit = longest * edge / (2 * kPi); // as a Wave counts
    for (const auto &direction : kDirections)
        for (int times = 1;; times++) {
            const Wave wave = {direction[0] * times, direction[1] * times, direction[2] * times};
            if (wave.square() > limit * limit)
                break;
            waves_.push_back(wave);
        }
    sum_.pairs.resize(kBins);
    sum_.scattered.resize(waves_.size());
}

// Shares take turns, atom by atom and wave by wave: the first atoms have the most pairs.
Analysis::Found Analysis::look(const Snapshot &snapshot, unsigned share, unsigned shares) const {
    Found found{std::vector<std::uint64_t>(kBins), std::vector<double>(waves_.size())};
    count_pairs(snapshot, share, shares, &found);
    for (std::size_t wave = share; wave < waves_.size(); wave += shares)
        found.scattered[wave] = scattered(snapshot, waves_[wave]);
    return found;
}

void Analysis::count_pairs(const Snapshot &snapshot, unsigned share, unsigned shares, Found *found) const {
    const std::vector<Vector> &atoms = snapshot.atoms;
    const double reach = edge_ / 2, per_bin = reach / kBins;
    for (std::size_t i = share; i < atoms.size(); i += shares)
        for (std::size_t j = i + 1; j < atoms.size(); j++) {
            const double distance = square(nearest(atoms[i], atoms[j], edge_));
            if (distance >= reach * reach)
                continue;
            const auto bin = static_cast<std::size_t>(std::sqrt(distance) / per_bin);
            found->pairs[bin < kBins ? bin : kBins - 1]++; // not below only by a rounding error
        }
}

double Analysis::scattered(const Snapshot &snapshot, const Wave &wave) const {
    const double unit = 2 * kPi / edge_;
    double real = 0, imaginary = 0;
    for (const Vector &at : snapshot.atoms) {
        const double phase = unit * (wave.x * at.x + wave.y * at.y + wave.z * at.z);
        real += std::cos(phase);
        imaginary += std::sin(phase);
    }
    return (real * real + imaginary * imaginary) / atoms_;
}

void Analysis::add(const Found &found) {
    for (std::size_t bin = 0; bin < kBins; bin++)
        sum_.pairs[bin] += found.pairs[bin];
    for (std::size_t wave = 0; wave < waves_.size(); wave++)
        sum_.scattered[wave] += found.scattered[wave];
}

std::vector<Point> Analysis::radial(unsigned snapshots) const {
    const double per_bin = edge_ / 2 / kBins, volume = edge_ * edge_ * edge_;
    std::vector<Point> points;
    for (std::size_t bin = 0; bin < kBins; bin++) {
        const double from = per_bin * static_cast<double>(bin);
        const double shell = volume_of_sphere(from + per_bin) - volume_of_sphere(from);
        const double anywhere = atoms_ * (atoms_ - 1) / 2 * shell / volume * snapshots;
        points.push_back({from + per_bin / 2, static_cast<double>(sum_.pairs[bin]) / anywhere});
    }
    return points;
}

std::vector<Point> Analysis::structure(unsigned snapshots) const {
    struct Mean {
        double sum = 0, count = 0;
    };
    std::map<int, Mean> means; // by the square of the wave number
    for (std::size_t wave = 0; wave < waves_.size(); wave++) {
        Mean &mean = means[waves_[wave].square()];
        mean.sum += sum_.scattered[wave] / snapshots;
        mean.count++;
    }
    std::vector<Point> points;
    points.reserve(means.size());
    for (const auto &[square, mean] : means)
        points.push_back({2 * kPi / edge_ * std::sqrt(square), mean.sum / mean.count});
    return points;
}

} // namespace insitu
