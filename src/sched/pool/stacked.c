// SPDX-License-Identifier: Apache-2.0
/* See stacked.h. */
#include "sched/pool/stacked.h"

#include <errno.h>

#include "base/misuse.h"
#include "sched/attributes.h"
#include "sched/cancel.h"
#include "sched/pool/pool.h"
#include "sched/upward.h"
#include "sched/wait.h"

/* One that waits, on its own stack. */
struct stacked_wait {
    struct wait wait;
    struct thrum_sched *sched; /* r/o */
    struct stacked_wait *next; /* under lock; then written by the thread that has claimed it */
};

static struct {
    struct lock lock;
    struct stacked_wait *first;
    uint32_t count; /* changed under lock */
} waiting;

INSIDE static void wake_for(const struct thrum_pool *pool);

/* --- waiting ------------------------------------------------------------------------------------------ */

static void add(struct stacked_wait *wait) {
    lock_acquire(&waiting.lock);
    store_release(&scheduler_wake_stacked, wake_for); /* pairs, by the fences, with scheduler_wake_for */
    wait->next = waiting.first;
    waiting.first = wait;
    store_relaxed(&waiting.count, waiting.count + 1);
    lock_release(&waiting.lock);
}

static void take_off(struct stacked_wait **place) {
    *place = (*place)->next;
    store_relaxed(&waiting.count, waiting.count - 1);
}

/* No thread has claimed it, or will. */
static void remove_own(const struct stacked_wait *wait) {
    lock_acquire(&waiting.lock);
    for (struct stacked_wait **place = &waiting.first; *place != NULL; place = &(*place)->next)
        if (*place == wait) {
            take_off(place);
            break;
        }
    lock_release(&waiting.lock);
}

static bool has_something_to_do(const struct thrum_sched *sched) {
    return scheduler_has_work(sched) || load_acquire(&sched->stopping) || load_acquire(&runtime.stopping);
}

/* Until it is woken or the deadline comes; the worker may be another one then. False: there is something already. */
INSIDE static bool has_waited(struct worker *worker, struct thrum_sched *sched, uint64_t deadline) {
    struct stacked_wait wait = {.wait = {.unit = worker->current}, .sched = sched};
    deadline = cancel_point(worker, deadline);
    unit_await_until(wait.wait.unit, AWAITS_WORK, sched, deadline);
    add(&wait);
    /* Pairs with those of scheduler_wake_for and thrum_sched_stop: they see the count, or this sees theirs. */
    fence_seq_cst();
    bool is_mine = has_something_to_do(sched) && wait_claim(&wait.wait);
    if (is_mine) {
        (void)cancel_is_point(wait.wait.unit);
        unit_await_no_more(wait.wait.unit);
    }
    if (is_mine || !unit_block_until(worker, &wait.wait, deadline))
        remove_own(&wait);
    return !is_mine;
}

/* Its function may leave threads in its pools: it yields all the same. */
void stacked_wait(struct worker *worker, struct thrum_sched *sched) {
    uint64_t deadline = scheduler_wait_until(sched);
    bool is_over = deadline != TIMER_NEVER && deadline <= timer_now();
    bool gives_way = is_over || !has_waited(worker, sched, deadline);
    leave();
    if (gives_way)
        thrum_yield();
    (void)cancel_act(ETIMEDOUT);
}

/* --- waking ------------------------------------------------------------------------------------------- */

/* All that look at this pool or, if that is NULL, have this scheduler. Each stays until it is woken. */
static struct stacked_wait *claim_all(const struct thrum_pool *pool, const struct thrum_sched *sched) {
    struct stacked_wait *claimed = NULL;
    lock_acquire(&waiting.lock);
    for (struct stacked_wait **place = &waiting.first; *place != NULL;) {
        struct stacked_wait *wait = *place;
        bool looks = pool != NULL ? scheduler_looks_at(wait->sched, pool) : wait->sched == sched;
        if (looks && wait_claim(&wait->wait)) {
            take_off(place);
            wait->next = claimed;
            claimed = wait;
        } else {
            place = &wait->next;
        }
    }
    lock_release(&waiting.lock);
    return claimed;
}

INSIDE static void wake(const struct thrum_pool *pool, const struct thrum_sched *sched) {
    if (load_relaxed(&waiting.count) == 0)
        return;
    for (struct stacked_wait *wait = claim_all(pool, sched), *next; wait != NULL; wait = next) {
        next = wait->next;
        unit_wake(worker_here(), wait->wait.unit);
    }
}

static void wake_for(const struct thrum_pool *pool) {
    wake(pool, NULL);
}

/* It may be parked in thrum_sched_idle: (1) and (2) of idle.h with `stopping` in the place of the push. */
void thrum_sched_stop(thrum_sched_t sched) {
    if (is_null(sched))
        misuse_null(__func__);
    store_release(&sched->stopping, 1);
    enter();
    fence_seq_cst(); /* pairs with the parker's in idle.c, and with that of has_waited */
    scheduler_wake(sched);
    wake(NULL, sched);
    leave();
}

/* --- life --------------------------------------------------------------------------------------------- */

static void let_go(void *sched) {
    scheduler_release(sched);
}

/* Those that it runs have it from their loop (preempt/give_way.c). */
static void take_slice(const struct thrum_sched *sched) {
    uint32_t slice = load_relaxed(&sched->slice);
    struct thrum_unit *self = enter()->current;
    if (slice != 0 && self->slice == 0) {
        self->slice = slice;
        store_relaxed(&self->extras, true);
    }
    leave();
    tick_can_preempt(THRUM_PREEMPT_DEFAULT, slice);
}

/* Its function may also leave by thrum_exit, or be cancelled. */
static void *run_stacked(void *arg) {
    struct thrum_sched *sched = arg;
    take_slice(sched);
    thrum_cleanup_push(let_go, sched);
    sched->run(sched, sched->data);
    thrum_cleanup_pop(true);
    return NULL;
}

int thrum_sched_spawn(thrum_t *thread, const thrum_attr_t *attr, thrum_sched_t sched) {
    if (is_null(sched))
        return EINVAL;
    if (attr != NULL && attributes_of(attr)->flags & (THRUM_SPAWN_TASKLET | THRUM_SPAWN_OWN_KTHREAD))
        return EINVAL;
    if (!scheduler_claim(sched))
        return EBUSY;
    int error = thrum_spawn(thread, attr, run_stacked, sched);
    if (error != 0)
        scheduler_release(sched);
    return error;
}

const struct thrum_sched *stacked_of(const struct thrum_unit *unit) {
    return unit->fn == run_stacked ? own_argument(unit) : NULL;
}

const struct thrum_sched *stacked_or_own(const struct worker *worker) {
    return is_stacked(worker) ? stacked_of(worker->current) : worker->sched;
}

void stacked_forget(void) {
    waiting.first = NULL;
    store_relaxed(&waiting.count, 0);
}

void stacked_fork_child(void) {
    lock_reset(&waiting.lock);
    stacked_forget();
}
