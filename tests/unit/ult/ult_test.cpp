// SPDX-License-Identifier: Apache-2.0
//
// Spawn, join, detach, yield, and what belongs to a ULT while others run.
#include <errno.h>
#include <fenv.h>
#include <sys/syscall.h>
#include <thrum/worker.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>

#include "checked.h"
#include "depots.h"
#include "ult.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace {

void *same(void *arg) {
    return arg;
}

void *number(std::uintptr_t value) {
    return reinterpret_cast<void *>(value); // NOLINT(performance-no-int-to-ptr)
}

// Never inlined: a caller that has been moved asks anew.
__attribute__((noinline)) long kernel_thread() {
    return syscall(SYS_gettid);
}

// Spawns, expecting no error.
thrum_t spawn(void *(*fn)(void *), void *arg, const thrum_attr_t *attr = nullptr) {
    thrum_t thread = nullptr;
    EXPECT_EQ(thrum_spawn(&thread, attr, fn, arg), 0);
    return thread;
}

void *join(thrum_t thread) {
    void *result = nullptr;
    EXPECT_EQ(thrum_join(thread, &result), 0);
    return result;
}

// From the test's own thread, which is bound to its worker, and from a ULT that is not.
void from_both(const Light::Work &body) {
    body();
    in_ult(body);
}

// --- spawn and join ---------------------------------------------------------------------------------------

class Spawn : public Ult {};
class SpawnInTurn : public UltInTurn {};

TEST_P(Spawn, JoinGivesTheResult) {
    from_both([] {
        for (std::uintptr_t i = 0; i < 1000; i++)
            ASSERT_EQ(join(spawn(same, number(i))), number(i));
    });
}

TEST_P(Spawn, ManyAtOnceGiveEachItsResult) {
    from_both([] {
        std::vector<thrum_t> threads;
        for (std::uintptr_t i = 0; i < 5000; i++)
            threads.push_back(spawn(same, number(i)));
        for (std::uintptr_t i = 0; i < 5000; i++)
            ASSERT_EQ(join(threads[i]), number(i));
    });
}

TEST_P(Spawn, LastIsJoinedFirst) {
    from_both([] {
        const thrum_attr_t queued = attr_queued();
        std::vector<thrum_t> threads;
        for (std::uintptr_t i = 0; i < 3000; i++)
            threads.push_back(spawn(same, number(i), i % 3 == 0 ? &queued : nullptr));
        for (std::uintptr_t i = threads.size(); i-- > 0;)
            ASSERT_EQ(join(threads[i]), number(i));
    });
}

TEST_P(Spawn, ResultIsNotAskedFor) {
    from_both([] { EXPECT_EQ(thrum_join(spawn(same, nullptr), nullptr), 0); });
}

// On one worker the parent is not stolen: the child has ended when spawn returns.
TEST_P(SpawnInTurn, ChildRunsAtOnce) {
    if (workers() > 1)
        GTEST_SKIP() << "a parent that is stolen goes on beside its child";
    in_ult([] {
        bool ran = false;
        const Light child([&] { ran = true; });
        EXPECT_TRUE(ran);
    });
}

TEST_P(SpawnInTurn, QueuedChildWaits) {
    if (workers() > 1)
        GTEST_SKIP() << "another worker takes it at once";
    from_both([] {
        const thrum_attr_t queued = attr_queued();
        bool ran = false;
        Light child([&] { ran = true; }, &queued);
        EXPECT_FALSE(ran);
        child.join();
        EXPECT_TRUE(ran);
    });
}

TEST_P(Spawn, DetachedOnesAllRun) {
    from_both([] {
        std::atomic<int> ran{0};
        for (int i = 0; i < 2000; i++)
            detached([&] { ran++; });
        EXPECT_TRUE(eventually([&] { return ran == 2000; }));
    });
}

TEST_P(Spawn, SelfIsTheHandle) {
    from_both([] {
        for (int i = 0; i < 100; i++) {
            thrum_t seen = nullptr;
            Light child([&] { seen = thrum_self(); });
            const thrum_t handle = child.handle();
            child.join();
            ASSERT_EQ(seen, handle);
        }
    });
    EXPECT_NE(thrum_self(), nullptr);
}

TEST_P(Spawn, SelfOfAnExternalThreadIsNull) {
    thrum_t seen = thrum_self();
    std::thread([&] { seen = thrum_self(); }).join();
    EXPECT_EQ(seen, nullptr);
}

struct Fib {
    int n;
    long result;
    bool queued;
};

