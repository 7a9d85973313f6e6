// SPDX-License-Identifier: Apache-2.0
/* The handler, and what it does later if it came in a non-preemptible region.
 *
 * It runs on the alternate stack of the kernel thread: the present stack may have no room for it. A preempted unit
 * waits in the middle of its handler, and may be resumed with another kernel thread under it. So the handler first
 * moves to that unit's stack, with the frame to which it will return. The signal is blocked while a handler runs, and
 * unblocked for the units that run in between, so that each stack needs room for one frame. At its end the kernel
 * installs the signal mask and the alternate stack that it found at the beginning, which may be another kernel
 * thread's: they are replaced by the present ones. That mask is not what the handler finds where the signal ended a
 * call that has one of its own (sigsuspend, ppoll): no other unit may run with it.
 *
 * Libc's thread-locals are the unit's before and after, so errno is saved as in any handler; nothing here may touch
 * them in between. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "arch_fault.h"
#include "arch_signal.h"
#include "base/assert.h"
#include "os/signals.h"
#include "os/syscall.h"
#include "preempt/frame_stack.h"
#include "preempt/own_stack.h"
#include "preempt/preempt.h"
#include "preempt/requests.h"
#include "preempt/watch.h"
#include "sched/pool/scheduler.h"
#include "sched/worker.h"
#include "thrum/thrum.h"

static struct sigaction before;

/* --- which unit, and how ------------------------------------------------------------------------------ */

static enum thrum_preempt_mode mode_of(const struct thrum_unit *unit) {
    return unit->preempt != THRUM_PREEMPT_DEFAULT ? (enum thrum_preempt_mode)unit->preempt
                                                  : preempt.settings.mode;
}

/* Its own, or that of the scheduler that runs it. */
static uint64_t slice_of(const struct worker *worker, const struct thrum_unit *unit) {
    uint32_t slice = unit->slice != 0 ? unit->slice : worker->loop->slice;
    if (slice == 0 && worker->sched != NULL)
        slice = load_relaxed(&worker->sched->slice);
    return slice != 0 ? slice * UINT64_C(1000) : preempt.settings.slice;
}

/* Now and then to where all workers look: units that never wait would stay in the queues that they came to, however
 * long these are. */
static void put_back(struct worker *worker, struct thrum_unit *self, enum unit_kind place) {
    enum { BY_ITSELF = 4 };
    bool to_all = load_relaxed(&worker->counters.preemptions) % BY_ITSELF == 0;
    unit_requeue(worker, self, place, to_all);
}

static void change_to(struct worker *worker, struct thrum_unit *self, enum unit_kind place,
                      struct thrum_unit *next, enum thrum_trace_kind why) {
    unit_announce(self);
    put_back(worker, self, place);
    switch_as(worker, self, next, why);
}

/* The signal came in a call that unblocks what its thread blocks (sigsuspend): the thread blocks it except for that
 * wait. */
static bool is_forbidden(const ucontext_t *context) {
    return frame_whole_mask(context) & signals_bit(preempt.settings.signal);
}

/* In system(), which blocks a signal more than the worker (runtime/children.c). */
static sigbits own_block(const struct thrum_unit *unit) {
    return unit->blocks_sigchld ? signals_bit(SIGCHLD) : 0;
}

/* In the handler: the signal is blocked, and the rest may be the mask of a call that is over. */
static void let_signal_in(const struct worker *worker, const ucontext_t *context) {
    signals_mask_set(worker->current->blocks_sigchld ? worker->tick.mask : frame_mask(context));
}

static void keep_signal_out(void) {
    signals_block(signals_bit(preempt.settings.signal));
}

/* The kernel thread may not be the one that took the signal, and others have run on it since: the frame is given its
 * mask and alternate stack. */
static void make_frame_ours(const struct thrum_unit *self, ucontext_t *context) {
    sigbits mask = (signals_mask_get() & ~signals_bit(preempt.settings.signal)) | own_block(self);
    memcpy(&context->uc_sigmask, &mask, sizeof mask);
    sigaltstack(NULL, &context->uc_stack);
}

static uint32_t *away(bool counts) {
    return counts ? &preempt.away : &preempt.away_in_pools;
}

static void preempt_exit(bool counts) {
    fetch_sub_release(away(counts), 1U);
}

