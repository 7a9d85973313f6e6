// SPDX-License-Identifier: Apache-2.0
//
// A system call by an instruction of the program's own, which no preloaded library can see. Included by row tests.
#ifndef THRUM_TESTS_ROWS_RAW_H
#define THRUM_TESTS_ROWS_RAW_H

// The kernel's answer: -errno where it fails.
static inline long raw_call(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
    long answer;
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(answer)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return answer;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c, x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
    __asm__ volatile("svc #0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory", "cc");
    return x0;
#endif
}

#endif
