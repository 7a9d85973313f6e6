// SPDX-License-Identifier: Apache-2.0
/* See scheduler.h. */
#include "sched/scheduler.h"

#include <errno.h>

#include "base/assert.h"
#include "base/slab.h"
#include "os/membarrier.h"
#include "sched/attributes.h"
#include "sched/own.h"
#include "sched/pool.h"
#include "sched/preempted.h"
#include "sched/worker.h"

static struct {
    struct lock lock;
    struct slab slab; /* under lock */
} memory = {.slab = SLAB_INIT(struct thrum_sched)};

static uint32_t runtimes = 1;   /* that there have been, and the one that is or will be */
static uint32_t externals_look; /* likewise struct worker's `looks` */

/* --- the library's own -------------------------------------------------------------------------------- */

static bool run_from(struct thrum_pool *pool) {
    struct thrum_unit *unit = thrum_pool_pop(pool);
    if (unit == NULL)
        return false;
    thrum_run(unit);
    return true;
}

/* From pool `first` on, in a circle. Returns the pool that had something, or `count`. */
static unsigned run_one(struct thrum_sched *sched, unsigned first) {
    for (unsigned i = 0; i < sched->count; i++) {
        unsigned at = (first + i) % sched->count;
        if (run_from(sched->pools[at]))
            return at;
    }
    return sched->count;
}

static void run_first(struct thrum_sched *sched, void *unused) {
    (void)unused;
    while (!thrum_sched_stopping(sched))
        if (run_one(sched, 0) == sched->count)
            thrum_sched_idle(sched);
}

static void run_round_robin(struct thrum_sched *sched, void *unused) {
    (void)unused;
    for (unsigned next = 0; !thrum_sched_stopping(sched);) {
        unsigned at = run_one(sched, next);
        if (at == sched->count)
            thrum_sched_idle(sched);
        else
            next = at + 1;
    }
}

static void run_exhaust(struct thrum_sched *sched, void *unused) {
    (void)unused;
    for (unsigned at = 0; !thrum_sched_stopping(sched);) {
        unsigned found = run_one(sched, at);
        if (found == sched->count)
            thrum_sched_idle(sched);
        else
            at = found;
    }
}

/* Below `limit`, or 0. */
static unsigned draw(struct thrum_sched *sched, unsigned limit) {
    sched->random = sched->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return limit > 0 ? (unsigned)(sched->random >> 33) % limit : 0;
}

/* The circle begins at one of the others: with the first among those that are drawn, the second would be next twice as
 * often as they. */
static void run_random(struct thrum_sched *sched, void *unused) {
    (void)unused;
    while (!thrum_sched_stopping(sched)) {
        if (run_from(sched->pools[0]))
            continue;
        if (run_one(sched, 1 + draw(sched, sched->count - 1)) == sched->count)
            thrum_sched_idle(sched);
    }
}

/* Of what is its own, the highest level first. */
static bool run_own(struct thrum_sched *sched) {
    for (unsigned level = 0; level < sched->levels; level++)
        if (run_from(sched->pools[level]))
            return true;
    return false;
}

static unsigned others_of(unsigned count, unsigned levels) {
    return count / levels - 1;
}

/* The oldest of the highest level that one of the others has something in; they are asked in a circle. */
static bool run_stolen(struct thrum_sched *sched) {
    unsigned others = others_of(sched->count, sched->levels), first = draw(sched, others);
    for (unsigned i = 0; i < sched->levels * others; i++) {
        unsigned level = i / others, other = (first + i) % others;
        struct thrum_unit *unit = thrum_pool_steal(sched->pools[sched->levels + level * others + other]);
        if (unit != NULL) {
            thrum_run(unit);
            return true;
        }
    }
    return false;
}

static void run_stealing(struct thrum_sched *sched, void *unused) {
    (void)unused;
    while (!thrum_sched_stopping(sched))
        if (!run_own(sched) && !run_stolen(sched))
            thrum_sched_idle(sched);
}

