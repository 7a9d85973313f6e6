// SPDX-License-Identifier: Apache-2.0
//
// Policies: in what order schedulers look at their pools; and that under each of them, with each kind of pool, no thread is
// lost or runs twice.
#include <thrum/pool.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

#include "pools.hpp"
#include "ult.hpp"
#include "user_pool.hpp"

namespace {

// --- no unit lost or run twice ----------------------------------------------------------------------------

class PoolStress : public Ult {};

// External threads and ULTs push, several workers with schedulers run; every thread runs once and yields in between.
void many_run_once(thrum_pool_kind kind, thrum_sched_kind how, unsigned workers) {
    const PoolOf first(kind), second(kind);
    const unsigned schedulers = std::min(workers, 4U);
    std::vector<std::unique_ptr<SchedOn>> on;
    for (unsigned i = 0; i < schedulers; i++)
        on.push_back(std::make_unique<SchedOn>(workers - 1 - i, sched_of(how, {first.pool, second.pool})));
    std::atomic<long> counter{0};
    const int each = 2000 / kStressDivisor;
    const auto make = [&](const PoolOf &pool) {
        const thrum_attr_t attr = pool.attr();
        std::vector<Light> threads;
        for (int i = 0; i < each; i++)
            threads.emplace_back(
                [&counter] {
                    for (int k = 0; k < 3; k++)
                        thrum_yield();
                    counter++;
                },
                &attr);
    };
    std::thread external([&] { make(first); });
    in_ult([&] { make(second); });
    make(first);
    // The test's thread is a worker: it must not block in the kernel.
    std::atomic<bool> over{false};
    std::thread joiner([&] {
        external.join();
        over = true;
    });
    EXPECT_TRUE(eventually([&] { return over.load(); }));
    joiner.join();
    EXPECT_EQ(counter, 3L * each);
}

TEST_P(PoolStress, FifoFirst) {
    many_run_once(THRUM_POOL_FIFO, THRUM_SCHED_FIRST, workers());
}
TEST_P(PoolStress, LifoRoundRobin) {
    many_run_once(THRUM_POOL_LIFO, THRUM_SCHED_ROUND_ROBIN, workers());
}
TEST_P(PoolStress, PriorityRandom) {
    many_run_once(THRUM_POOL_PRIORITY, THRUM_SCHED_RANDOM, workers());
}
TEST_P(PoolStress, DeadlineExhaust) {
    many_run_once(THRUM_POOL_DEADLINE, THRUM_SCHED_EXHAUST, workers());
}

// Threads do at random what brings them into pools, and out: from the seed, which is printed; the interleaving is not in
// it. Each counts how often it ran, and how many there were is known in the end.
class AtRandom {
  public:
    AtRandom(std::vector<thrum_pool_t> pools, unsigned seed) : pools_(std::move(pools)), seed_(seed) {}

    void run(int roots) {
        External external([&] { make(roots, seed_ + 1); });
        in_ult([&] { make(roots, seed_ + 2); });
        make(roots, seed_ + 3);
        external.join();
        EXPECT_EQ(ran_, made_);
        EXPECT_GE(made_, 3 * roots);
        for (const thrum_pool_t pool : pools_)
            EXPECT_EQ(thrum_pool_size(pool), 0U);
    }

  private:
    using Random = std::minstd_rand;
    struct Once {
        std::atomic<int> runs{0};
    };

    thrum_pool_t any(Random &random) const { return pools_[random() % pools_.size()]; }

    thrum_attr_t attr(Random &random) const {
        thrum_attr_t attr = attr_pool(any(random));
        EXPECT_EQ(thrum_attr_set_priority(&attr, random() % (THRUM_PRIORITY_MAX + 1)), 0);
        thrum_attr_set_deadline(&attr, random() % 100);
        return attr;
    }

    void make(int count, unsigned seed) {
        Random random(seed);
        std::vector<Light> threads;
        for (int i = 0; i < count; i++)
            threads.push_back(one(random, 2));
    }

    Light one(Random &random, int depth) {
        made_++;
        const thrum_attr_t how = attr(random);
        const auto once = std::make_shared<Once>();
        const auto seed = static_cast<unsigned>(random());
        return Light(
            [this, once, seed, depth] {
                EXPECT_EQ(once->runs++, 0);
                Random mine(seed);
                for (int i = 0; i < 5; i++)
                    step(mine, depth);
                EXPECT_EQ(once->runs, 1);
                ran_++;
            },
            &how);
    }