void *fib(void *arg) {
    auto *self = static_cast<Fib *>(arg);
    if (self->n < 2) {
        self->result = self->n;
        return nullptr;
    }
    Fib one{self->n - 1, 0, self->queued}, two{self->n - 2, 0, self->queued};
    const thrum_attr_t queued = attr_queued();
    const thrum_t child = spawn(fib, &one, self->queued ? &queued : nullptr);
    fib(&two);
    join(child);
    self->result = one.result + two.result;
    return nullptr;
}

TEST_P(Spawn, Fib) {
    from_both([] {
        for (const bool queued : {false, true}) {
            Fib all{kStressDivisor > 1 ? 12 : 20, 0, queued};
            fib(&all);
            EXPECT_EQ(all.result, kStressDivisor > 1 ? 144 : 6765);
        }
    });
}

struct Skynet {
    long first, size, sum;
};

void *skynet(void *arg) {
    auto *self = static_cast<Skynet *>(arg);
    if (self->size == 1) {
        self->sum = self->first;
        return nullptr;
    }
    std::array<Skynet, 10> parts;
    std::array<thrum_t, 10> threads;
    for (std::size_t i = 0; i < 10; i++) {
        parts[i] = {self->first + static_cast<long>(i) * self->size / 10, self->size / 10, 0};
        threads[i] = spawn(skynet, &parts[i]);
    }
    for (std::size_t i = 0; i < 10; i++) {
        join(threads[i]);
        self->sum += parts[i].sum;
    }
    return nullptr;
}

TEST_P(Spawn, Skynet) {
    from_both([] {
        const long size = kStressDivisor > 1 ? 1000 : 100000;
        Skynet all{0, size, 0};
        skynet(&all);
        EXPECT_EQ(all.sum, size * (size - 1) / 2);
    });
}

// --- many that wait ---------------------------------------------------------------------------------------

struct Gate {
    thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
    thrum_cond_t opened = THRUM_COND_INITIALIZER;
    bool open = false;
    std::atomic<long> waiting{0};

    void pass() {
        thrum_mutex_lock(&mutex);
        waiting++;
        while (!open)
            thrum_cond_wait(&opened, &mutex);
        thrum_mutex_unlock(&mutex);
    }
    void let_all_pass() {
        thrum_mutex_lock(&mutex);
        open = true;
        thrum_cond_broadcast(&opened);
        thrum_mutex_unlock(&mutex);
    }
};

void *pass(void *gate) {
    static_cast<Gate *>(gate)->pass();
    return gate;
}

TEST_P(Spawn, HundredThousandWaitAtOnce) {
    in_ult([] {
        Gate gate;
        std::vector<thrum_t> threads(static_cast<std::size_t>(100000 / kStressDivisor));
        for (thrum_t &thread : threads)
            thread = spawn(pass, &gate);
        const auto all = static_cast<long>(threads.size());
        ASSERT_TRUE(eventually([&] { return gate.waiting == all; }));
        gate.let_all_pass();
        for (const thrum_t thread : threads)
            ASSERT_EQ(join(thread), &gate);
    });
}

TEST_P(Spawn, QueueOfHundredThousand) {
    from_both([] {
        const thrum_attr_t queued = attr_queued();
        std::vector<thrum_t> threads(static_cast<std::size_t>(100000 / kStressDivisor));
        for (std::size_t i = 0; i < threads.size(); i++)
            threads[i] = spawn(same, number(i), &queued);
        for (std::size_t i = 0; i < threads.size(); i++)
            ASSERT_EQ(join(threads[i]), number(i));
    });
}

// --- join -------------------------------------------------------------------------------------------------

// A maker that another worker has taken does not go on from worker to worker with each child: the next ones wait there.
TEST_P(SpawnInTurn, TheNextChildOfAMakerThatWasTakenWaits) {
    if (workers() == 1)
        GTEST_SKIP() << "nobody takes it";
    in_ult([] {
        const auto until = [](const std::atomic<bool> &flag) {
            while (!flag) {
            }
        };
        int taken = 0;
        EXPECT_TRUE(eventually([&] {
            std::atomic<bool> goes_on{false}, over{false};
            std::atomic<int> ran_on{-1};
            const int before = thrum_worker_self();
            const Light first([&] { until(goes_on); });
            goes_on = true;
            const int here = thrum_worker_self();
            if (here == before) // it was queued itself: what was taken before is not over
                return false;
            const Light next([&] {
                ran_on = thrum_worker_self();
                until(over);
            });
            EXPECT_NE(ran_on, here); // it waits, or others have taken it
            over = true;
            return ++taken == 20;
        }));
    });
}

