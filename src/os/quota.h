// SPDX-License-Identifier: Apache-2.0
/* How many CPUs' time the control group may use: a container that is given 1.5 CPUs of a machine with 64 has no use
 * for 64 workers. */
#ifndef THRUM_OS_QUOTA_H
#define THRUM_OS_QUOTA_H

#include <stdint.h>

/* The smallest quota of the process's group and those above it, rounded up to whole CPUs; UINT32_MAX: none. Group
 * files of version 2 (cpu.max) and 1 (cpu.cfs_quota_us). */
uint32_t quota_cpus(void);

/* For tests: the same from what /proc/self/cgroup would say, below another root than /sys/fs/cgroup. */
uint32_t quota_cpus_from(const char *groups, const char *root);

#endif
