// SPDX-License-Identifier: Apache-2.0
//
// Preemption: a thread that never waits does not keep others from running, and an interrupted one resumes as it was.
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thrum/pool.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "faults.hpp"
#include "modules/counted.hpp"
#include "pools.hpp"
#include "preempt.hpp"

namespace {

int *__attribute__((noinline)) error_place() {
    __asm__ volatile("" ::: "memory");
    return &errno;
}

// Things that happen one after another, none of which can before the one before it has. If slices take a second, and
// each of them waited for the end of one, a second would pass from one to the next. If they happen at once next to
// nothing does, or, on a busy machine, whatever the kernel likes: so it is enough that some of them are fast.
// Recorded by the thread that sees them, one at a time.
class Events {
  public:
    static constexpr int kCount = 10;
    // First, when all begins, and kCount times.
    void note() { moments_.at(seen_++) = thrum_now(); }
    void expect_at_once() const {
        ASSERT_EQ(seen_, moments_.size());
        std::array<uint64_t, kCount> took{};
        for (std::size_t i = 0; i < took.size(); i++)
            took.at(i) = moments_.at(i + 1) - moments_.at(i);
        std::sort(took.begin(), took.end());
        EXPECT_LT(took.at(kCount / 3), THRUM_SLICE_MAX * THRUM_US / 2);
    }

  private:
    std::array<uint64_t, kCount + 1> moments_{};
    std::size_t seen_ = 0;
};

// Of two that take turns, each waiting for the other's in a busy loop.
class Turns {
  public:
    // By the one that has the first, 0, or the second, 1.
    void take(int first) {
        for (int i = first; i <= Events::kCount; i += 2) {
            while (turn_ < i) {
            }
            events_.note();
            turn_ = i + 1;
        }
    }
    void expect_at_once() const { events_.expect_at_once(); }

  private:
    std::atomic<int> turn_{0};
    Events events_;
};

// In all modes that keep what the C library has of a thread.
class SafeMode : public Interrupted, public testing::WithParamInterface<unsigned> {};

INSTANTIATE_TEST_SUITE_P(Modes, SafeMode, kSafeModes, name_of_mode);

} // namespace

TEST_P(SafeMode, AThreadThatNeverYieldsLetsOthersRun) {
    const Preempting runtime(1, GetParam());
    wait_for_each_other();
    EXPECT_GE(preemptions(), 1U);
}

TEST_P(SafeMode, ThePrimaryIsPreemptedToo) {
    const Preempting runtime(1, GetParam());
    std::atomic<bool> flag{false};
    Thread sets([&] { flag = true; });
    wait_for(flag);
    EXPECT_GE(preemptions(), 1U);
}

TEST_F(Interrupted, RawYieldIsEnoughForCodeWithoutAnyLibrary) {
    const Preempting runtime(2, THRUM_PREEMPT_YIELD);
    std::atomic<bool> flag{false};
    std::vector<Thread> threads;
    for (int i = 0; i < 8; i++)
        threads.emplace_back([&] { wait_for(flag); });
    Thread sets([&] { flag = true; });
}

// ... beside others, which keep what they run on, in whichever way.
TEST_P(SafeMode, ThreadsOfModeYieldShareTheWorkersWithOthers) {
    for (unsigned workers : {1U, 2U}) {
        constexpr std::size_t kThreads = 6;
        constexpr int kSteps = 20;
        const Preempting runtime(workers, GetParam());
        std::array<std::atomic<int>, kThreads> steps{};
        std::atomic<int> wrong{0};
        std::vector<Thread> threads;
        // In step with the next, which has to have a turn between two of these.
        const auto step = [&](std::size_t i) {
            const int own = ++steps[i];
            while (steps[(i + 1) % kThreads] < own) {
            }
        };
        for (std::size_t i = 0; i < kThreads; i += 2) {
            threads.emplace_back([&, i] {
                for (int k = 0; k < kSteps; k++) {
                    *error_place() = static_cast<int>(i) + 1;
                    step(i);
                    wrong += *error_place() != static_cast<int>(i) + 1;
                }
            });
            threads.emplace_back(
                [&, i] {
                    for (int k = 0; k < kSteps; k++)
                        step(i + 1);
                },
                THRUM_PREEMPT_YIELD);
        }
        threads.clear();
        EXPECT_EQ(wrong, 0);
        EXPECT_GE(preemptions(), workers == 1 ? static_cast<uint64_t>(kSteps) : 1U);
    }
}

// All that they run on is there for one after the other: on a worker without other threads, the same for all.
TEST_P(SafeMode, ThreadsOfModeYieldTakeNothingAlong) {
    const Preempting runtime(2, GetParam());
    Turns turns;
    using Place = std::pair<int *, pid_t>; // errno, and the kernel thread
    std::array<Place, 2> before{}, after{};
    const auto here = [] { return Place(error_place(), static_cast<pid_t>(syscall(SYS_gettid))); };
    const auto take = [&](std::size_t self) {
        before[self] = here();
        turns.take(static_cast<int>(self));
        after[self] = here();
    };
    thrum_attr_t attr = attr_queued();
    EXPECT_EQ(thrum_attr_set_worker(&attr, 1), 0);
    EXPECT_EQ(thrum_attr_set_preempt(&attr, THRUM_PREEMPT_YIELD), 0);
    Light one([&] { take(0); }, &attr), other([&] { take(1); }, &attr);
    one.join();
    other.join();
    EXPECT_GE(preemptions(), Events::kCount - 1U);
    EXPECT_EQ(before[0], before[1]);
    EXPECT_EQ(before, after);
}

// More than there are spare thread control blocks: they have to be made meanwhile.
TEST_P(SafeMode, ManyMayWaitInABusyLoop) {
    for (unsigned workers : {1U, 2U, 4U}) {
        const Preempting runtime(workers, GetParam());
        const int count = ULT_EMULATED ? 16 : 100; // the emulator has 32 timers
        std::atomic<int> arrived{0};
        std::vector<Thread> threads;
        for (int i = 0; i < count; i++)
            threads.emplace_back([&] {
                arrived++;
                while (arrived.load(std::memory_order_relaxed) < count) {
                }
            });
        threads.clear();
        EXPECT_GE(preemptions(), static_cast<uint64_t>(count) - workers);
    }
}

