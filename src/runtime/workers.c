// SPDX-License-Identifier: Apache-2.0
/* See workers.h. */
#include "runtime/workers.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arch_tcb.h"
#include "base/container_of.h"
#include "base/misuse.h"
#include "context/annotate.h"
#include "os/futex.h"
#include "os/loaded.h"
#include "os/memory.h"
#include "os/thread.h"
#include "preempt/monitor.h"
#include "preempt/preempt.h"
#include "runtime/overflow.h"
#include "runtime/places.h"
#include "sched/exit.h"
#include "sched/time/timed_wait.h"
#include "sched/worker.h"
#include "sync/mutex.h"
#include "thrum/sync.h"
#include "thrum/worker.h"

/* What a slot points to. Its memory begins with an alternate signal stack. */
struct member {
    struct worker worker; /* first */
    pthread_t handle;     /* if has_thread, which only the first worker may have not */
    bool has_thread;      /* or runs on carriers */
    uint32_t over;        /* futex: on carriers, 1 when it is no longer */
    uint32_t begun;       /* futex, enum begun: of its kernel thread */
    void *
        /* its kernel thread's (arch_tcb_dtv): libc's own pointer to the inside looks like a leak to Valgrind */
        dtv;
    struct thrum_unit *waiting; /* the unit that waits for its end: see wait_for_stop */
};

enum begun { NOT_YET, BEGUN, FAILED };

/* A value instead of a unit that waits for a worker. */
#define HAS_LEFT ((struct thrum_unit *)1)

static struct {
    thrum_mutex_t mutex;
    /* After mutex: new slots. Not held while waiting for a worker's end, for which a unit may have to be preempted. */
    thrum_mutex_t slots;
    bool open; /* under both: there is a runtime whose workers may be added and stopped */
} change = {.mutex = THRUM_MUTEX_INITIALIZER, .slots = THRUM_MUTEX_INITIALIZER};

/* --- memory ------------------------------------------------------------------------------------------- */

static size_t member_bytes(void) {
    return overflow_stack_bytes() + ((sizeof(struct member) + 4095) & ~(size_t)4095);
}

static char *memory_of(struct worker *worker) {
    return (char *)worker - overflow_stack_bytes();
}

static struct member *member_of(uint32_t slot) {
    return (struct member *)(void *)runtime.workers[slot];
}

/* In the slot behind the last, which does not count yet. */
static bool member_new(uint32_t slot) {
    char *memory = memory_map(member_bytes(), 0);
    if (memory == NULL)
        return false;
    struct member *member = (struct member *)(void *)(memory + overflow_stack_bytes());
    if (worker_init(&member->worker, slot) != 0) {
        munmap(memory, member_bytes());
        return false;
    }
    runtime.workers[slot] = &member->worker;
    return true;
}

/* --- kernel threads ----------------------------------------------------------------------------------- */

/* Of the C++ runtime, if the program has one. It leads to thread-locals of the caller. */
struct exception_globals *__cxa_get_globals(void) __attribute__((weak));

/* The same; r/o while there are workers, of which all have such, or none. */
static struct exception_globals *(*exceptions_here)(void);

/* A C program may have loaded it with a plugin. */
struct exception_globals *(*workers_exceptions(void))(void) {
    static const char *const names[] = {"libstdc++.so.6", "libc++abi.so.1"};
    if (exceptions_here == NULL)
        exceptions_here = __cxa_get_globals;
    for (unsigned i = 0; i < sizeof names / sizeof *names && exceptions_here == NULL; i++)
        *(void **)&exceptions_here = loaded_symbol(names[i], "__cxa_get_globals");
    return exceptions_here;
}

static void thread_end(struct worker *worker) {
    places_leave();
    overflow_thread_end(memory_of(worker));
    annotate_thread_end(&worker->annotate);
    exit_watch(false);
    ARCH_TLS_STORE(thrum_worker, NULL);
}

/* By the kernel thread that is this worker, before it runs anything; thread_end is for its end. False: it cannot be. */
static bool thread_begin(struct worker *worker, struct thrum_unit *primary) {
    if (exceptions_here != NULL)
        worker->exceptions = exceptions_here();
    worker->tid = gettid();
    ARCH_TLS_STORE(thrum_worker, worker);
    exit_watch(true);
    annotate_thread_begin(&worker->annotate);
    overflow_thread_begin(memory_of(worker));
    places_enter(worker->id);
    if (preempt_worker_begin(worker, primary))
        return true;
    thread_end(worker);
    return false;
}

static bool tell_begun(struct member *member, bool succeeded) {
    store_release(&member->begun, succeeded ? BEGUN : FAILED);
    futex_wake(&member->begun, 1);
    return succeeded;
}

