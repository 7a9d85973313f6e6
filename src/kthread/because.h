// SPDX-License-Identifier: Apache-2.0
/* Which call of the program made a thread retire, for `--verbose`: counted by reason and call.
 *
 * A call is named by the literal that its interposer passes (its own name), or by a system call's number. What is noted
 * with a thread is the last such call of its job; it is counted when the thread retires for that reason. */
#ifndef THRUM_KTHREAD_BECAUSE_H
#define THRUM_KTHREAD_BECAUSE_H

#include <stdbool.h>
#include <stdint.h>

/* A name, or below BECAUSE_NUMBERS a system call's number plus 1; 0: not known. */
typedef uintptr_t because;
enum { BECAUSE_NUMBERS = 4096 };

static inline because because_name(const char *call) {
    return (because)call;
}
static inline because because_number(long number) {
    return number >= 0 && number < BECAUSE_NUMBERS - 1 ? (because)number + 1 : 0;
}

enum { BECAUSE_MOST = 64 };

/* One more thread retired for this reason (enum kthread_retire) and call. Of more than BECAUSE_MOST different ones the
 * rest is not counted. */
void because_count(unsigned reason, because call);

/* The i-th that was counted: false past the end. */
bool because_get(unsigned i, unsigned *reason, because *call, uint64_t *count);

void because_fork_child(void);

#endif
