// SPDX-License-Identifier: Apache-2.0
//
// The list of runtimes' locks (cli/stat/lock_table.cpp, cli/stat/data/locks.conf), and what the rules make of it.
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "stat/facts.hpp"
#include "stat/lock_table.hpp"
#include "stat/lock_waits.hpp"
#include "stat/sites.hpp"
#include "stat/waits.hpp"
#include "stat_case.hpp"
#include "tools/failure.hpp"

namespace {

using thrum::stat::ListedLock;
using thrum::stat::lock_table;
using thrum::stat::LockTable;
using thrum::stat::matches;

Frame runtimes(const char *function, const char *module = "prog") {
    return library(function, module);
}

TEST(StatLockTable, PatternsMatch) {
    EXPECT_TRUE(matches("runtime.*", "runtime.lock2"));
    EXPECT_FALSE(matches("runtime.*", "main.runtime.x"));
    EXPECT_TRUE(matches("sync.(*Mutex).*", "sync.(*Mutex).lockSlow"));
    EXPECT_FALSE(matches("sync.(*Mutex).*", "sync.(RWMutex).Lock")); // the star is Go's
    EXPECT_TRUE(
        matches("std::sys::*mutex*::lock_contended", "std::sys::sync::mutex::futex::Mutex::lock_contended"));
    EXPECT_TRUE(matches("*", ""));
    EXPECT_FALSE(matches("malloc", "malloc_trim"));
}

TEST(StatLockTable, TheNearestToTheProgramCounts) {
    const auto name_of = [](const std::vector<Frame> &stack) {
        const ListedLock *found = lock_table().find(stack);
        return found != nullptr ? found->name : "";
    };
    EXPECT_EQ(
        name_of({runtimes("runtime.futexsleep"), runtimes("runtime.lock2"), runtimes("runtime.semacquire1"),
                 runtimes("internal/sync.(*Mutex).lockSlow"), own("main.count")}),
        "sync.Mutex");
    EXPECT_EQ(name_of({runtimes("runtime.notesleep"), runtimes("runtime.stopm"),
                       runtimes("runtime.findRunnable"), runtimes("runtime.mcall")}),
              "a goroutine's turn");
    EXPECT_EQ(name_of({library("syscall"), runtimes("std::sys::sync::mutex::futex::Mutex::lock_contended"),
                       runtimes("std::sync::mpmc::list::Channel::recv"), own("worker")}),
              "a channel"); // its lock is not the program's
    EXPECT_EQ(name_of({runtimes("parking_lot_core::parking_lot::park"),
                       runtimes("parking_lot::raw_mutex::RawMutex::lock_slow"), own("count_pl")}),
              "parking_lot::Mutex");
    EXPECT_EQ(name_of({library("pthread_cond_timedwait"), library("", "libruby-3.1.so"),
                       library("rb_threadptr_execute_interrupts", "libruby-3.1.so")}),
              "Ruby's global VM lock (GVL)");
    EXPECT_EQ(name_of({library("pthread_cond_wait"), library("rb_queue_pop", "libruby-3.1.so")}), "");
    EXPECT_EQ(name_of({library("malloc", "libc.so"), own("request")}), "musl's malloc");
    EXPECT_EQ(name_of({library("malloc", "libc.so.6"), own("request")}), ""); // glibc's, of the other list
    EXPECT_EQ(name_of({runtimes("__lock"), runtimes("__libc_malloc_impl"), own("request")}), "musl's malloc");
    EXPECT_EQ(name_of({library("syscall"), runtimes("absl::synchronization_internal::FutexWaiter::Wait"),
                       runtimes("absl::Mutex::LockSlow"), own("put")}),
              "absl::Mutex");
    EXPECT_EQ(name_of({library("futex_wait"), library("pthread_rwlock_rdlock"), own("look_up")}),
              "pthread_rwlock_t");
    EXPECT_EQ(name_of({own("unlock_door"), own("main")}), "");
}

TEST(StatLockTable, WaitsAreOfTheListedKind) {
    using thrum::stat::doing_by_names;
    EXPECT_EQ(doing_by_names({runtimes("__lock"), runtimes("__libc_free"), own("request")}),
              Doing::kLockWait);
    EXPECT_EQ(doing_by_names({runtimes("runtime.notesleep"), runtimes("runtime.stopm")}), Doing::kIdleWait);
    EXPECT_EQ(doing_by_names({runtimes("std::_Sp_counted_base::_M_release"), own("f")}),
              std::nullopt); // no wait
}

// Locks that a program has written itself: of a futex, or of std::atomic::wait(). A name that has a lock in it may be another's.
TEST(StatLockTable, ALockOfTheProgramsOwnIsKnownByItsName) {
    thrum::stat::ProcSample sample;
    sample.state = 'S';
    sample.system_call = SYS_futex;
    sample.arguments[1] = FUTEX_WAIT | FUTEX_PRIVATE_FLAG;
    sample.arguments[2] = 1;
    const auto doing = [&sample](std::vector<Frame> calls, const char *function) {
        calls.push_back(own(function));
        return doing_of(sample, calls, {1, 2});
    };
    const std::vector<Frame> raw = {library("syscall")};
    const std::vector<Frame> atomic = {library("syscall"), runtimes("std::__detail::__platform_wait"),
                                       runtimes("std::__atomic_base::wait")};
    const std::vector<Frame> condition = {library("__futex_abstimed_wait_common"),
                                          library("pthread_cond_wait")};
    for (const char *name : {"Spin::lock", "futex_lock_slow", "mutex_acquire", "Table<int>::lock_shared"}) {
        EXPECT_EQ(doing(raw, name), Doing::kLockWait) << name;
        EXPECT_EQ(doing(atomic, name), Doing::kLockWait) << name;
        EXPECT_EQ(doing(condition, name), Doing::kIdleWait) << name;
    }
    for (const char *name : {"take", "next_block", "lock_free_pop", "pop_locked", "BlockingQueue::pop",
                             "Mutex::unlock", "clock_wait", "MutexQueue::take"})
        EXPECT_EQ(doing(atomic, name), Doing::kIdleWait) << name;
}

TEST(StatLockTable, FilesAddToIt) {
    LockTable table;
    table.add("[lock]\nname = mine\nat = my_lock\n", "a");
    table.add("# later\n[lock]\nname = ours\nat = my_*\nnot = my_idle\nfix = Wait less.\n", "b");
    const ListedLock *found = table.find({runtimes("my_lock"), own("f")});
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->name, "ours");
    EXPECT_EQ(found->fix, "Wait less.");
    EXPECT_EQ(table.find({runtimes("my_other"), runtimes("my_idle"), own("f")}), nullptr);
    for (const char *wrong : {"[mutex]\n", "at = x\n", "[lock]\nwhere = x\n", "[lock]\nat\n"})
        EXPECT_THROW(table.add(wrong, "c"), thrum::Failure) << wrong;
}

