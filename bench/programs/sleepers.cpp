// SPDX-License-Identifier: Apache-2.0
//
// How late threads of libthrum come out of a sleep.
//
//     sleepers sleep WORKERS THREADS FIRST_MS LAST_MS
//
// has so many threads sleep until moments that are spread evenly from FIRST_MS to LAST_MS after the last one has begun,
// and prints one line: the median of the lateness, its 99th percentile and its maximum in µs, and what CPU time the
// process used meanwhile, in ms.
//
//     sleepers kernel THREADS FIRST_MS LAST_MS
//
// does the same with kernel threads.
//
//     sleepers idle WORKERS MS
//
// lets a runtime be idle as long, after it has been at work, and prints the CPU time alone.
#include <pthread.h>
#include <thrum/thrum.h>
#include <thrum/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

void check(int error) {
    if (error != 0) {
        std::fprintf(stderr, "sleepers: %s\n", std::strerror(error));
        std::exit(1);
    }
}

double cpu_ms() {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

struct Sleeper {
    uint64_t moment, woken;
};

void *sleep_until_then(void *arg) {
    auto *self = static_cast<Sleeper *>(arg);
    thrum_sleep_until(self->moment);
    self->woken = thrum_now();
    return nullptr;
}

struct Slept {
    double median_us, percentile_us, most_us, cpu_ms;
};

void *kernel_thread_sleeps(void *arg) {
    auto *self = static_cast<Sleeper *>(arg);
    const timespec moment = {static_cast<time_t>(self->moment / THRUM_S),
                             static_cast<long>(self->moment % THRUM_S)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &moment, nullptr) != 0) {
    }
    self->woken = thrum_now();
    return nullptr;
}

void run_threads(std::vector<Sleeper> *sleepers) {
    std::vector<thrum_t> threads(sleepers->size());
    check(thrum_spawn_many(threads.size(), threads.data(), nullptr, sleep_until_then, sleepers->data(),
                           sizeof(Sleeper)));
    for (const thrum_t thread : threads)
        check(thrum_join(thread, nullptr));
}

void run_kernel_threads(std::vector<Sleeper> *sleepers) {
    std::vector<pthread_t> threads(sleepers->size());
    for (std::size_t i = 0; i < threads.size(); i++)
        check(pthread_create(&threads[i], nullptr, kernel_thread_sleeps, &(*sleepers)[i]));
    for (const pthread_t thread : threads)
        check(pthread_join(thread, nullptr));
}

Slept sleep_all(std::size_t count, uint64_t first_ms, uint64_t last_ms, uint64_t to_begin_ns,
                void (*run)(std::vector<Sleeper> *)) {
    std::vector<Sleeper> sleepers(count);
    const uint64_t start = thrum_now() + count * to_begin_ns;
    for (std::size_t i = 0; i < count; i++)
        sleepers[i].moment = start + first_ms * THRUM_MS + (last_ms - first_ms) * THRUM_MS * i / count;
    const double cpu = cpu_ms();
    run(&sleepers);
    const double used = cpu_ms() - cpu;
    std::vector<double> late;
    for (const Sleeper &sleeper : sleepers)
        late.push_back(static_cast<double>(sleeper.woken - sleeper.moment) / 1e3);
    std::sort(late.begin(), late.end());
    return {late[count / 2], late[count * 99 / 100], late[count - 1], used};
}

// For each thread to begin, and to touch its stack for the first time.
constexpr uint64_t kToBegin = 5000, kForKernelThread = 50000;

void print(const Slept &slept) {
    std::printf("%.1f %.1f %.1f %.3f\n", slept.median_us, slept.percentile_us, slept.most_us, slept.cpu_ms);
}

// The main thread is a worker: it waits as a thread of the library does.
void be_idle(uint64_t ms) {
    sleep_all(1000, 0, 10, kToBegin, run_threads);
    thrum_sleep(100 * THRUM_MS);
    const double cpu = cpu_ms();
    thrum_sleep(ms * THRUM_MS);
    std::printf("%.3f\n", cpu_ms() - cpu);
}

} // namespace

int main(int argc, char **argv) {
    const auto asks = [argc, argv](const char *what, int count) {
        return argc == count && std::strcmp(argv[1], what) == 0;
    };
    const auto number = [argv](int i) { return std::strtoul(argv[i], nullptr, 10); };
    if (asks("kernel", 5)) {
        print(sleep_all(number(2), number(3), number(4), kForKernelThread, run_kernel_threads));
        return 0;
    }
    if (!asks("sleep", 6) && !asks("idle", 4)) {
        std::fputs(
            "usage: sleepers sleep WORKERS THREADS FIRST_MS LAST_MS | sleepers kernel THREADS FIRST_MS "
            "LAST_MS | sleepers idle WORKERS MS\n",
            stderr);
        return 2;
    }
    const thrum_config config{static_cast<unsigned>(number(2)), 0, {}, {}};
    check(thrum_init(&config));
    if (argc == 6)
        print(sleep_all(number(3), number(4), number(5), kToBegin, run_threads));
    else
        be_idle(number(3));
    return thrum_fini();
}
