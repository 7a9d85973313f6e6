// SPDX-License-Identifier: Apache-2.0
//
// What thrum_dump reports: each state, each thing that a thread can wait for, and the holders; and that it may be
// called at any time.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thrum/pool.h>
#include <thrum/worker.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "checked.h"
#include "preempt.hpp"

namespace {

std::string dump(std::size_t most = 0, int expected = 0) {
    const int file = memfd_create("dump", 0);
    EXPECT_EQ(thrum_dump(file, most), expected);
    std::string text(static_cast<std::size_t>(lseek(file, 0, SEEK_END)), '\0');
    EXPECT_EQ(pread(file, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    close(file);
    return text;
}

std::string address_of(const void *object) {
    std::ostringstream text;
    text << object;
    return text.str();
}

// The line that begins so, or "".
std::string line_of(const std::string &text, const std::string &beginning) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        if (line.compare(0, beginning.size(), beginning) == 0)
            return line;
    return "";
}

std::string line_of(const std::string &text, thrum_t thread) {
    return line_of(text, address_of(thread) + " ");
}

bool has(const std::string &text, const std::string &piece) {
    return text.find(piece) != std::string::npos;
}

bool is_listed_as(thrum_t thread, const std::string &state) {
    return eventually([&] { return has(line_of(dump(), thread), state); });
}

class Dump : public Ult {
  protected:
    void SetUp() override {
        Ult::SetUp();
        if (!can_dump())
            GTEST_SKIP() << "no process_vm_readv here";
    }
};

std::size_t count_of(const std::string &text, const std::string &piece) {
    std::size_t count = 0;
    for (std::size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1))
        count++;
    return count;
}

void *read_a_byte(void *file) {
    char byte;
    while (read(*static_cast<int *>(file), &byte, 1) < 0) {
    }
    return nullptr;
}

// Each kind of waiting: a thread that does, and the line that says so.
TEST_P(Dump, SaysWhatThreadsWaitFor) {
    thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER, outer = THRUM_MUTEX_INITIALIZER;
    thrum_cond_t cond = THRUM_COND_INITIALIZER;
    thrum_rwlock_t read, write;
    thrum_sem_t sem;
    thrum_barrier_t barrier;
    thrum_event_t event = THRUM_EVENT_INITIALIZER;
    thrum_latch_t latch;
    thrum_eventual_t eventual;
    thrum_future_t future;
    void *values[1];
    thrum_channel_t full, empty;
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);
    thrum_future_init(&future, values, 1);
    thrum_rwlock_init(&read);
    thrum_rwlock_init(&write);
    thrum_sem_init(&sem, 0);
    thrum_barrier_init(&barrier, 2);
    thrum_latch_init(&latch, 1);
    thrum_eventual_init(&eventual);
    thrum_channel_init(&full, 0, 0, nullptr);
    thrum_channel_init(&empty, 0, 0, nullptr);
    thrum_mutex_lock(&mutex);
    thrum_rwlock_write_lock(&read);
    thrum_rwlock_read_lock(&write);
    std::atomic<bool> over{false};
    const auto sleep_on = [&over] {
        while (!over)
            thrum_sleep(10 * THRUM_MS);
    };
    Light sleeper(sleep_on);
    const std::vector<std::pair<Light::Work, std::string>> waits = {
        {[&] { thrum_mutex_lock(&mutex), thrum_mutex_unlock(&mutex); }, "mutex " + address_of(&mutex)},
        {[&] { thrum_mutex_lock(&outer), thrum_cond_wait(&cond, &outer), thrum_mutex_unlock(&outer); },
         "condition " + address_of(&cond)},
        {[&] { thrum_rwlock_read_lock(&read), thrum_rwlock_unlock(&read); },
         "rwlock (read) " + address_of(&read)},
        {[&] { thrum_rwlock_write_lock(&write), thrum_rwlock_unlock(&write); },
         "rwlock (write) " + address_of(&write)},
        {[&] { thrum_sem_wait(&sem); }, "semaphore " + address_of(&sem)},
        {[&] { thrum_barrier_wait(&barrier); }, "barrier " + address_of(&barrier)},
        {[&] { thrum_event_wait(&event); }, "event " + address_of(&event)},
        {[&] { thrum_latch_wait(&latch); }, "latch " + address_of(&latch)},
        {[&] { thrum_eventual_get(&eventual); }, "eventual " + address_of(&eventual)},
        {[&] { thrum_channel_send(&full, nullptr); }, "channel (send) " + address_of(&full)},
        {[&] { thrum_channel_receive(&empty, nullptr); }, "channel (receive) " + address_of(&empty)},
        {[&] { thrum_suspend(); }, "thrum_resume"},
        {sleep_on, "a time"},
        {[&] { thrum_event_wait_until(&event, thrum_now() + 60 * THRUM_S); },
         "event " + address_of(&event) + " (with a deadline)"},
        {[&] {
             thrum_wait_t wait = {THRUM_WAIT_EVENT, 0, &event, nullptr, {}};
             thrum_wait_any(&wait, 1, UINT64_MAX, nullptr);
         },
         "any of several"},
        {[&] { sleeper.join(); }, "the end of " + address_of(sleeper.handle())},
        {[&] { thrum_future_wait(&future); }, "future " + address_of(&future)},
        {[&] { thrum_blocking(read_a_byte, &pipe_ends[0], nullptr); }, "a blocking call"},
    };
    std::vector<Light> lights;
    lights.reserve(waits.size());
    for (const auto &wait : waits)
        lights.emplace_back(wait.first);
    for (std::size_t i = 0; i < waits.size(); i++)
        EXPECT_TRUE(is_listed_as(lights[i].handle(), waits[i].second)) << waits[i].second << "\n" << dump();
    const std::string text = dump();
    EXPECT_TRUE(has(line_of(text, lights[0].handle()), "held by " + address_of(thrum_self()) + " (main)"))
        << text;
    EXPECT_TRUE(has(line_of(text, lights[2].handle()), "held by " + address_of(thrum_self()) + " (main)"))
        << text;
    EXPECT_EQ(count_of(text, " (with a deadline)"), 1U) << text;
    EXPECT_FALSE(has(text, "DEADLOCK")) << text;
    EXPECT_FALSE(has(text, "HINT")) << text;

