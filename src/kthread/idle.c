// SPDX-License-Identifier: Apache-2.0
/* The idle list as a lock and a doubly linked list per node; see idle.h.
 *
 * Listed in front, so that the last one in is found first. With a minimum rest it is the other way round, listed at the
 * end: those that have rested enough are found first then, and not behind all that rest, which may be thousands. */
#include "kthread/idle.h"

#include "base/assert.h"
#include "base/atomic.h"
#include "kthread/counters.h"
#include "kthread/internal.h"
#include "kthread/retain.h"
#include "os/clock.h"
#include "os/lock.h"
#include "os/topology.h"

static struct {
    _Alignas(64) struct lock lock;
    struct kthread *first; /* under lock; read without it as a hint only */
    struct kthread **end;  /* under lock: the NULL after the last one; NULL itself stands for &first */
} lists[TOPOLOGY_NODES_MAX];

/* A signal handler may interrupt the caller in here and fork (creators block signals, joiners do not). Its child
 * empties the lists, and then continues here with a thread that it does not have; so a thread that lists one checks
 * whether it is still in the process where it began. And where that fork finds no room and wants idle threads ended,
 * it must not wait for the lock that its own thread holds. */
static __thread bool inside;
static __thread unsigned forks; /* how many processes back this one began, for the thread that made them */

static void enter(unsigned node) {
    inside = true;
    lock_acquire(&lists[node].lock);
}

static void leave(unsigned node) {
    lock_release(&lists[node].lock);
    inside = false;
}

static void link_locked(unsigned node, struct kthread *thread) {
    struct kthread **end = lists[node].end == NULL ? &lists[node].first : lists[node].end;
    struct kthread **at = kthread_config.min_rest_ns != 0 ? end : &lists[node].first;
    thread->next_idle = *at;
    thread->idle_at = at;
    if (*at == NULL)
        lists[node].end = &thread->next_idle;
    else
        (*at)->idle_at = &thread->next_idle;
    store_relaxed(at, thread);
    store_relaxed(&thread->listed_in, node + 1);
}

/* Takes out the one that *at points to. */
static struct kthread *unlink_locked(unsigned node, struct kthread **at) {
    struct kthread *thread = *at;
    if (thread->next_idle == NULL)
        lists[node].end = at;
    else
        thread->next_idle->idle_at = at;
    store_relaxed(at, thread->next_idle);
    store_relaxed(&thread->listed_in, 0);
    counters_idle_remove();
    return thread;
}

/* Highest node that ever had an entry, so that small machines look at one list. Only grows. Relaxed: lists are read under
 * their locks, and a culler has a fence before it looks (keep.c). */
static unsigned top_node;

bool idle_push(struct kthread *thread) {
    if (load_relaxed(&kthread_config.memory_limited) || !counters_idle_add(kthread_config.max_idle))
        return false;
    unsigned node = topology_node(), began = forks;
    thread->idle_since = retain_wants_warden() ? clock_monotonic_ns() : 0;
    unsigned seen = load_relaxed(&top_node);
    while (seen < node && !cas_relaxed(&top_node, &seen, node)) {
    }
    enter(node);
    link_locked(node, thread);
    leave(node);
    if (began != forks)
        idle_fork_child();
    return true;
}

bool idle_remove(struct kthread *thread) {
    unsigned listed = load_relaxed(&thread->listed_in);
    if (listed == 0) /* if it is just being listed, it is not there yet */
        return false;
    enter(listed - 1);
    bool found = load_relaxed(&thread->listed_in) == listed;
    if (found)
        unlink_locked(listed - 1, thread->idle_at);
    leave(listed - 1);
    return found;
}

static bool fits(const struct kthread *thread, const struct kthread_kind *kind, uint64_t now) {
    return kind == NULL ||
           (thread->kind.stack_size == kind->stack_size && thread->kind.guard_size == kind->guard_size &&
            (thread->kind.user.low == NULL) == (kind->user.low == NULL) &&
            thread->kind.lineage == kind->lineage && load_relaxed(&thread->lineage) == kind->lineage &&
            thread->rest_until <= now && !retain_is_busy(thread));
}

/* One that fits, or NULL. Not found behind MANY that rest: those were listed later, and most have as long to go. */
static struct kthread **find_locked(unsigned node, const struct kthread_kind *kind, uint64_t now) {
    enum { MANY = 64 };
    unsigned resting = 0;
    struct kthread **at = &lists[node].first;
    for (; *at != NULL && !fits(*at, kind, now); at = &(*at)->next_idle)
        if ((*at)->rest_until > now && ++resting == MANY)
            return NULL;
    return *at == NULL ? NULL : at;
}

