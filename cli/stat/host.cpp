// SPDX-License-Identifier: Apache-2.0
#include "stat/host.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>

namespace thrum::stat {

namespace {

constexpr double kMeasured = 0.02; // seconds of CPU time

// "MAX PERIOD" in microseconds, where MAX may be "max".
std::optional<double> quota_of_v2(const std::string &folder) {
    std::ifstream file(folder + "/cpu.max");
    double most, period;
    if (!(file >> most >> period) || period <= 0)
        return std::nullopt;
    return most / period;
}

std::optional<double> quota_of_v1(const std::string &folder) {
    double most, period;
    if (!(std::ifstream(folder + "/cpu.cfs_quota_us") >> most) ||
        !(std::ifstream(folder + "/cpu.cfs_period_us") >> period) || most <= 0 || period <= 0)
        return std::nullopt;
    return most / period;
}

// This process's control group: the one hierarchy of v2 ("0::/PATH"), or that of the controller cpu.
std::string control_group(const std::string &root, bool v2) {
    std::ifstream file(root + "/proc/self/cgroup");
    for (std::string line; std::getline(file, line);) {
        const std::size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos)
            continue;
        const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
        if (v2 ? controllers == ",," : controllers.find(",cpu,") != std::string::npos)
            return line.substr(second + 1);
    }
    return "";
}

// The narrowest limit from the group up to the top. In a container the top stands for its own group.
std::optional<double> narrowest(const std::string &top, std::string group,
                                std::optional<double> (*quota)(const std::string &)) {
    std::optional<double> least;
    for (;;) {
        const std::optional<double> here = quota(top + group);
        if (here && (!least || *here < *least))
            least = here;
        const std::size_t parent = group.rfind('/');
        if (parent == std::string::npos)
            return least;
        group.erase(parent);
    }
}

// "throttled_usec 12" of v2, "throttled_time 12000" of v1, in nanoseconds.
double throttled_in(const std::string &folder) {
    std::ifstream file(folder + "/cpu.stat");
    std::string name;
    for (double value; file >> name >> value;)
        if (name == "throttled_usec" || name == "throttled_time")
            return value * (name == "throttled_usec" ? 1e-6 : 1e-9);
    return 0;
}

double most_throttled(const std::string &top, std::string group) {
    double most = 0;
    for (;;) {
        most = std::max(most, throttled_in(top + group));
        const std::size_t parent = group.rfind('/');
        if (parent == std::string::npos)
            return most;
        group.erase(parent);
    }
}

// --- the context switch -------------------------------------------------------------------------------

void wait_while(std::atomic<std::uint32_t> &word, std::uint32_t value) {
    while (word.load(std::memory_order_acquire) == value)
        syscall(SYS_futex, reinterpret_cast<std::uint32_t *>(&word), FUTEX_WAIT_PRIVATE, value, nullptr,
                nullptr, 0);
}

void set(std::atomic<std::uint32_t> &word, std::uint32_t value) {
    word.store(value, std::memory_order_release);
    syscall(SYS_futex, reinterpret_cast<std::uint32_t *>(&word), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

double cpu_time() {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

bool stay_on_this_cpu() {
    const int cpu = sched_getcpu();
    if (cpu < 0)
        return false;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(cpu), &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
}

constexpr std::uint32_t kPing = 0, kPong = 1, kStop = 2;

// The answering thread. It inherits its creator's CPU.
void answer(std::atomic<std::uint32_t> &word) {
    for (;;) {
        wait_while(word, kPing);
        if (word.load(std::memory_order_acquire) == kStop)
            return;
        set(word, kPing);
    }
}

double cost_of_rounds(std::atomic<std::uint32_t> &word) {
    std::uint64_t rounds = 0;
    const double begin = cpu_time();
    double spent = 0;
    while (spent < kMeasured) {
        for (int i = 0; i < 64; i++) {
            set(word, kPong);
            wait_while(word, kPong);
        }
        rounds += 64;
        spent = cpu_time() - begin;
    }
    return spent / static_cast<double>(2 * rounds);
}

} // namespace

std::optional<double> cpu_quota(const std::string &root) {
    const std::string top = root + "/sys/fs/cgroup";
    const std::optional<double> quota = narrowest(top, control_group(root, true), quota_of_v2);
    return quota ? quota : narrowest(top + "/cpu", control_group(root, false), quota_of_v1);
}

double cpu_throttled(const std::string &root) {
    const std::string top = root + "/sys/fs/cgroup";
    const double by_v2 = most_throttled(top, control_group(root, true));
    return by_v2 > 0 ? by_v2 : most_throttled(top + "/cpu", control_group(root, false));
}

unsigned physical_cores(const std::string &root) {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return 0;
    std::set<std::string> cores; // by the list of CPUs that share one
    for (std::size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed))
            continue;
        std::ifstream file(root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                           "/topology/thread_siblings_list");
        std::string siblings;
        if (!std::getline(file, siblings))
            return 0;
        cores.insert(siblings);
    }
    return static_cast<unsigned>(cores.size());
}

// From 2 on children are refused as well.
std::string why_hidden(int ptrace_scope) {
    const char *why = "the program runs with other privileges than its caller (it is set-user-ID, or its "
                      "file is not readable)";
    if (ptrace_scope == 2)
        why = "kernel.yama.ptrace_scope is 2, which allows only root (CAP_SYS_PTRACE) to inspect a program";
    else if (ptrace_scope > 2)
        why =
            "kernel.yama.ptrace_scope is 3, which forbids all users to inspect a program until the next boot";
    return why + std::string(": what its threads waited for is unknown");
}

double measure_switch_cost() {
    cpu_set_t before;
    if (sched_getaffinity(0, sizeof before, &before) != 0 || !stay_on_this_cpu())
        return 0;
    double cost = 0;
    try {
        std::atomic<std::uint32_t> word{kPing};
        std::thread other(answer, std::ref(word));
        cost = cost_of_rounds(word);
        set(word, kStop);
        other.join();
    } catch (const std::system_error &) { // no thread available: it stays unknown
        cost = 0;
    }
    sched_setaffinity(0, sizeof before, &before);
    return cost;
}

} // namespace thrum::stat
