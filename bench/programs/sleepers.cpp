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
//     sleepers idle WORKERS MS
//
// lets a runtime be idle as long, after it has been at work, and prints the CPU time alone.
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

Slept sleep_all(std::size_t count, uint64_t first_ms, uint64_t last_ms) {
    std::vector<Sleeper> sleepers(count);
    std::vector<thrum_t> threads(count);
    const uint64_t start =
        thrum_now() + count * 5000; // 5 µs for each to begin, and to touch its stack for the first time
    for (std::size_t i = 0; i < count; i++)
        sleepers[i].moment = start + first_ms * THRUM_MS + (last_ms - first_ms) * THRUM_MS * i / count;
    const double cpu = cpu_ms();
    check(
        thrum_spawn_many(count, threads.data(), nullptr, sleep_until_then, sleepers.data(), sizeof(Sleeper)));
    for (const thrum_t thread : threads)
        check(thrum_join(thread, nullptr));
    const double used = cpu_ms() - cpu;
    std::vector<double> late;
    for (const Sleeper &sleeper : sleepers)
        late.push_back(static_cast<double>(sleeper.woken - sleeper.moment) / 1e3);
    std::sort(late.begin(), late.end());
    return {late[count / 2], late[count * 99 / 100], late[count - 1], used};
}

// The main thread is a worker: it waits as a thread of the library does.
void be_idle(uint64_t ms) {
    sleep_all(1000, 0, 10);
    thrum_sleep(100 * THRUM_MS);
    const double cpu = cpu_ms();
    thrum_sleep(ms * THRUM_MS);
    std::printf("%.3f\n", cpu_ms() - cpu);
}

} // namespace

int main(int argc, char **argv) {
    const bool sleeps = argc == 6 && std::strcmp(argv[1], "sleep") == 0;
    if (!sleeps && !(argc == 4 && std::strcmp(argv[1], "idle") == 0)) {
        std::fputs("usage: sleepers sleep WORKERS THREADS FIRST_MS LAST_MS | sleepers idle WORKERS MS\n",
                   stderr);
        return 2;
    }
    const auto number = [argv](int i) { return std::strtoul(argv[i], nullptr, 10); };
    const thrum_config config{static_cast<unsigned>(number(2)), 0, {}, {}};
    check(thrum_init(&config));
    if (sleeps) {
        const Slept slept = sleep_all(number(3), number(4), number(5));
        std::printf("%.1f %.1f %.1f %.3f\n", slept.median_us, slept.percentile_us, slept.most_us,
                    slept.cpu_ms);
    } else {
        be_idle(number(3));
    }
    return thrum_fini();
}
