// SPDX-License-Identifier: Apache-2.0
//
// Pools of the library's kinds and of both kinds of the program's; unit handles.
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "streams.hpp"

using namespace abt_test;

class Pools : public Streams {};
INSTANTIATE_TEST_SUITE_P(On, Pools, testing::Values(1, 2, 4, 8));
class PoolsAlone : public Alone {};

namespace {

// What a unit handle of the program's leads to. Two of its low bits are clear, as they have to be.
struct alignas(8) Unit {
    ABT_thread thread;
    bool is_in_pool;
};

struct Queue {
    std::mutex mutex;
    std::deque<ABT_unit> units;
    std::atomic<int> made{0}, freed{0};
    std::atomic<uint64_t> contexts{0};
};

Queue *queue_of(ABT_pool pool) {
    void *data = nullptr;
    EXPECT_EQ(ABT_pool_get_data(pool, &data), ABT_SUCCESS);
    return static_cast<Queue *>(data);
}

ABT_unit new_unit(ABT_thread thread) {
    return reinterpret_cast<ABT_unit>(new Unit{thread, false});
}

Unit *unit_of(ABT_unit unit) {
    return reinterpret_cast<Unit *>(unit);
}

void put(ABT_pool pool, ABT_unit unit) {
    Queue *queue = queue_of(pool);
    std::lock_guard<std::mutex> guard(queue->mutex);
    queue->units.push_back(unit);
}

ABT_unit take(ABT_pool pool) {
    Queue *queue = queue_of(pool);
    std::lock_guard<std::mutex> guard(queue->mutex);
    if (queue->units.empty())
        return ABT_UNIT_NULL;
    ABT_unit unit = queue->units.front();
    queue->units.pop_front();
    return unit;
}

std::size_t size_of(ABT_pool pool) {
    Queue *queue = queue_of(pool);
    std::lock_guard<std::mutex> guard(queue->mutex);
    return queue->units.size();
}

ABT_pool_user_def new_definition() {
    ABT_pool_user_def def = ABT_POOL_USER_DEF_NULL;
    EXPECT_EQ(ABT_pool_user_def_create(
                  [](ABT_pool pool, ABT_thread thread) {
                      queue_of(pool)->made++;
                      return new_unit(thread);
                  },
                  [](ABT_pool pool, ABT_unit unit) {
                      queue_of(pool)->freed++;
                      delete unit_of(unit);
                  },
                  [](ABT_pool pool) -> ABT_bool { return size_of(pool) == 0; },
                  [](ABT_pool pool, ABT_pool_context) {
                      ABT_unit unit = take(pool);
                      return unit == ABT_UNIT_NULL ? ABT_THREAD_NULL : unit_of(unit)->thread;
                  },
                  [](ABT_pool pool, ABT_unit unit, ABT_pool_context context) {
                      queue_of(pool)->contexts |= context;
                      put(pool, unit);
                  },
                  &def),
              ABT_SUCCESS);
    EXPECT_EQ(ABT_pool_user_def_set_init(def,
                                         [](ABT_pool pool, ABT_pool_config config) {
                                             EXPECT_EQ(config, ABT_POOL_CONFIG_NULL);
                                             return ABT_pool_set_data(pool, new Queue);
                                         }),
              ABT_SUCCESS);
    EXPECT_EQ(ABT_pool_user_def_set_free(def, [](ABT_pool pool) { delete queue_of(pool); }), ABT_SUCCESS);
    return def;
}

ABT_pool_def old_definition() {
    ABT_pool_def def = {};
    def.access = ABT_POOL_ACCESS_MPMC;
    def.u_get_type = [](ABT_unit) { return ABT_UNIT_TYPE_THREAD; };
    def.u_get_thread = [](ABT_unit unit) { return unit_of(unit)->thread; };
    def.u_get_task = [](ABT_unit unit) { return unit_of(unit)->thread; };
    def.u_is_in_pool = [](ABT_unit unit) -> ABT_bool { return unit_of(unit)->is_in_pool; };
    def.u_create_from_thread = new_unit;
    def.u_create_from_task = new_unit;
    def.u_free = [](ABT_unit *unit) {
        delete unit_of(*unit);
        *unit = ABT_UNIT_NULL;
    };
    def.p_init = [](ABT_pool pool, ABT_pool_config) { return ABT_pool_set_data(pool, new Queue); };
    def.p_get_size = size_of;
    def.p_push = put;
    def.p_pop = take;
    def.p_free = [](ABT_pool pool) {
        delete queue_of(pool);
        return ABT_SUCCESS;
    };
    return def;
}

// Threads and tasklets that yield, wait and end, in a pool that a new scheduler of each stream shares.
void work_in(Pools &test, ABT_pool pool) {
    std::vector<ABT_xstream> more;
    for (int i = 0; i < 2; i++) {
        ABT_xstream stream;
        OK(ABT_xstream_create_basic(i == 0 ? ABT_SCHED_BASIC : ABT_SCHED_RANDWS, 1, &pool,
                                    ABT_SCHED_CONFIG_NULL, &stream));
        more.push_back(stream);
    }
    ABT_mutex mutex;
    OK(ABT_mutex_create(&mutex));
    int counter = 0;
    auto body = [&] {
        for (int i = 0; i < 20; i++) {
            OK(ABT_mutex_lock(mutex));
            counter++;
            ABT_thread_yield();
            OK(ABT_mutex_unlock(mutex));
        }
    };
    std::atomic<int> tasklets{0};
    auto task_body = [&] { tasklets++; };
    std::vector<ABT_thread> threads;
    for (int i = 0; i < 20; i++) {
        threads.push_back(start(pool, body));
        threads.push_back(start_task(pool, task_body));
        threads.push_back(start(test.pool(static_cast<std::size_t>(i)), body));
    }
    for (ABT_thread &thread : threads)
        OK(ABT_thread_free(&thread));
    EXPECT_EQ(counter, 800);
    EXPECT_EQ(tasklets, 20);
    for (ABT_xstream &stream : more)
        OK(ABT_xstream_free(&stream));
    OK(ABT_mutex_free(&mutex));
}

} // namespace

