// SPDX-License-Identifier: Apache-2.0
/* Whether the program's memory can be read, where a system call that is made in its place takes a pointer: what the
 * kernel would answer with EFAULT may not become a fault of ours.
 *
 * Asked of rt_sigprocmask with a change that there is not: it reads the new mask, and then refuses. That works where
 * calls that are made for copying memory are forbidden. What another thread unmaps meanwhile is not caught. */
#include <errno.h>

#include "os/syscall.h"
#include "stat.h"

enum { NO_CHANGE = -1, WORD = sizeof(uint64_t), PAGE = 4096 /* the smallest */ };

static bool has_word(uint64_t address) {
    return sys(SYS_rt_sigprocmask, NO_CHANGE, address, 0, WORD) != -EFAULT;
}

/* A word that is aligned lies in one page, and stands for it. */
bool memory_is_readable_sigsafe(uint64_t address, uint64_t size) {
    uint64_t at = address & ~(uint64_t)(WORD - 1);
    for (; at < address + size; at = (at | (PAGE - 1)) + 1)
        if (!has_word(at))
            return false;
    return true;
}

/* A string, and no more of it than there is room for; an empty one where it cannot be read. */
void memory_copy_string_sigsafe(char *to, uint64_t from, uint64_t room) {
    uint64_t length = 0;
    for (; length + 1 < room; length++) {
        const uint64_t at = from + length;
        if ((length == 0 || at % PAGE == 0) && !memory_is_readable_sigsafe(at, 1)) {
            length = 0;
            break;
        }
        if ((to[length] = *(const char *)at) == '\0')
            return;
    }
    to[length] = '\0';
}