    void step(Random &random, int depth) {
        switch (random() % 8) {
        case 0: thrum_yield(); break;
        case 1: EXPECT_EQ(thrum_migrate_to_pool(thrum_self(), any(random)), 0); break;
        case 2:
            EXPECT_EQ(
                thrum_set_priority(thrum_self(), static_cast<unsigned>(random() % (THRUM_PRIORITY_MAX + 1))),
                0);
            break;
        case 3: thrum_sleep(random() % 20 * THRUM_US); break;
        case 4: carry(any(random), any(random)); break;
        case 5: suspend_and_resume(random); break;
        default:
            if (depth > 0)
                one(random, depth - 1).join();
            break;
        }
    }

    static void carry(thrum_pool_t from, thrum_pool_t to) {
        std::array<thrum_t, 4> threads{};
        std::size_t count = thrum_pool_pop_many(from, threads.data(), threads.size());
        if (const thrum_t stolen = count < threads.size() ? thrum_pool_steal(from) : nullptr;
            stolen != nullptr)
            threads[count++] = stolen;
        for (std::size_t i = 0; i < count; i++)
            thrum_pool_push(to, threads[i]);
    }

    void suspend_and_resume(Random &random) {
        made_++;
        const thrum_attr_t how = attr(random);
        Light waits(
            [this] {
                EXPECT_EQ(thrum_suspend(), 0);
                ran_++;
            },
            &how);
        thrum_yield();
        random() % 2 != 0 ? thrum_switch_to(waits.handle()) : thrum_resume(waits.handle());
        waits.join();
    }

    std::vector<thrum_pool_t> pools_;
    unsigned seed_;
    std::atomic<long> made_{0}, ran_{0};
};

// ULT_POOL_SEED takes one again.
unsigned seed_to_print() {
    const char *given = std::getenv("ULT_POOL_SEED");
    const unsigned seed =
        given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : std::random_device{}();
    std::printf("ULT_POOL_SEED=%u\n", seed);
    std::fflush(stdout);
    return seed;
}

constexpr std::array<thrum_pool_kind, 5> kKinds = {THRUM_POOL_FIFO, THRUM_POOL_LIFO, THRUM_POOL_PRIORITY,
                                                   THRUM_POOL_DEADLINE, THRUM_POOL_DEQUE};
constexpr std::array<thrum_sched_kind, 4> kPolicies = {THRUM_SCHED_FIRST, THRUM_SCHED_ROUND_ROBIN,
                                                       THRUM_SCHED_EXHAUST, THRUM_SCHED_RANDOM};
constexpr int kRoots = 20 / (kStressDivisor < 10 ? kStressDivisor : 10) + 1;

void random_on_some(const std::vector<thrum_pool_t> &pools, thrum_sched_kind policy, unsigned workers,
                    unsigned seed) {
    std::vector<std::unique_ptr<SchedOn>> on;
    for (unsigned i = 0; i < std::min(workers, 4U); i++)
        on.push_back(std::make_unique<SchedOn>(workers - 1 - i, sched_of(policy, pools)));
    AtRandom(pools, seed).run(kRoots);
}

TEST_P(PoolStress, EachKindUnderEachPolicyAtRandom) {
    const unsigned seed = seed_to_print();
    for (const thrum_sched_kind policy : kPolicies) {
        for (const thrum_pool_kind kind : kKinds) {
            SCOPED_TRACE("pool " + std::to_string(kind) + ", policy " + std::to_string(policy));
            const PoolOf first(kind), second(kind), third(kind);
            random_on_some({first.pool, second.pool, third.pool}, policy, workers(), seed);
        }
        UserFifo first, second(false);
        random_on_some({first.pool(), second.pool()}, policy, workers(), seed);
        EXPECT_GT(first.pushed + second.pushed, 0);
        EXPECT_EQ(thrum_pool_destroy(first.pool()), 0);
        EXPECT_EQ(thrum_pool_destroy(second.pool()), 0);
    }
}

// --- policies: in what order they look at their pools -----------------------------------------------------

// Threads that note their letter when they run; some put others into a pool then. Nothing runs before the scheduler does.
class Trace {
  public:
    explicit Trace(unsigned pools) {
        for (unsigned i = 0; i < pools; i++)
            pools_.push_back(std::make_unique<PoolOf>(THRUM_POOL_FIFO));
    }

    void put(unsigned pool, char letter, std::function<void()> work = {}) {
        const thrum_attr_t attr = pools_[pool]->attr();
        threads_.push_back(std::make_unique<Light>(
            [this, letter, work = std::move(work)] {
                order_ += letter;
                if (work)
                    work();
            },
            &attr));
    }

    void put_all(unsigned pool, const std::string &letters) {
        for (const char letter : letters)
            put(pool, letter);
    }

    // Until all that was put has ended, and what those have put themselves is done.
    std::string run(
        thrum_sched_kind policy, unsigned worker, const std::function<bool()> &done = [] { return true; }) {
        std::vector<thrum_pool_t> pools;
        for (const auto &pool : pools_)
            pools.push_back(pool->pool);
        const SchedOn sched(worker, sched_of(policy, pools));
        while (!threads_.empty()) { // those that are there, and those that they make
            const std::unique_ptr<Light> last = std::move(threads_.back());
            threads_.pop_back();
            last->join();
        }
        EXPECT_TRUE(eventually(done));
        return order_;
    }