TEST_P(Pools, OfTheProgramsOwn) {
    ABT_pool_user_def def = new_definition();
    ABT_pool pool;
    OK(ABT_pool_create(def, ABT_POOL_CONFIG_NULL, &pool));
    OK(ABT_pool_user_def_free(&def));
    EXPECT_EQ(def, ABT_POOL_USER_DEF_NULL);
    Queue *queue = queue_of(pool);
    work_in(*this, pool);
    EXPECT_EQ(queue->made, 40);
    EXPECT_EQ(queue->freed, 40);
    uint64_t wanted = ABT_POOL_CONTEXT_OP_THREAD_CREATE | ABT_POOL_CONTEXT_OP_THREAD_YIELD |
                      ABT_POOL_CONTEXT_OP_THREAD_RESUME;
    EXPECT_EQ(queue->contexts & wanted, wanted);
    std::size_t size;
    EXPECT_EQ(ABT_pool_get_size(pool, &size), ABT_ERR_POOL) << "it has no function for that";
    ABT_bool empty;
    OK(ABT_pool_is_empty(pool, &empty));
    EXPECT_TRUE(empty);
    OK(ABT_pool_free(&pool));
}

TEST_P(Pools, OfTheOlderForm) {
    ABT_pool_def def = old_definition();
    ABT_pool pool;
    OK(ABT_pool_create(&def, ABT_POOL_CONFIG_NULL, &pool));
    ABT_pool_user_def not_ours = &def;
    EXPECT_EQ(ABT_pool_user_def_set_free(not_ours, nullptr), ABT_ERR_INV_POOL_USER_DEF);
    EXPECT_EQ(ABT_pool_user_def_free(&not_ours), ABT_ERR_INV_POOL_USER_DEF);
    work_in(*this, pool);
    std::size_t size;
    OK(ABT_pool_get_size(pool, &size));
    EXPECT_EQ(size, 0U);
    OK(ABT_pool_free(&pool));
}

