// SPDX-License-Identifier: Apache-2.0
//
// Row sandbox: once a process is under a seccomp filter of its own the library makes no system call that libc would not
// make, whether it had been set up before or not; nor does it where it is switched off.
#include <sched.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>

#include "filter.h"

// Each call that the filter does not know is noted, and left out.
enum { NOTES = 64 };
static volatile int noted[NOTES], notes;
static void note(int sig, siginfo_t *info, void *context) {
    (void)sig, (void)context;
    if (notes < NOTES)
        noted[notes++] = info->si_syscall;
}

// What libc needs to make, end and join threads, to reach them, and to say that a check has failed.
static const long of_libc[] = {SYS_mmap,
                               SYS_mprotect,
                               SYS_munmap,
                               SYS_madvise,
                               SYS_brk,
                               SYS_clone,
                               SYS_clone3,
                               SYS_rseq,
                               SYS_set_robust_list,
                               SYS_rt_sigprocmask,
                               SYS_rt_sigaction,
                               SYS_rt_sigreturn,
                               SYS_futex,
                               SYS_exit,
                               SYS_exit_group,
                               SYS_write,
                               SYS_newfstatat,
                               SYS_prlimit64,
                               SYS_getrandom,
                               SYS_clock_nanosleep,
                               -1};

static void enter_sandbox_by(void (*install)(struct filter *), const long *more) {
    static struct filter filter;
    long calls[FILTER_MOST];
    int count = 0;
    for (const long *call = of_libc; *call >= 0; call++)
        calls[count++] = *call;
    for (; more != NULL && *more >= 0; more++)
        calls[count++] = *more;
    calls[count] = -1;
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO | SA_NODEFER};
    CHECK_SYS(sigaction(SIGSYS, &action, NULL));
    filter_make(&filter, calls, SECCOMP_RET_ALLOW, SECCOMP_RET_TRAP);
    install(&filter);
}

static void enter_sandbox(const long *more) {
    enter_sandbox_by(filter_install, more);
}

static void expect_no_notes(void) {
    for (int i = 0; i < notes; i++)
        fprintf(stderr, "system call %d\n", noted[i]);
    CHECK(notes == 0, "%d system calls that a filter may kill for", notes);
}

static void *sleep_a_little(void *arg) {
    usleep(2000);
    return arg;
}

static void use_threads(void) {
    pthread_t threads[4], thread;
    void *result;
    for (int i = 0; i < 4; i++)
        CHECK_OK(pthread_create(&threads[i], NULL, sleep_a_little, (void *)(intptr_t)i));
    for (int i = 0; i < 4; i++) {
        CHECK_OK(pthread_join(threads[i], &result));
        CHECK_EQ((intptr_t)result, i);
    }
    for (int i = 0; i < 8; i++) {
        CHECK_OK(pthread_create(&thread, NULL, do_nothing, NULL));
        CHECK_OK(pthread_join(thread, NULL));
    }
    CHECK_OK(pthread_create(&thread, NULL, do_nothing, NULL));
    CHECK_OK(pthread_detach(thread));
    usleep(20000);
}

static void first_thread_comes_after(void) {
    enter_sandbox(NULL);
    use_threads();
    expect_no_notes();
}

static void threads_before_and_after(void) {
    use_threads();
    enter_sandbox(NULL);
    use_threads();
    expect_no_notes();
}

// Threads that began before the filter and end after it.
static volatile int is_released;
static void *wait_for_release(void *arg) {
    while (!is_released)
        usleep(1000);
    return arg;
}
static void threads_across(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        CHECK_OK(pthread_create(&threads[i], NULL, wait_for_release, NULL));
    CHECK_OK(pthread_detach(threads[2]));
    enter_sandbox(NULL);
    is_released = 1;
    CHECK_OK(pthread_join(threads[0], NULL));
    CHECK_OK(pthread_join(threads[1], NULL));
    use_threads();
    expect_no_notes();
}

// The filter holds for threads that are just beginning or ending, on new kernel threads and on reused ones. A call of the library's
// own would be made with the signal blocked, and so end the process.
static void threads_in_the_midst(void) {
    enum { ROUNDS = 24 };
    for (int i = 0; i < ROUNDS; i++) {
        pid_t child = fork();
        CHECK_SYS(child);
        if (child == 0) {
            pthread_t threads[3];
            use_threads();
            for (int k = 0; k < 3; k++)
                CHECK_OK(pthread_create(&threads[k], NULL, k == 2 ? do_nothing : wait_for_release, NULL));
            enter_sandbox_by(filter_install_for_all, NULL);
            is_released = 1;
            for (int k = 0; k < 3; k++)
                CHECK_OK(pthread_join(threads[k], NULL));
            expect_no_notes();
            _exit(0);
        }
        expect_exit(wait_child(child), 0);
    }
}

