// SPDX-License-Identifier: Apache-2.0
//
// The rules of memory that several threads write to, by what their samples accessed (accesses.cpp): one variable that all
// write, which a lock of the program's own may be, or several variables in one cache line.
#include "stat/rules/rule.hpp"

#include <algorithm>

#include "stat/facts.hpp"
#include "stat/rules/findings.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

constexpr double kShared = 0.15;        // of CPU time, at one cache line: less explains no loss
constexpr double kDear = 1.3;           // CPU time with the most threads, to that with the fewest
constexpr double kSwaps = 0.2;          // of the accesses: a lock is taken, or a comparison tried again
constexpr double kReleases = 0.01;      // plain stores between the exchanges: the lock is given back
constexpr std::uint64_t kSureFrom = 30; // samples

// A lock's own word is the lock's matter: its rules tell, and how many wait for it.
bool is_of_a_lock(const Sharing &shared) {
    const ListedLock *listed = lock_table().find(shared.stack);
    return is_in_lock_call(shared.stack) || (listed != nullptr && listed->is_lock());
}

// The line that most CPU time is lost at, if that is enough to explain what is lost. Wrong if the access is dear for another
// reason: the machine is busy, so that a thread is interrupted there by chance, or the memory is far away. Hence the
// comparison, in which the same work takes more CPU time with more threads; without one, the line must have most of it.
const Sharing *worst(const Facts &facts, bool is_one) {
    const bool is_dear = facts.is_compared() ? facts.inflation >= kDear : !facts.is_busy;
    const double least = facts.is_compared() ? kShared : 2 * kShared;
    for (const Sharing &shared : facts.report.shared)
        if (is_dear && shared.share >= least && shared.is_one == is_one && !is_of_a_lock(shared))
            return &shared;
    return nullptr;
}

const ListedLock *counter_of(const Sharing &shared) {
    const ListedLock *listed = lock_table().find(shared.stack);
    return listed != nullptr && listed->kind == ListedLock::kCount ? listed : nullptr;
}

bool has_allocation(const Lock &part) {
    return part.symbol.empty() && place_of(part.allocation).is_known();
}

// By symbol; memory of the heap by the function that has allocated it.
std::string names_of(const Sharing &shared) {
    std::string names, allocators;
    const auto add = [](std::string &to, const std::string &name, const char *between) {
        if (!name.empty() && to.find(name) == std::string::npos)
            to += (to.empty() ? "" : between) + name;
    };
    for (const Lock &part : shared.parts) {
        const Place place = place_of(part.allocation);
        add(names, part.symbol, ", ");
        if (has_allocation(part))
            add(allocators, place.function.empty() ? place.code : place.function + "()", " and ");
    }
    if (!names.empty())
        return ": " + names;
    return allocators.empty() ? "" : ", which " + allocators + " allocated,";
}

// Where its parts were allocated, and where it is accessed unless all of that is in the place to blame.
void add_places_of(const Sharing &shared, Finding &found) {
    std::vector<std::string> told;
    for (const Lock &part : shared.parts) {
        Finding one;
        if (has_allocation(part))
            add_place_evidence("it was allocated", place_of(part.allocation), one);
        for (const std::string &line : one.evidence)
            if (std::find(told.begin(), told.end(), line) == told.end())
                told.push_back(line);
    }
    std::string accesses;
    for (const std::vector<Frame> &stack : shared.places)
        if (const Place place = place_of(stack); place.is_known())
            accesses += (accesses.empty() ? "" : ", ") +
                        (place.function.empty() ? place.code : place.function + "()" + source_of(place));
    if (shared.places.size() > 1 && !accesses.empty())
        told.push_back("accessed in " + accesses);
    found.evidence.insert(found.evidence.end(), told.begin(), told.end());
}

void add_evidence(const Facts &facts, const Sharing &shared, Finding &found) {
    found.explains = shared.share;
    found.evidence.push_back(percent(shared.share) + " of CPU time at one cache line, which " +
                             counted(shared.threads, "thread") +
                             " accessed: " + counted(static_cast<double>(shared.samples), "sample") +
                             " with the address of the access");
    if (!shared.parts.empty() && !shared.parts.front().text.empty())
        found.evidence.push_back(std::string(shared.is_one ? "it is " : "first ") +
                                 shared.parts.front().text);
    add_places_of(shared, found);
    if (facts.inflation > 0)
        found.evidence.push_back(cpu_evidence(facts));
}

Confidence confidence_of(const Facts &facts, const Sharing &shared) {
    const bool is_sure = facts.is_compared() && !facts.is_busy && shared.samples >= kSureFrom;
    return is_sure ? Confidence::kHigh : shared.samples >= kSureFrom ? Confidence::kMedium : Confidence::kLow;
}

