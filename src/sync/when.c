// SPDX-License-Identifier: Apache-2.0
/* A thread that begins when one of several objects is ready (thrum_spawn_when).
 *
 * Its descriptor stands in the objects' lists as that of a thread that waits does, and has no stack. A waker knows no difference:
 * it claims the wait and makes the unit runnable. When the unit begins, it has a stack, takes its other nodes off, and calls the
 * program's function. What cannot be done without a stack it does then, by thrum_wait_any: begin anew after an object looked ready
 * too early, or wait until a deadline whose timer no worker could start.
 *
 * `stage` says how it came to begin:
 *
 *   WHEN_ALONE    it waits for one object without a deadline. Nothing else can end the wait, so the node is not contested, and from
 *                 the store that lists it on it belongs to its waker.
 *   WHEN_SEVERAL  the lister still adds nodes, or starts the timer, when the first waker may have claimed the wait. So the thread
 *                 waits for `is_listed`, the lister's last access, before it touches anything. An object that looks ready ends the
 *                 listing: then the lister claims the wait, and wakes the unit.
 *   WHEN_ANEW     alone, it was not listed, as the object looked ready. The lister has woken the unit.
 *
 * A condition variable's mutex, which the caller owns, is unlocked by the lister once all is listed. If the lister lets the thread
 * begin, the mutex becomes the thread's instead, without being unlocked: no signal can come before thrum_wait_any waits for it. If
 * the deadline or another object makes the thread begin, it must lock the mutex again. Where that is locked, it makes another thread
 * that waits for it without a stack, in the condition's node, and ends.
 *
 * Linearization and reclamation: as in wait_any.c, where the thread is the waiter. The lister is in a non-preemptible region while
 * the thread may wait for it. The caller's memory is used until the program's function is called. Modelled in tests/model/when.pml and
 * when_cond.pml. */
#include <errno.h>

#include "base/container_of.h"
#include "base/misuse.h"
#include "os/backoff.h"
#include "sched/life.h"
#include "sync/mutex.h"
#include "sync/wait_any.h"

enum when_stage { WHEN_ALONE, WHEN_SEVERAL, WHEN_ANEW };

/* What thrum_when_t is. */
struct when {
    struct item *waits;
    size_t count;
    uint64_t deadline;
    void (*fn)(void *);
    void *arg;
    size_t which;
    int32_t error;
    uint32_t stage; /* enum when_stage; the lister's until it has woken the unit or listed it */
    struct wait wait;
    struct item *first, *end; /* as in wait_any.c */
    struct timer timer;       /* if it has a deadline */
    uint32_t is_listed;       /* WHEN_SEVERAL: the lister's last store; pairs with await_lister */
    bool has_timer;
};

_Static_assert(sizeof(struct when) <= sizeof(thrum_when_t), "thrum/sync.h leaves room for it");
_Static_assert(offsetof(struct when, which) == offsetof(thrum_when_t, which) &&
                   offsetof(struct when, error) == offsetof(thrum_when_t, error),
               "thrum/sync.h has the first seven");

/* --- the thread --------------------------------------------------------------------------------------- */

/* It is inside, on another worker. */
NOT_INSIDE static void await_lister(struct when *when) {
    for (unsigned tries = 0; !load_acquire(&when->is_listed); tries++) { /* pairs with list_several */
        thrum_yield();
        backoff(tries);
    }
    annotate_happens_after(&when->is_listed);
}

/* The one that the wait was claimed by, or NULL. */
NOT_INSIDE static struct item *withdraw(struct when *when) {
    await_lister(when);
    struct worker *worker = enter();
    if (when->has_timer)
        timer_stop(worker, &when->timer);
    struct item *fired = items_withdraw(when->first, when->end);
    leave();
    return fired;
}

/* False: it has yet to wait. *fired: NULL if the deadline came. */
NOT_INSIDE static bool is_over(struct when *when, struct item **fired) {
    *fired = NULL;
    if (when->stage != WHEN_ANEW)
        *fired = when->stage == WHEN_ALONE ? when->waits : withdraw(when);
    if (*fired != NULL) {
        item_collect(*fired);
        when->which = (size_t)(*fired - when->waits);
        when->error = 0;
        return true;
    }
    when->error = ETIMEDOUT;
    return load_relaxed(&when->wait.claim) == WAIT_TIMED_OUT;
}

/* The thread owns the mutex of `cond`, which may be NULL. */
NOT_INSIDE static void finish(struct when *when, const struct item *cond) {
    if (cond != NULL)
        item_restore_depth(cond);
    when->fn(when->arg);
}

static void *run_with_mutex(void *arg) {
    struct when *when = arg;
    finish(when, items_cond(when->first));
    return NULL;
}

