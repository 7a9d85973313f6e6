// SPDX-License-Identifier: Apache-2.0
//
// A shared library for preempt_libc_test.cpp: its thread-local variables are in the static block of each thread, those
// that were there before it was loaded, too.
__attribute__((tls_model("initial-exec"))) static __thread int value = 42, zero;

// Not inlined anywhere: the addresses are found each time.
int as_it_should_be(void);
int as_it_should_be(void) {
    return *(volatile int *)&value == 42 && *(volatile int *)&zero == 0;
}
