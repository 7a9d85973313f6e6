// SPDX-License-Identifier: Apache-2.0
/* See fifo.h. */
#include "sched/pool/fifo.h"

void fifo_push(struct fifo *fifo, struct thrum_unit *unit) {
    unit->next = NULL;
    lock_acquire(&fifo->lock);
    if (fifo->first == NULL)
        fifo->first = unit;
    else
        fifo->last->next = unit;
    fifo->last = unit;
    store_relaxed(&fifo->count, fifo->count + 1);
    lock_release(&fifo->lock);
}

void fifo_push_front(struct fifo *fifo, struct thrum_unit *unit) {
    lock_acquire(&fifo->lock);
    unit->next = fifo->first;
    if (fifo->first == NULL)
        fifo->last = unit;
    fifo->first = unit;
    store_relaxed(&fifo->count, fifo->count + 1);
    lock_release(&fifo->lock);
}

struct thrum_unit *fifo_pop(struct fifo *fifo) {
    if (fifo_is_empty(fifo))
        return NULL;
    lock_acquire(&fifo->lock);
    struct thrum_unit *unit = fifo->first;
    if (unit != NULL) {
        fifo->first = unit->next;
        store_relaxed(&fifo->count, fifo->count - 1);
    }
    lock_release(&fifo->lock);
    return unit;
}
