// SPDX-License-Identifier: Apache-2.0
//
// Every futex wait of the program, counted and timed by libthrum-stat.so in it (stat/trap.c), and with rights for it every
// context switch, counted by the kernel (switches.hpp). With these rights a program that the library cannot be in is counted
// as well: its waits by a tracepoint, with the stacks of some of them.
#include <signal.h>
#include <sys/personality.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <utility>

#include "base/atomic.h"
#include "stat/call_events.hpp"
#include "stat/collect.hpp"
#include "stat/switches.hpp"
#include "tools/failure.hpp"

namespace thrum::stat {

namespace {

constexpr const char *kSwitchesKnown =
    "Times on and off CPUs and context switches come from the kernel's record of each switch "
    "(sched:sched_switch), some with stacks; processes that the program starts are left out.";

// What the kernel counted, if it does so for us.
void take_switches(Switches &switches, ExactLayer &into) {
    switches.finish();
    into.switched = switches.counted;
    into.blocked = std::move(switches.blocked);
    into.blocked_maps = switches.observed.maps;
    into.warnings.insert(into.warnings.end(), switches.warnings.begin(), switches.warnings.end());
}

// --- by a library in the program ----------------------------------------------------------------------

class Trapped : public ExactLayer {
  public:
    std::vector<std::string> environment() const override { return probe_.environment(); }
    void forked(pid_t child) override;
    void poll(double now) override;
    void finish() override;

  private:
    void take_waits();
    std::vector<std::uint64_t> open_waits() const;
    bool is_unseen() const { return load_acquire(&probe_->executed_at) != 0; }
    void tell();
    void tell_of_programs();

    ProbeFile probe_{PROBE_EXACT};
    CallEvents events_;
    bool has_events_ = false;
    std::unique_ptr<Switches> switches_;
    ProbedMaps maps_{probe_, maps};
};

void Trapped::forked(pid_t child) {
    std::string why_not;
    maps_.begin(child);
    has_events_ = events_.begin(child, false);
    if (!Switches::are_allowed(why_not))
        return;
    switches_ = std::make_unique<Switches>(false);
    switches_->forked(child);
}

void Trapped::poll(double now) {
    maps_.is_another();
    maps_.poll(now);
    if (switches_)
        switches_->poll(now);
}

// Of the waits that have not ended, by entry: how long they have lasted. They end with their process, or with its executing
// another program. Of a child that has ended it is not known when it did.
std::vector<std::uint64_t> Trapped::open_waits() const {
    std::vector<std::uint64_t> nanoseconds(PROBE_FINE + PROBE_COARSE);
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    const std::uint64_t now =
        static_cast<std::uint64_t>(time.tv_sec) * 1000000000 + static_cast<std::uint64_t>(time.tv_nsec);
    for (const struct probe_open &open : probe_->open) {
        const std::uint64_t begin = load_acquire(&open.begin), entry = load_relaxed(&open.entry);
        fence_seq_cst(); // the entry is of that wait if the beginning is still the same: pairs with the fence of fill
        if (begin == 0 || entry >= nanoseconds.size() || load_relaxed(&open.begin) != begin)
            continue;
        const bool is_program = open.process == probe_->program;
        const bool has_ended = !is_program && kill(open.process, 0) != 0 && errno == ESRCH;
        const std::uint64_t end = is_program && is_unseen() ? probe_->executed_at : has_ended ? begin : now;
        nanoseconds[entry] += end - std::min(begin, end);
    }
    return nanoseconds;
}

void Trapped::take_waits() {
    const std::vector<std::uint64_t> open = open_waits();
    for (unsigned i = 0; i < PROBE_FINE + PROBE_COARSE; i++) {
        if (probe_->keys[i] == 0)
            continue;
        const struct probe_wait &entry = probe_->in.entries[i];
        if (load_acquire(&entry.ready) == 0)
            continue;
        waits.push_back({raw_stack(entry.stack), entry.address, entry.waits,
                         static_cast<double>(entry.nanoseconds + open[i]) * 1e-9});
    }
}

void Trapped::finish() {
    maps_.finish();
    if (switches_)
        take_switches(*switches_, *this);
    if (!maps.empty() && !is_unseen())
        blocked_maps = maps; // as the program left them
    take_waits();
    for (long number = 0; number < PROBE_CALLS; number++)
        if (probe_->calls[number] != 0)
            system_calls.emplace_back(number, probe_->calls[number]);
    for (unsigned operation = 0; operation < PROBE_FUTEX; operation++)
        if (probe_->futex[operation] != 0)
            futex_calls.emplace_back(operation, probe_->futex[operation]);
    other_calls = events_.counts();
    makers = makers_of(probe_.get());
    threads_created = probe_->created;
    threads_joined = probe_->joined;
    counts_threads = probe_.loaded() > 0 && !is_unseen(); // otherwise what the sampler saw is more
    counts_waits = probe_.trouble().empty() && !is_unseen();
    tell();
}

// A path as the program gave it, from memory that it may have written to.
std::string path_in(const char (&path)[PROBE_PATH]) {
    return {path, std::find(path, path + PROBE_PATH, '\0')};
}

// A process may execute one program after the other.
void Trapped::tell_of_programs() {
    const std::string why = " in its place, and libthrum-stat.so was not loaded into that one (it is static, "
                            "gains privileges, or got an environment of its own): ";
    if (probe_.loaded() > 1)
        how_known.emplace_back("The program executed another one in its place: exact waits are of the last "
                               "program that could be counted, system calls of all of them.");
    if (const std::string unseen = path_in(probe_->unseen); !unseen.empty())
        warnings.push_back("the program executed " + unseen + why +
                           "what it did before it executed another one was not counted");
    if (probe_->held_back > 0)
        warnings.push_back(path_in(probe_->first_held_back) +
                           " did not gain the privileges that it has outside of this run, since NO_NEW_PRIVS "
                           "is set: the program may have behaved differently");
    if (is_unseen())
        warnings.push_back("the program executed " + path_in(probe_->executed) + why +
                           "only what it did before that was counted");
}

void Trapped::tell() {
    how_known.push_back(
        "Exact waits: a seccomp filter traps each futex call of the program and of its libraries; a "
        "preloaded library counts them, and times those that wait. This costs 1 to 4 us per call. Calls that "
        "bypass libc in libraries loaded later, or in code generated at run time, are not counted.");
    how_known.push_back(
        std::string("System calls by kind: trapped and counted are futex, by operation, sched_yield, "
                    "rt_sigprocmask, rt_sigaction; ") +
        (has_events_ ? "kernel tracepoints count some 30 others, including those of processes that the "
                       "program starts. The rest is not counted."
                     : "others are not counted: that takes tracepoints, which need root or CAP_PERFMON."));
    if (switches_)
        how_known.emplace_back(kSwitchesKnown);
    if (probe_->no_new_privileges != 0)
        how_known.push_back("NO_NEW_PRIVS was set for this run: set-user-ID programs that it starts, such as "
                            "sudo, gain no privileges.");
    tell_of_programs();
    if (const std::string trouble = probe_.trouble(); !trouble.empty())
        warnings.push_back("futex waits were not counted: " + trouble);
    if (probe_->untrapped > 0)
        warnings.push_back("not counted: what " + std::to_string(probe_->untrapped) +
                           " threads did that libraries had created before the program began, and their own "
                           "threads: one of them blocks SIGSYS, which the filter needs");
    if (probe_->unplaced > 0)
        warnings.push_back(
            std::to_string(probe_->unplaced) +
            " futex waits came from more places than can be told apart, and are in the sum only");
}

// --- by tracepoints -----------------------------------------------------------------------------------

class Traced : public ExactLayer {
  public:
    explicit Traced(std::string why) : why_(std::move(why)) { counts_threads = false; }
    void forked(pid_t child) override {
        has_events_ = events_.begin(child, true);
        switches_.forked(child);
    }
    void poll(double now) override { switches_.poll(now); }
    void finish() override;

