// SPDX-License-Identifier: Apache-2.0
//
// thrum_exit, pthread_exit in a ULT, thrum_exit_to, cleanups; thrum_join_keep and thrum_revive.
#include <pthread.h>
#include <threads.h>
#include <thrum/worker.h>

#include <array>
#include <csignal>
#include <string>
#include <sys/wait.h>
#include <vector>

#include "pools.hpp"
#include "ult.hpp"

namespace {

void *const kResult = reinterpret_cast<void *>(0x1234);

struct Note {
    std::string &log;
    char letter;
    ~Note() { log += letter; }
};

thrum_t spawned(void *(*fn)(void *), void *arg, const thrum_attr_t *attr = nullptr) {
    thrum_t thread = nullptr;
    EXPECT_EQ(thrum_spawn(&thread, attr, fn, arg), 0);
    return thread;
}

void *joined(thrum_t thread) {
    void *result = nullptr;
    EXPECT_EQ(thrum_join(thread, &result), 0);
    return result;
}

// From so deep that the frames are more than a page.
__attribute__((noinline)) void exit_from(int depth, std::string &log) {
    volatile char frame[1000]; // NOLINT(modernize-avoid-c-arrays): std::array has no volatile access
    frame[0] = static_cast<char>(depth);
    const Note note{log, static_cast<char>('a' + depth)};
    if (depth == 0)
        thrum_exit(kResult);
    if (depth > 0)
        exit_from(depth - 1, log);
    log += static_cast<char>('0' + frame[0]); // never
}

class Exit : public Ult {};

TEST_P(Exit, UnwindsToTheEnd) {
    for (const bool queued : {false, true}) {
        for (int round = 0; round < 1000 / kStressDivisor; round++) {
            std::string log;
            const thrum_attr_t attr = attr_queued();
            const thrum_t thread = spawned(
                [](void *text) -> void * {
                    exit_from(5, *static_cast<std::string *>(text));
                    return nullptr;
                },
                &log, queued ? &attr : nullptr);
            ASSERT_EQ(joined(thread), kResult);
            ASSERT_EQ(log, "abcdef");
        }
    }
}

TEST_P(Exit, PthreadExitIsTheSame) {
    std::string log;
    const thrum_t thread = spawned(
        [](void *text) -> void * {
            const Note note{*static_cast<std::string *>(text), 'x'};
            thrum_yield();
            pthread_exit(kResult);
        },
        &log);
    EXPECT_EQ(joined(thread), kResult);
    EXPECT_EQ(log, "x");
}

TEST_P(Exit, ThrdExitIsTheSame) {
    std::string log;
    const thrum_t thread = spawned(
        [](void *text) -> void * {
            const Note note{*static_cast<std::string *>(text), 'x'};
            thrum_yield();
            thrd_exit(7);
        },
        &log);
    EXPECT_EQ(joined(thread), reinterpret_cast<void *>(7));
    EXPECT_EQ(log, "x");
    if (ULT_TSAN)
        return; // which does not know what thrd_create makes
    thrd_t external;
    ASSERT_EQ(thrd_create(
                  &external, [](void *) -> int { thrd_exit(8); }, nullptr),
              thrd_success);
    int result = 0;
    EXPECT_EQ(thrd_join(external, &result), thrd_success);
    EXPECT_EQ(result, 8);
}

TEST_P(Exit, OfExternalThreadsIsTheirOwn) {
    pthread_t thread;
    auto leave = [](void *) -> void * { thrum_exit(kResult); };
    ASSERT_EQ(pthread_create(&thread, nullptr, leave, nullptr), 0);
    void *result = nullptr;
    ASSERT_EQ(pthread_join(thread, &result), 0);
    EXPECT_EQ(result, kResult);
}

// There only the pop runs a cleanup: an end from within does not.
TEST_P(Exit, CleanupsOfExternalThreads) {
    static std::atomic<int> runs;
    runs = 0;
    const auto body = [](void *arg) -> void * {
        const auto add = [](void *by) { runs += *static_cast<int *>(by); };
        int one = 1, ten = 10, hundred = 100;
        thrum_cleanup_push(add, &hundred);
        thrum_cleanup_push(add, &ten);
        thrum_cleanup_push(add, &one);
        thrum_cleanup_pop(1);
        thrum_cleanup_pop(0);
        thrum_exit(arg);
        thrum_cleanup_pop(0);
        return nullptr;
    };
    pthread_t thread;
    void *result = nullptr;
    ASSERT_EQ(pthread_create(&thread, nullptr, body, kResult), 0);
    ASSERT_EQ(pthread_join(thread, &result), 0);
    EXPECT_EQ(result, kResult);
    EXPECT_EQ(runs, 1);
}

// Destructors may wait, and the thread go on elsewhere.
TEST_P(Exit, DestructorsMayWait) {
    struct Waits {
        std::string &log;
        ~Waits() {
            thrum_sleep(THRUM_MS);
            Light([this] { log += 'c'; }).join();
            log += 'w';
        }
    };
    std::vector<std::string> logs(20);
    std::vector<Light> lights;
    for (std::string &log : logs)
        lights.emplace_back([&log] {
            const Waits waits{log};
            thrum_exit(nullptr);
        });
    lights.clear();
    for (const std::string &log : logs)
        EXPECT_EQ(log, "cw");
}

__attribute__((noinline)) void exit_with_cleanup(std::string &log, void (*fn)(void *), void *arg) {
    const Note inner{log, '2'};
    thrum_cleanup_push(fn, arg);
    thrum_exit(nullptr);
    thrum_cleanup_pop(0);
}

TEST_P(Exit, CleanupsAndDestructorsInTheirOrder) {
    static std::string log;
    log.clear();
    auto say = [](void *letter) { log += *static_cast<const char *>(letter); };
    auto body = [](void *fn) -> void * {
        const auto add = reinterpret_cast<void (*)(void *)>(fn);
        char a = 'a', b = 'b', c = 'c', d = 'd';
        thrum_cleanup_push(add, &a);
        const Note note{log, '1'};
        thrum_cleanup_push(add, &b);
        thrum_cleanup_push(add, &c);
        thrum_cleanup_pop(1);
        thrum_cleanup_push(add, &d);
        thrum_cleanup_pop(0);
        exit_with_cleanup(log, add, &d);
        thrum_cleanup_pop(0);
        thrum_cleanup_pop(0);
        return nullptr;
    };
    joined(spawned(body, reinterpret_cast<void *>(+say)));
    EXPECT_EQ(log, "c2d1ba") << "as with pthread_exit, a frame's own destructors come first";
}

TEST_P(Exit, ValuesAreDestroyed) {
    static std::atomic<int> destroyed;
    destroyed = 0;
    thrum_key_t key = 0;
    ASSERT_EQ(thrum_key_create(&key, [](void *) { destroyed++; }), 0);
    joined(spawned(
        [](void *pointer) -> void * {
            EXPECT_EQ(thrum_key_set(*static_cast<thrum_key_t *>(pointer), pointer), 0);
            thrum_exit(nullptr);
        },
        &key));
    EXPECT_EQ(destroyed, 1);
    EXPECT_EQ(thrum_key_delete(key), 0);
}

TEST_P(Exit, WithinAHandlerThatThrowsAgain) {
    std::string log;
    const thrum_t thread = spawned(
        [](void *text) -> void * {
            std::string &said = *static_cast<std::string *>(text);
            try {
                try {
                    throw 7;
                } catch (int) {
                    const Note note{said, 'n'};
                    thrum_yield();
                    thrum_exit(kResult);
                }
            } catch (...) {
                said += 'c';
                throw;
            }
            return nullptr;
        },
        &log);
    EXPECT_EQ(joined(thread), kResult);
    EXPECT_EQ(log, "nc");
    EXPECT_EQ(std::uncaught_exceptions(), 0);
}

TEST_P(Exit, ManyDetachedAndJoined) {
    std::atomic<int> ended{0};
    std::vector<Light> lights;
    const thrum_attr_t queued = attr_queued();
    const int count = 5000 / kStressDivisor;
    for (int i = 0; i < count; i++) {
        detached([&ended] {
            struct Count {
                std::atomic<int> &ended;
                ~Count() { ended++; }
            };
            const Count counted{ended};
            thrum_exit(nullptr);
        });
        lights.emplace_back([] { thrum_exit(kResult); }, i % 2 != 0 ? &queued : nullptr);
        if (lights.size() == 100)
            lights.clear();
    }
    EXPECT_TRUE(eventually([&] { return ended == count; }));
}

TEST_P(Exit, ToOneThatIsSuspended) {
    std::atomic<int> steps{0};
    std::atomic<thrum_t> successor{nullptr};
    Light waits([&] {
        successor = thrum_self();
        EXPECT_EQ(thrum_suspend(), 0);
        steps++;
    });
    EXPECT_TRUE(eventually([&] { return successor != nullptr; }));
    Light leaves([&] { thrum_exit_to(nullptr, successor); });
    leaves.join();
    waits.join();
    EXPECT_EQ(steps, 1);
}

TEST_P(Exit, WhereItCannotBe) {
    if (ULT_EMULATED)
        GTEST_SKIP() << "the emulator's child of a fork can start no threads";
#if !ULT_ASAN && !ULT_TSAN
    auto in_tasklet = [] {
        thrum_attr_t attr;
        thrum_attr_init(&attr);
        EXPECT_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_TASKLET), 0);
        joined(spawned([](void *) -> void * { thrum_exit(nullptr); }, nullptr, &attr));
    };
    auto in_fresh_runtime = [](const std::function<void()> &work) {
        return in_child([&] {
            const thrum_config config{2, 0, {}, {}};
            EXPECT_EQ(thrum_init(&config), 0);
            work();
            return 0;
        });
    };
    std::string said = stderr_of([&] {
        const int status = in_fresh_runtime(in_tasklet);
        EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << status;
    });
    EXPECT_NE(said.find("a tasklet must end by returning"), std::string::npos) << said;
    said = stderr_of([&] {
        const int status = in_fresh_runtime([] { thrum_exit(nullptr); });
        EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << status;
    });
    EXPECT_NE(said.find("the thread that called thrum_init() must end"), std::string::npos) << said;
