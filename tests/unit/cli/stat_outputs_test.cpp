// SPDX-License-Identifier: Apache-2.0
//
// What `thrum stat` writes of a real program whose threads want one mutex (watched.c): the text, --json, --html, --trace and
// --folded, each by itself, and all of one run held against each other. What the writers make of reports that are made up
// is in stat_report_test.cpp. Judged by names, shares and counts, never by times.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <regex>
#include <sstream>

#include "documents.hpp"
#include "place.hpp"
#include "stat_fixture.hpp"

namespace {

const Words kProgram = {CLI_WATCHED, "share", "4", "600"};

Ended thrum_stat(const Words &options) {
    Words words = {place().thrum(), "stat"};
    words.insert(words.end(), options.begin(), options.end());
    words.push_back("--");
    words.insert(words.end(), kProgram.begin(), kProgram.end());
    return spawn(words);
}

// A name for a file that is not there yet.
std::string fresh(const std::string &name) {
    const std::string path = place().path(name);
    std::remove(path.c_str());
    return path;
}

std::size_t count(const std::string &text, const std::string &part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
        found++;
    return found;
}

// "put (watched.c:48)"
[[maybe_unused]] std::string place_of(const std::string &function, std::string mark = "") {
    mark = mark.empty() ? function : mark;
    std::ifstream source(CLI_WATCHED_SOURCE);
    int number = 1;
    for (std::string line; std::getline(source, line); number++)
        if (line.find("HERE " + mark + " ") != std::string::npos)
            return function + " (watched.c:" + std::to_string(number) + ")";
    return "no such mark";
}

struct Folded {
    std::vector<std::string> functions; // the outermost first
    unsigned long samples;
};

// Each line is functions with ';' between them, a blank and a number.
std::vector<Folded> folded_of(const std::string &text) {
    static const std::regex form(R"(([^;]+(?:;[^;]+)*) ([1-9][0-9]*))");
    std::vector<Folded> stacks;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::smatch parts;
        if (!std::regex_match(line, parts, form)) {
            ADD_FAILURE() << "no folded stack: " << line;
            continue;
        }
        stacks.push_back({{}, std::stoul(parts[2])});
        std::istringstream functions(parts[1]);
        for (std::string function; std::getline(functions, function, ';');)
            stacks.back().functions.push_back(function);
    }
    return stacks;
}

// Of the stacks that end in what a thread did, "[running]", or of those of lock waits, which end in a function.
unsigned long samples_of(const std::vector<Folded> &stacks, const std::string &doing,
                         const std::string &function = "") {
    unsigned long sum = 0;
    for (const Folded &stack : stacks) {
        const std::string &last = stack.functions.back();
        const bool is_wait = last.front() != '[';
        const bool has = function.empty() || std::find(stack.functions.begin(), stack.functions.end(),
                                                       function) != stack.functions.end();
        sum += (doing.empty() ? is_wait : last == doing) && has ? stack.samples : 0;
    }
    return sum;
}

void expect_folded(const std::string &text) {
    const std::vector<Folded> stacks = folded_of(text);
    EXPECT_GT(samples_of(stacks, ""), 20U) << text;
#ifdef CLI_ELFUTILS
    EXPECT_GE(samples_of(stacks, "", "put"), 0.8 * samples_of(stacks, "")) << text;
    EXPECT_NE(text.find("fill;put;"), std::string::npos) << "the callers are there\n" << text;
    EXPECT_GE(samples_of(stacks, "[running]", "put"), 0.5 * samples_of(stacks, "[running]")) << text;
    EXPECT_GT(samples_of(stacks, "[sleep]", "put"), 0U) << text;
#endif
    EXPECT_GT(samples_of(stacks, "[running]"), 0U) << "CPU time as well\n" << text;
    EXPECT_EQ(samples_of(stacks, "[join wait]"), 0U) << text;
}

void expect_page(const std::string &page) {
    expect_sound_page(page); // as well: it fetches nothing
    for (const std::string part : {"<p class=\"line\">One run: ", "<dt>Cause</dt>", "<dt>Fix</dt>",
                                   "confidence: ", "<h2>What each thread did", "<h2>Where waiting happened",
                                   "<h2>Locks", "<h2>Where CPU time went", "<h2>How we know",
                                   "class=\"lock_wait\"", "class=\"frame root\"", "class=\"frame own\""})
        EXPECT_NE(page.find(part), std::string::npos) << part;
    for (int i = 0; i < 4; i++)
        EXPECT_NE(page.find("<g><title>hand-" + std::to_string(i) + " "), std::string::npos)
            << i << ": in the timeline";
#ifdef CLI_ELFUTILS
    const std::string where = "<dt>Where</dt><dd><code>"; // the others wait, or the holder sleeps
    EXPECT_EQ(count(page, where + place_of("put") + "</code>") +
                  count(page, where + place_of("put", "asleep") + "</code>"),
              1U);
    EXPECT_NE(page.find("pot_lock"), std::string::npos);
    const std::size_t waiting = page.find("<h2>Where waiting happened");
    for (const std::string &function : {place_of("put"), place_of("fill")}) // in the icicle of wait stacks
        EXPECT_NE(page.find("<title>" + function + ": ", waiting), std::string::npos) << function;
#endif
}