/* False: another thread waits for the mutex, and owns `when`. */
NOT_INSIDE static bool lock_again(struct when *when, struct item *cond) {
    if (thrum_mutex_try_lock(cond->value) == 0)
        return true;
    if (unit_make_successor(run_with_mutex, when, &when->wait.unit) != 0) {
        mutex_lock_inside(enter(), cond->value, TIMER_NEVER, false);
        leave();
        return true;
    }
    struct thrum_unit *successor = when->wait.unit;
    store_relaxed(&successor->awaits, awaits_make(AWAITS_MUTEX, cond->value));
    struct worker *worker = enter();
    if (item_await_mutex(cond, &when->wait))
        unit_wake(worker, successor);
    leave();
    return false;
}

static void *run(void *arg) {
    struct when *when = arg;
    struct item *fired, *cond = items_cond(when->first);
    if (!is_over(when, &fired)) {
        when->error =
            thrum_wait_any((thrum_wait_t *)(void *)when->waits, when->count, when->deadline, &when->which);
        when->fn(when->arg);
    } else if (cond == NULL || fired == cond || lock_again(when, cond)) {
        finish(when, cond);
    }
    return NULL;
}

/* --- its creator -------------------------------------------------------------------------------------- */

INSIDE static void time_out(struct worker *worker, struct timer *timer) {
    struct when *when = container_of(timer, struct when, timer);
    uint32_t waiting = WAIT_WAITING;
    if (cas_acq_rel(&when->wait.claim, &waiting, WAIT_TIMED_OUT)) /* pairs with wait_claim */
        unit_wake(worker, when->wait.unit);
}

/* `mutex`: of a condition variable; else NULL. While it is locked, `when` is there. */
INSIDE static void list_alone(struct worker *worker, struct when *when, struct mutex *mutex) {
    when->stage = WHEN_ALONE;
    if (item_enlist_alone(when->waits, &when->wait) == 0) {
        if (mutex != NULL)
            mutex_unlock_inside(worker, mutex);
        return;
    }
    when->stage = WHEN_ANEW;
    unit_wake(worker, when->wait.unit);
}

/* External kernel threads have no store of timers, nor have threads with a kernel thread of their own. */
INSIDE static int start_timer(struct worker *worker, struct when *when) {
    if (when->deadline == TIMER_NEVER)
        return 0;
    if (worker_for_timers(worker) == NULL)
        return ENOTSUP;
    when->timer = (struct timer){.deadline = when->deadline, .fire = time_out};
    when->has_timer = true;
    timer_start(worker, &when->timer);
    return 0;
}

INSIDE static void list_several(struct worker *worker, struct when *when, const struct item *cond) {
    struct mutex *mutex = cond != NULL ? cond->value : NULL;
    when->stage = WHEN_SEVERAL;
    struct thrum_unit *unit = when->wait.unit;
    int error = items_enlist(when->first, &when->wait, &when->end);
    if (error == 0)
        error = start_timer(worker, when);
    bool is_to_begin = error != 0 && wait_claim(&when->wait);
    if (is_to_begin && mutex != NULL) {
        item_restore_depth(cond);
        mutex_give(mutex, unit);
    }
    annotate_happens_before(&when->is_listed);
    store_release(&when->is_listed, 1); /* pairs with await_lister: from here on `when` may be gone */
    if (is_to_begin)
        unit_wake(worker, unit);
    else if (mutex != NULL)
        mutex_unlock_inside(worker, mutex);
}

NOT_INSIDE static void list(struct when *when) {
    bool is_alone = when->count == 1 && when->deadline == TIMER_NEVER;
    uint64_t timed = when->deadline != TIMER_NEVER ? AWAITS_TIMED : 0;
    when->first = items_in_order(when->waits, when->count);
    struct item *cond = items_cond(when->first);
    when->has_timer = false;
    store_relaxed(&when->is_listed, 0);
    store_relaxed(&when->wait.claim, WAIT_WAITING);
    store_relaxed(&when->wait.unit->awaits,
                  (when->count == 1 ? item_awaits(when->waits) : awaits_make(AWAITS_ANY, NULL)) | timed);
    struct worker *worker = enter();
    if (cond != NULL)
        item_note_depth(cond);
    if (is_alone)
        list_alone(worker, when, cond != NULL ? cond->value : NULL);
    else
        list_several(worker, when, cond);
    leave();
}

int thrum_spawn_when(const thrum_attr_t *attr, thrum_when_t *object) {
    if (is_null(object))
        return EINVAL;
    struct when *when = (struct when *)(void *)object;
    if (when->fn == NULL || !items_may_wait(when->waits, when->count, when->deadline))
        return EINVAL;
    int error = unit_make_later(attr, run, when, &when->wait.unit);
    if (error == 0)
        list(when);
    return error;
}
