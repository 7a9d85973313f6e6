// SPDX-License-Identifier: Apache-2.0
//
// What a thread control block of its own costs a thread, in mode own-tls: spawning and joining one at a time, the first
// time and later; many that are alive at once, with their memory and kernel threads; and fib, with lend beside it. Last:
// what a preempted thread of mode lend keeps, which is a block too. Times are CPU times, which other programs do not
// change much. Each measurement is a process of its own.
#include <cstdio>
#include <fstream>
#include <functional>
#include <optional>

#include "preempt.hpp"
#include "tools/text.hpp"
#include "verdict.hpp"

namespace {

constexpr const char *kOwn = "own-tls", *kLend = "lend";
constexpr unsigned kWorkers = 2;
constexpr double kSlice = 1000; // us

// --- in the child ------------------------------------------------------------------------------------------

// A line of /proc/self/status: KiB, or a count.
double status_of(const std::string &key) {
    std::ifstream file("/proc/self/status");
    for (std::string line; std::getline(file, line);)
        if (line.rfind(key + ":", 0) == 0)
            return std::stod(line.substr(key.size() + 1));
    throw bench::Failure("/proc/self/status has no " + key);
}

void *nothing(void *) {
    return nullptr;
}

void spawn_and_join(void *(*fn)(void *), void *arg) {
    thrum_t thread;
    preempt::check(thrum_spawn(&thread, nullptr, fn, arg), "thrum_spawn");
    preempt::check(thrum_join(thread, nullptr), "thrum_join");
}

double cpu_of(const std::function<void()> &act) {
    const double since = preempt::cpu_ns();
    act();
    return preempt::cpu_ns() - since;
}

// The first, and the mean of `count` later ones. A tenth as many are spawned in between, so that the later ones are warm.
void one_at_a_time(std::size_t count) {
    const double first = cpu_of([] { spawn_and_join(nothing, nullptr); });
    const auto repeat = [](std::size_t times) {
        for (std::size_t i = 0; i < times; i++)
            spawn_and_join(nothing, nullptr);
    };
    repeat(count / 10);
    std::printf("%.0f %.1f\n", first, cpu_of([&] { repeat(count); }) / static_cast<double>(count));
}

// Each touches a thread-local, and then waits for all the others.
struct Crowd {
    thrum_event_t all_are_spawned;
    thrum_latch_t arrived;
};

thread_local unsigned entered;

void *wait_in_crowd(void *arg) {
    auto *crowd = static_cast<Crowd *>(arg);
    entered++;
    thrum_latch_count_down(&crowd->arrived, 1);
    thrum_event_wait(&crowd->all_are_spawned);
    return entered == 1 ? nullptr : crowd;
}

std::vector<thrum_t> spawn_all(std::size_t count, void *(*fn)(void *), void *arg) {
    std::vector<thrum_t> threads(count);
    for (thrum_t &thread : threads)
        preempt::check(thrum_spawn(&thread, nullptr, fn, arg), "thrum_spawn");
    return threads;
}

void join_all(const std::vector<thrum_t> &threads) {
    for (const thrum_t thread : threads) {
        void *result;
        preempt::check(thrum_join(thread, &result), "thrum_join");
        if (result != nullptr)
            throw bench::Failure("a thread found another thread's thread-locals");
    }
}

// CPU time of a spawn until it waits and of a join, ns; KiB of each; kernel threads beyond the workers.
void alive(std::size_t count) {
    Crowd crowd;
    thrum_event_init(&crowd.all_are_spawned);
    thrum_latch_init(&crowd.arrived, static_cast<unsigned>(count));
    const double before = status_of("VmRSS");
    std::vector<thrum_t> threads;
    const double spawn = cpu_of([&] {
        threads = spawn_all(count, wait_in_crowd, &crowd);
        thrum_latch_wait(&crowd.arrived);
    });
    const double memory = status_of("VmRSS") - before, kernel = status_of("Threads") - kWorkers;
    const double join = cpu_of([&] {
        thrum_event_set(&crowd.all_are_spawned);
        join_all(threads);
    });
    const auto each = static_cast<double>(count);
    std::printf("%.1f %.1f %.3f %.0f\n", spawn / each, join / each, memory / each, kernel);
}

struct Fib {
    unsigned n;
    std::uint64_t result, spawns;
};

void *fib(void *arg) {
    auto *self = static_cast<Fib *>(arg);
    if (self->n < 2) {
        self->result = self->n;
        return nullptr;
    }
    Fib one = {self->n - 1, 0, 0}, two = {self->n - 2, 0, 0};
    thrum_t thread;
    preempt::check(thrum_spawn(&thread, nullptr, fib, &one), "thrum_spawn");
    fib(&two);
    preempt::check(thrum_join(thread, nullptr), "thrum_join");
    self->result = one.result + two.result;
    self->spawns = one.spawns + two.spawns + 1;
    return nullptr;
}

void fib_of(unsigned n) {
    Fib all = {n, 0, 0};
    const double cpu = cpu_of([&] { spawn_and_join(fib, &all); });
    std::printf("%.1f\n", cpu / static_cast<double>(all.spawns + 1));
}

// Computes until all have begun. There are fewer workers, so all but a few are preempted then.
struct Hogs {
    std::size_t count, begun;
};

void *compute_until_all_have_begun(void *arg) {
    auto *hogs = static_cast<Hogs *>(arg);
    __atomic_fetch_add(&hogs->begun, std::size_t{1}, __ATOMIC_RELAXED);
    while (__atomic_load_n(&hogs->begun, __ATOMIC_RELAXED) < hogs->count + 1) {
    }
    return nullptr;
}

// KiB and kernel threads of each, while all but those that run at the moment are preempted.
void preempted(std::size_t count) {
    Hogs hogs = {count, 0};
    const double before = status_of("VmRSS"), kernel = status_of("Threads");
    const std::vector<thrum_t> threads = spawn_all(count, compute_until_all_have_begun, &hogs);
    while (__atomic_load_n(&hogs.begun, __ATOMIC_RELAXED) < count)
        thrum_yield();
    const auto each = static_cast<double>(count);
    const double memory = (status_of("VmRSS") - before) / each;
    const double more = (status_of("Threads") - kernel) / each;
    __atomic_fetch_add(&hogs.begun, std::size_t{1}, __ATOMIC_RELAXED);
    join_all(threads);
    std::printf("%.3f %.3f\n", memory, more);
}

void work(const std::vector<std::string> &words) {
    if (!preempt::init(kWorkers))
        return preempt::say_unavailable();
    const std::string &what = words.at(0);
    const std::size_t count = std::stoul(words.at(1));
    if (what == "one")
        one_at_a_time(count);
    else if (what == "alive")
        alive(count);
    else if (what == "fib")
        fib_of(static_cast<unsigned>(count));
    else
        preempted(count);
}

// --- in the parent -----------------------------------------------------------------------------------------

enum Option : std::size_t {
    kRounds,
    kOnes,
    kAlive,
    kFib,
    kPreempted,
    kFirstLimit,
    kWarmLimit,
    kMemoryLimit,
    kTasksLimit,
    kFibLimit,
    kPreemptedLimit
};

// The child processes of a round.
enum Run : std::size_t { kOneAtATime, kManyAlive, kFibOwn, kFibLend, kKept };
constexpr struct {
    const char *work;
    Option size;
    const char *mode;
    std::size_t numbers;
} kRuns[] = {{"one", kOnes, kOwn, 2},
             {"alive", kAlive, kOwn, 4},
             {"fib", kFib, kOwn, 1},
             {"fib", kFib, kLend, 1},
             {"preempted", kPreempted, kLend, 2}};

constexpr Option kNoLimit = kRounds;

// A row: a number that one of them says.
struct Measure {
    const char *name, *unit;
    Run run;
    std::size_t number;
    double scale; // from what is measured to the unit
    Option limit = kNoLimit;
    std::optional<Run> to = std::nullopt; // the ratio to that of this one
};

constexpr Measure kMeasures[] = {
    {"spawn + join, the first", "us of CPU", kOneAtATime, 0, 1e-3, kFirstLimit},
    {"spawn + join, one at a time", "ns of CPU", kOneAtATime, 1, 1, kWarmLimit},
    {"spawn, many alive", "us of CPU", kManyAlive, 0, 1e-3},
    {"wake + join, many alive", "us of CPU", kManyAlive, 1, 1e-3},
    {"resident memory of one of many", "KiB", kManyAlive, 2, 1, kMemoryLimit},
    {"kernel threads beyond the workers", "", kManyAlive, 3, 1, kTasksLimit},
    {"fib, a spawn", "ns of CPU", kFibOwn, 0, 1},
    {"fib, to lend", "x", kFibOwn, 0, 1, kFibLimit, kFibLend},
    {"resident memory of a preempted thread, lend", "KiB", kKept, 0, 1, kPreemptedLimit},
    {"kernel threads of a preempted thread, lend", "", kKept, 1, 1},
};

bench::Rounds<bench::Numbers> measure(const bench::Options &options) {
    bench::Turns turns{options.numbers[kRounds], {}};
    for (const auto &run : kRuns)
        turns.variants.push_back(std::string(run.work) + ", " + run.mode);
    return bench::Rounds<bench::Numbers>(turns, [&](std::size_t which, std::size_t) {
        const auto &run = kRuns[which];
        return preempt::measured({run.work, thrum::fixed(options.numbers[run.size], 0)},
                                 preempt::armed(options.library, run.mode, kSlice), run.numbers);
    });
}

bench::Table table_of(const bench::Rounds<bench::Numbers> &rounds, const bench::Options &options,
                      bench::Verdicts *verdicts) {
    bench::Table table{"own_tls",
                       "A thread control block of a thread's own",
                       {{"what", "what", "", 0},
                        {"value", "value", "", 3},
                        {"unit", "unit", "", 0},
                        {"limit", "at most", "", 0},
                        {"verdict", "verdict", "", 0}},
                       {}};
    for (const Measure &measure : kMeasures) {
        if (!rounds.has(measure.run) || (measure.to && !rounds.has(*measure.to))) {
            table.rows.push_back(preempt::row_unavailable({measure.name}, table));
            continue;
        }
        const auto number = bench::nth(measure.number, measure.scale);
        const bench::Estimate value =
            measure.to ? rounds.ratio(measure.run, *measure.to, number) : rounds.of(measure.run, number);
        table.rows.push_back({measure.name, value, measure.unit, "-", "-"});
        if (measure.limit != kNoLimit) {
            const double limit = options.numbers[measure.limit];
            table.rows.back()[3] = limit;
            table.rows.back()[4] = verdicts->at_most(value, limit);
        }
    }
    return table;
}

void body(const bench::Options &options) {
    bench::Report report(options);
    bench::Verdicts verdicts;
    report.add(table_of(measure(options), options, &verdicts));
    report.note(
        "Two workers. Many alive: a spawn until the thread waits, having used a thread-local of its own.");
    report.note("Resident memory is the process's; what the kernel keeps of a kernel thread, some 23 KiB, is "
                "not counted.");
    bench::conclude(&report, options, verdicts);
}

} // namespace

