// SPDX-License-Identifier: Apache-2.0
/* Attributes that a thread is created with. */
#include <stdlib.h>

#include "layer.h"

static struct abt_attr *attributes(ABT_thread_attr attr) {
    return (struct abt_attr *)(void *)attr;
}

static int attr_new(const struct abt_attr *from, ABT_thread_attr *result) {
    struct abt_attr *attr = malloc(sizeof *attr);
    ABT_CHECK(attr != NULL, ABT_ERR_MEM);
    *attr = *from;
    *result = (ABT_thread_attr)(void *)attr;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_attr_create(ABT_thread_attr *newattr) {
    const struct abt_attr attr = {.stack_size = abt.stack_size, .migratable = ABT_TRUE};
    *newattr = ABT_THREAD_ATTR_NULL;
    return attr_new(&attr, newattr);
}

ABT_EXPORT int ABT_thread_get_attr(ABT_thread thread, ABT_thread_attr *attr) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    struct abt_thread *asked = abt_thread_of(thread);
    ABT_CHECK(!abt_is_tasklet(asked), ABT_ERR_INV_THREAD);
    void *low;
    size_t size;
    abt_thread_stack(asked, &low, &size);
    const struct abt_attr from = {.stack = low,
                                  .stack_size = size,
                                  .migratable = abt_thread_may_migrate(asked) == ABT_SUCCESS,
                                  .migrated = asked->migrated,
                                  .migrated_arg = asked->migrated_arg,
                                  .preempt = asked->preempt,
                                  .slice = asked->slice};
    return attr_new(&from, attr);
}

ABT_EXPORT int ABT_thread_attr_free(ABT_thread_attr *attr) {
    ABT_CHECK_HANDLE(*attr, ABT_ERR_INV_THREAD_ATTR);
    free(*attr);
    *attr = ABT_THREAD_ATTR_NULL;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_attr_set_stack(ABT_thread_attr attr, void *stackaddr, size_t stacksize) {
    ABT_CHECK_HANDLE(attr, ABT_ERR_INV_THREAD_ATTR);
    ABT_CHECK(((uintptr_t)stackaddr & 7) == 0, ABT_ERR_INV_ARG);
    attributes(attr)->stack = stackaddr;
    attributes(attr)->stack_size = stacksize;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_attr_get_stack(ABT_thread_attr attr, void **stackaddr, size_t *stacksize) {
    ABT_CHECK_HANDLE(attr, ABT_ERR_INV_THREAD_ATTR);
    *stackaddr = attributes(attr)->stack;
    *stacksize = attributes(attr)->stack_size;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_attr_set_stacksize(ABT_thread_attr attr, size_t stacksize) {
    ABT_CHECK_HANDLE(attr, ABT_ERR_INV_THREAD_ATTR);
    attributes(attr)->stack_size = stacksize;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_attr_get_stacksize(ABT_thread_attr attr, size_t *stacksize) {
    ABT_CHECK_HANDLE(attr, ABT_ERR_INV_THREAD_ATTR);
    *stacksize = attributes(attr)->stack_size;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_attr_set_callback(ABT_thread_attr attr, void (*cb_func)(ABT_thread, void *),
                                            void *cb_arg) {
    ABT_CHECK_HANDLE(attr, ABT_ERR_INV_THREAD_ATTR);
    attributes(attr)->migrated = cb_func;
    attributes(attr)->migrated_arg = cb_arg;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_attr_set_migratable(ABT_thread_attr attr, ABT_bool is_migratable) {
    ABT_CHECK_HANDLE(attr, ABT_ERR_INV_THREAD_ATTR);
    attributes(attr)->migratable = is_migratable;
    return ABT_SUCCESS;
}
