// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: at how many places ticks hit, as interrupted program counters that differ: of each kind of place that has a
// text of its own, and in libc in all. They are bits in a file in memory, by their offset in the module, which is the same in
// each run: a matrix has one for the runs of each mode, and counts what they found together.
#ifndef TESTS_STRESS_PREEMPT_PLACES_H
#define TESTS_STRESS_PREEMPT_PLACES_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

// malloc, free, stdio, mutexes, other locks, the unwinder (enum Hit); and libc, whatever an actor says it is in.
constexpr unsigned kPlaceKinds = 7, kPlacesInLibc = kPlaceKinds - 1;
using PlaceCounts = std::array<std::uint64_t, kPlaceKinds>;

// A file for bits, to be passed on.
int places_file();
// This run's go there. Before any tick.
void places_go_to(int file);
// From a handler. What is beyond the room there is for a module is left out.
void places_add(unsigned kind, std::uintptr_t offset);

PlaceCounts places_in(const std::vector<int> &files);

#endif
