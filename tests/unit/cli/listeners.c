// SPDX-License-Identifier: Apache-2.0
//
// A server as some are: a thread for each connection, of which few have something to do (stat_looks_test.cpp).
//
//   cli-listeners CONNECTIONS   so many threads wait for a message that never comes, in turn by recv and by read; four others
//                               want one mutex all the time. The owner sleeps, so the others wait for it on a busy
//                               machine as well
//   cli-listeners CONNECTIONS idle   they alone; says "ready", and ends when its stdin is closed
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../keep.h"

enum { WORKERS = 4, ROUNDS = 10, PATIENCE = 100 };

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile uint64_t table;
static int ends[2];

static _Noreturn void fail(const char *what) {
    fprintf(stderr, "listeners: %s\n", what);
    exit(1);
}

static void *serve_connection(void *number) {
    char byte;
    if (((uintptr_t)number % 2 != 0 ? recv(ends[0], &byte, 1, 0) : read(ends[0], &byte, 1)) >= 0)
        fail("a message");
    return NULL;
}

static KEEP void update(void) {
    pthread_mutex_lock(&table_lock);
    table = table + 1;
    usleep(20000); // for longer than a thread waits for a CPU on a busy machine
    pthread_mutex_unlock(&table_lock);
}

static void *work(void *unused) {
    for (int i = 0; i < ROUNDS; i++)
        update();
    return unused;
}

int main(int count, char **words) {
    pthread_t workers[WORKERS], connection;
    pthread_attr_t small;
    const long connections = count > 1 ? atol(words[1]) : 0;
    alarm(PATIENCE); // nothing is left behind by a test that fails
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 || pthread_attr_init(&small) != 0 ||
        pthread_attr_setstacksize(&small, 64 << 10) != 0)
        fail("no socket");
    for (long i = 0; i < connections; i++)
        if (pthread_create(&connection, &small, serve_connection, (void *)(intptr_t)i) != 0)
            fail("no thread");
    if (count > 2) {
        puts("ready");
        fflush(stdout);
        return getchar() != EOF;
    }
    for (int i = 0; i < WORKERS; i++)
        if (pthread_create(&workers[i], NULL, work, NULL) != 0)
            fail("no thread");
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    return 0;
}
