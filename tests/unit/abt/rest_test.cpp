// SPDX-License-Identifier: Apache-2.0
//
// Functions that no other test uses, or only with null handles: what they do, on 1 to 8 streams.
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>

#include <thrum/thrum.h>

#include "streams.hpp"

using namespace abt_test;

namespace {

class Rest : public Streams {};

void nothing(void *) {}

template <class F>
std::string printed(F print) {
    char *text = nullptr;
    std::size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    EXPECT_EQ(print(file), ABT_SUCCESS);
    std::fclose(file);
    std::string result(text, size);
    std::free(text);
    return result;
}

// A pool of the newer kind with all that it may have. Its handles of units are those of threads.
struct Deque {
    std::mutex mutex;
    std::deque<ABT_thread> threads;
    int many_pushed = 0, many_popped = 0, waited = 0;
};

Deque &of(ABT_pool pool) {
    void *data;
    EXPECT_EQ(ABT_pool_get_data(pool, &data), ABT_SUCCESS);
    return *static_cast<Deque *>(data);
}

ABT_thread pop(ABT_pool pool, ABT_pool_context) {
    Deque &deque = of(pool);
    const std::lock_guard lock(deque.mutex);
    if (deque.threads.empty())
        return ABT_THREAD_NULL;
    ABT_thread thread = deque.threads.front();
    deque.threads.pop_front();
    return thread;
}

void push(ABT_pool pool, ABT_unit unit, ABT_pool_context) {
    Deque &deque = of(pool);
    const std::lock_guard lock(deque.mutex);
    deque.threads.push_back(reinterpret_cast<ABT_thread>(unit));
}

ABT_pool_user_def full_definition() {
    ABT_pool_user_def def = ABT_POOL_USER_DEF_NULL;
    EXPECT_EQ(ABT_pool_user_def_create(
                  [](ABT_pool, ABT_thread thread) { return reinterpret_cast<ABT_unit>(thread); },
                  [](ABT_pool, ABT_unit) {},
                  [](ABT_pool pool) -> ABT_bool {
                      const std::lock_guard lock(of(pool).mutex);
                      return of(pool).threads.empty();
                  },
                  pop, push, &def),
              ABT_SUCCESS);
    EXPECT_EQ(ABT_pool_user_def_set_init(
                  def, [](ABT_pool pool, ABT_pool_config) { return ABT_pool_set_data(pool, new Deque); }),
              ABT_SUCCESS);
    EXPECT_EQ(ABT_pool_user_def_set_free(def, [](ABT_pool pool) { delete &of(pool); }), ABT_SUCCESS);
    EXPECT_EQ(ABT_pool_user_def_set_get_size(def,
                                             [](ABT_pool pool) {
                                                 const std::lock_guard lock(of(pool).mutex);
                                                 return of(pool).threads.size();
                                             }),
              ABT_SUCCESS);
    EXPECT_EQ(ABT_pool_user_def_set_pop_wait(def,
                                             [](ABT_pool pool, double, ABT_pool_context context) {
                                                 of(pool).waited++;
                                                 return pop(pool, context);
                                             }),
              ABT_SUCCESS);
    EXPECT_EQ(ABT_pool_user_def_set_pop_many(def,
                                             [](ABT_pool pool, ABT_thread *threads, std::size_t length,
                                                std::size_t *count, ABT_pool_context context) {
                                                 of(pool).many_popped++;
                                                 for (*count = 0; *count < length; ++*count)
                                                     if ((threads[*count] = pop(pool, context)) ==
                                                         ABT_THREAD_NULL)
                                                         return;
                                             }),
              ABT_SUCCESS);
    EXPECT_EQ(ABT_pool_user_def_set_push_many(
                  def,
                  [](ABT_pool pool, const ABT_unit *units, std::size_t count, ABT_pool_context context) {
                      of(pool).many_pushed++;
                      for (std::size_t i = 0; i < count; i++)
                          push(pool, units[i], context);
                  }),
              ABT_SUCCESS);
    EXPECT_EQ(
        ABT_pool_user_def_set_print_all(def,
                                        [](ABT_pool pool, void *arg, void (*print)(void *, ABT_thread)) {
                                            const std::lock_guard lock(of(pool).mutex);
                                            for (ABT_thread thread : of(pool).threads)
                                                print(arg, thread);
                                        }),
        ABT_SUCCESS);
    return def;
}

void count_one(void *count, ABT_thread) {
    ++*static_cast<int *>(count);
}

} // namespace

