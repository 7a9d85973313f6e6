// SPDX-License-Identifier: Apache-2.0
//
// For the rows in which the cache must switch itself off: what it says of that, and that threads work as if it were not
// there. Included by sanitizers*.c and glibc.c.
#ifndef THRUM_TESTS_ROWS_OFF_H
#define THRUM_TESTS_ROWS_OFF_H

#include "child.h"

static inline void expect_cache_off(void) {
    const volatile struct thrum_cache_counters *c = counters();
    if (!c)
        return;
    CHECK(cache_state() && strcmp(cache_state(), "on") != 0, "the cache is on");
    pid_t first = run_thread(do_nothing, NULL);
    CHECK(run_thread(do_nothing, NULL) != first, "the cache is off and reused a thread");
    CHECK_EQ(c->reused, 0);
    CHECK_EQ(c->idle, 0);
}

// Every kind of call with the cache off.
static inline void use_threads_without_cache(void) {
    void *result;
    pthread_t thread;
    run_together(4);
    for (intptr_t i = 1; i < 5; i++) {
        run_thread_result(do_nothing, (void *)i, &result);
        CHECK_EQ((intptr_t)result, i);
    }
    CHECK_OK(pthread_create(&thread, NULL, do_nothing, NULL));
    CHECK_OK(pthread_detach(thread));
}

// What this program says on stderr when it is started anew for the case `quiet_run`, with or without
// THRUM_CACHE_VERBOSE=1: the number of lines, and of those that say that it is
// off. A summary may follow at exit.
struct said {
    int lines, off;
    char first[256];
};
static inline struct said what_is_said(const char *verbose) {
    int ends[2];
    struct said said = {0};
    CHECK_SYS(pipe(ends));
    fflush(NULL);
    pid_t pid = fork();
    CHECK_SYS(pid);
    if (pid == 0) {
        alarm(10);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        setenv("THRUM_CACHE_VERBOSE", verbose, 1);
        execl("/proc/self/exe", check_argv[0], "quiet_run", (char *)NULL);
        _exit(9);
    }
    close(ends[1]);
    FILE *stream = fdopen(ends[0], "r");
    char line[256];
    while (fgets(line, sizeof line, stream)) {
        CHECK(strncmp(line, "thrum: ", 7) == 0, "not a line of thrum's: %s", line);
        if (said.lines++ == 0)
            memcpy(said.first, line, sizeof line);
        said.off += strstr(line, "the cache is off") != NULL;
    }
    fclose(stream);
    expect_exit(wait_child(pid), 0);
    return said;
}

// Nothing of the cache's own accord; one line that says why it is off, and before any other, where asked.
static inline void expect_one_line(const char *word) {
    if (!under_thrum())
        return;
    struct said said = what_is_said("0");
    CHECK(said.lines == 0, "said without being asked: %s", said.first);
    said = what_is_said("1");
    CHECK(said.off == 1, "%d lines say that the cache is off", said.off);
    CHECK(strstr(said.first, "the cache is off") && strstr(said.first, word), "does not begin with that: %s",
          said.first);
}

#endif
