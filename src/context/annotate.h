// SPDX-License-Identifier: Apache-2.0
/* Telling AddressSanitizer, LeakSanitizer, ThreadSanitizer and Valgrind about stacks of our own, when one of them is
 * in the process: libthrum itself is the same for all programs. Whether one is, is found out once (annotate_init).
 * Called around each switch.
 *
 *   ASan      must know on which stack it is, and keeps a stack of fake frames with each.
 *   LSan      looks for pointers on stacks that wait, and on those of kernel threads that run a unit.
 *   TSan      keeps a "fiber" with each unit that has begun: its call stack and its vector clock. A fiber may be in use
 *             on one kernel thread at a time, and a unit that has announced itself may be resumed elsewhere as soon as
 *             its registers are saved. So a worker that leaves a unit switches to the kernel thread's fiber before that,
 *             and takes the unit's own fiber after it when it resumes the unit.
 *   Valgrind  takes a change of the stack pointer for a switch if both stacks are registered.
 *
 * To TSan all that happens on one kernel thread is in order. It is, as thread-locals (errno) go; but a race between
 * two units is only seen when they ran on different workers. TSan learns of other ordering between units from
 * annotate_happens_before(object), which pairs with a later annotate_happens_after(object). */
#ifndef THRUM_CONTEXT_ANNOTATE_H
#define THRUM_CONTEXT_ANNOTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/inside.h"

/* A tool wants to be told about switches; r/o after annotate_init. */
extern bool annotate_on __attribute__((visibility("hidden")));

/* A tool delays signals, or has its own records in thread-locals: no unit can be preempted. Likewise. */
extern bool annotate_holds_signals __attribute__((visibility("hidden")));

/* A tool or the trace (sched/trace.h) wants to be told. The fast paths test this, so that two cost as little as one.
 * r/o while there are workers. */
extern bool watch_on __attribute__((visibility("hidden")));

/* Before there is any stack or worker. */
void annotate_init(void);

struct annotate_stack {
    char *low;
    size_t size;
};

/* A kernel thread that runs units. */
struct annotate_thread {
    struct annotate_stack stack; /* its own */
    void *fiber;                 /* TSan's of the kernel thread itself */
    void *loop_fiber;            /* that of its loop, if this has another stack: it never ends */
    void *next_fiber;            /* of the unit that begins next; NULL: none was made yet */
};

/* By that kernel thread, on its own stack. */
void annotate_thread_begin(struct annotate_thread *thread);
void annotate_thread_end(struct annotate_thread *thread);

/* A stack was made. It stays as long as its memory. */
SIGSAFE uint64_t annotate_stack_new(struct annotate_stack stack);
/* Its memory is about to be reused; `id` is what annotate_stack_new returned. */
void annotate_stack_gone(uint64_t id, struct annotate_stack stack);
/* The same for many that lie side by side. LSan reads /proc/self/maps once for each region that it is told of. */
SIGSAFE void annotate_stacks_new(struct annotate_stack stacks);
/* Guard pages must be mappings of their own. LSan sees from them what it must not read; Valgrind, which reads for the
 * kernel what system calls are given, would end by one that it does not know of. */
bool annotate_wants_mapped_guards(void);

/* What a stack that was left gets back when it is resumed; lies on it. */
struct annotate_left {
    void *fake_stack, *fiber;
};

/* Around a switch from the present stack to another one. What calls these must not return in between: TSan would count
 * its entry on one fiber and its exit on another. */
SIGSAFE void annotate_leave(struct annotate_left *left, const struct annotate_thread *thread,
                            struct annotate_stack to);
SIGSAFE void annotate_resume(const struct annotate_left *left);

/* Before the switch to a unit that begins: TSan's reports show the caller as its creator. */
void annotate_make(struct annotate_thread *thread);
/* A unit begins on this stack. `fresh`: it is entered by a switch; else another has just ended on it. */
void annotate_begin(struct annotate_thread *thread, struct annotate_stack stack, bool fresh);

/* It ends. Further work before another unit begins here, or the stack is left for good, counts as the thread's own. */
void annotate_end(const struct annotate_thread *thread, struct annotate_stack stack);
void annotate_leave_for_good(struct annotate_stack to);

/* The frames of the present stack will never be returned to. */
void annotate_frames_are_gone(void);

/* The unit that has just begun is the thread's loop. */
void annotate_is_loop(struct annotate_thread *thread);

SIGSAFE void annotate_release(void *object);
SIGSAFE void annotate_acquire(void *object);

static inline bool annotate_is_on(void) {
    return __builtin_expect(watch_on, 0);
}

static inline void annotate_happens_before(void *object) {
    if (annotate_is_on())
        annotate_release(object);
}

static inline void annotate_happens_after(void *object) {
    if (annotate_is_on())
        annotate_acquire(object);
}

/* Functions that begin on one fiber or stack and end on another. */
#ifdef __clang__
#define ANNOTATE_BETWEEN __attribute__((disable_sanitizer_instrumentation))
#else
#define ANNOTATE_BETWEEN __attribute__((no_sanitize_address, no_sanitize_thread))
#endif

#endif
