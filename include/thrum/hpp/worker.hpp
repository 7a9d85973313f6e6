// SPDX-License-Identifier: Apache-2.0
/* Workers that come and go while the runtime runs.
 *
 *     thrum::worker more;                                          // one more, until the end of this block
 *     thrum::thread there(thrum::attributes().worker(more.number()), [] { std::puts("on it"); });
 *     there.join();                                                // no thread may be bound to it when it stops
 */
#ifndef THRUM_HPP_WORKER_HPP
#define THRUM_HPP_WORKER_HPP

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <optional>

#include "thrum/hpp/detail/error.hpp"
#include "thrum/hpp/detail/uncancelled.hpp"
#include "thrum/thrum.h"
#include "thrum/worker.h"

namespace thrum {

class worker {
  public:
    /* Throws std::system_error with thrum_worker_add's errors. */
    worker() {
        static constexpr detail::reason reasons[] = {
            {ESRCH, "there is no runtime"},
            {EAGAIN, "there are 1024, or no kernel thread, timer or signal is left"},
            {ENOMEM, "no memory for it"},
            {EPERM, "a tasklet or a scheduler must not wait for it"},
        };
        detail::check(thrum_worker_add(&number_), "thrum::worker", reasons);
        runtime_ = thrum_runtime_id();
    }
    worker(const worker &) = delete;
    worker &operator=(const worker &) = delete;
    /* If it cannot be stopped (stop()) it stays, and a line on stderr says so. */
    ~worker() {
        if (!is_there())
            return;
        const detail::uncancelled waiting;
        if (thrum_worker_stop(number_) != 0) [[unlikely]]
            std::fprintf(stderr,
                         "thrum: worker %u stays: threads are bound to it, or it is the last one; join them "
                         "before its object is destroyed\n",
                         number_);
    }

    unsigned number() const noexcept { return number_; }
    /* Returns when it has stopped; its threads go to the others. Throws std::system_error: EINVAL it has stopped already; EBUSY
     * threads are bound to it, or it is the last one. */
    void stop() {
        static constexpr detail::reason reasons[] = {
            {ESRCH, detail::runtime_has_ended},
            {EINVAL, "it has stopped already"},
            {EBUSY, "threads are bound to it, or it is the last one"},
            {EPERM, "a tasklet or a scheduler must not wait for it"},
        };
        detail::check(is_there()    ? thrum_worker_stop(number_)
                      : is_stopped_ ? EINVAL
                                    : ESRCH,
                      "thrum::worker::stop", reasons);
        is_stopped_ = true;
    }
    thrum_worker_counters counters() const noexcept {
        thrum_worker_counters all{};
        thrum_worker_get_counters(number_, &all);
        return all;
    }

  private:
    bool is_there() const noexcept { return !is_stopped_ && runtime_ == thrum_runtime_id(); }

    unsigned number_ = 0;
    bool is_stopped_ = false;
    std::uint64_t runtime_ = 0;
};

namespace this_thread {

/* The number of the worker that the caller runs on; none on other kernel threads. It may be another one after each wait. */
inline std::optional<unsigned> worker() noexcept {
    const int number = thrum_worker_self();
    return number >= 0 ? std::optional(static_cast<unsigned>(number)) : std::nullopt;
}

} // namespace this_thread

} // namespace thrum

#endif
