// SPDX-License-Identifier: Apache-2.0
//
// What the tests of whole runs of `thrum stat` look at (stat_outputs_test.cpp, stat_attach_test.cpp,
// stat_terminal_test.cpp): threads with names that all want one mutex, and a program that says how a Ctrl-C came to it.
// The tests find lines by the words behind "HERE".
//
//   watched share THREADS ROUNDS   they add to the pot so often, all together; exit code 0
//   watched crash THREADS ROUNDS   the same, but a thread that finds that there are no rounds left writes to where there is no
//                                  memory: SIGSEGV
//   watched spin THREADS STEPS     each of them computes, so many steps; exit code 0
//   watched serve THREADS          says "ready"; they add to the pot until stdin is closed, then each some times more, and
//                                  end. Exit code 9
//   watched headless THREADS       the same, but the first thread ends as soon as there is another one
//   watched crowd THREADS          all want the mutex at once, and get it one after the other. Exit code 3
//   watched interrupts             says "ready"; waits for SIGINT, and a while for another one. Exit code 5
//   watched sleep                  says "ready"; sleeps until it is ended
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../keep.h"

enum { MOST_THREADS = 64, ROUNDS_AFTER = 5, PATIENCE = 100 };

static pthread_mutex_t pot_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile uint64_t pot;
static atomic_long rounds_left;
static atomic_bool is_endless, is_closing, is_crashing;

static _Noreturn void fail(const char *what) {
    fprintf(stderr, "watched: %s\n", what);
    exit(1);
}

static uint64_t chew(uint64_t state, long steps) {
    for (long i = 0; i < steps; i++) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        __asm__ volatile("" : "+r"(state)); /* one step after another: several may be made one */
    }
    return state;
}

// The holder sleeps with the lock, so the others wait for it on a busy machine as well: of four threads one has the
// lock, at most one has been woken to take it, and two are asleep.
static KEEP void put(uint64_t amount) {
    pthread_mutex_lock(&pot_lock); /* HERE put */
    pot = chew(pot + amount, 150000);
    usleep(is_endless ? 10000 : 1000); /* HERE asleep */
    pthread_mutex_unlock(&pot_lock);
}

static KEEP void fill(uint64_t amount) {
    put(chew(amount, 1000)); /* HERE fill */
    usleep(100);
}

static void crash(void) {
    volatile int *volatile nowhere = NULL;
    *nowhere = 1;
}

static void *hand(void *arg) {
    const long index = (long)(intptr_t)arg;
    char name[16];
    snprintf(name, sizeof name, "hand-%ld", index);
    if (pthread_setname_np(pthread_self(), name) != 0)
        fail("no name");
    while (is_endless ? !is_closing : atomic_fetch_sub(&rounds_left, 1) > 0)
        fill((uint64_t)index);
    for (int i = 0; is_endless && i < ROUNDS_AFTER; i++)
        fill((uint64_t)index);
    if (is_crashing)
        crash();
    return NULL;
}

static void start(pthread_t *hands, int threads) {
    for (int i = 0; i < threads; i++)
        if (pthread_create(&hands[i], NULL, hand, (void *)(intptr_t)i) != 0)
            fail("no thread");
}

static void join(pthread_t *hands, int threads) {
    for (int i = 0; i < threads; i++)
        if (pthread_join(hands[i], NULL) != 0)
            fail("no end of a thread");
}

static int share(int threads, long rounds) {
    pthread_t hands[MOST_THREADS];
    rounds_left = rounds;
    start(hands, threads);
    join(hands, threads);
    return 0;
}

static void *compute(void *steps) {
    pot = chew(1, (long)(intptr_t)steps);
    return NULL;
}

static int spin(int threads, long steps) {
    pthread_t hands[MOST_THREADS];
    for (int i = 0; i < threads; i++)
        if (pthread_create(&hands[i], NULL, compute, (void *)(intptr_t)steps) != 0)
            fail("no thread");
    join(hands, threads);
    return 0;
}

static void say_ready(void) {
    puts("ready");
    fflush(stdout);
}

static int serve(int threads) {
    pthread_t hands[MOST_THREADS];
    char byte;
    is_endless = true;
    start(hands, threads);
    say_ready();
    while (read(0, &byte, 1) > 0)
        continue;
    is_closing = true;
    join(hands, threads);
    return 9;
}

static void *serve_and_end(void *threads) {
    exit(serve((int)(intptr_t)threads));
}

static int be_headless(int threads) {
    pthread_t other;
    if (pthread_create(&other, NULL, serve_and_end, (void *)(intptr_t)threads) != 0)
        fail("no thread");
    pthread_exit(NULL);
}

static KEEP void take(void) {
    pthread_mutex_lock(&pot_lock); /* HERE take */
    pot = pot + 1;
    pthread_mutex_unlock(&pot_lock);
}

static void *take_once(void *unused) {
    rounds_left--;
    take();
    return unused;
}

static int crowd(int threads) {
    pthread_t *const hands = calloc((size_t)threads, sizeof *hands);
    pthread_attr_t attributes;
    rounds_left = threads;
    if (hands == NULL || pthread_attr_init(&attributes) != 0 ||
        pthread_attr_setstacksize(&attributes, 64 << 10) != 0)
        fail("no memory");
    pthread_mutex_lock(&pot_lock);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&hands[i], &attributes, take_once, NULL) != 0)
            fail("no thread");
    while (rounds_left > 0)
        usleep(1000);
    sleep(6); // so many are looked at seldom
    pthread_mutex_unlock(&pot_lock);
    join(hands, threads);
    free(hands);
    return 3;
}

// "SIGINT of the terminal" where the kernel sent it to the foreground process group, and how many came.
static int take_interrupts(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    say_ready();
    siginfo_t info;
    const struct timespec soon = {.tv_nsec = 500000000};
    int count = 0;
    if (sigwaitinfo(&set, &info) != SIGINT)
        fail("no signal");
    printf("SIGINT of %s\n", info.si_code == SI_KERNEL ? "the terminal" : "a process");
    do
        count++;
    while (sigtimedwait(&set, NULL, &soon) == SIGINT);
    printf("%d came\n", count);
    return 5;
}

int main(int count, char **words) {
    const char *mode = count > 1 ? words[1] : "";
    const int threads = count > 2 ? atoi(words[2]) : 1;
    alarm(PATIENCE); // nothing is left behind by a test that fails
    if (strcmp(mode, "crowd") == 0)
        return crowd(threads);
    if (threads < 1 || threads > MOST_THREADS)
        fail("how many threads?");
    is_crashing = strcmp(mode, "crash") == 0;
    if ((is_crashing || strcmp(mode, "share") == 0) && count > 3)
        return share(threads, atol(words[3]));
    if (strcmp(mode, "spin") == 0 && count > 3)
        return spin(threads, atol(words[3]));
    if (strcmp(mode, "serve") == 0)
        return serve(threads);
    if (strcmp(mode, "headless") == 0)
        return be_headless(threads);
    if (strcmp(mode, "interrupts") == 0)
        return take_interrupts();
    if (strcmp(mode, "sleep") == 0) {
        say_ready();
        pause();
    }
    fail("which mode?");
}
