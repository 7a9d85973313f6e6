// SPDX-License-Identifier: Apache-2.0
/* Coroutines of the program's (makecontext) in ULTs: a context has the signal mask of the kernel thread on which it was saved, and
 * swapcontext and setcontext of libc install it. On another worker that is another mask: the kernel thread that called
 * thrum_init would block all signals for good, so that SIGTERM does not end the program, or a worker would let some in. So
 * both are defined here in libc's place: a context that was saved with a worker's mask gets that of the present worker.
 * One that was saved with a mask of the program's choice keeps it.
 *
 * A caller that was moved after the choice chooses again (masks.c). From there until libc's function has installed the mask it is
 * not moved: these few instructions and libc's function are spared by ticks (handler_spares), and handlers of the program's are not
 * preempted. No region is open meanwhile, as the context that resumes has none; and nothing is done after libc's function, which
 * is called in place of a return: a context is saved with its caller's frame, and may be resumed many times. */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <ucontext.h>

#include "preempt/preempt.h"
#include "runtime/children.h"
#include "runtime/stay.h"

#define PUBLIC __attribute__((visibility("default")))
/* The linker puts all of these together, and gives the place names. */
#define SPARED __attribute__((noinline, section("thrum_spared")))
extern const char __start_thrum_spared[] __attribute__((visibility("hidden")));
extern const char __stop_thrum_spared[] __attribute__((visibility("hidden")));

/* Libc's own; r/o after the constructor. */
static struct {
    int (*swapcontext)(ucontext_t *, const ucontext_t *);
    int (*setcontext)(const ucontext_t *);
} libc;

static void spare(const void *function) {
    Dl_info of;
    void *symbol = NULL;
    if (function != NULL && dladdr1(function, &of, &symbol, RTLD_DL_SYMENT) != 0 && symbol != NULL)
        handler_spares(function, ((const ElfW(Sym) *)symbol)->st_size);
}

static __attribute__((constructor, noinline, cold)) void find(void) {
    static bool has_looked;
    if (has_looked)
        return;
    has_looked = true;
    *(void **)&libc.setcontext = dlsym(RTLD_NEXT, "setcontext");
    *(void **)&libc.swapcontext = dlsym(RTLD_NEXT, "swapcontext");
    handler_spares(__start_thrum_spared, (size_t)(__stop_thrum_spared - __start_thrum_spared));
    spare(*(void **)&libc.setcontext);
    spare(*(void **)&libc.swapcontext);
}

/* The stay in which it was taken. */
static __attribute__((noinline)) struct stay take_workers_mask(const ucontext_t *context) {
    const struct stay stay = stay_begin();
    sigbits mask, workers;
    memcpy(&mask, &context->uc_sigmask, sizeof mask);
    if (children_workers_mask(mask, &workers) && workers != mask) {
        ucontext_t *changed = (ucontext_t *)(uintptr_t)context; /* it is as swapcontext has written it */
        memcpy(&changed->uc_sigmask, &workers, sizeof workers);
    }
    return stay;
}

static SPARED int swap(ucontext_t *from, const ucontext_t *to, struct stay stay) {
    return stay_lasts_here(stay) ? libc.swapcontext(from, to) : swapcontext(from, to);
}

static SPARED int set(const ucontext_t *to, struct stay stay) {
    return stay_lasts_here(stay) ? libc.setcontext(to) : setcontext(to);
}

PUBLIC int swapcontext(ucontext_t *from, const ucontext_t *to) {
    if (libc.swapcontext == NULL)
        find();
    return swap(from, to, take_workers_mask(to));
}

PUBLIC int setcontext(const ucontext_t *to) {
    if (libc.setcontext == NULL)
        find();
    return set(to, take_workers_mask(to));
}
