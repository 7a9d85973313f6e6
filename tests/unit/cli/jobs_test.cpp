// SPDX-License-Identifier: Apache-2.0
//
// The commands as jobs of a shell on a terminal: Ctrl-C ends a loop around them, Ctrl-Z suspends them.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "documents.hpp"
#include "place.hpp"
#include "session.hpp"

namespace {

const std::string kCtrlC = "\x03", kCtrlZ = "\x1a", kQuit = "\x1c";

World terminal() {
    return with({{"TERM", "dumb"}});
}

Words shell(const std::string &script, const Words &words) {
    Words all = {"/bin/bash", "--norc", "-c", script, "shell", place().thrum()};
    all.insert(all.end(), words.begin(), words.end());
    return all;
}

const char *const kSleeps = "echo ready $$.; exec sleep 1000";

class Jobs : public testing::TestWithParam<Words> {};

// A shell ends its loop where a command dies of SIGINT, and not where it exits with 130.
TEST_P(Jobs, CtrlCEndsALoop) {
    Session session(shell("for i in 1 2 3; do echo round $i; \"$@\"; done", GetParam()), terminal());
    ASSERT_TRUE(session.until("round 1")) << session.screen();
    ASSERT_TRUE(session.until("ready")) << session.screen();
    session.type(kCtrlC);
    const Ended ended = session.finish();
    EXPECT_EQ(ended.signal(), SIGINT) << ended.out;
    EXPECT_EQ(ended.out.find("round 2"), std::string::npos) << ended.out;
}

// `set -m` gives each command a process group of its own, as an interactive shell does.
TEST_P(Jobs, CtrlZSuspends) {
    Session session(
        shell("set -m; \"$@\"; echo suspended; kill -INT %1; kill -CONT %1; wait %1; echo ended with $?",
              GetParam()),
        terminal());
    ASSERT_TRUE(session.until("ready")) << session.screen();
    session.type(kCtrlZ);
    ASSERT_TRUE(session.until("suspended")) << session.screen();
    const Ended ended = session.finish();
    EXPECT_NE(ended.out.find("ended with 130"), std::string::npos) << "by the signal, 128 + 2 to a shell\n"
                                                                   << ended.out;
}

// Ctrl-\ does not reach a program that is in a session of its own: the command passes it on, and waits for its end.
TEST_P(Jobs, CtrlBackslashLeavesNothingBehind) {
    Session session(shell("ulimit -c 0; exec \"$@\"", GetParam()), terminal());
    ASSERT_TRUE(session.until("ready ")) << session.screen();
    ASSERT_TRUE(session.until(".")) << session.screen();
    const pid_t program = std::stoi(session.screen().substr(session.screen().find("ready ") + 6));
    session.type(kQuit);
    const Ended ended = session.finish();
    EXPECT_EQ(ended.signal(), SIGQUIT) << ended.out;
    EXPECT_EQ(kill(program, SIGKILL), -1) << "it still ran";
}

INSTANTIATE_TEST_SUITE_P(
    Commands, Jobs,
    testing::Values(Words{"compare", "--show-output", "--", "/bin/sh", "-c", kSleeps},
                    Words{"trace", "--", "/bin/sh", "-c", kSleeps},
                    Words{"stat", "--", "/bin/sh", "-c", kSleeps},
                    Words{"stat", "--sweep", "1,2", "--", "/bin/sh", "-c", kSleeps, "{}"},
                    Words{"stat", "--sweep", "1,2", "--show-output", "--", "/bin/sh", "-c",
                          "test $0 = 1 || { echo ready $$.; exec sleep 1000; }", "{}"},
                    Words{"run", "--", "/bin/sh", "-c", kSleeps}),
    [](const testing::TestParamInfo<Words> &words) {
        return words.param.front() + std::to_string(words.index);
    });

// --- of a process that runs already --------------------------------------------------------------------------

// Ctrl-Z once `sign` is there, and `fg`. `with_interrupt`: Ctrl-C as soon as `sign` is there again.
Ended suspend_and_resume(Words words, const std::string &sign, bool with_interrupt, const char *kind) {
    words.insert(words.begin(),
                 {"/bin/bash", "--norc", "-c", "set -m; \"$@\"; echo suspended; fg; echo ended with $?",
                  "shell", place().thrum()});
    Session session(words, with({{"TERM", kind}}));
    EXPECT_TRUE(session.until(sign)) << session.screen();
    session.type(kCtrlZ);
    EXPECT_TRUE(session.until("suspended")) << session.screen();
    if (with_interrupt) {
        EXPECT_TRUE(session.until(sign)) << "it does not continue\n" << session.screen();
        session.type(kCtrlC);
    }
    return session.finish();
}

// The shell ends its script where a job dies of SIGINT, and continues where one exits with 130.
void expect_killed(const Ended &ended) {
    EXPECT_EQ(ended.code(), 130) << ended.out;
    EXPECT_EQ(ended.out.find("ended with"), std::string::npos) << ended.out;
}

TEST(Jobs, StatOfAProcessIsSuspended) {
    const Running process({CLI_PROBE, "hold"});
    const Ended ended =
        suspend_and_resume({"stat", "--no-profile", "--seconds", "0.5", "-p", std::to_string(process.pid())},
                           "observing process", false, "xterm");
    EXPECT_NE(ended.out.find("the observation was suspended for some time"), std::string::npos) << ended.out;
    EXPECT_NE(ended.out.find("ended with 0"), std::string::npos) << ended.out;
}

TEST(Jobs, CountersAreSuspended) {
    const Running process({place().thrum(), "run", CLI_PROBE, "hold"});
    const Ended ended = suspend_and_resume({"counters", "--watch", "0.02", std::to_string(process.pid())},
                                           "idle, peak", true, "xterm");
    expect_killed(ended);
}

#ifdef CLI_ULTS

TEST(Jobs, PsIsSuspended) {
    const Running process({CLI_ULTS});
    const Ended ended = suspend_and_resume({"ps", "--watch", "0.02", std::to_string(process.pid())},
                                           "DEADLOCK", true, "xterm");
    expect_killed(ended);
}

#endif

#ifdef CLI_TRACED

bool blocks(pid_t pid, int signal) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/status");
    for (std::string name; file >> name;)
        if (unsigned long set = 0; name == "SigBlk:" && file >> std::hex >> set)
            return (set >> (signal - 1) & 1) != 0;
    return false;
}