  private:
    std::string why_; // not by the library
    CallEvents events_;
    bool has_events_ = false;
    Switches switches_{true};
};

void Traced::finish() {
    take_switches(switches_, *this);
    maps = switches_.observed.maps;
    waits = std::move(switches_.waits);
    estimates_waits = true;
    other_calls = events_.counts();
    how_known.push_back(
        "Exact waits: a kernel tracepoint counts the futex calls that wait, some with stacks, which stand "
        "for the rest (" +
        why_ + "). Their waiting times are estimated from the time that threads were off CPU there.");
    if (has_events_)
        how_known.emplace_back("System calls by kind: kernel tracepoints count some 30, including those of "
                               "processes that the program starts. The rest is not counted.");
    how_known.emplace_back(kSwitchesKnown);
}

bool is_randomized() {
    std::ifstream file("/proc/sys/kernel/randomize_va_space");
    int level = 1;
    file >> level;
    return level != 0 && (personality(0xffffffff) & ADDR_NO_RANDOMIZE) == 0;
}

// Why the library cannot count; empty: it can.
std::string trap_refusal(const std::string &program) {
    const std::string refusal = preload_refusal(program);
    if (!refusal.empty() || is_randomized())
        return refusal;
    return "exact counts need address-space randomization, which is off here (kernel.randomize_va_space, or "
           "setarch -R): without it a program that this one executes cannot be told from it";
}

} // namespace

std::unique_ptr<ExactLayer> make_exact(const std::string &program) {
    const std::string refusal = trap_refusal(program);
    std::string why_not;
    if (refusal.empty())
        return std::make_unique<Trapped>();
    if (!Switches::are_allowed(why_not))
        throw Failure(kRefused,
                      geteuid() == 0
                          ? refusal + ". Counting its waits as root is not possible either: " + why_not
                          : refusal + "; leave out --exact, or run it as root");
    return std::make_unique<Traced>(refusal);
}

} // namespace thrum::stat
