// SPDX-License-Identifier: Apache-2.0
/* Threads with thread-locals of their own (mode OWN_TLS). Defined by src/preempt/own.c.
 *
 * A kernel thread is created for such a thread and sleeps meanwhile: its thread control block is the thread's for
 * life. The block is installed before the thread's function is called; from there on it works as with the primary
 * (tcb.h). When the thread has ended the kernel thread ends, too: only then are the destructors of its thread-locals
 * called, there. */
#ifndef THRUM_SCHED_OWN_H
#define THRUM_SCHED_OWN_H

#include <stdbool.h>

#include "thrum/preempt.h"

struct thrum_unit;

/* Whether this runtime has what such threads need, and whether they are its default; r/o while there are workers. */
extern bool own_is_possible, own_is_default;

/* Is a thread of this mode (as requested, so perhaps DEFAULT) one of these? */
static inline bool own_is_wanted(enum thrum_preempt_mode mode) {
    return mode == THRUM_PREEMPT_DEFAULT ? own_is_default : mode == THRUM_PREEMPT_OWN_TLS && own_is_possible;
}

/* Creates what it runs on, and changes the function to be called into one that installs it. 0 or EAGAIN. Not inside. */
int own_make(void *(**fn)(void *), void **arg);
/* The function that the thread, which has not ended, was created to run. For inspection. */
void *(*own_function(const struct thrum_unit *unit))(void *);
/* It was not spawned, after all. Not inside. */
void own_unmake(void *arg);

/* The caller's function has returned. Not inside. */
void own_end(struct thrum_unit *self);

/* The argument of the present unit's function. */
void *own_argument(const struct thrum_unit *self);

#endif
