// SPDX-License-Identifier: Apache-2.0
#include "distance.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBatches = 100, kTurns = 100;
constexpr auto kLimit = std::chrono::milliseconds(200);

struct Line {
    alignas(128) std::atomic<int> turn{0};
    alignas(128) std::atomic<bool> over{false};
};

bool pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

// Waits until it is `turn`; false: it takes too long.
bool await(Line *line, int turn) {
    while (line->turn.load(std::memory_order_acquire) != turn)
        if (line->over.load(std::memory_order_relaxed))
            return false;
    return true;
}

void answer(Line *line, int cpu) {
    pin(cpu);
    for (int i = 1; await(line, i); i += 2)
        line->turn.store(i + 1, std::memory_order_release);
}

// The least of some batches: other work in between, or an interrupt, makes one longer.
double ask(Line *line, int cpu) {
    if (!pin(cpu))
        return 0;
    double least = 0;
    const Clock::time_point begin = Clock::now();
    int turn = 0;
    for (int batch = 0; batch < kBatches && Clock::now() - begin < kLimit; batch++) {
        const Clock::time_point start = Clock::now();
        for (int i = 0; i < kTurns; i++, turn += 2) {
            line->turn.store(turn + 1, std::memory_order_release);
            if (!await(line, turn + 2))
                return 0;
        }
        const double ns = std::chrono::duration<double, std::nano>(Clock::now() - start).count() / kTurns;
        least = batch == 0 ? ns : std::min(least, ns);
    }
    return least;
}

} // namespace

double cpu_distance() {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) < 2)
        return 0;
    int first = 0, last = CPU_SETSIZE - 1;
    while (!CPU_ISSET(first, &set))
        first++;
    while (!CPU_ISSET(last, &set))
        last--;
    Line line;
    double ns = 0;
    std::thread other(answer, &line, last);
    std::thread one([&] {
        ns = ask(&line, first);
        line.over = true;
    });
    one.join();
    other.join();
    return ns;
}

} // namespace bench
