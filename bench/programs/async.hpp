// SPDX-License-Identifier: Apache-2.0
//
// What the std::async programs of this folder share. They are written from the public descriptions of the
// algorithms that Inncabs (Thoman, Gschwandtner, Fahringer 2015) is made of; no code of it is in them.
//
//     sort [SIZE...] [serial]
//
// With "serial" the same program makes no thread: every call is deferred until its result is asked for. The
// checksum has to be the same.
#ifndef THRUM_BENCH_ASYNC_HPP
#define THRUM_BENCH_ASYNC_HPP

#include <atomic>
#include <future>
#include <system_error>
#include <vector>

#include "program.hpp"

namespace program {

inline bool serial = false;
inline std::atomic<std::uint64_t> threads{0}, deferred{0};

// A thread for `function`; where none can be created, the consumer of the result computes it, as programs do that
// rely on std::launch::async and have to run anyway.
template <class Function>
auto start(const Function &function) {
    if (!serial) {
        try {
            auto future = std::async(std::launch::async, function);
            threads.fetch_add(1, std::memory_order_relaxed);
            return future;
        } catch (const std::system_error &) {
            deferred.fetch_add(1, std::memory_order_relaxed);
        }
    }
    return std::async(std::launch::deferred, function);
}

inline void wait_for(std::vector<std::future<void>> &futures) {
    for (std::future<void> &future : futures)
        future.get();
    futures.clear();
}

// Takes "serial" off the end of the arguments, and returns how many are left.
inline int arguments_of(int argc, char **argv) {
    serial = argc > 1 && std::strcmp(argv[argc - 1], "serial") == 0;
    return argc - (serial ? 1 : 0);
}

// A result that is wrong in itself, whatever the serial program says.
inline void require(bool right, const char *what) {
    if (right)
        return;
    std::fprintf(stderr, "wrong result: %s\n", what);
    std::exit(1);
}

} // namespace program

#endif
