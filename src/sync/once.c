// SPDX-License-Identifier: Apache-2.0
/* Once: the first caller runs the function, the others wait for its end.
 *
 * word: ONCE_DONE (as EVENT_SET), ONCE_RUNNING, WORD_WAITERS, WORD_SPIN.
 *   0 -> RUNNING     the caller that runs it, under SPIN
 *   RUNNING -> DONE  the same, when it has returned
 *   RUNNING -> 0     the same, when an exception or the thread's end left it: all waiters are woken, and one of them tries
 *                    again
 * spare: which thread runs it; checked builds only. */
#include <errno.h>

#include "sched/cancel.h"
#include "sync/event.h"

enum { ONCE_DONE = EVENT_SET, ONCE_RUNNING = 8 };

struct once {
    struct event event;
};

_Static_assert(sizeof(struct once) <= sizeof(thrum_once_t), "thrum/sync.h leaves room for it");

/* On the runner's stack while the function runs. */
struct attempt {
    struct queue *queue;
    uint32_t outcome; /* the next value of the word */
};

static void end(struct attempt *attempt) {
    struct waiters taken = {.first = NULL};
    enter();
    waiters_take_all(&attempt->queue->waiters, &attempt->queue->word, word_lock(&attempt->queue->word), 0,
                     &taken);
    word_unlock(&attempt->queue->word, attempt->outcome);
    waiters_wake(&taken, 0);
    leave();
}

static void run(struct queue *queue, void (*fn)(void *), void *arg) {
    __attribute__((cleanup(end))) struct attempt attempt = {queue, 0};
    fn(arg);
    attempt.outcome = ONCE_DONE;
}

/* Of two threads whose descriptors are less than 256 GiB apart, not the same. */
INSIDE static uint32_t runner_of(struct worker *worker) {
    return (uint32_t)((uintptr_t)unit_identity(worker) / _Alignof(struct thrum_unit));
}

/* The caller must run it if *mine. ETIMEDOUT: another thread did until then. */
static int run_or_wait(struct queue *queue, uint64_t deadline, bool *mine) {
    struct worker *worker = enter();
    uint32_t word = word_lock(&queue->word);
    bool in_time = true;
    *mine = word == 0;
    if (MISUSE_IS_WATCHED && *mine)
        queue->spare = runner_of(worker);
    else if (MISUSE_IS_WATCHED && word != ONCE_DONE && deadline == TIMER_NEVER &&
             queue->spare == runner_of(worker))
        misuse_end("thrum_once_call: the caller runs the function of this object already");
    if (word == ONCE_DONE || *mine)
        word_unlock(&queue->word, *mine ? ONCE_RUNNING : word);
    else if (deadline == 0) {
        word_unlock(&queue->word, word);
        in_time = false;
    } else
        in_time = queue_wait(worker, queue, AWAITS_ONCE, word, cancel_point_of_lock(worker, deadline));
    leave();
    return cancel_act_of_lock(in_time ? 0 : ETIMEDOUT);
}

static __attribute__((noinline)) int call_or_wait(struct once *once, void (*fn)(void *), void *arg,
                                                  uint64_t deadline) {
    int error = 0;
    while (error == 0 && !event_is_set(&once->event)) {
        bool mine;
        error = run_or_wait(&once->event.queue, deadline, &mine);
        if (mine) {
            run(&once->event.queue, fn, arg);
            break;
        }
    }
    return error;
}

int thrum_once_call_until(thrum_once_t *object, void (*fn)(void *), void *arg, uint64_t deadline) {
    if (is_null(object) || is_null(fn))
        return EINVAL;
    struct once *once = (struct once *)(void *)object;
    return event_is_set(&once->event) ? 0 : call_or_wait(once, fn, arg, deadline);
}

void thrum_once_call(thrum_once_t *object, void (*fn)(void *), void *arg) {
    if (is_null(object) || is_null(fn))
        misuse_null(__func__);
    thrum_once_call_until(object, fn, arg, TIMER_NEVER);
}

int thrum_once_try_call(thrum_once_t *once, void (*fn)(void *), void *arg) {
    if (is_null(once) || is_null(fn))
        return EINVAL;
    return thrum_once_call_until(once, fn, arg, 0) == 0 ? 0 : EBUSY;
}
