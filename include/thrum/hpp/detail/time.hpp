// SPDX-License-Identifier: Apache-2.0
/* What the headers above share: errors as exceptions, counts, and moments of any clock as those of <thrum/time.h>. */
#ifndef THRUM_HPP_DETAIL_TIME_HPP
#define THRUM_HPP_DETAIL_TIME_HPP

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <type_traits>

#include "thrum/thrum.h"

namespace thrum::detail {

[[noreturn]] inline void fail(int error, const char *what) {
    throw std::system_error(error, std::generic_category(), what);
}

inline void check(int error, const char *what) {
    if (error != 0) [[unlikely]]
        fail(error, what);
}

/* A count of the standard's as one of the library's, where a larger one is refused. */
inline unsigned count_of(std::ptrdiff_t count) noexcept {
    return count < 0 || count > std::ptrdiff_t{UINT_MAX} ? UINT_MAX : static_cast<unsigned>(count);
}

/* Rounded up; UINT64_MAX, which is never, from some 285 years on. */
template <class Rep, class Period>
std::uint64_t nanoseconds_of(const std::chrono::duration<Rep, Period> &span) {
    if (span <= span.zero())
        return 0;
    if (!(std::chrono::duration<double>(span).count() < 9e9))
        return UINT64_MAX;
    return static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::nanoseconds>(span).count());
}

template <class Rep, class Period>
std::uint64_t moment_after(const std::chrono::duration<Rep, Period> &span) {
    const std::uint64_t ns = nanoseconds_of(span);
    return ns == UINT64_MAX ? ns : thrum_now() + ns;
}

/* Calls wait(moment), which returns an error number, with the moment that `end` is. Another clock than the steady one
 * may be set while we wait: then it is asked again. */
template <class Clock, class Duration, class Wait>
int wait_until(const std::chrono::time_point<Clock, Duration> &end, Wait wait) {
    if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>) {
        return wait(nanoseconds_of(end.time_since_epoch())); /* CLOCK_MONOTONIC, as thrum_now */
    } else {
        int error;
        do
            error = wait(moment_after(end - Clock::now()));
        while (error == ETIMEDOUT && Clock::now() < end);
        return error;
    }
}

} // namespace thrum::detail

#endif
