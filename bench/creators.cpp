// SPDX-License-Identifier: Apache-2.0
//
// See creators.hpp. Linked into every benchmark, used by three.
#include "creators.hpp"

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "hogs.hpp"
#include "rounds.hpp"
#include "verdict.hpp"

namespace bench {

namespace {

// A creator's count in cache lines of its own.
struct alignas(128) Count {
    std::uint64_t threads = 0;
};

// They begin when all are there: detached threads that have not quite ended may be as many as the kernel has room for.
std::uint64_t create_for(const CreatorLoop &loop, unsigned creators, double seconds) {
    std::atomic<bool> begin{false}, stop{false};
    std::vector<Count> counts(creators);
    std::vector<std::thread> team;
    for (Count &count : counts)
        team.emplace_back([&] {
            while (!begin)
                std::this_thread::yield();
            count.threads = loop.create(stop);
        });
    begin = true;
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    stop = true;
    std::uint64_t sum = 0;
    for (unsigned i = 0; i < creators; i++) {
        team[i].join();
        sum += counts[i].threads;
    }
    return sum;
}

void work(const CreatorLoop &loop, const std::vector<std::string> &words) {
    if (words.size() != 2)
        throw Failure("--work takes the number of creators and seconds");
    const auto creators = static_cast<unsigned>(std::strtoul(words[0].c_str(), nullptr, 10));
    const double seconds = std::strtod(words[1].c_str(), nullptr);
    report_work([&] { return create_for(loop, creators, seconds); });
}

Rounds<Sample> measure_both(unsigned creators, const Options &options) {
    const std::array<Environment, 2> environments = without_and_with(options.library);
    const std::string name = std::to_string(creators) + " creators, ";
    return Rounds<Sample>({options.numbers[1], {name + "default", name + "cache"}},
                          [&](std::size_t which, std::size_t) {
                              return measure({std::to_string(creators), std::to_string(options.numbers[0])},
                                             environments[which], which == kCached);
                          });
}

Table empty_table(const CreatorLoop &loop, unsigned busy) {
    const std::string beside = busy == 0 ? ""
                                         : " beside " + std::to_string(busy) + " CPU-bound process" +
                                               (busy == 1 ? "" : "es") + " a CPU";
    return {busy == 0 ? loop.name : std::string(loop.name) + "_busy_" + std::to_string(busy),
            loop.title + beside + kMedians,
            {{"creators", "creators", "", 0},
             {"default_per_s", "default", "1000/s", 1},
             {"cache_per_s", "cache", "1000/s", 1},
             {"speedup", "rate", "× default", 2},
             {"target", "target", "× default", 1},
             {"verdict", "target", "verdict", 0},
             {"default_cpu_us", "default CPU", "µs/thread", 1},
             {"cache_cpu_us", "cache CPU", "µs/thread", 1},
             {"cpu_speedup", "CPU", "× default", 2},
             {"default_kernel_percent", "default kernel", "% of CPU", 0},
             {"cache_kernel_percent", "cache kernel", "% of CPU", 0}},
            {}};
}

// What is asked with so many creators, in two cells: a share of the target, and whether it is kept.
std::vector<Cell> target_cells(const CreatorLoop &loop, unsigned busy, unsigned creators,
                               const Estimate &speedup, const Options &options, Verdicts &verdicts) {
    for (const CreatorTarget &target : loop.targets)
        if (target.busy == busy && target.creators == creators) {
            const double least = target.least * options.numbers[2] / 100;
            return {least, verdicts.at_least(speedup, least)};
        }
    return {"-", "-"};
}

Table table_of(const CreatorLoop &loop, const Options &options, const std::vector<unsigned> &creators,
               unsigned busy, Verdicts &verdicts) {
    Table table = empty_table(loop, busy);
    const Hogs hogs(busy);
    for (const unsigned n : creators) {
        const Rounds<Sample> rounds = measure_both(n, options);
        const auto rate = &Sample::thousands_per_second, cpu = &Sample::cpu_us_each,
                   kernel = &Sample::kernel_percent;
        const Estimate speedup = rounds.ratio(kCached, kPlain, rate);
        const std::vector<Cell> target = target_cells(loop, busy, n, speedup, options, verdicts);
        table.rows.push_back({static_cast<double>(n), rounds.of(kPlain, rate), rounds.of(kCached, rate),
                              speedup, target[0], target[1], rounds.of(kPlain, cpu).median,
                              rounds.of(kCached, cpu).median, rounds.ratio(kPlain, kCached, cpu),
                              rounds.of(kPlain, kernel).median, rounds.of(kCached, kernel).median});
    }
    return table;
}

void body(const CreatorLoop &loop, const Options &options) {
    const std::vector<unsigned> creators = numbers_listed("--creators", options.texts[0], 1, 1000);
    const std::vector<unsigned> busy = numbers_listed("--busy", options.texts[1], 0, 16);
    Report report(options);
    Verdicts verdicts;
    for (const unsigned n : busy)
        report.add(table_of(loop, options, creators, n, verdicts));
    report.note("× default: times more threads per second, or times less CPU time; below 1 the cache loses.");
    report.note("kernel: system time in % of user and system time.");
    if (*loop.paper != '\0')
        report.note(loop.paper);
    conclude(&report, options, verdicts);
}

} // namespace

int creators_main(int argc, char **argv, const CreatorLoop &loop) {
    return main_of(
        argc, argv,
        {loop.name,
         loop.about,
         {{"--seconds", "Seconds a measurement", 0.02, 1, 10, 0.001, 3600},
          {"--rounds", "Measurements of each variant", 1, 7, 7, 1, 10000},
          {"--asked", "How much of each target is asked, in percent", 100, 100, 100, 0.001, 1e6}},
         {{"--creators", "N,...", "Numbers of creators (1,2,8,32)", "1,2,8,32"},
          {"--busy", "N,...", "A table for each: CPU-bound processes of others per CPU, 0 for none (0,1)",
           "0,1"}},
         true,
         {kCheck}},
        [&](const Options &options) { body(loop, options); },
        [&](const std::vector<std::string> &words) { work(loop, words); });
}

} // namespace bench