TEST_P(SafeMode, ThreadLocalsAreKept) {
    const Preempting runtime(2, GetParam(), kShort);
    std::atomic<int> wrong{0};
    std::vector<Thread> threads;
    for (int id = 1; id <= 8; id++)
        threads.emplace_back([&wrong, id] {
            const uint64_t end = in_ms(200);
            while (thrum_now() < end) {
                *error_place() = id;
                for (volatile int i = 0; i < 1000; i = i + 1) {
                }
                wrong += *error_place() != id;
            }
        });
    threads.clear();
    EXPECT_EQ(wrong, 0);
    EXPECT_GE(preemptions(), 8U);
}

// Those of the thread that called thrum_init belong to it alone.
TEST_P(SafeMode, ThePrimaryHasItsThreadLocalsForItself) {
    static thread_local int own;
    const Preempting runtime(1, GetParam());
    own = 17;
    int *const place = &own;
    std::atomic<int> same{0};
    std::vector<Thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&] {
            same += &own == place;
            own = 3;
            thrum_yield();
        });
    threads.clear();
    thrum_yield();
    EXPECT_EQ(same, 0);
    EXPECT_EQ(own, 17);
}

TEST_P(SafeMode, MallocAndStdioSurviveIt) {
    const Preempting runtime(2, GetParam(), kShort);
    std::atomic<int> wrong{0};
    std::vector<Thread> threads;
    for (int id = 0; id < 16; id++)
        threads.emplace_back([&wrong, id] {
            const uint64_t end = in_ms(300);
            unsigned random = static_cast<unsigned>(id) + 1;
            while (thrum_now() < end) {
                random = random * 1103515245 + 12345;
                std::string text(1 + (random >> 16) % 3000, static_cast<char>('a' + id));
                char line[64];
                snprintf(line, sizeof line, "%d %f", id, random * 0.5);
                wrong += atoi(line) != id ||
                         text.find_first_not_of(static_cast<char>('a' + id)) != std::string::npos;
            }
        });
    threads.clear();
    EXPECT_EQ(wrong, 0);
    EXPECT_GE(preemptions(), 16U);
}

TEST_P(SafeMode, ExceptionsInFlightAreKept) {
    const Preempting runtime(2, GetParam(), kShort);
    std::atomic<int> wrong{0};
    std::vector<Thread> threads;
    for (int id = 0; id < 8; id++)
        threads.emplace_back([&wrong, id] {
            const uint64_t end = in_ms(200);
            while (thrum_now() < end)
                try {
                    try {
                        throw id;
                    } catch (int) {
                        for (volatile int i = 0; i < 500; i = i + 1) {
                        }
                        throw;
                    }
                } catch (int caught) {
                    wrong += caught != id;
                }
        });
    threads.clear();
    EXPECT_EQ(wrong, 0);
    EXPECT_GE(preemptions(), 8U);
}

// --- thread-locals for life ---------------------------------------------------------------------------------

TEST_F(Interrupted, OwnThreadLocalsBeginAndEndWithTheThread) {
    Counted::made = Counted::gone = 0;
    {
        const Preempting runtime(2, THRUM_PREEMPT_OWN_TLS);
        for (int round = 0; round < 3; round++) {
            std::atomic<int> wrong{0};
            std::vector<Thread> threads;
            for (int i = 1; i <= 20; i++)
                threads.emplace_back([&wrong, i] {
                    int *const place = &counted.value;
                    wrong += counted.value != 7;
                    counted.value = i;
                    for (int k = 0; k < 50; k++) {
                        thrum_yield(); // perhaps to another worker
                        wrong += counted.value != i || &counted.value != place;
                    }
                });
            threads.clear();
            EXPECT_EQ(wrong, 0);
        }
        EXPECT_EQ(Counted::made, 60);
    }
    EXPECT_EQ(Counted::gone, 60);
}

TEST_F(Interrupted, OwnThreadLocalsEndWithOneThatExits) {
    Counted::made = Counted::gone = 0;
    {
        const Preempting runtime(1, THRUM_PREEMPT_OWN_TLS);
        Thread exits([] {
            counted.value = 1;
            thrum_exit(nullptr);
        });
        Thread joins([&] { exits.join(); });
    }
    EXPECT_EQ(Counted::made, 1);
    EXPECT_EQ(Counted::gone, 1);
}

// In a runtime that lends, by threads that request it; and again by reused ones.
TEST_F(Interrupted, OwnThreadLocalsByAttribute) {
    Counted::made = Counted::gone = 0;
    {
        const Preempting runtime(1);
        thrum_attr_t attr;
        thrum_attr_init(&attr);
        thrum_attr_set_preempt(&attr, THRUM_PREEMPT_OWN_TLS);
        auto run = [](void *) -> void * {
            counted.value++;
            return counted.value == 8 ? nullptr : &counted;
        };
        thrum_t thread = nullptr;
        void *result = &thread;
        ASSERT_EQ(thrum_spawn(&thread, &attr, run, nullptr), 0);
        ASSERT_EQ(thrum_join_keep(thread, &result), 0);
        EXPECT_EQ(result, nullptr);
        ASSERT_EQ(thrum_revive(thread, run, nullptr), 0);
        ASSERT_EQ(thrum_join(thread, &result), 0);
        EXPECT_EQ(result, nullptr);
    }
    EXPECT_EQ(Counted::made, 2);
    EXPECT_EQ(Counted::gone, 2);
}

// --- what is not preempted ----------------------------------------------------------------------------------

