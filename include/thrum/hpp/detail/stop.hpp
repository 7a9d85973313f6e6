// SPDX-License-Identifier: Apache-2.0
/* Waits that a std::stop_token ends: the functions here that take a token. Those of condition variables wait
 * by cond_awaiter.hpp, which uses the flag below.
 *
 * A stop callback sets an event, and thrum_wait_any waits for that and for the object. The callback neither waits nor yields
 * (thread.hpp). */
#ifndef THRUM_HPP_DETAIL_STOP_HPP
#define THRUM_HPP_DETAIL_STOP_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <stop_token>

#include "thrum/hpp/detail/time.hpp"

namespace thrum::detail {

/* An event that is set when a stop is requested, or was before. */
class stop_flag {
  public:
    explicit stop_flag(const std::stop_token &stop) : on_stop_(stop, told{&event_}) {}
    stop_flag(const stop_flag &) = delete;
    thrum_wait_t waiting() noexcept { return {THRUM_WAIT_EVENT, 0, &event_, nullptr, {}}; }
    /* False: the deadline came first. */
    bool wait_until(std::uint64_t deadline) { return thrum_event_wait_until(&event_, deadline) == 0; }

  private:
    struct told {
        thrum_event_t *event;
        void operator()() const noexcept { thrum_event_set(event); }
    };

    thrum_event_t event_ = THRUM_EVENT_INITIALIZER;
    std::stop_callback<told> on_stop_; /* destroyed first: then no callback uses the event any more */
};

/* Performs one operation of thrum_wait_any and returns its result, or ECANCELED if a stop is requested first. A stop that was
 * requested before comes first: nothing is taken then. */
inline int wait_unless_stopped(const std::stop_token &stop, thrum_wait_t wait) {
    if (stop.stop_requested())
        return ECANCELED;
    if (thrum_wait_any(&wait, 1, 0, nullptr) == 0)
        return wait.result;
    stop_flag flag(stop);
    thrum_wait_t waits[] = {flag.waiting(), wait};
    std::size_t which = 0;
    check(thrum_wait_any(waits, 2, never, &which), "thrum: a wait with a stop token",
          "the object cannot be waited for");
    return which == 0 ? ECANCELED : waits[1].result;
}

} // namespace thrum::detail

#endif
