// SPDX-License-Identifier: Apache-2.0
/* See workers.h. */
#include "runtime/workers.h"

#include <errno.h>

#include "base/container_of.h"
#include "base/misuse.h"
#include "preempt/monitor.h"
#include "preempt/preempt.h"
#include "runtime/member.h"
#include "sched/time/timed_wait.h"
#include "sched/worker.h"
#include "sync/mutex.h"
#include "thrum/sync.h"
#include "thrum/worker.h"

static struct {
    thrum_mutex_t mutex;
    /* After mutex: new slots. Not held while waiting for a worker's end, for which a unit may have to be preempted. */
    thrum_mutex_t slots;
    bool open; /* under both: there is a runtime whose workers may be added and stopped */
} change = {.mutex = THRUM_MUTEX_INITIALIZER, .slots = THRUM_MUTEX_INITIALIZER};

/* No cancellation point, also of threads for which locks are: a caller that has one of the two would never release it. */
static void lock(thrum_mutex_t *mutex) {
    mutex_lock_inside(enter(), mutex_of(mutex), TIMER_NEVER, false);
    leave();
}

/* --- all at once -------------------------------------------------------------------------------------- */

static void *first_loop(void *worker) {
    worker_loop(worker);
    return NULL;
}

/* What runs on the caller continues as `primary`; the loop gets a stack of its own. */
static int become_first(struct worker *worker, struct thrum_unit *primary) {
    enter();
    bool made = member_make_loop(worker, first_loop);
    leave();
    if (!made)
        return ENOMEM;
    if (!preempt_worker_ready(worker)) {
        preempt_worker_unready(worker);
        return EAGAIN;
    }
    own_prepare(worker);
    *primary = (struct thrum_unit){.kind = UNIT_BOUND, .bound = worker, .escaped = true, .is_primary = true};
    worker->current = primary;
    return 0;
}

/* The caller has no more ticks from here on: one would take it to its loop, which ends. */
void workers_stop(void) {
    if (worker_here() != NULL)
        preempt_worker_end(worker_here());
    store_release(&runtime.stopping, 1);
    enter();
    for (uint32_t i = 0; i < runtime.count; i++)
        idle_wake_this(&runtime.idle, &runtime.workers[i]->parking);
    leave();
    relief_wake();
    for (uint32_t i = 0; i < runtime.count; i++)
        member_join(member_of(i));
    preempt_workers_over();
    if (worker_here() != NULL)
        member_end(worker_here());
}

static void delete_slots(uint32_t end) {
    preempt_make_no_more(); /* the maker of these looks for workers that lack some */
    store_relaxed(&runtime.count, 0);
    for (uint32_t i = 0; i < end; i++) {
        member_delete(i);
    }
}

/* The next runtime's: threads that never run again may be in the list of this one's. */
static void change_renew(void) {
    change.mutex = change.slots = (thrum_mutex_t)THRUM_MUTEX_INITIALIZER;
    change.open = false;
}

void workers_delete(void) {
    delete_slots(runtime.count);
    change_renew();
}

static int start_threads(uint32_t first) {
    int error = 0;
    for (uint32_t i = first; i < runtime.count && error == 0; i++)
        error = member_start(member_of(i));
    return error;
}

