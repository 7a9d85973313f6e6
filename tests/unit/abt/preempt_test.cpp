// SPDX-License-Identifier: Apache-2.0
//
// Preemption as thrum adds it: which threads are preempted, and that the layer's state survives it.
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <thread>

#include "preempting.hpp"

using namespace abt_test;

namespace {

class PreemptMixture : public Preempt, public testing::WithParamInterface<int> {};

// A thread that never waits until another has run: it ends only if it is preempted.
struct Spinner {
    std::atomic<bool> is_over{false};
    void operator()() {
        while (!is_over)
            ;
    }
};
thread_local int local;

// A function of its own: where a thread waits it may come back with another's.
__attribute__((noinline)) volatile int *local_here() {
    asm volatile("");
    return &local;
}

struct Ender {
    Spinner &spinner;
    void operator()() { spinner.is_over = true; }
};

} // namespace

// The second is behind the first on the only stream.
TEST_F(Preempt, AThreadThatAsksGivesWay) {
    begin(THRUM_ABT_PREEMPT_DEFAULT);
    if (IsSkipped())
        return;
    Spinner spinner;
    Ender ender{spinner};
    ABT_thread first = start_with(pool, lend, spinner), second = start(pool, ender);
    OK(ABT_thread_free(&first));
    OK(ABT_thread_free(&second));
}

TEST_F(Preempt, APoolAsksForItsThreads) {
    begin(THRUM_ABT_PREEMPT_DEFAULT);
    if (IsSkipped())
        return;
    OK(thrum_abt_pool_set_preempt(pool, THRUM_ABT_PREEMPT_LEND, 100));
    Spinner spinner;
    Ender ender{spinner};
    ABT_thread first = start(pool, spinner), second = start(pool, ender);
    OK(ABT_thread_free(&first));
    OK(ABT_thread_free(&second));
}

TEST_F(Preempt, AllThreadsGiveWayIfThatIsSaid) {
    begin(THRUM_ABT_PREEMPT_LEND);
    if (IsSkipped())
        return;
    Spinner spinner;
    Ender ender{spinner};
    ABT_thread first = start(pool, spinner), second = start(pool, ender);
    OK(ABT_thread_free(&first));
    OK(ABT_thread_free(&second));
}

// It counts to itself until some slices are over; another must not have run.
TEST_F(Preempt, AThreadThatAsksForTheContraryKeepsItsStream) {
    begin(THRUM_ABT_PREEMPT_LEND, 50);
    if (IsSkipped())
        return;
    ABT_thread_attr none;
    OK(ABT_thread_attr_create(&none));
    OK(thrum_abt_thread_attr_set_preempt(none, THRUM_ABT_PREEMPT_NONE, 0));
    bool other_has_run = false, had_run = false;
    auto other = [&] { other_has_run = true; };
    auto keep = [&] {
        const double end = ABT_get_wtime() + 0.005; // 100 slices
        while (ABT_get_wtime() < end)
            ;
        had_run = *static_cast<volatile bool *>(&other_has_run);
    };
    ABT_thread first = start_with(pool, none, keep), second = start(pool, other);
    OK(ABT_thread_free(&first));
    OK(ABT_thread_free(&second));
    OK(ABT_thread_attr_free(&none));
    EXPECT_FALSE(had_run);
    EXPECT_TRUE(other_has_run);
}

// Cancelled while it is preempted, it ends when it gives way by itself; its stack and its thread control block are not leaked.
TEST_F(Preempt, APreemptedThreadIsCancelledWhenItYields) {
    begin(THRUM_ABT_PREEMPT_DEFAULT);
    if (IsSkipped())
        return;
    bool has_come_back = false;
    std::atomic<bool> is_over{false};
    auto cancelled = [&] {
        while (!is_over)
            ;
        ABT_thread_yield();
        has_come_back = true;
    };
    ABT_thread first = start_with(pool, lend, cancelled);
    auto cancel = [&] {
        OK(ABT_thread_cancel(first));
        is_over = true;
    };
    ABT_thread second = start(pool, cancel);
    OK(ABT_thread_free(&second));
    OK(ABT_thread_free(&first));
    EXPECT_FALSE(has_come_back);
}

