// SPDX-License-Identifier: Apache-2.0
/* The layer that makes Argobots' interface (abt.h) of libthrum: its structures, and what its files call of each other.
 *
 * A thread of Argobots is a descriptor of the layer (struct abt_thread), which waits in pools of the layer. It gets a unit of
 * the core, with a stack, when it first runs, and loses it when it ends. Each execution stream is a worker with one thread
 * bound to it, the *main* thread, in which the main scheduler's function runs. That thread is the *host* (sched/front.h) of
 * what it runs; so is any other thread that runs others (a scheduler in a pool, ABT_self_schedule). A guest that leaves tells
 * its host why in host->left and switches to it. The host then pushes the guest back into a pool, marks it blocked, or frees what
 * is left of it: the guest is off its stack.
 *
 * If the host runs one of the library's schedulers (host->picks), its guests do all that in its place, and switch to the next
 * one themselves (direct.c). They switch to the host for what it alone can do, and each `turns` times, so that it sees to the
 * rest.
 *
 * A tasklet has no unit: it runs on its host's stack and is host->tasklet meanwhile. If it waits, its host waits.
 *
 * States of a thread (state):
 *   READY -> RUNNING             its host, before it runs it
 *   RUNNING -> READY             its host, after it has yielded; itself, in its host's place
 *   RUNNING -> BLOCKED           itself, before a waker can find it (wait.c); its host, after it has suspended itself
 *   BLOCKED -> READY             its waker, which pushes it
 *   RUNNING, READY -> TERMINATED its host, or itself in its host's place; then the joiner is woken by an exchange of `joiner` */
#ifndef ABT_LAYER_H
#define ABT_LAYER_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abt.h"
#include "base/atomic.h"
#include "base/inside.h"
#include "sched/front.h"

#define ABT_EXPORT __attribute__((visibility("default")))

struct abt_key_value;
struct abt_pool;
struct abt_sched;
struct abt_stream;
struct abt_waiter;

/* A null handle of any kind, or NULL, names nothing. */
static inline bool abt_is_null(const void *handle) {
    return __builtin_expect((uintptr_t)handle < 64, 0);
}

/* Returns from the caller unless the handle may be one. */
#define ABT_CHECK_HANDLE(handle, error)                                                                      \
    do {                                                                                                     \
        if (abt_is_null(handle))                                                                             \
            return (error);                                                                                  \
    } while (0)
#define ABT_CHECK(condition, error)                                                                          \
    do {                                                                                                     \
        if (__builtin_expect(!(condition), 0))                                                               \
            return (error);                                                                                  \
    } while (0)

/* Held for a few instructions, in a region, so its holder cannot be preempted. Its release is a store, where that of the core's
 * lock, under which waiters sleep, is a read-modify-write. Waiters do not sleep here, but wait longer and longer. 0: free. */
struct abt_spin {
    uint32_t is_held;
};

static inline void abt_spin_acquire(struct abt_spin *lock) {
    /* Pairs with abt_spin_release. */
    for (unsigned tries = 0; __builtin_expect(exchange_acquire(&lock->is_held, 1) != 0, 0);)
        do
            front_back_off(tries++);
        while (load_relaxed(&lock->is_held) != 0);
}
static inline void abt_spin_release(struct abt_spin *lock) {
    store_release(&lock->is_held, 0); /* pairs with abt_spin_acquire */
}

ENTERS static inline void abt_lock(struct abt_spin *lock) {
    enter();
    abt_spin_acquire(lock);
}
LEAVES static inline void abt_unlock(struct abt_spin *lock) {
    abt_spin_release(lock);
    leave();
}

/* --- threads ---------------------------------------------------------------------------------------- */

enum abt_kind { ABT_KIND_THREAD, ABT_KIND_TASKLET, ABT_KIND_MAIN };

enum abt_flags {
    ABT_FLAG_NAMED = 1,
    ABT_FLAG_MIGRATABLE = 2,
    ABT_FLAG_PRIMARY = 4,
    ABT_FLAG_STACK_IS_USERS = 8,
    ABT_FLAG_GUARDED = 16 /* guard.c */
};

