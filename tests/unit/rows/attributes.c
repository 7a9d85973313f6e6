// SPDX-License-Identifier: Apache-2.0
//
// Row attributes: a thread is what its attributes asked for, whatever was idle. Stack and guard sizes, user stacks,
// scheduling, affinity, signal mask, detach state, process defaults; and what pthread_getattr_np says of it.
#include <limits.h>
#include <sched.h>
#include <sys/mman.h>

#include "child.h"

enum { KIB = 1024, MIB = 1024 * 1024, IDLE = 3, LOOKS = 4 };

// What pthread_getattr_np says of the calling thread, and where it really is.
struct view {
    char *address, *here;
    size_t size, guard;
    int detach, policy, inherit, cpu_count;
};

static struct view look(void) {
    struct view view;
    pthread_attr_t attr;
    struct sched_param param;
    cpu_set_t cpus;
    void *address;
    char here;
    CHECK_OK(pthread_getattr_np(pthread_self(), &attr));
    CHECK_OK(pthread_attr_getstack(&attr, &address, &view.size));
    CHECK_OK(pthread_attr_getguardsize(&attr, &view.guard));
    CHECK_OK(pthread_attr_getdetachstate(&attr, &view.detach));
    CHECK_OK(pthread_attr_getschedpolicy(&attr, &view.policy));
    CHECK_OK(pthread_attr_getschedparam(&attr, &param));
    CHECK_OK(pthread_attr_getinheritsched(&attr, &view.inherit));
    CHECK_OK(pthread_attr_getaffinity_np(&attr, sizeof cpus, &cpus));
    CHECK_OK(pthread_attr_destroy(&attr));
    view.cpu_count = CPU_COUNT(&cpus);
    view.address = address;
    view.here = &here;
    CHECK(view.here > view.address && view.here < view.address + view.size,
          "the stack is said to be elsewhere");
    return view;
}

static void *look_start(void *p) {
    *(struct view *)p = look();
    return NULL;
}

// Runs a thread with these attributes; its kernel tid.
static pid_t run_with(const pthread_attr_t *attr, void *(*start)(void *), void *arg) {
    struct run_arg run = {start, arg, 0};
    pthread_t thread;
    int64_t busy = busy_threads();
    CHECK_OK(pthread_create(&thread, attr, run_start, &run));
    CHECK_OK(pthread_join(thread, NULL));
    wait_until_settled(busy);
    return run.tid;
}

static pthread_attr_t make_attr(size_t stack, size_t guard) {
    pthread_attr_t attr;
    CHECK_OK(pthread_attr_init(&attr));
    CHECK_OK(pthread_attr_setstacksize(&attr, stack));
    CHECK_OK(pthread_attr_setguardsize(&attr, guard));
    return attr;
}

// ---- sizes ------------------------------------------------------------------------------------------------------

// glibc 2.36 counts the guard as part of the size asked for, and may give a stack up to four times as large from its
// own cache of stacks. Writes to the whole of it but what is in use already.
static void *use_whole_stack(void *p) {
    const size_t *asked = p;
    struct view view = look();
    CHECK(view.size + view.guard >= asked[0], "a stack of %zu + guard %zu instead of %zu", view.size,
          view.guard, asked[0]);
    CHECK(view.size <= 4 * asked[0] + 64 * KIB, "a stack of %zu instead of %zu", view.size, asked[0]);
    CHECK_EQ(view.guard, asked[1]);
    for (volatile char *at = view.here - 8 * KIB; at > view.address; at -= 4 * KIB)
        *at = 1;
    *(volatile char *)view.address = 1;
    return NULL;
}