/* --- life --------------------------------------------------------------------------------------------- */

int thrum_sched_create_user(thrum_sched_t *result, void (*run)(thrum_sched_t sched, void *data), void *data,
                            const thrum_pool_t *pools, unsigned count) {
    if (run == NULL || count == 0 || count > SCHED_POOLS)
        return EINVAL;
    enter();
    lock_acquire(&memory.lock);
    struct thrum_sched *sched = slab_alloc_locked(&memory.slab);
    lock_release(&memory.lock);
    leave();
    if (sched == NULL)
        return ENOMEM;
    sched->run = run;
    sched->may_hold = true;
    sched->data = data;
    sched->count = count;
    sched->random = (uintptr_t)sched;
    for (unsigned i = 0; i < count; i++) {
        sched->pools[i] = pools[i];
        fetch_add_relaxed(&pools[i]->scheds, 1U);
    }
    *result = sched;
    return 0;
}

static int create(thrum_sched_t *result, void (*run)(thrum_sched_t sched, void *data),
                  const thrum_pool_t *pools, unsigned count, unsigned levels) {
    int error = thrum_sched_create_user(result, run, NULL, pools, count);
    if (error == 0) {
        (*result)->levels = levels;
        (*result)->may_hold = false;
    }
    return error;
}

int thrum_sched_create(thrum_sched_t *sched, enum thrum_sched_kind kind, const thrum_pool_t *pools,
                       unsigned count) {
    static void (*const runs[])(thrum_sched_t, void *) = {
        [THRUM_SCHED_FIRST] = run_first,
        [THRUM_SCHED_ROUND_ROBIN] = run_round_robin,
        [THRUM_SCHED_EXHAUST] = run_exhaust,
        [THRUM_SCHED_RANDOM] = run_random,
    };
    if ((unsigned)kind >= sizeof runs / sizeof *runs)
        return EINVAL;
    return create(sched, runs[kind], pools, count, 0);
}

/* Its own pools go to the front, then the others' by levels. */
int thrum_sched_create_stealing(thrum_sched_t *result, const thrum_pool_t *pools, unsigned queues,
                                unsigned levels, unsigned own) {
    if (levels == 0 || own >= queues || queues > SCHED_POOLS / levels)
        return EINVAL;
    thrum_pool_t in_order[SCHED_POOLS];
    unsigned count = 0;
    for (unsigned level = 0; level < levels; level++)
        in_order[count++] = pools[own * levels + level];
    for (unsigned level = 0; level < levels; level++)
        for (unsigned queue = 0; queue < queues; queue++)
            if (queue != own)
                in_order[count++] = pools[queue * levels + level];
    return create(result, run_stealing, in_order, count, levels);
}

int thrum_sched_destroy(thrum_sched_t sched) {
    if (load_acquire(&sched->used) == load_acquire(&runtimes))
        return EBUSY;
    for (unsigned i = 0; i < sched->count; i++)
        fetch_sub_release(&sched->pools[i]->scheds, 1U);
    enter();
    lock_acquire(&memory.lock);
    slab_free_locked(&memory.slab, sched);
    lock_release(&memory.lock);
    leave();
    return 0;
}

/* Ticks have to be as frequent as that, from when it is run. */
int thrum_sched_set_slice(thrum_sched_t sched, unsigned slice) {
    if (slice != 0 && (slice < THRUM_SLICE_MIN || slice > THRUM_SLICE_MAX))
        return EINVAL;
    store_relaxed(&sched->slice, slice);
    tick_can_preempt(THRUM_PREEMPT_DEFAULT, slice);
    return 0;
}

/* Who had it in an earlier runtime is gone. */
static bool claim(struct thrum_sched *sched) {
    uint32_t runtime = load_acquire(&runtimes), used = load_relaxed(&sched->used);
    if (used == runtime || !cas_acq_rel(&sched->used, &used, runtime))
        return false;
    store_relaxed(&sched->stopping, 0);
    return true;
}

