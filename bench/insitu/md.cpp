// SPDX-License-Identifier: Apache-2.0
//
// See md.hpp.
#include "md.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>

namespace insitu {

namespace {

// 4 (r^-12 - r^-6), and the force that belongs to it, divided by the distance; from the distance's square.
double potential_at(double square) {
    const double sixth = 1 / (square * square * square);
    return 4 * sixth * (sixth - 1);
}

double push_at(double square) {
    const double sixth = 1 / (square * square * square);
    return 48 * sixth * (sixth - 0.5) / square;
}

void add(Vector *sum, const Vector &v, double factor) {
    sum->x += factor * v.x;
    sum->y += factor * v.y;
    sum->z += factor * v.z;
}

double wrapped(double coordinate, double edge) {
    return coordinate - edge * std::floor(coordinate / edge);
}

} // namespace

std::vector<Vector> lattice(unsigned cells, double edge) {
    constexpr Vector kInCell[] = {{0, 0, 0}, {0, 0.5, 0.5}, {0.5, 0, 0.5}, {0.5, 0.5, 0}};
    std::vector<Vector> atoms;
    for (unsigned x = 0; x < cells; x++)
        for (unsigned y = 0; y < cells; y++)
            for (unsigned z = 0; z < cells; z++)
                for (const Vector &at : kInCell)
                    atoms.push_back({(x + at.x) * edge, (y + at.y) * edge, (z + at.z) * edge});
    return atoms;
}

Fluid::Fluid(const FluidSettings &settings, Team *team, std::function<void()> exchange)
    : settings_(settings), team_(team), exchange_(std::move(exchange)),
      edge_(settings.cells * std::cbrt(4 / settings.density)),
      shift_(potential_at(settings.cutoff * settings.cutoff)),
      position_(lattice(settings.cells, edge_ / settings.cells)), velocity_(position_.size()),
      force_(position_.size()), cells_(edge_, settings.cutoff + settings.skin) {
    if (edge_ < 2 * (settings.cutoff + settings.skin))
        throw std::invalid_argument("the fluid is too small for its cutoff");
    heat();
    make_parts();
    make_lists();
    team_->run([this](unsigned i) { add_forces(&parts_[i]); });
}

// Velocities of the temperature, without a motion of the whole.
void Fluid::heat() {
    std::mt19937_64 random(settings_.seed);
    std::normal_distribution<double> normal;
    Vector mean{0, 0, 0};
    for (Vector &velocity : velocity_) {
        velocity = {normal(random), normal(random), normal(random)};
        add(&mean, velocity, 1 / static_cast<double>(velocity_.size()));
    }
    double squares = 0;
    for (Vector &velocity : velocity_) {
        add(&velocity, mean, -1);
        squares += square(velocity);
    }
    const double freedoms = 3 * static_cast<double>(velocity_.size() - 1);
    const double factor = std::sqrt(settings_.temperature * freedoms / squares);
    for (Vector &velocity : velocity_)
        velocity = {velocity.x * factor, velocity.y * factor, velocity.z * factor};
}

void Fluid::make_parts() {
    const std::size_t count = team_->size(), atoms = position_.size();
    parts_.resize(count);
    for (std::size_t i = 0; i < count; i++) {
        parts_[i].begin = atoms * i / count;
        parts_[i].end = atoms * (i + 1) / count;
    }
}

// --- a step -----------------------------------------------------------------------------------------------

void Fluid::advance(unsigned steps) {
    for (; steps > 0; steps--) {
        step();
        if (exchange_)
            exchange_();
    }
}

void Fluid::step() {
    team_->run([this](unsigned i) { drift(&parts_[i]); });
    const double allowed = settings_.skin / 2;
    if (std::any_of(parts_.begin(), parts_.end(),
                    [&](const Part &part) { return part.farthest > allowed * allowed; }))
        make_lists();
    team_->run([this](unsigned i) { push(&parts_[i]); });
}

void Fluid::kick(std::size_t atom) {
    add(&velocity_[atom], force_[atom], settings_.step / 2);
}

void Fluid::drift(Part *part) {
    part->farthest = 0;
    for (std::size_t i = part->begin; i < part->end; i++) {
        kick(i);
        add(&position_[i], velocity_[i], settings_.step);
        const Vector way = nearest(position_[i], listed_[i], edge_);
        part->farthest = std::max(part->farthest, square(way));
    }
}

void Fluid::push(Part *part) {
    add_forces(part);
    for (std::size_t i = part->begin; i < part->end; i++)
        kick(i);
}

void Fluid::add_forces(Part *part) {
    const double limit = settings_.cutoff * settings_.cutoff;
    double twice = 0; // each pair is met from both sides
    for (std::size_t i = part->begin; i < part->end; i++) {
        const Vector here = position_[i];
        Vector force{0, 0, 0};
        const std::size_t first = part->list_begin[i - part->begin],
                          end = part->list_begin[i - part->begin + 1];
        for (std::size_t at = first; at < end; at++) {
            const Vector way = nearest(here, position_[part->list[at]], edge_);
            const double distance = square(way);
            if (distance >= limit)
                continue;
            add(&force, way, push_at(distance));
            twice += potential_at(distance) - shift_;
        }
        force_[i] = force;
    }
    part->potential = twice / 2;
}

// --- lists ------------------------------------------------------------------------------------------------

// The cells by the caller alone, the lists by the team. An atom that has left the cube comes back into it here, and
// nowhere else.
void Fluid::make_lists() {
    for (Vector &at : position_)
        at = {wrapped(at.x, edge_), wrapped(at.y, edge_), wrapped(at.z, edge_)};
    listed_ = position_;
    cells_.fill(position_);
    team_->run([this](unsigned i) { list(&parts_[i]); });
    lists_made_++;
}

void Fluid::list(Part *part) {
    const double reach = settings_.cutoff + settings_.skin;
    part->list_begin.assign(1, 0);
    part->list.clear();
    for (std::size_t i = part->begin; i < part->end; i++) {
        cells_.around(position_[i], [&](std::uint32_t other) {
            if (other != i && square(nearest(position_[i], position_[other], edge_)) < reach * reach)
                part->list.push_back(other);
        });
        part->list_begin.push_back(static_cast<std::uint32_t>(part->list.size()));
    }
}

// --- what can be seen -------------------------------------------------------------------------------------

void Fluid::show(Snapshot *snapshot) {
    snapshot->edge = edge_;
    snapshot->atoms = position_;
}

double Fluid::kinetic() const {
    double twice = 0;
    for (const Vector &velocity : velocity_)
        twice += square(velocity);
    return twice / 2;
}

double Fluid::potential() const {
    double sum = 0;
    for (const Part &part : parts_)
        sum += part.potential;
    return sum;
}

Vector Fluid::momentum() const {
    Vector sum{0, 0, 0};
    for (const Vector &velocity : velocity_)
        add(&sum, velocity, 1);
    return sum;
}

} // namespace insitu
