// SPDX-License-Identifier: Apache-2.0
//
// See experiment.hpp.
#include "experiment.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tasks.hpp"
#include "tools/text.hpp"

namespace casestudy {

namespace {

bool is_go(const Trial &trial) {
    return trial.crew == "goroutines" || trial.crew == "pool";
}

std::string go_program() {
    return bench::beside("casestudy/go");
}

} // namespace

bench::Cell cell(const std::vector<double> &values) {
    const bench::Estimate estimate = bench::estimate(values);
    return values.size() > 1 ? bench::Cell(estimate) : bench::Cell(estimate.median);
}

Experiment::Experiment(const bench::Options &options, const char *key, const char *title,
                       std::vector<bench::Column> names, Late late)
    : options_(options), table_{key, title, std::move(names), {}}, late_(late) {}

void Experiment::add(Trial trial) {
    if (is_go(trial) && access(go_program().c_str(), X_OK) != 0)
        go_is_missing_ = true;
    else
        trials_.push_back(std::move(trial));
}

void Experiment::add_columns() {
    std::vector<bench::Column> &columns = table_.columns;
    columns.push_back({"seconds", "time", "s", 4});
    if (has_figures_)
        columns.push_back({"seed_seconds", "case study", "s", 4});
    columns.push_back({"cpu_ms", "CPU time", "ms", 2});
    columns.push_back({"cpu_percent", "of all CPUs", "%", 1});
    if (late_ == Late::kShown) {
        columns.push_back({"late_ms", "late, mean", "ms", 3});
        columns.push_back({"latest_ms", "latest", "ms", 3});
    }
    columns.insert(columns.end(), kStateColumns.begin(), kStateColumns.end());
}

Experiment::Outcome Experiment::measure(const Trial &trial, States *states) const {
    std::vector<std::string> command = is_go(trial) ? std::vector{go_program()} : bench::own_work({});
    command.insert(command.end(), {trial.crew, std::to_string(trial.size), std::to_string(trial.tasks)});
    command.insert(command.end(), trial.actions.begin(), trial.actions.end());
    bench::Environment environment;
    if (trial.crew == "ults")
        environment.preload(options_.library);

    Child child(command, environment);
    double seconds = 0, cpu = 0, late = 0, latest = 0;
    child.line(); // "begin"
    states->watch(child.pid(), child);
    const std::string result = child.line();
    if (std::sscanf(result.c_str(), "%lf %lf %lf %lf", &seconds, &cpu, &late, &latest) != 4)
        throw bench::Failure(command[0] + " says '" + result + "'");
    child.wait();
    return {seconds, cpu * 1e3, late, latest};
}

void Experiment::run(double rounds) {
    states_.resize(trials_.size());
    bench::Turns turns{rounds, {}};
    for (const Trial &trial : trials_)
        turns.variants.push_back(trial.crew + ", " + thrum::counted(trial.size, "thread") + ", " +
                                 thrum::counted(trial.tasks, "task"));
    const bench::Rounds<Outcome> measured(
        turns, [this](std::size_t which, std::size_t) { return measure(trials_[which], &states_[which]); });
    has_figures_ = std::any_of(trials_.begin(), trials_.end(),
                               [](const Trial &trial) { return std::holds_alternative<double>(trial.seed); });
    add_columns();
    for (std::size_t i = 0; i < trials_.size(); i++)
        table_.rows.push_back(row(measured, i));
}

std::vector<bench::Cell> Experiment::row(const bench::Rounds<Outcome> &rounds, std::size_t which) const {
    const double seconds = rounds.of(which, &Outcome::seconds).median;
    const double cpu_ms = rounds.of(which, &Outcome::cpu_ms).median;
    std::vector<bench::Cell> cells = trials_[which].name;
    cells.push_back(cell(rounds.values(which, &Outcome::seconds)));
    if (has_figures_)
        cells.push_back(trials_[which].seed);
    cells.insert(cells.end(), {cpu_ms, cpu_ms / seconds / cores() / 10});
    if (late_ == Late::kShown)
        cells.insert(cells.end(), {rounds.of(which, &Outcome::late_ms).median,
                                   cell(rounds.values(which, &Outcome::latest_ms))});
    add_states(states_[which], &cells);
    return cells;
}

void add_states(const States &states, std::vector<bench::Cell> *cells) {
    if (states.seen())
        cells->insert(cells->end(), {states.threads(), states.running(), states.sleeping(), states.disk()});
    else
        cells->insert(cells->end(), 4, "-"); // it was over too soon
}

void Experiment::show(bench::Report *report) const {
    report->add(table_);
    if (go_is_missing_)
        report->note(kGoMissing);
}

// --- what several have --------------------------------------------------------------------------------------

unsigned cores() {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<unsigned>(CPU_COUNT(&set))
                                                       : static_cast<unsigned>(sysconf(_SC_NPROCESSORS_ONLN));
}

bench::Number workers_option() {
    const double all = cores();
    return {"--workers", "Workers of ULTs, and GOMAXPROCS: as many as CPUs", all, all, all, 1, 1024};
}

bench::Text folder_option() {
    return {"--folder", "PATH", "Where files are written; a real disk (/var/tmp)", "/var/tmp"};
}

void check_folder(const std::string &folder) {
    std::string path = folder + "/thrum-casestudy-XXXXXX";
    const int file = mkstemp(path.data());
    if (file < 0)
        throw bench::Failure("--folder " + folder + ": " + std::strerror(errno), bench::Failure::kUsage);
    close(file);
    unlink(path.c_str());
}

std::string action(const char *name, double amount, const std::string &folder) {
    return std::string(name) + ":" + bench::word_of(amount) + (folder.empty() ? "" : ":" + folder);
}

int main_of(int argc, char **argv, const char *name, const char *about,
            const std::vector<bench::Number> &numbers, const std::vector<bench::Text> &texts,
            const bench::Body &body) {
    return bench::main_of(argc, argv, {name, about, numbers, texts, true, {}, "libthrum.so"}, body, work);
}

} // namespace casestudy
