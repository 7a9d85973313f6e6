// SPDX-License-Identifier: Apache-2.0
//
// Class Sampler (layers.hpp): what the threads of a program are at, from /proc/PID/task, many times a second. The program
// is not stopped and nothing is put into it; it is a child, or a process that this one may trace.
//
// Of each thread two small files are read: `syscall` (the system call that it sleeps in, its arguments, the stack pointer
// and where it is; or "running") and `schedstat` (time on a CPU, time that it waited for one, how often it got one). Of one
// that sleeps the first 16 KiB of its stack are copied, unless it has not run since it was last looked at. One that got a CPU
// meanwhile has left something else there: how often it did is read before and behind all that, and where the two differ the
// stack is none (a thread of a busy machine may sleep for less than this one is kept from its CPU). Whatever takes longer
// waits until the program has ended (unwind.cpp).
//
// Of one that waits for a mutex the owner is read that glibc keeps beside the word.
//
// Sampling has a budget of CPU time (allowance.hpp). What a look costs is measured; each sweep looks at as many threads as
// are paid for by then, one after another in a round, so that a program with many of them is looked at less often, not at
// more cost.
#include "stat/layers.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "elf.hpp"
#include "maps.hpp"
#include "process.hpp"
#include "stat/allowance.hpp"
#include "stat/host.hpp"
#include "stat/kernel_places.hpp"
#include "stat/python_keeper.hpp"
#include "stat/semaphores.hpp"
#include "stat/stack_keeper.hpp"
#include "stat/task_files.hpp"
#include "stat/thread_list.hpp"
#include "stat/waits.hpp"
#include "tools/descriptor.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

constexpr std::size_t kSamplesMost = 1u << 20;
constexpr double kStatusLater = 1;                  // seconds at most between looks at a thread's status
constexpr double kMapsFirst = 0.02, kMapsLater = 5; // and at the mappings

// What something costs, on average, with the latest counting most.
class Cost {
  public:
    explicit Cost(double guess) : each_(guess) {}
    void add(double seconds, std::size_t times) {
        if (times != 0)
            each_ += 0.2 * (seconds / static_cast<double>(times) - each_);
    }
    double of(std::size_t times) const { return each_ * static_cast<double>(times); }

  private:
    double each_;
};

// Is the code that was known before still where it was?
bool is_extended(const std::vector<Mapping> &before, const std::vector<Mapping> &now) {
    return std::all_of(before.begin(), before.end(), [&](const Mapping &old) {
        const Mapping *at = mapping_at(now, old.start);
        return at != nullptr && at->path == old.path && at->start == old.start && at->end == old.end;
    });
}

} // namespace

struct Sampler::State {
    State(Sampler &sampler, double highest_rate, double share)
        : to(sampler), rate(highest_rate), allowance(share) {}

    void open_process(pid_t child);
    void open_by_another_thread();
    bool has_other_memory() const;
    bool is_there(double now);
    void begin_program(double now);
    void say_once(const std::string &warning);

    void load_maps(double now);
    void look_at_maps(double now);

    std::size_t sweep(double now);
    bool was_there(const Watched &thread);
    void look(Watched &thread, double now);
    void read_status(Watched &thread, double now);
    bool look_at_sleeper(Watched &thread, const char *text, const SchedStat &before, ProcSample &sample,
                         double now);
    void keep_stack(Watched &thread, const SleepingCall &call, const char *text, const SchedStat &before,
                    ProcSample &sample);
    bool has_slept_on(Watched &thread, const char *text, const SchedStat &before);
    pid_t owner_of(std::uint64_t word) const;
    ProcSample::Holding holding_by(pid_t owner, double now);
    void look_at_holder(ProcSample &sample, double now);
    void find_python();
    void thin_out();

    Sampler &to;
    pid_t pid = 0;
    double rate;
    Allowance allowance;
    std::string living; // the folder of a thread that still runs, in /proc
    bool has_begun = false, is_foreign = false;
    std::uint64_t attached_at = 0; // ticks, since the machine began

    Descriptor memory;
    int open_error = 0; // of the memory
    unsigned refusals = 0;
    bool is_refused = false;
    ThreadList threads{to.threads};
    std::size_t next_thread = 0, looked_at = 0;