TEST_P(SafeMode, OfModeNoneOnlyAtSafepoints) {
    const Preempting runtime(1, GetParam());
    std::atomic<int> turns{0};
    std::atomic<bool> stop{false};
    Thread others([&] {
        while (!stop)
            turns++;
    });
    Thread stays(
        [&] {
            const int before = turns;
            const uint64_t end = in_ms(20);
            while (thrum_now() < end) {
            }
            EXPECT_EQ(turns, before);
            while (turns == before)
                thrum_safepoint();
            stop = true;
        },
        THRUM_PREEMPT_NONE);
}

// Also where a tool is in the way (ult.valgrind says so to this), under which no thread is preempted.
class Safepoints : public testing::TestWithParam<unsigned> {};

INSTANTIATE_TEST_SUITE_P(Modes, Safepoints, kSafeModes, name_of_mode);

TEST_P(Safepoints, TakeTurns) {
    const Preempting runtime(1, GetParam());
    std::atomic<int> last{0}, changes{0};
    const auto take_turns = [&](int self) {
        while (changes < 20) {
            changes += last.exchange(self) != self;
            thrum_safepoint();
        }
    };
    Thread one([&] { take_turns(1); }), other([&] { take_turns(2); });
    one.join();
    other.join();
    EXPECT_EQ(preemptions() == 0, tool_forbids_preemption());
}

TEST_P(SafeMode, ARegionPutsItOff) {
    const Preempting runtime(1, GetParam());
    std::atomic<int> turns{0};
    std::atomic<bool> stop{false};
    Thread others([&] {
        while (!stop)
            turns++;
    });
    Thread stays([&] {
        uint64_t count = preemptions();
        for (int i = 0; i < 1000 && preemptions() == count; i++) { // until a tick comes within a region
            thrum_nopreempt_begin();
            thrum_nopreempt_begin();
            thrum_nopreempt_end();
            const int before = turns;
            const uint64_t end = in_ms(20);
            while (thrum_now() < end) {
            }
            EXPECT_EQ(turns, before);
            count = preemptions();
            thrum_nopreempt_end();
        }
        EXPECT_GT(preemptions(), count); // the tick that came was not lost
        stop = true;
    });
}

// The count of regions is the kernel thread's: a thread that left it in one would leave that behind, too.
TEST_P(SafeMode, InARegionNoOtherThreadRuns) {
    const Preempting runtime(2, GetParam());
    std::atomic<bool> over{false};
    std::atomic<thrum_t> suspended{nullptr};
    Thread waits([&] {
        suspended = thrum_self();
        while (!over)
            EXPECT_EQ(thrum_suspend(), 0);
    });
    Thread stays([&] {
        const thrum_t self = thrum_self();
        EXPECT_EQ(thrum_migrate(self, 0), 0);
        while (suspended == nullptr) {
        }
        thrum_nopreempt_begin();
        for (int i = 0; i < 1000; i++) {
            thrum_yield();
            thrum_switch_to(suspended);
            EXPECT_EQ(thrum_migrate(self, static_cast<unsigned>(i) % 2), 0);
            EXPECT_EQ(thrum_worker_self(), 0);
        }
        thrum_nopreempt_end();
        while (thrum_worker_self() != 1) { // where it was told to go, as soon as it is preempted
        }
        over = true;
        thrum_resume(suspended);
    });
    Thread computes([&] { wait_for(over); }); // so that there are ticks
    Thread computes_too([&] { wait_for(over); });
    stays.join();
}

TEST_P(SafeMode, ASpawnInARegionRunsAfterIt) {
    const Preempting runtime(1, GetParam());
    Thread makes([] {
        std::atomic<bool> has_run{false};
        thrum_t child;
        const auto run = [](void *flag) -> void * {
            *static_cast<std::atomic<bool> *>(flag) = true;
            return nullptr;
        };
        thrum_nopreempt_begin();
        EXPECT_EQ(thrum_spawn(&child, nullptr, run, &has_run), 0);
        EXPECT_FALSE(has_run);
        thrum_nopreempt_end();
        while (!has_run) { // it is preempted for it
        }
        EXPECT_EQ(thrum_join(child, nullptr), 0);
    });
}

// A scheduler's function too: what it would run goes back to its pool.
TEST_P(SafeMode, InARegionASchedulerRunsNoThread) {
    const Preempting runtime(1, GetParam());
    thrum_pool_t pool;
    ASSERT_EQ(thrum_pool_create(&pool, THRUM_POOL_FIFO), 0);
    std::atomic<int> seen_in_region{-1}, ran{0};
    struct Seen {
        thrum_pool_t pool;
        std::atomic<int> &in_region, &ran;
    } seen{pool, seen_in_region, ran};
    thrum_sched_t sched;
    const auto run = [](thrum_sched_t self, void *data) {
        auto *const all = static_cast<Seen *>(data);
        while (!thrum_sched_stopping(self)) {
            const thrum_t unit = thrum_pool_pop(all->pool);
            if (unit == nullptr) {
                thrum_sched_idle(self);
                continue;
            }
            if (all->in_region == -1) {
                thrum_nopreempt_begin();
                thrum_run(unit);
                thrum_sched_idle(self);
                all->in_region = all->ran.load();
                thrum_nopreempt_end();
            } else {
                thrum_run(unit);
            }
        }
    };
    ASSERT_EQ(thrum_sched_create_user(&sched, run, &seen, &pool, 1), 0);
    thrum_t stacked, thread;
    ASSERT_EQ(thrum_sched_spawn(&stacked, nullptr, sched), 0);
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    thrum_attr_set_pool(&attr, pool);
    const auto note = [](void *count) -> void * {
        ++*static_cast<std::atomic<int> *>(count);
        return nullptr;
    };
    ASSERT_EQ(thrum_spawn(&thread, &attr, note, &ran), 0);
    EXPECT_EQ(thrum_join(thread, nullptr), 0);
    EXPECT_EQ(seen_in_region, 0);
    EXPECT_EQ(ran, 1);
    thrum_sched_stop(sched);
    EXPECT_EQ(thrum_join(stacked, nullptr), 0);
    EXPECT_EQ(thrum_sched_destroy(sched), 0);
    EXPECT_EQ(thrum_pool_destroy(pool), 0);
}

