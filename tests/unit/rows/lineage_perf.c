// SPDX-License-Identifier: Apache-2.0
//
// Row lineage: a performance event that is inherited counts in the threads that its thread creates from then on, and in
// no other.
#include <linux/perf_event.h>

#include "child.h"

enum { BURN_MS = 20, IDLE = 3 };

static int open_event(pid_t of) {
    struct perf_event_attr attributes = {.type = PERF_TYPE_SOFTWARE,
                                         .size = sizeof attributes,
                                         .config = PERF_COUNT_SW_TASK_CLOCK,
                                         .inherit = 1};
    int fd = (int)syscall(SYS_perf_event_open, &attributes, of, -1, -1, 0);
    if (fd == -1)
        CANNOT("perf_event_open: %s", strerror(errno));
    return fd;
}

static double counted_ms(int fd) {
    uint64_t ns = 0;
    CHECK_EQ(read(fd, &ns, sizeof ns), sizeof ns);
    return (double)ns / 1e6;
}

static void *burn(void *arg) {
    struct timespec used;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    while (used.tv_sec == 0 && used.tv_nsec < BURN_MS * 1000000L);
    return arg;
}

static void of_main(void) {
    warm_threads(IDLE);
    int fd = open_event(0);
    double before = counted_ms(fd);
    run_thread(burn, NULL);
    double of_thread = counted_ms(fd) - before;
    CHECK(of_thread > BURN_MS * 0.9, "%.1f ms counted of a thread that used %d", of_thread, BURN_MS);
}

static volatile int opened;
static void *be_counted(void *arg) {
    await_flag(&opened);
    run_thread(burn, NULL);
    return arg;
}
static pid_t creator_tid;
static void *tell_tid(void *arg) {
    __atomic_store_n(&creator_tid, kernel_tid(), __ATOMIC_RELEASE);
    return be_counted(arg);
}
static void of_another_thread(void) {
    pthread_t thread;
    warm_threads(IDLE);
    CHECK_OK(pthread_create(&thread, NULL, tell_tid, NULL));
    while (__atomic_load_n(&creator_tid, __ATOMIC_ACQUIRE) == 0)
        sleep_ms(1);
    int fd = open_event(creator_tid);
    set_flag(&opened);
    CHECK_OK(pthread_join(thread, NULL));
    CHECK(counted_ms(fd) > BURN_MS * 0.9, "%.1f ms counted of a thread that used %d", counted_ms(fd),
          BURN_MS);
}

static int own_event = -1;
static void *open_own(void *arg) {
    own_event = open_event(0);
    return arg;
}
static void of_ended_thread(void) {
    warm_threads(IDLE);
    run_thread(open_own, NULL);
    double before = counted_ms(own_event);
    for (int i = 0; i < 3; i++)
        run_thread(burn, NULL);
    CHECK(counted_ms(own_event) - before < BURN_MS * 0.5,
          "the event of a thread that ended counts in later ones");
}

static const struct check_case cases[] = {
    {"of_main", of_main, FAILS_WHEN_SKIPPED},
    {"of_another_thread", of_another_thread, FAILS_WHEN_SKIPPED},
    {"of_ended_thread", of_ended_thread, HOLDS_WHEN_SKIPPED}, // row kernel-ties, too
};
CHECK_MAIN(cases)
