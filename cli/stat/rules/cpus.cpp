// SPDX-License-Identifier: Apache-2.0
//
// The rule of threads that may not run on the CPUs that there are for them.
#include "stat/rules/rule.hpp"

#include <algorithm>
#include <set>

#include "stat/facts.hpp"
#include "stat/rules/findings.hpp"
#include "stat/working.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

std::string list_of(const std::set<unsigned long> &cpus) {
    std::string text;
    for (auto at = cpus.begin(); at != cpus.end();) {
        const unsigned long first = *at;
        unsigned long last = first;
        while (++at != cpus.end() && *at == last + 1)
            last = *at;
        text += (text.empty() ? "" : ",") + std::to_string(first) +
                (last > first ? "-" + std::to_string(last) : "");
    }
    return text;
}

constexpr double kSlack = 1.05; // CPUs used, to those that the threads may use: clocks differ

} // namespace

// Wrong if other threads, too short-lived to be seen, use the other CPUs: then more CPUs are used than these may use. With
// --by-affinity the program is meant to run on so many CPUs as it is asked for threads.
Findings affinity(const Facts &facts) {
    const Report &report = facts.report;
    const Affinity working = affinity_of(report);
    const auto cpus = static_cast<double>(working.cpus.size());
    const double wanted = std::min({static_cast<double>(working.threads), facts.threads,
                                    static_cast<double>(report.machine.processors)});
    if (!working.is_known || cpus < 1 || cpus >= wanted || facts.parallelism > kSlack * cpus)
        return {};
    if (share_without_cpu(report) < kWithoutCpu)
        return {};
    const std::string list = (cpus > 1 ? "CPUs " : "CPU ") + list_of(working.cpus);
    Finding found = finding("affinity",
                            counted(working.threads, "thread") + " may run on " + list + " only, of " +
                                counted(report.machine.processors, "CPU"),
                            "Let them run on all CPUs: find what sets their affinity (sched_setaffinity(), "
                            "pthread_setaffinity_np(), taskset, a library that pins threads).",
                            Confidence::kHigh);
    found.explains = 1 - cpus / wanted;
    found.evidence.push_back("affinity of the threads that do the work: " + list + "; " +
                             fixed(facts.parallelism, 2) + " CPUs used");
    found.evidence.push_back(without_cpu_evidence(report));
    return {found};
}

namespace {

constexpr double kStopped =
    0.1; // of the time of the sampled run, in which a CPU's worth of threads was stopped

} // namespace

// Wrong if other programs of the same group used up what it allows: then the threads wanted less than that.
Findings quota(const Facts &facts) {
    const Report &report = facts.report;
    if (report.quota <= 0 || report.throttled < kStopped * report.sampled_wall || report.sampled_wall <= 0 ||
        facts.wanting <= report.quota)
        return {};
    Finding found = finding(
        "quota",
        "The control group allows " + fixed(report.quota, 2) + " CPUs: threads were stopped for " +
            duration(report.throttled) + " in all",
        "Raise the quota (cpu.max, docker --cpus), or run no more threads than it allows.",
        facts.is_compared() && has_lost(facts) && !facts.is_busy ? Confidence::kHigh : Confidence::kMedium);
    found.explains = std::min(1.0, report.throttled / (report.sampled_wall * std::max(1.0, facts.wanting)));
    found.evidence.push_back(fixed(facts.wanting, 2) + " threads wanted to run, on average; " +
                             fixed(facts.parallelism, 2) + " CPUs used");
    return {found};
}

} // namespace thrum::stat
