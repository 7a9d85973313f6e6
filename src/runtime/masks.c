// SPDX-License-Identifier: Apache-2.0
/* Signal masks that ULTs read and install again. The C library reads the mask of the kernel thread that the caller is on, and
 * installs it on the one that the caller is on then. Workers block what is for the program. A thread that was moved in between,
 * as by a preemption, would therefore bring that to the kernel thread that called thrum_init, which would ignore SIGTERM from
 * then on; or it would let signals in on a worker. So these are defined here in libc's place:
 *
 *   pthread_sigmask, sigprocmask   with SIG_SETMASK and a worker's mask, on the kernel thread that called thrum_init: what that
 *                                  one blocks is installed. A program has such a mask only from reading it on a worker. Any
 *                                  other mask is the program's choice, also on workers.
 *   siglongjmp, longjmp, _longjmp  where sigsetjmp has saved a mask: as swapcontext (coroutines.c), it was read in any case.
 *
 * A caller that is preempted between the choice and the system call, and resumes elsewhere, chooses once more. Nothing keeps it
 * from being preempted: handlers of what the call lets in run in its midst, and may not return. A caller that is on the worker of
 * its choice again may have been elsewhere meanwhile, in the system call or in the choice. So it compares how often that worker has
 * switched, too: if it has not, the choice and the call were made there.
 *
 * What it has installed elsewhere it has replaced before it can leave. With a mask that is not the worker's it is not preempted,
 * unless 64 ticks in a row find it so (handler.c): here they would all have to come within a few instructions. */
#undef _FORTIFY_SOURCE /* it gives longjmp the name of another function */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "runtime/children.h"
#include "runtime/stay.h"

#define PUBLIC __attribute__((visibility("default")))

typedef int set_fn(int, const sigset_t *, sigset_t *);
typedef void jump_fn(struct __jmp_buf_tag *, int); /* does not return */
typedef bool choose_fn(sigbits mask, sigbits *here);

/* Libc's own; r/o after the constructor. */
static struct {
    set_fn *set_thread, *set; /* pthread_sigmask, sigprocmask */
    jump_fn *jump, *checked_jump;
} libc;

static __attribute__((constructor, noinline, cold)) void find(void) {
    *(void **)&libc.set_thread = dlsym(RTLD_NEXT, "pthread_sigmask");
    *(void **)&libc.set = dlsym(RTLD_NEXT, "sigprocmask");
    *(void **)&libc.checked_jump = dlsym(RTLD_NEXT, "__longjmp_chk");
    *(void **)&libc.jump = dlsym(RTLD_NEXT, "siglongjmp"); /* last: the others are there */
}

/* SIG_SETMASK of `set`, or of what `choose` says for the kernel thread that the caller is on. */
static int install(set_fn *libcs, choose_fn *choose, const sigset_t *set, sigset_t *old) {
    const sigset_t wanted = *set; /* `old` may be the same */
    for (;;) {
        const struct stay stay = stay_begin();
        sigset_t here = wanted;
        sigbits mask;
        memcpy(&mask, &wanted, sizeof mask);
        if (choose(mask, &mask))
            memcpy(&here, &mask, sizeof mask);
        int error = libcs(SIG_SETMASK, &here, old);
        if (error != 0 || stay_lasts(stay))
            return error;
        old = NULL; /* it is there */
    }
}

PUBLIC int pthread_sigmask(int how, const sigset_t *set, sigset_t *old) {
    if (libc.jump == NULL)
        find();
    return how == SIG_SETMASK && set != NULL ? install(libc.set_thread, children_mask_for_program, set, old)
                                             : libc.set_thread(how, set, old);
}

PUBLIC int sigprocmask(int how, const sigset_t *set, sigset_t *old) {
    if (libc.jump == NULL)
        find();
    return how == SIG_SETMASK && set != NULL ? install(libc.set, children_mask_for_program, set, old)
                                             : libc.set(how, set, old);
}

/* Of a buffer without a mask there may be less than a whole one. */
static __attribute__((noreturn)) void jump_by(jump_fn *libcs, struct __jmp_buf_tag *env, int value) {
    struct __jmp_buf_tag without_mask;
    if (!env->__mask_was_saved) {
        libcs(env, value);
        __builtin_unreachable();
    }
    without_mask = *env;
    without_mask.__mask_was_saved = 0;
    install(libc.set, children_workers_mask, &env->__saved_mask, NULL);
    libcs(&without_mask, value);
    __builtin_unreachable();
}

PUBLIC void siglongjmp(sigjmp_buf env, int value) {
    if (libc.jump == NULL)
        find();
    jump_by(libc.jump, env, value);
}

PUBLIC void longjmp(jmp_buf env, int value) __attribute__((alias("siglongjmp")));
PUBLIC void _longjmp(jmp_buf env, int value) __attribute__((alias("siglongjmp")));

/* What programs that are built with -D_FORTIFY_SOURCE call in place of the three. */
PUBLIC void __longjmp_chk(struct __jmp_buf_tag *env, int value) __attribute__((noreturn));
PUBLIC void __longjmp_chk(struct __jmp_buf_tag *env, int value) {
    if (libc.jump == NULL)
        find();
    jump_by(libc.checked_jump, env, value);
}
