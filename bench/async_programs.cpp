// SPDX-License-Identifier: Apache-2.0
//
// Six std::async programs after those of Inncabs, without and with the cache: the rest of table 1 of Dice and
// Kogan, whose figures stand beside ours. The programs are our own (programs/), written from the algorithms'
// public descriptions, and the result of each run has to be that of the same program without threads.
//
// Sizes are the paper's as far as it names them: 100 sequences, 1,000,000 numbers to sort, 100,000 points. All
// the rest is ours, chosen such that a run without the cache takes 0.5 to 5 s on two CPUs:
//
//     alignment   sequences of 300 letters on average: jobs of 0.15 ms, about the longest of the six
//     sparselu    40 x 40 blocks of 40 x 40; Inncabs' usual 50 x 50 blocks of 100 x 100 take minutes here
//     sort, fft   no threads below 128 numbers, 64 points
//     health      5 levels with 4 parts each, 100 steps; the paper's "small" took 60 s on 72 CPUs
//     floorplan   12 cells, threads for the first 6
#include <string>
#include <vector>

#include "pairs.hpp"
#include "tools/text.hpp"

namespace {

using Words = std::vector<std::string>;

struct Program {
    const char *label;
    const char *name;
    Words usual, quick;
    double paper_default_ms, paper_cache_ms; // 0: not in the paper
    bool reuses;
};

// In the order of the paper's table.
const std::vector<Program> &programs() {
    static const std::vector<Program> list = {
        // First all pairs at once: none is joined before the last one is made, so there is no thread to reuse.
        {"alignment", "alignment", {"100", "300"}, {"20", "50"}, 872, 314, false},
        {"alignment in parts", "alignment", {"100", "300", "99"}, {"20", "50", "19"}, 0, 0, true},
        {"sparselu", "sparselu", {"40", "40"}, {"10", "10"}, 620, 362, true},
        {"sort", "sort", {"1000000", "128"}, {"20000", "128"}, 770, 41, true},
        {"health", "health", {"4", "100"}, {"2", "20"}, 60669, 2713, true},
        {"floorplan", "floorplan", {"12", "6"}, {"8", "4"}, 3431, 974, true},
        {"fft", "fft", {"100000", "64"}, {"5000", "64"}, 3860, 484, true},
    };
    return list;
}

bench::Table empty_table() {
    return {"async_programs",
            std::string("std::async programs") + bench::kMedians,
            {{"program", "program", "", 0},
             {"arguments", "arguments", "", 0},
             {"threads", "threads", "", 0},
             {"default_ms", "default", "ms", 0},
             {"cache_ms", "cache", "ms", 0},
             {"speedup", "wall", "× default", 2},
             {"default_cpu_ms", "default CPU", "ms", 0},
             {"cache_cpu_ms", "cache CPU", "ms", 0},
             {"cpu_speedup", "CPU", "× default", 2},
             {"process_speedup", "process wall", "× default", 2},
             {"paper_default_ms", "paper default", "ms", 0},
             {"paper_cache_ms", "paper cache", "ms", 0},
             {"paper_speedup", "paper", "× default", 2}},
            {}};
}

bench::Cell paper(const Program &program, double value) {
    return program.paper_cache_ms > 0 ? bench::Cell(value) : bench::Cell("-");
}

// The result of the program when it makes no threads.
std::string serial_checksum(Words command) {
    command.emplace_back("serial");
    const bench::Measured run = bench::run_program(command, {});
    if (run.threads != 0)
        throw bench::Failure(command[0] + " serial: it made threads");
    return run.checksum;
}

void add_program(bench::Table &table, const Program &program, const bench::Options &options) {
    const Words &arguments = options.quick ? program.quick : program.usual;
    Words command = {bench::program_path(program.name)};
    if (command[0].empty())
        throw bench::Failure(std::string("programs/") + program.name + " is not built");
    command.insert(command.end(), arguments.begin(), arguments.end());
    const std::string shown = thrum::shell_line(arguments);
    // At its smallest a program makes so few threads that on a busy machine all may be there before one has ended.
    const bool reuses = program.reuses && !options.quick;
    const auto pairs = bench::run_pairs({program.label, command, serial_checksum(command), reuses},
                                        options.library, options.numbers[0]);
    using bench::kCached, bench::kPlain, bench::Measured;
    const auto speedup = [&](const auto &of) { return pairs.ratio(kPlain, kCached, of); };
    table.rows.push_back({program.label, shown, pairs.of(kPlain, &Measured::threads).median,
                          pairs.of(kPlain, &Measured::wall_ms), pairs.of(kCached, &Measured::wall_ms),
                          speedup(&Measured::wall_ms), pairs.of(kPlain, &Measured::process_cpu_ms).median,
                          pairs.of(kCached, &Measured::process_cpu_ms).median,
                          speedup(&Measured::process_cpu_ms), speedup(&Measured::process_wall_ms),
                          paper(program, program.paper_default_ms), paper(program, program.paper_cache_ms),
                          paper(program, program.paper_default_ms / program.paper_cache_ms)});
}

void body(const bench::Options &options) {
    bench::Report report(options);
    bench::Table table = empty_table();
    for (const Program &program : programs())
        add_program(table, program, options);
    report.note("× default: times less time than without the library; below 1 the cache loses.");
    report.note("wall: of the work, as the paper's. CPU and process wall: of the process from start to end.");
    report.note(
        "paper: 72 CPUs, Linux 5.4, a cache that does not make used threads fresh; Inncabs' own sizes.");
    report.add(table);
    report.print();
}

} // namespace

int main(int argc, char **argv) {
    return bench::main_of(argc, argv,
                          {"async_programs",
                           "Six programs that use std::async, without and with the cache.",
                           {{"--rounds", "Pairs of runs of each program", 1, 7, 21, 1, 10000}},
                           {}},
                          body);
}
