// SPDX-License-Identifier: Apache-2.0
/* Which CPUs a worker may use. All that the process may, unless THRUM_BIND says otherwise:
 *
 *   none  nothing is bound: the kernel places workers, and moves them away from what else runs
 *   node  each worker to the CPUs of one NUMA node
 *   cpu   each to one CPU
 *
 * Worker i of n has its place at CPU i * m / n of the m that the thread which starts the runtime may use, in order of
 * nodes: few workers are spread over all nodes, and as many as CPUs have one each. Numbers from n on, of workers that
 * are added later, go round again. */
#ifndef THRUM_RUNTIME_PLACES_H
#define THRUM_RUNTIME_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/inside.h"

/* What the environment says. 0, or EINVAL after a line about it. */
int places_configure(void);

/* By the starter of a runtime of so many workers. */
void places_start(uint32_t workers);

/* A worker has CPUs of its own. */
bool places_are_bound(void);

/* The caller's kernel thread is this worker from now on; is none any more, and has the CPUs back that it had. */
SIGSAFE void places_enter(uint32_t worker);
void places_leave(void);

/* The caller's kernel thread was made by a worker, but may run wherever the process may. */
void places_roam(void);

#endif
