// SPDX-License-Identifier: Apache-2.0
/* Spares that are donors (spares.h), where blocks without kernel threads cannot be made: kernel threads that sleep until the
 * runtime ends, and lend their thread control blocks meanwhile; or themselves, as carriers (sched/carrier.h).
 *
 * The kernel writes the number of the CPU beside a block (os/rseq.h): the CPU on which the block's own kernel thread
 * runs. That would be wrong for a borrower, so a donor gives up its registration.
 *
 * A thread's block is on its stack, which goes with it: donors end when no thread runs on a block of theirs.
 *
 * Modelled in tests/model: arm.pml, lend.pml, closing.pml. */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/atomic.h"
#include "base/container_of.h"
#include "context/depot.h"
#include "os/clock.h"
#include "os/futex.h"
#include "os/lock.h"
#include "os/quota.h"
#include "os/rseq.h"
#include "os/thread.h"
#include "preempt/carrier.h"
#include "preempt/preempt.h"
#include "preempt/requests.h"
#include "preempt/spares.h"
#include "sched/exit.h"
#include "sched/worker.h"

/* Destructors of thread-local variables, which are the program's, run there at the end. */
enum { STACK = 256 * 1024 };

enum {
    ROOM_MS = 50, /* for so long, and so many new ones, the limits are not read again */
    ROOM_COUNT = 32,
    REFUSED_MS = 1000, /* for so long after a refusal by the system there are fewer */
    ENDING_MAX = 64,   /* own blocks that are about to end: with more, their creators wait for some */
};

struct donor {
    struct carrier carrier; /* first */
    struct own_block own;   /* its owner's, if it is a thread's for life */
    pthread_t handle;
    struct donor *next, *before; /* under lock: in `all`, and `next` alone in `ended` */
    bool is_free;                /* at the end: no unit has its block */
    uint32_t has_left;           /* futex: ... and it has left the stack of a unit that is lost */
};

/* On the stack of the one that makes one. */
struct birth {
    struct donor *donor; /* r/o */
    uint32_t over;       /* futex, enum birth_state */
};

enum birth_state { UNBORN, BORN, STILLBORN };

static char *record_at(const struct depot_shape *shape, char *chunk, unsigned i) {
    return chunk + shape->size * (i + 1);
}

/* They outlive the kernel threads, which are joined by their records. */
static struct depot records = {.shape = {.chunk = 64 * 1024,
                                         .per_chunk = 64 * 1024 / sizeof(struct donor) - 1,
                                         .object = record_at,
                                         .size = sizeof(struct donor)}};

_Static_assert(sizeof(struct depot_chunk) <= sizeof(struct donor), "a chunk's header is in the place of one");

/* Left by an ended runtime: kernel threads that sleep on words of their records for ever. */
static bool some_stay;

static struct {
    struct lock lock;
    struct donor *all; /* under lock, as the next, and preempt_counts.donors, how many these are */
    struct {
        struct donor *first, *last; /* whose owner, which had it for life, has ended; oldest first */
    } ended;
    uint32_t ending; /* those of them that are not joined yet; futex */
} donors;

/* How many more there may be; the provider's. */
static struct {
    uint64_t known_until; /* ns: `left` is what was found */
    uint32_t left;
    uint64_t refused_until; /* ns: the system has refused one; until then there may be `most` */
    uint32_t most;
} room;

static struct tcb *tcb_of(struct donor *donor) {
    return &donor->carrier.tcb;
}

static struct donor *donor_of(struct tcb *tcb) {
    return container_of(tcb, struct donor, carrier.tcb);
}

/* --- one of them -------------------------------------------------------------------------------------- */

static void list_locked(struct donor *donor) {
    donor->next = donors.all;
    donor->before = NULL;
    if (donors.all != NULL)
        donors.all->before = donor;
    donors.all = donor;
    store_relaxed(&preempt_counts.donors, preempt_counts.donors + 1);
}

static void unlist_locked(struct donor *donor) {
    if (donor->before != NULL)
        donor->before->next = donor->next;
    else
        donors.all = donor->next;
    if (donor->next != NULL)
        donor->next->before = donor->before;
    store_relaxed(&preempt_counts.donors, preempt_counts.donors - 1);
}

static void list(struct donor *self) {
    lock_acquire(&donors.lock);
    list_locked(self);
    lock_release(&donors.lock);
}

NOT_INSIDE static struct donor *new_record(void) {
    enter();
    struct donor *donor = depot_get_shared(&records);
    leave();
    return donor;
}

static void free_record(struct donor *donor) {
    enter();
    depot_put_shared(&records, donor);
    leave();
}

/* After the store the memory of `birth` may be reused. */
static void tell(struct birth *birth, bool is_ready) {
    store_release(&birth->over, is_ready ? BORN : STILLBORN); /* pairs with make_one */
    futex_wake(&birth->over, 1);
}

/* Ending it would free what libc has of it, which takes a lock that the lost unit may hold. Its record is not touched
 * any more. */
