// SPDX-License-Identifier: Apache-2.0
/* See solo.h. */
#include "runtime/solo.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "os/futex.h"
#include "os/lock.h"
#include "os/memory.h"
#include "os/thread.h"
#include "preempt/preempt.h"
#include "runtime/member.h"
#include "runtime/overflow.h"
#include "runtime/places.h"
#include "sched/front.h"
#include "sched/pool/stacked.h"
#include "sched/worker.h"
#include "thrum/worker.h"

/* As struct member: its memory begins with an alternate signal stack. */
struct solo {
    struct worker worker; /* first */
    struct solo *newer, *older;
    int rounds; /* of destructors */
};

static struct {
    struct lock lock;
    struct solo *newest; /* under lock, as the next */
    uint32_t count;      /* of kernel threads that have not ended; the stopping thread sleeps on it */
    bool stopping;
    bool one_ended; /* this one, and has not been joined */
    pthread_t ended;
    pthread_key_t key; /* r/o once it is made; under lock before */
    bool has_key;
} solos;

/* --- memory, and the list ----------------------------------------------------------------------------- */

static size_t solo_bytes(void) {
    return overflow_stack_bytes() + ((sizeof(struct solo) + 4095) & ~(size_t)4095);
}

static void solo_free(struct solo *solo) {
    munmap((char *)solo - overflow_stack_bytes(), solo_bytes());
}

static void unlink_locked(struct solo *solo) {
    if (solo->newer != NULL)
        solo->newer->older = solo->older;
    else
        solos.newest = solo->older;
    if (solo->older != NULL)
        solo->older->newer = solo->newer;
}

static void at_end(void *arg);

/* EAGAIN: the program has all keys that there are. */
static int list(struct solo *solo) {
    enter();
    lock_acquire(&solos.lock);
    solos.has_key = solos.has_key || pthread_key_create(&solos.key, at_end) == 0;
    bool listed = solos.has_key;
    if (listed) {
        solo->older = solos.newest;
        if (solos.newest != NULL)
            solos.newest->newer = solo;
        solos.newest = solo;
        store_relaxed(&solos.count, solos.count + 1);
    }
    lock_release(&solos.lock);
    leave();
    return listed ? 0 : EAGAIN;
}

static void unlist(struct solo *solo) {
    enter();
    lock_acquire(&solos.lock);
    unlink_locked(solo);
    store_relaxed(&solos.count, solos.count - 1);
    lock_release(&solos.lock);
    leave();
}

/* --- the kernel thread -------------------------------------------------------------------------------- */

/* Its last act. A unit that has not left, as the runtime ends, may still be woken there. Whether it has is asked under the lock:
 * solo_unmake says so before its last access. */
static void end(struct solo *solo) {
    enter();
    lock_acquire(&solos.lock);
    bool is_left = load_relaxed(&solo->worker.solo.is_left);
    bool one_ended = solos.one_ended, stopping = solos.stopping;
    pthread_t ended = solos.ended;
    solos.one_ended = true;
    solos.ended = pthread_self();
    if (is_left)
        unlink_locked(solo);
    store_relaxed(&solos.count, solos.count - 1);
    lock_release(&solos.lock);
    leave();
    if (is_left)
        solo_free(solo);
    if (stopping)
        futex_wake(&solos.count, INT_MAX);
    if (one_ended)
        pthread_join(ended, NULL);
}

/* The kernel thread has nothing of the unit any more. */
static void hand_over(struct solo *solo) {
    struct thrum_unit *unit = load_relaxed(&solo->worker.solo.is_left) ? solo->worker.solo.unit : NULL;
    if (unit != NULL) {
        enter();
        unit_wake_elsewhere(NULL, unit);
        leave();
    }
    end(solo);
}

/* Destructors of keys are called in rounds, as long as one sets a value again. The last round is left to tools, which end their
 * own account of the thread there. */
static void at_end(void *arg) {
    struct solo *solo = arg;
    if (++solo->rounds == PTHREAD_DESTRUCTOR_ITERATIONS - 1 || pthread_setspecific(solos.key, solo) != 0)
        hand_over(solo);
}

static bool is_over(const struct worker *worker) {
    /* Pairs with workers_stop. */
    return load_relaxed(&worker->solo.is_left) || load_acquire(&runtime.stopping);
}

INSIDE static void run(struct worker *worker) {
    while (!is_over(worker)) {
        solo_wait(worker);
        if (!is_over(worker))
            worker_run(worker, worker->solo.unit);
    }
}

static void *solo_main(void *arg) {
    struct solo *solo = arg;
    struct worker *worker = &solo->worker;
    places_roam();
    member_thread_begin(worker);
    enter();
    preempt_solo_begin(worker);
    run(worker);
    worker_hand_over(worker);
    preempt_solo_end(worker);
    member_thread_end(worker);
    leave();
    if (pthread_setspecific(solos.key, solo) != 0)
        hand_over(solo); /* its thread-locals' destructors come after it */
    return NULL;
}

