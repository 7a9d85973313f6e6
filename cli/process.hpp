// SPDX-License-Identifier: Apache-2.0
//
// Another process, as /proc and its memory show it: what `thrum counters`, `thrum ps` and `thrum stat` have in common.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "tools/failure.hpp"

namespace thrum::process {

// A PID from the command line; throws Failure where it is none.
pid_t parse(const std::string &text);

// The whole of a file in /proc, or nothing and errno.
std::optional<std::string> read_all(const std::string &path);

// What /proc/PID/stat says of a process, so far.
struct Stat {
    std::string name;
    char state = '?';
    pid_t parent = 0;
    std::uint64_t faults_major = 0;
    double user = 0, system = 0; // seconds of CPU time, its own
    double waited_cpu = 0;       // of the children that it has waited for, and of theirs
    unsigned threads = 0;
    double memory = 0; // resident bytes

    double cpu() const { return user + system; }
    // With more threads its first one alone has ended.
    bool has_ended() const { return state == 'X' || (state == 'Z' && threads <= 1); }
};
// Nothing where `text` is no such file's, or there is no such process.
std::optional<Stat> parse_stat(const std::string &text);
std::optional<Stat> stat(pid_t pid);

// As ps(1) has it under COMMAND.
std::string name(pid_t pid);

// Throws Failure where it is one of the kernel's own, or has ended and waits for its parent: there is no program in it.
void check_has_program(pid_t pid);

// The text of its maps file, or nothing and errno. That file is empty where the first thread has ended while others run: then
// one of theirs.
std::optional<std::string> read_maps(pid_t pid);
// The same; throws Failure where it cannot be read.
std::string maps(pid_t pid);

// kernel.yama.ptrace_scope; 0 where the kernel has none.
int ptrace_scope();

// To be allowed to read a process, as the end of a sentence that says that it is not.
std::string what_would_help(int ptrace_scope, bool is_root);

// Why the process cannot be read, and what to do about it; `error` is that of the failed read.
Failure unreadable(pid_t pid, int error);

// Where it has this symbol of the library whose file's name begins so; nothing where it has no such library. Throws
// Failure where it cannot be read, or the library has no such symbol.
std::optional<std::uint64_t> find_symbol(pid_t pid, const std::string &library, const std::string &symbol);

// Likewise of libthrum, which may be part of libabt.so, in the place of Argobots'; that one has no such symbol.
std::optional<std::uint64_t> find_in_libthrum(pid_t pid, const std::string &symbol);

} // namespace thrum::process
