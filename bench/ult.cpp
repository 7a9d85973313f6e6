// SPDX-License-Identifier: Apache-2.0
//
// What libthrum's operations cost: nanoseconds of CPU and of wall time, with one worker and with two, beside the
// targets that were set for them, and with --peers beside what the same costs in other runtimes, measured in the same
// run in turns. With --armed, what it costs that threads may be preempted: the same where none is,
// whether or not a row gives it a reason to. With --traced, what the event trace costs. peers/workloads.hpp says what
// each row does and what counts as one operation; every number is measured in a process of its own, peers/NAME.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <optional>

#include "rounds.hpp"
#include "tools/text.hpp"
#include "verdict.hpp"

namespace {

constexpr double kNoTarget = 0;

struct Row {
    const char *key, *name;
    double target_cpu_1, target_wall_2; // ns
    bool is_reordered =
        false; // by preemption, or made of the kernel's wake-ups: what changes there is no cost
};

constexpr std::array<Row, 33> kRows = {{
    {"batched", "spawn + join, 1000 at a time", 20, 35},
    {"one", "spawn + join, one at a time", 20, 35},
    {"queued", "spawn queued + join, 1000 at a time", kNoTarget, kNoTarget},
    {"inflight", "spawn + join, 50,000 at a time", kNoTarget, kNoTarget},
    {"detached", "spawn detached", kNoTarget, kNoTarget},
    {"yield2", "yield, two threads", 13, kNoTarget},
    {"yield-in-two", "yield, two threads in two functions", kNoTarget, kNoTarget},
    {"yield4", "yield, four at different call depths", 22, kNoTarget},
    {"roundtrip", "mutex + condition, there and back", 60, 150},
    {"lock", "lock + unlock", 8, kNoTarget},
    {"contended", "lock + unlock, four threads", kNoTarget, kNoTarget},
    {"fib", "fib, a spawn", 20, 10},
    {"skynet", "skynet, a leaf", 18, 9},
    {"flat500", "flat loop, tasks of 500 ns", kNoTarget, 350},
    {"flat1000", "flat loop, tasks of 1 µs", kNoTarget, 600},
    {"flat5000", "flat loop, tasks of 5 µs", kNoTarget, 2650},
    {"flat-queued1000", "flat loop, tasks of 1 µs, queued", kNoTarget, 600},
    {"flat-queued5000", "flat loop, tasks of 5 µs, queued", kNoTarget, 2650},
    {"tasklet", "tasklet: spawn + join, 1000 at a time", 15, kNoTarget},
    {"tasklet-one", "tasklet: spawn + join, one at a time", 15, kNoTarget},
    {"stack", "spawn + join, 1000 at a time, stack of the usual size", kNoTarget, kNoTarget},
    {"stack16384", "the same, stack of 16 KiB", kNoTarget, kNoTarget},
    {"stack1048576", "the same, stack of 1 MiB", kNoTarget, kNoTarget},
    {"stack67108864", "the same, stack of 64 MiB", kNoTarget, kNoTarget},
    {"stack-one", "spawn + join, one at a time, stack of the usual size", kNoTarget, kNoTarget},
    {"stack-one16384", "the same, one at a time, stack of 16 KiB", kNoTarget, kNoTarget},
    {"stack-one1048576", "the same, one at a time, stack of 1 MiB", kNoTarget, kNoTarget},
    {"stack-one67108864", "the same, one at a time, stack of 64 MiB", kNoTarget, kNoTarget},
    {"levels", "spawn + join, 1000 at a time, stealing by levels", kNoTarget, kNoTarget, true},
    {"main-one", "spawn + join by main, which called thrum_init", kNoTarget, kNoTarget},
    {"main-batched", "spawn + join by main, 1000 at a time", kNoTarget, kNoTarget},
    {"outside-one", "spawn + join by a kernel thread, no thrum_init", kNoTarget, kNoTarget, true},
    {"klt-one", "spawn + join by main, mode klt", kNoTarget, kNoTarget, true},
}};
constexpr std::size_t kOwn = 17; // from here on: rows that only libthrum has
constexpr const char *kMemory = "memory", *kLife = "life";
constexpr double kMemoryTarget = 4.3e3, kLeftTarget = 16;

struct Runtime {
    const char *program; // in peers/
    const char *name;
    const char *needs; // to be built
};

constexpr std::array<Runtime, 8> kRuntimes = {{
    {"thrum", "thrum", ""},
    {"boost_fiber", "Boost.Fiber", "libboost-fiber-dev"},
    {"tbb", "oneTBB", "libtbb-dev"},
    {"libgomp", "libgomp", "gcc's OpenMP"},
    {"go", "Go", "golang-go"},
    {"tokio", "tokio", "cargo and crates.io"},
    {"pthreads", "pthreads", ""},
    {"floor", "floor", "x86-64"},
}};
constexpr std::size_t kThrum = 0, kTbb = 2;
constexpr std::size_t kFloor = kRuntimes.size() - 1; // what it would cost without features (floor.h)

// At most so many times what another takes, or libthrum in another row: CPU time with one worker, wall time with two.
struct Limit {
    const char *row;
    unsigned workers;
    std::size_t runtime; // the other
    const char *other_row;
    double limit;
};

// Where the other is not the floor but the limit was set by another peer, that peer took so many floors: the best that were
// studied (docs/reference/ult-benchmarks.md) took 1.96 for one at a time on one worker, 2.05 on two, and 1.67 for many on one.
constexpr std::array<Limit, 20> kLimits = {{
    {"one", 1, kFloor, "one", 1.25},
    {"one", 2, kFloor, "one", 1.15},
    {"main-one", 1, kFloor, "one", 0.8 * 1.96},
    {"main-one", 2, kFloor, "one", 0.6 * 2.05},
    {"outside-one", 1, kThrum, "main-one", 1.15},
    {"outside-one", 2, kThrum, "main-one", 1.15},
    {"klt-one", 1, kThrum, "main-one", 1.15},
    {"batched", 1, kFloor, "batched", 0.85 * 1.67},
    {"batched", 2, kTbb, "batched", 0.6},
    {"main-batched", 1, kFloor, "batched", 0.85 * 1.67},
    {"main-batched", 2, kTbb, "batched", 0.6},
    {"yield2", 1, kFloor, "yield2", 1.2},
    {"roundtrip", 1, kFloor, "roundtrip", 1.15},
    {"roundtrip", 2, kFloor, "roundtrip", 1.15},
    {"fib", 1, kFloor, "fib", 1.2},
    {"fib", 2, kFloor, "fib", 1.2},
    {"skynet", 1, kFloor, "skynet", 1.2},
    {"skynet", 2, kFloor, "skynet", 1.2},
    {"flat1000", 2, kTbb, "flat1000", 1.55},
    {"flat5000", 2, kTbb, "flat5000", 1.09},
}};

std::size_t row_of(const std::string &key) {
    const auto *found =
        std::find_if(kRows.begin(), kRows.end(), [&](const Row &row) { return row.key == key; });
    return static_cast<std::size_t>(found - kRows.begin());
}

// thrum once more, with this in its environment. As runtimes they are behind the others.
struct Variant {
    const char *name, *variable, *value;
    bool leaves_out; // what thrum does unless told: that is what the other has to be compared with
    const char *key, *title, *note; // of the table
};

constexpr std::array<Variant, 2> kVariants = {{
    {"thrum, preemption unused", "THRUM_PREEMPT", "none", true, "ult_armed", "With preemption, to without",
     "With preemption as usual (THRUM_PREEMPT=auto: slices of 10 ms), to THRUM_PREEMPT=none. The ratios are "
     "taken within each round."},
    {"thrum, traced", "THRUM_TRACE", "/dev/null", false, "ult_traced", "With THRUM_TRACE, to without",
     "With THRUM_TRACE: the last 1,000,000 events of each worker are kept, 24 MB, and written to /dev/null "
     "in "
     "the end. The ratios are taken within each round."},
}};
constexpr std::array<unsigned, 2> kWorkers = {1, 2};
constexpr std::size_t kFloorFlag = 4; // in the options' order

// Of one operation, ns; for memory bytes in both.
struct Cost {
    double wall, cpu;
    std::optional<double> left =
        std::nullopt; // of memory: bytes, a second after they were joined; of few none is said