static void release(struct thrum_sched *sched) {
    store_release(&sched->used, 0);
}

void scheduler_forget(void) {
    store_release(&runtimes, runtimes + 1);
}

/* What is in its pools is for others to look at. Inside. */
static void pass_on(const struct thrum_sched *sched) {
    for (unsigned i = 0; i < sched->count; i++)
        if (!pool_is_empty(sched->pools[i]))
            scheduler_wake_for(sched->pools[i]);
}

static void pass_on_the_rest(struct worker *worker) {
    if (__builtin_expect(worker->woken_for == NULL, 1))
        return;
    pass_on(worker->woken_for);
    worker->woken_for = NULL;
}

/* --- what scheduler functions call -------------------------------------------------------------------- */

thrum_pool_t thrum_sched_pool(thrum_sched_t sched, unsigned i) {
    return i < sched->count ? sched->pools[i] : NULL;
}

bool thrum_sched_stopping(thrum_sched_t sched) {
    const struct worker *worker = enter();
    bool stopping = load_acquire(&sched->stopping) || load_acquire(&scheduler.stopping) ||
                    (worker->sched == sched && load_acquire(&worker->wanted_sched) != sched);
    leave();
    return stopping;
}

static bool is_stacked(const struct worker *worker) {
    return worker->current != &worker->base;
}

/* What is chosen under a scheduler comes back to it: pick() gives nothing meanwhile. The worker may have come to rest where
 * its function was alone: of what that has in hand, and of the pools of one that is stacked, a tick knows nothing. */
static void run(struct worker *worker, struct thrum_unit *unit, bool in_order) {
    bool obeyed = worker->obeys;
    worker->obeys = true;
    worker->in_order = in_order && ticks_are_possible;
    worker->until_slow = 1;
    if (load_relaxed(&worker->tick.state) == TICK_REST)
        tick_go_on(worker);
    worker_run(worker, unit);
    worker = worker_here();
    worker->obeys = obeyed;
    worker->in_order = false;
}

/* Who waits in the kernel for a lock may come before who has it, in the order of the scheduler, time and again. */
static void run_who_has_a_lock(struct worker *worker) {
    worker->tick.waited = false;
    struct thrum_unit *unit = preempted_take(worker, worker, scheduler_of_loop(worker));
    if (unit != NULL)
        run(worker, unit, false); /* those that want the lock may go before */
}

/* One after another, with none in hand meanwhile: who runs might wait for a lock that the other has. */
void thrum_run(thrum_t unit) {
    struct worker *worker = enter();
    pass_on_the_rest(worker);
    run(worker, unit, true);
    struct thrum_unit *bound = fifo_pop(&worker_here()->inbox); /* they run nowhere else */
    if (bound != NULL)
        run(worker_here(), bound, false);
    if (__builtin_expect(worker_here()->tick.waited, 0))
        run_who_has_a_lock(worker_here());
    bool give_way = is_stacked(worker_here()); /* now and then */
    leave();
    if (give_way)
        thrum_yield();
}

/* One that is stacked could be preempted: not while its worker searches, or is parked. */
void thrum_sched_idle(thrum_sched_t sched) {
    struct worker *worker = enter();
    struct thrum_unit *unit = worker_search(worker, sched);
    bool give_way = unit == NULL && is_stacked(worker); /* the worker may have been called away */
    if (unit != NULL || give_way || thrum_sched_stopping(sched))
        pass_on(sched);
    else
        worker->woken_for = sched; /* it is about to take one: after that */
    if (unit != NULL)
        run(worker, unit, true);
    worker_wants_ticks(worker_here());
    leave();
    if (give_way)
        thrum_yield();
}

/* --- workers ------------------------------------------------------------------------------------------ */

