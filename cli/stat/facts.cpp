// SPDX-License-Identifier: Apache-2.0
#include "stat/facts.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "stat/alone.hpp"
#include "stat/names.hpp"
#include "stat/scaling.hpp"
#include "stat/semaphores.hpp"
#include "stat/waits.hpp"
#include "stat/working.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

constexpr double kDisturbed = 0.1; // of all CPUs, used by others
constexpr double kKeptFrom = 0.85; // of what was wanted: fewer CPUs than that, and another process had them
constexpr double kMissed = 0.1; // CPUs: a program that hardly wants one loses little time by waiting for it
// Seconds of CPU time. The kernel mostly looks at its ticks only, every 1 to 10 ms, whether a thread is in it: of less than
// this, its share is chance. So are rates of a few switches, and what one run takes of it more than another: making threads
// and ending them is a large part of it.
constexpr double kTooShort = 0.1;
constexpr double kLittleCpu =
    0.05; // seconds: of less, the accounts' ticks of 10 ms make the shares of processes
constexpr double kMostWork = 0.5; // of CPU time: by processes that the program started
constexpr double kForLocks = 0.3; // of active time without waits for messages, and for CPUs
constexpr double kNoticed = 0.1;  // threads waiting for a lock on average, in a program that is not idle

// --- stacks -------------------------------------------------------------------------------------------

// The library's function that the program calls, if that one has a hidden lock: in a stack, the one that is nearest
// to the program's own code counts. printf() may allocate, and its caller did not call malloc(); nor did that
// which made a task of OpenMP's.
const Frame *hidden_frame(const std::vector<Frame> &stack) {
    const Frame *found = nullptr;
    for (const Frame &frame : stack) {
        if (frame.is_user)
            break;
        if (find_hidden_lock(frame) != nullptr)
            found = &frame;
        else if (queues_task(frame))
            found = nullptr;
    }
    return found;
}

const LockUse *use_of(const Report &report, const Site &site) {
    return site.lock < report.locks.size() ? &report.locks[site.lock] : nullptr;
}

void name_hidden(Culprit &culprit, const Frame &frame, const HiddenLock &entry) {
    culprit.kind = entry.is_allocator ? Culprit::kAllocator : Culprit::kHidden;
    culprit.name = *entry.name == '\0' ? public_name(frame.function) + "()" : entry.name;
    culprit.module = frame.module;
    culprit.fix = entry.is_allocator ? allocator_fix(frame.module) : entry.fix;
    culprit.is_lockless = !entry.is_locked;
    culprit.key = culprit.name;
}

// Static data of a library, in an unlisted function: a hidden lock all the same.
void name_unlisted(Culprit &culprit, const Frame &frame) {
    culprit.kind = Culprit::kHidden;
    culprit.name = public_name(frame.function) + "()";
    culprit.module = frame.module;
    culprit.fix = "Call it less often, or from one thread: it takes a lock that all threads share.";
    culprit.key = culprit.name;
}

// A lock that the program asked OpenMP for, although its word may lie in that library's memory.
void name_openmp(Culprit &culprit, const OpenmpConstruct &construct) {
    culprit.is_openmp = true;
    culprit.is_of_tasks = construct.kind == OpenmpConstruct::kTasks;
    culprit.name = openmp_name(construct, culprit.lock != nullptr ? &culprit.lock->lock : nullptr);
    culprit.fix = construct.fix;
}

// A lock of the program's by what its runtime calls it; or the runtime's own.
void name_listed(Culprit &culprit, const ListedLock &listed) {
    culprit.fix = listed.fix;
    culprit.listed = &listed;
    if (listed.kind == ListedLock::kLock || listed.kind == ListedLock::kReadLock)
        return;
    culprit.kind = listed.kind == ListedLock::kAllocator ? Culprit::kAllocator : Culprit::kInterpreter;
    culprit.name = culprit.module = culprit.key = listed.name;
}

