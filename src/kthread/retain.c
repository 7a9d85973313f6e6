// SPDX-License-Identifier: Apache-2.0
/* See retain.h. */
#include "kthread/retain.h"

#include "base/atomic.h"
#include "kthread/counters.h"
#include "kthread/idle.h"
#include "kthread/internal.h"
#include "os/clock.h"
#include "os/lock.h"
#include "os/pressure.h"
#include "os/signals.h"

#define NEVER UINT64_MAX
enum { LOOK_EVERY_NS = 1000000000, LOOK_AT_MOST_EVERY_NS = 10000000 };
/* The coarse clock's step, at least: a sleep that ends just before is for nothing. */
enum { COARSE_NS = 4000000 };

static struct lock lock;
static struct kthread *warden; /* under lock; read without as a hint */
static uint64_t until = NEVER; /* monotonic ns; likewise */
static bool busy;              /* the warden does its chores; under lock, read without as a hint */
static uint64_t next_look_ns;  /* at memory, monotonic: no look before; by the thread that does the chores */
static bool again;             /* a thread has parked or been listed meanwhile; under lock */

bool retain_wants_warden(void) {
    return kthread_config.thread_ns != 0 || kthread_config.watch_pressure;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* How soon something may be due for a thread that parks now. */
static uint64_t delay(void) {
    const struct kthread_config *config = &kthread_config;
    uint64_t next = config->watch_pressure ? LOOK_EVERY_NS : NEVER;
    if (config->thread_ns != 0)
        next = least(next, least(config->thread_ns, LOOK_EVERY_NS));
    return next < LOOK_AT_MOST_EVERY_NS ? LOOK_AT_MOST_EVERY_NS : next;
}

static uint64_t time_to(uint64_t then, uint64_t now) {
    return then > now ? then - now : 0;
}

/* --- each thread for itself --------------------------------------------------------------------------- */

/* At which age this thread ends; its rest does not count. Threads that parked together differ, evenly spread: multiples of
 * the golden ratio, modulo 1. */
static uint64_t age_limit(const struct kthread *self) {
    uint64_t half = kthread_config.max_age_ns / 2;
    uint32_t spread = (uint32_t)self->tid * UINT32_C(0x9E3779B9) >> 16;
    return kthread_config.min_rest_ns + half + (half >> 16) * spread;
}

/* Its job is over and no thread has needed it since: it takes itself. Otherwise another thread has just taken it, and
 * the post is on its way. */
static uint64_t end_own(struct kthread *self) {
    if (!departures_begin())
        return LOOK_AT_MOST_EVERY_NS;
    if (idle_remove(self))
        return RETAIN_LEAVE;
    bool unjoined = departures_unjoined(self);
    departures_end(NULL);
    return unjoined ? RETAIN_UNJOINED : LOOK_AT_MOST_EVERY_NS;
}

/* With departures_begin, too: the thread-locals are found under the loader's lock. */
static void trim_own(struct kthread *self) {
    if (!departures_begin())
        return;
    stack_trim(&self->fresh, self->kind.stack_size);
    tls_trim();
    self->trimmed = true;
    departures_end(NULL);
}

/* Does what is due for itself. For how long it may sleep, NEVER for ever, or what retain_watch answers. */
static uint64_t watch_own(struct kthread *self) {
    const struct kthread_config *config = &kthread_config;
    uint64_t age = 0, next = NEVER;
    if ((config->max_age_ns | config->trim_after_ns) == 0)
        return NEVER;
    if (self->parked_ns == 0)
        self->parked_ns = clock_monotonic_coarse_ns();
    else
        age = time_to(clock_monotonic_coarse_ns(), self->parked_ns);
    if (config->max_age_ns != 0 && age >= age_limit(self))
        return end_own(self);
    if (config->trim_after_ns != 0 && !self->trimmed && age >= config->trim_after_ns)
        trim_own(self);
    if (config->max_age_ns != 0)
        next = time_to(age_limit(self), age);
    if (config->trim_after_ns != 0 && !self->trimmed)
        next = least(next, time_to(config->trim_after_ns, age));
    return next == NEVER || next > COARSE_NS ? next : COARSE_NS;
}

/* --- chores ------------------------------------------------------------------------------------------- */

/* Ends a thread that has been taken off the list. True if it is the caller itself, which ends by leaving. */
static bool end_taken(struct kthread *thread, const struct kthread *self) {
    if (thread == self)
        return true;
    counters_count(&thrum_cache_counters.culled);
    kthread_end(thread);
    return false;
}

/* The chores are done whenever a thread parks without a warden: not each of them looks. */
static bool memory_is_short(uint64_t now) {
    if (now < next_look_ns)
        return false;
    next_look_ns = now + LOOK_EVERY_NS;
    return pressure_rose(now);
}

/* Not kthread_cull: the caller may be in the list, or be listed meanwhile. */
static bool relieve_pressure(struct kthread *self, uint64_t now) {
    bool leaves = false;
    struct kthread *thread;
    if (!memory_is_short(now))
        return false;
    while ((thread = idle_pop_any()) != NULL)
        leaves |= end_taken(thread, self);
    return leaves;
}

static bool end_excess(const struct kthread *self, uint64_t now) {
    struct idle_times times;
    while (idle_measure(&times, now), times.sum > kthread_config.thread_ns) {
        struct kthread *thread = idle_pop_since(times.oldest);
        if (thread != NULL && end_taken(thread, self))
            return true;
    }
    return false;
}

/* When the next thing is due, from now. */
static uint64_t next_due(uint64_t now) {
    const struct kthread_config *config = &kthread_config;
    struct idle_times times;
    idle_measure(&times, now);
    uint64_t next = config->watch_pressure ? time_to(next_look_ns, now) : NEVER;
    if (config->thread_ns != 0)
        next = least(next, times.count != 0
                               ? least(LOOK_EVERY_NS, time_to(config->thread_ns, times.sum) / times.count)
                               : LOOK_EVERY_NS);
    return next < LOOK_AT_MOST_EVERY_NS ? LOOK_AT_MOST_EVERY_NS : next;
}

static uint64_t do_chores(struct kthread *self, uint64_t now) {
    const struct kthread_config *config = &kthread_config;
    if (!departures_begin())
        return LOOK_AT_MOST_EVERY_NS;
    if ((config->watch_pressure && relieve_pressure(self, now)) ||
        (config->thread_ns != 0 && end_excess(self, now)))
        return RETAIN_LEAVE;
    departures_end(NULL);
    return next_due(now);
}

/* --- the role ----------------------------------------------------------------------------------------- */

/* There is no warden, or it sleeps past what may be due for a thread that parks now. Under the lock. */
static bool is_needed(void) {
    return warden == NULL || until == NEVER || until > clock_monotonic_ns() + delay();
}

/* True: the caller is the warden, and at its chores. */
static bool take_role(struct kthread *self) {
    lock_acquire(&lock);
    bool mine = !busy && (warden == self || is_needed());
    if (mine) {
        store_relaxed(&warden, self);
        store_relaxed(&busy, true);
    } else if (busy) {
        again = true;
    }
    lock_release(&lock);
    return mine;
}

static bool give_up_role(const struct kthread *self) {
    lock_acquire(&lock);
    bool had = warden == self;
    if (had) {
        store_relaxed(&warden, NULL);
        store_relaxed(&until, NEVER);
        store_relaxed(&busy, false);
        again = false;
    }
    lock_release(&lock);
    return had;
}

/* False: a thread has come meanwhile, the chores begin anew. */
static bool chores_done(uint64_t when) {
    lock_acquire(&lock);
    bool done = !again;
    again = false;
    if (done) {
        store_relaxed(&until, when);
        store_relaxed(&busy, false);
    }
    lock_release(&lock);
    return done;
}

/* Does what is due for all, if the caller is the warden; answers like watch_own. */
static uint64_t watch_all(struct kthread *self) {
    uint64_t next, when;
    if (!retain_wants_warden() || !take_role(self))
        return NEVER;
    do {
        uint64_t now = clock_monotonic_ns();
        next = do_chores(self, now);
        when = next == NEVER ? NEVER : now + next;
        if (next == RETAIN_LEAVE)
            return RETAIN_LEAVE;
    } while (!chores_done(when));
    return next;
}

/* A thread that leaves is not the warden any more. One that leaves unjoined is its joiner's already, as after
 * LEFT_TO_JOINER in kthread.c; its descriptor stays until libc's join has seen it gone. */
uint64_t retain_watch(struct kthread *self) {
    uint64_t next = watch_own(self);
    if (next != RETAIN_LEAVE && next != RETAIN_UNJOINED)
        next = least(next, watch_all(self));
    if (next == RETAIN_LEAVE || next == RETAIN_UNJOINED)
        retain_wake(self);
    return next == NEVER ? 0 : next;
}

/* With the signals blocked: a joiner does not block them, and a handler that forked, found no room and ended the
 * warden would wait for one that waits for the lock its own thread holds. */
void retain_listed(struct kthread *thread) {
    if (!retain_wants_warden())
        return;
    sigbits mask = signals_mask_set(SIGBITS_ALL & ~SIGBITS_LIBC);
    lock_acquire(&lock);
    again |= busy;
    bool poke = !busy && is_needed();
    lock_release(&lock);
    if (poke)
        idle_poke(thread);
    signals_mask_set(mask);
}

/* Also where there is no warden: it may have gone, and woken the caller to take the role, just before the caller was
 * handed a job. */
void retain_wake(struct kthread *self) {
    self->parked_ns = 0;
    self->trimmed = false;
    if (!retain_wants_warden())
        return;
    const struct kthread *present = load_relaxed(&warden);
    if (present == NULL || (present == self && give_up_role(self)))
        idle_poke(NULL);
}

bool retain_is_busy(const struct kthread *thread) {
    return load_relaxed(&warden) == thread && load_relaxed(&busy);
}

void retain_fork_child(void) {
    lock_reset(&lock);
    warden = NULL;
    until = NEVER;
    busy = again = false;
    next_look_ns = 0;
    pressure_fork_child();
}