    double left_mib() const { return left.value_or(0) / (1 << 20); }
};

constexpr auto kCpu = &Cost::cpu, kWall = &Cost::wall;

using Key = std::array<std::size_t, 3>; // runtime, row (the two of other units after the others), workers

// Measures all. In a round a row's runtimes are measured one directly after another.
class Run {
  public:
    explicit Run(const bench::Options &options)
        : options_(options), runtimes_(all_runtimes()),
          rounds_(turns(), [this](std::size_t which, std::size_t) {
              return one({runtimes_[which % runtimes_.size()], which / runtimes_.size() / kWorkers.size(),
                          which / runtimes_.size() % kWorkers.size()});
          }) {}

    bench::Estimate estimate(const Key &key, double Cost::*what) const {
        return rounds_.of(place(key), what);
    }
    std::vector<double> ratios(const Key &key, const Key &to, double Cost::*what) const {
        return rounds_.ratios(place(key), place(to), what);
    }
    const bench::Rounds<Cost> &rounds() const { return rounds_; }
    std::size_t place(const Key &key) const {
        const auto runtime = std::find(runtimes_.begin(), runtimes_.end(), key[0]) - runtimes_.begin();
        return (key[1] * kWorkers.size() + key[2]) * runtimes_.size() + static_cast<std::size_t>(runtime);
    }
    // Why it has none; "" if it has, or was not asked.
    std::string why(const Key &key) const {
        const auto found = why_.find(key);
        return found != why_.end() ? found->second : "";
    }
    const std::vector<std::size_t> &runtimes() const { return runtimes_; }
    const std::vector<std::string> &notes() const { return notes_; }

