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
 * A coroutine waits without a stack, and owns the mutex when it resumes:
 *
 *     static thrum::task<> waits_for_it(thrum::mutex &mutex, thrum::condition_variable &changed, const bool &ready) {
 *         std::unique_lock lock = co_await thrum::locking(mutex);
 *         co_await changed.waiting(lock, [&] { return ready; });
 *     }
 *
 * As in the standard, also with a stop token. It works with recursive mutexes too: a wait unlocks them completely. All
 * threads that wait at the same time must use the same mutex. There are no spurious wake-ups, but another thread may have
 * changed the condition since the signal. A wait with a lock that is not locked throws std::system_error (EPERM). */
#ifndef THRUM_HPP_CONDITION_VARIABLE_HPP
#define THRUM_HPP_CONDITION_VARIABLE_HPP

#include <cerrno>
#include <chrono>
#include <condition_variable> /* std::cv_status */
#include <mutex>
#include <stop_token>
#include <utility>

#include "thrum/hpp/detail/cond_awaiter.hpp"
#include "thrum/hpp/mutex.hpp"

namespace thrum {

using std::cv_status;

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
        return wait_stoppably_until_ns(lock, stop, detail::never, is_true);
    }
    template <unsigned Kind, class Clock, class Duration, class Predicate>
    bool wait_until(std::unique_lock<basic_mutex<Kind>> &lock, const std::stop_token &stop,
                    const std::chrono::time_point<Clock, Duration> &deadline, Predicate is_true) {
        expect_locked(lock);
        return detail::wait_stoppably(stop, is_true, [&](detail::cond_waits &waits) {
            return detail::wait_until(deadline, [&](std::uint64_t ns) {
                       return waits.wait_until_ns(&native_, lock.mutex()->native_handle(), ns);
                   }) != 0;
        });
    }
    template <unsigned Kind, class Rep, class Period, class Predicate>
    bool wait_for(std::unique_lock<basic_mutex<Kind>> &lock, const std::stop_token &stop,
                  const std::chrono::duration<Rep, Period> &span, Predicate is_true) {
        return wait_stoppably_until_ns(lock, stop, detail::deadline_after(span), is_true);
    }

    /* For co_await: these wait as the functions above. Meanwhile the coroutine has no stack. It resumes on a thread that owns the
     * mutex. `lock` is locked by the thread that awaits, and must be there until then. */
    template <unsigned Kind>
    auto waiting(std::unique_lock<basic_mutex<Kind>> &lock) {
        return awaiter<void, detail::cond_waits_on>(lock, detail::never, detail::any_signal());
    }
    template <unsigned Kind, class Predicate>
    auto waiting(std::unique_lock<basic_mutex<Kind>> &lock, Predicate is_true) {
        return awaiter<void, detail::cond_waits_on>(lock, detail::never, std::move(is_true));
    }
    template <unsigned Kind, class Predicate>
    auto waiting(std::unique_lock<basic_mutex<Kind>> &lock, const std::stop_token &stop, Predicate is_true) {
        return awaiter<bool, detail::cond_waits>(lock, detail::never, std::move(is_true), stop);
    }
    template <unsigned Kind, class Rep, class Period>
    auto waiting_for(std::unique_lock<basic_mutex<Kind>> &lock,
                     const std::chrono::duration<Rep, Period> &span) {
        return awaiter<std::cv_status, detail::cond_waits_on>(lock, detail::deadline_after(span),
                                                              detail::any_signal());
    }
    template <unsigned Kind, class Rep, class Period, class Predicate>
    auto waiting_for(std::unique_lock<basic_mutex<Kind>> &lock,
                     const std::chrono::duration<Rep, Period> &span, Predicate is_true) {
        return awaiter<bool, detail::cond_waits_on>(lock, detail::deadline_after(span), std::move(is_true));
    }
    template <unsigned Kind, class Rep, class Period, class Predicate>
    auto waiting_for(std::unique_lock<basic_mutex<Kind>> &lock, const std::stop_token &stop,
                     const std::chrono::duration<Rep, Period> &span, Predicate is_true) {
        return awaiter<bool, detail::cond_waits>(lock, detail::deadline_after(span), std::move(is_true),
                                                 stop);
    }
    template <unsigned Kind, class Clock, class Duration>
    auto waiting_until(std::unique_lock<basic_mutex<Kind>> &lock,
                       const std::chrono::time_point<Clock, Duration> &end) {
        return awaiter<std::cv_status, detail::cond_waits_on>(lock, detail::deadline_at(end),
                                                              detail::any_signal());
    }
    template <unsigned Kind, class Clock, class Duration, class Predicate>
    auto waiting_until(std::unique_lock<basic_mutex<Kind>> &lock,
                       const std::chrono::time_point<Clock, Duration> &end, Predicate is_true) {
        return awaiter<bool, detail::cond_waits_on>(lock, detail::deadline_at(end), std::move(is_true));
    }
    template <unsigned Kind, class Clock, class Duration, class Predicate>
    auto waiting_until(std::unique_lock<basic_mutex<Kind>> &lock, const std::stop_token &stop,
                       const std::chrono::time_point<Clock, Duration> &end, Predicate is_true) {
        return awaiter<bool, detail::cond_waits>(lock, detail::deadline_at(end), std::move(is_true), stop);
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

    template <unsigned Kind, class Predicate>
    bool wait_stoppably_until_ns(std::unique_lock<basic_mutex<Kind>> &lock, const std::stop_token &stop,
                                 std::uint64_t deadline, Predicate &is_true) {
        expect_locked(lock);
        return detail::wait_stoppably(stop, is_true, [&](detail::cond_waits &waits) {
            return waits.wait_until_ns(&native_, lock.mutex()->native_handle(), deadline) != 0;
        });
    }
    template <class Result, class Waits, unsigned Kind, class Predicate, class... Stop>
    auto awaiter(std::unique_lock<basic_mutex<Kind>> &lock, std::uint64_t end, Predicate is_true,
                 const Stop &...stop) {
        expect_locked(lock);
        return detail::awaiting_cond<Result, Waits, Predicate, Stop...>(
            &native_, lock.mutex()->native_handle(), end, std::move(is_true), stop...);
    }

    thrum_cond_t native_ = THRUM_COND_INITIALIZER;
};

} // namespace thrum

#endif
