// SPDX-License-Identifier: Apache-2.0
//
// What the benchmarks of this folder share: options, child processes with and without the library preloaded,
// medians with their intervals, and a report that is printed as tables or as JSON. Rounds of measurements are in rounds.hpp.
//
// How they measure: a measurement is a process of its own, because a library is preloaded into a process or
// it is not. What is compared is measured in one run, in turns (rounds.hpp). CPU time stands beside wall time: on a busy
// machine it is the steadier of the two. Nothing is pinned to a CPU unless the benchmark says so.
#ifndef THRUM_BENCH_COMMON_HPP
#define THRUM_BENCH_COMMON_HPP

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "tools/failure.hpp"

namespace bench {

// What ends a benchmark: one line, and an exit code.
class Failure : public thrum::Failure {
  public:
    static constexpr int kUsage = thrum::kUsage;
    explicit Failure(const std::string &what, int code = thrum::kFailed) : thrum::Failure(code, what) {}
};

// --- options -----------------------------------------------------------------------------------------------

// A number that a benchmark takes as an option, in three sizes: --quick, none of the two, --full.
struct Number {
    const char *option;
    const char *help;
    double quick, usual, full;
    double least, most;
};

// A text that it takes.
struct Text {
    const char *option;
    const char *placeholder;
    const char *help;
    std::string value;
};

// Something that it does only when told.
struct Flag {
    const char *option;
    const char *help;
};

// Of a benchmark with limits (verdict.hpp).
inline constexpr Flag kCheck = {"--check", "End with status 3 if a target is missed, undecided ones aside"};

struct Description {
    const char *name;
    const char *about;
    std::vector<Number> numbers;
    std::vector<Text> texts;
    bool measures_library = true; // false: there is no --library
    std::vector<Flag> flags = {};
    const char *library = "libthrum-cache.so"; // what is measured
};

struct Options {
    std::string name;
    bool json = false, quick = false, check = false;
    std::string save;            // a path for the JSON; empty: none
    std::string library;         // its path; empty where none is measured
    std::vector<double> numbers; // in the order of the description
    std::vector<std::string> texts;
    std::vector<bool> flags;
    std::vector<std::pair<std::string, double>> settings; // the numbers with their names, for the report
};

// Runs a benchmark's `body` with what the command line says; what goes wrong is one line on stderr. When the
// first argument is kWork, calls `work` with the words after it instead (own_work()).
inline constexpr const char *kWork = "--work";
using Body = std::function<void(const Options &)>;
using Work = std::function<void(const std::vector<std::string> &)>;
int main_of(int argc, char **argv, const Description &description, const Body &body,
            const Work &work = nullptr);

// The value of an option that takes numbers with commas in between; a Failure if it is something else.
std::vector<unsigned> numbers_listed(const std::string &option, const std::string &list, unsigned least,
                                     unsigned most);

// --- processes ---------------------------------------------------------------------------------------------

// The environment of a child: this process's without LD_PRELOAD and THRUM_..., and with what is set here.
class Environment {
  public:
    Environment();
    Environment &set(const std::string &name, const std::string &value);
    Environment &preload(const std::string &library) { return set("LD_PRELOAD", library); }
    const std::vector<std::string> &variables() const { return variables_; }

