// SPDX-License-Identifier: Apache-2.0
//
// Row "stack": a deep stack is given back when its thread has ended (glibc does so as well, at the thread's end), and
// with THRUM_CACHE_WIPE_STACK=1 the next thread sees nothing that a thread left on its stack.

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

enum { DEEP = 4 << 20, SECRET = 160 << 10 };

static char *deep_low;

// Fills a large array in a frame of its own; returns so that the compiler cannot drop it.
__attribute__((noinline)) static int use_deep(int value) {
    volatile char array[DEEP];
    for (size_t i = 0; i < DEEP; i += 512)
        array[i] = (char)value;
    deep_low = (char *)array;
    return array[DEEP / 2];
}

static void *use_deep_stack(void *arg) {
    CHECK_EQ(use_deep(7), 7);
    return arg;
}

// Resident pages of [start, start + size); a part that is not mapped has none.
static size_t resident_pages(char *start, size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), resident = 0;
    char *end = start + size;
    for (char *p = (char *)((uintptr_t)start & ~(page - 1)); p < end; p += page) {
        unsigned char in_core = 0;
        if (mincore(p, page, &in_core) == 0)
            resident += in_core & 1;
    }
    return resident;
}

static void deep_stack_is_given_back(void) {
    for (int i = 0; i < 3; i++) {
        pid_t first = run_thread(use_deep_stack, NULL), second = 0;
        size_t pages = 0;
        for (int ms = 0; ms < 3000; ms += 10) {
            pages = resident_pages(deep_low, DEEP - (256 << 10));
            if (pages == 0)
                break;
            sleep_ms(10);
        }
        CHECK(pages == 0, "%zu pages of an ended thread's stack are still resident after three seconds",
              pages);
        second = run_thread(use_deep_stack, NULL);
        expect_reused(first, second);
    }
}

static const unsigned char pattern[16] = "\x5a\xc3"
                                         "secret\xa5\x3c thrum";

__attribute__((noinline)) static void write_secret(void) {
    volatile unsigned char array[SECRET];
    for (size_t i = 0; i < SECRET; i++)
        array[i] = pattern[i % sizeof pattern];
    __asm__ volatile("" : : "r"(array) : "memory");
}

// How many copies of the pattern an array holds that was never written to.
__attribute__((noinline)) static int find_secret(void) {
    unsigned char array[SECRET];
    unsigned char *bytes = array;
    __asm__ volatile("" : "+r"(bytes) : : "memory");
    int found = 0;
    for (size_t i = 0; i + sizeof pattern <= SECRET; i++)
        found += memcmp(bytes + i, pattern, sizeof pattern) == 0;
    return found;
}

static void *leave_secret(void *arg) {
    write_secret();
    CHECK(find_secret() > 100, "the test does not see what is on its own stack");
    return arg;
}

static void *leave_secret_and_exit(void *arg) {
    leave_secret(NULL);
    pthread_exit(arg);
}

static void *look_for_secret(void *arg) {
    int found = find_secret();
    CHECK(found <= 2048, "%d copies of the previous thread's secret are on the stack", found);
    return arg;
}

static void *look_for_any_secret(void *arg) {
    int found = find_secret();
    CHECK(found == 0, "%d copies of the previous thread's secret are on the stack", found);
    return arg;
}

// glibc alone gives back a stack at its thread's end but for the topmost 16 KiB and a bit; so the oracle allows what
// fits there, the cache with the option on does not.
static void wiped_on_request(void) {
    check_with_env("THRUM_CACHE_WIPE_STACK", "1");
    void *(*look)(void *) = under_thrum() ? look_for_any_secret : look_for_secret;
    for (int i = 0; i < 3; i++) {
        pid_t first = run_thread(leave_secret, NULL), second = run_thread(look, NULL);
        pid_t third = run_thread(leave_secret_and_exit, NULL), fourth = run_thread(look, NULL);
        expect_reused(first, second);
        expect_reused(second, third);
        expect_reused(third, fourth);
    }
}

static void *frame_address(void *arg) {
    *(uintptr_t *)arg = (uintptr_t)__builtin_frame_address(0);
    return NULL;
}

static void *frame_address_and_exit(void *arg) {
    frame_address(arg);
    pthread_exit(NULL);
}

// Every thread of a kernel thread has the whole stack: none starts deeper than the one before.
static void stack_does_not_creep(void) {
    uintptr_t first = 0, last = 0;
    pid_t first_tid = 0, last_tid = 0;
    for (int i = 0; i < 2000; i++) {
        last_tid = run_thread(i % 2 ? frame_address_and_exit : frame_address, &last);
        if (i == 1) {
            first = last;
            first_tid = last_tid;
        }
    }
    expect_reused(first_tid, last_tid);
    if (first_tid == last_tid)
        CHECK(first - last < 256, "frames start at %#jx, and 2000 threads later at %#jx", (uintmax_t)first,
              (uintmax_t)last);
}

// A size for which there is room only if the stack is whole.
static void whole_size_is_usable(void) {
    pthread_attr_t attributes;
    CHECK_OK(pthread_attr_init(&attributes));
    CHECK_OK(pthread_attr_setstacksize(&attributes, DEEP + (128 << 10)));
    for (int i = 0; i < 5; i++) {
        pthread_t thread;
        CHECK_OK(pthread_create(&thread, &attributes, use_deep_stack, NULL));
        CHECK_OK(pthread_join(thread, NULL));
    }
}

__attribute__((noinline)) static int recurse(volatile char *above) {
    volatile char array[4096];
    array[0] = above[0];
    if (array[0] == 0)
        return 0;
    return recurse(array) + array[0];
}

static void *overflow(void *arg) {
    volatile char start = 1;
    recurse(&start);
    return arg;
}

// The guard page is still there in a reused thread.
static void overflow_is_caught(void) {
    pid_t child = fork();
    CHECK_SYS(child);
    if (child == 0) {
        run_thread(use_deep_stack, NULL);
        run_thread(overflow, NULL);
        _exit(3);
    }
    int status;
    CHECK_SYS(waitpid(child, &status, 0));
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "a stack overflow ended with status %#x",
          status);
}

static const struct check_case cases[] = {
    {"deep-stack-is-given-back", deep_stack_is_given_back, FAILS_WHEN_SKIPPED},
    {"wiped-on-request", wiped_on_request, FAILS_WHEN_SKIPPED},
    {"stack-does-not-creep", stack_does_not_creep, HOLDS_WHEN_SKIPPED},
    {"whole-size-is-usable", whole_size_is_usable, HOLDS_WHEN_SKIPPED},
    {"overflow-is-caught", overflow_is_caught, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