    PoolOf &pool(unsigned i) { return *pools_[i]; }

  private:
    std::vector<std::unique_ptr<PoolOf>> pools_;
    std::vector<std::unique_ptr<Light>> threads_;
    std::string order_; // one worker's
};

class SchedOrder : public UltInTurn {};

// Runs on the trace's worker: pushes one more detached thread into its pool.
std::function<void()> adding(Trace &trace, unsigned pool, std::atomic<bool> &ran, std::string &late) {
    return [&trace, pool, &ran, &late] {
        const thrum_attr_t attr = trace.pool(pool).attr();
        struct Late {
            std::atomic<bool> &ran;
            std::string &late;
        };
        const auto add = [](void *arg) -> void * {
            const auto *added = static_cast<Late *>(arg);
            added->late += 'x';
            added->ran = true;
            delete added;
            return nullptr;
        };
        EXPECT_EQ(thrum_spawn(nullptr, &attr, add, new Late{ran, late}), 0);
    };
}

TEST_P(SchedOrder, FirstTakesTheFirstThatIsNotEmpty) {
    std::atomic<bool> ran{false};
    std::string order;
    Trace trace(3);
    trace.put_all(2, "gh");
    trace.put(1, 'd', [&] { adding(trace, 0, ran, order)(); });
    trace.put(1, 'e', [&] { order += 'e'; });
    trace.put_all(0, "ab");
    EXPECT_EQ(trace.run(THRUM_SCHED_FIRST, workers() - 1, [&] { return ran.load(); }), "abdegh");
    EXPECT_EQ(order, "xe"); // what d put into the first pool ran before e
}

TEST_P(SchedOrder, RoundRobinTakesOneOfEach) {
    Trace trace(3);
    trace.put_all(0, "abc");
    trace.put_all(1, "d");
    trace.put_all(2, "gh");
    EXPECT_EQ(trace.run(THRUM_SCHED_ROUND_ROBIN, workers() - 1), "adgbhc");
}

TEST_P(SchedOrder, ExhaustTakesTheNextWhenOneIsEmpty) {
    std::atomic<bool> ran_first{false}, ran_second{false};
    std::string first, second;
    Trace trace(3);
    trace.put_all(0, "a");
    trace.put(1, 'd', [&] {
        adding(trace, 0, ran_first, first)();   // it has passed that one
        adding(trace, 1, ran_second, second)(); // and the worker is at this one
    });
    trace.put_all(1, "e");
    trace.put(2, 'g', [&] {
        first += 'g';
        second += 'g';
    });
    EXPECT_EQ(trace.run(THRUM_SCHED_EXHAUST, workers() - 1, [&] { return ran_first && ran_second; }), "adeg");
    EXPECT_EQ(first, "gx");
    EXPECT_EQ(second, "xg");
}

// Its own first; of the others each gets about the same.
TEST_P(SchedOrder, RandomIsFairToTheOthers) {
    constexpr long kEach = 600, kSeen = 900;
    Trace trace(4);
    trace.put_all(0, "aaaaa");
    for (const unsigned pool : {1U, 2U, 3U})
        trace.put_all(pool, std::string(kEach, static_cast<char>('a' + pool)));
    const std::string order = trace.run(THRUM_SCHED_RANDOM, workers() - 1);
    EXPECT_EQ(order.substr(0, 5), "aaaaa");
    EXPECT_EQ(order.size(), 5 + 3 * static_cast<std::size_t>(kEach));
    // 300 each, with a standard deviation of 14.
    for (const char letter : {'b', 'c', 'd'}) {
        const auto from = order.begin() + 5;
        EXPECT_NEAR(std::count(from, from + kSeen, letter), kSeen / 3, 100) << letter;
    }
}

// --- stealing by levels -----------------------------------------------------------------------------------

// Queues of deque pools, one for each of some workers, the last ones.
class Levels {
  public:
    Levels(unsigned queues, unsigned levels) : queues_(queues), levels_(levels) {
        for (unsigned i = 0; i < queues * levels; i++)
            pools_.push_back(std::make_unique<PoolOf>(THRUM_POOL_DEQUE));
    }

    thrum_pool_t pool(unsigned queue, unsigned level) const { return pools_[queue * levels_ + level]->pool; }

    std::vector<thrum_pool_t> all() const {
        std::vector<thrum_pool_t> pools;
        for (const auto &pool : pools_)
            pools.push_back(pool->pool);
        return pools;
    }

