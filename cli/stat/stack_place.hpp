// SPDX-License-Identifier: Apache-2.0
//
// What a stack says of the program: its own function nearest to the event, and the library's function that it called there.
// Used by facts.cpp, burners.cpp, the rules and the reports.
#pragma once

#include <string>
#include <vector>

#include "stat/report.hpp"

namespace thrum::stat {

// Where in the program something happens: its own function nearest to the event.
struct Place {
    std::string function, file;
    int line = 0;
    std::string code; // without a function's name: "prog+0x1234"
    std::string body; // likewise, where the function begins; without that, as `code`
    bool is_known() const { return !function.empty() || !code.empty(); }
};
Place place_of(const std::vector<Frame> &stack);

// The outermost function of the libraries below the program's code.
const Frame *called_frame(const std::vector<Frame> &stack, bool (*passes_on)(const Frame &) = nullptr);

} // namespace thrum::stat
