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
 * A task starts when it is awaited, or passed to async(), which starts it on a thread; once only. A task that awaits a
 * future uses no stack meanwhile, and resumes on a thread of its own. So it may also wait like any other thread (mutexes,
 * channels, get()). Tasks that await each other use no stack for that, however deep, even in unoptimised builds. Nor do
 * tasks that await an awaitable of another library that does not suspend. Exceptions are rethrown where the task is
 * awaited. Do not use thrum_exit and thrum_cancel on threads that run coroutines.
 *
 * LOCKS. A task must not hold a mutex across co_await, but that of the condition variable that it awaits. It may resume on a thread
 * other than the owner, where its unlock ends the program with a line that says so (mutex.hpp). Use a binary_semaphore, which
 * belongs to no thread, to exclude others across co_await. */
#ifndef THRUM_HPP_TASK_HPP
#define THRUM_HPP_TASK_HPP

#include <pthread.h>

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>

#include "thrum/hpp/await.hpp"
#include "thrum/hpp/detail/block.hpp"
#include "thrum/hpp/detail/cond_awaiter.hpp"
#include "thrum/hpp/future.hpp"

namespace thrum {

template <class T = void>
class task;

namespace detail {

template <class T>
inline constexpr bool keeps_its_place = false; /* the awaitable, while the coroutine is suspended for it */
template <class T>
inline constexpr bool keeps_its_place<future<T>> = true;
template <class T>
inline constexpr bool keeps_its_place<task<T>> = true;
template <class T>
inline constexpr bool is_task = false;
template <class T>
inline constexpr bool is_task<task<T>> = true;
template <waitable Operand>
inline constexpr bool keeps_its_place<Operand> = true;
template <class Mutex>
inline constexpr bool keeps_its_place<locking<Mutex>> = true;
template <class Awaiter, class... Operands>
inline constexpr bool keeps_its_place<awaiting_operands<Awaiter, Operands...>> = true;
template <class Result, class Waits, class Predicate, class... Stop>
inline constexpr bool keeps_its_place<awaiting_cond<Result, Waits, Predicate, Stop...>> = true;
template <>
inline constexpr bool keeps_its_place<locking_shared> = true;
template <>
inline constexpr bool keeps_its_place<sleeping_for> = true;
template <>
inline constexpr bool keeps_its_place<sleeping_until> = true;

template <class Awaitable>
concept awaitable_by_member = requires(Awaitable &&object) {
    std::forward<Awaitable>(object).operator co_await();
};
/* Not asked of other types: clang would say that there cannot be such an operator. */
template <class Awaitable>
concept awaitable_by_function =
    (std::is_class_v<std::remove_cvref_t<Awaitable>> ||
     std::is_enum_v<std::remove_cvref_t<Awaitable>>)&&requires(Awaitable &&object) {
    operator co_await(std::forward<Awaitable>(object));
};

template <class Awaitable>
decltype(auto) awaiter_of(Awaitable &&object) {
    if constexpr (awaitable_by_member<Awaitable>)
        return std::forward<Awaitable>(object).operator co_await();
    else if constexpr (awaitable_by_function<Awaitable>)
        return operator co_await(std::forward<Awaitable>(object));
    else
        return std::forward<Awaitable>(object);
}

template <class Awaiter>
concept awaiter = requires(Awaiter &&object) {
    static_cast<bool>(object.await_ready());
    object.await_resume();
};
template <class Awaitable>
concept awaitable_by_itself =
    awaiter<Awaitable> && !awaitable_by_member<Awaitable> && !awaitable_by_function<Awaitable>;
template <class Awaitable>
concept awaitable =
    awaitable_by_member<Awaitable> || awaitable_by_function<Awaitable> || awaitable_by_itself<Awaitable>;

/* What is awaited in the place of something that cannot be: so there is one error, not one for each use of the result. */
struct awaits_nothing {
    struct anything {
        template <class T>
        operator T() const; /* NOLINT */
    };
    bool await_ready() const noexcept { return true; }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    anything await_resume() const noexcept { return {}; }
};

/* Identifies the calling thread: a ULT, or an external kernel thread. */
inline std::uintptr_t thread_here() noexcept {
    const thrum_t self = thrum_self();
    return self != nullptr ? reinterpret_cast<std::uintptr_t>(self)
                           : static_cast<std::uintptr_t>(pthread_self());
}

/* The coroutine handle that an awaitable of another library gets instead of the awaiting task's. Such an awaitable does
 * not know the loops here, and may resume the handle
 *
 * - while the task is being suspended, on the same thread, also through other coroutines: then the detour only notes
 *   that, and the task resumes when await_suspend returns, on the same stack;
 * - elsewhere, or later: then the detour runs the task in a loop there;
 * - by returning it from another task's await_suspend: then that task's loop runs this one next.
 *
 * The suspending thread and the detour's own run both use it; the later of the two frees it. */
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

