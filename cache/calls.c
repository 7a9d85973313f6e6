// SPDX-License-Identifier: Apache-2.0
/* The classes of calls.h by number, and those that depend on the arguments. */
#include "calls.h"

#include <linux/futex.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "arch_calls.h"

#define CLASS_OF(name, class)          [SYS_##name] = CALL_##class,
#define CLASS_NEW(name, number, class) [number] = CALL_##class,
static const uint8_t classes[] = {CALLS(CLASS_OF) ARCH_CALLS(CLASS_OF) ARCH_CALLS_NEW(CLASS_NEW)
                                      CALLS_NEW(CLASS_NEW)};

/* The other operations only ask. */
static enum call_class seccomp_class(const long *a) {
    return a[0] == SECCOMP_SET_MODE_STRICT || a[0] == SECCOMP_SET_MODE_FILTER ? CALL_LINEAGE : CALL_ASKS;
}

static enum call_class personality_class(const long *a) {
    return (a[0] & 0xffffffff) == 0xffffffff ? CALL_ASKS : CALL_LINEAGE;
}

/* An event with `inherit` also counts in the threads that its thread creates from now on: those must be made by the
 * kernel. With PERF_FLAG_PID_CGROUP the second argument is no thread. */
static enum call_class perf_class(const long *a) {
    const struct perf_event_attr *event = (const struct perf_event_attr *)a[0];
    bool of_thread = (int)a[1] >= 0 && (a[4] & PERF_FLAG_PID_CGROUP) == 0;
    return event->inherit && of_thread ? CALL_LINEAGE : CALL_TIES;
}

/* The thread's, the process's and the session's keyring stand in the thread's credentials: naming one may make it. */
static bool names_own_keyring(long id) {
    return (int)id == KEY_SPEC_THREAD_KEYRING || (int)id == KEY_SPEC_PROCESS_KEYRING ||
           (int)id == KEY_SPEC_SESSION_KEYRING;
}

static enum call_class keyctl_class(const long *a) {
    switch (a[0]) {
    case KEYCTL_JOIN_SESSION_KEYRING: return CALL_RIGHTS;
    case KEYCTL_DESCRIBE:
    case KEYCTL_READ:
    case KEYCTL_GET_SECURITY: return names_own_keyring(a[1]) ? CALL_LINEAGE : CALL_ASKS;
    default: return CALL_LINEAGE;
    }
}

/* A priority-inheriting lock is the kernel thread's, and passes to the next one when that ends. */
static enum call_class futex_class(const long *a) {
    switch (a[1] & FUTEX_CMD_MASK) {
    case FUTEX_LOCK_PI:
    case FUTEX_TRYLOCK_PI:
    case FUTEX_WAIT_REQUEUE_PI:
    case 13 /* FUTEX_LOCK_PI2 */: return CALL_TIES;
    default: return CALL_SHARED;
    }
}

static enum call_class class_by_arguments(long number, const long *a) {
    switch (number) {
    case SYS_seccomp: return seccomp_class(a);
    case SYS_personality: return personality_class(a);
    case SYS_perf_event_open: return perf_class(a);
    case SYS_add_key: return names_own_keyring(a[4]) ? CALL_LINEAGE : CALL_SHARED;
    case SYS_request_key: return names_own_keyring(a[3]) ? CALL_LINEAGE : CALL_SHARED;
    case SYS_keyctl: return keyctl_class(a);
    case SYS_futex: return futex_class(a);
    default: return CALL_UNKNOWN;
    }
}

enum call_class call_class(long number, const long *arguments) {
    if (number < 0 || (size_t)number >= sizeof classes / sizeof *classes)
        return CALL_UNKNOWN;
    enum call_class class = (enum call_class)classes[number];
    return class == CALL_DEPENDS ? class_by_arguments(number, arguments) : class;
}
