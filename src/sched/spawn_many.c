// SPDX-License-Identifier: Apache-2.0
/* Creating n threads at once, by halves: a thread of its own creates each half until few are left, so that idle
 * workers take large parts first and the creation itself is spread. */
#include <errno.h>

#include "base/misuse.h"
#include "sched/attributes.h"
#include "sched/worker.h"
#include "thrum/thrum.h"

enum { FEW = 16 };

struct batch {
    thrum_t *threads;
    const thrum_attr_t *attr;
    void *(*fn)(void *);
    char *args;
    size_t stride;
    size_t count;
    size_t made; /* out: so many from the first on */
    int error;
};

static void make_few(struct batch *batch) {
    for (batch->made = 0; batch->made < batch->count; batch->made++) {
        batch->error = thrum_spawn(&batch->threads[batch->made], batch->attr, batch->fn,
                                   batch->args + batch->made * batch->stride);
        if (batch->error != 0)
            return;
    }
}

static void make(struct batch *batch);

static void *make_half(void *batch) {
    make(batch);
    return NULL;
}

static void join_some(struct batch *batch) {
    for (size_t i = 0; i < batch->made; i++)
        thrum_join(batch->threads[i], NULL);
    batch->made = 0;
}

/* All or, with an error, none: those that were created are joined. */
static void make(struct batch *batch) {
    if (batch->count <= FEW) {
        make_few(batch);
        return;
    }
    struct batch left = *batch, right = *batch;
    left.count = batch->count / 2;
    right.count -= left.count;
    right.threads += left.count;
    right.args += left.count * left.stride;
    thrum_t helper;
    if (thrum_spawn(&helper, NULL, make_half, &left) == 0) {
        make(&right);
        thrum_join(helper, NULL);
    } else {
        make(&left);
        make(&right);
    }
    batch->error = left.error != 0 ? left.error : right.error;
    batch->made = batch->count;
    if (batch->error != 0) {
        join_some(&left);
        join_some(&right);
        batch->made = 0;
    }
}

int thrum_spawn_many(size_t count, thrum_t *threads, const thrum_attr_t *attr, void *(*fn)(void *),
                     void *args, size_t stride) {
    struct batch batch = {threads, attr, fn, args, stride, count, 0, 0};
    if (count == 0)
        return 0;
    if (is_null(threads) || is_null(fn))
        return EINVAL;
    if (attr != NULL && attributes_of(attr)->stack_top != NULL) /* which one thread at a time can have */
        return EINVAL;
    if (!unit_here_may_wait())
        return EPERM;
    int enabled = thrum_set_cancel(0); /* helpers write to our stack until they are joined */
    make(&batch);
    if (batch.error != 0)
        join_some(&batch);
    thrum_set_cancel(enabled);
    return batch.error;
}
