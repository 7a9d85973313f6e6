// SPDX-License-Identifier: Apache-2.0
//
// The modes of libthrum-alternatives.so (THRUM_ALTERNATIVE): that they are at work, what in them is not as without thrum,
// and what could go wrong in them only. run-row.sh sets THRUM_ROW_MODE; all else is in the other rows' programs.
#include <ctype.h>
#include <dirent.h>
#include <locale.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "child.h"

enum { SECONDS = 8, CODE = 21, MANY = 24, MODE_USUAL = 16, ROUNDS = 200, STACK_ROUNDS = 40 };

static int mode_is(const char *name) {
    const char *mode = getenv("THRUM_ROW_MODE");
    PREMISE(mode != NULL, "run me with THRUM_ROW_MODE set");
    return strcmp(mode, name) == 0;
}

static uint64_t created(void) {
    return loaded_counters()->created;
}

static void run_some(int count) {
    for (int i = 0; i < count; i++)
        run_thread(do_nothing, NULL);
}

// Until threads stand by, or stacks are free.
static void wait_until_ready(uint64_t count) {
    for (int i = 0; i < 5000 && loaded_counters()->idle < count; i++)
        sleep_ms(1);
    CHECK(loaded_counters()->idle >= count, "%ju ready, expected %ju", (uintmax_t)loaded_counters()->idle,
          (uintmax_t)count);
}

// Main, those that stand by, and the one that makes them. What stands by is counted first: it becomes more meanwhile.
static int threads_of_mode(void) {
    return 1 + mode_is("standby") + (mode_is("stacks") ? 0 : (int)loaded_counters()->idle);
}

// Joining returns a moment before the kernel has let go of a thread, without thrum too: a call that wants a process of one
// thread fails as long.
static void wait_until_joined_are_gone(void) {
    int most = 0;
    for (int i = 0; i < 5000; i++) {
        most = threads_of_mode();
        if (kernel_threads() <= most)
            return;
        sleep_ms(1);
    }
    CHECK(kernel_threads() <= most, "%d kernel threads, expected at most %d", kernel_threads(), most);
}

static void make_ready(void) {
    run_together(MANY);
    wait_until_ready(1);
}

static void served(void) {
    make_ready();
    uint64_t before = created();
    for (int i = 0; i < 20; i++) {
        wait_until_ready(1);
        run_thread(do_nothing, NULL);
    }
    CHECK_EQ(created() - before, 20);
    CHECK_EQ(loaded_counters()->reused, 0);
    CHECK_EQ(loaded_counters()->retired, 0);
}

// A process that makes no thread has no more than its own.
static void nothing_before_the_first(void) {
    CHECK_EQ(kernel_threads(), 1);
}

static void no_more_than_the_usual(void) {
    run_together(MANY);
    run_together(MANY);
    sleep_ms(100);
    if (!mode_is("stacks"))
        CHECK(loaded_counters()->idle <= MODE_USUAL, "%ju stand by", (uintmax_t)loaded_counters()->idle);
    else
        expect_threads_at_most(1);
}

static void *detach_self(void *arg) {
    CHECK_OK(pthread_detach(pthread_self()));
    return arg;
}
static void detached(void) {
    pthread_t thread;
    pthread_attr_t attr;
    CHECK_OK(pthread_attr_init(&attr));
    CHECK_OK(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED));
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_OK(pthread_create(&thread, &attr, do_nothing, NULL));
        CHECK_OK(pthread_create(&thread, NULL, detach_self, NULL));
        CHECK_OK(pthread_create(&thread, NULL, do_nothing, NULL));
        CHECK_OK(pthread_detach(thread));
    }
    expect_threads_at_most(1 + MODE_USUAL + 1);
}

// Stacks come back, of joined and of detached threads, and no stack is two threads' at once.
static char *volatile held[MANY];
static int at_work;
static void *hold_stack(void *index) {
    char here;
    intptr_t i = (intptr_t)index;
    held[i] = &here;
    for (intptr_t other = 0; other < MANY; other++)
        if (other != i && held[other] != NULL)
            CHECK(labs(held[other] - &here) > 4096, "two threads on one stack");
    sched_yield();
    held[i] = NULL;
    __atomic_fetch_sub(&at_work, 1, __ATOMIC_ACQ_REL);
    return NULL;
}
static void one_thread_a_stack(void) {
    pthread_t thread[MANY];
    for (int round = 0; round < STACK_ROUNDS; round++) {
        at_work = MANY;
        for (intptr_t i = 0; i < MANY; i++) {
            CHECK_OK(pthread_create(&thread[i], NULL, hold_stack, (void *)i));
            if (i % 3 == 0)
                CHECK_OK(pthread_detach(thread[i]));
        }
        for (int i = 0; i < MANY; i++)
            if (i % 3 != 0)
                CHECK_OK(pthread_join(thread[i], NULL));
        while (__atomic_load_n(&at_work, __ATOMIC_ACQUIRE) != 0)
            sched_yield();
    }
}