#endif
}

ULT_OVER_WORKERS(Exit);

class Revive : public Ult {};
class ReviveInTurn : public UltInTurn {};

TEST_P(Revive, AgainAndAgain) {
    std::atomic<int> runs{0};
    auto count = [](void *counter) -> void * {
        thrum_yield();
        return reinterpret_cast<void *>(static_cast<intptr_t>(++*static_cast<std::atomic<int> *>(counter)));
    };
    const thrum_t thread = spawned(count, &runs);
    for (int i = 1; i <= 1000 / kStressDivisor; i++) {
        void *result = nullptr;
        ASSERT_EQ(thrum_join_keep(thread, &result), 0);
        ASSERT_EQ(reinterpret_cast<intptr_t>(result), i);
        ASSERT_EQ(thrum_revive(thread, count, &runs), 0);
    }
    joined(thread);
    EXPECT_EQ(runs, 1000 / kStressDivisor + 1);
}

TEST_P(Revive, OnlyOneThatHasEnded) {
    std::atomic<bool> over{false};
    auto wait = [](void *flag) -> void * {
        while (!*static_cast<std::atomic<bool> *>(flag))
            thrum_yield();
        return nullptr;
    };
    const thrum_t thread = spawned(wait, &over);
    EXPECT_EQ(thrum_revive(thread, wait, &over), EBUSY);
    over = true;
    EXPECT_EQ(thrum_join_keep(thread, nullptr), 0);
    EXPECT_EQ(thrum_join_keep(thread, nullptr), 0);
    EXPECT_EQ(thrum_revive(thread, wait, &over), 0);
    EXPECT_EQ(thrum_detach(thread), 0);
}

