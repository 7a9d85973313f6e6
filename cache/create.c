// SPDX-License-Identifier: Apache-2.0
/* pthread_create and thrd_create. */
#include <errno.h>
#include <threads.h>

#include "base/slab.h"
#include "cache.h"
#include "kthread/alternative.h"
#include "os/lock.h"

/* --- passed through ----------------------------------------------------------------------------------- */

/* A thread that libc makes of a creator with a lineage of its own must know it: its start is wrapped. While
 * nothing was ever changed every lineage is 0 and the wrapping is saved. */
struct wrapped {
    void *(*fn)(void *);
    void *arg;
    uint64_t lineage;
};
static struct lock wrapped_lock;
static struct slab wrapped_slab = SLAB_INIT(struct wrapped);

static struct wrapped *wrapped_new(void) {
    lock_acquire(&wrapped_lock);
    struct wrapped *wrapped = slab_alloc_locked(&wrapped_slab);
    lock_release(&wrapped_lock);
    return wrapped;
}

static void wrapped_free(struct wrapped *wrapped) {
    lock_acquire(&wrapped_lock);
    slab_free_locked(&wrapped_slab, wrapped);
    lock_release(&wrapped_lock);
}

static void *start_wrapped(void *argument) {
    struct wrapped wrapped = *(struct wrapped *)argument;
    wrapped_free(argument);
    kthread_adopt_lineage(wrapped.lineage);
    return wrapped.fn(wrapped.arg);
}

/* Like libc's, with idle threads given up where there is no room for one more. */
static int create(pthread_t *handle, const pthread_attr_t *attributes, void *(*fn)(void *), void *arg) {
    int error = libc.pthread_create(handle, attributes, fn, arg);
    if (error == EAGAIN && !skipped(ROW_EAGAIN) && kthread_cull() > 0)
        error = libc.pthread_create(handle, attributes, fn, arg);
    return error;
}

static int pass(enum counters_pass why, pthread_t *handle, const pthread_attr_t *attributes,
                void *(*fn)(void *), void *arg) {
    uint64_t lineage;
    counters_passed(why);
    if (!kthread_keeping() || !kthread_lineage(&lineage) || lineage == 0)
        return create(handle, attributes, fn, arg);
    struct wrapped *wrapped = wrapped_new();
    if (wrapped == NULL)
        return EAGAIN;
    *wrapped = (struct wrapped){fn, arg, lineage};
    int error = create(handle, attributes, start_wrapped, wrapped);
    if (error != 0)
        wrapped_free(wrapped);
    return error;
}

void create_fork_child(void) {
    lock_reset(&wrapped_lock);
    wrapped_slab.free = NULL; /* it may have been in the middle of a change */
}

/* By an alternative to reuse. Apart, so that the path of the others stays as it would be without. */
__attribute__((noinline)) static int start_otherwise(const struct kthread_kind *kind, bool detached,
                                                     pthread_t *handle, const pthread_attr_t *attributes,
                                                     void *(*fn)(void *), void *arg) {
    return kthread_alternative->start(kind, detached, fn, arg, handle)
               ? 0
               : pass(PASS_OFF, handle, attributes, fn, arg);
}

/* --- POSIX -------------------------------------------------------------------------------------------- */

INTERPOSE int pthread_create(pthread_t *restrict handle, const pthread_attr_t *restrict attributes,
                             void *(*fn)(void *), void *restrict arg) {
    struct kthread_kind kind;
    bool detached;
    cache_ready();
    enum counters_pass why = kind_of(attributes, &kind, &detached);
    if (why != PASS_NOT)
        return pass(why, handle, attributes, fn, arg);
    if (kthread_alternative != NULL)
        return start_otherwise(&kind, detached, handle, attributes, fn, arg);
    int error = kthread_start(&kind, detached, fn, arg, handle);
    if (error != 0 && kind.user.low != NULL) /* libc maps nothing for it */
        return pass(PASS_STACK, handle, attributes, fn, arg);
    switch (error) {
    case KTHREAD_NO_DESCRIPTOR: return pass(PASS_MEMORY, handle, attributes, fn, arg);
    case KTHREAD_NOT_KEPT: return pass(PASS_OFF, handle, attributes, fn, arg);
    default: return error;
    }
}

/* thrd_* results for errno values, as libc maps them. */
int c11_error(int error) {
    switch (error) {
    case 0: return thrd_success;
    case ENOMEM: return thrd_nomem;
    case ETIMEDOUT: return thrd_timedout;
    case EBUSY: return thrd_busy;
    default: return thrd_error;
    }
}

/* --- C11 ---------------------------------------------------------------------------------------------- */

/* libc starts a C11 thread through an internal call, so it has to be interposed too. An int result travels in
 * the pointer, as in libc: on both architectures a function returns either in the same register. */
INTERPOSE int thrd_create(thrd_t *handle, thrd_start_t fn, void *arg) {
    if (skipped(ROW_C11))
        return REAL(thrd_create)(handle, fn, arg);
    return c11_error(pthread_create(handle, NULL, (void *(*)(void *))(uintptr_t)fn, arg));
}
