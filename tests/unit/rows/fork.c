// SPDX-License-Identifier: Apache-2.0
//
// Row fork: the child has one thread and no idle ones, whatever the parent had; it creates, joins and ends threads as any
// process does; so does the parent meanwhile.
#include <sched.h>

#include "child.h"

enum { SECONDS = 8, IDLE = 6, CODE = 21 };

// What a child does to show that it is a process in order. Where main did not fork it, the cache may be off in it: libc
// then has to find out which thread is the last one.
static void use_threads(void) {
    expect_threads_at_most(1); // a fork handler's thread may have been joined a moment ago
    run_together(IDLE);
    for (intptr_t i = 1; i < 10; i++) {
        void *result;
        run_thread_result(do_nothing, (void *)i, &result);
        CHECK_EQ((intptr_t)result, i);
    }
}

static void use_threads_and_exit(void) {
    use_threads();
    exit(CODE);
}

static void reuse_and_exit(void) {
    use_threads();
    expect_reused(run_thread(do_nothing, NULL), run_thread(do_nothing, NULL));
    exit(CODE);
}
static void from_main(void) {
    warm_threads(IDLE);
    for (int i = 0; i < 5; i++) {
        expect_exit(child_status(reuse_and_exit, SECONDS), CODE);
        run_thread(do_nothing, NULL);
    }
}

static void *fork_in_thread(void *arg) {
    expect_exit(child_status(use_threads_and_exit, SECONDS), CODE);
    return arg;
}
static void from_a_thread(void) {
    warm_threads(IDLE);
    for (int i = 0; i < 5; i++)
        run_thread(fork_in_thread, NULL);
}

// The forking thread is the child's only one. Where its start routine returns there, the process ends, with code 0.
static void *return_in_child(void *arg) {
    pid_t pid = fork();
    CHECK_SYS(pid);
    if (pid == 0) {
        use_threads();
        return arg;
    }
    expect_exit(wait_child_for(pid, SECONDS), 0);
    return arg;
}
static void thread_returns_in_child(void) {
    warm_threads(IDLE);
    for (int i = 0; i < 5; i++)
        run_thread(return_in_child, NULL);
}

static void *pthread_exit_in_child(void *arg) {
    pid_t pid = fork();
    CHECK_SYS(pid);
    if (pid == 0) {
        pthread_exit(arg);
    }
    expect_exit(wait_child_for(pid, SECONDS), 0);
    return arg;
}
static void thread_exits_in_child(void) {
    warm_threads(IDLE);
    for (int i = 0; i < 5; i++)
        run_thread(pthread_exit_in_child, NULL);
}

// It is still itself: joinable by a thread of the child, its result kept, its keys and cleanup in order.
static pthread_key_t key;
static int key_destroyed;
static void destroy_key(void *value) {
    key_destroyed += *(int *)value;
}
static pthread_t forker;
static void *join_forker(void *arg) {
    void *result;
    (void)arg;
    CHECK_OK(pthread_join(forker, &result));
    CHECK_EQ((intptr_t)result, 99);
    CHECK_EQ(key_destroyed, 5);
    exit(CODE);
}
static void *be_joined_in_child(void *arg) {
    static int five = 5;
    forker = pthread_self();
    CHECK_OK(pthread_setspecific(key, &five));
    pid_t pid = fork();
    CHECK_SYS(pid);
    if (pid == 0) {
        pthread_t joiner;
        key_destroyed = 0;
        CHECK(pthread_equal(pthread_self(), forker), "pthread_self changed in the child");
        CHECK(pthread_getspecific(key) == &five, "the key's value is lost in the child");
        CHECK_OK(pthread_create(&joiner, NULL, join_forker, NULL));
        pthread_exit((void *)99);
    }
    expect_exit(wait_child_for(pid, SECONDS), CODE);
    return arg;
}
static void thread_joined_in_child(void) {
    CHECK_OK(pthread_key_create(&key, destroy_key));
    warm_threads(IDLE);
    for (int i = 0; i < 3; i++)
        run_thread(be_joined_in_child, NULL);
}

// The main thread of the child calls pthread_exit: its last thread ends it.
static void leave_last_thread(void) {
    pthread_t thread;
    CHECK_OK(pthread_create(&thread, NULL, do_nothing, NULL));
    CHECK_OK(pthread_detach(thread));
    pthread_exit(NULL);
}
static void last_thread_of_child(void) {
    warm_threads(IDLE);
    for (int i = 0; i < 5; i++)
        expect_exit(child_status(leave_last_thread, SECONDS), 0);
}

// Children of children.
static void fork_again(void) {
    use_threads();
    expect_exit(child_status(use_threads_and_exit, SECONDS), CODE);
    run_thread(fork_in_thread, NULL);
    exit(CODE);
}
static void grandchildren(void) {
    warm_threads(IDLE);
    expect_exit(child_status(fork_again, SECONDS), CODE);
}

// Threads that live in the parent do not in the child: their counts must not keep it, nor be joined there.
static void *hold(void *flag) {
    await_flag(flag);
    return NULL;
}
static void with_live_threads(void) {
    int end = 0;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK_OK(pthread_create(&threads[i], NULL, hold, &end));
    expect_exit(child_status(use_threads_and_exit, SECONDS), CODE);
    expect_exit(child_status(leave_last_thread, SECONDS), 0);
    set_flag(&end);
    for (int i = 0; i < 4; i++)
        CHECK_OK(pthread_join(threads[i], NULL));
}

