// SPDX-License-Identifier: Apache-2.0
//
// No lock: a pool whose threads wait for tasks at a semaphore. There is one task at a time, as each adds the next one when it is done.
// What a thread that waits has and passes on looks like a semaphore that is a lock.
#include <semaphore.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "crew.h"

enum { TASKS = 240 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t queued;
static int first, last, tasks[TASKS + MOST_THREADS];
static unsigned crew;

static SEEN void submit(int task) {
    pthread_mutex_lock(&lock);
    tasks[last++] = task;
    pthread_mutex_unlock(&lock);
    sem_post(&queued);
}

static SEEN int next_task(void) {
    while (sem_wait(&queued) != 0)
        continue;
    pthread_mutex_lock(&lock);
    const int task = tasks[first++];
    pthread_mutex_unlock(&lock);
    return task;
}

static SEEN void ask(void) {
    uint64_t times;
    const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    const struct itimerspec answer = {.it_value = {.tv_nsec = 4000000}};
    if (timer < 0 || timerfd_settime(timer, 0, &answer, NULL) != 0 || read(timer, &times, sizeof times) < 0)
        exit(1);
    close(timer);
}

static SEEN void run(int task) {
    ask();
    if (task + 1 < TASKS)
        submit(task + 1);
    for (unsigned i = 0; task + 1 == TASKS && i < crew; i++) // the last one
        submit(-1);
}

static void *serve(void *arg) {
    for (int task = next_task(); task >= 0; task = next_task())
        run(task);
    return arg;
}

int main(int argc, char **argv) {
    crew = crew_size(argc, argv);
    if (sem_init(&queued, 0, 0) != 0)
        return 1;
    submit(0);
    crew_work(crew, 0, serve);
    return 0;
}
