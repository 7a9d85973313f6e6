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
 * A task does nothing until it is awaited, or given to async(), which begins it on a thread; once. One that awaits a
 * future has no stack meanwhile, and is resumed on a thread of its own: so it may also wait as any other thread
 * (mutexes, channels, get()). Tasks that await each other need no stack for that, however many or deep, also where the
 * compiler does not optimise; nor do those that await what is another library's and does not suspend. Exceptions are
 * thrown where the task is awaited. thrum_exit and thrum_cancel are not for threads that run coroutines.
 *
 * LOCKS. A task must not hold one across co_await: it may be resumed on another thread than that which has the mutex,
 * and its unlock there ends the program with a line that says so (mutex.hpp). Where it has to keep others out
 * meanwhile, a binary_semaphore does, which belongs to no thread. */
#ifndef THRUM_HPP_TASK_HPP
#define THRUM_HPP_TASK_HPP

#include <pthread.h>

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>

#include "thrum/hpp/detail/block.hpp"
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

/* Which thread the caller is: a ULT, or a kernel thread that is none. */
inline std::uintptr_t thread_here() noexcept {
    const thrum_t self = thrum_self();
    return self != nullptr ? reinterpret_cast<std::uintptr_t>(self)
                           : static_cast<std::uintptr_t>(pthread_self());
}

/* The coroutine that an awaitable of another library gets in the place of the task that awaits it. Such an awaitable
 * knows nothing of loops, and may resume what it gets
 *
 * - while the task is being suspended, by the same thread, also by way of other coroutines: then the detour only notes
 *   that, and the task goes on when await_suspend returns, on the same stack;
 * - elsewhere, or later: then the detour runs the task in a loop there;
 * - by returning it from another task's await_suspend: then that task's loop runs this one next.
 *
 * Both the suspending thread and the detour's own run look at it, so that the later of the two frees it. */
class detour {
  public:
    struct promise_type : made_in_block {
        struct begin {
            promise_type *self;
            bool await_ready() const noexcept { return false; }
            void await_suspend(std::coroutine_handle<>) const noexcept {}
            void await_resume() const { self->resumed(); }
        };
        struct end {
            bool await_ready() const noexcept { return false; }
            void await_suspend(std::coroutine_handle<promise_type> over) const noexcept {
                over.promise().leave();
            }
            void await_resume() const noexcept {}
        };

        detour get_return_object() noexcept {
            return detour(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        begin initial_suspend() noexcept { return {this}; }
        end final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }

        /* `loop`: that which is to run the task; null: a new one. */
        void resumed(std::coroutine_handle<> *loop = nullptr) {
            if (thread == thread_here() && is_suspending.load(std::memory_order_relaxed))
                was_resumed = true;
            else if (loop != nullptr)
                leave_loop_to({loop}, task);
            else
                run_in_turn(task);
        }
        void leave() noexcept {
            if (holders.fetch_sub(1, std::memory_order_acq_rel) == 1)
                std::coroutine_handle<promise_type>::from_promise(*this).destroy();
        }

        continuation task;
        std::uintptr_t thread = 0;             /* that suspends it */
        std::atomic<bool> is_suspending{true}; /* it is in await_suspend still */
        bool was_resumed = false;              /* meanwhile, by itself */
        std::atomic<int> holders{2};
    };

    /* Of a task that is suspended. */
    static detour make(const continuation &task) {
        detour made = begin();
        made.resumes_ = resumes(made.coroutine_);
        made.coroutine_.promise().task = task;
        made.coroutine_.promise().thread = thread_here();
        return made;
    }
    std::coroutine_handle<promise_type> coroutine() const noexcept { return coroutine_; }
    /* It was not given to any other. */
    void forget() const noexcept { coroutine_.destroy(); }
    bool was_resumed() const noexcept { return coroutine_.promise().was_resumed; }
    /* Resumes what the awaitable has returned, here; or lets the loop do that, if it is the detour of a task. */
    void resume_next(std::coroutine_handle<> next, std::coroutine_handle<> *loop) const noexcept {
        if (was_resumed() || !is_detour(next))
            return next.resume();
        promise_type &promise = std::coroutine_handle<promise_type>::from_address(next.address()).promise();
        promise.resumed(loop);
        promise.leave();
    }
    /* await_suspend has returned. True: the task stays suspended. */
    bool suspended() const noexcept {
        promise_type &promise = coroutine_.promise();
        const bool stays = !promise.was_resumed;
        promise.is_suspending.store(false, std::memory_order_relaxed);
        promise.leave();
        return stays;
    }

