// SPDX-License-Identifier: Apache-2.0
//
// All that `thrum stat` has to say of a program, as numbers and sentences: filled by examination.cpp from what was measured
// (run.hpp), sampled and counted (layers.hpp) and concluded (rules.hpp); shown by report_text.cpp,
// report_json.cpp, report_html.cpp, report_trace.cpp and report_folded.cpp, which compute nothing of their own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "stat/scheduling.hpp"
#include "tools/machine.hpp"
#include "tools/statistics.hpp"

namespace thrum::stat {

// The module of code that is in no file: what a virtual machine has compiled. It has no offset.
inline constexpr const char kMadeCode[] = "(compiled at run time)";

// One place in a stack. `function` is empty where none is known.
struct Frame {
    std::string function; // demangled, without parameters
    std::string file;     // last component; empty where there is no debugging information
    int line = 0;
    std::string module;       // last component of the program or library
    std::uint64_t offset = 0; // within the module, as linked
    bool is_user = false;     // in the program itself, not in a library of the system
    std::uint64_t begin = 0;  // where a function without a name begins, as `offset`; 0: not known
};

// What a futex word belongs to.
enum class LockKind : std::uint8_t {
    kUnknown,
    kLibrary, // static data of a library: a lock that the program does not see
    kGlobal,  // static data of the program
    kHeap,
    kStack,
    kMapping, // other memory, shared or not
};

struct Lock {
    std::uint64_t address = 0;
    LockKind kind = LockKind::kUnknown;
    std::string module;        // kLibrary, kGlobal
    std::string symbol;        // where its symbol table has one
    std::uint64_t offset = 0;  // within the module, or from the symbol's beginning
    std::string text;          // all of this for a reader: "libc.so.6 .data (static lock inside libc)"
    bool is_semaphore = false; // whose waiters raise it as well
    bool may_be_tasks =
        false; // such a one, that may as well count tasks that its waiters pass on, one at a time
    std::vector<Frame> allocation = {}; // kHeap: the call that allocated it; empty: not known
};

// What a thread was doing when it was looked at: with its name in sentences, and in --json and style sheets.
#define THRUM_STAT_DOINGS(DOING)                                                                             \
    DOING(kRunning, "running", "running")                                                                    \
    DOING(kRunnable, "runnable", "runnable") /* wanted a CPU and had none */                                 \
    DOING(kLockWait, "lock wait", "lock_wait")                                                               \
    DOING(kJoinWait, "join wait", "join_wait") /* for a thread to end */                                     \
    DOING(kIdleWait, "idle wait", "idle_wait") /* for a condition, an event or a message: for work */        \
    DOING(kSleep, "sleep", "sleep")                                                                          \
    DOING(kInputOutput, "input and output", "input_output")                                                  \
    DOING(kKernel, "kernel", "kernel") /* some other system call, or uninterruptible */

#define THRUM_STAT_DOING(doing, name, key) doing,
enum class Doing : std::uint8_t { THRUM_STAT_DOINGS(THRUM_STAT_DOING) kDoings };
#undef THRUM_STAT_DOING
const char *name_of(Doing doing); // "running", "runnable", "lock wait", ...

// Many threads waiting (or burning CPU time) in the same stack.
struct Site {
    std::vector<Frame> stack; // innermost first
    Doing doing = Doing::kLockWait;
    std::uint64_t samples = 0;
    double share = 0;   // of the samples of this kind (lock waits of all lock waits, CPU of all CPU)
    double seconds = 0; // thread-seconds, from the samples; of exact runs, measured
    std::optional<std::uint64_t> calls; // exact runs: how many waits
    std::size_t lock = SIZE_MAX;        // index into Report::locks; SIZE_MAX: none
    bool is_message = false;            // input that others send, if they do: by a socket, a pipe
    double kernel = 0;                  // of CPU time there, the share in the kernel
};

// Threads that sleep in one system call for each other, or for the same thing: on one file, or in the address space.
struct KernelWait {
    std::string call;    // "write"; empty: a page fault
    std::string channel; // the kernel's function in which most of them slept; empty: not told
    std::string file;    // empty: none
    bool is_device = false;
    std::uint64_t samples = 0;
    unsigned threads = 0;
    double at_once = 0;       // of these, on average of the looks that saw one
    std::vector<Frame> stack; // of the first
};

// A cache line that several threads access, and at least one writes to, as sampled accesses show.
struct Sharing {
    bool is_one = false;     // one variable; otherwise several, each with a thread of its own
    std::vector<Lock> parts; // what is accessed there, the most often first
    std::uint64_t samples = 0;
    double share = 0; // of CPU time that was sampled
    unsigned threads = 0;
    // Of the samples: atomic additions; exchanges, and comparisons with one; plain stores.
    double adds = 0, swaps = 0, stores = 0;
    std::vector<Frame> stack; // of most of them
    // Where the threads access it, each place once, up to four: the most often first.
    std::vector<std::vector<Frame>> places;
};

// The holder of a lock while others wait for it, where the lock's memory tells that.
struct Holder {
    std::uint64_t looks = 0; // at threads that waited, when it was seen what the holder was at
    double asleep = 0;       // of these, in which it slept, for anything but a lock
    Doing doing = Doing::kRunning;
    std::vector<Frame> stack; // where it slept most, and what it did there; innermost first
    bool is_message = false;  // that was for what others send, if they do
    double without_cpu = 0;   // of the time around those looks at which it ran or wanted to: it had no CPU
    double outranked = 0;     // of the looks, in which the waiter had much more priority than it
    std::int32_t thread = 0;  // that was outranked, the latest; 0: none
    Scheduling scheduling = {}, waiters = {}; // that one's, and that of the thread that waited
};

// A lock over all its sites.
struct LockUse {
    Lock lock;
    std::uint64_t samples = 0;
    double share = 0, seconds = 0;
    unsigned threads = 0;               // different ones that waited
    double waiters_mean = 0;            // at once, while there was one
    unsigned waiters_most = 0;          // at once
    std::optional<std::uint64_t> waits; // exact runs
    Holder holder;
};

// Calls that raised a semaphore, as far as a CPU profile has them.
struct Posts {
    std::set<std::int32_t> threads;
    std::vector<std::vector<Frame>> stacks; // of some of them
};

// A thread that waits to the last for what cannot come.
struct Stuck {
    std::int32_t thread = 0;
    bool is_join = false;        // it waits for the holder to end
    std::size_t site = SIZE_MAX; // index into Report::waits; SIZE_MAX: not known, or a join
    std::int32_t holder = 0;     // the holder of the lock, or the thread that must end; 0: not known
};

// Threads of which none can continue.
struct Deadlock {
    enum Kind : std::uint8_t {
        kRing,       // each waits for the next
        kOwnerEnded, // all for locks of one that has ended
        kAll,        // all that are there wait, and whose locks these are is not known
    };
    Kind kind = kRing;
    std::vector<Stuck> threads; // none: there is no deadlock
    double seconds = 0;         // for which none of them was seen to run, at least
};

// What the bare runs with one number of threads took: medians. Times in seconds.
struct Point {
    unsigned threads = 0; // as asked for; 0: not told
    unsigned runs = 0;
    Interval wall;
    double user = 0, system = 0;
    double voluntary = 0, involuntary = 0; // context switches
    double run_delay = 0;                  // runnable without a CPU, over all threads seen
    double faults_major = 0;
    unsigned most_threads = 0; // at once, as seen
    Load load;                 // what else the machine did
    Interval speedup;          // over the first point; `count` 0: not known
    double cpu() const { return user + system; }
    double parallelism() const { return wall.median > 0 ? cpu() / wall.median : 0; }
};

constexpr double kNapMost = 0.02; // seconds: no thread that polls sleeps longer

// One thread of the sampled run, as a row of the timeline.
struct Thread {
    std::int32_t id = 0;
    std::string name;
    std::string cpus;          // on which it may run, when it was last asked: "0-3,7"; empty: not known
    Scheduling scheduling;     // likewise
    double begin = 0, end = 0; // seconds since the program began; as seen
    double cpu = 0, run_delay = 0;
    std::uint64_t voluntary = 0, involuntary = 0;
    double slept_long = 0; // seconds, in sleeps that were seen to last for longer than kNapMost
    struct Span {
        double begin, end;
        Doing doing;
        std::size_t site;        // index into Report::waits or Report::burns; SIZE_MAX: none
        double ran = 0;          // of it, on a CPU
        bool is_held_up = false; // in the kernel, by a device or by what another thread does there
    };
    std::vector<Span> spans; // adjacent equal samples are one span; thinned out where there would be too many
};

// A process of the program's: its own, or one that it started.
struct Process {
    std::int32_t id = 0, parent = 0; // 0: the program's own has none
    std::string name;                // the latest, where it executed another program
    double cpu = 0;                  // seconds
    double begin = 0, end = 0;       // seconds since the program began; as seen
    unsigned threads = 0;            // at once, as seen
};

enum class Confidence : std::uint8_t { kLow, kMedium, kHigh };
const char *name_of(Confidence confidence);

// What a rule concluded (rules/); the first of Report::findings is the CAUSE.
struct Finding {
    std::string rule;  // its name in docs/guide/stat.md and --json: "hidden-lock", "oversubscribed", ...
    std::string cause; // one line: "Hidden lock in libc: random()"
    std::string fix;   // one line
    Confidence confidence = Confidence::kLow;
    std::string function; // the place; empty where none is to blame
    std::string file;
    int line = 0;
    std::vector<std::string> evidence; // a line each, with numbers
    double explains = 1; // of active or CPU time, what it may account for; 1 where that is not told
};

enum class Outcome : std::uint8_t {
    kSlower,       // threads make it slower
    kNoFaster,     // they gain nothing worth having
    kScalesSome,   // they gain, with losses worth telling
    kScales,       // close to ideal
    kOneRun,       // no sweep: nothing to compare with
    kTooShort,     // the runs are over before a difference can be told from chance
    kNoDifference, // the speedup may be chance: its interval holds 1
    kInconclusive, // the machine was busy, or it failed
    kStuck,        // threads wait for each other, and none can continue
};

// The Universal Scalability Law, where it was fitted.
struct Scaling {
    double contention = 0, coherency = 0; // sigma and kappa, never negative
    double residual = 0;                  // root mean square, relative
    double best_threads = 0;              // 0: beyond what was measured
};

// What the processor counted in one run; 0: it does not count that.
struct HardwareCounts {
    double instructions = 0, cycles = 0;
    double cache_misses = 0, l1_misses = 0; // of the last level, and of data in the first
    double per_cycle() const { return cycles > 0 ? instructions / cycles : 0; }
    double per_thousand(double misses) const { return instructions > 0 ? 1000 * misses / instructions : 0; }
};

// Time of all threads on CPUs and off them, and context switches, counted one by one.
struct Switched {
    double on = 0, preempted = 0,
           blocked = 0; // seconds; off a CPU for another thread's sake, and by themselves
    std::uint64_t involuntary = 0, voluntary = 0;
};

struct Report {
    std::vector<std::string> command; // as given, with {} where it stood
    Machine machine;
    unsigned host_processors = 0; // also those that the program may not use; 0: not known
    double quota = 0;             // CPUs that the control group allows; 0: all
    double throttled = 0;         // seconds for which it stopped threads in the sampled run, over all CPUs
    unsigned cores = 0;           // physical ones behind machine.processors; 0: not known
    std::string began;            // ISO 8601
    std::int32_t process = 0;     // that was sampled

