// SPDX-License-Identifier: Apache-2.0
/* A program that loads libthrum (its argument) by dlopen, so that pthread_exit is the C library's: a ULT, and the thread that
 * called thrum_init, that call it end the process with a line that says why, in each mode. A kernel thread that is no worker
 * may end so. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <thrum/thrum.h>
#include <unistd.h>

static struct {
    int (*init)(const struct thrum_config *config);
    int (*fini)(void);
    int (*spawn)(thrum_t *thread, const thrum_attr_t *attr, void *(*fn)(void *), void *arg);
    int (*join)(thrum_t thread, void **result);
} thrum;

static void *leave(void *result) {
    pthread_exit(result);
}

static void find(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL) {
        fprintf(stderr, "opened: %s\n", dlerror());
        exit(1);
    }
    *(void **)&thrum.init = dlsym(library, "thrum_init");
    *(void **)&thrum.fini = dlsym(library, "thrum_fini");
    *(void **)&thrum.spawn = dlsym(library, "thrum_spawn");
    *(void **)&thrum.join = dlsym(library, "thrum_join");
}

static void begin(unsigned mode) {
    struct thrum_config config = {.workers = 2, .preempt = {.mode = mode}};
    if (thrum.init(&config) != 0)
        _exit(2);
}

static void thread_leaves(unsigned mode) {
    thrum_t thread;
    begin(mode);
    if (thrum.spawn(&thread, NULL, leave, NULL) == 0)
        thrum.join(thread, NULL);
}

static void main_leaves(unsigned mode) {
    begin(mode);
    pthread_exit(NULL);
}

static void others_leave(unsigned mode) {
    pthread_t thread;
    begin(mode);
    if (pthread_create(&thread, NULL, leave, NULL) != 0 || pthread_join(thread, NULL) != 0 ||
        thrum.fini() != 0)
        _exit(3);
}

static void main_leaves_after(unsigned mode) {
    begin(mode);
    if (thrum.fini() != 0)
        _exit(3);
    pthread_exit(NULL);
}

/* Runs it in a child, and returns its status; what it says is in `said`. */
static int status_of(void (*work)(unsigned mode), unsigned mode, char *said, size_t size) {
    int ends[2], status = -1;
    if (pipe(ends) != 0)
        return -1;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        alarm(20);
        work(mode);
        _exit(0);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t part; length + 1 < size && (part = read(ends[0], said + length, size - 1 - length)) > 0;)
        length += (size_t)part;
    said[length] = '\0';
    close(ends[0]);
    waitpid(child, &status, 0);
    return status;
}

static int check(const char *name, void (*work)(unsigned mode), unsigned mode, int is_to_abort) {
    char said[4096];
    int status = status_of(work, mode, said, sizeof said);
    int has_aborted =
        WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && strstr(said, "loaded by dlopen") != NULL;
    int has_exited = WIFEXITED(status) && WEXITSTATUS(status) == 0 && said[0] == '\0';
    if (is_to_abort ? has_aborted : has_exited)
        return 0;
    fprintf(stderr, "opened: %s in mode %u: status %#x, \"%s\"\n", name, mode, (unsigned)status, said);
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 1;
    find(argv[1]);
    int failures = 0;
    for (unsigned mode = THRUM_PREEMPT_NONE; mode <= THRUM_PREEMPT_KLT; mode++) {
        failures += check("a thread", thread_leaves, mode, 1);
        failures += check("the first thread", main_leaves, mode, 1);
        failures += check("a kernel thread", others_leave, mode, 0);
        failures += check("main, after the runtime", main_leaves_after, mode, 0);
    }
    return failures != 0;
}
