// SPDX-License-Identifier: Apache-2.0
//
// The locks that threads were seen waiting for, and how many waited at once. Used by analyse.cpp and sample_sites.cpp.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "stat/report.hpp"

namespace thrum::stat {

class LockWaits {
  public:
    explicit LockWaits(std::vector<LockUse> &locks) : locks_(locks) {}

    // Locks by where they are, or by their text if they have no address (as_parked); an address means another lock after an exec.
    // An index into the list.
    std::size_t add(Lock lock, std::size_t era);

    void note(std::size_t lock, pid_t waiter, double from, double until);

    // All have been noted: what is known of each lock, and those first that most is waited for.
    void finish(std::vector<Site> &sites);

  private:
    // How many waited at once: one more from `at` on, or one fewer.
    struct Step {
        double at;
        int by;
    };
    static void count_waiters(std::vector<Step> &steps, LockUse &use);

    std::vector<LockUse> &locks_;
    std::map<std::tuple<std::size_t, std::uint64_t, std::string>, std::size_t> known_;
    std::map<std::size_t, std::vector<Step>> steps_; // by lock, as the next
    std::map<std::size_t, std::set<pid_t>> waiters_;
};

} // namespace thrum::stat
