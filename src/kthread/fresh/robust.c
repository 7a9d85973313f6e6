// SPDX-License-Identifier: Apache-2.0
/* Robust mutexes: when a thread dies with one held, the kernel walks the thread's robust list and tells the
 * next locker (EOWNERDEAD). Only a real exit does that, so a thread that holds one retires. The same list holds
 * priority-inheriting mutexes that are robust. Row robust.
 *
 * libc registers a list per thread, and an empty one says it all. A program may have registered one of its own
 * through syscall(): that one is walked as the kernel would walk it, and if nothing in it is held, libc's is
 * registered again, as a new thread has it. */
#include <linux/futex.h>
#include <stddef.h>

#include "base/rows.h"
#include "kthread/fresh/fresh.h"
#include "os/memory.h"

enum { KERNELS_LIMIT = 2048 };

static bool held_by_caller(const struct robust_list *entry, long offset, uint32_t tid) {
    uint32_t word;
    const char *futex =
        (const char *)((uintptr_t)entry & ~(uintptr_t)1) + offset; /* bit 0 marks a PI futex */
    return entry != NULL && memory_copy(futex, &word, sizeof word) && (word & FUTEX_TID_MASK) == tid;
}

/* A list that runs in a circle beside its head, as a copied head's does, is left after one round (Brent's
 * algorithm): the kernel would go round until its limit, over the same entries. */
static bool walk(const struct robust_list_head *head) {
    struct robust_list_head copy;
    uint32_t tid = (uint32_t)sys(SYS_gettid);
    if (!memory_copy(head, &copy, sizeof copy))
        return false;
    if (held_by_caller(copy.list_op_pending, copy.futex_offset, tid))
        return true;
    struct robust_list *entry = copy.list.next, *passed = NULL;
    for (unsigned i = 0; i < KERNELS_LIMIT && entry != &head->list && entry != passed; i++) {
        if (held_by_caller(entry, copy.futex_offset, tid))
            return true;
        if ((i & (i + 1)) == 0)
            passed = entry;
        if (!memory_copy((void *)((uintptr_t)entry & ~(uintptr_t)1), &entry, sizeof(void *)))
            return false;
    }
    return false;
}

static struct robust_list_head *registered(void) {
    struct robust_list_head *head = NULL;
    size_t length = 0;
    return sys(SYS_get_robust_list, 0, &head, &length) == 0 ? head : NULL;
}

static bool simple_held(const struct robust_list_head *head) {
    return head->list.next != &head->list || head->list_op_pending != NULL;
}

/* Before a call that registers another list. */
void robust_list_changes(struct fresh_state *state) {
    if (state->robust_head == NULL)
        state->robust_head = registered();
    state->robust_replaced = true;
}

bool robust_held(struct fresh_state *state) {
    if (skipped(ROW_ROBUST))
        return false;
    if (state->robust_head == NULL && (state->robust_head = registered()) == NULL)
        return true; /* nothing is known */
    if (simple_held(state->robust_head))
        return true;
    if (!state->robust_replaced)
        return false;
    const struct robust_list_head *now = registered();
    if (now != NULL && now != state->robust_head && walk(now))
        return true;
    state->robust_replaced = false;
    return sys(SYS_set_robust_list, state->robust_head, sizeof(struct robust_list_head)) != 0;
}
