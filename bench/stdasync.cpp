// SPDX-License-Identifier: Apache-2.0
//
// Like spawn, with std::async(std::launch::async) and the future's get() in place of a std::thread and its
// join: the stdasync benchmark of Dice and Kogan.
#include <future>

#include "creators.hpp"

namespace {

std::uint64_t create(const std::atomic<bool> &stop) {
    return bench::make_until(stop, [] { std::async(std::launch::async, [] {}).get(); });
}

} // namespace

int main(int argc, char **argv) {
    return bench::creators_main(
        argc, argv,
        {"stdasync",
         "Calls of std::async per second that N creators make and wait for, without and with the cache.",
         "Calls of std::async(launch::async) made and waited for by N creators",
         "The paper, 72 CPUs: 133 to 1355 thousand/s (10.2 times) at 32 creators.",
         create,
         {{0, 1, 10}, {0, 2, 10}, {0, 8, 10}, {0, 32, 10}}});
}
