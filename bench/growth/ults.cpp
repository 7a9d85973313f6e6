// SPDX-License-Identifier: Apache-2.0
//
// What libthrum's operations cost with so many threads at a time: bench/growth runs this, a process a measurement.
//
//     ults ROW WORKERS COUNT SCALE
//
// prints lines of a name and a number: ns for each operation, of wall and of CPU time; bytes; shares from 0 to 1; or "none
// WHY". SCALE is 1 for the usual length. What counts as an operation is said at each row.
#include <thrum/thrum.h>

#include <chrono>
#include <cstdint>
#include <thread>

#include "../peers/workloads.hpp"

namespace {

using workloads::clock_ns;

std::size_t count;

void check(int error) {
    if (error != 0) {
        std::fprintf(stderr, "ults: %s\n", std::strerror(error));
        std::exit(1);
    }
}

// From now on, or from begin().
class Stopwatch {
  public:
    Stopwatch() { begin(); }
    void begin() {
        wall_ = clock_ns(CLOCK_MONOTONIC);
        cpu_ = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    }
    double wall() const { return clock_ns(CLOCK_MONOTONIC) - wall_; }
    double cpu() const { return clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_; }
    void print(const char *what, double operations) const {
        const double used = cpu();
        std::printf("%s_wall %.3f\n%s_cpu %.3f\n", what, wall() / operations, what, used / operations);
    }