// fork by several threads while others create, join and detach threads: whatever lock or list is in use at that moment,
// the child is fit for work.
enum { FORKERS = 3, CHURNERS = 3, STORM_MS = 1200 };
static int storm_over, forks;

static void *churn(void *arg) {
    while (!__atomic_load_n(&storm_over, __ATOMIC_ACQUIRE)) {
        pthread_t joined, detached;
        CHECK_OK(pthread_create(&joined, NULL, do_nothing, NULL));
        CHECK_OK(pthread_create(&detached, NULL, do_nothing, NULL));
        CHECK_OK(pthread_detach(detached));
        CHECK_OK(pthread_join(joined, NULL));
    }
    return arg;
}
static void work_a_little(void) {
    pthread_t thread;
    for (int i = 0; i < 3; i++) {
        CHECK_OK(pthread_create(&thread, NULL, do_nothing, NULL));
        CHECK_OK(pthread_join(thread, NULL));
    }
}
static void *storm(void *arg) {
    while (!__atomic_load_n(&storm_over, __ATOMIC_ACQUIRE)) {
        expect_exit(child_status(work_a_little, SECONDS), 0);
        __atomic_fetch_add(&forks, 1, __ATOMIC_RELAXED);
    }
    return arg;
}
static void fork_storm(void) {
    pthread_t threads[FORKERS + CHURNERS];
    for (int i = 0; i < FORKERS + CHURNERS; i++)
        CHECK_OK(pthread_create(&threads[i], NULL, i < FORKERS ? storm : churn, NULL));
    sleep_ms(STORM_MS);
    set_flag(&storm_over);
    for (int i = 0; i < FORKERS + CHURNERS; i++)
        CHECK_OK(pthread_join(threads[i], NULL));
    PREMISE(forks > 0, "no fork was made");
}

// Fork handlers may use threads on all three occasions.
static int handler_runs;
static void use_a_thread(void) {
    pthread_t thread;
    CHECK_OK(pthread_create(&thread, NULL, do_nothing, NULL));
    CHECK_OK(pthread_join(thread, NULL));
    handler_runs++;
}
static void check_handlers(void) {
    CHECK_EQ(handler_runs, 2);
    exit(CODE);
}
static void fork_handlers(void) {
    warm_threads(IDLE);
    CHECK_OK(pthread_atfork(use_a_thread, use_a_thread, use_a_thread));
    expect_exit(child_status(check_handlers, SECONDS), CODE);
    CHECK_EQ(handler_runs, 2);
}

// Children that libc's fork does not make: clone with a stack of the caller's and without shared memory, and the bare
// system calls. The child of those is a copy of which libc knows nothing; glibc without thrum lets it use threads.
static int start_clone(void *arg) {
    (void)arg;
    use_threads();
    _exit(CODE);
}
static pid_t by_clone(void) {
    static _Alignas(16) char stack[256 * 1024];
    return clone(start_clone, stack + sizeof stack, SIGCHLD, NULL);
}
static pid_t by_raw_clone(void) {
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}
#ifdef SYS_fork
static pid_t by_raw_fork(void) {
    return (pid_t)syscall(SYS_fork);
}
#endif
static void *make_child(void *make) {
    pid_t pid = (*(pid_t(**)(void))make)();
    CHECK_SYS(pid);
    if (pid == 0) {
        use_threads();
        _exit(CODE);
    }
    expect_exit(wait_child_for(pid, SECONDS), CODE);
    return NULL;
}
static void made_by(pid_t (*make)(void)) {
    warm_threads(IDLE);
    for (int i = 0; i < 3; i++) {
        make_child(&make);
        run_thread(make_child, &make);
    }
}
static void cloned(void) {
    made_by(by_clone);
}
static void cloned_raw(void) {
    made_by(by_raw_clone);
}
static void forked_raw(void) {
#ifdef SYS_fork
    made_by(by_raw_fork);
#else
    CANNOT("there is no such system call on this architecture");
#endif
}

static const struct check_case cases[] = {
    {"from_main", from_main, FAILS_WHEN_SKIPPED},
    {"from_a_thread", from_a_thread, FAILS_WHEN_SKIPPED},
    {"thread_returns_in_child", thread_returns_in_child, FAILS_WHEN_SKIPPED},
    {"thread_exits_in_child", thread_exits_in_child, HOLDS_WHEN_SKIPPED},
    {"thread_joined_in_child", thread_joined_in_child, HOLDS_WHEN_SKIPPED},
    {"last_thread_of_child", last_thread_of_child, FAILS_WHEN_SKIPPED},
    {"grandchildren", grandchildren, FAILS_WHEN_SKIPPED},
    {"with_live_threads", with_live_threads, HOLDS_WHEN_SKIPPED},
    {"fork_storm", fork_storm, FAILS_WHEN_SKIPPED},
    {"fork_handlers", fork_handlers, FAILS_WHEN_SKIPPED},
    {"cloned", cloned, FAILS_WHEN_SKIPPED},
    {"cloned_raw", cloned_raw, FAILS_WHEN_SKIPPED},
    {"forked_raw", forked_raw, FAILS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
