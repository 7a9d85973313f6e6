// SPDX-License-Identifier: Apache-2.0
/* A multi-threaded program that forks all the time: the main thread and short-lived ones fork while others are created
 * and end; every child, which starts with the one thread that forked, makes threads of its own, forks once more, and
 * reports by its exit code. Handlers of pthread_atfork() run once each. Run by built.sh.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 20, THREADS = 6, CHILD_THREADS = 5 };

static atomic_int prepared, in_parent, wrong, reaped;
static int in_child;
static __thread int own;

static void prepare(void) {
    atomic_fetch_add(&prepared, 1);
}
static void parent(void) {
    atomic_fetch_add(&in_parent, 1);
}
static void child(void) {
    in_child++;
}

static void must(int ok, const char *what) {
    if (ok)
        return;
    fprintf(stderr, "forks: %s failed\n", what);
    _exit(99);
}

static void *add_one(void *argument) {
    void *memory = malloc(5000);
    must(own == 0 && memory != NULL, "a fresh thread");
    own = 1;
    free(memory);
    return (void *)((intptr_t)argument + 1);
}

/* Two rounds of threads, the second of which may run on the first one's kernel threads. */
static int count_with_threads(void) {
    int sum = 0;
    for (int round = 0; round < 2; round++) {
        pthread_t threads[CHILD_THREADS];
        for (int i = 0; i < CHILD_THREADS; i++)
            must(pthread_create(&threads[i], NULL, add_one, (void *)(intptr_t)i) == 0, "pthread_create");
        for (int i = 0; i < CHILD_THREADS; i++) {
            void *result;
            must(pthread_join(threads[i], &result) == 0, "pthread_join");
            sum += (int)(intptr_t)result;
        }
    }
    return sum; /* 2 * (1 + 2 + 3 + 4 + 5) */
}

static int exit_code_of(pid_t pid) {
    int status = 0;
    must(pid > 0 && waitpid(pid, &status, 0) == pid, "waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void in_the_child(int number) {
    must(own == 7 && in_child == 1, "the forking thread in the child");
    int sum = count_with_threads();
    pid_t grandchild = fork();
    if (grandchild == 0)
        _exit(count_with_threads() + 1);
    must(exit_code_of(grandchild) == sum + 1, "the grandchild");
    if (number % 2 == 0)
        _exit(sum + number);
    exit(sum + number);
}

static void fork_once(int number) {
    own = 7;
    pid_t pid = fork();
    if (pid == 0)
        in_the_child(number);
    int code = exit_code_of(pid);
    if (code != 2 * 15 + number) {
        fprintf(stderr, "forks: a child ended with %d instead of %d\n", code, 30 + number);
        atomic_fetch_add(&wrong, 1);
    }
    atomic_fetch_add(&reaped, 1);
}

static void *fork_in_a_thread(void *argument) {
    must(own == 0, "a fresh thread that forks");
    fork_once((int)(intptr_t)argument);
    return NULL;
}

int main(void) {
    must(pthread_atfork(prepare, parent, child) == 0, "pthread_atfork");
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            must(pthread_create(&threads[i], NULL, fork_in_a_thread, (void *)(intptr_t)i) == 0,
                 "pthread_create");
        must(count_with_threads() == 30, "threads next to those that fork");
        fork_once(round % THREADS);
        for (int i = 0; i < THREADS; i++)
            must(pthread_join(threads[i], NULL) == 0, "pthread_join");
    }
    printf("children %d, wrong %d, prepared %d, in the parent %d\n", atomic_load(&reaped),
           atomic_load(&wrong), atomic_load(&prepared), atomic_load(&in_parent));
    return atomic_load(&wrong) != 0;
}