// Which threads waited, and for what.
const char *const kReadTrace = R"(
import collections, json, sys
events = json.load(sys.stdin)['traceEvents']
names = {e['tid']: e['args']['name'] for e in events if e['name'] == 'thread_name'}
tracks = collections.defaultdict(list)
for e in events:
    if e['ph'] == 'X':
        tracks[e['tid']].append(e)
print(*sorted(names.values()), end='; ')
hands = [e for tid, slices in tracks.items() if names[tid].startswith('hand-') for e in slices]
waited = sum(e['dur'] for e in hands if e['cat'] == 'lock_wait') / sum(e['dur'] for e in hands)
print(waited > 0.4 or waited, end='; ')
locks = collections.Counter()
for slices in tracks.values():
    for e in slices:
        if e['cat'] == 'lock_wait':
            locks['pot_lock' in e['args'].get('lock', '?'), 'put' in e['args'].get('stack', '')] += 1
print(*locks.most_common(1)[0][0], end='')
)";

void expect_trace(const std::string &trace) {
    expect_sound_trace(trace);
    const std::string found = python(kReadTrace, trace);
    EXPECT_EQ(found.substr(0, found.rfind("; ")), "hand-0 hand-1 hand-2 hand-3 watched; True") << found;
#ifdef CLI_ELFUTILS
    EXPECT_EQ(found.substr(found.rfind("; ") + 2), "True True") << found;
#endif
    EXPECT_EQ(
        json_value(trace, "[e['args']['name'] for e in d['traceEvents'] if e['name'] == 'process_name']"),
        "['watched']");
    EXPECT_EQ(json_value(trace, "d['otherData']['command'].endswith('watched share 4 600'), "
                                "d['otherData']['verdict'][:8], d['displayTimeUnit']"),
              "True One run: ms");
}

// Which of these it is depends on how much of the time others have the CPUs: it is the same lock.
void expect_json(const std::string &json) {
    EXPECT_EQ(
        json_value(json, "d['outcome'], d['command'][1:], d['exit_code'], d['signal'], d['interrupted']"),
        "one_run ['share', '4', '600'] 0 0 False");
    EXPECT_EQ(json_value(json, "sorted({t['name'] for t in d['threads']})"),
              "['hand-0', 'hand-1', 'hand-2', 'hand-3', 'watched']");
    EXPECT_EQ(json_value(json, "d['doing']['lock_wait'] > 0.4 * sum(d['doing'][k] for k in "
                               "('running', 'runnable', 'lock_wait', 'sleep', 'kernel')) or d['doing']"),
              "True");
#ifdef CLI_ELFUTILS
    EXPECT_EQ(json_value(json,
                         "d['findings'][0]['rule'] in ('held-asleep', 'hot-mutex', 'one-lock', 'convoy'), "
                         "d['findings'][0]['function']"),
              "True put")
        << json_value(json, "d['findings']");
    EXPECT_EQ(json_value(json, "d['locks'][0]['lock']['symbol'], d['locks'][0]['lock']['kind'], "
                               "d['locks'][0]['share'] > 0.8, d['locks'][0]['threads'] > 1"),
              "pot_lock global True True");
#endif
}

TEST(StatOutputs, TheText) {
    const Ended ended = thrum_stat({});
    EXPECT_EQ(ended.code(), 0) << ended.err;
    EXPECT_EQ(ended.out, "");
    EXPECT_EQ(ended.err.compare(0, 18, "VERDICT  One run: "), 0) << ended.err;
    for (const char *part :
         {"\nCAUSE ", "\nFIX ", "\nWHERE waiting happened", "\nCPU time went to", "\nLOST "})
        EXPECT_NE(ended.err.find(part), std::string::npos) << part << ended.err;
#ifdef CLI_ELFUTILS
    EXPECT_NE(ended.err.find("pot_lock"), std::string::npos) << ended.err;
    EXPECT_NE(ended.err.find(place_of("put")), std::string::npos) << ended.err;
#endif
}

