// SPDX-License-Identifier: Apache-2.0
//
// thrum_switch_to and thrum_exit_to: a suspended thread runs in the place of the caller, and before all runnable
// ones; on any worker, on the one that they are bound to, and in a pool.
#include <thrum/pool.h>
#include <thrum/worker.h>

#include <algorithm>
#include <string>

#include "ult.hpp"

namespace {

// Threads of one worker, which write a letter each time they run: no other thread touches the log meanwhile. C is
// always runnable. B, in its log, means that it was resumed.
class Turns {
  public:
    explicit Turns(const thrum_attr_t &attr) : attr_(attr) {}

    // A switches to B again and again. The expected log: ABCABC...
    std::string of_switches(int count) {
        Light waits([this] { be_b(); }, &attr_);
        Light ready([this] { be_c(); }, &attr_);
        Light switches(
            [&] {
                for (int i = 0; i < count; i++) {
                    until_b_waits();
                    log_ += 'A';
                    thrum_switch_to(waits.handle());
                }
                until_b_waits();
                over_ = true;
                thrum_resume(waits.handle());
            },
            &attr_);
        switches.join();
        waits.join();
        ready.join();
        return log_;
    }

    // ... and each time it is another A that ends.
    std::string of_ends(int count) {
        Light waits([this] { be_b(); }, &attr_);
        Light ready([this] { be_c(); }, &attr_);
        Light makes(
            [&] {
                for (int i = 0; i < count; i++) {
                    until_b_waits();
                    left_ = false;
                    detached_a(waits.handle());
                    while (!left_)
                        thrum_yield();
                }
                until_b_waits();
                over_ = true;
                thrum_resume(waits.handle());
            },
            &attr_);
        makes.join();
        waits.join();
        ready.join();
        return log_;
    }

  private:
    struct Last {
        Turns *turns;
        thrum_t successor;
    };

    static void *be_a(void *arg) {
        const auto *last = static_cast<Last *>(arg);
        const thrum_t successor = last->successor;
        last->turns->left_ = true;
        last->turns->log_ += 'A';
        delete last;
        thrum_exit_to(nullptr, successor);
    }

    void detached_a(thrum_t successor) {
        EXPECT_EQ(thrum_spawn(nullptr, &attr_, be_a, new Last{this, successor}), 0);
    }

    void be_b() {
        for (;;) {
            waits_ = true;
            EXPECT_EQ(thrum_suspend(), 0);
            waits_ = false;
            if (over_)
                return;
            log_ += 'B';
        }
    }

    void be_c() {
        while (!over_) {
            log_ += 'C';
            thrum_yield();
        }
    }

    // On one worker: it does not run between the two.
    void until_b_waits() const {
        while (!waits_)
            thrum_yield();
    }

    thrum_attr_t attr_;
    std::atomic<bool> waits_{false}, over_{false}, left_{false};
    std::string log_;
};

long count_of(const std::string &log, const std::string &what) {
    long count = 0;
    for (std::size_t at = log.find(what); at != std::string::npos; at = log.find(what, at + 1))
        count++;
    return count;
}

constexpr int kTimes = 100;

// Each A is followed by B, though C is ready, which shows between.
void expect_next(const std::string &log) {
    EXPECT_EQ(count_of(log, "A"), kTimes);
    EXPECT_EQ(count_of(log, "AB"), kTimes) << log;
    EXPECT_EQ(count_of(log, "B"), kTimes);
    EXPECT_GE(count_of(log, "C"), kTimes / 2) << log;
}

void expect_next_in_all(const thrum_attr_t &attr) {
    expect_next(Turns(attr).of_switches(kTimes));
    expect_next(Turns(attr).of_ends(kTimes));
}

class SwitchTo : public UltInTurn {};

TEST_P(SwitchTo, IsDirectOnOneWorker) {
    if (workers() > 1)
        GTEST_SKIP() << "others would take those who are ready";
    in_ult([] { expect_next_in_all(attr_queued()); });
}

TEST_P(SwitchTo, IsDirectAmongThreadsBoundToOneWorker) {
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    ASSERT_EQ(thrum_attr_set_worker(&attr, workers() - 1), 0);
    expect_next_in_all(attr);
}

TEST_P(SwitchTo, IsDirectInAPool) {
    thrum_pool_t pool = nullptr;
    thrum_sched_t sched = nullptr;
    ASSERT_EQ(thrum_pool_create(&pool, THRUM_POOL_FIFO), 0);
    ASSERT_EQ(thrum_sched_create(&sched, THRUM_SCHED_FIRST, &pool, 1), 0);
    ASSERT_EQ(thrum_worker_set_sched(workers() - 1, sched), 0);
    expect_next_in_all(attr_pool(pool));
    EXPECT_EQ(thrum_worker_set_sched(workers() - 1, nullptr), 0);
    EXPECT_TRUE(eventually([&] { return thrum_sched_destroy(sched) == 0; }));
    EXPECT_EQ(thrum_pool_destroy(pool), 0);
}

// The thread's place is kept: it runs there, and the caller continues.
TEST_P(SwitchTo, LeavesItToWhereItBelongs) {
    if (workers() < 2)
        GTEST_SKIP() << "needs two workers";
    std::atomic<bool> waits{false};
    std::atomic<int> ran_on{-1};
    thrum_attr_t there, here;
    thrum_attr_init(&there);
    thrum_attr_init(&here);
    ASSERT_EQ(thrum_attr_set_worker(&there, workers() - 1), 0);
    ASSERT_EQ(thrum_attr_set_worker(&here, 0), 0);
    Light elsewhere(
        [&] {
            waits = true;
            EXPECT_EQ(thrum_suspend(), 0);
            ran_on = thrum_worker_self();
        },
        &there);
    Light switches(
        [&] {
            EXPECT_TRUE(eventually([&] { return waits.load(); }));
            thrum_switch_to(elsewhere.handle());
            EXPECT_EQ(thrum_worker_self(), 0);
        },
        &here);
    switches.join();
    elsewhere.join();
    EXPECT_EQ(ran_on, static_cast<int>(workers()) - 1);
}

ULT_OVER_WORKERS(SwitchTo);

} // namespace
