// SPDX-License-Identifier: Apache-2.0
/* What the C library says about the calling thread, or does to it, where that is a ULT. The C library knows only kernel threads, so
 * libthrum replaces some of its functions for the whole program, as it does with pthread_exit (exit.c):
 *
 *   pthread_getattr_np     of pthread_self(): the stack that the caller stands on. Collectors and language runtimes look for
 *                          its bounds there.
 *   clock_gettime          of CLOCK_THREAD_CPUTIME_ID: continues from the ULT's last reading when the ULT has moved to another
 *                          kernel thread since. So it never runs backwards. It is still the kernel thread's clock: the time
 *                          of other threads on the same worker counts, and time between the last reading and the move does
 *                          not.
 *   pthread_getcpuclockid  of pthread_self(): that clock. The C library would name the kernel thread whose thread control block
 *                          the caller has (tcb.h), which may sleep.
 *
 *   pthread_getaffinity_np, pthread_setaffinity_np, pthread_getschedparam, pthread_setschedparam, pthread_setschedprio,
 *   pthread_sigqueue       of pthread_self(): of the kernel thread that the ULT runs on. The C library would name the one
 *                          that the block names, and a spare block has none (preempt/blocks.h).
 *
 * All else is left to the C library: also external kernel threads, and handles other than the caller's. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/syscall.h"
#include "sched/worker.h"

/* For the thread that called thrum_init, which has no stack of ours. */
static struct unit_clock primary_clock;

/* r/o once they are found: before main, or by what runs before that. clock_gettime is async-signal-safe, and dlsym is not. */
static struct {
    int (*getattr)(pthread_t, pthread_attr_t *);
    int (*getcpuclockid)(pthread_t, clockid_t *);
    int (*getaffinity)(pthread_t, size_t, cpu_set_t *);
    int (*setaffinity)(pthread_t, size_t, const cpu_set_t *);
    int (*getschedparam)(pthread_t, int *, struct sched_param *);
    int (*setschedparam)(pthread_t, int, const struct sched_param *);
    int (*setschedprio)(pthread_t, int);
    int (*sigqueue)(pthread_t, int, const union sigval);
    int (*gettime)(clockid_t, struct timespec *);
} libc;

static __attribute__((constructor, noinline, cold)) void find(void) {
    *(void **)&libc.getattr = dlsym(RTLD_NEXT, "pthread_getattr_np");
    *(void **)&libc.getcpuclockid = dlsym(RTLD_NEXT, "pthread_getcpuclockid");
    *(void **)&libc.getaffinity = dlsym(RTLD_NEXT, "pthread_getaffinity_np");
    *(void **)&libc.setaffinity = dlsym(RTLD_NEXT, "pthread_setaffinity_np");
    *(void **)&libc.getschedparam = dlsym(RTLD_NEXT, "pthread_getschedparam");
    *(void **)&libc.setschedparam = dlsym(RTLD_NEXT, "pthread_setschedparam");
    *(void **)&libc.setschedprio = dlsym(RTLD_NEXT, "pthread_setschedprio");
    *(void **)&libc.sigqueue = dlsym(RTLD_NEXT, "pthread_sigqueue");
    *(void **)&libc.gettime = dlsym(RTLD_NEXT, "clock_gettime");
}

/* What runs on the caller's worker: the caller, unless that is a signal handler or a tasklet's host. NULL: an external kernel
 * thread, or a worker between two units. The caller is inside: moved away and back between two loads it would get another's. */
static struct thrum_unit *unit_on(const struct worker *worker) {
    return worker != NULL ? load_relaxed(&worker->current) : NULL;
}

static bool is_around(const struct thrum_unit *unit, const char *frame) {
    return unit->stack_top != NULL && load_relaxed(&unit->kind) != UNIT_TASKLET &&
           unit_stack_low(unit) <= frame && frame < unit->stack_top;
}

/* The unit whose own stack `frame` is in; NULL: an external kernel thread's, a tasklet's, a signal handler's on a stack of
 * its own, or that of a kernel thread. */
static struct thrum_unit *unit_around(const char *frame) {
    struct thrum_unit *self = unit_on(enter());
    leave();
    return self != NULL && is_around(self, frame) ? self : NULL;
}

/* --- its stack ---------------------------------------------------------------------------------------- */