int workers_start(uint32_t count, struct thrum_unit *primary) {
    uint32_t made = 0, slots = count + (preempt_relieves() && preempt_is_armed() && count < WORKERS_MAX);
    while (made < slots && member_new(made))
        made++;
    int error = made == slots ? 0 : ENOMEM;
    if (error == 0 && slots > count)
        member_relieves(member_of(count));
    if (error == 0 && primary != NULL)
        error = become_first(runtime.workers[0], primary);
    if (error != 0) {
        delete_slots(made);
        return error;
    }
    if (primary != NULL && !member_begin(runtime.workers[0], primary)) {
        preempt_worker_unready(runtime.workers[0]);
        delete_slots(made);
        return EAGAIN;
    }
    if (primary != NULL) {
        trace_run(enter(), primary, THRUM_TRACE_BEGIN);
        leave();
    }
    runtime.running = count;
    store_release(&runtime.count, slots);
    preempt_workers_made();
    error = start_threads(primary != NULL);
    if (error != 0) {
        workers_stop();
        delete_slots(runtime.count);
        return error;
    }
    for (uint32_t i = 0; i < count; i++)
        worker_open(runtime.workers[i]);
    lock(&change.mutex); /* external threads may be asking for a worker already */
    lock(&change.slots);
    change.open = true;
    thrum_mutex_unlock(&change.slots);
    thrum_mutex_unlock(&change.mutex);
    return 0;
}

void workers_fork_child(void) {
    change_renew();
}

/* --- preemption ---------------------------------------------------------------------------------------- */

/* It may be there from an attempt that failed. NULL: no memory, or no room. */
static struct member *relief_slot(void) {
    uint32_t count = runtime.count;
    for (uint32_t i = 0; i < count; i++)
        if (worker_relieves(runtime.workers[i]) && !member_of(i)->has_thread)
            return member_of(i);
    if (count == WORKERS_MAX || !member_new(count))
        return NULL;
    member_relieves(member_of(count));
    store_release(&runtime.count, count + 1);
    return member_of(count);
}

static bool relief_is_there(void) {
    for (uint32_t i = 0; i < runtime.count; i++)
        if (worker_relieves(runtime.workers[i]) && member_of(i)->has_thread)
            return true;
    return runtime.count == WORKERS_MAX; /* it has to do without */
}

static bool add_relief(void) {
    struct member *relief = relief_slot();
    return relief != NULL && member_start(relief) == 0;
}

/* No worker is added meanwhile. */
static bool arm(void) {
    if (preempt_make_spares(runtime.count) != 0 || !(relief_is_there() || add_relief()))
        return false;
    for (uint32_t i = 0; i < runtime.count; i++)
        if (worker_relieves(runtime.workers[i]) || !worker_is_leaving(runtime.workers[i]))
            preempt_give_reserve(runtime.workers[i]);
    if (monitor_start() != 0)
        return false;
    preempt_armed();
    return true;
}

/* The next tick asks again; or the runtime ends. */
bool workers_arm(void) {
    if (thrum_mutex_try_lock(&change.slots) != 0)
        return false;
    bool armed = change.open && arm();
    thrum_mutex_unlock(&change.slots);
    return armed;
}

/* As many threads may be stuck at one time as there are (preempt/watch.h): so there is no bound of its own. */
bool workers_add_relief(void) {
    if (thrum_mutex_try_lock(&change.slots) != 0)
        return false;
    bool added = change.open && add_relief();
    thrum_mutex_unlock(&change.slots);
    return added;
}

/* --- one at a time ------------------------------------------------------------------------------------ */

/* Under the mutex as long as it is added to or taken from. It may be leaving still. */
static bool is_vacant(uint32_t slot) {
    return worker_is_leaving(runtime.workers[slot]);
}

/* A stop whose end was never waited for, though its caller had begun to. */
static bool is_unattended(uint32_t slot) {
    return is_vacant(slot) && member_of(slot)->has_thread && !worker_relieves(runtime.workers[slot]);
}

/* A stop that was not waited for to its end: at once, if that has come. */
static bool is_free(uint32_t slot) {
    struct member *member = member_of(slot);
    if (!is_vacant(slot) || worker_relieves(&member->worker))
        return false;
    /* Pairs with retire_member. */
    if (member->has_thread && load_acquire(&member->waiting) == MEMBER_HAS_LEFT)
        member_join(member);
    return !member->has_thread;
}

