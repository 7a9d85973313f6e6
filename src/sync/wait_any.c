// SPDX-License-Identifier: Apache-2.0
/* Waiting for the first of several objects.
 *
 *   1. Each is tried in turn, from the first on, or from a random one (THRUM_WAIT_RANDOM). Nothing is taken from any but
 *      the one that is ready first.
 *   2. None is: a node is put into each one's list, all with the same `struct wait`. So a waker must claim it, and only one
 *      object's does; others that fail to continue as if the node had not been there.
 *   3. An object that looks ready by then ends that: if no waker has claimed the wait yet its owner does so itself, takes
 *      all nodes off and begins anew. Whatever wakers meant to give meanwhile and could not is in the objects'
 *      state, where step 1 finds it; so nothing is lost.
 *   4. Woken, or at the deadline: all nodes are taken off. One of them says that it was claimed by it.
 *
 * A condition variable's mutex is unlocked when all nodes are in lists, and only if the wait is not over by then. So if step 3
 * begins anew, no signal can have come that the caller could have waited for. Where another object was ready first, or the
 * deadline came, the caller locks the mutex again.
 *
 * Nodes are put into lists in the order of the objects' addresses, and those for one channel at the same time.
 * Otherwise two threads that wait at the same channels, from different sides, might each find the other's node, and
 * begin anew in step, for ever.
 *
 * From announcing itself to blocking the unit is in a non-preemptible region, and nothing in there may wait for more
 * than a word's SPIN: a unit that is in a list must not be put into a run queue by a preemption as well.
 *
 * Modelled in tests/model/waitany.pml and waitany_locks.pml; tested by tests/unit/ult/sync_wait_any_test.cpp. */
#include "sync/wait_any.h"

#include <errno.h>

#include "sched/cancel.h"
#include "sync/channel.h"
#include "sync/cond.h"
#include "sync/event.h"
#include "sync/mutex.h"
#include "sync/rwlock.h"
#include "sync/sem.h"

static enum thrum_wait_what what_of(const struct item *item) {
    return (enum thrum_wait_what)(item->what & ~(uint32_t)THRUM_WAIT_RANDOM);
}

/* What the elements are in the order of. Those that are switched off come first, whatever object they name: so they never
 * stand between the elements of a channel. */
static uintptr_t key_of(const struct item *item) {
    return what_of(item) == THRUM_WAIT_NONE ? 0 : (uintptr_t)item->object;
}

/* What can be waited for. `attempt` is called outside, the other two inside. */
struct kind {
    enum awaits awaits;                /* of a unit that waits for this one alone */
    int (*attempt)(struct item *item); /* EBUSY: it is not ready. Everything else is the outcome */
    int (*enlist)(struct item *item);  /* EBUSY: it looks ready. Other errors are the caller's fault */
    void (*withdraw)(struct item *item);
    struct item *(*behind)(const struct item *item); /* the first that enlist() did not do */
};

/* --- events, and what is made of them ------------------------------------------------------------------ */

static int event_attempt(struct item *item) {
    return event_is_set(item->object) ? 0 : EBUSY;
}

static int eventual_attempt(struct item *item) {
    return thrum_eventual_try_get(item->object, item->value);
}

static struct item *behind_one(const struct item *item) {
    return item->next;
}

/* SPIN is held; gives it back. */
INSIDE static int enlist_unless(bool ready, struct queue *queue, uint32_t word, struct waiter *waiter) {
    if (!ready)
        waiters_add(&queue->waiters, waiter);
    word_unlock(&queue->word, queue_word(queue, word));
    return ready ? EBUSY : 0;
}

INSIDE static int event_enlist(struct item *item) {
    struct event *event = item->object;
    uint32_t word = word_lock(&event->queue.word);
    return enlist_unless(word & EVENT_SET, &event->queue, word, &item->waiter);
}

INSIDE static void event_withdraw(struct item *item) {
    queue_leave(&((struct event *)item->object)->queue, &item->waiter);
}

/* --- semaphores --------------------------------------------------------------------------------------- */

static int sem_attempt(struct item *item) {
    return sem_take(item->object) ? 0 : EBUSY;
}

