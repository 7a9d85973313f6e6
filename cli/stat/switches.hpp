// SPDX-License-Identifier: Apache-2.0
//
// For root and users with CAP_PERFMON: where threads give up their CPUs, and for how long, by the kernel's own
// events. Each switch is counted with its time; of some, and of some waits for futexes, the stack is copied
// (sched:sched_switch, syscalls:sys_enter_futex), as many as stand for the rest. Nothing is loaded into the program,
// so static ones will do. Used by exact.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "stat/collect.hpp"
#include "stat/perf_events.hpp"
#include "stat/stack_keeper.hpp"

namespace thrum::stat {

class Switches : public Layer {
  public:
    // False: the kernel does not allow it, with the reason as the end of a sentence.
    static bool are_allowed(std::string &why_not);

    explicit Switches(bool with_futexes) : with_futexes_(with_futexes) {}
    void forked(pid_t child) override;
    void poll(double now) override;
    void finish();

    Observed observed;
    Switched counted;
    std::vector<Blocked> blocked;
    std::vector<ExactWait> waits; // of futexes
    std::uint64_t threads_created = 0;

  private:
    enum Kind : std::uint8_t { kBegins, kIn, kOut, kPreempted, kEnds, kSwitchSample, kFutexSample };
    // What the rings hold, in the order of time.
    struct Event {
        std::uint64_t at = 0; // nanoseconds of CLOCK_MONOTONIC
        pid_t thread = 0;
        Kind kind = kBegins;
        std::size_t stack = SIZE_MAX;
        std::uint64_t address = 0; // of a futex
        double stands_for = 0;     // so many switches or waits
    };
    struct Task {
        std::uint64_t since = 0; // it is on a CPU, or off it
        bool is_on = false, is_preempted = false;
        Event sample{}, futex{}; // the latest ones, for the time off a CPU that follows
    };
    struct Sum {
        double times = 0, seconds = 0;
    };
    // Notes are few bytes each and have memory of their own, so that stacks cannot crowd them out.
    struct Source {
        Ring ring;
        Kind kind; // of its samples; kBegins: notes
    };

    bool add_source(const perf_event_attr &attributes, int cpu, Kind kind);
    bool add_sources(int cpu);
    void visit_note(const perf_event_header &header, const std::vector<char> &record);
    void visit_sample(const std::vector<char> &record, Kind kind);
    std::uint64_t futex_waits() const;
    void executed();
    void take_maps(double now);
    void work_off(std::uint64_t until);
    void happen(const Event &event);
    void comes_back(Task &task, std::uint64_t at);
    double second_of_wait(double second) const;
    void goes_off(Task &task, const Event &event);
    void another_program(const Event &event);

    bool with_futexes_;
    pid_t child_ = 0;
    bool has_executed_ = false;
    std::vector<Source> sources_;
    MapReader maps_{observed.maps};
    std::string maps_text_; // whose code `stacks_` knows
    StackKeeper stacks_{observed};
    std::vector<RawStack> raw_; // of samples that have just come
    std::vector<Event> events_; // not yet worked off
    std::uint64_t polled_at_ = 0;
    std::map<pid_t, Task> tasks_;
    std::map<std::size_t, Sum> blocked_in_;                           // by stack
    std::map<std::pair<std::size_t, std::uint64_t>, Sum> waited_for_; // by stack and futex
    std::uint64_t lost_ = 0;
};

} // namespace thrum::stat
