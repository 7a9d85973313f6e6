// SPDX-License-Identifier: Apache-2.0
//
// Threads that leave, under one of the library's schedulers: they switch to the next thread themselves, and leave their unit to it.
#include <thrum/thrum.h>
#include <unistd.h>

#include <cfenv>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "streams.hpp"

using namespace abt_test;

class DirectAlone : public Alone {};

// The end of a program by a fault, once libthrum has reported it: by the signal, or by a sanitizer's handler and its exit status.
static auto ended_by_fault() {
#if defined __SANITIZE_ADDRESS__
    return testing::ExitedWithCode(1);
#elif defined __SANITIZE_THREAD__
    return testing::ExitedWithCode(66);
#else
    return testing::KilledBySignal(SIGSEGV);
#endif
}

// As in Argobots: what is ready already runs later.
TEST_F(DirectAlone, AJoinerRunsRightAfterTheEnd) {
    std::string order;
    auto first = [&] { order += "a"; };
    auto second = [&] { order += "b"; };
    ABT_thread one = start(pool, first), other = start(pool, second);
    OK(ABT_thread_join(one));
    order += "-";
    OK(ABT_thread_free(&other));
    OK(ABT_thread_free(&one));
    EXPECT_EQ(order, "a-b");
}

// Likewise, where the host has to see to its end.
TEST_F(DirectAlone, AJoinerRunsRightAfterTheEndOfOneWithAValue) {
    std::string order;
    ABT_key key;
    OK(ABT_key_create(nullptr, &key));
    auto first = [&] {
        OK(ABT_self_set_specific(key, &order));
        order += "a";
    };
    auto exits = [&] {
        order += "c";
        ABT_self_exit();
    };
    auto second = [&] { order += "b"; };
    ABT_thread one = start(pool, first), other = start(pool, second);
    OK(ABT_thread_join(one));
    order += "-";
    OK(ABT_thread_free(&other));
    OK(ABT_thread_free(&one));
    one = start(pool, exits), other = start(pool, second);
    OK(ABT_thread_free(&one));
    order += "-";
    OK(ABT_thread_free(&other));
    OK(ABT_key_free(&key));
    EXPECT_EQ(order, "a-bc-b");
}

TEST_F(DirectAlone, OneThatIsAloneIsItsOwnSuccessor) {
    int yields = 0;
    for (int i = 0; i < 1000; i++) {
        ABT_thread_yield();
        yields++;
    }
    EXPECT_EQ(yields, 1000);
}

// A chain of them does not keep the scheduler from what else it has to do.
TEST_F(DirectAlone, TwoThatYieldToEachOtherLetTheStreamSeeToEvents) {
    static std::atomic<bool> done;
    done = false;
    std::FILE *file = std::fopen("/dev/null", "w");
    ASSERT_NE(file, nullptr);
    ABT_thread threads[2];
    auto body = [&] {
        ABT_thread self;
        OK(ABT_self_get_thread(&self));
        // The other one may have ended.
        while (!done)
            ABT_thread_yield_to(self == threads[0] ? threads[1] : threads[0]);
    };
    threads[0] = start(pool, body);
    threads[1] = start(pool, body);
    OK(ABT_info_trigger_print_all_thread_stacks(
        file, 0, [](ABT_bool, void *) { done = true; }, nullptr));
    OK(ABT_thread_free(&threads[0]));
    OK(ABT_thread_free(&threads[1]));
    EXPECT_TRUE(done);
    std::fclose(file);
}

TEST_F(DirectAlone, StacksThatAreAskedForWhileOthersArePrintedArePrintedNext) {
    static int printed[2];
    static std::FILE *other;
    static void (*const count)(ABT_bool, void *) = [](ABT_bool, void *which) {
        ++*static_cast<int *>(which);
    };
    printed[0] = printed[1] = 0;
    other = std::fopen("/dev/null", "w");
    ASSERT_NE(other, nullptr);
    auto ask = [](void *, const char *, std::size_t size) -> ssize_t {
        static int asked = 0;
        if (asked++ == 0) {
            EXPECT_EQ(ABT_info_trigger_print_all_thread_stacks(other, 0, count, &printed[1]), ABT_SUCCESS);
        }
        return static_cast<ssize_t>(size);
    };
    std::FILE *file = fopencookie(nullptr, "w", {nullptr, ask, nullptr, nullptr});
    ASSERT_NE(file, nullptr);
    OK(ABT_info_trigger_print_all_thread_stacks(file, 0, count, &printed[0]));
    for (int i = 0; i < 100000 && printed[1] == 0; i++)
        ABT_thread_yield();
    EXPECT_EQ(printed[0], 1);
    EXPECT_EQ(printed[1], 1);
    std::fclose(file);
    std::fclose(other);
}