    std::unique_ptr<SchedOn> on(unsigned worker, unsigned queue) const {
        thrum_sched_t sched = nullptr;
        EXPECT_EQ(thrum_sched_create_stealing(&sched, all().data(), queues_, levels_, queue), 0);
        return std::make_unique<SchedOn>(worker, sched);
    }

  private:
    unsigned queues_, levels_;
    std::vector<std::unique_ptr<PoolOf>> pools_;
};

class SchedLevels : public Ult {};
class SchedLevelsInTurn : public UltInTurn {};

// Number ten times the level and the place in it.
void fill(const Levels &levels, unsigned queue, unsigned level, std::vector<thrum_t> *threads) {
    const thrum_attr_t attr = attr_pool(levels.pool(queue, level));
    for (unsigned i = 0; i < 3; i++) {
        threads->push_back(nullptr);
        ASSERT_EQ(thrum_spawn(&threads->back(), &attr, note, number(10 * level + i)), 0);
    }
}

TEST_P(SchedLevelsInTurn, OwnNewestFirstThenTheOldestOfTheHighestLevel) {
    const Levels levels(4, 2);
    Notes mine;
    notes = &mine;
    std::vector<thrum_t> threads;
    for (const unsigned queue : {0U, 1U, 2U, 3U})
        for (const unsigned level : {1U, 0U})
            fill(levels, queue, level, &threads);
    const auto on = levels.on(workers() - 1, 2);
    for (const thrum_t thread : threads)
        EXPECT_EQ(thrum_join(thread, nullptr), 0);
    const std::vector<unsigned> order(mine.order.begin(), mine.order.begin() + mine.at);
    const std::vector<unsigned> own(order.begin(), order.begin() + 6);
    EXPECT_EQ(own, (std::vector<unsigned>{2, 1, 0, 12, 11, 10}));
    // From three queues, which take turns at random: never the lower level before the higher, nor the newer of a queue.
    const auto middle = order.begin() + 6 + 9;
    EXPECT_TRUE(std::all_of(order.begin() + 6, middle, [](unsigned who) { return who < 10; }));
    EXPECT_TRUE(std::all_of(middle, order.end(), [](unsigned who) { return who >= 10; }));
    EXPECT_EQ(order[6], 0U);
    EXPECT_EQ(*(middle - 1), 2U);
    EXPECT_EQ(*middle, 10U);
    EXPECT_EQ(order.back(), 12U);
    EXPECT_EQ(order.size(), threads.size());
}

// A worker with an empty queue takes what is put into another's.
TEST_P(SchedLevels, AllHelpOne) {
    const unsigned crew = std::min(workers(), 8U);
    const Levels levels(crew, 3);
    std::vector<std::unique_ptr<SchedOn>> on;
    for (unsigned i = 1; i < crew; i++) // number 0 has no worker
        on.push_back(levels.on(workers() - i, i));
    if (crew == 1)
        on.push_back(levels.on(0, 0));
    AtRandom({levels.pool(0, 0), levels.pool(0, 1), levels.pool(0, 2)}, seed_to_print()).run(kRoots);
}

TEST_P(SchedLevels, EachServesItsOwnAtRandom) {
    const unsigned crew = std::min(workers(), 8U);
    const Levels levels(crew, 2);
    std::vector<std::unique_ptr<SchedOn>> on;
    for (unsigned i = 0; i < crew; i++)
        on.push_back(levels.on(workers() - 1 - i, i));
    AtRandom(levels.all(), seed_to_print()).run(kRoots);
}

TEST_P(SchedLevels, RefusesWhatIsNone) {
    const Levels levels(2, 2);
    const std::vector<thrum_pool_t> pools = levels.all();
    thrum_sched_t sched = nullptr;
    EXPECT_EQ(thrum_sched_create_stealing(&sched, pools.data(), 2, 0, 0), EINVAL);
    EXPECT_EQ(thrum_sched_create_stealing(&sched, pools.data(), 0, 2, 0), EINVAL);
    EXPECT_EQ(thrum_sched_create_stealing(&sched, pools.data(), 2, 2, 2), EINVAL);
    EXPECT_EQ(thrum_sched_create_stealing(&sched, pools.data(), THRUM_SCHED_POOLS_MAX / 2 + 1, 2, 0), EINVAL);
    EXPECT_EQ(thrum_sched_create_stealing(&sched, pools.data(), 1, THRUM_SCHED_POOLS_MAX + 1, 0), EINVAL);
    ASSERT_EQ(thrum_sched_create_stealing(&sched, pools.data(), 2, 2, 1), 0);
    EXPECT_EQ(thrum_sched_destroy(sched), 0);
}

ULT_OVER_WORKERS(PoolStress);
ULT_OVER_WORKERS(SchedOrder);
ULT_OVER_WORKERS(SchedLevels);
ULT_OVER_WORKERS(SchedLevelsInTurn);

} // namespace