    Outcome outcome = Outcome::kOneRun;
    std::string verdict; // one sentence
    std::vector<Finding> findings;

    std::vector<Point> points; // by threads, ascending; one without a sweep
    bool is_rated = false;     // their times are for one amount of work, by what the program printed (--rate)
    bool is_bare = true;       // nothing looked at the runs that these are of
    std::optional<Scaling> scaling;
    std::string scaling_text; // "Retrograde: best at 1 thread (no scaling model fitted)."

    // The sampled run with the most threads. Samples of joins and idle waits are not in waits.
    unsigned sampled_threads = 0;
    double sampled_wall = 0, rate = 0; // rate: sweeps per second that were reached
    std::uint64_t samples = 0;
    double doing[static_cast<int>(Doing::kDoings)] = {}; // thread-seconds
    std::vector<LockUse> locks;                          // by share, descending
    std::vector<Site> waits;                             // lock waits, by share, descending
    std::vector<Site> others; // joins, idle waits, sleeps, input and output: the same, for the icicle
    std::vector<Thread> threads;
    Deadlock deadlock;
    std::uint64_t threads_created = 0, threads_joined = 0; // as seen; exact runs: counted
    bool threads_counted = false;                          // both
    bool creations_counted = false;                        // threads_created
    std::vector<Site> makers; // where threads are made, as far as that was noted: `calls` of `share`

