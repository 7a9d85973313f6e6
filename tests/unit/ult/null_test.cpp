// SPDX-License-Identifier: Apache-2.0
//
// Each public function, given NULL where it needs an object, a handle, a function or a place for its result: EINVAL, or
// what its header says instead; those that have no error to answer say so in one line and abort. That no function is
// missing here is asserted against the library's map of symbols.
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <thrum/pool.h>
#include <thrum/scope.h>
#include <thrum/thrum.h>
#include <thrum/worker.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "ult.hpp"

namespace {

void *nothing(void *arg) {
    return arg;
}

void *const kNoArgument = nullptr;

struct Call {
    const char *name;
    std::function<int()> call;
};

// clang-format off
#define ANSWERS(function, ...) Call{#function, [] { return static_cast<int>(function(__VA_ARGS__)); }}
#define GIVES(function, ...) Call{#function, [] { return function(__VA_ARGS__) != nullptr ? 1 : 0; }}
#define ENDS(function, ...) Call{#function, [] { function(__VA_ARGS__); return 0; }}
// clang-format on

thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
thrum_cond_t cond = THRUM_COND_INITIALIZER;
thrum_once_t once = THRUM_ONCE_INITIALIZER;
thrum_timer_t timer = THRUM_TIMER_INITIALIZER;
thrum_channel_t channel = THRUM_CHANNEL_UNBOUNDED_INITIALIZER(sizeof(int));
thrum_wait_t no_object = {THRUM_WAIT_EVENT, 0, nullptr, nullptr, {}};
thrum_when_t no_when = {&no_object, 1, 0, [](void *) {}, nullptr, 0, 0, 0, {}};
thrum_pool_t no_pools[2] = {nullptr, nullptr};
std::size_t bytes;
thrum_future_t future;
thrum_cleanup no_function = {nullptr, nullptr, nullptr};

const std::vector<Call> &answers_einval() {
    static const std::vector<Call> calls = {
        ANSWERS(thrum_attr_set_flags, nullptr, 0),
        ANSWERS(thrum_attr_set_stack_size, nullptr, 1 << 16),
        ANSWERS(thrum_attr_set_stack, nullptr, nullptr, 0),
        ANSWERS(thrum_attr_set_worker, nullptr, 0),
        ANSWERS(thrum_attr_set_priority, nullptr, 0),
        ANSWERS(thrum_attr_set_preempt, nullptr, 0),
        ANSWERS(thrum_attr_set_slice, nullptr, 0),
        ANSWERS(thrum_spawn, nullptr, nullptr, nullptr, kNoArgument),
        ANSWERS(thrum_spawn_many, 1, nullptr, nullptr, nothing, kNoArgument, 0),
        ANSWERS(thrum_join, nullptr, nullptr),
        ANSWERS(thrum_join_keep, nullptr, nullptr),
        ANSWERS(thrum_join_until, nullptr, nullptr, 1),
        ANSWERS(thrum_try_join, nullptr, nullptr),
        ANSWERS(thrum_join_keep_until, nullptr, nullptr, 1),
        ANSWERS(thrum_try_join_keep, nullptr, nullptr),
        ANSWERS(thrum_revive, nullptr, nothing, kNoArgument),
        ANSWERS(thrum_revive, thrum_self(), nullptr, kNoArgument),
        ANSWERS(thrum_detach, nullptr),
        ANSWERS(thrum_resume, nullptr),
        ANSWERS(thrum_switch_to, nullptr),
        ANSWERS(thrum_cancel, nullptr),
        ANSWERS(thrum_migrate, nullptr, 0),
        ANSWERS(thrum_migrate_to_pool, nullptr, nullptr),
        ANSWERS(thrum_migrate_to_pool, thrum_self(), nullptr),
        ANSWERS(thrum_set_name, nullptr, "name"),
        ANSWERS(thrum_set_name, thrum_self(), nullptr),
        ANSWERS(thrum_set_priority, nullptr, 1),
        ANSWERS(thrum_stack_used, nullptr, &bytes, &bytes),
        ANSWERS(thrum_stack_used, thrum_self(), nullptr, &bytes),
        ANSWERS(thrum_stack_used, thrum_self(), &bytes, nullptr),
        ANSWERS(thrum_key_create, nullptr, nullptr),
        ANSWERS(thrum_blocking, nullptr, kNoArgument, nullptr),
        ANSWERS(thrum_blocking_until, nullptr, kNoArgument, nullptr, 1),
        ANSWERS(thrum_worker_get_counters, 0, nullptr),
        ANSWERS(
            thrum_timer_start, nullptr, 0, 0, [](void *) {}, kNoArgument),
        ANSWERS(thrum_timer_start, &timer, 0, 0, nullptr, kNoArgument),
        ANSWERS(thrum_timer_stop, nullptr),
        ANSWERS(thrum_timer_stop_until, nullptr, 1),
        ANSWERS(thrum_call_at, nullptr, 0, nullptr, kNoArgument),
        ANSWERS(thrum_call_cancel, thrum_call_t{}),
        ANSWERS(thrum_pool_create, nullptr, THRUM_POOL_FIFO),
        ANSWERS(thrum_pool_create_user, nullptr, nullptr, kNoArgument),
        ANSWERS(thrum_pool_destroy, nullptr),
        ANSWERS(thrum_sched_create, nullptr, THRUM_SCHED_FIRST, no_pools, 1),
        ANSWERS(thrum_sched_create_stealing, nullptr, no_pools, 1, 1, 0),
        ANSWERS(thrum_sched_create_user, nullptr, nullptr, kNoArgument, no_pools, 1),
        ANSWERS(thrum_sched_destroy, nullptr),
        ANSWERS(thrum_sched_set_slice, nullptr, 0),
        ANSWERS(thrum_sched_spawn, nullptr, nullptr, nullptr),
        ANSWERS(thrum_mutex_init, nullptr, 0),
        ANSWERS(thrum_mutex_lock_until, nullptr, 0),
        ANSWERS(thrum_mutex_try_lock, nullptr),
        ANSWERS(thrum_mutex_unlock, nullptr),
        ANSWERS(thrum_mutex_destroy, nullptr),
        ANSWERS(thrum_cond_wait_until, nullptr, &mutex, 0),
        ANSWERS(thrum_cond_destroy, nullptr),
        ANSWERS(thrum_rwlock_read_lock_until, nullptr, 0),
        ANSWERS(thrum_rwlock_try_read_lock, nullptr),
        ANSWERS(thrum_rwlock_write_lock_until, nullptr, 0),
        ANSWERS(thrum_rwlock_try_write_lock, nullptr),
        ANSWERS(thrum_rwlock_unlock, nullptr),
        ANSWERS(thrum_rwlock_destroy, nullptr),
        ANSWERS(thrum_sem_init, nullptr, 0),
        ANSWERS(thrum_sem_wait_until, nullptr, 0),
        ANSWERS(thrum_sem_try_wait, nullptr),
        ANSWERS(thrum_sem_post, nullptr),
        ANSWERS(thrum_sem_post_many, nullptr, 1),
        ANSWERS(thrum_sem_destroy, nullptr),
        ANSWERS(thrum_barrier_init, nullptr, 1),
        ANSWERS(thrum_barrier_wait_until, nullptr, 0, nullptr),
        ANSWERS(thrum_barrier_destroy, nullptr),
        ANSWERS(thrum_event_wait_until, nullptr, 0),
        ANSWERS(thrum_event_try_wait, nullptr),
        ANSWERS(thrum_event_destroy, nullptr),
        ANSWERS(thrum_latch_count_down, nullptr, 1),
        ANSWERS(thrum_latch_wait_until, nullptr, 0),
        ANSWERS(thrum_latch_try_wait, nullptr),
        ANSWERS(thrum_latch_destroy, nullptr),
        ANSWERS(thrum_eventual_set, nullptr, kNoArgument),
        ANSWERS(thrum_eventual_get_until, nullptr, nullptr, 0),
        ANSWERS(thrum_eventual_try_get, nullptr, nullptr),
        ANSWERS(thrum_eventual_reset, nullptr),
        ANSWERS(thrum_eventual_destroy, nullptr),
        ANSWERS(thrum_future_set, nullptr, kNoArgument),
        ANSWERS(thrum_future_wait_until, nullptr, 0),
        ANSWERS(thrum_future_try_wait, nullptr),
        ANSWERS(thrum_future_reset, nullptr),
        ANSWERS(thrum_future_destroy, nullptr),
        ANSWERS(
            thrum_once_call_until, nullptr, [](void *) {}, kNoArgument, 0),
        ANSWERS(thrum_once_call_until, &once, nullptr, kNoArgument, 0),
        ANSWERS(
            thrum_once_try_call, nullptr, [](void *) {}, kNoArgument),
        ANSWERS(thrum_channel_init, nullptr, 1, 0, nullptr),
        ANSWERS(thrum_channel_send, nullptr, "x"),
        ANSWERS(thrum_channel_send, &channel, nullptr),
        ANSWERS(thrum_channel_send_until, nullptr, "x", 0),
        ANSWERS(thrum_channel_try_send, nullptr, "x"),
        ANSWERS(thrum_channel_try_send, &channel, nullptr),
        ANSWERS(thrum_channel_receive, nullptr, nullptr),
        ANSWERS(thrum_channel_receive_until, nullptr, nullptr, 0),
        ANSWERS(thrum_channel_try_receive, nullptr, nullptr),
        ANSWERS(thrum_channel_close, nullptr),
        ANSWERS(thrum_channel_destroy, nullptr),
        ANSWERS(thrum_wait_any, nullptr, 1, 0, nullptr),
        ANSWERS(thrum_spawn_when, nullptr, nullptr),
        ANSWERS(thrum_spawn_when, nullptr, &no_when),
        ANSWERS(thrum_scope_begin, nullptr, 0),
        ANSWERS(thrum_scope_spawn, nullptr, nullptr, nullptr, kNoArgument),
        ANSWERS(thrum_scope_cancel, nullptr),
        ANSWERS(thrum_scope_end, nullptr),
        ANSWERS(thrum_wait_any, &no_object, 1, 0, nullptr),
    };
    return calls;
}

// What has another kind of answer.
const std::vector<Call> &answers_nothing() {
    static const std::vector<Call> calls = {
        ANSWERS(thrum_id, nullptr),
        ANSWERS(thrum_get_priority, nullptr),
        ANSWERS(thrum_is_detached, nullptr),
        ANSWERS(thrum_pool_size, nullptr),
        ANSWERS(thrum_pool_pop_many, nullptr, nullptr, 1),
        ANSWERS(thrum_sem_count, nullptr),
        ANSWERS(thrum_channel_count, nullptr),
        ANSWERS(thrum_scope_cancelled, nullptr),
        GIVES(thrum_pool_pop, nullptr),
        GIVES(thrum_pool_steal, nullptr),
        GIVES(thrum_sched_pool, nullptr, 0),
    };
    return calls;
}

const std::vector<Call> &ends_the_process() {
    static const std::vector<Call> calls = {
        ENDS(thrum_attr_init, nullptr),
        ENDS(thrum_attr_set_deadline, nullptr, 0),
        ENDS(thrum_attr_set_pool, nullptr, nullptr),
        ENDS(thrum_get_name, nullptr, nullptr),
        ENDS(thrum_cleanup_enter, nullptr),
        ENDS(thrum_cleanup_enter, &no_function),
        ENDS(thrum_mutex_lock, nullptr),
        ENDS(thrum_cond_init, nullptr),
        ENDS(thrum_cond_wait, nullptr, &mutex),
        ENDS(thrum_cond_wait, &cond, nullptr),
        ENDS(thrum_cond_signal, nullptr),
        ENDS(thrum_cond_broadcast, nullptr),
        ENDS(thrum_rwlock_init, nullptr),
        ENDS(thrum_rwlock_read_lock, nullptr),
        ENDS(thrum_rwlock_write_lock, nullptr),
        ENDS(thrum_sem_wait, nullptr),
        ENDS(thrum_barrier_wait, nullptr),
        ENDS(thrum_event_init, nullptr),
        ENDS(thrum_event_set, nullptr),
        ENDS(thrum_event_reset, nullptr),
        ENDS(thrum_event_wait, nullptr),
        ENDS(thrum_latch_init, nullptr, 1),
        ENDS(thrum_latch_wait, nullptr),
        ENDS(thrum_eventual_init, nullptr),
        ENDS(thrum_eventual_get, nullptr),
        ENDS(thrum_future_init, nullptr, nullptr, 0),
        ENDS(thrum_future_init, &future, nullptr, 1),
        ENDS(thrum_future_wait, nullptr),
        ENDS(
            thrum_once_call, nullptr, [](void *) {}, kNoArgument),
        ENDS(thrum_once_call, &once, nullptr, kNoArgument),
        ENDS(thrum_timer_init, nullptr),
        ENDS(thrum_pool_push, nullptr, nullptr),
        ENDS(thrum_link, nullptr),
        ENDS(thrum_run, nullptr),
        ENDS(thrum_sched_stopping, nullptr),
        ENDS(thrum_sched_idle, nullptr),
        ENDS(thrum_sched_stop, nullptr),
    };
    return calls;
}

// Those that take no pointer, or may take NULL.
const std::set<std::string> &takes_none() {
    static const std::set<std::string> names = {"thrum_acquire",
                                                "thrum_release",
                                                "thrum_cleanup_leave",
                                                "thrum_dump",
                                                "thrum_exit",
                                                "thrum_exit_to",
                                                "thrum_fini",
                                                "thrum_image",
                                                "thrum_init",
                                                "thrum_kthread_lock",
                                                "thrum_kthread_unlock",
                                                "thrum_key_delete",
                                                "thrum_key_get",
                                                "thrum_key_set",
                                                "thrum_nopreempt_begin",
                                                "thrum_nopreempt_end",
                                                "thrum_now",
                                                "thrum_runtime_id",
                                                "thrum_safepoint",
                                                "thrum_scope_deadline",
                                                "thrum_self",
                                                "thrum_set_cancel",
                                                "thrum_sleep",
                                                "thrum_sleep_until",
                                                "thrum_suspend",
                                                "thrum_suspend_until",
                                                "thrum_testcancel",
                                                "thrum_worker_add",
                                                "thrum_worker_add_until",
                                                "thrum_worker_self",
                                                "thrum_worker_set_sched",
                                                "thrum_worker_stop",
                                                "thrum_worker_stop_until",
                                                "thrum_workers",
                                                "thrum_workers_default",
                                                "thrum_yield"};
    return names;
}

class Null : public UltInTurn {};

TEST_P(Null, IsEinval) {
    for (const Call &call : answers_einval())
        EXPECT_EQ(call.call(), EINVAL) << call.name;
    in_ult([] {
        for (const Call &call : answers_einval())
            EXPECT_EQ(call.call(), EINVAL) << call.name;
    });
}

TEST_P(Null, IsNothing) {
    for (const Call &call : answers_nothing())
        EXPECT_EQ(call.call(), 0) << call.name;
    char name[THRUM_NAME_SIZE] = "before";
    thrum_get_name(nullptr, name);
    EXPECT_STREQ(name, "");
}

// Where an array has nothing in it, nothing is wrong with it.
TEST_P(Null, MayBeAnArrayOfNothing) {
    EXPECT_EQ(thrum_spawn_many(0, nullptr, nullptr, nothing, kNoArgument, 0), 0);
    thrum_future_init(&future, nullptr, 0);
    EXPECT_EQ(thrum_future_try_wait(&future), 0);
    thrum_channel_t counts = THRUM_CHANNEL_UNBOUNDED_INITIALIZER(0);
    EXPECT_EQ(thrum_channel_send(&counts, nullptr), 0);
    EXPECT_EQ(thrum_channel_receive(&counts, nullptr), 0);
    EXPECT_EQ(thrum_channel_destroy(&counts), 0);
}

INSTANTIATE_TEST_SUITE_P(Workers, Null, testing::Values(2U), name_of_workers);

TEST(NullPlain, EndsTheProcessWithALine) {
    for (const Call &call : ends_the_process()) {
        int status = 0;
        const std::string said = stderr_of([&] { status = in_child([&] { return call.call() + 7; }); });
        EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << call.name << ": status " << status;
        EXPECT_NE(said.find("thrum: misuse: " + std::string(call.name) + ": "), std::string::npos) << said;
    }
}

TEST(NullPlain, IsTriedOnEachFunction) {
    std::set<std::string> tried = takes_none();
    for (const std::vector<Call> &calls : {answers_einval(), answers_nothing(), ends_the_process()})
        for (const Call &call : calls)
            tried.insert(call.name);
    std::ifstream map(ULT_MAP);
    std::size_t functions = 0;
    for (std::string line; std::getline(map, line);) {
        const std::size_t from = line.find("    thrum_"), to = line.find(';');
        if (from != 0 || to == std::string::npos)
            continue;
        functions++;
        EXPECT_EQ(tried.count(line.substr(4, to - 4)), 1U) << line;
    }
    EXPECT_GT(functions, 150U);
}

} // namespace
