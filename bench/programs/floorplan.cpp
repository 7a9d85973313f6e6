// SPDX-License-Identifier: Apache-2.0
//
// floorplan [CELLS [CUT-OFF]]: places rectangular cells, each in one of several shapes, so that the rectangle
// around them all has the least area, by branch and bound: cell after cell, each beside or below one that is
// there, and no further where the area is not below the best complete plan's. Each try is a thread for the
// first CUT-OFF cells. The area is the same in every run; how much had to be tried depends on which was first.
#include <algorithm>
#include <array>

#include "async.hpp"

namespace {

constexpr unsigned kBoard = 64; // squares in width and height
constexpr unsigned kMostCells = 20;

struct Shape {
    unsigned width, height;
};

struct Place {
    unsigned x, y, end_x, end_y;
};

struct Plan {
    std::array<std::uint64_t, kBoard> taken{}; // a bit a square
    std::array<Place, kMostCells> places{};
    unsigned cells = 0, width = 0, height = 0;

    bool fits(const Place &place) const {
        if (place.end_x > kBoard || place.end_y > kBoard)
            return false;
        const std::uint64_t squares = mask(place);
        for (unsigned y = place.y; y < place.end_y; y++)
            if ((taken[y] & squares) != 0)
                return false;
        return true;
    }
    void put(const Place &place) {
        for (unsigned y = place.y; y < place.end_y; y++)
            taken[y] |= mask(place);
        places[cells++] = place;
        width = std::max(width, place.end_x);
        height = std::max(height, place.end_y);
    }

  private:
    static std::uint64_t mask(const Place &place) {
        const std::uint64_t squares = (std::uint64_t{1} << (place.end_x - place.x)) - 1;
        return squares << place.x;
    }
};

std::vector<std::vector<Shape>> cells; // the shapes of each
std::atomic<unsigned> best{kBoard * kBoard + 1};
unsigned cut_off;

void make_cells(unsigned count) {
    program::Random random(5);
    for (unsigned i = 0; i < count; i++) {
        const unsigned width = 2 + random.below(5), height = 2 + random.below(5);
        cells.push_back({{width, height}});
        if (width != height)
            cells.back().push_back({height, width});
    }
}

void found(unsigned area) {
    unsigned known = best.load(std::memory_order_relaxed);
    while (area < known && !best.compare_exchange_weak(known, area, std::memory_order_relaxed)) {
    }
}

void search(const Plan &plan);

void try_at(const Plan &plan, unsigned x, unsigned y, const Shape &shape) {
    const Place place{x, y, x + shape.width, y + shape.height};
    const unsigned area = std::max(plan.width, place.end_x) * std::max(plan.height, place.end_y);
    if (area >= best.load(std::memory_order_relaxed) || !plan.fits(place))
        return;
    Plan next = plan;
    next.put(place);
    search(next);
}

void search(const Plan &plan) {
    if (plan.cells == cells.size())
        return found(plan.width * plan.height);
    std::vector<std::future<void>> tries;
    for (const Shape &shape : cells[plan.cells])
        for (unsigned i = 0; i < plan.cells; i++)
            for (const bool below : {false, true}) {
                const unsigned x = below ? plan.places[i].x : plan.places[i].end_x;
                const unsigned y = below ? plan.places[i].end_y : plan.places[i].y;
                const auto one = [&plan, x, y, &shape] { try_at(plan, x, y, shape); };
                if (plan.cells < cut_off)
                    tries.push_back(program::start(one));
                else
                    one();
            }
    program::wait_for(tries);
}

} // namespace

int main(int argc, char **argv) {
    argc = program::arguments_of(argc, argv);
    const auto count = static_cast<unsigned>(program::size_argument(argc, argv, 1, 12));
    cut_off = static_cast<unsigned>(program::size_argument(argc, argv, 2, 6));
    program::require(count <= kMostCells, "there are at most 20 cells");
    make_cells(count);

    program::Stopwatch stopwatch;
    Plan first; // the first cell has no choice of place, and its shapes are each other's mirror images
    first.put({0, 0, cells[0][0].width, cells[0][0].height});
    search(first);
    stopwatch.stop();
    program::Checksum checksum;
    checksum.add(best.load());
    stopwatch.report(checksum.value(), program::threads, program::deferred);
    program::require(best.load() <= kBoard * kBoard, "there is no plan");
    return 0;
}
