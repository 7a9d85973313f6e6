// SPDX-License-Identifier: Apache-2.0
//
// Nested parallelism with a library that waits busily: a tiled Cholesky factorisation whose tasks call kernels that teams
// of threads do together, and that end with a barrier which does nothing but look (docs/studies/cholesky.md). By size of the
// matrix, with OS threads and with user-level threads that cooperate, that are preempted, and that come in gangs. Those
// that cooperate never end, which is seen at a time limit. Results are compared with LAPACK's. After Shiina, Iwasaki,
// Taura and Balaji, "Lightweight Preemptive User-Level Threads", PPoPP 2021.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "../casestudy/child.hpp"
#include "../preempt.hpp"
#include "../verdict.hpp"
#include "work.hpp"

namespace {

using namespace cholesky;

constexpr double kPatience = 200;        // s, for what does end
constexpr double kPrecise = 1e-12;       // more is no rounding error
constexpr const char *kStack = "262144"; // bytes of a user-level thread: BLAS has large frames
constexpr const char *kNone = "none";
constexpr double kShortest = 100, kShort = 1000, kLong = 10000; // slices, us
const std::string kFlat = "OS threads, flat", kNested = "OS threads, nested", kJudged = "ULTs, lend, 1 ms";

enum Option { kLeast, kMost, kTile, kWorkers, kOuter, kMembers, kLimit, kSeconds, kRounds };

const std::vector<bench::Column> kColumns = {{"arm", "arm", "", 0},
                                             {"size", "size", "", 0},
                                             {"gflops", "speed", "GFLOP/s", 3},
                                             {"to_flat", "to flat", "x", 3},
                                             {"to_nested", "to nested OS threads", "x", 2},
                                             {"cpu_ms", "CPU time", "ms", 2},
                                             {"preemptions", "preempted", "times", 1},
                                             {"error", "error", "1e-16", 2},
                                             {"outcome", "outcome", "", 0}};

std::string text_of(double slice) {
    return slice == kShortest ? ", 0.1 ms" : slice == kShort ? ", 1 ms" : ", 10 ms";
}

struct Arm {
    std::string name;
    const char *crew;
    const char *mode = kNone; // of preemption
    double slice = kLong;
    bool flat = false;  // no teams: inner parallelism is off
    bool stuck = false; // is not expected to end
};

// Gangs whose members fit beside each other need no preemption.
std::vector<Arm> all_arms(bool gangs_fit) {
    std::vector<Arm> arms = {{kFlat, kOsThreads, kNone, kLong, true},
                             {"ULTs, flat", kUlts, kNone, kLong, true},
                             {kNested, kOsThreads},
                             {"ULTs, cooperative", kUlts, kNone, kLong, false, true},
                             {"ULTs, cooperative, barrier patched", kPatched}};
    arms.push_back({"ULTs, lend" + text_of(kShortest), kUlts, "lend", kShortest});
    for (const double slice : {kShort, kLong})
        for (const char *mode : {"lend", "own-tls", "klt"})
            arms.push_back({std::string("ULTs, ") + mode + text_of(slice), kUlts, mode, slice});
    if (gangs_fit)
        arms.push_back({"gang, cooperative", kGang});
    for (const double slice : {kShortest, kShort, kLong})
        arms.push_back({"gang, lend" + text_of(slice), kGang, "lend", slice});
    return arms;
}

// --- measuring --------------------------------------------------------------------------------------------

// An arm at a size.
struct Line {
    const Arm *arm;
    unsigned size;
    bool killed = false;
};

struct Result {
    double gflops, cpu_ms, preemptions, error;
};

double operations(double size) {
    return size * size * size / 3;
}

class Run {
  public:
    explicit Run(const bench::Options &options)
        : options_(options), arms_(all_arms(option(kMembers) <= option(kWorkers))) {
        for (double size = option(kLeast); size <= option(kMost); size *= 2)
            for (const Arm &arm : arms_)
                lines_.push_back({&arm, static_cast<unsigned>(size)});
    }

    void all() {
        bench::Turns turns{option(kRounds), {}};
        for (const Line &line : lines_)
            turns.variants.push_back(line.arm->name + ", " + std::to_string(line.size));
        rounds_.emplace(turns, [this](std::size_t which, std::size_t) { return measure(&lines_[which]); });
    }

    const std::vector<Line> &lines() const { return lines_; }
    double option(Option which) const { return options_.numbers[which]; }
    const bench::Rounds<Result> &rounds() const { return *rounds_; }
    std::size_t place(const std::string &arm, unsigned size) const {
        return static_cast<std::size_t>(
            std::find_if(lines_.begin(), lines_.end(),
                         [&](const Line &line) { return line.arm->name == arm && line.size == size; }) -
            lines_.begin());
    }

  private:
    std::optional<Result> measure(Line *line) const;
    std::vector<std::string> command(const Line &line) const;

