// SPDX-License-Identifier: Apache-2.0
/* Values that become available later.
 *
 *     thrum::future<int> answer = thrum::async([] { return 6 * 7; });
 *     std::printf("%d\n", answer.get()); // or what the function threw
 *
 * As in the standard, get() waits, and takes the value or throws. The destructor of a future from async() waits for its
 * thread. A promise destroyed without a value stores std::future_error (broken_promise). Beyond the standard, coroutines
 * can await futures (task.hpp), and when_any can wait for them among other objects.
 *
 * After a runtime has ended, its threads never run again (runtime.hpp). Waiting for a future from async() whose thread had
 * not ended then throws std::system_error (ESRCH), as with thrum_join, and its destructor does not wait. If a promise is
 * lost with such a thread, waiting for its future never returns. */
#ifndef THRUM_HPP_FUTURE_HPP
#define THRUM_HPP_FUTURE_HPP

#include <chrono>
#include <concepts>
#include <coroutine>
#include <exception>
#include <functional>
#include <future>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "thrum/hpp/attributes.hpp"
#include "thrum/hpp/detail/launch.hpp"
#include "thrum/hpp/detail/state.hpp"
#include "thrum/hpp/detail/stop.hpp"
#include "thrum/hpp/detail/uncancelled.hpp"

namespace thrum {

using std::future_errc;
using std::future_error;
using std::future_status;

template <class T>
class promise;
template <class T>
class shared_future;

namespace detail {
template <class Source, class F>
class then_state;
}

template <class T>
class [[nodiscard]] future {
  public:
    future() noexcept = default;
    future(future &&) noexcept = default;
    /* For the library's own use. */
    explicit future(detail::state_ref<detail::state<T>> state) noexcept : state_(std::move(state)) {}
    future &operator=(future &&other) noexcept {
        future(std::move(other)).swap(*this);
        return *this;
    }
    ~future() {
        if (state_ && state_->runtime != 0 && !state_->is_ready() && !state_->is_lost()) {
            const detail::uncancelled waiting;
            state_->wait();
        }
    }
    void swap(future &other) noexcept { std::swap(state_, other.state_); }

    bool valid() const noexcept { return static_cast<bool>(state_); }
    bool is_ready() const { return expect_state()->is_ready(); }

    /* To be called once: the future is not valid afterwards. */
    T get() {
        wait();
        return detail::state_ref(std::move(state_))->result.take();
    }
    void wait() const { expect_outcome()->wait(); }
    /* False: it is not ready, and a stop was requested. */
    bool wait(const std::stop_token &stop) const {
        return is_ready() || detail::wait_unless_stopped(stop, waiting()) == 0;
    }
    template <class Rep, class Period>
    future_status wait_for(const std::chrono::duration<Rep, Period> &span) const {
        return status(expect_outcome()->wait_by([&](const event &one) { return one.wait_for(span); }));
    }
    template <class Clock, class Duration>
    future_status wait_until(const std::chrono::time_point<Clock, Duration> &deadline) const {
        return status(expect_outcome()->wait_by([&](const event &one) { return one.wait_until(deadline); }));
    }

    /* Moves it to a shared_future; include shared_future.hpp for it. */
    shared_future<T> share();

    /* Runs f(this future) on a thread when it is ready: a future of what f returns; if that is a future itself, of its value, for
     * which no thread waits. This one is not valid afterwards. The destructor of the new one waits if that of this one would
     * have. */
    template <class F>
    auto then(F &&f) {
        static_assert(std::is_invocable_v<std::decay_t<F>, future>, "it has to be callable with the future");
        return detail::then_state<future, std::decay_t<F>>::start(std::move(*this), std::forward<F>(f));
    }

    /* co_await: as get(), but only the coroutine waits, and it resumes on a thread of its own. */
    auto operator co_await() noexcept { return awaiter{this, {}}; }

    /* Makes the destructor wait, as for a future from async(). */
    void wait_at_the_end() { expect_state()->runtime = thrum_runtime_id(); }

