// SPDX-License-Identifier: Apache-2.0
/* See donors.h. */
#include "preempt/donors.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/text.h"
#include "context/depot.h"
#include "os/clock.h"
#include "os/futex.h"
#include "os/lock.h"
#include "os/quota.h"
#include "os/rseq.h"
#include "os/thread.h"
#include "preempt/blocks.h"
#include "preempt/carrier.h"
#include "preempt/preempt.h"
#include "preempt/requests.h"
#include "sched/exit.h"
#include "sched/worker.h"

/* Destructors of thread-local variables, which are the program's, run there at the end. */
enum { STACK = 256 * 1024 };

enum {
    RETIRE_MS = 500, /* interval at which unneeded spares are looked for */
    SLACK = 8,       /* so many more than are made at a time do not trigger a look */
    ROOM_MS = 50,    /* for so long, and so many new ones, the limits are not read again */
    ROOM_COUNT = 32,
    REFUSED_MS = 1000, /* for so long after a refusal by the system there are fewer */
    ENDING_MAX = 64,   /* private ones that are about to end: with more, their creators wait for some */
};

struct donor {
    struct carrier carrier; /* first */
    struct private_donor private;
    pthread_t handle;
    struct donor *next, *before; /* under lock: in `all`, and `next` alone in `ended` */
    bool is_free;                /* at the end: no unit has its block */
    uint32_t has_left;           /* futex: ... and it has left the stack of a unit that is lost */
};

/* On the stack of the one that makes one. */
struct birth {
    struct donor *donor; /* r/o */
    bool is_private;     /* r/o */
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
    struct tcb *spares; /* under lock, as the next six */
    uint32_t count;     /* of them */
    uint32_t fewest;    /* of them, since the provider's last look */
    bool is_watched;    /* the provider looks every RETIRE_MS for unneeded ones */
    struct donor *all;
    uint32_t alive; /* of them */
    struct {
        struct donor *first, *last; /* private ones whose thread has ended, oldest first */
    } ended;
    uint32_t ending; /* those of them that are not joined yet; futex */
    uint32_t low;    /* fewer spares than that are few; r/o */
    pthread_t provider;
    bool has_provider;
    bool are_blocks;                                    /* there are no donors; r/o, as the next */
    struct exception_globals *(*exceptions_here)(void); /* r/o, as the next */
    bool (*arm)(void);
    bool (*add_relief)(void); /* r/o */
} donors;

/* How many more there may be; the provider's. */
static struct {
    uint64_t known_until; /* ns: `left` is what was found */
    uint32_t left;
    uint64_t refused_until; /* ns: the system has refused one; until then there may be `most` */
    uint32_t most;
} room;

/* --- one of them -------------------------------------------------------------------------------------- */

/* Each has one holder: the thread that took it from the list, when it points to itself (take_locked). */
static void give_locked(struct tcb *tcb) {
    thrum_assert(tcb->next == tcb);
    tcb->next = donors.spares;
    donors.spares = tcb;
    store_relaxed(&donors.count, donors.count + 1);
}

static struct tcb *take_locked(void) {
    struct tcb *tcb = donors.spares;
    donors.spares = tcb->next;
    store_relaxed(&donors.count, donors.count - 1);
    if (donors.count < donors.fewest)
        donors.fewest = donors.count;
    tcb->next = tcb;
    return tcb;
}

static void list_locked(struct donor *donor) {
    donor->next = donors.all;
    donor->before = NULL;
    if (donors.all != NULL)
        donors.all->before = donor;
    donors.all = donor;
    donors.alive++;
}

static void unlist_locked(struct donor *donor) {
    if (donor->before != NULL)
        donor->before->next = donor->next;
    else
        donors.all = donor->next;
    if (donor->next != NULL)
        donor->next->before = donor->before;
    donors.alive--;
}

static void list(struct donor *self, bool is_spare) {
    lock_acquire(&donors.lock);
    list_locked(self);
    self->carrier.tcb.next = &self->carrier.tcb;
    if (is_spare)
        give_locked(&self->carrier.tcb);
    lock_release(&donors.lock);
}

/* Not inside. */
static struct donor *new_record(void) {
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
    store_release(&birth->over, is_ready ? BORN : STILLBORN);
    futex_wake(&birth->over, 1);
}

