// SPDX-License-Identifier: Apache-2.0
/* As ../../compat.c: former meanings of functions that libc has had on x86-64 only. */
#include <signal.h>
#include <time.h>

#include "cache.h"
#include "compat.h"

/* --- affinity before 2.3.4: without a size ------------------------------------------------------------------- */

VERSION(compat_sched_setaffinity, sched_setaffinity, "GLIBC_2.3.3");
VERSION(compat_sched_getaffinity, sched_getaffinity, "GLIBC_2.3.3");
VERSION(compat_pthread_setaffinity_np, pthread_setaffinity_np, "GLIBC_2.3.3");
VERSION(compat_pthread_getaffinity_np, pthread_getaffinity_np, "GLIBC_2.3.3");

INTERPOSE int compat_sched_setaffinity(pid_t tid, const cpu_set_t *set) {
    return sched_setaffinity(tid, sizeof *set, set);
}
INTERPOSE int compat_sched_getaffinity(pid_t tid, cpu_set_t *set) {
    return sched_getaffinity(tid, sizeof *set, set);
}
INTERPOSE int compat_pthread_setaffinity_np(pthread_t handle, const cpu_set_t *set) {
    return pthread_setaffinity_np(handle, sizeof *set, set);
}
INTERPOSE int compat_pthread_getaffinity_np(pthread_t handle, cpu_set_t *set) {
    return pthread_getaffinity_np(handle, sizeof *set, set);
}

/* The present meaning under its former name. */
VERSION(former_pthread_setaffinity_np, pthread_setaffinity_np, "GLIBC_2.3.4");
VERSION(former_pthread_getaffinity_np, pthread_getaffinity_np, "GLIBC_2.3.4");
INTERPOSE int former_pthread_setaffinity_np(pthread_t handle, size_t size, const cpu_set_t *set) {
    return pthread_setaffinity_np(handle, size, set);
}
INTERPOSE int former_pthread_getaffinity_np(pthread_t handle, size_t size, cpu_set_t *set) {
    return pthread_getaffinity_np(handle, size, set);
}

/* --- timers before 2.3.3: by small numbers, of which clock.c knows nothing --------------------------------- */

VERSION(compat_timer_create, timer_create, "GLIBC_2.2.5");
VERSION(compat_timer_settime, timer_settime, "GLIBC_2.2.5");
VERSION(compat_timer_delete, timer_delete, "GLIBC_2.2.5");

INTERPOSE int compat_timer_create(clockid_t clock, struct sigevent *event, int *timer) {
    typedef int (*function)(clockid_t, struct sigevent *, int *);
    function next = NEXT_VERSION(function, timer_create, "GLIBC_2.2.5");
    kthread_tie_sigsafe(RETIRE_TIES);
    if (event != NULL && event->sigev_notify == SIGEV_THREAD_ID)
        kthread_tie_tid(event->_sigev_un._tid);
    return next(clock, event, timer);
}
INTERPOSE int compat_timer_settime(int timer, int flags, const struct itimerspec *value,
                                   struct itimerspec *old) {
    typedef int (*function)(int, int, const struct itimerspec *, struct itimerspec *);
    return NEXT_VERSION(function, timer_settime, "GLIBC_2.2.5")(timer, flags, value, old);
}
INTERPOSE int compat_timer_delete(int timer) {
    typedef int (*function)(int);
    return NEXT_VERSION(function, timer_delete, "GLIBC_2.2.5")(timer);
}

VERSION(former_timer_create, timer_create, "GLIBC_2.3.3");
VERSION(former_timer_settime, timer_settime, "GLIBC_2.3.3");
VERSION(former_timer_delete, timer_delete, "GLIBC_2.3.3");
INTERPOSE int former_timer_create(clockid_t clock, struct sigevent *event, timer_t *timer) {
    return timer_create(clock, event, timer);
}
INTERPOSE int former_timer_settime(timer_t timer, int flags, const struct itimerspec *value,
                                   struct itimerspec *old) {
    return timer_settime(timer, flags, value, old);
}
INTERPOSE int former_timer_delete(timer_t timer) {
    return timer_delete(timer);
}

/* --- posix_spawn before 2.15: a file that is no program is given to the shell ------------------------------- */

VERSION(compat_posix_spawn, posix_spawn, "GLIBC_2.2.5");
VERSION(compat_posix_spawnp, posix_spawnp, "GLIBC_2.2.5");

INTERPOSE int compat_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                                 const posix_spawnattr_t *attributes, char *const argv[],
                                 char *const envp[]) {
    kthread_tie_sigsafe(RETIRE_CHILD);
    return NEXT_VERSION(__typeof__(&posix_spawn), posix_spawn, "GLIBC_2.2.5")(pid, path, actions, attributes,
                                                                              argv, envp);
}
INTERPOSE int compat_posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                                  const posix_spawnattr_t *attributes, char *const argv[],
                                  char *const envp[]) {
    kthread_tie_sigsafe(RETIRE_CHILD);
    return NEXT_VERSION(__typeof__(&posix_spawnp), posix_spawnp, "GLIBC_2.2.5")(pid, file, actions,
                                                                                attributes, argv, envp);
}