TEST_P(Rest, APoolOfTheNewerKindDoesAllThatItCan) {
    ABT_pool_user_def def = full_definition();
    ABT_pool mine;
    OK(ABT_pool_create(def, ABT_POOL_CONFIG_NULL, &mine));
    OK(ABT_pool_user_def_free(&def));
    constexpr std::size_t kThreads = 6;
    std::atomic<std::size_t> runs{0};
    auto run = [&] {
        ABT_thread_yield();
        runs++;
    };
    ABT_thread threads[kThreads], popped[kThreads + 1];
    for (ABT_thread &thread : threads)
        thread = start(mine, run);
    std::size_t size, count;
    int shown = 0;
    OK(ABT_pool_get_size(mine, &size));
    EXPECT_EQ(size, kThreads);
    OK(ABT_pool_print_all_threads(mine, &shown, count_one));
    EXPECT_EQ(shown, static_cast<int>(kThreads));
    OK(ABT_pool_pop_threads_ex(mine, popped, kThreads + 1, &count, ABT_POOL_CONTEXT_OP_POOL_OTHER));
    EXPECT_EQ(count, kThreads);
    OK(ABT_pool_push_threads_ex(mine, popped, count, ABT_POOL_CONTEXT_OP_POOL_OTHER));
    OK(ABT_pool_pop_wait_thread_ex(mine, &popped[0], 0.001, ABT_POOL_CONTEXT_OP_POOL_OTHER));
    EXPECT_EQ(popped[0], threads[0]);
    OK(ABT_pool_push_thread_ex(mine, popped[0], ABT_POOL_CONTEXT_OP_POOL_OTHER));
    EXPECT_EQ(of(mine).many_popped, 1);
    EXPECT_EQ(of(mine).many_pushed, 1);
    EXPECT_EQ(of(mine).waited, 1);
    ABT_xstream runner;
    OK(ABT_xstream_create_basic(ABT_SCHED_BASIC, 1, &mine, ABT_SCHED_CONFIG_NULL, &runner));
    for (ABT_thread &thread : threads)
        OK(ABT_thread_free(&thread));
    EXPECT_EQ(runs, kThreads);
    OK(ABT_xstream_free(&runner));
    OK(ABT_pool_free(&mine));
}

TEST_P(Rest, AMutexIsOneWhicheverWayItIsLocked) {
    ABT_mutex mutex;
    OK(ABT_mutex_create(&mutex));
    int sum = 0;
    constexpr int kRounds = 50, kWays = 3;
    int (*const ways[kWays])(ABT_mutex) = {ABT_mutex_lock_low, ABT_mutex_lock_high, ABT_mutex_spinlock};
    auto add = [&] {
        for (int i = 0; i < kRounds; i++) {
            OK(ways[i % kWays](mutex));
            sum++;
            OK(ABT_mutex_unlock(mutex));
        }
    };
    std::vector<ABT_thread> threads;
    for (std::size_t i = 0; i < 2 * pools.size(); i++)
        threads.push_back(start(pool(i), add));
    for (ABT_thread &thread : threads)
        OK(ABT_thread_free(&thread));
    EXPECT_EQ(sum, kRounds * static_cast<int>(threads.size()));
    OK(ABT_mutex_free(&mutex));
}

TEST_P(Rest, AThreadKnowsWhereItIs) {
    for (std::size_t i = 0; i < pools.size(); i++) {
        auto ask = [&] {
            ABT_xstream here;
            ABT_thread self;
            ABT_unit unit;
            ABT_bool is_same = ABT_FALSE;
            int rank, expected, pool_id, expected_id;
            OK(ABT_self_get_xstream(&here));
            OK(ABT_xstream_equal(here, streams[i], &is_same));
            EXPECT_EQ(is_same, ABT_TRUE);
            OK(ABT_self_get_xstream_rank(&rank));
            OK(ABT_xstream_get_rank(streams[i], &expected));
            EXPECT_EQ(rank, expected);
            OK(ABT_self_get_thread(&self));
            OK(ABT_self_get_unit(&unit));
            ABT_thread of_unit;
            OK(ABT_unit_get_thread(unit, &of_unit));
            EXPECT_EQ(of_unit, self);
            OK(ABT_thread_get_last_pool_id(self, &pool_id));
            OK(ABT_pool_get_id(pools[i], &expected_id));
            EXPECT_EQ(pool_id, expected_id);
        };
        ABT_thread thread = start(pools[i], ask);
        OK(ABT_thread_free(&thread));
    }
}