/* Ending it would free what libc has of it, which takes a lock that the lost unit may hold. Its record is not touched
 * any more. */
static _Noreturn void sleep_for_ever(struct donor *self) {
    uint32_t for_ever = 0;
    if (!preempt.lends)
        alarm_delete(&self->carrier.alarm);
    store_release(&self->has_left, 1);
    futex_wake(&self->has_left, 1);
    for (;;)
        futex_wait(&for_ever, 0);
}

static void *donor_main(void *arg) {
    struct birth *birth = arg;
    struct donor *self = birth->donor;
    *self =
        (struct donor){.carrier = {.tcb.base = arch_tcb(), .idle.kind = UNIT_LOOP}, .handle = pthread_self()};
    struct tcb *tcb = self->private.tcb = &self->carrier.tcb;
    tcb->exceptions = donors.exceptions_here != NULL ? donors.exceptions_here() : &tcb->none;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL); /* units that run on it name it by pthread_self() */
    if (preempt.lends) {
        rseq_give_up(tcb->base);
        libc_signals_follow(false);
    }
    exit_watch(true);
    bool ready = preempt.lends || carrier_begin(&self->carrier);
    if (ready)
        list(self, !birth->is_private);
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
static struct donor *make_one(bool is_private) {
    pthread_t handle;
    struct birth birth = {.donor = new_record(), .is_private = is_private};
    if (birth.donor == NULL)
        return NULL;
    bool is_made = thread_make_quiet(&handle, STACK, donor_main, &birth) == 0;
    while (is_made && load_acquire(&birth.over) == UNBORN)
        futex_wait(&birth.over, UNBORN);
    if (is_made && birth.over == BORN)
        return birth.donor;
    if (is_made)
        pthread_join(handle, NULL);
    free_record(birth.donor);
    return NULL;
}

/* The kernel refuses it only at the moment, if at all. */
static bool make_block(void) {
    struct block *block = block_make(donors.exceptions_here);
    if (block == NULL)
        return false;
    enter();
    lock_acquire(&donors.lock);
    donors.alive++;
    block->tcb.next = &block->tcb;
    give_locked(&block->tcb);
    lock_release(&donors.lock);
    leave();
    return true;
}

static bool make_spare(void) {
    return donors.are_blocks ? make_block() : make_one(false) != NULL;
}

static struct private_donor *make_private_block(void) {
    struct block *block = block_make(donors.exceptions_here);
    if (block == NULL)
        return NULL;
    block->private.tcb = block->tcb.next = &block->tcb;
    return &block->private;
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

/* --- private ones that have ended --------------------------------------------------------------------- */

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
    fetch_sub_release(&donors.ending, 1U);
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
        uint32_t ending = load_acquire(&donors.ending);
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
    return load_relaxed(&donors.alive) < 4 * (load_acquire(&runtime.count) + 1);
}

/* The kernel threads that the system allows are shared with the program. Without a further spare, units that were
 * preempted already run, and others when one of them ends (lend.c). */
static bool has_room(void) {
    uint64_t now = clock_monotonic_ns();
    if (is_below_least())
        return true;
    if (now < room.refused_until && load_relaxed(&donors.alive) >= room.most)
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
    if (donors.are_blocks)
        return;
    uint32_t alive = load_relaxed(&donors.alive);
    room.most = alive - alive / 4;
    room.refused_until = clock_monotonic_ns() + REFUSED_MS * UINT64_C(1000000);
    enter();
    lock_acquire(&donors.lock);
    donors.is_watched = true;
    lock_release(&donors.lock);
    leave();
}

static uint32_t enough(void) {
    return donors.low * 2 + preempt_owners_at_once();
}

static bool make_enough(void) {
    while (load_relaxed(&donors.count) < enough()) {
        if (!donors.are_blocks && !has_room())
            return false;
        if (!make_spare()) {
            was_refused();
            return false;
        }
    }
    return true;
}

/* Half of those unneeded since the last look, so that a program whose threads compute in bursts keeps some; and all
 * above the limit. */
static uint32_t surplus_locked(void) {
    uint32_t keep = enough(), idle = donors.fewest > keep ? donors.fewest - keep : 0;
    uint32_t surplus = idle - idle / 2, spare = donors.count > keep ? donors.count - keep : 0, over = 0;
    if (clock_monotonic_ns() < room.refused_until && donors.alive > room.most)
        over = donors.alive - room.most;
    over = over < spare ? over : spare;
    return surplus > over ? surplus : over;
}

