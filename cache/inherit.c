// SPDX-License-Identifier: Apache-2.0
/* Calls that change kernel state which a new thread has from its creator. What one call puts back (affinity,
 * name) is only noted; anything else makes a new lineage: the thread retires at its end, and only idle threads
 * of that lineage, that is its own children, serve its creations. Rows inherit, lineage.
 *
 * The same calls made through syscall() arrive here from syscall.c; made by inline assembly they are not seen
 * (docs/internals/soundness.md). */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "cache.h"
#include "os/clock.h"
#include "os/futex.h"
#include "os/syscall.h"
#include "unchanged.h"

void inherit_changed_by(enum visit entered, struct kthread *thread, pthread_t handle, because call) {
    if (!kthread_keeping() || process_is_sharing())
        return;
    if (entered != VISIT_FOREIGN)
        kthread_change_lineage_of_by(thread, call);
    else if (handle == pthread_self())
        kthread_change_lineage_by(call);
    else if (!skipped(ROW_LINEAGE))
        kthread_stop_keeping("a thread that the cache did not start was changed by another thread");
}

/* Another process's thread is none of our business. */
static bool is_in_process(pid_t tid) {
    return sys(SYS_tgkill, sys(SYS_getpid), tid, 0) != -ESRCH;
}

void inherit_changed_tid_by(pid_t tid, because call) {
    struct kthread *thread;
    struct gate_visit visit;
    if (!kthread_keeping() || process_is_sharing())
        return;
    if (tid == 0 || tid == (pid_t)sys(SYS_gettid)) {
        kthread_change_lineage_by(call);
        return;
    }
    switch (kthread_visit_tid(tid, &visit, &thread)) {
    case KTHREAD_TID_VISITED:
        kthread_change_lineage_of_by(thread, call);
        gate_visit_end(&visit);
        break;
    case KTHREAD_TID_ENDED:
        kthread_change_lineage_of_by(thread, call); /* idle: of no creator's lineage from now on */
        break;
    default:
        if (is_in_process(tid) && !skipped(ROW_LINEAGE))
            kthread_stop_keeping("a thread that the cache did not start was changed by another thread");
    }
}

void inherit_changed_many(const char *what) {
    if (kthread_keeping() && !process_is_sharing() && !skipped(ROW_LINEAGE))
        kthread_stop_keeping(what);
}

/* Before some namespaces are left or entered, which only a process of one thread can do: the idle ones would be in the
 * way. */
void inherit_only_one_thread(void) {
    if (!process_is_sharing() && !skipped(ROW_LINEAGE))
        kthread_cull();
}

static void note_by(long answer, pid_t tid, const struct unchanged *was, because call) {
    if (answer != -1 && !unchanged_is(was))
        inherit_changed_tid_by(tid, call);
}
#define note(answer, tid, was) note_by((answer), (tid), (was), because_name(__func__))

void inherit_changed_reached_by(const struct reach *reach, because call) {
    if (reach->thread != NULL && !process_is_sharing())
        kthread_change_lineage_of_by(reach->thread, call);
    else
        inherit_changed_tid_by(reach->tid, call);
}

static void note_reached_by(long answer, struct reach *reach, const struct unchanged *was, because call) {
    if (answer != -1 && !unchanged_is(was))
        inherit_changed_reached_by(reach, call);
    reach_end(reach);
}
#define note_reached(answer, reach, was) note_reached_by((answer), (reach), (was), because_name(__func__))

/* --- affinity ----------------------------------------------------------------------------------------- */

/* A thread of ours is visited meanwhile: if it ended and its kernel thread got another job, that one would get the
 * mask. */
