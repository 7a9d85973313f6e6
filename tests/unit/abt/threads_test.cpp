// SPDX-License-Identifier: Apache-2.0
//
// Threads and tasklets: making, joining, giving way, ending, asking.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>

#include "streams.hpp"

using namespace abt_test;

class Threads : public Streams {};
INSTANTIATE_TEST_SUITE_P(On, Threads, testing::Values(1, 2, 4, 8));
class ThreadsAlone : public Alone {};

TEST_P(Threads, EachRunsOnce) {
    std::atomic<int> runs{0};
    auto body = [&] {
        ABT_thread_yield();
        runs++;
    };
    std::vector<ABT_thread> threads;
    for (std::size_t i = 0; i < 500; i++)
        threads.push_back(start(pool(i), body));
    for (ABT_thread &thread : threads) {
        OK(ABT_thread_free(&thread));
        EXPECT_EQ(thread, ABT_THREAD_NULL);
    }
    EXPECT_EQ(runs, 500);
}

// <thrum/thrum.h>: of what runs such threads each belongs to its stream.
extern "C" int thrum_kthread_lock(void);
extern "C" int thrum_kthread_unlock(void);

TEST_P(Threads, HaveNoKernelThreadOfTheirOwn) {
    EXPECT_EQ(thrum_kthread_lock(), EPERM); // the primary
    int locked = 0, unlocked = 0;
    auto body = [&] {
        locked = thrum_kthread_lock();
        unlocked = thrum_kthread_unlock();
    };
    for (std::size_t i = 0; i < 4; i++) {
        locked = unlocked = 0;
        ABT_thread thread = start(pool(i), body);
        OK(ABT_thread_free(&thread));
        EXPECT_EQ(locked, EPERM);
        EXPECT_EQ(unlocked, EPERM);
    }
    locked = 0;
    ABT_task task = start_task(pool(0), body);
    OK(ABT_task_free(&task));
    EXPECT_EQ(locked, EPERM);
}

TEST_P(Threads, TaskletsToo) {
    std::atomic<int> runs{0};
    auto body = [&] {
        ABT_unit_type type;
        OK(ABT_self_get_type(&type));
        EXPECT_EQ(type, ABT_UNIT_TYPE_TASK);
        runs++;
    };
    std::vector<ABT_task> tasks;
    for (std::size_t i = 0; i < 500; i++)
        tasks.push_back(start_task(pool(i), body));
    for (ABT_task &task : tasks) {
        OK(ABT_task_free(&task));
        EXPECT_EQ(task, ABT_TASK_NULL);
    }
    EXPECT_EQ(runs, 500);
}

TEST_P(Threads, MakeOthersAndJoinThem) {
    std::atomic<int> leaves{0};
    struct Node {
        Threads *test;
        std::atomic<int> *leaves;
        int depth;
        void operator()() const {
            if (depth == 0) {
                ++*leaves;
                return;
            }
            Node child{test, leaves, depth - 1};
            ABT_thread left = start(test->pool(0), child),
                       right = start(test->pool(static_cast<std::size_t>(depth)), child);
            OK(ABT_thread_free(&left));
            OK(ABT_thread_free(&right));
        }
    } root{this, &leaves, 7};
    ABT_thread thread = start(pool(0), root);
    OK(ABT_thread_free(&thread));
    EXPECT_EQ(leaves, 128);
}

TEST_P(Threads, ManyAtOnce) {
    std::atomic<int> sum{0};
    auto body = [&] { sum++; };
    using Body = decltype(body);
    std::vector<ABT_pool> to;
    std::vector<void (*)(void *)> functions(40, call<Body>);
    std::vector<void *> arguments(40, &body);
    for (std::size_t i = 0; i < 40; i++)
        to.push_back(pool(i));
    std::vector<ABT_thread> threads(40);
    OK(ABT_thread_create_many(40, to.data(), functions.data(), arguments.data(), ABT_THREAD_ATTR_NULL,
                              threads.data()));
    OK(ABT_thread_join_many(40, threads.data()));
    EXPECT_EQ(sum, 40);
    OK(ABT_thread_free_many(40, threads.data()));
}

