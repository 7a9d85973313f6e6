// SPDX-License-Identifier: Apache-2.0
/* A guest in its host's place: what the host would do with a thread that leaves, and the switch to the thread that it would run
 * next, done by the thread that leaves. So a change of thread is one switch of stacks, not two.
 *
 * It does so only if its host runs a scheduler of the library's whose pools are of the library's kinds (host->picks): the host would
 * call no function of the program's. What is not so simple stays the host's: tasklets, requests to cancel or to migrate, the
 * primary when it was picked elsewhere, stacks of the program's, and its own look at events, each host->turns units. Then the caller
 * switches to the host, with what was picked in host->direct.
 *
 * The caller stands on its stack until it switches. It announces itself to the core first (front.h): another stream that takes it out
 * of a pool meanwhile waits until its registers are saved.
 *
 * Units. A thread that ends leaves its unit and stack to the next that is new and asks for a stack of that size: either at once, or
 * after the unit has rested in stream->units or stream->others. A joiner that may run on this stream runs next, as in Argobots. Once the end is published, the thread's descriptor
 * may be gone. */
#include "direct.h"

void abt_suspend_direct(struct worker *worker, struct abt_thread *host, struct abt_thread *self,
                        struct abt_thread *direct) {
    struct thrum_unit *unit = worker->current;
    unit_announce(unit);
    abt_pool_add_blocked(self->pool, 1);
    store_release(&self->state, ABT_THREAD_STATE_BLOCKED);
    struct abt_thread *next = direct;
    if (direct == NULL)
        next = abt_pick_next(worker, host);
    else
        host->turns--;
    if (next == self) /* resumed by another stream */
        store_relaxed(&self->state, ABT_THREAD_STATE_RUNNING);
    else
        abt_go_to(worker, host, unit, next, THRUM_TRACE_WAIT);
}

/* --- the end --------------------------------------------------------------------------------------------- */

/* What the descriptor has to be rid of calls no function of the program's, and its stack is for others. */
INSIDE static inline bool ends_simply(const struct abt_thread *host, const struct abt_thread *self,
                                      const struct thrum_unit *unit) {
    return host->picks != NULL && self->stack == NULL && self->values == NULL && self->unit_pool == NULL &&
           front_can_run_another(unit);
}

static inline bool is_new(const struct abt_thread *thread, size_t stack_size) {
    return thread->unit == NULL && thread->kind == ABT_KIND_THREAD && load_relaxed(&thread->request) == 0 &&
           thread->stack_size == stack_size && thread->stack == NULL;
}

/* Instead of the oldest. */
static __attribute__((noinline)) void keep_other(struct abt_stream *stream, struct thrum_unit *unit,
                                                 size_t stack_size) {
    struct abt_other_unit *place = &stream->others[stream->others_put++ % ABT_OTHER_UNITS_KEPT];
    if (place->unit != NULL)
        front_drop(place->unit);
    *place = (struct abt_other_unit){unit, stack_size};
}

/* Its unit is to end: by a return to the core, which switches to the host. */
LEAVES static struct abt_thread *end_by_host(struct abt_thread *host, enum abt_left why,
                                             struct abt_thread *self, struct abt_thread *direct) {
    host->left = why;
    host->guest = self;
    host->direct = direct;
    if (__builtin_expect(abt.preempts, 0))
        abt_preempt_hold(abt_unit_here());
    leave();
    return NULL;
}

/* The thread that the caller's unit runs next; NULL: it ends. Inlined: this returns to one place whatever it was resumed for. */
static inline __attribute__((always_inline)) struct abt_thread *end(struct abt_thread *self) {
    struct worker *worker = enter();
    struct thrum_unit *unit = worker->current;
    struct abt_thread *host = abt_of_unit(worker->loop);
    if (__builtin_expect(!ends_simply(host, self, unit), 0))
        return end_by_host(host, ABT_LEFT_ENDED, self, NULL);
    struct abt_stream *stream = abt_stream_on(worker);
    size_t stack_size = self->stack_size;
    self->unit = NULL;
    struct abt_thread *next = abt_terminate_here(self, stream); /* `self` may be gone */
    if (next == NULL)
        next = abt_pick_next(worker, host);
    if (next != NULL && is_new(next, stack_size)) {
        front_reset_float_control(unit);
        unit->arg = next;
        next->unit = unit;
        next->last_stream = stream;
        store_relaxed(&next->state, ABT_THREAD_STATE_RUNNING);
        if (__builtin_expect(abt.preempts, 0))
            abt_preempt_set(next);
        leave();
        return next;
    }
    if (__builtin_expect(stack_size != abt.stack_size, 0))
        keep_other(stream, unit, stack_size);
    else if (__builtin_expect(stream->kept == ABT_UNITS_KEPT, 0))
        return end_by_host(host, ABT_LEFT_WAITING, NULL, next);
    else
        stream->units[stream->kept++] = unit;
    front_rest(unit);
    front_switch_at_rest(worker, unit, abt_unit_to_follow(worker, host, unit, next));
    leave();
    return unit->arg; /* abt_get_unit has set it */
}

/* One thread, or several in turn. The result is the unit's `arg`, where abt_of_unit reads whose unit it is: it stays
 * what it is. */
void *abt_thread_entry(void *arg) {
    struct abt_thread *self = arg, *last;
    do {
        last = self;
        if (__builtin_expect(abt.guard != ABT_GUARD_NONE, 0))
            abt_guard_set(self);
        self->fn(self->arg);
        if (__builtin_expect(load_relaxed(&self->flags) & ABT_FLAG_GUARDED, 0))
            abt_guard_clear(self);
        if (__builtin_expect(abt.preempts, 0))
            abt_values_delete_early(self);
        if (__builtin_expect(self->kind == ABT_KIND_MAIN, 0)) { /* its host is its worker's own loop */
            abt_thread_cache_flush();
            abt_thread_terminate(self);
            return arg;
        }
        self = end(self);
    } while (self != NULL);
    return last;
}

const char *abt_thread_must_return(const void *thread) {
    const struct abt_thread *self = thread;
    if (self->tasklet != NULL)
        return "a tasklet must end by returning, not by pthread_exit() or thrum_exit()";
    if (self->kind != ABT_KIND_THREAD)
        return "a main scheduler must end by returning, not by pthread_exit() or thrum_exit()";
    return NULL;
}

/* Its stack is unwound: what is left to do of abt_thread_entry. */
void abt_thread_exits(void *thread) {
    struct abt_thread *self = thread;
    if (load_relaxed(&self->flags) & ABT_FLAG_GUARDED)
        abt_guard_clear(self);
    abt_values_delete_early(self);
    const struct worker *worker = enter();
    end_by_host(abt_of_unit(worker->loop), ABT_LEFT_ENDED, self, NULL);
}

void abt_units_drop(struct abt_stream *stream) {
    while (stream->kept != 0)
        front_drop(stream->units[--stream->kept]);
    for (int i = 0; i < ABT_OTHER_UNITS_KEPT; i++)
        if (stream->others[i].unit != NULL) {
            front_drop(stream->others[i].unit);
            stream->others[i].unit = NULL;
        }
}
