// SPDX-License-Identifier: Apache-2.0
/* Where another way to make threads cheaper takes the place of reuse.
 *
 * libthrum-cache.so has none: the pointer is NULL. bench/alternatives links the same objects with a table of its own,
 * to measure what else could be done, in the same programs and behind the same front end
 * (docs/internals/alternatives.md). The linker takes its pointer for the weak one of alternative.c, so it is there
 * before the first thread.
 *
 * With an alternative no thread is one of kthread.h: its threads are libc's, and kthread_of_sigsafe finds none of them.
 *
 * Called by create.c and real.c of cache/, and by keep.c. */
#ifndef THRUM_KTHREAD_ALTERNATIVE_H
#define THRUM_KTHREAD_ALTERNATIVE_H

#include <pthread.h>
#include <stdbool.h>

#include "kthread/kthread.h"

struct alternative {
    /* In place of kthread_start; *handle is set before fn starts. False: nothing was done, and libc creates the thread
     * as it was asked for. The front end counts that as PASS_OFF. */
    bool (*start)(const struct kthread_kind *kind, bool detached, void *(*fn)(void *), void *arg,
                  pthread_t *handle);

    /* Gives up what is kept ready: part of kthread_cull. Returns how many threads or stacks that were. */
    unsigned (*cull)(void);

    /* A copy of the process is about to be made that libc does not know of (a bare clone). No thread of the
     * alternative's may be inside libc then, whose locks would be held for ever in the copy. */
    void (*before_copy)(void);

    void (*fork_child)(void);

    /* Which function the front end calls for libc's function of this name: `found`, or one that calls it. */
    void *(*behind)(const char *name, void *found);
};

__attribute__((visibility("hidden"))) extern const struct alternative *const kthread_alternative;

#endif
