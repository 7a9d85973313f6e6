// SPDX-License-Identifier: Apache-2.0
/* std::latch for thrum's threads: counts down to zero once.
 *
 *     thrum::latch ready(2);
 *     thrum::thread one([&] { ready.count_down(); }), two([&] { ready.count_down(); });
 *     ready.wait();
 */
#ifndef THRUM_HPP_LATCH_HPP
#define THRUM_HPP_LATCH_HPP

#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <stop_token>

#include "thrum/hpp/detail/stop.hpp"
#include "thrum/hpp/detail/time.hpp"

namespace thrum {

class latch {
  public:
    /* Less than 0, or more than UINT_MAX: std::system_error (EINVAL). */
    constexpr explicit latch(std::ptrdiff_t count)
        : native_ THRUM_LATCH_INITIALIZER(static_cast<std::uint64_t>(count)) {
        if (count < 0 || count > std::ptrdiff_t{UINT_MAX}) [[unlikely]]
            detail::fail(EINVAL, "thrum::latch", "a count below 0 or above UINT_MAX");
    }
    latch(const latch &) = delete;
    latch &operator=(const latch &) = delete;

    /* By less than 0, or by more than is left: std::system_error (EINVAL), and nothing is counted. */
    void count_down(std::ptrdiff_t by = 1) {
        detail::check(by >= 0 ? thrum_latch_count_down(&native_, detail::count_of(by)) : EINVAL,
                      "thrum::latch::count_down", "by less than 0, or by more than is left");
    }
    bool try_wait() const noexcept { return thrum_latch_try_wait(&native_) == 0; }
    void wait() const { thrum_latch_wait(&native_); }
    /* False: it is above zero, and a stop was requested. */
    bool wait(const std::stop_token &stop) const {
        return try_wait() || detail::wait_unless_stopped(stop, waiting()) == 0;
    }
    template <class Rep, class Period>
    bool wait_for(const std::chrono::duration<Rep, Period> &span) const {
        return thrum_latch_wait_until(&native_, detail::deadline_after(span)) == 0;
    }
    template <class Clock, class Duration>
    bool wait_until(const std::chrono::time_point<Clock, Duration> &deadline) const {
        return detail::wait_until(
                   deadline, [this](std::uint64_t ns) { return thrum_latch_wait_until(&native_, ns); }) == 0;
    }
    void arrive_and_wait(std::ptrdiff_t by = 1) {
        count_down(by);
        wait();
    }

    thrum_wait_t waiting() const noexcept { return {THRUM_WAIT_LATCH, 0, &native_, nullptr, {}}; }

  private:
    mutable thrum_latch_t native_;
};

} // namespace thrum

#endif