/* --- for the scheduler -------------------------------------------------------------------------------- */

int solo_make(struct worker **made) {
    pthread_t handle;
    char *memory = memory_map(solo_bytes(), 0);
    if (memory == NULL)
        return EAGAIN;
    struct solo *solo = (struct solo *)(void *)(memory + overflow_stack_bytes());
    worker_init_solo(&solo->worker);
    int error = list(solo);
    if (error == 0 && (error = thread_make_quiet(&handle, 0, solo_main, solo)) != 0)
        unlist(solo);
    if (error != 0)
        solo_free(solo);
    *made = &solo->worker;
    return error;
}

/* Under the lock: its kernel thread, which may see at once that it is left, frees it later. */
void solo_unmake(struct worker *solo) {
    enter();
    lock_acquire(&solos.lock);
    store_relaxed(&solo->solo.is_left, true);
    solo_wake(solo);
    lock_release(&solos.lock);
    leave();
}

/* The caller is its worker's unit. */
INSIDE static void leave_solo(struct worker *worker) {
    struct thrum_unit *self = worker->current;
    unit_unset_solo(self);
    store_relaxed(&worker->solo.is_left, true);
    unit_announce(self);
    switch_as(worker, self, worker->loop, THRUM_TRACE_MOVE);
}

/* Not in a child of fork, which has no worker. */
void solo_end(struct thrum_unit *self) {
    struct worker *worker = enter();
    if (worker != NULL && worker->current == self && worker_is_solo(worker)) {
        if (is_in_region())
            unit_ends_in_region();
        leave_solo(worker);
    }
    leave();
}

/* --- the program's ------------------------------------------------------------------------------------ */

/* The primary has its worker's kernel thread for life, a front end's thread belongs to its host, and a scheduler runs others. */
static bool may_have_own(const struct thrum_unit *self) {
    return load_relaxed(&self->kind) < UNIT_TASKLET && !self->is_primary && !front_has(self) &&
           stacked_of(self) == NULL;
}

/* The kernel thread is created while the caller may still be preempted. */
static int lock_first(void) {
    struct worker *solo;
    int error = solo_make(&solo);
    if (error != 0)
        return error;
    solo->solo.depth = 1;
    struct worker *worker = enter();
    struct thrum_unit *self = worker->current;
    store_relaxed(&self->extras, true); /* it must come to solo_end() */
    unit_set_solo(self, solo);
    unit_move(worker, self);
    leave();
    return 0;
}

int thrum_kthread_lock(void) {
    struct worker *worker = enter();
    bool is_external = worker == NULL, is_solo = worker != NULL && worker_is_solo(worker);
    bool may = is_external || is_solo || (may_have_own(worker->current) && !is_in_region());
    if (is_solo)
        worker->solo.depth++;
    leave();
    return !may ? EPERM : is_external || is_solo ? 0 : lock_first();
}

int thrum_kthread_unlock(void) {
    struct worker *worker = enter();
    int error = 0;
    if (worker != NULL && (!worker_is_solo(worker) || (worker->solo.depth == 1 && is_in_region())))
        error = EPERM;
    else if (worker != NULL && --worker->solo.depth == 0)
        leave_solo(worker);
    leave();
    return error;
}

/* --- life --------------------------------------------------------------------------------------------- */

void solos_stop(void) {
    uint32_t count;
    enter();
    lock_acquire(&solos.lock);
    solos.stopping = true;
    for (struct solo *solo = solos.newest; solo != NULL; solo = solo->older)
        solo_wake(&solo->worker);
    lock_release(&solos.lock);
    leave();
    while ((count = load_relaxed(&solos.count)) != 0)
        futex_wait(&solos.count, count);
    enter();
    lock_acquire(&solos.lock); /* after the last of them: what it wrote is seen */
    bool one_ended = solos.one_ended;
    solos.one_ended = false;
    lock_release(&solos.lock);
    leave();
    if (one_ended)
        pthread_join(solos.ended, NULL);
}

void solos_delete(void) {
    for (struct solo *solo; (solo = solos.newest) != NULL;) {
        solos.newest = solo->older;
        solo_free(solo);
    }
    solos.stopping = false;
}

/* The caller may stand on what one of them has: nothing is unmapped. It may be one of them, whose destructors run: its unit is
 * not in this process. */
void solos_fork_child(void) {
    if (solos.has_key)
        pthread_setspecific(solos.key, NULL);
    lock_reset(&solos.lock);
    solos.newest = NULL;
    store_relaxed(&solos.count, 0);
    solos.stopping = solos.one_ended = false;
}