const ListedLock kSemaphore = {
    ListedLock::kLock,
    "a semaphore that is used as a lock",
    "Split the data, with a lock for each part, or collect per thread; a mutex spins before it sleeps.",
    {},
    {},
    {},
    {}};

const ListedLock kPythonLock = {ListedLock::kLock,
                                "a lock of Python's (threading.Lock)",
                                "Hold it for less, or split the data, with a lock for each part.",
                                {},
                                {},
                                {},
                                {}};

const ListedLock *semaphore_lock(const std::vector<Frame> &stack) {
    return is_in_python_lock_call(stack) ? &kPythonLock : &kSemaphore;
}

// In a call of a lock that locks.conf lists.
const ListedLock *listed_lock(const std::vector<Frame> &stack) {
    const ListedLock *listed = lock_table().find(stack);
    return listed != nullptr && listed->is_lock() ? listed : nullptr;
}

std::string key_of(const Place &place) {
    return place.function.empty() ? place.body : place.function;
}

Culprit culprit_of(const Report &report, const Site &site) {
    Culprit culprit;
    culprit.place = place_of(site.stack);
    culprit.lock = use_of(report, site);
    if (is_python_lock(site.stack, culprit.lock != nullptr ? culprit.lock->lock : Lock())) {
        culprit.kind = Culprit::kInterpreter;
        culprit.name = "Python's global interpreter lock (GIL)";
        culprit.key = "GIL";
        return culprit;
    }
    const bool is_semaphore = culprit.lock != nullptr && culprit.lock->lock.is_semaphore;
    const ListedLock *listed = is_semaphore ? semaphore_lock(site.stack) : listed_lock(site.stack);
    if (listed != nullptr) {
        name_listed(culprit, *listed);
        if (culprit.kind != Culprit::kOwn)
            return culprit;
    }
    const Frame *hidden = listed == nullptr ? hidden_frame(site.stack) : nullptr;
    if (hidden != nullptr) {
        name_hidden(culprit, *hidden, *find_hidden_lock(*hidden));
        return culprit;
    }
    const Frame *called =
        called_frame(site.stack, is_python); // a module's function rather than the interpreter
    if (called == nullptr)
        called = called_frame(site.stack);
    const OpenmpConstruct *construct = openmp_construct(site.stack);
    const bool is_librarys = culprit.lock != nullptr && culprit.lock->lock.kind == LockKind::kLibrary;
    if (is_librarys && called != nullptr && construct == nullptr && listed == nullptr) {
        name_unlisted(culprit, *called);
        return culprit;
    }
    culprit.kind = Culprit::kOwn;
    if (construct != nullptr)
        name_openmp(culprit, *construct);
    else if (culprit.lock != nullptr)
        culprit.name = name_of_lock(culprit.lock->lock);
    culprit.key = "lock " + (culprit.lock != nullptr ? std::to_string(site.lock) : key_of(culprit.place));
    return culprit;
}

// Of the C++ library's headers: std::lock_guard, std::mutex and what they are made of.
bool is_wrapper(const Frame &frame) {
    return begins_with(frame.function, "std::") || begins_with(frame.function, "__gthread") ||
           begins_with(frame.function, "__glibcxx_");
}

// In a call of the program's that takes or gives back a lock of its own.
bool is_at_own_lock(const std::vector<Frame> &stack) {
    const Frame *called = called_frame(stack, is_wrapper);
    if (const OpenmpConstruct *construct = openmp_construct(stack))
        return construct->kind != OpenmpConstruct::kBarrier;
    if (listed_lock(stack) != nullptr)
        return true;
    return called != nullptr && (called->function.find("pthread_mutex_") != std::string::npos ||
                                 called->function.find("pthread_rwlock_") != std::string::npos);
}

