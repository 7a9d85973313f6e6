// SPDX-License-Identifier: Apache-2.0
//
// The rule of threads that are created and end all the time.
#include "stat/rules/rule.hpp"

#include <optional>

#include "stat/facts.hpp"
#include "stat/origins.hpp"
#include "stat/rules/findings.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

struct Churn {
    double life = 0;         // of half of them, at most
    bool is_average = false; // of all of them instead
    bool is_churn = false;
};

constexpr std::size_t kChurnThreads = 20;

// On average, by how many there were at a time (Little's law); 0: not known. Most of those that live for less than a look
// are not seen, but where the kernel tells of each they are counted.
double mean_life(const Report &report) {
    const auto created = static_cast<double>(report.threads_created);
    if (report.rate <= 0 || report.samples == 0 || report.threads_created < kChurnThreads * 5)
        return 0;
    return static_cast<double>(report.samples) / report.rate / created;
}

// Those that are all there at one time, however late that is, are not made and ended all the time.
bool are_together(const Report &report) {
    return !report.points.empty() && report.threads_created < 2 * report.points.back().most_threads;
}

constexpr double kChurnRate = 200;  // threads a second, as seen
constexpr double kChurnLife = 0.05; // seconds that most of them lived

Churn churn_of(const Report &report) {
    if (are_together(report))
        return {};
    std::vector<double> lives;
    for (const Thread &thread : report.threads)
        lives.push_back(thread.end - thread.begin);
    const bool seen = lives.size() >= kChurnThreads;
    const double mean = mean_life(report);
    if (!seen && mean <= 0)
        return {};
    const auto created = static_cast<double>(report.threads_created);
    const double rate = report.sampled_wall > 0 ? created / report.sampled_wall : 0;
    const bool many = rate >= kChurnRate || lives.size() >= kChurnThreads * 5;
    // Threads that live long are seen more easily.
    const bool is_average = mean > 0 && (!seen || (report.creations_counted && mean < median(lives)));
    const double life = is_average ? mean : median(lives);
    return {life, is_average, life < kChurnLife && many};
}

constexpr double kMaking = 20e-6; // seconds of CPU time that making and ending one takes, about

// Of CPU time; nothing where that is not known.
std::optional<double> share_of_making(const Report &report) {
    const double cpu = report.points.empty() ? 0 : report.points.back().cpu();
    if (cpu <= 0)
        return std::nullopt;
    return static_cast<double>(report.threads_created) * kMaking / cpu;
}

} // namespace

// Wrong if threads that end are few among those that stay, or cost nothing beside the work: of a program that scales, and of
// one run, which shows no loss, it is told only where they cost much. Of a short run they are much whatever they are made for.
Findings thread_churn(const Facts &facts) {
    const Report &report = facts.report;
    const Churn churn = churn_of(report);
    if (!churn.is_churn || (!facts.is_compared() && (facts.is_short || !is_dear_churn(facts))))
        return {};
    const auto created = static_cast<double>(report.threads_created);
    const Origins origins = origins_of(report);
    const Place &maker = origins.made;
    Finding found =
        finding("thread-churn",
                "Threads are created and end all the time" + (maker.is_known() ? at_place(maker) : ""),
                "Keep a pool of threads; `thrum compare` measures what reuse gains without a change.",
                report.creations_counted && facts.is_compared() ? Confidence::kHigh : Confidence::kMedium,
                origins.best());
    found.explains = std::min(1.0, share_of_making(report).value_or(1));
    const double look = report.rate > 0 ? 1 / report.rate : 0;
    found.evidence.push_back(
        counted(created, "thread") + (report.creations_counted ? " created" : " seen") + " in " +
        duration(report.sampled_wall) +
        (churn.is_average ? "; they lived for " + duration(churn.life) + " on average"
                          : "; half of those seen lived less than " + duration(std::max(churn.life, look))));
    if (facts.kernel_share)
        found.evidence.push_back(percent(*facts.kernel_share) + " of CPU time in the kernel");
    add_place_evidence("they are created", maker, found);
    add_place_evidence("they are joined", origins.joined, found);
    add_place_evidence("they begin", origins.begun, found);
    return {found};
}

namespace {

constexpr double kDearChurn = 0.04; // of CPU time, by that: worth saving

} // namespace

// What threads that are made all the time cost they cost one thread as well, so that a program may scale for all that.
bool is_dear_churn(const Facts &facts) {
    return share_of_making(facts.report).value_or(0) >= kDearChurn;
}

bool is_churning(const Report &report) {
    return churn_of(report).is_churn;
}

} // namespace thrum::stat
