// SPDX-License-Identifier: Apache-2.0
//
// `thrum ps`: what it tells of a process that uses libthrum (ults.c), and each reason why it cannot.
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <regex>
#include <sstream>

#include "documents.hpp"
#include "place.hpp"
#include "session.hpp"

namespace {

const std::string kUlts = CLI_ULTS, kPreempted = CLI_PREEMPTED;

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
                             ": 3 workers, 6 threads: 2 running, 0 new, 1 ready, 3 waiting, 0 ended\n"),
              0U)
        << ended.out;
    EXPECT_TRUE(has(ended.out, "\n0 +" + std::to_string(running.pid()) + " +runs 0x[0-9a-f]+ \\(main\\) "))
        << ended.out;
    EXPECT_TRUE(has(ended.out,
                    " one +waits +any +0 +[0-9]+ of 65536 +first_then_second +mutex 0x[0-9a-f]+, held by "
                    "0x[0-9a-f]+ two\n"))
        << ended.out;
    EXPECT_TRUE(has(ended.out, " wait_for_the_first +the end of 0x[0-9a-f]+ one\n")) << ended.out;
    EXPECT_TRUE(has(ended.out, " runs +worker 2 +0 +\\? of 65536 +compute_for_ever\n")) << ended.out;
    EXPECT_TRUE(has(ended.out, " ready +worker 2 +0 +[0-9]+ of 65536 +yield_for_ever\n")) << ended.out;
    EXPECT_TRUE(has(ended.out,
                    "\nDEADLOCK: 2 threads wait for each other\n"
                    "  0x[0-9a-f]+ (one|two) waits for mutex 0x[0-9a-f]+, held by 0x[0-9a-f]+ (one|two)\n"
                    "  0x[0-9a-f]+ (one|two) waits for mutex 0x[0-9a-f]+, held by 0x[0-9a-f]+ (one|two)\n$"))
        << ended.out;
    EXPECT_EQ(running.finish(), 0) << "the process is none the worse";
}

// However a thread of C++ was given the function.
TEST(Ps, FunctionPointers) {
    Running running({CLI_CALLABLES});
    const std::string out = ps(running.pid()).out;
    for (const char *name :
         {"plain", "with_argument", "with_token", "with_result", "in_group", "in_branch",
          "main::\\{lambda\\(\\)#1\\}", "main::\\{lambda\\(\\)#2\\}", "main::\\{lambda\\(\\)#3\\}",
          "has_members::member", "has_members::constant_member", "referred", "in_function", "called"})
        EXPECT_TRUE(has(out, std::string(" of 65536 +") + name + "( +event [^\n]*)?\n")) << name << '\n'
                                                                                         << out;
    for (const char *type : {"(*)", "::*)", "std::"})
        EXPECT_EQ(out.find(type), std::string::npos) << out;
    EXPECT_EQ(running.finish(), 0);
}

TEST(Ps, Backtraces) {
    Running running({kUlts});
    const std::string out = ps(running.pid(), {"--backtrace"}).out;
    EXPECT_TRUE(has(out, "\n    take_both \\(ults.c:[0-9]+\\)\n    first_then_second \\(ults.c:[0-9]+\\)\n"))
        << out;
    EXPECT_TRUE(
        has(out, "\n    (thrum_)?join[a-z_]* \\([^\n]*\n    wait_for_the_first \\(ults.c:[0-9]+\\)\n"))
        << out;
    EXPECT_TRUE(has(out, "\n    compute \\(ults.c:[0-9]+\\)\n    compute_for_ever \\(ults.c:[0-9]+\\)\n"))
        << "of one that runs\n"
        << out;
    EXPECT_TRUE(has(out, " runs +worker 2 +0 +[1-9][0-9]* of 65536 +compute_for_ever\n"))
        << "how far its stack has come is known then\n"
        << out;
    EXPECT_TRUE(has(out, "\n    thrum_yield \\([^\n]*\n    yield_for_ever \\(ults.c:[0-9]+\\)\n"))
        << "of one that is ready\n"
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
assert told["counts"] == {"runs": 2, "new": 0, "ready": 1, "waits": 3, "ended": 0}, told["counts"]
assert told["all_wait"] is False
workers = [worker for worker in told["workers"] if worker["state"] != "relief"]
assert [worker["worker"] for worker in workers] == [0, 1, 2] and len(told["workers"]) <= 4
assert sum(worker["state"] == "runs" for worker in told["workers"]) == 2
threads = {thread["thread"]: thread for thread in told["threads"]}
named = {thread["name"]: thread for thread in told["threads"] if thread["name"]}
assert len(threads) == 6
one, two = named["one"], named["two"]
assert one["waits_for"] == "mutex" and one["owner"] == two["thread"] and two["owner"] == one["thread"]
assert one["function"] == "first_then_second" and any("take_both" in line for line in one["backtrace"])
assert one["deadline"] is False
assert 0 < one["stack_used"] < one["stack_size"] == 65536
computing = next(thread for thread in told["threads"] if thread["function"] == "compute_for_ever")
assert computing["state"] == "runs" and 0 < computing["stack_used"] < 65536
assert told["deadlocks_whole"] is True
assert len(told["deadlocks"]) == 1 and set(told["deadlocks"][0]) == {one["thread"], two["thread"]}
)",
                                 out, std::to_string(running.pid())});
    EXPECT_EQ(checked.code(), 0) << checked.err << out;
}

