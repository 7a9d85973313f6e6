// SPDX-License-Identifier: Apache-2.0
/* The workers, while an object of this class is there.
 *
 *     thrum::runtime runtime;             // as many as there are CPUs
 *     thrum::thread([] { std::puts("hello"); }).join();
 *
 * Not needed: without one they are there from the first thread on until the process ends. With it the caller is a
 * thread of the library too, which waits without its kernel thread having to sleep, and all is given back at its end.
 *
 * Its end is that of its threads, those among them that have not ended: declare it before what has threads. Objects that
 * outlive it throw std::system_error (ESRCH) where they would have to wait, and do not wait at their own ends. It is made
 * and destroyed by the same kernel thread. */
#ifndef THRUM_HPP_RUNTIME_HPP
#define THRUM_HPP_RUNTIME_HPP

#include <cstddef>

#include "thrum/hpp/detail/time.hpp"

namespace thrum {

class runtime {
  public:
    /* 0: THRUM_WORKERS, or as many as there are CPUs; THRUM_STACK_SIZE, or 64 KiB. Throws std::system_error with
     * thrum_init's errors. */
    explicit runtime(unsigned workers = 0, std::size_t stack_size = 0) {
        const thrum_config config{workers, stack_size, {}, {}};
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
    ~runtime() { thrum_fini(); }

    unsigned workers() const noexcept { return thrum_workers(); }
};

} // namespace thrum

#endif
