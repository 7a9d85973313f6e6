// SPDX-License-Identifier: Apache-2.0
/* Setting up: the memory that the command shares, the purpose that it asks for; and what is left for it at the end.
 *
 * The memory is mapped at start, and later only written to: the program may lose the right to open files, and close
 * descriptors that it does not know. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/syscall.h"
#include "stat.h"

static struct probe *probe;

struct probe *probe_of_process(void) {
    return probe;
}

bool probe_wants(enum probe_mode mode) {
    return probe != NULL && probe->mode == (uint32_t)mode;
}

void probe_failed(enum probe_trouble trouble, long error) {
    probe->error = (int32_t)error;
    store_release(&probe->trouble, (uint32_t)trouble); /* pairs with ProbeFile::trouble: `error` is there */
}

static struct probe *map(int fd) {
    struct stat status;
    if (fstat(fd, &status) != 0 || status.st_size < (off_t)sizeof *probe)
        return NULL;
    void *at = mmap(NULL, sizeof *probe, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

static bool is_ours(const struct probe *found) {
    return found->version == PROBE_VERSION && found->size == sizeof *found &&
           found->program == (int32_t)sys(SYS_getpid);
}

static void open_probe(const char *path) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    struct probe *found = map(fd);
    close(fd);
    if (found != NULL && !is_ours(found)) {
        munmap(found, sizeof *found);
        found = NULL;
    }
    probe = found;
}

/* The program's end, by exit or by executing another one: the last moment at which all its libraries are where they
 * were. And when it confines itself: the last moment at which they can be asked for. */
void maps_leave_sigsafe(void) {
    if (confined_sigsafe() || probe->program != (int32_t)sys(SYS_getpid))
        return;
    const long fd = sys(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
    uint32_t length = 0;
    for (long got; fd >= 0 && length < PROBE_MAPS; length += (uint32_t)got)
        if ((got = sys(SYS_read, fd, probe->maps + length, PROBE_MAPS - length)) <= 0)
            break;
    if (fd >= 0)
        sys(SYS_close, fd);
    store_release(&probe->maps_length, length); /* pairs with ProbeFile::maps (cli/stat/collect.cpp) */
}

__attribute__((constructor)) static void start(int count, char **arguments, char **environment) {
    const char *path = getenv(PROBE_VARIABLE);
    int saved = errno;
    (void)count;
    (void)arguments;
    if (path != NULL && *path != '\0')
        open_probe(path);
    if (probe != NULL) {
        confined_begin();
        text_find();
        stack_of_main(environment);
        store_release(&probe->maps_length, 0); /* pairs with ProbeFile::maps */
        fetch_add_relaxed(&probe->loaded, 1);
        makers_clear(probe);
        executed_begin(probe);
        if (probe->mode == PROBE_EXACT)
            trap_start(probe);
        else if (probe->mode == PROBE_TIMER)
            timer_start(probe);
        else if (probe->mode == PROBE_ALLOCATIONS)
            allocations_start(probe);
    }
    errno = saved;
}

__attribute__((destructor)) static void end(void) {
    if (probe != NULL)
        maps_leave_sigsafe();
}
