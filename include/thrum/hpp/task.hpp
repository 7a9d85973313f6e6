// SPDX-License-Identifier: Apache-2.0
/* Coroutines that await futures and each other.
 *
 *     static thrum::task<int> twice(int number) {
 *         co_return 2 * co_await thrum::async([number] { return number; });
 *     }
 *
 *     static thrum::task<int> sum() {
 *         co_return co_await twice(10) + co_await twice(11);
 *     }
 *
 *     std::printf("%d\n", thrum::async(sum()).get());
 *
 * A task does nothing until it is awaited, or given to async(), which begins it on a thread. One that awaits a future
 * has no stack meanwhile, and goes on on a thread of its own: so it may also wait as any other (mutexes, channels,
 * get()). Exceptions go to who awaits. thrum_exit and thrum_cancel are not for threads that run coroutines. */
#ifndef THRUM_HPP_TASK_HPP
#define THRUM_HPP_TASK_HPP

#include <coroutine>
#include <exception>
#include <type_traits>
#include <utility>

#include "thrum/hpp/future.hpp"

namespace thrum {

template <class T = void>
class task;

namespace detail {

/* When it ends, the coroutine that awaits it goes on in its place. */
struct task_end {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
        return ended.promise().awaits;
    }
    void await_resume() const noexcept {}
};

template <class T>
struct task_promise_base {
    outcome<T> result;
    std::coroutine_handle<> awaits;

    std::suspend_always initial_suspend() const noexcept { return {}; }
    task_end final_suspend() const noexcept { return {}; }
    void unhandled_exception() noexcept { result.fail(std::current_exception()); }
};

template <class T>
struct task_promise : task_promise_base<T> {
    task<T> get_return_object() noexcept;
    template <class U>
    void return_value(U &&value) {
        this->result.set(std::forward<U>(value));
    }
};

template <>
struct task_promise<void> : task_promise_base<void> {
    task<void> get_return_object() noexcept;
    void return_void() { result.set(); }
};

} // namespace detail

template <class T>
class [[nodiscard]] task {
  public:
    using promise_type = detail::task_promise<T>;

    task(task &&other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
    task &operator=(task &&other) noexcept {
        std::swap(coroutine_, other.coroutine_);
        return *this;
    }
    /* One that was begun has ended. */
    ~task() {
        if (coroutine_)
            coroutine_.destroy();
    }

    /* Once. */
    auto operator co_await() &&noexcept {
        struct awaiter {
            std::coroutine_handle<promise_type> coroutine;
            bool await_ready() const noexcept { return false; }
            std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaits) const noexcept {
                coroutine.promise().awaits = awaits;
                return coroutine;
            }
            T await_resume() const { return coroutine.promise().result.take(); }
        };
        return awaiter{coroutine_};
    }

  private:
    friend promise_type;
    explicit task(std::coroutine_handle<promise_type> coroutine) noexcept : coroutine_(coroutine) {}

    std::coroutine_handle<promise_type> coroutine_;
};

namespace detail {

template <class T>
task<T> task_promise<T>::get_return_object() noexcept {
    return task<T>(std::coroutine_handle<task_promise>::from_promise(*this));
}
inline task<void> task_promise<void>::get_return_object() noexcept {
    return task<void>(std::coroutine_handle<task_promise>::from_promise(*this));
}

/* A coroutine that nobody awaits: it frees itself. */
struct driver {
    struct promise_type {
        driver get_return_object() noexcept {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }
    };
    std::coroutine_handle<> coroutine;
};

template <class T>
driver drive(task<T> work, promise<T> result) {
    try {
        if constexpr (std::is_void_v<T>) {
            co_await std::move(work);
            result.set_value();
        } else {
            result.set_value(co_await std::move(work));
        }
    } catch (...) {
        result.set_exception(std::current_exception());
    }
}

} // namespace detail

/* Begins it on a thread. Throws std::system_error with thrum_spawn's errors. */
template <class T>
future<T> async(task<T> work) {
    promise<T> result;
    future<T> value = result.get_future();
    const std::coroutine_handle<> coroutine = detail::drive<T>(std::move(work), std::move(result)).coroutine;
    if (const int error = thrum_spawn(nullptr, nullptr, detail::resume, coroutine.address()); error != 0) {
        coroutine.destroy();
        detail::fail(error, "thrum::async");
    }
    value.wait_at_the_end();
    return value;
}

} // namespace thrum

#endif
