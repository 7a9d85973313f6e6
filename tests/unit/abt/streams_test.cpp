// SPDX-License-Identifier: Apache-2.0
//
// Start and end, execution streams, schedulers, information.
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "streams.hpp"

using namespace abt_test;

class ManyStreams : public Streams {};
INSTANTIATE_TEST_SUITE_P(On, ManyStreams, testing::Values(1, 2, 4, 8));
class StreamsAlone : public Alone {};

TEST(Start, IsCountedAndTheLastEndCounts) {
    EXPECT_EQ(ABT_initialized(), ABT_ERR_UNINITIALIZED);
    EXPECT_EQ(ABT_finalize(), ABT_ERR_UNINITIALIZED);
    ABT_xstream stream;
    ABT_thread thread;
    int count;
    EXPECT_EQ(ABT_xstream_self(&stream), ABT_ERR_UNINITIALIZED);
    EXPECT_EQ(ABT_thread_self(&thread), ABT_ERR_UNINITIALIZED);
    EXPECT_EQ(ABT_xstream_get_num(&count), ABT_ERR_UNINITIALIZED);
    for (int round = 0; round < 5; round++) {
        OK(ABT_init(0, nullptr));
        OK(ABT_init(0, nullptr));
        std::thread outside([] {
            EXPECT_EQ(ABT_init(0, nullptr), ABT_SUCCESS);
            EXPECT_EQ(ABT_finalize(), ABT_SUCCESS);
        });
        outside.join();
        OK(ABT_finalize());
        OK(ABT_initialized());
        ABT_unit_id id;
        OK(ABT_self_get_thread_id(&id));
        EXPECT_EQ(id, 0U) << "anew in each";
        std::thread not_the_primary([] { EXPECT_EQ(ABT_finalize(), ABT_ERR_INV_XSTREAM); });
        not_the_primary.join();
        OK(ABT_finalize());
        EXPECT_EQ(ABT_initialized(), ABT_ERR_UNINITIALIZED);
    }
}

TEST(Start, TheEndRunsWhatIsLeft) {
    static int runs;
    runs = 0;
    OK(ABT_init(0, nullptr));
    ABT_xstream stream;
    ABT_pool pool;
    OK(ABT_xstream_self(&stream));
    OK(ABT_xstream_get_main_pools(stream, 1, &pool));
    for (int i = 0; i < 10; i++)
        OK(ABT_thread_create(
            pool,
            [](void *) {
                ABT_thread_yield();
                runs++;
            },
            nullptr, ABT_THREAD_ATTR_NULL, nullptr));
    OK(ABT_task_create(
        pool, [](void *) { runs++; }, nullptr, nullptr));
    OK(ABT_finalize());
    EXPECT_EQ(runs, 11);
}

TEST(Start, TheEnvironmentCounts) {
    setenv("ABT_THREAD_STACKSIZE", "100000", 1);
    setenv("ABT_ENV_SCHED_EVENT_FREQ", "7", 1);
    setenv("ABT_SCHED_SLEEP_NSEC", "2500", 1);
    setenv("THRUM_ABT_SPIN", "0", 1);
    testing::internal::CaptureStderr();
    OK(ABT_init(0, nullptr));
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "all are known";
    std::size_t size;
    uint64_t freq, sleep;
    OK(ABT_info_query_config(ABT_INFO_QUERY_KIND_DEFAULT_THREAD_STACKSIZE, &size));
    EXPECT_EQ(size, 100000U);
    OK(ABT_info_query_config(ABT_INFO_QUERY_KIND_DEFAULT_SCHED_EVENT_FREQ, &freq));
    EXPECT_EQ(freq, 7U);
    OK(ABT_info_query_config(ABT_INFO_QUERY_KIND_DEFAULT_SCHED_SLEEP_NSEC, &sleep));
    EXPECT_EQ(sleep, 2500U);
    OK(ABT_finalize());
    unsetenv("ABT_THREAD_STACKSIZE");
    unsetenv("ABT_ENV_SCHED_EVENT_FREQ");
    unsetenv("ABT_SCHED_SLEEP_NSEC");
    unsetenv("THRUM_ABT_SPIN");
}