/* The relief worker preempts until preemption has closed: what it runs may wait for a lock that a unit holds which is
 * still away, and so may all other workers. */
static bool is_closed_to(const struct worker *worker) {
    uint32_t closing = load_seq_cst(&preempt.closing);
    return closing == PREEMPT_CLOSED || (closing == PREEMPT_CLOSING && !worker_relieves(worker));
}

/* Either the primary, which closes, sees one more away, or this sees that it does. False: `next` is put back. */
static bool preempt_enter(struct worker *worker, struct thrum_unit *next, bool counts) {
    fetch_add_seq_cst(away(counts), 1U);
    watch_tell();
    if (!is_closed_to(worker))
        return true;
    preempt_exit(counts);
    if (next != worker->loop)
        unit_wake(worker, next);
    return false;
}

static void change_kernel_thread(struct worker *worker, struct thrum_unit *self, enum unit_kind place,
                                 struct thrum_unit *next, struct tcb *spare) {
    bool is_own = self->tcb != NULL;
    if (!is_own)
        self->tcb = worker->tcb;
    store_relaxed(&self->took_tcb, !is_own);
    store_relaxed(&self->sp, UNIT_KEPT);
    put_back(worker, self, place);
    count_one(&worker->counters.switches);
    carrier_keep(worker, self, next, spare, THRUM_TRACE_PREEMPT);
    store_relaxed(&self->took_tcb, false);
    if (!is_own)
        self->tcb = NULL;
}

/* Its own, or its worker's. */
static bool runs_on_its_block(const struct worker *worker, const struct thrum_unit *self) {
    const struct tcb *tcb = self->tcb != NULL ? self->tcb : worker->tcb;
    return !preempt_has_spares() || arch_tcb() == tcb->base;
}

/* `self` is the present unit, which resumes when this returns; `context`: in the handler, that of its frame, else
 * NULL. False: it was not preempted, because there is no block or kernel thread for the unit that would run in its
 * place, or preemption closes. */
static bool preempt_for(struct worker *worker, struct thrum_unit *self, struct thrum_unit *next,
                        ucontext_t *context) {
    bool owns = self->tcb != NULL; /* for life */
    bool keeps = owns || mode_of(self) != THRUM_PREEMPT_YIELD;
    bool lends = preempt.lends && keeps && !owns, carries = preempt.carries && keeps;
    enum unit_kind place = unit_place(self); /* once: it may be moved meanwhile */
    bool counts = place != UNIT_POOLED;      /* there may be no scheduler left for its pool */
    struct tcb *spare = NULL;
    thrum_assert(regions_open() == 1 && unit_is_thread(self) && self != worker->loop &&
                 runs_on_its_block(worker, self));
    if (!preempt_enter(worker, next, counts))
        return false;
    if (keeps && (preempt.lends || carries) && (next = lend_choose_next(worker, next, &spare)) == NULL) {
        preempt_exit(counts);
        store_release(&worker->tick.starved, 1);
        provider_ask();
        return false;
    }
    if (lends)
        lend_take_along(worker, self, spare);
    count_one(&worker->counters.preemptions);
    worker->tick.changed = timer_now();
    if (carries) {
        change_kernel_thread(worker, self, place, next, spare);
    } else {
        if (context != NULL)
            let_signal_in(worker, context);
        change_to(worker, self, place, next, THRUM_TRACE_PREEMPT);
        if (context != NULL)
            keep_signal_out();
    }
    preempt_exit(counts);
    if (lends)
        lend_bring_back(worker_here(), self);
    thrum_assert(worker_here()->current == self && runs_on_its_block(worker_here(), self));
    if (context != NULL && !carries)
        make_frame_ours(self, context);
    return true;
}

/* True: one of its own has fired. */
static bool look_at_timers(struct worker *worker) {
    uint64_t next = load_relaxed(&worker->timers.next);
    if (!timers_are_empty(&worker->timers) || load_relaxed(&runtime.orphans))
        timers_look(worker);
    return load_relaxed(&worker->timers.next) != next;
}

/* In its loop. The function of a scheduler may wait for a lock that a preempted unit holds: a thread that enqueues
 * that unit again wakes resting workers. */
