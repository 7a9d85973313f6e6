// SPDX-License-Identifier: Apache-2.0
//
// See experiment.hpp.
#include "experiment.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <sstream>

#include "preempt.hpp"

namespace insitu {

namespace {

// The benchmark's numbers, in the order of the options.
struct Size {
    double rounds, slice;
    Plan plan; // but for the arm and the interval
    std::vector<unsigned> intervals;
};

std::vector<unsigned> intervals_of(const bench::Options &options, unsigned steps) {
    std::string list = options.texts[0];
    if (list.empty())
        list = options.quick ? "5,10" : "10,20,50,100,200,500";
    return bench::numbers_listed("--intervals", list, 1, steps);
}

// In the order of numbers().
Size size_of(const bench::Options &options) {
    const auto number = [&](std::size_t at) { return static_cast<unsigned>(options.numbers[at]); };
    Size size{options.numbers[0], options.numbers[7], {}, {}};
    size.plan.workers = number(1);
    size.plan.cells = number(2);
    size.plan.steps = number(3);
    size.plan.before = number(4);
    size.plan.buffers = number(5);
    size.plan.shares = number(6);
    size.plan.leave_out = options.flags[0];
    size.plan.exchange_us = options.numbers[8];
    size.intervals = intervals_of(options, size.plan.steps);
    return size;
}

struct Line {
    const Arm *arm;
    unsigned interval; // of a baseline the first; without analysis
};

class Run {
  public:
    Run(const bench::Options &options, const Size &size)
        : options_(options), size_(size), lines_(all_lines(size)),
          rounds_(turns(), [this](std::size_t which, std::size_t) { return one(lines_[which]); }) {}

    const std::vector<Line> &lines() const { return lines_; }
    const bench::Rounds<Outcome> &rounds() const { return rounds_; }
    bool is_baseline(std::size_t which) const { return lines_[which].arm->looking == Looking::kNever; }
    std::size_t baseline(std::size_t which) const {
        std::size_t place = 0;
        while (lines_[place].arm != &baseline_of(*lines_[which].arm))
            place++;
        return place;
    }

  private:
    static std::vector<Line> all_lines(const Size &size) {
        std::vector<Line> lines;
        for (const Arm &arm : arms())
            if (arm.looking == Looking::kNever)
                lines.push_back({&arm, size.intervals[0]});
            else
                for (const unsigned interval : size.intervals)
                    lines.push_back({&arm, interval});
        return lines;
    }

    bench::Turns turns() const {
        bench::Turns turns{size_.rounds, {}};
        for (const Line &line : lines_)
            turns.variants.emplace_back(line.arm->name);
        return turns;
    }

    std::optional<Outcome> one(const Line &line) {
        Plan plan = size_.plan;
        plan.arm = line.arm->name;
        plan.interval = line.interval;
        const std::unique_ptr<Outcome> outcome = measure(plan, options_.library, size_.slice);
        if (outcome == nullptr)
            return std::nullopt;
        check(line, *outcome);
        return *outcome;
    }

    // All simulate the same, and see the same where nothing is left out: otherwise their times are of different things.
    void check(const Line &line, const Outcome &outcome) {
        const std::string run =
            std::string(line.arm->name) + ", interval " + std::to_string(line.interval) + ": ";
        if (outcome.looked_at + outcome.left_out != outcome.offered)
            throw bench::Failure(run + "a snapshot was neither looked at nor left out");
        if (outcome.trajectory != trajectories_.emplace(0, outcome.trajectory).first->second)
            throw bench::Failure(run + "its atoms are not where those of the others are");
        if (line.arm->looking != Looking::kNever && outcome.left_out == 0 &&
            outcome.pairs != pairs_.emplace(line.interval, outcome.pairs).first->second)
            throw bench::Failure(run + "its g(r) is not that of the others");
    }