TEST(Start, WordsOfTheEnvironmentMayBeInEitherCase) {
    struct {
        const char *name, *text;
        ABT_info_query_kind kind;
        int value;
    } const settings[] = {
        {"ABT_PRINT_CONFIG", "True", ABT_INFO_QUERY_KIND_ENABLED_PRINT_CONFIG, 1},
        {"ABT_PRINT_CONFIG", "1", ABT_INFO_QUERY_KIND_ENABLED_PRINT_CONFIG, 1},
        {"ABT_ENV_PRINT_CONFIG", "YES", ABT_INFO_QUERY_KIND_ENABLED_PRINT_CONFIG, 1},
        {"ABT_PRINT_CONFIG", "no", ABT_INFO_QUERY_KIND_ENABLED_PRINT_CONFIG, 0},
        {"ABT_PRINT_CONFIG", "2", ABT_INFO_QUERY_KIND_ENABLED_PRINT_CONFIG, 0},
        {"ABT_PRINT_CONFIG", "", ABT_INFO_QUERY_KIND_ENABLED_PRINT_CONFIG, 0},
        {"ABT_SET_AFFINITY", "On", ABT_INFO_QUERY_KIND_ENABLED_AFFINITY, 1},
        {"ABT_SET_AFFINITY", "0,1", ABT_INFO_QUERY_KIND_ENABLED_AFFINITY, 1},
        {"ABT_SET_AFFINITY", "Off", ABT_INFO_QUERY_KIND_ENABLED_AFFINITY, 0},
        {"ABT_SET_AFFINITY", "0", ABT_INFO_QUERY_KIND_ENABLED_AFFINITY, 0},
        {"ABT_STACK_OVERFLOW_CHECK", "MPROTECT", ABT_INFO_QUERY_KIND_ENABLED_STACK_OVERFLOW_CHECK, 2},
        {"ABT_STACK_OVERFLOW_CHECK", "Mprotect_Strict", ABT_INFO_QUERY_KIND_ENABLED_STACK_OVERFLOW_CHECK, 3},
    };
    for (const auto &setting : settings) {
        SCOPED_TRACE(std::string(setting.name) + "=" + setting.text);
        setenv(setting.name, setting.text, 1);
        testing::internal::CaptureStdout();
        OK(ABT_init(0, nullptr));
        const std::string printed = testing::internal::GetCapturedStdout();
        unsetenv(setting.name);
        int value = -1;
        OK(ABT_info_query_config(setting.kind, &value));
        EXPECT_EQ(value, setting.value);
        EXPECT_EQ(!printed.empty(),
                  setting.kind == ABT_INFO_QUERY_KIND_ENABLED_PRINT_CONFIG && setting.value == 1);
        OK(ABT_finalize());
    }
}

TEST_P(ManyStreams, HaveRanks) {
    int count;
    OK(ABT_xstream_get_num(&count));
    EXPECT_EQ(count, GetParam());
    for (std::size_t i = 0; i < streams.size(); i++) {
        int rank;
        ABT_bool primary;
        ABT_xstream_state state;
        OK(ABT_xstream_get_rank(streams[i], &rank));
        EXPECT_EQ(rank, static_cast<int>(i));
        OK(ABT_xstream_is_primary(streams[i], &primary));
        EXPECT_EQ(primary, i == 0);
        OK(ABT_xstream_get_state(streams[i], &state));
        EXPECT_EQ(state, ABT_XSTREAM_STATE_RUNNING);
    }
    ABT_xstream one, other;
    OK(ABT_xstream_create_with_rank(ABT_SCHED_NULL, 100, &one));
    EXPECT_EQ(ABT_xstream_create_with_rank(ABT_SCHED_NULL, 100, &other), ABT_ERR_INV_XSTREAM_RANK);
    EXPECT_EQ(ABT_xstream_create_with_rank(ABT_SCHED_NULL, -1, &other), ABT_ERR_INV_XSTREAM_RANK);
    EXPECT_EQ(ABT_xstream_set_rank(one, 0), ABT_ERR_INV_XSTREAM_RANK);
    OK(ABT_xstream_set_rank(one, 101));
    EXPECT_EQ(ABT_xstream_set_rank(streams[0], 5), ABT_ERR_INV_XSTREAM);
    OK(ABT_xstream_free(&one));
    EXPECT_EQ(one, ABT_XSTREAM_NULL);
}

TEST_P(ManyStreams, AreJoinedWhenNothingIsLeftAndRevived) {
    std::atomic<int> runs{0};
    auto body = [&] {
        ABT_thread_yield();
        runs++;
    };
    ABT_xstream stream;
    OK(ABT_xstream_create(ABT_SCHED_NULL, &stream));
    for (int round = 1; round <= 10; round++) {
        for (int i = 0; i < 10; i++)
            OK(ABT_thread_create_on_xstream(stream, call<decltype(body)>, &body, ABT_THREAD_ATTR_NULL,
                                            nullptr));
        OK(ABT_xstream_join(stream));
        EXPECT_EQ(runs, 10 * round);
        ABT_xstream_state state;
        OK(ABT_xstream_get_state(stream, &state));
        EXPECT_EQ(state, ABT_XSTREAM_STATE_TERMINATED);
        OK(ABT_xstream_join(stream));
        OK(ABT_xstream_revive(stream));
        EXPECT_EQ(ABT_xstream_revive(stream), ABT_ERR_INV_XSTREAM);
    }
    OK(ABT_xstream_free(&stream));
    EXPECT_EQ(ABT_xstream_join(streams[0]), ABT_ERR_INV_XSTREAM);
    EXPECT_EQ(ABT_xstream_free(&streams[0]), ABT_ERR_INV_XSTREAM);
}

