// SPDX-License-Identifier: Apache-2.0
/* thrum::thread is modelled on std::jthread: its destructor requests a stop and joins.
 *
 *     thrum::thread ticker([](std::stop_token stop) {
 *         while (!stop.stop_requested()) {
 *             std::puts("tick");
 *             thrum::this_thread::sleep_for(stop, std::chrono::milliseconds(100)); // ends early if a stop is requested
 *         }
 *     });
 *     thrum::this_thread::sleep_for(std::chrono::seconds(1));
 *     // here a stop is requested, and the thread is joined
 *
 * Unlike the standard's, it propagates exceptions: join() rethrows what leaves the thread's function. The exception
 * ends the program (std::terminate) if no join() call can do so: the thread is detached, or its object is destroyed or
 * assigned to. The function and its arguments are moved or copied, so they may be move-only.
 *
 * An object may outlive its runtime (runtime.hpp), with which its thread ended. Then join() and detach() throw
 * std::system_error (ESRCH), and the destructor does not wait.
 *
 * STOP TOKENS are the standard's. Waits take them too: those for locks, semaphores, events, latches, barriers, channels,
 * futures and condition variables, and sleeps. In when_any a token is an operand (thrum::stopping). Functions given to a std::stop_callback must not wait, yield or start threads. The
 * standard library identifies threads by kernel thread, and a ULT that waits may resume on another one. They may set a
 * thrum::event or release a semaphore. */
#ifndef THRUM_HPP_THREAD_HPP
#define THRUM_HPP_THREAD_HPP

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>

#include "thrum/hpp/attributes.hpp"
#include "thrum/hpp/detail/launch.hpp"
#include "thrum/hpp/detail/stop.hpp"
#include "thrum/hpp/detail/thrown.hpp"
#include "thrum/hpp/detail/uncancelled.hpp"

namespace thrum {

namespace detail {
inline thrum_mutex_t stop_sources = THRUM_MUTEX_INITIALIZER; /* see thread::get_stop_source */
}

class thread;

namespace detail {

inline constexpr reason migrate_reasons[] = {
    {EINVAL, "there is no such worker, or the caller is no thread of libthrum"},
    {EBUSY, "it is bound to a worker, so only itself may move"},
    {EPERM, "it is a tasklet, a scheduler, or the thread that called thrum_init"},
};

inline void set_name(thrum_t thread, const std::string &name) {
    static constexpr reason reasons[] = {{EINVAL, "the caller is no thread of libthrum"},
                                         {ERANGE, "more than THRUM_NAME_SIZE - 1 bytes"}};
    check(thrum_set_name(thread, name.c_str()), "thrum: set_name", reasons);
}
inline std::string name_of(thrum_t thread) {
    char name[THRUM_NAME_SIZE] = "";
    if (thread != nullptr)
        thrum_get_name(thread, name);
    return name;
}

} // namespace detail

namespace this_thread {
inline auto get_id() noexcept;
}

class thread {
  public:
    /* Identifies any thread, kernel threads too; the id of no thread is the smallest. */
    class id {
      public:
        id() noexcept = default;
        friend auto operator<=>(id, id) noexcept = default;
        template <class Char, class Traits>
        friend std::basic_ostream<Char, Traits> &operator<<(std::basic_ostream<Char, Traits> &out, id one) {
            return out << one.number_;
        }

      private:
        friend class thread;
        friend auto this_thread::get_id() noexcept;
        friend struct std::hash<id>;
        explicit id(std::uint64_t number) noexcept : number_(number) {}

        std::uint64_t number_ = 0;
    };
    using native_handle_type = thrum_t;

    thread() noexcept = default;

    /* Runs f(args...), or f(token, args...) if that can be called. Throws std::system_error with thrum_spawn's
     * errors. */
    template <class F, class... Args>
    requires(!std::same_as<std::remove_cvref_t<F>, thread> &&
             !std::same_as<std::remove_cvref_t<F>, attributes>) explicit thread(F &&f, Args &&...args) {
        start(nullptr, std::forward<F>(f), std::forward<Args>(args)...);
    }
    template <class F, class... Args>
    explicit thread(const attributes &how, F &&f, Args &&...args) {
        start(how.native(), std::forward<F>(f), std::forward<Args>(args)...);
    }

    thread(thread &&other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)), runtime_(other.runtime_),
          stop_(std::move(other.stop_)) {}
    thread &operator=(thread &&other) noexcept {
        thread(std::move(other)).swap(*this);
        return *this;
    }
    ~thread() {
        if (joinable()) {
            stop_.request_stop();
            if (!is_lost()) {
                const detail::uncancelled waiting;
                try {
                    join();
                } catch (...) { /* and not by noexcept alone: then std::current_exception() may be null */
                    std::terminate();
                }
            }
        }
    }

