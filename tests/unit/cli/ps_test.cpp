// SPDX-License-Identifier: Apache-2.0
//
// `thrum ps`: what it tells of a process that uses libthrum (ults.c), and each reason why it cannot.
#include <gtest/gtest.h>
#include <unistd.h>

#include <regex>

#include "place.hpp"

namespace {

const std::string kUlts = CLI_ULTS;

Ended ps(pid_t pid, Words options = {}, const World &world = {}) {
    Words words{CLI_THRUM, "ps"};
    words.insert(words.end(), options.begin(), options.end());
    words.push_back(std::to_string(pid));
    return spawn(words, world);
}

bool has(const std::string &text, const std::string &regex) {
    return std::regex_search(text, std::regex(regex));
}

TEST(Ps, Table) {
    Running running({kUlts});
    const Ended ended = ps(running.pid());
    EXPECT_EQ(ended.err, "");
    EXPECT_EQ(ended.code(), 0);
    EXPECT_EQ(ended.out.find("process " + std::to_string(running.pid()) +
                             " (cli-ults), libthrum " CLI_VERSION
                             ": 3 workers, 5 threads: 2 running, 0 new, 0 ready, 3 waiting, 0 ended\n"),
              0U)
        << ended.out;
    EXPECT_TRUE(has(ended.out, "\n0 +" + std::to_string(running.pid()) + " +runs 0x[0-9a-f]+ \\(main\\) "))
        << ended.out;
    EXPECT_TRUE(has(ended.out,
                    " one +waits +any +0 +[0-9]+ of 65536 +first_then_second +mutex 0x[0-9a-f]+, held by "
                    "0x[0-9a-f]+ two\n"))
        << ended.out;
    EXPECT_TRUE(has(ended.out, " wait_for_the_first +the end of 0x[0-9a-f]+ one\n")) << ended.out;
    EXPECT_TRUE(has(ended.out, " runs +worker [0-2] +0 +\\? of 65536 +compute_for_ever\n")) << ended.out;
    EXPECT_TRUE(has(ended.out,
                    "\nDEADLOCK: 2 threads wait for each other\n"
                    "  0x[0-9a-f]+ (one|two) waits for mutex 0x[0-9a-f]+, held by 0x[0-9a-f]+ (one|two)\n"
                    "  0x[0-9a-f]+ (one|two) waits for mutex 0x[0-9a-f]+, held by 0x[0-9a-f]+ (one|two)\n$"))
        << ended.out;
    EXPECT_EQ(running.finish(), 0) << "the process is none the worse";
}

TEST(Ps, Backtraces) {
    Running running({kUlts});
    const std::string out = ps(running.pid(), {"--backtrace"}).out;
    EXPECT_TRUE(has(out, "\n    take_both \\(ults.c:[0-9]+\\)\n    first_then_second \\(ults.c:[0-9]+\\)\n"))
        << out;
    EXPECT_TRUE(has(out, "\n    thrum_join \\([^\n]*\n    wait_for_the_first \\(ults.c:[0-9]+\\)\n")) << out;
    EXPECT_TRUE(has(out, "\n    compute \\(ults.c:[0-9]+\\)\n    compute_for_ever \\(ults.c:[0-9]+\\)\n"))
        << "of one that runs\n"
        << out;
    EXPECT_TRUE(has(out, "\n    main \\(ults.c:[0-9]+\\)\n")) << out;
    EXPECT_EQ(running.finish(), 0);
}

TEST(Ps, Json) {
    Running running({kUlts});
    const std::string out = ps(running.pid(), {"--json", "-b"}).out;
    const Ended checked = spawn({"/usr/bin/python3", "-c", R"(
import json, sys
told = json.loads(sys.argv[1])
assert told["pid"] == int(sys.argv[2]) and told["program"] == "cli-ults" and told["whole"]
assert told["counts"] == {"runs": 2, "new": 0, "ready": 0, "waits": 3, "ended": 0}, told["counts"]
assert [worker["worker"] for worker in told["workers"]] == [0, 1, 2]
assert sum(worker["state"] == "runs" for worker in told["workers"]) == 2
threads = {thread["thread"]: thread for thread in told["threads"]}
named = {thread["name"]: thread for thread in told["threads"] if thread["name"]}
assert len(threads) == 5
one, two = named["one"], named["two"]
assert one["waits_for"] == "mutex" and one["owner"] == two["thread"] and two["owner"] == one["thread"]
assert one["function"] == "first_then_second" and any("take_both" in line for line in one["backtrace"])
assert 0 < one["stack_used"] < one["stack_size"] == 65536
assert len(told["deadlocks"]) == 1 and set(told["deadlocks"][0]) == {one["thread"], two["thread"]}
)",
                                 out, std::to_string(running.pid())});
    EXPECT_EQ(checked.code(), 0) << checked.err << out;
}

TEST(Ps, SoManyAtMost) {
    Running running({kUlts});
    const std::string out = ps(running.pid(), {"-n", "2"}).out;
    EXPECT_TRUE(has(out, "\n\\.\\.\\. and 3 more\n")) << out;
    EXPECT_FALSE(has(ps(running.pid(), {"-n", "0"}).out, "\n\\.\\.\\. and ")) << out;
}

void expect_failed(const Ended &ended, const std::string &line, int code = 1) {
    EXPECT_EQ(ended.err, "thrum ps: " + line + "\n");
    EXPECT_EQ(ended.out, "");
    EXPECT_EQ(ended.code(), code);
}

TEST(Ps, WhatCannotBeLookedAt) {
    const Ended gone = spawn({CLI_PROBE, "exit", "0"});
    expect_failed(ps(gone.pid), "there is no process " + std::to_string(gone.pid));
    Running running({CLI_PROBE, "hold"});
    expect_failed(ps(running.pid()), "process " + std::to_string(running.pid()) + " does not use libthrum");
    expect_failed(spawn({CLI_THRUM, "ps"}), "which process? thrum ps PID", 2);
    expect_failed(spawn({CLI_THRUM, "ps", "x"}), "PID is a process number from 1 on, not 'x'", 2);
}

TEST(Ps, NoPermission) {
    if (getuid() != 0)
        GTEST_SKIP() << "only root can become another user to try it";
    const Place mine(""); // where any user may execute it
    Running running({kUlts});
    World world;
    world.user = 54321;
    const Ended ended = spawn({mine.thrum(), "ps", std::to_string(running.pid())}, world);
    EXPECT_EQ(ended.code(), 1);
    EXPECT_NE(ended.err.find("no permission to read process " + std::to_string(running.pid())),
              std::string::npos)
        << ended.err;
}

} // namespace