TEST_P(Threads, OnAStream) {
    for (ABT_xstream stream : streams) {
        ABT_xstream seen = ABT_XSTREAM_NULL;
        auto body = [&] { OK(ABT_xstream_self(&seen)); };
        using Body = decltype(body);
        ABT_thread thread;
        OK(ABT_thread_create_on_xstream(stream, call<Body>, &body, ABT_THREAD_ATTR_NULL, &thread));
        OK(ABT_thread_join(thread));
        EXPECT_EQ(seen, stream);
        ABT_xstream last;
        OK(ABT_thread_get_last_xstream(thread, &last));
        EXPECT_EQ(last, stream);
        OK(ABT_thread_free(&thread));
        ABT_task task;
        OK(ABT_task_create_on_xstream(stream, call<Body>, &body, &task));
        OK(ABT_task_join(task));
        EXPECT_EQ(seen, stream);
        OK(ABT_task_get_xstream(task, &last));
        EXPECT_EQ(last, stream);
        OK(ABT_task_free(&task));
    }
}

TEST_P(Threads, ExternalKernelThreadsMakeAndJoin) {
    std::atomic<int> runs{0};
    std::vector<std::thread> outside;
    for (int i = 0; i < 4; i++)
        outside.emplace_back([this, &runs] {
            auto body = [&] { runs++; };
            for (std::size_t k = 0; k < 50; k++) {
                ABT_thread thread = start(pool(k), body);
                EXPECT_EQ(ABT_thread_free(&thread), ABT_SUCCESS);
            }
            ABT_thread self;
            EXPECT_EQ(ABT_thread_self(&self), ABT_ERR_INV_XSTREAM);
            EXPECT_EQ(ABT_self_yield(), ABT_ERR_INV_XSTREAM);
            EXPECT_EQ(ABT_self_suspend(), ABT_ERR_INV_XSTREAM);
        });
    for (bool over = false; !over;) {
        ABT_thread_yield();
        over = runs == 200;
    }
    for (std::thread &thread : outside)
        thread.join();
}

TEST_P(Threads, AreRevivedWithTheirValues) {
    ABT_key key;
    OK(ABT_key_create(nullptr, &key));
    int value = 0;
    void *seen = nullptr;
    auto first = [&] { OK(ABT_key_set(key, &value)); };
    auto second = [&] { OK(ABT_key_get(key, &seen)); };
    ABT_thread thread = start(pool(0), first);
    ABT_thread_state state;
    OK(ABT_thread_join(thread));
    OK(ABT_thread_get_state(thread, &state));
    EXPECT_EQ(state, ABT_THREAD_STATE_TERMINATED);
    OK(ABT_thread_revive(pool(1), call<decltype(second)>, &second, &thread));
    OK(ABT_thread_free(&thread));
    EXPECT_EQ(seen, &value);
    OK(ABT_key_free(&key));
}

TEST_P(Threads, SuspendAndResume) {
    std::atomic<int> rounds{0};
    auto body = [&] {
        for (int i = 0; i < 100; i++) {
            OK(ABT_self_suspend());
            rounds++;
        }
    };
    ABT_thread thread = start(pool(1), body);
    for (int i = 0; i < 100; i++) {
        wait_for_state(thread, ABT_THREAD_STATE_BLOCKED);
        EXPECT_EQ(rounds, i);
        OK(ABT_thread_resume(thread));
    }
    OK(ABT_thread_join(thread));
    EXPECT_EQ(rounds, 100);
    EXPECT_EQ(ABT_thread_resume(thread), ABT_ERR_THREAD);
    OK(ABT_thread_free(&thread));
}

TEST_P(Threads, MigrateToAnotherStream) {
    if (GetParam() == 1)
        return;
    std::atomic<bool> may_end{false};
    std::atomic<int> rank{-1};
    int told = 0;
    auto body = [&] {
        while (!may_end)
            ABT_thread_yield();
        int here;
        OK(ABT_xstream_self_rank(&here));
        rank = here;
    };
    ABT_thread thread = start(pool(0), body);
    OK(ABT_thread_set_callback(
        thread, [](ABT_thread, void *count) { ++*static_cast<int *>(count); }, &told));
    EXPECT_EQ(ABT_thread_migrate_to_xstream(thread, streams[0]), ABT_ERR_MIGRATION_TARGET);
    OK(ABT_thread_migrate_to_xstream(thread, streams[1]));
    ABT_pool last = pool(0);
    while (last == pool(0)) {
        ABT_thread_yield();
        OK(ABT_thread_get_last_pool(thread, &last));
    }
    may_end = true;
    OK(ABT_thread_free(&thread));
    EXPECT_EQ(rank, 1);
    EXPECT_EQ(told, 1);
}

TEST_P(Threads, CancelledOnesEnd) {
    std::atomic<int> ends{0};
    auto body = [&] {
        for (;;)
            ABT_thread_yield();
        ends++;
    };
    std::vector<ABT_thread> threads;
    for (std::size_t i = 0; i < 20; i++)
        threads.push_back(start(pool(i), body));
    ABT_thread_yield();
    for (ABT_thread thread : threads)
        OK(ABT_thread_cancel(thread));
    for (ABT_thread &thread : threads)
        OK(ABT_thread_free(&thread));
    EXPECT_EQ(ends, 0);
}

