// SPDX-License-Identifier: Apache-2.0
//
// What a report says of the sampled run (add_samples of layers.hpp): stacks get names, waits get kinds, and the same ones
// become one site.
//
// Times are not sample counts times a period. The kernel says how long each thread ran and how long it waited for a CPU;
// the rest of its life it slept, and that is shared out to the sites where it was seen asleep.
#include <linux/futex.h>
#include <sys/syscall.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "stat/holders.hpp"
#include "stat/python.hpp"
#include "stat/sites.hpp"
#include "stat/waits.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

constexpr std::size_t kSpansMost = 2000; // of a thread
constexpr std::size_t kAllSpansMost = 200000;
constexpr std::size_t kThreadsMost = 10000; // as rows of the timeline

void share_by_samples(std::vector<Site> &sites) {
    std::map<Doing, double> all;
    for (const Site &site : sites)
        all[site.doing] += static_cast<double>(site.samples);
    for (Site &site : sites)
        site.share = all[site.doing] > 0 ? static_cast<double>(site.samples) / all[site.doing] : 0;
}

// Locks by where they are; an address means another lock after an exec.
class Locks {
  public:
    explicit Locks(std::vector<LockUse> &locks) : locks_(locks) {}

    std::size_t add(Lock lock, std::size_t era) {
        const auto [at, is_new] = known_.try_emplace({era, lock.address}, locks_.size());
        if (is_new) {
            locks_.emplace_back();
            locks_.back().lock = std::move(lock);
        }
        return at->second;
    }

  private:
    std::vector<LockUse> &locks_;
    std::map<std::pair<std::size_t, std::uint64_t>, std::size_t> known_;
};

// What a counter of the kernel's has grown by, in seconds. Those of a thread that is about to end may be lower than before.
double grown(std::uint64_t now, std::uint64_t before) {
    return now > before ? static_cast<double>(now - before) * 1e-9 : 0;
}

// How many waited for a lock at once: one more from `at` on, or one fewer.
struct Step {
    double at;
    int by;
};

void count_waiters(std::vector<Step> &steps, LockUse &use) {
    std::sort(steps.begin(), steps.end(), [](const Step &a, const Step &b) {
        return a.at != b.at ? a.at < b.at : a.by < b.by; // a thread that ends makes room for a new one
    });
    double since = 0, waited = 0, waited_by_all = 0;
    int waiters = 0;
    for (const Step &step : steps) {
        waited += waiters > 0 ? step.at - since : 0;
        waited_by_all += waiters * (step.at - since);
        since = step.at;
        waiters += step.by;
        use.waiters_most = std::max(use.waiters_most, static_cast<unsigned>(std::max(waiters, 0)));
    }
    use.waiters_mean = waited > 0 ? waited_by_all / waited : 0;
}

// --- the sampled run ----------------------------------------------------------------------------------------------

// What a sample has become: `site` is an index into SampledRun's sites, whatever they do.
struct Seen {
    Doing doing = Doing::kRunning;
    std::size_t site = kNone;
};

class SampledRun {
  public:
    SampledRun(Report &report, const Sampler &sampler, double wall)
        : report_(report), sampler_(sampler), wall_(wall), places_(sampler.observed.maps),
          locks_(report.locks) {
        for (const ProcThread &thread : sampler.threads)
            ids_.insert(thread.id);
        has_times_ = std::any_of(sampler.samples.begin(), sampler.samples.end(),
                                 [](const ProcSample &sample) { return sample.run_ns != 0; });
    }
    void analyse();

  private:
    using Samples = std::vector<std::size_t>; // indices into the sampler's

    const ProcSample &sample(std::size_t index) const { return sampler_.samples[index]; }
    std::vector<Samples> by_thread() const;
    using Wait = std::tuple<std::size_t, std::uint64_t, std::uint64_t>; // era, futex word, operation
    Wait wait_of(const ProcSample &sample) const;
    void see_all();
    Seen see(const ProcSample &sample);
    Seen look_up(const ProcSample &sample);
    const std::vector<Frame> &frames_of(const ProcSample &sample);
    void add_times(const ProcThread &thread, const Samples &samples);
    void share_out(double asleep, std::map<std::size_t, double> &seen_asleep);
    void add_row(const ProcThread &thread, const Samples &samples);
    Doing doing_until(const Samples &samples, std::size_t at) const;
    std::vector<Thread::Span> spans(const ProcThread &thread, const Samples &samples) const;
    void add_lock_times(const ProcThread &thread, const Samples &samples);
    pid_t awaited(const ProcSample &sample, const Seen &seen) const;
    std::vector<Life> lives(const std::vector<Samples> &samples);
    void finish_locks();
    void add_kernel_waits();
    void find_semaphore_locks();
    void place_sites();
    void summarise();

