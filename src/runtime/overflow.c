// SPDX-License-Identifier: Apache-2.0
/* See overflow.h. */
#include "runtime/overflow.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "arch_fault.h"
#include "base/text.h"
#include "context/remains.h"
#include "os/memory.h"
#include "os/syscall.h"
#include "sched/worker.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

/* The program's handler may do much, and stands on this stack, too. */
enum { ALTERNATE = 64 * 1024, FRAME_AT_LEAST = 4096 };

static struct {
    bool wanted;
    bool linked;             /* our handler is installed, or another one may pass signals on to it */
    bool left;               /* ... after the end of a runtime, for what remains of its threads */
    struct sigaction before; /* what was installed when ours was */
    uintptr_t frame;         /* bytes that a signal takes from a stack; r/o */
} overflow;

/* --- the line ----------------------------------------------------------------------------------------- */

static void add_address(struct text *text, const void *address) {
    char digits[2 + 16 + 1], *at = digits + sizeof digits;
    uintptr_t rest = (uintptr_t)address;
    *--at = '\0';
    do {
        *--at = "0123456789abcdef"[rest % 16];
        rest /= 16;
    } while (rest != 0);
    *--at = 'x';
    *--at = '0';
    text_add(text, at);
}

static void add_size(struct text *text, size_t size) {
    bool large = size >= 1 << 20;
    text_add_number(text, large ? size >> 20 : size >> 10);
    text_add(text, large ? " MiB" : " KiB");
}

/* As in thrum_get_name: a concurrent setter may leave half of each name. */
static void add_name(struct text *text, const struct thrum_unit *unit) {
    uint64_t words[] = {load_relaxed(&unit->name[0]), load_relaxed(&unit->name[1]), 0};
    if (words[0] == 0)
        return;
    text_add(text, " '");
    text_add(text, (const char *)words);
    text_add(text, "'");
}

static void say(const struct worker *worker, const struct thrum_unit *unit) {
    struct text text;
    text_start(&text);
    text_add(&text, "stack overflow in ");
    if (unit->kind == UNIT_LOOP) {
        text_add(&text, "the scheduler of worker ");
    } else {
        text_add(&text, "thread ");
        add_address(&text, unit);
        add_name(&text, unit);
        text_add(&text, worker_is_solo(worker) ? " on a kernel thread of its own" : " on worker ");
    }
    if (!worker_is_solo(worker))
        text_add_number(&text, worker->id);
    text_add(&text, ": its stack of ");
    add_size(&text, stack_class_size(unit->stack_class));
    text_add(&text, " is too small; enlarge it with ");
    if (unit->kind != UNIT_LOOP)
        text_add(&text, "thrum_attr_set_stack_size()");
    if (unit->stack_class == STACK_CLASS_DEFAULT)
        text_add(&text, unit->kind != UNIT_LOOP ? ", or all with THRUM_STACK_SIZE" : "THRUM_STACK_SIZE");
    text_finish(&text);
}

static void say_remains(void) {
    text_line(
        "an object was used for which a thread of a runtime that has ended still waits; join such threads "
        "before the runtime ends (thrum_fini), or initialise the object again",
        NULL, NULL);
}

/* --- telling what it was ------------------------------------------------------------------------------ */

/* By where the fault was, and where the stack pointer stood: a pointer of the program's that went astray may hit a guard
 * as well. If a signal came and its frame hit the guard, the kernel raises a SIGSEGV of its own, without an address. */
static bool ran_out(const struct thrum_unit *unit, const siginfo_t *info, const ucontext_t *context) {
    if (unit->stack_top == NULL || unit->stack_class >= STACK_CLASSES)
        return false;
    uintptr_t low = (uintptr_t)stack_low(unit->stack_top, unit->stack_class),
              guard = low - stack_guard_size();
    uintptr_t sp = arch_fault_sp(context), address = (uintptr_t)info->si_addr;
    if (info->si_code == SI_KERNEL && address == 0)
        return sp >= guard && sp < low + overflow.frame;
    return info->si_code > 0 && address >= guard && address < low && sp < low + ARCH_RED_ZONE;
}

static bool is_in_or_before(const siginfo_t *info, const ucontext_t *context, uintptr_t function) {
    enum { SAVING = 64 }; /* bytes of code, from the beginning */
    return arch_fault_pc(context) - function < SAVING ||
           arch_fault_calls(context, (uintptr_t)info->si_addr, function);
}

/* Is it about to save its registers? Then the worker already says that the next unit runs. NULL: no. (The address of its
 * `sp`, which comes first in it, is an argument of these four. At arch_rest next to nothing is on the stack.) */
static const struct thrum_unit *leaving(const siginfo_t *info, const ucontext_t *context) {
    bool calls = is_in_or_before(info, context, (uintptr_t)arch_call);
    if (!calls && !is_in_or_before(info, context, (uintptr_t)arch_switch) &&
        !is_in_or_before(info, context, (uintptr_t)arch_switch_begin) &&
        !is_in_or_before(info, context, (uintptr_t)ARCH_SWITCH_AND_RETURN_CODE))
        return NULL;
    return (const struct thrum_unit *)arch_fault_argument(context, calls);
}

