// SPDX-License-Identifier: Apache-2.0
/* libthrum: synchronisation.
 *
 *     static thrum_channel_t lines = THRUM_CHANNEL_UNBOUNDED_INIT(sizeof(char *));
 *
 *     static void *print(void *unused) {
 *         char *line;
 *         while (thrum_channel_receive(&lines, &line) == 0)
 *             puts(line);
 *         return NULL;                                    // EPIPE: closed, and nothing is left
 *     }
 *
 *     thrum_spawn(&printer, NULL, print, NULL);
 *     for (int i = 0; i < argc; i++)
 *         thrum_channel_send(&lines, &argv[i]);
 *     thrum_channel_close(&lines);
 *     thrum_join(printer, NULL);
 *     thrum_channel_destroy(&lines);
 *
 * All objects work between ULTs, workers and external kernel threads, in any mixture, and can be used before thrum_init
 * and where there is no runtime. Unless it says otherwise a function may be called FROM a ULT or an external kernel
 * thread; not from a signal handler. What may wait must not be called from a tasklet, nor from a scheduler
 * (thrum_sched_create_user): where it would have to wait there it says so in one line and aborts.
 *
 * Objects are the caller's memory. Most are ready for use when all is zero; each has a static initialiser, THRUM_..._INIT,
 * and an init function for other memory. Destroying is checking: only channels without a bound have memory to free.
 * Whoever learns through an object that it is needed no longer (it got the lock, it saw the event) may destroy and
 * free it at once, even if the one who told it so has not returned from there.
 *
 * WAITING. First come, first served, unless it says otherwise. Beside most functions x that wait there are try_x, which
 * returns EBUSY where x would wait (of a channel EAGAIN; not for conditions and barriers), and x_until, which returns
 * ETIMEDOUT when the moment (ns on CLOCK_MONOTONIC, <thrum/time.h>; UINT64_MAX: never) has come first: then it is as if it had not been
 * called. (A condition is always waited for. At a barrier a moment of 0 is a try: who is not the last has not come.)
 *
 * MISUSE (unlocking what is another's, destroying what is in use) is answered with the error that is named there where
 * it is noticed without cost, and otherwise undefined. Debug builds of the library say what is wrong in one line and
 * abort. NULL in the place of an object or a function is EINVAL; what has no error to answer says so in one line and aborts.
 * So does what would have to wait in a region (thrum_nopreempt_begin). */
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

/* Unlocking hands it to who has waited for longest; there is no overtaking, and no crowd is woken. After pthread_mutex_t of
 * POSIX, and the queue locks of Mellor-Crummey and Scott, "Algorithms for Scalable Synchronization on Shared-Memory
 * Multiprocessors", ACM TOCS 1991. */
typedef struct {
    uint64_t opaque[5];
} thrum_mutex_t;

enum {
    THRUM_MUTEX_RECURSIVE = 8, /* its owner may lock it again, and unlocks it as often */
    THRUM_MUTEX_PRIORITY =
        16, /* the waiter of the highest priority gets it (thrum_attr_set_priority), then the oldest; that is the
             * priority with which it began to wait: thrum_set_priority is for the next time. It is the queue's order and
             * no more: who has the mutex does not get the priority of who waits for it */
};

#define THRUM_MUTEX_INIT                                                                                     \
    {                                                                                                        \
        { 0 }                                                                                                \
    }
#define THRUM_MUTEX_PRIORITY_INIT                                                                            \
    {                                                                                                        \
        { THRUM_MUTEX_PRIORITY }                                                                             \
    }
#define THRUM_MUTEX_RECURSIVE_INIT                                                                           \
    {                                                                                                        \
        { THRUM_MUTEX_RECURSIVE }                                                                            \
    }

