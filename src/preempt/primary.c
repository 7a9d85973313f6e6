// SPDX-License-Identifier: Apache-2.0
/* What belongs to the primary's kernel thread, and must be right when the primary resumes on another one (modes LEND
 * and OWN_TLS; relief.c). Its thread control block goes with it, so:
 *
 *   - The kernel no longer writes the number of the CPU there, which would be that of its kernel thread.
 *   - It has the signal mask there that its kernel thread has: what it starts inherits that, and the worker's own blocks
 *     SIGTERM. If it changes the mask there it brings the change home.
 *   - Libc's signal to cancel it comes to its kernel thread, and is sent after it. While the primary waits that is noted, for
 *     when it resumes: it may have been preempted in a call of libc's that does not return before the signal has come.
 *
 * Either the noting thread sees it run, or it sees the note. The noting thread (1) stores is_cancelled, (2) has all
 * kernel threads pass a fence, (3) reads `at`; the primary (1) stores `at`, (2) reads is_cancelled.
 *
 * Modelled in tests/model/primary.pml. */
#include <stddef.h>

#include "os/membarrier.h"
#include "os/rseq.h"
#include "os/signals.h"
#include "preempt/preempt.h"
#include "sched/worker.h"

static struct {
    uintptr_t base; /* 0: there is none, or it does not migrate; r/o while there are workers, as the next */
    unsigned rseq;  /* what was registered there */
    sigbits mask;   /* that it was given elsewhere, or brings; its own, as the next */
    sigbits theirs; /* the mask of the kernel thread that it has gone to */
    bool brings;    /* it has changed its mask there */
    struct worker *at;     /* where it runs; NULL: it waits, or is just leaving */
    uint32_t is_cancelled; /* the signal came while it waited */
} primary;

void primary_begin(uintptr_t base) {
    primary.base = base;
    primary.rseq = rseq_give_up(base);
    primary.brings = false;
    primary.at = worker_here();
    primary.is_cancelled = 0;
}

void primary_end(void) {
    rseq_take_up(primary.base, primary.rseq);
    primary.base = 0;
}

/* Its kernel thread, or a copy of the one that it resumed on, is the only one. */
void primary_fork_child(void) {
    if (primary.base == arch_tcb())
        rseq_take_up(primary.base, primary.rseq);
    primary.base = 0;
}

/* --- its cancellation --------------------------------------------------------------------------------- */

static void send(const struct worker *worker) {
    sys(SYS_tgkill, sys(SYS_getpid), load_relaxed(&worker->tid), SIGNAL_CANCEL);
}

bool primary_takes_cancel(const struct worker *here) {
    const struct worker *at = load_relaxed(&primary.at);
    if (primary.base == 0 || (primary.base == arch_tcb() && at == here))
        return primary.base != 0;
    store_relaxed(&primary.is_cancelled, 1);
    fence_rare(runtime.fenced); /* pairs with fence_frequent in primary_comes */
    at = load_relaxed(&primary.at);
    if (at != NULL && at != here)
        send(at);
    return false;
}

/* The handler may not return. Then it continues from there, outside. */
static __attribute__((noinline)) void take_note(const struct worker *worker) {
    sigbits tick = signals_bit(preempt.settings.signal);
    store_relaxed(&primary.is_cancelled, 0);
    signals_block(tick);
    ARCH_TLS_STORE32(thrum_nopreempt, NOPREEMPT_NOT_PENDING);
    send(worker);
    ARCH_TLS_STORE32(thrum_nopreempt, NOPREEMPT_NOT_PENDING + 1);
    signals_unblock(tick);
}

/* --- its signal mask ---------------------------------------------------------------------------------- */

static bool is_home(const struct worker *worker) {
    return worker == load_relaxed(&runtime.primary.bound);
}

static sigbits change_mask(struct worker *worker, sigbits mask) {
    worker->tick.thread.mask = mask;
    store_relaxed(&worker->tick.thread.other, mask);
    return signals_mask_set(mask) & ~signals_bit(preempt.settings.signal);
}

/* That of its kernel thread is what the last tick there found. */
static __attribute__((noinline)) void bring_mask(struct worker *worker) {
    if (!primary.brings)
        primary.mask = load_relaxed(&load_relaxed(&runtime.primary.bound)->tick.thread.other);
    if (is_home(worker))
        primary.brings = false;
    else
        primary.theirs = worker->tick.thread.mask;
    change_mask(worker, primary.mask);
}

void primary_comes(struct worker *worker) {
    if (__builtin_expect(!is_home(worker) || primary.brings, 0))
        bring_mask(worker);
    store_relaxed(&primary.at, worker);
    fence_frequent(runtime.fenced); /* pairs with fence_rare in primary_takes_cancel */
    if (__builtin_expect(load_relaxed(&primary.is_cancelled), 0))
        take_note(worker);
}

void primary_leaves(struct worker *worker) {
    store_relaxed(&primary.at, NULL);
    if (is_home(worker))
        return;
    sigbits mask = change_mask(worker, primary.theirs);
    primary.brings |= mask != primary.mask;
    primary.mask = mask;
}
