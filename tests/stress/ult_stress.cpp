// SPDX-License-Identifier: Apache-2.0
//
// Random graphs of user-level threads: each runs a program of its own, drawn from the seed, of spawns, joins, detaches,
// yields, mutexes, condition variables, exceptions and handles that are passed on to strangers, and so do the main
// thread and a few external kernel threads. Whatever a thread can check of that is checked: results, how often each
// ran, mutual exclusion, what was put into and taken from a buffer, its floating-point control, its locals, its stack.
// A runtime lives for a fraction of a second, then comes another with another number of workers.
//
// Runs a few seconds in ctest, as long as asked with --seconds N (make soak). The seed of a run is printed, --seed N
// takes it again: the programs are the same then, the interleaving is not.
#include <errno.h>
#include <fenv.h>
#include <sched.h>
#include <sys/syscall.h>
#include <thrum/thrum.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <random>
#include <thread>
#include <vector>

namespace {

constexpr int kStallSeconds = 30;
constexpr int kMutexes = 6, kMailboxes = 16, kExternals = 2, kBufferSize = 8, kDepth = 5, kRoots = 6;
constexpr long kLiveLimit = 20000;
constexpr double kRoundSeconds = 0.3;

unsigned long base_seed;
int only_workers = 0;
bool exceptions = true;

struct Count {
    std::atomic<long> spawned{0}, ran{0}, joined{0}, detached{0}, live{0}, steps{0}, put{0}, taken{0},
        rounds{0};
} count;

[[noreturn]] void fail(const char *what, int line) {
    std::fprintf(stderr, "ult_stress: line %d: %s (seed %lu)\n", line, what, base_seed);
    abort();
}

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            fail("not so: " #condition, __LINE__);                                                           \
    } while (0)

double seconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::uint64_t mixed(std::uint64_t x) { // splitmix64
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    unsigned below(unsigned limit) { return static_cast<unsigned>((state_ = mixed(state_)) >> 33) % limit; }
    bool one_in(unsigned n) { return below(n) == 0; }
    std::uint64_t next() { return state_ = mixed(state_); }

  private:
    std::uint64_t state_;
};

// --- what they share --------------------------------------------------------------------------------------

std::atomic<bool> round_over;

// Plain variables under a mutex: two at once would be seen.
struct Guarded {
    thrum_mutex_t mutex = THRUM_MUTEX_INIT;
    long first = 0, second = 0;
    const void *owner = nullptr;
};
std::array<Guarded, kMutexes> guarded;

// Everybody puts one thing in and then takes one out, so that nobody waits for ever.
struct Buffer {
    thrum_mutex_t mutex = THRUM_MUTEX_INIT;
    thrum_cond_t not_full = THRUM_COND_INIT, not_empty = THRUM_COND_INIT;
    std::array<std::uint64_t, kBufferSize> items{};
    int held = 0, at = 0;
    std::uint64_t sum_in = 0, sum_out = 0;
} buffer;

// Waited for with a broadcast.
struct Ticker {
    thrum_mutex_t mutex = THRUM_MUTEX_INIT;
    thrum_cond_t ticked = THRUM_COND_INIT;
    long ticks = 0;
    std::atomic<bool> over{false};
} ticker;

// A unit and what it will say; made by its spawner, whoever joins it.
struct Task {
    std::uint64_t seed;
    int depth;
    bool counted; // detached: nobody reads a result
    std::atomic<int> runs{0};
    thrum_t handle = nullptr;
};

std::array<std::atomic<Task *>, kMailboxes> mailboxes;

std::uint64_t result_of(std::uint64_t seed) {
    return mixed(seed ^ 0x7e57) | 1;
}

// --- steps ------------------------------------------------------------------------------------------------

class Program {
  public:
    Program(std::uint64_t seed, int depth) : random_(seed), seed_(seed), depth_(depth), self_(thrum_self()) {
        for (std::size_t i = 0; i < locals_.size(); i++)
            locals_[i] = mixed(seed + i);
        static constexpr std::array<int, 4> kModes = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
        mode_ = kModes[random_.below(4)];
        fesetround(mode_);
    }
    ~Program() {
        check();
        fesetround(FE_TONEAREST);
    }
    Program(const Program &) = delete;

    void run(int steps) {
        for (int i = 0; i < steps; i++) {
            step();
            check();
            count.steps++;
        }
    }

  private:
    void step();
    void spawn_and_join();
    void spawn_detached();
    void pass_on();
    void exclude();
    void exchange();
    void wait_for_tick();
    void throw_and_catch();
    void catch_and_wait();
    void compute() {
        for (unsigned i = random_.below(2000); i > 0; i--)
            __asm__ volatile("");
    }
    void check() const;
    Task *spawn(bool detach, int depth);
    void finish(Task *task);

