// SPDX-License-Identifier: Apache-2.0
//
// The rules of work that is handed over in parts too small, of threads that poll, and of parallelism within parallelism
// (cli/stat/rules/grain.cpp, polling.cpp and nested.cpp), on reports that are made up: each with a healthy twin.
#include <gtest/gtest.h>

#include <algorithm>

#include "stat/rules.hpp"
#include "stat/timeline_rows.hpp"
#include "stat_case.hpp"

namespace {

bool says(const Report &report, const std::string &rule) {
    return (" " + rules_of(report) + " ").find(" " + rule + " ") != std::string::npos;
}

// --- grain --------------------------------------------------------------------------------------------

Case at_barrier(double share, double voluntary) {
    Case made;
    made.point(1, 1, 1, 0, 3).point(2, 1.3, 1.4, 0.4, voluntary).point(4, 1.6, 1.5, 0.5, voluntary);
    made.doing(Doing::kRunning, 2).doing(Doing::kIdleWait, 3);
    made.burns({own("step", 12), own("main", 40)}, 1 - share, 1);
    if (share > 0)
        made.burns({library("pthread_barrier_wait"), own("step", 14), own("main", 40)}, share, 0);
    return made;
}

TEST(StatRules, ABarrierTooOften) {
    Case made = at_barrier(0.43, 50000);
    ASSERT_EQ(rules_of(made.concluded()), "grain");
    const Finding &found = made.report.findings.front();
    EXPECT_EQ(found.cause, "Threads meet at a barrier too often in step()");
    EXPECT_EQ(found.line, 14);
    EXPECT_EQ(found.confidence, Confidence::kHigh);
    EXPECT_EQ(found.evidence[0], "43 % of CPU time in the barrier's calls, 0 % with the fewest threads");
    EXPECT_EQ(found.evidence[1],
              "for each barrier that a thread slept at, it worked for 22.8 us and the barrier took "
              "17.2 us of CPU time");
}

// Steps of milliseconds; and few that are unequal, at which threads spin for long.
TEST(StatRules, ABarrierNowAndThen) {
    EXPECT_FALSE(says(at_barrier(0.02, 800).concluded(), "grain"));
    EXPECT_FALSE(says(at_barrier(0.4, 400).concluded(), "grain"));
    Case always = at_barrier(0.4, 50000); // one thread alone takes as much there
    always.report.burns_one = always.report.burns;
    EXPECT_FALSE(says(always.concluded(), "grain"));
    Case crowd = at_barrier(0.4, 50000); // two threads on two cores meet as often, for hardly any CPU time
    crowd.report.points[1].user = 1.02;
    crowd.report.points[1].system = 0;
    EXPECT_FALSE(says(crowd.concluded(), "grain"));
}

Case queue(double handing, double waking) {
    Case made;
    made.point(1, 1, 1.1, 0.1, 9000).point(2, 1.2, 1.5, 0.5, 20000).point(4, 1.3, 1.6, 0.7, 20000);
    made.doing(Doing::kRunning, 2).doing(Doing::kIdleWait, 3).doing(Doing::kLockWait, 0.8);
    made.lock(LockKind::kHeap, "heap", 1.5);
    made.waits({library("pthread_mutex_lock"), own("take", 20)}, 80);
    made.burns({library("pthread_mutex_lock"), own("take", 20)}, handing - waking, handing - waking);
    made.burns({library("pthread_cond_wait"), own("take", 22)}, waking, waking);
    made.burns({own("task", 5), own("take", 25)}, 1 - handing, 1 - handing);
    return made;
}

TEST(StatRules, TasksThatAreTooSmall) {
    Case made = queue(0.6, 0.1);
    ASSERT_EQ(rules_of(made.concluded()), "grain") << "not its lock as well";
    const Finding &found = made.report.findings.front();
    EXPECT_EQ(found.cause, "Tasks are too small for what handing them over costs in take()");
    EXPECT_EQ(found.line, 22) << "where threads wait for work";
    EXPECT_EQ(found.evidence[0],
              "60 % of CPU time goes to handing tasks over, 40 % to all else: 1.5 s for each second of work");
}

// The same queue, whose waiters are all woken for each task.
TEST(StatRules, TasksForWhichAllAreWoken) {
    Case made = queue(0.6, 0.1);
    const std::string batches = made.concluded().findings.front().fix;
    made.burns({library("pthread_cond_broadcast"), own("put", 30)}, 0.1, 0.1);
    made.report.burns[0].share -= 0.1;
    ASSERT_EQ(rules_of(made.concluded()), "grain");
    const Finding &found = made.report.findings.front();
    EXPECT_EQ(found.fix,
              "If only one of the waiters can continue, wake one (pthread_cond_signal, notify_one); or "
              "hand over batches of tasks.");
    EXPECT_EQ(found.evidence.back(), "all that wait are woken in put() (prog.c:30)");
    EXPECT_EQ(batches, "Hand over more work at a time: batches of tasks, or larger parts of the data.");
}

// A barrier that is made of a mutex and a condition: to wake one of its waiters alone would leave the others asleep for ever.
TEST(StatRules, ABarrierMadeByHandWakesAll) {
    Case made = queue(0.6, 0.1);
    made.burns({library("pthread_cond_broadcast"), own("take", 24)}, 0.1, 0.1);
    made.report.burns[0].share -= 0.1;
    ASSERT_EQ(rules_of(made.concluded()), "grain");
    EXPECT_EQ(made.report.findings.front().fix,
              "Hand over more work at a time: batches of tasks, or larger parts of the data.");
}

TEST(StatRules, TasksThatAreLargeEnough) {
    EXPECT_FALSE(says(queue(0.1, 0.05).concluded(), "grain"));
    EXPECT_FALSE(says(queue(0.6, 0).concluded(), "grain")) << "a lock, and no queue";
    EXPECT_TRUE(says(queue(0.6, 0).concluded(), "hot-mutex"));
    Case idle = queue(0.6, 0.1); // hardly anything to do
    idle.doing(Doing::kRunning, 0.1);
    for (Point &point : idle.report.points)
        point.user = point.system = 0.06 * point.wall.median;
    EXPECT_FALSE(says(idle.concluded(), "grain"));
}

// One worker pays for each hand-over, as its source waits for it; more of them help, and the price remains.
TEST(StatRules, TasksThatAreTooSmallWhereThreadsHelp) {
    const auto helped = [](double handing) {
        Case made = queue(handing, handing / 6);
        made.report.points[0].wall = {2.7, 2.68, 2.72, 0.75, 3};
        return made;
    };
    Case dear = helped(0.6);
    EXPECT_EQ(rules_of(dear.concluded()), "grain");
    EXPECT_EQ(dear.report.outcome, Outcome::kScales);
    EXPECT_EQ(dear.report.findings.front().confidence, Confidence::kMedium);
    EXPECT_EQ(rules_of(helped(0.2).concluded()), "scales");
    Case by_threads = helped(
        0.6); // one thread hands over for little: what more of them gain says that it is worth its price
    by_threads.report.burns_one.back().share = 0.9;
    for (std::size_t i = 0; i + 1 < by_threads.report.burns_one.size(); i++)
        by_threads.report.burns_one[i].share = 0.05;
    EXPECT_EQ(rules_of(by_threads.concluded()), "scales");
}

// --- polling ------------------------------------------------------------------------------------------

// `naps` of each thread, which works for a part of the time.
Case sleepers(unsigned threads, double cpu, double asleep, std::uint64_t naps) {
    Case made;
    made.point(1, 3.2, 2, 0.1, 3000).point(2, 3.0, 2, 0.1, 4000).point(4, 2.9, 2, 0.1, 6000);
    made.doing(Doing::kRunning, 2).doing(Doing::kSleep, asleep * threads);
    for (unsigned i = 0; i < threads; i++) {
        made.thread(0, 2.9 - asleep);
        Thread &thread = made.report.threads.back();
        thread.end = 2.9;
        thread.spans.push_back({2.9 - asleep, 2.9, Doing::kSleep, SIZE_MAX, 0});
        thread.cpu = cpu;
        thread.run_delay = std::max(0.0, 2.9 - cpu - asleep);
        thread.voluntary = naps;
    }
    Site site;
    site.stack = {library("clock_nanosleep"), library("usleep"), own("worker", 30)};
    site.doing = Doing::kSleep;
    site.samples = 400;
    site.share = 1;
    site.seconds = asleep * threads;
    made.report.others.push_back(site);
    return made;
}

// A quarter of the time each, and for the rest of it they wait for the one that sleeps: with a lock held, or with the only task.
TEST(StatRules, ThreadsThatSleepByTurns) {
    const auto made = [](Doing rest) {
        Case one = sleepers(4, 0.1, 0.7, 700);
        for (Thread &thread : one.report.threads) {
            thread.spans.insert(thread.spans.begin(), {0.1, 2.2, rest, SIZE_MAX, 0});
            thread.run_delay = rest == Doing::kRunnable ? 2.1 : 0;
        }
        return says(one.concluded(), "polling");
    };
    EXPECT_FALSE(made(Doing::kLockWait));
    EXPECT_FALSE(made(Doing::kIdleWait)) << "for a semaphore";
    EXPECT_TRUE(made(Doing::kRunnable)) << "for a CPU, and for none of them";
}

// Of two threads little more than one is asleep on average however they sleep: only whether both do so at once tells.
TEST(StatRules, TwoThreadsThatSleepByTurns) {
    const auto polls = [](bool by_turns) {
        Case made = sleepers(2, 0.4, 1.3, 1300);
        for (Thread &thread : made.report.threads) {
            thread.run_delay = 0;
            thread.spans.clear();
            const bool is_first = by_turns && &thread == &made.report.threads.front();
            for (int i = 0; i < 29; i++)
                thread.spans.push_back({i * 0.1, i * 0.1 + 0.1,
                                        (i % 2 == 0) != is_first ? Doing::kSleep : Doing::kLockWait, SIZE_MAX,
                                        0});
        }
        return says(made.concluded(), "polling");
    };
    EXPECT_FALSE(polls(true));
    EXPECT_TRUE(polls(false)) << "both at once";
}

// Two sleeps of half a second beside 20,000 waits for a lock are no naps of 50 us.
TEST(StatRules, LongSleepsAreNoNaps) {
    const auto polls = [](double slept_long) {
        Case made = sleepers(4, 0.5, 1, 20000);
        for (Thread &thread : made.report.threads) {
            thread.run_delay = 0;
            thread.spans.insert(thread.spans.begin(), {0.5, 1.9, Doing::kLockWait, SIZE_MAX, 0});
            thread.slept_long = slept_long;
        }
        return says(made.concluded(), "polling");
    };
    EXPECT_FALSE(polls(0.96));
    EXPECT_TRUE(polls(0));
    using thrum::stat::long_sleeps;
    EXPECT_DOUBLE_EQ(
        long_sleeps({{0, 7, false}, {1, 9, true}, {1.25, 9, true}, {1.5, 9, true}, {2, 10, false}}), 0.5);
    EXPECT_EQ(long_sleeps({{1, 9, true}, {1.01, 10, true}, {1.02, 11, true}, {1.03, 12, true}}), 0)
        << "it ran between";
    EXPECT_EQ(long_sleeps({{1, 9, true}, {1.01, 9, true}}), 0) << "a nap";
}

TEST(StatRules, WorkersThatPoll) {
    Case made = sleepers(4, 0.5, 2.1, 2000);
    ASSERT_TRUE(says(made.concluded(), "polling")) << rules_of(made.report);
    const Finding &found = made.report.findings.front();
    EXPECT_EQ(found.cause, "Threads sleep and look again for work in worker(), while CPUs are free");
    EXPECT_EQ(found.line, 30);
    EXPECT_EQ(found.confidence, Confidence::kMedium);
    EXPECT_EQ(found.evidence[0],
              "4 threads that did the work slept for 72 % of their time, 1.05 ms each time");
    EXPECT_EQ(found.evidence[1], "0.72 CPUs used, of 2 that they could have used");
}

// After naps as short as the time for which they then wait for a CPU: in most looks at them they wait for that.
TEST(StatRules, WorkersThatTakeShortNaps) {
    Case made = sleepers(4, 0.5, 1.3, 12000);
    for (Thread &thread : made.report.threads)
        thread.spans = {{0, 0.6, Doing::kRunning, SIZE_MAX, 0},
                        {0.6, 2.8, Doing::kRunnable, SIZE_MAX, 0},
                        {2.8, 2.9, Doing::kSleep, SIZE_MAX, 0}};
    ASSERT_TRUE(says(made.concluded(), "polling")) << rules_of(made.report);
    EXPECT_EQ(made.report.findings.front().evidence[0],
              "4 threads that did the work slept for 45 % of their time, 108 us each time");
    for (Thread &thread : made.report.threads)
        thread.run_delay += 1; // they waited for a CPU all the time
    EXPECT_FALSE(says(made.concluded(), "polling"));
}

TEST(StatRules, ThreadsThatSleepForTheirWorksSake) {
    EXPECT_FALSE(says(sleepers(1, 2, 0.9, 900).concluded(), "polling")) << "a producer with a pace";
    EXPECT_FALSE(says(sleepers(4, 0.5, 2.1, 20).concluded(), "polling")) << "for 100 ms";
    EXPECT_FALSE(says(sleepers(4, 0.5, 0.3, 300).concluded(), "polling")) << "now and then";
    Case few = sleepers(4, 0.5, 2.1, 2000); // looks that saw one
    few.report.others.front().samples = 3;
    EXPECT_FALSE(says(few.concluded(), "polling"));
    Case paced = sleepers(4, 0.5, 2.1, 2000); // each does as much as it can, and more of them more
    paced.report.points[0].wall.median = paced.report.points[0].wall.high = 11.5;
    paced.report.points[1].wall.median = paced.report.points[1].wall.high = 5.8;
    EXPECT_FALSE(says(paced.concluded(), "polling"));
    Case once = sleepers(4, 0.5, 2.1, 2000); // one run does not tell
    once.report.points.erase(once.report.points.begin(), once.report.points.end() - 1);
    EXPECT_FALSE(says(once.concluded(), "polling"));
    Case full = sleepers(4, 0.5, 2.1, 2000);
    full.report.points.back().user = 5.6;
    EXPECT_FALSE(says(full.concluded(), "polling")) << "no CPU was free";
}

// A lock that is written by hand, and backs off by sleeping.
TEST(StatRules, WaitersThatPollForALock) {
    const auto cause_in = [](const char *function) {
        Case made = sleepers(4, 0.5, 2.1, 2000);
        made.report.others.front().stack.back() = own(function, 30);
        made.concluded();
        return made.report.findings.front().cause;
    };
    EXPECT_EQ(cause_in("Backoff::lock"),
              "Threads sleep and try again to take a lock in Backoff::lock(), while CPUs are free");
    EXPECT_EQ(cause_in("spin_acquire").find("for work"), std::string::npos);
    for (const char *function : {"next_block", "wait_for_clock", "BlockingQueue::poll"})
        EXPECT_NE(cause_in(function).find("look again for work"), std::string::npos) << function;
}

// Times that differ much from run to run, since it depends on which worker looks when.
TEST(StatRules, WorkersThatPollForTimesThatDiffer) {
    Case made = sleepers(4, 0.5, 2.1, 2000);
    made.report.points.back().speedup = {1.1, 0.75, 1.35, 0.75, 3};
    ASSERT_TRUE(says(made.concluded(), "polling")) << rules_of(made.report);
    EXPECT_EQ(made.report.outcome, Outcome::kNoDifference);
    made.report.points.back().speedup = {1.1, 0.75, 1.6, 0.75,
                                         3}; // perhaps they help as much as the cores allow
    EXPECT_FALSE(says(made.concluded(), "polling"));
}

// --- nested -------------------------------------------------------------------------------------------

Case pool_of_processes(unsigned processes, unsigned threads) {
    Case made;
    made.point(1, 1, 1.8, 0.1).point(2, 1.0, 1.9, 0.1).point(4, 1.2, 2.0, 0.3);
    made.report.own_cpu = 0.1;
    made.report.children_cpu = 2;
    made.report.processes.push_back({100, 0, "python3", 0.1, 0, 1.2, 4});
    for (unsigned i = 0; i < processes; i++) {
        const int id = static_cast<int>(101 + i);
        made.report.processes.push_back({id, 100, "python3", 0.5, 0.1, 1.1, threads});
        Case child;
        for (unsigned thread = 0; thread < threads; thread++)
            child.slowed(0.1, 1.1, 0.25);
        child.burns({library("dgemm_kernel", "libopenblasp-r0.3.21.so")}, 0.9, 0);
        child.report.process = id;
        child.report.command = {"python3"};
        child.report.own_cpu = 0.5;
        made.report.children.push_back(child.report);
    }
    return made;
}

TEST(StatRules, ProcessesWithThreadsOfALibrary) {
    Case made = pool_of_processes(4, 2);
    ASSERT_EQ(rules_of(made.concluded()), "nested");
    const Finding &found = made.report.findings.front();
    EXPECT_EQ(found.cause, "4 processes, each with 2 threads of OpenBLAS, on 2 cores");
    EXPECT_NE(found.fix.find("OPENBLAS_NUM_THREADS=1"), std::string::npos) << found.fix;
}

TEST(StatRules, ProcessesWithAThreadEach) {
    EXPECT_EQ(rules_of(pool_of_processes(2, 1).concluded()).find("nested"), std::string::npos);
    EXPECT_EQ(rules_of(pool_of_processes(1, 2).concluded()).find("nested"), std::string::npos);
    Case idle = pool_of_processes(4, 2); // the second thread of each has nothing to do
    for (Report &child : idle.report.children)
        child.threads.back().cpu = 0.001;
    EXPECT_EQ(rules_of(idle.concluded()).find("nested"), std::string::npos);
    Case in_turn = pool_of_processes(4, 2); // one after the other
    for (std::size_t i = 1; i < in_turn.report.processes.size(); i++) {
        in_turn.report.processes[i].begin = 0.1 + 0.25 * static_cast<double>(i - 1);
        in_turn.report.processes[i].end = 0.1 + 0.25 * static_cast<double>(i);
    }
    EXPECT_EQ(rules_of(in_turn.concluded()).find("nested"), std::string::npos);
}

// Another program takes half of a CPU from each of two processes, whose waiting for it is not known.
TEST(StatRules, ProcessesBesideAHog) {
    const auto outcome = [](double others, double children_cpu) {
        Case made;
        made.point(1, 2.0, 1.9, 0.1).point(2, 1.9, 1.9, 0.1).others(others);
        made.report.own_cpu = 2 - children_cpu;
        made.report.children_cpu = children_cpu;
        return made.concluded().outcome;
    };
    EXPECT_EQ(outcome(0.95, 1.9), Outcome::kInconclusive);
    EXPECT_EQ(outcome(0.5, 1.9), Outcome::kNoFaster) << "half a CPU was idle";
    EXPECT_EQ(outcome(0.95, 0.1), Outcome::kNoFaster) << "its own threads did not wait for a CPU";
}

TEST(StatRules, ThreadsWithThreadsOfALibrary) {
    const auto made = [](unsigned working) {
        Case one;
        one.point(1, 1, 1.8, 0.1).point(2, 1.1, 2, 0.1).point(4, 1.2, 2.1, 0.2);
        one.doing(Doing::kRunning, 2.3).doing(Doing::kRunnable, 7);
        for (unsigned i = 0; i < working; i++)
            one.slowed(0, 1.2, 0.2);
        one.burns({library("dgemm_kernel", "libopenblas.so.0"), own("task", 8)}, 0.9, 0.9);
        return one;
    };
    Case nest = made(8);
    ASSERT_EQ(rules_of(nest.concluded()), "nested");
    EXPECT_EQ(nest.report.findings.front().cause, "4 threads, each with 2 threads of OpenBLAS, on 2 cores");
    EXPECT_FALSE(says(made(4).concluded(), "nested")) << "they call it, and it has no threads";
}

// A team of OpenMP's runs the program's own code: only the thread that began the region has the library on its stack.
TEST(StatRules, ThreadsWithTeamsOfOpenmp) {
    const auto made = [](unsigned working, const char *outermost, double wanting = 15) {
        Case one;
        one.point(1, 1.3, 1.9, 0.1).point(2, 1.1, 2, 0.1).point(4, 1.2, 2.1, 0.2);
        one.doing(Doing::kRunning, 2.3).doing(Doing::kRunnable, wanting * 1.2 - 2.3);
        for (unsigned i = 0; i < working; i++)
            one.slowed(0, 1.2, 2.3 / working);
        one.burns({own("task", 8)}, 0.75, 0.75);
        one.burns({own("task", 8), library("GOMP_parallel", "libgomp.so.1"), own("task", 7), own(outermost)},
                  0.25, 0.25);
        return one;
    };
    Case nest = made(16, "serve");
    ASSERT_EQ(rules_of(nest.concluded()), "nested");
    EXPECT_EQ(nest.report.findings.front().cause, "4 threads, each with 4 threads of OpenMP, on 2 cores");
    EXPECT_EQ(
        nest.report.findings.front().evidence.front(),
        "25 % of the CPU time is that of threads which began a parallel region; 15.0 threads ran or wanted a "
        "CPU, on average");
    EXPECT_EQ(nest.report.findings.front().confidence, Confidence::kMedium) << "by a part of the stacks";
    EXPECT_FALSE(says(made(4, "serve").concluded(), "nested")) << "a thread each";
    EXPECT_FALSE(says(made(8, "main").concluded(), "nested")) << "one team";
    EXPECT_FALSE(says(made(16, "").concluded(), "nested")) << "of the first thread, perhaps";
    Case cut = made(16, "serve");
    for (Site &site : cut.report.burns)
        if (site.stack.size() > 1)
            site.stack.back() = library("GOMP_parallel", "libgomp.so.1");
    EXPECT_FALSE(says(cut.concluded(), "nested")) << "likewise";
}

// Four threads, and when these have ended a team of four: eight did work in all, and four at once.
TEST(StatRules, ATeamThatFollowsThreads) {
    const auto made = [](double wanting) {
        Case one;
        one.point(1, 1.3, 1.9, 0.1).point(2, 1.1, 2, 0.1).point(4, 1.2, 2.1, 0.2);
        one.doing(Doing::kRunning, 2.3).doing(Doing::kRunnable, wanting * 1.2 - 2.3);
        for (unsigned i = 0; i < 8; i++)
            one.slowed(0, 1.2, 2.3 / 8);
        one.burns({library("dgemm_kernel", "libopenblas.so.0"), own("task", 8)}, 0.9, 0.9);
        return says(one.concluded(), "nested");
    };
    EXPECT_FALSE(made(4.1));
    EXPECT_TRUE(made(7.5));
}

// One thread that wants a CPU now and then, in a program with many that do not.
TEST(StatRules, ThreadsThatDoNotWantTheCpusAreNotTooMany) {
    Case made;
    made.point(1, 0.5, 0.5, 0).point(2, 0.5, 0.5, 0).point(4, 0.9, 0.5, 0);
    made.doing(Doing::kRunning, 0.01).doing(Doing::kRunnable, 0.01).doing(Doing::kIdleWait, 3);
    made.report.points.back().run_delay = 0.4;
    EXPECT_FALSE(says(made.concluded(), "oversubscribed"));
}

} // namespace
