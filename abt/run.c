// SPDX-License-Identifier: Apache-2.0
/* Hosts and guests: running a thread or a tasklet until it leaves, and what becomes of it then.
 *
 * All of it is done by the host. A guest that waits in an object's list may have been woken, and run elsewhere, when its host
 * is back: then nothing of it is looked at. */
#include "direct.h"

/* --- the guest's side ---------------------------------------------------------------------------------- */

void abt_leave(enum abt_left why, ABT_pool_context context, struct abt_thread *direct) {
    struct worker *worker = enter();
    struct abt_thread *host = abt_of_unit(worker->loop), *self = abt_of_unit(worker->current);
    bool is_done = false;
    if (why == ABT_LEFT_YIELDING) {
        is_done = abt_yield_direct(worker, host, self, context, direct);
    } else if (why == ABT_LEFT_SUSPENDED && host->picks != NULL && host->turns > 1) {
        abt_suspend_direct(worker, host, self, direct);
        is_done = true;
    }
    if (!is_done) {
        host->left = why;
        host->left_context = context;
        host->guest = self;
        host->direct = direct;
        front_leave(worker);
    }
    leave();
}

/* --- the host's side ----------------------------------------------------------------------------------- */

void abt_ready(struct abt_thread *thread, ABT_pool_context context, bool was_blocked) {
    store_release(&thread->state, ABT_THREAD_STATE_READY);
    abt_pool_push(thread->pool, thread, context, was_blocked);
}

/* It left from within its function, for good. */
static void drop_unit(struct abt_thread *thread) {
    if (load_relaxed(&thread->flags) & ABT_FLAG_GUARDED)
        abt_guard_clear(thread);
    front_drop(thread->unit);
}

/* The requests of one that can run, before it does. True: it is not to run here. */
static __attribute__((noinline)) bool meet_requests(struct abt_thread *thread) {
    uint32_t request = load_acquire(&thread->request);
    bool is_preempted = thread->unit != NULL && front_is_preempted(thread->unit);
    if (request & ABT_REQUEST_CANCEL && !is_preempted) { /* else when it gives way by itself */
        if (thread->unit != NULL)
            drop_unit(thread);
        thread->unit = NULL;
        abt_thread_terminate(thread);
        return true;
    }
    fetch_and_acq_rel(&thread->request, ~(uint32_t)ABT_REQUEST_MIGRATE);
    /* Pairs with migrate: the pool is there. */
    struct abt_pool *to = exchange_acq_rel(&thread->migrate_to, NULL);
    if (to == NULL)
        return false;
    if (abt_thread_associate(thread, to) != ABT_SUCCESS)
        return false;
    if (thread->migrated != NULL)
        thread->migrated(abt_handle(thread), thread->migrated_arg);
    abt_ready(thread, ABT_POOL_CONTEXT_OP_THREAD_MIGRATE, false);
    return true;
}

static void run_tasklet(struct abt_thread *host, struct abt_thread *tasklet) {
    struct abt_thread *outer = host->tasklet;
    store_relaxed(&tasklet->state, ABT_THREAD_STATE_RUNNING);
    host->tasklet = tasklet;
    tasklet->fn(tasklet->arg);
    host->tasklet = outer;
    abt_thread_terminate(tasklet);
}

static __attribute__((noinline)) bool make_unit(struct abt_thread *thread) {
    if (__builtin_expect(abt_has_default_stack(thread), 1)) {
        thread->unit = front_new(&abt.attr, abt_thread_entry, thread);
        return thread->unit != NULL;
    }
    thrum_attr_t attr = abt.attr;
    size_t size = thread->stack_size < 2 * THRUM_STACK_MIN ? 2 * THRUM_STACK_MIN : thread->stack_size;
    int error = thread->stack != NULL ? thrum_attr_set_stack(&attr, thread->stack, thread->stack_size)
                                      : thrum_attr_set_stack_size(&attr, size);
    if (error == 0)
        thread->unit = front_new(&attr, abt_thread_entry, thread);
    return thread->unit != NULL;
}

/* NULL: none that rests has a stack of that size. */
static struct thrum_unit *take_kept(struct abt_stream *stream, const struct abt_thread *thread) {
    if (__builtin_expect(abt_has_default_stack(thread), 1))
        return stream->kept != 0 ? stream->units[--stream->kept] : NULL;
    for (int i = 0; i < ABT_OTHER_UNITS_KEPT && thread->stack == NULL; i++) {
        struct thrum_unit *unit = stream->others[i].unit;
        if (unit != NULL && stream->others[i].stack_size == thread->stack_size) {
            stream->others[i].unit = NULL;
            return unit;
        }
    }
    return NULL;
}

bool abt_get_unit(const struct abt_thread *host, struct abt_stream *stream, struct abt_thread *thread) {
    struct thrum_unit *kept = take_kept(stream, thread);
    if (__builtin_expect(kept != NULL, 1)) {
        thread->unit = kept;
        front_rest_no_more(kept, thread);
        if (__builtin_expect(abt.preempts, 0))
            abt_preempt_set(thread);
        return true;
    }
    if (!make_unit(thread))
        return false;
    if (abt.preempts)
        abt_preempt_set(thread);
    if (host->picks != NULL) /* the caller may be one of its guests */
        thread->unit->float_control = host->float_control;
    return true;
}

