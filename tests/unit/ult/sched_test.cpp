// SPDX-License-Identifier: Apache-2.0
//
// Schedulers that are stopped, changed, left in the middle, and outlive a runtime; pushes that wake a worker which
// has something else to do; callers that must not wait.
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <thrum/pool.h>
#include <thrum/worker.h>
#include <time.h>

#include <array>
#include <atomic>

#include "ult.hpp"

namespace {

class SchedLife : public Ult {};
class SchedWakes : public Ult {};
class MayNotWait : public Ult {};

// A pool, and one scheduler or more that look there only.
struct Served {
    explicit Served(unsigned count) : scheds(count) {
        EXPECT_EQ(thrum_pool_create(&pool, THRUM_POOL_FIFO), 0);
        for (thrum_sched_t &sched : scheds)
            EXPECT_EQ(thrum_sched_create(&sched, THRUM_SCHED_FIRST, &pool, 1), 0);
    }
    ~Served() {
        for (const thrum_sched_t sched : scheds)
            EXPECT_TRUE(eventually([&] { return thrum_sched_destroy(sched) == 0; }));
        EXPECT_EQ(thrum_pool_destroy(pool), 0);
    }
    Served(const Served &) = delete;
    Served &operator=(const Served &) = delete;
    thrum_attr_t attr() const { return attr_pool(pool); }
    thrum_pool_t pool = nullptr;
    std::vector<thrum_sched_t> scheds;
};

thrum_sched_t users(void (*run)(thrum_sched_t, void *), void *data, const Served &served) {
    thrum_sched_t sched = nullptr;
    EXPECT_EQ(thrum_sched_create_user(&sched, run, data, &served.pool, 1), 0);
    return sched;
}

// Without letting others run: the caller's worker must do nothing meanwhile.
void nap_us(long microseconds) {
    const timespec nap{0, microseconds * 1000};
    nanosleep(&nap, nullptr);
}

// --- stopped, and left ------------------------------------------------------------------------------------

void expect_default(unsigned worker) {
    std::atomic<bool> ran{false};
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    ASSERT_EQ(thrum_attr_set_worker(&attr, worker), 0);
    Light bound([&ran] { ran = true; }, &attr);
    EXPECT_TRUE(eventually([&] { return ran.load(); }));
}

// It has its own run queue again, and the scheduler is free.
TEST_P(SchedLife, AWorkersCanBeStopped) {
    const Served served(1);
    const thrum_sched_t sched = served.scheds[0];
    for (int round = 0; round < 5; round++) {
        ASSERT_EQ(thrum_worker_set_sched(workers() - 1, sched), 0);
        const thrum_attr_t attr = served.attr();
        Light([] {}, &attr).join();
        thrum_sched_stop(sched);
        EXPECT_TRUE(eventually([&] { return thrum_worker_set_sched(0, sched) == 0; })); // it is unused now
        EXPECT_EQ(thrum_worker_set_sched(0, nullptr), 0);
        expect_default(workers() - 1);
        EXPECT_TRUE(eventually([&] { return thrum_worker_set_sched(0, sched) == 0; }));
        EXPECT_EQ(thrum_worker_set_sched(0, nullptr), 0);
        EXPECT_TRUE(eventually([&] {
            thrum_t thread = nullptr;
            if (thrum_sched_spawn(&thread, nullptr, sched) != 0)
                return false;
            thrum_sched_stop(sched);
            return thrum_join(thread, nullptr) == 0;
        }));
    }
}

// An order to stop is for the present user, not for the next one.
TEST_P(SchedLife, StoppingAnUnusedOneIsNothing) {
    const Served served(1);
    thrum_sched_stop(served.scheds[0]);
    ASSERT_EQ(thrum_worker_set_sched(workers() - 1, served.scheds[0]), 0);
    const thrum_attr_t attr = served.attr();
    std::atomic<int> ran{0};
    for (int i = 0; i < 5; i++)
        Light([&ran] { ran++; }, &attr).join();
    EXPECT_EQ(ran, 5);
    EXPECT_EQ(thrum_worker_set_sched(workers() - 1, nullptr), 0);
}

void return_at_once(thrum_sched_t, void *times) {
    static_cast<std::atomic<int> *>(times)->fetch_add(1);
}

TEST_P(SchedLife, AFunctionThatReturnsIsNotCalledAgain) {
    const Served served(0);
    std::atomic<int> times{0};
    const thrum_sched_t sched = users(return_at_once, &times, served);
    ASSERT_EQ(thrum_worker_set_sched(workers() - 1, sched), 0);
    EXPECT_TRUE(eventually([&] { return thrum_sched_destroy(sched) == 0; }));
    expect_default(workers() - 1);
    EXPECT_EQ(times, 1);
}

// What is left in its pools waits for the next scheduler.
TEST_P(SchedLife, AFunctionThatReturnsEarlyLeavesItsPools) {
    const Served served(1);
    std::atomic<int> times{0};
    std::atomic<bool> ran{false};
    const thrum_attr_t attr = served.attr();
    Light waits([&ran] { ran = true; }, &attr);
    const thrum_sched_t sched = users(return_at_once, &times, served);
    ASSERT_EQ(thrum_worker_set_sched(workers() - 1, sched), 0);
    EXPECT_TRUE(eventually([&] { return thrum_sched_destroy(sched) == 0; }));
    expect_default(workers() - 1);
    EXPECT_EQ(times, 1);
    EXPECT_FALSE(ran);
    ASSERT_EQ(thrum_worker_set_sched(workers() - 1, served.scheds[0]), 0);
    waits.join();
    EXPECT_EQ(thrum_worker_set_sched(workers() - 1, nullptr), 0);
}

void leave_by_exit(thrum_sched_t, void *result) {
    thrum_exit(result);
}

void wait_for_cancel(thrum_sched_t, void *waits) {
    *static_cast<std::atomic<bool> *>(waits) = true;
    thrum_sleep(60 * THRUM_S);
}

TEST_P(SchedLife, AStackedOneMayLeaveByExitOrCancel) {
    const Served served(0);
    int here = 0;
    void *result = nullptr;
    thrum_t thread = nullptr;
    thrum_sched_t sched = users(leave_by_exit, &here, served);
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(thrum_sched_spawn(&thread, nullptr, sched), 0);
        EXPECT_EQ(thrum_join(thread, &result), 0);
        EXPECT_EQ(result, &here);
    }
    EXPECT_EQ(thrum_sched_destroy(sched), 0);
    std::atomic<bool> waits{false};
    sched = users(wait_for_cancel, &waits, served);
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    EXPECT_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_CANCELLABLE), 0);
    ASSERT_EQ(thrum_sched_spawn(&thread, &attr, sched), 0);
    EXPECT_TRUE(eventually([&] { return waits.load(); }));
    EXPECT_EQ(thrum_cancel(thread), 0);
    EXPECT_EQ(thrum_join(thread, &result), 0);
    EXPECT_EQ(result, THRUM_CANCELED);
    EXPECT_EQ(thrum_sched_destroy(sched), 0);
}