TEST_P(ManyStreams, AJoinWaitsForWhatIsBlocked) {
    ABT_xstream stream;
    ABT_eventual eventual;
    OK(ABT_eventual_create(0, &eventual));
    OK(ABT_xstream_create(ABT_SCHED_NULL, &stream));
    std::atomic<bool> went_on{false};
    auto body = [&] {
        OK(ABT_eventual_wait(eventual, nullptr));
        went_on = true;
    };
    OK(ABT_thread_create_on_xstream(stream, call<decltype(body)>, &body, ABT_THREAD_ATTR_NULL, nullptr));
    std::thread outside([&] { EXPECT_EQ(ABT_eventual_set(eventual, nullptr, 0), ABT_SUCCESS); });
    OK(ABT_xstream_free(&stream));
    EXPECT_TRUE(went_on);
    outside.join();
    OK(ABT_eventual_free(&eventual));
}

TEST_P(ManyStreams, ExitAndCancelLeaveWhatIsThere) {
    ABT_xstream stream;
    OK(ABT_xstream_create(ABT_SCHED_NULL, &stream));
    auto exits = [] { ABT_xstream_exit(); };
    OK(ABT_thread_create_on_xstream(stream, call<decltype(exits)>, &exits, ABT_THREAD_ATTR_NULL, nullptr));
    OK(ABT_xstream_free(&stream));
    OK(ABT_xstream_create(ABT_SCHED_NULL, &stream));
    ABT_thread thread = ABT_THREAD_NULL;
    auto stays = [] {
        for (;;)
            ABT_thread_yield();
    };
    OK(ABT_thread_create_on_xstream(stream, call<decltype(stays)>, &stays, ABT_THREAD_ATTR_NULL, &thread));
    OK(ABT_xstream_cancel(stream));
    OK(ABT_xstream_free(&stream));
    EXPECT_EQ(ABT_xstream_cancel(streams[0]), ABT_ERR_INV_XSTREAM);
    EXPECT_EQ(ABT_xstream_exit(), ABT_ERR_INV_XSTREAM);
}

TEST_P(ManyStreams, WhatACancelledOneWasWokenForIsRunByAnother) {
    ABT_pool shared;
    OK(ABT_pool_create_basic(ABT_POOL_FIFO, ABT_POOL_ACCESS_MPMC, ABT_TRUE, &shared));
    ABT_xstream stays, goes;
    OK(ABT_xstream_create_basic(ABT_SCHED_BASIC, 1, &shared, ABT_SCHED_CONFIG_NULL, &stays));
    for (int round = 0; round < 30; round++) {
        OK(ABT_xstream_create_basic(ABT_SCHED_BASIC, 1, &shared, ABT_SCHED_CONFIG_NULL, &goes));
        auto body = [] {};
        if (round % 2 == 0) {
            OK(thrum_abt_sleep(500000)); // both are asleep then
        }
        ABT_thread thread = start(shared, body);
        OK(ABT_xstream_cancel(goes));
        OK(ABT_thread_free(&thread));
        OK(ABT_xstream_free(&goes));
    }
    OK(ABT_xstream_free(&stays));
}

TEST_P(ManyStreams, SharePools) {
    ABT_pool shared;
    OK(ABT_pool_create_basic(ABT_POOL_FIFO, ABT_POOL_ACCESS_MPMC, ABT_TRUE, &shared));
    std::vector<ABT_xstream> more;
    for (ABT_sched_predef predef :
         {ABT_SCHED_DEFAULT, ABT_SCHED_BASIC, ABT_SCHED_PRIO, ABT_SCHED_RANDWS, ABT_SCHED_BASIC_WAIT}) {
        ABT_xstream stream;
        ABT_pool both[2] = {ABT_POOL_NULL, shared};
        OK(ABT_xstream_create_basic(predef, 2, both, ABT_SCHED_CONFIG_NULL, &stream));
        more.push_back(stream);
    }
    std::atomic<int> runs{0};
    auto body = [&] {
        for (int i = 0; i < 10; i++)
            ABT_thread_yield();
        runs++;
    };
    std::vector<ABT_thread> threads;
    for (int i = 0; i < 200; i++)
        threads.push_back(start(shared, body));
    for (ABT_thread &thread : threads)
        OK(ABT_thread_free(&thread));
    EXPECT_EQ(runs, 200);
    for (ABT_xstream &stream : more)
        OK(ABT_xstream_free(&stream));
}

TEST_P(ManyStreams, ThePrimaryRunsOnItsOwnWhicheverStreamPicksIt) {
    ABT_pool shared;
    OK(ABT_pool_create_basic(ABT_POOL_FIFO, ABT_POOL_ACCESS_MPMC, ABT_TRUE, &shared));
    std::vector<ABT_xstream> more(3);
    for (ABT_xstream &stream : more)
        OK(ABT_xstream_create_basic(ABT_SCHED_DEFAULT, 1, &shared, ABT_SCHED_CONFIG_NULL, &stream));
    OK(ABT_xstream_set_main_sched_basic(streams[0], ABT_SCHED_DEFAULT, 1, &shared));
    pid_t kernel_thread = gettid();
    for (int i = 0; i < 500; i++) {
        ABT_thread_yield();
        ABT_bool is_home;
        OK(ABT_self_on_primary_xstream(&is_home));
        ASSERT_TRUE(is_home);
        ASSERT_EQ(gettid(), kernel_thread);
    }
    for (ABT_xstream &stream : more)
        OK(ABT_xstream_free(&stream));
    OK(ABT_xstream_get_main_pools(streams[0], 1, &pools[0]));
    EXPECT_EQ(pools[0], shared);
}

