// SPDX-License-Identifier: Apache-2.0
//
// Thread control blocks that have no kernel thread (preempt/blocks.h), as libc sees them.
#include <atomic>
#include <cerrno>
#include <csignal>
#include <dlfcn.h>
#include <pthread.h>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "blocks.h"
#include "preempt.hpp"

namespace {

class Blocks : public testing::Test {
  protected:
    void SetUp() override {
        if (annotated())
            GTEST_SKIP() << "no thread is preempted under this tool";
        const char *why = blocks_why_not();
        ASSERT_EQ(why, nullptr) << why;
    }
    void TearDown() override {
        for (void *block : blocks)
            blocks_put(block);
    }
    void *make() {
        void *block = blocks_get();
        if (block != nullptr)
            blocks.push_back(block);
        return block;
    }
    static pthread_t handle(void *block) { return static_cast<pthread_t>(blocks_base(block)); }
    static bool annotated() { return blocks_are_not_for_tools(); }

    std::vector<void *> blocks;
};

} // namespace

// Each is another, and takes no kernel thread.
TEST_F(Blocks, TakeNoKernelThreads) {
    const std::size_t before = threads_of_process();
    std::set<pthread_t> handles;
    for (int i = 0; i < 100; i++) {
        void *block = make();
        ASSERT_NE(block, nullptr);
        handles.insert(handle(block));
    }
    EXPECT_EQ(handles.size(), 100U);
    EXPECT_TRUE(eventually([&] { return threads_of_process() <= before; })) << threads_of_process();
}

// For libc it runs, under a number that no kernel thread has.
TEST_F(Blocks, SeemToRun) {
    void *block = make();
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(pthread_tryjoin_np(handle(block), nullptr), EBUSY);
    EXPECT_EQ(pthread_kill(handle(block), 0), ESRCH);
}

// One that was kept is made again.
TEST_F(Blocks, AreMadeAgain) {
    void *block = make();
    ASSERT_NE(block, nullptr);
    blocks_put(block);
    EXPECT_EQ(blocks_get(), block);
}

// Libc's count of threads does not know of them: it is by this that the process ends with its last thread.
TEST_F(Blocks, AreNotCounted) {
    const auto *count = static_cast<const unsigned *>(dlsym(RTLD_DEFAULT, "__nptl_nthreads"));
    ASSERT_NE(count, nullptr);
    const unsigned before = *count;
    for (int i = 0; i < 10; i++)
        ASSERT_NE(make(), nullptr);
    EXPECT_EQ(*count, before);
}

// While kernel threads leave their blocks another thread changes the ids of all: each call ends, and a thread that stays has the new
// ones. Where that is not permitted the call changes nothing, and is made by all nevertheless.
TEST_F(Blocks, AreMadeWhileIdsChange) {
    std::atomic<bool> over{false};
    std::atomic<int> calls{0};
    std::thread setter([&] {
        while (!over) {
            EXPECT_EQ(setresuid(static_cast<uid_t>(-1), static_cast<uid_t>(-1), static_cast<uid_t>(-1)), 0);
            calls++;
        }
    });
    for (int i = 0; i < (ULT_EMULATED ? 30 : 200) || calls < 20; i++)
        ASSERT_NE(make(), nullptr);
    over = true;
    setter.join();
}

// A child of fork has none of its parent's, and makes its own.
TEST_F(Blocks, AreForgottenByAChildOfFork) {
    void *block = make();
    ASSERT_NE(block, nullptr);
    blocks_put(block);
    blocks.clear();
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        blocks_forget();
        void *other = blocks_get();
        _exit(other != nullptr && other != block && pthread_kill(handle(other), 0) == ESRCH ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}
