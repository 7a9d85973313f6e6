// SPDX-License-Identifier: Apache-2.0
//
// Is it physics, and is it seen right? The simulation: forces as their definition has them, energy and momentum are
// kept, and the distribution of the work does not matter. The analysis: a gas without forces, and a lattice, of which
// the answers are known.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "analysis.hpp"
#include "kernel_threads.hpp"
#include "md.hpp"

namespace {

using namespace insitu;

constexpr double kPi = 3.14159265358979323846;

// 864 atoms: three cells of the neighbour search along each edge, the fewest that there can be.
FluidSettings small() {
    FluidSettings settings;
    settings.cells = 6;
    return settings;
}

// 500 atoms: too few for cells.
FluidSettings smallest() {
    FluidSettings settings;
    settings.cells = 5;
    return settings;
}

// --- the simulation ---------------------------------------------------------------------------------------

struct Expected {
    std::vector<Vector> forces;
    double potential = 0;
};

double lennard_jones(double r) {
    return 4 * (std::pow(r, -12) - std::pow(r, -6));
}

// All pairs, by the definition.
Expected naive(const std::vector<Vector> &at, double edge, double cutoff) {
    Expected expected{std::vector<Vector>(at.size(), {0, 0, 0}), 0};
    for (std::size_t i = 0; i < at.size(); i++)
        for (std::size_t j = 0; j < at.size(); j++) {
            const Vector way = {std::remainder(at[i].x - at[j].x, edge),
                                std::remainder(at[i].y - at[j].y, edge),
                                std::remainder(at[i].z - at[j].z, edge)};
            const double r = std::sqrt(way.x * way.x + way.y * way.y + way.z * way.z);
            if (i == j || r >= cutoff)
                continue;
            const double push = 48 * std::pow(r, -13) - 24 * std::pow(r, -7);
            expected.forces[i].x += push * way.x / r;
            expected.forces[i].y += push * way.y / r;
            expected.forces[i].z += push * way.z / r;
            expected.potential += (lennard_jones(r) - lennard_jones(cutoff)) / 2;
        }
    return expected;
}

void expect_forces(const FluidSettings &settings, unsigned steps) {
    Alone team(3);
    Fluid fluid(settings, &team);
    fluid.advance(steps);
    const Expected expected = naive(fluid.positions(), fluid.edge(), settings.cutoff);
    double largest = 0;
    for (std::size_t i = 0; i < expected.forces.size(); i++) {
        EXPECT_NEAR(fluid.forces()[i].x, expected.forces[i].x, 1e-9) << i;
        EXPECT_NEAR(fluid.forces()[i].y, expected.forces[i].y, 1e-9) << i;
        EXPECT_NEAR(fluid.forces()[i].z, expected.forces[i].z, 1e-9) << i;
        largest = std::max(largest, std::fabs(expected.forces[i].x));
    }
    EXPECT_NEAR(fluid.potential(), expected.potential, 1e-9 * std::fabs(expected.potential));
    EXPECT_GT(largest, 10); // there is something to compare
    EXPECT_GT(fluid.lists_made(), 2U);
    EXPECT_LT(fluid.lists_made(), steps / 2); // most steps go by older lists
}

TEST(Fluid, ForcesAreThoseOfAllPairs) {
    for (const unsigned steps : {40U, 67U, 93U}) {
        expect_forces(small(), steps);
        expect_forces(smallest(), steps);
    }
}

// How far the total energy is from that at the beginning, at the most, as a share of it.
double drift(double step, unsigned steps) {
    FluidSettings settings = small();
    settings.step = step;
    Alone team(2);
    Fluid fluid(settings, &team);
    const double energy = fluid.energy();
    double farthest = 0;
    for (unsigned i = 0; i < steps; i++) {
        fluid.advance(1);
        farthest = std::max(farthest, std::fabs((fluid.energy() - energy) / energy));
    }
    return farthest;
}

TEST(Fluid, KeepsItsEnergy) {
    EXPECT_LT(drift(0.005, 400), 6e-4);
}

// The error of velocity Verlet goes with the square of the step.
TEST(Fluid, KeepsItsEnergyBetterByShorterSteps) {
    const double ratio = drift(0.005, 50) / drift(0.0025, 100);
    EXPECT_GT(ratio, 3);
    EXPECT_LT(ratio, 5);
}

TEST(Fluid, KeepsItsMomentum) {
    Alone team(3);
    Fluid fluid(small(), &team);
    fluid.advance(200);
    const Vector momentum = fluid.momentum();
    EXPECT_NEAR(momentum.x, 0, 1e-9);
    EXPECT_NEAR(momentum.y, 0, 1e-9);
    EXPECT_NEAR(momentum.z, 0, 1e-9);
    EXPECT_GT(fluid.kinetic(), 100); // of atoms that move
}

TEST(Fluid, BeginsWithItsTemperature) {
    Alone team(1);
    const Fluid fluid(small(), &team);
    const double freedoms = 3 * (static_cast<double>(fluid.positions().size()) - 1);
    EXPECT_NEAR(2 * fluid.kinetic() / freedoms, small().temperature, 1e-9);
}

TEST(Fluid, IsTheSameWhicheverThreadsDoTheWork) {
    Alone one(1), seven(7);
    KernelThreads three(3, Standing::kUsual);
    Fluid expected(small(), &one), a(small(), &seven), b(small(), &three);
    for (Fluid *fluid : {&expected, &a, &b})
        fluid->advance(50);
    for (std::size_t i = 0; i < expected.positions().size(); i++)
        for (const Fluid *fluid : {&a, &b}) {
            ASSERT_EQ(fluid->positions()[i].x, expected.positions()[i].x) << i;
            ASSERT_EQ(fluid->positions()[i].y, expected.positions()[i].y) << i;
            ASSERT_EQ(fluid->positions()[i].z, expected.positions()[i].z) << i;
        }
}

TEST(Fluid, RefusesWhatIsTooSmall) {
    FluidSettings settings;
    settings.cells = 3;
    Alone team(1);
    EXPECT_THROW(Fluid(settings, &team), std::invalid_argument);
}

// --- the analysis -----------------------------------------------------------------------------------------

void look(Analysis *analysis, const Snapshot &snapshot, unsigned shares) {
    for (unsigned i = 0; i < shares; i++)
        analysis->add(analysis->look(snapshot, i, shares));
}

Snapshot gas(std::size_t atoms, double edge, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> anywhere(0, edge);
    Snapshot snapshot{edge, {}};
    for (std::size_t i = 0; i < atoms; i++)
        snapshot.atoms.push_back({anywhere(random), anywhere(random), anywhere(random)});
    return snapshot;
}

TEST(Analysis, AnIdealGasHasNoStructure) {
    constexpr double kEdge = 10;
    constexpr std::size_t kAtoms = 1000;
    constexpr unsigned kSnapshots = 20;
    Analysis analysis(kEdge, kAtoms, 12);
    for (unsigned i = 0; i < kSnapshots; i++)
        look(&analysis, gas(kAtoms, kEdge, i), 3);
    for (const Point &point : analysis.radial(kSnapshots)) {
        const double shell = 4 * kPi * point.x * point.x * kEdge / 2 / 200;
        const double pairs = kSnapshots * kAtoms * (kAtoms - 1) / 2.0 * shell / (kEdge * kEdge * kEdge);
        if (pairs > 100) {
            EXPECT_NEAR(point.y, 1, 5 / std::sqrt(pairs)) << point.x;
        }
    }
    double sum = 0;
    const std::vector<Point> structure = analysis.structure(kSnapshots);
    for (const Point &point : structure)
        sum += point.y;
    EXPECT_NEAR(sum / static_cast<double>(structure.size()), 1,
                0.1); // each is 1 with that deviation, over some 50 * 100
}

constexpr unsigned kCells = 6;
constexpr double kCell = 1.5;

Snapshot crystal() {
    return {kCells * kCell, lattice(kCells, kCell)};
}

// Of a face-centred cubic lattice: 12 neighbours at a / sqrt(2), 6 at a, 24 at a sqrt(3/2).
TEST(Analysis, ALatticeHasItsShells) {
    const Snapshot snapshot = crystal();
    const std::size_t atoms = snapshot.atoms.size();
    Analysis analysis(snapshot.edge, atoms, 12);
    look(&analysis, snapshot, 1);
    const double per_bin = snapshot.edge / 2 / static_cast<double>(analysis.pairs().size());
    const auto within = [&](double from, double to) {
        std::uint64_t pairs = 0;
        for (std::size_t bin = 0; bin < analysis.pairs().size(); bin++)
            if (const double middle = (static_cast<double>(bin) + 0.5) * per_bin;
                middle > from && middle < to)
                pairs += analysis.pairs()[bin];
        return 2 * pairs / atoms;
    };
    const double a = kCell, wide = 0.03 * a;
    EXPECT_EQ(within(0, a / std::sqrt(2) - wide), 0U);
    EXPECT_EQ(within(a / std::sqrt(2) - wide, a / std::sqrt(2) + wide), 12U);
    EXPECT_EQ(within(a / std::sqrt(2) + wide, a - wide), 0U);
    EXPECT_EQ(within(a - wide, a + wide), 6U);
    EXPECT_EQ(within(a * std::sqrt(1.5) - wide, a * std::sqrt(1.5) + wide), 24U);
}

// It scatters as a whole where the indices of the reflection are all even or all odd, here (111), (200), (220) and (222),
// and not at all in between.
TEST(Analysis, ALatticeHasItsPeaks) {
    const Snapshot snapshot = crystal();
    const auto atoms = static_cast<double>(snapshot.atoms.size());
    Analysis analysis(snapshot.edge, snapshot.atoms.size(), 2 * kPi / kCell * 3.5);
    look(&analysis, snapshot, 2);
    unsigned peaks = 0;
    for (const Point &point : analysis.structure(1)) {
        const double wave = point.x * kCell / (2 * kPi), square = wave * wave;
        const bool is_peak = std::fabs(square - 3) < 1e-9 || std::fabs(square - 4) < 1e-9 ||
                             std::fabs(square - 8) < 1e-9 || std::fabs(square - 12) < 1e-9;
        EXPECT_NEAR(point.y, is_peak ? atoms : 0, 1e-6) << square;
        peaks += is_peak;
    }
    EXPECT_EQ(peaks, 4U);
}

// A fluid is between the two: its atoms keep a distance, far away anything goes, and no wave stands out. A hot crystal
// becomes one soon.
TEST(Analysis, AFluidHasOneShell) {
    constexpr unsigned kSnapshots = 10;
    FluidSettings hot = small();
    hot.temperature = 4;
    Alone team(2);
    Fluid fluid(hot, &team);
    Snapshot snapshot;
    fluid.show(&snapshot);
    Analysis analysis(snapshot.edge, snapshot.atoms.size(), 12);
    fluid.advance(400);
    for (unsigned i = 0; i < kSnapshots; i++) {
        fluid.advance(20);
        fluid.show(&snapshot);
        look(&analysis, snapshot, 1);
    }
    Point peak{0, 0};
    for (const Point &point : analysis.radial(kSnapshots)) {
        if (point.x < 0.75) {
            EXPECT_EQ(point.y, 0) << point.x;
        }
        if (point.y > peak.y)
            peak = point;
    }
    EXPECT_NEAR(peak.x, 1.06, 0.04);
    EXPECT_NEAR(peak.y, 2.2, 0.3);
    for (const Point &point : analysis.structure(kSnapshots))
        EXPECT_LT(point.y, 10) << point.x; // a reflection of a crystal is hundreds
}

TEST(Analysis, SharesMakeTheWhole) {
    const Snapshot snapshot = gas(300, 7, 1);
    Analysis whole(snapshot.edge, snapshot.atoms.size(), 9), shared(snapshot.edge, snapshot.atoms.size(), 9);
    look(&whole, snapshot, 1);
    look(&shared, snapshot, 7);
    EXPECT_EQ(shared.pairs(), whole.pairs());
    const std::vector<Point> a = shared.structure(1), b = whole.structure(1);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); i++)
        EXPECT_EQ(a[i].y, b[i].y) << a[i].x;
}

} // namespace
