// SPDX-License-Identifier: Apache-2.0
//
// The line that `thrum compare` shows while it works (cli/tools/progress.cpp), read from the other end of a terminal.
#include <gtest/gtest.h>

#include <regex>

#include "place.hpp"
#include "session.hpp"

namespace {

const std::string kClear = "\r\033[K";

// Two pairs of runs, with a terminal for the standard error.
Ended compare_on_terminal(const std::string &kind, const Words &options = {}) {
    World world = with({{"TERM", kind}});
    world.terminal = true;
    Words words = {place().thrum(), "compare", "-n", "2", "--warmup", "0"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "/bin/true"});
    return spawn(words, world);
}

// What the line was, one after the other; each begins with being cleared.
std::vector<std::string> frames_of(const std::string &text) {
    std::vector<std::string> frames;
    for (std::size_t at = text.find(kClear); at != std::string::npos;) {
        const std::size_t next = text.find(kClear, at + kClear.size());
        frames.push_back(text.substr(at + kClear.size(), next - at - kClear.size()));
        at = next;
    }
    return frames;
}

TEST(Progress, TheBarGrowsWithTheRunsAndIsGoneInTheEnd) {
    const Ended ended = compare_on_terminal("xterm");
    EXPECT_EQ(ended.code(), 0) << ended.err;
    EXPECT_EQ(ended.err.rfind(kClear, 0), 0u) << ended.err;
    const std::vector<std::string> frames = frames_of(ended.err);
    ASSERT_GE(frames.size(), 6u) << ended.err; // before the first run, after each of four, and the end
    EXPECT_EQ(frames.front(), "warming up");
    EXPECT_EQ(frames.back(), "");
    const std::regex bar(R"(\[(#*)(\.*)\] run (\d+) of 4.*)");
    std::vector<unsigned long> seen;
    for (std::size_t i = 1; i + 1 < frames.size(); i++) {
        std::smatch parts;
        ASSERT_TRUE(std::regex_match(frames[i], parts, bar)) << frames[i];
        const unsigned long run = std::stoul(parts[3]);
        EXPECT_EQ(parts.length(1), static_cast<long>(run * 24 / 4)) << frames[i];
        EXPECT_EQ(parts.length(1) + parts.length(2), 24) << frames[i];
        EXPECT_LE(frames[i].size(), 79u) << "longer than a line";
        if (seen.empty() || seen.back() != run) // it is drawn again during a run
            seen.push_back(run);
    }
    EXPECT_EQ(seen, (std::vector<unsigned long>{0, 1, 2, 3, 4}));
    EXPECT_EQ(ended.out.find(kClear), std::string::npos);
}

// What is written behind one clearing of the line, up to the next or to where the cursor moves up.
TEST(Progress, ItNeverWraps) {
    for (const unsigned short columns : {1, 2, 10, 20, 40, 60, 80, 200}) {
        Session session({place().thrum(), "compare", "-n", "2", "--warmup", "0", "--", "/bin/true"},
                        with({{"TERM", "xterm"}}), columns);
        const Ended ended = session.finish();
        EXPECT_EQ(ended.code(), 0) << ended.out;
        const std::string drawn = ended.out.substr(0, ended.out.rfind(kClear));
        for (const std::string &frame : frames_of(drawn))
            EXPECT_LT(frame.size(), columns) << frame;
        EXPECT_EQ(drawn.find("\033[1A"), std::string::npos) << "it stood on one line\n" << drawn;
        if (columns >= 40) {
            EXPECT_NE(drawn.find("run 3 of 4"), std::string::npos) << drawn;
        }
    }
}

// A terminal that gets narrower has wrapped what stood on it: all of these lines are cleared.
TEST(Progress, ATerminalThatGetsNarrower) {
    const Place mine(CLI_STANDIN);
    const std::string wide = "[........................] run 0 of 4";
    Session session({mine.thrum(), "compare", "-n", "2", "--warmup", "0", "--", "/bin/sh", "-c",
                     "while test ! -e " + mine.path("go") + "; do sleep 0.01; done"},
                    with({{"TERM", "xterm"}}), 80);
    ASSERT_TRUE(session.until(wide)) << session.screen();
    session.resize(20);
    const std::size_t before = session.screen().size();
    mine.write("go", "");
    const std::string rest = session.finish().out.substr(before);
    EXPECT_NE(rest.find("\033[1A\r\033[J" + kClear), std::string::npos) << rest;
    EXPECT_EQ(rest.find("[...."), std::string::npos) << "no room for the bar\n" << rest;
}

TEST(Progress, ATerminalThatCannotClearALineGetsNone) {
    const Ended ended = compare_on_terminal("dumb");
    EXPECT_EQ(ended.code(), 0);
    EXPECT_EQ(ended.err, "");
}

TEST(Progress, TheProgramsOwnOutputIsNotDrawnOver) {
    const Ended ended = compare_on_terminal("xterm", {"--show-output"});
    EXPECT_EQ(ended.code(), 0);
    EXPECT_EQ(ended.err.find(kClear), std::string::npos) << ended.err;
}

} // namespace
