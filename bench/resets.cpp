// SPDX-License-Identifier: Apache-2.0
//
// What making a used thread fresh costs, in two ways that do not depend on each other:
//
// 1. System calls per create + join, counted by strace, by name. Each count is the difference between a long
//    and a short run, divided by the threads in between, so that starting and ending the program drops out.
//    Tracing slows the program down, so how often a thread sleeps (futex) is not what it is without.
// 2. CPU time per create + join that leaving one row of docs/internals/soundness.md out saves (THRUM_SKIP), in turns
//    with leaving nothing out. That needs a library built with THRUM_DEBUG=ON, best with optimisation as well.
//    The row "(nothing)" compares the same with the same: what it shows is noise, and so is anything not
//    larger.
//
// Rows that cost nothing per reuse, or whose code is not simply left out (sigmask: the mask is read instead
// of set), are not among them.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "rounds.hpp"

namespace {

constexpr const char *kRows[] = {"",       "static-tls", "libc-tls", "tls-dtors", "keys",    "sigpending",
                                 "cancel", "robust",     "cputime",  "fpenv",     "inherit", "stack"};

void work(const std::vector<std::string> &words) {
    if (words.size() != 2)
        throw bench::Failure("--work takes threads|seconds and a number");
    const double amount = std::strtod(words[1].c_str(), nullptr);
    const auto enough = [amount](std::uint64_t threads) { return static_cast<double>(threads) >= amount; };
    if (words[0] == "threads")
        return bench::report_work([&] { return bench::create_and_join(1, enough); });
    bench::create_and_join(1, [](std::uint64_t threads) { return threads >= 100; }); // to warm up
    bench::report_work([&] { return bench::create_and_join(1, bench::after_seconds(amount)); });
}

// --- system calls ------------------------------------------------------------------------------------------

using Counts = std::map<std::string, double>;

// The table of strace -c: "% time, seconds, usecs/call, calls, [errors,] syscall", and a total.
Counts parse(const std::string &path) {
    Counts counts;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string time, seconds, each, calls, name, last;
        words >> time >> seconds >> each >> calls;
        while (words >> last)
            name = last;
        if (!calls.empty() && calls.find_first_not_of("0123456789") == std::string::npos && name != "total")
            counts[name] = std::strtod(calls.c_str(), nullptr);
    }
    return counts;
}

// A file that goes with the object.
class Scratch {
  public:
    Scratch() {
        const int descriptor = mkstemp(path_);
        if (descriptor < 0)
            throw bench::Failure("cannot make a file in /tmp");
        close(descriptor);
    }
    ~Scratch() { unlink(path_); }
    Scratch(const Scratch &) = delete;
    Scratch &operator=(const Scratch &) = delete;
    const char *path() const { return path_; }

  private:
    char path_[32] = "/tmp/thrum-bench-XXXXXX";
};

// Empty if strace cannot trace here.
Counts trace(const std::string &strace, const std::string &library, unsigned threads) {
    const Scratch file;
    std::vector<std::string> command = {strace, "-f", "-c", "-o", file.path()};
    if (!library.empty())
        command.insert(command.end(), {"-E", "LD_PRELOAD=" + library});
    const std::vector<std::string> work = bench::own_work({"threads", std::to_string(threads)});
    command.insert(command.end(), work.begin(), work.end());
    if (bench::run(command, {}, true).status != 0)
        return {};
    return parse(file.path());
}

Counts per_thread(const std::string &strace, const std::string &library, unsigned threads) {
    const unsigned few = 100;
    Counts small = trace(strace, library, few), large = trace(strace, library, few + threads), each;
    if (small.empty())
        return {};
    for (const auto &[name, calls] : large)
        each[name] = (calls - small[name]) / threads;
    return each;
}

