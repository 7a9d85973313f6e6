// SPDX-License-Identifier: Apache-2.0
//
// A comparison for spreadsheets and for documents (comparison.hpp).
#include "comparison.hpp"
#include "tools/text.hpp"

namespace thrum {

namespace {

std::string cells(const Run &run) {
    return "," + fixed(run.wall, 6) + "," + fixed(run.user, 6) + "," + fixed(run.system, 6) + "," +
           std::to_string(run.voluntary) + "," + std::to_string(run.involuntary);
}

std::string heads(const std::string &arm) {
    std::string text;
    for (const char *what : {"wall", "user", "system", "voluntary", "involuntary"})
        text += "," + arm + "_" + what;
    return text;
}

// In a table of Markdown's: a line stays a line, and a column a column.
std::string markdown(const std::string &text) {
    std::string out;
    for (const char c : terminal_text(text))
        out +=
            std::string(c == '|' || c == '`' || c == '\\' || c == '*' || c == '_' || c == '<' ? "\\" : "") +
            c;
    return out;
}

std::string time_row(const char *name, const Row &row) {
    const Unit unit = unit_of(row);
    const auto cell = [&unit](const Middle &middle) {
        const auto in_unit = [&unit](double seconds) { return three_digits(seconds / unit.seconds); };
        return in_unit(middle.median) + " " + unit.name + " (" + in_unit(middle.low) + " to " +
               in_unit(middle.high) + ")";
    };
    return std::string("| ") + name + " | " + cell(row.arms[kWithout]) + " | " + cell(row.arms[kWith]) +
           " | " + (row.ratio.count == 0 ? "-" : times(row.ratio.median)) + " |\n";
}

} // namespace

std::string as_csv(const Comparison &comparison) {
    std::string text =
        "pair,first" + heads(comparison.name_of(kWithout)) + heads(comparison.name_of(kWith)) + ",ratio\n";
    for (std::size_t i = 0; i < comparison.pairs.size(); i++) {
        const Pair &pair = comparison.pairs[i];
        const Run &without = pair.runs[kWithout], &with = pair.runs[kWith];
        text += std::to_string(i + 1) + "," + comparison.name_of(pair.first) + cells(without) + cells(with) +
                "," + (with.wall > 0 ? fixed(without.wall / with.wall, 6) : "") + "\n";
    }
    return text;
}

std::string as_markdown(const Comparison &comparison, const Summary &summary, const Verdict &verdict) {
    std::string commands;
    for (const std::string &line : command_lines(comparison))
        commands += (commands.empty() ? "`" : ", `") + terminal_text(line) + "`";
    const std::string heads = comparison.is_of_two() ? "A | B" : "without | with the cache";
    return commands + ": **" + markdown(verdict.line) + "**\n\n| | " + heads + " | " +
           ratio_line(comparison) + " |\n|---|---|---|---|\n" + time_row("wall time", summary.wall) +
           time_row("CPU time", summary.cpu) + "\nMedians (middle half), " + pairs_line(comparison) + ".\n";
}

} // namespace thrum
