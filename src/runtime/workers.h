// SPDX-License-Identifier: Apache-2.0
/* The workers' memory and kernel threads: all at once for init.c, and one at a time while the runtime runs
 * (<thrum/worker.h>).
 *
 * A worker's slot, once it is there, stays until the runtime ends, since others read all slots without a lock. Adding
 * and stopping, one at a time, under a mutex that ULTs may wait for:
 *
 *   1. Added: the lowest slot whose worker was stopped, or a new one behind the last. It counts, so that it can be
 *      woken and robbed, before its kernel thread runs; no thread can be bound to it before that is certain.
 *   2. Asked to leave (worker_ask_to_leave), by a caller that then waits as a unit: perhaps on that very worker.
 *   3. It returns to its loop when the unit that it runs waits, yields or ends, or leaves its search, and is no longer
 *      parked, nor the timekeeper.
 *   4. It gives its queues and magazines to all, and is no longer a worker.
 *   5. Its last act is to wake the waiter, which joins the kernel thread. The slot is free. A caller that has given up waiting
 *      leaves that to the next user of the slot, or the next stop of the same worker, or the runtime.
 *
 * A push that counted on this worker's search is not lost: the worker leaves the search like one that has found
 * something, and so checks whether another must be woken (idle.h). Its timers stay where they are; searching workers
 * and the timekeeper look there, and, since `orphans` says so, busy ones do, too. */
#ifndef THRUM_RUNTIME_WORKERS_H
#define THRUM_RUNTIME_WORKERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/inside.h"

struct thrum_unit;

/* As many as `count`. The caller becomes the first of them and `primary` what runs on it, bound; with NULL all have
 * kernel threads of their own. 0, ENOMEM, EAGAIN: then there are none. */
int workers_start(uint32_t count, struct thrum_unit *primary);

/* The caller becomes one more worker of the runtime, which had none like this yet, and `primary` what runs on it, bound. 0,
 * ENOMEM, EAGAIN: then the caller is what it was. */
int workers_adopt(struct thrum_unit *primary);

/* By the primary. First: none is added or stopped any more. Second: the others run nothing any more. Third: forgets
 * them. */
void workers_close(void);
void workers_stop(void);
void workers_delete(void);

void workers_fork_child(void);

/* struct preempt_callbacks's. */
bool workers_arm(void);
bool workers_add_relief(void);

#endif
