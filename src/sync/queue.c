// SPDX-License-Identifier: Apache-2.0
/* See queue.h. */
#include "sync/queue.h"

void queue_leave(struct queue *queue, struct waiter *waiter) {
    uint32_t word;
    if (!waiter_return(waiter, &queue->word, &word))
        return;
    waiters_remove(&queue->waiters, waiter);
    word_unlock(&queue->word, queue_word(queue, word));
}

bool queue_wait(struct worker *worker, struct queue *queue, enum awaits kind, uint32_t word,
                uint64_t deadline) {
    struct wait wait = {.unit = unit_self(worker)};
    struct waiter waiter = waiter_make(&wait, deadline != TIMER_NEVER);
    waiter_await(wait.unit, kind, queue, deadline);
    waiters_add(&queue->waiters, &waiter);
    word_unlock(&queue->word, word | WORD_WAITERS);
    if (waiter_block(worker, &wait, deadline))
        return true;
    queue_leave(queue, &waiter);
    return false;
}
