// SPDX-License-Identifier: Apache-2.0
/* Functions of libc's with more than one meaning, or that not every libc has. libc tells the meanings apart by version
 * names, which a program's references carry from the day that it was linked; a definition without a version would take
 * them all. versions-<architecture>.map gives the present meanings, defined in the other files, their names, and this
 * file has the former ones. Rows stale, inherit, kernel-ties, lineage.
 *
 * tests/unit/rows/versions.sh looks for names whose versions differ in the libc that is installed. */
#include <errno.h>
#include <signal.h>
#include <time.h>

#include "cache.h"
#include "os/syscall.h"
#include "unchanged.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* nothing here is called by its name */

/* The definition `function` under a version that is not the default one. */
#define VERSION(function, name, version) __asm__(".symver " #function "," #name "@" version)

/* The next definition of that version, looked up when it is first wanted. dlvsym takes the loader's lock, so not
 * pthread_kill's, which a signal handler may call: that is looked up at the start. */
#define NEXT_VERSION(type, name, version)                                                                    \
    ({                                                                                                       \
        static type next_;                                                                                   \
        if (load_relaxed(&next_) == NULL)                                                                    \
            store_relaxed(&next_, (type)dlvsym(RTLD_NEXT, #name, version));                                  \
        load_relaxed(&next_);                                                                                \
    })

/* --- pthread_kill before 2.34: ESRCH for a thread that has ended, which many programs ask for -------------- */

#ifdef __x86_64__
#define FIRST_VERSION "GLIBC_2.2.5"
VERSION(compat_pthread_kill, pthread_kill, "GLIBC_2.2.5");
#else
#define FIRST_VERSION "GLIBC_2.17"
VERSION(compat_pthread_kill, pthread_kill, "GLIBC_2.17");
#endif

static __typeof__(&pthread_kill) first_pthread_kill;

void compat_fill_sigsafe(void) {
    void *found = dlvsym(RTLD_NEXT, "pthread_kill", FIRST_VERSION);
    store_relaxed(&first_pthread_kill,
                  found != NULL ? (__typeof__(&pthread_kill))found : load_relaxed(&real.pthread_kill));
}

INTERPOSE int compat_pthread_kill(pthread_t handle, int signo) {
    enum { SIGCANCEL = 32, SIGSETXID = 33 };
    struct kthread *thread;
    struct gate_visit visit;
    switch (visit_handle(handle, &thread, &visit)) {
    case VISIT_ENDED: return signo == SIGCANCEL || signo == SIGSETXID ? EINVAL : ESRCH;
    case VISIT_INSIDE: {
        int error = load_relaxed(&first_pthread_kill)(handle, signo);
        gate_visit_end(&visit);
        return error;
    }
    default: return load_relaxed(&first_pthread_kill)(handle, signo);
    }
}

#ifdef __x86_64__

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
#endif

/* --- functions that newer versions of libc have ---------------------------------------------------------------- */

/* 2.39. Not the default version, so that only programs that were linked with such a libc find them: others ask by
 * dlsym whether they are there. */
VERSION(compat_pidfd_spawn, pidfd_spawn, "GLIBC_2.39");
VERSION(compat_pidfd_spawnp, pidfd_spawnp, "GLIBC_2.39");

typedef int (*spawn_function)(int *, const char *, const posix_spawn_file_actions_t *,
                              const posix_spawnattr_t *, char *const *, char *const *);

static int spawn(spawn_function next, int *fd, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]) {
    if (next == NULL)
        return ENOSYS;
    kthread_tie_sigsafe_by(RETIRE_CHILD, because_name("pidfd_spawn"));
    int error = next(fd, file, actions, attributes, argv, envp);
    if (error == EAGAIN && process_make_room())
        error = next(fd, file, actions, attributes, argv, envp);
    return error;
}

INTERPOSE int compat_pidfd_spawn(int *fd, const char *path, const posix_spawn_file_actions_t *actions,
                                 const posix_spawnattr_t *attributes, char *const argv[],
                                 char *const envp[]) {
    return spawn(NEXT_VERSION(spawn_function, pidfd_spawn, "GLIBC_2.39"), fd, path, actions, attributes, argv,
                 envp);
}
INTERPOSE int compat_pidfd_spawnp(int *fd, const char *file, const posix_spawn_file_actions_t *actions,
                                  const posix_spawnattr_t *attributes, char *const argv[],
                                  char *const envp[]) {
    return spawn(NEXT_VERSION(spawn_function, pidfd_spawnp, "GLIBC_2.39"), fd, file, actions, attributes,
                 argv, envp);
}

/* 2.41; system calls and no more, so that they are right with any libc. */
struct sched_attr;
INTERPOSE int sched_getattr(pid_t tid, struct sched_attr *attributes, unsigned size, unsigned flags) {
    long answer = sys(SYS_sched_getattr, reach_look(tid), attributes, size, flags);
    if (answer >= 0)
        return 0;
    errno = (int)-answer;
    return -1;
}
INTERPOSE int sched_setattr(pid_t tid, struct sched_attr *attributes, unsigned flags) {
    struct reach reach;
    reach_begin(&reach, tid);
    const struct unchanged was = unchanged_scheduling(reach.tid);
    long answer = sys(SYS_sched_setattr, reach.tid, attributes, flags);
    if (answer == 0 && !unchanged_is(&was))
        inherit_changed_reached_by(&reach, because_name("sched_setattr"));
    reach_end(&reach);
    if (answer == 0)
        return 0;
    errno = (int)-answer;
    return -1;
}
