// SPDX-License-Identifier: Apache-2.0
//
// What the ways to do KLT-switching cost, by a model of it (klt_model.hpp) in which each of them can be had or not, beside
// libthrum's mode klt and the kernel's own preemption of threads: suspending by a futex or by sigsuspend, kernel threads
// for reuse in a pool of each worker's or in one, the CPU affinity set where it has to be or always, the next unit chosen
// on a kernel thread of the pool, as published, or in the handler, as libthrum has it.
//
// Two units a worker, which stays on a CPU, never wait and stamp a word of their own in a loop; one that finds the other's
// stamp to be younger has just come back (as in preempt_cost). What counts is CPU time: what the process used above what
// its units spun, for each time that a unit came back.
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <deque>

#include "klt_model.hpp"
#include "preempt.hpp"

namespace {

constexpr double kStolen = 150e3; // ns; a gap of that or more is one in which the CPU did something else
// From one stamp of a unit to its next, ns: more is neither the loop nor an interrupt.
constexpr double kInterrupted = 30e3;
constexpr double kWarm = 50e6; // before it counts
constexpr double kPatience = 30e9;
constexpr std::size_t kUnits = 2;    // of a worker
constexpr std::size_t kEnough = 10;  // gaps of a unit, on average
constexpr std::size_t kMost = 50000; // that are kept

// --- the units ---------------------------------------------------------------------------------------------

struct alignas(64) Unit {
    std::atomic<std::uint64_t> last{0}; // its latest stamp; the other one reads it
    const Unit *other = nullptr;        // of the same worker
    alignas(64) std::uint64_t returns = 0;
    double spun = 0;          // ns of CPU time, with interrupts that preempted no thread
    std::vector<double> gaps; // ns
};

std::deque<Unit> units;
double tick_ns;
std::uint64_t begin, end, latest_end;
std::atomic<std::size_t> all_gaps{0};
std::atomic<bool> begun{false}, stopped{false};
double cpu_at_begin, cpu_at_end;

void look_at_clock(std::uint64_t now) {
    if (!begun.load(std::memory_order_relaxed) && !begun.exchange(true))
        cpu_at_begin = preempt::cpu_ns();
    if (now < end || stopped.load(std::memory_order_relaxed))
        return;
    const bool enough = all_gaps.load(std::memory_order_relaxed) >= kEnough * units.size();
    if ((enough || now >= latest_end) && !stopped.exchange(true))
        cpu_at_end = preempt::cpu_ns();
}

void note_return(Unit *me, double gap) {
    me->returns++;
    if (gap >= kStolen)
        return;
    all_gaps.fetch_add(1, std::memory_order_relaxed);
    if (me->gaps.size() < kMost)
        me->gaps.push_back(gap);
}

// It may be preempted anywhere in here. With a stamp that is older than the other's it has just come back, and looks again.
void *spin(void *unit) {
    Unit *me = static_cast<Unit *>(unit);
    while (!stopped.load(std::memory_order_relaxed)) {
        const std::uint64_t now = arch_ticks(), theirs = me->other->last.load(std::memory_order_relaxed),
                            mine = me->last.load(std::memory_order_relaxed);
        if (now >= begin && mine != 0) {
            const double since = static_cast<double>(now - mine) * tick_ns;
            if (theirs > mine && now > theirs)
                note_return(me, static_cast<double>(now - theirs) * tick_ns);
            else if (theirs < mine && now > mine && since < kInterrupted)
                me->spun += since;
        }
        me->last.store(now, std::memory_order_relaxed);
        if (now >= begin)
            look_at_clock(now);
    }
    return nullptr;
}

// --- the threads -------------------------------------------------------------------------------------------

struct Row {
    const char *key, *name;
    klt_model::Form form = {};
};

constexpr const char *kThrum = "klt", *kKernel = "kernel";
constexpr std::size_t kPublished = 0; // the row that others are compared with
const std::array<Row, 10> kRows = {{
    {"pool", "model: futex, pools of the workers', affinity where it changes", {false, false, false, true}},
    {"pool-signal", "the same, sigsuspend and pthread_kill", {true, false, false, true}},
    {"pool-one", "the same, one pool for all workers", {false, true, false, true}},
    {"pool-affinity", "the same, affinity always set", {false, false, true, true}},
    {"pool-all", "the same, all three", {true, true, true, true}},
    {"direct", "model: next unit chosen in the handler, futex", {false, false, false, false}},
    {"direct-signal", "the same with sigsuspend and pthread_kill", {true, false, false, false}},
    {"direct-affinity", "the same with affinity always set", {false, false, true, false}},
    {kThrum, "thrum, klt", {}},
    {kKernel, "kernel threads, 1:1", {}},
}};

std::vector<int> cpus_for(std::size_t workers) {
    std::vector<int> cpus = preempt::cpus();
    cpus.resize(std::min(cpus.size(), workers));
    return cpus;
}

void run_model(const Row &row, const std::vector<int> &cpus, double slice_us) {
    const auto body = [](std::size_t unit) { spin(&units[unit]); };
    if (klt_model::run(row.form, cpus, kUnits, slice_us, body) == 0)
        throw bench::Failure(std::string(row.key) + ": no thread was preempted");
}

void run_kernel_threads(const std::vector<int> &cpus) {
    std::vector<pthread_t> threads(units.size());
    for (std::size_t i = 0; i < threads.size(); i++) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(cpus[i / kUnits], &set);
        pthread_attr_t attr;
        pthread_attr_init(&attr);
        preempt::check(pthread_attr_setaffinity_np(&attr, sizeof set, &set), "pthread_attr_setaffinity_np");
        preempt::check(pthread_create(&threads[i], &attr, spin, &units[i]), "pthread_create");
        pthread_attr_destroy(&attr);
    }
    for (const pthread_t thread : threads)
        pthread_join(thread, nullptr);
}

