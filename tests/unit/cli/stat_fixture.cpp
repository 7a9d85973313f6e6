// SPDX-License-Identifier: Apache-2.0
#include "stat_fixture.hpp"

#include <cmath>
#include <limits>

using thrum::stat::Confidence;
using thrum::stat::Doing;
using thrum::stat::Finding;
using thrum::stat::Frame;
using thrum::stat::Lock;
using thrum::stat::LockKind;
using thrum::stat::LockUse;
using thrum::stat::Outcome;
using thrum::stat::Point;
using thrum::stat::Report;
using thrum::stat::Site;
using thrum::stat::Thread;

namespace {

constexpr int kMain = 4711;

Frame own(const char *function, int line) {
    return {function, "birthday.c", line, "birthday", 0x1200U + static_cast<unsigned>(line), true};
}

Frame library(const char *function, std::uint64_t offset) {
    return {function, "", 0, "libc.so.6", offset, false};
}

const Frame kLockWait = library("__lll_lock_wait_private", 0x8b1d0), kRandom = library("random", 0x42a10),
            kStart = library("start_thread", 0x89134), kClone = library("__clone3", 0x1097dc),
            kSort = library("msort_with_tmp", 0x41c00), kJoin = library("__pthread_clockjoin_ex", 0x8af20);
const Frame kDraw = own("draw", 21), kHasDup = own("has_dup", 34), kWorker = own("worker", 52),
            kMainFrame = own("main", 80);

Site site(std::vector<Frame> stack, Doing doing, std::uint64_t samples, double share, double seconds) {
    Site made;
    made.stack = std::move(stack);
    made.doing = doing;
    made.samples = samples;
    made.share = share;
    made.seconds = seconds;
    return made;
}

Site lock_wait(std::vector<Frame> stack, std::size_t lock, std::uint64_t samples, double share,
               double seconds) {
    Site made = site(std::move(stack), Doing::kLockWait, samples, share, seconds);
    made.lock = lock;
    return made;
}

thrum::Interval around(double middle, std::size_t runs) {
    return {middle, middle * 0.96, middle * 1.07, 0.94, runs};
}

Point point(unsigned threads, double wall, double user, double system, double voluntary) {
    Point made;
    made.threads = threads;
    made.runs = 5;
    made.wall = around(wall, made.runs);
    made.user = user;
    made.system = system;
    made.voluntary = voluntary;
    made.involuntary = 12;
    made.run_delay = threads > 2 ? 0.21 : 0;
    made.most_threads = threads + 1;
    made.load.seconds = wall * made.runs;
    made.load.others = 0.06;
    made.load.waited = 0.02;
    made.load.load_before = 0.4;
    made.load.load_after = 0.9;
    return made;
}

// A thread that changes between a few things to do, every few samples.
Thread thread(int id, const char *name, double end, std::vector<Thread::Span> pattern) {
    Thread made;
    made.id = id;
    made.name = name;
    made.begin = 0.004;
    made.end = end;
    made.cpu = 0.44;
    made.run_delay = 0.05;
    made.voluntary = 197;
    made.involuntary = 4;
    double at = made.begin;
    for (std::size_t i = 0; at < end; i++) {
        Thread::Span span = pattern[(i * 7 + static_cast<std::size_t>(id)) % pattern.size()];
        const double length = span.end;
        span.begin = at;
        span.end = std::min(at + length, end);
        at = span.end;
        made.spans.push_back(span);
    }
    return made;
}

void add_machine(Report &report, unsigned processors) {
    report.machine.processor = "Example Processor 3000";
    report.machine.kernel = "Linux 6.1.0 x86_64";
    report.machine.libc = "glibc 2.36";
    report.machine.processors = processors;
    report.cores = processors;
    report.began = "2026-01-02T03:04:05Z";
    report.switch_cost = 3.1e-6;
}

double &time_of(Report &report, Doing doing) {
    return report.doing[static_cast<int>(doing)];
}

void add_threads_of_random(Report &report) {
    const std::vector<Thread::Span> pattern = {
        {0, 0.03, Doing::kLockWait, 0},           {0, 0.02, Doing::kRunning, 0},
        {0, 0.01, Doing::kKernel, SIZE_MAX},      {0, 0.02, Doing::kRunnable, SIZE_MAX},
        {0, 0.01, Doing::kInputOutput, SIZE_MAX}, {0, 0.01, Doing::kLockWait, 1}};
    report.threads.push_back(thread(kMain, "birthday", 1.09, {{0, 1.2, Doing::kJoinWait, SIZE_MAX}}));
    for (int i = 1; i <= 4; i++)
        report.threads.push_back(thread(kMain + i, "worker", 1.04 + 0.01 * i, pattern));
}

void add_profile_of_random(Report &report) {
    report.profile_source = "perf event";
    report.burns = {
        site({kRandom, kDraw, kHasDup, kWorker, kStart}, Doing::kRunning, 90, 0.49, 0.9),
        site({kLockWait, kRandom, kDraw, kHasDup, kWorker, kStart}, Doing::kRunning, 56, 0.31, 0.56),
        site({kSort, kHasDup, kWorker, kStart}, Doing::kRunning, 22, 0.12, 0.22),
        site({kHasDup, kWorker, kStart}, Doing::kRunning, 14, 0.08, 0.14)};
    report.burns_one = {site({kSort, kHasDup, kWorker, kStart}, Doing::kRunning, 20, 0.62, 0.2),
                        site({kHasDup, kWorker, kStart}, Doing::kRunning, 7, 0.22, 0.07),
                        site({kRandom, kDraw, kHasDup, kWorker, kStart}, Doing::kRunning, 5, 0.16, 0.05)};
}

void add_findings_of_random(Report &report) {
    report.findings = {
        {"hidden-lock",
         "Hidden lock in libc: random()",
         "Use random_r() with per-thread state.",
         Confidence::kHigh,
         "draw",
         "birthday.c",
         21,
         {"99 % of the time in lock waits is below random(), whose lock is static data of libc.so.6",
          "CPU time rises from 0.32 s with 1 thread to 1.83 s with 4",
          "44 % of the CPU time is in the kernel, with 1 thread it was 3 %"}},
        {"oversubscribed",
         "More threads than CPUs: 4 on 2",
         "Start as many threads as sched_getaffinity() gives CPUs.",
         Confidence::kLow,
         "",
         "",
         0,
         {"threads were runnable without a CPU for 0.21 s"}}};
}

} // namespace

