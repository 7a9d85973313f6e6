// SPDX-License-Identifier: Apache-2.0
/* Kernel threads for calls that block (thrum_blocking in <thrum/worker.h>), kept for the next such call.
 *
 * They are plain threads of libc's, made when none is free, and not those of src/kthread. That layer makes a used
 * thread like a new one for an unaware program, which is not needed here. It finds its threads by a mark beside
 * libc's descriptor of each, of which one library in a process can have one: under `thrum run` it is the cache's,
 * which leaves these threads alone, since they declare which signals they block (os/thread.h).
 *
 * A call goes, under the lock, to the thread that has become free last; the thread sleeps on a word of its own. A
 * thread that has slept for blocking_keep_ns takes itself off the list and ends. The thread has a copy of its work,
 * since the caller may give up waiting: under the lock, too, as the thread looks there for the call that gets the
 * result.
 *
 * Joining: an ending thread leaves its handle and joins the one whose handle it finds. So at most one is ended and
 * not joined, and joining the last means that all are gone. */
#ifndef THRUM_RUNTIME_BLOCKING_H
#define THRUM_RUNTIME_BLOCKING_H

#include <stdint.h>

extern uint64_t blocking_keep_ns; /* for tests to change */

/* The runtime's workers do not run any more: waits for running calls. */
void blocking_stop(void);

void blocking_fork_child(void);

#endif
