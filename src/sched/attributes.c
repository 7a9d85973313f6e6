// SPDX-License-Identifier: Apache-2.0
/* See attributes.h. */
#include "sched/attributes.h"

#include <errno.h>
#include <string.h>

#include "context/stack.h"

static struct attributes *writable(thrum_attr_t *attr) {
    return (struct attributes *)(void *)attr;
}

void thrum_attr_init(thrum_attr_t *attr) {
    memset(attr, 0, sizeof *attr);
    writable(attr)->stack_class = STACK_CLASS_DEFAULT;
}

int thrum_attr_set_flags(thrum_attr_t *attr, unsigned flags) {
    if (flags & ~(unsigned)(THRUM_SPAWN_QUEUED | THRUM_SPAWN_TASKLET))
        return EINVAL;
    writable(attr)->flags = flags;
    return 0;
}

int thrum_attr_set_stack_size(thrum_attr_t *attr, size_t size) {
    unsigned stack_class = stack_class_of(size);
    if (stack_class == STACK_CLASSES)
        return EINVAL;
    writable(attr)->stack_class = (uint8_t)stack_class;
    return 0;
}

int thrum_attr_set_priority(thrum_attr_t *attr, unsigned priority) {
    if (priority > THRUM_PRIORITY_MAX)
        return EINVAL;
    writable(attr)->priority = (uint8_t)priority;
    return 0;
}

void thrum_attr_set_deadline(thrum_attr_t *attr, uint64_t deadline) {
    writable(attr)->deadline = deadline;
}

void thrum_attr_set_pool(thrum_attr_t *attr, thrum_pool_t pool) {
    writable(attr)->pool = pool;
}
