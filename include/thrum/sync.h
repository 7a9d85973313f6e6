// SPDX-License-Identifier: Apache-2.0
/* libthrum: synchronisation.
 *
 *     static thrum_channel_t lines = THRUM_CHANNEL_UNBOUNDED_INITIALIZER(sizeof(char *));
 *
 *     static void *print(void *unused) {
 *         char *line;
 *         while (thrum_channel_receive(&lines, &line) == 0)
 *             puts(line);
 *         return NULL;                                    // EPIPE: closed and empty
 *     }
 *
 *     thrum_spawn(&printer, NULL, print, NULL);
 *     for (int i = 0; i < argc; i++)
 *         thrum_channel_send(&lines, &argv[i]);
 *     thrum_channel_close(&lines);
 *     thrum_join(printer, NULL);
 *     thrum_channel_destroy(&lines);
 *
 * All objects synchronise ULTs, workers and external kernel threads in any mixture. They work before thrum_init and
 * without a runtime. Unless it says otherwise a function may be called FROM a ULT or an external kernel thread, and not
 * from a signal handler. A function that may wait must not be called from a tasklet, nor from a scheduler
 * (thrum_sched_create_user). Where it would have to wait there, it prints one line and aborts.
 *
 * Objects live in the caller's memory. Most are ready for use when zeroed. Each has a static initialiser,
 * THRUM_..._INITIALIZER, and an init function for other memory. Destroying only checks; only unbounded channels have
 * memory to free. A thread may learn through an object that the object is no longer needed: it got the lock, it saw
 * the event. It may then destroy and free it at once, even if the call that told it so has not returned yet.
 *
 * WAITING is first come, first served, unless it says otherwise. Most functions x that wait have two variants:
 * - try_x returns EBUSY where x would wait (a channel's: EAGAIN). Conditions and barriers have none.
 * - x_until returns ETIMEDOUT when its deadline comes first (ns on CLOCK_MONOTONIC, <thrum/time.h>; UINT64_MAX: never);
 *   then it has had no effect. A wait for a condition always waits. At a barrier a deadline of 0 is a try: a caller that
 *   is not the last is not counted.
 *
 * MISUSE (unlocking another thread's lock, destroying an object in use) returns the error documented below where detecting
 * it costs nothing, and is undefined otherwise. Debug builds of the library print one line and abort. NULL in the place
 * of an object or a function is EINVAL; a function that returns no error prints one line and aborts. So does a function
 * that would have to wait in a region (thrum_nopreempt_begin). */
#ifndef THRUM_SYNC_H
#define THRUM_SYNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "thrum/thrum.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* --- mutex -------------------------------------------------------------------------------------------- */

/* Unlocking hands the mutex to the thread that has waited longest: no overtaking, and no thundering herd. After
 * pthread_mutex_t of POSIX, and the queue locks of Mellor-Crummey and Scott, "Algorithms for Scalable Synchronization on
 * Shared-Memory Multiprocessors", ACM TOCS 1991. */
typedef struct {
    uint64_t opaque[5];
} thrum_mutex_t;

enum {
    THRUM_MUTEX_RECURSIVE = 8, /* the owner may lock it again, and must unlock it as often */
    THRUM_MUTEX_PRIORITY =
        16, /* handed to the waiter with the highest priority (thrum_attr_set_priority), then to the oldest. The priority
             * is read when the wait begins; thrum_set_priority affects the next wait. It orders the queue only: there is no
             * priority inheritance */
};

#define THRUM_MUTEX_INITIALIZER                                                                              \
    {                                                                                                        \
        { 0 }                                                                                                \
    }
#define THRUM_MUTEX_PRIORITY_INITIALIZER                                                                     \
    {                                                                                                        \
        { THRUM_MUTEX_PRIORITY }                                                                             \
    }
#define THRUM_MUTEX_RECURSIVE_INITIALIZER                                                                    \
    {                                                                                                        \
        { THRUM_MUTEX_RECURSIVE }                                                                            \
    }

