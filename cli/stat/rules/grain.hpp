// SPDX-License-Identifier: Apache-2.0
//
// Is work handed over in parts that are too small? Asked by the rules of locks as well: a lock that is fought for because of
// that is no cause of its own.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "stat/facts.hpp"

namespace thrum::stat {

struct TinyTasks {
    double share = 0, share_one = 0; // of CPU time: handing over, with the most threads and with the fewest
    std::set<std::string> functions; // of the program, that wait for work or wake threads that do
    Place place;                     // where threads wait for work
};
std::optional<TinyTasks> tiny_tasks(const Facts &facts);
// Dear with any number of threads: worth a change even where the threads scale, as they do if one thread pays most.
bool is_dear_handing(const Facts &facts);

} // namespace thrum::stat
