// SPDX-License-Identifier: Apache-2.0
/* PROBE_TIMER: each thread has a timer that runs with its CPU time, and whose signal makes it note where it is.
 *
 * The kernel looks at such timers when its clock ticks (100 to 1000 times a second). A thread that never runs through
 * a tick is never seen.
 *
 * A sample goes into a slot of a ring: writers take a number each, and their slot if the command has emptied it
 * (PROBE_EMPTY -> WRITING -> FULL by them, FULL -> EMPTY by the command); otherwise the sample is lost, and counted. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "interrupted.h"
#include "os/syscall.h"
#include "stat.h"

static struct probe *probe;
static int number;        /* the signal */
static pthread_key_t end; /* its destructor runs when a thread ends */
static _Thread_local int timer;
static _Thread_local bool timed;

int timer_signal(void) {
    return number;
}

static void take_sample(const ucontext_t *context, int missed) {
    const struct registers at = registers_of(context);
    unsigned slot = (unsigned)(fetch_add_relaxed(&probe->next_slot, 1) % PROBE_SAMPLES);
    uint32_t seen = PROBE_EMPTY;
    /* This and the next pair with TimerProfile::drain (cli/stat/timer_profile.cpp). */
    if (!cas_acquire(&probe->states[slot], &seen, PROBE_WRITING)) {
        fetch_add_relaxed(&probe->lost, 1);
        return;
    }
    struct probe_sample *sample = &probe->in.samples[slot];
    sample->at = clock_ns_sigsafe();
    sample->thread = confined_thread_sigsafe();
    sample->ticks = (uint32_t)(missed + 1);
    stack_copy_sigsafe(&sample->stack, &at);
    store_release(&probe->states[slot], PROBE_FULL);
}

static void on_tick(int signal_number, siginfo_t *info, void *argument) {
    ucontext_t *context = argument;
    if (info->si_code != SI_TIMER || info->si_value.sival_ptr != &number) {
        sys(SYS_rt_sigprocmask, SIG_SETMASK, &context->uc_sigmask, 0,
            sizeof(uint64_t)); /* it is the program's */
        disposition_deliver_sigsafe(signal_number, info, argument);
        return;
    }
    take_sample(context, info->si_overrun);
    interrupted_again_sigsafe(context);
}

/* Timers are the process's: a forked child has none, and is not looked at. */
static bool is_the_program(void) {
    return probe->program == confined_process_sigsafe();
}

/* 0 or an errno value. */
static long start_timer(long clock, int thread, int signal_number, int *id) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = signal_number};
    event.sigev_value.sival_ptr = &number;
    event._sigev_un._tid = (pid_t)thread;
    const struct timespec period = {(time_t)(probe->period / 1000000000), (long)(probe->period % 1000000000)};
    const struct itimerspec times = {period, period};
    long error = sys(SYS_timer_create, clock, &event, id);
    if (error == 0)
        error = sys(SYS_timer_settime, *id, 0, &times, 0);
    return -error;
}

static void has_no_timer(long error) {
    fetch_add_relaxed(&probe->untimed, 1);
    if (error != 0)
        probe_failed(PROBE_NO_TIMER, error);
}

void timer_thread_begins(void) {
    if (number == 0 || !is_the_program())
        return;
    if (confined_sigsafe()) {
        has_no_timer(0);
        return;
    }
    const long error = start_timer(CLOCK_THREAD_CPUTIME_ID, confined_thread_sigsafe(), number, &timer);
    if (error != 0) {
        has_no_timer(error);
        return;
    }
    timed = true;
    pthread_setspecific(end, &timed);
}

/* A thread that another library's constructor has made. Its timer is there until the process ends, which does no harm.
 * One that blocks the signal does not get it: its time is not known. */
static void time_other(int thread, void *argument) {
    const int *signal_number = argument;
    const long clock_of_thread = (long)(~(unsigned long)thread << 3 | 6); /* as the kernel numbers them */
    int id;
    const long error = start_timer(clock_of_thread, thread, *signal_number, &id);
    if (error == EINVAL) /* it has ended */
        return;
    if (error != 0 || tasks_keep_blocked(thread, *signal_number))
        has_no_timer(error);
}

static void thread_ends(void *unused) {
    (void)unused;
    if (timed && is_the_program() && !confined_sigsafe())
        sys(SYS_timer_delete, timer);
    timed = false;
}

/* One for which the program has nothing yet. The ends of the range are what programs take first. */
static int free_signal(void) {
    for (int one = SIGRTMAX - 6; one > SIGRTMIN + 6; one--) {
        struct sigaction present;
        if (sigaction(one, NULL, &present) == 0 && present.sa_handler == SIG_DFL)
            return one;
    }
    return 0;
}

void timer_start(struct probe *shared) {
    probe = shared;
    int one = free_signal();
    if (one == 0 || pthread_key_create(&end, thread_ends) != 0 || !disposition_take(one, on_tick, true)) {
        probe_failed(PROBE_NO_SIGNAL, 0);
        return;
    }
    tasks_each(time_other, &one); /* those that begin from then on do it themselves */
    number = one;
    probe->signal = one;
    timer_thread_begins();
}
