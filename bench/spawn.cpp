// SPDX-License-Identifier: Apache-2.0
//
// Threads per second that N creators make, each creating a std::thread that ends at once, joining it, and so
// on: without the library and with it. After the Spawn benchmark of Dice and Kogan, "Intra-process Caching
// and Reuse of Threads" (their figure 1), which takes 10 seconds a measurement and the median of 7, as --full
// does.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "common.hpp"

namespace {

// A creator's count in cache lines of its own.
struct alignas(128) Count {
    std::uint64_t threads = 0;
};

std::uint64_t create_for(unsigned creators, double seconds) {
    std::atomic<bool> stop{false};
    std::vector<Count> counts(creators);
    std::vector<std::thread> team;
    for (Count &count : counts)
        team.emplace_back([&stop, &count] {
            do {
                std::thread([] {}).join();
                count.threads++;
            } while (count.threads < 2 || !stop.load(std::memory_order_relaxed)); // the second can be reused
        });
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    stop = true;
    std::uint64_t sum = 0;
    for (unsigned i = 0; i < creators; i++) {
        team[i].join();
        sum += counts[i].threads;
    }
    return sum;
}

void work(const std::vector<std::string> &words) {
    if (words.size() != 2)
        throw bench::Failure("--work takes the number of creators and seconds");
    const auto creators = static_cast<unsigned>(std::strtoul(words[0].c_str(), nullptr, 10));
    const double seconds = std::strtod(words[1].c_str(), nullptr);
    bench::report_work([&] { return create_for(creators, seconds); });
}

std::vector<unsigned> creators_of(const std::string &list) {
    std::vector<unsigned> numbers;
    std::istringstream words(list);
    for (std::string word; std::getline(words, word, ',');) {
        const bool digits = !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
        const unsigned long number = digits ? std::strtoul(word.c_str(), nullptr, 10) : 0;
        if (number < 1 || number > 1000)
            throw bench::Failure("--creators takes numbers from 1 to 1000 with commas in between, not '" +
                                     list + "'",
                                 bench::Failure::kUsage);
        numbers.push_back(static_cast<unsigned>(number));
    }
    if (numbers.empty())
        throw bench::Failure("--creators needs at least one number", bench::Failure::kUsage);
    return numbers;
}

struct Times {
    std::vector<double> default_rate, cache_rate, speedup, default_cpu, cache_cpu, cpu_speedup;
};

// A turn measures both, beginning with either in turn.
Times measure(unsigned creators, double seconds, unsigned rounds, const std::string &library) {
    Times times;
    const std::vector<std::string> words = {std::to_string(creators), std::to_string(seconds)};
    const bench::Environment plain;
    bench::Environment cached;
    cached.preload(library);
    for (unsigned turn = 0; turn < rounds; turn++) {
        bench::Sample samples[2];
        bench::progress(std::to_string(creators) + " creators, round " + std::to_string(turn));
        for (unsigned i = 0; i < 2; i++) {
            const bool reuse = (turn + i) % 2 != 0;
            samples[reuse] = bench::measure(words, reuse ? cached : plain, reuse);
        }
        times.default_rate.push_back(samples[0].per_second() / 1e3);
        times.cache_rate.push_back(samples[1].per_second() / 1e3);
        times.speedup.push_back(samples[1].per_second() / samples[0].per_second());
        times.default_cpu.push_back(samples[0].cpu_us_each());
        times.cache_cpu.push_back(samples[1].cpu_us_each());
        times.cpu_speedup.push_back(samples[0].cpu_us_each() / samples[1].cpu_us_each());
    }
    return times;
}

void body(const bench::Options &options) {
    const double seconds = options.numbers[0];
    const auto rounds = static_cast<unsigned>(options.numbers[1]);
    bench::Report report(options);
    bench::Table table{
        "spawn",
        "Threads created and joined by N creators: median [lowest, highest; from 9 rounds on the "
        "95 % interval]",
        {{"creators", "creators", "", 0},
         {"default_per_s", "default", "1000/s", 1},
         {"cache_per_s", "cache", "1000/s", 1},
         {"speedup", "rate", "× default", 2},
         {"default_cpu_us", "default CPU", "µs/thread", 1},
         {"cache_cpu_us", "cache CPU", "µs/thread", 1},
         {"cpu_speedup", "CPU", "× default", 2}},
        {}};
    for (const unsigned creators : creators_of(options.texts[0])) {
        const Times times = measure(creators, seconds, rounds, options.library);
        table.rows.push_back({static_cast<double>(creators), bench::estimate(times.default_rate).median,
                              bench::estimate(times.cache_rate).median, bench::estimate(times.speedup),
                              bench::estimate(times.default_cpu).median,
                              bench::estimate(times.cache_cpu).median, bench::estimate(times.cpu_speedup)});
    }
    report.note("× default: times more threads per second, or times less CPU time; below 1 the cache loses.");
    report.add(table);
    report.print();
}

} // namespace

int main(int argc, char **argv) {
    return bench::main_of(argc, argv,
                          {"spawn",
                           "Threads per second that N creators make, without and with the cache.",
                           {{"--seconds", "Seconds a measurement", 0.02, 1, 10, 0.001, 3600},
                            {"--rounds", "Measurements of each variant", 1, 5, 7, 1, 10000}},
                           {{"--creators", "N,...", "Numbers of creators (1,2,8,32)", "1,2,8,32"}}},
                          body, work);
}