namespace {

// Asks for stacks again and again, each time when the last ones have been printed.
struct Trigger {
    std::FILE *file = std::fopen("/dev/null", "w");
    std::atomic<int> printed{0};
    ~Trigger() { std::fclose(file); }
    void ask(void (*done)(ABT_bool, void *)) {
        for (int i = 0; i < 50; i++) {
            EXPECT_EQ(ABT_info_trigger_print_all_thread_stacks(file, -1, done, this), ABT_SUCCESS);
            while (printed == i)
                std::this_thread::yield();
        }
    }
};
Trigger *triggers[2];
std::atomic<int> mistaken{0};

template <int I>
void has_printed(ABT_bool, void *arg) {
    mistaken += arg != triggers[I];
    static_cast<Trigger *>(arg)->printed++;
}

} // namespace

// Two threads at once: each request is served, with what belongs to it.
TEST_F(DirectAlone, StacksThatTwoAskForAtOnceAreAllPrinted) {
    Trigger first, second;
    triggers[0] = &first;
    triggers[1] = &second;
    mistaken = 0;
    std::atomic<int> over{0};
    std::thread one([&] { first.ask(has_printed<0>), over++; });
    std::thread other([&] { second.ask(has_printed<1>), over++; });
    while (over < 2)
        OK(ABT_thread_yield());
    one.join();
    other.join();
    EXPECT_EQ(mistaken, 0);
}

// A stream that wakes up from its sleep, or has just rested for the stacks before, runs nothing while they are printed.
TEST_F(DirectAlone, NothingRunsWhileStacksArePrinted) {
    static std::atomic<int> begun, printed, ran_meanwhile;
    static ABT_pool others;
    static std::FILE *file;
    static void (*const note)(void *) = [](void *is_printing) {
        ran_meanwhile += *static_cast<std::atomic<bool> *>(is_printing) ? 1 : 0;
        begun++;
    };
    static std::atomic<bool> is_printing;
    ABT_xstream other;
    OK(ABT_xstream_create(ABT_SCHED_NULL, &other));
    OK(ABT_xstream_get_main_pools(other, 1, &others));
    auto write = [](void *, const char *, std::size_t size) -> ssize_t {
        if (!is_printing) {
            is_printing = true;
            EXPECT_EQ(ABT_thread_create(others, note, &is_printing, ABT_THREAD_ATTR_NULL, nullptr),
                      ABT_SUCCESS);
            const int before = begun;
            for (int ms = 0; ms < 5 && begun == before; ms++)
                usleep(1000);
        }
        return static_cast<ssize_t>(size);
    };
    auto done = [](ABT_bool, void *) {
        is_printing = false;
        printed++;
    };
    file = fopencookie(nullptr, "w", {nullptr, write, nullptr, nullptr});
    ASSERT_NE(file, nullptr);
    begun = printed = ran_meanwhile = 0;
    for (int i = 1; i <= 20; i += 2) {
        for (int k = 0; k < 2; k++) // the second is printed next
            OK(ABT_info_trigger_print_all_thread_stacks(file, -1, done, nullptr));
        while (printed <= i || begun <= i)
            OK(ABT_thread_yield());
        usleep(i % 4 == 1 ? 2000 : 0); // the other stream falls asleep, or not
    }
    EXPECT_EQ(ran_meanwhile, 0);
    OK(ABT_xstream_free(&other));
    std::fclose(file);
}

TEST_F(DirectAlone, DeadlinesPassWhileOthersYield) {
    bool slept = false;
    auto sleeper = [&] {
        OK(thrum_abt_sleep(1000000));
        slept = true;
    };
    auto yielder = [&] {
        while (!slept)
            ABT_thread_yield();
    };
    ABT_thread threads[] = {start(pool, sleeper), start(pool, yielder), start(pool, yielder)};
    for (ABT_thread &thread : threads)
        OK(ABT_thread_free(&thread));
    EXPECT_TRUE(slept);
}

