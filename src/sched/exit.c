// SPDX-License-Identifier: Apache-2.0
/* Ending from within: thrum_exit, and pthread_exit or thrd_exit when a ULT calls them.
 *
 * The stack is unwound by the C++ runtime's own unwinder, if the program has one (libgcc_s), as the C library does it
 * for pthread_exit: frame by frame outwards; a frame's C++ destructors and `cleanup` attributes run, then what
 * thrum_cleanup_push has left in it. A program without the unwinder has no such frames, but may have cleanups. Then the
 * thread stands on an empty stack and ends as if its function had returned.
 *
 * What the unwinder works with lies in the stack's head (unit.h): destructors run on the same stack and overwrite
 * whatever is below their frames. */
#include "sched/exit.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>
#include <unwind.h>

#include "base/misuse.h"
#include "base/text.h"
#include "sched/cancel.h"
#include "sched/front.h"
#include "sched/worker.h"
#include "thrum/thrum.h"

_Static_assert(sizeof(struct _Unwind_Exception) <= sizeof(((struct unit_head *)0)->exception),
               "unit.h leaves room for it");

/* r/o after exit_init; NULL: the program has none. */
static _Unwind_Reason_Code (*forced_unwind)(struct _Unwind_Exception *, _Unwind_Stop_Fn, void *);
static _Unwind_Word (*frame_address)(struct _Unwind_Context *);

static _Noreturn void refuse(const char *line) {
    text_line(line, NULL, NULL);
    abort();
}

/* The C library's own; there may be no runtime yet. */
static _Noreturn void exit_kernel_thread(void *result) {
    void (*real)(void *);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_exit");
    annotate_frames_are_gone();
    real(result);
    abort();
}

/* --- kernel threads that must not end ------------------------------------------------------------------ */

/* The C library's pthread_exit is not ours where the library was loaded by dlopen, or where a part of the program has it from
 * dlsym(RTLD_NEXT). It would end the worker's kernel thread, and all that waits for the worker would hang. So each kernel
 * thread that runs units has a value of this key while it does. */
unsigned exit_watch_key = UINT_MAX;

static bool is_watched(void) {
    return exit_watch_key != UINT_MAX;
}

static void has_left(void *unused) {
    (void)unused;
    if (worker_here() != NULL)
        refuse(
            "a user-level thread called the C library's own pthread_exit(), which ends its worker's kernel "
            "thread (was libthrum loaded by dlopen?): link or preload libthrum, or call thrum_exit()");
}

void exit_init(void) {
    *(void **)&forced_unwind = dlsym(RTLD_DEFAULT, "_Unwind_ForcedUnwind");
    *(void **)&frame_address = dlsym(RTLD_DEFAULT, "_Unwind_GetCFA");
    pthread_key_t key;
    if (!is_watched() && pthread_key_create(&key, has_left) == 0)
        exit_watch_key = key;
}

void exit_watch(bool begins) {
    if (is_watched())
        pthread_setspecific(exit_watch_key, begins ? &exit_watch_key : NULL);
}

/* --- ending ------------------------------------------------------------------------------------------- */

/* Those that lie below `frame`, newest first. */
static void run_cleanups(struct thrum_unit *self, uintptr_t frame) {
    struct thrum_cleanup *cleanup;
    while (self->has_cleanups && (cleanup = self->cleanups) != NULL && (uintptr_t)cleanup < frame) {
        self->cleanups = cleanup->outer;
        cleanup->fn(cleanup->arg);
    }
}

/* Of `self` nothing is left but its stack. */
static _Noreturn void end(struct thrum_unit *self) {
    run_cleanups(self, UINTPTR_MAX);
    if (front_has(self)) {
        front_shape.exits(self->arg);
        self->successor = NULL;
    }
    annotate_frames_are_gone();
    arch_end(self, unit_first_frame(self));
}