// Those of lock waits, then what CPU time adds: a lock that is fought for with spins and system calls that return at once
// is hardly ever seen waited for.
std::vector<Culprit> find_culprits(const Report &report) {
    std::vector<Culprit> list;
    const auto find = [&list](const std::string &key) {
        return std::find_if(list.begin(), list.end(),
                            [&key](const Culprit &known) { return known.key == key; });
    };
    const auto find_own = [&list](const Place &place) { // which lock it is only waits show
        return std::find_if(list.begin(), list.end(), [&place](const Culprit &known) {
            return known.kind == Culprit::kOwn && key_of(known.place) == key_of(place);
        });
    };
    for (const Site &site : report.waits) { // by share: the first has the place
        const LockUse *use = use_of(report, site);
        if (use != nullptr && waits_by_turns(report, *use))
            continue;
        Culprit culprit = culprit_of(report, site);
        auto known = find(culprit.key);
        if (known == list.end())
            known = list.insert(list.end(), std::move(culprit));
        known->samples += site.samples;
        known->seconds += site.seconds;
        known->wait_share += site.share;
    }
    for (const std::vector<Site> *burns : {&report.burns, &report.burns_one})
        for (const Site &site : *burns) {
            double Culprit::*const part = burns == &report.burns ? &Culprit::burned : &Culprit::burned_one;
            // What is called by a library's function that threads wait in is part of that function: it may allocate.
            const Frame *called = called_frame(site.stack);
            const auto waited = called != nullptr ? find(public_name(called->function) + "()") : list.end();
            if (waited != list.end() && waited->kind == Culprit::kHidden) {
                *waited.*part += site.share;
                continue;
            }
            const auto semaphore = std::find_if(list.begin(), list.end(), [](const Culprit &known) {
                return known.lock != nullptr && known.lock->lock.is_semaphore;
            });
            if (semaphore != list.end() && called != nullptr &&
                plain_name(called->function).rfind("sem_", 0) == 0) {
                *semaphore.*part += site.share;
                continue;
            }
            const ListedLock *listed = listed_lock(site.stack);
            const Frame *frame = listed == nullptr ? hidden_frame(site.stack) : nullptr;
            if (frame == nullptr && (!is_at_own_lock(site.stack) || is_python_lock(site.stack, Lock())))
                continue;
            Culprit culprit;
            culprit.place = place_of(site.stack);
            if (frame != nullptr)
                name_hidden(culprit, *frame, *find_hidden_lock(*frame));
            else
                culprit.key = "lock " + key_of(culprit.place);
            if (listed != nullptr)
                name_listed(culprit, *listed);
            if (const OpenmpConstruct *construct = frame == nullptr ? openmp_construct(site.stack) : nullptr)
                name_openmp(culprit, *construct);
            const bool is_own = culprit.kind == Culprit::kOwn;
            auto known = is_own ? find_own(culprit.place) : find(culprit.key);
            if (known == list.end())
                known = list.insert(list.end(), std::move(culprit));
            *known.*part += site.share;
        }
    std::stable_sort(list.begin(), list.end(), [](const Culprit &a, const Culprit &b) {
        return std::pair(a.seconds, a.burned) > std::pair(b.seconds, b.burned);
    });
    return list;
}

// --- locks that threads take by turns ------------------------------------------------------------------

constexpr std::uint64_t kFewLooks = 20; // at a holder
constexpr double kMostlyAsleep = 0.5;   // of these

// Does the function send something before it waits for what comes? Then it waits for an answer, not for work.
bool asks(const Report &report, const std::string &function) {
    static const std::set<std::string> sends = {"send",   "sendto",  "sendmsg", "sendmmsg", "write",
                                                "writev", "connect", "mq_send", "msgsnd"};
    for (const std::vector<Site> *sites : {&report.burns, &report.burns_one, &report.others})
        for (const Site &site : *sites) {
            const Frame *called = called_frame(site.stack);
            if (called != nullptr && sends.count(plain_name(called->function)) != 0 &&
                std::any_of(site.stack.begin(), site.stack.end(), [&function](const Frame &frame) {
                    return frame.is_user && source_name(frame.function) == function;
                }))
                return true;
        }
    return false;
}

// --- points -------------------------------------------------------------------------------------------

double cpu_ratio(const Point &many, const Point &few) {
    return few.cpu() > 0 && many.cpu() >= kTooShort ? many.cpu() / few.cpu() : 0;
}

