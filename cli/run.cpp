// SPDX-License-Identifier: Apache-2.0
//
// `thrum run [OPTIONS] [--] PROG [ARGS...]`: puts libthrum-cache.so first into LD_PRELOAD, each option
// into its environment variable (so that children inherit them), and becomes the program. There is no
// process in between: exit code, signals and streams are the program's own.
//
// It refuses programs that a preloaded library does not reach (program.cpp), rather than run them without
// the cache and let the user wonder.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "command.hpp"
#include "program.hpp"

#ifndef THRUM_INSTALL_LIBDIR_RELATIVE
#error                                                                                                       \
    "THRUM_INSTALL_LIBDIR_RELATIVE is defined by the build: from the folder of thrum to that of the library"
#endif

namespace thrum {

namespace {

constexpr const char *kLibrary = "libthrum-cache.so";
constexpr const char *kSeparators = " :"; // of LD_PRELOAD; the loader knows no way to escape them

// An option that takes a number, and the variable that it sets.
struct Number {
    const char *option;
    const char *variable;
    const char *unit;
    unsigned long most;
    const char *help;
};

constexpr Number kNumbers[] = {
    {"--min-rest", "THRUM_CACHE_MIN_REST", "MS", 3600000,
     "A terminated thread rests at least MS milliseconds before it is\n"
     "reused (0 to 3600000; default 0)"},
    {"--max-idle", "THRUM_CACHE_MAX_IDLE", "N", 1000000,
     "Keep at most N idle threads (0 to 1000000; default: no limit)"},
};

struct Flag {
    const char *option;
    const char *variable;
    const char *value;
    const char *help;
};

constexpr Flag kFlags[] = {
    {"-v,--verbose", "THRUM_CACHE_VERBOSE", "1",
     "Print a summary on stderr when the program ends, and why the cache\nis off if it is"},
    {"--wipe-stack", "THRUM_CACHE_WIPE_STACK", "1",
     "Give an idle thread's stack back to the kernel before every reuse,\nso that it reads as zeros"},
    {"--off", "THRUM_CACHE", "off", "Load the library, but make every thread a real one (to compare)"},
};

// Digits only, and no more than `most`: strtoul would take " +7", "-1" and "0x7" as well.
void set_number(const Number &number, const std::string &text) {
    const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    errno = 0;
    if (!digits || std::strtoul(text.c_str(), nullptr, 10) > number.most || errno != 0)
        throw Failure(kUsage, std::string(number.option) + " takes a whole number from 0 to " +
                                  std::to_string(number.most) + ", not '" + text + "'");
    setenv(number.variable, text.c_str(), 1);
}

bool is_one(const char *variable) {
    const char *value = std::getenv(variable);
    return value != nullptr && std::strcmp(value, "1") == 0;
}

bool is_verbose() {
    return is_one("THRUM_CACHE_VERBOSE") || is_one("THRUM_VERBOSE");
}

// The parts of a list, without empty ones.
std::vector<std::string> split(const std::string &list, const char *separators) {
    std::vector<std::string> parts;
    std::size_t from = 0;
    while ((from = list.find_first_not_of(separators, from)) != std::string::npos) {
        const std::size_t to = std::min(list.find_first_of(separators, from), list.size());
        parts.push_back(list.substr(from, to - from));
        from = to;
    }
    return parts;
}

// Debug builds: THRUM_SKIP=row[,row...] leaves a row of docs/soundness.md out, to see its test fail.
bool is_skipped([[maybe_unused]] const char *row) {
#ifdef THRUM_DEBUG
    if (const char *rows = std::getenv("THRUM_SKIP"))
        for (const std::string &skipped : split(rows, ","))
            if (skipped == row)
                return true;
#endif
    return false;
}

// --- the library -------------------------------------------------------------------------------------

std::string own_folder() {
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    if (length <= 0 || length == static_cast<ssize_t>(sizeof path))
        throw Failure(kRefused, std::string("cannot find out where thrum itself is: ") +
                                    (length < 0 ? std::strerror(errno) : "its path is too long"));
    const std::string whole(path, static_cast<std::size_t>(length));
    return whole.substr(0, whole.rfind('/'));
}

// Where it was installed to, or in the build tree. Both are relative to thrum, so a prefix may be moved.
std::string find_library() {
    const std::string folder = own_folder();
    std::string tried;
    for (const char *place : {THRUM_INSTALL_LIBDIR_RELATIVE, "../lib"}) {
        const std::string candidate = folder + "/" + place + "/" + kLibrary;
        const std::unique_ptr<char, decltype(&std::free)> real(realpath(candidate.c_str(), nullptr),
                                                               std::free);
        if (real != nullptr && access(real.get(), R_OK) == 0)
            return real.get();
        if (tried != candidate)
            tried += (tried.empty() ? "" : " or ") + candidate;
    }
    throw Failure(kRefused, std::string("cannot find ") + kLibrary + ": there is no readable " + tried);
}

void check_expressible(const std::string &library) {
    if (library.find_first_of(kSeparators) == std::string::npos && library.find('$') == std::string::npos)
        return;
    throw Failure(kRefused, "LD_PRELOAD cannot name '" + library +
                                "', because there is a space, a colon or a '$' in it; move thrum's "
                                "folder to a path without");
}

// The library first, then what was preloaded before (thrum may be run inside thrum: only one of it).
std::string preload_list(const std::string &library, bool with_library) {
    std::string list = with_library ? library : "";
    const char *present = std::getenv("LD_PRELOAD");
    for (const std::string &part : split(present != nullptr ? present : "", kSeparators))
        if (part != library)
            list += (list.empty() ? "" : ":") + part;
    return list;
}

void set_preload(const std::string &library, bool with_library) {
    const std::string list = preload_list(library, with_library);
    if (list.empty())
        unsetenv("LD_PRELOAD");
    else
        setenv("LD_PRELOAD", list.c_str(), 1);
}

// --- becoming the program ------------------------------------------------------------------------------

// As execvp(3) does it: what the kernel does not know is a script for the shell.
[[noreturn]] void become(const std::string &path, const std::vector<std::string> &words) {
    std::vector<char *> arguments;
    arguments.reserve(words.size() + 2); // the null pointer, and perhaps the shell
    for (const std::string &word : words)
        arguments.push_back(const_cast<char *>(word.c_str()));
    arguments.push_back(nullptr);
    execv(path.c_str(), arguments.data());
    if (errno == ENOEXEC) {
        char shell[] = "/bin/sh";
        arguments[0] = const_cast<char *>(path.c_str());
        arguments.insert(arguments.begin(), shell);
        execv(shell, arguments.data());
    }
    throw Failure(errno == ENOENT ? kNotFound : kNotExecutable,
                  path + " cannot be executed: " + std::strerror(errno));
}

void run(const std::vector<std::string> &words) {
    const std::string path = find_program(words.front());
    const Inspection inspection = inspect_program(path);
    if (!inspection.refusal.empty() && !is_skipped("preload"))
        throw Failure(kRefused, inspection.refusal);
    const std::string library = find_library();
    check_expressible(library);
    const bool with_library = inspection.exclusive.empty() || is_skipped("sanitizers");
    if (!with_library && is_verbose())
        std::fprintf(stderr, "thrum: %s is built with %s, so it runs without the cache\n", path.c_str(),
                     inspection.exclusive.c_str());
    set_preload(library, with_library);
    become(path, words);
}

// --- the command line ------------------------------------------------------------------------------------

// The program and its arguments. CLI11 hands back what it does not know from the words before "--":
// unknown options, then everything from the program on. Only behind "--" may a program's name begin with a dash.
std::vector<std::string> program_words(const std::vector<std::string> &left,
                                       const std::vector<std::string> &behind_mark) {
    if (left.empty()) {
        if (behind_mark.size() < 2)
            throw Failure(kUsage, "which program? thrum run [OPTIONS] -- PROG ARGS...");
        return {behind_mark.begin() + 1, behind_mark.end()};
    }
    if (left.front().size() > 1 && left.front()[0] == '-')
        throw Failure(kUsage, "unknown option '" + left.front() + "'; see thrum run --help");
    std::vector<std::string> words = left;
    words.insert(words.end(), behind_mark.begin(), behind_mark.end());
    return words;
}

void add_options(CLI::App &command) {
    for (const Flag &flag : kFlags)
        command
            .add_flag_callback(
                flag.option, [&flag] { setenv(flag.variable, flag.value, 1); },
                std::string(flag.help) + "\n[" + flag.variable + "=" + flag.value + "]")
            ->disable_flag_override();
    for (const Number &number : kNumbers)
        command
            .add_option_function<std::string>(
                number.option, [&number](const std::string &text) { set_number(number, text); },
                std::string(number.help) + "\n[" + number.variable + "]")
            ->type_name(number.unit)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

} // namespace

void add_run(CLI::App &app, const std::vector<std::string> &behind_mark) {
    CLI::App *command = app.add_subcommand("run", "Run a program with its terminated threads reused");
    command->formatter(std::make_shared<Help>("thrum run [OPTIONS] [--] PROG [ARGS...]"));
    command->prefix_command();
    command->footer("In brackets: the environment variable that an option sets. Children inherit it, and it\n"
                    "may be set without the option. Exit code: the program's, or 2 wrong command line,\n"
                    "125 refused (static, set-user-ID, musl or 32-bit program), 126 not executable,\n"
                    "127 not found. More in thrum-run(1).");
    add_options(*command);
    command->callback([command, behind_mark] { run(program_words(command->remaining(), behind_mark)); });
}

} // namespace thrum