    const bench::Options &options_;
    const Size &size_;
    const std::vector<Line> lines_;
    std::map<unsigned, double> trajectories_, pairs_; // of the first that came; the latter by interval
    const bench::Rounds<Outcome> rounds_;
};

// --- tables -----------------------------------------------------------------------------------------------

// Of the time of the same round's baseline, in percent.
bench::Estimate overhead(const Run &run, std::size_t which, double Outcome::*time) {
    return bench::estimate(run.rounds().compared(which, run.baseline(which),
                                                 [time](const Outcome &outcome, const Outcome &baseline) {
                                                     return 100 * (outcome.*time / baseline.simulated_ns - 1);
                                                 }));
}

double median(const Run &run, std::size_t which, double Outcome::*member, double factor = 1) {
    return run.rounds().of(which, member).median * factor;
}

double simulated_ms(const Outcome &outcome) {
    return outcome.simulated_ns / 1e6;
}

bench::Table baselines(const Run &run) {
    bench::Table table{"baselines",
                       "Without an analysis",
                       {{"arm", "arm", "", 0},
                        {"simulated", "time", "ms", 1},
                        {"cpu", "CPU time", "ms", 1},
                        {"to_ults", "to ULTs", "x", 3},
                        {"late", "out of an exchange, late", "us", 0}},
                       {}};
    for (std::size_t i = 0; i < run.lines().size(); i++)
        if (run.is_baseline(i))
            table.rows.push_back({run.lines()[i].arm->name, run.rounds().of(i, simulated_ms),
                                  median(run, i, &Outcome::simulated_cpu_ns, 1e-6),
                                  run.rounds().ratio(i, 0, &Outcome::simulated_ns),
                                  median(run, i, &Outcome::late_ns, 1e-3)});
    return table;
}

std::vector<bench::Cell> row_of(const Run &run, std::size_t i) {
    const auto percent = [&](double Outcome::*part) {
        return run.rounds().of(i, [&](const Outcome &one) { return 100 * (one.*part) / one.offered; }).median;
    };
    return {run.lines()[i].arm->name,
            static_cast<double>(run.lines()[i].interval),
            overhead(run, i, &Outcome::simulated_ns),
            overhead(run, i, &Outcome::all_ns),
            run.rounds().of(i, simulated_ms),
            median(run, i, &Outcome::all_ns, 1e-6),
            median(run, i, &Outcome::all_cpu_ns, 1e-6),
            median(run, i, &Outcome::offered),
            percent(&Outcome::looked_at_by_end),
            percent(&Outcome::looked_at),
            median(run, i, &Outcome::left_out),
            median(run, i, &Outcome::waits),
            median(run, i, &Outcome::waited_ns, 1e-6),
            median(run, i, &Outcome::late_ns, 1e-3)};
}

bench::Table beside(const Run &run, const char *title) {
    bench::Table table{"insitu",
                       title,
                       {{"arm", "arm", "", 0},
                        {"interval", "interval", "steps", 0},
                        {"overhead", "overhead", "%", 1},
                        {"overhead_all", "with the rest", "%", 1},
                        {"simulated", "time", "ms", 1},
                        {"all", "with the rest", "ms", 1},
                        {"cpu", "CPU time", "ms", 1},
                        {"snapshots", "snapshots", "number", 0},
                        {"by_end", "looked at by the end", "%", 0},
                        {"looked_at", "later", "%", 0},
                        {"left_out", "left out", "number", 0},
                        {"waits", "waits", "number", 0},
                        {"waited", "waited", "ms", 1},
                        {"late", "out of an exchange, late", "us", 0}},
                       {}};
    for (std::size_t i = 0; i < run.lines().size(); i++) {
        if (run.is_baseline(i))
            continue;
        if (run.rounds().has(i)) {
            table.rows.push_back(row_of(run, i));
        } else {
            table.rows.push_back({run.lines()[i].arm->name, static_cast<double>(run.lines()[i].interval)});
            table.rows.back().resize(table.columns.size(), preempt::kUnavailable);
        }
    }
    return table;
}

std::string text(double value, int digits) {
    std::ostringstream out;
    out.precision(digits);
    out << value;
    return out.str();
}

// What the analysis found, and whether the simulation can be believed.
void add_physics(const Run &run, bench::Report *report) {
    double drift = 0;
    for (std::size_t i = 0; i < run.lines().size(); i++)
        for (const Outcome &outcome : run.rounds().samples(i))
            drift = std::max(drift, outcome.drift);
    report->note("The total energy at the end is that at the beginning to within " + text(drift, 2) +
                 " of it; all arms have their atoms at the same places, up to the end bit.");
    for (std::size_t i = 0; i < run.lines().size(); i++) {
        const std::vector<Outcome> &outcomes = run.rounds().samples(i);
        const Outcome *one = outcomes.empty() ? nullptr : &outcomes[0];
        if (one == nullptr || one->looked_at == 0)
            continue;
        report->note("Seen in " + text(one->looked_at, 6) + " snapshots: g(r) is highest, " +
                     text(one->radial_peak, 3) + ", at r = " + text(one->radial_peak_at, 3) +
                     "; S(k) is highest, " + text(one->structure_peak, 3) +
                     ", at k = " + text(one->structure_peak_at, 3) + ".");
        break;
    }
}

void body(const bench::Options &options, const Experiment &experiment) {
    const Size size = size_of(options);
    bench::Report report(options);
    const Run run(options, size);
    report.add(baselines(run));
    report.add(beside(run, experiment.title));
    report.note("Overhead: the time until the simulation is over, to that of the same threads without an "
                "analysis; with the rest: until all snapshots have been looked at.");
    report.note(size.plan.leave_out ? "When no buffer is free the snapshot is left out."
                                    : "When no buffer is free the simulation waits: waits, waited. With "
                                      "--leave-out the snapshot is left out.");
    for (const std::string &note : experiment.notes)
        report.note(note);
    add_physics(run, &report);
    report.print();
}

std::vector<bench::Number> numbers() {
    const auto cpus = static_cast<double>(preempt::cpus().size());
    return {{"--rounds", "Measurements of each row", 1, 5, 15, 1, 1000},
            {"--workers", "Threads of the simulation, and workers: as many as CPUs", cpus, cpus, cpus, 1, 32},
            {"--cells", "Atoms: four times the cube of this", 6, 8, 10, 5, 100},
            {"--steps", "How long it is simulated", 20, 500, 1000, 1, 1e6},
            {"--before", "Steps before, which are not timed", 5, 200, 200, 0, 1e6},
            {"--buffers", "Snapshots that can wait, or be looked at, at a time", 4, 4, 4, 1, 1000},
            {"--shares", "Threads that look at a snapshot", 8, 8, 8, 1, 1000},
            {"--slice", "Of preemption, us", 1000, 1000, 1000, THRUM_SLICE_MIN, THRUM_SLICE_MAX},
            {"--exchange", "How long each step waits for other machines, us", 300, 500, 1000, 0, 1e6}};
}

} // namespace

int main_of(int argc, char **argv, const Experiment &experiment) {
    return bench::main_of(
        argc, argv,
        {experiment.name,
         experiment.about,
         numbers(),
         {{"--intervals", "K,...", "Steps from one snapshot to the next (10,20,50,100,200,500; quick 5,10)",
           ""}},
         true,
         {{"--leave-out",
           "A snapshot for which no buffer is free is left out, and the simulation does not wait"}},
         "libthrum.so"},
        [&](const bench::Options &options) { body(options, experiment); },
        [&](const std::vector<std::string> &words) { run_trial(words, experiment.make); });
}

} // namespace insitu