/* The lowest that is free, or a new one. */
static int find_slot(uint32_t *slot) {
    for (*slot = 0; *slot < runtime.count; ++*slot)
        if (is_free(*slot)) {
            worker_ready(runtime.workers[*slot]);
            return 0;
        }
    if (*slot == WORKERS_MAX)
        return EAGAIN;
    if (!member_new(*slot))
        return ENOMEM;
    store_release(&runtime.count, *slot + 1); /* pairs with all that iterate over the slots */
    return 0;
}

/* A vacant slot's timers are its next worker's. */
static void count_orphans(void) {
    bool are_left = false;
    exchange_acquire(&runtime.orphans, 0U); /* first: the one that relieves others may leave some meanwhile */
    for (uint32_t i = 0; i < runtime.count; i++)
        are_left |= is_vacant(i) && !timers_are_empty(&runtime.workers[i]->timers);
    if (!are_left)
        return;
    exchange_release(&runtime.orphans, 1U);
    fence_seq_cst(); /* pairs with fence_rare in tick_rest: a worker that comes to rest sees it, or is seen */
    enter();
    tick_wake_resting(); /* a worker may have looked in between */
    leave();
}

static int add(unsigned *number) {
    uint32_t slot;
    int error = find_slot(&slot);
    if (error != 0)
        return error;
    error = member_start(member_of(slot));
    if (error != 0) {
        enter();
        worker_close(runtime.workers[slot]);
        leave();
        return error;
    }
    worker_open(runtime.workers[slot]);
    fetch_add_relaxed(&runtime.running, 1U);
    count_orphans();
    if (number != NULL)
        *number = slot;
    return 0;
}

/* --- stopping one ------------------------------------------------------------------------------------- */

/* member->waiting: NULL -> the unit that waits, by itself; -> NULL, by the end of its wait at its deadline (both
 * cas); -> MEMBER_HAS_LEFT by the worker as its last act, which wakes the unit that it finds there. Under the mutex, so one
 * at a time. */
struct stop_wait {
    struct timed_wait timed_wait;
    struct member *member;
    bool is_given_up;
};

static bool give_up(struct timed_wait *timed_wait) {
    struct stop_wait *see = container_of(timed_wait, struct stop_wait, timed_wait);
    struct thrum_unit *self = timed_wait->unit;
    see->is_given_up = cas_acq_rel(&see->member->waiting, &self, NULL); /* pairs with retire_member */
    return see->is_given_up;
}

INSIDE static bool ask_to_leave(struct worker *worker, const struct worker *here) {
    if (!worker_ask_to_leave(worker))
        return false;
    fetch_sub_relaxed(&runtime.running, 1U);
    if (here == worker)
        worker->until_slow = 1; /* it must look at once */
    return true;
}

/* The caller waits until the worker's kernel thread has done its last; the worker may have been asked before, by a
 * caller that has given up waiting. 0, ETIMEDOUT, EBUSY: it must stay. */
static int wait_for_stop(struct member *member, uint64_t deadline) {
    struct worker *here = enter();
    struct thrum_unit *self = unit_self(here), *none = NULL;
    struct stop_wait see = {.timed_wait = {.unit = self, .give_up = give_up}, .member = member};
    int error = 0;
    see.timed_wait.timer.deadline = deadline;
    unit_await_until(self, AWAITS_WORKER, &member->worker, deadline);
    bool waits = cas_acq_rel(&member->waiting, &none, self); /* or it has left; pairs with retire_member */
    if (!worker_is_leaving(&member->worker) && !ask_to_leave(&member->worker, here)) {
        store_relaxed(&member->waiting, NULL);
        error = EBUSY;
    }
    if (waits && error == 0)
        unit_block_timed(here, &see.timed_wait);
    else
        unit_await_no_more(self);
    leave();
    return see.is_given_up ? ETIMEDOUT : error;
}

