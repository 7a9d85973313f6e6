// SPDX-License-Identifier: Apache-2.0
/* The next thread, in the host's place (direct.c): what is on the way of each change of thread. All of it is inlined: the return stack
 * of the CPU predicts the returns of the thread that was left, so each level between a function of the interface and the
 * switch costs a misprediction where the two have come there by different ways. */
#ifndef ABT_DIRECT_H
#define ABT_DIRECT_H

#include "base/inside.h"
#include "pool.h"

/* abt_ready from inside. */
static inline void abt_ready_here(const struct worker *worker, struct abt_thread *thread,
                                  ABT_pool_context context, bool was_blocked) {
    struct abt_pool *pool = thread->pool;
    store_release(&thread->state, ABT_THREAD_STATE_READY);
    if (__builtin_expect(abt_pool_begin_own(pool, worker), 1))
        abt_pool_push_own(pool, thread, was_blocked);
    else
        abt_pool_push(pool, thread, context, was_blocked);
}

/* NULL: nothing, or the host is to look first. */
static inline __attribute__((always_inline)) struct abt_thread *abt_pick_next(const struct worker *worker,
                                                                              struct abt_thread *host) {
    if (__builtin_expect(host->turns <= 1, 0))
        return NULL;
    struct abt_pool *only = host->picks->only;
    struct abt_thread *next;
    if (__builtin_expect(only != NULL && abt_pool_begin_own(only, worker), 1)) {
        abt_pool_look_at_inbox(only);
        next = abt_pool_take_oldest(only);
        abt_pool_end_own(only);
    } else {
        next = abt_sched_pick(host->picks);
    }
    if (__builtin_expect(next != NULL, 1))
        host->turns--;
    return next;
}

/* `next` runs on this stream now, unless it is the host's to run. */
static inline __attribute__((always_inline)) bool
abt_prepare(const struct abt_thread *host, struct abt_stream *stream, struct abt_thread *next) {
    if (__builtin_expect(load_relaxed(&next->request) != 0 || next->kind != ABT_KIND_THREAD, 0))
        return false;
    if (__builtin_expect(next->flags & ABT_FLAG_PRIMARY && stream != abt.primary_stream, 0))
        return false;
    if (__builtin_expect(next->unit == NULL, 0) && !abt_get_unit(host, stream, next))
        return false;
    next->last_stream = stream;
    store_relaxed(&next->state, ABT_THREAD_STATE_RUNNING);
    return true;
}

/* What runs next on this stack: `next`, unless it is NULL or the host's to run. `self` has announced itself. */
INSIDE static inline __attribute__((always_inline)) struct thrum_unit *
abt_unit_to_follow(struct worker *worker, struct abt_thread *host, const struct thrum_unit *self,
                   struct abt_thread *next) {
    if (__builtin_expect(next != NULL && !front_must_leave(worker, self) &&
                             abt_prepare(host, abt_stream_on(worker), next),
                         1))
        return next->unit;
    host->direct = next;
    return worker->loop;
}

INSIDE static inline __attribute__((always_inline)) void
abt_go_to(struct worker *worker, struct abt_thread *host, struct thrum_unit *self, struct abt_thread *next,
          enum thrum_trace_kind why) {
    bool begins = next != NULL && next->unit == NULL;
    struct thrum_unit *unit = abt_unit_to_follow(worker, host, self, next);
    if (begins)
        front_switch_begin(worker, self, unit, why);
    else
        front_switch(worker, self, unit, why);
}

/* The caller can run, and gives way, to `direct` unless that is NULL. False: it is to leave. */
INSIDE static inline __attribute__((always_inline)) bool
abt_yield_direct(struct worker *worker, struct abt_thread *host, struct abt_thread *self,
                 ABT_pool_context context, struct abt_thread *direct) {
    if (__builtin_expect(host == NULL || host->picks == NULL || load_relaxed(&self->request) != 0 ||
                             self->pool->type != ABT_POOL_OURS || host->turns <= 1,
                         0))
        return false;
    struct thrum_unit *unit = worker->current;
    struct abt_pool *only = host->picks->only;
    struct abt_thread *next = direct;
    unit_announce(unit);
    if (__builtin_expect(direct == NULL && self->pool == only && abt_pool_begin_own(only, worker), 1)) {
        next = abt_pool_rotate_own(only, self);
        host->turns--;
        if (next == NULL)
            return true;
    } else {
        abt_ready_here(worker, self, context, false);
        if (direct == NULL)
            next = abt_pick_next(worker, host);
        else
            host->turns--;
    }
    if (next == self)
        store_relaxed(&self->state, ABT_THREAD_STATE_RUNNING);
    else
        abt_go_to(worker, host, unit, next, THRUM_TRACE_YIELD);
    return true;
}

/* The caller waits, and may have been woken. False: the host is to be switched to. */
INSIDE static inline __attribute__((always_inline)) bool abt_wait_direct(struct worker *worker,
                                                                         struct abt_thread *self) {
    struct abt_thread *host = abt_of_unit(worker->loop), *next;
    if (host == NULL || host->picks == NULL || /* NULL: it is the primary, which joins in */
        (next = abt_pick_next(worker, host)) == NULL)
        return false;
    if (next == self)
        store_relaxed(&self->state, ABT_THREAD_STATE_RUNNING);
    else
        abt_go_to(worker, host, worker->current, next, THRUM_TRACE_WAIT);
    return true;
}