// A host is not preempted while it runs another, and is again afterwards.
TEST_F(Preempt, AThreadThatRunsOthersIsPreemptedAfterwards) {
    begin(THRUM_ABT_PREEMPT_DEFAULT);
    if (IsSkipped())
        return;
    ABT_pool mine;
    OK(ABT_pool_create_basic(ABT_POOL_FIFO, ABT_POOL_ACCESS_MPMC, ABT_FALSE, &mine));
    int yields = 0;
    auto guest = [&] {
        for (; yields < 100; yields++)
            ABT_thread_yield();
    };
    ABT_thread guest_thread = start_with(mine, lend, guest);
    Spinner spinner;
    auto host = [&] {
        ABT_thread next;
        while (ABT_pool_pop_thread(mine, &next) == ABT_SUCCESS && next != ABT_THREAD_NULL)
            OK(ABT_self_schedule(next, ABT_POOL_NULL));
        spinner();
    };
    Ender ender{spinner};
    ABT_thread first = start_with(pool, lend, host), second = start(pool, ender);
    OK(ABT_thread_free(&first));
    OK(ABT_thread_free(&second));
    OK(ABT_thread_free(&guest_thread));
    OK(ABT_pool_free(&mine));
    EXPECT_EQ(yields, 100);
}

namespace {

// Counts for ever, preempted: from the same stream it is seen to count only if the one that looks is preempted, too.
struct Counter {
    std::atomic<long> count{0};
    std::atomic<bool> is_over{false};
    void operator()() {
        while (!is_over)
            count++;
    }
    // Longer than many slices.
    bool counts_meanwhile() {
        const long before = count;
        for (volatile int i = 0; i < 500000; i = i + 1)
            ;
        return count != before;
    }
};

Counter *counter;
int counted, called;

void look() {
    called++;
    counted += counter->counts_meanwhile();
}

} // namespace

// Its tasklets run on the host's stack. They are not preempted, even if the host is given to another pool meanwhile.
TEST_F(Preempt, AHostThatGetsAnotherPoolIsNotPreempted) {
    begin(THRUM_ABT_PREEMPT_LEND, 50);
    if (IsSkipped())
        return;
    ABT_pool mine;
    OK(ABT_pool_create_basic(ABT_POOL_FIFO, ABT_POOL_ACCESS_MPMC, ABT_FALSE, &mine));
    Counter counts;
    ABT_thread host_thread = ABT_THREAD_NULL;
    bool before = true, after = true, at_last = false;
    auto tasklet = [&] {
        before = counts.counts_meanwhile();
        OK(ABT_thread_set_associated_pool(host_thread, mine));
        OK(ABT_thread_set_associated_pool(host_thread, pool));
        after = counts.counts_meanwhile();
    };
    ABT_task task = start_task(mine, tasklet);
    auto host = [&] {
        ABT_thread next;
        while (counts.count == 0) {
            OK(ABT_thread_yield());
        }
        OK(ABT_self_get_thread(&host_thread));
        OK(ABT_pool_pop_thread(mine, &next));
        OK(ABT_self_schedule(next, ABT_POOL_NULL));
        while (!at_last)
            at_last = counts.counts_meanwhile();
        counts.is_over = true;
    };
    ABT_thread first = start(pool, host), second = start(pool, counts);
    OK(ABT_thread_free(&first));
    OK(ABT_thread_free(&second));
    OK(ABT_task_free(&task));
    OK(ABT_pool_free(&mine));
    EXPECT_FALSE(before);
    EXPECT_FALSE(after);
    EXPECT_TRUE(at_last);
}