        /* `loop`: the loop that runs the task; null: a new one. */
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
        std::uintptr_t thread = 0;             /* the one that suspends it */
        std::atomic<bool> is_suspending{true}; /* still in await_suspend */
        bool was_resumed = false;              /* during await_suspend, by the same thread */
        std::atomic<int> holders{2};
    };

    /* For a task that is being suspended. */
    static detour make(const continuation &task) {
        detour made = begin();
        made.resumes_ = resumes(made.coroutine_);
        made.coroutine_.promise().task = task;
        made.coroutine_.promise().thread = thread_here();
        return made;
    }
    std::coroutine_handle<promise_type> coroutine() const noexcept { return coroutine_; }
    /* No other party has its handle. */
    void forget() const noexcept { coroutine_.destroy(); }
    bool was_resumed() const noexcept { return coroutine_.promise().was_resumed; }
    /* Resumes the handle that the awaitable returned, here; or in the loop, if it is the detour of a task. */
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

    /* With all compilers a coroutine frame begins with the address of its resume function, so that an untyped handle can
     * resume it. All detours suspended at their beginning have the same address there. Detours of a library with its own
     * copy of this code differ, and are resumed like any other coroutine. */
    static const void *resumes(std::coroutine_handle<> suspended) noexcept {
        return *static_cast<const void *const *>(suspended.address());
    }
    bool is_detour(std::coroutine_handle<> other) const noexcept { return resumes(other) == resumes_; }

    std::coroutine_handle<promise_type> coroutine_;
    const void *resumes_ = nullptr; /* its own resume function at its beginning */
};

/* For an awaitable of another library. */
template <class Awaiter>
struct outside_awaiter {
    Awaiter inner;
    loop_place *place;

    decltype(auto) await_ready() { return inner.await_ready(); }
    /* Not inlined: some compilers would put its variables into the task's frame, which another thread may have destroyed
     * meanwhile. */
    template <class Promise>
    [[gnu::noinline]] bool await_suspend(std::coroutine_handle<Promise> coroutine) {
        std::coroutine_handle<> *const loop = place->next;
        const detour instead = detour::make({coroutine, place});
        const std::coroutine_handle<> next = suspend(instead); /* from here on, this object may be gone */
        if (next == instead.coroutine()) {
            instead.forget(); /* it does not suspend after all */
            return false;
        }
        if (next)
            instead.resume_next(next, loop);
        return instead.suspended();
    }
    decltype(auto) await_resume() { return inner.await_resume(); }

  private:
    /* The handle that the awaitable wants resumed; null: none. */
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

/* At the end of a task the coroutine that awaits it is resumed. */
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
    continuation awaits; /* the coroutine that awaits it; null: not started */

    std::suspend_always initial_suspend() const noexcept { return {}; }
    task_end final_suspend() const noexcept { return {}; }
    void unhandled_exception() noexcept { result.fail(std::current_exception()); }

    template <class Awaitable>
    decltype(auto) await_transform(Awaitable &&object) {
        if constexpr (is_task<std::remove_cvref_t<Awaitable>> && !awaitable<Awaitable>) {
            static_assert(awaitable<Awaitable>, "co_await takes a thrum::task as an rvalue, as it is awaited "
                                                "once: co_await std::move(task)");
            return std::move(object);
        } else if constexpr (!awaitable<Awaitable>) {
            static_assert(awaitable<Awaitable>,
                          "co_await in a thrum::task takes a thrum::task, a future, what when_any takes, "
                          "locking(), sleeping_for(), condition_variable::waiting() and the like, or a type "
                          "with await_ready, await_suspend and await_resume");
            return awaits_nothing();
        } else if constexpr (keeps_its_place<std::remove_cvref_t<Awaitable>>)
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
    /* A task that was started must have ended. */
    ~task() {
        if (coroutine_)
            coroutine_.destroy();
    }

    /* To be used once. Throws std::future_error: no_state it was moved from; future_already_retrieved it was awaited
     * already. */
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
            /* A coroutine of another library is in no loop: start one, which ends when that coroutine is next. */
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

/* A coroutine that is not awaited, and frees itself. */
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

/* Starts the task on a thread. Throws std::system_error with thrum_spawn's errors, std::future_error as co_await does. */
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