TEST_P(Pools, OfEachKindAndAccess) {
    for (ABT_pool_kind kind : {ABT_POOL_FIFO, ABT_POOL_FIFO_WAIT, ABT_POOL_RANDWS})
        for (int access = ABT_POOL_ACCESS_PRIV; access <= ABT_POOL_ACCESS_MPMC; access++) {
            ABT_pool pool;
            ABT_pool_access seen;
            OK(ABT_pool_create_basic(kind, static_cast<ABT_pool_access>(access), ABT_FALSE, &pool));
            OK(ABT_pool_get_access(pool, &seen));
            EXPECT_EQ(seen, access);
            OK(ABT_pool_free(&pool));
            EXPECT_EQ(pool, ABT_POOL_NULL);
        }
    ABT_pool pool;
    OK(ABT_pool_create_basic(ABT_POOL_FIFO_WAIT, ABT_POOL_ACCESS_MPMC, ABT_FALSE, &pool));
    work_in(*this, pool);
    OK(ABT_pool_free(&pool));
    EXPECT_EQ(ABT_pool_create_basic(static_cast<ABT_pool_kind>(9), ABT_POOL_ACCESS_MPMC, ABT_FALSE, &pool),
              ABT_ERR_INV_POOL_KIND);
    EXPECT_EQ(ABT_pool_create_basic(ABT_POOL_FIFO, static_cast<ABT_pool_access>(9), ABT_FALSE, &pool),
              ABT_ERR_INV_POOL_ACCESS);
}

TEST_P(Pools, AWaiterForOneIsWoken) {
    ABT_pool pool;
    OK(ABT_pool_create_basic(ABT_POOL_FIFO_WAIT, ABT_POOL_ACCESS_MPMC, ABT_FALSE, &pool));
    ABT_thread popped = ABT_THREAD_NULL, nothing;
    OK(ABT_pool_pop_wait_thread(pool, &nothing, 0.001));
    EXPECT_EQ(nothing, ABT_THREAD_NULL);
    ABT_unit unit;
    OK(ABT_pool_pop_timedwait(pool, &unit, ABT_get_wtime() + 0.001));
    EXPECT_EQ(unit, ABT_UNIT_NULL);
    std::thread outside([&] { EXPECT_EQ(ABT_pool_pop_wait_thread(pool, &popped, 1000.0), ABT_SUCCESS); });
    auto body = [] {};
    ABT_thread thread = start(pool, body);
    outside.join();
    EXPECT_EQ(popped, thread);
    OK(ABT_pool_push_thread(pools[0], thread));
    OK(ABT_thread_free(&thread));
    OK(ABT_pool_free(&pool));
}

