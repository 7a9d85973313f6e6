// SPDX-License-Identifier: Apache-2.0
//
// What a report says of a CPU profile and of exact waits (add_profile, add_exact of layers.hpp).
#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

#include "stat/python.hpp"
#include "stat/sites.hpp"
#include "stat/waits.hpp"

namespace thrum::stat {

namespace {

bool is_static(const Lock &lock) {
    return lock.kind == LockKind::kLibrary || lock.kind == LockKind::kGlobal;
}

bool is_same(const Lock &a, const Lock &b) {
    return a.kind == b.kind &&
           (is_static(a) ? a.module == b.module && a.symbol == b.symbol && a.offset == b.offset
                         : a.address == b.address && (a.address != 0 || a.text == b.text));
}

// As many frames as libthrum-stat.so tells places apart by when its table is full (COARSE_DEPTH in stat/waits.c).
std::string inner_key_of(const std::vector<Frame> &stack) {
    constexpr std::size_t kInnermost = 4;
    const std::size_t frames = std::min(stack.size(), kInnermost);
    return key_of({stack.begin(), stack.begin() + static_cast<std::ptrdiff_t>(frames)}, true);
}

// Adds what was counted to what was sampled. A site or lock that was counted has the measured time; one that was sampled
// only keeps what it has. Waits that were counted together, for several locks and of stacks that begin alike, have the
// measured time of all of these: what was sampled there, and is not counted by itself, is in it. They come last.
class CountedWaits {
  public:
    explicit CountedWaits(Report &report) : report_(report) {
        for (std::vector<Site> *sites : {&report.waits, &report.others})
            for (std::size_t i = 0; i < sites->size(); i++)
                known_[{(*sites)[i].doing, key_of((*sites)[i].stack, true), (*sites)[i].lock}] = i;
        for (std::size_t i = 0; i < report_.waits.size(); i++) {
            sampled_[key_of(report_.waits[i].stack, true)].push_back(report_.waits[i].lock);
            alike_[inner_key_of(report_.waits[i].stack)].push_back(i);
        }
    }
    void add(const ExactWait &wait, Places &places, std::size_t era);
    void finish();

  private:
    std::size_t find_lock(const Lock &lock, const std::string &stack);
    std::size_t find_site(std::vector<Site> &sites, Doing doing, std::vector<Frame> &&stack,
                          std::size_t lock);
    void take_in(std::size_t into, const std::string &inner_key);
    std::vector<std::size_t> without_taken_in();