bool scheduler_has_work(const struct thrum_sched *sched) {
    for (unsigned i = 0; i < sched->count; i++)
        if (!pool_is_empty(sched->pools[i]))
            return true;
    return false;
}

uint64_t scheduler_wait_until(const struct thrum_sched *sched) {
    uint64_t until = TIMER_NEVER;
    for (unsigned i = 0; i < sched->count; i++) {
        const struct thrum_pool *pool = sched->pools[i];
        uint64_t moment = pool->ops.wait != NULL ? pool->ops.wait(pool->data) : TIMER_NEVER;
        until = moment < until ? moment : until;
    }
    return until;
}

static bool looks_at(const struct thrum_sched *sched, const struct thrum_pool *pool) {
    for (unsigned i = 0; sched != NULL && i < sched->count; i++)
        if (sched->pools[i] == pool)
            return true;
    return false;
}

/* (1) and (2) of idle.h, with all workers that look at this pool in the place of the count. */
bool scheduler_wake_for(const struct thrum_pool *pool) {
    bool somebody_looks = false;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (load_relaxed(&scheduler.idle.resting) != 0)
        tick_wake_resting();
    if (load_relaxed(&scheduler.idle.count) == 0)
        return false;
    for (uint32_t i = 0; i < load_acquire(&scheduler.count); i++) {
        struct worker *worker = scheduler.workers[i];
        if (!looks_at(load_acquire(&worker->idle_sched), pool))
            continue;
        if (idle_wake_this(&scheduler.idle, &worker->parking))
            return true;
        somebody_looks = true;
    }
    return somebody_looks;
}

/* --- interrupting ------------------------------------------------------------------------------------- */

enum { RUNS_BEFORE_ALL = 0, FIRST_OF_ALL = 1, COMES_AFTER_ALL = SCHED_POOLS * (THRUM_PRIORITY_MAX + 1) + 1 };

/* How many steps of the scheduler's order are before its pool `i`, as far as that is known. It may be becoming another
 * meanwhile. */
static unsigned steps_before(const struct thrum_sched *sched, unsigned i) {
    unsigned levels = load_relaxed(&sched->levels), count = load_relaxed(&sched->count);
    if (sched->run == run_first || i < levels)
        return i;
    unsigned others = levels > 0 ? others_of(count, levels) : 0;
    return others > 0 ? levels + (i - levels) / others : 0;
}

/* The place of a unit of this priority in this pool in the scheduler's order, as far as that is known: by pools, if it
 * takes from the first that has something, and by priority within one that ranks. */
static unsigned place_of(const struct thrum_sched *sched, const struct thrum_pool *pool, unsigned priority) {
    for (unsigned i = 0; i < sched->count; i++)
        if (sched->pools[i] == pool) {
            unsigned before = steps_before(sched, i);
            return before * (THRUM_PRIORITY_MAX + 1) + (pool->ranks ? THRUM_PRIORITY_MAX - priority : 0) + 1;
        }
    return COMES_AFTER_ALL;
}

/* Of what the worker runs. What is from no pool came as there was nothing in the pools; who is bound there runs nowhere
 * else, and a loop or a tasklet is not interrupted. What is looked at may be out of date. */
static unsigned place_of_present(const struct worker *worker, const struct thrum_sched *sched) {
    const struct thrum_unit *unit = load_relaxed(&worker->current);
    if (unit == NULL)
        return RUNS_BEFORE_ALL; /* it has just ended */
    switch ((enum unit_kind)load_relaxed(&unit->kind)) {
    case UNIT_ULT: return COMES_AFTER_ALL;
    case UNIT_POOLED: return place_of(sched, load_relaxed(&unit->pool), unit->priority);
    default: return RUNS_BEFORE_ALL;
    }
}

