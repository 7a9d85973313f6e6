// SPDX-License-Identifier: Apache-2.0
//
// Row exit: however the process ends or is replaced, idle threads do not hinder it: at once, with the right code.
#include "child.h"

enum { SECONDS = 5, PROMPT_MS = 2000, IDLE = 6, CODE = 37 };

static void ends_promptly(void (*run)(void), int code) {
    int64_t start = now_ms();
    expect_exit(child_status(run, SECONDS), code);
    CHECK(now_ms() - start < PROMPT_MS, "took %d ms", (int)(now_ms() - start));
}

static void by_exit(void) {
    warm_threads(IDLE);
    exit(CODE);
}
static void by_quick_exit(void) {
    warm_threads(IDLE);
    quick_exit(CODE);
}
static void by_underscore_exit(void) {
    warm_threads(IDLE);
    _exit(CODE);
}
static void by_raw_exit_group(void) {
    warm_threads(IDLE);
    syscall(SYS_exit_group, CODE);
}
static void by_abort(void) {
    warm_threads(IDLE);
    abort();
}
static void by_crash(void) {
    warm_threads(IDLE);
    *(volatile char *)16 = 1;
}
static void *exit_in_thread(void *arg) {
    exit(CODE);
    return arg;
}
static void from_a_reused_thread(void) {
    warm_threads(IDLE);
    run_thread(exit_in_thread, NULL);
}
static void *quick_exit_in_thread(void *arg) {
    quick_exit(CODE);
    return arg;
}
static void quickly_from_a_reused_thread(void) {
    warm_threads(IDLE);
    run_thread(quick_exit_in_thread, NULL);
}
static void *abort_in_thread(void *arg) {
    abort();
    return arg;
}
static void aborted_by_a_reused_thread(void) {
    warm_threads(IDLE);
    run_thread(abort_in_thread, NULL);
}

static void exit_case(void) {
    ends_promptly(by_exit, CODE);
}
static void quick_exit_case(void) {
    ends_promptly(by_quick_exit, CODE);
}
static void underscore_exit_case(void) {
    ends_promptly(by_underscore_exit, CODE);
}
static void raw_exit_group_case(void) {
    ends_promptly(by_raw_exit_group, CODE);
}
static void abort_case(void) {
    expect_killed(child_status(by_abort, SECONDS), SIGABRT);
}
static void crash_case(void) {
    expect_killed(child_status(by_crash, SECONDS), SIGSEGV);
}
static void reused_thread_case(void) {
    ends_promptly(from_a_reused_thread, CODE);
}
static void reused_thread_quick_case(void) {
    ends_promptly(quickly_from_a_reused_thread, CODE);
}
static void reused_thread_abort_case(void) {
    expect_killed(child_status(aborted_by_a_reused_thread, SECONDS), SIGABRT);
}
static void return_from_main(void) {
    alarm(SECONDS);
    warm_threads(IDLE);
}

// ---- nothing runs on idle threads ---------------------------------------------------------------------------------

// Exit handlers and destructors run on the thread that calls exit, and thread-specific destructors of threads that
// have ended ran when they ended: exit adds none.
static pthread_key_t key;
static int destroyed;
static pid_t exiting_tid;
static int verdict_pipe[2];

static void destroy(void *value) {
    (void)value;
    __atomic_fetch_add(&destroyed, 1, __ATOMIC_RELAXED);
}
static void *set_key(void *arg) {
    CHECK_OK(pthread_setspecific(key, &key));
    return arg;
}
static void judge(void) {
    char verdict = destroyed == IDLE && kernel_tid() == exiting_tid ? 'y' : 'n';
    if (write(verdict_pipe[1], &verdict, 1) != 1)
        _exit(9);
}
static void with_handlers(void) {
    CHECK_OK(pthread_key_create(&key, destroy));
    for (int i = 0; i < IDLE; i++)
        run_thread(set_key, NULL);
    warm_threads(IDLE);
    atexit(judge);
    exiting_tid = kernel_tid();
    exit(CODE);
}
static void handlers_case(void) {
    char verdict = 0;
    CHECK_SYS(pipe(verdict_pipe));
    ends_promptly(with_handlers, CODE);
    CHECK(read(verdict_pipe[0], &verdict, 1) == 1, "the exit handler did not run");
    CHECK(verdict == 'y', "destructors ran again, or the handler ran on another thread");
}

