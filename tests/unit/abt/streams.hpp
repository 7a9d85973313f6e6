// SPDX-License-Identifier: Apache-2.0
//
// What most tests need: the library initialised, with a number of streams, each with a pool of its own or all with one.
#pragma once

#include <abt.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdio>
#include <vector>

#define OK(call) ASSERT_EQ(call, ABT_SUCCESS)

namespace abt_test {

class Streams : public testing::TestWithParam<int> {
  public:
    void SetUp() override {
        OK(ABT_init(0, nullptr));
        streams.resize(static_cast<std::size_t>(GetParam()));
        pools.resize(streams.size());
        OK(ABT_xstream_self(&streams[0]));
        for (std::size_t i = 1; i < streams.size(); i++)
            OK(ABT_xstream_create(ABT_SCHED_NULL, &streams[i]));
        for (std::size_t i = 0; i < streams.size(); i++)
            OK(ABT_xstream_get_main_pools(streams[i], 1, &pools[i]));
    }
    void TearDown() override {
        for (std::size_t i = 1; i < streams.size(); i++)
            OK(ABT_xstream_free(&streams[i]));
        OK(ABT_finalize());
        ASSERT_EQ(ABT_initialized(), ABT_ERR_UNINITIALIZED);
    }

    ABT_pool pool(std::size_t i) const { return pools[i % pools.size()]; }

    std::vector<ABT_xstream> streams;
    std::vector<ABT_pool> pools;
};

// One stream.
class Alone : public testing::Test {
  public:
    void SetUp() override {
        OK(ABT_init(0, nullptr));
        OK(ABT_xstream_self(&stream));
        OK(ABT_xstream_get_main_pools(stream, 1, &pool));
    }
    void TearDown() override { OK(ABT_finalize()); }

    ABT_xstream stream = ABT_XSTREAM_NULL;
    ABT_pool pool = ABT_POOL_NULL;
};

// A function object as a thread's function: it must outlive the thread.
template <class F>
void call(void *f) {
    (*static_cast<F *>(f))();
}

template <class F>
ABT_thread start(ABT_pool pool, F &f) {
    ABT_thread thread = ABT_THREAD_NULL;
    EXPECT_EQ(ABT_thread_create(pool, call<F>, &f, ABT_THREAD_ATTR_NULL, &thread), ABT_SUCCESS);
    return thread;
}

template <class F>
ABT_task start_task(ABT_pool pool, F &f) {
    ABT_task task = ABT_TASK_NULL;
    EXPECT_EQ(ABT_task_create(pool, call<F>, &f, &task), ABT_SUCCESS);
    return task;
}

inline ABT_thread_state state_of(ABT_thread thread) {
    ABT_thread_state state = ABT_THREAD_STATE_READY;
    EXPECT_EQ(ABT_thread_get_state(thread, &state), ABT_SUCCESS);
    return state;
}

inline void wait_for_state(ABT_thread thread, ABT_thread_state state) {
    while (state_of(thread) != state)
        ABT_thread_yield();
}

// Death tests of the style "threadsafe" run this program anew. Under qemu-user that is another CPU's, which the kernel does not run.
inline bool can_execute_itself() {
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0)
        return false;
    path[length] = '\0';
    const pid_t child = fork();
    if (child == 0) {
        if (freopen("/dev/null", "w", stdout) != nullptr)
            execl(path, path, "--gtest_list_tests", "--gtest_filter=-*", nullptr);
        _exit(1);
    }
    int status = -1;
    return waitpid(child, &status, 0) == child && status == 0;
}
inline constexpr const char *kCannotExecute = "a program cannot execute itself here (an emulator)";

} // namespace abt_test