static const size_t sizes[][2] = {
    {8 * MIB, 4 * KIB}, {64 * KIB, 4 * KIB},   {16 * MIB, 4 * KIB},
    {256 * KIB, 0},     {256 * KIB, 64 * KIB}, {MIB, 4 * KIB},
    {MIB, 0},           {MIB, 16 * KIB},       {32 * MIB, MIB},
    {8 * MIB, 0},
};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void stack_and_guard_sizes(void) {
    warm_threads(IDLE);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < SIZES; i++) {
            pthread_attr_t attr = make_attr(sizes[i][0], sizes[i][1]);
            run_with(&attr, use_whole_stack, (void *)sizes[i]);
            run_with(&attr, use_whole_stack, (void *)sizes[i]);
            CHECK_OK(pthread_attr_destroy(&attr));
        }
    }
}

// From a thread's first frame down to where its stack begins: as much as without thrum, which is asked by starting
// this program once more.
enum { ROOMS = 2 };
static const size_t small_sizes[ROOMS] = {0 /* the least */, 128 * KIB};
static size_t rooms[ROOMS];
static void *tell_room(void *room) {
    char here;
    *(size_t *)room = (size_t)(&here - look().address);
    return NULL;
}
// The kernel threads that the library has made. Under bench/alternatives some are libc's, when none stands by: the
// library's thread-locals make their stacks smaller, as they do for any thread that is passed through.
static uint64_t made(void) {
    return mode_reuses() || loaded_counters() == NULL ? 0 : loaded_counters()->created;
}
static void measure_room(size_t size, size_t *room) {
    pthread_attr_t attr = make_attr(size, 4 * KIB);
    uint64_t before = made();
    int tries = 0;
    do {
        if (tries > 0)
            sleep_ms(1);
        pthread_t thread;
        CHECK_OK(pthread_create(&thread, &attr, tell_room, room));
        CHECK_OK(pthread_join(thread, NULL));
    } while (!mode_reuses() && loaded_counters() != NULL && made() == before && tries++ < 5000);
    CHECK_OK(pthread_attr_destroy(&attr));
}
static void measure_rooms(void) {
    for (int i = 0; i < 2 * ROOMS; i++) // the second time on used threads
        measure_room(small_sizes[i % ROOMS] != 0 ? small_sizes[i % ROOMS]
                                                 : (size_t)sysconf(_SC_THREAD_STACK_MIN),
                     &rooms[i % ROOMS]);
}
static void print_rooms(void) {
    measure_rooms();
    printf("rooms %zu %zu\n", rooms[0], rooms[1]);
}
static void small_stacks_keep_their_size(void) {
    char command[4096 + 128], path[4096] = "";
    size_t plain[ROOMS];
    CHECK_SYS(readlink("/proc/self/exe", path, sizeof path - 1));
    snprintf(command, sizeof command, "unset LD_PRELOAD THRUM_ROW_EXPECTED; '%s' print_rooms", path);
    FILE *stream = popen(command, "r");
    CHECK(stream != NULL, "popen: %s", strerror(errno));
    if (fscanf(stream, "rooms %zu %zu", &plain[0], &plain[1]) != ROOMS)
        CANNOT("the program cannot be started once more");
    pclose(stream);
    measure_rooms();
    for (int i = 0; i < ROOMS; i++)
        CHECK(rooms[i] >= plain[i], "%zu bytes are left to a thread, %zu without thrum", rooms[i], plain[i]);
}

// Threads of equal sizes other than the default are reused too.
static void same_size_is_reused(void) {
    if (!under_thrum())
        return;
    pthread_attr_t attr = make_attr(512 * KIB, 4 * KIB);
    pid_t first = run_with(&attr, do_nothing, NULL);
    CHECK(run_with(&attr, do_nothing, NULL) == first,
          "two threads with stacks of 512 KiB are two kernel threads");
    CHECK_OK(pthread_attr_destroy(&attr));
}

// Idle threads of sizes that are not requested again do not pile up, nor do they drive out the one that is in use.
static void many_sizes(void) {
    enum { MANY = 300, FEW = 64 + 6 }; // as libthrum-cache(7) promises, and the threads that are not idle
    pid_t usual = run_thread(do_nothing, NULL);
    for (int i = 1; i <= MANY; i++) {
        pthread_attr_t attr = make_attr((size_t)(i * 64) * KIB, 4 * KIB);
        run_with(&attr, do_nothing, NULL);
        CHECK_OK(pthread_attr_destroy(&attr));
        expect_reused(usual, run_thread(do_nothing, NULL));
    }
    expect_threads_at_most(FEW);
}