TEST_P(SafeMode, AThreadThatIsAloneIsNotInterrupted) {
    const Preempting runtime(2, GetParam(), kShort);
    uint64_t before = 0, after = 0;
    Thread alone([&] {
        uint64_t end = in_ms(20);
        while (thrum_now() < end) {
        }
        before = ticks();
        end = in_ms(100);
        while (thrum_now() < end) {
        }
        after = ticks();
    });
    alone.join();
    // The monitor may have been about to send one when no more were due.
    const char *source = getenv("THRUM_TICK");
    EXPECT_LE(after - before, source != nullptr && strcmp(source, "monitor") == 0 ? 1U : 0U);
}

// --- ... and is not, when there is something to do ----------------------------------------------------------

// A pool that keeps a thread back, whose worker has another one that computes.
TEST_P(SafeMode, APoolIsAskedWhenItSaysSoBesideComputingThreads) {
    const Preempting runtime(1, GetParam());
    KeepingPool keeps = KeepingPool::for_a_time(30 * THRUM_MS);
    const PoolOf other(THRUM_POOL_FIFO);
    const SchedOn sched(0, sched_of(THRUM_SCHED_ROUND_ROBIN, {other.pool, keeps.pool()}));
    std::atomic<bool> came{false};
    const thrum_attr_t computes = other.attr(), waits = attr_pool(keeps.pool());
    Light computing([&] { wait_for(came); }, &computes);
    Light coming([&] { came = true; }, &waits);
}

TEST_P(SafeMode, ATimerFiresBesideComputingThreads) {
    const Preempting runtime(1, GetParam());
    std::atomic<bool> flag{false};
    Thread sleeps([&] {
        thrum_sleep(30 * THRUM_MS);
        flag = true;
    });
    Thread waits([&] { wait_for(flag); });
}

TEST_P(SafeMode, ExternalWorkIsRunBesideComputingThreads) {
    const Preempting runtime(1, GetParam());
    std::atomic<bool> flag{false};
    std::thread outside([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(30)); // the only worker rests by now
        Thread sets([&] { flag = true; });
    });
    wait_for(flag);
    Thread joins([&] {
        while (!eventually([] { return true; })) {
        }
    });
    joins.join();
    outside.join();
}

TEST_P(SafeMode, AShorterSliceThanTheRuntimesIsKept) {
    const Preempting runtime(1, GetParam(), THRUM_SLICE_MAX);
    std::atomic<int> asked{0}, answered{0};
    Events events;
    events.note();
    Thread asks(
        [&] {
            for (int i = 1; i <= Events::kCount; i++) {
                asked = i;
                while (answered < i) {
                }
                events.note();
            }
        },
        THRUM_PREEMPT_DEFAULT, kSlice);
    Thread answers([&] {
        for (int i = 1; i <= Events::kCount; i++) {
            while (asked < i)
                thrum_yield();
            answered = i;
        }
    });
    asks.join();
    answers.join();
    events.expect_at_once();
}

// ... and ticks that come for that are no end of the others'.
TEST_P(SafeMode, AShorterSliceIsNotThatOfOthers) {
    const Preempting runtime(1, GetParam(), THRUM_SLICE_MAX);
    std::atomic<int> turns{0};
    std::atomic<bool> over{false};
    Thread shorter(
        [&] {
            while (!over)
                turns++;
        },
        THRUM_PREEMPT_DEFAULT, kSlice);
    Thread longer([&] {
        while (turns == 0)
            thrum_yield();
        const int before = turns;
        const uint64_t some = ticks() + 10, end = in_us(100 * kSlice);
        while (thrum_now() < end || ticks() < some) {
        }
        EXPECT_EQ(turns, before);
        over = true;
    });
}

// --- what goes first goes at once ---------------------------------------------------------------------------

// One worker, or all, with pools of their own; slices of a second.
class Ranked {
  public:
    Ranked(unsigned mode, unsigned workers, enum thrum_pool_kind kind, unsigned slice = THRUM_SLICE_MAX)
        : runtime_(workers + 1, mode, slice) {
        for (thrum_pool_t &pool : pools_)
            EXPECT_EQ(thrum_pool_create(&pool, kind), 0);
        for (unsigned i = 1; i <= workers; i++) {
            thrum_sched_t sched = nullptr;
            EXPECT_EQ(thrum_sched_create(&sched, THRUM_SCHED_FIRST, pools_, 2), 0);
            EXPECT_EQ(thrum_worker_set_sched(i, sched), 0);
            scheds_.push_back(sched);
        }
    }
    ~Ranked() {
        for (unsigned i = 1; i <= scheds_.size(); i++)
            EXPECT_EQ(thrum_worker_set_sched(i, nullptr), 0);
    }
    Ranked(const Ranked &) = delete;

    Light spawn(unsigned pool, unsigned priority, Light::Work work, unsigned mode = THRUM_PREEMPT_DEFAULT) {
        thrum_attr_t attr;
        thrum_attr_init(&attr);
        thrum_attr_set_pool(&attr, pools_[pool]);
        EXPECT_EQ(thrum_attr_set_priority(&attr, priority), 0);
        EXPECT_EQ(thrum_attr_set_preempt(&attr, mode), 0);
        return Light(std::move(work), &attr);
    }

    thrum_sched_t sched(unsigned worker) const { return scheds_[worker - 1]; }
    thrum_pool_t pool(unsigned i) const { return pools_[i]; }

  private:
    Preempting runtime_;
    thrum_pool_t pools_[2] = {};
    std::vector<thrum_sched_t> scheds_;
};