// Misses for each instruction. A few among many instructions are none, however few they were before.
double grown(const HardwareCounts &many, const HardwareCounts &one, double HardwareCounts::*misses) {
    constexpr double kFew = 0.5; // per 1000 instructions
    const double now = many.per_thousand(many.*misses), before = one.per_thousand(one.*misses);
    return now > 0 ? now / std::max(before, kFew) : 0;
}

double share_of(double part, double rest) {
    return part > 0 ? part / (part + rest) : 0;
}

// Did others use some of the machine? If that could not be read, as of very short runs, the kernel's account of time
// in which a task waited for a CPU tells; but with more threads than cores the program's own tasks count there.
bool may_be_disturbed(const Point &point, unsigned processors, bool waits_for_itself) {
    if (is_disturbed(point.load, processors))
        return true;
    return !point.load.others && !waits_for_itself && point.load.waited.value_or(0) >= kDisturbed;
}

// The program and others together left no CPU idle.
bool are_all_used(const Point &point, unsigned processors) {
    constexpr double kFull = 0.9; // of the CPUs
    return point.load.others && *point.load.others + point.parallelism() >= kFull * processors;
}

// CPUs that the program may have wanted. One whose threads keep to few of them has not been kept from the rest. However little
// each thread did, many that may run anywhere want more than those. Where processes that it started do the work, its own threads
// tell nothing. Wrong if fewer threads, in another run, may use CPUs that these may not.
double allowed_cores(const Report &report, double cores, bool by_processes) {
    const Affinity all = affinity_of(report, 0);
    const auto cpus = static_cast<double>(all.cpus.size());
    return !by_processes && all.is_known && cpus > 0 ? std::min(cores, cpus) : cores;
}

// Where the program had fewer CPUs than its `threads` wanted, while others used some: how many these wanted; else 0. For how long
// the threads of processes that it started waited for a CPU is not known: `by_processes`, they wanted what was not idle.
double wanted_in_vain(const Point &point, double threads, double all_cores, unsigned processors,
                      double wanting, bool by_processes) {
    if (!may_be_disturbed(point, processors, threads > all_cores) || point.wall.median <= 0)
        return 0;
    const double cores = std::min(all_cores, threads);
    const bool any = by_processes && are_all_used(point, processors);
    const double by_delay = any ? cores : (point.cpu() + point.run_delay) / point.wall.median;
    const double wanted = std::min(cores, std::max(by_delay, wanting)), got = point.parallelism();
    return got < kKeptFrom * wanted && wanted - got >= kMissed ? wanted : 0;
}

// Of the wall time: for so long, at most, others had a CPU that a thread waited for. Of threads with equal work one may be left
// over in the end for that long.
double delayed_by_others(const Point &point) {
    if (point.wall.median <= 0)
        return 0;
    return std::clamp(point.load.taken(), 0.0, point.run_delay / point.wall.median);
}

} // namespace

std::string name_of_lock(const Lock &lock) {
    Frame at;
    at.module = lock.module;
    at.offset = lock.offset;
    return !lock.symbol.empty() ? lock.symbol : !lock.module.empty() ? frame_name(at) : lock.text;
}

namespace {

// In a system call that waits for what others send or ask for.
bool is_for_requests(const std::vector<Frame> &stack) {
    static const std::set<std::string> calls = {"accept", "accept4", "poll",       "ppoll",
                                                "select", "pselect", "epoll_wait", "epoll_pwait"};
    const Frame *called = called_frame(stack);
    return called != nullptr && calls.count(plain_name(called->function)) != 0;
}

} // namespace

bool waits_by_turns(const Report &report, const LockUse &use) {
    const Holder &holder = use.holder;
    if (holder.looks < kFewLooks || holder.asleep < kMostlyAsleep)
        return false;
    const bool is_for_work = (holder.doing == Doing::kIdleWait && is_for_requests(holder.stack)) ||
                             (holder.doing == Doing::kInputOutput && holder.is_message);
    return is_for_work && !asks(report, place_of(holder.stack).function);
}