static void look_at_loop(struct worker *worker) {
    if (worker->sched == NULL) {
        tick_off(worker);
        return;
    }
    look_at_timers(worker); /* a resting worker gets its next tick when a timer is due */
    if (!tick_holds_others_up(worker))
        tick_rest(worker);
}

/* At a tick: the unit for which the present one is preempted, which the caller must then run; NULL: it continues.
 * Inside. */
static struct thrum_unit *pick_successor(struct worker *worker) {
    struct thrum_unit *self = worker->current, *next = NULL;
    count_one(&worker->counters.ticks);
    if (is_closed_to(worker))
        return NULL;
    if (!unit_is_thread(self)) {
        if (load_relaxed(&self->kind) == UNIT_LOOP)
            look_at_loop(worker);
        return NULL;
    }
    bool has_woken = look_at_timers(worker); /* first: a unit whose sleep ends may be urgent */
    bool gives_way = tick_gives_way(worker, has_woken);
    bool is_over = tick_ends_slice(worker, self, slice_of(worker, self));
    if (!is_over && !gives_way)
        return NULL;
    bool others = tick_has_others(worker) || unit_belongs_elsewhere(worker, self);
    if (others && mode_of(self) == THRUM_PREEMPT_NONE) {
        store_relaxed(&worker->tick.wanted, true);
        return NULL;
    }
    if (!is_over && (next = pick_preferred(worker)) == NULL)
        return NULL;
    if (others && next == NULL)
        next = unit_pick_for_yield(worker, self, true);
    if (next == NULL && !tick_has_others_behind(worker))
        tick_rest(worker);
    return next;
}

/* --- the signal --------------------------------------------------------------------------------------- */

/* Not inlined: the compiler assumes that errno's address does not change. */
static __attribute__((noinline)) int error_here(void) {
    return errno;
}

static __attribute__((noinline)) void set_error_here(int error) {
    errno = error;
}

static bool is_on(const stack_t *stack, uintptr_t address) {
    return address - (uintptr_t)stack->ss_sp < stack->ss_size;
}

/* The stack pointer is sp, and the present unit continues with the mask that its worker has. A handler may have that,
 * too: of a signal that the thread itself has unblocked. */
static bool is_on_handlers_frame(const struct worker *worker, uintptr_t sp) {
    uintptr_t top = own_stack_top(worker->current, sp);
    return top != 0 && own_stack_has_handler(sp, top, worker->tick.mask);
}

/* On an alternate stack, or with signals blocked that its worker does not block, a handler of the program's may have
 * been interrupted: the signal mask and the stack that the kernel keeps for that belong to the kernel thread.
 *
 * A thread may also block signals itself. Its mask becomes the worker's new one when many ticks in a row have found
 * it, each without a handler's frame on the thread's stack. So neither one long handler nor many short ones are ever
 * taken for the thread. */
static bool is_in_handler(struct worker *worker, const ucontext_t *context) {
    enum { STAYS = 64 };
    struct tick *tick = &worker->tick;
    sigbits mask = frame_mask(context);
    uintptr_t sp = arch_fault_sp(context), top;
    if (is_on(&context->uc_stack, sp))
        return true;
    if (mask == tick->mask) {
        tick->seen = 0;
        store_relaxed(&tick->other, mask);
        return false;
    }
    if (worker->current->blocks_sigchld && mask == (tick->mask | own_block(worker->current)))
        return false; /* a handler of that signal does not come meanwhile */
    if ((top = own_stack_top(worker->current, sp)) == 0 || own_stack_has_handler(sp, top, mask)) {
        tick->seen = 0;
        return true;
    }
    tick->seen = mask == tick->other ? tick->seen + 1 : 0;
    store_relaxed(&tick->other, mask);
    if (tick->seen >= STAYS)
        tick->mask = mask;
    return mask != tick->mask;
}

/* Where its frame fits on the unit's own stack; NULL: there is no room, or it stands on another stack. */
static char *place_on_own_stack(const struct thrum_unit *unit, const ucontext_t *context, const char *frame,
                                size_t size) {
    enum { FUNCTIONS = 4096 }; /* that are called on top of it */
    char *sp = (char *)arch_fault_sp(context), *place = sp - ARCH_RED_ZONE - size;
    struct own_stack own = own_stack_of(unit);
    place -= (uintptr_t)(place - (uintptr_t)frame) % ARCH_SIGNAL_ALIGN;
    return sp <= own.top && place - FUNCTIONS >= own.low ? place : NULL;
}