TEST(StatOutputs, Json) {
    const Ended ended = thrum_stat({"--json"});
    EXPECT_EQ(ended.code(), 0) << ended.err;
    EXPECT_EQ(ended.err, "");
    EXPECT_EQ(count(ended.out, "\n"), 1U);
    expect_json(ended.out);
}

TEST(StatOutputs, APage) {
    const std::string file = fresh("stat-page.html");
    const Ended ended = thrum_stat({"--html", file});
    EXPECT_EQ(ended.code(), 0) << ended.err;
    EXPECT_NE(ended.err.find("VERDICT  "), std::string::npos) << "the text is not left out\n" << ended.err;
    expect_page(read_file(file));
}

TEST(StatOutputs, ATrace) {
    const std::string file = fresh("stat-trace.json");
    const Ended ended = thrum_stat({"--trace", file});
    EXPECT_EQ(ended.code(), 0) << ended.err;
    EXPECT_NE(ended.err.find("VERDICT  "), std::string::npos) << ended.err;
    expect_trace(read_file(file));
}

TEST(StatOutputs, FoldedStacks) {
    const std::string file = fresh("stat-folded");
    const Ended ended = thrum_stat({"--folded", file});
    EXPECT_EQ(ended.code(), 0) << ended.err;
    EXPECT_NE(ended.err.find("VERDICT  "), std::string::npos) << ended.err;
    expect_folded(read_file(file));
}

// They are of one report.
TEST(StatOutputs, AllOfOneRun) {
    const std::string page = fresh("stat-page.html"), trace = fresh("stat-trace.json"),
                      folded = fresh("stat-folded");
    const Ended ended = thrum_stat({"--json", "--html", page, "--trace", trace, "--folded", folded});
    EXPECT_EQ(ended.code(), 0) << ended.err;
    EXPECT_EQ(ended.err, "");
    const std::string &json = ended.out;
    expect_json(json);
    expect_page(read_file(page));
    expect_trace(read_file(trace));
    expect_folded(read_file(folded));
    EXPECT_EQ(json_value(json, "d['verdict']"), json_value(read_file(trace), "d['otherData']['verdict']"));
    EXPECT_EQ(json_value(json, "[[t['id'], t['name']] for t in d['threads']]"),
              json_value(read_file(trace), "[[e['tid'], e['args']['name']] for e in d['traceEvents'] "
                                           "if e['name'] == 'thread_name']"));
    const std::vector<Folded> stacks = folded_of(read_file(folded));
    EXPECT_EQ(json_value(json, "sum(w['samples'] for w in d['waits'])"),
              std::to_string(samples_of(stacks, "")));
    EXPECT_EQ(json_value(json, "sum(w['samples'] for w in d['burns'])"),
              std::to_string(samples_of(stacks, "[running]")));
}

// How often threads are looked at, and how often it is noted where one uses a CPU: a hundred times for each second, of time
// and of CPU time. A command that does not get to a CPU itself on a busy machine looks less often, never more often. The kernel's
// timer also runs while the hypervisor gives the CPU to others, which is no CPU time of the program.
TEST(StatOutputs, AHundredTimesASecond) {
    const Ended ended =
        spawn({place().thrum(), "stat", "--json", "--", CLI_WATCHED, "spin", "2", "300000000"});
    ASSERT_EQ(ended.code(), 0) << ended.err;
    EXPECT_EQ(json_value(ended.out, "d['rate'] <= 105 or d['rate']"), "True");
    EXPECT_EQ(json_value(ended.out, "d['rate'] > 20 or 'machine was busy' in d['verdict'] or d['rate']"),
              "True");
    EXPECT_EQ(
        json_value(ended.out, "d['samples'] <= 3 * (d['rate'] * d['sampled_wall'] + 1) or d['samples']"),
        "True")
        << "of three threads";
    if (json_value(ended.out, "d['profile_source']") != "None") {
        EXPECT_EQ(json_value(ended.out,
                             "(lambda noted, cpu, stolen: 0.6 * cpu < noted < 1.4 * (cpu + stolen))"
                             "(sum(s['samples'] for s in d['burns']) / 100, d['points'][0]['cpu'], "
                             "d['points'][0]['load']['stolen'] * d['points'][0]['load']['seconds'])"),
                  "True")
            << json_value(ended.out, "sum(s['samples'] for s in d['burns']), d['points'][0]");
    }
}

// --- docs/reference/stat-json.md ---------------------------------------------------------------------------------------

// Each line of the input is a report. A table of the page has a row for each member of something, with its name in the first
// column; what is in an object of a member's own stands in its row. Prints what is in one and not in the other.
const char *const kCheckPage = R"(
import json, re, sys
def names(text):
    return set(re.findall('`([a-z][a-z_0-9]*)`', text))
