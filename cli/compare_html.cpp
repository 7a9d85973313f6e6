// SPDX-License-Identifier: Apache-2.0
//
// A comparison as a page that stands by itself: no scripts, nothing to fetch, light or dark as the reader has it
// (comparison.hpp).
#include "comparison.hpp"
#include "plot.hpp"
#include "tools/page.hpp"
#include "tools/text.hpp"

namespace thrum {

namespace {

constexpr const char *kStyle = R"(
:root { --without: #c2570c; --with: #1d5fd1; --band: #1d5fd122; }
@media (prefers-color-scheme: dark) {
  :root { --without: #f0914a; --with: #74a7ff; --band: #74a7ff2e; }
}
.join { stroke: var(--faint); stroke-width: 1.5; }
.without { fill: var(--card); stroke: var(--without); stroke-width: 2.5; }
.with, .ratio { fill: var(--with); }
.interval { fill: var(--band); }
.median { stroke: var(--with); stroke-width: 2; }
.beyond { fill: var(--bad); }
.cut { stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 2 4; }
.one { stroke: var(--text); stroke-width: 1.5; stroke-dasharray: 5 4; }
)";

// --- the tables --------------------------------------------------------------------------------------

// A median with the middle half behind it.
std::string cell(const std::string &median, const std::string &low, const std::string &high) {
    return "<td>" + html_words(median) + " <small>" + html_text(low) + " to " + html_text(high) +
           "</small></td>";
}

std::string time_cell(const Middle &middle, const Unit &unit) {
    const auto in_unit = [&unit](double seconds) { return three_digits(seconds / unit.seconds); };
    return cell(in_unit(middle.median) + " " + unit.name, in_unit(middle.low), in_unit(middle.high));
}

std::string share_cell(const Middle &middle) {
    return cell(fixed(100 * middle.median, 0) + " %", fixed(100 * middle.low, 0),
                fixed(100 * middle.high, 0));
}

std::string count_cell(const Middle &middle) {
    return cell(fixed(middle.median, 0), fixed(middle.low, 0), fixed(middle.high, 0));
}

std::string memory_cell(const Middle &middle) {
    const auto text = [](double bytes) { return three_digits(bytes / 1e6); };
    return cell(text(middle.median) + " MB", text(middle.low), text(middle.high));
}

std::string tasks_cell(const Middle &middle) {
    return cell(three_digits(middle.median), three_digits(middle.low), three_digits(middle.high));
}

std::string ratio_cell(const Interval &ratio) {
    if (ratio.count == 0)
        return "<td></td>";
    return cell(times(ratio.median), three_digits(ratio.low), three_digits(ratio.high));
}

std::string row(const char *name, const Row &measured, std::string (*to_cell)(const Middle &),
                bool with_ratio) {
    return "<tr>" + html_element("td", name) + to_cell(measured.arms[kWithout]) +
           to_cell(measured.arms[kWith]) + (with_ratio ? ratio_cell(measured.ratio) : "<td></td>") +
           "</tr>\n";
}

// Nothing where no run was long enough to be looked at.
std::string known_row(const char *name, const Row &measured, std::string (*to_cell)(const Middle &)) {
    return measured.ratio.count == 0 ? "" : row(name, measured, to_cell, true);
}

std::string time_row(const char *name, const Row &measured) {
    const Unit unit = unit_of(measured);
    return "<tr>" + html_element("td", name) + time_cell(measured.arms[kWithout], unit) +
           time_cell(measured.arms[kWith], unit) + ratio_cell(measured.ratio) + "</tr>\n";
}

std::string thread_row(const char *name, const std::optional<double> &without,
                       const std::optional<double> &with) {
    const auto text = [](const std::optional<double> &count) {
        return count ? fixed(*count, 0) : "not known";
    };
    return "<tr>" + html_element("td", name) + html_element("td", text(without)) +
           html_element("td", text(with)) + "<td></td></tr>\n";
}

// The cache counts them.
std::string thread_rows(const Summary &summary) {
    const std::optional<double> none = summary.threads ? std::optional(0.0) : std::nullopt;
    return summary.is_of_two ? ""
                             : thread_row("threads created", summary.threads, summary.created) +
                                   thread_row("threads reused", none, summary.reused);
}

std::string summary_table(const Comparison &comparison, const Summary &summary) {
    const std::string heads =
        comparison.is_of_two() ? "<th>A</th><th>B</th>" : "<th>without</th><th>with the cache</th>";
    return html_table("", "<tr><th></th>" + heads + "<th>" + ratio_line(comparison) + "</th></tr>\n" +
                              time_row("wall time", summary.wall) + time_row("CPU time", summary.cpu) +
                              (kernel_share_is_known(summary)
                                   ? row("CPU time in the kernel", summary.kernel_share, share_cell, false)
                                   : "") +
                              known_row("memory, peak", summary.peak_memory, memory_cell) +
                              known_row("memory, mean", summary.mean_memory, memory_cell) +
                              known_row("tasks, peak", summary.peak_tasks, tasks_cell) +
                              known_row("tasks, mean", summary.mean_tasks, tasks_cell) +
                              thread_rows(summary) +
                              row("context switches", summary.switches, count_cell, true)) +
           "<p class=\"legend\">Medians. Behind them: the middle half of the runs, or the interval of the "
           "ratio's median." +
           (comparison.is_of_two()
                ? ""
                : " Threads are counted with the cache; without it, every thread counts as created.") +
           "</p>\n";
}

std::string run_cells(const Run &run) {
    return html_element("td", duration(run.wall)) + html_element("td", duration(run.cpu())) +
           html_element("td", std::to_string(run.switches()));
}

std::string runs_table(const Comparison &comparison) {
    const std::vector<Pair> &pairs = comparison.pairs;
    std::string rows = "<tr><th>pair</th><th>first</th>";
    for (const Arm arm : {kWithout, kWith})
        rows += std::string("<th>") + comparison.name_of(arm) + ": wall</th><th>CPU</th><th>switches</th>";
    rows += "</tr>\n";
    for (std::size_t i = 0; i < pairs.size(); i++)
        rows += "<tr>" + html_element("td", std::to_string(i + 1)) +
                html_element("td", comparison.name_of(pairs[i].first)) + run_cells(pairs[i].runs[kWithout]) +
                run_cells(pairs[i].runs[kWith]) + "</tr>\n";
    return "<details><summary>All runs</summary>\n" + html_table("", rows) + "</details>\n";
}

std::string machine_table(const Comparison &comparison) {
    const Machine &machine = comparison.machine;
    const Load &load = comparison.load;
    std::string variables;
    for (const std::string &variable : comparison.variables)
        variables += (variables.empty() ? "" : " ") + variable;
    return html_table("facts", html_machine(machine) +
                                   html_fact("meanwhile", load_line(load, machine.processors)) +
                                   html_fact("load average", fixed(load.load_before, 2) + " before, " +
                                                                 fixed(load.load_after, 2) + " after") +
                                   html_fact("measured for", duration(load.seconds)) +
                                   html_fact("variables", variables) + html_fact("thrum", THRUM_VERSION));
}

// --- the page ----------------------------------------------------------------------------------------

std::string verdict_card(const Comparison &comparison, const Verdict &verdict) {
    const bool faster = verdict.kind == Verdict::kFaster, slower = verdict.kind == Verdict::kSlower;
    std::string text = std::string("<div class=\"verdict") +
                       (faster   ? " faster"
                        : slower ? " slower"
                                 : "") +
                       "\">\n<p class=\"line\">" + html_words(verdict.line) + "</p>\n";
    for (const std::string &line : {verdict.memory, verdict.tasks})
        if (!line.empty())
            text += html_element("p", line) + "\n";
    for (const std::string &note : verdict.notes)
        text += html_element("p", note) + "\n";
    text += html_element("p", pairs_line(comparison) + ", " + turns_line(comparison)) + "\n";
    if (!comparison.failure.empty())
        text += html_element("p", comparison.failure) + "\n";
    return text + "</div>\n";
}

// One ratio has no interval.
std::string band_text(const Interval &ratio) {
    if (ratio.count < 2 || ratio.confidence <= 0)
        return "";
    return "; band: its " + html_text(fixed(100 * ratio.confidence, ratio.confidence > 0.99 ? 1 : 0)) +
           "&#160;% interval, " + html_text(three_digits(ratio.low)) + " to " +
           html_text(three_digits(ratio.high));
}

std::string plots(const Comparison &comparison, const Summary &summary) {
    const Interval &ratio = summary.wall.ratio;
    const bool is_of_two = comparison.is_of_two();
    return "<h2>Wall time " + ratio_line(comparison) + ", pair by pair</h2>\n" +
           html_picture("plot", kPlotWidth,
                        [&](double width) { return plot_ratios(summary.ratios, ratio, width); }) +
           "<p class=\"legend\">Above the dashed line, the run " + (is_of_two ? "of B" : "with the cache") +
           " was faster. Line: the median, " + html_text(three_digits(ratio.median)) + band_text(ratio) +
           ".</p>\n<h2>Wall time of every run</h2>\n" +
           html_picture("plot", kPlotWidth, [&](double width) { return plot_times(comparison, width); }) +
           "<p class=\"legend\"><svg viewBox=\"0 0 14 14\"><circle cx=\"7\" cy=\"7\" r=\"4.5\" "
           "class=\"without\"/></svg> " +
           (is_of_two ? "A" : "without") +
           " &#160; <svg viewBox=\"0 0 14 14\"><circle cx=\"7\" cy=\"7\" r=\"4.5\" "
           "class=\"with\"/></svg> " +
           (is_of_two ? "B" : "with the cache") + "</p>\n";
}

} // namespace

std::string as_html(const Comparison &comparison, const Summary &summary, const Verdict &verdict) {
    std::string command;
    for (const std::string &line : command_lines(comparison))
        command += (command.empty() ? "" : "\n") + line;
    std::string body = html_element("h1", "thrum compare") + "\n" + html_element("pre", command) + "\n" +
                       verdict_card(comparison, verdict);
    if (!comparison.pairs.empty())
        body += "<h2>Medians</h2>\n" + summary_table(comparison, summary) + plots(comparison, summary);
    body += "<h2>Machine</h2>\n" + machine_table(comparison);
    if (!comparison.pairs.empty())
        body += runs_table(comparison);
    return html_page(verdict.line + " - " + command, kStyle, body);
}

} // namespace thrum