/* Else on another (frame_stack.h). A unit of a kind that has no stack is not preempted. NULL: there is no memory. */
static char *place_for(struct worker *worker, const ucontext_t *context, const char *frame, size_t size) {
    struct tick *tick = &worker->tick;
    tick->frame_stack = NULL;
    if (!unit_is_thread(worker->current))
        return (char *)(uintptr_t)frame;
    char *place = place_on_own_stack(worker->current, context, frame, size);
    if (place == NULL && (tick->frame_stack = frame_stack_take()) != NULL)
        place = frame_stack_place(tick->frame_stack, frame, size, ARCH_SIGNAL_ALIGN);
    return place;
}

/* The last one has been left: its unit has returned from the handler, else the signal would not have come here. */
static void free_left(struct tick *tick) {
    struct frame_stack *left = tick->left;
    tick->left = NULL;
    if (left != NULL)
        frame_stack_give(left);
}

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

static bool has_not_moved(const struct tick *tick, const ucontext_t *context) {
    return tick->stands && tick->kernel_wait.sp == arch_fault_sp(context) &&
           tick->kernel_wait.sum == sum_below(context);
}

/* It resumes its call, and may wait for long: must it be asked soon whether it still does? A call that answers EINTR
 * is made again by the program, and its timeout, if relative, begins anew: such a call ends only in a turn of a whole
 * slice. */
static bool is_to_be_asked_soon(struct worker *worker, const ucontext_t *context) {
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
    bool still = now != 0 && tick->in_call == now && tick->slept != slept;
    tick->in_call = now;
    tick->slept = slept;
    return still;
}

/* A tick has not preempted the present unit. `cannot`: and none will, as long as the unit is there. */
static void look_if_stuck(struct worker *worker, const ucontext_t *context, bool cannot) {
    const struct thrum_unit *self = worker->current;
    if ((cannot || load_relaxed(&preempt.closing) || !unit_is_thread(self) ||
         mode_of(self) == THRUM_PREEMPT_NONE) &&
        !worker->tick.own_wait && preempt_relieves() && still_waits(worker, context))
        relief_ask(worker);
}

/* The present unit resumes, or continues, as none of the others precedes it. One that waits in the kernel keeps the worker for
 * the turn that it was given: a timeout of its own would never pass in shorter ones. */
static void note_if_computing(struct worker *worker, const ucontext_t *context) {
    if (unit_is_thread(worker->current) && !arch_signal_in_call(context))
        tick_finds_computing(worker);
}

/* On the unit's stack. `error` is its errno. */
static void preempt_here(ucontext_t *context, int error) {
    struct worker *worker = worker_here();
    struct thrum_unit *next = worker->tick.next;
    struct frame_stack *here = worker->tick.frame_stack; /* NULL: the unit's own */
    do {
        ARCH_TLS_STORE32(thrum_nopreempt, NOPREEMPT_NOT_PENDING + 1);
        if (!preempt_for(worker, worker->current, next, context))
            look_if_stuck(worker, context,
                          true); /* the unit that could run in its place may be the one that it waits for */
        worker = worker_here();
        worker->tick.late = true; /* for a tick that came meanwhile: it has not resumed yet */
    } while (!(ARCH_TLS_LOAD32(thrum_nopreempt) & NOPREEMPT_NOT_PENDING) &&
             (next = pick_successor(worker)) != NULL);
    if (is_to_be_asked_soon(worker, context)) {
        worker->tick.kernel_wait.sp = here == NULL ? arch_fault_sp(context) : 0;
        worker->tick.kernel_wait.sum = here == NULL ? sum_below(context) : 0;
        tick_look_soon(worker);
    } else {
        note_if_computing(worker, context);
    }
    worker->tick.resumed = arch_fault_pc(context);
    ARCH_TLS_STORE32(thrum_nopreempt, NOPREEMPT_NOT_PENDING + 1);
    leave();
    if (here != NULL)
        worker_here()->tick.left =
            here; /* the signal is blocked up to the return: it is the same worker still */
    set_error_here(error);
}

/* It has come: the monitor may send the next. Were ticks lost before it, and is it not the second that comes in a
 * region? Then the present unit was there at the first one. */