TEST_P(SafeMode, ASchedulersSliceIsThatOfWhatItRuns) {
    Ranked ranked(GetParam(), 1, THRUM_POOL_FIFO);
    EXPECT_EQ(thrum_sched_set_slice(ranked.sched(1), kSlice), 0);
    Turns turns;
    Light first = ranked.spawn(0, 0, [&] { turns.take(0); });
    Light second = ranked.spawn(0, 0, [&] { turns.take(1); });
    first.join();
    second.join();
    turns.expect_at_once();
    EXPECT_EQ(thrum_sched_set_slice(ranked.sched(1), THRUM_SLICE_MIN - 1), EINVAL);
    EXPECT_EQ(thrum_sched_set_slice(ranked.sched(1), THRUM_SLICE_MAX + 1), EINVAL);
    EXPECT_EQ(thrum_sched_set_slice(ranked.sched(1), 0), 0);
}

TEST_P(SafeMode, AndThatOfOneThatIsStacked) {
    Ranked outer(GetParam(), 1, THRUM_POOL_FIFO);
    thrum_pool_t inner = nullptr;
    thrum_sched_t sched = nullptr;
    ASSERT_EQ(thrum_pool_create(&inner, THRUM_POOL_FIFO), 0);
    ASSERT_EQ(thrum_sched_create(&sched, THRUM_SCHED_FIRST, &inner, 1), 0);
    ASSERT_EQ(thrum_sched_set_slice(sched, kSlice), 0);
    Turns turns;
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    thrum_attr_set_pool(&attr, inner);
    Light first([&] { turns.take(0); }, &attr);
    Light second([&] { turns.take(1); }, &attr);
    thrum_t thread = nullptr;
    thrum_attr_set_pool(&attr, outer.pool(0));
    ASSERT_EQ(thrum_sched_spawn(&thread, &attr, sched), 0);
    first.join();
    second.join();
    turns.expect_at_once();
    thrum_sched_stop(sched);
    EXPECT_EQ(thrum_join(thread, nullptr), 0);
    EXPECT_EQ(thrum_sched_destroy(sched), 0);
    EXPECT_EQ(thrum_pool_destroy(inner), 0);
}

// Computes until it is over. That it does so now the primary sees from its own worker: where the one below is about
// to look for something to run, no thread needs to be interrupted.
class Computes {
  public:
    void operator()() {
        while (!over_)
            steps_++;
    }
    void wait_until_seen() const {
        for (const int before = steps_; steps_ == before;) {
        }
    }
    void end() { over_ = true; }

  private:
    std::atomic<int> steps_{0};
    std::atomic<bool> over_{false};
};

TEST_P(SafeMode, AThreadOfHigherPriorityRunsAtOnce) {
    Ranked ranked(GetParam(), 1, THRUM_POOL_PRIORITY);
    Computes computes;
    Events events;
    events.note();
    Light low = ranked.spawn(0, 1, std::ref(computes));
    for (int i = 0; i < Events::kCount; i++) {
        std::atomic<bool> flag{false};
        computes.wait_until_seen();
        Light high = ranked.spawn(0, 2, [&] { flag = true; });
        wait_for(flag);
        events.note();
    }
    computes.end();
    events.expect_at_once();
}

// Signals that the process has been sent and not got, and those that its timers keep room for.
long signals_queued() {
    std::ifstream status("/proc/self/status");
    std::string line;
    while (std::getline(status, line))
        if (line.rfind("SigQ:", 0) == 0)
            return std::stol(line.substr(5));
    ADD_FAILURE() << "the kernel does not tell";
    return 0;
}

// Of signals that are queued only so many may be; and each would be one tick more. How many others of this user have is
// counted, too.
TEST_P(SafeMode, AThreadToInterruptIsSentOneSignal) {
    Ranked ranked(GetParam(), 1, THRUM_POOL_PRIORITY);
    long fewest = LONG_MAX;
    for (int round = 0; round < 5; round++) {
        std::atomic<bool> deaf{false}, over{false};
        Light low = ranked.spawn(0, 1, [&] {
            sigset_t all, before;
            sigfillset(&all);
            pthread_sigmask(SIG_SETMASK, &all, &before);
            deaf = true;
            wait_for(over);
            pthread_sigmask(SIG_SETMASK, &before, nullptr);
        });
        wait_for(deaf);
        const long before = signals_queued();
        std::vector<Light> high;
        for (int i = 0; i < 100; i++)
            high.push_back(ranked.spawn(0, 2, [] {}));
        fewest = std::min(fewest, signals_queued() - before);
        over = true;
    }
    EXPECT_LT(fewest, 10);
}

// The one that comes last, not the one that runs another of the first pool: that does not yield at ticks of its own
// either.
TEST_P(SafeMode, AThreadOfAnEarlierPoolRunsAtOnce) {
    Ranked ranked(GetParam(), 2, THRUM_POOL_FIFO);
    Computes before, behind;
    Events events;
    events.note();
    Light first = ranked.spawn(0, 0, std::ref(before), THRUM_PREEMPT_NONE);
    before.wait_until_seen();
    Light second = ranked.spawn(1, 0, std::ref(behind));
    for (int i = 0; i < Events::kCount; i++) {
        std::atomic<bool> flag{false};
        behind.wait_until_seen();
        Light sets = ranked.spawn(0, 0, [&] { flag = true; });
        wait_for(flag);
        events.note();
    }
    before.end();
    behind.end();
    events.expect_at_once();
}

// A worker that the push wakes, to look at that pool, comes after the one to be interrupted.
TEST_P(SafeMode, AndWhereAStackedSchedulerWaitsForThatPool) {
    Ranked ranked(GetParam(), 1, THRUM_POOL_FIFO);
    const thrum_pool_t first = ranked.pool(0);
    thrum_sched_t sched = nullptr;
    thrum_t stacked = nullptr;
    thrum_attr_t attr = attr_pool(ranked.pool(1));
    ASSERT_EQ(thrum_sched_create(&sched, THRUM_SCHED_FIRST, &first, 1), 0);
    ASSERT_EQ(thrum_sched_spawn(&stacked, &attr, sched), 0);
    Events events;
    events.note();
    for (int i = 0; i < Events::kCount; i++) {
        std::atomic<bool> flag{false};
        Computes behind;
        thrum_sleep(THRUM_MS); // it waits
        Light computes = ranked.spawn(1, 0, std::ref(behind));
        behind.wait_until_seen();
        Light sets = ranked.spawn(0, 0, [&] { flag = true; });
        wait_for(flag);
        events.note();
        behind.end();
    }
    thrum_sched_stop(sched);
    EXPECT_EQ(thrum_join(stacked, nullptr), 0);
    EXPECT_EQ(thrum_sched_destroy(sched), 0);
    events.expect_at_once();
}

