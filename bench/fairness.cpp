// SPDX-License-Identifier: Apache-2.0
//
// Which threads get the CPU: those that wait often, or sleep, beside as many that compute as there are workers, with the default
// slice. How much of their speed without these the former keep, how much of theirs the latter, how late sleepers are; and
// the same of Go, where the target bench-peers has built it. Each measurement is a process of its own.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iterator>
#include <list>
#include <optional>

#include "preempt.hpp"
#include "tools/text.hpp"
#include "verdict.hpp"

namespace {

constexpr unsigned kPairSteps = 300, kHogSteps = 30000; // also in peers/go/fairness.go
constexpr std::uint64_t kWarmUp = 100 * THRUM_MS, kSleep = 5 * THRUM_MS;

// --- in the child ------------------------------------------------------------------------------------------

std::atomic<bool> stop{false};
std::atomic<std::uint64_t> operations{0}, loops{0};

__attribute__((noinline)) void mix(unsigned steps) {
    unsigned sum = 0;
    for (unsigned i = 0; i < steps; i++) {
        sum += i ^ sum;
        __asm__ volatile("" : "+r"(sum));
    }
}

struct Pair {
    thrum_sem_t there = {}, back = {};
    thrum_channel_t values = {};
    const char *kind;

    explicit Pair(const char *which) : kind(which) {
        preempt::check(thrum_sem_init(&there, 0), "thrum_sem_init");
        preempt::check(thrum_sem_init(&back, 0), "thrum_sem_init");
        preempt::check(thrum_channel_init(&values, sizeof(int), 0, nullptr), "thrum_channel_init");
    }
};

thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;

std::uint64_t soon() {
    return thrum_now() + THRUM_S; // at the end the other side may have left
}

void act(Pair *pair, bool first) {
    if (pair->kind[0] == 's') {
        if (first)
            thrum_sem_post(&pair->there);
        thrum_sem_wait_until(first ? &pair->back : &pair->there, soon());
        if (!first)
            thrum_sem_post(&pair->back);
    } else if (pair->kind[0] == 'm') {
        thrum_mutex_lock(&mutex);
        mix(kPairSteps);
        thrum_mutex_unlock(&mutex);
    } else {
        int value = 0;
        if (first)
            thrum_channel_send_until(&pair->values, &value, soon());
        else
            thrum_channel_receive_until(&pair->values, &value, soon());
    }
}

template <bool First>
void *side(void *arg) {
    while (!stop.load(std::memory_order_relaxed)) {
        mix(kPairSteps);
        act(static_cast<Pair *>(arg), First);
        operations++;
    }
    return nullptr;
}

void *hog(void *) {
    while (!stop.load(std::memory_order_relaxed)) {
        mix(kHogSteps);
        loops++;
    }
    return nullptr;
}

class Threads {
  public:
    void spawn(void *(*fn)(void *), void *arg) {
        threads_.emplace_back();
        preempt::check(thrum_spawn(&threads_.back(), nullptr, fn, arg), "thrum_spawn");
    }
    void join() {
        for (const thrum_t thread : threads_)
            preempt::check(thrum_join(thread, nullptr), "thrum_join");
    }

