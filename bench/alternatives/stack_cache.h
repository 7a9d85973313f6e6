// SPDX-License-Identifier: Apache-2.0
/* Fresh kernel threads on cached stacks: libc's pthread_create is given a stack of ours, so that mapping, protecting,
 * faulting in and unmapping it is saved. libc has such a cache itself, 40 MB of it, that is five default stacks; this
 * one keeps as many as THRUM_CACHE_MAX_IDLE says, without it as many as were ever in use at once.
 *
 * Stacks are carved from *arenas*, mappings that stay (unless address space becomes limited); so a handle, which libc
 * lays at the top of the thread's stack, tells the block that it is in by its address alone, also after the thread is
 * gone. A block:
 *
 *   from       to         made by                                     when
 *   BLANK      USED       creator                                     no access yet, its pages never touched
 *   FREE       USED       creator
 *   USED       FREE       joiner                                      libc's join has returned 0
 *   (creator)  ADRIFT     creator of a detached thread                before it starts
 *   USED       ADRIFT     pthread_detach                              libc's detach has returned 0
 *   ADRIFT     FREE       a creator that finds no free one (sweep)    the kernel no longer knows the thread's tid
 *   ADRIFT     FREE       joiner                                      it had been waiting when the thread was detached
 *   any free   BLANK      cull, or a thread that frees too many       the memory goes back to the kernel
 *
 * All under one lock, taken with the signals blocked. `use` counts the block's threads: a joiner or detacher notes it
 * before libc is asked, since afterwards the block may be another thread's (only in a program that is wrong already).
 *
 * Why a block is free when we say so: libc's join waits for the word that the kernel clears when the thread lets go of
 * the address space; nothing of a thread touches its stack after that. A detached thread's end is not reported. But a
 * tid that tgkill does not find (ESRCH) has been released, and that comes after letting go of the address space; if
 * the number has been given to another thread meanwhile, the block merely waits longer. The thread notes its tid at
 * its start.
 *
 * What differs from a stack of libc's: pthread_getattr_np knows nothing of its guard (stack_cache_attributes
 * does); libc makes a user's stacks not executable when a module needs that (where the program needs it from the
 * start, this mode stands aside; a module that asks for it later, by dlopen, is not seen); a join or detach that does
 * not come through the interposed functions loses the block for good. In a fork's child all blocks stay as they are,
 * forgotten; new ones come from new arenas. */
#ifndef THRUM_ALTERNATIVES_STACK_CACHE_H
#define THRUM_ALTERNATIVES_STACK_CACHE_H

#include "mode.h"

/* As alternative.h says of `start`. */
bool stack_cache_start(const struct kthread_kind *kind, bool detached, void *(*fn)(void *), void *arg,
                       pthread_t *handle);

/* The stack behind a handle, for after a join or detach. `block` is NULL if the stack is not of ours; the handle must
 * be valid. The other two do nothing then. */
struct stack_held {
    struct stack_block *block;
    uint64_t use;
};
struct stack_held stack_cache_hold(pthread_t handle);
void stack_cache_joined(struct stack_held held);   /* libc's join has returned 0 */
void stack_cache_detached(struct stack_held held); /* libc's detach has returned 0 */

/* What pthread_getattr_np says of a thread on a stack of ours, as if libc had allocated it. */
void stack_cache_attributes(pthread_t handle, pthread_attr_t *attributes);

/* Gives the memory of all free stacks back. How many they were. */
unsigned stack_cache_cull(void);

void stack_cache_fork_child(void);

/* For tests: blocks of a kind that are free, and those that were ever made. */
unsigned stack_cache_free(const struct kthread_kind *kind);
unsigned stack_cache_made(const struct kthread_kind *kind);

#endif