static int set_stack_below(pthread_attr_t *attr, uintptr_t top, size_t size) {
    void *low = (void *)(top - size); // NOLINT(performance-no-int-to-ptr)
    return pthread_attr_setstack(attr, low, size);
}

/* Libc sets no size below its minimum, which is 128 KiB on aarch64, though it can tell of any. Then the size is put where a larger
 * one is: in the only word that differs between attributes of two sizes whose stacks end at the same address. */
static int set_stack(pthread_attr_t *attr, uintptr_t top, size_t size) {
    enum { WORDS = sizeof *attr / sizeof(size_t), LARGE = 1 << 20 };
    size_t one[WORDS], two[WORDS], differ = 0, at = 0;
    int error = set_stack_below(attr, top, size);
    if (error != EINVAL)
        return error;
    if ((error = set_stack_below(attr, top, LARGE)) != 0)
        return error;
    memcpy(one, attr, sizeof one);
    if ((error = set_stack_below(attr, top, (size_t)2 * LARGE)) != 0)
        return error;
    memcpy(two, attr, sizeof two);
    for (size_t i = 0; i < WORDS; i++)
        if (one[i] != two[i])
            differ++, at = i;
    if (differ != 1 || one[at] != LARGE)
        return EINVAL;
    two[at] = size;
    memcpy(attr, two, sizeof two);
    return 0;
}

/* Libc would ask the kernel for the CPUs of the kernel thread that the installed block names, of which a spare one has none
 * (preempt/blocks.h): so they are those of the worker, and all else is as in new attributes. */
static __attribute__((noinline)) int get_own(const struct thrum_unit *self, pthread_attr_t *attr) {
    cpu_set_t cpus;
    char *low = unit_stack_low(self);
    int error = pthread_attr_init(attr);
    if (error != 0)
        return error;
    const long size = sys(SYS_sched_getaffinity, 0, sizeof cpus, &cpus);
    if (size > 0)
        error = pthread_attr_setaffinity_np(attr, (size_t)size, &cpus);
    if (error == 0)
        error = set_stack(attr, (uintptr_t)self->stack_top, (size_t)(self->stack_top - low));
    if (error == 0)
        error =
            pthread_attr_setguardsize(attr, self->stack_class == STACK_CLASS_USER ? 0 : stack_guard_size());
    if (error != 0)
        pthread_attr_destroy(attr);
    return error;
}

__attribute__((visibility("default"))) int pthread_getattr_np(pthread_t thread, pthread_attr_t *attr) {
    if (__builtin_expect(libc.getattr == NULL, 0))
        find();
    const struct thrum_unit *self = thread == pthread_self() ? unit_around(__builtin_frame_address(0)) : NULL;
    return self != NULL ? get_own(self, attr) : libc.getattr(thread, attr);
}

/* --- its kernel thread -------------------------------------------------------------------------------- */

static bool is_on_worker(pthread_t thread) {
    return thread == pthread_self() && worker_here() != NULL;
}

/* The kernel writes less than the caller's set has room for. */
__attribute__((visibility("default"))) int pthread_getaffinity_np(pthread_t thread, size_t size,
                                                                  cpu_set_t *cpus) {
    if (__builtin_expect(libc.getaffinity == NULL, 0))
        find();
    if (!is_on_worker(thread))
        return libc.getaffinity(thread, size, cpus);
    const long written = sys(SYS_sched_getaffinity, 0, size < INT32_MAX ? size : INT32_MAX, cpus);
    if (written < 0)
        return (int)-written;
    memset((char *)cpus + written, 0, size - (size_t)written);
    return 0;
}

/* As in the C library, an error is the result. */
static int error_of(long answer) {
    return answer < 0 ? (int)-answer : 0;
}

__attribute__((visibility("default"))) int pthread_setaffinity_np(pthread_t thread, size_t size,
                                                                  const cpu_set_t *cpus) {
    if (__builtin_expect(libc.setaffinity == NULL, 0))
        find();
    if (!is_on_worker(thread))
        return libc.setaffinity(thread, size, cpus);
    return error_of(sys(SYS_sched_setaffinity, 0, size, cpus));
}

__attribute__((visibility("default"))) int pthread_getschedparam(pthread_t thread, int *policy,
                                                                 struct sched_param *parameters) {
    if (__builtin_expect(libc.getschedparam == NULL, 0))
        find();
    if (!is_on_worker(thread))
        return libc.getschedparam(thread, policy, parameters);
    const long error = sys(SYS_sched_getparam, 0, parameters);
    const long found = error == 0 ? sys(SYS_sched_getscheduler, 0) : error;
    if (found < 0)
        return (int)-found;
    *policy = (int)found;
    return 0;
}

