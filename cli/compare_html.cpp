// SPDX-License-Identifier: Apache-2.0
//
// A comparison as a page that stands by itself: no scripts, nothing to fetch, light or dark as the reader has it
// (comparison.hpp).
#include "comparison.hpp"
#include "plot.hpp"
#include "text.hpp"

namespace thrum {

namespace {

constexpr const char *kStyle = R"(
:root { --page: #fbfbf9; --card: #ffffff; --text: #1d2026; --faint: #666d78; --line: #dcdfe4;
        --without: #c2570c; --with: #1d5fd1; --band: #1d5fd122; --good: #16794a; --bad: #b3261e; --open: #8a6d00; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14161a; --card: #1c1f25; --text: #e4e6ea; --faint: #9aa1ac; --line: #343942;
          --without: #f0914a; --with: #74a7ff; --band: #74a7ff2e; --good: #5fd39a; --bad: #ff8a80; --open: #e3c452; }
}
* { box-sizing: border-box; }
body { margin: 0; padding: 2rem 1rem 3rem; background: var(--page); color: var(--text);
       font: 16px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 800px; margin: 0 auto; }
h1 { font-size: 1rem; font-weight: 600; margin: 0 0 .25rem; color: var(--faint); }
h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
pre { margin: 0 0 1.25rem; padding: .75rem 1rem; background: var(--card); border: 1px solid var(--line);
      border-radius: 8px; overflow-x: auto; font-size: .9rem; }
.verdict { padding: 1rem 1.25rem; background: var(--card); border: 1px solid var(--line);
           border-left: 6px solid var(--open); border-radius: 8px; }
.verdict p { margin: .25rem 0 0; color: var(--faint); }
.verdict .line { margin: 0; font-size: 1.5rem; font-weight: 650; line-height: 1.3; color: var(--text); }
.faster { border-left-color: var(--good); }
.slower { border-left-color: var(--bad); }
.scroll { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
.facts td:last-child { text-align: left; width: 100%; white-space: normal; }
th { font-weight: 600; color: var(--faint); }
small { color: var(--faint); }
svg { display: block; width: 100%; height: auto; background: var(--card); border: 1px solid var(--line);
      border-radius: 8px; }
svg text { font: 12px system-ui, sans-serif; fill: var(--faint); }
.grid { stroke: var(--line); stroke-width: 1; }
.join { stroke: var(--faint); stroke-width: 1.5; }
.without { fill: var(--card); stroke: var(--without); stroke-width: 2.5; }
.with, .ratio { fill: var(--with); }
.interval { fill: var(--band); }
.median { stroke: var(--with); stroke-width: 2; }
.one { stroke: var(--text); stroke-width: 1.5; stroke-dasharray: 5 4; }
.legend { margin: .4rem 0 0; color: var(--faint); font-size: .9rem; }
.legend svg { display: inline; width: 14px; height: 14px; border: 0; background: none; vertical-align: -2px; }
details { margin-top: 2rem; }
summary { cursor: pointer; font-weight: 600; }
)";

std::string element(const char *name, const std::string &text) {
    return std::string("<") + name + ">" + html_text(text) + "</" + name + ">";
}

// --- the tables --------------------------------------------------------------------------------------

// A median with the middle half behind it.
std::string cell(const std::string &median, const std::string &low, const std::string &high) {
    return "<td>" + html_text(median) + " <small>" + html_text(low) + " to " + html_text(high) +
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

std::string ratio_cell(const Interval &ratio) {
    if (ratio.count == 0)
        return "<td></td>";
    return cell(times(ratio.median), three_digits(ratio.low), three_digits(ratio.high));
}

std::string row(const char *name, const Row &measured, std::string (*to_cell)(const Middle &),
                bool with_ratio) {
    return "<tr>" + element("td", name) + to_cell(measured.arms[kWithout]) + to_cell(measured.arms[kWith]) +
           (with_ratio ? ratio_cell(measured.ratio) : "<td></td>") + "</tr>\n";
}

std::string time_row(const char *name, const Row &measured) {
    const Unit unit = unit_of(measured);
    return "<tr>" + element("td", name) + time_cell(measured.arms[kWithout], unit) +
           time_cell(measured.arms[kWith], unit) + ratio_cell(measured.ratio) + "</tr>\n";
}

std::string thread_row(const char *name, const std::optional<double> &without,
                       const std::optional<double> &with) {
    const auto text = [](const std::optional<double> &count) {
        return count ? fixed(*count, 0) : "not known";
    };
    return "<tr>" + element("td", name) + element("td", text(without)) + element("td", text(with)) +
           "<td></td></tr>\n";
}

std::string summary_table(const Summary &summary) {
    const std::optional<double> none = summary.threads ? std::optional(0.0) : std::nullopt;
    return "<div class=\"scroll\"><table>\n<tr><th></th><th>without</th><th>with the cache</th>"
           "<th>without / with</th></tr>\n" +
           time_row("wall time", summary.wall) + time_row("CPU time", summary.cpu) +
           (kernel_share_is_known(summary)
                ? row("CPU time in the kernel", summary.kernel_share, share_cell, false)
                : "") +
           thread_row("threads created", summary.threads, summary.created) +
           thread_row("threads reused", none, summary.reused) +
           row("context switches", summary.switches, count_cell, true) +
           "</table></div>\n"
           "<p class=\"legend\">Medians. Behind them: the middle half of the runs, or the interval of the "
           "ratio's median. Threads are counted with the cache; without it, each is taken to be "
           "created.</p>\n";
}

std::string run_cells(const Run &run) {
    return element("td", duration(run.wall)) + element("td", duration(run.cpu())) +
           element("td", std::to_string(run.switches()));
}

std::string runs_table(const std::vector<Pair> &pairs) {
    std::string text = "<details><summary>All runs</summary>\n<div class=\"scroll\"><table>\n"
                       "<tr><th>pair</th><th>first</th><th>without: wall</th><th>CPU</th><th>switches</th>"
                       "<th>with: wall</th><th>CPU</th><th>switches</th></tr>\n";
    for (std::size_t i = 0; i < pairs.size(); i++)
        text += "<tr>" + element("td", std::to_string(i + 1)) + element("td", kArmNames[pairs[i].first]) +
                run_cells(pairs[i].runs[kWithout]) + run_cells(pairs[i].runs[kWith]) + "</tr>\n";
    return text + "</table></div></details>\n";
}

std::string fact(const char *name, const std::string &text) {
    return text.empty() ? "" : "<tr>" + element("td", name) + element("td", text) + "</tr>\n";
}

std::string machine_table(const Comparison &comparison) {
    const Machine &machine = comparison.machine;
    const Load &load = comparison.load;
    std::string variables;
    for (const std::string &variable : comparison.variables)
        variables += (variables.empty() ? "" : " ") + variable;
    return "<div class=\"scroll\"><table class=\"facts\">\n" + fact("processor", machine.processor) +
           fact("CPUs", std::to_string(machine.processors)) + fact("kernel", machine.kernel) +
           fact("C library", machine.libc) + fact("meanwhile", load_line(load, machine.processors)) +
           fact("load average",
                fixed(load.load_before, 2) + " before, " + fixed(load.load_after, 2) + " after") +
           fact("measured for", duration(load.seconds)) + fact("variables", variables) +
           fact("thrum", THRUM_VERSION) + "</table></div>\n";
}

// --- the page ----------------------------------------------------------------------------------------

std::string verdict_card(const Comparison &comparison, const Verdict &verdict) {
    const bool faster = verdict.kind == Verdict::kFaster, slower = verdict.kind == Verdict::kSlower;
    std::string text = std::string("<div class=\"verdict") +
                       (faster   ? " faster"
                        : slower ? " slower"
                                 : "") +
                       "\">\n<p class=\"line\">" + html_text(verdict.line) + "</p>\n";
    for (const std::string &note : verdict.notes)
        text += element("p", note) + "\n";
    text += element("p", pairs_line(comparison) + ", without and with the cache in turn") + "\n";
    if (!comparison.failure.empty())
        text += element("p", comparison.failure) + "\n";
    return text + "</div>\n";
}

std::string plots(const Comparison &comparison, const Summary &summary) {
    const Interval &ratio = summary.wall.ratio;
    return "<h2>Wall time without / with, pair by pair</h2>\n" + plot_ratios(summary.ratios, ratio) +
           "<p class=\"legend\">Above the dashed line, the run with the cache was the faster one. Line: the "
           "median, " +
           html_text(three_digits(ratio.median)) + "; band: its " +
           html_text(fixed(100 * ratio.confidence, ratio.confidence > 0.99 ? 1 : 0)) + " % interval, " +
           html_text(three_digits(ratio.low)) + " to " + html_text(three_digits(ratio.high)) +
           ".</p>\n<h2>Wall time of every run</h2>\n" + plot_times(comparison.pairs) +
           "<p class=\"legend\"><svg viewBox=\"0 0 14 14\"><circle cx=\"7\" cy=\"7\" r=\"4.5\" "
           "class=\"without\"/></svg> "
           "without &#160; <svg viewBox=\"0 0 14 14\"><circle cx=\"7\" cy=\"7\" r=\"4.5\" "
           "class=\"with\"/></svg> with the "
           "cache</p>\n";
}

} // namespace

std::string as_html(const Comparison &comparison, const Summary &summary, const Verdict &verdict) {
    const std::string command = shell_line(comparison.words);
    std::string body = element("h1", "thrum compare") + "\n" + element("pre", command) + "\n" +
                       verdict_card(comparison, verdict);
    if (!comparison.pairs.empty())
        body += "<h2>Medians</h2>\n" + summary_table(summary) + plots(comparison, summary);
    body += "<h2>Machine</h2>\n" + machine_table(comparison);
    if (!comparison.pairs.empty())
        body += runs_table(comparison.pairs);
    return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n" +
           element("title", verdict.line + " - " + command) + "\n<style>" + kStyle +
           "</style>\n</head>\n<body>\n<main>\n" + body + "</main>\n</body>\n</html>\n";
}

} // namespace thrum
