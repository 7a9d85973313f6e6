// SPDX-License-Identifier: Apache-2.0
//
// What being preempted costs a program that computes: so much work, in several threads on each worker or in one alone, in
// each mode of libthrum and with slices from 100 us to 10 ms, against the same without preemption; and beside it the
// machine's own price of an interrupt: kernel threads that do the same work while timers of the same period interrupt them
// for nothing. Each ratio is of two processes that ran one after the other, now this one first, now that. CPU time: with
// it other programs, and the order in which workers come to an end, do not count.
#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <iterator>
#include <sstream>

#include "preempt.hpp"
#include "tools/text.hpp"
#include "verdict.hpp"

namespace {

constexpr std::array<double, 7> kSlices = {100, 200, 500, 1000, 2000, 5000, 10000}; // us
constexpr double kAimed = 1000; // the slice for which there is an aim, where there are several threads
constexpr std::size_t kUnitsOfWorker = 4;
constexpr const char *kTimer = "timer", *kNone = "none";

// --- in the child ------------------------------------------------------------------------------------------

// One after the other, in registers: it takes as long as it takes, wherever it runs.
void *compute(void *turns) {
    std::uint64_t state = 1;
    for (std::uint64_t left = *static_cast<const std::uint64_t *>(turns); left > 0; left--) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        __asm__ volatile("" : "+r"(state));
    }
    return nullptr;
}

// How many turns take so long; the parent asks once, so that all do the same.
double turns_of(double ns) {
    constexpr std::uint64_t kTurns = 2000000;
    std::vector<double> rates;
    for (int i = 0; i < 15; i++) {
        const double since = preempt::cpu_ns();
        std::uint64_t turns = kTurns;
        compute(&turns);
        rates.push_back(static_cast<double>(kTurns) / (preempt::cpu_ns() - since));
    }
    return ns * bench::quantile(&rates, 0.5);
}

void report_cpu(const std::function<void()> &act) {
    const double since = preempt::cpu_ns();
    act();
    std::printf("%.0f\n", preempt::cpu_ns() - since);
}

// As run_timers() wants them.
struct Interrupted {
    std::uint64_t turns;
    double period_us, first_ns;
};

void nothing(int, siginfo_t *, void *) {}

void *compute_with_timer(void *arg) {
    auto *self = static_cast<Interrupted *>(arg);
    if (self->period_us == 0)
        return compute(&self->turns);
    const preempt::Timer timer(SIGUSR1, self->first_ns, self->period_us);
    return compute(&self->turns);
}

// Kernel threads, which do not tick at the same time. Without a period: no interrupts.
void run_kernel_threads(std::size_t count, std::uint64_t turns, double period_us) {
    preempt::handle(SIGUSR1, nothing);
    report_cpu([&] {
        std::vector<Interrupted> parts(count);
        std::vector<pthread_t> threads(count);
        const double now = preempt::now_ns();
        for (std::size_t i = 0; i < count; i++) {
            const double phase = static_cast<double>(i + 1) / static_cast<double>(count);
            parts[i] = {turns / count, period_us, now + 1e6 + phase * period_us * 1e3};
            preempt::check(pthread_create(&threads[i], nullptr, compute_with_timer, &parts[i]),
                           "pthread_create");
        }
        for (const pthread_t thread : threads)
            pthread_join(thread, nullptr);
    });
}

bool run_threads(unsigned workers, std::size_t count, std::uint64_t turns) {
    if (!preempt::init(workers))
        return false;
    std::vector<thrum_t> threads(count);
    std::uint64_t part = turns / count;
    report_cpu([&] {
        preempt::check(thrum_spawn_many(count, threads.data(), nullptr, compute, &part, 0),
                       "thrum_spawn_many");
        for (const thrum_t thread : threads)
            preempt::check(thrum_join(thread, nullptr), "thrum_join");
    });
    return true;
}

// "turns NS", "timer WORKERS TURNS PERIOD", "thrum WORKERS THREADS TURNS".
void work(const std::vector<std::string> &words) {
    const std::string &what = words.at(0);
    if (what == "turns") {
        std::printf("%.0f\n", turns_of(std::stod(words.at(1))));
    } else if (what == kTimer) {
        run_kernel_threads(std::stoul(words.at(1)), std::stoull(words.at(2)), std::stod(words.at(3)));
    } else if (!run_threads(static_cast<unsigned>(std::stoul(words.at(1))), std::stoul(words.at(2)),
                            std::stoull(words.at(3)))) {
        preempt::say_unavailable();
    }
}

// --- in the parent -----------------------------------------------------------------------------------------