// A unit that rests keeps its stack: a thread that asks for more, or less, does not get it. More sizes than a stream keeps.
TEST_F(DirectAlone, EachThreadHasTheStackThatItAskedFor) {
    const std::size_t sizes[] = {16,  24,  40,  48,  72,   96,   136,  160,
                                 264, 320, 520, 640, 1032, 1280, 2056, 2560};
    ABT_thread_attr attr;
    OK(ABT_thread_attr_create(&attr));
    std::size_t wanted = 0, used = 0;
    auto body = [&] {
        ABT_thread self;
        void *low;
        std::size_t told;
        EXPECT_EQ(ABT_self_get_thread(&self), ABT_SUCCESS);
        EXPECT_EQ(ABT_thread_get_stack(self, &low, &told), ABT_SUCCESS);
        EXPECT_EQ(told, wanted);
        std::size_t room =
            static_cast<std::size_t>(reinterpret_cast<char *>(&told) - static_cast<char *>(low));
        EXPECT_LE(room, wanted);
        EXPECT_GT(room + 4096, wanted); // it stands near the top
        volatile char *stack = static_cast<char *>(__builtin_alloca(room - 8192));
        for (std::size_t i = 0; i < room - 8192; i += 1024)
            stack[i] = 1;
        used += room;
    };
    for (int round = 0; round < 3; round++)
        for (std::size_t size : sizes)
            for (std::size_t next : {size, sizes[1], sizes[15], sizes[0]}) {
                ABT_thread thread;
                wanted = next * 1024;
                OK(ABT_thread_attr_set_stacksize(attr, wanted));
                OK(ABT_thread_create(pool, call<decltype(body)>, &body, attr, &thread));
                OK(ABT_thread_free(&thread));
            }
    EXPECT_GT(used, 0U);
    OK(ABT_thread_attr_free(&attr));
}

// A thread that joins one that has not begun says that this one runs before its own registers are saved. Each level joins, so
// that any of the instructions may be the one that faults.
static __attribute__((noinline)) void join_down(ABT_thread *threads, int depth) {
    volatile char frame[24];
    frame[0] = static_cast<char>(depth);
    ABT_thread_join(threads[depth]);
    if (depth < 1 << 30)
        join_down(threads, depth + 1);
    frame[1] = frame[0];
}

TEST_F(DirectAlone, AnOverflowAtAJoinIsTheJoiners) {
    if (!can_execute_itself())
        GTEST_SKIP() << kCannotExecute;
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    for (std::size_t more = 0; more < 16; more++) {
        std::vector<ABT_thread> threads;
        auto nothing = [] {};
        auto down = [&] {
            volatile auto *pad = static_cast<volatile char *>(__builtin_alloca(16 * more + 1));
            pad[0] = 0;
            join_down(threads.data(), 0);
        };
        auto overflows = [&] {
            ABT_thread thread = start(pool, down);
            for (int i = 0; i < 5000; i++)
                threads.push_back(start(pool, nothing));
            ABT_thread_free(&thread);
        };
        EXPECT_EXIT(overflows(), ended_by_fault(), "stack overflow in thread 0x[0-9a-f]+ on worker 0")
            << more;
    }
}

// They come after each other on one stack.
TEST_F(DirectAlone, TheNextThreadFindsNothingOfTheLast) {
    static int destroyed;
    destroyed = 0;
    thrum_key_t key;
    ASSERT_EQ(thrum_key_create(&key, [](void *) { destroyed++; }), 0);
    auto leaves_things = [&] {
        ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
        int name = thrum_set_name(thrum_self(), "one of them");
        ASSERT_EQ(name, 0);
        ASSERT_EQ(thrum_key_set(key, &key), 0);
    };
    auto only_rounds = [&] { ASSERT_EQ(std::fesetround(FE_UPWARD), 0); };
    auto finds_none = [&] {
        EXPECT_EQ(std::fegetround(), FE_TONEAREST);
        char name[THRUM_NAME_SIZE] = "";
        thrum_get_name(thrum_self(), name);
        EXPECT_STRNE(name, "one of them");
        EXPECT_EQ(thrum_key_get(key), nullptr);
    };
    for (int i = 0; i < 3; i++) {
        ABT_thread threads[] = {start(pool, leaves_things), start(pool, only_rounds),
                                start(pool, finds_none),    start(pool, only_rounds),
                                start(pool, finds_none),    start(pool, finds_none)};
        for (ABT_thread &thread : threads)
            OK(ABT_thread_free(&thread));
        ABT_thread one = start(pool, only_rounds);
        OK(ABT_thread_free(&one));
        one = start(pool, finds_none);
        OK(ABT_thread_free(&one));
    }
    EXPECT_EQ(destroyed, 3);
    EXPECT_EQ(thrum_key_delete(key), 0);
}

