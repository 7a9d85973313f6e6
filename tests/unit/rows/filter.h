// SPDX-License-Identifier: Apache-2.0
//
// Seccomp filters for row tests: what is let through, or what is not. Included by sandbox*.c, stale_core.c and rights.c.
#ifndef THRUM_TESTS_ROWS_FILTER_H
#define THRUM_TESTS_ROWS_FILTER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "child.h"

enum { FILTER_MOST = 120 };

struct filter {
    struct sock_filter code[2 * FILTER_MOST + 2];
    unsigned short length;
};

static inline void filter_add(struct filter *filter, unsigned short code, unsigned value, unsigned char yes,
                              unsigned char no) {
    PREMISE(filter->length < sizeof filter->code / sizeof *filter->code, "the filter is too long");
    filter->code[filter->length++] = (struct sock_filter){code, yes, no, value};
}

// `action` for each of the listed calls (up to a negative number), `other` for the rest.
static inline void filter_make(struct filter *filter, const long *calls, unsigned action, unsigned other) {
    filter->length = 0;
    filter_add(filter, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
    for (; *calls >= 0; calls++) {
        filter_add(filter, BPF_JMP | BPF_JEQ | BPF_K, (unsigned)*calls, 0, 1);
        filter_add(filter, BPF_RET | BPF_K, action, 0, 0);
    }
    filter_add(filter, BPF_RET | BPF_K, other, 0, 0);
}

static inline void filter_install(struct filter *filter) {
    struct sock_fprog program = {filter->length, filter->code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == -1)
        CANNOT("no seccomp filter: %s", strerror(errno));
}

// For all threads, as they are.
static inline void filter_install_for_all(struct filter *filter) {
    struct sock_fprog program = {filter->length, filter->code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
        CANNOT("no seccomp filter for all threads: %s", strerror(errno));
}

// Starts the case anew under the filter, with `name` in the environment.
static inline int filter_restart(struct filter *filter, const char *name) {
    setenv(name, "1", 1);
    filter_install(filter);
    execv("/proc/self/exe", check_argv);
    if (errno == ENOEXEC)
        CANNOT("under an emulator a program cannot start itself anew");
    CHECK(0, "execv: %s", strerror(errno));
    return 0;
}

// The same with this action for the listed calls; true in that process.
static inline int restarted_under(const long *calls, unsigned action) {
    static const char inner_name[] = "THRUM_ROW_INNER";
    static struct filter filter;
    if (getenv(inner_name))
        return 1;
    filter_make(&filter, calls, action, SECCOMP_RET_ALLOW);
    return filter_restart(&filter, inner_name);
}

#endif