/* A joiner runs next where it would if the guest had ended by itself (direct.c). Not inside where destructors may be called. */
static struct abt_thread *terminate(struct abt_thread *host, struct abt_thread *guest) {
    if (host->picks == NULL || host->turns <= 1 || !(load_relaxed(&guest->flags) & ABT_FLAG_NAMED)) {
        abt_thread_terminate(guest);
        return NULL;
    }
    struct abt_thread *joiner = abt_terminate_here(guest, abt_stream_on(enter()));
    leave();
    host->turns -= joiner != NULL;
    return joiner;
}

/* The guest has left: what it said. Returns what is to run next for that, or NULL. */
struct abt_thread *abt_see_to(struct abt_thread *host) {
    struct abt_thread *guest = host->guest;
    uint32_t left = host->left;
    host->left = ABT_LEFT_WAITING;
    switch (left) {
    case ABT_LEFT_WAITING: break;
    case ABT_LEFT_YIELDING:
        if (__builtin_expect(load_relaxed(&guest->request) == 0, 1) || !meet_requests(guest))
            abt_ready(guest, host->left_context, false);
        break;
    case ABT_LEFT_SUSPENDED:
        enter();
        abt_pool_add_blocked(guest->pool, 1);
        leave();
        store_release(&guest->state, ABT_THREAD_STATE_BLOCKED);
        break;
    case ABT_LEFT_REPLACING: store_release(&guest->state, ABT_THREAD_STATE_BLOCKED); break;
    case ABT_LEFT_EXITED: drop_unit(guest); __attribute__((fallthrough));
    case ABT_LEFT_ENDED: guest->unit = NULL; return terminate(host, guest);
    }
    return NULL;
}

/* The primary has a stack that is its kernel thread's: it runs on its own stream alone. */
static __attribute__((noinline)) bool is_elsewhere(struct abt_thread *primary, struct abt_stream *stream) {
    if (stream == abt.primary_stream)
        return false;
    abt_lock(&abt.lock);
    store_relaxed(&abt.primary_waits, primary);
    abt_unlock(&abt.lock);
    abt_stream_wake(abt.primary_stream);
    return true;
}

static void run_chain(struct abt_thread *host, struct abt_thread *thread) {
    while (thread != NULL) {
        struct abt_stream *stream = abt_stream_here();
        if (__builtin_expect(load_relaxed(&thread->request) != 0, 0)) {
            if (meet_requests(thread))
                return;
            if (load_relaxed(&thread->request) & ABT_REQUEST_PREEMPTED)
                abt_preempted_remove(thread);
        }
        if (__builtin_expect(thread->flags & ABT_FLAG_PRIMARY, 0) && is_elsewhere(thread, stream))
            return;
        thread->last_stream = stream;
        if (abt_is_tasklet(thread)) {
            run_tasklet(host, thread);
            return;
        }
        if (thread->unit == NULL && !abt_get_unit(host, stream, thread)) { /* until others have ended */
            abt_ready(thread, ABT_POOL_CONTEXT_OP_THREAD_YIELD, false);
            return;
        }
        store_relaxed(&thread->state, ABT_THREAD_STATE_RUNNING);
        host->left = ABT_LEFT_WAITING;
        host->direct = NULL;
        front_run(thread->unit); /* with `picks`, others may have run after it */
        thread = host->direct;
        host->direct = NULL;
        struct abt_thread *joiner = abt_see_to(host);
        if (thread == NULL)
            thread = joiner;
        else if (joiner != NULL)
            abt_ready(joiner, ABT_POOL_CONTEXT_OP_THREAD_RESUME, false);
        if (__builtin_expect(thread != NULL && host->picks != NULL && host->turns <= 1, 0))
            abt_sched_look(host->picks, host); /* a chain of them does not come back to the scheduler */
    }
}

/* A host is not preempted while it is one. */
void abt_run(struct abt_thread *host, struct abt_thread *thread) {
    abt_has_more(host);
    abt_preempt_off(host);
    if (__builtin_expect(abt.preempts, 0))
        abt_go_home();
    run_chain(host, thread);
    abt_preempt_on(host);
}

void abt_run_primary(struct abt_thread *host) {
    abt_lock(&abt.lock);
    struct abt_thread *primary = abt.primary_waits;
    store_relaxed(&abt.primary_waits, NULL);
    abt_unlock(&abt.lock);
    if (primary != NULL)
        abt_run(host, primary);
}

/* --- what the core wakes by itself --------------------------------------------------------------------- */

/* The end of a sleep or of thrum_blocking, which the layer has not seen begin; or of a wait with a deadline; or it is preempted, in a
 * signal handler: its pool is of the library's kinds then. */
static void core_push(void *data, thrum_t unit) {
    (void)data;
    struct abt_thread *thread = abt_of_unit(unit);
    if (thread == NULL)
        __builtin_unreachable(); /* no other units have this pool */
    bool was_blocked = load_relaxed(&thread->state) == ABT_THREAD_STATE_BLOCKED;
    if (!was_blocked && front_keeps_block(unit) &&
        !(thread->flags & ABT_FLAG_PRIMARY)) /* that keeps one for life */
        abt_preempted_add(thread);
    abt_ready(thread, ABT_POOL_CONTEXT_OP_THREAD_RESUME, was_blocked);
}

static thrum_t core_pop(void *data) {
    (void)data;
    return NULL;
}

static size_t core_size(void *data) {
    (void)data;
    return 0;
}

const struct thrum_pool_ops abt_core_ops = {.push = core_push, .pop = core_pop, .size = core_size};
