// SPDX-License-Identifier: Apache-2.0
/* Thread attributes: which kernel threads can stand in for the one asked for, and what is left to libc. Stack
 * and guard size must match exactly. Row attributes. */
#include <limits.h>
#include <stddef.h>

#include "cache.h"
#include "os/syscall.h"
#include "unchanged.h"

/* The attributes that a NULL stands for. They change only by pthread_setattr_default_np; `defaults_set` says
 * that it was called, and then a NULL is looked at like any other attributes. */
static struct {
    uint32_t known;
    size_t stack_size, guard_size;
} defaults;
static bool defaults_set;

INTERPOSE int pthread_setattr_default_np(const pthread_attr_t *attributes) {
    int error = REAL(pthread_setattr_default_np)(attributes);
    if (error == 0)
        store_relaxed(&defaults_set, true);
    return error;
}

/* The creator's CPUs, which a thread has without asking. Runtimes ask nevertheless, as Ada's does for each task. */
static bool is_creators(const cpu_set_t *set) {
    cpu_set_t own = {0};
    return sys(SYS_sched_getaffinity, 0, sizeof own, &own) > 0 && CPU_EQUAL(set, &own);
}

/* CPUs set in the attributes, other than the creator's. Where none were set libc says "all", up to the end of the room that it is
 * given; where some were, even all that a cpu_set_t has, it says "none" beyond them. One byte more tells the two apart. */
static bool has_affinity(const pthread_attr_t *attributes) {
    struct {
        cpu_set_t set;
        unsigned char beyond;
    } cpus;
    const size_t size = offsetof(__typeof__(cpus), beyond) + 1;
    if (pthread_attr_getaffinity_np(attributes, size, &cpus.set) != 0)
        return true;
    const bool is_set = cpus.beyond != UCHAR_MAX || CPU_COUNT(&cpus.set) != CPU_SETSIZE;
    return is_set && !(cpus.beyond == 0 && is_creators(&cpus.set));
}

static bool has_sigmask(const pthread_attr_t *attributes) {
    sigset_t set;
    return pthread_attr_getsigmask_np(attributes, &set) != PTHREAD_ATTR_NO_SIGMASK_NP;
}

/* libc keeps the stack's end and answers with end minus size; without a stack of the user's the end is 0. False: such a
 * thread is left to libc. */
static bool look_at_stack(const pthread_attr_t *attributes, struct kthread_kind *kind) {
    void *address = NULL;
    size_t size = 0;
    if (pthread_attr_getstack(attributes, &address, &size) != 0)
        return false;
    if ((uintptr_t)address + size == 0)
        return true;
    kthread_user_stack(kind, address, size);
    return !skipped(ROW_ATTRIBUTES) && address != NULL && size >= (size_t)PTHREAD_STACK_MIN;
}

static bool asks_for_own_scheduling(const pthread_attr_t *attributes) {
    int policy = 0;
    struct sched_param param;
    return pthread_attr_getschedpolicy(attributes, &policy) == 0 &&
           pthread_attr_getschedparam(attributes, &param) == 0 && unchanged_policy_is_own(policy, &param);
}

static enum counters_pass look(const pthread_attr_t *attributes, struct kthread_kind *kind, bool *detached) {
    int state = 0, inherit = 0;
    kind->user = (struct kthread_own_stack){NULL, 0};
    pthread_attr_getdetachstate(attributes, &state);
    *detached = state == PTHREAD_CREATE_DETACHED;
    if (pthread_attr_getstacksize(attributes, &kind->stack_size) != 0 ||
        pthread_attr_getguardsize(attributes, &kind->guard_size) != 0 || !look_at_stack(attributes, kind))
        return PASS_STACK;
    if (pthread_attr_getinheritsched(attributes, &inherit) != 0 ||
        (inherit != PTHREAD_INHERIT_SCHED && !asks_for_own_scheduling(attributes)))
        return PASS_SCHEDULING;
    if (has_affinity(attributes))
        return PASS_AFFINITY;
    return has_sigmask(attributes) ? PASS_SIGMASK : PASS_NOT;
}

static enum counters_pass look_at_defaults(struct kthread_kind *kind, bool *detached) {
    pthread_attr_t attributes;
    if (pthread_getattr_default_np(&attributes) != 0)
        return PASS_MEMORY;
    enum counters_pass pass = look(&attributes, kind, detached);
    pthread_attr_destroy(&attributes);
    return pass;
}

static enum counters_pass kind_of_null(struct kthread_kind *kind, bool *detached) {
    *detached = false;
    kind->user = (struct kthread_own_stack){NULL, 0};
    if (load_acquire(&defaults.known) && !load_relaxed(&defaults_set)) { /* pairs with the store below */
        kind->stack_size = load_relaxed(&defaults.stack_size);
        kind->guard_size = load_relaxed(&defaults.guard_size);
        return PASS_NOT;
    }
    enum counters_pass pass = look_at_defaults(kind, detached);
    if (pass == PASS_NOT && !load_relaxed(&defaults_set)) {
        store_relaxed(&defaults.stack_size, kind->stack_size);
        store_relaxed(&defaults.guard_size, kind->guard_size);
        store_release(&defaults.known, 1); /* pairs with the load above: both sizes are there */
    }
    return pass;
}

enum counters_pass kind_of(const pthread_attr_t *attributes, struct kthread_kind *kind, bool *detached) {
    if (!kthread_keeping() || tls_lock_held_by_caller())
        return PASS_OFF;
    if (!kthread_lineage(&kind->lineage))
        return PASS_LINEAGE;
    if (attributes == NULL)
        return kind_of_null(kind, detached);
    if (skipped(ROW_ATTRIBUTES)) {
        look(attributes, kind, detached);
        return kind_of_null(kind, &(bool){false});
    }
    return look(attributes, kind, detached);
}
