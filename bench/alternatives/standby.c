// SPDX-License-Identifier: Apache-2.0
/* See standby.h. */
#include "standby.h"

#include <sched.h>
#include <setjmp.h>
#include <time.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/rows.h"
#include "base/slab.h"
#include "kthread/counters.h"
#include "kthread/internal.h"
#include "kthread/libc.h"
#include "os/lock.h"

struct standby {
    _Alignas(64) uint32_t post; /* enum post */
    pid_t tid;                  /* the thread's own note, for a waiter for its end */
    pthread_t handle;
    struct kthread_kind kind;
    struct standby *next; /* under the pool's lock, or of the thread that took the list */

    /* The job: the creator's until POST_JOB. */
    void *(*fn)(void *);
    void *arg;
    struct fresh_creator creator;
    struct fresh_state fresh; /* the affinity that it was born with */
};

enum { KINDS = 4 };

enum filler_state { FILLER_NONE, FILLER_STARTING, FILLER_RUNNING, FILLER_QUITTING };
enum filler_word { FILLER_AT_WORK, FILLER_ASLEEP };

/* Taken with the signals blocked, since a handler may create threads. All of it under the lock but what says so. */
static struct {
    struct lock lock;
    struct slab slab;
    struct {
        struct kthread_kind kind;
        struct standby *first;
        unsigned count, level; /* level 0: the place is free */
        uint64_t used;         /* `clock` when it was last asked for */
    } kinds[KINDS];
    uint64_t clock;

    enum filler_state filler;
    uint32_t filler_word; /* enum filler_word; set under the lock, slept on without it */
    pthread_t filler_handle;
    pid_t filler_tid; /* its own note */
    uint64_t filler_lineage;
} pool = {.slab = SLAB_INIT(struct standby)};

static bool same_kind(const struct kthread_kind *a, const struct kthread_kind *b) {
    return a->stack_size == b->stack_size && a->guard_size == b->guard_size && a->lineage == b->lineage;
}

/* The place of a kind, or -1. */
static int place_of_locked(const struct kthread_kind *kind) {
    for (int i = 0; i < KINDS; i++)
        if (pool.kinds[i].level != 0 && same_kind(&pool.kinds[i].kind, kind))
            return i;
    return -1;
}

static unsigned half(unsigned level) {
    return level / 2;
}

/* --- the end of those that are not needed --------------------------------------------------------------- */

static void post(struct standby *standby, enum post what) {
    if (exchange_acq_rel(&standby->post, what) == POST_SLEEPING)
        futex_wake(&standby->post, 1);
}

static void join_for_good(pthread_t handle, const pid_t *tid) {
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    libc.pthread_join(handle, NULL);
    pthread_setcancelstate(state, &state);
    wait_until_gone(load_relaxed(tid));
}

/* The list is the caller's. All are told before the first is waited for. */
static unsigned end_all(struct standby *first) {
    unsigned count = 0;
    for (struct standby *at = first; at != NULL; at = at->next)
        post(at, POST_QUIT);
    for (struct standby *at = first, *next; at != NULL; at = next) {
        next = at->next;
        join_for_good(at->handle, &at->tid);
        lock_acquire(&pool.lock);
        slab_free_locked(&pool.slab, at);
        lock_release(&pool.lock);
        counters_count(&thrum_cache_counters.culled);
        count++;
    }
    return count;
}

static struct standby *take_list_locked(int place) {
    struct standby *first = pool.kinds[place].first;
    for (unsigned i = 0; i < pool.kinds[place].count; i++)
        counters_idle_remove();
    pool.kinds[place].first = NULL;
    pool.kinds[place].count = pool.kinds[place].level = 0;
    return first;
}

/* --- the thread ---------------------------------------------------------------------------------------- */

static void help(struct kthread_kind kind);

