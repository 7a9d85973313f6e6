// SPDX-License-Identifier: Apache-2.0
//
// Tasks that only compute: on more OS threads than there are CPUs, and as user-level threads on as many workers as
// CPUs.
//
// The case study's tasks are four nested loops of INT_MAX turns whose result is not used. It reports milliseconds for
// 128 of them, so its compiler had left the loops out, as it may, and what it measured is the creation of threads and
// nothing else. Hence both here: tasks that do nothing, as theirs, and tasks that compute.
#include "experiment.hpp"

namespace {

using namespace casestudy;

struct Size {
    unsigned size;
    double seed; // seconds; 0: none
};
constexpr unsigned kTasks = 128;
constexpr Size kThreadSizes[] = {{4, 0.0029}, {8, 0.0042}, {32, 0.0106}, {64, 0.032}, {128, 1.786}};
constexpr Size kTaskSizes[] = {{128, 0.0029}, {256, 0.0034}, {512, 0.0040}, {1024, 0.0065}};

struct Work {
    const char *name;
    double steps;
};

Trial trial(const char *label, const char *crew, unsigned size, unsigned tasks, const Work &work,
            double shown, double seed) {
    const bool as_theirs = work.steps == 0 && seed > 0;
    return {{label, work.name, shown},
            crew,
            size,
            tasks,
            {action("compute", work.steps)},
            as_theirs ? bench::Cell(seed) : bench::Cell("")};
}

std::vector<bench::Column> columns(const char *size) {
    return {{"crew", "crew", "", 0}, {"task", "a task", "", 0}, {"size", size, "number", 0}};
}

// The case study's own, threads of Argobots on more and more "execution streams", is the second.
Experiment of_threads(const bench::Options &options, const std::vector<Work> &works) {
    Experiment experiment(options, "compute_threads", "128 tasks, by OS threads (workers; in Go, GOMAXPROCS)",
                          columns("OS threads"));
    for (const Work &work : works) {
        for (const Size &size : kThreadSizes)
            experiment.add(trial(kThreads, "threads", size.size, kTasks, work, size.size, 0));
        for (const Size &size : kThreadSizes)
            experiment.add(trial(kUlts, "ults", size.size, kTasks, work, size.size, size.seed));
        for (const Size &size : kThreadSizes)
            experiment.add(trial(kGo, "goroutines", size.size, kTasks, work, size.size, 0));
    }
    return experiment;
}

Experiment of_ults(const bench::Options &options, const std::vector<Work> &works) {
    const auto workers = static_cast<unsigned>(options.numbers[1]);
    Experiment experiment(options, "compute_ults", "User-level threads, by tasks", columns("tasks"));
    for (const Work &work : works) {
        for (const Size &size : kTaskSizes)
            experiment.add(trial(kUlts, "ults", workers, size.size, work, size.size, size.seed));
        for (const Size &size : kTaskSizes)
            experiment.add(trial(kGo, "goroutines", workers, size.size, work, size.size, 0));
    }
    return experiment;
}

void body(const bench::Options &options) {
    const std::vector<Work> works = {{"nothing", 0}, {"computes", options.numbers[0]}};
    bench::Report report(options);
    for (Experiment experiment : {of_threads(options, works), of_ults(options, works)}) {
        experiment.run(options.numbers[2]);
        experiment.show(&report);
    }
    report.note(
        "The case study's figures are of 4 cores, and of tasks whose loop its compiler had left out.");
    report.print();
}

} // namespace

int main(int argc, char **argv) {
    return casestudy::main_of(
        argc, argv, "compute",
        "Tasks that compute, on 4 to 128 OS threads, and as 128 to 1024 user-level threads.",
        {{"--steps", "How often a task goes around its loop, for 1 to 2 ns each time", 10000, 1000000,
          1000000, 1, 1e12},
         casestudy::workers_option(),
         {"--rounds", "Measurements of each row", 1, 7, 15, 1, 1000}},
        {}, body);
}