INTERPOSE int sched_setaffinity(pid_t tid, size_t size, const cpu_set_t *set) {
    struct kthread *thread = kthread_self_sigsafe();
    struct gate_visit visit;
    enum kthread_tid found = KTHREAD_TID_FOREIGN;
    if (!kthread_keeping())
        return REAL(sched_setaffinity)(tid, size, set);
    if (tid != 0 && tid != (pid_t)sys(SYS_gettid)) {
        thread = NULL;
        found = kthread_visit_tid(tid, &visit, &thread);
        if (found == KTHREAD_TID_ENDED && !skipped(ROW_STALE)) {
            errno = ESRCH;
            return -1;
        }
    }
    creator_affinity_changes();
    int answer = REAL(sched_setaffinity)(tid, size, set);
    creator_affinity_changed(thread != NULL ? &thread->fresh : NULL);
    if (found == KTHREAD_TID_VISITED)
        gate_visit_end(&visit);
    return answer;
}

/* --- scheduling --------------------------------------------------------------------------------------- */

INTERPOSE int sched_setscheduler(pid_t tid, int policy, const struct sched_param *param) {
    struct reach reach;
    reach_begin(&reach, tid);
    const struct unchanged was = unchanged_scheduling(reach.tid);
    int answer = REAL(sched_setscheduler)(reach.tid, policy, param);
    note_reached(answer, &reach, &was);
    return answer;
}

INTERPOSE int sched_setparam(pid_t tid, const struct sched_param *param) {
    struct reach reach;
    reach_begin(&reach, tid);
    const struct unchanged was = unchanged_scheduling(reach.tid);
    int answer = REAL(sched_setparam)(reach.tid, param);
    note_reached(answer, &reach, &was);
    return answer;
}

static int set_priority_of_many(__priority_which_t which, id_t id, int priority) {
    int answer = REAL(setpriority)(which, id, priority);
    if (answer == 0)
        inherit_changed_many("setpriority of a process group or user");
    return answer;
}

INTERPOSE int setpriority(__priority_which_t which, id_t id, int priority) {
    struct reach reach;
    if (which != PRIO_PROCESS)
        return set_priority_of_many(which, id, priority);
    reach_begin(&reach, (pid_t)id);
    const struct unchanged was = unchanged_scheduling(reach.tid);
    int answer = REAL(setpriority)(which, (id_t)reach.tid, priority);
    note_reached(answer, &reach, &was);
    return answer;
}

INTERPOSE int nice(int increment) {
    int saved = errno;
    const struct unchanged was = unchanged_scheduling(0);
    errno = 0;
    int answer = REAL(nice)(increment);
    if (answer == -1 && errno != 0)
        return answer;
    errno = saved;
    note(0, 0, &was);
    return answer;
}

/* --- rights ------------------------------------------------------------------------------------------- */

/* Calls that take privileges from the caller alone are made by programs that have no other thread left. Then no
 * kernel thread may be left either that still has the privileges: injected code could make it act. So before the main
 * thread changes its privileges, idle threads end. Busy ones end when they are done, since a new generation of
 * privileges begins (kthread_change_rights). A thread other than main may change its own as often as it likes: what
 * the idle ones may do, main may do as well. Row rights. */
void inherit_rights_coming(void) {
    if (kthread_keeping() && !skipped(ROW_RIGHTS) && !skipped(ROW_LINEAGE) && cache_in_main() &&
        !process_is_sharing())
        kthread_change_rights();
}

/* --- namespaces, capabilities, personality ------------------------------------------------------------ */

void inherit_leaves_namespaces(void) {
    if (kthread_keeping())
        inherit_only_one_thread();
    inherit_rights_coming();
}

INTERPOSE int unshare(int flags) {
    inherit_leaves_namespaces();
    int answer = REAL(unshare)(flags);
    if (answer != -1)
        inherit_changed_tid(0);
    return answer;
}

/* A namespace that the caller is in already: entering it changes nothing that children inherit. */
static bool is_own_namespace(int fd) {
    static const char *const names[] = {
        "cgroup", "ipc", "mnt", "net", "pid_for_children", "time_for_children", "user", "uts"};
    struct stat wanted, own;
    long folder = sys(SYS_openat, AT_FDCWD, "/proc/thread-self/ns", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    bool found = false;
    if (folder >= 0 && fstat(fd, &wanted) == 0)
        for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++)
            found = fstatat((int)folder, names[i], &own, 0) == 0 && own.st_dev == wanted.st_dev &&
                    own.st_ino == wanted.st_ino;
    if (folder >= 0)
        sys(SYS_close, folder);
    return found;
}