/* `kind`: 0, or some of the above. Errors: EINVAL something else. */
int thrum_mutex_init(thrum_mutex_t *mutex, unsigned kind);
/* Locking a mutex of one's own again is a deadlock, unless it is recursive. */
void thrum_mutex_lock(thrum_mutex_t *mutex);
int thrum_mutex_lock_until(thrum_mutex_t *mutex, uint64_t moment);
int thrum_mutex_try_lock(thrum_mutex_t *mutex);
/* Errors: EPERM nobody has it, or it is recursive and another's. Unlocking another's plain one is undefined. */
int thrum_mutex_unlock(thrum_mutex_t *mutex);
/* Errors: EBUSY somebody has it. */
int thrum_mutex_destroy(thrum_mutex_t *mutex);

/* --- condition variable ------------------------------------------------------------------------------- */

/* After pthread_cond_t of POSIX. */
typedef struct {
    uint64_t opaque[5];
} thrum_cond_t;

#define THRUM_COND_INIT                                                                                      \
    {                                                                                                        \
        { 0 }                                                                                                \
    }

void thrum_cond_init(thrum_cond_t *cond);
/* Unlocks the mutex, which the caller has, however often it is locked, waits to be signalled, and has the mutex as
 * before when it returns, also with ETIMEDOUT. Without having it: undefined. There are no spurious wake-ups, but the
 * condition may be over again: check it in a loop. All who wait for a condition at a time use the same mutex. A signal
 * that comes before the moment counts, even if the mutex is not to be had until later. */
void thrum_cond_wait(thrum_cond_t *cond, thrum_mutex_t *mutex);
int thrum_cond_wait_until(thrum_cond_t *cond, thrum_mutex_t *mutex, uint64_t moment);
/* Wakes one, or all that wait now; with or without the mutex. They move over to the mutex's queue rather than wake up
 * and wait again. Who changed what they wait for without the mutex may miss one who is about to wait. */
void thrum_cond_signal(thrum_cond_t *cond);
void thrum_cond_broadcast(thrum_cond_t *cond);
/* Right after a broadcast, too, when those that waited have not returned yet. Errors: EBUSY somebody waits. */
int thrum_cond_destroy(thrum_cond_t *cond);

/* --- readers-writer lock ------------------------------------------------------------------------------ */

/* Readers share it, a writer has it alone. A writer that waits keeps new readers out, so writers do not starve; one that
 * unlocks lets in all readers that wait before it lets in the next writer, so neither do readers. Hence a reader must
 * not lock it again for reading while a writer may wait. After Brandenburg and Anderson, "Reader-Writer Synchronization for
 * Shared-Memory Multiprocessor Real-Time Systems", ECRTS 2009. */
typedef struct {
    uint64_t opaque[8];
} thrum_rwlock_t;

#define THRUM_RWLOCK_INIT                                                                                    \
    {                                                                                                        \
        { 0 }                                                                                                \
    }

void thrum_rwlock_init(thrum_rwlock_t *lock);
void thrum_rwlock_read_lock(thrum_rwlock_t *lock);
int thrum_rwlock_read_lock_until(thrum_rwlock_t *lock, uint64_t moment);
int thrum_rwlock_try_read_lock(thrum_rwlock_t *lock);
void thrum_rwlock_write_lock(thrum_rwlock_t *lock);
int thrum_rwlock_write_lock_until(thrum_rwlock_t *lock, uint64_t moment);
int thrum_rwlock_try_write_lock(thrum_rwlock_t *lock);
/* For both. Errors: EPERM nobody has it. */
int thrum_rwlock_unlock(thrum_rwlock_t *lock);
/* Errors: EBUSY somebody has it. */
int thrum_rwlock_destroy(thrum_rwlock_t *lock);

/* --- counting semaphore ------------------------------------------------------------------------------- */

/* After sem_t of POSIX, and std::counting_semaphore of C++20 for more than one permit at a time. */
typedef struct {
    uint64_t opaque[4];
} thrum_sem_t;

#define THRUM_SEM_MAX 536870911U /* permits */
#define THRUM_SEM_INIT(permits)                                                                              \
    {                                                                                                        \
        { (uint64_t)(permits) << 3 }                                                                         \
    }

