// SPDX-License-Identifier: Apache-2.0
/* libthrum-alternatives.so: libthrum-cache.so with another way to make threads cheaper in the place of reuse. The paper
 * weighs these ways against reuse (margin note, appendix). They are measured by bench/alternatives, in the same program
 * and under the same conditions, and are for nothing else. docs/internals/alternatives.md has the numbers.
 *
 *   STANDBY          new kernel threads wait for their one job; a filler thread makes more (standby.h)
 *   STANDBY_HELPING  likewise, but each thread that ends makes the next one
 *   STACKS           kernel threads of libc's making on stacks of a cache (stack_cache.h)
 *
 * Every logical thread has a kernel thread of its own, which begins and ends in libc: joining it, reaching it by handle,
 * cancelling it is libc's business. Of reuse's life.h, gate.h and fresh/ only a part is used: what the creator passes on
 * (creator_capture, creator_apply), lineages, and the thread-locals of a thread that stood by (standby.h).
 *
 * The library's table of kthread/alternative.h is in mode.c. THRUM_ALTERNATIVE in the environment names the mode,
 * THRUM_ALTERNATIVE_STANDBY says how many threads of a kind stand by at most. Both are read by a constructor; a thread
 * that another library's constructor creates before is of the mode STANDBY. */
#ifndef THRUM_ALTERNATIVES_MODE_H
#define THRUM_ALTERNATIVES_MODE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "kthread/kthread.h"

/* X(enumerator, value of THRUM_ALTERNATIVE) */
#define MODES(X)                                                                                             \
    X(STANDBY, "standby")                                                                                    \
    X(STANDBY_HELPING, "standby-helping")                                                                    \
    X(STACKS, "stacks")

#define MODE_ENUM_(name, text) MODE_##name,
enum mode { MODES(MODE_ENUM_) };
#undef MODE_ENUM_

enum { STANDBY_USUAL = 16, STANDBY_MOST = 1000 };

struct mode_config {
    enum mode mode;
    uint64_t standby; /* at most so many threads of a kind stand by */
};
extern struct mode_config mode_config;

/* Chooses the mode by its name. False if there is none of that name; nothing is changed then. */
bool mode_choose(const char *name);

/* Those of struct alternative. They serve threads of all modes, whichever is chosen by now. */
bool mode_start(const struct kthread_kind *kind, bool detached, void *(*fn)(void *), void *arg,
                pthread_t *handle);
unsigned mode_cull(void);
void mode_before_copy(void);
void mode_fork_child(void);

#endif
