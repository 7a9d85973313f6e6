// SPDX-License-Identifier: Apache-2.0
/* System calls made through libc's syscall(): what they do to the thread that makes them is told by their class
 * (calls.h). Rows lineage, rights, kernel-ties, stale, end. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "arch_calls.h"
#include "cache.h"
#include "calls.h"
#include "os/syscall.h"
#include "unchanged.h"

static bool about_many(long number, const long *a) {
    return (number == SYS_setpriority && a[0] != 0 /* PRIO_PROCESS */) ||
           (number == SYS_ioprio_set && a[0] != 1 /* IOPRIO_WHO_PROCESS */);
}

/* The word that the kernel clears, and libc's join waits for, at a real exit. A thread that has put it back in
 * place may be kept; so the place is asked for before the first move. */
static void tid_address_moves(void *address) {
    struct kthread *self = kthread_self_sigsafe();
    if (self == NULL || process_is_sharing())
        return;
    if (self->fresh.tid_address == NULL)
        sys(SYS_prctl, PR_GET_TID_ADDRESS, &self->fresh.tid_address);
    self->tid_moved = address != self->fresh.tid_address;
}

static void before(long number, const long *a) {
    struct kthread *self = kthread_self_sigsafe();
    switch (number) {
    case SYS_unshare: inherit_leaves_namespaces(); break;
    case SYS_set_robust_list:
        if (self != NULL && !process_is_sharing())
            robust_list_changes(&self->fresh);
        break;
    case SYS_set_tid_address: tid_address_moves((void *)a[0]); break;
    case SYS_seccomp:
        if (call_class(number, a) == CALL_LINEAGE)
            inherit_filter_coming();
        break;
    case SYS_exit:
        if ((self == NULL && !kthread_keeping()) || process_is_sharing())
            break;
        if (self != NULL)
            kthread_exits_raw();
        else if (cache_in_main())
            kthread_main_exits();
        break;
    case SYS_exit_group: report_once(); break;
    case SYS_setfsuid:
    case SYS_setfsgid:
        if ((uint32_t)a[0] != UINT32_MAX) /* which only asks */
            inherit_rights_coming();
        break;
    case SYS_timer_delete: clock_timer_gone((int)a[0]); break;
    case SYS_getdents64: tasks_listed_by((int)a[0]); break;
    case SYS_perf_event_open: break; /* its class is in memory that the kernel may not be able to read */
    default:
        if (arch_call_lists(number))
            tasks_listed_by((int)a[0]);
        else if (call_class(number, a) == CALL_RIGHTS)
            inherit_rights_coming();
    }
}

/* Of calls that ask for the status of a file: which argument is its path. -1: of others. */
static int path_argument(long number) {
    enum { FACCESSAT2 = 439 };
    switch (number) {
    case SYS_newfstatat:
    case SYS_statx:
    case SYS_faccessat:
    case FACCESSAT2: return 1;
    default: return arch_call_path_argument(number);
    }
}

static long set_timer(const long *a) {
    struct itimerspec shifted;
    const struct itimerspec *value =
        clock_timer_value((int)a[0], (int)a[1], (const struct itimerspec *)a[2], &shifted);
    return REAL(syscall)(SYS_timer_settime, a[0], a[1], value, a[3]);
}

static long make_timer(const long *a, const struct reach_call *reached) {
    long answer = REAL(syscall)(SYS_timer_create, a[0], a[1], a[2]);
    if (answer != 0 || clock_timer_made((clockid_t)a[0], &reached->target, (const int *)a[2]))
        return answer;
    errno = EAGAIN;
    return -1;
}

static long make(long number, const long *a, const struct reach_call *reached) {
    int path = path_argument(number);
    if (number == SYS_timer_create)
        return make_timer(a, reached);
    if (number == SYS_timer_settime)
        return set_timer(a);
    long answer = REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (path >= 0 && task_stat_again(answer, (const char *)a[path]))
        answer = REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    return answer;
}

