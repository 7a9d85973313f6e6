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
#include <ucontext.h>

#include "arch_fault.h"
#include "arch_signal.h"
#include "base/assert.h"
#include "os/signals.h"
#include "preempt/frame_stack.h"
#include "preempt/give_way.h"
#include "preempt/kernel_wait.h"
#include "preempt/own_stack.h"
#include "preempt/preempt.h"
#include "sched/worker.h"

static struct sigaction before;

/* Not inlined: the compiler assumes that errno's address does not change. */
static __attribute__((noinline)) int error_here(void) {
    return errno;
}

static __attribute__((noinline)) void set_error_here(int error) {
    errno = error;
}

/* The signal came in a call that unblocks what its thread blocks (sigsuspend): the thread blocks it except for that
 * wait. */
static bool is_forbidden(const ucontext_t *context) {
    return frame_whole_mask(context) & signals_bit(preempt.settings.signal);
}

static bool is_on(const stack_t *stack, uintptr_t address) {
    return address - (uintptr_t)stack->ss_sp < stack->ss_size;
}

/* The stack pointer is sp, and the present unit continues with the mask that its worker has. A handler may have that,
 * too: of a signal that the thread itself has unblocked. */
static bool is_on_handlers_frame(const struct worker *worker, uintptr_t sp) {
    uintptr_t top = own_stack_top(worker->current, sp);
    return top != 0 && own_stack_has_handler(sp, top, worker->tick.thread.mask);
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
    if (mask == tick->thread.mask) {
        tick->thread.seen = 0;
        store_relaxed(&tick->thread.other, mask);
        return false;
    }
    if (worker->current->blocks_sigchld && mask == (tick->thread.mask | preempt_own_block(worker->current)))
        return false; /* a handler of that signal does not come meanwhile */
    if ((top = own_stack_top(worker->current, sp)) == 0 || own_stack_has_handler(sp, top, mask)) {
        tick->thread.seen = 0;
        return true;
    }
    tick->thread.seen = mask == tick->thread.other ? tick->thread.seen + 1 : 0;
    store_relaxed(&tick->thread.other, mask);
    if (tick->thread.seen >= STAYS)
        tick->thread.mask = mask;
    return mask != tick->thread.mask;
}

enum { SPARED = 4 };

static struct {
    uintptr_t begin;
    size_t size;
} spared[SPARED]; /* r/o while there is a runtime, as the next */
static unsigned spared_count;

void handler_spares(const void *code, size_t size) {
    thrum_assert(spared_count < SPARED);
    if (spared_count == SPARED)
        return;
    spared[spared_count].begin = (uintptr_t)code;
    spared[spared_count++].size = size;
}

