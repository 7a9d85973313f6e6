// SPDX-License-Identifier: Apache-2.0
//
// What the functions answer to wrong arguments and wrong callers, and leave in their results then: as the original of version 1.x,
// against which this file can be compiled, too.
#include <cstdlib>
#include <thread>

#include "streams.hpp"

using namespace abt_test;

namespace {

class Errors : public Alone {};

template <class Handle>
Handle unset() {
    return reinterpret_cast<Handle>(0x7777);
}

void nothing(void *) {}

// Of the older kind: a stack of units.
struct Unit {
    Unit *next = nullptr;
    ABT_thread thread = ABT_THREAD_NULL;
    bool is_in = false;
};

Unit *&top(ABT_pool pool) {
    void *data;
    ABT_pool_get_data(pool, &data);
    return *static_cast<Unit **>(data);
}

Unit *unit_of(ABT_unit unit) {
    return reinterpret_cast<Unit *>(unit);
}

ABT_pool_def old_definition() {
    ABT_pool_def def = {};
    def.access = ABT_POOL_ACCESS_MPMC;
    def.u_get_type = [](ABT_unit) { return ABT_UNIT_TYPE_THREAD; };
    def.u_get_thread = [](ABT_unit unit) { return unit_of(unit)->thread; };
    def.u_is_in_pool = [](ABT_unit unit) { return unit_of(unit)->is_in ? ABT_TRUE : ABT_FALSE; };
    def.u_create_from_thread = [](ABT_thread thread) {
        Unit *unit = new Unit;
        unit->thread = thread;
        return reinterpret_cast<ABT_unit>(unit);
    };
    def.u_free = [](ABT_unit *unit) {
        delete unit_of(*unit);
        *unit = ABT_UNIT_NULL;
    };
    def.p_init = [](ABT_pool pool, ABT_pool_config) { return ABT_pool_set_data(pool, new Unit *(nullptr)); };
    def.p_get_size = [](ABT_pool pool) {
        std::size_t count = 0;
        for (Unit *unit = top(pool); unit != nullptr; unit = unit->next)
            count++;
        return count;
    };
    def.p_push = [](ABT_pool pool, ABT_unit handle) {
        Unit *unit = unit_of(handle);
        unit->is_in = true;
        unit->next = top(pool);
        top(pool) = unit;
    };
    def.p_pop = [](ABT_pool pool) {
        Unit *unit = top(pool);
        if (unit == nullptr)
            return ABT_UNIT_NULL;
        top(pool) = unit->next;
        unit->is_in = false;
        return reinterpret_cast<ABT_unit>(unit);
    };
    def.p_remove = [](ABT_pool pool, ABT_unit handle) -> int {
        for (Unit **place = &top(pool); *place != nullptr; place = &(*place)->next)
            if (*place == unit_of(handle)) {
                *place = (*place)->next;
                unit_of(handle)->is_in = false;
                return ABT_SUCCESS;
            }
        return ABT_ERR_POOL;
    };
    def.p_free = [](ABT_pool pool) -> int {
        delete &top(pool);
        return ABT_SUCCESS;
    };
    def.p_print_all = [](ABT_pool pool, void *arg, void (*print)(void *, ABT_unit)) -> int {
        for (Unit *unit = top(pool); unit != nullptr; unit = unit->next)
            print(arg, reinterpret_cast<ABT_unit>(unit));
        return ABT_SUCCESS;
    };
    return def;
}

} // namespace