static enum post wait_for_post(struct standby *standby) {
    uint32_t seen = POST_NOTHING;
    if (cas_acquire(&standby->post, &seen, POST_SLEEPING)) {
        do {
            futex_wait(&standby->post, POST_SLEEPING);
        } while ((seen = load_acquire(&standby->post)) == POST_SLEEPING);
    }
    return (enum post)seen;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wstringop-overflow" /* __sigsetjmp(.., 0) leaves the buffer's mask alone */
/* However fn ends, help comes after it, and exactly once. An asynchronous cancellation that comes after fn's return
 * lands as one in fn would. */
static void *run_and_help(void *(*fn)(void *), void *arg, const struct kthread_kind *kind) {
    __pthread_unwind_buf_t landing;
    int state;
    if (__sigsetjmp((struct __jmp_buf_tag *)(void *)landing.__cancel_jmp_buf, 0) != 0) {
        help(*kind);
        libc.unwind_next(&landing);
    }
    libc.register_cancel(&landing);
    void *result = fn(arg);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    libc.unregister_cancel(&landing);
    help(*kind);
    pthread_setcancelstate(state, &state);
    return result;
}
#pragma GCC diagnostic pop

static void *standby_main(void *argument) {
    struct standby *standby = argument;
    store_relaxed(&standby->tid, (pid_t)sys(SYS_gettid));
    if (wait_for_post(standby) == POST_QUIT)
        return NULL;
    void *(*fn)(void *) = standby->fn, *arg = standby->arg;
    struct kthread_kind kind = standby->kind;
    sigbits mask = standby->creator.mask;
    kthread_adopt_lineage(kind.lineage);
    /* A library that is opened has its image put into the threads that libc knows of; one that was just being made was none. */
    tls_reimage();
    libc_state_begin();
    creator_apply(&standby->creator, &standby->fresh);
    lock_acquire(&pool.lock);
    slab_free_locked(&pool.slab, standby);
    lock_release(&pool.lock);
    if (!skipped(ROW_SIGPENDING))
        signals_drop_pending(0);
    signals_mask_set(mask);
    return mode_config.mode == MODE_STANDBY_HELPING ? run_and_help(fn, arg, &kind) : fn(arg);
}

/* --- making them: with all signals blocked but libc's -------------------------------------------------- */

static struct standby *new_descriptor(const struct kthread_kind *kind) {
    lock_acquire(&pool.lock);
    pool.slab.object_size =
        SLAB_SIZE(sizeof(struct standby)) + creator_masks_size(); /* behind it; always the same */
    struct standby *standby = slab_alloc_locked(&pool.slab);
    lock_release(&pool.lock);
    if (standby == NULL)
        return NULL;
    creator_masks_place(&standby->creator, &standby->fresh, standby + 1);
    standby->kind = *kind;
    creator_capture(&standby->creator);
    creator_inherited(&standby->fresh);
    return standby;
}

static int create(pthread_t *handle, const struct kthread_kind *kind, bool detached, void *(*fn)(void *),
                  void *arg) {
    pthread_attr_t attributes;
    int error = kthread_attributes(&attributes, kind);
    if (error != 0)
        return error;
    error = pthread_attr_setdetachstate(&attributes,
                                        detached ? PTHREAD_CREATE_DETACHED : PTHREAD_CREATE_JOINABLE);
    if (error == 0)
        error = libc.pthread_create(handle, &attributes, fn, arg);
    pthread_attr_destroy(&attributes);
    return error;
}

static void free_descriptor(struct standby *standby) {
    lock_acquire(&pool.lock);
    slab_free_locked(&pool.slab, standby);
    lock_release(&pool.lock);
}

/* True if the new one is in the list. Not where that is full, where the kind has lost its place, or where nothing may
 * stand by any more. */
static bool list_locked(struct standby *standby) {
    int place = place_of_locked(&standby->kind);
    if (place < 0 || pool.kinds[place].count >= pool.kinds[place].level || !kthread_keeping() ||
        pool.filler == FILLER_QUITTING || load_relaxed(&kthread_config.memory_limited))
        return false;
    standby->next = pool.kinds[place].first;
    pool.kinds[place].first = standby;
    pool.kinds[place].count++;
    counters_idle_add(UINT64_MAX);
    return true;
}

/* Makes one and lists it. False if that failed: the kind then asks for no more than it has. */
static bool make(const struct kthread_kind *kind) {
    struct standby *standby = new_descriptor(kind);
    if (standby == NULL)
        return false;
    int error = create(&standby->handle, kind, false, standby_main, standby);
    if (error != 0) {
        free_descriptor(standby);
        lock_acquire(&pool.lock);
        int place = place_of_locked(kind);
        if (place >= 0)
            pool.kinds[place].level = pool.kinds[place].count > 0 ? pool.kinds[place].count : 1;
        lock_release(&pool.lock);
        return false;
    }
    lock_acquire(&pool.lock);
    bool listed = list_locked(standby);
    lock_release(&pool.lock);
    if (!listed) {
        standby->next = NULL;
        end_all(standby);
    }
    return true;
}

/* --- STANDBY_HELPING: in a thread that ends ------------------------------------------------------------- */

static void help(struct kthread_kind kind) {
    sigbits mask = signals_mask_set(SIGBITS_ALL & ~SIGBITS_LIBC);
    if (kthread_keeping() && kthread_lineage(&kind.lineage)) { /* what it makes inherits what it is now */
        lock_acquire(&pool.lock);
        int place = place_of_locked(&kind);
        bool room = place >= 0 && pool.kinds[place].count < pool.kinds[place].level;
        lock_release(&pool.lock);
        if (room)
            make(&kind);
    }
    signals_mask_set(mask);
}

/* None stood by: a new thread that has its job from the start, but will help at its end. */
static bool start_helper(const struct kthread_kind *kind, sigbits mask, bool detached, void *(*fn)(void *),
                         void *arg, pthread_t *handle) {
    struct standby *standby = new_descriptor(kind);
    if (standby == NULL)
        return false;
    standby->creator.mask = mask;
    standby->fn = fn;
    standby->arg = arg;
    standby->post = POST_JOB;
    if (create(handle, kind, detached, standby_main, standby) != 0) {
        free_descriptor(standby);
        return false;
    }
    counters_passed(PASS_OFF);
    return true;
}

/* --- STANDBY: the filler -------------------------------------------------------------------------------- */

/* A kind that wants one more, or -1: then the filler must sleep. */
static int next_to_make_locked(struct kthread_kind *kind) {
    for (int i = 0; i < KINDS; i++)
        if (pool.kinds[i].count < pool.kinds[i].level) {
            *kind = pool.kinds[i].kind;
            return i;
        }
    return -1;
}

static void *filler_main(void *unused) {
    (void)unused;
    store_relaxed(&pool.filler_tid, (pid_t)sys(SYS_gettid));
    for (;;) {
        struct kthread_kind kind;
        lock_acquire(&pool.lock);
        bool quit = pool.filler == FILLER_QUITTING;
        bool sleep = !quit && next_to_make_locked(&kind) < 0;
        store_relaxed(&pool.filler_word, sleep ? FILLER_ASLEEP : FILLER_AT_WORK);
        lock_release(&pool.lock);
        if (quit)
            return NULL;
        if (sleep)
            futex_wait(&pool.filler_word, FILLER_ASLEEP);
        else
            make(&kind);
    }
}

/* By the first creation, with the signals blocked, for good. The filler is of the creator's lineage, and so will be all
 * that it makes. */
static void start_filler(const struct kthread_kind *kind) {
    pthread_t handle = 0;
    lock_acquire(&pool.lock);
    bool wanted = pool.filler == FILLER_NONE && kthread_keeping() && mode_config.standby > 0;
    if (wanted) {
        store_relaxed(&pool.filler, FILLER_STARTING);
        store_relaxed(&pool.filler_lineage, kind->lineage);
        store_relaxed(&pool.filler_word, FILLER_AT_WORK);
    }
    lock_release(&pool.lock);
    if (!wanted)
        return;
    int error = create(&handle, kind, false, filler_main, NULL);
    lock_acquire(&pool.lock);
    pool.filler_handle = handle;
    store_relaxed(&pool.filler, error == 0 ? FILLER_RUNNING : FILLER_NONE);
    lock_release(&pool.lock);
}

static bool filler_should_wake_locked(int place) {
    if (place < 0 || load_relaxed(&pool.filler_word) != FILLER_ASLEEP ||
        pool.kinds[place].count > half(pool.kinds[place].level))
        return false;
    store_relaxed(&pool.filler_word, FILLER_AT_WORK);
    return true;
}

/* Returns 1 if there was one, when it has gone. While another creation is just making it, that is waited for: its
 * signals are blocked, so it will get there. */
static unsigned end_filler(void) {
    lock_acquire(&pool.lock);
    while (pool.filler == FILLER_STARTING || pool.filler == FILLER_QUITTING) {
        lock_release(&pool.lock);
        sched_yield();
        lock_acquire(&pool.lock);
    }
    bool running = pool.filler == FILLER_RUNNING;
    if (running)
        store_relaxed(&pool.filler, FILLER_QUITTING);
    store_relaxed(&pool.filler_word, FILLER_AT_WORK);
    lock_release(&pool.lock);
    if (!running)
        return 0;
    futex_wake(&pool.filler_word, 1);
    join_for_good(pool.filler_handle, &pool.filler_tid);
    lock_acquire(&pool.lock);
    store_relaxed(&pool.filler, FILLER_NONE);
    lock_release(&pool.lock);
    return 1;
}

/* --- creations ------------------------------------------------------------------------------------------ */

/* A place for a kind that has none; the list of the kind that had it, which must be ended. */
static struct standby *new_place_locked(const struct kthread_kind *kind, int *place) {
    *place = 0;
    for (int i = 0; i < KINDS && pool.kinds[*place].level != 0; i++)
        if (pool.kinds[i].level == 0 || pool.kinds[i].used < pool.kinds[*place].used)
            *place = i;
    struct standby *evicted = take_list_locked(*place);
    pool.kinds[*place].kind = *kind;
    return evicted;
}

/* After a creation has found none. */
static void raise_level_locked(int place) {
    unsigned level = pool.kinds[place].level * 2;
    level = level == 0 ? 1 : level;
    pool.kinds[place].level = level < mode_config.standby ? level : (unsigned)mode_config.standby;
}

static bool is_served(const struct kthread_kind *kind) {
    if (mode_config.standby == 0 || load_relaxed(&kthread_config.memory_limited))
        return false;
    if (mode_config.mode == MODE_STANDBY_HELPING)
        return true;
    if (load_relaxed(&pool.filler) == FILLER_NONE)
        start_filler(kind);
    return load_relaxed(&pool.filler) != FILLER_NONE && load_relaxed(&pool.filler_lineage) == kind->lineage;
}

static struct standby *take(const struct kthread_kind *kind) {
    lock_acquire(&pool.lock);
    int place = place_of_locked(kind);
    struct standby *evicted = place < 0 ? new_place_locked(kind, &place) : NULL;
    struct standby *standby = pool.kinds[place].first;
    pool.kinds[place].used = ++pool.clock;
    if (standby != NULL) {
        pool.kinds[place].first = standby->next;
        pool.kinds[place].count--;
        counters_idle_remove();
    } else {
        raise_level_locked(place);
    }
    bool wake = filler_should_wake_locked(place);
    lock_release(&pool.lock);
    if (wake)
        futex_wake(&pool.filler_word, 1);
    end_all(evicted);
    return standby;
}

/* The caller owns it. From the post on it may end and its descriptor be another's. */
static void hand_over(struct standby *standby, sigbits mask, bool detached, void *(*fn)(void *), void *arg,
                      pthread_t *handle) {
    standby->fn = fn;
    standby->arg = arg;
    creator_capture(&standby->creator);
    standby->creator.mask = mask;
    *handle = standby->handle;
    if (detached)
        libc.pthread_detach(standby->handle);
    counters_count(&thrum_cache_counters.created);
    post(standby, POST_JOB);
}

static bool start(const struct kthread_kind *kind, sigbits mask, bool detached, void *(*fn)(void *),
                  void *arg, pthread_t *handle) {
    if (!is_served(kind))
        return false;
    struct standby *standby = take(kind);
    if (standby != NULL) {
        hand_over(standby, mask, detached, fn, arg, handle);
        return true;
    }
    return mode_config.mode == MODE_STANDBY_HELPING && start_helper(kind, mask, detached, fn, arg, handle);
}

bool standby_start(const struct kthread_kind *kind, bool detached, void *(*fn)(void *), void *arg,
                   pthread_t *handle) {
    sigbits mask = signals_mask_set(SIGBITS_ALL & ~SIGBITS_LIBC);
    bool served = start(kind, mask, detached, fn, arg, handle);
    signals_mask_set(mask);
    return served;
}

/* --- all of it ------------------------------------------------------------------------------------------- */

unsigned standby_cull(void) {
    sigbits mask = signals_mask_set(SIGBITS_ALL & ~SIGBITS_LIBC);
    unsigned count = end_filler();
    for (int i = 0; i < KINDS; i++) {
        lock_acquire(&pool.lock);
        struct standby *first = take_list_locked(i);
        lock_release(&pool.lock);
        count += end_all(first);
    }
    signals_mask_set(mask);
    return count;
}

void standby_fork_child(void) {
    lock_reset(&pool.lock);
    pool.slab.free = NULL;
    store_relaxed(&pool.filler, FILLER_NONE);
    for (int i = 0; i < KINDS; i++) {
        pool.kinds[i].first = NULL;
        pool.kinds[i].count = pool.kinds[i].level = 0;
    }
}

unsigned standby_ready(const struct kthread_kind *kind) {
    sigbits mask = signals_mask_set(SIGBITS_ALL & ~SIGBITS_LIBC);
    lock_acquire(&pool.lock);
    int place = place_of_locked(kind);
    unsigned count = place < 0 ? 0 : pool.kinds[place].count;
    lock_release(&pool.lock);
    signals_mask_set(mask);
    return count;
}
