// SPDX-License-Identifier: Apache-2.0
//
// The rule of parallelism within parallelism: processes or threads, each of which starts a team of a library's threads.
#include "stat/rules/rule.hpp"

#include <algorithm>
#include <cmath>

#include "stat/facts.hpp"
#include "stat/rules/findings.hpp"
#include "stat/working.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

struct Team {
    const char *module; // what the library's name begins with
    const char *name, *variable;
};
constexpr Team kTeams[] = {
    {"libopenblas", "OpenBLAS", "OPENBLAS_NUM_THREADS"},
    {"libmkl_", "MKL", "MKL_NUM_THREADS"},
    {"libblis", "BLIS", "BLIS_NUM_THREADS"},
    {"libgomp", "OpenMP", "OMP_NUM_THREADS"},
    {"libomp", "OpenMP", "OMP_NUM_THREADS"},
    {"libiomp5", "OpenMP", "OMP_NUM_THREADS"},
};

// The library with threads of its own that takes most of the CPU time; `share` of it.
const Team *team_of(const std::vector<Site> &burns, double &share) {
    const Team *most = nullptr;
    share = 0;
    for (const Team &team : kTeams) {
        double sum = 0;
        for (const Site &site : burns) {
            const bool is_in = std::any_of(site.stack.begin(), site.stack.end(), [&team](const Frame &frame) {
                return begins_with(frame.module, team.module);
            });
            sum += is_in ? site.share : 0;
        }
        if (sum > share) {
            share = sum;
            most = &team;
        }
    }
    return most;
}

constexpr double kInTeam = 0.3;  // of CPU time, in the library
constexpr double kCrowded = 1.5; // threads that work, to cores
constexpr double kAtOnce =
    1.2; // threads in all teams, to those that ran or wanted to: of more, some came after the others
constexpr double kTogether =
    0.3; // of the time of the one that lived longest: processes that are there at once

unsigned workers_of(const std::vector<Thread> &threads) {
    return static_cast<unsigned>(working_threads(threads).size());
}

struct Nest {
    const Team *team = nullptr;
    unsigned outer = 0, inner = 0; // processes, or threads; and threads of each
    double share = 0;              // of CPU time, in the library
    double regions = 0; // likewise, of the threads that began a parallel region, which is one of each team
};

// In a parallel region of OpenMP's that another thread than the first began, and in that thread: the others of its team have no
// call of the library's on their stacks, as the code is the program's own. A stack that ends in a library is cut off: it does not
// tell which thread that is.
bool has_begun_region(const Site &site) {
    constexpr const char *kBegin[] = {"GOMP_parallel", "kmpc_fork_call"};
    const auto begins = std::find_if(site.stack.begin(), site.stack.end(), [&kBegin](const Frame &frame) {
        return !frame.is_user && begins_with_any(plain_name(frame.function), kBegin);
    });
    return begins != site.stack.end() && site.stack.back().is_user && !site.stack.back().function.empty() &&
           std::none_of(begins, site.stack.end(),
                        [](const Frame &frame) { return frame.is_user && frame.function == "main"; });
}

double share_of_regions(const std::vector<Site> &burns) {
    double share = 0;
    for (const Site &site : burns)
        share += has_begun_region(site) ? site.share : 0;
    return share;
}

// Processes that exist at the same time as the one that did most.
unsigned processes_at_once(const Report &report) {
    double all = 0;
    const Process *most = nullptr;
    for (std::size_t i = 1; i < report.processes.size(); i++) {
        all += report.processes[i].cpu;
        if (most == nullptr || report.processes[i].cpu > most->cpu)
            most = &report.processes[i];
    }
    if (most == nullptr)
        return 0;
    const auto is_beside = [&](const Process &one) {
        const double both = std::min(one.end, most->end) - std::max(one.begin, most->begin);
        return one.parent != 0 && one.cpu >= kDoesWork * all && both >= kTogether * (most->end - most->begin);
    };
    return static_cast<unsigned>(std::count_if(report.processes.begin(), report.processes.end(), is_beside));
}

Nest of_processes(const Report &report) {
    Nest nest;
    nest.outer = processes_at_once(report);
    for (const Report &child : report.children) {
        double share = 0;
        const Team *team = team_of(child.burns, share);
        const unsigned inner = workers_of(child.threads);
        if (team == nullptr || share < kInTeam || inner < 2 || samples_of(child.burns) < kFewSamples)
            continue;
        if (nest.team == nullptr || inner < nest.inner) // fewer is what is sure of all
            nest.inner = inner;
        nest.team = team;
        nest.share = std::max(nest.share, share);
    }
    return nest;
}

// Threads as they were asked for by the sweep, and those that worked.
Nest of_threads(const Facts &facts) {
    Nest nest;
    const Report &report = facts.report;
    nest.team = team_of(report.burns, nest.share);
    nest.outer = facts.is_compared() ? facts.most->threads : 0;
    if (nest.outer > 0)
        nest.inner = workers_of(report.threads) / nest.outer;
    nest.regions = share_of_regions(report.burns);
    if (std::max(nest.share, nest.inner * nest.regions) < kInTeam || !facts.has_profile(kFewSamples))
        nest.team = nullptr;
    return nest;
}

} // namespace

// Wrong if the threads of the library do not work at the same time: those that hardly run do not count, and as many processes as
// there are have to exist at once. With one team at a time there is one outer thread, or process.
Findings nested(const Facts &facts) {
    const Report &report = facts.report;
    constexpr double kMostWork = 0.5;
    const bool is_of_processes = facts.children_share >= kMostWork;
    const Nest nest = is_of_processes ? of_processes(report) : of_threads(facts);
    const double working = static_cast<double>(nest.outer) * nest.inner;
    if (nest.team == nullptr || nest.outer < 2 || nest.inner < 2 || working < kCrowded * facts.cores)
        return {};
    if (!is_of_processes && (facts.wanting < kCrowded * facts.cores || working > kAtOnce * facts.wanting))
        return {};
    const bool is_in_library = nest.share >= kInTeam; // else a part of the stacks tells
    const std::string what = is_of_processes ? "process" : "thread";
    Finding found =
        finding("nested",
                counted(nest.outer, what, what + (is_of_processes ? "es" : "s")) + ", each with " +
                    std::to_string(nest.inner) + " threads of " + nest.team->name + ", on " +
                    counted(facts.cores, "core"),
                std::string("Set ") + nest.team->variable + "=1 (or fewer " + what +
                    (is_of_processes ? "es" : "s") + "): one thread per core in all.",
                has_lost(facts) && !facts.is_busy && is_in_library ? Confidence::kHigh : Confidence::kMedium);
    found.evidence.push_back(
        (is_in_library
             ? percent(nest.share) + " of the CPU time of " +
                   (is_of_processes ? "a process" : "the program") + " in " + nest.team->name
             : percent(nest.regions) + " of the CPU time is that of threads which began a parallel region") +
        "; " + fixed(is_of_processes ? working : facts.wanting, is_of_processes ? 0 : 1) +
        (is_of_processes ? " threads work at once" : " threads ran or wanted a CPU, on average"));
    if (is_of_processes)
        found.evidence.push_back(duration(report.children_cpu) +
                                 " of CPU time in processes that it started, " + duration(report.own_cpu) +
                                 " in its own");
    return {found};
}

} // namespace thrum::stat
