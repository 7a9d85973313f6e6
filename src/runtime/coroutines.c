// SPDX-License-Identifier: Apache-2.0
/* Coroutines of the program's (makecontext) in ULTs: a context has the signal mask of the kernel thread on which it was saved, and
 * swapcontext and setcontext of libc install it. On another worker that is another mask: the kernel thread that called
 * thrum_init would block all signals for good, so that SIGTERM does not end the program, or a worker would let some in. So
 * both are defined here in libc's place: a context that was saved with a worker's mask gets that of the present worker.
 * One that was saved with a mask of the program's choice keeps it. */
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>
#include <ucontext.h>

#include "runtime/children.h"

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

/* The caller may be preempted after this, and resume on another worker: for a few instructions it would be as before. */
static void take_workers_mask(const ucontext_t *context) {
    sigbits mask, workers;
    memcpy(&mask, &context->uc_sigmask, sizeof mask);
    if (!children_workers_mask(mask, &workers) || workers == mask)
        return;
    ucontext_t *changed = (ucontext_t *)(uintptr_t)context; /* it is as swapcontext has written it */
    memcpy(&changed->uc_sigmask, &workers, sizeof workers);
}

PUBLIC int swapcontext(ucontext_t *from, const ucontext_t *to) {
    if (libc.swapcontext == NULL)
        find();
    take_workers_mask(to);
    return libc.swapcontext(from, to);
}

PUBLIC int setcontext(const ucontext_t *to) {
    if (libc.setcontext == NULL)
        find();
    take_workers_mask(to);
    return libc.setcontext(to);
}
