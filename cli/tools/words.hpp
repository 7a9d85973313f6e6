// SPDX-License-Identifier: Apache-2.0
//
// Arguments and environments as the exec functions and posix_spawn take them.
#pragma once

#include <string>
#include <vector>

namespace thrum {

// Points into `words`, and ends with a null pointer. There is room for one more: the shell that a script is given to.
std::vector<char *> pointers(const std::vector<std::string> &words);

} // namespace thrum
