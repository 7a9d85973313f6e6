/* SPDX-License-Identifier: Apache-2.0 */
/* See inside.h. */
#include "inside.h"

#include "os/signals.h"
#include "preempt/own_stack.h"
#include "preempt/preempt.h"
#include "sched/worker.h"

struct worker *inside_enter(void) {
    return enter();
}

void inside_leave(void) {
    leave();
}

unsigned inside_regions(void) {
    return regions_open();
}

struct thrum_unit *inside_announce(struct worker *worker) {
    struct thrum_unit *self = unit_self(worker);
    unit_announce(self);
    return self;
}

void inside_wake(struct worker *worker, struct thrum_unit *unit) {
    unit_wake(worker, unit);
}

struct timers *inside_timers(struct worker *worker) {
    return &worker->timers;
}

int inside_worker_blocks(int signal) {
    const struct worker *worker = inside_enter();
    int blocks = (worker->tick.thread.mask & signals_bit(signal)) != 0;
    inside_leave();
    return blocks;
}

int inside_is_spared(uintptr_t pc) {
    return handler_is_to_spare(pc);
}

void inside_wants_safepoint(void) {
    store_relaxed(&enter()->tick.wanted, true);
    leave();
}

int inside_finds_handler(const char *top) {
    return own_stack_has_handler((uintptr_t)__builtin_frame_address(0), (uintptr_t)top, signals_mask_get());
}

int inside_is_fenced(void) {
    return runtime.fenced;
}

unsigned long inside_kernel_wait(unsigned worker) {
    return load_relaxed(&runtime.workers[worker]->tick.kernel_wait.span);
}

void inside_clock_was(int64_t ns) {
    unit_head_of(unit_self(inside_enter()))->clock.last = (uint64_t)ns;
    inside_leave();
}
