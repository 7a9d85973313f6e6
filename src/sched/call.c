// SPDX-License-Identifier: Apache-2.0
/* One-shot calls (thrum_call_at): a function to be called at a time, without a thread that waits for it. A call is a timer and
 * a tasklet; when the timer goes off the tasklet becomes runnable, and it frees the call before it runs the function.
 *
 * Callers. Any thread starts and cancels. An external kernel thread has no store of timers, nor has a thread with a kernel
 *   thread of its own: they enqueue a tasklet, `arm`, that starts the timer on the worker that runs it.
 * `ticket` says what is left of a call: a number that no other call has, and below it one of
 *
 *   CALL_ENQUEUED  `arm` has not begun      -> STARTING (cas by `arm`), OVER (cas by a canceller; `arm` frees the call)
 *   CALL_STARTING  its timer may be started -> WAITS (cas by its starter), OVER (cas by its tasklet)
 *   CALL_WAITS     its timer is started     -> OVER (cas by its tasklet), STOPPING (cas by a canceller)
 *   CALL_STOPPING  the canceller uses the timer. If that is taken out of the heap the canceller frees the call, and its tasklet.
 *                  Else the tasklet runs as well, and the second of the two frees the call:
 *                  -> OVER (cas by the canceller; the tasklet frees it), RUN (cas by the tasklet; the canceller frees it)
 *   CALL_OVER      by the tasklet, which frees it: the timer is out of its heap, and fire() has made its last access
 *
 * Linearization. Either the tasklet's cas makes it OVER, and the function runs; or a canceller's cas from ENQUEUED or WAITS
 *   comes first, and it never runs.
 * Reclamation and ABA. Calls lie in a slab, which is never unmapped: a canceller with an old handle reads a ticket, and its
 *   number is not that of the handle. A starter that has lost the race to its own tasklet likewise fails its last cas. A
 *   canceller uses the call after its cas: so that cas makes it STOPPING, in which the tasklet does not free it.
 * Modelled in tests/model/call.pml.
 * The end of the runtime frees all calls (calls_forget); those that are found in no heap are in the list as well. */
#include "sched/call.h"

#include <errno.h>

#include "base/container_of.h"
#include "base/misuse.h"
#include "base/slab.h"
#include "os/backoff.h"
#include "sched/life.h"
#include "sched/worker.h"
#include "thrum/time.h"

enum { CALL_OVER, CALL_ENQUEUED, CALL_STARTING, CALL_WAITS, CALL_STOPPING, CALL_RUN, CALL_STATES = 8 };

struct call {
    struct call *next_free; /* base/slab.h's, while it is free */
    uint64_t ticket;
    struct timer timer;
    struct thrum_unit *tasklet; /* r/o once started */
    void (*fn)(void *);         /* r/o, as the next */
    void *arg;
    struct call *next, *prev; /* under the lock: of those that exist */
};

_Static_assert(sizeof(thrum_call_t) >= sizeof(uint64_t) + sizeof(void *), "thrum/time.h leaves room for it");

static struct {
    struct lock lock;
    struct slab slab;   /* under lock */
    struct call *first; /* under lock */
    uint64_t number;    /* of the last ticket */
} calls = {.slab = SLAB_INIT(struct call)};

/* --- memory ------------------------------------------------------------------------------------------- */

INSIDE static struct call *call_new(void) {
    lock_acquire(&calls.lock);
    struct call *call = slab_alloc_locked(&calls.slab);
    if (call != NULL) {
        call->next = calls.first;
        if (calls.first != NULL)
            calls.first->prev = call;
        calls.first = call;
    }
    lock_release(&calls.lock);
    return call;
}

static void call_free(struct call *call) {
    lock_acquire(&calls.lock);
    if (call->next != NULL)
        call->next->prev = call->prev;
    if (call->prev != NULL)
        call->prev->next = call->next;
    else
        calls.first = call->next;
    slab_free_locked(&calls.slab, call);
    lock_release(&calls.lock);
}

