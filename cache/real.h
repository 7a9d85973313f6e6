// SPDX-License-Identifier: Apache-2.0
/* The functions behind ours: libc's, or the next library's in a chain of preloaded ones.
 *
 * dlsym takes the loader's lock, which another thread may hold in a constructor that waits for the caller, or
 * which a signal handler may find taken. So they are looked up in two sets, each together: what a signal
 * handler may call, at the start; the rest, which a process without threads seldom needs and need not pay for,
 * before there is a second thread (cache_ready), or at the first use of one of them. */
#ifndef THRUM_CACHE_REAL_H
#define THRUM_CACHE_REAL_H

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "arch_libc.h"
#include "base/atomic.h"

/* Declared by no header, or by one that cannot stand beside the others. */
int capset(void *header, const void *data);
int capget(void *header, void *data);
int pidfd_open(pid_t pid, unsigned flags);
int arch_prctl(int code, unsigned long address);
int __pthread_key_create(pthread_key_t *key, void (*destructor)(void *));
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *dso);
int __xstat(int version, const char *path, struct stat *status);
int __xstat64(int version, const char *path, struct stat64 *status);
int __lxstat(int version, const char *path, struct stat *status);
int __lxstat64(int version, const char *path, struct stat64 *status);
int __fxstatat(int version, int folder, const char *path, struct stat *status, int flags);
int __fxstatat64(int version, int folder, const char *path, struct stat64 *status, int flags);
int __cxa_thread_atexit_impl(void (*destructor)(void *), void *object, void *dso);

/* What a signal handler may call, or what calls the kernel directly. */
#define REAL_FUNCTIONS_SIGSAFE(X)                                                                            \
    X(stat)                                                                                                  \
    X(stat64)                                                                                                \
    X(lstat)                                                                                                 \
    X(lstat64)                                                                                               \
    X(fstatat)                                                                                               \
    X(fstatat64)                                                                                             \
    X(statx)                                                                                                 \
    X(access)                                                                                                \
    X(faccessat)                                                                                             \
    X(pthread_kill)                                                                                          \
    X(pthread_sigqueue)                                                                                      \
    X(tgkill)                                                                                                \
    X(kill)                                                                                                  \
    X(sigqueue)                                                                                              \
    X(setpgid)                                                                                               \
    X(sched_setaffinity)                                                                                     \
    X(sched_setscheduler)                                                                                    \
    X(sched_setparam)                                                                                        \
    X(setpriority)                                                                                           \
    X(nice)                                                                                                  \
    X(unshare)                                                                                               \
    X(setns)                                                                                                 \
    X(personality)                                                                                           \
    X(prctl)                                                                                                 \
    X(setfsuid)                                                                                              \
    X(setfsgid)                                                                                              \
    X(capset)                                                                                                \
    X(pkey_alloc)                                                                                            \
    X(syscall)                                                                                               \
    X(clock_gettime)                                                                                         \
    X(clock_nanosleep)                                                                                       \
    X(getrusage)                                                                                             \
    X(timer_settime)                                                                                         \
    X(fcntl)                                                                                                 \
    X(fcntl64)                                                                                               \
    X(ptrace)                                                                                                \
    X(fork)                                                                                                  \
    X(_Fork)                                                                                                 \
    X(clone)                                                                                                 \
    X(setrlimit)                                                                                             \
    X(setrlimit64)                                                                                           \
    X(prlimit)                                                                                               \
    X(prlimit64)                                                                                             \
    X(__register_atfork)                                                                                     \
    REAL_FUNCTIONS_ARCH(X)

#define REAL_FUNCTIONS_LATE(X)                                                                               \
    X(pthread_create)                                                                                        \
    X(pthread_join)                                                                                          \
    X(pthread_detach)                                                                                        \
    X(pthread_cancel)                                                                                        \
    X(pthread_tryjoin_np)                                                                                    \
    X(pthread_timedjoin_np)                                                                                  \
    X(pthread_clockjoin_np)                                                                                  \
    X(pthread_setattr_default_np)                                                                            \
    X(thrd_create)                                                                                           \
    X(pthread_key_create)                                                                                    \
    X(pthread_key_delete)                                                                                    \
    X(tss_create)                                                                                            \
    X(tss_delete)                                                                                            \
    X(pthread_setname_np)                                                                                    \
    X(pthread_getname_np)                                                                                    \
    X(pthread_setaffinity_np)                                                                                \
    X(pthread_getaffinity_np)                                                                                \
    X(pthread_getcpuclockid)                                                                                 \
    X(pthread_setschedparam)                                                                                 \
    X(pthread_setschedprio)                                                                                  \
    X(pthread_getschedparam)                                                                                 \
    X(pthread_getattr_np)                                                                                    \
    X(timer_create)                                                                                          \
    X(timer_delete)                                                                                          \
    X(posix_spawn)                                                                                           \
    X(posix_spawnp)                                                                                          \
    X(system)                                                                                                \
    X(popen)                                                                                                 \
    X(dl_iterate_phdr)                                                                                       \
    X(__cxa_thread_atexit_impl)

#define REAL_MEMBER_(name) __typeof__(&name) name;
struct real_functions {
    REAL_FUNCTIONS_SIGSAFE(REAL_MEMBER_)
    REAL_FUNCTIONS_LATE(REAL_MEMBER_)
    void (*pthread_exit)(void *);
    void (*_exit)(int);
    void *dlopen, *dlmopen; /* jumped to, never called: jump.S */
};
#undef REAL_MEMBER_

extern struct real_functions real;

/* Fill the table: what a signal handler may call, and all of it. Two threads may do it at once; they find the
 * same. */
void real_fill_sigsafe(void);
void real_fill(void);

/* A null function is one that was not looked up yet. */
#define REAL(name)                                                                                           \
    ({                                                                                                       \
        __typeof__(real.name) function_ = load_relaxed(&real.name);                                          \
        if (__builtin_expect(function_ == NULL, 0)) {                                                        \
            real_fill();                                                                                     \
            function_ = load_relaxed(&real.name);                                                            \
        }                                                                                                    \
        function_;                                                                                           \
    })

/* Of functions that few processes call, and no signal handler: each is looked up by itself, at its first use. */
#define NEXT(name)                                                                                           \
    ({                                                                                                       \
        static __typeof__(&name) next_;                                                                      \
        if (load_relaxed(&next_) == NULL)                                                                    \
            store_relaxed(&next_, (__typeof__(&name))dlsym(RTLD_NEXT, #name));                               \
        load_relaxed(&next_);                                                                                \
    })

#endif
