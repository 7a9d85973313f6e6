// SPDX-License-Identifier: Apache-2.0
/* The stack that a signal handler has interrupted: copied for the command, which unwinds it by call-frame information
 * when the program has ended, and told from others by the return addresses on it.
 *
 * It is not unwound here: frame pointers end at the first library built without them, and an unwinder takes the
 * dynamic loader's lock on some systems, for which a thread that is about to wait may not wait. Words that look like
 * return addresses but are left from earlier calls make one place look like several; the command unwinds each and
 * adds up what is the same. */
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include "os/syscall.h"
#include "stat.h"

enum {
    SCANNED = 4096,     /* bytes from the stack pointer up in which return addresses are looked for */
    ABOVE_START = 1024, /* of libc's own frames and descriptor above the function that a thread starts with */
    PAGE = 4096,        /* the smallest */
    UNLIMITED = 64 << 20, /* what is believed of a stack without a limit */
    BELOW = 65536,        /* what the size of a stack is believed to count of what is above its frames */
};

/* Of the stack that libc gave this thread. All of it from the stack pointer up can be read, while that is in it. */
static _Thread_local struct span bounds;

void stack_of_main(const void *top) {
    struct rlimit limit;
    uint64_t size = UNLIMITED;
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < UNLIMITED)
        size = limit.rlim_cur;
    bounds = (struct span){(uintptr_t)top - size, (uintptr_t)top};
}

/* The thread pointer is above the stack on both architectures, and there is memory up to it. */
void stack_of_thread(uint64_t size) {
    uint64_t frame = (uintptr_t)__builtin_frame_address(0), pointer = (uintptr_t)__builtin_thread_pointer();
    uint64_t top = frame < pointer && pointer - frame < ABOVE_START ? pointer : frame + ABOVE_START;
    uint64_t room = size - (size / 2 < BELOW ? size / 2 : BELOW); /* nor is all of that the stack's own */
    bounds = (struct span){frame - room, frame < pointer ? top : frame};
}

static uint64_t end_of_page(uint64_t address) {
    return (address | (PAGE - 1)) + 1;
}

static uint64_t least(uint64_t one, uint64_t other) {
    return one < other ? one : other;
}

/* Up to where return addresses are looked for. On a stack of another origin (an alternate signal stack, a coroutine's)
 * only the page in use is sure to be there. */
static uint64_t end_of_scan(uint64_t sp) {
    return least(in_span(&bounds, sp) ? bounds.end : end_of_page(sp), sp + SCANNED);
}

uint64_t stack_key_sigsafe(const struct registers *at, unsigned most) {
    const uint64_t prime = UINT64_C(0x100000001b3);
    uint64_t key = (UINT64_C(0xcbf29ce484222325) ^ at->pc) * prime, sp = at->sp & ~UINT64_C(7);
    const uint64_t *end = (const uint64_t *)end_of_scan(sp);
    for (const uint64_t *word = (const uint64_t *)sp; word < end && most > 0; word++) {
        if (!text_holds_sigsafe(*word))
            continue;
        key = (key ^ *word) * prime;
        most--;
    }
    return key | 1; /* 0 is no key */
}

/* Through the kernel, which stops at a page that is not there. */
static long copy_readable(unsigned char *to, uint64_t from, uint64_t end) {
    enum { PAGES = PROBE_STACK / PAGE + 1 };
    struct iovec here = {to, end - from}, there[PAGES];
    unsigned pages = 0;
    for (; from < end && pages < PAGES; pages++) {
        const uint64_t next = least(end_of_page(from), end);
        there[pages] = (struct iovec){(void *)(uintptr_t)from, next - from}; // NOLINT
        from = next;
    }
    return sys(SYS_process_vm_readv, sys(SYS_getpid), &here, 1, there, pages, 0);
}

/* Where the kernel may not be asked, of a stack of another origin only the page in use. */
void stack_copy_sigsafe(struct probe_stack *to, const struct registers *at) {
    const bool known = in_span(&bounds, at->sp);
    const uint64_t top = known ? bounds.end : confined_sigsafe() ? end_of_page(at->sp) : UINT64_MAX;
    const uint64_t end = least(top, at->sp + PROBE_STACK);
    long copied = (long)(end - at->sp);
    if (top != UINT64_MAX)
        memcpy(to->bytes, (const void *)(uintptr_t)at->sp, end - at->sp); // NOLINT
    else
        copied = copy_readable(to->bytes, at->sp, end);
    to->pc = at->pc;
    to->sp = at->sp;
    to->bp = at->bp;
    to->length = copied > 0 ? (uint64_t)copied : 0;
}