    // CPU profiles, if available: with the fewest threads of the sweep and with the most.
    std::string profile_source; // "perf event", "CPU timer in the program"; empty: none
    std::vector<Site> burns, burns_one;
    std::vector<KernelWait> kernel_waits; // by samples, descending
    std::map<std::uint64_t, Posts> posts; // of semaphores, by address
    double page_tables = 0, memory = 0;   // bytes: the most that were seen of them, and that was resident
    std::vector<Sharing> shared;          // by share, descending
    double accesses_known = 0;            // of CPU time: what was accessed is known
    std::optional<HardwareCounts> counters, counters_one; // the same, where the hardware counts

    // Of the run that was looked at, or the last bare one: CPU time of the program's own process, and of those it started.
    double own_cpu = 0, children_cpu = 0;
    std::vector<Process> processes; // the program's own first, then by CPU time; empty: not followed
    // What the threads of those did that were looked at, by CPU time, as of a process that runs already: `process` is
    // its number, `command` its name.
    std::vector<Report> children;

    bool is_attached = false; // -p: a process that ran already

    // --exact
    bool exact = false;
    bool exact_estimated = false;     // where waits were, and how long, of some
    double exact_wall = 0;            // seconds: of the run in which was counted
    bool exact_tried = false;         // nothing may have come of it
    std::optional<Switched> switched; // where the kernel's events may be read
    std::vector<Site> blocked; // where threads gave up their CPUs by themselves, by seconds, descending
    std::vector<std::pair<std::string, std::uint64_t>> system_calls; // by number of calls, descending

    double switch_cost = 0;        // seconds for one context switch, measured here
    int signal = 0, exit_code = 0; // of the first run that did not end with 0
    bool interrupted = false;      // Ctrl-C: what was seen so far
    bool timed_out = false;        // --timeout ended a run
    bool has_failed = false;       // a run died, or ended differently: what was seen is not of its work

    std::vector<std::string> how_known; // a sentence each: the layers, what each could and could not see
    std::vector<std::string> warnings;  // "no debugging information: ./prog", "the program forked", ...
};

// report_*.cpp
std::string text_of(const Report &report); // 80 columns
std::string json_of(const Report &report);
std::string html_of(const Report &report);
std::string trace_of(const Report &report);  // Chrome's trace events, which Perfetto opens
std::string folded_of(const Report &report); // "worker;has_dup;draw;random 17", for flame graphs

} // namespace thrum::stat
