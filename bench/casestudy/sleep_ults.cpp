// SPDX-License-Identifier: Apache-2.0
//
// The case study's second experiment: tasks that are user-level threads and sleep as such, on as many workers as CPUs.
// Beside them goroutines, and what a kernel thread a task takes.
#include "experiment.hpp"

namespace {

using namespace casestudy;

struct Size {
    unsigned tasks;
    double seed; // seconds, of sleeps of 2 s
};
constexpr Size kSizes[] = {{128, 2.0016}, {256, 2.0021}, {1024, 2.0080}};

void body(const bench::Options &options) {
    const double seconds = options.numbers[0];
    const auto workers = static_cast<unsigned>(options.numbers[1]);
    bench::Report report(options);
    Experiment experiment(options, "sleep_ults", "Tasks that sleep in their runtime, by number",
                          {{"crew", "crew", "", 0}, {"size", "tasks", "number", 0}}, Late::kShown);
    const auto add = [&](const char *label, const char *crew, unsigned size, unsigned tasks, double seed) {
        experiment.add({{label, static_cast<double>(tasks)},
                        crew,
                        size,
                        tasks,
                        {action("sleep", seconds)},
                        seed > 0 && seconds == 2 ? bench::Cell(seed) : bench::Cell("")});
    };
    for (const Size &size : kSizes)
        add(kUlts, "ults", workers, size.tasks, size.seed);
    for (const Size &size : kSizes)
        add(kGo, "goroutines", workers, size.tasks, 0);
    for (const Size &size : kSizes)
        add(kThreads, "threads", size.tasks, size.tasks, 0);
    experiment.run(options.numbers[2]);
    experiment.show(&report);
    report.note("OS threads: one a task.");
    report.print();
}

} // namespace

int main(int argc, char **argv) {
    return casestudy::main_of(argc, argv, "sleep_ults",
                              "128 to 1024 tasks that sleep as user-level threads, as goroutines, and as an "
                              "OS thread each.",
                              {{"--seconds", "How long each task sleeps", 0.02, 0.2, 2, 0, 60},
                               casestudy::workers_option(),
                               {"--rounds", "Measurements of each row", 1, 5, 5, 1, 1000}},
                              {}, body);
}