    static bool is_own(std::size_t row) { return row >= kOwn && row < kRows.size(); }
    static bool is_in_a_limit(std::size_t runtime, std::size_t row) {
        return std::any_of(kLimits.begin(), kLimits.end(), [&](const Limit &limit) {
            return limit.runtime == runtime && row_of(limit.other_row) == row;
        });
    }
    static bool is_variant(std::size_t runtime) { return runtime >= kRuntimes.size(); }
    static bool is_thrum(std::size_t runtime) { return runtime == 0 || is_variant(runtime); }
    static std::string row_key(std::size_t row) {
        return row < kRows.size() ? kRows[row].key : row == kRows.size() ? kMemory : kLife;
    }
    static std::string row_name(std::size_t row) {
        return row < kRows.size()    ? kRows[row].name
               : row == kRows.size() ? "resident bytes of a blocked thread"
                                     : "init + fini";
    }

  private:
    std::vector<std::size_t> all_runtimes();
    bench::Turns turns() const;
    bool is_asked(std::size_t runtime, std::size_t row) const {
        const bool for_limits_alone = !options_.flags[0];
        return is_thrum(runtime) || !(is_own(row) || (for_limits_alone && !is_in_a_limit(runtime, row)));
    }
    std::optional<Cost> one(const Key &key);
    static std::string path(std::size_t runtime) {
        return bench::beside(std::string("peers/") + kRuntimes[is_thrum(runtime) ? 0 : runtime].program);
    }
    static std::string name(std::size_t runtime) {
        return is_variant(runtime) ? kVariants[runtime - kRuntimes.size()].name : kRuntimes[runtime].name;
    }

