// SPDX-License-Identifier: Apache-2.0
#include "stat/sweep.hpp"

#include <algorithm>
#include <set>

#include "arguments.hpp"
#include "stat/scaling.hpp"
#include "tools/failure.hpp"
#include "tools/statistics.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

constexpr unsigned long kMostThreads = 100000;
constexpr std::size_t kMostPoints = 64;
constexpr double kSeconds = 12; // for all rounds
constexpr double kMostRounds = 5;
constexpr double kTold =
    0.1; // seconds; the kernel's accounts of the machine are in steps of 10 ms for each CPU
constexpr double kSeen = 0.5;    // seconds of a bare run, in which it is looked at ten times a second
constexpr double kAsMuch = 1.25; // CPUs used, the most to the fewest
constexpr const char *kBraces = "{}";

Failure bad_sweep(const std::string &text) {
    return {kUsage, "--sweep takes numbers of threads from 1 to " + std::to_string(kMostThreads) +
                        ", as 1,2,4 or 1-4, not '" + text + "'"};
}

unsigned long parse_number(const std::string &text, const std::string &whole) {
    try {
        return whole_number("--sweep", text, 1, kMostThreads);
    } catch (const Failure &) {
        throw bad_sweep(whole);
    }
}

std::string replace_braces(std::string word, const std::string &number) {
    for (std::size_t at = 0; (at = word.find(kBraces, at)) != std::string::npos; at += number.size())
        word.replace(at, 2, number);
    return word;
}

void set_variable(std::vector<std::string> &environment, const std::string &name, const std::string &value) {
    const std::string start = name + "=";
    environment.erase(std::remove_if(environment.begin(), environment.end(),
                                     [&start](const std::string &entry) {
                                         return entry.compare(0, start.size(), start) == 0;
                                     }),
                      environment.end());
    environment.push_back(start + value);
}

template <typename Value>
double median_of(const std::vector<Measured> &runs, Value value) {
    std::vector<double> sample;
    for (const Measured &run : runs)
        sample.push_back(static_cast<double>(value(run)));
    return median(std::move(sample));
}

// Of the time of all runs: what others did in a long one counts for more.
Load load_of(const std::vector<Measured> &runs) {
    Load sum;
    double others = 0, waited = 0;
    bool others_known = true, waited_known = true;
    for (const Measured &run : runs) {
        const double seconds = run.load.seconds;
        sum.seconds += seconds;
        sum.stolen += run.load.stolen * seconds;
        others += run.load.others.value_or(0) * seconds;
        waited += run.load.waited.value_or(0) * seconds;
        others_known = others_known && run.load.others;
        waited_known = waited_known && run.load.waited;
    }
    if (sum.seconds <= 0)
        return {};
    const bool is_told = sum.seconds >= kTold;
    sum.stolen = is_told ? sum.stolen / sum.seconds : 0;
    if (others_known && is_told)
        sum.others = others / sum.seconds;
    if (waited_known)
        sum.waited = waited / sum.seconds;
    sum.load_before = runs.front().load.load_before;
    sum.load_after = runs.back().load.load_after;
    return sum;
}

} // namespace

std::vector<unsigned> parse_sweep(const std::string &text) {
    std::set<unsigned> numbers;
    std::size_t from = 0;
    while (from <= text.size()) {
        const std::size_t to = std::min(text.find(',', from), text.size());
        const std::string part = text.substr(from, to - from);
        const std::size_t dash = part.find('-');
        const unsigned long first = parse_number(part.substr(0, dash), text);
        const unsigned long last =
            dash == std::string::npos ? first : parse_number(part.substr(dash + 1), text);
        if (last < first)
            throw bad_sweep(text);
        for (unsigned long number = first; number <= last && numbers.size() <= kMostPoints; number++)
            numbers.insert(static_cast<unsigned>(number));
        from = to + 1;
    }
    if (numbers.size() > kMostPoints)
        throw Failure(kUsage, "--sweep takes at most " + std::to_string(kMostPoints) + " numbers; '" + text +
                                  "' has more");
    return {numbers.begin(), numbers.end()};
}

