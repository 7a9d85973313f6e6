// SPDX-License-Identifier: Apache-2.0
#include "tools/descriptor.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "tools/failure.hpp"

namespace thrum {

Descriptor open_file(const std::string &path, int flags) {
    Descriptor file(open(path.c_str(), flags | O_CLOEXEC));
    if (!file.is_open())
        throw Failure(kFailed, "cannot open " + path + ": " + std::strerror(errno));
    return file;
}

} // namespace thrum
