// SPDX-License-Identifier: Apache-2.0
//
// Row inherit: a new thread has its creator's CPU affinity and name, as they are at the creation, and no alternate
// signal stack; whatever a thread before it on the same kernel thread had, or was given by others.
#include <sched.h>
#include <sys/prctl.h>

#include "child.h"

enum { IDLE = 3, LOOKS = 4 };

// What the calling thread sees of itself.
struct view {
    cpu_set_t cpus;
    char name[16];
    stack_t stack;
};

static struct view look(void) {
    struct view view;
    memset(&view, 0, sizeof view);
    CHECK_SYS(sched_getaffinity(0, sizeof view.cpus, &view.cpus));
    CHECK_SYS(prctl(PR_GET_NAME, view.name, 0, 0, 0));
    CHECK_SYS(sigaltstack(NULL, &view.stack));
    return view;
}

static void *look_start(void *p) {
    *(struct view *)p = look();
    return NULL;
}

// Threads that the caller creates now look like the caller.
static void expect_like_caller(const char *when) {
    struct view mine = look();
    for (int i = 0; i < LOOKS; i++) {
        struct view theirs;
        run_thread(look_start, &theirs);
        CHECK(CPU_EQUAL(&mine.cpus, &theirs.cpus), "%s: %d CPUs instead of the creator's %d", when,
              CPU_COUNT(&theirs.cpus), CPU_COUNT(&mine.cpus));
        CHECK(strcmp(mine.name, theirs.name) == 0, "%s: name '%s' instead of the creator's '%s'", when,
              theirs.name, mine.name);
        CHECK(theirs.stack.ss_flags == SS_DISABLE, "%s: starts with an alternate signal stack", when);
    }
}

static cpu_set_t one_cpu(void) {
    cpu_set_t all, one;
    CHECK_SYS(sched_getaffinity(0, sizeof all, &all));
    if (CPU_COUNT(&all) < 2)
        CANNOT("one CPU only");
    CPU_ZERO(&one);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_SET(cpu, &one);
    return one;
}

// ---- ways to change oneself -------------------------------------------------------------------------------------

static void affinity(void) {
    cpu_set_t one = one_cpu();
    CHECK_SYS(sched_setaffinity(0, sizeof one, &one));
}
static void pthread_affinity(void) {
    cpu_set_t one = one_cpu();
    CHECK_OK(pthread_setaffinity_np(pthread_self(), sizeof one, &one));
}
static void syscall_affinity(void) {
    cpu_set_t one = one_cpu();
    CHECK_SYS(syscall(SYS_sched_setaffinity, kernel_tid(), sizeof one, &one));
}
static void name(void) {
    CHECK_SYS(prctl(PR_SET_NAME, "renamed-prctl", 0, 0, 0));
}
static void pthread_name(void) {
    CHECK_OK(pthread_setname_np(pthread_self(), "renamed-np"));
}
static void syscall_name(void) {
    CHECK_SYS(syscall(SYS_prctl, PR_SET_NAME, "renamed-call", 0, 0, 0));
}
static void write_name(const char *path, const char *text) {
    int fd = open(path, O_WRONLY);
    CHECK_SYS(fd);
    CHECK_EQ(write(fd, text, strlen(text)), strlen(text));
    CHECK_SYS(close(fd));
}
static void file_name(void) {
    write_name("/proc/thread-self/comm", "renamed-file");
}
static void signal_stack(void) {
    static char memory[65536];
    const stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    CHECK_SYS(sigaltstack(&stack, NULL));
}

typedef void (*change_function)(void);

static void *change_and_end(void *p) {
    (*(change_function *)p)();
    return NULL;
}
static void *change_and_create(void *p) {
    (*(change_function *)p)();
    expect_like_caller("child of a thread that changed itself");
    return NULL;
}

static void ended(change_function change) {
    warm_threads(IDLE);
    run_thread(change_and_end, &change);
    expect_like_caller("after a thread that had changed itself");
}
static void creator(change_function change) {
    warm_threads(IDLE);
    run_thread(change_and_create, &change);
    expect_like_caller("after a creator that had changed itself");
}
static void of_main(change_function change) {
    warm_threads(IDLE);
    change();
    expect_like_caller("after main changed itself");
}

#define WAYS(change)                                                                                         \
    static void change##_ended(void) {                                                                       \
        ended(change);                                                                                       \
    }                                                                                                        \
    static void change##_creator(void) {                                                                     \
        creator(change);                                                                                     \
    }                                                                                                        \
    static void change##_of_main(void) {                                                                     \
        of_main(change);                                                                                     \
    }
WAYS(affinity)
WAYS(pthread_affinity)
WAYS(syscall_affinity)
WAYS(name)
WAYS(pthread_name)
WAYS(syscall_name)
WAYS(file_name)
WAYS(signal_stack)

