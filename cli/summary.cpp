// SPDX-License-Identifier: Apache-2.0
//
// From runs to medians (comparison.hpp).
#include <algorithm>
#include <functional>

#include "comparison.hpp"
#include "tools/text.hpp"

namespace thrum {

namespace {

using Measure = std::function<double(const Run &)>;

std::vector<double> values(const std::vector<Pair> &pairs, Arm arm, const Measure &measure) {
    std::vector<double> list;
    list.reserve(pairs.size());
    for (const Pair &pair : pairs)
        list.push_back(measure(pair.runs[arm]));
    return list;
}

Middle middle(const std::vector<double> &sample) {
    return {median(sample), quantile(sample, 0.25), quantile(sample, 0.75)};
}

// Of those pairs where it can be formed.
std::vector<double> ratios(const std::vector<double> &without, const std::vector<double> &with) {
    std::vector<double> list;
    for (std::size_t i = 0; i < without.size(); i++)
        if (without[i] > 0 && with[i] > 0)
            list.push_back(without[i] / with[i]);
    return list;
}

Row row(const std::vector<Pair> &pairs, const Measure &measure) {
    const std::vector<double> without = values(pairs, kWithout, measure);
    const std::vector<double> with = values(pairs, kWith, measure);
    return {{middle(without), middle(with)}, median_interval(ratios(without, with))};
}

// Of a measure that is 0 where a run was too short to be looked at: of the pairs in which both were not. Nothing where that is
// less than half of them.
Row known_row(const std::vector<Pair> &pairs, const Measure &measure) {
    std::vector<Pair> known;
    for (const Pair &pair : pairs)
        if (measure(pair.runs[kWithout]) > 0 && measure(pair.runs[kWith]) > 0)
            known.push_back(pair);
    return 2 * known.size() < pairs.size() ? Row() : row(known, measure);
}

// Of the runs that have counters.
std::optional<double> median_count(const std::vector<Pair> &pairs,
                                   const std::function<std::uint64_t(const Counters &)> &count) {
    std::vector<double> list;
    for (const Pair &pair : pairs)
        if (const auto &counters = pair.runs[kWith].counters)
            list.push_back(static_cast<double>(count(*counters)));
    return list.empty() ? std::nullopt : std::optional(median(list));
}

#define THRUM_REASON_TEXT(name, text) text,
constexpr const char *kRetireReasons[] = {THRUM_CACHE_RETIRE_REASONS(THRUM_REASON_TEXT)};
constexpr const char *kPassReasons[] = {THRUM_CACHE_PASS_REASONS(THRUM_REASON_TEXT)};
#undef THRUM_REASON_TEXT

using Counts = std::uint64_t[THRUM_CACHE_REASONS_MAX];

template <std::size_t size>
void add_reasons(std::string &line, const std::vector<Pair> &pairs, const char *const (&texts)[size],
                 const Counts Counters::*counts) {
    for (std::size_t i = 0; i < size; i++) {
        const auto number = median_count(pairs, [&](const Counters &c) { return (c.*counts)[i]; });
        if (number.value_or(0) >= 1)
            line += (line.empty() ? "" : ", ") + (texts[i] + (" " + fixed(*number, 0)));
    }
}

double share(const Run &run) {
    return run.cpu() > 0 ? run.system / run.cpu() : 0;
}

constexpr double kEnoughTicks = 0.05; // seconds of CPU time

} // namespace

Unit unit_of(const Row &times) {
    return unit_of_time(std::max(times.arms[kWithout].median, times.arms[kWith].median));
}

bool kernel_share_is_known(const Summary &summary) {
    return summary.cpu.arms[kWithout].median >= kEnoughTicks &&
           summary.cpu.arms[kWith].median >= kEnoughTicks;
}

Summary summarize(const std::vector<Pair> &pairs) {
    Summary summary;
    summary.wall = row(pairs, [](const Run &run) { return run.wall; });
    summary.cpu = row(pairs, [](const Run &run) { return run.cpu(); });
    summary.kernel = row(pairs, [](const Run &run) { return run.system; });
    summary.kernel_share = row(pairs, share);
    summary.switches = row(pairs, [](const Run &run) { return static_cast<double>(run.switches()); });
    summary.voluntary = row(pairs, [](const Run &run) { return static_cast<double>(run.voluntary); });
    summary.involuntary = row(pairs, [](const Run &run) { return static_cast<double>(run.involuntary); });
    summary.peak_memory = known_row(pairs, [](const Run &run) { return run.peak_memory; });
    summary.mean_memory = known_row(pairs, [](const Run &run) { return run.mean_memory; });
    summary.peak_tasks = known_row(pairs, [](const Run &run) { return run.peak_tasks; });
    summary.mean_tasks = known_row(pairs, [](const Run &run) { return run.mean_tasks; });
    summary.threads = median_count(pairs, [](const Counters &c) { return c.created + c.reused + c.passed; });
    summary.created = median_count(pairs, [](const Counters &c) { return c.created + c.passed; });
    summary.reused = median_count(pairs, [](const Counters &c) { return c.reused; });
    add_reasons(summary.not_reused, pairs, kRetireReasons, &Counters::retired_by);
    add_reasons(summary.not_reused, pairs, kPassReasons, &Counters::passed_by);
    const Measure wall = [](const Run &run) { return run.wall; };
    summary.ratios = ratios(values(pairs, kWithout, wall), values(pairs, kWith, wall));
    return summary;
}

} // namespace thrum
