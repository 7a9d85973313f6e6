// SPDX-License-Identifier: Apache-2.0
/* Regions of the calling thread that end with a block, kernel threads of its own, blocking calls, and calls at a time.
 *
 *     static int counter;
 *     {
 *         const thrum::no_preempt region; // no other thread runs on this worker meanwhile; nothing here may wait
 *         counter++;
 *     }
 *     {
 *         const thrum::own_kthread here; // one kernel thread, which runs no other thread, until the block ends
 *         thrum::this_thread::sleep_for(std::chrono::milliseconds(1));
 *     }
 *     const int answer = thrum::blocking([] { return std::getchar(); }); // on a kernel thread kept for such calls
 *     const std::optional<int> soon = thrum::blocking_for(std::chrono::seconds(1), [] { return std::getchar(); });
 *     const thrum::scheduled_call later(std::chrono::seconds(1), [] { std::puts("late"); }); // cancelled with its block
 */
#ifndef THRUM_HPP_GUARDS_HPP
#define THRUM_HPP_GUARDS_HPP

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "thrum/hpp/detail/block.hpp"
#include "thrum/hpp/detail/outcome.hpp"
#include "thrum/hpp/detail/time.hpp"
#include "thrum/hpp/detail/uncancelled.hpp"
#include "thrum/hpp/event.hpp"
#include "thrum/worker.h"

namespace thrum {

/* thrum_nopreempt_begin and _end: regions nest. The caller must neither wait nor end inside. */
class [[nodiscard]] no_preempt {
  public:
    no_preempt() noexcept { thrum_nopreempt_begin(); }
    no_preempt(const no_preempt &) = delete;
    ~no_preempt() { thrum_nopreempt_end(); }
};

/* thrum_set_cancel: the caller is not cancelled inside. The request acts at the next cancellation point after it. */
class [[nodiscard]] no_cancel {
  private:
    detail::uncancelled region_;
};

/* thrum_kthread_lock and _unlock: the caller runs on a kernel thread of its own inside. Regions nest; outside of them it must not
 * use what it had of that kernel thread. Throws std::system_error with thrum_kthread_lock's errors. A thread can have one from
 * its beginning: attributes::own_kthread(). */
class [[nodiscard]] own_kthread {
  public:
    own_kthread() {
        static constexpr detail::reason reasons[] = {
            {EAGAIN, "no kernel thread, no memory or no key is available"},
            {EPERM, "a tasklet, a scheduler and the thread that called thrum_init cannot have one, nor is it "
                    "made in a region without preemption"},
        };
        detail::check(thrum_kthread_lock(), "thrum::own_kthread", reasons);
    }
    own_kthread(const own_kthread &) = delete;
    ~own_kthread() { thrum_kthread_unlock(); }
};

/* Calls f() by thrum_blocking, and returns what it returns or throws what it throws. Throws std::system_error: EAGAIN no kernel
 * thread is available, and f was not called; EPERM the caller is a tasklet or a scheduler. */
template <class F>
auto blocking(F &&f) -> std::invoke_result_t<F> {
    using result = std::invoke_result_t<F>;
    struct call {
        F &work;
        detail::outcome<result> outcome;
        static void *run(void *self) {
            auto *it = static_cast<call *>(self);
            it->outcome.run([it]() -> decltype(auto) { return std::invoke(std::forward<F>(it->work)); });
            return nullptr;
        }
    } call{f, {}};
    static constexpr detail::reason reasons[] = {
        {EAGAIN, "no kernel thread is available"},
        {EPERM, "a tasklet or a scheduler cannot wait"},
    };
    detail::check(thrum_blocking(call::run, &call, nullptr), "thrum::blocking", reasons);
    return call.outcome.take();
}

namespace detail {

/* A call that its caller may leave behind: the later of the two frees it. */
template <class Work>
class lasting_call : public made_in_block {
  public:
    using result = std::invoke_result_t<Work>;

    template <class F>
    explicit lasting_call(F &&f) : work_(std::forward<F>(f)) {}