Report report_of_random() {
    Report report;
    report.command = {"./birthday", "{}"};
    add_machine(report, 2);
    report.outcome = Outcome::kSlower;
    report.verdict = "Threads make this program SLOWER: 4 threads take 3.3x the time of 1.";
    report.points = {point(1, 0.32, 0.31, 0.01, 3), point(2, 0.48, 0.42, 0.2, 301),
                     point(4, 1.08, 1.02, 0.81, 788)};
    report.scaling_text = "Retrograde: best at 1 thread (no scaling model fitted).";
    report.sampled_threads = 4;
    report.sampled_wall = 1.09;
    report.rate = 99.2;
    report.samples = 541;
    time_of(report, Doing::kRunning) = 1.31;
    time_of(report, Doing::kKernel) = 0.44;
    time_of(report, Doing::kLockWait) = 1.53;
    time_of(report, Doing::kRunnable) = 0.87;
    time_of(report, Doing::kInputOutput) = 0.22;
    time_of(report, Doing::kJoinWait) = 1.07;
    LockUse lock;
    lock.lock = {0x7f12345678c0, LockKind::kLibrary,
                 "libc.so.6",    "",
                 0x1d38c0,       "libc.so.6 .data (static lock inside libc)"};
    lock.samples = 152;
    lock.share = 0.993;
    lock.seconds = 1.52;
    lock.threads = 4;
    lock.waiters_mean = 1.7;
    lock.waiters_most = 3;
    report.locks = {lock};
    report.waits = {
        lock_wait({kLockWait, kRandom, kDraw, kHasDup, kWorker, kStart, kClone}, 0, 148, 0.967, 1.48),
        lock_wait({kLockWait, kRandom, kDraw, kWorker, kStart, kClone}, 0, 4, 0.026, 0.04),
        lock_wait({kLockWait, library("_IO_puts", 0x77640), kWorker, kStart, kClone}, SIZE_MAX, 1, 0.007,
                  0.01)};
    report.others = {site({kJoin, kMainFrame}, Doing::kJoinWait, 107, 1, 1.07)};
    add_threads_of_random(report);
    report.threads_created = report.threads_joined = 4;
    add_profile_of_random(report);
    add_findings_of_random(report);
    report.how_known = {
        "Times: 5 bare runs for each number of threads, in turn, with nothing injected or sampled.",
        "Waits: /proc was read 99 times a second; what is shorter than 10 ms is seen by chance only.",
        "CPU time: a perf event of each thread, without the kernel's part."};
    report.warnings = {"no debugging information: libc.so.6 (function names only)"};
    return report;
}

