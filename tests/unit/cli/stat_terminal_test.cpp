// SPDX-License-Identifier: Apache-2.0
//
// `thrum stat` in the foreground of a terminal (session.hpp): Ctrl-C as it is typed there, and the line that says how far it
// is. That of `thrum compare` is in progress_test.cpp.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "place.hpp"
#include "session.hpp"

namespace {

const std::string kClear = "\r\033[K", kCtrlC = "\x03";

Words thrum_stat(const Words &words) {
    Words all = {place().thrum(), "stat"};
    all.insert(all.end(), words.begin(), words.end());
    return all;
}

World terminal() {
    return with({{"TERM", "xterm"}});
}

std::size_t count(const std::string &text, const std::string &part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
        found++;
    return found;
}

// What the line was, one after the other; each begins with being cleared. Without what comes after the last.
std::vector<std::string> frames_of(const std::string &text) {
    std::vector<std::string> frames;
    for (std::size_t at = text.find(kClear); at != std::string::npos;) {
        const std::size_t begin = at + kClear.size();
        at = text.find(kClear, begin);
        if (at != std::string::npos)
            frames.push_back(text.substr(begin, at - begin));
    }
    return frames;
}

// Behind it comes the report, and the line is gone when that begins.
void expect_erased(const std::string &screen) {
    const std::size_t last = screen.rfind(kClear), report = screen.find("VERDICT ");
    ASSERT_NE(last, std::string::npos) << screen;
    ASSERT_NE(report, std::string::npos) << screen;
    EXPECT_LT(last, report) << "it is drawn after the report has begun\n" << screen;
    EXPECT_EQ(screen.substr(last + kClear.size(), report - last - kClear.size()).find_first_not_of("\n"),
              std::string::npos)
        << "something is left of it\n"
        << screen;
}

// --- Ctrl-C -----------------------------------------------------------------------------------------------

TEST(StatTerminal, CtrlCReachesTheProgramAsItWouldWithoutTheTool) {
    const Words program = {CLI_WATCHED, "interrupts"};
    std::string bare, looked_at;
    for (const bool with_tool : {false, true}) {
        Session session(with_tool ? thrum_stat({"--", program[0], program[1]}) : program, terminal());
        ASSERT_TRUE(session.until("ready")) << session.screen();
        session.type(kCtrlC);
        const Ended ended = session.finish();
        EXPECT_EQ(ended.code(), 5) << "the program's own end\n" << ended.out;
        (with_tool ? looked_at : bare) = ended.out;
    }
    EXPECT_EQ(bare, "ready\nSIGINT of the terminal\n1 came\n");
    EXPECT_EQ(looked_at.compare(0, bare.size(), bare), 0) << looked_at;
    EXPECT_EQ(count(looked_at, "VERDICT "), 1U) << looked_at;
    EXPECT_NE(looked_at.find("interrupted: these are the results so far"), std::string::npos) << looked_at;
}

// What was seen of threads that were at work is told; the end is that of the program, by the same signal.
TEST(StatTerminal, CtrlCGivesTheReportOfWhatWasSeen) {
    Session session(thrum_stat({"--", CLI_WATCHED, "serve", "4"}), terminal());
    ASSERT_TRUE(session.until("ready")) << session.screen();
    session.type("\n"); // which the program reads as well
    session.type(kCtrlC);
    const Ended ended = session.finish();
    EXPECT_EQ(ended.signal(), SIGINT) << ended.out;
    EXPECT_EQ(count(ended.out, "VERDICT "), 1U) << ended.out;
    EXPECT_NE(ended.out.find("One run"), std::string::npos) << ended.out;
    EXPECT_NE(ended.out.find("interrupted: these are the results so far"), std::string::npos) << ended.out;
    EXPECT_EQ(ended.out.find(kClear), std::string::npos)
        << "no line for one run, whose output it would disturb\n"
        << ended.out;
}

// Runs after the first are in sessions of their own, which Ctrl-C does not reach: the tool ends them.
TEST(StatTerminal, CtrlCInALaterRunEndsThatRun) {
    const std::string again = place().path("terminal-again");
    std::remove(again.c_str());
    const std::string script = place().write(
        "terminal-script",
        "#!/bin/sh\ntest -e " + again + " && exec " CLI_WATCHED " sleep\ntest $1 = 1 || : >" + again + "\n");
    Session session(thrum_stat({"--sweep", "1,2", "-n", "9", "--no-profile", "--", script, "{}"}),
                    terminal());
    for (int i = 0; i < 2; i++) // the first round, and then one that does not end
        ASSERT_TRUE(session.until("bare, 2 threads")) << session.screen();
    session.type(kCtrlC);
    const Ended ended = session.finish();
    EXPECT_EQ(ended.signal(), SIGINT) << ended.out;
    EXPECT_NE(ended.out.find("interrupted: these are the results so far"), std::string::npos) << ended.out;
    expect_erased(ended.out);
}

// A program that does not end by the first Ctrl-C, and a user who does not want to wait for it: the report is printed
// all the same.
TEST(StatTerminal, ASecondCtrlCKillsTheProgram) {
    Session session(thrum_stat({"--", "/bin/sh", "-c", "trap '' INT; echo ready; exec sleep 1000"}),
                    terminal());
    ASSERT_TRUE(session.until("ready")) << session.screen();
    session.type(kCtrlC);
    usleep(300000); // two that come as one would be one
    session.type(kCtrlC);
    const Ended ended = session.finish();
    EXPECT_EQ(ended.signal(), SIGINT) << ended.out;
    EXPECT_EQ(ended.out.rfind("ready\n", 0), 0U) << ended.out;
    EXPECT_NE(ended.out.find("interrupted: these are the results so far"), std::string::npos) << ended.out;
}

// After the first one the user is told that there is a second.
TEST(StatTerminal, WhatASecondCtrlCDoesIsTold) {
    Session session(thrum_stat({"--", "/bin/sh", "-c", "trap '' INT; echo ready; exec sleep 1000"}),
                    terminal());
    ASSERT_TRUE(session.until("ready")) << session.screen();
    session.type(kCtrlC);
    ASSERT_TRUE(session.until("the program has not ended yet; a second Ctrl-C kills it")) << session.screen();
    session.type(kCtrlC);
    EXPECT_EQ(session.finish().signal(), SIGINT);
}

// --- the line -----------------------------------------------------------------------------------------------

TEST(StatTerminal, ASweepSaysHowFarItIs) {
    Session session(thrum_stat({"--sweep", "1,2", "-n", "2", "--", "/bin/true", "{}"}), terminal());
    const Ended ended = session.finish();
    EXPECT_EQ(ended.code(), 0) << ended.out;
    const std::vector<std::string> frames = frames_of(ended.out);
    const auto has = [&frames](const std::string &text) {
        return std::any_of(frames.begin(), frames.end(), [&text](const std::string &frame) {
            return frame.find(text) != std::string::npos;
        });
    };
    for (const char *text : {"bare, 1 thread", "bare, 2 threads", "sampled, 2 threads", "profiled, 1 thread",
                             "] run 5 of 6", "] run 2 of 6"})
        EXPECT_TRUE(has(text)) << text << "\n" << ended.out;
    for (const std::string &frame : frames) {
        EXPECT_LE(frame.size(), 79U) << "longer than a line";
        EXPECT_EQ(frame.find('\n'), std::string::npos) << frame;
    }
    expect_erased(ended.out);
}

TEST(StatTerminal, TheOnlyRunHasNone) {
    Session session(thrum_stat({"--", "/bin/true"}), terminal());
    const Ended ended = session.finish();
    EXPECT_EQ(ended.code(), 0) << ended.out;
    EXPECT_EQ(ended.out.compare(0, 8, "VERDICT "), 0) << ended.out;
    EXPECT_EQ(ended.out.find(kClear), std::string::npos) << ended.out;
}

TEST(StatTerminal, NoLineWhereItCannotBeClearedOrIsNotWanted) {
    const Words sweep = thrum_stat({"--sweep", "1,2", "-n", "1", "--", "/bin/true", "{}"}),
                shown = thrum_stat({"--show-output", "--sweep", "1,2", "-n", "1", "--", "/bin/true", "{}"});
    const Ended dumb = Session(sweep, with({{"TERM", "dumb"}})).finish();
    EXPECT_EQ(dumb.out.compare(0, 8, "VERDICT "), 0) << dumb.out;
    const Ended with_output = Session(shown, terminal()).finish();
    EXPECT_EQ(with_output.out.compare(0, 8, "VERDICT "), 0) << with_output.out;
    const Ended piped = spawn(sweep, terminal()); // TERM is set, and stderr is none
    EXPECT_EQ(piped.err.compare(0, 8, "VERDICT "), 0) << piped.err;
    for (const Ended *ended : {&dumb, &with_output, &piped}) {
        EXPECT_EQ(ended->code(), 0);
        EXPECT_EQ((ended->out + ended->err).find_first_of("\r\033"), std::string::npos)
            << ended->out << ended->err;
    }
}

// Sentences wrap, tables leave out what there is no room for. No word of a report is 40 columns long here.
TEST(StatTerminal, ReportsFitTheTerminal) {
    const Words compare = {place().thrum(), "compare", "-n", "2", "--warmup", "0", "--", "/bin/true"};
    const Words refused = {place().thrum(), "run",      "--max-idle", "as many as there are", "--",
                           "/bin/true",     "and so on"};
    const Words sweep = thrum_stat({"--sweep", "1,2", "-n", "2", "--", "/bin/true", "{}"});
    const Words one = thrum_stat({"--timeout", "0.5", "--", CLI_SAMPLED_O2, "mutex"});
    const Words idle = thrum_stat({"--", "/bin/sleep", "0.3"}); // where it waits
    for (const unsigned short columns : {40, 60, 80, 150})
        for (const Words &words : {compare, refused, sweep, one, idle}) {
            const Ended ended = Session(words, terminal(), columns).finish();
            std::istringstream lines(ended.out);
            for (std::string line; std::getline(lines, line);) {
                const std::size_t cleared = line.rfind(kClear);
                const std::string shown =
                    cleared == std::string::npos ? line : line.substr(cleared + kClear.size());
                EXPECT_LE(shown.size(), columns) << shown << "\n" << ended.out;
            }
            for (const std::string &frame : frames_of(ended.out))
                EXPECT_LE(frame.substr(0, frame.find('\n')).size(), columns) << frame;
        }
}

// With the report as JSON on a standard output that is none, the line is on the terminal all the same, and only there.
TEST(StatTerminal, JsonHasNothingOfIt) {
    World world = terminal();
    world.terminal = true;
    const Ended ended =
        spawn(thrum_stat({"--json", "--sweep", "1,2", "-n", "1", "--", "/bin/true", "{}"}), world);
    EXPECT_EQ(ended.code(), 0) << ended.err;
    EXPECT_EQ(ended.out.compare(0, 1, "{"), 0) << ended.out;
    EXPECT_EQ(ended.out.find(kClear), std::string::npos);
    EXPECT_FALSE(frames_of(ended.err).empty());
    EXPECT_EQ(ended.err.substr(ended.err.rfind(kClear)), kClear) << "gone in the end";
}

} // namespace