INTERPOSE int setns(int fd, int type) {
    if (!kthread_keeping())
        return REAL(setns)(fd, type);
    int saved = errno;
    bool own = is_own_namespace(fd);
    errno = saved;
    if (!own)
        inherit_leaves_namespaces();
    int answer = REAL(setns)(fd, type);
    if (own && answer == -1 && errno == EINVAL && !skipped(ROW_LINEAGE) && kthread_cull() > 0) {
        errno = saved;
        answer = REAL(setns)(fd, type);
    }
    if (!own && answer != -1)
        inherit_changed_tid(0);
    return answer;
}

INTERPOSE int personality(unsigned long persona) {
    int answer = REAL(personality)(persona);
    if (answer != -1 && (persona & 0xffffffff) != 0xffffffff && (unsigned long)answer != persona)
        inherit_changed_tid(0);
    return answer;
}

INTERPOSE int capset(void *header, const void *data) {
    inherit_rights_coming();
    const struct unchanged was = unchanged_rights();
    int answer = REAL(capset)(header, data);
    note(answer, 0, &was);
    return answer;
}

/* These two answer with the former id, whether or not they changed it. No id is -1: programs only ask with it. */
INTERPOSE int setfsuid(uid_t uid) {
    if (uid == (uid_t)-1)
        return REAL(setfsuid)(uid);
    inherit_rights_coming();
    int former = REAL(setfsuid)(uid);
    if ((uid_t)former != uid)
        inherit_changed_tid(0);
    return former;
}

INTERPOSE int setfsgid(gid_t gid) {
    if (gid == (gid_t)-1)
        return REAL(setfsgid)(gid);
    inherit_rights_coming();
    int former = REAL(setfsgid)(gid);
    if ((gid_t)former != gid)
        inherit_changed_tid(0);
    return former;
}

/* --- prctl -------------------------------------------------------------------------------------------- */

enum { PRCTL_SET_VMA = 0x53564d41 };

/* Options that only ask, or that concern the whole process or its memory. Any other, known or not, counts as a
 * change of what children inherit. */
static bool prctl_harmless(int option) {
    switch (option) {
    case PR_GET_NAME:
    case PR_GET_DUMPABLE:
    case PR_SET_DUMPABLE:
    case PR_GET_PDEATHSIG:
    case PR_GET_KEEPCAPS:
    case PR_GET_TIMING:
    case PR_GET_SECCOMP:
    case PR_CAPBSET_READ:
    case PR_GET_TSC:
    case PR_GET_SECUREBITS:
    case PR_GET_TIMERSLACK:
    case PR_TASK_PERF_EVENTS_DISABLE:
    case PR_TASK_PERF_EVENTS_ENABLE:
    case PR_MCE_KILL_GET:
    case PR_SET_MM:
    case PR_SET_CHILD_SUBREAPER:
    case PR_GET_CHILD_SUBREAPER:
    case PR_GET_NO_NEW_PRIVS:
    case PR_GET_TID_ADDRESS:
    case PR_SET_THP_DISABLE:
    case PR_GET_THP_DISABLE:
    case PR_GET_SPECULATION_CTRL:
    case PR_SET_PTRACER:
    case PRCTL_SET_VMA: return true;
    default: return false;
    }
}

static bool prctl_changes_rights(int option) {
    return option == PR_SET_NO_NEW_PRIVS || option == PR_CAPBSET_DROP || option == PR_CAP_AMBIENT ||
           option == PR_SET_SECUREBITS;
}

/* A filter may not allow the calls that keeping threads needs: nothing is kept from before it on, and nothing is set
 * up. Only before the first: that one may kill for what would be done before the second.
 *
 * Another thread's first may be coming just now. Its own is not installed before that thread has seen to all, as it may be the
 * one that holds for all threads. It waits by a futex, which no filter of a program with threads forbids. */
enum { COMING, AWAITED, ANNOUNCED };
static pthread_t announcer; /* cas; 0: no filter has come */
static uint32_t filter;     /* futex */