// A creation takes a while where the kernel makes the new stack resident at once.
static volatile int is_creating;
static void create_slowly(pthread_t *thread) {
    pthread_attr_t attributes;
    if (mlockall(MCL_FUTURE) != 0)
        CANNOT("mlockall: %s", strerror(errno));
    CHECK_OK(pthread_attr_init(&attributes));
    CHECK_OK(pthread_attr_setstacksize(&attributes, 6 * 1024 * 1024));
    is_creating = 1;
    int error = pthread_create(thread, &attributes, do_nothing, NULL);
    if (error == EAGAIN)
        CANNOT("RLIMIT_MEMLOCK allows no stack");
    CHECK_OK(error);
    CHECK_OK(pthread_attr_destroy(&attributes));
}
static void after_creation_began(int us) {
    while (!is_creating)
        sched_yield();
    usleep((useconds_t)us);
}

// The first thread of the cache's is in the midst of its creation when one of libc's installs the filter.
static void *confine_all(void *arg) {
    after_creation_began((int)(intptr_t)arg);
    enter_sandbox_by(filter_install_for_all, NULL);
    return NULL;
}
static void create_first_beside_filter(int us) {
    pthread_t passed, thread;
    pthread_attr_t attributes;
    sigset_t mask;
    CHECK_OK(pthread_sigmask(SIG_SETMASK, NULL, &mask));
    CHECK_OK(pthread_attr_init(&attributes));
    CHECK_OK(pthread_attr_setsigmask_np(&attributes, &mask)); // with which the cache leaves it to libc
    CHECK_OK(pthread_create(&passed, &attributes, confine_all, (void *)(intptr_t)us));
    create_slowly(&thread);
    CHECK_OK(pthread_join(passed, NULL));
    CHECK_OK(pthread_join(thread, NULL));
    expect_no_notes();
}

// Two threads install a filter each at the same time. The first of them allows all.
static void *allow_all(void *arg) {
    static const long none[] = {-1};
    struct filter filter;
    filter_make(&filter, none, SECCOMP_RET_ALLOW, SECCOMP_RET_ALLOW);
    after_creation_began((int)(intptr_t)arg);
    filter_install_for_all(&filter);
    return NULL;
}
static void *confine_all_next(void *arg) {
    static const long others[] = {SYS_prctl, SYS_seccomp, -1};
    after_creation_began((int)(intptr_t)arg + 100);
    enter_sandbox_by(filter_install_for_all, others);
    return NULL;
}
static void create_beside_two_filters(int us) {
    pthread_t first, second, thread;
    CHECK_OK(pthread_create(&first, NULL, allow_all, (void *)(intptr_t)us));
    CHECK_OK(pthread_create(&second, NULL, confine_all_next, (void *)(intptr_t)us));
    create_slowly(&thread);
    CHECK_OK(pthread_join(first, NULL));
    CHECK_OK(pthread_join(second, NULL));
    CHECK_OK(pthread_join(thread, NULL));
    expect_no_notes();
}

static void in_children(void (*run)(int us)) {
    enum { ROUNDS = 8 };
    for (int i = 0; i < ROUNDS; i++) {
        pid_t child = fork();
        CHECK_SYS(child);
        if (child == 0) {
            run(i * 50);
            _exit(0);
        }
        expect_exit(wait_child_for(child, 20), 0);
    }
}
static void first_thread_in_the_midst(void) {
    in_children(create_first_beside_filter);
}
static void two_filters_at_once(void) {
    in_children(create_beside_two_filters);
}

// The kernel ends a thread alone: for a call that strict mode or a filter does not allow. The one that joins it is told.
static void *enter_strict_mode(void *arg) {
    usleep(10000);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    return arg;
}
static void *be_killed(void *arg) {
    static const long calls[] = {SYS_getppid, -1};
    struct filter filter;
    filter_make(&filter, calls, SECCOMP_RET_KILL_THREAD, SECCOMP_RET_ALLOW);
    filter_install(&filter);
    usleep(10000);
    getppid();
    return arg;
}
static void *sleep_and_answer(void *arg) {
    usleep(50000);
    return arg;
}
static void threads_that_are_killed(void) {
    void *(*const functions[])(void *) = {enter_strict_mode, be_killed};
    pthread_t thread, other;
    void *result;
    struct timespec soon;
    int error;
    CHECK_OK(pthread_create(&other, NULL, sleep_and_answer, (void *)2));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(pthread_create(&thread, NULL, functions[i], (void *)1));
        CHECK_OK(pthread_join(thread, &result));
        CHECK_OK(pthread_create(&thread, NULL, functions[i], (void *)1));
        clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_sec += 30;
        CHECK_OK(pthread_timedjoin_np(thread, &result, &soon));
        CHECK_OK(pthread_create(&thread, NULL, functions[i], (void *)1));
        while ((error = pthread_tryjoin_np(thread, &result)) == EBUSY)
            usleep(1000);
        CHECK_EQ(error, 0);
    }
    CHECK_OK(pthread_join(other, &result));
    CHECK_EQ((intptr_t)result, 2);
}