/* `kind`: 0, or an or of the above. Errors: EINVAL another value. */
int thrum_mutex_init(thrum_mutex_t *mutex, unsigned kind);
/* Locking a mutex again that the caller owns is a deadlock, unless the mutex is recursive. */
void thrum_mutex_lock(thrum_mutex_t *mutex);
int thrum_mutex_lock_until(thrum_mutex_t *mutex, uint64_t deadline);
int thrum_mutex_try_lock(thrum_mutex_t *mutex);
/* Errors: EPERM it is not locked, or it is recursive and another thread owns it. Unlocking another thread's plain mutex is
 * undefined. */
int thrum_mutex_unlock(thrum_mutex_t *mutex);
/* Errors: EBUSY it is locked. */
int thrum_mutex_destroy(thrum_mutex_t *mutex);

/* --- condition variable ------------------------------------------------------------------------------- */

/* After pthread_cond_t of POSIX. */
typedef struct {
    uint64_t opaque[5];
} thrum_cond_t;

#define THRUM_COND_INITIALIZER                                                                               \
    {                                                                                                        \
        { 0 }                                                                                                \
    }

void thrum_cond_init(thrum_cond_t *cond);
/* Unlocks the mutex completely, however often the caller has locked it, waits for a signal, and locks it again as often;
 * also with ETIMEDOUT. The caller must own the mutex, otherwise undefined. There are no spurious wake-ups, but another
 * thread may have changed the condition since the signal: check it in a loop. All threads that wait for a condition at the
 * same time must use the same mutex. A signal before the deadline counts, even if the mutex becomes free only later. */
void thrum_cond_wait(thrum_cond_t *cond, thrum_mutex_t *mutex);
int thrum_cond_wait_until(thrum_cond_t *cond, thrum_mutex_t *mutex, uint64_t deadline);
/* Wakes one waiter, or all current ones; with or without the mutex. Waiters move to the mutex's queue instead of waking up
 * only to wait again (wait morphing). A thread that changes the condition without the mutex may miss a thread that is about
 * to wait. */
void thrum_cond_signal(thrum_cond_t *cond);
void thrum_cond_broadcast(thrum_cond_t *cond);
/* Allowed right after a broadcast, even if the waiters have not returned yet. Errors: EBUSY a thread waits. */
int thrum_cond_destroy(thrum_cond_t *cond);

/* --- readers-writer lock ------------------------------------------------------------------------------ */

/* Shared by readers, exclusive for a writer. A waiting writer keeps new readers out, so writers do not starve. An unlocking
 * writer admits all waiting readers before the next writer, so readers do not starve either. Hence a reader must not lock
 * it again for reading while a writer may wait. After Brandenburg and Anderson, "Reader-Writer Synchronization for
 * Shared-Memory Multiprocessor Real-Time Systems", ECRTS 2009. */
typedef struct {
    uint64_t opaque[8];
} thrum_rwlock_t;

#define THRUM_RWLOCK_INITIALIZER                                                                             \
    {                                                                                                        \
        { 0 }                                                                                                \
    }

void thrum_rwlock_init(thrum_rwlock_t *lock);
void thrum_rwlock_read_lock(thrum_rwlock_t *lock);
int thrum_rwlock_read_lock_until(thrum_rwlock_t *lock, uint64_t deadline);
int thrum_rwlock_try_read_lock(thrum_rwlock_t *lock);
void thrum_rwlock_write_lock(thrum_rwlock_t *lock);
int thrum_rwlock_write_lock_until(thrum_rwlock_t *lock, uint64_t deadline);
int thrum_rwlock_try_write_lock(thrum_rwlock_t *lock);
/* For readers and writers. Errors: EPERM it is not locked. */
int thrum_rwlock_unlock(thrum_rwlock_t *lock);
/* Errors: EBUSY it is locked. */
int thrum_rwlock_destroy(thrum_rwlock_t *lock);

/* --- counting semaphore ------------------------------------------------------------------------------- */