// One byte below the stack, or the guard's far end.
static size_t asked_guard, below;
static void *touch_guard(void *arg) {
    struct view view = look();
    CHECK_EQ(view.guard, asked_guard);
    *(volatile char *)(view.address - below) = 1;
    return arg;
}
static void run_into_guard(void) {
    const size_t guards[] = {0, 4 * KIB, 64 * KIB, 0};
    for (unsigned i = 0; i < sizeof guards / sizeof guards[0]; i++) { // idle threads with all kinds of guards
        pthread_attr_t other = make_attr(MIB, guards[i]);
        run_with(&other, do_nothing, NULL);
    }
    pthread_attr_t attr = make_attr(MIB, asked_guard);
    run_with(&attr, touch_guard, NULL);
}
static void guard_is_there(void) {
    const size_t guards[] = {4 * KIB, 64 * KIB, MIB / 2};
    for (unsigned i = 0; i < sizeof guards / sizeof guards[0]; i++) {
        asked_guard = guards[i];
        below = 1;
        expect_killed(child_status(run_into_guard, 10), SIGSEGV);
        below = asked_guard;
        expect_killed(child_status(run_into_guard, 10), SIGSEGV);
    }
}

static void too_large_fails(void) {
    pthread_attr_t attr = make_attr((size_t)1 << 46, 4 * KIB);
    pthread_t thread;
    warm_threads(IDLE);
    CHECK_EQ(pthread_create(&thread, &attr, do_nothing, NULL), EAGAIN);
    run_thread(do_nothing, NULL);
}

// ---- process defaults ---------------------------------------------------------------------------------------------

static void default_sizes(void) {
    struct view view;
    const size_t asked[2] = {MIB, 32 * KIB};
    pthread_attr_t attr;
    warm_threads(IDLE);
    CHECK_OK(pthread_getattr_default_np(&attr));
    CHECK_OK(pthread_attr_setstacksize(&attr, asked[0]));
    CHECK_OK(pthread_attr_setguardsize(&attr, asked[1]));
    CHECK_OK(pthread_setattr_default_np(&attr));
    for (int i = 0; i < LOOKS; i++)
        run_thread(use_whole_stack, (void *)asked);

    // Explicit attributes are not the defaults.
    pthread_attr_t large = make_attr(8 * MIB, 4 * KIB);
    run_with(&large, look_start, &view);
    CHECK(view.size + view.guard >= 8 * MIB, "explicitly large, but %zu", view.size);

    CHECK_OK(pthread_attr_setstacksize(&attr, 2 * MIB));
    CHECK_OK(pthread_setattr_default_np(&attr));
    const size_t again[2] = {2 * MIB, 32 * KIB};
    for (int i = 0; i < LOOKS; i++)
        run_thread(use_whole_stack, (void *)again);
}

// pthread_attr_init gives the defaults, so a thread made with such attributes and one made with none are alike.
static void initial_attributes(void) {
    struct view with, without;
    pthread_attr_t attr;
    CHECK_OK(pthread_attr_init(&attr));
    run_with(&attr, look_start, &with);
    run_thread(look_start, &without);
    CHECK_EQ(with.size, without.size);
    CHECK_EQ(with.guard, without.guard);
    CHECK_EQ(with.detach, without.detach);
}

// ---- user stacks --------------------------------------------------------------------------------------------------

static void *stay_inside(void *p) {
    const struct iovec_like {
        char *base;
        size_t size;
    } *block = p;
    struct view view = look();
    CHECK(view.here > block->base && view.here < block->base + block->size,
          "not on the stack that was given");
    CHECK(view.address == block->base && view.size == block->size, "pthread_getattr_np names another stack");
    CHECK_EQ(view.guard, 0); // the program's stack has none of libc's
    return NULL;
}

