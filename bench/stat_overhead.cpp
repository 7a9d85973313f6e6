// SPDX-License-Identifier: Apache-2.0
//
// What `thrum stat` costs the program that it observes, while that runs: a thread for each CPU that computes and
// shares nothing, by themselves and beside a thousand that wait, and one that calls futexes. The limits: 3 % of time
// and 2 % of CPU time where it observes from outside, and 4 µs for a wait that --exact counts, which is what its
// report says.
//
// The program measures itself: its time, its CPU time, and what its parent, the command, used meanwhile. What the
// command does before and after, such as finding names, does not disturb it and is not counted.
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "../tests/refuse_call.h"
#include "rounds.hpp"
#include "tools/clock.hpp"
#include "tools/text.hpp"
#include "tools/words.hpp"
#include "verdict.hpp"

namespace {

using Words = std::vector<std::string>;

constexpr unsigned kCrowd = 1000;

// --- in the program ---------------------------------------------------------------------------------------------

double parent_seconds() {
    std::ifstream file("/proc/" + std::to_string(getppid()) + "/schedstat");
    double run_ns = 0;
    file >> run_ns;
    return run_ns * 1e-9;
}

void compute(std::uint64_t steps) {
    volatile std::uint64_t sink;
    std::uint64_t state = 1;
    for (std::uint64_t i = 0; i < steps; i++)
        state = state * 6364136223846793005U + 1442695040888963407U;
    sink = state;
    (void)sink;
}

void compute_on_all(std::uint64_t steps) {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); i++)
        threads.emplace_back(compute, steps);
    for (std::thread &thread : threads)
        thread.join();
}

// Threads that wait until the end.
class Crowd {
  public:
    explicit Crowd(unsigned number) {
        for (unsigned i = 0; i < number; i++)
            threads_.emplace_back([this] {
                std::unique_lock<std::mutex> hold(mutex_);
                there_++;
                come_.notify_one();
                over_.wait(hold, [this] { return is_over_; });
            });
        std::unique_lock<std::mutex> hold(mutex_);
        come_.wait(hold, [this, number] { return there_ == number; });
    }
    ~Crowd() {
        {
            const std::lock_guard<std::mutex> hold(mutex_);
            is_over_ = true;
        }
        over_.notify_all();
        for (std::thread &thread : threads_)
            thread.join();
    }
    Crowd(const Crowd &) = delete;
    Crowd &operator=(const Crowd &) = delete;

  private:
    std::mutex mutex_;
    std::condition_variable come_, over_;
    unsigned there_ = 0;
    bool is_over_ = false;
    std::vector<std::thread> threads_;
};

// Each returns at once, as the word has another value.
void wait_in_vain(std::uint64_t times) {
    static unsigned word;
    for (std::uint64_t i = 0; i < times; i++)
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, nullptr, nullptr, 0);
}

[[noreturn]] void become(const Words &words) {
    std::vector<char *> arguments = thrum::pointers(words);
    execv(arguments.front(), arguments.data());
    throw bench::Failure(words.front() + " cannot be executed");
}

void work(const Words &words) {
    const Words rest(words.begin() + 1, words.end());
    if (words.at(0) == "quietly") { // without the report
        if (dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO) < 0)
            throw bench::Failure("/dev/null cannot be written to");
        become(rest);
    }
    if (words[0] == "without-perf-events") {
        if (!refuse_call(SYS_perf_event_open, EACCES))
            throw bench::Failure("no system-call filter can be installed");
        become(rest);
    }
    const std::uint64_t count = std::strtoull(words.at(1).c_str(), nullptr, 10);
    const Crowd crowd(words[0] == "compute-in-crowd" ? kCrowd : 0);
    const double wall = thrum::seconds_on(CLOCK_MONOTONIC), cpu = thrum::seconds_on(CLOCK_PROCESS_CPUTIME_ID),
                 parent = parent_seconds();
    words[0] == "futex" ? wait_in_vain(count) : compute_on_all(count);
    std::printf("%.9f %.9f %.9f\n", thrum::seconds_on(CLOCK_MONOTONIC) - wall,
                thrum::seconds_on(CLOCK_PROCESS_CPUTIME_ID) - cpu, parent_seconds() - parent);
}

// The same in Python, whose functions are read from the interpreter's memory.
const char *const kPython =
    "import os, sys, time\n"
    "def parent():\n"
    "    return int(open('/proc/%d/schedstat' % os.getppid()).read().split()[0]) * 1e-9\n"
    "def compute(count):\n"
    "    total = 0\n"
    "    for i in range(count):\n"
    "        total = (total * 31 + i) % 1000003\n"
    "wall, cpu, command = time.monotonic(), time.process_time(), parent()\n"
    "compute(int(sys.argv[1]))\n"
    "print(time.monotonic() - wall, time.process_time() - cpu, parent() - command)\n";

// --- from outside -----------------------------------------------------------------------------------------------

struct Times {
    double wall = 0, cpu = 0, command = 0;
    double all_cpu() const { return cpu + command; }
};