/* The values are those that ABT_info_query_config gives. STRICT: a thread waits until it can have its guard. */
enum abt_guard_mode { ABT_GUARD_NONE = 0, ABT_GUARD_LENIENT = 2, ABT_GUARD_STRICT = 3 };

/* PREEMPTED: none, but it is in the list of relief.c, and to leave that before it runs. */
enum abt_request { ABT_REQUEST_CANCEL = 1, ABT_REQUEST_MIGRATE = 2, ABT_REQUEST_PREEMPTED = 4 };

/* Why a guest has left. */
enum abt_left {
    ABT_LEFT_WAITING, /* it waits: a waker may have it already */
    ABT_LEFT_YIELDING,
    ABT_LEFT_SUSPENDED,
    ABT_LEFT_REPLACING, /* it waits until its stream has another main scheduler */
    ABT_LEFT_ENDED,     /* by a return from its function */
    ABT_LEFT_EXITED,    /* from within: its stack is given up */
};

/* Of a pool of the library's kinds. */
enum abt_in_pool { ABT_IN_NONE, ABT_IN_LIST, ABT_IN_INBOX };

struct abt_thread {
    /* what each change of thread, and a waker on another CPU, touches: one cache line */
    struct abt_thread *next,
        *prev;               /* in a pool of the library's kinds; of the one that may change that list */
    struct thrum_unit *unit; /* NULL: has not run yet, or has ended; its host's */
    struct abt_pool *pool;   /* where it goes when it can run */
    struct abt_stream *last_stream;
    struct abt_waiter *joiner; /* NULL, the waiter for its end, or ABT_JOIN_ENDED, which pairs with its cas */
    uint32_t state;            /* enum ABT_thread_state; its stores pair with loads by others */
    uint32_t flags;            /* enum abt_flags; relaxed: there is nothing behind them */
    uint32_t request;          /* enum abt_request; set by any thread: pairs with meet_requests */
    uint8_t kind;              /* enum abt_kind; r/o */
    uint8_t in_pool;           /* enum abt_in_pool; as `next` */
    bool has_more;   /* some of what begins with `values` may not be 0; set by any thread that writes there */
    uint8_t preempt; /* enum thrum_preempt_mode, as its attribute says (preempt.c) */
    /* --- second cache line --- */
    void (*fn)(void *);
    void *arg;
    size_t stack_size;
    void *stack; /* the program's own; NULL: none */
    /* What most threads do not use, from here to the end: 0 in a new one. The writer sets has_more. */
    struct abt_key_value *values; /* under values_lock */
    struct abt_spin values_lock;
    uint64_t id;                /* 0: not asked for yet; else 1 more than it */
    ABT_unit unit_handle;       /* of a pool of the program's */
    struct abt_pool *unit_pool; /* whose that is; NULL: none */
    struct abt_pool *migrate_to;
    void (*migrated)(ABT_thread, void *);
    void *migrated_arg;
    struct abt_sched *sched; /* whose function it runs; NULL: none */
    uint32_t slice;          /* us, as its attribute says; 0: its pool's */
    uint32_t
        preempt_offs; /* it is not preempted while it is not 0 (preempt.c); by itself, read by any thread */
    struct abt_thread *preempted_next, *preempted_prev; /* relief.c; under its lock */
    /* as a host: */
    struct abt_thread *tasklet;    /* that runs on its stack now */
    uint32_t left;                 /* enum abt_left: by `guest`; WAITING while one runs */
    ABT_pool_context left_context; /* YIELDING: of the push */
    struct abt_thread *guest;      /* that has left, unless it waits */
    struct abt_thread *direct;     /* to be run next, before its function returns; NULL: none */
    struct abt_sched
        *picks;             /* the scheduler out of whose pools its guests take the next; NULL: they do not */
    uint32_t turns;         /* units that may run until it looks at what else there is */
    uint64_t float_control; /* with `picks`: of the threads that it runs */
};

static inline void abt_has_more(struct abt_thread *thread) {
    store_relaxed(&thread->has_more, true);
}

#define ABT_JOIN_ENDED ((struct abt_waiter *)1)

