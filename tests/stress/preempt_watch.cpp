// SPDX-License-Identifier: Apache-2.0
//
// See preempt_watch.h. Its seconds are those that it has itself slept through: a process that is stopped does not hang.
#include "preempt_watch.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace {

constexpr std::uint64_t kLook = 2 * THRUM_MS;
constexpr unsigned kToldAtMost = 60;

std::mutex mutex; // never taken by an actor
const std::deque<Actor> *watched = nullptr;
std::uint64_t end_of_round = 0, steps_before = 0, idle = 0;

std::uint64_t all_steps() {
    std::uint64_t steps = 0;
    for (const Actor &actor : *watched)
        steps += actor.steps.load(std::memory_order_relaxed) + actor.ended;
    return steps;
}

double cpu_seconds() {
    timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

[[noreturn]] void tell_and_abort() {
    unsigned told = 0, ended = 0;
    for (const Actor &actor : *watched) {
        if (actor.ended) {
            ended++;
        } else if (told++ < kToldAtMost) {
            char line[160];
            const int length =
                std::snprintf(line, sizeof line, "actor %u: %s, in %s, %llu steps\n", actor.number,
                              actor.torture.load(), name_of(static_cast<Phase>(actor.phase.load())),
                              static_cast<unsigned long long>(actor.steps.load()));
            (void)!write(STDERR_FILENO, line, static_cast<std::size_t>(length));
        }
    }
    thrum_dump(STDERR_FILENO, kToldAtMost);
    fail(__FILE__, __LINE__,
         "hangs: no step for %.0f s; %u of %zu actors have ended; over is %d; %.1f s of CPU used",
         options.stall, ended, watched->size(), static_cast<int>(over.load()), cpu_seconds());
}

void look() {
    const std::lock_guard lock(mutex);
    if (watched == nullptr)
        return;
    if (thrum_now() >= end_of_round)
        over = true;
    const std::uint64_t steps = all_steps();
    idle = steps == steps_before ? idle + kLook : 0;
    steps_before = steps;
    if (static_cast<double>(idle) * 1e-9 >= options.stall)
        tell_and_abort();
}

void watch() {
    for (;;) {
        const timespec moment = {0, static_cast<long>(kLook)};
        nanosleep(&moment, nullptr);
        look();
    }
}

} // namespace

void watch_start() {
    sigset_t all, before;
    sigfillset(&all);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &all, &before), 0);
    std::thread(watch).detach();
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
}

void watch_round(const std::deque<Actor> &actors, double seconds) {
    const std::lock_guard lock(mutex);
    end_of_round = thrum_now() + static_cast<std::uint64_t>(seconds * 1e9);
    watched = &actors;
    steps_before = idle = 0;
}

void watch_nothing() {
    const std::lock_guard lock(mutex);
    watched = nullptr;
}