    const bench::Options &options_;
    std::vector<std::string> notes_;
    const std::vector<std::size_t> runtimes_; // thrum is the first, its variants are the last
    std::map<Key, std::string> why_;
    const bench::Rounds<Cost> rounds_;
};

std::vector<std::size_t> Run::all_runtimes() {
    std::vector<std::size_t> all;
    for (std::size_t runtime = 0; runtime < kRuntimes.size(); runtime++) {
        const bool itself = runtime == 0, there = access(path(runtime).c_str(), X_OK) == 0;
        if (itself && !there)
            throw bench::Failure(path(runtime) + " is missing; build it first");
        const bool has_limit = std::any_of(kLimits.begin(), kLimits.end(),
                                           [&](const Limit &limit) { return limit.runtime == runtime; });
        const bool wanted = options_.flags[0] || (options_.flags[kFloorFlag] && has_limit);
        if (itself || (wanted && there))
            all.push_back(runtime);
        else if (wanted)
            notes_.push_back(std::string(kRuntimes[runtime].name) + ": left out, it is not built; it needs " +
                             kRuntimes[runtime].needs + ", and the target bench-peers.");
    }
    for (std::size_t i = 0; i < kVariants.size(); i++)
        if (options_.flags[1 + i])
            all.push_back(kRuntimes.size() + i);
    return all;
}

bench::Turns Run::turns() const {
    bench::Turns turns{options_.numbers[0], {}, runtimes_.size()};
    for (std::size_t row = 0; row < kRows.size() + 2; row++)
        for (const unsigned workers : kWorkers)
            for (const std::size_t runtime : runtimes_)
                turns.variants.push_back(row_key(row) + ", " + thrum::counted(workers, "worker") + ", " +
                                         name(runtime));
    return turns;
}

std::string how_it_ended(int status) {
    return WIFSIGNALED(status) ? "ended by signal " + std::to_string(WTERMSIG(status))
                               : "ended with status " + std::to_string(WEXITSTATUS(status));
}

std::optional<Cost> Run::one(const Key &key) {
    if (!is_asked(key[0], key[1]))
        return std::nullopt;
    const std::string row = row_key(key[1]);
    const double scale = row == kMemory ? options_.numbers[2] / 1e5 : options_.numbers[1];
    bench::Environment environment;
    if (is_thrum(key[0]))
        environment.preload(options_.library);
    if (is_variant(key[0])) {
        const Variant &variant = kVariants[key[0] - kRuntimes.size()];
        environment.set(variant.variable, variant.value);
    }
    const bench::Ended ended = bench::run(
        {path(key[0]), row, std::to_string(kWorkers[key[2]]), std::to_string(scale)}, environment, true);
    double wall = 0, cpu = 0, left = 0;
    if (ended.status == 0 && std::sscanf(ended.output.c_str(), "ns %lf %lf", &wall, &cpu) == 2)
        return Cost{wall, cpu};
    if (const int read = std::sscanf(ended.output.c_str(), "bytes %lf left %lf", &wall, &left);
        ended.status == 0 && read >= 1)
        return Cost{wall, wall, read == 2 ? std::optional(left) : std::nullopt};
    if (ended.status == 0 && ended.output.compare(0, 5, "none ") == 0)
        why_[key] = ended.output.substr(5, ended.output.find('\n') - 5);
    else if (!is_thrum(key[0]))
        why_[key] = "it failed, it " + how_it_ended(ended.status);
    else
        throw bench::Failure("peers/thrum " + row + " " + how_it_ended(ended.status));
    return std::nullopt;
}

// --- tables -----------------------------------------------------------------------------------------------

std::string target(double ns) {
    return ns == kNoTarget ? "" : "<= " + std::to_string(static_cast<int>(ns));
}

bench::Table thrums_own(const Run &run) {
    bench::Table table{"ult",
                       "libthrum, ns an operation, beside the targets",
                       {{"operation", "operation", "", 0},
                        {"cpu_1", "1 worker, CPU", "ns", 1},
                        {"target_cpu_1", "target", "ns", 0},
                        {"wall_1", "wall", "ns", 1},
                        {"cpu_2", "2 workers, CPU", "ns", 1},
                        {"wall_2", "wall", "ns", 1},
                        {"target_wall_2", "target", "ns", 0}},
                       {}};
    for (std::size_t row = 0; row < kRows.size(); row++)
        table.rows.push_back({kRows[row].name, run.estimate({0, row, 0}, kCpu),
                              target(kRows[row].target_cpu_1), run.estimate({0, row, 0}, kWall).median,
                              run.estimate({0, row, 1}, kCpu).median, run.estimate({0, row, 1}, kWall),
                              target(kRows[row].target_wall_2)});
    return table;
}

bench::Table other_units(const Run &run, const bench::Options &options) {
    const std::size_t memory = kRows.size(), life = memory + 1;
    bench::Table table{"ult_other",
                       "libthrum, in other units",
                       {{"operation", "operation", "", 0},
                        {"unit", "", "unit", 0},
                        {"one", "1 worker", "see unit", 1},
                        {"two", "2 workers", "see unit", 1},
                        {"target", "target", "", 0}},
                       {}};
    const auto bytes = [&](std::size_t workers) { return run.estimate({0, memory, workers}, kWall).median; };
    const auto us = [&](std::size_t workers, double Cost::*what) {
        return run.estimate({0, life, workers}, what).median / 1e3;
    };
    table.rows.push_back(
        {"resident memory of a blocked thread, of " + std::to_string(static_cast<long>(options.numbers[2])),
         "bytes", bytes(0), bytes(1), target(kMemoryTarget)});
    const auto left = [&](std::size_t workers) {
        return run.rounds().of(run.place({0, memory, workers}), &Cost::left_mib).median;
    };
    if (run.rounds().samples(run.place({0, memory, 0})).front().left)
        table.rows.push_back({"what is left of them a second after they were joined", "MiB", left(0), left(1),
                              target(kLeftTarget)});
    table.rows.push_back({"init + fini, CPU", "µs", us(0, kCpu), us(1, kCpu), ""});
    table.rows.push_back({"init + fini, wall", "µs", us(0, kWall), us(1, kWall), ""});
    return table;
}

// All runtimes, of each what is compared: CPU time with one worker, wall time with two.
bench::Table compared(const Run &run, std::size_t workers, double Cost::*what, const char *key,
                      const char *title) {
    bench::Table table{key, title, {{"operation", "operation", "", 0}}, {}};
    for (const std::size_t runtime : run.runtimes())
        if (!Run::is_variant(runtime))
            table.columns.push_back({kRuntimes[runtime].program, kRuntimes[runtime].name, "ns", 1});
    for (std::size_t row = 0; row < kRows.size() + 2; row++) {
        if (Run::is_own(row))
            continue;
        table.rows.push_back({Run::row_name(row)});
        for (const std::size_t runtime : run.runtimes())
            if (!Run::is_variant(runtime))
                table.rows.back().push_back(
                    run.rounds().has(run.place({runtime, row, workers}))
                        ? bench::Cell(run.estimate({runtime, row, workers}, what).median)
                        : "-");
    }
    return table;
}

// To the same without.
std::vector<double> ratios_of(const Run &run, std::size_t variant, std::size_t row, std::size_t workers,
                              double Cost::*what) {
    const Key varied = {kRuntimes.size() + variant, row, workers}, usual = {0, row, workers};
    return kVariants[variant].leaves_out ? run.ratios(usual, varied, what) : run.ratios(varied, usual, what);
}

// Preemption must cost nothing where it has nothing to do. Starting it is no such row, nor one that it reorders.
bool is_to_be_equal(std::size_t variant, std::size_t row) {
    return kVariants[variant].leaves_out && row <= kRows.size() &&
           !(row < kRows.size() && kRows[row].is_reordered);
}

bench::Table ratios(const Run &run, std::size_t variant, double limit, bench::Verdicts *verdicts) {
    constexpr std::size_t kVerdicts = 2 * kRows.size();
    bench::Table table{kVariants[variant].key,
                       kVariants[variant].title,
                       {{"operation", "operation", "", 0},
                        {"cpu_1", "1 worker, CPU", "x", 3},
                        {"wall_1", "wall", "x", 3},
                        {"cpu_2", "2 workers, CPU", "x", 3},
                        {"wall_2", "wall", "x", 3}},
                       {}};
    if (kVariants[variant].leaves_out) {
        table.columns.push_back({"verdict_cpu_1", "1 worker, CPU", "verdict", 0});
        table.columns.push_back({"verdict_wall_2", "2 workers, wall", "verdict", 0});
    }
    for (std::size_t row = 0; row < kRows.size() + 2; row++) {
        const auto of = [&](std::size_t workers, double Cost::*what, std::size_t cases = 1) {
            return bench::estimate(ratios_of(run, variant, row, workers, what), cases);
        };
        table.rows.push_back({Run::row_name(row), of(0, kCpu), of(0, kWall), of(1, kCpu), of(1, kWall)});
        if (is_to_be_equal(variant, row))
            for (const bench::Estimate &judged : {of(0, kCpu, kVerdicts), of(1, kWall, kVerdicts)})
                table.rows.back().emplace_back(verdicts->at_most(judged, limit));
        table.rows.back().resize(table.columns.size(), "-");
    }
    return table;
}

bench::Table limits(const Run &run, double times, bench::Verdicts *verdicts) {
    bench::Table table{"ult_limits",
                       "By the limits: one worker, CPU time; two workers, wall time",
                       {{"operation", "operation", "", 0},
                        {"thrum", "thrum", "ns", 1},
                        {"beside", "beside", "", 0},
                        {"other", "the other", "ns", 1},
                        {"ratio", "ratio", "x", 2},
                        {"limit", "limit", "x", 2},
                        {"verdict", "limit", "verdict", 0}},
                       {}};
    for (const Limit &limit : kLimits) {
        const std::size_t workers = limit.workers - 1, other_row = row_of(limit.other_row);
        const Key ours = {kThrum, row_of(limit.row), workers}, other = {limit.runtime, other_row, workers};
        const auto what = limit.workers == 1 ? kCpu : kWall;
        const auto &measured = run.runtimes();
        if (std::find(measured.begin(), measured.end(), limit.runtime) == measured.end() ||
            !run.rounds().has(run.place(other)))
            continue; // a note says so
        const std::vector<double> ratios = run.ratios(ours, other, what);
        table.rows.push_back(
            {kRows[ours[1]].name + (", " + thrum::counted(limit.workers, "worker")),
             run.estimate(ours, what).median,
             limit.runtime == kThrum ? "thrum, by main" : std::string(kRuntimes[limit.runtime].name),
             run.estimate(other, what).median, bench::estimate(ratios), times * limit.limit,
             verdicts->at_most(bench::estimate(ratios, kLimits.size()), times * limit.limit)});
    }
    return table;
}

// One line for each runtime and reason: what it cannot do, or did not.
void explain_gaps(const Run &run, bench::Report *report) {
    for (const std::size_t runtime : run.runtimes()) {
        if (Run::is_variant(runtime))
            continue;
        std::map<std::string, std::string> rows_of;
        for (std::size_t row = 0; row < kRows.size() + 2; row++)
            for (std::size_t workers = 0; workers < kWorkers.size() && !Run::is_own(row); workers++) {
                const std::string why = run.why({runtime, row, workers});
                std::string &rows = rows_of[why];
                if (!why.empty() && rows.find(Run::row_name(row)) == std::string::npos)
                    rows += (rows.empty() ? "" : "; ") + Run::row_name(row);
            }
        for (const auto &[why, rows] : rows_of)
            if (!why.empty())
                report->note(std::string(kRuntimes[runtime].name) + " cannot, since " + why + ": " + rows +
                             ".");
    }
}

void compare(const Run &run, bench::Report *report) {
    report->add(compared(run, 0, kCpu, "peers_1", "One worker, CPU time"));
    report->add(compared(run, 1, kWall, "peers_2", "Two workers, wall time"));
    explain_gaps(run, report);
    report->note("Not quite the same: oneTBB, libgomp and tokio have tasks without stacks; libgomp with one "
                 "thread runs "
                 "a task at once, as a call, and beyond 64 queued for each thread likewise.");
    report->note(
        "fib is of 30, of Boost.Fiber 24, Go and tokio 27, pthreads 16; skynet has 1,000,000 leaves, of "
        "Boost.Fiber 100,000, pthreads 1,000; at most 20,000 Boost fibers and 5,000 pthreads are in flight.");
    report->note(
        "pthreads: so many workers are so many CPUs that the process may use. Memory: without the kernel's.");
}

void body(const bench::Options &options) {
    if (options.check && !options.flags[1] && !options.flags[kFloorFlag])
        throw bench::Failure("--check wants --armed or --floor, whose ratios it is about",
                             bench::Failure::kUsage);
    bench::Verdicts verdicts;
    bench::Report report(options);
    const Run run(options);
    report.add(thrums_own(run));
    report.add(other_units(run, options));
    if (options.flags[0])
        compare(run, &report);
    for (std::size_t i = 0; i < kVariants.size(); i++)
        if (options.flags[1 + i]) {
            report.add(ratios(run, i, options.numbers[3], &verdicts));
            report.note(kVariants[i].note);
        }
    if (options.flags[1])
        report.note("The aim: with preemption at most 1.03, but for what it reorders, and for starting it.");
    if (options.flags[kFloorFlag]) {
        report.add(limits(run, options.numbers[4], &verdicts));
        report.note("The floor is a runtime without features (bench/floor.h). The ratios are taken within "
                    "each round.");
    }
    for (const std::string &note : run.notes())
        report.note(note);
    bench::conclude(&report, options, verdicts);
}

} // namespace

