// SPDX-License-Identifier: Apache-2.0
/* See kernel_wait.h. */
#include "preempt/kernel_wait.h"

#include <string.h>
#include <sys/resource.h>

#include "arch_fault.h"
#include "arch_signal.h"
#include "os/syscall.h"
#include "preempt/give_way.h"
#include "preempt/own_stack.h"
#include "preempt/preempt.h"
#include "sched/worker.h"

/* A checksum of the stack below the frame with which the present unit resumed. Calls overwrite some of that, other
 * than a wait that it has not left. On the unit's own stack. */
static uint64_t sum_below(const ucontext_t *context) {
    enum { WORDS = 64 };
    const char *end = (const char *)arch_fault_sp(context) - ARCH_RED_ZONE;
    uint64_t sum = 0, word;
    for (unsigned i = 1; i <= WORDS; i++) {
        memcpy(&word, end - i * sizeof word, sizeof word);
        sum = (sum << 7 | sum >> 57) ^ word;
    }
    return sum;
}

void kernel_wait_remember(struct tick *tick, const ucontext_t *context, bool is_on_own_stack) {
    tick->kernel_wait.sp = is_on_own_stack ? arch_fault_sp(context) : 0;
    tick->kernel_wait.sum = is_on_own_stack ? sum_below(context) : 0;
}

bool kernel_wait_stands(const struct tick *tick, const ucontext_t *context) {
    return tick->last.stands && tick->kernel_wait.sp == arch_fault_sp(context) &&
           tick->kernel_wait.sum == sum_below(context);
}

bool kernel_wait_asks_soon(struct worker *worker, const ucontext_t *context) {
    enum { TURNS = 8 }; /* of which one is whole, on average */
    return arch_signal_calls_again(context) ||
           (arch_signal_in_call(context) && worker_random(worker) / 2 % TURNS != 0);
}

/* How often this kernel thread has slept. */
static long times_slept(void) {
    struct rusage usage = {.ru_nvcsw = 0};
    (void)sys(SYS_getrusage, RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

/* Twice in a row, and it has slept in between: at one tick it may be about to leave the kernel, which it enters for the library's
 * own calls, too; and ticks may come one upon the other where it is just about to enter. */
static bool still_waits(struct worker *worker, const ucontext_t *context) {
    struct tick *tick = &worker->tick;
    uint64_t now = arch_signal_in_call(context) ? load_relaxed(&worker->counters.switches) + 1 : 0;
    long slept = now != 0 ? times_slept() : 0;
    bool still = now != 0 && tick->kernel_wait.in_call == now && tick->kernel_wait.slept != slept;
    tick->kernel_wait.in_call = now;
    tick->kernel_wait.slept = slept;
    return still;
}

void kernel_wait_look(struct worker *worker, const ucontext_t *context, bool cannot) {
    const struct thrum_unit *self = worker->current;
    if ((cannot || load_relaxed(&preempt.closing) || !unit_is_thread(self) ||
         preempt_mode_of(self) == THRUM_PREEMPT_NONE) &&
        !worker->tick.own_wait && preempt_relieves() && still_waits(worker, context))
        relief_ask(worker);
}

void kernel_wait_preempted(struct worker *worker, const ucontext_t *context) {
    if (!preempt_relieves() || !arch_signal_in_call(context))
        return;
    worker->tick.kernel_wait.waited = worker->sched != NULL || worker->loop != &worker->base;
    if (unit_place(worker->current) == UNIT_POOLED)
        relief_ask_anyway(worker);
}