// Descriptors are used again, too.
TEST_F(DirectAlone, TheNextDescriptorHasNothingOfTheLast) {
    static int calls;
    calls = 0;
    ABT_key key;
    OK(ABT_key_create(nullptr, &key));
    ABT_pool other;
    OK(ABT_pool_create_basic(ABT_POOL_FIFO, ABT_POOL_ACCESS_MPMC, ABT_FALSE, &other));
    ABT_unit_id first_id = 0, id = 0;
    int round = 0;
    auto uses_one = [&] { // what it uses by itself must be noticed
        if (round == 0) {
            OK(ABT_self_set_specific(key, &key));
        } else if (round == 1) {
            OK(ABT_self_get_thread_id(&first_id));
        }
    };
    auto finds_none = [&] {
        void *value = &key;
        OK(ABT_self_get_specific(key, &value));
        EXPECT_EQ(value, nullptr);
        if (round == 1) {
            OK(ABT_self_get_thread_id(&id));
            EXPECT_NE(id, first_id);
        }
    };
    for (; round < 3; round++) {
        ABT_thread thread = start(pool, uses_one), last = thread;
        if (round == 2) {
            OK(ABT_thread_set_callback(
                thread, [](ABT_thread, void *) { calls++; }, nullptr));
        }
        OK(ABT_thread_free(&thread));
        thread = start(pool, finds_none);
        EXPECT_EQ(thread, last); // else this tests nothing
        OK(ABT_thread_migrate_to_pool(thread, other));
        ABT_thread_yield();
        ABT_thread there = ABT_THREAD_NULL;
        OK(ABT_pool_pop_thread(other, &there));
        EXPECT_EQ(there, thread);
        OK(ABT_self_schedule(there, pool));
        OK(ABT_thread_free(&thread));
    }
    EXPECT_EQ(calls, 0);
    OK(ABT_key_free(&key));
    OK(ABT_pool_free(&other));
}

class Direct : public Streams {};
INSTANTIATE_TEST_SUITE_P(On, Direct, testing::Values(1, 2, 4));

// All streams have the same pool: a thread that has pushed itself is taken out by another stream before it has left.
TEST_P(Direct, OneThatLeavesIsTakenByAnotherStream) {
    ABT_pool shared;
    OK(ABT_pool_create_basic(ABT_POOL_FIFO, ABT_POOL_ACCESS_MPMC, ABT_TRUE, &shared));
    std::vector<ABT_xstream> others(static_cast<std::size_t>(GetParam()));
    for (ABT_xstream &other : others)
        OK(ABT_xstream_create_basic(ABT_SCHED_BASIC, 1, &shared, ABT_SCHED_CONFIG_NULL, &other));
    std::atomic<int> turns{0};
    ABT_mutex mutex;
    OK(ABT_mutex_create(&mutex));
    int guarded = 0;
    auto short_one = [&] { turns++; };
    auto body = [&] {
        for (int i = 0; i < 200; i++) {
            ABT_thread_yield();
            ABT_mutex_lock(mutex);
            guarded++;
            ABT_mutex_unlock(mutex);
            ABT_thread child = start(shared, short_one);
            OK(ABT_thread_free(&child));
        }
    };
    std::vector<ABT_thread> threads;
    for (int i = 0; i < 12; i++)
        threads.push_back(start(shared, body));
    for (ABT_thread &thread : threads)
        OK(ABT_thread_free(&thread));
    EXPECT_EQ(turns, 12 * 200);
    EXPECT_EQ(guarded, 12 * 200);
    OK(ABT_mutex_free(&mutex));
    for (ABT_xstream &other : others)
        OK(ABT_xstream_free(&other));
}