  private:
    double wall_, cpu_;
};

double least_ns() {
    return 50e6 * workloads::scale;
}

std::vector<thrum_t> &threads() {
    static std::vector<thrum_t> all(count);
    return all;
}

void join_all() {
    for (const thrum_t thread : threads())
        check(thrum_join(thread, nullptr));
}

// --- spawn and join: an operation is a thread made and joined ---------------------------------------------

void batch(unsigned flags) {
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    check(thrum_attr_set_flags(&attr, flags));
    const auto once = [&attr] {
        for (thrum_t &thread : threads())
            check(thrum_spawn(&thread, &attr, workloads::nothing, nullptr));
        join_all();
    };
    once();
    double done = 0;
    const Stopwatch watch;
    do {
        for (std::size_t i = 0; i < 1000; i += count, done += static_cast<double>(count))
            once();
    } while (watch.wall() < least_ns());
    watch.print("ns", done);
}

// --- yield: an operation is one yield ---------------------------------------------------------------------

std::atomic<bool> counts, stop;

std::vector<std::uint32_t> turns_of;

// Its turns are told at its end: what it writes meanwhile is on its own stack, as a thread's that does something.
void *take_turns(void *number) {
    std::uint32_t turns = 0;
    while (!stop.load(std::memory_order_relaxed)) {
        turns += counts.load(std::memory_order_relaxed);
        thrum_yield();
    }
    turns_of[reinterpret_cast<std::size_t>(number)] = turns;
    return nullptr;
}

// CPU time of the workers: all but the caller's, a kernel thread.
double cpu_of_others() {
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID) - clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

// Until they have had so much: on a busy machine that is longer.
void wait_for_work(double ns) {
    for (const double before = cpu_of_others(); cpu_of_others() - before < ns;)
        std::this_thread::sleep_for(std::chrono::microseconds(200));
}

// A kernel thread measures: of the yielding ones each may be away for long.
void yield() {
    double wall = 0, cpu = 0;
    turns_of.assign(count, 0);
    for (std::size_t i = 1; i < count; i++)
        check(thrum_spawn(&threads()[i], nullptr, take_turns, workloads::number(static_cast<long>(i))));
    std::thread observer([&wall, &cpu] {
        wait_for_work(least_ns() / 4); // all that are in the ring have been on the CPU
        const Stopwatch watch;
        const double before = cpu_of_others();
        counts.store(true);
        wait_for_work(least_ns());
        counts.store(false);
        wall = watch.wall();
        cpu = cpu_of_others() - before;
        stop.store(true);
    });
    take_turns(workloads::number(0));
    observer.join();
    for (std::size_t i = 1; i < count; i++)
        check(thrum_join(threads()[i], nullptr));
    double all = 0, served = 0;
    for (const std::uint32_t turns : turns_of) {
        all += turns;
        served += turns != 0;
    }
    std::printf("ns_wall %.3f\nns_cpu %.3f\nserved %.6f\n", wall / all, cpu / all,
                served / static_cast<double>(count));
}

// --- waiting: an operation is a thread, from its spawn until it waits, and from then until it is joined ------

struct Gate {
    thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
    thrum_cond_t opened = THRUM_COND_INITIALIZER;
    bool open = false;
    std::atomic<std::size_t> waiting{0};
};

void *wait_at(void *arg) {
    auto *gate = static_cast<Gate *>(arg);
    thrum_mutex_lock(&gate->mutex);
    gate->waiting++;
    while (!gate->open)
        thrum_cond_wait(&gate->opened, &gate->mutex);
    thrum_mutex_unlock(&gate->mutex);
    return nullptr;
}

template <class Wake>
void let_wait(thrum_t *into, void *(*fn)(void *), void *arg, const std::atomic<std::size_t> &waiting,
              Wake wake) {
    std::fill(into, into + count, nullptr); // its pages are not the threads'
    const double before = workloads::resident_bytes();
    Stopwatch watch;
    for (std::size_t i = 0; i < count; i++)
        check(thrum_spawn(&into[i], nullptr, fn, arg));
    while (waiting != count)
        thrum_yield();
    watch.print("begin", static_cast<double>(count));
    std::printf("bytes %.1f\n", (workloads::resident_bytes() - before) / static_cast<double>(count));
    wake(&watch);
    join_all();
    watch.print("wake", static_cast<double>(count));
}

void blocked() {
    Gate gate;
    let_wait(threads().data(), wait_at, &gate, gate.waiting, [&gate](Stopwatch *watch) {
        watch->begin();
        thrum_mutex_lock(&gate.mutex);
        gate.open = true;
        thrum_cond_broadcast(&gate.opened);
        thrum_mutex_unlock(&gate.mutex);
    });
}

// They sleep until the same moment, which is far enough away for all to have come to it.
struct Alarm {
    std::uint64_t moment;
    std::atomic<std::size_t> waiting{0};
};

void *sleep_until(void *arg) {
    auto *alarm = static_cast<Alarm *>(arg);
    alarm->waiting++;
    thrum_sleep_until(alarm->moment);
    return nullptr;
}

void asleep() {
    constexpr double kToBegin = 8e3; // ns for each of them, and 0.3 s
    Alarm alarm;
    alarm.moment =
        static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC) + 3e8 + kToBegin * static_cast<double>(count));
    let_wait(threads().data(), sleep_until, &alarm, alarm.waiting, [&alarm](Stopwatch *watch) {
        if (clock_ns(CLOCK_MONOTONIC) > static_cast<double>(alarm.moment))
            std::printf("none some woke up before all slept: the machine is too busy\n");
        watch->begin(); // of CPU time: there is none until the moment has come
        thrum_sleep_until(alarm.moment);
    });
}

// --- which ------------------------------------------------------------------------------------------------

const char *row;

void *run(void *) {
    if (std::strcmp(row, "batched") == 0)
        batch(0);
    else if (std::strcmp(row, "queued") == 0)
        batch(THRUM_SPAWN_QUEUED);
    else if (std::strcmp(row, "yield") == 0)
        yield();
    else if (std::strcmp(row, "blocked") == 0)
        blocked();
    else if (std::strcmp(row, "asleep") == 0)
        asleep();
    return nullptr;
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 5) {
        std::fprintf(stderr, "usage: %s ROW WORKERS COUNT SCALE\n", argv[0]);
        return 2;
    }
    row = argv[1];
    count = std::strtoul(argv[3], nullptr, 10);
    workloads::scale = std::atof(argv[4]);
    alarm(300); // a benchmark that hangs has failed
    const thrum_config config{static_cast<unsigned>(std::atoi(argv[2])), 0, {}, {}};
    thrum_t thread;
    check(thrum_init(&config));
    check(thrum_spawn(&thread, nullptr, run, nullptr));
    check(thrum_join(thread, nullptr));
    std::fflush(stdout);
    _exit(0); // giving back a million stacks is no row
}
