// SPDX-License-Identifier: Apache-2.0
//
// What it costs to interrupt so many workers once a period, by how the interrupts come. No libthrum: kernel threads that
// compute, and signals.
//
//     naive       each has a timer, and all timers go off at one time
//     staggered   each has a timer, one goes off after another, evenly over the period
//     one to all  one has a timer, and its handler sends the signal to all others
//     chained     one has a timer, and each handler sends the signal to the next one
//
// Measured is what a tick takes from the thread that it interrupts, from the last stamp of its loop before to the first one
// after: delivery, handler and return. A tick in which the kernel ran another thread as well is left out, and counted: with
// more threads than CPUs most are of that kind. What is measured there is delivery when CPUs are oversubscribed, to threads
// that run and to threads that wait for one, and not what as many CPUs would have to pay, whose interrupts meet in the
// kernel. Each thread stays on one CPU, as workers of the paper that has these four forms do.
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>

#include "preempt.hpp"

namespace {

constexpr std::array<const char *, 4> kForms = {"naive", "staggered", "one to all", "chained"};
enum Form { kNaive, kStaggered, kOneToAll, kChained };

constexpr std::array<std::size_t, 7> kThreads = {1, 2, 4, 8, 16, 32, 64};
constexpr int kSignal =
    SIGUSR1;                  // not a real-time one: of those each that was sent is delivered, however late
constexpr double kGap = 1000; // ns; a turn of the loop takes less
constexpr double kLead = 2e7; // until all have begun, ns
constexpr double kPatience = 2e10;
constexpr long kEnough = 20;

// --- in the child ------------------------------------------------------------------------------------------

struct Thread {
    pthread_t thread;
    std::size_t number;
    std::vector<double> gaps;  // ns, of ticks
    long ticks, switched;      // all; those in which another thread ran
    double ticks_cpu, wall_ns; // what all ticks took of its CPU time; from beginning to end
};

std::vector<Thread> threads;
std::array<std::atomic<pid_t>, kThreads.back()> ids;
std::size_t form;
double tick_ns, period_us, first_ns;
std::uint64_t begin, end, latest_end;
std::atomic<long> good_ticks{0};

thread_local volatile long hits;
thread_local std::size_t own_number;

void send_to(std::size_t number) {
    syscall(SYS_tgkill, getpid(), ids[number].load(std::memory_order_relaxed), kSignal);
}

void on_tick(int, siginfo_t *info, void *) {
    hits = hits + 1;
    if (form == kOneToAll && info->si_code == SI_TIMER)
        for (std::size_t i = 0; i < threads.size(); i++)
            if (i != own_number)
                send_to(i);
    if (form == kChained && own_number + 1 < threads.size())
        send_to(own_number + 1);
}

// How often the kernel has run another thread instead of the caller.
long switches() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw + usage.ru_nivcsw;
}

bool is_over(std::uint64_t now) {
    return now >= end && (good_ticks.load(std::memory_order_relaxed) >= kEnough || now >= latest_end);
}

// What has come since the last gap, and what a gap took of the CPU time, which is that of the thread since then without
// what its loop took and the looking itself.
class Gaps {
  public:
    // With the stamp after the gap; to be called in front of the next stamp.
    void look(std::uint64_t now) {
        const double cpu_now = preempt::cpu_ns(CLOCK_THREAD_CPUTIME_ID);
        const long switches_now = switches(), hits_now = hits;
        cpu_ns = cpu_now - cpu_ - spun_ns - looking_;
        ticks = hits_now - hits_;
        switched = switches_now != switches_;
        cpu_ = cpu_now;
        hits_ = hits_now;
        switches_ = switches_now;
        spun_ns = 0;
        looking_ = std::min(static_cast<double>(arch_ticks() - now) * tick_ns, kLooking);
    }

    double spun_ns = 0; // by the loop, since
    double cpu_ns = 0;
    long ticks = 0;
    bool switched = false;

  private:
    static constexpr double kLooking = 2000; // more is no longer looking
    double cpu_ = preempt::cpu_ns(CLOCK_THREAD_CPUTIME_ID), looking_ = 0;
    long hits_ = hits, switches_ = switches();
};

void note(Thread *self, const Gaps &gap, double ns) {
    if (gap.ticks == 0)
        return;
    self->ticks += gap.ticks;
    self->ticks_cpu += gap.cpu_ns;
    if (gap.switched) {
        self->switched++;
    } else if (self->gaps.size() < self->gaps.capacity()) {
        self->gaps.push_back(ns);
        good_ticks.fetch_add(1, std::memory_order_relaxed);
    }
}

// Between two stamps is a turn of the loop, or a gap: a tick, or something else that took the CPU.
void spin(Thread *self) {
    const std::uint64_t start = arch_ticks();
    Gaps gap;
    for (std::uint64_t last = arch_ticks(), now = last; !is_over(now); last = now) {
        now = arch_ticks();
        const double ns = static_cast<double>(now - last) * tick_ns;
        if (ns < kGap) {
            gap.spun_ns += ns;
            continue;
        }
        gap.look(now);
        note(self, gap, ns);
        now = arch_ticks();
    }
    self->wall_ns = static_cast<double>(arch_ticks() - start) * tick_ns;
}

double phase_of(std::size_t number) {
    return form == kStaggered ? static_cast<double>(number) / static_cast<double>(threads.size()) : 0;
}

