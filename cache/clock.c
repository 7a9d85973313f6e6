// SPDX-License-Identifier: Apache-2.0
/* Thread CPU-time clocks and resource usage, counted from the logical thread's start. Row cputime; a timer on
 * such a clock also ties the thread (row kernel-ties). */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include "cache.h"
#include "os/clock.h"
#include "os/lock.h"

/* The kernel's encoding of a thread's CPU clock: ~tid << 3, bit 2 for "thread". */
bool clock_is_of_thread(clockid_t clock) {
    return clock == CLOCK_THREAD_CPUTIME_ID || (clock < 0 && (clock & 4) != 0 && (clock & 3) != 3);
}

pid_t clock_tid(clockid_t clock) {
    return clock == CLOCK_THREAD_CPUTIME_ID ? 0 : (pid_t) ~(clock >> 3);
}

/* What earlier jobs used of the thread that the clock belongs to; `reach` may be visiting it. */
static uint64_t base_of(clockid_t clock, const struct reach *reach) {
    struct kthread *thread = kthread_self_sigsafe();
    struct gate_visit visit;
    pid_t tid = clock_tid(clock);
    cpu_time_want();
    if (reach->thread != NULL)
        return cpu_time_base(&reach->thread->fresh, &reach->thread->gate);
    if (tid == 0 || (thread != NULL && tid == thread->tid))
        return thread == NULL ? 0 : cpu_time_base(&thread->fresh, NULL);
    enum kthread_tid found = kthread_visit_tid(tid, &visit, &thread);
    if (found == KTHREAD_TID_FOREIGN)
        return 0;
    uint64_t base = cpu_time_base(&thread->fresh, &thread->gate);
    if (found == KTHREAD_TID_VISITED)
        gate_visit_end(&visit);
    return base;
}

static void shift(struct timespec *time, int64_t by_ns) {
    int64_t ns = (int64_t)clock_ns(time) + by_ns;
    if (ns < 0)
        ns = 0;
    time->tv_sec = ns / 1000000000;
    time->tv_nsec = ns % 1000000000;
}

static int gettime_of_thread(clockid_t clock, struct timespec *time) {
    struct reach reach;
    clock = reach_begin_clock(&reach, clock);
    int answer = REAL(clock_gettime)(clock, time);
    if (answer == 0)
        shift(time, -(int64_t)base_of(clock, &reach));
    reach_end(&reach);
    return answer;
}

INTERPOSE int clock_gettime(clockid_t clock, struct timespec *time) {
    if (__builtin_expect(clock_is_of_thread(clock), 0))
        return gettime_of_thread(clock, time);
    return REAL(clock_gettime)(clock, time);
}

/* A sleep on another thread's clock depends on that thread's real end, so the thread retires. It is not visited while
 * the caller sleeps. */
INTERPOSE int clock_nanosleep(clockid_t clock, int flags, const struct timespec *request,
                              struct timespec *remaining) {
    struct timespec shifted;
    struct reach reach;
    if (__builtin_expect(clock_is_of_thread(clock), 0)) {
        clock = reach_begin_clock(&reach, clock);
        if (reach.thread != NULL)
            reach_tie(&reach);
        if ((flags & TIMER_ABSTIME) && process_can_read(request, sizeof *request)) {
            shifted = *request;
            shift(&shifted, (int64_t)base_of(clock, &reach));
            request = &shifted;
        }
        reach_end(&reach);
    }
    return REAL(clock_nanosleep)(clock, flags, request, remaining);
}

INTERPOSE int getrusage(__rusage_who_t whose, struct rusage *usage) {
    int answer = REAL(getrusage)(whose, usage);
    if (whose == RUSAGE_THREAD)
        cpu_time_want();
    struct kthread *self = kthread_self_sigsafe();
    if (answer == 0 && whose == RUSAGE_THREAD && self != NULL)
        cpu_time_adjust_usage(&self->fresh, usage);
    return answer;
}

/* --- timers on such clocks ---------------------------------------------------------------------------- */

/* An absolute expiry counts from the kernel thread's start, so the base must be known again when the timer is set.
 * Timers on thread clocks are rare: a short table, and a caller that overflows it is refused as if the system had no
 * timers left. */
enum { TIMERS = 256 };
static struct {
    uintptr_t id;
    uint64_t base;
    bool used, by_number; /* by_number: a number of the kernel's, which libc's may equal */
} timers[TIMERS];
static struct lock timers_lock;
static bool timers_used; /* any at all: timer_settime need not look while not */