static _Noreturn void sleep_for_ever(struct donor *self) {
    uint32_t for_ever = 0;
    if (!preempt.lends)
        alarm_delete(&self->carrier.alarm);
    store_release(&self->has_left, 1); /* pairs with leave_behind */
    futex_wake(&self->has_left, 1);
    for (;;)
        futex_wait(&for_ever, 0);
}

static void *donor_main(void *arg) {
    struct birth *birth = arg;
    struct donor *self = birth->donor;
    *self =
        (struct donor){.carrier = {.tcb.base = arch_tcb(), .idle.kind = UNIT_LOOP}, .handle = pthread_self()};
    struct tcb *tcb = self->own.tcb = tcb_of(self);
    tcb->next = tcb;
    tcb->exceptions = preempt.exceptions_here != NULL ? preempt.exceptions_here() : &tcb->none;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL); /* units that run on it name it by pthread_self() */
    if (preempt.lends) {
        rseq_give_up(tcb->base);
        libc_signals_follow(false);
    }
    exit_watch(true);
    bool ready = preempt.lends || carrier_begin(&self->carrier);
    if (ready)
        list(self);
    tell(birth, ready);
    if (!ready)
        return NULL;
    if (!carrier_serve(&self->carrier) || !self->is_free)
        sleep_for_ever(self);
    if (!preempt.lends)
        carrier_finish(&self->carrier);
    ARCH_TLS_STORE(thrum_worker, NULL); /* left by the last unit that ran on it; destructors run now */
    ARCH_TLS_STORE32(thrum_nopreempt, NOPREEMPT_NOT_PENDING);
    if (preempt.lends)
        libc_signals_unfollow();
    return NULL;
}

/* NULL: none is available. */
static struct donor *make_one(void) {
    pthread_t handle;
    struct birth birth = {.donor = new_record()};
    if (birth.donor == NULL)
        return NULL;
    bool is_made = thread_make_quiet(&handle, STACK, donor_main, &birth) == 0;
    while (is_made && load_acquire(&birth.over) == UNBORN) /* pairs with tell: the record is filled in */
        futex_wait(&birth.over, UNBORN);
    if (is_made && birth.over == BORN)
        return birth.donor;
    if (is_made)
        pthread_join(handle, NULL);
    free_record(birth.donor);
    return NULL;
}

static struct tcb *make(void) {
    struct donor *donor = make_one();
    return donor != NULL ? tcb_of(donor) : NULL;
}

static void let_end(struct donor *donor) {
    donor->is_free = true;
    carrier_end(&donor->carrier);
}

static void end_and_join(struct donor *donor) {
    let_end(donor);
    pthread_join(donor->handle, NULL);
    free_record(donor);
}

/* --- threads' own that have ended --------------------------------------------------------------------- */

/* They end at once, concurrently, each with the program's destructors of thread-locals. The provider joins them
 * later; if there are many, so do the makers of new ones, which might outrun the provider for as long as the program
 * runs. */

static void push_ended_locked(struct donor *donor) {
    donor->next = NULL;
    if (donors.ended.last != NULL)
        donors.ended.last->next = donor;
    else
        donors.ended.first = donor;
    donors.ended.last = donor;
}

static struct donor *pop_ended(void) {
    enter();
    lock_acquire(&donors.lock);
    struct donor *donor = donors.ended.first;
    if (donor != NULL && (donors.ended.first = donor->next) == NULL)
        donors.ended.last = NULL;
    lock_release(&donors.lock);
    leave();
    return donor;
}

static void push_ended(struct donor *donor) {
    enter();
    lock_acquire(&donors.lock);
    push_ended_locked(donor);
    lock_release(&donors.lock);
    leave();
}

static void has_joined(struct donor *donor) {
    free_record(donor);
    fetch_sub_release(&donors.ending, 1U); /* pairs with wait_for_ended */
    futex_wake(&donors.ending, INT32_MAX);
}

static void join_ended(void) {
    struct donor *donor;
    while ((donor = pop_ended()) != NULL) {
        pthread_join(donor->handle, NULL);
        has_joined(donor);
    }
}

/* Those whose kernel threads are gone: this waits for no destructor, which may wait for a lock that the caller holds. */
static void join_gone(void) {
    uint32_t tries = load_relaxed(&donors.ending);
    struct donor *donor;
    while (tries-- > 0 && (donor = pop_ended()) != NULL)
        if (pthread_tryjoin_np(donor->handle, NULL) == 0)
            has_joined(donor);
        else
            push_ended(donor);
}

/* While more than `most` are about to end; but not for ever, as a destructor may wait for what the caller holds. */
static void wait_for_ended(uint32_t most) {
    enum { TRIES = 20 };
    for (int i = 0; i < TRIES; i++) {
        uint32_t ending = load_acquire(&donors.ending); /* this and the next pair with has_joined */
        if (ending <= most)
            return;
        join_gone();
        uint64_t moment = clock_monotonic_ns() + 1000000;
        struct timespec deadline = {(time_t)(moment / 1000000000), (long)(moment % 1000000000)};
        if (load_acquire(&donors.ending) == ending)
            futex_wait_until(&donors.ending, ending, CLOCK_MONOTONIC, &deadline);
    }
}

