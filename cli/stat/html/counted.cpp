// SPDX-License-Identifier: Apache-2.0
//
// What was counted where that is allowed, and the tables of threads and processes.
#include <algorithm>

#include "stat/html/html.hpp"
#include "stat/names.hpp"
#include "stat/stat_plot.hpp"
#include "tools/page.hpp"
#include "tools/text.hpp"

namespace thrum::stat::html {

namespace {

constexpr std::size_t kThreads = 100; // in the table of threads

std::string counters_row(const std::string &which, const HardwareCounts &counts) {
    const auto each = [&counts](double misses) {
        return misses > 0 ? number_text(counts.per_thousand(misses), 2) : std::string("not known");
    };
    return "<tr>" + html_element("td", which) +
           html_element("td", number_text(counts.instructions / 1e9, 2)) +
           html_element("td", number_text(counts.cycles / 1e9, 2)) +
           html_element("td", number_text(counts.per_cycle(), 2)) +
           html_element("td", each(counts.cache_misses)) + html_element("td", each(counts.l1_misses)) +
           "</tr>\n";
}

} // namespace

std::string system_calls(const Report &report) {
    if (report.system_calls.empty())
        return "";
    std::string rows = "<tr><th>system call</th><th>calls</th></tr>\n";
    for (std::size_t i = 0; i < std::min(report.system_calls.size(), kRows); i++)
        rows += "<tr>" + html_element("td", report.system_calls[i].first) +
                html_element("td", std::to_string(report.system_calls[i].second)) + "</tr>\n";
    return html_table("", rows) + more(report.system_calls.size(), kRows);
}

std::string counters(const Report &report) {
    if (!report.counters)
        return "";
    std::string rows = "<tr><th>run</th><th>billion instructions</th><th>billion cycles</th>"
                       "<th>instructions per cycle</th><th>cache misses per 1000 instructions</th>"
                       "<th>misses of the first level</th></tr>\n";
    if (report.counters_one && !report.points.empty())
        rows += counters_row(threads_line(report.points.front().threads), *report.counters_one);
    return html_table("", rows + counters_row(threads_line(report.sampled_threads), *report.counters));
}

std::string switches(const Report &report) {
    if (!report.switched)
        return "";
    const Switched &all = *report.switched;
    const auto row = [](const char *what, double seconds, const std::string &times) {
        return "<tr>" + html_element("td", what) + html_element("td", time_text(seconds)) +
               html_element("td", times) + "</tr>\n";
    };
    const std::string rows = "<tr><th>threads were</th><th>time</th><th>times</th></tr>\n" +
                             row("on CPUs", all.on, "") +
                             row("preempted", all.preempted, std::to_string(all.involuntary)) +
                             row("asleep", all.blocked, std::to_string(all.voluntary));
    return html_table("", rows) + icicle("time asleep, by where it began", report.blocked);
}

std::string threads_table(const Report &report) {
    if (report.threads.empty())
        return "";
    std::string rows = "<tr><th>thread</th><th>name</th><th>from</th><th>to</th><th>CPU time</th>"
                       "<th>without a CPU</th><th>switches</th></tr>\n";
    for (std::size_t i = 0; i < std::min(report.threads.size(), kThreads); i++) {
        const Thread &thread = report.threads[i];
        rows += "<tr>" + html_element("td", std::to_string(thread.id)) + html_element("td", thread.name) +
                html_element("td", time_text(thread.begin)) + html_element("td", time_text(thread.end)) +
                html_element("td", time_text(thread.cpu)) + html_element("td", time_text(thread.run_delay)) +
                html_element("td",
                             std::to_string(thread.voluntary) + " / " + std::to_string(thread.involuntary)) +
                "</tr>\n";
    }
    return "<details><summary>Threads of the sampled run</summary>\n" + html_table("", rows) +
           more(report.threads.size(), kThreads) + "</details>\n";
}

// --- processes ------------------------------------------------------------------------------------------

std::string processes(const Report &report) {
    if (report.processes.size() < 2)
        return "";
    const double all = std::max(report.own_cpu + report.children_cpu, 1e-9);
    std::string rows = "<tr><th>process</th><th>command</th><th>parent</th><th>CPU time</th><th>share</th>"
                       "<th>threads at once</th></tr>\n";
    for (std::size_t i = 0; i < std::min(report.processes.size(), kRows); i++) {
        const Process &process = report.processes[i];
        rows += "<tr>" + html_element("td", std::to_string(process.id)) + html_element("td", process.name) +
                html_element("td", i == 0 ? "the program itself" : std::to_string(process.parent)) +
                html_element("td", time_text(process.cpu)) + html_element("td", percent(process.cpu / all)) +
                html_element("td", std::to_string(process.threads)) + "</tr>\n";
    }
    return html_table("", rows) + more(report.processes.size(), kRows);
}

} // namespace thrum::stat::html