/* Errors: EINVAL more than THRUM_SEM_MAX. */
int thrum_sem_init(thrum_sem_t *sem, unsigned permits);
/* Takes a permit. */
void thrum_sem_wait(thrum_sem_t *sem);
int thrum_sem_wait_until(thrum_sem_t *sem, uint64_t moment);
int thrum_sem_try_wait(thrum_sem_t *sem);
/* Gives one, or so many, to those who wait; what is left is kept. Errors: EOVERFLOW it would be more than THRUM_SEM_MAX:
 * nothing is kept. */
int thrum_sem_post(thrum_sem_t *sem);
int thrum_sem_post_many(thrum_sem_t *sem, unsigned permits);
/* How many there are now. */
unsigned thrum_sem_count(const thrum_sem_t *sem);
/* Errors: EBUSY somebody waits. */
int thrum_sem_destroy(thrum_sem_t *sem);

/* --- barrier ------------------------------------------------------------------------------------------ */

/* Keeps all until so many have come, and begins anew. After pthread_barrier_t of POSIX. */
typedef struct {
    uint64_t opaque[6];
} thrum_barrier_t;

#define THRUM_BARRIER_INIT(parties)                                                                          \
    {                                                                                                        \
        { 0, 0, 0, 0, (parties) }                                                                            \
    }

/* Errors: EINVAL 0 parties. */
int thrum_barrier_init(thrum_barrier_t *barrier, unsigned parties);
/* True for the last that came, false for the others. */
bool thrum_barrier_wait(thrum_barrier_t *barrier);
/* *last as above; may be NULL. With ETIMEDOUT the caller is not counted as having come. */
int thrum_barrier_wait_until(thrum_barrier_t *barrier, uint64_t moment, bool *last);
/* Errors: EBUSY somebody waits. */
int thrum_barrier_destroy(thrum_barrier_t *barrier);

/* --- event -------------------------------------------------------------------------------------------- */

/* Once it is set nobody waits, until it is reset. After Python's threading.Event. */
typedef struct {
    uint64_t opaque[4];
} thrum_event_t;

#define THRUM_EVENT_INIT                                                                                     \
    {                                                                                                        \
        { 0 }                                                                                                \
    }

void thrum_event_init(thrum_event_t *event);
/* Whatever the caller did before is seen by those who see it set. */
void thrum_event_set(thrum_event_t *event);
void thrum_event_reset(thrum_event_t *event);
void thrum_event_wait(thrum_event_t *event);
int thrum_event_wait_until(thrum_event_t *event, uint64_t moment);
int thrum_event_try_wait(thrum_event_t *event);
/* Errors: EBUSY somebody waits. */
int thrum_event_destroy(thrum_event_t *event);

/* --- latch -------------------------------------------------------------------------------------------- */

/* An event that is set when it has been counted down to zero. After std::latch of C++20. */
typedef struct {
    uint64_t opaque[5];
} thrum_latch_t;

#define THRUM_LATCH_INIT(count)                                                                              \
    {                                                                                                        \
        { (count) == 0, 0, 0, 0, (count) }                                                                   \
    }

void thrum_latch_init(thrum_latch_t *latch, unsigned count);
/* Errors: EINVAL by more than is left: nothing is counted. */
int thrum_latch_count_down(thrum_latch_t *latch, unsigned by);
void thrum_latch_wait(thrum_latch_t *latch);
int thrum_latch_wait_until(thrum_latch_t *latch, uint64_t moment);
int thrum_latch_try_wait(thrum_latch_t *latch);
/* Errors: EBUSY somebody waits. */
int thrum_latch_destroy(thrum_latch_t *latch);

/* --- eventual ----------------------------------------------------------------------------------------- */

/* A value that is set once, and read by any number. After Argobots' ABT_eventual. */
typedef struct {
    uint64_t opaque[6];
} thrum_eventual_t;

#define THRUM_EVENTUAL_INIT                                                                                  \
    {                                                                                                        \
        { 0 }                                                                                                \
    }