/* From `first` on, which fits. */
static struct kthread **elsewhere_locked(struct kthread **first, const struct kthread_kind *kind,
                                         uint64_t now, int cpu) {
    enum { FEW = 4 };
    struct kthread **at = first;
    for (unsigned i = 0; i < FEW && *at != NULL; i++, at = &(*at)->next_idle)
        if ((*at)->run.last_cpu != cpu && fits(*at, kind, now))
            return at;
    return first;
}

static struct kthread *pop_from(unsigned node, const struct kthread_kind *kind, uint64_t now, int avoid) {
    if (load_relaxed(&lists[node].first) == NULL)
        return NULL;
    enter(node);
    struct kthread **at = find_locked(node, kind, now);
    if (at != NULL && avoid >= 0)
        at = elsewhere_locked(at, kind, now, avoid);
    struct kthread *thread = at == NULL ? NULL : unlink_locked(node, at);
    leave(node);
    return thread;
}

static struct kthread *pop(const struct kthread_kind *kind, int avoid) {
    uint64_t now = kthread_config.min_rest_ns != 0 ? clock_monotonic_ns() : 0;
    unsigned top = load_relaxed(&top_node), own = topology_node();
    if (own > top)
        own = top;
    struct kthread *thread = pop_from(own, kind, now, avoid);
    for (unsigned node = 0; thread == NULL && node <= top; node++)
        if (node != own)
            thread = pop_from(node, kind, now, avoid);
    return thread;
}

struct kthread *idle_pop(const struct kthread_kind *kind, int avoid) {
    thrum_assert(kind != NULL);
    return pop(kind, avoid);
}

bool idle_is_inside(void) {
    return inside;
}

struct kthread *idle_pop_any(void) {
    return inside ? NULL : pop(NULL, -1);
}

struct kthread *idle_pop_coldest(void) {
    unsigned node = topology_node();
    enter(node);
    struct kthread **at = &lists[node].first;
    while (*at != NULL && (*at)->next_idle != NULL)
        at = &(*at)->next_idle;
    struct kthread *thread = *at == NULL ? NULL : unlink_locked(node, at);
    leave(node);
    return thread != NULL ? thread : idle_pop_any();
}

/* --- for retain.h: all nodes, whole lists ------------------------------------------------------------- */

static struct kthread **oldest_in(unsigned node) {
    struct kthread **oldest = NULL;
    for (struct kthread **at = &lists[node].first; *at != NULL; at = &(*at)->next_idle)
        if (oldest == NULL || (*at)->idle_since <= (*oldest)->idle_since)
            oldest = at;
    return oldest;
}

struct kthread *idle_pop_since(uint64_t since) {
    struct kthread *thread = NULL;
    for (unsigned node = 0; thread == NULL && node <= load_relaxed(&top_node); node++) {
        enter(node);
        struct kthread **at = oldest_in(node);
        if (at != NULL && (*at)->idle_since <= since)
            thread = unlink_locked(node, at);
        leave(node);
    }
    return thread;
}

void idle_measure(struct idle_times *times, uint64_t now) {
    *times = (struct idle_times){0, 0, UINT64_MAX};
    for (unsigned node = 0; node <= load_relaxed(&top_node); node++) {
        enter(node);
        for (const struct kthread *at = lists[node].first; at != NULL; at = at->next_idle) {
            times->count++;
            times->sum += now > at->idle_since ? now - at->idle_since : 0;
            if (at->idle_since < times->oldest)
                times->oldest = at->idle_since;
        }
        leave(node);
    }
}

/* Under the list's lock, so no other thread owns it: see POST_SLEEPING in life.h. */
static void poke(struct kthread *thread) {
    uint32_t seen = POST_SLEEPING;
    if (cas_acq_rel(&thread->post, &seen, POST_NOTHING)) /* pairs with thrum_kthread_idle */
        futex_wake(&thread->post, 1);
}

void idle_poke(const struct kthread *thread) {
    bool poked = false;
    for (unsigned node = 0; !poked && node <= load_relaxed(&top_node); node++) {
        enter(node);
        for (struct kthread *at = lists[node].first; !poked && at != NULL; at = at->next_idle)
            if (thread == NULL || thread == at) {
                poke(at);
                poked = true;
            }
        leave(node);
    }
}

void idle_fork_child(void) {
    for (unsigned node = 0; node < TOPOLOGY_NODES_MAX; node++) {
        lock_reset(&lists[node].lock);
        lists[node].first = NULL;
        lists[node].end = NULL;
    }
    inside = false;
    forks++;
}
