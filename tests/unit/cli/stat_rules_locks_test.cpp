// SPDX-License-Identifier: Apache-2.0
//
// The rules of locks (cli/stat/rules/locks.cpp) on reports that are made up.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "stat/facts.hpp"
#include "stat/nameless.hpp"
#include "stat/rules.hpp"
#include "stat_case.hpp"

namespace {

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

Frame nameless(std::uint64_t offset) {
    Frame frame;
    frame.module = "prog";
    frame.offset = offset;
    frame.is_user = true;
    return frame;
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

Frame python(const char *function, int line) {
    Frame frame = own(function, line);
    frame.file = "prog.py";
    frame.module = "python3.11";
    return frame;
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

// One run does not tell whether waiting costs anything: threads may wait for their turn to wait for work.
TEST(StatRules, ALockInOneRunIsNotSure) {
    Case made;
    made.point(4, 1, 1, 0).doing(Doing::kRunning, 1).doing(Doing::kLockWait, 2);
    made.lock(LockKind::kGlobal, "pot_lock", 1, "pot_lock");
    made.waits({library("pthread_mutex_lock"), own("put")}, 200);
    Case seen = made;
    ASSERT_FALSE(made.concluded().findings.empty());
    EXPECT_EQ(made.report.findings.front().confidence, Confidence::kMedium);
    seen.report.locks.front().holder.looks = 100; // it computed, and a CPU was free
    ASSERT_FALSE(seen.concluded().findings.empty());
    EXPECT_EQ(seen.report.findings.front().confidence, Confidence::kHigh);
    Case busy = seen; // what the others have is no free CPU
    busy.report.findings.clear();
    busy.others(1.5).doing(Doing::kRunnable, 2);
    ASSERT_FALSE(busy.concluded().findings.empty());
    EXPECT_NE(busy.report.findings.front().confidence, Confidence::kHigh);
}

// One waits at `called`, and the others for its lock.
Case one_waits(Doing doing, const char *called, bool is_message) {
    Case made;
    made.point(4, 1, 0.4, 0).doing(Doing::kRunning, 0.4).doing(Doing::kLockWait, 3);
    made.lock(LockKind::kGlobal, "turn", 2.5, "turn");
    made.waits({library("pthread_mutex_lock"), own("serve")}, 200);
    made.report.locks.front().holder = {200, 0.9, doing, {library(called), own("serve")}, is_message};
    return made;
}

// Leader and followers: one waits for requests, the others for their turn to. Nothing is lost while none comes.
TEST(StatRules, WaitingForRequestsByTurns) {
    for (const char *call : {"accept", "accept4", "poll", "epoll_wait"}) {
        Case made = one_waits(Doing::kIdleWait, call, false);
        EXPECT_EQ(rules_of(made.concluded()).find("held-asleep"), std::string::npos) << call;
        EXPECT_EQ(rules_of(made.concluded()).find("mutex"), std::string::npos) << call;
    }
    Case reads = one_waits(Doing::kInputOutput, "read", true);
    EXPECT_EQ(rules_of(reads.concluded()).find("held-asleep"), std::string::npos);
}

// Known by the looks at its waiters alone, not by their posts.
TEST(StatRules, ASemaphoreHeldAsleep) {
    Case made = one_waits(Doing::kSleep, "nanosleep", false);
    made.report.locks.front().lock.is_semaphore = true;
    ASSERT_EQ(rules_of(made.concluded()), "held-asleep");
    EXPECT_EQ(made.report.findings.front().confidence, Confidence::kLow) << "one run does not tell";
    Case compared = made;
    compared.report.points.clear();
    compared.point(1, 1, 0.1, 0).point(4, 1, 0.1, 0);
    ASSERT_EQ(rules_of(compared.concluded()), "held-asleep");
    const Finding found = compared.report.findings.front();
    EXPECT_EQ(found.confidence, Confidence::kMedium);
    EXPECT_EQ(found.cause,
              "A lock is held while its holder sleeps: a semaphore that is used as a lock, turn, "
              "in serve()");
    EXPECT_EQ(found.fix.rfind("Release the lock before that", 0), 0U);
    EXPECT_EQ(std::count(found.evidence.begin(), found.evidence.end(),
                         "its own waiters raise it: its waits ended while no other thread ran"),
              1);
    Case chain = compared;
    chain.report.locks.front().lock.may_be_tasks = true;
    ASSERT_EQ(rules_of(chain.concluded()), "held-asleep");
    EXPECT_EQ(chain.report.findings.front().confidence, Confidence::kLow) << "it is no accusation";
    EXPECT_EQ(chain.report.findings.front().evidence.size(), found.evidence.size() + 1);
    compared.report.posts[0].threads = {1, 2}; // at the lock's address
    chain.report.posts[0].threads = {1, 2};
    ASSERT_EQ(rules_of(chain.concluded()), "held-asleep");
    EXPECT_EQ(chain.report.findings.front().confidence, Confidence::kLow);
    ASSERT_EQ(rules_of(compared.concluded()), "held-asleep");
    EXPECT_EQ(compared.report.findings.front().confidence, Confidence::kHigh);
}

TEST(StatRules, PythonsLockHeldAsleep) {
    Case made = one_waits(Doing::kSleep, "clock_nanosleep", false);
    made.report.locks.front().lock.is_semaphore = true;
    made.report.locks.front().lock.symbol = "";
    made.report.waits.front().stack.front() = library("PyThread_acquire_lock_timed", "python3.11");
    ASSERT_EQ(rules_of(made.concluded()), "held-asleep");
    EXPECT_NE(made.report.findings.front().cause.find("a lock of Python's (threading.Lock)"),
              std::string::npos);
}

// What it waits for may be an answer to its own question, or a device.
TEST(StatRules, WaitingForAnAnswerUnderALock) {
    Case asks = one_waits(Doing::kInputOutput, "read", true);
    asks.burns({library("send"), own("serve")}, 0.2, 0);
    EXPECT_EQ(rules_of(asks.concluded()), "held-asleep");
    EXPECT_EQ(rules_of(one_waits(Doing::kInputOutput, "read", false).concluded()), "held-asleep");
    Case sleeps = one_waits(Doing::kSleep, "nanosleep", false);
    ASSERT_EQ(rules_of(sleeps.concluded()), "held-asleep");
    EXPECT_EQ(sleeps.report.findings.front().confidence, Confidence::kMedium);
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

// Threads that mostly wait for answers take it whenever one comes; the holder may have no CPU for other programs' sake. One run
// of a program that hardly computes does not tell more.
TEST(StatRules, AnIdleInterpretersLockIsNoCause) {
    const auto confidence = [](double cpu) {
        Case made;
        made.point(8, 1, cpu, 0, 150).doing(Doing::kRunning, cpu).doing(Doing::kLockWait, 0.6);
        made.waits({library("pthread_cond_timedwait"), library("PyEval_RestoreThread", "python3.11"),
                    library("_PyEval_EvalFrameDefault", "python3.11")},
                   70);
        EXPECT_EQ(rules_of(made.concluded()), "one-lock");
        return made.report.findings.front().confidence;
    };
    EXPECT_EQ(confidence(0.05), Confidence::kLow);
    EXPECT_GE(confidence(0.95), Confidence::kMedium);
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

// What is known of a library are the functions that others call; and the program's own jumps to these are no library.
TEST(StatRules, LibrariesInWhichMuchTimeIsSpentAreTold) {
    const auto notes = [](double inside, const char *stub) {
        Case made;
        made.point(1, 1, 1, 0).point(2, 1, 1, 0).doing(Doing::kRunning, 1);
        made.burns({library("", "liblzma.so.5"), library("lzma_code", "liblzma.so.5"), own("pack")}, inside,
                   0.5);
        made.burns({library("", stub), own("pack")}, 0.2, 0.2);
        std::string text;
        for (const std::string &note : thrum::stat::nameless_code(made.concluded()))
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

// All wait for tasks in the function that makes these; OpenMP's queue is not held meanwhile, as a receiver that is shared may be.
TEST(StatRules, OpenmpsTasksThatAreTooSmall) {
    const auto made = [](double queue) {
        Case one;
        one.point(1, 0.2, 0.2, 0).point(4, 8.3, 8, 6.8, 850000);
        one.doing(Doing::kRunning, 16).doing(Doing::kRunnable, 12).doing(Doing::kIdleWait, 8);
        const Frame runtime = library("", "libgomp.so.1"), region = own("main._omp_fn.0", 9);
        one.burns({runtime, library("GOMP_task", "libgomp.so.1"), region}, queue, 0);
        one.burns({library("malloc"), runtime, library("GOMP_task", "libgomp.so.1"), region}, queue / 4, 0);
        one.burns({runtime, runtime, library("GOMP_parallel", "libgomp.so.1"), own("main", 7)},
                  1 - 1.25 * queue, 0);
        one.burns({own("main._omp_fn.2", 12), library("GOMP_task", "libgomp.so.1"), region}, 0, 1);
        Site site;
        site.stack = {runtime, library("GOMP_parallel", "libgomp.so.1"), own("main", 7)};
        site.doing = Doing::kIdleWait;
        site.samples = 300;
        site.seconds = 3.2;
        one.report.others.push_back(site);
        one.concluded();
        return one.report.findings.front();
    };
    const Finding found = made(0.4);
    EXPECT_EQ(found.cause, "Hot OpenMP's queue of tasks (#pragma omp task) in main()");
    EXPECT_EQ(found.fix, "Create fewer and larger tasks: all go through one queue.");
    EXPECT_EQ(made(0.05).rule, "busy-wait") << "they wait for what one of them does";
}

// A team shares a pipe, which one of its threads reads at a time: nothing is lost while it waits for input.
TEST(StatRules, ATeamOfOpenmpThatReadsByTurns) {
    const auto rules = [](double waits_for_input) {
        Case made;
        made.point(1, 2, 0.4, 0.1).point(4, 2, 0.4, 0.1, 8000);
        made.doing(Doing::kRunning, 0.5).doing(Doing::kLockWait, 5.5);
        made.lock(LockKind::kLibrary, "libgomp.so.1 .bss", 2.8);
        made.waits({library("gomp_mutex_lock_slow", "libgomp.so.1"),
                    library("GOMP_critical_start", "libgomp.so.1"), own("work._omp_fn.0")},
                   550);
        made.burns({own("work._omp_fn.0")}, 1, 1);
        Site site;
        site.stack = {library("read"), own("work._omp_fn.0")};
        site.doing = Doing::kInputOutput;
        site.is_message = true;
        site.samples = 150;
        site.seconds = waits_for_input;
        made.report.others.push_back(site);
        made.concluded();
        return made.report.findings.empty() ? std::string() : made.report.findings.front().rule;
    };
    const std::string healthy = rules(1.5);
    EXPECT_TRUE(healthy == "inconclusive" || healthy == "scales" || healthy == "io-bound" || healthy.empty())
        << healthy;
    EXPECT_EQ(rules(0.1), "convoy") << "it hardly waits for input";
}

// What is known of OpenMP to allocate is the making of tasks; any other call of it is no reason to clear the allocator.
TEST(StatRules, OnlyTheQueueOfOpenmpsTasksAllocatesForItself) {
    const auto rules = [](const char *called) {
        Case made;
        made.point(1, 0.3, 0.3, 0).point(2, 1.2, 1.1, 1.1, 4000).doing(Doing::kRunning, 2.2);
        made.burns({library("__lll_lock_wait_private"), library("malloc"), library("", "libgomp.so.1"),
                    library(called, "libgomp.so.1"), own("request")},
                   0.6, 0.1);
        made.burns({own("request")}, 0.4, 0.9);
        return rules_of(made.concluded());
    };
    EXPECT_NE(rules("omp_alloc").find("allocator"), std::string::npos) << rules("omp_alloc");
    EXPECT_EQ(rules("GOMP_task").find("allocator"), std::string::npos) << rules("GOMP_task");
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

// Of one run: a thread that serves waits for one of the lowest priority, and others have the CPUs.
Case inverted() {
    Case made;
    made.point(0, 2, 3.9, 0, 300);
    made.report.points.front().most_threads = 7;
    made.doing(Doing::kRunning, 3.9).doing(Doing::kRunnable, 5.5).doing(Doing::kLockWait, 1.8);
    made.lock(LockKind::kGlobal, "table_lock in prog", 1, "table_lock");
    made.waits({library("pthread_mutex_lock"), own("answer")}, 180);
    made.burns({own("compute", 30)}, 1, 0);
    Thread tidier;
    tidier.id = 102;
    tidier.name = "tidier";
    made.report.threads.push_back(tidier);
    thrum::stat::Holder &holder = made.report.locks.front().holder;
    holder.looks = 170;
    holder.asleep = 0;
    holder.without_cpu = 0.98;
    holder.outranked = 1;
    holder.thread = 102;
    holder.scheduling.policy = thrum::stat::Scheduling::kIdle;
    holder.waiters.policy = thrum::stat::Scheduling::kOther;
    return made;
}

TEST(StatRules, AHolderThatOthersKeepFromTheCpus) {
    Case made = inverted();
    ASSERT_EQ(rules_of(made.concluded()), "priority");
    const Finding &found = made.report.findings.front();
    EXPECT_EQ(found.cause, "Priority inversion: a thread of low priority holds a lock and gets no CPU: "
                           "table_lock in answer()");
    EXPECT_EQ(found.function, "answer");
    EXPECT_EQ(found.confidence, Confidence::kMedium) << "of one run";
    EXPECT_EQ(found.evidence.back(), "its holder, thread 102 (tidier) with SCHED_IDLE, had no CPU in 98 % of "
                                     "the time that it wanted one; a waiter had nice 0");
}

// Healthy ones that look like it, or have another fault.
TEST(StatRules, AHolderOfLowPriorityThatIsNoneOfIt) {
    const auto has_none = [](Case made) {
        return rules_of(made.concluded()).find("priority") == std::string::npos;
    };
    Case equal = inverted(); // all have too few CPUs: that is not this lock's fault
    equal.report.locks.front().holder.outranked = 0;
    EXPECT_TRUE(has_none(equal));
    Case runs = inverted(); // its priority costs it nothing
    runs.report.locks.front().holder.without_cpu = 0.1;
    EXPECT_TRUE(has_none(runs));
    Case sleeps = inverted(); // held-asleep, whatever its priority
    sleeps.report.locks.front().holder.asleep = 0.9;
    EXPECT_TRUE(has_none(sleeps));
    Case seldom = inverted(); // seldom waited for
    seldom.report.waits.front().seconds = 0.1;
    EXPECT_TRUE(has_none(seldom));
    Case chance = inverted();
    chance.report.locks.front().holder.looks = 10;
    EXPECT_TRUE(has_none(chance));
}

// A pool that waits for work uses no CPU to speak of. Beside other programs its lock's holder may lack one, now and then.
TEST(StatRules, AnIdlePoolContendsForNothing) {
    const auto made = [](double cpu) {
        Case one;
        one.point(1, 0.7, cpu, 0.01, 90).point(4, 0.8, cpu, 0.01, 130).others(1.9);
        one.doing(Doing::kRunning, cpu).doing(Doing::kRunnable, 0.02).doing(Doing::kLockWait, 0.1);
        one.lock(LockKind::kGlobal, "lock in prog", 1, "lock");
        return one.waits({library("pthread_mutex_lock"), own("serve")}, 12);
    };
    const std::string at_work = rules_of(made(0.4).concluded());
    EXPECT_EQ(at_work.rfind("one-lock", 0), 0U) << at_work;
    for (const double cpu : {0.01, 0.03, 0.1}) {
        const std::string idle = rules_of(made(cpu).concluded());
        for (const char *rule : {"hot-mutex", "one-lock", "convoy"})
            EXPECT_EQ(idle.find(rule), std::string::npos) << idle;
    }
}

} // namespace
