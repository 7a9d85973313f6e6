// SPDX-License-Identifier: Apache-2.0
/* Programs that confine themselves: from some moment on a seccomp filter of their own allows the system calls that
 * they need, and the kernel ends them at any other. So from then on this library makes only those that it answers,
 * that of a handler's return and rt_sigprocmask. It does without whatever else it asked the kernel for until then, or
 * has it before.
 *
 * A filter comes by prctl or by seccomp(2), for which libc has no function. A program without CAP_SYS_ADMIN, or one
 * that uses libseccomp, promises by prctl before that nothing gains privileges. That counts as well. */
#include <pthread.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "os/syscall.h"
#include "real.h"
#include "stat.h"

static uint32_t confined; /* how many calls have asked for it, and have not failed */
static int32_t *process;  /* its number, which a forked child finds to be 0; NULL: no memory */

void confined_begin(void) {
    enum { PAGE = 4096 };
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || madvise(page, PAGE, MADV_WIPEONFORK) != 0)
        return;
    process = page;
    confined_process_sigsafe();
}

bool confined_sigsafe(void) {
    return load_relaxed(&confined) != 0;
}

/* A child that shares the memory counts as its parent. */
int32_t confined_process_sigsafe(void) {
    int32_t number = process != NULL ? load_relaxed(process) : 0;
    if (number != 0)
        return number;
    number = (int32_t)sys(SYS_getpid);
    if (process != NULL)
        store_relaxed(process, number);
    return number;
}

/* libc knows it: the number is in that of the thread's clock (CPUCLOCK_SCHED in the kernel). */
int32_t confined_thread_sigsafe(void) {
    clockid_t clock;
    if (pthread_getcpuclockid(pthread_self(), &clock) == 0)
        return (int32_t) ~(clock >> 3);
    return (int32_t)sys(SYS_gettid);
}

/* Whether the program calls, or a child that a filter is for as well. A child that shares the memory is told from its
 * parent as long as the kernel may be asked. */
int32_t confined_caller_sigsafe(void) {
    return confined_sigsafe() ? confined_process_sigsafe() : (int32_t)sys(SYS_getpid);
}

/* One that shares its parent's memory does not confine that. */
static bool confines(int option) {
    return (option == PR_SET_SECCOMP || option == PR_SET_NO_NEW_PRIVS) && probe_of_process() != NULL &&
           confined_process_sigsafe() == confined_caller_sigsafe();
}

INTERPOSE int prctl(int option, ...) {
    va_list list;
    va_start(list, option);
    const unsigned long a = va_arg(list, unsigned long), b = va_arg(list, unsigned long),
                        c = va_arg(list, unsigned long), d = va_arg(list, unsigned long);
    va_end(list);
    const bool asks = confines(option);
    if (asks) {
        maps_leave_sigsafe();
        fetch_add_relaxed(&confined, 1U);
    }
    const int error = REAL(prctl)(option, a, b, c, d);
    if (error != 0 && asks) /* as a call that only asks whether there are filters finds */
        fetch_sub_relaxed(&confined, 1U);
    return error;
}