    struct Held {
        std::uint64_t word = 0;
        double at = -1;
        pid_t holder = 0;
        ProcSample::Holding holding = ProcSample::Holding::kUnknown;
        Scheduling scheduling;
    } held; // the latest
    double next_at = 0;
    bool is_over = false;
    Cost look_cost{50e-6};

    std::vector<Mapping> mappings;
    double maps_at = 0, maps_after = kMapsFirst, maps_cost = 0;
    bool saw_unknown = false;

    StackKeeper stacks{to.observed};
    PythonKeeper python{to.observed};
    KernelPlaces places{to.kernel_places};
};

// --- the process ---------------------------------------------------------------------------------------------

void Sampler::State::say_once(const std::string &warning) {
    if (std::find(to.warnings.begin(), to.warnings.end(), warning) == to.warnings.end())
        to.warnings.push_back(warning);
}

void Sampler::State::open_process(pid_t child) {
    to.process = pid = child;
    living = "/proc/" + std::to_string(pid);
    memory = Descriptor(open((living + "/mem").c_str(), O_RDONLY | O_CLOEXEC));
    open_error = memory.is_open() ? 0 : errno;
    threads.open(pid);
    if ((!memory.is_open() || has_other_memory()) && threads.is_open())
        open_by_another_thread();
    stacks.open(pid, memory.get());
    places.open(pid, memory.get());
}

// Of a process whose first thread has ended while others run only these still show its memory, program and mappings.
void Sampler::State::open_by_another_thread() {
    const std::string all = living + "/task/";
    threads.find_listed([&](pid_t id) {
        const std::string its_folder = all + std::to_string(id);
        Descriptor its(open((its_folder + "/mem").c_str(), O_RDONLY | O_CLOEXEC));
        char byte;
        if (!its.is_open() || pread(its.get(), &byte, 1, 0) == 0)
            return false;
        memory = std::move(its);
        living = its_folder;
        open_error = 0;
        return true;
    });
}

// A descriptor of /proc/PID/mem stands for the memory that the process had when it was opened; execve(2) and the process's
// end give that up, and nothing is read from then on. While it is there, nothing can be read from page 0 either, but that
// is an error.
bool Sampler::State::has_other_memory() const {
    char byte;
    return memory.is_open() && pread(memory.get(), &byte, 1, 0) == 0;
}

// Does it still run, and is it the program yet? Notices where it became another one.
bool Sampler::State::is_there(double now) {
    constexpr unsigned kRefusalsMost =
        5; // in the middle of execve(2) and of its end it is refused for a moment
    if (is_refused || (memory.is_open() && !has_other_memory()))
        return has_begun;
    open_process(pid);
    if (!memory.is_open()) {
        const bool is_forbidden = open_error == EACCES || open_error == EPERM;
        refusals = is_forbidden && threads.is_open() && threads.state_of(pid) != 'Z' ? refusals + 1 : 0;
        if (refusals < kRefusalsMost)
            return false;
        is_refused = true;
        say_once(why_hidden(process::ptrace_scope()));
    } else if (has_other_memory()) {
        return false; // it has ended
    }
    refusals = 0;
    if (has_begun)
        say_once("the program executed another one: both were sampled");
    begin_program(now);
    return true;
}

void Sampler::State::begin_program(double now) {
    has_begun = true;
    const auto status = process::read_all(living + "/status");
    to.has_same_numbers = status && !has_inner_numbers(*status);
    python.forget();
    const Descriptor file(open((living + "/exe").c_str(), O_RDONLY | O_CLOEXEC));
    const auto identity = file.is_open() ? elf::identify(file.get()) : std::nullopt;
    is_foreign = identity && !identity->is_native();
    if (is_foreign)
        say_once("the program is built for " + elf::machine_name(identity->machine) +
                 (identity->is_64_bit ? "" : ", 32 bits") + ": what its threads waited for is unknown");
    load_maps(now);
}

// --- its mappings --------------------------------------------------------------------------------------------

void Sampler::State::load_maps(double now) {
    const double begin = thread_cpu_time();
    auto text = process::read_maps(pid);
    maps_at = now;
    saw_unknown = false;
    if (!text || text->empty())
        return;
    mappings = mappings_of(*text);
    std::vector<Mapping> code_now;
    for (const Mapping &mapping : mappings)
        if (mapping.is_executable)
            code_now.push_back(mapping);
    auto &maps = to.observed.maps;
    if (!maps.empty() && is_extended(stacks.code(), code_now))
        maps.back().text = std::move(*text);
    else
        maps.push_back({maps.empty() ? 0 : now, std::move(*text), to.is_attached ? pid : 0, pid});
    stacks.set_code(std::move(code_now));
    find_python();
    maps_cost = thread_cpu_time() - begin;
}

