// SPDX-License-Identifier: Apache-2.0
/* One worker's slot: its memory, and the kernel thread, or the loop on carriers, that is the worker. Which slots there are, and
 * when, is workers.c. */
#ifndef THRUM_RUNTIME_MEMBER_H
#define THRUM_RUNTIME_MEMBER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/inside.h"
#include "sched/worker.h"

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
#define MEMBER_HAS_LEFT ((struct thrum_unit *)1)

static inline struct member *member_of(uint32_t slot) {
    return (struct member *)(void *)runtime.workers[slot];
}

/* In the slot behind the last, which does not count yet. False: no memory. */
bool member_new(uint32_t slot);
/* No thread is in it any more. */
void member_delete(uint32_t slot);

/* Nothing is bound to it, and it is never stopped. */
void member_relieves(struct member *member);

/* By the kernel thread that is this worker, before it runs anything; and at its end. False: it cannot be. */
bool member_begin(struct worker *worker, struct thrum_unit *primary);
void member_end(struct worker *worker);

/* Of these two, what any kernel thread needs that runs units. Below the worker are overflow_stack_bytes() of memory for it. */
void member_thread_begin(struct worker *worker);
void member_thread_end(struct worker *worker);

/* Its loop gets a stack of its own, on which it calls fn(worker). False: no memory. */
INSIDE bool member_make_loop(struct worker *worker, void *(*fn)(void *));

/* Its kernel thread begins, or it is given to a carrier. 0, EAGAIN, ENOMEM. */
int member_start(struct member *member);
/* Waits for its end, if it has one. */
void member_join(struct member *member);

/* What finds the calling kernel thread's C++ exceptions in flight; NULL: the program has no C++, and no plugin that has. Before
 * there are workers. */
struct exception_globals *(*member_exceptions(void))(void);

/* struct preempt_callbacks's. */
INSIDE void member_is_over(struct worker *worker);

#endif