// ---- changed by main --------------------------------------------------------------------------------------------

struct target {
    pthread_t thread;
    pid_t tid;
    int started, changed;
};

static void *be_changed(void *p) {
    struct target *target = p;
    target->tid = kernel_tid();
    set_flag(&target->started);
    await_flag(&target->changed);
    return NULL;
}

static void changed_by_main(void (*change)(const struct target *)) {
    struct target target = {0};
    warm_threads(IDLE);
    int64_t busy = busy_threads();
    CHECK_OK(pthread_create(&target.thread, NULL, be_changed, &target));
    await_flag(&target.started);
    change(&target);
    set_flag(&target.changed);
    CHECK_OK(pthread_join(target.thread, NULL));
    wait_until_settled(busy);
    expect_like_caller("after main had changed a thread that ended");
}

static void other_affinity(const struct target *t) {
    cpu_set_t one = one_cpu();
    CHECK_OK(pthread_setaffinity_np(t->thread, sizeof one, &one));
}
static void other_affinity_by_tid(const struct target *t) {
    cpu_set_t one = one_cpu();
    CHECK_SYS(sched_setaffinity(t->tid, sizeof one, &one));
}
static void other_name(const struct target *t) {
    CHECK_OK(pthread_setname_np(t->thread, "renamed-main"));
}
static void other_name_by_file(const struct target *t) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", (int)t->tid);
    write_name(path, "renamed-by-file");
}

static void affinity_by_main(void) {
    changed_by_main(other_affinity);
}
static void affinity_by_main_and_tid(void) {
    changed_by_main(other_affinity_by_tid);
}
static void name_by_main(void) {
    changed_by_main(other_name);
}
static void name_by_main_and_file(void) {
    changed_by_main(other_name_by_file);
}

// Another process (taskset) changes main, whose later threads inherit it.
static void affinity_from_outside(void) {
    cpu_set_t one = one_cpu();
    pid_t main_tid = kernel_tid();
    warm_threads(IDLE);
    pid_t pid = fork();
    CHECK_SYS(pid);
    if (pid == 0)
        _exit(sched_setaffinity(main_tid, sizeof one, &one) == 0 ? 0 : CHECK_EXIT_CANNOT);
    expect_exit(wait_child(pid), 0);
    struct view mine = look();
    PREMISE(CPU_COUNT(&mine.cpus) == 1, "the change changed nothing");
    expect_like_caller("after another process changed main");
}

// A thread may find its own values with the calls that take a pthread_t.
static void *look_by_pthread(void *arg) {
    struct view mine = look();
    cpu_set_t cpus;
    char own[16];
    CHECK_OK(pthread_getaffinity_np(pthread_self(), sizeof cpus, &cpus));
    CHECK(CPU_EQUAL(&cpus, &mine.cpus), "pthread_getaffinity_np and sched_getaffinity differ");
    CHECK_OK(pthread_getname_np(pthread_self(), own, sizeof own));
    CHECK(strcmp(own, mine.name) == 0, "pthread_getname_np says '%s', prctl '%s'", own, mine.name);
    return arg;
}
static void same_by_pthread(void) {
    name();
    for (int i = 0; i < LOOKS; i++)
        run_thread(look_by_pthread, NULL);
}

#define WAYS_CASES(change)                                                                                   \
    {#change "_ended", change##_ended, FAILS_WHEN_SKIPPED},                                                  \
        {#change "_creator", change##_creator, FAILS_WHEN_SKIPPED}, {                                        \
#change "_of_main", change##_of_main, FAILS_WHEN_SKIPPED                                             \
    }

static const struct check_case cases[] = {
    WAYS_CASES(affinity),
    WAYS_CASES(pthread_affinity),
    WAYS_CASES(syscall_affinity),
    WAYS_CASES(name),
    WAYS_CASES(pthread_name),
    WAYS_CASES(syscall_name),
    WAYS_CASES(file_name),
    {"signal_stack_ended", signal_stack_ended, FAILS_WHEN_SKIPPED},
    {"signal_stack_creator", signal_stack_creator, FAILS_WHEN_SKIPPED},
    {"signal_stack_of_main", signal_stack_of_main, HOLDS_WHEN_SKIPPED},
    {"affinity_by_main", affinity_by_main, FAILS_WHEN_SKIPPED},
    {"affinity_by_main_and_tid", affinity_by_main_and_tid, FAILS_WHEN_SKIPPED},
    {"name_by_main", name_by_main, FAILS_WHEN_SKIPPED},
    {"name_by_main_and_file", name_by_main_and_file, FAILS_WHEN_SKIPPED},
    {"affinity_from_outside", affinity_from_outside, FAILS_WHEN_SKIPPED},
    {"same_by_pthread", same_by_pthread, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