void *run(void *arg) {
    auto *self = static_cast<Thread *>(arg);
    const std::vector<int> cpus = preempt::cpus();
    preempt::pin(cpus[self->number % cpus.size()]);
    own_number = self->number;
    ids[own_number].store(static_cast<pid_t>(syscall(SYS_gettid)));
    const bool own_timer = form == kNaive || form == kStaggered || own_number == 0;
    const double first = first_ns + phase_of(own_number) * period_us * 1e3;
    while (arch_ticks() < begin) {
    }
    if (own_timer) {
        const preempt::Timer timer(kSignal, first, period_us);
        spin(self);
    } else {
        spin(self);
    }
    return nullptr;
}

void report_ticks() {
    std::vector<double> gaps;
    double cpu = 0, ticks = 0, switched = 0, asked = 0;
    for (const Thread &thread : threads) {
        gaps.insert(gaps.end(), thread.gaps.begin(), thread.gaps.end());
        cpu += thread.ticks_cpu;
        ticks += static_cast<double>(thread.ticks);
        asked += thread.wall_ns / 1e3 / period_us;
        switched += static_cast<double>(thread.switched);
    }
    if (gaps.size() < static_cast<std::size_t>(kEnough))
        throw bench::Failure("too few ticks met a thread that ran; the machine is too busy");
    const auto count = static_cast<double>(gaps.size());
    const double median = bench::quantile(&gaps, 0.5), p99 = bench::quantile(&gaps, 0.99);
    std::printf("%.1f %.1f %.1f %.3f %.3f\n", median, p99, cpu / ticks, 100 * ticks / asked,
                100 * switched / (switched + count));
}

// In the child: FORM THREADS PERIOD SECONDS.
void work(const std::vector<std::string> &words) {
    form = std::stoul(words.at(0));
    threads.resize(std::stoul(words.at(1)));
    period_us = std::stod(words.at(2));
    tick_ns = preempt::ns_per_tick();
    preempt::handle(kSignal, on_tick);
    const double ns = std::stod(words.at(3)) * 1e9;
    const auto ticks = [](double time) { return static_cast<std::uint64_t>(time / tick_ns); };
    first_ns = preempt::now_ns() + kLead;
    begin = arch_ticks() + ticks(kLead);
    end = begin + ticks(ns);
    latest_end = end + ticks(kPatience);
    for (std::size_t i = 0; i < threads.size(); i++) {
        threads[i].number = i;
        threads[i].gaps.reserve(1000 + static_cast<std::size_t>(ns / period_us / 1e3));
        preempt::check(pthread_create(&threads[i].thread, nullptr, run, &threads[i]), "pthread_create");
    }
    for (const Thread &thread : threads)
        pthread_join(thread.thread, nullptr);
    report_ticks();
}

// --- in the parent -----------------------------------------------------------------------------------------

struct Row {
    std::size_t threads, form;
};

void body(const bench::Options &options) {
    bench::Report report(options);
    std::vector<Row> rows;
    for (const std::size_t count : kThreads)
        for (std::size_t i = 0; i < kForms.size() && count <= options.numbers[3]; i++)
            rows.push_back({count, i});
    bench::Turns turns{options.numbers[0], {}};
    for (const Row &row : rows)
        turns.variants.push_back(std::string(kForms[row.form]) + ", " + std::to_string(row.threads));
    const bench::Rounds<bench::Numbers> rounds(turns, [&](std::size_t which, std::size_t) {
        return preempt::measured({std::to_string(rows[which].form), std::to_string(rows[which].threads),
                                  std::to_string(options.numbers[2]), std::to_string(options.numbers[1])},
                                 bench::Environment(), 5);
    });
    bench::Table table{"preempt_timers",
                       "What a tick takes from the thread that it interrupts",
                       {{"form", "form", "", 0},
                        {"threads", "threads", "", 0},
                        {"median", "median", "us", 2},
                        {"p99", "99th percentile", "us", 2},
                        {"cpu", "CPU time, mean", "us", 2},
                        {"delivered", "delivered", "%", 1},
                        {"left_out", "left out", "%", 1}},
                       {}};
    constexpr double kUs = 1e-3; // of ns
    for (std::size_t i = 0; i < rows.size(); i++)
        table.rows.push_back({kForms[rows[i].form], static_cast<double>(rows[i].threads),
                              rounds.of(i, bench::nth(0, kUs)), rounds.of(i, bench::nth(1, kUs)),
                              rounds.of(i, bench::nth(2, kUs)), rounds.of(i, bench::nth(3)).median,
                              rounds.of(i, bench::nth(4)).median});
    report.add(table);
    report.note("Every thread is to be interrupted once a period; delivered: how many of these signals came. "
                "One that is "
                "still on its way when the next is sent is one with it.");
    report.note("Left out of median and percentile: ticks in which the kernel ran another thread meanwhile. "
                "CPU time has them, with the switches.");
    report.note("With more threads than CPUs (" + std::to_string(preempt::cpus().size()) +
                ") this is delivery under oversubscription: few of the threads run at one time.");
    report.print();
}

} // namespace

int main(int argc, char **argv) {
    return bench::main_of(argc, argv,
                          {"preempt_timers",
                           "What a tick costs by how ticks come to 1 to 64 kernel threads.",
                           {{"--rounds", "Measurements of each row", 1, 7, 15, 1, 1000},
                            {"--seconds", "How long each is", 0.05, 0.5, 1, 0.01, 100},
                            {"--period", "The time from tick to tick, us", 1000, 1000, 1000, 50, 1000000},
                            {"--threads", "The most threads", 64, 64, 64, 1, 64}},
                           {},
                           false},
                          body, work);
}