/* There are no workers any more, nor descriptors of tasklets. */
void calls_forget(void) {
    for (struct call *call; (call = calls.first) != NULL;) {
        store_relaxed(&call->ticket, 0);
        call_free(call);
    }
}

void calls_fork_child(void) {
    lock_reset(&calls.lock);
    calls.slab.free = NULL;
    calls.first = NULL;
}

/* --- the call ----------------------------------------------------------------------------------------- */

static unsigned state_of(uint64_t ticket) {
    return (unsigned)(ticket % CALL_STATES);
}

static uint64_t with_state(uint64_t ticket, unsigned state) {
    return ticket - state_of(ticket) + state;
}

static bool change(struct call *call, uint64_t ticket, unsigned from, unsigned to) {
    uint64_t before = with_state(ticket, from);
    /* Pairs with the others and make_and_start's store: the call is there. */
    return cas_acq_rel(&call->ticket, &before, with_state(ticket, to));
}

/* By the tasklet: what the state was, which is OVER now; RUN if it was STOPPING. The starter, or a canceller, may change it
 * meanwhile. */
static unsigned end(struct call *call) {
    /* This and the next pair with change, make_and_start and stop. */
    uint64_t ticket = load_acquire(&call->ticket);
    for (;;) {
        unsigned state = state_of(ticket);
        if (state == CALL_OVER ||
            cas_acq_rel(&call->ticket, &ticket,
                        with_state(ticket, state == CALL_STOPPING ? CALL_RUN : CALL_OVER)))
            return state;
    }
}

INSIDE static void go_off(struct worker *worker, struct timer *timer) {
    unit_wake(worker, container_of(timer, struct call, timer)->tasklet);
}

/* The tasklet. */
static void *run(void *arg) {
    struct call *call = arg;
    void (*fn)(void *) = call->fn;
    void *fn_arg = call->arg;
    enter();
    unsigned state = end(call);
    if (state != CALL_STOPPING)
        call_free(call);
    leave();
    if (state == CALL_STARTING || state == CALL_WAITS)
        fn(fn_arg);
    return NULL;
}

/* Inside, on a worker; the state is STARTING. From timer_start on the call may be over, and its memory another call's. */
INSIDE static void start(struct worker *worker, struct call *call, uint64_t ticket) {
    timer_start(worker, &call->timer);
    change(call, ticket, CALL_STARTING, CALL_WAITS);
}

/* It will not run, and is in no heap. */
INSIDE static void discard(struct worker *worker, struct call *call) {
    unit_free(worker, call->tasklet);
    call_free(call);
}

/* A tasklet of its own: see above. */
static void *arm(void *arg) {
    struct call *call = arg;
    struct worker *worker = enter();
    uint64_t ticket = load_relaxed(&call->ticket);
    if (change(call, ticket, CALL_ENQUEUED, CALL_STARTING))
        start(worker, call, ticket);
    else
        discard(worker, call);
    leave();
    return NULL;
}

INSIDE static struct thrum_unit *tasklet_of(struct worker *worker, void *(*fn)(void *), struct call *call) {
    struct thrum_unit *tasklet = unit_make_tasklet(worker, fn);
    if (tasklet != NULL)
        tasklet->arg = call;
    return tasklet;
}

/* NULL: no memory. */
INSIDE static struct call *make(struct worker *worker, uint64_t expiry, void (*fn)(void *), void *arg) {
    struct call *call = call_new();
    if (call == NULL)
        return NULL;
    call->tasklet = tasklet_of(worker, run, call);
    if (call->tasklet == NULL) {
        call_free(call);
        return NULL;
    }
    call->timer = (struct timer){.deadline = expiry, .fire = go_off};
    call->fn = fn;
    call->arg = arg;
    return call;
}

/* The handle's second word is the address of the call, which leaves the uppermost bits free: those tell a handle from bytes
 * that were never one. */
enum { ADDRESS_BITS = 48 };