    const bench::Options &options_;
    const std::vector<Arm> arms_;
    std::vector<Line> lines_;
    std::optional<bench::Rounds<Result>> rounds_;
};

std::vector<std::string> Run::command(const Line &line) const {
    std::vector<std::string> words = {line.arm->crew};
    for (const double number : {static_cast<double>(line.size), option(kTile), option(kWorkers),
                                option(kOuter), line.arm->flat ? 1 : option(kMembers)})
        words.push_back(std::to_string(static_cast<unsigned>(number)));
    words.push_back(std::to_string(option(kSeconds)));
    return bench::own_work(words);
}

std::optional<Result> Run::measure(Line *line) const {
    const Arm &arm = *line->arm;
    bench::Environment environment = preempt::armed(options_.library, arm.mode, arm.slice);
    environment.set("THRUM_STACK_SIZE", kStack).set("OPENBLAS_NUM_THREADS", "1").set("OMP_NUM_THREADS", "1");
    casestudy::Child child(command(*line), environment); // that goes with this if it has not ended
    const double limit = arm.stuck ? option(kLimit) : kPatience;
    if (!child.ready(static_cast<int>(limit * 1e3))) {
        line->killed = true;
        return std::nullopt;
    }
    const std::string result = child.line();
    child.wait();
    if (result == preempt::kUnavailable)
        return std::nullopt;
    double ns = 0, cpu_ns = 0, preemptions = 0, error = 0;
    if (std::sscanf(result.c_str(), "%lf %lf %lf %lf", &ns, &cpu_ns, &preemptions, &error) != 4)
        throw bench::Failure("a measuring process says '" + result + "'");
    if (error > kPrecise)
        throw bench::Failure(arm.name + ": a result differs from LAPACK's; the relative error is in '" +
                             result + "'");
    return Result{operations(line->size) / ns, cpu_ns / 1e6, preemptions, error};
}

// --- the table --------------------------------------------------------------------------------------------

std::vector<bench::Cell> row_of(const Run &run, std::size_t which) {
    const Line &line = run.lines()[which];
    const bench::Rounds<Result> &rounds = run.rounds();
    std::vector<bench::Cell> row = {line.arm->name, static_cast<double>(line.size)};
    if (!rounds.has(which)) {
        char killed[64];
        std::snprintf(killed, sizeof killed, "killed after %g s",
                      line.arm->stuck ? run.option(kLimit) : kPatience);
        row.resize(kColumns.size() - 1, "-");
        row.emplace_back(line.killed ? killed : preempt::kUnavailable);
        return row;
    }
    const std::vector<double> errors = rounds.values(which, &Result::error);
    row.insert(row.end(),
               {rounds.of(which, &Result::gflops),
                rounds.ratio(which, run.place(kFlat, line.size), &Result::gflops),
                rounds.ratio(which, run.place(kNested, line.size), &Result::gflops),
                rounds.of(which, &Result::cpu_ms).median, rounds.of(which, &Result::preemptions).median,
                *std::max_element(errors.begin(), errors.end()) * 1e16, "ended"});
    return row;
}

// The paper's claim, at the largest size.
void judge(const Run &run, bench::Verdicts *verdicts, bench::Report *report) {
    const unsigned size = run.lines().back().size;
    const std::size_t judged = run.place(kJudged, size), nested = run.place(kNested, size);
    if (!run.rounds().has(judged) || !run.rounds().has(nested))
        return;
    const bench::Estimate ratio = run.rounds().ratio(judged, nested, &Result::gflops);
    report->note("Target: " + kJudged + ", at least as fast as " + kNested +
                 " at the largest size: " + verdicts->at_least(ratio, 1) + ".");
}

void body(const bench::Options &options) {
    if (std::fmod(options.numbers[kLeast], options.numbers[kTile]) != 0)
        throw bench::Failure("--least is to be a multiple of --tile", bench::Failure::kUsage);
    if (options.numbers[kMost] < options.numbers[kLeast])
        throw bench::Failure("--least is to be no more than --most", bench::Failure::kUsage);
    bench::Report report(options);
    Run run(options);
    run.all();
    bench::Table table{"cholesky", "Tiled Cholesky factorisation, by size of the matrix", kColumns, {}};
    for (std::size_t i = 0; i < run.lines().size(); i++)
        table.rows.push_back(row_of(run, i));
    report.add(table);
    bench::Verdicts verdicts;
    judge(run, &verdicts, &report);
    report.note(
        "Flat: a task does its kernel alone; the other arms split it over a team, which meets at a busy-wait "
        "barrier. The kernels are of the system's BLAS, on one thread each.");
    report.note("The error is the largest of all results to LAPACK's dpotrf, in the Frobenius norm.");
    if (run.option(kMembers) > run.option(kWorkers))
        report.note("Gangs that cooperate are left out: a team has more members than there are workers.");
    bench::conclude(&report, options, verdicts);
}

} // namespace

int main(int argc, char **argv) {
    const double cpus = static_cast<double>(preempt::cpus().size());
    return bench::main_of(
        argc, argv,
        {"cholesky",
         "A tiled Cholesky factorisation whose kernels wait busily, on OS threads and on user-level threads.",
         {{"--least", "The smallest matrix, which is doubled up to the largest", 128, 512, 512, 32, 65536},
          {"--most", "The largest", 256, 2048, 4096, 32, 65536},
          {"--tile", "Rows and columns of a tile", 64, 256, 256, 32, 4096},
          {"--workers", "Workers of user-level threads: as many as CPUs", cpus, cpus, cpus, 1, 256},
          {"--outer", "Tasks at a time: as many as CPUs", cpus, cpus, cpus, 1, 256},
          {"--members", "Members of a team: as many as CPUs", cpus, cpus, cpus, 2, 256},
          {"--limit", "After which cooperating arms are killed, s", 2, 3, 10, 0.1, 3600},
          {"--seconds", "How long each measurement is, at least", 0.02, 0.5, 1, 0, 3600},
          {"--rounds", "Measurements of each row", 1, 7, 15, 1, 1000}},
         {},
         true,
         {bench::kCheck},
         "libthrum.so"},
        body, work);
}