    over = true;
    thrum_future_set(&future, nullptr);
    EXPECT_EQ(::write(pipe_ends[1], "", 1), 1);
    thrum_mutex_unlock(&mutex);
    thrum_cond_signal(&cond);
    thrum_rwlock_unlock(&read);
    thrum_rwlock_unlock(&write);
    thrum_sem_post(&sem);
    thrum_barrier_wait(&barrier);
    thrum_event_set(&event);
    thrum_latch_count_down(&latch, 1);
    thrum_eventual_set(&eventual, nullptr);
    thrum_channel_receive(&full, nullptr);
    thrum_channel_send(&empty, nullptr);
    thrum_resume(lights[11].handle());
    for (Light &light : lights)
        EXPECT_TRUE(is_listed_as(light.handle(), "ended")) << dump();
    lights.clear();
    sleeper.join();
    thrum_channel_destroy(&full);
    thrum_channel_destroy(&empty);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

// Of two callers one runs the function, whichever, and the other waits for that.
TEST_P(Dump, NamesTheWaiterForTheFirstCaller) {
    static thrum_once_t once;
    static thrum_event_t event;
    once = THRUM_ONCE_INITIALIZER;
    event = THRUM_EVENT_INITIALIZER;
    const auto call = [] {
        thrum_once_call(
            &once, [](void *) { thrum_event_wait(&event); }, nullptr);
    };
    Light one(call), two(call);
    std::string text;
    EXPECT_TRUE(eventually([&] {
        text = dump();
        return has(text, " once " + address_of(&once)) && has(text, " event " + address_of(&event));
    })) << text;
    thrum_event_set(&event);
}

// Its thread, that is no longer bound to it, does not leave it yet.
TEST_P(Dump, NamesTheWaiterForAWorkersEnd) {
    unsigned number = 0;
    ASSERT_EQ(thrum_worker_add(&number), 0);
    thrum_attr_t bound = attr_queued();
    thrum_attr_set_worker(&bound, number);
    EXPECT_EQ(thrum_attr_set_preempt(&bound, THRUM_PREEMPT_NONE), 0);
    std::atomic<bool> begun{false}, over{false};
    Light busy(
        [&] {
            thrum_migrate(thrum_self(), THRUM_ANY_WORKER);
            begun = true;
            while (!over) {
            }
        },
        &bound);
    EXPECT_TRUE(eventually([&] { return begun.load(); }));
    Light stopper([&] { EXPECT_EQ(thrum_worker_stop(number), 0); });
    EXPECT_TRUE(is_listed_as(stopper.handle(), "the end of a worker")) << dump();
    EXPECT_FALSE(has(dump(), "HINT"));
    over = true;
}

// A condition's waiter that was signalled while another has the mutex waits for that.
TEST_P(Dump, ASignalledWaiterWaitsForTheMutex) {
    thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
    thrum_cond_t cond = THRUM_COND_INITIALIZER;
    std::vector<Light> lights;
    for (int i = 0; i < 3; i++)
        lights.emplace_back([&] {
            thrum_mutex_lock(&mutex);
            thrum_cond_wait(&cond, &mutex);
            thrum_mutex_unlock(&mutex);
        });
    for (const Light &light : lights)
        EXPECT_TRUE(is_listed_as(light.handle(), "condition"));
    thrum_mutex_lock(&mutex);
    thrum_cond_signal(&cond);
    EXPECT_EQ(count_of(dump(), "mutex " + address_of(&mutex)), 1U) << dump();
    EXPECT_EQ(count_of(dump(), "condition " + address_of(&cond)), 2U) << dump();
    thrum_cond_broadcast(&cond);
    EXPECT_EQ(count_of(dump(), "mutex " + address_of(&mutex)), 3U) << dump();
    thrum_mutex_unlock(&mutex);
}

TEST_P(Dump, SaysWhatThreadsAre) {
    thrum_event_t event = THRUM_EVENT_INITIALIZER;
    thrum_pool_t pool = nullptr;
    ASSERT_EQ(thrum_pool_create(&pool, THRUM_POOL_FIFO), 0);
    thrum_attr_t in_pool = attr_queued(), bound = attr_queued();
    thrum_attr_set_pool(&in_pool, pool);
    thrum_attr_set_priority(&in_pool, 7);
    thrum_attr_set_worker(&bound, workers() - 1);
    thrum_attr_set_stack_size(&bound, 256 * 1024);
    Light named([&] { thrum_event_wait(&event); }), unserved([] {}, &in_pool),
        fixed([&] { thrum_event_wait(&event); }, &bound);
    thrum_set_name(named.handle(), "the named one");
    const uint64_t id = thrum_id(named.handle());
    ASSERT_TRUE(is_listed_as(named.handle(), "event"));
    ASSERT_TRUE(is_listed_as(fixed.handle(), "event"));
    const std::string text = dump();
    EXPECT_TRUE(has(line_of(text, named.handle()), " " + std::to_string(id) + " ")) << text;
    EXPECT_TRUE(has(line_of(text, named.handle()), "the named one")) << text;
    EXPECT_TRUE(has(line_of(text, named.handle()), " of 65536 ")) << text;
    EXPECT_FALSE(has(line_of(text, named.handle()), "? of ")) << text;
    EXPECT_TRUE(has(line_of(text, fixed.handle()), "worker " + std::to_string(workers() - 1) + " ")) << text;
    EXPECT_TRUE(has(line_of(text, fixed.handle()), " of 262144 ")) << text;
    EXPECT_TRUE(has(line_of(text, unserved.handle()), "new ")) << text;
    EXPECT_TRUE(has(line_of(text, unserved.handle()), address_of(pool) + " ")) << text;
    EXPECT_TRUE(has(line_of(text, unserved.handle()), " 7 ")) << text;
    EXPECT_TRUE(has(line_of(text, thrum_self()), "(main)")) << text;
    EXPECT_TRUE(has(line_of(text, thrum_self()), "runs")) << text;
    thrum_event_set(&event);
    thrum_sched_t sched = nullptr;
    thrum_t serving = nullptr;
    ASSERT_EQ(thrum_sched_create(&sched, THRUM_SCHED_FIRST, &pool, 1), 0);
    ASSERT_EQ(thrum_sched_spawn(&serving, nullptr, sched), 0);
    unserved.join();
    thrum_sched_stop(sched);
    thrum_join(serving, nullptr);
    EXPECT_EQ(thrum_sched_destroy(sched), 0);
    EXPECT_EQ(thrum_pool_destroy(pool), 0);
}

// The numbers of the first line are those of the table.
TEST_P(Dump, CountsThreads) {
    thrum_event_t event = THRUM_EVENT_INITIALIZER;
    {
        std::vector<Light> lights;
        for (int i = 0; i < 1000; i++)
            lights.emplace_back([&] { thrum_event_wait(&event); });
        EXPECT_TRUE(eventually([] {
            return has(dump(1), "1001 threads: 1 running, 0 new, 0 ready, 1000 waiting, 0 ended");
        })) << dump(1);
        EXPECT_TRUE(has(dump(10), "\n... and 991 more\n"));
        thrum_event_set(&event);
        EXPECT_TRUE(eventually([] {
            return has(dump(1), "1001 threads: 1 running, 0 new, 0 ready, 0 waiting, 1000 ended");
        })) << dump(1);
    }
    EXPECT_TRUE(eventually([] { return has(dump(), " 1 thread: 1 running"); }))
        << dump(); // trimming is a tasklet
}

// --- which thread blocks which ------------------------------------------------------------------------------

// Two that have a mutex each and want the other's; they begin anew now and then, until it is over.
class Embrace {
  public:
    explicit Embrace(unsigned kind = 0) {
        thrum_mutex_init(&first, kind);
        thrum_mutex_init(&second, kind);
    }
    void take(thrum_mutex_t *own, thrum_mutex_t *other) {
        thrum_mutex_lock(own);
        holding_++;
        EXPECT_TRUE(eventually([this] { return holding_ == 2; }));
        int error = ETIMEDOUT;
        while (!over && error != 0)
            error = thrum_mutex_lock_until(other, thrum_now() + 200 * THRUM_MS);
        if (error == 0)
            thrum_mutex_unlock(other);
        thrum_mutex_unlock(own);
    }