  private:
    explicit detour(std::coroutine_handle<promise_type> coroutine) noexcept : coroutine_(coroutine) {}
    static detour begin() { co_return; }

    /* A coroutine's frame begins with the address of the function that resumes it, with all compilers: so a handle
     * resumes it that knows no type. All detours that are suspended where they begin have the same; but for those of
     * another library that has a copy of its own, which are resumed as any other coroutine. */
    static const void *resumes(std::coroutine_handle<> suspended) noexcept {
        return *static_cast<const void *const *>(suspended.address());
    }
    bool is_detour(std::coroutine_handle<> other) const noexcept { return resumes(other) == resumes_; }

    std::coroutine_handle<promise_type> coroutine_;
    const void *resumes_ = nullptr; /* its own, as it begins */
};

/* Of another library. */
template <class Awaiter>
struct outside_awaiter {
    Awaiter inner;
    loop_place *place;

    decltype(auto) await_ready() { return inner.await_ready(); }
    /* Not inlined: what it has would be put into the task's frame by some compilers, and another thread may have ended
     * that meanwhile. */
    template <class Promise>
    [[gnu::noinline]] bool await_suspend(std::coroutine_handle<Promise> coroutine) {
        std::coroutine_handle<> *const loop = place->next;
        const detour instead = detour::make({coroutine, place});
        const std::coroutine_handle<> next = suspend(instead); /* from here on, this object may be gone */
        if (next == instead.coroutine()) {
            instead.forget(); /* it is not suspended, after all */
            return false;
        }
        if (next)
            instead.resume_next(next, loop);
        return instead.suspended();
    }
    decltype(auto) await_resume() { return inner.await_resume(); }

  private:
    /* What the awaitable wants to be resumed; null: nothing. */
    std::coroutine_handle<> suspend(const detour &instead) {
        using Result = decltype(inner.await_suspend(instead.coroutine()));
        try {
            if constexpr (std::is_void_v<Result>) {
                inner.await_suspend(instead.coroutine());
                return nullptr;
            } else if constexpr (std::is_same_v<Result, bool>) {
                return inner.await_suspend(instead.coroutine()) ? nullptr : instead.coroutine();
            } else {
                return inner.await_suspend(instead.coroutine());
            }
        } catch (...) {
            instead.forget();
            throw;
        }
    }
};

/* When it ends, the coroutine that awaits it is resumed in its place. */
struct task_end {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
        leave_loop_to(ended.promise(), ended.promise().awaits);
    }
    void await_resume() const noexcept {}
};

template <class T>
struct task_promise_base : loop_place {
    outcome<T> result;
    continuation awaits; /* the coroutine that awaits it; null: it has not begun */

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
    template <class U = T>
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

    /* Once. Throws std::future_error: no_state it was moved from; future_already_retrieved it has been awaited. */
    auto operator co_await() && {
        expect_new();
        return awaiter{coroutine_};
    }

  private:
    friend promise_type;
    template <class U>
    friend future<U> async(task<U> work);

    struct awaiter {
        std::coroutine_handle<promise_type> coroutine;
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        bool await_suspend(std::coroutine_handle<Promise> awaits) const {
            promise_type &promise = coroutine.promise();
            detail::loop_place *const place = detail::loop_place_of(awaits);
            promise.awaits = {awaits, place};
            /* One of another library is in no loop: one begins, and ends when it is to be resumed. */
            if (place == nullptr)
                return !detail::run_in_turn({coroutine, &promise}, awaits.address());
            detail::leave_loop_to(*place, {coroutine, &promise});
            return true;
        }
        T await_resume() const { return coroutine.promise().result.take(); }
    };

    void expect_new() const {
        if (!coroutine_) [[unlikely]]
            throw future_error(future_errc::no_state);
        if (coroutine_.promise().awaits.coroutine) [[unlikely]]
            throw future_error(future_errc::future_already_retrieved);
    }

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

/* Begins it on a thread. Throws std::system_error with thrum_spawn's errors, std::future_error as co_await does. */
template <class T>
future<T> async(task<T> work) {
    work.expect_new();
    promise<T> result;
    future<T> value = result.get_future();
    const auto coroutine = detail::drive<T>(std::move(work), std::move(result)).coroutine;
    coroutine.promise().begin = {coroutine, &coroutine.promise()};
    if (const int error = thrum_spawn(nullptr, nullptr, detail::resume, &coroutine.promise().begin);
        error != 0) {
        coroutine.destroy();
        detail::check(error, "thrum::async", detail::spawn_reasons);
    }
    value.wait_at_the_end();
    return value;
}

} // namespace thrum

#endif