__attribute__((visibility("default"))) int pthread_setschedparam(pthread_t thread, int policy,
                                                                 const struct sched_param *parameters) {
    if (__builtin_expect(libc.setschedparam == NULL, 0))
        find();
    if (!is_on_worker(thread))
        return libc.setschedparam(thread, policy, parameters);
    return error_of(sys(SYS_sched_setscheduler, 0, policy, parameters));
}

__attribute__((visibility("default"))) int pthread_setschedprio(pthread_t thread, int priority) {
    const struct sched_param parameters = {.sched_priority = priority};
    if (__builtin_expect(libc.setschedprio == NULL, 0))
        find();
    if (!is_on_worker(thread))
        return libc.setschedprio(thread, priority);
    return error_of(sys(SYS_sched_setparam, 0, &parameters));
}

/* The C library keeps the first signals for real time to itself. The caller may move before the call: the signal is then sent to
 * the worker that it has left, as one that the C library sends may be. */
__attribute__((visibility("default"))) int pthread_sigqueue(pthread_t thread, int signal,
                                                            const union sigval value) {
    enum { FIRST_OF_LIBC = 32 };
    if (__builtin_expect(libc.sigqueue == NULL, 0))
        find();
    if (!is_on_worker(thread))
        return libc.sigqueue(thread, signal, value);
    if (signal >= FIRST_OF_LIBC && signal < SIGRTMIN)
        return EINVAL;
    siginfo_t info = {.si_signo = signal, .si_code = SI_QUEUE};
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value = value;
    return error_of(sys(SYS_rt_tgsigqueueinfo, getpid(), sys(SYS_gettid), signal, &info));
}

/* --- its clock ---------------------------------------------------------------------------------------- */

/* The clock of a kernel thread whose id is known may be behind the last reading. By less than this, a signal handler has
 * read it since the caller's answer came: the last reading is repeated. By more, the id was that of another kernel thread,
 * which has ended: the clock continues from the last reading. */
enum { REUSED_NS = 1000000000 };

/* Reads the kernel thread's clock as one of the unit. The caller is inside, so that kernel thread and time belong together. */
static int read_units_clock(struct thrum_unit *self, struct timespec *time) {
    struct unit_clock *clock = self->is_primary ? &primary_clock : &unit_head_of(self)->clock;
    const uint32_t thread = (uint32_t)sys(SYS_gettid);
    const int answer = libc.gettime(CLOCK_THREAD_CPUTIME_ID, time);
    if (answer != 0)
        return answer;
    const uint64_t now = clock_ns(time) + clock->ahead;
    const int64_t behind = (int64_t)(clock->last - now);
    if (self->clocked != thread || behind >= REUSED_NS) {
        clock->ahead = self->clocked != 0 ? clock->last - clock_ns(time) : 0;
        clock->last = clock_ns(time) + clock->ahead;
        self->clocked = thread;
        store_relaxed(&self->extras, true);
    } else if (behind < 0) {
        clock->last = now;
    }
    *time = timer_spec(clock->last);
    return 0;
}

/* A signal handler that reads it in between may get the same time again. */
static __attribute__((noinline)) int read_clock(struct timespec *time, const char *frame) {
    struct thrum_unit *self = unit_on(enter());
    const bool is_own = self != NULL && (self->is_primary || is_around(self, frame));
    const int answer = is_own ? read_units_clock(self, time) : libc.gettime(CLOCK_THREAD_CPUTIME_ID, time);
    leave();
    return answer;
}

SIGSAFE __attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *time) {
    if (__builtin_expect(libc.gettime == NULL, 0))
        find();
    if (__builtin_expect(clock == CLOCK_THREAD_CPUTIME_ID, 0))
        return read_clock(time, __builtin_frame_address(0));
    return libc.gettime(clock, time);
}

__attribute__((visibility("default"))) int pthread_getcpuclockid(pthread_t thread, clockid_t *clock) {
    if (__builtin_expect(libc.getcpuclockid == NULL, 0))
        find();
    if (thread != pthread_self() || worker_here() == NULL)
        return libc.getcpuclockid(thread, clock);
    *clock = CLOCK_THREAD_CPUTIME_ID;
    return 0;
}
