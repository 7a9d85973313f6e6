// SPDX-License-Identifier: Apache-2.0
//
// A server whose requests take 10 us or 10 ms: how long the short ones wait for the long ones, without and with
// preemption, and beside one request that never ends. docs/studies/tail-latency.md is the story.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "latency.hpp"
#include "preempt.hpp"
#include "schedule.hpp"
#include "serve.hpp"
#include "source.hpp"
#include "tools/text.hpp"
#include "work.hpp"

namespace {

using namespace tail;

// --- the arms -----------------------------------------------------------------------------------------------

struct Arm {
    const char *name;
    const char
        *crew; // of serve.hpp; "goroutines", "reused": the other program, and "threads" on libthrum-cache.so
    const char *preempt; // THRUM_PREEMPT
    unsigned slice_us;
};

constexpr Arm kCooperative = {"ULTs, cooperative", "ults", "none", 0},
              kSlice1000 = {"ULTs, slices of 1 ms", "ults", "lend", 1000},
              kSlice100 = {"ULTs, slices of 100 us", "ults", "lend", 100},
              kSlice50 = {"ULTs, slices of 50 us", "ults", "lend", 50},
              kPriorities = {"ULTs, short ones first", "priorities", "lend", 1000},
              kGo = {"goroutines", "goroutines", "", 0}, kThreads = {"OS threads", "threads", "", 0},
              kReused = {"OS threads, reused", "reused", "", 0};

constexpr Arm kByLoad[] = {kCooperative, kSlice1000, kSlice100, kSlice50,
                           kPriorities,  kGo,        kThreads,  kReused};
constexpr double kLoads[] = {20, 40, 60, 80}; // % of what the CPUs can do
constexpr Arm kBesideRunaway[] = {kCooperative, kSlice1000, kSlice100, kPriorities, kGo, kThreads};
constexpr Arm kAloneWithRunaway[] = {kCooperative, kSlice1000, kSlice100, kPriorities, kGo}; // on one worker
constexpr double kLoadBesideRunaway = 40;

bool is(const Arm &arm, const char *crew) {
    return std::string(arm.crew) == crew;
}

std::string go_program() {
    return bench::beside("tail/go");
}

std::string cache_library() {
    const std::string path = bench::beside("../lib/libthrum-cache.so");
    if (access(path.c_str(), R_OK) != 0) // the loader would continue without it
        throw bench::Failure(path + ": " + std::strerror(errno) + "; build it first");
    return path;
}

// --- the settings -------------------------------------------------------------------------------------------

enum {
    kRounds,
    kSeconds,
    kWorkers,
    kShort,
    kLong,
    kLongPercent,
    kSeed,
    kStandsFor,
    kDisturbed
}; // in options.numbers

struct Settings {
    const bench::Options &options;
    double steps_per_us;

    double number(unsigned which) const { return options.numbers[which]; }
    Mix mix() const { return {number(kShort), number(kLong), number(kLongPercent) / 100}; }
};

// As many as there are, but no more than one source can keep busy.
unsigned usual_workers() {
    constexpr std::size_t kFew = 4;
    return static_cast<unsigned>(std::min(preempt::cpus().size(), kFew));
}

// This process and the servers: else OS threads would have more CPUs than there are workers.
void stay_on(unsigned workers) {
    const std::vector<int> cpus = preempt::cpus();
    cpu_set_t few;
    CPU_ZERO(&few);
    for (std::size_t i = 0; i < std::min<std::size_t>(workers, cpus.size()); i++)
        CPU_SET(cpus[i], &few);
    preempt::check(sched_setaffinity(0, sizeof few, &few) != 0 ? errno : 0, "sched_setaffinity");
}

// The most that was seen: whatever comes in between takes time.
double steps_per_us() {
    constexpr std::uint64_t kSteps = 500000;
    constexpr int kTries = 40;
    double most = 0;
    for (int i = 0; i < kTries; i++) {
        const std::uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        compute(kSteps);
        const auto ns = static_cast<double>(clock_ns(CLOCK_THREAD_CPUTIME_ID) - before);
        most = std::max(most, static_cast<double>(kSteps) / ns * 1e3);
    }
    return most;
}

// --- a trial ------------------------------------------------------------------------------------------------

constexpr double kShares[] = {0.5, 0.99, 0.999};
constexpr std::size_t kPercentiles = std::size(kShares);

struct Trial {
    Arm arm;
    double load; // %, of so many workers
    unsigned workers;
    bool runaway;

