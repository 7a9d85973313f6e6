// SPDX-License-Identifier: Apache-2.0
/* Which threads are kept, and how idle ones are ended.
 *
 * Keeping stops for good when the library can no longer vouch for the process: main() has left by pthread_exit
 * and libc must find the last thread, or something happened that is not undone (kthread_stop_keeping's callers).
 *
 * Stopping against threads that are ending (modelled in tests/model/handoff.pml):
 *   stopper: keeping := false; then ends every idle thread and makes every ENDED one leave (POST_LAST).
 *   ending thread: publishes itself as ENDED or idle; then looks at `keeping` again (take_back in kthread.c).
 * Both are sequentially consistent, store before load on either side, so at least one of the two sees the
 * other; the cas on `life` and the idle list's lock settle it when both do. With anything weaker both loads
 * could come first and a thread would stay parked in a process that waits for it to end.
 *
 * A new generation of the main thread's rights (kthread_change_rights) is the same for threads of earlier generations:
 * the number is raised, then idle and ENDED threads are ended; one that ends looks at the number again.
 */
#include "base/atomic.h"
#include "base/rows.h"
#include "kthread/alternative.h"
#include "kthread/counters.h"
#include "kthread/gate.h"
#include "kthread/how_many.h"
#include "kthread/idle.h"
#include "kthread/internal.h"
#include "kthread/libc.h"
#include "kthread/retain.h"
#include "os/clock.h"
#include "os/futex.h"

struct kthread_config kthread_config = {.max_idle = KTHREAD_MAX_IDLE_UNSET};

static const char *state = "on"; /* "on" while threads are kept, else why not */
static bool main_has_exited;
static uint32_t kept = true;

bool keeping(void) {
    fence_seq_cst(); /* after the publication that came before; pairs with kthread_stop_keeping's */
    return load_seq_cst(&kept); /* pairs with the store or exchange of false */
}

bool may_be_kept(const struct kthread *thread) {
    return keeping() && (lineage_has_rights_of_main(thread->kind.lineage) || skipped(ROW_RIGHTS));
}

bool kthread_keeping(void) {
    return load_relaxed(&kept);
}

enum kthread_retire keeping_retire(void) {
    if (kthread_keeping())
        return RETIRE_LINEAGE;
    return load_relaxed(&main_has_exited) ? RETIRE_LAST : RETIRE_OFF;
}

/* Where nothing speaks against keeping it, its kernel thread was in the way: of a limit, of an unshare, of a copy. */
enum kthread_retire expelled_retire(const struct kthread *thread) {
    return may_be_kept(thread) ? RETIRE_UNJOINED : keeping_retire();
}

const char *kthread_state(void) {
    return load_relaxed(&state);
}

void kthread_end(struct kthread *thread) {
    pthread_t handle = thread->handle;
    kthread_post(thread, POST_QUIT);
    int old;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    libc.pthread_join(handle, NULL);
    pthread_setcancelstate(old, &old);
    registry_free(thread);
}

void kthread_release(struct kthread *thread) {
    const uint64_t lineage = thread->kind.lineage; /* pushed, it may be another creator's at once */
    if (!idle_push(thread)) {
        counters_retired(how_many_full());
        kthread_end(thread);
    } else if (!keeping() || !lineage_has_rights_of_main(lineage)) {
        kthread_cull();
    } else {
        retain_listed(thread);
    }
}

/* libc's join returns when the kernel has cleared the thread's tid, which is a little before the kernel stops
 * counting the thread: an unshare that wants a process of one thread, or a fork at its limit, would still find it.
 * Only briefly: after a second it is another thread with the same tid. */
void wait_until_gone(pid_t tid) {
    uint64_t give_up = clock_monotonic_ns() + UINT64_C(1000000000);
    while (sys(SYS_tgkill, sys(SYS_getpid), tid, 0) == 0 && clock_monotonic_ns() < give_up)
        sched_yield();
}

/* --- departures ---------------------------------------------------------------------------------------- */

/* A thread that leaves by itself has no joiner, and libc counts it and holds locks of its own for it until it is
 * gone. Others must be able to wait for that: an unshare that wants a process of one thread, a bare clone whose child
 * would have libc's locks as they are. So it is not detached. Its last act is to list itself here; the next thread
 * that departs, creates or culls joins it.
 *
 * `departing` counts threads that are about to leave or to end others, `copies` the copies that are being made. Both
 * sides store their own and then load the other's, sequentially consistent, and so pair: a departure that a copier did
 * not see sees the copier, and waits. */
static uint32_t departing, copies;
static struct kthread *departed; /* by next_idle; only ever taken as a whole, so there is no ABA: the cas of a
                                 * departure pairs with the exchange in reap */

bool departures_begin(void) {
    fetch_add_seq_cst(&departing, 1);
    if (load_seq_cst(&copies) == 0)
        return true;
    departures_end(NULL);
    return false;
}