/* It gives up as keep.c does, or where a handler left the announcer's call by longjmp. */
static void await_announcer(void) {
    const uint64_t ns = clock_monotonic_ns() + UINT64_C(2000000000);
    const struct timespec give_up = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    for (;;) {
        uint32_t seen = COMING;
        /* Pairs with the exchange below. */
        if (!cas_acquire(&filter, &seen, AWAITED) && seen == ANNOUNCED)
            return;
        if (futex_wait_until(&filter, AWAITED, CLOCK_MONOTONIC, &give_up) == -ETIMEDOUT)
            return;
    }
}

void inherit_filter_coming(void) {
    pthread_t none = 0;
    if (load_acquire(&filter) == ANNOUNCED || process_is_sharing()) /* pairs with the exchange below */
        return;
    if (!cas_relaxed(&announcer, &none, pthread_self())) {
        if (none != pthread_self()) /* else by a handler of its */
            await_announcer();
        return;
    }
    cache_filter_coming();
    if (!skipped(ROW_LINEAGE))
        kthread_filter_comes();
    if (exchange_release(&filter, ANNOUNCED) == AWAITED) /* pairs with what await_announcer reads */
        futex_wake(&filter, INT32_MAX);
}

void inherit_fork_child(void) {
    announcer = 0; /* it may have been another thread */
}

/* Core scheduling: `tid`, 0 for the caller, is whose cookie is asked for, made, set to the caller's or given to it. */
static int sched_core(unsigned long command, unsigned long tid, unsigned long scope, unsigned long cookie) {
    struct reach reach;
    reach_begin(&reach, scope == PR_SCHED_CORE_SCOPE_THREAD ? (pid_t)tid : 0);
    unsigned long target = scope == PR_SCHED_CORE_SCOPE_THREAD ? (unsigned long)reach.tid : tid;
    int answer = REAL(prctl)(PR_SCHED_CORE, command, target, scope, cookie);
    if (answer != -1 && command == PR_SCHED_CORE_SHARE_FROM)
        inherit_changed_tid_by(0, because_name("prctl"));
    else if (answer != -1 && command != PR_SCHED_CORE_GET && scope == PR_SCHED_CORE_SCOPE_THREAD)
        inherit_changed_reached_by(&reach, because_name("prctl"));
    else if (answer != -1 && command != PR_SCHED_CORE_GET)
        inherit_changed_many("prctl(PR_SCHED_CORE) of a process or group");
    reach_end(&reach);
    return answer;
}

INTERPOSE int prctl(int option, ...) {
    va_list list;
    va_start(list, option);
    unsigned long a = va_arg(list, unsigned long), b = va_arg(list, unsigned long);
    unsigned long c = va_arg(list, unsigned long), d = va_arg(list, unsigned long);
    va_end(list);
    if (option == PR_SCHED_CORE)
        return sched_core(a, b, c, d);
    if (option == PR_SET_SECCOMP)
        inherit_filter_coming();
    else if (option == PR_SET_TSC && a != PR_TSC_ENABLE && kthread_keeping() && !process_is_sharing() &&
             !skipped(ROW_REGISTERS))
        kthread_stop_keeping("the time stamp counter was disabled");
    else if (prctl_changes_rights(option))
        inherit_rights_coming();
    const struct unchanged was = unchanged_prctl(option);
    int answer = REAL(prctl)(option, a, b, c, d);
    if (answer == -1)
        return answer;
    if (option == PR_SET_NAME)
        creator_names_differ();
    else if (option == PR_SET_PDEATHSIG || option == PR_SET_SYSCALL_USER_DISPATCH)
        kthread_tie_sigsafe(RETIRE_TIES); /* a new thread has neither */
    else if (!prctl_harmless(option))
        note(answer, 0, &was);
    return answer;
}

/* --- protection keys ---------------------------------------------------------------------------------- */

INTERPOSE int pkey_alloc(unsigned flags, unsigned rights) {
    int answer = REAL(pkey_alloc)(flags, rights);
    if (answer >= 0) {
        creator_pkeys_used();
        if (!ARCH_PKEYS)
            inherit_changed_tid(0);
    }
    return answer;
}