/* So that a unit that it reads stays where it is, though it may have ended: (1) who looks says so, (2) it reads who runs;
 * who would unmap units (1) sees that nobody looks, (2) takes of those that have lain idle, current nowhere (a worker forgets
 * its own before its end is known), since long before. As for parking (idle.h) the rare side's fence makes up for the frequent
 * one's. External kernel threads have a count. */
static void look_begin(struct worker *self) {
    if (self != NULL)
        store_relaxed(&self->looks, 1);
    else
        fetch_add_seq_cst(&externals_look, 1U);
    if (scheduler.fenced)
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    else
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static void look_end(struct worker *self) {
    if (self != NULL)
        store_release(&self->looks, 0);
    else
        fetch_sub_release(&externals_look, 1U);
}

bool scheduler_units_are_read(void) {
    if (scheduler.fenced)
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    else
        membarrier_expedited();
    bool are_read = load_acquire(&externals_look) != 0;
    for (uint32_t i = 0; i < load_acquire(&scheduler.count) && !are_read; i++)
        are_read = load_acquire(&scheduler.workers[i]->looks) != 0;
    return are_read;
}

static struct worker *whom_to_interrupt(const struct thrum_pool *pool, unsigned priority) {
    struct worker *last = NULL;
    unsigned place_of_last = RUNS_BEFORE_ALL;
    for (uint32_t i = 0; i < load_acquire(&scheduler.count); i++) {
        struct worker *worker = scheduler.workers[i];
        const struct thrum_sched *sched = load_relaxed(&worker->sched);
        if (!looks_at(sched, pool))
            continue;
        unsigned present = place_of_present(worker, sched);
        if (present > place_of(sched, pool, priority) && present > place_of_last) {
            last = worker;
            place_of_last = present;
        }
    }
    return last;
}

void scheduler_interrupt_for(const struct thrum_pool *pool, unsigned priority) {
    struct worker *self = worker_here();
    look_begin(self);
    struct worker *last = whom_to_interrupt(pool, priority);
    look_end(self);
    if (last != NULL)
        tick_interrupt(last);
}

/* Only what the scheduler would take first indeed, or whom it chooses then would be interrupted time and again: of other pools
 * where it goes by their order, and of kinds of which it is known that what is there can be taken. */
static bool has_before(const struct thrum_sched *sched, const struct thrum_pool *own, unsigned place) {
    bool in_order = sched->run == run_first || load_relaxed(&sched->levels) > 0;
    for (unsigned i = 0; i < sched->count; i++) {
        const struct thrum_pool *pool = sched->pools[i];
        if (pool->is_ours && (in_order || pool == own) && !pool_is_empty(pool) &&
            place_of(sched, pool, pool->ranks ? pool_priority_highest(pool) : 0) < place)
            return true;
    }
    return false;
}

/* Who pushes while the loop chooses finds nobody whom to interrupt, or who ran before. So (1) the worker says whom it has chosen,
 * and (2) looks at the pools once more; who pushes does so and (2) looks whom it runs. With a fence between each, one of them
 * sees the other. Modelled in tests/model/choose.pml. */
void scheduler_look_back(struct worker *worker, struct thrum_unit *chosen) {
    const struct thrum_sched *sched = worker->sched;
    store_relaxed(&worker->current, chosen);
    unsigned place = sched != NULL ? place_of_present(worker, sched) : 0;
    if (place <= FIRST_OF_ALL)
        return;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (has_before(sched, load_relaxed(&chosen->pool), place))
        tick_interrupt(worker);
}

/* A scheduler that is wanted but not run yet is let go by who wants another, one that runs by the worker. If it is still
 * wanted when its function returns it was stopped, or the runtime stops. */
void scheduler_run(struct worker *worker) {
    enter();
    lock_acquire(&worker->sched_lock);
    struct thrum_sched *sched = worker->wanted_sched;
    store_relaxed(&worker->sched, sched);
    lock_release(&worker->sched_lock);
    leave();
    if (sched == NULL)
        return;
    worker->obeys = true;
    worker->until_slow = 1;
    worker->tick.waited = false;
    tick_can_preempt(THRUM_PREEMPT_DEFAULT, load_relaxed(&sched->slice));
    enter();
    tick_go_on(worker); /* the one before may have left it at rest */
    worker_wants_ticks(worker);
    leave();
    sched->run(sched, sched->data);
    enter();
    worker->obeys = false;
    pass_on_the_rest(worker);
    lock_acquire(&worker->sched_lock);
    store_relaxed(&worker->sched, NULL);
    if (worker->wanted_sched == sched)
        store_release(&worker->wanted_sched, NULL);
    release(sched);
    lock_release(&worker->sched_lock);
    leave();
}

void scheduler_want_locked(struct worker *worker, struct thrum_sched *sched) {
    struct thrum_sched *before = worker->wanted_sched;
    store_release(&worker->wanted_sched, sched);
    if (before != NULL && before != worker->sched)
        release(before);
}

int thrum_worker_set_sched(unsigned number, thrum_sched_t sched) {
    if (number >= load_acquire(&scheduler.count))
        return EINVAL;
    if (sched != NULL && !claim(sched))
        return EBUSY;
    struct worker *worker = scheduler.workers[number];
    enter();
    lock_acquire(&worker->sched_lock);
    bool leaves = worker_is_leaving(worker);
    if (!leaves)
        scheduler_want_locked(worker, sched);
    else if (sched != NULL)
        release(sched);
    lock_release(&worker->sched_lock);
    idle_wake_this(&scheduler.idle, &worker->parking);
    leave();
    return leaves ? EINVAL : 0;
}

/* --- stacked ------------------------------------------------------------------------------------------ */

static void let_go(void *sched) {
    release(sched);
}

/* Those that it runs have it from their loop (preempt/handler.c). */
static void take_slice(const struct thrum_sched *sched) {
    uint32_t slice = load_relaxed(&sched->slice);
    struct thrum_unit *self = enter()->current;
    if (slice != 0 && self->slice == 0) {
        self->slice = slice;
        store_relaxed(&self->extras, true);
    }
    leave();
    tick_can_preempt(THRUM_PREEMPT_DEFAULT, slice);
}

/* Its function may also leave by thrum_exit, or be cancelled. */
static void *run_stacked(void *arg) {
    struct thrum_sched *sched = arg;
    take_slice(sched);
    thrum_cleanup_push(let_go, sched);
    sched->run(sched, sched->data);
    thrum_cleanup_pop(true);
    return NULL;
}

int thrum_sched_spawn(thrum_t *thread, const thrum_attr_t *attr, thrum_sched_t sched) {
    if (attr != NULL && attributes_of(attr)->flags & THRUM_SPAWN_TASKLET)
        return EINVAL;
    if (!claim(sched))
        return EBUSY;
    int error = thrum_spawn(thread, attr, run_stacked, sched);
    if (error != 0)
        release(sched);
    return error;
}

const struct thrum_sched *scheduler_of_loop(const struct worker *worker) {
    if (!is_stacked(worker))
        return worker->sched;
    return worker->current->fn == run_stacked ? own_argument(worker->current) : NULL;
}

/* It may be parked in thrum_sched_idle: (1) and (2) of idle.h with `stopping` in the place of the push. */
void thrum_sched_stop(thrum_sched_t sched) {
    store_release(&sched->stopping, 1);
    enter();
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (uint32_t i = 0; i < load_acquire(&scheduler.count); i++) {
        struct worker *worker = scheduler.workers[i];
        if (load_acquire(&worker->idle_sched) == sched)
            idle_wake_this(&scheduler.idle, &worker->parking);
    }
    leave();
}

void scheduler_fork_child(void) {
    scheduler_forget();
    externals_look = 0;
    lock_reset(&memory.lock);
    memory.slab.free = NULL;
}
