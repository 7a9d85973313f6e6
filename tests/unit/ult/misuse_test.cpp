// SPDX-License-Identifier: Apache-2.0
//
// What a program must not do, and is told: handles that are used up or whose runtime has ended, pools that still have
// threads, waits and ends in regions, ranges and variables that are none.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thrum/pool.h>
#include <thrum/thrum.h>
#include <thrum/worker.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "aborts.hpp"
#include "ult.hpp"

namespace {

void *nothing(void *arg) {
    return arg;
}

void *suspended(void * /*unused*/) {
    thrum_suspend();
    return nullptr;
}

// --- handles ----------------------------------------------------------------------------------------------

// All that can be done with what the runtime has left behind.
class AfterTheRuntime : public UltPlain {
  protected:
    void SetUp() override {
        UltPlain::SetUp();
        const thrum_config config{2, 0, {THRUM_PREEMPT_NONE, 0, 0, 0}, {}};
        ASSERT_EQ(thrum_init(&config), 0);
        ASSERT_EQ(thrum_pool_create(&pool_, THRUM_POOL_FIFO), 0);
        ASSERT_EQ(thrum_spawn(&ended_, nullptr, nothing, nullptr), 0);
        ASSERT_EQ(thrum_spawn(&suspended_, nullptr, suspended, nullptr), 0);
        const thrum_attr_t attr = attr_pool(pool_);
        ASSERT_EQ(thrum_spawn(&pooled_, &attr, nothing, nullptr), 0);
        ASSERT_EQ(thrum_timer_start(
                      &timer_, UINT64_MAX, 0, [](void *) {}, nullptr),
                  0);
        thrum_sleep(THRUM_MS);
        ASSERT_EQ(thrum_fini(), 0);
    }
    void TearDown() override {
        EXPECT_EQ(thrum_pool_destroy(pool_), 0) << "what was in it is no more";
        UltPlain::TearDown();
    }

