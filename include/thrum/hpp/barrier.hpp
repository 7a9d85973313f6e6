// SPDX-License-Identifier: Apache-2.0
/* std::barrier for thrum's threads: blocks callers until the last has arrived. The last calls the completion function, then
 * the next phase begins. If the completion function throws, the last caller gets the exception, and the next phase begins
 * all the same.
 *
 *     thrum::barrier step(2, []() noexcept { std::puts("both are here"); });
 *     thrum::thread other([&] { step.arrive_and_wait(); });
 *     step.arrive_and_wait();
 */
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

namespace thrum {

namespace detail {
struct no_completion {
    void operator()() const noexcept {}
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
        const std::lock_guard lock(mutex_);
        return arrive_locked(by);
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
        std::unique_lock lock(mutex_);
        wait_locked(lock, arrive_locked(1));
    }
    /* Lowers the expected count by one from the next phase on. */
    void arrive_and_drop() {
        const std::lock_guard lock(mutex_);
        expect_missing(1);
        expected_--;
        static_cast<void>(arrive_locked(1));
    }

  private:
    struct next_phase {
        barrier *self;
        ~next_phase() {
            self->missing_ = self->expected_;
            self->phase_++;
            self->phase_begins_.notify_all();
        }
    };

    void expect_missing(std::ptrdiff_t by) const {
        if (by < 1 || by > missing_) [[unlikely]]
            detail::fail(EINVAL, "thrum::barrier::arrive", "by less than 1, or by more than are missing");
    }
    arrival_token arrive_locked(std::ptrdiff_t by) {
        expect_missing(by);
        const arrival_token token(phase_);
        missing_ -= by;
        if (missing_ == 0) {
            const next_phase next{this}; /* also if the completion function throws, or ends the thread */
            completion_();
        }
        return token;
    }
    void wait_locked(std::unique_lock<mutex> &lock, const arrival_token &token) const {
        phase_begins_.wait(lock, [&] { return phase_ != token.phase_; });
    }

    mutable mutex mutex_;
    mutable condition_variable phase_begins_;
    std::ptrdiff_t expected_, missing_; /* these and the phase: under the mutex */
    std::uint64_t phase_ = 0;
    [[no_unique_address]] Completion completion_;
};

} // namespace thrum

#endif
