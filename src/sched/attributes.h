// SPDX-License-Identifier: Apache-2.0
/* What thrum_attr_t holds: everything worked out already, so that spawn only reads it. */
#ifndef THRUM_SCHED_ATTRIBUTES_H
#define THRUM_SCHED_ATTRIBUTES_H

#include "thrum/thrum.h"

struct attributes {
    uint32_t flags;
    uint8_t stack_class, priority;
    uint8_t preempt; /* enum thrum_preempt_mode */
    struct thrum_pool *pool;
    uint64_t deadline;
    char *stack_top, *stack_low; /* of the user's own */
    uint32_t worker;             /* 1 + the one that it is bound to; 0: none */
    uint32_t slice;              /* us */
};

_Static_assert(sizeof(struct attributes) <= sizeof(thrum_attr_t), "thrum.h leaves room for it");

static inline const struct attributes *attributes_of(const thrum_attr_t *attr) {
    return (const struct attributes *)(const void *)attr;
}

#endif
