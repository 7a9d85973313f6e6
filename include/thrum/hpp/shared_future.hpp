// SPDX-License-Identifier: Apache-2.0
/* A future that many threads may wait for and read.
 *
 *     const thrum::shared_future<std::string> name = thrum::async([] { return std::string("thrum"); }).share();
 *     thrum::thread one([name] { std::puts(name.get().c_str()); });
 *     thrum::thread two([name] { std::puts(name.get().c_str()); });
 *
 * As in the standard: get() returns a reference to the value, any number of times. The destructor of the last copy waits where
 * that of the future would have. Coroutines can await it (task.hpp), and when_any and when_all can wait for it. */
#ifndef THRUM_HPP_SHARED_FUTURE_HPP
#define THRUM_HPP_SHARED_FUTURE_HPP

#include <chrono>
#include <coroutine>
#include <memory>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "thrum/hpp/future.hpp"

namespace thrum {

template <class T>
class shared_future {
  public:
    shared_future() noexcept = default;
    /* Not explicit, as in the standard. */
    shared_future(future<T> &&from) // NOLINT(google-explicit-constructor)
        : held_(from.valid() ? std::make_shared<const future<T>>(std::move(from)) : nullptr) {}

    bool valid() const noexcept { return held_ != nullptr; }
    bool is_ready() const { return expect_held().is_ready(); }

    /* The reference is valid as long as a copy of this object is. */
    std::add_lvalue_reference_t<const T> get() const {
        wait();
        return held_->state_->result.look();
    }
    void wait() const { expect_held().wait(); }
    /* False: it is not ready, and a stop was requested. */
    bool wait(const std::stop_token &stop) const { return expect_held().wait(stop); }
    template <class Rep, class Period>
    future_status wait_for(const std::chrono::duration<Rep, Period> &span) const {
        return expect_held().wait_for(span);
    }
    template <class Clock, class Duration>
    future_status wait_until(const std::chrono::time_point<Clock, Duration> &deadline) const {
        return expect_held().wait_until(deadline);
    }

    /* Runs f(a copy of this) on a thread when it is ready: a future of what f returns, or, as future::then, of the value of
     * the future that it returns. */
    template <class F>
    auto then(F &&f) const {
        static_assert(std::is_invocable_v<std::decay_t<F>, shared_future>,
                      "it has to be callable with the shared future");
        return detail::then_state<shared_future, std::decay_t<F>>::start(*this, std::forward<F>(f));
    }

    /* co_await: as get(), but only the coroutine waits. */
    auto operator co_await() const noexcept { return awaiter{*this, {}}; }

    thrum_wait_t waiting() const { return expect_held().waiting(); }

  private:
    template <class Source, class F>
    friend class detail::then_state;

    struct awaiter {
        shared_future self; /* also of a temporary */
        detail::continuation waiting;
        bool await_ready() const { return self.is_ready(); }
        template <class Promise>
        bool await_suspend(std::coroutine_handle<Promise> coroutine) {
            waiting = {coroutine, detail::loop_place_of(coroutine)};
            return self.expect_outcome()->await(&waiting);
        }
        std::add_lvalue_reference_t<const T> await_resume() const { return self.get(); }
    };

    const future<T> &expect_held() const {
        if (held_ == nullptr) [[unlikely]]
            throw future_error(future_errc::no_state);
        return *held_;
    }
    const detail::state_ref<detail::state<T>> &expect_outcome() const {
        return expect_held().expect_outcome();
    }

    std::shared_ptr<const future<T>> held_; /* the last copy destroys it, and its destructor waits */
};

template <class T>
shared_future<T> future<T>::share() {
    return shared_future<T>(std::move(*this));
}

} // namespace thrum

#endif
