// SPDX-License-Identifier: Apache-2.0
//
// What `thrum compare` has measured, and what follows from it: of one program without and with the cache, or of two commands,
// A and B, which take the places of the two. compare.cpp fills a Comparison, summary.cpp makes a
// Summary of it, verdict.cpp a Verdict of that; the compare_*.cpp print all three.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "measure.hpp"
#include "tools/machine.hpp"
#include "tools/statistics.hpp"
#include "tools/text.hpp"

namespace thrum {

enum Arm { kWithout, kWith }; // or A, B
constexpr const char *kArmNames[] = {"without", "with"}, *kCommandNames[] = {"A", "B"};

// Both runs, one directly after the other.
struct Pair {
    Run runs[2]; // by Arm
    Arm first = kWithout;
};

struct Comparison {
    std::vector<std::string> words;
    std::vector<std::string> other;     // B, where `words` are A; none: the cache is compared
    std::vector<std::string> variables; // THRUM_CACHE_* in the environment, as "NAME=VALUE"
    std::vector<Pair> pairs;            // complete ones
    std::size_t wanted = 0;             // pairs
    unsigned warmups = 0;               // runs of each kind that are not among them
    int interrupt = 0;                  // the signal that ended it early
    std::string failure;                // why the program's failure ended it early
    Machine machine;
    Load load;

    bool is_of_two() const { return !other.empty(); }
    // In tables and files.
    const char *name_of(Arm arm) const { return is_of_two() ? kCommandNames[arm] : kArmNames[arm]; }
};

// --- summary.cpp ---

// Over the runs of one arm.
struct Middle {
    double median = 0, low = 0, high = 0; // of the middle half
};

// One measure in both arms; `ratio` is that of the pairs, without / with.
struct Row {
    Middle arms[2];
    Interval ratio;
};

struct Summary {
    Row wall, cpu, kernel, kernel_share, switches, voluntary, involuntary;
    Row peak_memory, mean_memory, peak_tasks, mean_tasks; // measure.hpp; a ratio of no pairs: not known
    // Nothing where the cache did not tell. `threads` are those that the program asked for, `created` those that the
    // kernel had to make for it with the cache; without it, that is one each.
    std::optional<double> threads, created, reused;
    std::string
        not_reused; // the reasons with their numbers, medians over the runs: "cancelled 2, user stack 1"
    std::vector<double> ratios; // of wall, pair by pair
    bool is_of_two = false;     // commands: sentences name B
};
Summary summarize(const std::vector<Pair> &pairs);
Unit unit_of(const Row &times); // one for both arms
// The kernel tells user and system time apart by where it finds a program at its ticks, 250 a second on many
// machines: a short run has too few of them.
bool kernel_share_is_known(const Summary &summary);

// --- verdict.cpp ---

struct Verdict {
    enum Kind { kNone, kFaster, kSlower, kSame, kInconclusive };
    Kind kind = kNone;
    std::string line;               // "2.3x faster"
    std::string memory, tasks;      // "memory: no difference", "tasks: 1.5x as many (...)"; empty: not known
    std::vector<std::string> notes; // further lines
};
constexpr const char *kVerdictNames[] = {"none", "faster", "slower", "no difference", "inconclusive"};
Verdict judge(const Summary &summary, const Load &load, unsigned processors);

// "2.3x"; how many times as long.
std::string times(double ratio);

// --- compare_table.cpp, compare_json.cpp, compare_html.cpp ---

// "10 pairs", "4 of 10 pairs (interrupted)".
std::string pairs_line(const Comparison &comparison);
// "without and with the cache in turn", "A and B in turn".
std::string turns_line(const Comparison &comparison);
// "without / with".
std::string ratio_line(const Comparison &comparison);
// The command, or both of them: a line each.
std::vector<std::string> command_lines(const Comparison &comparison);
// "others used 0.9 of 2 CPUs", or empty where that is not known.
std::string load_line(const Load &load, unsigned processors);

std::string as_table(const Comparison &comparison, const Summary &summary, const Verdict &verdict);
std::string as_json(const Comparison &comparison, const Summary &summary, const Verdict &verdict);
std::string as_html(const Comparison &comparison, const Summary &summary, const Verdict &verdict);
// A line for each pair: its number, which run came first, and what both took.
std::string as_csv(const Comparison &comparison);
std::string as_markdown(const Comparison &comparison, const Summary &summary, const Verdict &verdict);

} // namespace thrum
