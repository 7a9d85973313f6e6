// SPDX-License-Identifier: Apache-2.0
//
// The layers that look at a run of the program beside the bare ones, as run.cpp drives them: it forks, tells each layer
// of the child before that executes the program, then calls poll() at each sweep, and finish() when the program has ended.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stat/observed.hpp"
#include "stat/operands.hpp"
#include "stat/report.hpp"

namespace thrum::stat {

class Layer {
  public:
    virtual ~Layer() = default;
    // NAME=VALUE for the program's environment; LD_PRELOAD is put before what is there.
    virtual std::vector<std::string> environment() const { return {}; }
    // The child stands before execve(2) and waits.
    virtual void forked(pid_t) {}
    // `now`: seconds since the program began. Called at least every 10 ms.
    virtual void poll(double now) = 0;
    // The program is about to be ended, before its time.
    virtual void interrupted() {}
    // Sentences for Report::how_known and Report::warnings.
    std::vector<std::string> how_known, warnings;
};

// --- sampler.cpp: /proc -------------------------------------------------------------------------------

struct ProcSample {
    double at = 0;
    pid_t thread = 0;
    char state = '?';                       // as in /proc/PID/stat
    long system_call = -1;                  // -1: in user mode or on a CPU, or not to be read
    std::uint64_t arguments[6] = {};        // of the system call
    std::uint64_t run_ns = 0, delay_ns = 0; // schedstat, so far
    std::size_t stack = SIZE_MAX;           // index into Observed::stacks
    std::size_t python = SIZE_MAX;          // and into Observed::python
    std::size_t place = SIZE_MAX;           // in the kernel: index into Sampler::kernel_places
    // Of a wait for a lock whose memory tells: the thread that has it, and what that one was seen at with it.
    pid_t holder = 0;
    enum class Holding : std::uint8_t { kUnknown, kAwake, kAsleep } holding = Holding::kUnknown;
    Scheduling scheduling, holders; // its own, and that one's, where it was asked
};

struct ProcThread {
    pid_t id = 0;
    std::string name;
    std::string cpus; // on which it may run: "0-3,7"; empty: not read
    Scheduling scheduling;
    double begin = 0, end = 0;
    std::optional<double> gone; // when it was missed; nothing: it was there to the last
    bool was_there = false;     // before this process attached
    std::uint64_t run_ns = 0, delay_ns = 0, voluntary = 0, involuntary = 0; // when it was last seen
};

// Where a thread sleeps in the kernel, and what its call was given.
struct KernelPlace {
    std::string channel; // the kernel's function; empty: not told
    std::string file;    // that the call's descriptor stands for; empty: it has none
    long descriptor = -1;
    bool operator==(const KernelPlace &other) const {
        return channel == other.channel && file == other.file && descriptor == other.descriptor;
    }
};

class Sampler : public Layer {
  public:
    // `rate`: sweeps per second at most; falls by itself so that sampling costs at most `budget` of one CPU.
    Sampler(double rate, double budget);
    ~Sampler() override;
    void forked(pid_t child) override;
    void
    attach(pid_t pid); // a running process; throws Failure where that is not allowed, saying what forbids it
    void poll(double now) override;
    void interrupted() override; // what its threads do on their way out is not what they did
    void close();                // no more looks: what was seen stays, and no descriptor is open

    Observed observed;
    std::vector<ProcSample> samples;
    std::vector<ProcThread> threads;
    std::vector<KernelPlace> kernel_places;
    double page_tables = 0, memory = 0; // bytes: the most that were seen of them, and that was resident
    pid_t process = 0;
    std::uint64_t sweeps = 0; // over all threads
    unsigned most_threads = 0;
    bool are_all_known = false;         // in the end, as many as there were then
    bool has_same_numbers = true;       // threads are known to the program by the numbers that they have here
    bool is_attached = false;           // the program had begun before; run and delay times are those since
    bool are_children_followed = false; // by others: not looking at processes that it starts is no loss

