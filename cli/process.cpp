// SPDX-License-Identifier: Apache-2.0
#include "process.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "elf.hpp"
#include "maps.hpp"
#include "tools/text.hpp"

namespace thrum::process {

namespace {

std::string proc_path(pid_t pid, const char *file) {
    return "/proc/" + std::to_string(pid) + "/" + file;
}

bool is_library(const std::string &path, const std::string &library) {
    return path.compare(path.rfind('/') + 1, library.size(), library) == 0;
}

std::size_t count_threads(pid_t pid) {
    std::error_code error;
    const std::filesystem::directory_iterator begin(proc_path(pid, "task"), error), end;
    return error ? 0 : static_cast<std::size_t>(std::distance(begin, end));
}

// Where the library's file begins in the process; 0 where it has none.
std::uint64_t find_library(pid_t pid, const std::string &library) {
    for (const Mapping &mapping : mappings_of(maps(pid)))
        if (mapping.offset == 0 && is_library(mapping.path, library))
            return mapping.start;
    return 0;
}

} // namespace

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

pid_t parse(const std::string &text) {
    const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    const long pid = digits && text.size() <= 10 ? std::strtol(text.c_str(), nullptr, 10) : 0;
    if (pid < 1 || pid > INT32_MAX)
        throw Failure(kUsage, "PID is a process number from 1 to 2147483647, not '" + text + "'");
    return static_cast<pid_t>(pid);
}

// "PID (NAME) STATE PPID ...", where NAME may have parentheses and blanks of its own.
std::optional<Stat> parse_stat(const std::string &text) {
    const std::size_t name = text.find('('), end = text.rfind(')');
    if (name == std::string::npos || end == std::string::npos || end < name)
        return std::nullopt;
    std::istringstream fields(text.substr(end + 1));
    std::string skipped;
    double user = 0, system = 0, children_user = 0, children_system = 0, pages = 0;
    Stat stat;
    stat.name = text.substr(name + 1, end - name - 1);
    fields >> stat.state >> stat.parent;
    for (int field = 5; field <= 11; field++)
        fields >> skipped;
    fields >> stat.faults_major >> skipped >> user >> system >> children_user >> children_system >> skipped >>
        skipped >> stat.threads;
    if (!fields)
        return std::nullopt;
    for (int field = 21; field <= 23; field++)
        fields >> skipped;
    fields >> pages;
    stat.memory = pages * static_cast<double>(sysconf(_SC_PAGESIZE));
    const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
    stat.user = user / ticks;
    stat.system = system / ticks;
    stat.waited_cpu = (children_user + children_system) / ticks;
    return stat;
}

std::optional<Stat> stat(pid_t pid) {
    return parse_stat(read_all(proc_path(pid, "stat")).value_or(""));
}

std::string name(pid_t pid) {
    std::string name = read_all(proc_path(pid, "comm")).value_or("?");
    return name.substr(0, name.find('\n'));
}

// In /proc/PID/stat, behind the name: the state, and as the ninth field flags, of which 0x200000 is PF_KTHREAD.
void check_has_program(pid_t pid) {
    constexpr unsigned long kKernelThread = 0x200000;
    const auto text = read_all(proc_path(pid, "stat"));
    if (!text)
        throw unreadable(pid, errno);
    std::istringstream fields(text->substr(std::min(text->rfind(')') + 1, text->size())));
    std::string state, skipped, parent;
    unsigned long flags = 0;
    fields >> state >> parent;
    for (int field = 5; field <= 8; field++)
        fields >> skipped;
    fields >> flags;
    const std::string process = "process " + std::to_string(pid) + " (" + terminal_text(name(pid)) + ")";
    if ((flags & kKernelThread) != 0)
        throw Failure(kFailed, process + " is a kernel thread: it runs no program");
    if (state == "Z" && count_threads(pid) <= 1)
        throw Failure(kFailed,
                      process + " has ended; its parent, process " + parent + ", has not waited for it yet");
}

std::optional<std::string> read_maps(pid_t pid) {
    auto text = read_all(proc_path(pid, "maps"));
    if (!text || !text->empty())
        return text;
    std::error_code error;
    std::filesystem::directory_iterator task(proc_path(pid, "task"), error);
    for (; !error && task != std::filesystem::directory_iterator(); task.increment(error))
        if (auto its = read_all(task->path().string() + "/maps"); its && !its->empty())
            return its;
    return text;
}

std::string maps(pid_t pid) {
    const auto text = read_maps(pid);
    if (!text)
        throw unreadable(pid, errno);
    return *text;
}

int ptrace_scope() {
    const auto text = read_all("/proc/sys/kernel/yama/ptrace_scope");
    return text ? std::atoi(text->c_str()) : 0;
}

std::string what_would_help(int scope, bool is_root) {
    if (scope >= 3)
        return "; kernel.yama.ptrace_scope is 3, which forbids it to all users until the next boot";
    if (is_root)
        return "; root needs CAP_SYS_PTRACE, which a container may lack (docker run --cap-add=SYS_PTRACE)";
    if (scope == 0)
        return "; try as its user or as root";
    return "; kernel.yama.ptrace_scope is " + std::to_string(scope) +
           ": try as root, or with that set to 0 as its user";
}

Failure unreadable(pid_t pid, int error) {
    const std::string process = "process " + std::to_string(pid);
    if ((error == ENOENT || error == ESRCH) && access("/proc/self/stat", R_OK) != 0)
        return {kFailed, "cannot look at " + process + ": /proc is not mounted here, or not readable"};
    if (error == ENOENT || error == ESRCH)
        return {kFailed, "there is no " + process};
    if (error != EPERM && error != EACCES)
        return {kFailed, "cannot read " + process + ": " + std::strerror(error)};
    return {kFailed, "no permission to read " + process + what_would_help(ptrace_scope(), geteuid() == 0)};
}

std::optional<std::uint64_t> find_symbol(pid_t pid, const std::string &library, const std::string &symbol) {
    const std::uint64_t start = find_library(pid, library);
    if (start == 0)
        return std::nullopt;
    char probe;
    if (!elf::read_process(pid, start, &probe, 1))
        throw unreadable(pid, errno);
    if (const auto image = elf::Image::from_process(pid, start))
        if (const auto found = image->find_symbol(symbol))
            return found->address;
    throw Failure(kFailed, "the " + library + " in process " + std::to_string(pid) + " has no " + symbol +
                               "; it does not match this thrum command");
}

std::optional<std::uint64_t> find_in_libthrum(pid_t pid, const std::string &symbol) {
    if (const auto found = find_symbol(pid, "libthrum.so", symbol))
        return found;
    const std::uint64_t start = find_library(pid, "libabt.so");
    const auto image = start != 0 ? elf::Image::from_process(pid, start) : std::nullopt;
    const auto found = image ? image->find_symbol(symbol) : std::nullopt;
    return found ? std::optional(found->address) : std::nullopt;
}

} // namespace thrum::process