// Each unit stays with its worker, and THRUM_BIND keeps that on a CPU.
bool run_threads(std::size_t workers) {
    if (!preempt::init(static_cast<unsigned>(workers)))
        return false;
    std::vector<thrum_t> threads(units.size());
    for (std::size_t i = 0; i < threads.size(); i++) {
        thrum_attr_t attr;
        thrum_attr_init(&attr);
        thrum_attr_set_flags(&attr, THRUM_SPAWN_QUEUED);
        thrum_attr_set_worker(&attr, static_cast<unsigned>(i / kUnits));
        preempt::check(thrum_spawn(&threads[i], &attr, spin, &units[i]), "thrum_spawn");
    }
    for (const thrum_t thread : threads)
        preempt::check(thrum_join(thread, nullptr), "thrum_join");
    return true;
}

// --- in the child ------------------------------------------------------------------------------------------

void make_units(std::size_t count) {
    for (std::size_t i = 0; i < count; i++)
        units.emplace_back().gaps.reserve(kMost);
    for (std::size_t i = 0; i < count; i++)
        units[i].other = &units[i ^ 1U];
}

void report_returns() {
    std::vector<double> gaps;
    double spun = 0, returns = 0;
    for (const Unit &unit : units) {
        gaps.insert(gaps.end(), unit.gaps.begin(), unit.gaps.end());
        spun += unit.spun;
        returns += static_cast<double>(unit.returns);
    }
    if (returns < static_cast<double>(kEnough * units.size()))
        throw bench::Failure("there were too few preemptions; the machine is too busy");
    std::printf("%.1f %.1f %.0f\n", (cpu_at_end - cpu_at_begin - spun) / returns, bench::quantile(&gaps, 0.5),
                returns);
}

