// SPDX-License-Identifier: Apache-2.0
/* Kernel threads for calls that block (thrum_blocking in <thrum/worker.h>), kept for the next such call.
 *
 * They are plain threads of libc's, made when none is free, and not those of src/kthread: that layer makes a used
 * thread like a new one for a program that must not notice, which nobody asks for here, and finds its threads by a
 * mark beside libc's descriptor of each, of which there can be one library's in a process: under `thrum run` it is the
 * cache's, which leaves these threads alone, since they say which signals they block (os/thread.h).
 *
 * A call goes, under the lock, to the thread that has become free last; the thread sleeps on a word of its own. One
 * that has slept for blocking_keep_ns takes itself off the list and ends. The thread has a copy of what it is to do, since
 * the caller may give up waiting: under the lock, too, as the thread looks there for who gets the result.
 *
 * Who joins them? Who ends leaves its handle and joins the one whose handle it finds, so that one at the most is ended
 * and not joined, and who joins the last knows that all are gone. */
#ifndef THRUM_RUNTIME_BLOCKING_H
#define THRUM_RUNTIME_BLOCKING_H

#include <stdint.h>

extern uint64_t blocking_keep_ns; /* for tests to change */

/* The runtime's workers do not run any more: waits for the calls that are on their way. */
void blocking_stop(void);

void blocking_fork_child(void);

#endif