TEST_P(SchedLife, AStackedOneIsNoTasklet) {
    const Served served(1);
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    EXPECT_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_TASKLET), 0);
    EXPECT_EQ(thrum_sched_spawn(nullptr, &attr, served.scheds[0]), EINVAL);
}

// --- of more than one runtime -----------------------------------------------------------------------------

class SchedRuntimes : public UltPlain {};

TEST_F(SchedRuntimes, ItIsUnusedWhenTheRuntimeHasEnded) {
    for (const unsigned workers : {1U, 2U, 4U}) {
        thrum_pool_t pool = nullptr;
        thrum_sched_t first = nullptr, last = nullptr, stacked = nullptr;
        ASSERT_EQ(thrum_pool_create(&pool, THRUM_POOL_FIFO), 0);
        for (thrum_sched_t *sched : {&first, &last, &stacked})
            ASSERT_EQ(thrum_sched_create(sched, THRUM_SCHED_FIRST, &pool, 1), 0);
        for (int round = 0; round < 2; round++) {
            const thrum_config config{workers, 0, {}, {}};
            ASSERT_EQ(thrum_init(&config), 0);
            EXPECT_EQ(thrum_worker_set_sched(0, first), 0);
            EXPECT_EQ(thrum_sched_destroy(first), EBUSY);
            if (workers > 1) {
                EXPECT_EQ(thrum_worker_set_sched(workers - 1, last), 0);
            }
            EXPECT_EQ(thrum_sched_spawn(nullptr, nullptr, stacked), 0);
            thrum_sleep(2 * THRUM_MS); // they run
            ASSERT_EQ(thrum_fini(), 0);
        }
        for (const thrum_sched_t sched : {first, last, stacked})
            EXPECT_EQ(thrum_sched_destroy(sched), 0);
        EXPECT_EQ(thrum_pool_destroy(pool), 0);
    }
}