    void swap(thread &other) noexcept {
        std::swap(handle_, other.handle_);
        std::swap(runtime_, other.runtime_);
        stop_.swap(other.stop_);
    }
    friend void swap(thread &a, thread &b) noexcept { a.swap(b); }

    bool joinable() const noexcept { return handle_ != nullptr; }
    /* Rethrows the thread's exception; the thread is joined even then. Or throws std::system_error: invalid_argument there
     * is no thread; resource_deadlock_would_occur it is the caller; no_such_process (ESRCH) its runtime has ended. */
    void join() {
        expect_thread("thrum::thread::join");
        void *result = nullptr;
        detail::check(thrum_join(handle_, &result), "thrum::thread::join", detail::join_reasons);
        handle_ = nullptr;
        detail::rethrow(result);
    }
    /* As join() if the thread ends in time: true. After false it continues, and must still be joined or detached. */
    template <class Rep, class Period>
    bool join_for(const std::chrono::duration<Rep, Period> &span) {
        return join_by(detail::deadline_after(span));
    }
    template <class Clock, class Duration>
    bool join_until(const std::chrono::time_point<Clock, Duration> &deadline) {
        return detail::wait_until(deadline,
                                  [this](std::uint64_t ns) { return join_by(ns) ? 0 : ETIMEDOUT; }) == 0;
    }
    void detach() {
        expect_thread("thrum::thread::detach");
        detail::check(detail::thrown_by_threads.detach(handle_), "thrum::thread::detach",
                      detail::join_reasons);
        handle_ = nullptr;
    }

    /* For when_any, which joins the thread and throws as join() does. */
    thrum_wait_t waiting() {
        expect_thread("thrum::when_any of a thread");
        return {THRUM_WAIT_JOIN, 0, handle_, &result_, {}};
    }
    void waited(int error) {
        detail::check(error, "thrum::when_any of a thread", detail::join_reasons);
        handle_ = nullptr;
        detail::rethrow(std::exchange(result_, nullptr));
    }

    /* These throw std::system_error: invalid_argument there is no thread; no_such_process (ESRCH) its runtime has ended. */
    /* Asks it to end where it waits; its attributes must be cancellable(), or this throws (ENOTSUP). */
    void cancel() {
        expect_thread("thrum::thread::cancel");
        detail::check(thrum_cancel(handle_), "thrum::thread::cancel",
                      "its attributes are not cancellable(), or its runtime has ended");
    }
    /* Of at most THRUM_NAME_SIZE - 1 bytes, or this throws (ERANGE). */
    void set_name(const std::string &name) {
        expect_thread("thrum::thread::set_name");
        detail::set_name(handle_, name);
    }
    std::string name() const {
        expect_thread("thrum::thread::name");
        return detail::name_of(handle_);
    }
    /* For pools and mutexes, from the next time that it enters one; at most THRUM_PRIORITY_MAX, or this throws (EINVAL). */
    void set_priority(unsigned priority) {
        expect_thread("thrum::thread::set_priority");
        detail::check(thrum_set_priority(handle_, priority), "thrum::thread::set_priority",
                      "more than THRUM_PRIORITY_MAX");
    }
    /* Binds it to this worker, with THRUM_ANY_WORKER to none. Throws with thrum_migrate's errors. */
    void migrate(unsigned worker) {
        expect_thread("thrum::thread::migrate");
        detail::check(thrum_migrate(handle_, worker), "thrum::thread::migrate", detail::migrate_reasons);
    }

    /* The id of no thread after the runtime has ended. */
    id get_id() const noexcept { return joinable() && !is_lost() ? id(thrum_id(handle_)) : id(); }
    native_handle_type native_handle() const noexcept { return handle_; }
    /* How many threads can run at the same time; before the runtime starts: will be able to. */
    static unsigned hardware_concurrency() noexcept {
        const unsigned workers = thrum_workers();
        return workers != 0 ? workers : thrum_workers_default();
    }

    /* A thread whose function takes no token gets a stop source at the first request. */
    std::stop_source get_stop_source() const {
        if (!joinable())
            return stop_;
        thrum_mutex_lock(&detail::stop_sources);
        if (!stop_.stop_possible())
            stop_ = std::stop_source();
        std::stop_source source = stop_;
        thrum_mutex_unlock(&detail::stop_sources);
        return source;
    }
    std::stop_token get_stop_token() const { return get_stop_source().get_token(); }
    bool request_stop() { return get_stop_source().request_stop(); }

