// SPDX-License-Identifier: Apache-2.0
/* See attributes.h. */
#include "sched/attributes.h"

#include <errno.h>
#include <string.h>

#include "base/misuse.h"
#include "context/stack.h"
#include "sched/worker.h"

static struct attributes *writable(thrum_attr_t *attr) {
    return (struct attributes *)(void *)attr;
}

void thrum_attr_init(thrum_attr_t *attr) {
    if (is_null(attr))
        misuse_null(__func__);
    memset(attr, 0, sizeof *attr);
    writable(attr)->stack_class = STACK_CLASS_DEFAULT;
}

int thrum_attr_set_flags(thrum_attr_t *attr, unsigned flags) {
    if (is_null(attr))
        return EINVAL;
    if (flags & ~(unsigned)(THRUM_SPAWN_QUEUED | THRUM_SPAWN_TASKLET | THRUM_SPAWN_CANCELLABLE |
                            THRUM_SPAWN_MEASURED | THRUM_SPAWN_CANCEL_LOCKS | THRUM_SPAWN_OWN_KTHREAD))
        return EINVAL;
    if (flags & THRUM_SPAWN_CANCEL_LOCKS)
        flags |= THRUM_SPAWN_CANCELLABLE;
    writable(attr)->flags = flags;
    return 0;
}

int thrum_attr_set_stack_size(thrum_attr_t *attr, size_t size) {
    if (is_null(attr))
        return EINVAL;
    unsigned stack_class = stack_class_of(size);
    if (stack_class == STACK_CLASSES)
        return EINVAL;
    writable(attr)->stack_class = (uint8_t)stack_class;
    return 0;
}

/* What its last bytes say is written before the thread begins, and no other thread writes there before. */
int thrum_attr_set_stack(thrum_attr_t *attr, void *memory, size_t size) {
    if (is_null(attr))
        return EINVAL;
    struct attributes *attributes = writable(attr);
    if (memory == NULL && size == 0) {
        attributes->stack_class = STACK_CLASS_DEFAULT;
        attributes->stack_top = NULL;
        return 0;
    }
    uintptr_t end;
    if (memory == NULL || size < THRUM_STACK_MIN || __builtin_add_overflow((uintptr_t)memory, size, &end) ||
        end > (uintptr_t)INTPTR_MAX) /* user space ends below */
        return EINVAL;
    attributes->stack_class = STACK_CLASS_USER;
    attributes->stack_top = (char *)(end & ~(uintptr_t)15);
    attributes->stack_low = memory;
    return 0;
}

int thrum_attr_set_worker(thrum_attr_t *attr, unsigned worker) {
    if (is_null(attr))
        return EINVAL;
    if (worker >= WORKERS_MAX && worker != THRUM_ANY_WORKER)
        return EINVAL;
    writable(attr)->worker = worker == THRUM_ANY_WORKER ? 0 : worker + 1;
    return 0;
}

int thrum_attr_set_priority(thrum_attr_t *attr, unsigned priority) {
    if (is_null(attr))
        return EINVAL;
    if (priority > THRUM_PRIORITY_MAX)
        return EINVAL;
    writable(attr)->priority = (uint8_t)priority;
    return 0;
}

int thrum_attr_set_preempt(thrum_attr_t *attr, unsigned mode) {
    if (is_null(attr))
        return EINVAL;
    if (mode > THRUM_PREEMPT_KLT)
        return EINVAL;
    writable(attr)->preempt = (uint8_t)mode;
    return 0;
}

int thrum_attr_set_slice(thrum_attr_t *attr, unsigned slice) {
    if (is_null(attr))
        return EINVAL;
    if (slice != 0 && (slice < THRUM_SLICE_MIN || slice > THRUM_SLICE_MAX))
        return EINVAL;
    writable(attr)->slice = slice;
    return 0;
}

void thrum_attr_set_deadline(thrum_attr_t *attr, uint64_t deadline) {
    if (is_null(attr))
        misuse_null(__func__);
    writable(attr)->deadline = deadline;
}

void thrum_attr_set_pool(thrum_attr_t *attr, thrum_pool_t pool) {
    if (is_null(attr))
        misuse_null(__func__);
    writable(attr)->pool = pool;
}