// Where an address was seen that lies nowhere, and now and then; never so often that it takes a tenth of the budget.
void Sampler::State::look_at_maps(double now) {
    const double since = now - maps_at;
    if (since < std::max(kMapsFirst, 10 * maps_cost / allowance.share()) ||
        (!saw_unknown && since < maps_after))
        return;
    maps_after = std::min(kMapsLater, maps_after * 2);
    load_maps(now);
}

// --- one look at one thread ----------------------------------------------------------------------------------

// Since `before` and `text` were read. That its system call is the same would not tell: it may have left that and come back.
bool Sampler::State::has_slept_on(Watched &thread, const char *text, const SchedStat &before) {
    char now[256];
    if (threads.read_file(thread, thread.schedstat, "schedstat", now))
        return parse_schedstat(now).times_run == before.times_run;
    // As far as it can be told where there is no such file.
    return errno == ENOENT && threads.read_file(thread, thread.system_call, "syscall", now) &&
           std::strcmp(now, text) == 0;
}

void Sampler::State::keep_stack(Watched &thread, const SleepingCall &call, const char *text,
                                const SchedStat &before, ProcSample &sample) {
    saw_unknown = saw_unknown || !stacks.is_code(call.pc);
    RawStack stack = stacks.copy(call.sp, call.pc);
    const std::size_t functions = python.keep(thread.id);
    if (!has_slept_on(thread, text, before))
        return;
    sample.python = functions;
    sample.stack = stacks.add(std::move(stack));
    if (sample.stack == SIZE_MAX)
        say_once("the program waits at more different places than can be kept: the places of some waits are "
                 "unknown");
}

void Sampler::State::find_python() {
    std::string why_not;
    if (is_foreign)
        return;
    const auto read = [this](std::uint64_t address, void *into, std::size_t bytes) {
        return pread(memory.get(), into, bytes, static_cast<off_t>(address)) == static_cast<ssize_t>(bytes);
    };
    python.look(pid, mappings, read, why_not);
    if (!why_not.empty())
        say_once(why_not);
}

// False: it has ended.
bool Sampler::State::look_at_sleeper(Watched &thread, const char *text, const SchedStat &before,
                                     ProcSample &sample, double now) {
    SleepingCall call;
    if (!is_foreign && parse_system_call(text, call)) {
        sample.system_call = call.number;
        std::copy(std::begin(call.arguments), std::end(call.arguments), sample.arguments);
    }
    sample.state = sample.system_call == SYS_futex ? 'S' : threads.state_of(thread.id);
    if (sample.state == 'Z' || sample.state == 'X')
        return false;
    if (sample.state == 'R') // by now
        sample.system_call = -1;
    else if (call.sp != 0)
        keep_stack(thread, call, text, before, sample);
    places.look(threads, thread.id, sample, now);
    if (sample.system_call == SYS_semop || sample.system_call == SYS_semtimedop)
        read_operation(memory.get(), sample);
    if (sample.system_call == SYS_futex && mapping_at(mappings, sample.arguments[0]) == nullptr)
        saw_unknown = true;
    return true;
}

// A glibc mutex, on both processors: its word, a count, the owner's number, the number of holders and of threads that
// come back to it, and its kind. A reader that knows more than the word, such as the stack, may see that it is
// something else.
pid_t Sampler::State::owner_of(std::uint64_t word) const {
    constexpr std::uint32_t kKinds = 0x3ff;
    struct {
        std::uint32_t word, count;
        std::int32_t owner;
        std::uint32_t users, kind;
    } mutex{};
    const bool is_read = pread(memory.get(), &mutex, sizeof mutex, static_cast<off_t>(word)) == sizeof mutex;
    const bool is_mutex = is_read && mutex.users > 0 && (mutex.kind & ~kKinds) == 0;
    return is_mutex ? std::max(mutex.owner, 0) : 0;
}

