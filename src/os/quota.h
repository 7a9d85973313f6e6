// SPDX-License-Identifier: Apache-2.0
/* What the system grants the process.
 *
 * CPUs: how many CPUs' time the control group may use. A container that is given 1.5 CPUs of a machine with 64 has no
 * use for 64 workers.
 *
 * Kernel threads: how many the library may add so that a quarter of each limit stays free for the program. */
#ifndef THRUM_OS_QUOTA_H
#define THRUM_OS_QUOTA_H

#include <stdint.h>

/* The smallest quota of the process's group and those above it, rounded up to whole CPUs; UINT32_MAX: none. Group
 * files of version 2 (cpu.max) and 1 (cpu.cfs_quota_us). */
uint32_t quota_cpus(void);

/* The smallest of what is left of pids.max of the process's group and those above it, of the system's threads-max and
 * pid_max, and of RLIMIT_NPROC. 0: none should be added; UINT32_MAX: no limit is known. */
uint32_t quota_threads(void);

/* For tests: the same from what /proc/self/cgroup would say, below another root than /sys/fs/cgroup. */
uint32_t quota_cpus_from(const char *groups, const char *root);
uint32_t quota_threads_from(const char *groups, const char *root);

#endif
