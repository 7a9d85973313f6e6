// SPDX-License-Identifier: Apache-2.0
/* A thread that its creator joins before it leaves the block: the cheapest kind of thread.
 *
 *     static long fib(int n) {
 *         if (n < 2)
 *             return n;
 *         thrum::branch one([n] { return fib(n - 1); }); // runs at once; another worker may steal the rest
 *         const long two = fib(n - 2);
 *         return one.join() + two;
 *     }
 *
 * Nothing is allocated. The function, its result and its exception are stored in the object, which cannot be moved.
 * join() returns the result, or rethrows the function's exception. The destructor of an object that was not joined waits
 * for the thread and drops its exception. */
#ifndef THRUM_HPP_BRANCH_HPP
#define THRUM_HPP_BRANCH_HPP

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <new>
#include <type_traits>
#include <utility>

#include "thrum/hpp/detail/outcome.hpp"
#include "thrum/hpp/detail/time.hpp"
#include "thrum/hpp/detail/uncancelled.hpp"

namespace thrum {

template <class Work>
requires std::is_invocable_v<Work>
class [[nodiscard]] branch {
  public:
    using result_type = std::invoke_result_t<Work>;

    /* Throws std::system_error with thrum_spawn's errors. */
    explicit branch(Work work) : work_(std::move(work)) {
        detail::check(start(), "thrum::branch", detail::spawn_reasons);
    }
    /* If no thread can be created, join() runs the function. */
    branch(std::nothrow_t, Work work) : work_(std::move(work)) { start(); }
    branch(const branch &) = delete;
    ~branch() {
        if (handle_ != nullptr) {
            const detail::uncancelled waiting;
            thrum_join(handle_, nullptr);
        }
    }

    /* To be called once. Throws std::system_error: EINVAL it was joined already; ESRCH its runtime has ended. */
    result_type join() {
        if (handle_ != nullptr) [[likely]] {
            const int error = thrum_join(std::exchange(handle_, nullptr), nullptr);
            is_over_ = true;
            detail::check(error, "thrum::branch::join", detail::join_reasons);
        } else {
            if (std::exchange(is_over_, true))
                detail::fail(EINVAL, "thrum::branch::join", "it has been joined already");
            run(this);
        }
        return outcome_.take();
    }

    /* True: the thread has ended, or none could be created: join() does not wait. False: the deadline has come first. */
    template <class Rep, class Period>
    bool wait_for(const std::chrono::duration<Rep, Period> &span) {
        return wait_by(detail::deadline_after(span)) == 0;
    }
    template <class Clock, class Duration>
    bool wait_until(const std::chrono::time_point<Clock, Duration> &deadline) {
        return detail::wait_until(deadline, [this](std::uint64_t ns) { return wait_by(ns); }) == 0;
    }

  private:
    int wait_by(std::uint64_t deadline) {
        const int error = handle_ != nullptr ? thrum_join_keep_until(handle_, nullptr, deadline) : 0;
        if (error != ETIMEDOUT)
            detail::check(error, "thrum::branch::wait_until", detail::join_reasons);
        return error;
    }

    int start() { return thrum_spawn(&handle_, nullptr, run, this); }

    static void *run(void *arg) {
        auto *self = static_cast<branch *>(arg);
        self->outcome_.run(std::move(self->work_));
        return nullptr;
    }

    [[no_unique_address]] Work work_;
    detail::outcome<result_type> outcome_;
    thrum_t handle_ = nullptr;
    bool is_over_ = false; /* it has been joined */
};

/* Runs both concurrently and returns when both have. Throws the exception of f, or else that of g. */
template <class F, class G>
requires(std::is_invocable_v<F> &&std::is_invocable_v<G>) void parallel_invoke(F &&f, G &&g) {
    branch first(std::nothrow, [&f] { static_cast<void>(std::invoke(std::forward<F>(f))); });
    detail::outcome<void> second;
    second.run([&g] { static_cast<void>(std::invoke(std::forward<G>(g))); });
    first.join();
    second.take();
}

/* Likewise of more. Throws the exception of the first of them, in the order of the arguments, that threw. */
template <class F, class G, class H, class... Rest>
requires(std::is_invocable_v<F> &&std::is_invocable_v<G> &&std::is_invocable_v<H>) void parallel_invoke(
    F &&f, G &&g, H &&h, Rest &&...rest) {
    thrum::parallel_invoke(std::forward<F>(f), [&] {
        thrum::parallel_invoke(std::forward<G>(g), std::forward<H>(h), std::forward<Rest>(rest)...);
    });
}

} // namespace thrum

#endif