// As a Go program is seen whose goroutines share a map: few waits, since goroutines do not wait in the kernel.
Case go_case(const char *innermost) {
    Case made;
    made.point(1, 0.4, 0.4, 0).point(2, 0.9, 1.6, 0.1, 2000).doing(Doing::kRunning, 1.7);
    made.burns({runtimes(innermost), own("main.count"), own("main.main.func1", 30)}, 0.4, 0.02);
    made.burns({own("main.count"), own("main.main.func1", 30)}, 0.6, 0.9);
    return made;
}

TEST(StatRules, AHotLockOfGo) {
    Case made = go_case("internal/sync.(*Mutex).lockSlow");
    ASSERT_EQ(rules_of(made.concluded()), "hot-mutex");
    EXPECT_EQ(made.report.findings.front().cause, "Hot lock: sync.Mutex in main.count()");
    EXPECT_NE(made.report.findings.front().fix.find("goroutine"), std::string::npos);
    Case healthy = go_case("runtime.mapassign_fast64"); // as dear, and no lock
    EXPECT_EQ(rules_of(healthy.concluded()).find("hot-mutex"), std::string::npos);
}

TEST(StatRules, AReadWriteLockWhoseReadersWriteOneCounter) {
    Case made;
    made.point(1, 0.4, 0.4, 0).point(2, 0.9, 1.7, 0).doing(Doing::kRunning, 1.7);
    made.burns({library("pthread_rwlock_rdlock"), own("look_up")}, 0.5, 0.1);
    made.burns({library("pthread_rwlock_unlock"), own("look_up")}, 0.3, 0.1);
    made.burns({own("look_up")}, 0.2, 0.8);
    ASSERT_EQ(rules_of(made.concluded()), "hot-mutex");
    EXPECT_EQ(made.report.findings.front().cause,
              "Hot read-write lock, whose readers write one counter: pthread_rwlock_t in look_up()");
}