INSIDE static int sem_enlist(struct item *item) {
    struct sem *sem = item->object;
    uint32_t word = word_lock(&sem->queue.word);
    return enlist_unless(word >= SEM_ONE, &sem->queue, word, &item->waiter);
}

INSIDE static void sem_withdraw(struct item *item) {
    queue_leave(&((struct sem *)item->object)->queue, &item->waiter);
}

/* --- channels ----------------------------------------------------------------------------------------- */

/* What a full or empty channel answers, as struct kind has it. */
static int as_busy(int error) {
    return error == EAGAIN ? EBUSY : error;
}

static int send_attempt(struct item *item) {
    return as_busy(thrum_channel_try_send(item->object, item->value));
}

static int receive_attempt(struct item *item) {
    return as_busy(thrum_channel_try_receive(item->object, item->value));
}

static struct waiters *channel_list(struct item *item) {
    struct channel *channel = item->object;
    return what_of(item) == THRUM_WAIT_SEND ? &channel->senders : &channel->receivers;
}

static bool channel_looks_ready(const struct item *item, uint32_t word) {
    if (word & CHANNEL_CLOSING)
        return true;
    return what_of(item) == THRUM_WAIT_SEND ? channel_may_send(item->object, word)
                                            : channel_may_receive(item->object, word);
}

/* The first behind those that are for the same channel. */
static struct item *behind_channel(const struct item *item) {
    struct item *next = item->next;
    while (next != NULL && key_of(next) == key_of(item))
        next = next->next;
    return next;
}

/* This one and all that are for the same channel: its own offer is no partner, as it is not in a list yet. */
INSIDE static int channel_enlist(struct item *first) {
    struct channel *channel = first->object;
    const struct item *behind = behind_channel(first);
    uint32_t word = word_lock(&channel->word);
    bool ready = false;
    for (struct item *item = first; item != behind; item = item->next)
        ready = ready || channel_looks_ready(item, word);
    for (struct item *item = first; item != behind && !ready; item = item->next)
        waiters_add(channel_list(item), &item->waiter);
    word_unlock(&channel->word, word);
    return ready ? EBUSY : 0;
}

INSIDE static void channel_withdraw(struct item *item) {
    channel_leave(item->object, channel_list(item), &item->waiter);
}

/* --- threads ------------------------------------------------------------------------------------------ */

/* Whether another thread joins it is only asked where it has to be waited for. */
static int join_attempt(struct item *item) {
    int error = thrum_try_join(item->object, item->value);
    return error == EINVAL ? EBUSY : error;
}

/* The thread's end has found us in its `join`. The item may be gone once watch_done is set, unless we have claimed the
 * wait: then it waits for us. */
INSIDE static void thread_ended(struct worker *worker, struct join_watch *watch) {
    struct item *item = (struct item *)(void *)((char *)watch - offsetof(struct item, watch));
    struct thrum_unit *unit = item->waiter.wait->unit;
    bool claimed = waiter_claim(&item->waiter);
    store_release(&item->watch_done, 1); /* pairs with join_withdraw */
    if (claimed)
        unit_wake(worker, unit);
}

static int join_enlist(struct item *item) {
    struct thrum_unit *thread = item->object, *joiner = JOIN_NONE;
    item->watch.ended = thread_ended;
    store_relaxed(&item->watch_done, 0);
    /* Pairs with unit_publish_end, as does that of join_withdraw. */
    if (cas_acq_rel(&thread->join, &joiner, join_by_watch(&item->watch)))
        return 0;
    return joiner == JOIN_ENDED ? EBUSY : EINVAL; /* another thread joins it, or it is detached */
}

static void join_withdraw(struct item *item) {
    struct thrum_unit *thread = item->object, *joiner = join_by_watch(&item->watch);
    if (cas_acq_rel(&thread->join, &joiner, JOIN_NONE)) /* pairs with unit_publish_end */
        return;
    for (unsigned tries = 0; !load_acquire(&item->watch_done); tries++) /* pairs with thread_ended */
        backoff(tries);
}

/* --- locks -------------------------------------------------------------------------------------------- */

/* An unlock hands the lock to the waiter that it claims: it is the caller's when this has returned. */
static int lock_attempt(struct item *item) {
    return thrum_mutex_try_lock(item->object);
}