TEST_P(SafeMode, AThreadOfAnEarlierPoolThatHasSleptRunsAtOnce) {
    Ranked ranked(GetParam(), 1, THRUM_POOL_FIFO);
    std::atomic<bool> done{false};
    Events events;
    events.note();
    Light sleeps = ranked.spawn(0, 0, [&] {
        for (int i = 0; i < Events::kCount; i++) {
            thrum_sleep(5 * THRUM_MS);
            events.note();
        }
        done = true;
    });
    Light computes = ranked.spawn(1, 0, [&] { wait_for(done); });
    wait_for(done);
    events.expect_at_once();
}

// Those that have slept go behind it. A slice is 40 ticks, of which it lasts no more than 25, and sleeps end at 400 moments.
TEST_P(SafeMode, TheEndOfASleepIsNoPartOfASlice) {
    Ranked ranked(GetParam(), 1, THRUM_POOL_FIFO, 10000);
    ASSERT_EQ(thrum_sched_set_slice(ranked.sched(1), 400000), 0);
    const uint64_t begin = thrum_now();
    std::atomic<bool> done{false};
    std::atomic<uint64_t> preempted{1};
    std::vector<Light> sleep;
    for (unsigned i = 0; i < 400; i++)
        sleep.push_back(
            ranked.spawn(1, 0, [=] { thrum_sleep_until(begin + 100 * THRUM_MS + i * THRUM_MS / 4); }));
    Light computes = ranked.spawn(1, 0, [&] {
        const uint64_t before = preemptions();
        while (thrum_now() < begin + 250 * THRUM_MS) {
        }
        preempted = preemptions() - before;
        done = true;
    });
    wait_for(done);
    EXPECT_EQ(preempted, 0U);
}

// A tick of the caller's kernel thread, before which so many were lost.
void tick_behind(int lost) {
    siginfo_t info{};
    info.si_code = SI_TIMER;
    info.si_overrun = lost;
    EXPECT_EQ(syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), SIGRTMIN + 4, &info), 0);
}

// Where the CPU was away for a while it may be back for a microsecond when the next tick comes. A tick of the worker's own
// that comes meanwhile is no part of this.
TEST_P(SafeMode, AThreadFoundByALateTickIsNotPreemptedByTheNext) {
    constexpr uint64_t kPeriod = 100 * THRUM_MS;
    const Preempting runtime(1, GetParam(), kPeriod / THRUM_US);
    std::atomic<unsigned> turns_of_other{0};
    std::atomic<bool> done{false};
    Thread computes([&] {
        for (bool undisturbed = false; !undisturbed;) {
            thrum_yield();
            const uint64_t before = ticks(), begin = thrum_now();
            const unsigned turns = turns_of_other;
            tick_behind(3);
            tick_behind(0);
            const unsigned turns_then = turns_of_other;
            undisturbed = ticks() == before + 2 && thrum_now() < begin + kPeriod / 2;
            if (undisturbed) {
                EXPECT_EQ(turns_then, turns) << "it had no time to do anything";
                for (const uint64_t until = thrum_now() + kPeriod * 3 / 4; thrum_now() < until;) {
                }
                tick_behind(0);
                EXPECT_GT(turns_of_other, turns) << "it had";
            }
        }
        done = true;
    });
    Thread other([&] {
        while (!done) {
            turns_of_other++;
            thrum_yield();
        }
    });
    computes.join();
    other.join();
}

// The one that makes it is what it takes the place of.
TEST_P(SafeMode, AChildAheadOfItsCreatorRunsBeforeThatResumes) {
    Ranked ranked(GetParam(), 1, THRUM_POOL_PRIORITY);
    Light maker = ranked.spawn(0, 1, [&] {
        bool higher = false, lower = false;
        Light first = ranked.spawn(0, 2, [&] { higher = true; });
        EXPECT_TRUE(higher);
        Light second = ranked.spawn(0, 1, [&] { lower = true; });
        EXPECT_FALSE(lower);
    });
}

// --- when kernel threads run out ----------------------------------------------------------------------------

// A thread that waits in the kernel for a lock lets the preempted lock holder run, also where that is in a pool.
TEST_P(SafeMode, TheHolderOfALockRunsHoweverFewAreThere) {
    if (GetParam() == THRUM_PREEMPT_OWN_TLS)
        GTEST_SKIP() << "each of its threads needs one from the start";
    Ranked ranked(GetParam(), 1, THRUM_POOL_FIFO, kSlice);
    faults.create.after(0, 1 << 30, EAGAIN);
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    std::atomic<int> held{0};
    std::vector<Light> threads;
    for (int i = 0; i < 20; i++)
        threads.push_back(ranked.spawn(0, 0, [&] {
            for (int k = 0; k < 5; k++) {
                pthread_mutex_lock(&mutex);
                const uint64_t end = thrum_now() + THRUM_MS;
                while (thrum_now() < end) {
                }
                held++;
                pthread_mutex_unlock(&mutex);
            }
        }));
    threads.clear();
    EXPECT_EQ(held, 100);
    faults_clear();
}

// --- life ---------------------------------------------------------------------------------------------------

TEST_P(SafeMode, RuntimesFollowEachOther) {
    for (int i = 0; i < 20; i++) {
        const Preempting runtime(2, GetParam());
        std::atomic<bool> flag{false};
        Thread waits([&] { wait_for(flag); });
        Thread sets([&] { flag = true; });
    }
}

