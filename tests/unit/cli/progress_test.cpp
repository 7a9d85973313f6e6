// SPDX-License-Identifier: Apache-2.0
//
// The line that `thrum compare` shows while it works (cli/progress.cpp), read from the other end of a terminal.
#include <gtest/gtest.h>

#include <regex>

#include "place.hpp"

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
        if (seen.empty() || seen.back() != run) // it is drawn again while a run goes on
            seen.push_back(run);
    }
    EXPECT_EQ(seen, (std::vector<unsigned long>{0, 1, 2, 3, 4}));
    EXPECT_EQ(ended.out.find(kClear), std::string::npos);
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