    Report &report_;
    // By what is done, the stack and the lock, which may be one of many: index into waits or others.
    std::map<std::tuple<Doing, std::string, std::size_t>, std::size_t> known_;
    std::map<std::string, std::vector<std::size_t>> sampled_; // by stack: locks, those most waited for first
    std::map<std::string, std::vector<std::size_t>>
        alike_;                                   // by innermost frames: index into waits, if sampled
    std::map<std::size_t, std::size_t> taken_in_; // of waits that were sampled: by which of them
};

// Locks in memory that was allocated lie elsewhere in each run. The one that was waited for most in a stack is taken for
// the one that was so in the sampled run, the next one for the next.
std::size_t CountedWaits::find_lock(const Lock &lock, const std::string &stack) {
    auto &locks = report_.locks;
    const auto known =
        std::find_if(locks.begin(), locks.end(), [&](const LockUse &use) { return is_same(use.lock, lock); });
    if (known != locks.end())
        return static_cast<std::size_t>(known - locks.begin());
    if (!is_static(lock) && lock.address != 0)
        for (const std::size_t sampled : sampled_[stack])
            if (sampled < locks.size() && !locks[sampled].waits && locks[sampled].lock.kind == lock.kind) {
                locks[sampled].lock = lock;
                return sampled;
            }
    locks.emplace_back();
    locks.back().lock = lock;
    return locks.size() - 1;
}

std::size_t CountedWaits::find_site(std::vector<Site> &sites, Doing doing, std::vector<Frame> &&stack,
                                    std::size_t lock) {
    const std::string key = key_of(stack, true);
    const auto [at, is_new] = known_.try_emplace({doing, key, lock}, sites.size());
    if (!is_new)
        return at->second;
    const auto sampled = known_.find({doing, key, kNone}); // no lock was seen
    if (sampled != known_.end() && lock != kNone) {
        at->second = sampled->second;
        known_.erase(sampled);
    } else {
        sites.emplace_back();
        sites.back().stack = std::move(stack);
        sites.back().doing = doing;
    }
    sites[at->second].lock = lock;
    return at->second;
}

// The samples go with the time, from lock to lock as well.
void CountedWaits::take_in(std::size_t into, const std::string &inner_key) {
    const auto alike = alike_.find(inner_key);
    if (alike == alike_.end())
        return;
    Site &counted = report_.waits[into];
    for (const std::size_t index : alike->second) {
        Site &sampled = report_.waits[index];
        if (index == into || sampled.calls || !taken_in_.try_emplace(index, into).second)
            continue;
        counted.samples += sampled.samples;
        report_.locks[counted.lock].samples += sampled.samples;
        if (sampled.lock == kNone)
            continue;
        LockUse &use = report_.locks[sampled.lock];
        use.samples -= std::min(use.samples, sampled.samples);
        if (!use.waits)
            use.seconds = std::max(0.0, use.seconds - sampled.seconds);
    }
}

void CountedWaits::add(const ExactWait &wait, Places &places, std::size_t era) {
    std::vector<Frame> stack = places.frames(wait.stack, era);
    const bool is_several = wait.address == 0;
    const std::string inner_key = is_several ? inner_key_of(stack) : "";
    Lock lock = places.lock(wait.address, era);
    if (is_several)
        lock.text = "several locks";
    const bool is_python = is_python_lock(stack, lock);
    const bool is_lock = lock.kind == LockKind::kLibrary || (is_several && alike_.count(inner_key) != 0);
    const Doing unnamed = is_lock ? Doing::kLockWait : Doing::kIdleWait;
    const Doing doing = is_python ? Doing::kLockWait : doing_by_names(stack).value_or(unnamed);
    auto &sites = doing == Doing::kLockWait ? report_.waits : report_.others;
    std::size_t used = kNone;
    if (doing == Doing::kLockWait)
        used = find_lock(is_python ? as_python_lock(lock) : as_parked(lock, stack), key_of(stack, true));
    const std::size_t at = find_site(sites, doing, std::move(stack), used);
    Site &site = sites[at];
    if (!site.calls)
        site.seconds = 0;
    site.calls = site.calls.value_or(0) + wait.waits;
    site.seconds += wait.seconds;
    if (doing != Doing::kLockWait)
        return;
    LockUse &use = report_.locks[used];
    if (!use.waits)
        use.seconds = 0;
    use.waits = use.waits.value_or(0) + wait.waits;
    use.seconds += wait.seconds;
    if (is_several)
        take_in(at, inner_key);
}

// Drops them. Where each site went to; of those, where that is which has their time.
std::vector<std::size_t> CountedWaits::without_taken_in() {
    std::vector<std::size_t> moved(report_.waits.size(), kNone);
    std::vector<Site> kept;
    for (std::size_t i = 0; i < report_.waits.size(); i++)
        if (taken_in_.count(i) == 0) {
            moved[i] = kept.size();
            kept.push_back(std::move(report_.waits[i]));
        }
    for (const auto &[index, into] : taken_in_)
        moved[index] = moved[into];
    report_.waits = std::move(kept);
    return moved;
}

void CountedWaits::finish() {
    double all = 0;
    const std::vector<std::size_t> place = without_taken_in();
    for (const Site &site : report_.waits)
        all += site.seconds;
    for (Site &site : report_.waits)
        site.share = all > 0 ? site.seconds / all : 0;
    for (LockUse &use : report_.locks)
        use.share = all > 0 ? use.seconds / all : 0;
    sort_locks(report_.locks, report_.waits);
    while (!taken_in_.empty() && !report_.locks.back().waits && report_.locks.back().samples == 0)
        report_.locks.pop_back(); // no site is left that is of it
    sort_waits(report_, place);
}

std::string futex_operation_name(unsigned operation) {
    static constexpr const char *kNames[] = {
        "WAIT",           "WAKE",      "FD",         "REQUEUE",     "CMP_REQUEUE", "WAKE_OP",
        "LOCK_PI",        "UNLOCK_PI", "TRYLOCK_PI", "WAIT_BITSET", "WAKE_BITSET", "WAIT_REQUEUE_PI",
        "CMP_REQUEUE_PI", "LOCK_PI2"};
    const bool is_known = operation < std::size(kNames);
    return is_known ? std::string("FUTEX_") + kNames[operation] : "operation " + std::to_string(operation);
}

} // namespace

void add_profile(std::vector<Site> &burns, const CpuProfile &profile) {
    const Observed &observed = profile.observed;
    Places places(observed.maps);
    std::map<std::string, std::size_t> known;
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> site_of; // by stack, and Python's
    double all = 0;
    for (const CpuSample &sample : profile.samples) {
        const auto [at, is_new] = site_of.try_emplace({sample.stack, sample.python}, kNone);
        if (is_new) {
            std::vector<Frame> stack =
                sample.stack < observed.stacks.size()
                    ? places.frames(observed.stacks[sample.stack], places.era_of(sample.at))
                    : Places::unknown();
            if (sample.python < observed.python.size())
                stack = with_python(std::move(stack), observed.python[sample.python]);
            at->second = known.try_emplace(key_of(stack, false), burns.size()).first->second;
            if (at->second == burns.size()) {
                burns.emplace_back();
                burns.back().stack = std::move(stack);
                burns.back().doing = Doing::kRunning;
            }
        }
        burns[at->second].samples++;
        burns[at->second].seconds += sample.weight;
        burns[at->second].kernel += sample.in_kernel ? sample.weight : 0;
        all += sample.weight;
    }
    for (Site &site : burns) {
        site.kernel = site.seconds > 0 ? site.kernel / site.seconds : 0;
        site.share = all > 0 ? site.seconds / all : 0;
    }
    sort_sites(burns, &Site::seconds);
}

void add_makers(Report &report, const std::vector<Maps> &maps, const std::vector<ThreadMaker> &makers) {
    Places places(maps);
    std::map<std::string, std::size_t> known;
    double all = 0;
    for (const ThreadMaker &maker : makers) {
        std::vector<Frame> stack = places.frames(maker.stack, maps.empty() ? 0 : maps.size() - 1);
        const std::size_t index = known.try_emplace(key_of(stack, true), report.makers.size()).first->second;
        if (index == report.makers.size()) {
            report.makers.emplace_back();
            report.makers.back().stack = std::move(stack);
            report.makers.back().doing = Doing::kRunning;
        }
        Site &site = report.makers[index];
        site.calls = site.calls.value_or(0) + maker.threads;
        all += static_cast<double>(maker.threads);
    }
    for (Site &site : report.makers)
        site.share = all > 0 ? static_cast<double>(*site.calls) / all : 0;
    sort_sites(report.makers, &Site::share);
    places.say_missing(report.warnings);
}

namespace {

void add_threads(Report &report, const ExactLayer &exact) {
    report.threads_counted = true;
    report.threads_created = exact.threads_created;
    report.creations_counted = true;
    report.threads_joined = exact.threads_joined;
    report.makers.clear(); // seen in the sampled run, perhaps
    add_makers(report, exact.maps, exact.makers);
}

// Where a trapped call was made, without libthrum-stat.so, which made it in a signal handler in its place.
std::vector<Frame> without_trap(std::vector<Frame> stack) {
    const auto back = std::find_if(stack.begin(), stack.end(), [](const Frame &frame) {
        return frame.function == "__restore_rt" || frame.function == "__kernel_rt_sigreturn";
    });
    const bool is_trapped = back != stack.begin() && back != stack.end() &&
                            (back - 1)->module.rfind("libthrum-stat", 0) == 0 && back + 1 != stack.end();
    if (is_trapped)
        stack.erase(stack.begin(), back + 1);
    return stack;
}

void add_blocked(Report &report, const ExactLayer &exact) {
    Places places(exact.blocked_maps);
    const std::size_t era = exact.blocked_maps.empty() ? 0 : exact.blocked_maps.size() - 1;
    std::map<std::string, std::size_t> known;
    double all = 0;
    for (const Blocked &blocked : exact.blocked) {
        std::vector<Frame> stack = without_surroundings(without_trap(places.frames(blocked.stack, era)));
        const std::size_t index = known.try_emplace(key_of(stack, true), report.blocked.size()).first->second;
        if (index == report.blocked.size()) {
            report.blocked.emplace_back();
            report.blocked.back().doing = doing_by_names(stack).value_or(Doing::kKernel);
            report.blocked.back().stack = std::move(stack);
        }
        Site &site = report.blocked[index];
        site.calls = site.calls.value_or(0) + blocked.times;
        site.seconds += blocked.seconds;
        all += blocked.seconds;
    }
    for (Site &site : report.blocked)
        site.share = all > 0 ? site.seconds / all : 0;
    sort_sites(report.blocked, &Site::seconds);
    report.switched = exact.switched;
}

} // namespace

void add_exact(Report &report, const ExactLayer &exact) {
    report.exact = exact.counts_waits;
    report.exact_estimated = exact.estimates_waits;
    if (exact.counts_threads)
        add_threads(report, exact);
    add_blocked(report, exact);
    for (const auto &[number, times] : exact.system_calls)
        report.system_calls.emplace_back(system_call_name(number), times);
    report.system_calls.insert(report.system_calls.end(), exact.other_calls.begin(), exact.other_calls.end());
    for (const auto &[operation, times] : exact.futex_calls)
        report.system_calls.emplace_back("futex " + futex_operation_name(operation), times);
    std::stable_sort(report.system_calls.begin(), report.system_calls.end(),
                     [](const auto &a, const auto &b) { return a.second > b.second; });
    Places places(exact.maps);
    CountedWaits counted(report);
    std::vector<const ExactWait *> longest_first;
    for (const ExactWait &wait : exact.waits)
        longest_first.push_back(&wait);
    std::stable_sort(longest_first.begin(), longest_first.end(), [](const ExactWait *a, const ExactWait *b) {
        const bool is_several_a = a->address == 0, is_several_b = b->address == 0;
        return std::tie(is_several_b, a->seconds) > std::tie(is_several_a, b->seconds);
    });
    for (const ExactWait *wait : longest_first)
        counted.add(*wait, places, exact.maps.empty() ? 0 : exact.maps.size() - 1);
    counted.finish();
    add_once(report.how_known, exact.how_known);
    add_once(report.warnings, exact.warnings);
    places.say_missing(report.warnings);
}

} // namespace thrum::stat