// --- wake-ups ---------------------------------------------------------------------------------------------

// All workers but the first, which is the test's own, look at the pool, and sleep.
struct AllServe : Served {
    explicit AllServe(unsigned workers) : Served(workers - 1) {
        for (unsigned i = 1; i < workers; i++)
            set(i);
    }
    ~AllServe() {
        for (unsigned i = 1; i <= scheds.size(); i++)
            EXPECT_EQ(thrum_worker_set_sched(i, nullptr), 0);
    }
    AllServe(const AllServe &) = delete;
    AllServe &operator=(const AllServe &) = delete;
    void set(unsigned worker) {
        EXPECT_TRUE(
            eventually([this, worker] { return thrum_worker_set_sched(worker, scheds[worker - 1]) == 0; }));
    }
};

constexpr int kRounds = 40 / (kStressDivisor < 10 ? kStressDivisor : 10) + 1;

// The push wakes one, which is told meanwhile to go over to another scheduler: the others sleep.
TEST_P(SchedWakes, OneThatIsCalledAwayPassesItOn) {
    if (workers() < 3)
        GTEST_SKIP() << "needs two workers that sleep";
    AllServe serve(workers());
    const thrum_attr_t attr = serve.attr();
    for (int round = 0; round < kRounds; round++) {
        std::atomic<bool> ran{false};
        nap_us(3000);
        Light thread([&ran] { ran = true; }, &attr);
        EXPECT_EQ(thrum_worker_set_sched(1, nullptr), 0); // the lowest is woken first
        ASSERT_TRUE(eventually([&] { return ran.load(); })) << "round " << round;
        thread.join();
        serve.set(1);
    }
}

// The push wakes one, which finds something that takes long on its way.
TEST_P(SchedWakes, OneThatFindsSomethingElsePassesItOn) {
    if (workers() < 3)
        GTEST_SKIP() << "needs two workers that sleep";
    const AllServe serve(workers());
    const thrum_attr_t pooled = serve.attr(), queued = attr_queued();
    for (int round = 0; round < kRounds; round++) {
        std::atomic<bool> ran{false}, began{false}, late{false};
        nap_us(3000);
        Light brief([&ran] { ran = true; }, &pooled);
        Light lengthy(
            [&] {
                began = true;
                for (int i = 0; i < 4000 && !ran; i++)
                    nap_us(1000);
                late = !ran;
            },
            &queued);
        while (!began && !ran)
            nap_us(10);
        brief.join();
        lengthy.join();
        ASSERT_FALSE(late) << "round " << round;
    }
}

// --- callers that must not wait ---------------------------------------------------------------------------

// What each of these says where the caller would have to wait for `sleeper`.
struct Answers {
    thrum_t sleeper;
    std::atomic<bool> over{false};
    std::array<int, 8> errors{};