static void user_stack(void) {
    struct {
        char *base;
        size_t size;
    } block = {NULL, 256 * KIB};
    pthread_attr_t attr;
    warm_threads(IDLE);
    for (int i = 0; i < 20; i++) {
        block.base = mmap(NULL, block.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(block.base != MAP_FAILED, "mmap: %s", strerror(errno));
        CHECK_OK(pthread_attr_init(&attr));
        CHECK_OK(pthread_attr_setstack(&attr, block.base, block.size));
        run_with(&attr, stay_inside, &block);
        CHECK_OK(pthread_attr_destroy(&attr));
        CHECK_SYS(munmap(block.base, block.size)); // nothing may use it any more
        run_thread(do_nothing, NULL);
    }
}

// One after the other, each on memory that is gone by the next; ended in each way. The kernel thread is reused.
struct on_own {
    char *base;
    int how; // 0 returns, 1 pthread_exit, 2 from a function further down
    pid_t tid;
};

static __attribute__((noinline)) void leave_from_below(void) {
    volatile char room[16 * KIB];
    room[0] = 1;
    pthread_exit((void *)(intptr_t)(room[0] + 1));
}

static void *on_own_stack(void *p) {
    struct on_own *own = p;
    char here;
    own->tid = kernel_tid();
    CHECK(&here > own->base && &here < own->base + 256 * KIB, "not on the stack that was given");
    if (own->how == 1)
        pthread_exit((void *)1);
    if (own->how == 2)
        leave_from_below();
    return (void *)0;
}

static void user_stacks_in_turn(void) {
    pid_t first = 0;
    for (int i = 0; i < 12; i++) {
        struct on_own own = {NULL, i % 3, 0};
        pthread_attr_t attr;
        pthread_t thread;
        void *result;
        int64_t busy = busy_threads();
        own.base = mmap(NULL, 256 * KIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(own.base != MAP_FAILED, "mmap: %s", strerror(errno));
        CHECK_OK(pthread_attr_init(&attr));
        CHECK_OK(pthread_attr_setstack(&attr, own.base, 256 * KIB));
        CHECK_OK(pthread_create(&thread, &attr, on_own_stack, &own));
        CHECK_OK(pthread_attr_destroy(&attr));
        CHECK_OK(pthread_join(thread, &result));
        CHECK_SYS(munmap(own.base, 256 * KIB));
        CHECK_EQ((intptr_t)result, i % 3);
        wait_until_settled(busy);
        if (i == 0)
            first = own.tid;
        if (!row_is_skipped())
            expect_reused(first, own.tid);
        pid_t other = run_thread(do_nothing, NULL);
        CHECK(other != first || !under_thrum(),
              "a thread with a stack of libc's ran on a kernel thread for others");
    }
}

// It is cancelled while it waits, with a cleanup handler on its own stack.
static int cleaned;
static void clean(void *unused) {
    (void)unused;
    cleaned++;
}
static void *wait_for_ever(void *flag) {
    pthread_cleanup_push(clean, NULL);
    set_flag(flag);
    for (;;)
        pause();
    pthread_cleanup_pop(0);
    return NULL;
}
static void user_stack_cancelled(void) {
    char *base = mmap(NULL, 256 * KIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(base != MAP_FAILED, "mmap: %s", strerror(errno));
    for (int i = 0; i < 6; i++) {
        pthread_attr_t attr;
        pthread_t thread;
        void *result;
        int waits = 0;
        CHECK_OK(pthread_attr_init(&attr));
        CHECK_OK(pthread_attr_setstack(&attr, base, 256 * KIB));
        CHECK_OK(pthread_create(&thread, &attr, wait_for_ever, &waits));
        CHECK_OK(pthread_attr_destroy(&attr));
        await_flag(&waits);
        CHECK_OK(pthread_cancel(thread));
        CHECK_OK(pthread_join(thread, &result));
        CHECK(result == PTHREAD_CANCELED, "it was not cancelled");
        CHECK_EQ(cleaned, i + 1);
        memset(base, 0xa5, 256 * KIB); // nothing stands on it any more
    }
}

// ---- scheduling, affinity, signal mask ------------------------------------------------------------------------------

static void *look_policy(void *arg) {
    (void)arg;
    return (void *)(intptr_t)sched_getscheduler(0);
}
static void *look_policy_into(void *p) {
    *(int *)p = sched_getscheduler(0);
    return NULL;
}

static void explicit_policy(int policy, int priority) {
    int seen = -1;
    pthread_t thread;
    pthread_attr_t attr;
    const struct sched_param param = {priority};
    warm_threads(IDLE);
    CHECK_OK(pthread_attr_init(&attr));
    CHECK_OK(pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED));
    CHECK_OK(pthread_attr_setschedpolicy(&attr, policy));
    CHECK_OK(pthread_attr_setschedparam(&attr, &param));
    int error = pthread_create(&thread, &attr, look_policy_into, &seen);
    if (error == EPERM && geteuid() != 0) {
        run_thread(do_nothing, NULL);
        return;
    }
    CHECK_OK(error);
    CHECK_OK(pthread_join(thread, NULL));
    CHECK_EQ(seen, policy);
    for (int i = 0; i < LOOKS; i++) {
        void *later;
        run_thread_result(look_policy, NULL, &later);
        CHECK_EQ((intptr_t)later, SCHED_OTHER);
    }
}
static void explicit_fifo(void) {
    explicit_policy(SCHED_FIFO, 1);
}
static void explicit_other(void) {
    explicit_policy(SCHED_OTHER, 0);
}

// Inherited scheduling ignores the policy that stands in the attributes.
static void inherited_policy(void) {
    int seen = -1;
    pthread_attr_t attr;
    CHECK_OK(pthread_attr_init(&attr));
    CHECK_OK(pthread_attr_setinheritsched(&attr, PTHREAD_INHERIT_SCHED));
    CHECK_OK(pthread_attr_setschedpolicy(&attr, SCHED_RR));
    const struct sched_param param = {3};
    CHECK_OK(pthread_attr_setschedparam(&attr, &param));
    run_with(&attr, look_policy_into, &seen);
    CHECK_EQ(seen, SCHED_OTHER);
}

static void *look_cpus(void *p) {
    CHECK_SYS(sched_getaffinity(0, sizeof(cpu_set_t), p));
    return NULL;
}

static void affinity(void) {
    cpu_set_t all, one, seen;
    pthread_attr_t attr;
    CHECK_SYS(sched_getaffinity(0, sizeof all, &all));
    int cpu = 0;
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (CPU_EQUAL(&one, &all))
        CANNOT("one CPU only");
    warm_threads(IDLE);
    CHECK_OK(pthread_attr_init(&attr));
    CHECK_OK(pthread_attr_setaffinity_np(&attr, sizeof one, &one));
    for (int i = 0; i < LOOKS; i++) {
        run_with(&attr, look_cpus, &seen);
        CHECK(CPU_EQUAL(&seen, &one), "the attributes' CPU was asked for, %d are allowed", CPU_COUNT(&seen));
        run_thread(look_cpus, &seen);
        CHECK(CPU_EQUAL(&seen, &all), "a later thread may use %d CPUs", CPU_COUNT(&seen));
    }

    // No CPU at all: the creation fails, and nothing else.
    pthread_t thread;
    CPU_ZERO(&one);
    CHECK_OK(pthread_attr_setaffinity_np(&attr, sizeof one, &one));
    CHECK_EQ(pthread_create(&thread, &attr, do_nothing, NULL), EINVAL);
    run_thread(do_nothing, NULL);
}

// The creator's own CPUs are what a thread has without asking, and no reason to make a new one. (Ada's runtime asks for each
// task.) The creator's are other ones later.
static void own_affinity(void) {
    cpu_set_t own, seen;
    pthread_attr_t attr;
    CHECK_SYS(sched_getaffinity(0, sizeof own, &own));
    const size_t sizes[] = {sizeof own, 32};
    for (size_t i = 0; i < 2 && CPU_COUNT(&own) > 0; i++) {
        warm_threads(IDLE);
        CHECK_OK(pthread_attr_init(&attr));
        CHECK_OK(pthread_attr_setaffinity_np(&attr, sizes[i], &own));
        pid_t first = run_with(&attr, look_cpus, &seen);
        CHECK(CPU_EQUAL(&seen, &own), "%d CPUs are allowed", CPU_COUNT(&seen));
        expect_reused(first, run_with(&attr, look_cpus, &seen));
        CHECK(CPU_EQUAL(&seen, &own), "%d CPUs are allowed", CPU_COUNT(&seen));
        CHECK_OK(pthread_attr_destroy(&attr));
        for (int cpu = CPU_SETSIZE - 1; CPU_COUNT(&own) > 1; cpu--)
            CPU_CLR(cpu, &own);
        CHECK_SYS(sched_setaffinity(0, sizeof own, &own));
    }
}

// All CPUs are not "none were set": the creator, which may use one, does not hand that on.
static void affinity_to_all(void) {
    cpu_set_t all, one, seen, every;
    pthread_attr_t attr;
    CHECK_SYS(sched_getaffinity(0, sizeof all, &all));
    if (CPU_COUNT(&all) == 1)
        CANNOT("one CPU only");
    memset(&every, -1, sizeof every);
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &one);
    warm_threads(IDLE);
    CHECK_OK(pthread_attr_init(&attr));
    CHECK_SYS(sched_setaffinity(0, sizeof one, &one));
    CHECK_OK(pthread_attr_setaffinity_np(&attr, sizeof every, &every));
    run_with(&attr, look_cpus, &seen);
    CHECK(CPU_COUNT(&seen) > 1, "all CPUs were asked for, 1 is allowed");
    run_with(NULL, look_cpus, &seen);
    CHECK(CPU_EQUAL(&seen, &one), "nothing was asked for, %d are allowed", CPU_COUNT(&seen));
    CHECK_SYS(sched_setaffinity(0, sizeof all, &all));
}

static void *look_mask(void *p) {
    CHECK_OK(pthread_sigmask(SIG_BLOCK, NULL, p));
    return NULL;
}

static void signal_mask(void) {
    sigset_t mask, seen;
    pthread_attr_t attr;
    warm_threads(IDLE);
    CHECK_SYS(sigemptyset(&mask));
    CHECK_SYS(sigaddset(&mask, SIGUSR2));
    CHECK_SYS(sigaddset(&mask, SIGRTMIN + 3));
    CHECK_OK(pthread_attr_init(&attr));
    CHECK_OK(pthread_attr_setsigmask_np(&attr, &mask));
    for (int i = 0; i < LOOKS; i++) {
        run_with(&attr, look_mask, &seen);
        CHECK(sigismember(&seen, SIGUSR2) == 1 && sigismember(&seen, SIGRTMIN + 3) == 1,
              "signals not blocked");
        CHECK(sigismember(&seen, SIGUSR1) == 0, "a signal blocked that was not asked for");
        run_thread(look_mask, &seen);
        CHECK(sigismember(&seen, SIGUSR2) == 0,
              "a later thread blocks what the attributes of another one blocked");
    }
}

// ---- detach state -------------------------------------------------------------------------------------------------

struct detached {
    int state, reported, detach_itself;
};
static void *report_detach_state(void *p) {
    struct detached *d = p;
    if (d->detach_itself)
        CHECK_OK(pthread_detach(pthread_self()));
    d->state = look().detach;
    set_flag(&d->reported);
    return NULL;
}
static int detach_state_of(const pthread_attr_t *attr, int detach_itself) {
    struct detached d = {.detach_itself = detach_itself};
    pthread_t thread;
    CHECK_OK(pthread_create(&thread, attr, report_detach_state, &d));
    await_flag(&d.reported);
    if (d.state == PTHREAD_CREATE_JOINABLE)
        CHECK_OK(pthread_join(thread, NULL));
    sleep_ms(5);
    return d.state;
}

static void detach_state(void) {
    pthread_attr_t attr;
    CHECK_OK(pthread_attr_init(&attr));
    CHECK_OK(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED));
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(detach_state_of(&attr, 0), PTHREAD_CREATE_DETACHED);
        CHECK_EQ(detach_state_of(NULL, 0), PTHREAD_CREATE_JOINABLE);
        CHECK_EQ(detach_state_of(NULL, 1), PTHREAD_CREATE_DETACHED);
    }
    CHECK_OK(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_JOINABLE));
    CHECK_EQ(detach_state_of(&attr, 0), PTHREAD_CREATE_JOINABLE);
}

