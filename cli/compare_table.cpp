// SPDX-License-Identifier: Apache-2.0
//
// A comparison as a table for a terminal (comparison.hpp), as wide as report_columns() says.
#include "comparison.hpp"
#include "tools/table.hpp"
#include "tools/text.hpp"

namespace thrum {

namespace {

constexpr std::size_t kName = 18, kArm = 24, kRatio = 6;
constexpr std::size_t kBetween = 16, kNarrow = 10, kNarrowName = 17; // of medians alone

// A terminal that is too narrow for the middle halves gets the medians alone.
bool has_halves() {
    return report_columns() >= kName + 2 * kArm + kRatio;
}

std::string line_of(const std::string &name, const std::string &without, const std::string &with,
                    const std::string &ratio) {
    const std::size_t columns = report_columns();
    const bool is_narrow = columns < kName + 2 * kBetween + kRatio;
    const std::size_t arm = has_halves() ? kArm : is_narrow ? kNarrow : kBetween;
    std::string line =
        to_left(name, is_narrow ? kNarrowName : kName) + to_left(without, arm) + to_left(with, arm);
    if (line.size() + ratio.size() <= columns) // a part of a number would be another number
        line += ratio;
    line = cut(line, columns);
    line.erase(line.find_last_not_of(' ') + 1);
    return line + "\n";
}

std::string half(const std::string &low, const std::string &high) {
    return has_halves() ? " (" + low + "-" + high + ")" : "";
}

std::string times_of(const Middle &middle, const Unit &unit) {
    const auto in_unit = [&unit](double seconds) { return three_digits(seconds / unit.seconds); };
    return in_unit(middle.median) + " " + unit.name + half(in_unit(middle.low), in_unit(middle.high));
}

std::string percent_of(const Middle &middle) {
    return fixed(100 * middle.median, 0) + " %" +
           half(fixed(100 * middle.low, 0), fixed(100 * middle.high, 0));
}

std::string numbers_of(const Middle &middle) {
    return fixed(middle.median, 0) + half(fixed(middle.low, 0), fixed(middle.high, 0));
}

std::string megabytes_of(const Middle &middle) {
    const auto text = [](double bytes) { return three_digits(bytes / 1e6); };
    return text(middle.median) + " MB" + half(text(middle.low), text(middle.high));
}

std::string tasks_of(const Middle &middle) {
    return three_digits(middle.median) + half(three_digits(middle.low), three_digits(middle.high));
}

std::string ratio_of(const Row &row) {
    return row.ratio.count == 0 ? "-" : times(row.ratio.median);
}

std::string row_line(const char *name, const Row &row, std::string (*text)(const Middle &),
                     const std::string &ratio = "") {
    return line_of(name, text(row.arms[kWithout]), text(row.arms[kWith]), ratio);
}

std::string time_line(const char *name, const Row &row) {
    const Unit unit = unit_of(row);
    return line_of(name, times_of(row.arms[kWithout], unit), times_of(row.arms[kWith], unit), ratio_of(row));
}

// Nothing where no run was long enough to be looked at.
std::string known_line(const char *name, const Row &row, std::string (*text)(const Middle &)) {
    return row.ratio.count == 0 ? "" : row_line(name, row, text, ratio_of(row));
}

std::string number(const std::optional<double> &count) {
    return count ? fixed(*count, 0) : "not known";
}

std::string threads_lines(const Summary &summary) {
    if (summary.is_of_two) // the cache does not count them
        return "";
    return line_of("threads created", number(summary.threads), number(summary.created), "") +
           line_of("threads reused", summary.threads ? "0" : "not known", number(summary.reused), "");
}

std::string table(const Summary &summary) {
    return (summary.is_of_two ? line_of("", "A", "B", "ratio")
                              : line_of("", "without", has_halves() ? "with the cache" : "with", "ratio")) +
           time_line("wall time", summary.wall) + time_line("CPU time", summary.cpu) +
           (kernel_share_is_known(summary) ? row_line("  in the kernel", summary.kernel_share, percent_of)
                                           : "") +
           known_line("memory, peak", summary.peak_memory, megabytes_of) +
           known_line("  mean", summary.mean_memory, megabytes_of) +
           known_line("tasks, peak", summary.peak_tasks, tasks_of) +
           known_line("  mean", summary.mean_tasks, tasks_of) + threads_lines(summary) +
           row_line("context switches", summary.switches, numbers_of, ratio_of(summary.switches));
}

// "2.31 2.28 ...", as many on a line as fit.
std::string list_of(const std::vector<double> &ratios) {
    std::string text, line;
    for (const double ratio : ratios) {
        const std::string next = "  " + three_digits(ratio);
        if (line.size() + next.size() > report_columns() - 1) {
            text += line + "\n";
            line.clear();
        }
        line += next;
    }
    return text + line + "\n";
}

std::string interval_line(const Interval &ratio) {
    std::string line = "median " + three_digits(ratio.median);
    if (ratio.count > 1)
        line += ", " + fixed(100 * ratio.confidence, ratio.confidence > 0.99 ? 1 : 0) + " % interval " +
                three_digits(ratio.low) + " to " + three_digits(ratio.high);
    return wrapped(line, "  ");
}

std::string cut_with_dots(const std::string &text) {
    const std::size_t most = report_columns() - 1;
    return text.size() <= most ? text : cut(text, most - 3) + "...";
}

} // namespace

std::string pairs_line(const Comparison &comparison) {
    const std::string wanted = counted(static_cast<double>(comparison.wanted), "pair") + " of runs";
    const bool early = comparison.pairs.size() < comparison.wanted;
    return early ? std::to_string(comparison.pairs.size()) + " of " + wanted : wanted;
}

std::string turns_line(const Comparison &comparison) {
    return comparison.is_of_two() ? "A and B in turn" : "without and with the cache in turn";
}

std::string ratio_line(const Comparison &comparison) {
    return std::string(comparison.name_of(kWithout)) + " / " + comparison.name_of(kWith);
}

std::vector<std::string> command_lines(const Comparison &comparison) {
    if (!comparison.is_of_two())
        return {shell_line(comparison.words)};
    return {"A: " + shell_line(comparison.words), "B: " + shell_line(comparison.other)};
}

std::string load_line(const Load &load, unsigned processors) {
    if (!load.others)
        return "";
    std::string line = "others used " + fixed(*load.others, 1) + " of " + counted(processors, "CPU");
    if (load.stolen >= 0.05)
        line += ", the hypervisor took " + fixed(load.stolen, 1);
    return line;
}

std::string as_table(const Comparison &comparison, const Summary &summary, const Verdict &verdict) {
    std::string text;
    for (const std::string &line : command_lines(comparison))
        text += cut_with_dots(line) + "\n";
    text += wrapped(pairs_line(comparison) + ", " + turns_line(comparison) +
                        (has_halves() ? "; median (middle half)" : "; medians"),
                    "  ") +
            "\n";
    if (!comparison.pairs.empty()) {
        text += table(summary) + "\n";
        text += wrapped("wall time " + ratio_line(comparison) + ", pair by pair:", "  ") +
                list_of(summary.ratios);
        text += interval_line(summary.wall.ratio) + "\n";
    }
    text += wrapped(verdict.line, "  ");
    for (const std::string &line : {verdict.memory, verdict.tasks})
        if (!line.empty())
            text += wrapped(line, "  ");
    for (const std::string &note : verdict.notes)
        text += wrapped("  " + note, "    ");
    return text;
}

} // namespace thrum
