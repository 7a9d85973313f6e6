// SPDX-License-Identifier: Apache-2.0
/* The workers, while an object of this class is there.
 *
 *     thrum::runtime runtime;             // as many as there are CPUs
 *     thrum::thread([] { std::puts("hello"); }).join();
 *
 * Not needed: without one they are there from the first thread on until the process ends. With it the caller is a
 * thread of the library too, which waits without its kernel thread having to sleep, and all is given back at its end.
 * */
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
        detail::check(thrum_init(&config), "thrum::runtime");
    }
    runtime(const runtime &) = delete;
    runtime &operator=(const runtime &) = delete;
    ~runtime() { thrum_fini(); }

    unsigned workers() const noexcept { return thrum_workers(); }
};

} // namespace thrum

#endif