    // A server without preemption has lost its only worker: its answers are not waited for.
    bool stands_still() const { return runaway && workers == 1 && is(arm, "ults") && arm.slice_us == 0; }
};

struct Result {
    double of_short[kPercentiles], of_long[kPercentiles]; // us
    double per_second, cpu, late, others, answered, reused;
};

std::vector<Order> orders_of(const Settings &settings, const Trial &trial, std::uint64_t seed) {
    const Mix mix = settings.mix();
    const double rate = rate_per_second(mix, trial.load / 100, trial.workers);
    const std::vector<Arrival> arrivals = schedule(mix, rate, settings.number(kSeconds), seed);
    std::vector<Order> orders;
    if (trial.runaway)
        orders.push_back({arrivals.size(), 0, kRunaway, 0});
    for (std::size_t i = 0; i < arrivals.size(); i++) {
        const double us = arrivals[i].is_long ? mix.long_us : mix.short_us;
        orders.push_back({i, arrivals[i].offset_ns, static_cast<std::uint64_t>(us * settings.steps_per_us),
                          arrivals[i].is_long ? 0U : 1U});
    }
    return orders;
}

bench::Environment environment_of(const Settings &settings, const Trial &trial) {
    bench::Environment environment;
    const std::string workers = std::to_string(trial.workers);
    if (is(trial.arm, "goroutines"))
        environment.set("GOMAXPROCS", workers);
    else if (is(trial.arm, "reused"))
        environment.preload(cache_library());
    else if (!is(trial.arm, "threads"))
        environment.preload(settings.options.library)
            .set("THRUM_WORKERS", workers)
            .set("THRUM_PREEMPT", trial.arm.preempt);
    if (trial.arm.slice_us != 0)
        environment.set("THRUM_SLICE", std::to_string(trial.arm.slice_us));
    return environment;
}

std::vector<std::string> command_of(const Trial &trial, std::size_t count, double patience) {
    std::vector<std::string> command;
    if (is(trial.arm, "goroutines"))
        command = {go_program()};
    else
        command = bench::own_work({is(trial.arm, "reused") ? "threads" : trial.arm.crew});
    command.insert(command.end(), {std::to_string(count), std::to_string(patience)});
    return command;
}

double work_ns(const Settings &settings, const std::vector<Order> &orders) {
    double steps = 0;
    for (const Order &order : orders)
        steps += order.steps != kRunaway ? static_cast<double>(order.steps) : 0;
    return steps / settings.steps_per_us * 1e3;
}

// When the last answer was given.
double seconds_taken(const Outcome &outcome) {
    std::uint64_t last = outcome.begun_ns;
    for (const Answer &answer : outcome.answers)
        last = std::max(last, answer.done_ns);
    return static_cast<double>(last - outcome.begun_ns) / 1e9;
}

void check_outcome(const Trial &trial, const Outcome &outcome) {
    const std::size_t missing = outcome.answers.size() - answered(outcome.answers);
    if (missing > 0 && !trial.stands_still())
        throw bench::Failure(std::string(trial.arm.name) + ": " + std::to_string(missing) + " of " +
                             std::to_string(outcome.answers.size()) + " requests were not answered");
}

Result result_of(const Settings &settings, const Outcome &outcome) {
    constexpr double kWarmUp = 0.1; // of the time, not in the percentiles
    const auto since =
        outcome.begun_ns + static_cast<std::uint64_t>(settings.number(kSeconds) * kWarmUp * 1e9);
    Latencies found = latencies(outcome.orders, outcome.answers, since);
    if (found.of_short.empty() || found.of_long.empty())
        throw bench::Failure(
            "no short request, or no long one, in so short a time: --seconds makes it longer");
    Result result{};
    for (std::size_t i = 0; i < kPercentiles; i++) {
        result.of_short[i] = bench::quantile(&found.of_short, kShares[i]);
        result.of_long[i] = bench::quantile(&found.of_long, kShares[i]);
    }
    std::vector<double> late = outcome.late_us;
    result.late = bench::quantile(&late, 0.99);
    result.others = outcome.others * 100;
    const auto all = static_cast<double>(outcome.answers.size()),
               done = static_cast<double>(answered(outcome.answers));
    result.answered = done / all * 100;
    result.reused = static_cast<double>(outcome.summary.reused) / all * 100;
    result.per_second = done > 0 ? done / seconds_taken(outcome) : 0;
    result.cpu = static_cast<double>(outcome.summary.cpu_ns) / work_ns(settings, outcome.orders);
    return result;
}

// Again, if other processes took too much of the CPUs meanwhile; the least disturbed counts.
std::optional<Result> run(const Settings &settings, std::uint64_t seed, const Trial &trial) {
    constexpr double kLongEnough = 60; // s
    constexpr int kTries = 5;
    const std::vector<Order> orders = orders_of(settings, trial, seed);
    const std::size_t count = orders.size() - (trial.runaway ? 1 : 0);
    const double patience = trial.stands_still() ? settings.number(kStandsFor) : kLongEnough;
    const auto measure = [&] {
        Outcome outcome =
            drive(command_of(trial, count, patience), environment_of(settings, trial), orders, count);
        if (outcome.available)
            check_outcome(trial, outcome);
        return outcome;
    };
    Outcome best = measure();
    for (int i = 1; i < kTries && best.available && best.others * 100 > settings.number(kDisturbed); i++)
        if (Outcome outcome = measure(); outcome.others < best.others)
            best = std::move(outcome);
    return best.available ? std::optional(result_of(settings, best)) : std::nullopt;
}

bench::Rounds<Result> run_all(const Settings &settings, const std::vector<Trial> &trials) {
    bench::Turns turns{settings.number(kRounds), {}};
    for (const Trial &trial : trials)
        turns.variants.emplace_back(trial.arm.name);
    return bench::Rounds<Result>(turns, [&](std::size_t which, std::size_t round) {
        return run(settings, static_cast<std::uint64_t>(settings.number(kSeed)) + round, trials[which]);
    });
}

template <std::size_t N>
void add(const Arm (&arms)[N], double load, unsigned workers, bool runaway, std::vector<Trial> *trials) {
    for (const Arm &arm : arms)
        if (!is(arm, "goroutines") || access(go_program().c_str(), X_OK) == 0)
            trials->push_back({arm, load, workers, runaway});
}

// --- the tables ---------------------------------------------------------------------------------------------

bench::Cell latency_cell(const std::vector<double> &us, double unit) {
    bench::Estimate estimate = bench::estimate(us);
    if (std::isinf(estimate.median))
        return "never";
    return bench::Estimate{estimate.median / unit, estimate.low / unit, estimate.high / unit};
}

const std::vector<bench::Column> kLatencies = {
    {"short_p50", "short: median", "us", 1}, {"short_p99", "99 %", "us", 0},
    {"short_p999", "99.9 %", "us", 0},       {"long_p50", "long: median", "ms", 2},
    {"long_p99", "99 %", "ms", 1},           {"long_p999", "99.9 %", "ms", 1},
};

// "not available", and dashes, where there is nothing.
void add_latencies(const bench::Rounds<Result> &results, std::size_t which, std::vector<bench::Cell> *row) {
    if (!results.has(which)) {
        row->emplace_back(preempt::kUnavailable);
        row->insert(row->end(), 2 * kPercentiles - 1, "-");
        return;
    }
    constexpr double kUs = 1, kMs = 1000;
    for (std::size_t i = 0; i < kPercentiles; i++)
        row->push_back(latency_cell(
            results.values(which, [i](const Result &result) { return result.of_short[i]; }), kUs));
    for (std::size_t i = 0; i < kPercentiles; i++)
        row->push_back(latency_cell(
            results.values(which, [i](const Result &result) { return result.of_long[i]; }), kMs));
}

bench::Cell median(const bench::Rounds<Result> &results, std::size_t which, double Result::*what) {
    return results.has(which) ? bench::Cell(results.of(which, what).median) : "-";
}

bench::Table table_by_load(const std::vector<Trial> &trials, const bench::Rounds<Result> &results) {
    bench::Table table{"tail",
                       "Latency by load: from the moment for which a request was planned to its answer",
                       {{"arm", "each request", "", 0}, {"load", "load", "%", 0}},
                       {}};
    table.columns.insert(table.columns.end(), kLatencies.begin(), kLatencies.end());
    table.columns.insert(table.columns.end(), {{"per_s", "answered", "/s", 0},
                                               {"cpu", "CPU time, to work", "x", 3},
                                               {"late", "sent late, 99 %", "us", 1},
                                               {"others", "other processes", "%", 1}});
    for (std::size_t i = 0; i < trials.size(); i++) {
        const Trial &trial = trials[i];
        if (trial.runaway)
            continue;
        std::vector<bench::Cell> row = {trial.arm.name, trial.load};
        add_latencies(results, i, &row);
        for (const auto what : {&Result::per_second, &Result::cpu, &Result::late, &Result::others})
            row.push_back(median(results, i, what));
        table.rows.push_back(row);
    }
    return table;
}

bench::Table table_of_runaway(const std::vector<Trial> &trials, const bench::Rounds<Result> &results) {
    bench::Table table{"runaway",
                       "The same beside a request that never ends",
                       {{"arm", "each request", "", 0},
                        {"workers", "workers", "number", 0},
                        {"load", "load", "%", 0},
                        {"answered", "answered", "%", 1}},
                       {}};
    table.columns.insert(table.columns.end(), kLatencies.begin(), kLatencies.end());
    table.columns.push_back({"others", "other processes", "%", 1});
    for (std::size_t i = 0; i < trials.size(); i++) {
        const Trial &trial = trials[i];
        if (!trial.runaway)
            continue;
        std::vector<bench::Cell> row = {trial.arm.name, static_cast<double>(trial.workers), trial.load,
                                        median(results, i, &Result::answered)};
        add_latencies(results, i, &row);
        row.push_back(median(results, i, &Result::others));
        table.rows.push_back(row);
    }
    return table;
}

// In a burst there is no thread to reuse yet.
std::string share_of_reused(const std::vector<Trial> &trials, const bench::Rounds<Result> &results) {
    std::vector<double> shares;
    for (std::size_t i = 0; i < trials.size(); i++)
        if (is(trials[i].arm, "reused"))
            for (const Result &result : results.samples(i))
                shares.push_back(result.reused);
    std::sort(shares.begin(), shares.end());
    return "OS threads, reused: " + thrum::fixed(shares.front(), 0) + " to " +
           thrum::fixed(shares.back(), 0) + " % of the requests had a thread that had served another.";
}

void add_notes(const Settings &settings, Promptness promptly, bench::Report *report) {
    const double step = settings.steps_per_us;
    report->note("A short request is " + thrum::fixed(settings.number(kShort) * step, 0) +
                 " steps of a loop, a long one " + thrum::fixed(settings.number(kLong) * step, 0) + ", of " +
                 thrum::fixed(1e3 / step, 3) +
                 " ns each when measured; load: their work alone, of what the workers' CPUs can do.");
    report->note(
        "CPU time: the server's, to that of the steps. Sent late: by the source, and within the latencies.");
    report->note("Other processes: what they took of the CPUs meanwhile, in the least disturbed of up to "
                 "five measurements.");
    report->note("Never: that many requests had no answer " + thrum::fixed(settings.number(kStandsFor), 1) +
                 " s after the last was sent.");
    if (promptly != Promptness::kRealTime)
        report->note(std::string("The sender and receiver may not run as a real-time thread (CAP_SYS_NICE)") +
                     (promptly == Promptness::kShortSlice ? ", and has a short slice instead" : "") +
                     ": where all CPUs are busy requests come late.");
    if (access(go_program().c_str(), X_OK) != 0)
        report->note("Goroutines: left out, their program is not built; it needs golang-go, and the target "
                     "bench-tail.");
}

void body(const bench::Options &options) {
    bench::Report report(options);
    const Promptness promptly = run_promptly();
    const auto workers = static_cast<unsigned>(options.numbers[kWorkers]);
    stay_on(workers);
    const Settings settings{options, steps_per_us()};
    std::vector<Trial> trials;
    for (const double load : kLoads)
        add(kByLoad, load, workers, false, &trials);
    add(kBesideRunaway, kLoadBesideRunaway, workers, true, &trials);
    if (workers > 1)
        add(kAloneWithRunaway, kLoadBesideRunaway, 1, true, &trials);
    const bench::Rounds<Result> results = run_all(settings, trials);
    report.add(table_by_load(trials, results));
    report.add(table_of_runaway(trials, results));
    add_notes(settings, promptly, &report);
    report.note(share_of_reused(trials, results));
    report.print();
}

} // namespace

