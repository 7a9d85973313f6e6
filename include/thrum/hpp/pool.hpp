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
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "thrum/hpp/attributes.hpp"
#include "thrum/hpp/detail/time.hpp"
#include "thrum/hpp/detail/uncancelled.hpp"
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

namespace detail {

inline constexpr reason sched_reasons[] = {
    {EINVAL, "no pool, no such kind or queue, or more than THRUM_SCHED_POOLS_MAX"},
    {ENOMEM, "no memory for it"}};

/* A scheduler, and the worker that uses it. */
class sched_owner {
  public:
    sched_owner() = default;
    sched_owner(const sched_owner &) = delete;
    /* The worker goes back to its own run queue. */
    ~sched_owner() {
        const uncancelled waiting;
        if (worker_ != THRUM_ANY_WORKER &&
            runtime_ == thrum_runtime_id()) /* else no worker has it any more */
            thrum_worker_set_sched(worker_, nullptr);
        while (thrum_sched_destroy(native) == EBUSY)
            thrum_sleep(50 * THRUM_US);
    }
    void run_on(unsigned worker) {
        static constexpr reason reasons[] = {{EINVAL, "there is no such worker"},
                                             {EBUSY, "another worker has this scheduler"}};
        check(thrum_worker_set_sched(worker, native), "thrum::scheduler::run_on", reasons);
        worker_ = worker;
        runtime_ = thrum_runtime_id();
    }
    template <class Rep, class Period>
    void slice(const std::chrono::duration<Rep, Period> &span) {
        check(thrum_sched_set_slice(native, microseconds_of(span)), "thrum::scheduler::slice",
              "less than THRUM_SLICE_MIN, or more than THRUM_SLICE_MAX");
    }

    thrum_sched_t native = nullptr;

  private:
    unsigned worker_ = THRUM_ANY_WORKER;
    std::uint64_t runtime_ = 0; /* that the worker belongs to */
};

} // namespace detail

/* The worker calls `Choose` on each turn. It must not wait. */
template <class Choose>
class scheduler {
  public:
    /* It may choose from these pools only; they must outlive it. */
    template <class... Pools>
    explicit scheduler(Choose choose, const Pools &...pools) : choose_(std::move(choose)) {
        static_assert(sizeof...(Pools) > 0, "a scheduler needs the pools that it chooses from");
        const thrum_pool_t natives[] = {pools.native_handle()...};
        detail::check(thrum_sched_create_user(&sched_.native, run, this, natives, sizeof...(pools)),
                      "thrum::scheduler", detail::sched_reasons);
    }
    scheduler(const scheduler &) = delete;
    scheduler &operator=(const scheduler &) = delete;

    /* To be called once. Throws std::system_error: EINVAL no such worker. */
    void run_on(unsigned worker) { sched_.run_on(worker); }
    /* That of the threads that it runs; 0: the runtime's. */
    template <class Rep, class Period>
    void slice(const std::chrono::duration<Rep, Period> &span) {
        sched_.slice(span);
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
    detail::sched_owner sched_; /* destroyed first: then no worker calls choose_ any more */
};

/* A scheduler of the library's, over these pools, which must outlive it. */
class pool_scheduler {
  public:
    template <class... Pools>
    explicit pool_scheduler(thrum_sched_kind kind, const pool &first, const Pools &...others) {
        const thrum_pool_t natives[] = {first.native_handle(), others.native_handle()...};
        make(kind, natives);
    }
    pool_scheduler(thrum_sched_kind kind, std::span<const thrum_pool_t> pools) { make(kind, pools); }
    /* Work stealing with levels: pools[queue * levels + level]; it serves queue number `own` (thrum_sched_create_stealing). */
    pool_scheduler(std::span<const thrum_pool_t> pools, unsigned levels, unsigned own) {
        const auto count = detail::count_of(static_cast<std::ptrdiff_t>(pools.size()));
        if (levels == 0 || count % levels != 0)
            detail::fail(EINVAL, "thrum::pool_scheduler", "not as many pools in each queue as levels");
        detail::check(thrum_sched_create_stealing(&sched_.native, pools.data(), count / levels, levels, own),
                      "thrum::pool_scheduler", detail::sched_reasons);
    }

    /* These two as scheduler's. */
    void run_on(unsigned worker) { sched_.run_on(worker); }
    template <class Rep, class Period>
    void slice(const std::chrono::duration<Rep, Period> &span) {
        sched_.slice(span);
    }

  private:
    void make(thrum_sched_kind kind, std::span<const thrum_pool_t> pools) {
        const auto count = detail::count_of(static_cast<std::ptrdiff_t>(pools.size()));
        detail::check(thrum_sched_create(&sched_.native, kind, pools.data(), count), "thrum::pool_scheduler",
                      detail::sched_reasons);
    }

    detail::sched_owner sched_;
};

} // namespace thrum

#endif
