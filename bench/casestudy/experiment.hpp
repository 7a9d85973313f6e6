// SPDX-License-Identifier: Apache-2.0
//
// What the experiments of the case study share: trials that are measured in turns, each in a process of its own that is
// watched meanwhile, and a table of them beside the case study's own figures. docs/studies/casestudy.md is the story.
#ifndef THRUM_BENCH_CASESTUDY_EXPERIMENT_HPP
#define THRUM_BENCH_CASESTUDY_EXPERIMENT_HPP

#include <string>
#include <vector>

#include "child.hpp"
#include "rounds.hpp"

namespace casestudy {

// One row of a table.
struct Trial {
    std::vector<bench::Cell> name; // its first cells; the first of all says what runs the tasks
    std::string crew;              // from here on: tasks.hpp
    unsigned size, tasks;
    std::vector<std::string> actions;
    bench::Cell seed = ""; // seconds, where the case study has a figure
};

enum class Late { kLeftOut, kShown }; // how late sleepers woke up, as two columns more

class Experiment {
  public:
    // `names` are the columns of the trials' first cells.
    Experiment(const bench::Options &options, const char *key, const char *title,
               std::vector<bench::Column> names, Late late = Late::kLeftOut);
    void add(Trial trial);
    void run(double rounds); // of trials in Go only if their program was built
    void show(bench::Report *report) const;

  private:
    struct Outcome {
        double seconds, cpu_ms, late_ms, latest_ms;
    };
    void add_columns();
    Outcome measure(const Trial &trial, States *states) const;
    std::vector<bench::Cell> row(const bench::Rounds<Outcome> &rounds, std::size_t which) const;

    const bench::Options &options_;
    bench::Table table_;
    Late late_;
    bool go_is_missing_ = false, has_figures_ = false; // the latter: of the case study
    std::vector<Trial> trials_;
    std::vector<States> states_; // of each, over all rounds
};

constexpr const char *kGoMissing =
    "Goroutines: left out, their program is not built; it needs golang-go, and the "
    "target bench-casestudy.";
constexpr const char *kThreads = "OS threads", *kUlts = "ULTs", *kGo = "goroutines"; // in tables

unsigned cores(); // that this process may use

// The states in which threads were seen, as columns of a table, and as cells of its row.
const std::vector<bench::Column> kStateColumns = {{"threads", "OS threads seen", "mean", 1},
                                                  {"running_percent", "running (R)", "%", 1},
                                                  {"sleeping_percent", "sleeping (S)", "%", 1},
                                                  {"disk_percent", "uninterruptible (D)", "%", 1}};
void add_states(const States &states, std::vector<bench::Cell> *cells);

// The median with its interval; of one value there is none.
bench::Cell cell(const std::vector<double> &values);

// --- what several have --------------------------------------------------------------------------------------

bench::Number workers_option();
bench::Text folder_option();
void check_folder(const std::string &folder); // it takes files

std::string action(const char *name, double amount, const std::string &folder = "");

// Runs an experiment, which is both ends of a measurement (bench::main_of).
int main_of(int argc, char **argv, const char *name, const char *about,
            const std::vector<bench::Number> &numbers, const std::vector<bench::Text> &texts,
            const bench::Body &body);

} // namespace casestudy

#endif
