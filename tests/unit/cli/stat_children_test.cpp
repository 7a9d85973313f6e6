// SPDX-License-Identifier: Apache-2.0
//
// Work that is done by processes which the program starts (cli/stat/process_tree.hpp, child_watch.hpp): found, told as what
// it is, and looked at.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "documents.hpp"
#include "place.hpp"
#include "stat/child_watch.hpp"
#include "stat/facts.hpp"
#include "stat/process_tree.hpp"
#include "stat/rules.hpp"
#include "tools/clock.hpp"

namespace {

using thrum::stat::ProcessTree;
using thrum::stat::Report;

// --- /proc/PID/stat -----------------------------------------------------------------------------------------

TEST(StatChildren, AProcessMayBeCalledAnything) {
    const std::string rest = " S 17 4 4 0 -1 4194304 100 0 0 0 250 50 300 100 20 0 3 0 12345 0 0\n";
    for (const char *name : {"sh", ") R 1 (", "a b", "((()", "new\nline", ""}) {
        const auto stat = thrum::process::parse_stat("42 (" + std::string(name) + ")" + rest);
        ASSERT_TRUE(stat) << name;
        EXPECT_EQ(stat->name, name);
        EXPECT_EQ(stat->state, 'S');
        EXPECT_EQ(stat->parent, 17);
        EXPECT_EQ(stat->threads, 3U);
        const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
        EXPECT_DOUBLE_EQ(stat->cpu() * ticks, 300);
        EXPECT_DOUBLE_EQ(stat->waited_cpu * ticks, 400);
    }
    for (const char *text : {"", "42", "42 (sh", "42 (sh)", "42 (sh) S 17", ")("})
        EXPECT_FALSE(thrum::process::parse_stat(text)) << text;
}

// --- the tree -----------------------------------------------------------------------------------------------

// A process that waits for its stdin to end, started through so many others.
Running nested(int depth) {
    const std::string script =
        R"(if test "$1" = 0; then echo ready; cat; else sh -c "$0" "$0" $(($1 - 1)); fi; :)";
    return Running({"/bin/sh", "-c", script, script, std::to_string(depth)});
}

pid_t find(const std::vector<thrum::stat::Process> &list, const std::string &name, pid_t but = 0) {
    for (const auto &one : list)
        if (one.name == name && one.id != but)
            return one.id;
    return 0;
}

// Looks until there are so many, one of them of that name, or for a while: between fork and exec a child has its parent's.
std::vector<thrum::stat::Process> look_for(ProcessTree &tree, std::size_t count, const std::string &name) {
    std::vector<thrum::stat::Process> found = tree.processes();
    for (double now = 0.1; (found.size() < count || find(found, name) == 0) && now < 500; now += 0.1) {
        usleep(1000);
        tree.poll(now);
        found = tree.processes();
    }
    return found;
}

TEST(StatChildren, ChildrenOfChildrenAreFound) {
    const Running program = nested(2);
    ProcessTree tree;
    tree.attach(program.pid());
    const std::vector<thrum::stat::Process> found = look_for(tree, 4, "cat");
    ASSERT_EQ(found.size(), 4U) << "three shells and cat";
    EXPECT_EQ(found.front().id, program.pid());
    EXPECT_EQ(found.front().parent, 0);
    EXPECT_EQ(std::count_if(found.begin(), found.end(), [](const auto &one) { return one.name == "cat"; }),
              1);
    for (std::size_t i = 1; i < found.size(); i++)
        EXPECT_TRUE(std::any_of(found.begin(), found.end(),
                                [&](const auto &one) { return one.id == found[i].parent; }));
}

TEST(StatChildren, OthersAreNot) {
    const Running program({"/bin/sh", "-c", "echo ready; read line"}),
        other({"/bin/sh", "-c", "echo ready; read line"});
    ProcessTree tree;
    tree.attach(program.pid());
    for (double now = 0.1; now < 0.5; now += 0.1)
        tree.poll(now);
    ASSERT_EQ(tree.processes().size(), 1U);
    EXPECT_EQ(tree.processes().front().id, program.pid());
}

// One whose parent has ended is still the program's, and one that has ended keeps its row.
TEST(StatChildren, TheyAreKeptWhenTheyEnd) {
    Running program(
        {"/bin/sh", "-c", "sh -c 'sleep 1000 & wait' >/dev/null & echo ready; read line; exit 0"});
    ProcessTree tree;
    tree.attach(program.pid());
    const auto before = look_for(tree, 3, "sleep");
    const pid_t shell = find(before, "sh", program.pid()), sleeper = find(before, "sleep");
    ASSERT_GT(shell, 0);
    ASSERT_GT(sleeper, 0);
    kill(shell, SIGKILL);
    for (double now = 100; now < 101; now += 0.1) {
        usleep(1000);
        tree.poll(now);
    }
    EXPECT_EQ(find(tree.processes(), "sleep"), sleeper) << "which has another parent now";
    kill(sleeper, SIGKILL);
    for (double now = 101; now < 102; now += 0.1) {
        usleep(1000);
        tree.poll(now);
    }
    EXPECT_EQ(find(tree.processes(), "sleep"), sleeper) << "which has ended";
    EXPECT_EQ(find(tree.processes(), "sh", program.pid()), shell);
}

// --- what is concluded --------------------------------------------------------------------------------------

Report report_of(double own, double children) {
    Report report;
    report.machine.processors = 2;
    report.rate = 100;
    report.sampled_wall = 1;
    report.own_cpu = own;
    report.children_cpu = children;
    report.doing[static_cast<int>(thrum::stat::Doing::kInputOutput)] = 1;
    thrum::stat::Point point;
    point.most_threads = 1;
    point.wall = {1, 1, 1, 0, 1};
    point.user = own + children;
    report.points = {point};
    return report;
}

TEST(StatChildren, WorkOfOthersIsNotWaitingForInput) {
    Report report = report_of(0.05, 0.45);
    conclude(report, "");
    ASSERT_EQ(report.findings.size(), 1U);
    EXPECT_EQ(report.findings.front().rule, "children");
    EXPECT_NE(report.findings.front().cause.find("90 %"), std::string::npos) << report.findings.front().cause;
    EXPECT_NE(report.verdict.find("the processes that it started did the work"), std::string::npos)
        << report.verdict;
    Report alone = report_of(0.45, 0.05);
    conclude(alone, "");
    EXPECT_NE(alone.findings.front().rule, "children");
    Report idle = report_of(0, 0.01);
    conclude(idle, "");
    EXPECT_NE(idle.findings.front().rule, "children") << "a wrapper that does nothing";
}

// A pool's worker computes, and beside it a process waits for messages: what is found in that one says nothing about the work.
TEST(StatChildren, AnIdleOneIsNotToBlame) {
    for (const char *rule : {"io-bound", "hidden-lock"}) {
        Report whole = report_of(0.05, 0.95), idle = report_of(0.01, 0);
        Report busy = report_of(rule == std::string("io-bound") ? 0.02 : 0.9, 0);
        for (Report *child : {&busy, &idle}) {
            child->process = 17;
            child->command = {"child"};
        }
        idle.findings = {{rule, "a cause", "a fix", thrum::stat::Confidence::kMedium, "", "", 0, {}}};
        whole.children = {busy, idle};
        conclude(whole, "");
        ASSERT_EQ(whole.findings.size(), 1U) << rule;
        EXPECT_EQ(whole.findings.front().rule, "children");
        EXPECT_EQ(is_worth_telling(idle, whole), rule != std::string("io-bound")) << rule;
        whole.children.front().findings = {
            {"hidden-lock", "a cause", "a fix", thrum::stat::Confidence::kMedium, "", "", 0, {}}};
        conclude(whole, "");
        EXPECT_EQ(whole.findings.size(), 2U) << "the busy one's is told";
    }
}

// What the text says of one of which nothing can be concluded, the page says as well.
TEST(StatChildren, OneOnABusyMachine) {
    Report whole = report_of(0.05, 0.95), child = report_of(0.9, 0);
    child.process = 17;
    child.command = {"child"};
    child.verdict = "One run: it used little.";
    child.findings = {
        {"inconclusive", "The machine was busy", "Try again", thrum::stat::Confidence::kLow, "", "", 0, {}}};
    whole.children = {child};
    EXPECT_NE(text_of(whole).find("One run: it used little."), std::string::npos) << text_of(whole);
    const std::string page = html_of(whole);
    EXPECT_LT(page.find("<p>One run: it used little.</p>"), page.find("<strong>The machine was busy"));
}

// --- what their threads do -----------------------------------------------------------------------------------

// A process that a shell has started, and what was seen of it, until it was looked at so often that `is_enough`.
class Child {
  public:
    Child(const std::string &mode, const std::string &threads)
        : shell_({"/bin/sh", "-c", "\"$0\" \"$@\" >/dev/null & echo ready; wait", CLI_SAMPLED_O2, mode,
                  threads}) {
        tree_.attach(shell_.pid());
    }
    ~Child() {
        for (const auto &process : tree_.processes())
            kill(process.id, SIGKILL);
    }
    Child(const Child &) = delete;
    Child &operator=(const Child &) = delete;