INSIDE static int lock_enlist(struct item *item) {
    return mutex_enlist(item->object, &item->waiter) ? 0 : EBUSY;
}

INSIDE static void lock_withdraw(struct item *item) {
    queue_leave(&((struct mutex *)item->object)->queue, &item->waiter);
}

static bool writes(const struct item *item) {
    return what_of(item) == THRUM_WAIT_WRITE_LOCK;
}

static int rwlock_attempt(struct item *item) {
    return writes(item) ? thrum_rwlock_try_write_lock(item->object)
                        : thrum_rwlock_try_read_lock(item->object);
}

INSIDE static int rwlock_enlist_item(struct item *item) {
    return rwlock_enlist(item->object, &item->waiter, writes(item)) ? 0 : EBUSY;
}

INSIDE static void rwlock_withdraw(struct item *item) {
    rwlock_forget(item->object, &item->waiter, writes(item));
}

/* --- condition variables: from a signal on, for their mutex ------------------------------------------- */

INSIDE static int cond_enlist_item(struct item *item) {
    cond_enlist(worker_here(), item->object, item->value, &item->waiter);
    return 0;
}

INSIDE static void cond_withdraw(struct item *item) {
    queue_leave(&((struct cond *)item->object)->queue, &item->waiter);
}

struct item *items_cond(struct item *first) {
    struct item *item = first;
    while (item != NULL && what_of(item) != THRUM_WAIT_COND)
        item = item->next;
    return item;
}

void item_note_depth(struct item *cond) {
    struct mutex *mutex = cond->value;
    cond->depth = mutex->depth;
    mutex->depth = 0;
}

void item_restore_depth(const struct item *cond) {
    ((struct mutex *)cond->value)->depth = cond->depth;
}

/* --- nothing ------------------------------------------------------------------------------------------ */

static int none_attempt(struct item *item) {
    (void)item;
    return EBUSY;
}

static int none_enlist(struct item *item) {
    (void)item;
    return 0;
}

static void none_withdraw(struct item *item) {
    (void)item;
}

/* --- all of them -------------------------------------------------------------------------------------- */

static const struct kind kinds[] = {
    [THRUM_WAIT_EVENT] = {AWAITS_EVENT, event_attempt, event_enlist, event_withdraw, behind_one},
    [THRUM_WAIT_LATCH] = {AWAITS_LATCH, event_attempt, event_enlist, event_withdraw, behind_one},
    [THRUM_WAIT_FUTURE] = {AWAITS_FUTURE, event_attempt, event_enlist, event_withdraw, behind_one},
    [THRUM_WAIT_EVENTUAL] = {AWAITS_EVENTUAL, eventual_attempt, event_enlist, event_withdraw, behind_one},
    [THRUM_WAIT_SEM] = {AWAITS_SEM, sem_attempt, sem_enlist, sem_withdraw, behind_one},
    [THRUM_WAIT_SEND] = {AWAITS_SEND, send_attempt, channel_enlist, channel_withdraw, behind_channel},
    [THRUM_WAIT_RECEIVE] = {AWAITS_RECEIVE, receive_attempt, channel_enlist, channel_withdraw,
                            behind_channel},
    [THRUM_WAIT_JOIN] = {AWAITS_END, join_attempt, join_enlist, join_withdraw, behind_one},
    [THRUM_WAIT_LOCK] = {AWAITS_MUTEX, lock_attempt, lock_enlist, lock_withdraw, behind_one},
    [THRUM_WAIT_READ_LOCK] = {AWAITS_READ, rwlock_attempt, rwlock_enlist_item, rwlock_withdraw, behind_one},
    [THRUM_WAIT_WRITE_LOCK] = {AWAITS_WRITE, rwlock_attempt, rwlock_enlist_item, rwlock_withdraw, behind_one},
    [THRUM_WAIT_NONE] = {AWAITS_ANY, none_attempt, none_enlist, none_withdraw, behind_one},
    [THRUM_WAIT_COND] = {AWAITS_COND, none_attempt, cond_enlist_item, cond_withdraw, behind_one},
};

