// SPDX-License-Identifier: Apache-2.0
/* Thread-local words read where they are, each time. A unit may come back from a switch on another kernel thread,
 * so the compiler must never keep the address of a thread-local across one; and each of these is one instruction on
 * the word, so that a signal cannot land between finding the word and changing it. The words are hidden and
 * initial-exec; `name` is the symbol. */
#ifndef THRUM_ARCH_TLS_H
#define THRUM_ARCH_TLS_H

#include <stdbool.h>
#include <stdint.h>

#define ARCH_TLS_LOAD(name)                                                                                  \
    ({                                                                                                       \
        __typeof__(name) value_;                                                                             \
        __asm__ volatile("movq " #name "@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0"                          \
                         : "=r"(value_)                                                                      \
                         :                                                                                   \
                         : "memory");                                                                        \
        value_;                                                                                              \
    })

#define ARCH_TLS_STORE(name, value)                                                                          \
    ({                                                                                                       \
        __asm__ volatile("movq " #name "@gottpoff(%%rip), %%rax\n\tmovq %0, %%fs:(%%rax)"                    \
                         :                                                                                   \
                         : "r"((__typeof__(name))(value))                                                    \
                         : "rax", "memory");                                                                 \
    })

/* The same of a 32-bit word. */
#define ARCH_TLS_LOAD32(name)                                                                                \
    ({                                                                                                       \
        uintptr_t value_;                                                                                    \
        __asm__ volatile("movq " #name "@gottpoff(%%rip), %0\n\tmovl %%fs:(%0), %k0"                         \
                         : "=r"(value_)                                                                      \
                         :                                                                                   \
                         : "memory");                                                                        \
        (uint32_t) value_;                                                                                   \
    })

#define ARCH_TLS_STORE32(name, value)                                                                        \
    __asm__ volatile("movq " #name "@gottpoff(%%rip), %%rax\n\tmovl %0, %%fs:(%%rax)"                        \
                     :                                                                                       \
                     : "r"((uint32_t)(value))                                                                \
                     : "rax", "memory")

/* The top bit. */
#define ARCH_TLS_CLEAR_TOP(name)                                                                             \
    __asm__ volatile("movq " #name "@gottpoff(%%rip), %%rax\n\tandl $0x7fffffff, %%fs:(%%rax)" ::            \
                         : "rax", "memory", "cc")

/* A 32-bit word. */
#define ARCH_TLS_INCREMENT(name)                                                                             \
    __asm__ volatile("movq " #name "@gottpoff(%%rip), %%rax\n\tincl %%fs:(%%rax)" ::: "rax", "memory", "cc")

/* True if it is zero then. */
#define ARCH_TLS_DECREMENT_IS_ZERO(name)                                                                     \
    ({                                                                                                       \
        bool zero_;                                                                                          \
        __asm__ volatile("movq " #name "@gottpoff(%%rip), %%rax\n\tdecl %%fs:(%%rax)"                        \
                         : "=@ccz"(zero_)                                                                    \
                         :                                                                                   \
                         : "rax", "memory");                                                                 \
        zero_;                                                                                               \
    })

#endif