void thrum_eventual_init(thrum_eventual_t *eventual);
/* Errors: EBUSY it has been set. */
int thrum_eventual_set(thrum_eventual_t *eventual, void *value);
void *thrum_eventual_get(thrum_eventual_t *eventual);
/* *value may be NULL. */
int thrum_eventual_get_until(thrum_eventual_t *eventual, void **value, uint64_t moment);
int thrum_eventual_try_get(thrum_eventual_t *eventual, void **value);
/* As new; nobody uses it meanwhile. Errors: EBUSY somebody waits. */
int thrum_eventual_reset(thrum_eventual_t *eventual);
/* Errors: EBUSY somebody waits. */
int thrum_eventual_destroy(thrum_eventual_t *eventual);

/* --- future ------------------------------------------------------------------------------------------- */

/* So many values, in memory of the caller's, in the order in which they were set; waits for them all. After Argobots'
 * ABT_future. */
typedef struct {
    uint64_t opaque[4];
    void **values;
    uint64_t more[2];
} thrum_future_t;

#define THRUM_FUTURE_INIT(values, count)                                                                     \
    {                                                                                                        \
        {(count) == 0}, (values), {                                                                          \
            (count)                                                                                          \
        }                                                                                                    \
    }

void thrum_future_init(thrum_future_t *future, void **values, unsigned count);
/* Errors: EBUSY they have all been set. */
int thrum_future_set(thrum_future_t *future, void *value);
void thrum_future_wait(thrum_future_t *future);
int thrum_future_wait_until(thrum_future_t *future, uint64_t moment);
int thrum_future_try_wait(thrum_future_t *future);
/* As new; nobody uses it meanwhile. Errors: EBUSY somebody waits. */
int thrum_future_reset(thrum_future_t *future);
/* Errors: EBUSY somebody waits. */
int thrum_future_destroy(thrum_future_t *future);

/* --- once --------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t opaque[4];
} thrum_once_t;

#define THRUM_ONCE_INIT                                                                                      \
    {                                                                                                        \
        { 0 }                                                                                                \
    }

/* The first caller runs fn(arg); all return when that is done. If fn is left by an exception, or ends its thread, the
 * next one runs it. Calling it from fn for the same object is a deadlock. After pthread_once of POSIX, and std::call_once of
 * C++ for exceptions. */
void thrum_once_call(thrum_once_t *once, void (*fn)(void *arg), void *arg);
/* The same; who runs fn is not stopped at that moment, only who waits for its end. Errors: ETIMEDOUT, EBUSY somebody else
 * is at it still. */
int thrum_once_call_until(thrum_once_t *once, void (*fn)(void *arg), void *arg, uint64_t moment);
int thrum_once_try_call(thrum_once_t *once, void (*fn)(void *arg), void *arg);

/* --- channel ------------------------------------------------------------------------------------------ */

/* Elements of one size, any number of senders and receivers, in order. It holds up to `capacity` of them, in memory of
 * the caller's; with a capacity of 0 a sender waits until somebody receives; without a bound it maps memory as it
 * grows. Elements are copied under a spin lock: pass pointers to what is large. An element of no bytes is only counted.
 * After Go's channels. */
typedef struct {
    void *storage; /* capacity * element_size bytes */
    size_t capacity;
    size_t element_size;
    uint64_t opaque[14];
} thrum_channel_t;

#define THRUM_CHANNEL_UNBOUNDED SIZE_MAX
/* For an array. */
#define THRUM_CHANNEL_INIT(array)                                                                            \
    {                                                                                                        \
        (array), sizeof(array) / sizeof *(array), sizeof *(array), {                                         \
            0                                                                                                \
        }                                                                                                    \
    }
#define THRUM_CHANNEL_UNBUFFERED_INIT(element_size)                                                          \
    {                                                                                                        \
        NULL, 0, (element_size), {                                                                           \
            0                                                                                                \
        }                                                                                                    \
    }
#define THRUM_CHANNEL_UNBOUNDED_INIT(element_size)                                                           \
    {                                                                                                        \
        NULL, THRUM_CHANNEL_UNBOUNDED, (element_size), {                                                     \
            0                                                                                                \
        }                                                                                                    \
    }