TEST_P(SafeMode, AtTheEndPreemptedThreadsLetGoOfLibcsLocks) {
    for (int i = 0; i < 5; i++) {
        std::atomic<bool> stop{false};
        std::atomic<int> left{0};
        {
            const Preempting runtime(2, GetParam(), kShort);
            for (int k = 0; k < 8; k++) {
                left++;
                auto run = [](void *arg) -> void * {
                    auto *flag = static_cast<std::atomic<bool> *>(arg);
                    while (!*flag) {
                        free(malloc(100000));
                        thrum_yield();
                    }
                    return nullptr;
                };
                EXPECT_EQ(thrum_spawn(nullptr, nullptr, run, &stop), 0);
            }
            const uint64_t end = in_ms(20);
            while (thrum_now() < end) {
            }
        }
        stop = true;
        free(malloc(100000)); // would wait for ever
    }
}

TEST_P(SafeMode, AWorkerThatIsAddedPreempts) {
    const Preempting runtime(1, GetParam());
    unsigned number = 0;
    ASSERT_EQ(thrum_worker_add(&number), 0);
    std::atomic<int> arrived{0};
    std::vector<Thread> threads;
    for (int i = 0; i < 8; i++)
        threads.emplace_back([&] {
            arrived++;
            while (arrived.load(std::memory_order_relaxed) < 8) {
            }
        });
    threads.clear();
    EXPECT_EQ(thrum_worker_stop(number), 0);
}

TEST_P(SafeMode, AChildOfForkContinues) {
    const Preempting runtime(2, GetParam(), kShort);
    std::vector<Thread> threads;
    for (int id = 0; id < 4; id++)
        threads.emplace_back([id] {
            for (int i = 0; i < 5; i++) {
                for (const uint64_t end = in_us(3 * kShort); thrum_now() < end;) {
                }
                const pid_t child = fork();
                if (child == 0) {
                    std::string text(1000, static_cast<char>('a' + id));
                    _exit(text[999] == 'a' + id ? 0 : 1);
                }
                int status = -1;
                while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
                }
                EXPECT_EQ(status, 0);
            }
        });
    threads.clear();
    EXPECT_GE(preemptions(), 4U);
}

// A thread of a pool that no scheduler serves any more is lost at the end, even if it holds a lock of malloc's.
TEST_P(SafeMode, TheEndDoesNotWaitForWhatIsLostInPools) {
    for (int i = 0; i < 5; i++) {
        const Preempting runtime(2, GetParam(), kShort);
        thrum_pool_t pool = nullptr;
        ASSERT_EQ(thrum_pool_create(&pool, THRUM_POOL_FIFO), 0);
        thrum_sched_t sched = nullptr;
        ASSERT_EQ(thrum_sched_create(&sched, THRUM_SCHED_FIRST, &pool, 1), 0);
        ASSERT_EQ(thrum_worker_set_sched(1, sched), 0);
        thrum_attr_t attr;
        thrum_attr_init(&attr);
        thrum_attr_set_pool(&attr, pool);
        std::atomic<int> begun{0};
        for (int k = 0; k < 3; k++) {
            auto run = [](void *arg) -> void * {
                ++*static_cast<std::atomic<int> *>(arg);
                for (volatile bool for_ever = true; for_ever;) {
                }
                return nullptr;
            };
            ASSERT_EQ(thrum_spawn(nullptr, &attr, run, &begun), 0);
        }
        while (begun < 3) {
        }
        ASSERT_EQ(thrum_worker_set_sched(1, nullptr), 0);
        const uint64_t before = preemptions();
        while (preemptions() < before + 3) { // they go to the pool, which has no scheduler
            const uint64_t end = in_ms(5);
            while (thrum_now() < end) {
            }
            if (thrum_pool_size(pool) == 3)
                break;
        }
    }
}

TEST_F(Interrupted, ATaskletThatIsUsedAgainHasNoThreadLocalsOfItsOwn) {
    const Preempting runtime(1, THRUM_PREEMPT_OWN_TLS);
    Counted::made = 0;
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    thrum_attr_set_flags(&attr, THRUM_SPAWN_TASKLET);
    auto run = [](void *) -> void * { return nullptr; };
    thrum_t tasklet = nullptr;
    ASSERT_EQ(thrum_spawn(&tasklet, &attr, run, nullptr), 0);
    ASSERT_EQ(thrum_join_keep(tasklet, nullptr), 0);
    static thread_local int mine;
    mine = 77;
    int *const place = &mine;
    ASSERT_EQ(thrum_revive(tasklet, run, nullptr), 0);
    ASSERT_EQ(thrum_join(tasklet, nullptr), 0);
    EXPECT_EQ(&mine, place);
    EXPECT_EQ(mine, 77);
}

// By itself, too: what it names is the worker's, or a donor.
TEST_P(SafeMode, AThreadThatCancelsItsKernelThreadContinues) {
    const Preempting runtime(2, GetParam());
    Thread cancels([] {
        pthread_cancel(pthread_self());
        pthread_testcancel();
        thrum_yield();
        pthread_testcancel();
    });
    cancels.join();
}

// --- what the system has not --------------------------------------------------------------------------------

// Timers take of what signals may be queued.
TEST_P(SafeMode, WithoutTimersThereIsNoRuntime) {
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_SIGPENDING, &before), 0);
    const rlimit none{0, before.rlim_max};
    const thrum_config config{2, 0, {GetParam(), 0, 0, 0}, {}};
    ASSERT_EQ(setrlimit(RLIMIT_SIGPENDING, &none), 0);
    EXPECT_EQ(thrum_init(&config), EAGAIN);
    ASSERT_EQ(setrlimit(RLIMIT_SIGPENDING, &before), 0);
    const Preempting runtime(1, GetParam());
    unsigned number = 0;
    ASSERT_EQ(setrlimit(RLIMIT_SIGPENDING, &none), 0);
    EXPECT_TRUE(thrum_worker_add(&number) == EAGAIN ||
                GetParam() == THRUM_PREEMPT_KLT); // it may have some left
    ASSERT_EQ(setrlimit(RLIMIT_SIGPENDING, &before), 0);
}