/* Pairs with await_departures: a culler that sees 0 finds all that departed in the list. */
void departures_end(struct kthread *thread) {
    if (thread != NULL) {
        thread->left_tid = thread->tid;
        store_relaxed(&thread->tid, 0); /* the kernel may soon give it to another */
        thread->next_idle = load_relaxed(&departed);
        while (!cas_acq_rel(&departed, &thread->next_idle, thread)) {
        }
    }
    fetch_sub_seq_cst(&departing, 1);
    futex_wake(&departing, INT32_MAX);
}

/* Its joiner may come much later: until then it is found among all by `left_tid`. The descriptor is the joiner's as soon
 * as RETIRED is published, but stays until libc's join has seen the thread gone. */
static bool any_unjoined; /* only becomes true */

bool departures_unjoined(struct kthread *thread) {
    uint32_t life = LIFE_ENDED;
    thread->left_tid = thread->tid;
    store_relaxed(&any_unjoined, true);
    /* Pairs with await_unjoined and the joiner's reap. */
    if (!cas_acq_rel(&thread->life, &life, LIFE_RETIRED))
        return false;
    how_many_not_unjoined(thread);
    store_relaxed(&thread->tid, 0); /* the kernel may soon give it to another */
    return true;
}

/* Under the registry's lock, which one that leaves does not need. */
static void await_unjoined(struct kthread *thread, void *unused) {
    (void)unused;
    /* Pairs with departures_unjoined: left_tid is there. */
    if (load_acquire(&thread->life) != LIFE_RETIRED || thread->left_tid == 0)
        return;
    wait_until_gone(thread->left_tid);
    thread->left_tid = 0;
}

static void reap(bool until_gone) {
    int old;
    struct kthread *thread = exchange_acq_rel(&departed, (struct kthread *)NULL);
    if (thread == NULL)
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    for (struct kthread *next; thread != NULL; thread = next) {
        next = thread->next_idle;
        libc.pthread_join(thread->handle, NULL);
        if (until_gone)
            wait_until_gone(thread->left_tid);
        registry_free(thread);
    }
    pthread_setcancelstate(old, &old);
}

void departures_reap(void) {
    if (load_relaxed(&departed) != NULL)
        reap(false);
}

/* Not in a signal handler that interrupted its own thread in the idle list: those that depart want its lock. */
static void await_departures(void) {
    uint32_t seen;
    if (idle_is_inside())
        return;
    while ((seen = load_seq_cst(&departing)) != 0)
        futex_wait(&departing, seen);
    reap(true);
    if (load_relaxed(&any_unjoined))
        registry_each(await_unjoined, NULL);
}

void kthread_before_copy(void) {
    fetch_add_seq_cst(&copies, 1);
    await_departures();
    if (kthread_alternative != NULL)
        kthread_alternative->before_copy();
}

/* 0 in a fork's child, where a handler that interrupted the copier had forked. */
void kthread_after_copy(void) {
    if (load_relaxed(&copies) != 0)
        fetch_sub_seq_cst(&copies, 1);
}

void departures_fork_child(void) {
    departing = copies = 0;
    departed = NULL;
    any_unjoined = false;
}

/* --- all idle ones -------------------------------------------------------------------------------------- */

/* Threads that ended and are not joined: without reuse no kernel thread would be left of them. Their results stay in
 * their descriptors. */
struct expelled {
    unsigned count;
    pid_t tids[64];
};

static void expel(struct kthread *thread, void *argument) {
    struct expelled *expelled = argument;
    uint32_t life = LIFE_ENDED;
    pid_t tid = load_relaxed(&thread->tid);
    /* Pairs with publish. */
    if (expelled->count == sizeof expelled->tids / sizeof *expelled->tids ||
        !cas_acq_rel(&thread->life, &life, LIFE_RUNNING)) /* until the thread itself says RETIRED */
        return;
    expelled->tids[expelled->count++] = tid;
    kthread_post(thread, POST_LAST);
}

static unsigned expel_ended(void) {
    struct expelled expelled;
    unsigned all = 0;
    do {
        expelled.count = 0;
        registry_each(expel, &expelled);
        for (unsigned i = 0; i < expelled.count; i++)
            wait_until_gone(expelled.tids[i]);
        all += expelled.count;
    } while (expelled.count != 0);
    return all;
}

/* All are told before the first is waited for. Idle ones first, as in tests/model/handoff.pml. */
unsigned kthread_cull(void) {
    struct kthread *first = NULL, *thread;
    unsigned count = 0, others = kthread_alternative == NULL ? 0 : kthread_alternative->cull();
    while ((thread = idle_pop_any()) != NULL) {
        thread->next_idle = first;
        first = thread;
        count++;
        kthread_post(thread, POST_QUIT);
    }
    int old;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    while ((thread = first) != NULL) {
        first = thread->next_idle;
        libc.pthread_join(thread->handle, NULL);
        wait_until_gone(thread->tid);
        registry_free(thread);
    }
    pthread_setcancelstate(old, &old);
    await_departures();
    fetch_add_relaxed(&thrum_cache_counters.culled, count);
    return count + others + expel_ended();
}

