// SPDX-License-Identifier: Apache-2.0
/* Coroutines that await time, locks, and what when_any can wait for.
 *
 *     static thrum::task<int> sum(thrum::channel<int> &numbers, thrum::mutex &mutex, int &total) {
 *         std::optional<int> number;
 *         while (co_await numbers.receiving(number), number) {
 *             const std::unique_lock lock = co_await thrum::locking(mutex); // to be unlocked before the next co_await
 *             total += *number;
 *         }
 *         co_await thrum::sleeping_for(std::chrono::milliseconds(1));
 *         co_return total;
 *     }
 *
 * If the object is ready, the coroutine continues at once. Otherwise it is suspended, and resumes on a thread of its own.
 *
 * Sleep needs no thread and no stack meanwhile. All others wait on that thread, which is started for it, and whose stack they
 * keep: they cost what a thread that waits costs. A future costs none (future.hpp).
 *
 * A mutex is locked by the thread on which the coroutine continues. So it must be unlocked before the next co_await
 * (task.hpp). */
#ifndef THRUM_HPP_AWAIT_HPP
#define THRUM_HPP_AWAIT_HPP

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <mutex>
#include <type_traits>
#include <utility>

#include "thrum/hpp/attributes.hpp"
#include "thrum/hpp/detail/outcome.hpp"
#include "thrum/hpp/detail/state.hpp"
#include "thrum/hpp/detail/time.hpp"
#include "thrum/hpp/when_any.hpp"

namespace thrum {

namespace detail {

/* `Operation` has try_it(), which does not wait and returns whether it was done; wait(), which does it; and result(). It is in the
 * coroutine's frame. */
template <class Operation>
class thread_awaiter : continuation {
  public:
    template <class... Args>
    explicit thread_awaiter(Args &&...args) : operation_{std::forward<Args>(args)...} {}
    thread_awaiter(const thread_awaiter &) = delete;

    bool await_ready() { return operation_.try_it(); }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> suspended) {
        coroutine = suspended;
        place = loop_place_of(suspended);
        instead = wait_and_resume;
        if (thrum_spawn(nullptr, attributes().queued().native(), resume, static_cast<continuation *>(this)) ==
            0)
            return true;
        wait(); /* no thread can be created: the caller waits */
        return false;
    }
    decltype(auto) await_resume() {
        if (const std::exception_ptr thrown = waited_.thrown(); thrown != nullptr)
            std::rethrow_exception(thrown);
        return operation_.result();
    }

  private:
    void wait() {
        waited_.run([this] { operation_.wait(); });
    }
    static void wait_and_resume(continuation *self) {
        static_cast<thread_awaiter *>(self)->wait();
        run_in_turn(*self);
    }

    Operation operation_;
    outcome<void> waited_; /* what wait() has thrown, if it was called */
};

/* What when_any would do. */
template <class Operand>
struct waiting_operation {
    Operand &operand;

    bool try_it() { return when_any_by(any_until_ns(0), operand).has_value(); }
    void wait() { when_any_by(any_until_ns(UINT64_MAX), operand); }
    void result() const noexcept {}
};

template <class Mutex>
struct locking_operation {
    Mutex &mutex;

    bool try_it() { return mutex.try_lock(); }
    void wait() { mutex.lock(); }
    std::unique_lock<Mutex> result() { return std::unique_lock(mutex, std::adopt_lock); }
};

class sleep_awaiter : continuation {
  public:
    explicit sleep_awaiter(std::uint64_t end) noexcept : end_(end) {}
    sleep_awaiter(const sleep_awaiter &) = delete;

    bool await_ready() const noexcept { return end_ <= thrum_now(); }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> suspended) {
        coroutine = suspended;
        place = loop_place_of(suspended);
        if (thrum_call_at(nullptr, end_, resume_on_thread, static_cast<continuation *>(this)) == 0)
            return true;
        thrum_sleep_until(end_); /* no memory for the call: the caller sleeps */
        return false;
    }
    void await_resume() const noexcept {}

  private:
    std::uint64_t end_;
};

} // namespace detail

/* co_await of an event, a latch, a semaphore, a thread, or a channel's receiving() and sending(): as when_any of it alone. */
template <waitable Operand>
requires(!requires(Operand & object) { object.operator co_await(); }) auto
operator co_await(Operand &&object) {
    return detail::thread_awaiter<detail::waiting_operation<std::remove_reference_t<Operand>>>(object);
}

/* For co_await: locks the mutex, and gives a std::unique_lock for it. */
template <class Mutex>
class [[nodiscard]] locking {
  public:
    explicit locking(Mutex &mutex) noexcept : mutex_(&mutex) {}
    auto operator co_await() const {
        return detail::thread_awaiter<detail::locking_operation<Mutex>>(*mutex_);
    }

  private:
    Mutex *mutex_;
};

/* For co_await: the coroutine resumes after this time. */
class [[nodiscard]] sleeping_for {
  public:
    template <class Rep, class Period>
    explicit sleeping_for(const std::chrono::duration<Rep, Period> &span)
        : ns_(detail::nanoseconds_of(span)) {}
    auto operator co_await() const noexcept { return detail::sleep_awaiter(detail::deadline_in(ns_)); }

  private:
    std::uint64_t ns_;
};

class [[nodiscard]] sleeping_until {
  public:
    template <class Duration>
    explicit sleeping_until(const std::chrono::time_point<std::chrono::steady_clock, Duration> &end)
        : end_(detail::nanoseconds_of(end.time_since_epoch())) {}
    auto operator co_await() const noexcept { return detail::sleep_awaiter(end_); }

  private:
    std::uint64_t end_;
};

} // namespace thrum

#endif
