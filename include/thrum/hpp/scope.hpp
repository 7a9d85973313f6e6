// SPDX-License-Identifier: Apache-2.0
/* Scopes: threads that end together (<thrum/scope.h>).
 *
 *     std::vector<int> sizes(100);
 *     thrum::scope scope(std::chrono::seconds(2));
 *     for (int &size : sizes)
 *         scope.run([&size] {
 *             thrum::this_thread::sleep_for(std::chrono::milliseconds(1)); // any wait ends the member if the scope is cancelled
 *             size = 1;
 *         });
 *     scope.join(); // throws what the first member has thrown, which cancels the others; or timed_out
 *
 * Unlike a task_group's, its members are cancelled: at the first exception, at the deadline, and by cancel(). They end where
 * they wait, by the forced unwinding of thrum_cancel: destructors run, and a catch (...) must rethrow. Scopes of one thread
 * nest; an inner one is cancelled with the outer one and has its deadline, unless its own is earlier.
 *
 * The destructor of a scope that was not joined, as where an exception passes, cancels it and waits; then it drops exceptions. */
#ifndef THRUM_HPP_SCOPE_HPP
#define THRUM_HPP_SCOPE_HPP

#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "thrum/hpp/attributes.hpp"
#include "thrum/hpp/detail/block.hpp"
#include "thrum/hpp/detail/outcome.hpp"
#include "thrum/hpp/detail/time.hpp"
#include "thrum/hpp/detail/uncancelled.hpp"
#include "thrum/scope.h"

namespace thrum {

class scope {
  public:
    scope() { begin(detail::never); }
    /* With a deadline. They throw std::system_error: EAGAIN no memory; EPERM the caller is a tasklet or a scheduler. */
    template <class Rep, class Period>
    explicit scope(const std::chrono::duration<Rep, Period> &span) {
        begin(detail::deadline_after(span));
    }
    template <class Clock, class Duration>
    explicit scope(const std::chrono::time_point<Clock, Duration> &deadline) {
        begin(detail::deadline_at(deadline));
    }
    scope(const scope &) = delete;
    /* An automatic variable: it ends with its block. */
    static void *operator new(std::size_t) = delete;
    static void *operator new[](std::size_t) = delete;
    ~scope() {
        if (joined_)
            return;
        const detail::uncancelled waiting;
        thrum_scope_cancel(&native_);
        thrum_scope_end(&native_);
    }

    /* Runs f() in a member. By the owner and the members. Throws std::system_error: ECANCELED the scope is cancelled; EINVAL
     * it was joined; or thrum_spawn's errors. */
    template <class F>
    requires std::is_invocable_v<std::decay_t<F>>
    void run(F &&f) { spawn(nullptr, std::forward<F>(f)); }
    template <class F>
    requires std::is_invocable_v<std::decay_t<F>>
    void run(const attributes &how, F &&f) { spawn(how.native(), std::forward<F>(f)); }

    /* Waits for all members. Rethrows the exception that cancelled the scope; or throws std::system_error: timed_out by its
     * deadline; operation_canceled by cancel(), or with a scope around it; no_such_process (ESRCH) the runtime has ended;
     * invalid_argument it was joined already. The same, or with a checked library one line and an abort, if the caller has
     * not begun it, or has begun a scope since that has not ended: then this one has not ended either. */
    void join() {
        expect_open("thrum::scope::join");
        const int error = thrum_scope_end(&native_);
        if (error == EINVAL) /* no member's result */
            detail::fail(error, "thrum::scope::join",
                         "it is not the innermost scope that the caller has begun");
        joined_ = true;
        if (error == threw)
            std::rethrow_exception(std::exchange(thrown_, nullptr));
        detail::check(error, "thrum::scope::join", reasons);
    }

    void cancel() noexcept { thrum_scope_cancel(&native_); }
    bool cancelled() const noexcept { return thrum_scope_cancelled(&native_); }
    thrum_scope_t *native_handle() noexcept { return &native_; }

    /* That of the innermost scope that the caller is in; time_point::max(): none. */
    static std::chrono::steady_clock::time_point deadline() noexcept {
        using point = std::chrono::steady_clock::time_point;
        const std::uint64_t ns = thrum_scope_deadline();
        if (ns >= static_cast<std::uint64_t>(INT64_MAX))
            return point::max();
        return point(std::chrono::nanoseconds(static_cast<std::int64_t>(ns)));
    }

  private:
    static constexpr int threw = INT_MIN; /* a member's result */
    static constexpr detail::reason reasons[] = {
        {ETIMEDOUT, "its deadline has come, or that of a scope around it"},
        {ECANCELED, "it was cancelled, or a scope around it"},
        {ESRCH, detail::runtime_has_ended},
    };

    void begin(std::uint64_t deadline) {
        detail::check(thrum_scope_begin(&native_, deadline), "thrum::scope",
                      "no memory, or a caller that cannot wait");
    }
    void expect_open(const char *what) const {
        if (joined_) [[unlikely]]
            detail::fail(EINVAL, what, "it was joined already");
    }

    template <class Work>
    struct member final : detail::made_in_block {
        template <class F>
        member(scope *owner, F &&f) : in(owner), work(std::forward<F>(f)) {}
        scope *in;
        Work work;

        static int main(void *arg) {
            const std::unique_ptr<member> self(static_cast<member *>(arg));
            detail::outcome<void> outcome;
            outcome.run([&self] { static_cast<void>(std::invoke(std::move(self->work))); });
            std::exception_ptr thrown = outcome.thrown();
            if (thrown == nullptr)
                return 0;
            if (!self->in->has_thrown_.exchange(true, std::memory_order_relaxed))
                self->in->thrown_ = std::move(thrown); /* the first; the end of the scope reads it */
            return threw;
        }
    };

    template <class F>
    void spawn(const thrum_attr_t *how, F &&f) {
        expect_open("thrum::scope::run");
        using made = member<std::decay_t<F>>;
        auto work = std::make_unique<made>(this, std::forward<F>(f));
        const int error = thrum_scope_spawn(&native_, how, made::main, work.get());
        if (error == 0)
            static_cast<void>(work.release()); /* it may be gone already */
        else if (error == ECANCELED)
            detail::fail(error, "thrum::scope::run", "the scope is cancelled");
        else
            detail::check(error, "thrum::scope::run", detail::spawn_reasons);
    }

    thrum_scope_t native_;
    bool joined_ = false;
    std::atomic<bool> has_thrown_{false};
    std::exception_ptr thrown_; /* written by the member that has set has_thrown_ */
};

} // namespace thrum

#endif