/* Errors: EINVAL elements of more than 1 GiB, or no storage for a capacity. */
int thrum_channel_init(thrum_channel_t *channel, size_t element_size, size_t capacity, void *storage);
/* Errors: EPIPE it is closed, or was while this waited: the element is not sent; ENOMEM without a bound; EAGAIN, of try_send:
 * it is full, or without a capacity and no receiver waits; EINVAL `element` is NULL, and its size is not 0. */
int thrum_channel_send(thrum_channel_t *channel, const void *element);
int thrum_channel_send_until(thrum_channel_t *channel, const void *element, uint64_t moment);
int thrum_channel_try_send(thrum_channel_t *channel, const void *element);
/* A NULL element: it is thrown away. Errors: EPIPE it is closed, and nothing is left; EAGAIN, of try_receive: it is empty. */
int thrum_channel_receive(thrum_channel_t *channel, void *element);
int thrum_channel_receive_until(thrum_channel_t *channel, void *element, uint64_t moment);
int thrum_channel_try_receive(thrum_channel_t *channel, void *element);
/* Nothing more can be sent; receivers get what is there, then EPIPE. Errors: EPIPE it is closed. */
int thrum_channel_close(thrum_channel_t *channel);
/* How many elements it holds now. */
size_t thrum_channel_count(thrum_channel_t *channel);
/* What is in it is thrown away. Errors: EBUSY somebody waits. */
int thrum_channel_destroy(thrum_channel_t *channel);

/* --- waiting for any of several ----------------------------------------------------------------------- */

/*     struct request request;
 *     thrum_wait_t waits[] = {
 *         {.what = THRUM_WAIT_EVENT, .object = &stop}, // first: requests that never cease do not keep it from being seen
 *         {.what = THRUM_WAIT_RECEIVE, .object = &requests, .value = &request},
 *     };
 *     size_t which;
 *     while (thrum_wait_any(waits, 2, UINT64_MAX, &which) == 0 && which == 1 && waits[1].result == 0)
 *         serve(&request);
 */
enum thrum_wait_what {
    THRUM_WAIT_EVENT, /* `object` is a thrum_event_t and so on; `value` is not used, unless it says so */
    THRUM_WAIT_LATCH,
    THRUM_WAIT_FUTURE,
    THRUM_WAIT_EVENTUAL, /* value: a void *, for the value; or NULL */
    THRUM_WAIT_SEM,
    THRUM_WAIT_SEND,    /* object: a thrum_channel_t; value: the element */
    THRUM_WAIT_RECEIVE, /* object: a thrum_channel_t; value: for the element; or NULL */
    THRUM_WAIT_JOIN, /* object: a thrum_t, which nobody else joins; value: a void *, for the result; or NULL */
    /* Or'ed into `what` of the first of the array: where several are ready, the search for one begins at a place that is
     * drawn. So each is taken sooner or later, also beside one that is ready each time. */
    THRUM_WAIT_RANDOM = 256,
};

typedef struct {
    uint32_t what;  /* enum thrum_wait_what; of the first also | THRUM_WAIT_RANDOM */
    int32_t result; /* of the one that was ready: what the function for it alone would have returned */
    void *object;
    void *value;
    uint64_t opaque[9];
} thrum_wait_t;

/* Waits until one of them is ready, and does that one alone: takes its permit, sends or receives its element, joins its
 * thread. *which is its place; may be NULL. If several are ready it is the first of them, or with THRUM_WAIT_RANDOM the first
 * from one on that is drawn. A moment of 0 does not wait. The array may be used again as it is. To wait for n objects takes
 * time in proportion to n, and n log n where the array is not in the order of their addresses.
 *
 * Errors: ETIMEDOUT; EINVAL none is there to wait for, an `object` is NULL, `what` is not one of the above, or a thread
 * that would have to be waited for is joined by somebody else, or is detached. THRUM_WAIT_RANDOM after Go's select. */
int thrum_wait_any(thrum_wait_t *waits, size_t count, uint64_t moment, size_t *which);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
