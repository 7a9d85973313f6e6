// SPDX-License-Identifier: Apache-2.0
/* A system call without libc: no errno, no cancellation point, no interposed symbol, and its own frame is the
 * caller's. Returns the kernel's answer: -errno on failure. The stack pointer may stand anywhere. */
#ifndef THRUM_ARCH_SYSCALL_H
#define THRUM_ARCH_SYSCALL_H

static inline __attribute__((always_inline)) long arch_syscall6(long number, long a, long b, long c, long d,
                                                                long e, long f) {
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

#endif