TEST_F(ThreadsAlone, RunInTheOrderOfTheirPool) {
    std::string order;
    auto a = [&] {
        order += 'a';
        ABT_thread_yield();
        order += 'A';
    };
    auto b = [&] {
        order += 'b';
        ABT_thread_yield();
        order += 'B';
    };
    auto c = [&] { order += 'c'; };
    ABT_thread threads[] = {start(pool, a), start(pool, b), start_task(pool, c)};
    EXPECT_EQ(order, "");
    ABT_thread_yield();
    EXPECT_EQ(order, "abc");
    for (ABT_thread &thread : threads)
        OK(ABT_thread_free(&thread));
    EXPECT_EQ(order, "abcAB");
}

TEST_F(ThreadsAlone, YieldToTakesOneOutOfTheMiddle) {
    std::string order;
    auto a = [&] { order += 'a'; };
    auto b = [&] { order += 'b'; };
    auto c = [&] { order += 'c'; };
    ABT_thread threads[] = {start(pool, a), start(pool, b), start(pool, c)};
    OK(ABT_thread_yield_to(threads[1]));
    EXPECT_EQ(order, "bac");
    for (ABT_thread &thread : threads)
        OK(ABT_thread_free(&thread));
    ABT_thread self;
    OK(ABT_thread_self(&self));
    EXPECT_EQ(ABT_thread_yield_to(self), ABT_ERR_INV_THREAD);
}

TEST_F(ThreadsAlone, TheOthersThatGiveTheirPlaceAway) {
    std::string order;
    auto other = [&] { order += '1'; };
    ABT_thread popped = start(pool, other);
    OK(ABT_pool_pop_thread(pool, &popped));
    OK(ABT_self_yield_to(popped));
    EXPECT_EQ(order, "1");
    OK(ABT_thread_free(&popped));

    auto created = [&] { order += '2'; };
    OK(ABT_thread_create_to(pool, call<decltype(created)>, &created, ABT_THREAD_ATTR_NULL, &popped));
    EXPECT_EQ(order, "12");
    OK(ABT_thread_join(popped));
    OK(ABT_thread_revive_to(pool, call<decltype(created)>, &created, &popped));
    EXPECT_EQ(order, "122");
    OK(ABT_thread_free(&popped));

    auto suspends = [&] {
        OK(ABT_self_suspend());
        order += '3';
    };
    ABT_thread blocked = start(pool, suspends);
    wait_for_state(blocked, ABT_THREAD_STATE_BLOCKED);
    OK(ABT_self_resume_yield_to(blocked));
    EXPECT_EQ(order, "1223");
    EXPECT_EQ(ABT_self_resume_yield_to(blocked), ABT_ERR_INV_THREAD);
    OK(ABT_thread_free(&blocked));

    ABT_thread first, second;
    auto waits = [&] {
        OK(ABT_self_suspend());
        order += '5';
    };
    auto leaves = [&] {
        order += '4';
        ABT_self_resume_exit_to(second);
        order += '!';
    };
    second = start(pool, waits);
    wait_for_state(second, ABT_THREAD_STATE_BLOCKED);
    first = start(pool, leaves);
    OK(ABT_thread_free(&first));
    OK(ABT_thread_free(&second));
    EXPECT_EQ(order, "122345");

    auto target = [&] { order += '7'; };
    auto exits_to = [&] {
        order += '6';
        ABT_self_exit_to(second);
    };
    second = start(pool, target);
    OK(ABT_pool_pop_thread(pool, &second));
    first = start(pool, exits_to);
    OK(ABT_thread_free(&first));
    OK(ABT_thread_free(&second));
    EXPECT_EQ(order, "12234567");

    auto suspends_to = [&] {
        OK(ABT_self_suspend_to(second));
        order += '9';
    };
    auto eight = [&] { order += '8'; };
    second = start(pool, eight);
    OK(ABT_pool_pop_thread(pool, &second));
    first = start(pool, suspends_to);
    wait_for_state(first, ABT_THREAD_STATE_BLOCKED);
    OK(ABT_thread_resume(first));
    OK(ABT_thread_free(&first));
    OK(ABT_thread_free(&second));
    EXPECT_EQ(order, "1223456789");
}

