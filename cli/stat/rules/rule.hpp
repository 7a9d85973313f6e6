// SPDX-License-Identifier: Apache-2.0
//
// All rules, as the table (table.cpp) names them. A rule looks at the facts alone and returns what it found, mostly nothing.
// A new one: CONTRIBUTING.md, "A rule of `thrum stat`".
#pragma once

#include <vector>

#include "stat/report.hpp"

namespace thrum::stat {

struct Facts;
using Findings = std::vector<Finding>;

Findings deadlock(const Facts &facts); // deadlock.cpp

Findings children(const Facts &facts); // processes.cpp

// locks.cpp
Findings hidden_locks(const Facts &facts);
Findings allocator(const Facts &facts);
Findings held_asleep(const Facts &facts);
Findings priority(const Facts &facts);
Findings one_lock(const Facts &facts);
Findings convoy(const Facts &facts);
Findings hot_mutex(const Facts &facts);

// churn.cpp
Findings thread_churn(const Facts &facts);
bool is_dear_churn(
    const Facts &facts); // worth saving even where the threads scale: each costs one thread as well

Findings busy_wait(const Facts &facts); // spinning.cpp

Findings grain(const Facts &facts); // grain.cpp

Findings polling(const Facts &facts); // polling.cpp

Findings nested(const Facts &facts); // nested.cpp

// cpus.cpp
Findings affinity(const Facts &facts);
Findings quota(const Facts &facts);

Findings coherency(const Facts &facts); // memory.cpp

// kernel.cpp
Findings one_file(const Facts &facts);
Findings address_space(const Facts &facts);
Findings fork_copies(const Facts &facts);
Findings herd(const Facts &facts);

// sharing.cpp
Findings true_sharing(const Facts &facts);
Findings false_sharing(const Facts &facts);

// work.cpp
Findings fixed_time(const Facts &facts);
Findings unequal(const Facts &facts);
Findings sequential(const Facts &facts);
Findings oversubscribed(const Facts &facts);
Findings io_bound(const Facts &facts);

// rest.cpp
Findings scales(const Facts &facts);
Findings inconclusive(const Facts &facts);

} // namespace thrum::stat