// What is associated with another pool goes there when it yields.
TEST_P(Rest, AThreadMovesItselfToAnotherPool) {
    for (std::size_t i = 0; i < pools.size(); i++) {
        int rank = -1, expected;
        auto move = [&] {
            OK(ABT_self_set_associated_pool(pool(i + 1)));
            OK(ABT_thread_yield());
            OK(ABT_self_get_xstream_rank(&rank));
        };
        OK(ABT_xstream_get_rank(streams[(i + 1) % streams.size()], &expected));
        ABT_thread thread = start(pools[i], move);
        OK(ABT_thread_free(&thread));
        EXPECT_EQ(rank, expected);
    }
}

TEST_P(Rest, AThreadIsMovedToAScheduler) {
    if (streams.size() < 2)
        return;
    ABT_sched sched;
    OK(ABT_xstream_get_main_sched(streams[1], &sched));
    int rank = -1, expected;
    auto ask = [&] { OK(ABT_self_get_xstream_rank(&rank)); };
    ABT_thread thread = start(pools[0], ask); // of the caller's stream: it cannot begin meanwhile
    OK(ABT_thread_migrate_to_sched(thread, sched));
    OK(ABT_thread_free(&thread));
    OK(ABT_xstream_get_rank(streams[1], &expected));
    EXPECT_EQ(rank, expected);
}

TEST_P(Rest, AThreadHasWhatItWasGiven) {
    ABT_thread thread, unnamed = ABT_THREAD_NULL;
    ABT_thread_attr attr;
    alignas(64) static char stack[65536];
    void *low, *arg;
    std::size_t size;
    void (*function)(void *);
    ABT_bool is_unnamed, is_same;
    OK(ABT_thread_attr_create(&attr));
    OK(ABT_thread_attr_set_stack(attr, stack, sizeof stack));
    OK(ABT_thread_attr_get_stack(attr, &low, &size));
    EXPECT_EQ(low, stack);
    EXPECT_EQ(size, sizeof stack);
    OK(ABT_thread_create(pools[0], nothing, &size, attr, &thread));
    OK(ABT_thread_attr_free(&attr));
    OK(ABT_thread_get_stacksize(thread, &size));
    EXPECT_EQ(size, sizeof stack);
    OK(ABT_thread_get_thread_func(thread, &function));
    EXPECT_EQ(function, nothing);
    OK(ABT_thread_is_unnamed(thread, &is_unnamed));
    EXPECT_EQ(is_unnamed, ABT_FALSE);
    OK(ABT_thread_set_arg(thread, &low));
    OK(ABT_thread_get_arg(thread, &arg));
    EXPECT_EQ(arg, &low);
    OK(ABT_task_equal(thread, thread, &is_same));
    EXPECT_EQ(is_same, ABT_TRUE);
    OK(ABT_task_equal(thread, unnamed, &is_same));
    EXPECT_EQ(is_same, ABT_FALSE);
    OK(ABT_thread_free(&thread));
    void *given = nullptr;
    auto give = [&] {
        OK(ABT_self_set_arg(&given));
        OK(ABT_self_get_arg(&given));
    };
    thread = start(pools[0], give);
    OK(ABT_thread_free(&thread));
    EXPECT_EQ(given, &given);
}

TEST_P(Rest, PoolsAndSchedulersArePrinted) {
    ABT_sched sched;
    OK(ABT_xstream_get_main_sched(streams.back(), &sched));
    EXPECT_FALSE(printed([&](FILE *file) { return ABT_info_print_sched(file, sched); }).empty());
    EXPECT_FALSE(printed([&](FILE *file) { return ABT_info_print_pool(file, pools.back()); }).empty());
}

INSTANTIATE_TEST_SUITE_P(Streams, Rest, testing::Values(1, 2, 4, 8));

// The program's own runtime is in the way.
TEST(RestOfInit, SaysThatThereIsARuntime) {
    ASSERT_EQ(thrum_init(nullptr), 0);
    EXPECT_EQ(ABT_init(0, nullptr), ABT_ERR_SYS);
    EXPECT_EQ(ABT_initialized(), ABT_ERR_UNINITIALIZED);
    thrum_fini();
    ASSERT_EQ(ABT_init(0, nullptr), ABT_SUCCESS);
    EXPECT_EQ(ABT_finalize(), ABT_SUCCESS);
}
