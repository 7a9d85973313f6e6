// SPDX-License-Identifier: Apache-2.0
/* Functions of libc's with more than one meaning, or that not every libc has. libc tells the meanings apart by version
 * names, which a program's references carry from the day that it was linked; a definition without a version would take
 * them all. arch/<cpu>/versions.map gives the present meanings, defined in the other files, their names, and this
 * file has the former ones; those that only x86-64 has are in arch/x86_64/compat.c. Rows stale, inherit, kernel-ties, lineage.
 *
 * tests/unit/rows/versions.sh looks for names whose versions differ in the libc that is installed. */
#include <errno.h>
#include <signal.h>
#include <time.h>

#include "cache.h"
#include "compat.h"
#include "os/syscall.h"
#include "unchanged.h"

/* --- pthread_kill before 2.34: ESRCH for a thread that has ended, which many programs ask for -------------- */

VERSION(compat_pthread_kill, pthread_kill, ARCH_FIRST_VERSION);

static __typeof__(&pthread_kill) first_pthread_kill;

void compat_fill_sigsafe(void) {
    void *found = dlvsym(RTLD_NEXT, "pthread_kill", ARCH_FIRST_VERSION);
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
