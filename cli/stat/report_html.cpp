// SPDX-License-Identifier: Apache-2.0
//
// --html: the report as a page that stands by itself (page.hpp), from the verdict down to what it was concluded from. Its
// parts are in html/, its pictures stat_plot.cpp's.
#include "names.hpp"
#include "stat/facts.hpp"
#include "stat/html/html.hpp"
#include "tools/page.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

using namespace html;

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
@media (max-width: 600px) { td.words { min-width: 17rem; } td.words:first-child { min-width: 7rem; } }
td.bar { width: 9rem; }
svg.share { width: 100%; height: .7rem; border: 0; border-radius: 2px; background: var(--idle); }
.wide.broad svg { min-width: 760px; }
.parts svg { border: 0; border-radius: 4px; }
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

// What was seen of one that the program started.
std::string child(const Report &of) {
    const std::string name = std::to_string(of.process) + " (" + of.command.front() + ")";
    std::string text =
        note("Sampled for " + time_text(of.sampled_wall) + ", in which it used " + time_text(of.own_cpu) +
             " of CPU time; " + counted(of.sampled_threads, "thread") + " at once at most.");
    if (of.findings.empty() || of.findings.front().rule == "inconclusive")
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