// Those that --modes lists.
std::vector<std::string> modes_of(const std::string &list) {
    std::vector<std::string> modes;
    std::istringstream words(list);
    for (std::string mode; std::getline(words, mode, ',');) {
        const std::size_t slash = mode.find('/');
        const bool is_source = slash == std::string::npos || mode.substr(slash) == "/monitor";
        if (!is_source || std::find(std::begin(preempt::kModes), std::end(preempt::kModes),
                                    mode.substr(0, slash)) == std::end(preempt::kModes))
            throw bench::Failure("--modes takes yield, lend, own-tls and klt, with commas between, each with "
                                 "/monitor behind it where ticks are to be the monitor's, not '" +
                                     list + "'",
                                 bench::Failure::kUsage);
        modes.push_back(mode);
    }
    return modes;
}

bool is_monitors(const std::string &mode) {
    return mode.find('/') != std::string::npos;
}

// A mode, or the timer, at one slice.
struct Line {
    std::string key;
    std::size_t slice;
    std::size_t threads; // 0: kernel threads
};

enum : std::size_t { kPlain, kInterrupted, kBoth }; // the variants of a line

class Run {
  public:
    explicit Run(const bench::Options &options)
        : options_(options), modes_(modes_of(options.texts[0])), workers_(options.numbers[2]),
          lines_(all_lines()), rounds_(measure()) {}

    bool has(const std::string &key, std::size_t slice, std::size_t threads) const {
        return rounds_.has(kBoth * place(key, slice, threads) + kInterrupted);
    }
    // CPU time to that without interrupts.
    std::vector<double> ratios(const std::string &key, std::size_t slice, std::size_t threads) const {
        const std::size_t plain = kBoth * place(key, slice, threads) + kPlain;
        return rounds_.ratios(plain + kInterrupted, plain, bench::nth(0));
    }
    const std::vector<std::string> &modes() const { return modes_; }
    std::size_t several() const { return kUnitsOfWorker * static_cast<std::size_t>(workers_); }

  private:
    std::size_t place(const std::string &key, std::size_t slice, std::size_t threads) const {
        for (std::size_t i = 0; i < lines_.size(); i++)
            if (lines_[i].key == key && lines_[i].slice == slice && lines_[i].threads == threads)
                return i;
        throw bench::Failure("there is no line of " + key);
    }
    bench::Environment plain() const { return preempt::armed(options_.library, kNone, kSlices.back()); }
    std::vector<Line> all_lines() const;
    bench::Rounds<bench::Numbers> measure() const;
    std::optional<bench::Numbers> cpu(const Line &line, bool interrupted, const std::string &turns) const;

    const bench::Options &options_;
    const std::vector<std::string> modes_;
    const double workers_;
    const std::vector<Line> lines_;
    const bench::Rounds<bench::Numbers> rounds_;
};

std::vector<Line> Run::all_lines() const {
    std::vector<Line> lines;
    for (std::size_t slice = 0; slice < kSlices.size(); slice++) {
        lines.push_back({kTimer, slice, 0});
        for (const std::string &mode : modes_)
            for (const std::size_t threads : {several(), std::size_t{1}})
                lines.push_back({mode, slice, threads});
    }
    return lines;
}

std::optional<bench::Numbers> Run::cpu(const Line &line, bool interrupted, const std::string &turns) const {
    const std::string workers = thrum::fixed(workers_, 0);
    const double slice = kSlices[line.slice];
    if (line.threads == 0)
        return preempt::measured({kTimer, workers, turns, interrupted ? std::to_string(slice) : "0"}, plain(),
                                 1);
    return preempt::measured({"thrum", workers, std::to_string(line.threads), turns},
                             preempt::armed(options_.library, interrupted ? line.key : kNone, slice), 1);
}

bench::Rounds<bench::Numbers> Run::measure() const {
    const double ns = options_.numbers[1] * 1e6 * workers_;
    const std::string turns =
        thrum::fixed(preempt::measured({"turns", std::to_string(ns)}, plain(), 1).value()[0], 0);
    bench::Turns all{options_.numbers[0], {}, kBoth};
    for (const Line &line : lines_)
        for (const char *how : {" without", ""})
            all.variants.push_back(line.key + ", " + thrum::fixed(kSlices[line.slice], 0) + " us" + how);
    return bench::Rounds<bench::Numbers>(all, [&](std::size_t which, std::size_t) {
        return cpu(lines_[which / kBoth], which % kBoth == kInterrupted, turns);
    });
}

// --- tables -----------------------------------------------------------------------------------------------

// What is beyond 1, or beyond what a timer takes in the same round.
std::vector<double> in_percent(const std::vector<double> &ratios,
                               const std::vector<double> *timers = nullptr) {
    std::vector<double> values;
    for (std::size_t i = 0; i < ratios.size(); i++)
        values.push_back(100 * (ratios[i] - (timers != nullptr ? (*timers)[i] : 1)));
    return values;
}