std::vector<unsigned> default_sweep(unsigned processors) {
    std::vector<unsigned> numbers;
    for (unsigned number = 1; number < processors; number = processors <= 4 ? number + 1 : 2 * number)
        numbers.push_back(number);
    numbers.push_back(processors);
    return numbers;
}

bool has_braces(const std::vector<std::string> &words) {
    return std::any_of(words.begin() + 1, words.end(),
                       [](const std::string &word) { return word.find(kBraces) != std::string::npos; });
}

Launch with_threads(const Launch &launch, const Telling &telling, unsigned threads) {
    Launch told = launch;
    const std::string number = std::to_string(threads);
    told.threads = threads;
    if (telling.braces)
        for (std::size_t i = 1; i < told.words.size(); i++)
            told.words[i] = replace_braces(told.words[i], number);
    if (!telling.variable.empty())
        set_variable(told.environment, telling.variable, number);
    if (telling.by_affinity)
        told.processors = threads;
    return told;
}

Point point_of(const Runs &runs) {
    Point point;
    point.threads = runs.launch.threads;
    point.runs = static_cast<unsigned>(runs.measured.size());
    std::vector<double> walls;
    for (const Measured &run : runs.measured) {
        walls.push_back(run.wall);
        point.most_threads = std::max(point.most_threads, run.most_threads);
    }
    point.wall = median_interval(walls);
    point.user = median_of(runs.measured, [](const Measured &run) { return run.user; });
    point.system = median_of(runs.measured, [](const Measured &run) { return run.system; });
    point.voluntary = median_of(runs.measured, [](const Measured &run) { return run.voluntary; });
    point.involuntary = median_of(runs.measured, [](const Measured &run) { return run.involuntary; });
    point.run_delay = median_of(runs.measured, [](const Measured &run) { return run.run_delay; });
    point.faults_major = median_of(runs.measured, [](const Measured &run) { return run.faults_major; });
    point.load = load_of(runs.measured);
    return point;
}

std::vector<Point> points_of(const std::vector<Runs> &sweep) {
    std::vector<Point> points;
    const Runs *first = nullptr;
    for (const Runs &runs : sweep) {
        if (runs.measured.empty())
            continue;
        points.push_back(point_of(runs));
        if (first == nullptr) {
            first = &runs;
            continue;
        }
        std::vector<double> ratios;
        for (std::size_t i = 0; i < std::min(first->measured.size(), runs.measured.size()); i++)
            if (runs.measured[i].wall > 0)
                ratios.push_back(first->measured[i].wall / runs.measured[i].wall);
        points.back().speedup = speedup_interval(points.front(), points.back(), ratios);
    }
    return points;
}

std::string unheeded_text(const std::vector<Point> &points, const Telling &telling) {
    if (points.size() < 2)
        return "";
    const Point &first = points.front();
    double least = first.parallelism(), most = least;
    for (const Point &point : points) {
        if (point.wall.median < kSeen || point.most_threads != first.most_threads)
            return "";
        least = std::min(least, point.parallelism());
        most = std::max(most, point.parallelism());
    }
    if (first.most_threads == 0 || most > kAsMuch * least)
        return "";
    std::string ways = telling.braces ? "{} in its arguments" : "";
    for (const std::string &way :
         {telling.variable, std::string(telling.by_affinity ? "the CPUs that it may use" : "")})
        ways += (ways.empty() || way.empty() ? "" : " or ") + way;
    return "the program had " + counted(first.most_threads, "thread") +
           " at most, whatever number was requested: it may ignore " + ways;
}

unsigned rounds_for(double seconds) {
    return static_cast<unsigned>(std::clamp(kSeconds / std::max(seconds, 1e-3), 1.0, kMostRounds));
}

} // namespace thrum::stat
