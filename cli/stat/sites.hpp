// SPDX-License-Identifier: Apache-2.0
//
// Sites, which many samples become one of, and the locks that they wait for. Used by sample_sites.cpp (samples) and
// counted.cpp (profiles and exact waits).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stat/layers.hpp"
#include "stat/report.hpp"

namespace thrum::stat {

constexpr std::size_t kNone = SIZE_MAX;

// Those lines that are not there yet.
void add_once(std::vector<std::string> &to, const std::vector<std::string> &lines);

// Names for what was sampled: an unwinder for each state of the mappings that stacks were sampled in, an era.
class Places {
  public:
    explicit Places(const std::vector<Maps> &maps) : maps_(maps), unwinders_(maps.size()) {}

    std::size_t era_of(double at) const;
    std::vector<Frame> frames(const RawStack &stack, std::size_t era);
    static std::vector<Frame> unknown();
    Lock lock(std::uint64_t futex, std::size_t era);
    std::optional<Operand> operand(const RawStack &stack, std::size_t era);
    void say_missing(std::vector<std::string> &warnings) const;

  private:
    Unwinder *get(std::size_t era);

    const std::vector<Maps> &maps_;
    std::vector<std::unique_ptr<Unwinder>> unwinders_;
};

// What two stacks must have in common to be one: of the innermost frame the line does not count where it is one that
// runs, for a loop has many.
std::string key_of(const std::vector<Frame> &stack, bool with_first_line);

// Largest first; those beyond 1000 are dropped. Where each went to, kNone of those.
std::vector<std::size_t> sort_sites(std::vector<Site> &sites, double Site::*by);

// Sorts the sites of a report; its timeline and the threads of a deadlock follow. `place`: where in Report::waits the sites are
// that these name by older indices.
void sort_waits(Report &report, const std::vector<std::size_t> &place);

// Sorts the locks by share, and has the sites point to where they are now.
void sort_locks(std::vector<LockUse> &locks, std::vector<Site> &sites);

// Of the words that Python's lock is made of, all have one name.
Lock as_python_lock(Lock lock);

// Of a runtime whose waiters sleep at words of their own (locks.conf: parks), the name of its lock. Those that wait in one function
// are taken to wait for one lock: each alone would be a lock with a single waiter, and too small to be told.
Lock as_parked(Lock lock, const std::vector<Frame> &stack);

} // namespace thrum::stat