static struct donor *take_surplus_locked(void) {
    struct donor *first = NULL;
    for (uint32_t n = surplus_locked(); n > 0; n--) {
        struct donor *donor = (struct donor *)(void *)take_locked();
        unlist_locked(donor);
        donor->next = first;
        first = donor;
    }
    donors.fewest = donors.count;
    donors.is_watched = donors.count > enough() || clock_monotonic_ns() < room.refused_until;
    return first;
}

/* They end beside each other. */
static void retire_surplus(void) {
    enter();
    lock_acquire(&donors.lock);
    struct donor *first = take_surplus_locked();
    lock_release(&donors.lock);
    leave();
    for (struct donor *donor = first; donor != NULL; donor = donor->next)
        let_end(donor);
    for (struct donor *donor = first, *next; donor != NULL; donor = next) {
        next = donor->next;
        pthread_join(donor->handle, NULL);
        free_record(donor);
    }
}

/* --- the provider ------------------------------------------------------------------------------------- */

static void interrupt_starved(void) {
    enter();
    for (uint32_t i = 0; i < load_acquire(&runtime.count); i++) {
        struct worker *worker = runtime.workers[i];
        if (load_relaxed(&worker->tick.starved) != 0 && exchange_acquire(&worker->tick.starved, 0U) != 0)
            tick_interrupt(worker);
    }
    leave();
}

/* While some spares may be unneeded. False: a request came. */
static bool rests_until(uint64_t moment) {
    struct timespec deadline = {(time_t)(moment / 1000000000), (long)(moment % 1000000000)};
    while (load_relaxed(&requests.asked) == NOT_ASKED)
        if (futex_wait_until(&requests.asked, NOT_ASKED, CLOCK_MONOTONIC, &deadline) == -ETIMEDOUT)
            return true;
    return false;
}

static bool are_watched(void) {
    enter();
    lock_acquire(&donors.lock);
    bool watched = donors.is_watched;
    lock_release(&donors.lock);
    leave();
    return watched;
}

static void provide(void) {
    fence_seq_cst(); /* pairs with provider_ask's */
    bool is_ready = preempt_is_armed();
    if (!is_ready && exchange_acquire(&requests.wanted, 0U) != 0)
        is_ready = donors.arm();
    if (is_ready && exchange_acquire(&requests.relief, 0U) != 0)
        donors.add_relief(); /* or it is asked for again */
    if (is_ready && make_enough())
        interrupt_starved();
    join_ended(); /* runs the program's destructors of thread-locals, which may take long */
}

/* If no more threads may be made, the next worker that lacks one asks again. */
static void *provider_main(void *unused) {
    uint64_t look = 0;
    for (;;) {
        uint32_t asked = exchange_acquire(&requests.asked, NOT_ASKED);
        if (asked == ASK_TO_END)
            return unused;
        if (asked != NOT_ASKED)
            provide();
        if (!are_watched()) {
            look = 0;
            futex_wait(&requests.asked, NOT_ASKED);
            continue;
        }
        if (look == 0)
            look = clock_monotonic_ns() + RETIRE_MS * UINT64_C(1000000);
        if (clock_monotonic_ns() >= look || rests_until(look)) {
            retire_surplus();
            look = 0;
        }
    }
}

/* --- for borrowers ------------------------------------------------------------------------------------ */

int donors_make(uint32_t count) {
    while (load_relaxed(&donors.count) < count)
        if (!make_spare())
            return EAGAIN;
    return 0;
}

/* The system also counts the kernel threads of private ones that have ended. */
struct private_donor *donors_make_private(void) {
    if (donors.are_blocks)
        return make_private_block();
    wait_for_ended(ENDING_MAX);
    struct donor *donor = make_one(true);
    if (donor == NULL && load_relaxed(&donors.ending) != 0) {
        wait_for_ended(0);
        donor = make_one(true);
    }
    return donor != NULL ? &donor->private : NULL;
}

