// SPDX-License-Identifier: Apache-2.0
//
// Detached threads per second: like spawn, but without joins. A creator has at most kInFlight unfinished threads, or
// else it would measure how many the machine holds.
#include <semaphore.h>

#include <system_error>
#include <thread>

#include "creators.hpp"

namespace {

constexpr unsigned kInFlight = 64;

// A thread that has posted still needs a while to end. Where the kernel has too many of those, the creator
// lets them continue.
void detach_one(sem_t *places) {
    for (;;) {
        try {
            std::thread([places] { sem_post(places); }).detach();
            return;
        } catch (const std::system_error &) {
            std::this_thread::yield();
        }
    }
}

void take(sem_t *places) {
    while (sem_wait(places) != 0) {
    }
}

std::uint64_t create(const std::atomic<bool> &stop) {
    sem_t places;
    sem_init(&places, 0, kInFlight);
    const std::uint64_t threads = bench::make_until(stop, [&places] {
        take(&places);
        detach_one(&places);
    });
    for (unsigned i = 0; i < kInFlight; i++)
        take(&places);
    sem_destroy(&places);
    return threads;
}

} // namespace

int main(int argc, char **argv) {
    return bench::creators_main(
        argc, argv,
        {"create_detach", "Detached threads per second that N creators make, without and with the cache.",
         "Detached threads made by N creators, each having at most 64 unfinished ones", "", create});
}
