// SPDX-License-Identifier: Apache-2.0
//
// --html: the report as a page that stands by itself (page.hpp), from the verdict down to what it was concluded from. Its
// pictures are stat_plot.cpp's.
#include <algorithm>
#include <cmath>
#include <map>

#include "comparison.hpp"
#include "names.hpp"
#include "tools/page.hpp"
#include "stat/facts.hpp"
#include "stat_plot.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

constexpr std::size_t kRows = 20;     // of a table, where there may be any number
constexpr std::size_t kChain = 10;    // functions of a stack in a table
constexpr std::size_t kThreads = 100; // in the table of threads

// A colour for each thing that a thread does; --in is for letters on the strong ones.
constexpr const char *kStyle = R"(
:root { --in: #ffffff; --running: #2f6fc4; --runnable: #a8680c; --lock: #c23b4d; --io: #1c7f74; --kernel: #7a559f;
        --join: #c3c9d2; --idle: #dde1e7; --sleep: #cfdccf; --own: #f6cfa8; --library: #dfe5ee; --band: #2f6fc41f; }
@media (prefers-color-scheme: dark) {
  :root { --in: #14161a; --running: #6ba6f2; --runnable: #e0aa48; --lock: #f47f8c; --io: #52c2b2; --kernel: #bb9be0;
          --join: #525a66; --idle: #3a404a; --sleep: #46523f; --own: #7d4c1f; --library: #37404d; --band: #6ba6f22b; }
}
main { max-width: 960px; }
.verdict dl { margin: .75rem 0 0; display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1rem; }
.verdict dt { color: var(--faint); }
.verdict dd { margin: 0; overflow-wrap: anywhere; }
.scales { border-left-color: var(--good); }
.one_run { border-left-color: var(--faint); }
.chip { display: inline-block; padding: 0 .6em; border: 1px solid var(--line); border-radius: 1em;
        color: var(--faint); font-size: .8rem; white-space: nowrap; }
.finding { margin: .75rem 0; padding: .75rem 1.25rem; background: var(--card); border: 1px solid var(--line);
           border-radius: 8px; overflow-wrap: anywhere; }
.finding p { margin: 0 0 .25rem; }
.finding ul { margin: .25rem 0 0; }
h3 { font-size: .95rem; margin: 1.1rem 0 .4rem; color: var(--faint); }
ul { padding-left: 1.25rem; }
code { font: .85em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
td.words { text-align: left; white-space: normal; min-width: 16rem; overflow-wrap: anywhere; }
@media (max-width: 600px) { td.words { min-width: 11rem; } td.words:first-child { min-width: 7rem; } }
td.bar { width: 9rem; }
svg.share { width: 100%; height: .7rem; border: 0; border-radius: 2px; background: var(--idle); }
.wide svg { min-width: 760px; }
.parts svg { border: 0; border-radius: 4px; min-width: 0; }
@media (max-width: 600px) { .parts svg text { font-size: 24px; } }
.code text { font: 11px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: var(--text); }
.running, .user { fill: var(--running); }
.runnable { fill: var(--runnable); }
.lock_wait { fill: var(--lock); }
.input_output { fill: var(--io); }
.kernel { fill: var(--kernel); }
.join_wait { fill: var(--join); }
.idle_wait { fill: var(--idle); }
.sleep { fill: var(--sleep); }
.on-running text, .on-user text, .on-runnable text, .on-lock_wait text, .on-input_output text, .on-kernel text {
  fill: var(--in); font-weight: 600; }
.on-join_wait text, .on-idle_wait text, .on-sleep text { fill: var(--text); }
.ideal, .model, .measured { fill: none; stroke-width: 2; }
.ideal { stroke: var(--faint); stroke-dasharray: 6 5; }
.model { stroke: var(--runnable); stroke-dasharray: 2 4; }
.measured { stroke: var(--running); }
.point { fill: var(--running); }
.spread { stroke: var(--running); stroke-width: 9; stroke-opacity: .25; }
.frame { rx: 2px; }
.own { fill: var(--own); }
.library { fill: var(--library); }
.root { fill: var(--idle); }
.keys { list-style: none; margin: .5rem 0 0; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1.25rem;
        color: var(--faint); font-size: .9rem; }
.keys svg { display: inline; width: 13px; height: 13px; border: 0; border-radius: 3px; vertical-align: -2px; }
)";

std::string section(const std::string &title, const std::string &body) {
    return body.empty() ? "" : html_element("h2", title) + "\n" + body;
}

std::string wide(const char *style, const std::string &picture) {
    return picture.empty() ? "" : "<div class=\"" + std::string(style) + "\">" + picture + "</div>\n";
}

std::string note(const std::string &text) {
    return html_element("p", "legend", text) + "\n";
}

std::string list(const std::vector<std::string> &lines) {
    std::string text;
    for (const std::string &line : lines)
        text += html_element("li", line) + "\n";
    return text.empty() ? "" : "<ul>\n" + text + "</ul>\n";
}

// Behind a table that would be too long.
std::string more(std::size_t all, std::size_t shown) {
    return all <= shown ? "" : note("and " + std::to_string(all - shown) + " more");
}

std::string percent(double share) {
    return number_text(100 * share, share < 0.0995 ? 1 : 0) + " %";
}

std::string key(const char *style, const std::string &text) {
    return "<li><svg viewBox=\"0 0 14 14\"><rect width=\"14\" height=\"14\" class=\"" + std::string(style) +
           "\"/></svg> " + html_words(text) + "</li>\n";
}

std::string keys(const std::string &items) {
    return "<ul class=\"keys\">\n" + items + "</ul>\n";
}

// --- the verdict ---------------------------------------------------------------------------------------

std::string place_of(const Finding &finding) {
    if (finding.file.empty())
        return finding.function;
    return finding.function + " (" + finding.file +
           (finding.line > 0 ? ":" + std::to_string(finding.line) : "") + ")";
}

std::string confidence_chip(const Finding &finding) {
    return html_element("span", "chip", std::string("confidence: ") + name_of(finding.confidence));
}

std::string term(const char *name, const std::string &html) {
    return html.empty() ? "" : html_element("dt", name) + "<dd>" + html + "</dd>\n";
}

std::string how_it_ended(const Report &report) {
    std::string text;
    if (report.interrupted)
        text += "interrupted: these are the results so far; ";
    if (report.signal != 0)
        text += "the program was ended by signal " + std::to_string(report.signal) + "; ";
    else if (report.exit_code != 0)
        text += "the program ended with exit code " + std::to_string(report.exit_code) + "; ";
    return text.empty() ? "" : text.substr(0, text.size() - 2);
}

std::string verdict_card(const Report &report) {
    std::string terms;
    if (!report.findings.empty()) {
        const Finding &cause = report.findings.front();
        const std::string place = place_of(cause);
        terms += term(report.outcome == Outcome::kScales ? "Finding" : "Cause",
                      html_words(cause.cause) + " " + confidence_chip(cause));
        terms += term("Where", place.empty() ? "" : html_element("code", place));
        terms += term("Fix", html_words(cause.fix));
    }
    terms += term("Note", html_text(how_it_ended(report)));
    return "<div class=\"verdict " + std::string(key_of(report.outcome)) + "\">\n" +
           html_element("p", "line", report.verdict) + "\n" +
           (terms.empty() ? "" : "<dl>\n" + terms + "</dl>\n") + "</div>\n";
}

std::string finding_card(const Finding &finding, bool with_fix) {
    const std::string place = place_of(finding);
    return "<div class=\"finding\">\n<p><strong>" + html_words(finding.cause) + "</strong> " +
           confidence_chip(finding) + " " + html_element("span", "chip", finding.rule) + "</p>\n" +
           (place.empty() ? "" : "<p>" + html_element("code", place) + "</p>\n") +
           (with_fix ? html_element("p", finding.fix) + "\n" : "") + list(finding.evidence) + "</div>\n";
}

std::string findings(const Report &report) {
    std::string text;
    for (const Finding &finding : report.findings)
        text += finding_card(finding, &finding != &report.findings.front());
    return text;
}

// --- the sweep -----------------------------------------------------------------------------------------

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

std::string sweep(const Report &report) {
    if (report.points.empty())
        return "";
    const std::string picture = plot_sweep(report);
    std::string rows = "<tr><th>threads</th><th>wall time</th>" +
                       std::string(report.points.size() > 1 ? "<th>speedup</th>" : "") +
                       "<th>CPU time</th><th>in the kernel</th><th>parallel</th><th>without a CPU</th>"
                       "<th>switches</th></tr>\n";
    double longest = 0;
    for (const Point &point : report.points)
        longest = std::max(longest, point.wall.median);
    for (const Point &point : report.points)
        rows += point_row(report, point, unit_of_time(longest));
    return (picture.empty() ? "" : wide("plot", picture) + sweep_legend(report)) +
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

// --- where time went -----------------------------------------------------------------------------------

// Strong colours first, from the left; waits that cost nothing at the end.
constexpr Doing kOrder[] = {Doing::kRunning,     Doing::kKernel,   Doing::kLockWait, Doing::kRunnable,
                            Doing::kInputOutput, Doing::kJoinWait, Doing::kIdleWait, Doing::kSleep};

std::string keys_of(const std::vector<Part> &parts) {
    double sum = 0;
    for (const Part &part : parts)
        sum += part.seconds;
    std::string items;
    for (const Part &part : parts)
        if (part.seconds > 0)
            items += key(part.style, part.name + " " + time_text(part.seconds) + " (" +
                                         percent(part.seconds / sum) + ")");
    return keys(items);
}

std::string parts(const std::string &title, const std::vector<Part> &parts) {
    const std::string picture = plot_parts(title, parts);
    return picture.empty() ? "" : html_element("h3", title) + "\n" + wide("parts", picture) + keys_of(parts);
}

std::string where_time_went(const Report &report) {
    std::vector<Part> doing;
    for (const Doing one : kOrder)
        doing.push_back({key_of(one), name_of(one), report.doing[static_cast<int>(one)]});
    std::string text = parts("The time of all threads, in sum, as sampled", doing);
    if (!report.points.empty()) {
        const Point &last = report.points.back();
        std::vector<Part> used = {{"user", "in the program", last.user},
                                  {"kernel", "in the kernel", last.system}};
        if (!kernel_share(last))
            used = {{"user", "in the program and the kernel (too little to tell apart)", last.cpu()}};
        text += parts(std::string(report.is_bare ? "CPU time of the bare runs" : "CPU time of the run") +
                          (last.threads > 0 ? " with " + counted(last.threads, "thread") : ""),
                      used);
    }
    return text;
}

std::string timeline(const Report &report) {
    const std::string picture = plot_timeline(report);
    if (picture.empty())
        return "";
    std::string items;
    for (const Doing one : kOrder)
        if (report.doing[static_cast<int>(one)] > 0)
            items += key(key_of(one), name_of(one));
    const std::size_t all = report.threads.size();
    return wide("wide", picture) + keys(items) +
           (all > kTimelineRows
                ? note("The " + std::to_string(kTimelineRows) + " of " +
                       counted(static_cast<double>(all), "thread") + " that were seen longest.")
                : "");
}

// --- waits and locks -----------------------------------------------------------------------------------

std::string site_rows(const Report &report, const std::vector<Site> &sites) {
    std::string rows = "<tr><th>share</th><th>samples</th><th>time</th><th></th></tr>\n";
    for (std::size_t i = 0; i < std::min(sites.size(), kRows); i++) {
        const Site &site = sites[i];
        const Lock *lock = lock_of(report, site);
        rows += "<tr>" + html_element("td", percent(site.share)) +
                html_element("td", std::to_string(site.samples)) +
                html_element("td", time_text(site.seconds)) + "<td class=\"words\">" +
                html_element("code", chain_of(site.stack, kChain)) +
                (lock == nullptr ? "" : "<br><small>lock: " + html_text(lock->text) + "</small>") +
                (site.calls ? "<br><small>" + counted(static_cast<double>(*site.calls), "wait") +
                                  (report.exact_estimated ? ", the time by estimate" : "") + "</small>"
                            : "") +
                "</td></tr>\n";
    }
    return rows;
}

std::string icicle(const std::string &what, const std::vector<Site> &sites) {
    const std::string picture = plot_icicle(what, sites);
    if (picture.empty())
        return "";
    const bool cut = std::any_of(sites.begin(), sites.end(),
                                 [](const Site &site) { return site.stack.size() > kIcicleRows; });
    return wide("wide", picture) +
           keys(key("own", "the program's own code") + key("library", "a library's")) +
           (cut ? note("Of the deepest stacks, only the innermost " + std::to_string(kIcicleRows) +
                       " functions are shown.")
                : "");
}

std::string waits(const Report &report) {
    std::string text;
    if (!report.waits.empty())
        text += icicle("waiting for locks", report.waits) + html_table("", site_rows(report, report.waits)) +
                more(report.waits.size(), kRows);
    if (const std::string others = icicle("all other waits", report.others); !others.empty())
        text += "<details><summary>Waits for threads to end, for work, and for input and output</summary>\n" +
                others + "</details>\n";
    return text;
}

std::string lock_row(const LockUse &use) {
    std::string place = use.lock.symbol;
    if (!use.lock.module.empty())
        place += (place.empty() ? "" : " in ") + use.lock.module;
    return "<tr><td class=\"words\">" + html_text(use.lock.text) +
           (place.empty() ? "" : "<br><small>" + html_text(place) + "</small>") + "</td>" +
           html_element("td", key_of(use.lock.kind)) + html_element("td", percent(use.share)) +
           html_element("td", time_text(use.seconds)) +
           html_element("td", use.waits ? std::to_string(*use.waits) : "not counted") +
           html_element("td", use.waiters_most > 0 ? std::to_string(use.threads) : "not seen") +
           html_element("td", use.waiters_most > 0 ? number_text(use.waiters_mean, 1) + " / " +
                                                         std::to_string(use.waiters_most)
                                                   : "not seen") +
           "</tr>\n";
}

std::string locks(const Report &report) {
    if (report.locks.empty())
        return "";
    std::string rows = "<tr><th>lock</th><th>where</th><th>share</th><th>waited</th><th>waits</th>"
                       "<th>threads</th><th>at once</th></tr>\n";
    for (std::size_t i = 0; i < std::min(report.locks.size(), kRows); i++)
        rows += lock_row(report.locks[i]);
    return html_table("", rows) + more(report.locks.size(), kRows) +
           note("Waited: by all threads in sum. At once: threads that waited for it at the same time, mean / "
                "maximum, while one did.");
}

// --- CPU time ------------------------------------------------------------------------------------------

// A function's own share, without what it calls.
struct Burn {
    std::string place;
    double one = 0, most = 0;
};

std::vector<Burn> burns_of(const Report &report) {
    std::map<std::string, Burn> by_name;
    const auto add = [&by_name](const std::vector<Site> &sites, double Burn::*share) {
        for (const Site &site : sites)
            if (!site.stack.empty()) {
                const Frame &frame = site.stack.front();
                Burn &burn = by_name[frame_name(frame) + '\n' + frame.module];
                burn.place = frame_name(frame) + (frame.module.empty() ? "" : " (" + frame.module + ")");
                burn.*share += site.share;
            }
    };
    add(report.burns_one, &Burn::one);
    add(report.burns, &Burn::most);
    std::vector<Burn> burns;
    for (auto &[name, burn] : by_name)
        burns.push_back(std::move(burn));
    std::stable_sort(burns.begin(), burns.end(), [](const Burn &a, const Burn &b) {
        return std::max(a.one, a.most) > std::max(b.one, b.most);
    });
    return burns;
}

std::string share_cells(double share) {
    return html_element("td", percent(share)) + "<td class=\"bar\">" + plot_share(share, "running") + "</td>";
}

std::string threads_line(unsigned threads) {
    return threads > 0 ? counted(threads, "thread") : "this run";
}

std::string profile(const Report &report) {
    const std::vector<Burn> burns = burns_of(report);
    if (burns.empty())
        return "";
    const bool both = !report.burns_one.empty() && !report.points.empty();
    const std::string most = threads_line(report.sampled_threads),
                      one = both ? threads_line(report.points.front().threads) : "";
    std::string rows = "<tr><th>function</th>" +
                       (both ? "<th colspan=\"2\">" + html_text(one) + "</th>" : "") + "<th colspan=\"2\">" +
                       html_text(most) + "</th></tr>\n";
    for (std::size_t i = 0; i < std::min(burns.size(), kRows); i++)
        rows += "<tr><td class=\"words\">" + html_element("code", burns[i].place) + "</td>" +
                (both ? share_cells(burns[i].one) : "") + share_cells(burns[i].most) + "</tr>\n";
    const std::string stacks = (both ? icicle("CPU time, " + one, report.burns_one) + "<br>\n" : "") +
                               icicle("CPU time, " + most, report.burns);
    return html_table("", rows) + more(burns.size(), kRows) +
           note(
               "Shares of CPU time, each function without its callees. Sampled by: " + report.profile_source +
               ", " + counted(static_cast<double>(samples_of(report.burns)), "sample") + ".") +
           "<details><summary>Stacks</summary>\n" + stacks + "</details>\n";
}

// --- what it was concluded from ------------------------------------------------------------------------

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

std::string system_calls(const Report &report) {
    if (report.system_calls.empty())
        return "";
    std::string rows = "<tr><th>system call</th><th>calls</th></tr>\n";
    for (std::size_t i = 0; i < std::min(report.system_calls.size(), kRows); i++)
        rows += "<tr>" + html_element("td", report.system_calls[i].first) +
                html_element("td", std::to_string(report.system_calls[i].second)) + "</tr>\n";
    return html_table("", rows) + more(report.system_calls.size(), kRows);
}

// --- what was counted where that is allowed ---------------------------------------------------------------

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

// What was seen of one that the program started.
std::string child(const Report &of) {
    const std::string name = std::to_string(of.process) + " (" + of.command.front() + ")";
    std::string text =
        note("Sampled for " + time_text(of.sampled_wall) + ", in which it used " + time_text(of.own_cpu) +
             " of CPU time; " + counted(of.sampled_threads, "thread") + " at once at most.");
    if (of.findings.empty())
        text += html_element("p", of.verdict) + "\n";
    for (const Finding &finding : of.findings)
        text += finding_card(finding, true);
    const auto part = [](const char *title, const std::string &body) {
        return body.empty() ? "" : html_element("h3", title) + "\n" + body;
    };
    return section("Process " + name, text + where_time_went(of) + part("Where waiting happened", waits(of)) +
                                          part("Locks", locks(of)) +
                                          part("Where CPU time went", profile(of)));
}

std::string children(const Report &report) {
    std::string text;
    for (const Report &of : report.children)
        if (is_worth_telling(of, report))
            text += child(of);
    return text;
}

std::string sampled_run(const Report &report) {
    return report.sampled_threads > 0 ? " (" + counted(report.sampled_threads, "thread") + ")" : "";
}

} // namespace

std::string html_of(const Report &report) {
    const std::string command = shell_line(report.command), which = sampled_run(report);
    const std::string body =
        html_element("h1", "thrum stat") + "\n" + html_element("pre", command) + "\n" + verdict_card(report) +
        section(report.points.size() > 1 ? "By number of threads" : "The run", sweep(report)) +
        section("Where time went" + which, where_time_went(report)) +
        section("What each thread did" + which, timeline(report)) +
        section("Where waiting happened" + which, waits(report)) + section("Locks" + which, locks(report)) +
        section("Where CPU time went", profile(report)) + section("Processes", processes(report)) +
        children(report) + section("Evidence", findings(report)) +
        section("Processor's counters", counters(report)) +
        section("Context switches" + which, switches(report)) +
        section("System calls" + which, system_calls(report)) +
        section("How we know", list(report.how_known)) + section("What is unknown", list(report.warnings)) +
        section("Machine and noise", machine(report)) + threads_table(report);
    return html_page(report.verdict + " - " + command, kStyle, body);
}

} // namespace thrum::stat