TEST_F(Errors, OfTaskletsAreTheirOwn) {
    ABT_task task = ABT_TASK_NULL, self;
    ABT_task_state state;
    ABT_xstream on;
    ABT_pool last;
    ABT_bool flag;
    uint64_t id;
    void *arg;
    int number;
    OK(ABT_self_get_thread(&self));
    EXPECT_EQ(ABT_task_free(&task), ABT_ERR_INV_TASK);
    EXPECT_EQ(ABT_task_join(task), ABT_ERR_INV_TASK);
    EXPECT_EQ(ABT_task_join(self), ABT_ERR_INV_TASK);
    EXPECT_EQ(ABT_task_cancel(task), ABT_ERR_INV_TASK);
    EXPECT_EQ(ABT_task_get_xstream(task, &on), ABT_ERR_INV_TASK);
    EXPECT_EQ(ABT_task_get_state(task, &state), ABT_ERR_INV_TASK);
    EXPECT_EQ(ABT_task_get_last_pool(task, &last), ABT_ERR_INV_TASK);
    EXPECT_EQ(ABT_task_get_last_pool_id(task, &number), ABT_ERR_INV_TASK);
    EXPECT_EQ(ABT_task_set_migratable(task, ABT_TRUE), ABT_ERR_INV_TASK);
    EXPECT_EQ(ABT_task_is_migratable(task, &flag), ABT_ERR_INV_TASK);
    EXPECT_EQ(ABT_task_get_id(task, &id), ABT_ERR_INV_TASK);
    EXPECT_EQ(ABT_task_get_arg(task, &arg), ABT_ERR_INV_TASK);
    EXPECT_EQ(ABT_info_print_task(stdout, task), ABT_ERR_INV_TASK);
    OK(ABT_task_create(pool, nothing, nullptr, &task));
    EXPECT_EQ(ABT_task_revive(pool, nothing, nullptr, &task), ABT_ERR_INV_TASK) << "it has not ended";
    OK(ABT_task_join(task));
    EXPECT_EQ(ABT_task_revive(ABT_POOL_NULL, nothing, nullptr, &task), ABT_ERR_INV_POOL);
    OK(ABT_task_free(&task));
    OK(ABT_task_get_state(self, &state)); // a thread's too
    EXPECT_EQ(state, ABT_TASK_STATE_RUNNING);
}

TEST_F(Errors, SayThatNothingWasMade) {
    ABT_thread thread = unset<ABT_thread>();
    EXPECT_EQ(ABT_thread_create(ABT_POOL_NULL, nothing, nullptr, ABT_THREAD_ATTR_NULL, &thread),
              ABT_ERR_INV_POOL);
    EXPECT_EQ(thread, ABT_THREAD_NULL);
    thread = unset<ABT_thread>();
    EXPECT_EQ(ABT_thread_create_on_xstream(ABT_XSTREAM_NULL, nothing, nullptr, ABT_THREAD_ATTR_NULL, &thread),
              ABT_ERR_INV_XSTREAM);
    EXPECT_EQ(thread, ABT_THREAD_NULL);
    ABT_task task = unset<ABT_task>();
    EXPECT_EQ(ABT_task_create(ABT_POOL_NULL, nothing, nullptr, &task), ABT_ERR_INV_POOL);
    EXPECT_EQ(task, ABT_TASK_NULL);
    task = unset<ABT_task>();
    EXPECT_EQ(ABT_task_create_on_xstream(ABT_XSTREAM_NULL, nothing, nullptr, &task), ABT_ERR_INV_XSTREAM);
    EXPECT_EQ(task, ABT_TASK_NULL);
    std::size_t size = 7;
    EXPECT_EQ(ABT_sched_get_size(ABT_SCHED_NULL, &size), ABT_ERR_INV_SCHED);
    EXPECT_EQ(size, 0U);
}

TEST_F(Errors, OfTwoWrongArgumentsTheFirstThatIsLookedAt) {
    ABT_thread thread = ABT_THREAD_NULL;
    EXPECT_EQ(ABT_thread_revive(ABT_POOL_NULL, nothing, nullptr, &thread), ABT_ERR_INV_THREAD);
    EXPECT_EQ(ABT_thread_revive_to(ABT_POOL_NULL, nothing, nullptr, &thread), ABT_ERR_INV_THREAD);
    OK(ABT_thread_create(pool, nothing, nullptr, ABT_THREAD_ATTR_NULL, &thread));
    EXPECT_EQ(ABT_thread_revive(ABT_POOL_NULL, nothing, nullptr, &thread), ABT_ERR_INV_THREAD);
    OK(ABT_thread_free(&thread));
    EXPECT_EQ(ABT_xstream_run_unit(ABT_UNIT_NULL, ABT_POOL_NULL), ABT_ERR_INV_POOL);
    EXPECT_EQ(ABT_unit_set_associated_pool(ABT_UNIT_NULL, ABT_POOL_NULL), ABT_ERR_INV_POOL);
    EXPECT_EQ(ABT_xstream_exit(), ABT_ERR_INV_XSTREAM);
    ABT_sched sched;
    EXPECT_EQ(
        ABT_sched_create_basic(static_cast<ABT_sched_predef>(99), 0, nullptr, ABT_SCHED_CONFIG_NULL, &sched),
        ABT_ERR_INV_SCHED_PREDEF);
}

