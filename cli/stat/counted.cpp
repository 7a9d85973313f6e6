// SPDX-License-Identifier: Apache-2.0
//
// What a report says of a CPU profile and of exact waits (add_profile, add_exact of layers.hpp).
#include <algorithm>
#include <iterator>
#include <map>

#include "stat/python.hpp"
#include "stat/sites.hpp"
#include "stat/waits.hpp"

namespace thrum::stat {

namespace {

bool is_same(const Lock &a, const Lock &b) {
    const bool is_static = a.kind == LockKind::kLibrary || a.kind == LockKind::kGlobal;
    return a.kind == b.kind &&
           (is_static ? a.module == b.module && a.symbol == b.symbol && a.offset == b.offset
                      : a.address == b.address);
}

// Adds what was counted to what was sampled. A site or lock that was counted has the measured time; one that was sampled
// only keeps what it has.
class CountedWaits {
  public:
    explicit CountedWaits(Report &report) : report_(report) {
        for (std::vector<Site> *sites : {&report.waits, &report.others})
            for (std::size_t i = 0; i < sites->size(); i++)
                known_[{(*sites)[i].doing, key_of((*sites)[i].stack, true)}] = i;
    }
    void add(const ExactWait &wait, Places &places, std::size_t era);
    void finish();

  private:
    std::size_t find_lock(const Lock &lock);

    Report &report_;
    std::map<std::pair<Doing, std::string>, std::size_t> known_; // index into waits or others
};

std::size_t CountedWaits::find_lock(const Lock &lock) {
    auto &locks = report_.locks;
    const auto known =
        std::find_if(locks.begin(), locks.end(), [&](const LockUse &use) { return is_same(use.lock, lock); });
    if (known != locks.end())
        return static_cast<std::size_t>(known - locks.begin());
    locks.emplace_back();
    locks.back().lock = lock;
    return locks.size() - 1;
}

void CountedWaits::add(const ExactWait &wait, Places &places, std::size_t era) {
    std::vector<Frame> stack = places.frames(wait.stack, era);
    const Lock lock = places.lock(wait.address, era);
    const bool is_python = is_python_lock(stack, lock);
    const Doing unnamed = lock.kind == LockKind::kLibrary ? Doing::kLockWait : Doing::kIdleWait;
    const Doing doing = is_python ? Doing::kLockWait : doing_by_names(stack).value_or(unnamed);
    auto &sites = doing == Doing::kLockWait ? report_.waits : report_.others;
    const std::size_t index = known_.try_emplace({doing, key_of(stack, true)}, sites.size()).first->second;
    if (index == sites.size()) {
        sites.emplace_back();
        sites.back().stack = std::move(stack);
        sites.back().doing = doing;
    }
    Site &site = sites[index];
    if (!site.calls)
        site.seconds = 0;
    site.calls = site.calls.value_or(0) + wait.waits;
    site.seconds += wait.seconds;
    if (doing != Doing::kLockWait)
        return;
    site.lock = find_lock(is_python ? as_python_lock(lock) : lock);
    LockUse &use = report_.locks[site.lock];
    if (!use.waits)
        use.seconds = 0;
    use.waits = use.waits.value_or(0) + wait.waits;
    use.seconds += wait.seconds;
}

void CountedWaits::finish() {
    double all = 0;
    for (const Site &site : report_.waits)
        all += site.seconds;
    for (Site &site : report_.waits)
        site.share = all > 0 ? site.seconds / all : 0;
    for (LockUse &use : report_.locks)
        use.share = all > 0 ? use.seconds / all : 0;
    sort_locks(report_.locks, report_.waits);
    const std::vector<std::size_t> moved = sort_sites(report_.waits, &Site::share);
    sort_sites(report_.others, &Site::seconds);
    for (Thread &thread : report_.threads)
        for (Thread::Span &span : thread.spans)
            if (span.site != kNone)
                span.site = moved[span.site];
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
        all += sample.weight;
    }
    for (Site &site : burns)
        site.share = all > 0 ? site.seconds / all : 0;
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
    report.exact = true;
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
    for (const ExactWait &wait : exact.waits)
        counted.add(wait, places, exact.maps.empty() ? 0 : exact.maps.size() - 1);
    counted.finish();
    add_once(report.how_known, exact.how_known);
    add_once(report.warnings, exact.warnings);
    places.say_missing(report.warnings);
}

} // namespace thrum::stat