bool handler_is_to_spare(uintptr_t pc) {
    for (unsigned i = 0; i < spared_count; i++)
        if (pc - spared[i].begin < spared[i].size)
            return true;
    return false;
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
INSIDE static char *place_for(struct worker *worker, const ucontext_t *context, const char *frame,
                              size_t size) {
    struct tick *tick = &worker->tick;
    tick->frame.stack = NULL;
    if (!unit_is_thread(worker->current))
        return (char *)(uintptr_t)frame;
    char *place = place_on_own_stack(worker->current, context, frame, size);
    if (place == NULL && (tick->frame.stack = frame_stack_take()) != NULL)
        place = frame_stack_place(tick->frame.stack, frame, size, ARCH_SIGNAL_ALIGN);
    return place;
}

/* The last one has been left: its unit has returned from the handler, else the signal would not have come here. */
INSIDE static void free_left(struct tick *tick) {
    struct frame_stack *left = tick->frame.left;
    tick->frame.left = NULL;
    if (left != NULL)
        frame_stack_give(left);
}

/* The present unit resumes, or continues, as none of the others precedes it. One that waits in the kernel keeps the worker for
 * the turn that it was given: a timeout of its own would never pass in shorter ones. */
INSIDE static void note_if_computing(struct worker *worker, const ucontext_t *context) {
    if (unit_is_thread(worker->current) && !arch_signal_in_call(context))
        tick_finds_computing(worker);
}

/* On the unit's stack. `error` is its errno. */
LEAVES static void preempt_here(ucontext_t *context, int error) {
    struct worker *worker = worker_here();
    struct thrum_unit *next = worker->tick.frame.next;
    struct frame_stack *here = worker->tick.frame.stack; /* NULL: the unit's own */
    do {
        ARCH_TLS_STORE32(thrum_nopreempt, NOPREEMPT_NOT_PENDING + 1);
        if (!preempt_for(worker, worker->current, next, context))
            kernel_wait_look(
                worker, context,
                true); /* the unit that could run in its place may be the one that it waits for */
        worker = worker_here();
        worker->tick.last.late = true; /* for a tick that came meanwhile: it has not resumed yet */
    } while (!(ARCH_TLS_LOAD32(thrum_nopreempt) & NOPREEMPT_NOT_PENDING) &&
             (next = preempt_pick_successor(worker)) != NULL);
    if (kernel_wait_asks_soon(worker, context)) {
        kernel_wait_remember(&worker->tick, context, here == NULL);
        tick_look_soon(worker);
    } else {
        note_if_computing(worker, context);
    }
    worker->tick.last.resumed = arch_fault_pc(context);
    ARCH_TLS_STORE32(thrum_nopreempt, NOPREEMPT_NOT_PENDING + 1);
    leave();
    if (here != NULL)
        worker_here()->tick.frame.left =
            here; /* the signal is blocked up to the return: it is the same worker still */
    set_error_here(error);
}

/* It has come: the monitor may send the next. Were ticks lost before it, and is it not the second that comes in a
 * region? Then the present unit was there at the first one. */
static bool take_signal(struct worker *worker, const siginfo_t *info) {
    store_relaxed(&worker->tick.monitor.sent, 0);
    bool lost = (info->si_code == SI_TIMER && info->si_overrun > 0) ||
                load_relaxed(&worker->tick.monitor.skipped) != 0;
    store_relaxed(&worker->tick.monitor.skipped, 0);
    return lost && (ARCH_TLS_LOAD32(thrum_nopreempt) & NOPREEMPT_NOT_PENDING) != 0;
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
    if (worker == NULL || worker_is_solo(worker)) { /* a solo worker has no ticks: another sent it */
        const struct alarm alarm = {info->si_code == SI_TIMER ? info->si_timerid : ALARM_NONE};
        if (alarm.id !=
            ALARM_NONE) { /* of a worker that has gone elsewhere (tick.c), or is on its way here */
            preempt_dropped = 1;
            alarm_set(&alarm, 0, 0);
        }
        return;
    }
    int error = error_here();
    exchange_acq_rel(&worker->tick.asked.interrupted, 0U); /* pairs with ring: `urgent` is seen */
    store_relaxed(&worker->tick.last.came, load_relaxed(&worker->tick.last.came) + 1);
    store_relaxed(&worker->tick.last.at, timer_now());
    store_relaxed(&worker->tick.monitor.held, 0);
    worker->tick.last.came_early = load_relaxed(&worker->tick.request.early);
    tick_resume(worker); /* it may have been the only one requested */
    worker->tick.last.late = take_signal(worker, info);
    worker->tick.last.stands = worker->tick.last.resumed == arch_fault_pc(context);
    worker->tick.last.resumed = 0;
    own_stack_learn_frame(arch_signal_frame(context));
    bool is_loop = is_at_loop(worker); /* is not preempted, whatever it is in */
    worker->tick.last.spared = handler_is_to_spare(arch_fault_pc(context));
    if (is_forbidden(context) || (!is_loop && is_in_handler(worker, context)) ||
        !is_on(&context->uc_stack, (uintptr_t)context) || worker->tick.last.spared) {
        kernel_wait_look(worker, context, true);
        return;
    }
    if (ARCH_TLS_LOAD32(thrum_nopreempt) != NOPREEMPT_NOT_PENDING) { /* or about to call preempt_pending */
        if (load_relaxed(&worker->parking.state) == PARKING_AWAKE) {
            ARCH_TLS_CLEAR_TOP(thrum_nopreempt);
            kernel_wait_look(worker, context, true);
        } else {
            tick_off(worker);
        }
        return;
    }
    if (!is_loop && is_on_handlers_frame(worker, arch_fault_sp(context))) {
        kernel_wait_look(worker, context, true);
        return;
    }
    enter();
    worker->tick.kernel_wait.in_kernel = worker->tick.kernel_wait.again != 0 && arch_signal_in_call(context);
    worker->tick.kernel_wait.has_not_moved =
        worker->tick.kernel_wait.in_kernel && kernel_wait_stands(&worker->tick, context);
    char *frame = arch_signal_frame(context);
    size_t size = (size_t)((char *)context->uc_stack.ss_sp + context->uc_stack.ss_size - frame);
    free_left(&worker->tick);
    char *place = place_for(worker, context, frame, size);
    struct thrum_unit *next = place != NULL ? preempt_pick_successor(worker) : NULL;
    if (next == NULL) {
        if (worker->tick.frame.stack != NULL)
            frame_stack_give(worker->tick.frame.stack);
        note_if_computing(worker, context);
        kernel_wait_look(worker, context, place == NULL || tick_has_others_behind(worker));
        /* A unit that was woken here and goes first has gone elsewhere. */
        ARCH_TLS_STORE32(thrum_nopreempt, NOPREEMPT_NOT_PENDING + 1);
        leave();
        set_error_here(error);
        return;
    }
    worker->tick.frame.next = next;
    kernel_wait_preempted(worker, context);
    memcpy(place, frame, size);
    arch_signal_call(arch_signal_moved(place, frame - place), __builtin_return_address(0), preempt_here,
                     error);
}

/* Signal masks belong to kernel threads, and a thread that is resumed elsewhere would leave its own behind. So if
 * signals are blocked that the worker does not block, or a handler of the program's has called, no thread is
 * preempted, as in the handler (is_in_handler). The preemption waits for a later tick; a blocked tick comes when the
 * mask allows it. */
static bool may_preempt_here(struct worker *worker) {
    if (is_at_loop(worker) || (signals_mask_get() == worker->tick.thread.mask &&
                               !is_on_handlers_frame(worker, (uintptr_t)__builtin_frame_address(0))))
        return true;
    tick_resume(worker);
    return false;
}

/* Once more if another has come meanwhile. Unchecked: it opens and closes its region by the word itself. */
INSIDE_UNCHECKED void preempt_pending(void) {
    for (;;) {
        ARCH_TLS_STORE32(thrum_nopreempt, NOPREEMPT_NOT_PENDING + 1);
        struct worker *worker = worker_here();
        struct thrum_unit *next =
            worker != NULL && may_preempt_here(worker) ? preempt_pick_successor(worker) : NULL;
        if (next != NULL) {
            (void)preempt_for(worker, worker->current, next, NULL);
            worker_here()->tick.last.late = true; /* as in preempt_here */
            tick_finds_computing(worker_here());
        }
        if (!ARCH_TLS_DECREMENT_IS_ZERO(thrum_nopreempt))
            return;
    }
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