    thrum_wait_t waiting() const { return expect_outcome()->waiting(); }

  private:
    friend class shared_future<T>;
    template <class Source, class F>
    friend class detail::then_state;

    struct awaiter {
        future *self;
        detail::continuation waiting;
        bool await_ready() const { return self->is_ready(); }
        template <class Promise>
        bool await_suspend(std::coroutine_handle<Promise> coroutine) {
            waiting = {coroutine, detail::loop_place_of(coroutine)};
            return self->expect_outcome()->await(&waiting);
        }
        T await_resume() const { return self->get(); }
    };

    static future_status status(bool is_ready) {
        return is_ready ? future_status::ready : future_status::timeout;
    }
    const detail::state_ref<detail::state<T>> &expect_state() const {
        if (!state_) [[unlikely]]
            throw future_error(future_errc::no_state);
        return state_;
    }
    const detail::state_ref<detail::state<T>> &expect_outcome() const {
        if (expect_state()->is_lost()) [[unlikely]]
            detail::fail(ESRCH, "thrum::future", detail::runtime_has_ended);
        return state_;
    }

    detail::state_ref<detail::state<T>> state_;
};

template <class T>
class promise {
  public:
    promise() : state_(new detail::state<T>) {}
    promise(promise &&) noexcept = default;
    promise &operator=(promise &&other) noexcept {
        promise(std::move(other)).swap(*this);
        return *this;
    }
    ~promise() {
        if (state_ && state_->claim()) {
            state_->result.fail(std::make_exception_ptr(future_error(future_errc::broken_promise)));
            state_->publish();
        }
    }
    void swap(promise &other) noexcept {
        std::swap(state_, other.state_);
        std::swap(has_future_, other.has_future_);
    }

    future<T> get_future() {
        if (std::exchange(has_future_, true))
            throw future_error(future_errc::future_already_retrieved);
        return future<T>(expect_state());
    }

    /* A thread that sees the value may destroy the promise at once: it is not touched afterwards. */
    void set_value() requires std::is_void_v<T> {
        const auto state = claim();
        state->result.set();
        state->publish();
    }
    template <class U = T>
    requires(!std::is_void_v<T>) void set_value(U &&value) {
        const auto state = claim();
        try {
            state->result.set(std::forward<U>(value));
        } catch (...) { /* thrown while the value was copied or moved */
            state->result.fail(std::current_exception());
        }
        state->publish();
    }
    void set_exception(std::exception_ptr thrown) {
        const auto state = claim();
        state->result.fail(std::move(thrown));
        state->publish();
    }

  private:
    const detail::state_ref<detail::state<T>> &expect_state() const {
        if (!state_) [[unlikely]]
            throw future_error(future_errc::no_state);
        return state_;
    }
    detail::state_ref<detail::state<T>> claim() const {
        if (!expect_state()->claim())
            throw future_error(future_errc::promise_already_satisfied);
        return state_;
    }

    detail::state_ref<detail::state<T>> state_;
    bool has_future_ = false;
};

namespace detail {

/* What then() gives a future of, where f returns R. */
template <class R>
struct unwrapped : std::type_identity<R> {};
template <class T>
struct unwrapped<future<T>> : std::type_identity<T> {};
template <class R>
using unwrapped_t = typename unwrapped<R>::type;

/* The state of what then() returns. It is also the continuation in the state of `source`, which holds it until it has run; where
 * f returns a future, afterwards in the state of that one. */
template <class Source, class F>
class then_state final : public state<unwrapped_t<std::invoke_result_t<F, Source>>>, continuation {
    using R = std::invoke_result_t<F, Source>;
    using T = unwrapped_t<R>;
    static constexpr bool unwraps = !std::is_same_v<R, T>;

  public:
    template <class Callable>
    then_state(Source source, Callable &&work)
        : state<T>(2), continuation{nullptr, nullptr, run, nullptr}, source_(std::move(source)),
          work_(std::forward<Callable>(work)) {}