/* A signal handler may call timer_settime, and must not find the lock held by the code that it interrupted. */
static sigbits timers_enter(void) {
    sigbits mask = signals_mask_set(SIGBITS_ALL);
    lock_acquire(&timers_lock);
    return mask;
}

static void timers_leave(sigbits mask) {
    lock_release(&timers_lock);
    signals_mask_set(mask);
}

static bool timer_note(uintptr_t id, bool by_number, uint64_t base) {
    bool noted = false;
    sigbits mask = timers_enter();
    for (int i = 0; i < TIMERS && !noted; i++) {
        if (timers[i].used)
            continue;
        timers[i].id = id;
        timers[i].by_number = by_number;
        timers[i].base = base;
        timers[i].used = noted = true;
    }
    timers_leave(mask);
    store_relaxed(&timers_used, true);
    return noted;
}

static uint64_t timer_base(uintptr_t id, bool by_number, bool forget) {
    uint64_t base = 0;
    sigbits mask = timers_enter();
    for (int i = 0; i < TIMERS; i++) {
        if (!timers[i].used || timers[i].by_number != by_number || timers[i].id != id)
            continue;
        base = timers[i].base;
        timers[i].used = !forget;
    }
    timers_leave(mask);
    return base;
}

/* The clock's thread and the one that the signal is for retire at their ends. */
static int create_timer(clockid_t clock, struct sigevent *event, timer_t *timer, struct reach *of_clock,
                        struct reach *of_event) {
    int answer = REAL(timer_create)(clock, event, timer);
    if (answer != 0)
        return answer;
    if (event != NULL && event->sigev_notify == SIGEV_THREAD_ID)
        reach_tie(of_event);
    if (!clock_is_of_thread(clock))
        return 0;
    reach_tie(of_clock);
    uint64_t base = base_of(clock, of_clock);
    if (base == 0 || timer_note((uintptr_t)*timer, false, base))
        return 0;
    REAL(timer_delete)(*timer);
    errno = EAGAIN;
    return -1;
}

INTERPOSE int timer_create(clockid_t clock, struct sigevent *event, timer_t *timer) {
    struct reach of_clock, of_event;
    struct sigevent copy;
    bool names_thread = event != NULL && event->sigev_notify == SIGEV_THREAD_ID;
    clock = reach_begin_clock(&of_clock, clock);
    reach_begin(&of_event, names_thread ? event->_sigev_un._tid : 0);
    if (names_thread) {
        copy = *event;
        copy._sigev_un._tid = of_event.tid;
        event = &copy;
    }
    int answer = create_timer(clock, event, timer, &of_clock, &of_event);
    reach_end(&of_event);
    reach_end(&of_clock);
    return answer;
}

/* The time to set it to: `value`, or *shifted. */
static const struct itimerspec *shift_absolute(uintptr_t timer, bool by_number, int flags,
                                               const struct itimerspec *value, struct itimerspec *shifted) {
    if (!(flags & TIMER_ABSTIME) || !load_relaxed(&timers_used) || !process_can_read(value, sizeof *value) ||
        clock_ns(&value->it_value) == 0)
        return value;
    *shifted = *value;
    shift(&shifted->it_value, (int64_t)timer_base(timer, by_number, false));
    return shifted;
}

INTERPOSE int timer_settime(timer_t timer, int flags, const struct itimerspec *value,
                            struct itimerspec *old) {
    struct itimerspec shifted;
    value = shift_absolute((uintptr_t)timer, false, flags, value, &shifted);
    return REAL(timer_settime)(timer, flags, value, old);
}

INTERPOSE int timer_delete(timer_t timer) {
    if (load_relaxed(&timers_used))
        timer_base((uintptr_t)timer, false, true);
    return REAL(timer_delete)(timer);
}

/* --- the same through syscall(), where a timer is a number --------------------------------------------- */

bool clock_timer_made(clockid_t clock, const struct reach *reach, const int *timer) {
    uint64_t base = clock_is_of_thread(clock) ? base_of(clock, reach) : 0;
    if (base == 0 || timer_note((uintptr_t)*timer, true, base))
        return true;
    sys(SYS_timer_delete, *timer);
    return false;
}

const struct itimerspec *clock_timer_value(int timer, int flags, const struct itimerspec *value,
                                           struct itimerspec *shifted) {
    return shift_absolute((uintptr_t)timer, true, flags, value, shifted);
}

void clock_timer_gone(int timer) {
    if (load_relaxed(&timers_used))
        timer_base((uintptr_t)timer, true, true);
}

void clock_fork_child(void) {
    lock_reset(&timers_lock); /* a child has no timers: */
    for (int i = 0; i < TIMERS; i++)
        timers[i].used = false;
}
