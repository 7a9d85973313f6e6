// SPDX-License-Identifier: Apache-2.0
/* How a function that may have switched stacks returns.
 *
 * The CPU predicts a `ret` by the last call, which was the one of the thread that was left. If both threads called the function from one
 * place, that is right, and so are the predictions of the callers' callers that they have in common. Else it is wrong for certain:
 * 8 ns on Zen 4, as long as the rest of a switch. Then the function returns by an indirect jump.
 *
 * Zen 4 predicts that by the outcomes of the conditional branches before it. Two threads that run the same loop in two places have
 * the same outcomes. So three branches come first, which depend on bits of where the jump goes, and change nothing else. They are predicted
 * by their own outcomes before.
 *
 * All this is prediction alone. Whether it jumps or not, the function returns to its caller. */
#ifndef THRUM_ARCH_RETURN_H
#define THRUM_ARCH_RETURN_H

#include <stdbool.h>
#include <stdint.h>

/* The result of `inner`. `jumps`: the thread that was left had called from another place. */
static inline uint64_t arch_return(int result, bool jumps) {
    return (uint64_t)(uint32_t)result | (uint64_t)jumps << 63;
}

/* Of `inner`. */
#define ARCH_CALLED_BY_NAME __attribute__((used))

/* Defines the function type name parameters, which is inner(first, second, where it was called from); the second, of void. */
#define ARCH_RETURN_BY_PLACE(type, name, parameters, inner, first, second)                                   \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wunused-parameter\"")                  \
        __attribute__((naked, no_stack_protector, no_instrument_function)) type name parameters {            \
        __asm__("movq (%rsp), %rdx\n\t"                                                                      \
                "subq $8, %rsp\n\t"                                                                          \
                ".cfi_adjust_cfa_offset 8\n\t"                                                               \
                "call " #inner "\n\t"                                                                        \
                "addq $8, %rsp\n\t"                                                                          \
                ".cfi_adjust_cfa_offset -8\n\t"                                                              \
                "testq %rax, %rax\n\t"                                                                       \
                "js 1f\n\t"                                                                                  \
                "ret\n"                                                                                      \
                "1:\tpopq %rcx\n\t"                                                                          \
                ".cfi_adjust_cfa_offset -8\n\t"                                                              \
                ".cfi_register %rip, %rcx\n\t"                                                               \
                "imull $0x9e3779b1, %ecx, %edx\n\t"                                                          \
                "addl %edx, %edx\n\t"                                                                        \
                "jc 2f\n"                                                                                    \
                "2:\taddl %edx, %edx\n\t"                                                                    \
                "jc 3f\n"                                                                                    \
                "3:\taddl %edx, %edx\n\t"                                                                    \
                "jc 4f\n"                                                                                    \
                "4:\tjmp *%rcx");                                                                            \
    }                                                                                                        \
    _Pragma("GCC diagnostic pop")

#define ARCH_RETURN_VOID_BY_PLACE(name, parameters, inner, first, second)                                    \
    ARCH_RETURN_BY_PLACE(void, name, parameters, inner, first, second)

#endif
