// SPDX-License-Identifier: Apache-2.0
/* libc's functions that join, detach and describe a thread, with what the cache of stacks must do before and after them.
 * The front end calls these in their place (`behind` of kthread/alternative.h). */
#ifndef THRUM_ALTERNATIVES_BEHIND_H
#define THRUM_ALTERNATIVES_BEHIND_H

/* A function of ours for libc's function of this name, which is `found`, or `found` itself. */
void *behind(const char *name, void *found);

#endif
