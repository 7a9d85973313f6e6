// SPDX-License-Identifier: Apache-2.0
//
// Runs of `thrum stat` that are looked at in ways that fail, or that are left alone meanwhile.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <vector>

#include "documents.hpp"
#include "interrupts.hpp"
#include "place.hpp"
#include "stat/account.hpp"
#include "stat/kernel_places.hpp"
#include "stat/run.hpp"
#include "stat/thread_list.hpp"
#include "tools/descriptor.hpp"

namespace {

// --- interrupts ---------------------------------------------------------------------------------------------

// In a child, which it may end: the status, as from waitpid.
int status_of(int (*body)()) {
    const pid_t pid = fork();
    if (pid == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, nullptr);
        signal(SIGINT, SIG_DFL);
        _exit(body());
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return status;
}

TEST(StatLooks, WithoutAWaiterTheSecondInterruptEndsAll) {
    const int ended = status_of([] {
        thrum::Interrupts interrupts;
        interrupts.release_second();
        raise(SIGINT);
        if (interrupts.caught() == SIGINT)
            raise(SIGINT);
        return 1;
    });
    EXPECT_TRUE(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGINT) << ended;
}

TEST(StatLooks, SignalsBetweenWaitsAreToldToTheNextWaiter) {
    const int ended = status_of([] {
        thrum::Interrupts interrupts;
        interrupts.release_second();
        raise(SIGINT);
        interrupts.watch();
        const bool is_told = interrupts.wait(0) && !interrupts.wait(0);
        raise(SIGINT); // which is blocked again
        return is_told && interrupts.wait(0) && interrupts.caught() == SIGINT ? 7 : 1;
    });
    EXPECT_TRUE(WIFEXITED(ended) && WEXITSTATUS(ended) == 7) << ended;
}

#ifdef CLI_INTERRUPTER

void expect_interrupted(const Words &words, int status) {
    const auto interrupted = [&words](const char *times) {
        return spawn(words, with({{"LD_PRELOAD", CLI_INTERRUPTER}, {"INTERRUPTS", times}}));
    };
    const Ended never = interrupted("0"), once = interrupted("1"), twice = interrupted("2");
    EXPECT_EQ(never.code(), status) << never.err;
    EXPECT_EQ(never.err.find("interrupted"), std::string::npos) << never.err;
    EXPECT_EQ(once.code(), status) << once.err;
    EXPECT_NE(once.err.find("VERDICT"), std::string::npos) << once.err;
    EXPECT_EQ(twice.signal(), SIGINT) << twice.err;
    EXPECT_EQ(twice.err.find("VERDICT"), std::string::npos) << twice.err;
}

TEST(StatLooks, ASecondInterruptEndsTheWorkingOut) {
    expect_interrupted({CLI_THRUM, "stat", "--no-profile", "--", CLI_WATCHED, "share", "4", "200"}, 0);
}

TEST(StatLooks, ASecondInterruptEndsTheWorkingOutOfAProcess) {
    const Running process({CLI_WATCHED, "serve", "4"});
    expect_interrupted({CLI_THRUM, "stat", "--seconds", "0.3", "-p", std::to_string(process.pid())}, 0);
}

#endif

// --- runs that are looked at --------------------------------------------------------------------------------

// Their beginnings and ends are told on several CPUs, and so in any order.
TEST(StatLooks, ProcessesThatHaveEndedDidNotContinue) {
    const Ended ended = spawn({CLI_THRUM, "stat", "--", "/bin/sh", "-c",
                               "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i + 1)); done"});
    EXPECT_EQ(ended.code(), 0) << ended.err;
    EXPECT_EQ(ended.err.find("kept running when"), std::string::npos) << ended.err;
}

// How often this process has read from files; 0 where the kernel does not tell.
long reads() {
    std::ifstream file("/proc/self/io");
    for (std::string name; file >> name;)
        if (long number = 0; name == "syscr:" && file >> number)
            return number;
    return 0;
}

// So many have all that they did looked up in the beginning and in the end, not twice a second.
TEST(StatLooks, ManyThreadsAreLookedAtSeldom) {
    constexpr int kThreads = 5000;
    if (reads() == 0)
        GTEST_SKIP() << "/proc/self/io does not tell how often files are read";
    const Running process({CLI_LISTENERS, std::to_string(kThreads), "idle"});
    thrum::Interrupts interrupts;
    const long before = reads();
    const thrum::stat::Measured measured = thrum::stat::watch(process.pid(), 3, {}, interrupts, [] {});
    const long each = (reads() - before) / kThreads;
    EXPECT_EQ(measured.most_threads, kThreads + 1U);
    EXPECT_LE(each, 9) << "twice in the beginning, and in the end, and of some of them the delays";
}

// However little time there is for it: where counting them has taken that, a short run seems never to have waited for a CPU.
TEST(StatLooks, ALookIsAtOneThreadAtLeast) {
    const Running process({CLI_LISTENERS, "3", "idle"});
    thrum::stat::ThreadWatch threads(process.pid(), 0);
    threads.look();
    std::ifstream file("/proc/" + std::to_string(process.pid()) + "/schedstat");
    std::uint64_t run = 0, delay = 0;
    ASSERT_TRUE(file >> run >> delay);
    EXPECT_EQ(threads.most(), 4U);
    EXPECT_GT(delay, 0U);
    EXPECT_DOUBLE_EQ(threads.run_delay(), static_cast<double>(delay) * 1e-9);
}

// The two shells share a CPU, and the run is over before its threads are looked at for the first time. The other one is of the
// run's session: the kernel may give a new session a CPU for longer than that run takes.
TEST(StatLooks, AShortRunHasWaitedForACpu) {
    cpu_set_t all, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const std::string line =
        "(while :; do :; done) & i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; kill -9 $!";
    thrum::Interrupts interrupts;
    const thrum::stat::Measured measured =
        thrum::stat::run({"/bin/sh", {"sh", "-c", line}, {}}, {}, {}, interrupts, [] {});
    EXPECT_GT(measured.run_delay, 0.001) << measured.user + measured.system << " s of CPU time";
    EXPECT_GT(measured.own_cpu, 0);
    sched_setaffinity(0, sizeof all, &all);
}

// What is compared are runs that did the same.
TEST(StatLooks, ASweepInWhichANumberFailsSaysSo) {
    const std::string program = place().write("fails", "#!/bin/sh\n[ \"$1\" = 1 ] || exit 3\n");
    const Ended ended = spawn({CLI_THRUM, "stat", "--sweep", "1,2", "-n", "1", "--", program, "{}"});
    EXPECT_EQ(ended.code(), 3);
    EXPECT_EQ(ended.err.compare(0, 54, "VERDICT  Inconclusive: the program ended differently: "), 0)
        << ended.err;
}

// --- CPU time -----------------------------------------------------------------------------------------------

// What a process does before it becomes the program is not the program's, nor is the time that it takes.
TEST(StatLooks, TheClockBeginsWhenTheProcessIsReady) {
    struct Ready : thrum::stat::Layer {
        void forked(pid_t child) override {
            session = getsid(child);
            char path[64] = {};
            const std::string output = "/proc/" + std::to_string(child) + "/fd/1";
            EXPECT_GT(readlink(output.c_str(), path, sizeof path - 1), 0);
            to = path;
            pid = child;
        }
        void poll(double) override {}
        pid_t pid = 0, session = 0;
        std::string to;
    };
    for (int i = 0; i < 10; i++) {
        Ready ready;
        thrum::Interrupts interrupts;
        thrum::stat::run({"/bin/true", {"true"}, {}}, {}, {&ready}, interrupts, [] {});
        EXPECT_EQ(ready.session, ready.pid);
        EXPECT_EQ(ready.to, "/dev/null");
    }
}

// The kernel has divided the time: of a short program it may have put all into one part.
TEST(StatLooks, WhatIsNotTheProgramsIsLeftOutOfBothParts) {
    thrum::stat::Measured measured;
    measured.user = 5;
    measured.system = 2;
    thrum::stat::leave_out_cpu(1, measured);
    EXPECT_EQ(measured.system, 1);
    EXPECT_EQ(measured.user, 5);
    thrum::stat::leave_out_cpu(3, measured);
    EXPECT_EQ(measured.system, 0);
    EXPECT_EQ(measured.user, 3);
    thrum::stat::leave_out_cpu(4, measured);
    EXPECT_EQ(measured.user, 0);
}

// The kernel tells of a running thread's time up to its last tick: a look of 13 ms may see a tick more.
TEST(StatLooks, WhatTheKernelToldLateIsLeftOut) {
    const auto left_of = [](double user, double system, unsigned threads) {
        thrum::stat::Measured measured;
        measured.wall = 0.0132;
        measured.user = user;
        measured.system = system;
        thrum::stat::leave_out_late_ticks(threads, measured);
        return measured;
    };
    EXPECT_DOUBLE_EQ(left_of(0.0159, 0, 1).user, 0.0132);
    EXPECT_DOUBLE_EQ(left_of(0.0149, 0.001, 1).user, 0.0132);
    EXPECT_DOUBLE_EQ(left_of(0.010, 0.002, 1).user, 0.010) << "it may have had no more";
    EXPECT_DOUBLE_EQ(left_of(0.010, 0.002, 1).system, 0.002);
    EXPECT_DOUBLE_EQ(left_of(0.0264, 0, 1).user, 0.0264) << "of a thread that no look has seen";
    EXPECT_DOUBLE_EQ(left_of(0.0264, 0, 1000).user, 0.0264);
}

// One thread uses one CPU at most, however short the look: /proc tells of times in steps of 10 ms.
TEST(StatLooks, OneThreadUsesOneCpuAtMost) {
    const Running process({"/bin/sh", "-c", "echo ready; while :; do :; done"});
    thrum::Interrupts interrupts;
    for (int i = 0; i < 8; i++) {
        const thrum::stat::Measured measured =
            thrum::stat::watch(process.pid(), 0.013, {}, interrupts, [] {});
        EXPECT_LE(measured.user + measured.system, measured.wall);
    }
    kill(process.pid(), SIGKILL);
}

// --- all of the command --------------------------------------------------------------------------------------

#ifdef CLI_ELFUTILS // which finds what is waited for

// However many threads wait for messages that do not come: those that work wait for a lock, and that is what is told.
TEST(StatLooks, IdleConnectionsHideNoLock) {
    const Ended ended = spawn({CLI_THRUM, "stat", "--json", "--", CLI_LISTENERS, "40"});
    ASSERT_EQ(ended.code(), 0) << ended.err;
    EXPECT_EQ(json_value(ended.out,
                         "d['findings'][0]['rule'] in ('held-asleep', 'hot-mutex', 'one-lock', 'convoy'), "
                         "d['findings'][0]['function'], d['locks'][0]['lock']['symbol']"),
              "True update table_lock")
        << json_value(ended.out, "d['findings']");
    EXPECT_EQ(json_value(ended.out, "[f for f in d['findings'] if f['rule'] == 'io-bound']"), "[]");
}

#endif

#ifdef CLI_STAT // which the counting is done with

// With an environment of its own the program has no library that counts, and what was sampled stands.
TEST(StatLooks, WhatCouldNotBeCountedIsNotCalledSo) {
    const auto run = [](const Words &before) {
        Words words = {CLI_THRUM, "stat", "--exact", "--json", "--"};
        words.insert(words.end(), before.begin(), before.end());
        words.insert(words.end(), {CLI_WATCHED, "share", "4", "200"});
        return spawn(words);
    };
    const std::string members = "d['exact'], d['threads_counted'], d['threads_created'] >= 4";
    const Ended seen = run({}), unseen = run({"/usr/bin/env", "-i"});
    ASSERT_EQ(seen.code(), 0) << seen.err;
    ASSERT_EQ(unseen.code(), 0) << unseen.err;
    EXPECT_EQ(json_value(seen.out, members), "True True True");
    EXPECT_EQ(json_value(unseen.out, members), "False False True");
    EXPECT_EQ(json_value(unseen.out, "[s for s in d['how_known'] if s.startswith('Waits were counted')]"),
              "[]");
}

// The memory that is shared with the program is a file to it.
TEST(StatLooks, TheProgramMayTruncateWhatIsShared) {
    const std::string line = "test -n \"$THRUM_STAT\" && truncate -s 0 \"$THRUM_STAT\" && exit 5; exit 6";
    const Ended ended = spawn({CLI_THRUM, "stat", "--exact", "--", "/bin/sh", "-c", line});
    EXPECT_EQ(ended.signal(), 0) << ended.err;
    EXPECT_NE(ended.err.find("VERDICT"), std::string::npos) << ended.err;
    EXPECT_EQ(ended.err.find("ended differently"), std::string::npos) << "it could\n" << ended.err;
}

#endif

// --- places in the kernel -----------------------------------------------------------------------------------

// What a sample of this process has for a place, whose thread waits in poll() for that alone.
class Polls {
  public:
    Polls() : memory_(open("/proc/self/mem", O_RDONLY | O_CLOEXEC)) { places_.open(getpid(), memory_.get()); }
    std::size_t place_of(int descriptor, short events) {
        const pollfd polled{descriptor, events, 0};
        thrum::stat::ProcSample sample;
        sample.state = 'S';
        sample.system_call = SYS_ppoll;
        sample.arguments[0] = reinterpret_cast<std::uint64_t>(&polled);
        sample.arguments[1] = 1;
        places_.look(threads_, getpid(), sample, 0);
        return sample.place;
    }
    const std::vector<thrum::stat::KernelPlace> &all() const { return all_; }