/* Once it is free another thread may join it, and its record is reused. */
void donors_end_private(struct tcb *tcb) {
    if (donors.are_blocks) {
        block_keep((struct block *)(void *)tcb);
        return;
    }
    struct donor *donor = (struct donor *)(void *)tcb;
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

struct tcb *donors_take(uint32_t keep) {
    lock_acquire(&donors.lock);
    struct tcb *tcb = donors.count > keep ? take_locked() : NULL;
    bool few = donors.count < donors.low + keep;
    lock_release(&donors.lock);
    if (few && preempt_is_armed())
        provider_ask();
    return tcb;
}

void donors_give(struct tcb *tcb) {
    lock_acquire(&donors.lock);
    give_locked(tcb);
    bool are_many = !donors.are_blocks && !donors.is_watched && donors.count > enough() + SLACK;
    if (are_many) {
        donors.is_watched = true;
        donors.fewest = 0; /* not for a whole period yet */
    }
    lock_release(&donors.lock);
    if (are_many)
        provider_ask();
}

bool donors_are_scarce(void) {
    return load_relaxed(&donors.count) <= preempt_owners_at_once();
}

/* --- life --------------------------------------------------------------------------------------------- */

bool donors_are_blocks(void) {
    return donors.are_blocks;
}

void donors_renew(const struct tcb *tcb) {
    block_renew((const struct block *)(const void *)tcb);
}

struct private_donor *donors_private_of(struct tcb *tcb) {
    return &((struct block *)(void *)tcb)->private;
}

/* Says so once where they are not. */
static bool blocks_are_usable(void) {
    static bool is_told;
    const char *why;
    enum blocks_answer answer = blocks_learn(donors.exceptions_here, &why);
    if (answer == BLOCKS_UNUSABLE && !is_told)
        text_line("each spare thread control block takes a kernel thread: ", why, NULL);
    is_told |= answer == BLOCKS_UNUSABLE;
    return answer == BLOCKS_USABLE;
}

int donors_start(uint32_t count, struct exception_globals *(*exceptions_here)(void), bool (*arm)(void),
                 bool (*add_relief)(void)) {
    donors.exceptions_here = exceptions_here;
    donors.arm = arm;
    donors.add_relief = add_relief;
    requests.wanted = requests.relief = 0;
    donors.low = 2;
    donors.is_watched = false;
    donors.fewest = 0; /* a former runtime's */
    store_relaxed(&requests.asked, NOT_ASKED);
    memset(&room, 0, sizeof room);
    donors.are_blocks = preempt.lends && !preempt.settings.by_donors && blocks_are_usable();
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
    store_release(&requests.asked, ASK_TO_END);
    futex_wake(&requests.asked, 1);
    pthread_join(donors.provider, NULL);
    donors.has_provider = false;
}

/* A unit that was preempted in a pool, and was not resumed, still has one. */
static void leave_behind(struct donor *donor) {
    if (!preempt.carries)
        return;
    carrier_end(&donor->carrier);
    while (load_acquire(&donor->has_left) == 0)
        futex_wait(&donor->has_left, 0);
}

/* Those of units that are lost stay so. */
static void stop_blocks(void) {
    for (struct tcb *tcb; (tcb = donors.spares) != NULL;) {
        struct block *block = (struct block *)(void *)tcb;
        donors.spares = tcb->next;
        donors.count--;
        block_renew_elsewhere(block);
        block_keep(block);
    }
    thrum_assert(donors.count == 0);
    donors.alive = 0;
}

void donors_stop(void) {
    donors_close();
    if (donors.are_blocks) {
        stop_blocks();
        return;
    }
    join_ended();
    for (struct tcb *tcb = donors.spares; tcb != NULL; tcb = tcb->next, donors.count--)
        ((struct donor *)(void *)tcb)->is_free = true;
    thrum_assert(donors.count == 0);
    for (struct donor *donor; (donor = donors.all) != NULL;) {
        donors.all = donor->next;
        if (donor->is_free) {
            end_and_join(donor);
        } else {
            leave_behind(donor);
            some_stay |= !preempt.carries;
        }
    }
    donors.spares = NULL;
    donors.count = donors.alive = 0;
    if (!some_stay)
        depot_destroy(&records);
}

void donors_fork_child(void) {
    lock_reset(&donors.lock);
    depot_fork_child(&records);
    donors.all = donors.ended.first = donors.ended.last = NULL;
    donors.spares = NULL;
    donors.count = donors.alive = donors.ending = 0;
    donors.has_provider = some_stay = false;
}