// They may lock what the host that calls them next locks, too.
TEST_F(Preempt, FunctionsOfTheProgramsPoolsAreNotPreempted) {
    begin(THRUM_ABT_PREEMPT_LEND, 50);
    if (IsSkipped())
        return;
    Counter counts;
    counter = &counts;
    counted = called = 0;
    ABT_pool_user_def def = ABT_POOL_USER_DEF_NULL;
    OK(ABT_pool_user_def_create(
        [](ABT_pool, ABT_thread thread) {
            look();
            return reinterpret_cast<ABT_unit>(thread);
        },
        [](ABT_pool, ABT_unit) { look(); },
        [](ABT_pool) -> ABT_bool {
            look();
            return ABT_TRUE;
        },
        [](ABT_pool, ABT_pool_context) {
            look();
            return ABT_THREAD_NULL;
        },
        [](ABT_pool, ABT_unit, ABT_pool_context) { look(); }, &def));
    OK(ABT_pool_user_def_set_get_size(def, [](ABT_pool) -> std::size_t {
        look();
        return 0;
    }));
    OK(ABT_pool_user_def_set_pop_many(
        def, [](ABT_pool, ABT_thread *, std::size_t, std::size_t *num, ABT_pool_context) {
            look();
            *num = 0;
        }));
    OK(ABT_pool_user_def_set_push_many(
        def, [](ABT_pool, const ABT_unit *, std::size_t, ABT_pool_context) { look(); }));
    OK(ABT_pool_user_def_set_print_all(def, [](ABT_pool, void *, void (*)(void *, ABT_thread)) { look(); }));
    ABT_pool theirs;
    OK(ABT_pool_create(def, ABT_POOL_CONFIG_NULL, &theirs));
    auto run = [] {};
    ABT_thread moved = start(pool, run);
    OK(ABT_thread_join(moved));
    auto caller = [&] {
        while (counts.count == 0) {
            OK(ABT_thread_yield());
        }
        ABT_bool is_empty;
        std::size_t size;
        ABT_thread thread;
        OK(ABT_pool_is_empty(theirs, &is_empty));
        OK(ABT_pool_get_size(theirs, &size));
        OK(ABT_pool_pop_thread(theirs, &thread));
        OK(ABT_pool_pop_threads(theirs, &thread, 1, &size));
        OK(ABT_pool_print_all_threads(theirs, nullptr, [](void *, ABT_thread) {}));
        OK(ABT_pool_push_thread(theirs, moved));         // creates a unit, and pushes it
        OK(ABT_thread_set_associated_pool(moved, pool)); // frees it
        OK(ABT_pool_push_threads(theirs, &moved, 1));    // as above
        OK(ABT_thread_set_associated_pool(moved, pool));
        counts.is_over = true;
    };
    ABT_thread first = start(pool, caller), second = start(pool, counts);
    OK(ABT_thread_free(&first));
    OK(ABT_thread_free(&second));
    OK(ABT_thread_free(&moved));
    OK(ABT_pool_free(&theirs));
    OK(ABT_pool_user_def_free(&def));
    EXPECT_EQ(called, 11);
    EXPECT_EQ(counted, 0);
}

