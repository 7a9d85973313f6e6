// SPDX-License-Identifier: Apache-2.0
//
// `thrum run [OPTIONS] [--] PROG [ARGS...]`: puts libthrum-cache.so first into LD_PRELOAD, each option
// into its environment variable (so that children inherit them), and becomes the program. There is no
// process in between: exit code, signals and streams are the program's own.
//
// With --argobots it is libabt.so.1 instead, which by its SONAME takes the place of the one that the program was linked with.
//
// It refuses programs that a preloaded library does not reach (program.cpp), rather than run them without
// the cache and let the user wonder.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "command.hpp"
#include "elf.hpp"
#include "preload.hpp"
#include "program.hpp"
#include "tools/descriptor.hpp"

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
// where it made no thread, and that reports misspelt variables.
void name_the_program() {
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

// The functions of Argobots' that only return ABT_ERR_FEATURE_NA (docs/reference/argobots.md).
constexpr const char *kNotCovered[] = {"ABT_tool_query_thread", "ABT_tool_register_thread_callback"};

// Can it use Argobots without being linked with it: by another library, one that it loads, or a program that it starts?
bool may_use_argobots_by_others(const elf::Image &program, const std::vector<std::string> &needed) {
    constexpr const char *kOwn[] = {"libc.so.",  "libm.so.",     "libpthread.so.", "libdl.so.",
                                    "librt.so.", "libgcc_s.so.", "libstdc++.so.",  "ld-linux"};
    constexpr const char *kStarts[] = {"exec",  "fexecve", "posix_spawn", "system",
                                       "popen", "dlopen",  "dlmopen",     "syscall"};
    const auto begins_with = [](const std::string &name) {
        return [&name](const char *prefix) { return name.compare(0, std::strlen(prefix), prefix) == 0; };
    };
    return std::any_of(needed.begin(), needed.end(),
                       [&](const std::string &name) {
                           return std::none_of(std::begin(kOwn), std::end(kOwn), begins_with(name));
                       }) ||
           std::any_of(std::begin(kStarts), std::end(kStarts),
                       [&program](const char *prefix) { return !program.wanted_symbols(prefix).empty(); });
}

// In one line, what is not covered of a program of Argobots': empty if all is, or if that cannot be told, as of a script.
std::string what_is_not_covered(const std::string &path, const elf::Image &library) {
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    const auto program = file.is_open() ? elf::Image::from_file(file.get()) : std::nullopt;
    if (!program)
        return "";
    if (program->find_symbol("ABT_init"))
        return path + " has Argobots built in, which cannot be replaced";
    const std::vector<std::string> needed = program->needed(), wanted = program->wanted_symbols("ABT_");
    const bool is_linked = std::any_of(needed.begin(), needed.end(), [](const std::string &name) {
        return name.compare(0, 10, "libabt.so.") == 0;
    });
    if (is_linked && std::find(needed.begin(), needed.end(), library.soname()) == needed.end())
        return path + " was linked with another version than " + library.soname() + ", which is not replaced";
    if (!is_linked && wanted.empty() && !may_use_argobots_by_others(*program, needed))
        return path + " does not use Argobots; run it without --argobots";
    std::string names;
    for (const std::string &name : wanted) {
        const bool is_there = library.find_symbol(name).has_value();
        if (!is_there || std::any_of(std::begin(kNotCovered), std::end(kNotCovered),
                                     [&name](const char *other) { return name == other; }))
            names += (names.empty() ? "" : ", ") + name + (is_there ? "" : " (unknown)");
    }
    return names.empty() ? "" : path + " uses what libabt does not cover: " + names;
}

void run_argobots(const std::string &path, const std::vector<std::string> &words) {
    const std::string library = find_library("libabt.so.1");
    const Descriptor file(open(own_path(library).c_str(), O_RDONLY | O_CLOEXEC));
    const auto image = file.is_open() ? elf::Image::from_file(file.get()) : std::nullopt;
    if (image)
        if (const std::string gap = what_is_not_covered(path, *image); !gap.empty())
            std::fprintf(stderr, "thrum run: %s\n", gap.c_str());
    set_preload(library, true);
    become_program(path, words);
}

void run(const std::vector<std::string> &words, bool argobots) {
    const std::string path = find_program(words.front());
    const Inspection inspection = inspect_program(path);
    if (!inspection.refusal.empty() && !is_skipped("preload"))
        throw Failure(kRefused, inspection.refusal_and_remedy());
    if (argobots)
        run_argobots(path, words);
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
    const auto argobots = std::make_shared<bool>(false);
    command.flag("--argobots",
                 "Put libabt.so.1 in the place of Argobots' library, and no\n"
                 "cache: the program's threads are libthrum's",
                 [argobots] { *argobots = true; });
    command.then([command, behind_mark, argobots] {
        const std::vector<std::string> words = program_words(command, behind_mark);
        if (*argobots && (has_cache_options(command) || command.has("--off") || command.has("--verbose")))
            throw Failure(kUsage,
                          "--argobots runs the program without the cache: leave the cache's options out");
        run(words, *argobots);
    });
}

} // namespace thrum
