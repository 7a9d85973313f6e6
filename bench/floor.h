/* SPDX-License-Identifier: Apache-2.0 */
/* What user-level threads cost without features: the floor that bench/ult compares libthrum with. x86-64, one kernel thread.
 *
 * It has what the rows need, in the same way: the child runs at once on a call and its parent waits in a queue; a switch
 * keeps the registers and the floating-point control words that a call keeps; a thread that has ended and is not joined has no
 * stack; and it looks where one with several workers must look for thieves, parked workers and interrupts. It has nothing else:
 * one worker, which is never interrupted, no errors but abort(), no attributes. */
#ifndef THRUM_BENCH_FLOOR_H
#define THRUM_BENCH_FLOOR_H

#ifdef __cplusplus
extern "C" {
#endif

struct floor_thread;

struct floor_mutex {
    unsigned long word;
    struct floor_thread *first, *last;
};

struct floor_cond {
    struct floor_thread *first, *last;
};

/* The caller becomes the first thread. */
void floor_init(void);
struct floor_thread *floor_spawn(void *(*fn)(void *), void *arg);
void *floor_join(struct floor_thread *thread);
void floor_yield(void);
void floor_lock(struct floor_mutex *mutex);
void floor_unlock(struct floor_mutex *mutex); /* hands it to the longest waiter */
void floor_wait(struct floor_cond *cond, struct floor_mutex *mutex);
void floor_signal(struct floor_cond *cond, struct floor_mutex *mutex);
void floor_broadcast(struct floor_cond *cond, struct floor_mutex *mutex);

#ifdef __cplusplus
}
#endif

#endif