TEST(StatRules, TheGlobalLockOfRuby) {
    Case made;
    made.point(1, 0.5, 0.5, 0).point(4, 0.55, 0.5, 0.05, 300);
    made.doing(Doing::kRunning, 0.5).doing(Doing::kLockWait, 1.5).lock(LockKind::kHeap, "heap (0x1)", 2.6);
    made.waits({library("pthread_cond_timedwait"), library("", "libruby-3.1.so"),
                library("rb_threadptr_execute_interrupts", "libruby-3.1.so")},
               100);
    ASSERT_EQ(rules_of(made.concluded()), "one-lock");
    EXPECT_EQ(made.report.findings.front().cause,
              "Ruby's global VM lock (GVL): one thread runs the language's code at a time");
}

// Of a short run few waits are seen; that four threads took as long as one, on one CPU, says the same.
TEST(StatRules, TheGlobalLockOfRubyInAShortRun) {
    const auto sure_of = [](double wall_one, double wall, double cpu) {
        Case made;
        made.point(1, wall_one, 0.5, 0).point(4, wall, cpu, 0.02, 300);
        made.doing(Doing::kRunning, 0.5).doing(Doing::kLockWait, 0.2);
        made.lock(LockKind::kHeap, "heap (0x1)", 1);
        made.waits({library("pthread_cond_timedwait"), library("", "libruby-3.1.so"),
                    library("rb_threadptr_execute_interrupts", "libruby-3.1.so")},
                   14);
        made.concluded();
        return made.report.findings.front().rule == "one-lock" ? made.report.findings.front().confidence
                                                               : Confidence::kLow;
    };
    EXPECT_EQ(sure_of(0.5, 0.52, 0.5), Confidence::kMedium);
    EXPECT_EQ(sure_of(0.625, 0.525, 0.68), Confidence::kLow) << "they gained by it, for more CPU time";
}

TEST(StatRules, TheAllocatorOfMusl) {
    Case made;
    made.point(1, 0.3, 0.3, 0).point(2, 1.2, 1.1, 1.1, 4000).doing(Doing::kRunning, 2.2);
    made.burns({runtimes("__unlock"), runtimes("__libc_malloc_impl"), own("request")}, 0.6, 0.4);
    made.burns({runtimes("__lock"), runtimes("__libc_free"), own("request")}, 0.4, 0.5);
    ASSERT_EQ(rules_of(made.concluded()), "allocator");
    EXPECT_EQ(made.report.findings.front().cause,
              "Threads contend for the memory allocator (musl's malloc) in request()");
}

// Workers that share a receiver under a mutex: one waits for work, the others for the mutex.
Case receiver_case(double idle, const char *idle_in) {
    Case made;
    made.point(1, 4, 0.9, 0.1)
        .point(4, 4, 0.9, 0.1, 8000)
        .doing(Doing::kRunning, 0.9)
        .doing(Doing::kLockWait, 11);
    made.lock(LockKind::kHeap, "heap (0x1)", 2.8);
    made.waits({library("syscall"), runtimes("std::sys::sync::mutex::futex::Mutex::lock_contended"),
                own("pool::worker")},
               1000);
    Site idle_site;
    idle_site.stack = {library("syscall"), runtimes(idle_in), own("pool::worker")};
    idle_site.doing = Doing::kIdleWait;
    idle_site.samples = 300;
    idle_site.seconds = idle;
    made.report.others.push_back(idle_site);
    return made;
}