static inline struct abt_thread *abt_thread_of(ABT_thread handle) {
    return (struct abt_thread *)(void *)handle;
}
static inline ABT_thread abt_handle(struct abt_thread *thread) {
    return (ABT_thread)(void *)thread;
}
static inline bool abt_is_tasklet(const struct abt_thread *thread) {
    return thread->kind == ABT_KIND_TASKLET;
}

struct abt_attr {
    void *stack;
    size_t stack_size;
    ABT_bool migratable;
    void (*migrated)(ABT_thread, void *);
    void *migrated_arg;
    uint8_t preempt; /* as in struct abt_thread, and the next */
    uint32_t slice;
};

/* descriptor.c. NULL: *error says why; else that may be written as well. */
struct abt_thread *abt_thread_new(enum abt_kind kind, struct abt_pool *pool, void (*fn)(void *), void *arg,
                                  const struct abt_attr *attr, bool named, int *error);
void abt_thread_delete(struct abt_thread *thread);
/* It is in no pool any more. */
void abt_thread_dissociate(struct abt_thread *thread);
/* The caller's memory for descriptors that it keeps goes back. */
void abt_thread_cache_flush(void);
/* With preemption: what a stream that has ended keeps of them; NULL: what no stream keeps, when none is left. */
void abt_spare_drop(struct abt_stream *stream);
uint64_t abt_thread_id(struct abt_thread *thread);
/* Of a pool of the program's: its unit handle there. 0 or an error. */
int abt_thread_associate(struct abt_thread *thread, struct abt_pool *pool);
/* The unit handle it has, in whatever pool. */
ABT_unit abt_thread_unit(struct abt_thread *thread);

/* thread.c: creates one and pushes it into `pool`. `result` may be NULL: then it is unnamed, and freed when it ends. */
int abt_thread_create(struct abt_pool *pool, enum abt_kind kind, void (*fn)(void *), void *arg,
                      const struct abt_attr *attr, ABT_thread *result);

/* thread_info.c: the range of its stack that is told; none: 0 bytes. */
void abt_thread_stack(const struct abt_thread *thread, void **low, size_t *size);

/* migrate.c: 0, or the error for a thread that stays where it is. */
int abt_thread_may_migrate(const struct abt_thread *thread);

/* join.c: it has ended, and is off its stack. */
void abt_thread_terminate(struct abt_thread *thread);
/* Until it has ended, whatever it is. */
void abt_thread_join(struct abt_thread *thread);
/* ... or the error for a thread that may not be joined. */
int abt_thread_wait_end(struct abt_thread *thread);

/* guard.c: of the thread that calls it, before its function. */
void abt_guard_set(struct abt_thread *thread);
/* Of one with ABT_FLAG_GUARDED, which runs nothing any more. */
void abt_guard_clear(struct abt_thread *thread);
enum abt_guard_mode abt_guard_mode_of(const char *text);

/* direct.c: the function of a unit of the core that runs a thread, and how it ends by thrum_exit. */
void *abt_thread_entry(void *thread);
void abt_thread_exits(void *thread);
/* Why it may not: a line to abort with, or NULL. */
const char *abt_thread_must_return(const void *thread);
/* run.c: `host` is the caller. */
void abt_run(struct abt_thread *host, struct abt_thread *thread);
/* The primary was picked elsewhere and waits to be run by its stream, whose main thread calls this. */
void abt_run_primary(struct abt_thread *host);
/* The guest that `host` ran has left: what it said. By the host. Returns what is to run next for that, or NULL, as without `picks`. */
struct abt_thread *abt_see_to(struct abt_thread *host);
/* A unit, and with it a stack, for a thread that has none. False: no memory. */
bool abt_get_unit(const struct abt_thread *host, struct abt_stream *stream, struct abt_thread *thread);
/* The caller, a guest, leaves. */
void abt_leave(enum abt_left why, ABT_pool_context context, struct abt_thread *direct);
/* direct.c: of a guest, from inside. It suspends itself, and `direct`, unless NULL, runs next. */
INSIDE void abt_suspend_direct(struct worker *worker, struct abt_thread *host, struct abt_thread *self,
                               struct abt_thread *direct);
/* Units that this stream keeps go back. From: its main thread. */
void abt_units_drop(struct abt_stream *stream);

