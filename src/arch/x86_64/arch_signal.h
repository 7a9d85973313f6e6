// SPDX-License-Identifier: Apache-2.0
/* Moving a signal's frame to another stack: that is what the kernel has put on the alternate stack, and what it wants to
 * find when the handler returns.
 *
 *   from low to high: the address to which the handler returns, which calls rt_sigreturn; the context; the siginfo; what
 *   the context points to as its floating-point state, to the end of the stack */
#ifndef THRUM_ARCH_SIGNAL_H
#define THRUM_ARCH_SIGNAL_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

static inline char *arch_signal_frame(ucontext_t *context) {
    return (char *)context - sizeof(void *);
}

/* Has been copied from `distance` bytes further up: a multiple of ARCH_SIGNAL_ALIGN. */
enum { ARCH_SIGNAL_ALIGN = 64 };

static inline ucontext_t *arch_signal_moved(char *frame, intptr_t distance) {
    ucontext_t *context = (ucontext_t *)(void *)(frame + sizeof(void *));
    if (context->uc_mcontext.fpregs != NULL)
        context->uc_mcontext.fpregs = (fpregset_t)(void *)((char *)context->uc_mcontext.fpregs - distance);
    return context;
}

enum { ARCH_CALL_INSTRUCTION = 2, ARCH_CODE_PAGE = 4096 };

static inline bool arch_is_call(uintptr_t pc) {
    static const unsigned char syscall_instruction[ARCH_CALL_INSTRUCTION] = {0x0f, 0x05};
    return memcmp((const void *)pc, syscall_instruction, ARCH_CALL_INSTRUCTION) == 0;
}

/* Was it a system call that was interrupted, and that is made again when the handler returns? */
static inline bool arch_signal_calls_again(const ucontext_t *context) {
    uintptr_t pc = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
    return pc % ARCH_CODE_PAGE != ARCH_CODE_PAGE - 1 && arch_is_call(pc);
}

/* ... or that answers EINTR? */
static inline bool arch_signal_in_call(const ucontext_t *context) {
    uintptr_t pc = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
    return arch_signal_calls_again(context) ||
           (context->uc_mcontext.gregs[REG_RAX] == -EINTR && pc % ARCH_CODE_PAGE >= ARCH_CALL_INSTRUCTION &&
            arch_is_call(pc - ARCH_CALL_INSTRUCTION));
}

/* As if the kernel had called fn(context, argument) on that stack. `resume` is the present handler's return address. */
static inline _Noreturn void arch_signal_call(ucontext_t *context, const void *resume,
                                              void (*fn)(ucontext_t *, int), int argument) {
    (void)resume; /* it is in the frame */
    __asm__ volatile("movq %0, %%rsp\n\txorl %%ebp, %%ebp\n\tjmp *%1"
                     :
                     : "a"(arch_signal_frame(context)), "d"(fn), "D"(context), "S"(argument)
                     : "memory");
    __builtin_unreachable();
}

#endif
