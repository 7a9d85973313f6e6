// SPDX-License-Identifier: Apache-2.0
/* Coroutines of the program's (makecontext) in ULTs: a context has the signal mask of the kernel thread on which it was saved, and
 * swapcontext and setcontext of libc install it. On another worker that is another mask: the kernel thread that called
 * thrum_init would block all signals for good, so that SIGTERM does not end the program, or a worker would let some in. So
 * both are defined here in libc's place: a context that was saved with a worker's mask gets that of the present worker.
 * One that was saved with a mask of the program's choice keeps it.
 *
 * The caller may be preempted after the choice, and install the mask on another worker. Where the context resumes it looks at the
 * worker's turn in which the last mask was chosen: if that is not the present one, it sees to its mask itself. Until then the
 * thread stays there, as it has another mask than its worker (handler.c). A context that resumes in no swapcontext of this
 * library's does not look, as one that makecontext has just made. */
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>
#include <ucontext.h>

#include "runtime/children.h"
#include "runtime/masks.h"
#include "sched/worker.h"

#define PUBLIC __attribute__((visibility("default")))

/* Libc's own; r/o after the constructor. */
static struct {
    int (*swapcontext)(ucontext_t *, const ucontext_t *);
    int (*setcontext)(const ucontext_t *);
} libc;

static __attribute__((constructor)) void find(void) {
    *(void **)&libc.setcontext = dlsym(RTLD_NEXT, "setcontext");
    *(void **)&libc.swapcontext = dlsym(RTLD_NEXT, "swapcontext");
}

/* By the worker's number: in which of its turns a mask was chosen last. By that worker alone, inside. */
static uint64_t chosen_in[WORKERS_MAX];

static uint64_t turn_of(const struct worker *worker) {
    return load_relaxed(&worker->counters.switches) + 1;
}

static void take_workers_mask(const ucontext_t *context) {
    sigbits mask, workers;
    memcpy(&mask, &context->uc_sigmask, sizeof mask);
    const struct worker *worker = enter();
    bool differs = children_workers_mask(mask, &workers) && workers != mask;
    if (worker != NULL)
        chosen_in[worker->id] = turn_of(worker);
    leave();
    if (!differs)
        return;
    ucontext_t *changed = (ucontext_t *)(uintptr_t)context; /* it is as swapcontext has written it */
    memcpy(&changed->uc_sigmask, &workers, sizeof workers);
}

static void look_again(void) {
    const struct worker *worker = enter();
    bool is_right = worker == NULL || chosen_in[worker->id] == turn_of(worker);
    leave();
    if (!is_right)
        masks_take_workers();
}

PUBLIC int swapcontext(ucontext_t *from, const ucontext_t *to) {
    if (libc.swapcontext == NULL)
        find();
    take_workers_mask(to);
    int error = libc.swapcontext(from, to);
    look_again();
    return error;
}

PUBLIC int setcontext(const ucontext_t *to) {
    if (libc.setcontext == NULL)
        find();
    take_workers_mask(to);
    return libc.setcontext(to);
}
