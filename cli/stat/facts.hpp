// SPDX-License-Identifier: Apache-2.0
//
// What the rules ask of a report, worked out once: shares, ratios, and the locks that threads waited for, each with
// the function that is to blame. Used by rules/, origins.cpp, verdict_text.cpp and the reports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stat/burners.hpp"
#include "stat/lock_table.hpp"
#include "stat/openmp.hpp"
#include "stat/report.hpp"
#include "stat/rules.hpp"
#include "stat/stack_place.hpp"

namespace thrum::stat {

// What threads wait or burn CPU time for, with one remedy: a function with a hidden lock, the allocator, the interpreter
// lock of Python, or a lock of the program's own.
struct Culprit {
    enum Kind { kHidden, kAllocator, kInterpreter, kOwn };
    Kind kind = kOwn;
    std::string name;         // "random()", or what the lock is
    std::string module;       // kHidden: of the function
    std::string fix;          // kHidden, kAllocator, OpenMP's; empty: the rule's
    bool is_lockless = false; // kHidden: state that all threads write to, without a lock
    std::string key;          // sites with the same one belong together
    bool is_openmp = false;
    bool is_of_tasks = false;           // the lock of OpenMP's queue of tasks
    const ListedLock *listed = nullptr; // of a runtime or library
    Place place;
    const LockUse *lock = nullptr;
    std::uint64_t samples = 0; // of lock waits
    double seconds = 0;        // of lock waits, over all threads
    double wait_share = 0;     // of all lock waits
    // Shares of CPU time that go there, with the most threads and with the fewest.
    double burned = 0, burned_one = 0;
};

// How much of CPU time goes to a function of the program with all that it calls, calls that lock and unlock left out; and by
// how many samples that is known.
struct Within {
    double share = 0;
    std::uint64_t samples = 0;
};

// "the_mutex"; without a symbol "prog+0x4060", and what else is known where it is in no program or library.
std::string name_of_lock(const Lock &lock);

struct Facts {
    explicit Facts(const Report &whole);

    const Report &report;
    const Point *few = nullptr, *most = nullptr; // nullptr without at least two points
    double cores = 1;
    double ideal = 1;          // speedup that `most` could have at best
    double speedup = 0;        // of `most`; 0: not known
    Interval gain;             // the same, with where it lies
    double inflation = 0;      // CPU time of `most` to that of `few`; 0: not known, or too little to tell
    double core_inflation = 0; // likewise of the point with the most threads that still has a core for each
    bool is_too_short = false; // no two times of the sweep can be told apart
    bool is_short = false;     // the last point took too little CPU time for rates and ratios of that
    std::optional<double> kernel_share; // of the CPU time of the run with the most threads
    double parallelism = 0;
    double threads = 1;    // at once, as asked for or seen
    double active = 0;     // thread-seconds that were neither idle nor joining nor asleep
    double lock_share = 0; // of `active`; without waits for messages where is_without_messages
    bool is_without_messages = false;
    double io_share = 0; // of `active`
    double wanting = 0;  // threads that ran or wanted to, on average
    // Of the sampled time, in which one thread alone ran or wanted to, and none waited for a lock; where is_busy, of the time
    // that the CPU time would have taken. Without what others may have added to it.
    double alone = 0;
    double alone_by_one = 0; // of the time of one alone: of the thread that was it for longest
    double nothing = 0;      // of the sampled time, in which no thread had anything to do
    double children_share =
        0; // of CPU time: by processes that the program started; 0: little CPU time at all
    double voluntary_rate = 0, involuntary_rate = 0; // switches for each second of CPU time
    double few_involuntary_rate = 0;                 // of `few`
    double exact_waits = 0;                          // that were counted
    double exact_rate = 0;                           // the same, for a second of CPU time
    double exact_share = 0; // as lock_share, with their time in the place of what was sampled
    // By the processor's counters, with the most threads to with the fewest; 0: not known.
    double misses_grown = 0;         // cache misses for each instruction, of the level where they grew most
    double slowed = 0;               // cycles for each instruction
    const Point *hindered = nullptr; // where is_busy: the point that got least of the CPUs that it wanted
    double hindered_wanted = 0;      // these, as a number of CPUs
    bool is_busy = false;            // others kept the program from CPUs that it wanted
    bool is_compared() const { return most != nullptr; }

    std::vector<Culprit> culprits; // by seconds of waiting, then by CPU time, descending
    std::vector<Burner> burners;   // by share, descending
    Within
    within(const std::string &function) const;     // by the profile of the fewest threads, where there is one
    bool has_profile(std::uint64_t samples) const; // with the most threads, of so many
    bool has_profiles(std::uint64_t samples) const; // and with the fewest as well
};

// Does its holder wait for work, in all waiters' place? So do leader and followers, that share an accept lock, or workers with
// one receiver under a mutex: nothing is lost while nothing is queued. Wrong where what it waits for is an answer to its own
// question, and sending that was never seen.
bool waits_by_turns(const Report &report, const LockUse &use);
// Is this one of Report::waits at such a lock?
bool is_turn(const Report &report, std::size_t site);

// In a call of the program's that takes or gives back a lock, of its own or a library's.
bool is_in_lock_call(const std::vector<Frame> &stack);

// In a function of the allocator's.
bool is_in_allocator(const std::vector<Frame> &stack);

// Waits for input or output; also for a message by a call that reads one, which might be called waiting for work as well.
bool is_input_output(const Site &site);

// Of its CPU time, in the kernel; nothing where that is too little for the kernel's accounts.
std::optional<double> kernel_share(const Point &point);

std::uint64_t samples_of(const std::vector<Site> &sites);

// Is there something to say of a process that the program started: a finding, or a part of the CPU time?
bool is_worth_telling(const Report &child, const Report &whole);

// Others used so much of the machine, the hypervisor included, that it is worth a mention.
bool is_disturbed(const Load &load, unsigned processors);

} // namespace thrum::stat