// The leader of a process group that the terminal is given to, and not stopped.
bool is_in_foreground(pid_t pid) {
    const std::string text = read_file("/proc/" + std::to_string(pid) + "/stat");
    std::istringstream rest(text.substr(std::min(text.rfind(')') + 1, text.size())));
    char state = 0;
    long parent = 0, group = 0, session = 0, terminal = 0, foreground = 0;
    rest >> state >> parent >> group >> session >> terminal >> foreground;
    return state != 'T' && foreground == pid;
}

// It shows nothing while it observes.
TEST(Jobs, TraceOfAProcessIsSuspended) {
    const Place mine(CLI_STANDIN);
    const std::string out = mine.path("attached.json");
    const Running process(
        {CLI_TRACED, "stay"},
        with({{"THRUM_TRACE", mine.path("own")}, {"THRUM_TRACE_EVENTS", "1000"}, {"THRUM_WORKERS", "2"}}));
    Session session(
        {"/bin/bash", "--norc", "-c",
         "set -m; /bin/sh -c 'echo $$; exec \"$@\"' sh \"$@\"; echo suspended; fg; echo ended with $?",
         "shell", mine.thrum(), "trace", "--seconds", "1000", "-o", out, "-p", std::to_string(process.pid())},
        terminal());
    ASSERT_TRUE(session.until("\n")) << session.screen();
    const pid_t trace = std::stoi(session.screen());
    for (; !blocks(trace, SIGTSTP); usleep(500)) // which it takes between two looks, that last some ms
        ASSERT_EQ(kill(trace, 0), 0) << session.finish().out;
    session.type(kCtrlZ);
    ASSERT_TRUE(session.until("suspended")) << session.screen();
    for (; !is_in_foreground(trace); usleep(10000))
        ASSERT_EQ(kill(trace, 0), 0) << session.finish().out;
    session.type(kCtrlC);
    const Ended ended = session.finish();
    EXPECT_NE(ended.out.find("attached.json has "), std::string::npos) << ended.out;
    EXPECT_NE(ended.out.find("ended with 0"), std::string::npos) << ended.out;
    EXPECT_EQ(json_value(read_file(out), "len(d['traceEvents']) > 0"), "True");
    kill(process.pid(), SIGKILL);
}

#endif

// What Ctrl-Z stopped for a while has no time to tell: it is run again.
TEST(Jobs, ARunThatWasSuspendedIsMadeAgain) {
    const Place mine(CLI_STANDIN);
    const std::string runs = mine.path("runs");
    const std::string program = mine.write("program", "#!/bin/sh\necho >>" + runs + "\ntest $(wc -l <" +
                                                          runs + ") != 1 || { echo ready; sleep 1; }\n");
    Session session({"/bin/bash", "--norc", "-c", "set -m; \"$@\"; echo suspended; fg >/dev/null", "shell",
                     mine.thrum(), "compare", "--show-output", "-n", "1", "--warmup", "0", "--json", "--",
                     program},
                    terminal());
    ASSERT_TRUE(session.until("ready")) << session.screen();
    session.type(kCtrlZ);
    const Ended ended = session.finish();
    EXPECT_EQ(ended.code(), 0) << ended.out;
    EXPECT_NE(ended.out.find("suspended"), std::string::npos) << ended.out;
    EXPECT_EQ(read_file(runs), "\n\n\n") << "a run without the cache, again, and one with it\n" << ended.out;
}

} // namespace