  private:
    std::vector<std::string> variables_;
};

struct Ended {
    int status;
    double wall_us; // from before its start until it has been waited for
    double cpu_us;  // user and system time of the child and of its waited-for children
    std::string output;
};

// Runs a program to its end. Its standard output is read, or goes to /dev/null.
Ended run(const std::vector<std::string> &command, const Environment &environment, bool read_output);
// The same of one that has to succeed; for a benchmark's own work the Failure does not show the command.
Ended run_well(const std::vector<std::string> &command, const Environment &environment,
               bool read_output = true);

// This process's environment as child processes get it, and the same with the library: kPlain and kCached are the places.
enum WithLibrary : std::size_t { kPlain, kCached };
std::array<Environment, 2> without_and_with(const std::string &library);

// A number as a word of a command.
std::string word_of(double number);

// The command that executes this benchmark again, for its work.
std::vector<std::string> own_work(const std::vector<std::string> &words);

// This program's path, and that of a file relative to its folder.
std::string own_path();
std::string beside(const std::string &relative);

// The first program of that name on the PATH, "" if there is none.
std::string on_path(const std::string &program);

// --- measuring create and join -----------------------------------------------------------------------------

struct Sample {
    double operations, wall_ns, cpu_ns;
    double system_ns;       // of the CPU time, what the kernel took, as far as its clock ticks show
    double created, reused; // by the cache, 0 without it
    double idle;            // of its threads, afterwards
    double resident_kb;     // of the process, afterwards
    double switches;        // of context, by sleeping or by losing the CPU

    double switches_each() const { return switches / operations; }
    double wall_ns_each() const { return wall_ns / operations; }
    double cpu_ns_each() const { return cpu_ns / operations; }
    double wall_us_each() const { return wall_ns_each() / 1e3; }
    double cpu_us_each() const { return cpu_ns_each() / 1e3; }
    double per_second() const { return operations / wall_ns * 1e9; }
    double thousands_per_second() const { return per_second() / 1e3; }
    double kernel_percent() const { return cpu_ns > 0 ? system_ns / cpu_ns * 100 : 0; }
};

// In the parent: executes this benchmark again, for its work, and takes what that reported. With
// `expect_reuse` it is a failure if the cache has not reused a thread: the numbers would mean something else.
Sample measure(const std::vector<std::string> &words, const Environment &environment, bool expect_reuse);

// In the child: calls `work`, which returns how many operations it did, and reports with what they cost. What is left
// afterwards is looked at after so many seconds.
void report_work(const std::function<std::uint64_t()> &work, double settle = 0);

// Creates and joins threads that do nothing, `at_once` at a time, until `enough(threads so far)`.
std::uint64_t create_and_join(unsigned at_once, const std::function<bool(std::uint64_t)> &enough);
std::function<bool(std::uint64_t)> after_seconds(double seconds);

// --- statistics --------------------------------------------------------------------------------------------

// The median, and the interval between two of the values that holds the median of many such measurements with
// a probability of at least 95 %, or so that the intervals of as many `cases` as there are all do. Fewer than six values
// cannot say that, of many cases a dozen: then it is the lowest and the highest, and holds nothing.
struct Estimate {
    double median, low, high;
    bool holds = false;
};

// Behind the title of a table of such.
inline constexpr const char *kMedians =
    ": median [95 % interval, or lowest and highest where there are fewer than 6 rounds]";

Estimate estimate(std::vector<double> values, std::size_t cases = 1);

// The smallest of the values that at least so much of them, 0 to 1, does not exceed. They are put in order; a Failure if
// there are none.
double quantile(std::vector<double> *values, double share);

// --- report ------------------------------------------------------------------------------------------------

using Cell = std::variant<std::string, double, Estimate>;

struct Column {
    const char *key;     // in the JSON; an interval adds KEY_low and KEY_high
    const char *heading; // in the table
    const char *unit;
    int decimals;
};

struct Table {
    std::string key;
    std::string title;
    std::vector<Column> columns;
    std::vector<std::vector<Cell>> rows;
};

class Report {
  public:
    explicit Report(const Options &options);
    void add(Table table) { tables_.push_back(std::move(table)); }
    void note(const std::string &line) { notes_.push_back(line); }
    void print() const; // on standard output, as --json says, and as --save does

  private:
    void print_text() const;
    void print_json(std::ostream &out) const;

    Options options_;
    std::string load_at_start_;
    double distance_at_start_;
    std::vector<Table> tables_;
    std::vector<std::string> notes_;
};

// A line on stderr, overwritten by the next, if stderr is a terminal.
void progress(const std::string &line);

} // namespace bench

#endif
