// SPDX-License-Identifier: Apache-2.0
/* Addresses that a thread has given to the kernel, which uses them of its own accord as long as the kernel thread
 * lives. Row kernel-pointers.
 *
 *   rseq_cs          the descriptor of a restartable sequence. The kernel reads it when it preempts the thread, and kills
 *                    the process if it cannot; it stays there until then, while the module that it stands in may be
 *                    unloaded. Cleared at each end.
 *   rseq area        libc's. Where a program registers another, that is a change of lineage: the thread retires.
 *   robust list      asked for, and libc's put back: robust.c
 *   clear_child_tid  the thread retires unless it was put back: cache/syscall.c
 *   signal stack     disabled: kthread.c
 *   user dispatch    the selector byte of PR_SET_SYSCALL_USER_DISPATCH: the thread retires
 *   io_uring         registered rings, buffers of pending requests: the thread retires (unseen.c)
 *   userfaultfd      belongs to the memory and to the descriptor, no thread has one
 */
#include <stddef.h>
#include <stdint.h>

#include "base/rows.h"
#include "kthread/fresh/fresh.h"

/* libc's; where it has none (before 2.35, or switched off) it registers nothing. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

/* As in rseq(2). The kernel may write cpu_id_start, cpu_id and, when it has undone a sequence, rseq_cs. */
struct area {
    uint32_t cpu_id_start, cpu_id;
    uint64_t rseq_cs;
    uint32_t flags;
};

void rseq_forget(void) {
    if (skipped(ROW_KERNEL_POINTERS) || &__rseq_size == NULL || __rseq_size == 0)
        return;
    volatile struct area *area = (volatile struct area *)((char *)__builtin_thread_pointer() + __rseq_offset);
    area->rseq_cs = 0;
    area->flags = 0;
}
