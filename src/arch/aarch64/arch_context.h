// SPDX-License-Identifier: Apache-2.0
/* Switching from one stack to another within a kernel thread. The code is in context.S.
 *
 * Kept for the one that is left: the registers that a C function keeps for its caller (x19-x29, the low halves
 * d8-d15 of v8-v15), the link register, the stack pointer, and the floating-point control register. NOT kept, because
 * a call may change them or because all on a kernel thread share them: the other registers, the upper halves of v8-v15
 * and all of SVE's, floating-point status flags (FPSR), TPIDR_EL0 (thread-local variables, errno), x18 (the platform's),
 * the signal mask, the alternate signal stack. */
#ifndef THRUM_ARCH_CONTEXT_H
#define THRUM_ARCH_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

struct thrum_unit;

/* What lies at a saved stack pointer. */
struct arch_frame {
    uint64_t x29;
    void *resume; /* x30 */
    uint64_t x19, x20, x21, x22, x23, x24, x25, x26, x27, x28;
    uint64_t d8, d9, d10, d11, d12, d13, d14, d15;
    uint64_t fpcr, unused;
};
_Static_assert(offsetof(struct arch_frame, resume) == 8 && offsetof(struct arch_frame, x19) == 16 &&
                   offsetof(struct arch_frame, d8) == 96 && offsetof(struct arch_frame, fpcr) == 160 &&
                   sizeof(struct arch_frame) == 176,
               "context.S stores and loads these");

/* Saves the registers on the present stack, and resumes `next` on its stack. Returns when a worker resumes the unit
 * that was left. Its stack pointer is stored at *save only when the worker no longer stands on its stack: from that
 * store on another worker may run there, and a signal handler without SA_ONSTACK writes its frame wherever the stack
 * pointer is. So:
 *
 *   1. If `next` has left its CPU (its sp, which comes first in it, is not null): to its stack, then the store.
 *   2. Else to the stack of the worker's own loop, below what the loop has saved there; then the store; then wait for `next`.
 *
 * Never waits before the store: two workers that wait for each other's unit would wait for ever. The store releases
 * and the loads acquire: the worker that resumes the unit sees the frame and all that was written before. */
void arch_switch(void **save, struct thrum_unit *next);

/* Likewise, at the end of a function: when the unit is resumed, the region is left, too, which the caller is inside of. The result is 0.
 * On x86-64 it is more than that. */
#define arch_switch_and_return(save, next) (arch_switch(save, next), leave(), 0)
#define ARCH_SWITCH_AND_RETURN_CODE        arch_switch

/* The same two for the beginning and the end of a thread on a stack that is used again. _begin: `next` rests, or is new. _rest: the
 * caller's floating-point control word is `control` when it is resumed, and what it is now is not read. On x86-64 they are more than that. */
static inline void arch_switch_begin(void **save, struct thrum_unit *next) {
    arch_switch(save, next);
}
void arch_switch_rest(void **save, struct thrum_unit *next, uint64_t control);
static inline __attribute__((always_inline)) void arch_rest(void **save, struct thrum_unit *next,
                                                            uint64_t control) {
    arch_switch_rest(save, next, control);
}

/* Likewise, but what runs next is unit_main(child, parent) on the empty stack below `top`, by a call. unit_main
 * returns the next unit: if that is the one that called, it gets there by a return, which the CPU has predicted. */
void arch_call(struct thrum_unit *child, struct thrum_unit *parent, void **save, char *top);

/* Calls unit_ended(unit) on the empty stack below `top`, and then resumes the unit that it returns. */
void arch_end(struct thrum_unit *unit, char *top) __attribute__((noreturn));

/* The first code of a unit that is begun by a switch; a frame made by arch_frame_make leads there. */
void arch_begin(void);

/* The present floating-point control word, and another in its place. */
static inline uint64_t arch_float_control(void) {
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return fpcr;
}

static inline void arch_float_control_set(uint64_t control) {
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
}

/* Another, which mostly is the present one. Reading is faster here than writing. */
static inline void arch_float_control_reset(uint64_t control) {
    if (__builtin_expect(arch_float_control() != control, 0))
        arch_float_control_set(control);
}

/* A frame below `top` from which arch_switch begins unit_main(child, NULL), with the present floating-point control
 * word. */
static inline void *arch_frame_make(char *top, struct thrum_unit *child) {
    struct arch_frame *frame = (struct arch_frame *)(void *)(top - 16 - sizeof *frame);
    *frame = (struct arch_frame){.x19 = (uint64_t)child, .resume = (void *)arch_begin};
    __asm__("mrs %0, fpcr" : "=r"(frame->fpcr));
    return frame;
}

#endif