static void *here(void *arg) {
    (void)arg;
    return __builtin_frame_address(0);
}
static void stacks_come_back(void) {
    void *first, *second;
    if (!mode_is("stacks"))
        return;
    run_thread_result(here, NULL, &first);
    run_thread_result(here, NULL, &second);
    CHECK(first == second, "the stack was not used again: %p, %p", first, second);
    CHECK_EQ(loaded_counters()->idle, 1);
}

// The library's own counters say nothing of address space: it must not grow with every detached thread.
static long pages(void) {
    long size = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%ld", &size) == 1, "no statm");
    fclose(file);
    return size;
}
static void address_space_is_bounded(void) {
    enum { MOST_PAGES = 64 * 2048 };
    pthread_t thread;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_OK(pthread_create(&thread, NULL, do_nothing, NULL));
        CHECK_OK(pthread_detach(thread));
        sleep_ms(1);
    }
    long before = pages();
    for (int i = 0; i < 2 * ROUNDS; i++) {
        CHECK_OK(pthread_create(&thread, NULL, do_nothing, NULL));
        CHECK_OK(pthread_detach(thread));
        sleep_ms(1);
    }
    for (int i = 0; i < 5000 && pages() - before >= MOST_PAGES; i++)
        sleep_ms(1); /* on a busy machine some have not ended yet */
    CHECK(pages() - before < MOST_PAGES, "grew by %ld pages", pages() - before);
}

// What pthread_getattr_np says is so.
static void *look_at_own_stack(void *arg) {
    pthread_attr_t attr;
    void *low;
    char mine;
    size_t size, guard;
    CHECK_OK(pthread_getattr_np(pthread_self(), &attr));
    CHECK_OK(pthread_attr_getstack(&attr, &low, &size));
    CHECK_OK(pthread_attr_getguardsize(&attr, &guard));
    CHECK(&mine > (char *)low && &mine < (char *)low + size, "not on the stack that it says");
    CHECK_EQ(guard, sysconf(_SC_PAGESIZE));
    return arg;
}
static void attributes_of_a_thread(void) {
    make_ready();
    for (int i = 0; i < 5; i++)
        run_thread(look_at_own_stack, NULL);
}

// Signals that are sent to every tid of the process reach threads that stand by; threads that get a job later were
// not meant.
static volatile sig_atomic_t heard;
static void hear(int signo) {
    (void)signo;
    heard++;
}
static void send_to_all_others(void) {
    pid_t own = kernel_tid();
    DIR *tasks = opendir("/proc/self/./task"); // by a name that does not end those that stand by
    CHECK(tasks != NULL, "opendir: %s", strerror(errno));
    for (struct dirent *entry; (entry = readdir(tasks));)
        if (atoi(entry->d_name) != 0 && atoi(entry->d_name) != own)
            syscall(SYS_tgkill, getpid(), atoi(entry->d_name), SIGUSR1);
    closedir(tasks);
}
static void signals_for_no_thread(void) {
    signal(SIGUSR1, hear);
    make_ready();
    send_to_all_others();
    run_together(4);
    CHECK_EQ(heard, 0);
}

// A thread that was made before setlocale has the character tables of after it.
static void *table(void *arg) {
    (void)arg;
    return (void *)(uintptr_t)*__ctype_b_loc();
}
static void locale_set_meanwhile(void) {
    void *theirs;
    make_ready();
    const unsigned short *before = *__ctype_b_loc();
    CHECK(setlocale(LC_ALL, "C.UTF-8") != NULL, "setlocale failed");
    PREMISE(before != *__ctype_b_loc(), "both locales have the same table");
    run_thread_result(table, NULL, &theirs);
    CHECK(theirs == (void *)(uintptr_t)*__ctype_b_loc(), "the table of another locale");
}

static void pool_in_the_child(void) {
    CHECK_EQ(kernel_threads(), 1);
    CHECK_EQ(loaded_counters()->idle, 0);
    served();
    _exit(CODE);
}
static void forked(void) {
    make_ready();
    for (int i = 0; i < 3; i++)
        expect_exit(child_status(pool_in_the_child, SECONDS), CODE);
    served();
}

// A limit on address space: nothing is kept ready.
static void nothing_under_a_limit(void) {
    struct rlimit limit = {(rlim_t)1 << 40, (rlim_t)1 << 40};
    make_ready();
    long before = pages();
    CHECK_SYS(setrlimit(RLIMIT_AS, &limit));
    if (mode_is("stacks"))
        CHECK(before - pages() >= 16 * 2048, "only %ld pages of address space less", before - pages());
    CHECK_EQ(loaded_counters()->idle, 0);
    expect_threads_at_most(1);
    run_some(10);
    CHECK_EQ(loaded_counters()->idle, 0);
}

// unshare that wants a process of one thread.
static void alone_for_unshare(void) {
    make_ready();
    wait_until_joined_are_gone();
    if (unshare(CLONE_NEWUSER) == -1) {
        CHECK(errno != EINVAL, "the process has more than one thread");
        CANNOT("unshare: %s", strerror(errno));
    }
    CHECK_EQ(kernel_threads(), 1);
    run_some(3);
}