class Join : public Ult {};

TEST_P(Join, OfOneselfIsADeadlock) {
    from_both([] {
        const thrum_t self = thrum_self();
        EXPECT_EQ(thrum_join(self, nullptr), EDEADLK);
    });
}

TEST_P(Join, OfOneThatWaits) {
    from_both([] {
        Gate gate;
        const thrum_t waiter = spawn(pass, &gate);
        Light opener([&] {
            EXPECT_TRUE(eventually([&] { return gate.waiting == 1; }));
            gate.let_all_pass();
        });
        EXPECT_EQ(join(waiter), &gate);
    });
}

TEST_P(Join, OfOneThatHasEndedLongAgo) {
    from_both([] {
        std::atomic<bool> ended{false};
        Light child([&] { ended = true; });
        EXPECT_TRUE(eventually([&] { return ended.load(); }));
        spin_us(200);
    });
}

int join_until_soon(thrum_t thread) {
    return thrum_join_until(thread, nullptr, thrum_now() + THRUM_MS);
}

void expect_not_joinable(thrum_t thread) {
    EXPECT_EQ(thrum_join(thread, nullptr), EINVAL);
    EXPECT_EQ(thrum_join_keep(thread, nullptr), EINVAL);
    EXPECT_EQ(join_until_soon(thread), EINVAL);
    EXPECT_EQ(thrum_try_join(thread, nullptr), EINVAL);
    EXPECT_EQ(thrum_detach(thread), EINVAL);
}

TEST_P(Join, OfAThreadThatIsBeingJoined) {
    for (const bool timed : {false, true}) {
        Gate gate;
        const thrum_t waiter = spawn(pass, &gate);
        const auto wait = [&] {
            const uint64_t moment = thrum_now() + 60 * THRUM_S;
            EXPECT_EQ(timed ? thrum_join_until(waiter, nullptr, moment) : thrum_join(waiter, nullptr), 0);
        };
        Light first(wait);
        // Until the first one waits the answer is that it has not ended, or the time is up.
        EXPECT_TRUE(eventually([&] { return thrum_try_join(waiter, nullptr) == EINVAL; }));
        expect_not_joinable(waiter);
        in_ult([&] { expect_not_joinable(waiter); });
        External([&] { expect_not_joinable(waiter); }).join();
        gate.let_all_pass();
    }
}

TEST_P(Join, OfOneThatIsDetached) {
    struct Guest {
        Gate gate;
        std::atomic<bool> left{false};
        static void *stay(void *arg) {
            auto *guest = static_cast<Guest *>(arg);
            guest->gate.pass();
            guest->left = true;
            return nullptr;
        }
    } guest;
    const thrum_t waiter = spawn(Guest::stay, &guest);
    ASSERT_EQ(thrum_detach(waiter), 0);
    expect_not_joinable(waiter);
    in_ult([&] { expect_not_joinable(waiter); });
    External([&] { expect_not_joinable(waiter); }).join();
    guest.gate.let_all_pass();
    EXPECT_TRUE(eventually([&] { return guest.left.load(); }));
}

TEST_P(Join, OfAHandleThatIsUsedUp) {
    const thrum_t joined = spawn(same, nullptr);
    EXPECT_EQ(thrum_join(joined, nullptr), 0);
    expect_not_joinable(joined);
    const thrum_t gone = spawn(same, nullptr);
    EXPECT_EQ(thrum_join_keep(gone, nullptr), 0);
    EXPECT_EQ(thrum_detach(gone), 0);
    expect_not_joinable(gone);
}

TEST_P(Join, OfNothing) {
    from_both([] {
        expect_not_joinable(nullptr);
        EXPECT_EQ(thrum_revive(nullptr, same, nullptr), EINVAL);
        thrum_t thread = nullptr;
        thrum_t threads[2];
        const thrum_attr_t queued = attr_queued();
        EXPECT_EQ(thrum_spawn(&thread, nullptr, nullptr, nullptr), EINVAL);
        EXPECT_EQ(thrum_spawn(nullptr, &queued, nullptr, nullptr), EINVAL);
        EXPECT_EQ(thrum_spawn_many(2, threads, nullptr, nullptr, nullptr, 0), EINVAL);
        thread = spawn(same, nullptr);
        EXPECT_EQ(thrum_join_keep(thread, nullptr), 0);
        EXPECT_EQ(thrum_revive(thread, nullptr, nullptr), EINVAL);
        EXPECT_EQ(thrum_join(thread, nullptr), 0);
    });
}

