// SPDX-License-Identifier: Apache-2.0
/* Attributes of a thread to be created.
 *
 *     thrum::thread deep(thrum::attributes().stack_size(64 << 20).queued(), [] { std::puts("hello"); });
 *
 * A value out of range throws std::system_error (EINVAL). */
#ifndef THRUM_HPP_ATTRIBUTES_HPP
#define THRUM_HPP_ATTRIBUTES_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "thrum/hpp/detail/time.hpp"

namespace thrum {

class pool;

class attributes {
  public:
    attributes() noexcept { thrum_attr_init(&native_); }

    /* The new thread is enqueued and its creator continues; by default it is the other way round. */
    attributes &queued() { return add(THRUM_SPAWN_QUEUED); }
    /* thrum_cancel may end it. */
    attributes &cancellable() { return add(THRUM_SPAWN_CANCELLABLE); }
    /* Likewise, also where it waits for a lock or at a barrier. */
    attributes &cancellable_locks() { return add(THRUM_SPAWN_CANCEL_LOCKS); }
    attributes &stack_size(std::size_t bytes) {
        detail::check(thrum_attr_set_stack_size(&native_, bytes), "thrum::attributes::stack_size",
                      "more than 1 GiB");
        return *this;
    }
    /* Memory of the caller's, which must stay valid until the thread has been joined. */
    attributes &stack(void *memory, std::size_t bytes) {
        detail::check(thrum_attr_set_stack(&native_, memory, bytes), "thrum::attributes::stack",
                      "less than THRUM_STACK_MIN, or no memory of the process");
        return *this;
    }
    /* thrum_stack_used is exact to a page. */
    attributes &measured() { return add(THRUM_SPAWN_MEASURED); }
    /* It runs on a kernel thread of its own, which runs no other thread, as if it began with thrum_kthread_lock. */
    attributes &own_kthread() { return add(THRUM_SPAWN_OWN_KTHREAD); }
    /* Whether it is preempted, and what it keeps then (<thrum/preempt.h>). */
    attributes &preempt(thrum_preempt_mode mode) {
        detail::check(thrum_attr_set_preempt(&native_, mode), "thrum::attributes::preempt", "no such mode");
        return *this;
    }
    /* 0: that of its scheduler, or else the runtime's. Fractions of a microsecond are rounded up. */
    template <class Rep, class Period>
    attributes &slice(const std::chrono::duration<Rep, Period> &span) {
        detail::check(thrum_attr_set_slice(&native_, detail::microseconds_of(span)),
                      "thrum::attributes::slice", "less than THRUM_SLICE_MIN, or more than THRUM_SLICE_MAX");
        return *this;
    }
    attributes &worker(unsigned number) {
        detail::check(thrum_attr_set_worker(&native_, number), "thrum::attributes::worker",
                      "there can be no such worker");
        return *this;
    }
    attributes &priority(unsigned priority) {
        detail::check(thrum_attr_set_priority(&native_, priority), "thrum::attributes::priority",
                      "more than THRUM_PRIORITY_MAX");
        return *this;
    }
    attributes &deadline(std::uint64_t deadline) noexcept {
        thrum_attr_set_deadline(&native_, deadline);
        return *this;
    }
    attributes &pool(const thrum::pool &pool) noexcept; /* defined in pool.hpp */
    attributes &pool(thrum_pool_t pool) noexcept {
        thrum_attr_set_pool(&native_, pool);
        return *this;
    }

    const thrum_attr_t *native() const noexcept { return &native_; }

  private:
    attributes &add(unsigned flag) {
        detail::check(thrum_attr_set_flags(&native_, flags_ |= flag), "thrum::attributes", "no such flag");
        return *this;
    }

    thrum_attr_t native_;
    unsigned flags_ = 0;
};

} // namespace thrum

#endif
