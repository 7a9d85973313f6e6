// SPDX-License-Identifier: Apache-2.0
//
// What a report says of the sampled run (add_samples of layers.hpp): of what samples have become (sample_sites.hpp) and of how
// long threads did it (thread_times.hpp) its lists of waits, locks and threads are made.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "stat/holders.hpp"
#include "stat/kernel_waits.hpp"
#include "stat/lock_waits.hpp"
#include "stat/sample_sites.hpp"
#include "stat/sites.hpp"
#include "stat/thread_times.hpp"
#include "stat/timeline_rows.hpp"
#include "stat/waits.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

void share_by_samples(std::vector<Site> &sites) {
    std::map<Doing, double> all;
    for (const Site &site : sites)
        all[site.doing] += static_cast<double>(site.samples);
    for (Site &site : sites)
        site.share = all[site.doing] > 0 ? static_cast<double>(site.samples) / all[site.doing] : 0;
}

class SampledRun {
  public:
    SampledRun(Report &report, const Sampler &sampler, double wall)
        : report_(report), sampler_(sampler), wall_(wall), locks_(report.locks),
          sites_(sampler, report.posts, locks_), times_(report, sampler, sites_) {}
    void analyse();

  private:
    using Samples = std::vector<std::size_t>; // indices into the sampler's

    const ProcSample &sample(std::size_t index) const { return sampler_.samples[index]; }
    std::vector<Samples> by_thread() const;
    void add_row(const ProcThread &thread, const Samples &samples);
    Doing doing_until(const Samples &samples, std::size_t at) const;
    std::vector<Thread::Span> spans(const ProcThread &thread, const Samples &samples) const;
    void add_lock_waits(const ProcThread &thread, const Samples &samples);
    pid_t awaited(const ProcSample &sample, const Seen &seen) const;
    std::vector<Life> lives(const std::vector<Samples> &samples);
    void add_semaphore_holders();
    void add_kernel_waits();
    void place_sites();
    void summarise();

    Report &report_;
    const Sampler &sampler_;
    double wall_;
    LockWaits locks_;
    SampleSites sites_;
    ThreadTimes times_;
    enum class Call : std::uint8_t { kMutex, kCondition, kOther };
    std::vector<Call> calls_; // by site
};

// A number may be given again; the threads are in the order in which they were first seen.
std::vector<SampledRun::Samples> SampledRun::by_thread() const {
    std::unordered_map<pid_t, std::vector<std::size_t>> with_id;
    for (std::size_t i = 0; i < sampler_.threads.size(); i++)
        with_id[sampler_.threads[i].id].push_back(i);
    std::vector<Samples> samples(sampler_.threads.size());
    for (std::size_t i = 0; i < sampler_.samples.size(); i++) {
        const auto &candidates = with_id[sample(i).thread];
        std::size_t which = 0;
        while (which + 1 < candidates.size() && sampler_.threads[candidates[which + 1]].begin <= sample(i).at)
            which++;
        if (which < candidates.size())
            samples[candidates[which]].push_back(i);
    }
    return samples;
}

// --- rows of the timeline -----------------------------------------------------------------------------------------

// What a thread that was seen running did most in the time until then.
Doing SampledRun::doing_until(const Samples &samples, std::size_t at) const {
    const ProcSample &now = sample(samples[at]);
    const std::uint64_t run_ns = at > 0 ? sample(samples[at - 1]).run_ns : 0;
    const std::uint64_t delay_ns = at > 0 ? sample(samples[at - 1]).delay_ns : 0;
    return grown(now.delay_ns, delay_ns) > grown(now.run_ns, run_ns) ? Doing::kRunnable : Doing::kRunning;
}

std::vector<Thread::Span> SampledRun::spans(const ProcThread &thread, const Samples &samples) const {
    std::vector<Thread::Span> spans;
    std::uint64_t until_now = 0;
    for (std::size_t i = 0; i < samples.size(); i++) {
        const double begin = sample(samples[i]).at;
        const double end = i + 1 < samples.size() ? sample(samples[i + 1]).at : thread.end;
        const Seen &seen = sites_.seen(samples[i]);
        const Doing doing = seen.site == kNone ? doing_until(samples, i) : seen.doing;
        const std::uint64_t run_ns = i + 1 < samples.size() ? sample(samples[i + 1]).run_ns : thread.run_ns;
        until_now = std::max(until_now, sample(samples[i]).run_ns);
        const double ran = grown(run_ns, until_now);
        const bool is_held_up = doing == Doing::kKernel ||
                                (doing == Doing::kInputOutput && !sites_.sites()[seen.site].is_message);
        append(spans, {begin, end, doing, doing == Doing::kLockWait ? seen.site : kNone, ran, is_held_up});
    }
    return thinned(spans, sampler_.threads.size());
}