int main(int argc, char **argv) {
    const double few = usual_workers();
    return bench::main_of(
        argc, argv,
        {"tail_latency",
         "Latencies of short requests beside long ones, and beside one that never ends, by load.",
         {{"--rounds", "Measurements of each row", 1, 3, 5, 1, 1000},
          {"--seconds", "How long requests arrive, each time", 0.1, 3, 10, 0.01, 3600},
          {"--workers", "Workers of ULTs, GOMAXPROCS, and CPUs for all: those there are, up to four", few,
           few, few, 1, 1024},
          {"--short", "CPU time of a short request, us", 10, 10, 10, 0.1, 1e6},
          {"--long", "CPU time of a long one, us", 1000, 10000, 10000, 0.1, 1e7},
          {"--long-percent", "How many are long, %", 1, 1, 1, 0.01, 99},
          {"--seed", "For the moments of arrival; each round takes the next", 1, 1, 1, 0, 1e9},
          {"--stands", "How long the answers of a server that stands still are waited for, s", 0.2, 2, 2, 0,
           600},
          {"--disturbed",
           "A measurement during which other processes took more of the CPUs, %, is repeated up to four "
           "times",
           100, 100, 100, 0, 100}},
         {},
         true,
         {},
         "libthrum.so"},
        body, serve);
}
