// SPDX-License-Identifier: Apache-2.0
/* Calls that take a thread's kernel id. The id of a thread that has ended stands for no thread, although its kernel
 * thread is idle or runs another job: the call answers as the kernel does for an id that is not in use. Row stale.
 *
 * The kernel itself gives that answer: it is asked about an id that no thread can have. So the order in which it
 * looks at the arguments, and each errno value, are its own. A thread that runs is visited for the length of the call
 * (gate.h): what the call changes can then not reach the kernel thread's next job. The caller's signals are blocked
 * meanwhile, so a call that may sleep only looks.
 *
 * Not reached: calls by inline assembly, calls of other processes, and ids in files of /proc (docs/internals/soundness.md). */
#include <errno.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <sys/uio.h>

#include "cache.h"
#include "os/syscall.h"

/* Above the kernel's PID_MAX_LIMIT (1 << 22), and it fits into a CPU clock's id. */
enum { NO_SUCH_TID = 0x0fffffff };

static bool needs_look(pid_t tid) {
    const struct kthread *self = kthread_self_sigsafe();
    return tid > 0 && tid != (pid_t)cache_pid() && (self == NULL || tid != self->tid) && kthread_keeping() &&
           load_relaxed(&thrum_cache_counters.created) != 0 && !skipped(ROW_STALE);
}

void reach_begin(struct reach *reach, pid_t tid) {
    reach->tid = tid;
    reach->thread = NULL;
    if (!needs_look(tid))
        return;
    struct kthread *thread;
    switch (kthread_visit_tid(tid, &reach->visit, &thread)) {
    case KTHREAD_TID_VISITED: reach->thread = thread; break;
    case KTHREAD_TID_ENDED: reach->tid = NO_SUCH_TID; break;
    default: break;
    }
}

void reach_end(struct reach *reach) {
    if (reach->thread == NULL)
        return;
    reach->thread = NULL;
    gate_visit_end(&reach->visit);
}

pid_t reach_look(pid_t tid) {
    struct reach reach;
    reach_begin(&reach, tid);
    reach_end(&reach);
    return reach.tid;
}

/* The visited thread may be closing its gate: a second visit to it could fail. */
void reach_tie_by(const struct reach *reach, because call) {
    if (reach->thread == NULL)
        kthread_tie_tid_by(reach->tid, call);
    else
        kthread_tie_of_by(reach->thread, RETIRE_TIES, call);
}

/* --- CPU clocks; the rest of them is in clock.c ------------------------------------------------------------ */

clockid_t reach_begin_clock(struct reach *reach, clockid_t clock) {
    bool named = clock != CLOCK_THREAD_CPUTIME_ID && clock_is_of_thread(clock);
    pid_t tid = named ? clock_tid(clock) : 0;
    reach_begin(reach, tid);
    return reach->tid == tid ? clock : (clockid_t)(~(uint32_t)reach->tid << 3 | ((uint32_t)clock & 7));
}

/* --- functions of libc's that only ask, or that concern the whole process -------------------------------- */

INTERPOSE int clock_getres(clockid_t clock, struct timespec *resolution) {
    struct reach reach;
    clock = reach_begin_clock(&reach, clock);
    reach_end(&reach);
    return NEXT(clock_getres)(clock, resolution);
}

INTERPOSE int clock_settime(clockid_t clock, const struct timespec *time) {
    struct reach reach;
    clock = reach_begin_clock(&reach, clock);
    reach_end(&reach);
    return NEXT(clock_settime)(clock, time);
}

INTERPOSE int kill(pid_t pid, int signo) {
    return REAL(kill)(skipped(ROW_SIGPENDING) ? pid : reach_look(pid), signo);
}

INTERPOSE int sigqueue(pid_t pid, int signo, const union sigval value) {
    return REAL(sigqueue)(skipped(ROW_SIGPENDING) ? pid : reach_look(pid), signo, value);
}

INTERPOSE int sched_getscheduler(pid_t tid) {
    return NEXT(sched_getscheduler)(reach_look(tid));
}

INTERPOSE int sched_getparam(pid_t tid, struct sched_param *param) {
    return NEXT(sched_getparam)(reach_look(tid), param);
}

INTERPOSE int sched_rr_get_interval(pid_t tid, struct timespec *interval) {
    return NEXT(sched_rr_get_interval)(reach_look(tid), interval);
}

INTERPOSE int sched_getaffinity(pid_t tid, size_t size, cpu_set_t *set) {
    return NEXT(sched_getaffinity)(reach_look(tid), size, set);
}

INTERPOSE int getpriority(__priority_which_t which, id_t id) {
    return NEXT(getpriority)(which, which == PRIO_PROCESS ? (id_t)reach_look((pid_t)id) : id);
}

INTERPOSE pid_t getpgid(pid_t pid) {
    return NEXT(getpgid)(reach_look(pid));
}

