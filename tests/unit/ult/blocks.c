/* SPDX-License-Identifier: Apache-2.0 */
#include "blocks.h"

#include "context/annotate.h"
#include "preempt/blocks.h"
#include "preempt/preempt.h"
#include "sched/exit.h"

bool blocks_are_not_for_tools(void) {
    return annotate_holds_signals;
}

const char *blocks_why_not(void) {
    const char *why;
#ifdef __SANITIZE_THREAD__
    return "TSan takes what ends without its block for a race; a runtime asks for none then";
#endif
    enum blocks_answer answer = blocks_learn(NULL, &why);
    return answer == BLOCKS_USABLE ? NULL : answer == BLOCKS_NOT_NOW ? "not now" : why;
}

void *blocks_get(void) {
    return block_make(NULL);
}

void blocks_put(void *block) {
    block_keep(block);
}

uintptr_t blocks_base(void *block) {
    return ((struct block *)block)->record;
}

uintptr_t blocks_thread_pointer(void *block) {
    return ((struct block *)block)->tcb.base;
}

size_t blocks_bytes(void) {
    return blocks_mapped();
}

unsigned blocks_spare(void) {
    return __atomic_load_n(&preempt_counts.spare, __ATOMIC_RELAXED);
}

unsigned blocks_watch_key(void) {
    return exit_watch_key;
}

void blocks_forget(void) {
    blocks_fork_child();
}
