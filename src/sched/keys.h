// SPDX-License-Identifier: Apache-2.0
/* Values that each thread has of its own: what the rest of the runtime does about them. */
#ifndef THRUM_SCHED_KEYS_H
#define THRUM_SCHED_KEYS_H

#include "base/inside.h"
#include "sched/unit.h"

/* A unit that has values ends: runs the destructors, on its own stack, outside. */
void keys_destroy(struct thrum_unit *unit);

/* The runtime stops: all blocks are given back. Keys stay. */
void keys_fini(void);

void keys_fork_child(void);

#endif
