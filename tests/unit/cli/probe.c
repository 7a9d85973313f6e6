// SPDX-License-Identifier: Apache-2.0
//
// The program that the tests of `thrum run` run: it says how it finds the world, or ends as it is told to.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int die_by(int signal_number) {
    raise(signal_number);
    return 99; // the signal did not end us
}

static int print_arguments(char **words) {
    for (; *words != NULL; words++)
        printf("<%s>", *words);
    return 0;
}

static int print_variables(char **names) {
    for (; *names != NULL; names++) {
        const char *value = getenv(*names);
        printf("%s%s%s\n", *names, value ? "=" : "", value ? value : " unset");
    }
    return 0;
}

// Copies stdin to stdout and to stderr, so that all three are seen.
static int copy(void) {
    for (int c; (c = getchar()) != EOF;) {
        putchar(c);
        fputc(c, stderr);
    }
    return 0;
}

// Signals that are blocked or ignored, and open descriptors: what an exec hands down.
static int print_inherited(void) {
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, "SigBlk", 6) == 0 || strncmp(line, "SigIgn", 6) == 0)
            fputs(line, stdout);
    if (status)
        fclose(status);
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;)
        if (atoi(entry->d_name) != dirfd(folder))
            printf("%s\n", entry->d_name);
    return 0;
}

static void *nothing(void *arg) {
    return arg;
}

static void *change_and_fork(void *arg) {
    const struct sched_param none = {0};
    pthread_setschedparam(pthread_self(), arg == NULL ? SCHED_BATCH : SCHED_OTHER, &none);
    if (arg != NULL && fork() == 0)
        _exit(0);
    return arg;
}

// Two threads that retire: one by its scheduling, one by a child.
static int retire(void) {
    static int child;
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, change_and_fork, i == 0 ? NULL : &child) != 0 ||
            pthread_join(thread, NULL) != 0)
            return 98;
    }
    return 0;
}

// Creates and joins threads, then waits for the end of stdin.
static int hold(int threads) {
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, nothing, NULL) != 0 || pthread_join(thread, NULL) != 0)
            return 98;
    }
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF)
        continue;
    return 0;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    const int number = argc > 2 ? atoi(argv[2]) : 0;
    if (strcmp(what, "exit") == 0)
        return number;
    if (strcmp(what, "die") == 0)
        return die_by(number);
    if (strcmp(what, "args") == 0)
        return print_arguments(argv + 2);
    if (strcmp(what, "env") == 0)
        return print_variables(argv + 2);
    if (strcmp(what, "copy") == 0)
        return copy();
    if (strcmp(what, "pid") == 0)
        return printf("%d", (int)getpid()) < 0;
    if (strcmp(what, "name") == 0)
        return printf("%s", argv[0]) < 0;
    if (strcmp(what, "loaded") == 0)
        return printf("%s", dlsym(RTLD_DEFAULT, "thrum_cache_counters") ? "yes" : "no") < 0;
    if (strcmp(what, "inherited") == 0)
        return print_inherited();
    if (strcmp(what, "retire") == 0)
        return retire();
    if (strcmp(what, "hold") == 0)
        return hold(number);
    return 97;
}
