// SPDX-License-Identifier: Apache-2.0
//
// Sleep: how late threads of libthrum come out of it, a thousand for the same moment and 100,000 for moments spread over
// two seconds, and what CPU time a runtime uses that has nothing to do. The aim on a quiet machine: 99 of 100 less than a
// millisecond late; no CPU time that can be measured.
#include <iterator>

#include "rounds.hpp"
#include "tools/text.hpp"
#include "verdict.hpp"

namespace {

constexpr unsigned kKernel = 0; // workers: kernel threads sleep

struct Scene {
    const char *key, *name;
    unsigned workers;
    double threads;
    double first_ms, last_ms;
};

std::vector<Scene> scenes(const bench::Options &options) {
    const double ms = options.numbers[1] * 1e3, many = options.numbers[2];
    return {{"same", "1024 for the same moment, 4 workers", 4, 1024, ms, ms},
            {"same_usual", "1024 for the same moment, 2 workers", 2, 1024, ms, ms},
            {"same_kernel", "1024 kernel threads for the same moment", kKernel, 1024, ms, ms},
            {"spread", "many for moments all the time, 4 workers", 4, many, 0, ms},
            {"spread_usual", "many for moments all the time, 2 workers", 2, many, 0, ms}};
}

std::string text(double value) {
    return thrum::fixed(value, 0);
}

bench::Numbers numbers_of(const std::vector<std::string> &words, std::size_t count) {
    std::vector<std::string> command = {bench::beside("programs/sleepers")};
    command.insert(command.end(), words.begin(), words.end());
    return bench::numbers_in(bench::run_well(command, bench::Environment()).output, count);
}

constexpr std::size_t kSameUsual = 1, kSameKernel = 2; // of the scenes
constexpr auto kPercentile = 1;                        // of the numbers

std::vector<std::string> words_of(const Scene &scene) {
    std::vector<std::string> words = {"kernel"};
    if (scene.workers != kKernel)
        words = {"sleep", std::to_string(scene.workers)};
    for (const double number : {scene.threads, scene.first_ms, scene.last_ms})
        words.push_back(text(number));
    return words;
}

void lateness(const bench::Options &options, bench::Report *report, bench::Verdicts *verdicts) {
    bench::Table table{"lateness",
                       "How late threads come out of a sleep",
                       {{"what", "threads that sleep", "", 0},
                        {"threads", "threads", "", 0},
                        {"median", "median", "us", 1},
                        {"p99", "99th percentile", "us", 1},
                        {"most", "most", "us", 1},
                        {"cpu", "CPU time, all", "ms", 1}},
                       {}};
    const std::vector<Scene> all = scenes(options);
    bench::Turns turns{options.numbers[0], {}};
    for (const Scene &scene : all)
        turns.variants.emplace_back(scene.key);
    const bench::Rounds<bench::Numbers> rounds(
        turns, [&](std::size_t which, std::size_t) { return numbers_of(words_of(all[which]), 4); });
    for (std::size_t i = 0; i < all.size(); i++)
        table.rows.push_back({all[i].name, text(all[i].threads), rounds.of(i, bench::nth(0)),
                              rounds.of(i, bench::nth(kPercentile)), rounds.of(i, bench::nth(2)),
                              rounds.of(i, bench::nth(3))});
    report->add(table);
    const bench::Estimate ratio = rounds.ratio(kSameUsual, kSameKernel, bench::nth(kPercentile));
    report->add(
        {"lateness_ratio",
         "99th percentile of 1024 for the same moment, 2 workers, to kernel threads'",
         {{"what", "threads that sleep", "", 0},
          {"ratio", "ratio", "x", 3},
          {"limit", "limit", "x", 3},
          {"verdict", "limit", "verdict", 0}},
         {{all[kSameUsual].name, ratio, options.numbers[3], verdicts->at_most(ratio, options.numbers[3])}}});
}

bench::Table idle(const bench::Options &options) {
    bench::Table table{"idle",
                       "CPU time of a runtime that has nothing to do",
                       {{"workers", "workers", "", 0}, {"cpu", "CPU time, a second", "us", 1}},
                       {}};
    constexpr unsigned kWorkers[] = {1, 2, 4, 64};
    const double seconds = options.numbers[1];
    bench::Turns turns{options.numbers[0], {}};
    for (const unsigned workers : kWorkers)
        turns.variants.push_back("idle, " + thrum::counted(workers, "worker"));
    const bench::Rounds<bench::Numbers> rounds(turns, [&](std::size_t which, std::size_t) {
        return numbers_of({"idle", std::to_string(kWorkers[which]), text(seconds * 1e3)}, 1);
    });
    for (std::size_t i = 0; i < std::size(kWorkers); i++)
        table.rows.push_back({std::to_string(kWorkers[i]), rounds.of(i, bench::nth(0, 1e3 / seconds))});
    return table;
}

void body(const bench::Options &options) {
    bench::Report report(options);
    bench::Verdicts verdicts;
    lateness(options, &report, &verdicts);
    report.add(idle(options));
    report.note(
        "The aim: a 99th percentile below 1000 us on a quiet machine, and no CPU time that can be measured.");
    bench::conclude(&report, options, verdicts);
}

} // namespace

int main(int argc, char **argv) {
    return bench::main_of(
        argc, argv,
        {"sleep",
         "How late threads of libthrum come out of a sleep, and what an idle runtime costs.",
         {{"--rounds", "Measurements of each row", 1, 5, 15, 1, 1000},
          {"--seconds", "How long is slept", 0.2, 2, 2, 0.01, 100},
          {"--many", "Threads whose moments are spread over that", 2000, 100000, 100000, 100, 1000000},
          {"--late-limit", "Limit of the ratio to kernel threads'", 0.1, 0.1, 0.1, 1e-6, 1e6}},
         {},
         false,
         {bench::kCheck}},
        body);
}
