// SPDX-License-Identifier: Apache-2.0
//
// The rows of bench/ult, written once for all runtimes in C++: a file per runtime says what its threads are (Runtime,
// below) and becomes a program. Those in Go and Rust (go/, tokio/) say the same in their language.
//
//     PROGRAM ROW WORKERS SCALE
//
// runs one row on so many workers and prints one line: "ns WALL CPU", both per operation, "bytes N", or "none WHY" when
// the runtime cannot do it. SCALE is 1 for the usual length. What counts as an operation is said at each row.
//
// A Runtime has, as static members:
//     run(workers, body)       calls body() in a thread of its own kind, with so many kernel threads that run such
//     Group<N>                 up to N threads: spawn(fn, arg) as by default, queue(fn, arg) behind what there is,
//                              join() waits for all of them
//     yield()                  if kYields
//     detach(fn, arg)          if kDetaches: no thread waits for it
//     Mutex, Condition         if kWaits: wait(mutex), signal(), broadcast(); Mutex alone if kLocks
//     life(workers)            if kLives: begins and ends the runtime, outside of run()
// and says kFib, kSkynet, kMost: how large fib, skynet and the number
// of threads in flight can be made within a few seconds.
#ifndef THRUM_BENCH_PEERS_WORKLOADS_HPP
#define THRUM_BENCH_PEERS_WORKLOADS_HPP

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace workloads {

using Function = void *(*)(void *);

inline double clock_ns(clockid_t clock) {
    timespec now;
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

inline unsigned workers;
inline double scale;

// --- measuring --------------------------------------------------------------------------------------------

inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

// Calls `unit`, which returns how many operations it did, again and again: once to warm up, then in up to 7 rounds of
// some 15 ms each; the medians over the rounds are what is printed.
template <class Unit>
void measure(Unit unit) {
    constexpr double kRound = 15e6;
    const double end = clock_ns(CLOCK_MONOTONIC) + 10 * kRound * scale;
    std::vector<double> wall, cpu;
    unit();
    do {
        double operations = 0, now = 0;
        const double wall_before = clock_ns(CLOCK_MONOTONIC), cpu_before = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        do {
            operations += unit();
            now = clock_ns(CLOCK_MONOTONIC);
        } while (now - wall_before < kRound * scale);
        wall.push_back((now - wall_before) / operations);
        cpu.push_back((clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_before) / operations);
    } while (wall.size() < 7 && clock_ns(CLOCK_MONOTONIC) < end);
    std::printf("ns %.3f %.3f\n", median(wall), median(cpu));
}

inline void none(const char *why) {
    std::printf("none %s\n", why);
}

// --- what the threads do ----------------------------------------------------------------------------------

inline void *nothing(void *) {
    return nullptr;
}

inline void *compute(void *ns) {
    const double end = clock_ns(CLOCK_MONOTONIC) + static_cast<double>(reinterpret_cast<long>(ns));
    while (clock_ns(CLOCK_MONOTONIC) < end) {
    }
    return nullptr;
}

inline void *number(long value) {
    return reinterpret_cast<void *>(value);
}

// --- spawn and join ---------------------------------------------------------------------------------------

// An operation: one thread made and joined; so many are made before the first is joined.
template <class R, int N>
double batch(Function fn, void *arg, bool queued) {
    static typename R::template Group<N> group;
    for (int i = 0; i < N; i++)
        queued ? group.queue(fn, arg) : group.spawn(fn, arg);
    group.join();
    return N;
}

template <class R>
double one_at_a_time() {
    constexpr int kMany = 1000;
    typename R::template Group<1> group;
    for (int i = 0; i < kMany; i++) {
        group.spawn(nothing, nullptr);
        group.join();
    }
    return kMany;
}

inline std::atomic<long> ended; // by all detached ones

inline void *end(void *) {
    ended.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
}

// 1000 are made, then this waits for their ends by yielding.
template <class R>
double detach() {
    constexpr long kMany = 1000;
    const long before = ended;
    for (long i = 0; i < kMany; i++)
        R::detach(end, nullptr);
    while (ended.load(std::memory_order_acquire) != before + kMany)
        R::yield();
    return kMany;
}

// --- yield ------------------------------------------------------------------------------------------------

constexpr long kYields = 5000;

// From a call depth of its own, so that a switch does not return to where the last one was called from.
template <class R, int Depth>
__attribute__((noinline)) void yield_below(long i) {
    if constexpr (Depth > 0)
        yield_below<R, Depth - 1>(i + Depth);
    else
        R::yield();
    __asm__ volatile("" : : "r"(i) : "memory");
}

template <class R, int Depth>
void *yield_often(void *) {
    for (long i = 0; i < kYields; i++)
        yield_below<R, Depth>(i);
    return nullptr;
}

// An operation: one yield, that is, one switch.
template <class R>
double yield_in(Function one, Function other) {
    typename R::template Group<2> group;
    group.spawn(one, nullptr);
    group.spawn(other, nullptr);
    group.join();
    return 2 * kYields;
}

template <class R>
double yield_two() {
    return yield_in<R>(yield_often<R, 0>, yield_often<R, 0>);
}

template <class R, int Where>
void *yield_there(void *) {
    for (long i = 0; i < kYields; i++) {
        R::yield();
        __asm__ volatile("" : : "r"(i), "i"(Where) : "memory");
    }
    return nullptr;
}

// In two functions: the last call that the CPU knows of is not the one that is returned from.
template <class R>
double yield_in_two() {
    return yield_in<R>(yield_there<R, 0>, yield_there<R, 1>);
}

template <class R>
double yield_four() {
    typename R::template Group<4> group;
    group.spawn(yield_often<R, 0>, nullptr);
    group.spawn(yield_often<R, 2>, nullptr);
    group.spawn(yield_often<R, 4>, nullptr);
    group.spawn(yield_often<R, 7>, nullptr);
    group.join();
    return 4 * kYields;
}

// --- recursion --------------------------------------------------------------------------------------------

struct Fib {
    long n, result;
};

template <class R>
void *fib(void *arg) {
    auto *self = static_cast<Fib *>(arg);
    if (self->n < 2) {
        self->result = self->n;
        return nullptr;
    }
    Fib one{self->n - 1, 0}, two{self->n - 2, 0};
    typename R::template Group<1> group;
    group.spawn(fib<R>, &one);
    fib<R>(&two);
    group.join();
    self->result = one.result + two.result;
    return nullptr;
}

// An operation: one spawn. fib(n) makes fib(n + 1) - 1 of them.
template <class R>
double fib_all() {
    Fib all{R::kFib, 0};
    fib<R>(&all);
    double before = 0, spawns = 1; // fib(0), fib(1); n steps on: fib(n), fib(n + 1)
    for (int i = 0; i < R::kFib; i++)
        spawns += std::exchange(before, spawns);
    if (before != static_cast<double>(all.result))
        std::abort();
    return spawns - 1;
}

struct Skynet {
    long first, size, sum;
};

template <class R>
void *skynet(void *arg) {
    auto *self = static_cast<Skynet *>(arg);
    if (self->size == 1) {
        self->sum = self->first;
        return nullptr;
    }
    std::array<Skynet, 10> parts;
    typename R::template Group<10> group;
    for (long i = 0; i < 10; i++) {
        parts[static_cast<std::size_t>(i)] = {self->first + i * self->size / 10, self->size / 10, 0};
        group.spawn(skynet<R>, &parts[static_cast<std::size_t>(i)]);
    }
    group.join();
    for (const Skynet &part : parts)
        self->sum += part.sum;
    return nullptr;
}

// An operation: one leaf, as the benchmark's own figures have it (there are a tenth as many above the leaves).
template <class R>
double skynet_all() {
    Skynet all{0, R::kSkynet, 0};
    skynet<R>(&all);
    if (all.sum != R::kSkynet * (R::kSkynet - 1) / 2)
        std::abort();
    return static_cast<double>(R::kSkynet);
}

// --- waiting ----------------------------------------------------------------------------------------------

constexpr long kTrips = 2000;

template <class R>
struct Pair {
    typename R::Mutex mutex;
    typename R::Condition turned[2];
    int turn = 0;
};

template <class R, int Me>
void *play(void *arg) {
    auto *pair = static_cast<Pair<R> *>(arg);
    for (long i = 0; i < kTrips; i++) {
        pair->mutex.lock();
        while (pair->turn != Me)
            pair->turned[Me].wait(pair->mutex);
        pair->turn = 1 - Me;
        pair->turned[1 - Me].signal();
        pair->mutex.unlock();
    }
    return nullptr;
}

// An operation: there and back.
template <class R>
double round_trip() {
    Pair<R> pair;
    typename R::template Group<2> group;
    group.spawn(play<R, 0>, &pair);
    group.spawn(play<R, 1>, &pair);
    group.join();
    return kTrips;
}

template <class R>
double lock_and_unlock() {
    constexpr long kMany = 10000;
    static typename R::Mutex mutex;
    for (long i = 0; i < kMany; i++) {
        mutex.lock();
        __asm__ volatile("" : : : "memory");
        mutex.unlock();
    }
    return kMany;
}

template <class R>
struct Contended {
    static constexpr long kTimes = 2000;
    typename R::Mutex mutex;
    long count = 0;
    static void *work(void *arg) {
        auto *self = static_cast<Contended *>(arg);
        for (long i = 0; i < kTimes; i++) {
            self->mutex.lock();
            self->count++;
            self->mutex.unlock();
        }
        return nullptr;
    }
};

// Four threads, one mutex. An operation: locked once.
template <class R>
double contend() {
    Contended<R> contended;
    typename R::template Group<4> group;
    for (int i = 0; i < 4; i++)
        group.queue(Contended<R>::work, &contended);
    group.join();
    if (contended.count != 4 * Contended<R>::kTimes)
        std::abort();
    return 4 * Contended<R>::kTimes;
}

// --- memory -----------------------------------------------------------------------------------------------

inline double resident_bytes() {
    long pages = 0;
    std::FILE *file = std::fopen("/proc/self/statm", "re");
    if (file == nullptr || std::fscanf(file, "%*d %ld", &pages) != 1)
        std::abort();
    std::fclose(file);
    return static_cast<double>(pages) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

template <class R>
struct Blocked {
    typename R::Mutex mutex;
    typename R::Condition go_on;
    bool go = false;
    std::atomic<long> waiting{0};
    static void *wait(void *arg) {
        auto *self = static_cast<Blocked *>(arg);
        self->mutex.lock();
        self->waiting++;
        while (!self->go)
            self->go_on.wait(self->mutex);
        self->mutex.unlock();
        return nullptr;
    }
};

constexpr long kManyBlocked = 100000; // of which one may ask what they have left a second later

template <class R>
void memory() {
    constexpr int kAtMost = 1000000;
    static typename R::template Group<kAtMost> group;
    const long count = std::min<long>(R::kMost, static_cast<long>(100000 * scale));
    Blocked<R> blocked;
    std::memset(static_cast<void *>(&group), 0, sizeof group); // its pages are not the threads'
    const double before = resident_bytes();
    for (long i = 0; i < count; i++)
        group.spawn(Blocked<R>::wait, &blocked);
    while (blocked.waiting != count)
        R::yield();
    const double after = resident_bytes();
    blocked.mutex.lock();
    blocked.go = true;
    blocked.go_on.broadcast();
    blocked.mutex.unlock();
    group.join();
    std::printf("bytes %.0f", (after - before) / static_cast<double>(count));
    if (count >= kManyBlocked) {
        for (const double end = clock_ns(CLOCK_MONOTONIC) + 1e9; clock_ns(CLOCK_MONOTONIC) < end;)
            R::yield();
        std::printf(" left %.0f", resident_bytes() - before);
    }
    std::printf("\n");
}

// --- which --------------------------------------------------------------------------------------------------

template <class R>
bool spawning_row(const char *row) {
    constexpr int kBatch = 1000;
    if (std::strcmp(row, "batched") == 0)
        measure([] { return batch<R, kBatch>(nothing, nullptr, false); });
    else if (std::strcmp(row, "one") == 0)
        measure(one_at_a_time<R>);
    else if (std::strcmp(row, "queued") == 0)
        measure([] { return batch<R, kBatch>(nothing, nullptr, true); });
    else if (std::strcmp(row, "inflight") == 0)
        measure([] { return batch<R, (R::kMost < 50000 ? R::kMost : 50000)>(nothing, nullptr, false); });
    else if (std::strncmp(row, "flat-queued", 11) == 0)
        measure([row] { return batch<R, kBatch>(compute, number(std::atol(row + 11)), true); });
    else if (std::strncmp(row, "flat", 4) == 0)
        measure([row] { return batch<R, kBatch>(compute, number(std::atol(row + 4)), false); });
    else if (std::strcmp(row, "fib") == 0)
        measure(fib_all<R>);
    else if (std::strcmp(row, "skynet") == 0)
        measure(skynet_all<R>);
    else
        return false;
    return true;
}

template <class R>
bool switching_row(const char *row) {
    if (std::strcmp(row, "detached") == 0) {
        if constexpr (R::kDetaches)
            measure(detach<R>);
        else
            none("all tasks are waited for");
    } else if (std::strncmp(row, "yield", 5) == 0) {
        if constexpr (R::kYields)
            measure(row[5] == '4' ? yield_four<R> : row[5] == '2' ? yield_two<R> : yield_in_two<R>);
        else
            none("a task runs to its end");
    } else {
        return false;
    }
    return true;
}

template <class R>
bool waiting_row(const char *row) {
    if (std::strcmp(row, "roundtrip") == 0) {
        if constexpr (R::kWaits)
            measure(round_trip<R>);
        else
            none("a task cannot wait");
    } else if (std::strcmp(row, "lock") == 0) {
        if constexpr (R::kLocks)
            measure(lock_and_unlock<R>);
        else
            none("it has no mutex of its own");
    } else if (std::strcmp(row, "contended") == 0) {
        if constexpr (R::kLocks)
            measure(contend<R>);
        else
            none("it has no mutex of its own");
    } else if (std::strcmp(row, "memory") == 0) {
        if constexpr (R::kWaits)
            memory<R>();
        else
            none("a task cannot wait");
    } else {
        return false;
    }
    return true;
}

inline const char *wanted;

template <class R>
void run_wanted() {
    if (!spawning_row<R>(wanted) && !switching_row<R>(wanted) && !waiting_row<R>(wanted))
        none("unknown row");
}

// `body`: what runs the row that is wanted.
template <class R>
int main_of(int argc, char **argv, void (*body)() = run_wanted<R>) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: %s ROW WORKERS SCALE\n", argv[0]);
        return 2;
    }
    wanted = argv[1];
    workers = static_cast<unsigned>(std::atoi(argv[2]));
    scale = std::atof(argv[3]);
    alarm(120); // a benchmark that hangs has failed
    if (std::strcmp(wanted, "life") != 0)
        R::run(workers, body);
    else if constexpr (R::kLives)
        measure([] {
            R::life(workers);
            return 1.0;
        });
    else
        none("it ends with the program");
    std::fflush(stdout);
    _exit(0); // what a peer does at its end is no row
}

} // namespace workloads

#endif
