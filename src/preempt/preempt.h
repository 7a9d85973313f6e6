// SPDX-License-Identifier: Apache-2.0
/* Preemption: how long does a unit keep what it runs on?
 *
 *   1. A tick (tick.c) interrupts the kernel thread of a worker: handler.c. If a non-preemptible region is open there
 *      (sched/current.h) it is noted in the word that counts them, and takes place when the last is left.
 *   2. The handler finds out whether the slice is over and which unit runs next. If none is runnable, the worker rests: no more
 *      ticks.
 *   3. By the unit's mode: it keeps nothing, or its thread control block (lend.c), or the kernel thread under it
 *      (carrier.c). It is enqueued as if it yielded, in the middle of the handler, whose frame lies on its stack.
 *   4. A worker resumes it like any other: it takes back what it kept, and returns from the handler.
 *
 * Invariants. Nothing is preempted that is inside, a loop or a tasklet. A worker always has a block to continue with:
 * that of a unit that keeps its own is replaced first, and a worker that cannot replace it does not preempt (lend.c).
 *
 * Modelled in tests/model: tick.pml, monitor.pml, defer.pml, interrupt.pml, choose.pml, lend.pml, arm.pml,
 * primary.pml, carrier.pml, blocked.pml, relief.pml and relief_rest.pml, and how it ends in closing.pml. */
#ifndef THRUM_PREEMPT_PREEMPT_H
#define THRUM_PREEMPT_PREEMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/inside.h"
#include "os/alarm.h"
#include "thrum/preempt.h"

/* Libc's own (libc_signals.c). */
enum { SIGNAL_CANCEL = 32, SIGNAL_SET_IDS = 33 };

struct thrum_unit;
struct worker;
struct tcb;
struct tick;
struct exception_globals;

/* What preemption needs from the layer above. */
struct preempt_callbacks {
    uint32_t workers; /* that there will be */
    struct exception_globals *(*exceptions_here)(
        void);                      /* of the calling kernel thread; NULL: the program has no C++ */
    void (*place)(uint32_t worker); /* as in struct preempt */
    /* By the provider, at the first preemption: makes what preempt_make_spares says, for all workers and the relief
     * worker. False: not available, or not now. */
    bool (*arm)(void);
    /* By the provider: makes one more relief worker. False: not available, or not now. */
    bool (*add_relief)(void);
    /* by a kernel thread that runs nothing any more: a worker started by preempt_worker_start is over. Inside; the
     * worker may be gone when this returns */
    void (*is_over)(struct worker *worker);
};

struct preempt_settings {
    enum thrum_preempt_mode mode;  /* not DEFAULT */
    bool is_lazy;                  /* LEND: what only preemption needs is made at the first preemption */
    enum thrum_tick_source source; /* DEFAULT: a timer, or the monitor if none is available */
    uint64_t slice;                /* ns */
    bool by_donors; /* spare blocks are donors' (donors.c), even where they need no kernel thread */
    int signal;
};

/* How far preemption has come to its end (preempt_close()). */
enum preempt_closing {
    PREEMPT_OPEN,
    PREEMPT_CLOSING, /* only the relief worker preempts; the primary waits until no unit is away */
    PREEMPT_CLOSED,  /* no unit is preempted. The primary looks once more, and may go back to CLOSING */
};

/* r/o while there are workers, but for what is said to change. */
extern struct preempt {
    struct preempt_settings settings;
    bool on;            /* mode is not NONE */
    bool by_safepoints; /* ... but a tool is in the way (context/annotate.h): threads yield at safepoints */
    bool lends;         /* workers run on spare blocks (spares.h) */
    bool carries;       /* workers run on carriers (sched/carrier.h) */
    uint32_t armed;   /* units that keep their blocks can be preempted: the store of 1 pairs with its load */
    uint64_t period;  /* ns: of ticks, the shortest slice requested; changes, as the next three */
    uint32_t owners;  /* units that have a block for life */
    uint32_t closing; /* enum preempt_closing; of the primary, which writes it */
    uint32_t away;    /* units that were, and have not resumed since; not those in pools */
    uint32_t away_in_pools;                             /* those */
    struct exception_globals *(*exceptions_here)(void); /* of the calling kernel thread; NULL: no C++; r/o */
    void (*place)(
        uint32_t worker); /* the caller's kernel thread is that worker now; NULL: all may run anywhere; r/o */
} preempt;

/* How much of what preemption keeps in reserve there is: src/inspect tells it. Each is written under the lock of the list that
 * it counts. */