void SampledRun::add_row(const ProcThread &thread, const Samples &samples) {
    if (report_.threads.size() >= kRowsMost)
        return;
    Thread row = row_of(thread, begin_of(thread, sample(samples.front())), sampler_.threads.front().name);
    row.spans = spans(thread, samples);
    std::vector<SleepLook> looks;
    for (const std::size_t i : samples)
        looks.push_back({sample(i).at, sample(i).run_ns,
                         sites_.seen(i).site != kNone && sites_.seen(i).doing == Doing::kSleep});
    row.slept_long = long_sleeps(looks);
    report_.threads.push_back(std::move(row));
}

// --- the run as a whole -----------------------------------------------------------------------------------------------

void SampledRun::add_lock_waits(const ProcThread &thread, const Samples &samples) {
    for (std::size_t i = 0; i < samples.size(); i++) {
        const Seen &seen = sites_.seen(samples[i]);
        const std::size_t lock = seen.site != kNone ? sites_.sites()[seen.site].lock : kNone;
        const double until = i + 1 < samples.size() ? sample(samples[i + 1]).at : thread.gone.value_or(wall_);
        if (lock != kNone)
            locks_.note(lock, thread.id, sample(samples[i]).at, until);
    }
}

// The holder of the lock that a thread waits for, or the thread whose end it waits for. The owner beside a word is
// trusted if it is a mutex's.
pid_t SampledRun::awaited(const ProcSample &sample, const Seen &seen) const {
    const auto known = [this](pid_t id) {
        return sites_.is_thread(id) && sampler_.has_same_numbers ? id : 0;
    };
    if (seen.doing == Doing::kJoinWait)
        return known(static_cast<pid_t>(sample.arguments[2]));
    if (seen.doing != Doing::kLockWait)
        return 0;
    const Call call = calls_[seen.site];
    if (call == Call::kMutex && known(sample.holder) != 0)
        return sample.holder;
    const bool is_private =
        sample.system_call == SYS_futex && (sample.arguments[1] & FUTEX_PRIVATE_FLAG) != 0;
    return is_private && call != Call::kCondition ? 0 : kHolderUnknown;
}

std::vector<Life> SampledRun::lives(const std::vector<Samples> &samples) {
    for (const Site &site : sites_.sites())
        calls_.push_back(is_in_mutex_call(site.stack)       ? Call::kMutex
                         : is_in_condition_call(site.stack) ? Call::kCondition
                                                            : Call::kOther);
    std::vector<Life> all;
    for (std::size_t i = 0; i < samples.size(); i++) {
        Life life{sampler_.threads[i].id, sampler_.threads[i].begin, sampler_.threads[i].gone, {}};
        for (const std::size_t index : samples[i]) {
            const ProcSample &one = sample(index);
            const Seen &seen = sites_.seen(index);
            const bool is_timed = one.system_call == SYS_futex && one.arguments[3] != 0;
            life.looks.push_back({one.at, one.run_ns, seen.doing, seen.site, awaited(one, seen), is_timed,
                                  one.holding, one.scheduling, one.holders});
        }
        all.push_back(std::move(life));
    }
    return all;
}

// The locks whose memory does not tell the holder: by what the one thread does that does not wait for it.
void SampledRun::add_semaphore_holders() {
    for (std::size_t lock = 0; lock < report_.locks.size(); lock++) {
        const PassedOn &passed = sites_.passed_on(lock);
        std::vector<std::size_t> slept; // sites
        std::uint64_t looks = 0;
        for (const std::size_t index : passed.holders) {
            const Seen &seen = sites_.seen(index);
            looks += seen.doing != Doing::kLockWait;
            if (seen.site != kNone && is_asleep(seen.doing))
                slept.push_back(seen.site);
        }
        if (looks > 0)
            report_.locks[lock].holder = sleeping_holder(sites_.sites(), slept, looks);
    }
}

