// SPDX-License-Identifier: Apache-2.0
/* The C library's own functions, by pointer.
 *
 * The preload front end defines many of these names itself, so neither it nor this layer may call them by name. The
 * user of the layer fills the table once: cache/init.c by looking them up behind itself. */
#ifndef THRUM_KTHREAD_LIBC_H
#define THRUM_KTHREAD_LIBC_H

#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <time.h>

/* The buffer that __pthread_register_cancel links: pthread.h's type, filled by __sigsetjmp. */
struct libc_threads {
    int (*pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    int (*pthread_join)(pthread_t, void **);
    int (*pthread_tryjoin)(pthread_t, void **);
    int (*pthread_clockjoin)(pthread_t, void **, clockid_t, const struct timespec *);
    int (*pthread_detach)(pthread_t);
    void (*pthread_exit)(void *);
    int (*pthread_cancel)(pthread_t);
    int (*dl_iterate_phdr)(int (*)(struct dl_phdr_info *, size_t, void *), void *);

    /* Not documented, but exported: unwinding to a buffer of our own, C++ thread_local destructors. */
    void (*register_cancel)(__pthread_unwind_buf_t *);
    void (*unregister_cancel)(__pthread_unwind_buf_t *);
    void (*unwind_next)(__pthread_unwind_buf_t *);
    void (*call_tls_dtors)(void);
    void (*tls_static_info)(size_t *size, size_t *alignment); /* the loader's */
};

extern struct libc_threads libc;

#endif