int main(int argc, char **argv) {
    return bench::main_of(
        argc, argv,
        {"ult",
         "What spawning, joining, switching and waiting cost in libthrum, beside the targets and, with "
         "--peers, beside other runtimes.",
         {{"--rounds", "Measurements of each row", 2, 7, 15, 1, 1000},
          {"--length", "How long each is, times 0.15 s", 0.05, 1, 1, 0.01, 100},
          {"--blocked", "Threads that are blocked to see their memory", 2000, 100000, 1000000, 100, 1000000},
          {"--armed-limit", "Limit of the ratios of --armed", 1.03, 1.03, 1.03, 1e-6, 1e6},
          {"--floor-limits", "Times each limit of --floor", 1, 1, 1, 1e-6, 1e6}},
         {},
         true,
         {bench::Flag{"--peers", "Measure the other runtimes too, those that are built (target bench-peers)"},
          bench::Flag{"--armed", "Measure it without preemption too, and compare"},
          bench::Flag{"--traced", "Measure it with the event trace too, and compare"},
          bench::Flag{bench::kCheck.option, "With --armed or --floor: end with status 3 if a ratio is above "
                                            "its limit, undecided ones aside"},
          bench::Flag{"--floor",
                      "Measure what a runtime without features takes, and oneTBB if it is built, and "
                      "compare with the limits"}},
         "libthrum.so"},
        body);
}
