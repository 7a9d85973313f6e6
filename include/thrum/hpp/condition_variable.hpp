// SPDX-License-Identifier: Apache-2.0
/* A condition variable for thrum's mutexes.
 *
 *     thrum::mutex mutex;
 *     thrum::condition_variable changed;
 *     bool ready = false;
 *     thrum::thread waits([&] {
 *         std::unique_lock lock(mutex);
 *         changed.wait(lock, [&] { return ready; });
 *     });
 *     {
 *         const std::lock_guard lock(mutex);
 *         ready = true;
 *     }
 *     changed.notify_one();
 *
 * As in the standard, also with a stop token. It works with recursive mutexes too: a wait unlocks them completely. All
 * threads that wait at the same time must use the same mutex. There are no spurious wake-ups, but another thread may have
 * changed the condition since the signal. A wait with a lock that is not locked throws std::system_error (EPERM). */
#ifndef THRUM_HPP_CONDITION_VARIABLE_HPP
#define THRUM_HPP_CONDITION_VARIABLE_HPP

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable> /* std::cv_status */
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include "thrum/hpp/branch.hpp"
#include "thrum/hpp/mutex.hpp"

namespace thrum {

using std::cv_status;

namespace detail {

/* Wakes the waiters when a stop is requested, during the lifetime of this object.
 *
 * A waiter checks its token under the mutex, and unlocks the mutex once it is in the condition's list. A broadcast without
 * the mutex could fall in between and miss it. The stop callback must not wait for the mutex (thread.hpp), and its caller
 * may even hold it. So the callback only sets an event for a helper thread, which broadcasts under the mutex. The helper
 * gives up waiting for the mutex once the waiter, which may hold it as well, is about to leave. */
template <unsigned Kind>
class stop_wakes {
  public:
    stop_wakes(const std::stop_token &stop, thrum_cond_t *cond, basic_mutex<Kind> *mutex)
        : cond_(cond), mutex_(mutex), thread_({this}), on_stop_(stop, told{&told_}) {}
    stop_wakes(const stop_wakes &) = delete;
    ~stop_wakes() {
        over_.store(true, std::memory_order_release);
        thrum_event_set(&told_);
    }

  private:
    struct told {
        thrum_event_t *event;
        void operator()() const noexcept { thrum_event_set(event); }
    };
    struct run {
        stop_wakes *self;
        void operator()() const { self->broadcast_when_told(); }
    };

    void broadcast_when_told() {
        thrum_event_wait(&told_);
        while (!over_.load(std::memory_order_acquire))
            if (mutex_->try_lock_for(std::chrono::milliseconds(1))) {
                thrum_cond_broadcast(cond_);
                mutex_->unlock();
                return;
            }
    }

    thrum_cond_t *cond_;
    basic_mutex<Kind> *mutex_;
    thrum_event_t told_ = THRUM_EVENT_INITIALIZER;
    std::atomic<bool> over_{false};
    branch<run> thread_;               /* joined after */
    std::stop_callback<told> on_stop_; /* this is gone, and nothing sets told_ any more */
};

/* Waits until it is true, a wait times out, or a stop was requested: whether it is true. `mutex` and `cond` are what
 * wait_once waits with; it returns whether it has timed out. */
template <unsigned Kind, class Predicate, class Wait>
bool wait_stoppably(const std::stop_token &stop, thrum_cond_t *cond, basic_mutex<Kind> *mutex,
                    Predicate &is_true, Wait wait_once) {
    if (is_true())
        return true;
    std::optional<stop_wakes<Kind>> wakes;
    if (stop.stop_possible())
        wakes.emplace(stop, cond, mutex);
    while (!stop.stop_requested()) {
        const bool timed_out = wait_once();
        if (is_true())
            return true;
        if (timed_out)
            break;
    }
    return false;
}

} // namespace detail

class condition_variable {
  public:
    using native_handle_type = thrum_cond_t *;

    constexpr condition_variable() noexcept = default;
    condition_variable(const condition_variable &) = delete;
    condition_variable &operator=(const condition_variable &) = delete;

    void notify_one() noexcept { thrum_cond_signal(&native_); }
    void notify_all() noexcept { thrum_cond_broadcast(&native_); }

