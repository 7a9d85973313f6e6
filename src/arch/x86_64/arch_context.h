// SPDX-License-Identifier: Apache-2.0
/* Switching from one stack to another within a kernel thread. The code is in context.S.
 *
 * Kept for the one that is left: the registers that a C function keeps for its caller (rbx rbp r12-r15), the stack
 * pointer, and the control words of both floating-point units. NOT kept, because a call may change them or because
 * all on a kernel thread share them: the other registers, vector registers, floating-point status flags, the FS
 * base (thread-local variables, errno), the signal mask, the alternate signal stack. */
#ifndef THRUM_ARCH_CONTEXT_H
#define THRUM_ARCH_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/inside.h"

struct thrum_unit;

/* What lies at a saved stack pointer. */
struct arch_frame {
    uint32_t mxcsr;
    uint16_t fpucw, unused;
    uint64_t r15, r14, r13, r12, rbx, rbp;
    void *resume;
};
_Static_assert(offsetof(struct arch_frame, r15) == 8 && offsetof(struct arch_frame, resume) == 56 &&
                   sizeof(struct arch_frame) == 64,
               "context.S pushes and pops these");

/* Saves the registers on the present stack, and resumes `next` on its stack. Returns when a worker resumes the unit
 * that was left. Its stack pointer is stored at *save only when the worker no longer stands on its stack: from that
 * store on another worker may run there, and a signal handler without SA_ONSTACK writes its frame wherever the stack
 * pointer is. So:
 *
 *   1. If `next` has left its CPU (its sp, which comes first in it, is not null): to its stack, then the store.
 *   2. Else to the stack of the worker's own loop, below what the loop has saved there; then the store; then wait for `next`.
 *
 * Never waits before the store: two workers that wait for each other's unit would wait for ever. */
void arch_switch(void **save, struct thrum_unit *next);

/* Likewise, if `next` has left its CPU, at the end of a function: when the unit is resumed, the region is left, too, which the caller
 * is inside of. The result is 0. One level of calls fewer, and the return is predicted (arch_return.h). */
LEAVES int arch_switch_and_return(void **save, struct thrum_unit *next);
#define ARCH_SWITCH_AND_RETURN_CODE arch_switch_and_return

/* The same two for the beginning and the end of a thread on a stack that is used again. The CPU predicts a `ret` by the last call. So
 * to it the thread is a function that the one that was left has called: it is begun by a jump, and returns, though it did not call.
 * A thread that is begun and ends before another runs costs no misprediction.
 *
 * _begin: `next` rests, or is new. _rest: the caller's floating-point control words are `control` when it is resumed, and what they are now
 * is not read: reading MXCSR takes 15 cycles on Zen 4. */
void arch_switch_begin(void **save, struct thrum_unit *next);
static inline __attribute__((always_inline)) void arch_rest(void **save, struct thrum_unit *next,
                                                            uint64_t control) {
    /* No red zone here: a function that does this calls others, too. */
    __asm__ volatile(
        "leaq 1f(%%rip), %%rax\n\tpushq %%rax\n\tjmp arch_switch_rest\n1:"
        : "+D"(save), "+S"(next), "+d"(control)
        :
        : "rax", "rcx", "r8", "r9", "r10", "r11", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)",
          "st(7)", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
          "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "memory", "cc"
#ifdef __AVX512F__
          ,
          "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26",
          "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#endif
    );
}

/* Likewise, but what runs next is unit_main(child, parent) on the empty stack below `top`, by a call. unit_main
 * returns the next unit: if that is the one that called, it gets there by a return, which the CPU has predicted. */
void arch_call(struct thrum_unit *child, struct thrum_unit *parent, void **save, char *top);

/* Calls unit_ended(unit) on the empty stack below `top`, and then resumes the unit that it returns. */
void arch_end(struct thrum_unit *unit, char *top) __attribute__((noreturn));

/* The first code of a unit that is begun by a switch; a frame made by arch_frame_make leads there. */
void arch_begin(void);

/* The present floating-point control words, and others in their place. */
static inline uint64_t arch_float_control(void) {
    uint32_t mxcsr;
    uint16_t fpucw;
    __asm__("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr), "=m"(fpucw));
    return (uint64_t)fpucw << 32 | mxcsr;
}

static inline void arch_float_control_set(uint64_t control) {
    uint32_t mxcsr = (uint32_t)control;
    uint16_t fpucw = (uint16_t)(control >> 32);
    __asm__ volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(mxcsr), "m"(fpucw));
}

/* Others, which mostly are the present ones. Writing them is faster here than reading. */
static inline void arch_float_control_reset(uint64_t control) {
    arch_float_control_set(control);
}

/* A frame below `top` from which arch_switch begins unit_main(child, NULL), with the present floating-point control
 * words. */
static inline void *arch_frame_make(char *top, struct thrum_unit *child) {
    struct arch_frame *frame = (struct arch_frame *)(void *)(top - 16 - sizeof *frame);
    *frame = (struct arch_frame){.rbx = (uint64_t)child, .resume = (void *)arch_begin};
    __asm__("stmxcsr %0\n\tfnstcw %1" : "=m"(frame->mxcsr), "=m"(frame->fpucw));
    return frame;
}

#endif
