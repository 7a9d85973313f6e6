// SPDX-License-Identifier: Apache-2.0
//
// The rule of work that the program's child processes do.
#include "stat/rules/rule.hpp"

#include <algorithm>

#include "stat/facts.hpp"
#include "stat/rules/findings.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

// One process may wait for another's input, and be in the way of no work.
bool accuses(const Finding &finding) {
    return finding.rule != "scales" && finding.rule != "inconclusive" && finding.rule != "io-bound";
}

std::string process_name(const Report &child) {
    return "process " + std::to_string(child.process) + " (" + child.command.front() + ")";
}

// The first that is found in the one that used the most CPU time, of those in which something is. `part`: of the CPU time of the
// busiest; what is found in one that used less says nothing about the work.
Findings of_a_child(const Facts &facts, double part, bool (*is_wanted)(const Finding &)) {
    for (const Report &child : facts.report.children)
        if (!child.findings.empty() && is_wanted(child.findings.front()) &&
            child.own_cpu >= part * facts.report.children.front().own_cpu) {
            Finding found = child.findings.front();
            found.cause = "In " + process_name(child) + ": " + found.cause;
            found.evidence.insert(found.evidence.begin(), "this is of " + process_name(child) +
                                                              " alone, sampled for " +
                                                              duration(child.sampled_wall));
            return {found};
        }
    return {};
}

std::string look_closer(const Report &report) {
    if (report.children.empty())
        return "Examine one of them: thrum stat -p PID, or run that program under thrum stat.";
    return "See what " + process_name(report.children.front()) +
           " did, below; to compare numbers of threads, run that program under thrum stat --sweep.";
}

constexpr double kAsBusy = 0.5;   // of the busiest process's CPU time: did as much of the work
constexpr double kMostWork = 0.5; // of CPU time, in processes that the program started

} // namespace

// What its own threads wait for, most likely for the others, says nothing of the work. Wrong if the CPU time is no work, as of
// processes that only start and end: it says where the work is, and accuses nothing.
Findings children(const Facts &facts) {
    constexpr std::size_t kTold = 4;
    const Report &report = facts.report;
    if (facts.children_share < kMostWork) // what is stuck does no work
        return of_a_child(facts, 0, [](const Finding &finding) { return finding.rule == "deadlock"; });
    if (!nested(facts).empty()) // which says so as well
        return {};
    const std::size_t seen = report.processes.empty() ? 0 : report.processes.size() - 1;
    Finding found =
        finding("children",
                "The work is in processes that the program started: " + percent(facts.children_share) +
                    " of CPU time",
                look_closer(report), Confidence::kHigh);
    found.evidence.push_back(duration(report.children_cpu) + " of CPU time in processes that it started, " +
                             duration(report.own_cpu) + " in its own");
    for (std::size_t i = 1; i <= std::min(kTold, seen); i++) {
        const Process &process = report.processes[i];
        found.evidence.push_back("process " + std::to_string(process.id) + " (" + process.name +
                                 "): " + duration(process.cpu) + " of CPU time, " +
                                 counted(process.threads, "thread"));
    }
    if (seen > kTold)
        found.evidence.push_back("and " + counted(static_cast<double>(seen - kTold), "process", "processes") +
                                 " more");
    Findings all = of_a_child(facts, kAsBusy, accuses);
    all.insert(all.begin(), found);
    return all;
}

} // namespace thrum::stat