/* It was blocked, or is new, and can run: into its pool. */
void abt_ready(struct abt_thread *thread, ABT_pool_context context, bool was_blocked);
/* The core woke this unit: the pool operations that it knows (front.h). */
extern const struct thrum_pool_ops abt_core_ops;

/* --- the caller ------------------------------------------------------------------------------------- */

extern struct abt_global {
    uint32_t count; /* ABT_init less ABT_finalize; under start.c's lock */
    bool is_on;     /* it is not 0; read by any thread */
    struct abt_thread *primary;
    struct abt_stream *primary_stream;
    thrum_pool_t core_pool;
    thrum_attr_t attr; /* of threads with the default stack */
    size_t stack_size, sched_stack_size;
    uint32_t event_freq;
    uint64_t spin;        /* ns */
    uint64_t sched_sleep; /* ns; what a query gives: no scheduler here sleeps for a fixed time */
    enum abt_guard_mode guard;
    uint32_t max_streams; /* a hint, or more than the highest rank; under lock */
    bool sets_affinity;   /* the interface's functions for that do it */
    bool prints_config;   /* ABT_init has printed it */
    bool
        preempts; /* threads that ask for it are preempted (preempt.c); r/o until ABT_finalize, as the next */
    uint8_t preempt; /* enum thrum_preempt_mode of threads that do not say, nor their pools */
    uint64_t next_thread_id, next_pool_id;
    uint32_t dump_is_wanted; /* dump.c: so many requests; its increase pairs with the loads */
    struct abt_spin lock;    /* of the next two */
    struct abt_stream *streams;
    int stream_count;
    struct abt_thread *primary_waits; /* for its stream: picked elsewhere; changed under lock */
} abt;

static inline bool abt_has_default_stack(const struct abt_thread *thread) {
    return thread->stack_size == abt.stack_size && thread->stack == NULL;
}

/* relief.c: what stands for the loop of a worker that relieves others; NULL: the unit is none that does so now. */
struct abt_thread *abt_relief_host(const struct thrum_unit *unit);
/* It is preempted, and about to be pushed into its pool. */
void abt_preempted_add(struct abt_thread *thread);
/* ... and about to resume. Of one with ABT_REQUEST_PREEMPTED. */
void abt_preempted_remove(struct abt_thread *thread);
/* There are none. */
void abt_preempted_forget(void);
/* The caller, which is not preempted from here, is about to be a host: a worker that relieves others cannot have one. */
void abt_go_home(void);
/* What front_relieve is. */
INSIDE bool abt_relieve(struct worker *worker, const struct worker *stuck);

/* NULL: none of the layer's. */
static inline struct abt_thread *abt_of_unit(struct thrum_unit *unit) {
    if (__builtin_expect(unit == NULL, 0))
        return NULL;
    if (__builtin_expect(unit->fn == abt_thread_entry, 1))
        return unit->arg;
    if (__builtin_expect(unit->is_primary, 1))
        return abt.primary;
    return __builtin_expect(abt.preempts, 0) ? abt_relief_host(unit) : NULL;
}

/* preempt.c: with preemption. The caller's unit, though it may be preempted in between. */
struct thrum_unit *abt_unit_here(void);
/* Its unit's mode and slice are what it and its pool say. Of one that has a unit. */
void abt_preempt_set(struct abt_thread *thread);
/* From here it is not preempted, until abt_preempt_set. */
static inline void abt_preempt_hold(struct thrum_unit *unit) {
    store_relaxed(&unit->preempt, (uint8_t)THRUM_PREEMPT_NONE);
}
/* The caller's thread is not preempted in between, whatever its pool becomes. They nest. */
void abt_preempt_off_slow(struct abt_thread *self);
void abt_preempt_on_slow(struct abt_thread *self);
static inline void abt_preempt_off(struct abt_thread *self) {
    if (__builtin_expect(abt.preempts, 0))
        abt_preempt_off_slow(self);
}
static inline void abt_preempt_on(struct abt_thread *self) {
    if (__builtin_expect(abt.preempts, 0))
        abt_preempt_on_slow(self);
}
/* What thrum_abt_set_preempt and the environment say, to the core. */
void abt_preempt_configure(struct thrum_preempt_config *config);
void abt_preempt_begin(void);

