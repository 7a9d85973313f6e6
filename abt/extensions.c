// SPDX-License-Identifier: Apache-2.0
/* What thrum adds to Argobots' interface, but for preemption (preempt.c): waits that let the stream run others, and that its pools
 * count, and an end that unwinds. A stream is not joined, and a scheduler does not end, while one of its threads is in such a wait. */
#include <errno.h>

#include "layer.h"
#include "thrum/thrum.h"
#include "thrum/worker.h"

/* In a list where no waker looks. */
ABT_EXPORT int thrum_abt_sleep(uint64_t ns) {
    struct abt_waitlist list = {NULL, NULL};
    struct abt_spin lock = {0};
    uint64_t now = timer_now();
    abt_lock(&lock);
    abt_wait_in_until(&list, &lock, ns < TIMER_NEVER - 2 - now ? now + ns : TIMER_NEVER - 2);
    return ABT_SUCCESS;
}

static void add_blocked(struct abt_pool *pool, int32_t count) {
    enter();
    abt_pool_add_blocked(pool, count);
    leave();
}

ABT_EXPORT int thrum_abt_blocking(void *(*fn)(void *), void *arg, void **result) {
    const struct abt_thread *self = abt_self();
    ABT_CHECK(fn != NULL, ABT_ERR_INV_ARG);
    struct abt_pool *pool = self != NULL ? self->pool : NULL;
    if (pool != NULL)
        add_blocked(pool, 1);
    int error = thrum_blocking(fn, arg, result);
    if (pool != NULL)
        add_blocked(pool, -1);
    return error == 0 ? ABT_SUCCESS : error == ENOMEM ? ABT_ERR_MEM : ABT_ERR_SYS;
}

ABT_EXPORT int thrum_abt_exit(void) {
    const struct abt_thread *self = abt_self();
    ABT_CHECK(self != NULL, ABT_ERR_INV_XSTREAM);
    ABT_CHECK(self->kind == ABT_KIND_THREAD && !(self->flags & ABT_FLAG_PRIMARY), ABT_ERR_INV_THREAD);
    thrum_exit(NULL);
}
