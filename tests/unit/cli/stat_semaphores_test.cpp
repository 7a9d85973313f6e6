// SPDX-License-Identifier: Apache-2.0
//
// Semaphores that are locks, by looks at their waiters (cli/stat/semaphores.hpp), and epoll sets that have one socket
// (cli/stat/kernel_waits.hpp): from made-up samples. Each has a healthy twin.
#include <gtest/gtest.h>
#include <sys/sem.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "stat/kernel_waits.hpp"
#include "stat/semaphores.hpp"

namespace {

using namespace thrum::stat;

constexpr std::uint64_t kWord = 0x1000;

// Looks at all threads, a hundred times a second. The first waits for the others' ends.
class Looks {
  public:
    // A letter for each thread: w waits for the semaphore, s and t sleep elsewhere, at two places, r runs. `ran`: which have run since the
    // look before; those with c for a tenth of the time.
    Looks &sweep(const std::string &doing, const std::string &ran) {
        for (std::size_t i = 0; i < doing.size(); i++) {
            ProcSample one;
            one.at = at_;
            one.thread = static_cast<pid_t>(100 + i);
            one.state = doing[i] == 'r' ? 'R' : 'S';
            one.system_call = doing[i] == 'w' ? SYS_futex : doing[i] == 'r' ? -1 : SYS_clock_nanosleep;
            one.arguments[0] = doing[i] == 'w' ? kWord : 0;
            one.stack = static_cast<std::size_t>(doing[i]);
            runs_[i] += ran[i] == 'x' ? 1 : ran[i] == 'c' ? 1000 : 0;
            one.run_ns = 1000 * runs_[i];
            samples_.push_back(one);
        }
        at_ += 0.01;
        return *this;
    }
    std::map<std::uint64_t, PassedOn> locks() const {
        return semaphores_passed_on(
            samples_, [](const ProcSample &one) { return one.arguments[0]; },
            [](const ProcSample &one) { return one.stack; });
    }
    // Of what is found to be a lock.
    bool may_be_tasks() const {
        const auto found = locks();
        return found.count(kWord) != 0 && found.at(kWord).may_be_tasks;
    }
    const std::vector<ProcSample> &samples() const { return samples_; }

