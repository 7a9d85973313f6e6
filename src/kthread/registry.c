// SPDX-License-Identifier: Apache-2.0
/* All descriptors in use, in a doubly linked list under one lock, and the slab that they come from. Look-ups by
 * tid and walks are rare; the reuse of a thread never comes here. */
#include "base/slab.h"
#include "kthread/gate.h"
#include "kthread/internal.h"
#include "os/lock.h"

enum { MANY = 64 };

static struct lock lock;
static struct slab slab = SLAB_INIT(struct kthread);
static struct kthread *known; /* under lock, but for registry_is_empty */
static unsigned known_count;
static unsigned known_peak;    /* since there was none */
static unsigned given_back_at; /* how many there were when memory was last given back, or more */

/* Always with the signals blocked: a handler that looks a tid up, or forks, must not find the lock held by the
 * thread that it interrupted. */
static sigbits enter(void) {
    sigbits mask = signals_mask_set(SIGBITS_ALL);
    lock_acquire(&lock);
    return mask;
}

static void leave(sigbits mask) {
    lock_release(&lock);
    signals_mask_set(mask);
}

/* A descriptor's masks stand behind it. */
void registry_init(void) {
    slab.object_size = SLAB_SIZE(sizeof(struct kthread)) + creator_masks_size();
}

struct kthread *registry_new(void) {
    sigbits mask = enter();
    struct kthread *thread = slab_alloc_locked(&slab);
    if (thread != NULL) {
        creator_masks_place(&thread->creator, &thread->fresh, thread + 1);
        thread->gate = GATE_CLOSED;
        thread->next_known = known;
        if (known != NULL)
            known->previous_known = thread;
        store_relaxed(&known, thread);
        if (++known_count > given_back_at)
            given_back_at = known_count;
        if (known_count > known_peak)
            known_peak = known_count;
    }
    leave(mask);
    return thread;
}

static void free_locked(struct kthread *thread) {
    if (thread->next_known != NULL)
        thread->next_known->previous_known = thread->previous_known;
    if (thread->previous_known != NULL)
        thread->previous_known->next_known = thread->next_known;
    else
        store_relaxed(&known, thread->next_known);
    slab_free_locked(&slab, thread);
    known_count--;
    if (known_peak >= MANY &&
        known_count < given_back_at / 2) { /* each time half are gone: log2(n) walks in all */
        slab_give_back_locked(&slab);
        given_back_at = known_count;
    }
    if (known_count == 0)
        known_peak = 0;
}

void registry_free(struct kthread *thread) {
    sigbits mask = enter();
    free_locked(thread);
    leave(mask);
}

void registry_each(void (*visit)(struct kthread *, void *), void *argument) {
    sigbits mask = enter();
    for (struct kthread *thread = known; thread != NULL; thread = thread->next_known)
        visit(thread, argument);
    leave(mask);
}

/* A fence of the creator (keeping, after registry_new) and one of the caller make it that either this sees a descriptor, or its
 * creator sees what the caller has stored. */
bool registry_is_empty(void) {
    return load_relaxed(&known) == NULL;
}

/* The visit begins under the lock, so the descriptor cannot go. A thread that is only starting has published no tid
 * yet: it counts as ended, and nothing is waited for under the lock. */
enum kthread_tid kthread_visit_tid(pid_t tid, struct gate_visit *visit, struct kthread **thread) {
    enum kthread_tid answer = KTHREAD_TID_FOREIGN;
    visit->mask = enter();
    struct kthread *at = known;
    while (at != NULL && load_relaxed(&at->tid) != tid)
        at = at->next_known;
    if (at != NULL) {
        *thread = at;
        visit->gate = &at->gate;
        answer = gate_enter_now(&at->gate) ? KTHREAD_TID_VISITED : KTHREAD_TID_ENDED;
    }
    lock_release(&lock);
    if (answer != KTHREAD_TID_VISITED)
        signals_mask_set(visit->mask);
    return answer;
}

void registry_fork_child(struct kthread *survivor) {
    lock_reset(&lock);
    slab.free = NULL;
    slab.chunks = NULL;
    known = survivor;
    known_count = survivor != NULL;
    known_peak = given_back_at = 0;
    if (survivor != NULL)
        survivor->next_known = survivor->previous_known = NULL;
}