TEST_F(ThreadsAlone, ExitEndsWithoutUnwinding) {
    struct Told {
        int *count;
        ~Told() { ++*count; }
    };
    int destroyed = 0;
    bool went_on = false;
    auto body = [&] {
        Told told{&destroyed};
        ABT_thread_exit();
        went_on = true;
    };
    ABT_thread thread = start(pool, body);
    OK(ABT_thread_free(&thread));
    EXPECT_EQ(destroyed, 0);
    EXPECT_FALSE(went_on);
    EXPECT_EQ(ABT_thread_exit(), ABT_ERR_INV_THREAD) << "the primary";
}

TEST_F(ThreadsAlone, RunOthersThemselves) {
    std::string order;
    auto inner = [&] {
        order += 'i';
        ABT_thread_yield();
        order += 'I';
    };
    ABT_thread guest = start(pool, inner);
    OK(ABT_pool_pop_thread(pool, &guest));
    OK(ABT_self_schedule(guest, ABT_POOL_NULL));
    EXPECT_EQ(order, "i");
    OK(ABT_thread_free(&guest));
    EXPECT_EQ(order, "iI");

    auto tasklet = [&] { order += 't'; };
    ABT_task task = start_task(pool, tasklet);
    ABT_unit unit;
    OK(ABT_pool_pop(pool, &unit));
    OK(ABT_xstream_run_unit(unit, pool));
    EXPECT_EQ(order, "iIt");
    OK(ABT_task_free(&task));
    EXPECT_EQ(ABT_xstream_run_unit(ABT_UNIT_NULL, pool), ABT_ERR_INV_UNIT);
    EXPECT_EQ(ABT_self_schedule(ABT_THREAD_NULL, pool), ABT_ERR_INV_THREAD);
}

TEST_F(ThreadsAlone, TellOfThemselves) {
    ABT_thread self, other = ABT_THREAD_NULL;
    ABT_bool flag;
    OK(ABT_thread_self(&self));
    OK(ABT_thread_is_primary(self, &flag));
    EXPECT_TRUE(flag);
    OK(ABT_self_is_primary(&flag));
    EXPECT_TRUE(flag);
    OK(ABT_self_on_primary_xstream(&flag));
    EXPECT_TRUE(flag);
    ABT_task task;
    EXPECT_EQ(ABT_task_self(&task), ABT_ERR_INV_TASK);
    int argument = 7;
    auto body = [](void *arg) {
        ABT_thread me;
        OK(ABT_self_get_thread(&me));
        void *seen;
        OK(ABT_thread_get_arg(me, &seen));
        EXPECT_EQ(seen, arg);
        OK(ABT_self_get_arg(&seen));
        EXPECT_EQ(seen, arg);
        void (*function)(void *);
        OK(ABT_self_get_thread_func(&function));
        EXPECT_NE(function, nullptr);
        EXPECT_EQ(state_of(me), ABT_THREAD_STATE_RUNNING);
        ABT_unit_id id, again;
        OK(ABT_self_get_thread_id(&id));
        OK(ABT_thread_get_id(me, &again));
        EXPECT_EQ(id, again);
        OK(ABT_thread_self_id(&again));
        EXPECT_EQ(id, again);
        ABT_bool unnamed;
        OK(ABT_self_is_unnamed(&unnamed));
        EXPECT_FALSE(unnamed);
        ABT_pool last;
        int pool_id, same_id;
        OK(ABT_self_get_last_pool(&last));
        OK(ABT_pool_get_id(last, &pool_id));
        OK(ABT_self_get_last_pool_id(&same_id));
        EXPECT_EQ(pool_id, same_id);
    };
    OK(ABT_thread_create(pool, body, &argument, ABT_THREAD_ATTR_NULL, &other));
    EXPECT_EQ(state_of(other), ABT_THREAD_STATE_READY);
    OK(ABT_thread_equal(self, other, &flag));
    EXPECT_FALSE(flag);
    OK(ABT_thread_equal(ABT_THREAD_NULL, ABT_TASK_NULL, &flag));
    EXPECT_TRUE(flag);
    OK(ABT_thread_join(other));
    ABT_bool migratable;
    OK(ABT_thread_is_migratable(other, &migratable));
    EXPECT_TRUE(migratable);
    OK(ABT_thread_set_migratable(other, ABT_FALSE));
    OK(ABT_thread_is_migratable(other, &migratable));
    EXPECT_FALSE(migratable);
    EXPECT_EQ(ABT_thread_migrate(other), ABT_ERR_INV_THREAD);
    OK(ABT_thread_set_migratable(other, ABT_TRUE));
    EXPECT_EQ(ABT_thread_migrate(other), ABT_ERR_MIGRATION_NA);
    OK(ABT_thread_free(&other));
    EXPECT_EQ(ABT_thread_join(self), ABT_ERR_INV_THREAD);
    EXPECT_EQ(ABT_thread_free(&self), ABT_ERR_INV_THREAD);
}

