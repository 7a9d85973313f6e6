// SPDX-License-Identifier: Apache-2.0
//
// For calls that have to succeed, also where nobody catches what is thrown: in threads and in members of teams.
#ifndef THRUM_BENCH_CHOLESKY_MUST_HPP
#define THRUM_BENCH_CHOLESKY_MUST_HPP

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cholesky {

// `error` is 0, or an errno value with which this process ends after a line.
inline void must(int error, const char *what) {
    if (error == 0)
        return;
    std::fprintf(stderr, "cholesky: %s: %s\n", what, std::strerror(error));
    std::_Exit(EXIT_FAILURE);
}

} // namespace cholesky

#endif
