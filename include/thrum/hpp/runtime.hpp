// SPDX-License-Identifier: Apache-2.0
/* A runtime: its workers run during the lifetime of this object.
 *
 *     thrum::runtime runtime;             // one worker per CPU
 *     thrum::thread([] { std::puts("hello"); }).join();
 *
 * It is optional: without one the first thread starts the workers, which run until the process ends. With it the caller
 * becomes a ULT too, so that its kernel thread runs others while it waits; and the destructor frees everything.
 *
 * Threads that have not ended when it is destroyed never run again: declare it before objects that own threads. Objects
 * that outlive it throw std::system_error (ESRCH) where they would have to wait, and their destructors do not wait. The
 * same thread must create and destroy it: destroyed by another it says so in a line, and its workers continue. */
#ifndef THRUM_HPP_RUNTIME_HPP
#define THRUM_HPP_RUNTIME_HPP

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>

#include "thrum/hpp/detail/time.hpp"

namespace thrum {

class runtime {
  public:
    /* 0 takes the default: THRUM_WORKERS, or one worker per CPU; THRUM_STACK_SIZE, or 64 KiB. Throws std::system_error
     * with thrum_init's errors. */
    explicit runtime(unsigned workers = 0, std::size_t stack_size = 0)
        : runtime(thrum_config{workers, stack_size, {}, {}}) {}
    /* With all that thrum_init takes; see preempted(). */
    explicit runtime(const thrum_config &config) {
        static constexpr detail::reason reasons[] = {
            {EBUSY, "a runtime is running already: another thrum::runtime's, thrum_init's, or that of the "
                    "first thread"},
            {EINVAL,
             "more than 1024 workers, a stack of more than 1 GiB, or a THRUM_ variable that a line on stderr "
             "explains"},
            {EAGAIN, "no kernel thread, timer or signal for the workers"},
            {ENOMEM, "no memory for the workers"},
        };
        detail::check(thrum_init(&config), "thrum::runtime", reasons);
    }
    runtime(const runtime &) = delete;
    runtime &operator=(const runtime &) = delete;
    ~runtime() {
        if (thrum_fini() == EPERM) [[unlikely]]
            std::fputs(
                "thrum: runtime: destroyed by another thread than its creator, so its workers continue; "
                "destroy it on the thread that created it\n",
                stderr);
    }

    /* A configuration: threads are preempted in this mode, after slices of this length (0: the default). Its other members
     * may be set. */
    static thrum_config preempted(thrum_preempt_mode mode, std::chrono::microseconds slice = {}) noexcept {
        thrum_config config{};
        config.preempt.mode = mode;
        config.preempt.slice = detail::microseconds_of(slice);
        return config;
    }

    unsigned workers() const noexcept { return thrum_workers(); }
};

} // namespace thrum

#endif
