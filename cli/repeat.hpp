// SPDX-License-Identifier: Apache-2.0
//
// A table shown again and again, as `thrum ps --watch 1 PID` does. Used by ps.cpp and counters.cpp.
#pragma once

#include <functional>
#include <string>

namespace thrum {

// Calls `show` every so many seconds, each time on a cleared screen where standard output is a terminal; once where `seconds`
// is 0. Until a signal ends the process, `show` throws, or nothing can be written any more. `output`: a file that what
// `show` writes to std::cout goes to, one after the other (output_file.hpp); empty: standard output.
void repeat(double seconds, const std::string &output, const std::function<void()> &show);

} // namespace thrum
