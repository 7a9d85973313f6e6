// SPDX-License-Identifier: Apache-2.0
//
// Row "robust": a thread that ends with a robust mutex locked leaves it to the next locker with EOWNERDEAD, at once,
// which is the kernel's doing when the kernel thread dies.

#include <linux/futex.h>
#include <semaphore.h>
#include <sys/mman.h>

#include "check.h"

struct kind {
    int type, protocol, shared;
};

static pthread_mutex_t *mutex;

// An emulator of user programs has no lists of robust mutexes, and then glibc alone fails as well.
static void require_robust_lists(void) {
    void *head;
    size_t size;
    if (syscall(SYS_get_robust_list, 0, &head, &size) == -1 && errno == ENOSYS)
        CANNOT("the kernel keeps no list of robust mutexes");
}

static void make_mutex(struct kind kind) {
    require_robust_lists();
    mutex = mmap(NULL, sizeof *mutex, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(mutex != MAP_FAILED, "mmap: %s", strerror(errno));
    pthread_mutexattr_t attributes;
    CHECK_OK(pthread_mutexattr_init(&attributes));
    CHECK_OK(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST));
    CHECK_OK(pthread_mutexattr_settype(&attributes, kind.type));
    CHECK_OK(pthread_mutexattr_setprotocol(&attributes, kind.protocol));
    CHECK_OK(pthread_mutexattr_setpshared(&attributes, kind.shared));
    CHECK_OK(pthread_mutex_init(mutex, &attributes));
}

static void *lock_and_return(void *arg) {
    CHECK_OK(pthread_mutex_lock(mutex));
    return arg;
}

static void *lock_and_exit(void *arg) {
    CHECK_OK(pthread_mutex_lock(mutex));
    pthread_exit(arg);
}

static void *lock_and_cancel(void *arg) {
    CHECK_OK(pthread_mutex_lock(mutex));
    pthread_cancel(pthread_self());
    pthread_testcancel();
    return arg;
}

// Locks within a second; the result is pthread_mutex_timedlock's.
static int lock_soon(void) {
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 1;
    return pthread_mutex_timedlock(mutex, &limit);
}

static void expect_owner_dead(void) {
    CHECK_EQ(lock_soon(), EOWNERDEAD);
    CHECK_OK(pthread_mutex_consistent(mutex));
    CHECK_OK(pthread_mutex_unlock(mutex));
    CHECK_OK(lock_soon());
    CHECK_OK(pthread_mutex_unlock(mutex));
}

static void *expect_owner_dead_in_thread(void *arg) {
    expect_owner_dead();
    return arg;
}

static void held_at_end(struct kind kind, void *(*start)(void *)) {
    make_mutex(kind);
    for (int i = 0; i < 3; i++) {
        pid_t before = run_thread(do_nothing, NULL), owner = run_thread(start, NULL);
        expect_reused(before, owner);
        if (i == 1) {
            run_thread(expect_owner_dead_in_thread, NULL); // the next thread is not taken for the owner
        } else {
            expect_owner_dead();
        }
    }
}

static const struct kind normal = {PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, PTHREAD_PROCESS_PRIVATE};
static const struct kind errorcheck = {PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_NONE, PTHREAD_PROCESS_PRIVATE};
static const struct kind recursive = {PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE, PTHREAD_PROCESS_PRIVATE};
static const struct kind shared = {PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, PTHREAD_PROCESS_SHARED};
static const struct kind inheriting = {PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, PTHREAD_PROCESS_PRIVATE};
static const struct kind inheriting_recursive = {PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_INHERIT,
                                                 PTHREAD_PROCESS_SHARED};

static void held_by_normal_end(void) {
    held_at_end(normal, lock_and_return);
}
static void held_by_pthread_exit(void) {
    held_at_end(normal, lock_and_exit);
}
static void held_by_cancelled_thread(void) {
    held_at_end(normal, lock_and_cancel);
}
static void held_errorcheck(void) {
    held_at_end(errorcheck, lock_and_return);
}
static void held_recursive(void) {
    held_at_end(recursive, lock_and_return);
}
static void held_process_shared(void) {
    held_at_end(shared, lock_and_exit);
}
static void held_priority_inheriting(void) {
    held_at_end(inheriting, lock_and_return);
}
static void held_priority_inheriting_recursive(void) {
    held_at_end(inheriting_recursive, lock_and_exit);
}

static sem_t locked, may_end;

static void *lock_and_wait(void *arg) {
    CHECK_OK(pthread_mutex_lock(mutex));
    CHECK_SYS(sem_post(&locked));
    while (sem_wait(&may_end) == -1) {
    }
    return arg;
}

