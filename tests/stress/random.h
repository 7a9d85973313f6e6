// SPDX-License-Identifier: Apache-2.0
//
// Random numbers that are the same for the same seed everywhere.
#ifndef TESTS_STRESS_RANDOM_H
#define TESTS_STRESS_RANDOM_H

#include <cstdint>

inline std::uint64_t mixed(std::uint64_t x) { // splitmix64
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    unsigned below(unsigned limit) { return static_cast<unsigned>((state_ = mixed(state_)) >> 33) % limit; }
    bool one_in(unsigned n) { return below(n) == 0; }
    std::uint64_t next() { return state_ = mixed(state_); }

  private:
    std::uint64_t state_;
};

#endif