TEST_F(PoolsAlone, CountWhatCanRunAndWhatWaits) {
    ABT_pool other;
    OK(ABT_pool_create_basic(ABT_POOL_FIFO, ABT_POOL_ACCESS_MPMC, ABT_FALSE, &other));
    auto suspends = [] { ABT_self_suspend(); };
    ABT_thread threads[3];
    for (ABT_thread &thread : threads)
        thread = start(pool, suspends);
    std::size_t size, total;
    OK(ABT_pool_get_size(pool, &size));
    OK(ABT_pool_get_total_size(pool, &total));
    EXPECT_EQ(size, 3U);
    EXPECT_EQ(total, 3U);
    ABT_thread_yield();
    OK(ABT_pool_get_size(pool, &size));
    OK(ABT_pool_get_total_size(pool, &total));
    EXPECT_EQ(size, 0U);
    EXPECT_EQ(total, 3U);
    OK(ABT_thread_resume(threads[0]));
    OK(ABT_pool_get_size(pool, &size));
    OK(ABT_pool_get_total_size(pool, &total));
    EXPECT_EQ(size, 1U);
    EXPECT_EQ(total, 3U);
    // Out of one, into the other, and back.
    ABT_thread popped;
    OK(ABT_pool_pop_thread(pool, &popped));
    EXPECT_EQ(popped, threads[0]);
    OK(ABT_pool_push_thread(other, popped));
    ABT_pool last;
    OK(ABT_thread_get_last_pool(popped, &last));
    EXPECT_EQ(last, other);
    ABT_unit unit;
    OK(ABT_thread_get_unit(popped, &unit));
    OK(ABT_pool_remove(other, unit));
    EXPECT_EQ(ABT_pool_remove(other, unit), ABT_ERR_POOL);
    ABT_thread of_unit;
    OK(ABT_unit_get_thread(unit, &of_unit));
    EXPECT_EQ(of_unit, popped);
    OK(ABT_pool_push(pool, unit));
    OK(ABT_thread_resume(threads[1]));
    OK(ABT_thread_resume(threads[2]));
    std::vector<ABT_thread> seen;
    OK(ABT_pool_print_all_threads(pool, &seen, [](void *list, ABT_thread thread) {
        static_cast<std::vector<ABT_thread> *>(list)->push_back(thread);
    }));
    EXPECT_EQ(seen, std::vector<ABT_thread>(threads, threads + 3));
    ABT_thread many[5];
    std::size_t count;
    OK(ABT_pool_pop_threads(pool, many, 5, &count));
    EXPECT_EQ(count, 3U);
    OK(ABT_pool_push_threads(pool, many, count));
    for (ABT_thread &thread : threads)
        OK(ABT_thread_free(&thread));
    OK(ABT_pool_free(&other));
}

TEST_F(PoolsAlone, RandwsGivesItsOwnerTheNewest) {
    ABT_pool own;
    OK(ABT_pool_create_basic(ABT_POOL_RANDWS, ABT_POOL_ACCESS_MPMC, ABT_FALSE, &own));
    auto body = [] {};
    ABT_thread threads[3], popped;
    for (ABT_thread &thread : threads)
        thread = start(own, body);
    OK(ABT_pool_pop_thread_ex(own, &popped, ABT_POOL_CONTEXT_OWNER_PRIMARY));
    EXPECT_EQ(popped, threads[2]);
    OK(ABT_pool_push_thread(pool, popped));
    OK(ABT_pool_pop_thread_ex(own, &popped, ABT_POOL_CONTEXT_OWNER_SECONDARY));
    EXPECT_EQ(popped, threads[0]);
    OK(ABT_pool_push_thread(pool, popped));
    OK(ABT_pool_pop_thread(own, &popped));
    OK(ABT_pool_push_thread(pool, popped));
    for (ABT_thread &thread : threads)
        OK(ABT_thread_free(&thread));
    OK(ABT_pool_free(&own));
}