#define KINDS (sizeof kinds / sizeof *kinds)

static const struct kind *kind_of(const struct item *item) {
    return &kinds[what_of(item)];
}

static size_t drawn_below(size_t count) {
    struct worker *worker = enter();
    uint64_t random =
        worker != NULL ? worker_random(worker) : arch_ticks() * UINT64_C(0x9E3779B97F4A7C15) >> 16;
    leave();
    return random % count;
}

/* The first that is ready, which has been done, or NULL. */
static struct item *attempt_all(struct item *items, size_t count) {
    size_t first = items[0].what & THRUM_WAIT_RANDOM ? drawn_below(count) : 0;
    for (size_t i = 0; i < count; i++) {
        struct item *item = &items[first + i < count ? first + i : first + i - count];
        item->result = kind_of(item)->attempt(item);
        if (item->result != EBUSY)
            return item;
    }
    return NULL;
}

/* --- in order ----------------------------------------------------------------------------------------- */

/* Both are in order; of equals those of `a` come first. */
static struct item *merge(struct item *a, struct item *b) {
    struct item *first = NULL, **end = &first;
    while (a != NULL && b != NULL) {
        struct item **least = key_of(b) < key_of(a) ? &b : &a;
        *end = *least;
        end = &(*least)->next;
        *least = *end;
    }
    *end = a != NULL ? a : b;
    return first;
}

/* Takes the longest run that is in order off the front of *rest. */
static struct item *take_run(struct item **rest) {
    struct item *first = *rest, *last = first;
    while (last->next != NULL && key_of(last) <= key_of(last->next))
        last = last->next;
    *rest = last->next;
    last->next = NULL;
    return first;
}

/* A merge sort without memory, as many waits may be in the array. runs[i] is NULL or made of 2^i runs of the array's, of which one that is in order already has one. */
struct item *items_in_order(struct item *items, size_t count) {
    enum { LEVELS = 8 * sizeof count };
    if (count == 1) {
        items->next = NULL;
        return items;
    }
    struct item *runs[LEVELS] = {NULL}, *rest = items, *all = NULL;
    for (size_t i = 0; i < count; i++)
        items[i].next = i + 1 < count ? &items[i + 1] : NULL;
    while (rest != NULL) {
        struct item *run = take_run(&rest);
        unsigned level = 0;
        for (; runs[level] != NULL; level++) {
            run = merge(runs[level], run);
            runs[level] = NULL;
        }
        runs[level] = run;
    }
    for (unsigned level = 0; level < LEVELS; level++)
        if (runs[level] != NULL)
            all = all != NULL ? merge(runs[level], all) : runs[level];
    return all;
}

/* --- waiting ------------------------------------------------------------------------------------------ */

static void make_waiter(struct item *item, struct wait *wait, bool contested) {
    item->waiter = waiter_make(wait, contested);
    item->waiter.value = item->value;
}

int item_enlist_alone(struct item *item, struct wait *wait) {
    make_waiter(item, wait, false);
    return kind_of(item)->enlist(item);
}

bool item_await_mutex(struct item *cond, struct wait *wait) {
    make_waiter(cond, wait, false);
    return mutex_adopt_one(cond->value, &cond->waiter);
}

int items_enlist(struct item *first, struct wait *wait, struct item **end) {
    for (struct item *item = first; item != NULL; item = item->next)
        make_waiter(item, wait, true);
    int error = 0;
    for (*end = first; *end != NULL; *end = kind_of(*end)->behind(*end)) {
        error = kind_of(*end)->enlist(*end);
        if (error != 0)
            break;
    }
    return error;
}

struct item *items_withdraw(struct item *first, const struct item *end) {
    struct item *fired = NULL;
    for (struct item *item = first; item != end; item = item->next) {
        if (item->waiter.fired)
            fired = item;
        else
            kind_of(item)->withdraw(item);
    }
    return fired;
}