  private:
    std::vector<thrum_t> threads_;
};

void pairs(const char *kind, unsigned count, unsigned hogs, double seconds) {
    std::list<Pair> all;
    Threads threads;
    for (unsigned i = 0; i < count; i++) {
        all.emplace_back(kind);
        threads.spawn(side<true>, &all.back());
        threads.spawn(side<false>, &all.back());
    }
    for (unsigned i = 0; i < hogs; i++)
        threads.spawn(hog, nullptr);
    thrum_sleep(kWarmUp);
    const double before = static_cast<double>(operations), loops_before = static_cast<double>(loops),
                 since = preempt::now_ns();
    thrum_sleep(static_cast<std::uint64_t>(seconds * 1e9));
    const double passed = (preempt::now_ns() - since) / 1e9;
    std::printf("%.0f %.0f\n", (static_cast<double>(operations) - before) / passed,
                (static_cast<double>(loops) - loops_before) / passed);
    stop = true;
    threads.join();
}

struct Sleeper {
    std::uint64_t end;
    std::vector<double> late; // ms
};

void *sleep_often(void *arg) {
    auto *self = static_cast<Sleeper *>(arg);
    while (thrum_now() < self->end) {
        const std::uint64_t due = thrum_now() + kSleep;
        thrum_sleep(kSleep);
        self->late.push_back(static_cast<double>(thrum_now() - due) / 1e6);
    }
    return nullptr;
}

void sleepers(unsigned count, unsigned hogs, double seconds) {
    std::vector<Sleeper> all(count, {thrum_now() + static_cast<std::uint64_t>(seconds * 1e9), {}});
    Threads computing, sleeping;
    for (unsigned i = 0; i < hogs; i++)
        computing.spawn(hog, nullptr);
    for (Sleeper &sleeper : all)
        sleeping.spawn(sleep_often, &sleeper);
    sleeping.join();
    stop = true;
    computing.join();
    std::vector<double> late;
    for (const Sleeper &sleeper : all)
        late.insert(late.end(), sleeper.late.begin(), sleeper.late.end());
    std::printf("%.4f %.4f\n", bench::quantile(&late, 0.5), bench::quantile(&late, 0.99));
}

// KIND COUNT HOGS WORKERS SECONDS, as the peer.
void work(const std::vector<std::string> &words) {
    if (!preempt::init(static_cast<unsigned>(std::stoul(words.at(3)))))
        return preempt::say_unavailable();
    const auto count = static_cast<unsigned>(std::stoul(words.at(1))),
               hogs = static_cast<unsigned>(std::stoul(words.at(2)));
    const double seconds = std::stod(words.at(4));
    if (words.at(0) == "sleepers")
        sleepers(count, hogs, seconds);
    else
        pairs(words.at(0).c_str(), count, hogs, seconds);
}

// --- in the parent -----------------------------------------------------------------------------------------

enum Option : std::size_t { kRounds, kSeconds, kSleepers, kKeepLimit, kHogLimit, kLateLimit };

struct Row {
    const char *kind;
    unsigned count, workers;
};
constexpr Row kPairs[] = {{"semaphore", 1, 1},  {"channel", 1, 1},  {"mutex", 1, 1},
                          {"semaphore", 50, 2}, {"channel", 50, 2}, {"mutex", 50, 2}};
constexpr unsigned kSleepersOnWorkers[] = {1, 2};

// The child processes of one runtime in a row of pairs, and the numbers that they say: how often the pairs and the others did
// their work in a second. The variants of a row are ours, and then Go's.
enum : std::size_t { kAlone, kHogs, kBoth, kSides };
enum : std::size_t { kOurs, kGos, kRuntimes };
const auto kPairsDone = bench::nth(0), kHogsDone = bench::nth(1);

class Run {
  public:
    explicit Run(const bench::Options &options)
        : options_(options), pairs_(measure_pairs()), sleepers_(measure_sleepers()) {}

    bench::Table pairs(bench::Verdicts *verdicts) const {
        bench::Table table{"pairs",
                           "Pairs that hand over to each other, beside threads that compute, one a worker",
                           {{"what", "what", "", 0},
                            {"workers", "workers", "", 0},
                            {"alone", "alone", "1/ms", 0},
                            {"beside", "beside", "1/ms", 0},
                            {"kept", "kept", "", 2},
                            {"verdict_kept", "", "", 0},
                            {"hogs", "hogs keep", "", 2},
                            {"verdict_hogs", "", "", 0},
                            {"to_go", "to Go", "", 2},
                            {"go_kept", "Go keeps", "", 2},
                            {"go_hogs", "its hogs", "", 2}},
                           {}};
        for (std::size_t i = 0; i < std::size(kPairs); i++) {
            const std::vector<bench::Cell> name = {std::to_string(kPairs[i].count) + " x " + kPairs[i].kind,
                                                   static_cast<double>(kPairs[i].workers)};
            const std::size_t ours = i * kRuntimes * kSides, gos = ours + kSides;
            if (!pairs_.has(ours)) {
                table.rows.push_back(preempt::row_unavailable(name, table));
                continue;
            }
            const bench::Estimate kept = pairs_.ratio(ours + kBoth, ours + kAlone, kPairsDone),
                                  hogs = pairs_.ratio(ours + kBoth, ours + kHogs, kHogsDone);
            table.rows.push_back(name);
            std::vector<bench::Cell> &row = table.rows.back();
            row.insert(row.end(), {pairs_.of(ours + kAlone, bench::nth(0, 1e-3)),
                                   pairs_.of(ours + kBoth, bench::nth(0, 1e-3)), kept,
                                   verdicts->at_least(kept, options_.numbers[kKeepLimit]), hogs,
                                   verdicts->at_least(hogs, options_.numbers[kHogLimit])});
            if (pairs_.has(gos))
                row.insert(row.end(), {pairs_.ratio(ours + kBoth, gos + kBoth, kPairsDone),
                                       pairs_.ratio(gos + kBoth, gos + kAlone, kPairsDone),
                                       pairs_.ratio(gos + kBoth, gos + kHogs, kHogsDone)});
            row.resize(table.columns.size(), "-");
        }
        return table;
    }

