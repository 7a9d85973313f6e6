// SPDX-License-Identifier: Apache-2.0
#include "stat/account.hpp"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "process.hpp"
#include "program.hpp"
#include "stat/task_files.hpp"
#include "tools/descriptor.hpp"

namespace thrum::stat {

namespace {

std::uint64_t number_behind(const std::string &text, const char *name) {
    const std::size_t at = text.find(name);
    return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + std::strlen(name), nullptr, 10);
}

std::string text_of_file(const std::string &path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

} // namespace

std::optional<double> process_cpu(pid_t pid) {
    clockid_t clock;
    timespec time;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
        return std::nullopt;
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// The file has times in clock ticks of 10 ms, which of a short look are much: their sum is that of the clock.
std::optional<Account> account_of(pid_t pid) {
    const auto stat = process::stat(pid);
    if (!stat || stat->has_ended())
        return std::nullopt;
    Account account;
    account.faults_major = stat->faults_major;
    const double cpu = process_cpu(pid).value_or(stat->cpu());
    account.system = std::min(stat->system, cpu);
    account.user = cpu - account.system;
    return account;
}

void take_switches(pid_t pid, Account &account) {
    const std::string folder = "/proc/" + std::to_string(pid) + "/task";
    const Descriptor tasks(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    std::vector<pid_t> part;
    std::uint64_t voluntary = 0, involuntary = 0;
    bool is_there = false;
    while (tasks.is_open() && read_ids(tasks.get(), part, 1024))
        for (const pid_t id : part) {
            const std::string status = text_of_file(folder + "/" + std::to_string(id) + "/status");
            is_there = is_there || !status.empty();
            voluntary += number_behind(status, "\nvoluntary_ctxt_switches:");
            involuntary += number_behind(status, "nonvoluntary_ctxt_switches:");
        }
    if (!is_there)
        return;
    account.voluntary = voluntary;
    account.involuntary = involuntary;
}

void take_times(const Account &from, Account &account) {
    account.user = from.user;
    account.system = from.system;
    account.faults_major = from.faults_major;
}

void take_difference(const Account &before, const Account &after, Measured &measured) {
    const auto grown = [](std::uint64_t from, std::uint64_t to) { return to > from ? to - from : 0; };
    measured.user = after.user - before.user;
    measured.system = after.system - before.system;
    measured.voluntary = grown(before.voluntary, after.voluntary);
    measured.involuntary = grown(before.involuntary, after.involuntary);
    measured.faults_major = grown(before.faults_major, after.faults_major);
}

void leave_out_late_ticks(unsigned threads, Measured &measured) {
    constexpr double kLongestTick = 0.01;
    const double at_once = std::min<double>(threads, std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
    const double excess = measured.user + measured.system - at_once * measured.wall;
    if (excess > 0 && excess <= at_once * kLongestTick)
        leave_out_cpu(excess, measured);
}

} // namespace thrum::stat
