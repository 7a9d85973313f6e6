// SPDX-License-Identifier: Apache-2.0
/* Moving a signal's frame to another stack: that is what the kernel has put on the alternate stack, and what it wants to
 * find when the handler returns.
 *
 *   from low to high: the siginfo; the context, with records of vector registers in it, of which one may point to more
 *   behind it; a frame record, to which x29 points; to the end of the stack */
#ifndef THRUM_ARCH_SIGNAL_H
#define THRUM_ARCH_SIGNAL_H

#include <asm/sigcontext.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

enum { ARCH_SIGNAL_INFO = 128 };

static inline char *arch_signal_frame(ucontext_t *context) {
    return (char *)context - ARCH_SIGNAL_INFO;
}

/* Has been copied from `distance` bytes further up: a multiple of ARCH_SIGNAL_ALIGN. It is marked as the library's own, by a
 * field that the kernel does not read (arch_signal_frame_at). */
enum { ARCH_SIGNAL_ALIGN = 64 };

static inline ucontext_t *arch_signal_moved(char *frame, intptr_t distance) {
    ucontext_t *context = (ucontext_t *)(void *)(frame + ARCH_SIGNAL_INFO);
    context->uc_link = context;
    char *at = (char *)context->uc_mcontext.__reserved;
    for (const char *end = at + sizeof context->uc_mcontext.__reserved; at < end;) {
        struct _aarch64_ctx *record = (struct _aarch64_ctx *)(void *)at;
        if (record->magic == 0 || record->size == 0)
            break;
        if (record->magic == EXTRA_MAGIC)
            ((struct extra_context *)(void *)record)->datap -= (uint64_t)distance;
        at += record->size;
    }
    return context;
}

/* Frames begin at addresses of this remainder, divided by that. */
enum { ARCH_SIGNAL_FRAME_STEP = 16, ARCH_SIGNAL_FRAME_PHASE = 0 };
enum { ARCH_SIGNAL_FRAME_STEP_LEAST = 16 };

/* What lies at `at`, below `top`, if it is a frame that the kernel made for a handler on this stack; else NULL. Told by what the
 * kernel always writes, whatever returns from the handler: the first record is that of the vector registers. Not one that
 * arch_signal_moved has made. Of the siginfo the kernel writes nothing where the handler does not want it. */
static inline const ucontext_t *arch_signal_frame_at(uintptr_t at, uintptr_t top) {
    const ucontext_t *context = (const ucontext_t *)(at + ARCH_SIGNAL_INFO);
    const struct _aarch64_ctx *record =
        (const struct _aarch64_ctx *)(const void *)context->uc_mcontext.__reserved;
    if (top - at < (uintptr_t)record + sizeof(struct fpsimd_context) - at)
        return NULL;
    if (record->magic != FPSIMD_MAGIC) /* first: it is seldom there by chance */
        return NULL;
    uintptr_t sp = context->uc_mcontext.sp;
    bool is_one = record->size == sizeof(struct fpsimd_context) && context->uc_flags == 0 &&
                  context->uc_link == NULL && sp > at && sp <= top;
    return is_one ? context : NULL;
}

static inline bool arch_is_call(const uint32_t *pc) {
    return *pc == 0xd4000001U; /* svc #0 */
}

/* Was it a system call that was interrupted, and that is made again when the handler returns? */
static inline bool arch_signal_calls_again(const ucontext_t *context) {
    return arch_is_call((const uint32_t *)context->uc_mcontext.pc);
}

/* ... or that answers EINTR? */
static inline bool arch_signal_in_call(const ucontext_t *context) {
    enum { PAGE = 4096 };
    const uint32_t *pc = (const uint32_t *)context->uc_mcontext.pc;
    return arch_signal_calls_again(context) || (context->uc_mcontext.regs[0] == (uint64_t)-EINTR &&
                                                (uintptr_t)pc % PAGE != 0 && arch_is_call(pc - 1));
}

/* As if the kernel had called fn(context, argument) on that stack. `resume` is the present handler's return address. */
static inline _Noreturn void arch_signal_call(ucontext_t *context, const void *resume,
                                              void (*fn)(ucontext_t *, int), int argument) {
    register ucontext_t *first __asm__("x0") = context;
    register int second __asm__("w1") = argument;
    register char *frame __asm__("x16") = arch_signal_frame(context);
    register void (*target)(ucontext_t *, int) __asm__("x17") =
        fn; /* a call, to branch target identification */
    register const void *link __asm__("x9") = resume;
    __asm__ volatile("mov sp, %0\n\tmov x29, xzr\n\tmov x30, %1\n\tbr %2"
                     :
                     : "r"(frame), "r"(link), "r"(target), "r"(first), "r"(second)
                     : "memory");
    __builtin_unreachable();
}

#endif
