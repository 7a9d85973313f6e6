// SPDX-License-Identifier: Apache-2.0
//
// Row kernel-pointers: what a thread has told the kernel to look at belongs to the thread. When it has ended, the memory
// may be given back.
#include <sched.h>
#include <sys/mman.h>
#include <sys/rseq.h>

#include "child.h"

// The descriptor of a restartable sequence, and the signature that must stand before the abort handler. Nothing ever
// runs in it: the kernel reads it when it next preempts the thread, and then forgets it.
struct sequence {
    struct rseq_cs cs;
    uint32_t signature;
    char handler[16], code[16];
};

static volatile struct rseq *area(void) {
    return (volatile struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

static struct sequence *map_sequence(void) {
    struct sequence *sequence =
        mmap(NULL, sizeof *sequence, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(sequence != MAP_FAILED, "mmap: %s", strerror(errno));
    sequence->signature = RSEQ_SIG;
    sequence->cs = (struct rseq_cs){.start_ip = (uintptr_t)sequence->code,
                                    .post_commit_offset = 8,
                                    .abort_ip = (uintptr_t)sequence->handler};
    return sequence;
}

static void *begin_sequence(void *sequence) {
    area()->rseq_cs = (uintptr_t)sequence;
    return NULL;
}

static void *be_preempted(void *arg) {
    for (int i = 0; i < 3; i++)
        sched_yield();
    usleep(100);
    CHECK_EQ(area()->rseq_cs, 0);
    return arg;
}

static void sequence_of_ended_thread(void) {
    if (__rseq_size == 0)
        CANNOT("no restartable sequences");
    warm_threads(2);
    for (int i = 0; i < 10; i++) {
        struct sequence *sequence = map_sequence();
        run_thread(begin_sequence, sequence);
        CHECK_SYS(munmap(sequence, sizeof *sequence));
        run_thread(be_preempted, NULL);
    }
}

static void *begin_sequence_and_exit(void *sequence) {
    begin_sequence(sequence);
    pthread_exit(NULL);
}
static void sequence_of_thread_that_exits(void) {
    if (__rseq_size == 0)
        CANNOT("no restartable sequences");
    warm_threads(2);
    for (int i = 0; i < 10; i++) {
        struct sequence *sequence = map_sequence();
        run_thread(begin_sequence_and_exit, sequence);
        CHECK_SYS(munmap(sequence, sizeof *sequence));
        run_thread(be_preempted, NULL);
    }
}

static const struct check_case cases[] = {
    {"sequence_of_ended_thread", sequence_of_ended_thread, FAILS_WHEN_SKIPPED},
    {"sequence_of_thread_that_exits", sequence_of_thread_that_exits, FAILS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
