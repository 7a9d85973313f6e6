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

#define NEVER UINT64_MAX
enum { LOOK_EVERY_NS = 1000000000, LOOK_AT_MOST_EVERY_NS = 10000000 };

static struct lock lock;
static struct kthread *warden; /* under lock; read without as a hint */
static uint64_t until = NEVER; /* monotonic ns; likewise */

static bool wanted(void) {
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

static bool relieve_pressure(struct kthread *self, uint64_t now) {
    if (!pressure_rose(now))
        return false;
    bool listed = idle_remove(self);
    kthread_cull();
    return listed;
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

/* When the next thing is due, from now. */
static uint64_t next_due(const struct kthread *self, uint64_t now, uint64_t trim_due) {
    const struct kthread_config *config = &kthread_config;
    struct idle_times times;
    idle_measure(&times, now);
    uint64_t next = config->watch_pressure ? LOOK_EVERY_NS : NEVER;
    if (config->max_age_ns != 0)
        next = least(next, times.count != 0 ? times.oldest + config->max_age_ns - now : config->max_age_ns);
    if (config->thread_ns != 0)
        next =
            least(next, times.count != 0 ? least(LOOK_EVERY_NS, (config->thread_ns - times.sum) / times.count)
                                         : LOOK_EVERY_NS);
    if (config->trim_after_ns != 0 && !self->trimmed)
        next = least(next, self->parked_ns + config->trim_after_ns - now);
    next = least(next, trim_due == NEVER ? NEVER : trim_due - now);
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

static bool take_role(struct kthread *self, uint64_t now) {
    lock_acquire(&lock);
    bool mine = warden == self || warden == NULL || until == NEVER || until > now + delay();
    if (mine) {
        store_relaxed(&warden, self);
        store_relaxed(&until, now + delay());
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
    }
    lock_release(&lock);
    return had;
}

static void look_again_in(const struct kthread *self, uint64_t when) {
    lock_acquire(&lock);
    if (warden == self)
        store_relaxed(&until, when);
    lock_release(&lock);
}

uint64_t retain_watch(struct kthread *self) {
    if (!wanted())
        return 0;
    uint64_t now = clock_monotonic_ns();
    if (self->parked_ns == 0)
        self->parked_ns = now;
    if (load_relaxed(&self->trim_asked))
        trim_own(self);
    if (!take_role(self, now))
        return 0;
    uint64_t next = do_chores(self, now);
    if (next == RETAIN_LEAVE) {
        retain_wake(self);
        return RETAIN_LEAVE;
    }
    look_again_in(self, next == NEVER ? NEVER : now + next);
    return next == NEVER ? 0 : next;
}

void retain_listed(struct kthread *thread) {
    if (!wanted())
        return;
    uint64_t when = load_relaxed(&until);
    if (when == NEVER || when > clock_monotonic_ns() + delay())
        idle_poke(thread);
}

void retain_wake(struct kthread *self) {
    if (!wanted())
        return;
    self->parked_ns = 0;
    self->trimmed = false;
    store_relaxed(&self->trim_asked, false);
    if (load_relaxed(&warden) == self && give_up_role(self))
        idle_poke(NULL);
}

void retain_fork_child(void) {
    lock_reset(&lock);
    warden = NULL;
    until = NEVER;
    pressure_fork_child();
}
