// SPDX-License-Identifier: Apache-2.0
//
// CPU time and wall time of one pthread_create + pthread_join of a thread that does nothing, with one
// creator: without the library, with it, and with it switched off (what its interposers cost where every
// thread is a real one). One thread at a time, and sixteen: then the creator continues to create while the first
// ones run. And what is asked of the CPU time where one pair takes turns on one CPU, the thread asleep in between, and
// where it spins on two.
#include <sched.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "rounds.hpp"
#include "verdict.hpp"

namespace {

constexpr unsigned kAtOnce[] = {1, 16};

void stay_on_this_cpu() {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0)
        throw bench::Failure("sched_setaffinity fails");
}

void work(const std::vector<std::string> &words) {
    if (words.size() != 3)
        throw bench::Failure(
            "--work takes the number of threads at a time, seconds, and the CPUs: one or all");
    if (words[2] == "one")
        stay_on_this_cpu();
    const auto at_once = static_cast<unsigned>(std::strtoul(words[0].c_str(), nullptr, 10));
    const double seconds = std::strtod(words[1].c_str(), nullptr);
    bench::create_and_join(at_once, [](std::uint64_t threads) { return threads >= 100; }); // to warm up
    bench::report_work([&] { return bench::create_and_join(at_once, bench::after_seconds(seconds)); });
}

struct Variant {
    const char *name;
    bench::Environment environment;
    bool reuses;
};

std::vector<Variant> variants(const std::string &library) {
    bench::Environment cached, off;
    cached.preload(library);
    off.preload(library).set("THRUM_CACHE", "off");
    return {{"default", {}, false}, {"cache", cached, true}, {"cache off", off, false}};
}

bench::Table table_of(const bench::Options &options) {
    bench::Table table{"create_join",
                       std::string("One pthread_create + pthread_join, one creator") + bench::kMedians,
                       {{"at_once", "at a time", "threads", 0},
                        {"variant", "variant", "", 0},
                        {"wall_us", "wall", "µs/thread", 2},
                        {"cpu_us", "CPU", "µs/thread", 2},
                        {"wall_speedup", "wall", "× default", 2},
                        {"cpu_speedup", "CPU", "× default", 2}},
                       {}};
    const std::vector<Variant> list = variants(options.library);
    for (const unsigned at_once : kAtOnce) {
        bench::Turns turns{options.numbers[1], {}};
        for (const Variant &variant : list)
            turns.variants.push_back(std::to_string(at_once) + " at a time, " + variant.name);
        const bench::Rounds<bench::Sample> rounds(turns, [&](std::size_t which, std::size_t) {
            return bench::measure({std::to_string(at_once), std::to_string(options.numbers[0]), "all"},
                                  list[which].environment, list[which].reuses);
        });
        const auto wall = &bench::Sample::wall_us_each, cpu = &bench::Sample::cpu_us_each;
        for (std::size_t i = 0; i < list.size(); i++)
            table.rows.push_back({static_cast<double>(at_once), list[i].name, rounds.of(i, wall),
                                  rounds.of(i, cpu), i == 0 ? bench::Cell("1") : rounds.ratio(0, i, wall),
                                  i == 0 ? bench::Cell("1") : rounds.ratio(0, i, cpu)});
    }
    return table;
}

// --- what is asked of the CPU time ------------------------------------------------------------------------------

// On one CPU no thread spins. The default gains by it, too: its new thread starts where its creator is.
struct Asked {
    const char *state, *cpus[2]; // without and with the cache
    double most;                 // cache / default
};
constexpr Asked kAsked[] = {
    {"parked", {"all", "one"}, 0.25}, {"parked", {"one", "one"}, 0.25}, {"spinning", {"all", "all"}, 0.1}};

bench::Rounds<bench::Sample> measure_cpu(const Asked &asked, const bench::Options &options) {
    const auto environments = bench::without_and_with(options.library);
    const std::string name = std::string(asked.state) + ", ";
    return bench::Rounds<bench::Sample>(
        {options.numbers[1], {name + "default", name + "cache"}}, [&](std::size_t which, std::size_t) {
            return bench::measure({"1", std::to_string(options.numbers[0]), asked.cpus[which]},
                                  environments[which], which == bench::kCached);
        });
}

bench::Table cpu_table(const bench::Options &options, bench::Verdicts &verdicts) {
    bench::Table table{
        "create_join_cpu",
        "CPU time of one pthread_create + pthread_join, one creator: median [interval as above]",
        {{"state", "the thread is", "", 0},
         {"default_cpus", "default", "CPUs", 0},
         {"cache_cpus", "cache", "CPUs", 0},
         {"default_cpu_us", "default", "µs/thread", 2},
         {"cache_cpu_us", "cache", "µs/thread", 2},
         {"cpu_ratio", "CPU", "cache/default", 3},
         {"target", "target", "cache/default", 2},
         {"verdict", "target", "verdict", 0},
         {"switches", "context switches", "/thread", 2}},
        {}};
    for (const Asked &asked : kAsked) {
        const bench::Rounds<bench::Sample> rounds = measure_cpu(asked, options);
        const auto cpu = &bench::Sample::cpu_us_each;
        const bench::Estimate ratio = rounds.ratio(bench::kCached, bench::kPlain, cpu);
        table.rows.push_back({asked.state, asked.cpus[0], asked.cpus[1], rounds.of(bench::kPlain, cpu).median,
                              rounds.of(bench::kCached, cpu).median, ratio, asked.most,
                              verdicts.at_most(ratio, asked.most),
                              rounds.of(bench::kCached, &bench::Sample::switches_each).median});
    }
    return table;
}

void body(const bench::Options &options) {
    bench::Report report(options);
    report.add(table_of(options));
    report.note("× default: how many times less time than without the library; below 1 it takes more.");
    bench::Verdicts verdicts;
    report.add(cpu_table(options, verdicts));
    report.note(
        "Context switches are those with the cache; where the two spin there are next to none, or they did "
        "not.");
    bench::conclude(&report, options, {{verdicts, "CPU time"}});
}

} // namespace

int main(int argc, char **argv) {
    return bench::main_of(argc, argv,
                          {"create_join",
                           "CPU and wall time of creating and joining a thread, without and with the cache.",
                           {{"--seconds", "Seconds a measurement", 0.01, 0.2, 1, 0.001, 3600},
                            {"--rounds", "Measurements of each variant", 2, 15, 31, 1, 10000}},
                           {},
                           true,
                           {bench::kCheck}},
                          body, work);
}
