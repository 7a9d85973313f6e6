// SPDX-License-Identifier: Apache-2.0
/* See alarm.h. */
#include "os/alarm.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include "os/syscall.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static struct timespec spec(uint64_t ns) {
    return (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
}

int alarm_make(struct alarm *alarm, int32_t tid, int signal) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = signal};
    event.sigev_notify_thread_id = tid;
    int error = (int)-sys(SYS_timer_create, CLOCK_MONOTONIC, &event, &alarm->id);
    if (error != 0)
        alarm->id = ALARM_NONE;
    return error;
}

void alarm_delete(const struct alarm *alarm) {
    if (alarm->id != ALARM_NONE)
        sys(SYS_timer_delete, alarm->id);
}

/* Only what says that it is a timer's is thrown away by the kernel (flush_itimer_signals). */
int alarm_ring(int32_t tid, int signal) {
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = signal;
    info.si_code = SI_TIMER;
    info.si_timerid = ALARM_NONE;
    return (int)-sys(SYS_rt_tgsigqueueinfo, sys(SYS_getpid), tid, signal, &info);
}

void alarm_set(const struct alarm *alarm, uint64_t first, uint64_t period) {
    if (alarm->id == ALARM_NONE)
        return;
    struct itimerspec times = {.it_value = spec(first), .it_interval = spec(period)};
    sys(SYS_timer_settime, alarm->id, TIMER_ABSTIME, &times, NULL);
}