bool is_turn(const Report &report, std::size_t site) {
    return site < report.waits.size() && use_of(report, report.waits[site]) != nullptr &&
           waits_by_turns(report, *use_of(report, report.waits[site]));
}

bool is_in_lock_call(const std::vector<Frame> &stack) {
    return is_at_own_lock(stack) || hidden_frame(stack) != nullptr;
}

bool is_in_allocator(const std::vector<Frame> &stack) {
    const Frame *hidden = hidden_frame(stack);
    const ListedLock *listed = lock_table().find(stack);
    return (hidden != nullptr && find_hidden_lock(*hidden)->is_allocator) ||
           (listed != nullptr && listed->kind == ListedLock::kAllocator);
}

bool is_input_output(const Site &site) {
    static const char *const calls[] = {"read", "readv",    "pread64", "pread",
                                        "recv", "recvfrom", "recvmsg", "recvmmsg"};
    if (site.doing != Doing::kIdleWait)
        return site.doing == Doing::kInputOutput;
    const Frame *called = called_frame(site.stack);
    return called != nullptr &&
           std::find(std::begin(calls), std::end(calls), plain_name(called->function)) != std::end(calls);
}

std::optional<double> kernel_share(const Point &point) {
    if (point.cpu() < kTooShort)
        return std::nullopt;
    return point.system / point.cpu();
}

std::uint64_t samples_of(const std::vector<Site> &sites) {
    std::uint64_t sum = 0;
    for (const Site &site : sites)
        sum += site.samples;
    return sum;
}

bool is_worth_telling(const Report &child, const Report &whole) {
    constexpr double kSome = 0.1; // of all CPU time
    const bool is_accused = !child.findings.empty() && child.findings.front().rule != "scales" &&
                            child.findings.front().rule != "inconclusive" &&
                            child.findings.front().rule != "io-bound";
    return is_accused || child.own_cpu >= kSome * std::max(whole.own_cpu + whole.children_cpu, kLittleCpu);
}

bool is_disturbed(const Load &load, unsigned processors) {
    return load.taken() >= kDisturbed * processors;
}