// Of several threads: whether at 1 ms no more than the limit comes on top of what a timer takes, where ticks are timers'. Of
// one alone: whether no slice costs more than the limit.
bench::Table table_of(const Run &run, const char *key, const char *title, std::size_t threads,
                      const bench::Options &options, bench::Verdicts *verdicts) {
    const bool beside_timer = threads != 1;
    bench::Table table{key,
                       title,
                       {{"mode", "mode", "", 0},
                        {"slice", "slice", "us", 0},
                        {"ratio", "CPU time to none", "x", 4},
                        {"overhead", "overhead", "%", 2}},
                       {}};
    if (beside_timer) {
        table.columns.push_back({"timer", "a timer's own", "%", 2});
        table.columns.push_back({"beyond", "beyond that", "%", 2});
    }
    table.columns.push_back({"verdict", beside_timer ? "beyond" : "overhead", "verdict", 0});
    for (const std::string &mode : run.modes()) {
        if (!run.has(mode, 0, threads)) {
            table.rows.push_back(preempt::row_unavailable({mode}, table));
            continue;
        }
        for (std::size_t slice = 0; slice < kSlices.size(); slice++) {
            const std::vector<double> ratios = run.ratios(mode, slice, threads);
            std::vector<bench::Cell> row = {mode, kSlices[slice], bench::estimate(ratios),
                                            bench::estimate(in_percent(ratios))};
            if (beside_timer) {
                const std::vector<double> timer = run.ratios(kTimer, slice, 0);
                row.emplace_back(bench::estimate(in_percent(timer)));
                const bench::Estimate beyond = bench::estimate(in_percent(ratios, &timer));
                row.emplace_back(beyond);
                row.emplace_back(kSlices[slice] == kAimed && !is_monitors(mode)
                                     ? verdicts->at_most(beyond, options.numbers[3])
                                     : "-");
            } else {
                const std::size_t cases = run.modes().size() * kSlices.size();
                row.emplace_back(
                    verdicts->at_most(bench::estimate(in_percent(ratios), cases), options.numbers[4]));
            }
            table.rows.push_back(row);
        }
    }
    return table;
}

// One thread alone, with all slices together: so less can be seen than in each.
bench::Table alone(const Run &run, const bench::Options &options, bench::Verdicts *verdicts) {
    bench::Table table{
        "alone",
        "One thread alone, of all slices",
        {{"mode", "mode", "", 0}, {"overhead", "overhead", "%", 2}, {"verdict", "overhead", "verdict", 0}},
        {}};
    for (const std::string &mode : run.modes()) {
        if (!run.has(mode, 0, 1)) {
            table.rows.push_back(preempt::row_unavailable({mode}, table));
            continue;
        }
        std::vector<double> ratios;
        for (std::size_t slice = 0; slice < kSlices.size(); slice++) {
            const std::vector<double> more = run.ratios(mode, slice, 1);
            ratios.insert(ratios.end(), more.begin(), more.end());
        }
        const bench::Estimate overhead = bench::estimate(in_percent(ratios));
        table.rows.push_back({mode, overhead, verdicts->at_most(overhead, options.numbers[4])});
    }
    return table;
}

void body(const bench::Options &options) {
    bench::Report report(options);
    bench::Verdicts verdicts;
    const Run run(options);
    report.add(table_of(run, "several", "Several threads that compute on each worker", run.several(), options,
                        &verdicts));
    report.add(table_of(run, "one", "One thread that computes, alone", 1, options, &verdicts));
    report.add(alone(run, options, &verdicts));
    report.note("Several: " + std::to_string(kUnitsOfWorker) +
                " a worker. Each ratio is of two processes, one after the other; none is pinned.");
    report.note("A timer's own: the same work in as many kernel threads as there are workers, each with a "
                "timer of that "
                "period and a handler that does nothing, to the same without.");
    report.note(
        "The aims: at 1 ms at most 1 % beyond a timer's own, where ticks are timers'; for one thread alone "
        "nothing that can be measured, which is 0.2 % here.");
    bench::conclude(&report, options, verdicts);
}

} // namespace

int main(int argc, char **argv) {
    return bench::main_of(
        argc, argv,
        {"preempt_overhead",
         "What being preempted costs a program that computes, by time slice, in each mode of libthrum.",
         {{"--rounds", "Pairs of measurements of each row", 2, 25, 61, 1, 1000},
          {"--length", "How long each worker computes, ms", 5, 100, 100, 1, 10000},
          {"--workers", "Workers", 2, 2, 2, 1, 64},
          {"--beyond-limit", "Limit at 1 ms, in % beyond a timer's own", 1, 1, 1, -1e6, 1e6},
          {"--alone-limit", "Limit of a thread alone, in %", 0.2, 0.2, 0.2, -1e6, 1e6}},
         {{"--modes", "MODE,...", "Modes to measure; with /monitor ticks are the monitor's, else timers'",
           "yield,lend,own-tls,klt,lend/monitor"}},
         true,
         {bench::kCheck},
         "libthrum.so"},
        body, work);
}
