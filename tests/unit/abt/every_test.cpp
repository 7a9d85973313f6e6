// SPDX-License-Identifier: Apache-2.0
//
// Each function of abt.h, called with a null handle wherever it takes one, by four callers: the primary thread, a tasklet, an external
// kernel thread, and before ABT_init. What they answer is in every.inc, one row a function; check-interface.sh asks that no function
// lacks one. The original of version 1.x gives the same answers to the first three. Compiled against it, this file lacks the rows of
// thrum_abt_, and that of ABT_pool_create, which crashes there.
#include <abt.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

namespace {

FILE *sink() {
    static FILE *const file = std::fopen("/dev/null", "w");
    return file;
}

// Room for any result, and for a handle that is passed by its address: all 0 each time.
struct alignas(16) Scratch {
    unsigned char bytes[256] = {};
};

// What a function is called with in the place of an argument of that type.
template <class T>
struct Argument {
    static T get(Scratch &) { return T{}; } // numbers and enumerations
};
// The address of a result, or of a null handle.
template <class T>
struct Argument<T *> {
    static T *get(Scratch &scratch) {
        if constexpr (std::is_function_v<T>)
            return nullptr;
        else if constexpr (std::is_pointer_v<T>) {
            const T handle = Argument<T>::get(scratch);
            std::memcpy(scratch.bytes, &handle, sizeof handle);
        }
        return reinterpret_cast<T *>(scratch.bytes);
    }
};
template <>
struct Argument<FILE *> {
    static FILE *get(Scratch &) { return sink(); }
};

#define NULL_OF(type, value)                                                                                 \
    template <>                                                                                              \
    struct Argument<type> {                                                                                  \
        static type get(Scratch &) { return value; }                                                         \
    };
NULL_OF(ABT_xstream, ABT_XSTREAM_NULL)
NULL_OF(ABT_xstream_barrier, ABT_XSTREAM_BARRIER_NULL)
NULL_OF(ABT_sched, ABT_SCHED_NULL)
NULL_OF(ABT_sched_config, ABT_SCHED_CONFIG_NULL)
NULL_OF(ABT_pool, ABT_POOL_NULL)
NULL_OF(ABT_pool_config, ABT_POOL_CONFIG_NULL)
NULL_OF(ABT_pool_user_def, ABT_POOL_USER_DEF_NULL)
NULL_OF(ABT_unit, ABT_UNIT_NULL)
NULL_OF(ABT_thread, ABT_THREAD_NULL)
NULL_OF(ABT_thread_attr, ABT_THREAD_ATTR_NULL)
NULL_OF(ABT_key, ABT_KEY_NULL)
NULL_OF(ABT_mutex, ABT_MUTEX_NULL)
NULL_OF(ABT_mutex_attr, ABT_MUTEX_ATTR_NULL)
NULL_OF(ABT_cond, ABT_COND_NULL)
NULL_OF(ABT_rwlock, ABT_RWLOCK_NULL)
NULL_OF(ABT_eventual, ABT_EVENTUAL_NULL)
NULL_OF(ABT_future, ABT_FUTURE_NULL)
NULL_OF(ABT_barrier, ABT_BARRIER_NULL)
NULL_OF(ABT_timer, ABT_TIMER_NULL)
NULL_OF(ABT_tool_context, ABT_TOOL_CONTEXT_NULL)

template <class... Args, std::size_t... I>
int call_with(int (*function)(Args...), Scratch *scratch, std::index_sequence<I...>) {
    return function(Argument<Args>::get(scratch[I])...);
}
template <class... Args>
int call(int (*function)(Args...)) {
    std::array<Scratch, sizeof...(Args) + 1> scratch;
    return call_with(function, scratch.data(), std::index_sequence_for<Args...>());
}

#define ANSWERS(name, of_thread, of_tasklet, of_external, before_init)                                       \
    {#name, {of_thread, of_tasklet, of_external, before_init}, [] { return call(name); }},
#define IS_CALLED_ELSEWHERE(name)

struct Row {
    const char *name;
    int answers[4];
    int (*call)();
};

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
const Row kRows[] = {
#include "every.inc"
};

void ask(std::map<std::string, int> &answers) {
    for (const Row &row : kRows)
        answers[row.name] = row.call();
}

// THRUM_ABT_WRITE prints them, for every.inc.
void check(int caller, const std::map<std::string, int> &answers) {
    const bool prints = std::getenv("THRUM_ABT_WRITE") != nullptr;
    for (const Row &row : kRows) {
        if (prints)
            std::printf("%s %d %d\n", row.name, caller, answers.at(row.name));
        else
            EXPECT_EQ(answers.at(row.name), row.answers[caller]) << row.name;
    }
}

void ask_as_tasklet(void *answers) {
    ask(*static_cast<std::map<std::string, int> *>(answers));
}

} // namespace

TEST(Every, FunctionAnswersThreads) {
    std::map<std::string, int> answers;
    ASSERT_EQ(ABT_init(0, nullptr), ABT_SUCCESS);
    ask(answers);
    ASSERT_EQ(ABT_finalize(), ABT_SUCCESS);
    check(0, answers);
}

TEST(Every, FunctionAnswersTasklets) {
    std::map<std::string, int> answers;
    ABT_xstream self;
    ABT_task task;
    ASSERT_EQ(ABT_init(0, nullptr), ABT_SUCCESS);
    ASSERT_EQ(ABT_xstream_self(&self), ABT_SUCCESS);
    ASSERT_EQ(ABT_task_create_on_xstream(self, ask_as_tasklet, &answers, &task), ABT_SUCCESS);
    ASSERT_EQ(ABT_task_free(&task), ABT_SUCCESS);
    ASSERT_EQ(ABT_finalize(), ABT_SUCCESS);
    check(1, answers);
}

TEST(Every, FunctionAnswersExternalThreads) {
    std::map<std::string, int> answers;
    ASSERT_EQ(ABT_init(0, nullptr), ABT_SUCCESS);
    std::thread([&] { ask(answers); }).join();
    ASSERT_EQ(ABT_finalize(), ABT_SUCCESS);
    check(2, answers);
}

TEST(Every, FunctionAnswersBeforeInit) {
    std::map<std::string, int> answers;
    ask(answers);
    check(3, answers);
}