tables, title = {}, ''
for line in open(sys.argv[1]):
    if line.startswith('| '):
        first, rest = line.strip().strip('| ').split(' | ', 1)
        tables.setdefault(title, {}).update({name: rest for name in names(first)})
    elif line.strip() and not line.startswith('|'):
        title = re.sub(r'^(A \w+)\b.*', r'\1', line.strip())
kinds = {'findings': 'A finding', 'points': 'A point', 'locks': 'A lock'}
kinds.update(dict.fromkeys(('waits', 'others', 'makers', 'burns', 'burns_one', 'blocked'), 'A site'))
whole = {}
for heading in ('## The verdict', '## The sampled run', '## The rest'):
    whole.update(tables[heading])
wrong, seen = set(), set()
def check_value(member, value, row):
    if type(value) is list:
        for one in value:
            check_value(member, one, row)
    elif type(value) is dict:
        seen.add(member)
        for name, of_name in value.items():
            if name not in names(row):
                wrong.add(f'{member}: {name} is not in the page')
            check_value(name, of_name, tables['A site']['stack'] if name == 'stack' else row)
    elif type(value) is str and member in ('outcome', 'rule', 'confidence', 'kind') and f'`"{value}"`' not in row:
        wrong.add(f'{member}: "{value}" is not in the page')
def check_object(title, found, rows):
    beside = set().union(*map(names, rows.values())) # told of in another one's row
    for name in (set(found) ^ set(rows)) - (beside & set(found)):
        wrong.add(f'{title} {name} is only in ' + ('the report' if name in found else 'the page'))
    for name, value in found.items():
        if title == '' and name in kinds:
            for one in value:
                seen.add(name)
                check_object(kinds[name], one, tables[kinds[name]])
        else:
            check_value(name, value, rows.get(name, ''))
for line in sys.stdin:
    check_object('', json.loads(line), whole)
objects = set(kinds) | {'machine', 'scaling', 'wall', 'load', 'doing', 'threads', 'counters', 'system_calls', 'switched',
                        'stack', 'lock'}
wrong |= {f'{name} was in no report' for name in objects - seen}
print(*sorted(wrong), sep=', ', end='')
)";

// By that a herd and a pool that polls are known.
TEST(StatOutputs, TheJsonHasHowManyWaitAtOnceAndLongSleeps) {
    thrum::stat::Report report = report_that_scales();
    thrum::stat::KernelWait wait;
    wait.threads = 7;
    wait.at_once = 3.5;
    report.kernel_waits = {wait};
    report.threads.front().slept_long = 0.25;
    const std::string json = json_of(report);
    EXPECT_EQ(json_value(json, "[w['at_once'] for w in d['kernel_waits']], d['threads'][0]['slept_long'], "
                               "d['threads'][1]['slept_long']"),
              "[3.5] 0.25 0.0");
}

// What no machine has all of, in a report that is made up; runs of each kind besides.
TEST(StatOutputs, ThePageOfTheJsonHasEachMember) {
    thrum::stat::Report whole = report_that_scales(), other = report_of_random();
    whole.counters = whole.counters_one = thrum::stat::HardwareCounts{9e9, 8e9, 7e6, 6e6};
    whole.switched = thrum::stat::Switched{1, 2, 3, 4, 5};
    whole.blocked = whole.makers = other.waits;
    std::string reports = json_of(whole) + json_of(other) + thrum_stat({"--json"}).out;
    const auto add = [&reports](const Words &words) {
        const Ended ended = spawn(words);
        EXPECT_EQ(ended.code(), 0) << ended.err;
        EXPECT_EQ(count(ended.out, "\n"), 1U) << ended.out;
        reports += ended.out;
    };
    add({CLI_THRUM, "stat", "--json", "--sweep", "1,2", "-n", "1", "--", CLI_WATCHED, "share", "{}", "50"});
#ifdef CLI_STAT
    add({CLI_THRUM, "stat", "--json", "--exact", "--", CLI_WATCHED, "share", "4", "100"});
#endif
    EXPECT_EQ(python(kCheckPage, reports, std::string(CLI_DOCS) + "/reference/stat-json.md"), "");
}

// What was there goes when there is something to take its place.
TEST(StatOutputs, AFileIsReplaced) {
    const std::string file = place().write("stat-folded", std::string(100000, 'x'), 0644);
    EXPECT_EQ(thrum_stat({"--folded", file}).code(), 0);
    expect_folded(read_file(file));
}