    template <unsigned Kind>
    void wait(std::unique_lock<basic_mutex<Kind>> &lock) {
        expect_locked(lock);
        thrum_cond_wait(&native_, lock.mutex()->native_handle());
    }
    template <unsigned Kind, class Predicate>
    void wait(std::unique_lock<basic_mutex<Kind>> &lock, Predicate is_true) {
        while (!is_true())
            wait(lock);
    }

    template <unsigned Kind, class Clock, class Duration>
    std::cv_status wait_until(std::unique_lock<basic_mutex<Kind>> &lock,
                              const std::chrono::time_point<Clock, Duration> &deadline) {
        return detail::wait_until(deadline, [&](std::uint64_t ns) { return wait_until_ns(lock, ns); }) == 0
                   ? std::cv_status::no_timeout
                   : std::cv_status::timeout;
    }
    template <unsigned Kind, class Clock, class Duration, class Predicate>
    bool wait_until(std::unique_lock<basic_mutex<Kind>> &lock,
                    const std::chrono::time_point<Clock, Duration> &deadline, Predicate is_true) {
        while (!is_true())
            if (wait_until(lock, deadline) == std::cv_status::timeout)
                return is_true();
        return true;
    }

    template <unsigned Kind, class Rep, class Period>
    std::cv_status wait_for(std::unique_lock<basic_mutex<Kind>> &lock,
                            const std::chrono::duration<Rep, Period> &span) {
        return wait_until_ns(lock, detail::deadline_after(span)) == 0 ? std::cv_status::no_timeout
                                                                      : std::cv_status::timeout;
    }
    template <unsigned Kind, class Rep, class Period, class Predicate>
    bool wait_for(std::unique_lock<basic_mutex<Kind>> &lock, const std::chrono::duration<Rep, Period> &span,
                  Predicate is_true) {
        const std::uint64_t end = detail::deadline_after(span);
        while (!is_true())
            if (wait_until_ns(lock, end) != 0)
                return is_true();
        return true;
    }

    /* Until it is true, or the token is told to stop: whether it is true. */
    template <unsigned Kind, class Predicate>
    bool wait(std::unique_lock<basic_mutex<Kind>> &lock, const std::stop_token &stop, Predicate is_true) {
        return wait_stoppably(lock, stop, is_true, [&] {
            wait(lock);
            return 0;
        });
    }
    template <unsigned Kind, class Clock, class Duration, class Predicate>
    bool wait_until(std::unique_lock<basic_mutex<Kind>> &lock, const std::stop_token &stop,
                    const std::chrono::time_point<Clock, Duration> &deadline, Predicate is_true) {
        return wait_stoppably(lock, stop, is_true,
                              [&] { return wait_until(lock, deadline) == std::cv_status::timeout; });
    }
    template <unsigned Kind, class Rep, class Period, class Predicate>
    bool wait_for(std::unique_lock<basic_mutex<Kind>> &lock, const std::stop_token &stop,
                  const std::chrono::duration<Rep, Period> &span, Predicate is_true) {
        const std::uint64_t end = detail::deadline_after(span);
        return wait_stoppably(lock, stop, is_true, [&] { return wait_until_ns(lock, end); });
    }

    native_handle_type native_handle() noexcept { return &native_; }

  private:
    template <unsigned Kind>
    static void expect_locked(const std::unique_lock<basic_mutex<Kind>> &lock) {
        if (!lock.owns_lock()) [[unlikely]]
            detail::fail(EPERM, "thrum::condition_variable", "the lock that waits for it is not locked");
    }
    template <unsigned Kind>
    int wait_until_ns(std::unique_lock<basic_mutex<Kind>> &lock, std::uint64_t deadline) {
        expect_locked(lock);
        return thrum_cond_wait_until(&native_, lock.mutex()->native_handle(), deadline);
    }

    /* `wait_once` returns 0 unless it has timed out. */
    template <unsigned Kind, class Predicate, class Wait>
    bool wait_stoppably(std::unique_lock<basic_mutex<Kind>> &lock, const std::stop_token &stop,
                        Predicate &is_true, Wait wait_once) {
        return detail::wait_stoppably(stop, &native_, lock.mutex(), is_true,
                                      [&] { return wait_once() != 0; });
    }

    thrum_cond_t native_ = THRUM_COND_INITIALIZER;
};

} // namespace thrum

#endif
