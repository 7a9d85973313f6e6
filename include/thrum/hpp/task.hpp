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
 * get()). Tasks that await each other need no stack for that, however many or deep, also where the compiler does not
 * optimise. Exceptions go to who awaits. thrum_exit and thrum_cancel are not for threads that run coroutines. */
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

template <class T>
inline constexpr bool keeps_its_place = false; /* what is awaited, while the coroutine is suspended for it */
template <class T>
inline constexpr bool keeps_its_place<future<T>> = true;
template <class T>
inline constexpr bool keeps_its_place<task<T>> = true;

template <class Awaitable>
decltype(auto) awaiter_of(Awaitable &&object) {
    if constexpr (requires { std::forward<Awaitable>(object).operator co_await(); })
        return std::forward<Awaitable>(object).operator co_await();
    else if constexpr (requires { operator co_await(std::forward<Awaitable>(object)); })
        return operator co_await(std::forward<Awaitable>(object));
    else
        return std::forward<Awaitable>(object);
}

/* Somebody else's: who knows where the task goes on, so its loop is forgotten. */
template <class Awaiter>
struct outside_awaiter {
    Awaiter inner;
    loop_place *place;
    decltype(auto) await_ready() { return inner.await_ready(); }
    template <class Promise>
    decltype(auto) await_suspend(std::coroutine_handle<Promise> coroutine) {
        place->next = nullptr;
        return inner.await_suspend(coroutine);
    }
    decltype(auto) await_resume() { return inner.await_resume(); }
};

/* When it ends, the coroutine that awaits it goes on in its place. */
struct task_end {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
        const auto &promise = ended.promise();
        return promise.leave_to(promise.awaits.coroutine, promise.awaits.place);
    }
    void await_resume() const noexcept {}
};

template <class T>
struct task_promise_base : loop_place {
    outcome<T> result;
    continuation awaits; /* who awaits it */

    std::suspend_always initial_suspend() const noexcept { return {}; }
    task_end final_suspend() const noexcept { return {}; }
    void unhandled_exception() noexcept { result.fail(std::current_exception()); }

    template <class Awaitable>
    decltype(auto) await_transform(Awaitable &&object) {
        if constexpr (keeps_its_place<std::remove_cvref_t<Awaitable>>)
            return std::forward<Awaitable>(object);
        else
            return outside_awaiter<decltype(awaiter_of(std::forward<Awaitable>(object)))>{
                awaiter_of(std::forward<Awaitable>(object)), this};
    }
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
    auto operator co_await() &&noexcept { return awaiter{coroutine_}; }

  private:
    friend promise_type;

    struct awaiter {
        std::coroutine_handle<promise_type> coroutine;
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> awaits) const noexcept {
            detail::loop_place *place = detail::loop_place_of(awaits);
            coroutine.promise().awaits = {awaits, place};
            return place != nullptr ? place->leave_to(coroutine, &coroutine.promise()) : coroutine;
        }
        T await_resume() const { return coroutine.promise().result.take(); }
    };

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
    struct promise_type : loop_place {
        continuation begin;
        driver get_return_object() noexcept {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }
    };
    std::coroutine_handle<promise_type> coroutine;
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
    const auto coroutine = detail::drive<T>(std::move(work), std::move(result)).coroutine;
    coroutine.promise().begin = {coroutine, &coroutine.promise()};
    if (const int error = thrum_spawn(nullptr, nullptr, detail::resume, &coroutine.promise().begin);
        error != 0) {
        coroutine.destroy();
        detail::fail(error, "thrum::async");
    }
    value.wait_at_the_end();
    return value;
}

} // namespace thrum

#endif