/* After sem_t of POSIX, and std::counting_semaphore of C++20 for more than one permit at a time. */
typedef struct {
    uint64_t opaque[4];
} thrum_sem_t;

#define THRUM_SEM_MAX 536870911U /* permits */
#define THRUM_SEM_INITIALIZER(permits)                                                                       \
    {                                                                                                        \
        { (permits) * UINT64_C(8) }                                                                          \
    }

/* Errors: EINVAL more than THRUM_SEM_MAX. */
int thrum_sem_init(thrum_sem_t *sem, unsigned permits);
/* Takes a permit. */
void thrum_sem_wait(thrum_sem_t *sem);
int thrum_sem_wait_until(thrum_sem_t *sem, uint64_t deadline);
int thrum_sem_try_wait(thrum_sem_t *sem);
/* Releases one permit, or `permits` of them: waiters get them first, the rest is kept. Errors: EOVERFLOW more than
 * THRUM_SEM_MAX would be left; then no permit is released. */
int thrum_sem_post(thrum_sem_t *sem);
int thrum_sem_post_many(thrum_sem_t *sem, unsigned permits);
/* The permits that are available now. */
unsigned thrum_sem_count(const thrum_sem_t *sem);
/* Errors: EBUSY a thread waits. */
int thrum_sem_destroy(thrum_sem_t *sem);

/* --- barrier ------------------------------------------------------------------------------------------ */

/* Blocks callers until `parties` threads have arrived, releases them all, and starts over. After pthread_barrier_t of
 * POSIX. */
typedef struct {
    uint64_t opaque[6];
} thrum_barrier_t;

#define THRUM_BARRIER_INITIALIZER(parties)                                                                   \
    {                                                                                                        \
        { 0, 0, 0, 0, (parties) }                                                                            \
    }

/* Errors: EINVAL 0 parties. */
int thrum_barrier_init(thrum_barrier_t *barrier, unsigned parties);
/* True for the last that arrives, false for the others. */
bool thrum_barrier_wait(thrum_barrier_t *barrier);
/* *last as above; may be NULL. After ETIMEDOUT the caller does not count as having arrived. */
int thrum_barrier_wait_until(thrum_barrier_t *barrier, uint64_t deadline, bool *last);
/* Errors: EBUSY a thread waits. */
int thrum_barrier_destroy(thrum_barrier_t *barrier);

/* --- event -------------------------------------------------------------------------------------------- */

/* A flag: while it is set no caller waits; a reset clears it. After Python's threading.Event. */
typedef struct {
    uint64_t opaque[4];
} thrum_event_t;

#define THRUM_EVENT_INITIALIZER                                                                              \
    {                                                                                                        \
        { 0 }                                                                                                \
    }

void thrum_event_init(thrum_event_t *event);
/* What the caller wrote before is visible to every thread that sees the event set. */
void thrum_event_set(thrum_event_t *event);
void thrum_event_reset(thrum_event_t *event);
void thrum_event_wait(thrum_event_t *event);
int thrum_event_wait_until(thrum_event_t *event, uint64_t deadline);
int thrum_event_try_wait(thrum_event_t *event);
/* Errors: EBUSY a thread waits. */
int thrum_event_destroy(thrum_event_t *event);

/* --- latch -------------------------------------------------------------------------------------------- */

/* An event that is set when a count reaches zero. After std::latch of C++20. */
typedef struct {
    uint64_t opaque[5];
} thrum_latch_t;

#define THRUM_LATCH_INITIALIZER(count)                                                                       \
    {                                                                                                        \
        { (count) == 0, 0, 0, 0, (count) }                                                                   \
    }

void thrum_latch_init(thrum_latch_t *latch, unsigned count);
/* Errors: EINVAL `by` is more than is left; then nothing is counted. */
int thrum_latch_count_down(thrum_latch_t *latch, unsigned by);
void thrum_latch_wait(thrum_latch_t *latch);
int thrum_latch_wait_until(thrum_latch_t *latch, uint64_t deadline);
int thrum_latch_try_wait(thrum_latch_t *latch);
/* Errors: EBUSY a thread waits. */
int thrum_latch_destroy(thrum_latch_t *latch);