// One that sleeps in what it was not seen in yet is looked at like all others.
ProcSample::Holding Sampler::State::holding_by(pid_t owner, double now) {
    using Holding = ProcSample::Holding;
    char text[256];
    Watched *known = threads.find(owner);
    if (known == nullptr)
        return Holding::kUnknown;
    Watched &holder = *known;
    if (!threads.read_file(holder, holder.system_call, "syscall", text))
        return Holding::kUnknown;
    if (std::strncmp(text, "running", 7) == 0)
        return Holding::kAwake;
    if (holder.waits != text)
        look(holder, now);
    return holder.waits.empty() ? Holding::kAwake : Holding::kAsleep;
}

// What the holder does counts where it has the lock before and after. Of those that wait for one lock it is asked once a sweep.
void Sampler::State::look_at_holder(ProcSample &sample, double now) {
    if (!is_at_mutex(sample))
        return;
    const std::uint64_t word = sample.arguments[0];
    if (held.word != word || held.at != now) {
        Held found{word, now, owner_of(word), ProcSample::Holding::kUnknown, {}};
        if (found.holder != 0 && found.holder != sample.thread)
            found.holding = holding_by(found.holder, now);
        if (found.holding != ProcSample::Holding::kUnknown)
            found.scheduling = scheduling_of(found.holder);
        if (owner_of(word) != found.holder)
            found.holding = ProcSample::Holding::kUnknown;
        held = found;
        sample.holding = held.holding; // of one sample, for all waiters
    }
    sample.holder = held.holder;
    sample.holders = held.scheduling;
    sample.scheduling = held.scheduling.is_known() ? scheduling_of(sample.thread) : Scheduling();
}

// To a tick of the clock. In the list there is no such thing: threads may have been made, or passed over, while it was read.
bool Sampler::State::was_there(const Watched &thread) {
    ProcThread &known = to.threads[thread.thread];
    char text[1024];
    if (!to.is_attached)
        return false;
    Descriptor fd(threads.open_file(thread.id, "stat"));
    if (const std::uint64_t start = fd.is_open() && read_text(fd.get(), text) ? parse_start(text) : 0;
        start > 0)
        known.was_there = start <= attached_at;
    return known.was_there;
}

void Sampler::State::look(Watched &thread, double now) {
    char text[256], scheduled[256];
    // First how often it has run, so that what is read after it is known to be of one sleep where that has stayed the same.
    const bool has_schedstat = threads.read_file(thread, thread.schedstat, "schedstat", scheduled);
    if (!has_schedstat) { // without its times it is no look at it
        const int error = errno;
        if (error != ENOENT || threads.state_of(thread.id) == 'X') {
            threads.note_end(thread, error, now);
            return;
        }
        say_once("the kernel reports no run times (schedstat): waiting for a CPU is unknown");
    }
    bool may_read = true;
    if (!threads.read_file(thread, thread.system_call, "syscall", text)) {
        may_read = errno != EACCES && errno != EPERM;
        if (may_read) {
            threads.note_end(thread, errno, now);
            return;
        }
    }
    const SchedStat stat = has_schedstat ? parse_schedstat(scheduled) : SchedStat();
    const bool has_run = !has_schedstat || stat.times_run != thread.times_run;
    ProcSample sample;
    if (may_read && std::strncmp(text, "running", 7) == 0) {
        sample.state = 'R';
        thread.waits.clear();
    } else if (may_read && !has_run && thread.waits == text) {
        sample = thread.last; // it has slept all the time
    } else if (look_at_sleeper(thread, may_read ? text : "", stat, sample, now)) {
        thread.waits = may_read ? text : "";
    } else {
        threads.miss(thread, now);
        return;
    }
    sample.at = now;
    sample.thread = thread.id;
    look_at_holder(sample, now);
    if (thread.is_new && was_there(thread)) {
        thread.run_before = stat.run_ns;
        thread.delay_before = stat.delay_ns;
    }
    thread.is_new = false;
    sample.run_ns = stat.run_ns - thread.run_before;
    sample.delay_ns = stat.delay_ns - thread.delay_before;
    thread.times_run = stat.times_run;
    thread.last = sample;
    to.samples.push_back(sample);
    ProcThread &known = to.threads[thread.thread];
    known.end = now;
    known.run_ns = sample.run_ns;
    known.delay_ns = sample.delay_ns;
    if (now >= thread.status_at)
        read_status(thread, now);
}

