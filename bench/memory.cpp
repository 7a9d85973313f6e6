// SPDX-License-Identifier: Apache-2.0
//
// What a burst of threads leaves behind: resident memory and kernel threads some seconds after it, with the cache and
// without, for each kind of programs/bursts. The runs of a round wait side by side. A ratio is cache / default; what malloc
// leaves differs from run to run, so it is the ratios' median that counts. With --check it ends with status 3 where that
// exceeds the limit.
#include <cstdio>
#include <future>
#include <string>
#include <vector>

#include "pairs.hpp"
#include "verdict.hpp"

namespace {

constexpr struct {
    const char *kind, *threads, *what;
    const char *program = "bursts";
} kBursts[] = {
    {"malloc", "500", "use malloc"},         {"tls", "200", "1 MiB of thread-locals", "bursts_tls"},
    {"joined", "2000", "joined at the end"}, {"unjoined", "2000", "not joined"},
    {"detached", "1000", "detached"},
};
constexpr std::size_t kKinds = sizeof kBursts / sizeof *kBursts;

struct Left {
    double resident_kb = 0, tasks = 0;
};

struct Lefts {
    std::vector<double> plain_kb, cached_kb, memory, plain_tasks, cached_tasks, tasks;

    void add(const Left &plain, const Left &cached) {
        plain_kb.push_back(plain.resident_kb);
        cached_kb.push_back(cached.resident_kb);
        memory.push_back(cached.resident_kb / plain.resident_kb);
        plain_tasks.push_back(plain.tasks);
        cached_tasks.push_back(cached.tasks);
        tasks.push_back(cached.tasks / plain.tasks);
    }
};

Left run(const std::vector<std::string> &command, const bench::Environment &environment) {
    const bench::Ended ended = bench::run(command, environment, true);
    Left left;
    if (ended.status != 0 ||
        std::sscanf(ended.output.c_str(), "%lf %lf", &left.resident_kb, &left.tasks) != 2)
        throw bench::Failure(command[0] + " " + command[1] + " failed (wait status " +
                             std::to_string(ended.status) + ")");
    return left;
}

void round(double seconds, const std::string &library, std::vector<Lefts> &all) {
    const bench::Environment plain;
    bench::Environment cached;
    cached.preload(library);
    std::vector<std::future<Left>> runs;
    for (const auto &burst : kBursts)
        for (const bench::Environment *environment :
             {&plain, static_cast<const bench::Environment *>(&cached)}) {
            const std::vector<std::string> command = {bench::program_path(burst.program), burst.kind,
                                                      burst.threads, std::to_string(seconds)};
            runs.push_back(std::async(std::launch::async,
                                      [command, environment] { return run(command, *environment); }));
        }
    for (std::size_t i = 0; i < kKinds; i++) {
        const Left without = runs[2 * i].get(), with = runs[2 * i + 1].get();
        all[i].add(without, with);
    }
}

void body(const bench::Options &options) {
    for (const auto &burst : kBursts)
        if (bench::program_path(burst.program).empty())
            throw bench::Failure(std::string("programs/") + burst.program + " is not built");
    const double rounds = options.numbers[0], seconds = options.numbers[1], limit = options.numbers[2];
    std::vector<Lefts> all(kKinds);
    for (int i = 0; i < rounds; i++) {
        bench::progress("round " + std::to_string(i + 1));
        round(seconds, options.library, all);
    }
    bench::Report report(options);
    bench::Verdicts memory, tasks;
    bench::Table table{
        "memory",
        "What is left of a burst: median [95 % interval, or lowest and highest where there are "
        "fewer than 6 rounds]",
        {{"kind", "threads", "", 0},
         {"threads", "threads", "", 0},
         {"default_kb", "default", "KiB", 0},
         {"cache_kb", "cache", "KiB", 0},
         {"memory_ratio", "memory", "cache/default", 2},
         {"memory_verdict", "memory", "verdict", 0},
         {"default_tasks", "default", "tasks", 0},
         {"cache_tasks", "cache", "tasks", 0},
         {"tasks_ratio", "tasks", "cache/default", 2},
         {"tasks_verdict", "tasks", "verdict", 0}},
        {}};
    for (std::size_t i = 0; i < kKinds; i++) {
        const Lefts &left = all[i];
        const bench::Estimate memory_ratio = bench::estimate(left.memory),
                              tasks_ratio = bench::estimate(left.tasks);
        table.rows.push_back({kBursts[i].what, std::string(kBursts[i].threads),
                              bench::estimate(left.plain_kb).median, bench::estimate(left.cached_kb).median,
                              memory_ratio, std::string(memory.at_most(memory_ratio, limit, rounds)),
                              bench::estimate(left.plain_tasks).median,
                              bench::estimate(left.cached_tasks).median, tasks_ratio,
                              std::string(tasks.at_most(tasks_ratio, limit, rounds))});
    }
    report.add(table);
    bench::conclude(&report, options, {{memory, "memory"}, {tasks, "tasks"}});
}

} // namespace

int main(int argc, char **argv) {
    return bench::main_of(
        argc, argv,
        {"memory",
         "Memory and kernel threads that are left some seconds after a burst of threads.",
         {{"--rounds", "Rounds of all bursts, with the cache and without", 1, 7, 21, 1, 1000},
          {"--seconds", "Seconds after the burst", 0.5, 10, 10, 0, 3600},
          {"--limit", "Limit of the ratios", 1.2, 1.2, 1.2, 1e-6, 1e6}},
         {},
         true,
         {bench::kCheck}},
        body);
}
