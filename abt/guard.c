// SPDX-License-Identifier: Apache-2.0
/* The guard that ABT_STACK_OVERFLOW_CHECK asks for: the lowest whole page of the stack that a thread is told can be read, but
 * not written. Called by run.c, only where the variable asks for it.
 *
 * libthrum's own guard lies below the whole stack. It can be neither read nor opened by mprotect, and a stack of the program's has
 * none. A thread that asked for less than it was given meets it late.
 *
 * The thread sets it on its own stack before its function runs, since its stack comes with its first run. It is cleared before
 * the stack is used again: by the thread itself, or, if it left from within its function, by its host. */
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include "layer.h"

/* What the environment says, in either case. A word that is not known is as if it were not there. */
enum abt_guard_mode abt_guard_mode_of(const char *text) {
    if (text == NULL)
        return ABT_GUARD_NONE;
    if (strcasecmp(text, "mprotect_strict") == 0)
        return ABT_GUARD_STRICT;
    return strcasecmp(text, "mprotect") == 0 ? ABT_GUARD_LENIENT : ABT_GUARD_NONE;
}

/* NULL: the stack is too small, or is none of this thread's own. */
static void *page_of(const struct abt_thread *thread, size_t page) {
    void *low;
    size_t size;
    abt_thread_stack(thread, &low, &size);
    if (low == NULL || size < 4 * page)
        return NULL;
    return (void *)(((uintptr_t)low + page - 1) & ~(uintptr_t)(page - 1));
}

static bool protect(const struct abt_thread *thread, int protection) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *guard = page_of(thread, page);
    return guard != NULL && mprotect(guard, page, protection) == 0;
}

/* Each guard splits a mapping, and the kernel limits their number (vm.max_map_count). */
void abt_guard_set(struct abt_thread *thread) {
    if (thread->kind != ABT_KIND_THREAD || page_of(thread, (size_t)sysconf(_SC_PAGESIZE)) == NULL)
        return;
    bool is_set = protect(thread, PROT_READ);
    while (!is_set && abt.guard == ABT_GUARD_STRICT) { /* until others have ended */
        abt_leave(ABT_LEFT_YIELDING, ABT_POOL_CONTEXT_OP_THREAD_YIELD, NULL);
        is_set = protect(thread, PROT_READ);
    }
    if (is_set)
        fetch_or_relaxed(&thread->flags, (uint32_t)ABT_FLAG_GUARDED);
}

void abt_guard_clear(struct abt_thread *thread) {
    protect(thread, PROT_READ | PROT_WRITE);
    fetch_and_relaxed(&thread->flags, ~(uint32_t)ABT_FLAG_GUARDED);
}
