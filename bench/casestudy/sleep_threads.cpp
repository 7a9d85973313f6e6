// SPDX-License-Identifier: Apache-2.0
//
// The case study's first experiment: tasks that sleep in the kernel, on more and more kernel threads. A thread that
// sleeps so can do nothing else; the only way to sleep more at a time is more threads. Beside it the same in Go, where a
// goroutine that sleeps in a system call takes a kernel thread with it, too.
#include <cmath>

#include "experiment.hpp"

namespace {

using namespace casestudy;

constexpr unsigned kSizes[] = {4, 8, 16, 32, 64, 128};

// "2*(128/4)=64, this thing is still true till the 32 threads"; beyond that there is only a picture without numbers.
bench::Cell figure(unsigned size, unsigned tasks, double seconds) {
    if (size > 32 || tasks != 128 || seconds != 2)
        return "";
    return seconds * tasks / size;
}

void body(const bench::Options &options) {
    const double seconds = options.numbers[0];
    const auto tasks = static_cast<unsigned>(options.numbers[1]);
    bench::Report report(options);
    Experiment experiment(options, "sleep_threads", "Tasks that sleep in the kernel, by OS threads",
                          {{"crew", "crew", "", 0},
                           {"size", "OS threads", "number", 0},
                           {"ideal_seconds", "tasks / threads × sleep", "s", 4}});
    for (const bool go : {false, true})
        for (const unsigned size : kSizes) {
            const double ideal = std::ceil(tasks / static_cast<double>(size)) * seconds;
            const bench::Cell seed = go ? bench::Cell("") : figure(size, tasks, seconds);
            experiment.add({{go ? kGo : kThreads, static_cast<double>(size), ideal},
                            go ? "pool" : "threads",
                            size,
                            tasks,
                            {action("kernel", seconds)},
                            seed});
        }
    experiment.run(options.numbers[2]);
    experiment.show(&report);
    report.print();
}

} // namespace

int main(int argc, char **argv) {
    return casestudy::main_of(
        argc, argv, "sleep_threads",
        "Tasks that sleep in the kernel, on 4 to 128 OS threads, and on as many goroutines.",
        {{"--seconds", "How long each task sleeps", 0.005, 0.2, 2, 0, 60},
         {"--tasks", "How many there are", 128, 128, 128, 1, 100000},
         {"--rounds", "Measurements of each row", 1, 1, 1, 1, 1000}},
        {}, body);
}
