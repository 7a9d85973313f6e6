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

#include "common.hpp"

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

struct Results {
    std::vector<double> rate, cpu, speedup, cpu_speedup, served;
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

// One turn: each mode once, beginning with another one each time.
void measure_all(const std::vector<Mode> &list, const std::vector<std::string> &words, unsigned turn,
                 std::vector<Results> &results) {
    std::vector<bench::Sample> samples(list.size());
    for (std::size_t i = 0; i < list.size(); i++) {
        const std::size_t which = (turn + i) % list.size();
        samples[which] = bench::measure(words, list[which].environment, list[which].reuses);
    }
    for (std::size_t i = 0; i < list.size(); i++) {
        const bench::Sample &sample = samples[i];
        const double served = list[i].reuses ? sample.reused : sample.created;
        results[i].rate.push_back(sample.per_second() / 1e3);
        results[i].cpu.push_back(sample.cpu_us_each());
        results[i].speedup.push_back(sample.per_second() / samples[0].per_second());
        results[i].cpu_speedup.push_back(samples[0].cpu_us_each() / sample.cpu_us_each());
        results[i].served.push_back(std::min(100.0, served / sample.operations * 100));
    }
}

bench::Table empty_table() {
    return {
        "alternatives",
        "Threads created and joined: median [95 % interval, or lowest and highest where there are fewer than "
        "6 rounds]",
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
    const double seconds = options.numbers[0], rounds = options.numbers[1];
    const std::vector<Mode> list = modes(options.library);
    const double speed = steps_per_us();
    bench::Report report(options);
    bench::Table table = empty_table();
    for (const double life : kLives)
        for (const Shape &shape : kShapes) {
            std::vector<Results> results(list.size());
            const std::vector<std::string> words = {
                std::to_string(shape.creators), std::to_string(shape.at_once),
                std::to_string(static_cast<std::uint64_t>(life * speed)), std::to_string(seconds)};
            for (unsigned turn = 0; turn < rounds; turn++) {
                bench::progress(std::to_string(static_cast<int>(life)) + " µs, " +
                                std::to_string(shape.creators) + " creators, " +
                                std::to_string(shape.at_once) + " at once, round " + std::to_string(turn));
                measure_all(list, words, turn, results);
            }
            for (std::size_t i = 0; i < list.size(); i++) {
                const Results &r = results[i];
                table.rows.push_back(
                    {life, static_cast<double>(shape.creators), static_cast<double>(shape.at_once),
                     list[i].name, bench::estimate(r.rate),
                     i == 0 ? bench::Cell("1") : bench::estimate(r.speedup), bench::estimate(r.cpu),
                     i == 0 ? bench::Cell("1") : bench::estimate(r.cpu_speedup),
                     i == 0 ? bench::Cell("") : bench::estimate(r.served).median});
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
