// SPDX-License-Identifier: Apache-2.0
/* The idle list as a lock and a singly linked list per node; see idle.h. */
#include "kthread/idle.h"

#include "base/assert.h"
#include "base/atomic.h"
#include "kthread/counters.h"
#include "os/clock.h"
#include "os/lock.h"
#include "os/topology.h"

static struct {
    _Alignas(64) struct lock lock;
    struct kthread *first; /* under lock; read without it as a hint only */
} lists[TOPOLOGY_NODES_MAX];

/* Highest node that ever had an entry, so that small machines look at one list. Only grows. */
static unsigned top_node;

bool idle_push(struct kthread *thread) {
    if (load_relaxed(&kthread_config.memory_limited) || !counters_idle_add(kthread_config.max_idle))
        return false;
    unsigned node = topology_node();
    unsigned seen = load_relaxed(&top_node);
    while (seen < node && !cas_acq_rel(&top_node, &seen, node)) {
    }
    thread->node = node;
    lock_acquire(&lists[node].lock);
    thread->next_idle = lists[node].first;
    store_relaxed(&lists[node].first, thread);
    lock_release(&lists[node].lock);
    return true;
}

bool idle_remove(struct kthread *thread) {
    unsigned node = thread->node; /* written by this thread's own push: nobody else pushes it meanwhile */
    lock_acquire(&lists[node].lock);
    struct kthread **at = &lists[node].first;
    while (*at != NULL && *at != thread)
        at = &(*at)->next_idle;
    bool found = *at == thread;
    if (found) {
        store_relaxed(at, thread->next_idle);
        counters_idle_remove();
    }
    lock_release(&lists[node].lock);
    return found;
}

static bool fits(const struct kthread *thread, const struct kthread_kind *kind, uint64_t now) {
    return kind == NULL ||
           (thread->kind.stack_size == kind->stack_size && thread->kind.guard_size == kind->guard_size &&
            thread->kind.lineage == kind->lineage && load_relaxed(&thread->lineage) == kind->lineage &&
            thread->rest_until <= now);
}

static struct kthread *pop_from(unsigned node, const struct kthread_kind *kind, uint64_t now) {
    if (load_relaxed(&lists[node].first) == NULL)
        return NULL;
    lock_acquire(&lists[node].lock);
    struct kthread **at = &lists[node].first;
    while (*at != NULL && !fits(*at, kind, now))
        at = &(*at)->next_idle;
    struct kthread *thread = *at;
    if (thread != NULL) {
        store_relaxed(at, thread->next_idle);
        counters_idle_remove();
    }
    lock_release(&lists[node].lock);
    return thread;
}

static struct kthread *pop(const struct kthread_kind *kind) {
    uint64_t now = kthread_config.min_rest_ns != 0 ? clock_monotonic_ns() : 0;
    unsigned top = load_relaxed(&top_node), own = topology_node();
    if (own > top)
        own = top;
    struct kthread *thread = pop_from(own, kind, now);
    for (unsigned node = 0; thread == NULL && node <= top; node++)
        if (node != own)
            thread = pop_from(node, kind, now);
    return thread;
}

struct kthread *idle_pop(const struct kthread_kind *kind) {
    thrum_assert(kind != NULL);
    return pop(kind);
}

struct kthread *idle_pop_any(void) {
    return pop(NULL);
}

struct kthread *idle_pop_coldest(void) {
    unsigned node = topology_node();
    lock_acquire(&lists[node].lock);
    struct kthread **at = &lists[node].first;
    while (*at != NULL && (*at)->next_idle != NULL)
        at = &(*at)->next_idle;
    struct kthread *thread = *at;
    if (thread != NULL) {
        store_relaxed(at, NULL);
        counters_idle_remove();
    }
    lock_release(&lists[node].lock);
    return thread != NULL ? thread : idle_pop_any();
}

void idle_fork_child(void) {
    for (unsigned node = 0; node < TOPOLOGY_NODES_MAX; node++) {
        lock_reset(&lists[node].lock);
        lists[node].first = NULL;
    }
}
