// SPDX-License-Identifier: Apache-2.0
//
// Tasks that wait for a disk, in the kernel: each writes a file and waits until the disk has it. Kernel threads are
// blocked meanwhile (state D). For a user-level thread there are two ways: to block its worker, with all that could run
// there, or to make the call on another kernel thread (thrum_blocking), which is what Go does by itself. How many of those
// are in the kernel at a time is then a matter of a semaphore.
#include "experiment.hpp"

namespace {

using namespace casestudy;

void body(const bench::Options &options) {
    const double kibibytes = options.numbers[0];
    const auto tasks = static_cast<unsigned>(options.numbers[1]);
    const auto workers = static_cast<unsigned>(options.numbers[2]);
    const std::string &folder = options.texts[0];
    check_folder(folder);
    bench::Report report(options);
    Experiment experiment(options, "file_io", "Tasks that write a file and wait for the disk",
                          {{"crew", "crew", "", 0}, {"size", "OS threads or workers", "number", 0}});
    const auto add = [&](const char *label, const char *crew, unsigned size, const char *what) {
        experiment.add(
            {{label, static_cast<double>(size)}, crew, size, tasks, {action(what, kibibytes, folder)}});
    };
    for (const unsigned size : {4U, 8U, 16U, 32U, 64U, 128U})
        add(kThreads, "threads", size, "write");
    add("ULTs that block their worker", "ults", workers, "direct");
    add("ULTs, thrum_blocking", "ults", workers, "write");
    add("ULTs, thrum_blocking, eight at a time", "ults", workers, "few");
    add(kGo, "goroutines", workers, "write");
    experiment.run(options.numbers[3]);
    experiment.show(&report);
    report.print();
}

} // namespace

int main(int argc, char **argv) {
    return casestudy::main_of(argc, argv, "file_io",
                              "Tasks that write a file and wait for the disk, on OS threads, as user-level "
                              "threads and as goroutines.",
                              {{"--kib", "What each writes, KiB", 4, 64, 64, 1, 65536},
                               {"--tasks", "How many there are", 32, 128, 128, 1, 100000},
                               casestudy::workers_option(),
                               {"--rounds", "Measurements of each row", 1, 5, 9, 1, 1000}},
                              {casestudy::folder_option()}, body);
}
