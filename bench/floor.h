/* SPDX-License-Identifier: Apache-2.0 */
/* What user-level threads cost without features: the floor that bench/ult compares libthrum with. x86-64.
 *
 * It has what the rows need, in the same way: the child runs at once on a call and its parent waits in a deque, from which other
 * workers steal; workers without work look for it for a while, then park; a switch keeps the registers and the floating-point control
 * words that a call keeps; a thread that has ended and is not joined has no stack. It has nothing else: threads are never
 * interrupted, no errors but abort(), no attributes, no end. */
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
    int is_busy;
    struct floor_thread *first, *last;
};

enum { FLOOR_WORKERS = 8 };

/* The caller becomes the first thread. So many workers, at most FLOOR_WORKERS, run threads until the process ends. */
void floor_init(unsigned workers);
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