extern struct preempt_counts {
    uint32_t spare; /* blocks to lend, or carriers, that no unit uses (spares.c) */
    uint32_t kept;  /* blocks without a kernel thread that are as new, in no worker's list (blocks.c) */
    uint32_t
        donors; /* kernel threads that lend their block, or are carriers, and were not told to end (donors.c) */
} preempt_counts;

/* A preempted unit may keep what its worker runs on, a block or its kernel thread: there are spare ones. */
static inline bool preempt_has_spares(void) {
    return preempt.lends || preempt.carries;
}

/* A tick has come to this kernel thread while no worker ran on it, and was the last: by the handler, until a worker comes. */
extern __thread uint32_t preempt_dropped __attribute__((visibility("hidden"), tls_model("initial-exec")));

/* --- life --------------------------------------------------------------------------------------------- */

/* Before there are workers. 0, EAGAIN, EINVAL. */
int preempt_start(const struct preempt_settings *settings, const struct preempt_callbacks *callbacks);
/* A runtime with preemption by default makes what only preemption needs at the first use: spares, reserves, and the
 * relief worker. Until then no unit is preempted that would keep a block; so none of them holds a lock for which the
 * maker of these would wait. _make_spares: for so many workers; EAGAIN: the system has none. _give_reserve: to each.
 * Then _armed. Workers are not added meanwhile. */
NOT_INSIDE int preempt_make_spares(uint32_t workers);
void preempt_give_reserve(struct worker *worker);
void preempt_armed(void);
/* No thread makes any more from here on. */
NOT_INSIDE void preempt_make_no_more(void);
static inline bool preempt_is_armed(void) {
    return load_acquire(&preempt.armed) != 0;
}

/* By the primary unit, while all workers still run: lets every preempted unit, which may hold a lock of libc's, run
 * until it waits, yields or ends. */
void preempt_close(void);
/* There are workers, or more than before; and when none of them runs any more. */
void preempt_workers_made(void);
void preempt_workers_over(void);
/* When there are none any more. */
void preempt_stop(void);
/* `worker`: that of the kernel thread that called fork, or NULL. */
void preempt_fork_child(const struct worker *worker);

/* Before a worker's kernel thread is created, or `worker` of the thread that calls thrum_init. False: nothing
 * available for it. */
bool preempt_worker_ready(struct worker *worker);
/* It is not to be, after all. */
void preempt_worker_unready(struct worker *worker);
/* Likewise (own.c): the first of its threads finds a block, where threads with one for life are this runtime's default. */
NOT_INSIDE void own_prepare(struct worker *worker);
/* By the kernel thread that becomes the worker; `primary`: what runs on it continues as that unit, else NULL. False:
 * there is nothing to interrupt it, or no memory. And at its end, when it runs nothing any more. */
bool preempt_worker_begin(struct worker *worker, struct thrum_unit *primary);
void preempt_worker_end(struct worker *worker);

/* By a kernel thread on which a single unit runs (runtime/solo.h), which so needs no ticks; inside, before the unit comes, and
 * after it. */
INSIDE void preempt_solo_begin(struct worker *worker);
INSIDE void preempt_solo_end(struct worker *worker);

/* Where workers run on carriers, instead of a kernel thread of its own: runs `worker`, which is ready, and whose loop
 * has a frame; and to be called by its loop, inside, when that is over. */
void preempt_worker_start(struct worker *worker);
INSIDE _Noreturn void preempt_worker_stop(struct worker *worker);

/* A runtime of this mode has blocks to lend; carriers. */
bool preempt_lends(enum thrum_preempt_mode mode);
bool preempt_carries(enum thrum_preempt_mode mode);

/* How many units with a block for life can have left a worker's unused at one time. */
SIGSAFE uint32_t preempt_owners_at_once(void);

/* --- handler.c ---------------------------------------------------------------------------------------- */

/* The program has one for the signal. */
bool handler_would_intrude(void);
int handler_install(void);
void handler_remove(void);

/* Code that acts on what it has found of its worker, and cannot be in a region: a thread that is there is not preempted. It is
 * when it next begins a stay (runtime/stay.h), or by the next tick. Before the first runtime. */
void handler_spares(const void *code, size_t size);
SIGSAFE bool handler_is_to_spare(uintptr_t pc);

/* --- tick.c ------------------------------------------------------------------------------------------- */

/* What interrupts a kernel thread: a timer of its own, or none, and the monitor does it (monitor.h). False: neither
 * is available. */
bool tick_source(struct alarm *alarm, int32_t tid);

/* False: nothing is available to interrupt it. */
bool tick_thread_begin(struct worker *worker);
void tick_thread_end(struct worker *worker);