TEST_P(ManyStreams, SignalsReachTheirKernelThreads) {
    static std::atomic<int> handled;
    handled = 0;
    struct sigaction action = {}, before;
    action.sa_handler = [](int) { handled++; };
    ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
    auto body = [] { raise(SIGUSR1); };
    for (ABT_pool each : pools) {
        ABT_thread thread = start(each, body);
        OK(ABT_thread_free(&thread));
    }
    EXPECT_EQ(handled, GetParam());
    sigaction(SIGUSR1, &before, nullptr);
}

TEST_P(ManyStreams, AllStacksArePrintedWhereNoThreadRuns) {
    char *text = nullptr;
    std::size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    std::atomic<int> printed{0};
    std::atomic<std::size_t> begun{0}; // a thread has no stack before it begins
    auto body = [&] {
        begun++;
        while (printed == 0)
            ABT_thread_yield();
    };
    std::vector<ABT_thread> threads;
    for (std::size_t i = 0; i < 3 * pools.size(); i++)
        threads.push_back(start(pool(i), body));
    while (begun < threads.size())
        ABT_thread_yield();
    OK(ABT_info_trigger_print_all_thread_stacks(
        file, -1.0,
        [](ABT_bool timed_out, void *count) {
            EXPECT_FALSE(timed_out);
            ++*static_cast<std::atomic<int> *>(count);
        },
        &printed));
    for (ABT_thread &thread : threads)
        OK(ABT_thread_free(&thread));
    EXPECT_EQ(printed, 1);
    fclose(file);
    const std::string all = text;
    std::free(text);
    std::size_t stacks = 0;
    for (std::size_t at = all.find("\nthread "); at != std::string::npos; at = all.find("\nthread ", at + 1))
        stacks++;
    EXPECT_GE(stacks, threads.size()) << all.substr(0, 2000);
}

// --- schedulers of the program's own ------------------------------------------------------------------------

namespace {

struct Data {
    int runs = 0;
    bool freed = false;
};

int init_sched(ABT_sched sched, ABT_sched_config config) {
    void *data = nullptr;
    EXPECT_EQ(ABT_sched_config_read(config, 1, &data), ABT_SUCCESS);
    return ABT_sched_set_data(sched, data);
}

void run_sched(ABT_sched sched) {
    void *data;
    OK(ABT_sched_get_data(sched, &data));
    int count;
    OK(ABT_sched_get_num_pools(sched, &count));
    std::vector<ABT_pool> pools(static_cast<std::size_t>(count));
    OK(ABT_sched_get_pools(sched, count, 0, pools.data()));
    for (ABT_bool stop = ABT_FALSE; !stop;) {
        for (ABT_pool pool : pools) {
            ABT_unit unit;
            OK(ABT_pool_pop(pool, &unit));
            if (unit == ABT_UNIT_NULL)
                continue;
            OK(ABT_xstream_run_unit(unit, pool));
            static_cast<Data *>(data)->runs++;
            break;
        }
        OK(ABT_sched_has_to_stop(sched, &stop));
        OK(ABT_xstream_check_events(sched));
    }
}

int free_sched(ABT_sched sched) {
    void *data;
    EXPECT_EQ(ABT_sched_get_data(sched, &data), ABT_SUCCESS);
    static_cast<Data *>(data)->freed = true;
    return ABT_SUCCESS;
}

ABT_sched make_sched(Data &data, int count, ABT_pool *pools) {
    ABT_sched_def def = {ABT_SCHED_TYPE_ULT, init_sched, run_sched, free_sched, nullptr};
    ABT_sched_config_var var = {0, ABT_SCHED_CONFIG_PTR};
    ABT_sched_config config;
    EXPECT_EQ(
        ABT_sched_config_create(&config, var, &data, ABT_sched_config_automatic, 1, ABT_sched_config_var_end),
        ABT_SUCCESS);
    ABT_sched sched = ABT_SCHED_NULL;
    EXPECT_EQ(ABT_sched_create(&def, count, pools, config, &sched), ABT_SUCCESS);
    EXPECT_EQ(ABT_sched_config_free(&config), ABT_SUCCESS);
    return sched;
}

} // namespace

TEST_P(ManyStreams, RunSchedulersOfTheProgram) {
    Data data[3];
    std::vector<ABT_xstream> more;
    ABT_pool shared;
    OK(ABT_pool_create_basic(ABT_POOL_FIFO, ABT_POOL_ACCESS_MPMC, ABT_TRUE, &shared));
    for (Data &each : data) {
        ABT_pool both[2] = {ABT_POOL_NULL, shared};
        ABT_sched sched = make_sched(each, 2, both);
        ABT_xstream stream, other;
        OK(ABT_xstream_create(sched, &stream));
        EXPECT_EQ(ABT_xstream_create(sched, &other), ABT_ERR_INV_SCHED) << "used twice";
        ABT_sched main;
        OK(ABT_xstream_get_main_sched(stream, &main));
        EXPECT_EQ(main, sched);
        EXPECT_EQ(ABT_sched_free(&main), ABT_ERR_SCHED);
        more.push_back(stream);
    }
    std::atomic<int> runs{0};
    auto body = [&] {
        for (int i = 0; i < 5; i++)
            ABT_thread_yield();
        runs++;
    };
    for (int i = 0; i < 100; i++)
        OK(ABT_thread_create(shared, call<decltype(body)>, &body, ABT_THREAD_ATTR_NULL, nullptr));
    for (ABT_xstream &stream : more) {
        OK(ABT_thread_create_on_xstream(stream, call<decltype(body)>, &body, ABT_THREAD_ATTR_NULL, nullptr));
        OK(ABT_xstream_free(&stream));
    }
    EXPECT_EQ(runs, 103);
    EXPECT_EQ(data[0].runs + data[1].runs + data[2].runs, 6 * 103);
    for (const Data &each : data)
        EXPECT_TRUE(each.freed);
}