TEST(StatRules, WorkersThatTakeTurnsAtWaitingForWork) {
    Case healthy = receiver_case(3.6, "std::sync::mpmc::list::Channel::recv");
    const std::string rules = rules_of(healthy.concluded());
    EXPECT_TRUE(rules == "inconclusive" || rules == "scales" || rules.empty()) << rules;
    Case busy = receiver_case(0.4, "std::sync::mpmc::list::Channel::recv"); // work is queued most of the time
    EXPECT_NE(rules_of(busy.concluded()).find_first_of("hoc"), std::string::npos);
    EXPECT_NE(busy.report.findings.front().rule, "inconclusive");
    Case condition =
        receiver_case(3.6, "std::sys::sync::condvar::futex::Condvar::wait"); // which gives the lock back
    EXPECT_NE(condition.concluded().findings.front().rule, "inconclusive");
}

// What HotSpot makes for itself is no method of the program's.
TEST(StatLockTable, StubsOfAVirtualMachineAreNoPlaces) {
    for (const char *stub : {"Interpreter", "monitorexit_nofpu Runtime1 stub"}) {
        EXPECT_TRUE(lock_table().is_runtime(runtimes(stub, thrum::stat::kMadeCode))) << stub;
        EXPECT_FALSE(lock_table().is_runtime(runtimes(stub, "prog"))) << stub;
    }
    EXPECT_FALSE(lock_table().is_runtime(runtimes("Sync.hotInLock", thrum::stat::kMadeCode)));
}

// A Java monitor's waiters sleep at words of their own, a mutex's at its own.
TEST(StatLockTable, WaitersThatParkHaveNoAddress) {
    thrum::stat::Lock heap;
    heap.text = "heap (0x10)";
    const std::vector<Frame> monitor = {library("pthread_cond_wait"),
                                        runtimes("ObjectMonitor::EnterI", "libjvm.so"),
                                        runtimes("ObjectMonitor::enter", "libjvm.so")};
    EXPECT_EQ(thrum::stat::as_parked(heap, monitor).text, "a Java monitor (synchronized)");
    EXPECT_EQ(
        thrum::stat::as_parked(heap, {runtimes("std::sync::poison::mutex::Mutex::lock"), own("work")}).text,
        "heap (0x10)");
    EXPECT_EQ(thrum::stat::as_parked(heap, {library("pthread_mutex_lock"), own("work")}).text, "heap (0x10)");
    const auto taken_in = [](const char *function, std::uint64_t address) {
        thrum::stat::Lock word;
        word.address = address;
        return thrum::stat::as_parked(word,
                                      {library("syscall"), runtimes("parking_lot_core::parking_lot::park"),
                                       runtimes("parking_lot::raw_mutex::RawMutex::lock_slow"),
                                       runtimes("lock_api::mutex::Mutex::lock"), own(function)});
    };
    std::vector<thrum::stat::LockUse> locks;
    thrum::stat::LockWaits waits(locks); // two waiters of one lock, each at a word of its own
    EXPECT_EQ(waits.add(taken_in("count", 0x1000), 0), waits.add(taken_in("count", 0x2000), 0));
    EXPECT_NE(waits.add(taken_in("count", 0x1000), 0), waits.add(taken_in("list", 0x1000), 0));
    EXPECT_EQ(locks.front().lock.text, "parking_lot::Mutex in count");
    EXPECT_EQ(locks.front().lock.address, 0U);
    LockTable table;
    table.add("[lock]\nname = a\nat = f\nparks = yes\n", "mine");
    ASSERT_NE(table.find({runtimes("f")}), nullptr);
    EXPECT_TRUE(table.find({runtimes("f")})->parks);
    EXPECT_THROW(table.add("[lock]\nname = a\nparks = maybe\n", "mine"), thrum::Failure);
}

} // namespace
