// SPDX-License-Identifier: Apache-2.0
/* Processes that run under a seccomp filter which was installed before they started (systemd's SystemCallFilter=,
 * containers). Reuse makes system calls that libc does not make for a thread; a filter may kill for one of them. So
 * before the first thread the library asks whether there is a filter, and if so, has a short-lived copy of the process
 * make each of these calls. If the copy dies or a call is refused, the cache stays off. Row sandbox.
 *
 * What is called before that is known is getpid, what the loader itself called to load this library (openat, read, close),
 * and what makes the copy (clone, wait4). A filter that the process installs later is seen coming: inherit_filter_coming. */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "cache.h"
#include "os/file.h"
#include "os/syscall.h"

#ifndef __WALL
#define __WALL 0x40000000
#endif

/* True also if that cannot be told, as where /proc is not mounted. */
bool sandbox_is_filtered(void) {
    static const char field[] = "\nSeccomp:\t";
    char status[4096];
    if (file_read_status("/proc/self/status", status, sizeof status) <= 0)
        return true;
    const char *at = strstr(status, field);
    return at != NULL && at[sizeof field - 1] != '0';
}

/* --- in the copy: system calls alone, no functions of libc's ------------------------------------------- */

static bool refused(long answer) {
    return answer == -EPERM || answer == -EACCES || answer == -ENOSYS;
}

/* One core file or crash report for a probe would be one too many: a limit of one byte prevents both. */
static void no_core(void) {
    struct rlimit none = {1, 1};
    sys(SYS_prlimit64, 0, RLIMIT_CORE, &none, NULL);
}

static bool reads_status(void) {
    char text[64];
    return file_read("/proc/thread-self/status", text, sizeof text) != -EPERM;
}

static bool try_signals(long pid, long tid) {
    uint64_t set = 0;
    stack_t stack;
    struct timespec now = {0, 0};
    return !refused(sys(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &set, sizeof set)) &&
           !refused(sys(SYS_rt_sigpending, &set, sizeof set)) &&
           !refused(sys(SYS_sigaltstack, NULL, &stack)) && !refused(sys(SYS_tgkill, pid, tid, 0)) &&
           (set = 0, !refused(sys(SYS_rt_sigtimedwait, &set, NULL, &now, sizeof set)));
}

static bool try_scheduling(void) {
    static unsigned long cpus[FRESH_CPU_WORDS];
    uint64_t attributes[6];
    long length = sys(SYS_sched_getaffinity, 0, sizeof cpus, cpus);
    return !refused(length) && !refused(sys(SYS_sched_yield)) &&
           (length <= 0 || !refused(sys(SYS_sched_setaffinity, 0, length, cpus))) &&
           !refused(sys(SYS_sched_getattr, 0, attributes, sizeof attributes, 0)) &&
           !refused(sys(SYS_getpriority, PRIO_PROCESS, 0));
}

static bool try_times(void) {
    struct timespec time;
    static struct rusage usage;
    return !refused(sys(SYS_clock_gettime, CLOCK_MONOTONIC, &time)) &&
           !refused(sys(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &time)) &&
           !refused(sys(SYS_getrusage, RUSAGE_THREAD, &usage));
}

static bool try_memory(void) {
    static char page[2 * 65536];
    unsigned char resident[2];
    char *aligned = (char *)(((uintptr_t)page + 65535) & ~(uintptr_t)65535);
    return !refused(sys(SYS_mincore, aligned, 4096, resident)) &&
           !refused(sys(SYS_madvise, aligned, 4096, MADV_DONTNEED));
}

static bool try_all(void) {
    static uint32_t word;
    static char name[FRESH_NAME];
    void *head;
    size_t length;
    long pid = sys(SYS_getpid), tid = sys(SYS_gettid);
    return !refused(pid) && !refused(tid) && reads_status() && try_signals(pid, tid) && try_scheduling() &&
           try_times() && try_memory() && !refused(sys(SYS_get_robust_list, 0, &head, &length)) &&
           !refused(sys(SYS_prctl, PR_GET_NAME, name)) && !refused(sys(SYS_prctl, PR_SET_NAME, name)) &&
           !refused(sys(SYS_futex, &word, 1 | 128 /* FUTEX_WAKE_PRIVATE */, 1));
}

static bool try_uring(void) {
    return uring_ask() != -EPERM; /* and it is alive */
}

/* --- in the process ------------------------------------------------------------------------------------- */

/* The caller waits until the copy has ended. It sends no signal when it ends, so no handler and no wait() of the
 * program's notices. Signals are blocked in both. */
static bool copy_says(bool (*test)(void)) {
    sigbits mask = signals_mask_set(SIGBITS_ALL);
    long pid = sys(SYS_clone, CLONE_VFORK, 0, 0, 0, 0);
    if (pid == 0) {
        no_core();
        bool passed = test();
        for (;;)
            sys(SYS_exit_group, passed ? 0 : 1);
    }
    int status = 1;
    long waited = -ECHILD;
    if (pid > 0)
        do {
            waited = sys(SYS_wait4, pid, &status, __WALL, NULL);
        } while (waited == -EINTR);
    signals_mask_set(mask);
    return pid > 0 && waited == pid && status == 0;
}

static bool unfiltered;

bool sandbox_permits_more(void) {
    return load_relaxed(&unfiltered);
}

bool sandbox_permits(void) {
    if (skipped(ROW_SANDBOX) || !sandbox_is_filtered()) {
        uring_permitted();
        store_relaxed(&unfiltered, true);
        return true;
    }
    if (!copy_says(try_all))
        return false;
    if (copy_says(try_uring))
        uring_permitted();
    return true;
}