TEST_P(Revive, WithNothingOfTheFormerLife) {
    thrum_key_t key = 0;
    ASSERT_EQ(thrum_key_create(&key, nullptr), 0);
    auto first = [](void *pointer) -> void * {
        EXPECT_EQ(thrum_key_set(*static_cast<thrum_key_t *>(pointer), pointer), 0);
        EXPECT_EQ(thrum_set_name(thrum_self(), "first"), 0);
        return reinterpret_cast<void *>(thrum_id(thrum_self()));
    };
    auto second = [](void *pointer) -> void * {
        EXPECT_EQ(thrum_key_get(*static_cast<thrum_key_t *>(pointer)), nullptr);
        std::array<char, THRUM_NAME_SIZE> name{};
        thrum_get_name(thrum_self(), name.data());
        EXPECT_STREQ(name.data(), "");
        return reinterpret_cast<void *>(thrum_id(thrum_self()));
    };
    const thrum_t thread = spawned(first, &key);
    void *id = nullptr;
    ASSERT_EQ(thrum_join_keep(thread, &id), 0);
    ASSERT_EQ(thrum_revive(thread, second, &key), 0);
    EXPECT_NE(joined(thread), id);
    EXPECT_EQ(thrum_key_delete(key), 0);
}

// A request to end is of the former life; what its attributes say is not: it can be asked again, is bound as before, and
// its priority is the same.
TEST_P(Revive, WithTheSameAttributes) {
    struct Life {
        int worker = -1;
        unsigned priority = 0;
        std::size_t size = 0;
        std::atomic<bool> begun{false};
        static void *live(void *arg) {
            auto *life = static_cast<Life *>(arg);
            std::size_t used = 0;
            thrum_testcancel();
            life->worker = thrum_worker_self();
            life->priority = thrum_get_priority(thrum_self());
            EXPECT_EQ(thrum_stack_used(thrum_self(), &used, &life->size), 0);
            life->begun = true;
            thrum_sleep(3600 * THRUM_S);
            ADD_FAILURE() << "was not ended";
            return nullptr;
        }
    };
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    ASSERT_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_CANCELLABLE), 0);
    ASSERT_EQ(thrum_attr_set_worker(&attr, workers() - 1), 0);
    ASSERT_EQ(thrum_attr_set_priority(&attr, 9), 0);
    ASSERT_EQ(thrum_attr_set_stack_size(&attr, 256U << 10), 0);
    std::array<Life, 3> lives;
    const thrum_t thread = spawned(Life::live, lives.data(), &attr);
    for (std::size_t i = 0; i < lives.size(); i++) {
        EXPECT_TRUE(eventually([&] { return lives[i].begun.load(); }));
        EXPECT_EQ(lives[i].worker, static_cast<int>(workers()) - 1);
        EXPECT_EQ(lives[i].priority, 9U);
        EXPECT_GE(lives[i].size, 256U << 10);
        EXPECT_EQ(thrum_cancel(thread), 0);
        void *result = nullptr;
        ASSERT_EQ(thrum_join_keep(thread, &result), 0);
        EXPECT_EQ(result, THRUM_CANCELED);
        if (i + 1 < lives.size()) {
            ASSERT_EQ(thrum_revive(thread, Life::live, &lives[i + 1]), 0);
        }
    }
    joined(thread);
}

