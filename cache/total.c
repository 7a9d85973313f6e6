// SPDX-License-Identifier: Apache-2.0
/* THRUM_CACHE_TOTAL=FILE: the counters of all processes of a program, summed. `thrum compare` asks for it.
 *
 * The file is mapped at start, and a process that ends only writes to memory: by then it may have no right left
 * to open or to write a file (another user, another root, a seccomp filter), and its descriptors are its own. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache.h"
#include "os/syscall.h"

static struct thrum_cache_total *total;

static struct thrum_cache_total *map(int fd) {
    struct stat status;
    if (fstat(fd, &status) != 0 || status.st_size < (off_t)sizeof *total)
        return NULL;
    void *at = mmap(NULL, sizeof *total, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

static bool is_ours(const struct thrum_cache_total *found) {
    return found->version == THRUM_CACHE_COUNTERS_VERSION && found->size == sizeof *found;
}

bool total_open(const char *path) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return false;
    struct thrum_cache_total *found = map(fd);
    close(fd);
    if (found != NULL && !is_ours(found)) {
        munmap(found, sizeof *found);
        found = NULL;
    }
    if (found == NULL)
        return false;
    fetch_add_relaxed(&found->loaded, 1);
    total = found;
    return true;
}

static void add(uint64_t *to, const uint64_t *from) {
    fetch_add_relaxed(to, load_relaxed(from));
}

bool total_wanted(void) {
    return total != NULL;
}

/* Once a process; a child of fork is one more. */
void total_add(void) {
    static long added_by;
    const struct thrum_cache_counters *own = &thrum_cache_counters;
    long pid = sys(SYS_getpid);
    if (total == NULL || exchange_relaxed(&added_by, pid) == pid)
        return;
    struct thrum_cache_counters *sum = &total->sum;
    add(&sum->created, &own->created);
    add(&sum->reused, &own->reused);
    add(&sum->retired, &own->retired);
    add(&sum->passed, &own->passed);
    add(&sum->culled, &own->culled);
    add(&sum->idle, &own->idle);
    add(&sum->idle_peak, &own->idle_peak);
    add(&sum->live, &own->live);
    for (unsigned i = 0; i < THRUM_CACHE_REASONS_MAX; i++) {
        add(&sum->retired_by[i], &own->retired_by[i]);
        add(&sum->passed_by[i], &own->passed_by[i]);
    }
    fetch_add_relaxed(&total->ended, 1);
}
