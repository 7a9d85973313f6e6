// SPDX-License-Identifier: Apache-2.0
/* All that this folder calls of folders above it. src/preempt defines it, and src/runtime the last. A call upward that is
 * not listed here fails the test build.calls. */
#ifndef THRUM_SCHED_UPWARD_H
#define THRUM_SCHED_UPWARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/inside.h"
#include "thrum/preempt.h"
#include "thrum/trace.h"

struct tcb;
struct thrum_unit;
struct own_block;
struct worker;

/* --- leaving a region (current.h): preempt/handler.c -------------------------------------------------- */

/* A preemption came while the region was open: do now what the signal did not. */
void preempt_pending(void);

/* --- ticks (tick.h): preempt/tick.c ------------------------------------------------------------------- */

/* The worker is about to run a unit from its loop; its state is OFF. */
INSIDE void tick_begin(struct worker *worker);

/* It searches: its state is REST. */
INSIDE void tick_end(struct worker *worker);

/* If it rests it gets ticks again: there is something to do, or to find out. By any thread, signal handlers too. */
SIGSAFE void tick_resume(struct worker *worker);

/* A timer was started that goes off before all others of this worker. */
INSIDE void tick_has_deadline(struct worker *worker, uint64_t deadline);

/* Something was pushed while some rest. */
INSIDE void tick_wake_resting(void);

/* There is something that goes before what this worker runs. */
INSIDE void tick_interrupt(struct worker *worker);

/* A thread requests this mode (DEFAULT: any) and a slice (us; 0: any). False: the runtime does not have it. */
bool tick_can_preempt(enum thrum_preempt_mode mode, uint32_t slice);

/* --- thread control blocks (tcb.h): preempt/lend.c, preempt/primary.c --------------------------------- */

/* The unit that the worker, which is short of a block in reserve, runs instead of `unit`: `unit` itself; or, if the
 * worker still has no block and `unit` would need one if it were preempted, another one, and `unit` is put back;
 * NULL: none. */
INSIDE struct thrum_unit *tcb_instead(struct worker *worker, struct thrum_unit *unit);

/* The primary, which has its block for life, resumes on this worker, or leaves it. */
INSIDE void primary_comes(struct worker *worker);
INSIDE void primary_leaves(struct worker *worker);

/* --- carriers (carrier.h): preempt/carrier.c ---------------------------------------------------------- */

/* The worker continues elsewhere with `next`, at once, while `self` keeps the present kernel thread. `self` has
 * announced itself by UNIT_KEPT, or is the primary. If `next` keeps no kernel thread, the worker continues on its
 * reserve, and gets `spare`, which may be NULL, as the new reserve. Returns when a worker resumes `self`, inside. */
INSIDE void carrier_keep(struct worker *worker, struct thrum_unit *self, struct thrum_unit *next,
                         struct tcb *spare, enum thrum_trace_kind why);

/* The worker leaves its loop `self` and the present kernel thread for the one that `unit` keeps. Returns when the
 * loop is resumed. */
INSIDE void carrier_go_to(struct worker *worker, struct thrum_unit *self, struct thrum_unit *unit);

/* --- threads with thread-locals of their own (mode OWN_TLS): preempt/own.c ---------------------------- */

/* Such a thread has a thread control block for life (preempt/blocks.h), or where that is not possible that of a kernel thread
 * which is created for it, and sleeps meanwhile. The block is installed before the thread's function is called; from there on
 * it works as with the primary (tcb.h). When the function has returned, destructors of thread-locals run on the thread,
 * and its block is as new for another; the kernel thread runs them itself, and ends. */

/* Whether this runtime has what such threads need, and whether they are its default; r/o while there are workers. */
extern bool own_is_possible, own_is_default;

/* Is a thread of this mode (as requested, so perhaps DEFAULT) one of these? */
static inline bool own_is_wanted(enum thrum_preempt_mode mode) {
    return mode == THRUM_PREEMPT_DEFAULT ? own_is_default : mode == THRUM_PREEMPT_OWN_TLS && own_is_possible;
}

/* Creates what it runs on, and changes the function to be called into one that installs it. 0 or EAGAIN. */
NOT_INSIDE int own_make(void *(**fn)(void *), void **arg);
/* The same by one that is as new. False: this worker has none. */
INSIDE bool own_take(struct worker *worker, void *(**fn)(void *), void **arg);
/* `child`, which has that function, is called now, on this worker: it begins with its block installed. The caller has left its own,
 * if it has one, or has no exceptions in flight. */
INSIDE void own_begin(struct worker *worker, struct thrum_unit *child);
/* The function that the thread, which has not ended, was created to run. For inspection. */
SIGSAFE void *(*own_function(const struct thrum_unit *unit))(void *);
/* It was not spawned, after all. */
NOT_INSIDE void own_unmake(void *arg);

/* The function of `self` has returned. own_renew: runs destructors, and makes its block as new; NULL: that is not possible, or
 * not here. Then own_leave: the worker's block is installed, and `self` is not preempted any more: it would seem to have had no block
 * for life (worker_owes_from). Or own_stay, if it returns true: `self` has none any more, but it is
 * still installed, and the next unit that runs here installs another at once. Nothing else runs before that. */
NOT_INSIDE struct own_block *own_renew(const struct thrum_unit *self);
INSIDE void own_leave(struct worker *worker, struct thrum_unit *self, struct own_block *as_new);
INSIDE bool own_stay(struct worker *worker, struct thrum_unit *self, struct own_block *as_new);

/* The argument of the present unit's function. */
void *own_argument(const struct thrum_unit *self);

/* --- threads with a kernel thread of their own: runtime/solo.c ------------------------------------------ */

/* A kernel thread that waits for its unit (unit_set_solo). 0 or EAGAIN. */
NOT_INSIDE int solo_make(struct worker **made);
/* No unit comes, after all. */
NOT_INSIDE void solo_unmake(struct worker *solo);

/* The caller's function has returned, and it may have a kernel thread of its own: leaves that. */
NOT_INSIDE void solo_end(struct thrum_unit *self);

/* --- the default runtime: runtime/init.c -------------------------------------------------------------- */

/* Starts a runtime where there is none. 0 or an errno. */
int scheduler_start_default(void);

#endif
