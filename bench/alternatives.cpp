// SPDX-License-Identifier: Apache-2.0
//
// Reuse beside the alternatives that Dice and Kogan weigh against it: standby threads with a filler thread, standby
// threads that each ending thread replaces, and fresh threads on cached stacks (alternatives/mode.h: a library of their own).
// All against libc alone, in turns. Threads that do nothing, and threads that compute for a while: the paper has found
// nothing to gain by standby threads for the first, something for the second. One thread at a time per creator, and for
// one creator also batches, larger than libc's own cache of stacks (40 MB).
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "rounds.hpp"
#include "tools/text.hpp"

namespace {

constexpr std::uint64_t kFewestBatches = 8;

struct Shape {
    unsigned creators, at_once;
};
constexpr Shape kShapes[] = {{1, 1}, {2, 1}, {8, 1}, {1, 16}};
constexpr double kLives[] = {0, 100, 1000}; // µs

// --- in the measuring process --------------------------------------------------------------------------------

// A fixed amount of work, not of time: what a thread loses to others is not to count as done.
void compute(std::uint64_t steps) {
    for (std::uint64_t i = 0; i < steps; i++)
        __asm__ volatile("" : : "r"(i));
}

double steps_per_us() {
    using Clock = std::chrono::steady_clock;
    constexpr std::uint64_t kSteps = 200000;
    double best = 0;
    for (int i = 0; i < 100; i++) {
        const Clock::time_point begin = Clock::now();
        compute(kSteps);
        const double us = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
        best = std::max(best, kSteps / us);
    }
    return best;
}

std::uint64_t create(unsigned at_once, std::uint64_t steps,
                     const std::function<bool(std::uint64_t)> &enough) {
    std::vector<std::thread> batch(at_once);
    std::uint64_t threads = 0;
    do {
        for (std::thread &thread : batch)
            thread = std::thread(compute, steps);
        for (std::thread &thread : batch)
            thread.join();
        threads += at_once;
    } while (threads < kFewestBatches * at_once || !enough(threads));
    return threads;
}

std::uint64_t create_by_all(const Shape &shape, std::uint64_t steps, double seconds) {
    std::vector<std::uint64_t> counts(shape.creators);
    std::vector<std::thread> team;
    for (std::uint64_t &count : counts)
        team.emplace_back([&count, &shape, steps, seconds] {
            count = create(shape.at_once, steps, bench::after_seconds(seconds));
        });
    std::uint64_t sum = 0;
    for (unsigned i = 0; i < shape.creators; i++) {
        team[i].join();
        sum += counts[i];
    }
    return sum;
}

void work(const std::vector<std::string> &words) {
    if (words.size() != 4)
        throw bench::Failure("--work takes creators, threads at once, computing steps and seconds");
    const Shape shape{static_cast<unsigned>(std::strtoul(words[0].c_str(), nullptr, 10)),
                      static_cast<unsigned>(std::strtoul(words[1].c_str(), nullptr, 10))};
    const std::uint64_t steps = std::strtoull(words[2].c_str(), nullptr, 10);
    const double seconds = std::strtod(words[3].c_str(), nullptr);
    create_by_all(shape, 0, 0); // to warm up
    bench::report_work([&] { return create_by_all(shape, steps, seconds); });
}

// --- in the parent ---------------------------------------------------------------------------------------------

struct Mode {
    const char *name;
    bench::Environment environment;
    bool reuses;
};

std::vector<Mode> modes(const std::string &library) {
    std::vector<Mode> list = {{"default", {}, false}, {"reuse", bench::Environment().preload(library), true}};
    for (const char *name : {"standby", "standby-helping", "stacks"}) {
        bench::Environment environment;
        environment.preload(bench::beside("programs/libthrum-alternatives.so"))
            .set("THRUM_ALTERNATIVE", name);
        list.push_back({name, environment, false});
    }
    return list;
}

// In percent.
double served(const bench::Sample &sample, const Mode &mode) {
    return std::min(100.0, (mode.reuses ? sample.reused : sample.created) / sample.operations * 100);
}

bench::Table empty_table() {
    return {"alternatives",
            std::string("Threads created and joined") + bench::kMedians,
            {{"life_us", "work", "µs/thread", 0},
             {"creators", "creators", "", 0},
             {"at_once", "at once", "threads", 0},
             {"mode", "mode", "", 0},
             {"per_s", "rate", "1000/s", 1},
             {"speedup", "rate", "× default", 2},
             {"cpu_us", "CPU", "µs/thread", 1},
             {"cpu_speedup", "CPU", "× default", 2},
             {"served", "served", "%", 0}},
            {}};
}

void body(const bench::Options &options) {
    const std::vector<Mode> list = modes(options.library);
    const double speed = steps_per_us();
    bench::Report report(options);
    bench::Table table = empty_table();
    const auto rate = &bench::Sample::thousands_per_second;
    const auto cpu = &bench::Sample::cpu_us_each;
    for (const double life : kLives)
        for (const Shape &shape : kShapes) {
            const std::vector<std::string> words = {
                std::to_string(shape.creators), std::to_string(shape.at_once),
                std::to_string(static_cast<std::uint64_t>(life * speed)), std::to_string(options.numbers[0])};
            bench::Turns turns{options.numbers[1], {}};
            for (const Mode &mode : list)
                turns.variants.push_back(thrum::fixed(life, 0) + " µs, " + words[0] + " creators, " +
                                         words[1] + " at once, " + mode.name);
            const bench::Rounds<bench::Sample> rounds(turns, [&](std::size_t which, std::size_t) {
                return bench::measure(words, list[which].environment, list[which].reuses);
            });
            for (std::size_t i = 0; i < list.size(); i++) {
                const bool base = i == 0;
                const auto share = [&](const bench::Sample &sample) { return served(sample, list[i]); };
                table.rows.push_back({life, static_cast<double>(shape.creators),
                                      static_cast<double>(shape.at_once), list[i].name, rounds.of(i, rate),
                                      base ? bench::Cell("1") : rounds.ratio(i, 0, rate), rounds.of(i, cpu),
                                      base ? bench::Cell("1") : rounds.ratio(0, i, cpu),
                                      base ? bench::Cell("") : rounds.of(i, share).median});
            }
        }
    report.note("× default: times more threads per second, or times less CPU time; below 1 the mode loses.");
    report.note(
        "served: creations that found a thread or a stack ready, or an idle thread to reuse; in stacks "
        "the first use of each counts as well.");
    report.note(
        "The paper: standby threads gain very little where threads are short-lived, and something, but "
        "far less than reuse, where they live longer.");
    report.add(table);
    report.print();
}

} // namespace

int main(int argc, char **argv) {
    return bench::main_of(argc, argv,
                          {"alternatives",
                           "Creating and joining threads in each mode: default, reuse, standby, "
                           "standby-helping, stacks.",
                           {{"--seconds", "Seconds a measurement", 0.01, 0.3, 2, 0.001, 3600},
                            {"--rounds", "Measurements of each variant", 1, 5, 9, 1, 10000}},
                           {}},
                          body, work);
}
