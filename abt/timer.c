// SPDX-License-Identifier: Apache-2.0
/* Time, and the names of errors. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "layer.h"

struct timer_of_abt {
    double start, end;
};

static struct timer_of_abt *timer_of(ABT_timer timer) {
    return (struct timer_of_abt *)(void *)timer;
}

ABT_EXPORT double ABT_get_wtime(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

ABT_EXPORT int ABT_timer_create(ABT_timer *newtimer) {
    struct timer_of_abt *timer = calloc(1, sizeof *timer);
    *newtimer = ABT_TIMER_NULL;
    ABT_CHECK(timer != NULL, ABT_ERR_MEM);
    *newtimer = (ABT_timer)(void *)timer;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_timer_dup(ABT_timer timer, ABT_timer *newtimer) {
    *newtimer = ABT_TIMER_NULL;
    ABT_CHECK_HANDLE(timer, ABT_ERR_INV_TIMER);
    int error = ABT_timer_create(newtimer);
    if (error == ABT_SUCCESS)
        *timer_of(*newtimer) = *timer_of(timer);
    return error;
}

ABT_EXPORT int ABT_timer_free(ABT_timer *timer) {
    ABT_CHECK_HANDLE(*timer, ABT_ERR_INV_TIMER);
    free(*timer);
    *timer = ABT_TIMER_NULL;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_timer_start(ABT_timer timer) {
    ABT_CHECK_HANDLE(timer, ABT_ERR_INV_TIMER);
    timer_of(timer)->start = ABT_get_wtime();
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_timer_stop(ABT_timer timer) {
    ABT_CHECK_HANDLE(timer, ABT_ERR_INV_TIMER);
    timer_of(timer)->end = ABT_get_wtime();
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_timer_read(ABT_timer timer, double *secs) {
    ABT_CHECK_HANDLE(timer, ABT_ERR_INV_TIMER);
    *secs = timer_of(timer)->end - timer_of(timer)->start;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_timer_stop_and_read(ABT_timer timer, double *secs) {
    int error = ABT_timer_stop(timer);
    return error != ABT_SUCCESS ? error : ABT_timer_read(timer, secs);
}

ABT_EXPORT int ABT_timer_stop_and_add(ABT_timer timer, double *secs) {
    double passed;
    int error = ABT_timer_stop_and_read(timer, &passed);
    if (error == ABT_SUCCESS)
        *secs += passed;
    return error;
}

/* How long a start and a stop take. */
ABT_EXPORT int ABT_timer_get_overhead(double *overhead) {
    enum { ROUNDS = 1000 };
    struct timer_of_abt timer;
    double sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        timer.start = ABT_get_wtime();
        timer.end = ABT_get_wtime();
        sum += timer.end - timer.start;
    }
    *overhead = sum / ROUNDS;
    return ABT_SUCCESS;
}

/* --- errors -------------------------------------------------------------------------------------------- */

#define NAME(error) [error] = #error
static const char *const names[] = {
    NAME(ABT_SUCCESS),
    NAME(ABT_ERR_UNINITIALIZED),
    NAME(ABT_ERR_MEM),
    NAME(ABT_ERR_OTHER),
    NAME(ABT_ERR_INV_XSTREAM),
    NAME(ABT_ERR_INV_XSTREAM_RANK),
    NAME(ABT_ERR_INV_XSTREAM_BARRIER),
    NAME(ABT_ERR_INV_SCHED),
    NAME(ABT_ERR_INV_SCHED_KIND),
    NAME(ABT_ERR_INV_SCHED_PREDEF),
    NAME(ABT_ERR_INV_SCHED_TYPE),
    NAME(ABT_ERR_INV_SCHED_CONFIG),
    NAME(ABT_ERR_INV_POOL),
    NAME(ABT_ERR_INV_POOL_KIND),
    NAME(ABT_ERR_INV_POOL_ACCESS),
    NAME(ABT_ERR_INV_UNIT),
    NAME(ABT_ERR_INV_THREAD),
    NAME(ABT_ERR_INV_THREAD_ATTR),
    NAME(ABT_ERR_INV_TASK),
    NAME(ABT_ERR_INV_KEY),
    NAME(ABT_ERR_INV_MUTEX),
    NAME(ABT_ERR_INV_MUTEX_ATTR),
    NAME(ABT_ERR_INV_COND),
    NAME(ABT_ERR_INV_RWLOCK),
    NAME(ABT_ERR_INV_EVENTUAL),
    NAME(ABT_ERR_INV_FUTURE),
    NAME(ABT_ERR_INV_BARRIER),
    NAME(ABT_ERR_INV_TIMER),
    NAME(ABT_ERR_INV_QUERY_KIND),
    NAME(ABT_ERR_XSTREAM),
    NAME(ABT_ERR_XSTREAM_STATE),
    NAME(ABT_ERR_XSTREAM_BARRIER),
    NAME(ABT_ERR_SCHED),
    NAME(ABT_ERR_SCHED_CONFIG),
    NAME(ABT_ERR_POOL),
    NAME(ABT_ERR_UNIT),
    NAME(ABT_ERR_THREAD),
    NAME(ABT_ERR_TASK),
    NAME(ABT_ERR_KEY),
    NAME(ABT_ERR_MUTEX),
    NAME(ABT_ERR_MUTEX_LOCKED),
    NAME(ABT_ERR_COND),
    NAME(ABT_ERR_COND_TIMEDOUT),
    NAME(ABT_ERR_RWLOCK),
    NAME(ABT_ERR_EVENTUAL),
    NAME(ABT_ERR_FUTURE),
    NAME(ABT_ERR_BARRIER),
    NAME(ABT_ERR_TIMER),
    NAME(ABT_ERR_MIGRATION_TARGET),
    NAME(ABT_ERR_MIGRATION_NA),
    NAME(ABT_ERR_MISSING_JOIN),
    NAME(ABT_ERR_FEATURE_NA),
    NAME(ABT_ERR_INV_TOOL_CONTEXT),
    NAME(ABT_ERR_INV_ARG),
    NAME(ABT_ERR_SYS),
    NAME(ABT_ERR_CPUID),
    NAME(ABT_ERR_INV_POOL_CONFIG),
    NAME(ABT_ERR_INV_POOL_USER_DEF),
};

/* *len is without the zero byte at the end. */
ABT_EXPORT int ABT_error_get_str(int err, char *str, size_t *len) {
    ABT_CHECK(err >= 0 && (size_t)err < sizeof names / sizeof names[0], ABT_ERR_OTHER);
    if (str != NULL)
        strcpy(str, names[err]);
    if (len != NULL)
        *len = strlen(names[err]);
    return ABT_SUCCESS;
}
