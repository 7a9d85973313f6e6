// SPDX-License-Identifier: Apache-2.0
//
// Threads that compute for long enough that making them hardly matters, while where they run does: a cache
// that wakes a thread on a busy CPU, where the kernel would have put a new one on a free CPU, is slower than
// no cache. Run by ../never_slower.cpp.
//
//     longjobs calibrate                                  iterations per millisecond of CPU time
//     longjobs joined   THREADS ITERATIONS ROUNDS [OWN]   each round starts THREADS threads, computes OWN
//                                                         iterations itself, and joins them in order
//     longjobs detached ITERATIONS THREADS OWN            computes OWN iterations, starts a detached thread,
//                                                         and so on; at most 64 unfinished ones
//
// A job is a number of iterations of a loop of known instructions, not a time: being interrupted does not
// shorten it, and both halves of a comparison do the same.
#include <semaphore.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <thread>
#include <vector>

#include "program.hpp"

namespace {

constexpr unsigned kInFlight = 64;

std::atomic<std::uint64_t> sum{0};

// A multiplication and an addition, each waiting for the one before.
void compute(unsigned long iterations) {
    std::uint64_t x = 1;
    for (unsigned long i = 0; i < iterations; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(x));
    }
    sum.fetch_add(x, std::memory_order_relaxed);
}

double cpu_ms() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

// The best of twenty, which met the fewest interruptions.
int calibrate() {
    constexpr unsigned long kIterations = 2000000;
    double best = 1e9;
    for (unsigned i = 0; i < 20; i++) {
        const double start = cpu_ms();
        compute(kIterations);
        best = std::min(best, cpu_ms() - start);
    }
    std::printf("%.0f\n", kIterations / best);
    return 0;
}

std::uint64_t joined(unsigned long threads, unsigned long iterations, unsigned long rounds,
                     unsigned long own) {
    std::vector<std::thread> team(threads);
    for (unsigned long round = 0; round < rounds; round++) {
        for (std::thread &thread : team)
            thread = std::thread([=] { compute(iterations); });
        if (own > 0)
            compute(own);
        for (std::thread &thread : team)
            thread.join();
    }
    return threads * rounds;
}

void take(sem_t *places) {
    while (sem_wait(places) != 0) {
    }
}

std::uint64_t detached(unsigned long iterations, unsigned long threads, unsigned long own) {
    static sem_t places;
    sem_init(&places, 0, kInFlight);
    for (unsigned long i = 0; i < threads; i++) {
        compute(own);
        take(&places);
        std::thread([=] {
            compute(iterations);
            sem_post(&places);
        }).detach();
    }
    for (unsigned i = 0; i < kInFlight; i++)
        take(&places);
    return threads;
}

} // namespace

int main(int argc, char **argv) {
    const auto argument = [&](int i) { return program::size_argument(argc, argv, i, 1); };
    if (argc == 2 && std::strcmp(argv[1], "calibrate") == 0)
        return calibrate();
    program::Stopwatch stopwatch;
    std::uint64_t threads = 0;
    if ((argc == 5 || argc == 6) && std::strcmp(argv[1], "joined") == 0) {
        threads = joined(argument(2), argument(3), argument(4), argc == 6 ? argument(5) : 0);
    } else if (argc == 5 && std::strcmp(argv[1], "detached") == 0) {
        threads = detached(argument(2), argument(3), argument(4));
    } else {
        std::fprintf(stderr, "usage: longjobs calibrate | joined THREADS ITERATIONS ROUNDS [OWN] | "
                             "detached ITERATIONS THREADS OWN\n");
        return 2;
    }
    stopwatch.stop();
    stopwatch.report(sum.load(), threads, 0);
    return 0;
}