static void run_loop(struct worker *worker) {
    if (worker_relieves(worker))
        relief_loop(worker);
    else
        worker_loop(worker);
}

/* The worker, which was asked to leave, waits for nothing any more. Returns the unit that waits for it, or NULL. */
static struct thrum_unit *retire_member(struct member *member) {
    return exchange_acq_rel(&member->waiting, HAS_LEFT);
}

static void wake_waiter(struct thrum_unit *waiting) {
    if (waiting != NULL)
        unit_wake(NULL, waiting);
}

/* From the wake-up on the slot may be another worker's. */
static void *worker_thread(void *arg) {
    struct member *member = arg;
    if (!tell_begun(member, thread_begin(&member->worker, NULL)))
        return NULL;
    run_loop(&member->worker);
    bool leaves = worker_is_leaving(&member->worker) && !worker_relieves(&member->worker);
    enter();
    if (leaves)
        worker_hand_over(&member->worker);
    preempt_worker_end(&member->worker);
    thread_end(&member->worker);
    if (leaves)
        wake_waiter(retire_member(member));
    leave();
    return NULL;
}

/* The same on carriers; its loop has a stack of its own there. */
static void *carried_loop(void *arg) {
    struct worker *worker = arg;
    run_loop(worker);
    enter();
    if (worker_is_leaving(worker))
        worker_hand_over(worker);
    preempt_worker_stop(worker);
}

void workers_is_over(struct worker *worker) {
    struct member *member = (struct member *)(void *)worker;
    struct thrum_unit *waiting =
        worker_is_leaving(worker) && !worker_relieves(worker) ? retire_member(member) : NULL;
    wake_waiter(waiting); /* first: it reads other workers, which may be gone as soon as all are over */
    store_release(&member->over, 1); /* from here on this one may be */
    futex_wake(&member->over, 1);
}

static bool make_loop(struct worker *worker, void *(*fn)(void *)) {
    worker->base.fn = fn;
    worker->base.arg = worker;
    worker->base.stack_class = STACK_CLASS_DEFAULT;
    worker->base.float_control = arch_float_control();
    store_relaxed(&worker->base.sp, UNIT_NEW);
    if (worker->base.stack_top == NULL)
        worker->base.stack_top =
            depot_get(&stack_depots[STACK_CLASS_DEFAULT], &worker->stacks[STACK_CLASS_DEFAULT]);
    if (worker->base.stack_top == NULL)
        return false; /* it must not be queued, as others are */
    return unit_make_frame(worker, &worker->base);
}

static int start_carried(struct member *member) {
    enter();
    bool made = make_loop(&member->worker, carried_loop);
    leave();
    if (!made)
        return ENOMEM;
    store_relaxed(&member->over, 0);
    preempt_worker_start(&member->worker);
    return 0;
}

/* By the creator: the process may end before the thread has run at all. A block is as far from its thread's handle as the
 * caller's is. */
static void *dtv_of(pthread_t handle) {
    return arch_tcb_dtv((uintptr_t)handle + (arch_tcb() - (uintptr_t)pthread_self()));
}

/* What it needs for ticks it can only get on its kernel thread. */
static int start_thread(struct member *member) {
    store_relaxed(&member->begun, NOT_YET);
    int error = thread_make_quiet(&member->handle, 0, worker_thread, member);
    if (error == 0)
        member->dtv = dtv_of(member->handle);
    while (error == 0 && ticks_are_possible && load_acquire(&member->begun) == NOT_YET)
        futex_wait(&member->begun, NOT_YET);
    if (error == 0 && load_acquire(&member->begun) == FAILED) {
        pthread_join(member->handle, NULL);
        error = EAGAIN;
    }
    return error;
}

static int thread_new(struct member *member) {
    int error = EAGAIN;
    store_relaxed(&member->waiting, NULL);
    if (preempt_worker_ready(&member->worker))
        error = carriers_are_used ? start_carried(member) : start_thread(member);
    if (error != 0)
        preempt_worker_unready(&member->worker);
    member->has_thread = error == 0;
    return error;
}

static void thread_join(struct member *member) {
    while (member->has_thread && carriers_are_used && load_acquire(&member->over) == 0)
        futex_wait(&member->over, 0);
    if (member->has_thread && !carriers_are_used)
        pthread_join(member->handle, NULL);
    member->has_thread = false;
}

/* --- all at once -------------------------------------------------------------------------------------- */

static void *first_loop(void *worker) {
    worker_loop(worker);
    return NULL;
}