// Many creators at once, and the pool is given up again and again meanwhile.
static void *churn(void *arg) {
    for (int i = 0; i < ROUNDS; i++) {
        pthread_t joined, loose;
        CHECK_OK(pthread_create(&joined, NULL, do_nothing, arg));
        CHECK_OK(pthread_create(&loose, NULL, do_nothing, arg));
        CHECK_OK(pthread_detach(loose));
        CHECK_OK(pthread_join(joined, NULL));
    }
    return arg;
}
static void culled_meanwhile(void) {
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        CHECK_OK(pthread_create(&thread[i], NULL, churn, NULL));
    for (int i = 0; i < 50; i++) {
        unshare(CLONE_NEWUSER); /* refused, since there are other threads; but they are given up first */
        sleep_ms(1);
    }
    for (int i = 0; i < 4; i++)
        CHECK_OK(pthread_join(thread[i], NULL));
}

// Kinds come and go: more of them than there are places for.
static void many_kinds(void) {
    for (int round = 0; round < 3; round++)
        for (size_t kib = 256; kib <= 256 + 9 * 64; kib += 64)
            for (int i = 0; i < 3; i++) {
                pthread_attr_t attr;
                pthread_t thread;
                CHECK_OK(pthread_attr_init(&attr));
                CHECK_OK(pthread_attr_setstacksize(&attr, kib * 1024));
                CHECK_OK(pthread_create(&thread, &attr, do_nothing, NULL));
                CHECK_OK(pthread_join(thread, NULL));
            }
    uint64_t before = created();
    for (int i = 0; i < 5000 && created() == before; i++) { /* those that stand by may be of another kind */
        run_thread(do_nothing, NULL);
        sleep_ms(1); /* the thread that makes them needs a CPU as well */
    }
    CHECK(created() > before, "no thread of the last kind ever stood by");
}

// A deep stack's memory does not stay with the cache.
static void *deep(void *arg) {
    volatile char room[4 << 20];
    for (size_t i = 0; i < sizeof room; i += 1024)
        room[i] = 1;
    return arg;
}
static long resident(void) {
    long size, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%ld %ld", &size, &pages) == 2, "no statm");
    fclose(file);
    return pages;
}
static void deep_stacks_are_given_back(void) {
    run_some(2);
    long before = resident();
    run_thread(deep, NULL);
    CHECK(resident() - before < 512, "%ld pages more", resident() - before);
}

// Environment: a wrong value is one line, and the default.
static void wrong_mode(void) {
    check_with_env("THRUM_ALTERNATIVE", "bogus");
    served();
    wait_until_ready(1);
    CHECK(kernel_threads() > 1, "no thread stands by");
}
static void wrong_number(void) {
    check_with_env("THRUM_ALTERNATIVE_STANDBY", "-1");
    served();
}
static void none_stand_by(void) {
    check_with_env("THRUM_ALTERNATIVE_STANDBY", "0");
    run_some(5);
    if (!mode_is("stacks"))
        CHECK_EQ(created(), 0);
    expect_threads_at_most(1);
}

static const struct check_case cases[] = {
    {"served", served, HOLDS_WHEN_SKIPPED},
    {"nothing_before_the_first", nothing_before_the_first, HOLDS_WHEN_SKIPPED},
    {"no_more_than_the_usual", no_more_than_the_usual, HOLDS_WHEN_SKIPPED},
    {"detached", detached, HOLDS_WHEN_SKIPPED},
    {"one_thread_a_stack", one_thread_a_stack, HOLDS_WHEN_SKIPPED},
    {"stacks_come_back", stacks_come_back, HOLDS_WHEN_SKIPPED},
    {"address_space_is_bounded", address_space_is_bounded, HOLDS_WHEN_SKIPPED},
    {"attributes_of_a_thread", attributes_of_a_thread, HOLDS_WHEN_SKIPPED},
    {"signals_for_no_thread", signals_for_no_thread, HOLDS_WHEN_SKIPPED},
    {"locale_set_meanwhile", locale_set_meanwhile, HOLDS_WHEN_SKIPPED},
    {"forked", forked, HOLDS_WHEN_SKIPPED},
    {"nothing_under_a_limit", nothing_under_a_limit, HOLDS_WHEN_SKIPPED},
    {"alone_for_unshare", alone_for_unshare, HOLDS_WHEN_SKIPPED},
    {"culled_meanwhile", culled_meanwhile, HOLDS_WHEN_SKIPPED},
    {"many_kinds", many_kinds, HOLDS_WHEN_SKIPPED},
    {"deep_stacks_are_given_back", deep_stacks_are_given_back, HOLDS_WHEN_SKIPPED},
    {"wrong_mode", wrong_mode, HOLDS_WHEN_SKIPPED},
    {"wrong_number", wrong_number, HOLDS_WHEN_SKIPPED},
    {"none_stand_by", none_stand_by, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