static uint64_t check_of(uint64_t ticket, uint64_t address) {
    return ((ticket + address) * UINT64_C(0x9e3779b97f4a7c15)) >> ADDRESS_BITS;
}

static thrum_call_t handle_to(const struct call *call, uint64_t ticket) {
    uint64_t address = (uintptr_t)call;
    return (thrum_call_t){{ticket, address | check_of(ticket, address) << ADDRESS_BITS}};
}

/* NULL: it is no handle. */
static struct call *call_of(thrum_call_t handle) {
    uint64_t ticket = handle.opaque[0];
    uint64_t address = handle.opaque[1] & ((UINT64_C(1) << ADDRESS_BITS) - 1);
    bool is_handle = ticket != 0 && handle.opaque[1] >> ADDRESS_BITS == check_of(ticket, address);
    return is_handle ? (struct call *)(uintptr_t)address : NULL;
}

/* `handle`, unless NULL, is set before the call can begin. EAGAIN: no memory. */
INSIDE static int make_and_start(struct worker *worker, thrum_call_t *handle, uint64_t expiry,
                                 void (*fn)(void *), void *arg) {
    struct call *call = make(worker, expiry, fn, arg);
    if (call == NULL)
        return EAGAIN;
    struct worker *starter = worker_for_timers(worker);
    struct thrum_unit *armer = starter == NULL ? tasklet_of(worker, arm, call) : NULL;
    if (starter == NULL && armer == NULL) {
        discard(worker, call);
        return EAGAIN;
    }
    uint64_t ticket = (fetch_add_relaxed(&calls.number, 1) + 1) * CALL_STATES;
    if (handle != NULL)
        *handle = handle_to(call, ticket);
    /* Pairs with try_cancel, end and change. */
    store_release(&call->ticket, with_state(ticket, starter == NULL ? CALL_ENQUEUED : CALL_STARTING));
    if (starter != NULL)
        start(starter, call, ticket);
    else
        unit_wake(worker, armer);
    return 0;
}

int thrum_call_at(thrum_call_t *handle, uint64_t expiry, void (*fn)(void *), void *arg) {
    if (is_null(fn))
        return EINVAL;
    int error = 0;
    struct worker *worker = enter();
    while (worker == NULL && !load_acquire(&runtime.open) && error == 0) {
        leave();
        error = scheduler_start_default();
        worker = enter();
    }
    if (error == 0)
        error = make_and_start(worker, handle, expiry, fn, arg);
    leave();
    return error;
}

/* It is STOPPING by the caller. */
INSIDE static void stop(struct worker *worker, struct call *call, uint64_t ticket) {
    if (timer_stop(worker, &call->timer))
        discard(worker, call);
    else if (!change(call, ticket, CALL_STOPPING, CALL_OVER))
        call_free(call);
}

/* True: the caller has cancelled it. */
INSIDE static bool try_cancel(struct worker *worker, struct call *call, uint64_t ticket) {
    for (unsigned tries = 0;; tries++) {
        uint64_t seen = load_acquire(&call->ticket); /* pairs with make_and_start and change */
        if (seen == with_state(ticket, CALL_STARTING)) {
            backoff(tries); /* its starter is inside, on another worker */
        } else if (seen == with_state(ticket, CALL_ENQUEUED)) {
            if (change(call, ticket, CALL_ENQUEUED, CALL_OVER))
                return true;
        } else if (seen != with_state(ticket, CALL_WAITS)) {
            return false;
        } else if (change(call, ticket, CALL_WAITS, CALL_STOPPING)) {
            stop(worker, call, ticket);
            return true;
        }
    }
}

int thrum_call_cancel(thrum_call_t handle) {
    struct call *call = call_of(handle);
    if (is_null(call))
        return EINVAL;
    struct worker *worker = enter();
    bool is_cancelled = try_cancel(worker, call, handle.opaque[0]);
    leave();
    return is_cancelled ? 0 : ESRCH;
}