  private:
    struct State;
    std::unique_ptr<State> state_;
};

// --- makers.cpp: the creators of threads --------------------------------------------------------------

struct ThreadMaker {
    RawStack stack; // of a call of pthread_create()
    std::uint64_t threads = 0;
};

class MakersLayer : public Layer {
  public:
    std::vector<Maps> maps;
    std::vector<ThreadMaker> makers;
    virtual void finish() = 0;
};
// By libthrum-stat.so in the program; nothing where that cannot be loaded, with the reason in `why_not`.
std::unique_ptr<MakersLayer> make_makers(const std::string &program, std::string &why_not);

// --- allocations.cpp: where memory was allocated -------------------------------------------------------

class AllocationsLayer : public Layer {
  public:
    virtual void finish() = 0;
    // The call that had allocated what was at an address at that time; empty: not known.
    virtual std::vector<Frame> site(std::uint64_t address, double at) = 0;
};
// By libthrum-stat.so in the program, as MakersLayer.
std::unique_ptr<AllocationsLayer> make_allocations(const std::string &program, std::string &why_not);

// --- profile.cpp: where CPU time goes -----------------------------------------------------------------

struct CpuSample {
    double at = 0;
    pid_t thread = 0;
    double weight = 0;             // seconds of CPU time that it stands for
    bool in_kernel = false;        // on behalf of the thread
    std::size_t stack = SIZE_MAX;  // index into Observed::stacks
    std::size_t python = SIZE_MAX; // and into Observed::python
};

class CpuProfile : public Layer {
  public:
    Observed observed;
    std::vector<CpuSample> samples;
    std::vector<ThreadMaker> makers; // where that can be seen on the way
    std::uint64_t threads_created =
        0;                     // all of them, where the kernel or the library in the program tells of each
    std::string source;        // for Report::profile_source
    virtual void finish() = 0; // the program has ended: what is still in the buffers
    // Of a process that the program started, from now on, complete after finish(); it ends with the last owner but this one.
    // Nothing where that cannot be seen.
    virtual std::shared_ptr<CpuProfile> of_child(pid_t) { return nullptr; }
};
// A perf event without the kernel's part where that is allowed, else a timer in the program (libthrum-stat.so); nothing
// where the program takes neither, with the reason in `why_not`. `program`: what will be executed.
std::unique_ptr<CpuProfile> make_cpu_profile(const std::string &program, double rate, std::string &why_not);
// Of a process that runs already, from now on: by perf events only. Nothing where they are refused.
std::unique_ptr<CpuProfile> make_attached_profile(pid_t pid, double rate, std::string &why_not);

// --- exact.cpp: every futex wait ----------------------------------------------------------------------

struct ExactWait {
    RawStack stack; // its addresses are set
    std::uint64_t address = 0;
    std::uint64_t waits = 0;
    double seconds = 0;
};

// Where threads gave up their CPUs by themselves; as many as the samples stand for.
struct Blocked {
    RawStack stack;
    std::uint64_t times = 0;
    double seconds = 0;
};

class ExactLayer : public Layer {
  public:
    std::optional<Switched> switched; // root and CAP_PERFMON, as `blocked` and `other_calls`
    std::vector<Blocked> blocked;
    std::vector<Maps> blocked_maps;
    bool counts_threads = true, counts_waits = true; // all of them, up to the program's end
    bool estimates_waits = false;                    // where they were, and how long, of some
    std::vector<Maps> maps;
    std::vector<ExactWait> waits;
    std::vector<ThreadMaker> makers;
    std::vector<std::pair<long, std::uint64_t>> system_calls;    // number, times; futex is in the next
    std::vector<std::pair<unsigned, std::uint64_t>> futex_calls; // operation, times
    std::vector<std::pair<std::string, std::uint64_t>>
        other_calls; // name, times: where the kernel counts them for us
    std::uint64_t threads_created = 0, threads_joined = 0;
    virtual void finish() = 0;
};
// By libthrum-stat.so in the program; where that is static or otherwise out of its reach, by tracepoints. Throws Failure
// (125) where these are not allowed either.
std::unique_ptr<ExactLayer> make_exact(const std::string &program);

// --- unwind.cpp and analyse.cpp -----------------------------------------------------------------------

// Stacks by call-frame information, symbols and lines by debugging information, after the run.
class Unwinder {
  public:
    explicit Unwinder(const Maps &maps);
    ~Unwinder();
    std::vector<Frame> frames(const RawStack &stack) const; // innermost first
    Lock lock(std::uint64_t futex) const;                   // what a futex word belongs to
    std::optional<Operand>
    operand(const RawStack &stack) const;     // of the innermost function, where it was interrupted
    std::vector<std::string> missing() const; // a sentence for each module without debugging information

  private:
    struct State;
    std::unique_ptr<State> state_;
};

// Fill what the report has of the sampled run. `wall`: how long that took.
void add_samples(Report &report, const Sampler &sampler, double wall);
void add_profile(std::vector<Site> &burns, const CpuProfile &profile);
// accesses.cpp; `allocations`: of the same run, to name memory by.
void add_accesses(Report &report, const CpuProfile &profile, AllocationsLayer *allocations = nullptr);
void add_exact(Report &report, const ExactLayer &exact);
void add_makers(Report &report, const std::vector<Maps> &maps, const std::vector<ThreadMaker> &makers);

} // namespace thrum::stat
