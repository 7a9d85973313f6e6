// SPDX-License-Identifier: Apache-2.0
/* Which thread has which lineage: threads of ours have it in their descriptor, others in a thread-local. Row lineage.
 *
 * A thread that libc made for itself (timers, asynchronous I/O, message queues) inherits its creator's kernel state
 * without our knowing. Once any thread has changed anything, such a thread's lineage is unknown and what it creates
 * is left to libc. */
#include "base/atomic.h"
#include "base/rows.h"
#include "kthread/kthread.h"
#include "os/syscall.h"

static __thread uint64_t own_lineage; /* of a thread that is not ours */
static __thread bool own_known;

bool kthread_lineage(uint64_t *lineage) {
    struct kthread *self = kthread_self_sigsafe();
    *lineage = self != NULL ? load_relaxed(&self->lineage) : own_lineage;
    return self != NULL || own_known || !lineage_ever_changed() || sys(SYS_gettid) == sys(SYS_getpid);
}

void kthread_adopt_lineage(uint64_t lineage) {
    own_lineage = lineage;
    own_known = true;
}

void kthread_change_lineage_of_by(struct kthread *thread, because call) {
    if (skipped(ROW_LINEAGE))
        return;
    store_relaxed(&thread->call, call);
    store_relaxed(&thread->lineage, lineage_new(load_relaxed(&thread->lineage)));
}

void kthread_change_lineage_by(because call) {
    struct kthread *self = kthread_self_sigsafe();
    if (self != NULL)
        kthread_change_lineage_of_by(self, call);
    else if (!skipped(ROW_LINEAGE))
        kthread_adopt_lineage(lineage_new(own_lineage));
}

/* The new generation first: what ends from now on is not kept. */
void kthread_change_rights(void) {
    kthread_adopt_lineage(lineage_new_rights());
    fence_seq_cst(); /* pairs with keeping's, as that of kthread_stop_keeping */
    kthread_cull();
}
