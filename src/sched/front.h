// SPDX-License-Identifier: Apache-2.0
/* What a front end with schedulers of its own (abt/) needs of the core. No function of the library's calls these.
 *
 * Such a front end keeps its threads in pools of its own and has, on each worker, a thread that chooses: the host. The host
 * runs a unit with front_run, which returns when the unit waits, ends, or leaves with front_leave. A guest may be host to
 * others in turn. What the core wakes by itself (after thrum_sleep, say) it pushes into the unit's pool, a thrum_pool_t of the
 * front end's, whose `push` hands it to the front end.
 *
 * All from a unit, not in a region of the program's, unless it says so. */
#ifndef THRUM_SCHED_FRONT_H
#define THRUM_SCHED_FRONT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch_return.h"
#include "arch_tls.h"
#include "base/inside.h"
#include "os/backoff.h"
#include "os/clock.h"
#include "os/lock.h"
#include "os/membarrier.h"
#include "sched/time/timed_wait.h"
#include "sched/worker.h"
#include "thrum/pool.h"
#include "thrum/thrum.h"

/* The caller's unit; NULL on an external kernel thread. From: anywhere. */
static inline struct thrum_unit *front_self(void) {
    return unit_to_note();
}

/* What the caller, a guest, returns to. */
static inline struct thrum_unit *front_host(void) {
    return worker_here()->loop;
}

/* A thread of the front end's is a unit whose function is `entry`. What its argument points to has, at these offsets, a pointer to the
 * function that what inspects shows, and 32 bits that are `waits` while the thread waits. `exits` is called with that argument in the place of the rest of `entry`, when such a unit
 * ends from within and its stack is unwound. Before that `must_return` is asked: the line to abort with, or NULL. r/o while a runtime is there, but for `primary`; all 0 without a front end. */
struct front_shape {
    void *(*entry)(void *);
    size_t function, state;
    uint32_t waits;
    const void *
        primary; /* likewise, of the primary; NULL: it is no thread of the front end's. By front_set_primary */
    void (*exits)(void *arg);
    const char *(*must_return)(const void *arg);
};
extern struct front_shape front_shape;

/* Is it a thread of the front end's, which only its host runs? */
static inline bool front_has(const struct thrum_unit *unit) {
    return front_shape.entry != NULL && unit->fn == front_shape.entry;
}

/* On a relief worker, inside, from its loop: runs one preempted thread of the front end's, which its pools hold and the core's do
 * not, until that waits, yields, ends or is preempted. `stuck` is the worker that it is run for. False: there was none. r/o as
 * front_shape; NULL: no front end has any. */
extern bool (*front_relieve)(struct worker *worker, const struct worker *stuck);

/* A unit that is not joined and is in no queue; it gets its stack when it first runs. `attr` names a pool. NULL without
 * memory. From: anywhere. */
struct thrum_unit *front_new(const thrum_attr_t *attr, void *(*fn)(void *), void *arg);

/* Runs it until it leaves. It is in no queue. Where there is no stack for it, it is pushed into its pool instead. */
void front_run(struct thrum_unit *unit);

/* Likewise, by front_relieve. */
INSIDE static inline void front_run_relieved(struct worker *worker, struct thrum_unit *unit) {
    worker_run(worker, unit);
}

/* The worker whose own loop this unit is; NULL: it is none. */
static inline const struct worker *front_worker_of_loop(const struct thrum_unit *unit) {
    return load_relaxed(&unit->kind) == UNIT_LOOP
               ? (const struct worker *)(const void *)((const char *)unit - offsetof(struct worker, base))
               : NULL;
}

/* Back to the host, which was told why: it alone runs the caller again. In the region in which it was told. */
INSIDE void front_leave(struct worker *worker);

/* Ends a unit that has left, or never ran, without unwinding its stack: no destructor or handler of it runs. From: anywhere. */
void front_drop(struct thrum_unit *unit);

/* Where a unit whose preempt is `mode` and whose slice is `slice` (us; 0: the runtime's) may run. From: anywhere. */
static inline bool front_can_preempt(enum thrum_preempt_mode mode, uint32_t slice) {
    return tick_can_preempt(mode, slice);
}

/* It was preempted, and has not resumed: it must not be dropped. */
static inline bool front_is_preempted(const struct thrum_unit *unit) {
    return load_relaxed(&unit->took_tcb);
}

/* It was preempted, and has not resumed, or has a block for life. */
static inline bool front_keeps_block(const struct thrum_unit *unit) {
    return unit->tcb != NULL;
}

/* From here until it ends: us, 0: the runtime's. One that has had a slice of its own runs one thread only. */
static inline void front_set_slice(struct thrum_unit *unit, uint32_t slice) {
    unit->slice = slice;
    store_relaxed(&unit->extras, true);
}

/* --- in the host's place ------------------------------------------------------------------------------- */

/* A guest may choose, too: it enters, announces itself (unit_announce, front_wait_begin), does what its host would do with
 * it, switches to another guest of the same host, and leaves when it is resumed. The host does not see that. If there is no
 * stack for a new one, that is pushed into its pool, and the caller switches to the host. */