TEST_F(StreamsAlone, ChangeTheirMainScheduler) {
    Data data;
    std::atomic<int> runs{0};
    auto body = [&] { runs++; };
    ABT_thread before = start(pool, body);
    ABT_sched sched = make_sched(data, 1, nullptr);
    OK(ABT_xstream_set_main_sched(stream, sched));
    EXPECT_EQ(runs, 1) << "the old one runs what it has";
    ABT_pool now;
    OK(ABT_self_get_last_pool(&now));
    OK(ABT_xstream_get_main_pools(stream, 1, &pool));
    EXPECT_EQ(now, pool);
    ABT_thread after = start(pool, body);
    OK(ABT_thread_free(&after));
    OK(ABT_thread_free(&before));
    EXPECT_EQ(runs, 2);
    EXPECT_GE(data.runs, 2);
    OK(ABT_xstream_set_main_sched_basic(stream, ABT_SCHED_PRIO, 0, nullptr));
    EXPECT_TRUE(data.freed);
    ABT_pool prio[3];
    OK(ABT_xstream_get_main_pools(stream, 3, prio));
    std::string order;
    auto low = [&] { order += 'l'; };
    auto high = [&] { order += 'h'; };
    ABT_thread threads[] = {start(prio[2], low), start(prio[1], high)};
    for (ABT_thread &thread : threads)
        OK(ABT_thread_free(&thread));
    EXPECT_EQ(order, "hl");
    OK(ABT_xstream_set_main_sched(stream, ABT_SCHED_NULL));
    EXPECT_EQ(ABT_xstream_set_main_sched_basic(stream, static_cast<ABT_sched_predef>(77), 0, nullptr),
              ABT_ERR_INV_SCHED_PREDEF);

    ABT_xstream other;
    OK(ABT_xstream_create(ABT_SCHED_NULL, &other));
    EXPECT_EQ(ABT_xstream_set_main_sched(other, ABT_SCHED_NULL), ABT_ERR_XSTREAM_STATE);
    OK(ABT_xstream_join(other));
    OK(ABT_xstream_set_main_sched_basic(other, ABT_SCHED_RANDWS, 0, nullptr));
    OK(ABT_xstream_revive(other));
    ABT_pool theirs;
    OK(ABT_xstream_get_main_pools(other, 1, &theirs));
    ABT_thread thread = start(theirs, body);
    OK(ABT_thread_free(&thread));
    EXPECT_EQ(runs, 3);
    OK(ABT_xstream_free(&other));
}

// Access is where a scheduler looks first. The program, and what is created on the stream, see the pools as they were given.
TEST_F(StreamsAlone, LookAtPoolsByAccessAndShowThemAsGiven) {
    const ABT_pool_access given[] = {ABT_POOL_ACCESS_MPMC, ABT_POOL_ACCESS_SPMC, ABT_POOL_ACCESS_MPSC,
                                     ABT_POOL_ACCESS_PRIV};
    static std::string order;
    const struct {
        ABT_sched_predef predef;
        const char *order;
    } schedulers[] = {{ABT_SCHED_DEFAULT, "dca0b"},
                      {ABT_SCHED_BASIC, "dca0b"},
                      {ABT_SCHED_BASIC_WAIT, "dca0b"},
                      {ABT_SCHED_PRIO, "a0bcd"}};
    for (const auto &scheduler : schedulers) {
        ABT_pool pools[4], shown[4];
        ABT_sched sched;
        for (int i = 0; i < 4; i++)
            OK(ABT_pool_create_basic(ABT_POOL_FIFO, given[i], ABT_TRUE, &pools[i]));
        OK(ABT_sched_create_basic(scheduler.predef, 4, pools, ABT_SCHED_CONFIG_NULL, &sched));
        OK(ABT_sched_get_pools(sched, 4, 0, shown));
        for (int i = 0; i < 4; i++)
            EXPECT_EQ(shown[i], pools[i]);
        ABT_xstream other;
        OK(ABT_xstream_create(sched, &other));
        OK(ABT_xstream_join(other));
        order.clear();
        for (int i = 0; i < 4; i++)
            OK(ABT_task_create(
                pools[i], [](void *name) { order += static_cast<char>(reinterpret_cast<intptr_t>(name)); },
                reinterpret_cast<void *>(static_cast<intptr_t>('a' + i)), nullptr));
        OK(ABT_task_create_on_xstream(
            other, [](void *) { order += '0'; }, nullptr, nullptr));
        OK(ABT_xstream_revive(other));
        OK(ABT_xstream_free(&other));
        EXPECT_EQ(order, scheduler.order) << "scheduler " << scheduler.predef;
    }
}

