// SPDX-License-Identifier: Apache-2.0
/* Pools, where runnable threads wait, and the user's own schedulers, which choose the next thread.
 *
 *     thrum::runtime runtime(2);
 *     thrum::pool urgent, later;
 *     thrum::scheduler scheduler([&] { // on each turn: the thread to run, or null
 *         const thrum_t thread = urgent.pop();
 *         return thread != nullptr ? thread : later.pop();
 *     }, urgent, later);
 *     scheduler.run_on(1); // worker 1 uses it from now on
 *     thrum::thread(thrum::attributes().pool(urgent), [] { std::puts("hello"); }).join();
 *
 * <thrum/pool.h> has the details. */
#ifndef THRUM_HPP_POOL_HPP
#define THRUM_HPP_POOL_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "thrum/hpp/attributes.hpp"
#include "thrum/hpp/detail/time.hpp"
#include "thrum/pool.h"

namespace thrum {

/* When it is destroyed it must be empty, and no thread or scheduler may use it any more. */
class pool {
  public:
    using native_handle_type = thrum_pool_t;

    explicit pool(thrum_pool_kind kind = THRUM_POOL_FIFO) {
        static constexpr detail::reason reasons[] = {{EINVAL, "no such kind"}, {ENOMEM, "no memory for it"}};
        detail::check(thrum_pool_create(&native_, kind), "thrum::pool", reasons);
    }
    pool(const pool &) = delete;
    pool &operator=(const pool &) = delete;
    ~pool() { thrum_pool_destroy(native_); }

    std::size_t size() const noexcept { return thrum_pool_size(native_); }
    /* The caller must run the thread or push it again; null: the pool is empty. */
    thrum_t pop() noexcept { return thrum_pool_pop(native_); }
    void push(thrum_t thread) noexcept { thrum_pool_push(native_, thread); }
    native_handle_type native_handle() const noexcept { return native_; }

  private:
    thrum_pool_t native_;
};

inline attributes &attributes::pool(const thrum::pool &pool) noexcept {
    return this->pool(pool.native_handle());
}

/* The worker calls `Choose` on each turn. It must not wait. */
template <class Choose>
class scheduler {
  public:
    /* It may choose from these pools only; they must outlive it. */
    template <class... Pools>
    explicit scheduler(Choose choose, const Pools &...pools) : choose_(std::move(choose)) {
        static_assert(sizeof...(Pools) > 0, "a scheduler needs the pools that it chooses from");
        const thrum_pool_t natives[] = {pools.native_handle()...};
        static constexpr detail::reason reasons[] = {{EINVAL, "no pool, or more than THRUM_SCHED_POOLS_MAX"},
                                                     {ENOMEM, "no memory for it"}};
        detail::check(thrum_sched_create_user(&native_, run, this, natives, sizeof...(pools)),
                      "thrum::scheduler", reasons);
    }
    scheduler(const scheduler &) = delete;
    scheduler &operator=(const scheduler &) = delete;
    /* The worker goes back to its own run queue. */
    ~scheduler() {
        if (worker_ != THRUM_ANY_WORKER &&
            runtime_ == thrum_runtime_id()) /* else no worker has it any more */
            thrum_worker_set_sched(worker_, nullptr);
        while (thrum_sched_destroy(native_) == EBUSY)
            thrum_sleep(50 * THRUM_US);
    }

    /* To be called once. Throws std::system_error: EINVAL no such worker. */
    void run_on(unsigned worker) {
        static constexpr detail::reason reasons[] = {{EINVAL, "there is no such worker"},
                                                     {EBUSY, "another worker has this scheduler"}};
        detail::check(thrum_worker_set_sched(worker, native_), "thrum::scheduler::run_on", reasons);
        worker_ = worker;
        runtime_ = thrum_runtime_id();
    }

  private:
    static void run(thrum_sched_t sched, void *arg) {
        auto *self = static_cast<scheduler *>(arg);
        while (!thrum_sched_stopping(sched)) {
            if (const thrum_t thread = std::invoke(self->choose_); thread != nullptr)
                thrum_run(thread);
            else
                thrum_sched_idle(sched);
        }
    }

    Choose choose_;
    thrum_sched_t native_ = nullptr;
    unsigned worker_ = THRUM_ANY_WORKER;
    std::uint64_t runtime_ = 0; /* that the worker belongs to */
};

} // namespace thrum

#endif