    thrum_mutex_t first, second;
    std::atomic<bool> over{false};

  private:
    std::atomic<int> holding_{0};
};

const char *const kTwoWait = "DEADLOCK: 2 threads wait for each other (with a deadline)\n";

TEST_P(Dump, MutexesInACycle) {
    Embrace embrace;
    Light one([&] { embrace.take(&embrace.first, &embrace.second); }),
        two([&] { embrace.take(&embrace.second, &embrace.first); });
    thrum_set_name(one.handle(), "one");
    thrum_set_name(two.handle(), "two");
    const std::string line_of_one = "  " + address_of(one.handle()) + " one waits for mutex " +
                                    address_of(&embrace.second) + ", held by " + address_of(two.handle()) +
                                    " two (with a deadline)\n",
                      line_of_two = "  " + address_of(two.handle()) + " two waits for mutex " +
                                    address_of(&embrace.first) + ", held by " + address_of(one.handle()) +
                                    " one (with a deadline)\n";
    std::string text;
    EXPECT_TRUE(eventually([&] {
        text = dump();
        return has(text, kTwoWait) && has(text, line_of_one) && has(text, line_of_two);
    })) << text;
    EXPECT_EQ(text.find("DEADLOCK"), text.rfind("DEADLOCK")) << "it is told once";
    embrace.over = true;
}

// The kernel thread is not listed, wherever it lies: the other tells of the cycle.
TEST_P(Dump, AKernelThreadInACycle) {
    Embrace embrace(THRUM_MUTEX_RECURSIVE);
    Light light([&] { embrace.take(&embrace.first, &embrace.second); });
    External external([&] { embrace.take(&embrace.second, &embrace.first); });
    std::string text;
    EXPECT_TRUE(eventually([&] {
        text = dump();
        return has(text, kTwoWait) &&
               has(text, "(external) waits for mutex " + address_of(&embrace.first) + ", held by " +
                             address_of(light.handle())) &&
               has(text, address_of(light.handle()) + " waits for mutex " + address_of(&embrace.second) +
                             ", held by 0x");
    })) << text;
    EXPECT_EQ(text.find("DEADLOCK"), text.rfind("DEADLOCK")) << "it is told once";
    embrace.over = true;
}

// Joiners of each other, in a ring, with a lock for writing in it. None ends before all have given up.
TEST_P(Dump, JoinersInACycle) {
    constexpr unsigned kRing = 5;
    thrum_rwlock_t lock;
    thrum_rwlock_init(&lock);
    std::vector<thrum_t> handles(kRing);
    std::atomic<unsigned> ready{0}, left{0};
    std::atomic<bool> over{false};
    std::vector<Light> lights;
    lights.reserve(kRing);
    for (unsigned i = 0; i < kRing; i++)
        lights.emplace_back([&, i] {
            if (i == 0)
                thrum_rwlock_write_lock(&lock);
            ready++;
            while (ready <= kRing)
                thrum_yield();
            while (!over) {
                const uint64_t deadline = thrum_now() + 200 * THRUM_MS;
                if (i < kRing - 1)
                    EXPECT_EQ(thrum_join_until(handles[i + 1], nullptr, deadline), ETIMEDOUT);
                else
                    EXPECT_EQ(thrum_rwlock_read_lock_until(&lock, deadline), ETIMEDOUT);
            }
            left++;
            while (left < kRing)
                thrum_yield();
            if (i == 0)
                thrum_rwlock_unlock(&lock);
        });
    for (unsigned i = 0; i < kRing; i++)
        handles[i] = lights[i].handle();
    ready++;
    std::string text;
    EXPECT_TRUE(eventually([&] { // they begin anew now and then
        text = dump();
        return has(text, "DEADLOCK: 5 threads wait for each other (with a deadline)\n") &&
               has(text,
                   " waits for rwlock (read) " + address_of(&lock) + ", held by " + address_of(handles[0])) &&
               has(text, " waits for the end of " + address_of(handles[1]));
    })) << text;
    over = true;
    EXPECT_TRUE(eventually([&] { return left == kRing; }));
}

// A chain of joiners that ends at a mutex of one that runs is in no cycle.
TEST_P(Dump, NoCycle) {
    constexpr unsigned kChain = 10;
    static thrum_mutex_t mutex;
    thrum_mutex_init(&mutex, 0);
    thrum_mutex_lock(&mutex);
    std::vector<thrum_t> chain(kChain);
    const auto at_the_mutex = [](void *unused) -> void * {
        thrum_mutex_lock(&mutex);
        thrum_mutex_unlock(&mutex);
        return unused;
    };
    const auto join = [](void *before) -> void * {
        thrum_join(static_cast<thrum_t>(before), nullptr);
        return nullptr;
    };
    ASSERT_EQ(thrum_spawn(chain.data(), nullptr, at_the_mutex, nullptr), 0);
    for (unsigned i = 1; i < kChain; i++)
        ASSERT_EQ(thrum_spawn(&chain[i], nullptr, join, chain[i - 1]), 0);
    EXPECT_TRUE(is_listed_as(chain.front(), "mutex"));
    EXPECT_TRUE(is_listed_as(chain.back(), "the end of"));
    EXPECT_FALSE(has(dump(), "DEADLOCK")) << dump();
    thrum_mutex_unlock(&mutex);
    thrum_join(chain.back(), nullptr);
}

ULT_OVER_WORKERS(Dump);

// --- whenever it is asked -------------------------------------------------------------------------------------

class DumpPlain : public UltPlain {
  protected:
    void SetUp() override {
        UltPlain::SetUp();
        if (!can_dump())
            GTEST_SKIP() << "no process_vm_readv here";
    }
};

TEST_F(DumpPlain, WithoutARuntime) {
    EXPECT_EQ(dump(0, ESRCH), "");
    ASSERT_EQ(thrum_init(nullptr), 0);
    EXPECT_TRUE(has(dump(), " 1 thread: 1 running"));
    ASSERT_EQ(thrum_fini(), 0);
    EXPECT_EQ(dump(0, ESRCH), "");
}

TEST_F(DumpPlain, WhereItCannotBeWritten) {
    ASSERT_EQ(thrum_init(nullptr), 0);
    errno = 0;
    EXPECT_EQ(thrum_dump(-1, 0), EBADF);
    EXPECT_EQ(errno, 0) << "errno is not touched";
    ASSERT_EQ(thrum_fini(), 0);
}

// All threads wait, and only an external kernel thread could change that.
TEST_F(DumpPlain, EverythingWaits) {
    std::string text;
    ASSERT_EQ(thrum_init(nullptr), 0);
    thrum_event_t event = THRUM_EVENT_INITIALIZER;
    External external([&] {
        EXPECT_TRUE(eventually([&] { return has(text = dump(), "\nHINT: all threads wait"); })) << text;
        thrum_event_set(&event);
    });
    Light light([&] { thrum_event_wait(&event); });
    light.join();
    external.join();
    ASSERT_EQ(thrum_fini(), 0);
}

// But one of them will run by itself: no hint, until it has ended and only others are left.
class DumpUnhinted : public DumpPlain {
  protected:
    static void expect_no_hint(const Light::Work &wait, const std::function<void(thrum_t)> &end) {
        std::string text;
        ASSERT_EQ(thrum_init(nullptr), 0);
        thrum_event_t event = THRUM_EVENT_INITIALIZER;
        thrum_attr_t attr;
        thrum_attr_init(&attr);
        thrum_attr_set_flags(&attr, THRUM_SPAWN_QUEUED | THRUM_SPAWN_CANCELLABLE);
        Light light(wait, &attr);
        External external([&] {
            EXPECT_TRUE(eventually([&] {
                return has(text = dump(), " 2 threads: 0 running, 0 new, 0 ready, 2 waiting, 0 ended");
            })) << text;
            EXPECT_FALSE(has(text, "HINT")) << text;
            end(light.handle());
            EXPECT_TRUE(eventually([&] { return has(text = dump(), "HINT"); })) << text;
            thrum_event_set(&event);
        });
        thrum_event_wait(&event);
        external.join();
        light.join();
        ASSERT_EQ(thrum_fini(), 0);
    }
};

TEST_F(DumpUnhinted, ByASleeper) {
    expect_no_hint([] { thrum_sleep(600 * THRUM_S); }, [](thrum_t sleeper) { thrum_cancel(sleeper); });
}

TEST_F(DumpUnhinted, ByADeadline) {
    static thrum_event_t event;
    event = THRUM_EVENT_INITIALIZER;
    expect_no_hint([] { thrum_event_wait_until(&event, thrum_now() + 600 * THRUM_S); },
                   [](thrum_t) { thrum_event_set(&event); });
}

TEST_F(DumpUnhinted, ByABlockingCall) {
    static int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    expect_no_hint([] { thrum_blocking(read_a_byte, &ends[0], nullptr); },
                   [](thrum_t) { EXPECT_EQ(write(ends[1], "", 1), 1); });
    close(ends[0]);
    close(ends[1]);
}

// A thread that asks about itself gets the use of its own stack.
TEST_F(DumpPlain, TheCallersOwnStack) {
    ASSERT_EQ(thrum_init(nullptr), 0);
    in_ult([] {
        const auto used_by_caller = [] {
            std::istringstream words(line_of(dump(), thrum_self()));
            std::vector<std::string> list{std::istream_iterator<std::string>(words), {}};
            const auto of = std::find(list.begin(), list.end(), "of");
            return of != list.begin() && of != list.end() ? std::atol(of[-1].c_str()) : 0;
        };
        const long before = used_by_caller();
        EXPECT_GT(before, 0);
        const auto deeper = [&]() __attribute__((noinline)) {
            char room[8192] = "";
            __asm__ volatile("" : : "r"(room) : "memory"); // all of it is there
            const long used = used_by_caller();
            __asm__ volatile("" : : "r"(room) : "memory");
            return used;
        };
        EXPECT_GT(deeper(), before + 4096);
    });
    ASSERT_EQ(thrum_fini(), 0);
}

TEST_F(DumpPlain, AMutexTakenTwice) {
    const int status = in_child([] {
        thrum_init(nullptr);
        static thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
        thrum_t thread;
        thrum_attr_t attr = attr_queued();
        thrum_spawn(
            &thread, &attr,
            [](void *) -> void * {
                thrum_mutex_lock(&mutex);
                thrum_mutex_lock_until(&mutex, thrum_now() + 10 * THRUM_S);
                return nullptr;
            },
            nullptr);
        return eventually(
                   [] { return has(dump(), "DEADLOCK: 1 thread waits for itself (with a deadline)\n"); })
                   ? 0
                   : 1;
    });
    if (library_is_checked())
        EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << "misuse is watched";
    else
        EXPECT_EQ(status, 0);
}

// Each has a mutex and wants the next one's, for ever.
TEST_F(DumpPlain, AWideCycle) {
    constexpr unsigned kRing = 20;
    const int status = in_child([] {
        thrum_init(nullptr);
        static std::array<thrum_mutex_t, kRing> mutexes;
        static std::atomic<unsigned> holding{0};
        thrum_attr_t attr = attr_queued();
        for (thrum_mutex_t &mutex : mutexes) {
            thrum_t thread;
            thrum_mutex_init(&mutex, 0);
            thrum_spawn(
                &thread, &attr,
                [](void *own) -> void * {
                    auto *mine = static_cast<thrum_mutex_t *>(own);
                    thrum_mutex_lock(mine);
                    holding++;
                    while (holding < kRing)
                        thrum_yield();
                    thrum_mutex_lock(mine == &mutexes.back() ? &mutexes.front() : mine + 1);
                    return nullptr;
                },
                &mutex);
        }
        return eventually([] {
            const std::string text = dump();
            return has(text, "DEADLOCK: 20 threads wait for each other\n") &&
                   has(text, "\n  ... and 4 more\n");
        })
                   ? 0
                   : 1;
    });
    EXPECT_EQ(status, 0);
}

std::atomic<int> dumped;
int null_file;
void on_signal(int) {
    if (thrum_dump(null_file, 0) == 0)
        dumped++;
}

// While threads are made, wait, move and end, and stacks and descriptors come and go.
TEST_F(DumpPlain, InASignalHandler) {
    struct sigaction action = {}, before;
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    sigaction(SIGURG, &action, &before);
    thrum_config config = {};
    config.workers = 2;
    ASSERT_EQ(thrum_init(&config), 0);
    std::atomic<bool> over{false};
    dumped = 0;
    null_file = open("/dev/null", O_WRONLY | O_CLOEXEC);
    Light busy([&] {
        while (!over) {
            std::vector<Light> lights;
            for (int i = 0; i < 100; i++)
                lights.emplace_back([] { thrum_yield(); }, nullptr);
        }
    });
    for (int i = 0; i < 2000 / kStressDivisor; i++) {
        kill(getpid(), SIGURG);
        thrum_sleep(100 * THRUM_US);
    }
    over = true;
    busy.join();
    EXPECT_GT(dumped, 0);
    close(null_file);
    ASSERT_EQ(thrum_fini(), 0);
    sigaction(SIGURG, &before, nullptr);
}

// --- preemption and blocking calls --------------------------------------------------------------------------

// The number before this text; -1: it is not there.
long count_before(const std::string &text, const std::string &what) {
    const std::size_t end = text.find(what);
    if (end == std::string::npos)
        return -1;
    const std::size_t begin = text.find_last_not_of("0123456789", end - 1) + 1;
    return begin < end ? std::stol(text.substr(begin, end - begin)) : -1;
}

class DumpReserves : public Interrupted {
  protected:
    void SetUp() override {
        Interrupted::SetUp();
        if (!can_dump())
            GTEST_SKIP() << "no process_vm_readv here";
    }
    void TearDown() override { unsetenv("THRUM_BLOCKS"); }
    static std::string line() { return line_of(dump(), "preemption: "); }
};

TEST_F(DumpReserves, SaysThatNothingIsPreempted) {
    const Preempting preempting(1, THRUM_PREEMPT_NONE, 0);
    EXPECT_EQ(line(), "preemption: none");
}

void expect_own_blocks(bool by_donors) {
    const Preempting preempting(2);
    thrum_event_t end = THRUM_EVENT_INITIALIZER;
    const auto line = [] { return line_of(dump(), "preemption: "); };
    EXPECT_EQ(line().find("preemption: lend, signal " + std::to_string(SIGRTMIN + 4) + "; "), 0U) << line();
    EXPECT_EQ(count_before(line(), " own thread block, "), 1) << "main's";
    const long donors_before = count_before(line(), " donor");
    {
        std::vector<Thread> threads;
        for (int i = 0; i < 3; i++)
            threads.emplace_back([&] { thrum_event_wait(&end); }, THRUM_PREEMPT_OWN_TLS);
        EXPECT_TRUE(eventually([&] { return count_before(line(), " own thread blocks, ") == 4; })) << line();
        const long donors = count_before(line(), " donor");
        EXPECT_EQ(donors >= donors_before + 3, by_donors) << line();
        EXPECT_EQ(donors == 0, !by_donors) << line();
        thrum_event_set(&end);
    }
    EXPECT_EQ(count_before(line(), " own thread block, "), 1) << line();
    EXPECT_GE(count_before(line(), " spare; "), by_donors ? 0 : 3) << "they are kept for the next\n"
                                                                   << line();
    EXPECT_GT(count_before(line(), " spare to lend; "), 0) << line();
}

TEST_F(DumpReserves, CountsBlocks) {
    expect_own_blocks(false);
}

TEST_F(DumpReserves, CountsDonors) {
    setenv("THRUM_BLOCKS", "donors", 1);
    expect_own_blocks(true);
}

TEST_F(DumpReserves, CountsCarriers) {
    const Preempting preempting(1, THRUM_PREEMPT_KLT);
    EXPECT_EQ(line().find("preemption: klt, "), 0U) << line();
    EXPECT_GE(count_before(line(), " carriers, "), count_before(line(), " spare")) << line();
    EXPECT_GT(count_before(line(), " spare"), 0) << line();
}

// While the caller runs, two that never wait are in the middle of what they compute.
TEST_F(DumpReserves, CountsPreempted) {
    const Preempting preempting(1);
    EXPECT_EQ(count_before(line(), " preempted"), 0) << line();
    std::atomic<bool> over{false};
    std::atomic<int> begun{0};
    {
        const auto compute = [&] {
            begun++;
            wait_for(over);
        };
        const Thread one(compute), two(compute);
        EXPECT_TRUE(eventually([&] { return begun == 2 && count_before(line(), " preempted") == 2; }))
            << line();
        over = true;
    }
    EXPECT_EQ(count_before(line(), " preempted"), 0) << line();
}

// On worker 1, in the queue.
Light on_worker_1(const Light::Work &work) {
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    thrum_attr_set_flags(&attr, THRUM_SPAWN_QUEUED);
    thrum_attr_set_worker(&attr, 1);
    return Light(work, &attr);
}

// The thread that waits for its turn there, for which the ticks are on.
bool tells_of_worker_1(const std::string &ticks) {
    thrum_sleep(THRUM_MS);
    return has(line_of(dump(), "1 "), " " + ticks + " ");
}

TEST_F(DumpReserves, SaysWhereSignalMasksDiffer) {
    const Preempting preempting(2);
    std::atomic<bool> blocks{false}, over{false};
    Light computes = on_worker_1([&] {
        sigset_t before;
        pthread_sigmask(SIG_SETMASK, nullptr, &before);
        for (int i = 0; !over; i++) { // one mask that stays would become the worker's
            sigset_t now = before;
            sigdelset(&now, i % 2 == 0 ? SIGUSR1 : SIGUSR2); // workers block the program's signals
            pthread_sigmask(SIG_SETMASK, &now, nullptr);
            blocks = true;
            const uint64_t until = thrum_now() + 10 * kSlice * THRUM_US;
            while (!over && thrum_now() < until) {
            }
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    });
    EXPECT_TRUE(eventually([&] { return blocks.load(); }));
    Light waits = on_worker_1([] {});
    EXPECT_TRUE(eventually([] { return tells_of_worker_1("masked"); })) << dump();
    over = true;
    computes.join();
    waits.join();
}

TEST_F(DumpReserves, WarnsOfAWorkerThatNoTickReaches) {
    const Preempting preempting(2);
    std::atomic<bool> blocks{false};
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    Light held = on_worker_1([&] {
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before);
        blocks = true;
        read_a_byte(&ends[0]);
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    });
    EXPECT_TRUE(eventually([&] { return blocks.load(); }));
    Light waits = on_worker_1([] {});
    EXPECT_TRUE(eventually([] { return tells_of_worker_1("blocked"); })) << dump();
    std::string text;
    EXPECT_TRUE(eventually([&] {
        thrum_sleep(20 * THRUM_MS);
        text = dump();
        return has(text, "\nNO TICK: worker 1 has had none for ");
    })) << text;
    EXPECT_TRUE(has(text, " s while it runs " + address_of(held.handle()))) << text;
    EXPECT_TRUE(has(text, " blocks its signal\n")) << text;
    EXPECT_EQ(count_of(text, "NO TICK"), 1U) << text;
    EXPECT_EQ(write(ends[1], "x", 1), 1);
    held.join();
    waits.join();
    EXPECT_FALSE(has(dump(), "NO TICK")) << dump();
    close(ends[0]);
    close(ends[1]);
}

// The kernel threads of earlier calls may be there still.
TEST_P(Dump, CountsBlockingCalls) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const auto says = [](const std::string &calls) {
        return has(line_of(dump(), "blocking calls: "), "blocking calls: " + calls + " on ");
    };
    const auto call = [&] { EXPECT_EQ(thrum_blocking(read_a_byte, &ends[0], nullptr), 0); };
    Light one(call), two(call);
    EXPECT_TRUE(eventually([&] { return says("2"); })) << dump();
    EXPECT_EQ(write(ends[1], "x", 1), 1);
    EXPECT_TRUE(eventually([&] { return says("1"); })) << dump();
    EXPECT_EQ(write(ends[1], "x", 1), 1);
    one.join();
    two.join();
    EXPECT_TRUE(eventually([&] { return says("0"); })) << dump();
    close(ends[0]);
    close(ends[1]);
}

