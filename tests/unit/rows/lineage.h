// SPDX-License-Identifier: Apache-2.0
//
// The three questions that every lineage test asks of one kind of per-thread kernel state, given how to change it and
// how to look at it: does a thread that changed it and ended leak it into the next ones; does a thread that changed
// it pass it on to the threads it creates; does main. Included by the lineage_*.c programs.
//
//     static int change(void) { return nice(5) == -1 ? errno : 0; }
//     static long look(void) { return getpriority(PRIO_PROCESS, 0); }
//     LINEAGE(niceness, change, look, INHERITED)
//     static const struct check_case cases[] = {LINEAGE_CASES(niceness)};
#ifndef THRUM_TESTS_ROWS_LINEAGE_H
#define THRUM_TESTS_ROWS_LINEAGE_H

#include "child.h"

enum lineage_kind { INHERITED, NOT_INHERITED };

struct lineage {
    int (*change)(void); // in the calling thread; 0 or an errno value
    long (*look)(void);  // at the calling thread
    enum lineage_kind kind;
};

enum { LINEAGE_IDLE = 3, LINEAGE_LOOKS = 4 };

static inline void lineage_change(const struct lineage *l) {
    int error = l->change();
    if (error == EPERM || error == EACCES || error == ENOSYS || error == EINVAL || error == ENODEV ||
        error == ENXIO || error == EOPNOTSUPP)
        CANNOT("the state cannot be changed: %s", strerror(error));
    CHECK(error == 0, "the state cannot be changed: %s", strerror(error));
}

static void *lineage_look(void *p) {
    return (void *)((const struct lineage *)p)->look();
}

// Threads created by the caller, one after the other and then together, see this value.
static inline void lineage_expect(const struct lineage *l, long expected, const char *whose) {
    void *seen;
    for (int i = 0; i < LINEAGE_LOOKS; i++) {
        run_thread_result(lineage_look, (void *)l, &seen);
        CHECK((long)seen == expected, "thread %d of %s: state %ld, expected %ld", i, whose, (long)seen,
              expected);
    }
    pthread_t threads[LINEAGE_LOOKS];
    int64_t busy = busy_threads();
    for (int i = 0; i < LINEAGE_LOOKS; i++)
        CHECK_OK(pthread_create(&threads[i], NULL, lineage_look, (void *)l));
    for (int i = 0; i < LINEAGE_LOOKS; i++) {
        CHECK_OK(pthread_join(threads[i], &seen));
        CHECK((long)seen == expected, "thread %d of several of %s: state %ld, expected %ld", i, whose,
              (long)seen, expected);
    }
    wait_until_settled(busy);
}

static void *lineage_changer(void *p) {
    const struct lineage *l = p;
    long before = l->look();
    lineage_change(l);
    PREMISE(l->look() != before, "the change changed nothing (%ld)", before);
    return NULL;
}

static void *lineage_changed_creator(void *p) {
    const struct lineage *l = p;
    long before = l->look();
    lineage_change(l);
    lineage_expect(l, l->kind == INHERITED ? l->look() : before, "the thread that changed it");
    return NULL;
}

static inline void lineage_ended(const struct lineage *l) {
    long before = l->look();
    warm_threads(LINEAGE_IDLE);
    run_thread(lineage_changer, (void *)l);
    lineage_expect(l, before, "main, after another thread changed its own and ended");
    CHECK_EQ(l->look(), before);
}

static inline void lineage_passed_on(const struct lineage *l) {
    long before = l->look();
    warm_threads(LINEAGE_IDLE);
    run_thread(lineage_changed_creator, (void *)l);
    lineage_expect(l, before, "main, after another thread and its threads ended");
    run_thread(lineage_changed_creator, (void *)l);
    lineage_expect(l, before, "main, after that happened twice");
}

static inline void lineage_of_main(const struct lineage *l) {
    warm_threads(LINEAGE_IDLE);
    lineage_changed_creator((void *)l);
}

#define LINEAGE(name, change, look, kind)                                                                    \
    static const struct lineage name##_lineage = {change, look, kind};                                       \
    static void name##_ended(void) {                                                                         \
        lineage_ended(&name##_lineage);                                                                      \
    }                                                                                                        \
    static void name##_passed_on(void) {                                                                     \
        lineage_passed_on(&name##_lineage);                                                                  \
    }                                                                                                        \
    static void name##_of_main(void) {                                                                       \
        lineage_of_main(&name##_lineage);                                                                    \
    }

#define LINEAGE_CASES(name)                                                                                  \
    {#name "_ended", name##_ended, FAILS_WHEN_SKIPPED},                                                      \
        {#name "_passed_on", name##_passed_on, FAILS_WHEN_SKIPPED}, {                                        \
#name "_of_main", name##_of_main, FAILS_WHEN_SKIPPED                                                 \
    }

// For NOT_INHERITED ones: only the leak from a thread that ended can show.
#define LINEAGE_CASES_NOT_INHERITED(name)                                                                    \
    {#name "_ended", name##_ended, FAILS_WHEN_SKIPPED},                                                      \
        {#name "_passed_on", name##_passed_on, FAILS_WHEN_SKIPPED}, {                                        \
#name "_of_main", name##_of_main, HOLDS_WHEN_SKIPPED                                                 \
    }

#endif