TEST_F(StreamsAlone, SchedulersStandInPools) {
    ABT_pool inner;
    ABT_sched sched;
    OK(ABT_sched_create_basic(ABT_SCHED_BASIC, 0, nullptr, ABT_SCHED_CONFIG_NULL, &sched));
    OK(ABT_sched_get_pools(sched, 1, 0, &inner));
    EXPECT_EQ(ABT_sched_get_pools(sched, 2, 0, &inner), ABT_ERR_SCHED);
    std::string order;
    auto yields = [&] {
        order += 'i';
        ABT_thread_yield();
        order += 'I';
    };
    auto outside = [&] { order += 'o'; };
    ABT_thread guest = start(inner, yields);
    std::size_t size;
    OK(ABT_sched_get_size(sched, &size));
    EXPECT_EQ(size, 1U);
    OK(ABT_sched_get_total_size(sched, &size));
    EXPECT_EQ(size, 1U);
    OK(ABT_pool_add_sched(pool, sched));
    EXPECT_EQ(ABT_pool_add_sched(pool, sched), ABT_ERR_INV_SCHED);
    ABT_thread thread = start(pool, outside);
    OK(ABT_thread_free(&thread));
    OK(ABT_thread_free(&guest));
    EXPECT_NE(order.find("iI"), std::string::npos);
    EXPECT_NE(order.find('o'), std::string::npos);

    Data data;
    ABT_sched own = make_sched(data, 1, nullptr);
    OK(ABT_sched_get_pools(own, 1, 0, &inner));
    guest = start(inner, yields);
    OK(ABT_pool_add_sched(pool, own));
    OK(ABT_thread_free(&guest));
    while (!data.freed)
        ABT_thread_yield();
    EXPECT_EQ(data.runs, 2);
}

TEST_F(StreamsAlone, MainSchedulersWaitAsTheirKernelThread) {
    struct Shared {
        ABT_mutex mutex;
        ABT_xstream_barrier barrier;
        bool has_met = false;
    } shared;
    OK(ABT_mutex_create(&shared.mutex));
    OK(ABT_xstream_barrier_create(2, &shared.barrier));
    ABT_sched_def def = {};
    def.init = [](ABT_sched sched, ABT_sched_config config) {
        void *data = nullptr;
        EXPECT_EQ(ABT_sched_config_read(config, 1, &data), ABT_SUCCESS);
        return ABT_sched_set_data(sched, data);
    };
    def.run = [](ABT_sched sched) {
        void *data;
        OK(ABT_sched_get_data(sched, &data));
        auto *with = static_cast<Shared *>(data);
        OK(ABT_xstream_barrier_wait(with->barrier));
        OK(ABT_mutex_lock(with->mutex));
        with->has_met = true;
        OK(ABT_mutex_unlock(with->mutex));
        OK(ABT_thread_yield());
        ABT_unit_type type;
        OK(ABT_self_get_type(&type));
        EXPECT_EQ(type, ABT_UNIT_TYPE_THREAD);
        for (ABT_bool stop = ABT_FALSE; !stop;)
            OK(ABT_sched_has_to_stop(sched, &stop));
    };
    ABT_sched_config_var var = {0, ABT_SCHED_CONFIG_PTR};
    ABT_sched_config config;
    OK(ABT_sched_config_create(&config, var, &shared, ABT_sched_config_var_end));
    ABT_sched sched;
    OK(ABT_sched_create(&def, 1, nullptr, config, &sched));
    OK(ABT_sched_config_free(&config));
    ABT_xstream other;
    OK(ABT_mutex_lock(shared.mutex));
    OK(ABT_xstream_create(sched, &other));
    OK(ABT_xstream_barrier_wait(shared.barrier));
    EXPECT_FALSE(shared.has_met);
    OK(ABT_mutex_unlock(shared.mutex));
    OK(ABT_xstream_free(&other));
    EXPECT_TRUE(shared.has_met);
    OK(ABT_sched_free(&sched)); // it was not to be freed with the stream
    OK(ABT_mutex_free(&shared.mutex));
    OK(ABT_xstream_barrier_free(&shared.barrier));
}

TEST_F(StreamsAlone, FinishAndExit) {
    for (bool exits : {false, true}) {
        ABT_sched sched;
        ABT_xstream other;
        OK(ABT_sched_create_basic(ABT_SCHED_BASIC, 0, nullptr, ABT_SCHED_CONFIG_NULL, &sched));
        OK(ABT_xstream_create(sched, &other));
        OK(exits ? ABT_sched_exit(sched) : ABT_sched_finish(sched));
        ABT_xstream_state state = ABT_XSTREAM_STATE_RUNNING;
        while (state == ABT_XSTREAM_STATE_RUNNING) {
            ABT_thread_yield();
            OK(ABT_xstream_get_state(other, &state));
        }
        OK(ABT_xstream_free(&other));
    }
    ABT_bool stop;
    EXPECT_EQ(ABT_sched_has_to_stop(ABT_SCHED_NULL, &stop), ABT_ERR_INV_SCHED);
    ABT_sched main;
    OK(ABT_xstream_get_main_sched(stream, &main));
    EXPECT_EQ(ABT_xstream_check_events(main), ABT_ERR_INV_THREAD) << "it is not that scheduler";
}

