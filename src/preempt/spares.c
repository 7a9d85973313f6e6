// SPDX-License-Identifier: Apache-2.0
/* See spares.h: the list, and how many there are. */
#include "preempt/spares.h"

#include <errno.h>
#include <stddef.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/text.h"
#include "os/lock.h"
#include "preempt/blocks.h"
#include "preempt/preempt.h"
#include "preempt/requests.h"
#include "sched/current.h"
#include "sched/tcb.h"

enum {
    FEW = 2,   /* fewer are too few: then there will be twice as many */
    SLACK = 8, /* so many more than are made at a time do not trigger a look */
};

static struct {
    struct lock lock;
    const struct spare_kind *kind; /* r/o while there is a runtime */
    struct tcb *first; /* under lock, as the next two, and preempt_counts.spare, how many these are */
    uint32_t fewest;   /* there were, since the provider's last look */
    bool is_watched;   /* the provider looks at intervals for unneeded ones */
} spares;

/* --- the list ----------------------------------------------------------------------------------------- */

/* Each has one holder: the thread that took it from the list, when it points to itself (take_locked). */
static void give_locked(struct tcb *tcb) {
    thrum_assert(tcb->next == tcb);
    tcb->next = spares.first;
    spares.first = tcb;
    store_relaxed(&preempt_counts.spare, preempt_counts.spare + 1);
}

static struct tcb *take_locked(void) {
    struct tcb *tcb = spares.first;
    spares.first = tcb->next;
    store_relaxed(&preempt_counts.spare, preempt_counts.spare - 1);
    if (preempt_counts.spare < spares.fewest)
        spares.fewest = preempt_counts.spare;
    tcb->next = tcb;
    return tcb;
}

static uint32_t enough(void) {
    return FEW * 2 + preempt_owners_at_once();
}

struct tcb *spares_take(uint32_t keep) {
    lock_acquire(&spares.lock);
    struct tcb *tcb = preempt_counts.spare > keep ? take_locked() : NULL;
    bool few = preempt_counts.spare < FEW + keep;
    lock_release(&spares.lock);
    if (few && preempt_is_armed())
        provider_ask();
    return tcb;
}

void spares_give(struct tcb *tcb) {
    lock_acquire(&spares.lock);
    give_locked(tcb);
    bool are_many =
        spares.kind->retire != NULL && !spares.is_watched && preempt_counts.spare > enough() + SLACK;
    if (are_many) {
        spares.is_watched = true;
        spares.fewest = 0; /* not for a whole period yet */
    }
    lock_release(&spares.lock);
    if (are_many)
        provider_ask();
}

bool spares_are_scarce(void) {
    return load_relaxed(&preempt_counts.spare) <= preempt_owners_at_once();
}

bool spares_are_short(void) {
    return load_relaxed(&preempt_counts.spare) < preempt_owners_at_once();
}

/* --- more of them ------------------------------------------------------------------------------------- */

static bool make_one(void) {
    struct tcb *tcb = spares.kind->make();
    if (tcb == NULL)
        return false;
    enter();
    lock_acquire(&spares.lock);
    tcb->next = tcb;
    give_locked(tcb);
    lock_release(&spares.lock);
    leave();
    return true;
}

int spares_make(uint32_t count) {
    while (load_relaxed(&preempt_counts.spare) < count)
        if (!make_one())
            return EAGAIN;
    return 0;
}

/* What there is over the limit is given back as soon as it is unused. */
static void was_refused(void) {
    if (spares.kind->was_refused == NULL)
        return;
    spares.kind->was_refused();
    enter();
    lock_acquire(&spares.lock);
    spares.is_watched = true;
    lock_release(&spares.lock);
    leave();
}

bool spares_make_enough(void) {
    while (load_relaxed(&preempt_counts.spare) < enough()) {
        if (spares.kind->has_room != NULL && !spares.kind->has_room())
            return false;
        if (!make_one()) {
            was_refused();
            return false;
        }
    }
    return true;
}

/* --- fewer of them ------------------------------------------------------------------------------------ */

bool spares_are_watched(void) {
    enter();
    lock_acquire(&spares.lock);
    bool watched = spares.is_watched;
    lock_release(&spares.lock);
    leave();
    return watched;
}

/* Half of those unneeded since the last look, so that a program whose threads compute in bursts keeps some; and all
 * above the limit. */
static uint32_t surplus_locked(void) {
    uint32_t keep = enough(), idle = spares.fewest > keep ? spares.fewest - keep : 0;
    uint32_t surplus = idle - idle / 2, spare = preempt_counts.spare > keep ? preempt_counts.spare - keep : 0;
    uint32_t over = spares.kind->excess();
    over = over < spare ? over : spare;
    return surplus > over ? surplus : over;
}

static struct tcb *take_surplus_locked(void) {
    struct tcb *first = NULL;
    for (uint32_t n = surplus_locked(); n > 0; n--) {
        struct tcb *tcb = take_locked();
        tcb->next = first;
        first = tcb;
    }
    spares.fewest = preempt_counts.spare;
    spares.is_watched = preempt_counts.spare > enough() || spares.kind->is_limited();
    return first;
}

void spares_retire_surplus(void) {
    enter();
    lock_acquire(&spares.lock);
    struct tcb *first = take_surplus_locked();
    lock_release(&spares.lock);
    leave();
    spares.kind->retire(first);
}

/* --- for threads that have one for life --------------------------------------------------------------- */

bool spares_recycle_own(void) {
    return spares.kind->renew_own != NULL;
}

struct own_block *spares_make_own(void) {
    return spares.kind->make_own();
}

struct own_block *spares_renew_own(struct tcb *tcb) {
    return spares.kind->renew_own != NULL ? spares.kind->renew_own(tcb) : NULL;
}

void spares_end_own(struct tcb *tcb) {
    spares.kind->end_own(tcb);
}

void spares_collect(void) {
    if (spares.kind->collect_own != NULL)
        spares.kind->collect_own();
}

/* --- life --------------------------------------------------------------------------------------------- */

/* Says so once where they are not. */
static bool blocks_are_usable(void) {
    static bool is_told;
    const char *why;
    enum blocks_answer answer = blocks_learn(preempt.exceptions_here, &why);
    if (answer == BLOCKS_UNUSABLE && !is_told)
        text_line("each spare thread control block takes a kernel thread: ", why, NULL);
    is_told |= answer == BLOCKS_UNUSABLE;
    return answer == BLOCKS_USABLE;
}

int spares_start(uint32_t count) {
    bool are_blocks = preempt.lends && !preempt.settings.by_donors && blocks_are_usable();
    spares.kind = are_blocks ? &spare_blocks : &spare_donors;
    spares.is_watched = false;
    spares.fewest = 0; /* a former runtime's */
    int error = spares_make(count);
    if (error != 0)
        spares_stop();
    return error;
}

void spares_stop(void) {
    spares.kind->stop(spares.first);
    spares.first = NULL;
    preempt_counts.spare = 0;
}

void spares_fork_child(void) {
    lock_reset(&spares.lock);
    spares.first = NULL;
    preempt_counts.spare = 0;
    spare_blocks.fork_child();
    spare_donors.fork_child();
}
