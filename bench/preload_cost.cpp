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

#include "rounds.hpp"
#include "verdict.hpp"

namespace {

constexpr double kLimit = 100; // µs

enum Variant { kPlain, kEmpty, kCache, kVariants };
constexpr const char *kNames[kVariants] = {"none", "empty library", "libthrum-cache.so"};

struct Program {
    std::string name;
    std::vector<std::string> command;
    double rounds;
};

std::vector<Program> programs(const bench::Options &options, bench::Report &report) {
    const std::string &python = options.texts[0];
    std::vector<Program> list = {{"nothing", {bench::beside("programs/nothing")}, options.numbers[0]}};
    if (access(python.c_str(), X_OK) == 0)
        list.push_back({"python3", {python, "-I", "-c", "pass"}, options.numbers[1]});
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

bench::Rounds<bench::Ended> measure(const Program &program, const std::string &library) {
    bench::Turns turns{program.rounds, {}};
    std::vector<bench::Environment> environments;
    for (const Variant variant : {kPlain, kEmpty, kCache}) {
        turns.variants.push_back(program.name + ", " + kNames[variant]);
        environments.push_back(environment(variant, library));
        bench::run_well(program.command, environments.back(), false); // to warm up
    }
    return bench::Rounds<bench::Ended>(turns, [&](std::size_t variant, std::size_t) {
        return bench::run_well(program.command, environments[variant], false);
    });
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
        const bench::Rounds<bench::Ended> rounds = measure(program, options.library);
        const auto added = [&](std::size_t variant, double bench::Ended::*time) {
            return bench::estimate(
                rounds.compared(variant, kPlain, [&](const bench::Ended &with, const bench::Ended &plain) {
                    return with.*time - plain.*time;
                }));
        };
        const auto wall = &bench::Ended::wall_us, cpu = &bench::Ended::cpu_us;
        for (std::size_t variant = 0; variant < kVariants; variant++)
            table.rows.push_back({program.name, kNames[variant], rounds.of(variant, wall).median,
                                  rounds.of(variant, cpu).median,
                                  variant == kPlain ? bench::Cell("-") : added(variant, wall),
                                  variant == kPlain ? bench::Cell("-") : added(variant, cpu)});
        bench::Verdicts verdicts;
        report.note("limit of 100 µs for " + program.name + ": wall time " +
                    verdicts.at_most(added(kCache, wall), kLimit) + ", CPU time " +
                    verdicts.at_most(added(kCache, cpu), kLimit));
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