constexpr std::uint64_t kSleptAt = 5; // samples asleep: of fewer, a thread slept there by chance

// Samples asleep by std::atomic::wait() or a futex, in the function that exchanges the variable. At which word they slept they do
// not tell, and a queue without locks whose readers sleep looks the same: so the function has to be called as a lock's is.
std::uint64_t sleeps_at(const Facts &facts, const Place &place) {
    constexpr const char *kSleeps[] = {"std::__atomic_wait_address", "std::__detail::__platform_wait",
                                       "syscall"};
    const auto sleeps = [&](const Site &site) {
        return site.doing == Doing::kIdleWait && place_of(site.stack).function == place.function &&
               std::any_of(site.stack.begin(), site.stack.end(), [&](const Frame &frame) {
                   return !frame.is_user && begins_with_any(frame.function, kSleeps);
               });
    };
    std::uint64_t samples = 0;
    for (const Site &site : facts.report.others)
        samples += has_lock_in_its_name(place.function) && sleeps(site) ? site.samples : 0;
    return samples;
}

bool is_nameless(const Sharing &shared) {
    return !shared.parts.empty() && shared.parts.front().symbol.empty() &&
           (shared.parts.front().kind == LockKind::kHeap || shared.parts.front().kind == LockKind::kMapping);
}

} // namespace

bool is_sharing_nameless(const Report &report) {
    return std::any_of(report.shared.begin(), report.shared.end(), [](const Sharing &shared) {
        return shared.share >= kShared && is_nameless(shared) && !is_of_a_lock(shared);
    });
}

void name_shared(Report &report, const Report &noted) {
    for (Sharing &shared : report.shared) {
        const auto same =
            std::find_if(noted.shared.begin(), noted.shared.end(), [&shared](const Sharing &other) {
                const Place place = place_of(shared.stack), others = place_of(other.stack);
                return other.is_one == shared.is_one && place.function == others.function &&
                       place.body == others.body && !other.parts.empty() &&
                       has_allocation(other.parts.front());
            });
        if (is_nameless(shared) && same != noted.shared.end())
            shared.parts = same->parts;
    }
}

Findings true_sharing(const Facts &facts) {
    const Sharing *shared = worst(facts, true);
    if (shared == nullptr || facts.threads < 2)
        return {};
    const Place place = place_of(shared->stack);
    const ListedLock *counter = counter_of(*shared);
    const bool is_fought_for = shared->swaps >= kSwaps && counter == nullptr;
    const std::uint64_t slept = is_fought_for ? sleeps_at(facts, place) : 0;
    const bool is_slept = slept >= kSleptAt;
    const bool is_lock =
        is_fought_for && (shared->stores >= kReleases || has_lock_in_its_name(place.function));
    const std::string what = counter != nullptr ? "All threads write one counter: " + counter->name
                             : is_slept         ? "Hot lock of the program's own" + names_of(*shared)
                             : is_lock          ? "Hot spin lock" + names_of(*shared)
                             : is_fought_for
                                 ? "Threads try again and again to exchange one variable" + names_of(*shared)
                                 : "All threads write one variable" + names_of(*shared);
    const std::string fix =
        counter != nullptr ? counter->fix
        : is_slept ? "Collect per thread and merge occasionally; or split the data, and the lock with it."
        : is_lock  ? "Use a mutex, whose waiters sleep; hold it for less, or split the data and the lock."
        : is_fought_for ? "Give each thread a variable or queue of its own; or back off after a failed try."
                        : "Count per thread and add up at the end, or write it once for many steps.";
    Finding found =
        finding("true-sharing", what + at_place(place), fix, confidence_of(facts, *shared), place);
    add_evidence(facts, *shared, found);
    if (is_slept)
        found.evidence.push_back("threads sleep in " + place.function +
                                 "(): " + counted(static_cast<double>(slept), "sample"));
    return {found};
}

Findings false_sharing(const Facts &facts) {
    const Sharing *shared = worst(facts, false);
    if (shared == nullptr || facts.threads < 2)
        return guess_false_sharing(facts);
    const Place place = place_of(shared->stack);
    Finding found = finding("false-sharing",
                            "Threads write to different variables in one cache line" + names_of(*shared) +
                                at_place(place),
                            "Give each thread's data its own cache lines (alignas(64)), and each thread its "
                            "own copy of shared counters.",
                            confidence_of(facts, *shared), place);
    add_evidence(facts, *shared, found);
    return {found};
}

} // namespace thrum::stat