// All that a thread may do, while it is preempted again and again: none is lost, and each has what is its own.
TEST_P(PreemptMixture, NothingIsLostInAMixture) {
    begin(THRUM_ABT_PREEMPT_LEND, 50);
    if (IsSkipped())
        return;
    const auto count = static_cast<std::size_t>(GetParam());
    std::vector<ABT_xstream> streams(count);
    std::vector<ABT_pool> pools(count, pool);
    for (std::size_t i = 1; i < count; i++) {
        OK(ABT_xstream_create(ABT_SCHED_NULL, &streams[i]));
        OK(ABT_xstream_get_main_pools(streams[i], 1, &pools[i]));
    }
    ABT_mutex mutex;
    ABT_barrier barrier;
    ABT_key key;
    OK(ABT_mutex_create(&mutex));
    constexpr int kThreads = 12, kRounds = 12;
    OK(ABT_barrier_create(kThreads, &barrier));
    OK(ABT_key_create(nullptr, &key));
    int sum = 0;
    std::atomic<int> wrong{0}, children{0};
    auto child = [&] { children++; };
    auto run = [&] {
        ABT_thread self;
        wrong += ABT_thread_self(&self) != ABT_SUCCESS;
        wrong += ABT_self_set_specific(key, self) != ABT_SUCCESS;
        for (int round = 0; round < kRounds; round++) {
            std::unique_ptr<std::string> text; // malloc's locks are held by preempted ones, too
            for (int i = 0; i < 200; i++)
                text = std::make_unique<std::string>(static_cast<std::size_t>(i + 50), 'x');
            volatile int *mine = local_here(); // no wait from here: a preempted thread keeps it
            *mine = round;
            for (volatile int i = 0; i < 20000; i = i + 1)
                ;
            wrong += *mine != round;
            OK(ABT_mutex_lock(mutex));
            sum++;
            OK(ABT_mutex_unlock(mutex));
            ABT_thread now, made;
            void *value;
            wrong += ABT_thread_self(&now) != ABT_SUCCESS || now != self;
            wrong += ABT_self_get_specific(key, &value) != ABT_SUCCESS || value != self;
            OK(ABT_thread_create(pools[static_cast<std::size_t>(round) % count], call<decltype(child)>,
                                 &child, ABT_THREAD_ATTR_NULL, &made));
            if (round % 4 == 0) {
                OK(ABT_barrier_wait(barrier));
            }
            if (round % 4 == 1) {
                OK(thrum_abt_sleep(100000));
            }
            if (round % 4 == 2) {
                OK(ABT_thread_yield());
            }
            OK(ABT_thread_free(&made));
        }
    };
    std::vector<ABT_thread> threads;
    for (int i = 0; i < kThreads; i++)
        threads.push_back(start(pools[static_cast<std::size_t>(i) % count], run));
    for (ABT_thread &thread : threads)
        OK(ABT_thread_free(&thread));
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(sum, kThreads * kRounds);
    EXPECT_EQ(children, kThreads * kRounds);
    for (std::size_t i = 1; i < count; i++)
        OK(ABT_xstream_free(&streams[i]));
    OK(ABT_key_free(&key));
    OK(ABT_barrier_free(&barrier));
    OK(ABT_mutex_free(&mutex));
}

// An unnamed thread ends on one that may not be preempted, whatever lock of malloc's a preempted one holds.
TEST_F(Preempt, UnnamedThreadsEndWhileOthersHoldMallocsLocks) {
    begin(THRUM_ABT_PREEMPT_LEND, 50);
    if (IsSkipped())
        return;
    constexpr int kMakers = 6, kRounds = 100;
    ABT_key key;
    OK(ABT_key_create(std::free, &key));
    std::atomic<int> ended{0};
    auto child = [&] {
        OK(ABT_self_set_specific(key, std::malloc(2000)));
        void *block = std::malloc(3000); // larger than what malloc keeps without a lock
        std::free(block);
        ended++;
    };
    auto maker = [&] {
        std::vector<void *> blocks(32);
        for (int round = 0; round < kRounds; round++) {
            OK(ABT_thread_create(pool, call<decltype(child)>, &child, ABT_THREAD_ATTR_NULL, nullptr));
            for (std::size_t i = 0; i < 3 * blocks.size(); i++) {
                void *&block = blocks[i % blocks.size()];
                std::free(block);
                block = std::malloc(2000 + 100 * (i % 7));
            }
        }
        for (void *block : blocks)
            std::free(block);
    };
    std::vector<ABT_thread> makers;
    for (int i = 0; i < kMakers; i++)
        makers.push_back(start(pool, maker));
    for (ABT_thread &thread : makers)
        OK(ABT_thread_free(&thread));
    while (ended < kMakers * kRounds)
        OK(ABT_thread_yield());
    EXPECT_EQ(ended, kMakers * kRounds);
    OK(ABT_key_free(&key));
}

INSTANTIATE_TEST_SUITE_P(Streams, PreemptMixture, testing::Values(1, 2, 4, 8));

// Without a mode of its own. It spins for one slice of the runtime's if its own has no effect.
TEST_F(Preempt, ASliceAloneCounts) {
    begin(THRUM_ABT_PREEMPT_LEND, 1000000);
    if (IsSkipped())
        return;
    ABT_thread_attr brief;
    OK(ABT_thread_attr_create(&brief));
    OK(thrum_abt_thread_attr_set_preempt(brief, THRUM_ABT_PREEMPT_DEFAULT, 1000));
    const std::clock_t before = std::clock(); // CPU time
    for (int round = 0; round < 2; round++) { // the first may be near a tick
        Spinner spinner;
        Ender ender{spinner};
        ABT_thread first = start_with(pool, brief, spinner), second = start(pool, ender);
        OK(ABT_thread_free(&first));
        OK(ABT_thread_free(&second));
    }
    EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 10);
    OK(ABT_thread_attr_free(&brief));
}

