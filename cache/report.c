// SPDX-License-Identifier: Apache-2.0
/* What the library reports about itself: the summary at exit, and why it is off. Row exit: at exit nothing is done
 * with idle threads; they are parked on a futex that is never woken, and end with the process. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cache.h"
#include "kthread/idle.h"
#include "os/syscall.h"

INTERPOSE const char *thrum_cache_state(void) {
    cache_ready();
    return kthread_state();
}

static void add(struct text *text, const char *what, uint64_t number) {
    text_add(text, what);
    text_add_number(text, number);
}

static void reasons(const char *title, const uint64_t *counts, const char *(*reason)(unsigned)) {
    struct text text;
    bool any = false;
    for (unsigned i = 0; reason(i) != NULL; i++) {
        if (counts[i] == 0)
            continue;
        if (!any) {
            text_start(&text);
            text_add(&text, title);
        }
        text_add(&text, any ? ", " : "");
        text_add(&text, reason(i));
        add(&text, " ", counts[i]);
        any = true;
    }
    if (any)
        text_finish(&text);
}

static void name_call(struct text *text, because call) {
    if (call < BECAUSE_NUMBERS)
        add(text, "system call ", call - 1);
    else /* the present meaning or a former one: compat.c */
        text_add(text, (const char *)call + (strncmp((const char *)call, "compat_", 7) == 0 ? 7 : 0));
}

/* Which calls made threads retire: a line for each reason that comes from calls. */
static void calls(void) {
    for (unsigned wanted = 1; thrum_cache_retire_reason(wanted - 1) != NULL; wanted++) {
        struct text text;
        bool any = false;
        unsigned reason;
        because call;
        uint64_t count;
        for (unsigned i = 0; because_get(i, &reason, &call, &count); i++) {
            if (reason != wanted)
                continue;
            if (!any) {
                text_start(&text);
                text_add(&text, "    ");
                text_add(&text, thrum_cache_retire_reason(wanted - 1));
            }
            text_add(&text, any ? ", " : ", by ");
            name_call(&text, call);
            add(&text, " ", count);
            any = true;
        }
        if (any)
            text_finish(&text);
    }
}

static void start_line(struct text *text) {
    text_start(text);
    add(text, "pid ", (uint64_t)sys(SYS_getpid));
    text_add(text, " (");
    text_add(text, program_invocation_short_name);
    text_add(text, "): ");
}

static void no_threads(void) {
    struct text text;
    start_line(&text);
    text_add(&text, "no threads");
    text_finish(&text);
}

/* Of reuse all that the cache made is accounted for: created = retired + culled + idle + live. */
static void summary(void) {
    const struct thrum_cache_counters *c = &thrum_cache_counters;
    struct text text;
    start_line(&text);
    add(&text, "created ", c->created);
    add(&text, ", reused ", c->reused);
    add(&text, ", retired ", c->retired);
    add(&text, ", culled ", c->culled);
    add(&text, ", live ", c->live);
    add(&text, ", passed through ", c->passed);
    add(&text, ", idle ", c->idle);
    add(&text, " (peak ", c->idle_peak);
    text_add(&text, ")");
    text_finish(&text);
    reasons("  retired: ", c->retired_by, thrum_cache_retire_reason);
    calls();
    reasons("  passed through: ", c->passed_by, thrum_cache_pass_reason);
}

static void say_if_stopped(void) {
    const char *state = kthread_state();
    if (strcmp(state, "on") != 0)
        text_line("  reuse stopped: ", state, NULL);
}

/* Of a process that has made no thread. Only of the one that `thrum run` became, whose user waits for a line: most of
 * what a shell or a make starts has no threads. */
static void say_of_none(void) {
    const char *why = cache_off_pending();
    if (!cache_is_the_program())
        return;
    if (why != NULL)
        text_line("the cache is off: ", why, NULL);
    else
        no_threads();
}

/* Not in a vfork's child, which has its parent's counters. If the cache is off from the start, the line that says so
 * is the whole report. */
void report_once(void) {
    static long said_by;
    const struct thrum_cache_counters *c = &thrum_cache_counters;
    if (!total_wanted() && (!cache_verbose() || cache_off_from_start()))
        return; /* nothing to say, and nothing is asked for it */
    long pid = sys(SYS_getpid);
    if (pid == cache_pid())
        total_add();
    if (!cache_verbose() || cache_off_from_start() || pid != cache_pid() ||
        exchange_relaxed(&said_by, pid) == pid || tree_add())
        return;
    if (c->created + c->reused + c->passed == 0) {
        say_of_none();
    } else {
        summary();
        say_if_stopped();
    }
    tree_print(reasons);
}

__attribute__((destructor)) static void at_exit(void) {
    if (skipped(ROW_EXIT)) /* what a library that cleans up after itself would do */
        for (struct kthread *thread; (thread = idle_pop_any()) != NULL;)
            libc.pthread_join(thread->handle, NULL);
    report_once();
}

/* Ends that no destructor sees. */
INTERPOSE void _exit(int status) {
    report_once();
    REAL(_exit)(status);
    __builtin_unreachable();
}

INTERPOSE void _Exit(int status) {
    _exit(status);
}