    /* What it returns, or true; empty, or false, at the deadline. Frees it, or leaves that to the call. */
    auto wait_by(std::uint64_t deadline) {
        static constexpr reason reasons[] = {
            {EAGAIN, "no kernel thread is available"},
            {EPERM, "a tasklet or a scheduler cannot wait"},
        };
        struct mine {
            lasting_call *self;
            int holders = 1;
            ~mine() { self->leave(holders); }
        } held{this};
        const int error = thrum_blocking_until(run, this, nullptr, deadline);
        if (error != 0 && error != ETIMEDOUT)
            held.holders = 2; /* it does not run */
        if (error != ETIMEDOUT)
            check(error, "thrum::blocking_until", reasons);
        if constexpr (std::is_void_v<result>) {
            if (error == 0)
                outcome_.take();
            return error == 0;
        } else {
            return error == 0 ? std::optional<result>(outcome_.take()) : std::nullopt;
        }
    }

  private:
    static void *run(void *self) {
        auto *it = static_cast<lasting_call *>(self);
        it->outcome_.run(std::move(it->work_));
        it->leave(1);
        return nullptr;
    }
    void leave(int holders) {
        if (holders_.fetch_sub(holders, std::memory_order_acq_rel) == holders)
            delete this;
    }

    Work work_;
    outcome<result> outcome_;
    std::atomic<int> holders_{2}; /* the caller and the call */
};

template <class F>
auto blocking_by(std::uint64_t deadline, F &&f) {
    using call = lasting_call<std::decay_t<F>>;
    static_assert(!std::is_reference_v<typename call::result>,
                  "the referred object may not outlive the call");
    return (new call(std::forward<F>(f)))->wait_by(deadline);
}

} // namespace detail

/* As blocking(), but the caller waits at most until the deadline. They return a std::optional of what f returns, or if that is
 * void, a bool. After the deadline it is empty, or false. The call cannot be stopped: it continues with its own copy of f, and
 * what it then returns or throws is dropped. So f must refer to nothing that goes with the caller's frame. */
template <class Rep, class Period, class F>
auto blocking_for(const std::chrono::duration<Rep, Period> &span, F &&f) {
    return detail::blocking_by(detail::deadline_after(span), std::forward<F>(f));
}
template <class Clock, class Duration, class F>
auto blocking_until(const std::chrono::time_point<Clock, Duration> &deadline, F &&f) {
    return detail::blocking_by(detail::deadline_at(deadline), std::forward<F>(f));
}

/* thrum_call_at: f() is called once, by a tasklet, so it must neither wait nor throw. The destructor cancels the call, or waits
 * until it has ended. Throws std::system_error with thrum_call_at's errors. */
template <class F>
class scheduled_call {
  public:
    template <class Rep, class Period>
    scheduled_call(const std::chrono::duration<Rep, Period> &span, F f) : work_(std::move(f)) {
        start(detail::deadline_after(span));
    }
    template <class Clock, class Duration>
    scheduled_call(const std::chrono::time_point<Clock, Duration> &moment, F f) : work_(std::move(f)) {
        start(detail::deadline_at(moment));
    }
    scheduled_call(const scheduled_call &) = delete;
    ~scheduled_call() {
        if (cancel())
            return;
        const detail::uncancelled waiting;
        if (!is_dropped())
            over_.wait();
    }

    /* True: it will not be called. False: it was called, is being called, or was cancelled already. */
    bool cancel() noexcept {
        if (is_cancelled_ || thrum_call_cancel(native_) != 0)
            return is_cancelled_;
        return is_cancelled_ = true;
    }

  private:
    /* With its runtime. */
    bool is_dropped() const noexcept { return runtime_ != thrum_runtime_id(); }

    void start(std::uint64_t expiry) {
        static constexpr detail::reason reasons[] = {{EAGAIN, "no memory"}};
        detail::check(thrum_call_at(
                          &native_, expiry,
                          [](void *self) {
                              auto *it = static_cast<scheduled_call *>(self);
                              it->work_();
                              it->over_.set(); /* the object may be gone from here on */
                          },
                          this),
                      "thrum::scheduled_call", reasons);
        runtime_ = thrum_runtime_id();
    }

    F work_;
    thrum_call_t native_{};
    event over_;
    std::uint64_t runtime_ = 0;
    bool is_cancelled_ = false;
};

} // namespace thrum

#endif