/* All nodes are in lists, or `error` ended that. True: it has waited, and *error is 0 or ETIMEDOUT. */
INSIDE static bool block_once(struct worker *worker, struct wait *wait, uint64_t deadline,
                              const struct item *cond, int *error) {
    bool is_listed = *error == 0;
    if (!is_listed && wait_claim(wait)) {
        unit_await_no_more(wait->unit);
        return false;
    }
    if (cond != NULL)
        mutex_unlock_inside(worker, cond->value);
    *error = 0;
    if (!is_listed) /* a waker was quicker, and wakes us */
        unit_block(worker, wait->unit);
    else if (!unit_block_until(worker, wait, cancel_point(worker, deadline)))
        *error = ETIMEDOUT;
    return true;
}

/* Steps 2 to 4. 0: *ready was; EAGAIN: begin anew; or ETIMEDOUT or EINVAL. */
static int wait_once(struct item *first, uint64_t deadline, struct item **ready) {
    struct worker *worker = enter();
    struct wait wait = {.unit = unit_self(worker)};
    struct item *end, *cond = items_cond(first);
    waiter_await(wait.unit, AWAITS_ANY, NULL, deadline);
    if (cond != NULL)
        item_note_depth(cond);
    int error = items_enlist(first, &wait, &end);
    bool has_waited = block_once(worker, &wait, deadline, cond, &error);
    *ready = items_withdraw(first, end);
    if (cond != NULL) {
        if (has_waited && *ready != cond)
            mutex_lock_inside(worker_here(), cond->value, TIMER_NEVER, false);
        item_restore_depth(cond);
    }
    leave();
    return error == EBUSY ? EAGAIN : error;
}

/* Those that leave something to be collected have it there, for us alone or for all. */
void item_collect(struct item *item) {
    item->result = item->waiter.result;
    if (what_of(item) == THRUM_WAIT_EVENTUAL || what_of(item) == THRUM_WAIT_JOIN)
        item->result = kind_of(item)->attempt(item);
}

uint64_t item_awaits(const struct item *item) {
    return awaits_make(kind_of(item)->awaits, what_of(item) == THRUM_WAIT_NONE ? NULL : item->object);
}

/* The mutex of a condition in the same call: the wait would give it to itself. */
static bool locks_mutex_of(const struct item *items, size_t count, const struct item *cond) {
    for (size_t i = 0; i < count; i++)
        if (what_of(&items[i]) == THRUM_WAIT_LOCK && items[i].object == cond->value)
            return true;
    return false;
}

static bool are_known(const struct item *items, size_t count) {
    if (items == NULL || count == 0)
        return false;
    const struct item *cond = NULL;
    for (size_t i = 0; i < count; i++) {
        if (what_of(&items[i]) >= KINDS || (i > 0 && items[i].what & THRUM_WAIT_RANDOM) ||
            (items[i].object == NULL && what_of(&items[i]) != THRUM_WAIT_NONE))
            return false;
        if (what_of(&items[i]) != THRUM_WAIT_COND)
            continue;
        if (items[i].value == NULL || cond != NULL)
            return false;
        cond = &items[i];
    }
    return cond == NULL || !locks_mutex_of(items, count, cond);
}

/* Nothing could end the wait. */
static bool are_none(const struct item *items, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (what_of(&items[i]) != THRUM_WAIT_NONE)
            return false;
    return true;
}

static bool have_cond(const struct item *items, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (what_of(&items[i]) == THRUM_WAIT_COND)
            return true;
    return false;
}

bool items_may_wait(const struct item *items, size_t count, uint64_t deadline) {
    return are_known(items, count) && (deadline != TIMER_NEVER || !are_none(items, count));
}

int thrum_wait_any(thrum_wait_t *waits, size_t count, uint64_t deadline, size_t *which) {
    struct item *items = (struct item *)(void *)waits, *first = NULL, *ready;
    if (!items_may_wait(items, count, deadline))
        return EINVAL;
    while ((ready = attempt_all(items, count)) == NULL) {
        if (deadline == 0 && !have_cond(items, count)) /* a wait for a condition always waits */
            return ETIMEDOUT;
        if (first == NULL)
            first = items_in_order(items, count);
        int error = wait_once(first, deadline, &ready);
        if (error == 0) {
            item_collect(ready);
            break;
        }
        if (error != EAGAIN)
            return cancel_act(error);
    }
    if (which != NULL)
        *which = (size_t)(ready - items);
    return 0;
}
