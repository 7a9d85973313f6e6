// SPDX-License-Identifier: Apache-2.0
/* Threads with a kernel thread of their own: by THRUM_SPAWN_OWN_KTHREAD from their beginning, by thrum_kthread_lock from there
 * on.
 *
 * Such a thread runs on a *solo* worker. It is a worker so that all that asks for the caller's unit finds it. Unlike the others it
 * is in no slot: no thief, timekeeper, monitor or count of workers sees it.
 *
 *   - It runs one unit. That has the kind UNIT_SOLO, so wakers store to the worker's futex word (external.c) and enqueue nothing.
 *   - What the unit wakes or spawns goes to the queue of all workers, since the solo worker's run queue has no room.
 *   - When the unit waits, it switches to the loop, on the kernel thread's own stack. The loop sleeps on the word, or until the
 *     deadline of the wait. It has no store of timers (worker_for_timers).
 *   - It has no ticks: there is no other unit to switch to, and the kernel gives its time to other kernel threads.
 *   - Its thread control block is the kernel thread's own, unless the unit has one for life (mode own-tls), which goes with it.
 *
 * Each kernel thread has one unit, and ends when that leaves it: so what the unit has changed (affinity, namespaces, thread-locals
 * of libraries) reaches no other thread.
 *
 *   1. solo_make creates the kernel thread, which waits on the word.
 *   2. The unit gets its new place (unit_set_solo), and goes there as it would go to another worker: it announces itself, wakes
 *      the solo worker, and switches away. One that has not begun is woken there instead.
 *   3. To leave, the unit takes its former place back, says so (is_left), and switches to the loop. It is in no queue yet.
 *   4. The kernel thread ends its loop and its function. Libc calls the destructors of its thread-locals. It is an external kernel
 *      thread then.
 *   5. The destructor of a key of ours comes after them. It enqueues the unit at its place, and frees the worker. So thrum_join of
 *      the thread returns after the destructors, but those of values that destructors set again and again.
 *
 * If no unit comes after all (solo_unmake), steps 4 and 5 follow step 1, without a unit.
 *
 * Reclamation. A waker's last access is its exchange of the word, before the unit continues; a futex call may follow, as in
 * external.c. So the worker is not used when the unit has left it, and its kernel thread frees it. Where no unit comes its maker
 * says so and wakes the kernel thread under one lock, which that takes before it frees. At the end of the runtime units
 * that wait are lost, and may be woken still, by a blocking call that returns. A worker that its unit has not left is therefore
 * freed by solos_delete alone.
 *
 * Modelled in tests/model/solo.pml. The idea is Go's runtime.LockOSThread. */
#ifndef THRUM_RUNTIME_SOLO_H
#define THRUM_RUNTIME_SOLO_H

/* There are no workers any more: ends the kernel threads, each when its unit waits. And frees what units may still be woken on. */
void solos_stop(void);
void solos_delete(void);

/* In a child of fork. */
void solos_fork_child(void);

#endif
