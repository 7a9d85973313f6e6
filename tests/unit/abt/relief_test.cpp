// SPDX-License-Identifier: Apache-2.0
//
// A preempted thread holds a lock of pthreads' or of libc's, and what is not preempted on its stream waits for that in the kernel.
// Nothing of the stream could run then: the thread continues elsewhere until the lock is free.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <new>
#include <thread>

#include "preempting.hpp"

using namespace abt_test;

namespace {

// What a thread does that the relief worker runs.
struct Holder {
    ABT_pool pool, other;
    ABT_eventual eventual;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    std::atomic<bool> holds{false}, is_waited_for{false};
    ABT_xstream before = ABT_XSTREAM_NULL, meanwhile = ABT_XSTREAM_NULL;
    int rank_before = -1, rank_meanwhile = -1;
    bool child_ran = false, guest_ran = false;

    void operator()() {
        OK(ABT_self_get_xstream(&before));
        OK(ABT_self_get_xstream_rank(&rank_before));
        ASSERT_EQ(pthread_mutex_lock(&mutex), 0);
        holds = true;
        while (!is_waited_for)
            ;
        // The stream waits for the mutex: this is another kernel thread.
        ABT_thread self, child, guest;
        OK(ABT_self_get_thread(&self));
        OK(ABT_self_get_xstream(&meanwhile));
        OK(ABT_self_get_xstream_rank(&rank_meanwhile));
        EXPECT_EQ(state_of(self), ABT_THREAD_STATE_RUNNING);
        auto run_child = [&] { child_ran = true; };
        child = start(pool, run_child);
        auto run_guest = [&] {
            ABT_thread_yield();
            guest_ran = true;
        };
        guest = start(other, run_guest);
        ASSERT_EQ(pthread_mutex_unlock(&mutex), 0);
        // It becomes a host, for which it has to be on its stream.
        while (state_of(guest) != ABT_THREAD_STATE_TERMINATED) { // it yields, and is preempted
            ABT_thread next;
            OK(ABT_pool_pop_thread(other, &next));
            ASSERT_EQ(next, guest);
            OK(ABT_self_schedule(next, ABT_POOL_NULL));
        }
        OK(ABT_thread_free(&guest));
        OK(ABT_thread_free(&child));
        OK(ABT_eventual_wait(eventual, nullptr));
    }

    void wait_for_it() {
        is_waited_for = true;
        EXPECT_EQ(pthread_mutex_lock(&mutex), 0);
        EXPECT_EQ(pthread_mutex_unlock(&mutex), 0);
    }
    // Once, by what is not preempted.
    void wait_if_it_holds() {
        if (holds && !is_waited_for)
            wait_for_it();
    }
};

Holder *holder;

class Relief : public Preempt {
  public:
    void begin_with_holder() {
        begin(THRUM_ABT_PREEMPT_LEND, 50);
        if (IsSkipped())
            return;
        OK(ABT_pool_create_basic(ABT_POOL_FIFO, ABT_POOL_ACCESS_MPMC, ABT_FALSE, &held.other));
        OK(ABT_eventual_create(0, &held.eventual));
        held.pool = pool;
        holder = &held;
    }
    // In a pool of the stream that is to wait.
    void start_holder(ABT_pool in) {
        held.pool = in;
        thread = start(in, held);
    }
    void await_holder() {
        while (!held.holds)
            OK(ABT_thread_yield());
    }
    void end_holder() {
        OK(ABT_eventual_set(held.eventual, nullptr, 0));
        OK(ABT_thread_free(&thread));
        EXPECT_EQ(held.meanwhile, held.before);
        EXPECT_EQ(held.rank_meanwhile, held.rank_before);
        EXPECT_TRUE(held.child_ran);
        EXPECT_TRUE(held.guest_ran);
        OK(ABT_eventual_free(&held.eventual));
        OK(ABT_pool_free(&held.other));
    }