/* The thread on whose stack the caller runs; NULL: external, or none of the layer's. */
static inline struct abt_thread *abt_host_here(void) {
    return abt_of_unit(__builtin_expect(abt.preempts, 0) ? abt_unit_here() : front_self());
}

/* ... or the tasklet that runs on it. */
static inline struct abt_thread *abt_self(void) {
    struct abt_thread *host = abt_host_here();
    if (host != NULL && __builtin_expect(host->tasklet != NULL, 0))
        return host->tasklet;
    return host;
}

/* `self` is the caller, a thread or a tasklet; an external one gets the error. */
#define ABT_SELF_OR_RETURN(self)                                                                             \
    struct abt_thread *self = abt_self();                                                                    \
    ABT_CHECK(self != NULL, ABT_ERR_INV_XSTREAM)
/* Likewise, of the functions that tell first whether the library is initialised. */
#define ABT_INITIALIZED_SELF_OR_RETURN(self)                                                                 \
    ABT_CHECK(load_relaxed(&abt.is_on), ABT_ERR_UNINITIALIZED);                                              \
    ABT_SELF_OR_RETURN(self)

/* --- waiting (wait.c) ------------------------------------------------------------------------------- */

struct abt_waiter {
    struct abt_waiter *next;
    struct thrum_unit *unit;
    struct abt_thread *thread; /* whose state and pool say that it waits; NULL: external, or a main thread */
    struct worker *worker;
    uint32_t kind; /* the object's */
    bool timed_out;
    struct abt_waitlist *list; /* of a wait with a deadline */
};

/* A queue, oldest first, under a lock of its owner's. */
struct abt_waitlist {
    struct abt_waiter *first, *last;
};

/* Between abt_wait_begin and abt_wait (direct.h) the waiter is put where its waker finds it, or this is called, which leaves the
 * region that abt_wait_begin has entered. */
LEAVES void abt_wait_not(struct abt_waiter *waiter);
/* The waiter was taken from where it stood; it may be gone when this returns. */
void abt_wake(struct abt_waiter *waiter);

static inline void abt_waitlist_add(struct abt_waitlist *list, struct abt_waiter *waiter) {
    waiter->next = NULL;
    if (list->first == NULL)
        list->first = waiter;
    else
        list->last->next = waiter;
    list->last = waiter;
}
static inline struct abt_waiter *abt_waitlist_take(struct abt_waitlist *list) {
    struct abt_waiter *waiter = list->first;
    if (waiter != NULL)
        list->first = waiter->next;
    return waiter;
}
bool abt_waitlist_remove(struct abt_waitlist *list, struct abt_waiter *waiter);
/* Wakes a chain. */
void abt_wake_all(struct abt_waiter *first);

/* Waits in `list`, whose lock the caller holds and this releases; until a deadline (ns, CLOCK_MONOTONIC; TIMER_NEVER). False: it
 * came first. */
LEAVES bool abt_wait_in_until(struct abt_waitlist *list, struct abt_spin *lock, uint64_t deadline);
/* Likewise, of a waiter of the caller's, after abt_wait_begin, in the list already, the lock released. */
LEAVES bool abt_wait_until(struct abt_waiter *waiter, struct abt_waitlist *list, struct abt_spin *lock,
                           uint64_t deadline);

/* After a wait with a deadline: was that over before it began, the thread is still said to be blocked. */
void abt_has_waited(struct abt_thread *thread);

uint64_t abt_deadline_real(const struct timespec *time);
uint64_t abt_deadline_real_seconds(double seconds);
uint64_t abt_deadline_in_seconds(double seconds);

/* --- pools (pool.c, pool_list.c) -------------------------------------------------------------------- */

/* What ABT_pool_user_def_create makes. It begins like an ABT_pool_def whose u_create_from_thread is NULL, which no definition
 * of the program's has. */
