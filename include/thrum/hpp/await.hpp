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
 * The first of several, also with a deadline, or until a stop is requested:
 *
 *     static thrum::task<bool> stops(thrum::channel<int> &numbers, std::stop_token stop) {
 *         std::optional<int> number;
 *         co_return co_await thrum::awaiting_any(thrum::stopping(stop), numbers.receiving(number)) == 0;
 *     }
 *
 * If the object is ready, the coroutine continues at once. Otherwise it is suspended, and resumes on a thread of its own, which
 * begins when the object is ready. Until then there is neither a stack nor a running thread: a wait takes some 400 bytes of the
 * coroutine's frame, and 192 for the thread (thrum_spawn_when). Only a condition_variable_any, a mutex of another library, and a
 * wait with a deadline that begins on an external kernel thread, or on a thread's own one, keep a thread's stack. condition_variable.hpp and barrier.hpp
 * have their own functions for co_await.
 *
 * A mutex is locked by the thread on which the coroutine continues. So it must be unlocked before the next co_await
 * (task.hpp). A coroutine that waits must not be destroyed. */
#ifndef THRUM_HPP_AWAIT_HPP
#define THRUM_HPP_AWAIT_HPP

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <tuple>
#include <type_traits>
#include <utility>

#include "thrum/hpp/attributes.hpp"
#include "thrum/hpp/detail/outcome.hpp"
#include "thrum/hpp/detail/state.hpp"
#include "thrum/hpp/detail/time.hpp"
#include "thrum/hpp/mutex.hpp"
#include "thrum/hpp/when_any.hpp"

namespace thrum {

namespace detail {

/* Operands, as any_end tells them. */
template <class... Operands>
struct operands {
    std::tuple<Operands &...> objects;

    template <class Tell>
    void operator()(Tell tell) const {
        std::apply([&](Operands &...each) { (tell(each), ...); }, objects);
    }
    template <class Tell>
    void operator()(std::size_t which, Tell tell) const {
        std::size_t place = 0;
        (*this)([&](auto &each) {
            if (place++ == which)
                tell(each);
        });
    }
};

/* What when_any would do. Until an operand is ready the coroutine needs no thread. This is in the coroutine's frame. */
template <class... Operands>
class any_awaiter : continuation {
  public:
    explicit any_awaiter(std::uint64_t end, Operands &...objects) : operands_{{objects...}}, end_(end) {}
    any_awaiter(const any_awaiter &) = delete;

    bool await_ready() {
        which_ = std::apply(
            [](Operands &...objects) { return detail::when_any_by(detail::any_until_ns(0), objects...); },
            operands_.objects);
        return which_ || end_ == 0;
    }
    /* Not inlined: some compilers would put its variables into the coroutine's frame (task.hpp). */
    template <class Promise>
    [[gnu::noinline]] bool await_suspend(std::coroutine_handle<Promise> suspended) {
        constexpr std::size_t count = sizeof...(Operands);
        coroutine = suspended;
        place = detail::loop_place_of(suspended);
        begin();
        when_.waits = waits_; /* the library sets the rest */
        when_.count = count;
        when_.deadline = end_;
        when_.fn = detail::resume_when_ready;
        when_.arg = static_cast<continuation *>(this);
        if (thrum_spawn_when(nullptr, &when_) == 0)
            return true; /* from here on, this object may be gone */
        when_.error = thrum_wait_any(waits_, count, end_, &when_.which); /* no memory: the caller waits */
        return false;
    }
    std::optional<std::size_t> await_resume() {
        return wait_ ? wait_->told(when_.error, when_.which, waits_) : which_;
    }

  private:
    void begin() {
        offers offered;
        operands_([&](auto &each) { offered.add(each); });
        wait_.emplace(operands_, operands_);
        std::size_t place_of = 0;
        operands_([&](auto &each) { waits_[place_of++] = each.waiting(); });
    }

    const operands<Operands...> operands_;
    const std::uint64_t end_;
    std::optional<std::size_t> which_; /* the one that was ready at once */
    std::optional<any_end<operands<Operands...>, operands<Operands...>>> wait_; /* none of them was */
    thrum_wait_t waits_[sizeof...(Operands)];
    thrum_when_t when_;
};

/* ... without a deadline. */
template <class... Operands>
class first_awaiter : public any_awaiter<Operands...> {
  public:
    using any_awaiter<Operands...>::any_awaiter;
    std::size_t await_resume() { return *any_awaiter<Operands...>::await_resume(); }
};

template <class Operand>
class one_awaiter : public any_awaiter<Operand> {
  public:
    explicit one_awaiter(Operand &object) : any_awaiter<Operand>(never, object) {}
    void await_resume() { any_awaiter<Operand>::await_resume(); }
};

/* `Operand`: what locks it for `Lock`. */
template <class Lock, class Operand>
class lock_awaiter : Operand, public any_awaiter<Operand> {
  public:
    explicit lock_awaiter(typename Lock::mutex_type &locked) noexcept
        : Operand{&locked}, any_awaiter<Operand>(never, static_cast<Operand &>(*this)) {}
    Lock await_resume() {
        any_awaiter<Operand>::await_resume();
        return Lock(*Operand::to_lock, std::adopt_lock);
    }
};

template <class Mutex>
struct for_writing {
    Mutex *to_lock;
    thrum_wait_t waiting() noexcept { return to_lock->waiting(); }
};

struct for_reading {
    shared_mutex *to_lock;
    thrum_wait_t waiting() noexcept { return to_lock->waiting_shared(); }
};

/* A mutex that thrum_wait_any does not know: a thread waits for it. In the coroutine's frame. */
template <class Mutex>
class thread_awaiter : continuation {
  public:
    explicit thread_awaiter(Mutex &to_lock) : mutex_(to_lock) {}
    thread_awaiter(const thread_awaiter &) = delete;

