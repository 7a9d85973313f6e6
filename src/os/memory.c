// SPDX-License-Identifier: Apache-2.0
/* See memory.h. */
#include "os/memory.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "os/syscall.h"

static bool succeeded(int result, int error_before) {
    errno = error_before;
    return result == 0;
}

void (*memory_is_new)(void *memory, size_t bytes);

void *memory_map(size_t bytes, int flags) {
    int error = errno;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    errno = error;
    if (memory == MAP_FAILED)
        return NULL;
    if (memory_is_new != NULL)
        memory_is_new(memory, bytes);
    return memory;
}

void *memory_map_aligned(size_t size, int flags) {
    int error = errno;
    char *map = memory_map(2 * size, flags);
    if (map == NULL)
        return NULL;
    char *aligned = (char *)(((uintptr_t)map + size - 1) & ~(uintptr_t)(size - 1));
    if (aligned > map)
        munmap(map, (size_t)(aligned - map));
    munmap(aligned + size, (size_t)(map + size - aligned));
    errno = error;
    return aligned;
}

bool memory_advise(void *memory, size_t bytes, int advice) {
    int error = errno;
    return succeeded(madvise(memory, bytes, advice), error);
}

bool memory_forbid(void *memory, size_t bytes) {
    int error = errno;
    return succeeded(mprotect(memory, bytes, PROT_NONE), error);
}

bool memory_vacate(void *memory, size_t bytes) {
    int error = errno, flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    return succeeded(mmap(memory, bytes, PROT_NONE, flags, -1, 0) == MAP_FAILED, error);
}

bool memory_copy(const void *from, void *to, size_t bytes) {
    struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)from, bytes};
    return sys(SYS_process_vm_readv, sys(SYS_getpid), &local, 1, &remote, 1, 0) == (long)bytes;
}

bool memory_is_resident(void *memory, size_t bytes, unsigned char *pages) {
    int error = errno;
    return succeeded(mincore(memory, bytes, pages), error);
}