  private:
    double at_ = 0;
    std::uint64_t runs_[8] = {};
    std::vector<ProcSample> samples_;
};

Looks lock_that_rotates(char holder_does, const char *ran) {
    Looks looks;
    for (int i = 0; i < 40; i++) {
        std::string doing = "swww";
        doing[static_cast<std::size_t>(1 + i % 3)] = holder_does;
        looks.sweep(doing, ran);
    }
    return looks;
}

TEST(StatSemaphores, PassedFromWaiterToWaiter) {
    const Looks looks = lock_that_rotates('s', ".xxx");
    const auto found = looks.locks();
    ASSERT_EQ(found.count(kWord), 1U);
    EXPECT_GE(found.at(kWord).times, 30U);
    ASSERT_EQ(found.at(kWord).holders.size(), 40U);
    for (const std::size_t index : found.at(kWord).holders) {
        EXPECT_EQ(looks.samples()[index].system_call, SYS_clock_nanosleep);
        EXPECT_NE(looks.samples()[index].thread, 100) << "it is none of the waiters";
    }
    EXPECT_EQ(lock_that_rotates('r', ".xxx").locks().size(), 1U) << "its holder computes";
}

// The thread that brings work runs, or one that may.
TEST(StatSemaphores, WorkThatComesFromElsewhere) {
    EXPECT_TRUE(lock_that_rotates('s', "xxxx").locks().empty());
    EXPECT_TRUE(lock_that_rotates('r', "xxxx").locks().empty());
}

TEST(StatSemaphores, ThreadsOfAnIdlePool) {
    Looks looks;
    for (int i = 0; i < 100; i++)
        looks.sweep(i % 4 != 0 ? "swww" : i % 8 != 0 ? "swsw" : "ssww", ".xxx");
    EXPECT_TRUE(looks.locks().empty()) << "all of them wait for most of the time";
    Looks never;
    for (int i = 0; i < 100; i++)
        never.sweep("sswww", ".....");
    EXPECT_TRUE(never.locks().empty()) << "no wait ends";
}

TEST(StatSemaphores, AFewThatMayPassAtOnce) {
    Looks looks;
    for (int i = 0; i < 60; i++)
        looks.sweep(i % 2 == 0 ? "ssswww" : "swwwss", ".xxxxx");
    EXPECT_TRUE(looks.locks().empty()) << "a limit of two, which is meant";
}

// The threads of a pool that give each other work wait for the one that does what only one can.
TEST(StatSemaphores, OneThreadsLongerWork) {
    Looks looks;
    for (int i = 0; i < 400; i++) {
        std::string doing = "swww";
        doing[static_cast<std::size_t>(1 + i / 16 % 3)] = 'r';
        looks.sweep(doing, i % 16 == 0 ? ".xxx" : "....");
    }
    EXPECT_TRUE(looks.locks().empty());
    Looks asleep;
    for (int i = 0; i < 400; i++) {
        std::string doing = "swww";
        doing[static_cast<std::size_t>(1 + i / 16 % 3)] = 's';
        asleep.sweep(doing, i % 16 == 0 ? ".xxx" : "....");
    }
    EXPECT_EQ(asleep.locks().size(), 1U) << "a holder that sleeps does so for long";
}

TEST(StatSemaphores, SeenTooFewTimes) {
    Looks looks;
    for (int i = 0; i < 12; i++)
        looks.sweep(i % 2 == 0 ? "ssw" : "sws", ".xx");
    EXPECT_TRUE(looks.locks().empty());
    EXPECT_TRUE(semaphores_passed_on(
                    {}, [](const ProcSample &) { return kWord; }, [](const ProcSample &) { return kWord; })
                    .empty());
}

// One thread of four has it, and sleeps. Others do something else at times.
Looks lock_with_other_work(const std::string &other, const std::string &ran) {
    Looks looks;
    for (int i = 0; i < 60; i++) {
        std::string doing = "swwww";
        doing[static_cast<std::size_t>(1 + i % 4)] = 's';
        if (i % 3 == 0)
            doing[static_cast<std::size_t>(1 + (i + 1) % 4)] = other[0];
        looks.sweep(doing, ran);
    }
    return looks;
}

TEST(StatSemaphores, TasksThatItsWaitersPassOn) {
    EXPECT_TRUE(lock_that_rotates('s', ".xxx").may_be_tasks());
    EXPECT_FALSE(lock_with_other_work("r", ".cccc").may_be_tasks()) << "it computes without it";
    EXPECT_TRUE(lock_with_other_work("r", ".xxxx").may_be_tasks()) << "it has no CPU, in order to wait again";
    EXPECT_FALSE(lock_with_other_work("t", ".xxxx").may_be_tasks()) << "it waits for something else";
    EXPECT_TRUE(lock_with_other_work("s", ".xxxx").may_be_tasks()) << "two at once are where one alone is";
    EXPECT_TRUE(lock_with_other_work("w", ".xxxx").may_be_tasks());
    Looks passes; // now and then while the threads are looked at: two are seen with it, or none
    for (int i = 0; i < 90; i++)
        passes.sweep(i % 9 == 0   ? "ssswww"
                     : i % 9 == 1 ? "swwwww"
                     : i % 2 == 0 ? "swswww"
                                  : "sswwww",
                     ".xxxxx");
    EXPECT_TRUE(passes.may_be_tasks());
    EXPECT_EQ(lock_with_other_work("s", ".xxxx").locks().size(), 1U);
}

TEST(StatSemaphores, TasksThatCompute) {
    Looks looks;
    for (int i = 0; i < 60; i++)
        looks.sweep(i % 3 == 0 ? "srrw" : i % 3 == 1 ? "srww" : "swrw", ".xxx");
    ASSERT_EQ(looks.locks().size(), 1U);
    EXPECT_TRUE(looks.may_be_tasks()) << "what one alone does does not tell it from what others do";
}

ProcSample semop_of(std::uint16_t number, std::int16_t by) {
    const sembuf operation = {number, by, 0};
    ProcSample one;
    one.state = 'S';
    one.system_call = SYS_semop;
    one.arguments[0] = 7;
    std::memcpy(&one.arguments[kSemopOperation], &operation, sizeof operation);
    return one;
}

TEST(StatSemaphores, ThoseOfASetAreDifferent) {
    EXPECT_NE(set_semaphore(semop_of(0, -1)), 0U);
    EXPECT_NE(set_semaphore(semop_of(0, -1)), set_semaphore(semop_of(1, -1))) << "one is full, one empty";
    EXPECT_EQ(set_semaphore(semop_of(0, 0)), 0U) << "it waits until it is down";
    EXPECT_EQ(lock_of_set(semop_of(2, -1)).text, "semaphore 2 of set 7");
    ProcSample other = semop_of(0, -1);
    other.system_call = SYS_futex;
    EXPECT_EQ(set_semaphore(other), 0U);
    ProcSample timed = semop_of(0, -1);
    timed.system_call = SYS_semtimedop;
    EXPECT_NE(set_semaphore(timed), 0U) << "as the C library calls it for semop()";
    timed.arguments[3] = 0x7000;
    EXPECT_EQ(set_semaphore(timed), 0U) << "it looks again by itself";
}

std::vector<Frame> stack_of(const std::vector<std::pair<const char *, bool>> &functions) {
    std::vector<Frame> stack;
    for (const auto &[function, is_user] : functions) {
        stack.emplace_back();
        stack.back().function = function;
        stack.back().is_user = is_user;
    }
    return stack;
}

TEST(StatSemaphores, TheirCalls) {
    EXPECT_TRUE(is_in_semaphore_call(stack_of({{"__new_sem_wait_slow64", false}, {"work", true}})));
    EXPECT_TRUE(is_in_semaphore_call(stack_of({{"std::__detail::__platform_wait<int>", true},
                                               {"std::counting_semaphore<1l>::acquire", true},
                                               {"work", true}})));
    EXPECT_TRUE(is_in_semaphore_call(stack_of(
        {{"PyThread_acquire_lock_timed", false}, {"_PyEval_EvalFrameDefault", false}, {"work", true}})));
    EXPECT_FALSE(
        is_in_semaphore_call(stack_of({{"pthread_cond_wait", false}, {"work", true}, {"sem_wait", true}})));
}

TEST(StatSemaphores, TasksThatRaiseIt) {
    const auto wait = stack_of({{"__new_sem_wait_slow64", false}, {"next_task", true}, {"serve", true}});
    const auto post = stack_of({{"sem_post", false}, {"submit", true}, {"run", true}, {"serve", true}});
    EXPECT_TRUE(is_raised_by_tasks(wait, {post}));
    const auto lock = stack_of({{"sem_wait", false}, {"take_turn", true}, {"look_up", true}, {"work", true}});
    const auto give = stack_of({{"sem_post", false}, {"look_up", true}, {"work", true}});
    const auto unlock =
        stack_of({{"sem_post", false}, {"give_turn", true}, {"look_up", true}, {"work", true}});
    EXPECT_FALSE(is_raised_by_tasks(lock, {give, unlock}));
    EXPECT_FALSE(is_raised_by_tasks(wait, {post, give})) << "half of them are elsewhere";
    EXPECT_FALSE(is_raised_by_tasks(wait, {}));
    const auto update = stack_of({{"sem_wait", false}, {"look_up", true}, {"work", true}});
    EXPECT_TRUE(is_raised_where_taken(update, {give, give, unlock}));
    EXPECT_FALSE(is_raised_where_taken(update, {give, unlock}));
    EXPECT_FALSE(is_raised_where_taken(wait, {post}));
    EXPECT_FALSE(is_raised_where_taken({}, {{}}));
}

Frame python(const char *function, const char *file) {
    Frame frame;
    frame.function = function;
    frame.file = file;
    frame.is_user = true;
    return frame;
}

TEST(StatSemaphores, PythonsQueuesAreMadeOfItsLocks) {
    const auto called = [](const Frame &caller, const char *module = "/usr/bin/python3.11") {
        std::vector<Frame> stack = stack_of({{"PyThread_acquire_lock_timed", false}, {"", false}});
        stack.back().module = module;
        stack.push_back(caller);
        stack.push_back(python("work", "/home/it/prog.py"));
        return stack;
    };
    const std::vector<Frame> own = called(python("look_up", "/home/it/prog.py"));
    EXPECT_FALSE(is_python_work(own));
    EXPECT_TRUE(is_python_own_lock(own));
    const std::vector<Frame> unknown(own.begin(), own.begin() + 2);
    EXPECT_FALSE(is_python_work(unknown));
    EXPECT_FALSE(is_python_own_lock(unknown)) << "the program's functions are not known";
    EXPECT_TRUE(is_python_work(called(python("wait", "/usr/lib/python3.11/threading.py"))));
    EXPECT_TRUE(
        is_python_work(called(python("_worker", "/usr/lib/python3.11/concurrent/futures/thread.py"))));
    EXPECT_TRUE(is_python_work(called(python("look_up", "/home/it/prog.py"),
                                      "/usr/lib/python3.11/lib-dynload/_queue.cpython-311.so")));
    EXPECT_FALSE(is_python_work(stack_of({{"sem_wait", false}, {"_queue_SimpleQueue_get", true}})));
}

// --- epoll sets -----------------------------------------------------------------------------------------------

TEST(StatKernelWaits, WhatAnEpollSetHas) {
    const auto entries = entries_of_set("pos:\t0\nflags:\t02000002\nmnt_id:\t16\nino:\t1058\n"
                                        "tfd:        5 events:       19 data: 7f00  pos:0 ino:3b3 sdev:9\n"
                                        "tfd:       12 events: 10000001 data: 0  pos:0 ino:3b4 sdev:9\n");
    ASSERT_EQ(entries.size(), 2U);
    EXPECT_EQ(entries[0].descriptor, 5);
    EXPECT_EQ(entries[0].events, 0x19U);
    EXPECT_EQ(entries[1].descriptor, 12);
    EXPECT_EQ(entries[1].events, 0x10000001U);
    EXPECT_TRUE(entries_of_set("").empty());
}

// Threads that each wait at an epoll set: `files` by descriptor from 10 on. The stacks of the first look at each are not known.
std::vector<KernelWait> waits_at(const std::vector<std::string> &files) {
    static const std::vector<Frame> stack = stack_of({{"epoll_wait", false}, {"serve", true}});
    static const std::vector<Frame> unknown = stack_of({{"", false}});
    Sampler sampler(100, 0.01);
    for (std::size_t i = 0; i < files.size(); i++) {
        KernelPlace place;
        place.file = files[i];
        place.descriptor = static_cast<long>(10 + i);
        sampler.kernel_places.push_back(place);
        ProcSample one;
        one.thread = static_cast<pid_t>(100 + i);
        one.system_call = SYS_epoll_pwait;
        one.state = 'S';
        one.place = i;
        sampler.samples.insert(sampler.samples.end(), 5, one);
    }
    return kernel_waits(sampler, [](std::size_t index) { return index % 5 == 0 ? &unknown : &stack; });
}

TEST(StatKernelWaits, OneSocketInSeveralSets) {
    const std::string set = "anon_inode:[eventpoll]";
    const auto waits = waits_at({set + kSetOf + "socket:[7]", set + kSetOf + "socket:[7]",
                                 set + kSetOf + "socket:[7]", set + kSetOf + "socket:[8]", set});
    ASSERT_EQ(waits.size(), 6U);
    EXPECT_EQ(waits.front().file, "socket:[7], in 3 epoll sets");
    EXPECT_EQ(waits.front().call, "epoll_pwait");
    EXPECT_EQ(waits.front().threads, 3U);
    EXPECT_EQ(waits.front().samples, 15U);
    EXPECT_TRUE(std::all_of(waits.begin(), waits.end(), [](const KernelWait &wait) {
        return wait.stack.size() == 2 && wait.stack.back().function == "serve";
    }));
    const auto apart = waits_at({set + kSetOf + "socket:[7]", set + kSetOf + "socket:[8]", set});
    EXPECT_EQ(apart.size(), 3U) << "each has its own";
}

} // namespace