TEST_F(StreamsAlone, ConfigurationsHaveThreeTypes) {
    ABT_sched_config config;
    ABT_sched_config_var a = {0, ABT_SCHED_CONFIG_INT}, b = {1, ABT_SCHED_CONFIG_DOUBLE},
                         c = {2, ABT_SCHED_CONFIG_PTR};
    OK(ABT_sched_config_create(&config, b, 2.5, ABT_sched_basic_freq, 3, a, 7, c, &config,
                               ABT_sched_config_var_end));
    int number = 0;
    double real = 0;
    void *pointer = nullptr;
    OK(ABT_sched_config_read(config, 3, &number, &real, &pointer));
    EXPECT_EQ(number, 7);
    EXPECT_EQ(real, 2.5);
    EXPECT_EQ(pointer, &config);
    OK(ABT_sched_config_read(config, 2, nullptr, &real));
    ABT_sched_config_type type;
    OK(ABT_sched_config_get(config, 1, &type, nullptr));
    EXPECT_EQ(type, ABT_SCHED_CONFIG_DOUBLE);
    EXPECT_EQ(ABT_sched_config_get(config, 9, &type, &number), ABT_ERR_INV_ARG);
    EXPECT_EQ(ABT_sched_config_set(config, 9, static_cast<ABT_sched_config_type>(5), &number),
              ABT_ERR_INV_ARG);
    OK(ABT_sched_config_set(config, 9, ABT_SCHED_CONFIG_INT, &number));
    OK(ABT_sched_config_get(config, 9, nullptr, &number));
    OK(ABT_sched_config_free(&config));
    EXPECT_EQ(ABT_sched_config_free(&config), ABT_ERR_INV_SCHED_CONFIG);
    ABT_sched_config_var bad = {0, static_cast<ABT_sched_config_type>(5)};
    EXPECT_EQ(ABT_sched_config_create(&config, bad, 1, ABT_sched_config_var_end), ABT_ERR_INV_ARG);
}

// As where Argobots was built without affinity, which is its default: Margo takes any other answer for a part of its configuration.
TEST_F(StreamsAlone, AreNotBoundToCpusUnlessAsked) {
    ABT_bool sets = ABT_TRUE;
    int cpu = 0;
    OK(ABT_info_query_config(ABT_INFO_QUERY_KIND_ENABLED_AFFINITY, &sets));
    EXPECT_EQ(sets, ABT_FALSE);
    EXPECT_EQ(ABT_xstream_set_cpubind(stream, 0), ABT_ERR_FEATURE_NA);
    EXPECT_EQ(ABT_xstream_get_cpubind(stream, &cpu), ABT_ERR_FEATURE_NA);
    EXPECT_EQ(ABT_xstream_set_affinity(stream, 1, &cpu), ABT_ERR_FEATURE_NA);
    EXPECT_EQ(ABT_xstream_get_affinity(stream, 1, &cpu, &cpu), ABT_ERR_FEATURE_NA);
    EXPECT_EQ(ABT_xstream_set_cpubind(ABT_XSTREAM_NULL, 0), ABT_ERR_INV_XSTREAM);
}

class Affinity : public Alone {
  public:
    void SetUp() override {
        setenv("ABT_SET_AFFINITY", "1", 1);
        Alone::SetUp();
        unsetenv("ABT_SET_AFFINITY");
    }
};

TEST_F(Affinity, StreamsAreBoundToCpus) {
    ABT_bool sets = ABT_FALSE;
    OK(ABT_info_query_config(ABT_INFO_QUERY_KIND_ENABLED_AFFINITY, &sets));
    EXPECT_EQ(sets, ABT_TRUE);
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &allowed))
        cpu++;
    ABT_xstream other;
    OK(ABT_xstream_create(ABT_SCHED_NULL, &other));
    OK(ABT_xstream_set_cpubind(other, cpu));
    int seen = -1, count = 0;
    OK(ABT_xstream_get_cpubind(other, &seen));
    EXPECT_EQ(seen, cpu);
    int cpus[1] = {cpu};
    OK(ABT_xstream_set_affinity(other, 1, cpus));
    OK(ABT_xstream_get_affinity(other, 0, nullptr, &count));
    EXPECT_EQ(count, 1);
    EXPECT_EQ(ABT_xstream_set_cpubind(other, -1), ABT_ERR_CPUID);
    EXPECT_EQ(ABT_xstream_set_affinity(other, -1, nullptr), ABT_ERR_INV_ARG);
    OK(ABT_xstream_free(&other));
}

// --- the rest ------------------------------------------------------------------------------------------------