// In a child that it has forked itself the thread is joined by one of libc's.
static pthread_t forker;
static void *join_forker(void *arg) {
    void *result;
    CHECK_OK(pthread_join(forker, &result));
    _exit(0);
    return arg;
}
static void *fork_and_be_killed(void *arg) {
    pthread_t thread;
    pid_t child = fork();
    CHECK_SYS(child);
    if (child == 0) {
        forker = pthread_self();
        CHECK_OK(pthread_create(&thread, NULL, join_forker, NULL));
        usleep(10000);
        return be_killed(arg);
    }
    expect_exit(wait_child_for(child, 10), 0);
    return arg;
}
static void forker_is_killed(void) {
    pthread_t thread;
    CHECK_OK(pthread_create(&thread, NULL, fork_and_be_killed, NULL));
    CHECK_OK(pthread_join(thread, NULL));
}

// The calls that have a function in the library, each once.
static void calls_after(void) {
    static const long needed[] = {
        SYS_sched_setscheduler, SYS_setpriority, SYS_prctl,       SYS_fcntl, SYS_getrusage,
        SYS_sched_setaffinity,  SYS_wait4,       SYS_personality, -1};
    cpu_set_t set;
    struct rusage usage;
    struct timespec time;
    CHECK_SYS(sched_getaffinity(0, sizeof set, &set));
    enter_sandbox(needed);
    setpriority(PRIO_PROCESS, 0, 3);
    prctl(PR_SET_NAME, "sandboxed");
    CHECK_SYS(fcntl(1, F_GETFD));
    CHECK_SYS(getrusage(RUSAGE_SELF, &usage));
    CHECK_SYS(clock_gettime(CLOCK_MONOTONIC, &time));
    CHECK_SYS(sched_setaffinity(0, sizeof set, &set));
    CHECK_SYS(personality(0xffffffff));
    pid_t child = fork();
    CHECK_SYS(child);
    if (child == 0) {
        use_threads();
        expect_no_notes();
        _exit(0);
    }
    expect_exit(wait_child(child), 0);
    use_threads();
    expect_no_notes();
}

static void switched_off(void) {
    check_with_env("THRUM_CACHE", "off");
    use_threads();
    enter_sandbox(NULL);
    use_threads();
    expect_no_notes();
}
static void switched_off_first_thread(void) {
    check_with_env("THRUM_CACHE", "off");
    enter_sandbox(NULL);
    use_threads();
    expect_no_notes();
}

// Main ends before the others do.
static void main_ends(void) {
    pid_t child = fork();
    CHECK_SYS(child);
    if (child == 0) {
        pthread_t thread;
        CHECK(dlopen("libgcc_s.so.1", RTLD_NOW) != NULL, "%s", dlerror()); // as pthread_exit would
        enter_sandbox(NULL);
        CHECK_OK(pthread_create(&thread, NULL, sleep_a_little, NULL));
        pthread_exit(NULL);
    }
    expect_exit(wait_child(child), 0);
}

static const struct check_case cases[] = {
    {"first_thread_comes_after", first_thread_comes_after, FAILS_WHEN_SKIPPED},
    {"threads_before_and_after", threads_before_and_after, HOLDS_WHEN_SKIPPED},
    {"threads_across", threads_across, HOLDS_WHEN_SKIPPED},
    {"threads_in_the_midst", threads_in_the_midst, HOLDS_WHEN_SKIPPED},
    {"first_thread_in_the_midst", first_thread_in_the_midst, HOLDS_WHEN_SKIPPED},
    {"two_filters_at_once", two_filters_at_once, HOLDS_WHEN_SKIPPED},
    {"threads_that_are_killed", threads_that_are_killed, HOLDS_WHEN_SKIPPED},
    {"forker_is_killed", forker_is_killed, HOLDS_WHEN_SKIPPED},
    {"calls_after", calls_after, FAILS_WHEN_SKIPPED},
    {"switched_off", switched_off, HOLDS_WHEN_SKIPPED},
    {"switched_off_first_thread", switched_off_first_thread, HOLDS_WHEN_SKIPPED},
    {"main_ends", main_ends, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
