// SPDX-License-Identifier: Apache-2.0
//
// What the test of stat/cancel.c looks at: a wait that is made for libc, when a cancellation has come just before it, as
// with libc from 2.41 on.
#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stat/stat.h"

enum { CANCELLATION = 32 };

struct text text; // where it takes its own code to be: nowhere, and while the signal comes everywhere

const char *gnu_get_libc_version(void) {
    return "2.41";
}

static int handled;

static void handle(int number, siginfo_t *info, void *context) {
    (void)info;
    (void)context;
    handled += number == CANCELLATION;
}

static void be_cancelled(const struct kernel_action *action) {
    ucontext_t context = {0};
    siginfo_t info = {0};
    text.own = (struct span){0, UINT64_MAX};
    action->handler(CANCELLATION, &info, &context);
    text.own = (struct span){0, 0};
}

static long make(long operation, unsigned *word, unsigned value) {
    const long a[6] = {(long)word, operation, value};
    return cancel_call_sigsafe(SYS_futex, a);
}

int main(void) {
    struct kernel_action action = {.handler = handle};
    unsigned word = 0;
    cancel_watch_sigsafe(CANCELLATION, &action);
    be_cancelled(&action);
    printf("libc's handler: %d\n", handled);
    printf("a lock with inheritance: %ld\n", make(FUTEX_LOCK_PI_PRIVATE, &word, 0));
    printf("is held: %d\n", word == (unsigned)syscall(SYS_gettid));
    printf("then a wait is broken off: %d\n", make(FUTEX_WAIT_PRIVATE, &word, UINT32_MAX) == -EINTR);
    printf("and no other: %d\n", make(FUTEX_WAIT_PRIVATE, &word, UINT32_MAX) == -EAGAIN);
    return 0;
}