TEST_F(ThreadsAlone, StacksOfAnySizeAndOfTheProgramsOwn) {
    ABT_thread_attr attr;
    OK(ABT_thread_attr_create(&attr));
    std::size_t size;
    OK(ABT_thread_attr_get_stacksize(attr, &size));
    EXPECT_EQ(size, 16384U);
    for (std::size_t wanted :
         {std::size_t{16384}, std::size_t{65536}, std::size_t{1000000}, std::size_t{8} << 20}) {
        OK(ABT_thread_attr_set_stacksize(attr, wanted));
        struct Use {
            std::size_t bytes;
            void operator()() const {
                ABT_thread self;
                void *low;
                std::size_t told;
                OK(ABT_self_get_thread(&self));
                OK(ABT_thread_get_stack(self, &low, &told));
                EXPECT_EQ(told, bytes);
                auto *here = static_cast<char *>(__builtin_frame_address(0));
                EXPECT_GT(here, static_cast<char *>(low));
                EXPECT_LT(here, static_cast<char *>(low) + told);
                volatile char *memory = static_cast<volatile char *>(__builtin_alloca(bytes * 3 / 4));
                memory[0] = 1;
            }
        } use{wanted};
        ABT_thread thread;
        OK(ABT_thread_create(pool, call<Use>, &use, attr, &thread));
        OK(ABT_thread_free(&thread));
    }
    std::vector<char> memory(65536 + 16);
    void *own = reinterpret_cast<void *>((reinterpret_cast<std::uintptr_t>(memory.data()) + 15) &
                                         ~std::uintptr_t{15});
    OK(ABT_thread_attr_set_stack(attr, own, 65536));
    for (int i = 0; i < 3; i++) { // one after another on the same memory
        bool is_inside = false;
        auto body = [&] {
            auto *here = static_cast<char *>(__builtin_frame_address(0));
            is_inside = here > own && here < static_cast<char *>(own) + 65536;
            ABT_thread_yield();
        };
        ABT_thread thread;
        OK(ABT_thread_create(pool, call<decltype(body)>, &body, attr, &thread));
        OK(ABT_thread_free(&thread));
        EXPECT_TRUE(is_inside);
    }
    EXPECT_EQ(ABT_thread_attr_set_stack(attr, static_cast<char *>(own) + 1, 65536), ABT_ERR_INV_ARG);
    ABT_thread threads[1];
    void (*functions[1])(void *) = {[](void *) {}};
    EXPECT_EQ(ABT_thread_create_many(1, &pool, functions, nullptr, attr, threads), ABT_ERR_INV_THREAD_ATTR);
    OK(ABT_thread_attr_set_callback(attr, nullptr, nullptr));
    OK(ABT_thread_attr_set_migratable(attr, ABT_FALSE));
    OK(ABT_thread_attr_free(&attr));
    EXPECT_EQ(attr, ABT_THREAD_ATTR_NULL);
}

namespace {

// Whether the kernel may write to this byte, or read it, for the caller.
bool is_writable(char *byte) {
    int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    bool result = read(zero, byte, 1) == 1;
    close(zero);
    return result;
}
bool is_readable(const char *byte) {
    int ends[2];
    if (pipe(ends) != 0)
        return false;
    bool result = write(ends[1], byte, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return result;
}

const auto PAGE = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));

// The lowest whole page of the caller's stack, as it is told.
char *lowest_page() {
    ABT_thread self;
    void *low;
    EXPECT_EQ(ABT_self_get_thread(&self), ABT_SUCCESS);
    EXPECT_EQ(ABT_thread_get_stack(self, &low, nullptr), ABT_SUCCESS);
    return reinterpret_cast<char *>((reinterpret_cast<std::uintptr_t>(low) + PAGE - 1) / PAGE * PAGE);
}

struct Guarded {
    enum End { RETURN, EXIT, CANCEL } end;
    char *guard = nullptr;
    void operator()() {
        guard = lowest_page();
        EXPECT_TRUE(is_readable(guard));
        EXPECT_FALSE(is_writable(guard));
        EXPECT_TRUE(is_writable(guard + PAGE));
        if (end == EXIT)
            ABT_self_exit();
        while (end == CANCEL)
            ABT_self_yield();
    }
};

