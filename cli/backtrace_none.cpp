// SPDX-License-Identifier: Apache-2.0
//
// backtrace.hpp where libdw is not to be had (a build for another processor): nothing is known.
#include "backtrace.hpp"

namespace thrum {

struct Backtracer::State {};

Backtracer::Backtracer(pid_t) {}
Backtracer::~Backtracer() = default;

std::string Backtracer::function(std::uint64_t) const {
    return "";
}

std::vector<std::string> Backtracer::frames(const std::uint64_t *, std::uint64_t, std::uint64_t) const {
    return {};
}

std::vector<std::string> Backtracer::frames_of_thread(pid_t) const {
    return {};
}

} // namespace thrum
