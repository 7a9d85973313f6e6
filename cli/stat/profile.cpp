// SPDX-License-Identifier: Apache-2.0
//
// Where threads burn CPU time: a software perf event on each CPU, which samples the program's registers and stack. It
// needs no counters of the hardware and no privileges where the system allows perf events of one's own programs; where
// not, timer_profile.cpp takes over.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <memory>

#include "stat/collect.hpp"
#include "stat/perf_events.hpp"
#include "stat/python_keeper.hpp"
#include "stat/task_files.hpp"
#include "stat/timer_profile.hpp"
#include "tools/clock.hpp"
#include "tools/failure.hpp"

namespace thrum::stat {

namespace {

perf_event_attr attributes_for(std::uint64_t period, bool with_kernel) {
    perf_event_attr attributes = event_of_program(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
    attributes.sample_period = period;
    attributes.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
    ask_for_stacks(attributes);
    attributes.exclude_kernel = with_kernel ? 0 : 1;
    attributes.exclude_hv = 1;
    attributes.mmap = 1; // says when a library was loaded
    attributes.task = 1; // and when processes begin and end
    attributes.comm = 1;
    attributes.comm_exec = 1; // and when another program takes the process over
    attributes.use_clockid = 1;
    attributes.clockid = CLOCK_MONOTONIC;
    return attributes;
}

// --- a process that the program started ----------------------------------------------------------------

// Its samples come through the program's rings, which its events have inherited.
class ChildProfile : public CpuProfile {
  public:
    static constexpr double kShare = 0.001; // of one CPU

    explicit ChildProfile(pid_t pid) {
        source = "perf event";
        maps_.begin(pid);
        python_.begin(pid);
    }

    void begin(double now, bool is_last) {
        keeper_.begin(now, is_last);
        before_ = samples.size();
    }
    void end(double now) {
        if (keeper_.are_paid_for())
            python_.add(std::min(before_, samples.size()));
        keeper_.end();
        maps_.poll(now);
    }
    void add(const CpuSample &sample, Fields &fields) {
        if (!keeper_.are_paid_for())
            keeper_.pass_over(sample.weight);
        else if (std::optional<RawStack> stack = take_stack(fields))
            keeper_.add(sample, std::move(*stack));
    }
    void has_more_code() { maps_.changed(); }
    void another_program() {
        keeper_.clear();
        before_ = 0;
        maps_.another_program();
        python_.another_program();
    }

    void poll(double) override {} // the program's profile does
    void finish() override { python_.finish(); }

  private:
    MapReader maps_{observed.maps, true};
    SampleKeeper keeper_{*this, kShare};
    PythonOfSamples python_{*this};
    std::size_t before_ = 0; // samples, at the beginning of a look
};

// --- the layer -----------------------------------------------------------------------------------------

class PerfProfile : public CpuProfile {
  public:
    PerfProfile(double rate, bool with_kernel)
        : period_(static_cast<std::uint64_t>(1e9 / rate)), with_kernel_(with_kernel) {
        source = "perf event";
    }

    void forked(pid_t child) override;
    // False: no thread of it could be asked for; `why_not` tells.
    bool attach(pid_t pid, std::string &why_not);
    void poll(double now) override;
    void finish() override;
    std::shared_ptr<CpuProfile> of_child(pid_t pid) override;

  private:
    void each_child(const std::function<void(ChildProfile &)> &visit);
    std::shared_ptr<ChildProfile> child(pid_t pid) const;
    bool attach_on(int cpu, const std::vector<pid_t> &threads, int &error);
    void look(double now, bool is_last);
    void visit(const perf_event_header &header, const std::vector<char> &record);
    void note_process(std::uint32_t type, Fields fields);
    void note_code(pid_t process);
    void note_program(pid_t process);
    void add_sample(Fields fields, bool in_kernel);

    std::uint64_t period_;
    bool with_kernel_;
    pid_t child_ = 0;
    double began_ = 0; // on CLOCK_MONOTONIC
    std::vector<Ring> rings_;
    std::map<int, int>
        ring_of_cpu_; // of a process that ran already: the event whose ring all of the CPU share
    std::vector<Descriptor> events_; // of threads of a process that ran already; they share the CPU's ring
    bool is_attached_ = false;
    MapReader maps_{observed.maps, true};
    SampleKeeper keeper_{*this};
    PythonOfSamples python_{*this};
    // Processes that it has started: how much more often each was seen to begin than to end. The CPUs' rings are read one after
    // the other, so the end may come first.
    std::map<pid_t, int> others_;
    std::map<pid_t, std::weak_ptr<ChildProfile>> profiled_; // of them
    std::uint64_t lost_ = 0, elsewhere_ = 0;
};

void PerfProfile::forked(pid_t child) {
    const perf_event_attr attributes = attributes_for(period_, with_kernel_);
    const long cpus = sysconf(_SC_NPROCESSORS_CONF);
    child_ = child;
    began_ = seconds_now();
    maps_.begin(child);
    python_.begin(child);
    int error = 0;
    unsigned missing = 0;
    for (int cpu = 0; cpu < cpus; cpu++) {
        const int fd = open_event(attributes, child, cpu);
        if (fd < 0 && errno == ENODEV)
            continue; // offline
        if (fd >= 0) {
            rings_.emplace_back(fd);
            if (rings_.back().is_mapped())
                continue;
        }
        error = errno;
        missing++;
        if (fd >= 0)
            rings_.pop_back();
    }
    if (missing > 0)
        warnings.push_back("no CPU profile of " + std::to_string(missing) + " of " + std::to_string(cpus) +
                           " CPUs: " + std::strerror(error));
}

std::vector<pid_t> threads_of(pid_t pid) {
    std::vector<pid_t> threads;
    const Descriptor folder(
        open(("/proc/" + std::to_string(pid) + "/task").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    std::vector<pid_t> part;
    while (folder.is_open() && read_ids(folder.get(), part, 1024))
        threads.insert(threads.end(), part.begin(), part.end());
    return threads;
}

// An event is of one thread and those that it makes from now on; all of one CPU write to the ring of the first.
bool PerfProfile::attach_on(int cpu, const std::vector<pid_t> &threads, int &error) {
    perf_event_attr attributes = attributes_for(period_, with_kernel_);
    attributes.disabled = attributes.enable_on_exec = 0;
    bool has_any = false;
    for (const pid_t thread : threads) {
        const int fd = open_event(attributes, thread, cpu);
        if (fd < 0) {
            error = errno == ESRCH || errno == ENODEV ? error : errno; // it has ended; the CPU is offline
            continue;
        }
        if (const auto ring = ring_of_cpu_.find(cpu); ring != ring_of_cpu_.end()) {
            events_.emplace_back(fd);
            if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->second) != 0)
                error = errno;
            else
                has_any = true;
            continue;
        }
        rings_.emplace_back(fd);
        if (!rings_.back().is_mapped()) {
            error = errno;
            rings_.pop_back();
            return false;
        }
        ring_of_cpu_[cpu] = rings_.back().event();
        has_any = true;
    }
    return has_any;
}

// Each takes a descriptor for each CPU.
bool PerfProfile::attach(pid_t pid, std::string &why_not) {
    constexpr std::size_t kEventsMost = 800;
    const long cpus = sysconf(_SC_NPROCESSORS_CONF);
    std::vector<pid_t> threads = threads_of(pid);
    const std::size_t most =
        std::max<std::size_t>(1, kEventsMost / static_cast<std::size_t>(std::max(1L, cpus)));
    if (threads.size() > most) {
        warnings.push_back("the CPU profile is of " + std::to_string(most) + " of " +
                           std::to_string(threads.size()) + " threads, and of those that they create");
        threads.resize(most);
    }
    child_ = pid;
    is_attached_ = true;
    began_ = seconds_now();
    maps_.begin(pid);
    python_.begin(pid);
    int error = 0;
    bool has_any = false;
    rings_.reserve(static_cast<std::size_t>(std::max(1L, cpus)));
    for (int cpu = 0; cpu < cpus; cpu++)
        has_any = attach_on(cpu, threads, error) || has_any;
    if (!has_any)
        why_not = std::strerror(error != 0 ? error : ESRCH);
    else if (error != 0)
        warnings.push_back(std::string("the CPU profile does not cover all threads and CPUs: ") +
                           std::strerror(error));
    return has_any;
}

void PerfProfile::poll(double now) {
    look(now, false);
}

std::shared_ptr<ChildProfile> PerfProfile::child(pid_t pid) const {
    const auto at = profiled_.find(pid);
    return at == profiled_.end() ? nullptr : at->second.lock();
}

void PerfProfile::each_child(const std::function<void(ChildProfile &)> &visit) {
    for (const auto &[pid, profile] : profiled_)
        if (const std::shared_ptr<ChildProfile> owned = profile.lock())
            visit(*owned);
}

// One that was there when this process attached has no event yet. Its own children that it had by then have none either, until
// they are asked for themselves.
std::shared_ptr<CpuProfile> PerfProfile::of_child(pid_t pid) {
    constexpr std::size_t kEventsMost = 100; // for each such process
    if (is_attached_ && others_.count(pid) == 0) {
        std::vector<pid_t> threads = threads_of(pid);
        const long cpus = std::max(1L, sysconf(_SC_NPROCESSORS_CONF));
        threads.resize(
            std::min(threads.size(), std::max<std::size_t>(1, kEventsMost / static_cast<std::size_t>(cpus))));
        bool has_any = false;
        int error = 0;
        for (int cpu = 0; cpu < cpus; cpu++)
            has_any = attach_on(cpu, threads, error) || has_any;
        if (!has_any && error != 0)
            warnings.push_back("no CPU profile of process " + std::to_string(pid) + ": " +
                               std::strerror(error));
        if (!has_any)
            return nullptr;
    }
    const auto profile = std::make_shared<ChildProfile>(pid);
    profiled_[pid] = profile;
    return profile;
}

// What the kernel does for a sample, some microseconds, is the same share of CPU time whatever the rest costs: the period of an
// event that threads have inherited cannot be changed. The rings are emptied, so that nothing is lost that has to be known.
void PerfProfile::look(double now, bool is_last) {
    began_ = seconds_now() - now;
    keeper_.begin(now, is_last);
    each_child([&](ChildProfile &profile) { profile.begin(now, is_last); });
    const std::size_t before = samples.size();
    for (Ring &ring : rings_)
        ring.drain([this](const perf_event_header &header, const std::vector<char> &record) {
            visit(header, record);
        });
    if (keeper_.are_paid_for())
        python_.add(before);
    keeper_.end();
    maps_.poll(now);
    each_child([&](ChildProfile &profile) { profile.end(now); });
}

void PerfProfile::visit(const perf_event_header &header, const std::vector<char> &record) {
    Fields fields(record);
    switch (header.type) {
    case PERF_RECORD_SAMPLE:
        add_sample(fields, (header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL);
        break;
    case PERF_RECORD_LOST:
        fields.take<std::uint64_t>();
        lost_ += fields.take<std::uint64_t>();
        break;
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT: note_process(header.type, fields); break;
    case PERF_RECORD_MMAP: note_code(fields.take<std::int32_t>()); break;
    case PERF_RECORD_COMM:
        if ((header.misc & PERF_RECORD_MISC_COMM_EXEC) != 0)
            note_program(fields.take<std::int32_t>());
        break;
    default: break;
    }
}

void PerfProfile::note_code(pid_t process) {
    if (process == child_)
        maps_.changed();
    else if (const std::shared_ptr<ChildProfile> of = child(process))
        of->has_more_code();
}

void PerfProfile::note_program(pid_t process) {
    if (process == child_) {
        keeper_.clear();
        maps_.another_program();
        python_.another_program();
    } else if (const std::shared_ptr<ChildProfile> of = child(process)) {
        of->another_program();
    }
}

// Each thread's beginning and end is told; a process is its first one.
void PerfProfile::note_process(std::uint32_t type, Fields fields) {
    const auto process = fields.take<std::int32_t>();
    fields.take<std::int32_t>(); // its parent
    const auto thread = fields.take<std::int32_t>();
    if (process == child_ && thread != process && type == PERF_RECORD_FORK)
        threads_created++;
    if (process == child_ || thread != process)
        return;
    if ((others_[process] += type == PERF_RECORD_FORK ? 1 : -1) == 0)
        others_.erase(process);
}

void PerfProfile::add_sample(Fields fields, bool in_kernel) {
    const auto process = fields.take<std::int32_t>();
    CpuSample sample;
    sample.thread = fields.take<std::int32_t>();
    sample.at = static_cast<double>(fields.take<std::uint64_t>()) * 1e-9 - began_;
    sample.weight = static_cast<double>(period_) * 1e-9;
    sample.in_kernel = in_kernel;
    if (process != child_) {
        const std::shared_ptr<ChildProfile> of = child(process);
        if (of)
            of->add(sample, fields);
        else
            elsewhere_++;
        return;
    }
    if (!keeper_.are_paid_for()) {
        keeper_.pass_over(sample.weight);
        return;
    }
    std::optional<RawStack> stack = take_stack(fields);
    if (stack)
        keeper_.add(sample, std::move(*stack));
}

void PerfProfile::finish() {
    look(seconds_now() - began_, true);
    how_known.push_back(std::string("CPU profile: a perf event every ") + std::to_string(period_ / 1000000) +
                        " ms of a thread's CPU time (threads that run for less are not seen), " +
                        (with_kernel_ ? "including the kernel on behalf of the program."
                                      : "user space only, without the kernel."));
    python_.finish();
    each_child([](ChildProfile &profile) { profile.finish(); });
    if (lost_ > 0)
        warnings.push_back("the CPU profile lost " + std::to_string(lost_) + " samples");
    if (!is_attached_ &&
        std::any_of(others_.begin(), others_.end(), [](const auto &other) { return other.second > 0; }))
        warnings.push_back("processes that the program started kept running when it ended, as a daemon's do: "
                           "they were not observed (use -p PID)");
    if (elsewhere_ > 0)
        warnings.push_back(std::to_string(elsewhere_) +
                           " CPU samples were in processes that the program started and that were not "
                           "observed yet: they are left out");
    events_.clear();
    rings_.clear();
}

std::string why_refused(int error) {
    std::ifstream file("/proc/sys/kernel/perf_event_paranoid");
    int paranoid = 0;
    std::string text = std::string("perf events are refused (") + std::strerror(error);
    if (file >> paranoid)
        text += "; kernel.perf_event_paranoid is " + std::to_string(paranoid);
    return text + ")";
}

// 0, or the errno value that such an event fails with.
int try_event(std::uint64_t period, bool with_kernel) {
    const Descriptor event(open_event(attributes_for(period, with_kernel), 0, -1));
    return event.get() >= 0 ? 0 : errno;
}

} // namespace

std::unique_ptr<CpuProfile> make_cpu_profile(const std::string &program, double rate, std::string &why_not) {
    const auto period = static_cast<std::uint64_t>(1e9 / rate);
    if (try_event(period, true) == 0)
        return std::make_unique<PerfProfile>(rate, true);
    const int error = try_event(period, false);
    if (error == 0)
        return std::make_unique<PerfProfile>(rate, false);
    why_not = why_refused(error);
    return make_timer_profile(program, rate, why_not);
}

std::unique_ptr<CpuProfile> make_attached_profile(pid_t pid, double rate, std::string &why_not) {
    const auto period = static_cast<std::uint64_t>(1e9 / rate);
    const bool with_kernel = try_event(period, true) == 0;
    if (const int error = with_kernel ? 0 : try_event(period, false); error != 0) {
        why_not = why_refused(error);
        return nullptr;
    }
    auto profile = std::make_unique<PerfProfile>(rate, with_kernel);
    return profile->attach(pid, why_not) ? std::move(profile) : nullptr;
}

} // namespace thrum::stat
