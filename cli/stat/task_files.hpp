// SPDX-License-Identifier: Apache-2.0
//
// What stands in /proc/PID/task, and in the small files of /proc/PID/task/TID: read without allocating, since that is done thousands of times a
// second. Used by sampler.cpp, thread_list.cpp and run.cpp.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace thrum::stat {

// The beginning of a file, as a string with a zero at its end; false and errno where there is nothing.
template <std::size_t kSize>
bool read_text(int fd, char (&text)[kSize]) {
    const ssize_t got = pread(fd, text, kSize - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    if (got == 0)
        errno = ESRCH;
    return got > 0;
}

// How many threads are in /proc/PID/task: the folder has as many links, and two. Nothing: the process has ended.
std::optional<std::size_t> count_ids(int folder);

// The next of them into `ids`, as many as fit into `bytes`, 16 KiB at most; each takes 24 or 32. None and false at the end.
// readdir(3) reads a thousand at once, which takes time, and of which some have ended when they are asked for.
bool read_ids(int folder, std::vector<pid_t> &ids, std::size_t bytes);

// schedstat: "RUN_NS DELAY_NS SLICES".
struct SchedStat {
    std::uint64_t run_ns = 0, delay_ns = 0, times_run = 0;
};
SchedStat parse_schedstat(const char *text);

// syscall: "202 0x7f.. 0x80 ... SP PC", or "-1 SP PC" where a thread sleeps elsewhere in the kernel; "running".
struct SleepingCall {
    long number = -1;
    std::uint64_t arguments[6] = {};
    std::uint64_t sp = 0, pc = 0;
};
bool parse_system_call(const char *text, SleepingCall &call);

// stat: the state's letter, behind the name in parentheses.
char parse_state(const char *text);

// stat: when the thread began, in ticks of a clock (_SC_CLK_TCK) since the machine did; 0: that is not in `text`.
std::uint64_t parse_start(const char *text);

// status: what follows `name` in its line; empty: there is no such line.
std::string line_in(const std::string &status, const char *name);

// status: the process is in a container, where its threads have other numbers ("NSpid: 4711 2").
bool has_inner_numbers(const std::string &status);

// status: of the line "NAME: NUMBER".
std::uint64_t number_in(const std::string &status, const char *name);

} // namespace thrum::stat
