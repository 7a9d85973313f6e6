// SPDX-License-Identifier: Apache-2.0
/* Waits for a thrum_cond_t that a stop ends, too; and those of coroutines, which have no stack meanwhile. For
 * condition_variable.hpp and condition_variable_any.hpp. */
#ifndef THRUM_HPP_DETAIL_COND_AWAITER_HPP
#define THRUM_HPP_DETAIL_COND_AWAITER_HPP

#include <cerrno>
#include <condition_variable> /* std::cv_status */
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <stop_token>
#include <tuple>
#include <type_traits>
#include <utility>

#include "thrum/hpp/detail/outcome.hpp"
#include "thrum/hpp/detail/state.hpp"
#include "thrum/hpp/detail/stop.hpp"
#include "thrum/hpp/detail/time.hpp"

namespace thrum::detail {

/* The waits of one call for a condition, each of which ends when a stop is requested. */
class cond_waits {
  public:
    static constexpr std::size_t most = 2; /* elements of thrum_wait_any */

    explicit cond_waits(const std::stop_token &stop) : stop_(stop), flag_(flag_for(stop)) {}
    cond_waits(const cond_waits &) = delete;

    bool stop_requested() const noexcept { return stop_.stop_requested(); }

    /* 0: there was a signal, or a stop is requested; or ETIMEDOUT. */
    int wait_until_ns(thrum_cond_t *cond, thrum_mutex_t *mutex, std::uint64_t deadline) {
        if (!flag_)
            return thrum_cond_wait_until(cond, mutex, deadline);
        thrum_wait_t waits[most];
        return thrum_wait_any(waits, fill(waits, cond, mutex), deadline, nullptr);
    }
    /* Returns how many there are. */
    std::size_t fill(thrum_wait_t *waits, thrum_cond_t *cond, thrum_mutex_t *mutex) noexcept {
        std::size_t count = 0;
        if (flag_)
            waits[count++] = flag_->waiting();
        waits[count++] = {THRUM_WAIT_COND, 0, cond, mutex, {}};
        return count;
    }

  private:
    static std::optional<stop_flag> flag_for(const std::stop_token &stop) {
        if (!stop.stop_possible())
            return std::nullopt;
        return std::optional<stop_flag>(std::in_place, stop);
    }

    std::stop_token stop_;
    std::optional<stop_flag> flag_;
};

/* Those that no stop ends. */
struct cond_waits_on {
    static constexpr std::size_t most = 1;
    bool stop_requested() const noexcept { return false; }
    std::size_t fill(thrum_wait_t *waits, thrum_cond_t *cond, thrum_mutex_t *mutex) noexcept {
        *waits = {THRUM_WAIT_COND, 0, cond, mutex, {}};
        return 1;
    }
};

/* Waits until it is true, a wait times out, or a stop was requested: whether it is true. `wait_once` waits by the cond_waits that
 * it is given, and returns whether it has timed out. */
template <class Predicate, class Wait>
bool wait_stoppably(const std::stop_token &stop, Predicate &is_true, Wait wait_once) {
    if (is_true())
        return true;
    cond_waits waits(stop);
    while (!stop.stop_requested()) {
        const bool timed_out = wait_once(waits);
        if (is_true())
            return true;
        if (timed_out)
            break;
    }
    return false;
}

/* For a wait without a predicate: one signal is enough. */
struct any_signal {
    bool is_first = true;
    bool operator()() noexcept { return !std::exchange(is_first, false); }
};

/* Awaits a condition until `is_true`; in the coroutine's frame. The thread that awaits owns the mutex, and so does the one on
 * which the coroutine resumes. `Result`: void, std::cv_status or bool. `Waits`: one of the two above. */
template <class Result, class Waits, class Predicate>
class cond_awaiter : continuation {
  public:
    /* `stop`: a token, or nothing. */
    template <class... Stop>
    cond_awaiter(thrum_cond_t *cond, thrum_mutex_t *mutex, std::uint64_t end, Predicate &&is_true,
                 const Stop &...stop)
        : cond_(cond), mutex_(mutex), end_(end), is_true_(std::move(is_true)), each_(stop...) {}
    cond_awaiter(const cond_awaiter &) = delete;

    bool await_ready() {
        result_ = is_true_();
        return result_ || each_.stop_requested();
    }
    template <class Promise>
    [[gnu::noinline]] bool await_suspend(std::coroutine_handle<Promise> suspended) { /* as in await.hpp */
        coroutine = suspended;
        place = loop_place_of(suspended);
        instead = woken;
        return wait();
    }
    Result await_resume() const {
        if (const std::exception_ptr thrown = checked_.thrown(); thrown != nullptr)
            std::rethrow_exception(thrown);
        if constexpr (std::is_same_v<Result, std::cv_status>)
            return timed_out_ ? std::cv_status::timeout : std::cv_status::no_timeout;
        else
            return static_cast<Result>(result_);
    }

  private:
    /* True: a thread begins when the wait is over. From there on this object may be gone. */
    bool wait() {
        do {
            when_.waits = waits_; /* the library sets the rest */
            when_.count = each_.fill(waits_, cond_, mutex_);
            when_.deadline = end_;
            when_.fn = resume_when_ready;
            when_.arg = static_cast<continuation *>(this);
            if (thrum_spawn_when(nullptr, &when_) == 0)
                return true;
            when_.error =
                thrum_wait_any(waits_, when_.count, end_, nullptr); /* no memory: the caller waits */
        } while (!is_over());
        return false;
    }
    bool is_over() {
        timed_out_ = when_.error == ETIMEDOUT;
        checked_.run([this] { result_ = is_true_(); });
        return result_ || timed_out_ || each_.stop_requested() || checked_.thrown() != nullptr;
    }
    static void woken(continuation *self) {
        auto *const waiting = static_cast<cond_awaiter *>(self);
        if (waiting->is_over() || !waiting->wait())
            run_in_turn(*waiting);
    }

    thrum_cond_t *cond_;
    thrum_mutex_t *mutex_;
    std::uint64_t end_;
    Predicate is_true_;
    Waits each_;
    bool result_ = false, timed_out_ = false;
    outcome<void> checked_; /* what is_true_ has thrown */
    thrum_wait_t waits_[Waits::most];
    thrum_when_t when_;
};

/* What condition_variable::waiting() and its like return. */
template <class Result, class Waits, class Predicate, class... Stop>
class [[nodiscard]] awaiting_cond {
  public:
    awaiting_cond(thrum_cond_t *cond, thrum_mutex_t *mutex, std::uint64_t end, Predicate &&is_true,
                  const Stop &...stop)
        : cond_(cond), mutex_(mutex), end_(end), is_true_(std::move(is_true)), stop_(stop...) {}
    auto operator co_await() && {
        return std::apply(
            [this](const Stop &...stop) {
                return cond_awaiter<Result, Waits, Predicate>(cond_, mutex_, end_, std::move(is_true_),
                                                              stop...);
            },
            stop_);
    }

  private:
    thrum_cond_t *cond_;
    thrum_mutex_t *mutex_;
    std::uint64_t end_;
    Predicate is_true_;
    std::tuple<Stop...> stop_; /* a token, or nothing */
};

} // namespace thrum::detail

#endif