Report report_that_scales() {
    Report report;
    report.command = {"/usr/bin/worker-pool", "--threads={}", "input file"};
    add_machine(report, 16);
    report.outcome = Outcome::kScales;
    report.verdict = "Threads make this program faster: 16 threads are 14.1x as fast as 1.";
    for (const unsigned threads : {1U, 2U, 4U, 8U, 16U}) {
        const double speedup = threads / (1 + 0.009 * (threads - 1));
        report.points.push_back(point(threads, 8 / speedup, 8, 0.05, 40));
    }
    report.scaling = thrum::stat::Scaling{0.009, 0, 0.012, 0};
    report.scaling_text = "Contention 0.9 %, no loss by coherency.";
    report.findings = {{"scales",
                        "It scales well",
                        "Nothing to do.",
                        Confidence::kHigh,
                        "",
                        "",
                        0,
                        {"88 % of ideal at 16 threads"}}};
    report.sampled_threads = 16;
    report.sampled_wall = 0.57;
    report.rate = 100;
    report.samples = 900;
    time_of(report, Doing::kRunning) = 8.9;
    time_of(report, Doing::kInputOutput) = 0.12;
    time_of(report, Doing::kIdleWait) = 0.3;
    time_of(report, Doing::kSleep) = 0.2;
    for (int i = 0; i < 60; i++)
        report.threads.push_back(thread(100 + i, "pool-worker-long-name", 0.2 + 0.006 * i,
                                        {{0, 0.2, Doing::kRunning, SIZE_MAX},
                                         {0, 0.01, Doing::kInputOutput, SIZE_MAX},
                                         {0, 0.01, Doing::kIdleWait, SIZE_MAX},
                                         {0, 0.02, Doing::kSleep, SIZE_MAX}}));
    report.threads_created = report.threads_joined = 60;
    report.threads_counted = report.creations_counted = report.exact = true;
    report.system_calls = {{"futex", 120}, {"read", 64}};
    report.how_known = {"Times: 5 bare runs for each number of threads."};
    return report;
}

Report report_inconclusive() {
    const double nan = std::numeric_limits<double>::quiet_NaN(),
                 inf = std::numeric_limits<double>::infinity();
    const std::string bad = "</title><b onload=\"x\">&'\";\n\x01\xff\xc3", broad(5000, 'W');
    Report report;
    report.command = {bad, "-x", "{}"};
    report.machine.processor = bad;
    report.outcome = Outcome::kInconclusive;
    report.verdict = "Inconclusive: " + bad;
    report.findings = {{"inconclusive", bad, bad, Confidence::kLow, bad, bad, -1, {bad, broad}}};
    Point one = point(0, nan, inf, 0, nan);
    one.load.others.reset();
    one.load.waited.reset();
    report.points = {one, point(3, 0, 0, 0, 0), point(3, inf, 0, 0, 0)};
    report.scaling = thrum::stat::Scaling{nan, inf, nan, nan};
    report.sampled_wall = nan;
    report.doing[0] = inf;
    report.doing[1] = nan;
    report.doing[2] = -1;
    LockUse lock;
    lock.lock.text = lock.lock.symbol = lock.lock.module = bad;
    lock.lock.address = ~0ULL;
    lock.share = lock.seconds = lock.waiters_mean = nan;
    lock.waits = ~0ULL;
    report.locks = {lock};
    const Frame hostile{bad, bad, -5, bad, ~0ULL, true}, nameless{"", "", 0, "", 0x1234, false},
        wide{broad, "", 0, "m", 0, false};
    report.waits = {lock_wait({hostile, nameless, wide}, 77, 3, nan, inf), lock_wait({}, 0, 1, 2, 0.5),
                    lock_wait(std::vector<Frame>(3000, hostile), 0, 1, -1, 0.1)};
    report.waits.front().calls = 12;
    report.others = {site({nameless}, Doing::kDoings, 0, 0, 0),
                     site({hostile}, Doing::kInputOutput, 2, 1, 0)};
    report.burns = {site({hostile, wide}, Doing::kRunning, 1, nan, nan)};
    Thread odd;
    odd.id = -1;
    odd.name = bad;
    odd.begin = nan;
    odd.end = inf;
    odd.spans = {{nan, inf, Doing::kDoings, 5},
                 {-1, 0.5, Doing::kLockWait, 99},
                 {0.5, 0.1, Doing::kRunning, 0},
                 {0.6, 1e9, Doing::kLockWait, 0}};
    report.threads = {odd, Thread()};
    report.profile_source = bad;
    report.system_calls = {{bad, 1}};
    report.signal = 11;
    report.interrupted = true;
    report.how_known = report.warnings = {bad};
    return report;
}