// --- counters -------------------------------------------------------------------------------------------------

thrum_worker_counters all_counters() {
    thrum_worker_counters sum = {};
    thrum_worker_counters one;
    for (unsigned i = 0; thrum_worker_get_counters(i, &one) == 0; i++) {
        sum.switches += one.switches;
        sum.steals += one.steals;
        sum.parks += one.parks;
        sum.migrations += one.migrations;
    }
    return sum;
}

// The caller's child, which is not preempted, keeps the worker until another has taken the caller from its queue.
void be_stolen() {
    std::atomic<bool> stolen{false};
    thrum_t child = nullptr;
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    ASSERT_EQ(thrum_attr_set_preempt(&attr, THRUM_PREEMPT_NONE), 0);
    ASSERT_EQ(thrum_spawn(
                  &child, &attr,
                  [](void *flag) -> void * {
                      while (!*static_cast<std::atomic<bool> *>(flag)) {
                      }
                      return nullptr;
                  },
                  &stolen),
              0);
    stolen = true;
    thrum_join(child, nullptr);
}

TEST_P(Dump, CountersOfWorkers) {
    thrum_worker_counters counters;
    EXPECT_EQ(thrum_worker_get_counters(workers() - 1, &counters), 0);
    EXPECT_EQ(thrum_worker_get_counters(workers(), &counters), EINVAL);
    const auto before = all_counters();
    if (workers() > 1)
        in_ult(be_stolen);
    Light one([] {
        for (int i = 0; i < 1000; i++)
            thrum_yield();
    }),
        two([] {
            for (int i = 0; i < 1000; i++)
                thrum_yield();
        });
    one.join();
    two.join();
    Light moved([] { thrum_migrate(thrum_self(), workers() - 1); });
    moved.join();
    EXPECT_TRUE(eventually([&] {
        thrum_sleep(5 * THRUM_MS);
        return all_counters().parks > before.parks;
    }));
    const auto after = all_counters();
    EXPECT_GT(after.switches, before.switches);
    EXPECT_EQ(after.steals > before.steals, workers() > 1);
    EXPECT_EQ(after.migrations, before.migrations + 1);
    if (workers() == 1) {
        EXPECT_GE(after.switches, before.switches + 1000); // the two of them in turns
    }
}

