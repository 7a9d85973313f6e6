// SPDX-License-Identifier: Apache-2.0
/* See timer.h. */
#include "sched/time/timer.h"

#include "base/assert.h"
#include "sched/time/timekeeper.h"
#include "sched/worker.h"

enum {
    BATCH = 64,      /* fired in one go: so long a thread that stops a timer may wait */
    LOOK_NS = 50000, /* about so often a worker looks that runs units all the time */
    LOOK_SOON = 8,   /* picks after which it looks for the first time */
};

static uint32_t used; /* from the first timer on; before, no searching or parking worker looks for any */

/* --- the heap ----------------------------------------------------------------------------------------- */

static uint32_t rank(const struct timer *timer) {
    return timer != NULL ? timer->rank : 0;
}

/* Its children may have changed. True: so has its rank. */
static bool settle(struct timer *timer) {
    if (rank(timer->left) < rank(timer->right)) {
        struct timer *left = timer->left;
        timer->left = timer->right;
        timer->right = left;
    }
    uint32_t before = timer->rank;
    timer->rank = rank(timer->right) + 1;
    return timer->rank != before;
}

/* Two heaps become one: down their right edges, which are short, and up again. */
static struct timer *merge(struct timer *a, struct timer *b) {
    struct timer *root = NULL, **at = &root, *parent = NULL;
    while (a != NULL && b != NULL) {
        if (b->deadline < a->deadline) {
            struct timer *later = a;
            a = b;
            b = later;
        }
        *at = a;
        a->parent = parent;
        parent = a;
        at = &a->right;
        a = a->right;
    }
    *at = a != NULL ? a : b;
    if (*at != NULL)
        (*at)->parent = parent;
    for (; parent != NULL; parent = parent->parent)
        settle(parent);
    return root;
}

/* `first` comes to be the heap's root. */
static void set_root(struct timers *timers, struct timer *first) {
    timers->root = first;
    store_relaxed(&timers->next, first != NULL ? first->deadline : TIMER_NEVER);
}

static void take_out(struct timers *timers, struct timer *timer) {
    struct timer *parent = timer->parent, *rest = merge(timer->left, timer->right);
    timer->rank = 0;
    if (parent == NULL) {
        set_root(timers, rest);
        return;
    }
    if (rest != NULL)
        rest->parent = parent;
    if (parent->left == timer)
        parent->left = rest;
    else
        parent->right = rest;
    while (parent != NULL && settle(parent))
        parent = parent->parent;
}

/* --- starting and stopping ---------------------------------------------------------------------------- */

void timer_start(struct worker *worker, struct timer *timer) {
    struct timers *timers = &worker->timers;
    timer->store = timers;
    timer->left = timer->right = timer->parent = NULL;
    timer->rank = 1;
    uint64_t deadline = timer->deadline; /* it may be fired, and gone, as soon as the lock is free */
    if (!load_relaxed(&used))
        store_relaxed(&used, 1);
    lock_acquire(&timers->lock);
    struct timer *root = merge(timers->root, timer);
    set_root(timers, root);
    lock_release(&timers->lock);
    if (root != timer)
        return;
    if (worker->until_slow > LOOK_SOON)
        worker->until_slow = LOOK_SOON;
    if (__builtin_expect(load_relaxed(&worker->tick.state) == TICK_REST, 0))
        tick_resume(worker);
    else
        tick_has_deadline(worker, deadline);
    timekeeper_tell(deadline);
}

bool timer_stop(struct worker *worker, struct timer *timer) {
    (void)worker;
    struct timers *timers = timer->store;
    lock_acquire(&timers->lock);
    bool waits = timer->rank != 0;
    if (waits)
        take_out(timers, timer);
    lock_release(&timers->lock);
    return waits;
}

/* --- firing ------------------------------------------------------------------------------------------- */

static bool lock_try(struct lock *lock) {
    uint32_t free = 0;
    return load_relaxed(&lock->word) == 0 && cas_acquire(&lock->word, &free, 1); /* pairs with lock_release */
}

/* The latest of a batch first: what is pushed last to a run queue is run first. */
static void fire_batch_locked(struct worker *worker, struct timers *timers, uint64_t now) {
    struct timer *batch = NULL, *first;
    for (int i = 0; i < BATCH && (first = timers->root) != NULL && first->deadline <= now; i++) {
        take_out(timers, first);
        first->right = batch;
        batch = first;
    }
    while (batch != NULL) {
        struct timer *timer = batch;
        batch = timer->right;
        timer->fire(worker, timer);
    }
}

/* If another thread holds the lock it fires them, or a later one will look again. */
static void fire_expired(struct worker *worker, struct timers *timers, uint64_t now) {
    if (load_relaxed(&timers->next) > now || !lock_try(&timers->lock))
        return;
    fire_batch_locked(worker, timers, now);
    lock_release(&timers->lock);
}

/* Not more than twice as seldom as before: one quick pick says little. */
static uint32_t next_stride(const struct timers *timers, uint64_t now) {
    uint64_t passed = now - timers->looked,
             most = 2 * timers->stride < FAIR_EVERY ? 2 * timers->stride : FAIR_EVERY;
    uint64_t stride = passed != 0 ? timers->stride * (uint64_t)LOOK_NS / passed : most;
    return (uint32_t)(stride > most ? most : stride != 0 ? stride : 1);
}

/* Those of stopped workers: no worker is left that would fire them while all are busy. */
INSIDE static void fire_orphans(struct worker *worker, uint64_t now) {
    bool some_are_left = false;
    exchange_acquire(&runtime.orphans, 0U); /* first: a worker that leaves some meanwhile sets it again */
    for (uint32_t i = 0; i < load_acquire(&runtime.count); i++)
        if (worker_is_leaving(runtime.workers[i])) {
            fire_expired(worker, &runtime.workers[i]->timers, now);
            some_are_left |= !timers_are_empty(&runtime.workers[i]->timers);
        }
    if (!some_are_left)
        return;
    exchange_release(&runtime.orphans, 1U);
    fence_seq_cst();     /* pairs with fence_rare in tick_rest */
    tick_wake_resting(); /* a worker may have looked in between */
}

uint32_t timers_look(struct worker *worker) {
    struct timers *timers = &worker->timers;
    uint64_t now = timer_now();
    fire_expired(worker, timers, now);
    if (load_acquire(&runtime.orphans))
        fire_orphans(worker, now);
    timers->stride = next_stride(timers, now);
    timers->looked = now;
    return timers->stride;
}

void timers_look_everywhere(struct worker *worker) {
    uint64_t next = timers_next();
    if (next == TIMER_NEVER)
        return;
    uint64_t now = timer_now();
    if (next > now)
        return;
    for (uint32_t i = 0; i < load_acquire(&runtime.count); i++)
        fire_expired(worker, &runtime.workers[i]->timers, now);
}

uint64_t timers_next(void) {
    uint64_t next = TIMER_NEVER;
    if (!timers_were_used())
        return next;
    for (uint32_t i = 0; i < load_acquire(&runtime.count); i++) {
        uint64_t there = load_relaxed(&runtime.workers[i]->timers.next);
        if (there < next)
            next = there;
    }
    return next;
}

bool timers_were_used(void) {
    return load_relaxed(&used);
}

void timers_init(struct timers *timers) {
    *timers = (struct timers){.next = TIMER_NEVER, .stride = LOOK_SOON};
}