// Each is spawned here and joined by the next.
TEST_P(Join, ByOthersThanTheSpawner) {
    from_both([] {
        constexpr std::size_t kLinks = 500;
        Gate gate;
        std::vector<thrum_t> chain(kLinks, nullptr);
        std::vector<std::unique_ptr<Light>> links;
        for (std::size_t i = 0; i < kLinks; i++) {
            links.push_back(std::make_unique<Light>([&, i] {
                gate.pass();
                const bool first = i == 0;
                EXPECT_TRUE(first || join(chain[i - 1]) == number(i - 1));
            }));
            chain[i] = spawn(same, number(i));
        }
        gate.let_all_pass();
        links.clear();
        EXPECT_EQ(join(chain.back()), number(kLinks - 1));
    });
}

// The parent's kernel thread changes while its child computes: thieves take the oldest.
TEST_P(Join, ByParentsThatWereStolen) {
    if (workers() == 1)
        GTEST_SKIP() << "there is no thief";
    in_ult([] {
        int stolen = 0;
        EXPECT_TRUE(eventually([&] {
            const long before = kernel_thread();
            Light child([] { spin_us(100); });
            stolen += kernel_thread() != before;
            child.join();
            return stolen >= 20;
        }));
    });
}

TEST_P(Join, TreesWithStolenParents) {
    struct Tree {
        static int grow(int depth) {
            if (depth == 0) {
                spin_us(5);
                return 1;
            }
            int left = 0, right = 0;
            Light a([&] { left = grow(depth - 1); });
            Light b([&] { right = grow(depth - 1); });
            a.join();
            b.join();
            return left + right;
        }
    };
    from_both([] {
        constexpr int kDepth = kStressDivisor > 1 ? 6 : 10;
        EXPECT_EQ(Tree::grow(kDepth), 1 << kDepth);
    });
}

TEST_P(Join, ExternalThreadsSpawnAndJoin) {
    std::vector<std::unique_ptr<External>> others;
    for (int t = 0; t < 4; t++)
        others.push_back(std::make_unique<External>([] {
            for (std::uintptr_t i = 0; i < 100; i++)
                ASSERT_EQ(join(spawn(same, number(i))), number(i));
        }));
}

// What external threads spawn, ULTs join, and the other way round.
TEST_P(Join, AcrossTheBorder) {
    constexpr std::uintptr_t kMany = 500;
    std::vector<thrum_t> theirs(kMany), ours(kMany);
    External([&] {
        for (std::uintptr_t i = 0; i < kMany; i++)
            theirs[i] = spawn(same, number(i));
    }).join();
    in_ult([&] {
        for (std::uintptr_t i = 0; i < kMany; i++) {
            ASSERT_EQ(join(theirs[i]), number(i));
            ours[i] = spawn(same, number(i));
        }
    });
    External([&] {
        for (std::uintptr_t i = 0; i < kMany; i++)
            ASSERT_EQ(join(ours[i]), number(i));
    }).join();
}

TEST_P(Join, ExternalThreadWaitsForOneThatWaits) {
    Gate gate;
    const thrum_t waiter = spawn(pass, &gate);
    std::atomic<bool> joined{false};
    External other([&] {
        EXPECT_EQ(join(waiter), &gate);
        joined = true;
    });
    EXPECT_TRUE(eventually([&] { return gate.waiting == 1; }));
    spin_us(2000);
    EXPECT_FALSE(joined);
    gate.let_all_pass();
    other.join();
    EXPECT_TRUE(joined);
}

// Each join by an external thread gives one descriptor back. That must not cost a magazine each for ever.
TEST_P(Join, ExternalThreadsJoinsCostNoMemory) {
    const auto burst = [] {
        std::vector<thrum_t> threads(static_cast<std::size_t>(20000 / kStressDivisor));
        for (thrum_t &thread : threads)
            thread = spawn(same, nullptr);
        for (const thrum_t thread : threads)
            join(thread);
    };
    const std::size_t before = mapped_bytes();
    External(burst).join();
    // 20,000 descriptors, and of stacks no more than every worker keeps in its two magazines of 64.
    const std::size_t kept = std::size_t{workers()} * 2 * 64 * 65536;
    EXPECT_LT(mapped_bytes(), before + (64U << 20) + kept) << "was " << before;
}

