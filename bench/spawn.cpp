// SPDX-License-Identifier: Apache-2.0
//
// Threads per second that N creators make, each creating a std::thread that ends at once, joining it, and so
// on: the Spawn benchmark of Dice and Kogan. plot.py draws their figure 1 from its --json.
#include <thread>

#include "creators.hpp"

namespace {

std::uint64_t create(const std::atomic<bool> &stop) {
    return bench::make_until(stop, [] { std::thread([] {}).join(); });
}

} // namespace

int main(int argc, char **argv) {
    return bench::creators_main(
        argc, argv,
        {"spawn",
         "Threads per second that N creators make and join, without and with the cache.",
         "Threads created and joined by N creators",
         "The paper, 72 CPUs: 5.9 times the rate at 1 creator; 159 to 1400 thousand/s (8.8 times) at 32.",
         create,
         {{0, 1, 20}, {0, 8, 10}, {0, 32, 10}, {1, 1, 5}, {1, 8, 5}, {1, 32, 5}}});
}
