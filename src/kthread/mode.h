// SPDX-License-Identifier: Apache-2.0
/* The other ways to make threads cheaper, beside reuse: what the paper weighs against it (margin note, appendix),
 * kept to be measured in the same program and under the same conditions. docs/internals/alternatives.md has the numbers.
 *
 *   REUSE            terminated kernel threads get new work (kthread.h)
 *   STANDBY          new kernel threads wait for their one job; a filler thread makes more (standby.h)
 *   STANDBY_HELPING  likewise, but each thread that ends makes the next one
 *   STACKS           kernel threads of libc's making on stacks of a cache (stack_cache.h)
 *
 * In the last three every logical thread has a kernel thread of its own, which begins and ends in libc: joining it,
 * reaching it by handle, cancelling it is libc's business, and none of life.h, gate.h and fresh/ is used but what the
 * creator passes on (creator_capture, creator_apply), lineages, and the thread-locals of one that stood by
 * (standby.h).
 *
 * Called by cache/ (init.c, create.c, join.c, reach.c) and by keep.c. The mode is set before the first thread and
 * r/o from then on. */
#ifndef THRUM_KTHREAD_MODE_H
#define THRUM_KTHREAD_MODE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "kthread/kthread.h"

/* X(enumerator, value of THRUM_CACHE_MODE) */
#define KTHREAD_MODES(X)                                                                                     \
    X(REUSE, "reuse")                                                                                        \
    X(STANDBY, "standby")                                                                                    \
    X(STANDBY_HELPING, "standby-helping")                                                                    \
    X(STACKS, "stacks")

#define KTHREAD_MODE_ENUM_(name, text) MODE_##name,
enum kthread_mode { KTHREAD_MODES(KTHREAD_MODE_ENUM_) };
#undef KTHREAD_MODE_ENUM_

enum { STANDBY_USUAL = 16, STANDBY_MOST = 1000 };

struct mode_config {
    enum kthread_mode mode;
    uint64_t standby; /* at most so many threads of a kind stand by */
};
extern struct mode_config mode_config;

/* Chooses the mode by its name. False if there is none of that name; nothing is changed then. */
bool mode_choose(const char *name);

static inline bool mode_reuses(void) {
    return mode_config.mode == MODE_REUSE;
}

/* kthread_start for the other modes. 0; or MODE_PASS: nothing was done, libc must create the thread. *handle is set
 * before fn starts. */
enum { MODE_PASS = -1 };
int mode_start(const struct kthread_kind *kind, bool detached, void *(*fn)(void *), void *arg,
               pthread_t *handle);

/* Gives up what is kept ready: part of kthread_cull. Returns how many threads or stacks that were. */
unsigned mode_cull(void);

/* A copy of the process is about to be made that libc does not know of (a bare clone). No thread of ours may be
 * inside libc then, as the filler mostly is, or its locks would be held for ever in the copy. */
void mode_before_copy(void);

void mode_fork_child(void);

#endif
