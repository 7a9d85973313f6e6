// SPDX-License-Identifier: Apache-2.0
/* A new thread's CPU-time clock and resource usage start at 0. The kernel's continue with the kernel thread, so
 * what earlier jobs used is remembered, and the front end subtracts it. Row cputime.
 *
 * To ask the kernel costs more than the rest of a quick reuse. Until a program reads such a clock for the first time, a
 * series of short jobs is therefore asked about once in CPU_TIME_UNASKED_US (kthread.c), and the time between then
 * and a thread's start is taken for CPU time. So the threads that run when the process reads such a clock for the first
 * time may read too little, by that much at most. */
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "base/atomic.h"
#include "base/rows.h"
#include "kthread/fresh/fresh.h"
#include "kthread/gate.h"
#include "os/clock.h"
#include "os/ticks.h"

static bool wanted; /* only becomes true */

void cpu_time_want(void) {
    if (!load_relaxed(&wanted))
        store_relaxed(&wanted, true);
}

bool cpu_time_wanted(void) {
    return load_relaxed(&wanted);
}

void cpu_time_end(struct fresh_state *state) {
    state->cpu_asked = false;
    store_relaxed(&state->cpu_base_pending, true);
}

void cpu_time_ask(struct fresh_state *state) {
    if (skipped(ROW_CPUTIME))
        return;
    state->cpu_asked = true;
    sys(SYS_getrusage, RUSAGE_THREAD, &state->usage_base);
    store_relaxed(&state->cpu_base_ns, clock_thread_cpu_ns());
    store_relaxed(&state->cpu_base_ticks, arch_ticks());
    store_relaxed(&state->cpu_start_ticks, load_relaxed(&state->cpu_base_ticks));
}

void cpu_time_begin(struct fresh_state *state) {
    if (!state->cpu_asked && !skipped(ROW_CPUTIME)) {
        uint64_t now = arch_ticks();
        if (now - load_relaxed(&state->cpu_base_ticks) < CPU_TIME_UNASKED_US * ticks_per_us())
            store_relaxed(&state->cpu_start_ticks, now);
        else /* it may have slept in between */
            cpu_time_ask(state);
    }
    store_release(&state->cpu_base_pending, false); /* pairs with cpu_time_base */
}

/* Between the last time that the kernel was asked and the present job's start. */
static uint64_t unasked_ns(const struct fresh_state *state) {
    uint64_t rate = ticks_per_us(), base = load_relaxed(&state->cpu_base_ticks);
    return base == 0 || rate == 0 ? 0 : (load_relaxed(&state->cpu_start_ticks) - base) * 1000 / rate;
}

uint64_t cpu_time_base(const struct fresh_state *state, const uint32_t *gate) {
    /* Pairs with cpu_time_begin. */
    while (gate != NULL && load_acquire(&state->cpu_base_pending) && (load_relaxed(gate) & GATE_STARTING))
        sched_yield();
    return load_relaxed(&state->cpu_base_ns) + unasked_ns(state);
}

static void subtract_time(struct timeval *time, const struct timeval *base) {
    if (timercmp(time, base, <))
        timerclear(time); /* the kernel's division into user and system time is scaled and may step */
    else
        timersub(time, base, time);
}

void cpu_time_adjust_usage(const struct fresh_state *state, struct rusage *usage) {
    const struct rusage *base = &state->usage_base;
    const suseconds_t unasked_us = (suseconds_t)(unasked_ns(state) / 1000);
    const struct timeval unasked = {unasked_us / 1000000, unasked_us % 1000000};
    subtract_time(&usage->ru_utime, &base->ru_utime);
    subtract_time(&usage->ru_utime, &unasked);
    subtract_time(&usage->ru_stime, &base->ru_stime);
    usage->ru_minflt -= base->ru_minflt;
    usage->ru_majflt -= base->ru_majflt;
    usage->ru_inblock -= base->ru_inblock;
    usage->ru_oublock -= base->ru_oublock;
    usage->ru_nvcsw -= base->ru_nvcsw;
    usage->ru_nivcsw -= base->ru_nivcsw;
}
