// SPDX-License-Identifier: Apache-2.0
//
// Disease: all threads make and remove files in one directory: the kernel changes it for one of them at a time.
// Cure: a directory for each.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crew.h"

static SEEN void spool(int directory, const char *name) {
    const int fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL, 0600); /* HERE: one-file */
    if (fd < 0 || close(fd) != 0 || unlinkat(directory, name, 0) != 0)         /* HERE: one-file */
        exit(1);
}

static void *spool_some(void *arg) {
    struct hand *hand = arg;
    char own[32], name[64];
#ifdef CURED
    snprintf(own, sizeof own, "spool-%u", hand->index);
#else
    snprintf(own, sizeof own, "spool");
#endif
    mkdir(own, 0700);
    const int directory = open(own, O_RDONLY | O_DIRECTORY);
    if (directory < 0)
        exit(1);
    for (long i = 0; i < hand->share; i++) {
        snprintf(name, sizeof name, "%u-%ld", hand->index, i % 16);
        spool(directory, name);
        hand->result = chew(hand->result, 100);
    }
    close(directory);
    return NULL;
}

int main(int argc, char **argv) {
    crew_work(crew_size(argc, argv), 150000, spool_some);
    return 0;
}