TEST_F(Errors, OfExternalCallersComeFirst) {
    std::thread([&] {
        ABT_thread thread = ABT_THREAD_NULL;
        void *value = &thread;
        int id = 5;
        EXPECT_EQ(ABT_thread_create_to(ABT_POOL_NULL, nothing, nullptr, ABT_THREAD_ATTR_NULL, &thread),
                  ABT_ERR_INV_XSTREAM);
        EXPECT_EQ(ABT_thread_revive_to(ABT_POOL_NULL, nothing, nullptr, &thread), ABT_ERR_INV_XSTREAM);
        EXPECT_EQ(ABT_self_yield_to(thread), ABT_ERR_INV_XSTREAM);
        EXPECT_EQ(ABT_self_resume_yield_to(thread), ABT_ERR_INV_XSTREAM);
        EXPECT_EQ(ABT_self_suspend_to(thread), ABT_ERR_INV_XSTREAM);
        EXPECT_EQ(ABT_self_resume_suspend_to(thread), ABT_ERR_INV_XSTREAM);
        EXPECT_EQ(ABT_self_exit_to(thread), ABT_ERR_INV_XSTREAM);
        EXPECT_EQ(ABT_self_resume_exit_to(thread), ABT_ERR_INV_XSTREAM);
        EXPECT_EQ(ABT_self_get_last_pool_id(&id), ABT_ERR_INV_XSTREAM);
        EXPECT_EQ(id, -1);
        // ... but after a key's.
        EXPECT_EQ(ABT_self_set_specific(ABT_KEY_NULL, nullptr), ABT_ERR_INV_KEY);
        EXPECT_EQ(ABT_self_get_specific(ABT_KEY_NULL, &value), ABT_ERR_INV_KEY);
        EXPECT_EQ(ABT_key_set(ABT_KEY_NULL, nullptr), ABT_ERR_INV_KEY);
        EXPECT_EQ(ABT_key_get(ABT_KEY_NULL, &value), ABT_ERR_INV_KEY);
        EXPECT_EQ(value, &thread);
    }).join();
}

// Its place is the caller's where the other one cannot take it.
TEST_F(Errors, OneThatIsNotReadyIsNotYieldedTo) {
    ABT_thread ended, suspended;
    OK(ABT_thread_create(pool, nothing, nullptr, ABT_THREAD_ATTR_NULL, &ended));
    OK(ABT_thread_join(ended));
    auto body = [] { OK(ABT_self_suspend()); };
    suspended = start(pool, body);
    wait_for_state(suspended, ABT_THREAD_STATE_BLOCKED);
    OK(ABT_thread_yield_to(ended));
    OK(ABT_thread_yield_to(suspended));
    EXPECT_EQ(state_of(suspended), ABT_THREAD_STATE_BLOCKED);
    OK(ABT_thread_resume(suspended));
    OK(ABT_thread_free(&suspended));
    OK(ABT_thread_free(&ended));
}

#ifdef ABT_THRUM // undefined in the original
TEST_F(Errors, OneThatWasNotPoppedIsNotRun) {
    ABT_thread self, ended;
    OK(ABT_self_get_thread(&self));
    OK(ABT_thread_create(pool, nothing, nullptr, ABT_THREAD_ATTR_NULL, &ended));
    OK(ABT_thread_join(ended));
    for (ABT_thread thread : {self, ended}) {
        EXPECT_EQ(ABT_self_yield_to(thread), ABT_ERR_INV_THREAD);
        EXPECT_EQ(ABT_self_suspend_to(thread), ABT_ERR_INV_THREAD);
        EXPECT_EQ(ABT_self_schedule(thread, pool), ABT_ERR_INV_THREAD);
    }
    OK(ABT_thread_free(&ended));
}
#endif