    template <class Callable>
    static future<T> start(Source source, Callable &&work) {
        const auto &awaited = source.expect_outcome();
        const std::uint64_t runtime = awaited->runtime;
        auto *const made = new then_state(std::move(source), std::forward<Callable>(work));
        future<T> result{state_ref<state<T>>(made)};
        made->runtime = runtime;
        if (!made->source_.expect_outcome()->await(made)) {
            resume_on_thread(static_cast<continuation *>(
                made)); /* perhaps in a later runtime, that of `source` has ended */
            made->runtime = runtime != 0 ? thrum_runtime_id() : 0;
        }
        return result;
    }

  private:
    static void run(continuation *self) {
        end end{static_cast<then_state *>(self)};
        if constexpr (unwraps)
            await_inner(end);
        else
            end.self->result.run([self = end.self]() -> T {
                return std::invoke(std::move(self->work_), std::move(self->source_));
            });
    }
    struct end {          /* also if the thread ends inside `work` */
        then_state *self; /* null: the end is another thread's */
        ~end() {
            if (self == nullptr)
                return;
            self->publish();
            self->leave();
        }
    };

    static void await_inner(end &end) requires unwraps {
        then_state *const self = end.self;
        outcome<void> called;
        called.run([self] {
            self->inner_ = std::invoke(std::move(self->work_), std::move(self->source_));
            self->inner_.expect_outcome();
        });
        if (called.thrown() != nullptr) {
            self->result.fail(called.thrown());
            return;
        }
        self->instead = take_inner;
        end.self = nullptr; /* another thread may take it, and free this, before await() returns */
        if (!self->inner_.expect_outcome()->await(self))
            take_inner(self);
    }
    static void take_inner(continuation *self) requires unwraps {
        const end end{static_cast<then_state *>(self)};
        end.self->result.run([self = end.self]() -> T { return self->inner_.get(); });
    }

    Source source_;
    F work_;
    [[no_unique_address]] std::conditional_t<unwraps, R, nothing> inner_; /* what f has returned */
};

/* The state of a thread that runs `work`; the thread holds it until it has ended. (`thrum ps` shows the template's first
 * argument as what the thread runs.) */
template <class Work, class T>
class async_state final : public state<T> {
  public:
    explicit async_state(Work work) : state<T>(2), work_(std::move(work)) {}

    static future<T> start(const thrum_attr_t *attr, Work work) {
        state_ref<state<T>> mine(new async_state(std::move(work)));
        state_ref<state<T>> the_threads(mine.get());
        check(thrum_spawn(nullptr, attr, run, static_cast<async_state *>(the_threads.get())), "thrum::async",
              spawn_reasons);
        static_cast<void>(the_threads.release());
        mine->runtime = thrum_runtime_id();
        return future<T>(std::move(mine));
    }

  private:
    static void *run(void *arg) {
        const end end{static_cast<async_state *>(arg)};
        end.self->result.run(std::move(end.self->work_));
        return nullptr;
    }
    struct end { /* also if the thread ends inside `work` */
        async_state *self;
        ~end() {
            self->publish();
            self->leave();
        }
    };

    Work work_;
};

} // namespace detail

/* Starts a thread that runs f(args...). Throws std::system_error with thrum_spawn's errors. */
template <class F, class... Args>
requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
auto async(const attributes &how, F &&f, Args &&...args) {
    using T = std::invoke_result_t<std::decay_t<F>, std::decay_t<Args>...>;
    auto work = detail::bind(std::forward<F>(f), std::forward<Args>(args)...);
    return detail::async_state<decltype(work), T>::start(how.native(), std::move(work));
}
template <class F, class... Args>
requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
auto async(F &&f, Args &&...args) {
    using T = std::invoke_result_t<std::decay_t<F>, std::decay_t<Args>...>;
    auto work = detail::bind(std::forward<F>(f), std::forward<Args>(args)...);
    return detail::async_state<decltype(work), T>::start(nullptr, std::move(work));
}

} // namespace thrum

#endif
