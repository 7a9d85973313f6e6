// SPDX-License-Identifier: Apache-2.0
/* A flag to wait for: something has happened, or not yet.
 *
 *     thrum::event done;
 *     thrum::thread worker([&] { done.set(); });
 *     done.wait();
 *
 * set() neither waits nor yields, so a std::stop_callback may call it. A thread that learns from the event that the event
 * is no longer needed may destroy it at once. */
#ifndef THRUM_HPP_EVENT_HPP
#define THRUM_HPP_EVENT_HPP

#include <chrono>
#include <stop_token>

#include "thrum/hpp/detail/stop.hpp"
#include "thrum/hpp/detail/time.hpp"

namespace thrum {

class event {
  public:
    using native_handle_type = thrum_event_t *;

    constexpr event() noexcept = default;
    event(const event &) = delete;
    event &operator=(const event &) = delete;

    void set() noexcept { thrum_event_set(&native_); }
    void reset() noexcept { thrum_event_reset(&native_); }
    bool is_set() const noexcept { return thrum_event_try_wait(&native_) == 0; }

    void wait() const { thrum_event_wait(&native_); }
    /* False: it is not set, and a stop was requested. */
    bool wait(const std::stop_token &stop) const {
        return is_set() || detail::wait_unless_stopped(stop, waiting()) == 0;
    }
    template <class Rep, class Period>
    bool wait_for(const std::chrono::duration<Rep, Period> &span) const {
        return thrum_event_wait_until(&native_, detail::deadline_after(span)) == 0;
    }
    template <class Clock, class Duration>
    bool wait_until(const std::chrono::time_point<Clock, Duration> &deadline) const {
        return detail::wait_until(
                   deadline, [this](std::uint64_t ns) { return thrum_event_wait_until(&native_, ns); }) == 0;
    }

    native_handle_type native_handle() const noexcept { return &native_; }
    thrum_wait_t waiting() const noexcept { return {THRUM_WAIT_EVENT, 0, &native_, nullptr, {}}; }

  private:
    mutable thrum_event_t native_ = THRUM_EVENT_INITIALIZER;
};

} // namespace thrum

#endif