static bool take_signal(struct worker *worker, const siginfo_t *info) {
    store_relaxed(&worker->tick.sent, 0);
    bool lost =
        (info->si_code == SI_TIMER && info->si_overrun > 0) || load_relaxed(&worker->tick.skipped) != 0;
    store_relaxed(&worker->tick.skipped, 0);
    return lost && (ARCH_TLS_LOAD32(thrum_nopreempt) & NOPREEMPT_NOT_PENDING) != 0;
}

/* It was preempted where it waits in the kernel, perhaps for a unit that comes after it in the order of its
 * scheduler. */
static void look_if_in_the_way(struct worker *worker, const ucontext_t *context) {
    if (!preempt_relieves() || !arch_signal_in_call(context))
        return;
    worker->tick.waited = worker->sched != NULL || worker->loop != &worker->base;
    if (unit_place(worker->current) == UNIT_POOLED)
        relief_ask_anyway(worker);
}

/* Or a carrier has taken the worker, and no unit runs on it yet. */
static bool is_at_loop(const struct worker *worker) {
    const struct thrum_unit *current = load_relaxed(&worker->current);
    return current == NULL || load_relaxed(&current->kind) == UNIT_LOOP;
}

static void on_signal(int signal, siginfo_t *info, void *argument) {
    ucontext_t *context = argument;
    struct worker *worker = worker_here();
    (void)signal;
    if (worker == NULL) {
        const struct alarm alarm = {info->si_code == SI_TIMER ? info->si_timerid : ALARM_NONE};
        if (alarm.id !=
            ALARM_NONE) { /* of a worker that has gone elsewhere (tick.c), or is on its way here */
            preempt_dropped = 1;
            alarm_set(&alarm, 0, 0);
        }
        return;
    }
    int error = error_here();
    exchange_acq_rel(&worker->tick.interrupted, 0U);
    store_relaxed(&worker->tick.came, load_relaxed(&worker->tick.came) + 1);
    store_relaxed(&worker->tick.held, 0);
    worker->tick.came_early = load_relaxed(&worker->tick.early);
    tick_resume(worker); /* it may have been the only one requested */
    worker->tick.late = take_signal(worker, info);
    worker->tick.stands = worker->tick.resumed == arch_fault_pc(context);
    worker->tick.resumed = 0;
    own_stack_learn_frame(arch_signal_frame(context));
    bool is_loop = is_at_loop(worker); /* is not preempted, whatever it is in */
    if (is_forbidden(context) || (!is_loop && is_in_handler(worker, context)) ||
        !is_on(&context->uc_stack, (uintptr_t)context)) {
        look_if_stuck(worker, context, true);
        return;
    }
    if (ARCH_TLS_LOAD32(thrum_nopreempt) != NOPREEMPT_NOT_PENDING) { /* or about to call preempt_pending */
        if (load_relaxed(&worker->parking.state) == PARKING_AWAKE) {
            ARCH_TLS_CLEAR_TOP(thrum_nopreempt);
            look_if_stuck(worker, context, true);
        } else {
            tick_off(worker);
        }
        return;
    }
    if (!is_loop && is_on_handlers_frame(worker, arch_fault_sp(context))) {
        look_if_stuck(worker, context, true);
        return;
    }
    enter();
    worker->tick.in_kernel = worker->tick.again != 0 && arch_signal_in_call(context);
    worker->tick.kernel_wait.has_not_moved = worker->tick.in_kernel && has_not_moved(&worker->tick, context);
    char *frame = arch_signal_frame(context);
    size_t size = (size_t)((char *)context->uc_stack.ss_sp + context->uc_stack.ss_size - frame);
    free_left(&worker->tick);
    char *place = place_for(worker, context, frame, size);
    struct thrum_unit *next = place != NULL ? pick_successor(worker) : NULL;
    if (next == NULL) {
        if (worker->tick.frame_stack != NULL)
            frame_stack_give(worker->tick.frame_stack);
        note_if_computing(worker, context);
        look_if_stuck(worker, context, place == NULL || tick_has_others_behind(worker));
        /* A unit that was woken here and goes first has gone elsewhere. */
        ARCH_TLS_STORE32(thrum_nopreempt, NOPREEMPT_NOT_PENDING + 1);
        leave();
        set_error_here(error);
        return;
    }
    worker->tick.next = next;
    look_if_in_the_way(worker, context);
    memcpy(place, frame, size);
    arch_signal_call(arch_signal_moved(place, frame - place), __builtin_return_address(0), preempt_here,
                     error);
}