/* --- how many there may be ---------------------------------------------------------------------------- */

/* Blocks of the workers, of the relief worker, and for the first preempted units exist in any case. */
static bool is_below_least(void) {
    return load_relaxed(&preempt_counts.donors) < 4 * (load_acquire(&runtime.count) + 1);
}

/* The kernel threads that the system allows are shared with the program. Without a further spare, units that were
 * preempted already run, and others when one of them ends (lend.c). */
static bool has_room(void) {
    uint64_t now = clock_monotonic_ns();
    if (is_below_least())
        return true;
    if (now < room.refused_until && load_relaxed(&preempt_counts.donors) >= room.most)
        return false;
    if (room.left == 0 && now < room.known_until)
        return false;
    if (room.left == 0 || now >= room.known_until) {
        uint32_t left = quota_threads();
        room.left = left < ROOM_COUNT ? left : ROOM_COUNT;
        room.known_until = now + ROOM_MS * UINT64_C(1000000);
    }
    if (room.left == 0)
        return false;
    room.left--;
    return true;
}

/* The program's threads are refused as well: a quarter of them is given back as soon as they are spares. */
static void was_refused(void) {
    uint32_t alive = load_relaxed(&preempt_counts.donors);
    room.most = alive - alive / 4;
    room.refused_until = clock_monotonic_ns() + REFUSED_MS * UINT64_C(1000000);
}

static bool is_limited(void) {
    return clock_monotonic_ns() < room.refused_until;
}

static uint32_t excess(void) {
    uint32_t alive = load_relaxed(&preempt_counts.donors);
    return is_limited() && alive > room.most ? alive - room.most : 0;
}

/* They end beside each other. */
static void retire(struct tcb *first) {
    enter();
    lock_acquire(&donors.lock);
    for (struct tcb *tcb = first; tcb != NULL; tcb = tcb->next)
        unlist_locked(donor_of(tcb));
    lock_release(&donors.lock);
    leave();
    for (struct tcb *tcb = first; tcb != NULL; tcb = tcb->next)
        let_end(donor_of(tcb));
    for (struct tcb *tcb = first, *next; tcb != NULL; tcb = next) {
        next = tcb->next;
        pthread_join(donor_of(tcb)->handle, NULL);
        free_record(donor_of(tcb));
    }
}

/* --- for threads that have one for life --------------------------------------------------------------- */

/* The system also counts the kernel threads of those that have ended. */
static struct own_block *make_own(void) {
    wait_for_ended(ENDING_MAX);
    struct donor *donor = make_one();
    if (donor == NULL && load_relaxed(&donors.ending) != 0) {
        wait_for_ended(0);
        donor = make_one();
    }
    return donor != NULL ? &donor->own : NULL;
}

/* Its kernel thread runs the destructors of thread-locals. Once it is free another thread may join it, and its record is
 * reused. */
static void end_own(struct tcb *tcb) {
    struct donor *donor = donor_of(tcb);
    enter();
    lock_acquire(&donors.lock);
    unlist_locked(donor);
    fetch_add_relaxed(&donors.ending, 1U);
    push_ended_locked(donor);
    lock_release(&donors.lock);
    let_end(donor);
    provider_ask();
    leave();
}

/* --- life --------------------------------------------------------------------------------------------- */

/* A unit that was preempted in a pool, and was not resumed, still has one. */
static void leave_behind(struct donor *donor) {
    if (!preempt.carries)
        return;
    carrier_end(&donor->carrier);
    while (load_acquire(&donor->has_left) == 0) /* pairs with sleep_for_ever */
        futex_wait(&donor->has_left, 0);
}

INSIDE static void stop(struct tcb *first) {
    join_ended();
    for (struct tcb *tcb = first; tcb != NULL; tcb = tcb->next)
        donor_of(tcb)->is_free = true;
    for (struct donor *donor; (donor = donors.all) != NULL;) {
        donors.all = donor->next;
        if (donor->is_free) {
            end_and_join(donor);
        } else {
            leave_behind(donor);
            some_stay |= !preempt.carries;
        }
    }
    preempt_counts.donors = 0;
    memset(&room, 0, sizeof room);
    if (!some_stay)
        depot_destroy(&records);
}

static void fork_child(void) {
    lock_reset(&donors.lock);
    depot_fork_child(&records);
    donors.all = donors.ended.first = donors.ended.last = NULL;
    preempt_counts.donors = donors.ending = 0;
    memset(&room, 0, sizeof room);
    some_stay = false;
}

const struct spare_kind spare_donors = {
    .make = make,
    .was_refused = was_refused,
    .has_room = has_room,
    .is_limited = is_limited,
    .excess = excess,
    .retire = retire,
    .make_own = make_own,
    .end_own = end_own,
    .collect_own = join_ended,
    .stop = stop,
    .fork_child = fork_child,
};