// Of the last run, where the command has made several.
Times times_of(const Words &words) {
    const bench::Ended ended = bench::run_well(words, {});
    Times times;
    bool is_known = false;
    std::istringstream lines(ended.output);
    for (std::string line; std::getline(lines, line);) {
        Times here;
        if (std::istringstream(line) >> here.wall >> here.cpu >> here.command) {
            times = here;
            is_known = true;
        }
    }
    if (!is_known)
        throw bench::Failure(words.front() + " says '" + ended.output + "'");
    return times;
}

Words joined(Words first, const Words &second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

struct Row {
    std::string how;
    Words before, program;
};

// The variants are kBare and kLookedAt.
enum : std::size_t { kBare, kLookedAt };
bench::Rounds<Times> measure(const Row &row, double rounds) {
    return bench::Rounds<Times>(
        {rounds, {row.how + ", bare", row.how + ", looked at"}}, [&](std::size_t which, std::size_t) {
            return times_of(which == kBare ? row.program : joined(row.before, row.program));
        });
}

void body(const bench::Options &options) {
    bench::Report report(options);
    const double rounds = options.numbers[0];
    const std::string thrum = bench::beside("../bin/thrum"), &python = options.texts[0];
    if (access(thrum.c_str(), X_OK) != 0)
        throw bench::Failure(thrum + " is missing");
    const Words self = bench::own_work({});
    const Words quietly = joined(self, {"quietly"}), looked = joined(quietly, {thrum, "stat", "--"});
    const Words computes = joined(self, {"compute", thrum::fixed(options.numbers[1] * 1e6, 0)});
    const Words crowded = joined(self, {"compute-in-crowd", thrum::fixed(options.numbers[1] * 1e6, 0)});
    std::vector<Row> rows = {
        {"as it comes", looked, computes},
        {"without perf events", joined(joined(self, {"without-perf-events"}), looked), computes},
        {"without a CPU profile", joined(quietly, {thrum, "stat", "--no-profile", "--"}), computes},
        {"beside 1000 threads that wait", looked, crowded}};
    if (access(python.c_str(), X_OK) == 0)
        rows.push_back({"a Python program",
                        looked,
                        {python, "-I", "-c", kPython, thrum::fixed(options.numbers[1] * 1e6 / 25, 0)}});
    else
        report.note("there is no " + python + ": measured without it (--python names another)");

    bench::Verdicts verdicts;
    bench::Table table{
        "stat_overhead",
        "A program that does not contend, looked at, to one that is not: median [95 % interval]",
        {{"how", "how", "", 0},
         {"wall_ratio", "time", "looked at/bare", 4},
         {"wall_verdict", "time", "verdict", 0},
         {"cpu_ratio", "CPU time, the command's too", "looked at/bare", 4},
         {"cpu_verdict", "CPU", "verdict", 0}},
        {}};
    for (const Row &row : rows) {
        times_of(row.program); // to warm up
        const bench::Rounds<Times> measured = measure(row, rounds);
        const bench::Estimate wall = measured.ratio(kLookedAt, kBare, &Times::wall),
                              cpu = bench::estimate(measured.compared(
                                  kLookedAt, kBare, [](const Times &looked_at, const Times &bare) {
                                      return looked_at.all_cpu() / bare.cpu;
                                  }));
        table.rows.push_back({row.how, wall, verdicts.at_most(wall, options.numbers[3]), cpu,
                              verdicts.at_most(cpu, options.numbers[4])});
    }
    bench::Table waits{
        "exact_wait",
        "What a wait for a futex costs more that --exact counts: median [95 % interval]",
        {{"how", "how", "", 0}, {"added_us", "CPU", "µs", 2}, {"verdict", "CPU", "verdict", 0}},
        {}};
    const double count = options.numbers[2];
    const Row row = {"--exact",
                     joined(quietly, {thrum, "stat", "--exact", "--no-profile", "--show-output", "--"}),
                     joined(self, {"futex", thrum::fixed(count, 0)})};
    const auto us_more = [count](const Times &counted, const Times &bare) {
        return (counted.cpu - bare.cpu) / count * 1e6;
    };
    const bench::Estimate added = bench::estimate(measure(row, rounds).compared(kLookedAt, kBare, us_more));
    waits.rows.push_back({row.how, added, verdicts.at_most(added, options.numbers[5])});
    report.add(table);
    report.add(waits);
    bench::conclude(&report, options, verdicts);
}

} // namespace

int main(int argc, char **argv) {
    return bench::main_of(
        argc, argv,
        {"stat_overhead",
         "What `thrum stat` costs the program that it looks at.",
         {{"--rounds", "Pairs of runs", 1, 15, 51, 1, 10000},
          {"--steps", "Millions of steps that each thread computes", 20, 1000, 2000, 1, 1e6},
          {"--waits", "Waits for a futex", 2000, 200000, 1000000, 1, 1e9},
          {"--wall-limit", "Limit of the ratio of times", 1.03, 1.03, 1.03, 1e-6, 1e6},
          {"--cpu-limit", "Limit of the ratio of CPU times", 1.02, 1.02, 1.02, 1e-6, 1e6},
          {"--wait-limit", "Limit for a counted wait in µs", 4, 4, 4, 1e-6, 1e6}},
         {{"--python", "PATH", "The interpreter for a program in Python (/usr/bin/python3)",
           "/usr/bin/python3"}},
         false,
         {bench::kCheck}},
        body, work);
}
