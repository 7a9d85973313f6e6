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
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

static inline char *arch_signal_frame(ucontext_t *context) {
    return (char *)context - sizeof(void *);
}

/* Has been copied from `distance` bytes further up: a multiple of ARCH_SIGNAL_ALIGN. It is marked as the library's own, by a
 * field that the kernel does not read (arch_signal_frame_at). */
enum { ARCH_SIGNAL_ALIGN = 64 };

static inline ucontext_t *arch_signal_moved(char *frame, intptr_t distance) {
    ucontext_t *context = (ucontext_t *)(void *)(frame + sizeof(void *));
    context->uc_link = context;
    if (context->uc_mcontext.fpregs != NULL)
        context->uc_mcontext.fpregs = (fpregset_t)(void *)((char *)context->uc_mcontext.fpregs - distance);
    return context;
}

/* Frames begin at addresses of this remainder, divided by that: the kernel puts the floating-point state at a multiple of 64, the
 * frame, whose size is the same always, right below it at a multiple of 16, and then takes 8 for the return address. */
enum { ARCH_SIGNAL_FRAME_STEP = 64, ARCH_SIGNAL_FRAME_PHASE = 56 };
/* By the ABI alone, which others than Linux itself may follow that run programs for it. */
enum { ARCH_SIGNAL_FRAME_STEP_LEAST = 16 };

/* What lies at `at`, below `top`, if it is a frame that the kernel made for a handler on this stack; else NULL. Told by what the
 * kernel always writes, whatever returns from the handler. Not one that arch_signal_moved has made. Of the siginfo the kernel
 * writes nothing where the handler does not want it. */
static inline const ucontext_t *arch_signal_frame_at(uintptr_t at, uintptr_t top) {
    enum { FLAGS = 7, USER_CODE = 0x33, SELECTOR = 0xffff };
    const ucontext_t *context = (const ucontext_t *)(at + sizeof(void *));
    if (top - at < (uintptr_t)(&context->uc_sigmask) + sizeof(uint64_t) - at)
        return NULL;
    if ((context->uc_mcontext.gregs[REG_CSGSFS] & SELECTOR) !=
        USER_CODE) /* first: it is seldom so by chance */
        return NULL;
    uintptr_t sp = (uintptr_t)context->uc_mcontext.gregs[REG_RSP],
              fp = (uintptr_t)context->uc_mcontext.fpregs;
    bool is_one = context->uc_flags <= FLAGS && context->uc_link == NULL && fp > at && fp < sp && sp <= top;
    return is_one ? context : NULL;
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
