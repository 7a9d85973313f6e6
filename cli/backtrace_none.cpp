// SPDX-License-Identifier: Apache-2.0
//
// backtrace.hpp where a build has no elfutils: nothing is known.
#include "backtrace.hpp"

namespace thrum {

struct Backtracer::State {};

Backtracer::Backtracer(pid_t) {}
Backtracer::Backtracer(const std::string &, ReadWord, std::optional<pid_t>) {}
Backtracer::~Backtracer() = default;

Backtrace Backtracer::from_registers(const std::uint64_t *, std::uint64_t, std::uint64_t, At,
                                     bool *is_whole) const {
    if (is_whole != nullptr)
        *is_whole = false;
    return {};
}

Stopped Backtracer::of_thread(pid_t) const {
    return {};
}

} // namespace thrum
