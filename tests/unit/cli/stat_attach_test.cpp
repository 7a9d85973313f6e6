// SPDX-License-Identifier: Apache-2.0
//
// `thrum stat -p PID`: a running process of the same user (watched.c). What the report says of it, that the process
// does not notice, and that it may end meanwhile. No test asserts a time.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "documents.hpp"
#include "place.hpp"
#include "session.hpp"

namespace {

constexpr uid_t kNoLife = 65534;
constexpr int kServed = 9; // the exit code of `watched serve`, once all of its threads have run on

// Where any user may execute it.
const std::string &program() {
    static const std::string path = place().copy(CLI_WATCHED, "watched");
    return path;
}

Words serve() {
    return {program(), "serve", "4"};
}

World as(uid_t user) {
    World world;
    world.user = user;
    return world;
}

bool can_become_others() {
    return getuid() == 0;
}

// A kernel that lets no process inspect another but its own children.
bool is_forbidden() {
    std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
    int scope = 0;
    return file >> scope && scope > 0;
}

class StatAttach : public testing::Test {
  protected:
    void SetUp() override {
        if (is_forbidden() && !can_become_others())
            GTEST_SKIP() << "kernel.yama.ptrace_scope lets no process look at another";
    }
};

Ended look(pid_t pid, const Words &options, const World &world = {}) {
    Words words = {place().thrum(), "stat", "-p", std::to_string(pid)};
    words.insert(words.end(), options.begin(), options.end());
    return spawn(words, world);
}

void expect_served(Running &running) {
    const int status = running.finish();
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), kServed);
}

void expect_report(const std::string &json, pid_t pid) {
    EXPECT_EQ(json_value(json, "d['command']"), "['watched', '(process " + std::to_string(pid) + ")']");
    EXPECT_EQ(json_value(json, "sorted(t['name'] for t in d['threads'])"),
              "['hand-0', 'hand-1', 'hand-2', 'hand-3', 'watched']");
    EXPECT_EQ(json_value(json, "d['points'][0]['most_threads'], len(d['points']), d['outcome'], "
                               "d['exit_code'], d['interrupted']"),
              "5 1 one_run 0 False");
    EXPECT_EQ(
        json_value(
            json, "d['points'][0]['cpu'] > 0, d['samples'] > 0, d['profile_source'] in (None, 'perf event')"),
        "True True True");
    EXPECT_EQ(json_value(json, "d['doing']['lock_wait'] > d['doing']['running']"), "True");
    EXPECT_EQ(json_value(json, "any('observed from outside' in line for line in d['how_known'])"), "True");
#ifdef CLI_ELFUTILS
    EXPECT_EQ(json_value(json, "d['locks'][0]['lock']['symbol'], d['locks'][0]['threads'] > 1, "
                               "d['locks'][0]['share'] > 0.8"),
              "pot_lock True True");
    EXPECT_EQ(json_value(json,
                         "d['findings'][0]['rule'] in ('held-asleep', 'hot-mutex', 'one-lock', 'convoy'), "
                         "d['findings'][0]['function'], d['findings'][0]['file']"),
              "True put watched.c")
        << json_value(json, "d['findings']");
#endif
}

void look_at_own(const World &world) {
    Running running(serve(), world);
    const Ended ended = look(running.pid(), {"--seconds", "1", "--json"}, world);
    EXPECT_EQ(ended.code(), 0) << ended.err;
    EXPECT_EQ(ended.err, "");
    expect_report(ended.out, running.pid());
    expect_served(running);
}

TEST_F(StatAttach, AProcessOfOnesOwn) {
    look_at_own({});
}

// Without any of root's rights.
TEST_F(StatAttach, AnOrdinaryUsers) {
    if (!can_become_others())
        GTEST_SKIP() << "only root can become another user";
    if (is_forbidden())
        GTEST_SKIP() << "kernel.yama.ptrace_scope lets ordinary users not look at a process";
    look_at_own(as(kNoLife));
}

TEST_F(StatAttach, AnotherUsersIsRefusedInALine) {
    if (!can_become_others())
        GTEST_SKIP() << "only root can become another user";
    Running running(serve());
    const Ended ended = look(running.pid(), {"--seconds", "1"}, as(kNoLife));
    EXPECT_EQ(ended.code(), 1);
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    EXPECT_NE(ended.err.find("process " + std::to_string(running.pid())), std::string::npos) << ended.err;
    expect_served(running);
}

TEST_F(StatAttach, TheTextAndAllFiles) {
    const std::string page = place().path("attach-page.html"), trace = place().path("attach-trace.json"),
                      folded = place().path("attach-folded");
    Running running(serve());
    const Ended ended =
        look(running.pid(), {"--seconds", "1", "--html", page, "--trace", trace, "--folded", folded});
    EXPECT_EQ(ended.code(), 0) << ended.err;
    EXPECT_EQ(ended.out, "");
    EXPECT_NE(("\n" + ended.err).find("\nVERDICT "), std::string::npos) << ended.err;
    expect_sound_page(read_file(page));
    EXPECT_EQ(json_value(read_file(trace),
                         "sorted(e['args']['name'] for e in d['traceEvents'] "
                         "if e['name'] == 'thread_name'), {e['pid'] for e in d['traceEvents']}"),
              "['hand-0', 'hand-1', 'hand-2', 'hand-3', 'watched'] {" + std::to_string(running.pid()) + "}");
#ifdef CLI_ELFUTILS
    EXPECT_NE(ended.err.find("pot_lock"), std::string::npos) << ended.err;
    EXPECT_NE(read_file(page).find("pot_lock"), std::string::npos);
    EXPECT_NE(read_file(folded).find(";put;"), std::string::npos) << read_file(folded);
#endif
    expect_served(running);
}

