// SPDX-License-Identifier: Apache-2.0
//
// Disease: all threads read one directory, each the next entry: readdir() takes the lock of the DIR.
// Cure: each thread opens the directory for itself.
#include <dirent.h>

#include "crew.h"

static DIR *open_folder(void) {
    DIR *const folder = opendir("/usr/bin");
    if (folder == NULL)
        abort();
    return folder;
}

static SEEN uint64_t letter_of_next(DIR *folder) {
    const struct dirent *const entry = readdir(folder); /* HERE: hidden-lock */
    if (entry == NULL) {
        rewinddir(folder);
        return 0;
    }
    return (uint64_t)entry->d_name[0];
}

static DIR *shared;

static void *read_names(void *arg) {
    struct hand *hand = arg;
#ifdef CURED
    DIR *const folder = open_folder();
#else
    DIR *const folder = shared;
#endif
    for (long i = 0; i < hand->share; i++)
        hand->result = chew(hand->result + letter_of_next(folder), 200);
    if (folder != shared)
        closedir(folder);
    return NULL;
}

int main(int argc, char **argv) {
    shared = open_folder();
    crew_work(crew_size(argc, argv), 1200000, read_names);
    closedir(shared);
    return 0;
}
