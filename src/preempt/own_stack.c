// SPDX-License-Identifier: Apache-2.0
/* See own_stack.h. */
#include "preempt/own_stack.h"

#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/resource.h>

#include "arch_signal.h"
#include "os/syscall.h"
#include "preempt/preempt.h"
#include "sched/worker.h"

/* --- where it is -------------------------------------------------------------------------------------- */

static struct own_stack of_primary; /* r/o while there are workers */

/* As much as is surely its own: the rest is treated as a coroutine's, which does no harm. The stack of the process's
 * first thread ends at the name of the program, which the kernel puts there. */
void own_stack_find_primary(void) {
    enum { USUAL = 8 << 20 };
    pthread_attr_t attr;
    void *low = NULL;
    size_t size = 0;
    if (sys(SYS_gettid) == sys(SYS_getpid)) {
        struct rlimit limit;
        bool is_usual = getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur > USUAL;
        size = is_usual ? USUAL : limit.rlim_cur;
        low = (char *)getauxval(AT_EXECFN) - size; // NOLINT(performance-no-int-to-ptr)
    } else if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        pthread_attr_getstack(&attr, &low, &size);
        pthread_attr_destroy(&attr);
    }
    of_primary = (struct own_stack){low, (char *)low + size};
}

struct own_stack own_stack_of(const struct thrum_unit *unit) {
    if (unit->is_primary)
        return of_primary;
    if (unit->stack_top == NULL)
        return (struct own_stack){NULL, NULL};
    return (struct own_stack){unit_stack_low(unit), unit_first_frame(unit)};
}

uintptr_t own_stack_top(const struct thrum_unit *unit, uintptr_t sp) {
    if (!unit_is_thread(unit))
        return 0; /* it runs on others' stacks */
    struct own_stack own = own_stack_of(unit);
    return sp >= (uintptr_t)own.low && sp < (uintptr_t)own.top ? (uintptr_t)own.top : 0;
}

/* --- the program's handlers on it ---------------------------------------------------------------------- */

/* May a handler of that signal run on the stack that it has interrupted, with `mask`? Libc refuses to tell of its own
 * signals, and would set errno, which is the interrupted code's. */
static bool may_run_with(int signal, sigbits mask) {
    struct sigaction action;
    sigbits own;
    if (signal == SIGNAL_CANCEL || signal == SIGNAL_SET_IDS)
        return false;
    if (sigaction(signal, NULL, &action) != 0 || action.sa_handler == SIG_DFL ||
        action.sa_handler == SIG_IGN || (action.sa_flags & SA_ONSTACK))
        return false;
    memcpy(&own, &action.sa_mask, sizeof own);
    if (!(action.sa_flags & SA_NODEFER))
        own |= signals_bit(signal);
    return (own & ~mask) == 0;
}

/* Is a handler running that has interrupted code with the mask `outer`? It blocks what its action says. */
static bool may_handle(sigbits outer, sigbits mask) {
    for (int signal = 1; signal <= SIGRTMAX; signal++)
        if ((outer & signals_bit(signal)) == 0 && may_run_with(signal, mask))
            return true;
    return false;
}

/* The remainder by ARCH_SIGNAL_FRAME_STEP_LEAST is always the same. */
_Static_assert(ARCH_SIGNAL_FRAME_STEP % ARCH_SIGNAL_FRAME_STEP_LEAST == 0,
               "steps are multiples of the least");
static uint32_t step = ARCH_SIGNAL_FRAME_STEP;

void own_stack_learn_frame(const char *frame) {
    if ((uintptr_t)frame % ARCH_SIGNAL_FRAME_STEP != ARCH_SIGNAL_FRAME_PHASE)
        store_relaxed(&step, (uint32_t)ARCH_SIGNAL_FRAME_STEP_LEAST);
}

/* A handler that has returned leaves its frame behind, in the midst of others if a function does not write to all of
 * its own frame. But while a handler runs, the signals are blocked that its action says. */
bool own_stack_has_handler(uintptr_t sp, uintptr_t top, sigbits mask) {
    enum { FAR = 64 * 1024 };
    const uintptr_t each = load_relaxed(&step), end = top - sp < FAR ? top : sp + FAR;
    for (uintptr_t at = sp + (ARCH_SIGNAL_FRAME_PHASE - sp) % each; at < end; at += each) {
        const ucontext_t *frame = arch_signal_frame_at(at, top);
        if (frame != NULL && may_handle(frame_mask(frame), mask))
            return true;
    }
    return false;
}