struct abt_user_def {
    ABT_pool_def old;
    ABT_pool_user_create_unit_fn create_unit;
    ABT_pool_user_free_unit_fn free_unit;
    ABT_pool_user_is_empty_fn is_empty;
    ABT_pool_user_pop_fn pop;
    ABT_pool_user_push_fn push;
    ABT_pool_user_init_fn init;
    ABT_pool_user_free_fn free;
    ABT_pool_user_get_size_fn get_size;
    ABT_pool_user_pop_wait_fn pop_wait;
    ABT_pool_user_pop_many_fn pop_many;
    ABT_pool_user_push_many_fn push_many;
    ABT_pool_user_print_all_fn print_all;
};

enum abt_pool_type { ABT_POOL_OURS, ABT_POOL_OLD, ABT_POOL_NEW };

struct abt_pool {
    uint8_t type;    /* enum abt_pool_type; r/o, as all up to `data` but for what is said of it */
    bool automatic;  /* freed with the last scheduler that has it */
    uint8_t preempt; /* enum thrum_preempt_mode of its threads; any thread's, as the next */
    uint32_t slice;  /* us; 0: the runtime's */
    ABT_pool_access access;
    ABT_pool_kind kind; /* OURS */
    uint64_t id;
    struct abt_user_def def; /* OLD: def.old; NEW: the rest */
    void *data;
    uint32_t scheds; /* that have it */
    bool was_shared; /* it has had an owner, and is to have none any more; under lock */
    /* ABT_POOL_SHARED: none; changed under lock, twice at most; read by any thread: away from what the owner writes */
    struct worker *owner;
    /* the owner's, or, if there is none, under lock (pool_list.c) */
    _Alignas(64) uint32_t busy; /* by the owner: it is at the list; its 0 pairs with the revoker's load */
    uint32_t own_blocked;       /* part of `blocked`: by the owner, without the lock; pairs likewise */
    struct abt_thread *first, *last; /* oldest first */
    size_t count;                    /* pairs with readers' loads ("Counts", pool_list.c), as inbox.count */
    /* other threads' */
    _Alignas(64) struct abt_spin lock;
    uint32_t blocked;  /* threads of this pool that wait, with own_blocked; modulo 2^32; pairs as `count` */
    int32_t timed;     /* of them, those with a deadline */
    uint32_t sleepers; /* that look at this pool; changed under sleepers.c's lock, read by any thread */
    struct {
        struct abt_spin lock;
        struct abt_thread *first, *last;
        size_t count;
    } inbox; /* pushed by others than the owner; under its lock */
};

#define ABT_POOL_SHARED ((struct worker *)1)

/* So many more of this pool's threads wait. Inside. */
static inline void abt_pool_add_blocked(struct abt_pool *pool, int32_t count) {
    if (__builtin_expect(load_relaxed(&pool->owner) == worker_here(), 1))
        store_release(&pool->own_blocked, load_relaxed(&pool->own_blocked) + (uint32_t)count);
    else
        fetch_add_release(&pool->blocked, (uint32_t)count);
}

static inline struct abt_pool *abt_pool_of(ABT_pool handle) {
    return (struct abt_pool *)(void *)handle;
}
static inline ABT_pool abt_pool_handle(struct abt_pool *pool) {
    return (ABT_pool)(void *)pool;
}
int abt_pool_new(ABT_pool_kind kind, ABT_pool_access access, bool automatic, struct abt_pool **pool);
void abt_pool_delete(struct abt_pool *pool);
void abt_pool_retain(struct abt_pool *pool);
void abt_pool_release(struct abt_pool *pool);
/* The thread is associated with it. `was_blocked`: one that waits less. */
void abt_pool_push(struct abt_pool *pool, struct abt_thread *thread, ABT_pool_context context,
                   bool was_blocked);
struct abt_thread *abt_pool_pop(struct abt_pool *pool, ABT_pool_context context);
/* False: it is not in there. Pools of the library's kinds. */
bool abt_pool_take(struct abt_pool *pool, struct abt_thread *thread);
bool abt_pool_is_empty(struct abt_pool *pool);
/* SIZE_MAX: it has no function for that. */
size_t abt_pool_size(struct abt_pool *pool);
size_t abt_pool_total_size(struct abt_pool *pool);
/* ... also if it may have been pushed into just now. */
bool abt_pool_is_empty_for_sure(struct abt_pool *pool);
/* Less than none: some that wait have been counted out before they were counted in. */
int32_t abt_pool_blocked(const struct abt_pool *pool);
/* The caller's stream alone has it: it is the owner from here, until it says that it is not any more. */
void abt_pool_own(struct abt_pool *pool);
void abt_pool_own_no_more(struct abt_pool *pool);