    bool await_ready() { return mutex_.try_lock(); }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> suspended) {
        coroutine = suspended;
        place = detail::loop_place_of(suspended);
        instead = wait_and_resume;
        if (thrum_spawn(nullptr, attributes().queued().native(), resume, static_cast<continuation *>(this)) ==
            0)
            return true;
        wait(); /* no thread can be created: the caller waits */
        return false;
    }
    std::unique_lock<Mutex> await_resume() {
        if (const std::exception_ptr thrown = waited_.thrown(); thrown != nullptr)
            std::rethrow_exception(thrown);
        return std::unique_lock(mutex_, std::adopt_lock);
    }

  private:
    void wait() {
        waited_.run([this] { mutex_.lock(); });
    }
    static void wait_and_resume(continuation *self) {
        static_cast<thread_awaiter *>(self)->wait();
        detail::run_in_turn(*self);
    }

    Mutex &mutex_;
    outcome<void> waited_; /* what lock() has thrown, if it was called */
};

/* What awaiting_any and its like return. */
template <class Awaiter, class... Operands>
class [[nodiscard]] awaiting_operands {
  public:
    explicit awaiting_operands(std::uint64_t end, Operands &...objects) : objects_(objects...), end_(end) {}
    Awaiter operator co_await() const {
        return std::apply([this](Operands &...objects) { return Awaiter(end_, objects...); }, objects_);
    }

  private:
    std::tuple<Operands &...> objects_;
    std::uint64_t end_;
};
template <class... Operands>
using awaiting_first_of = awaiting_operands<first_awaiter<Operands...>, Operands...>;
template <class... Operands>
using awaiting_any_of = awaiting_operands<any_awaiter<Operands...>, Operands...>;

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
    return detail::one_awaiter<std::remove_reference_t<Operand>>(object);
}

/* For co_await: what when_any, when_any_for and when_any_until return. The operands must be there until then: they are best made in
 * the same expression. */
template <waitable... Waitables>
requires(sizeof...(Waitables) > 0) auto awaiting_any(Waitables &&...objects) {
    return detail::awaiting_first_of<std::remove_reference_t<Waitables>...>(detail::never, objects...);
}
template <class Rep, class Period, waitable... Waitables>
requires(sizeof...(Waitables) > 0) auto awaiting_any_for(const std::chrono::duration<Rep, Period> &span,
                                                         Waitables &&...objects) {
    return detail::awaiting_any_of<std::remove_reference_t<Waitables>...>(detail::deadline_after(span),
                                                                          objects...);
}
template <class Clock, class Duration, waitable... Waitables>
requires(sizeof...(Waitables) >
         0) auto awaiting_any_until(const std::chrono::time_point<Clock, Duration> &end,
                                    Waitables &&...objects) {
    return detail::awaiting_any_of<std::remove_reference_t<Waitables>...>(detail::deadline_at(end),
                                                                          objects...);
}

/* For co_await: locks the mutex, and gives a std::unique_lock for it. */
template <class Mutex>
class [[nodiscard]] locking {
  public:
    explicit locking(Mutex &to_lock) noexcept : mutex_(&to_lock) {}
    auto operator co_await() const {
        if constexpr (waitable<Mutex>)
            return detail::lock_awaiter<std::unique_lock<Mutex>, detail::for_writing<Mutex>>(*mutex_);
        else
            return detail::thread_awaiter<Mutex>(*mutex_);
    }

  private:
    Mutex *mutex_;
};

/* Likewise for reading: a std::shared_lock. */
class [[nodiscard]] locking_shared {
  public:
    explicit locking_shared(shared_mutex &to_lock) noexcept : mutex_(&to_lock) {}
    auto operator co_await() const {
        return detail::lock_awaiter<std::shared_lock<shared_mutex>, detail::for_reading>(*mutex_);
    }

  private:
    shared_mutex *mutex_;
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
    template <class Clock, class Duration>
    explicit sleeping_until(const std::chrono::time_point<Clock, Duration> &end)
        : end_(detail::deadline_at(end)) {}
    auto operator co_await() const noexcept { return detail::sleep_awaiter(end_); }

  private:
    std::uint64_t end_;
};

} // namespace thrum

#endif