// --- the thread that called thrum_init --------------------------------------------------------------------

class Primary : public Ult {};

// It is bound to its worker, whichever thread wakes it and whatever its worker does meanwhile.
TEST_P(Primary, StaysOnItsKernelThread) {
    const long own = kernel_thread();
    std::atomic<bool> over{false};
    std::vector<std::unique_ptr<Light>> busy;
    for (int i = 0; i < 8; i++)
        busy.push_back(std::make_unique<Light>([&] {
            const thrum_attr_t queued = attr_queued();
            while (!over) {
                Light one([] { spin_us(3); }, &queued), two([] { spin_us(2); }, &queued);
                one.join();
                two.join();
            }
        }));
    const thrum_attr_t queued = attr_queued();
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
    while (std::chrono::steady_clock::now() < end && !HasFailure()) {
        Light([] { spin_us(1); }, &queued).join();
        EXPECT_EQ(kernel_thread(), own);
        thrum_yield();
        EXPECT_EQ(kernel_thread(), own);
    }
    over = true;
}

// --- detach -----------------------------------------------------------------------------------------------

class Detach : public Ult {};

TEST_P(Detach, BeforeItEnds) {
    from_both([] {
        Gate gate;
        std::atomic<int> ended{0};
        for (int i = 0; i < 100; i++) {
            thrum_t thread = nullptr;
            auto work = [&] {
                gate.pass();
                ended++;
            };
            Light::Work *owned = new Light::Work(work);
            ASSERT_EQ(thrum_spawn(
                          &thread, nullptr,
                          [](void *arg) -> void * {
                              const std::unique_ptr<Light::Work> body(static_cast<Light::Work *>(arg));
                              (*body)();
                              return nullptr;
                          },
                          owned),
                      0);
            ASSERT_EQ(thrum_detach(thread), 0);
        }
        gate.let_all_pass();
        EXPECT_TRUE(eventually([&] { return ended == 100; }));
    });
}

TEST_P(Detach, AfterItHasEnded) {
    from_both([] {
        for (int i = 0; i < 1000; i++)
            ASSERT_EQ(thrum_detach(spawn(same, nullptr)), 0);
    });
}

TEST_P(Detach, ByItself) {
    from_both([] {
        std::atomic<int> done{0};
        for (int i = 0; i < 200; i++)
            spawn(
                [](void *count) -> void * {
                    EXPECT_EQ(thrum_detach(thrum_self()), 0);
                    thrum_yield();
                    ++*static_cast<std::atomic<int> *>(count);
                    return nullptr;
                },
                &done);
        EXPECT_TRUE(eventually([&] { return done == 200; }));
    });
}

TEST_P(Detach, OfAThreadThatIsBeingJoined) {
    in_ult([] {
        Gate gate;
        const thrum_t waiter = spawn(pass, &gate);
        std::atomic<bool> joining{false};
        Light joiner([&] {
            joining = true;
            EXPECT_EQ(join(waiter), &gate);
        });
        ASSERT_TRUE(eventually([&] { return joining && gate.waiting == 1; }));
        spin_us(2000); // from "joining" to being in the join
        EXPECT_EQ(thrum_detach(waiter), EINVAL);
        gate.let_all_pass();
    });
}

TEST_P(Detach, IsTold) {
    from_both([] {
        Gate gate;
        const thrum_t thread = spawn(pass, &gate);
        EXPECT_FALSE(thrum_is_detached(thread));
        EXPECT_FALSE(thrum_is_detached(thrum_self()));
        ASSERT_EQ(thrum_detach(thread), 0);
        EXPECT_TRUE(thrum_is_detached(thread)); // it has not ended
        gate.let_all_pass();
        const thrum_t ended = spawn(same, nullptr);
        ASSERT_EQ(thrum_join_keep(ended, nullptr), 0);
        EXPECT_FALSE(thrum_is_detached(ended));
        External([ended] { EXPECT_FALSE(thrum_is_detached(ended)); }).join();
        join(ended);
        std::atomic<int> told{0};
        detached([&told] { // made without a handle
            told = thrum_is_detached(thrum_self()) ? 1 : 2;
        });
        EXPECT_TRUE(eventually([&] { return told != 0; }));
        EXPECT_EQ(told, 1);
        in_ult([] { EXPECT_FALSE(thrum_is_detached(thrum_self())); });
        EXPECT_TRUE(eventually([&] { return gate.waiting == 1; }));
    });
}