static void say_why(const char *why) {
    const char *was = "on";
    cas_relaxed(&state, &was, why);
}

void kthread_keep_none(const char *why) {
    say_why(why);
    store_seq_cst(&kept, false); /* pairs with keeping */
}

void kthread_stop_keeping(const char *why) {
    say_why(why);
    if (!exchange_seq_cst(&kept, (uint32_t) false)) /* pairs with keeping */
        return;                                     /* the first to stop has told them all, or is about to */
    fence_seq_cst();                                /* pairs with keeping's */
    kthread_cull();
}

/* --- a filter is coming ---------------------------------------------------------------------------------- */

/* It may hold for all threads (SECCOMP_FILTER_FLAG_TSYNC): none of the library's own calls may be left to be made by one that is
 * inside. Those are the threads whose gate is closed or not open yet: from a creator's taking one to the first instruction of
 * its job, and from the job's end until it is parked or gone. Ones with a joiner that must come first have been expelled. */
static void count_inside(struct kthread *thread, void *count) {
    uint32_t life = load_acquire(&thread->life); /* this and the next pair with publish and gate_open */
    uint32_t gate = load_acquire(&thread->gate);
    if ((gate & (GATE_CLOSED | GATE_STARTING)) != 0 && life != LIFE_RETIRED)
        ++*(unsigned *)count;
}

/* None of them has been killed yet: only the first filter of a process is announced here, and it is not installed yet. */
static void await_those_inside(void) {
    uint64_t give_up =
        clock_monotonic_ns() + UINT64_C(1000000000); /* one may wait for a lock of the caller's */
    unsigned count;
    for (;;) {
        count = 0;
        registry_each(count_inside, &count);
        if (count == 0 || clock_monotonic_ns() > give_up)
            return;
        sched_yield();
        kthread_cull(); /* what has been published meanwhile */
    }
}

static uint32_t may_be_killed;

bool kthread_may_be_killed(void) {
    fence_seq_cst(); /* after the joiner's AWAITED: this and the next pair with kthread_filter_comes */
    return load_seq_cst(&may_be_killed);
}

/* Its joiner looks at may_be_killed again. */
static void wake_joiner(struct kthread *thread, void *unused) {
    (void)unused;
    uint32_t life = LIFE_AWAITED;
    if (cas_acq_rel(&thread->life, &life, LIFE_RUNNING)) /* pairs with sleep_until_ended */
        futex_wake(&thread->life, INT32_MAX);
}

/* Without threads of ours no system call is made. One that is just being created counts, and so does that of a child that it has
 * forked itself: threads of libc's may join it there. */
void kthread_filter_comes(void) {
    kthread_stop_keeping("a seccomp filter was installed");
    fence_seq_cst(); /* after it is known, by whichever thread; pairs with start_new's keeping() */
    if (registry_is_empty())
        return;
    await_those_inside();
    store_seq_cst(&may_be_killed, 1); /* this and the next pair with kthread_may_be_killed */
    fence_seq_cst();
    registry_each(wake_joiner, NULL);
}

void kthread_main_exits(void) {
    if (skipped(ROW_LAST_THREAD))
        return;
    store_relaxed(&main_has_exited, true);
    kthread_stop_keeping("the main thread has exited");
}

/* --- fork --------------------------------------------------------------------------------------------- */

/* Nothing is locked before a fork: a signal handler may call fork in the middle of anything. The child forgets the
 * lists and the slab instead of reading them, which costs it a few kilobytes.
 *
 * Only the caller is left. Threads that waited for it or were about to reach it are gone. */
static void become_sole_thread(struct kthread *self) {
    kthread_adopt_tid(self);
    store_relaxed(&self->gate, load_relaxed(&self->gate) & GATE_CLOSED);
    store_relaxed(&self->joiner, 0);
    uint32_t life = LIFE_AWAITED;
    cas_relaxed(&self->life, &life, LIFE_RUNNING);
}

/* If the caller was not the main thread there is none now, and libc must find the child's last thread. */
void kthread_fork_child(bool by_main) {
    tls_fork_child();
    creator_fork_child();
    struct kthread *self = kthread_self_sigsafe();
    if (skipped(ROW_FORK))
        return;
    if (!by_main) {
        main_has_exited = true;
        state = "the main thread is not in this process";
        kept = false;
    }
    if (self != NULL)
        become_sole_thread(self);
    idle_fork_child();
    place_fork_child();
    how_many_fork_child();
    retain_fork_child();
    departures_fork_child();
    because_fork_child();
    registry_fork_child(self);
    if (kthread_alternative != NULL)
        kthread_alternative->fork_child();
    counters_fork_child(self != NULL);
}
