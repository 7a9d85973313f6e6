// SPDX-License-Identifier: Apache-2.0
//
// cli/stat/rules.hpp: what is concluded from reports that are made up, and how the text shows it. At the end, what it all
// stands on: what the host tells of itself, and that looking costs no more than it may.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "child.hpp"
#include "clock.hpp"
#include "interrupts.hpp"
#include "place.hpp"
#include "process.hpp"
#include "stat/collect.hpp"
#include "stat/facts.hpp"
#include "stat/host.hpp"
#include "stat/nameless.hpp"
#include "stat/rules.hpp"
#include "stat/run.hpp"

namespace {

using thrum::stat::Confidence;
using thrum::stat::Doing;
using thrum::stat::Finding;
using thrum::stat::Frame;
using thrum::stat::LockKind;
using thrum::stat::Outcome;
using thrum::stat::Point;
using thrum::stat::Report;
using thrum::stat::Site;
using thrum::stat::Thread;

Frame library(const char *function, const char *module = "libc.so.6") {
    Frame frame;
    frame.function = function;
    frame.module = module;
    return frame;
}

Frame own(const char *function, int line = 21) {
    Frame frame;
    frame.function = function;
    frame.file = "prog.c";
    frame.line = line;
    frame.module = "prog";
    frame.is_user = true;
    return frame;
}

// A program alone on a machine of two cores.
class Case {
  public:
    Case() {
        report.machine.processors = 2;
        report.command = {"./prog", "{}"};
        report.rate = 100;
    }

    Case &point(unsigned threads, double wall, double user, double system, double voluntary = 100) {
        Point point;
        point.threads = threads;
        point.most_threads = threads + 1;
        point.runs = 3;
        point.wall = {wall, wall * 0.99, wall * 1.01, 0.75, 3};
        point.user = user;
        point.system = system;
        point.voluntary = voluntary;
        point.load.seconds = 3 * wall;
        point.load.others = 0.01;
        report.points.push_back(point);
        report.sampled_wall = wall;
        report.sampled_threads = threads;
        return *this;
    }
    Case &others(double cpus) {
        for (Point &point : report.points)
            point.load.others = cpus;
        return *this;
    }
    Case &doing(Doing what, double seconds) {
        report.doing[static_cast<int>(what)] = seconds;
        return *this;
    }
    Case &lock(LockKind kind, const std::string &text, double waiters_mean, const std::string &symbol = "") {
        thrum::stat::LockUse use;
        use.lock.kind = kind;
        use.lock.text = text;
        use.lock.symbol = symbol;
        use.share = 1;
        use.waiters_mean = waiters_mean;
        use.waiters_most = static_cast<unsigned>(waiters_mean) + 1;
        report.locks.push_back(use);
        return *this;
    }
    // Waits for the first lock, if there is one.
    Case &waits(const std::vector<Frame> &stack, std::uint64_t samples, double share = 1) {
        Site site;
        site.stack = stack;
        site.samples = samples;
        site.share = share;
        site.seconds = static_cast<double>(samples) / 100;
        site.lock = report.locks.empty() ? SIZE_MAX : 0;
        report.waits.push_back(site);
        return *this;
    }
    Case &burns(const std::vector<Frame> &stack, double share, double share_one) {
        for (auto &[list, part] : {std::pair{&report.burns, share}, {&report.burns_one, share_one}})
            if (part > 0) {
                Site site;
                site.doing = Doing::kRunning;
                site.stack = stack;
                site.samples = static_cast<std::uint64_t>(100 * part);
                site.share = part;
                list->push_back(site);
            }
        report.profile_source = "perf event";
        return *this;
    }
    Case &thread(double begin, double end, Doing what = Doing::kRunning) {
        Thread thread;
        thread.begin = begin;
        thread.end = end;
        thread.spans.push_back({begin, end, what, SIZE_MAX, 0});
        report.threads.push_back(thread);
        return *this;
    }
    // One that had a CPU for a part of the time, as on a busy machine.
    Case &slowed(double begin, double end, double cpu) {
        thread(begin, end);
        report.threads.back().cpu = report.threads.back().spans.back().ran = cpu;
        return *this;
    }
    const Report &concluded(const std::string &failure = "") {
        conclude(report, failure);
        return report;
    }