void Sampler::State::read_status(Watched &thread, double now) {
    thread.status_at = now + thread.status_after;
    thread.status_after = std::min(kStatusLater, 2 * thread.status_after);
    char text[4096], children[32];
    Descriptor fd(threads.open_file(thread.id, "status"));
    if (!fd.is_open() || !read_text(fd.get(), text))
        return;
    const std::string status = text;
    ProcThread &known = to.threads[thread.thread];
    known.name = line_in(status, "Name:\t");
    to.page_tables = std::max(to.page_tables, 1024.0 * static_cast<double>(number_in(status, "\nVmPTE:")));
    to.memory = std::max(to.memory, 1024.0 * static_cast<double>(number_in(status, "\nVmHWM:")));
    known.cpus = line_in(status, "\nCpus_allowed_list:\t");
    known.scheduling = scheduling_of(thread.id);
    known.voluntary = number_in(status, "\nvoluntary_ctxt_switches:");
    known.involuntary = number_in(status, "nonvoluntary_ctxt_switches:");
    if (thread.id != pid && !threads.are_few())
        return;
    if (to.are_children_followed)
        return;
    fd = Descriptor(threads.open_file(thread.id, "children"));
    if (fd.is_open() && read_text(fd.get(), children))
        say_once("the program started other processes, which were not observed");
}

// Of each thread every second sample, and from now on half as many.
void Sampler::State::thin_out() {
    std::unordered_map<pid_t, unsigned> counts;
    const auto is_second = [&](const ProcSample &taken) { return counts[taken.thread]++ % 2 != 0; };
    to.samples.erase(std::remove_if(to.samples.begin(), to.samples.end(), is_second), to.samples.end());
    rate /= 2;
}

// --- sweeps --------------------------------------------------------------------------------------------------

// As many threads as can be afforded; how many were looked at.
std::size_t Sampler::State::sweep(double now) {
    std::vector<Watched> &watched = threads.watched();
    if (allowance.left() <= 0 || watched.empty())
        return 0;
    const double affordable = std::max(1.0, allowance.left() / look_cost.of(1));
    const std::size_t count = affordable < static_cast<double>(watched.size())
                                  ? static_cast<std::size_t>(affordable)
                                  : watched.size();
    std::size_t looks = 0;
    for (std::size_t i = 0; i < count; i++) {
        next_thread = next_thread + 1 < watched.size() ? next_thread + 1 : 0;
        if (watched[next_thread].is_gone)
            continue;
        look(watched[next_thread], now);
        looks++;
    }
    looked_at += count;
    if (looked_at >= std::max(watched.size(), threads.count())) {
        to.sweeps++;
        looked_at = 0;
    }
    return looks;
}

Sampler::Sampler(double rate, double budget) : state_(std::make_unique<State>(*this, rate, budget)) {}

Sampler::~Sampler() = default;

void Sampler::forked(pid_t child) {
    state_->open_process(child);
}

void Sampler::attach(pid_t pid) {
    if (!process::read_all("/proc/" + std::to_string(pid) + "/syscall"))
        throw process::unreadable(pid, errno);
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    const auto ticks = static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
    state_->attached_at = static_cast<std::uint64_t>(now.tv_sec) * ticks +
                          static_cast<std::uint64_t>(now.tv_nsec) * ticks / 1000000000;
    state_->open_process(pid);
    state_->threads.are_from_before();
    is_attached = true;
    state_->begin_program(0);
}

void Sampler::poll(double now) {
    constexpr double kEarly = 0.002; // by which it may come, since callers have steps of their own
    if (!state_)
        return;
    State &state = *state_;
    if (state.is_over || !state.threads.is_open() || now + kEarly < state.next_at)
        return;
    state.allowance.begin(now);
    state.next_at = std::max(state.next_at + 1 / state.rate, now);
    if (state.is_there(now)) {
        state.threads.read_on(now, state.allowance);
        most_threads = state.threads.most();
        are_all_known = state.threads.are_all_known();
        const double swept_from = thread_cpu_time();
        const std::size_t count = state.sweep(now);
        state.look_cost.add(thread_cpu_time() - swept_from, count);
        state.look_at_maps(now);
        if (samples.size() >= kSamplesMost)
            state.thin_out();
    }
    state.allowance.end();
}

void Sampler::interrupted() {
    if (state_)
        state_->is_over = true;
}

void Sampler::close() {
    state_.reset();
}

} // namespace thrum::stat
