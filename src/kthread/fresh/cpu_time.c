// SPDX-License-Identifier: Apache-2.0
/* A new thread's CPU-time clock and resource usage start at 0. The kernel's go on with the kernel thread, so
 * what earlier jobs used is remembered, and the front end subtracts it. Row cputime. */
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "base/rows.h"
#include "kthread/fresh/fresh.h"
#include "os/clock.h"

void cpu_time_begin(struct fresh_state *state) {
    if (skipped(ROW_CPUTIME))
        return;
    sys(SYS_getrusage, RUSAGE_THREAD, &state->usage_base);
    state->cpu_base_ns = clock_thread_cpu_ns();
}

static void subtract_time(struct timeval *time, const struct timeval *base) {
    if (timercmp(time, base, <))
        timerclear(time); /* the kernel's division into user and system time is scaled and may step */
    else
        timersub(time, base, time);
}

void cpu_time_adjust_usage(const struct fresh_state *state, struct rusage *usage) {
    const struct rusage *base = &state->usage_base;
    subtract_time(&usage->ru_utime, &base->ru_utime);
    subtract_time(&usage->ru_stime, &base->ru_stime);
    usage->ru_minflt -= base->ru_minflt;
    usage->ru_majflt -= base->ru_majflt;
    usage->ru_inblock -= base->ru_inblock;
    usage->ru_oublock -= base->ru_oublock;
    usage->ru_nvcsw -= base->ru_nvcsw;
    usage->ru_nivcsw -= base->ru_nivcsw;
}
