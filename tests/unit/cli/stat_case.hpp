// SPDX-License-Identifier: Apache-2.0
//
// Reports that are made up, from which the tests of the rules let conclusions be drawn (cli/stat/rules.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "stat/rules.hpp"

namespace {

using thrum::stat::Confidence;
using thrum::stat::Doing;
using thrum::stat::Finding;
using thrum::stat::Frame;
using thrum::stat::LockKind;
using thrum::stat::Outcome;
using thrum::stat::Point;
using thrum::stat::Report;
using thrum::stat::Site;
using thrum::stat::Thread;

[[maybe_unused]] Frame library(const char *function, const char *module = "libc.so.6") {
    Frame frame;
    frame.function = function;
    frame.module = module;
    return frame;
}

[[maybe_unused]] Frame own(const char *function, int line = 21) {
    Frame frame;
    frame.function = function;
    frame.file = "prog.c";
    frame.line = line;
    frame.module = "prog";
    frame.is_user = true;
    return frame;
}

// A program alone on a machine of two cores.
class Case {
  public:
    Case() {
        report.machine.processors = 2;
        report.command = {"./prog", "{}"};
        report.rate = 100;
    }

    Case &point(unsigned threads, double wall, double user, double system, double voluntary = 100) {
        Point point;
        point.threads = threads;
        point.most_threads = threads + 1;
        point.runs = 3;
        point.wall = {wall, wall * 0.99, wall * 1.01, 0.75, 3};
        point.user = user;
        point.system = system;
        point.voluntary = voluntary;
        point.load.seconds = 3 * wall;
        point.load.others = 0.01;
        report.points.push_back(point);
        report.sampled_wall = wall;
        report.sampled_threads = threads;
        return *this;
    }
    Case &others(double cpus) {
        for (Point &point : report.points)
            point.load.others = cpus;
        return *this;
    }
    Case &doing(Doing what, double seconds) {
        report.doing[static_cast<int>(what)] = seconds;
        return *this;
    }
    Case &lock(LockKind kind, const std::string &text, double waiters_mean, const std::string &symbol = "") {
        thrum::stat::LockUse use;
        use.lock.kind = kind;
        use.lock.text = text;
        use.lock.symbol = symbol;
        use.share = 1;
        use.waiters_mean = waiters_mean;
        use.waiters_most = static_cast<unsigned>(waiters_mean) + 1;
        report.locks.push_back(use);
        return *this;
    }
    // Waits for the first lock, if there is one.
    Case &waits(const std::vector<Frame> &stack, std::uint64_t samples, double share = 1) {
        Site site;
        site.stack = stack;
        site.samples = samples;
        site.share = share;
        site.seconds = static_cast<double>(samples) / 100;
        site.lock = report.locks.empty() ? SIZE_MAX : 0;
        report.waits.push_back(site);
        return *this;
    }
    Case &burns(const std::vector<Frame> &stack, double share, double share_one) {
        for (auto &[list, part] : {std::pair{&report.burns, share}, {&report.burns_one, share_one}})
            if (part > 0) {
                Site site;
                site.doing = Doing::kRunning;
                site.stack = stack;
                site.samples = static_cast<std::uint64_t>(100 * part);
                site.share = part;
                list->push_back(site);
            }
        report.profile_source = "perf event";
        return *this;
    }
    Case &thread(double begin, double end, Doing what = Doing::kRunning) {
        Thread thread;
        thread.begin = begin;
        thread.end = end;
        thread.spans.push_back({begin, end, what, SIZE_MAX, 0});
        report.threads.push_back(thread);
        return *this;
    }
    // One that had a CPU for a part of the time, as on a busy machine.
    Case &slowed(double begin, double end, double cpu) {
        thread(begin, end);
        report.threads.back().cpu = report.threads.back().spans.back().ran = cpu;
        return *this;
    }
    const Report &concluded(const std::string &failure = "") {
        conclude(report, failure);
        return report;
    }

    Report report;
};

[[maybe_unused]] std::string rules_of(const Report &report) {
    std::string names;
    for (const Finding &finding : report.findings)
        names += (names.empty() ? "" : " ") + finding.rule;
    return names;
}

// The article's program: hardly a long wait, and CPU time that explodes in the kernel.
[[maybe_unused]] Case random_case() {
    Case made;
    made.point(1, 0.32, 0.32, 0, 3).point(2, 0.48, 0.4, 0.22, 400).point(4, 1.08, 1.02, 0.81, 788);
    made.doing(Doing::kRunning, 1.8).doing(Doing::kRunnable, 1.2).doing(Doing::kLockWait, 1.1);
    made.lock(LockKind::kLibrary, "libc.so.6 .data (static lock inside libc)", 1.4);
    made.waits({library("__lll_lock_wait_private"), library("random"), own("draw"), own("has_dup", 25),
                own("worker", 33)},
               109, 0.99);
    made.burns({library("__lll_lock_wait_private"), library("random"), own("draw")}, 0.6, 0);
    made.burns({library("random"), own("draw")}, 0.2, 0.3);
    made.burns({own("has_dup", 25), own("worker", 33)}, 0.2, 0.7);
    return made;
}

[[maybe_unused]] thrum::stat::HardwareCounts counts(double instructions, double cycles, double l1_misses) {
    thrum::stat::HardwareCounts made;
    made.instructions = instructions;
    made.cycles = cycles;
    made.l1_misses = l1_misses;
    return made;
}

} // namespace
