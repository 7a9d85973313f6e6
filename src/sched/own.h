// SPDX-License-Identifier: Apache-2.0
/* Threads with thread-locals of their own (mode OWN_TLS). Defined by src/preempt/own.c.
 *
 * Such a thread has a thread control block for life, that of a kernel thread that was made for it and sleeps meanwhile. It
 * is installed before the thread's function is called; from there on it is as with the primary (tcb.h). When the thread
 * has ended the kernel thread ends, too: only then are the destructors of its thread-locals called, there. */
#ifndef THRUM_SCHED_OWN_H
#define THRUM_SCHED_OWN_H

#include <stdbool.h>

#include "thrum/preempt.h"

struct thrum_unit;

/* This runtime has what such threads need, and makes such if nothing else is asked for; r/o while there are workers. */
extern bool own_is_possible, own_is_default;

/* Is a thread of this mode (as asked for, so perhaps DEFAULT) such a one? */
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

/* What the present unit's function was given. */
void *own_argument(const struct thrum_unit *self);

#endif