namespace {

// In a process of its own, in which nothing else was said before: what an attribute may ask for. A line shows each error.
[[noreturn]] void tell_what_is_preempted() {
    ABT_thread_attr attr;
    ABT_xstream stream;
    ABT_pool pool;
    int error = ABT_init(0, nullptr);
    error = error != ABT_SUCCESS ? error : ABT_thread_attr_create(&attr);
    error = error != ABT_SUCCESS ? error : thrum_abt_thread_attr_set_preempt(attr, THRUM_ABT_PREEMPT_LEND, 0);
    if (error == ABT_ERR_FEATURE_NA) {
        std::fputs("none\n", stderr);
        std::_Exit(0);
    }
    error = error != ABT_SUCCESS ? error : ABT_xstream_self(&stream);
    error = error != ABT_SUCCESS ? error : ABT_xstream_get_main_pools(stream, 1, &pool);
    if (error != ABT_SUCCESS)
        std::_Exit(1);
    // On the only stream, before one that asks for nothing: does the latter give way?
    Spinner spinner;
    Ender ender{spinner};
    std::atomic<bool> has_moved{false};
    auto computes = [&] {
        const std::clock_t before = std::clock();
        while (!spinner.is_over && std::clock() - before < CLOCKS_PER_SEC / 4)
            ;
        has_moved = spinner.is_over.load();
    };
    ABT_thread first = start(pool, computes), second = start(pool, ender);
    ABT_thread_free(&first);
    ABT_thread_free(&second);
    std::fputs(has_moved ? "all\n" : "asked\n", stderr);
    std::_Exit(0);
}

class PreemptVariable : public testing::Test {
  public:
    void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
    void TearDown() override { unsetenv("THRUM_ABT_PREEMPT"); }
    static void expect(const char *value, const char *line) {
        setenv("THRUM_ABT_PREEMPT", value, 1);
        EXPECT_EXIT(tell_what_is_preempted(), testing::ExitedWithCode(0), line);
    }
};

} // namespace

TEST_F(PreemptVariable, SaysWhichThreads) {
    if (!can_execute_itself())
        GTEST_SKIP() << kCannotExecute;
    expect("none", "^none\n$");
    expect("", "^none\n$");
    expect("klt", "THRUM_ABT_PREEMPT is 'klt'; it takes lend, asked or none.*\nnone\n$");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    expect("asked", "^(asked|none)\n$"); // none: the system lacks what preemption needs
    expect("lend", "^(all|none)\n$");
#endif
}

TEST_F(Preempt, WhatCannotBeIsAnError) {
    EXPECT_EQ(thrum_abt_set_preempt(2, 0), ABT_ERR_INV_ARG);
    EXPECT_EQ(thrum_abt_set_preempt(THRUM_ABT_PREEMPT_LEND, 49), ABT_ERR_INV_ARG);
    EXPECT_EQ(thrum_abt_set_preempt(THRUM_ABT_PREEMPT_LEND, 1000001), ABT_ERR_INV_ARG);
    OK(thrum_abt_set_preempt(THRUM_ABT_PREEMPT_NONE, 0));
    OK(ABT_init(0, nullptr));
    ABT_xstream self;
    ABT_pool main_pool;
    ABT_thread_attr attr;
    OK(ABT_xstream_self(&self));
    OK(ABT_xstream_get_main_pools(self, 1, &main_pool));
    OK(ABT_thread_attr_create(&attr));
    EXPECT_EQ(thrum_abt_set_preempt(THRUM_ABT_PREEMPT_LEND, 0), ABT_ERR_OTHER);
    EXPECT_EQ(thrum_abt_pool_set_preempt(main_pool, THRUM_ABT_PREEMPT_LEND, 0), ABT_ERR_FEATURE_NA);
    EXPECT_EQ(thrum_abt_pool_set_preempt(main_pool, THRUM_ABT_PREEMPT_NONE, 0), ABT_SUCCESS);
    EXPECT_EQ(thrum_abt_pool_set_preempt(main_pool, 7, 0), ABT_ERR_INV_ARG);
    EXPECT_EQ(thrum_abt_pool_set_preempt(ABT_POOL_NULL, THRUM_ABT_PREEMPT_NONE, 0), ABT_ERR_INV_POOL);
    EXPECT_EQ(thrum_abt_thread_attr_set_preempt(attr, THRUM_ABT_PREEMPT_LEND, 0), ABT_ERR_FEATURE_NA);
    EXPECT_EQ(thrum_abt_thread_attr_set_preempt(attr, THRUM_ABT_PREEMPT_NONE, 1), ABT_ERR_INV_ARG);
    EXPECT_EQ(thrum_abt_thread_attr_set_preempt(ABT_THREAD_ATTR_NULL, THRUM_ABT_PREEMPT_NONE, 0),
              ABT_ERR_INV_THREAD_ATTR);
    OK(ABT_thread_attr_free(&attr));
    OK(ABT_finalize());
}

