// SPDX-License-Identifier: Apache-2.0
//
// Code compiled at run time whose names the program does not tell, and libraries of the system whose functions have no names
// although threads wait or burn CPU time in them: they came without debugging information, and what they do inside cannot be
// told. (Of the program and its own libraries unwind.cpp says it.)
// Used by rules/table.cpp.
#pragma once

#include <string>
#include <vector>

#include "stat/report.hpp"

namespace thrum::stat {

// A sentence for each.
std::vector<std::string> nameless_code(const Report &report);

} // namespace thrum::stat
