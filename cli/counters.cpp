// SPDX-License-Identifier: Apache-2.0
//
// `thrum counters PID [--json]`: prints the counters of a process that runs under thrum, without stopping
// it. The library exports them as one object, thrum_cache_counters (include/thrum/cache.h); its address is
// found in the process's own copy of the library's symbol table, not in the file: that may have been
// replaced since, or lie in another mount namespace.
#include <unistd.h>

#include <cerrno>
#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "command.hpp"
#include "elf.hpp"
#include "process.hpp"
#include "repeat.hpp"
#include "thrum/cache.h"
#include "tools/json.hpp"
#include "tools/output_file.hpp"
#include "tools/text.hpp"

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

std::uint64_t find_counters(pid_t pid) {
    const auto address = process::find_symbol(pid, kLibrary, kSymbol);
    if (!address)
        throw Failure(kFailed, "process " + std::to_string(pid) + " does not run under thrum");
    return *address;
}

Counters read_counters(pid_t pid) {
    const std::uint64_t address = find_counters(pid);
    struct {
        std::uint32_t version, size;
    } head;
    Counters counters;
    if (!elf::read_process(pid, address, &head, sizeof head))
        throw process::unreadable(pid, errno);
    if (head.version != THRUM_CACHE_COUNTERS_VERSION || head.size != sizeof counters)
        throw Failure(kFailed, "process " + std::to_string(pid) + " has counters of version " +
                                   std::to_string(head.version) + ", but this thrum reads version " +
                                   std::to_string(THRUM_CACHE_COUNTERS_VERSION));
    if (!elf::read_process(pid, address, &counters, sizeof counters))
        throw process::unreadable(pid, errno);
    return counters;
}

// --- printing them -------------------------------------------------------------------------------------

// "cancelled 2, robust mutex held 1": those that occurred.
std::string occurred(const std::vector<Reason> &list) {
    std::string text;
    for (const Reason &reason : list)
        if (reason.count != 0)
            text += (text.empty() ? "" : ", ") + (reason.text + (" " + std::to_string(reason.count)));
    return text;
}

// To a terminal, a long note is wrapped in its column; `fd` is -1 for a file.
void print_row(int fd, const char *name, std::uint64_t value, const std::string &note = "") {
    constexpr int kName = 16, kValue = 14;
    const std::string gap = note.empty() ? "" : "   ";
    std::ostringstream row;
    row << std::left << std::setw(kName) << name << std::right << std::setw(kValue) << value << gap << note;
    std::cout << row_for(fd, row.str(), kName + kValue + gap.size());
}

void print_table(pid_t pid, const Counters &counters, int fd) {
    std::cout << "process " << pid << " (" << terminal_text(process::name(pid)) << ")\n";
    print_row(fd, "created", counters.created);
    print_row(fd, "reused", counters.reused);
    print_row(fd, "retired", counters.retired, occurred(reasons(kRetireReasons, counters.retired_by)));
    print_row(fd, "passed through", counters.passed, occurred(reasons(kPassReasons, counters.passed_by)));
    print_row(fd, "culled", counters.culled);
    print_row(fd, "live", counters.live);
    print_row(fd, "idle", counters.idle);
    print_row(fd, "idle, peak", counters.idle_peak);
}

Json reasons_json(const std::vector<Reason> &list) {
    Json object = Json::object();
    for (const Reason &reason : list)
        object[reason.text] = reason.count;
    return object;
}

void print_json(pid_t pid, const Counters &counters) {
    const Json all = {{"pid", pid},
                      {"program", process::name(pid)},
                      {"created", counters.created},
                      {"reused", counters.reused},
                      {"retired", counters.retired},
                      {"passed", counters.passed},
                      {"culled", counters.culled},
                      {"live", counters.live},
                      {"idle", counters.idle},
                      {"idle_peak", counters.idle_peak},
                      {"retired_by", reasons_json(reasons(kRetireReasons, counters.retired_by))},
                      {"passed_by", reasons_json(reasons(kPassReasons, counters.passed_by))}};
    std::cout << json_line(all) << '\n';
}

struct Options {
    std::string pid, output; // empty: standard output
    double every = 0;        // seconds; 0: once
    bool json = false;
};

void show(const Options &options) {
    if (options.pid.empty())
        throw Failure(kUsage, "missing process number: thrum counters PID");
    const pid_t pid = process::parse(options.pid);
    const bool is_stream = options.output.empty() || options.output == OutputFile::kStandard;
    repeat(options.every, options.output, [&options, pid, fd = is_stream ? STDOUT_FILENO : -1] {
        const Counters counters = read_counters(pid);
        if (options.json)
            print_json(pid, counters);
        else
            print_table(pid, counters, fd);
    });
}

} // namespace

void add_counters(CommandLine &line) {
    auto options = std::make_shared<Options>();
    Command command = line.add({"counters", "Show the counters of a process that runs under thrum",
                                "thrum counters [OPTIONS] PID",
                                "Needs permission to trace the process: as its user or as root (see "
                                "ptrace_scope in\nthrum-counters(1))."});
    command.word("PID", "The process to inspect", options->pid);
    command.flag("--json", "Print one JSON object", options->json);
    add_file(command, "-o,--output", "Write to FILE; -: stdout", options->output);
    command.value("--watch", "SECONDS", "Repeat at this interval, until Ctrl-C",
                  [options](const std::string &text) { options->every = parse_seconds("--watch", text); });
    command.then([options] { show(*options); });
}

} // namespace thrum
