// SPDX-License-Identifier: Apache-2.0
//
// Semaphores that are locks, told by the looks at threads alone: what one thread has and others wait for passes from one of them to
// another. Used by sample_sites.cpp and analyse.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "stat/layers.hpp"
#include "stat/report.hpp"

namespace thrum::stat {

// A semaphore that its own waiters raise.
struct PassedOn {
    std::uint64_t times = 0; // at least, that it passed on; 0: its posts tell that, not the looks
    // Looks (indices of samples) at the one thread that did not wait for it while all others of its waiters did: at its holder.
    std::vector<std::size_t> holders;
};

// What a thread waits for in a semaphore's call, as a number; 0: nothing of that kind.
using WordOf = std::function<std::uint64_t(const ProcSample &)>;

// Those that are locks, by what `word_of` says.
std::map<std::uint64_t, PassedOn> semaphores_passed_on(const std::vector<ProcSample> &samples,
                                                       const WordOf &word_of);

// In a call of a semaphore's: of the C library's, of C++, or Python's threading.Lock, which is made of one.
bool is_in_semaphore_call(const std::vector<Frame> &stack);
bool is_in_python_lock_call(const std::vector<Frame> &stack);

// The semaphore of a set (semop) that it waits for to be raised, without a limit of time; 0: it does not.
std::uint64_t set_semaphore(const ProcSample &sample);
Lock lock_of_set(const ProcSample &sample);

// What semop() was called for stands in the place of its address.
constexpr int kSemopOperation = 1;

} // namespace thrum::stat