/* --- eventual ----------------------------------------------------------------------------------------- */

/* A value that is set once and read any number of times. After Argobots' ABT_eventual. */
typedef struct {
    uint64_t opaque[6];
} thrum_eventual_t;

#define THRUM_EVENTUAL_INITIALIZER                                                                           \
    {                                                                                                        \
        { 0 }                                                                                                \
    }

void thrum_eventual_init(thrum_eventual_t *eventual);
/* Errors: EBUSY it is set already. */
int thrum_eventual_set(thrum_eventual_t *eventual, void *value);
void *thrum_eventual_get(thrum_eventual_t *eventual);
/* `value` may be NULL. */
int thrum_eventual_get_until(thrum_eventual_t *eventual, void **value, uint64_t deadline);
int thrum_eventual_try_get(thrum_eventual_t *eventual, void **value);
/* Makes it as new. No thread may use it meanwhile. Errors: EBUSY a thread waits. */
int thrum_eventual_reset(thrum_eventual_t *eventual);
/* Errors: EBUSY a thread waits. */
int thrum_eventual_destroy(thrum_eventual_t *eventual);

/* --- future ------------------------------------------------------------------------------------------- */

/* `count` values, stored in the caller's memory in the order in which they are set. Waiting is for all of them. After
 * Argobots' ABT_future. */
typedef struct {
    uint64_t opaque[4];
    void **values;
    uint64_t more[2];
} thrum_future_t;

#define THRUM_FUTURE_INITIALIZER(values, count)                                                              \
    {                                                                                                        \
        {(count) == 0}, (values), {                                                                          \
            (count)                                                                                          \
        }                                                                                                    \
    }

void thrum_future_init(thrum_future_t *future, void **values, unsigned count);
/* Errors: EBUSY all values are set already. */
int thrum_future_set(thrum_future_t *future, void *value);
void thrum_future_wait(thrum_future_t *future);
int thrum_future_wait_until(thrum_future_t *future, uint64_t deadline);
int thrum_future_try_wait(thrum_future_t *future);
/* Makes it as new. No thread may use it meanwhile. Errors: EBUSY a thread waits. */
int thrum_future_reset(thrum_future_t *future);
/* Errors: EBUSY a thread waits. */
int thrum_future_destroy(thrum_future_t *future);

/* --- once --------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t opaque[4];
} thrum_once_t;

#define THRUM_ONCE_INITIALIZER                                                                               \
    {                                                                                                        \
        { 0 }                                                                                                \
    }

/* The first caller runs fn(arg); all callers return when it is done. If an exception leaves fn, or fn ends its thread, the
 * next caller runs it. Calling it from fn for the same object is a deadlock, which debug builds of the library report. After pthread_once of POSIX, and
 * std::call_once of C++ for exceptions. */
void thrum_once_call(thrum_once_t *once, void (*fn)(void *arg), void *arg);
/* The same with a deadline, or without waiting, for another thread's run of fn. The caller's own run of fn is not stopped
 * at the deadline. Errors: ETIMEDOUT, EBUSY another thread still runs fn. */
int thrum_once_call_until(thrum_once_t *once, void (*fn)(void *arg), void *arg, uint64_t deadline);
int thrum_once_try_call(thrum_once_t *once, void (*fn)(void *arg), void *arg);

/* --- channel ------------------------------------------------------------------------------------------ */

/* A FIFO of elements of one size, for any number of senders and receivers. It holds up to `capacity` elements in the
 * caller's memory. With a capacity of 0 a sender waits until a receiver takes its element. An unbounded channel maps memory
 * as it grows. Elements are copied under a spin lock: pass pointers to large ones. Elements of 0 bytes are only counted.
 * After Go's channels. */
typedef struct {
    void *storage; /* capacity * element_size bytes */
    size_t capacity;
    size_t element_size;
    uint64_t opaque[14];
} thrum_channel_t;

