// SPDX-License-Identifier: Apache-2.0
//
// The holder of a lock while others wait for it (cli/stat/holders.hpp), and what the rules conclude: from made-up
// samples. stat_sampler_test.cpp has programs that do it.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "stat/holders.hpp"
#include "stat/rules.hpp"

namespace {

using namespace thrum::stat;

Frame frame(const char *function, int line) {
    Frame made;
    made.function = function;
    made.module = line > 0 ? "prog" : "libc.so.6";
    made.file = line > 0 ? "prog.c" : "";
    made.line = line;
    made.is_user = line > 0;
    return made;
}

Site site(Doing doing, std::size_t lock, const std::vector<Frame> &stack) {
    Site made;
    made.doing = doing;
    made.lock = lock;
    made.stack = stack;
    return made;
}

// Places: 0 waits for lock 0, 1 for lock 1, 2 for a thread's end, 3 sleeps, 4 waits for work.
const std::vector<Site> &places() {
    static const std::vector<Site> all = {
        site(Doing::kLockWait, 0, {frame("pthread_mutex_lock", 0), frame("pay", 21)}),
        site(Doing::kLockWait, 1, {frame("pthread_mutex_lock", 0), frame("earn", 31)}),
        site(Doing::kJoinWait, SIZE_MAX, {frame("pthread_join", 0), frame("main", 41)}),
        site(Doing::kSleep, SIZE_MAX, {frame("nanosleep", 0), frame("ask", 51)}),
        site(Doing::kIdleWait, SIZE_MAX, {frame("epoll_wait", 0), frame("serve", 61)}),
    };
    return all;
}

// One that does the same from a moment on until two seconds have passed, looked at ten times a second.
Life from(double begin, pid_t id, std::size_t site, pid_t awaited = 0) {
    Life life;
    life.id = id;
    for (int i = 0; i <= 20; i++) {
        Look look;
        look.at = 0.1 * i;
        look.run_ns = static_cast<std::uint64_t>(100 * i);
        if (look.at >= begin - 1e-9) {
            look.run_ns = 1000;
            look.doing = places()[site].doing;
            look.site = site;
            look.awaited = awaited;
        }
        life.looks.push_back(look);
    }
    return life;
}

// The same, but without samples at other times.
Life seen_only(double first, double last, Life life) {
    const auto is_left_out = [&](const Look &look) {
        return look.at < first - 1e-9 || look.at > last + 1e-9;
    };
    life.looks.erase(std::remove_if(life.looks.begin(), life.looks.end(), is_left_out), life.looks.end());
    return life;
}

Life running(pid_t id) {
    return from(1000, id, 0);
}

std::vector<pid_t> threads_of(const Deadlock &deadlock) {
    std::vector<pid_t> threads;
    for (const Stuck &stuck : deadlock.threads)
        threads.push_back(stuck.thread);
    return threads;
}

using Ids = std::vector<pid_t>;

Deadlock deadlock_of(const std::vector<Life> &lives) {
    return find_deadlock(lives, true);
}

// --- threads that are stuck -----------------------------------------------------------------------------------

TEST(StatHolders, TwoThatWaitForEachOther) {
    const Deadlock found =
        deadlock_of({from(0, 10, 2, 11), from(1, 11, 0, 12), from(0.5, 12, 1, 11), running(13)});
    ASSERT_EQ(threads_of(found), (Ids{11, 12}));
    EXPECT_EQ(found.threads[0].site, 0U);
    EXPECT_EQ(found.threads[0].holder, 12);
    EXPECT_EQ(found.kind, Deadlock::kRing);
    EXPECT_FALSE(found.threads[0].is_join);
    EXPECT_EQ(found.threads[1].site, 1U);
    EXPECT_NEAR(found.seconds, 0.85, 0.1); // the end is left out
}

TEST(StatHolders, AWaiterForOneInTheRingIsNotInIt) {
    EXPECT_EQ(threads_of(deadlock_of({from(0, 9, 0, 11), from(0, 11, 0, 12), from(0, 12, 1, 11)})),
              (Ids{11, 12}));
}

TEST(StatHolders, AJoinerOfAThreadThatWantsItsLock) {
    const Deadlock found = deadlock_of({from(0, 10, 2, 11), from(0, 11, 0, 10), running(12)});
    ASSERT_EQ(threads_of(found), (Ids{11, 10}));
    EXPECT_TRUE(found.threads[1].is_join);
    EXPECT_EQ(found.threads[1].site, SIZE_MAX);
    EXPECT_EQ(found.threads[1].holder, 11);
}

TEST(StatHolders, OnesOwnLock) {
    const Deadlock found = deadlock_of({from(0, 10, 0, 10), running(11)});
    ASSERT_EQ(threads_of(found), (Ids{10}));
    EXPECT_EQ(found.threads[0].holder, 10);
}

TEST(StatHolders, TheLockOfOneThatHasEnded) {
    std::vector<Life> lives = {from(0, 10, 0, 11), from(0, 11, 3), running(12), from(0, 13, 0, 11)};
    EXPECT_EQ(threads_of(deadlock_of(lives)), Ids{}); // it sleeps, and may give it back
    lives[1].gone = 1;
    const Deadlock found = deadlock_of(lives);
    EXPECT_EQ(found.kind, Deadlock::kOwnerEnded);
    ASSERT_EQ(threads_of(found), (Ids{10, 13}));
    EXPECT_EQ(found.threads[0].holder, 11);
    lives[1].gone = 1.7; // too short to tell
    EXPECT_EQ(threads_of(deadlock_of(lives)), Ids{});
    lives[1].gone = 1;
    lives[0] = seen_only(0, 1.2, lives[0]); // it may have run since
    EXPECT_EQ(threads_of(deadlock_of(lives)), (Ids{13}));
}

// When a process ends its threads do, one after another.
TEST(StatHolders, AThreadThatEndsWithTheProcessDidNotEndBefore) {
    std::vector<Life> lives = {from(0, 10, 0, 11), from(0, 11, 3)};
    lives[1].gone = 1.95;
    EXPECT_EQ(threads_of(deadlock_of(lives)), Ids{});
    lives = {from(0, 10, 0, 11), from(0, 11, 1, 10)};
    lives[0].gone = lives[1].gone = 1.95;
    EXPECT_EQ(threads_of(deadlock_of(lives)), (Ids{10, 11}));
}

// Among many threads each is looked at now and then.
TEST(StatHolders, WhatWasNotSeenAtOneTimeIsNoRing) {
    const Life one = from(0, 10, 0, 11), other = from(0, 11, 1, 10);
    EXPECT_EQ(threads_of(deadlock_of({seen_only(1, 1.9, one), seen_only(1.2, 2, other)})), (Ids{10, 11}));
    EXPECT_EQ(threads_of(deadlock_of({seen_only(1.2, 1.2, one), seen_only(1.4, 1.4, other)})), Ids{});
    EXPECT_EQ(threads_of(deadlock_of({seen_only(0, 0.9, one), seen_only(0.9, 2, other)})), Ids{});
    EXPECT_EQ(threads_of(deadlock_of({seen_only(0, 1.2, one), seen_only(0.9, 2, other)})), Ids{});
}

TEST(StatHolders, WaitsWithATimeoutEnd) {
    Life timed = from(0, 11, 1, 10);
    for (Look &look : timed.looks)
        look.is_timed = true;
    EXPECT_EQ(threads_of(deadlock_of({from(0, 10, 0, 11), timed})), Ids{});
    EXPECT_EQ(threads_of(deadlock_of({from(0, 10, 2, 11), from(0, 12, 0), timed})), Ids{});
}

// One ring at the end of many that wait for it: each is gone along once.
TEST(StatHolders, ALongQueueBeforeARing) {
    std::vector<Life> lives;
    constexpr pid_t kMany = 20000;
    for (pid_t id = 1; id <= kMany; id++)
        lives.push_back(seen_only(1, 2, from(0, id, 0, id < kMany ? id + 1 : id - 1)));
    EXPECT_EQ(threads_of(deadlock_of(lives)), (Ids{kMany - 1, kMany}));
}

// Not a thread that runs, waits for work, or has just begun to wait.
TEST(StatHolders, ARunnableThreadIsNotStuck) {
    EXPECT_EQ(threads_of(deadlock_of({})), Ids{});
    EXPECT_EQ(threads_of(deadlock_of({from(0, 10, 0, 11), running(11)})), Ids{});
    EXPECT_EQ(threads_of(deadlock_of({from(0, 10, 0, 11), from(0, 11, 4)})), Ids{});
    EXPECT_EQ(threads_of(deadlock_of({from(0, 10, 0, 11), from(1.8, 11, 1, 10)})), Ids{});
    EXPECT_EQ(threads_of(deadlock_of({from(0, 10, 2, 11), from(0, 11, 3)})), Ids{});
    EXPECT_EQ(threads_of(deadlock_of({from(0, 10, 2, 11), from(0, 11, 2, 10)})), Ids{}); // no lock is in it
    Life awake = from(0, 11, 1, 10); // waits again and again
    for (std::size_t i = 0; i < awake.looks.size(); i++)
        awake.looks[i].run_ns += i;
    EXPECT_EQ(threads_of(deadlock_of({from(0, 10, 0, 11), awake})), Ids{});
}

// Of locks whose owners are not known: all must wait, and no other thread may hold one.
TEST(StatHolders, AllWait) {
    EXPECT_EQ(threads_of(deadlock_of({from(0, 10, 2, 11), from(0, 11, 0), from(0, 12, 1)})), (Ids{11, 12}));
    EXPECT_EQ(threads_of(deadlock_of({from(0, 10, 2, 11), from(0, 11, 0), from(1.4, 12, 1)})), Ids{});
    EXPECT_EQ(threads_of(deadlock_of({from(0, 10, 2, 11), from(0, 11, 0), from(0, 12, 4)})), Ids{});
    EXPECT_EQ(threads_of(deadlock_of({from(0, 10, 2, 11), from(0, 11, 0, kHolderUnknown)})), Ids{});
    const Deadlock found = deadlock_of({from(0, 10, 0, 11), from(0, 11, 1)});
    EXPECT_EQ(found.kind, Deadlock::kAll); // although the owner of one is known
    EXPECT_EQ(threads_of(found), (Ids{10, 11}));
    Life ended = from(0, 12, 3);
    ended.gone = 1.5; // it may have had one of them until then
    EXPECT_EQ(threads_of(deadlock_of({from(0, 10, 2, 11), from(0, 11, 0), ended})), Ids{});
    ended.gone = 0.5;
    EXPECT_EQ(threads_of(deadlock_of({from(0, 10, 2, 11), from(0, 11, 0), ended})), (Ids{11}));
}

// The holder may be a thread that was not sampled, or that is unknown.
TEST(StatHolders, AllThatWereSeenAreNotAll) {
    const std::vector<Life> lives = {from(0, 10, 2, 11), from(0, 11, 0), from(0, 12, 1)};
    EXPECT_EQ(threads_of(find_deadlock(lives, true)), (Ids{11, 12}));
    EXPECT_EQ(threads_of(find_deadlock(lives, false)), Ids{});
    const Life ring = from(0, 12, 1, 11);
    EXPECT_EQ(threads_of(find_deadlock({from(0, 11, 0, 12), ring}, false)), (Ids{11, 12}));
    Life unseen;
    unseen.id = 13;
    EXPECT_EQ(threads_of(find_deadlock({lives[0], lives[1], lives[2], unseen}, true)), Ids{});
    Life late = seen_only(1.95, 2, running(13)); // it was known, and had its first look in the end
    late.begin = 1;
    EXPECT_EQ(threads_of(find_deadlock({lives[0], lives[1], lives[2], late}, true)), Ids{});
    late.begin = 1.95; // when no other thread was at work
    EXPECT_EQ(threads_of(find_deadlock({lives[0], lives[1], lives[2], late}, true)), (Ids{11, 12}));
    unseen.gone = 0.5;
    EXPECT_EQ(threads_of(find_deadlock({lives[0], lives[1], lives[2], unseen}, true)), (Ids{11, 12}));
}

// --- what holders do ------------------------------------------------------------------------------------------

// A waiter, and what the lock holder did when it was sampled.
Life waiting(pid_t id, std::size_t site, pid_t holder, ProcSample::Holding holding) {
    Life life = from(0, id, site, holder);
    for (Look &look : life.looks)
        look.holding = holding;
    return life;
}

using Holding = ProcSample::Holding;

TEST(StatHolders, AHolderThatSleeps) {
    std::vector<LockUse> locks(2);
    add_holders({waiting(10, 0, 11, Holding::kAsleep), from(0, 11, 3), waiting(12, 1, 13, Holding::kAwake),
                 running(13)},
                places(), locks);
    EXPECT_EQ(locks[0].holder.looks, 21U);
    EXPECT_EQ(locks[0].holder.asleep, 1);
    EXPECT_EQ(locks[0].holder.doing, Doing::kSleep);
    ASSERT_EQ(locks[0].holder.stack.size(), 2U);
    EXPECT_EQ(locks[0].holder.stack[1].function, "ask");
    EXPECT_EQ(locks[1].holder.looks, 21U);
    EXPECT_EQ(locks[1].holder.asleep, 0);
    EXPECT_TRUE(locks[1].holder.stack.empty());
}

// One that was not looked at while it had the lock, that waits for a lock itself, and one's own lock.
TEST(StatHolders, WhatAHolderDidIsNotAlwaysKnown) {
    std::vector<LockUse> locks(2);
    add_holders({waiting(10, 0, 11, Holding::kUnknown), from(0, 11, 3)}, places(), locks);
    EXPECT_EQ(locks[0].holder.looks, 0U);
    add_holders({waiting(10, 0, 11, Holding::kAsleep), waiting(11, 1, 11, Holding::kAsleep)}, places(),
                locks);
    EXPECT_EQ(locks[0].holder.looks, 0U);
    EXPECT_EQ(locks[1].holder.looks, 0U);
    add_holders({waiting(10, 0, 11, Holding::kAsleep)}, places(), locks);
    EXPECT_EQ(locks[0].holder.looks, 0U);
}

// --- what is said of it ---------------------------------------------------------------------------------------

Report stuck_report() {
    Report report;
    report.machine.processors = 2;
    report.rate = 100;
    Point point;
    point.runs = 1;
    point.wall = {2, 2, 2, 0, 1};
    point.user = 0.01;
    point.most_threads = 3;
    report.points.push_back(point);
    report.sampled_wall = 2;
    report.doing[static_cast<int>(Doing::kLockWait)] = 4;
    report.locks.resize(2);
    report.locks[0].lock.symbol = "first_lock";
    report.locks[1].lock.symbol = "locks";
    report.locks[1].lock.offset = 0x28;
    for (const std::size_t which : {0U, 1U}) {
        report.waits.push_back(places()[which]);
        report.waits.back().samples = 100;
        report.waits.back().share = 0.5;
        report.waits.back().seconds = 1;
    }
    return report;
}

TEST(StatHolders, ADeadlockIsAllThatIsSaid) {
    Report report = stuck_report();
    report.deadlock = {Deadlock::kRing, {{11, false, 0, 12}, {12, false, 1, 11}}, 1.5};
    conclude(report, "");
    ASSERT_EQ(report.findings.size(), 1U);
    const Finding &found = report.findings.front();
    EXPECT_EQ(found.rule, "deadlock");
    EXPECT_EQ(found.cause, "Deadlock in pay(): 2 threads wait for each other");
    EXPECT_EQ(found.confidence, Confidence::kHigh);
    EXPECT_EQ(found.function, "pay");
    EXPECT_EQ(found.line, 21);
    ASSERT_EQ(found.evidence.size(), 3U);
    EXPECT_EQ(found.evidence[0],
              "thread 11 waits for first_lock in pay() (prog.c:21), which thread 12 holds");
    EXPECT_EQ(found.evidence[1],
              "thread 12 waits for locks+0x28 in earn() (prog.c:31), which thread 11 holds");
    EXPECT_EQ(found.evidence[2], "none of them ran for 1.50 s, up to the end");
    EXPECT_EQ(report.verdict, "The program is stuck: 2 threads wait for something that will never happen.");
    const std::string text = text_of(report);
    EXPECT_NE(text.find("         thread 11 waits for first_lock in pay() (prog.c:21), which thread 12\n"
                        "         holds\n"),
              std::string::npos)
        << text;
}

// However the runs compare, and however the program was ended.
TEST(StatHolders, ADeadlockIsSaidOfASweepAsWell) {
    Report report = stuck_report();
    report.points.push_back(report.points.front());
    report.points[0].threads = 1;
    report.points[1].threads = 2;
    report.points[1].wall = {1, 1, 1, 0, 1};
    report.deadlock = {Deadlock::kRing, {{11, false, 0, 11}}, 1.5};
    conclude(report, "the program was ended by SIGKILL");
    ASSERT_EQ(report.findings.size(), 1U);
    EXPECT_EQ(report.findings.front().rule, "deadlock");
    EXPECT_EQ(report.findings.front().cause,
              "Deadlock in pay(): the thread already holds the lock that it waits for");
    EXPECT_EQ(report.verdict, "The program is stuck: 1 thread waits for something that will never happen.");
}

// Whatever its threads waited for before.
TEST(StatHolders, OfAProgramThatDiedOnlyThatIsSaid) {
    Report report = stuck_report();
    conclude(report, "");
    ASSERT_FALSE(report.findings.empty());
    EXPECT_NE(report.findings.front().rule, "inconclusive");
    report.has_failed = true;
    conclude(report, "the program was ended by SIGSEGV");
    ASSERT_EQ(report.findings.size(), 1U);
    EXPECT_EQ(report.findings.front().rule, "inconclusive");
    EXPECT_EQ(report.findings.front().cause, "The program was ended by SIGSEGV");
}

TEST(StatHolders, EachKindOfDeadlockHasItsAdvice) {
    const auto told = [](const Deadlock &deadlock) {
        Report report = stuck_report();
        report.deadlock = deadlock;
        conclude(report, "");
        return report.findings.front();
    };
    const Finding ended = told({Deadlock::kOwnerEnded, {{11, false, 0, 12}}, 1.5});
    EXPECT_NE(ended.cause.find("a thread ended while it held the lock"), std::string::npos) << ended.cause;
    EXPECT_NE(ended.fix.find("every way out"), std::string::npos) << ended.fix;
    EXPECT_NE(ended.evidence.front().find("which thread 12 held when it ended"), std::string::npos);
    const Finding joins = told({Deadlock::kRing, {{11, false, 0, 10}, {10, true, SIZE_MAX, 11}}, 1.5});
    EXPECT_EQ(joins.evidence[1], "thread 10 waits for thread 11 to end");
    const Finding dropped =
        told({Deadlock::kRing, {{11, false, SIZE_MAX, 12}, {12, false, SIZE_MAX, 11}}, 1.5});
    EXPECT_EQ(dropped.cause, "Deadlock: 2 threads wait for each other"); // at one of too many places
    EXPECT_EQ(dropped.evidence[0], "thread 11 waits for a lock, which thread 12 holds");
    const Finding all = told({Deadlock::kAll, {{11, false, 0, 0}, {12, false, 1, 0}}, 1.5});
    EXPECT_NE(all.cause.find("none is left"), std::string::npos) << all.cause;
    EXPECT_EQ(all.confidence, Confidence::kMedium);
    EXPECT_EQ(all.evidence.front(), "thread 11 waits for first_lock in pay() (prog.c:21)");
}

TEST(StatHolders, ALockThatIsHeldAsleep) {
    Report report = stuck_report();
    report.points[0].user = 1.2;
    report.locks[0].holder = {100, 0.9, Doing::kSleep, places()[3].stack};
    report.locks[1].holder = {100, 0.1, Doing::kSleep, places()[3].stack}; // mostly not
    conclude(report, "");
    ASSERT_EQ(report.findings.size(), 2U);
    const auto found = std::find_if(report.findings.begin(), report.findings.end(),
                                    [](const Finding &one) { return one.rule == "held-asleep"; });
    ASSERT_NE(found, report.findings.end());
    EXPECT_EQ(found->cause, "A lock is held while its holder sleeps: first_lock in ask()");
    EXPECT_EQ(found->function, "ask");
    EXPECT_EQ(found->line, 51);
    EXPECT_EQ(std::count(found->evidence.begin(), found->evidence.end(),
                         "threads wait for it in pay() (prog.c:21)"),
              1);
    EXPECT_EQ(std::count(found->evidence.begin(), found->evidence.end(),
                         "its holder itself slept in 90 % of 100 looks at its waiters"),
              1);
    report.locks[0].holder.looks = 19; // too few to tell
    conclude(report, "");
    for (const Finding &one : report.findings)
        EXPECT_NE(one.rule, "held-asleep");
}

// A little is enough where little runs: on a busy machine a holder that was woken waits for a CPU.
TEST(StatHolders, WhereLittleRunsALittleSleepIsEnough) {
    for (const double cpu : {0.5, 1.2}) {
        Report report = stuck_report();
        report.points[0].user = cpu;
        report.locks[0].holder = {100, 0.3, Doing::kInputOutput, places()[3].stack};
        conclude(report, "");
        const bool found = std::any_of(report.findings.begin(), report.findings.end(),
                                       [](const Finding &one) { return one.rule == "held-asleep"; });
        EXPECT_EQ(found, cpu < 1) << cpu;
    }
}

// Whichever thread holds it: no thread fights for a lock without a CPU.
TEST(StatHolders, WhereNothingRunsNoLockIsHot) {
    Report report = stuck_report();
    report.waits[0].share = 0.7;
    report.waits[1].share = 0.3;
    conclude(report, "");
    ASSERT_EQ(report.findings.size(), 2U);
    EXPECT_EQ(report.findings[0].rule, "held-asleep");
    EXPECT_EQ(report.findings[0].cause, "A lock is held while hardly anything runs: first_lock in pay()");
    EXPECT_EQ(report.findings[0].confidence, Confidence::kMedium);
    EXPECT_EQ(report.findings[1].rule, "held-asleep");
}

TEST(StatHolders, WhereElseThreadsWaitIsTold) {
    Report report = stuck_report();
    report.waits.clear();
    report.locks.clear();
    report.others = {places()[4], places()[2]};
    report.others[0].seconds = 3;
    report.others[1].seconds = 1;
    conclude(report, "");
    const std::string text = text_of(report);
    EXPECT_NE(text.find("   75%  idle wait: epoll_wait <- serve (prog.c:61)\n"), std::string::npos) << text;
    EXPECT_NE(text.find("   25%  join wait: pthread_join <- main (prog.c:41)\n"), std::string::npos) << text;
    report.points[0].user = 1.2; // it runs
    EXPECT_EQ(text_of(report).find("WHERE"), std::string::npos);
}

TEST(StatHolders, WhatAHolderWaitsForIsNamed) {
    const struct {
        Doing doing;
        const char *words;
    } known[] = {{Doing::kInputOutput, "waits for input or output"},
                 {Doing::kIdleWait, "waits for something else"},
                 {Doing::kJoinWait, "waits for a thread to end"}};
    for (const auto &one : known) {
        Report report = stuck_report();
        report.locks[0].holder = {100, 0.9, one.doing, places()[3].stack};
        conclude(report, "");
        ASSERT_FALSE(report.findings.empty());
        EXPECT_NE(report.findings.front().cause.find(one.words), std::string::npos)
            << report.findings.front().cause;
    }
}

// --- priorities ------------------------------------------------------------------------------------------------

constexpr Scheduling kNormal = {Scheduling::kOther, 0, 0}, kIdlePolicy = {Scheduling::kIdle, 0, 0};

// Thread 10 waits for lock 0, whose holder, 11, runs for `part` of the time.
Holder holder_that_runs(double part, const Scheduling &its, const Scheduling &waiters) {
    Life waiter = from(0, 10, 0, 11), holder = running(11);
    for (Look &look : waiter.looks) {
        look.holding = ProcSample::Holding::kAwake;
        look.holders = its;
        look.scheduling = waiters;
    }
    for (std::size_t i = 0; i < holder.looks.size(); i++)
        holder.looks[i].run_ns = static_cast<std::uint64_t>(1e8 * part * static_cast<double>(i));
    std::vector<LockUse> locks(1);
    add_holders({waiter, holder}, places(), locks);
    return locks.front().holder;
}

TEST(StatHolders, AHolderWithoutACpu) {
    const Holder starved = holder_that_runs(0.02, kIdlePolicy, kNormal);
    EXPECT_EQ(starved.looks, 21U);
    EXPECT_NEAR(starved.without_cpu, 0.98, 0.005);
    EXPECT_EQ(starved.outranked, 1);
    EXPECT_EQ(starved.thread, 11);
    EXPECT_EQ(starved.scheduling.policy, Scheduling::kIdle);
    EXPECT_EQ(starved.waiters.policy, Scheduling::kOther);
    EXPECT_NEAR(holder_that_runs(1, kIdlePolicy, kNormal).without_cpu, 0, 0.005);
    EXPECT_EQ(holder_that_runs(0.02, kNormal, kNormal).outranked, 0);
    EXPECT_EQ(holder_that_runs(0.02, kNormal, kNormal).thread, 0);
    EXPECT_EQ(holder_that_runs(0.02, Scheduling(), kNormal).outranked, 0) << "not known";
}

TEST(StatHolders, WhoRunsFirst) {
    const auto of = [](Scheduling::Policy policy, int nice, unsigned real_time) {
        return Scheduling{policy, static_cast<std::int8_t>(nice), static_cast<std::uint8_t>(real_time)};
    };
    const Scheduling low_fifo = of(Scheduling::kFifo, 0, 10), high_rr = of(Scheduling::kRoundRobin, 0, 20);
    EXPECT_TRUE(is_outranked(kIdlePolicy, kNormal));
    EXPECT_FALSE(is_outranked(kNormal, kIdlePolicy));
    EXPECT_FALSE(is_outranked(kIdlePolicy, kIdlePolicy));
    EXPECT_TRUE(is_outranked(kNormal, low_fifo));
    EXPECT_TRUE(is_outranked(low_fifo, high_rr));
    EXPECT_FALSE(is_outranked(high_rr, low_fifo));
    EXPECT_TRUE(is_outranked(of(Scheduling::kOther, 10, 0), kNormal));
    EXPECT_FALSE(is_outranked(of(Scheduling::kOther, 2, 0), kNormal)) << "a little nicer";
    EXPECT_FALSE(is_outranked(of(Scheduling::kBatch, 0, 0), kNormal));
    EXPECT_TRUE(is_outranked(high_rr, of(Scheduling::kDeadline, 0, 0)));
    EXPECT_FALSE(is_outranked(Scheduling(), kNormal));
    EXPECT_FALSE(is_outranked(kIdlePolicy, Scheduling()));
    EXPECT_EQ(name_of(kIdlePolicy), "SCHED_IDLE");
    EXPECT_EQ(name_of(low_fifo), "SCHED_FIFO 10");
    EXPECT_EQ(name_of(of(Scheduling::kOther, 5, 0)), "nice 5");
    EXPECT_EQ(policy_of(high_rr), "rr");
    EXPECT_EQ(policy_of(Scheduling()), "");
}

TEST(StatHolders, TheKernelTellsThePolicyOfAThread) {
    Scheduling own;
    std::thread([&own] {
        const sched_param none{};
        EXPECT_EQ(pthread_setschedparam(pthread_self(), SCHED_IDLE, &none), 0);
        own = scheduling_of(gettid());
    }).join();
    EXPECT_EQ(own.policy, Scheduling::kIdle);
    EXPECT_FALSE(scheduling_of(INT32_MAX).is_known()) << "there is no such thread";
}

} // namespace