int main(int argc, char **argv) {
    return bench::main_of(
        argc, argv,
        {"own_tls",
         "What a thread control block of a thread's own costs, in mode own-tls of libthrum; and a preempted "
         "thread's.",
         {{"--rounds", "Measurements of each row", 1, 7, 15, 1, 1000},
          {"--spawns", "How many are spawned one at a time", 100, 5000, 20000, 10, 1e9},
          {"--alive", "How many are alive at once", 100, 1000, 100000, 1, 1e7},
          {"--fib", "The argument of fib", 8, 20, 20, 1, 40},
          {"--preempted", "How many are preempted at once", 20, 200, 1000, 1, 1e6},
          {"--first-limit", "Limit of the first spawn, us", 40, 40, 40, 1e-6, 1e6},
          {"--warm-limit", "Limit of the later ones, ns", 250, 250, 250, 1e-6, 1e6},
          {"--memory-limit", "Limit of the memory of one of many, KiB", 14, 14, 14, 1e-6, 1e6},
          {"--tasks-limit", "Limit of the kernel threads", 16, 16, 16, 1e-6, 1e6},
          {"--fib-limit", "Limit of fib, to lend", 4, 4, 4, 1e-6, 1e6},
          {"--preempted-limit", "Limit of the memory of a preempted thread, KiB", 9, 9, 9, 1e-6, 1e6}},
         {},
         true,
         {bench::kCheck},
         "libthrum.so"},
        body, work);
}
