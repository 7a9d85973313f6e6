// SPDX-License-Identifier: Apache-2.0
//
// OpenMP's parallel regions through an unmodified libgomp, where it makes threads all the time
// (programs/openmp.cpp says when), without and with the cache. The library is GNU's, so this needs a build by
// gcc. libgomp's threads spin before they sleep, by default for long where it believes to have the CPUs for
// itself: on a busy machine OMP_WAIT_POLICY=passive in the environment gives steadier numbers.
#include <cstdlib>
#include <string>

#include "pairs.hpp"

namespace {

struct Mode {
    const char *label, *name;
    double share; // of the regions, so that each takes about as long
};

constexpr Mode kModes[] = {{"teams of 2 and 8 in turns", "alternate", 0.5},
                           {"4, entered from new threads", "entered", 1},
                           {"2 × 4 nested", "nested", 0.1}};

bench::Table empty_table() {
    return {"openmp",
            std::string("One parallel region through libgomp") + bench::kMedians,
            {{"mode", "region", "", 0},
             {"regions", "regions", "", 0},
             {"default_us", "default", "µs/region", 1},
             {"cache_us", "cache", "µs/region", 1},
             {"wall_ratio", "wall", "cache/default", 3},
             {"default_cpu_us", "default CPU", "µs/region", 1},
             {"cache_cpu_us", "cache CPU", "µs/region", 1},
             {"cpu_ratio", "CPU", "cache/default", 3},
             {"created", "kernel threads", "made with cache", 0}},
            {}};
}

void add_mode(bench::Table &table, const Mode &mode, const std::string &program,
              const bench::Options &options) {
    const auto regions = static_cast<unsigned long>(options.numbers[1] * mode.share + 1);
    const std::vector<std::string> command = {program, mode.name, std::to_string(regions)};
    const std::string checksum = bench::run_program(command, {}).checksum;
    const auto pairs =
        bench::run_pairs({mode.label, command, checksum, true}, options.library, options.numbers[0]);
    const auto us_each = [&](std::size_t variant, const auto &of) {
        return pairs.of(variant, of).median * 1e3 / static_cast<double>(regions);
    };
    const auto wall = &bench::Measured::wall_ms;
    const auto cpu = &bench::Measured::cpu_ms;
    table.rows.push_back({mode.label, static_cast<double>(regions), us_each(bench::kPlain, wall),
                          us_each(bench::kCached, wall), pairs.ratio(bench::kCached, bench::kPlain, wall),
                          us_each(bench::kPlain, cpu), us_each(bench::kCached, cpu),
                          pairs.ratio(bench::kCached, bench::kPlain, cpu),
                          pairs.of(bench::kCached, &bench::Measured::created).median});
}

void body(const bench::Options &options) {
    bench::Report report(options);
    const std::string program = bench::program_path("openmp");
    if (program.empty()) {
        report.note("programs/openmp is not built (it takes gcc and libgomp): nothing measured");
        return report.print();
    }
    bench::Table table = empty_table();
    for (const Mode &mode : kModes)
        add_mode(table, mode, program, options);
    const char *policy = std::getenv("OMP_WAIT_POLICY");
    report.note(std::string("OMP_WAIT_POLICY: ") + (policy != nullptr ? policy : "not set, which is usual"));
    report.note("cache/default: below 1 the cache is faster.");
    report.add(table);
    report.print();
}

} // namespace

int main(int argc, char **argv) {
    return bench::main_of(argc, argv,
                          {"openmp",
                           "Parallel regions for which libgomp makes threads, without and with the cache.",
                           {{"--rounds", "Pairs of runs of each kind of region", 1, 15, 51, 1, 10000},
                            {"--regions", "Regions a run; half as many where teams change, a tenth nested",
                             40, 1000, 4000, 4, 10000000}},
                           {}},
                          body);
}
