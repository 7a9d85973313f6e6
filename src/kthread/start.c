// SPDX-License-Identifier: Apache-2.0
/* Starting a logical thread: on an idle kernel thread, or on a new one. */
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/rows.h"
#include "kthread/counters.h"
#include "kthread/gate.h"
#include "kthread/how_many.h"
#include "kthread/idle.h"
#include "kthread/internal.h"
#include "kthread/libc.h"

/* The caller owns the descriptor; `mask` is its signal mask outside the library. */
static void prepare(struct kthread *thread, const struct kthread_kind *kind, sigbits mask, bool detached,
                    void *(*fn)(void *), void *arg) {
    thread->start = fn;
    if (kind->user.low != NULL)
        thread->user = kind->user;
    thread->argument = arg;
    store_relaxed(&thread->joiner, 0);
    store_relaxed(&thread->gate, GATE_STARTING);
    store_relaxed(&thread->life, detached ? LIFE_DETACHED : LIFE_RUNNING);
    creator_capture(&thread->creator);
    thread->creator.mask = mask;
    fetch_add_relaxed(&thrum_cache_counters.live, 1);
}

/* libc's creation, with idle threads given up where the system has no room for one more. Never worse off than
 * without them: if none was idle, libc's answer stands. */
static int create(pthread_t *handle, const pthread_attr_t *attributes, struct kthread *thread) {
    int error = libc.pthread_create(handle, attributes, kthread_main, thread);
    if (error == EAGAIN && !skipped(ROW_EAGAIN) && kthread_cull() > 0)
        error = libc.pthread_create(handle, attributes, kthread_main, thread);
    return error;
}

/* A thread's own part of the stack is as large as without us: our thread-locals and the frames below the program's first
 * one take some 400 bytes of it. A page more is only address space. Large stacks are left as they were asked for: there
 * a program's measure of its need is not that exact, and some look at the size that they got. */
size_t kthread_stack_size(const struct kthread_kind *kind) {
    enum { SMALL = 256 * 1024 };
    return kind->stack_size <= SMALL ? kind->stack_size + (size_t)sysconf(_SC_PAGESIZE) : kind->stack_size;
}

/* For the frames of ours and of libc's, and signal handlers of libc's. */
void kthread_user_stack(struct kthread_kind *kind, char *low, size_t size) {
    enum { OURS = 64 * 1024 };
    kind->user.low = low;
    kind->user.size = size;
    kind->stack_size = stack_least() + OURS;
    kind->guard_size = (size_t)sysconf(_SC_PAGESIZE);
}

int kthread_attributes(pthread_attr_t *attributes, const struct kthread_kind *kind) {
    int error = pthread_attr_init(attributes);
    if (error != 0)
        return error;
    error = pthread_attr_setstacksize(attributes, kthread_stack_size(kind));
    if (error == 0)
        error = pthread_attr_setguardsize(attributes, kind->guard_size);
    if (error != 0)
        pthread_attr_destroy(attributes);
    return error;
}

static int create_of_kind(pthread_t *handle, const struct kthread_kind *kind, struct kthread *thread) {
    pthread_attr_t attributes;
    int error = kthread_attributes(&attributes, kind);
    if (error != 0)
        return error;
    error = create(handle, &attributes, thread);
    pthread_attr_destroy(&attributes);
    return error;
}

/* The new thread parks at once, like an idle one, until the creator has left the mark that leads from the handle
 * to the descriptor and has written the handle: the program may free the place of the handle, and the thread
 * may be detached and gone, as soon as it runs. */
static int start_new(const struct kthread_kind *kind, sigbits mask, bool detached, void *(*fn)(void *),
                     void *arg, pthread_t *handle) {
    departures_reap();
    if (kind->user.low != NULL && how_many_mappings())
        return EAGAIN; /* without us its stack would take no mapping */
    struct kthread *thread = registry_new();
    if (thread == NULL)
        return KTHREAD_NO_DESCRIPTOR;
    if (!keeping()) { /* known now, it is awaited (kthread_filter_comes); one that was not may be too late */
        registry_free(thread);
        return KTHREAD_NOT_KEPT;
    }
    thread->kind = *kind;
    thread->lineage = kind->lineage;
    prepare(thread, kind, mask, detached, fn, arg);
    if (skipped(ROW_SIGMASK))
        signals_mask_set(mask);
    int error = create_of_kind(&thread->handle, kind, thread);
    if (error != 0) {
        fetch_sub_relaxed(&thrum_cache_counters.live, 1);
        registry_free(thread);
        return error;
    }
    counters_count(&thrum_cache_counters.created);
    kthread_mark(thread->handle, thread);
    *handle = thread->handle;
    place_new(thread, detached);
    kthread_post(thread, POST_JOB);
    return 0;
}

/* Idle threads that are not needed, because every creator wants another kind, would grow without bound: where there
 * are more of them than can be of use, a miss ends the coldest. SPARE_OTHER_KINDS is generous, for a program may have
 * that many kinds and need each of them now and then. With a minimum rest a miss says nothing of that: those that still
 * rest will be of use. Then how_many_refuses bounds how many new ones there may be, and max_idle, if it is set, all of
 * them. libthrum-cache(7) promises both. */
static void evict_one(void) {
    if (kthread_config.min_rest_ns != 0 || !how_many_evicts())
        return;
    struct kthread *coldest = idle_pop_coldest();
    if (coldest == NULL)
        return;
    counters_count(&thrum_cache_counters.culled);
    kthread_end(coldest);
}

static int start(const struct kthread_kind *kind, sigbits mask, bool detached, void *(*fn)(void *), void *arg,
                 pthread_t *handle) {
    struct kthread *thread = idle_pop(kind, place_avoids());
    if (thread == NULL) {
        evict_one();
        return start_new(kind, mask, detached, fn, arg, handle);
    }
    prepare(thread, kind, mask, detached, fn, arg);
    *handle = thread->handle;
    counters_count(&thrum_cache_counters.reused);
    place_post(thread, detached); /* from here the thread may end and be another's */
    return 0;
}

/* With the signals blocked: a handler that came between taking the thread and posting to it, and wanted to reach
 * it, would wait for the creator that it interrupted. New threads are born with them blocked. */
int kthread_start(const struct kthread_kind *kind, bool detached, void *(*fn)(void *), void *arg,
                  pthread_t *handle) {
    sigbits mask = signals_mask_set(SIGBITS_ALL & ~SIGBITS_LIBC);
    int error = start(kind, mask, detached, fn, arg, handle);
    signals_mask_set(mask);
    return error;
}