    thrum_pool_t pool_ = nullptr;
    thrum_t ended_ = nullptr, suspended_ = nullptr, pooled_ = nullptr;
    thrum_timer_t timer_ = THRUM_TIMER_INITIALIZER;
};

TEST_F(AfterTheRuntime, HandlesAreGone) {
    for (const thrum_t thread : {ended_, suspended_, pooled_}) {
        char name[THRUM_NAME_SIZE];
        std::size_t used, size;
        EXPECT_EQ(thrum_join(thread, nullptr), ESRCH);
        EXPECT_EQ(thrum_join_keep(thread, nullptr), ESRCH);
        EXPECT_EQ(thrum_join_until(thread, nullptr, thrum_now() + THRUM_MS), ESRCH);
        EXPECT_EQ(thrum_try_join(thread, nullptr), ESRCH);
        EXPECT_EQ(thrum_join_keep_until(thread, nullptr, thrum_now() + THRUM_MS), ESRCH);
        EXPECT_EQ(thrum_try_join_keep(thread, nullptr), ESRCH);
        EXPECT_EQ(thrum_detach(thread), ESRCH);
        EXPECT_EQ(thrum_revive(thread, nothing, nullptr), ESRCH);
        EXPECT_EQ(thrum_resume(thread), ESRCH);
        EXPECT_EQ(thrum_switch_to(thread), ESRCH);
        EXPECT_EQ(thrum_cancel(thread), ESRCH);
        EXPECT_EQ(thrum_migrate(thread, 0), ESRCH);
        EXPECT_EQ(thrum_migrate_to_pool(thread, pool_), ESRCH);
        EXPECT_EQ(thrum_set_name(thread, "name"), ESRCH);
        EXPECT_EQ(thrum_set_priority(thread, 1), ESRCH);
        EXPECT_EQ(thrum_stack_used(thread, &used, &size), ESRCH);
        EXPECT_EQ(thrum_id(thread), 0U);
        EXPECT_EQ(thrum_get_priority(thread), 0U);
        EXPECT_FALSE(thrum_is_detached(thread));
        thrum_get_name(thread, name);
        EXPECT_STREQ(name, "");
        thrum_wait_t wait = {THRUM_WAIT_JOIN, 0, thread, nullptr, {}};
        EXPECT_EQ(thrum_wait_any(&wait, 1, 0, nullptr), 0);
        EXPECT_EQ(wait.result, ESRCH);
    }
}

TEST_F(AfterTheRuntime, PoolsAndTimersAreEmpty) {
    thrum_t taken;
    EXPECT_EQ(thrum_pool_size(pool_), 0U);
    EXPECT_EQ(thrum_pool_pop(pool_), nullptr);
    EXPECT_EQ(thrum_pool_steal(pool_), nullptr);
    EXPECT_EQ(thrum_pool_pop_many(pool_, &taken, 1), 0U);
    EXPECT_EQ(thrum_timer_stop(&timer_), ESRCH);
    EXPECT_EQ(thrum_timer_stop(&timer_), EINVAL) << "it is as new";
    expect_abort([this] { thrum_pool_push(pool_, pooled_); }, "thrum: misuse: thrum_pool_push: ");
}

TEST_F(AfterTheRuntime, TheRestAnswers) {
    thrum_worker_counters counters;
    unsigned number;
    thrum_key_t key;
    EXPECT_EQ(thrum_self(), nullptr);
    EXPECT_EQ(thrum_workers(), 0U);
    EXPECT_EQ(thrum_worker_self(), -1);
    EXPECT_EQ(thrum_worker_add(&number), ESRCH);
    EXPECT_EQ(thrum_worker_stop(0), ESRCH);
    EXPECT_EQ(thrum_worker_stop_until(0, 1), ESRCH);
    EXPECT_EQ(thrum_worker_get_counters(0, &counters), EINVAL);
    EXPECT_EQ(thrum_worker_set_sched(0, nullptr), EINVAL);
    EXPECT_EQ(thrum_suspend(), EPERM);
    EXPECT_EQ(thrum_dump(STDERR_FILENO, 0), ESRCH);
    EXPECT_EQ(thrum_set_cancel(0), 0);
    EXPECT_EQ(thrum_fini(), EPERM);
    ASSERT_EQ(thrum_key_create(&key, nullptr), 0);
    EXPECT_EQ(thrum_key_set(key, &counters), EPERM);
    EXPECT_EQ(thrum_key_get(key), nullptr);
    EXPECT_EQ(thrum_key_delete(key), 0);
    thrum_yield();
    thrum_testcancel();
    thrum_safepoint();
    thrum_nopreempt_begin();
    thrum_nopreempt_end();
    thrum_sleep(1);
    void *result = nullptr;
    EXPECT_EQ(thrum_blocking(nothing, this, &result), 0);
    EXPECT_EQ(result, this);
    EXPECT_EQ(in_child([this] { // it leaves a kernel thread behind
                  return thrum_blocking_until(nothing, this, nullptr, thrum_now() + 10 * THRUM_S);
              }),
              0);
}

// --- pools ------------------------------------------------------------------------------------------------

class PoolsWithThreads : public UltInTurn {};

TEST_P(PoolsWithThreads, AreBusy) {
    thrum_pool_t pool, other;
    thrum_sched_t sched;
    ASSERT_EQ(thrum_pool_create(&pool, THRUM_POOL_FIFO), 0);
    ASSERT_EQ(thrum_pool_create(&other, THRUM_POOL_FIFO), 0);
    ASSERT_EQ(thrum_sched_create(&sched, THRUM_SCHED_FIRST, &pool, 1), 0);
    ASSERT_EQ(thrum_worker_set_sched(1, sched), 0);
    const thrum_attr_t attr = attr_pool(pool);
    thrum_t joined, detached;
    std::atomic<thrum_t> self{nullptr};
    auto suspend = [](void *at) -> void * {
        *static_cast<std::atomic<thrum_t> *>(at) = thrum_self();
        thrum_suspend();
        *static_cast<std::atomic<thrum_t> *>(at) = nullptr;
        return nullptr;
    };
    ASSERT_EQ(thrum_spawn(&joined, &attr, suspended, nullptr), 0);
    ASSERT_EQ(thrum_spawn(nullptr, &attr, suspend, &self), 0);
    ASSERT_TRUE(eventually([&] { return self != nullptr && thrum_pool_size(pool) == 0; }));
    detached = self;
    thrum_sleep(5 * THRUM_MS); // both wait
    ASSERT_EQ(thrum_worker_set_sched(1, nullptr), 0);
    ASSERT_TRUE(eventually([&] { return thrum_sched_destroy(sched) == 0; }));
    EXPECT_EQ(thrum_pool_destroy(pool), EBUSY) << "two threads would come to it again";
    ASSERT_EQ(thrum_migrate_to_pool(joined, other), 0);
    EXPECT_EQ(thrum_pool_destroy(other), EBUSY) << "it never was in it, and is to come";
    ASSERT_EQ(thrum_migrate(joined, THRUM_ANY_WORKER), 0);
    EXPECT_EQ(thrum_pool_destroy(other), 0);
    EXPECT_EQ(thrum_resume(joined), 0);
    EXPECT_EQ(thrum_join(joined, nullptr), 0);
    EXPECT_EQ(thrum_pool_destroy(pool), EBUSY) << "one does, which nobody can join";
    ASSERT_EQ(thrum_migrate(detached, THRUM_ANY_WORKER), 0);
    EXPECT_EQ(thrum_resume(detached), 0);
    EXPECT_TRUE(eventually([&] { return self == nullptr; }));
    EXPECT_EQ(thrum_pool_destroy(pool), 0);
}

// It may be joined later.
TEST_P(PoolsWithThreads, ThatHaveEndedAreNot) {
    thrum_pool_t pool;
    thrum_sched_t sched;
    ASSERT_EQ(thrum_pool_create(&pool, THRUM_POOL_FIFO), 0);
    ASSERT_EQ(thrum_sched_create(&sched, THRUM_SCHED_FIRST, &pool, 1), 0);
    ASSERT_EQ(thrum_worker_set_sched(1, sched), 0);
    const thrum_attr_t attr = attr_pool(pool);
    thrum_t thread;
    ASSERT_EQ(thrum_spawn(&thread, &attr, nothing, nullptr), 0);
    ASSERT_EQ(thrum_join_keep(thread, nullptr), 0);
    ASSERT_EQ(thrum_worker_set_sched(1, nullptr), 0);
    ASSERT_TRUE(eventually([&] { return thrum_sched_destroy(sched) == 0; }));
    EXPECT_EQ(thrum_pool_destroy(pool), 0);
    EXPECT_EQ(thrum_join(thread, nullptr), 0);
}

INSTANTIATE_TEST_SUITE_P(Workers, PoolsWithThreads, testing::Values(2U), name_of_workers);

// --- regions ----------------------------------------------------------------------------------------------

// In a child, since it ends: inside a runtime of its own, on a thread of it.
void expect_abort_in_region(void *(*work)(void *), const std::string &words) {
    expect_abort(
        [&] {
            const thrum_config config{1, 0, {THRUM_PREEMPT_NONE, 0, 0, 0}, {}};
            thrum_t thread;
            if (thrum_init(&config) == 0 && thrum_spawn(&thread, nullptr, work, nullptr) == 0)
                thrum_join(thread, nullptr);
        },
        words);
}

TEST(Region, OfOneThatWaitsIsTold) {
    const std::string words =
        "between thrum_nopreempt_begin() and thrum_nopreempt_end(), but would have to in ";
    expect_abort_in_region(
        [](void *) -> void * {
            thrum_nopreempt_begin();
            thrum_sleep(THRUM_MS);
            return nullptr;
        },
        words + "thrum_sleep");
    expect_abort_in_region(
        [](void *) -> void * {
            thrum_nopreempt_begin();
            thrum_suspend();
            return nullptr;
        },
        words + "thrum_suspend");
    expect_abort_in_region(
        [](void *) -> void * {
            thrum_sem_t none = THRUM_SEM_INITIALIZER(0);
            thrum_nopreempt_begin();
            thrum_sem_wait(&none);
            return nullptr;
        },
        words + "thrum_sem_wait");
    expect_abort_in_region(
        [](void *) -> void * {
            thrum_nopreempt_begin();
            thrum_blocking(nothing, nullptr, nullptr);
            return nullptr;
        },
        words + "thrum_blocking");
    expect_abort_in_region(
        [](void *) -> void * {
            thrum_t thread;
            thrum_nopreempt_begin();
            if (thrum_spawn(&thread, nullptr, nothing, nullptr) == 0) // which is queued
                thrum_join(thread, nullptr);
            return nullptr;
        },
        words + "thrum_join");
}

TEST(Region, OfOneThatEndsIsTold) {
    const std::string words =
        "a thread must not end between thrum_nopreempt_begin() and thrum_nopreempt_end()";
    expect_abort_in_region(
        [](void *) -> void * {
            thrum_nopreempt_begin();
            return nullptr;
        },
        words);
    expect_abort_in_region(
        [](void *) -> void * {
            thrum_nopreempt_begin();
            thrum_exit(nullptr);
        },
        words);
}

// What does not wait is none of it, nor is a kernel thread.
TEST(Region, OfOthersIsOpenToAll) {
    const thrum_config config{1, 0, {THRUM_PREEMPT_NONE, 0, 0, 0}, {}};
    thrum_nopreempt_begin();
    thrum_sleep(1000);
    thrum_nopreempt_end();
    ASSERT_EQ(thrum_init(&config), 0);
    thrum_sem_t one = THRUM_SEM_INITIALIZER(1);
    thrum_t thread;
    ASSERT_EQ(thrum_spawn(&thread, nullptr, nothing, nullptr), 0);
    thrum_yield();
    thrum_nopreempt_begin();
    thrum_sem_wait(&one);
    thrum_yield();
    EXPECT_EQ(thrum_try_join(thread, nullptr), 0);
    thrum_nopreempt_end();
    ASSERT_EQ(thrum_fini(), 0);
}

// --- the end of main --------------------------------------------------------------------------------------

TEST(ExitOfMain, WritesWhatIsInStreams) {
    const int file = memfd_create("stdout", 0);
    expect_abort(
        [&] {
            dup2(file, STDOUT_FILENO);
            if (thrum_init(nullptr) != 0)
                return;
            std::setvbuf(stdout, nullptr, _IOFBF, 4096);
            std::fputs("what was said before", stdout);
            pthread_exit(nullptr);
        },
        "the thread that called thrum_init() must end by returning from main, or by exit()");
    std::array<char, 64> said{};
    EXPECT_GT(pread(file, said.data(), said.size() - 1, 0), 0);
    EXPECT_STREQ(said.data(), "what was said before");
    close(file);
}

TEST(Cleanup, ThatWasNotPushedIsTold) {
    expect_abort([] { thrum_cleanup_leave(1); }, "thrum: misuse: thrum_cleanup_pop: ");
}

// --- ranges -----------------------------------------------------------------------------------------------

TEST(UsersStack, ThatWrapsAroundIsNone) {
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    std::array<char, 64> somewhere{};
    EXPECT_EQ(thrum_attr_set_stack(&attr, somewhere.data(), SIZE_MAX - 64), EINVAL);
    EXPECT_EQ(thrum_attr_set_stack(&attr, somewhere.data(), SIZE_MAX), EINVAL);
    EXPECT_EQ(thrum_attr_set_stack(&attr, reinterpret_cast<void *>(UINTPTR_MAX - THRUM_STACK_MIN / 2),
                                   THRUM_STACK_MIN),
              EINVAL);
    EXPECT_EQ(thrum_attr_set_stack(&attr, reinterpret_cast<void *>(0x10000), SIZE_MAX / 2 + 1), EINVAL);
}

// --- the environment --------------------------------------------------------------------------------------

// What thrum_init of a new process says with this variable, and answers.
std::string said_with(const std::string &name, const std::string &value, int expected) {
    int status = 0;
    std::string said = stderr_of([&] {
        status = in_child([&] {
            setenv(name.c_str(), value.c_str(), 1);
            dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
            execl("/proc/self/exe", "unit-ult", "--gtest_also_run_disabled_tests",
                  "--gtest_filter=Environment.DISABLED_InitAndFini", nullptr);
            return 99;
        });
    });
    EXPECT_EQ(WEXITSTATUS(status), expected == 0 ? 0 : 1) << name << "=" << value << ": " << said;
    return said;
}

TEST(Environment, DISABLED_InitAndFini) {
    ASSERT_EQ(thrum_init(nullptr), 0);
    ASSERT_EQ(thrum_fini(), 0);
    ASSERT_EQ(thrum_init(nullptr), 0);
    ASSERT_EQ(thrum_fini(), 0);
}

std::size_t lines_about(const std::string &text, const std::string &words) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find(words, at)) != std::string::npos; at += words.size())
        count++;
    return count;
}

