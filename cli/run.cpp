// SPDX-License-Identifier: Apache-2.0
//
// `thrum run [OPTIONS] [--] PROG [ARGS...]`: puts libthrum-cache.so first into LD_PRELOAD, each option
// into its environment variable (so that children inherit them), and becomes the program. There is no
// process in between: exit code, signals and streams are the program's own.
//
// It refuses programs that a preloaded library does not reach (program.cpp), rather than run them without
// the cache and let the user wonder.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "command.hpp"
#include "preload.hpp"
#include "program.hpp"

namespace thrum {

namespace {

struct Flag {
    const char *option;
    const char *variable;
    const char *value;
    const char *help;
};

constexpr Flag kFlags[] = {
    {"-v,--verbose", "THRUM_CACHE_VERBOSE", "1",
     "Print a summary on stderr when the program ends, and if the cache\nis off, why"},
    {"--off", "THRUM_CACHE", "off",
     "Load the library, but create a kernel thread for every thread\n(to compare)"},
};

// As the library reads it.
bool is_verbose() {
    for (const char *variable : {"THRUM_CACHE_VERBOSE", "THRUM_VERBOSE"})
        if (const char *value = std::getenv(variable); value != nullptr && *value != '\0')
            return std::strcmp(value, "1") == 0 || std::strcmp(value, "on") == 0;
    return false;
}

// Tells the library which process is the user's program, as opposed to what that starts: it is the one that says so
// where it made no thread.
void name_the_program() {
    if (is_verbose())
        setenv("THRUM_CACHE_PROGRAM", std::to_string(getpid()).c_str(), 1);
}

// Debug builds: THRUM_SKIP=row[,row...] leaves a row of docs/internals/soundness.md out, to see its test fail.
bool is_skipped([[maybe_unused]] const char *row) {
#ifdef THRUM_DEBUG
    if (const char *rows = std::getenv("THRUM_SKIP"))
        for (const std::string &skipped : split(rows, ","))
            if (skipped == row)
                return true;
#endif
    return false;
}

void run(const std::vector<std::string> &words) {
    const std::string path = find_program(words.front());
    const Inspection inspection = inspect_program(path);
    if (!inspection.refusal.empty() && !is_skipped("preload"))
        throw Failure(kRefused, inspection.refusal);
    const std::string library = find_library();
    const bool with_library = inspection.exclusive.empty() || is_skipped("sanitizers");
    if (!with_library && is_verbose())
        std::fprintf(stderr, "thrum: %s is built with %s, so it runs without the cache\n", path.c_str(),
                     inspection.exclusive.c_str());
    set_preload(library, with_library);
    name_the_program();
    become_program(path, words);
}

} // namespace

void add_run(CommandLine &line, const std::vector<std::string> &behind_mark) {
    Command command = line.add({"run", "Run a program faster: its terminated threads are reused",
                                "thrum run [OPTIONS] [--] PROG [ARGS...]",
                                "In brackets: the environment variable that an option sets. Child processes "
                                "inherit it;\nit can be set instead of the option. Exit code: the program's, "
                                "or 2 wrong command line,\n125 refused (static, set-user-ID, musl or 32-bit "
                                "program), 126 not executable,\n127 not found. More in thrum-run(1)."});
    command.takes_program();
    for (const Flag &flag : kFlags)
        command.flag(flag.option, std::string(flag.help) + "\n[" + flag.variable + "=" + flag.value + "]",
                     [&flag] { setenv(flag.variable, flag.value, 1); });
    add_cache_options(command);
    command.then([command, behind_mark] { run(program_words(command, behind_mark)); });
}

} // namespace thrum