void *count_up(void *count) {
    ++*static_cast<std::atomic<std::size_t> *>(count);
    return nullptr;
}

// Descriptors of detached ones come back, whichever thread detaches them.
TEST_P(Detach, ByAnExternalThreadLeaksNothing) {
    constexpr std::size_t kBatch = 1000, kBatches = 40 / kStressDivisor, kPerChunk = 500;
    std::size_t before = 0;
    External([&] {
        for (std::size_t i = 0; i < 2 * kBatches; i++) {
            std::atomic<std::size_t> ended{0};
            std::array<thrum_t, kBatch> threads;
            for (thrum_t &thread : threads)
                thread = spawn(count_up, &ended);
            ASSERT_TRUE(eventually([&] { return ended == kBatch; }));
            for (const thrum_t thread : threads)
                ASSERT_EQ(thrum_detach(thread), 0);
            if (i == kBatches)
                before = units_chunks();
        }
    }).join();
    EXPECT_LE(units_chunks(), before + kBatch * kBatches / kPerChunk / 2) << "was " << before;
}

// --- yield ------------------------------------------------------------------------------------------------

class Yield : public Ult {};
class YieldInTurn : public UltInTurn {};

TEST_P(Yield, OnAnExternalThreadDoesNothing) {
    std::thread([] { thrum_yield(); }).join();
}

// On one worker all come round once before any comes round twice.
TEST_P(YieldInTurn, IsFair) {
    constexpr std::size_t kThreads = 7;
    constexpr long kRounds = 2000;
    std::array<std::atomic<long>, kThreads> rounds{};
    std::atomic<long> widest{0};
    const unsigned count = workers();
    in_ult([&] {
        std::vector<std::unique_ptr<Light>> threads;
        Gate gate;
        for (std::size_t i = 0; i < kThreads; i++)
            threads.push_back(std::make_unique<Light>([&, i] {
                gate.pass();
                for (long round = 0; round < kRounds; round++) {
                    const long me = ++rounds[i];
                    for (const std::atomic<long> &other : rounds)
                        if (other < me - widest && count == 1)
                            widest = me - other;
                    thrum_yield();
                }
            }));
        gate.let_all_pass();
    });
    EXPECT_LE(widest, 2);
    for (const std::atomic<long> &one : rounds)
        EXPECT_EQ(one, kRounds);
}

// Values that a thread keeps across a yield, in registers and on its stack, and what is thrown through the functions after one. Each of the
// places calls from another, so the switch returns to one that the thread before did not come from.
template <int Place>
__attribute__((noinline)) long mix(long seed, bool yields) {
    std::array<long, 6> kept;
    for (std::size_t i = 0; i < kept.size(); i++)
        kept.at(i) = seed * static_cast<long>(i + 3) + Place;
    for (int round = 0; round < 50; round++) {
        const long first = kept[0];
        if (yields)
            thrum_yield();
        for (std::size_t i = 0; i + 1 < kept.size(); i++)
            kept.at(i) = kept.at(i + 1) * 31 + round;
        kept[5] = first ^ seed;
    }
    if (Place % 2 == 1)
        throw kept[0] + kept[5];
    return kept[0] + kept[5];
}

template <int Place>
long mix_or_catch(long seed, bool yields) {
    try {
        return mix<Place>(seed, yields);
    } catch (long thrown) {
        return -thrown;
    }
}

TEST_P(Yield, ReturnsToWhereItWasCalled) {
    constexpr std::array kPlaces = {mix_or_catch<0>, mix_or_catch<1>, mix_or_catch<2>, mix_or_catch<3>};
    in_ult([&] {
        std::atomic<int> wrong{0};
        {
            std::vector<std::unique_ptr<Light>> threads;
            for (long i = 0; i < 16; i++)
                threads.push_back(std::make_unique<Light>([&, i] {
                    for (long round = 0; round < 20; round++) {
                        const auto place = kPlaces.at(static_cast<std::size_t>(i + round) % kPlaces.size());
                        wrong += place(i * 1000 + round, true) != place(i * 1000 + round, false);
                    }
                }));
        }
        EXPECT_EQ(wrong, 0);
    });
}

// More of them than fit into one worker's ring of those that have yielded.
TEST_P(Yield, OfThousands) {
    in_ult([] {
        std::atomic<long> rounds{0};
        {
            std::vector<std::unique_ptr<Light>> threads;
            Gate gate;
            for (int i = 0; i < 3000; i++)
                threads.push_back(std::make_unique<Light>([&] {
                    gate.pass();
                    for (int round = 0; round < 5; round++) {
                        rounds++;
                        thrum_yield();
                    }
                }));
            gate.let_all_pass();
        }
        EXPECT_EQ(rounds, 15000);
    });
}

