// SPDX-License-Identifier: Apache-2.0
#include "stat/switches.hpp"

#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <set>

namespace thrum::stat {

namespace {

constexpr const char *kSwitch = "sched/sched_switch", *kFutex = "syscalls/sys_enter_futex";
constexpr std::uint64_t kStacks = 1000;                     // a second, of each thread and kind, at most
constexpr std::size_t kTrailer = 2 * sizeof(std::uint64_t); // thread and time, behind each note

// Where the fields of sys_enter_futex are: the address behind the header and the number of the call, then the operation.
constexpr std::size_t kAddressAt = 16;

// Those of its operations that wait, with each of their flags: private, by the clock of the day.
std::string waiting_operations() {
    std::string filter;
    for (const unsigned operation :
         {0U, 6U, 9U, 11U, 13U}) // WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2
        for (const unsigned flags : {0U, 128U, 256U, 384U})
            filter += (filter.empty() ? "op == " : " || op == ") + std::to_string(operation | flags);
    return filter;
}

void use_clock(perf_event_attr &attributes) {
    attributes.use_clockid = 1;
    attributes.clockid = CLOCK_MONOTONIC;
}

perf_event_attr sampled(std::uint64_t tracepoint, bool with_fields) {
    perf_event_attr attributes = event_of_program(PERF_TYPE_TRACEPOINT, tracepoint);
    attributes.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD;
    if (with_fields)
        attributes.sample_type |= PERF_SAMPLE_RAW;
    attributes.freq = 1;
    attributes.sample_freq = kStacks;
    ask_for_stacks(attributes);
    use_clock(attributes);
    return attributes;
}

// An event that never happens: what its memory holds is the kernel's notes of switches, threads and programs.
perf_event_attr notes() {
    perf_event_attr attributes = event_of_program(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
    attributes.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
    attributes.sample_id_all = 1;
    attributes.context_switch = 1;
    attributes.task = 1;
    attributes.comm = 1;
    attributes.comm_exec = 1;
    attributes.mmap = 1;
    use_clock(attributes);
    return attributes;
}

std::uint64_t nanoseconds_now() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000000000 + static_cast<std::uint64_t>(now.tv_nsec);
}

double ratio(double counted, double sampled) {
    return sampled > 0 ? counted / sampled : 1;
}

std::uint64_t whole(double number) {
    return static_cast<std::uint64_t>(std::llround(number));
}

double seconds_between(std::uint64_t from, std::uint64_t to) {
    return to > from ? static_cast<double>(to - from) * 1e-9 : 0;
}

} // namespace

bool Switches::are_allowed(std::string &why_not) {
    for (const std::string name : {kSwitch, kFutex}) {
        const std::uint64_t number = tracepoint_number(name);
        if (number == 0) {
            why_not = is_tracefs_mounted()
                          ? "the tracepoint " + name + " cannot be read in /sys/kernel/tracing"
                          : "tracefs, which has the tracepoint " + name +
                                ", is not mounted, and cannot be mounted here (mount -t tracefs tracefs "
                                "/sys/kernel/tracing)";
            return false;
        }
        const Descriptor event(open_event(sampled(number, true), 0, -1));
        if (!event.is_open()) {
            why_not = "the kernel refuses the tracepoint " + name + " (" + std::strerror(errno) + ")";
            return false;
        }
    }
    return true;
}

// --- events -------------------------------------------------------------------------------------------

bool Switches::add_source(const perf_event_attr &attributes, int cpu, Kind kind) {
    const int fd = open_event(attributes, child_, cpu);
    if (fd < 0)
        return errno == ENODEV; // offline
    Ring ring(fd);
    if (!ring.is_mapped() ||
        (kind == kFutexSample && ioctl(fd, PERF_EVENT_IOC_SET_FILTER, waiting_operations().c_str()) != 0))
        return false;
    sources_.push_back({std::move(ring), kind});
    return true;
}

bool Switches::add_sources(int cpu) {
    return add_source(notes(), cpu, kBegins) &&
           add_source(sampled(tracepoint_number(kSwitch), false), cpu, kSwitchSample) &&
           (!with_futexes_ || add_source(sampled(tracepoint_number(kFutex), true), cpu, kFutexSample));
}

void Switches::forked(pid_t child) {
    child_ = child;
    maps_.begin(child);
    const long cpus = sysconf(_SC_NPROCESSORS_CONF);
    for (int cpu = 0; cpu < cpus; cpu++)
        if (!add_sources(cpu)) {
            warnings.push_back("context switches could not be counted on all CPUs: " +
                               std::string(std::strerror(errno)));
            break;
        }
}

// --- records ------------------------------------------------------------------------------------------

void Switches::visit_note(const perf_event_header &header, const std::vector<char> &record) {
    if (header.type == PERF_RECORD_LOST) {
        Fields fields(record);
        fields.take<std::uint64_t>();
        lost_ += fields.take<std::uint64_t>();
        return;
    }
    if (record.size() < kTrailer)
        return;
    const std::vector<char> tail(record.end() - kTrailer, record.end());
    Fields fields(record), trailer(tail);
    const auto process = trailer.take<std::int32_t>();
    Event event{};
    event.thread = trailer.take<std::int32_t>();
    event.at = trailer.take<std::uint64_t>();
    if (process != child_ && header.type != PERF_RECORD_FORK)
        return;
    switch (header.type) {
    case PERF_RECORD_SWITCH:
        event.kind = (header.misc & PERF_RECORD_MISC_SWITCH_OUT) == 0           ? kIn
                     : (header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0 ? kPreempted
                                                                                : kOut;
        break;
    case PERF_RECORD_FORK:
        if (fields.take<std::int32_t>() == child_)
            threads_created++;
        return;
    case PERF_RECORD_EXIT: event.kind = kEnds; break;
    case PERF_RECORD_MMAP: maps_.changed(); return;
    case PERF_RECORD_COMM:
        if ((header.misc & PERF_RECORD_MISC_COMM_EXEC) == 0)
            return;
        event.kind = kBegins;
        executed();
        break;
    default: return;
    }
    events_.push_back(event);
}

// What was known of code is the former program's, or that of the process before it became the program.
void Switches::executed() {
    if (has_executed_)
        maps_.another_program();
    maps_.changed();
    maps_text_.clear();
    stacks_.set_code({});
    has_executed_ = true;
}

void Switches::visit_sample(const std::vector<char> &record, Kind kind) {
    Fields fields(record);
    if (fields.take<std::int32_t>() != child_)
        return;
    Event event{};
    event.kind = kind;
    event.thread = fields.take<std::int32_t>();
    event.at = fields.take<std::uint64_t>();
    event.stands_for = static_cast<double>(fields.take<std::uint64_t>());
    if (event.kind == kFutexSample) {
        const auto size = static_cast<std::size_t>(fields.take<std::uint32_t>());
        const char *raw = fields.skip(size);
        if (raw != nullptr && size >= kAddressAt + sizeof event.address)
            std::memcpy(&event.address, raw + kAddressAt, sizeof event.address);
    }
    std::optional<RawStack> stack = take_stack(fields);
    if (stack) {
        event.stack = raw_.size();
        raw_.push_back(std::move(*stack));
    }
    events_.push_back(event);
}

void Switches::take_maps(double now) {
    if (has_executed_)
        maps_.poll(now);
    if (observed.maps.empty() || observed.maps.back().text == maps_text_)
        return;
    maps_text_ = observed.maps.back().text;
    std::vector<Mapping> code;
    for (Mapping &mapping : mappings_of(maps_text_))
        if (mapping.is_executable)
            code.push_back(std::move(mapping));
    stacks_.set_code(std::move(code));
}

// What one CPU noted may come before what another one noted earlier: so the latest events wait for the next turn.
void Switches::poll(double now) {
    const std::uint64_t began = nanoseconds_now();
    const std::size_t first = events_.size();
    for (auto &[ring, kind] : sources_)
        ring.drain([this, kind = kind](const perf_event_header &header, const std::vector<char> &record) {
            if (kind == kBegins)
                visit_note(header, record);
            else if (header.type == PERF_RECORD_SAMPLE)
                visit_sample(record, kind);
        });
    take_maps(now);
    for (std::size_t i = first; i < events_.size();
         i++) // by now it is known which of their words point to code
        if (events_[i].stack != SIZE_MAX)
            events_[i].stack = stacks_.add(std::move(raw_[events_[i].stack]));
    raw_.clear();
    work_off(polled_at_);
    polled_at_ = began;
}

// --- what happened ------------------------------------------------------------------------------------

void Switches::work_off(std::uint64_t until) {
    std::stable_sort(events_.begin(), events_.end(),
                     [](const Event &a, const Event &b) { return a.at < b.at; });
    const auto end = std::find_if(events_.begin(), events_.end(),
                                  [until](const Event &event) { return event.at >= until; });
    std::for_each(events_.begin(), end, [this](const Event &event) { happen(event); });
    events_.erase(events_.begin(), end);
}

void Switches::another_program(const Event &event) {
    blocked_in_.clear();
    waited_for_.clear();
    counted = Switched();
    tasks_.clear();
    Task &task = tasks_[event.thread];
    task.since = event.at;
    task.is_on = true;
}

// The time since it left its CPU belongs to where it did so; and to the futex that it was about to wait for, unless it is
// seen to have left from somewhere else.
void Switches::comes_back(Task &task, std::uint64_t at) {
    const double seconds = seconds_between(task.since, at);
    if (task.is_preempted) {
        counted.preempted += seconds;
        return;
    }
    counted.blocked += seconds;
    const auto pc_of = [this](const Event &event) { return observed.stacks[event.stack].pc; };
    const bool has_left = task.sample.stack != SIZE_MAX, has_futex = task.futex.stack != SIZE_MAX;
    if (has_left)
        blocked_in_[task.sample.stack].seconds += seconds * task.sample.stands_for;
    if (has_futex && (!has_left || pc_of(task.sample) == pc_of(task.futex)))
        waited_for_[{task.futex.stack, task.futex.address}].seconds += seconds * task.futex.stands_for;
    task.sample = task.futex = Event();
}

void Switches::goes_off(Task &task, const Event &event) {
    task.is_preempted = event.kind == kPreempted;
    (task.is_preempted ? counted.involuntary : counted.voluntary)++;
    if (task.is_preempted)
        task.sample = Event();
    else if (task.sample.stack != SIZE_MAX)
        blocked_in_[task.sample.stack].times += task.sample.stands_for;
}

void Switches::happen(const Event &event) {
    if (event.kind == kBegins) {
        another_program(event);
        return;
    }
    Task &task = tasks_[event.thread];
    switch (event.kind) {
    case kSwitchSample: task.sample = event; return;
    case kFutexSample:
        task.futex = event;
        if (event.stack != SIZE_MAX)
            waited_for_[{event.stack, event.address}].times += event.stands_for;
        return;
    case kIn:
        if (task.since != 0 && !task.is_on)
            comes_back(task, event.at);
        break;
    default:
        if (task.is_on)
            counted.on += seconds_between(task.since, event.at);
        if (event.kind != kEnds)
            goes_off(task, event);
    }
    task.is_on = event.kind == kIn;
    task.since = event.at;
    if (event.kind == kEnds)
        tasks_.erase(event.thread);
}

std::uint64_t Switches::futex_waits() const {
    std::uint64_t all = 0, count = 0;
    for (const auto &[ring, kind] : sources_)
        if (kind == kFutexSample && read(ring.event(), &count, sizeof count) == sizeof count)
            all += count;
    return all;
}

// Most calls may return at once, as the word has changed: one that sleeps does not stand for those. So what they come to is no
// more than the time off CPUs of those that left theirs in the same call. `second`: what one that was sampled there stands for.
double Switches::second_of_wait(double second) const {
    std::set<std::uint64_t> calls;
    double waited = 0, left = 0;
    for (const auto &[place, sum] : waited_for_) {
        calls.insert(observed.stacks[place.first].pc);
        waited += sum.seconds * second;
    }
    for (const auto &[stack, sum] : blocked_in_)
        left += calls.count(observed.stacks[stack].pc) != 0 ? sum.seconds * second : 0;
    return second * std::min(1.0, ratio(left, waited));
}

// What was sampled, so that it adds up to what was counted.
void Switches::finish() {
    poll(0);
    work_off(UINT64_MAX);
    Sum all, waited;
    for (const auto &[stack, sum] : blocked_in_) {
        all.times += sum.times;
        all.seconds += sum.seconds;
    }
    const double each = ratio(static_cast<double>(counted.voluntary), all.times);
    const double second = ratio(counted.blocked, all.seconds);
    for (const auto &[stack, sum] : blocked_in_)
        blocked.push_back({observed.stacks[stack], whole(sum.times * each), sum.seconds * second});
    for (const auto &[place, sum] : waited_for_)
        waited.times += sum.times;
    const double wait = ratio(static_cast<double>(futex_waits()), waited.times);
    const double asleep = second_of_wait(second);
    for (const auto &[place, sum] : waited_for_)
        waits.push_back(
            {observed.stacks[place.first], place.second, whole(sum.times * wait), sum.seconds * asleep});
    if (lost_ > 0)
        warnings.push_back(std::to_string(lost_) +
                           " records of context switches were lost: times on and off CPUs are too small");
    sources_.clear();
}

} // namespace thrum::stat
