// SPDX-License-Identifier: Apache-2.0
//
// A program that never calls thrum_init; and children of fork.
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "ult.hpp"

namespace {

void *add_one(void *number) {
    static_cast<std::atomic<int> *>(number)->fetch_add(1);
    return number;
}

// 0 if a hundred threads, that yield, run here.
int hundred_run() {
    std::atomic<int> number{0};
    std::array<thrum_t, 100> threads{};
    for (thrum_t &thread : threads)
        if (thrum_spawn(&thread, nullptr, add_one, &number) != 0)
            return 1;
    for (const thrum_t thread : threads)
        if (thrum_join(thread, nullptr) != 0)
            return 2;
    return number == 100 ? 0 : 3;
}

int status_of(pid_t child) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

// In a child: one that hangs is killed.
void limit_child() {
    alarm(20);
}

// --- without thrum_init -----------------------------------------------------------------------------------

using DefaultRuntime = UltPlain;

TEST_F(DefaultRuntime, StartsAtTheFirstSpawn) {
    EXPECT_EQ(in_child([] {
                  if (thrum_workers() != 0)
                      return 10;
                  const int wrong = hundred_run();
                  if (wrong != 0 || thrum_workers() == 0)
                      return 20 + wrong;
                  return thrum_init(nullptr) == EBUSY && thrum_fini() == EPERM ? 0 : 30;
              }),
              0);
}

TEST_F(DefaultRuntime, StartsOnceForSeveralThreads) {
    EXPECT_EQ(in_child([] {
                  std::array<std::thread, 8> threads;
                  std::atomic<int> wrong{0};
                  for (std::thread &thread : threads)
                      thread = std::thread([&wrong] { wrong += hundred_run(); });
                  for (std::thread &thread : threads)
                      thread.join();
                  return wrong.load();
              }),
              0);
}

TEST_F(DefaultRuntime, SaysWhatIsWrongWithTheEnvironment) {
    int status = -1;
    const std::string said = stderr_of([&status] {
        status = in_child([] {
            setenv("THRUM_WORKERS", "many", 1);
            thrum_t thread = nullptr;
            std::atomic<int> number{0};
            if (thrum_spawn(&thread, nullptr, add_one, &number) != EINVAL || number != 0)
                return 1;
            unsetenv("THRUM_WORKERS"); // and then it is there
            return hundred_run();
        });
    });
    EXPECT_EQ(status, 0);
    EXPECT_EQ(said, "thrum: THRUM_WORKERS is 'many'; it takes a number from 1 to 1024\n");
}

// --- fork -------------------------------------------------------------------------------------------------

class UltFork : public UltForking {};

int new_runtime_in_child() {
    if (thrum_workers() != 0 || thrum_self() != nullptr)
        return 10;
    thrum_config config{};
    config.workers = 2;
    if (thrum_init(&config) != 0)
        return 20;
    const int wrong = hundred_run();
    return wrong != 0 ? 30 + wrong : thrum_fini();
}

TEST_P(UltFork, ChildOfTheMainThreadCanHaveANewRuntime) {
    if (ULT_EMULATED && workers() > 1)
        GTEST_SKIP() << "the emulator's child of a fork among threads can start none";
    EXPECT_EQ(hundred_run(), 0);
    EXPECT_EQ(in_child(new_runtime_in_child), 0);
    EXPECT_EQ(hundred_run(), 0);
}

TEST_P(UltFork, ChildOfAUltContinuesAsAnExternalThread) {
    if (ULT_EMULATED && workers() > 1)
        GTEST_SKIP() << "the emulator's child of a fork among threads can start none";
    in_ult([] {
        EXPECT_EQ(hundred_run(), 0);
        EXPECT_EQ(in_child(new_runtime_in_child), 0);
    });
}

TEST_P(UltFork, ChildOfAnExternalThread) {
    if (ULT_EMULATED)
        GTEST_SKIP() << "the emulator's child of a fork among threads can start none";
    External([] {
        EXPECT_EQ(hundred_run(), 0);
        EXPECT_EQ(in_child(new_runtime_in_child), 0);
    }).join();
    EXPECT_EQ(hundred_run(), 0);
}

// A worker blocks signals; the program's thread on it did not ask for that.
TEST_P(UltFork, ChildOfAUltIsEndedBySignalsAsItsProgramIs) {
    in_ult([] {
        const pid_t child = fork();
        if (child == 0) {
            raise(SIGTERM);
            _exit(1);
        }
        EXPECT_EQ(status_of(child), 1000 + SIGTERM);
    });
}

// Returning from its function ends the child, as it does where a pthread forks.
TEST_P(UltFork, ChildOfAUltMayReturn) {
    pid_t child = -1;
    in_ult([&child] {
        const pid_t answer = fork();
        if (answer == 0)
            limit_child();
        else
            child = answer;
    });
    EXPECT_EQ(status_of(child), 0);
}

// What it returns from is no thread of the child's own runtime, if it has begun one.
TEST_P(UltFork, ChildOfAUltMayReturnAfterItHasBegunARuntime) {
    if (ULT_EMULATED && workers() > 1)
        GTEST_SKIP() << "the emulator's child of a fork among threads can start none";
    pid_t child = -1;
    Light forks([&child] {
        const pid_t answer = fork();
        if (answer == 0) {
            limit_child();
            const thrum_config config{1, 0, {}, {}};
            if (thrum_init(&config) != 0)
                _exit(1);
        } else {
            child = answer;
        }
    });
    forks.join();
    EXPECT_EQ(status_of(child), 0);
}

TEST_P(UltFork, ChildOfATasklet) {
    if (ULT_EMULATED && workers() > 1)
        GTEST_SKIP() << "the emulator's child of a fork among threads can start none";
    pid_t child = -1;
    const auto forks = [](void *answer) -> void * {
        const pid_t pid = fork();
        if (pid == 0)
            limit_child();
        else
            *static_cast<pid_t *>(answer) = pid;
        return nullptr;
    };
    std::atomic<int> others{0};
    const pid_t parent = getpid();
    std::vector<Light> lights;
    const thrum_attr_t queued = attr_queued();
    for (int i = 0; i < 10; i++)
        lights.emplace_back(
            [&] {
                if (getpid() != parent)
                    _exit(1); // one of the parent's threads ran in the child
                others++;
            },
            &queued);
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    ASSERT_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_TASKLET), 0);
    thrum_t tasklet = nullptr;
    ASSERT_EQ(thrum_spawn(&tasklet, &attr, forks, &child), 0);
    EXPECT_EQ(thrum_join(tasklet, nullptr), 0);
    lights.clear();
    EXPECT_EQ(others, 10);
    EXPECT_EQ(status_of(child), 0);
}

