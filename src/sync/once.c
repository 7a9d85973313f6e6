// SPDX-License-Identifier: Apache-2.0
/* Once: the first caller runs the function, the others wait for its end.
 *
 * word: ONCE_DONE (as EVENT_SET), ONCE_RUNNING, WORD_WAITERS, WORD_SPIN.
 *   0 -> RUNNING     the caller that runs it, under SPIN
 *   RUNNING -> DONE  the same, when it has returned
 *   RUNNING -> 0     the same, when it was left by an exception or the thread's end: one of those who wait, which are
 *                    all woken, tries again */
#include "sync/event.h"

enum { ONCE_DONE = EVENT_SET, ONCE_RUNNING = 8 };

struct once {
    struct event event;
};

_Static_assert(sizeof(struct once) <= sizeof(thrum_once_t), "thrum/sync.h leaves room for it");

/* On the runner's stack while the function runs. */
struct attempt {
    struct queue *queue;
    uint32_t outcome; /* what the word is to become */
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

/* True: the caller is to run it. */
static bool run_or_wait(struct queue *queue) {
    struct worker *worker = enter();
    uint32_t word = word_lock(&queue->word);
    bool mine = word == 0;
    if (word == ONCE_DONE || mine)
        word_unlock(&queue->word, mine ? ONCE_RUNNING : word);
    else
        queue_wait(worker, queue, AWAITS_ONCE, word, TIMER_NEVER);
    leave();
    return mine;
}

static __attribute__((noinline)) void call_or_wait(struct once *once, void (*fn)(void *), void *arg) {
    while (!event_is_set(&once->event)) {
        if (run_or_wait(&once->event.queue)) {
            run(&once->event.queue, fn, arg);
            return;
        }
    }
}

void thrum_once_call(thrum_once_t *object, void (*fn)(void *), void *arg) {
    struct once *once = (struct once *)(void *)object;
    if (!event_is_set(&once->event))
        call_or_wait(once, fn, arg);
}
