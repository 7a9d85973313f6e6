// SPDX-License-Identifier: Apache-2.0
//
// Random graphs of user-level threads: each runs a program of its own, drawn from the seed, of spawns, joins with and
// without deadlines, detaches, cancellations, ends from within, second lives, moves, yields, sleeps, suspensions, calls that
// block, workers that come and go, all kinds of synchronisation, exceptions and handles that are passed on to strangers, and so do the main thread and a few
// external kernel threads. Whatever a thread can check of that is checked: results, how often each ran, mutual exclusion, what was put into and taken from a
// buffer, its floating-point control, its locals, its stack, its value of a key. A runtime lives for a fraction of
// a second, then comes another with another number of workers, some of them with pools and schedulers.
//
// ult_threads.cpp and ult_objects.cpp have the steps. Runs a few seconds in ctest, as long as asked with
// --seconds N (make soak-ult). The seed of a run is printed, --seed N takes it again: the programs are the same
// then, the interleaving is not.
#include <errno.h>
#include <fenv.h>
#include <sys/syscall.h>
#include <thrum/worker.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>
#include <vector>

#include "ult_stress.h"

bool exceptions = true;
std::atomic<bool> round_over;
Count count;
thrum_key_t key;

namespace {

constexpr int kStallSeconds = 30, kExternals = 2, kDepth = 5, kRoots = 6;
constexpr double kRoundSeconds = 0.3;

unsigned long base_seed;
int only_workers = 0;

double seconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void value_gone(void *value) {
    CHECK(value != nullptr);
}

} // namespace

[[noreturn]] void fail(const char *what, const char *file, int line) {
    std::fprintf(stderr, "stress-ult: %s:%d: %s (seed %lu)\n", file, line, what, base_seed);
    abort();
}

// --- a program --------------------------------------------------------------------------------------------

Program::Program(std::uint64_t seed, int depth)
    : random_(seed), seed_(seed), depth_(depth), self_(thrum_self()) {
    for (std::size_t i = 0; i < locals_.size(); i++)
        locals_[i] = mixed(seed + i);
    static constexpr std::array<int, 4> kModes = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    mode_ = kModes[random_.below(4)];
    fesetround(mode_);
    if (self_ != nullptr && depth > 0)
        CHECK(thrum_key_set(key, this) == 0);
}

Program::~Program() {
    check();
    fesetround(FE_TONEAREST);
    if (self_ != nullptr && depth_ > 0 && random_.one_in(2)) // else the destructor has it
        CHECK(thrum_key_set(key, nullptr) == 0);
}

void Program::check() const {
    CHECK(thrum_self() == self_);
    CHECK(fegetround() == mode_);
    if (self_ != nullptr && depth_ > 0)
        CHECK(thrum_key_get(key) == this);
    for (std::size_t i = 0; i < locals_.size(); i++)
        CHECK(locals_[i] == mixed(seed_ + i));
}

namespace {

__attribute__((noinline)) bool nothing_in_flight() {
    return std::current_exception() == nullptr && std::uncaught_exceptions() == 0;
}

__attribute__((noinline)) void expect_in_flight(std::uint64_t value) {
    try {
        CHECK(std::current_exception() != nullptr);
        throw;
    } catch (std::uint64_t current) {
        CHECK(current == value);
    }
}

} // namespace

void Program::throw_and_catch() {
    const std::uint64_t value = random_.next();
    std::uint64_t caught = 0;
    try {
        throw value;
    } catch (std::uint64_t thrown) {
        caught = thrown;
    }
    CHECK(caught == value);
    CHECK(nothing_in_flight());
}

// Others run, and throw, while this one is in its catch block.
void Program::catch_and_wait() {
    const std::uint64_t value = random_.next();
    try {
        throw value;
    } catch (std::uint64_t) {
        if (random_.one_in(2))
            thrum_yield();
        else
            spawn_and_join();
        expect_in_flight(value);
    }
    CHECK(nothing_in_flight());
}

