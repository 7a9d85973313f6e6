// SPDX-License-Identifier: Apache-2.0
/* Reaching a thread by its handle or its tid. A thread that has ended but is not joined answers as libc's would, and
 * the kernel thread, idle or at work on another job, does not notice. Rows stale, cancel. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/types.h>

#include "cache.h"
#include "os/syscall.h"
#include "unchanged.h"

INTERPOSE int pthread_kill(pthread_t handle, int signo) {
    struct kthread *thread;
    struct gate_visit visit;
    switch (visit_handle(handle, &thread, &visit)) {
    case VISIT_ENDED: return signo == 32 || signo == 33 ? EINVAL : 0; /* libc looks no further */
    case VISIT_INSIDE: {
        int error = REAL(pthread_kill)(handle, signo);
        gate_visit_end(&visit);
        return error;
    }
    default: return REAL(pthread_kill)(handle, signo);
    }
}

INTERPOSE int pthread_sigqueue(pthread_t handle, int signo, const union sigval value) {
    struct kthread *thread;
    struct gate_visit visit;
    switch (visit_handle(handle, &thread, &visit)) {
    case VISIT_ENDED: return ESRCH;
    case VISIT_INSIDE: {
        int error = REAL(pthread_sigqueue)(handle, signo, value);
        gate_visit_end(&visit);
        return error;
    }
    default: return REAL(pthread_sigqueue)(handle, signo, value);
    }
}

/* The flag is set before libc is asked: the thread may act on the request, and end, at once. */
INTERPOSE int pthread_cancel(pthread_t handle) {
    struct kthread *thread;
    struct gate_visit visit;
    switch (visit_handle(handle, &thread, &visit)) {
    case VISIT_FOREIGN: return REAL(pthread_cancel)(handle);
    case VISIT_SELF: store_relaxed(&thread->cancelled, 1); return REAL(pthread_cancel)(handle);
    case VISIT_INSIDE: {
        store_relaxed(&thread->cancelled, 1);
        int error = REAL(pthread_cancel)(handle);
        gate_visit_end(&visit);
        return error;
    }
    default: return 0;
    }
}

/* libc looks at the length first, and then for a file in /proc that is not there. */
static int name_of_ended(bool fits) {
    return fits ? ENOENT : ERANGE;
}

INTERPOSE int pthread_setname_np(pthread_t handle, const char *name) {
    struct kthread *thread;
    struct gate_visit visit;
    enum visit entered = visit_handle(handle, &thread, &visit);
    if (entered == VISIT_ENDED)
        return name_of_ended(strlen(name) < FRESH_NAME);
    int error = REAL(pthread_setname_np)(handle, name);
    if (error == 0)
        creator_names_differ();
    if (entered == VISIT_INSIDE)
        gate_visit_end(&visit);
    return error;
}

INTERPOSE int pthread_getname_np(pthread_t handle, char *name, size_t size) {
    struct kthread *thread;
    struct gate_visit visit;
    enum visit entered = visit_handle(handle, &thread, &visit);
    if (entered == VISIT_ENDED)
        return name_of_ended(size >= FRESH_NAME);
    int error = REAL(pthread_getname_np)(handle, name, size);
    if (entered == VISIT_INSIDE)
        gate_visit_end(&visit);
    return error;
}

INTERPOSE int pthread_setaffinity_np(pthread_t handle, size_t size, const cpu_set_t *set) {
    struct kthread *thread;
    struct gate_visit visit;
    enum visit entered = visit_handle(handle, &thread, &visit);
    if (entered == VISIT_ENDED)
        return ESRCH;
    creator_affinity_changes();
    int error = REAL(pthread_setaffinity_np)(handle, size, set);
    creator_affinity_changed(entered == VISIT_FOREIGN ? NULL : &thread->fresh);
    if (entered == VISIT_INSIDE)
        gate_visit_end(&visit);
    return error;
}

INTERPOSE int pthread_getaffinity_np(pthread_t handle, size_t size, cpu_set_t *set) {
    struct kthread *thread;
    struct gate_visit visit;
    enum visit entered = visit_handle(handle, &thread, &visit);
    if (entered == VISIT_ENDED)
        return ESRCH;
    int error = REAL(pthread_getaffinity_np)(handle, size, set);
    if (entered == VISIT_INSIDE)
        gate_visit_end(&visit);
    return error;
}

