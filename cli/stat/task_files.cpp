// SPDX-License-Identifier: Apache-2.0
#include "stat/task_files.hpp"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace thrum::stat {

std::optional<std::size_t> count_ids(int folder) {
    struct stat status;
    if (fstat(folder, &status) != 0)
        return std::nullopt;
    return status.st_nlink > 2 ? status.st_nlink - 2 : 0;
}

bool read_ids(int folder, std::vector<pid_t> &ids, std::size_t bytes) {
    alignas(dirent64) char entries[16 << 10];
    ids.clear();
    const ssize_t got = getdents64(folder, entries, std::min(bytes, sizeof entries));
    for (ssize_t at = 0; at < got;) {
        const auto *entry = reinterpret_cast<const dirent64 *>(entries + at);
        at += entry->d_reclen;
        if (const long id = std::strtol(entry->d_name, nullptr, 10); id > 0) // no "." and ".."
            ids.push_back(static_cast<pid_t>(id));
    }
    return got > 0;
}

SchedStat parse_schedstat(const char *text) {
    SchedStat stat;
    char *end = nullptr;
    stat.run_ns = std::strtoull(text, &end, 10);
    stat.delay_ns = std::strtoull(end, &end, 10);
    stat.times_run = std::strtoull(end, &end, 10);
    return stat;
}

bool parse_system_call(const char *text, SleepingCall &call) {
    char *end = nullptr;
    call.number = std::strtol(text, &end, 10);
    if (end == text)
        return false;
    if (call.number >= 0)
        for (std::uint64_t &argument : call.arguments)
            argument = std::strtoull(end, &end, 16);
    call.sp = std::strtoull(end, &end, 16);
    call.pc = std::strtoull(end, &end, 16);
    return true;
}

char parse_state(const char *text) {
    const char *name_end = std::strrchr(text, ')');
    return name_end != nullptr && name_end[1] == ' ' ? name_end[2] : '?';
}

std::uint64_t parse_start(const char *text) {
    constexpr int kStart = 22, kState = 3; // as proc(5) counts
    const char *at = std::strrchr(text, ')');
    for (int field = kState - 1; at != nullptr && field < kStart; field++)
        at = std::strchr(at + 1, ' ');
    return at != nullptr ? std::strtoull(at, nullptr, 10) : 0;
}

std::string line_in(const std::string &status, const char *name) {
    const std::size_t at = status.find(name);
    if (at == std::string::npos)
        return "";
    const std::size_t begin = at + std::strlen(name);
    return status.substr(begin, status.find('\n', begin) - begin);
}

bool has_inner_numbers(const std::string &status) {
    return line_in(status, "\nNSpid:\t").find('\t') != std::string::npos;
}

std::uint64_t number_in(const std::string &status, const char *name) {
    return std::strtoull(line_in(status, name).c_str(), nullptr, 10);
}

} // namespace thrum::stat
