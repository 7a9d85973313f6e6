// SPDX-License-Identifier: Apache-2.0
/* Mutexes, for std::lock_guard, std::unique_lock, std::shared_lock and std::scoped_lock.
 *
 *     thrum::mutex mutex;
 *     long count = 0;
 *     {
 *         const std::lock_guard lock(mutex);
 *         count++;
 *     }
 *
 *     const auto add = [&](const std::stop_token &stop) { // waits no longer than until a stop is requested
 *         if (!mutex.lock(stop))
 *             return false;
 *         const std::lock_guard lock(mutex, std::adopt_lock);
 *         count++;
 *         return true;
 *     };
 *
 * Unlike lock(), a lock with a token is a cancellation point (thrum_cancel).
 *
 * Locks are granted in the order of the requests, and work between ULTs and kernel threads. All of them can wait with a
 * deadline, so timed_mutex is the same as mutex. They are initialised at compile time; destruction does nothing.
 *
 * A mutex belongs to the thread that has locked it. A coroutine that awaits may resume on another thread, so it must not
 * hold a lock across co_await. It may hold a binary_semaphore, which belongs to no thread. An unlock by another thread ends
 * the program with a line that says so, where it is detected. It always is for recursive mutexes and for mutexes that are
 * not locked; for all others in debug builds of the library. */
#ifndef THRUM_HPP_MUTEX_HPP
#define THRUM_HPP_MUTEX_HPP

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "thrum/hpp/detail/stop.hpp"
#include "thrum/hpp/detail/time.hpp"

namespace thrum {

namespace detail {

/* The lock would stay locked, or another thread owns it: no code after this could be right. */
[[noreturn, gnu::cold, gnu::noinline]] inline void end_at_unlock(const char *what) noexcept {
    std::fprintf(
        stderr,
        "thrum: %s: unlocked by a thread that does not hold it; unlock it on the thread that locked it (a "
        "coroutine must not hold a lock across co_await: it may be resumed on another thread)\n",
        what);
    std::abort();
}

} // namespace detail

/* `Kind`: what thrum_mutex_init takes. */
template <unsigned Kind>
class basic_mutex {
  public:
    using native_handle_type = thrum_mutex_t *;

    constexpr basic_mutex() noexcept = default;
    basic_mutex(const basic_mutex &) = delete;
    basic_mutex &operator=(const basic_mutex &) = delete;

    void lock() { thrum_mutex_lock(&native_); }
    /* False: a stop was requested, and it is not locked. */
    bool lock(const std::stop_token &stop) { return detail::wait_unless_stopped(stop, waiting()) == 0; }
    bool try_lock() { return thrum_mutex_try_lock(&native_) == 0; }
    void unlock() {
        if (thrum_mutex_unlock(&native_) != 0) [[unlikely]]
            detail::end_at_unlock("mutex");
    }

    template <class Rep, class Period>
    bool try_lock_for(const std::chrono::duration<Rep, Period> &span) {
        return thrum_mutex_lock_until(&native_, detail::deadline_after(span)) == 0;
    }
    template <class Clock, class Duration>
    bool try_lock_until(const std::chrono::time_point<Clock, Duration> &deadline) {
        return detail::wait_until(
                   deadline, [this](std::uint64_t ns) { return thrum_mutex_lock_until(&native_, ns); }) == 0;
    }

    native_handle_type native_handle() noexcept { return &native_; }
    /* For when_any, which locks it. */
    thrum_wait_t waiting() noexcept { return {THRUM_WAIT_LOCK, 0, &native_, nullptr, {}}; }

  private:
    thrum_mutex_t native_ = {{Kind}};
};

using mutex = basic_mutex<0>;
using timed_mutex = mutex;
using recursive_mutex = basic_mutex<THRUM_MUTEX_RECURSIVE>;
using recursive_timed_mutex = recursive_mutex;
/* The waiter with the highest priority gets it. */
using priority_mutex = basic_mutex<THRUM_MUTEX_PRIORITY>;

class shared_mutex {
  public:
    using native_handle_type = thrum_rwlock_t *;

    constexpr shared_mutex() noexcept = default;
    shared_mutex(const shared_mutex &) = delete;
    shared_mutex &operator=(const shared_mutex &) = delete;

