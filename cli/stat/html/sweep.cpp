// SPDX-License-Identifier: Apache-2.0
//
// The runs by number of threads, and what else the machine did meanwhile.
#include <algorithm>
#include <cmath>

#include "stat/facts.hpp"
#include "stat/html/html.hpp"
#include "stat/names.hpp"
#include "stat/stat_plot.hpp"
#include "tools/page.hpp"
#include "tools/text.hpp"

namespace thrum::stat::html {

namespace {

std::string threads_of(const Point &point) {
    return point.threads > 0 ? std::to_string(point.threads) : "as it is";
}

std::string point_row(const Report &report, const Point &point, const Unit &unit) {
    const double first = report.points.front().wall.median;
    const std::optional<double> share = kernel_share(point);
    const auto in_unit = [&unit](double seconds) {
        return std::isfinite(seconds) ? three_digits(seconds / unit.seconds) : "?";
    };
    return "<tr>" + html_element("td", threads_of(point)) + "<td>" + in_unit(point.wall.median) + " " +
           unit.name +
           (point.wall.count > 1
                ? " <small>" + in_unit(point.wall.low) + " to " + in_unit(point.wall.high) + "</small>"
                : "") +
           "</td>" +
           (report.points.size() > 1 ? html_element("td", factor_text(first / point.wall.median)) : "") +
           html_element("td", time_text(point.cpu())) + html_element("td", share ? percent(*share) : "") +
           html_element("td", number_text(point.parallelism(), 2)) +
           html_element("td", time_text(point.run_delay)) +
           html_element("td", number_text(point.voluntary, 0) + " / " + number_text(point.involuntary, 0)) +
           "</tr>\n";
}

std::string sweep_legend(const Report &report) {
    std::string text = "Dots: measured; shaded: the interval of the median. Dashed: ideal, the speedup equal "
                       "to the number of threads, up to " +
                       counted(report.machine.processors, "CPU") + ".";
    if (report.scaling)
        text += " Dotted: the Universal Scalability Law with contention " +
                number_text(report.scaling->contention, 3) + " and coherency " +
                number_text(report.scaling->coherency, 4) + ", which leave a residual of " +
                percent(report.scaling->residual) + ".";
    return note(text);
}

std::string load_row(const Report &report, const Point &point) {
    const Load &load = point.load;
    return "<tr>" + html_element("td", threads_of(point)) + html_element("td", std::to_string(point.runs)) +
           html_element("td", load.others ? number_text(*load.others, 2) + " of " +
                                                counted(report.machine.processors, "CPU")
                                          : "not known") +
           html_element("td", number_text(load.stolen, 2)) +
           html_element("td", load.waited ? percent(*load.waited) : "not known") +
           html_element("td", number_text(load.load_before, 2) + " / " + number_text(load.load_after, 2)) +
           "</tr>\n";
}

} // namespace

std::string sweep(const Report &report) {
    if (report.points.empty())
        return "";
    const std::string plot = picture("plot", [&](double width) { return plot_sweep(report, width); });
    std::string rows = "<tr><th>threads</th><th>wall time</th>" +
                       std::string(report.points.size() > 1 ? "<th>speedup</th>" : "") +
                       "<th>CPU time</th><th>in the kernel</th><th>parallel</th><th>without a CPU</th>"
                       "<th>switches</th></tr>\n";
    double longest = 0;
    for (const Point &point : report.points)
        longest = std::max(longest, point.wall.median);
    for (const Point &point : report.points)
        rows += point_row(report, point, unit_of_time(longest));
    return (plot.empty() ? "" : plot + sweep_legend(report)) +
           (report.scaling_text.empty() ? "" : html_element("p", report.scaling_text) + "\n") +
           html_table("", rows) +
           note(std::string(report.is_bare
                                ? "Medians of runs in which nothing was injected or sampled; behind "
                                  "the wall time its interval. "
                                : "From the observed run, including the cost of observing. ") +
                "Parallel: CPU time / wall time. Without a CPU: the time that runnable threads waited for a "
                "CPU, in sum. Switches: voluntary / involuntary. In the kernel: unknown for less than 0.1 s "
                "of CPU time.");
}

std::string machine(const Report &report) {
    std::string rows =
        html_machine(report.machine) +
        html_fact("physical cores", report.cores > 0 ? std::to_string(report.cores) : "") +
        html_fact("began", report.began) +
        html_fact("a context switch", report.switch_cost > 0 ? time_text(report.switch_cost) : "") +
        html_fact("sampled", report.samples > 0 ? counted(static_cast<double>(report.samples), "sample") +
                                                      " in " + time_text(report.sampled_wall) + ", " +
                                                      number_text(report.rate, 0) + " sweeps a second"
                                                : "") +
        html_fact("threads", report.is_attached
                                 ? counted(report.sampled_threads, "thread") + " at once at most, " +
                                       std::to_string(report.threads_created) + " new"
                                 : std::to_string(report.threads_created) + " created, " +
                                       std::to_string(report.threads_joined) + " joined" +
                                       (report.threads_counted ? "" : ", as far as was seen")) +
        html_fact("thrum", THRUM_VERSION);
    std::string text = html_table("facts", rows);
    if (report.points.empty())
        return text;
    std::string noise = "<tr><th>threads</th><th>runs</th><th>used by others</th><th>stolen CPUs</th>"
                        "<th>CPU pressure</th><th>load before / after</th></tr>\n";
    for (const Point &point : report.points)
        noise += load_row(report, point);
    return text + html_element("h3", "Meanwhile") + "\n" + html_table("", noise) +
           note("CPU pressure: the share of the time in which a task was runnable without a CPU, including "
                "the program's own threads.");
}

} // namespace thrum::stat::html