void run_guarded(ABT_pool pool, ABT_thread_attr attr, Guarded &guarded) {
    ABT_thread thread;
    OK(ABT_thread_create(pool, call<Guarded>, &guarded, attr, &thread));
    while (guarded.guard == nullptr)
        ABT_thread_yield();
    if (guarded.end == Guarded::CANCEL) {
        OK(ABT_thread_cancel(thread));
    }
    OK(ABT_thread_free(&thread));
    EXPECT_TRUE(is_writable(guarded.guard)) << "it is cleared when the thread has ended";
}

} // namespace

TEST(Guards, TheLowestPageOfAStackCanOnlyBeRead) {
    for (int mode : {2, 3}) {
        setenv("ABT_STACK_OVERFLOW_CHECK", mode == 3 ? "mprotect_strict" : "mprotect", 1);
        OK(ABT_init(0, nullptr));
        int told = 0;
        OK(ABT_info_query_config(ABT_INFO_QUERY_KIND_ENABLED_STACK_OVERFLOW_CHECK, &told));
        EXPECT_EQ(told, mode);
        ABT_pool pool;
        OK(ABT_self_get_last_pool(&pool));
        ABT_thread_attr attr;
        std::vector<char> own(100000);
        for (auto end : {Guarded::RETURN, Guarded::EXIT, Guarded::CANCEL}) {
            Guarded by_default{end};
            run_guarded(pool, ABT_THREAD_ATTR_NULL, by_default);
            for (std::size_t size :
                 {std::size_t{40000}, std::size_t{65536}, std::size_t{73728}, std::size_t{73728 + 64},
                  std::size_t{73728 - 128}, std::size_t{1} << 20}) {
                Guarded other{end};
                OK(ABT_thread_attr_create(&attr));
                OK(ABT_thread_attr_set_stacksize(attr, size));
                run_guarded(pool, attr, other);
                OK(ABT_thread_attr_free(&attr));
            }
            Guarded on_own{end};
            OK(ABT_thread_attr_create(&attr));
            OK(ABT_thread_attr_set_stack(attr, own.data(), own.size()));
            run_guarded(pool, attr, on_own);
            OK(ABT_thread_attr_free(&attr));
        }
        OK(ABT_finalize());
    }
    unsetenv("ABT_STACK_OVERFLOW_CHECK");
}

// What fits on a default stack fits on one with a guard, as in the original.
TEST(Guards, ADefaultStackIsLargerByThem) {
    for (const char *word : {"none", "mprotect"}) {
        setenv("ABT_STACK_OVERFLOW_CHECK", word, 1);
        OK(ABT_init(0, nullptr));
        const std::size_t more = std::string(word) == "none" ? 0 : 2 * PAGE;
        std::size_t size = 0;
        OK(ABT_info_query_config(ABT_INFO_QUERY_KIND_DEFAULT_THREAD_STACKSIZE, &size));
        EXPECT_EQ(size, 16384 + more);
        OK(ABT_info_query_config(ABT_INFO_QUERY_KIND_DEFAULT_SCHED_STACKSIZE, &size));
        EXPECT_EQ(size, (std::size_t{4} << 20) + more);
        ABT_pool pool;
        OK(ABT_self_get_last_pool(&pool));
        auto body = [&] {
            const char here = 0;
            EXPECT_TRUE(more == 0 || !is_writable(lowest_page()));
            EXPECT_TRUE(is_writable(const_cast<char *>(&here) - 14000)) << "no guard so near";
        };
        ABT_thread thread = start(pool, body);
        OK(ABT_thread_free(&thread));
        OK(ABT_finalize());
    }
    setenv("ABT_STACK_OVERFLOW_CHECK", "mprotect", 1);
    setenv("ABT_THREAD_STACKSIZE", "20480", 1);
    OK(ABT_init(0, nullptr));
    std::size_t size = 0;
    OK(ABT_info_query_config(ABT_INFO_QUERY_KIND_DEFAULT_THREAD_STACKSIZE, &size));
    EXPECT_EQ(size, 20480U) << "what is asked for stays";
    OK(ABT_finalize());
    unsetenv("ABT_STACK_OVERFLOW_CHECK");
    unsetenv("ABT_THREAD_STACKSIZE");
}

namespace {
std::atomic<int> refusals{-1}; // of a guard; -1: none is refused
}

// The library's call comes here: the kernel refuses a guard where a process has too many mappings.
extern "C" int mprotect(void *address, std::size_t size, int protection) noexcept {
    if (protection == PROT_READ && refusals >= 0) {
        refusals++;
        errno = ENOMEM;
        return -1;
    }
    return static_cast<int>(syscall(SYS_mprotect, address, size, protection));
}