    // Of the whole program, with what was seen of it.
    Report look(bool (*is_enough)(const Report &)) {
        Report report = report_of(0, 0);
        const double begin = thrum::seconds_now();
        for (double now = 0, told = 0; now < 60; now = thrum::seconds_now() - begin) {
            usleep(5000);
            tree_.poll(now);
            watch_.poll(now);
            if (now < told)
                continue;
            report.children = watch_.reports(report, {});
            if (!report.children.empty() && is_enough(report.children.front()))
                break;
            told = now + 0.25;
        }
        return report;
    }

  private:
    Running shell_;
    ProcessTree tree_;
    thrum::stat::ChildWatch watch_{tree_, nullptr, 100, 0.2};
};

// Of threads that wait all the time, however busy the machine is.
TEST(StatChildren, WhereTheirThreadsWaitAndWhy) {
    Report whole = Child("mutex", "3").look([](const Report &child) {
        return thrum::stat::samples_of(child.waits) >= 40 && !child.findings.empty();
    });
    ASSERT_EQ(whole.children.size(), 1U);
    const Report &child = whole.children.front();
    EXPECT_EQ(child.command, Words{"cli-sampled-o2"}) << "and not of the shell, which waits";
    ASSERT_FALSE(child.findings.empty()) << child.verdict;
    const thrum::stat::Finding &found =
        child.findings.front(); // of what kind depends on how busy the machine is
    EXPECT_NE(found.cause.find("the_mutex"), std::string::npos) << found.cause;

    whole.own_cpu = 0.05;
    whole.children_cpu = 5;
    conclude(whole, "");
    ASSERT_EQ(whole.findings.size(), 2U);
    EXPECT_EQ(whole.findings[0].rule, "children");
    EXPECT_EQ(whole.findings[1].rule, found.rule);
    EXPECT_EQ(whole.findings[1].function, found.function)
        << "the place is that of the process that did the work";
    const std::string name = std::to_string(child.process) + " (cli-sampled-o2)";
    EXPECT_EQ(whole.findings[1].cause, "In process " + name + ": " + found.cause);
    const std::string text = text_of(whole);
    EXPECT_NE(text.find("\nPROCESS  " + name), std::string::npos) << text;
#ifdef CLI_ELFUTILS
    EXPECT_NE(text.find(" <- take (sampled.c:"), std::string::npos) << text;
#endif
    expect_sound_page(html_of(whole));
    EXPECT_EQ(json_value(json_of(whole), "d['children'][0]['waits'][0]['doing']"), "lock_wait");
}

// It uses no CPU time, and neither does the program, which waits for it.
TEST(StatChildren, OneThatIsStuck) {
    Report whole =
        Child("deadlock", "2").look([](const Report &child) { return !child.deadlock.threads.empty(); });
    conclude(whole, "");
    ASSERT_EQ(whole.findings.size(), 1U) << whole.verdict;
    EXPECT_EQ(whole.findings[0].rule, "deadlock");
    EXPECT_EQ(whole.findings[0].cause.find("In process "), 0U) << whole.findings[0].cause;
    EXPECT_EQ(whole.outcome, thrum::stat::Outcome::kOneRun) << "its own threads are not";
    EXPECT_EQ(whole.verdict,
              "One run: threads of a process that it started wait for something that will never happen.");
}

// --- from outside -------------------------------------------------------------------------------------------

// A second of CPU time in a child, and next to none besides.
const char *const kBusyChild = "n=0; while [ $n -lt 600000 ]; do n=$((n + 1)); done & wait";

TEST(StatChildren, TheWorkIsSaidToBeInThem) {
    for (const bool follow : {true, false}) {
        Words words = {CLI_THRUM, "stat", "--json", "--no-profile"};
        if (!follow)
            words.push_back("--no-follow");
        words.insert(words.end(), {"--", "/bin/sh", "-c", kBusyChild});
        const Ended ended = spawn(words);
        ASSERT_EQ(ended.code(), 0) << ended.err;
        EXPECT_EQ(json_value(ended.out, "d['findings'][0]['rule']"), "children") << ended.out;
        EXPECT_EQ(json_value(ended.out, "d['children_cpu'] > d['own_cpu']"), "True");
        EXPECT_EQ(json_value(ended.out, "len(d['processes'])"), follow ? "2" : "0");
        EXPECT_EQ(json_value(ended.out, "[c['name'] for c in d['children']]"), follow ? "['sh']" : "[]");
        EXPECT_EQ(
            json_value(ended.out, "all(p['parent'] == d['processes'][0]['id'] for p in d['processes'][1:])"),
            "True");
    }
}

TEST(StatChildren, ATableByProcess) {
    const Ended ended = spawn({CLI_THRUM, "stat", "--no-profile", "--", "/bin/sh", "-c", kBusyChild});
    ASSERT_EQ(ended.code(), 0) << ended.err;
    EXPECT_NE(ended.err.find("\n process      cpu  share  threads  command\n"), std::string::npos)
        << ended.err;
    EXPECT_NE(ended.err.find("  (the program)\n"), std::string::npos) << ended.err;
}

} // namespace
