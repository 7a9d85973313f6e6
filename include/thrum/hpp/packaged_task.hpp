// SPDX-License-Identifier: Apache-2.0
/* A function whose result or exception goes to a future; the thread that has the object calls it.
 *
 *     thrum::packaged_task<int(int)> square([](int number) { return number * number; });
 *     thrum::future<int> result = square.get_future();
 *     thrum::thread thread(std::move(square), 7);
 *     std::printf("%d\n", result.get());
 *
 * As in the standard, without make_ready_at_thread_exit(). One that is destroyed before it was called stores
 * std::future_error (broken_promise). */
#ifndef THRUM_HPP_PACKAGED_TASK_HPP
#define THRUM_HPP_PACKAGED_TASK_HPP

#include <concepts>
#include <exception>
#include <functional>
#include <type_traits>
#include <utility>

#include "thrum/hpp/future.hpp"

namespace thrum {

namespace detail {

template <class R, class... Args>
class packaged : public state<R> {
  public:
    virtual void call(Args... args) = 0;
    virtual packaged *made_again() = 0; /* with the same function */
};

template <class F, class R, class... Args>
class packaged_of final : public packaged<R, Args...> {
  public:
    template <class Callable>
    explicit packaged_of(Callable &&work) : work_(std::forward<Callable>(work)) {}
    void call(Args... args) override {
        this->result.run([&]() -> R {
            if constexpr (std::is_void_v<R>)
                static_cast<void>(std::invoke(work_, std::forward<Args>(args)...));
            else
                return std::invoke(work_, std::forward<Args>(args)...);
        });
    }
    packaged<R, Args...> *made_again() override { return new packaged_of(std::move(work_)); }

  private:
    F work_;
};

} // namespace detail

template <class Signature>
class packaged_task;

template <class R, class... Args>
class packaged_task<R(Args...)> {
    using state = detail::packaged<R, Args...>;

  public:
    packaged_task() noexcept = default;
    template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, packaged_task> &&
             std::is_invocable_r_v<R, std::decay_t<F> &, Args...>) explicit packaged_task(F &&f)
        : state_(new detail::packaged_of<std::decay_t<F>, R, Args...>(std::forward<F>(f))) {}
    packaged_task(packaged_task &&) noexcept = default;
    packaged_task &operator=(packaged_task &&other) noexcept {
        packaged_task(std::move(other)).swap(*this);
        return *this;
    }
    ~packaged_task() { give_up(); }
    void swap(packaged_task &other) noexcept {
        std::swap(state_, other.state_);
        std::swap(has_future_, other.has_future_);
    }
    friend void swap(packaged_task &a, packaged_task &b) noexcept { a.swap(b); }

    bool valid() const noexcept { return static_cast<bool>(state_); }
    future<R> get_future() {
        expect_state();
        if (std::exchange(has_future_, true))
            throw future_error(future_errc::future_already_retrieved);
        return future<R>(detail::state_ref<detail::state<R>>(held_again()));
    }
    /* To be called once. A thread that sees the result may destroy the task at once: it is not touched afterwards. */
    void operator()(Args... args) {
        expect_state();
        if (!state_->claim())
            throw future_error(future_errc::promise_already_satisfied);
        struct publish { /* also if the thread ends inside */
            detail::state_ref<state> held;
            ~publish() { held->publish(); }
        } const end{state_};
        end.held->call(std::forward<Args>(args)...);
    }
    /* The same function, to be called once more, for a new future. */
    void reset() {
        expect_state();
        detail::state_ref<state> next(state_->made_again());
        give_up();
        state_ = std::move(next);
        has_future_ = false;
    }

  private:
    void expect_state() const {
        if (!state_) [[unlikely]]
            throw future_error(future_errc::no_state);
    }
    detail::state<R> *held_again() const noexcept {
        state_->hold();
        return state_.get();
    }
    void give_up() noexcept {
        if (state_ && state_->claim()) {
            state_->result.fail(std::make_exception_ptr(future_error(future_errc::broken_promise)));
            state_->publish();
        }
    }

    detail::state_ref<state> state_;
    bool has_future_ = false;
};

namespace detail {
/* R(Args...) of an object with one operator(). */
template <class Call>
struct signature_of;
template <class R, class F, class... Args>
struct signature_of<R (F::*)(Args...)> : std::type_identity<R(Args...)> {};
template <class R, class F, class... Args>
struct signature_of<R (F::*)(Args...) const> : std::type_identity<R(Args...)> {};
template <class R, class F, class... Args>
struct signature_of<R (F::*)(Args...) noexcept> : std::type_identity<R(Args...)> {};
template <class R, class F, class... Args>
struct signature_of<R (F::*)(Args...) const noexcept> : std::type_identity<R(Args...)> {};
} // namespace detail

template <class R, class... Args>
packaged_task(R (*)(Args...)) -> packaged_task<R(Args...)>;
template <class F>
packaged_task(F) -> packaged_task<typename detail::signature_of<decltype(&F::operator())>::type>;

} // namespace thrum

#endif