    Random random_;
    std::uint64_t seed_;
    int depth_;
    int mode_;
    thrum_t self_;
    std::array<std::uint64_t, 16> locals_;
};

void Program::check() const {
    CHECK(thrum_self() == self_);
    CHECK(fegetround() == mode_);
    for (std::size_t i = 0; i < locals_.size(); i++)
        CHECK(locals_[i] == mixed(seed_ + i));
}

void *run_task(void *arg) {
    auto *task = static_cast<Task *>(arg);
    const std::uint64_t seed = task->seed;
    CHECK(task->runs.fetch_add(1) == 0);
    count.ran++;
    {
        Program program(seed, task->depth);
        program.run(task->depth > 0 ? 4 : 2);
    }
    count.live--;
    if (task->counted) {
        delete task;
        count.detached--;
    }
    return reinterpret_cast<void *>(result_of(seed)); // NOLINT(performance-no-int-to-ptr)
}

Task *Program::spawn(bool detach, int depth) {
    auto *task = new Task;
    task->seed = random_.next();
    task->depth = depth;
    task->counted = detach;
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    CHECK(thrum_attr_set_flags(&attr, random_.one_in(3) ? THRUM_SPAWN_QUEUED : 0) == 0);
    CHECK(thrum_attr_set_stack_size(&attr, std::size_t{1} << (random_.one_in(8) ? 18 : 16)) == 0);
    count.spawned++;
    count.live++;
    if (detach)
        count.detached++;
    fesetround(FE_TONEAREST); // what a new one begins with is not what is asked here
    CHECK(thrum_spawn(detach ? nullptr : &task->handle, random_.one_in(2) ? nullptr : &attr, run_task,
                      task) == 0);
    fesetround(mode_);
    return task;
}

void Program::finish(Task *task) {
    void *result = nullptr;
    CHECK(thrum_join(task->handle, &result) == 0);
    CHECK(reinterpret_cast<std::uintptr_t>(result) == result_of(task->seed));
    CHECK(task->runs == 1);
    count.joined++;
    delete task;
}

void Program::spawn_and_join() {
    if (depth_ == 0 || count.live > kLiveLimit)
        return;
    std::vector<Task *> tasks(1 + random_.below(5));
    for (Task *&task : tasks)
        task = spawn(false, depth_ - 1);
    while (!tasks.empty()) { // in any order
        const unsigned i = random_.below(static_cast<unsigned>(tasks.size()));
        std::swap(tasks[i], tasks.back());
        finish(tasks.back());
        tasks.pop_back();
    }
}

void Program::spawn_detached() {
    if (depth_ > 0 && count.live <= kLiveLimit)
        spawn(true, depth_ - 1);
}

// A child goes into a mailbox; what was there before is somebody else's child, and ours to see off. Those in
// mailboxes join nobody themselves, so that no two wait for each other.
void Program::pass_on() {
    if (depth_ == 0)
        return;
    Task *mine = count.live <= kLiveLimit && !round_over ? spawn(false, 0) : nullptr;
    Task *theirs = mailboxes[random_.below(kMailboxes)].exchange(mine);
    if (theirs != nullptr)
        finish(theirs);
}

void Program::exclude() {
    Guarded &one = guarded[random_.below(kMutexes)];
    if (random_.one_in(4)) {
        const int error = thrum_mutex_try_lock(&one.mutex);
        CHECK(error == 0 || error == EBUSY);
        if (error != 0)
            return;
    } else {
        thrum_mutex_lock(&one.mutex);
    }
    CHECK(one.owner == nullptr && one.first == one.second);
    one.owner = this;
    one.first++;
    if (random_.one_in(8))
        thrum_yield();
    CHECK(one.owner == this && one.first == one.second + 1);
    one.second++;
    one.owner = nullptr;
    thrum_mutex_unlock(&one.mutex);
}

void Program::exchange() {
    const std::uint64_t item = random_.next();
    thrum_mutex_lock(&buffer.mutex);
    while (buffer.held == kBufferSize)
        thrum_cond_wait(&buffer.not_full, &buffer.mutex);
    buffer.items[static_cast<std::size_t>((buffer.at + buffer.held++) % kBufferSize)] = item;
    buffer.sum_in += item;
    thrum_cond_signal(&buffer.not_empty);
    thrum_mutex_unlock(&buffer.mutex);
    count.put++;
    if (random_.one_in(3))
        thrum_yield();
    thrum_mutex_lock(&buffer.mutex);
    while (buffer.held == 0)
        thrum_cond_wait(&buffer.not_empty, &buffer.mutex);
    buffer.sum_out += buffer.items[static_cast<std::size_t>(buffer.at)];
    buffer.at = (buffer.at + 1) % kBufferSize;
    buffer.held--;
    thrum_mutex_unlock(&buffer.mutex);
    thrum_cond_signal(&buffer.not_full); // without the mutex, for a change
    count.taken++;
}

void Program::wait_for_tick() {
    thrum_mutex_lock(&ticker.mutex);
    for (const long now = ticker.ticks; ticker.ticks == now;)
        thrum_cond_wait(&ticker.ticked, &ticker.mutex);
    thrum_mutex_unlock(&ticker.mutex);
}

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
    switch (random_.below(12)) {
    case 0:
    case 1: spawn_and_join(); break;
    case 2: spawn_detached(); break;
    case 3: pass_on(); break;
    case 4:
    case 5: exclude(); break;
    case 6: exchange(); break;
    case 7:
        if (random_.one_in(8))
            wait_for_tick();
        break;
    case 8:
        if (self_ != nullptr)
            CHECK(thrum_join(self_, nullptr) == EDEADLK);
        break;
    case 9:
        if (exceptions)
            random_.one_in(2) ? catch_and_wait() : throw_and_catch();
        break;
    case 10: compute(); break;
    default: thrum_yield(); break;
    }
}

