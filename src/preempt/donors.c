// SPDX-License-Identifier: Apache-2.0
/* See donors.h. */
#include "preempt/donors.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "os/futex.h"
#include "os/lock.h"
#include "os/rseq.h"
#include "os/thread.h"
#include "preempt/carrier.h"
#include "preempt/preempt.h"
#include "sched/worker.h"

/* Destructors of thread-local variables run there in the end, which are the program's. */
enum { STACK = 256 * 1024 };

/* Lies on its own stack. */
struct donor {
    struct carrier carrier; /* first */
    struct private_donor private;
    pthread_t handle;
    struct donor *next, *before; /* under lock, in `all` or `ended` */
    bool is_free;                /* at the end: nobody has its block */
    uint32_t has_left;           /* futex: ... and it has left the stack of a unit that is lost */
};

/* On the stack of who makes one. */
struct birth {
    uint32_t over;       /* futex */
    bool is_private;     /* r/o */
    struct donor *donor; /* NULL: it failed */
};

static struct {
    struct lock lock;
    struct tcb *spares; /* under lock, as the next two */
    uint32_t count;     /* of them */
    struct donor *all;
    struct donor *ended; /* private ones whose thread has */
    uint32_t low;        /* fewer spares than that are few; r/o */
    uint32_t asked;      /* futex, the provider's: what it is to do */
    pthread_t provider;
    bool has_provider;
    struct exception_globals *(*exceptions_here)(void); /* r/o, as the next */
    bool (*arm)(void);
    uint32_t wanted; /* somebody was to be preempted, and nobody is armed */
} donors;

enum { NOBODY_ASKS, ASK_TO_LOOK, ASK_TO_END };

/* --- one of them -------------------------------------------------------------------------------------- */

/* Each has one holder: who has it not in the list, and it points to itself (take_locked). */
static void give_locked(struct tcb *tcb) {
    thrum_assert(tcb->next == tcb);
    tcb->next = donors.spares;
    donors.spares = tcb;
    donors.count++;
}

static struct tcb *take_locked(void) {
    struct tcb *tcb = donors.spares;
    donors.spares = tcb->next;
    donors.count--;
    tcb->next = tcb;
    return tcb;
}

static void push_locked(struct donor **list, struct donor *donor) {
    donor->next = *list;
    donor->before = NULL;
    if (*list != NULL)
        (*list)->before = donor;
    *list = donor;
}

static void take_out_locked(struct donor **list, struct donor *donor) {
    if (donor->before != NULL)
        donor->before->next = donor->next;
    else
        *list = donor->next;
    if (donor->next != NULL)
        donor->next->before = donor->before;
}

static void list(struct donor *self, bool is_spare) {
    lock_acquire(&donors.lock);
    push_locked(&donors.all, self);
    self->carrier.tcb.next = &self->carrier.tcb;
    if (is_spare)
        give_locked(&self->carrier.tcb);
    lock_release(&donors.lock);
}

/* From the store on the memory may be something else. */
static void tell(struct birth *birth, struct donor *donor) {
    birth->donor = donor;
    store_release(&birth->over, 1);
    futex_wake(&birth->over, 1);
}

/* To end it would be to free what libc has of it, for which it would wait for a lock that the lost unit may have. */
static _Noreturn void sleep_for_ever(struct donor *self) {
    if (!preempt.lends)
        alarm_delete(&self->carrier.alarm);
    store_release(&self->has_left, 1);
    futex_wake(&self->has_left, 1);
    for (;;)
        futex_wait(&self->has_left, 1);
}

static void *donor_main(void *arg) {
    struct birth *birth = arg;
    struct donor self = {.carrier = {.tcb.base = arch_tcb(), .idle.kind = UNIT_LOOP},
                         .handle = pthread_self()};
    struct tcb *tcb = self.private.tcb = &self.carrier.tcb;
    tcb->exceptions = donors.exceptions_here != NULL ? donors.exceptions_here() : &tcb->none;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL); /* who runs on it names it by pthread_self() */
    if (preempt.lends) {
        rseq_give_up(tcb->base);
        libc_signals_follow(false);
    }
    bool ready = preempt.lends || carrier_begin(&self.carrier);
    if (ready)
        list(&self, !birth->is_private);
    tell(birth, ready ? &self : NULL);
    if (!ready)
        return NULL;
    if (!carrier_serve(&self.carrier) || !self.is_free)
        sleep_for_ever(&self);
    if (!preempt.lends)
        carrier_finish(&self.carrier);
    ARCH_TLS_STORE(thrum_worker, NULL); /* what is left of the last who ran on it; destructors come now */
    ARCH_TLS_STORE32(thrum_nopreempt, NOPREEMPT_NOT_PENDING);
    if (preempt.lends)
        libc_signals_unfollow();
    return NULL;
}

/* NULL: there is none to be had. */
static struct donor *make_one(bool is_private) {
    pthread_t handle;
    struct birth birth = {.is_private = is_private};
    if (thread_make_quiet(&handle, STACK, donor_main, &birth) != 0)
        return NULL;
    while (load_acquire(&birth.over) == 0)
        futex_wait(&birth.over, 0);
    if (birth.donor == NULL)
        pthread_join(handle, NULL);
    return birth.donor;
}

/* Its record is gone with it. */
static void end_and_join(struct donor *donor) {
    pthread_t handle = donor->handle;
    donor->is_free = true;
    carrier_end(&donor->carrier);
    pthread_join(handle, NULL);
}

