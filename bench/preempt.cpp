// SPDX-License-Identifier: Apache-2.0
//
// See preempt.hpp.
#include "preempt.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "tools/clock.hpp"

namespace preempt {

namespace {

timespec time_of(double ns) {
    const auto whole = static_cast<std::uint64_t>(ns);
    return {static_cast<time_t>(whole / 1000000000), static_cast<long>(whole % 1000000000)};
}

} // namespace

// --- in the parent -----------------------------------------------------------------------------------------

bench::Environment armed(const std::string &library, const std::string &mode, double slice_us) {
    bench::Environment environment;
    const std::size_t slash = mode.find('/');
    environment.preload(library)
        .set("THRUM_PREEMPT", mode.substr(0, slash))
        .set("THRUM_SLICE", std::to_string(static_cast<long>(slice_us)));
    if (slash != std::string::npos)
        environment.set("THRUM_TICK", mode.substr(slash + 1));
    return environment;
}

std::optional<bench::Numbers> measured(const std::vector<std::string> &words,
                                       const bench::Environment &environment, std::size_t count) {
    const bench::Ended ended = bench::run_well(bench::own_work(words), environment);
    if (ended.output == std::string(kUnavailable) + "\n")
        return std::nullopt;
    return bench::numbers_in(ended.output, count);
}

std::vector<bench::Cell> row_unavailable(std::vector<bench::Cell> first, const bench::Table &table) {
    first.emplace_back(kUnavailable);
    first.resize(table.columns.size(), "-");
    return first;
}

std::vector<int> cpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    check(sched_getaffinity(0, sizeof set, &set) != 0 ? errno : 0, "sched_getaffinity");
    std::vector<int> list;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set))
            list.push_back(cpu);
    return list;
}

// --- in the child ------------------------------------------------------------------------------------------

void say_unavailable() {
    std::puts(kUnavailable);
}

void check(int error, const char *what) {
    if (error != 0)
        throw bench::Failure(std::string(what) + ": " + std::strerror(error));
}

void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    check(sched_setaffinity(0, sizeof set, &set) != 0 ? errno : 0, "sched_setaffinity");
}

double cpu_ns(clockid_t clock) {
    return thrum::seconds_on(clock) * 1e9;
}

double now_ns() {
    return thrum::seconds_now() * 1e9;
}

namespace {

// Both clocks at one moment: of many tries that in which the least came in between.
struct Moment {
    double ns = 0;
    std::uint64_t ticks = 0;

    Moment() {
        constexpr int kTries = 100;
        std::uint64_t least = UINT64_MAX;
        for (int i = 0; i < kTries; i++) {
            const std::uint64_t before = arch_ticks();
            const double now = now_ns();
            const std::uint64_t after = arch_ticks();
            if (after - before < least) {
                least = after - before;
                ns = now;
                ticks = before + least / 2;
            }
        }
    }
};

} // namespace

double ns_per_tick() {
    constexpr double kLong = 2e7;
    const Moment first;
    while (now_ns() - first.ns < kLong) {
    }
    const Moment last;
    return (last.ns - first.ns) / static_cast<double>(last.ticks - first.ticks);
}

Timer::Timer(int signal, double first_ns, double period_us) {
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = signal;
    event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
    check(timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0 ? errno : 0, "timer_create");
    const itimerspec when{time_of(period_us * 1e3), time_of(first_ns)};
    check(timer_settime(timer_, TIMER_ABSTIME, &when, nullptr) != 0 ? errno : 0, "timer_settime");
}

Timer::~Timer() {
    timer_delete(timer_);
}

void handle(int signal, void (*handler)(int, siginfo_t *, void *)) {
    struct sigaction action {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    check(sigaction(signal, &action, nullptr) != 0 ? errno : 0, "sigaction");
}

} // namespace preempt
