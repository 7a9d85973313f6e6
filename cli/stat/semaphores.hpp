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
    // Nothing tells it from the queue of tasks that its waiters pass on, one at a time.
    bool may_be_tasks = false;
};

// What a thread waits for in a semaphore's call, as a number; 0: nothing of that kind.
using WordOf = std::function<std::uint64_t(const ProcSample &)>;

// Where a thread sleeps elsewhere, as a number; 0: not known, or it runs.
using PlaceOf = std::function<std::uint64_t(const ProcSample &)>;

// Those that are locks, by what `word_of` and `place_of` say.
std::map<std::uint64_t, PassedOn> semaphores_passed_on(const std::vector<ProcSample> &samples,
                                                       const WordOf &word_of, const PlaceOf &place_of);

// In a call of a semaphore's: of the C library's, of C++, or Python's threading.Lock, which is made of one.
bool is_in_semaphore_call(const std::vector<Frame> &stack);
bool is_in_python_lock_call(const std::vector<Frame> &stack);

// Python's queues, conditions and joins are made of its locks: they wait for work. Other functions use a lock as such.
bool is_python_work(const std::vector<Frame> &stack);
bool is_python_own_lock(const std::vector<Frame> &stack);

// Most of its posts are further below what they have in common with a wait than that is: in a task that the function runs which waits for
// tasks. A lock is given back where it was taken, or in a function like that which took it.
bool is_raised_by_tasks(const std::vector<Frame> &wait, const std::vector<std::vector<Frame>> &posts);

// Most of its posts are in the function that waits.
bool is_raised_where_taken(const std::vector<Frame> &wait, const std::vector<std::vector<Frame>> &posts);

// The semaphore of a set (semop) that it waits for to be raised, without a limit of time; 0: it does not.
std::uint64_t set_semaphore(const ProcSample &sample);
Lock lock_of_set(const ProcSample &sample);

// What semop() was called for stands in the place of its address, once it has been read from the program's memory: which
// semaphore of the set, and whether it is to be raised.
constexpr int kSemopOperation = 1;
void read_operation(int memory, ProcSample &sample);

} // namespace thrum::stat