// Threads that are at work while the process ends, and threads created while it does.
static void *create_for_ever(void *arg) {
    for (;;) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, do_nothing, NULL) == 0)
            pthread_join(thread, NULL);
    }
    return arg;
}
static void while_others_work(void) {
    pthread_t thread;
    warm_threads(IDLE);
    for (int i = 0; i < 3; i++)
        CHECK_OK(pthread_create(&thread, NULL, create_for_ever, NULL));
    sleep_ms(30);
    exit(CODE);
}
static void busy_case(void) {
    for (int i = 0; i < 5; i++)
        ends_promptly(while_others_work, CODE);
}

static void late_threads(void) {
    run_thread(do_nothing, NULL);
    warm_threads(2);
}
static void with_threads_in_handler(void) {
    warm_threads(IDLE);
    atexit(late_threads);
    exit(CODE);
}
static void threads_in_handler_case(void) {
    ends_promptly(with_threads_in_handler, CODE);
}

// ---- exec ---------------------------------------------------------------------------------------------------------

static char *const exec_argv[] = {"/bin/sh", "-c", "exit 37", NULL};

static void by_exec(void) {
    warm_threads(IDLE);
    execv(exec_argv[0], exec_argv);
    _exit(9);
}
static void *exec_in_thread(void *arg) {
    execv(exec_argv[0], exec_argv);
    return arg;
}
static void by_exec_in_thread(void) {
    warm_threads(IDLE);
    run_thread(exec_in_thread, NULL);
    _exit(9);
}
static void exec_case(void) {
    ends_promptly(by_exec, CODE);
}
static void exec_in_thread_case(void) {
    ends_promptly(by_exec_in_thread, CODE);
}

// The new program starts with the signal mask and the handlers that POSIX says, not with those of an idle thread.
static void exec_from_reused_keeps_mask(void) {
    static char *const argv[] = {"/bin/sh", "-c", "kill -USR1 $$; exit 9", NULL};
    warm_threads(IDLE);
    execv(argv[0], argv);
}
static void exec_mask_case(void) {
    expect_killed(child_status(exec_from_reused_keeps_mask, SECONDS), SIGUSR1);
}

static const struct check_case cases[] = {
    {"exit", exit_case, HOLDS_WHEN_SKIPPED},
    {"quick_exit", quick_exit_case, HOLDS_WHEN_SKIPPED},
    {"underscore_exit", underscore_exit_case, HOLDS_WHEN_SKIPPED},
    {"raw_exit_group", raw_exit_group_case, HOLDS_WHEN_SKIPPED},
    {"abort", abort_case, HOLDS_WHEN_SKIPPED},
    {"crash", crash_case, HOLDS_WHEN_SKIPPED},
    {"reused_thread", reused_thread_case, HOLDS_WHEN_SKIPPED},
    {"reused_thread_quick", reused_thread_quick_case, HOLDS_WHEN_SKIPPED},
    {"reused_thread_abort", reused_thread_abort_case, HOLDS_WHEN_SKIPPED},
    {"return_from_main", return_from_main, HOLDS_WHEN_SKIPPED},
    {"handlers", handlers_case, FAILS_WHEN_SKIPPED},
    {"busy", busy_case, HOLDS_WHEN_SKIPPED},
    {"threads_in_handler", threads_in_handler_case, HOLDS_WHEN_SKIPPED},
    {"exec", exec_case, HOLDS_WHEN_SKIPPED},
    {"exec_in_thread", exec_in_thread_case, HOLDS_WHEN_SKIPPED},
    {"exec_mask", exec_mask_case, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