/* Signal masks belong to kernel threads, and a thread that is resumed elsewhere would leave its own behind. So if
 * signals are blocked that the worker does not block, or a handler of the program's has called, no thread is
 * preempted, as in the handler (is_in_handler). The preemption waits for a later tick; a blocked tick comes when the
 * mask allows it. */
static bool may_preempt_here(struct worker *worker) {
    if (is_at_loop(worker) || (signals_mask_get() == worker->tick.mask &&
                               !is_on_handlers_frame(worker, (uintptr_t)__builtin_frame_address(0))))
        return true;
    tick_resume(worker);
    return false;
}

/* Once more if another has come meanwhile. */
void preempt_pending(void) {
    for (;;) {
        ARCH_TLS_STORE32(thrum_nopreempt, NOPREEMPT_NOT_PENDING + 1);
        struct worker *worker = worker_here();
        struct thrum_unit *next = worker != NULL && may_preempt_here(worker) ? pick_successor(worker) : NULL;
        if (next != NULL) {
            (void)preempt_for(worker, worker->current, next, NULL);
            worker_here()->tick.late = true; /* as in preempt_here */
            tick_finds_computing(worker_here());
        }
        if (!ARCH_TLS_DECREMENT_IS_ZERO(thrum_nopreempt))
            return;
    }
}

/* --- by the unit itself ------------------------------------------------------------------------------- */

/* Where there are no ticks. */
static bool slice_is_over_by_clock(struct worker *worker) {
    const struct thrum_unit *self = worker->current;
    uint64_t now = timer_now(), switches = load_relaxed(&worker->counters.switches);
    bool same = worker->tick.switches == switches;
    bool over = now - worker->tick.changed >= slice_of(worker, self);
    if (!same || over) {
        worker->tick.switches = switches;
        worker->tick.changed = now;
    }
    return same && over;
}

void thrum_safepoint(void) {
    struct worker *worker = worker_here();
    if (worker == NULL || __builtin_expect(!load_relaxed(&worker->tick.wanted), 1) || regions_open() != 0)
        return;
    worker = enter();
    if (!preempt.by_safepoints)
        store_relaxed(&worker->tick.wanted, false);
    else if (!slice_is_over_by_clock(worker)) {
        leave();
        return;
    }
    struct thrum_unit *self = worker->current;
    struct thrum_unit *next = unit_is_thread(self) ? unit_pick_for_yield(worker, self, true) : NULL;
    if (next != NULL)
        change_to(worker, self, unit_place(self), next, THRUM_TRACE_YIELD);
    leave();
}

/* On an external kernel thread there is nothing that they would hold off. */
void thrum_nopreempt_begin(void) {
    ARCH_TLS_INCREMENT(thrum_nopreempt);
}

void thrum_nopreempt_end(void) {
    leave();
}

/* --- life --------------------------------------------------------------------------------------------- */

/* A thread that blocks the signal may wait for it. */
bool handler_would_intrude(void) {
    struct sigaction now;
    return sigaction(preempt.settings.signal, NULL, &now) != 0 ||
           (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN && now.sa_sigaction != on_signal) ||
           (signals_mask_get() & signals_bit(preempt.settings.signal)) != 0;
}

int handler_install(void) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    struct sigaction now;
    if (sigaction(preempt.settings.signal, &action, &now) != 0)
        return EINVAL;
    if (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != on_signal) /* else this is a child of fork */
        before = now;
    return 0;
}

/* A signal that is still on its way must not end the process: ignoring the signal discards it. An action that the
 * program has set meanwhile stays. */
void handler_remove(void) {
    struct sigaction now, ignore = {.sa_handler = SIG_IGN};
    if (sigaction(preempt.settings.signal, NULL, &now) != 0 || !(now.sa_flags & SA_SIGINFO) ||
        now.sa_sigaction != on_signal)
        return;
    sigaction(preempt.settings.signal, &ignore, NULL);
    sigaction(preempt.settings.signal, &before, NULL);
}