// ROW WORKERS SECONDS SLICE.
void work(const std::vector<std::string> &words) {
    const Row &row =
        *std::find_if(kRows.begin(), kRows.end(), [&](const Row &each) { return words.at(0) == each.key; });
    const std::vector<int> cpus = cpus_for(std::stoul(words.at(1)));
    make_units(cpus.size() * kUnits);
    tick_ns = preempt::ns_per_tick();
    const auto ticks = [](double ns) { return static_cast<std::uint64_t>(ns / tick_ns); };
    begin = arch_ticks() + ticks(kWarm);
    end = begin + ticks(std::stod(words.at(2)) * 1e9);
    latest_end = end + ticks(kPatience);
    if (row.key == std::string(kKernel))
        run_kernel_threads(cpus);
    else if (row.key != std::string(kThrum))
        run_model(row, cpus, std::stod(words.at(3)));
    else if (!run_threads(cpus.size()))
        return preempt::say_unavailable();
    report_returns();
}

// --- in the parent -----------------------------------------------------------------------------------------

enum : std::size_t { kCpu, kGap, kReturns, kNumbers }; // what report_returns() says

bench::Rounds<bench::Numbers> measure(const bench::Options &options, std::size_t workers) {
    const double slice = options.numbers[3];
    bench::Environment environment = preempt::armed(options.library, kThrum, slice);
    environment.set("THRUM_BIND", "cpu");
    bench::Turns turns{options.numbers[0], {}};
    for (const Row &row : kRows)
        turns.variants.emplace_back(row.name);
    return bench::Rounds<bench::Numbers>(turns, [&](std::size_t which, std::size_t) {
        return preempt::measured({kRows[which].key, std::to_string(workers),
                                  std::to_string(options.numbers[1]), std::to_string(slice)},
                                 environment, kNumbers);
    });
}

bench::Table table_of(const bench::Rounds<bench::Numbers> &rounds) {
    bench::Table table{"preempt_forms",
                       "One preemption by KLT-switching, in its forms",
                       {{"form", "form", "", 0},
                        {"cpu", "CPU time", "ns", 0},
                        {"gap", "from one unit to the next, median", "ns", 0},
                        {"to_published", "CPU time to the first row", "x", 2},
                        {"to_kernel", "to the kernel", "x", 2},
                        {"count", "preemptions", "", 0}},
                       {}};
    for (std::size_t i = 0; i < kRows.size(); i++)
        if (rounds.has(i))
            table.rows.push_back({kRows[i].name, rounds.of(i, bench::nth(kCpu)),
                                  rounds.of(i, bench::nth(kGap)),
                                  rounds.ratio(i, kPublished, bench::nth(kCpu)),
                                  rounds.ratio(i, kRows.size() - 1, bench::nth(kCpu)),
                                  rounds.of(i, bench::nth(kReturns)).median});
        else
            table.rows.push_back(preempt::row_unavailable({kRows[i].name}, table));
    return table;
}

void body(const bench::Options &options) {
    bench::Report report(options);
    const std::size_t workers = cpus_for(static_cast<std::size_t>(options.numbers[2])).size();
    report.add(table_of(measure(options, workers)));
    report.note("Workers: " + std::to_string(workers) +
                ", each on a CPU of its own, with two units that never wait; the kernel's own slices are as "
                "long as it likes.");
    report.note("The model's first five rows go from one unit to the next by way of a kernel thread of the "
                "pool, which chooses; the others straight, and ask no pool.");
    report.note("CPU time: what the process used above what its units spun, for each preemption; without "
                "interrupts that preempted no thread.");
    report.print();
}

} // namespace

int main(int argc, char **argv) {
    return bench::main_of(argc, argv,
                          {"preempt_forms",
                           "What the ways to do KLT-switching cost, by a model of it, beside libthrum's and "
                           "the kernel's threads.",
                           {{"--rounds", "Measurements of each row", 2, 10, 20, 1, 1000},
                            {"--seconds", "How long each is", 0.1, 1, 3, 0.01, 100},
                            {"--workers", "Workers, as far as there are CPUs", 2, 2, 2, 1, 64},
                            {"--slice", "The time slice, us", 1000, 1000, 1000, 50, 1000000}},
                           {},
                           true,
                           {},
                           "libthrum.so"},
                          body, work);
}