    void ask() {
        thrum_t made[2];
        errors = {
            thrum_join(sleeper, nullptr),
            thrum_join_keep(sleeper, nullptr),
            thrum_join_until(sleeper, nullptr, thrum_now() + THRUM_S),
            thrum_suspend(),
            thrum_blocking([](void *arg) { return arg; }, nullptr, nullptr),
            thrum_worker_add(nullptr),
            thrum_worker_stop(1),
            thrum_spawn_many(
                2, made, nullptr, [](void *arg) { return arg; }, nullptr, 0),
        };
        EXPECT_EQ(thrum_try_join(sleeper, nullptr), EBUSY);
        EXPECT_EQ(thrum_join_until(sleeper, nullptr, 0), ETIMEDOUT);
        over = true;
    }

    void expect_none() const {
        for (const int error : errors)
            EXPECT_EQ(error, EPERM);
    }
};

void ask_and_serve(thrum_sched_t sched, void *answers) {
    static_cast<Answers *>(answers)->ask();
    while (!thrum_sched_stopping(sched))
        thrum_sched_idle(sched);
}

void *ask_as_tasklet(void *answers) {
    static_cast<Answers *>(answers)->ask();
    return nullptr;
}

TEST_P(MayNotWait, ATaskletOrAScheduler) {
    thrum_event_t go = THRUM_EVENT_INITIALIZER;
    const Light sleeper([&go] { thrum_event_wait(&go); });
    const Served served(0);
    Answers of_sched{sleeper.handle()}, of_tasklet{sleeper.handle()};
    const thrum_sched_t sched = users(ask_and_serve, &of_sched, served);
    ASSERT_EQ(thrum_worker_set_sched(workers() - 1, sched), 0);
    EXPECT_TRUE(eventually([&] { return of_sched.over.load(); }));
    of_sched.expect_none();
    EXPECT_EQ(thrum_worker_set_sched(workers() - 1, nullptr), 0);
    EXPECT_TRUE(eventually([&] { return thrum_sched_destroy(sched) == 0; }));
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    ASSERT_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_TASKLET), 0);
    ASSERT_EQ(thrum_spawn(nullptr, &attr, ask_as_tasklet, &of_tasklet), 0);
    EXPECT_TRUE(eventually([&] { return of_tasklet.over.load(); }));
    of_tasklet.expect_none();
    thrum_event_set(&go);
}

#if !ULT_TSAN // which has its own ways about a child of fork
void sleep_as_sched(thrum_sched_t, void *) {
    thrum_sleep(THRUM_MS);
}

void *sleep_as_tasklet(void *arg) {
    thrum_sleep(THRUM_MS);
    return arg;
}

class MayNotSleep : public UltPlain {};

TEST_F(MayNotSleep, ATaskletOrAScheduler) {
    const auto dies = [](const std::function<void()> &work) {
        int status = 0;
        const std::string said = stderr_of([&] {
            status = in_child([&work] {
                const thrum_config config{2, 0, {}, {}};
                if (thrum_init(&config) == 0)
                    work();
                thrum_sleep(THRUM_S);
                return 0;
            });
        });
        EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << status;
        EXPECT_EQ(
            said,
            "thrum: misuse: a tasklet or a scheduler must not wait, but would have to in thrum_sleep\n");
    };
    dies([] {
        thrum_attr_t attr;
        thrum_attr_init(&attr);
        thrum_attr_set_flags(&attr, THRUM_SPAWN_TASKLET);
        thrum_spawn(nullptr, &attr, sleep_as_tasklet, nullptr);
    });
    dies([] {
        thrum_pool_t pool = nullptr;
        thrum_sched_t sched = nullptr;
        thrum_pool_create(&pool, THRUM_POOL_FIFO);
        thrum_sched_create_user(&sched, sleep_as_sched, nullptr, &pool, 1);
        thrum_worker_set_sched(1, sched);
    });
}
#endif

ULT_OVER_WORKERS(SchedLife);
ULT_OVER_WORKERS(SchedWakes);
ULT_OVER_WORKERS(MayNotWait);

// The slabs that pools and schedulers come from stay mapped for the life of the process: let them be there before any
// test looks for leaks.
class Slabs : public testing::Environment {
  public:
    void SetUp() override { const Served served(64); }
};
const testing::Environment *const slabs = testing::AddGlobalTestEnvironment(new Slabs);

} // namespace