static void join_ended(void) {
    struct donor *donor;
    do {
        lock_acquire(&donors.lock);
        donor = donors.ended;
        if (donor != NULL)
            take_out_locked(&donors.ended, donor);
        lock_release(&donors.lock);
        if (donor != NULL)
            end_and_join(donor);
    } while (donor != NULL);
}

/* --- the provider ------------------------------------------------------------------------------------- */

static void interrupt_starved(void) {
    enter();
    for (uint32_t i = 0; i < load_acquire(&scheduler.count); i++) {
        struct worker *worker = scheduler.workers[i];
        if (load_relaxed(&worker->tick.starved) != 0 && exchange_acquire(&worker->tick.starved, 0U) != 0)
            tick_interrupt(worker);
    }
    leave();
}

/* Where the system gives no more threads it is asked again by the next who lacks one. */
static void *provider_main(void *unused) {
    (void)unused;
    for (;;) {
        uint32_t asked = exchange_acquire(&donors.asked, NOBODY_ASKS);
        if (asked == ASK_TO_END)
            return NULL;
        if (asked == NOBODY_ASKS) {
            futex_wait(&donors.asked, NOBODY_ASKS);
            continue;
        }
        __atomic_thread_fence(__ATOMIC_SEQ_CST); /* donors_ask */
        bool is_ready = preempt_is_armed();
        if (!is_ready && exchange_acquire(&donors.wanted, 0U) != 0)
            is_ready = donors.arm();
        if (is_ready && donors_make(donors.low * 2 + preempt_owners_at_once()) == 0)
            interrupt_starved();
        join_ended(); /* the program's destructors of thread-locals: they may take their time */
    }
}

/* The provider says first that nobody asks, and then looks who lacks what: either that one sees it, or this asks again. */
void donors_ask(void) {
    uint32_t nobody = NOBODY_ASKS;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (load_relaxed(&donors.asked) == NOBODY_ASKS && cas_acq_rel(&donors.asked, &nobody, ASK_TO_LOOK))
        futex_wake(&donors.asked, 1);
}

void donors_ask_to_arm(void) {
    store_release(&donors.wanted, 1);
    donors_ask();
}

/* --- for those who borrow ----------------------------------------------------------------------------- */

int donors_make(uint32_t count) {
    while (load_relaxed(&donors.count) < count)
        if (make_one(false) == NULL)
            return EAGAIN;
    return 0;
}

struct private_donor *donors_make_private(void) {
    struct donor *donor = make_one(true);
    return donor != NULL ? &donor->private : NULL;
}

void donors_end_private(struct tcb *tcb) {
    struct donor *donor = (struct donor *)(void *)tcb;
    enter();
    lock_acquire(&donors.lock);
    take_out_locked(&donors.all, donor);
    push_locked(&donors.ended, donor);
    lock_release(&donors.lock);
    donors_ask();
    leave();
}

struct tcb *donors_take(uint32_t keep) {
    lock_acquire(&donors.lock);
    struct tcb *tcb = donors.count > keep ? take_locked() : NULL;
    bool few = donors.count < donors.low + keep;
    lock_release(&donors.lock);
    if (few && preempt_is_armed())
        donors_ask();
    return tcb;
}

void donors_give(struct tcb *tcb) {
    lock_acquire(&donors.lock);
    give_locked(tcb);
    lock_release(&donors.lock);
}

/* --- life --------------------------------------------------------------------------------------------- */

int donors_start(uint32_t count, struct exception_globals *(*exceptions_here)(void), bool (*arm)(void)) {
    donors.exceptions_here = exceptions_here;
    donors.arm = arm;
    donors.wanted = 0;
    donors.low = 2;
    store_relaxed(&donors.asked, NOBODY_ASKS);
    int error = donors_make(count);
    if (error == 0)
        error = thread_make_quiet(&donors.provider, STACK, provider_main, NULL);
    donors.has_provider = error == 0;
    if (error != 0)
        donors_stop();
    return error;
}

void donors_close(void) {
    if (!donors.has_provider)
        return;
    store_release(&donors.asked, ASK_TO_END);
    futex_wake(&donors.asked, 1);
    pthread_join(donors.provider, NULL);
    donors.has_provider = false;
}

/* A unit that was preempted in a pool, and is not gone on with, has one still. */
static void leave_behind(struct donor *donor) {
    if (!preempt.carries)
        return;
    carrier_end(&donor->carrier);
    while (load_acquire(&donor->has_left) == 0)
        futex_wait(&donor->has_left, 0);
}

void donors_stop(void) {
    donors_close();
    join_ended();
    for (struct tcb *tcb = donors.spares; tcb != NULL; tcb = tcb->next, donors.count--)
        ((struct donor *)(void *)tcb)->is_free = true;
    thrum_assert(donors.count == 0);
    for (struct donor *donor; (donor = donors.all) != NULL;) {
        donors.all = donor->next;
        if (donor->is_free)
            end_and_join(donor);
        else
            leave_behind(donor);
    }
    donors.spares = NULL;
    donors.count = 0;
}

void donors_fork_child(void) {
    lock_reset(&donors.lock);
    donors.all = donors.ended = NULL;
    donors.spares = NULL;
    donors.count = 0;
    donors.has_provider = false;
}