void Program::step() {
    switch (random_.below(31)) {
    case 0:
    case 1:
    case 2: spawn_and_join(); break;
    case 3: spawn_detached(); break;
    case 4: spawn_and_detach(); break;
    case 5: join_or_let_go(); break;
    case 6: pass_on(); break;
    case 7: spawn_many(); break;
    case 8: spawn_tasklets(); break;
    case 9: suspend_and_resume(); break;
    case 10:
        if (random_.one_in(8))
            nap();
        break;
    case 11:
    case 12: exclude(); break;
    case 13: exchange(); break;
    case 14:
        if (random_.one_in(8))
            wait_for_tick();
        break;
    case 15: read_and_write(); break;
    case 16: take_permit(); break;
    case 17: meet(); break;
    case 18: be_told(); break;
    case 19: pass_through_channel(); break;
    case 20: wait_for_any(); break;
    case 21:
        if (exceptions)
            random_.one_in(2) ? catch_and_wait() : throw_and_catch();
        break;
    case 22:
        compute();
        if (self_ != nullptr)
            CHECK(thrum_join(self_, nullptr) == EDEADLK);
        break;
    case 23:
        if (exceptions)
            spawn_and_cancel();
        break;
    case 24: move(); break;
    case 25: live_twice(); break;
    case 26:
        if (exceptions)
            leave_to_another();
        break;
    case 27:
        if (random_.one_in(16))
            change_workers();
        break;
    case 28:
        if (random_.one_in(16))
            block();
        break;
    case 29: settle(); break;
    default: thrum_yield(); break;
    }
}

// --- a round ----------------------------------------------------------------------------------------------

namespace {

// What main and the external threads do until the time is up: roots of their own.
void be_a_root(std::uint64_t seed) {
    for (std::uint64_t i = 0; !round_over; i++) {
        Program program(mixed(seed + i), kDepth);
        program.run(10);
    }
}

void *root_task(void *seed) {
    be_a_root(reinterpret_cast<std::uintptr_t>(seed));
    return seed;
}

template <class Condition>
void wait_until(Condition condition) {
    while (!condition())
        thrum_sleep(100 * THRUM_US);
}

// A thread that might wait for the others' ticks waits no longer than they last.
struct Externals {
    std::atomic<int> left{kExternals};
    std::atomic<bool> ticking{true};
    std::vector<std::thread> threads;

    explicit Externals(std::uint64_t seed) {
        for (int i = 0; i < kExternals; i++)
            threads.emplace_back([this, seed, i] {
                be_a_root(mixed(seed + 1000) + static_cast<std::uint64_t>(i));
                left--;
            });
        threads.emplace_back([this] {
            while (ticking)
                objects_tick();
            left--;
        });
    }

