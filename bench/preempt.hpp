// SPDX-License-Identifier: Apache-2.0
//
// What the benchmarks of preemption share (preempt_cost, preempt_overhead, preempt_timers): the modes, a clock that costs
// next to nothing, timers that interrupt one kernel thread, and the process that each measurement is.
#ifndef THRUM_BENCH_PREEMPT_HPP
#define THRUM_BENCH_PREEMPT_HPP

#include <fcntl.h>
#include <thrum/thrum.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "arch_ticks.h"
#include "rounds.hpp"

namespace preempt {

// By their names in THRUM_PREEMPT, beginning with the one that the others are compared with. What the library says EINVAL
// or ENOTSUP to has a row all the same, which says so.
constexpr const char *kModes[] = {"yield", "lend", "own-tls", "klt"};
constexpr const char *kUnavailable = "not available";

// --- in the parent -----------------------------------------------------------------------------------------

// THRUM_PREEMPT and THRUM_SLICE for a child, and the library that it is to use. Behind a slash of the mode stands where ticks
// come from (THRUM_TICK), unless timers: "lend/monitor".
bench::Environment armed(const std::string &library, const std::string &mode, double slice_us);

// Executes this benchmark again, for its work: the `count` numbers that it says, or none if it says_unavailable().
std::optional<bench::Numbers> measured(const std::vector<std::string> &words,
                                       const bench::Environment &environment, std::size_t count);

// A table's row of what is not available, behind its first cells.
std::vector<bench::Cell> row_unavailable(std::vector<bench::Cell> first, const bench::Table &table);

// The CPUs that this process may use.
std::vector<int> cpus();

// --- in the child ------------------------------------------------------------------------------------------

void check(int error, const char *what);

// thrum_init, as the environment says. False: the library does not have the mode, or not here; its line on stderr is
// suppressed, and the child must end with say_unavailable().
bool init(unsigned workers);
void say_unavailable();

void pin(int cpu);
double cpu_ns(clockid_t clock = CLOCK_PROCESS_CPUTIME_ID);
double now_ns();

// What a tick of arch_ticks() is.
double ns_per_tick();

// A periodic timer that interrupts the calling kernel thread, for the first time at `first_ns` of CLOCK_MONOTONIC.
class Timer {
  public:
    Timer(int signal, double first_ns, double period_us);
    ~Timer();
    Timer(const Timer &) = delete;
    Timer &operator=(const Timer &) = delete;

  private:
    timer_t timer_;
};

void handle(int signal, void (*handler)(int, siginfo_t *, void *));

// Here, since preempt_timers is without libthrum.
inline bool init(unsigned workers) {
    const int errors = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, STDERR_FILENO);
    thrum_config config{};
    config.workers = workers;
    const int error = thrum_init(&config);
    dup2(errors, STDERR_FILENO);
    close(errors);
    close(nowhere);
    if (error != EINVAL && error != ENOTSUP)
        check(error, "thrum_init");
    return error == 0;
}

} // namespace preempt

#endif