INTERPOSE pid_t getsid(pid_t pid) {
    return NEXT(getsid)(reach_look(pid));
}

INTERPOSE int setpgid(pid_t pid, pid_t group) {
    return REAL(setpgid)(reach_look(pid), group);
}

INTERPOSE ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long local_count,
                                   const struct iovec *remote, unsigned long remote_count,
                                   unsigned long flags) {
    return NEXT(process_vm_readv)(reach_look(pid), local, local_count, remote, remote_count, flags);
}

INTERPOSE ssize_t process_vm_writev(pid_t pid, const struct iovec *local, unsigned long local_count,
                                    const struct iovec *remote, unsigned long remote_count,
                                    unsigned long flags) {
    return NEXT(process_vm_writev)(reach_look(pid), local, local_count, remote, remote_count, flags);
}

/* The kernel writes the version that it prefers into a header that names another. */
INTERPOSE int capget(void *header, void *data) {
    struct __user_cap_header_struct *given = header;
    if (!process_can_read(given, sizeof *given) || reach_look(given->pid) == given->pid)
        return NEXT(capget)(header, data);
    struct __user_cap_header_struct copy = {given->version, NO_SUCH_TID};
    int answer = NEXT(capget)(&copy, data);
    given->version = copy.version;
    return answer;
}

/* A thread's own descriptor becomes readable when the thread dies: then it must. */
INTERPOSE int pidfd_open(pid_t pid, unsigned flags) {
    enum { THREAD = 0200 }; /* PIDFD_THREAD, which is O_EXCL */
    struct reach reach;
    reach_begin(&reach, pid);
    long answer = sys(SYS_pidfd_open, reach.tid, flags);
    if (answer >= 0 && (flags & THREAD))
        reach_tie(&reach);
    reach_end(&reach);
    if (answer >= 0)
        return (int)answer;
    errno = (int)-answer;
    return -1;
}

/* --- the same through syscall() ------------------------------------------------------------------------- */

static int tid_argument(long number, const long *a) {
    switch (number) {
    case SYS_kill:
    case SYS_rt_sigqueueinfo:
    case SYS_tkill: return skipped(ROW_SIGPENDING) ? -1 : 0;
    case SYS_rt_tgsigqueueinfo:
        return skipped(ROW_SIGPENDING) || (pid_t)a[0] != (pid_t)sys(SYS_getpid) ? -1 : 1;
    case SYS_sched_getscheduler:
    case SYS_sched_setscheduler:
    case SYS_sched_getparam:
    case SYS_sched_setparam:
    case SYS_sched_getattr:
    case SYS_sched_setattr:
    case SYS_sched_getaffinity:
    case SYS_sched_rr_get_interval:
    case SYS_getpgid:
    case SYS_getsid:
    case SYS_setpgid:
    case SYS_get_robust_list:
    case SYS_process_vm_readv:
    case SYS_process_vm_writev:
    case SYS_kcmp:
    case SYS_migrate_pages:
    case SYS_move_pages: return 0;
    case SYS_ptrace: return 1;
    case SYS_perf_event_open: return a[4] & PERF_FLAG_PID_CGROUP ? -1 : 1; /* a descriptor with that flag */
    case SYS_getpriority:
    case SYS_setpriority: return a[0] == PRIO_PROCESS ? 1 : -1;
    case SYS_ioprio_get:
    case SYS_ioprio_set: return a[0] == 1 /* IOPRIO_WHO_PROCESS */ ? 1 : -1;
    default: return -1;
    }
}

/* A timer has two: its clock's and that of the thread that its signal is for. */
static void begin_timer(struct reach_call *call, long *a) {
    const struct sigevent *event = (const struct sigevent *)a[1];
    a[0] = reach_begin_clock(&call->target, (clockid_t)a[0]);
    if (!process_can_read(event, sizeof *event) || event->sigev_notify != SIGEV_THREAD_ID)
        return;
    call->event = *event;
    reach_begin(&call->other, event->_sigev_un._tid);
    call->event._sigev_un._tid = call->other.tid;
    a[1] = (long)&call->event;
}

void reach_begin_call(struct reach_call *call, long number, long *a) {
    reach_begin(&call->target, 0);
    reach_begin(&call->other, 0);
    int at = tid_argument(number, a);
    if (at >= 0) {
        reach_begin(&call->target, (pid_t)a[at]);
        a[at] = call->target.tid;
    }
    switch (number) {
    case SYS_kcmp: a[1] = reach_look((pid_t)a[1]); break;
    case SYS_clock_getres:
    case SYS_clock_settime: a[0] = reach_begin_clock(&call->target, (clockid_t)a[0]); break;
    case SYS_timer_create: begin_timer(call, a); break;
    }
}

void reach_end_call(struct reach_call *call) {
    reach_end(&call->other);
    reach_end(&call->target);
}