TEST_F(PoolsAlone, TellOfMistakes) {
    ABT_pool none;
    ABT_bool flag;
    ABT_thread thread;
    EXPECT_EQ(ABT_pool_is_empty(ABT_POOL_NULL, &flag), ABT_ERR_INV_POOL);
    EXPECT_EQ(ABT_pool_create(ABT_POOL_USER_DEF_NULL, ABT_POOL_CONFIG_NULL, &none),
              ABT_ERR_INV_POOL_USER_DEF);
    EXPECT_EQ(none, ABT_POOL_NULL);
    EXPECT_EQ(ABT_pool_free(&none), ABT_ERR_INV_POOL);
    EXPECT_EQ(ABT_pool_push(pool, ABT_UNIT_NULL), ABT_ERR_INV_UNIT);
    EXPECT_EQ(ABT_unit_get_thread(ABT_UNIT_NULL, &thread), ABT_ERR_INV_UNIT);
    EXPECT_EQ(ABT_unit_set_associated_pool(ABT_UNIT_NULL, pool), ABT_ERR_INV_UNIT);
    EXPECT_EQ(ABT_thread_create(
                  ABT_POOL_NULL, [](void *) {}, nullptr, ABT_THREAD_ATTR_NULL, &thread),
              ABT_ERR_INV_POOL);
    OK(ABT_pool_push_thread(pool, ABT_THREAD_NULL));

    ABT_pool_config config;
    OK(ABT_pool_config_create(&config));
    int number = 5;
    double real = 0;
    ABT_pool_config_type type;
    OK(ABT_pool_config_set(config, 1, ABT_POOL_CONFIG_INT, &number));
    number = 0;
    OK(ABT_pool_config_get(config, 1, &type, &number));
    EXPECT_EQ(number, 5);
    EXPECT_EQ(type, ABT_POOL_CONFIG_INT);
    EXPECT_EQ(ABT_pool_config_get(config, 2, &type, &real), ABT_ERR_INV_ARG);
    EXPECT_EQ(ABT_pool_config_set(config, 2, static_cast<ABT_pool_config_type>(7), &real), ABT_ERR_INV_ARG);
    OK(ABT_pool_config_set(config, 1, ABT_POOL_CONFIG_INT, nullptr));
    EXPECT_EQ(ABT_pool_config_get(config, 1, &type, &number), ABT_ERR_INV_ARG);
    OK(ABT_pool_config_free(&config));
    EXPECT_EQ(ABT_pool_config_free(&config), ABT_ERR_INV_POOL_CONFIG);
}

TEST_F(PoolsAlone, AUnitThatCannotBeMadeIsAnError) {
    ABT_pool_def def = old_definition();
    def.u_create_from_thread = [](ABT_thread) -> ABT_unit { return ABT_UNIT_NULL; };
    ABT_pool broken;
    OK(ABT_pool_create(&def, ABT_POOL_CONFIG_NULL, &broken));
    ABT_thread thread;
    EXPECT_EQ(ABT_thread_create(
                  broken, [](void *) {}, nullptr, ABT_THREAD_ATTR_NULL, &thread),
              ABT_ERR_UNIT);
    OK(ABT_thread_create(
        pool, [](void *) {}, nullptr, ABT_THREAD_ATTR_NULL, &thread));
    EXPECT_EQ(ABT_thread_set_associated_pool(thread, broken), ABT_ERR_UNIT);
    OK(ABT_thread_free(&thread));
    OK(ABT_pool_free(&broken));
}

// --- a stream's own pool --------------------------------------------------------------------------------

TEST_F(PoolsAlone, AreListedAsTheirOwnerWouldTakeThem) {
    for (ABT_pool_kind kind : {ABT_POOL_FIFO, ABT_POOL_FIFO_WAIT, ABT_POOL_RANDWS}) {
        ABT_pool own;
        OK(ABT_pool_create_basic(kind, ABT_POOL_ACCESS_MPMC, ABT_FALSE, &own));
        auto body = [] {};
        std::vector<ABT_thread> threads, seen, popped(3);
        for (int i = 0; i < 3; i++)
            threads.push_back(start(own, body));
        OK(ABT_pool_print_all_threads(own, &seen, [](void *list, ABT_thread thread) {
            static_cast<std::vector<ABT_thread> *>(list)->push_back(thread);
        }));
        std::size_t count;
        OK(ABT_pool_pop_threads(own, popped.data(), 3, &count));
        EXPECT_EQ(count, 3U);
        EXPECT_EQ(seen, popped) << "kind " << kind;
        OK(ABT_pool_push_threads(pool, popped.data(), 3));
        for (ABT_thread &thread : threads)
            OK(ABT_thread_free(&thread));
        OK(ABT_pool_free(&own));
    }
}

class OwnPool : public Alone {};