// Nor do those that fit into it take turns without the others: until all have yielded five times none does so often
// that the sum is many times that. (With several workers that may be, where one of them has to wait for a CPU.)
TEST_P(Yield, IsFairToThousands) {
    const unsigned count = workers();
    in_ult([count] {
        constexpr std::size_t kThreads = 5000;
        constexpr long kRounds = 5;
        std::atomic<long> behind{kThreads}, sum{0};
        {
            std::vector<std::unique_ptr<Light>> threads;
            Gate gate;
            for (std::size_t i = 0; i < kThreads; i++)
                threads.push_back(std::make_unique<Light>([&] {
                    gate.pass();
                    for (long round = 0; behind > 0; round++) {
                        if (round == kRounds)
                            behind--;
                        sum++;
                        thrum_yield();
                    }
                }));
            gate.let_all_pass();
        }
        if (count == 1) {
            EXPECT_LT(sum, 10 * static_cast<long>(kThreads) * kRounds);
        }
    });
}

// A thread that waits by yielding must not keep from running what it waits for, wherever that is queued.
TEST_P(Yield, LetsTheQueuedRun) {
    from_both([] {
        const thrum_attr_t queued = attr_queued();
        for (int i = 0; i < 100; i++) {
            std::atomic<bool> flag{false};
            const Light child([&] { flag = true; }, &queued);
            ASSERT_TRUE(eventually([&] { return flag.load(); }));
        }
    });
}

// All workers are busy with yielding ones; what comes from outside gets its turn.
TEST_P(Yield, LetsThoseFromOutsideRun) {
    std::atomic<bool> over{false};
    std::vector<std::unique_ptr<Light>> busy;
    for (unsigned i = 0; i < 2 * workers(); i++)
        busy.push_back(std::make_unique<Light>([&] {
            while (!over)
                thrum_yield();
        }));
    External([&] {
        for (std::uintptr_t i = 0; i < 20; i++)
            EXPECT_EQ(join(spawn(same, number(i))), number(i));
    }).join();
    over = true;
}

// A thread that spawns and joins all the time, and so always has something new in its queue, starves no other:
// neither yielded threads nor the bound thread of the worker.
TEST_P(Yield, IsNotStarvedByABusyQueue) {
    std::atomic<bool> over{false};
    std::atomic<long> yields{0};
    Light yielder([&] {
        while (!over) {
            yields++;
            thrum_yield();
        }
    });
    std::vector<std::unique_ptr<Light>> busy;
    for (unsigned i = 0; i < workers(); i++)
        busy.push_back(std::make_unique<Light>([&] {
            while (!over) {
                const thrum_t child = spawn(same, nullptr);
                join(child);
            }
        }));
    const long before = yields;
    EXPECT_TRUE(eventually([&] {
        return yields > before + 100;
    })); // a turn in 100 us of its worker, whose turn comes once in 64
    over = true;
}

// --- what belongs to a ULT --------------------------------------------------------------------------------

class FloatControl : public Ult {};

constexpr std::array<int, 4> kModes = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};

// What 1 and a little more is, is decided by the rounding mode; of double (SSE) and of long double (x87 on x86-64).
template <class Real>
__attribute__((noinline)) int rounds_like() {
    const volatile Real one = 1, tiny = static_cast<Real>(1e-100), minus = -1;
    const Real up = one + tiny, down = minus - tiny;
    const bool above = up > 1, below = down < -1;
    const Real toward = one - tiny;
    if (above)
        return FE_UPWARD;
    if (below)
        return FE_DOWNWARD;
    return toward < 1 ? FE_TOWARDZERO : FE_TONEAREST;
}

__attribute__((noinline)) void expect_mode(int mode) {
    ASSERT_EQ(fegetround(), mode);
    ASSERT_EQ(rounds_like<double>(), mode);
    ASSERT_EQ(rounds_like<long double>(), mode);
}

