// SPDX-License-Identifier: Apache-2.0
//
// The `thrum` command: reads the command line, hands over to the subcommand, and turns whatever goes
// wrong into one line on stderr and an exit code. Each subcommand is a file of its own (command.hpp).
#include "command.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "interrupts.hpp"

#ifndef THRUM_VERSION
#error "THRUM_VERSION is defined by the build"
#endif

namespace {

// How many of the words come before the first "--" of a command that starts a program; with others, all.
int words_before_mark(int argc, char **argv) {
    const char *const starters[] = {"run", "compare", "stat", "trace"};
    if (argc < 2 || std::none_of(std::begin(starters), std::end(starters),
                                 [argv](const char *name) { return std::strcmp(argv[1], name) == 0; }))
        return argc;
    return static_cast<int>(std::find(argv, argv + argc, std::string("--")) - argv);
}

// Standard streams that are closed: the next file that is opened would be one of them, and be written to as such. What is there
// instead fails as a closed one does, reading or writing, and is closed in programs that are executed.
void hold_standard_streams() {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
            continue;
        if (open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC) != fd)
            throw thrum::Failure(thrum::kFailed,
                                 std::string("cannot open /dev/null: ") + std::strerror(errno));
    }
}

// A write beyond the limit of a file's size (ulimit -f) is to fail, and to be told, instead of ending this process. Programs that
// are executed have no handler.
void survive_large_files() {
    struct sigaction action;
    if (sigaction(SIGXFSZ, nullptr, &action) != 0 || action.sa_handler != SIG_DFL)
        return;
    action.sa_handler = [](int) {};
    sigaction(SIGXFSZ, &action, nullptr);
}

// A help text or a table that could not be written must not look like a success.
int after_output(int code) {
    std::cout.flush();
    if (std::cout || code != 0)
        return code;
    std::cerr << "thrum: cannot write to standard output\n";
    return thrum::kFailed;
}

} // namespace

int main(int argc, char **argv) try {
    hold_standard_streams();
    survive_large_files();
    const int shown = words_before_mark(argc, argv);
    thrum::CommandLine line(
        {"thrum",
         "thrum makes threads cheap, and finds out why they are slow:\n  run, compare, counters   unmodified "
         "programs: their terminated threads are reused\n  ps, trace                programs with libthrum's "
         "user-level threads\n  stat                     any program: is it slow because of its threads, and "
         "why",
         "thrum COMMAND [OPTIONS]",
         "thrum help COMMAND explains a command; so does its manual page, such as thrum-run(1)."},
        "thrum " THRUM_VERSION);
    const std::vector<std::string> behind_mark(argv + shown, argv + argc);
    thrum::add_run(line, behind_mark);
    thrum::add_compare(line, behind_mark);
    thrum::add_stat(line, behind_mark);
    thrum::add_counters(line);
    thrum::add_ps(line);
    thrum::add_trace(line, behind_mark);
    line.add_help();
    const int code = after_output(line.run(shown, argv));
    if (line.signal() != 0)
        thrum::die_of(line.signal());
    return code;
} catch (const std::exception &error) {
    std::fprintf(stderr, "thrum: %s\n", error.what());
    return thrum::kFailed;
}