  private:
    bool join_by(std::uint64_t deadline) {
        expect_thread("thrum::thread::join_until");
        void *result = nullptr;
        const int error = thrum_join_until(handle_, &result, deadline);
        if (error == ETIMEDOUT)
            return false;
        detail::check(error, "thrum::thread::join_until", detail::join_reasons);
        handle_ = nullptr;
        detail::rethrow(result);
        return true;
    }

    /* Its runtime has ended: the handle is not valid any more. */
    bool is_lost() const noexcept { return runtime_ != thrum_runtime_id(); }

    void expect_thread(const char *what) const {
        if (!joinable()) [[unlikely]]
            detail::fail(EINVAL, what,
                         "there is no thread: none was started, or it was joined, detached or moved");
        if (is_lost()) [[unlikely]]
            detail::fail(ESRCH, what, detail::runtime_has_ended);
    }

    template <class F, class... Args>
    void start(const thrum_attr_t *attr, F &&f, Args &&...args) {
        if constexpr (std::is_invocable_v<std::decay_t<F>, std::stop_token, std::decay_t<Args>...>) {
            stop_ = std::stop_source();
            launch(attr, detail::bind(std::forward<F>(f), stop_.get_token(), std::forward<Args>(args)...));
        } else if constexpr (sizeof...(Args) > 0) {
            launch(attr, detail::bind(std::forward<F>(f), std::forward<Args>(args)...));
        } else {
            launch(attr, std::forward<F>(f));
        }
    }

    template <class Work>
    void launch(const thrum_attr_t *attr, Work &&work) {
        static_assert(std::is_invocable_v<std::decay_t<Work>>, "it has to be callable with these arguments");
        if constexpr (std::is_invocable_v<std::decay_t<Work>>)
            detail::check(
                detail::launch<detail::keeping_what_is_thrown>(&handle_, attr, std::forward<Work>(work)),
                "thrum::thread", detail::spawn_reasons);
        runtime_ = thrum_runtime_id();
    }

    thrum_t handle_ = nullptr;
    std::uint64_t runtime_ = 0; /* of the thread */
    void *result_ = nullptr;    /* for when_any */
    mutable std::stop_source stop_{std::nostopstate};
};

/* Another name of the standard's for it: every thrum::thread can be told to stop, and is joined by its destructor. */
using jthread = thread;

namespace this_thread {

inline auto get_id() noexcept {
    const thrum_t self = thrum_self();
    if (self != nullptr)
        return thread::id(thrum_id(self));
    return thread::id(static_cast<std::uint64_t>(gettid()) | UINT64_C(1) << 63); /* a kernel thread */
}

inline void yield() noexcept {
    thrum_yield();
}

/* As thread's; for ULTs: on other kernel threads they throw std::system_error (EINVAL), and there is no name. */
inline void set_name(const std::string &name) {
    detail::set_name(thrum_self(), name);
}
inline std::string name() {
    return detail::name_of(thrum_self());
}
inline void migrate(unsigned worker) {
    detail::check(thrum_migrate(thrum_self(), worker), "thrum::this_thread::migrate",
                  detail::migrate_reasons);
}
/* A cancellation point (thread::cancel) without a wait. */
inline void test_cancel() {
    thrum_testcancel();
}

template <class Rep, class Period>
void sleep_for(const std::chrono::duration<Rep, Period> &span) {
    thrum_sleep(detail::nanoseconds_of(span));
}

template <class Clock, class Duration>
void sleep_until(const std::chrono::time_point<Clock, Duration> &deadline) {
    detail::wait_until(deadline, [](std::uint64_t ns) {
        thrum_sleep_until(ns);
        return ETIMEDOUT;
    });
}

/* Until a stop is requested: false. True: it has slept as long as it was to. */
template <class Rep, class Period>
bool sleep_for(const std::stop_token &stop, const std::chrono::duration<Rep, Period> &span) {
    return !detail::stop_flag(stop).wait_until(detail::deadline_after(span));
}
template <class Clock, class Duration>
bool sleep_until(const std::stop_token &stop, const std::chrono::time_point<Clock, Duration> &deadline) {
    detail::stop_flag flag(stop);
    return detail::wait_until(deadline,
                              [&](std::uint64_t ns) { return flag.wait_until(ns) ? 0 : ETIMEDOUT; }) != 0;
}

} // namespace this_thread

} // namespace thrum

template <>
struct std::hash<thrum::thread::id> {
    std::size_t operator()(thrum::thread::id one) const noexcept {
        return std::hash<std::uint64_t>()(one.number_);
    }
};

#endif