    void end_ticks() {
        ticking = false;
        wait_until([&] { return left < 0; });
        for (std::thread &thread : threads)
            thread.join();
    }
};

// Where it is not on the worker that it is bound to another runs it meanwhile, as that was stuck.
void be_on(long kernel_thread) {
    thrum_nopreempt_begin();
    CHECK(thrum_worker_self() != 0 || syscall(SYS_gettid) == kernel_thread);
    thrum_nopreempt_end();
}

void be_busy(std::uint64_t seed, double end) {
    const long kernel_thread = syscall(SYS_gettid);
    for (std::uint64_t i = 0; seconds() < end; i++) {
        {
            Program program(mixed(seed + 2000 + i), kDepth);
            program.run(5);
        }
        be_on(kernel_thread);
    }
}

void round(std::uint64_t seed) {
    static constexpr std::array<unsigned, 8> kWorkers = {1, 2, 2, 3, 4, 8, 16, 64};
    const thrum_config config{only_workers > 0 ? static_cast<unsigned>(only_workers)
                                               : kWorkers[Random(seed).below(kWorkers.size())],
                              0,
                              {},
                              {}};
    CHECK(thrum_init(&config) == 0);
    CHECK(thrum_key_create(&key, value_gone) == 0);
    threads_begin(seed);
    round_over = false;
    Externals externals(seed);
    std::array<thrum_t, kRoots> roots;
    for (std::size_t i = 0; i < kRoots; i++)
        CHECK(thrum_spawn(&roots[i], nullptr, root_task,
                          reinterpret_cast<void *>(mixed(seed + i))) ==
              0); // NOLINT(performance-no-int-to-ptr)
    be_busy(seed, seconds() + kRoundSeconds);
    round_over = true;
    for (const thrum_t root : roots)
        CHECK(thrum_join(root, nullptr) == 0);
    wait_until([&] { return externals.left == 0; });
    mailboxes_empty();
    wait_until([] { return count.live == 0 && count.unowned == 0; });
    externals.end_ticks();
    threads_end();
    CHECK(thrum_key_delete(key) == 0);

    CHECK(count.ran == count.spawned);
    objects_check();
    CHECK(thrum_fini() == 0);
    count.rounds++;
}

// Ends the process when nothing happens any more.
void watch() {
    long before = -1;
    for (;;) {
        sleep(kStallSeconds);
        const long now = count.steps + count.rounds;
        if (now == before) {
            std::fprintf(stderr, "stress-ult: %ld live threads, %ld unowned ones, %ld steps, round %ld\n",
                         count.live.load(), count.unowned.load(), count.steps.load(), count.rounds.load());
            fail("nothing has happened for half a minute", __FILE__, __LINE__);
        }
        before = now;
    }
}

unsigned long number_after(int argc, char **argv, int *i, unsigned long least) {
    char *end = nullptr;
    const unsigned long value = *i + 1 < argc ? std::strtoul(argv[*i + 1], &end, 10) : 0;
    if (end == nullptr || *end != '\0' || value < least) {
        std::fprintf(stderr, "stress-ult: %s takes a number from %lu\n", argv[*i], least);
        std::exit(2);
    }
    ++*i;
    return value;
}

} // namespace

int main(int argc, char **argv) {
    double duration = 3;
    base_seed =
        static_cast<unsigned long>(time(nullptr)) * 1000 + static_cast<unsigned long>(getpid()) % 1000;
    for (int i = 1; i < argc; i++) {
        if (std::strcmp(argv[i], "--seed") == 0)
            base_seed = number_after(argc, argv, &i, 0);
        else if (std::strcmp(argv[i], "--seconds") == 0)
            duration = static_cast<double>(number_after(argc, argv, &i, 1));
        else if (std::strcmp(argv[i], "--workers") == 0)
            only_workers = static_cast<int>(number_after(argc, argv, &i, 1));
        else if (std::strcmp(argv[i], "--no-exceptions") == 0)
            exceptions = false;
        else {
            std::fprintf(stderr,
                         "usage: stress-ult [--seed N] [--seconds N] [--workers N] [--no-exceptions]\n");
            return 2;
        }
    }
    std::printf("seed %lu\n", base_seed);
    std::fflush(stdout);
    std::thread(watch).detach();
    const double end = seconds() + duration;
    for (std::uint64_t i = 0; seconds() < end; i++)
        round(mixed(base_seed + i));
    std::printf("%ld rounds, %ld threads (%ld in pools), %ld joined, %ld timeouts, %ld resumed, %ld naps, "
                "%ld cancelled, %ld moved, %ld revived, %ld succeeded, %ld calls that block, %ld workers "
                "come and gone, "
                "%ld steps, %ld exchanges\n",
                count.rounds.load(), count.spawned.load(), count.pooled.load(), count.joined.load(),
                count.timeouts.load(), count.resumed.load(), count.slept.load(), count.cancelled.load(),
                count.moved.load(), count.revived.load(), count.succeeded.load(), count.blocked.load(),
                count.workers.load(), count.steps.load(), count.put.load());
    return 0;
}