    Report report;
};

std::string rules_of(const Report &report) {
    std::string names;
    for (const Finding &finding : report.findings)
        names += (names.empty() ? "" : " ") + finding.rule;
    return names;
}

// The article's program: hardly a long wait, and CPU time that explodes in the kernel.
Case random_case() {
    Case made;
    made.point(1, 0.32, 0.32, 0, 3).point(2, 0.48, 0.4, 0.22, 400).point(4, 1.08, 1.02, 0.81, 788);
    made.doing(Doing::kRunning, 1.8).doing(Doing::kRunnable, 1.2).doing(Doing::kLockWait, 1.1);
    made.lock(LockKind::kLibrary, "libc.so.6 .data (static lock inside libc)", 1.4);
    made.waits({library("__lll_lock_wait_private"), library("random"), own("draw"), own("has_dup", 25),
                own("worker", 33)},
               109, 0.99);
    made.burns({library("__lll_lock_wait_private"), library("random"), own("draw")}, 0.6, 0);
    made.burns({library("random"), own("draw")}, 0.2, 0.3);
    made.burns({own("has_dup", 25), own("worker", 33)}, 0.2, 0.7);
    return made;
}

TEST(StatRules, AHiddenLock) {
    Case made = random_case();
    const Report &report = made.concluded();
    EXPECT_EQ(report.outcome, Outcome::kSlower);
    EXPECT_EQ(report.verdict,
              "Threads make this program SLOWER: 4 threads take 3.4x the time of 1 (3.1x to 3.7x).");
    ASSERT_EQ(rules_of(report), "hidden-lock");
    const Finding &found = report.findings.front();
    EXPECT_EQ(found.cause, "Hidden lock in libc: random()");
    EXPECT_EQ(found.fix, "Use random_r() with per-thread state.");
    EXPECT_EQ(found.confidence, Confidence::kHigh);
    EXPECT_EQ(found.function, "draw");
    EXPECT_EQ(found.file, "prog.c");
    EXPECT_EQ(found.line, 21);
    EXPECT_FALSE(found.evidence.empty());
}

TEST(StatRules, AHiddenLockThatIsNeverSeenWaitedFor) {
    Case made = random_case();
    made.report.waits.clear();
    made.report.locks.clear();
    made.doing(Doing::kLockWait, 0);
    const Report &report = made.concluded();
    ASSERT_EQ(rules_of(report), "hidden-lock");
    EXPECT_EQ(report.findings.front().cause, "Hidden lock in libc: random()");
    EXPECT_EQ(report.findings.front().function, "draw");
    EXPECT_EQ(report.findings.front().confidence, Confidence::kMedium);
}

// A function that is in no list allocates with its lock held: its caller did not call malloc().
TEST(StatRules, WhatAFunctionWithALockAllocatesIsItsOwn) {
    Case made;
    made.point(1, 0.35, 0.24, 0.1, 2).point(4, 0.43, 0.3, 0.27, 19000);
    made.doing(Doing::kRunning, 0.57).doing(Doing::kRunnable, 0.46).doing(Doing::kLockWait, 0.5);
    made.lock(LockKind::kLibrary, "libc.so.6 .bss (static lock inside libc)", 1.9);
    made.waits({library("__lll_lock_wait_private"), library("__enlist"), own("make_object")}, 50, 1);
    made.burns({library("mprotect"), library("calloc"), library("__enlist"), own("make_object")}, 0.33, 0.3);
    made.burns({library("__enlist"), own("make_object")}, 0.4, 0.1).burns({own("chew", 30)}, 0.27, 0.6);
    ASSERT_EQ(rules_of(made.concluded()), "hidden-lock");
    EXPECT_EQ(made.report.findings.front().cause, "Hidden lock in libc: enlist()");
    made.burns({library("malloc"), own("take")}, 0.5, 0.05); // and a direct caller is told so
    EXPECT_EQ(rules_of(made.concluded()), "hidden-lock allocator");
}

// drand48() takes no lock: it is its state's cache line that threads fight for. What they are seen to wait for is a lock.
TEST(StatRules, SharedStateWithoutALock) {
    Case made;
    made.point(1, 0.3, 0.3, 0).point(2, 0.5, 1, 0).doing(Doing::kRunning, 1);
    made.burns({library("__nrand48_r"), library("drand48"), own("draw")}, 0.8, 0.5);
    made.burns({own("draw"), own("worker", 33)}, 0.2, 0.5);
    Case waits = made;
    ASSERT_EQ(rules_of(made.concluded()), "hidden-lock");
    EXPECT_EQ(made.report.findings.front().cause, "State that all threads share, in libc: drand48()");
    EXPECT_EQ(made.report.findings.front().fix, "Use erand48() or drand48_r() with per-thread state.");
    EXPECT_EQ(made.report.findings.front().function, "draw");
    waits.doing(Doing::kLockWait, 0.5)
        .lock(LockKind::kLibrary, "libc.so.6 .data (static lock inside libc)", 1)
        .waits({library("__lll_lock_wait_private"), library("drand48"), own("draw")}, 50);
    ASSERT_EQ(rules_of(waits.concluded()), "hidden-lock");
    EXPECT_EQ(waits.report.findings.front().cause, "Hidden lock in libc: drand48()");
}

TEST(StatRules, WhatScalesIsNotAccused) {
    Case made = random_case();
    made.report.points.clear();
    made.point(1, 0.14, 0.14, 0).point(2, 0.07, 0.14, 0).point(4, 0.075, 0.145, 0.001);
    const Report &report = made.concluded();
    EXPECT_EQ(report.outcome, Outcome::kScales);
    EXPECT_EQ(rules_of(report), "scales");
    EXPECT_EQ(report.findings.front().function, "");
}

TEST(StatRules, OneRunOfTheSame) {
    Case made = random_case();
    made.report.points.erase(made.report.points.begin(), made.report.points.begin() + 2);
    made.report.burns_one.clear();
    const Report &report = made.concluded();
    EXPECT_EQ(report.outcome, Outcome::kOneRun);
    EXPECT_EQ(rules_of(report), "hidden-lock");
    EXPECT_NE(report.verdict.find("a --sweep can tell"), std::string::npos) << report.verdict;
}

TEST(StatRules, OneRunOfWhatIsWell) {
    Case made;
    made.point(0, 1, 1.9, 0.02).doing(Doing::kRunning, 1.9).doing(Doing::kLockWait, 0.05);
    made.report.points.front().most_threads = 3;
    const Report &report = made.concluded();
    EXPECT_EQ(report.outcome, Outcome::kOneRun);
    EXPECT_EQ(rules_of(report), "scales");
    EXPECT_EQ(report.findings.front().confidence, Confidence::kLow);
}

// --- whose lock it is ---------------------------------------------------------------------------------------

Case locked(const std::vector<Frame> &stack, LockKind kind, const std::string &text,
            const std::string &symbol = "") {
    Case made;
    made.point(1, 0.5, 0.5, 0).point(2, 0.6, 0.9, 0.2).point(4, 0.7, 1, 0.3, 900);
    made.doing(Doing::kRunning, 1.3)
        .doing(Doing::kLockWait, 1)
        .lock(kind, text, 1.2, symbol)
        .waits(stack, 100);
    return made;
}

TEST(StatRules, TheFunctionThatTheProgramCallsIsNamed) {
    struct {
        std::vector<Frame> stack;
        const char *rule, *cause;
    } const known[] = {
        {{library("__lll_lock_wait_private"), library("malloc"), library("__GI__IO_file_doallocate"),
          library("printf"), own("log")},
         "hidden-lock",
         "Hidden lock in libc: printf()"},
        {{library("__lll_lock_wait_private"), library("__tz_convert"), library("localtime_r"), own("log")},
         "hidden-lock",
         "Hidden lock in libc: localtime_r()"},
        {{library("__lll_lock_wait_private"), library("__tz_convert"), own("log")},
         "hidden-lock",
         "Hidden lock in libc: localtime() or gmtime()"},
        {{library("__lll_lock_wait_private"), library("__add_to_environ"), library("setenv"), own("post")},
         "hidden-lock",
         "Hidden lock in libc: setenv()"},
        {{library("__lll_lock_wait_private"), library("calloc"), library("__internal_atexit"), own("make")},
         "hidden-lock",
         "Hidden lock in libc: atexit()"},
        {{library("__lll_lock_wait_private"), library("___printf_chk"), own("log")},
         "hidden-lock",
         "Hidden lock in libc: printf()"},
        {{library("__lll_lock_wait_private"), library("__isoc99_fscanf"), own("parse")},
         "hidden-lock",
         "Hidden lock in libc: fscanf()"},
        {{library("__lll_lock_wait_private"), library("_IO_puts"), own("log")},
         "hidden-lock",
         "Hidden lock in libc: puts()"},
        {{library("__lll_lock_wait_private"), library("__random"), library("rand"), own("draw")},
         "hidden-lock",
         "Hidden lock in libc: rand()"},
        {{library("pthread_mutex_lock"), library("__GI___dl_iterate_phdr"), own("walk")},
         "hidden-lock",
         "Hidden lock in libc: dl_iterate_phdr()"},
        {{library("pthread_mutex_lock"), library("_Unwind_Find_FDE", "libgcc_s.so.1"),
          library("_Unwind_RaiseException", "libgcc_s.so.1"), library("__cxa_throw", "libstdc++.so.6"),
          own("check")},
         "hidden-lock",
         "Hidden lock in libstdc++: stack unwinding, as by exceptions"},
        {{library("pthread_mutex_lock"), library("frobnicate", "libfrob.so.3"), own("use")},
         "hidden-lock",
         "Hidden lock in libfrob: frobnicate()"},
        {{library("__lll_lock_wait_private"), library("_int_free"), library("free"),
          library("operator delete"), own("renew")},
         "allocator",
         "Threads contend for the memory allocator (libc) in renew()"},
    };
    for (const auto &one : known) {
        Case made = locked(one.stack, LockKind::kLibrary, "libc.so.6 .data (static lock inside libc)");
        const Report &report = made.concluded();
        ASSERT_EQ(rules_of(report), one.rule) << one.cause;
        EXPECT_EQ(report.findings.front().cause, one.cause);
        EXPECT_EQ(report.findings.front().function, one.stack.back().function);
    }
}

TEST(StatRules, ProgramsOwnFunctionsAreNoneOfTheLibrarys) {
    Frame random = own("random");
    EXPECT_EQ(thrum::stat::find_hidden_lock(random), nullptr);
    EXPECT_NE(thrum::stat::find_hidden_lock(library("__GI___random")), nullptr);
    EXPECT_NE(thrum::stat::find_hidden_lock(library("__printf_chk")), nullptr);
    EXPECT_EQ(thrum::stat::find_hidden_lock(library("qsort")), nullptr);
    EXPECT_EQ(thrum::stat::source_name("sum_up._omp_fn.0"), "sum_up");
    EXPECT_EQ(thrum::stat::source_name("f.part.12"), "f");
    EXPECT_EQ(thrum::stat::source_name("f.cold"), "f");
    EXPECT_EQ(thrum::stat::source_name("f.parts"), "f.parts");
}

// In glibc 2.36 these take no lock, or none that others may want.
TEST(StatRules, FunctionsWithoutHiddenLocks) {
    for (const char *function : {"getenv", "secure_getenv", "putc_unlocked", "uselocale", "nl_langinfo_l",
                                 "mkstemp", "tmpnam", "tempnam", "dlinfo", "malloc_usable_size"})
        EXPECT_EQ(thrum::stat::find_hidden_lock(library(function)), nullptr) << function;
    for (const char *function : {"setenv", "putc", "newlocale", "duplocale", "tmpfile", "regexec", "dlsym"})
        EXPECT_NE(thrum::stat::find_hidden_lock(library(function)), nullptr) << function;
}

TEST(StatRules, AnAllocatorIsNotReplacedByItself) {
    const auto fix = [](const char *module) {
        Case made = locked({library("__lll_lock_wait"), library("malloc", module), own("renew")},
                           LockKind::kLibrary, "somebody's .data");
        EXPECT_EQ(rules_of(made.concluded()), "allocator");
        return made.report.findings.front().fix;
    };
    for (const char *name : {"jemalloc", "mimalloc"}) {
        EXPECT_NE(fix("libc.so.6").find(name), std::string::npos) << fix("libc.so.6");
        const std::string module = "lib" + std::string(name) + ".so.2";
        EXPECT_EQ(fix(module.c_str()).find(name), std::string::npos) << fix(module.c_str());
    }
    EXPECT_EQ(fix("libtcmalloc_minimal.so.4").find("per-thread caches"), std::string::npos);
}

TEST(StatRules, AHotMutex) {
    Case made = locked({library("pthread_mutex_lock"), own("put")}, LockKind::kGlobal, "pot_lock in prog",
                       "pot_lock");
    made.burns({own("put"), own("earn", 30)}, 0.5, 0.3).burns({own("earn", 30)}, 0.5, 0.7);
    const Report &report = made.concluded();
    ASSERT_EQ(rules_of(report), "hot-mutex");
    EXPECT_EQ(report.findings.front().cause, "Hot mutex: pot_lock in put()");
    EXPECT_EQ(report.findings.front().function, "put");
}

// On a quiet machine hardly any thread is seen waiting: CPU time goes to locking and unlocking it.
TEST(StatRules, AHotMutexThatIsFoughtForWithoutWaiting) {
    Case made;
    made.point(1, 0.44, 0.44, 0)
        .point(4, 0.69, 0.72, 0.59, 400)
        .doing(Doing::kRunning, 1.3)
        .doing(Doing::kLockWait, 0.04);
    made.burns({library("pthread_mutex_lock"), own("put"), own("earn", 30)}, 0.41, 0.03)
        .burns({library("lll_lock_wake"), library("pthread_mutex_unlock"), own("put"), own("earn", 30)}, 0.3,
               0.06)
        .burns({own("chew"), own("earn", 30)}, 0.23, 0.72);
    const Report &report = made.concluded();
    ASSERT_EQ(rules_of(report), "hot-mutex");
    EXPECT_EQ(report.findings.front().function, "put");
}

// Of one run: more threads than CPUs want one, and so waits are few beside that.
TEST(StatRules, AHotMutexInOneRun) {
    const auto made = [](double taking) {
        Case one;
        one.point(0, 2.6, 2.56, 1.95, 49000).lock(LockKind::kHeap, "heap (0x5566a12cad80)", 1.5);
        one.report.points.front().most_threads = 5;
        one.doing(Doing::kRunning, 4.5).doing(Doing::kRunnable, 4.5).doing(Doing::kLockWait, 0.9);
        one.waits({library("pthread_mutex_lock"), own("put")}, 183);
        one.burns({library("pthread_mutex_lock"), own("put")}, taking, 0).burns({own("earn")}, 1 - taking, 0);
        return rules_of(one.concluded());
    };
    EXPECT_EQ(made(0.8), "hot-mutex");
    EXPECT_EQ(made(0.2), "scales");
}

// It is all that they do, and hardly any thread sleeps for it.
TEST(StatRules, AHotMutexInOneRunWithoutLongWaits) {
    const auto made = [](double taking, std::uint64_t samples) {
        Case one;
        one.point(0, 3.4, 3.6, 3.05, 2708).lock(LockKind::kHeap, "heap (0x5605342a6d80)", 0.1);
        one.report.points.front().most_threads = 5;
        one.doing(Doing::kRunning, 6.6).doing(Doing::kRunnable, 5.8).doing(Doing::kLockWait, 0.09);
        one.waits({library("pthread_mutex_lock"), own("put")}, samples);
        one.burns({library("pthread_mutex_lock"), own("put")}, taking, 0).burns({own("earn")}, 1 - taking, 0);
        return rules_of(one.concluded());
    };
    EXPECT_EQ(made(0.9, 79), "hot-mutex");
    EXPECT_EQ(made(0.5, 79), "scales");
    EXPECT_EQ(made(0.9, 5), "scales") << "one that is taken often, by threads that do not meet there";
}

// Without names a function is told by where it begins: what takes the lock and what gives it back are two places in it.
TEST(StatRules, AHotMutexOfAProgramWithoutSymbols) {
    const auto unnamed = [](std::uint64_t offset, std::uint64_t begin) {
        Frame frame = own("", 0);
        frame.file.clear();
        frame.offset = offset;
        frame.begin = begin;
        return frame;
    };
    const auto made = [&](std::uint64_t begin, std::uint64_t begin_of_other) {
        Case one;
        one.point(0, 3.6, 3.8, 3.3, 2129).lock(LockKind::kHeap, "heap (0x560c5b378d80)", 0.1);
        one.report.points.front().most_threads = 5;
        one.doing(Doing::kRunning, 7.1).doing(Doing::kRunnable, 7).doing(Doing::kLockWait, 0.08);
        const Frame takes = unnamed(0x1ba84, begin), gives_back = unnamed(0x1ba99, begin_of_other);
        one.waits({library("pthread_mutex_lock"), takes}, 76);
        one.burns({library("pthread_mutex_lock"), takes}, 0.45, 0)
            .burns({library("lll_lock_wake"), library("pthread_mutex_unlock"), gives_back}, 0.45, 0)
            .burns({unnamed(0x1ba90, begin)}, 0.1, 0);
        return one.concluded();
    };
    const Report report = made(0x1ba10, 0x1ba10);
    ASSERT_EQ(rules_of(report), "hot-mutex");
    const Finding &found = report.findings.front();
    EXPECT_EQ(found.cause, "Hot mutex: heap (0x560c5b378d80) at prog+0x1ba84");
    EXPECT_NE(std::find(found.evidence.begin(), found.evidence.end(), "90 % of CPU time"),
              found.evidence.end());
    EXPECT_EQ(rules_of(made(0x1ba10, 0x1ba90)), "scales") << "another function";
    EXPECT_EQ(rules_of(made(0, 0)), "scales") << "not known where they begin";
}

TEST(StatRules, OneLockAroundEverything) {
    Case made;
    made.point(1, 0.5, 0.5, 0)
        .point(4, 0.52, 0.5, 0.02, 3000)
        .doing(Doing::kRunning, 0.5)
        .doing(Doing::kLockWait, 1.5);
    made.lock(LockKind::kGlobal, "everything in prog", 2.9, "everything");
    made.waits({library("pthread_mutex_lock"), own("update")}, 150);
    made.burns({own("work", 7), own("update")}, 0.97, 0.98);
    EXPECT_EQ(rules_of(made.concluded()), "one-lock");
}

TEST(StatRules, AConvoy) {
    Case made;
    made.point(1, 0.4, 0.4, 0)
        .point(4, 0.6, 0.6, 0.3, 40000)
        .doing(Doing::kRunning, 0.9)
        .doing(Doing::kLockWait, 1.4);
    made.lock(LockKind::kGlobal, "queue_lock in prog", 2.5, "queue_lock");
    made.waits({library("pthread_mutex_lock"), own("append")}, 140);
    made.burns({own("append"), own("produce", 30)}, 0.3, 0.25).burns({own("produce", 30)}, 0.7, 0.75);
    const Report &report = made.concluded();
    EXPECT_EQ(rules_of(report), "convoy");
    EXPECT_EQ(report.findings.front().function, "append");
}

TEST(StatRules, PythonsLock) {
    Case made;
    made.point(1, 0.5, 0.5, 0)
        .point(4, 0.6, 0.55, 0.05, 500)
        .doing(Doing::kRunning, 0.6)
        .doing(Doing::kLockWait, 1.5);
    made.waits({library("pthread_cond_timedwait"), library("PyEval_RestoreThread", "python3.11"),
                library("_PyEval_EvalFrameDefault", "python3.11")},
               150);
    const Report &report = made.concluded();
    ASSERT_EQ(rules_of(report), "one-lock");
    EXPECT_NE(report.findings.front().cause.find("Python"), std::string::npos);
}

// Numpy's, libcrypto's and libc's locks are not Python's, although Python called them.
TEST(StatRules, LocksOfModulesAreNotPythons) {
    Frame script = own("train", 12);
    script.file = "train.py";
    const Frame eval = library("_PyEval_EvalFrameDefault", "python3.11");
    const struct {
        std::vector<Frame> stack;
        const char *rule, *cause;
    } known[] = {
        {{library("pthread_mutex_lock"), library("exec_blas", "libopenblas.so.0"),
          library("cblas_matrixproduct", "_multiarray_umath.so"), eval, script},
         "hidden-lock",
         "Hidden lock in _multiarray_umath: cblas_matrixproduct()"},
        {{library("__lll_lock_wait_private"), library("random"), library("", "_random.so"), eval, script},
         "hidden-lock",
         "Hidden lock in libc: random()"},
        {{library("__lll_lock_wait_private"), library("malloc"), library("PyMem_RawMalloc", "python3.11"),
          eval, script},
         "allocator",
         "Threads contend for the memory allocator (libc) in train()"},
        {{library("pthread_cond_timedwait"), library("", "python3.11"), eval, script},
         "one-lock",
         "Python's global interpreter lock (GIL): one thread runs Python code at a time"},
    };
    for (const auto &one : known) {
        Case made = locked(one.stack, LockKind::kLibrary, "somebody's .data");
        ASSERT_EQ(rules_of(made.concluded()), one.rule) << one.cause;
        EXPECT_EQ(made.report.findings.front().cause, one.cause);
    }
}

TEST(StatRules, OpenMPsSectionsAreTheProgramsOwn) {
    Case made = locked({library("gomp_mutex_lock_slow", "libgomp.so.1"),
                        library("GOMP_critical_start", "libgomp.so.1"), own("sum_up._omp_fn.0")},
                       LockKind::kLibrary, "libgomp.so.1 .bss");
    const Report &report = made.concluded();
    ASSERT_EQ(rules_of(report), "hot-mutex");
    const Finding &found = report.findings.front();
    EXPECT_EQ(found.cause, "Hot OpenMP critical section (#pragma omp critical) in sum_up()");
    EXPECT_NE(found.fix.find("reduction"), std::string::npos) << found.fix;
    EXPECT_EQ(found.function, "sum_up");
    EXPECT_NE(text_of(report).find("lock: OpenMP critical section (#pragma omp critical); libgomp.so.1"),
              std::string::npos)
        << text_of(report);
}

TEST(StatRules, ANamedSectionOfOpenMP) {
    Case made = locked({library("", "libgomp.so.1"), library("GOMP_critical_name_start", "libgomp.so.1"),
                        own("append._omp_fn.0")},
                       LockKind::kGlobal, "prog .bss", ".gomp_critical_user_queue");
    EXPECT_EQ(made.concluded().findings.front().cause,
              "Hot OpenMP critical section (#pragma omp critical(queue)) in append()");
}

// Its functions inside have no names, and the runtime may be asked for something that no list has.
TEST(StatRules, OpenMPsRuntimeHasNoHiddenLocks) {
    Case made = locked({library("", "libgomp.so.1"), library("GOMP_something", "libgomp.so.1"), own("f")},
                       LockKind::kLibrary, "libgomp.so.1 .bss");
    const Report &report = made.concluded();
    ASSERT_EQ(rules_of(report), "hot-mutex");
    EXPECT_NE(report.findings.front().cause.find("OpenMP"), std::string::npos)
        << report.findings.front().cause;
    Case other = locked({library("", "libfrob.so.3"), library("frobnicate", "libfrob.so.3"), own("f")},
                        LockKind::kLibrary, "libfrob.so.3 .bss");
    EXPECT_EQ(rules_of(other.concluded()), "hidden-lock");
}

TEST(StatRules, AnOpenMPSectionThatIsFoughtForWithoutWaiting) {
    Case made;
    made.point(1, 0.44, 0.44, 0).point(4, 0.69, 0.72, 0.59, 400).doing(Doing::kRunning, 1.3);
    made.burns({library("", "libgomp.so.1"), library("GOMP_critical_start", "libgomp.so.1"),
                own("put._omp_fn.0")},
               0.5, 0.03)
        .burns({own("chew"), own("earn", 30)}, 0.5, 0.97);
    const Report &report = made.concluded();
    ASSERT_EQ(rules_of(report), "hot-mutex");
    EXPECT_EQ(report.findings.front().cause, "Hot OpenMP critical section (#pragma omp critical) in put()");
}

TEST(StatRules, SpinningAtAnOpenMPBarrier) {
    const auto barrier = [] {
        Case made;
        made.point(1, 0.5, 0.5, 0).point(2, 0.4, 0.78, 0.02).doing(Doing::kRunning, 0.8);
        made.burns({own("step._omp_fn.0"), library("GOMP_parallel", "libgomp.so.1"), own("step", 9),
                    own("main", 40)},
                   0.6, 0.99);
        return made;
    };
    Case made = barrier();
    made.burns(
            {library("", "libgomp.so.1"), library("GOMP_barrier", "libgomp.so.1"), own("step._omp_fn.0", 12)},
            0.3, 0)
        .burns({library("", "libgomp.so.1"), library("", "libgomp.so.1")}, 0.1, 0);
    const Report &report = made.concluded();
    ASSERT_EQ(rules_of(report), "busy-wait");
    const Finding &found = report.findings.front();
    EXPECT_EQ(
        found.cause,
        "Threads wait by spinning: OpenMP barrier (#pragma omp barrier, or the end of a loop) in step()");
    EXPECT_EQ(found.function, "step");
    EXPECT_EQ(found.line, 12);
    EXPECT_NE(found.evidence.front().find("40 % of CPU time there, 0 %"), std::string::npos)
        << found.evidence.front();

    Case docked =
        barrier(); // threads that wait for the next region have nothing of the program on their stacks
    docked.burns({library("", "libgomp.so.1"), library("", "libgomp.so.1")}, 0.4, 0);
    ASSERT_EQ(rules_of(docked.concluded()), "busy-wait");
    EXPECT_EQ(docked.report.findings.front().function, "step");
    EXPECT_EQ(docked.report.findings.front().line, 9) << "where the region is";

    Case innocent = barrier();
    innocent.burns(
        {library("", "libgomp.so.1"), library("GOMP_barrier", "libgomp.so.1"), own("step._omp_fn.0", 12)},
        0.2, 0);
    EXPECT_NE(rules_of(innocent.concluded()), "busy-wait");

    Case kept_waiting = barrier(); // for one that had no CPU: no more CPU time than before
    kept_waiting.report.points.back().user = 0.55;
    kept_waiting.burns(
        {library("", "libgomp.so.1"), library("GOMP_barrier", "libgomp.so.1"), own("step._omp_fn.0", 12)},
        0.4, 0);
    EXPECT_EQ(rules_of(kept_waiting.concluded()).find("busy-wait"), std::string::npos);
}

// --- programs without symbols ---------------------------------------------------------------------------------

Frame nameless(std::uint64_t offset) {
    Frame frame;
    frame.module = "prog";
    frame.offset = offset;
    frame.is_user = true;
    return frame;
}

// What is known of a library are the functions that others call; and the program's own jumps to these are no library.
TEST(StatRules, LibrariesInWhichMuchTimeIsSpentAreTold) {
    const auto notes = [](double inside, const char *stub) {
        Case made;
        made.point(1, 1, 1, 0).point(2, 1, 1, 0).doing(Doing::kRunning, 1);
        made.burns({library("", "liblzma.so.5"), library("lzma_code", "liblzma.so.5"), own("pack")}, inside,
                   0.5);
        made.burns({library("", stub), own("pack")}, 0.2, 0.2);
        std::string text;
        for (const std::string &note : thrum::stat::nameless_libraries(made.concluded()))
            text += note + "\n";
        return text;
    };
    EXPECT_EQ(notes(0.6, "prog"), "no debugging information: liblzma.so.5, a system library; functions in "
                                  "it, which 60 % of CPU time went through, are unknown\n");
    EXPECT_EQ(notes(0.2, "prog"), "");
    EXPECT_NE(notes(0.2, "libfrob.so.3").find("libfrob.so.3, a system library"), std::string::npos);
}

TEST(StatRules, ALockWithoutAName) {
    Case made = locked({library("pthread_mutex_lock"), nameless(0x1234), nameless(0x2000)}, LockKind::kGlobal,
                       "prog+0x4060 (.bss, a global of the program of unknown name)");
    made.report.locks.front().lock.module = "prog";
    made.report.locks.front().lock.offset = 0x4060;
    const Report &report = made.concluded();
    ASSERT_EQ(rules_of(report), "hot-mutex");
    const Finding &found = report.findings.front();
    EXPECT_EQ(found.cause, "Hot mutex: prog+0x4060 at prog+0x1234");
    EXPECT_EQ(found.function, "") << "it is not known";
    EXPECT_EQ(found.evidence.back(),
              "at prog+0x1234: without debugging information its function and line are unknown");

    Case heap =
        locked({library("pthread_mutex_lock"), nameless(0x1234)}, LockKind::kHeap, "heap (0x55d0c0de1000)");
    EXPECT_EQ(heap.concluded().findings.front().cause, "Hot mutex: heap (0x55d0c0de1000) at prog+0x1234");
}

// Without names one function is not another one.
TEST(StatRules, LocksWithoutNamesAreToldApart) {
    Case made = locked({library("pthread_mutex_lock"), nameless(0x1234)}, LockKind::kGlobal, "prog+0x4060");
    made.burns({library("pthread_mutex_lock"), nameless(0x1234)}, 0.2, 0.1)
        .burns({library("pthread_mutex_lock"), nameless(0x7000)}, 0.5, 0);
    const thrum::stat::Facts facts(made.report);
    ASSERT_EQ(facts.culprits.size(), 2U);
    EXPECT_NEAR(facts.culprits[0].burned, 0.2, 1e-9);
    EXPECT_EQ(facts.culprits[0].place.code, "prog+0x1234");
    EXPECT_NEAR(facts.culprits[1].burned, 0.5, 1e-9);
    EXPECT_EQ(facts.culprits[1].place.code, "prog+0x7000");
}

// Counted they are many, but what they take is next to nothing.
TEST(StatRules, CheapWaitsThatWereCountedAreNoDisease) {
    const auto made = [](double seconds) {
        Case one;
        one.point(0, 1, 1.9, 0.02).doing(Doing::kRunning, 1.9).doing(Doing::kLockWait, 0.02);
        one.report.points.front().most_threads = 3;
        one.lock(LockKind::kGlobal, "lock in prog", 0.1)
            .waits({library("pthread_mutex_lock"), own("put")}, 2);
        one.report.waits.front().calls = 20000;
        one.report.waits.front().seconds = seconds;
        return one;
    };
    EXPECT_EQ(rules_of(made(0.04).concluded()), "scales");
    EXPECT_EQ(rules_of(made(0.8).concluded()), "hot-mutex");
    Case lossy = made(0.04);
    lossy.report.points.clear();
    lossy.point(1, 0.8, 0.8, 0).point(2, 1, 1.9, 0.02);
    EXPECT_EQ(rules_of(lossy.concluded()).find("hot-mutex"), 0U) << rules_of(lossy.report);
}

TEST(StatRules, AFewWaitsAreNoDisease) {
    Case made;
    made.point(1, 1, 1, 0)
        .point(2, 0.75, 1.05, 0.01)
        .doing(Doing::kRunning, 1.06)
        .doing(Doing::kLockWait, 0.08);
    made.lock(LockKind::kGlobal, "lock in prog", 1).waits({library("pthread_mutex_lock"), own("put")}, 8);
    const Report &report = made.concluded();
    EXPECT_EQ(report.outcome, Outcome::kScalesSome);
    EXPECT_EQ(rules_of(report), "scales");
}

// By way of std::lock_guard, and so that hardly any thread is seen to wait.
TEST(StatRules, ALockThatIsFoughtForInCpp) {
    Case made;
    made.point(1, 0.39, 0.39, 0)
        .point(4, 0.92, 1.05, 0.72)
        .doing(Doing::kRunning, 1.9)
        .doing(Doing::kLockWait, 0.02);
    made.lock(LockKind::kHeap, "heap", 0.1).waits({library("pthread_mutex_lock"), own("enter", 20)}, 30);
    const auto wrapped = [](const char *function) { return library(function, "prog"); };
    made.burns({library("pthread_mutex_lock"), wrapped("__gthread_mutex_lock"), wrapped("std::mutex::lock"),
                wrapped("std::lock_guard::lock_guard"), own("enter", 20)},
               0.4, 0.2);
    made.burns({own("chew", 5), own("trade", 30)}, 0.2, 0.6);
    EXPECT_EQ(rules_of(made.concluded()), "hot-mutex");
    EXPECT_EQ(made.report.findings.front().function, "enter");
}

// --- threads, memory, work ----------------------------------------------------------------------------------

TEST(StatRules, ThreadsThatComeAndGo) {
    Case made;
    made.point(1, 0.5, 0.2, 0.3).point(4, 0.5, 0.3, 0.6).doing(Doing::kRunning, 0.9);
    for (int i = 0; i < 150; i++)
        made.thread(i * 0.003, i * 0.003 + 0.002);
    made.report.threads_created = 150;
    made.burns({library("clone3"), library("pthread_create"), own("start_round", 55)}, 0.3, 0.3);
    const Report &report = made.concluded();
    ASSERT_EQ(rules_of(report), "thread-churn");
    EXPECT_EQ(report.findings.front().function, "start_round");
    EXPECT_EQ(report.findings.front().line, 55);
}

// Of which few were seen: three were there in each of ten looks, but three thousand have been made.
TEST(StatRules, ThreadsThatComeAndGoUnseen) {
    Case made;
    made.point(1, 0.1, 0.05, 0.05).point(2, 0.1, 0.05, 0.06).doing(Doing::kRunning, 0.1);
    for (int i = 0; i < 10; i++)
        made.thread(i * 0.01, i * 0.01);
    made.report.sampled_wall = 0.1;
    made.report.samples = 30;
    made.report.rate = 100;
    made.report.threads_created = 3000;
    made.report.creations_counted = true;
    ASSERT_EQ(rules_of(made.concluded()), "thread-churn");
    EXPECT_EQ(made.report.findings.front().confidence, Confidence::kHigh);
    Case one_run = made;
    one_run.report.points.erase(one_run.report.points.begin());
    one_run.report.points.front().most_threads = 1;
    EXPECT_EQ(one_run.concluded().verdict.find("with a single thread"), std::string::npos)
        << "none was looked at";
    EXPECT_EQ(made.report.findings.front().evidence.front(),
              "3000 threads created in 100 ms; they lived for 100 us on average");
    for (int i = 0; i < 25; i++) // nor is it otherwise if there are some that live long, which are all seen
        made.thread(0, 0.1);
    made.report.samples = 280;
    EXPECT_EQ(rules_of(made.concluded()), "thread-churn");
    made.report.threads.resize(10);
    made.report.samples = 30;
    made.report.threads_created = 99; // too few to tell
    EXPECT_EQ(rules_of(made.concluded()).find("thread-churn"), std::string::npos);
    made.report.threads_created = 3000; // but all at once
    made.report.samples = 30000;
    EXPECT_EQ(rules_of(made.concluded()).find("thread-churn"), std::string::npos);
}

// On a busy machine each of ten thousand is seen for a moment only, before the program ends with all of them.
TEST(StatRules, ThreadsThatAreAllThereInTheEnd) {
    Case made;
    made.point(10000, 1.0, 0.2, 0.3).doing(Doing::kRunning, 0.9);
    made.report.points.front().most_threads = 10001;
    for (int i = 0; i < 10000; i++)
        made.thread(1.08 + i * 0.000002, 1.1);
    made.report.sampled_wall = 1.1;
    made.report.threads_created = 10000;
    EXPECT_EQ(rules_of(made.concluded()).find("thread-churn"), std::string::npos);
    made.report.points.front().most_threads = 1000;
    EXPECT_NE(rules_of(made.concluded()).find("thread-churn"), std::string::npos);
}

// Few of them, beside a lock that most of the time goes to.
TEST(StatRules, ThreadsThatComeAndGoBesideALock) {
    Case made;
    made.point(1, 0.5, 0.5, 0).point(4, 1.0, 1.5, 0.4).doing(Doing::kRunning, 1.9).doing(Doing::kLockWait, 1);
    made.lock(LockKind::kGlobal, "lock in prog", 2).waits({library("pthread_mutex_lock"), own("put")}, 100);
    for (int i = 0; i < 150; i++)
        made.thread(i * 0.003, i * 0.003 + 0.002);
    made.report.threads_created = 300;
    made.report.creations_counted = true;
    EXPECT_EQ(made.concluded().findings.front().rule, "hot-mutex");
    EXPECT_NE(rules_of(made.report).find("thread-churn"), std::string::npos);
}

// They cost one thread the same, so that two are nearly twice as fast.
TEST(StatRules, ThreadsThatComeAndGoInAProgramThatScales) {
    const auto made = [](unsigned created) {
        Case one;
        one.point(1, 0.3, 0.2, 0.1).point(2, 0.18, 0.22, 0.11).doing(Doing::kRunning, 0.3);
        one.report.samples = 50;
        one.report.threads_created = created;
        one.report.creations_counted = true;
        return one.concluded();
    };
    EXPECT_EQ(made(6000).outcome, Outcome::kScales);
    EXPECT_EQ(rules_of(made(6000)), "thread-churn");
    EXPECT_EQ(made(6000).verdict.rfind("Threads help: ", 0), 0U) << made(6000).verdict;
    EXPECT_EQ(rules_of(made(600)), "scales") << "600 of them take some 12 ms of 330";
}

// By their creator; else by their joiner; else by where they begin.
TEST(StatRules, WhereThreadsComeFrom) {
    Case made;
    made.point(1, 0.5, 0.2, 0.3).point(4, 0.5, 0.3, 0.6).doing(Doing::kRunning, 0.9);
    for (int i = 0; i < 150; i++)
        made.thread(i * 0.003, i * 0.003 + 0.002);
    made.report.threads_created = 150;
    made.burns({own("main", 90)}, 0.3, 0.3).burns({own("chew", 7), own("task", 12)}, 0.2, 0.2);
    const auto place = [&made] {
        made.concluded();
        return rules_of(made.report) + " " + made.report.findings.front().function + ":" +
               std::to_string(made.report.findings.front().line);
    };
    EXPECT_EQ(place(), "thread-churn task:12");
    Site joins;
    joins.stack = {library("pthread_join"), own("run", 70)};
    joins.doing = Doing::kJoinWait;
    made.report.others.push_back(joins);
    EXPECT_EQ(place(), "thread-churn run:70");
    Site maker;
    maker.stack = {library("pthread_create", "libthrum-stat.so"), own("start_round", 55), own("run", 68)};
    maker.calls = 150;
    maker.share = 1;
    made.report.makers.push_back(maker);
    EXPECT_EQ(place(), "thread-churn start_round:55");
    EXPECT_EQ(made.report.findings.front().cause,
              "Threads are created and end all the time in start_round()");
    EXPECT_NE(made.report.findings.front().fix.find("thrum compare"), std::string::npos);
    const auto &evidence = made.report.findings.front().evidence;
    for (const char *line : {"they are created in start_round() (prog.c:55)",
                             "they are joined in run() (prog.c:70)", "they begin in task() (prog.c:12)"})
        EXPECT_NE(std::find(evidence.begin(), evidence.end(), line), evidence.end()) << line;
}

TEST(StatRules, SpinningInALoopOfOnesOwn) {
    Case made;
    made.point(1, 0.5, 0.5, 0)
        .point(4, 0.9, 1.75, 0.02)
        .doing(Doing::kRunning, 1.75)
        .doing(Doing::kRunnable, 1.6);
    made.burns({own("await_turn"), own("take_turns", 30)}, 0.6, 0).burns({own("take_turns", 30)}, 0.4, 1);
    const Report &report = made.concluded();
    ASSERT_EQ(rules_of(report), "busy-wait");
    EXPECT_EQ(report.findings.front().function, "await_turn");
}

TEST(StatRules, SpinningWithSchedYield) {
    Case made;
    made.point(4, 0.9, 1, 0.75).doing(Doing::kRunning, 1.75).doing(Doing::kRunnable, 1.6);
    made.burns({library("sched_yield"), own("take")}, 0.3, 0).burns({own("work", 30)}, 0.7, 0);
    const Report &report = made.concluded();
    ASSERT_EQ(rules_of(report), "busy-wait");
    EXPECT_EQ(report.findings.front().confidence, Confidence::kHigh);
    EXPECT_EQ(report.findings.front().function, "take");

    Case blind;
    blind.point(1, 0.5, 0.5, 0).point(4, 0.9, 1, 0.75);
    blind.report.points.back().involuntary = 100000;
    blind.burns({own("work", 30)}, 0.97, 1);
    EXPECT_EQ(rules_of(blind.concluded()), "busy-wait");
    EXPECT_EQ(blind.report.findings.front().function, "") << "it was not seen";
    blind.burns({library("sched_yield"), own("take")}, 0.03, 0);
    EXPECT_EQ(rules_of(blind.concluded()), "busy-wait");
    EXPECT_EQ(blind.report.findings.front().function, "take");
}

// It does so without another thread to wait for as well.
TEST(StatRules, OneThreadThatYieldsDoesNotWait) {
    const auto made = [](double with_one) {
        Case one;
        one.point(1, 0.5, 0.5, 0).point(4, 0.9, 1, 0.75);
        one.burns({library("sched_yield"), own("turn")}, 0.57, with_one)
            .burns({own("work", 30)}, 0.43, 1 - with_one);
        return rules_of(one.concluded());
    };
    EXPECT_EQ(made(0.2), "busy-wait");
    EXPECT_EQ(made(0.8), "inconclusive");
}

// The surest is not the first where it explains little.
TEST(StatRules, WhatExplainsMoreComesFirst) {
    const auto made = [](double yielding) {
        Case one = random_case();
        one.report.waits.clear();
        one.report.locks.clear();
        one.doing(Doing::kLockWait, 0);
        one.burns({library("sched_yield"), own("relax")}, yielding, 0);
        return rules_of(one.concluded());
    };
    EXPECT_EQ(made(0.06), "hidden-lock busy-wait");
    EXPECT_EQ(made(0.35), "busy-wait hidden-lock");
}

TEST(StatRules, MemoryThatIsFoughtFor) {
    Case made;
    made.point(1, 0.4, 0.4, 0).point(2, 0.7, 1.4, 0).doing(Doing::kRunning, 1.4);
    made.burns({own("count"), own("worker", 30)}, 1, 1);
    const Report &report = made.concluded();
    ASSERT_EQ(rules_of(report), "false-sharing");
    EXPECT_EQ(report.findings.front().function, "count");
    EXPECT_EQ(report.findings.front().confidence, Confidence::kLow) << "a hint";
}

thrum::stat::HardwareCounts counts(double instructions, double cycles, double l1_misses) {
    thrum::stat::HardwareCounts made;
    made.instructions = instructions;
    made.cycles = cycles;
    made.l1_misses = l1_misses;
    return made;
}

// Where the processor counts, more than a hint: or not, if it counted nothing of the kind.
TEST(StatRules, MemoryThatIsFoughtForByTheProcessorsCounters) {
    const auto made = [](double cycles, double misses) {
        Case one;
        one.point(1, 1, 1, 0).point(2, 1.1, 2.2, 0).doing(Doing::kRunning, 2.2);
        one.burns({own("count"), own("worker")}, 1, 1);
        one.report.counters_one = counts(1e9, 0.7e9, 1e5);
        one.report.counters = counts(1e9, cycles, misses);
        return one;
    };
    Case shared = made(2e9, 2e7), slow = made(2e9, 1e5);
    const Finding &counted = shared.concluded().findings.at(0), &hint = slow.concluded().findings.at(0);
    EXPECT_EQ(counted.rule, "false-sharing");
    EXPECT_EQ(counted.confidence, Confidence::kMedium);
    EXPECT_EQ(counted.cause.find("a hint"), std::string::npos) << counted.cause;
    EXPECT_NE(
        std::find(counted.evidence.begin(), counted.evidence.end(),
                  "by the processor's counters 2.9x the cycles per instruction, and 40.0x the cache misses"),
        counted.evidence.end());
    EXPECT_EQ(hint.confidence, Confidence::kLow);
    EXPECT_NE(hint.cause.find("a hint"), std::string::npos) << hint.cause;
}

TEST(StatRules, CoherencyWhereTheLawSaysSo) {
    Case made;
    made.report.machine.processors = 8;
    for (const unsigned n : {1U, 2U, 4U, 8U}) {
        const double wall = (1 + 0.03 * n * (n - 1)) / n;
        made.point(n, wall, wall * n, 0);
    }
    made.report.scaling = thrum::stat::Scaling{0, 0.03, 0.01, 5};
    EXPECT_EQ(rules_of(made.concluded()).find("coherency"), 0U) << rules_of(made.report);
}

TEST(StatRules, ASequentialPart) {
    Case made;
    made.point(1, 1, 1, 0).point(2, 0.85, 1, 0).doing(Doing::kRunning, 1);
    made.thread(0, 0.85).thread(0.7, 0.85);
    made.burns({own("prepare", 7), own("main", 40)}, 0.7, 0.7)
        .burns({own("chew", 9), own("worker", 30)}, 0.3, 0.3);
    const Report &report = made.concluded();
    ASSERT_EQ(rules_of(report), "sequential");
    EXPECT_EQ(report.findings.front().function, "prepare");
    EXPECT_EQ(report.outcome, Outcome::kScalesSome);
}

TEST(StatRules, InputAndOutput) {
    Case made;
    made.point(1, 0.55, 0.01, 0.01)
        .point(4, 0.54, 0.01, 0.01)
        .doing(Doing::kInputOutput, 2)
        .doing(Doing::kRunning, 0.02);
    Site site;
    site.stack = {library("recv"), own("receive_answer")};
    site.doing = Doing::kInputOutput;
    made.report.others.push_back(site);
    const Report &report = made.concluded();
    ASSERT_EQ(rules_of(report), "io-bound");
    EXPECT_EQ(report.findings.front().function, "receive_answer");
}

TEST(StatRules, MoreThreadsThanCores) {
    Case made;
    made.point(1, 1, 1, 0).point(2, 0.5, 1, 0).point(32, 0.8, 1.55, 0.04);
    made.doing(Doing::kRunning, 1.6).doing(Doing::kRunnable, 20);
    EXPECT_EQ(rules_of(made.concluded()), "oversubscribed");
}

// On a machine of which the program may use a small part only, what others use is mostly of the rest.
TEST(StatRules, MoreThreadsThanTheCoresThatMayBeUsed) {
    Case made;
    made.point(1, 1, 1, 0).point(2, 0.5, 1, 0).point(32, 0.8, 1.55, 0.04).others(10);
    made.doing(Doing::kRunning, 1.6).doing(Doing::kRunnable, 20);
    made.report.host_processors = 64;
    EXPECT_EQ(rules_of(made.concluded()), "oversubscribed");
    made.report.host_processors = 16;
    EXPECT_EQ(rules_of(made.concluded()).find("oversubscribed"), std::string::npos);
}

TEST(StatRules, AThreadThatKeepsWaitingIsNotSequential) {
    Case made;
    made.point(1, 1, 0.03, 0.01, 800).point(4, 1, 0.03, 0.01, 820).doing(Doing::kRunning, 0.04);
    made.thread(0, 0.5, Doing::kRunnable);
    EXPECT_EQ(rules_of(made.concluded()), "inconclusive");
}

TEST(StatRules, ThreadsWithoutWork) {
    Case made;
    made.point(1, 0.45, 0.02, 0.01)
        .point(4, 0.45, 0.02, 0.01)
        .doing(Doing::kRunning, 0.03)
        .doing(Doing::kIdleWait, 1.6);
    EXPECT_EQ(rules_of(made.concluded()), "inconclusive");
    EXPECT_EQ(made.report.outcome, Outcome::kNoFaster);
}

// --- a busy machine -----------------------------------------------------------------------------------------

TEST(StatRules, ABusyMachineTellsNothing) {
    Case made;
    made.point(1, 1.6, 1, 0)
        .point(2, 1.5, 1, 0)
        .others(1.3)
        .doing(Doing::kRunning, 1)
        .doing(Doing::kRunnable, 1.4);
    made.report.points.front().run_delay = 0.6;
    made.report.points.back().run_delay = 1.4;
    const Report &report = made.concluded();
    EXPECT_EQ(report.outcome, Outcome::kInconclusive);
    EXPECT_EQ(rules_of(report), "inconclusive");
    EXPECT_EQ(report.findings.front().cause, "The machine was busy");
    EXPECT_NE(report.verdict.find("others used 1.3 of 2 CPUs"), std::string::npos) << report.verdict;
}

// Of a short run, and where /proc/stat is hidden, it is not known what others did.
TEST(StatRules, ABusyMachineByItsPressure) {
    const auto made = [](double waited, unsigned threads) {
        Case one;
        one.point(1, 1.1, 1, 0)
            .point(threads, 1.5, 1, 0)
            .doing(Doing::kRunning, 1)
            .doing(Doing::kRunnable, 1.4);
        one.report.points.back().run_delay = 1.4;
        for (Point &point : one.report.points) {
            point.load.others.reset();
            point.load.waited = waited;
        }
        return one.concluded().outcome;
    };
    EXPECT_EQ(made(0.6, 2), Outcome::kInconclusive);
    EXPECT_EQ(made(0.02, 2), Outcome::kSlower);
    EXPECT_EQ(made(0.6, 8), Outcome::kSlower) << "its own threads wait for each other";
}

TEST(StatRules, HarmlessLoadOfOthers) {
    Case made;
    made.point(1, 1, 1, 0).point(2, 0.52, 1, 0).others(0.3).doing(Doing::kRunning, 1);
    EXPECT_EQ(made.concluded().outcome, Outcome::kScales);
}

TEST(StatRules, LocksAreSeenOnABusyMachine) {
    Case made = random_case();
    made.others(1);
    for (Point &point : made.report.points)
        point.run_delay = 3;
    const Report &report = made.concluded();
    EXPECT_EQ(report.outcome, Outcome::kSlower)
        << "5.7 times the CPU time is more than any machine makes up for";
    EXPECT_EQ(report.findings.front().rule, "hidden-lock");
}

// Samples by the number, as a short run has few of them.
Site seen_burning(const std::vector<Frame> &stack, std::uint64_t samples, double all) {
    Site site;
    site.doing = Doing::kRunning;
    site.stack = stack;
    site.samples = samples;
    site.share = static_cast<double>(samples) / all;
    return site;
}

// Two others for each CPU: 4 threads get half a CPU, so one at a time runs as a rule, and its lock is held meanwhile.
Case hot_mutex_among_others() {
    Case made;
    made.point(1, 0.45, 0.238, 0).point(4, 0.44, 0.246, 0.007, 66).others(1.5);
    made.report.points.front().run_delay = 0.19;
    made.report.points.back().run_delay = 1.03;
    made.report.points.back().involuntary = 120;
    made.doing(Doing::kRunning, 0.285).doing(Doing::kRunnable, 1.27).doing(Doing::kLockWait, 0.3);
    made.lock(LockKind::kGlobal, "pot_lock in prog", 2.2, "pot_lock");
    made.waits({library("pthread_mutex_lock"), own("put")}, 17);
    const std::vector<Frame> lock = {library("pthread_mutex_lock"), own("put"), own("earn", 30)};
    const std::vector<Frame> unlock = {library("pthread_mutex_unlock"), own("put"), own("earn", 30)};
    const std::vector<Frame> held = {own("chew", 73), own("put"), own("earn", 30)};
    const std::vector<Frame> outside = {own("chew", 73), own("earn", 30)};
    made.report.burns = {seen_burning(lock, 6, 26), seen_burning(unlock, 11, 26), seen_burning(held, 6, 26),
                         seen_burning(outside, 3, 26)};
    made.report.burns_one = {seen_burning(lock, 13, 23), seen_burning(unlock, 8, 23),
                             seen_burning(outside, 1, 23), seen_burning(held, 1, 23)};
    return made;
}

TEST(StatRules, AHotMutexOnABusyMachine) {
    Case made = hot_mutex_among_others();
    ASSERT_EQ(rules_of(made.concluded()), "hot-mutex inconclusive") << text_of(made.report);
    EXPECT_EQ(made.report.findings.front().function, "put");
}

// What is done under a lock is the work, not the taking of the lock; and it takes more than a few samples to tell.
TEST(StatRules, ALockThatIsDearIsNotAroundEverything) {
    const auto made = [](double held, double outside) {
        Case one;
        one.point(1, 0.5, 0.5, 0).point(4, 0.52, 0.5, 0.02, 1000).doing(Doing::kRunning, 0.5);
        one.doing(Doing::kLockWait, 1.5).lock(LockKind::kGlobal, "pot_lock in prog", 1.5, "pot_lock");
        one.waits({library("pthread_mutex_lock"), own("put")}, 150);
        const double taking = 1 - held - outside;
        one.burns({library("pthread_mutex_lock"), own("put"), own("earn")}, taking, taking);
        one.burns({own("put"), own("earn")}, held, held).burns({own("earn")}, outside, outside);
        return rules_of(one.concluded());
    };
    EXPECT_EQ(made(0.9, 0.1), "one-lock");
    EXPECT_EQ(made(0.36, 0.04), "one-lock") << "nine tenths of the work, whatever the lock costs";
    EXPECT_EQ(made(0.2, 0.2), "hot-mutex") << "half of the work, although eight tenths of CPU time";
    EXPECT_EQ(made(0.09, 0.01), "hot-mutex") << "by ten samples";
}

// A queue, since its holder has no CPU; but threads fight for it much more often than it goes from one to the next.
TEST(StatRules, AQueueForAHotMutexIsNoConvoy) {
    const auto made = [](double taking, double alone) {
        Case one;
        one.point(1, 0.4, 0.4, 0).point(4, 0.9, 0.6, 0.5, 6600).doing(Doing::kRunning, 1.1);
        one.doing(Doing::kLockWait, 1.4).lock(LockKind::kGlobal, "pot_lock in prog", 2.2, "pot_lock");
        one.waits({library("pthread_mutex_lock"), own("put")}, 140);
        one.burns({library("pthread_mutex_lock"), own("put"), own("earn")}, taking, alone);
        one.burns({own("earn")}, 1 - taking, 1 - alone);
        return rules_of(one.concluded());
    };
    EXPECT_EQ(made(0.12, 0.02), "convoy") << "20 us for each switch";
    EXPECT_EQ(made(0.7, 0.02), "hot-mutex") << "117 us";
    EXPECT_EQ(made(0.12, 0.1), "hot-mutex") << "taken too often for a queue, as one thread alone shows";
}

// A thread that is woken takes a CPU from another; so do other programs.
TEST(StatRules, SwitchesThatAreNoYields) {
    const auto made = [](double voluntary, double others) {
        Case one;
        one.point(1, 0.5, 0.5, 0).point(4, 0.6, 0.5, 0.5, voluntary).others(others);
        one.report.points.back().involuntary = 9000;
        one.report.points.back().run_delay = 2;
        return rules_of(one.concluded()).find("busy-wait") != std::string::npos;
    };
    EXPECT_TRUE(made(100, 0.01));
    EXPECT_FALSE(made(22000, 0.01)) << "each may have been a waking";
    EXPECT_TRUE(made(100, 0.1));
    Case quiet; // that yields now and then
    quiet.point(1, 0.5, 0.5, 0).point(4, 0.6, 0.98, 0.02, 100);
    quiet.report.points.back().involuntary = 20000;
    EXPECT_NE(rules_of(quiet.concluded()).find("busy-wait"), std::string::npos);
    Case busy;
    busy.point(1, 0.9, 0.5, 0).point(4, 1.6, 0.42, 0.1).others(1.5);
    busy.report.points.back().involuntary = 4000;
    busy.report.points.back().run_delay = 2;
    busy.report.points.front().involuntary = 500;
    EXPECT_EQ(rules_of(busy.concluded()), "inconclusive") << "8 times as often as one thread";
    busy.report.points.back().involuntary = 40000;
    EXPECT_EQ(rules_of(busy.concluded()), "busy-wait inconclusive") << "80 times: others do not do that";
    busy.report.points.back().system = 0.002;
    EXPECT_EQ(rules_of(busy.concluded()), "inconclusive") << "nor does one that makes no calls";
}

// --- runs that are too short to tell ---

// A shell that starts another program: 30 switches in 4 ms are no habit. And one thread waits for no other.
TEST(StatRules, AFewSwitchesAreNoYields) {
    const auto made = [](unsigned threads, double cpu) {
        Case one;
        one.point(0, 1.2 * cpu, 0.9 * cpu, 0.1 * cpu, 1250 * cpu);
        one.report.points.back().most_threads = threads;
        one.report.points.back().involuntary = 7500 * cpu;
        return rules_of(one.concluded()).find("busy-wait") != std::string::npos;
    };
    EXPECT_FALSE(made(1, 0.004));
    EXPECT_FALSE(made(2, 0.004));
    EXPECT_FALSE(made(1, 0.5));
    EXPECT_TRUE(made(2, 0.5));
}

// Ten samples, of which one was in sched_yield().
TEST(StatRules, AFewSamplesAreNoYields) {
    const auto made = [](double weight) {
        Case one;
        one.point(4, 0.9, 1, 0.75).doing(Doing::kRunning, 1.75);
        one.burns({library("sched_yield"), own("take")}, 0.1, 0).burns({own("work", 30)}, 0.9, 0);
        for (Site &site : one.report.burns)
            site.samples = static_cast<std::uint64_t>(static_cast<double>(site.samples) * weight);
        return rules_of(one.concluded()).find("busy-wait") != std::string::npos;
    };
    EXPECT_TRUE(made(1));
    EXPECT_FALSE(made(0.1));
}

// Likewise at an OpenMP barrier, and in a lock's calls: twelve samples.
TEST(StatRules, AFewSamplesAreNoBarrierAndNoLock) {
    const auto made = [](const std::vector<Frame> &stack, double weight) {
        Case one;
        one.point(1, 0.5, 0.5, 0).point(2, 0.5, 0.95, 0.02).doing(Doing::kRunning, 0.97);
        one.burns(stack, 0.4, 0).burns({own("work", 30)}, 0.6, 1);
        for (std::vector<Site> *burns : {&one.report.burns, &one.report.burns_one})
            for (Site &site : *burns)
                site.samples = static_cast<std::uint64_t>(static_cast<double>(site.samples) * weight);
        return rules_of(one.concluded());
    };
    const std::vector<Frame> barrier = {library("", "libgomp.so.1"), library("GOMP_barrier", "libgomp.so.1"),
                                        own("step._omp_fn.0", 12)},
                             lock = {library("malloc"), own("make")};
    EXPECT_EQ(made(barrier, 1), "busy-wait");
    EXPECT_EQ(made(barrier, 0.12).find("busy-wait"), std::string::npos) << made(barrier, 0.12);
    EXPECT_EQ(made(lock, 1), "allocator");
    EXPECT_EQ(made(lock, 0.12).find("allocator"), std::string::npos) << made(lock, 0.12);
}

// Where the whole run takes 4 ms, making the threads is what more of them cost.
TEST(StatRules, TooShortToTell) {
    const auto memory = [](double seconds) {
        Case one;
        one.point(1, seconds, seconds, 0).point(2, seconds, 1.6 * seconds, 0);
        return one.concluded();
    };
    EXPECT_EQ(rules_of(memory(0.4)), "false-sharing");
    EXPECT_EQ(rules_of(memory(0.004)), "inconclusive");
    EXPECT_EQ(memory(0.004).findings.front().cause, "The runs are too short: 4.00 ms each");

    const auto oversubscribed = [](double seconds) {
        Case one;
        one.point(0, seconds, 1.9 * seconds, 0);
        one.report.points.front().most_threads = 16;
        one.doing(Doing::kRunning, 1.9 * seconds).doing(Doing::kRunnable, 12 * seconds);
        return rules_of(one.concluded());
    };
    EXPECT_EQ(oversubscribed(0.5), "oversubscribed");
    EXPECT_EQ(oversubscribed(0.005).find("oversubscribed"), std::string::npos) << oversubscribed(0.005);

    const auto sequential = [](double seconds) {
        Case one;
        one.point(1, seconds, seconds, 0, 0).point(2, 0.85 * seconds, seconds, 0, 0);
        one.doing(Doing::kRunning, seconds);
        one.thread(0, 0.85 * seconds).thread(0.4 * seconds, 0.85 * seconds);
        return rules_of(one.concluded());
    };
    EXPECT_EQ(sequential(1), "sequential");
    EXPECT_NE(sequential(0.01), "sequential");

    const auto coherency = [](double seconds) {
        Case one;
        one.report.machine.processors = 4;
        for (const unsigned n : {1U, 2U, 3U, 4U}) {
            const double wall = seconds / n * (1 + 0.02 * (n - 1) + 0.3 * n * (n - 1));
            one.point(n, wall, wall * n, 0);
        }
        one.report.scaling = thrum::stat::Scaling{0.02, 0.3, 0.01, 2};
        return rules_of(one.concluded()).find("coherency") != std::string::npos;
    };
    EXPECT_TRUE(coherency(1));
    EXPECT_FALSE(coherency(0.005));
}

// One look found a thread waiting; and a few waits of a short run, counted, come to a high rate.
TEST(StatRules, AWaitOrTwoAreNoDisease) {
    const auto seen = [](std::uint64_t samples) {
        Case one;
        one.point(0, 0.05, 0.08, 0).doing(Doing::kRunning, 0.08).doing(Doing::kLockWait, 0.02);
        one.report.points.front().most_threads = 3;
        one.lock(LockKind::kGlobal, "lock in prog", 1)
            .waits({library("pthread_mutex_lock"), own("put")}, samples);
        return rules_of(one.concluded()).find("hot-mutex") != std::string::npos;
    };
    EXPECT_FALSE(seen(1));
    EXPECT_TRUE(seen(6));
    const auto counted = [](std::uint64_t calls) {
        Case one;
        one.point(0, 0.05, 0.02, 0).doing(Doing::kRunning, 0.02);
        one.report.points.front().most_threads = 3;
        one.lock(LockKind::kGlobal, "lock in prog", 1).waits({library("pthread_mutex_lock"), own("put")}, 0);
        one.report.waits.front().calls = calls;
        one.report.waits.front().seconds = 0.03;
        return rules_of(one.concluded()).find("hot-mutex") != std::string::npos;
    };
    EXPECT_FALSE(counted(60));
    EXPECT_TRUE(counted(600));
}

// A loop that was not there before has to be paid for, and to have been seen often enough.
TEST(StatRules, SpinningTakesCpuTime) {
    const auto made = [](double user, double weight) {
        Case one;
        one.point(1, 0.5, 0.5, 0).point(4, 0.9, user, 0.02);
        one.burns({own("chew"), own("earn", 30)}, 0.6, 0.04).burns({own("earn", 30)}, 0.4, 0.96);
        for (std::vector<Site> *burns : {&one.report.burns, &one.report.burns_one})
            for (Site &site : *burns)
                site.samples = static_cast<std::uint64_t>(static_cast<double>(site.samples) * weight);
        return rules_of(one.concluded()).find("busy-wait") != std::string::npos;
    };
    EXPECT_TRUE(made(1.2, 1));
    EXPECT_FALSE(made(0.55, 1)) << "it took no more CPU time than before";
    EXPECT_FALSE(made(1.2, 0.1)) << "ten samples";
}

// Others had the CPUs by turns: what is left of one thread's work is not what only one could do.
TEST(StatRules, ASequentialPartOnABusyMachine) {
    const auto busy = [] {
        Case made;
        made.point(1, 2, 1, 0).point(4, 2, 1, 0).others(1.4);
        made.report.points.back().run_delay = 3;
        made.doing(Doing::kRunning, 1).doing(Doing::kRunnable, 3);
        return made;
    };
    Case delayed = busy(); // 60 % of the time one alone wants a CPU, and all do the same work
    delayed.slowed(0, 1.2, 0.25).slowed(1.2, 2, 0.25).slowed(1.2, 2, 0.25).slowed(1.2, 2, 0.25);
    EXPECT_EQ(rules_of(delayed.concluded()), "inconclusive");
    Case prepared = busy(); // one has done seven tenths of it before there were others
    prepared.slowed(0, 1.4, 0.7).slowed(1.4, 2, 0.1).slowed(1.4, 2, 0.1).slowed(1.4, 2, 0.1);
    ASSERT_EQ(rules_of(prepared.concluded()), "sequential inconclusive");
    EXPECT_EQ(prepared.report.findings.front().evidence.front(), "75 % of the time only one thread had work");
    Case turns = busy(); // two take turns, at a barrier say, and their creator waits
    turns.slowed(0, 0.01, 0).slowed(0, 1, 0.5).slowed(1, 2, 0.5);
    turns.report.threads.back().spans.front().end = 1.9;
    turns.slowed(1.9, 2, 0.001);
    EXPECT_EQ(rules_of(turns.concluded()), "inconclusive");
    Case left_over = busy(); // the same, but in the end
    left_over.slowed(0.6, 2, 0.7).slowed(0, 0.6, 0.1).slowed(0, 0.6, 0.1).slowed(0, 0.6, 0.1);
    EXPECT_EQ(rules_of(left_over.concluded()), "inconclusive") << "others may have been let in first";
}

// Of a program that loses with more threads than cores: what is not for their sake.
TEST(StatRules, LossesThatAreNotOversubscription) {
    const auto made = [](double two, double four, double others, double waits) {
        Case one;
        one.point(1, 1, 1, 0).point(2, two, 1, 0).point(4, four, 1.3, 0);
        one.doing(Doing::kRunning, 1.3).doing(Doing::kRunnable, 1.2).doing(Doing::kLockWait, waits);
        one.report.points.back().load.others = others;
        return rules_of(one.concluded()).find("oversubscribed") != std::string::npos;
    };
    EXPECT_TRUE(made(0.62, 0.7, 0.01, 0));
    EXPECT_FALSE(made(0.62, 0.7, 0.19, 0)) << "others took a tenth of the machine";
    EXPECT_FALSE(made(0.62, 0.7, 0.01, 0.6)) << "threads wait for a lock";
    EXPECT_FALSE(made(1.36, 1.56, 0.01, 0)) << "two threads are slower than one already";
    EXPECT_TRUE(made(1.1, 1.56, 0.01, 0));
}

// Four threads on two CPUs that others use as well, in one run.
TEST(StatRules, OneRunOnABusyMachine) {
    const auto made = [](double others) {
        Case one;
        one.point(0, 1, 1.2, 0).others(others);
        one.report.points.front().most_threads = 9;
        one.doing(Doing::kRunning, 1.2).doing(Doing::kRunnable, 7);
        return rules_of(one.concluded());
    };
    EXPECT_EQ(made(0.01), "oversubscribed");
    EXPECT_EQ(made(0.8), "inconclusive");
}

// CPU time is dearer beside other programs.
TEST(StatRules, MemoryThatOthersMadeDear) {
    const auto made = [](double most) {
        Case one;
        one.point(1, 0.6, 0.4, 0).point(2, 0.9, 0.62, 0).point(4, 1, most, 0).others(1.3);
        for (Point &point : one.report.points)
            point.run_delay = 1;
        return rules_of(one.concluded()).find("false-sharing") != std::string::npos;
    };
    EXPECT_FALSE(made(0.42));
    EXPECT_FALSE(made(0.85)) << "2.1 times as much, for two cores";
    EXPECT_TRUE(made(0.9));
}

// The kernel's accounts of a few ticks are all or nothing.
TEST(StatRules, TheKernelsShareOfLittleTimeIsNotKnown) {
    const auto made = [](double seconds) {
        Case one;
        one.point(1, seconds, seconds, 0)
            .point(4, 2 * seconds, 0, 2 * seconds)
            .doing(Doing::kRunning, seconds);
        return text_of(one.concluded());
    };
    EXPECT_NE(made(0.1).find("100 % of CPU is in the kernel"), std::string::npos) << made(0.1);
    EXPECT_EQ(made(0.02).find("% of CPU is in the kernel"), std::string::npos) << made(0.02);
    EXPECT_NE(made(0.02).find("kernel's share: unknown"), std::string::npos);
    Case storm;
    storm.point(1, 0.02, 0, 0.02).point(2, 0.02, 0, 0.03);
    storm.report.samples = 3;
    storm.report.threads_created = 500;
    ASSERT_EQ(rules_of(storm.concluded()), "thread-churn");
    for (const std::string &line : storm.report.findings.front().evidence)
        EXPECT_EQ(line.find("in the kernel"), std::string::npos) << line;
}

TEST(StatRules, AProgramThatFailed) {
    Case made;
    made.point(1, 1, 1, 0).point(2, 0.2, 0.3, 0);
    const Report &report =
        made.concluded("the program was ended by signal 11 (Segmentation fault) with 2 threads");
    EXPECT_EQ(report.outcome, Outcome::kInconclusive);
    EXPECT_NE(report.verdict.find("signal 11"), std::string::npos);
    EXPECT_EQ(rules_of(report), "inconclusive");
}

TEST(StatRules, NothingAtAll) {
    Report report;
    conclude(report, "");
    EXPECT_EQ(report.outcome, Outcome::kInconclusive);
    EXPECT_FALSE(text_of(report).empty());
}

// --- text ---------------------------------------------------------------------------------------------------

TEST(StatText, TheFormOfAReport) {
    Case made = random_case();
    made.report.switch_cost = 3.1e-6;
    made.report.scaling_text = "Retrograde: best at 1 thread (no scaling model fitted).";
    made.report.threads_created = made.report.threads_joined = 4;
    made.report.threads_counted = made.report.creations_counted = true;
    made.concluded();
    const std::string text = text_of(made.report);
    for (const char *part :
         {"VERDICT  Threads make this program SLOWER: 4 threads take 3.4x the time of 1\n         (3.1x to "
          "3.7x).\n",
          "CAUSE    Hidden lock in libc: random()                          confidence: high\n",
          "FIX      Use random_r() with per-thread state.\n",
          " threads     wall   speedup    interval      cpu   parallel\n",
          "       4   1.08 s     0.30x               1.83 s       1.69  ###\n",
          " Retrograde: best at 1 thread",
          "WHERE waiting happened (109 samples at 100 Hz; join and idle waits excluded)\n",
          "   99%  random <- draw (prog.c:21) <- has_dup <- worker\n",
          "        lock: libc.so.6 .data (static lock inside libc)\n",
          "LOST     1.51 s CPU above 1 thread; 44 % of CPU is in the kernel;\n",
          "788 voluntary switches x 3.1 us (measured) = 2.4 ms: most waits spun\n",
          "ALSO     threads: 4 created, 4 joined (ok)    runnable/cores: 1.4 (ok)\n",
          "NOISE    CPU pressure from others: low        next: thrum stat --exact | --html\n"})
        EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(StatText, NamesThatAreTooLongForTheirColumn) {
    Case made = random_case();
    made.burns({library("memmove_avx512_unaligned_erms"), library("qsort"), own("count_shared", 39)}, 0.9,
               0.8);
    made.burns({library(std::string(70, 'y').c_str()), own("count_shared", 40)}, 0.85, 0.8);
    const std::string text = text_of(made.concluded());
    EXPECT_NE(text.find("\n  memmove_avx512_unaligned_erms <- count_shared               80%"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("\n  " + std::string(52, 'y') + " "), std::string::npos) << text;
}

// C++ has long names: where in the program it is comes first.
TEST(StatText, ThePlaceInTheProgramIsAlwaysShown) {
    Case made = random_case();
    Frame guard = own("std::lock_guard<std::mutex>::lock_guard", 0);
    guard.file.clear();
    made.report.waits.front().stack = {
        guard, own(("company::" + std::string(60, 'x') + "::insert").c_str(), 11), own("main", 20)};
    const std::string text = text_of(made.concluded());
    EXPECT_NE(text.find("xx::insert (prog.c:11)\n"), std::string::npos) << text;
    for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
        EXPECT_LE(end - begin, 80U) << text.substr(begin, end - begin);
}

TEST(StatText, AProcessThatRanAlready) {
    Case made = random_case();
    made.report.is_attached = true;
    made.report.sampled_threads = 4;
    made.report.threads_created = 0;
    const std::string text = text_of(made.concluded());
    EXPECT_NE(text.find("ALSO     4 threads at once at most, 0 new"), std::string::npos) << text;
    EXPECT_EQ(text.find("--exact"), std::string::npos) << "it cannot be had";
}

// A lock that waits were counted for, and that was never seen waited for.
TEST(StatRules, CountedWaitsAreEvidence) {
    Case made = random_case();
    made.report.locks.front().waits = 7646;
    made.report.locks.front().waiters_most = 0;
    const std::vector<std::string> &evidence = made.concluded().findings.front().evidence;
    const auto says = [&evidence](const std::string &piece) {
        return std::any_of(evidence.begin(), evidence.end(), [&piece](const std::string &line) {
            return line.find(piece) != std::string::npos;
        });
    };
    EXPECT_TRUE(says("7646 waits for it counted"));
    EXPECT_FALSE(says("at most"));
}

TEST(StatText, WhatIsCountedWhereThatIsAllowed) {
    Case made = random_case();
    made.report.counters_one = counts(43.4e9, 29.7e9, 0);
    made.report.counters = counts(248.9e9, 488e9, 0);
    made.report.counters->cache_misses = 248.9e7;
    made.report.switched = thrum::stat::Switched{1.83, 0.21, 1.05, 12, 788};
    const std::string text = text_of(made.concluded());
    for (const char *part :
         {"         instructions per cycle: 1.46 with 1 thread, 0.51 with 4\n",
          "         cache misses per 1000 instructions: 0.00 with 1 thread, 10.00 with 4\n",
          "counted: 1.8 s on CPUs, 210 ms preempted (12 times), 1.1 s asleep (788\n"})
        EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
    made.report.exact_wall = 0.5;
    EXPECT_NE(text_of(made.report).find("counted, in a run of 500 ms: 1.8 s on CPUs"), std::string::npos);
    made.report.exact = made.report.exact_estimated = true;
    EXPECT_NE(text_of(made.report).find("WHERE waiting happened (counted, places of some; join and idle"),
              std::string::npos);
    Case without = random_case();
    EXPECT_EQ(text_of(without.concluded()).find("instructions per cycle"), std::string::npos);
    EXPECT_EQ(text_of(without.report).find("counted:"), std::string::npos);
}

// What differs further out than there is room is no row of its own.
TEST(StatRules, RowsThatLookAlikeAreOne) {
    const std::string far(40, 'f');
    const auto stack = [&far](const std::string &outermost) {
        return std::vector<Frame>{library("random"), own("draw"), own(far.c_str(), 25),
                                  own(outermost.c_str(), 33)};
    };
    Case made;
    made.point(1, 1, 1, 0).point(2, 1, 2, 0).doing(Doing::kRunning, 1).doing(Doing::kLockWait, 1);
    made.lock(LockKind::kLibrary, "libc.so.6 .data (static lock inside libc)", 1);
    made.waits({library("putc"), own("put")}, 40, 0.4);
    made.waits(stack(std::string(40, 'a')), 35, 0.35).waits(stack(std::string(40, 'b')), 25, 0.25);
    const std::string text = text_of(made.concluded());
    const std::size_t one = text.find("60%  random <- draw (prog.c:21) <- " + far);
    EXPECT_NE(one, std::string::npos) << text;
    EXPECT_GT(text.find("40%  putc <- put (prog.c:21)"), one) << text;
    EXPECT_EQ(text.find("35%"), std::string::npos) << text;
}

TEST(StatText, NoLineIsTooLong) {
    Case made = random_case();
    made.report.waits.front().stack[2].function = std::string(300, 'x');
    made.report.warnings = {
        "a warning that goes on and on, as warnings do, until there is no room left on its line"};
    made.concluded();
    std::istringstream lines(text_of(made.report));
    for (std::string line; std::getline(lines, line);)
        EXPECT_TRUE(line.size() <= 80 || line.find("xxx") != std::string::npos) << line;
}

// --- Python ---------------------------------------------------------------------------------------------------

Frame python(const char *function, int line) {
    Frame frame = own(function, line);
    frame.file = "prog.py";
    frame.module = "python3.11";
    return frame;
}

// What the interpreter does for a function is that function's; and a lock in a module of the program's is not the
// interpreter's.
TEST(StatRules, PythonFunctionsBurnTheTime) {
    Case made;
    made.point(1, 1, 1, 0).point(2, 1, 1, 0).doing(Doing::kRunning, 1);
    const Frame evaluates = library("_PyEval_EvalFrameDefault", "python3.11");
    made.burns({evaluates, python("compute", 17)}, 0.5, 0.5);
    made.burns({library("_PyLong_Add", "python3.11"), evaluates, python("compute", 18)}, 0.2, 0.2);
    made.burns({library("sha256", "libcrypto.so.3"), evaluates, python("digest", 22)}, 0.3, 0.3);
    const thrum::stat::Facts facts(made.concluded());
    ASSERT_EQ(facts.burners.size(), 2U);
    EXPECT_EQ(facts.burners[0].leaf, "compute");
    EXPECT_NEAR(facts.burners[0].share, 0.7, 1e-9);
    EXPECT_EQ(facts.burners[1].leaf, "sha256");
    EXPECT_EQ(facts.burners[1].place.function, "digest");
    const std::string text = text_of(made.report);
    EXPECT_NE(text.find("  compute (prog.py:17)"), std::string::npos) << text;
}

// A reader looks for them there: only libc's own have other names in front of its callers.
TEST(StatRules, FunctionsAreCalledAsInTheSource) {
    Case made;
    made.point(1, 1, 1, 0).point(2, 1, 1, 0).doing(Doing::kRunning, 1);
    made.burns({own("_add"), own("work")}, 0.4, 0.4).burns({own("add"), own("work")}, 0.3, 0.3);
    made.burns({library("_Unwind_Find_FDE", "libgcc_s.so.1"), own("throws")}, 0.2, 0.2);
    made.burns({library("__random", "libc.so.6"), own("draw")}, 0.1, 0.1);
    const thrum::stat::Facts facts(made.concluded());
    ASSERT_EQ(facts.burners.size(), 4U);
    EXPECT_EQ(facts.burners[0].leaf, "_add");
    EXPECT_EQ(facts.burners[1].leaf, "add");
    EXPECT_EQ(facts.burners[2].leaf, "_Unwind_Find_FDE");
    EXPECT_EQ(facts.burners[3].leaf, "random");
}

TEST(StatRules, ALockOfAPythonModulesOwn) {
    Case made;
    made.point(1, 1, 1, 0).point(2, 1.2, 2, 0).doing(Doing::kRunning, 2).doing(Doing::kLockWait, 0.8);
    made.lock(LockKind::kGlobal, "module.so .bss guard (global of the program)", 1, "guard");
    Frame module = own("accumulate", 9);
    module.module = "module.so";
    made.waits({library("pthread_mutex_lock"), module, library("_PyEval_EvalFrameDefault", "python3.11"),
                python("compute", 17)},
               80);
    EXPECT_EQ(rules_of(made.concluded()), "hot-mutex") << text_of(made.report);
}

// --- the document -------------------------------------------------------------------------------------------

TEST(StatRules, TheDocumentHasThemAll) {
    const std::string document = read_file(CLI_DOCS "/guide/stat.md");
    for (const std::string &name : thrum::stat::rule_names())
        EXPECT_NE(document.find("`" + name + "`"), std::string::npos) << name;
}

// --- libraries without names --------------------------------------------------------------------------------

std::vector<std::string> warnings_of(double share, const Frame &inner) {
    Case made;
    made.point(1, 1, 1, 0).point(2, 1, 1, 0);
    made.burns({inner, own("multiply")}, share, 0).burns({own("work")}, 1 - share, 1);
    made.burns({library("", "libc.so.6"), library("malloc"), own("make")}, 0.1, 0);
    return made.concluded().warnings;
}

TEST(StatRules, LibrariesWithoutNames) {
    const std::vector<std::string> said = warnings_of(0.6, library("", "libblas.so.3"));
    ASSERT_EQ(said.size(), 1U) << "libc's function is known by what calls it";
    EXPECT_EQ(said.front(), "no debugging information: libblas.so.3, a system library; functions in it, "
                            "which 60 % of CPU time went through, are unknown");
    EXPECT_TRUE(warnings_of(0.6, library("dgemm", "libblas.so.3")).empty());
    EXPECT_TRUE(warnings_of(0.02, library("", "libblas.so.3")).empty());
    for (const char *memory : {"[vdso]", "(unknown)", "//anon", ""})
        EXPECT_TRUE(warnings_of(0.6, library("", memory)).empty()) << memory;
    Case waits;
    waits.point(1, 1, 1, 0).point(2, 1, 1, 0);
    waits.lock(LockKind::kLibrary, "libpool.so.1 .bss (static lock inside libpool)", 1)
        .waits({library("pthread_mutex_lock"), library("", "libpool.so.1")}, 60);
    ASSERT_EQ(waits.concluded().warnings.size(), 1U);
    EXPECT_NE(waits.report.warnings.front().find("libpool.so.1"), std::string::npos);
    EXPECT_NE(waits.report.warnings.front().find("100 % of waits for locks"), std::string::npos);
}

// --- what the host tells ------------------------------------------------------------------------------------

// A folder with what the kernel's folders would have in them.
class Host {
  public:
    Host() {
        char name[] = "/tmp/thrum-host-XXXXXX";
        EXPECT_NE(mkdtemp(name), nullptr);
        root_ = name;
    }
    ~Host() { std::filesystem::remove_all(root_); }
    Host &file(const std::string &path, const std::string &text) {
        std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
        std::ofstream(root_ + path) << text << '\n';
        return *this;
    }
    double quota() const { return thrum::stat::cpu_quota(root_).value_or(0); } // 0: none
    const std::string &root() const { return root_; }

  private:
    std::string root_;
};

TEST(StatRules, AQuotaOfTheControlGroup) {
    Host one;
    EXPECT_EQ(one.quota(), 0) << "no control groups";
    one.file("/proc/self/cgroup", "0::/user/session");
    EXPECT_EQ(one.quota(), 0);
    one.file("/sys/fs/cgroup/user/session/cpu.max", "max 100000");
    EXPECT_EQ(one.quota(), 0);
    one.file("/sys/fs/cgroup/user/cpu.max", "250000 100000");
    EXPECT_DOUBLE_EQ(one.quota(), 2.5) << "of a group around it";
    one.file("/sys/fs/cgroup/user/session/cpu.max", "150000 100000");
    EXPECT_DOUBLE_EQ(one.quota(), 1.5) << "the narrowest";
    one.file("/sys/fs/cgroup/user/session/cpu.max", "400000 100000");
    EXPECT_DOUBLE_EQ(one.quota(), 2.5);

    Host container; // its folder stands for its own group, whose name is the host's
    container.file("/proc/self/cgroup", "0::/").file("/sys/fs/cgroup/cpu.max", "50000 100000");
    EXPECT_DOUBLE_EQ(container.quota(), 0.5);
}

TEST(StatRules, AQuotaOfTheControlGroupsFirstVersion) {
    Host one;
    one.file("/proc/self/cgroup",
             "5:cpuset:/elsewhere\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc");
    const std::string folder = "/sys/fs/cgroup/cpu/docker/abc/";
    one.file("/sys/fs/cgroup/cpu/elsewhere/cpu.cfs_quota_us", "1000")
        .file("/sys/fs/cgroup/cpu/elsewhere/cpu.cfs_period_us", "100000");
    one.file(folder + "cpu.cfs_quota_us", "-1").file(folder + "cpu.cfs_period_us", "100000");
    EXPECT_EQ(one.quota(), 0);
    one.file(folder + "cpu.cfs_quota_us", "300000");
    EXPECT_DOUBLE_EQ(one.quota(), 3);
    one.file(folder + "cpu.cfs_period_us", "0");
    EXPECT_EQ(one.quota(), 0) << "nonsense";

    Host container; // which does not see the folder that its group is named after
    container.file("/proc/self/cgroup", "4:cpu,cpuacct:/docker/abc")
        .file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000")
        .file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
    EXPECT_DOUBLE_EQ(container.quota(), 2);
}

TEST(StatRules, CoresBehindTheCpus) {
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    Host pairs, single, silent;
    std::set<unsigned> cores;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        const std::string file =
            "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list";
        if (!CPU_ISSET(cpu, &allowed))
            continue;
        cores.insert(cpu / 2);
        pairs.file(file, std::to_string(cpu / 2 * 2) + "-" + std::to_string(cpu / 2 * 2 + 1));
        single.file(file, std::to_string(cpu));
    }
    EXPECT_EQ(thrum::stat::physical_cores(pairs.root()), cores.size());
    EXPECT_EQ(thrum::stat::physical_cores(single.root()), static_cast<unsigned>(CPU_COUNT(&allowed)));
    EXPECT_EQ(thrum::stat::physical_cores(silent.root()), 0U);
}

TEST(StatRules, WhatWouldHelpToReadAProcess) {
    const auto said = [](int scope, bool is_root) { return thrum::process::what_would_help(scope, is_root); };
    EXPECT_EQ(said(0, false), "; try as its user or as root");
    for (const int scope : {1, 2})
        EXPECT_EQ(said(scope, false), "; kernel.yama.ptrace_scope is " + std::to_string(scope) +
                                          ": try as root, or with that set to 0 as its user");
    for (const int scope : {0, 1, 2})
        EXPECT_NE(said(scope, true).find("root needs CAP_SYS_PTRACE"), std::string::npos) << scope;
    for (const bool is_root : {false, true})
        EXPECT_EQ(said(3, is_root),
                  "; kernel.yama.ptrace_scope is 3, which forbids it to all users until the next boot");
}

// --- what looking costs -------------------------------------------------------------------------------------

using thrum::stat::thread_cpu_time;

void burn(double seconds) {
    for (const double begin = thread_cpu_time(); thread_cpu_time() - begin < seconds;)
        continue;
}

class NoProfile : public thrum::stat::CpuProfile {
  public:
    void poll(double) override {}
    void finish() override {}
};

// Ten seconds of samples that take a millisecond each to look at: there are fewer of them then, and each stands for more.
TEST(Sampler, DearSamplesBecomeFewer) {
    constexpr double kPeriod = 0.01, kDear = 1e-3;
    NoProfile profile;
    thrum::stat::SampleKeeper keeper(profile);
    const double begin = thread_cpu_time();
    for (int i = 1; i <= 1000; i++) {
        keeper.begin(i * kPeriod, i == 1000);
        if (keeper.are_paid_for()) {
            burn(kDear);
            keeper.add({i * kPeriod, 7, kPeriod}, {});
        } else {
            keeper.pass_over(kPeriod);
        }
        keeper.end();
    }
    // Four parts in a thousand, 5 ms to begin with, two samples more (the last one is for nothing), and what this loop takes itself.
    EXPECT_LT(thread_cpu_time() - begin, 0.004 * 10 + 0.005 + 2 * kDear + 0.03);
    EXPECT_GT(profile.samples.size(), 20U);
    EXPECT_LT(profile.samples.size(), 60U);
    double weight = 0;
    for (const thrum::stat::CpuSample &sample : profile.samples)
        weight += sample.weight;
    EXPECT_NEAR(weight, 10, 1e-6) << "nothing is lost by that";
}

// Of two threads that use as much, samples come in the same order always: neither gets what was passed over.
TEST(Sampler, WhatIsPassedOverIsEverybodys) {
    constexpr double kPeriod = 0.01;
    NoProfile profile;
    thrum::stat::SampleKeeper keeper(profile);
    for (int i = 1; i <= 1000; i++) {
        keeper.begin(i * kPeriod, i == 1000);
        if (keeper.are_paid_for())
            burn(1e-3);
        for (const int thread : {7, 8})
            if (keeper.are_paid_for())
                keeper.add({i * kPeriod, thread, kPeriod}, {});
            else
                keeper.pass_over(kPeriod);
        keeper.end();
    }
    std::map<int, double> weights;
    for (const thrum::stat::CpuSample &sample : profile.samples)
        weights[sample.thread] += sample.weight;
    EXPECT_LT(profile.samples.size(), 200U);
    EXPECT_NEAR(weights[7], 10, 1e-6);
    EXPECT_NEAR(weights[8], 10, 1e-6);
}

TEST(Sampler, CheapSamplesAreAllThere) {
    NoProfile profile;
    thrum::stat::SampleKeeper keeper(profile);
    for (int i = 1; i <= 100; i++) {
        keeper.begin(i * 0.1, false);
        if (keeper.are_paid_for())
            keeper.add({i * 0.1, 7, 0.01}, {});
        keeper.end();
    }
    EXPECT_EQ(profile.samples.size(), 100U);
}

// What polls take of this thread's CPU time, and of how long they were made.
struct Polled {
    double cpu = 0, seconds = 0;
};

Polled polled(thrum::stat::Layer &layer, double begin, double seconds, unsigned pause_us) {
    const double from = thrum::seconds_now();
    Polled sum;
    while ((sum.seconds = thrum::seconds_now() - from) < seconds) {
        const double before = thread_cpu_time();
        layer.poll(thrum::seconds_now() - begin);
        sum.cpu += thread_cpu_time() - before;
        usleep(pause_us);
    }
    return sum;
}

// To look at all of them 200 times a second would take more than a CPU.
TEST(Sampler, ManyThreadsCostNoMoreThanTheBudget) {
    constexpr double kBudget = 0.02;
    thrum::stat::Sampler sampler(200, kBudget);
    Child child({CLI_SAMPLED_O2, "sleep", "1000"});
    sampler.forked(child.pid());
    child.go();
    const double begin = thrum::seconds_now();
    const Polled sum = polled(sampler, begin, 2, 5000);
    EXPECT_GT(sampler.samples.size(), 100U);
    // What is owed in the end, after the list of all of them say, is paid back later.
    EXPECT_LT(sum.cpu, kBudget * sum.seconds + 0.005 + 0.04);
}

// Of a process that has very many mappings, when something new is mapped all the time.
TEST(Sampler, LongMapsAreReadSeldom) {
    constexpr std::size_t kPage = 65536, kPages = 4000; // pages of any machine fit into that
    auto *const many = static_cast<char *>(
        mmap(nullptr, kPages * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    ASSERT_NE(many, MAP_FAILED);
    for (std::size_t i = 0; i < kPages; i += 2)
        ASSERT_EQ(mprotect(many + i * kPage, kPage, PROT_READ), 0);
    std::vector<thrum::stat::Maps> maps;
    thrum::stat::MapReader reader(maps, true);
    reader.begin(getpid());
    const double begin = thread_cpu_time();
    reader.poll(0.3);
    const double once = thread_cpu_time() - begin;
    EXPECT_GT(maps.back().text.size(), kPages * 20);
    for (int i = 1; i <= 1000; i++) {
        reader.changed();
        reader.poll(0.3 + i * 0.01);
    }
    EXPECT_LT(thread_cpu_time() - begin, 0.002 * 10 + 5 * once + 0.03);
    munmap(many, kPages * kPage);
}

// Notes each time that something dear was done between two polls.
class Onlooker : public thrum::stat::Layer {
  public:
    void poll(double) override {
        const double now = thread_cpu_time();
        dear_ += now - last_ > 4e-4 ? 1 : 0;
        last_ = now;
    }
    unsigned dear() const { return dear_; }

  private:
    double last_ = thread_cpu_time();
    unsigned dear_ = 0;
};

// Of a thousand threads as many are asked how long they waited for a CPU as can be in a millisecond: ten times a second that
// would be a percent of one.
TEST(Sampler, ManyThreadsAreAskedSeldomBesideLayers) {
    Child child({CLI_SAMPLED_O2, "sleep", "1000"});
    child.go();
    const std::string tasks = "/proc/" + std::to_string(child.pid()) + "/task";
    const auto threads = [&tasks] {
        const std::filesystem::directory_iterator all(tasks), end;
        return std::distance(all, end);
    };
    for (int patience = 3000; threads() < 1000 && patience > 0; patience--)
        usleep(10000);
    ASSERT_GE(threads(), 1000);
    Onlooker onlooker;
    thrum::Interrupts interrupts;
    const auto measured = thrum::stat::watch(child.pid(), 3, {&onlooker}, interrupts, [] {});
    EXPECT_GE(measured.most_threads, 1000U);
    EXPECT_LT(onlooker.dear(), 25U) << "of 30, and what else is dear on a machine that is busy";
}

// A thread's 150 functions of Python are read for each sample of it.
TEST(Sampler, DeepStacksOfPythonCostNoMoreThanTheBudget) {
    constexpr const char *kDeep = "def down(n):\n"
                                  "    if n: return down(n - 1)\n"
                                  "    i = 0\n"
                                  "    while True: i = (i * 31 + 1) % 1000003\n"
                                  "down(150)\n";
    if (access("/usr/bin/python3", X_OK) != 0)
        GTEST_SKIP() << "there is no /usr/bin/python3";
    std::string why_not;
    const auto profile = thrum::stat::make_cpu_profile("/usr/bin/python3", 1000, why_not);
    if (profile == nullptr || profile->source != "perf event")
        GTEST_SKIP() << "no perf events: " << why_not;
    Child child({"/usr/bin/python3", "-I", "-c", kDeep});
    profile->forked(child.pid());
    child.go();
    const double begin = thrum::seconds_now();
    polled(*profile, begin, 1, 1000); // until it has come so far, and the interpreter has been found
    const Polled sum = polled(*profile, begin, 2, 1000);
    EXPECT_LT(sum.cpu, (0.004 + 0.002) * sum.seconds + 0.03);
}

} // namespace
