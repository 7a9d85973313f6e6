// SPDX-License-Identifier: Apache-2.0
//
// Gives up rights with libpsx, which has each thread of the process make the system call: threads that have ended must
// be gone, and those that run must be reached. Prints what is left.
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/psx_syscall.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ENDED = 8, RUNNING = 3 };

static pthread_barrier_t together;
static volatile int is_released;

static void *meet(void *arg) {
    pthread_barrier_wait(&together);
    return arg;
}

static void *wait_and_look(void *arg) {
    (void)arg;
    while (!is_released)
        usleep(1000);
    return (void *)(long)prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
}

static void run_together(void) {
    pthread_t threads[ENDED];
    for (int i = 0; i < ENDED; i++)
        if (pthread_create(&threads[i], NULL, meet, NULL) != 0)
            _exit(2);
    for (int i = 0; i < ENDED; i++)
        pthread_join(threads[i], NULL);
}

// Tasks of the process with an effective capability, or without no-new-privileges.
static int with_rights(const char *task) {
    char path[320], line[256];
    unsigned long value;
    int found = 0;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", task);
    FILE *status = fopen(path, "re");
    while (status && fgets(line, sizeof line, status)) {
        found |= sscanf(line, "CapEff: %lx", &value) == 1 && value != 0;
        found |= sscanf(line, "NoNewPrivs: %lu", &value) == 1 && value == 0;
    }
    if (status)
        fclose(status);
    return found;
}

int main(void) {
    pthread_t running[RUNNING];
    pthread_barrier_init(&together, NULL, ENDED);
    run_together();
    for (int i = 0; i < RUNNING; i++)
        if (pthread_create(&running[i], NULL, wait_and_look, NULL) != 0)
            return 2;
    usleep(10000);

    cap_t none = cap_init();
    printf("no new privileges: %ld\n", psx_syscall6(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0));
    printf("no capabilities: %d\n", cap_set_proc(none));

    int tasks = 0, rights = 0;
    DIR *folder = opendir("/proc/self/task");
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (entry->d_name[0] != '.') {
            tasks++;
            rights += with_rights(entry->d_name);
        }
    printf("%d tasks, %d with rights\n", tasks, rights);

    is_released = 1;
    for (int i = 0; i < RUNNING; i++) {
        void *dropped;
        pthread_join(running[i], &dropped);
        printf("thread: %ld\n", (long)dropped);
    }
    for (int i = 0; i < 20; i++)
        run_together();
    return 0;
}