/* sleepers.c: one that has this pool is to look at it. */
void abt_sleeper_wake(const struct abt_pool *pool);
/* There is something else than its pools to see to. NULL: never. */
bool abt_stream_is_called(const struct abt_stream *stream);
/* Until something is in one of them, `deadline`, or the stream (NULL: none) is to look at something else. */
void abt_pools_sleep(struct abt_pool *const *pools, int count, uint64_t deadline, struct abt_stream *stream);
/* ... after which, once it has taken one, or if it takes none, it calls this. */
void abt_pools_pass_on(struct abt_pool *const *pools, int count);
void abt_stream_wake(struct abt_stream *stream);

/* --- schedulers (sched.c) and streams (stream.c) ---------------------------------------------------- */

enum abt_sched_request { ABT_SCHED_FINISH = 1, ABT_SCHED_EXIT = 2, ABT_SCHED_REPLACE = 4 };
enum abt_sched_use { ABT_SCHED_UNUSED, ABT_SCHED_MAIN, ABT_SCHED_IN_POOL };

struct abt_sched {
    ABT_sched_def def;
    int predef; /* enum ABT_sched_predef; -1: the program's own */
    bool automatic;
    bool is_plain; /* predefined, and all its pools are of the library's kinds */
    uint32_t use;  /* enum abt_sched_use; the store of UNUSED pairs with the next user's cas, or the load */
    uint32_t request; /* enum abt_sched_request; pairs with its loads, by the fences of sleepers.c */
    uint32_t freq;
    int count;
    struct abt_pool **pools, **order; /* as the program gave them; as a predefined one looks at them */
    struct abt_pool *only; /* of one that is_plain: its only pool; NULL: it has several, or draws */
    void *data;
    struct abt_thread *thread; /* that runs its function */
    struct abt_stream *stream; /* whose main one it is */
    uint64_t random;
};

static inline struct abt_sched *abt_sched_of(ABT_sched handle) {
    return (struct abt_sched *)(void *)handle;
}
static inline ABT_sched abt_sched_handle(struct abt_sched *sched) {
    return (ABT_sched)(void *)sched;
}
/* Of a predefined one: what it runs next, or NULL. */
struct abt_thread *abt_sched_pick(struct abt_sched *sched);
/* Its host, of those with `picks`, looks at what else there is to do, and may run so many units as it says in `turns`. */
void abt_sched_look(struct abt_sched *sched, struct abt_thread *host);
int abt_sched_new_basic(int predef, int count, ABT_pool *pools, ABT_sched_config config,
                        struct abt_sched **sched);
void abt_sched_delete(struct abt_sched *sched);
/* What the thread of a scheduler in a pool runs. */
void abt_sched_in_pool(void *sched);
void abt_sched_request(struct abt_sched *sched, enum abt_sched_request request);
bool abt_sched_has_to_stop(struct abt_sched *sched);
/* Reads one value, if the configuration has it. */
bool abt_config_get(ABT_sched_config config, int index, int *type, void *value);

enum abt_stream_request { ABT_STREAM_EXIT = 1 };

enum { ABT_UNITS_KEPT = 16, ABT_OTHER_UNITS_KEPT = 8 };

