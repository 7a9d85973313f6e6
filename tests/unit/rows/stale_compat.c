// SPDX-License-Identifier: Apache-2.0
//
// Row stale: programs that were linked with a libc before 2.34 ask for that one's pthread_kill, which says ESRCH of a
// thread that has ended. And old binaries' calls that have no size for a set of CPUs.
#include <sched.h>
#include <signal.h>

#include "child.h"

int old_pthread_kill(pthread_t, int);
#ifdef __x86_64__
__asm__(".symver old_pthread_kill, pthread_kill@GLIBC_2.2.5");
int old_sched_setaffinity(pid_t, const cpu_set_t *), old_sched_getaffinity(pid_t, cpu_set_t *);
int old_pthread_getaffinity(pthread_t, cpu_set_t *);
__asm__(".symver old_sched_setaffinity, sched_setaffinity@GLIBC_2.3.3");
__asm__(".symver old_sched_getaffinity, sched_getaffinity@GLIBC_2.3.3");
__asm__(".symver old_pthread_getaffinity, pthread_getaffinity_np@GLIBC_2.3.3");
int old_timer_create(clockid_t, struct sigevent *, int *), old_timer_delete(int);
__asm__(".symver old_timer_create, timer_create@GLIBC_2.2.5");
__asm__(".symver old_timer_delete, timer_delete@GLIBC_2.2.5");
#else
__asm__(".symver old_pthread_kill, pthread_kill@GLIBC_2.17");
#endif

static void old_kill(void) {
    pthread_t thread;
    int error = 0;
    warm_threads(1);
    CHECK_OK(pthread_create(&thread, NULL, do_nothing, NULL));
    for (int i = 0; i < 2000 && (error = old_pthread_kill(thread, 0)) == 0; i++)
        sleep_ms(1);
    CHECK_EQ(error, ESRCH);
    CHECK_EQ(old_pthread_kill(thread, SIGTERM), ESRCH);
    CHECK_EQ(old_pthread_kill(thread, 32), EINVAL);
    CHECK_EQ(pthread_kill(thread, 0), 0); // today's
    CHECK_OK(pthread_join(thread, NULL));
}

static void *wait_for_flag(void *flag) {
    await_flag(flag);
    return NULL;
}
static void old_kill_of_living(void) {
    pthread_t thread;
    int flag = 0;
    CHECK_OK(pthread_create(&thread, NULL, wait_for_flag, &flag));
    CHECK_EQ(old_pthread_kill(thread, 0), 0);
    CHECK_EQ(old_pthread_kill(pthread_self(), 0), 0);
    set_flag(&flag);
    CHECK_OK(pthread_join(thread, NULL));
}

#ifdef __x86_64__
static void old_affinity(void) {
    cpu_set_t set, again;
    CHECK_SYS(old_sched_getaffinity(0, &set));
    CHECK(CPU_COUNT(&set) > 0, "no CPU");
    CHECK_SYS(old_sched_setaffinity(0, &set));
    CHECK_OK(old_pthread_getaffinity(pthread_self(), &again));
    CHECK(CPU_EQUAL(&set, &again), "another set");
}
static void *make_old_timer(void *arg) {
    int timer = -1;
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    CHECK_SYS(old_timer_create(CLOCK_MONOTONIC, &event, &timer));
    CHECK(timer >= 0, "timer %d", timer);
    CHECK_SYS(old_timer_delete(timer));
    return arg;
}
static void old_timers(void) {
    run_thread(make_old_timer, NULL);
}
#endif

static const struct check_case cases[] = {
    {"old_kill", old_kill, HOLDS_WHEN_SKIPPED}, // what is skipped reaches the kernel thread, which is there
    {"old_kill_of_living", old_kill_of_living, HOLDS_WHEN_SKIPPED},
#ifdef __x86_64__
    {"old_affinity", old_affinity, HOLDS_WHEN_SKIPPED},
    {"old_timers", old_timers, HOLDS_WHEN_SKIPPED},
#endif
};
CHECK_MAIN(cases)