// --- a round ----------------------------------------------------------------------------------------------

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

void tick() {
    while (!ticker.over) { // until everybody who might wait for it has ended
        usleep(500);
        thrum_mutex_lock(&ticker.mutex);
        ticker.ticks++;
        thrum_cond_broadcast(&ticker.ticked);
        thrum_mutex_unlock(&ticker.mutex);
    }
}

void empty_the_mailboxes() {
    for (std::atomic<Task *> &mailbox : mailboxes) {
        Task *task = mailbox.exchange(nullptr);
        if (task == nullptr)
            continue;
        void *result = nullptr;
        CHECK(thrum_join(task->handle, &result) == 0);
        CHECK(reinterpret_cast<std::uintptr_t>(result) == result_of(task->seed));
        count.joined++;
        delete task;
    }
}

// Waits without keeping the worker from running others.
template <class Condition>
void wait_until(Condition condition) {
    while (!condition()) {
        thrum_yield();
        sched_yield();
    }
}

void round(std::uint64_t seed) {
    static constexpr std::array<unsigned, 8> kWorkers = {1, 2, 2, 3, 4, 8, 16, 64};
    const thrum_config config{only_workers > 0 ? static_cast<unsigned>(only_workers)
                                               : kWorkers[Random(seed).below(kWorkers.size())]};
    CHECK(thrum_init(&config) == 0);
    round_over = ticker.over = false;
    const long kernel_thread = syscall(SYS_gettid);
    const double end = seconds() + kRoundSeconds;

    std::atomic<int> externals_left{kExternals + 1};
    std::vector<std::thread> externals;
    for (int i = 0; i < kExternals; i++)
        externals.emplace_back([&externals_left, seed, i] {
            be_a_root(mixed(seed + 1000) + static_cast<std::uint64_t>(i));
            externals_left--;
        });
    externals.emplace_back([&externals_left] {
        tick();
        externals_left--;
    });
    std::array<thrum_t, kRoots> roots;
    for (std::size_t i = 0; i < kRoots; i++)
        CHECK(thrum_spawn(&roots[i], nullptr, root_task,
                          reinterpret_cast<void *>(mixed(seed + i))) ==
              0); // NOLINT(performance-no-int-to-ptr)
    for (std::uint64_t i = 0; seconds() < end; i++) {
        {
            Program program(mixed(seed + 2000 + i), kDepth);
            program.run(5);
        }
        CHECK(syscall(SYS_gettid) == kernel_thread); // main is bound to it
    }
    round_over = true;
    for (const thrum_t root : roots)
        CHECK(thrum_join(root, nullptr) == 0);
    wait_until([&] { return externals_left <= 1; }); // all but the ticker
    empty_the_mailboxes();
    wait_until([] { return count.live == 0 && count.detached == 0; });
    ticker.over = true;
    wait_until([&] { return externals_left == 0; });
    for (std::thread &external : externals)
        external.join();

    CHECK(count.ran == count.spawned);
    CHECK(count.put == count.taken && buffer.held == 0 && buffer.sum_in == buffer.sum_out);
    for (const Guarded &one : guarded)
        CHECK(one.owner == nullptr && one.first == one.second);
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
            std::fprintf(stderr, "ult_stress: %ld live threads, %ld detached ones, %ld steps, round %ld\n",
                         count.live.load(), count.detached.load(), count.steps.load(), count.rounds.load());
            fail("nothing has happened for half a minute", __LINE__);
        }
        before = now;
    }
}

unsigned long number_after(int argc, char **argv, int *i, unsigned long least) {
    char *end = nullptr;
    const unsigned long value = *i + 1 < argc ? std::strtoul(argv[*i + 1], &end, 10) : 0;
    if (end == nullptr || *end != '\0' || value < least) {
        std::fprintf(stderr, "ult_stress: %s takes a number from %lu\n", argv[*i], least);
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
                         "usage: ult_stress [--seed N] [--seconds N] [--workers N] [--no-exceptions]\n");
            return 2;
        }
    }
    std::printf("seed %lu\n", base_seed);
    std::fflush(stdout);
    std::thread(watch).detach();
    const double end = seconds() + duration;
    for (std::uint64_t i = 0; seconds() < end; i++)
        round(mixed(base_seed + i));
    std::printf("%ld rounds, %ld threads, %ld joined, %ld steps, %ld exchanges\n", count.rounds.load(),
                count.spawned.load(), count.joined.load(), count.steps.load(), count.put.load());
    return 0;
}
