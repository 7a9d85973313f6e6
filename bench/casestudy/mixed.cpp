// SPDX-License-Identifier: Apache-2.0
//
// Tasks as they are in a program: each computes, writes a file and waits until the disk has it, sleeps, and computes
// again. The fewest that this can take is what the computing takes on all CPUs.
#include "experiment.hpp"

namespace {

using namespace casestudy;

void body(const bench::Options &options) {
    const std::string &folder = options.texts[0];
    const auto tasks = static_cast<unsigned>(options.numbers[3]);
    const auto workers = static_cast<unsigned>(options.numbers[4]);
    check_folder(folder);
    const std::vector<std::string> actions = {
        action("compute", options.numbers[0] / 2), action("write", options.numbers[1], folder),
        action("sleep", options.numbers[2]), action("compute", options.numbers[0] / 2)};
    bench::Report report(options);
    Experiment experiment(options, "mixed", "Tasks that compute, write, sleep and compute",
                          {{"crew", "crew", "", 0}, {"size", "OS threads or workers", "number", 0}});
    const auto add = [&](const char *label, const char *crew, unsigned size) {
        experiment.add({{label, static_cast<double>(size)}, crew, size, tasks, actions});
    };
    for (const unsigned size : {4U, 8U, 16U, 32U, 64U, 128U})
        add(kThreads, "threads", size);
    add(kUlts, "ults", workers);
    add(kGo, "goroutines", workers);
    experiment.run(options.numbers[5]);
    experiment.show(&report);
    report.print();
}

} // namespace

int main(int argc, char **argv) {
    return casestudy::main_of(argc, argv, "mixed",
                              "Tasks that compute, write to a disk and sleep, on OS threads, as user-level "
                              "threads and as goroutines.",
                              {{"--steps", "How often a task goes around its loop, for 1 to 2 ns each time",
                                10000, 1000000, 1000000, 1, 1e12},
                               {"--kib", "What it writes, KiB", 4, 64, 64, 1, 65536},
                               {"--seconds", "How long it sleeps", 0.005, 0.1, 0.1, 0, 60},
                               {"--tasks", "How many there are", 32, 128, 128, 1, 100000},
                               casestudy::workers_option(),
                               {"--rounds", "Measurements of each row", 1, 5, 9, 1, 1000}},
                              {casestudy::folder_option()}, body);
}
