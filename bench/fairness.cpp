// SPDX-License-Identifier: Apache-2.0
//
// Which threads get the CPU: those that wait often, or sleep, beside as many that compute as there are workers, with the default
// slice. How much of their speed without these the former keep, how much of theirs the latter, how late sleepers are; and
// the same of Go, where the target bench-peers has built it. Each measurement is a process of its own.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <list>
#include <sstream>

#include "preempt.hpp"
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
    std::vector<double> alone = {}, beside = {}, kept = {}, hogs = {}, late = {}, late_p99 = {}; // late: ms
    std::vector<double> to_go = {}, go_kept = {}, go_hogs = {}, go_late = {}, go_late_p99 = {};
};

class Run {
  public:
    explicit Run(const bench::Options &options)
        : options_(options), go_(bench::beside("peers/go")), has_go_(access(go_.c_str(), X_OK) == 0) {
        for (Row &row : sleepers_)
            row.count = static_cast<unsigned>(options.numbers[kSleepers]);
    }

    // False: the library has no preemption here.
    bool round() {
        for (Row &row : pairs_)
            if (!round_of_pairs(&row))
                return false;
        for (Row &row : sleepers_) {
            const std::vector<double> late = ours(row.kind, row.count, row.workers, row);
            if (late.empty())
                return false;
            row.late.push_back(late[0]);
            row.late_p99.push_back(late[1]);
            if (has_go_) {
                const std::vector<double> go = gos(row.kind, row.count, row.workers, row);
                row.go_late.push_back(go[0]);
                row.go_late_p99.push_back(go[1]);
            }
        }
        return true;
    }

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
        const double rounds = options_.numbers[kRounds];
        for (const Row &row : pairs_) {
            const std::string name = std::to_string(row.count) + " x " + row.kind;
            if (row.kept.empty()) {
                table.rows.push_back({name, static_cast<double>(row.workers), preempt::kUnavailable, "-", "-",
                                      "-", "-", "-", "-", "-", "-"});
                continue;
            }
            const bench::Estimate kept = bench::estimate(row.kept), hogs = bench::estimate(row.hogs);
            table.rows.push_back({name, static_cast<double>(row.workers), bench::estimate(row.alone),
                                  bench::estimate(row.beside), kept,
                                  verdicts->at_least(kept, options_.numbers[kKeepLimit], rounds), hogs,
                                  verdicts->at_least(hogs, options_.numbers[kHogLimit], rounds),
                                  cell(row.to_go), cell(row.go_kept), cell(row.go_hogs)});
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
        for (const Row &row : sleepers_) {
            const std::string name = std::to_string(row.count) + " sleepers";
            if (row.late.empty()) {
                table.rows.push_back(
                    {name, static_cast<double>(row.workers), preempt::kUnavailable, "-", "-", "-", "-"});
                continue;
            }
            const bench::Estimate last = bench::estimate(row.late_p99);
            table.rows.push_back(
                {name, static_cast<double>(row.workers), bench::estimate(row.late), last,
                 verdicts->at_most(last, options_.numbers[kLateLimit], options_.numbers[kRounds]),
                 cell(row.go_late), cell(row.go_late_p99)});
        }
        return table;
    }

    bool has_go() const { return has_go_; }

  private:
    static bench::Cell cell(const std::vector<double> &values) {
        return values.empty() ? bench::Cell("-") : bench::Cell(bench::estimate(values));
    }

    std::vector<std::string> words(const char *kind, unsigned count, unsigned hogs, const Row &row) const {
        return {kind, std::to_string(count), std::to_string(hogs), std::to_string(row.workers),
                std::to_string(options_.numbers[kSeconds])};
    }

    std::vector<double> ours(const char *kind, unsigned count, unsigned hogs, const Row &row) const {
        return preempt::measured(words(kind, count, hogs, row),
                                 bench::Environment().preload(options_.library), 2);
    }

    std::vector<double> gos(const char *kind, unsigned count, unsigned hogs, const Row &row) const {
        std::vector<std::string> command = {go_, "fairness"};
        const std::vector<std::string> more = words(kind, count, hogs, row);
        command.insert(command.end(), more.begin(), more.end());
        const bench::Ended ended = bench::run(command, bench::Environment(), true);
        std::istringstream line(ended.output);
        std::vector<double> values(2);
        line >> values[0] >> values[1];
        if (ended.status != 0 || !line)
            throw bench::Failure("peers/go fairness failed (wait status " + std::to_string(ended.status) +
                                 ")");
        return values;
    }

    bool round_of_pairs(Row *row) {
        const std::vector<double> alone = ours(row->kind, row->count, 0, *row),
                                  hogs = ours(row->kind, 0, row->workers, *row),
                                  both = ours(row->kind, row->count, row->workers, *row);
        if (alone.empty() || hogs.empty() || both.empty())
            return false;
        row->alone.push_back(alone[0] / 1e3);
        row->beside.push_back(both[0] / 1e3);
        row->kept.push_back(both[0] / alone[0]);
        row->hogs.push_back(both[1] / hogs[1]);
        if (has_go_) {
            const std::vector<double> go_alone = gos(row->kind, row->count, 0, *row),
                                      go_hogs = gos(row->kind, 0, row->workers, *row),
                                      go_both = gos(row->kind, row->count, row->workers, *row);
            row->to_go.push_back(both[0] / go_both[0]);
            row->go_kept.push_back(go_both[0] / go_alone[0]);
            row->go_hogs.push_back(go_both[1] / go_hogs[1]);
        }
        return true;
    }

    const bench::Options &options_;
    const std::string go_;
    const bool has_go_;
    std::vector<Row> pairs_ = {{"semaphore", 1, 1},  {"channel", 1, 1},  {"mutex", 1, 1},
                               {"semaphore", 50, 2}, {"channel", 50, 2}, {"mutex", 50, 2}};
    std::vector<Row> sleepers_ = {{"sleepers", 0, 1}, {"sleepers", 0, 2}};
};

void body(const bench::Options &options) {
    bench::Report report(options);
    Run run(options);
    for (int round = 0; round < static_cast<int>(options.numbers[kRounds]); round++) {
        bench::progress("round " + std::to_string(round + 1));
        if (!run.round())
            break;
    }
    bench::Verdicts verdicts;
    report.add(run.pairs(&verdicts));
    report.add(run.sleepers(&verdicts));
    report.note("Kept: the speed beside threads that compute, to that without them; hogs: theirs, to that "
                "without the pairs.");
    if (!run.has_go())
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