static void after(long number, const long *a, const struct reach_call *reached, const struct unchanged *was) {
    if (unchanged_is(was))
        return;
    switch (call_class(number, a)) {
    case CALL_ASKS:
    case CALL_SHARED:
    case CALL_KEPT:
    case CALL_OWN: break;
    case CALL_UNKNOWN:
    case CALL_DEPENDS:
    case CALL_NEVER:
    case CALL_TIES:
        kthread_tie_sigsafe_by(RETIRE_TIES, because_number(number));
        if (reached->target.tid != 0)
            reach_tie_by(&reached->target, because_number(number));
        if (reached->other.tid != 0)
            reach_tie_by(&reached->other, because_number(number));
        break;
    case CALL_LINEAGE:
    case CALL_RIGHTS:
        if (number == SYS_perf_event_open)
            kthread_tie_sigsafe_by(RETIRE_TIES, because_number(number));
        if (!about_many(number, a))
            inherit_changed_reached_by(&reached->target, because_number(number));
        else
            inherit_changed_many("a system call changed the scheduling of several threads");
    }
}

static long from_error(int error) {
    if (error == 0)
        return 0;
    errno = error;
    return -1;
}

/* Of these libc's functions do more than the call: they die of a pointer that the kernel refuses, have answers of their
 * own, or act on a cancellation. */
static bool is_of_another_thread(clockid_t clock) {
    return clock != CLOCK_THREAD_CPUTIME_ID && clock_is_of_thread(clock);
}

static bool sets_owner(long command) {
    return command == F_SETOWN || command == F_SETOWN_EX || command == F_NOTIFY || command == F_SETLEASE ||
           command == F_SETFL;
}

/* Calls that have a function of their own here, with all that it does. */
static bool redirected(long number, const long *a, long *answer) {
    switch (number) {
    case SYS_prctl: *answer = prctl((int)a[0], a[1], a[2], a[3], a[4]); return true;
    case SYS_sched_setaffinity:
        *answer = sched_setaffinity((pid_t)a[0], (size_t)a[1], (const cpu_set_t *)a[2]);
        return true;
    case SYS_clock_gettime:
        if (!clock_is_of_thread((clockid_t)a[0]))
            return false;
        *answer = clock_gettime((clockid_t)a[0], (struct timespec *)a[1]);
        return true;
    case SYS_clock_nanosleep:
        if (!is_of_another_thread((clockid_t)a[0]))
            return false;
        *answer = from_error(clock_nanosleep((clockid_t)a[0], (int)a[1], (const struct timespec *)a[2],
                                             (struct timespec *)a[3]));
        return true;
    case SYS_getrusage: *answer = getrusage((int)a[0], (struct rusage *)a[1]); return true;
    case SYS_tgkill: *answer = tgkill((pid_t)a[0], (pid_t)a[1], (int)a[2]); return true;
    case SYS_fcntl:
        if (!sets_owner(a[1]))
            return false;
        *answer = fcntl((int)a[0], (int)a[1], a[2]);
        return true;
    case SYS_setns: *answer = setns((int)a[0], (int)a[1]); return true;
    case SYS_prlimit64:
        *answer = prlimit64((pid_t)a[0], (__rlimit_resource_t)a[1], (const struct rlimit64 *)a[2],
                            (struct rlimit64 *)a[3]);
        return true;
    case SYS_capget: *answer = capget((void *)a[0], (void *)a[1]); return true;
    case SYS_pidfd_open: *answer = pidfd_open((pid_t)a[0], (unsigned)a[1]); return true;
    case SYS_pkey_alloc: *answer = pkey_alloc((unsigned)a[0], (unsigned)a[1]); return true;
    default: return arch_call_answered(number, a, answer);
    }
}

/* A child with memory of its own: answered with 0 it is in the child that we are. */
static bool makes_copy(long number, const long *a) {
    switch (number) {
    case SYS_clone: return (a[0] & CLONE_VM) == 0;
    case SYS_clone3: /* the flags come first */
        return process_can_read((const void *)a[0], sizeof(uint64_t)) &&
               (*(const uint64_t *)a[0] & CLONE_VM) == 0;
    default: return arch_call_is_fork(number);
    }
}

INTERPOSE long syscall(long number, ...) {
    long a[6], answer;
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    struct reach_call reached;
    if (redirected(number, a, &answer))
        return answer;
    reach_begin_call(&reached, number, a);
    bool copies = makes_copy(number, a);
    bool self_was_main = copies && kthread_self_sigsafe() == NULL && cache_in_main();
    if (copies)
        kthread_before_copy();
    before(number, a);
    const struct unchanged was = unchanged_by_number(number, a);
    answer = make(number, a, &reached);
    if (copies && answer != 0)
        kthread_after_copy();
    if (answer == 0 && copies)
        process_child_begins(self_was_main);
    else if (answer != -1)
        after(number, a, &reached, &was);
    reach_end_call(&reached);
    return answer;
}
