// SPDX-License-Identifier: Apache-2.0
//
// What the tests of pools and schedulers share: both for the time of a test, and threads that note in which order they ran.
#pragma once

#include <thrum/pool.h>
#include <thrum/time.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
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

// A pool of the user's own: it keeps the one thread that is pushed until `gives` says so of the time of the push, and
// then gives it without a push; `until`, likewise, is when a worker should look again.
class KeepingPool {
  public:
    using Gives = std::function<bool(uint64_t pushed)>;
    using Until = std::function<uint64_t(uint64_t pushed)>;
    KeepingPool(Gives gives, Until until) : gives_(std::move(gives)), until_(std::move(until)) {
        const thrum_pool_ops ops{push, pop, size, nullptr, nullptr, wait};
        EXPECT_EQ(thrum_pool_create_user(&pool_, &ops, this), 0);
    }
    ~KeepingPool() { EXPECT_EQ(thrum_pool_destroy(pool_), 0); }
    KeepingPool(const KeepingPool &) = delete;
    static KeepingPool for_a_time(uint64_t ns) {
        return {[ns](uint64_t pushed) { return pushed + ns <= thrum_now(); },
                [ns](uint64_t pushed) { return pushed + ns; }};
    }
    thrum_pool_t pool() const { return pool_; }

  private:
    static KeepingPool *of(void *data) { return static_cast<KeepingPool *>(data); }
    bool has_one() const { return kept_ != nullptr && gives_(pushed_); }

    static void push(void *data, thrum_t thread) {
        of(data)->pushed_ = thrum_now();
        EXPECT_EQ(of(data)->kept_.exchange(thread), nullptr); // one at a time
    }
    static thrum_t pop(void *data) {
        return of(data)->has_one() ? of(data)->kept_.exchange(nullptr) : nullptr;
    }
    static std::size_t size(void *data) { return of(data)->has_one() ? 1 : 0; }
    static uint64_t wait(void *data) {
        return of(data)->kept_ != nullptr ? of(data)->until_(of(data)->pushed_) : UINT64_MAX;
    }

    Gives gives_;
    Until until_;
    std::atomic<uint64_t> pushed_{0};
    std::atomic<thrum_t> kept_{nullptr};
    thrum_pool_t pool_ = nullptr;
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