// The numbers of the table, which are those that the library itself tells (Dump.PrintsTheCountersOfWorkers).
TEST(Ps, CountersInJson) {
    Running running({kUlts});
    const std::string before = ps(running.pid()).out, out = ps(running.pid(), {"--json"}).out,
                      after = ps(running.pid()).out;
    const Ended checked = spawn({"/usr/bin/python3", "-c", R"(
import json, sys
names = ["switches", "steals", "parks", "migrations"]
def table(text):
    lines = text[text.index("\nWORKER "):].splitlines()[2:5]
    return [[int(word) for word in line.split()[-5:-1]] for line in lines]
before, after = table(sys.argv[2]), table(sys.argv[3])
told = [[worker[name] for name in names] for worker in json.loads(sys.argv[1])["workers"]]
for one, other, least, most in zip(told, told, before, after):
    assert all(low <= number <= high for low, number, high in zip(least, one, most)), (before, told, after)
for i in range(4):
    for j in range(i):
        assert any(worker[i] != worker[j] for worker in told), (names[i], names[j], told)
)",
                                 out, before, after});
    EXPECT_EQ(checked.code(), 0) << checked.err << out << before;
}

// A name that is a command to a terminal, or a line of the table.
TEST(Ps, NamesAreNoCommandsToATerminal) {
    Running running({kUlts, "evil"});
    const std::string out = ps(running.pid(), {"-b"}).out;
    for (const char c : out)
        EXPECT_TRUE(c == '\n' || c < 0 || (c >= 0x20 && c != 0x7f)) << static_cast<int>(c);
    EXPECT_EQ(out.find("\xc2\x9b"), std::string::npos) << out;
    EXPECT_EQ(out.find('\xff'), std::string::npos) << out;
    EXPECT_TRUE(has(out, " o\\?\\[5m\\?ne +waits ")) << out;
    EXPECT_TRUE(has(out, " \\?0x1\\?+\xc3\xa9 +waits ")) << out;
    EXPECT_EQ(running.finish(), 0);
}

// On a terminal: no row is longer than that is wide or continues on the next line, those columns are there that matter most,
// and what each thread waits for.
TEST(Ps, RowsFitTheTerminal) {
    Running running({kUlts});
    const struct {
        unsigned short columns;
        const char *workers, *threads;
    } narrow[] = {
        {40, "WORKER  KERNEL THREAD  STATE", "THREAD          NAME             STATE"},
        {60, "WORKER  KERNEL THREAD  STATE                       TICKS",
         "THREAD          NAME             STATE   FUNCTION"},
        {80, "WORKER  KERNEL THREAD  STATE                       TICKS   SWITCHES   QUEUED",
         "THREAD          NAME             STATE   WORKER OR POOL   FUNCTION"},
        {100,
         "WORKER  KERNEL THREAD  STATE                       TICKS   SWITCHES   STEALS   PARKS    QUEUED",
         "THREAD          NAME             STATE   WORKER OR POOL   STACK             FUNCTION"},
    };
    for (const auto &[columns, workers, threads] : narrow) {
        const std::string out =
            Session({CLI_THRUM, "ps", std::to_string(running.pid())}, {}, columns).finish().out;
        std::istringstream lines(out);
        for (std::string line; std::getline(lines, line);) {
            EXPECT_LT(line.size(), columns) << line;
            EXPECT_TRUE(!line.empty() && line.back() != ' ') << "'" << line << "' in " << columns;
        }
        EXPECT_NE(out.find("\n" + std::string(workers) + "\n0 "), std::string::npos) << out;
        EXPECT_NE(out.find("\n" + std::string(threads) + "\n0x"), std::string::npos) << out;
        EXPECT_TRUE(has(out, "\n0x[0-9a-f]+ +one +waits[^\n]*\n    waits for mutex 0x[0-9a-f]+")) << out;
    }
    const std::string wide =
        Session({CLI_THRUM, "ps", "--wide", std::to_string(running.pid())}, {}, 40).finish().out;
    EXPECT_TRUE(has(wide, " one +waits .* +mutex 0x[0-9a-f]+, held by 0x[0-9a-f]+ two\n")) << wide;
    EXPECT_EQ(running.finish(), 0);
}

