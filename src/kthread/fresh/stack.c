// SPDX-License-Identifier: Apache-2.0
/* The stack between two jobs. Row stack.
 *
 * libc hands a dying thread's used stack pages back to the kernel; an idle thread must not hold on to them
 * either, or a program in a memory-limited cgroup would be worse off. The topmost KEEP bytes stay: nearly every
 * job uses them, and fetching them again costs more than the whole hand-over. Whether anything below was
 * touched is asked with mincore, which costs less than giving back what was never taken, but by the page: of a
 * whole 8 MiB stack more than all the rest of a reuse. So only the next MiB is looked at (a deep stack begins
 * there), the rest, which only a huge frame reaches without it, every WHOLE_EVERY times, and after a series of
 * jobs that were too brief to touch much it is done once for all of them (kthread.c, clean_up). */
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/rows.h"
#include "kthread/fresh/fresh.h"

enum { KEEP = 64 * 1024, NEXT = 1024 * 1024, WHOLE_EVERY = 32, PROBE_PAGES = 256 };

static char *align_down(char *address, uintptr_t to) {
    return address - ((uintptr_t)address & (to - 1));
}

static size_t above_handle; /* upper bound of what libc has between a handle and its stack's top */

/* A thread's handle stands in its stack block, at most the static thread-locals and libc's own descriptor
 * below the top. */
void stack_init(size_t static_tls_size) {
    above_handle = static_tls_size + 4 * (size_t)sysconf(_SC_PAGESIZE);
}

size_t stack_least(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (2 * above_handle + page - 1) & ~(page - 1);
}

void stack_measure(struct fresh_state *state) {
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &low, &size) == 0)
        state->stack_low = low;
    pthread_attr_destroy(&attributes);
}

/* An address that is surely in the stack, at most a few pages above its lowest one. pthread_getattr_np would
 * know better, but calls malloc, which may start an arena in a thread that has no use for one. */
static char *stack_low(struct fresh_state *state, size_t stack_size) {
    if (state->stack_low == NULL && stack_size > 2 * above_handle)
        state->stack_low = (char *)pthread_self() - stack_size + above_handle;
    return state->stack_low;
}

/* True if a page of [low, high) is in memory, or if that cannot be told. */
static bool any_resident(char *low, char *high) {
    unsigned char pages[PROBE_PAGES];
    long page = sysconf(_SC_PAGESIZE);
    for (char *at = low; at < high;) {
        size_t length = (size_t)(high - at);
        if (length > (size_t)PROBE_PAGES * (size_t)page)
            length = (size_t)PROBE_PAGES * (size_t)page;
        if (sys(SYS_mincore, at, length, pages) != 0)
            return true;
        if (memchr(pages, 1, (length + (size_t)page - 1) / (size_t)page) != NULL)
            return true;
        at += length;
    }
    return false;
}

void stack_give_back(struct fresh_state *state, size_t stack_size) {
    char *low = stack_low(state, stack_size);
    if (low == NULL || skipped(ROW_STACK))
        return;
    char *high = align_down((char *)__builtin_frame_address(0), KEEP) - KEEP;
    low += sysconf(_SC_PAGESIZE) - 1;
    low = align_down(low, (uintptr_t)sysconf(_SC_PAGESIZE));
    if (low >= high)
        return;
    bool whole = state->jobs++ % WHOLE_EVERY == WHOLE_EVERY - 1 || high - low <= NEXT;
    if (any_resident(whole ? low : high - NEXT, high))
        sys(SYS_madvise, low, high - low, MADV_DONTNEED);
}

__attribute__((noinline)) void stack_trim(struct fresh_state *state, size_t stack_size) {
    char *low = stack_low(state, stack_size);
    if (low == NULL || skipped(ROW_STACK))
        return;
    long page = sysconf(_SC_PAGESIZE);
    char *frame = __builtin_frame_address(0);
    char *high = align_down(frame, (uintptr_t)page) - page; /* one more: for this frame's own calls */
    low = align_down(low + page - 1, (uintptr_t)page);
    if (low < high)
        sys(SYS_madvise, low, high - low, MADV_DONTNEED);
}

/* Whole pages go back to the kernel; the rest of the page that this frame stands in is overwritten up to the stack
 * pointer, which is where alloca's block begins (a function that uses it has no red zone). What lies higher, this
 * frame and its callers', is where run_job's frame was: the program's began below it. Not instrumented, for
 * AddressSanitizer would put a red zone around the block and report the writing below it, which is meant. */
__attribute__((noinline, no_sanitize("address"))) void stack_wipe(struct fresh_state *state,
                                                                  size_t stack_size) {
    char *low = stack_low(state, stack_size);
    if (low == NULL || skipped(ROW_STACK))
        return;
    long page = sysconf(_SC_PAGESIZE);
    char *frame = __builtin_alloca(16);
    char *whole = align_down(frame, (uintptr_t)page);
    low = align_down(low + page - 1, (uintptr_t)page);
    for (volatile char *at = whole; at < (volatile char *)frame; at++)
        *at = 0;
    if (low < whole)
        sys(SYS_madvise, low, whole - low, MADV_DONTNEED);
}
