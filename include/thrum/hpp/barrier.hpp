// SPDX-License-Identifier: Apache-2.0
/* std::barrier for thrum's threads: keeps all until the last has come, which calls a function first, and begins anew.
 *
 *     thrum::barrier step(2, []() noexcept { std::puts("both are here"); });
 *     thrum::thread other([&] { step.arrive_and_wait(); });
 *     step.arrive_and_wait();
 */
#ifndef THRUM_HPP_BARRIER_HPP
#define THRUM_HPP_BARRIER_HPP

#include <cstddef>
#include <cstdint>
#include <mutex>
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
    /* The phase that one has come to. */
    class arrival_token {
        friend class barrier;
        explicit arrival_token(std::uint64_t phase) noexcept : phase_(phase) {}
        std::uint64_t phase_;
    };

    explicit barrier(std::ptrdiff_t expected, Completion completion = Completion())
        : expected_(expected), missing_(expected), completion_(std::move(completion)) {}
    barrier(const barrier &) = delete;
    barrier &operator=(const barrier &) = delete;

    [[nodiscard]] arrival_token arrive(std::ptrdiff_t by = 1) {
        const std::lock_guard lock(mutex_);
        return arrive_locked(by);
    }
    void wait(arrival_token &&token) const {
        std::unique_lock lock(mutex_);
        wait_locked(lock, token);
    }
    void arrive_and_wait() {
        std::unique_lock lock(mutex_);
        wait_locked(lock, arrive_locked(1));
    }
    /* One less is expected from the next phase on. */
    void arrive_and_drop() {
        const std::lock_guard lock(mutex_);
        expected_--;
        static_cast<void>(arrive_locked(1));
    }

  private:
    arrival_token arrive_locked(std::ptrdiff_t by) {
        const arrival_token token(phase_);
        missing_ -= by;
        if (missing_ == 0) {
            completion_();
            missing_ = expected_;
            phase_++;
            next_phase_.notify_all();
        }
        return token;
    }
    void wait_locked(std::unique_lock<mutex> &lock, const arrival_token &token) const {
        next_phase_.wait(lock, [&] { return phase_ != token.phase_; });
    }

    mutable mutex mutex_;
    mutable condition_variable next_phase_;
    std::ptrdiff_t expected_, missing_; /* these and the phase are under the mutex */
    std::uint64_t phase_ = 0;
    [[no_unique_address]] Completion completion_;
};

} // namespace thrum

#endif