  private:
    thrum::Descriptor memory_;
    std::vector<thrum::stat::KernelPlace> all_;
    thrum::stat::KernelPlaces places_{all_};
    std::vector<thrum::stat::ProcThread> known_;
    thrum::stat::ThreadList threads_{known_};
};

TEST(StatLooks, ASocketThatIsPolledForInputIsAPlace) {
    Polls polls;
    const thrum::Descriptor socket_at(socket(AF_UNIX, SOCK_STREAM, 0)), event(eventfd(0, EFD_CLOEXEC)),
        null(open("/dev/null", O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(polls.place_of(event.get(), POLLIN), SIZE_MAX);
    EXPECT_EQ(polls.place_of(null.get(), POLLIN), SIZE_MAX);
    EXPECT_EQ(polls.place_of(-1, POLLIN), SIZE_MAX);
    EXPECT_EQ(polls.place_of(socket_at.get(), POLLOUT), SIZE_MAX);
    EXPECT_EQ(polls.place_of(socket_at.get(), POLLIN), 0U);
    EXPECT_EQ(polls.place_of(socket_at.get(), POLLIN), 0U) << "known";
    ASSERT_EQ(polls.all().size(), 1U);
    EXPECT_EQ(polls.all().front().file.rfind("socket:", 0), 0U) << polls.all().front().file;
}

// A thread for each connection: their sockets leave room for what others wait for in the kernel.
TEST(StatLooks, ManySocketsLeaveRoomForOtherPlaces) {
    Polls polls;
    std::vector<thrum::Descriptor> sockets;
    std::size_t places = 0;
    for (int i = 0; i < 150; i++) {
        sockets.emplace_back(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        ASSERT_TRUE(sockets.back().is_open());
        places += polls.place_of(sockets.back().get(), POLLIN) != SIZE_MAX ? 1 : 0;
    }
    EXPECT_EQ(places, 100U);
    EXPECT_EQ(polls.all().size(), 100U);
}

} // namespace
