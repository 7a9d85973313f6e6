// SPDX-License-Identifier: Apache-2.0
//
// The rules of memory that threads write to together.
#include "stat/rules/rule.hpp"

#include <algorithm>
#include <string>

#include "stat/facts.hpp"
#include "stat/rules/findings.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

const Burner *hottest_own(const Facts &facts) {
    const auto found = std::find_if(facts.burners.begin(), facts.burners.end(),
                                    [](const Burner &burner) { return !burner.place.function.empty(); });
    return found == facts.burners.end() ? nullptr : &*found;
}

constexpr double kShared = 1.4; // CPU time of threads that have a core each, to that of the fewest

// Beside other programs CPU time is dearer, too, and threads that have a core each are few and far between: then it has to be
// more than any machine makes up for.
bool has_dear_memory(const Facts &facts) {
    if (facts.is_busy && facts.report.outcome != Outcome::kSlower)
        return false;
    return facts.core_inflation >= kShared && facts.lock_share < kLockShareAlone &&
           facts.kernel_share.value_or(0) <= 1 - kUserBound;
}

void add_memory_evidence(const Facts &facts, Finding &found) {
    found.evidence.push_back("with a core for each thread, the same work takes " +
                             fixed(facts.core_inflation, 1) +
                             "x the CPU time, outside the kernel and without waiting");
    if (const Burner *burner = hottest_own(facts))
        found.evidence.push_back(percent(burner->share) + " of CPU time" + at_place(burner->place));
    if (facts.slowed > 0)
        found.evidence.push_back("by the processor's counters " + fixed(facts.slowed, 1) +
                                 "x the cycles per instruction, and " + fixed(facts.misses_grown, 1) +
                                 "x the cache misses");
}

constexpr double kCoherency = 0.01; // of the Universal Scalability Law

} // namespace

// Wrong if something else grows with the square of the threads, as does waiting for locks, which is therefore excluded; or if
// few points of the sweep agree by chance: it takes four, and is never of high confidence.
Findings coherency(const Facts &facts) {
    const std::optional<Scaling> &scaling = facts.report.scaling;
    if (!scaling || scaling->coherency < kCoherency || facts.is_busy || facts.is_short ||
        facts.lock_share >= kLockShareAlone)
        return {};
    const Burner *burner = hottest_own(facts);
    Finding found =
        finding("coherency", "Threads write to the same memory all the time",
                "Write to shared variables less often: per-thread copies that are merged, or batches.",
                facts.core_inflation >= kShared ? Confidence::kMedium : Confidence::kLow,
                burner == nullptr ? Place{} : burner->place);
    found.evidence.push_back(facts.report.scaling_text);
    if (facts.core_inflation > 0)
        add_memory_evidence(facts, found);
    return {found};
}

namespace {

constexpr double kKnown = 0.3; // of CPU time: the address of the access
constexpr double kMissed = 2;  // cache misses for each instruction, to those with the fewest threads

} // namespace

// Wrong if memory is dear for another reason: too little bandwidth, or hyper-threads that look like cores. Where the accesses are
// not known nothing tells these apart, so that it is a hint, and never of high confidence.
Findings guess_false_sharing(const Facts &facts) {
    // Where it is known what was accessed, and no line was shared, memory is dear for another reason.
    if (!has_dear_memory(facts) || (facts.report.accesses_known >= kKnown && facts.report.shared.empty()))
        return {};
    const Burner *burner = hottest_own(facts);
    const bool is_counted = facts.misses_grown >= kMissed && facts.slowed >= kShared;
    Finding found = finding(
        "false-sharing",
        "Threads write to the same cache lines" + (burner == nullptr ? "" : at_place(burner->place)) +
            (is_counted ? "" : " (a hint)"),
        "Give each thread's data its own cache lines (alignas(64)), and each thread its own copy of shared "
        "counters.",
        is_counted ? Confidence::kMedium : Confidence::kLow, burner == nullptr ? Place{} : burner->place);
    add_memory_evidence(facts, found);
    found.evidence.push_back(
        std::string("not told apart") + (is_counted ? "" : " without hardware counters") +
        ": variables side by side in one cache line, a variable that all write, too little memory bandwidth, "
        "and CPUs that share a core without the virtual machine saying so");
    return {found};
}

} // namespace thrum::stat
