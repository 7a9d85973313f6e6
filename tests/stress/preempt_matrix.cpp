// SPDX-License-Identifier: Apache-2.0
//
// See preempt_matrix.h.
#include "preempt_matrix.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "preempt_report.h"

namespace {

// One arena for all, no caches of the thread's: each makes another part of malloc busy.
constexpr std::array<const char *, 4> kMallocSettings = {
    "", "glibc.malloc.arena_max=1", "glibc.malloc.tcache_count=0",
    "glibc.malloc.arena_max=1:glibc.malloc.tcache_count=0"};

// Until enough was hit: where others have the CPU, the time that was asked for may not do.
constexpr int kPasses = 5;

std::string joined(const std::vector<std::string> &words) {
    std::string text;
    for (const std::string &word : words)
        text += " " + word;
    return text;
}

std::vector<std::string> arguments_of(const Options &of, const std::string &only) {
    std::vector<std::string> arguments = {
        "--mode",    name_of(of.mode),           "--workers", std::to_string(of.workers),
        "--threads", std::to_string(of.threads), "--slice",   std::to_string(of.slice),
        "--source",  name_of(of.source),         "--seconds", std::to_string(of.seconds),
        "--seed",    std::to_string(of.seed),    "--stall",   std::to_string(of.stall)};
    if (!only.empty())
        arguments.insert(arguments.end(), {"--only", only});
    if (of.round > 0)
        arguments.insert(arguments.end(), {"--round", std::to_string(of.round)});
    if (!of.disturbed)
        arguments.emplace_back("--undisturbed");
    if (of.clock_steps)
        arguments.emplace_back("--clock-steps");
    return arguments;
}

bool run_one(const std::vector<std::string> &arguments, const char *malloc_settings, int places,
             Report &sum) {
    int from = -1;
    std::vector<std::string> words = arguments;
    words.insert(words.end(), {"--places-to", std::to_string(places)});
    const int status = run_self(words, malloc_settings, nullptr, &from);
    Report report;
    const bool reported = read(from, &report, sizeof report) == sizeof report;
    close(from);
    if (status != 0 || !reported) {
        std::printf("failed, status %#x: GLIBC_TUNABLES='%s' stress-preempt%s\n",
                    static_cast<unsigned>(status), malloc_settings, joined(arguments).c_str());
        return false;
    }
    sum.add(report);
    return true;
}

} // namespace

namespace {

[[noreturn]] void be_self(std::vector<std::string> words, const char *malloc_settings, int said) {
    std::string program = "stress-preempt";
    std::vector<char *> list = {program.data()};
    for (std::string &word : words)
        list.push_back(word.data());
    list.push_back(nullptr);
    setenv("GLIBC_TUNABLES", malloc_settings, 1);
    if (said >= 0) {
        const rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        dup2(said, STDOUT_FILENO);
        dup2(said, STDERR_FILENO);
    }
    execv("/proc/self/exe", list.data());
    _exit(127);
}

std::string read_all(int from) {
    std::string text;
    std::array<char, 4096> some;
    for (ssize_t count = 0; (count = read(from, some.data(), some.size())) > 0;)
        text.append(some.data(), static_cast<std::size_t>(count));
    return text;
}

} // namespace

int run_self(const std::vector<std::string> &arguments, const char *malloc_settings, std::string *said,
             int *report_to) {
    std::array<int, 2> ends = {-1, -1};
    std::vector<std::string> words = arguments;
    CHECK_EQ(pipe(ends.data()), 0);
    if (said == nullptr)
        words.insert(words.end(), {"--report-to", std::to_string(ends[1])});
    std::fflush(stdout);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        be_self(words, malloc_settings, said != nullptr ? ends[1] : -1);
    close(ends[1]);
    if (said != nullptr) {
        *said = read_all(ends[0]);
        close(ends[0]);
    } else {
        *report_to = ends[0];
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        CHECK_EQ(errno, EINTR);
    return status;
}

namespace {

// The result of each mode, in the order of the command line's. Each must have hit all places; the preemptions are
// those of all.
class Sums {
  public:
    explicit Sums(const std::vector<Mode> &modes) : modes_(modes), reports_(modes.size()) {
        for (std::size_t i = 0; i < modes.size(); i++)
            places_.push_back(places_file());
    }
    ~Sums() {
        for (const int file : places_)
            close(file);
    }
    Sums(const Sums &) = delete;

    Report &of(std::size_t mode) { return reports_[mode]; }
    int places_of(std::size_t mode) const { return places_[mode]; }

    bool are_enough() const {
        for (std::size_t i = 0; i < modes_.size(); i++)
            if (!reports_[i].has_hit_all(modes_[i]))
                return false;
        return all().has_preempted();
    }

    void print() const {
        for (std::size_t i = 0; i < modes_.size(); i++)
            print(reports_[i], {places_[i]}, name_of(modes_[i]));
        print(all(), places_, "all");
        for (std::size_t i = 0; i < modes_.size(); i++)
            reports_[i].say_misses(modes_[i], true);
        all().say_if_few();
    }

  private:
    static void print(Report report, const std::vector<int> &places, const char *what) {
        report.places = places_in(places);
        report.print(what);
    }

    Report all() const {
        Report sum;
        for (const Report &report : reports_)
            sum.add(report);
        return sum;
    }

    const std::vector<Mode> &modes_;
    std::vector<Report> reports_;
    std::vector<int> places_; // files
};

} // namespace

int matrix_run(const CommandLine &line) {
    const std::size_t many =
        line.modes.size() * line.workers.size() * line.threads.size() * line.slices.size();
    const std::size_t settings = line.common.seed % kMallocSettings.size();
    Options next = line.common;
    next.seconds /= static_cast<double>(many);
    Sums sums(line.modes);
    std::size_t runs = 0;
    const auto one = [&](std::size_t mode) {
        runs++;
        next.source =
            line.monitor_each > 0 && runs % line.monitor_each == 0 ? THRUM_TICK_MONITOR : line.common.source;
        const bool good = run_one(arguments_of(next, line.only),
                                  kMallocSettings[(settings + runs) % kMallocSettings.size()],
                                  sums.places_of(mode), sums.of(mode));
        next.seed++;
        return good;
    };
    for (int passes = 0; passes == 0 || (passes < kPasses && !sums.are_enough()); passes++)
        for (std::size_t mode = 0; mode < line.modes.size(); mode++)
            for (const unsigned workers : line.workers)
                for (const unsigned threads : line.threads)
                    for (const unsigned slice : line.slices) {
                        next.mode = line.modes[mode];
                        next.workers = workers;
                        next.threads = threads;
                        next.slice = slice;
                        if (!one(mode))
                            return 1;
                    }
    sums.print();
    return sums.are_enough() ? 0 : 1;
}
