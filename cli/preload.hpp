// SPDX-License-Identifier: Apache-2.0
//
// Where libthrum-cache.so and libthrum-stat.so are, and how LD_PRELOAD comes to name them. For the commands that start
// programs: run.cpp, compare.cpp, stat/.
#pragma once

#include <string>

namespace thrum {

// The library's path, as LD_PRELOAD can name it; "$PLATFORM" may be in it. Throws Failure (125) where there is none, or none such.
std::string find_library(const std::string &name = "libthrum-cache.so");

// The same as a file that can be opened.
std::string own_path(std::string library);

// Puts the library first into this process's LD_PRELOAD, or takes it out; what else is preloaded stays.
void set_preload(const std::string &library, bool with_library);

} // namespace thrum
