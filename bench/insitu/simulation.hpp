// SPDX-License-Identifier: Apache-2.0
//
// A simulation as its drivers and its analysis see it: it advances by steps, and shows where its atoms are. md.hpp is
// one, lammps.hpp another.
#ifndef THRUM_BENCH_INSITU_SIMULATION_HPP
#define THRUM_BENCH_INSITU_SIMULATION_HPP

#include <vector>

namespace insitu {

struct Vector {
    double x, y, z;
};

// Atoms in a cube that is periodic: an atom that leaves it on one side comes in again on the other.
struct Snapshot {
    double edge = 0;
    std::vector<Vector> atoms;
};

// A difference of two coordinates, to the nearest of the periodic images. Both are in the cube, or not far outside.
inline double nearest(double difference, double edge) {
    if (difference > edge / 2)
        return difference - edge;
    return difference < -edge / 2 ? difference + edge : difference;
}

inline Vector nearest(const Vector &a, const Vector &b, double edge) {
    return {nearest(a.x - b.x, edge), nearest(a.y - b.y, edge), nearest(a.z - b.z, edge)};
}

inline double square(const Vector &v) {
    return v.x * v.x + v.y * v.y + v.z * v.z;
}

class Simulation {
  public:
    virtual ~Simulation() = default;
    virtual void advance(unsigned steps) = 0;
    virtual void show(Snapshot *snapshot) = 0;
    virtual double energy() = 0; // of all atoms: kinetic and potential
};

} // namespace insitu

#endif