TEST_P(UltFork, ChildCannotJoinTheParentsThreads) {
    std::atomic<bool> stop{false};
    Light waiting([&stop] {
        while (!stop)
            thrum_yield();
    });
    const pid_t child = fork();
    if (child == 0) {
        limit_child();
        _exit(thrum_join(waiting.handle(), nullptr) == ESRCH ? 0 : 1);
    }
    EXPECT_EQ(status_of(child), 0);
    stop = true;
}

TEST_P(UltFork, AmongBusyWorkers) {
    if (ULT_EMULATED && workers() > 1)
        GTEST_SKIP() << "the emulator's child of a fork among threads can start none";
    std::atomic<bool> stop{false};
    std::vector<Light> busy;
    for (int i = 0; i < 20; i++)
        busy.emplace_back([&stop] {
            while (!stop)
                hundred_run();
        });
    for (int round = 0; round < 10; round++) {
        EXPECT_EQ(in_child(new_runtime_in_child), 0);
        thrum_yield();
    }
    stop = true;
}

ULT_OVER_WORKERS(UltFork);

using ForkPlain = UltPlain;

// A runtime that has ended leaves nothing that a child's own would fall over, nor what the parent's next one would.
TEST_F(ForkPlain, BetweenTwoRuntimes) {
    for (const unsigned workers : {1U, 2U, 8U}) {
        thrum_config config{};
        config.workers = workers;
        ASSERT_EQ(thrum_init(&config), 0);
        EXPECT_EQ(hundred_run(), 0);
        ASSERT_EQ(thrum_fini(), 0);
        EXPECT_EQ(in_child(new_runtime_in_child), 0);
        EXPECT_EQ(
            in_child([] { // one that comes of its own accord
                return hundred_run() != 0 ? 1 : thrum_workers() == 0 ? 2 : thrum_fini() == EPERM ? 0 : 3;
            }),
            0);
    }
}

// A child's child, each with a runtime of its own.
TEST_F(ForkPlain, AChildsChild) {
    if (ULT_EMULATED)
        GTEST_SKIP() << "the emulator's child of a fork among threads can start none";
    EXPECT_EQ(in_child([] {
                  thrum_config config{};
                  config.workers = 2;
                  if (thrum_init(&config) != 0 || hundred_run() != 0)
                      return 10;
                  const int status = in_child(new_runtime_in_child);
                  return status != 0 ? 20 : hundred_run() != 0 ? 30 : thrum_fini();
              }),
              0);
}

} // namespace