TEST(Guards, StrictOnesWaitUntilTheyCanBeSet) {
    for (const char *word : {"mprotect", "mprotect_strict"}) {
        setenv("ABT_STACK_OVERFLOW_CHECK", word, 1);
        OK(ABT_init(0, nullptr));
        ABT_pool pool;
        OK(ABT_self_get_last_pool(&pool));
        bool is_strict = std::string(word) == "mprotect_strict", has_run = false;
        std::vector<ABT_thread> threads;
        auto body = [&] {
            has_run = true;
            EXPECT_EQ(is_writable(lowest_page()), !is_strict);
        };
        refusals = 0;
        for (int i = 0; i < 3; i++)
            threads.push_back(start(pool, body));
        for (int i = 0; i < 10; i++)
            ABT_thread_yield();
        EXPECT_EQ(has_run, !is_strict);
        EXPECT_GE(refusals, is_strict ? 30 : 3);
        refusals = -1;
        for (ABT_thread &thread : threads)
            OK(ABT_thread_free(&thread));
        EXPECT_TRUE(has_run);
        OK(ABT_finalize());
    }
    unsetenv("ABT_STACK_OVERFLOW_CHECK");
}

TEST(Guards, AreNotSetUnlessAskedFor) {
    for (const char *word : {"none", "canary_32", "1", ""}) {
        setenv("ABT_ENV_STACK_OVERFLOW_CHECK", word, 1);
        OK(ABT_init(0, nullptr));
        int told = -1;
        OK(ABT_info_query_config(ABT_INFO_QUERY_KIND_ENABLED_STACK_OVERFLOW_CHECK, &told));
        EXPECT_EQ(told, 0);
        ABT_pool pool;
        OK(ABT_self_get_last_pool(&pool));
        auto body = [] { EXPECT_TRUE(is_writable(lowest_page())); };
        ABT_thread thread = start(pool, body);
        OK(ABT_thread_free(&thread));
        OK(ABT_finalize());
    }
    unsetenv("ABT_ENV_STACK_OVERFLOW_CHECK");
}

// As in the original, for the first keys of a program; documented nowhere.
TEST_F(ThreadsAlone, DestructorsAreCalledInTheOrderInWhichTheValuesWereSet) {
    static std::string order;
    order.clear();
    ABT_key keys[2];
    OK(ABT_key_create([](void *) { order += 'a'; }, &keys[0]));
    OK(ABT_key_create([](void *) { order += 'b'; }, &keys[1]));
    auto body = [&] {
        OK(ABT_key_set(keys[0], &order));
        OK(ABT_key_set(keys[1], &order));
        OK(ABT_key_set(keys[0], keys)); // again: it keeps its place
    };
    ABT_thread thread = start(pool, body);
    OK(ABT_thread_free(&thread));
    EXPECT_EQ(order, "ab");
    OK(ABT_key_free(&keys[0]));
    OK(ABT_key_free(&keys[1]));
}

TEST_F(ThreadsAlone, KeysHaveDestructorsThatRunWhenAThreadIsFreed) {
    static int destroyed;
    destroyed = 0;
    ABT_key keys[200];
    for (ABT_key &key : keys)
        OK(ABT_key_create([](void *) { destroyed++; }, &key));
    auto body = [&] {
        for (ABT_key key : keys)
            OK(ABT_self_set_specific(key, keys));
    };
    ABT_thread thread = start(pool, body);
    OK(ABT_thread_join(thread));
    EXPECT_EQ(destroyed, 0);
    void *value;
    OK(ABT_thread_get_specific(thread, keys[3], &value));
    EXPECT_EQ(value, keys);
    OK(ABT_thread_set_specific(thread, keys[3], nullptr));
    OK(ABT_thread_free(&thread));
    EXPECT_EQ(destroyed, 199);
    for (ABT_key &key : keys)
        OK(ABT_key_free(&key));
    EXPECT_EQ(ABT_key_set(ABT_KEY_NULL, nullptr), ABT_ERR_INV_KEY);
}

