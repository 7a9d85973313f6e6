// SPDX-License-Identifier: Apache-2.0
/* The dynamic loader: its lock, its namespaces, and C++ thread_local destructors. Rows static-tls, tls-dtors,
 * dlclose. */
#include <dlfcn.h>
#include <link.h>

#include "cache.h"

/* --- dl_iterate_phdr: while a callback runs, its thread holds the loader's lock -------------------------- */

struct callback {
    int (*fn)(struct dl_phdr_info *, size_t, void *);
    void *data;
};

static int call_back(struct dl_phdr_info *info, size_t size, void *argument) {
    struct callback *callback = argument;
    const void *outer = tls_callback_entered(__builtin_frame_address(0));
    int answer = callback->fn(info, size, callback->data);
    tls_callback_left(outer);
    return answer;
}

INTERPOSE int dl_iterate_phdr(int (*fn)(struct dl_phdr_info *, size_t, void *), void *data) {
    struct callback callback = {fn, data};
    return REAL(dl_iterate_phdr)(call_back, &callback);
}

/* --- dlopen: RTLD_DEEPBIND ------------------------------------------------------------------------------------ */

/* A module that has its own libraries searched before the preloaded ones calls libc past us: it may set a thread's
 * priority or timers, fork, or join a thread that is kept and wait for ever. From before it is opened nothing is kept.
 * dlopen itself is in jump.S, for the same reason as dlmopen. Returns where to continue. */
void *cache_before_dlopen(int flags) __attribute__((visibility("hidden")));
void *cache_before_dlopen(int flags) {
    if ((flags & RTLD_DEEPBIND) != 0 && kthread_keeping() && !process_is_sharing() && !skipped(ROW_DEEPBIND))
        kthread_stop_keeping("a module was opened with RTLD_DEEPBIND");
    return REAL(dlopen);
}

/* --- dlmopen: thread-locals of another namespace are out of our sight ------------------------------------ */

/* dlmopen itself is in jump.S: libc looks for the file on its caller's search path, so there must be no frame of
 * ours between. Returns where to continue. */
void *cache_before_dlmopen(Lmid_t namespace) __attribute__((visibility("hidden")));
void *cache_before_dlmopen(Lmid_t namespace) {
    if (namespace != LM_ID_BASE && kthread_keeping() && !skipped(ROW_STATIC_TLS))
        kthread_stop_keeping("dlmopen opened another namespace");
    return REAL(dlmopen);
}

/* --- C++ thread_local destructors ----------------------------------------------------------------------- */

static void nothing(void *unused) {
    (void)unused;
}

/* libc keeps the list, runs it when src/kthread asks (and at exit), and holds the module in memory meanwhile.
 * But it remembers per thread the last module that it looked up, by address: in a used thread that module may
 * be gone and another one in its place. So a job's first registration is ours, of a module that never goes. */
INTERPOSE int __cxa_thread_atexit_impl(void (*destructor)(void *), void *object, void *dso) {
    struct kthread *self = kthread_self_sigsafe();
    if (self != NULL && !self->fresh.has_tls_dtors) {
        self->fresh.has_tls_dtors = true;
        REAL(__cxa_thread_atexit_impl)(nothing, NULL, (void *)&real);
    }
    Dl_info info;
    if (skipped(ROW_DLCLOSE) && dladdr(dso, &info) != 0)
        dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY); /* a pin that an idle thread holds */
    return REAL(__cxa_thread_atexit_impl)(destructor, object, dso);
}
