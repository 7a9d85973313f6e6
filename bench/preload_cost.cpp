// SPDX-License-Identifier: Apache-2.0
//
// What a process that creates no thread pays for having libthrum-cache.so preloaded: the time from starting
// it until it has been waited for, and its CPU time, with the library less without it. The limit is 100 µs.
//
// A library with nothing in it stands beside it: that part of the cost is the loader's, for opening, mapping
// and relocating one more file, whatever is in it.
#include <unistd.h>

#include <string>
#include <vector>

#include "common.hpp"

namespace {

constexpr double kLimit = 100; // µs

enum Variant { kPlain, kEmpty, kCache, kVariants };
constexpr const char *kNames[kVariants] = {"none", "empty library", "libthrum-cache.so"};

struct Program {
    std::string name;
    std::vector<std::string> command;
    unsigned rounds;
};

struct Times {
    std::vector<double> wall, cpu;             // µs
    std::vector<double> added_wall, added_cpu; // less the same round's run without a library
};

std::vector<Program> programs(const bench::Options &options, bench::Report &report) {
    const std::string &python = options.texts[0];
    std::vector<Program> list = {
        {"nothing", {bench::beside("programs/nothing")}, static_cast<unsigned>(options.numbers[0])}};
    if (access(python.c_str(), X_OK) == 0)
        list.push_back({"python3", {python, "-I", "-c", "pass"}, static_cast<unsigned>(options.numbers[1])});
    else
        report.note("there is no " + python + ": measured without it (--python names another)");
    return list;
}

bench::Environment environment(Variant variant, const std::string &library) {
    bench::Environment environment;
    if (variant == kEmpty)
        environment.preload(bench::beside("programs/libempty.so"));
    if (variant == kCache)
        environment.preload(library);
    return environment;
}

// A library that the loader cannot use is left out with a message: then there would be nothing to measure.
void check_loaded(const Program &program, const std::string &library) {
    bench::Environment listing = environment(kCache, library);
    listing.set("LD_TRACE_LOADED_OBJECTS", "1");
    if (bench::run(program.command, listing, true).output.find(library) == std::string::npos)
        throw bench::Failure("the loader does not preload " + library);
}

bench::Ended once(const Program &program, const bench::Environment &environment) {
    bench::Ended ended = bench::run(program.command, environment, false);
    if (ended.status != 0)
        throw bench::Failure(program.name + " ended with wait status " + std::to_string(ended.status));
    return ended;
}

// Each round runs every variant once, beginning with another one each time.
std::vector<Times> measure(const Program &program, const std::string &library) {
    std::vector<Times> times(kVariants);
    std::vector<bench::Environment> environments;
    for (int variant = 0; variant < kVariants; variant++) {
        environments.push_back(environment(static_cast<Variant>(variant), library));
        once(program, environments.back());
    }
    for (unsigned round = 0; round < program.rounds; round++) {
        bench::Ended ended[kVariants];
        if (round % 50 == 0)
            bench::progress(program.name + " " + std::to_string(round));
        for (unsigned turn = 0; turn < kVariants; turn++) {
            const unsigned variant = (round + turn) % kVariants;
            ended[variant] = once(program, environments[variant]);
        }
        for (unsigned variant = 0; variant < kVariants; variant++) {
            times[variant].wall.push_back(ended[variant].wall_us);
            times[variant].cpu.push_back(ended[variant].cpu_us);
            times[variant].added_wall.push_back(ended[variant].wall_us - ended[kPlain].wall_us);
            times[variant].added_cpu.push_back(ended[variant].cpu_us - ended[kPlain].cpu_us);
        }
    }
    return times;
}

std::string verdict(const bench::Estimate &added) {
    if (added.high <= kLimit)
        return "kept";
    return added.low > kLimit ? "missed" : "undecided: the interval spans it";
}

void body(const bench::Options &options) {
    bench::Report report(options);
    bench::Table table{"preload_cost",
                       "What a process without threads pays for a preloaded library: median [95 % interval]",
                       {{"program", "program", "", 0},
                        {"preloaded", "preloaded", "", 0},
                        {"wall_us", "wall", "µs", 0},
                        {"cpu_us", "CPU", "µs", 0},
                        {"added_wall_us", "added wall", "µs", 1},
                        {"added_cpu_us", "added CPU", "µs", 1}},
                       {}};
    for (const Program &program : programs(options, report)) {
        check_loaded(program, options.library);
        const std::vector<Times> times = measure(program, options.library);
        for (int variant = 0; variant < kVariants; variant++) {
            const Times &t = times[static_cast<std::size_t>(variant)];
            const bool plain = variant == kPlain;
            table.rows.push_back({program.name, kNames[variant], bench::estimate(t.wall).median,
                                  bench::estimate(t.cpu).median,
                                  plain ? bench::Cell("-") : bench::Cell(bench::estimate(t.added_wall)),
                                  plain ? bench::Cell("-") : bench::Cell(bench::estimate(t.added_cpu))});
        }
        report.note("limit of 100 µs for " + program.name + ": wall time " +
                    verdict(bench::estimate(times[kCache].added_wall)) + ", CPU time " +
                    verdict(bench::estimate(times[kCache].added_cpu)));
    }
    report.add(table);
    report.print();
}

} // namespace

int main(int argc, char **argv) {
    return bench::main_of(
        argc, argv,
        {"preload_cost",
         "What a process that creates no thread pays for the preloaded library.",
         {{"--rounds", "Rounds with the program that does nothing", 10, 1000, 5000, 1, 1000000},
          {"--large-rounds", "Rounds with python3", 1, 200, 1000, 1, 1000000}},
         {{"--python", "PATH",
           "The interpreter that stands for larger programs\n(/usr/bin/python3); not a script that looks for "
           "it",
           "/usr/bin/python3"}}},
        body);
}