// --- it ends meanwhile ------------------------------------------------------------------------------------

// For much longer than a test may take.
Session look_for_long(pid_t pid) {
    return Session({place().thrum(), "stat", "-p", std::to_string(pid), "--seconds", "80000"},
                   with({{"TERM", "xterm"}}));
}

// The line on the terminal comes before it begins, and again and again during the observation.
void until_it_looks(Session &session) {
    for (int i = 0; i < 2; i++)
        ASSERT_TRUE(session.until("observing process ")) << session.screen();
}

void expect_text(const Ended &ended, int code) {
    EXPECT_EQ(ended.code(), code) << ended.out;
    EXPECT_NE(ended.out.find("VERDICT "), std::string::npos) << ended.out;
}

TEST_F(StatAttach, AProcessThatEndsMeanwhile) {
    Running running(serve());
    Session session = look_for_long(running.pid());
    until_it_looks(session);
    expect_served(running);
    expect_text(session.finish(), 0);
}

// Its parent has not waited for it yet: the number still exists, without a process.
TEST_F(StatAttach, AProcessThatEndsAndIsNotWaitedFor) {
    Running running(serve());
    Session session = look_for_long(running.pid());
    until_it_looks(session);
    kill(running.pid(), SIGKILL);
    expect_text(session.finish(), 0);
    EXPECT_EQ(running.finish(), SIGKILL);
}

// That looks the same in some of the kernel's files.
TEST_F(StatAttach, AProcessWhoseFirstThreadHasEndedContinues) {
    Running running({program(), "headless", "4"});
    const Ended ended = look(running.pid(), {"--seconds", "1", "--json"});
    EXPECT_EQ(ended.code(), 0) << ended.err;
    EXPECT_EQ(json_value(ended.out, "d['sampled_wall'] >= 1, sorted({t['name'] for t in d['threads']})"),
              "True ['hand-0', 'hand-1', 'hand-2', 'hand-3', 'watched']");
#ifdef CLI_ELFUTILS
    EXPECT_EQ(json_value(ended.out, "d['locks'][0]['lock']['symbol'], d['findings'][0]['function']"),
              "pot_lock put");
#endif
    expect_served(running);
}

TEST_F(StatAttach, OneThatHasEndedAlready) {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0)
        _exit(0);
    ASSERT_EQ(waitpid(pid, nullptr, 0), pid);
    const Ended ended = look(pid, {});
    EXPECT_EQ(ended.code(), 1);
    EXPECT_EQ(ended.err, "thrum stat: there is no process " + std::to_string(pid) + "\n");
}

// Of the threads that it has when it is attached to, and of those that it makes.
TEST_F(StatAttach, ACpuProfile) {
    const Running running(
        {"/bin/sh", "-c", "exec 3<&0; (read line <&3; kill -9 $$) & echo ready; while :; do :; done"});
    const Ended ended = look(running.pid(), {"--seconds", "0.5", "--json"});
    EXPECT_EQ(ended.code(), 0) << ended.err;
    if (json_value(ended.out, "d['profile_source']") == "None")
        GTEST_SKIP() << "perf events are refused here";
    EXPECT_EQ(json_value(ended.out, "sum(site['samples'] for site in d['burns']) > 0"), "True") << ended.out;
    EXPECT_EQ(json_value(ended.out, "all(site['doing'] == 'running' for site in d['burns'])"), "True");
    const Ended without = look(running.pid(), {"--seconds", "0.1", "--json", "--no-profile"});
    EXPECT_EQ(json_value(without.out, "d['profile_source'], d['burns']"), "None []");
}

// Neither has a program in it.
TEST_F(StatAttach, AThreadOfTheKernelAndAZombie) {
    if (getuid() == 0 && access("/proc/2/exe", F_OK) != 0 && read_file("/proc/2/comm") == "kthreadd\n") {
        const Ended kernel = look(2, {"--seconds", "0.1"});
        EXPECT_EQ(kernel.code(), 1);
        EXPECT_EQ(kernel.err, "thrum stat: process 2 (kthreadd) is a kernel thread: it runs no program\n");
    }
    const pid_t child = fork();
    if (child == 0)
        _exit(0);
    siginfo_t info;
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
    const Ended zombie = look(child, {"--seconds", "0.1"});
    EXPECT_EQ(zombie.code(), 1);
    EXPECT_NE(zombie.err.find(" has ended; its parent, process " + std::to_string(getpid()) +
                              ", has not waited for it yet"),
              std::string::npos)
        << zombie.err;
    waitpid(child, nullptr, 0);
}

// Ctrl-C ends the looking, and not the process, which knows nothing of that terminal.
TEST_F(StatAttach, CtrlCEndsItEarly) {
    Running running(serve());
    Session session = look_for_long(running.pid());
    until_it_looks(session);
    session.type("\x03");
    const Ended ended = session.finish();
    expect_text(ended, 0);
    EXPECT_NE(ended.out.find("interrupted: these are the results so far"), std::string::npos) << ended.out;
    expect_served(running);
}

} // namespace