struct abt_stream {
    struct abt_stream *next; /* under abt.lock, as rank */
    int rank;
    bool is_primary;
    uint32_t state;   /* enum ABT_xstream_state; the store of TERMINATED pairs with loads by others */
    uint32_t request; /* enum abt_stream_request; pairs as that of a scheduler */
    unsigned worker;
    int32_t tid;      /* of its kernel thread, whose store pairs with tid_of */
    sigset_t signals; /* that its creator blocks */
    thrum_t core;     /* its main thread's handle in the core */
    struct abt_thread *main;
    struct abt_sched *sched, *replacement;
    struct abt_thread *replacer;    /* waits for that */
    uint32_t is_asleep, is_at_rest; /* by its main thread, for dump.c: pair with another_runs */
    uint32_t idle_polls;
    bool is_bound; /* to CPUs, by the program */
    /* Units that rest between two threads, with their stacks; its own. */
    uint32_t kept;
    struct thrum_unit *units[ABT_UNITS_KEPT]; /* of the default size */
    uint32_t others_put;                      /* so many, ever: the next replaces the oldest */
    struct abt_other_unit {
        struct thrum_unit *unit; /* NULL: none */
        size_t stack_size;       /* that its threads ask for */
    } others[ABT_OTHER_UNITS_KEPT];
    struct abt_thread *spare; /* descriptors (descriptor.c), as the next; on its worker alone, inside */
    uint32_t spare_count;
};

static inline struct abt_stream *abt_stream_of(ABT_xstream handle) {
    return (struct abt_stream *)(void *)handle;
}
static inline ABT_xstream abt_stream_handle(struct abt_stream *stream) {
    return (ABT_xstream)(void *)stream;
}
/* By the worker's number; NULL: not a stream's. Read on that worker alone, inside or by a unit that is not preempted: thrum_spawn
 * orders it. */
extern struct abt_stream *abt_stream_of_worker[WORKER_IDS];
static inline struct abt_stream *abt_stream_on(const struct worker *worker) {
    return load_relaxed(&abt_stream_of_worker[worker->id]);
}
/* stream.c: with preemption. */
struct abt_stream *abt_stream_preempts_here(void);
/* The stream of what runs on this worker. Of one that relieves another: where that thread last ran. Inside. */
static inline struct abt_stream *abt_stream_of_current(const struct worker *worker) {
    struct abt_stream *stream = abt_stream_on(worker);
    if (__builtin_expect(stream == NULL && abt.preempts, 0) && abt_of_unit(worker->loop) != NULL) {
        const struct abt_thread *thread = abt_of_unit(worker->current);
        return thread != NULL ? thread->last_stream : NULL;
    }
    return stream;
}
/* The one that runs the caller; NULL: external. With preemption the caller may run on another when this returns, and the stream may
 * have ended: only a caller that is inside, or a host, may look into it. */
static inline struct abt_stream *abt_stream_here(void) {
    if (__builtin_expect(abt.preempts, 0))
        return abt_stream_preempts_here();
    const struct worker *worker = worker_here();
    return worker != NULL ? abt_stream_on(worker) : NULL;
}
/* The one whose main thread `host` is; NULL: none. From: `host`, or a tasklet on it. A main thread is bound and is not preempted. */
static inline struct abt_stream *abt_stream_of_main(const struct abt_thread *host) {
    return host != NULL && host->kind == ABT_KIND_MAIN ? abt_stream_here() : NULL;
}
int abt_stream_new(struct abt_sched *sched, int rank, bool is_primary, struct abt_stream **stream);
void abt_stream_delete(struct abt_stream *stream);
/* Waits until its main thread has ended and its worker has stopped. */
void abt_stream_end(struct abt_stream *stream);
/* What a host does now and then: what waits for this stream. */
void abt_stream_events(struct abt_stream *stream, struct abt_thread *host);

/* dump.c: the stacks of all threads are wanted, and none runs on this stream now. */
void abt_dump(struct abt_stream *stream);
/* The stream has said that it is no longer at rest, or begins, and runs something next: not while another prints. */
void abt_dump_await(struct abt_stream *stream);

/* key.c: calls the destructors. */
void abt_values_delete(struct abt_thread *thread);
/* With preemption, at the end of an unnamed thread, which calls it: there free() may be preempted. On its host it may not. */
void abt_values_delete_early(struct abt_thread *self);
int abt_values_set(struct abt_thread *thread, ABT_key key, void *value);
int abt_values_get(struct abt_thread *thread, ABT_key key, void **value);

/* unit.c */
struct abt_thread *abt_unit_thread(ABT_unit unit);
/* False: no memory. */
bool abt_units_add(ABT_unit unit, struct abt_thread *thread);
void abt_units_remove(ABT_unit unit);

#endif