TEST(Ps, AgainAndAgain) {
    Running running({kUlts});
    Session session({CLI_THRUM, "ps", "--watch", "0.05", std::to_string(running.pid())},
                    with({{"TERM", "xterm"}}), 100);
    for (int i = 0; i < 3; i++)
        ASSERT_TRUE(session.until("\033[H\033[2Jprocess ")) << session.screen();
    EXPECT_EQ(running.finish(), 0);
    EXPECT_EQ(session.finish().code(), 1) << "there is nothing to watch any more";
}

// Whole rows, whatever the terminal's width, and one look behind the other.
TEST(Ps, ToAFile) {
    Running running({kUlts});
    const std::string file = place().path("ps"), objects = place().write("ps.json", "", 0644);
    const Ended once = Session({CLI_THRUM, "ps", "-o", file, std::to_string(running.pid())}, {}, 40).finish();
    EXPECT_EQ(once.code(), 0) << once.out;
    EXPECT_EQ(once.out, "");
    EXPECT_TRUE(has(read_file(file), " one +waits .* +mutex 0x[0-9a-f]+, held by 0x[0-9a-f]+ two\n"))
        << read_file(file);
    EXPECT_EQ(spawn({CLI_THRUM, "ps", "-o", "-", std::to_string(running.pid())}).out.rfind("process ", 0),
              0U);
    Session watching(
        {CLI_THRUM, "ps", "--json", "--watch", "0.02", "-o", objects, std::to_string(running.pid())});
    while (!has(read_file(objects), "\n.*\n"))
        usleep(1000);
    EXPECT_EQ(running.finish(), 0);
    EXPECT_EQ(watching.finish().code(), 1) << "there is nothing to watch any more";
    const std::string lines = read_file(objects);
    EXPECT_EQ(json_value(lines.substr(0, lines.find('\n')), "d['pid'] > 0"), "True") << lines;
}

TEST(Ps, EverythingWaits) {
    Running running({kUlts, "wait"});
    const std::string out = ps(running.pid()).out;
    EXPECT_TRUE(has(out, "\nHINT: all threads wait, and none for a time")) << out;
    EXPECT_TRUE(has(ps(running.pid(), {"--json"}).out, "\"all_wait\": true"));
}

// A thread in the middle of a function, and not because it waits: what it keeps is the one thing or the other.
class PsPreempted : public testing::TestWithParam<std::string> {};

TEST_P(PsPreempted, IsReadyAndHasABacktrace) {
    Running running({kPreempted}, with({{"THRUM_PREEMPT", GetParam()}}));
    const std::string out = ps(running.pid(), {"-b"}).out;
    EXPECT_TRUE(has(out, ": 2 workers, 3 threads: 2 running, 0 new, 1 ready, 0 waiting, 0 ended\n")) << out;
    EXPECT_TRUE(has(out, "\n2 +[0-9]+ +relief +[a-z]+ +[0-9]+ ")) << out;
    const std::string blocks =
        GetParam() == "klt"
            ? "[1-9][0-9]* carriers, [0-9]+ spare"
            : std::string(GetParam() == "own-tls" ? "3 own thread blocks" : "1 own thread block") +
                  ", [0-9]+ spare; [0-9]+ spare to lend; [0-9]+ donors?";
    EXPECT_TRUE(has(out, "\npreemption: " + GetParam() + ", signal [0-9]+; 1 preempted; " + blocks + "\n"))
        << out;
    EXPECT_TRUE(has(out, " ready +worker 1 +0 +[1-9][0-9]* of 65536 +compute_for_ever\n(    .*\n)*"
                         "    compute \\(preempted.c:[0-9]+\\)\n"
                         "    compute_for_ever \\(preempted.c:[0-9]+\\)\n"))
        << out;
    EXPECT_EQ(running.finish(), 0);
}