TEST_P(FloatControl, IsKeptAcrossSwitches) {
    in_ult([] {
        std::vector<std::unique_ptr<Light>> threads;
        thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
        for (std::size_t i = 0; i < 8; i++)
            threads.push_back(std::make_unique<Light>([&, i] {
                const int mode = kModes[i % kModes.size()];
                fesetround(mode);
                for (int round = 0; round < 300; round++) {
                    thrum_mutex_lock(&mutex);
                    expect_mode(mode);
                    thrum_yield();
                    expect_mode(mode);
                    thrum_mutex_unlock(&mutex);
                    Light([] { fesetround(FE_TOWARDZERO); }).join();
                    expect_mode(mode);
                }
                fesetround(FE_TONEAREST);
            }));
    });
    expect_mode(FE_TONEAREST);
}

#if defined(__x86_64__)
// Flushing denormals to zero, and the x87's precision, which fesetround does not touch.
__attribute__((noinline)) void set_odd_words(bool odd) {
    _mm_setcsr(odd ? _mm_getcsr() | 0x8040U : _mm_getcsr() & ~0x8040U);
    std::uint16_t word;
    __asm__ volatile("fnstcw %0" : "=m"(word));
    word = static_cast<std::uint16_t>(odd ? word & ~0x300U : word | 0x300U);
    __asm__ volatile("fldcw %0" : : "m"(word));
}

__attribute__((noinline)) bool has_odd_words() {
    std::uint16_t word;
    __asm__ volatile("fnstcw %0" : "=m"(word));
    EXPECT_EQ((_mm_getcsr() & 0x8040U) == 0x8040U, (word & 0x300U) == 0);
    return (word & 0x300U) == 0;
}

TEST_P(FloatControl, OddWordsAreKeptToo) {
    in_ult([] {
        std::vector<std::unique_ptr<Light>> threads;
        for (int i = 0; i < 6; i++)
            threads.push_back(std::make_unique<Light>([i] {
                set_odd_words(i % 2 == 1);
                for (int round = 0; round < 500; round++) {
                    thrum_yield();
                    ASSERT_EQ(has_odd_words(), i % 2 == 1);
                }
                set_odd_words(false);
            }));
    });
    EXPECT_FALSE(has_odd_words());
}
#endif

// What one leaves behind when it ends is not found by those that come after it on its worker.
TEST_P(FloatControl, IsNotInheritedFromTheDead) {
    from_both([] {
        const thrum_attr_t queued = attr_queued();
        for (int round = 0; round < 50 && !HasFailure(); round++) {
            std::atomic<int> ended{0};
            std::vector<std::unique_ptr<Light>> threads;
            for (int i = 0; i < 40; i++)
                threads.push_back(std::make_unique<Light>(
                    [&ended, i] {
                        if (i % 2 == 0)
                            fesetround(FE_UPWARD);
                        else
                            expect_mode(FE_TONEAREST);
                        ended++;
                    },
                    &queued));
            EXPECT_TRUE(eventually([&] { return ended == 40; })); // not by a join: that runs them one by one
        }
    });
    expect_mode(FE_TONEAREST);
}

// As with pthread_create: a new one begins with its creator's, whatever runs before it.
TEST_P(FloatControl, IsItsMakers) {
    in_ult([] {
        const thrum_attr_t queued = attr_queued();
        for (const thrum_attr_t *attr : {static_cast<const thrum_attr_t *>(nullptr), &queued})
            for (const int mode : kModes) {
                fesetround(mode);
                Light child([mode] { expect_mode(mode); }, attr);
                fesetround(FE_TONEAREST);
                child.join();
            }
    });
}

// --- attributes -------------------------------------------------------------------------------------------

TEST(Attributes, RefuseWhatTheyDoNotKnow) {
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    EXPECT_EQ(thrum_attr_set_flags(&attr, 0), 0);
    EXPECT_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_QUEUED), 0);
    EXPECT_EQ(thrum_attr_set_flags(&attr, 0x80000000U), EINVAL);
    EXPECT_EQ(thrum_attr_set_stack_size(&attr, 0), 0);
    EXPECT_EQ(thrum_attr_set_stack_size(&attr, std::size_t{1} << 30), 0);
    EXPECT_EQ(thrum_attr_set_stack_size(&attr, (std::size_t{1} << 30) + 1), EINVAL);
    EXPECT_EQ(thrum_attr_set_stack_size(&attr, SIZE_MAX), EINVAL);
}

ULT_OVER_WORKERS(Spawn);
ULT_OVER_WORKERS(SpawnInTurn);
ULT_OVER_WORKERS(Join);
ULT_OVER_WORKERS(Primary);
ULT_OVER_WORKERS(Detach);
ULT_OVER_WORKERS(Yield);
ULT_OVER_WORKERS(YieldInTurn);
ULT_OVER_WORKERS(FloatControl);

} // namespace
