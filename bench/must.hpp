// SPDX-License-Identifier: Apache-2.0
//
// For calls that must succeed, also where exceptions are not caught: in threads and in servers.
#ifndef THRUM_BENCH_MUST_HPP
#define THRUM_BENCH_MUST_HPP

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace bench {

// `error` is 0, or an errno value with which this process ends after a line.
inline void must(int error, const char *what) {
    if (error == 0)
        return;
    std::fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, std::strerror(error));
    std::_Exit(EXIT_FAILURE);
}

} // namespace bench

#endif
