// SPDX-License-Identifier: Apache-2.0
/* A condition variable for any lock that has lock() and unlock().
 *
 *     thrum::shared_mutex mutex;
 *     thrum::condition_variable_any changed;
 *     bool ready = false;
 *     thrum::thread waits([&](const std::stop_token &stop) {
 *         std::shared_lock lock(mutex);
 *         changed.wait(lock, stop, [&] { return ready; });
 *     });
 *     {
 *         const std::lock_guard lock(mutex);
 *         ready = true;
 *     }
 *     changed.notify_all();
 *
 * As in the standard. It has a mutex of its own and costs about twice as much as a condition_variable: use that one with
 * mutexes and recursive mutexes. If the wait's thread is cancelled, the lock is locked again before it unwinds. */
#ifndef THRUM_HPP_CONDITION_VARIABLE_ANY_HPP
#define THRUM_HPP_CONDITION_VARIABLE_ANY_HPP

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <utility>

#include "thrum/hpp/condition_variable.hpp"
#include "thrum/hpp/detail/time.hpp"
#include "thrum/hpp/detail/uncancelled.hpp"
#include "thrum/hpp/mutex.hpp"

namespace thrum {

class condition_variable_any {
    struct shared {
        mutex guard;
        condition_variable changed;
    };

    /* What wait_once calls under the mutex: waits by `waits`, and returns an error number. */
    static auto until_ns(std::uint64_t ns) {
        return [ns](shared &state, detail::cond_waits &waits) {
            return waits.wait_until_ns(state.changed.native_handle(), state.guard.native_handle(), ns);
        };
    }

  public:
    condition_variable_any() = default;
    condition_variable_any(const condition_variable_any &) = delete;
    condition_variable_any &operator=(const condition_variable_any &) = delete;

    /* With the mutex: a thread that has unlocked its lock in order to wait is in the list by then. */
    void notify_one() noexcept {
        const detail::uncancelled region;
        const std::lock_guard inside(state_->guard);
        state_->changed.notify_one();
    }
    void notify_all() noexcept {
        const detail::uncancelled region;
        const std::lock_guard inside(state_->guard);
        state_->changed.notify_all();
    }

    template <class Lock>
    void wait(Lock &lock) {
        wait_unstoppably(lock, until_ns(detail::never));
    }
    template <class Lock, class Predicate>
    void wait(Lock &lock, Predicate is_true) {
        while (!is_true())
            wait(lock);
    }

    template <class Lock, class Clock, class Duration>
    std::cv_status wait_until(Lock &lock, const std::chrono::time_point<Clock, Duration> &deadline) {
        return wait_unstoppably(lock, until(deadline));
    }
    template <class Lock, class Clock, class Duration, class Predicate>
    bool wait_until(Lock &lock, const std::chrono::time_point<Clock, Duration> &deadline, Predicate is_true) {
        return wait_stoppably(lock, std::stop_token(), is_true, until(deadline));
    }
    template <class Lock, class Rep, class Period>
    std::cv_status wait_for(Lock &lock, const std::chrono::duration<Rep, Period> &span) {
        return wait_unstoppably(lock, until_ns(detail::deadline_after(span)));
    }
    template <class Lock, class Rep, class Period, class Predicate>
    bool wait_for(Lock &lock, const std::chrono::duration<Rep, Period> &span, Predicate is_true) {
        return wait_stoppably(lock, std::stop_token(), is_true, until_ns(detail::deadline_after(span)));
    }

    /* Until it is true, or the token is told to stop: whether it is true. */
    template <class Lock, class Predicate>
    bool wait(Lock &lock, const std::stop_token &stop, Predicate is_true) {
        return wait_stoppably(lock, stop, is_true, until_ns(detail::never));
    }
    template <class Lock, class Clock, class Duration, class Predicate>
    bool wait_until(Lock &lock, const std::stop_token &stop,
                    const std::chrono::time_point<Clock, Duration> &deadline, Predicate is_true) {
        return wait_stoppably(lock, stop, is_true, until(deadline));
    }
    template <class Lock, class Rep, class Period, class Predicate>
    bool wait_for(Lock &lock, const std::stop_token &stop, const std::chrono::duration<Rep, Period> &span,
                  Predicate is_true) {
        return wait_stoppably(lock, stop, is_true, until_ns(detail::deadline_after(span)));
    }

  private:
    /* The caller's lock is unlocked meanwhile. */
    template <class Lock>
    class unlocked {
      public:
        explicit unlocked(Lock &lock) : lock_(lock) { lock.unlock(); }
        unlocked(const unlocked &) = delete;
        ~unlocked() {
            const detail::uncancelled waiting;
            lock_.lock();
        }

      private:
        Lock &lock_;
    };

    template <class Clock, class Duration>
    static auto until(const std::chrono::time_point<Clock, Duration> &deadline) {
        return [deadline](shared &state, detail::cond_waits &waits) {
            return detail::wait_until(deadline, [&](std::uint64_t ns) { return until_ns(ns)(state, waits); });
        };
    }

    /* Whether it has timed out. The mutex is unlocked before the lock is locked again. `held` keeps what is used: another thread
     * may destroy this object once it has notified all. */
    template <class Lock, class Wait>
    static bool wait_once(const std::shared_ptr<shared> held, Lock &lock, detail::cond_waits &waits,
                          Wait wait_inside) {
        std::unique_lock<mutex> first(held->guard);
        const unlocked<Lock> outside(lock);
        const std::unique_lock<mutex> inside(std::move(first)); /* destroyed before `outside` */
        return wait_inside(*held, waits) != 0;
    }

    template <class Lock, class Wait>
    std::cv_status wait_unstoppably(Lock &lock, Wait wait_inside) {
        detail::cond_waits waits{std::stop_token()};
        return wait_once(state_, lock, waits, wait_inside) ? std::cv_status::timeout
                                                           : std::cv_status::no_timeout;
    }

    template <class Lock, class Predicate, class Wait>
    bool wait_stoppably(Lock &lock, const std::stop_token &stop, Predicate &is_true, Wait wait_inside) {
        const std::shared_ptr<shared> held(state_);
        return detail::wait_stoppably(stop, is_true, [&](detail::cond_waits &waits) {
            return wait_once(held, lock, waits, wait_inside);
        });
    }

    std::shared_ptr<shared> state_ = std::make_shared<shared>();
};

} // namespace thrum

#endif
