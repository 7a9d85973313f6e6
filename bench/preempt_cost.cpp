// SPDX-License-Identifier: Apache-2.0
//
// What one preemption costs: two units that never wait share a CPU, each stamps a word of its own in a loop, and the gap is
// the time from the last stamp of the one to the first of the other. The units are kernel threads, which the kernel
// preempts at its tick, or user-level threads in each mode of libthrum; beside them a kernel thread that a timer interrupts
// for nothing, which is what a mode cannot be below.
//
// A kernel thread needs a CPU to share, so all are pinned to one here, which is another one each round. A gap of kStolen or
// more is one in which the CPU did something else: another process, or the host; such gaps are counted, and left out.
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdio>

#include "preempt.hpp"
#include "verdict.hpp"

namespace {

constexpr double kStolen = 150e3;   // ns
constexpr double kDisturbed = 1500; // from one stamp of a unit to its next: less is nothing but the loop
constexpr double kWarm = 50e6;      // before it counts
constexpr double kPatience = 30e9;
constexpr std::size_t kEnough = 20, kMost = 300000; // gaps

// --- the two units -----------------------------------------------------------------------------------------

struct Unit {
    std::atomic<std::uint64_t> last{0}; // its latest stamp; the other one reads it
    std::vector<double> gaps;           // ns; from here on: its own
    double spun = 0, disturbed = 0, stolen = 0;
    std::size_t thefts = 0;
};

std::array<Unit, 2> units;
double tick_ns;
std::uint64_t begin, end, latest_end;
std::atomic<bool> begun{false}, stopped{false};
std::atomic<bool> interrupted{false}; // by the timer of kTimer
double cpu_at_begin, cpu_at_end;

void look_at_clock(std::uint64_t now) {
    if (!begun.load(std::memory_order_relaxed) && now >= begin && !begun.exchange(true))
        cpu_at_begin = preempt::cpu_ns();
    if (now < end)
        return;
    const bool enough = units[0].gaps.size() + units[1].gaps.size() >= kEnough;
    if ((enough || now >= latest_end) && !stopped.exchange(true))
        cpu_at_end = preempt::cpu_ns();
}

void note_gap(Unit *me, double ns) {
    if (ns >= kStolen) {
        me->stolen += ns;
        me->thefts++;
    } else if (me->gaps.size() < kMost) {
        me->gaps.push_back(ns);
    }
}

void note_loop(Unit *me, double ns) {
    if (ns < kDisturbed)
        me->spun += ns;
    else if (interrupted.exchange(false, std::memory_order_relaxed))
        note_gap(me, ns);
    else if (ns < kStolen)
        me->disturbed += ns;
    else
        me->stolen += ns;
}

// It may be preempted anywhere in here. With a stamp that is older than the other's it has just come back, and looks again.
void *spin(void *which) {
    Unit *me = static_cast<Unit *>(which), *other = me == units.data() ? &units[1] : units.data();
    while (!stopped.load(std::memory_order_relaxed)) {
        const std::uint64_t now = arch_ticks(), theirs = other->last.load(std::memory_order_relaxed),
                            mine = me->last.load(std::memory_order_relaxed);
        if (now >= begin && mine != 0) {
            if (theirs > mine && now > theirs)
                note_gap(me, static_cast<double>(now - theirs) * tick_ns);
            else if (theirs < mine && now > mine)
                note_loop(me, static_cast<double>(now - mine) * tick_ns);
        }
        me->last.store(now, std::memory_order_relaxed);
        if (now >= begin)
            look_at_clock(now);
    }
    return nullptr;
}

// --- the threads -------------------------------------------------------------------------------------------

void run_kernel_threads() {
    std::array<pthread_t, 2> threads;
    for (std::size_t i = 0; i < 2; i++)
        preempt::check(pthread_create(&threads[i], nullptr, spin, &units[i]), "pthread_create");
    for (const pthread_t thread : threads)
        pthread_join(thread, nullptr);
}

void on_timer(int, siginfo_t *, void *) {
    interrupted.store(true, std::memory_order_relaxed);
}

void run_timer(double slice_us) {
    preempt::handle(SIGUSR1, on_timer);
    const preempt::Timer timer(SIGUSR1, preempt::now_ns() + 1e6, slice_us);
    spin(&units[0]);
}

bool run_threads() {
    if (!preempt::init(1))
        return false;
    std::array<thrum_t, 2> threads;
    for (std::size_t i = 0; i < 2; i++)
        preempt::check(thrum_spawn(&threads[i], nullptr, spin, &units[i]), "thrum_spawn");
    for (const thrum_t thread : threads)
        preempt::check(thrum_join(thread, nullptr), "thrum_join");
    return true;
}

// --- arms -------------------------------------------------------------------------------------------------

constexpr const char *kKernel = "kernel", *kTimer = "timer";

struct Arm {
    std::string key, name;
    bool is_mode() const { return key != kKernel && key != kTimer; }
};

// Those of preempt::kModes, of which the first is yield, and these two.
std::vector<Arm> all_arms() {
    std::vector<Arm> arms;
    for (const char *mode : preempt::kModes)
        arms.push_back({mode, std::string("thrum, ") + mode});
    arms.push_back({kKernel, "kernel threads, 1:1"});
    arms.push_back({kTimer, "a timer's signal, no switch"});
    return arms;
}

void report_gaps() {
    std::vector<double> gaps = units[0].gaps;
    gaps.insert(gaps.end(), units[1].gaps.begin(), units[1].gaps.end());
    const double spun = units[0].spun + units[1].spun, disturbed = units[0].disturbed + units[1].disturbed;
    const double stolen = units[0].stolen + units[1].stolen;
    if (gaps.size() < kEnough)
        throw bench::Failure("there were " + std::to_string(gaps.size()) +
                             " preemptions; the machine is too busy");
    const auto count = static_cast<double>(gaps.size()),
               all = count + static_cast<double>(units[0].thefts + units[1].thefts);
    double time = spun + disturbed;
    for (const double gap : gaps)
        time += gap;
    const double cpu = (cpu_at_end - cpu_at_begin - spun - disturbed) / all;
    const double p10 = bench::quantile(&gaps, 0.1), median = bench::quantile(&gaps, 0.5),
                 p99 = bench::quantile(&gaps, 0.99);
    std::printf("%.1f %.1f %.1f %.1f %.3f %.4f\n", p10, median, p99, cpu, count / time * 1e9,
                100 * stolen / (stolen + time));
}

// In the child: ARM CPU SECONDS SLICE.
void work(const std::vector<std::string> &words) {
    const std::string &arm = words.at(0);
    preempt::pin(std::stoi(words.at(1)));
    tick_ns = preempt::ns_per_tick();
    for (Unit &unit : units)
        unit.gaps.reserve(kMost);
    const auto ticks = [](double ns) { return static_cast<std::uint64_t>(ns / tick_ns); };
    begin = arch_ticks() + ticks(kWarm);
    end = begin + ticks(std::stod(words.at(2)) * 1e9);
    latest_end = end + ticks(kPatience);
    if (arm == kKernel)
        run_kernel_threads();
    else if (arm == kTimer)
        run_timer(std::stod(words.at(3)));
    else if (!run_threads())
        return preempt::say_unavailable();
    report_gaps();
}

// --- rounds -----------------------------------------------------------------------------------------------

enum : std::size_t { kP10, kGap, kP99, kCpu, kPerSecond, kLeftOut, kNumbers }; // what report_gaps() says

bench::Rounds<bench::Numbers> measure(const std::vector<Arm> &arms, const bench::Options &options) {
    const std::vector<int> cpus = preempt::cpus();
    const double slice = options.numbers[2];
    bench::Turns turns{options.numbers[0], {}};
    for (const Arm &arm : arms)
        turns.variants.push_back(arm.name);
    return bench::Rounds<bench::Numbers>(turns, [&](std::size_t which, std::size_t round) {
        const Arm &arm = arms[which];
        return preempt::measured({arm.key, std::to_string(cpus[round % cpus.size()]),
                                  std::to_string(options.numbers[1]), std::to_string(slice)},
                                 preempt::armed(options.library, arm.is_mode() ? arm.key : "none", slice),
                                 kNumbers);
    });
}

// To yielding: for lending and thread-locals of one's own. To the kernel's: for all modes.
bench::Table table_of(const std::vector<Arm> &arms, const bench::Rounds<bench::Numbers> &rounds,
                      const bench::Options &options, bench::Verdicts *verdicts) {
    const double yield_limit = options.numbers[3], kernel_limit = options.numbers[4];
    bench::Table table{"preempt_cost",
                       "One preemption: from the last stamp of one unit to the first of the next",
                       {{"arm", "units", "", 0},
                        {"p10", "10th percentile", "us", 2},
                        {"gap", "median", "us", 2},
                        {"p99", "99th percentile", "us", 2},
                        {"cpu", "CPU time", "us", 2},
                        {"to_yield", "to yield", "x", 2},
                        {"yield_verdict", "to yield", "verdict", 0},
                        {"to_kernel", "to kernel", "x", 2},
                        {"kernel_verdict", "to kernel", "verdict", 0},
                        {"per_second", "preemptions", "/s", 0},
                        {"left_out", "left out", "%", 2}},
                       {}};
    constexpr double kUs = 1e-3; // of ns
    const std::size_t yield = 0, kernel = arms.size() - 2;
    for (std::size_t i = 0; i < arms.size(); i++) {
        const Arm &arm = arms[i];
        if (!rounds.has(i)) {
            table.rows.push_back(preempt::row_unavailable({arm.name}, table));
            continue;
        }
        const auto us = [&](std::size_t number) { return rounds.of(i, bench::nth(number, kUs)); };
        const bench::Estimate to_yield = rounds.ratio(i, yield, bench::nth(kGap)),
                              to_kernel = rounds.ratio(i, kernel, bench::nth(kGap));
        const bool as_yield = arm.key == "lend" || arm.key == "own-tls";
        table.rows.push_back({arm.name, us(kP10), us(kGap), us(kP99), us(kCpu), to_yield,
                              as_yield ? verdicts->at_most(to_yield, yield_limit) : "-", to_kernel,
                              arm.is_mode() ? verdicts->at_most(to_kernel, kernel_limit) : "-",
                              rounds.of(i, bench::nth(kPerSecond)).median,
                              rounds.of(i, bench::nth(kLeftOut)).median});
    }
    return table;
}

void body(const bench::Options &options) {
    bench::Report report(options);
    const std::vector<Arm> arms = all_arms();
    bench::Verdicts verdicts;
    report.add(table_of(arms, measure(arms, options), options, &verdicts));
    report.note("Each is two units that never wait, on one CPU, to which the process is pinned; the kernel's "
                "own slices "
                "are as long as it likes.");
    report.note("CPU time: what the process used above what its units spun, for each preemption; without "
                "interrupts that preempted no thread.");
    report.note(
        "Left out: gaps of 150 us and more, in which the CPU did something else (another process, the host), "
        "and such pauses within a unit, of the time.");
    report.note("10th percentile: what is left where other processes want the CPU too, which the kernel then "
                "runs in between, "
                "often for less than 150 us.");
    report.note("The aims: lend and own-tls at most 1.05 of yield, no mode above 1.5 of the kernel's.");
    bench::conclude(&report, options, verdicts);
}

} // namespace

int main(int argc, char **argv) {
    return bench::main_of(
        argc, argv,
        {"preempt_cost",
         "What one preemption costs, in each mode of libthrum and in the kernel.",
         {{"--rounds", "Measurements of each row", 2, 10, 20, 1, 1000},
          {"--seconds", "How long each is", 0.1, 1.5, 3, 0.01, 100},
          {"--slice", "The time slice, us", 1000, 1000, 1000, 50, 1000000},
          {"--yield-limit", "Limit of lend and own-tls, to yield", 1.05, 1.05, 1.05, 1e-6, 1e6},
          {"--kernel-limit", "Limit of all modes, to the kernel's threads", 1.5, 1.5, 1.5, 1e-6, 1e6}},
         {},
         true,
         {bench::kCheck},
         "libthrum.so"},
        body, work);
}
