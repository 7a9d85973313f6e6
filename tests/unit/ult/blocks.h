/* SPDX-License-Identifier: Apache-2.0 */
/* preempt/blocks.h, for tests in C++. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A tool rules preemption out. */
bool blocks_are_not_for_tools(void);
/* NULL: they are usable; else why not. */
const char *blocks_why_not(void);
void *blocks_get(void);
void blocks_put(void *block);
uintptr_t blocks_base(void *block);
uintptr_t blocks_thread_pointer(void *block);
void blocks_forget(void);
size_t blocks_bytes(void);
/* That no thread and no worker has. */
unsigned blocks_spare(void);
/* The key whose value a block has while units may run on it (sched/exit.h). */
unsigned blocks_watch_key(void);

#ifdef __cplusplus
}
#endif
