// SPDX-License-Identifier: Apache-2.0
//
// Three ways to sleep, which the case study describes: polling the clock; waiting for a condition variable that a
// clock thread signals when it is time; a queue of timers in what schedules the threads, which for kernel threads is
// the kernel. What they cost, and how late each wakes up.
#include "experiment.hpp"

namespace {

using namespace casestudy;

struct Way {
    const char *name, *action;
};
constexpr Way kWays[] = {{"polling", "poll"}, {"condition variable", "bell"}, {"timer queue", "sleep"}};

void body(const bench::Options &options) {
    const double seconds = options.numbers[0];
    const auto workers = static_cast<unsigned>(options.numbers[1]);
    bench::Report report(options);
    Experiment experiment(
        options, "sleep_ways", "Three ways to sleep",
        {{"crew", "crew", "", 0}, {"way", "way to sleep", "", 0}, {"size", "tasks", "number", 0}},
        Late::kShown);
    const auto add = [&](const char *label, const char *crew, unsigned size, unsigned tasks, const Way &way) {
        experiment.add({{label, way.name, static_cast<double>(tasks)},
                        crew,
                        size,
                        tasks,
                        {action(way.action, seconds)}});
    };
    for (const unsigned tasks : {128U, 1024U})
        for (const Way &way : kWays) {
            add(kUlts, "ults", workers, tasks, way);
            add(kGo, "goroutines", workers, tasks, way);
            add(kThreads, "threads", tasks, tasks, way);
        }
    experiment.run(options.numbers[2]);
    experiment.show(&report);
    report.note(
        "OS threads: one a task. Condition variable: of the runtime's own kind, signalled by a thread of the "
        "kernel, in Go by a goroutine, that sleeps until the next moment.");
    report.print();
}

} // namespace

int main(int argc, char **argv) {
    return casestudy::main_of(
        argc, argv, "sleep_ways",
        "What it costs to sleep by polling, by a condition variable and by a timer queue.",
        {{"--seconds", "How long each task sleeps", 0.02, 0.2, 2, 0, 60},
         casestudy::workers_option(),
         {"--rounds", "Measurements of each row", 1, 3, 3, 1, 1000}},
        {}, body);
}