    Holder held;
    ABT_thread thread = ABT_THREAD_NULL;
};

// The program's scheduler, for any number of pools.
void run_with_locks(ABT_sched sched) {
    int count;
    OK(ABT_sched_get_num_pools(sched, &count));
    std::vector<ABT_pool> pools(static_cast<std::size_t>(count));
    OK(ABT_sched_get_pools(sched, count, 0, pools.data()));
    for (ABT_bool stops = ABT_FALSE; !stops;) {
        holder->wait_if_it_holds();
        for (ABT_pool from : pools) {
            ABT_thread next;
            OK(ABT_pool_pop_thread(from, &next));
            if (next != ABT_THREAD_NULL) {
                OK(ABT_self_schedule(next, ABT_POOL_NULL));
            }
        }
        OK(ABT_sched_has_to_stop(sched, &stops));
    }
}

// Threads of the program's own kind of pool, whose functions lock what others lock.
std::deque<ABT_thread> queue;

ABT_pool_user_def make_def() {
    ABT_pool_user_def def = ABT_POOL_USER_DEF_NULL;
    EXPECT_EQ(ABT_pool_user_def_create(
                  [](ABT_pool, ABT_thread of) { return reinterpret_cast<ABT_unit>(of); },
                  [](ABT_pool, ABT_unit) {}, [](ABT_pool) -> ABT_bool { return queue.empty(); },
                  [](ABT_pool, ABT_pool_context) -> ABT_thread {
                      if (holder != nullptr)
                          holder->wait_if_it_holds();
                      std::free(std::malloc(3000)); // larger than what malloc keeps without a lock
                      if (queue.empty())
                          return ABT_THREAD_NULL;
                      ABT_thread next = queue.front();
                      queue.pop_front();
                      return next;
                  },
                  [](ABT_pool, ABT_unit unit, ABT_pool_context) {
                      std::free(std::malloc(3000));
                      queue.push_back(reinterpret_cast<ABT_thread>(unit));
                  },
                  &def),
              ABT_SUCCESS);
    return def;
}

} // namespace

TEST_F(Relief, ThePrimaryWaits) {
    begin_with_holder();
    if (IsSkipped())
        return;
    start_holder(pool);
    await_holder();
    held.wait_for_it();
    end_holder();
}

TEST_F(Relief, AThreadThatIsNotPreemptedWaits) {
    begin_with_holder();
    if (IsSkipped())
        return;
    ABT_thread_attr none;
    OK(ABT_thread_attr_create(&none));
    OK(thrum_abt_thread_attr_set_preempt(none, THRUM_ABT_PREEMPT_NONE, 0));
    auto waits = [&] {
        await_holder();
        held.wait_for_it();
    };
    start_holder(pool);
    ABT_thread waiter = start_with(pool, none, waits);
    OK(ABT_thread_free(&waiter));
    end_holder();
    OK(ABT_thread_attr_free(&none));
}

// No tick asks for relief then: the monitor does.
TEST_F(Relief, ThePrimaryWaitsAndBlocksSignals) {
    begin_with_holder();
    if (IsSkipped())
        return;
    start_holder(pool);
    await_holder();
    sigset_t all, before;
    sigfillset(&all);
    ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &all, &before), 0);
    held.wait_for_it();
    ASSERT_EQ(pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
    end_holder();
}

TEST_F(Relief, ATaskletWaits) {
    begin_with_holder();
    if (IsSkipped())
        return;
    start_holder(pool);
    await_holder();
    auto waits = [&] { held.wait_for_it(); };
    ABT_task task = start_task(pool, waits);
    OK(ABT_task_free(&task));
    end_holder();
}

TEST_F(Relief, TheFunctionOfASchedulerWaits) {
    begin_with_holder();
    if (IsSkipped())
        return;
    ABT_sched_def def{};
    def.type = ABT_SCHED_TYPE_ULT;
    def.run = run_with_locks;
    ABT_pool own;
    ABT_sched sched;
    ABT_xstream other;
    OK(ABT_pool_create_basic(ABT_POOL_FIFO, ABT_POOL_ACCESS_MPMC, ABT_TRUE, &own));
    OK(ABT_sched_create(&def, 1, &own, ABT_SCHED_CONFIG_NULL, &sched));
    OK(ABT_xstream_create(sched, &other));
    start_holder(own);
    end_holder();
    OK(ABT_xstream_free(&other));
    OK(ABT_sched_free(&sched));
}

TEST_F(Relief, TheFunctionOfAPoolWaits) {
    begin_with_holder();
    if (IsSkipped())
        return;
    queue.clear();
    ABT_pool_user_def def = make_def();
    ABT_pool pools[2];
    ABT_xstream other;
    OK(ABT_pool_create(def, ABT_POOL_CONFIG_NULL, &pools[0]));
    OK(ABT_pool_create_basic(ABT_POOL_FIFO, ABT_POOL_ACCESS_MPMC, ABT_TRUE, &pools[1]));
    OK(ABT_xstream_create_basic(ABT_SCHED_BASIC, 2, pools, ABT_SCHED_CONFIG_NULL, &other));
    start_holder(pools[1]);
    end_holder();
    OK(ABT_xstream_free(&other));
    OK(ABT_pool_free(&pools[0]));
    OK(ABT_pool_user_def_free(&def));
}