// pthread_getattr_np of another thread, and of one that runs with small sizes.
struct shown {
    struct view own;
    int ready, end;
};
static void *show(void *p) {
    struct shown *shown = p;
    shown->own = look();
    set_flag(&shown->ready);
    await_flag(&shown->end);
    return NULL;
}
static void seen_by_others(void) {
    warm_threads(IDLE);
    for (int i = 0; i < SIZES; i++) {
        struct shown shown = {0};
        pthread_attr_t attr = make_attr(sizes[i][0], sizes[i][1]), seen;
        pthread_t thread;
        void *address;
        size_t size, guard;
        CHECK_OK(pthread_create(&thread, &attr, show, &shown));
        await_flag(&shown.ready);
        CHECK_OK(pthread_getattr_np(thread, &seen));
        CHECK_OK(pthread_attr_getstack(&seen, &address, &size));
        CHECK_OK(pthread_attr_getguardsize(&seen, &guard));
        CHECK(address == shown.own.address && size == shown.own.size, "another thread sees another stack");
        CHECK_EQ(guard, shown.own.guard);
        set_flag(&shown.end);
        CHECK_OK(pthread_join(thread, NULL));
    }
}

static const struct check_case cases[] = {
    {"stack_and_guard_sizes", stack_and_guard_sizes, FAILS_WHEN_SKIPPED},
    {"small_stacks_keep_their_size", small_stacks_keep_their_size, HOLDS_WHEN_SKIPPED},
    {"print_rooms", print_rooms, HOLDS_WHEN_SKIPPED}, // for the one before
    {"same_size_is_reused", same_size_is_reused, HOLDS_WHEN_SKIPPED},
    {"many_sizes", many_sizes, HOLDS_WHEN_SKIPPED},
    {"guard_is_there", guard_is_there, FAILS_WHEN_SKIPPED},
    {"too_large_fails", too_large_fails, FAILS_WHEN_SKIPPED},
    {"default_sizes", default_sizes, FAILS_WHEN_SKIPPED},
    {"initial_attributes", initial_attributes, HOLDS_WHEN_SKIPPED},
    {"user_stack", user_stack, FAILS_WHEN_SKIPPED},
    {"user_stacks_in_turn", user_stacks_in_turn, HOLDS_WHEN_SKIPPED},
    {"user_stack_cancelled", user_stack_cancelled, HOLDS_WHEN_SKIPPED},
    {"explicit_fifo", explicit_fifo, FAILS_WHEN_SKIPPED},
    {"explicit_other", explicit_other, HOLDS_WHEN_SKIPPED},
    {"inherited_policy", inherited_policy, HOLDS_WHEN_SKIPPED},
    {"affinity", affinity, FAILS_WHEN_SKIPPED},
    {"own_affinity", own_affinity, HOLDS_WHEN_SKIPPED},
    {"affinity_to_all", affinity_to_all, FAILS_WHEN_SKIPPED},
    {"signal_mask", signal_mask, FAILS_WHEN_SKIPPED},
    {"detach_state", detach_state, FAILS_WHEN_SKIPPED},
    {"seen_by_others", seen_by_others, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