static _Unwind_Reason_Code at_frame(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                    struct _Unwind_Exception *exception, struct _Unwind_Context *context,
                                    void *self) {
    (void)version, (void)class, (void)exception;
    if (actions & _UA_END_OF_STACK)
        end(self);
    run_cleanups(self, (uintptr_t)frame_address(context));
    return _URC_NO_REASON;
}

/* By the C++ runtime, when a handler that caught the end (catch (...)) does not throw it again. */
static void swallowed(_Unwind_Reason_Code reason, struct _Unwind_Exception *exception) {
    (void)reason, (void)exception;
    refuse("a catch (...) swallowed the end of its thread: it must rethrow");
}

static _Noreturn void unwind(struct thrum_unit *self) {
    if (forced_unwind != NULL && frame_address != NULL) {
        struct _Unwind_Exception *exception =
            (struct _Unwind_Exception *)(void *)&unit_head_of(self)->exception;
        *exception = (struct _Unwind_Exception){.exception_cleanup = swallowed};
        annotate_frames_are_gone();               /* destructors may overwrite those that are unwound */
        forced_unwind(exception, at_frame, self); /* returns only if it cannot */
    }
    end(self);
}

/* The thread that called thrum_init stands on its kernel thread's stack, and a tasklet on another's. */
static bool has_own_stack(const struct thrum_unit *self) {
    return !self->is_primary && load_relaxed(&self->kind) != UNIT_LOOP;
}

static _Noreturn void exit_to(void *result, struct thrum_unit *successor) {
    struct worker *worker = enter();
    struct thrum_unit *self = worker != NULL ? worker->current : NULL;
    leave();
    if (self == NULL)
        exit_kernel_thread(result);
    if (load_relaxed(&self->kind) == UNIT_TASKLET)
        refuse("a tasklet must end by returning, not by thrum_exit()");
    if (load_relaxed(&self->kind) == UNIT_LOOP)
        refuse("a scheduler's function must end by returning, not by thrum_exit()");
    if (!has_own_stack(self)) {
        fcloseall(); /* what exit() does about streams, and without their locks: a reader may have stdin's */
        refuse("the thread that called thrum_init() must end by returning from main, or by exit()");
    }
    const char *line = front_has(self) ? front_shape.must_return(self->arg) : NULL;
    if (line != NULL)
        refuse(line);
    self->escaped = true;
    store_relaxed(&self->extras, true);
    cancel_disable(self);
    /* A front end's has no result and no successor: it is known by its function, in whose place the successor is stored, and by
     * its argument, while destructors run. */
    if (!front_has(self)) {
        self->arg = result;
        self->successor = successor;
    }
    unwind(self);
}

void thrum_exit(void *result) {
    exit_to(result, NULL);
}

void thrum_exit_to(void *result, thrum_t successor) {
    exit_to(result, successor);
}

/* In the C library's place, for all of the program. */
__attribute__((visibility("default"))) void pthread_exit(void *result) {
    exit_to(result, NULL);
}

__attribute__((visibility("default"))) void thrd_exit(int result) {
    exit_to((void *)(intptr_t)result, NULL);
}

/* --- cleanups ----------------------------------------------------------------------------------------- */

void thrum_cleanup_enter(struct thrum_cleanup *cleanup) {
    if (is_null(cleanup) || cleanup->fn == NULL)
        misuse_null(__func__);
    struct thrum_unit *self = unit_self(enter());
    cleanup->outer = self->has_cleanups ? self->cleanups : NULL;
    self->cleanups = cleanup;
    self->has_cleanups = true;
    store_relaxed(&self->extras, true);
    leave();
}

void thrum_cleanup_leave(int run) {
    struct thrum_unit *self = unit_self(enter());
    struct thrum_cleanup *cleanup = self->has_cleanups ? self->cleanups : NULL;
    if (is_null(cleanup))
        misuse_end("thrum_cleanup_pop: no thrum_cleanup_push is open");
    self->cleanups = cleanup->outer;
    leave();
    if (run)
        cleanup->fn(cleanup->arg);
}