INTERPOSE int pthread_getcpuclockid(pthread_t handle, clockid_t *clock) {
    cpu_time_want();
    struct kthread *thread;
    struct gate_visit visit;
    enum visit entered = visit_handle(handle, &thread, &visit);
    if (entered == VISIT_ENDED)
        return ESRCH;
    int error = REAL(pthread_getcpuclockid)(handle, clock);
    if (entered == VISIT_INSIDE)
        gate_visit_end(&visit);
    return error;
}

/* Scheduling cannot always be put back, so a change makes a new lineage (row lineage). */
static int set_scheduling(pthread_t handle, int (*set)(pthread_t, int, const struct sched_param *),
                          int policy, const struct sched_param *param, const char *call) {
    struct kthread *thread;
    struct gate_visit visit;
    enum visit entered = visit_handle(handle, &thread, &visit);
    if (entered == VISIT_ENDED)
        return ESRCH;
    pid_t tid = entered == VISIT_FOREIGN ? 0 : thread->tid;
    bool known = entered != VISIT_FOREIGN || handle == pthread_self();
    struct unchanged was = {.what = UNCHANGED_UNKNOWN};
    if (known)
        was = unchanged_scheduling(tid);
    int error = set(handle, policy, param);
    if (error == 0 && !unchanged_is(&was))
        inherit_changed_by(entered, thread, handle, because_name(call));
    if (entered == VISIT_INSIDE)
        gate_visit_end(&visit);
    return error;
}

INTERPOSE int pthread_setschedparam(pthread_t handle, int policy, const struct sched_param *param) {
    return set_scheduling(handle, REAL(pthread_setschedparam), policy, param, __func__);
}

static int set_priority(pthread_t handle, int priority, const struct sched_param *unused) {
    (void)unused;
    return REAL(pthread_setschedprio)(handle, priority);
}

INTERPOSE int pthread_setschedprio(pthread_t handle, int priority) {
    return set_scheduling(handle, set_priority, priority, NULL, __func__);
}

INTERPOSE int pthread_getschedparam(pthread_t handle, int *policy, struct sched_param *param) {
    struct kthread *thread;
    struct gate_visit visit;
    enum visit entered = visit_handle(handle, &thread, &visit);
    if (entered == VISIT_ENDED)
        return ESRCH;
    int error = REAL(pthread_getschedparam)(handle, policy, param);
    if (entered == VISIT_INSIDE)
        gate_visit_end(&visit);
    return error;
}

/* The kernel thread was created joinable whatever the program asked for. Of one that is joined, or was detached and has
 * ended, libc says that it is gone. */
INTERPOSE int pthread_getattr_np(pthread_t handle, pthread_attr_t *attributes) {
    struct kthread *thread = kthread_of_sigsafe(handle);
    /* Pairs with the joiner's cas. */
    if (thread != NULL && load_acquire(&thread->life) == LIFE_IDLE && !skipped(ROW_STALE))
        return ESRCH;
    int error = REAL(pthread_getattr_np)(handle, attributes);
    if (error == 0 && thread != NULL && !skipped(ROW_ATTRIBUTES))
        pthread_attr_setdetachstate(attributes, load_relaxed(&thread->life) == LIFE_DETACHED
                                                    ? PTHREAD_CREATE_DETACHED
                                                    : PTHREAD_CREATE_JOINABLE);
    if (error == 0 && thread != NULL && thread->user.low != NULL) {
        pthread_attr_setstack(attributes, thread->user.low, thread->user.size);
        pthread_attr_setguardsize(attributes, 0); /* as libc says, whatever the attributes asked for */
    }
    return error;
}

INTERPOSE int tgkill(pid_t group, pid_t tid, int signo) {
    struct reach reach;
    reach_begin(&reach,
                kthread_keeping() && group == (pid_t)sys(SYS_getpid) && !skipped(ROW_SIGPENDING) ? tid : 0);
    int answer = REAL(tgkill)(group, reach.tid != 0 ? reach.tid : tid, signo);
    reach_end(&reach);
    return answer;
}