TEST(Environment, OfAMisspeltVariableIsTold) {
    const std::array<std::array<const char *, 2>, 7> misspelt = {{{"THRUM_WORKER", "THRUM_WORKERS"},
                                                                  {"THRUM_STACKSIZE", "THRUM_STACK_SIZE"},
                                                                  {"THRUM_PREEMPTION", "THRUM_PREEMPT"},
                                                                  {"THRUM_SILCE", "THRUM_SLICE"},
                                                                  {"THRUM_TICKS", "THRUM_TICK"},
                                                                  {"THRUM_TRACE_FILE", "THRUM_TRACE"},
                                                                  {"THRUM_BINDING", "THRUM_BIND"}}};
    for (const auto &[name, meant] : misspelt) {
        const std::string said = said_with(name, "4", 0);
        const std::string words = "thrum: " + std::string(name) + " is in the environment, but ";
        EXPECT_EQ(lines_about(said, words), 1U) << said;
        EXPECT_NE(said.find("did you mean " + std::string(meant) + "?\n"), std::string::npos) << said;
    }
    for (const char *none : {"THRUM_NUMBER_OF_CARROTS", "THRUM_STATS", "THRUM_CACHEVERBOSE"})
        EXPECT_EQ(lines_about(said_with(none, "4", 0), "libthrum(7)"), 1U) << none;
}

