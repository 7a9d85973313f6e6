// SPDX-License-Identifier: Apache-2.0
/* Is memory short? The kernel's pressure stall information: time in which a task had to wait for memory, in the
 * process's control group if that is known, else in the whole system.
 *
 * Asked from time to time, by one thread at a time. Where the kernel grants a trigger (to all users since Linux 6.5,
 * with a window of whole multiples of two seconds), it says whether there was such a time since the last question,
 * however short ago; else the totals are read and compared. */
#ifndef THRUM_OS_PRESSURE_H
#define THRUM_OS_PRESSURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Once, while no other thread can notice that a file is opened. */
void pressure_open(void);

/* True if since the last call tasks waited for memory for a tenth of the time or more. The first call says no.
 * `now_ns` is the monotonic clock. False where the kernel does not tell. */
bool pressure_rose(uint64_t now_ns);

/* In a fork's child. */
void pressure_fork_child(void);

/* From the text of a pressure file: microseconds in which some task waited; 0 if it does not say. */
uint64_t pressure_total_us(const char *text);

/* From the text of /proc/self/cgroup: the pressure file of the group of version 2 (a line "0::/path"). False if there is
 * none, or it is the root, which has the system's numbers; or if the path is longer than `size`. */
bool pressure_group_file(const char *groups, char *path, size_t size);

/* Before pressure_open: another file than the system's, without a trigger; for tests. */
void pressure_use_file(const char *path);

#endif