    Report &report_;
    const Sampler &sampler_;
    double wall_;
    bool has_times_ = false;
    Places places_;
    Locks locks_;
    std::set<pid_t> ids_;
    std::vector<Seen> seen_;  // by sample
    std::vector<Site> sites_; // of all kinds
    enum class Call : std::uint8_t { kMutex, kCondition, kOther };
    std::vector<Call> calls_; // by site
    std::map<std::tuple<Doing, std::string, std::size_t>, std::size_t> known_sites_;
    std::map<std::pair<std::size_t, std::size_t>, std::vector<Frame>> known_frames_; // by stack, and Python's
    std::map<std::tuple<std::size_t, std::size_t, long, std::uint64_t, std::uint64_t, std::uint64_t>, Seen>
        known_;
    std::set<std::uint64_t> semaphore_locks_;        // by address
    std::map<std::size_t, double> asleep_;           // by site: seconds
    double unseen_ = 0;                              // seconds that threads slept without being seen asleep
    std::map<std::size_t, std::vector<Step>> steps_; // by lock
    std::map<std::size_t, std::set<pid_t>> waiters_; // by lock
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

const std::vector<Frame> &SampledRun::frames_of(const ProcSample &sample) {
    const Observed &observed = sampler_.observed;
    const auto [at, is_new] = known_frames_.try_emplace({sample.stack, sample.python});
    if (is_new)
        at->second = sample.stack < observed.stacks.size()
                         ? places_.frames(observed.stacks[sample.stack], places_.era_of(sample.at))
                         : Places::unknown();
    if (is_new && sample.python < observed.python.size())
        at->second = with_python(std::move(at->second), observed.python[sample.python]);
    return at->second;
}

Seen SampledRun::look_up(const ProcSample &sample) {
    const std::vector<Frame> &stack = frames_of(sample);
    const std::size_t era = places_.era_of(sample.at);
    Seen seen;
    seen.doing = doing_of(sample, stack, ids_);
    std::size_t lock = kNone;
    if (seen.doing == Doing::kLockWait || seen.doing == Doing::kIdleWait) {
        const bool is_futex = system_call_name(sample.system_call) == "futex";
        Lock found = is_futex ? places_.lock(sample.arguments[0], era) : Lock();
        found.is_semaphore = is_futex && semaphore_locks_.count(sample.arguments[0]) != 0;
        const bool is_python = is_futex && is_python_lock(stack, found);
        if (is_python || found.is_semaphore)
            seen.doing = Doing::kLockWait;
        if (is_futex && seen.doing == Doing::kLockWait)
            lock = locks_.add(is_python ? as_python_lock(found) : found, era);
    }
    const auto [at, is_new] =
        known_sites_.try_emplace({seen.doing, key_of(stack, true), lock}, sites_.size());
    if (is_new) {
        sites_.emplace_back();
        sites_.back().stack = stack;
        sites_.back().doing = seen.doing;
        sites_.back().lock = lock;
        sites_.back().is_message = true;
    }
    Site &site = sites_[at->second];
    site.is_message = site.is_message && is_for_message(sample);
    seen.site = at->second;
    return seen;
}

// The same wait is looked up once.
Seen SampledRun::see(const ProcSample &sample) {
    if (sample.state == 'R')
        return {};
    const std::uint64_t *arguments = sample.arguments;
    const bool is_other = sample.state != 'S';
    const auto [at, is_new] =
        known_.try_emplace({sample.stack, sample.python, is_other ? -sample.state : sample.system_call,
                            arguments[0], arguments[1], arguments[2]});
    if (is_new)
        at->second = look_up(sample);
    sites_[at->second.site].samples++;
    return at->second;
}

SampledRun::Wait SampledRun::wait_of(const ProcSample &sample) const {
    return {places_.era_of(sample.at), sample.arguments[0], sample.arguments[1]};
}

// A thread that ran on while its stack was copied did wait, and the word tells for what. The place is taken from the
// wait for the same word that was seen before it; of the first ones, from the one that comes first.
void SampledRun::see_all() {
    std::map<Wait, std::pair<std::size_t, std::size_t>> stacks; // with Python's
    const auto is_placed = [](const ProcSample &one) { return one.stack != kNone; };
    const auto is_futex = [](const ProcSample &one) { return one.system_call == SYS_futex; };
    std::map<Wait, pid_t> holders;
    for (const ProcSample &one : sampler_.samples) {
        if (is_futex(one) && is_placed(one))
            stacks.try_emplace(wait_of(one), one.stack, one.python);
        if (is_futex(one) && ids_.count(one.holder) != 0)
            holders.try_emplace(wait_of(one), one.holder);
    }
    for (const ProcSample &one : sampler_.samples) {
        ProcSample placed = one;
        const auto same = is_futex(one) ? stacks.find(wait_of(one)) : stacks.end();
        if (same != stacks.end() && is_placed(one))
            same->second = {one.stack, one.python};
        else if (same != stacks.end())
            std::tie(placed.stack, placed.python) = same->second;
        if (const auto holder = holders.find(wait_of(one)); is_futex(one) && holder != holders.end())
            placed.holder =
                holder->second; // the same wait is looked up once: what is known of the word counts
        seen_.push_back(see(placed));
    }
}

// Shares out how long a thread slept to where it was seen asleep, in proportion.
void SampledRun::share_out(double asleep, std::map<std::size_t, double> &seen_asleep) {
    double all = 0;
    for (const auto &[site, seconds] : seen_asleep)
        all += seconds;
    if (all <= 0) {
        unseen_ += asleep;
        return;
    }
    for (const auto &[site, seconds] : seen_asleep)
        asleep_[site] += asleep * seconds / all;
}

// What it had run and waited for a CPU when it was first seen it had done before that.
double begin_of(const ProcThread &thread, const ProcSample &first) {
    return std::max(0.0, thread.begin - static_cast<double>(first.run_ns + first.delay_ns) * 1e-9);
}

void SampledRun::add_times(const ProcThread &thread, const Samples &samples) {
    const double begin = begin_of(thread, sample(samples.front()));
    double ran = 0, delayed = 0, before = begin;
    std::uint64_t run_ns = 0, delay_ns = 0;
    std::map<std::size_t, double> seen_asleep;
    std::size_t last_site = kNone;
    for (const std::size_t index : samples) {
        const ProcSample &now = sample(index);
        const double took = now.at - before;
        double run = grown(now.run_ns, run_ns);
        const double delay = grown(now.delay_ns, delay_ns);
        const std::size_t site = seen_[index].site;
        if (!has_times_)
            run = site == kNone ? took : 0;
        const double rest = std::max(0.0, took - run - delay);
        if (site != kNone || last_site != kNone)
            seen_asleep[site != kNone ? site : last_site] += rest;
        ran += run;
        delayed += delay;
        before = now.at;
        run_ns = std::max(run_ns, now.run_ns);
        delay_ns = std::max(delay_ns, now.delay_ns);
        last_site = site;
    }
    report_.doing[static_cast<int>(Doing::kRunning)] += ran;
    report_.doing[static_cast<int>(Doing::kRunnable)] += delayed;
    // The kernel brings run times up to date at ticks: what one that always ran lacks is no sleep.
    constexpr double kTick = 0.012;
    const double asleep = std::max(0.0, before - begin - ran - delayed);
    if (!seen_asleep.empty() || asleep > kTick + 0.02 * (before - begin))
        share_out(asleep, seen_asleep);
    else
        report_.doing[static_cast<int>(Doing::kRunning)] += asleep;
}

// --- rows of the timeline -----------------------------------------------------------------------------------------

// What a thread that was seen running did most in the time until then.
Doing SampledRun::doing_until(const Samples &samples, std::size_t at) const {
    const ProcSample &now = sample(samples[at]);
    const std::uint64_t run_ns = at > 0 ? sample(samples[at - 1]).run_ns : 0;
    const std::uint64_t delay_ns = at > 0 ? sample(samples[at - 1]).delay_ns : 0;
    return grown(now.delay_ns, delay_ns) > grown(now.run_ns, run_ns) ? Doing::kRunnable : Doing::kRunning;
}

void append(std::vector<Thread::Span> &spans, const Thread::Span &span) {
    if (!spans.empty() && spans.back().doing == span.doing && spans.back().site == span.site &&
        spans.back().is_held_up == span.is_held_up) {
        spans.back().end = span.end;
        spans.back().ran += span.ran;
    } else if (span.end > span.begin) {
        spans.push_back(span);
    }
}

std::vector<Thread::Span> SampledRun::spans(const ProcThread &thread, const Samples &samples) const {
    std::vector<Thread::Span> spans;
    std::uint64_t until_now = 0;
    for (std::size_t i = 0; i < samples.size(); i++) {
        const double begin = sample(samples[i]).at;
        const double end = i + 1 < samples.size() ? sample(samples[i + 1]).at : thread.end;
        const Seen &seen = seen_[samples[i]];
        const Doing doing = seen.site == kNone ? doing_until(samples, i) : seen.doing;
        const std::uint64_t run_ns = i + 1 < samples.size() ? sample(samples[i + 1]).run_ns : thread.run_ns;
        until_now = std::max(until_now, sample(samples[i]).run_ns);
        const double ran = grown(run_ns, until_now);
        const bool is_held_up =
            doing == Doing::kKernel || (doing == Doing::kInputOutput && !sites_[seen.site].is_message);
        append(spans, {begin, end, doing, doing == Doing::kLockWait ? seen.site : kNone, ran, is_held_up});
    }
    return spans;
}

// One span for each part of the time, of what there is most of in it.
std::vector<Thread::Span> thinned(const std::vector<Thread::Span> &spans, std::size_t most) {
    if (spans.size() <= most)
        return spans;
    std::vector<Thread::Span> thin;
    const double begin = spans.front().begin, part = (spans.back().end - begin) / static_cast<double>(most);
    std::size_t at = 0;
    for (std::size_t i = 0; i < most; i++) {
        const double from = begin + part * static_cast<double>(i), to = from + part;
        std::size_t longest = at;
        const auto within = [&](std::size_t which) {
            return std::min(spans[which].end, to) - std::max(spans[which].begin, from);
        };
        for (std::size_t next = at; next < spans.size() && spans[next].begin < to; next++) {
            if (within(next) > within(longest))
                longest = next;
            at = next;
        }
        const Thread::Span &of = spans[longest];
        const double length = of.end - of.begin;
        append(thin, {from, to, of.doing, of.site, length > 0 ? of.ran * part / length : 0, of.is_held_up});
    }
    return thin;
}

void SampledRun::add_row(const ProcThread &thread, const Samples &samples) {
    if (report_.threads.size() >= kThreadsMost)
        return;
    const std::size_t rows = std::min(sampler_.threads.size(), kThreadsMost);
    Thread row;
    row.id = thread.id;
    row.name =
        thread.name.empty() ? sampler_.threads.front().name : thread.name; // as it is without one of its own
    row.cpus = thread.cpus;
    row.begin = begin_of(thread, sample(samples.front()));
    row.end = thread.end;
    row.cpu = static_cast<double>(thread.run_ns) * 1e-9;
    row.run_delay = static_cast<double>(thread.delay_ns) * 1e-9;
    row.voluntary = thread.voluntary;
    row.involuntary = thread.involuntary;
    row.spans =
        thinned(spans(thread, samples), std::clamp<std::size_t>(kAllSpansMost / rows, 20, kSpansMost));
    report_.threads.push_back(std::move(row));
}

// --- the run as a whole -----------------------------------------------------------------------------------------------

void SampledRun::add_lock_times(const ProcThread &thread, const Samples &samples) {
    for (std::size_t i = 0; i < samples.size(); i++) {
        const Seen &seen = seen_[samples[i]];
        const std::size_t lock = seen.site != kNone ? sites_[seen.site].lock : kNone;
        if (lock == kNone)
            continue;
        waiters_[lock].insert(thread.id);
        steps_[lock].push_back({sample(samples[i]).at, 1});
        const double until = i + 1 < samples.size() ? sample(samples[i + 1]).at : thread.gone.value_or(wall_);
        steps_[lock].push_back({until, -1});
    }
}

// The holder of the lock that a thread waits for, or the thread whose end it waits for. The owner beside a word is
// trusted if it is a mutex's.
pid_t SampledRun::awaited(const ProcSample &sample, const Seen &seen) const {
    const auto known = [this](pid_t id) { return ids_.count(id) != 0 && sampler_.has_same_numbers ? id : 0; };
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
    for (const Site &site : sites_)
        calls_.push_back(is_in_mutex_call(site.stack)       ? Call::kMutex
                         : is_in_condition_call(site.stack) ? Call::kCondition
                                                            : Call::kOther);
    std::vector<Life> all;
    for (std::size_t i = 0; i < samples.size(); i++) {
        Life life{sampler_.threads[i].id, sampler_.threads[i].begin, sampler_.threads[i].gone, {}};
        for (const std::size_t index : samples[i]) {
            const ProcSample &one = sample(index);
            const Seen &seen = seen_[index];
            const bool is_timed = one.system_call == SYS_futex && one.arguments[3] != 0;
            life.looks.push_back(
                {one.at, one.run_ns, seen.doing, seen.site, awaited(one, seen), is_timed, one.holding});
        }
        all.push_back(std::move(life));
    }
    return all;
}

void SampledRun::finish_locks() {
    double all = 0;
    for (const Site &site : sites_) {
        all += site.doing == Doing::kLockWait ? static_cast<double>(site.samples) : 0;
        if (site.lock == kNone)
            continue;
        report_.locks[site.lock].samples += site.samples;
        report_.locks[site.lock].seconds += site.seconds;
    }
    for (std::size_t i = 0; i < report_.locks.size(); i++) {
        LockUse &use = report_.locks[i];
        use.share = all > 0 ? static_cast<double>(use.samples) / all : 0;
        use.threads = static_cast<unsigned>(waiters_[i].size());
        count_waiters(steps_[i], use);
    }
    sort_locks(report_.locks, sites_);
}

// In the kernel's functions that wait for a device, or for memory to become free.
bool is_device_channel(const std::string &channel) {
    static constexpr const char *kParts[] = {"io_schedule", "rq_qos",        "folio_wait", "wait_on_page",
                                             "wait_on_bit", "blk_",          "bio_",       "balance_dirty",
                                             "congestion",  "jbd2_log_wait", "submit",     "throttle",
                                             "reclaim",     "nfs_",          "rpc_"};
    return std::any_of(std::begin(kParts), std::end(kParts),
                       [&channel](const char *part) { return channel.find(part) != std::string::npos; });
}

// A semaphore is a lock where the threads that wait for it are those that raise it. Of a queue's, others do that: the thread that adds work
// does not wait for some. Wrong where each thread adds work as often as it takes some.
void SampledRun::find_semaphore_locks() {
    constexpr double kSame = 0.8; // of the threads that raise it
    std::map<std::uint64_t, std::set<pid_t>> waiters;
    for (const ProcSample &one : sampler_.samples)
        if (one.system_call == SYS_futex && report_.posts.count(one.arguments[0]) != 0)
            waiters[one.arguments[0]].insert(one.thread);
    for (const auto &[address, threads] : waiters) {
        const std::set<std::int32_t> &posters = report_.posts[address];
        const auto common = std::count_if(posters.begin(), posters.end(), [&threads = threads](pid_t one) {
            return threads.count(one) != 0;
        });
        if (posters.size() > 1 && static_cast<double>(common) >= kSame * static_cast<double>(posters.size()))
            semaphore_locks_.insert(address);
    }
}

void SampledRun::add_kernel_waits() {
    struct Kind {
        std::string call, file;
        long descriptor; // of what has no name of its own
        bool is_device;
        bool operator<(const Kind &other) const {
            return std::tie(call, file, descriptor, is_device) <
                   std::tie(other.call, other.file, other.descriptor, other.is_device);
        }
    };
    std::map<Kind, KernelWait> waits;
    std::map<Kind, std::set<pid_t>> threads;
    for (std::size_t i = 0; i < sampler_.samples.size(); i++) {
        const ProcSample &one = sample(i);
        if (one.place >= sampler_.kernel_places.size() || seen_[i].site == kNone)
            continue;
        const KernelPlace &place = sampler_.kernel_places[one.place];
        const bool is_named = !place.file.empty() && place.file[0] == '/';
        Kind kind{one.system_call >= 0 ? system_call_name(one.system_call) : "", place.file,
                  is_named ? -1 : place.descriptor, is_device_channel(place.channel)};
        KernelWait &wait = waits[kind];
        wait.samples++;
        threads[kind].insert(one.thread);
        if (wait.samples > 1)
            continue;
        wait.call = kind.call;
        wait.file = kind.file;
        wait.channel = place.channel;
        wait.is_device = kind.is_device;
        wait.stack = sites_[seen_[i].site].stack;
    }
    for (auto &[kind, wait] : waits) {
        wait.threads = static_cast<unsigned>(threads[kind].size());
        report_.kernel_waits.push_back(std::move(wait));
    }
    std::sort(report_.kernel_waits.begin(), report_.kernel_waits.end(),
              [](const KernelWait &a, const KernelWait &b) { return a.samples > b.samples; });
    if (!report_.kernel_waits.empty())
        add_once(report_.how_known,
                 {"Sleeps in the kernel: the function that sleeps (wchan) and the file of the call's "
                  "descriptor, as /proc shows them of threads that nothing interrupts."});
    report_.page_tables = sampler_.page_tables;
    report_.memory = sampler_.memory;
}

// Lock waits to the one list, the others to the other; the rows of the timeline follow.
void SampledRun::place_sites() {
    share_by_samples(sites_);
    std::vector<std::size_t> place(sites_.size(), kNone);
    for (std::size_t i = 0; i < sites_.size(); i++) {
        const bool is_lock = sites_[i].doing == Doing::kLockWait;
        if (is_lock)
            place[i] = report_.waits.size();
        (is_lock ? report_.waits : report_.others).push_back(std::move(sites_[i]));
    }
    const std::vector<std::size_t> moved = sort_sites(report_.waits, &Site::share);
    sort_sites(report_.others, &Site::seconds);
    for (Thread &thread : report_.threads)
        for (Thread::Span &span : thread.spans)
            if (span.site != kNone)
                span.site = moved[place[span.site]];
    for (Stuck &stuck : report_.deadlock.threads)
        if (stuck.site != kNone)
            stuck.site = moved[place[stuck.site]];
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
    places_.say_missing(report_.warnings);
    if (sampler_.samples.empty())
        add_once(report_.warnings,
                 {sampler_.is_attached ? "no thread of the process could be sampled"
                                       : "the program ended before its threads could be sampled"});
    if (sampler_.threads.size() > kThreadsMost)
        add_once(report_.warnings, {"the timeline has the first " +
                                    counted(static_cast<double>(kThreadsMost), "thread") + " only"});
}

void SampledRun::analyse() {
    seen_.reserve(sampler_.samples.size());
    find_semaphore_locks();
    see_all();
    const std::vector<Samples> samples = by_thread();
    std::set<std::uint64_t> joined;
    for (std::size_t i = 0; i < samples.size(); i++) {
        if (samples[i].empty())
            continue;
        add_times(sampler_.threads[i], samples[i]);
        add_row(sampler_.threads[i], samples[i]);
        add_lock_times(sampler_.threads[i], samples[i]);
        for (const std::size_t index : samples[i])
            if (seen_[index].doing == Doing::kJoinWait)
                joined.insert(sample(index).arguments[2]);
    }
    std::map<std::size_t, double> everywhere = asleep_;
    if (everywhere.empty())
        report_.doing[static_cast<int>(Doing::kKernel)] += unseen_;
    else
        share_out(unseen_, everywhere);
    for (const auto &[site, seconds] : asleep_) {
        sites_[site].seconds = seconds;
        report_.doing[static_cast<int>(sites_[site].doing)] += seconds;
    }
    if (!report_.threads_counted)
        report_.threads_joined = joined.size();
    const std::vector<Life> all = lives(samples);
    add_holders(all, sites_, report_.locks);
    report_.deadlock = find_deadlock(all, sampler_.are_all_known);
    finish_locks();
    add_kernel_waits();
    place_sites();
    summarise();
}

} // namespace

void add_samples(Report &report, const Sampler &sampler, double wall) {
    SampledRun(report, sampler, wall).analyse();
}

} // namespace thrum::stat
