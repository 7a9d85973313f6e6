// SPDX-License-Identifier: Apache-2.0
/* Nodes in the lists of several objects: what thrum_wait_any and thrum_spawn_when share. The protocol: wait_any.c. */
#ifndef THRUM_SYNC_WAIT_ANY_H
#define THRUM_SYNC_WAIT_ANY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/inside.h"
#include "sched/awaits.h"
#include "sync/waiters.h"
#include "thrum/sync.h"

/* What thrum_wait_t is. */
struct item {
    uint32_t what; /* enum thrum_wait_what; THRUM_WAIT_RANDOM besides */
    int32_t result;
    void *object, *value;
    struct waiter waiter;
    struct item *next; /* in the order of the objects */
    struct join_watch watch;
    union {
        uint32_t watch_done; /* the thread that has ended does not look at us any more */
        uint32_t depth;      /* of a condition variable's mutex, while it is unlocked for the wait */
    };
};

_Static_assert(sizeof(struct item) <= sizeof(thrum_wait_t), "thrum/sync.h leaves room for it");
_Static_assert(offsetof(struct item, value) == offsetof(thrum_wait_t, value),
               "thrum/sync.h has the first four");

/* False: EINVAL of thrum_wait_any, for a call that may have to wait. */
bool items_may_wait(const struct item *items, size_t count, uint64_t deadline);

/* A list by the objects' addresses. */
struct item *items_in_order(struct item *items, size_t count);

/* Puts nodes into the objects' lists. EBUSY: one looks ready; other errors are the caller's fault. Where it ended is in *end:
 * NULL if all are enlisted. */
INSIDE int items_enlist(struct item *first, struct wait *wait, struct item **end);

/* The same for one that nothing but its wakers can end: it is not contested. After 0 it belongs to its waker, and may be gone. */
INSIDE int item_enlist_alone(struct item *item, struct wait *wait);

/* Takes off what items_enlist() has put there. The one that the wait was claimed by, or NULL. Inside, perhaps on another worker
 * when it returns. */
INSIDE struct item *items_withdraw(struct item *first, const struct item *end);

/* Sets the result of the one that a waker has claimed. */
void item_collect(struct item *item);

/* The one that is a condition variable, or NULL. `value` of it is the mutex, which is unlocked for the wait. */
struct item *items_cond(struct item *first);

/* The mutex of a condition variable is about to be unlocked, wholly; the caller's thread, or another, has locked it again. */
void item_note_depth(struct item *cond);
void item_restore_depth(const struct item *cond);

/* Moves the waiter of a condition variable that did not fire, and is off its list, to the mutex: `wait`, which no other thread
 * knows of, ends when its unit owns the mutex. True: it does, and the caller must wake it. After false it may be gone. */
INSIDE bool item_await_mutex(struct item *cond, struct wait *wait);

/* What a unit awaits that waits for this one alone. */
uint64_t item_awaits(const struct item *item);

#endif
