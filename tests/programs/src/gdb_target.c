// SPDX-License-Identifier: Apache-2.0
/* What gdb.sh looks at: four threads that live together and end, then one that stops in marker() on a reused thread. */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_barrier_t together;

__attribute__((noinline)) void marker(int *value);
__attribute__((noinline)) void marker(int *value) {
    ++*value;
}

static void *first(void *argument) {
    pthread_barrier_wait(&together);
    return argument;
}

static void *second(void *argument) {
    marker(argument);
    printf("program: second saw %d\n", *(int *)argument);
    fflush(stdout);
    return NULL;
}

/* How many of our kernel threads do not sleep. */
static int awake(void) {
    char path[300], state;
    int count = 0;
    DIR *tasks = opendir("/proc/self/./task"); /* by a name that does not end the idle ones */
    for (struct dirent *entry; tasks != NULL && (entry = readdir(tasks)) != NULL;) {
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", entry->d_name);
        FILE *file = entry->d_name[0] != '.' ? fopen(path, "r") : NULL;
        if (file == NULL)
            continue;
        count += fscanf(file, "%*d %*s %c", &state) == 1 && state != 'S';
        fclose(file);
    }
    if (tasks != NULL)
        closedir(tasks);
    return count;
}

/* Those that have ended are still cleaning up for a moment. */
static void let_them_settle(void) {
    for (int i = 0, calm = 0; i < 2000 && calm < 5; i++) {
        calm = awake() == 1 ? calm + 1 : 0;
        usleep(2000);
    }
}

int main(void) {
    pthread_t threads[4];
    int value = 6;

    pthread_barrier_init(&together, NULL, 4);
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, first, NULL) != 0)
            return 1;
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    let_them_settle();
    if (pthread_create(&threads[0], NULL, second, &value) != 0)
        return 1;
    pthread_join(threads[0], NULL);
    return value;
}