void add_system_calls(bench::Report &report, const std::string &library, unsigned threads) {
    const std::string strace = bench::on_path("strace");
    if (strace.empty())
        return report.note("strace is not on the PATH: no system calls counted");
    bench::progress("counting system calls");
    Counts plain = per_thread(strace, "", threads), cached = per_thread(strace, library, threads);
    if (plain.empty() || cached.empty())
        return report.note("strace cannot trace here: no system calls counted");
    bench::Table table{"system_calls",
                       "System calls per pthread_create + pthread_join, creator and thread together",
                       {{"name", "call", "", 0},
                        {"default", "default", "calls/thread", 2},
                        {"cache", "cache", "calls/thread", 2}},
                       {}};
    std::set<std::string> names;
    double totals[2] = {0, 0};
    for (const Counts *counts : {&plain, &cached})
        for (const auto &[name, each] : *counts)
            if (each >= 0.01)
                names.insert(name);
    for (const std::string &name : names) {
        table.rows.push_back({name, plain[name], cached[name]});
        totals[0] += plain[name];
        totals[1] += cached[name];
    }
    table.rows.push_back({std::string("total"), totals[0], totals[1]});
    report.add(table);
}

// --- CPU time of a row -------------------------------------------------------------------------------------

std::string rows_library(const std::string &told) {
    const std::string path = told.empty() ? bench::beside("../../debug/lib/libthrum-cache.so") : told;
    if (access(path.c_str(), R_OK) == 0)
        return path;
    if (!told.empty())
        throw bench::Failure(told + ": there is no such library");
    return "";
}

void check_skips(const std::string &library) {
    std::ifstream file(library, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (bytes.find("THRUM_SKIP") == std::string::npos)
        throw bench::Failure(library + ": not built with THRUM_DEBUG=ON, so it leaves no row out");
}

void add_rows(bench::Report &report, const std::string &library, double seconds, double rounds) {
    if (library.empty())
        return report.note("no library built with THRUM_DEBUG=ON (say --rows-library): no rows compared");
    check_skips(library);
    // Of each row two variants: all that is done, and without the row.
    const auto name_of = [](const char *row) { return std::string(*row != '\0' ? row : "(nothing)"); };
    bench::Turns turns{rounds, {}, 2};
    std::vector<bench::Environment> environments;
    for (const char *name : kRows)
        for (const bool without : {false, true}) {
            turns.variants.push_back(name_of(name) + (without ? ", left out" : ", done"));
            environments.emplace_back().preload(library);
            if (without && *name != '\0')
                environments.back().set("THRUM_SKIP", name);
        }
    const bench::Rounds<bench::Sample> measured(turns, [&](std::size_t which, std::size_t) {
        return bench::measure({"seconds", std::to_string(seconds)}, environments[which], true);
    });
    const auto saved = [](const bench::Sample &all, const bench::Sample &without) {
        return all.cpu_us_each() - without.cpu_us_each();
    };
    const auto share = [&](const bench::Sample &all, const bench::Sample &without) {
        return saved(all, without) / all.cpu_us_each() * 100;
    };
    bench::Table table{"rows",
                       std::string("CPU time per create + join that leaving a row out saves") +
                           bench::kMedians,
                       {{"row", "row left out", "", 0},
                        {"saved_cpu_us", "saved", "µs/thread", 2},
                        {"saved_percent", "saved", "%", 1}},
                       {}};
    for (std::size_t i = 0; i < std::size(kRows); i++)
        table.rows.push_back({name_of(kRows[i]), bench::estimate(measured.compared(2 * i, 2 * i + 1, saved)),
                              bench::estimate(measured.compared(2 * i, 2 * i + 1, share))});
    report.add(table);
}

void body(const bench::Options &options) {
    bench::Report report(options);
    const std::string library = rows_library(options.texts[0]);
    add_system_calls(report, options.library, static_cast<unsigned>(options.numbers[2]));
    add_rows(report, library, options.numbers[0], options.numbers[1]);
    report.print();
}

} // namespace

int main(int argc, char **argv) {
    return bench::main_of(
        argc, argv,
        {"resets",
         "What making a used thread fresh costs: system calls, and CPU time by row.",
         {{"--seconds", "Seconds a measurement of a row", 0.01, 0.03, 0.1, 0.001, 3600},
          {"--rounds", "Measurements of each row", 1, 40, 101, 1, 10000},
          {"--threads", "Threads to count system calls over", 100, 1000, 5000, 1, 1000000}},
         {{"--rows-library", "PATH",
           "A libthrum-cache.so built with THRUM_DEBUG=ON\n(../../debug/lib/ from here, if it is there)",
           ""}}},
        body, work);
}