TEST_F(Errors, APoolOfTheOlderKindTakesAndGivesManyAndPrintsBoth) {
    ABT_pool_def def = old_definition();
    ABT_pool old;
    OK(ABT_pool_create(&def, ABT_POOL_CONFIG_NULL, &old));
    ABT_thread threads[3], popped[4], one;
    ABT_unit unit;
    for (ABT_thread &thread : threads)
        OK(ABT_thread_create(old, nothing, nullptr, ABT_THREAD_ATTR_NULL, &thread));
    std::vector<ABT_unit> units;
    std::vector<ABT_thread> seen;
    OK(ABT_pool_print_all(old, &units, [](void *arg, ABT_unit at) {
        static_cast<std::vector<ABT_unit> *>(arg)->push_back(at);
    }));
    OK(ABT_pool_print_all_threads(old, &seen, [](void *arg, ABT_thread at) {
        static_cast<std::vector<ABT_thread> *>(arg)->push_back(at);
    }));
    ASSERT_EQ(units.size(), 3U);
    EXPECT_EQ(seen, (std::vector<ABT_thread>{threads[2], threads[1], threads[0]}));
    OK(ABT_thread_get_unit(threads[2], &unit));
    EXPECT_EQ(units[0], unit);
    // It has no function to wait with.
    EXPECT_EQ(ABT_pool_pop_wait(old, &unit, 0.001), ABT_ERR_POOL);
    EXPECT_EQ(ABT_pool_pop_wait_thread(old, &one, 0.001), ABT_ERR_POOL);
    EXPECT_EQ(ABT_pool_pop_timedwait(old, &unit, 0.001), ABT_ERR_POOL);
    std::size_t count = 0;
    OK(ABT_pool_pop_threads(old, popped, 4, &count));
    ASSERT_EQ(count, 3U);
    EXPECT_EQ(popped[0], threads[2]);
    OK(ABT_pool_push_threads(old, popped, 3));
    OK(ABT_pool_get_size(old, &count));
    EXPECT_EQ(count, 3U);
    OK(ABT_pool_pop_threads(old, popped, 3, &count));
    OK(ABT_pool_push_threads(pool, popped, 3));
    for (ABT_thread &thread : threads)
        OK(ABT_thread_free(&thread));
    OK(ABT_pool_free(&old));
}

TEST_F(Errors, IdsAndRanksAreCountedAsTheOriginalDoes) {
    ABT_xstream other;
    ABT_pool own;
    int id = -5;
    OK(ABT_pool_get_id(pool, &id));
    EXPECT_EQ(id, 0);
    OK(ABT_xstream_create(ABT_SCHED_NULL, &other));
    OK(ABT_xstream_get_main_pools(other, 1, &own));
    OK(ABT_pool_get_id(own, &id));
    EXPECT_EQ(id, 2);
    OK(ABT_xstream_set_rank(other, 200));
    unsigned most = 0;
    OK(ABT_info_query_config(ABT_INFO_QUERY_KIND_MAX_NUM_XSTREAMS, &most));
    EXPECT_GE(most, 201U);
    OK(ABT_xstream_free(&other));
}

TEST_F(Errors, WhatHasNoHandleOfTheProgramsIsUnnamed) {
    ABT_bool is_unnamed = ABT_FALSE;
    OK(ABT_self_is_unnamed(&is_unnamed));
    EXPECT_EQ(is_unnamed, ABT_TRUE) << "the primary";
    auto body = [] {
        ABT_bool flag = ABT_TRUE;
        OK(ABT_self_is_unnamed(&flag));
        EXPECT_EQ(flag, ABT_FALSE);
    };
    ABT_thread thread = start(pool, body);
    OK(ABT_thread_free(&thread));
}

TEST_F(Errors, ASchedulerThatIsNotUsedNeedNotStop) {
    ABT_sched sched;
    ABT_bool stops = ABT_TRUE;
    OK(ABT_sched_create_basic(ABT_SCHED_BASIC, 0, nullptr, ABT_SCHED_CONFIG_NULL, &sched));
    OK(ABT_sched_has_to_stop(sched, &stops));
    EXPECT_EQ(stops, ABT_FALSE);
    OK(ABT_sched_free(&sched));
}
