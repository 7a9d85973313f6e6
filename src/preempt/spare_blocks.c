// SPDX-License-Identifier: Apache-2.0
/* Spares that are blocks without kernel threads (spares.h, blocks.h). They cost memory alone: none is retired, and no limit
 * of the system's is asked for. */
#include <stddef.h>

#include "base/container_of.h"
#include "preempt/blocks.h"
#include "preempt/preempt.h"
#include "preempt/spares.h"

static struct block *block_of(struct tcb *tcb) {
    return container_of(tcb, struct block, tcb);
}

static struct tcb *make(void) {
    struct block *block = block_make(preempt.exceptions_here);
    return block != NULL ? &block->tcb : NULL;
}

static struct own_block *make_own(void) {
    struct block *block = block_make(preempt.exceptions_here);
    if (block == NULL)
        return NULL;
    block->own.tcb = block->tcb.next = &block->tcb;
    return &block->own;
}

static struct own_block *renew_own(struct tcb *tcb) {
    block_renew(block_of(tcb));
    return &block_of(tcb)->own;
}

static void end_own(struct tcb *tcb) {
    block_keep(block_of(tcb));
}

/* Those of units that are lost stay so. */
static void stop(struct tcb *first) {
    for (struct tcb *tcb = first, *next; tcb != NULL; tcb = next) {
        next = tcb->next;
        block_renew_elsewhere(block_of(tcb));
        block_keep(block_of(tcb));
    }
}

const struct spare_kind spare_blocks = {
    .make = make,
    .make_own = make_own,
    .renew_own = renew_own,
    .end_own = end_own,
    .stop = stop,
    .fork_child = blocks_fork_child,
};