    bench::Table sleepers(bench::Verdicts *verdicts) const {
        bench::Table table{
            "sleepers",
            "Threads that sleep for 5 ms again and again, beside threads that compute, one a worker",
            {{"what", "what", "", 0},
             {"workers", "workers", "", 0},
             {"late", "late, median", "ms", 3},
             {"late_p99", "p99", "ms", 3},
             {"verdict", "", "", 0},
             {"go_late", "Go, median", "ms", 3},
             {"go_late_p99", "p99", "ms", 3}},
            {}};
        for (std::size_t i = 0; i < std::size(kSleepersOnWorkers); i++) {
            const std::vector<bench::Cell> name = {thrum::fixed(options_.numbers[kSleepers], 0) + " sleepers",
                                                   static_cast<double>(kSleepersOnWorkers[i])};
            const std::size_t ours = i * kRuntimes, gos = ours + kGos;
            if (!sleepers_.has(ours)) {
                table.rows.push_back(preempt::row_unavailable(name, table));
                continue;
            }
            const bench::Estimate last = sleepers_.of(ours, bench::nth(1));
            table.rows.push_back(name);
            std::vector<bench::Cell> &row = table.rows.back();
            row.insert(row.end(), {sleepers_.of(ours, bench::nth(0)), last,
                                   verdicts->at_most(last, options_.numbers[kLateLimit]),
                                   sleepers_.cell(gos, bench::nth(0)), sleepers_.cell(gos, bench::nth(1))});
        }
        return table;
    }

    static std::string go() { return bench::beside("peers/go"); }
    static bool has_go() { return access(go().c_str(), X_OK) == 0; }

  private:
    // Nothing: the library has no preemption here, or there is no Go.
    std::optional<bench::Numbers> one(std::size_t runtime, const char *kind, unsigned count, unsigned hogs,
                                      unsigned workers) const {
        const std::vector<std::string> words = {kind, std::to_string(count), std::to_string(hogs),
                                                std::to_string(workers),
                                                std::to_string(options_.numbers[kSeconds])};
        if (runtime == kOurs)
            return preempt::measured(words, bench::Environment().preload(options_.library), 2);
        if (!has_go())
            return std::nullopt;
        std::vector<std::string> command = {go(), "fairness"};
        command.insert(command.end(), words.begin(), words.end());
        return bench::numbers_in(bench::run_well(command, bench::Environment()).output, 2);
    }

    bench::Rounds<bench::Numbers> measure_pairs() const {
        bench::Turns turns{options_.numbers[kRounds], {}, kRuntimes * kSides};
        for (const Row &row : kPairs)
            for (const char *runtime : {"thrum", "Go"})
                for (const char *side : {"alone", "hogs", "both"})
                    turns.variants.push_back(std::string(row.kind) + ", " + runtime + ", " + side);
        return bench::Rounds<bench::Numbers>(turns, [&](std::size_t which, std::size_t) {
            const Row &row = kPairs[which / kSides / kRuntimes];
            const std::size_t side = which % kSides;
            return one(which / kSides % kRuntimes, row.kind, side == kHogs ? 0 : row.count,
                       side == kAlone ? 0 : row.workers, row.workers);
        });
    }

    bench::Rounds<bench::Numbers> measure_sleepers() const {
        bench::Turns turns{options_.numbers[kRounds], {}, kRuntimes};
        for (const unsigned workers : kSleepersOnWorkers)
            for (const char *runtime : {"thrum", "Go"})
                turns.variants.push_back("sleepers, " + thrum::counted(workers, "worker") + ", " + runtime);
        return bench::Rounds<bench::Numbers>(turns, [&](std::size_t which, std::size_t) {
            const unsigned workers = kSleepersOnWorkers[which / kRuntimes];
            return one(which % kRuntimes, "sleepers", static_cast<unsigned>(options_.numbers[kSleepers]),
                       workers, workers);
        });
    }

    const bench::Options &options_;
    const bench::Rounds<bench::Numbers> pairs_, sleepers_;
};

void body(const bench::Options &options) {
    bench::Report report(options);
    const Run run(options);
    bench::Verdicts verdicts;
    report.add(run.pairs(&verdicts));
    report.add(run.sleepers(&verdicts));
    report.note("Kept: the speed beside threads that compute, to that without them; hogs: theirs, to that "
                "without the pairs.");
    if (!Run::has_go())
        report.note("Go is not there: it needs Go, and the target bench-peers.");
    bench::conclude(&report, options, verdicts);
}

} // namespace

int main(int argc, char **argv) {
    return bench::main_of(
        argc, argv,
        {"fairness",
         "Which threads get the CPU: those of libthrum that wait often or sleep, beside threads that "
         "compute.",
         {{"--rounds", "Measurements of each row", 1, 7, 15, 1, 1000},
          {"--seconds", "How long each measures, s", 0.1, 1, 2, 0.01, 1000},
          {"--sleepers", "How many sleep", 20, 200, 200, 1, 1e5},
          {"--keep-limit", "What the pairs keep at least", 0.4, 0.4, 0.4, 1e-6, 1},
          {"--hog-limit", "What the computing threads keep at least", 0.3, 0.3, 0.3, 1e-6, 1},
          {"--late-limit", "How late the sleepers may be at p99, ms", 1, 1, 1, 1e-6, 1e6}},
         {},
         true,
         {bench::kCheck},
         "libthrum.so"},
        body, work);
}
