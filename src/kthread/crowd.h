// SPDX-License-Identifier: Apache-2.0
/* Do others take so much of the CPUs that yielding does not pay?
 *
 * A yield gives the CPU to all that wait for it. If these are the process's own threads that is good: each does a
 * piece of work and yields in turn, and a yield costs half of what sleeping in the kernel does. But others run a
 * whole time slice, and where many of them want the CPU a yield gives most of it away; a woken sleeper gets its fair
 * share. The two cannot be told apart by how long a yield took. So each CPU has a note of when the process was last
 * seen on it. If the time between two such notes is as long as part of a time slice, another process took it. */
#ifndef THRUM_KTHREAD_CROWD_H
#define THRUM_KTHREAD_CROWD_H

#include <stdbool.h>
#include <stdint.h>

/* The process is on this CPU now (ticks). */
void crowd_seen(int cpu, uint64_t now);

/* Likewise, and since it was last seen here one of its threads was ready to run on this CPU, and on no other. */
void crowd_waited(int cpu, uint64_t now);

/* Yielding is too dear for all threads of the process. */
bool crowd_is_dense(uint64_t now);

/* What was seen before does not count. */
void crowd_init(void);

#endif
