// SPDX-License-Identifier: Apache-2.0
//
// Sleep: how late threads of libthrum come out of it, a thousand for the same moment and 100,000 for moments spread over
// two seconds, and what CPU time a runtime uses that has nothing to do. The aim on a quiet machine: 99 of 100 less than a
// millisecond late; no CPU time that can be measured.
#include <array>
#include <cstdio>

#include "common.hpp"

namespace {

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
            {"spread", "many for moments all the time, 4 workers", 4, many, 0, ms},
            {"spread_usual", "many for moments all the time, 2 workers", 2, many, 0, ms}};
}

std::string text(double value) {
    return std::to_string(static_cast<long>(value));
}

std::vector<double> numbers_of(const std::vector<std::string> &words, std::size_t count) {
    std::vector<std::string> command = {bench::beside("programs/sleepers")};
    command.insert(command.end(), words.begin(), words.end());
    const bench::Ended ended = bench::run(command, bench::Environment(), true);
    std::array<double, 4> value{};
    const int read =
        std::sscanf(ended.output.c_str(), "%lf %lf %lf %lf", &value[0], &value[1], &value[2], &value[3]);
    if (ended.status != 0 || read != static_cast<int>(count))
        throw bench::Failure("sleepers ended with wait status " + std::to_string(ended.status));
    return {value.begin(), value.begin() + read};
}

bench::Table lateness(const bench::Options &options) {
    bench::Table table{"lateness",
                       "How late threads come out of a sleep",
                       {{"what", "threads that sleep", "", 0},
                        {"threads", "threads", "", 0},
                        {"median", "median", "us", 1},
                        {"p99", "99th percentile", "us", 1},
                        {"most", "most", "us", 1},
                        {"cpu", "CPU time, all", "ms", 1}},
                       {}};
    const auto rounds = static_cast<unsigned>(options.numbers[0]);
    for (const Scene &scene : scenes(options)) {
        std::array<std::vector<double>, 4> values;
        for (unsigned round = 0; round < rounds; round++) {
            bench::progress(std::string(scene.key) + " " + std::to_string(round));
            const std::vector<double> one =
                numbers_of({"sleep", std::to_string(scene.workers), text(scene.threads), text(scene.first_ms),
                            text(scene.last_ms)},
                           4);
            for (std::size_t i = 0; i < 4; i++)
                values[i].push_back(one[i]);
        }
        table.rows.push_back({scene.name, text(scene.threads), bench::estimate(values[0]),
                              bench::estimate(values[1]), bench::estimate(values[2]),
                              bench::estimate(values[3])});
    }
    return table;
}

bench::Table idle(const bench::Options &options) {
    bench::Table table{"idle",
                       "CPU time of a runtime that has nothing to do",
                       {{"workers", "workers", "", 0}, {"cpu", "CPU time, a second", "us", 1}},
                       {}};
    const auto rounds = static_cast<unsigned>(options.numbers[0]);
    for (const unsigned workers : {1U, 2U, 4U, 64U}) {
        std::vector<double> values;
        for (unsigned round = 0; round < rounds; round++)
            values.push_back(
                numbers_of({"idle", std::to_string(workers), text(options.numbers[1] * 1e3)}, 1)[0] * 1e3 /
                options.numbers[1]);
        table.rows.push_back({std::to_string(workers), bench::estimate(values)});
    }
    return table;
}

void body(const bench::Options &options) {
    bench::Report report(options);
    report.add(lateness(options));
    report.add(idle(options));
    report.note(
        "The aim: a 99th percentile below 1000 us on a quiet machine, and no CPU time that can be measured.");
    report.print();
}

} // namespace

int main(int argc, char **argv) {
    return bench::main_of(
        argc, argv,
        {"sleep",
         "How late threads of libthrum come out of a sleep, and what an idle runtime costs.",
         {{"--rounds", "Measurements of each row", 1, 5, 15, 1, 1000},
          {"--seconds", "How long is slept", 0.2, 2, 2, 0.01, 100},
          {"--many", "Threads whose moments are spread over that", 2000, 100000, 100000, 100, 1000000}},
         {},
         false},
        body);
}
