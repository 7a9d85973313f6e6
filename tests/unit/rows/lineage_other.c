// SPDX-License-Identifier: Apache-2.0
//
// Row lineage: the state of a thread changed by another, by its tid or pthread_t. What ends with that thread does not
// reach later ones; its own threads have it.
#include <sched.h>
#include <sys/resource.h>

#include "lineage.h"

enum { IOPRIO_WHO_PROCESS = 1, IOPRIO_BEST_EFFORT_LOWEST = 2 << 13 | 7 };

static long look(void) {
    return getpriority(PRIO_PROCESS, 0) + 100 * sched_getscheduler(0) +
           10000 * syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0);
}
static int unchanged(void) {
    return 0;
}
static const struct lineage state = {unchanged, look, INHERITED};

struct target {
    pid_t tid;
    pthread_t thread;
    int started, changed;
    long seen;
};

static void *be_changed(void *p) {
    struct target *target = p;
    target->tid = kernel_tid();
    set_flag(&target->started);
    await_flag(&target->changed);
    target->seen = look();
    return NULL;
}

// Has a thread changed while it runs.
static void changed_by(void (*change)(const struct target *)) {
    long before = look();
    struct target target = {0};
    warm_threads(LINEAGE_IDLE);
    int64_t busy = busy_threads();
    CHECK_OK(pthread_create(&target.thread, NULL, be_changed, &target));
    await_flag(&target.started);
    change(&target);
    set_flag(&target.changed);
    CHECK_OK(pthread_join(target.thread, NULL));
    wait_until_settled(busy);
    PREMISE(target.seen != before, "the change changed nothing");
    lineage_expect(&state, before, "main, after it changed another thread, which ended");
}

static const struct sched_param no_priority = {0};
static void renice(const struct target *t) {
    CHECK_SYS(setpriority(PRIO_PROCESS, (id_t)t->tid, 6));
}
static void set_policy(const struct target *t) {
    CHECK_SYS(sched_setscheduler(t->tid, SCHED_BATCH, &no_priority));
}
static void set_pthread_policy(const struct target *t) {
    CHECK_OK(pthread_setschedparam(t->thread, SCHED_BATCH, &no_priority));
}
static void set_ioprio(const struct target *t) {
    CHECK_SYS(syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, t->tid, IOPRIO_BEST_EFFORT_LOWEST));
}

static void renice_by_main(void) {
    changed_by(renice);
}
static void policy_by_main(void) {
    changed_by(set_policy);
}
static void pthread_policy_by_main(void) {
    changed_by(set_pthread_policy);
}
static void ioprio_by_main(void) {
    changed_by(set_ioprio);
}

// ---- creators that were reniced by another thread ------------------------------------------------------------------

static void *create_when_changed(void *p) {
    struct target *target = p;
    target->tid = kernel_tid();
    set_flag(&target->started);
    await_flag(&target->changed);
    lineage_expect(&state, look(), "a thread that main has changed");
    return NULL;
}
static void creator_by_main(void) {
    long before = look();
    struct target target = {0};
    warm_threads(LINEAGE_IDLE);
    int64_t busy = busy_threads();
    CHECK_OK(pthread_create(&target.thread, NULL, create_when_changed, &target));
    await_flag(&target.started);
    renice(&target);
    set_flag(&target.changed);
    CHECK_OK(pthread_join(target.thread, NULL));
    wait_until_settled(busy);
    lineage_expect(&state, before, "main, after it changed another creator, which ended");
}

static void *renice_main(void *arg) {
    CHECK_SYS(setpriority(PRIO_PROCESS, (id_t)getpid(), getpriority(PRIO_PROCESS, 0) + 3));
    return arg;
}
static void main_by_a_thread(void) {
    long before = look();
    warm_threads(LINEAGE_IDLE);
    run_thread(renice_main, NULL);
    PREMISE(look() != before, "the change changed nothing");
    lineage_expect(&state, look(), "main, after a thread changed it");
}

// Without thrum there is no such thread any more.
static void ended_by_main(void) {
    long before = look();
    warm_threads(LINEAGE_IDLE);
    const struct target ended = {.tid = run_thread(do_nothing, NULL)};
    if (under_thrum())
        CHECK(setpriority(PRIO_PROCESS, (id_t)ended.tid, 6) == -1 && errno == ESRCH,
              "there is such a thread");
    lineage_expect(&state, before, "main, after it changed a thread that had ended");
}

static const struct check_case cases[] = {
    {"renice_by_main", renice_by_main, FAILS_WHEN_SKIPPED},
    {"policy_by_main", policy_by_main, FAILS_WHEN_SKIPPED},
    {"pthread_policy_by_main", pthread_policy_by_main, FAILS_WHEN_SKIPPED},
    {"ioprio_by_main", ioprio_by_main, FAILS_WHEN_SKIPPED},
    {"creator_by_main", creator_by_main, FAILS_WHEN_SKIPPED},
    {"main_by_a_thread", main_by_a_thread, FAILS_WHEN_SKIPPED},
    {"ended_by_main", ended_by_main, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