/* What runs on the caller continues as `primary`; the loop gets a stack of its own. */
static int become_first(struct worker *worker, struct thrum_unit *primary) {
    if (!make_loop(worker, first_loop))
        return ENOMEM;
    if (!preempt_worker_ready(worker)) {
        preempt_worker_unready(worker);
        return EAGAIN;
    }
    *primary = (struct thrum_unit){.kind = UNIT_BOUND, .bound = worker, .escaped = true, .is_primary = true};
    worker->current = primary;
    return 0;
}

/* The caller has no more ticks from here on: one would take it to its loop, which ends. */
void workers_stop(void) {
    if (worker_here() != NULL)
        preempt_worker_end(worker_here());
    store_release(&runtime.stopping, 1);
    for (uint32_t i = 0; i < runtime.count; i++)
        idle_wake_this(&runtime.idle, &runtime.workers[i]->parking);
    relief_wake();
    for (uint32_t i = 0; i < runtime.count; i++)
        thread_join(member_of(i));
    preempt_workers_over();
    if (worker_here() != NULL)
        thread_end(worker_here());
}

static void delete_slots(uint32_t end) {
    preempt_make_no_more(); /* the maker of these looks for workers that lack some */
    store_relaxed(&runtime.count, 0);
    for (uint32_t i = 0; i < end; i++) {
        worker_destroy(runtime.workers[i]);
        munmap(memory_of(runtime.workers[i]), member_bytes());
        runtime.workers[i] = NULL;
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
        error = thread_new(member_of(i));
    return error;
}

/* Nothing is bound to it, and it is never stopped. */
static void make_relief(struct member *member) {
    store_release(&member->worker.stay, WORKER_RELIEVES);
}

int workers_start(uint32_t count, struct thrum_unit *primary) {
    uint32_t made = 0, slots = count + (preempt_relieves() && preempt_is_armed() && count < WORKERS_MAX);
    while (made < slots && member_new(made))
        made++;
    int error = made == slots ? 0 : ENOMEM;
    if (error == 0 && slots > count)
        make_relief(member_of(count));
    if (error == 0 && primary != NULL)
        error = become_first(runtime.workers[0], primary);
    if (error != 0) {
        delete_slots(made);
        return error;
    }
    if (primary != NULL && !thread_begin(runtime.workers[0], primary)) {
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
    thrum_mutex_lock(&change.mutex); /* external threads may be asking for a worker already */
    thrum_mutex_lock(&change.slots);
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
    make_relief(member_of(count));
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
    return relief != NULL && thread_new(relief) == 0;
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
    if (member->has_thread && load_acquire(&member->waiting) == HAS_LEFT)
        thread_join(member);
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
    store_release(&runtime.orphans, 1);
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
    error = thread_new(member_of(slot));
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
 * cas); -> HAS_LEFT by the worker as its last act, which wakes the unit that it finds there. Under the mutex, so one
 * at a time. */
struct stop_wait {
    struct timed_wait timed_wait;
    struct member *member;
    bool is_given_up;
};

static bool give_up(struct timed_wait *timed_wait) {
    struct stop_wait *see = container_of(timed_wait, struct stop_wait, timed_wait);
    struct thrum_unit *self = timed_wait->unit;
    see->is_given_up = cas_acq_rel(&see->member->waiting, &self, NULL);
    return see->is_given_up;
}

static bool ask_to_leave(struct worker *worker, const struct worker *here) {
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
    bool waits = cas_acq_rel(&member->waiting, &none, self); /* or it has left */
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
        thread_join(member);
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
    if (error == 0 && !thread_begin(worker, primary)) {
        preempt_worker_unready(worker);
        error = EAGAIN;
    }
    if (error != 0) {
        primary->kind = UNIT_FREE;
        worker_close(worker);
        return error;
    }
    worker_open(worker);
    fetch_add_relaxed(&runtime.running, 1U);
    return 0;
}

/* The owner of the mutexes changes its unit meanwhile. */
int workers_adopt(struct thrum_unit *primary) {
    thrum_mutex_lock(&change.mutex);
    thrum_mutex_lock(&change.slots);
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

int thrum_worker_add(unsigned *number) {
    if (!unit_here_may_wait())
        return EPERM;
    thrum_mutex_lock(&change.mutex);
    thrum_mutex_lock(&change.slots);
    int error = change.open ? add(number) : ESRCH;
    thrum_mutex_unlock(&change.slots);
    thrum_mutex_unlock(&change.mutex);
    return error;
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
    thrum_mutex_lock(&change.mutex);
    for (uint32_t i = 0; i < runtime.count; i++)
        if (is_unattended(i))
            stop(i, TIMER_NEVER);
    thrum_mutex_lock(&change.slots);
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
    return worker != NULL ? (int)worker->id : -1;
}
