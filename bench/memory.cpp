// SPDX-License-Identifier: Apache-2.0
//
// What a burst of threads leaves behind: resident memory and kernel threads some seconds after it, with the cache and
// without, for each kind of programs/bursts. The runs of a round wait side by side. A ratio is cache / default; what malloc
// leaves differs from run to run, so it is the ratios' median that counts. With --check it ends with status 3 where that
// exceeds the limit.
#include <array>
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

using Lefts = std::array<Left, 2 * kKinds>; // of each kind without the cache, with it
Left run(const std::vector<std::string> &command, const bench::Environment &environment) {
    const bench::Numbers numbers = bench::numbers_in(bench::run_well(command, environment).output, 2);
    return {numbers[0], numbers[1]};
}

// All at a time, so that the round takes no longer than one.
Lefts run_all(double seconds, const std::array<bench::Environment, 2> &environments) {
    std::vector<std::future<Left>> runs;
    for (const auto &burst : kBursts)
        for (const bench::Environment &environment : environments) {
            const std::vector<std::string> command = {bench::program_path(burst.program), burst.kind,
                                                      burst.threads, std::to_string(seconds)};
            runs.push_back(std::async(std::launch::async,
                                      [command, &environment] { return run(command, environment); }));
        }
    Lefts all;
    for (std::size_t i = 0; i < all.size(); i++)
        all[i] = runs[i].get();
    return all;
}

void body(const bench::Options &options) {
    for (const auto &burst : kBursts)
        if (bench::program_path(burst.program).empty())
            throw bench::Failure(std::string("programs/") + burst.program + " is not built");
    const auto environments = bench::without_and_with(options.library);
    bench::Report report(options);
    const bench::Rounds<Lefts> rounds({options.numbers[0], {"all bursts"}}, [&](std::size_t, std::size_t) {
        return run_all(options.numbers[1], environments);
    });
    bench::Verdicts memory, tasks;
    bench::Table table{"memory",
                       std::string("What is left of a burst") + bench::kMedians,
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
    const double limit = options.numbers[2];
    for (std::size_t i = 0; i < kKinds; i++) {
        const auto plain = [&](double Left::*what) {
            return rounds.of(0, [&](const Lefts &all) { return all[2 * i].*what; }).median;
        };
        const auto cached = [&](double Left::*what) {
            return rounds.of(0, [&](const Lefts &all) { return all[2 * i + 1].*what; }).median;
        };
        const auto ratio = [&](double Left::*what) {
            return rounds.of(0, [&](const Lefts &all) { return all[2 * i + 1].*what / all[2 * i].*what; });
        };
        const bench::Estimate memory_ratio = ratio(&Left::resident_kb), tasks_ratio = ratio(&Left::tasks);
        table.rows.push_back({kBursts[i].what, kBursts[i].threads, plain(&Left::resident_kb),
                              cached(&Left::resident_kb), memory_ratio, memory.at_most(memory_ratio, limit),
                              plain(&Left::tasks), cached(&Left::tasks), tasks_ratio,
                              tasks.at_most(tasks_ratio, limit)});
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
