// SPDX-License-Identifier: Apache-2.0
//
// What the tests of pools and schedulers share: both for the time of a test, and threads that note in which order they ran.
#pragma once

#include <thrum/pool.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "ult.hpp"

inline void *number(std::uintptr_t value) {
    return reinterpret_cast<void *>(value); // NOLINT(performance-no-int-to-ptr)
}

struct PoolOf {
    explicit PoolOf(thrum_pool_kind kind) { EXPECT_EQ(thrum_pool_create(&pool, kind), 0); }
    ~PoolOf() { EXPECT_EQ(thrum_pool_destroy(pool), 0); }
    PoolOf(const PoolOf &) = delete;
    PoolOf &operator=(const PoolOf &) = delete;
    thrum_attr_t attr() const { return attr_pool(pool); }
    thrum_pool_t pool = nullptr;
};

// A scheduler that a worker has for the time of a test.
struct SchedOn {
    SchedOn(unsigned number, thrum_sched_t scheduler) : worker(number), sched(scheduler) {
        EXPECT_EQ(thrum_worker_set_sched(worker, sched), 0);
    }
    ~SchedOn() {
        EXPECT_EQ(thrum_worker_set_sched(worker, nullptr), 0);
        EXPECT_TRUE(eventually([this] { return thrum_sched_destroy(sched) == 0; }));
    }
    SchedOn(const SchedOn &) = delete;
    SchedOn &operator=(const SchedOn &) = delete;
    unsigned worker;
    thrum_sched_t sched;
};

inline thrum_sched_t sched_of(thrum_sched_kind kind, const std::vector<thrum_pool_t> &pools) {
    thrum_sched_t sched = nullptr;
    EXPECT_EQ(thrum_sched_create(&sched, kind, pools.data(), static_cast<unsigned>(pools.size())), 0);
    return sched;
}

struct Notes {
    std::array<std::atomic<unsigned>, 64> order{};
    std::atomic<unsigned> at{0};
};
inline Notes *notes;

inline void *note(void *who) {
    notes->order[notes->at++] = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(who));
    return nullptr;
}
