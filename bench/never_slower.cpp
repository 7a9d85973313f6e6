// SPDX-License-Identifier: Apache-2.0
//
// Programs whose threads compute for long must not be slower with the cache: there is little to gain, while a thread
// that is woken in the wrong place costs much. Compares pairs of runs of programs/longjobs and says for each line
// whether the ratio time(cache) / time(default) keeps the limit: kept if all of the 95 % interval of its median is
// below, missed if all of it is above, else undecided, which more --rounds settle. With --check it ends with status 3
// where wall time misses it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "pairs.hpp"
#include "verdict.hpp"

namespace {

constexpr unsigned kThreads[] = {1, 2, 4, 16};
constexpr double kJobs[] = {0.1, 1, 5, 50};   // ms of CPU time
constexpr double kDetachedJobs[] = {0.02, 2}; // as well

struct Line {
    std::string how;
    unsigned threads; // at once
    double job_ms;
    unsigned rounds;
    std::vector<std::string> words;
};

struct Settings {
    double pairs;
    double run_ms; // CPU time of a run, at least: there are no fewer than two rounds, or nothing is reused
    double longest_ms, iterations_per_ms;

    std::string iterations(double ms) const {
        return std::to_string(static_cast<unsigned long>(ms * iterations_per_ms));
    }
    unsigned rounds(double round_ms) const {
        return static_cast<unsigned>(std::max(std::ceil(run_ms / round_ms), 2.0));
    }
};

Line joined(const Settings &settings, unsigned threads, double job_ms, bool creator_computes) {
    const unsigned rounds = settings.rounds(job_ms * (threads + (creator_computes ? 1 : 0)));
    Line line{creator_computes ? "creator computes, joins at the end" : "joined in order",
              threads,
              job_ms,
              rounds,
              {"joined", std::to_string(threads), settings.iterations(job_ms), std::to_string(rounds)}};
    if (creator_computes)
        line.words.push_back(settings.iterations(job_ms));
    return line;
}

// As many as make reuse certain, since 64 may be unfinished.
Line detached(const Settings &settings, double job_ms) {
    const unsigned threads = std::max(settings.rounds(2 * job_ms), 130u);
    const std::string iterations = settings.iterations(job_ms);
    return {"detached, creator computes",
            1,
            job_ms,
            threads,
            {"detached", iterations, std::to_string(threads), iterations}};
}

std::vector<Line> lines(const Settings &settings) {
    std::vector<Line> list;
    for (const double job_ms : kJobs)
        for (const unsigned threads : kThreads)
            for (const bool creator_computes : {false, true})
                if (job_ms <= settings.longest_ms)
                    list.push_back(joined(settings, threads, job_ms, creator_computes));
    for (const double job_ms : kDetachedJobs)
        if (job_ms <= settings.longest_ms)
            list.push_back(detached(settings, job_ms));
    return list;
}

double calibrate(const std::string &program) {
    const std::string answer = bench::run({program, "calibrate"}, {}, true).output;
    const double iterations = std::strtod(answer.c_str(), nullptr);
    if (!(iterations > 1000))
        throw bench::Failure(program + " calibrate: '" + answer + "' iterations per millisecond?");
    return iterations;
}

bench::Table empty_table() {
    return {"never_slower",
            std::string("Threads that compute") + bench::kMedians,
            {{"how", "threads", "", 0},
             {"threads", "at once", "", 0},
             {"job_ms", "job", "ms", 2},
             {"rounds", "rounds", "", 0},
             {"default_ms", "default", "ms", 1},
             {"wall_ratio", "wall", "cache/default", 3},
             {"wall_verdict", "wall", "verdict", 0},
             {"default_cpu_ms", "default CPU", "ms", 1},
             {"cpu_ratio", "CPU", "cache/default", 3},
             {"cpu_verdict", "CPU", "verdict", 0}},
            {}};
}

void body(const bench::Options &options) {
    const std::string program = bench::program_path("longjobs");
    if (program.empty())
        throw bench::Failure("programs/longjobs is not built");
    const Settings settings{options.numbers[0], options.numbers[1], options.numbers[2], calibrate(program)};
    bench::Report report(options);
    bench::Table table = empty_table();
    bench::Verdicts wall, cpu;
    const double limit = options.numbers[3];
    for (const Line &line : lines(settings)) {
        std::vector<std::string> command = {program};
        command.insert(command.end(), line.words.begin(), line.words.end());
        char label[100];
        std::snprintf(label, sizeof label, "%u × %g ms %s", line.threads, line.job_ms, line.how.c_str());
        const auto pairs = bench::run_pairs({label, command, bench::run_program(command, {}).checksum, true},
                                            options.library, settings.pairs);
        const auto ratio = [&](const auto &of) { return pairs.ratio(bench::kCached, bench::kPlain, of); };
        const auto plain = [&](const auto &of) { return pairs.of(bench::kPlain, of).median; };
        const bench::Estimate wall_ratio = ratio(&bench::Measured::wall_ms),
                              cpu_ratio = ratio(&bench::Measured::cpu_ms);
        table.rows.push_back({line.how, static_cast<double>(line.threads), line.job_ms,
                              static_cast<double>(line.rounds), plain(&bench::Measured::wall_ms), wall_ratio,
                              wall.at_most(wall_ratio, limit), plain(&bench::Measured::cpu_ms), cpu_ratio,
                              cpu.at_most(cpu_ratio, limit)});
    }
    report.note("A job of a millisecond is " + settings.iterations(1) +
                " iterations, in both halves of a pair.");
    if (settings.pairs < 30)
        report.note("Fewer than 30 pairs: the verdicts say little.");
    report.add(table);
    bench::conclude(&report, options, {{wall, "wall time"}, {cpu, "CPU time", false}});
}

} // namespace

int main(int argc, char **argv) {
    return bench::main_of(
        argc, argv,
        {"never_slower",
         "Threads that compute for 20 µs to 50 ms: whether the cache makes a program slower.",
         {{"--rounds", "Pairs of runs of each line", 1, 30, 101, 1, 10000},
          {"--run-ms", "CPU time of a run, at least", 2, 100, 200, 0.1, 100000},
          {"--longest", "Longest job in milliseconds; lines with longer ones are left out", 1, 50, 50, 0.02,
           1000},
          {"--limit", "Limit of the ratio", 1.02, 1.02, 1.02, 1e-6, 1e6}},
         {},
         true,
         {bench::kCheck}},
        body);
}