Facts::Facts(const Report &whole) : report(whole) {
    const double *doing = report.doing;
    const auto of = [doing](Doing what) { return doing[static_cast<int>(what)]; };
    cores = ideal_speedup(report, UINT32_MAX);
    double input = 0, messages = 0;
    double turns = 0;
    for (std::size_t i = 0; i < report.waits.size(); i++)
        turns += is_turn(report, i) ? report.waits[i].seconds : 0;
    const double lock_waits = std::max(0.0, of(Doing::kLockWait) - turns);
    for (const Site &site : report.others) {
        if (site.doing == Doing::kIdleWait && is_input_output(site))
            input += site.seconds;
        if (site.is_message && is_input_output(site))
            messages += site.seconds;
    }
    active = of(Doing::kRunning) + of(Doing::kRunnable) + lock_waits + of(Doing::kInputOutput) + input +
             of(Doing::kKernel);
    // However many threads wait there for messages, those that work may do so one after the other.
    const double others = std::max(0.0, active - lock_waits), working = std::max(0.0, others - messages);
    const auto is_most_of_work = [&](double waited) {
        const double at_work = std::max(0.0, working - of(Doing::kRunnable)); // others may have the CPUs
        return share_of(waited, at_work) >= kForLocks && waited >= kNoticed * report.sampled_wall;
    };
    if (active > 0) {
        is_without_messages = messages > 0 && is_most_of_work(lock_waits);
        lock_share = share_of(lock_waits, is_without_messages ? working : others);
        io_share = (of(Doing::kInputOutput) + input) / active;
    }
    double counted = 0;
    for (const Site &site : report.waits)
        counted += site.calls ? site.seconds : 0;
    exact_share = share_of(counted, is_most_of_work(counted) ? working : others);
    if (report.sampled_wall > 0)
        wanting = (of(Doing::kRunning) + of(Doing::kRunnable)) / report.sampled_wall;
    if (const double all = report.own_cpu + report.children_cpu; all >= kLittleCpu)
        children_share = report.children_cpu / all;
    culprits = find_culprits(report);
    burners = find_burners(report);
    if (report.points.empty())
        return;

    const Point &last = report.points.back();
    threads = std::max(last.threads, last.threads == 0 ? last.most_threads : 1U);
    parallelism = last.parallelism();
    kernel_share = stat::kernel_share(last);
    is_short = last.cpu() < kTooShort;
    if (last.cpu() > 0) {
        voluntary_rate = last.voluntary / last.cpu();
        involuntary_rate = last.involuntary / last.cpu();
        for (const Site &site : report.waits)
            exact_waits += static_cast<double>(site.calls.value_or(0));
        exact_rate = exact_waits / last.cpu();
    }
    const double allowed = allowed_cores(report, cores, children_share >= kMostWork);
    for (const Point &point : report.points) {
        const bool is_last = &point == &last;
        const double its_threads = is_last ? threads : std::max(1U, point.threads);
        const double wanted = wanted_in_vain(point, its_threads, allowed, report.machine.processors,
                                             is_last ? wanting : 0, children_share >= kMostWork);
        if (wanted <= 0 ||
            (is_busy && point.parallelism() * hindered_wanted >= hindered->parallelism() * wanted))
            continue;
        is_busy = true;
        hindered = &point;
        hindered_wanted = wanted;
    }
    if (report.sampled_wall > 0 && !report.threads.empty()) {
        const Alone time = time_alone(report);
        alone = is_busy ? share_alone_by_cpu(report, std::min(cores, threads))
                        : std::max(0.0, time.seconds / report.sampled_wall - delayed_by_others(last));
        alone_by_one = time.seconds > 0 ? time.by_one / time.seconds : 0;
        nothing = std::clamp(1 - time.working / report.sampled_wall, 0.0, 1.0);
    }
    if (report.points.size() < 2)
        return;
    few = &report.points.front();
    most = &last;
    ideal = ideal_speedup(report, most->threads) / ideal_speedup(report, few->threads);
    speedup = most->wall.median > 0 ? few->wall.median / most->wall.median : 0;
    gain = most->speedup.count > 0 ? most->speedup : speedup_interval(*few, *most, {});
    is_too_short = stat::is_too_short(report);
    inflation = cpu_ratio(*most, *few);
    few_involuntary_rate = few->cpu() > 0 ? few->involuntary / few->cpu() : 0;
    if (report.counters && report.counters_one) {
        const HardwareCounts &many = *report.counters, &one = *report.counters_one;
        slowed = many.per_cycle() > 0 ? one.per_cycle() / many.per_cycle() : 0;
        misses_grown = std::max(grown(many, one, &HardwareCounts::cache_misses),
                                grown(many, one, &HardwareCounts::l1_misses));
    }
    for (const Point &point : report.points)
        if (&point != few && point.threads <= cores)
            core_inflation = cpu_ratio(point, *few);
}

Within Facts::within(const std::string &function) const {
    const std::vector<Site> &burns = report.burns_one.empty() ? report.burns : report.burns_one;
    Within found;
    double sum = 0, all = 0;
    for (const Site &site : burns) {
        if (is_at_own_lock(site.stack))
            continue;
        all += site.share;
        found.samples += site.samples;
        if (std::any_of(site.stack.begin(), site.stack.end(), [&function](const Frame &frame) {
                return frame.is_user && !function.empty() && source_name(frame.function) == function;
            }))
            sum += site.share;
    }
    found.share = all > 0 ? sum / all : 0;
    return found;
}

bool Facts::has_profile(std::uint64_t samples) const {
    return samples_of(report.burns) >= samples;
}

bool Facts::has_profiles(std::uint64_t samples) const {
    return has_profile(samples) && samples_of(report.burns_one) >= samples;
}

} // namespace thrum::stat
