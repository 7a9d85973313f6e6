// SPDX-License-Identifier: Apache-2.0
/* std::barrier for thrum's threads: blocks callers until the last has arrived. The last calls the completion function, then
 * the next phase begins. If the completion function throws, the last caller gets the exception, and the next phase begins
 * all the same.
 *
 *     thrum::barrier step(2, []() noexcept { std::puts("both are here"); });
 *     thrum::thread other([&] { step.arrive_and_wait(); });
 *     step.arrive_and_wait();
 *
 * A coroutine waits without a stack, by arriving(), which is also an operand of when_any and its like:
 *
 *     static thrum::task<> steps(thrum::barrier<> &step) {
 *         co_await step.arriving();
 *     }
 *
 * The arrival counts when the wait begins, and cannot be taken back: if a stop or a deadline ends the wait, the caller has arrived
 * all the same. */
#ifndef THRUM_HPP_BARRIER_HPP
#define THRUM_HPP_BARRIER_HPP

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <utility>

#include "thrum/hpp/condition_variable.hpp"
#include "thrum/hpp/detail/uncancelled.hpp"
#include "thrum/hpp/event.hpp"

namespace thrum {

namespace detail {
struct no_completion {
    void operator()() const noexcept {}
};

/* A wait that has an event of its own. In the barrier's list until its phase ends; then it is told, and no thread uses it
 * afterwards. */
struct passage {
    event told;
    passage *next = nullptr, *prev = nullptr; /* this and the next under the barrier's mutex */
    bool is_listed = false;
};

/* Those of a phase that has ended. They are told when the mutex is unlocked, as the barrier may be gone afterwards. */
struct passages {
    passage *first = nullptr;

    passages() = default;
    passages(const passages &) = delete;
    ~passages() {
        while (first != nullptr)
            std::exchange(first, first->next)->told.set();
    }
};
} // namespace detail

template <class Completion = detail::no_completion>
class barrier {
  public:
    /* The phase in which the caller arrived. */
    class arrival_token {
        friend class barrier;
        explicit arrival_token(std::uint64_t phase) noexcept : phase_(phase) {}
        std::uint64_t phase_;
    };

    /* Less than 0: std::system_error (EINVAL). */
    explicit barrier(std::ptrdiff_t expected, Completion completion = Completion())
        : expected_(expected), missing_(expected), completion_(std::move(completion)) {
        if (expected < 0) [[unlikely]]
            detail::fail(EINVAL, "thrum::barrier", "fewer than 0 are expected");
    }
    barrier(const barrier &) = delete;
    barrier &operator=(const barrier &) = delete;

    /* By less than 1, or by more than are missing: std::system_error (EINVAL), and nothing is counted. */
    [[nodiscard]] arrival_token arrive(std::ptrdiff_t by = 1) {
        detail::passages over;
        const std::lock_guard lock(mutex_);
        return arrive_locked(by, over);
    }
    void wait(arrival_token &&token) const {
        std::unique_lock lock(mutex_);
        wait_locked(lock, token);
    }
    /* False: the phase has not ended, and a stop was requested, or the deadline has come. The caller has arrived all the
     * same. */
    bool wait(arrival_token &&token, const std::stop_token &stop) const {
        std::unique_lock lock(mutex_);
        return phase_begins_.wait(lock, stop, [&] { return phase_ != token.phase_; });
    }
    template <class Rep, class Period>
    bool wait_for(arrival_token &&token, const std::chrono::duration<Rep, Period> &span) const {
        std::unique_lock lock(mutex_);
        return phase_begins_.wait_for(lock, span, [&] { return phase_ != token.phase_; });
    }
    template <class Clock, class Duration>
    bool wait_until(arrival_token &&token, const std::chrono::time_point<Clock, Duration> &deadline) const {
        std::unique_lock lock(mutex_);
        return phase_begins_.wait_until(lock, deadline, [&] { return phase_ != token.phase_; });
    }
    void arrive_and_wait() {
        detail::passages over;
        std::unique_lock lock(mutex_);
        wait_locked(lock, arrive_locked(1, over));
    }

