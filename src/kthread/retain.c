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

static struct lock lock;
static struct kthread *warden; /* under lock; read without as a hint */
static uint64_t until = NEVER; /* monotonic ns; likewise */
static bool busy;              /* the warden is at its chores; under lock, read without as a hint */
static uint64_t next_look_ns;  /* at memory, monotonic: no look before; whoever is at the chores */
static bool again;             /* somebody has parked or been listed meanwhile; under lock */

bool retain_wanted(void) {
    const struct kthread_config *config = &kthread_config;
    return (config->max_age_ns | config->thread_ns | config->trim_after_ns) != 0 || config->watch_pressure;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* How soon something may be due for a thread that parks now. */
static uint64_t delay(void) {
    const struct kthread_config *config = &kthread_config;
    uint64_t next = config->watch_pressure ? LOOK_EVERY_NS : NEVER;
    if (config->max_age_ns != 0)
        next = least(next, config->max_age_ns);
    if (config->thread_ns != 0)
        next = least(next, least(config->thread_ns, LOOK_EVERY_NS));
    if (config->trim_after_ns != 0)
        next = least(next, config->trim_after_ns);
    return next < LOOK_AT_MOST_EVERY_NS ? LOOK_AT_MOST_EVERY_NS : next;
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

static bool end_aged(const struct kthread *self, uint64_t now) {
    struct kthread *thread;
    while ((thread = idle_pop_since(now - kthread_config.max_age_ns)) != NULL)
        if (end_taken(thread, self))
            return true;
    return false;
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

static void trim_own(struct kthread *self) {
    stack_trim(&self->fresh, self->kind.stack_size);
    self->trimmed = true;
    store_relaxed(&self->trim_asked, false);
}

static uint64_t time_to(uint64_t then, uint64_t now) {
    return then > now ? then - now : 0;
}

/* When the next thing is due, from now. */
static uint64_t next_due(const struct kthread *self, uint64_t now, uint64_t trim_due) {
    const struct kthread_config *config = &kthread_config;
    struct idle_times times;
    idle_measure(&times, now);
    uint64_t next = config->watch_pressure ? time_to(next_look_ns, now) : NEVER;
    if (config->max_age_ns != 0)
        next = least(next,
                     times.count != 0 ? time_to(times.oldest + config->max_age_ns, now) : config->max_age_ns);
    if (config->thread_ns != 0)
        next = least(next, times.count != 0
                               ? least(LOOK_EVERY_NS, time_to(config->thread_ns, times.sum) / times.count)
                               : LOOK_EVERY_NS);
    if (config->trim_after_ns != 0 && !self->trimmed)
        next = least(next, time_to(self->parked_ns + config->trim_after_ns, now));
    if (trim_due != NEVER)
        next = least(next, time_to(trim_due, now));
    return next < LOOK_AT_MOST_EVERY_NS ? LOOK_AT_MOST_EVERY_NS : next;
}

static uint64_t do_chores(struct kthread *self, uint64_t now) {
    const struct kthread_config *config = &kthread_config;
    uint64_t trim_due = NEVER;
    if ((config->watch_pressure && relieve_pressure(self, now)) ||
        (config->max_age_ns != 0 && now > config->max_age_ns && end_aged(self, now)) ||
        (config->thread_ns != 0 && end_excess(self, now)))
        return RETAIN_LEAVE;
    if (config->trim_after_ns != 0) {
        if (!self->trimmed && now - self->parked_ns >= config->trim_after_ns)
            trim_own(self);
        trim_due = idle_ask_to_trim(now, config->trim_after_ns);
    }
    return next_due(self, now, trim_due);
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

/* False: somebody has come meanwhile, the chores begin anew. */
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

uint64_t retain_watch(struct kthread *self) {
    uint64_t next, when;
    if (!retain_wanted())
        return 0;
    if (self->parked_ns == 0)
        self->parked_ns = clock_monotonic_ns();
    if (load_relaxed(&self->trim_asked))
        trim_own(self);
    if (!take_role(self))
        return 0;
    do {
        uint64_t now = clock_monotonic_ns();
        next = do_chores(self, now);
        when = next == NEVER ? NEVER : now + next;
        if (next == RETAIN_LEAVE) {
            retain_wake(self);
            return RETAIN_LEAVE;
        }
    } while (!chores_done(when));
    return next == NEVER ? 0 : next;
}

/* With the signals blocked: a joiner does not block them, and a handler that forked, found no room and ended the
 * warden would wait for one that waits for the lock its own thread holds. */
void retain_listed(struct kthread *thread) {
    if (!retain_wanted())
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
    if (!retain_wanted())
        return;
    self->parked_ns = 0;
    self->trimmed = false;
    store_relaxed(&self->trim_asked, false);
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