/* abt_thread_terminate of one that has no unit any more, from inside. Returns a joiner that may run on this stream at once, and is the
 * caller's to run; one that last ran elsewhere is woken there. */
static inline struct abt_thread *abt_terminate_here(struct abt_thread *thread,
                                                    const struct abt_stream *stream) {
    if (!(load_relaxed(&thread->flags) & ABT_FLAG_NAMED)) {
        abt_thread_delete(thread);
        return NULL;
    }
    store_release(&thread->state, ABT_THREAD_STATE_TERMINATED);
    /* Pairs with that of a joiner: from here the descriptor is its. */
    struct abt_waiter *waiter = exchange_acq_rel(&thread->joiner, ABT_JOIN_ENDED);
    if (waiter == NULL)
        return NULL;
    struct abt_thread *joiner = waiter->thread;
    if (joiner == NULL || joiner->last_stream != stream || joiner->pool->type != ABT_POOL_OURS) {
        abt_wake(waiter);
        return NULL;
    }
    abt_pool_add_blocked(joiner->pool, -1);
    return joiner;
}

/* --- waiting (wait.c) ------------------------------------------------------------------------------------- */

INSIDE static inline void abt_wait_begin_here(struct worker *worker, struct abt_waiter *waiter) {
    waiter->unit = unit_self(worker);
    waiter->worker = worker;
    struct abt_thread *thread = worker != NULL ? abt_of_unit(waiter->unit) : NULL;
    waiter->thread = thread != NULL && thread->kind != ABT_KIND_MAIN && thread->pool != NULL ? thread : NULL;
    waiter->timed_out = false;
    if (__builtin_expect(waiter->thread != NULL, 1)) {
        unit_announce(waiter->unit);
        store_relaxed(&thread->state, ABT_THREAD_STATE_BLOCKED);
        abt_pool_add_blocked(thread->pool, 1);
    } else {
        front_wait_begin(waiter->unit);
    }
}

ENTERS static inline void abt_wait_begin(struct abt_waiter *waiter) {
    abt_wait_begin_here(enter(), waiter);
}

/* A waker may be done with the waiter already: of it only what it said before is read. The caller is still inside, perhaps on another
 * worker, when this returns. */
INSIDE static inline __attribute__((always_inline)) void abt_wait_here(const struct abt_waiter *waiter) {
    struct worker *worker = waiter->worker;
    if (__builtin_expect(waiter->thread == NULL, 0) || !abt_wait_direct(worker, waiter->thread))
        front_wait_here(worker, waiter->unit);
}

LEAVES static inline __attribute__((always_inline)) void abt_wait(const struct abt_waiter *waiter) {
    abt_wait_here(waiter);
    leave();
}

/* Waits in `list`, whose lock the caller holds and this releases. The lock's region becomes the wait's. */
LEAVES static inline __attribute__((always_inline)) void abt_wait_in(struct abt_waitlist *list,
                                                                     struct abt_spin *lock) {
    struct abt_waiter waiter;
    abt_wait_begin_here(worker_here(), &waiter);
    abt_waitlist_add(list, &waiter);
    abt_spin_release(lock);
    abt_wait(&waiter);
}

/* The next two of a function that was called from `place`. False: what was left for the caller was in one that was called from another
 * place. */
LEAVES static inline __attribute__((always_inline)) bool abt_wait_from(const struct abt_waiter *waiter,
                                                                       const void *place) {
    unit_leaves_from(place);
    abt_wait_here(waiter);
    bool is_same = unit_was_left_from(place);
    leave();
    return is_same;
}
LEAVES static inline __attribute__((always_inline)) bool
abt_wait_in_from(struct abt_waitlist *list, struct abt_spin *lock, const void *place) {
    struct abt_waiter waiter;
    abt_wait_begin_here(worker_here(), &waiter);
    abt_waitlist_add(list, &waiter);
    abt_spin_release(lock);
    return abt_wait_from(&waiter, place);
}

/* --- waking ----------------------------------------------------------------------------------------------- */

/* abt_wake from inside. */
INSIDE static inline void abt_wake_here(const struct worker *worker, struct abt_waiter *waiter) {
    struct abt_thread *thread = waiter->thread;
    if (__builtin_expect(thread == NULL, 0)) {
        front_wake(waiter->unit);
        return;
    }
    abt_ready_here(worker, thread, ABT_POOL_CONTEXT_OP_THREAD_RESUME, true);
}

/* Releases the lock, whose region ends with this, and wakes `waiter`, which was taken out under it, unless that is NULL. */
LEAVES static inline void abt_unlock_and_wake(struct abt_spin *lock, struct abt_waiter *waiter) {
    abt_spin_release(lock);
    if (waiter != NULL)
        abt_wake_here(worker_here(), waiter);
    leave();
}

/* Empties `list`, releases its lock, which the caller holds, and wakes all that waited: from then on one may free the object. */
LEAVES static inline void abt_unlock_and_wake_all(struct abt_spin *lock, struct abt_waitlist *list) {
    struct abt_waiter *first = list->first, *next = first != NULL ? first->next : NULL;
    list->first = NULL;
    abt_unlock_and_wake(lock, first);
    if (__builtin_expect(next != NULL, 0))
        abt_wake_all(next);
}

#endif