/* Is there another unit that it could run? */
SIGSAFE bool tick_has_others(const struct worker *worker);
/* ... that it does not run as long as the present unit, which is from a pool, does not wait: that unit may wait in
 * the kernel for a lock that one of these holds. */
SIGSAFE bool tick_has_others_behind(const struct worker *worker);
/* Its loop, by a function of a scheduler's, while these could run. */
SIGSAFE bool tick_holds_others_up(const struct worker *worker);
/* There is not. On the worker, inside. */
INSIDE void tick_rest(struct worker *worker);
/* It searches, or is parked. */
SIGSAFE void tick_off(struct worker *worker);

/* Its kernel thread is another: its ticks go there. */
SIGSAFE void tick_has_moved(struct worker *worker);
/* It is on another kernel thread, whose handler finds it there. A signal that went to the former one, or came here
 * too early, is sent once more; so is one that came there in a region, and was noted on that thread's block. On the
 * worker. */
SIGSAFE void tick_has_arrived(struct worker *worker);
/* It has ended, and its kernel thread continues as something else. */
void tick_end_for_good(struct worker *worker);

/* The present unit resumes a call in the kernel, in which it was preempted: if it still waits there shortly after,
 * its slice is over. On the worker, inside. */
INSIDE void tick_look_soon(struct worker *worker);
/* The present unit computes: it was preempted and resumes, or a tick has not ended its slice. One more tick comes, if it may
 * have to give way before that. */
INSIDE void tick_finds_computing(struct worker *worker);
/* At a tick: must the present unit do so? `has_woken`: a timer of the worker's has just fired. */
INSIDE bool tick_gives_way(const struct worker *worker, bool has_woken);

/* In a child of fork, whose thread was on the worker of `tick`: it sleeps as precisely as before. */
void tick_slack_back(const struct tick *tick);

/* Is the present unit's slice, of so many ns, over? At a tick, once. */
INSIDE bool tick_ends_slice(struct worker *worker, const struct thrum_unit *unit, uint64_t slice);

/* --- lend.c ------------------------------------------------------------------------------------------- */

/* May the present unit of `worker` be preempted in favour of `next`? Else returns another unit for which it may be,
 * NULL: none, and `next` is put back. *spare: what it takes for that (mode.h). */
INSIDE struct thrum_unit *lend_choose_next(struct worker *worker, struct thrum_unit *next,
                                           struct tcb **spare);

/* --- own.c ------------------------------------------------------------------------------------------ */

/* Gives back the blocks that it keeps. */
INSIDE void own_worker_ends(struct worker *worker);

/* --- relief.c ----------------------------------------------------------------------------------------- */

/* A worker for relief is needed. */
SIGSAFE bool preempt_relieves(void);
/* Before it is there. */
void relief_start(void);
/* Instead of its loop, by each relief worker: runs until the runtime stops, and it is woken. */
void relief_loop(struct worker *worker);
void relief_wake(void);
/* By the primary, which it may have run: no worker is relieved any more, and the caller is at home. */
void relief_close(struct worker *home);
/* By the handler: the unit on `stuck` waits in the kernel and cannot be preempted. */
SIGSAFE void relief_ask(struct worker *stuck);
/* By the monitor: no tick comes to the unit that runs there, as it blocks the signal. Until one does, or the worker
 * switches. */
void relief_ask_held(struct worker *held);
/* It was requested for this one, which is still stuck. */
bool relief_is_wanted(const struct worker *stuck);
/* ... or can be, but its scheduler may choose it again and again. */
SIGSAFE void relief_ask_anyway(struct worker *worker);

/* --- primary.c ---------------------------------------------------------------------------------------- */

/* It has that block, its kernel thread's, for life, and may take it elsewhere. By that kernel thread, as the next. */
void primary_begin(uintptr_t base);
void primary_end(void);
void primary_fork_child(void);

/* Libc's signal to cancel has come to `here`, on which the caller runs: it was meant for the primary, which runs
 * there. Else the primary gets it where it runs, or when it does. By its handler. */
SIGSAFE bool primary_takes_cancel(const struct worker *here);

/* --- libc_signals.c ----------------------------------------------------------------------------------- */

/* Libc's handlers of its own signals find the block of the kernel thread that they are sent to, until _unwrap. To be
 * called when there are donors, and before a unit runs on a lent block. 0 or EAGAIN. */
int libc_signals_wrap(void);
void libc_signals_unwrap(void);
void libc_signals_fork_child(void);

/* By each donor: before its block can be lent, and when no unit runs on it any more and no thread has it. By the
 * kernel thread whose block the primary has, which is a worker (`works`): before that can be preempted, and when it
 * cannot any more. */
void libc_signals_follow(bool works);
void libc_signals_unfollow(void);

#endif