TEST_F(ThreadsAlone, TaskletsMayNotWaitForMostObjects) {
    ABT_eventual eventual;
    ABT_barrier barrier;
    ABT_rwlock rwlock;
    ABT_future future;
    ABT_cond cond;
    ABT_mutex mutex;
    OK(ABT_eventual_create(0, &eventual));
    OK(ABT_barrier_create(2, &barrier));
    OK(ABT_rwlock_create(&rwlock));
    OK(ABT_future_create(1, nullptr, &future));
    OK(ABT_cond_create(&cond));
    OK(ABT_mutex_create(&mutex));
    auto body = [&] {
        EXPECT_EQ(ABT_eventual_wait(eventual, nullptr), ABT_ERR_EVENTUAL);
        EXPECT_EQ(ABT_barrier_wait(barrier), ABT_ERR_BARRIER);
        EXPECT_EQ(ABT_rwlock_rdlock(rwlock), ABT_ERR_RWLOCK);
        EXPECT_EQ(ABT_rwlock_wrlock(rwlock), ABT_ERR_RWLOCK);
        EXPECT_EQ(ABT_future_wait(future), ABT_ERR_FUTURE);
        OK(ABT_mutex_lock(mutex));
        EXPECT_EQ(ABT_cond_wait(cond, mutex), ABT_ERR_COND);
        OK(ABT_mutex_unlock(mutex));
        ABT_thread self;
        EXPECT_EQ(ABT_thread_self(&self), ABT_ERR_INV_THREAD);
        EXPECT_EQ(ABT_self_yield(), ABT_ERR_INV_THREAD);
        EXPECT_EQ(ABT_self_suspend(), ABT_ERR_INV_THREAD);
        OK(ABT_thread_yield());
        ABT_task task;
        OK(ABT_task_self(&task));
        ABT_task_state state;
        OK(ABT_task_get_state(task, &state));
        EXPECT_EQ(state, ABT_TASK_STATE_RUNNING);
        uint64_t id, same;
        OK(ABT_task_self_id(&id));
        OK(ABT_task_get_id(task, &same));
        EXPECT_EQ(id, same);
    };
    ABT_task task = start_task(pool, body);
    OK(ABT_task_free(&task));
    OK(ABT_eventual_free(&eventual));
    OK(ABT_barrier_free(&barrier));
    OK(ABT_rwlock_free(&rwlock));
    OK(ABT_future_free(&future));
    OK(ABT_cond_free(&cond));
    OK(ABT_mutex_free(&mutex));
}

TEST_F(ThreadsAlone, ATaskletWaitsForAMutexWithItsStream) {
    ABT_mutex mutex;
    OK(ABT_mutex_create(&mutex));
    ABT_xstream other;
    ABT_pool others;
    OK(ABT_xstream_create(ABT_SCHED_NULL, &other));
    OK(ABT_xstream_get_main_pools(other, 1, &others));
    OK(ABT_mutex_lock(mutex));
    std::atomic<int> stage{0};
    auto body = [&] {
        stage = 1;
        OK(ABT_mutex_lock(mutex));
        stage = 2;
        OK(ABT_mutex_unlock(mutex));
    };
    ABT_task task = start_task(others, body);
    while (stage == 0)
        ABT_thread_yield();
    EXPECT_EQ(stage, 1);
    OK(ABT_mutex_unlock(mutex));
    OK(ABT_task_free(&task));
    EXPECT_EQ(stage, 2);
    OK(ABT_xstream_free(&other));
    OK(ABT_mutex_free(&mutex));
}

TEST_P(Threads, SleepAndBlockWhileOthersRun) {
    std::atomic<int> asleep{0}, blocked{0}, runs{0};
    auto sleeps = [&] {
        asleep++;
        OK(thrum_abt_sleep(2000000));
        asleep--;
    };
    auto blocks = [&] {
        void *result = nullptr;
        OK(thrum_abt_blocking(
            [](void *count) {
                ++*static_cast<std::atomic<int> *>(count);
                return count;
            },
            &blocked, &result));
        EXPECT_EQ(result, &blocked);
    };
    auto runs_meanwhile = [&] {
        if (asleep > 0)
            runs++;
    };
    // No thread joins these: the end of a stream waits for them.
    ABT_xstream stream;
    OK(ABT_xstream_create(ABT_SCHED_NULL, &stream));
    for (int i = 0; i < 20; i++) {
        OK(ABT_thread_create_on_xstream(stream, call<decltype(sleeps)>, &sleeps, ABT_THREAD_ATTR_NULL,
                                        nullptr));
        OK(ABT_thread_create_on_xstream(stream, call<decltype(blocks)>, &blocks, ABT_THREAD_ATTR_NULL,
                                        nullptr));
    }
    OK(ABT_thread_create_on_xstream(stream, call<decltype(runs_meanwhile)>, &runs_meanwhile,
                                    ABT_THREAD_ATTR_NULL, nullptr));
    OK(ABT_xstream_free(&stream));
    EXPECT_EQ(asleep, 0);
    EXPECT_EQ(blocked, 20);
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(thrum_abt_blocking(nullptr, nullptr, nullptr), ABT_ERR_INV_ARG);
}
