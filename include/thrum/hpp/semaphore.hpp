// SPDX-License-Identifier: Apache-2.0
/* std::counting_semaphore for thrum's threads.
 *
 *     thrum::counting_semaphore connections(4); // at most four at the same time
 *     connections.acquire();
 *     connections.release();
 *
 * First come, first served. release() neither waits nor yields. */
#ifndef THRUM_HPP_SEMAPHORE_HPP
#define THRUM_HPP_SEMAPHORE_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stop_token>

#include "thrum/hpp/detail/stop.hpp"
#include "thrum/hpp/detail/time.hpp"

namespace thrum {

template <std::ptrdiff_t Max = THRUM_SEM_MAX>
class counting_semaphore {
    static_assert(0 <= Max && Max <= THRUM_SEM_MAX);

  public:
    /* Less than 0, or more than max(): std::system_error (EINVAL). */
    constexpr explicit counting_semaphore(std::ptrdiff_t permits)
        : native_ THRUM_SEM_INITIALIZER(static_cast<std::uint64_t>(permits)) {
        if (permits < 0 || permits > Max) [[unlikely]]
            detail::fail(EINVAL, "thrum::counting_semaphore", "permits below 0 or above max()");
    }
    counting_semaphore(const counting_semaphore &) = delete;
    counting_semaphore &operator=(const counting_semaphore &) = delete;

    static constexpr std::ptrdiff_t max() noexcept { return Max; }

    /* Throws std::system_error: EINVAL less than 0; EOVERFLOW more than THRUM_SEM_MAX in total. More than max() is
     * undefined, as in the standard. */
    void release(std::ptrdiff_t permits = 1) {
        static constexpr detail::reason reasons[] = {{EINVAL, "permits below 0"},
                                                     {EOVERFLOW, "more than THRUM_SEM_MAX permits"}};
        detail::check(permits >= 0 ? thrum_sem_post_many(&native_, detail::count_of(permits)) : EINVAL,
                      "thrum::counting_semaphore::release", reasons);
    }
    void acquire() { thrum_sem_wait(&native_); }
    /* False: a stop was requested, and no permit was taken. */
    bool acquire(const std::stop_token &stop) { return detail::wait_unless_stopped(stop, waiting()) == 0; }
    bool try_acquire() noexcept { return thrum_sem_try_wait(&native_) == 0; }
    template <class Rep, class Period>
    bool try_acquire_for(const std::chrono::duration<Rep, Period> &span) {
        return thrum_sem_wait_until(&native_, detail::deadline_after(span)) == 0;
    }
    template <class Clock, class Duration>
    bool try_acquire_until(const std::chrono::time_point<Clock, Duration> &deadline) {
        return detail::wait_until(
                   deadline, [this](std::uint64_t ns) { return thrum_sem_wait_until(&native_, ns); }) == 0;
    }

    thrum_wait_t waiting() noexcept { return {THRUM_WAIT_SEM, 0, &native_, nullptr, {}}; }

  private:
    thrum_sem_t native_;
};

using binary_semaphore = counting_semaphore<1>;

} // namespace thrum

#endif