void SampledRun::add_kernel_waits() {
    report_.kernel_waits = kernel_waits(sampler_, [this](std::size_t index) {
        const std::size_t site = sites_.seen(index).site;
        return site != kNone ? &sites_.sites()[site].stack : nullptr;
    });
    if (!report_.kernel_waits.empty())
        add_once(report_.how_known,
                 {"Sleeps in the kernel: the function that sleeps (wchan) and the file of the call's "
                  "descriptor, as /proc shows them of threads that nothing interrupts."});
    report_.page_tables = sampler_.page_tables;
    report_.memory = sampler_.memory;
}

// Lock waits to the one list, the others to the other; the rows of the timeline follow.
void SampledRun::place_sites() {
    std::vector<Site> &sites = sites_.sites();
    share_by_samples(sites);
    std::vector<std::size_t> place(sites.size(), kNone);
    for (std::size_t i = 0; i < sites.size(); i++) {
        const bool is_lock = sites[i].doing == Doing::kLockWait;
        if (is_lock)
            place[i] = report_.waits.size();
        (is_lock ? report_.waits : report_.others).push_back(std::move(sites[i]));
    }
    sort_waits(report_, place);
}

void SampledRun::summarise() {
    report_.process = sampler_.process;
    report_.sampled_wall = wall_;
    if (report_.sampled_threads == 0)
        report_.sampled_threads = sampler_.most_threads;
    report_.samples = sampler_.samples.size();
    const double looks = static_cast<double>(report_.samples);
    const double sweeps = sampler_.sweeps > 0
                              ? static_cast<double>(sampler_.sweeps)
                              : looks / std::max<double>(1, static_cast<double>(sampler_.threads.size()));
    report_.rate = wall_ > 0 ? sweeps / wall_ : 0;
    if (!report_.threads_counted) {
        for (std::size_t i = sampler_.is_attached ? 0 : 1; i < sampler_.threads.size(); i++)
            report_.threads_created += sampler_.threads[i].was_there ? 0 : 1;
    }
    add_once(report_.how_known,
             {"Sampled " + counted(static_cast<double>(sampler_.threads.size()), "thread") + " " +
              three_digits(report_.rate) +
              " times a second from /proc and their stacks; nothing was stopped or loaded into the program; "
              "shorter waits are seen only by chance"});
    add_once(report_.how_known, sampler_.how_known);
    add_once(report_.warnings, sampler_.warnings);
    sites_.say_missing(report_.warnings);
    if (sampler_.samples.empty())
        add_once(report_.warnings,
                 {access("/proc/self", F_OK) != 0
                      ? "/proc is not mounted here, or not readable: what the threads did is unknown"
                  : sampler_.is_attached ? "no thread of the process could be sampled"
                                         : "the program ended before its threads could be sampled"});
    if (sampler_.threads.size() > kRowsMost)
        add_once(report_.warnings, {"the timeline has the first " +
                                    counted(static_cast<double>(kRowsMost), "thread") + " only"});
}

void SampledRun::analyse() {
    const std::vector<Samples> samples = by_thread();
    std::set<std::uint64_t> joined;
    for (std::size_t i = 0; i < samples.size(); i++) {
        if (samples[i].empty())
            continue;
        times_.add(sampler_.threads[i], samples[i]);
        add_row(sampler_.threads[i], samples[i]);
        add_lock_waits(sampler_.threads[i], samples[i]);
        for (const std::size_t index : samples[i])
            if (sites_.seen(index).doing == Doing::kJoinWait)
                joined.insert(sample(index).arguments[2]);
    }
    times_.finish(sites_.sites());
    if (!report_.threads_counted)
        report_.threads_joined = joined.size();
    const std::vector<Life> all = lives(samples);
    add_holders(all, sites_.sites(), report_.locks);
    add_semaphore_holders();
    report_.deadlock = find_deadlock(all, sampler_.are_all_known);
    locks_.finish(sites_.sites());
    add_kernel_waits();
    place_sites();
    summarise();
}

} // namespace

void add_samples(Report &report, const Sampler &sampler, double wall) {
    SampledRun(report, sampler, wall).analyse();
}

} // namespace thrum::stat