TEST(StatOutputs, TheReportInAFile) {
    const std::string file = place().path("report.txt"), object = place().path("report.json");
    const Ended text = spawn({CLI_THRUM, "stat", "-o", file, "--no-profile", "--", "/bin/echo", "printed"});
    EXPECT_EQ(text.code(), 0) << text.err;
    EXPECT_EQ(text.out, "printed\n");
    EXPECT_EQ(text.err, "");
    EXPECT_EQ(read_file(file).rfind("VERDICT ", 0), 0U);
    const Ended json =
        spawn({CLI_THRUM, "stat", "-o", object, "--json", "--no-profile", "--", "/bin/echo", "printed"});
    EXPECT_EQ(json.out, "printed\n") << "standard output is the program's again";
    EXPECT_EQ(json_value(read_file(object), "d['outcome']"), "one_run");
}

TEST(StatOutputs, ToStandardOutput) {
    for (const Words &to : {Words{"-o", "-"}, Words{"-o", place().path("report.txt"), "--html", "-"}}) {
        Words words = {CLI_THRUM, "stat", "--no-profile"};
        words.insert(words.end(), to.begin(), to.end());
        words.insert(words.end(), {"--", "/bin/echo", "printed"});
        const Ended ended = spawn(words);
        EXPECT_EQ(ended.code(), 0) << ended.err;
        EXPECT_EQ(ended.out.rfind(to.size() == 2 ? "VERDICT " : "<!DOCTYPE", 0), 0U) << ended.out;
        EXPECT_EQ(ended.err, "printed\n") << "not in the middle of it";
    }
    const Ended both = spawn({CLI_THRUM, "stat", "--json", "--html", "-", "--", "/bin/true"});
    EXPECT_EQ(both.code(), 2);
    EXPECT_EQ(
        both.err,
        "thrum stat: two of --html, --trace, --folded and the report name the same file, standard output; "
        "-o FILE writes the report elsewhere\n");
}

// One of the two results would be lost, whichever command writes them.
TEST(StatOutputs, WhatIsBeingWrittenToIsRefused) {
    const std::string file = place().write("taken", "of another\n", 0644);
    const int taken = open(file.c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_EQ(flock(taken, LOCK_EX | LOCK_NB), 0);
    const Words program = {"--", CLI_PROBE, "exit", "0"};
    for (const Words &to :
         {Words{"stat", "-o", file}, Words{"stat", "--html", file}, Words{"stat", "--trace", file},
          Words{"stat", "--folded", file}, Words{"compare", "--html", file}, Words{"compare", "-o", file},
          Words{"trace", "-o", file}}) {
        Words words = {CLI_THRUM};
        words.insert(words.end(), to.begin(), to.end());
        words.insert(words.end(), program.begin(), program.end());
        const Ended ended = spawn(words);
        EXPECT_EQ(ended.code(), 1) << to[1];
        EXPECT_EQ(ended.err,
                  "thrum " + to[0] + ": something else is writing to " + file + "; name another file\n");
        EXPECT_EQ(read_file(file), "of another\n");
    }
    close(taken);
    EXPECT_EQ(spawn({CLI_THRUM, "stat", "--no-profile", "-o", file, "--", CLI_PROBE, "exit", "0"}).code(), 0);
    EXPECT_EQ(read_file(file).rfind("VERDICT ", 0), 0U);
}

TEST(StatOutputs, ARunThatTakesTooLongIsEnded) {
    const Ended ended = spawn(
        {CLI_THRUM, "stat", "--timeout", "0.2", "--no-profile", "--", "/bin/sh", "-c", "exec sleep 1000"});
    EXPECT_EQ(ended.code(), 1) << ended.err;
    EXPECT_EQ(ended.err.rfind("VERDICT  Inconclusive: a run took longer than 0.2 s and was ended.\n"
                              "CAUSE    A run took longer than --timeout allows ",
                              0),
              0U)
        << ended.err;
    const Ended object = spawn({CLI_THRUM, "stat", "--timeout", "0.2", "--json", "--no-profile", "--",
                                "/bin/sh", "-c", "exec sleep 1000"});
    EXPECT_EQ(json_value(object.out, "d['outcome'], d['timed_out'], d['interrupted']"),
              "inconclusive True False")
        << object.out;
    const Ended sweep = spawn({CLI_THRUM, "stat", "--timeout", "0.2", "--sweep", "1,2", "--no-profile", "--",
                               "/bin/sh", "-c", "trap '' TERM; test $0 = 1 || exec sleep 1000", "{}"});
    EXPECT_EQ(sweep.code(), 1) << sweep.err;
    EXPECT_NE(sweep.err.find("was ended with 2 threads"), std::string::npos) << sweep.err;
}

} // namespace