INSIDE static inline void front_switch(struct worker *worker, struct thrum_unit *self,
                                       struct thrum_unit *next, enum thrum_trace_kind why) {
    switch_as(worker, self, next, why);
}

/* Likewise, if `next` is new, or has rested. */
INSIDE static inline void front_switch_begin(struct worker *worker, struct thrum_unit *self,
                                             struct thrum_unit *next, enum thrum_trace_kind why) {
    switch_to_begin(worker, self, next, why);
}

/* `self` has a block for life and no spare behind it: the guest that it chooses is the host's to run. */
static inline bool front_must_leave(const struct worker *worker, const struct thrum_unit *self) {
    return worker_owes_from(worker, self);
}

/* A host is to call front_look now and then: timers wait, of this worker or of none, or units that are in no pool of the front
 * end's. */
static inline bool front_has_work(void) {
    const struct worker *worker = worker_here();
    return !timers_are_empty(&worker->timers) || load_relaxed(&runtime.orphans) ||
           !deque_is_empty(&worker->deque) || worker_count_queued(worker) != 0;
}

/* Fires what has expired, and lets one of those units run. Returns how many units of the front end's may run until it is to be
 * called again. From: a host. */
uint32_t front_look(void);

/* The caller's unit has run its function, but need not end: it has nothing that a new thread must not find. */
INSIDE static inline bool front_can_run_another(const struct thrum_unit *self) {
    return !load_relaxed(&self->extras) && self->tcb == NULL && !watch_on && !is_in_region();
}

/* Such a unit between two threads: what inspects takes it for unused. It is announced, and has left when the worker runs
 * another. */
INSIDE static inline void front_rest(struct thrum_unit *self) {
    self->arg = NULL;
    store_relaxed(&self->kind, (uint8_t)UNIT_FREE);
    unit_announce(self);
}

/* ... begins another, with this as its argument. */
static inline void front_rest_no_more(struct thrum_unit *unit, void *arg) {
    unit->arg = arg;
    store_relaxed(&unit->kind, (uint8_t)UNIT_POOLED);
}

/* front_switch after front_rest. */
INSIDE static inline __attribute__((always_inline)) void
front_switch_at_rest(struct worker *worker, struct thrum_unit *self, struct thrum_unit *next) {
    switch_to_rest(worker, self, next, THRUM_TRACE_WAIT);
}

/* For a thread that begins in the place of another: the floating-point control words are what they were at its unit's beginning.
 * front_switch_at_rest sees to it itself. */
static inline void front_reset_float_control(const struct thrum_unit *self) {
    arch_float_control_reset(self->float_control);
}

/* Lets the timers of this worker fire, and the kernel run another thread: for a host that polls. */
void front_breathe(void);

/* The primary: what wakes it pushes it into this pool; NULL: it is run by its worker again. `thread` is what the front end has for it, as
 * what the argument of its other threads points to; NULL with the pool. From: the primary, or its host. */
void front_set_primary(struct thrum_pool *pool, const void *thread);

/* Waits for a thread that is busy for a few instructions, the `tries`-th time. From: anywhere. */
static inline void front_back_off(unsigned tries) {
    backoff(tries);
}

/* --- fences -------------------------------------------------------------------------------------------- */

/* Two sides that each store and then load, one of them often: this is the other's fence, the often one's is a compiler barrier.
 * Only if the kernel can do it. */
static inline bool front_can_fence_all(void) {
    return !runtime.fenced;
}
void front_fence_all(void);

/* --- waiting ------------------------------------------------------------------------------------------- */

/* The caller is about to wait: from here, inside. It now puts itself where a waker finds it, and calls front_wait or, if it need
 * not wait after all, front_wait_not. `worker` is NULL on an external kernel thread, which may wait, too. A thread of the front
 * end's that its waker runs or enqueues itself calls unit_announce instead: what inspects goes by front_shape.state, and a waker on
 * another CPU does not touch its unit. From: anywhere. */
INSIDE static inline void front_wait_begin(struct thrum_unit *self) {
    unit_await(self, AWAITS_RESUME, NULL);
}

LEAVES static inline void front_wait_not(struct thrum_unit *self) {
    unit_await_no_more(self);
    leave();
}

/* The caller is still inside, perhaps on another worker, when this returns. */
INSIDE static inline void front_wait_here(struct worker *worker, struct thrum_unit *self) {
    unit_block(worker, self);
}

LEAVES static inline void front_wait(struct worker *worker, struct thrum_unit *self) {
    front_wait_here(worker, self);
    leave();
}

/* Until timed_wait->timer.deadline; `unit` and `give_up` are set (timed_wait.h). */
LEAVES static inline void front_wait_timed(struct worker *worker, struct timed_wait *timed_wait) {
    unit_block_timed(worker, timed_wait);
    leave();
}

/* The waiter goes where the core puts it: external, bound, or into its pool. From: anywhere. */
static inline void front_wake(struct thrum_unit *unit) {
    struct worker *worker = enter();
    unit_wake(worker, unit);
    leave();
}

#endif