// --- the end that unwinds --------------------------------------------------------------------------------

namespace {

class Exit : public Alone {};

struct Noted {
    std::string &notes;
    char note;
    ~Noted() {
        ABT_thread_yield(); // a destructor may give way
        notes += note;
    }
};

} // namespace

TEST_F(Exit, DestructorsRunAndTheJoinerIsWoken) {
    std::string notes;
    bool has_come_back = false;
    auto inner = [&] {
        const Noted second{notes, '2'};
        thrum_abt_exit();
        has_come_back = true;
    };
    auto leaves = [&] {
        const Noted first{notes, '1'};
        inner();
    };
    for (int i = 0; i < 3; i++) { // its stack is not another's
        notes.clear();
        ABT_thread thread = start(pool, leaves);
        OK(ABT_thread_join(thread));
        EXPECT_EQ(state_of(thread), ABT_THREAD_STATE_TERMINATED);
        OK(ABT_thread_free(&thread));
        EXPECT_EQ(notes, "21");
    }
    EXPECT_FALSE(has_come_back);
}

TEST_F(Exit, ByTheCLibrarysFunctionLikewise) {
    std::string notes;
    auto leaves = [&] {
        const Noted first{notes, '1'};
        pthread_exit(nullptr);
    };
    ABT_thread thread = start(pool, leaves);
    OK(ABT_thread_free(&thread));
    EXPECT_EQ(notes, "1");
}

TEST_F(Exit, WhatMustReturnAborts) {
    if (!can_execute_itself())
        GTEST_SKIP() << kCannotExecute;
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    auto leaves = [] { pthread_exit(nullptr); };
    EXPECT_DEATH(
        {
            ABT_task task = start_task(pool, leaves);
            ABT_task_free(&task);
        },
        "a tasklet must end by returning");
    EXPECT_DEATH(
        {
            ABT_sched_def def{};
            def.type = ABT_SCHED_TYPE_ULT;
            def.run = [](ABT_sched) { pthread_exit(nullptr); };
            ABT_sched sched;
            ABT_xstream other;
            ABT_sched_create(&def, 1, &pool, ABT_SCHED_CONFIG_NULL, &sched);
            ABT_xstream_create(sched, &other);
            ABT_xstream_join(other);
        },
        "a main scheduler must end by returning");
}

TEST_F(Exit, OthersMayNotLeave) {
    EXPECT_EQ(thrum_abt_exit(), ABT_ERR_INV_THREAD);
    int of_tasklet = ABT_SUCCESS, of_external = ABT_SUCCESS;
    auto leaves = [&] { of_tasklet = thrum_abt_exit(); };
    ABT_task task = start_task(pool, leaves);
    OK(ABT_task_free(&task));
    EXPECT_EQ(of_tasklet, ABT_ERR_INV_THREAD);
    std::thread([&] { of_external = thrum_abt_exit(); }).join();
    EXPECT_EQ(of_external, ABT_ERR_INV_XSTREAM);
}
