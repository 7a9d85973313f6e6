// SPDX-License-Identifier: Apache-2.0
//
// What CPU time goes to, by functions: those of the profile with the most threads, each with its share with the fewest. Used by
// facts.cpp and, through that, by the rules.
#pragma once

#include <string>
#include <vector>

#include "stat/openmp.hpp"
#include "stat/report.hpp"
#include "stat/stack_place.hpp"

namespace thrum::stat {

// A function that CPU time goes to, itself and in what it calls for its own sake.
struct Burner {
    Place place;
    std::string leaf;    // the innermost function
    std::string module;  // that it is in
    std::string called;  // the library's function that the program calls; empty: none
    bool is_own = false; // that is the program's
    const OpenmpConstruct *openmp = nullptr;
    double share = 0, share_one = 0;
};

// By share, descending.
std::vector<Burner> find_burners(const Report &report);

} // namespace thrum::stat