// So many kernel threads, and no more: each number of them up to what it takes.
TEST_P(SafeMode, WithTooFewKernelThreadsThereIsNoRuntime) {
    const thrum_config config{2, 0, {GetParam(), 0, 0, 0}, {}};
    int error = EAGAIN;
    for (int well = 0; error != 0; well++) {
        ASSERT_LT(well, 100);
        faults.create.after(well, 1, EAGAIN);
        error = thrum_init(&config);
        EXPECT_TRUE(error == 0 || error == EAGAIN);
    }
    faults_clear();
    Thread computes([] {});
    computes.join();
    EXPECT_EQ(thrum_fini(), 0);
}

// --- bad input ----------------------------------------------------------------------------------------------

TEST(Preempt, AttributesAreChecked) {
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    EXPECT_EQ(thrum_attr_set_preempt(&attr, THRUM_PREEMPT_KLT + 1), EINVAL);
    EXPECT_EQ(thrum_attr_set_slice(&attr, THRUM_SLICE_MIN - 1), EINVAL);
    EXPECT_EQ(thrum_attr_set_slice(&attr, THRUM_SLICE_MAX + 1), EINVAL);
    EXPECT_EQ(thrum_attr_set_slice(&attr, THRUM_SLICE_MIN), 0);
    EXPECT_EQ(thrum_attr_set_preempt(&attr, THRUM_PREEMPT_LEND), 0);
    const Preempting runtime(1, THRUM_PREEMPT_NONE);
    auto nothing = [](void *) -> void * { return nullptr; };
    thrum_t thread = nullptr;
    EXPECT_EQ(thrum_spawn(&thread, &attr, nothing, nullptr), EINVAL);
}

TEST(Preempt, TheConfigurationIsChecked) {
    for (const thrum_preempt_config &preempt : {thrum_preempt_config{THRUM_PREEMPT_KLT + 1, 0, 0, 0},
                                                thrum_preempt_config{THRUM_PREEMPT_LEND, 49, 0, 0},
                                                thrum_preempt_config{THRUM_PREEMPT_LEND, 1000001, 0, 0},
                                                thrum_preempt_config{THRUM_PREEMPT_LEND, 0, 9, 0},
                                                thrum_preempt_config{THRUM_PREEMPT_LEND, 0, 0, SIGUSR1}}) {
        const thrum_config config{1, 0, preempt, {}};
        EXPECT_EQ(thrum_init(&config), EINVAL);
    }
}

namespace {
// Starts a runtime with this in the environment; what it says on stderr.
std::string line_of(const char *name, const char *value, int expected) {
    setenv(name, value, 1);
    testing::internal::CaptureStderr();
    EXPECT_EQ(thrum_init(nullptr), expected);
    std::string line = testing::internal::GetCapturedStderr();
    if (expected == 0) {
        EXPECT_EQ(thrum_fini(), 0);
    }
    unsetenv(name);
    return line;
}
} // namespace

// Where that is cheap, and no tool keeps all from being preempted.
TEST_F(Interrupted, UnlessToldTheRuntimePreempts) {
    if (std::getenv("THRUM_PREEMPT") != nullptr)
        GTEST_SKIP() << "told by the environment";
    const auto preempts = [](unsigned mode) {
        const thrum_config config{1, 0, {mode, 0, 0, 0}, {}};
        EXPECT_EQ(thrum_init(&config), 0);
        std::atomic<bool> flag{false};
        Thread waits([&] {
            const uint64_t end = in_ms(2000);
            Thread sets([&] { flag = thrum_now() < end; });
            while (!flag && thrum_now() < end) {
            }
        });
        waits.join();
        EXPECT_EQ(thrum_fini(), 0);
        return flag.load();
    };
    EXPECT_EQ(preempts(THRUM_PREEMPT_DEFAULT), default_preempts());
    EXPECT_FALSE(preempts(THRUM_PREEMPT_NONE));
}

TEST(Preempt, TheEnvironmentIsChecked) {
    EXPECT_EQ(line_of("THRUM_PREEMPT", "sometimes", EINVAL),
              "thrum: THRUM_PREEMPT is 'sometimes'; it takes auto, none, yield, lend, own-tls or klt\n");
    EXPECT_EQ(line_of("THRUM_PREEMPT", "lend", 0), "");
    setenv("THRUM_PREEMPT", "lend", 1);
    EXPECT_EQ(line_of("THRUM_SLICE", "49", EINVAL),
              "thrum: THRUM_SLICE is '49'; it takes microseconds, from 50 to 1000000\n");
    EXPECT_EQ(line_of("THRUM_SLICE", "1ms", EINVAL),
              "thrum: THRUM_SLICE is '1ms'; it takes microseconds, from 50 to 1000000\n");
    EXPECT_EQ(line_of("THRUM_SLICE", "500", 0), "");
    EXPECT_EQ(line_of("THRUM_TICK", "sundial", EINVAL),
              "thrum: THRUM_TICK is 'sundial'; it takes auto, timer or monitor\n");
    EXPECT_EQ(line_of("THRUM_TICK", "monitor", 0), "");
    EXPECT_EQ(line_of("THRUM_TICK", "auto", 0), "");
    EXPECT_EQ(line_of("THRUM_SIGNAL", "10", EINVAL),
              "thrum: THRUM_SIGNAL is '10'; it takes the number of a real-time signal, or rtmin+N\n");
    EXPECT_EQ(line_of("THRUM_SIGNAL", "rtmin+40", EINVAL),
              "thrum: THRUM_SIGNAL is 'rtmin+40'; it takes the number of a real-time signal, or rtmin+N\n");
    EXPECT_EQ(line_of("THRUM_SIGNAL", "rtmin+6", 0), "");
    EXPECT_EQ(line_of("THRUM_SIGNAL", "40", 0), "");
    unsetenv("THRUM_PREEMPT");
}
