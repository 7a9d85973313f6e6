// SPDX-License-Identifier: Apache-2.0
//
// Disease: all threads append to one file: the kernel writes for one of them at a time.
// Cure: a file for each.
#include <fcntl.h>
#include <unistd.h>

#include "crew.h"

static SEEN void log_record(int fd, const char *record, size_t size) {
    if (write(fd, record, size) != (ssize_t)size) /* HERE: one-file */
        exit(1);
}

static void *log_some(void *arg) {
    struct hand *hand = arg;
    char name[64], record[4096];
#ifdef CURED
    snprintf(name, sizeof name, "append-%u.log", hand->index);
#else
    snprintf(name, sizeof name, "append.log");
#endif
    const int fd = open(name, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0)
        exit(1);
    memset(record, 'x', sizeof record);
    for (long i = 0; i < hand->share; i++) {
        log_record(fd, record, sizeof record);
        hand->result = chew(hand->result, 100);
        if (i % 20000 == 19999 && ftruncate(fd, 0) != 0)
            exit(1);
    }
    close(fd);
    unlink(name);
    return NULL;
}

int main(int argc, char **argv) {
    crew_work(crew_size(argc, argv), 300000, log_some);
    return 0;
}
