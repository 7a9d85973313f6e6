// SPDX-License-Identifier: Apache-2.0
/* Thread-local words read where they are, each time. A unit may come back from a switch on another kernel thread, so
 * the compiler must never keep the address of a thread-local across one. The words are hidden and initial-exec;
 * `name` is the symbol.
 *
 * x86-64 changes such a word by one instruction, so that no signal can land between finding the word and changing it.
 * There is no such instruction here, and none is needed: only a signal handler on the same kernel thread interferes.
 * Whenever one has run, the store-exclusive fails, since an exception return clears the monitor, and all is done
 * again from the start. A plain load, add and store would not do, though the handler leaves the *count* as it found
 * it: between the two it may have set the pending bit in the same word, which the store would wipe out. TPIDR_EL0 is
 * read again after the load-exclusive: a signal before that may have taken the unit to another kernel thread (not
 * where a preempted unit keeps its thread control block: there TPIDR_EL0 comes back with it). No acquire and no
 * release: no other thread reads the word.
 *
 * ARCH_TLS_LOAD does without: it is either used inside a non-preemptible region, or its value may be out of date at
 * once anyway. Likewise ARCH_TLS_STORE, whose users own the kernel thread. */
#ifndef THRUM_ARCH_TLS_H
#define THRUM_ARCH_TLS_H

#include <stdbool.h>
#include <stdint.h>

#define ARCH_TLS_OFFSET_(name, to)                                                                           \
    "adrp " to ", :gottprel:" #name "\n\tldr " to ", [" to ", :gottprel_lo12:" #name "]\n\t"

#define ARCH_TLS_LOAD(name)                                                                                  \
    ({                                                                                                       \
        __typeof__(name) value_;                                                                             \
        uintptr_t base_;                                                                                     \
        __asm__ volatile(ARCH_TLS_OFFSET_(name, "%0") "mrs %1, tpidr_el0\n\tldr %0, [%1, %0]"                \
                         : "=&r"(value_), "=&r"(base_)                                                       \
                         :                                                                                   \
                         : "memory");                                                                        \
        value_;                                                                                              \
    })

#define ARCH_TLS_STORE(name, value)                                                                          \
    ({                                                                                                       \
        uintptr_t offset_, base_;                                                                            \
        __asm__ volatile(ARCH_TLS_OFFSET_(name, "%0") "mrs %1, tpidr_el0\n\tstr %2, [%1, %0]"                \
                         : "=&r"(offset_), "=&r"(base_)                                                      \
                         : "r"((__typeof__(name))(value))                                                    \
                         : "memory");                                                                        \
    })

/* The same of a 32-bit word. */
#define ARCH_TLS_LOAD32(name)                                                                                \
    ({                                                                                                       \
        uint32_t word_;                                                                                      \
        uintptr_t offset_, base_;                                                                            \
        __asm__ volatile(ARCH_TLS_OFFSET_(name, "%1") "mrs %2, tpidr_el0\n\tldr %w0, [%2, %1]"               \
                         : "=&r"(word_), "=&r"(offset_), "=&r"(base_)                                        \
                         :                                                                                   \
                         : "memory");                                                                        \
        word_;                                                                                               \
    })

#define ARCH_TLS_STORE32(name, value)                                                                        \
    ({                                                                                                       \
        uintptr_t offset_, base_;                                                                            \
        __asm__ volatile(ARCH_TLS_OFFSET_(name, "%0") "mrs %1, tpidr_el0\n\tstr %w2, [%1, %0]"               \
                         : "=&r"(offset_), "=&r"(base_)                                                      \
                         : "r"((uint32_t)(value))                                                            \
                         : "memory");                                                                        \
    })

/* The top bit. By a signal handler, which nothing interrupts that changes the word for good. */
#define ARCH_TLS_CLEAR_TOP(name)                                                                             \
    ({                                                                                                       \
        uint32_t cleared_ = ARCH_TLS_LOAD32(name) & UINT32_C(0x7fffffff);                                    \
        ARCH_TLS_STORE32(name, cleared_);                                                                    \
    })

/* A 32-bit word; gives the new value. */
#define ARCH_TLS_ADD_(name, operation)                                                                       \
    ({                                                                                                       \
        uint32_t value_;                                                                                     \
        uintptr_t failed_, offset_, base_, at_;                                                              \
        __asm__ volatile(ARCH_TLS_OFFSET_(name, "%2") "1:\tmrs %3, tpidr_el0\n\t"                            \
                                                      "add %4, %3, %2\n\t"                                   \
                                                      "ldxr %w0, [%4]\n\t"                                   \
                                                      "mrs %1, tpidr_el0\n\t"                                \
                                                      "eor %1, %1, %3\n\t"                                   \
                                                      "cbnz %1, 1b\n\t" operation " %w0, %w0, #1\n\t"        \
                                                      "stxr %w1, %w0, [%4]\n\t"                              \
                                                      "cbnz %w1, 1b"                                         \
                         : "=&r"(value_), "=&r"(failed_), "=&r"(offset_), "=&r"(base_), "=&r"(at_)           \
                         :                                                                                   \
                         : "memory");                                                                        \
        value_;                                                                                              \
    })

#define ARCH_TLS_INCREMENT(name) ((void)ARCH_TLS_ADD_(name, "add"))

/* True if it is zero then. */
#define ARCH_TLS_DECREMENT_IS_ZERO(name) (ARCH_TLS_ADD_(name, "sub") == 0)

#endif