// In a pool, which is where it waits again, and as urgent as it was.
TEST_P(ReviveInTurn, InItsPool) {
    const PoolOf pool(THRUM_POOL_DEADLINE);
    thrum_attr_t attr = pool.attr();
    std::array<thrum_t, 3> threads{};
    for (unsigned i = 0; i < threads.size(); i++) {
        thrum_attr_set_deadline(&attr, 9 - i);
        threads[i] = spawned(note, number(i), &attr);
    }
    for (const bool again : {false, true}) {
        Notes mine;
        notes = &mine;
        for (unsigned i = 0; i < threads.size() && again; i++)
            ASSERT_EQ(thrum_revive(threads[i], note, number(i)), 0);
        EXPECT_EQ(thrum_pool_size(pool.pool), threads.size());
        const SchedOn sched(workers() - 1, sched_of(THRUM_SCHED_FIRST, {pool.pool}));
        for (const thrum_t thread : threads)
            EXPECT_EQ(thrum_join_keep(thread, nullptr), 0);
        for (unsigned i = 0; i < threads.size(); i++)
            EXPECT_EQ(mine.order[i], threads.size() - 1 - i) << again;
    }
    for (const thrum_t thread : threads)
        joined(thread);
}

TEST_P(Revive, OfATasklet) {
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    ASSERT_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_TASKLET), 0);
    std::atomic<long> runs{0};
    const auto count = [](void *counter) -> void * {
        thrum_yield(); // nothing, and no thread to end
        thrum_testcancel();
        EXPECT_NE(thrum_self(), nullptr);
        ++*static_cast<std::atomic<long> *>(counter);
        return counter;
    };
    const thrum_t tasklet = spawned(count, &runs, &attr);
    for (int i = 0; i < 200; i++) {
        void *result = nullptr;
        ASSERT_EQ(thrum_join_keep(tasklet, &result), 0);
        ASSERT_EQ(result, &runs);
        ASSERT_EQ(thrum_revive(tasklet, count, &runs), 0);
    }
    EXPECT_EQ(thrum_join_until(tasklet, nullptr, UINT64_MAX), 0);
    EXPECT_EQ(runs, 201);
}

ULT_OVER_WORKERS(Revive);
ULT_OVER_WORKERS(ReviveInTurn);

} // namespace
