// SPDX-License-Identifier: Apache-2.0
//
// Every futex wait of the program, counted and timed by libthrum-stat.so in it (stat/trap.c).
#include <sys/personality.h>

#include <fstream>

#include "command.hpp"
#include "stat/call_events.hpp"
#include "stat/collect.hpp"

namespace thrum::stat {

namespace {

class Exact : public ExactLayer {
  public:
    std::vector<std::string> environment() const override { return probe_.environment(); }
    void forked(pid_t child) override {
        maps_.begin(child);
        has_events_ = events_.begin(child);
    }
    void poll(double now) override;
    void finish() override;

  private:
    void tell();

    ProbeFile probe_{PROBE_EXACT};
    CallEvents events_;
    bool has_events_ = false;
    ProbedMaps maps_{probe_, maps};
};

void Exact::poll(double now) {
    maps_.is_another();
    maps_.poll(now);
}

void Exact::finish() {
    maps_.finish();
    for (unsigned i = 0; i < PROBE_FINE + PROBE_COARSE; i++) {
        if (probe_->keys[i] == 0)
            continue;
        const struct probe_wait &entry = probe_->in.entries[i];
        if (__atomic_load_n(&entry.ready, __ATOMIC_ACQUIRE) == 0)
            continue;
        waits.push_back({raw_stack(entry.stack), entry.address, entry.waits,
                         static_cast<double>(entry.nanoseconds) * 1e-9});
    }
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
    tell();
}

void Exact::tell() {
    how_known.push_back(
        "Exact waits: a seccomp filter traps each futex call of the program and of its libraries, where a "
        "preloaded library counts it, and times those that wait; that costs each call 1 to 4 us. Not counted "
        "are calls in libraries loaded later that do not go through libc.");
    how_known.push_back(
        std::string("System calls by kind: trapped and counted are futex, by operation, sched_yield, "
                    "rt_sigprocmask, rt_sigaction; ") +
        (has_events_ ? "some 30 others are counted by tracepoints of the kernel's, those of processes that "
                       "the program starts included. The rest is not counted."
                     : "others are not counted: tracepoints, which could, are for root and CAP_PERFMON."));
    if (probe_->no_new_privileges != 0)
        how_known.push_back("NO_NEW_PRIVS was set for this run: set-user-ID programs that it starts, such "
                            "as sudo, gain no rights in it.");
    if (const std::string trouble = probe_.trouble(); !trouble.empty())
        warnings.push_back("futex waits were not counted: " + trouble);
    if (probe_->unplaced > 0)
        warnings.push_back(std::to_string(probe_->unplaced) +
                           " futex waits came from more places than are kept apart, and are in the sum only");
}

bool is_randomized() {
    std::ifstream file("/proc/sys/kernel/randomize_va_space");
    int level = 1;
    file >> level;
    return level != 0 && (personality(0xffffffff) & ADDR_NO_RANDOMIZE) == 0;
}

} // namespace

std::unique_ptr<ExactLayer> make_exact(const std::string &program) {
    if (const std::string refusal = preload_refusal(program); !refusal.empty())
        throw Failure(kRefused, refusal);
    if (!is_randomized())
        throw Failure(kRefused,
                      "exact counts need address-space randomization, which is off here "
                      "(kernel.randomize_va_space, or setarch -R): a program that this one executes "
                      "could not be told from it");
    return std::make_unique<Exact>();
}

} // namespace thrum::stat
