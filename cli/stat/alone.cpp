// SPDX-License-Identifier: Apache-2.0
#include "stat/alone.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include "stat/facts.hpp"

namespace thrum::stat {

namespace {

bool wants_cpu(Doing doing) {
    return doing == Doing::kRunning || doing == Doing::kRunnable;
}

// A moment from which on so many more threads want a CPU, or wait for a lock or in the kernel; those that want one run so much
// of each second.
struct Change {
    double at;
    int wants, waits;
    double runs;
    std::size_t thread; // index into Report::threads
    bool operator<(const Change &other) const { return at < other.at; }
};

std::vector<Change> changes_of(const Report &report) {
    std::vector<Change> changes;
    for (std::size_t i = 0; i < report.threads.size(); i++)
        for (const Thread::Span &span : report.threads[i].spans) {
            const bool is_wait =
                span.is_held_up || (span.doing == Doing::kLockWait && !is_turn(report, span.site));
            const int wants = wants_cpu(span.doing) ? 1 : 0, waits = is_wait ? 1 : 0;
            if (wants + waits == 0 || span.end <= span.begin)
                continue;
            const double runs = wants * span.ran / (span.end - span.begin);
            changes.push_back({span.begin, wants, waits, runs, i});
            changes.push_back({span.end, -wants, -waits, -runs, i});
        }
    std::stable_sort(changes.begin(), changes.end());
    return changes;
}

// What the thread that ran most has run beyond the one after it.
double beyond_others(const std::vector<Thread> &threads) {
    double most = 0, next = 0;
    for (const Thread &thread : threads) {
        next = std::max(next, std::min(most, thread.cpu));
        most = std::max(most, thread.cpu);
    }
    return most - next;
}

// For so long at most a thread was alone: in which the others had something to do, by the kernel's accounts, it was not. Looks are
// few, and find a thread asleep that the look itself kept waiting for another one.
double alone_at_most(const Report &report, std::size_t thread) {
    double others = 0;
    for (std::size_t i = 0; i < report.threads.size(); i++)
        if (i != thread)
            others = std::max(others, report.threads[i].cpu + report.threads[i].run_delay);
    return std::max(0.0, report.sampled_wall - others);
}

} // namespace

Alone time_alone(const Report &report) {
    Alone alone;
    std::map<std::size_t, double> by_thread;
    double since = 0, runs = 0;
    int wanting = 0, waiting = 0;
    std::size_t lone = 0; // the sum of those that want a CPU: of one, that one
    for (const Change &change : changes_of(report)) {
        const double length = change.at - since;
        alone.working += wanting + waiting > 0 ? length : 0;
        if (wanting == 1 && waiting == 0) {
            by_thread[lone] += length;
            alone.cpu += length * runs;
            alone.tail_cpu += length * runs;
        } else if (wanting + waiting > 1 && length > 0) {
            alone.tail_cpu = 0;
        }
        since = change.at;
        wanting += change.wants;
        waiting += change.waits;
        runs += change.runs;
        lone += static_cast<std::size_t>(change.wants) * change.thread; // wraps where it is taken off again
    }
    for (const auto &[thread, seen] : by_thread) {
        const double seconds = std::min(seen, alone_at_most(report, thread));
        alone.seconds += seconds;
        alone.by_one = std::max(alone.by_one, seconds);
    }
    return alone;
}

double share_alone_by_cpu(const Report &report, double usable) {
    const Alone time = time_alone(report);
    const double alone = std::min(time.cpu - time.tail_cpu, beyond_others(report.threads));
    double all = 0;
    for (const Thread &thread : report.threads)
        all += thread.cpu;
    const double together = std::max(0.0, all - alone) / std::max(1.0, usable);
    return alone > 0 ? alone / (alone + together) : 0;
}

} // namespace thrum::stat