static int stop(unsigned number, uint64_t deadline) {
    if (number >= runtime.count || (is_vacant(number) && !is_unattended(number)))
        return EINVAL;
    struct member *member = member_of(number);
    if (!is_vacant(number) && (!member->has_thread || load_relaxed(&runtime.running) == 1))
        return EBUSY;
    int error = wait_for_stop(member, deadline);
    if (error == 0)
        member_join(member);
    return error;
}

/* --- the thread that calls thrum_init, late -------------------------------------------------------------- */

/* Others see a worker that runs something until that waits. */
static int adopt(struct thrum_unit *primary) {
    uint32_t slot;
    int error = find_slot(&slot);
    if (error != 0)
        return error;
    struct worker *worker = runtime.workers[slot];
    error = become_first(worker, primary);
    if (error == 0 && !member_begin(worker, primary)) {
        preempt_worker_unready(worker);
        error = EAGAIN;
    }
    if (error != 0) {
        primary->kind = UNIT_FREE;
        enter();
        worker_close(worker);
        leave();
        return error;
    }
    worker_open(worker);
    fetch_add_relaxed(&runtime.running, 1U);
    return 0;
}

/* The owner of the mutexes changes its unit meanwhile. */
int workers_adopt(struct thrum_unit *primary) {
    lock(&change.mutex);
    lock(&change.slots);
    int error = adopt(primary);
    if (error == 0) {
        store_relaxed(&mutex_of(&change.mutex)->owner, primary);
        store_relaxed(&mutex_of(&change.slots)->owner, primary);
        trace_run(enter(), primary, THRUM_TRACE_BEGIN);
        leave();
        count_orphans();
    }
    thrum_mutex_unlock(&change.slots);
    thrum_mutex_unlock(&change.mutex);
    return error;
}

int thrum_worker_add_until(unsigned *number, uint64_t deadline) {
    if (!unit_here_may_wait())
        return EPERM;
    if (thrum_mutex_lock_until(&change.mutex, deadline) != 0)
        return ETIMEDOUT;
    lock(&change.slots);
    int error = change.open ? add(number) : ESRCH;
    thrum_mutex_unlock(&change.slots);
    thrum_mutex_unlock(&change.mutex);
    return error;
}

int thrum_worker_add(unsigned *number) {
    return thrum_worker_add_until(number, TIMER_NEVER);
}

int thrum_worker_stop_until(unsigned number, uint64_t deadline) {
    if (!unit_here_may_wait())
        return EPERM;
    if (thrum_mutex_lock_until(&change.mutex, deadline) != 0)
        return EBUSY;
    int error = change.open ? stop(number, deadline) : ESRCH;
    thrum_mutex_unlock(&change.mutex);
    return error;
}

int thrum_worker_stop(unsigned number) {
    return thrum_worker_stop_until(number, TIMER_NEVER);
}

/* Waits for a change that is under way; none begins any more. */
void workers_close(void) {
    lock(&change.mutex);
    for (uint32_t i = 0; i < runtime.count; i++)
        if (is_unattended(i))
            stop(i, TIMER_NEVER);
    lock(&change.slots);
    change.open = false;
}

int thrum_worker_get_counters(unsigned number, struct thrum_worker_counters *counters) {
    if (is_null(counters))
        return EINVAL;
    if (number >= load_acquire(&runtime.count))
        return EINVAL;
    const struct worker *worker = runtime.workers[number];
    *counters = (struct thrum_worker_counters){.switches = load_relaxed(&worker->counters.switches),
                                               .steals = load_relaxed(&worker->counters.steals),
                                               .parks = load_relaxed(&worker->counters.parks),
                                               .migrations = load_relaxed(&worker->counters.migrations),
                                               .preemptions = load_relaxed(&worker->counters.preemptions),
                                               .ticks = load_relaxed(&worker->counters.ticks)};
    return 0;
}

int thrum_worker_self(void) {
    const struct worker *worker = worker_here();
    return worker != NULL && !worker_is_solo(worker) ? (int)worker->id : -1;
}