    void lock() { thrum_rwlock_write_lock(&native_); }
    /* False: a stop was requested, and it is not locked. */
    bool lock(const std::stop_token &stop) { return detail::wait_unless_stopped(stop, waiting()) == 0; }
    bool try_lock() { return thrum_rwlock_try_write_lock(&native_) == 0; }
    void unlock() {
        if (thrum_rwlock_unlock(&native_) != 0) [[unlikely]]
            detail::end_at_unlock("shared_mutex");
    }
    template <class Rep, class Period>
    bool try_lock_for(const std::chrono::duration<Rep, Period> &span) {
        return thrum_rwlock_write_lock_until(&native_, detail::deadline_after(span)) == 0;
    }
    template <class Clock, class Duration>
    bool try_lock_until(const std::chrono::time_point<Clock, Duration> &deadline) {
        return detail::wait_until(deadline, [this](std::uint64_t ns) {
                   return thrum_rwlock_write_lock_until(&native_, ns);
               }) == 0;
    }

    void lock_shared() { thrum_rwlock_read_lock(&native_); }
    bool lock_shared(const std::stop_token &stop) {
        return detail::wait_unless_stopped(stop, waiting_shared()) == 0;
    }
    bool try_lock_shared() { return thrum_rwlock_try_read_lock(&native_) == 0; }
    void unlock_shared() { unlock(); }
    template <class Rep, class Period>
    bool try_lock_shared_for(const std::chrono::duration<Rep, Period> &span) {
        return thrum_rwlock_read_lock_until(&native_, detail::deadline_after(span)) == 0;
    }
    template <class Clock, class Duration>
    bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration> &deadline) {
        return detail::wait_until(deadline, [this](std::uint64_t ns) {
                   return thrum_rwlock_read_lock_until(&native_, ns);
               }) == 0;
    }

    native_handle_type native_handle() noexcept { return &native_; }
    /* For when_any, which locks it as lock() does. */
    thrum_wait_t waiting() noexcept { return {THRUM_WAIT_WRITE_LOCK, 0, &native_, nullptr, {}}; }
    /* Likewise, as lock_shared() does. */
    thrum_wait_t waiting_shared() noexcept { return {THRUM_WAIT_READ_LOCK, 0, &native_, nullptr, {}}; }

  private:
    thrum_rwlock_t native_ = THRUM_RWLOCK_INITIALIZER;
};

using shared_timed_mutex = shared_mutex;

class once_flag {
  public:
    constexpr once_flag() noexcept = default;
    once_flag(const once_flag &) = delete;
    once_flag &operator=(const once_flag &) = delete;

  private:
    template <class F, class... Args>
    requires std::is_invocable_v<F, Args...>
    friend void call_once(once_flag &flag, F &&f, Args &&...args);
    template <class Rep, class Period, class F, class... Args>
    requires std::is_invocable_v<F, Args...>
    friend bool call_once_for(once_flag &flag, const std::chrono::duration<Rep, Period> &span, F &&f,
                              Args &&...args);
    template <class Clock, class Duration, class F, class... Args>
    requires std::is_invocable_v<F, Args...>
    friend bool call_once_until(once_flag &flag, const std::chrono::time_point<Clock, Duration> &deadline,
                                F &&f, Args &&...args);
    thrum_once_t native_ = THRUM_ONCE_INITIALIZER;
};

/* The first caller calls f; all return when it is done. If it throws, the next caller calls it. */
template <class F, class... Args>
requires std::is_invocable_v<F, Args...>
void call_once(once_flag &flag, F &&f, Args &&...args) {
    auto call = [&] { std::invoke(std::forward<F>(f), std::forward<Args>(args)...); };
    thrum_once_call(
        &flag.native_, [](void *arg) { (*static_cast<decltype(call) *>(arg))(); }, &call);
}

/* As call_once. False: another thread's call has not returned by the deadline. The caller's own call is not stopped then. */
template <class Rep, class Period, class F, class... Args>
requires std::is_invocable_v<F, Args...>
bool call_once_for(once_flag &flag, const std::chrono::duration<Rep, Period> &span, F &&f, Args &&...args) {
    auto call = [&] { std::invoke(std::forward<F>(f), std::forward<Args>(args)...); };
    return thrum_once_call_until(
               &flag.native_, [](void *arg) { (*static_cast<decltype(call) *>(arg))(); }, &call,
               detail::deadline_after(span)) == 0;
}
template <class Clock, class Duration, class F, class... Args>
requires std::is_invocable_v<F, Args...>
bool call_once_until(once_flag &flag, const std::chrono::time_point<Clock, Duration> &deadline, F &&f,
                     Args &&...args) {
    auto call = [&] { std::invoke(std::forward<F>(f), std::forward<Args>(args)...); };
    return detail::wait_until(deadline, [&](std::uint64_t ns) {
               return thrum_once_call_until(
                   &flag.native_, [](void *arg) { (*static_cast<decltype(call) *>(arg))(); }, &call, ns);
           }) == 0;
}

} // namespace thrum

#endif