TEST(Environment, OfOthersIsNotJudged) {
    for (const char *name :
         {"THRUM_ROOT", "THRUM_CACHE_VERBOSE", "THRUM_VERBOSE", "THRUMMING", "MY_THRUM_WORKER"})
        EXPECT_EQ(said_with(name, "0", 0).find("thrum: "), std::string::npos) << name;
}

TEST(Environment, OfEachKnownVariableIsSilent) {
    for (const char *name :
         {"THRUM_WORKERS", "THRUM_STACK_SIZE", "THRUM_PREEMPT", "THRUM_SLICE", "THRUM_TICK", "THRUM_SIGNAL",
          "THRUM_BIND", "THRUM_TRACE", "THRUM_OVERFLOW", "THRUM_TRACE_EVENTS"})
        EXPECT_EQ(said_with(name, "", 0).find(" is in the environment"), std::string::npos) << name;
}

TEST(Environment, OfASignalNeedsItsNumber) {
    for (const char *value :
         {"rtmin+", "rtmin+ 1", "rtmin+-1", "rtmin++1", "rtmin", " 40", "+40", "40x", "rtmin+99"}) {
        const std::string said = said_with("THRUM_SIGNAL", value, EINVAL);
        EXPECT_NE(said.find("THRUM_SIGNAL is '" + std::string(value) + "'; it takes "), std::string::npos)
            << said;
    }
    EXPECT_EQ(said_with("THRUM_SIGNAL", "rtmin+0", 0), "");
    EXPECT_EQ(said_with("THRUM_SIGNAL", "rtmin+5", 0), "");
}

} // namespace
