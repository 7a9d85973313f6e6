// SPDX-License-Identifier: Apache-2.0
/* What libc does at a thread's end, and what a new thread finds: in this order
 *
 *   1. Destructors of C++ thread_locals, then those of pthread_key_t, then those of objects that the latter have made. They are
 *      the program's, and may take long. Then what libc keeps for the thread is freed.
 *   2. Robust mutexes that the thread holds become EOWNERDEAD. The kernel does that for a kernel thread's own list, which a
 *      block's is not.
 *   3. Thread-locals get their initial values, libc's own one by one; malloc's cache stays with the block.
 *   4. Cancellation is disabled and deferred, as in a new block. */
#include "preempt/renew.h"

#include <dlfcn.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "kthread/fresh/fresh.h"
#include "kthread/libc.h"
#include "os/syscall.h"
#include "preempt/blocks.h"
#include "sched/current.h"
#include "sched/exit.h"
#include "sched/tcb.h"

static int call_for_own(struct dl_phdr_info *info, size_t size, void *tls_get_addr) {
    void *(*get)(size_t index[2]);
    Dl_info own;
    (void)size;
    if (dladdr(__extension__(void *) call_for_own, &own) == 0 ||
        (uintptr_t)own.dli_fbase != (uintptr_t)info->dlpi_addr)
        return 0;
    size_t index[2] = {info->dlpi_tls_modid, 0};
    *(void **)&get = tls_get_addr;
    if (index[0] != 0)
        (void)get(index);
    return 1;
}

/* A library that was opened when the program ran has no place in this thread's table of blocks before the table is used. It
 * must have one, as where libc has noted what is told by two modules whose blocks are known (fresh/tls_layout.h): in a program in C
 * these are libc and this one. */
static void find_own_block(void) {
    void *tls_get_addr = dlsym(RTLD_DEFAULT, "__tls_get_addr");
    if (tls_get_addr != NULL)
        libc.dl_iterate_phdr(call_for_own, tls_get_addr);
}

/* Of libc's functions the pieces use only what is found here. */
bool renew_learn(void) {
    *(void **)&libc.dl_iterate_phdr = dlsym(RTLD_NEXT, "dl_iterate_phdr");
    *(void **)&libc.call_tls_dtors = dlsym(RTLD_DEFAULT, "__call_tls_dtors");
    *(void **)&libc.tls_static_info = dlsym(RTLD_DEFAULT, "_dl_get_tls_static_info");
    if (libc.dl_iterate_phdr == NULL || libc.call_tls_dtors == NULL || libc.tls_static_info == NULL)
        return false;
    keys_init();
    find_own_block();
    if (!tls_init())
        return false;
    tls_often_init();
    return true;
}

/* --- robust mutexes --------------------------------------------------------------------------------------- */

/* As the kernel does it (handle_futex_death). Bit 0 of an entry marks a priority-inheriting mutex: those are the kernel
 * thread's. */
static void die_with(uintptr_t entry, long offset, uint32_t number) {
    uint32_t *word =
        (uint32_t *)((entry & ~(uintptr_t)1) + (uintptr_t)offset); // NOLINT(performance-no-int-to-ptr)
    uint32_t now = load_relaxed(word);
    /* Pairs with the lock of the mutex by another thread, as the kernel's would. */
    while ((now & FUTEX_TID_MASK) == number)
        if (cas_acq_rel(word, &now, (now & FUTEX_WAITERS) | FUTEX_OWNER_DIED)) {
            if (now & FUTEX_WAITERS)
                sys(SYS_futex, word, FUTEX_WAKE, 1);
            return;
        }
}

/* Like the kernel it leaves the list as it is after so many, which may run in a circle. */
static void let_go_of_mutexes(const struct block *block) {
    enum { MOST = 2048 };
    const ptrdiff_t list = block_robust_list();
    if (list == 0)
        return;
    struct robust_list_head *head =
        (struct robust_list_head *)(block->record + (uintptr_t)list); // NOLINT(performance-no-int-to-ptr)
    if (__builtin_expect(head->list.next == &head->list && head->list_op_pending == NULL, 1))
        return;
    struct robust_list *entry = head->list.next;
    for (int i = 0; i < MOST && entry != NULL && entry != &head->list; i++) {
        struct robust_list *at = (struct robust_list *)((uintptr_t)entry &
                                                        ~(uintptr_t)1), // NOLINT(performance-no-int-to-ptr)
            *next = at->next;
        die_with((uintptr_t)entry, head->futex_offset, block->number);
        entry = next;
    }
    if (head->list_op_pending != NULL)
        die_with((uintptr_t)head->list_op_pending, head->futex_offset, block->number);
    head->list.next = &head->list;
    head->list_op_pending = NULL;
    ((struct robust_list **)head)[-1] = &head->list; /* libc's robust_prev */
}

/* --- the block ---------------------------------------------------------------------------------------------- */

/* The value that exit_watch() has given to each block stays; one that was made while there was no key gets it here. What the
 * destructors of keys leave behind is seen to once more, and what an allocator may have left in its key when libc freed something. */
void block_renew(const struct block *block) {
    libc.call_tls_dtors();
    bool is_more = keys_run_destructors(exit_watch_key);
    if (__builtin_expect(is_more, 0))
        libc.call_tls_dtors();
    is_more |= libc_state_end();
    if (__builtin_expect(is_more, 0))
        keys_clear(exit_watch_key);
    let_go_of_mutexes(block);
    tls_reimage_often();
    libc_state_begin();
    if (__builtin_expect(pthread_getspecific(exit_watch_key) == NULL, 0))
        exit_watch(true);
    block_reset_state(block);
}

/* Its two words are what a thread without a worker has. */
void block_renew_elsewhere(struct block *block) {
    const uintptr_t own = arch_tcb();
    store_relaxed(ARCH_TCB_WORD(block->tcb.base, thrum_worker), NULL);
    store_relaxed(ARCH_TCB_WORD(block->tcb.base, thrum_nopreempt), NOPREEMPT_NOT_PENDING);
    arch_tcb_install(block->tcb.base, tcb_is_cheap);
    block_renew(block);
    arch_tcb_install(own, tcb_is_cheap);
}