#define THRUM_CHANNEL_UNBOUNDED SIZE_MAX
/* For an array. */
#define THRUM_CHANNEL_INITIALIZER(array)                                                                     \
    {                                                                                                        \
        (array), sizeof(array) / sizeof *(array), sizeof *(array), {                                         \
            0                                                                                                \
        }                                                                                                    \
    }
#define THRUM_CHANNEL_UNBUFFERED_INITIALIZER(element_size)                                                   \
    {                                                                                                        \
        NULL, 0, (element_size), {                                                                           \
            0                                                                                                \
        }                                                                                                    \
    }
#define THRUM_CHANNEL_UNBOUNDED_INITIALIZER(element_size)                                                    \
    {                                                                                                        \
        NULL, THRUM_CHANNEL_UNBOUNDED, (element_size), {                                                     \
            0                                                                                                \
        }                                                                                                    \
    }

/* Errors: EINVAL elements of more than 1 GiB, or no storage for a capacity. */
int thrum_channel_init(thrum_channel_t *channel, size_t element_size, size_t capacity, void *storage);
/* Errors: EPIPE it is closed, or was closed during the wait, and the element is not sent; ENOMEM it is unbounded and could
 * not grow; EAGAIN, from try_send: it is full, or has no capacity and no receiver waits; EINVAL `element` is NULL and
 * element_size is not 0. */
int thrum_channel_send(thrum_channel_t *channel, const void *element);
int thrum_channel_send_until(thrum_channel_t *channel, const void *element, uint64_t deadline);
int thrum_channel_try_send(thrum_channel_t *channel, const void *element);
/* With a NULL `element` the element is discarded. Errors: EPIPE it is closed and empty; EAGAIN, from try_receive: it is
 * empty. */
int thrum_channel_receive(thrum_channel_t *channel, void *element);
int thrum_channel_receive_until(thrum_channel_t *channel, void *element, uint64_t deadline);
int thrum_channel_try_receive(thrum_channel_t *channel, void *element);
/* Ends sending; receivers get the remaining elements, then EPIPE. Errors: EPIPE it is closed already. */
int thrum_channel_close(thrum_channel_t *channel);
/* The number of elements that it holds now. */
size_t thrum_channel_count(thrum_channel_t *channel);
/* Discards what it holds. Errors: EBUSY a thread waits. */
int thrum_channel_destroy(thrum_channel_t *channel);

/* --- waiting for any of several ----------------------------------------------------------------------- */

/*     struct request request;
 *     thrum_wait_t waits[] = {
 *         {.what = THRUM_WAIT_EVENT, .object = &stop}, // first, so that a stream of requests cannot hide it
 *         {.what = THRUM_WAIT_RECEIVE, .object = &requests, .value = &request},
 *     };
 *     size_t which;
 *     while (thrum_wait_any(waits, 2, UINT64_MAX, &which) == 0 && which == 1 && waits[1].result == 0)
 *         serve(&request);
 */
enum thrum_wait_what {
    THRUM_WAIT_EVENT, /* `object` is a thrum_event_t and so on; `value` is unused unless described here */
    THRUM_WAIT_LATCH,
    THRUM_WAIT_FUTURE,
    THRUM_WAIT_EVENTUAL, /* value: a void *, receives the value; or NULL */
    THRUM_WAIT_SEM,
    THRUM_WAIT_SEND,    /* object: a thrum_channel_t; value: the element */
    THRUM_WAIT_RECEIVE, /* object: a thrum_channel_t; value: receives the element; or NULL */
    THRUM_WAIT_JOIN, /* object: a thrum_t that no other thread joins; value: a void *, receives the result; or NULL */
    THRUM_WAIT_LOCK,       /* object: a thrum_mutex_t, which the caller owns afterwards */
    THRUM_WAIT_READ_LOCK,  /* object: a thrum_rwlock_t; locked for reading */
    THRUM_WAIT_WRITE_LOCK, /* object: a thrum_rwlock_t; locked for writing */
    THRUM_WAIT_NONE,       /* never ready; `object` and `value` are unused. An element that is switched off */
    /* object: a thrum_cond_t; value: a thrum_mutex_t, which the caller owns. It is unlocked completely while the call waits, and
     * locked again when the call returns, whichever element was ready, also with ETIMEDOUT. For one element only */
    THRUM_WAIT_COND,
    /* Or'ed into `what` of the first array element: the search for a ready object starts at a random position. So each
     * object is taken eventually, even beside one that is always ready. */
    THRUM_WAIT_RANDOM = 256,
};