using Counts = std::array<uint64_t, 4>; // in the order of the columns

Counts counted(unsigned worker) {
    thrum_worker_counters counters{};
    thrum_worker_get_counters(worker, &counters);
    return {counters.switches, counters.steals, counters.parks, counters.migrations};
}

Counts printed(const std::string &text, unsigned worker) {
    std::istringstream lines(text.substr(text.find("\nWORKER ") + 1));
    std::string line;
    for (unsigned i = 0; i <= worker + 1; i++)
        std::getline(lines, line);
    Counts counts{};
    EXPECT_GT(line.size(), 59U) << text;
    std::istringstream columns(line.substr(59)); // before them is text
    for (uint64_t &count : counts)
        columns >> count;
    return counts;
}

bool are_different(const Counts &counts) {
    Counts sorted = counts;
    std::sort(sorted.begin(), sorted.end());
    return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
}

// Each column is what it is called: they are told apart by their values, of which none goes back.
TEST_P(Dump, PrintsTheCountersOfWorkers) {
    if (workers() == 1)
        GTEST_SKIP() << "there is nobody to steal from";
    EXPECT_TRUE(eventually([] {
        in_ult(be_stolen);
        Light([] {
            for (unsigned i = 0; i < 3 * workers(); i++)
                thrum_migrate(thrum_self(), i % workers());
        }).join();
        thrum_sleep(THRUM_MS);
        for (unsigned i = 0; i < workers(); i++)
            if (counted(i)[1] != 0 && are_different(counted(i)))
                return true;
        return false;
    }));
    std::vector<Counts> before;
    for (unsigned i = 0; i < workers(); i++)
        before.push_back(counted(i));
    const std::string text = dump();
    for (unsigned i = 0; i < workers(); i++) {
        const Counts after = counted(i), shown = printed(text, i);
        for (std::size_t column = 0; column < shown.size(); column++) {
            EXPECT_LE(before[i][column], shown[column]) << i << " " << column << "\n" << text;
            EXPECT_GE(after[column], shown[column]) << i << " " << column << "\n" << text;
        }
    }
}

} // namespace
