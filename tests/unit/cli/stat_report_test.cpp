// SPDX-License-Identifier: Apache-2.0
//
// cli/stat/report_*.cpp: what is made of a report (stat_fixture.hpp) for programs and for browsers.
#include <gtest/gtest.h>

#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "documents.hpp"
#include "stat/stat_plot.hpp"
#include "stat_fixture.hpp"

namespace {

using thrum::stat::Report;

std::size_t count(const std::string &text, const std::string &part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
        found++;
    return found;
}

// --- JSON ----------------------------------------------------------------------------------------------------

TEST(StatReport, JsonHasTheFields) {
    const std::string json = json_of(report_of_random());
    EXPECT_EQ(count(json, "\n"), 1U);
    EXPECT_EQ(json_value(json, "d['outcome'], d['verdict'][:28], d['command']"),
              "slower Threads make this program SL ['./birthday', '{}']");
    EXPECT_EQ(
        json_value(json, "[[f['rule'], f['confidence'], f['function'], f['file'], f['line']] for f in "
                         "d['findings']]"),
        "[['hidden-lock', 'high', 'draw', 'birthday.c', 21], ['oversubscribed', 'low', None, None, None]]");
    EXPECT_EQ(json_value(json, "[[p['threads'], p['wall']['median'], p['cpu']] for p in d['points']]"),
              "[[1, 0.32, 0.32], [2, 0.48, 0.62], [4, 1.08, 1.83]]");
    EXPECT_EQ(json_value(json, "d['scaling'], sorted(d['doing'])"),
              "None ['idle_wait', 'input_output', 'join_wait', 'kernel', 'lock_wait', 'runnable', 'running', "
              "'sleep']");
    EXPECT_EQ(json_value(json, "d['locks'][0]['lock']['kind'], d['locks'][0]['lock']['address'], "
                               "d['locks'][0]['waits']"),
              "library 0x7f12345678c0 None");
    EXPECT_EQ(
        json_value(json, "[w['lock'] for w in d['waits']], [f['function'] for f in d['waits'][1]['stack']]"),
        "[0, 0, None] ['__lll_lock_wait_private', 'random', 'draw', 'worker', 'start_thread', '__clone3']");
    EXPECT_EQ(
        json_value(json, "d['waits'][0]['stack'][2]"),
        "{'function': 'draw', 'file': 'birthday.c', 'line': 21, 'module': 'birthday', 'offset': '0x1215', "
        "'is_user': True}");
    EXPECT_EQ(json_value(json, "len(d['threads']), d['threads'][1]['name'], d['profile_source'], "
                               "d['burns_one'][0]['doing'], d['signal'], d['interrupted']"),
              "5 worker perf event running 0 False");
}

TEST(StatReport, JsonOfAModelAndOfExactRuns) {
    const std::string json = json_of(report_that_scales());
    EXPECT_EQ(json_value(json, "d['outcome'], d['scaling']['contention'], d['scaling']['best_threads']"),
              "scales 0.009 None");
    EXPECT_EQ(json_value(json, "d['exact'], d['threads_counted'], d['system_calls'][0]"),
              "True True {'name': 'futex', 'calls': 120}");
}

TEST(StatReport, JsonOfBadNamesAndNumbers) {
    const std::string json = json_of(report_inconclusive());
    EXPECT_EQ(json_value(json, "d['outcome'], ascii(d['command'][0])"),
              "inconclusive '</title><b onload=\"x\">&\\'\";\\n\\x01\\ufffd\\ufffd'");
    EXPECT_EQ(json_value(json,
                         "d['points'][0]['threads'], d['points'][0]['wall']['median'], "
                         "d['points'][0]['load']['others'], d['waits'][0]['lock'], d['waits'][0]['share']"),
              "None None None None None");
    EXPECT_EQ(json_value(json, "d['locks'][0]['lock']['address'], d['waits'][0]['calls']"),
              "0xffffffffffffffff 12");
}

// --- the page ------------------------------------------------------------------------------------------------

TEST(StatReport, PagesStandByThemselves) {
    for (const Report &report : {report_of_random(), report_that_scales(), report_inconclusive()}) {
        const std::string page = html_of(report);
        expect_sound_page(page);
        EXPECT_LT(page.size(), 1000000U);
    }
    EXPECT_NE(html_of(Report()).find("</html>"), std::string::npos);
}

// Of a page: what stands below a heading of that beginning, up to the next one; of the last up to the end.
std::string section_of(const std::string &page, const std::string &heading) {
    const std::size_t begin = page.find("<h2>" + heading);
    EXPECT_NE(begin, std::string::npos) << heading;
    return begin == std::string::npos ? "" : page.substr(begin, page.find("<h2>", begin + 1) - begin);
}

void expect_parts(const std::string &page, const std::string &heading,
                  const std::vector<std::string> &parts) {
    const std::string section = section_of(page, heading);
    for (const std::string &part : parts)
        EXPECT_NE(section.find(part), std::string::npos) << heading << ": " << part << "\n"
                                                         << section.substr(0, 20000);
}

// A number and its unit are bound together (text_test.cpp); words are looked for here.
std::string spaced(std::string page) {
    const std::string bound = "\xc2\xa0";
    for (std::size_t at = page.find(bound); at != std::string::npos; at = page.find(bound, at))
        page.replace(at, bound.size(), " ");
    return page;
}

struct Picture {
    double width;
    std::string content;
};

// Those in boxes of a kind, "broad" or "narrow".
std::vector<Picture> pictures_of(const std::string &page, const std::string &kind) {
    const std::string begin = " " + kind + "\"><svg viewBox=\"0 0 ";
    std::vector<Picture> pictures;
    for (std::size_t at = page.find(begin); at != std::string::npos; at = page.find(begin, at + 1)) {
        const std::size_t number = at + begin.size();
        pictures.push_back(
            {std::stod(page.substr(number)), page.substr(number, page.find("</svg>", number) - number)});
    }
    return pictures;
}

// By what a letter takes at the least.
void expect_labels_within(const Picture &picture) {
    constexpr double kLetter = 5;
    const std::regex label("<text x=\"([0-9.-]+)\" y=\"[0-9.-]+\" text-anchor=\"([a-z]+)\">([^<]*)<");
    for (std::sregex_iterator at(picture.content.begin(), picture.content.end(), label), end; at != end;
         ++at) {
        const std::string anchor = (*at)[2], text = (*at)[3];
        const double x = std::stod((*at)[1]), wide = kLetter * static_cast<double>(text.size());
        const double from = anchor == "start" ? x : anchor == "end" ? x - wide : x - wide / 2;
        EXPECT_GE(from, 0) << text << " in " << picture.width;
        EXPECT_LE(from + wide, picture.width) << text << " in " << picture.width;
    }
}

// Each picture is drawn for a narrow page as well: made smaller as a whole, its letters would be too small.
TEST(StatReport, PicturesAreDrawnForNarrowPagesToo) {
    for (const Report &report : {report_of_random(), report_that_scales()}) {
        const std::string page = html_of(report);
        const std::vector<Picture> broad = pictures_of(page, "broad"), narrow = pictures_of(page, "narrow");
        EXPECT_GE(broad.size(), 4U);
        ASSERT_EQ(narrow.size(), broad.size());
        for (std::size_t i = 0; i < broad.size(); i++) {
            EXPECT_EQ(broad[i].width, 920);
            EXPECT_EQ(narrow[i].width, 400);
            expect_labels_within(broad[i]);
            expect_labels_within(narrow[i]);
        }
        EXPECT_NE(page.find(".narrow { display: none; }"), std::string::npos);
        EXPECT_NE(page.find(".broad { display: none; }"), std::string::npos);
    }
}

// Times below a timeline, however long that is: the last one has no room on its right, and takes none of its neighbour's.
TEST(StatReport, TimesOfATimelineDoNotOverlap) {
    constexpr double kLetter = 6;
    const std::regex label("<text x=\"([0-9.-]+)\" y=\"[0-9.-]+\" text-anchor=\"([a-z]+)\">([0-9.]+ m?s)<");
    Report report;
    for (int ms = 101; ms < 2000; ms += 7) {
        report.threads = {thrum::stat::Thread()};
        report.threads[0].id = 12345;
        report.threads[0].name = "worker";
        report.threads[0].end = ms * 1e-3;
        report.threads[0].spans = {{0, ms * 1e-3, thrum::stat::Doing::kRunning, SIZE_MAX}};
        const std::string picture = thrum::stat::plot_timeline(report, 400);
        double end = -1;
        int labels = 0;
        for (std::sregex_iterator at(picture.begin(), picture.end(), label), none; at != none;
             ++at, labels++) {
            const double wide = kLetter * static_cast<double>((*at)[3].length());
            const double from = std::stod((*at)[1]) - wide * ((*at)[2] == "end"      ? 1
                                                              : (*at)[2] == "middle" ? 0.5
                                                                                     : 0);
            EXPECT_GE(from, end) << (*at)[3] << " of " << ms << " ms";
            end = from + wide;
        }
        EXPECT_GE(labels, 2) << ms << " ms";
    }
}

TEST(StatReport, ThePageShowsAll) {
    const std::string page = spaced(html_of(report_of_random()));
    for (const char *part :
         {"SLOWER: 4 threads take 3.3x", "class=\"verdict slower\"", "Hidden lock in libc: random()",
          "confidence: high", "draw (birthday.c:21)", "Use random_r() with per-thread state."})
        EXPECT_LT(page.find(part), page.find("<h2>")) << part << ": before everything else";
    expect_parts(page, "By number of threads",
                 {"Retrograde: best at 1 thread", "<polyline class=\"ideal\" points=\"", "Dashed: ideal",
                  "<polyline class=\"measured\" points=\"", "<title>4 threads: 1.08 s, 0.30x</title>",
                  "<th>speedup</th>", "<td>0.30x</td>"});
    expect_parts(page, "Where waiting happened (4 threads)",
                 {"aria-label=\"waiting for locks\"",
                  "<title>waiting for locks: 100.0 %, 1.53 s, 153 samples</title>",
                  "<title>has_dup (birthday.c:34): 96.7 %", "class=\"frame own\"", "class=\"frame library\"",
                  "random &lt;- draw (birthday.c:21)", "aria-label=\"all other waits\""});
    expect_parts(page, "Locks (4 threads)",
                 {"static lock inside libc", "<th>at once</th>", "<td>library</td>", "<td>99 %</td>",
                  "<td>1.7 / 3</td>", "<td>not counted</td>"});
    expect_parts(page, "Where CPU time went",
                 {"<code>msort_with_tmp (libc.so.6)</code><br><small>&lt;- has_dup (birthday.c:34)</small>",
                  "aria-label=\"CPU time, 4 threads\"", "perf event, 32 and 182 samples."});
    expect_parts(page, "Evidence",
                 {"44 % of the CPU time is in the kernel", "More threads than CPUs: 4 on 2",
                  "threads were runnable without a CPU for 0.21 s",
                  "<span class=\"chip\">hidden-lock</span>"});
    expect_parts(page, "How we know",
                 {"<li>Times: 5 bare runs", "<li>Waits: /proc was read", "<li>CPU time: a perf"});
    expect_parts(page, "What is unknown", {"<li>no debugging information: libc.so.6"});
    EXPECT_EQ(page.find("class=\"model\""), std::string::npos);
    EXPECT_EQ(page.find("System calls"), std::string::npos);
}

// Two reports of one run: what CPU time went to has one name and one share in both.
TEST(StatReport, ThePageNamesFunctionsAsTheTextDoes) {
    Report report = report_of_random();
    thrum::stat::Frame interpreter, function;
    interpreter.function = "_PyEval_EvalFrameDefault";
    interpreter.module = "python3.11";
    function.function = "f";
    function.file = "mp.py";
    function.line = 4;
    function.is_user = true;
    thrum::stat::Site site;
    site.stack = {interpreter, function};
    site.share = 0.9;
    site.samples = 9;
    report.burns = {site};
    report.burns_one.clear();
    EXPECT_NE(text_of(report).find("   90%  f (mp.py:4)\n"), std::string::npos) << text_of(report);
    const std::string section = section_of(spaced(html_of(report)), "Where CPU time went");
    EXPECT_NE(section.find("<td class=\"words\"><code>f (python3.11)</code><br><small>(mp.py:4)</small></td>"
                           "<td>90 %</td>"),
              std::string::npos)
        << section;
    EXPECT_NE(section.find("perf event, 9 samples."), std::string::npos) << section;
}

// There is nothing below the heading but what is folded: it is said why.
TEST(StatReport, ThePageSaysThatNoThreadWaitedForALock) {
    Report report = report_of_random();
    const std::string none = "No thread was seen waiting for a lock.";
    EXPECT_EQ(spaced(html_of(report)).find(none), std::string::npos);
    report.waits.clear();
    const std::string section = section_of(spaced(html_of(report)), "Where waiting happened");
    EXPECT_LT(section.find(none), section.find("<details>")) << section;
}

// The bar, and below it a key that says the same: what costs something first.
TEST(StatReport, ThePageShowsWhereTimeWent) {
    const std::string page = spaced(html_of(report_of_random())),
                      section = section_of(page, "Where time went (4 threads)");
    const struct {
        const char *style, *title, *key;
    } kinds[] = {{"running", "running: 1.31 s, 24 %", "running 1.31 s (24 %)"},
                 {"kernel", "kernel: 440 ms, 8 %", "kernel 440 ms (8.1 %)"},
                 {"lock_wait", "lock wait: 1.53 s, 28 %", "lock wait 1.53 s (28 %)"},
                 {"runnable", "runnable: 870 ms, 16 %", "runnable 870 ms (16 %)"},
                 {"input_output", "input and output: 220 ms, 4 %", "input and output 220 ms (4.0 %)"},
                 {"join_wait", "join wait: 1.07 s, 20 %", "join wait 1.07 s (20 %)"}};
    std::size_t bar = 0, keys = 0;
    for (const auto &kind : kinds) {
        const std::string style = std::string("class=\"") + kind.style + "\"";
        const std::size_t box = section.find(style + "><title>" + kind.title + "</title></rect>"),
                          key = section.find(style + "/></svg> " + kind.key + "</li>");
        ASSERT_NE(box, std::string::npos) << kind.title << "\n" << section;
        ASSERT_NE(key, std::string::npos) << kind.key << "\n" << section;
        EXPECT_GT(box, bar) << kind.title;
        EXPECT_GT(key, keys) << kind.key;
        bar = box;
        keys = key;
    }
    EXPECT_EQ(section.find("sleep"), std::string::npos) << "no thread did";
    expect_parts(page, "Where time went",
                 {"CPU time of the bare runs with 4 threads", "in the program: 1.02 s, 56 %",
                  "in the kernel: 810 ms, 44 %"});
}

TEST(StatReport, ThePageShowsWhatEachThreadDid) {
    const std::string page = spaced(html_of(report_of_random()));
    const std::string heading = "What each thread did (4 threads)", section = section_of(page, heading);
    EXPECT_EQ(count(section, "<g><title>"), 2 * 5U);
    expect_parts(
        page, heading,
        {"<g><title>birthday 4711: ", "<g><title>worker 4712: 440 ms on a CPU, 50.0 ms without one</title>",
         "<g><title>worker 4715: ", "class=\"running\"", "class=\"runnable\"", "class=\"lock_wait\"",
         "class=\"kernel\"", "class=\"input_output\"", "<title>join wait, "});
    EXPECT_NE(page.find("<summary>Threads of the sampled run</summary>"), std::string::npos);
}

TEST(StatReport, ThePageShowsTheMachineAndItsNoise) {
    const std::string page = spaced(html_of(report_of_random())), heading = "Machine and noise";
    expect_parts(page, heading,
                 {"Example Processor 3000", "Linux 6.1.0 x86_64", "glibc 2.36",
                  "<td>physical cores</td><td>2</td>", "2026-01-02T03:04:05Z",
                  "<td>a context switch</td><td>3.1", "541 samples in 1.09 s, 99 sweeps a second",
                  "4 created, 4 joined", "<h3>Meanwhile</h3>", "<th>used by others</th>",
                  "<th>stolen CPUs</th>", "<th>CPU pressure</th>", "<th>load before / after</th>"});
    EXPECT_EQ(count(section_of(page, heading), "<td>5</td><td>0.06 of 2 CPUs</td><td>0.00</td><td>2.0 %</td>"
                                               "<td>0.40 / 0.90</td>"),
              3U)
        << "for each number of threads";
}

TEST(StatReport, ThePageOfOneThatScales) {
    const std::string page = spaced(html_of(report_that_scales()));
    for (const char *part :
         {"class=\"verdict scales\"", "class=\"model\"", "<h2>System calls", "The 40 of 60 threads"})
        EXPECT_NE(page.find(part), std::string::npos) << part;
    EXPECT_EQ(page.find("Where waiting happened"), std::string::npos) << "there was none";
}

// What not every machine or user has.
TEST(StatReport, CountersAndSwitches) {
    Report report = report_of_random();
    EXPECT_EQ(json_value(json_of(report), "d['counters'], d['counters_one'], d['switched'], d['blocked']"),
              "None None None []");
    EXPECT_EQ(html_of(report).find("Processor's counters"), std::string::npos);
    report.counters_one.emplace().instructions = 43.4e9;
    report.counters_one->cycles = 29.7e9;
    report.counters.emplace().instructions = 248.9e9;
    report.counters->cycles = 488e9;
    report.counters->cache_misses = 248.9e7;
    report.switched = thrum::stat::Switched{1.83, 0.21, 1.05, 12, 788};
    report.blocked = report.waits;
    EXPECT_EQ(json_value(json_of(report), "d['counters_one']['per_cycle'], d['counters']['per_cycle'], "
                                          "d['counters']['cache_misses'], d['counters']['l1_misses']"),
              "1.461 0.51 2489000000 None");
    EXPECT_EQ(json_value(json_of(report), "d['switched'], len(d['blocked'])"),
              "{'on': 1.83, 'preempted': 0.21, 'blocked': 1.05, 'involuntary': 12, 'voluntary': 788} 3");
    const std::string page = spaced(html_of(report));
    expect_sound_page(page);
    for (const char *part :
         {"Processor", "1.46", "0.51", "10.00", "Context switches", ">788<", "1.83 s", "time asleep"})
        EXPECT_NE(page.find(part), std::string::npos) << part;
}

TEST(StatReport, ThePageQuotesWhatOthersNamed) {
    const std::string page = html_of(report_inconclusive());
    for (const char *bad : {"<b ", "\x01", "\xff", "nan", "inf\"", "inf ", "\"x\"", ">inf"})
        EXPECT_EQ(page.find(bad), std::string::npos) << bad;
    expect_sound_page(page);
    EXPECT_NE(page.find("ended by signal 11"), std::string::npos);
    EXPECT_NE(page.find("interrupted: "), std::string::npos);
}

// --- the trace -----------------------------------------------------------------------------------------------

// How many threads have slices, and the first names of the process and its threads.
std::string threads_of(const std::string &trace) {
    return json_value(trace, "len({e['tid'] for e in d['traceEvents'] if e['ph'] == 'X'}), "
                             "*[e['args']['name'] for e in d['traceEvents'] if 'name' in e['args']][:3]");
}

TEST(StatReport, Traces) {
    for (const Report &report : {report_of_random(), report_that_scales(), Report()})
        expect_sound_trace(trace_of(report));
    EXPECT_EQ(threads_of(trace_of(report_of_random())), "5 birthday birthday worker");
    EXPECT_EQ(threads_of(trace_of(report_that_scales())),
              "60 worker-pool pool-worker-long-name pool-worker-long-name");
    EXPECT_EQ(threads_of(trace_of(Report())), "0 ?");
}

TEST(StatReport, ATraceSaysWhereAThreadWaited) {
    const std::string trace = trace_of(report_of_random());
    EXPECT_EQ(
        json_value(trace, "[e['args'] for e in d['traceEvents'] if e.get('cat') == 'lock_wait'][0]['lock']"),
        "libc.so.6 .data (static lock inside libc)");
    EXPECT_EQ(json_value(trace, "sorted({e['name'] for e in d['traceEvents'] if e['ph'] == 'X'})"),
              "['input and output', 'join wait', 'kernel', 'lock wait: __lll_lock_wait_private', 'runnable', "
              "'running: random']");
}

// Also where its first thread was not the first that was seen.
TEST(StatReport, ATraceHasTheProcesssNumber) {
    Report report = report_of_random();
    report.process = 4711;
    EXPECT_EQ(json_value(trace_of(report), "{e['pid'] for e in d['traceEvents']}"), "{4711}");
}

TEST(StatReport, ATraceOfBadNamesAndNumbersCanBeRead) {
    expect_sound_trace(trace_of(report_inconclusive()), true);
}

// --- folded stacks -------------------------------------------------------------------------------------------

TEST(StatReport, FoldedStacks) {
    EXPECT_EQ(folded_of(report_of_random()),
              "__clone3;start_thread;worker;has_dup;draw;random;__lll_lock_wait_private 148\n"
              "__clone3;start_thread;worker;draw;random;__lll_lock_wait_private 4\n"
              "__clone3;start_thread;worker;_IO_puts;__lll_lock_wait_private 1\n"
              "start_thread;worker;has_dup;draw;random;[running] 90\n"
              "start_thread;worker;has_dup;draw;random;__lll_lock_wait_private;[running] 56\n"
              "start_thread;worker;has_dup;msort_with_tmp;[running] 22\n"
              "start_thread;worker;has_dup;[running] 14\n");
    EXPECT_EQ(folded_of(Report()), "");
}

// Each line ends in a space and a number, and has as many parts as the stack, whatever the functions are called.
TEST(StatReport, FoldedStacksOfBadNames) {
    const std::string text = folded_of(report_inconclusive());
    std::istringstream lines(text);
    std::vector<std::size_t> parts;
    for (std::string line; std::getline(lines, line);) {
        const std::string number = line.substr(line.rfind(' ') + 1);
        EXPECT_EQ(number.find_first_not_of("0123456789"), std::string::npos) << line;
        parts.push_back(count(line, ";") + 1);
    }
    EXPECT_EQ(parts, (std::vector<std::size_t>{3, 3000, 2, 3}));
}

} // namespace