INSTANTIATE_TEST_SUITE_P(Modes, PsPreempted, testing::Values("lend", "own-tls", "klt"),
                         [](const testing::TestParamInfo<std::string> &mode) {
                             return mode.param == "own-tls" ? "own_tls" : mode.param;
                         });

// A thread that blocks all signals and waits in the kernel, another behind it, and two blocking calls.
TEST(Ps, AWorkerThatNoTickReaches) {
    Running running({kPreempted, "held"}, with({{"THRUM_PREEMPT", "lend"}}));
    std::string out;
    do {
        usleep(20000);
        out = ps(running.pid()).out;
    } while (out.find("\nNO TICK: ") == std::string::npos && ps(running.pid()).code() == 0);
    EXPECT_TRUE(has(out, "\n1 +[0-9]+ +runs 0x[0-9a-f]+ +blocked +[0-9]+ ")) << out;
    EXPECT_TRUE(has(out,
                    "\nNO TICK: worker 1 has had none for [0-9]+\\.[0-9] s while it runs 0x[0-9a-f]+: kernel "
                    "thread [0-9]+ blocks its signal\n"))
        << out;
    EXPECT_TRUE(has(out, "\nblocking calls: 2 on 2 kernel threads\n")) << out;
    const std::string json = ps(running.pid(), {"--json"}).out;
    const Ended checked = spawn({"/usr/bin/python3", "-c", R"(
import json, sys
told = json.loads(sys.argv[1])
resources = told["resources"]
assert (resources["mode"], resources["preempted"], resources["own_blocks"]) == ("lend", 0, 1), resources
assert resources["signal"] >= 34 and resources["own_blocks_spare"] >= 0 and resources["donors"] >= 0
assert resources["spare"] > 0, resources
assert resources["blocking_threads"] == resources["blocking_calls"] == 2, resources
held = told["workers"][1]
assert held["ticks"] == "blocked" and held["no_tick"] is True and held["since_tick"] > 1, held
others = [worker for worker in told["workers"] if worker is not held]
assert others and not any(worker["no_tick"] for worker in others), others
assert all(worker["since_tick"] is None for worker in others if worker["ticks"] in ("off", "rest", "none"))
)",
                                 json});
    EXPECT_EQ(checked.code(), 0) << checked.err << json;
    EXPECT_EQ(running.finish(), 0);
}

TEST(Ps, SoManyAtMost) {
    Running running({kUlts});
    const std::string out = ps(running.pid(), {"-n", "2"}).out;
    EXPECT_TRUE(has(out, "\n\\.\\.\\. and 4 more\n")) << out;
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
    expect_failed(spawn({CLI_THRUM, "ps"}), "missing process number: thrum ps PID", 2);
    expect_failed(spawn({CLI_THRUM, "ps", "-n", "x", "1"}), "-n takes a whole number of at least 0, not 'x'",
                  2);
    expect_failed(spawn({CLI_THRUM, "ps", "x"}), "PID is a process number from 1 to 2147483647, not 'x'", 2);
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

TEST(Ps, NoPermissionForRoot) {
    if (getuid() != 0 || prctl(PR_CAPBSET_READ, CAP_SYS_PTRACE) != 1)
        GTEST_SKIP() << "only root with CAP_SYS_PTRACE can do without it";
    Running running({kUlts});
    const Ended ended = spawn({"/usr/bin/setpriv", "--bounding-set", "-sys_ptrace", CLI_THRUM, "ps",
                               std::to_string(running.pid())});
    EXPECT_EQ(ended.code(), 1);
    EXPECT_NE(ended.err.find("root needs CAP_SYS_PTRACE"), std::string::npos) << ended.err;
}

} // namespace