// The primary is no lock holder that was preempted, though it has a thread control block of its own. It runs on its own kernel thread
// alone, also if that waits for a lock when the primary becomes ready.
TEST_F(Relief, ThePrimaryStaysOnItsKernelThread) {
    begin(THRUM_ABT_PREEMPT_LEND, 50);
    if (IsSkipped())
        return;
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static std::atomic<bool> is_held, waits, has_resumed, is_over;
    is_held = waits = has_resumed = is_over = false;
    std::thread outside([] {
        EXPECT_EQ(pthread_mutex_lock(&mutex), 0);
        is_held = true;
        while (!waits)
            std::this_thread::yield();
        for (int ms = 0; ms < 100 && !has_resumed; ms++)
            usleep(1000);
        EXPECT_EQ(pthread_mutex_unlock(&mutex), 0);
    });
    while (!is_held)
        std::this_thread::yield();
    auto computes = [] {
        while (!is_over)
            ;
    };
    auto locks = [] {
        waits = true;
        EXPECT_EQ(pthread_mutex_lock(&mutex), 0);
        EXPECT_EQ(pthread_mutex_unlock(&mutex), 0);
    };
    ABT_thread preempted = start(pool, computes);
    ABT_task task = start_task(pool, locks);
    const pid_t before = gettid();
    OK(thrum_abt_blocking(
        [](void *) -> void * {
            while (!waits)
                usleep(100);
            return nullptr;
        },
        nullptr, nullptr));
    const pid_t after = gettid();
    has_resumed = is_over = true;
    EXPECT_EQ(after, before);
    OK(ABT_thread_free(&preempted));
    OK(ABT_task_free(&task));
    outside.join();
}

// Locks that the program does not see: malloc's, and that of a FILE.
TEST_F(Relief, LocksOfLibcs) {
    begin(THRUM_ABT_PREEMPT_LEND, 50);
    if (IsSkipped())
        return;
    holder = nullptr;
    queue.clear();
    std::FILE *file = std::fopen("/dev/null", "w");
    ASSERT_NE(file, nullptr);
    ABT_pool_user_def def = make_def();
    ABT_pool theirs;
    OK(ABT_pool_create(def, ABT_POOL_CONFIG_NULL, &theirs));
    ABT_pool pools[2] = {theirs, ABT_POOL_NULL};
    ABT_xstream self;
    OK(ABT_pool_create_basic(ABT_POOL_FIFO, ABT_POOL_ACCESS_MPMC, ABT_TRUE, &pools[1]));
    OK(ABT_xstream_self(&self));
    OK(ABT_xstream_set_main_sched_basic(self, ABT_SCHED_BASIC, 2, pools));
    auto work = [&] {
        for (int i = 0; i < 300; i++) {
            void *block = std::malloc(static_cast<std::size_t>(2000 + 100 * (i % 9)));
            std::fprintf(file, "%d %p\n", i, block);
            std::free(block);
        }
    };
    auto yields = [&] {
        for (int i = 0; i < 50; i++) {
            OK(ABT_thread_yield());
            std::fprintf(file, "%d\n", i);
        }
    };
    std::vector<ABT_thread> threads;
    for (int i = 0; i < 4; i++)
        threads.push_back(start(pools[1], work));
    for (int i = 0; i < 2; i++)
        threads.push_back(start(theirs, yields));
    for (int i = 0; i < 50; i++) {
        std::fprintf(file, "primary %d\n", i);
        OK(ABT_thread_yield());
    }
    for (ABT_thread &each : threads)
        OK(ABT_thread_free(&each));
    ABT_pool last;
    OK(ABT_pool_create_basic(ABT_POOL_FIFO, ABT_POOL_ACCESS_MPMC, ABT_TRUE, &last));
    OK(ABT_xstream_set_main_sched_basic(self, ABT_SCHED_BASIC, 1, &last));
    OK(ABT_pool_free(&theirs));
    OK(ABT_pool_user_def_free(&def));
    std::fclose(file);
}
