// SPDX-License-Identifier: Apache-2.0
//
// The rules of what the kernel does for one thread at a time (cli/stat/rules/kernel.cpp) on reports that are made up.
#include <gtest/gtest.h>

#include "stat/rules.hpp"
#include "stat_case.hpp"

namespace {

using thrum::stat::KernelWait;

// Of CPU time in a call, all of it in the kernel.
Case in_kernel(const std::vector<Frame> &stack, double share, double user, double system,
               double wall = 0.95) {
    Case made;
    made.point(1, 0.9, 0.1, 0.8).point(2, wall, user, system, 900).doing(Doing::kRunning, user + system);
    made.burns(stack, share, share).burns({own("worker", 30)}, 1 - share, 1 - share);
    made.report.burns.front().kernel = 1;
    return made;
}

KernelWait wait(const char *call, const char *file, unsigned threads, const std::vector<Frame> &stack) {
    KernelWait made;
    made.call = call;
    made.file = file;
    made.channel = "ext4_buffered_write_iter";
    made.samples = 40;
    made.threads = threads;
    made.at_once = threads / 2.0;
    made.stack = stack;
    return made;
}

const std::vector<Frame> kWrite = {library("write"), own("log_record")};

TEST(StatRules, ThreadsThatAppendToOneFile) {
    Case made = in_kernel(kWrite, 0.9, 0.1, 1.1);
    made.report.kernel_waits = {wait("write", "/tmp/append.log", 2, kWrite)};
    ASSERT_EQ(rules_of(made.concluded()), "one-file");
    EXPECT_EQ(made.report.findings.front().cause,
              "Threads wait in the kernel for each other: write() on append.log in log_record()");
    Case own_files = in_kernel(kWrite, 0.9, 0.1, 1.1); // each waits at its own
    own_files.report.kernel_waits = {wait("write", "/tmp/a", 1, kWrite), wait("write", "/tmp/b", 1, kWrite)};
    EXPECT_EQ(rules_of(own_files.concluded()).find("one-file"), std::string::npos);
    Case device = in_kernel(kWrite, 0.9, 0.1, 1.1);
    device.report.kernel_waits = {wait("write", "/tmp/append.log", 2, kWrite)};
    device.report.kernel_waits.front().is_device = true;
    EXPECT_EQ(rules_of(device.concluded()).find("one-file"), std::string::npos);
    Case scales = in_kernel(kWrite, 0.9, 0.1, 0.8, 0.46); // nothing is lost
    scales.report.kernel_waits = {wait("write", "/tmp/append.log", 2, kWrite)};
    EXPECT_EQ(rules_of(scales.concluded()), "scales");
}

TEST(StatRules, ThreadsThatReadByOneDescriptor) {
    const std::vector<Frame> read = {library("read"), own("next_block")};
    Case made = in_kernel(read, 0.9, 0.1, 1.1);
    made.report.kernel_waits = {wait("read", "/tmp/data", 2, read)};
    made.report.kernel_waits.front().channel = "fdget_pos";
    ASSERT_EQ(rules_of(made.concluded()), "one-file");
    EXPECT_EQ(made.report.findings.front().cause,
              "Threads wait in the kernel for one descriptor's position: read() on data in next_block()");
    EXPECT_NE(made.report.findings.front().fix.find("pread()"), std::string::npos);
    Case readers = in_kernel(read, 0.9, 0.1, 1.1); // of one file, as long as its memory is filled
    readers.report.kernel_waits = {wait("read", "/tmp/data", 2, read)};
    EXPECT_EQ(rules_of(readers.concluded()).find("one-file"), std::string::npos);
}

TEST(StatRules, ThreadsThatChangeOneDirectory) {
    const std::vector<Frame> unlink = {library("unlink"), own("spool")};
    const auto made = [&unlink](const char *channel, unsigned threads) {
        Case one = in_kernel(unlink, 0.9, 0.1, 1.1);
        one.report.kernel_waits = {wait("unlink", "", threads, unlink)};
        one.report.kernel_waits.front().channel = channel;
        return one;
    };
    Case shared = made("do_unlinkat", 2);
    ASSERT_EQ(rules_of(shared.concluded()), "one-file");
    EXPECT_EQ(shared.report.findings.front().cause,
              "Threads wait in the kernel for each other: unlink() in one directory in spool()");
    Case journal = made("wait_transaction_locked", 2); // which the file system has one of
    EXPECT_EQ(rules_of(journal.concluded()).find("one-file"), std::string::npos);
    Case own_one = made("do_unlinkat", 1);
    EXPECT_EQ(rules_of(own_one.concluded()).find("one-file"), std::string::npos);
}

TEST(StatRules, ThreadsThatChangeTheAddressSpace) {
    const std::vector<Frame> unmap = {library("munmap"), own("request")};
    Case made = in_kernel(unmap, 0.6, 0.2, 1.6);
    made.report.kernel_waits = {wait("munmap", "", 2, unmap)};
    ASSERT_EQ(rules_of(made.concluded()), "address-space");
    EXPECT_EQ(made.report.findings.front().cause,
              "Threads change one address space, which the kernel locks: munmap() in request()");
    Case first = in_kernel(unmap, 0.6, 0.2,
                           1.6); // as of a program that maps its memory once, with any number of threads
    EXPECT_EQ(rules_of(first.concluded()).find("address-space"), std::string::npos);
    Case one = in_kernel(unmap, 0.6, 0.2, 1.6); // one thread maps, the others do not wait for it
    one.report.kernel_waits = {wait("munmap", "", 1, unmap)};
    EXPECT_EQ(rules_of(one.concluded()).find("address-space"), std::string::npos);
}

TEST(StatRules, AForkOfMuchMemory) {
    const std::vector<Frame> fork = {library("_Fork"), library("fork"), own("start_helper")};
    Case made = in_kernel(fork, 0.3, 0.2, 1.6);
    made.report.memory = 1e9;
    made.report.page_tables = 2.1e6;
    ASSERT_EQ(rules_of(made.concluded()), "fork-copies");
    EXPECT_EQ(made.report.findings.front().cause,
              "fork() copies 2.1 MB of page tables each time in start_helper()");
    Case small = in_kernel(fork, 0.3, 0.2, 1.6);
    small.report.memory = 5e6; // fork() is not dear
    EXPECT_EQ(rules_of(small.concluded()).find("fork-copies"), std::string::npos);
}

TEST(StatRules, AThunderingHerd) {
    const std::vector<Frame> at = {library("epoll_wait"), own("serve")};
    Case made = in_kernel(at, 0.6, 0.2, 1.6);
    made.report.points.back().voluntary = 40000;
    made.report.kernel_waits = {wait("epoll_wait", "anon_inode:[eventpoll]", 8, at)};
    ASSERT_EQ(rules_of(made.concluded()), "herd");
    Case busy =
        in_kernel(at, 0.6, 0.1, 0.8); // as much CPU time as one thread takes: each that is woken finds work
    busy.report.points.back().voluntary = 40000;
    busy.report.kernel_waits = {wait("epoll_wait", "anon_inode:[eventpoll]", 8, at)};
    EXPECT_EQ(rules_of(busy.concluded()).find("herd"), std::string::npos);
    Case one_each =
        in_kernel(at, 0.6, 0.2, 1.6); // each message wakes one thread, but another one than the last
    one_each.report.points.front().voluntary = 25000; // the sender lost its CPU to the reader before it slept
    one_each.report.points.front().involuntary = 15000;
    one_each.report.points.back().voluntary = 40000;
    one_each.report.kernel_waits = {wait("epoll_wait", "anon_inode:[eventpoll]", 8, at)};
    EXPECT_EQ(rules_of(one_each.concluded()).find("herd"), std::string::npos);
    one_each.others(1.5); // programs that take CPUs away make more of them involuntary
    EXPECT_EQ(rules_of(one_each.concluded()).find("herd"), std::string::npos);
}

TEST(StatRules, AHerdThatPolls) {
    const std::vector<Frame> at = {library("poll"), own("serve")};
    Case made = in_kernel(at, 0.6, 0.2, 1.6);
    made.report.points.back().voluntary = 40000;
    made.report.kernel_waits = {wait("poll", "socket:[7]", 8, at)};
    ASSERT_EQ(rules_of(made.concluded()), "herd");
    EXPECT_EQ(made.report.findings.front().cause,
              "All threads are woken for what one of them gets: poll() on one socket in serve()");
    EXPECT_EQ(made.report.findings.front().fix,
              "Wait with epoll: EPOLLEXCLUSIVE in a set for each thread, or EPOLLONESHOT in one set.");
    for (const char *file : {"", "anon_inode:[eventfd]", "/dev/input/event0"}) { // several, or no socket
        made.report.kernel_waits = {wait("poll", file, 8, at)};
        EXPECT_EQ(rules_of(made.concluded()).find("herd"), std::string::npos) << file;
    }
}

// The kernel wakes one of those that wait in recv() or accept().
TEST(StatRules, ReadersOfOneSocketAreNoHerd) {
    for (const char *call : {"recvfrom", "accept4"}) {
        const std::vector<Frame> at = {library(call), own("serve")};
        Case made = in_kernel(at, 0.6, 0.2, 1.6);
        made.report.points.back().voluntary = 40000;
        made.report.kernel_waits = {wait(call, "socket:[7]", 8, at)};
        EXPECT_EQ(rules_of(made.concluded()).find("herd"), std::string::npos) << call;
    }
}

// Leader and followers: one polls at a time, with a lock held. And where others than those calls take the CPU time.
TEST(StatRules, ALeaderThatPollsIsNoHerd) {
    const std::vector<Frame> at = {library("poll"), own("lead")};
    const auto made = [&at](double at_once, double share_one) {
        Case one = in_kernel(at, 0.6, 0.2, 1.6);
        one.report.burns_one.front().share = share_one;
        one.report.points.back().voluntary = 40000;
        one.report.kernel_waits = {wait("poll", "socket:[7]", 8, at)};
        one.report.kernel_waits.front().at_once = at_once;
        return rules_of(one.concluded()).find("herd") != std::string::npos;
    };
    EXPECT_FALSE(made(1.2, 0.5));
    EXPECT_FALSE(made(4, 0.9));
    EXPECT_TRUE(made(4, 0.5));
}

// One that reads several messages without sleeping sleeps less often than many threads, each of which finds one when it is woken.
TEST(StatRules, ThreadsThatSleepAfterEachMessageAreNoHerd) {
    const std::vector<Frame> at = {library("epoll_wait"), own("serve")};
    const auto made = [&at](double voluntary) {
        Case one = in_kernel(at, 0.6, 0.2, 1.6);
        one.report.points.front().voluntary = 33000;
        one.report.points.front().involuntary = 40000; // of the sender and the reader, by turns
        one.report.points.back().voluntary = voluntary;
        one.report.kernel_waits = {wait("epoll_wait", "anon_inode:[eventpoll]", 8, at)};
        return rules_of(one.concluded()).find("herd") != std::string::npos;
    };
    EXPECT_FALSE(made(100000));
    EXPECT_TRUE(made(320000));
}

// A message has one more thread woken than reads it; and the threads that are woken do something of their own before they find
// nothing, so that a third of the CPU time is in the kernel.
TEST(StatRules, AHerdOfTwo) {
    const std::vector<Frame> at = {library("epoll_wait"), own("serve")};
    Case made = in_kernel(at, 0.3, 0.9, 0.5);
    made.report.points.front().voluntary = 35000;
    made.report.points.front().involuntary = 5000;
    made.report.points.back().voluntary = 66000;
    made.report.kernel_waits = {wait("epoll_wait", "anon_inode:[eventpoll]", 4, at)};
    ASSERT_EQ(rules_of(made.concluded()), "herd");
    made.report.points.back().voluntary = 60000;
    EXPECT_EQ(rules_of(made.concluded()).find("herd"), std::string::npos) << "half as many more";
}

TEST(StatRules, AHerdAtOneSocketInManySets) {
    const std::vector<Frame> at = {library("epoll_wait"), own("serve")};
    Case made = in_kernel(at, 0.6, 0.2, 1.6);
    made.report.points.back().voluntary = 40000;
    made.report.kernel_waits = {wait("epoll_wait", "socket:[7], in 8 epoll sets", 8, at),
                                wait("epoll_wait", "anon_inode:[eventpoll] of socket:[7]", 1, at)};
    ASSERT_EQ(rules_of(made.concluded()), "herd");
    EXPECT_EQ(made.report.findings.front().cause, "All threads are woken for what one of them gets: "
                                                  "epoll_wait() on one socket, in 8 epoll sets, in serve()");
    EXPECT_NE(made.report.findings.front().fix.find("EPOLLEXCLUSIVE"), std::string::npos);
    Case unplaced = made;
    unplaced.report.kernel_waits.front().stack = {library("")};
    ASSERT_EQ(rules_of(unplaced.concluded()), "herd");
    EXPECT_EQ(unplaced.report.findings.front().function, "serve") << "by the CPU time of that call";
    made.report.kernel_waits.erase(made.report.kernel_waits.begin()); // each set has a socket of its own
    EXPECT_EQ(rules_of(made.concluded()).find("herd"), std::string::npos);
}

TEST(StatRules, ASecondCauseCostsAThirdOfTheFirst) {
    const std::vector<Frame> fork = {library("_Fork"), library("fork"), own("start_helper")};
    Case made = in_kernel(fork, 0.9, 0.2, 1.6);
    made.report.memory = 1e9;
    thrum::stat::Sharing shared;
    shared.is_one = true;
    shared.threads = 2;
    shared.samples = 60;
    shared.stack = {own("count")};
    shared.share = 0.2;
    made.report.shared = {shared};
    EXPECT_EQ(rules_of(made.concluded()), "fork-copies");
    made.report.shared.front().share = 0.5;
    EXPECT_EQ(rules_of(made.concluded()), "true-sharing fork-copies");
}

TEST(StatRules, ASemaphoreThatIsUsedAsALock) {
    Case made;
    made.point(1, 0.5, 0.5, 0)
        .point(2, 0.6, 0.9, 0.1)
        .doing(Doing::kRunning, 0.8)
        .doing(Doing::kLockWait, 0.4);
    made.lock(LockKind::kGlobal, "prog .bss tables (global of the program)", 1, "tables");
    made.report.locks.front().lock.is_semaphore = true;
    made.waits({library("__new_sem_wait_slow64"), library("sem_wait"), own("update")}, 100);
    ASSERT_EQ(rules_of(made.concluded()), "hot-mutex");
    EXPECT_EQ(made.report.findings.front().cause,
              "Hot lock: a semaphore that is used as a lock, tables, in update()");
}

// As above, and most of the CPU time is in its calls: a queue of tiny tasks looks like that.
TEST(StatRules, ASemaphoreThatIsALockHandsNoWorkOver) {
    Case made;
    made.point(1, 0.5, 0.5, 0)
        .point(4, 1.0, 0.9, 0.8, 60000)
        .doing(Doing::kRunning, 1.7)
        .doing(Doing::kLockWait, 0.6);
    made.lock(LockKind::kGlobal, "prog .bss tables (global of the program)", 2, "tables");
    made.waits({library("__new_sem_wait_slow64"), library("sem_wait"), own("update")}, 60);
    made.burns({library("sem_post"), own("update")}, 0.5, 0.05).burns({own("update")}, 0.5, 0.95);
    Case queue = made;
    made.report.locks.front().lock.is_semaphore = true;
    Case chain = made;
    chain.report.locks.front().lock.may_be_tasks = true;
    EXPECT_NE(rules_of(chain.concluded()).find("grain"), std::string::npos);
    EXPECT_EQ(rules_of(made.concluded()).find("grain"), std::string::npos);
    EXPECT_NE(rules_of(queue.concluded()).find("grain"), std::string::npos);
}

} // namespace