typedef struct {
    uint32_t what;  /* enum thrum_wait_what; in the first also | THRUM_WAIT_RANDOM */
    int32_t result; /* of the one that was ready: what its own function would have returned */
    void *object;
    void *value;
    uint64_t opaque[9];
} thrum_wait_t;

/* Waits until one of the objects is ready, and performs that operation alone: takes its permit, sends or receives its
 * element, joins its thread. Its position is stored in *which; `which` may be NULL. If several are ready it takes the first; with
 * THRUM_WAIT_RANDOM the first from a random position on. A deadline of 0 does not wait, but
 * unlocks and locks the mutex of a THRUM_WAIT_COND. The array can be reused as it is.
 * The cost of waiting for n objects is O(n), and O(n log n) if the array is not sorted by address.
 *
 * Errors: ETIMEDOUT; EINVAL `count` is 0, an `object` is NULL, `what` is invalid, all elements are THRUM_WAIT_NONE and there
 * is no deadline, there are two THRUM_WAIT_COND, one without a mutex, or one whose mutex is the object of a THRUM_WAIT_LOCK, or a thread that would have to be waited for is
 * detached or joined by another thread. THRUM_WAIT_RANDOM
 * and THRUM_WAIT_NONE after Go's select, whose nil channels are never ready. */
int thrum_wait_any(thrum_wait_t *waits, size_t count, uint64_t deadline, size_t *which);

/*     static void serve_it(void *arg) {
 *         serve(arg);
 *     }
 *
 *     static struct request request;
 *     static thrum_wait_t first = {.what = THRUM_WAIT_RECEIVE, .object = &requests, .value = &request};
 *     static thrum_when_t when = {.waits = &first, .count = 1, .deadline = UINT64_MAX, .fn = serve_it, .arg = &request};
 *     thrum_spawn_when(NULL, &when);
 */
typedef struct {
    thrum_wait_t *waits; /* these three as for thrum_wait_any */
    size_t count;
    uint64_t deadline;
    void (*fn)(void *arg);
    void *arg;
    size_t which;     /* once fn is called: the position of the one that was ready */
    int32_t error;    /* likewise: what thrum_wait_any would have returned */
    uint32_t opaque1; /* this and the next need no value */
    uint64_t opaque[12];
} thrum_when_t;

/* Starts a detached thread which calls thrum_wait_any and then fn(arg). But while it waits the thread has no stack: it takes 192
 * bytes besides the caller's memory. `when` and its `waits` must stay valid until fn is called; fn may free or reuse them. The
 * operation is the new thread's, which owns the mutex that it waited for. The mutex of a THRUM_WAIT_COND, which the caller
 * owns, is the new thread's from the call on, and locked when fn is called. If the call fails, it is still the caller's. The
 * thread has a stack at once if an object is ready, or if an external kernel thread, or a thread with a kernel thread of its own,
 * sets a deadline. `attr` may be NULL. THRUM_SPAWN_QUEUED makes no difference. thrum_cancel has no effect before the thread has
 * begun.
 *
 * From: ULT, tasklet, external.
 * Errors: EINVAL `fn` is NULL, `attr` says THRUM_SPAWN_TASKLET, or as thrum_wait_any for `waits`; otherwise as thrum_spawn. */
int thrum_spawn_when(const thrum_attr_t *attr, thrum_when_t *when);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