// Others wait for the mutex when its owner ends.
static void waiters_are_woken(struct kind kind) {
    make_mutex(kind);
    CHECK_SYS(sem_init(&locked, 0, 0));
    CHECK_SYS(sem_init(&may_end, 0, 0));
    run_thread(do_nothing, NULL);
    pthread_t owner, waiter;
    CHECK_OK(pthread_create(&owner, NULL, lock_and_wait, NULL));
    CHECK_SYS(sem_wait(&locked));
    CHECK_OK(pthread_create(&waiter, NULL, expect_owner_dead_in_thread, NULL));
    sleep_ms(30);
    CHECK_SYS(sem_post(&may_end));
    CHECK_OK(pthread_join(owner, NULL));
    CHECK_OK(pthread_join(waiter, NULL));
}

static void waiter_of_normal(void) {
    waiters_are_woken(normal);
}
static void waiter_of_priority_inheriting(void) {
    waiters_are_woken(inheriting);
}

static void *lock_and_unlock(void *arg) {
    CHECK_OK(pthread_mutex_lock(mutex));
    CHECK_OK(pthread_mutex_unlock(mutex));
    return arg;
}

// Using robust mutexes properly is no reason to give the thread up.
static void unlocked_is_no_reason(void) {
    static const struct kind *kinds[] = {&normal, &recursive, &inheriting};
    for (int i = 0; i < 3; i++) {
        make_mutex(*kinds[i]);
        pid_t first = run_thread(lock_and_unlock, NULL), second = run_thread(lock_and_unlock, NULL);
        expect_reused(first, second);
    }
}

static pthread_mutex_t many[5];

static void *lock_many(void *arg) {
    for (int i = 0; i < 5; i++)
        CHECK_OK(pthread_mutex_lock(&many[i]));
    CHECK_OK(pthread_mutex_unlock(&many[2]));
    return arg;
}

static void several_held(void) {
    make_mutex(normal);
    for (int i = 0; i < 5; i++) {
        pthread_mutexattr_t attributes;
        CHECK_OK(pthread_mutexattr_init(&attributes));
        CHECK_OK(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST));
        CHECK_OK(pthread_mutex_init(&many[i], &attributes));
    }
    run_thread(do_nothing, NULL);
    run_thread(lock_many, NULL);
    for (int i = 0; i < 5; i++) {
        mutex = &many[i];
        CHECK_EQ(lock_soon(), i == 2 ? 0 : EOWNERDEAD);
    }
}

// A thread that ends between taking the futex word and entering the mutex into its list (out of a signal handler,
// say): only list_op_pending names the mutex.
static void *end_with_operation_pending(void *arg) {
    struct robust_list_head *head;
    size_t size;
    CHECK_SYS(syscall(SYS_get_robust_list, 0, &head, &size));
    uint32_t *word = (uint32_t *)((char *)arg + head->futex_offset);
    __atomic_store_n(word, (uint32_t)kernel_tid(), __ATOMIC_SEQ_CST);
    head->list_op_pending = arg;
    return word;
}

static void operation_pending(void) {
    require_robust_lists();
    static long entry_and_word[64];
    run_thread(do_nothing, NULL);
    void *word;
    run_thread_result(end_with_operation_pending, &entry_and_word[32], &word);
    for (int i = 0; i < 1000 && !(__atomic_load_n((uint32_t *)word, __ATOMIC_SEQ_CST) & FUTEX_OWNER_DIED);
         i++)
        sleep_ms(1);
    CHECK(*(uint32_t *)word & FUTEX_OWNER_DIED, "the word is %#x: the owner is not known to be dead",
          *(uint32_t *)word);
}

static const struct check_case cases[] = {
    {"held-by-normal-end", held_by_normal_end, FAILS_WHEN_SKIPPED},
    {"held-by-pthread-exit", held_by_pthread_exit, FAILS_WHEN_SKIPPED},
    {"held-by-cancelled-thread", held_by_cancelled_thread, HOLDS_WHEN_SKIPPED},
    {"held-errorcheck", held_errorcheck, FAILS_WHEN_SKIPPED},
    {"held-recursive", held_recursive, FAILS_WHEN_SKIPPED},
    {"held-process-shared", held_process_shared, FAILS_WHEN_SKIPPED},
    {"held-priority-inheriting", held_priority_inheriting, FAILS_WHEN_SKIPPED},
    {"held-priority-inheriting-recursive", held_priority_inheriting_recursive, FAILS_WHEN_SKIPPED},
    {"waiter-of-normal", waiter_of_normal, FAILS_WHEN_SKIPPED},
    {"waiter-of-priority-inheriting", waiter_of_priority_inheriting, FAILS_WHEN_SKIPPED},
    {"unlocked-is-no-reason", unlocked_is_no_reason, HOLDS_WHEN_SKIPPED},
    {"several-held", several_held, FAILS_WHEN_SKIPPED},
    {"operation-pending", operation_pending, FAILS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