/* A switch may wait on the stack of the worker's own loop (arch_context.h), and a signal's handler need more there. */
static const struct thrum_unit *overflowed_unit(const struct worker *worker, const siginfo_t *info,
                                                const ucontext_t *context) {
    const struct thrum_unit *unit = leaving(info, context);
    if (unit == NULL)
        unit = worker->current;
    if (ran_out(unit, info, context))
        return unit;
    return ran_out(&worker->base, info, context) ? &worker->base : NULL;
}

/* --- passing it on ------------------------------------------------------------------------------------ */

/* By the kernel, when the handler returns: the instruction faults again. A signal that was sent is sent again, and so
 * is one that the kernel raised because a signal's frame had no room: that signal is gone, and no instruction faults. */
static void end_by(int signal, bool again) {
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigaction(signal, &action, NULL);
    if (again)
        sys(SYS_tgkill, getpid(), sys(SYS_gettid, 0), signal);
}

/* False: no handler would take it, and the process must end. */
static bool pass_on(int signal, siginfo_t *info, void *context) {
    struct sigaction before = overflow.before;
    if (before.sa_handler == SIG_IGN && info->si_code <= 0)
        return true;
    if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) /* a fault cannot be ignored */
        return false;
    if (before.sa_flags & SA_RESETHAND)
        overflow.before.sa_handler = SIG_DFL;
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(signal, info, context);
    else
        before.sa_handler(signal);
    return true;
}

/* Once a line is written the process is going to end: if the program's handler returns, then here. */
static void on_fault(int signal, siginfo_t *info, void *context) {
    const struct worker *worker = worker_here();
    const struct thrum_unit *unit = worker != NULL ? overflowed_unit(worker, info, context) : NULL;
    bool remains = info->si_code > 0 && info->si_code != SI_KERNEL && remains_have_sigsafe(info->si_addr);
    if (unit != NULL)
        say(worker, unit);
    else if (remains)
        say_remains();
    if (!pass_on(signal, info, context) || unit != NULL || remains)
        end_by(signal, info->si_code <= 0 || (info->si_code == SI_KERNEL && unit != NULL));
}

/* --- life --------------------------------------------------------------------------------------------- */

int overflow_configure(void) {
    const char *variable = getenv("THRUM_OVERFLOW");
    if (variable == NULL || *variable == '\0')
        variable = "on";
    overflow.wanted = strcmp(variable, "on") == 0;
    if (overflow.wanted || strcmp(variable, "off") == 0)
        return 0;
    text_line("THRUM_OVERFLOW is '", variable, "'; it takes on or off");
    return EINVAL;
}

static bool is_installed(void) {
    struct sigaction now;
    return sigaction(SIGSEGV, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault;
}

/* If ours was replaced, and may be passed signals by what replaced it, to put it in front would make a circle. But a
 * handler that replaced it between two runtimes is most likely one that ends the process: in a circle it does so, too. */
void overflow_start(void) {
    bool replaced = overflow.left && !is_installed();
    overflow.left = false;
    if (!overflow.wanted || (overflow.linked && !replaced))
        return;
    overflow.frame = getauxval(AT_MINSIGSTKSZ) + ARCH_RED_ZONE;
    if (overflow.frame < FRAME_AT_LEAST)
        overflow.frame = FRAME_AT_LEAST;
    sigaction(SIGSEGV, NULL, &overflow.before);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_mask = overflow.before.sa_mask};
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | (overflow.before.sa_flags & (SA_NODEFER | SA_RESTART));
    overflow.linked = sigaction(SIGSEGV, &action, NULL) == 0;
}

void overflow_stop(void) {
    overflow.left = overflow.linked && remains_bytes() != 0 && is_installed();
    if (overflow.linked && !overflow.left && is_installed())
        overflow.linked = sigaction(SIGSEGV, &overflow.before, NULL) != 0;
}

size_t overflow_stack_bytes(void) {
    return overflow.wanted ? ALTERNATE + stack_page_size() : 0;
}

void overflow_thread_begin(char *low) {
    stack_t now, ours = {.ss_sp = low + stack_page_size(), .ss_size = ALTERNATE};
    if (!overflow.wanted || sigaltstack(NULL, &now) != 0 || !(now.ss_flags & SS_DISABLE))
        return;
    memory_forbid(low, stack_page_size()); /* else it has none */
    sigaltstack(&ours, NULL);
}

void overflow_thread_end(const char *low) {
    stack_t now, none = {.ss_flags = SS_DISABLE};
    if (overflow.wanted && sigaltstack(NULL, &now) == 0 && now.ss_sp == low + stack_page_size())
        sigaltstack(&none, NULL);
}