    /* An operand of when_any, and for co_await: arrives when it is waited for first, and is ready when the phase has ended. */
    class [[nodiscard]] passing {
      public:
        explicit passing(barrier &of) noexcept : barrier_(of) {}
        /* Before it is waited for. */
        passing(passing &&other) noexcept : barrier_(other.barrier_) {}
        ~passing() {
            if (has_arrived_ && !passage_.told.is_set())
                barrier_.forget(passage_);
        }
        thrum_wait_t waiting() {
            if (!std::exchange(has_arrived_, true))
                barrier_.arrive_by(passage_);
            return passage_.told.waiting();
        }

      private:
        barrier &barrier_;
        bool has_arrived_ = false;
        detail::passage passage_;
    };
    passing arriving() noexcept { return passing(*this); }
    /* Lowers the expected count by one from the next phase on. */
    void arrive_and_drop() {
        detail::passages over;
        const std::lock_guard lock(mutex_);
        expect_missing(1);
        expected_--;
        static_cast<void>(arrive_locked(1, over));
    }

  private:
    struct next_phase {
        barrier *self;
        detail::passages &over;
        ~next_phase() {
            self->missing_ = self->expected_;
            self->phase_++;
            self->phase_begins_.notify_all();
            for (detail::passage *one = self->passages_; one != nullptr; one = one->next)
                one->is_listed = false;
            over.first = std::exchange(self->passages_, nullptr);
        }
    };

    void expect_missing(std::ptrdiff_t by) const {
        if (by < 1 || by > missing_) [[unlikely]]
            detail::fail(EINVAL, "thrum::barrier::arrive", "by less than 1, or by more than are missing");
    }
    arrival_token arrive_locked(std::ptrdiff_t by, detail::passages &over) {
        expect_missing(by);
        const arrival_token token(phase_);
        missing_ -= by;
        if (missing_ == 0) {
            const next_phase next{this,
                                  over}; /* also if the completion function throws, or ends the thread */
            completion_();
        }
        return token;
    }
    void wait_locked(std::unique_lock<mutex> &lock, const arrival_token &token) const {
        phase_begins_.wait(lock, [&] { return phase_ != token.phase_; });
    }

    void arrive_by(detail::passage &one) {
        /* Also if the arrival throws, or the caller is cancelled where it locks the mutex. */
        struct tell_unless_listed {
            detail::passage &one;
            bool is_listed = false;
            ~tell_unless_listed() {
                if (!is_listed)
                    one.told.set();
            }
        };
        detail::passages over;
        tell_unless_listed told{one};
        const std::lock_guard lock(mutex_);
        const std::uint64_t before = phase_;
        (void)arrive_locked(1, over);
        if (phase_ != before)
            return;
        told.is_listed = one.is_listed = true;
        one.next = passages_;
        if (one.next != nullptr)
            one.next->prev = &one;
        passages_ = &one;
    }
    /* The wait is over before the phase. If that has just ended, the event will be set. */
    void forget(detail::passage &one) noexcept {
        const detail::uncancelled region;
        {
            const std::lock_guard lock(mutex_);
            if (one.is_listed) {
                if (one.next != nullptr)
                    one.next->prev = one.prev;
                (one.prev != nullptr ? one.prev->next : passages_) = one.next;
                return;
            }
        }
        one.told.wait();
    }

    mutable mutex mutex_;
    mutable condition_variable phase_begins_;
    std::ptrdiff_t expected_, missing_; /* these and the phase: under the mutex */
    std::uint64_t phase_ = 0;
    detail::passage *passages_ = nullptr; /* of the waits of this phase that have events; under the mutex */
    [[no_unique_address]] Completion completion_;
};

} // namespace thrum

#endif
