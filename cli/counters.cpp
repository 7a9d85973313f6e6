// SPDX-License-Identifier: Apache-2.0
//
// `thrum counters PID [--json]`: prints the counters of a process that runs under thrum, without stopping
// it. The library exports them as one object, thrum_cache_counters (include/thrum/cache.h); its address is
// found in the process's own copy of the library's symbol table, not in the file: that may have been
// replaced since, or lie in another mount namespace.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "command.hpp"
#include "elf.hpp"
#include "text.hpp"
#include "thrum/cache.h"

namespace thrum {

namespace {

using Counters = struct thrum_cache_counters; // C++ takes the bare name for the object

constexpr const char *kLibrary = "libthrum-cache.so";
constexpr const char *kSymbol = "thrum_cache_counters";

#define THRUM_REASON_TEXT(name, text) text,
constexpr const char *kRetireReasons[] = {THRUM_CACHE_RETIRE_REASONS(THRUM_REASON_TEXT)};
constexpr const char *kPassReasons[] = {THRUM_CACHE_PASS_REASONS(THRUM_REASON_TEXT)};
#undef THRUM_REASON_TEXT

struct Reason {
    const char *text;
    std::uint64_t count;
};

template <std::size_t count>
std::vector<Reason> reasons(const char *const (&texts)[count], const std::uint64_t *counts) {
    static_assert(count <= THRUM_CACHE_REASONS_MAX);
    std::vector<Reason> list;
    for (std::size_t i = 0; i < count; i++)
        list.push_back({texts[i], counts[i]});
    return list;
}

// --- finding and reading them -----------------------------------------------------------------------

std::string proc_path(pid_t pid, const char *file) {
    return "/proc/" + std::to_string(pid) + "/" + file;
}

// The whole of a file in /proc, or nothing and errno.
std::optional<std::string> read_all(const std::string &path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return std::nullopt;
    std::string text;
    char block[4096];
    ssize_t got;
    while ((got = read(fd, block, sizeof block)) > 0)
        text.append(block, static_cast<std::size_t>(got));
    const int error = errno;
    close(fd);
    errno = error;
    return got < 0 ? std::nullopt : std::optional(text);
}

// kernel.yama.ptrace_scope; 0 where the kernel has none.
int ptrace_scope() {
    const auto text = read_all("/proc/sys/kernel/yama/ptrace_scope");
    return text ? std::atoi(text->c_str()) : 0;
}

Failure unreadable(pid_t pid, int error) {
    const std::string process = "process " + std::to_string(pid);
    if (error == ENOENT || error == ESRCH)
        return {kFailed, "there is no " + process};
    if (error != EPERM && error != EACCES)
        return {kFailed, "cannot read " + process + ": " + std::strerror(error)};
    const int scope = ptrace_scope();
    return {kFailed, "no permission to read " + process +
                         (scope == 0 ? "; try as its user or as root"
                                     : "; kernel.yama.ptrace_scope is " + std::to_string(scope) +
                                           ": try as root, or with that set to 0 as its user")};
}

// "START-END PERMISSIONS OFFSET DEVICE INODE PATH", where PATH may end in " (deleted)".
struct Mapping {
    std::uint64_t start = 0, offset = 0;
    std::string path;
};

std::optional<Mapping> parse_mapping(const std::string &line) {
    Mapping mapping;
    std::string skipped, permissions, device, inode;
    char dash;
    std::istringstream fields(line);
    fields >> std::hex >> mapping.start >> dash >> skipped >> permissions >> mapping.offset >> device >>
        inode;
    if (!fields)
        return std::nullopt;
    std::getline(fields >> std::ws, mapping.path);
    return mapping;
}

bool is_library(const std::string &path) {
    const std::string name = path.substr(path.rfind('/') + 1);
    return name == kLibrary || name == std::string(kLibrary) + " (deleted)";
}

// Where the library's file begins in the process.
std::uint64_t find_library(pid_t pid) {
    const auto maps = read_all(proc_path(pid, "maps"));
    if (!maps)
        throw unreadable(pid, errno);
    std::istringstream lines(*maps);
    for (std::string line; std::getline(lines, line);)
        if (const auto mapping = parse_mapping(line))
            if (mapping->offset == 0 && is_library(mapping->path))
                return mapping->start;
    throw Failure(kFailed, "process " + std::to_string(pid) + " does not run under thrum");
}

std::uint64_t find_counters(pid_t pid) {
    const std::uint64_t start = find_library(pid);
    char probe;
    if (!elf::read_process(pid, start, &probe, 1))
        throw unreadable(pid, errno);
    if (const auto image = elf::Image::from_process(pid, start))
        if (const auto symbol = image->find_symbol(kSymbol))
            return symbol->address;
    throw Failure(kFailed, std::string("the ") + kLibrary + " in process " + std::to_string(pid) +
                               " has no counters; it is not the one of this thrum");
}

Counters read_counters(pid_t pid) {
    const std::uint64_t address = find_counters(pid);
    struct {
        std::uint32_t version, size;
    } head;
    Counters counters;
    if (!elf::read_process(pid, address, &head, sizeof head))
        throw unreadable(pid, errno);
    if (head.version != THRUM_CACHE_COUNTERS_VERSION || head.size != sizeof counters)
        throw Failure(kFailed, "process " + std::to_string(pid) + " has counters of version " +
                                   std::to_string(head.version) + ", and this thrum reads version " +
                                   std::to_string(THRUM_CACHE_COUNTERS_VERSION));
    if (!elf::read_process(pid, address, &counters, sizeof counters))
        throw unreadable(pid, errno);
    return counters;
}

// --- printing them -------------------------------------------------------------------------------------

std::string program_name(pid_t pid) {
    std::string name = read_all(proc_path(pid, "comm")).value_or("?");
    return name.substr(0, name.find('\n'));
}

// "cancelled 2, robust mutex held 1": those that occurred.
std::string occurred(const std::vector<Reason> &list) {
    std::string text;
    for (const Reason &reason : list)
        if (reason.count != 0)
            text += (text.empty() ? "" : ", ") + (reason.text + (" " + std::to_string(reason.count)));
    return text;
}

void print_row(const char *name, std::uint64_t value, const std::string &note = "") {
    std::cout << std::left << std::setw(16) << name << std::right << std::setw(14) << value
              << (note.empty() ? "" : "   ") << note << '\n';
}

void print_table(pid_t pid, const Counters &counters) {
    std::cout << "process " << pid << " (" << program_name(pid) << ")\n";
    print_row("created", counters.created);
    print_row("reused", counters.reused);
    print_row("retired", counters.retired, occurred(reasons(kRetireReasons, counters.retired_by)));
    print_row("passed through", counters.passed, occurred(reasons(kPassReasons, counters.passed_by)));
    print_row("culled", counters.culled);
    print_row("live", counters.live);
    print_row("idle", counters.idle);
    print_row("idle, peak", counters.idle_peak);
}

std::string json_object(const std::vector<Reason> &list) {
    std::string text;
    for (const Reason &reason : list)
        text += (text.empty() ? "" : ", ") + json_string(reason.text) + ": " + std::to_string(reason.count);
    return "{" + text + "}";
}

void print_json(pid_t pid, const Counters &counters) {
    std::cout << "{\"pid\": " << pid << ", \"program\": " << json_string(program_name(pid))
              << ", \"created\": " << counters.created << ", \"reused\": " << counters.reused
              << ", \"retired\": " << counters.retired << ", \"passed\": " << counters.passed
              << ", \"culled\": " << counters.culled << ", \"live\": " << counters.live
              << ", \"idle\": " << counters.idle << ", \"idle_peak\": " << counters.idle_peak
              << ", \"retired_by\": " << json_object(reasons(kRetireReasons, counters.retired_by))
              << ", \"passed_by\": " << json_object(reasons(kPassReasons, counters.passed_by)) << "}\n";
}

pid_t parse_pid(const std::string &text) {
    const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    const long pid = digits && text.size() <= 10 ? std::strtol(text.c_str(), nullptr, 10) : 0;
    if (pid < 1 || pid > INT32_MAX)
        throw Failure(kUsage, "PID is a process number from 1 on, not '" + text + "'");
    return static_cast<pid_t>(pid);
}

struct Options {
    std::string pid;
    bool json = false;
};

void show(const Options &options) {
    if (options.pid.empty())
        throw Failure(kUsage, "which process? thrum counters PID");
    const pid_t pid = parse_pid(options.pid);
    const Counters counters = read_counters(pid);
    if (options.json)
        print_json(pid, counters);
    else
        print_table(pid, counters);
}

} // namespace

void add_counters(CLI::App &app) {
    auto options = std::make_shared<Options>();
    CLI::App *command =
        app.add_subcommand("counters", "Show the counters of a process that runs under thrum");
    command->formatter(std::make_shared<Help>("thrum counters [OPTIONS] PID"));
    command->add_option("PID", options->pid, "The process to look at")->type_name("");
    command->add_flag("--json", options->json, "Print one JSON object")->disable_flag_override();
    command->footer(
        "Needs the right to trace the process: its user, or root (see ptrace_scope in thrum-counters(1)).");
    command->callback([options] { show(*options); });
}

} // namespace thrum