// It is pushed into by its stream, and by others.
TEST_F(OwnPool, KeepsTheOrderOfPushesOfAll) {
    std::string order;
    auto one = [&] { order += "a"; };
    auto other = [&] { order += "b"; };
    std::vector<ABT_thread> threads;
    for (int i = 0; i < 3; i++) {
        threads.push_back(start(pool, one));
        std::thread([&] {
            threads.push_back(start(pool, other));
            threads.push_back(start(pool, other));
        }).join();
    }
    std::size_t size = 0;
    OK(ABT_pool_get_size(pool, &size));
    EXPECT_EQ(size, 9U);
    for (ABT_thread &thread : threads)
        OK(ABT_thread_free(&thread));
    EXPECT_EQ(order, "abbabbabb");
}

TEST_F(OwnPool, AnotherTakesThreadsOutAndPutsThemBack) {
    std::atomic<bool> done{false};
    std::atomic<int> takes{0}, ends{0};
    auto body = [&] {
        while (takes < 100)
            ABT_thread_yield();
        for (int i = 0; i < 100; i++)
            ABT_thread_yield();
        ends++;
    };
    std::vector<ABT_thread> threads;
    for (int i = 0; i < 8; i++)
        threads.push_back(start(pool, body));
    std::thread other([&] {
        for (int i = 0; !done; i++) {
            std::size_t size = 0;
            OK(ABT_pool_get_total_size(pool, &size));
            EXPECT_LE(size, 2 * threads.size() + 2); // one that moves may be counted twice, not lost
            if (i % 16 != 15)
                continue;
            ABT_thread taken = ABT_THREAD_NULL;
            OK(ABT_pool_pop_thread(pool, &taken));
            if (taken == ABT_THREAD_NULL)
                continue;
            takes++;
            OK(ABT_pool_push_thread(pool, taken));
        }
    });
    for (ABT_thread &thread : threads)
        OK(ABT_thread_free(&thread));
    done = true;
    other.join();
    EXPECT_EQ(ends, 8);
}

// What the stream pushes without a lock wakes a thread that waits for its pool.
TEST_F(OwnPool, AnotherThatWaitsForItIsWoken) {
    for (int i = 0; i < 50; i++) {
        std::atomic<bool> taken{false};
        auto body = [] {};
        std::thread other([&] {
            ABT_thread thread = ABT_THREAD_NULL;
            OK(ABT_pool_pop_wait_thread(pool, &thread, 60));
            EXPECT_NE(thread, ABT_THREAD_NULL);
            taken = true;
            OK(ABT_pool_push_thread(pool, thread));
        });
        if (i % 2 == 0)
            std::this_thread::yield();
        ABT_thread thread = start(pool, body);
        while (!taken)
            std::this_thread::yield();
        OK(ABT_thread_free(&thread));
        other.join();
    }
}

// Its first owner's stream ends; others use it then.
TEST_F(OwnPool, OutlivesItsStream) {
    ABT_pool kept;
    OK(ABT_pool_create_basic(ABT_POOL_FIFO, ABT_POOL_ACCESS_MPMC, ABT_FALSE, &kept));
    int runs = 0;
    auto body = [&] {
        ABT_thread_yield();
        runs++;
    };
    for (int i = 0; i < 3; i++) {
        ABT_xstream other;
        OK(ABT_xstream_create_basic(ABT_SCHED_BASIC, 1, &kept, ABT_SCHED_CONFIG_NULL, &other));
        ABT_thread one = start(kept, body), two = start(kept, body);
        OK(ABT_thread_free(&one));
        OK(ABT_thread_free(&two));
        OK(ABT_xstream_free(&other));
        std::size_t size = 1;
        OK(ABT_pool_get_total_size(kept, &size));
        EXPECT_EQ(size, 0U);
    }
    EXPECT_EQ(runs, 6);
    OK(ABT_pool_free(&kept));
}