TEST_F(StreamsAlone, Information) {
    ABT_bool flag;
    for (int kind = 0; kind <= ABT_INFO_QUERY_KIND_ENABLED_LAZY_STACK_ALLOC; kind++) {
        uint64_t value = 0;
        OK(ABT_info_query_config(static_cast<ABT_info_query_kind>(kind), &value));
    }
    EXPECT_EQ(ABT_info_query_config(static_cast<ABT_info_query_kind>(28), &flag), ABT_ERR_INV_QUERY_KIND);
    OK(ABT_info_query_config(ABT_INFO_QUERY_KIND_ENABLED_EXTERNAL_THREAD, &flag));
    EXPECT_TRUE(flag);
    OK(ABT_info_query_config(ABT_INFO_QUERY_KIND_ENABLED_TOOL, &flag));
    EXPECT_FALSE(flag);
    EXPECT_EQ(ABT_tool_register_thread_callback(nullptr, 0, nullptr), ABT_ERR_FEATURE_NA);
    EXPECT_EQ(ABT_tool_query_thread(ABT_TOOL_CONTEXT_NULL, 0, ABT_TOOL_QUERY_KIND_POOL, &flag),
              ABT_ERR_FEATURE_NA);

    char *text = nullptr;
    std::size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    auto suspends = [] { ABT_self_suspend(); };
    ABT_thread thread = start(pool, suspends);
    wait_for_state(thread, ABT_THREAD_STATE_BLOCKED);
    OK(ABT_info_print_config(file));
    OK(ABT_info_print_all_xstreams(file));
    OK(ABT_info_print_thread(file, thread));
    OK(ABT_info_print_thread_stack(file, thread));
    OK(ABT_info_print_thread_stacks_in_pool(file, pool));
    ABT_thread_attr attr;
    OK(ABT_thread_get_attr(thread, &attr));
    OK(ABT_info_print_thread_attr(file, attr));
    OK(ABT_thread_attr_free(&attr));
    fclose(file);
    EXPECT_NE(std::string(text).find("BLOCKED"), std::string::npos);
    EXPECT_NE(std::string(text).find("1 blocked"), std::string::npos);
    std::free(text);
    EXPECT_EQ(ABT_info_print_xstream(stdout, ABT_XSTREAM_NULL), ABT_ERR_INV_XSTREAM);
    OK(ABT_thread_resume(thread));
    OK(ABT_thread_free(&thread));
}

TEST(Values, OfErrorsAndNullHandles) {
    char name[64];
    std::size_t length;
    for (int error = 0; error <= 57; error++) {
        OK(ABT_error_get_str(error, name, &length));
        EXPECT_EQ(std::strlen(name), length);
        EXPECT_EQ(std::strncmp(name, error == 0 ? "ABT_SUCCESS" : "ABT_ERR_", error == 0 ? 11 : 8), 0);
    }
    OK(ABT_error_get_str(ABT_ERR_INV_POOL_USER_DEF, name, nullptr));
    EXPECT_STREQ(name, "ABT_ERR_INV_POOL_USER_DEF");
    OK(ABT_error_get_str(ABT_ERR_COND_TIMEDOUT, name, nullptr));
    EXPECT_STREQ(name, "ABT_ERR_COND_TIMEDOUT");
    EXPECT_EQ(ABT_error_get_str(58, name, &length), ABT_ERR_OTHER);
    EXPECT_EQ(ABT_error_get_str(-1, name, &length), ABT_ERR_OTHER);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(ABT_XSTREAM_NULL), 1U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(ABT_POOL_USER_DEF_NULL), 21U);
    EXPECT_EQ(sizeof(ABT_mutex_memory), 64U);
    EXPECT_EQ(alignof(ABT_mutex_memory), 4U);
    EXPECT_EQ(sizeof(ABT_sched_def), 40U);
    EXPECT_EQ(sizeof(ABT_pool_def), 128U);
    EXPECT_EQ(ABT_TOOL_EVENT_THREAD_ALL, 4095U);
    EXPECT_GE(ABT_NUMVERSION, ABT_CALC_VERSION(1, 2, 0, ABT_RELEASE_TYPE_PATCH, 0));
}

TEST(Values, OfTimers) {
    ABT_timer timer, copy;
    OK(ABT_timer_create(&timer));
    OK(ABT_timer_start(timer));
    OK(ABT_timer_stop(timer));
    double passed, same, sum = 1;
    OK(ABT_timer_read(timer, &passed));
    OK(ABT_timer_dup(timer, &copy));
    OK(ABT_timer_read(copy, &same));
    EXPECT_EQ(passed, same);
    OK(ABT_timer_stop_and_add(timer, &sum));
    EXPECT_GE(sum, 1);
    OK(ABT_timer_stop_and_read(timer, &passed));
    EXPECT_GE(passed, same);
    double overhead;
    OK(ABT_timer_get_overhead(&overhead));
    OK(ABT_timer_free(&timer));
    OK(ABT_timer_free(&copy));
    EXPECT_EQ(ABT_timer_free(&copy), ABT_ERR_INV_TIMER);
    EXPECT_EQ(ABT_timer_start(ABT_TIMER_NULL), ABT_ERR_INV_TIMER);
    EXPECT_GT(ABT_get_wtime(), 1e9);
}
