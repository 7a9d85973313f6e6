// SPDX-License-Identifier: Apache-2.0
//
// Disease: a program with much memory starts another by fork() for each piece of work, while threads write to its memory.
// Cure: by posix_spawn().
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crew.h"

enum { MEMORY = 256 << 20 };
static char *memory;
static volatile int stop;
extern char **environ;

static SEEN void start_helper(void) {
    char name[] = "true", *words[] = {name, NULL};
    pid_t child = -1;
#ifdef CURED
    if (posix_spawn(&child, "/bin/true", NULL, NULL, words, environ) != 0)
        exit(1);
#else
    child = fork(); /* HERE: fork-copies */
    if (child == 0) {
        execv("/bin/true", words);
        _exit(1);
    }
#endif
    waitpid(child, NULL, 0);
}

static void *help(void *arg) {
    while (!stop)
        start_helper();
    return arg;
}

static SEEN uint64_t touch(uint64_t state) {
    memory[state % MEMORY]++;
    return chew(state, 20);
}

static void *work(void *arg) {
    struct hand *hand = arg;
    for (long i = 0; i < hand->share; i++)
        hand->result = touch(hand->result);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t helper;
    memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED || pthread_create(&helper, NULL, help, NULL) != 0)
        return 1;
    crew_work(crew_size(argc, argv), 6000000, work);
    stop = 1;
    pthread_join(helper, NULL);
    return 0;
}
