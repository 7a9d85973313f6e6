// SPDX-License-Identifier: Apache-2.0
//
// What stands in /proc/PID/task, and in the small files of /proc/PID/task/TID: read without allocating, since that is done thousands of times a
// second. Used by sampler.cpp.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
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

// The next threads in /proc/PID/task, some hundreds, into `ids`; none and false at its end. readdir(3) would keep more than are
// asked for, and of those some have ended by the time that they are.
bool read_ids(int folder, std::vector<pid_t> &ids);

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

// status: the process is in a container, where its threads have other numbers ("NSpid: 4711 2").
bool has_inner_numbers(const std::string &status);

// status: of the line "NAME: NUMBER".
std::uint64_t number_in(const std::string &status, const char *name);

} // namespace thrum::stat
