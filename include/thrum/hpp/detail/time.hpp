// SPDX-License-Identifier: Apache-2.0
/* Converts time points of any clock, and durations of any type, to the deadlines of <thrum/time.h>. All functions _for and
 * _until come through here.
 *
 * Every conversion saturates: the past is 0, "now"; too far away is UINT64_MAX, "never". Nothing overflows, whatever the
 * types: time_point::min() does not wait, and time_point::max() waits for ever. A duration or time point that is NaN does
 * not wait. Fractions of a nanosecond are rounded up. */
#ifndef THRUM_HPP_DETAIL_TIME_HPP
#define THRUM_HPP_DETAIL_TIME_HPP

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ratio>
#include <type_traits>

#include "thrum/hpp/detail/error.hpp"
#include "thrum/thrum.h"

namespace thrum::detail {

inline constexpr std::uint64_t never = UINT64_MAX;

/* Converts a count of the standard's; too large a one saturates, and the library refuses it. */
inline unsigned count_of(std::ptrdiff_t count) noexcept {
    return count < 0 || count > std::ptrdiff_t{UINT_MAX} ? UINT_MAX : static_cast<unsigned>(count);
}

/* Time since some epoch: whole seconds, and nanoseconds from 0 to 999999999. Seconds reach farther than any clock; a value
 * that does not fit saturates to first() or last(). */
struct instant {
    std::int64_t seconds, ns;

    static constexpr std::int64_t second = 1'000'000'000;
    static constexpr instant first() noexcept { return {INT64_MIN, 0}; }
    static constexpr instant last() noexcept { return {INT64_MAX, second - 1}; }
};

/* Whole ticks of 1/Den or of Num seconds. */
template <std::intmax_t Num, std::intmax_t Den, class Count>
constexpr instant instant_of_ticks(Count count) noexcept {
    constexpr Count den = static_cast<Count>(Den);
    Count whole = count / den, rest = count % den;
    if (rest < 0) {
        whole--;
        rest += den;
    }
    instant result{0, static_cast<std::int64_t>(rest) * (instant::second / Den)};
    if (__builtin_mul_overflow(whole, Num, &result.seconds))
        return count < 0 ? instant::first() : instant::last();
    return result;
}

constexpr instant instant_of_ns(long double ns) noexcept {
    constexpr long double most = 9e18L;
    if (!(ns > -most * instant::second)) /* NaN, too: in the past */
        return instant::first();
    if (ns >= most * instant::second)
        return instant::last();
    std::int64_t seconds = static_cast<std::int64_t>(ns / instant::second);
    const long double rest = ns - static_cast<long double>(seconds) * instant::second;
    std::int64_t part = static_cast<std::int64_t>(rest);
    part += static_cast<long double>(part) < rest ? 1 : 0;
    const std::int64_t carry = part < 0 ? -1 : part >= instant::second ? 1 : 0;
    return {seconds + carry, part - carry * instant::second};
}

template <class Rep, class Period>
constexpr instant instant_of(const std::chrono::duration<Rep, Period> &span) {
    constexpr std::intmax_t num = Period::num, den = Period::den;
    if constexpr (std::is_integral_v<Rep> && sizeof(Rep) <= sizeof(std::int64_t) &&
                  (den == 1 || (num == 1 && den <= instant::second && instant::second % den == 0))) {
        using Count = std::conditional_t<std::is_signed_v<Rep>, std::int64_t, std::uint64_t>;
        return instant_of_ticks<num, den>(static_cast<Count>(span.count()));
    } else {
        return instant_of_ns(
            std::chrono::duration_cast<std::chrono::duration<long double, std::nano>>(span).count());
    }
}

/* From one to the other; 0 if that is backwards. */
constexpr std::uint64_t nanoseconds_between(const instant &from, const instant &to) noexcept {
    std::int64_t seconds = 0;
    if (to.seconds < from.seconds || (to.seconds == from.seconds && to.ns <= from.ns))
        return 0;
    if (__builtin_sub_overflow(to.seconds, from.seconds, &seconds))
        return never;
    std::uint64_t ns = 0;
    if (__builtin_mul_overflow(static_cast<std::uint64_t>(seconds), std::uint64_t{instant::second}, &ns))
        return never;
    if (to.ns < from.ns)
        return ns - static_cast<std::uint64_t>(from.ns - to.ns);
    return __builtin_add_overflow(ns, static_cast<std::uint64_t>(to.ns - from.ns), &ns) ? never : ns;
}

template <class Rep, class Period>
constexpr std::uint64_t nanoseconds_of(const std::chrono::duration<Rep, Period> &span) {
    return detail::nanoseconds_between({0, 0}, detail::instant_of(span));
}

/* Rounded up; a count that does not fit saturates, and the library refuses it. */
template <class Rep, class Period>
constexpr unsigned microseconds_of(const std::chrono::duration<Rep, Period> &span) {
    const std::uint64_t ns = detail::nanoseconds_of(span), us = ns / 1000 + (ns % 1000 != 0 ? 1 : 0);
    return us > UINT_MAX ? UINT_MAX : static_cast<unsigned>(us);
}

inline std::uint64_t deadline_in(std::uint64_t ns) noexcept {
    std::uint64_t deadline = 0;
    return __builtin_add_overflow(thrum_now(), ns, &deadline) ? never : deadline;
}

template <class Rep, class Period>
std::uint64_t deadline_after(const std::chrono::duration<Rep, Period> &span) {
    return detail::deadline_in(detail::nanoseconds_of(span));
}

/* Measured by its own clock; 0: `end` has come. */
template <class Clock, class Duration>
std::uint64_t nanoseconds_until(const std::chrono::time_point<Clock, Duration> &end) {
    const auto now = Clock::now();
    const std::uint64_t left = detail::nanoseconds_between(detail::instant_of(now.time_since_epoch()),
                                                           detail::instant_of(end.time_since_epoch()));
    if constexpr (std::is_same_v<typename decltype(now)::duration, Duration>) {
        if (!(now < end)) /* compared exactly: rounding up may have made them equal */
            return 0;
        return left != 0 ? left : 1;
    } else {
        return left;
    }
}

/* For what cannot read the clock again: a clock other than the steady one counts by what it says now. */
template <class Clock, class Duration>
std::uint64_t deadline_at(const std::chrono::time_point<Clock, Duration> &end) {
    if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>)
        return detail::nanoseconds_of(end.time_since_epoch()); /* CLOCK_MONOTONIC, as thrum_now */
    const std::uint64_t left = detail::nanoseconds_until(end);
    return left != 0 ? detail::deadline_in(left) : 0;
}

/* Calls wait(deadline), which returns an error number, with `end` as a deadline. A clock other than the steady one may be
 * set during the wait: it is read again at the deadline. */
template <class Clock, class Duration, class Wait>
int wait_until(const std::chrono::time_point<Clock, Duration> &end, Wait wait) {
    if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>) {
        return wait(detail::deadline_at(end));
    } else {
        int error;
        std::uint64_t left = detail::nanoseconds_until(end);
        do
            error = wait(left != 0 ? detail::deadline_in(left) : 0);
        while (error == ETIMEDOUT && left != 0 && (left = detail::nanoseconds_until(end)) != 0);
        return error;
    }
}

} // namespace thrum::detail

#endif
